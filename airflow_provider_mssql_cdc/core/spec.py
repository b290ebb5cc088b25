"""The job spec that the operator writes, and the receipt with which the Spark job answers: versioned, no secret."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import json
import types
import typing
from dataclasses import dataclass, field
from typing import Any, TypeVar

from airflow_provider_mssql_cdc.core.changes import DEFAULT, HistoryOptions
from airflow_provider_mssql_cdc.core.checkpoint import Witness
from airflow_provider_mssql_cdc.core.exceptions import SpecError
from airflow_provider_mssql_cdc.core.lsn import Lsn
from airflow_provider_mssql_cdc.core.selection import EVERYTHING, Selection
from airflow_provider_mssql_cdc.core.table import CaptureInstance, TableName, TableSchema
from airflow_provider_mssql_cdc.core.target import HARD, ICEBERG, display_name

VERSION = 1


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
        ``on_gap="resnapshot"`` asks to start again: a mirror is replaced, a history goes on with R rows at the new
        low and a gap record
    :param asserted: names the order by which a person said that the target stands for ``read_through``, or for
        ``lost_after``, whatever its marker says; None where there is none, or a load has committed on it
    :param partition_by: Spark SQL partition expressions for a table that the load creates
    :param properties: table properties for a table that the load creates
    :param format: the target's, as ``core.target`` names it
    :param deletes: what a mirror does with deleted rows, as ``core.target`` names it
    :param history: what a history holds
    """

    shape: str
    table: tuple[str, ...]
    read_through: Lsn | None
    expects: Lsn | None
    lost_after: Lsn | None = None
    asserted: str | None = None
    partition_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    format: str = ICEBERG
    deletes: str = HARD
    history: HistoryOptions = DEFAULT

    @property
    def name(self) -> str:
        """The target table for people."""
        return display_name(self.table)


@dataclass(frozen=True, slots=True)
class TableSpec:
    """One source table with all its sinks.

    :param schema: what the sinks hold; its key is the one to use, the instance's or the user's
    :param unique_key: whether SQL Server itself enforces the key; else the first load looks for duplicates
    :param selection: what of the rows is loaded; the salt of its hashes comes by the Spark property
        ``spark.mssql_cdc.salt``
    :param alternatives: the same table by its other capture instances, where no checkpoint says which one its sinks are
        loaded from: the one that their markers name is read
    """

    name: TableName
    instance: CaptureInstance
    schema: TableSchema
    sinks: tuple[SinkSpec, ...]
    unique_key: bool = True
    selection: Selection = EVERYTHING
    alternatives: tuple[TableSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplaySpec:
    """A window that was loaded before and is to be written again.

    :param suffix: added to the target table's name, which is then built anew; '' inserts what is missing in ``history``
    """

    after: Lsn
    upto: Lsn
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """Everything that one Spark application does.

    :param id: names the branches and folders of this job
    :param upto: the cut: the position to which all tables go
    :param work_dir: folder or URL, readable by Airflow and by Spark, for spec, receipt and staged rows
    :param connections: JDBC connections open at once, over all tables
    :param tables_at_once: tables loaded side by side
    :param slice_rows: change rows below which a window is not divided
    :param fetch_size: rows per JDBC round trip
    :param capture_timeout: seconds that a first load waits for the capture to pass the end of its copy
    :param database: of the targets; None where they are tables of a lake
    :param witness: of the cut; None where there is none
    :param recovery_fork: of the database when the run was planned; None where the login does not see it
    """

    id: str
    source: SourceSpec
    tables: tuple[TableSpec, ...]
    upto: Lsn
    work_dir: str
    replay: ReplaySpec | None = None
    connections: int = 8
    tables_at_once: int = 4
    slice_rows: int = 200_000
    fetch_size: int = 10_000
    capture_timeout: float = 900.0
    database: DatabaseSpec | None = None
    witness: Witness | None = None
    recovery_fork: str | None = None
    version: int = VERSION

    @property
    def receipt_path(self) -> str:
        """Where the job writes its receipt."""
        return f"{self.work_dir.rstrip('/')}/{self.id}/receipt.json"

    @property
    def path(self) -> str:
        """Where the operator writes this spec."""
        return f"{self.work_dir.rstrip('/')}/{self.id}/spec.json"

    @property
    def staging_path(self) -> str:
        """Folder of the staged rows; each attempt at a table has one of its own in it, and removes it at the end."""
        return f"{self.work_dir.rstrip('/')}/{self.id}/staged"


@dataclass(frozen=True, slots=True)
class Gap:
    """What a history lacks: the changes after ``after`` up to ``upto``, which were purged before they were loaded.

    At ``upto`` the history goes on with a row of operation R for each row that the table had then. Of versions it is
    the end of the new copy: up to there one of before may count for longer than it did.
    """

    after: Lsn
    upto: Lsn


@dataclass(frozen=True, slots=True)
class Marker:
    """What a sink's own commit says is loaded.

    :param position: everything up to here is in the table
    :param instance: name of the capture instance, with ``object_id`` of its change table and its ``create_date``
    :param window_after: start of the window that this commit added; None for a first load
    :param events: number of events by kind (inserted, updated, deleted, copied)
    :param gaps: all that a history lacks, from its beginning; handed on from marker to marker
    :param asserted: names the last order of a person on which this line of loads stands; handed on too
    :param history: what a history holds
    :param selection_hash: of what of the rows is loaded; None if all is, as it is
    :param selection: that as text
    :param deletes: what a mirror does with deleted rows; None in other shapes
    """

    position: Lsn
    witness: Witness | None
    server: str
    database: str
    table: TableName
    instance: str
    object_id: int
    schema_hash: str
    window_after: Lsn | None
    events: dict[str, int]
    spec_id: str
    read_mode: str = "change_table"
    create_date: datetime.datetime | None = None
    gaps: tuple[Gap, ...] = ()
    asserted: str | None = None
    history: HistoryOptions = DEFAULT
    selection_hash: str | None = None
    selection: tuple[str, ...] = ()
    deletes: str | None = None
    version: int = VERSION


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
    """

    shape: str
    before: Lsn | None
    after: Marker | None
    outcome: str
    read_through: Lsn


@dataclass(frozen=True, slots=True)
class TableReceipt:
    """What became of one table.

    :param counts: events, inserted, updated, deleted, copied (rows of a first load)
    :param seconds: wall time by step
    :param windows: the windows read, as text
    """

    name: TableName
    sinks: tuple[SinkReceipt, ...] = ()
    error: JobError | None = None
    counts: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    windows: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Receipt:
    """The job's answer; without it nothing is believed."""

    spec_id: str
    tables: tuple[TableReceipt, ...]
    application_id: str = ""
    seconds: float = 0.0
    version: int = VERSION


_T = TypeVar("_T")


def to_json(value: Any) -> str:
    """Return a spec, receipt or marker as JSON."""
    return json.dumps(_plain(value), indent=1, sort_keys=True)


def from_json(kind: type[_T], text: str) -> _T:
    """Read a spec, receipt or marker.

    :raises SpecError: if it is damaged, or of another version
    """
    try:
        data = json.loads(text)
        version = data["version"]
    except (ValueError, TypeError, KeyError) as error:
        raise SpecError(f"not a readable {kind.__name__}: {error!r}.") from error
    if version != VERSION:
        raise SpecError(
            f"a {kind.__name__} of version {version}, where version {VERSION} is understood.",
            advice="Airflow and Spark must run the same version of airflow-provider-mssql-cdc.",
        )
    try:
        return typing.cast(_T, _typed(kind, data))
    except (ValueError, TypeError, KeyError) as error:
        raise SpecError(f"a damaged {kind.__name__}: {error!r}.") from error


def _plain(value: Any) -> Any:
    if isinstance(value, Lsn):
        return str(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _typed(kind: Any, value: Any) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return None if value is None else _typed(next(a for a in arguments if a is not type(None)), value)
    if kind is Lsn:
        return Lsn.parse(value)
    if kind is datetime.datetime:
        return datetime.datetime.fromisoformat(value)
    if origin is tuple:
        return tuple(_typed(arguments[0], item) for item in value)
    if origin is dict:
        return {key: _typed(arguments[1], item) for key, item in value.items()}
    if dataclasses.is_dataclass(kind):
        fields: Any = kind
        hints = _hints(fields)
        return fields(**{name: _typed(hints[name], value[name]) for name in hints if name in value})
    return kind(value) if kind is float else value
