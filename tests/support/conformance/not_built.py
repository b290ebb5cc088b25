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

CHANGE_TRACKING = {
    "72-database-on": "ALTER DATABASE CURRENT SET CHANGE_TRACKING = ON",
    "72-database-off": "ALTER DATABASE CURRENT SET CHANGE_TRACKING = OFF",
    "69-retention": "ALTER DATABASE CURRENT SET CHANGE_TRACKING = ON (CHANGE_RETENTION = 2 DAYS, AUTO_CLEANUP = ON)",
    "69-options": "ALTER DATABASE CURRENT SET CHANGE_TRACKING (AUTO_CLEANUP = OFF)",
    "72-table-on": "ALTER TABLE dbo.t ENABLE CHANGE_TRACKING",
    "71-columns-updated": "ALTER TABLE dbo.t ENABLE CHANGE_TRACKING WITH (TRACK_COLUMNS_UPDATED = ON)",
    "77-table-off": "ALTER TABLE dbo.t DISABLE CHANGE_TRACKING",
    "67-changes": "SELECT * FROM CHANGETABLE(CHANGES dbo.t, 0) AS c",
    "68-everything": "SELECT * FROM CHANGETABLE(CHANGES dbo.t, NULL) AS c",
    "76-joined": "SELECT c.id FROM CHANGETABLE(CHANGES dbo.t, 0) AS c LEFT JOIN dbo.t AS t ON t.id = c.id",
    "74-version": "SELECT * FROM CHANGETABLE(VERSION dbo.t, (id), (1)) AS c",
    "66-75-current-version": "SELECT CHANGE_TRACKING_CURRENT_VERSION()",
    "69-75-min-valid-version": "SELECT CHANGE_TRACKING_MIN_VALID_VERSION(OBJECT_ID('dbo.t'))",
    "71-mask": "SELECT CHANGE_TRACKING_IS_COLUMN_IN_MASK(1, 0x00)",
    "73-context": "WITH CHANGE_TRACKING_CONTEXT (0x01) INSERT INTO dbo.t VALUES (2)",
}
"""Statements of Change Tracking."""

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
