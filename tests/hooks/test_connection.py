"""Which connections can serve each other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import Connection

from airflow_provider_mssql_cdc.core.exceptions import ConnectionSettingError
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook


def place(extra: dict[str, Any] | str | None = None, *, conn_id: str = "other", **given: Any) -> tuple[str, ...]:
    """The place of a connection that differs from all others as is given."""
    fields = {
        "host": "Shop.Example",
        "port": 1433,
        "login": "loader",
        "password": "secret-1",
        "schema": "shop",
        **given,
    }
    text = json.dumps(extra) if isinstance(extra, dict) else extra
    return MsSqlCdcHook(conn_id, connection=Connection(conn_id=conn_id, conn_type="mssql", extra=text, **fields)).place


@pytest.mark.parametrize(
    "given",
    [
        {"conn_id": "another"},
        {"host": "shop.example", "port": None},
        {"extra": ""},
        {"extra": {"login_timeout": 5, "timeout": 9, "appname": "mine"}},
        {"extra": {"encrypt": "true", "readOnly": "no"}},
        # of the JDBC connections alone
        {"extra": {"trustServerCertificate": "true", "domain": "EXAMPLE"}},
    ],
)
def test_what_makes_no_other_place(given: dict[str, Any]) -> None:
    assert place(**given) == place()


@pytest.mark.parametrize(
    "given",
    [
        {"host": "other.example"},
        {"port": 1434},
        {"login": "reader"},
        {"password": "secret-2"},
        {"schema": "stock"},
        {"extra": {"read_only": "true"}},
        {"extra": {"encrypt": "false"}},
        {"extra": {"tds_version": "7.3"}},
        {"extra": {"conn_properties": "SET LOCK_TIMEOUT 5000"}},
    ],
)
def test_what_makes_another_place(given: dict[str, Any]) -> None:
    assert place(**given) != place()
    assert "secret" not in str(place(**given))


def test_extras_without_a_meaning_have_no_place() -> None:
    with pytest.raises(ConnectionSettingError, match="encrypt"):
        place({"encrypt": "perhaps"})
