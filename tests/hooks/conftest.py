"""A server for each test process, and a database for each test."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import Connection

from airflow_provider_mssql_cdc.sandbox import Sandbox
from tests.support.harsh import harsh_sandbox
from tests.support.hooks.source import Source

REAL_SERVER = "MSSQL_CDC_TEST_CONN"
"""Environment variable with the URI of an Airflow connection to an administrator of a SQL Server."""


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """A running sandbox."""
    with harsh_sandbox(host="127.0.0.1", port=0) as server:
        yield server


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Address and administrator of a server: the sandbox, or the SQL Server of an Airflow connection URI."""
    if uri := os.environ.get(REAL_SERVER):
        real = Connection.from_uri(uri, conn_id="real")
        return {"host": real.host, "port": real.port or 1433, "user": real.login, "password": real.password}
    sandbox: Sandbox = request.getfixturevalue("sandbox")
    return {"host": sandbox.host, "port": sandbox.port, "user": sandbox.user, "password": sandbox.password}


@pytest.fixture
def source(server: dict[str, Any]) -> Iterator[Source]:
    """An empty database."""
    database = Source(server, f"t_{uuid.uuid4().hex[:10]}")
    yield database
    database.close()


@pytest.fixture
def dummy_row(request: pytest.FixtureRequest) -> Callable[[Source], None]:
    """Let the capture of a database find nothing for so long that it maps an LSN nevertheless."""
    if os.environ.get(REAL_SERVER):
        pytest.skip("a real server takes five minutes for that")
    sandbox: Sandbox = request.getfixturevalue("sandbox")

    def idle(database: Source) -> None:
        sandbox.capture.step(sandbox.cdc(database.name), dummy=True)

    return idle
