"""A table's rows, read in chunks of its key."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.chunks import Bound, KeyPart, can_be_cut, chunk, ends, highest, places
from airflow_provider_mssql_cdc.core.columns import ColumnMapping
from airflow_provider_mssql_cdc.core.conditions import pushed_filter
from airflow_provider_mssql_cdc.core.copies import Hole
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.core.table import literal
from airflow_provider_mssql_cdc.spark.files import Parquet, write_rows
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.selecting import fulfils, with_salt


class Chunks:
    """The chunks of one table.

    :param parts: what the table is cut by; empty where it is one chunk
    :param salt: of hashes
    """

    def __init__(
        self,
        jdbc: Jdbc,
        table: TableSpec,
        mappings: Sequence[ColumnMapping],
        parts: Sequence[KeyPart] = (),
        salt: str | None = None,
    ) -> None:
        self._jdbc, self._table, self._mappings, self._parts, self._salt = jdbc, table, mappings, parts, salt

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
        return write_rows(self._frame(hole), folder)

    def places(self, bounds: Sequence[Bound]) -> Mapping[Bound, int]:
        """The places of bounds in the server's order of the key; equal ones have one."""
        if not bounds:
            return {}
        rows = self._jdbc.rows(places(self._parts, bounds), "number INT, place BIGINT")
        return {bounds[row["number"]]: row["place"] - 1 for row in rows}

    @property
    def _rows(self) -> str:
        """What is copied of the table: the rows that may fulfil the filter, as far as the server can tell."""
        name, where = self._table.name.quoted, pushed_filter(self._table.schema, self._table.selection.conditions)
        return f"(SELECT * FROM {name} WHERE {where}) r" if where else name

    def _frame(self, hole: Hole) -> DataFrame:
        """The target's columns of the rows that are loaded."""
        within = chunk(self._parts, hole.after, hole.last)
        read = [mapping for mapping in self._mappings if mapping.select]
        selected = ", ".join(f"{mapping.select} AS {mapping.alias}" for mapping in read)
        schema = ", ".join(f"{mapping.alias} {mapping.read_type}" for mapping in read)
        where = f" WHERE {within}" if within else ""
        rows = self._jdbc.frame(f"SELECT {selected} FROM {self._rows}{where}", schema)
        if self._table.selection.conditions:
            # the server has judged what it compares as Spark does; here all is judged
            rows = rows.where(fulfils(self._mappings, self._table.selection))
        columns = [
            F.expr(target.expression.replace("{}", mapping.alias)).alias(target.name)
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


def index_of_key(jdbc: Jdbc, table: TableSpec) -> tuple[tuple[KeyPart, ...], int]:
    """The key as an index of the whole table begins with it, and how many rows the table is said to have; no part
    without such one.

    An index that is divided into partitions has no order of its own (docs: partitioned indexes).
    """
    number = f"OBJECT_ID({literal(table.name.quoted)})"
    rows = jdbc.rows(
        "SELECT p.index_id, p.rows AS n, c.name, ic.key_ordinal AS place, ic.is_descending_key AS down"
        " FROM sys.partitions p"
        " LEFT JOIN sys.indexes i ON i.object_id = p.object_id AND i.index_id = p.index_id AND i.is_disabled = 0"
        " AND i.has_filter = 0"
        " LEFT JOIN sys.index_columns ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id"
        " AND ic.key_ordinal > 0"
        " LEFT JOIN sys.columns c ON c.object_id = ic.object_id AND c.column_id = ic.column_id"
        f" WHERE p.object_id = {number} AND p.partition_number = 1"
        f" AND NOT EXISTS (SELECT * FROM sys.partitions m WHERE m.object_id = {number} AND m.partition_number > 1)",
        "index_id INT, n BIGINT, name STRING, place INT, down BOOLEAN",
    )
    # the table itself is index 0 or 1
    counted = next((row["n"] for row in rows if row["index_id"] < 2), 0)
    key = table.schema.key
    if not key or not can_be_cut([table.schema.column(name) for name in key]):
        return (), counted
    ordered = sorted((row for row in rows if row["name"]), key=lambda row: (row["index_id"], row["place"]))
    for _, of_index in itertools.groupby(ordered, lambda row: row["index_id"]):
        columns = list(of_index)[: len(key)]
        if tuple(row["name"] for row in columns) == key:
            return tuple(KeyPart(table.schema.column(row["name"]), row["down"]) for row in columns), counted
    return (), counted
