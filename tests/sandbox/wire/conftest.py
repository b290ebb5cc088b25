"""A toy server per test, and clients for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pymssql
import pytest

from airflow_provider_mssql_cdc.sandbox.wire.listener import TdsServer
from tests.support.sandbox.wire.rawclient import RawClient
from tests.support.sandbox.wire.toy import PASSWORD, ToyBackend


@pytest.fixture
def backend() -> ToyBackend:
    return ToyBackend()


@pytest.fixture
def server(backend: ToyBackend) -> Iterator[TdsServer]:
    with TdsServer(backend) as running:
        yield running


@pytest.fixture
def raw(server: TdsServer) -> Iterator[RawClient]:
    with RawClient(server.port) as client:
        client.login()
        yield client


@pytest.fixture
def connect(server: TdsServer) -> Iterator[Callable[..., Any]]:
    opened = []

    def open_connection(**options: Any) -> Any:
        defaults = {"server": "127.0.0.1", "port": str(server.port), "user": "sa", "password": PASSWORD}
        opened.append(pymssql.connect(**(defaults | options)))
        return opened[-1]

    yield open_connection
    for connection in opened:
        connection.close()
