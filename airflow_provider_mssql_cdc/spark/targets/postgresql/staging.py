"""The rows of one attempt on their way into PostgreSQL: written by Spark, in parallel, into a table of their own."""

from __future__ import annotations

import datetime
import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.exceptions import TargetError, TargetUnavailableError
from airflow_provider_mssql_cdc.spark.shapes.fold import column
from airflow_provider_mssql_cdc.spark.targets import OldRows, Write
from airflow_provider_mssql_cdc.spark.targets.postgresql.connection import Database, in_schema
from airflow_provider_mssql_cdc.spark.targets.postgresql.errors import NUL
from airflow_provider_mssql_cdc.spark.targets.postgresql.types import ColumnType

if TYPE_CHECKING:
    import psycopg

log = logging.getLogger(__name__)

PREFIX = "mssql_cdc_staging_"
"""Begins the names of the tables."""

_AGE = datetime.timedelta(days=1)
_TIME = "%Y%m%d%H%M%S"
NUMBER = "_mssql_cdc_n"
"""The column that numbers the rows from 0 on."""

_SENTINEL = -1
_BATCH = 5000


@dataclass(frozen=True, slots=True)
class Staging:
    """A table whose columns are ``c0``, ``c1`` and so on, in the order of the target's, and ``_op``.

    :param columns: of the target
    """

    database: Database
    schema: str
    name: str
    columns: Mapping[str, ColumnType]

    @property
    def sql_name(self) -> str:
        """The name in PostgreSQL's SQL."""
        return in_schema(self.schema, self.name)

    @property
    def numbered(self) -> dict[str, str]:
        """The name here of each of the target's columns."""
        return {name: f"c{number}" for number, name in enumerate(self.columns)}

    @property
    def proof(self) -> str:
        """A condition, which PostgreSQL checks before all others since it names no column: it fails the query where the
        server has lost the rows.
        """
        return f"1 / (SELECT count(*) FROM {self.sql_name} WHERE {NUMBER} = {_SENTINEL}) = 1"

    def value(self, name: str) -> str:
        """The value of one of the target's columns in SQL, where this table is called ``s``."""
        return self.columns[name].of_staged(f"s.{self.numbered[name]}")

    def create(self) -> None:
        """Create the table."""
        declared = ", ".join(f"{number} {self.columns[name].staged_type}" for name, number in self.numbered.items())
        with self.database.transaction() as cursor:
            cursor.execute(
                # a task that Spark runs again gives its rows the same numbers, so that none can come in twice
                f"CREATE UNLOGGED TABLE {self.sql_name} ({NUMBER} bigint PRIMARY KEY, {declared}, _op text)"
            )
            # A crash of the server empties unlogged tables; that this row is still there proves that none came.
            cursor.execute(f"INSERT INTO {self.sql_name} ({NUMBER}) VALUES ({_SENTINEL})")

    def fill(self, write: Write, *, key: Sequence[str], connections: int) -> None:
        """Write the rows.

        :param key: columns that identify a row of the source, for messages
        :param connections: JDBC connections open at once
        :raises TargetError: if PostgreSQL does not take them
        """
        staged = [F.monotonically_increasing_id().alias(NUMBER)]
        staged += [self.columns[name].write(column(name)).alias(number) for name, number in self.numbered.items()]
        if write.old is OldRows.OF_KEY:
            staged.append(F.col("_op"))
        try:
            (
                write.rows.select(*staged)
                .write.format("jdbc")
                .options(**self.database.jdbc_options(), reWriteBatchedInserts="true")
                .option("dbtable", self.sql_name)
                .option("batchsize", _BATCH)
                .option("numPartitions", connections)
                .mode("append")
                .save()
            )
        except Exception as failure:
            error = self.database.error_of_spark(failure)
            if error is None:
                raise
            raise (self._nul_error(write, key) if NUL in str(failure) else None) or error from None

    def take_sentinel(self, cursor: psycopg.Cursor[Any]) -> None:
        """Prove, within the transaction that takes the rows, that they are all there.

        :raises TargetUnavailableError: if the server has lost them
        """
        cursor.execute(f"DELETE FROM {self.sql_name} WHERE {NUMBER} = {_SENTINEL}")
        if cursor.rowcount != 1:
            raise TargetUnavailableError(
                f"{self.database.table}: the staged rows are gone: PostgreSQL crashed meanwhile, or a standby took its "
                "place.",
                advice="Run the task again.",
            )

    def drop(self) -> None:
        """Drop the table, if that is possible; else a later job does it."""
        try:
            with self.database.transaction(lock_timeout="1s") as cursor:
                cursor.execute(f"DROP TABLE IF EXISTS {self.sql_name}")
        except TargetError as error:
            log.warning("%s was not dropped: %s", self.name, error)

    def _nul_error(self, write: Write, key: Sequence[str]) -> TargetError | None:
        """The error that names a NUL character, which PostgreSQL's text cannot hold (docs: Character Types)."""
        texts = [name for name, type_ in self.columns.items() if type_.spark == "STRING"]
        identity = [name for name in key or ("_lsn", "_command_id") if name in self.columns]
        holders = F.array(*(F.when(column(name).contains("\0"), F.lit(name)) for name in texts))
        rows = (
            write.rows.select(
                F.array_compact(holders).alias("found"),
                *(column(name).alias(f"k{number}") for number, name in enumerate(identity)),
            )
            .where(F.size("found") > 0)
            .limit(1)
            .collect()
        )
        if not rows:
            return None
        row = ", ".join(f"{name}={value!r}" for name, value in zip(identity, rows[0][1:], strict=True))
        return TargetError(
            f"{self.database.table}: column {rows[0]['found'][0]!r} of the row with {row} holds the character NUL, "
            "which PostgreSQL's text cannot hold.",
            advice="Take it out at the source, or leave the column out of the capture instance "
            "(@captured_column_list).",
        )


def new_name(spec_id: str) -> str:
    """A name for an attempt of a job, which tells when it was made."""
    now = datetime.datetime.now(datetime.UTC).strftime(_TIME)
    return f"{PREFIX}{spec_id[:20]}_{now}{secrets.token_hex(3)}"


def drop_old(database: Database, schema: str) -> None:
    """Drop the tables that jobs left in a schema a day ago or earlier."""
    limit = datetime.datetime.now(datetime.UTC) - _AGE
    with database.transaction(reading=True) as cursor:
        found = cursor.execute(
            "SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = %s AND c.relkind = 'r' AND starts_with(c.relname, %s)",
            (schema, PREFIX),
        ).fetchall()
    for (name,) in found:
        made = _made_at(name)
        if made is not None and made < limit:
            Staging(database, schema, name, {}).drop()


def _made_at(name: str) -> datetime.datetime | None:
    try:
        made = datetime.datetime.strptime(name.rpartition("_")[2][:14], _TIME)
    except ValueError:
        return None
    return made.replace(tzinfo=datetime.UTC)
