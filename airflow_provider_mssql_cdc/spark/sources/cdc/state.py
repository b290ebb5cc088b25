"""What SQL Server says of a capture instance and of its log: bounds, mapping, recovery fork, captured columns."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence

from pyspark.sql import Row

from airflow_provider_mssql_cdc.core import catalog
from airflow_provider_mssql_cdc.core.exceptions import InstanceChangedError, SchemaChangedError
from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.going_on import goes_on_with
from airflow_provider_mssql_cdc.core.lineage import LogHistory
from airflow_provider_mssql_cdc.core.passing import EMPTY_SCANS, NO_SCANS, CaptureProgress
from airflow_provider_mssql_cdc.core.position import Lsn, readable_from
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.schema_diff import differing
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.core.table import SAME_TIME, TableSchema, literal, lsn_literal
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.sources.base import SourceState
from airflow_provider_mssql_cdc.spark.sources.catalog import read_parts


def read_state(
    jdbc: Jdbc, instance: CaptureInstance, lsns: Sequence[Lsn] = (), *, sees_fork: bool = False
) -> tuple[SourceState, CaptureInstance, Lsn | None]:
    """Read the bounds of the instance, and prove that it is still the planned instance.

    :param lsns: whose times are wanted too, beside that of the newest one
    :param sees_fork: whether the login is known to see the database's recovery fork
    :returns: the state; the instance as it is now: an update of the server may have given it command ids; and where the
        last statement is that has altered the change table, which the capture does as it comes to that of the source
    :raises InstanceChangedError: if the instance was dropped or enabled anew
    """
    row = _state(jdbc, instance, lsns, sees_fork=sees_fork)
    lineage = _lineage(row, lsns)
    if any(lsn not in lineage.mapped for lsn in lsns if lineage.min_mapped is None or lsn >= lineage.min_mapped):
        # a cleanup may have removed it after the smallest one was read
        row = _state(jdbc, instance, lsns, sees_fork=sees_fork)
        lineage = _lineage(row, lsns)
    now = dataclasses.replace(instance, has_command_id=instance.has_command_id or row["command_id"] is not None)
    return SourceState(readable_from(_lsn(row["min_lsn"])), lineage), now, _lsn(row["altered"])


def _state(jdbc: Jdbc, instance: CaptureInstance, lsns: Sequence[Lsn], *, sees_fork: bool) -> Row:
    times = "".join(
        f", (SELECT {_text_of('tran_end_time')} FROM cdc.lsn_time_mapping"
        f" WHERE start_lsn = {lsn_literal(lsn)}) AS time_{n}"
        for n, lsn in enumerate(lsns)
    )
    fork = "CAST(NULL AS varchar(36))"
    if sees_fork:
        fork = (
            "(SELECT UPPER(CONVERT(varchar(36), recovery_fork_guid)) FROM sys.database_recovery_status"
            " WHERE database_id = DB_ID())"
        )
    rows = jdbc.rows(
        f"SELECT t.object_id, {_text_of('t.create_date')} AS create_date, {fork} AS fork,"
        f" CAST(COL_LENGTH({literal(instance.change_table)}, N'__$command_id') AS int) AS command_id,"
        # what sys.fn_cdc_get_min_lsn returns, but for logins that are not in the instance's gating role
        " t.start_lsn AS min_lsn, (SELECT MAX(h.ddl_lsn) FROM cdc.ddl_history h WHERE h.object_id = t.object_id"
        " AND h.required_column_update = 1) AS altered, n.start_lsn AS max_lsn,"
        f" {_text_of('n.tran_end_time')} AS max_time,"
        f" (SELECT MIN(start_lsn) FROM cdc.lsn_time_mapping) AS min_mapped{times} FROM cdc.change_tables t"
        # at once: of two reads in one statement, the second may see what was captured in between
        " LEFT JOIN (SELECT TOP (1) start_lsn, tran_end_time FROM cdc.lsn_time_mapping ORDER BY start_lsn DESC) n"
        f" ON 1 = 1 WHERE t.capture_instance = {literal(instance.name)}",
        "object_id INT, create_date STRING, fork STRING, command_id INT, min_lsn BINARY, altered BINARY,"
        " max_lsn BINARY, max_time STRING, min_mapped BINARY" + "".join(f", time_{n} STRING" for n in range(len(lsns))),
    )
    if len(rows) != 1 or not _same_instance(instance, rows[0]):
        raise InstanceChangedError(
            f"capture instance {instance.name} was dropped, or enabled anew, since the run was planned.",
            table=str(instance.source),
            advice="Run the task again.",
        )
    return rows[0]


def check_columns(jdbc: Jdbc, table: TableSpec) -> None:
    """Prove that the captured columns are still those that were planned.

    :raises SchemaChangedError: with what differs
    :raises InstanceChangedError: with the columns that were dropped; what was captured since is NULL there (docs:
        sys.sp_cdc_enable_table)
    """
    feed, planned = table.feed, table.schema
    parts = [
        p for p in read_parts(jdbc, catalog.columns(f"= {feed.source_object_id}")) if p["object_id"] == feed.object_id
    ]
    captured = catalog.captured_columns(parts)
    there = {c.column_id for c in (*captured, *catalog.uncaptured_columns(parts)) if not c.dropped}
    now = TableSchema(captured, planned.key)
    # where types are followed, a column may be planned in one that its change table no longer has
    same = goes_on_with(now, KeptSchema.of(planned), table.copy_by, widens=table.types, there=there) or now
    if (same.hash, same.kept) != (planned.hash, planned.kept):
        # a load goes on where columns were dropped
        error = InstanceChangedError if same.hash == planned.hash else SchemaChangedError
        raise error(
            f"captured columns were changed while the table was read.\n{differing(KeptSchema.of(planned), now)}",
            table=str(table.name),
            advice="Nothing was loaded. Run the task again: it copies the table as it is then.",
        )


def check_altered(jdbc: Jdbc, table: TableSpec, altered: Lsn, *, meanwhile: bool) -> None:
    """Prove that no column that is read was altered with the change table since the run was planned: some slices of a
    window, or chunks of a copy, would have its values of before, and some those of now.

    :param altered: where the statement is that did it
    :param meanwhile: it came while the job read: then also a type that is the same again may have rounded values
    :raises InstanceChangedError: if one was
    """
    why = "a statement may round values though another one has taken it back"
    try:
        check_columns(jdbc, table)
    except (SchemaChangedError, InstanceChangedError) as error:
        why, meanwhile = error.message, True
    if meanwhile:
        raise InstanceChangedError(
            f"the capture has come to an ALTER TABLE at {altered} since the run was planned: {why}",
            table=str(table.name),
            advice="Nothing of what was read was loaded. Run the task again: it reads it with the columns of now.",
        )


def read_progress(jdbc: Jdbc) -> CaptureProgress:
    """How far the capture is."""
    # one query costs Spark two connections and a plan, so both are asked at once, of a login that may
    rows = jdbc.rows_if_allowed(_progress(EMPTY_SCANS), _PROGRESS) or jdbc.rows(_progress(NO_SCANS), _PROGRESS)
    row = rows[0]
    return CaptureProgress(
        _moment(row["now"]),
        _lsn(row["max_lsn"]),
        _moment(row["max_time"]) if row["max_time"] else None,
        row["empty_scans"],
        _moment(row["latest"]) if row["latest"] else None,
        row["utc_offset"],
    )


_PROGRESS = "now STRING, utc_offset INT, max_lsn BINARY, max_time STRING, latest STRING, empty_scans INT"


def _progress(empty_scans: str) -> str:
    return (
        f"SELECT {_text_of('GETDATE()')} AS now, DATEPART(TZOFFSET, SYSDATETIMEOFFSET()) AS utc_offset, n.max_lsn,"
        f" {_text_of('m.tran_end_time')} AS max_time, {_text_of('n.latest')} AS latest, {empty_scans} AS empty_scans"
        " FROM (SELECT MAX(start_lsn) AS max_lsn, MAX(tran_end_time) AS latest FROM cdc.lsn_time_mapping) n"
        " LEFT JOIN cdc.lsn_time_mapping m ON m.start_lsn = n.max_lsn"
    )


def _lineage(row: Row, lsns: Sequence[Lsn]) -> LogHistory:
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
