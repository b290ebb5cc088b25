"""What Airflow remembers of one source table and target."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from airflow_provider_mssql_cdc.core.codec import Format, Tagged
from airflow_provider_mssql_cdc.core.feed import CaptureInstance, FeedRef
from airflow_provider_mssql_cdc.core.lineage import OtherPosition, Witness
from airflow_provider_mssql_cdc.core.position import Lsn, Position
from airflow_provider_mssql_cdc.core.proposal import Making, Proposal
from airflow_provider_mssql_cdc.core.schema_changes import UnwrittenEvent
from airflow_provider_mssql_cdc.core.schema_sight import PendingChange, SeenSchema
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.taken import NOTHING_TAKEN, TakenBySink
from airflow_provider_mssql_cdc.core.target import TABLE_NAME

KEY_PREFIX = "mssql_cdc__"
"""Begins the key of every Variable that holds a checkpoint."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a sink's last run failed for good, and when.

    :param since: when the first of the runs failed that failed one after the other; None if this is the first
    :param seen: ``core.resting.fingerprint`` of the table's feeds then, so that a repair can be noticed
    :param planned: it was found while planning, without the job, and each plan looks again
    :param stopped: a person has stopped the copy that the sink waited for, and only a person begins another one
    :param copy_mends: a copy that a person asks for may mend it
    """

    reason: str
    time: datetime.datetime
    seen: str | None = None
    since: datetime.datetime | None = None
    planned: bool = False
    stopped: bool = False
    copy_mends: bool = False
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def began(self) -> datetime.datetime:
        """When the first of the runs failed that failed one after the other."""
        return self.since or self.time

    def is_of_another(self, seen: str) -> bool:
        """Whether the table's feeds changed since; False where it is not known what they were.

        :param seen: their ``core.resting.fingerprint`` now
        """
        return self.seen is not None and self.seen != seen


@dataclass(frozen=True, slots=True)
class SinkState:
    """Where one shape of the table stands.

    :param applied: position of the marker that the sink's own last commit carries, as last seen; None before the first
    :param read_through: at or above ``applied``; everything between the two was proven empty; None with ``applied``
    :param witness: for ``read_through``
    :param asserted: names the order by which a person said that the target stands for this position, whatever its
        marker says; None once a load has committed on it, or where there was none
    :param feed: what it was last loaded from; None where the position is an asserted one
    :param schema_hash: of the feed's columns when it was last loaded
    :param schema_kept: the schema of that hash was kept as a Variable of its own
    :param selection_hash: of what of the rows was loaded then; None if all was, as it is
    :param selection: that as text, to be shown when the hash differs
    :param failed: set while its last run failed for good
    :param positions: of other kinds that stand for the same as ``read_through``
    :param unfilled: target columns whose rows of before are not filled yet
    :param ddl_upto: the columns that it was last loaded with are those behind all DDL up to here
    :param taken_told: what the target's table of schema events says of the columns that it has taken
    """

    applied: Annotated[Position | None, Tagged] = None
    read_through: Annotated[Position | None, Tagged] = None
    witness: Witness | None = None
    asserted: str | None = None
    feed: FeedRef | None = None
    schema_hash: str | None = None
    schema_kept: bool = False
    selection_hash: str | None = None
    selection: tuple[str, ...] = ()
    failed: Failure | None = None
    positions: tuple[OtherPosition, ...] = ()
    unfilled: tuple[str, ...] = ()
    ddl_upto: Annotated[Position | None, Tagged] = None
    taken_told: TakenBySink = NOTHING_TAKEN
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if (self.applied is None) != (self.read_through is None):
            raise ValueError("applied and read_through are both there, or neither")
        if self.applied is not None and self.position < self.applied:
            raise ValueError(f"read_through {self.read_through} lies below applied {self.applied}")

    @property
    def is_loaded(self) -> bool:
        """Whether it has had a first load."""
        return self.read_through is not None

    @property
    def position(self) -> Position:
        """``read_through`` of a sink that is loaded.

        :raises ValueError: before its first load
        """
        if self.read_through is None:
            raise ValueError("the sink was never loaded")
        return self.read_through


def lowest(sinks: Iterable[SinkState | None]) -> Position | None:
    """The lowest position of those sinks that were loaded; None where none was."""
    return min((sink.position for sink in sinks if sink is not None and sink.is_loaded), default=None)


@dataclass(frozen=True, slots=True)
class Identity:
    """One source table and one target; the readable part of a checkpoint's key.

    :param name: of the target table, where ``table_name`` gives it another one than the default: two loads of a source
        table into one place, by different names, are at positions of their own
    """

    connection: str
    database: str
    table: TableName
    target: str
    name: str = ""
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, connection: str, database: str, table: TableName, target: str, table_name: str) -> Identity:
        """The identity of a load's target table.

        :param target: its address
        :param table_name: with ``{schema}`` and ``{table}``
        """
        name, usual = (each.format(schema=table.schema, table=table.table) for each in (table_name, TABLE_NAME))
        return cls(connection, database, table, target, "" if name == usual else name)

    @property
    def short(self) -> str:
        """16 hex digits that stand for it: of its Variable, and of the folder of its copies."""
        return self.variable.removeprefix(KEY_PREFIX)

    @property
    def place(self) -> str:
        """The target for people, with the table's name in it where that is not the default."""
        return f"{self.target} as {self.name}" if self.name else self.target

    def __str__(self) -> str:
        """For people, without connection and database."""
        return f"{self.table} -> {self.place}"

    @property
    def variable(self) -> str:
        """The Airflow Variable's key. A hash, since table names may be long, or contain words that Airflow masks."""
        parts = [self.connection, self.database, self.table.schema, self.table.table, self.target]
        text = json.dumps([*parts, self.name] if self.name else parts)
        return KEY_PREFIX + hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class CopyState:
    """A copy that is under way.

    :param place: of its folder
    :param host: that can read the folder; None where every host can
    :param low: below every change that is read beside it
    :param chunks: how many are there
    :param shapes: that wait for it
    :param waits_after: all rows are read, and the capture is waited for; there is nothing to do before this position
    :param rows: that are read
    :param expected: rows that the table was said to have when the copy was begun
    :param begun_at: when that was
    :param at: when all this was seen
    :param paused_since: when it was first seen to be paused, and is since
    :param last: the key up to which rows are read, as text; None where it is masked, or the table is one chunk
    :param highest: the highest key that is to be read
    :param fills: the columns that it fills in sinks that are loaded; empty for a copy of whole rows
    """

    id: str
    place: str
    host: str | None = None
    state: str | None = None
    position: Annotated[Position | None, Tagged] = None
    low: Annotated[Position | None, Tagged] = None
    chunks: int = 0
    shapes: tuple[str, ...] = ()
    waits_after: Annotated[Position | None, Tagged] = None
    rows: int = 0
    expected: int = 0
    begun_at: datetime.datetime | None = None
    at: datetime.datetime | None = None
    paused_since: datetime.datetime | None = None
    last: str | None = None
    highest: str | None = None
    fills: tuple[str, ...] = ()
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def left(self) -> int:
        """Rows that are still to be read, as far as is known."""
        return max(self.expected - self.rows, 0) if self.waits_after is None else 0

    @property
    def progress(self) -> str:
        """How far it is, for people."""
        said = [f"{self.chunks} chunks with {self.rows:,} of about {max(self.expected, self.rows):,} rows are read"]
        if self.begun_at is not None and self.at is not None and self.at > self.begun_at and self.rows:
            rate = self.rows / (self.at - self.begun_at).total_seconds()
            said.append(f"{rate:,.0f} rows/s since {self.begun_at.isoformat(' ', 'seconds')}")
            if self.left:
                left = datetime.timedelta(seconds=int(self.left / rate))
                said.append(f"about {left} left at this rate")
        if self.waits_after is not None:
            said.append("the capture is waited for")
        elif self.last is not None:
            said.append(f"up to key {self.last} of {self.highest}")
        said.append(f"changes are kept up to {self.position}")
        fills = f"columns {', '.join(self.fills)} are filled: " if self.fills else ""
        return fills + ", ".join(said) + f", in {self.where}"

    @property
    def where(self) -> str:
        """Its folder for people, with the host that can read it where not every one can."""
        return self.place + (f" on {self.host}" if self.host else "")


@dataclass(frozen=True, slots=True)
class Told:
    """An event for the operations asset that no successful task has told yet.

    :param kind: what it tells of
    """

    kind: str
    extra: dict[str, Any] = field(default_factory=dict)
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)


def _from_version_1(data: Mapping[str, Any]) -> dict[str, Any]:
    def tagged(text: str | None) -> dict[str, str] | None:
        return {"kind": Lsn.KIND, "at": text} if text else None

    feed = data["instance"] and {**data["instance"], "kind": CaptureInstance.KIND}
    of_all = {
        "feed": feed,
        "schema_hash": data["schema_hash"],
        "selection_hash": data.get("selection_hash"),
        "selection": data.get("selection", ()),
        "failed": data["failed"],
    }
    sinks = {
        shape: {
            **of_all,
            "applied": tagged(sink["applied"]),
            "read_through": tagged(sink["read_through"]),
            "witness": sink["witness"] and {**sink["witness"], "kind": Witness.KIND},
            "asserted": sink.get("vouched"),
        }
        for shape, sink in data["sinks"].items()
    }
    identity = {name: data[name] for name in ("connection", "database", "target")}
    identity["name"] = data.get("name", "")
    return {
        "identity": {**identity, "table": {"schema": data["schema"], "table": data["table"]}},
        # a failure of a table without sinks belongs to none of them: the next run finds it again
        "sinks": sinks,
        "announced": tagged(data.get("announced")),
        "updated_at": data["updated_at"],
    }


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of one table and target: per shape how far it is loaded, from which feed, with which schema.

    :param sinks: shape to state; one that was never loaded is there only if it failed for good
    :param announced: the position up to which asset events have told of the table; None before the first
    :param copies: under way
    :param requested: capture instances that were asked for
    :param schema_changes: seen, and without a place yet
    :param waiting_ids: column_ids that wait to be asked for
    :param noted: positions of other kinds, each with the LSN from which it may be used
    :param ended_copies: ids of copies that a person asked for, each with how it ended
    :param untold: events for the operations asset that no successful task has told yet
    :param seen_schema: the source table's columns as they were seen last
    :param unwritten: schema events that the target's table of them does not hold yet
    :param proposed: columns for which people were told to make a capture instance, and have not yet
    :param making: the capture instance that a load is about to make, until that is seen to be done
    """

    identity: Identity
    sinks: dict[str, SinkState] = field(default_factory=dict)
    announced: Annotated[Position | None, Tagged] = None
    updated_at: datetime.datetime | None = None
    copies: tuple[CopyState, ...] = ()
    requested: tuple[FeedRef, ...] = ()
    schema_changes: tuple[PendingChange, ...] = ()
    waiting_ids: tuple[int, ...] = ()
    noted: tuple[OtherPosition, ...] = ()
    ended_copies: tuple[str, ...] = ()
    untold: tuple[Told, ...] = ()
    seen_schema: SeenSchema | None = None
    unwritten: tuple[UnwrittenEvent, ...] = ()
    proposed: tuple[Proposal, ...] = ()
    making: Making | None = None
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)

    FORMAT: ClassVar[Format] = Format("checkpoint", 2, "0.2.0", {1: _from_version_1})

    @property
    def knows_waiting(self) -> bool:
        """Whether it was noted which columns wait to be asked for."""
        return self.seen_schema is not None and self.seen_schema.with_waiting

    def ending_of(self, id_: str) -> str | None:
        """How a copy ended that a person asked for; None where it did not, or nothing is known of it any more."""
        found = (ended.partition(" ") for ended in self.ended_copies)
        return next((how for of, _, how in found if of == id_), None)

    @property
    def mended_by_copies(self) -> list[str]:
        """The sinks that failed for good, and that a copy may mend."""
        return [shape for shape, sink in self.sinks.items() if sink.failed is not None and sink.failed.copy_mends]

    @property
    def loaded(self) -> dict[str, SinkState]:
        """The sinks that had a first load."""
        return {shape: sink for shape, sink in self.sinks.items() if sink.is_loaded}

    def position(self, shapes: Collection[str]) -> Position | None:
        """The table's position, as these shapes have it; None where none of them was loaded."""
        return lowest(sink for shape, sink in self.sinks.items() if shape in shapes)

    def failure(self, shapes: Collection[str] | None = None) -> Failure | None:
        """The newest failure for good of some sinks.

        :param shapes: by default of all
        """
        found = [s.failed for shape, s in self.sinks.items() if s.failed and (shapes is None or shape in shapes)]
        return max(found, key=lambda failure: failure.time, default=None)

    def feeds(self, shapes: Collection[str]) -> list[FeedRef]:
        """What some shapes were loaded from; where none of them was ever loaded, what the others were."""
        loaded = self.loaded
        asked = [sink for shape, sink in loaded.items() if shape in shapes] or list(loaded.values())
        return [sink.feed for sink in asked if sink.feed is not None]

    def failing(self, shapes: Iterable[str], failure: Failure | None) -> Checkpoint:
        """The checkpoint with a failure for good of some sinks; None takes theirs away."""
        failed = {shape: dataclasses.replace(self.sinks.get(shape, SinkState()), failed=failure) for shape in shapes}
        sinks = {shape: sink for shape, sink in {**self.sinks, **failed}.items() if sink != SinkState() or sink.unknown}
        return dataclasses.replace(self, sinks=sinks)


def position_of(
    checkpoint: Checkpoint | None,
    shapes: Iterable[str],
    *,
    copies_loaded: bool = False,
    waiting: Collection[str] = (),
) -> Position | None:
    """The lowest position of these shapes, or of the copies beside which changes are kept for them; None if one of them
    was never loaded and waits for none.

    :param waiting: shapes that go on with nothing but a copy: without one they do not count
    """
    if checkpoint is None:
        return None
    # one that fills columns leaves its sinks where they are
    copies = {shape: copy for copy in checkpoint.copies if not copy.fills for shape in copy.shapes}
    found = []
    for shape in shapes:
        sink, copy = checkpoint.loaded.get(shape), copies.get(shape)
        if shape in waiting and copy is None:
            continue
        if sink is None or shape in waiting:
            found.append(copy.position if copy is not None else None)
        elif not copies_loaded and copy is not None and copy.low is not None and copy.low > sink.position:
            # one in a gap, which the copy closes
            found.append(copy.position)
        else:
            found.append(sink.position)
    known = [position for position in found if position is not None]
    return min(known) if known and len(known) == len(found) else None
