"""Entries of a copy: which of them count, compared with plain models, and whole copies by runs that are killed."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.chunks import Bound
from airflow_provider_mssql_cdc.core.codec import from_json, to_data, to_json
from airflow_provider_mssql_cdc.core.copies import (
    ChunkRead,
    CopyBegun,
    Hole,
    KeptWindow,
    ReadEnd,
    bounds_of,
    covering,
    joined_windows,
)
from airflow_provider_mssql_cdc.core.exceptions import FormatError, NewerFormatError
from airflow_provider_mssql_cdc.core.feed import CaptureInstance, FeedRef
from airflow_provider_mssql_cdc.core.lineage import LogHistory, Witness
from airflow_provider_mssql_cdc.core.passing import CaptureProgress
from airflow_provider_mssql_cdc.core.position import KINDS, Lsn, Position, is_gap
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema
from airflow_provider_mssql_cdc.core.void_copies import why_void
from tests.support.core.positions import Counted

DAY = datetime.datetime(2026, 1, 1)
SEEN = CaptureProgress(DAY, Lsn.parse("0x" + "0" * 19 + "7"), DAY, None, DAY, 60)
END = ReadEnd(SEEN, dataclasses.replace(SEEN, empty_scans=3), 1.5)
FEED = CaptureInstance("dbo_t", 7, TableName("dbo", "t"), 5, DAY, ())

Place = tuple[tuple[int, int, str], ...]
"""Where a row is in the order of the key; texts that the server takes for equal have one."""


def lsn(number: int) -> Lsn:
    return Lsn(number.to_bytes(Lsn.LENGTH))


def number(position: Position) -> int:
    return int.from_bytes(Lsn.of(position).value)


def place_of(bound: Bound) -> Place:
    """Its place: NULL is below all; numbers by their value, letters in any case."""
    return tuple(
        (0, 0, "") if text is None else (1, int(text), "") if text.isdigit() else (2, 0, text.lower()) for text in bound
    )


def places(bounds: Sequence[Bound]) -> Mapping[Bound, int]:
    """The order of bounds, as a server says it: by how many are before each."""
    assert len({*bounds}) == len(bounds)
    return {bound: sum(place_of(other) < place_of(bound) for other in bounds) for bound in bounds}


def not_asked(bounds: Sequence[Bound]) -> Mapping[Bound, int]:
    raise AssertionError(f"asked for {bounds}")


def chunk_of(name: str, after: Bound | None, last: Bound | None, rows: int = 0, end: ReadEnd = END) -> ChunkRead:
    return ChunkRead(name, after, last, rows, (), columns="{}", end=end)


def end_of(at: int, time: datetime.datetime) -> ReadEnd:
    """The end of a read that saw this position as the newest one."""
    seen = dataclasses.replace(SEEN, max_lsn=lsn(at), max_time=time)
    return ReadEnd(seen, seen, 0.5)


def window_of(name: str, after: Position, upto: Position, witness: Witness | None = None) -> KeptWindow:
    return KeptWindow(name, after, upto, (), "{}", {}, 0, witness)


# windows


windows_strategy = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=7).map(
    lambda spans: [window_of(f"w{n}", lsn(after), lsn(upto)) for n, (after, upto) in enumerate(spans)]
)


@settings(max_examples=300, deadline=None)
@given(low=st.integers(0, 9), kept=windows_strategy, data=st.data())
def test_windows_join_from_low_to_the_newest_without_a_break_or_a_double(
    low: int, kept: list[KeptWindow], data: st.DataObject
) -> None:
    found = joined_windows(lsn(low), kept)

    newest = low
    while any(number(window.after) <= newest < number(window.upto) for window in kept):
        newest += 1
    spans = [(number(behind), number(window.upto)) for behind, window in found]
    held = [position for behind, upto in spans for position in range(behind + 1, upto + 1)]
    assert held == list(range(low + 1, newest + 1))
    # each window has all that is taken from it, and is the smallest name of those that reach farthest
    for behind, window in found:
        may = [w for w in kept if w.after <= behind]
        farthest = max(w.upto for w in may)
        assert window == min((w for w in may if w.upto == farthest), key=lambda w: w.name)
    # as few as can be
    for size in range(len(found)):
        for some in itertools.combinations(kept, size):
            covered = {p for w in some for p in range(number(w.after) + 1, number(w.upto) + 1)}
            assert not {*range(low + 1, newest + 1)} <= covered
    assert joined_windows(lsn(low), data.draw(st.permutations(kept))) == found


def test_windows_of_another_kind_of_position_join() -> None:
    first, second = window_of("a", Counted(9), Counted(10)), window_of("b", Counted(8), Counted(100))
    assert joined_windows(Counted(9), [first, second]) == [(Counted(9), second)]
    assert joined_windows(Counted(7), [first, second]) == []


# chunks


BOUNDS: tuple[Bound, ...] = tuple(itertools.product((None, "2", "10"), ("a", "A", "b", None)))
bound_strategy = st.one_of(st.none(), st.sampled_from(BOUNDS))


def leads_nowhere(after: Bound | None, last: Bound | None) -> bool:
    """Whether no row can be behind the one and up to the other."""
    return after is not None and last is not None and place_of(last) <= place_of(after)


def leads_back(chunks: Sequence[ChunkRead]) -> bool:
    """Whether chunks that follow each other from the first row on come to an earlier place: the order changed."""
    by_begin = {chunk.after: chunk for chunk in chunks}
    reached: Bound | None = None
    been: set[Bound | None] = set()
    while reached in by_begin and reached not in been:
        been.add(reached)
        last = by_begin[reached].last
        if last is not None and reached is not None and place_of(last) < place_of(reached):
            return True
        reached = last
    return False


@st.composite
def chunks_strategy(draw: st.DrawFn) -> list[ChunkRead]:
    """Chunks of any runs, some of them twice; those that no row can be in have none."""
    spans = draw(st.lists(st.tuples(bound_strategy, bound_strategy), max_size=5))
    if draw(st.booleans()):
        cuts = sorted(draw(st.sets(st.sampled_from(BOUNDS), max_size=3)), key=place_of)
        row: list[Bound | None] = [None, *cuts, None]
        others = draw(st.integers(0, 2))
        spans = [*spans[:others], *itertools.pairwise(row)]
        if draw(st.booleans()):
            del spans[draw(st.integers(0, len(spans))) :]
    is_twice = draw(st.booleans())
    if spans and is_twice:
        spans.append(draw(st.sampled_from(spans)))
    names = draw(st.permutations([f"c{n}" for n in range(len(spans))]))
    return [
        chunk_of(name, *span, 0 if leads_nowhere(*span) else draw(st.integers(0, 3)))
        for name, span in zip(names, spans, strict=True)
    ]


def steps_of(order: Mapping[Bound, int], after: Bound | None, last: Bound | None) -> range:
    """The steps from a place to the next one that lie behind one place, up to another: 0 ends at the first place."""
    beyond = 1 + max(order.values(), default=-1)
    return range(0 if after is None else order[after] + 1, (beyond if last is None else order[last]) + 1)


def best_value(order: Mapping[Bound, int], chunks: Sequence[ChunkRead]) -> tuple[int, int]:
    """The most steps, and of these the most rows, that chunks without an overlap have: all choices are tried."""
    spans = [(chunk.rows, steps_of(order, chunk.after, chunk.last)) for chunk in chunks]
    best = (0, 0)
    for chosen in itertools.product((False, True), repeat=len(chunks)):
        some = [span for span, is_in in zip(spans, chosen, strict=True) if is_in]
        held = [step for _, steps in some for step in steps]
        if len(held) == len({*held}):
            best = max(best, (len(held), sum(rows for rows, _ in some)))
    return best


def check_covering(chunks: Sequence[ChunkRead], counting: Sequence[ChunkRead], holes: Sequence[Hole]) -> None:
    """Chunks and holes have each place once, in the order of the key, and no choice of chunks is better."""
    order = places(bounds_of(chunks))
    beyond = 1 + max(order.values(), default=-1)
    assert all(chunk in chunks for chunk in counting)
    assert len({chunk.name for chunk in counting}) == len(counting)

    spans = [
        steps_of(order, *span) for span in [*((c.after, c.last) for c in counting), *((h.after, h.last) for h in holes)]
    ]
    assert sorted(step for steps in spans for step in steps) == list(range(beyond + 1))
    assert [*counting] == sorted(counting, key=lambda c: order.get(c.last, beyond) if c.last else beyond)
    assert [hole.after for hole in holes] == sorted((h.after for h in holes), key=lambda b: order[b] if b else -1)
    # a hole is read from the end of a chunk up to the begin of the next, at once
    assert all(spans[len(counting) :])
    assert {hole.after for hole in holes} <= {None, *(chunk.last for chunk in counting)}
    assert {hole.last for hole in holes} <= {None, *(chunk.after for chunk in counting)}

    steps = sum(len(span) for span in spans[: len(counting)])
    assert (steps, sum(chunk.rows for chunk in counting)) == best_value(order, chunks)
    # of equal ones the smaller name
    for chunk, span in zip(counting, spans, strict=False):
        same = [c for c in chunks if span and (steps_of(order, c.after, c.last), c.rows) == (span, chunk.rows)]
        assert chunk.name == min([c.name for c in same], default=chunk.name)


@settings(max_examples=600, deadline=None)
@given(chunks=chunks_strategy(), data=st.data())
def test_the_chunks_that_count_and_the_holes_are_all_places_once_with_the_least_holes(
    chunks: list[ChunkRead], data: st.DataObject
) -> None:
    assume(not leads_back(chunks))
    counting, holes = covering(chunks, places)
    check_covering(chunks, counting, holes)

    # whoever lists them, and once more with what counts alone
    mixed: list[ChunkRead] = data.draw(st.permutations(chunks))
    assume(not leads_back(mixed))
    assert covering(mixed, places) == (counting, holes)
    again, same = covering(counting, places)
    assert (again, same) == (counting, holes)


@settings(max_examples=300, deadline=None)
@given(
    cuts=st.lists(st.sampled_from(BOUNDS), max_size=5, unique=True).map(lambda found: sorted(found, key=place_of)),
    rows=st.lists(st.integers(0, 3), min_size=6, max_size=6),
    is_whole=st.booleans(),
    data=st.data(),
)
def test_nobody_is_asked_where_chunks_are_in_a_row(
    cuts: list[Bound], rows: list[int], is_whole: bool, data: st.DataObject
) -> None:
    row: list[Bound | None] = [None, *cuts, *([None] if is_whole else [])]
    chunks = [
        chunk_of(f"c{n}", after, last, 0 if leads_nowhere(after, last) else rows[n])
        for n, (after, last) in enumerate(itertools.pairwise(row))
    ]
    counting, holes = covering(data.draw(st.permutations(chunks)), not_asked)
    assert counting == chunks
    assert holes == ([] if is_whole else [Hole(cuts[-1] if cuts else None, None)])
    # the same as with places: one more entry of the first chunk, which cannot count beside it
    if chunks and not is_whole:
        twice = [*chunks, dataclasses.replace(chunks[0], name="z")]
        check_covering(twice, *covering(twice, places))


def test_holes_before_between_and_behind_chunks() -> None:
    a, b, c, d = (("a",), ("b",), ("c",), ("d",))
    first, second = chunk_of("x", a, b, 1), chunk_of("y", c, d, 1)
    assert covering([], not_asked) == ([], [Hole(None, None)])
    assert covering([second, first], places) == ([first, second], [Hole(None, a), Hole(b, c), Hole(d, None)])
    whole = [chunk_of("y", None, None, 5), chunk_of("x", None, None, 5), chunk_of("z", None, None, 4)]
    assert covering(whole, places) == ([whole[1]], [])
    # by the server's own comparison there is nothing between these
    upper = chunk_of("y", ("B",), None, 1)
    assert covering([first, upper], places) == ([first, upper], [Hole(None, a)])


def test_each_place_is_asked_for_once() -> None:
    chunks = [chunk_of("x", None, ("a", None)), chunk_of("y", ("a", None), (None, "b")), chunk_of("z", None, None)]
    assert bounds_of(chunks) == [("a", None), (None, "b")]


# what voids a copy


BEGUN = CopyBegun("c1", lsn(10), (Witness(lsn(10), DAY, "A"),), FeedRef.of(FEED), "s1", "x1", ("id",), (False,))
LINEAGE = LogHistory(lsn(50), lsn(5), {lsn(n): DAY + datetime.timedelta(hours=n - 10) for n in range(5, 51)}, "A")
NOW: dict[str, Any] = {"feed": FEED, "schema_hash": "s1", "selection_hash": "x1", "key": ("id",), "lineage": LINEAGE}
LATER = DAY + datetime.timedelta(minutes=1)


def time_of(at: int) -> datetime.datetime:
    return LINEAGE.mapped[lsn(at)]


def is_of(now: LogHistory, seen: Sequence[Witness]) -> bool:
    """Whether all that was seen of positions is still so, in plain words."""
    return all(
        number(each.lsn) <= number(now.max_lsn or lsn(0))
        and each.recovery_fork in (None, now.recovery_fork)
        and now.mapped.get(Lsn.of(each.lsn), each.time) == each.time
        for each in seen
    )


@settings(max_examples=300, deadline=None)
@given(
    others=st.sets(st.sampled_from(["id", "date", "schema", "selection", "none selected", "key", "fork"]), max_size=2)
    | st.just(set()),
    max_lsn=st.sampled_from([50, 50, 50, 12, 9]),
    restored=st.one_of(st.none(), st.integers(9, 21)),
    spans=st.lists(st.tuples(st.integers(8, 15), st.integers(11, 20), st.booleans()), max_size=4),
    ends=st.lists(st.one_of(st.none(), st.integers(8, 20)), max_size=3),
    readable_from=st.one_of(st.none(), st.integers(1, 22), st.integers(1, 12)),
)
def test_what_voids_a_copy(
    others: set[str],
    max_lsn: int,
    restored: int | None,
    spans: list[tuple[int, int, bool]],
    ends: list[int | None],
    readable_from: int | None,
) -> None:
    feed = dataclasses.replace(
        FEED, object_id=8 if "id" in others else 7, create_date=LATER if "date" in others else DAY
    )
    schema_hash = "s2" if "schema" in others else "s1"
    selection_hash = None if "none selected" in others else "x2" if "selection" in others else "x1"
    key = ("id", "n") if "key" in others else ("id",)
    fork = "B" if "fork" in others else "A"
    # from a restored position on others have their numbers
    mapped = {at: LATER if restored and number(at) > restored else time for at, time in LINEAGE.mapped.items()}
    now = dataclasses.replace(LINEAGE, max_lsn=lsn(max_lsn), mapped=mapped, recovery_fork=fork)
    kept = [
        window_of(
            f"w{n}",
            lsn(after),
            lsn(upto),
            Witness(lsn(upto), time_of(upto), "A") if is_witnessed else None,
        )
        for n, (after, upto, is_witnessed) in enumerate(spans)
    ]
    nothing = dataclasses.replace(SEEN, max_lsn=None, max_time=None)
    chunks = [
        chunk_of(f"c{n}", None, None, 0, ReadEnd(nothing, nothing, 1.0) if at is None else end_of(at, time_of(at)))
        for n, at in enumerate(ends)
    ]

    why = why_void(
        BEGUN,
        kept,
        chunks,
        feed=feed,
        schema_hash=schema_hash,
        selection_hash=selection_hash,
        key=key,
        lineage=now,
        readable_from=None if readable_from is None else lsn(readable_from),
    )

    newest = number(BEGUN.low)
    while any(number(window.after) <= newest < number(window.upto) for window in kept):
        newest += 1
    seen = [*BEGUN.witnesses]
    # of windows and chunks the newest: what is there unchanged proves all before it
    seen += [window.witness for _, window in joined_windows(BEGUN.low, kept)[-1:] if window.witness]
    seen += [Witness(lsn(at), time_of(at), "A") for at in ends if at is not None and at == max(filter(None, ends))]
    reasons = [
        (feed != FEED, "it was begun with dbo_t (7), and the table is read by capture instance dbo_t now"),
        (schema_hash != "s1" or key != ("id",), "the captured columns or the key are others now"),
        (selection_hash != "x1", "columns, where, rename or mask were changed"),
        (not is_of(now, seen) or newest > max_lsn, "the database was restored, or CDC or Change Tracking enabled anew"),
        (readable_from is None or readable_from > newest, f"the changes after {lsn(newest)} were purged"),
    ]
    said = next((text for is_so, text in reasons if is_so), None)
    assert (why is None) == (said is None)
    assert said is None or said in str(why)


def test_a_copy_from_before_a_statement_that_may_have_altered_values_begins_again() -> None:
    """Though a later statement has given the column its type again."""
    noted = dataclasses.replace(BEGUN, altered_upto=lsn(7))
    for begun, altered, is_void in (
        (BEGUN, None, False),
        # of a version that did not note it the beginning counts
        (BEGUN, 9, False),
        (BEGUN, 11, True),
        (noted, 7, False),
        (noted, 8, True),
    ):
        upto = None if altered is None else lsn(altered)
        why = why_void(begun, [], **NOW, altered_upto=upto, readable_from=lsn(10))
        assert (why is not None and "a captured column was changed at" in why) == is_void


def of_columns(*ids: int, type_: str = "int", key: str = "c1") -> KeptSchema:
    columns = [Column(n, n, f"c{n}", type_ if n > 1 else "int", 4, 10, 0, True, None) for n in ids]
    return KeptSchema.of(TableSchema(tuple(columns), (key,)))


@given(st.sets(st.integers(2, 5)), st.sets(st.integers(2, 6)), st.sets(st.integers(1, 7)), st.booleans())
def test_a_copy_goes_on_without_what_the_table_has_dropped_and_with_nothing_else(
    then: set[int], now: set[int], there: set[int], is_altered: bool
) -> None:
    began, goes_on = of_columns(1, *then), of_columns(1, *now, type_="bigint" if is_altered else "int")
    begun = dataclasses.replace(BEGUN, schema_hash=began.hash, schema=began.canonical)
    gone = begun.dropped_since(goes_on, there)
    may = now < then and then - now == then - there and 1 in there and not (is_altered and now)
    assert [column.column_id for column in gone] == (sorted(then - now) if may else [])
    why = why_void(begun, [], **{**NOW, "schema_hash": goes_on.hash}, gone=gone, readable_from=lsn(10))
    same = now == then and not (is_altered and now)
    assert (why is None) == (may or same)
    # of a version that did not keep the columns nobody knows
    assert dataclasses.replace(begun, schema="").dropped_since(goes_on, there) == ()
    assert begun.dropped_since(of_columns(1, *now, key="c2"), there) == ()


def test_a_copy_without_a_selection_goes_on_without_one() -> None:
    plain = dataclasses.replace(BEGUN, selection_hash=None)
    assert why_void(plain, [], **{**NOW, "selection_hash": None}, readable_from=lsn(10)) is None
    assert "mask were changed" in str(why_void(plain, [], **NOW, readable_from=lsn(10)))


# whole copies


@dataclass(frozen=True, slots=True)
class Event:
    """A captured change of a row: I its new row, U the new one with the one before it, D the one that was deleted."""

    at: int
    op: str
    row: tuple[Bound, int]
    before: tuple[Bound, int] | None = None

    @property
    def place(self) -> Place:
        return place_of(self.row[0])


Rows = dict[Place, tuple[Bound, int]]
"""Rows by their key as the server compares it, with the text that they have."""

KEYS: dict[str, tuple[Bound, ...]] = {
    "number": tuple((str(n),) for n in range(4, 16)),
    "text": tuple((letter,) for letter in "abcdefgABCDEFG"),
    "pair": tuple(itertools.product((None, "9", "10"), ("a", "A", "b", "B", "c"))),
}


class Source:
    """A table with its log, of which the oldest part is purged, and a capture that lags.

    :ivar states: the table after each position
    :ivar purged: events at it and before it cannot be read
    :ivar fork: of the log; None where it cannot be seen
    """

    def __init__(self, rng: random.Random, keys: Sequence[Bound]) -> None:
        self.rng, self.keys = rng, keys
        self.rows: Rows = {}
        self.log: list[Event] = []
        self.states: list[Rows] = [{}]
        self.times = [DAY]
        self.captured = self.purged = 0
        self.fork = rng.choice(("A", None))
        self._numbers = itertools.count()
        self._clock = itertools.count(1)

    @property
    def at(self) -> int:
        """The newest position."""
        return len(self.states) - 1

    def commit(self) -> None:
        """Some changes in one transaction."""
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            self._change(self.at + 1)
        self.states.append(dict(self.rows))
        self.times.append(DAY + datetime.timedelta(minutes=next(self._clock)))

    def _change(self, at: int) -> None:
        bound = self.rng.choice(self.keys)
        new, old = (bound, next(self._numbers)), self.rows.get(place_of(bound))
        if old is None:
            self._write(Event(at, "I", new))
        elif (kind := self.rng.random()) < 0.3:
            self._write(Event(at, "D", old))
        elif kind < 0.6:
            # an update of the key, at times to the same one in other letters
            self._write(Event(at, "D", old))
            other = self.rng.choice((bound, self.rng.choice(self.keys)))
            if place_of(other) not in self.rows:
                self._write(Event(at, "I", (other, next(self._numbers))))
        else:
            self._write(Event(at, "U", (old[0], new[1]), old))

    def _write(self, event: Event) -> None:
        self.log.append(event)
        self.rows = folded(self.rows, [event])

    def events(self, after: int, upto: int) -> list[Event]:
        """What can be read of these positions."""
        return [event for event in self.log if max(after, self.purged) < event.at <= upto]

    def restore(self, to: int) -> None:
        """Go back to a position; what comes then is another history."""
        del self.states[to + 1 :], self.times[to + 1 :]
        self.log = [event for event in self.log if event.at <= to]
        self.rows = dict(self.states[to])
        self.captured, self.purged = min(self.captured, to), min(self.purged, to)
        self.fork = self.fork and self.fork + "B"

    def lineage(self) -> LogHistory:
        """What the mapping of positions to times says."""
        mapped = {lsn(n): self.times[n] for n in range(1, self.captured + 1)}
        return LogHistory(lsn(self.captured), lsn(1), mapped, self.fork)

    def witness(self, at: int) -> Witness:
        return Witness(lsn(at), self.times[at], self.fork)


def folded(rows: Rows, events: Sequence[Event]) -> Rows:
    """What events make of a mirror's rows."""
    rows = dict(rows)
    for event in events:
        if event.op == "D":
            rows.pop(event.place, None)
        else:
            rows[event.place] = event.row
    return rows


def at_low(copied: Rows, events: Sequence[Event]) -> Rows:
    """What stood before the first event: copied rows without events, and what first events say of before."""
    firsts: dict[Place, Event] = {}
    for event in events:
        firsts.setdefault(event.place, event)
    rows = {place: row for place, row in copied.items() if place not in firsts}
    for place, event in firsts.items():
        before = event.row if event.op == "D" else event.before
        if before is not None:
            rows[place] = before
    return rows


@dataclass
class Folder:
    """A copy's folder: entries, and the files of rows, which may have none.

    :ivar ends: of each chunk, where the source was when it was read
    :ivar shared: the folder of which this is what one run has listed, and has added itself
    """

    begun: CopyBegun
    chunks: list[ChunkRead] = field(default_factory=list)
    kept: list[KeptWindow] = field(default_factory=list)
    rows: dict[str, Rows] = field(default_factory=dict)
    events: dict[str, list[Event]] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    shared: Folder | None = None

    def add(self, entry: ChunkRead | KeptWindow) -> None:
        """Write an entry."""
        for folder in filter(None, (self, self.shared)):
            if isinstance(entry, ChunkRead):
                folder.chunks.append(entry)
            else:
                folder.kept.append(entry)


class Copies:
    """A source, the folders of its copies, and the runs that read into them.

    :ivar seen: what happened, by how often
    :ivar at_once: so many runs, at most
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.source = Source(rng, KEYS[rng.choice([*KEYS])])
        self.folders: list[Folder] = []
        self.seen: Counter[str] = Counter()
        self.size, self.haste = rng.randint(1, 4), rng.choice((1, 0.3, 0.03))
        self.at_once = rng.choice((1, 3))
        self.is_done = False

    def void(self, folder: Folder) -> str | None:
        source = self.source
        why = why_void(
            folder.begun,
            folder.kept,
            folder.chunks,
            feed=FEED,
            schema_hash="s",
            selection_hash=None,
            key=("k",),
            lineage=source.lineage(),
            readable_from=lsn(source.purged),
        )
        if why:
            self.seen["purged" if "purged" in why else "restored"] += 1
        return why

    def is_seen(self, to: int) -> bool:
        """Whether a restore to there must be seen: by its fork, or by what the newest copy knows that is behind it."""
        if self.source.fork or not self.folders:
            return True
        folder = self.folders[-1]
        known = [
            folder.begun.low,
            *(w.upto for w in folder.kept),
            *(c.end.end.max_lsn or lsn(0) for c in folder.chunks),
        ]
        return max(map(number, known)) > to

    def run(self) -> Iterator[None]:
        """One run: it may be killed at each yield."""
        source = self.source
        folder = self.folders[-1] if self.folders else None
        if folder is None or self.void(folder):
            low = self.rng.randint(max(1, source.purged), source.captured)
            begun = CopyBegun(self._name(), lsn(low), (source.witness(low),), FeedRef.of(FEED), "s", None, ("k",))
            yield
            highest = max(source.rows.items(), default=(None, (None, 0)))[1][0]
            begun = dataclasses.replace(begun, highest=highest)
            folder = Folder(begun)
            self.folders.append(folder)
        else:
            self.seen["went on"] += 1
        if self.rng.random() < 0.5:
            # what others add from now on it does not see
            folder = dataclasses.replace(folder, chunks=[*folder.chunks], kept=[*folder.kept], shared=folder)
        yield
        while not self.is_done:
            yield from self._keep(folder)
            if self.void(folder):
                return
            counting, holes = covering(folder.chunks, places)
            assert not any(leads_nowhere(hole.after, hole.last) for hole in holes)
            if not holes and self._commit(folder, counting):
                return
            self.seen["overlaps"] += len(counting) < len(folder.chunks)
            self.seen["holes between"] += any(hole.after and hole.last for hole in holes)
            yield from self._read(folder, self._pieces(counting, holes, folder.begun.highest))
            yield

    def _a_while(self) -> Iterator[None]:
        """What is written late: others go on meanwhile."""
        yield from itertools.repeat(None, self.rng.choice((1, 1, 1, 8)))

    def _name(self) -> str:
        return f"{self.rng.getrandbits(32):08x}"

    def _keep(self, folder: Folder) -> Iterator[None]:
        """Keep the events behind those that are kept."""
        joined = joined_windows(folder.begun.low, folder.kept)
        reached = joined[-1][1].upto if joined else folder.begun.low
        yield
        source, name = self.source, self._name()
        if source.captured <= number(reached) or self.void(folder):
            return
        upto = self.rng.choice((source.captured, self.rng.randint(number(reached) + 1, source.captured)))
        folder.events[name] = source.events(number(reached), upto)
        if is_gap(reached, lsn(source.purged)):
            return
        witness = source.witness(upto)
        yield from self._a_while()
        folder.add(window_of(name, reached, lsn(upto), witness))

    def _pieces(
        self, counting: Sequence[ChunkRead], holes: Sequence[Hole], highest: Bound | None
    ) -> list[tuple[Bound | None, Bound | None]]:
        """Some of what is left, cut at every so many rows, but not behind what was the last one."""
        pieces: list[tuple[Bound | None, Bound | None]] = []
        for hole in holes:
            reached, limit, end = hole.after, hole.last or highest, None
            while len(pieces) < 4 and (end := self._end(reached, limit)) not in (None, limit):
                pieces.append((reached, end))
                reached = end
            if len(pieces) < 4:
                pieces.append((reached, hole.last))
        # what counts is not read again
        for (after, last), chunk in itertools.product(pieces, counting):
            assert not any(
                within(place_of(key), after, last) and within(place_of(key), chunk.after, chunk.last)
                for key in self.source.keys
            )
        self.rng.shuffle(pieces)
        return pieces

    def _end(self, after: Bound | None, last: Bound | None) -> Bound | None:
        """Where a chunk of so many rows ends."""
        behind = sorted((place, row[0]) for place, row in self.source.rows.items() if within(place, after, last))
        return behind[self.size - 1][1] if len(behind) >= self.size else None

    def _read(self, folder: Folder, pieces: Sequence[tuple[Bound | None, Bound | None]]) -> Iterator[None]:
        """Read chunks, each at a moment of its own; entries are written later, in any order."""
        read: list[ChunkRead] = []
        for after, last in pieces:
            yield
            name = self._name()
            rows = {place: row for place, row in self.source.rows.items() if within(place, after, last)}
            folder.rows[name], folder.ends[name] = rows, self.source.at
            end = end_of(self.source.captured, self.source.times[self.source.captured])
            read.append(chunk_of(name, after, last, len(rows), end))
            while read and self.rng.random() < 0.5:
                yield from self._a_while()
                folder.add(read.pop(self.rng.randrange(len(read))))
        for chunk in read:
            yield
            folder.add(chunk)

    def _commit(self, folder: Folder, counting: Sequence[ChunkRead]) -> bool:
        """End the copy, if the kept events reach beyond all that was read; it must be the source then."""
        source, low = self.source, number(folder.begun.low)
        joined = joined_windows(folder.begun.low, folder.kept)
        newest = number(joined[-1][1].upto) if joined else low
        if self.rng.random() > self.haste or newest < max(folder.ends[chunk.name] for chunk in counting):
            self.seen["waited"] += 1
            return False
        copied: Rows = {}
        for chunk in counting:
            assert not copied.keys() & folder.rows[chunk.name].keys()
            copied |= folder.rows[chunk.name]
        if self.at_once == 1:
            # all that has an entry was read once
            assert all(chunk in counting or leads_nowhere(chunk.after, chunk.last) for chunk in folder.chunks)
            assert len(joined) == len(folder.kept)
        events = [e for behind, window in joined for e in folder.events[window.name] if e.at > number(behind)]

        assert events == [event for event in source.log if low < event.at <= newest]
        changed = {event.place for event in events}
        unchanged = {place: row for place, row in copied.items() if place not in changed}
        assert folded(unchanged, events) == source.states[newest]
        assert at_low(copied, events) == source.states[low]
        self.seen["commits"] += 1
        self.seen["windows passed over"] += len(joined) < len(folder.kept)
        self.seen["windows cut"] += any(window.after < behind for behind, window in joined)
        self.seen["files without an entry"] += len(folder.rows) > len(folder.chunks)
        self.is_done = True
        return True


def within(place: Place, after: Bound | None, last: Bound | None) -> bool:
    return (after is None or place_of(after) < place) and (last is None or place <= place_of(last))


def copy_through_all(rng: random.Random) -> Counter[str]:
    """One copy, from what stands there at first up to its commit; what happened on the way."""
    copies = Copies(rng)
    source, runs = copies.source, list[Iterator[None]]()
    for _ in range(rng.randint(1, 12)):
        source.commit()
    source.captured = rng.randint(1, source.at)
    retention = rng.choice((3, 8, 100))
    doings: dict[str, float] = {
        "commit": 4,
        "capture": 3,
        "purge": 1,
        "begin": 2,
        "go on": 24,
        "kill": rng.choice((0, 1, 2)),
    }
    doings["restore"] = rng.choice((0, 0, 0, 1)) / 2
    for doing in rng.choices([*doings], [*doings.values()], k=rng.randint(20, 300)):
        if doing == "commit" and source.at < 120:
            source.commit()
        elif doing == "capture":
            source.captured = rng.randint(source.captured, source.at)
        elif doing == "purge":
            source.purged = max(source.purged, source.captured - retention)
        elif doing == "restore":
            if (to := rng.randint(1, source.at)) < source.at and copies.is_seen(to):
                source.restore(to)
                # a restore ends all connections; where its fork is seen, what runs have read need not end with them
                runs = runs if source.fork else []
        elif doing == "begin" and len(runs) < copies.at_once:
            copies.seen["at once"] += bool(runs)
            runs.append(copies.run())
        elif runs and doing in ("go on", "kill"):
            run = rng.choice(runs)
            if doing == "kill" or not steps(copies, run):
                copies.seen["kills"] += doing == "kill"
                runs.remove(run)
    # left alone for long enough it ends
    copies.at_once = max(copies.at_once, len(runs) + 1)
    run = copies.run()
    for _ in range(3000):
        if copies.is_done:
            break
        source.captured = source.at
        if not steps(copies, run):
            run = copies.run()
    assert copies.is_done
    return copies.seen


def steps(copies: Copies, run: Iterator[None]) -> bool:
    """Let a run go on to its next yield; False where it has ended."""
    return not copies.is_done and next(run, run) is not run


@pytest.mark.parametrize("batch", range(4))
def test_copies_by_runs_that_are_killed_and_run_at_once_are_the_source(batch: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(batch * 125, (batch + 1) * 125):
        try:
            seen += copy_through_all(random.Random(seed))
        except Exception as error:
            error.add_note(f"of the copy with seed {seed}")
            raise
    assert seen["commits"] == 125
    happened = {"at once", "went on", "kills", "overlaps", "holes between", "waited", "purged", "restored"}
    happened |= {"windows passed over", "windows cut", "files without an entry"}
    assert {what for what in happened if not seen[what]} == set()


# entries as JSON


ENTRIES = [
    dataclasses.replace(BEGUN, key=("a", "b"), descending=(False, True)),
    CopyBegun("c2", lsn(1), (), FeedRef("f", 1), "s"),
    chunk_of("c", None, (None, "A'", ""), 12),
    dataclasses.replace(chunk_of("d", ("5", None), None), files=("d/1.parquet", "d/2.parquet"), columns="{...}"),
    KeptWindow("w", lsn(4), lsn(9), ("w/1",), '{"type":"struct"}', {"rows": 3, "keys": 2}, 17, Witness(lsn(9), DAY)),
    window_of("v", lsn(9), lsn(9)),
]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{type(entry).__name__} {getattr(entry, 'name', '')}")
def test_an_entry_comes_back_and_keeps_what_is_not_known(entry: Any) -> None:
    kind = type(entry)
    assert from_json(kind, to_json(entry)) == entry
    data = {**to_data(entry), "later": {"a": [None, 1]}}
    read = from_json(kind, json.dumps(data))
    assert (read, read.unknown) == (entry, {"later": {"a": [None, 1]}})
    assert to_data(read) == data


@settings(deadline=None)
@given(
    after=st.one_of(st.none(), st.lists(st.one_of(st.none(), st.text(max_size=5)), min_size=1, max_size=4).map(tuple)),
    last=st.one_of(st.none(), st.lists(st.one_of(st.none(), st.text(max_size=5)), min_size=1, max_size=4).map(tuple)),
)
def test_bounds_of_an_entry_come_back(after: Bound | None, last: Bound | None) -> None:
    read = from_json(ChunkRead, to_json(chunk_of("c", after, last)))
    assert (read.after, read.last) == (after, last)
    # as they are sought in a mapping of places
    assert hash((read.after, read.last)) == hash((after, last))


def test_positions_of_another_kind_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, Counted.KIND, Counted)
    window = window_of("w", Counted(4), Counted(9), Witness(Counted(9), DAY))
    assert from_json(KeptWindow, to_json(window)) == window
    begun = dataclasses.replace(BEGUN, low=Counted(4), witnesses=(Witness(Counted(4), DAY), Witness(lsn(3), DAY)))
    assert from_json(CopyBegun, to_json(begun)) == begun
    assert to_data(begun)["low"] == {"kind": "counted", "at": "4"}


@pytest.mark.parametrize("kind", [CopyBegun, ChunkRead, KeptWindow])
def test_an_entry_of_a_later_version_or_a_damaged_one_is_refused(kind: Any) -> None:
    data = to_data(next(entry for entry in ENTRIES if isinstance(entry, kind)))
    newer = {**data, "version": kind.FORMAT.version + 1, "needs": "0.9.1"}
    with pytest.raises(NewerFormatError, match=rf"the {kind.FORMAT.name} has version 2, which .* 0\.9\.1 reads"):
        from_json(kind, json.dumps(newer))
    for name in ("id", "name", "low", "upto", "end"):
        if name in data:
            with pytest.raises(FormatError, match="is damaged"):
                from_json(kind, json.dumps({key: value for key, value in data.items() if key != name}))
    with pytest.raises(FormatError, match="is not readable"):
        from_json(kind, to_json(ENTRIES[0])[:-9])
