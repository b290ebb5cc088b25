"""What the sandbox does not have, by checklist number, is refused plainly."""

from __future__ import annotations

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
