"""The job spec that the operator writes, and the receipt with which the Spark job answers: no secret in either."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from airflow_provider_mssql_cdc.core.changes import DEFAULT, HistoryOptions
from airflow_provider_mssql_cdc.core.codec import Format
from airflow_provider_mssql_cdc.core.copy_wanted import AUTO, AskedCopy, KnownCopy
from airflow_provider_mssql_cdc.core.feed import CaptureInstance, DdlChange, Feed
from airflow_provider_mssql_cdc.core.formats import ICEBERG
from airflow_provider_mssql_cdc.core.initial import WITH_COPY, Initial
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.marker import Marker, TaskRun
from airflow_provider_mssql_cdc.core.position import Cut, Position
from airflow_provider_mssql_cdc.core.selection import EVERYTHING, Selection
from airflow_provider_mssql_cdc.core.shapes import HARD
from airflow_provider_mssql_cdc.core.table import TableName, TableSchema
from airflow_provider_mssql_cdc.core.target import display_name


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """Where the job reads. User and password come by the Spark properties ``spark.mssql_cdc.user`` and
    ``spark.mssql_cdc.password``, from a file that only the submitting process can read.

    :param server: host and port as in the Airflow connection, for the marker's identity
    :param options: further mssql-jdbc connection properties, none of them secret
    :param timezone: IANA zone of the server's clock; None where it is not known
    """

    server: str
    database: str
    jdbc_url: str
    options: dict[str, str] = field(default_factory=dict)
    timezone: str | None = None


@dataclass(frozen=True, slots=True)
class DatabaseSpec:
    """The database that a job writes to, where the target is one. User and password come by the Spark properties
    ``spark.mssql_cdc.target_user`` and ``spark.mssql_cdc.target_password``.

    :param options: further settings of the connection, as libpq names them, none of them secret
    """

    host: str
    port: int
    database: str
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """One shape of one table.

    :param table: catalog, namespace and table of the target; or the URL of a folder, and the table in it; or the
        Airflow connection, the schema and the table in it
    :param read_through: the window's start, exclusive; None for a first load
    :param expects: position of the marker last seen; None for a first load
    :param lost_after: set where the sink is loaded up to here, later changes were purged, and
        ``on_gap="copy"`` asks to start again: a mirror is replaced, a history goes on with R rows at the new
        low and a gap record
    :param asserted: names the order by which a person said that the target stands for ``read_through``, or for
        ``lost_after``, whatever its marker says; None where there is none, or a load has committed on it
    :param partition_by: Spark SQL partition expressions for a table that the load creates
    :param properties: table properties for a table that the load creates
    :param format: the target's, as ``core.target`` names it
    :param deletes: what a mirror does with deleted rows, as ``core.target`` names it
    :param history: what a history holds
    :param initial: with what it begins; not a time, which the operator has found the position of
    """

    shape: str
    table: tuple[str, ...]
    read_through: Position | None
    expects: Position | None
    lost_after: Position | None = None
    asserted: str | None = None
    partition_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    format: str = ICEBERG
    deletes: str = HARD
    history: HistoryOptions = DEFAULT
    initial: Initial = WITH_COPY

    @property
    def name(self) -> str:
        """The target table for people."""
        return display_name(self.table)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The columns of a load, and what of the rows is loaded."""

    schema: TableSchema
    selection: Selection = EVERYTHING


@dataclass(frozen=True, slots=True)
class TableSpec:
    """One source table with all its sinks.

    :param schema: what the sinks hold; its key is the one to use, the instance's or the user's
    :param unique_key: whether SQL Server itself enforces the key; else the first load looks for duplicates
    :param selection: what of the rows is loaded; the salt of its hashes comes by the Spark property
        ``spark.mssql_cdc.salt``
    :param feed: what its changes are read by
    :param ddl: all that is known of DDL on the feed's columns, in order
    :param alternatives: the same table by its other feeds, where no checkpoint says which one its sinks are
        loaded from: the one that their markers name is read
    :param copies: names the folder of the table's copies; '' where a copy does not outlive the job
    :param copy: the one that the checkpoint knows
    :param protection: what the login reads masked, or filtered; None where it reads all
    :param asked: what a person asks of its copy
    :param copy_by: columns by which copies are cut, as the user names them; empty for the key
    :param grows: sinks that only add rows get the columns that they lack, as their markers say, with their next commit;
        all others go on with those that they have
    :param fills: a copy fills the columns that these lack
    :param loaded_with: hash to canonical JSON of other columns that sinks were loaded with, as the checkpoint knows
    :param grows_from: of sinks that get columns with their next commit, what they were loaded with; by shape
    :param waiting_ids: column_ids that wait to be asked for, as checkpoint and source say
    """

    name: TableName
    feed: Feed
    schema: TableSchema
    sinks: tuple[SinkSpec, ...]
    unique_key: bool = True
    selection: Selection = EVERYTHING
    ddl: tuple[DdlChange, ...] = ()
    alternatives: tuple[TableSpec, ...] = ()
    copies: str = ""
    copy: KnownCopy | None = None
    protection: str | None = None
    asked: AskedCopy | None = None
    copy_by: tuple[str, ...] = ()
    grows: bool = False
    fills: bool = False
    loaded_with: dict[str, str] = field(default_factory=dict)
    grows_from: dict[str, Chosen] = field(default_factory=dict)
    waiting_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplaySpec:
    """A window that was loaded before and is to be written again.

    :param suffix: added to the target table's name, which is then built anew; '' inserts what is missing in ``history``
    """

    after: Position
    upto: Position
    suffix: str = ""


def _from_version_1(data: Mapping[str, Any]) -> dict[str, Any]:
    def sink(found: Mapping[str, Any]) -> dict[str, Any]:
        kept = {name: value for name, value in found.items() if name != "vouched"}
        return {**kept, "asserted": found.get("vouched")}

    def table(found: Mapping[str, Any]) -> dict[str, Any]:
        others = found.get("alternatives", ())
        return {**found, "sinks": [*map(sink, found["sinks"])], "alternatives": [*map(table, others)]}

    witness = (found := data.get("witness")) and {**found, "kind": Witness.KIND}
    return {**data, "tables": [*map(table, data["tables"])], "witness": witness}


def _from_version_2(data: Mapping[str, Any]) -> dict[str, Any]:
    def table(found: Mapping[str, Any]) -> dict[str, Any]:
        kept = {name: value for name, value in found.items() if name not in ("instance", "alternatives")}
        feed = {**found["instance"], "kind": CaptureInstance.KIND}
        return {**kept, "feed": feed, "alternatives": [*map(table, found.get("alternatives", ()))]}

    return {**data, "tables": [*map(table, data["tables"])]}


@dataclass(frozen=True, slots=True)
class JobSpec:
    """Everything that one Spark application does.

    :param id: names the branches and folders of this job
    :param upto: the cut: the position to which all tables go
    :param work_dir: folder or URL, readable by Airflow and by Spark, for spec, receipt and staged rows
    :param connections: JDBC connections open at once, over all tables
    :param tables_at_once: tables loaded side by side
    :param slice_rows: change rows below which a window is not divided
    :param copy_rows: of the first chunks of a copy, at least
    :param copy_chunk_seconds: that a chunk is to take, which later ones are made for; None leaves them as they are
    :param copy_seconds: that copies take in this run, over all tables, once the changes are loaded; None goes on to
        their end
    :param copy_rows_per_second: that copies read at most, over all tables; None is without limit
    :param throttle_lag: seconds by which the capture may be late while copies read; None however late
    :param isolation: by which copies read, one of ``ISOLATIONS``
    :param fetch_size: rows per JDBC round trip
    :param capture_timeout: seconds that a first load waits for the capture to pass the end of its copy
    :param database: of the targets; None where they are tables of a lake
    :param witness: of the cut; None where there is none
    :param recovery_fork: of the database when the run was planned; None where the login does not see it
    :param run: that submits it
    """

    id: str
    source: SourceSpec
    tables: tuple[TableSpec, ...]
    upto: Cut
    work_dir: str
    replay: ReplaySpec | None = None
    connections: int = 8
    tables_at_once: int = 4
    slice_rows: int = 200_000
    copy_rows: int = 200_000
    copy_chunk_seconds: float | None = 30.0
    copy_seconds: float | None = None
    copy_rows_per_second: float | None = None
    throttle_lag: float | None = None
    isolation: str = AUTO
    fetch_size: int = 10_000
    capture_timeout: float = 900.0
    database: DatabaseSpec | None = None
    witness: Witness | None = None
    recovery_fork: str | None = None
    run: TaskRun | None = None

    FORMAT: ClassVar[Format] = Format("job spec", 3, "0.3.0", {1: _from_version_1, 2: _from_version_2})

    @property
    def receipt_path(self) -> str:
        """Where the job writes its receipt."""
        return f"{self.work_dir.rstrip('/')}/{self.id}/receipt.json"

    @property
    def windows_path(self) -> str:
        """Where a job that goes on with copies says what it has loaded before."""
        return f"{self.work_dir.rstrip('/')}/{self.id}/windows.json"

    @property
    def path(self) -> str:
        """Where the operator writes this spec."""
        return f"{self.work_dir.rstrip('/')}/{self.id}/spec.json"

    def copies_path(self, table: TableSpec) -> str | None:
        """Where the table's copies lie; None where they do not outlive the job."""
        return f"{self.work_dir.rstrip('/')}/copies/{table.copies}" if table.copies else None

    @property
    def staging_path(self) -> str:
        """Folder of the staged rows; each attempt at a table has one of its own in it, and removes it at the end."""
        return f"{self.work_dir.rstrip('/')}/{self.id}/staged"


EVERY = "*"
"""Stands for every shape of a table."""


@dataclass(frozen=True, slots=True)
class JobError:
    """Why a table failed in the job.

    :param kind: class name in ``core.exceptions``, or of the foreign exception
    :param permanent: whether a retry is bound to fail again
    """

    kind: str
    message: str
    permanent: bool


@dataclass(frozen=True, slots=True)
class SinkReceipt:
    """What became of one sink.

    :param before: position of the marker found; None where there was none
    :param after: the marker now in the table
    :param outcome: ``loaded``, ``first_load``, ``already`` (the marker was at or past the cut), ``empty``, or
        ``replayed`` (a window that was loaded before was written again; the marker stays)
    :param read_through: everything up to here is loaded or was proven empty
    :param schema: canonical JSON of the columns that it goes on with, where these are not the table's
    """

    shape: str
    before: Position | None
    after: Marker | None
    outcome: str
    read_through: Position
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class CopyingReceipt:
    """A copy that the next run goes on with.

    :param shapes: that wait for it
    :param low: every change after it is read beside the copy
    :param position: up to here they are kept
    :param chunks: that are read
    :param rows: of these
    :param waits_for: why the copy is not at its end though all rows are read; None where some are not
    :param waits_after: a position behind which it may be at its end
    :param paused: a person wants no rows to be read now
    :param expected: rows that the table was said to have when the copy was begun
    :param begun_at: when that was
    :param last: the key up to which rows are read, as text; None where it is masked, or the table is one chunk
    :param highest: the highest key that is to be read
    :param mends: shape to why it goes on with nothing but the copy
    :param fills: the columns that it fills; empty for a copy of whole rows
    :param suffix: behind the name of the folder of the table's copies
    """

    id: str
    shapes: tuple[str, ...]
    low: Position
    position: Position
    chunks: int
    rows: int
    waits_for: str | None = None
    waits_after: Position | None = None
    paused: bool = False
    expected: int = 0
    begun_at: datetime.datetime | None = None
    last: str | None = None
    highest: str | None = None
    mends: dict[str, str] = field(default_factory=dict)
    fills: tuple[str, ...] = ()
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class TableReceipt:
    """What became of one table.

    :param failed: shape to why that sink was not loaded; ``EVERY`` for all of which nothing else is said
    :param counts: events, inserted, updated, deleted, copied (rows of a first load)
    :param seconds: wall time by step
    :param windows: the windows read, as text
    :param copying: what is left for the next run; None where nothing is
    :param ended_copy: id of the copy that a person asked for and how it ended, once nothing is left to do with it
    """

    name: TableName
    sinks: tuple[SinkReceipt, ...] = ()
    failed: dict[str, JobError] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    windows: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    copying: CopyingReceipt | None = None
    ended_copy: str | None = None

    @property
    def errors(self) -> list[JobError]:
        """All errors, each once."""
        return list(dict.fromkeys(self.failed.values()))

    @property
    def error(self) -> JobError | None:
        """The first error; None if all sinks were loaded."""
        return next(iter(self.failed.values()), None)

    @property
    def waiting_ids(self) -> set[int]:
        """The column_ids that wait to be asked for, as the markers say."""
        return {id_ for sink in self.sinks if sink.after is not None for id_ in sink.after.waiting_ids}

    def error_of(self, shape: str) -> JobError | None:
        """Why a sink was not loaded; None if it was."""
        if any(sink.shape == shape for sink in self.sinks):
            return None
        return self.failed.get(shape, self.failed.get(EVERY))


def _failed_tables(data: Mapping[str, Any]) -> dict[str, Any]:
    """A receipt of before version 3, whose failures are the tables'."""

    def table(found: Mapping[str, Any]) -> dict[str, Any]:
        error = found.get("error")
        kept = {name: value for name, value in found.items() if name != "error"}
        return {**kept, "failed": {EVERY: error} if error else {}}

    return {**data, "tables": [*map(table, data["tables"])]}


@dataclass(frozen=True, slots=True)
class Receipt:
    """The job's answer; without it nothing is believed."""

    spec_id: str
    tables: tuple[TableReceipt, ...]
    application_id: str = ""
    seconds: float = 0.0

    FORMAT: ClassVar[Format] = Format("receipt", 3, "0.3.0", {1: dict, 2: _failed_tables})
