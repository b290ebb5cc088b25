"""SELECTs that take rows one after the other as they lie: no sort, no grouping, and DuckDB only for what is computed.

Such is a read of a change table along its clustered key: a range of it, filtered, numbered, and joined with other rows
that a transaction's LSN leads to, in the order of the key or in none. Values that are only handed on stay where they
are; what is computed of them, and whether a row is wanted, DuckDB says for some hundred thousand rows at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.tsql.aggregates import AGGREGATES
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr
from airflow_provider_mssql_cdc.sandbox.tsql.ordering import RowNumbers
from airflow_provider_mssql_cdc.sandbox.tsql.ranges import ranges
from airflow_provider_mssql_cdc.sandbox.tsql.relation import EVERYTHING, Range, Relation, Rows, tighter
from airflow_provider_mssql_cdc.sandbox.tsql.results import limited, table
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Context, Scope
from airflow_provider_mssql_cdc.sandbox.tsql.sources import FromClause

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment

_PIECE = 262_144
_PLACE = "o"  # no column of a relation is called so in DuckDB
_NOT_BY_ROW = (exp.Select, exp.SetOperation, exp.Window, exp.WithinGroup)


@dataclass(frozen=True, slots=True)
class Parts:
    """The compiled parts of a SELECT that neither groups its rows nor makes them distinct.

    :param where: each condition that must be fulfilled, as it was written and as DuckDB takes it
    :param order: what the rows are sorted by, in ascending order
    """

    clause: FromClause
    where: list[tuple[exp.Expr, str]]
    columns: list[tuple[str, Expr]]
    order: list[Expr]
    limit: int | None
    offset: int


def direct(ctx: Context, scope: Scope, node: exp.Expr, parts: Parts) -> Rows | None:
    """A SELECT's rows, where they are those of its first relation as these lie; else None."""
    clause = parts.clause
    numbers = [expr.numbering for _, expr in parts.columns if expr.numbering is not None]
    if not clause.relations or not clause.settled or scope.correlated or not _is_by_row(node, len(numbers)):
        return None
    alias, relation = next(iter(clause.relations.items()))
    source = _Source.of(alias, relation)
    if source is None or not clause.sql.startswith(source.text) or not source.lie_by(parts.order):
        return None
    if not all(source.are_numbered(*numbering) for numbering in numbers):
        return None
    plan = _Plan(ctx.env, source, parts, *_narrowed(ctx, scope, source, parts.where))
    # without a key, DuckDB does as well at once what it would do piece by piece
    return plan.rows() if source.rows.key or not plan.sql else None


def _is_by_row(node: exp.Expr, numbers: int) -> bool:
    """Whether the rows come one by one from those of the first relation: each by itself, but for its numbers.

    :param numbers: how many columns are numbers of the rows
    """
    joins = [join for part in (node.args["from_"], *(node.args.get("joins") or [])) for join in part.find_all(exp.Join)]
    items = [item.unalias() for item in node.expressions]
    computed = [item for item in items if not isinstance(item, exp.Window)]
    if len(items) - len(computed) != numbers:
        return False
    for join in joins:
        # without a condition there may be very many rows for each, and no more than some are taken at a time
        if join.side not in ("", "LEFT") or not join.args.get("on"):
            return False
        computed.append(join.args["on"])
    computed += [node.args["where"]] if node.args.get("where") else []
    return not any(
        isinstance(part, _NOT_BY_ROW)
        or (isinstance(part, exp.Anonymous) and part.name.lower() in (*AGGREGATES, "string_agg"))
        for item in computed
        for part in item.walk()
    )


@dataclass(frozen=True, slots=True)
class _Source:
    """The first relation of a FROM clause, whose rows are read.

    :param text: that begins the DuckDB text of the clause
    :param places: of its columns, by DuckDB text
    """

    alias: str
    relation: Relation
    rows: Rows
    text: str
    places: dict[str, int]

    @classmethod
    def of(cls, alias: str, relation: Relation) -> _Source | None:
        """A relation under its alias; None where its rows cannot be read as they lie."""
        if relation.rows is None:
            return None
        places = {f"{alias}.{name}": i for i, (_, name) in enumerate(relation.columns)}
        return cls(alias, relation, relation.rows, f"{relation.source} AS {alias}", places)

    def are_numbered(self, within: tuple[str, ...], by: tuple[str, ...]) -> bool:
        """Whether a row's number is its place among the neighbours with the same values of some columns."""
        return any(
            self._lie_by([*some, *(text for text in by if text not in some)]) for some in itertools.permutations(within)
        )

    def lie_by(self, order: Sequence[Expr]) -> bool:
        """Whether the rows lie in the ascending order of expressions."""
        texts: list[str] = []
        for expr in order:
            if expr.numbering is not None and set(expr.numbering[0]) <= set(texts):
                # no two rows are equal up to here, and the numbers rise with the rows
                return self.are_numbered(*expr.numbering) and self._lie_by(texts)
            if not expr.constant:
                texts.append(expr.sql)
        return self._lie_by(texts)

    def _lie_by(self, texts: Sequence[str]) -> bool:
        key = {f"{self.alias}.{name}": name for name in self.rows.key}
        return set(texts) <= key.keys() and self.rows.in_order(tuple(key[text] for text in dict.fromkeys(texts)))


def _narrowed(
    ctx: Context, scope: Scope, source: _Source, where: list[tuple[exp.Expr, str]]
) -> tuple[Range, list[str]]:
    """The range that is read, and the conditions that are left to be looked at for each row."""
    if not source.rows.ranged:
        return EVERYTHING, [text for _, text in where]
    wanted = f"{source.alias}.{source.rows.ranged}"

    def key(column: exp.Column) -> bool | None:
        qualifier = column.args["table"].name if column.args.get("table") else ""
        return scope.column(column.name, qualifier).sql == wanted or None

    within, rest = EVERYTHING, []
    for condition, text in where:
        found, says_all = ranges(ctx, condition, key)
        within = tighter(within, found.get(True, EVERYTHING))
        if not says_all:
            rest.append(text)
    return within, rest


@dataclass(slots=True)
class _Plan:
    """How the rows are read: a range of the source, what DuckDB does with it, the columns, and how many rows.

    :param within: the range
    :param rest: conditions that a row in the range must fulfil
    :ivar sql: what DuckDB is asked of a piece of the source, if anything
    """

    env: Environment
    source: _Source
    parts: Parts
    within: Range
    rest: list[str]
    sql: str = field(init=False, default="")
    piece: str = field(init=False, default="")
    computed: dict[int, int] = field(init=False, default_factory=dict)  # from a column's place to that in the answer

    def __post_init__(self) -> None:
        clause, alias = self.parts.clause, self.source.alias
        asked = [f"{alias}.{_PLACE}"]
        for place, (_, expr) in enumerate(self.parts.columns):
            if expr.numbering is None and expr.sql not in self.source.places:
                self.computed[place] = len(asked)
                asked.append(f"{expr.output} AS k{place + 1}")
        joined = clause.sql[len(self.source.text) :]
        if joined or self.rest or self.computed:
            self.piece = self.env.new_name()
            where = f" WHERE {' AND '.join(self.rest)}" if self.rest else ""
            self.sql = f"SELECT {', '.join(asked)} FROM {self.piece} AS {alias}{joined}{where}"

    def rows(self) -> Rows:
        """What is read."""
        key = {f"{self.source.alias}.{name}" for name in self.source.rows.key}
        names = [
            f"k{i}"
            for i, (_, expr) in enumerate(self.parts.columns, 1)
            if expr.sql in key or expr.numbering is not None
        ]
        return Rows(self.read, tuple(names), self._ranged(), self._in_order)

    def _ranged(self) -> str:
        wanted = f"{self.source.alias}.{self.source.rows.ranged}"
        whole = all(expr.numbering is None or wanted in expr.numbering[0] for _, expr in self.parts.columns)
        if self.parts.limit is not None or self.parts.offset or not whole:
            return ""  # rows outside of a range count for what is shown of the others
        return next((f"k{i}" for i, (_, expr) in enumerate(self.parts.columns, 1) if expr.sql == wanted), "")

    def _in_order(self, names: tuple[str, ...]) -> bool:
        return self.source.lie_by([self.parts.columns[int(name[1:]) - 1][1] for name in names])

    def read(self, within: Range) -> Iterator[pa.RecordBatch]:
        """The rows, with columns k1, k2, ..."""
        low, high = tighter(self.within, within)
        if low is not None and high is not None and low > high:
            return iter(())
        batches = self.source.rows.read((low, high))
        return limited(self._projected(batches), self.parts.limit, self.parts.offset)

    def _projected(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        places, columns = self.source.places, [expr for _, expr in self.parts.columns]
        numbers = [None if expr.numbering is None else RowNumbers() for expr in columns]
        for rows, answer in self._answered(batches) if self.sql else ((_Picked(batch), None) for batch in batches):
            arrays = []
            for place, (expr, number) in enumerate(zip(columns, numbers, strict=True)):
                if number is not None and expr.numbering is not None:
                    arrays.append(number.of(rows.count, [rows.column(places[text]) for text in expr.numbering[0]]))
                elif place in self.computed and answer is not None:
                    array = answer.column(self.computed[place])
                    arrays.append(array if array.type == expr.type.arrow else array.cast(expr.type.arrow))
                else:
                    arrays.append(rows.column(places[expr.sql]))
            yield pa.RecordBatch.from_arrays(arrays, [f"k{i}" for i in range(1, len(arrays) + 1)])

    def _answered(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[_Picked, pa.RecordBatch]]:
        """Rows of the source, and what DuckDB says of each."""
        columns = self.source.relation.columns
        # what is joined is looked through for each piece: it should not be more than the piece
        for piece in _pieces(batches, max(_PIECE, 2 * self.env.read_named(self.sql))):
            rows = table(columns, piece)
            with self.env.staged(self.piece, rows.append_column(_PLACE, pa.array(np.arange(rows.num_rows)))):
                answer = self.env.fetch(self.sql)
            kept = answer.column(0).to_numpy()
            if (kept[1:] < kept[:-1]).any():
                order = np.argsort(kept, kind="stable")
                answer, kept = answer.take(order), kept[order]
            first = 0
            for batch in piece:
                start, stop = np.searchsorted(kept, [first, first + batch.num_rows])
                if start < stop:
                    (part,) = answer.slice(start, stop - start).combine_chunks().to_batches()
                    yield _Picked.of(batch, kept[start:stop] - first), part
                first += batch.num_rows


@dataclass(frozen=True, slots=True)
class _Picked:
    """Some rows of a batch; all of it where no places are given."""

    batch: pa.RecordBatch
    places: pa.Array | None = None

    @classmethod
    def of(cls, batch: pa.RecordBatch, places: np.ndarray[Any, Any]) -> _Picked:
        """The rows at these places, of which there is one at least."""
        if (np.diff(places) == 1).all():
            return cls(batch.slice(places[0], len(places)))
        return cls(batch, pa.array(places))

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.batch.num_rows if self.places is None else len(self.places)

    def column(self, position: int) -> pa.Array:
        """The rows' values in one column."""
        column = self.batch.column(position)
        return column if self.places is None else column.take(self.places)


def _pieces(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[list[pa.RecordBatch]]:
    piece: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        piece.append(batch)
        rows += batch.num_rows
        if rows >= size:
            yield piece
            piece, rows = [], 0
    if rows:
        yield piece
