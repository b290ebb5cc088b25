"""What a database and its tables say of Change Tracking, and by which rule a version that was read counts."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from airflow_provider_mssql_cdc.core.exceptions import ParameterError
from airflow_provider_mssql_cdc.core.feed import Abilities, Feed
from airflow_provider_mssql_cdc.core.lineage import TrackedSince
from airflow_provider_mssql_cdc.core.position import Position, Version, is_gap
from airflow_provider_mssql_cdc.core.table import TableName, TableSchema, quote

UNITS = {"MINUTES": 1, "HOURS": 60, "DAYS": 1440}
"""Units of the retention with their minutes (docs: ALTER DATABASE SET, CHANGE_RETENTION)."""

_MOST_MINUTES = 2**31 - 1
_MINUTE = datetime.timedelta(minutes=1)

DEFAULT_RETENTION = datetime.timedelta(days=7)
"""What is asked for unless a DAG author says otherwise; SQL Server's own default is two days."""

READ_WRITE = "READ_WRITE"
"""What ``Updateability`` says of a database that is neither read-only nor on a secondary replica."""

MOST_CONTEXT = 128
"""Bytes of a context (docs: WITH CHANGE_TRACKING_CONTEXT)."""


@dataclass(frozen=True, slots=True)
class Retention:
    """For how long a database keeps changes at least, as it is said to the server.

    :param unit: one of ``UNITS``
    """

    period: int
    unit: str

    @classmethod
    def of(cls, kept: datetime.timedelta) -> Retention:
        """The retention in the largest unit that it is a multiple of.

        :raises ParameterError: for less than a minute, parts of one, or more than the server takes
        """
        minutes, rest = divmod(kept, _MINUTE)
        if rest or not 1 <= minutes <= _MOST_MINUTES:
            raise ParameterError(f"retention={kept!r}: expected whole minutes, from 1 to {_MOST_MINUTES}")
        unit = next(unit for unit in ("DAYS", "HOURS", "MINUTES") if minutes % UNITS[unit] == 0)
        return cls(minutes // UNITS[unit], unit)

    @property
    def kept(self) -> datetime.timedelta:
        """The same as a duration."""
        return self.period * UNITS[self.unit] * _MINUTE

    @property
    def option(self) -> str:
        """The option of ALTER DATABASE."""
        return f"CHANGE_RETENTION = {self.period} {self.unit}"

    def __str__(self) -> str:
        """The form for people."""
        return f"{self.period} {self.unit.lower()}"


@dataclass(frozen=True, slots=True)
class DatabaseTracking:
    """What a database says of Change Tracking.

    :param name: as the server spells it
    :param user: database user of the login
    :param retention: None while it is off, or where the login does not see it (docs: sys.change_tracking_databases)
    :param auto_cleanup: as ``retention``
    :param snapshot_isolation: whether ALLOW_SNAPSHOT_ISOLATION is on; not while it is being switched
    :param updateability: ``READ_WRITE``, or ``READ_ONLY`` on a readable secondary and in a read-only database
    """

    name: str
    user: str
    enabled: bool
    retention: Retention | None
    auto_cleanup: bool | None
    snapshot_isolation: bool
    updateability: str
    compatibility_level: int

    @property
    def read_only(self) -> bool:
        """Whether this may be a secondary replica, whose versions are not to be trusted."""
        return self.updateability != READ_WRITE

    def shorter_than(self, minutes: int | None) -> str | None:
        """Say that changes are not kept for longer than CDC keeps them; None where they are, or nobody knows.

        :param minutes: CDC's retention; None where it is not known
        """
        if self.retention is None or minutes is None:
            return None
        kept = minutes * _MINUTE
        if self.retention.kept > kept:
            return None
        longer = Retention.of(kept + datetime.timedelta(days=1))
        return (
            f"Change Tracking of {self.name} keeps changes for {self.retention}, which is not longer than the "
            f"{Retention.of(kept)} of CDC, so it cannot help where CDC has purged "
            f"something. Run: ALTER DATABASE {quote(self.name)} SET CHANGE_TRACKING ({longer.option});"
        )


@dataclass(frozen=True, slots=True)
class TrackedTable(Feed):
    """A table that Change Tracking tracks. ``object_id`` and ``create_date`` are the table's own.

    What is switched off and on, or truncated, is the same feed: ``begin_version`` and side table tell that.

    :param columns_updated: whether it is tracked which columns an update names
    :param begin_version: the current version when it was last truncated, or tracking began
    :param min_valid_version: the lowest version from which all changes are there; None where the login may not know
    :param side_object_id: of its side table; None where the login does not see it
    :param snapshots: whether statements read one moment: the database allows it (ALLOW_SNAPSHOT_ISOLATION)
    """

    columns_updated: bool = False
    begin_version: Version | None = None
    min_valid_version: Version | None = None
    side_object_id: int | None = None
    snapshots: bool = False

    KIND: ClassVar[str] = "tracked_table"
    WORD: ClassVar[str] = "tracked table"
    POSITION: ClassVar[type[Position]] = Version
    CAN: ClassVar[Abilities] = Abilities(
        shapes=("mirror", "history", "scd2"),
        exact_cut=False,
        every_change=False,
        before_images=False,
        replay=False,
        limits=False,
        captured=False,
    )
    KEPT_LONGER_BY: ClassVar[str] = "ALTER DATABASE CURRENT SET CHANGE_TRACKING (CHANGE_RETENTION = 14 DAYS)"

    @property
    def readable_from(self) -> Version | None:
        """The lowest valid version."""
        return self.min_valid_version

    @property
    def lacks_exact_reads(self) -> str | None:
        """That the database does not allow SNAPSHOT."""
        if self.snapshots:
            return None
        return (
            "the database does not allow SNAPSHOT, or isolation does not, so that rows may be newer than their version:"
            ' ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON, and isolation="auto"'
        )

    @property
    def lacks_masks(self) -> str | None:
        """That the columns of updates are not tracked."""
        if self.columns_updated:
            return None
        table = self.source.quoted
        return (
            f"they are not tracked. ALTER TABLE {table} DISABLE CHANGE_TRACKING, then ENABLE CHANGE_TRACKING WITH "
            "(TRACK_COLUMNS_UPDATED = ON), is a gap of the table"
        )

    @property
    def since(self) -> TrackedSince:
        """What tells this tracking from another one."""
        begin = self.begin_version.value if self.begin_version is not None else None
        return TrackedSince(begin, self.side_object_id)

    @property
    def schema(self) -> TableSchema:
        """Its columns with the primary key."""
        return TableSchema(self.columns, self.primary_key)


Feed.KINDS[TrackedTable.KIND] = TrackedTable


class Standing(enum.Enum):
    """What is known of a table, by which a lowest valid version that is NULL has its meaning."""

    TRACKED = "tracked"
    UNTRACKED = "not tracked"
    UNKNOWN = "unknown"
    """There is none of this name, or the login sees none."""
    DENIED = "no permission"
    """It is tracked, and the login may not ask about its changes."""


@dataclass(frozen=True, slots=True)
class TrackedVersions:
    """The versions of one table.

    :param table: as it was asked for
    :param object_id: None where the table is unknown
    :param begin: the current version when it was last truncated, or tracking began
    :param min_valid: None unless it is tracked and may be asked about
    :param side_object_id: of its side table, which is another one after tracking was switched off and on; None where
        it is not tracked or the login does not see it
    :param side_created: when that was made
    """

    table: TableName
    standing: Standing
    object_id: int | None = None
    begin: Version | None = None
    min_valid: Version | None = None
    side_object_id: int | None = None
    side_created: datetime.datetime | None = None

    def is_valid(self, last: Version, current: Version | None) -> bool:
        """Whether all changes after a version can be read. Where there is no lowest valid version, none is valid; nor
        is one that the database has not reached: it was restored.

        After a TRUNCATE, or off and on, the version that was current then counts as valid, and what was deleted is
        not told: compare ``begin`` and the side table with those of before.

        :param current: of ``DatabaseVersions``
        """
        return current is not None and last <= current and not is_gap(last, self.min_valid)

    def problem(self, last: Version, current: Version | None, user: str) -> str | None:
        """Say why the changes after a version cannot be read, and what to do; None where they can.

        :param current: of ``DatabaseVersions``
        :param user: database user, for the GRANT
        """
        name, place = self.table, self.table.quoted
        if self.standing is Standing.UNKNOWN:
            return (
                f"{name}: there is no such table, or {user!r} does not see it: GRANT SELECT ON {place} TO "
                f"{quote(user)};"
            )
        if current is None:
            return f"{name}: Change Tracking is off for the database: ALTER DATABASE CURRENT SET CHANGE_TRACKING = ON;"
        if self.standing is Standing.UNTRACKED:
            return f"{name}: Change Tracking is off for it: ALTER TABLE {place} ENABLE CHANGE_TRACKING;"
        if self.standing is Standing.DENIED:
            return f"{name}: {user!r} may not ask about its changes: {grant_view(self.table, user)}"
        if last > current:
            return f"{name}: {restored(last, current)} Read the table anew."
        if self.is_valid(last, current):
            return None
        return f"{name}: the changes after {last} up to {self.min_valid} were removed: read the table anew."


def restored(last: Version, current: Version) -> str:
    """Say what it means that a database has not reached a version that was read from it."""
    return f"the database is at {current}, below {last}: it was restored."


def grant_view(table: TableName, user: str) -> str:
    """The statement that lets a user ask about the changes of a table."""
    return f"GRANT VIEW CHANGE TRACKING ON {table.quoted} TO {quote(user)};"


@dataclass(frozen=True, slots=True)
class DatabaseVersions:
    """The versions of several tables, with the database's own.

    :param current: read before the others; None while Change Tracking is off for the database
    """

    current: Version | None
    tables: Mapping[TableName, TrackedVersions]


@dataclass(frozen=True, slots=True)
class TrackedChange:
    """What all changes of one key after a version come to.

    :param version: of the last one
    :param creation_version: of the last insert among them; None where there is none
    :param operation: ``I``, ``U`` or ``D``
    :param key: column to value
    :param columns: that the updates named; None where that is not tracked, or cannot be said of these changes
    :param context: that the last of them was written with
    """

    version: Version
    creation_version: Version | None
    operation: str
    key: Mapping[str, Any]
    columns: tuple[str, ...] | None
    context: bytes | None


@dataclass(frozen=True, slots=True)
class TrackingSize:
    """How large a table of Change Tracking is.

    :param table: whose side table it is; None for the commit table, which the database has once
    :param reserved: bytes of its pages
    """

    table: TableName | None
    rows: int
    reserved: int


@dataclass(frozen=True, slots=True)
class Cleanup:
    """A row of ``dbo.MSchange_tracking_history``. Times are those of the server.

    :param table: without its schema
    :param rows: that it deleted
    :param version: up to which it was to delete
    :param comments: what went wrong, among others
    """

    table: str
    began: datetime.datetime | None
    ended: datetime.datetime | None
    rows: int | None
    version: Version | None
    comments: str


@dataclass(frozen=True, slots=True)
class LackingRight:
    """A permission that a login lacks.

    :param table: None for one of the database
    :param columns: of the key, where the permission is one to read them
    :param grant: the statement that gives it
    :param purpose: what it is for
    """

    permission: str
    table: TableName | None
    columns: tuple[str, ...]
    grant: str
    purpose: str


def context_clause(context: bytes) -> str:
    """What a writer puts before an INSERT, UPDATE, DELETE or MERGE, so that its changes carry a context.

    :raises ParameterError: for more than 128 bytes
    """
    if len(context) > MOST_CONTEXT:
        raise ParameterError(f"a context has at most {MOST_CONTEXT} bytes, not {len(context)}")
    return f"WITH CHANGE_TRACKING_CONTEXT (0x{context.hex().upper()}) "
