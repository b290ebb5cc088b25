"""What a table's changes are read by, and what that can do."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from airflow_provider_mssql_cdc.core.changes import ALL_OLD, DEFAULT, NET, NET_MASK, HistoryOptions
from airflow_provider_mssql_cdc.core.codec import Tagged
from airflow_provider_mssql_cdc.core.initial import WITH_COPY, Initial
from airflow_provider_mssql_cdc.core.lineage import Lineage, LogHistory, Witness
from airflow_provider_mssql_cdc.core.position import Lsn, Position, readable_from
from airflow_provider_mssql_cdc.core.shapes import HARD, IGNORE, SHAPES, SOFT, Shape
from airflow_provider_mssql_cdc.core.table import SAME_TIME, Column, TableName, quote


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a kind of feeds can do.

    :param shapes: that can be loaded from it; None: all
    :param exact_cut: a window ends at the cut; otherwise at the position that its rows prove, at or above the cut
    :param every_change: it has every change of a window; otherwise what they come to for each key
    :param before_images: it has the values before an update, and the times of commits
    :param replay: a window can be read again, and has the same rows
    :param limits: a window can be ended after so many transactions or rows
    :param captured: a capture brings its changes, some time after their commits and of some columns; otherwise they are
        there with the commit, and each row is read whole from the table
    """

    shapes: tuple[str, ...] | None = None
    exact_cut: bool = True
    every_change: bool = True
    before_images: bool = True
    replay: bool = True
    limits: bool = True
    captured: bool = True

    def serves(self, shape: str) -> bool:
        """Whether a shape can be loaded from it."""
        return self.shapes is None or shape in self.shapes

    @property
    def replays(self) -> bool:
        """Whether a past window can be written once more."""
        return self.replay and self.exact_cut

    @property
    def takes_limits(self) -> bool:
        """Whether a run can end a window where its limits say."""
        return self.limits and self.exact_cut


@dataclass(frozen=True, slots=True)
class Feed:
    """What a table's changes are read by; each kind is a class of its own.

    :param object_id: identifies the feed, together with its name and ``create_date``
    :param columns: that it has
    :param index_key: columns of the unique index that identifies rows in it, in key order
    :param primary_key: columns of the source table's primary key, in key order
    :param uncaptured: columns of the source table that it does not have
    :param others: the same, as the source table has them
    """

    name: str
    object_id: int
    source: TableName
    source_object_id: int
    create_date: datetime.datetime
    columns: tuple[Column, ...]
    index_key: tuple[str, ...] = ()
    primary_key: tuple[str, ...] = ()
    uncaptured: tuple[str, ...] = ()
    others: tuple[Column, ...] = ()

    KIND: ClassVar[str]
    WORD: ClassVar[str]
    """For people, before its name."""
    POSITION: ClassVar[type[Position]]
    CAN: ClassVar[Abilities] = Abilities()
    KEPT_LONGER_BY: ClassVar[str] = "sys.sp_cdc_change_job @job_type = N'cleanup', @retention = minutes"
    """T-SQL with which changes are kept longer."""

    KINDS: ClassVar[dict[str, type[Any]]] = {}
    """All kinds of feeds by their name; a source adds its own."""

    @property
    def readable_from(self) -> Position | None:
        """The position behind which all changes can be read; None while that is not known."""
        raise NotImplementedError

    @property
    def lacks_exact_reads(self) -> str | None:
        """Why what is read is not as of one position, and what mends that; None where it is."""
        return None

    @property
    def lacks_masks(self) -> str | None:
        """Why no change tells which columns were updated, and what mends that; None where they do."""
        return None

    def __str__(self) -> str:
        return f"{self.WORD} {self.name}"


def is_captured(feeds: Iterable[Sequence[Feed]]) -> bool:
    """Whether a capture brings the changes of some tables; nobody knows of none.

    :param feeds: of each table
    """
    found = [group[0].CAN.captured for group in feeds]
    return not found or any(found)


def refused_shapes(
    feed: Feed | type[Feed],
    shapes: Iterable[str],
    *,
    history: HistoryOptions = DEFAULT,
    deletes: str = HARD,
    key: Sequence[str] = (),
    unique: bool = True,
) -> dict[str, str]:
    """Shape to why it cannot be loaded from such a feed; those that can are left out.

    :param history: what a history is to hold
    :param deletes: what a mirror is to do with deleted rows
    :param key: columns that identify a row; none for a table without a key
    :param unique: whether the server enforces it
    """
    by_hand = bool(key) and not unique
    found = {shape: _refusal(feed, SHAPES[shape], history, deletes, by_hand=by_hand) for shape in shapes}
    return {shape: why for shape, why in found.items() if why is not None}


def _refusal(
    feed: Feed | type[Feed], shape: Shape, history: HistoryOptions, deletes: str, *, by_hand: bool
) -> str | None:
    can, word = feed.CAN, feed.WORD
    if not can.serves(shape.name):
        served = ", ".join(filter(can.serves, SHAPES))
        return f"a {word} does not serve {shape.name}, but {served}"
    what = f"a {shape.name} of {history.changes!r} changes" if shape.takes_history else shape.name
    needs_all = shape.needs_every_change or (shape.takes_history and not history.is_net)
    if needs_all and not can.every_change:
        instead = f': write changes="{NET}"' if shape.takes_history else ""
        return f"{what} needs every change, and a {word} has net changes only{instead}"
    if isinstance(feed, Feed):
        if shape.needs_exact and (lacking := feed.lacks_exact_reads):
            return f"{shape.name} needs exact reads: {lacking}"
        if shape.takes_history and history.changes == NET_MASK and (lacking := feed.lacks_masks):
            return f"{what} needs the columns of updates: {lacking}"
    if can.before_images:
        return None
    if shape.takes_history and history.changes == ALL_OLD:
        return f"{what} needs the values before an update, which a {word} lacks"
    if shape.takes_deletes and deletes == SOFT:
        return f"{what} with deletes={deletes!r} needs the times of deletes, which a {word} lacks"
    if shape.takes_deletes and deletes == IGNORE:
        return f"{what} with deletes={deletes!r} needs the values of deleted rows, which a {word} lacks"
    if shape.has_data and by_hand:
        return f"{what} by a key that is not enforced needs the values before an update, which a {word} lacks"
    return None


def refused_options(
    feed: Feed | type[Feed], *, replay: bool = False, limits: bool = False, initial: Initial = WITH_COPY
) -> list[str]:
    """Why a run cannot load a table from such a feed; empty where it can.

    :param replay: a past window is to be written once more
    :param limits: ``max_transactions`` or ``max_rows`` are said
    :param initial: with what tables of changes begin
    """
    found = []
    if replay and not feed.CAN.replays:
        found.append(f"replay=True needs the rows of a past window, which a {feed.WORD} does not give again")
    if limits and not feed.CAN.takes_limits:
        found.append(f"max_transactions and max_rows end a window early, and a {feed.WORD} is read to where it is now")
    if not initial.copies and not feed.CAN.replays:
        found.append(f"initial={str(initial)!r} needs the changes of before, which a {feed.WORD} does not give")
    return found


@dataclass(frozen=True, slots=True)
class CaptureInstance(Feed):
    """One row of ``cdc.change_tables`` with what ``captured_columns`` and ``index_columns`` say of it.

    ``object_id`` is the change table's.

    :param min_lsn: ``sys.fn_cdc_get_min_lsn``: None while it is NULL or ten zero bytes
    :param has_command_id: whether the change table has ``__$command_id`` (builds before KB3030352 lack it)
    :param index_name: of the unique index that identifies rows; None where there is none
    :param filegroup: of the change table; None for the database's default one
    :param partition_switch: whether ALTER TABLE .. SWITCH is allowed, whose rows are not captured
    :param drop_pending: whether the instance is about to be dropped
    :param end_lsn: up to where changes are captured; NULL in all versions so far (docs: cdc.change_tables)
    """

    start_lsn: Lsn | None = None
    min_lsn: Lsn | None = None
    supports_net_changes: bool = False
    role: str | None = None
    has_command_id: bool = True
    index_name: str | None = None
    filegroup: str | None = None
    partition_switch: bool = True
    drop_pending: bool = False
    end_lsn: Lsn | None = None

    KIND: ClassVar[str] = "capture_instance"
    WORD: ClassVar[str] = "capture instance"
    POSITION: ClassVar[type[Position]] = Lsn

    @property
    def readable_from(self) -> Lsn | None:
        """The position before min LSN."""
        return readable_from(self.min_lsn)

    @property
    def change_table(self) -> str:
        """The change table's name in T-SQL."""
        return f"[cdc].{quote(self.name + '_CT')}"


Feed.KINDS[CaptureInstance.KIND] = CaptureInstance


@dataclass(frozen=True, slots=True)
class FeedRef:
    """What identifies a feed. ``start_lsn`` of a capture instance moves with cleanup and says nothing.

    :param create_date: None in markers of versions that did not keep it
    """

    name: str
    object_id: int
    create_date: datetime.datetime | None = None
    kind: str = CaptureInstance.KIND
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, feed: Feed) -> FeedRef:
        """The reference to this feed."""
        return cls(feed.name, feed.object_id, feed.create_date, feed.KIND)

    def is_same(self, other: Feed | FeedRef) -> bool:
        """Whether this is the feed, as far as is known."""
        kind = other.kind if isinstance(other, FeedRef) else other.KIND
        if (self.kind, self.name, self.object_id) != (kind, other.name, other.object_id):
            return False
        if self.create_date is None or other.create_date is None:
            return True
        return abs(self.create_date - other.create_date) < SAME_TIME


@dataclass(frozen=True, slots=True)
class Probe:
    """What one look at the feeds of a source found.

    :param cut: the position up to which it looked; None where none was given and nothing is captured
    :param newest: feed to its newest event within (after, cut]; a feed without events is absent
    :param readable_from: object_id of each feed of the database to the position behind which all its changes can be
        read, asked for after the events: what is purged meanwhile counts as purged
    :param witness: of the cut; None where there is none
    :param lineage: by which positions of before are judged
    :param emptied: feeds without events that have no row which was there at the position looked behind: it is the
        lowest one behind which all changes can be read
    """

    cut: Position | None
    newest: Mapping[str, Position]
    readable_from: Mapping[int, Position | None]
    witness: Witness | None = None
    lineage: Lineage = field(default_factory=lambda: LogHistory(None, None))
    emptied: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DdlChange:
    """One row of ``cdc.ddl_history`` (docs: cdc.ddl_history).

    :param requires_column_update: the ALTER changed the type of a captured column
    """

    capture_instance: str
    command: str
    lsn: Position
    time: datetime.datetime | None
    requires_column_update: bool


@dataclass(frozen=True, slots=True)
class DroppedColumn:
    """A column that the source table has dropped, and the change table has still.

    :param at: the LSN of the DDL, or one behind it: what was captured later has no value of it
    """

    column_id: int
    at: Annotated[Position, Tagged]
