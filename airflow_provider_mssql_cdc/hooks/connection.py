"""The connection to SQL Server: settings from an allow-list, one session at a time, errors that say what to do."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from typing import Any, cast

import pymssql
from airflow.providers.microsoft.mssql.hooks.mssql import MsSqlHook

from airflow_provider_mssql_cdc.core.exceptions import ConnectionSettingError
from airflow_provider_mssql_cdc.hooks.errors import (
    BROKEN,
    DEADLOCK_VICTIM,
    LOGIN_REFUSED,
    Where,
    number_and_text,
    refused_with,
    translate,
    translate_login,
)
from airflow_provider_mssql_cdc.hooks.extras import DEFAULT_PORT, known_extras, pymssql_arguments

Row = tuple[Any, ...]

_OF_ONE_CONNECTION = frozenset({"timeout", "login_timeout", "appname"})

# A reader by locks can be the victim of the capture, or of cleanup, again and again; not for ever.
_MOST_DEADLOCKS = 9

# A statement that ran into its time-out would run into it again, so that one is not repeated.
_TIMED_OUT = 20003


class ConnectedHook(MsSqlHook):
    """``MsSqlHook`` with default port and time-outs, an application name, and extras from an allow-list.

    ``get_conn`` opens a connection for the inherited methods. ``query`` uses one connection of its own, in autocommit,
    opened when first needed and kept until ``close``.

    :param mssql_conn_id: Airflow connection of type ``mssql``
    :param schema: database that overrides the connection's
    :param kwargs: as for ``MsSqlHook``; ``connection`` gives the resolved connection where a lookup would block
    """

    def __init__(self, mssql_conn_id: str = "mssql_default", *, schema: str | None = None, **kwargs: Any) -> None:
        super().__init__(**{"log_sql": False, **kwargs, "mssql_conn_id": mssql_conn_id, "schema": schema})
        self._open: Any = None
        self._lock = threading.RLock()

    def get_conn(self) -> Any:
        """Open a pymssql connection.

        :raises ConnectionSettingError: if the Airflow connection cannot be used
        :raises MsSqlCdcError: LoginError, DatabaseUnavailableError or ServerUnreachableError, without the password
        """
        connection = self.connection
        if not connection.host:
            raise ConnectionSettingError(f"connection {connection.conn_id} has no host.")
        arguments = {
            "server": connection.host,
            "port": str(connection.port or DEFAULT_PORT),
            "user": connection.login,
            "password": connection.password,
            **pymssql_arguments(known_extras(connection)),
        }
        try:
            return pymssql.connect(database=self.database, **arguments)
        except pymssql.Error as error:
            at_fault = bool(self.database) and refused_with(error) == {LOGIN_REFUSED} and _can_connect(arguments)
            # The driver's error is not chained: what it holds is in the message, less the password.
            raise translate_login(error, self.where, database_at_fault=at_fault) from None

    @property
    def place(self) -> tuple[str, ...]:
        """Whom the hook talks to, and how: what two connections have in common that can serve each other.

        Host, port, database and login, and a hash of the password, since one that is wrong must not fail the other, and
        of the extras by which another replica may answer, or in another way. Time-outs and the name of the application
        are not among them: those of the connection that is opened hold for both.

        :raises ConnectionSettingError: for extras that have no meaning
        """
        connection = self.connection
        extras = pymssql_arguments(known_extras(connection))
        how = {name: value for name, value in extras.items() if name not in _OF_ONE_CONNECTION}
        secret = json.dumps([connection.password, how], sort_keys=True, default=str)
        host, port = (connection.host or "").lower(), str(connection.port or DEFAULT_PORT)
        return host, port, self.database, connection.login or "", hashlib.sha256(secret.encode()).hexdigest()

    @property
    def database(self) -> str:
        """The database as hook or connection name it; empty for the login's default database."""
        return self.schema or self.connection.schema or ""

    @property
    def where(self) -> Where:
        """Whom the hook talks to, for messages."""
        connection = self.connection
        return Where(
            server=f"{connection.host}:{connection.port or DEFAULT_PORT}",
            database=self.database or "(default database)",
            login=connection.login or "",
            password=connection.password or "",
        )

    def query(self, sql: str, parameters: Sequence[Any] = (), *, repeatable: bool = True) -> list[Row]:
        """Run one statement and return the rows of all its result sets, one after the other.

        :param parameters: for ``%s``; pymssql writes them into the text as literals
        :param repeatable: whether it may be sent again when the connection turns out to be dead, or it was the victim
            of a deadlock
        :raises MsSqlCdcError: what the error means
        """
        return [row for rows in self.query_sets(sql, parameters, repeatable=repeatable) for row in rows]

    def query_sets(self, sql: str, parameters: Sequence[Any] = (), *, repeatable: bool = True) -> list[list[Row]]:
        """Run one statement and return its result sets."""
        with self._lock:
            victims = 0
            while True:
                fresh = self._open is None
                try:
                    return self._run(sql, parameters)
                except pymssql.Error as error:
                    number, _ = number_and_text(error)
                    if number == DEADLOCK_VICTIM and repeatable and victims < _MOST_DEADLOCKS:
                        victims += 1
                        continue
                    if number in BROKEN:
                        self.close()
                        if repeatable and not fresh and number != _TIMED_OUT:
                            return self._run_anew(sql, parameters)
                    raise translate(error, self.where) from None

    def close(self) -> None:
        """Close the connection of ``query``; the next statement opens another."""
        with self._lock:
            connection, self._open = self._open, None
            if connection is not None:
                connection.close()

    def __enter__(self) -> ConnectedHook:
        """The hook itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.close()

    def _run_anew(self, sql: str, parameters: Sequence[Any]) -> list[list[Row]]:
        try:
            return self._run(sql, parameters)
        except pymssql.Error as error:
            raise translate(error, self.where) from None

    def _run(self, sql: str, parameters: Sequence[Any]) -> list[list[Row]]:
        if self._open is None:
            connection = self.get_conn()
            connection.autocommit(True)
            self._open = connection
        with self._open.cursor() as cursor:
            cursor.execute(sql, tuple(parameters)) if parameters else cursor.execute(sql)
            results: list[list[Row]] = []
            more = True
            while more:
                if cursor.description is not None:
                    results.append(cast("list[Row]", cursor.fetchall()))
                more = bool(cursor.nextset())
            return results


def _can_connect(arguments: dict[str, Any]) -> bool:
    """Whether the login works without a database: an unknown one is reported by pymssql as a wrong password."""
    try:
        pymssql.connect(**arguments).close()
    except pymssql.Error:
        return False
    return True
