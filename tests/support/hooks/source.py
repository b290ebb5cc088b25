"""A database to ask, and the same facts read by plain SELECTs: what the tests of hook, sensor and triggers stand on."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import Any

import pymssql
from airflow.providers.common.compat.sdk import Connection

from airflow_provider_mssql_cdc.core.checkpoint import Failure, Identity, SinkState
from airflow_provider_mssql_cdc.core.codec import to_json
from airflow_provider_mssql_cdc.core.feed import CaptureInstance, FeedRef
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.hooks.connection import Row
from airflow_provider_mssql_cdc.hooks.errors import number_and_text
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from tests.support.core.states import checkpoint_of

CONN_ID = "mssql_source"
TARGET = "iceberg://lake/shop"


class CountingHook(MsSqlCdcHook):
    """The hook, with the statements it sent."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sent: list[str] = []

    def _run(self, sql: str, parameters: Any) -> list[list[Row]]:
        self.sent.append(sql)
        return super()._run(sql, parameters)


class Source:
    """One database of a server, whose capture job does not run: ``scan`` captures what was committed.

    :param server: address and administrator
    :param collation: of the database; the server's if ''
    """

    def __init__(self, server: Mapping[str, Any], name: str, collation: str = "") -> None:
        self.server, self.name = dict(server), name
        self._connection = self._connect("")
        self.sql(f"CREATE DATABASE [{name}]" + (f" COLLATE {collation}" if collation else ""))
        self.sql(f"USE [{name}]")

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        """Run a batch as administrator; the rows of its last result set."""
        rows: list[tuple[Any, ...]] = []
        with self._connection.cursor() as cursor:
            cursor.execute(text)
            while True:
                if cursor.description is not None:
                    rows = cursor.fetchall()
                if not cursor.nextset():
                    return rows

    def enable(self, *tables: str) -> None:
        """Enable CDC for the database and these tables, and stop the capture job."""
        if not self.sql("SELECT is_cdc_enabled FROM sys.databases WHERE name = DB_NAME()")[0][0]:
            self.sql("EXEC sys.sp_cdc_enable_db")
        for table in tables:
            schema, name = table.split(".")
            self.sql(
                f"EXEC sys.sp_cdc_enable_table @source_schema = N'{schema}', @source_name = N'{name}',"
                " @role_name = NULL, @supports_net_changes = 0"
            )
        self.stop_capture()

    def stop_capture(self) -> None:
        """Stop the capture job, where there is one and it runs."""
        try:
            self.sql("EXEC sys.sp_cdc_stop_job @job_type = N'capture'")
        except pymssql.Error as error:
            if number_and_text(error)[0] not in (22022, 22997):
                raise

    def scan(self) -> None:
        """Capture all that is committed."""
        self.sql("EXEC sys.sp_cdc_scan")

    def max_lsn(self) -> Lsn:
        """The largest mapped LSN."""
        return Lsn(bytes(self.sql("SELECT MAX(start_lsn) FROM cdc.lsn_time_mapping")[0][0]))

    def events(self, instance: str) -> list[Lsn]:
        """The commit LSN of each row of a change table, in order."""
        rows = self.sql(f"SELECT [__$start_lsn] FROM cdc.[{instance}_CT] ORDER BY [__$start_lsn]")
        return [Lsn(bytes(value)) for (value,) in rows]

    def airflow_connection(self, login: str = "", password: str = "", **extra: Any) -> Connection:
        """The Airflow connection to this database."""
        return Connection(
            conn_id=CONN_ID,
            conn_type="mssql",
            host=self.server["host"],
            port=self.server["port"],
            login=login or self.server["user"],
            password=password or self.server["password"],
            schema=self.name,
            extra=json.dumps(extra),
        )

    def hook(self, login: str = "", password: str = "", **extra: Any) -> CountingHook:
        """A hook for this database."""
        return CountingHook(CONN_ID, connection=self.airflow_connection(login, password, **extra))

    def environment(self, login: str = "", password: str = "", port: int = 0) -> dict[str, str]:
        """The connection as Airflow finds it in the environment."""
        connection = self.airflow_connection(login, password)
        fields = {
            "conn_type": "mssql",
            "host": connection.host,
            "port": port or connection.port,
            "login": connection.login,
            "password": connection.password,
            "schema": connection.schema,
        }
        return {f"AIRFLOW_CONN_{CONN_ID.upper()}": json.dumps(fields)}

    def checkpoint(
        self,
        instance: CaptureInstance,
        position: Lsn,
        *,
        target: str = TARGET,
        age: datetime.timedelta = datetime.timedelta(0),
        failed: Failure | None = None,
    ) -> dict[str, str]:
        """A table's checkpoint as Airflow finds it in the environment."""
        identity = self.identity(instance.source, target)
        checkpoint = checkpoint_of(
            identity,
            {"mirror": SinkState(position, position)},
            FeedRef.of(instance),
            failed=failed,
            updated_at=datetime.datetime.now(datetime.UTC) - age,
        )
        return {f"AIRFLOW_VAR_{identity.variable.upper()}": to_json(checkpoint)}

    def identity(self, table: TableName, target: str = TARGET) -> Identity:
        """What names a table's checkpoint."""
        return Identity(CONN_ID, self.name, table, target)

    def close(self) -> None:
        """Drop the database."""
        self.sql("USE master")
        self.sql(f"ALTER DATABASE [{self.name}] SET SINGLE_USER WITH ROLLBACK IMMEDIATE")
        self.sql(f"DROP DATABASE [{self.name}]")
        self._connection.close()

    def _connect(self, database: str) -> Any:
        return pymssql.connect(
            server=self.server["host"],
            port=str(self.server["port"]),
            user=self.server["user"],
            password=self.server["password"],
            database=database,
            autocommit=True,
        )
