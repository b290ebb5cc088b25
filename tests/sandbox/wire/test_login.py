"""PRELOGIN, LOGIN7, and TLS in its two forms."""

from __future__ import annotations

import re
import ssl
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymssql
import pytest

from airflow_provider_mssql_cdc.sandbox.protocol import Column, Login
from airflow_provider_mssql_cdc.sandbox.types import SqlType
from airflow_provider_mssql_cdc.sandbox.wire.listener import TdsServer
from tests.support.sandbox.wire.rawclient import TYPE_LOGIN, TYPE_PRELOGIN, RawClient, login7, prelogin
from tests.support.sandbox.wire.toy import PASSWORD, ToyBackend, record_batch, result

OFF, ON, NOT_SUPPORTED, REQUIRED = range(4)


def answered_options(raw: RawClient, payload: bytes) -> dict[int, bytes]:
    raw.send(TYPE_PRELOGIN, payload)
    kind, data = raw.read_message()
    assert kind == 4
    options, at = {}, 0
    while data[at] != 0xFF:
        token, offset, length = struct.unpack_from(">BHH", data, at)
        options[token] = data[offset : offset + length]
        at += 5
    return options


def trusting(server: TdsServer) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(server.authority_path))


@pytest.mark.parametrize(
    ("mode", "asked", "answer"),
    [
        ("off", OFF, OFF),
        ("off", ON, ON),
        ("off", REQUIRED, ON),
        ("off", NOT_SUPPORTED, NOT_SUPPORTED),
        ("on", OFF, REQUIRED),
        ("on", ON, ON),
        ("on", NOT_SUPPORTED, REQUIRED),
    ],
)
def test_prelogin_answer(mode: Any, asked: int, answer: int, backend: ToyBackend) -> None:
    with TdsServer(backend, encryption=mode) as server, RawClient(server.port) as raw:
        options = answered_options(raw, prelogin(asked))
    assert options == {0: bytes([16, 0, 0x10, 0x27, 0, 0]), 1: bytes([answer]), 2: b"\0", 3: b"", 4: b"\0"}


def test_federated_authentication_is_answered_when_asked_for(server: TdsServer) -> None:
    with RawClient(server.port) as raw:
        options = answered_options(raw, bytes.fromhex("01 000b 0001 06 000c 0001 ff 02 01"))
    assert options[6] == b"\0"


@pytest.mark.parametrize("asked", [OFF, ON])
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_tls_with_a_certificate_that_the_client_verifies(
    asked: int, host: str, backend: ToyBackend, server: TdsServer
) -> None:
    with RawClient(server.port) as raw:
        answered_options(raw, prelogin(asked))
        tls = raw.handshake(trusting(server), host)
        assert tls.version() == "TLSv1.2"
        raw.tls = tls
        raw.send(TYPE_LOGIN, login7())
        if asked == OFF:
            raw.tls = None
        assert raw.answer().of("loginack")
        assert raw.batch("in the clear or not").tokens == [("done", 0, 0, 0)]
    assert backend.texts == ["in the clear or not"]


def test_a_client_that_does_not_know_the_authority_or_the_name_refuses(server: TdsServer) -> None:
    other = trusting(server)
    for context, host in ((ssl.create_default_context(), "localhost"), (other, "example.org")):
        with RawClient(server.port) as raw:
            answered_options(raw, prelogin(ON))
            with pytest.raises(ssl.SSLCertVerificationError):
                raw.handshake(context, host)


def test_tls_1_3_is_refused(server: TdsServer) -> None:
    context = trusting(server)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    with RawClient(server.port) as raw:
        answered_options(raw, prelogin(ON))
        with pytest.raises((EOFError, ssl.SSLError, ConnectionError)):
            raw.handshake(context)


@pytest.mark.parametrize(("mode", "asked"), [("off", "off"), ("off", "request"), ("off", "require"), ("on", "require")])
def test_pymssql_in_each_mode(mode: Any, asked: str, backend: ToyBackend) -> None:
    columns = [Column("t", SqlType("nvarchar", 100))]
    values = [f"é😀{place}" for place in range(5000)]
    backend.scripts["rows"] = lambda session: result(columns, record_batch(columns, values))
    account = {"server": "127.0.0.1", "user": "sa", "password": PASSWORD, "encryption": asked}
    with TdsServer(backend, encryption=mode) as server, pymssql.connect(port=str(server.port), **account) as client:
        cursor = client.cursor()
        cursor.execute("rows")
        assert cursor.fetchall() == [(value,) for value in values]


def test_a_client_without_encryption_is_turned_away_where_it_is_forced(backend: ToyBackend) -> None:
    with TdsServer(backend, encryption="on") as server, RawClient(server.port) as raw:
        assert answered_options(raw, prelogin(NOT_SUPPORTED))[1] == bytes([REQUIRED])
        assert raw.ended()
    assert not backend.sessions


def test_what_the_login_tells(server: TdsServer) -> None:
    with RawClient(server.port) as raw:
        tokens = raw.login(packet_size=8000, database="shop").tokens
    assert tokens == [
        ("envchange", 1, "shop", "master"),
        ("envchange", 7, bytes.fromhex("0904d00034"), b""),
        ("envchange", 2, "us_english", ""),
        ("envchange", 4, "8000", "4096"),
        ("info", 5701, 2, 0, "Changed database context to 'shop'.", "TOY", "", 1),
        ("info", 5703, 1, 0, "Changed language setting to us_english.", "TOY", "", 1),
        ("loginack", 1, "74000004", "Microsoft SQL Server", "10001027"),
        ("done", 0, 0, 0),
    ]


def test_what_the_session_learns(backend: ToyBackend, server: TdsServer, connect: Callable[..., Any]) -> None:
    with RawClient(server.port) as raw:
        raw.login(type_flags=0x20, database="shop")
    connect(database="shop", appname="my app", user="u")
    logins = [session.login for session in backend.sessions]
    assert logins[0] == Login("sa", PASSWORD, "shop", "raw app", "raw host", read_only=True)
    assert (logins[1].user, logins[1].password, logins[1].database) == ("u", PASSWORD, "shop")
    assert (logins[1].app_name, logins[1].read_only) == ("my app", False)
    assert PASSWORD not in repr(logins)


def test_no_feature_is_taken_up(server: TdsServer) -> None:
    features = bytes.fromhex("01 00000000 04 01000000 01 09 01000000 01 0a 01000000 01 10 02000000 6100 ff")
    with RawClient(server.port) as raw:
        tokens = raw.login(flags3=0x10, features=features).tokens
    assert tokens[-2:] == [("featureextack",), ("done", 0, 0, 0)]


@pytest.mark.parametrize(
    ("asked", "agreed"), [(0, 4096), (100, 512), (512, 512), (8000, 8000), (32767, 32767), (65535, 32767)]
)
def test_packet_size_told_is_the_one_used(asked: int, agreed: int, backend: ToyBackend, server: TdsServer) -> None:
    columns = [Column("t", SqlType("varchar", 8000))]
    batch = record_batch(columns, ["x" * 8000] * 200)
    backend.scripts["rows"] = lambda session: result(columns, batch)
    with RawClient(server.port) as raw:
        assert ("envchange", 4, str(agreed), "4096") in raw.login(packet_size=asked).tokens
        assert len(raw.batch("rows").rows) == 200
    assert set(raw.packet_sizes[:-1]) == {agreed}
    assert 8 < raw.packet_sizes[-1] <= agreed
    assert raw.packet_ids == [(place + 1) & 0xFF for place in range(len(raw.packet_ids))]


def test_packet_size_is_limited_under_tls(server: TdsServer) -> None:
    with RawClient(server.port) as raw:
        answered_options(raw, prelogin(ON))
        raw.tls = raw.handshake(trusting(server))
        raw.send(TYPE_LOGIN, login7(packet_size=32767))
        assert ("envchange", 4, "16383", "4096") in raw.answer().tokens


def test_tds_7_3_is_spoken_too(server: TdsServer, backend: ToyBackend, connect: Callable[..., Any]) -> None:
    with RawClient(server.port) as raw:
        assert raw.login(version=0x730B0003).of("loginack")[0][1] == "730b0003"
    columns = [Column("i", SqlType("int"))]
    backend.scripts["rows"] = lambda session: result(columns, record_batch(columns, [1, None]))
    cursor = connect(tds_version="7.3").cursor()
    cursor.execute("rows")
    assert cursor.fetchall() == [(1,), (None,)]


@pytest.mark.parametrize(
    ("fields", "errors"),
    [
        ({"password": "no"}, [(18456, 1, 14, "Login failed for user 'sa'.")]),
        ({"password": "", "user": "é"}, [(18456, 1, 14, "Login failed for user 'é'.")]),
        (
            {"database": "nope"},
            [
                (4060, 1, 11, 'Cannot open database "nope" requested by the login. The login failed.'),
                (18456, 1, 14, "Login failed for user 'sa'."),
            ],
        ),
        ({"version": 0x71000001}, [(50000, 1, 20, "The sandbox speaks TDS 7.3 and 7.4, not 7.1.")]),
        ({"flags3": 1}, [(50000, 1, 14, "The sandbox does not change passwords at login.")]),
        (
            {"flags3": 0x10, "features": bytes.fromhex("02 00000000 ff")},
            [(50000, 1, 14, "The sandbox takes a user and a password, no access token.")],
        ),
    ],
)
def test_refused_logins(fields: dict[str, Any], errors: list[Any], server: TdsServer, backend: ToyBackend) -> None:
    with RawClient(server.port) as raw:
        answer = raw.login(**fields)
        assert [error[:4] for error in answer.of("error")] == errors
        assert answer.tokens[-1] == ("done", 2, 0, 0)
        assert raw.ended()
    assert not backend.sessions


def test_integrated_login_is_refused_with_the_servers_own_error(server: TdsServer) -> None:
    with RawClient(server.port) as raw:
        assert raw.login(flags2=0x80).of("error")[0][0] == 18452


def test_pymssql_shows_the_login_error(server: TdsServer) -> None:
    # in a process of its own, since pymssql keeps messages of earlier connections
    script = "import sys, pymssql; pymssql.connect(server='127.0.0.1', port=sys.argv[1], user='x', password='wrong')"
    done = subprocess.run([sys.executable, "-c", script, str(server.port)], capture_output=True, text=True)
    assert re.search(r"OperationalError: \(18456, .*Login failed for user 'x'\.", done.stderr)


def test_a_login_message_of_several_packets(server: TdsServer) -> None:
    with RawClient(server.port) as raw:
        raw.send(TYPE_PRELOGIN, prelogin(NOT_SUPPORTED))
        raw.read_message()
        raw.send(TYPE_LOGIN, login7(), packet=50)
        assert raw.answer().of("loginack")


def test_the_authority_is_gone_with_the_server(backend: ToyBackend) -> None:
    server = TdsServer(backend)
    with pytest.raises(RuntimeError):
        _ = server.authority_path
    with server:
        path: Path = server.authority_path
        assert path.read_bytes().startswith(b"-----BEGIN CERTIFICATE-----")
    assert not path.exists()
