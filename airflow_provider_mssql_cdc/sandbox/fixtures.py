"""The sandbox as a pytest fixture: import it into a conftest.py or a test module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_mssql_cdc.sandbox.server import Sandbox


@pytest.fixture
def mssql_sandbox() -> Iterator[Sandbox]:
    """A SQL Server stand-in of the test's own, with an empty database ``shop``.

    The Agent runs, but its jobs are held: nothing is captured until the test calls ``step``, or
    ``capture.release`` lets the jobs go on by themselves.
    """
    with Sandbox() as server:
        server.capture.hold()
        yield server
