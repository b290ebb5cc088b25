"""What a source database says of itself: status, matched tables, probes of its change tables, the Agent's health."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.table import TableName

AZURE_SQL_DATABASE = 5
"""``SERVERPROPERTY('EngineEdition')`` of Azure SQL Database: neither Agent nor msdb, and its clock is UTC (docs)."""


@dataclass(frozen=True, slots=True)
class DatabaseStatus:
    """One row about the database that the connection names.

    :param name: as the server spells it
    :param user: database user of the login, for the GRANT in an advice
    :param cdc_enabled: ``sys.databases.is_cdc_enabled``
    :param max_lsn: largest LSN of ``cdc.lsn_time_mapping``; None while nothing is captured, or CDC is off
    :param max_lsn_time: its ``tran_end_time``, in the server's local time
    :param min_mapped_lsn: smallest LSN of ``cdc.lsn_time_mapping``
    :param retention_minutes: of the cleanup job; None where the login cannot see it
    :param server_time: the server's local time, without a zone
    :param utc_offset_minutes: of the server's clock now; says nothing of other days
    :param engine_edition: ``SERVERPROPERTY('EngineEdition')``
    :param recovery_fork_guid: of ``sys.database_recovery_status``; None where the login cannot see it
    :param max_text_repl_size: bytes of a LOB above which a write to a tracked table fails, -1 for no limit; None
        where the login cannot see it
    """

    name: str
    user: str
    cdc_enabled: bool
    max_lsn: Lsn | None
    max_lsn_time: datetime.datetime | None
    min_mapped_lsn: Lsn | None
    retention_minutes: int | None
    server_time: datetime.datetime
    utc_offset_minutes: int
    collation: str
    version: str
    edition: str
    engine_edition: int
    recovery_fork_guid: str | None
    max_text_repl_size: int | None

    @property
    def major_version(self) -> int:
        """13 for SQL Server 2016, 14 for 2017, 15 for 2019, 16 for 2022, 17 for 2025."""
        return int(self.version.split(".")[0])


@dataclass(frozen=True, slots=True, order=True)
class SourceTable:
    """A user table that a pattern matched.

    :param tracked: ``sys.tables.is_tracked_by_cdc``
    """

    name: TableName
    object_id: int
    tracked: bool


@dataclass(frozen=True, slots=True)
class Matches:
    """The tables that patterns stand for.

    :param tables: by name, each once
    :param empty_patterns: patterns that match nothing, as given
    :param by: table to the places, from 0, of the patterns that match it
    """

    tables: tuple[SourceTable, ...]
    empty_patterns: tuple[str, ...] = ()
    by: Mapping[TableName, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Survey:
    """All that a run must know of its database before it plans.

    :param instances: of the matched tables, complete, ordered by table and ``create_date``
    :param missing: tables that a pattern without ``*`` names, and that are not there or cannot be seen
    """

    status: DatabaseStatus
    matches: Matches
    instances: tuple[CaptureInstance, ...]
    missing: tuple[TableName, ...] = ()

    def instances_of(self, table: SourceTable) -> tuple[CaptureInstance, ...]:
        """The table's capture instances, oldest first; at most two (docs)."""
        return tuple(i for i in self.instances if i.source_object_id == table.object_id)


@dataclass(frozen=True, slots=True)
class ChangeTables:
    """What one look at the change tables found.

    :param cut: the LSN up to which it looked, that of a commit as far as the mapping reaches back; None where none
        was given and nothing is captured
    :param newest: capture instance to its newest event within (after, cut]; an instance without events is absent
    :param min_lsns: object_id of the change table to min LSN, for all instances of the database, read after the
        events: cleanup raises the mark before it deletes
    :param witness: of the cut; None where the mapping does not reach back to it
    :param min_mapped_lsn: smallest LSN of ``cdc.lsn_time_mapping``
    :param mapped: those of the LSNs asked for that are mapped, with their times (server-local)
    """

    cut: Lsn | None
    newest: dict[str, Lsn]
    min_lsns: dict[int, Lsn | None]
    witness: Witness | None = None
    min_mapped_lsn: Lsn | None = None
    mapped: dict[Lsn, datetime.datetime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Transaction:
    """One row of ``cdc.lsn_time_mapping`` that is no dummy. Times are the server's local times."""

    lsn: Lsn
    begin_time: datetime.datetime | None
    end_time: datetime.datetime | None
    transaction_id: bytes


class Running(enum.Enum):
    """Whether something runs, as far as the login can see."""

    RUNNING = "running"
    STOPPED = "stopped"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class AgentHealth:
    """Whether changes are being captured. No row and no right mean unknown, never stopped.

    :param detail: one line for a log or an error
    :param fails: the newest log scan has failed, as the line says
    """

    agent: Running
    capture_job: Running
    detail: str
    fails: bool = False


class TimeOperator(enum.Enum):
    """The relational operators of ``sys.fn_cdc_map_time_to_lsn`` (docs)."""

    LARGEST_LESS_THAN = "largest less than"
    LARGEST_LESS_THAN_OR_EQUAL = "largest less than or equal"
    SMALLEST_GREATER_THAN = "smallest greater than"
    SMALLEST_GREATER_THAN_OR_EQUAL = "smallest greater than or equal"
