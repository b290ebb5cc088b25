"""Languages of logins and of clients: how a session reads texts with a day and a month."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import pytest

from airflow_provider_mssql_cdc.sandbox.protocol import Login, Message, SqlError
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from airflow_provider_mssql_cdc.sandbox.tsql.session import SqlSession

PASSWORD = "Choose-1-yourself"
TEXT = "SELECT @@LANGUAGE, CAST('2026-02-03 04:05' AS datetime)"
US = ("us_english", datetime.datetime(2026, 2, 3, 4, 5))
BRITISH = ("British", datetime.datetime(2026, 3, 2, 4, 5))


@pytest.fixture
def server() -> Iterator[Sandbox]:
    """A server with a British login."""
    with Sandbox(database="shop", agent_running=False) as server:
        server.execute(
            f"CREATE LOGIN briton WITH PASSWORD = '{PASSWORD}', DEFAULT_LANGUAGE = British, CHECK_POLICY = OFF"
            " CREATE USER briton FOR LOGIN briton"
        )
        yield server


def read(session: SqlSession, text: str = TEXT) -> list[tuple[object, ...]]:
    """The rows of a batch."""
    rows: list[tuple[object, ...]] = []
    for outcome in session.batch(text):
        if isinstance(outcome, Message):
            assert outcome.severity <= 10, outcome
        for batch in getattr(outcome, "batches", ()):
            rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return rows


@pytest.mark.parametrize(
    ("asked", "seen"), [("", BRITISH), ("us_english", US), ("English", US), ("British English", BRITISH)]
)
def test_the_client_comes_before_the_login(server: Sandbox, asked: str, seen: tuple[object, ...]) -> None:
    session = SqlSession(server.instance, Login("briton", PASSWORD, "shop", language=asked))
    assert session.language == seen[0]
    assert read(session) == [seen]
    read(session, "SET DATEFORMAT ymd SET DATEFIRST 5")
    session.reset()
    assert read(session) == [seen]
    session.close()


def test_a_login_changes_its_language_for_later_sessions(server: Sandbox) -> None:
    session = SqlSession(server.instance, Login("briton", PASSWORD, "shop"))
    server.execute("ALTER LOGIN briton WITH DEFAULT_LANGUAGE = us_english")
    assert read(session) == [BRITISH]
    session.close()
    session = SqlSession(server.instance, Login("briton", PASSWORD, "shop"))
    assert read(session) == [US]
    session.close()


@pytest.mark.parametrize(
    "statement",
    [
        "SET LANGUAGE Deutsch",
        "SET DATEFORMAT ydm",
        "SET DATEFIRST 8",
        "ALTER LOGIN briton WITH DEFAULT_LANGUAGE = Deutsch",
    ],
)
def test_other_languages_and_formats_are_refused(server: Sandbox, statement: str) -> None:
    with pytest.raises(SqlError, match="not supported by the sandbox"):
        server.execute(statement)
    with pytest.raises(SqlError, match="the language Deutsch"):
        SqlSession(server.instance, Login("briton", PASSWORD, "shop", language="Deutsch"))
    assert [info.login.user for info in server.instance.sessions.values()] == []
