"""Versions of Change Tracking that heal gaps of CDC: none that may be used for a position is too new for it."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.change_tracking import TrackedTable
from airflow_provider_mssql_cdc.core.healing import MOST_NOTED, Healing, is_noted, noted, passed, waiting
from airflow_provider_mssql_cdc.core.lineage import OtherPosition
from airflow_provider_mssql_cdc.core.passing import CaptureProgress
from airflow_provider_mssql_cdc.core.position import Lsn, Version
from airflow_provider_mssql_cdc.core.selection import EVERYTHING
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema

BEGAN = datetime.datetime(2026, 3, 1)
AT = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
FEED = TrackedTable(
    "lab.t",
    7,
    TableName("lab", "t"),
    7,
    BEGAN,
    (Column(1, 1, "id", "int", nullable=False), Column(2, 2, "v", "int")),
    primary_key=("id",),
    begin_version=Version(0),
    min_valid_version=Version(0),
    side_object_id=99,
)
SCHEMA = TableSchema(FEED.columns, ("id",))


HERE = Healing(FEED, fork="fork")


def lsn(number: int) -> Lsn:
    return Lsn(number.to_bytes(10))


class Server:
    """Commits, each with a version and a later LSN, and a capture that is somewhere behind. Minutes go by."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.minute, self.captured, self.scans = rng, 0, 0, 0
        self.commits: list[tuple[int, int, int]] = []  # version, LSN, minute

    def commit(self) -> None:
        self.minute += self.rng.randrange(2)
        last = self.commits[-1][1] if self.commits else 10
        self.commits.append((len(self.commits) + 1, last + self.rng.randrange(1, 4), self.minute))

    def capture(self, upto: int) -> None:
        """Capture the first so many commits; two scans that find nothing where that is all."""
        self.minute += self.rng.randrange(2)
        self.captured = max(self.captured, min(upto, len(self.commits)))
        if self.captured == len(self.commits):
            self.scans += self.rng.randrange(4)

    @property
    def max_lsn(self) -> Lsn | None:
        return lsn(self.commits[self.captured - 1][1]) if self.captured else None

    def time(self, minute: int) -> datetime.datetime:
        return BEGAN + datetime.timedelta(minutes=minute)

    def progress(self) -> CaptureProgress:
        newest = self.time(self.commits[self.captured - 1][2]) if self.captured else None
        return CaptureProgress(self.time(self.minute), self.max_lsn, newest, self.scans, newest, 0)


@given(st.integers(0, 2**32))
def test_no_version_is_too_new_for_a_position_and_the_newest_that_may_be_used_is(seed):
    rng = random.Random(seed)
    server, stored = Server(rng), ()
    marker, kept, at_marker = None, (), []
    for _ in range(rng.randrange(2, 40)):
        for _ in range(rng.randrange(4)):
            server.commit()
        if rng.random() < 0.7:
            server.capture(rng.randrange(len(server.commits) + 1))
        version = Version(len(server.commits))
        seen = server.progress()
        if rng.random() < 0.3:
            server.commit()
        newest = server.max_lsn
        stored = passed(stored, seen, newest)
        if rng.random() < 0.7:
            stored = (*stored, noted(version, FEED, "fork", seen, AT))
        # a run ends where its limits say
        if server.captured and rng.random() < 0.7:
            upto = lsn(server.commits[rng.randrange(server.captured)][1])
            if marker is None or upto > marker:
                marker = upto
                at_marker.append(marker)
        everything = (*kept, *stored)
        kept = HERE.best(everything, marker)
        stored = waiting(stored, marker)
        if kept:
            assert marker is not None
            assert kept[0].lsn is not None
            assert kept[0].lsn <= marker
            found = int(kept[0].position["at"])
            # each transaction up to the version is at or below the position
            assert all(lsn(at) <= marker for number, at, _ in server.commits if number <= found)
            usable = [int(e.position["at"]) for e in everything if e.lsn is not None and e.lsn <= marker]
            assert found == max(usable)
        # a target that was rolled back to a marker of before
        for before in at_marker:
            for each in HERE.best((*kept, *stored), before):
                number = int(each.position["at"])
                assert all(lsn(at) <= before for version_, at, _ in server.commits if version_ <= number)


def pair(version: int, at: int | None = None, fork: str = "fork", **other: Any) -> OtherPosition:
    seen, table = CaptureProgress(BEGAN, None, None, None, None, 0), dataclasses.replace(FEED, **other)
    return dataclasses.replace(noted(Version(version), table, fork, seen, AT), lsn=None if at is None else lsn(at))


def test_what_waits_is_thinned_out_and_the_oldest_stays():
    found: tuple[OtherPosition, ...] = ()
    for number in range(200):
        found = waiting((*found, pair(number)), lsn(5))
        assert len(found) <= MOST_NOTED
    versions = [int(each.position["at"]) for each in found]
    assert versions[0] == 0
    assert versions[-1] == 199
    # they lie spread over all that was noted
    assert max(after - before for before, after in itertools.pairwise(versions)) <= 20


def test_a_version_is_noted_again_for_another_tracking():
    found = [pair(3, 5), OtherPosition({"kind": "counted", "at": "4"})]
    assert is_noted(found, Version(3), FEED, "fork")
    assert not is_noted(found, Version(4), FEED, "fork")
    assert not is_noted(found, Version(3), dataclasses.replace(FEED, side_object_id=98), "fork")
    assert not is_noted(found, Version(3), FEED, None)


def test_what_others_have_noted_is_kept():
    other = OtherPosition({"kind": "counted", "at": "42"}, purpose="another")
    assert HERE.best((other,), lsn(9)) == ()
    assert passed((other,), CaptureProgress(BEGAN, None, None, None, None, 0), lsn(3)) == (other,)
    assert waiting((other, pair(1, 4)), lsn(9)) == (other,)


@pytest.mark.parametrize(
    ("found", "readable_from", "expected"),
    [
        ((pair(3, 5), pair(2, 4), pair(9, 11)), 0, Version(3)),
        ((pair(3, 5),), 3, Version(3)),
        ((pair(3, 5),), 4, "its changes after version 3 were removed, too"),
        ((pair(3, 5),), None, "its changes after version 3 were removed, too"),
        ((pair(3, 5, begin_version=Version(2)),), 0, "switched off and on since version 3"),
        ((pair(3, 5, side_object_id=98),), 0, "switched off and on since version 3"),
        ((pair(3, 5, object_id=8),), 0, "version 3 is of another table or database"),
        ((pair(3, 5, create_date=datetime.datetime(2026, 2, 1)),), 0, "version 3 is of another table or database"),
        ((pair(3, 5, fork="other"),), 0, "version 3 is of another table or database"),
        ((pair(31, 5),), 0, "version 31 is of another table or database"),
        ((pair(3, 11), pair(4)), 0, "no version is known for 0x"),
        ((), 0, "no version is known for 0x"),
    ],
)
def test_a_version_heals_a_sink_or_it_is_said_why_none_does(found, readable_from, expected):
    healing = Healing(FEED, found[1:], current=Version(30), fork="fork")
    low = None if readable_from is None else Version(readable_from)
    said = healing.version(found[:1], lsn(10), low)
    assert said == expected if isinstance(expected, Version) else expected in said


def test_a_table_can_be_healed_or_it_is_said_why_not():
    assert Healing(FEED).lacks(SCHEMA, EVERYTHING, unique_key=True) is None
    assert "could not be asked: it is gone" in Healing(FEED, unasked="it is gone").lacks(
        SCHEMA, EVERYTHING, unique_key=True
    )
    assert "is off for it" in Healing().lacks(SCHEMA, EVERYTHING, unique_key=True)
    assert "told apart by v," in Healing(FEED).lacks(TableSchema(FEED.columns, ("v",)), EVERYTHING, unique_key=True)
    assert "told apart by id," in Healing(FEED).lacks(SCHEMA, EVERYTHING, unique_key=False)
    kept = TableSchema((FEED.columns[0], dataclasses.replace(FEED.columns[1], kept=True)), ("id",))
    assert "v are not in it any more" in Healing(FEED).lacks(kept, EVERYTHING, unique_key=True)
    named = TableSchema(
        (Column(1, 1, "k", "varchar", length=9, nullable=False, collation="Latin1_General_CI_AS"),), ("k",)
    )
    feed = dataclasses.replace(FEED, columns=named.columns, primary_key=("k",))
    hashed = dataclasses.replace(EVERYTHING, masks={"k": "hash"})
    assert Healing(feed).lacks(named, EVERYTHING, unique_key=True) is None
    assert "mask hides k of its key" in Healing(feed).lacks(named, hashed, unique_key=True)


def test_a_version_of_another_tracking_does_not_hide_one_that_may_be_used():
    before, now = pair(10, 4, side_object_id=98), pair(10, 5)
    assert HERE.best((before, now), lsn(9)) == (now,)
    assert HERE.best((pair(100, 3, fork="other"), pair(60, 5)), lsn(9)) == (pair(60, 5),)
    # alone it says what has happened
    assert HERE.best((before,), lsn(9)) == (before,)


def test_a_clock_that_went_back_between_two_runs_proves_nothing_before_it_has_passed_all_that_it_had_shown():
    def progress(minute: float, captured: int | None, time: float | None) -> CaptureProgress:
        newest = None if time is None else BEGAN + datetime.timedelta(minutes=time)
        at = None if captured is None else lsn(captured)
        return CaptureProgress(BEGAN + datetime.timedelta(minutes=minute), at, newest, None, newest, 0)

    first = noted(Version(1), FEED, None, progress(10, 3, 9), AT)
    # five minutes later the clock shows what it showed then; the commits of between have later times
    second = noted(Version(2), FEED, None, progress(10, 3, 9), AT + datetime.timedelta(minutes=5), (first,))
    (placed,) = passed((second,), progress(13, 7, 12), lsn(7))
    assert placed.lsn is None, "it may have been committed before the clock went back"
    (placed,) = passed((second,), progress(17, 9, 16), lsn(9))
    assert placed.lsn == lsn(9)


class Table:
    """A table that gets and loses columns, and versions that are noted meanwhile."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.version, self.lowest, self.side = rng, 0, 0, 1
        self.columns, self.next_id = [1, 2], 3
        self.before: dict[int, int] = {}  # the newest version that was drawn before a column came

    def some(self) -> None:
        draw = self.rng.random()
        if draw < 0.5:
            self.version += 1
        elif draw < 0.7:
            self.columns.append(self.next_id)
            self.before[self.next_id] = self.version
            self.next_id += 1
        elif draw < 0.8 and len(self.columns) > 2:
            self.columns.remove(self.rng.choice(self.columns[1:]))
        elif draw < 0.85:
            self.lowest = self.rng.randrange(self.lowest, self.version + 1)
        elif draw < 0.88:
            # off and on: all versions of before tell nothing
            self.side, self.lowest = self.side + 1, self.version

    def healing(self, found: tuple[OtherPosition, ...] = ()) -> Healing:
        return Healing(self.feed(), found, current=Version(self.version), fork="fork")

    def feed(self) -> TrackedTable:
        columns = tuple(Column(id_, id_, f"c{id_}", "int") for id_ in self.columns)
        low = Version(self.lowest)
        return dataclasses.replace(FEED, columns=columns, min_valid_version=low, side_object_id=self.side)


@given(st.integers(0, 2**32))
def test_a_version_that_tells_how_to_fill_a_column_is_from_before_it_and_is_kept_until_it_is_filled(seed):
    rng = random.Random(seed)
    table = Table(rng)
    noted_all: list[OtherPosition] = []
    sink, stored, marker = (), (), 0
    for minute in range(rng.randrange(2, 40)):
        table.some()
        version = table.version
        if rng.random() < 0.3:
            # between the version and what the table looks like
            table.some()
        seen = CaptureProgress(BEGAN, None, None, None, None, 0)
        now = table.healing()
        if version >= table.lowest and not is_noted((*sink, *stored), Version(version), table.feed(), "fork"):
            new = noted(Version(version), table.feed(), "fork", seen, AT)
            noted_all.append(new)
            stored = (*stored, new)
        # the capture passes what was noted, in a minute or much later
        stored = tuple(
            dataclasses.replace(each, lsn=lsn(100 + minute)) if each.lsn is None and rng.random() < 0.5 else each
            for each in stored
        )
        if rng.random() < 0.7:
            marker = lsn(100 + minute)
            sink = now.kept((*sink, *stored), marker)
            stored = waiting(stored, marker)
            assert len(sink) <= 9
        for column in table.columns[1:]:
            found = table.healing(stored).before(sink, column)
            if found is not None:
                assert table.lowest <= found.value <= table.before.get(column, -1)
            # of all that was ever noted none would tell more, unless the table got very many columns
            ever = table.healing(tuple(noted_all)).before((), column)
            many = len({each.column_upto for each in noted_all}) > 9
            assert (found is None) == (ever is None) or many, (column, found, ever)
