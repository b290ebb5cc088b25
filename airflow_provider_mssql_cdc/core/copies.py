"""What lies in the folder of a copy: an entry for all rows and windows that were read at once, and which of them count.

Several runs may have read into one folder, one after the other or at once, and each may have been killed. An entry is
written after its rows, and never changed.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from airflow_provider_mssql_cdc.core.chunks import Bound
from airflow_provider_mssql_cdc.core.codec import Format, Tagged
from airflow_provider_mssql_cdc.core.feed import FeedRef
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.passing import CaptureProgress, CopyEnd
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.schema import ColumnFacts, KeptSchema


@dataclass(frozen=True, slots=True)
class CopyBegun:
    """The first entry of a copy, written before its first chunk.

    :param id: names its folder
    :param low: every change that a chunk may lack is captured after it
    :param witnesses: of ``low`` and of what was seen with it
    :param key: of the table
    :param descending: of each of its columns, whether the index has it so; empty where the table is one chunk
    :param highest: the last row's place after ``low`` was noted; None where the table is one chunk
    :param protection: what the login read masked, or filtered; None where it read all
    :param rows: that the table was said to have
    :param at: by the clock of the process that began it
    :param where: the conditions that its rows fulfil, as text; empty where it has all rows that are loaded
    :param by: the columns that it is cut by; empty for the key's
    :param altered_upto: where the last statement was then that has changed a captured column; None where none was known
    :param changed_after: it has the rows that changed after this version of Change Tracking; None where it has all
    :param schema: the canonical JSON that ``schema_hash`` is made of; '' where a version has begun it that kept none
    """

    id: str
    low: Annotated[Position, Tagged]
    witnesses: tuple[Witness, ...]
    feed: FeedRef
    schema_hash: str
    selection_hash: str | None = None
    key: tuple[str, ...] = ()
    descending: tuple[bool, ...] = ()
    highest: Bound | None = None
    protection: str | None = None
    rows: int = 0
    at: datetime.datetime | None = None
    where: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    altered_upto: Annotated[Position | None, Tagged] = None
    schema: str = ""
    changed_after: Annotated[Position | None, Tagged] = None
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)

    FORMAT: ClassVar[Format] = Format("copy", 1, "0.3.0", {})

    def dropped_since(self, now: KeptSchema, there: Collection[int]) -> tuple[ColumnFacts, ...]:
        """The columns that the source table has dropped since, where nothing else has changed; none where more has.

        :param now: the columns with which it would go on
        :param there: the column_ids of all that the source table has
        """
        if not self.schema or self.schema_hash == now.hash:
            return ()
        then = KeptSchema(self.schema)
        gone = tuple(column for column in then.columns if column.column_id not in there)
        return gone if then.without([column.column_id for column in gone]).hash == now.hash else ()


@dataclass(frozen=True, slots=True)
class ReadEnd:
    """The end of a read, as ``core.passing.CopyEnd`` judges it.

    :param begin: what was seen before it, in the same process
    :param end: what was seen after it
    :param elapsed: seconds between the two, by the clock of that process
    """

    begin: CaptureProgress
    end: CaptureProgress
    elapsed: float

    @classmethod
    def of(cls, begin: CaptureProgress | None, end: CaptureProgress | None, elapsed: float) -> ReadEnd | None:
        """The end of a read; None where changes can be read once they are committed."""
        return None if begin is None or end is None else cls(begin, end, elapsed)

    @property
    def judged(self) -> CopyEnd:
        """The end as it is judged."""
        return CopyEnd(self.begin, self.end, self.elapsed)


@dataclass(frozen=True, slots=True)
class ChunkRead:
    """The entry of a chunk: the rows behind one place in the order of the key, up to another and at it.

    :param after: None is the first row
    :param last: None is the last row, and all that may come behind it
    :param files: of its rows, below the copy's folder
    :param columns: of the rows, as Spark's JSON of a schema
    :param end: None where changes can be read once they are committed
    :param without: name of the common values whose rows it does not have; '' where it has all rows
    """

    name: str
    after: Bound | None
    last: Bound | None
    rows: int
    files: tuple[str, ...]
    columns: str
    end: ReadEnd | None
    without: str = ""
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)

    FORMAT: ClassVar[Format] = Format("chunk of a copy", 1, "0.3.0", {})


@dataclass(frozen=True, slots=True)
class KeptWindow:
    """The entry of a window whose events are kept beside the chunks.

    :param columns: of the rows, as Spark's JSON of a schema
    :param counts: of the events, as ``spark.staging.Counts`` has them
    :param numbers: the largest number, ``_n``, that its events have
    :param files: of its rows, below the copy's folder
    :param is_whole: all rows that the table has are among its events: what chunks have beside them is gone
    """

    name: str
    after: Annotated[Position, Tagged]
    upto: Annotated[Position, Tagged]
    files: tuple[str, ...]
    columns: str
    counts: dict[str, int]
    numbers: int
    witness: Witness | None = None
    is_whole: bool = False
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)

    FORMAT: ClassVar[Format] = Format("kept window of a copy", 1, "0.3.0", {})


@dataclass(frozen=True, slots=True)
class KeysRead:
    """The entry of rows that were read by their keys.

    :param keys: files of the keys that were asked for, below the copy's folder
    :param key_columns: of these, as Spark's JSON of a schema
    :param rows: that were found
    :param files: of these
    :param columns: of these, as Spark's JSON of a schema
    :param low: every change after it that the read may lack is among the copy's events; None for the copy's own low
    :param is_whole: all rows that the table has are among these
    :param changed_after: they are those that changed after this version of Change Tracking; None of keys that were
        named
    """

    name: str
    keys: tuple[str, ...]
    key_columns: str
    rows: int
    files: tuple[str, ...]
    columns: str
    end: ReadEnd | None
    low: Annotated[Position | None, Tagged] = None
    is_whole: bool = False
    changed_after: Annotated[Position | None, Tagged] = None
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)

    FORMAT: ClassVar[Format] = Format("keys of a copy", 1, "0.3.0", {})


@dataclass(frozen=True, slots=True)
class CommonRead:
    """The entry of the values that nearly all rows have in some columns: chunks leave out rows that have them.

    :param of: the source columns
    :param values: of these, as exact texts; None is NULL
    :param rows: of the first rows, the number of those that have them
    :param total: rows that were looked at
    :param files: of one row with what targets hold then, below the copy's folder
    :param columns: of this row, as Spark's JSON of a schema
    """

    name: str
    of: tuple[str, ...]
    values: tuple[str | None, ...]
    rows: int
    total: int
    files: tuple[str, ...]
    columns: str
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)

    FORMAT: ClassVar[Format] = Format("common values of a copy", 1, "0.3.0", {})


def usable(
    chunks: Sequence[ChunkRead], found: Sequence[CommonRead], of: Sequence[str]
) -> tuple[list[ChunkRead], CommonRead | None]:
    """The chunks that can count, and the common values whose rows they may leave out.

    Two runs may each have found such values. One entry counts for all: else a row that no chunk has would have two.

    :param found: by name
    :param of: the columns whose common values may be left out; empty where all rows are wanted
    """
    common = next((each for each in found if of and each.of == tuple(of)), None)
    names = {"", common.name} if common is not None else {""}
    return [chunk for chunk in chunks if chunk.without in names], common


@dataclass(frozen=True, slots=True)
class Hole:
    """What no chunk that counts has: the rows behind one place, up to another and at it."""

    after: Bound | None
    last: Bound | None


def joined_windows(low: Position, kept: Sequence[KeptWindow]) -> list[tuple[Position, KeptWindow]]:
    """The kept windows that count, each with the position behind which its rows do: they join without a break.

    :param low: of the copy
    """
    found: list[tuple[Position, KeptWindow]] = []
    reached = low
    while True:
        going_on = [window for window in kept if window.after <= reached < window.upto]
        if not going_on:
            return found
        farthest = max(window.upto for window in going_on)
        best = min((window for window in going_on if window.upto == farthest), key=lambda window: window.name)
        found.append((reached, best))
        reached = farthest


def reached_by(begun: CopyBegun, kept: Sequence[KeptWindow]) -> Position:
    """A copy's position: the end of the newest window that counts."""
    counting = joined_windows(begun.low, kept)
    return counting[-1][1].upto if counting else begun.low


def witnesses_of(
    begun: CopyBegun, kept: Sequence[KeptWindow] = (), read: Sequence[ChunkRead | KeysRead] = ()
) -> list[Witness]:
    """What was seen of the positions that a copy stands on: of its begin, its newest window, and its newest rows."""
    found = [*begun.witnesses, *(w.witness for _, w in joined_windows(begun.low, kept)[-1:] if w.witness)]
    fork = begun.witnesses[0].recovery_fork if begun.witnesses else None
    seen = [(each.end.end.max_lsn, each.end.end.max_time) for each in read if each.end is not None]
    mapped = sorted((lsn, time) for lsn, time in seen if lsn is not None and time is not None)
    return found + [Witness(lsn, time, fork) for lsn, time in mapped[-1:]]


def bounds_of(chunks: Sequence[ChunkRead]) -> list[Bound]:
    """The places at which chunks begin or end, each once."""
    return list(dict.fromkeys(bound for chunk in chunks for bound in (chunk.after, chunk.last) if bound is not None))


def covering(
    chunks: Sequence[ChunkRead], places: Callable[[Sequence[Bound]], Mapping[Bound, int]]
) -> tuple[list[ChunkRead], list[Hole]]:
    """The chunks that count, and the holes that are left to be read, both in the order of the key.

    No two of these chunks overlap. Of all such choices it is the one that covers most of the places; of equal ones that
    with most rows.

    :param chunks: of the folder, whole ones only
    :param places: says the order of some bounds, from 0 on: equal ones, by the server's own comparison, have one place
    """
    if (row := _in_a_row(chunks)) is not None:
        return row, _holes(row, lambda bound: bound)
    order = places(bounds_of(chunks))
    beyond = 1 + max(order.values(), default=-1)

    def begins(chunk: ChunkRead) -> int:
        return -1 if chunk.after is None else order[chunk.after]

    def ends(chunk: ChunkRead) -> int:
        return beyond if chunk.last is None else order[chunk.last]

    whole = sorted((c for c in chunks if begins(c) < ends(c)), key=lambda c: (ends(c), begins(c), c.name))
    # the best choice of chunks that end at a place or before it, by what it has and which chunks it is made of
    best: list[tuple[int, int, tuple[int, int] | None]] = [(0, 0, None)] * (beyond + 2)
    at = 0
    for place in range(-1, beyond + 1):
        chosen = best[place] if place >= 0 else (0, 0, None)
        while at < len(whole) and ends(whole[at]) == place:
            covered, rows, _ = best[begins(whole[at]) + 1]
            with_it = (covered + place - begins(whole[at]), rows + whole[at].rows, (at, begins(whole[at]) + 1))
            if with_it[:2] > chosen[:2]:
                chosen = with_it
            at += 1
        best[place + 1] = chosen
    counting = _chosen(whole, best)
    return counting, _holes(counting, lambda bound: bound if bound is None else order[bound])


def _in_a_row(chunks: Sequence[ChunkRead]) -> list[ChunkRead] | None:
    """The chunks, if each begins where one before it ended, the first at the first row: then nobody need be asked."""
    by_begin = {chunk.after: chunk for chunk in chunks}
    found: list[ChunkRead] = []
    reached: Bound | None = None
    # texts of equal values may lead back to one another, so each is taken once
    while reached in by_begin:
        found.append(by_begin.pop(reached))
        reached = found[-1].last
    return found if len(found) == len(chunks) else None


def _chosen(whole: Sequence[ChunkRead], best: Sequence[tuple[int, int, tuple[int, int] | None]]) -> list[ChunkRead]:
    found: list[ChunkRead] = []
    step = best[-1][2]
    while step is not None:
        found.append(whole[step[0]])
        step = best[step[1]][2]
    return found[::-1]


def _holes(chunks: Sequence[ChunkRead], place: Callable[[Bound | None], object]) -> list[Hole]:
    """What lies before, between and behind chunks that are in order."""
    holes: list[Hole] = []
    reached: Bound | None = None
    for chunk in chunks:
        if place(chunk.after) != place(reached):
            holes.append(Hole(reached, chunk.after))
        reached = chunk.last
    if not chunks or reached is not None:
        holes.append(Hole(reached, None))
    return holes


def next_size(size: int, rows: int, seconds: float, wanted: float | None) -> int:
    """How many rows the next chunk has at least: as many as are read in the wanted time, but at most twice as many, or
    half as many, as now.

    :param size: now
    :param rows: of a chunk that was read
    :param seconds: that it took
    :param wanted: None leaves the size as it is
    """
    if wanted is None or rows < size or seconds <= 0:
        return size
    return max(1, int(min(max(rows / seconds * wanted, size / 2), size * 2)))
