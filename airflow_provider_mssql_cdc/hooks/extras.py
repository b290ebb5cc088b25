"""The connection extras that this package understands, for both drivers; nothing else reaches a driver."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from airflow.providers.common.compat.sdk import Connection

from airflow_provider_mssql_cdc.core.exceptions import ConnectionSettingError

log = logging.getLogger(__name__)

DEFAULT_PORT = 1433
APPLICATION_NAME = "airflow-mssql-cdc"
LOGIN_TIMEOUT = 15
QUERY_TIMEOUT = 60

PYMSSQL = ("timeout", "login_timeout", "encryption", "appname", "tds_version", "read_only", "conn_properties")
JDBC = (
    "encrypt",
    "trustServerCertificate",
    "hostNameInCertificate",
    "serverCertificate",
    "trustStore",
    "trustStoreType",
    "authentication",
    "authenticationScheme",
    "integratedSecurity",
    "domain",
    "realm",
    "serverSpn",
    "multiSubnetFailover",
    "socketTimeout",
)

# Read by Airflow's own hooks, so they are no mistake; this hook has no use for them.
_AIRFLOW = (
    "sqlalchemy_scheme",
    "sqlalchemy_query",
    "dialect",
    "driver",
    "placeholder",
    "insert_statement_format",
    "replace_statement_format",
    "escape_word_format",
    "escape_column_names",
)


def _folded(key: str) -> str:
    return key.replace("_", "").lower()


_NAMES = {_folded(name): name for name in PYMSSQL + JDBC + _AIRFLOW}


def known_extras(connection: Connection) -> dict[str, Any]:
    """The understood extras under the names above; the others are left out with one warning.

    Case and underscores do not count, so that ``loginTimeout`` and ``login_timeout`` are the same.

    :raises ConnectionSettingError: if they are no JSON object, of which Airflow itself would make none at all, or if
        one setting is given twice with different values
    """
    conn_id = connection.conn_id
    try:
        is_object = isinstance(json.loads(connection.extra or "{}"), dict)
    except ValueError:
        is_object = False
    if not is_object:
        # not shown: it may hold a secret
        raise ConnectionSettingError(
            f"the extra field of connection {conn_id} is not a JSON object.",
            advice='Write it like {"encrypt": "true", "trustServerCertificate": "false"}.',
        )
    found: dict[str, Any] = {}
    unknown: list[str] = []
    for key, value in connection.extra_dejson.items():
        name = _NAMES.get(_folded(key))
        if name is None:
            unknown.append(key)
        elif name in found and found[name] != value:
            raise ConnectionSettingError(f"connection {conn_id} sets {name} twice, with different values.")
        else:
            found[name] = value
    if unknown:
        log.warning("Connection %s: extras not understood, and ignored: %s", conn_id, ", ".join(sorted(unknown)))
    return found


def as_bool(value: Any, name: str) -> bool:
    """Read a flag as people write it.

    :raises ConnectionSettingError: for anything else
    """
    text = str(value).strip().lower()
    if text in {"true", "yes", "1", "on"}:
        return True
    if text in {"false", "no", "0", "off"}:
        return False
    raise ConnectionSettingError(f"connection extra {name} must be true or false.")


def as_seconds(value: Any, name: str) -> int:
    """Read a number of seconds.

    :raises ConnectionSettingError: if it is not a whole number, or negative
    """
    try:
        seconds = int(value)
    except (TypeError, ValueError):
        seconds = -1
    if seconds < 0:
        raise ConnectionSettingError(f"connection extra {name} must be a whole number of seconds.")
    return seconds


def encrypt(extras: Mapping[str, Any]) -> str:
    """How connections are encrypted, as mssql-jdbc calls it: ``true`` (the default), ``false`` or ``strict``.

    :raises ConnectionSettingError: for anything else
    """
    value = extras.get("encrypt", True)
    if str(value).strip().lower() in {"strict", "mandatory", "optional"}:
        return {"strict": "strict", "mandatory": "true", "optional": "false"}[str(value).strip().lower()]
    return "true" if as_bool(value, "encrypt") else "false"


def pymssql_arguments(extras: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments for ``pymssql.connect`` that come from extras or defaults.

    FreeTDS encrypts with ``encryption=require`` but checks no certificate unless its own configuration names a CA.

    :raises ConnectionSettingError: for ``encrypt=strict``, which FreeTDS as built into pymssql cannot do
    """
    mode = encrypt(extras)
    if mode == "strict":
        raise ConnectionSettingError(
            "connection extra encrypt=strict (TDS 8.0) is not supported by pymssql.",
            advice="Use encrypt=true, which encrypts everything too.",
        )
    encryption = str(extras.get("encryption", "require" if mode == "true" else "off")).lower()
    if encryption not in {"default", "off", "request", "require"}:
        raise ConnectionSettingError("connection extra encryption must be off, request or require.")
    arguments: dict[str, Any] = {
        "timeout": as_seconds(extras.get("timeout", QUERY_TIMEOUT), "timeout"),
        "login_timeout": as_seconds(extras.get("login_timeout", LOGIN_TIMEOUT), "login_timeout"),
        "encryption": encryption,
        "appname": str(extras.get("appname", APPLICATION_NAME)),
        "read_only": as_bool(extras.get("read_only", False), "read_only"),
    }
    for name in ("tds_version", "conn_properties"):
        if name in extras:
            arguments[name] = extras[name]
    return arguments
