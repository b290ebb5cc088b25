"""What runs see of a table's columns, beside a model that changes them at random."""

from __future__ import annotations

import dataclasses
import datetime
import random

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.feed import CaptureInstance, DdlChange
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.schema_diff import schema_diff
from airflow_provider_mssql_cdc.core.schema_sight import PendingChange, SeenSchema, Sight, see, source_schema
from airflow_provider_mssql_cdc.core.table import Column, TableName

NOON = datetime.datetime(2026, 3, 1, 12)
ID = Column(1, 1, "id", "int", 4, 10, nullable=False)


def lsn(number: int) -> Lsn:
    return Lsn(number.to_bytes(10))


class World:
    """A table whose columns change, a capture that follows, and runs that look."""

    def __init__(self) -> None:
        self.time, self.position = 0, 0
        self.captured_time, self.captured_position = 0, 0
        self.columns = {1: ID, 2: Column(2, 2, "a", "int", 4, 10)}
        self.ddl: list[DdlChange] = []
        self.seen: SeenSchema | None = None
        self.pending: tuple[PendingChange, ...] = ()
        self.kept: dict[str, KeptSchema] = {}

    @property
    def feed(self) -> CaptureInstance:
        captured = (ID,)
        others = tuple(column for number, column in self.columns.items() if number != 1)
        return CaptureInstance(
            "dbo_t", 77, TableName("dbo", "t"), 76, NOON, captured, ("id",), ("id",), others=others, start_lsn=lsn(0)
        )

    def alter(self, number: int, column: Column | None) -> None:
        """Add, change or drop a column."""
        self.time, self.position = self.time + 1, self.position + 1
        if column is None:
            self.columns.pop(number, None)
        else:
            self.columns[number] = column
        self.ddl.append(DdlChange("dbo_t", f"ALTER {self.position}", lsn(self.position), None, False))

    def capture(self) -> None:
        """Capture all, and a commit that comes last."""
        self.time, self.position = self.time + 1, self.position + 1
        self.captured_time, self.captured_position = self.time, self.position

    def run(self) -> Sight:
        """Look, and store what was seen."""
        self.time += 1
        sight = see(
            self.feed,
            self.seen,
            self.pending,
            newest=lsn(self.captured_position),
            server_time=NOON + datetime.timedelta(minutes=self.time),
            captured_until=NOON + datetime.timedelta(minutes=self.captured_time),
            ddl=[row for row in self.ddl if row.lsn <= lsn(self.captured_position)],
            kept=self.kept.get,
        )
        self.kept[sight.schema.hash] = sight.schema
        self.seen, self.pending = sight.seen, sight.pending
        return sight


@given(st.integers(0, 2**32))
def test_each_change_is_told_once_and_in_its_place(seed: int) -> None:
    rng, world = random.Random(seed), World()
    assert world.run().event is None, "a first sight tells nothing"
    before = world.kept[source_hash(world)]
    told: list[str] = []
    for step in range(rng.randrange(1, 25)):
        act = rng.choice(["alter", "capture", "run", "run"])
        if act == "capture":
            world.capture()
        elif act == "alter":
            number = rng.randrange(2, 6)
            there = world.columns.get(number)
            changed = Column(number, number, f"c{number}_{step}", "int", 4, 10) if rng.random() < 0.7 else None
            if there is not None or changed is not None:
                world.alter(number, changed)
        else:
            before = check(world, before, told)
    # at rest all is told that differs
    before = check(world, before, told)
    world.capture()
    before = check(world, before, told)
    assert (world.pending, before.hash) == ((), source_hash(world))
    assert told == [row.command for row in world.ddl]
    assert world.run().event is None


def source_hash(world: World) -> str:
    return KeptSchema.of(source_schema(world.feed)).hash


def check(world: World, before: KeptSchema, told: list[str]) -> KeptSchema:
    """One run; what was told of up to there."""
    event = world.run().event
    now = world.kept[source_hash(world)]
    if event is None:
        # either nothing differs, or the capture has not passed what was seen
        assert world.seen is not None
        assert now.hash == before.hash or world.pending
        return before
    assert (event.before, event.after) == (before.hash, now.hash)
    assert event.changes == schema_diff(before, now)
    assert bool(event.changes) == (event.found != "ddl_history")
    assert event.lsn <= lsn(world.captured_position)
    told += [row.command for row in event.ddl]
    # all that is captured of the table's DDL is told by now
    assert not event.ddl or event.lsn == event.ddl[-1].lsn
    return now


def test_what_only_the_catalogue_tells_has_the_place_of_the_run_that_tells_it() -> None:
    world = World()
    world.run()
    world.alter(3, Column(3, 3, "city", "nvarchar", 40))
    world.ddl.clear()
    sight = world.run()
    assert (sight.event, len(sight.pending)) == (None, 1)
    world.capture()
    event = world.run().event
    assert event is not None
    assert (event.found, event.lsn, event.ddl) == ("catalogue", lsn(world.captured_position), ())
    assert str(event) == f"at {event.lsn} the source table's columns changed: column city nvarchar(40,0,0) was added"


def test_statements_that_left_the_columns_as_they_were_are_not_of_the_next_change() -> None:
    world = World()
    world.run()
    world.alter(2, world.columns[2])
    world.capture()
    alone = world.run().event
    assert alone is not None
    assert (alone.found, alone.changes, [row.command for row in alone.ddl]) == ("ddl_history", (), ["ALTER 1"])
    assert (
        str(alone) == f"at {alone.lsn} the source table was altered: its columns are as they were\n  {lsn(1)}: ALTER 1"
    )
    world.alter(3, Column(3, 3, "city", "nvarchar", 40))
    world.run()
    world.capture()
    event = world.run().event
    assert event is not None
    assert [row.command for row in event.ddl] == ["ALTER 3"]


def test_where_it_is_not_known_what_was_the_event_says_so() -> None:
    world = World()
    world.run()
    world.alter(3, Column(3, 3, "city", "nvarchar", 40))
    world.run()
    world.capture()
    world.kept.clear()
    event = world.run().event
    assert event is not None
    assert (event.changes, "what they were is not known any more" in str(event)) == ((), True)


def test_a_rowversion_is_the_same_captured_or_not() -> None:
    world = World()
    world.columns[3] = Column(3, 3, "rv", "timestamp", 8)
    captured = dataclasses.replace(world.columns[3], type="binary")
    feed = dataclasses.replace(world.feed, columns=(ID, captured), others=(world.columns[2],))
    assert source_schema(feed).hash == source_schema(world.feed).hash


def test_what_came_and_went_between_two_runs_is_told_once_the_capture_has_passed_both() -> None:
    world = World()
    world.run()
    world.alter(3, Column(3, 3, "city", "nvarchar", 40))
    world.run()
    world.alter(3, None)
    world.capture()
    # another difference was seen, which the capture has to pass, too
    assert world.run().event is None
    world.capture()
    event = world.run().event
    assert event is not None
    assert (event.found, [row.command for row in event.ddl], world.pending) == (
        "ddl_history",
        ["ALTER 1", "ALTER 2"],
        (),
    )
    assert world.run().event is None


def test_the_event_as_it_is_told() -> None:
    world = World()
    world.run()
    world.alter(2, dataclasses.replace(world.columns[2], type="bigint", length=8, precision=19))
    world.alter(3, Column(3, 3, "city", "nvarchar", 40))
    world.run()
    world.capture()
    event = world.run().event
    assert event is not None
    assert event.told("dbo.t") == {
        "table": "dbo.t",
        "lsn": str(lsn(2)),
        "seen_at": "2026-03-01 12:04:00",
        "found": "both",
        "changes": [
            {"kind": "ALTER_TYPE", "column": "a", "column_id": 2, "then": "int(4,10,0)", "now": "bigint(8,19,0)"},
            {"kind": "ADD_COLUMN", "column": "city", "column_id": 3, "then": None, "now": "nvarchar(40,0,0)"},
        ],
        "ddl": [
            {"lsn": str(lsn(1)), "time": None, "statement": "ALTER 1"},
            {"lsn": str(lsn(2)), "time": None, "statement": "ALTER 2"},
        ],
        "schema_before": event.before,
        "schema_after": event.after,
    }
