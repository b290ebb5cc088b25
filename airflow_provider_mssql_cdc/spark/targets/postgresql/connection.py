"""The database of a target: by psycopg for transactions, by JDBC for rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_provider_mssql_cdc.core.exceptions import TargetError
from airflow_provider_mssql_cdc.core.spec import DatabaseSpec
from airflow_provider_mssql_cdc.spark.jdbc import Credentials
from airflow_provider_mssql_cdc.spark.targets.postgresql.errors import of_driver, of_spark

if TYPE_CHECKING:
    import psycopg

_APPLICATION = "airflow-mssql-cdc"
_LOGIN_SECONDS = "15"
LOCK_TIMEOUT = "10min"
_JDBC_NAMES = {"connect_timeout": "connectTimeout"}


@dataclass(frozen=True, slots=True)
class Database:
    """Opens connections, each for one transaction.

    :param credentials: for the database
    :param table: the target table, for messages
    """

    spec: DatabaseSpec
    credentials: Credentials
    table: str

    @contextlib.contextmanager
    def transaction(self, *, reading: bool = False, lock_timeout: str = LOCK_TIMEOUT) -> Iterator[psycopg.Cursor[Any]]:
        """Run what follows in a transaction of a connection of its own.

        :param reading: of one moment, and without writing
        :raises TargetError: for all errors of PostgreSQL
        """
        driver = _driver()
        try:
            with self._connect(driver) as connection, connection.cursor() as cursor:
                levels = driver.IsolationLevel
                connection.isolation_level = levels.REPEATABLE_READ if reading else levels.READ_COMMITTED
                connection.read_only = reading
                cursor.execute(f"SET LOCAL lock_timeout = '{lock_timeout}'")
                yield cursor
        except driver.Error as error:
            raise of_driver(error, self.table) from None

    def jdbc_options(self) -> dict[str, str]:
        """How Spark's JDBC source and its driver reach the database."""
        host = f"[{self.spec.host}]" if ":" in self.spec.host else self.spec.host
        options = {_JDBC_NAMES.get(name, name): value for name, value in self.spec.options.items()}
        options |= {
            "url": f"jdbc:postgresql://{host}:{self.spec.port}/{quote(self.spec.database, safe='')}",
            "driver": "org.postgresql.Driver",
            "ApplicationName": _APPLICATION,
        }
        if self.credentials.user is not None:
            options["user"] = self.credentials.user
        if self.credentials.password is not None:
            options["password"] = self.credentials.password
        return options

    def error_of_spark(self, failure: Exception) -> TargetError | None:
        """What a failure of Spark says of the database, None if it is about something else."""
        return of_spark(self.credentials.scrub(str(failure)), self.table)

    def _connect(self, driver: Any) -> psycopg.Connection[Any]:
        connection: psycopg.Connection[Any] = driver.connect(
            **{"connect_timeout": _LOGIN_SECONDS, **self.spec.options},
            host=self.spec.host,
            port=self.spec.port,
            dbname=self.spec.database,
            user=self.credentials.user,
            password=self.credentials.password,
            application_name=_APPLICATION,
            client_encoding="utf8",
            # prepared statements stay in a session, which a pooler hands on to others
            prepare_threshold=None,
        )
        return connection


def quoted(name: str) -> str:
    """An identifier."""
    return '"' + name.replace('"', '""') + '"'


def in_schema(schema: str, table: str) -> str:
    """The name of a table."""
    return f"{quoted(schema)}.{quoted(table)}"


def _driver() -> Any:
    """psycopg, which only loads into PostgreSQL need."""
    try:
        import psycopg
    except ImportError:
        raise TargetError(
            "loads into PostgreSQL need psycopg where the Spark driver runs, and it is not installed there.",
            advice='Run: pip install "airflow-provider-mssql-cdc[postgresql]"',
        ) from None
    return psycopg
