"""The JDBC URL and properties that follow from an Airflow connection."""

from __future__ import annotations

import json

import pytest
from airflow.providers.common.compat.sdk import Connection

from airflow_provider_mssql_cdc.core.exceptions import ConnectionSettingError
from airflow_provider_mssql_cdc.hooks.jdbc import jdbc_url

CANARY = "c4nary-Pa$$word"
DEFAULTS = {
    "encrypt": "true",
    "applicationName": "airflow-mssql-cdc",
    "loginTimeout": "15",
    "ApplicationIntent": "ReadWrite",
}


def connection(extra: dict[str, object] | None = None, **fields: object) -> Connection:
    given = {"host": "sql.example", "login": "reader", "password": CANARY, "schema": "shop", **fields}
    return Connection(conn_id="c", conn_type="mssql", extra=json.dumps(extra or {}), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "url"),
    [
        ({}, "jdbc:sqlserver://;serverName={sql.example};port={1433};databaseName={shop}"),
        ({"port": 14330}, "jdbc:sqlserver://;serverName={sql.example};port={14330};databaseName={shop}"),
        ({"schema": None}, "jdbc:sqlserver://;serverName={sql.example};port={1433}"),
        (
            {"host": r"sql\two"},
            "jdbc:sqlserver://;serverName={sql};instanceName={two};databaseName={shop}",
        ),
        (
            {"host": r"sql\two", "port": 1500},
            "jdbc:sqlserver://;serverName={sql};port={1500};databaseName={shop}",
        ),
        (
            {"schema": "a;encrypt=false;x={b}"},
            "jdbc:sqlserver://;serverName={sql.example};port={1433};databaseName={a;encrypt=false;x={b}}}",
        ),
    ],
)
def test_url(fields: dict[str, object], url: str) -> None:
    assert jdbc_url(connection(**fields)) == (url, DEFAULTS)


def test_schema_overrides_the_connections() -> None:
    url, _ = jdbc_url(connection(), schema="other")
    assert url.endswith("databaseName={other}")


@pytest.mark.parametrize(
    ("extra", "properties"),
    [
        ({"encrypt": False}, {"encrypt": "false"}),
        ({"encrypt": "no"}, {"encrypt": "false"}),
        ({"Encrypt": "strict"}, {"encrypt": "strict"}),
        ({"encrypt": "Mandatory"}, {"encrypt": "true"}),
        ({"read_only": True}, {"ApplicationIntent": "ReadOnly"}),
        ({"trust_server_certificate": "yes"}, {"trustServerCertificate": "true"}),
        ({"TrustServerCertificate": False}, {"trustServerCertificate": "false"}),
        ({"hostNameInCertificate": "*.example"}, {"hostNameInCertificate": "*.example"}),
        ({"serverCertificate": "/c.pem", "trustStore": "/t"}, {"serverCertificate": "/c.pem", "trustStore": "/t"}),
        ({"authentication": "ActiveDirectoryPassword"}, {"authentication": "ActiveDirectoryPassword"}),
        ({"login_timeout": 3, "socketTimeout": "30"}, {"loginTimeout": "3", "socketTimeout": "30000"}),
        ({"loginTimeout": "4"}, {"loginTimeout": "4"}),
        ({"appname": "mine"}, {"applicationName": "mine"}),
        ({"sqlalchemy_scheme": "mssql+pyodbc", "tds_version": "7.4"}, {}),
    ],
)
def test_properties(extra: dict[str, object], properties: dict[str, str]) -> None:
    assert jdbc_url(connection(extra))[1] == {**DEFAULTS, **properties}


@pytest.mark.parametrize(
    ("extra", "fields"),
    [
        ({"encrypt": "maybe"}, {}),
        ({"trustServerCertificate": "maybe"}, {}),
        ({"login_timeout": "soon"}, {}),
        ({"login_timeout": -1}, {}),
        ({"login_timeout": 1, "loginTimeout": 2}, {}),
        ({}, {"host": None}),
    ],
)
def test_refused(extra: dict[str, object], fields: dict[str, object]) -> None:
    with pytest.raises(ConnectionSettingError):
        jdbc_url(connection(extra, **fields))


@pytest.mark.parametrize("text", ["trust=true", "[1]", "5", "{", '"x"', f"password={CANARY}"])
def test_an_extra_field_that_is_no_json_object_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ConnectionSettingError, match="connection c is not a JSON object") as refused:
        jdbc_url(Connection(conn_id="c", conn_type="mssql", host="db", extra=text))
    assert CANARY not in str(refused.value)


def test_unknown_extras_are_named_once_without_their_values(caplog: pytest.LogCaptureFixture) -> None:
    secrets = {"trustStorePassword": CANARY, "user": CANARY, "password": CANARY, "accessToken": CANARY}
    url, properties = jdbc_url(connection(secrets))
    assert CANARY not in url + json.dumps(properties)
    assert properties == DEFAULTS
    assert [record.getMessage() for record in caplog.records if "extras" in record.getMessage()] == [
        "Connection c: extras not understood, and ignored: accessToken, password, trustStorePassword, user"
    ]
    assert CANARY not in caplog.text
