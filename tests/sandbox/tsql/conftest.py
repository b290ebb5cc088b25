"""A server in this process; batches run without the network."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_provider_mssql_cdc.sandbox.engine.instance import Instance
from airflow_provider_mssql_cdc.sandbox.protocol import Login, Message, ResultSet, SqlError
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from airflow_provider_mssql_cdc.sandbox.tsql.session import SqlSession

Rows = list[tuple[Any, ...]]


class Client:
    """A session whose results come as Python rows."""

    def __init__(self, instance: Instance, user: str, password: str, database: str = "shop") -> None:
        self.session = SqlSession(instance, Login(user, password, database))
        self.messages: list[Message] = []
        self.columns: list[list[Any]] = []

    def sets(self, sql: str) -> list[Rows]:
        """All result sets of a batch; its messages are kept."""
        self.messages, self.columns, results = [], [], []
        for outcome in self.session.batch(sql):
            if isinstance(outcome, ResultSet):
                self.columns.append(outcome.columns)
                rows: Rows = []
                for batch in outcome.batches:
                    rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
                results.append(rows)
            elif isinstance(outcome, Message):
                self.messages.append(outcome)
        return results

    def run(self, sql: str) -> Rows:
        """The last result set; the first error is raised."""
        results = self.sets(sql)
        for message in self.messages:
            if message.severity > 10:
                raise SqlError(message.number, message.text, severity=message.severity, line=message.line)
        return results[-1] if results else []

    def value(self, expression: str) -> Any:
        """The value of one expression."""
        return self.run(f"SELECT {expression}")[0][0]

    def error(self, sql: str) -> int:
        """The number of the error that a batch ends with."""
        self.sets(sql)
        numbers = [message.number for message in self.messages if message.severity > 10]
        assert numbers, f"no error from {sql}"
        return numbers[0]


def errors_at_once(*batches: tuple[Client, str]) -> list[int]:
    """Run batches at the same time, each by its own client; the numbers of their errors."""
    failed: list[int] = []

    def run(client: Client, sql: str) -> None:
        client.sets(sql)
        failed.extend(message.number for message in client.messages if message.severity > 10)

    threads = [threading.Thread(target=run, args=batch) for batch in batches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failed


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    server = Sandbox(agent_running=False)
    yield server
    server.instance.close()


@pytest.fixture
def connect(sandbox: Sandbox) -> Iterator[Callable[..., Client]]:
    clients: list[Client] = []

    def open_client(user: str = sandbox.user, password: str = sandbox.password, database: str = "shop") -> Client:
        clients.append(Client(sandbox.instance, user, password, database))
        return clients[-1]

    yield open_client
    for client in clients:
        client.session.close()


@pytest.fixture
def client(connect: Callable[..., Client]) -> Client:
    return connect()
