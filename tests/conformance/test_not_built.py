"""What the sandbox does not have, by checklist number, is refused plainly."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.conformance.database import Database
from tests.support.conformance.not_built import FIRST_STATEMENTS, STATEMENTS, refused
from tests.support.conformance.servers import Server


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_12_56_57_58_78_refused(server: Server, plain: Database, statement: str) -> None:
    server.only_embedded("it has this")
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY, a int) CREATE TABLE dbo.u (id int PRIMARY KEY, a int)")
    refused(plain, statement)


@pytest.mark.parametrize("statement", FIRST_STATEMENTS.values(), ids=FIRST_STATEMENTS)
def test_56_what_begins_a_batch(server: Server, plain: Database, statement: str) -> None:
    server.only_embedded("it has this")
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY, a int)")
    error = plain.error(statement)
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
