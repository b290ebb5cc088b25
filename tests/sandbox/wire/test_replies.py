"""What a session yields, as the tokens and messages that clients see."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pymssql
import pytest

from airflow_provider_mssql_cdc.sandbox.protocol import (
    Column,
    DatabaseChanged,
    IsolationLevel,
    Message,
    Outcome,
    ResultSet,
    ReturnStatus,
    RowCount,
    SqlError,
    TransactionChanged,
)
from airflow_provider_mssql_cdc.sandbox.types import SqlType
from tests.sandbox.wire.test_parameters import by_number, text_parameter
from tests.support.sandbox.wire.rawclient import EMPTY_HEADERS, TYPE_RPC, TYPE_TM, Answer, RawClient
from tests.support.sandbox.wire.toy import SP_EXECUTESQL, ToyBackend, record_batch, result

INT = [Column("i", SqlType("int"))]
MORE, ERROR, IN_TRANSACTION, COUNT = 1, 2, 4, 0x10
DESCRIPTOR = bytes.fromhex("8877665544332211")


def ints(*values: int | None) -> pa.RecordBatch:
    return record_batch(INT, list(values))


def row(value: int) -> tuple[str, tuple[bytes]]:
    return "row", (value.to_bytes(4, "little"),)


def without_metadata(answer: Answer) -> list[tuple[Any, ...]]:
    return [token for token in answer.tokens if token[0] != "columns"]


@pytest.fixture
def run(backend: ToyBackend, raw: RawClient) -> Callable[..., list[tuple[Any, ...]]]:
    def run_outcomes(*outcomes: Outcome) -> list[tuple[Any, ...]]:
        backend.scripts["go"] = lambda session: iter(outcomes)
        return without_metadata(raw.batch("go"))

    return run_outcomes


Run = Callable[..., list[tuple[Any, ...]]]


def test_statements_of_a_batch_end_one_by_one(run: Run) -> None:
    tokens = run(
        RowCount(3, command="INSERT"),
        ResultSet(INT, iter([ints(1), ints(), ints(2)])),
        RowCount(99),
        RowCount(),
        RowCount(0, command="MERGE"),
    )
    assert tokens == [
        ("done", MORE | COUNT, 0xC3, 3),
        row(1),
        row(2),
        ("done", MORE | COUNT, 0xC1, 2),
        ("done", MORE, 0, 0),
        ("done", COUNT, 0x117, 0),
    ]


def test_an_empty_batch_is_done(run: Run) -> None:
    assert run() == [("done", 0, 0, 0)]


def test_a_result_without_a_row_count_is_ended_before_the_next(run: Run) -> None:
    tokens = run(ResultSet(INT, iter([ints(1)])), ResultSet(INT, iter([ints(2)])))
    assert tokens == [row(1), ("done", MORE | COUNT, 0xC1, 1), row(2), ("done", COUNT, 0xC1, 1)]


def test_nocount(run: Run) -> None:
    assert run(ResultSet(INT, iter([ints(1)])), RowCount(suppress=True)) == [row(1), ("done", 0, 0xC1, 0)]


def test_messages_by_severity(run: Run) -> None:
    text = "x" * 3000 + "😀"
    tokens = run(
        Message(0, "printed", severity=0),
        Message(50001, text, severity=10, state=7, procedure="p", line=12),
        Message(208, "Invalid object name 'é'.", severity=16, state=1, procedure="dbo.q", line=3),
        RowCount(),
        RowCount(1),
    )
    assert tokens == [
        ("info", 0, 1, 0, "printed", "TOY", "", 1),
        ("info", 50001, 7, 0, text, "TOY", "p", 12),
        ("error", 208, 1, 16, "Invalid object name 'é'.", "TOY", "dbo.q", 3),
        ("done", MORE | ERROR, 0, 0),
        ("done", COUNT, 0, 1),
    ]


def test_an_error_without_a_row_count_ends_its_statement(run: Run) -> None:
    tokens = run(Message(1, "a"), ResultSet(INT, iter([ints(1)])), Message(2, "b"))
    kinds = [token[:2] for token in tokens]
    assert kinds == [
        ("error", 1),
        ("done", MORE | ERROR),
        ("row", tokens[2][1]),
        ("error", 2),
        ("done", COUNT | ERROR),
    ]


def failing() -> Iterator[pa.RecordBatch]:
    yield ints(1, 2)
    raise SqlError(8134, "Divide by zero error encountered.", line=4)


def test_an_error_among_rows_comes_after_the_rows_before_it(run: Run) -> None:
    tokens = run(ResultSet(INT, failing()), RowCount(), RowCount(5, command="UPDATE"))
    assert tokens == [
        row(1),
        row(2),
        ("error", 8134, 1, 16, "Divide by zero error encountered.", "TOY", "", 4),
        ("done", MORE | COUNT | ERROR, 0xC1, 2),
        ("done", COUNT, 0xC5, 5),
    ]


def test_errors_raised_by_a_session(backend: ToyBackend, raw: RawClient) -> None:
    def refuses(session: object) -> Iterator[Outcome]:
        yield RowCount(1)
        raise SqlError(102, "Incorrect syntax near 'x'.", severity=15)

    def breaks(session: object) -> Iterator[Outcome]:
        raise KeyError("lost")
        yield

    backend.scripts |= {"refuses": refuses, "breaks": breaks}
    assert without_metadata(raw.batch("refuses")) == [
        ("done", MORE | COUNT, 0, 1),
        ("error", 102, 1, 15, "Incorrect syntax near 'x'.", "TOY", "", 1),
        ("done", ERROR, 0, 0),
    ]
    assert raw.batch("breaks").of("error")[0][:4] == (50000, 1, 16, "KeyError: 'lost'")
    assert raw.batch("again").tokens == [("done", 0, 0, 0)]


def test_severity_20_ends_the_connection(backend: ToyBackend, raw: RawClient) -> None:
    backend.scripts["fatal"] = lambda session: iter([Message(596, "Session is in the kill state.", severity=21)])
    assert raw.batch("fatal").tokens[-1] == ("done", ERROR, 0, 0)
    assert raw.ended()
    assert backend.sessions[0].closed.wait(10)


def test_use_and_transactions_in_a_batch(run: Run) -> None:
    tokens = run(
        DatabaseChanged("master", "shop"),
        TransactionChanged("begin", 0x1122334455667788),
        RowCount(1, command="DELETE"),
        TransactionChanged("rollback", 0x1122334455667788),
    )
    assert tokens == [
        ("envchange", 1, "shop", "master"),
        ("info", 5701, 1, 0, "Changed database context to 'shop'.", "TOY", "", 1),
        ("envchange", 8, DESCRIPTOR, b""),
        ("done", MORE | COUNT | IN_TRANSACTION, 0xC4, 1),
        ("envchange", 10, b"", DESCRIPTOR),
        ("done", 0, 0, 0),
    ]


def test_a_procedure_called_in_a_batch(run: Run) -> None:
    assert run(RowCount(1), ReturnStatus(-6), RowCount(2)) == [
        ("done", MORE | COUNT, 0, 1),
        ("status", -6),
        ("doneproc", MORE, 0, 0),
        ("done", COUNT, 0, 2),
    ]


def test_a_call_that_fails(backend: ToyBackend, raw: RawClient) -> None:
    backend.scripts["go"] = lambda session: iter([Message(2812, "no"), RowCount(), RowCount(1, command="UPDATE")])
    raw.send(TYPE_RPC, EMPTY_HEADERS + by_number(SP_EXECUTESQL, text_parameter("go")))
    assert raw.answer().tokens[1:] == [
        ("doneinproc", MORE | ERROR, 0, 0),
        ("doneinproc", MORE | COUNT, 0xC5, 1),
        ("status", 0),
        ("doneproc", 0, 0, 0),
    ]


def transaction_request(raw: RawClient, kind: int, rest: bytes) -> list[tuple[Any, ...]]:
    raw.send(TYPE_TM, EMPTY_HEADERS + struct.pack("<H", kind) + rest)
    return raw.answer().tokens


def test_transaction_manager_requests(backend: ToyBackend, raw: RawClient) -> None:
    begun, committed = ("envchange", 8, DESCRIPTOR, b""), ("envchange", 9, b"", DESCRIPTOR)
    open_done, done = ("done", IN_TRANSACTION, 0, 0), ("done", 0, 0, 0)
    assert transaction_request(raw, 5, b"\x05\x02t\x001\x00") == [begun, open_done]
    assert raw.batch("x").tokens == [open_done]
    assert transaction_request(raw, 9, b"\x01s\x00") == [open_done]
    assert transaction_request(raw, 7, b"\x00\x01\x02\x00") == [committed, begun, open_done]
    assert transaction_request(raw, 8, b"\x00\x00") == [("envchange", 10, b"", DESCRIPTOR), done]
    assert backend.requests == [
        ("begin", IsolationLevel.SNAPSHOT, "t1"),
        ("save", "s"),
        ("commit", ""),
        ("begin", IsolationLevel.READ_COMMITTED, ""),
        ("rollback", ""),
    ]


def test_distributed_transactions_are_refused(raw: RawClient) -> None:
    assert transaction_request(raw, 0, b"\0\0")[0][:2] == ("error", 50000)


def test_reset_of_a_pooled_connection(backend: ToyBackend, raw: RawClient) -> None:
    transaction_request(raw, 5, b"\0\0")
    assert raw.batch("x", status=0x09).tokens == [("envchange", 18, b"", b""), ("done", 0, 0, 0)]
    assert backend.sessions[0].resets == 1
    assert raw.batch("x", status=0x11).of("error")[0][0] == 50000
    assert (backend.sessions[0].resets, backend.texts) == (1, ["x"])


def test_pymssql_sees_errors_counts_and_several_results(backend: ToyBackend, connect: Callable[..., Any]) -> None:
    def two(session: object) -> Iterator[Outcome]:
        yield from result(INT, ints(1, None))
        yield RowCount(7, command="UPDATE")
        yield from result(INT, ints(3))

    backend.scripts |= {
        "two": two,
        "bad": lambda session: iter([Message(208, "Invalid object name 'x'.", line=2)]),
        "update": lambda session: iter([RowCount(4, command="UPDATE")]),
    }
    cursor = connect().cursor()
    cursor.execute("two")
    assert cursor.fetchall() == [(1,), (None,)]
    assert cursor.nextset()
    assert cursor.fetchall() == [(3,)]
    with pytest.raises(pymssql.ProgrammingError, match=r"208.*Invalid object name 'x'\."):
        cursor.execute("bad")
    cursor.execute("update")
    assert cursor.rowcount == 4


def test_pymssql_calls_a_procedure(backend: ToyBackend, connect: Callable[..., Any]) -> None:
    cursor = connect().cursor()
    cursor.callproc("sys.sp_x", (1, "é", None, b"\x01"))
    ((name, parameters),) = backend.calls
    assert name == "sys.sp_x"
    assert [item.value for item in parameters] == [1, "é", None, b"\x01"]
