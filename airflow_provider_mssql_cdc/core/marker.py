"""The marker: what a sink's own commit says is loaded."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from airflow_provider_mssql_cdc.core.changes import DEFAULT, HistoryOptions
from airflow_provider_mssql_cdc.core.codec import Format, Tagged
from airflow_provider_mssql_cdc.core.feed import CaptureInstance, Feed, FeedRef
from airflow_provider_mssql_cdc.core.lineage import OtherPosition, Witness
from airflow_provider_mssql_cdc.core.position import Lsn, Position
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.taken import TakenColumn

LAYOUT = 2
"""Version of the system columns that new tables get."""


@dataclass(frozen=True, slots=True)
class Gap:
    """What a history lacks: the changes after ``after`` up to ``upto``, which were purged before they were loaded.

    At ``upto`` the history goes on with a row of operation R for each row that the table had then. Of versions it is
    the end of the new copy: up to there one of before may count for longer than it did.

    :param healed: there are rows only of the keys that changed: those of before hold on for the others
    """

    after: Position
    upto: Position
    healed: bool = False
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class FeedSpan:
    """A feed that a sink was read from.

    :param after: from here on, up to where the next span begins; None where that is not known
    """

    feed: FeedRef
    after: Position | None
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """Which target column holds a source column.

    :param column_id: of the source table
    :param dropped: the source no longer has it
    """

    column_id: int
    name: str
    dropped: bool = False
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class TaskRun:
    """The try of a task that made a commit."""

    dag: str
    task: str
    run: str
    try_number: int
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)


def _from_version_1(data: Mapping[str, Any]) -> dict[str, Any]:
    gone = ("instance", "object_id", "create_date", "read_mode", "vouched")
    feed = {
        "kind": CaptureInstance.KIND,
        "name": data["instance"],
        "object_id": data["object_id"],
        "create_date": data.get("create_date"),
    }
    return {
        **{name: value for name, value in data.items() if name not in gone},
        "position": {"kind": Lsn.KIND, "at": data["position"]},
        "witness": data["witness"] and {**data["witness"], "kind": Witness.KIND},
        "feeds": [{"feed": feed, "after": None}],
        "asserted": data.get("vouched"),
        "layout": 1,
    }


@dataclass(frozen=True, slots=True)
class Marker:
    """What a sink's own commit says is loaded.

    :param position: everything up to here is in the table
    :param feeds: the line of feeds that it was read from, the newest last
    :param window_after: start of the window that this commit added; None for a first load
    :param events: number of events by kind (inserted, updated, deleted, copied)
    :param gaps: all that a history lacks, from its beginning; handed on from marker to marker
    :param asserted: names the last order of a person on which this line of loads stands; handed on too
    :param history: what a history holds
    :param selection_hash: of what of the rows is loaded; None if all is, as it is
    :param selection: that as text
    :param deletes: what a mirror does with deleted rows; None in other shapes
    :param layout: version of the table's system columns; 1 has neither ``_tran_id`` nor ``_healed``
    :param schema_kept: the schema of that hash is kept beside the table
    :param run: that made the commit
    :param positions: of other kinds that stand for the same as ``position``
    :param uncaptured_ids: column_ids that the feed does not capture
    :param waiting_ids: column_ids that wait to be asked for, captured or not; None of a commit that did not know them
    :param column_map: dropped and renamed columns too; empty where each column has its own name
    :param unfilled: target columns whose rows of before are not filled yet
    :param copies: ids of the copies that the table contains
    :param others_seen: commits of others were seen in the table
    :param source_object_id: of the source table, whose column_ids these are; None where that is not known
    :param ddl_upto: the columns that the table was last loaded with are those behind all DDL up to here; None where no
        DDL is known
    :param taken: columns that the table has taken since its first load
    """

    position: Annotated[Position, Tagged]
    witness: Witness | None
    server: str
    database: str
    table: TableName
    feeds: tuple[FeedSpan, ...]
    schema_hash: str
    window_after: Position | None
    events: dict[str, int]
    spec_id: str
    gaps: tuple[Gap, ...] = ()
    asserted: str | None = None
    history: HistoryOptions = DEFAULT
    selection_hash: str | None = None
    selection: tuple[str, ...] = ()
    deletes: str | None = None
    layout: int = LAYOUT
    schema_kept: bool = False
    run: TaskRun | None = None
    positions: tuple[OtherPosition, ...] = ()
    uncaptured_ids: tuple[int, ...] = ()
    waiting_ids: tuple[int, ...] | None = None
    column_map: tuple[MappedColumn, ...] = ()
    unfilled: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    others_seen: bool = False
    source_object_id: int | None = None
    ddl_upto: Annotated[Position | None, Tagged] = None
    taken: tuple[TakenColumn, ...] = ()
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)

    FORMAT: ClassVar[Format] = Format("marker", 2, "0.2.0", {1: _from_version_1})

    @property
    def feed(self) -> FeedRef:
        """What the newest commit was read from."""
        return self.feeds[-1].feed

    def waiting_in(self, feed: Feed) -> tuple[int, ...] | None:
        """The column_ids of a feed's source table that wait to be asked for; None where the marker does not know them.

        A table that was dropped and made anew has other columns by the same ids.
        """
        if self.source_object_id is None and not self.waiting_ids:
            # earlier versions wrote that nothing waits where they did not know
            return None
        return self.waiting_ids if self.source_object_id in (None, feed.source_object_id) else None


def line_of_feeds(before: Marker | None, feed: FeedRef, after: Position) -> tuple[FeedSpan, ...]:
    """The line of feeds once a window is read.

    :param before: the marker that the window follows on; None where there is none, or where it is not believed
    :param feed: that the window is read from
    :param after: start of the window
    """
    line = before.feeds if before else ()
    if not line or not line[-1].feed.is_same(feed):
        return (*line, FeedSpan(feed, after))
    # an older version may not have known all of it
    known = dataclasses.replace(feed, unknown={**line[-1].feed.unknown, **feed.unknown})
    return (*line[:-1], dataclasses.replace(line[-1], feed=known))


def read_from_another(marker: Marker, feed: Feed, after: Position) -> FeedRef | None:
    """The other feed from which events behind a position were loaded, or the last of several.

    There the same events have other command ids: SQL Server counts them over all instances of a table.

    :param marker: of the table that holds them
    :param feed: that has them now
    """
    *before, last = marker.feeds
    if not last.feed.is_same(feed):
        return last.feed
    return before[-1].feed if before and (last.after is None or after < last.after) else None


def carried(before: Marker | None, marker: Marker, *, rows: bool) -> Marker:
    """A marker with what the one before it hands on: all that this version only keeps.

    :param rows: whether the rows of before are those that the marker before says
    """
    if before is None:
        return marker
    names = (*_OF_THE_TABLE, *(_OF_THE_ROWS if rows else ()))
    return dataclasses.replace(
        marker,
        **{name: getattr(before, name) for name in names},
        history=dataclasses.replace(marker.history, unknown={**before.history.unknown, **marker.history.unknown}),
        unknown={**before.unknown, **marker.unknown},
    )


_OF_THE_TABLE = ("uncaptured_ids", "waiting_ids", "column_map")
_OF_THE_ROWS = ("unfilled", "copies", "others_seen")
