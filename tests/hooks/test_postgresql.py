"""What follows for Spark from the Airflow connection of a target in PostgreSQL."""

from __future__ import annotations

import json
import logging

import pytest
from airflow.providers.common.compat.sdk import Connection

from airflow_provider_mssql_cdc.core.exceptions import ConnectionSettingError
from airflow_provider_mssql_cdc.core.spec import DatabaseSpec
from airflow_provider_mssql_cdc.hooks.postgresql import database

CANARY = "c4nary-Pa$$word"


def connection(extra: dict[str, object] | None = None, **fields: object) -> Connection:
    given = {"conn_type": "postgres", "host": "pg.example", "login": "loader", "schema": "shop", **fields}
    return Connection(conn_id="c", password=CANARY, extra=json.dumps(extra or {}), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "extra", "found"),
    [
        ({}, {}, DatabaseSpec("pg.example", 5432, "shop", {"sslmode": "require"})),
        ({"port": 15432}, {"sslmode": "disable"}, DatabaseSpec("pg.example", 15432, "shop", {"sslmode": "disable"})),
        (
            {"host": "::1", "schema": "my shop"},
            {"sslmode": "verify-full", "sslrootcert": "/ca.pem", "connect_timeout": 5},
            DatabaseSpec(
                "::1", 5432, "my shop", {"sslmode": "verify-full", "sslrootcert": "/ca.pem", "connect_timeout": "5"}
            ),
        ),
    ],
)
def test_database(fields: dict[str, object], extra: dict[str, object], found: DatabaseSpec) -> None:
    assert database(connection(extra, **fields)) == found


def test_extras_that_are_not_understood_go_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        found = database(connection({"options": "-c x=1", "passfile": CANARY}))
    assert found.options == {"sslmode": "require"}
    assert "ignored: options, passfile" in caplog.text
    assert CANARY not in caplog.text


@pytest.mark.parametrize(
    ("fields", "extra", "problem"),
    [
        ({"conn_type": "mysql"}, {}, "of type mysql, not postgres"),
        ({"host": None}, {}, "names no host"),
        ({"host": "a,b"}, {}, "names no host, or not one alone"),
        ({"host": "a/x?sslmode=disable"}, {}, "names no host, or not one alone"),
        ({"schema": None}, {}, "names no database. The connection's field schema"),
        ({}, {"sslmode": "maybe"}, "sslmode must be one of disable, allow"),
        ({}, {"connect_timeout": "soon"}, "connect_timeout must be a whole number"),
    ],
)
def test_what_cannot_be_used_is_refused(fields: dict[str, object], extra: dict[str, object], problem: str) -> None:
    with pytest.raises(ConnectionSettingError, match=problem):
        database(connection(extra, **fields))


@pytest.mark.parametrize("extra", ["[1]", f"not json {CANARY}"])
def test_extras_that_are_no_object_are_refused_and_not_shown(extra: str) -> None:
    given = connection()
    given.extra = extra
    with pytest.raises(ConnectionSettingError, match="is not a JSON object") as refused:
        database(given)
    assert CANARY not in str(refused.value)
