"""What it takes to refuse plainly what the sandbox does not have."""

from __future__ import annotations

from typing import Any

from tests.support.conformance.client import Client, SqlServerError
from tests.support.conformance.database import Database

# Each by the points of the checklist that it belongs to, and a word; docs/sandbox.md lists them.

STATEMENTS = {
    "58-switch": "ALTER TABLE dbo.t SWITCH TO dbo.u",
    "58-switch-partition": "ALTER TABLE dbo.t SWITCH PARTITION 1 TO dbo.u",
    "58-partition-function": "CREATE PARTITION FUNCTION pf (int) AS RANGE LEFT FOR VALUES (1)",
    "a3.14-wrapper-functions": "EXEC sys.sp_cdc_generate_wrapper_function",
    "a3.15-vupgrade": "EXEC sys.sp_cdc_vupgrade",
    "78-sql_variant": "CREATE TABLE dbo.v (v sql_variant)",
    "78-sql_variant-cast": "SELECT CAST(1 AS sql_variant)",
    "78-hierarchyid": "CREATE TABLE dbo.v (v hierarchyid)",
    "78-geometry": "CREATE TABLE dbo.v (v geometry)",
    "78-geography": "CREATE TABLE dbo.v (v geography)",
    "12-merge": "MERGE dbo.t AS t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = 1;",
    "56-cascade": "CREATE TABLE dbo.c (id int REFERENCES dbo.t (id) ON DELETE CASCADE)",
    "57-bulk-insert": "BULK INSERT dbo.t FROM 'rows.csv'",
    "tsql-sequence": "CREATE SEQUENCE dbo.s AS int",
    "tsql-next-value": "ALTER TABLE dbo.t ADD c int NOT NULL DEFAULT (NEXT VALUE FOR dbo.s)",
    "tsql-cursor": "DECLARE c CURSOR FOR SELECT 1",
    "tsql-table-type": "CREATE TYPE dbo.list AS TABLE (id int)",
    "tsql-always-encrypted": "CREATE COLUMN MASTER KEY k WITH (KEY_STORE_PROVIDER_NAME = 'x', KEY_PATH = 'y')",
}
"""Statements that are refused in any place of a batch."""

FIRST_STATEMENTS = {
    "56-trigger": "CREATE TRIGGER tr ON dbo.t AFTER INSERT AS UPDATE dbo.t SET a = 1",
    "tsql-view": "CREATE VIEW dbo.v AS SELECT 1 AS a",
    "tsql-procedure": "CREATE PROCEDURE dbo.p AS SELECT 1",
    "tsql-function": "CREATE FUNCTION dbo.f() RETURNS int AS BEGIN RETURN 1 END",
    "tsql-kill": "KILL 51",
}
"""Statements that must begin their batch."""

BUILDS = ("2017", "azure")
"""Kinds of SQL Server that the sandbox is not (82)."""


def refused(client: Client, statement: str) -> None:
    """A statement on the second line must be refused by an error that says so and names the line."""
    error = client.error(f"SELECT 1 AS one\n{statement}")
    assert "not supported by the sandbox" in error.text, str(error)
    assert error.severity >= 16
    assert error.line == 2


def right_or_refused(db: Database, query: str, value: Any) -> None:
    """A query must give a value; the sandbox may also say that it does not have something in it."""
    try:
        found = db.value(query)
    except SqlServerError as error:
        if "not supported by the sandbox" not in error.text:
            raise
    else:
        assert found == value
