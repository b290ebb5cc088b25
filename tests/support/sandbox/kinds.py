"""A tracked table of several types with changes of every kind, and what its change table holds, read without SQL."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from airflow_provider_mssql_cdc.sandbox.tsql import interpreter
from airflow_provider_mssql_cdc.sandbox.tsql.query import compile_result
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Context, Query, Scope

TABLE = """
CREATE TABLE dbo.kinds (
  id int NOT NULL PRIMARY KEY, name nvarchar(20) NULL, amount decimal(9,2) NULL, at datetime2(3) NULL,
  zoned datetimeoffset(3) NULL, raw varbinary(16) NULL, flag bit NULL, note varchar(max) NULL)
"""
HISTORY = (
    "INSERT INTO dbo.kinds (id, name, amount) VALUES (1, N'one', 1.50), (2, N'zw\u00f6i', NULL), (3, NULL, -3)",
    "UPDATE dbo.kinds SET amount = amount + 1, at = '2026-01-02T03:04:05.678' WHERE id < 3",
    "BEGIN TRAN INSERT INTO dbo.kinds (id, zoned, raw) VALUES (4, '2026-01-02T03:04:05 +02:00', 0x00FF00)"
    " UPDATE dbo.kinds SET flag = 1 UPDATE dbo.kinds SET id = 40 WHERE id = 4 DELETE FROM dbo.kinds WHERE id = 3"
    " COMMIT",
    "UPDATE dbo.kinds SET id = id + 100",
    "UPDATE dbo.kinds SET name = N'x ', note = REPLICATE('n', 5) WHERE id = 101",
    "DELETE FROM dbo.kinds",
    "INSERT INTO dbo.kinds (id, name, flag) VALUES (5, N'last', 0)",
)
COLUMNS = ("id", "name", "amount", "at", "zoned", "raw", "flag", "note")
NAMES = ("__$start_lsn", "__$end_lsn", "__$seqval", "__$operation", "__$update_mask", *COLUMNS, "__$command_id")
CHANGE_TABLE = "cdc.dbo_kinds_CT"

Row = dict[str, Any]


def create(server: Sandbox) -> None:
    """Make the table, and its changes: a transaction each, all of them in batches of their own."""
    server.execute(TABLE)
    server.execute("EXEC sys.sp_cdc_enable_db EXEC sys.sp_cdc_enable_table 'dbo', 'kinds', @role_name = NULL")
    with mock.patch("airflow_provider_mssql_cdc.sandbox.engine.cdc.changes._merge_tail"):
        for statement in HISTORY:
            server.execute(statement)
            server.step()


def changes(server: Sandbox) -> list[Row]:
    """The rows of the change table in its order."""
    return [
        dict(zip(NAMES, row, strict=True))
        for batch in server.cdc().change_rows("dbo_kinds")
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]


@contextlib.contextmanager
def compiled_queries() -> Iterator[list[tuple[str, Query]]]:
    """What sends rows meanwhile: each SELECT's text, and what it was compiled to."""
    found: list[tuple[str, Query]] = []

    def noted(context: Context, scope: Scope, tree: exp.Expr) -> Query:
        query = compile_result(context, scope, tree)
        found.append((tree.sql(dialect="tsql"), query))
        return query

    with mock.patch.object(interpreter, "compile_result", noted):
        yield found
