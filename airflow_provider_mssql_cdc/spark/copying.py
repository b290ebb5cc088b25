"""A table's rows, read in parallel by key ranges, between two positions of its source."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.chunks import Bound, KeyPart, can_be_cut, chunk, collated, ends, highest
from airflow_provider_mssql_cdc.core.columns import ColumnMapping
from airflow_provider_mssql_cdc.core.conditions import pushed_filter
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.core.table import Column, literal, quote
from airflow_provider_mssql_cdc.spark.files import Parquet, write_rows
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.selecting import fulfils, with_salt

_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_UNICODE = frozenset({"nchar", "nvarchar"})
_ANSI = frozenset({"char", "varchar"})


@dataclass(frozen=True, slots=True)
class Copy:
    """A table's rows as they were at some moments between two positions.

    :param low: every change after it that the copy may lack is captured after it
    :param high: every change that the copy may hold is captured up to it
    :param rows_copied: their number
    :param witnesses: of the moments before the copy, at its end and at ``high``
    """

    files: Parquet
    low: Position
    high: Position
    rows_copied: int
    witnesses: tuple[Witness, ...]

    def rows(self) -> DataFrame:
        """The copied rows."""
        return self.files.rows()


def copy_rows(
    jdbc: Jdbc,
    table: TableSpec,
    mappings: Sequence[ColumnMapping],
    folder: str,
    *,
    slice_rows: int,
    connections: int,
    salt: str | None = None,
) -> Parquet:
    """Copy the table's rows to Parquet.

    :param folder: for the rows; must not exist yet
    :param salt: of hashes
    """
    targets = [
        F.expr(target.expression.replace("{}", mapping.alias)).alias(target.name)
        for mapping in mappings
        for target in mapping.targets
    ]
    rows = _read(jdbc, table, mappings, slice_rows, connections)
    if table.selection.conditions:
        # the server has judged what it compares as Spark does; here all is judged
        rows = rows.where(fulfils(mappings, table.selection))
    return write_rows(with_salt(rows, mappings, salt).select(*targets), folder)


def _read(
    jdbc: Jdbc, table: TableSpec, mappings: Sequence[ColumnMapping], slice_rows: int, connections: int
) -> DataFrame:
    read = [mapping for mapping in mappings if mapping.select]
    selected = ", ".join(f"{mapping.select} AS {mapping.alias}" for mapping in read)
    schema = ", ".join(f"{mapping.alias} {mapping.read_type}" for mapping in read)
    frames = [
        jdbc.frame(f"SELECT {selected} FROM {_rows(table)}{where}", schema)
        for where in _cut(jdbc, table, slice_rows, connections)
    ]
    return reduce(DataFrame.unionAll, frames)


def _cut(jdbc: Jdbc, table: TableSpec, slice_rows: int, connections: int) -> list[str]:
    """The WHERE clauses that divide the table; '' alone where it is read as a whole."""
    if connections == 1:
        return [""]
    parts, counted = _index(jdbc, table) if table.unique_key else ((), 0)
    if not parts or not can_be_cut([part.column for part in parts]):
        return _ranges(jdbc, table, slice_rows, connections)
    if counted < slice_rows:
        return [""]
    # without the row filter, for which the index may lack columns: bounds of all rows divide any of them
    return _chunks(jdbc, parts, table.name.quoted, max(1, slice_rows, -(-counted // connections)), connections)


def _index(jdbc: Jdbc, table: TableSpec) -> tuple[tuple[KeyPart, ...], int]:
    """The key as an index of the whole table has it, and how many rows that says there are; no part without such one.

    An index that is divided into partitions has no order of its own (docs: partitioned indexes).
    """
    number = f"OBJECT_ID({literal(table.name.quoted)})"
    rows = jdbc.rows(
        "SELECT i.index_id, c.name, ic.key_ordinal AS place, ic.is_descending_key AS down, p.rows AS n"
        " FROM sys.indexes i"
        " JOIN sys.index_columns ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id AND ic.key_ordinal > 0"
        " JOIN sys.columns c ON c.object_id = i.object_id AND c.column_id = ic.column_id"
        " JOIN sys.partitions p ON p.object_id = i.object_id AND p.index_id = i.index_id"
        f" WHERE i.object_id = {number} AND i.is_unique = 1 AND i.is_disabled = 0 AND i.has_filter = 0"
        f" AND NOT EXISTS (SELECT * FROM sys.partitions m WHERE m.object_id = {number} AND m.partition_number > 1)",
        "index_id INT, name STRING, place INT, down BOOLEAN, n BIGINT",
    )
    ordered = sorted(rows, key=lambda row: (row["index_id"], row["place"]))
    for _, of_index in itertools.groupby(ordered, lambda row: row["index_id"]):
        columns = list(of_index)
        if tuple(row["name"] for row in columns) == table.schema.key:
            parts = tuple(KeyPart(table.schema.column(row["name"]), row["down"]) for row in columns)
            return parts, columns[0]["n"]
    return (), 0


def _chunks(jdbc: Jdbc, parts: Sequence[KeyPart], source: str, rows: int, connections: int) -> list[str]:
    """The WHERE clauses of chunks of the key, one for each connection at most."""
    names = [f"b{n}" for n in range(len(parts))]
    texts = ", ".join(f"{name} STRING" for name in names)

    def asked(query: str) -> Bound | None:
        return next((tuple(row[name] for name in names) for row in jdbc.rows(query, texts)), None)

    def end_of(after: Bound | None, last: Bound | None) -> Bound | None:
        return next(filter(None, map(asked, ends(parts, source, after, last, rows))), None)

    bounds: list[Bound | None] = [None]
    until = end_of(None, None)
    # so that a table which grows faster comes to an end
    last = asked(highest(parts, source)) if until is not None else None
    while until is not None and until != last:
        if until in bounds:
            raise RuntimeError(f"the server's order of {', '.join(part.name for part in parts)} changes")
        bounds.append(until)
        until = end_of(until, last)
    # where there are more rows than were counted
    bounds = bounds[:: -(-len(bounds) // connections)]
    return [f" WHERE {within}" if (within := chunk(parts, *of)) else "" for of in itertools.pairwise([*bounds, None])]


def _ranges(jdbc: Jdbc, table: TableSpec, slice_rows: int, connections: int) -> list[str]:
    """The WHERE clauses that divide the table by the first key column, in the server's own order of its values."""
    first = table.schema.column(table.schema.key[0])
    text, value = key_bound(first)
    if connections == 1 or not text:
        return [""]
    key = quote(first.name)
    rows = jdbc.rows(
        f"SELECT part, {text.format('MIN(k)')} AS low, COUNT_BIG(*) AS n FROM (SELECT {key} AS k,"
        f" (ROW_NUMBER() OVER (ORDER BY {key}) - 1) * {connections} / COUNT_BIG(*) OVER () AS part"
        f" FROM {_rows(table)}) p GROUP BY part",
        "part BIGINT, low STRING, n BIGINT",
    )
    if sum(row["n"] for row in rows) <= slice_rows:
        return [""]
    # NULLs or many equal values make bounds that are the same
    lows = [row["low"] for row in sorted(rows, key=lambda row: row["part"])]
    distinct = [low for low in dict.fromkeys(lows[1:]) if low is not None and low != lows[0]]
    return range_clauses(key, [value.format(low.replace("'", "''")) for low in distinct])


def _rows(table: TableSpec) -> str:
    """What is copied of the table: the rows that may fulfil the filter, as far as the server can tell."""
    where = pushed_filter(table.schema, table.selection.conditions)
    return f"(SELECT * FROM {table.name.quoted} WHERE {where}) r" if where else table.name.quoted


def range_clauses(key: str, bounds: Sequence[str]) -> list[str]:
    """WHERE clauses of which each row fulfils exactly one.

    A row belongs to the first bound that is above it, so it is irrelevant in which order the server sees the bounds:
    a conversion between code pages, or the sort rules of a collation, may change it.

    :param key: T-SQL of a column, which may be NULL
    :param bounds: T-SQL of values, none of them NULL
    """
    if not bounds:
        return [""]
    below = [f"{key} < {bound}" for bound in bounds]
    above = [f"{key} >= {bound}" for bound in bounds]
    clauses = [" AND ".join([*above[:i], below[i]]) for i in range(len(bounds))]
    clauses[0] += f" OR {key} IS NULL"
    return [f" WHERE {clause}" for clause in [*clauses, " AND ".join(above)]]


def key_bound(key: Column) -> tuple[str, str]:
    """How a key value is read as text, and how that text is written as a value; '' for other types."""
    if key.type in _NUMBERS:
        return "CONVERT(varchar(20), {})", "{}"
    if key.type == "uniqueidentifier":
        return "CONVERT(varchar(36), {})", "CONVERT(uniqueidentifier, '{}')"
    if key.type in _UNICODE and not key.is_lob:
        return "{}", "N'{}'"
    if key.type in _ANSI and not key.is_lob:
        # without a collation, the literal would be converted to the code page of the database
        literal_of = collated("N'{}'", key)
        return "{}", f"CONVERT(varchar(8000), {literal_of})"
    return "", ""
