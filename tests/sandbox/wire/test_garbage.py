"""Clients that break the protocol: the server lets them go, and serves the others on."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Iterator

import pytest

from airflow_provider_mssql_cdc.sandbox.wire.listener import TdsServer
from tests.sandbox.wire.test_parameters import by_name, by_number, named, text_parameter
from tests.support.sandbox.wire.rawclient import (
    EMPTY_HEADERS,
    TYPE_BATCH,
    TYPE_LOGIN,
    TYPE_PRELOGIN,
    TYPE_RPC,
    TYPE_TM,
    RawClient,
    login7,
    prelogin,
)
from tests.support.sandbox.wire.toy import SP_EXECUTESQL, ToyBackend


@pytest.fixture(autouse=True)
def _still_serving(server: TdsServer) -> Iterator[None]:
    yield
    with RawClient(server.port) as raw:
        assert raw.login().of("loginack")
        assert raw.batch("x").tokens == [("done", 0, 0, 0)]


def packet(kind: int, payload: bytes, *, status: int = 1, length: int | None = None) -> bytes:
    return struct.pack(">BBHHBB", kind, status, 8 + len(payload) if length is None else length, 0, 1, 0) + payload


BEFORE_LOGIN = {
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "tls hello": bytes.fromhex("16030100c8010000c40303") + bytes(190),
    "length below the header": packet(TYPE_PRELOGIN, b"", length=3),
    "batch before login": packet(TYPE_BATCH, EMPTY_HEADERS),
    "login before prelogin": packet(TYPE_LOGIN, login7()),
    "option outside": packet(TYPE_PRELOGIN, bytes.fromhex("01 ffff 0001 ff")),
    "options cut off": packet(TYPE_PRELOGIN, bytes.fromhex("01 00")),
    "unknown encryption": packet(TYPE_PRELOGIN, bytes.fromhex("01 0006 0001 ff 09")),
    "no encryption byte": packet(TYPE_PRELOGIN, bytes.fromhex("01 0006 0000 ff")),
    "mixed types": packet(TYPE_PRELOGIN, prelogin(2), status=0) + packet(TYPE_LOGIN, b"x"),
    "prelogin without end": packet(TYPE_PRELOGIN, bytes(32000), status=0) * 4,
}


@pytest.mark.parametrize("data", BEFORE_LOGIN.values(), ids=BEFORE_LOGIN)
def test_garbage_before_the_login(data: bytes, server: TdsServer, backend: ToyBackend) -> None:
    with RawClient(server.port) as raw:
        raw.socket.sendall(data)
        raw.socket.shutdown(socket.SHUT_WR)
        assert raw.ended()
    assert not backend.sessions


def test_random_bytes_before_the_login(server: TdsServer) -> None:
    rng = random.Random(4)
    for _ in range(50):
        with RawClient(server.port) as raw:
            raw.socket.sendall(rng.randbytes(rng.randrange(1, 300)))
            raw.socket.shutdown(socket.SHUT_WR)
            assert raw.ended()


def changed(offset: int, data: bytes) -> bytes:
    message = login7()
    return message[:offset] + data + message[offset + len(data) :]


BROKEN_LOGINS = {
    "too short": login7()[:93],
    "length too large": changed(0, b"\xff\xff\0\0"),
    "length too small": changed(0, b"\x10\0\0\0"),
    "field outside": changed(40, b"\xff\xff\xff\xff"),
    "features outside": changed(27, b"\x10")[:56] + b"\xff\xff\x04\0" + changed(27, b"\x10")[60:],
    "too long": login7() + bytes(140_000),
}


@pytest.mark.parametrize("payload", BROKEN_LOGINS.values(), ids=BROKEN_LOGINS)
def test_broken_login_messages(payload: bytes, server: TdsServer, backend: ToyBackend) -> None:
    with RawClient(server.port) as raw:
        raw.send(TYPE_PRELOGIN, prelogin(2))
        raw.read_message()
        raw.send(TYPE_LOGIN, payload)
        assert raw.ended()
    assert not backend.sessions


def test_garbage_in_the_tls_handshake(server: TdsServer) -> None:
    for data in (packet(TYPE_PRELOGIN, b"\x16\x03\x01\x00\x05hello"), packet(TYPE_LOGIN, login7()), b"\0" * 64):
        with RawClient(server.port) as raw:
            raw.send(TYPE_PRELOGIN, prelogin(1))
            raw.read_message()
            raw.socket.sendall(data)
            assert raw.ended()


@pytest.mark.parametrize("sent", [b"", b"\x12", packet(TYPE_PRELOGIN, prelogin(2)), packet(TYPE_PRELOGIN, prelogin(1))])
def test_a_client_that_does_not_go_on_is_let_go(sent: bytes, backend: ToyBackend) -> None:
    with TdsServer(backend, login_timeout=0.05) as impatient, RawClient(impatient.port) as raw:
        raw.socket.sendall(sent)
        assert raw.ended()


def test_broken_requests_are_answered_with_the_servers_error(server: TdsServer, backend: ToyBackend) -> None:
    requests = [
        (TYPE_BATCH, b""),
        (TYPE_BATCH, b"\x00\x00\x00\x00"),
        (TYPE_BATCH, b"\xff\xff\xff\xffx"),
        (TYPE_BATCH, EMPTY_HEADERS + b"x"),
        (TYPE_RPC, EMPTY_HEADERS),
        (TYPE_RPC, EMPTY_HEADERS + b"\xff\xff"),
        (TYPE_TM, EMPTY_HEADERS + b"\x05"),
        (TYPE_TM, EMPTY_HEADERS + b"\x05\x00\x77\x00"),
        (TYPE_LOGIN, login7()),
        (TYPE_PRELOGIN, prelogin(2)),
    ]
    for kind, payload in requests:
        with RawClient(server.port) as raw:
            raw.login()
            raw.send(kind, payload)
            answer = raw.answer()
            assert [error[0] for error in answer.of("error")] == [4002], (kind, payload)
            assert answer.tokens[-1] == ("done", 2, 0, 0)
            assert raw.ended()
    assert not backend.texts
    assert not backend.calls
    assert not backend.requests


def test_a_call_cut_off_anywhere(server: TdsServer, backend: ToyBackend) -> None:
    value = named("@v") + b"\x6a\x09\x12\x04\x05\x01\x01\x00\x00\x00"
    whole = EMPTY_HEADERS + by_number(SP_EXECUTESQL, text_parameter("x"), value)
    for end in range(len(whole)):
        with RawClient(server.port) as raw:
            raw.login()
            raw.send(TYPE_RPC, whole[:end])
            numbers = [error[0] for error in raw.answer().of("error")]
            # Cut between two parameters it is a whole call.
            assert numbers == [4002] or (numbers in ([], [50000]) and backend.calls), end
            backend.calls.clear()


def test_random_calls_and_packets_after_the_login(server: TdsServer) -> None:
    rng = random.Random(5)
    whole = by_name(
        "proc", named("@a") + b"\xe7\x40\x1f\x09\x04\xd0\x00\x34\x04\x00ab", named("@b") + b"\x26\x04\x04abcd"
    )
    for round_number in range(150):
        with RawClient(server.port) as raw:
            raw.login()
            payload = bytearray(whole)
            for _ in range(rng.randrange(1, 4)):
                payload[rng.randrange(len(payload))] = rng.randrange(256)
            if round_number % 3:
                raw.send(TYPE_RPC, EMPTY_HEADERS + bytes(payload))
            else:
                raw.socket.sendall(rng.randbytes(rng.randrange(1, 200)))
            raw.socket.shutdown(socket.SHUT_WR)
            assert raw.ended()
