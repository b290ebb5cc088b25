"""A table's rows, read in chunks of its key."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.chunks import Bound, KeyPart, can_be_cut, chunk, ends, highest, places, sought
from airflow_provider_mssql_cdc.core.columns import TEMPORARY, ColumnMapping, key_columns, map_column
from airflow_provider_mssql_cdc.core.common_values import are_common, differing, most_frequent, same
from airflow_provider_mssql_cdc.core.conditions import Condition, pushed_filter
from airflow_provider_mssql_cdc.core.copies import Hole
from airflow_provider_mssql_cdc.core.exceptions import SelectionError
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.core.table import column_meant, literal, quote
from airflow_provider_mssql_cdc.spark.files import Parquet, write_rows
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.selecting import fulfils, with_salt
from airflow_provider_mssql_cdc.spark.shapes.fold import by_keys_of, column

_MOST_SOUGHT, _SOUGHT_AT_ONCE = 10_000, 200
"""Keys that are sought at most, and by one statement."""

_GROUP, _FIRST = f"{TEMPORARY}group", f"{TEMPORARY}first"


class Chunks:
    """The chunks of one table.

    :param parts: what the table is cut by; empty where it is one chunk
    :param salt: of hashes
    :param pin: name or number of the index that is read; None leaves it to the server
    :param conditions: that rows fulfil beside those of the selection
    :param within: a condition for the server alone, which the rows of chunks fulfil, too; '' for all rows
    """

    def __init__(
        self,
        jdbc: Jdbc,
        table: TableSpec,
        mappings: Sequence[ColumnMapping],
        parts: Sequence[KeyPart] = (),
        salt: str | None = None,
        pin: str | None = None,
        conditions: Sequence[Condition] = (),
        within: str = "",
    ) -> None:
        self._jdbc, self._table, self._mappings, self._parts, self._salt = jdbc, table, mappings, parts, salt
        self._pin, self._conditions, self._within = pin, conditions, within

    def highest(self) -> Bound | None:
        """The last row's place; None where the table is empty."""
        return self._place(highest(self._parts, self._table.name.quoted))

    def cut(self, hole: Hole, rows: Callable[[], int], until: Bound | None) -> Iterator[Hole]:
        """The chunks of a hole, one after the other in the order of the key: each end is sought when it is asked for.

        :param rows: says how many a chunk has at least
        :param until: behind this place the last chunk is not cut, so that a table which grows faster comes to an end
        """
        reached, last = hole.after, hole.last or until
        seen = set()
        while self._parts and (end := self._end(reached, last, rows())) is not None and end != last:
            if end in seen:
                raise RuntimeError(f"the server's order of {', '.join(part.name for part in self._parts)} changes")
            seen.add(end)
            yield Hole(reached, end)
            reached = end
        yield Hole(reached, hole.last)

    def read(self, hole: Hole, folder: str) -> Parquet:
        """The rows of a chunk.

        :param folder: for them; must not exist yet
        """
        within = " AND ".join(filter(None, (chunk(self._parts, hole.after, hole.last), self._within)))
        return write_rows(self._frame(within, [*self._table.selection.conditions, *self._conditions]), folder)

    def common(
        self, names: Sequence[str], rows: int, unchanged: str = ""
    ) -> tuple[tuple[str | None, ...], int, int] | None:
        """The values that nearly all of the table's first rows have in some columns.

        :param names: of the columns
        :param rows: that are looked at
        :param unchanged: the rows that have not changed, as T-SQL behind FROM: the values that all of these have; ''
            for those of the table
        :return: the values as exact texts, the number of rows that have them, and how many were looked at; None where
            there are no such values, or the columns have no exact texts
        """
        columns = list(map(self._table.schema.column, names))
        query = most_frequent(columns, unchanged or self._table.name.quoted, self._parts, rows)
        texts = [f"v{number}" for number in range(len(names))]
        schema = ", ".join([*(f"{text} STRING" for text in texts), "n BIGINT", "total BIGINT"])
        found = self._jdbc.rows(query, schema) if query is not None else []
        if not found:
            return None
        values = tuple(found[0][text] for text in texts)
        number, total = found[0]["n"], found[0]["total"]
        is_common = are_common(values, number, total) and not (unchanged and number < total)
        return (values, number, total) if is_common else None

    def example(self, names: Sequence[str], values: Sequence[str | None], folder: str) -> Parquet:
        """What targets hold in some columns where the table has some values: one row, or none if no row has them.

        :param names: of the columns
        :param values: as exact texts
        :param folder: for it; must not exist yet
        """
        columns = map(self._table.schema.column, names)
        targets = [t.name for mapping in self._mappings if mapping.column.name in names for t in mapping.targets]
        row = self._frame(same(list(columns), values), [], top="TOP (1) ").select(*map(column, targets))
        return write_rows(row, folder)

    def differing(self, names: Sequence[str], values: Sequence[str | None]) -> Chunks:
        """The chunks of the rows that do not have some values.

        :param names: of the columns
        :param values: as exact texts
        """
        within = differing(list(map(self._table.schema.column, names)), values)
        return Chunks(
            self._jdbc, self._table, self._mappings, self._parts, self._salt, self._pin, self._conditions, within
        )

    def read_keys(self, keys: DataFrame, copied: DataFrame, connections: int) -> DataFrame:
        """The rows that have one of some keys as they are now, whether they fulfil the conditions of chunks or not.

        They are sought, a statement for some of them. Where they are many, where their values have no exact text, or
        where a target hides them, all rows are read in one pass.

        :param keys: as targets have them, each once
        :param copied: rows that are there already; those of other keys stay
        :param connections: JDBC connections that may be open at once
        """
        names, selection = key_columns(self._table.schema, self._mappings), self._table.selection
        key = [self._table.schema.column(name) for name in self._table.schema.key]
        hidden = {column.name for column in key} & selection.masks.keys()
        few = keys.limit(_MOST_SOUGHT + 1).count() <= _MOST_SOUGHT
        if hidden or not few or not can_be_cut(key):
            rows = by_keys_of(self._frame("", selection.conditions), keys, names, "left_semi")
        else:
            parts = [KeyPart(column) for column in key]
            bounds = _bounds(keys, parts, names)
            groups = (sought(parts, bounds[i : i + _SOUGHT_AT_ONCE]) for i in range(0, len(bounds), _SOUGHT_AT_ONCE))
            frames = [self._frame(condition, selection.conditions) for condition in groups]
            # by its collation the server may find for a key a row with another one, which others find, too
            numbered = [frame.withColumn(_GROUP, F.lit(number)) for number, frame in enumerate(frames)]
            rows = reduce(DataFrame.unionAll, numbered).coalesce(connections)
            first = F.min(_GROUP).over(Window.partitionBy(*map(column, names)))
            rows = rows.withColumn(_FIRST, first).where(F.col(_GROUP) == F.col(_FIRST)).drop(_GROUP, _FIRST)
        return by_keys_of(rows, by_keys_of(copied, keys, names, "left_anti"), names, "left_anti")

    def places(self, bounds: Sequence[Bound]) -> Mapping[Bound, int]:
        """The places of bounds in the server's order of the key; equal ones have one."""
        if not bounds:
            return {}
        rows = self._jdbc.rows(places(self._parts, bounds), "number INT, place BIGINT")
        return {bounds[row["number"]]: row["place"] - 1 for row in rows}

    def _rows(self, conditions: Sequence[Condition]) -> str:
        """The rows of the table that may fulfil conditions, as far as the server can tell."""
        where = pushed_filter(self._table.schema, conditions)
        name = self._table.name.quoted
        if self._pin is not None:
            name += f" WITH (INDEX({self._pin if self._pin.isdigit() else quote(self._pin)}))"
        return f"(SELECT * FROM {name} WHERE {where}) r" if where else name

    def _frame(self, within: str, conditions: Sequence[Condition], top: str = "") -> DataFrame:
        """The target's columns of the rows that fulfil conditions.

        :param within: a condition for the server alone; '' for all rows
        :param top: how many of them, in T-SQL; '' for all
        """
        judged = {condition.column for condition in conditions}
        # the table no longer has the columns that targets keep
        read = [mapping for mapping in self._mappings if mapping.select and not mapping.column.kept]
        others = judged - {mapping.column.name for mapping in read}
        read += [map_column(self._table.name, self._table.schema.column(name)) for name in sorted(others)]
        selected = ", ".join(f"{mapping.select} AS {mapping.alias}" for mapping in read)
        schema = ", ".join(f"{mapping.alias} {mapping.read_type}" for mapping in read)
        where = f" WHERE {within}" if within else ""
        rows = self._jdbc.frame(f"SELECT {top}{selected} FROM {self._rows(conditions)}{where}", schema)
        if conditions:
            # the server has judged what it compares as Spark does; here all is judged
            rows = rows.where(fulfils(read, conditions))
        columns = [
            F.expr(target.expression.replace("{}", _value(mapping))).alias(target.name)
            for mapping in self._mappings
            for target in mapping.targets
        ]
        return with_salt(rows, self._mappings, self._salt).select(*columns)

    def _end(self, after: Bound | None, last: Bound | None, rows: int) -> Bound | None:
        """Where a chunk ends; None if what is left has fewer rows."""
        # without the row filter, for which the index may lack columns: bounds of all rows divide any of them
        queries = ends(self._parts, self._table.name.quoted, after, last, rows)
        return next(filter(None, map(self._place, queries)), None)

    def _place(self, query: str) -> Bound | None:
        names = [f"b{number}" for number in range(len(self._parts))]
        found = self._jdbc.rows(query, ", ".join(f"{name} STRING" for name in names))
        return tuple(found[0][name] for name in names) if found else None


def _value(mapping: ColumnMapping) -> str:
    """What was read of a column, in Spark SQL."""
    return f"CAST(NULL AS {mapping.read_type})" if mapping.column.kept else mapping.alias


def _bounds(keys: DataFrame, parts: Sequence[KeyPart], names: Sequence[str]) -> list[Bound]:
    # an instant comes to Python in the zone of its process
    types = dict(keys.dtypes)
    instants = {name for name in names if types[name] == "timestamp"}
    asked = [column(name).cast("string") if name in instants else column(name) for name in names]
    rows = keys.select(*asked).collect()
    return [
        tuple(None if value is None else part.text_of(value) for part, value in zip(parts, row, strict=True))
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class TableScan:
    """How a table can be scanned.

    :param parts: what the table is cut by, as an index of the whole table begins with it; empty without such one
    :param rows: that the table is said to have
    :param by_versions: whether plain reads go by row versions (READ_COMMITTED_SNAPSHOT)
    :param by_snapshots: whether reads may go by SNAPSHOT
    :param pin: name or number of an index in which a row moves only where a captured column changes; None where there
        is none
    """

    parts: tuple[KeyPart, ...] = ()
    rows: int = 0
    by_versions: bool = True
    by_snapshots: bool = False
    pin: str | None = None


def table_scan(jdbc: Jdbc, table: TableSpec, *, snapshots: bool = True) -> TableScan:
    """Look how a table can be scanned.

    :param snapshots: by SNAPSHOT, too, where the database allows it

    An index that is divided into partitions has no order of its own (docs: partitioned indexes).
    """
    found = jdbc.rows(
        "SELECT d.is_read_committed_snapshot_on AS versions, CAST(d.snapshot_isolation_state AS int) AS snapshots,"
        " i.index_id, i.name AS of_index, c.name, ic.key_ordinal AS place, ic.is_descending_key AS down, p.n, p.number"
        " FROM sys.databases d CROSS JOIN sys.indexes i"
        " JOIN (SELECT index_id, SUM(rows) AS n, MAX(partition_number) AS number FROM sys.partitions"
        f" WHERE object_id = OBJECT_ID({literal(table.name.quoted)}) GROUP BY index_id) p ON p.index_id = i.index_id"
        " LEFT JOIN sys.index_columns ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id"
        " AND ic.key_ordinal > 0"
        " LEFT JOIN sys.columns c ON c.object_id = ic.object_id AND c.column_id = ic.column_id"
        f" WHERE d.database_id = DB_ID() AND i.object_id = OBJECT_ID({literal(table.name.quoted)})"
        # a heap, and indexes as trees; others have no order of rows
        " AND i.type IN (0, 1, 2) AND i.is_disabled = 0 AND i.has_filter = 0",
        "versions BOOLEAN, snapshots INT, index_id INT, of_index STRING, name STRING, place INT, down BOOLEAN,"
        " n BIGINT, number INT",
    )
    if not found:
        # it cannot be seen any more, which the read will say
        return TableScan()
    ordered = sorted(found, key=lambda row: (row["index_id"], row["place"] or 0))
    indexes = [list(of_index) for _, of_index in itertools.groupby(ordered, lambda row: row["index_id"])]
    parts, pin = _columns_in(indexes, table)
    captured = {column.name for column in table.feed.columns if not column.dropped}
    for index in indexes:
        # else the table itself, where no other column moves its rows
        if pin is None and index[0]["index_id"] < 2 and {row["name"] for row in index} - {None} <= captured:
            pin = str(index[0]["index_id"])
    return TableScan(
        parts,
        rows=next((index[0]["n"] for index in indexes if index[0]["index_id"] < 2), 0),
        by_versions=found[0]["versions"],
        by_snapshots=snapshots and found[0]["snapshots"] == 1,
        pin=pin,
    )


def cut_by(table: TableSpec) -> tuple[str, ...]:
    """The columns that a table is cut by: those that the user names, else the key's.

    :raises SelectionError: for one that is not captured
    """
    captured = [column.name for column in table.feed.columns if not column.dropped]
    found = tuple(column_meant(name, captured) for name in table.copy_by)
    if unknown := [name for name in found if name not in captured]:
        raise SelectionError(
            f"copy_by names {', '.join(unknown)}, and {table.feed} captures no such column.",
            table=str(table.name),
            advice=f"Captured are: {', '.join(sorted(captured))}.",
        )
    return found or table.schema.key


def _columns_in(indexes: Sequence[Sequence[Row]], table: TableSpec) -> tuple[tuple[KeyPart, ...], str | None]:
    """What the table is cut by as an index begins with it, and the index's name, where its other columns are captured,
    too.
    """
    by, captured = cut_by(table), {column.name for column in table.feed.columns if not column.dropped}
    if not by or not can_be_cut([table.schema.column(name) for name in by]):
        return (), None
    for index in indexes:
        if tuple(row["name"] for row in index[: len(by)]) == by and index[0]["number"] == 1:
            parts = tuple(KeyPart(table.schema.column(row["name"]), row["down"]) for row in index[: len(by)])
            return parts, index[0]["of_index"] if {row["name"] for row in index} <= captured else None
    return (), None
