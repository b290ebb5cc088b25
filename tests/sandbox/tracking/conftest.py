"""A server with a clock that tests move, and a tracked table in it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_provider_mssql_cdc.sandbox import Sandbox
from tests.sandbox.tsql.conftest import Client

TRACK = "ALTER TABLE dbo.t ENABLE CHANGE_TRACKING"


@pytest.fixture
def server() -> Iterator[Sandbox]:
    opened = Sandbox(agent_running=False)
    opened.set_time(dt.datetime(2026, 3, 1, 12))
    opened.execute("ALTER DATABASE shop SET CHANGE_TRACKING = ON ALTER DATABASE shop SET ALLOW_SNAPSHOT_ISOLATION ON")
    opened.execute(f"CREATE TABLE dbo.t (id int CONSTRAINT pk_t PRIMARY KEY, a int NULL) {TRACK}")
    yield opened
    opened.stop()


@pytest.fixture
def connect(server: Sandbox) -> Iterator[Callable[..., Client]]:
    opened: list[Client] = []

    def connect(user: str = server.user, password: str = server.password, database: str = "shop") -> Client:
        opened.append(Client(server.instance, user, password, database))
        return opened[-1]

    yield connect
    for each in opened:
        each.session.close()


@pytest.fixture
def client(connect: Callable[..., Client]) -> Client:
    return connect()


_SHORT = "SYS_CHANGE_VERSION, SYS_CHANGE_OPERATION, id"


def net(client: Client, after: int | str = "NULL", columns: str = _SHORT) -> Any:
    """What CHANGETABLE tells of the table, by its key."""
    return client.run(f"SELECT {columns} FROM CHANGETABLE(CHANGES dbo.t, {after}) AS c ORDER BY id")


def marks(client: Client) -> Any:
    """Current version, begin, cleanup and lowest valid version."""
    return client.run(
        "SELECT CHANGE_TRACKING_CURRENT_VERSION(), begin_version, cleanup_version, min_valid_version"
        " FROM sys.change_tracking_tables"
    )[0]
