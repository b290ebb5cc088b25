"""The source database over JDBC: a few small metadata statements, and frames of rows."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Row, SparkSession

from airflow_provider_mssql_cdc.core import catalog
from airflow_provider_mssql_cdc.core.exceptions import InstanceChangedError, SchemaChangedError
from airflow_provider_mssql_cdc.core.lineage import LogHistory
from airflow_provider_mssql_cdc.core.lsn import Lsn
from airflow_provider_mssql_cdc.core.spec import SourceSpec, TableSpec
from airflow_provider_mssql_cdc.core.table import SAME_TIME, CaptureInstance, TableSchema, literal

log = logging.getLogger(__name__)

_PARTS = (
    "kind INT, object_id INT, ordinal INT, name STRING, column_id INT, type_name STRING, max_length INT,"
    " precision INT, scale INT, is_nullable BOOLEAN, collation_name STRING, is_computed BOOLEAN,"
    " encryption_type INT"
)

_DRIVER = "com.microsoft.sqlserver.jdbc.SQLServerDriver"


@dataclass(frozen=True, slots=True)
class Credentials:
    """User and password; shown nowhere.

    :param user: None where the connection properties bring another way to authenticate
    """

    user: str | None = field(repr=False)
    password: str | None = field(repr=False)

    def scrub(self, text: str) -> str:
        """Return the text without the password. The user's name is no secret, and may be a part of any word."""
        return text.replace(self.password, "***") if self.password else text


@dataclass(frozen=True, slots=True)
class SourceState:
    """What one statement says of an instance and of the LSN history.

    :param min_lsn: of the instance; None while it is NULL or zero
    :param history: with the LSNs that were asked for and the newest one
    """

    min_lsn: Lsn | None
    history: LogHistory

    @property
    def max_lsn(self) -> Lsn | None:
        """The newest mapped LSN; None while nothing is captured."""
        return self.history.max_lsn


@dataclass(frozen=True, slots=True)
class CaptureProgress:
    """How far the capture is, by the server's own clock.

    :param now: the server's local time
    :param max_lsn: newest mapped LSN
    :param max_time: its ``tran_end_time``
    :param empty_scans: log scans that found nothing since the server started; None where the login cannot see them
    """

    now: datetime.datetime
    max_lsn: Lsn | None
    max_time: datetime.datetime | None
    empty_scans: int | None


class Source:
    """One table's way to the source database.

    :param session: the table's own session
    :param credentials: of the login
    :param fetch_size: rows per round trip
    :param sees_fork: whether the login is known to see the database's recovery fork
    """

    def __init__(
        self,
        session: SparkSession,
        spec: SourceSpec,
        credentials: Credentials,
        fetch_size: int = 10_000,
        *,
        sees_fork: bool = False,
    ) -> None:
        self._session, self._spec, self._credentials, self._fetch_size = session, spec, credentials, fetch_size
        self._sees_fork = sees_fork

    def frame(self, query: str, schema: str) -> DataFrame:
        """Return the rows of a query, read by one connection when the frame is used.

        :param query: T-SQL without ORDER BY or WITH, since Spark makes it a derived table
        :param schema: Spark DDL of the columns, which overrides what the driver says of their types
        """
        options = {"applicationName": "airflow-provider-mssql-cdc", **self._spec.options}
        if self._credentials.user is not None:
            options["user"] = self._credentials.user
        if self._credentials.password is not None:
            options["password"] = self._credentials.password
        return (
            self._session.read.format("jdbc")
            .options(**options)
            .option("url", self._spec.jdbc_url)
            .option("driver", _DRIVER)
            .option("fetchsize", self._fetch_size)
            # the server compares texts by its collations, and Spark would not judge again
            .option("pushDownPredicate", "false")
            .option("dbtable", f"({query}) q")
            .option("customSchema", schema)
            .load()
        )

    def rows(self, query: str, schema: str) -> list[Row]:
        """Return the rows of a small query."""
        return self.frame(query, schema).collect()

    def state(self, instance: CaptureInstance, lsns: Sequence[Lsn] = ()) -> SourceState:
        """Read the bounds of the instance, and prove that it is still the planned instance.

        :param lsns: whose times are wanted too, beside that of the newest one
        :raises InstanceChangedError: if the instance was dropped or enabled anew
        """
        row = self._state(instance, lsns)
        history = _history(row, lsns)
        if any(lsn not in history.mapped for lsn in lsns if history.min_mapped is None or lsn >= history.min_mapped):
            # a cleanup may have removed it after the smallest one was read
            row = self._state(instance, lsns)
            history = _history(row, lsns)
        min_lsn = _lsn(row["min_lsn"])
        return SourceState(None if min_lsn is None or min_lsn.is_zero else min_lsn, history)

    def _state(self, instance: CaptureInstance, lsns: Sequence[Lsn]) -> Row:
        times = "".join(
            f", (SELECT {_text_of('tran_end_time')} FROM cdc.lsn_time_mapping WHERE start_lsn = {lsn}) AS time_{n}"
            for n, lsn in enumerate(lsns)
        )
        fork = "CAST(NULL AS varchar(36))"
        if self._sees_fork:
            fork = (
                "(SELECT UPPER(CONVERT(varchar(36), recovery_fork_guid)) FROM sys.database_recovery_status"
                " WHERE database_id = DB_ID())"
            )
        rows = self.rows(
            f"SELECT t.object_id, {_text_of('t.create_date')} AS create_date, {fork} AS fork,"
            # what sys.fn_cdc_get_min_lsn returns, but for logins that are not in the instance's gating role
            f" t.start_lsn AS min_lsn, n.start_lsn AS max_lsn, {_text_of('n.tran_end_time')} AS max_time,"
            f" (SELECT MIN(start_lsn) FROM cdc.lsn_time_mapping) AS min_mapped{times} FROM cdc.change_tables t"
            # at once: of two reads in one statement, the second may see what was captured in between
            " LEFT JOIN (SELECT TOP (1) start_lsn, tran_end_time FROM cdc.lsn_time_mapping ORDER BY start_lsn DESC) n"
            f" ON 1 = 1 WHERE t.capture_instance = {literal(instance.name)}",
            "object_id INT, create_date STRING, fork STRING, min_lsn BINARY, max_lsn BINARY, max_time STRING,"
            " min_mapped BINARY" + "".join(f", time_{n} STRING" for n in range(len(lsns))),
        )
        if len(rows) != 1 or not _same_instance(instance, rows[0]):
            raise InstanceChangedError(
                f"capture instance {instance.name} was dropped, or enabled anew, since the run was planned.",
                table=str(instance.source),
                advice="Run the task again.",
            )
        return rows[0]

    def parts(self, tables: str) -> list[Row]:
        """Return what the catalogue says of the columns and keys of instances, as ``core.catalog`` reads it.

        :param tables: T-SQL behind ``source_object_id``: which source tables are meant
        """
        return self.rows(catalog.columns(tables), _PARTS)

    def check_columns(self, table: TableSpec) -> None:
        """Prove that the captured columns are still those that were planned.

        :raises SchemaChangedError: with both column lists; what was captured since a column was dropped from the
            source is NULL there (docs: sys.sp_cdc_enable_table)
        """
        instance, planned = table.instance, table.schema
        parts = [p for p in self.parts(f"= {instance.source_object_id}") if p["object_id"] == instance.object_id]
        now = TableSchema(catalog.captured_columns(parts), planned.key)
        if now.hash != planned.hash:
            raise SchemaChangedError(
                "captured columns were changed while the table was copied.\n"
                f"  planned: {', '.join(planned.describe())}\n  now:     {', '.join(now.describe())}\n",
                table=str(table.name),
                advice="Nothing was loaded. Run the task again: it copies the table as it is then.",
            )

    def progress(self) -> CaptureProgress:
        """Return how far the capture is."""
        row = self.rows(
            f"SELECT {_text_of('GETDATE()')} AS now, n.max_lsn, {_text_of('m.tran_end_time')} AS max_time"
            " FROM (SELECT MAX(start_lsn) AS max_lsn FROM cdc.lsn_time_mapping) n"
            " LEFT JOIN cdc.lsn_time_mapping m ON m.start_lsn = n.max_lsn",
            "now STRING, max_lsn BINARY, max_time STRING",
        )[0]
        return CaptureProgress(
            _moment(row["now"]),
            _lsn(row["max_lsn"]),
            _moment(row["max_time"]) if row["max_time"] else None,
            self._empty_scans(),
        )

    def _empty_scans(self) -> int | None:
        # session 0 sums up all sessions since the server started (docs: sys.dm_cdc_log_scan_sessions)
        rows = self._rows_if_allowed(
            "SELECT empty_scan_count FROM sys.dm_cdc_log_scan_sessions WHERE session_id = 0",
            "empty_scan_count INT",
        )
        return rows[0]["empty_scan_count"] if rows else None

    def _rows_if_allowed(self, query: str, schema: str) -> list[Row]:
        """Return the rows of a query that a login may not be allowed, or a version not know; none where it fails."""
        try:
            return self.rows(query, schema)
        except Exception as error:
            # the text is in the server's language, so that it does not tell a missing right from another failure
            log.info("not known: %s", self._credentials.scrub(str(error)).partition("\n\tat ")[0])
            return []


def _history(row: Row, lsns: Sequence[Lsn]) -> LogHistory:
    max_lsn = _lsn(row["max_lsn"])
    times = {lsn: row[f"time_{n}"] for n, lsn in enumerate(lsns)}
    if max_lsn is not None:
        times[max_lsn] = row["max_time"]
    mapped = {lsn: _moment(time) for lsn, time in times.items() if time is not None}
    return LogHistory(max_lsn, _lsn(row["min_mapped"]), mapped, row["fork"])


def _text_of(moment: str) -> str:
    return f"CONVERT(varchar(23), {moment}, 121)"


def _lsn(value: bytearray | None) -> Lsn | None:
    return None if value is None else Lsn(bytes(value))


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def _same_instance(instance: CaptureInstance, row: Row) -> bool:
    created = _moment(row["create_date"]) if row["create_date"] else None
    return bool(
        row["object_id"] == instance.object_id
        and created is not None
        and abs(created - instance.create_date) < SAME_TIME
    )
