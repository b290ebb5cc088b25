"""Reads of change tables that need no query: their rows lie in memory in the order and the columns that are wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.tsql.expressions import scalar
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Context, Expr, Relation, Scope
from airflow_provider_mssql_cdc.sandbox.tsql.sources import FromClause, conjuncts

_NUMBER = -1
_LSN_BYTES = 10
_TESTS: dict[type, Callable[[Any, Any], Any]] = {
    exp.GT: pc.greater,
    exp.GTE: pc.greater_equal,
    exp.LT: pc.less,
    exp.LTE: pc.less_equal,
}


def direct(
    ctx: Context, scope: Scope, node: exp.Expr, clause: FromClause, columns: list[tuple[str, Expr]]
) -> Callable[[], list[pa.RecordBatch]] | None:
    """What reads a SELECT's rows without DuckDB; None where it takes a query.

    It reads plain columns, and the row number within each transaction, of one relation that lies in memory; of a
    change table between LSNs and command ids, in clustered order.
    """
    if len(clause.relations) != 1 or len(scope.sources) != 1:
        return None
    alias, relation = next(iter(clause.relations.items()))
    if relation.batches is None or not clause.sql.endswith(f" AS {alias}") or node.args.get("with_"):
        return None
    known = _numbers(alias, relation) | {f"{alias}.{name}": i for i, (_, name) in enumerate(relation.columns)}
    picks = [known.get(expr.sql, None) for _, expr in columns]
    if None in picks or not _in_clustered_order(node.args.get("order"), relation):
        return None
    narrowed = _narrowed(ctx, relation, conjuncts(node.args["where"].this if node.args.get("where") else None))
    if narrowed is None:
        return None
    names = [f"k{i}" for i in range(1, len(picks) + 1)]

    def read() -> list[pa.RecordBatch]:
        numbers = _RowNumbers()
        return [
            pa.RecordBatch.from_arrays(
                [numbers.of(batch.column(0)) if pick == _NUMBER else batch.column(pick) for pick in picks], names
            )
            for batch in narrowed()
        ]

    return read


def _numbers(alias: str, relation: Relation) -> dict[str, int]:
    """How the compiled row number of a transaction's rows looks; on fewer columns the stored order is as good."""
    if not relation.order:
        return {}
    physical = {column.name.lower(): f"{alias}.{name}" for column, name in relation.columns}
    commit, *others = (physical[name] for name in relation.order)
    keys = [f"{name} ASC NULLS FIRST" for name in others]
    return {
        f"row_number() OVER (PARTITION BY {commit} ORDER BY {', '.join(keys[:count])})": _NUMBER
        for count in range(1, len(keys) + 1)
    }


def _in_clustered_order(order: exp.Expr | None, relation: Relation) -> bool:
    items = order.expressions if order else []
    names = tuple(item.this.name.lower() for item in items)
    return names == relation.order[: len(names)] and not any(item.args.get("desc") for item in items)


def _narrowed(
    ctx: Context, relation: Relation, conditions: list[exp.Expr]
) -> Callable[[], list[pa.RecordBatch]] | None:
    """The batches that fulfil the conditions; None for others than bounds of commit LSN and command id."""
    batches = relation.batches
    assert batches is not None
    if conditions and not relation.order:
        return None
    places = {column.name.lower(): i for i, (column, _) in enumerate(relation.columns)}
    low, high = 0, (1 << 8 * _LSN_BYTES) - 1
    tests: list[tuple[Callable[[Any, Any], Any], int]] = []
    for condition in conditions:
        test = _TESTS.get(type(condition))
        if test is None or not isinstance(condition.this, exp.Column) or condition.expression.find(exp.Column):
            return None
        bound = scalar(ctx, Scope(), condition.expression)
        value = ctx.value(bound, "") if bound.constant else None
        name = condition.this.name.lower()
        if name == relation.order[0] and isinstance(value, bytes) and len(value) <= _LSN_BYTES:
            number = int.from_bytes(value.ljust(_LSN_BYTES, b"\x00"))
            if isinstance(condition, exp.GT | exp.GTE):
                low = max(low, number + isinstance(condition, exp.GT))
            else:
                high = min(high, number - isinstance(condition, exp.LT))
        elif name == relation.order[1] and type(value) is int:
            tests.append((test, value))
        else:
            return None

    def read() -> list[pa.RecordBatch]:
        if low > high:
            return []
        found = batches(low.to_bytes(_LSN_BYTES), high.to_bytes(_LSN_BYTES))
        for test, value in tests:
            found = [batch.filter(test(batch.column(places[relation.order[1]]), value)) for batch in found]
        return found

    return read


class _RowNumbers:
    """Counts the rows of each transaction over batches in clustered order."""

    def __init__(self) -> None:
        self._last, self._count = b"", 0

    def of(self, commits: pa.Array) -> pa.Array:
        """The numbers of a batch's rows, from 1, given their commit LSNs."""
        rows = len(commits)
        if not rows:
            return pa.array([], pa.int64())
        data = np.frombuffer(commits.buffers()[2], np.uint8)
        first = np.frombuffer(commits.buffers()[1], np.int32)[commits.offset]
        lsns = data[first : first + rows * _LSN_BYTES].reshape(rows, _LSN_BYTES)
        place: npt.NDArray[np.int64] = np.arange(rows, dtype=np.int64)
        begins = np.zeros(rows, np.int64)
        begins[1:] = np.where((lsns[1:] != lsns[:-1]).any(axis=1), place[1:], 0)
        numbers = place - np.maximum.accumulate(begins) + 1
        if commits[0].as_py() == self._last:
            numbers[begins.cumsum() == 0] += self._count
        self._last, self._count = commits[rows - 1].as_py(), int(numbers[-1])
        return pa.array(numbers)
