"""The job spec that the operator writes; there is no secret in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from airflow_provider_mssql_cdc.core.changes import DEFAULT, HistoryOptions
from airflow_provider_mssql_cdc.core.codec import Format
from airflow_provider_mssql_cdc.core.copy_wanted import AUTO, AskedCopy, KnownCopy
from airflow_provider_mssql_cdc.core.entry_values import CHANGED, FAIL
from airflow_provider_mssql_cdc.core.feed import CaptureInstance, DdlChange, DroppedColumn, Feed, FeedRef
from airflow_provider_mssql_cdc.core.formats import ICEBERG
from airflow_provider_mssql_cdc.core.healing import Healing
from airflow_provider_mssql_cdc.core.initial import WITH_COPY, Initial
from airflow_provider_mssql_cdc.core.lineage import OtherPosition, Witness
from airflow_provider_mssql_cdc.core.marker import TaskRun
from airflow_provider_mssql_cdc.core.position import Cut, Position
from airflow_provider_mssql_cdc.core.schema_changes import ChangesSpec
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
    :param lost_after: set where the sink is loaded up to here, later changes are lost, and ``on_gap`` asks to start
        again: a mirror is replaced, a history goes on with R rows at the new low and a gap record; or they get the
        rows that changed
    :param asserted: names the order by which a person said that the target stands for ``read_through``, or for
        ``lost_after``, whatever its marker says; None where there is none, or a load has committed on it
    :param partition_by: Spark SQL partition expressions for a table that the load creates
    :param properties: table properties for a table that the load creates
    :param format: the target's, as ``core.target`` names it
    :param deletes: what a mirror does with deleted rows, as ``core.target`` names it
    :param history: what a history holds
    :param initial: with what it begins; not a time, which the operator has found the position of
    :param ddl_upto: the columns that it was last loaded with are those behind all DDL up to here
    :param rekeyed: it was loaded by another key, as the checkpoint says
    :param unfilled: target columns whose rows of before are not filled yet, as checkpoint and plan know
    :param closes_gaps: so it does with a gap that only its marker tells of: no position can be named in its place, or
        Change Tracking may heal it
    :param positions: of other kinds that the checkpoint has for where the sink stands
    :param applied: position of the marker that they count beside; None where there are none
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
    ddl_upto: Position | None = None
    rekeyed: bool = False
    unfilled: tuple[str, ...] = ()
    closes_gaps: bool = False
    positions: tuple[OtherPosition, ...] = ()
    applied: Position | None = None

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
class ChangedTable:
    """A source table whose schema events are written, whether anything else of it is loaded or not.

    :param feed: what it is read by, or was last; None where that is not known
    :param format: the target's, as ``core.target`` names it
    :param properties: table properties for a table that the job creates
    """

    name: TableName
    changes: ChangesSpec
    feed: FeedRef | None = None
    format: str = ICEBERG
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableSpec:
    """One source table with all its sinks.

    :param schema: what the sinks hold; its key is the one to use, the instance's or the user's
    :param unique_key: whether SQL Server itself enforces the key; else the first load looks for duplicates
    :param selection: what of the rows is loaded; the salt of its hashes comes by the Spark property
        ``spark.mssql_cdc.salt``
    :param feed: what its changes are read by
    :param ddl: all that is known of DDL on the feed's columns, in order
    :param altered_at: where the last statement was, when the run was planned, that has altered one of all columns that
        the feed captures; where it begins if there was none; None where nobody looked
    :param alternatives: the same table by its other feeds, where no checkpoint says which one its sinks are
        loaded from: the one that their markers name is read
    :param copies: names the folder of the table's copies; '' where a copy does not outlive the job
    :param copy: the one that the checkpoint knows
    :param protection: what the login reads masked, or filtered; None where it reads all
    :param asked: what a person asks of its copy
    :param copy_by: columns by which copies are cut, as the user names them; empty for the key
    :param grows: sinks that only add rows get the columns that they lack, as their markers say, with their next commit;
        all others go on with those that they have
    :param leaves_null: all sinks get them so
    :param fills: a copy fills the columns that these lack
    :param history_fill: which rows get an event in a history then, one of ``core.entry_values.HISTORY_FILL``
    :param loaded_with: hash to canonical JSON of other columns that sinks were loaded with, as the checkpoint knows
    :param grows_from: of sinks that get columns with their next commit, what they were loaded with; by shape
    :param waiting_ids: column_ids that wait to be asked for, as checkpoint and source say
    :param knows_waiting: the checkpoint says so; else it is lost, or this is the first sight
    :param unnamed_ids: column_ids of those that the entry would have to name to be loaded, as far as they came later
    :param widens: targets get the types of columns whose types have changed, where theirs hold them
    :param incompatible: what becomes of a type that theirs do not hold, one of ``INCOMPATIBLE_TYPES``
    :param lacks: what targets will call the columns that the feed does not capture, and that they are to get
    :param drops: columns that the source table has dropped, which targets are to drop, too; None where they keep them
    :param changes: schema events that are to be written; None where there are none
    :param source_object_id: of the table that its sinks were loaded from, as the checkpoint knows; None where it does
        not
    :param rekeys: sinks that were loaded by another key begin anew by this one
    :param healing: what heals gaps; None where nothing but a copy does
    :param named_key: the key that the entry names for a feed which has none of its own, whether it is the one to use or
        not
    """

    name: TableName
    feed: Feed
    schema: TableSchema
    sinks: tuple[SinkSpec, ...]
    unique_key: bool = True
    selection: Selection = EVERYTHING
    ddl: tuple[DdlChange, ...] = ()
    altered_at: Position | None = None
    alternatives: tuple[TableSpec, ...] = ()
    copies: str = ""
    copy: KnownCopy | None = None
    protection: str | None = None
    asked: AskedCopy | None = None
    copy_by: tuple[str, ...] = ()
    grows: bool = False
    leaves_null: bool = False
    fills: bool = False
    history_fill: str = CHANGED
    loaded_with: dict[str, str] = field(default_factory=dict)
    grows_from: dict[str, Chosen] = field(default_factory=dict)
    waiting_ids: tuple[int, ...] = ()
    knows_waiting: bool = False
    unnamed_ids: tuple[int, ...] = ()
    widens: bool = False
    changes: ChangesSpec | None = None
    source_object_id: int | None = None
    incompatible: str = FAIL
    lacks: tuple[str, ...] = ()
    rekeys: bool = False
    named_key: tuple[str, ...] = ()
    drops: tuple[DroppedColumn, ...] | None = None
    healing: Healing | None = None

    @property
    def types(self) -> str:
        """``widens`` of ``core.going_on.goes_on_with``."""
        return self.incompatible if self.widens else ""

    @property
    def changed(self) -> ChangedTable | None:
        """What is to be written of its schema events; None where there are none."""
        if self.changes is None:
            return None
        sink = self.sinks[0]
        return ChangedTable(self.name, self.changes, FeedRef.of(self.feed), sink.format, sink.properties)

    @property
    def altered_upto(self) -> Position | None:
        """Where the last statement is that has changed a captured column; None where none is known."""
        return max((change.lsn for change in self.ddl if change.requires_column_update), default=None)

    @property
    def followed_upto(self) -> Position | None:
        """The same, of a load that follows types: it has the columns behind that, though it may end before. The change
        table has their types already.
        """
        return self.altered_upto if self.widens else None


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
    :param copy_seconds: that copies take in this run, over all tables, after the changes; None goes on to their end
    :param copy_rows_per_second: that copies read at most, over all tables; None is without limit
    :param throttle_lag: seconds by which the capture may be late while copies read; None however late
    :param isolation: by which copies read, one of ``ISOLATIONS``
    :param fetch_size: rows per JDBC round trip
    :param capture_timeout: seconds that a first load waits for the capture to pass the end of its copy
    :param database: of the targets; None where they are tables of a lake
    :param witness: of the cut; None where there is none
    :param recovery_fork: of the database when the run was planned; None where the login does not see it
    :param run: that submits it
    :param dropped: tables that are there no more, and of which something is still to be written
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
    dropped: tuple[ChangedTable, ...] = ()

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
