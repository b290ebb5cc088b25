"""Columns that targets drop with the source table: what came before the DDL is loaded with them, and nothing since."""

import dataclasses
import datetime

import pytest
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
from airflow_provider_mssql_cdc.core.schema_sight import SeenSchema
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


class World:
    """Changes of a table at the positions 1, 2, .., some of which drop a column, and sinks that load them.

    :param drops: position to the column that is dropped there
    :ivar loaded: of each sink, position to the columns with which it has loaded that
    """

    def __init__(self, drops: dict[int, Column], sinks: list[str]) -> None:
        self.drops, self.now = drops, TableSchema((ID, A, B, C), ("id",))
        self.at = dict.fromkeys(sinks, 0)
        self.has = dict.fromkeys(sinks, self.now)
        self.loaded: dict[str, dict[int, set[str]]] = {sink: {} for sink in sinks}

    def run(self, catalogue: int, captured: int, loading: set[str]) -> None:
        """A run, which may be killed anywhere: what of its sinks are loaded is drawn.

        :param catalogue: what happened up to here is in the catalogue, which is ahead of the capture
        """
        dropped = {column.column_id for at, column in self.drops.items() if at <= catalogue}
        instance = feed(*(gone(c) if c.column_id in dropped else c for c in self.now.columns))
        texts = [
            statement(at, f"ALTER TABLE lab.b DROP COLUMN [{column.name}]")
            for at, column in sorted(self.drops.items())
            if at <= captured
        ]
        drops = drops_of(instance, texts)
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


RUNS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4), st.sampled_from(["", "m", "h", "mh"])), max_size=6)


@given(st.lists(st.integers(1, 11), max_size=3), st.sampled_from(["m", "mh"]), RUNS)
def test_what_comes_before_the_ddl_is_loaded_with_the_column_and_nothing_behind_it(places, sinks, runs):
    drops = dict(zip(dict.fromkeys(places), (A, B, C), strict=False))
    world = World(drops, [*sinks])
    for captured, ahead, loading in sorted(runs):
        world.run(min(captured + ahead, 12), captured, {*loading} & {*sinks})
    for _ in range(8):
        world.run(12, 12, {*sinks})
    for loaded in world.loaded.values():
        assert loaded == {
            at: {"id"}
            | {column.name for column in (A, B, C) if not any(c is column for d, c in drops.items() if d < at)}
            for at in range(1, 13)
        }
    # a target drops the last one with the next change behind it
    assert {len(has.loaded) for has in world.has.values()} <= {4 - len([at for at in drops if at < 12])}


@pytest.mark.parametrize(
    ("text", "drops"),
    [
        ("ALTER TABLE lab.things DROP COLUMN b", True),
        ("alter table lab.things drop column a, [B]", True),
        ("ALTER TABLE lab.things DROP COLUMN IF EXISTS b", True),
        ("ALTER TABLE lab.things ADD b int", False),
        ("ALTER TABLE lab.things ALTER COLUMN b bigint", False),
        ("ALTER TABLE lab.b DROP COLUMN a", False),
        ("ALTER TABLE lab.things DROP CONSTRAINT b", False),
        ("ALTER TABLE lab.things DROP COLUMN bb", False),
    ],
)
def test_a_statement_tells_where_a_column_was_dropped(text, drops):
    now, rows = feed(ID, A, gone(B)), [statement(5, "ALTER TABLE lab.things ADD x int"), statement(9, text)]
    assert drops_of(now, rows) == ((DroppedColumn(3, lsn(9)),) if drops else ())
    # of a column that is there nothing is said, whatever was dropped by its name
    assert drops_of(feed(ID, A, B), rows) == ()


def test_without_a_statement_it_has_its_place_where_an_earlier_run_has_seen_it_so():
    now, old, new = feed(ID, A, gone(B)), TableSchema((ID, A, B), ("id",)), TableSchema((ID, A), ("id",))
    seen = SeenSchema(new.hash, lsn(20))
    assert drops_of(now, [], seen, KeptSchema.of(new)) == (DroppedColumn(3, lsn(20)),)
    assert drops_of(now, [], SeenSchema(old.hash, lsn(20)), KeptSchema.of(old)) == ()
    assert drops_of(now, [], seen, None) == ()
    assert drops_of(now, []) == ()


def test_a_column_of_which_the_instance_has_nothing_is_dropped_at_once():
    kept = dataclasses.replace(B, kept=True)
    schema = TableSchema((ID, A, kept), ("id",))
    assert due(schema, (), lsn(5)) == frozenset()
    assert due(schema, (DroppedColumn(3, lsn(6)),), lsn(5)) == frozenset()
    assert due(schema, (DroppedColumn(3, lsn(5)),), lsn(5)) == {3}
    absent = TableSchema((ID, A, dataclasses.replace(kept, absent=True)), ("id",))
    assert due(absent, (), lsn(5)) == {3}


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
