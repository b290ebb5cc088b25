"""A server for each test process, and a database for each test."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from tests.hooks.source import Source


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """A running sandbox."""
    from airflow_provider_mssql_cdc.sandbox.server import Sandbox

    with Sandbox(host="127.0.0.1", port=0) as server:
        yield server


@pytest.fixture(scope="session")
def server(sandbox: Sandbox) -> dict[str, Any]:
    """Address and administrator of a server."""
    return {"host": sandbox.host, "port": sandbox.port, "user": sandbox.user, "password": sandbox.password}


@pytest.fixture
def source(server: dict[str, Any]) -> Iterator[Source]:
    """An empty database."""
    database = Source(server, f"t_{uuid.uuid4().hex[:10]}")
    yield database
    database.close()


@pytest.fixture
def dummy_row(sandbox: Sandbox) -> Callable[[Source], None]:
    """Let the capture of a database find nothing for so long that it maps an LSN nevertheless."""

    def idle(database: Source) -> None:
        sandbox.capture.step(sandbox.cdc(database.name), dummy=True)

    return idle
