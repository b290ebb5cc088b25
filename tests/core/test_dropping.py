"""Columns that targets drop with the source table: what came before the DDL is loaded with them, and nothing since."""

import dataclasses
import datetime

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.dropping import (
    cut_at,
    drops_of,
    due,
    told_of_dropped,
    told_of_gone,
    without_dropped,
)
from airflow_provider_mssql_cdc.core.feed import CaptureInstance, DdlChange, DroppedColumn
from airflow_provider_mssql_cdc.core.going_on import goes_on_with
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.schema_sight import GoneColumn, SeenSchema, see_gone
from airflow_provider_mssql_cdc.core.selection import EVERYTHING, Selection
from airflow_provider_mssql_cdc.core.spec import Chosen
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema
from airflow_provider_mssql_cdc.core.table_options import Choice, TableOptions
from airflow_provider_mssql_cdc.core.target import Target

NAME = TableName("lab", "things")
ID = Column(1, 1, "id", "int", nullable=False)
A, B, C = (Column(n, n, name, "int") for n, name in enumerate("abc", 2))


def lsn(number: int) -> Lsn:
    return Lsn(number.to_bytes(10))


def feed(*columns: Column) -> CaptureInstance:
    return CaptureInstance("things", 7, NAME, 3, datetime.datetime(2026, 3, 1), columns)


def gone(column: Column) -> Column:
    return dataclasses.replace(column, dropped=True)


def statement(at: int, text: str) -> DdlChange:
    return DdlChange("things", text, lsn(at), None, requires_column_update=False)


NOON = datetime.datetime(2026, 3, 1, 12)


class World:
    """Changes of a table at the positions 1, 2, .., some of which drop a column, and sinks that load them.

    :param drops: position to the column that is dropped there
    :param others: positions of statements that drop nothing
    :param told: whether the capture keeps the statements
    :ivar loaded: of each sink, position to the columns with which it has loaded that
    """

    def __init__(self, drops: dict[int, Column], others: set[int], sinks: list[str], *, told: bool) -> None:
        self.drops, self.now = drops, TableSchema((ID, A, B, C), ("id",))
        self.statements = {*drops, *others} if told else set()
        self.at = dict.fromkeys(sinks, 0)
        self.has = dict.fromkeys(sinks, self.now)
        self.loaded: dict[str, dict[int, set[str]]] = {sink: {} for sink in sinks}
        self.seen = SeenSchema("", lsn(0))
        self.before = KeptSchema.of(self.now)

    def run(self, catalogue: int, captured: int, loading: set[str], *, stores: bool = True) -> None:
        """A run, which may be killed anywhere: what of its sinks are loaded is drawn.

        :param catalogue: what happened up to here is in the catalogue, which is ahead of the capture
        :param stores: whether it comes to write its checkpoint
        """
        dropped = {column.column_id for at, column in self.drops.items() if at <= catalogue}
        instance = feed(*(gone(c) if c.column_id in dropped else c for c in self.now.columns))
        moments = [NOON + datetime.timedelta(minutes=number) for number in (catalogue, captured)]
        found = see_gone(
            [instance],
            self.seen,
            self.before,
            newest=lsn(captured),
            server_time=moments[0],
            captured_until=moments[1],
        )
        places = {each.column_id: each.at for each in self.seen.gone if each.at is not None}
        assert places.items() <= {each.column_id: each.at for each in found}.items(), "a place does not move"
        if stores:
            self.seen = SeenSchema("", lsn(captured), gone=found)
            there = tuple(c for c in instance.columns if not c.dropped)
            self.before = KeptSchema.of(dataclasses.replace(self.now, columns=there))
        texts = [statement(at, "ALTER TABLE") for at in sorted(self.statements) if at <= captured]
        drops = drops_of(instance, texts, found)
        seen = TableSchema(instance.columns, ("id",))
        schemas = {sink: goes_on_with(seen, KeptSchema.of(has)) for sink, has in self.has.items()}
        assert None not in schemas.values()
        widest = max(schemas.values(), key=lambda schema: len(schema.loaded))
        cut = cut_at(widest, drops, map(lsn, self.at.values()), lsn(captured))
        upto = int.from_bytes(cut.value)
        for sink, schema in schemas.items():
            if sink in loading and self.at[sink] < upto:
                ids = due(schema, drops, lsn(self.at[sink]))
                left = without_dropped(Chosen(schema), ids).schema
                self.has[sink] = left
                names = {column.name for column in left.loaded}
                self.loaded[sink] |= dict.fromkeys(range(self.at[sink] + 1, upto + 1), names)
                self.at[sink] = upto

    def settle(self) -> None:
        """Runs that come to the end, while something happens."""
        for position in range(12, 22):
            self.run(position, position, {*self.at})

    def with_column(self, sink: str, column: Column) -> set[int]:
        return {at for at, names in self.loaded[sink].items() if column.name in names}


RUNS = st.lists(
    st.tuples(st.integers(0, 11), st.integers(0, 4), st.sampled_from(["", "m", "h", "mh"]), st.booleans()),
    max_size=6,
)
SINKS = st.sampled_from(["m", "mh"])


def run_all(world: World, runs) -> None:
    latest = 0
    for captured, ahead, loading, stores in sorted(runs):
        latest = max(latest, min(captured + ahead, 11))
        world.run(latest, captured, {*loading} & {*world.at}, stores=stores)
    world.settle()


@given(st.integers(1, 11), SINKS, RUNS)
def test_what_comes_before_the_ddl_is_loaded_with_the_column_and_nothing_behind_it(place, sinks, runs):
    world = World({place: A}, set(), [*sinks], told=True)
    behind = [run for run in runs if run[0] < place]
    run_all(world, [(captured, 0, loading, stores) for captured, _, loading, stores in behind])
    for sink in sinks:
        assert world.with_column(sink, A) == {*range(1, place + 1)}
        assert world.with_column(sink, B) == {*range(1, 22)}


@given(st.lists(st.integers(1, 11), max_size=3), st.sets(st.integers(1, 11), max_size=3), SINKS, RUNS)
def test_of_several_statements_the_last_one_counts(places, others, sinks, runs):
    drops = dict(zip(dict.fromkeys(places), (A, B, C), strict=False))
    world = World(drops, others, [*sinks], told=True)
    run_all(world, runs)
    for sink in sinks:
        for at, column in drops.items():
            found = world.with_column(sink, column)
            assert found >= {*range(1, min(world.statements) + 1)}
            assert max(found) < 21
            # one that was alone in its time
            if world.statements == {at}:
                assert found >= {*range(1, at + 1)}
        assert {c.name for c in (A, B, C) if c not in drops.values()} | {"id"} == world.loaded[sink][21]


@given(st.lists(st.integers(1, 11), max_size=3), SINKS, RUNS)
def test_without_statements_no_value_of_before_is_lost(places, sinks, runs):
    drops = dict(zip(dict.fromkeys(places), (A, B, C), strict=False))
    world = World(drops, set(), [*sinks], told=False)
    run_all(world, runs)
    for sink in sinks:
        for at, column in drops.items():
            found = world.with_column(sink, column)
            assert found >= {*range(1, at + 1)}
            assert max(found) < 21


def test_the_text_of_a_statement_says_nothing():
    now, seen = feed(ID, A, gone(B)), [GoneColumn(3, NOON)]
    for text in ("ALTER TABLE t DROP CONSTRAINT DF_b, COLUMN b", "ALTER TABLE lab.things ADD b int", "", "EXEC x"):
        rows = [statement(5, "ALTER TABLE lab.things DROP COLUMN b"), statement(9, text)]
        assert drops_of(now, rows, seen) == (DroppedColumn(3, lsn(9)),)
    # of a column that is there nothing is said
    assert drops_of(feed(ID, A, B), rows, seen) == ()
    # what came while it was there has not dropped it, and neither has what came once it was gone
    assert drops_of(now, rows, [GoneColumn(3, NOON, after=lsn(9))]) == ()
    assert drops_of(now, rows, [GoneColumn(3, NOON, after=lsn(5), at=lsn(20))]) == (DroppedColumn(3, lsn(9)),)
    assert drops_of(now, rows, [GoneColumn(3, NOON, at=lsn(8))]) == (DroppedColumn(3, lsn(5)),)
    assert drops_of(now, rows, [GoneColumn(3, NOON, after=lsn(5), at=lsn(8))]) == (DroppedColumn(3, lsn(8)),)


def test_without_a_statement_it_has_its_place_once_the_capture_has_passed_the_sight():
    now, old = feed(ID, A, gone(B)), TableSchema((ID, A, B), ("id",))

    def looked(seen, newest: int, minutes: int, captured: int, before: TableSchema | None = None):
        times = [NOON + datetime.timedelta(minutes=each) for each in (minutes, captured)]
        kept = KeptSchema.of(before) if before is not None else None
        found = see_gone([now], seen, kept, newest=lsn(newest), server_time=times[0], captured_until=times[1])
        return SeenSchema("x", lsn(newest), gone=found)

    first = looked(SeenSchema("x", lsn(10)), 20, 60, 5, old)
    assert first.gone == (GoneColumn(3, NOON + datetime.timedelta(minutes=60), lsn(10)),)
    assert drops_of(now, [], first.gone) == ()
    # the capture is hours behind
    assert looked(first, 30, 70, 60).gone == first.gone
    placed = looked(first, 40, 80, 61)
    assert drops_of(now, [], placed.gone) == (DroppedColumn(3, lsn(40)),)
    assert looked(placed, 50, 90, 90).gone == placed.gone
    # a checkpoint that was lost, and one of which nobody knows the columns
    for seen in (None, SeenSchema("x", lsn(10))):
        assert drops_of(now, [], looked(seen, 30, 60, 5).gone) == ()
    assert looked(None, 30, 60, 5).gone == (GoneColumn(3, NOON + datetime.timedelta(minutes=60)),)
    (left,) = [see_gone([feed(ID, A)], placed, None, newest=lsn(60), server_time=NOON, captured_until=NOON)]
    assert left == ()


def test_a_column_of_which_the_instance_has_nothing_is_dropped_at_once():
    kept = dataclasses.replace(B, kept=True)
    schema = TableSchema((ID, A, kept), ("id",))
    assert due(schema, (), lsn(5)) == frozenset()
    assert due(schema, (DroppedColumn(3, lsn(6)),), lsn(5)) == frozenset()
    assert due(schema, (DroppedColumn(3, lsn(5)),), lsn(5)) == {3}
    absent = TableSchema((ID, A, dataclasses.replace(kept, absent=True)), ("id",))
    assert due(absent, (), lsn(5)) == {3}
    # one that is there, and whose type alone the targets do not hold
    assert due(absent, (DroppedColumn(3, lsn(6)),), lsn(5)) == frozenset()
    assert due(absent, (DroppedColumn(3, lsn(6)),), lsn(6)) == {3}


def test_what_is_loaded_of_the_others_stays_as_it_is():
    schema = TableSchema((ID, A, B, C), ("id",))
    chosen = Chosen(
        schema, Selection(("id", "a", "b"), renames={"b": "x", "a": "y"}, masks={"b": "hash"}, salt_check="s")
    )
    left = without_dropped(chosen, {3})
    assert ([c.name for c in left.schema.columns], left.selection) == (
        ["id", "a", "c"],
        Selection(("id", "a"), renames={"a": "y"}),
    )
    assert without_dropped(left, {3}) is left
    # of a table that has no others all are chosen
    assert without_dropped(chosen, {3, 4}).selection == Selection(renames={"a": "y"})
    assert without_dropped(Chosen(schema), {3}).selection == EVERYTHING


def test_people_are_told_what_becomes_of_it():
    schema = TableSchema((ID, A, dataclasses.replace(B, kept=True)), ("id",))
    plain = TableOptions(Target.parse("iceberg://lake/shop"))

    def told(**said: str) -> list[str]:
        return told_of_dropped(schema, EVERYTHING, dataclasses.replace(plain, **said))

    stays = ["column b is NULL since the source table dropped it"]
    assert told() == told(on_schema_change="evolve") == stays
    for how in ("evolve", "propose"):
        (text,) = told(on_schema_change=how, dropped_columns="drop")
        assert text == "column b was dropped by the source table: targets drop it once they are loaded up to there"
    warned = told(dropped_columns="drop")
    assert warned[:1] == stays
    assert 'is for on_schema_change="propose" and "evolve", and this is "warn"' in warned[1]
    assert told_of_dropped(schema, Selection(("id", "a")), dataclasses.replace(plain, dropped_columns="drop")) == []


def test_an_entry_may_still_name_it():
    choice, now = Choice(("id", "b"), mask={"B": "hash"}), feed(ID, A, gone(B))
    assert told_of_gone(now, {"b", "c"}, choice) == [
        "the entry names column b, which was dropped: it says nothing any more"
    ]
    assert told_of_gone(now, {"b"}, Choice()) == []
    again = dataclasses.replace(now, others=(dataclasses.replace(B, column_id=9),))
    assert told_of_gone(again, {"b"}, choice) == []
