"""Each test begins in a database of the default collation, as each statement on a server begins in its own."""

from __future__ import annotations

import pytest

from airflow_provider_mssql_cdc.sandbox.collations import comparing


@pytest.fixture(autouse=True)
def _default_collation() -> None:
    """A session that a test runs in its own thread leaves its database's collation there."""
    comparing.DATABASE.set(comparing.DEFAULT)
