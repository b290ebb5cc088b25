"""How Spark reaches the PostgreSQL database that an Airflow connection names as a target, without secrets."""

from __future__ import annotations

import json
import logging
import re

from airflow.providers.common.compat.sdk import Connection

from airflow_provider_mssql_cdc.core.exceptions import ConnectionSettingError
from airflow_provider_mssql_cdc.core.spec import DatabaseSpec
from airflow_provider_mssql_cdc.hooks.extras import as_seconds

log = logging.getLogger(__name__)

_PORT = 5432
_HOST = re.compile(r"[\w.:-]+")
_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


def database(connection: Connection) -> DatabaseSpec:
    """Host, port, database and settings of a target; user and password are not among them.

    Of the extras, ``sslmode``, ``sslrootcert`` and ``connect_timeout`` are read, which mean the same to libpq and to
    the JDBC driver; others are left out with a warning. ``sslmode`` is ``require`` unless the extra says otherwise.

    :param connection: of type ``postgres``
    :raises ConnectionSettingError: for a connection of another type, without host or database, or with an extra that
        cannot be used
    """
    conn_id = connection.conn_id
    if connection.conn_type not in ("postgres", "postgresql"):
        raise ConnectionSettingError(f"connection {conn_id} is of type {connection.conn_type}, not postgres.")
    if not connection.host or not _HOST.fullmatch(connection.host):
        raise ConnectionSettingError(f"connection {conn_id} names no host, or not one alone.")
    if not connection.schema:
        raise ConnectionSettingError(
            f"connection {conn_id} names no database.", advice="The connection's field schema holds it."
        )
    return DatabaseSpec(
        host=connection.host,
        port=connection.port or _PORT,
        database=connection.schema,
        options=_options(connection),
    )


def _options(connection: Connection) -> dict[str, str]:
    conn_id = connection.conn_id
    try:
        extras = json.loads(connection.extra or "{}")
    except ValueError:
        extras = None
    if not isinstance(extras, dict):
        # not shown: it may hold a secret
        raise ConnectionSettingError(
            f"the extra field of connection {conn_id} is not a JSON object.",
            advice='Write it like {"sslmode": "verify-full"}.',
        )
    options = {"sslmode": str(extras.pop("sslmode", "require"))}
    if options["sslmode"] not in _MODES:
        raise ConnectionSettingError(f"connection extra sslmode must be one of {', '.join(_MODES)}.")
    if "sslrootcert" in extras:
        options["sslrootcert"] = str(extras.pop("sslrootcert"))
    if "connect_timeout" in extras:
        options["connect_timeout"] = str(as_seconds(extras.pop("connect_timeout"), "connect_timeout"))
    if extras:
        log.warning("Connection %s: extras not understood, and ignored: %s", conn_id, ", ".join(sorted(extras)))
    return options
