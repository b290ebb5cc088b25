"""How Spark reaches the server that an Airflow connection names: URL and properties for mssql-jdbc, without secrets."""

from __future__ import annotations

from airflow.providers.common.compat.sdk import Connection

from airflow_provider_mssql_cdc.core.exceptions import ConnectionSettingError
from airflow_provider_mssql_cdc.hooks.extras import (
    APPLICATION_NAME,
    DEFAULT_PORT,
    LOGIN_TIMEOUT,
    as_bool,
    as_seconds,
    encrypt,
    known_extras,
)

_FLAGS = ("trustServerCertificate", "integratedSecurity", "multiSubnetFailover")
_TEXTS = (
    "hostNameInCertificate",
    "serverCertificate",
    "trustStore",
    "trustStoreType",
    "authentication",
    "authenticationScheme",
    "domain",
    "realm",
    "serverSpn",
)


def jdbc_url(connection: Connection, *, schema: str | None = None) -> tuple[str, dict[str, str]]:
    """The JDBC URL and the connection properties for mssql-jdbc; user and password are in neither.

    The URL names server, port and database only. ``encrypt`` is true unless the extra says otherwise.

    :param connection: of type ``mssql``; its extras are read as ``hooks.extras`` says
    :param schema: database that overrides the connection's
    :raises ConnectionSettingError: for a connection without a host, or an extra with an unusable value
    """
    if not connection.host:
        raise ConnectionSettingError(f"connection {connection.conn_id} has no host.")
    server, _, named_instance = connection.host.partition("\\")
    parts = {"serverName": server}
    if named_instance and not connection.port:
        # The SQL Server Browser knows its port; with a port, mssql-jdbc ignores the name (docs: building the URL).
        parts["instanceName"] = named_instance
    else:
        parts["port"] = str(connection.port or DEFAULT_PORT)
    if database := schema or connection.schema:
        parts["databaseName"] = database
    url = "jdbc:sqlserver://;" + ";".join(f"{name}={_braced(value)}" for name, value in parts.items())
    return url, _properties(connection)


def _properties(connection: Connection) -> dict[str, str]:
    extras = known_extras(connection)
    read_only = as_bool(extras.get("read_only", False), "read_only")
    properties = {
        "encrypt": encrypt(extras),
        "applicationName": str(extras.get("appname", APPLICATION_NAME)),
        "loginTimeout": str(as_seconds(extras.get("login_timeout", LOGIN_TIMEOUT), "login_timeout")),
        "ApplicationIntent": "ReadOnly" if read_only else "ReadWrite",
    }
    if "socketTimeout" in extras:
        # mssql-jdbc counts this one in milliseconds (docs: setting the connection properties)
        properties["socketTimeout"] = str(as_seconds(extras["socketTimeout"], "socketTimeout") * 1000)
    for name in _FLAGS:
        if name in extras:
            properties[name] = "true" if as_bool(extras[name], name) else "false"
    for name in _TEXTS:
        if name in extras:
            properties[name] = str(extras[name])
    return properties


def _braced(value: str) -> str:
    """The value so that mssql-jdbc takes each character literally."""
    return "{" + value.replace("}", "}}") + "}"
