"""The copy with which a sink begins: read in parallel by key ranges, between two positions of the capture."""

from __future__ import annotations

import datetime
import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import ColumnMapping
from airflow_provider_mssql_cdc.core.conditions import pushed_filter
from airflow_provider_mssql_cdc.core.exceptions import CaptureLagError
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.lsn import Lsn
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.core.table import Column, quote
from airflow_provider_mssql_cdc.spark.files import Parquet, write_rows
from airflow_provider_mssql_cdc.spark.selecting import fulfils, with_salt
from airflow_provider_mssql_cdc.spark.source import CaptureProgress, Source, SourceState

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.5

_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_UNICODE = frozenset({"nchar", "nvarchar"})
_ANSI = frozenset({"char", "varchar"})
_COLLATION = re.compile(r"\w+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Copy:
    """A table's rows as they were at some moments between two positions.

    :param low: every change after it that the copy may lack is captured after it
    :param high: every change that the copy may hold is captured up to it
    :param rows_copied: their number
    :param witnesses: of the moments before the copy, at its end and at ``high``
    """

    files: Parquet
    low: Lsn
    high: Lsn
    rows_copied: int
    witnesses: tuple[Witness, ...]

    def rows(self) -> DataFrame:
        """Return the copied rows."""
        return self.files.rows()


def low_position(table: TableSpec, state: SourceState) -> Lsn:
    """Return the position before the copy: what is captured later is read as events.

    :raises CaptureLagError: while nothing is captured; no position can be named then
    """
    if state.min_lsn is None or state.max_lsn is None or state.max_lsn < state.min_lsn:
        raise CaptureLagError(
            f"capture instance {table.instance.name} was just enabled, and nothing is captured yet.",
            table=str(table.name),
            advice="Run the task again; if it stays so, see whether SQL Server Agent and the capture job run.",
        )
    return max(state.min_lsn.previous(), state.max_lsn)


def copy_table(
    source: Source,
    table: TableSpec,
    mappings: Sequence[ColumnMapping],
    folder: str,
    *,
    slice_rows: int,
    connections: int,
    capture_timeout: float,
    salt: str | None = None,
) -> Copy:
    """Copy the table to Parquet, and wait until the capture has passed the end of the copy.

    :param folder: for the rows; must not exist yet
    :param salt: of hashes
    :raises CaptureLagError: if it does not within ``capture_timeout`` seconds
    :raises SchemaChangedError: if captured columns were changed meanwhile: events up to the end would lack values
    """
    before = source.state(table.instance)
    low = low_position(table, before)
    targets = [
        F.expr(target.expression.replace("{}", mapping.alias)).alias(target.name)
        for mapping in mappings
        for target in mapping.targets
    ]
    rows = _read(source, table, mappings, slice_rows, connections)
    if table.selection.conditions:
        # the server has judged what it compares as Spark does; here all is judged
        rows = rows.where(fulfils(mappings, table.selection))
    files = write_rows(with_salt(rows, mappings, salt).select(*targets), folder)
    end = source.progress()
    high, newest = _captured_position(source, table, end, capture_timeout)
    source.check_columns(table)
    fork = before.history.recovery_fork
    later = [Witness(lsn, time, fork) for lsn, time in ((end.max_lsn, end.max_time), (high, newest)) if lsn and time]
    return Copy(files, low, high, files.rows().count(), (*before.history.witnesses(), *later))


def _read(
    source: Source, table: TableSpec, mappings: Sequence[ColumnMapping], slice_rows: int, connections: int
) -> DataFrame:
    read = [mapping for mapping in mappings if mapping.select]
    selected = ", ".join(f"{mapping.select} AS {mapping.alias}" for mapping in read)
    schema = ", ".join(f"{mapping.alias} {mapping.read_type}" for mapping in read)
    frames = [
        source.frame(f"SELECT {selected} FROM {_rows(table)}{where}", schema)
        for where in _ranges(source, table, slice_rows, connections)
    ]
    return reduce(DataFrame.unionAll, frames)


def _ranges(source: Source, table: TableSpec, slice_rows: int, connections: int) -> list[str]:
    """Return WHERE clauses that divide the table by the first key column, in the server's own order of its values."""
    first = table.schema.column(table.schema.key[0])
    text, value = key_bound(first)
    if connections == 1 or not text:
        return [""]
    key = quote(first.name)
    rows = source.rows(
        f"SELECT part, {text.format('MIN(k)')} AS low, COUNT_BIG(*) AS n FROM (SELECT {key} AS k,"
        f" (ROW_NUMBER() OVER (ORDER BY {key}) - 1) * {connections} / COUNT_BIG(*) OVER () AS part"
        f" FROM {_rows(table)}) p GROUP BY part",
        "part BIGINT, low STRING, n BIGINT",
    )
    if sum(row["n"] for row in rows) <= slice_rows:
        return [""]
    # NULLs or many equal values make bounds that are the same
    lows = [row["low"] for row in sorted(rows, key=lambda row: row["part"])]
    distinct = [low for low in dict.fromkeys(lows[1:]) if low is not None and low != lows[0]]
    return range_clauses(key, [value.format(low.replace("'", "''")) for low in distinct])


def _rows(table: TableSpec) -> str:
    """Return what is copied of the table: the rows that may fulfil the filter, as far as the server can tell."""
    where = pushed_filter(table.schema, table.selection.conditions)
    return f"(SELECT * FROM {table.name.quoted} WHERE {where}) r" if where else table.name.quoted


def range_clauses(key: str, bounds: Sequence[str]) -> list[str]:
    """Return WHERE clauses of which each row fulfils exactly one.

    A row belongs to the first bound that is above it, so it is irrelevant in which order the server sees the bounds:
    a conversion between code pages, or the sort rules of a collation, may change it.

    :param key: T-SQL of a column, which may be NULL
    :param bounds: T-SQL of values, none of them NULL
    """
    if not bounds:
        return [""]
    below = [f"{key} < {bound}" for bound in bounds]
    above = [f"{key} >= {bound}" for bound in bounds]
    clauses = [" AND ".join([*above[:i], below[i]]) for i in range(len(bounds))]
    clauses[0] += f" OR {key} IS NULL"
    return [f" WHERE {clause}" for clause in [*clauses, " AND ".join(above)]]


def key_bound(key: Column) -> tuple[str, str]:
    """Return how a key value is read as text, and how that text is written as a value; '' for other types."""
    if key.type in _NUMBERS:
        return "CONVERT(varchar(20), {})", "{}"
    if key.type == "uniqueidentifier":
        return "CONVERT(varchar(36), {})", "CONVERT(uniqueidentifier, '{}')"
    if key.type in _UNICODE and not key.is_lob:
        return "{}", "N'{}'"
    if key.type in _ANSI and not key.is_lob:
        # without a collation, the literal would be converted to the code page of the database
        collate = f" COLLATE {key.collation}" if _COLLATION.fullmatch(key.collation or "") else ""
        return "{}", f"CONVERT(varchar(8000), N'{{}}'{collate})"
    return "", ""


def _captured_position(
    source: Source, table: TableSpec, end: CaptureProgress, timeout: float
) -> tuple[Lsn, datetime.datetime | None]:
    """Wait until the capture has seen all that was committed before the copy's end.

    :return: its newest position then, and the time of that
    :raises CaptureLagError: if that lasts longer than ``timeout`` seconds
    :raises InstanceChangedError: if the instance is dropped meanwhile, so that the end cannot come
    """
    deadline = time.monotonic() + timeout
    while True:
        now = source.progress()
        min_lsn = source.state(table.instance).min_lsn
        if has_passed(end, now):
            # Read again: what the scans had found may have been mapped after the position was read.
            now = source.progress()
            if now.max_lsn is not None and min_lsn is not None and now.max_lsn >= min_lsn:
                return now.max_lsn, now.max_time
        if time.monotonic() > deadline:
            raise CaptureLagError(
                f"the capture did not pass the end of the copy, {end.now} by the server's clock, in {timeout:.0f} s;"
                f" its newest commit is {now.max_lsn} of {now.max_time}.",
                table=str(table.name),
                advice="See whether SQL Server Agent and the capture job run (sys.sp_cdc_help_jobs, "
                "sys.dm_cdc_log_scan_sessions, sys.dm_cdc_errors), and run the task again.",
            )
        log.info("%s: waiting for the capture to pass %s; it is at %s", table.name, end.now, now.max_time)
        time.sleep(_POLL_SECONDS)


def has_passed(end: CaptureProgress, now: CaptureProgress) -> bool:
    """Whether the capture has seen all that was committed before a moment.

    It has when it has mapped a new commit that is later by the server's own clock, or when two more log scans found
    nothing: the second of them began after that moment. A commit that was mapped before does not count, nor does the
    latest time of all: when clocks go back, commits of the hour before look later than the moment.
    """
    is_newer = now.max_lsn is not None and (end.max_lsn is None or now.max_lsn > end.max_lsn)
    if is_newer and now.max_time is not None and now.max_time > end.now:
        return True
    return end.empty_scans is not None and now.empty_scans is not None and now.empty_scans >= end.empty_scans + 2
