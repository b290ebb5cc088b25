"""What it takes to refuse plainly what the sandbox does not have."""

from __future__ import annotations

from typing import Any

from tests.conformance.client import Client, SqlServerError
from tests.conformance.database import Database


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
