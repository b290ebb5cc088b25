"""Writing rows: constraints as SQL Server checks them, row images for the log, and the write to DuckDB."""

from __future__ import annotations

import re
from typing import Any
from xml.parsers import expat

import duckdb
import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.collations import comparing
from airflow_provider_mssql_cdc.sandbox.engine.cdc.ddl import check_lob_size
from airflow_provider_mssql_cdc.sandbox.engine.log import RowImages
from airflow_provider_mssql_cdc.sandbox.engine.open_transaction import Operation
from airflow_provider_mssql_cdc.sandbox.engine.schema import IndexDef
from airflow_provider_mssql_cdc.sandbox.engine.storage import ROW_ID, Database, TableEntry
from airflow_provider_mssql_cdc.sandbox.engine.stored import STAGE, physical, staged, stored_name
from airflow_provider_mssql_cdc.sandbox.engine.tracking.rows import TrackedRows
from airflow_provider_mssql_cdc.sandbox.engine.transactions import TransactionManager
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.literals import literal

_FEW = 16
_MISMATCH = expat.errors.codes[expat.errors.XML_ERROR_TAG_MISMATCH]
_DECLARATION = re.compile(r"^\s*<\?xml\s.*?\?>", re.DOTALL)
_STRINGS = ("char", "varchar", "nchar", "nvarchar", "sysname")


class RowWriter:
    """Applies the rows of one statement to one table.

    :param max_text_repl_size: the server option, in bytes, that limits LOB values of tracked tables
    """

    def __init__(
        self, manager: TransactionManager, database: Database, entry: TableEntry, max_text_repl_size: int
    ) -> None:
        self._manager, self._database, self._entry = manager, database, entry
        self._table = entry.table
        self._limit = max_text_repl_size
        self._name = stored_name(database, entry)

    def insert(self, rows: pa.Table) -> int:
        """Insert rows, which have the table's Arrow schema.

        :raises SqlError: 515, 2627, 2601, 7139
        """
        self._check(rows, "INSERT")
        self._check_keys(rows, None, self._table.indexes)
        if not rows.num_rows:
            return 0
        ids = self._database.new_row_ids(rows.num_rows)
        images = RowImages(self._table, None, rows)
        names = ", ".join([*(f"c{column.column_id}" for column in self._table.columns), ROW_ID])
        if rows.num_rows <= _FEW:
            lines = ", ".join(f"({values}, {i})" for values, i in zip(self._literals(rows), ids, strict=True))
            self._apply(f"INSERT INTO {self._name} ({names}) VALUES {lines}", None, images)
        else:
            stage = staged(self._table, rows, pa.array(ids, pa.int64()))
            sql = f"INSERT INTO {self._name} ({names}) SELECT {names} FROM {STAGE}"
            self._apply(sql, stage, images)
        return int(rows.num_rows)

    def _literals(self, rows: pa.Table) -> list[str]:
        """Rows as DuckDB literals: for a few rows that is quicker than handing Arrow over."""
        columns = [
            [literal(value, column.type) for value in rows.column(column.name).to_pylist()]
            for column in self._table.columns
        ]
        return [", ".join(values) for values in zip(*columns, strict=True)]

    def delete(self, ids: pa.Array, before: pa.Table) -> int:
        """Delete rows by their row identifiers; ``before`` holds their values."""
        images = RowImages(self._table, before)
        self._manager.wait_for_readers(self._database, self._table.object_id, ids.to_pylist())
        if 0 < before.num_rows <= _FEW:
            listed = ", ".join(str(number) for number in ids.to_pylist())
            self._apply(f"DELETE FROM {self._name} WHERE {ROW_ID} IN ({listed})", None, images)
        elif before.num_rows:
            sql = f"DELETE FROM {self._name} WHERE {ROW_ID} IN (SELECT {ROW_ID} FROM {STAGE})"
            self._apply(sql, pa.table({ROW_ID: ids}), images)
        return int(before.num_rows)

    def update(self, ids: pa.Array, before: pa.Table, after: pa.Table, changed: set[str]) -> int:
        """Give rows new values, all at once.

        :param changed: names in lower case of the columns that the statement sets
        :raises SqlError: 515, 2627, 2601, 7139
        """
        if not before.num_rows:
            return 0
        self._check(after, "UPDATE")
        touched = tuple(index for index in self._table.indexes if any(c.casefold() in changed for c in index.columns))
        self._check_keys(after, ids, touched)
        images = RowImages(self._table, before, after, frozenset(changed))
        self._manager.wait_for_readers(self._database, self._table.object_id, ids.to_pylist())
        if before.num_rows == 1:
            values = ", ".join(
                f"c{column.column_id} = {literal(after.column(column.name)[0].as_py(), column.type)}"
                for column in self._table.columns
                if column.name.casefold() in changed
            )
            sql = f"UPDATE {self._name} SET {values} WHERE {ROW_ID} = {ids[0].as_py()}"
            self._apply(sql, None, images)
            return 1
        stage = staged(self._table, after, ids)
        sets = ", ".join(f"{c} = n.{c}" for c in (physical(self._table, name) for name in sorted(changed)))
        sql = f"UPDATE {self._name} AS t SET {sets} FROM {STAGE} AS n WHERE t.{ROW_ID} = n.{ROW_ID}"
        self._apply(sql, stage, images)
        return int(before.num_rows)

    def _apply(self, sql: str, rows: pa.Table | None, images: RowImages) -> None:
        # the log has the images of what is written while the table is tracked, not of what was written before
        record = images if self._database.cdc.is_tracked(self._table.object_id) else None
        side = self._manager.catalog(self._database).tracked.get(self._table.object_id)
        tracked = None if side is None else TrackedRows(side, images, self._manager.context)
        self._manager.apply(Operation(sql, rows, record, images, tracked=tracked))

    def _check(self, rows: pa.Table, verb: str) -> None:
        for column in self._table.columns:
            if not column.nullable and column.computed is None and rows.column(column.name).null_count:
                full = f"{self._database.name}.{self._table.schema}.{self._table.name}"
                raise SqlError.of(515, column.name, full, verb)
            if column.type.name == "xml":
                for value in rows.column(column.name).drop_null().unique().to_pylist():
                    _check_xml(value)
        if self._database.cdc.is_tracked(self._table.object_id):
            check_lob_size(self._limit, self._table, rows)

    def _check_keys(self, rows: pa.Table, ids: pa.Array | None, indexes: tuple[IndexDef, ...]) -> None:
        unique = [index for index in indexes if (index.unique or index.primary_key) and not index.disabled]
        if not unique or not rows.num_rows:
            return
        connection = self._manager.connection
        if rows.num_rows == 1:
            for index in unique:
                self._check_one(connection, index, rows, ids)
            return
        connection.register(STAGE, staged(self._table, rows, ids))
        try:
            for index in unique:
                self._check_key(connection, index, ids is not None)
        finally:
            connection.unregister(STAGE)

    def _check_key(self, connection: duckdb.DuckDBPyConnection, index: IndexDef, updating: bool) -> None:
        columns = [(physical(self._table, name), self._key(name)) for name in index.columns]
        keys = ", ".join(expression.format(name) for name, expression in columns)
        shown = ", ".join(f"any_value({name})" for name, _ in columns)
        # NULLs are equal to each other in a unique index
        same = " AND ".join(f"{e.format('t.' + n)} IS NOT DISTINCT FROM {e.format('n.' + n)}" for n, e in columns)
        others = f" AND t.{ROW_ID} NOT IN (SELECT {ROW_ID} FROM {STAGE})" if updating else ""
        twice = f"SELECT {shown} FROM {STAGE} GROUP BY {keys} HAVING count(*) > 1 LIMIT 1"
        values = ", ".join(f"n.{name}" for name, _ in columns)
        taken = f"SELECT {values} FROM {STAGE} AS n JOIN {self._name} AS t ON {same}{others} LIMIT 1"
        for query in (twice, taken):
            found = connection.execute(query).fetchall()
            if found:
                raise self._duplicate(index, found[0])

    def _check_one(
        self, connection: duckdb.DuckDBPyConnection, index: IndexDef, rows: pa.Table, ids: pa.Array | None
    ) -> None:
        conditions, values = [], []
        for name in index.columns:
            column = self._table.named(name)
            value = rows.column(column.name)[0].as_py()
            values.append(value)
            stored, key = f"c{column.column_id}", self._key(name)
            same = f"{key.format(stored)} = {key.format(literal(value, column.type))}"
            conditions.append(f"{stored} IS NULL" if value is None else same)
        if ids is not None:
            conditions.append(f"{ROW_ID} <> {ids[0].as_py()}")
        if connection.execute(f"SELECT 1 FROM {self._name} WHERE {' AND '.join(conditions)} LIMIT 1").fetchall():
            raise self._duplicate(index, tuple(values))

    def _key(self, name: str) -> str:
        type_ = self._table.named(name).type
        if type_.name == "varbinary":
            return "t_binkey({})"
        return comparing.equal("{}", type_) if type_.name in _STRINGS else "{}"

    def _duplicate(self, index: IndexDef, values: tuple[Any, ...]) -> SqlError:
        shown = ", ".join(_shown(value) for value in values)
        table = f"{self._table.schema}.{self._table.name}"
        if index.primary_key or index.name in self._entry.unique_constraints:
            word = "PRIMARY KEY" if index.primary_key else "UNIQUE KEY"
            return SqlError.of(2627, word, index.name, table, shown)
        return SqlError.of(2601, table, index.name, shown)


def _shown(value: Any) -> str:
    if value is None:
        return "<NULL>"
    if isinstance(value, bytes):
        return "0x" + value.hex()
    return str(value)


def _check_xml(value: str) -> None:
    """Refuse what is not well formed; several elements, or text alone, are no mistake (docs: xml data type).

    :raises SqlError: 9400 where the end is missing, 9436 for an end tag that does not match, 9455 for anything else
    """
    parser, ended = expat.ParserCreate(), False
    parser.Parse("<r>\n")
    try:
        parser.Parse(_DECLARATION.sub("", value))
        ended = True
        parser.Parse("</r>", True)
    except expat.ExpatError as error:
        number = 9400 if ended else 9436 if error.code == _MISMATCH else 9455
        reason = "unexpected end of input" if ended else expat.ErrorString(error.code)
        raise SqlError(number, f"XML parsing: line {error.lineno - 1}, character {error.offset}, {reason}") from None
