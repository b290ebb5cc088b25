"""Starting, stopping, many clients at once, and many rows."""

from __future__ import annotations

import datetime as dt
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pymssql
import pytest
import sqlalchemy

from airflow_provider_mssql_cdc.sandbox.protocol import Column, Message, Outcome, RowCount
from airflow_provider_mssql_cdc.sandbox.types import SqlType
from airflow_provider_mssql_cdc.sandbox.wire.listener import TdsServer
from tests.support.sandbox.wire.rawclient import EMPTY_HEADERS, TYPE_BATCH, RawClient
from tests.support.sandbox.wire.toy import PASSWORD, ToyBackend, ToySession, record_batch, result


def test_a_port_in_use_is_named(server: TdsServer) -> None:
    with pytest.raises(OSError, match=f"port {server.port} on 127.0.0.1: is in use"):
        TdsServer(ToyBackend(), port=server.port).start()


def test_an_address_that_is_not_here_is_named() -> None:
    with pytest.raises(OSError, match=r"port 0 on 192\.0\.2\.1"):
        TdsServer(ToyBackend(), host="192.0.2.1").start()


def test_start_twice_and_stop_twice(server: TdsServer) -> None:
    with pytest.raises(RuntimeError, match="already"):
        server.start()
    server.stop()
    server.stop()


def test_an_unknown_kind_of_encryption() -> None:
    with pytest.raises(ValueError, match="'strict'"):
        TdsServer(ToyBackend(), encryption="strict")  # type: ignore[arg-type]


def test_stop_ends_everything_and_the_port_is_free_again(backend: ToyBackend) -> None:
    entered = threading.Event()

    def waiting(session: ToySession) -> Iterator[Outcome]:
        entered.set()
        assert session.cancelled.wait(60)
        yield RowCount()

    backend.scripts["waiting"] = waiting
    server = TdsServer(backend)
    server.start()
    port = server.port
    clients = [RawClient(port) for _ in range(3)]
    clients[0].login()
    clients[1].login()
    clients[1].send(TYPE_BATCH, EMPTY_HEADERS + "waiting".encode("utf-16-le"))
    assert entered.wait(30)
    server.stop()
    assert all(client.ended() for client in clients)
    assert all(session.closed.is_set() for session in backend.sessions)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(f"tds-{port}")]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    with TdsServer(backend, port=port), RawClient(port) as again:
        assert again.login().of("loginack")
    for client in clients:
        client.socket.close()


def test_ipv6(backend: ToyBackend) -> None:
    server = TdsServer(backend, host="::1")
    try:
        server.start()
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    with RawClient(server.port, host="::1") as raw:
        assert raw.login().of("loginack")
    server.stop()


def test_sessions_are_closed_when_clients_go(backend: ToyBackend, connect: Callable[..., Any]) -> None:
    for _ in range(3):
        connect().close()
    assert all(session.closed.wait(30) for session in backend.sessions)
    assert len(backend.sessions) == 3


ROWS = 100_000
COLUMNS = [
    Column("id", SqlType("bigint"), nullable=False),
    Column("amount", SqlType("decimal", precision=18, scale=4)),
    Column("name", SqlType("nvarchar", 40)),
    Column("at", SqlType("datetime2", scale=7)),
    Column("lsn", SqlType("binary", 10), nullable=False),
    Column("flag", SqlType("bit")),
]
DAY_2000 = 730_119 * 864_000_000_000


def source_row(number: int) -> tuple[Any, ...]:
    """A row as the server has it."""
    return (
        number,
        None if number % 7 == 0 else Decimal(number * 31 - 1_000_000).scaleb(-4),
        None if number % 11 == 0 else "é😀"[: number % 3] + str(number),
        DAY_2000 + number * 10_000_000 + number % 10_000_000,
        number.to_bytes(10, "big"),
        None if number % 3 == 0 else number % 2 == 0,
    )


def client_row(number: int) -> tuple[Any, ...]:
    """The same row as pymssql shows it: the seventh digit of a second is cut."""
    row = list(source_row(number))
    row[3] = dt.datetime(2000, 1, 1) + dt.timedelta(seconds=number, microseconds=number % 10_000_000 // 10)
    return tuple(row)


@pytest.fixture(scope="module")
def batches() -> list[pa.RecordBatch]:
    starts = range(0, ROWS, 30_000)
    groups = [map(source_row, range(start, min(start + 30_000, ROWS))) for start in starts]
    return [record_batch(COLUMNS, *map(list, zip(*group, strict=True))) for group in groups]


@pytest.mark.parametrize("encryption", ["off", "require"])
def test_100000_rows_compared_in_full(
    encryption: str, backend: ToyBackend, batches: list[pa.RecordBatch], connect: Callable[..., Any]
) -> None:
    backend.scripts["rows"] = lambda session: result(COLUMNS, *batches)
    cursor = connect(encryption=encryption).cursor()
    cursor.execute("rows")
    received = 0
    while chunk := cursor.fetchmany(10_000):
        assert chunk == [client_row(number) for number in range(received, received + len(chunk))]
        received += len(chunk)
    assert received == ROWS


def test_many_clients_at_once(backend: ToyBackend, server: TdsServer) -> None:
    columns = [Column("t", SqlType("nvarchar", 40))]

    def own_rows(session: ToySession) -> Iterator[Outcome]:
        yield from result(columns, record_batch(columns, [f"{session.login.app_name}-{n}" for n in range(2000)]))

    backend.scripts["rows"] = own_rows

    def read(number: int) -> list[tuple[str]]:
        account = {"server": "127.0.0.1", "user": "sa", "password": PASSWORD, "appname": f"client{number}"}
        with pymssql.connect(port=str(server.port), **account) as connection:
            cursor = connection.cursor()
            cursor.execute("rows")
            rows: list[tuple[str]] = cursor.fetchall()
            return rows

    with ThreadPoolExecutor(12) as pool:
        results = list(pool.map(read, range(24)))
    assert results == [[(f"client{number}-{n}",) for n in range(2000)] for number in range(24)]


COMMENTS_PROBE = "SELECT 1 FROM fn_listextendedproperty(default, default, default, default, default, default, default)"


def test_sqlalchemy_over_pymssql(backend: ToyBackend, server: TdsServer) -> None:
    def scalar(kind: SqlType, value: Any) -> Callable[[ToySession], Iterator[Outcome]]:
        columns = [Column("", kind)]
        return lambda session: result(columns, record_batch(columns, [value]))

    backend.scripts |= {
        "select @@version": scalar(SqlType("nvarchar", 300), "Microsoft SQL Server 2022 - 16.0.4135.4 (X64)"),
        "SELECT schema_name()": scalar(SqlType("nvarchar", 128), "dbo"),
        "SELECT CAST('test max support' AS NVARCHAR(max))": scalar(SqlType("nvarchar", -1), "test max support"),
        COMMENTS_PROBE: lambda session: iter([Message(208, "Invalid object name 'fn_listextendedproperty'.")]),
        "SELECT N'x' AS a, 5": scalar(SqlType("nvarchar", 10), "answer"),
    }
    url = sqlalchemy.URL.create(
        "mssql+pymssql", username="sa", password=PASSWORD, host="127.0.0.1", port=server.port, database="shop"
    )
    engine = sqlalchemy.create_engine(url)
    with engine.connect() as connection:
        assert connection.execute(sqlalchemy.text("SELECT N'x' AS a, 5")).scalar_one() == "answer"
    engine.dispose()
    assert backend.sessions[0].database == "shop"
