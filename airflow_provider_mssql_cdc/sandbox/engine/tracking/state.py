"""What a database knows of Change Tracking beside the rows: options, the version counter, marks of cleanup."""

from __future__ import annotations

import datetime
import random
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from airflow_provider_mssql_cdc.sandbox.engine.harshness import Harshness, Point

Unit = Literal["MINUTES", "HOURS", "DAYS"]

UNITS: dict[Unit, int] = {"MINUTES": 1, "HOURS": 60, "DAYS": 1440}
"""Units of the retention with their minutes, in the order of their numbers (docs: sys.change_tracking_databases)."""

COMMITS = "ct_commits"
"""The commit table's name in DuckDB; the newest row of it is the current version."""


@dataclass(frozen=True, slots=True)
class Options:
    """CHANGE_RETENTION and AUTO_CLEANUP."""

    retention: int = 2
    unit: Unit = "DAYS"
    auto_cleanup: bool = True

    @property
    def kept(self) -> datetime.timedelta:
        """How long changes are kept."""
        return datetime.timedelta(minutes=self.retention * UNITS[self.unit])


@dataclass(frozen=True, slots=True)
class TrackedTable:
    """A table that is tracked, with its side table.

    :param object_id: of the table
    :param side: object id of the side table
    :param key: column ids of the primary key, in key order
    :param begin_version: the current version when tracking began, or when the table was last truncated
    """

    object_id: int
    side: int
    key: tuple[int, ...]
    created: datetime.datetime
    columns_updated: bool
    begin_version: int

    @property
    def name(self) -> str:
        """The side table's name."""
        return f"change_tracking_{self.object_id}"

    @property
    def storage(self) -> str:
        """The side table's name in DuckDB."""
        return f"ct_{self.side}"


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A row of dbo.MSchange_tracking_history: what one cleanup did to one side table."""

    side_name: str
    table_name: str
    begun: datetime.datetime
    ended: datetime.datetime
    rows: int
    version: int
    comments: str


@dataclass(frozen=True, slots=True)
class TrackingState:
    """All of it, as a backup keeps it.

    :param options: None while the database is not tracked
    :param version: the last one that was drawn; it survives OFF and ON
    :param rows: how many side rows were ever numbered
    :param base: the version when tracking was last switched on: the commit table shows what came after it
    :param cleaned: up to which version cleanup took rows away, by side table
    :param cleaned_commits: the same of the commit table
    """

    options: Options | None = None
    version: int = 0
    rows: int = 0
    base: int = 0
    cleaned: Mapping[int, int] = field(default_factory=dict)
    cleaned_commits: int = 0
    history: tuple[Cleaned, ...] = ()


@dataclass(frozen=True, slots=True)
class TrackingSwitches:
    """What Change Tracking answers where documentation and observations leave more than one answer.

    :param context_on_select_error: whether CHANGE_TRACKING_CONTEXT before a SELECT is error 22108 (docs), or accepted
        (observed once)
    :param newest_spelling: whether CHANGETABLE answers the newest spelling of a key that changed to an equal text, or
        the one that it had first
    :param version_of_the_snapshot: whether CHANGE_TRACKING_CURRENT_VERSION within one statement of its own transaction
        is that of the statement's snapshot, or the newest when the statement ends
    :param secondary_refuses: whether a secondary replica answers nothing about versions (22117, docs), or something
        that does not fit together (reported)
    """

    context_on_select_error: bool = True
    newest_spelling: bool = True
    version_of_the_snapshot: bool = True
    secondary_refuses: bool = True


def _switches(drawn: random.Random) -> TrackingSwitches:
    return TrackingSwitches(
        newest_spelling=drawn.choice((True, False)), version_of_the_snapshot=drawn.choice((True, False))
    )


class ChangeTracking:
    """Change Tracking of one database. Safe to use from several threads.

    :param harshness: what is drawn of what is not known for certain
    :ivar switches: what is not known for certain
    :ivar secondary: whether the database is one of a secondary replica, where nothing of it may be asked, or where
        what is answered does not fit together: see ``switches``
    """

    def __init__(self, harshness: Harshness) -> None:
        drawn = harshness.drawn(Point.TRACKING)
        self.switches = TrackingSwitches() if drawn is None else _switches(drawn)
        self.secondary = False
        self._lock = threading.Lock()
        self._state = TrackingState()

    @property
    def state(self) -> TrackingState:
        """All of it, as it is now."""
        return self._state

    @state.setter
    def state(self, state: TrackingState) -> None:
        with self._lock:
            self._state = state

    @property
    def options(self) -> Options | None:
        """The options of a tracked database, else None."""
        return self._state.options

    @property
    def version(self) -> int:
        """The last version that was drawn."""
        return self._state.version

    def switch_on(self, options: Options) -> None:
        """SET CHANGE_TRACKING = ON"""
        with self._lock:
            self._state = replace(self._state, options=options, base=self._state.version)

    def switch_off(self) -> None:
        """SET CHANGE_TRACKING = OFF"""
        with self._lock:
            self._state = replace(self._state, options=None, cleaned={}, history=())

    def set_options(self, options: Options) -> None:
        """Other options of a tracked database."""
        with self._lock:
            self._state = replace(self._state, options=options)

    def drawn(self, version: int, rows: int) -> None:
        """A transaction has committed.

        :param version: that it has drawn
        :param rows: how many side rows were numbered up to now
        """
        with self._lock:
            self._state = replace(self._state, version=version, rows=rows)

    def min_valid_version(self, table: TrackedTable) -> int:
        """The lowest version from which on all changes of a table are there."""
        return max(table.begin_version, self.cleanup_version(table))

    def cleanup_version(self, table: TrackedTable) -> int:
        """Up to which version cleanup may have taken changes of a table away; 0 where it has taken none."""
        return self._state.cleaned.get(table.side, 0)

    def mark(self, tables: Mapping[int, int], commits: int) -> None:
        """Say what cleanup takes away next.

        :param tables: up to which version, by side table
        :param commits: the same of the commit table
        """
        with self._lock:
            kept = self._state.cleaned
            moved = {side: max(version, kept.get(side, 0)) for side, version in tables.items()}
            highest = max(commits, self._state.cleaned_commits)
            self._state = replace(self._state, cleaned={**kept, **moved}, cleaned_commits=highest)

    def note(self, cleaned: Cleaned) -> None:
        """Remember what a cleanup did to a side table."""
        with self._lock:
            self._state = replace(self._state, history=(*self._state.history, cleaned))
