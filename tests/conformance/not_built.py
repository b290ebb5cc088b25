"""What it takes to refuse plainly what the sandbox does not have."""

from __future__ import annotations

from tests.conformance.client import Client


def refused(client: Client, statement: str) -> None:
    """A statement on the second line must be refused by an error that says so and names the line."""
    error = client.error(f"SELECT 1 AS one\n{statement}")
    assert "not supported by the sandbox" in error.text, str(error)
    assert error.severity >= 16
    assert error.line == 2
