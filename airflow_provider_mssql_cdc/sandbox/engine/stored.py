"""Tables and their rows under the names that they have in DuckDB."""

from __future__ import annotations

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.engine.schema import TableDef
from airflow_provider_mssql_cdc.sandbox.engine.storage import ROW_ID, Database, TableEntry

STAGE = "staged_rows"
"""Under which rows are registered while a statement writes them."""


def physical(table: TableDef, name: str) -> str:
    """A column's name in DuckDB."""
    return f"c{table.named(name).column_id}"


def stored_name(database: Database, entry: TableEntry) -> str:
    """The table's full name in DuckDB."""
    return f"{database.duck}.main.{entry.storage}"


def staged(table: TableDef, rows: pa.Table, ids: pa.Array | None) -> pa.Table:
    """Rows under their DuckDB names, with row identifiers if there are any."""
    arrays = [rows.column(column.name) for column in table.columns]
    names = [f"c{column.column_id}" for column in table.columns]
    if ids is not None:
        arrays.append(ids)
        names.append(ROW_ID)
    return pa.Table.from_arrays(arrays, names)
