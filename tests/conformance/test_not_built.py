"""What the sandbox does not have, by checklist number, is refused plainly."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conformance.database import Database
from tests.conformance.not_built import refused
from tests.conformance.servers import Server


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("ALTER TABLE dbo.t SWITCH TO dbo.u", id="58-switch"),
        pytest.param("ALTER TABLE dbo.t SWITCH PARTITION 1 TO dbo.u", id="58-switch-partition"),
        pytest.param("CREATE PARTITION FUNCTION pf (int) AS RANGE LEFT FOR VALUES (1)", id="58-partition-function"),
        pytest.param("EXEC sys.sp_cdc_generate_wrapper_function", id="a3.14-wrapper-functions"),
        pytest.param("EXEC sys.sp_cdc_vupgrade", id="a3.15-vupgrade"),
        pytest.param("CREATE TABLE dbo.v (v sql_variant)", id="78-sql_variant"),
        pytest.param("SELECT CAST(1 AS sql_variant)", id="78-sql_variant-cast"),
        pytest.param("CREATE TABLE dbo.v (v hierarchyid)", id="78-hierarchyid"),
        pytest.param("CREATE TABLE dbo.v (v geometry)", id="78-geometry"),
        pytest.param("CREATE TABLE dbo.v (v geography)", id="78-geography"),
        pytest.param(
            "MERGE dbo.t AS t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = 1;",
            id="12-merge",
        ),
        pytest.param("CREATE TABLE dbo.c (id int REFERENCES dbo.t (id) ON DELETE CASCADE)", id="56-cascade"),
        pytest.param("BULK INSERT dbo.t FROM 'rows.csv'", id="57-bulk-insert"),
        pytest.param("DECLARE c CURSOR FOR SELECT 1", id="part-5-cursor"),
        pytest.param("CREATE TYPE dbo.list AS TABLE (id int)", id="part-5-table-type"),
        pytest.param(
            "CREATE COLUMN MASTER KEY k WITH (KEY_STORE_PROVIDER_NAME = 'x', KEY_PATH = 'y')",
            id="part-5-always-encrypted",
        ),
    ],
)
def test_12_56_57_58_78_refused(server: Server, plain: Database, statement: str) -> None:
    server.only_embedded("it has this")
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY, a int) CREATE TABLE dbo.u (id int PRIMARY KEY, a int)")
    refused(plain, statement)


def test_56_trigger(server: Server, plain: Database) -> None:
    server.only_embedded("it has this")
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY, a int)")
    # the only statement that must begin its batch
    error = plain.error("CREATE TRIGGER tr ON dbo.t AFTER INSERT AS UPDATE dbo.t SET a = 1")
    assert "not supported by the sandbox" in error.text
    assert error.line == 1


_BULK_COPY = """
import json, sys, pymssql
connection = pymssql.connect(**json.load(sys.stdin), autocommit=True, timeout=1)
try:
    connection.bulk_copy("dbo.t", [(1, 1), (2, 2)])
except Exception as error:
    print(error)
"""


def test_57_bulk_load_over_the_wire(server: Server, plain: Database) -> None:
    address = server.only_embedded("it has this").address
    plain.run("CREATE TABLE dbo.t (id int NOT NULL, a int NOT NULL)")
    given = {**address, "port": str(address["port"]), "database": plain.name}
    # the driver's time-out counts for all connections of its process
    ended = subprocess.run(
        [sys.executable, "-c", _BULK_COPY],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "not supported by the sandbox" in ended.stdout
    assert plain.run("SELECT * FROM dbo.t") == []
