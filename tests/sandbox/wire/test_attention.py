"""Cancelling: while rows flow, while a session waits, when nothing runs, and by simply leaving."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_mssql_cdc.sandbox.protocol import Column, Outcome, ResultSet, RowCount
from airflow_provider_mssql_cdc.sandbox.types import SqlType
from airflow_provider_mssql_cdc.sandbox.wire.listener import TdsServer
from tests.sandbox.wire.test_parameters import by_number, text_parameter
from tests.support.sandbox.wire.rawclient import (
    EMPTY_HEADERS,
    TYPE_ATTENTION,
    TYPE_BATCH,
    TYPE_LOGIN,
    TYPE_PRELOGIN,
    TYPE_RPC,
    RawClient,
    login7,
    prelogin,
)
from tests.support.sandbox.wire.toy import SP_EXECUTESQL, ToyBackend, ToySession, record_batch, result

COLUMNS = [Column("i", SqlType("bigint"))]
BATCH = record_batch(COLUMNS, list(range(10_000)))
ATTENTION_DONE = [("done", 0x20, 0, 0)]


def endless(session: ToySession) -> Iterator[Outcome]:
    def batches() -> Iterator[pa.RecordBatch]:
        while True:
            yield BATCH

    yield ResultSet(COLUMNS, batches())
    raise AssertionError("an endless result has ended")


def waiting(session: ToySession) -> Iterator[Outcome]:
    # Without the cancel this would outlast the client's patience.
    assert session.cancelled.wait(60)
    yield RowCount()


@pytest.fixture
def scripts(backend: ToyBackend) -> ToyBackend:
    backend.scripts |= {
        "endless": endless,
        "waiting": waiting,
        "rows": lambda session: result(COLUMNS, BATCH),
    }
    return backend


def request(text: str) -> bytes:
    return EMPTY_HEADERS + text.encode("utf-16-le")


def check_cancelled(raw: RawClient) -> None:
    """Two messages: the end of what was interrupted, and the acknowledgement."""
    interrupted = raw.answer()
    assert interrupted.tokens[-1][0] == "done"
    assert not any(token[1] & 0x20 for token in interrupted.tokens if token[0].startswith("done"))
    assert raw.answer().tokens == ATTENTION_DONE
    assert raw.batch("rows").rows == [(value.to_bytes(8, "little"),) for value in range(10_000)]


@pytest.mark.parametrize("text", ["endless", "waiting"])
def test_attention_during_a_batch(text: str, scripts: ToyBackend, raw: RawClient) -> None:
    for _ in range(3):
        raw.send(TYPE_BATCH, request(text))
        raw.send(TYPE_ATTENTION, b"")
        check_cancelled(raw)
    assert scripts.texts == [text, "rows"] * 3


def test_attention_during_a_call(scripts: ToyBackend, raw: RawClient) -> None:
    raw.send(TYPE_RPC, EMPTY_HEADERS + by_number(SP_EXECUTESQL, text_parameter("endless")))
    raw.send(TYPE_ATTENTION, b"")
    check_cancelled(raw)


def test_attention_under_tls(scripts: ToyBackend, server: TdsServer) -> None:
    with RawClient(server.port) as raw:
        raw.send(TYPE_PRELOGIN, prelogin(1))
        raw.read_message()
        raw.tls = raw.handshake(ssl.create_default_context(cafile=str(server.authority_path)))
        raw.send(TYPE_LOGIN, login7())
        raw.answer()
        for text in ("endless", "waiting"):
            raw.send(TYPE_BATCH, request(text))
            raw.send(TYPE_ATTENTION, b"")
            check_cancelled(raw)


def test_attention_when_nothing_runs(scripts: ToyBackend, raw: RawClient) -> None:
    for _ in range(2):
        raw.send(TYPE_ATTENTION, b"")
        assert raw.answer().tokens == ATTENTION_DONE
    assert raw.batch("x").tokens == [("done", 0, 0, 0)]


def test_a_request_withdrawn_while_it_is_sent(scripts: ToyBackend, raw: RawClient) -> None:
    # docs (MS-TDS 2.2.1.7): such a request is answered by a DONE with an error, and by no other token
    raw.send(TYPE_BATCH, request("rows"), status=0x03)
    raw.send(TYPE_ATTENTION, b"")
    assert raw.answer().tokens == [("done", 2, 0, 0)]
    assert raw.answer().tokens == ATTENTION_DONE
    assert not scripts.texts


@pytest.mark.parametrize("text", ["endless", "waiting"])
def test_a_client_that_leaves(text: str, scripts: ToyBackend, server: TdsServer) -> None:
    with RawClient(server.port) as raw:
        raw.login()
        raw.send(TYPE_BATCH, request(text))
    assert scripts.sessions[0].closed.wait(30)


def test_pymssql_leaves_a_result_early(scripts: ToyBackend, connect: Callable[..., Any]) -> None:
    connection = connect()
    for _ in range(3):
        cursor = connection.cursor()
        cursor.execute("endless")
        assert [cursor.fetchone() for _ in range(3)] == [(0,), (1,), (2,)]
        cursor.close()
        cursor = connection.cursor()
        cursor.execute("rows")
        assert cursor.fetchall() == [(value,) for value in range(10_000)]


def test_a_session_is_not_cancelled_while_its_client_is_silent(scripts: ToyBackend, server: TdsServer) -> None:
    released = threading.Event()

    def held(session: ToySession) -> Iterator[Outcome]:
        assert released.wait(60)
        yield RowCount(int(session.cancelled.is_set()))

    scripts.scripts["held"] = held
    with RawClient(server.port) as quiet, RawClient(server.port) as loud:
        quiet.login()
        loud.login()
        quiet.send(TYPE_BATCH, request("held"))
        # Another connection's cancel goes through the same watch, which has thus looked at this one too.
        loud.send(TYPE_BATCH, request("waiting"))
        loud.send(TYPE_ATTENTION, b"")
        check_cancelled(loud)
        released.set()
        assert quiet.answer().tokens == [("done", 0x10, 0, 0)]
