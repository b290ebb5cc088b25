"""By what a table is read: the one source that it names, or the one of two by which it was loaded."""

import dataclasses
import datetime
import itertools

import pytest

from airflow_provider_mssql_cdc.core.change_tracking import TrackedTable
from airflow_provider_mssql_cdc.core.changes import HistoryOptions
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Identity, SinkState
from airflow_provider_mssql_cdc.core.copy_wanted import READ_COMMITTED as READ
from airflow_provider_mssql_cdc.core.entry_values import AUTO, CDC, CT, ON_SCHEMA_CHANGE, SOURCES
from airflow_provider_mssql_cdc.core.exceptions import FeedError, ParameterError
from airflow_provider_mssql_cdc.core.feed import CaptureInstance, Feed, Probe, is_captured
from airflow_provider_mssql_cdc.core.feed_choice import has_begun
from airflow_provider_mssql_cdc.core.initial import Initial
from airflow_provider_mssql_cdc.core.lineage import TrackedSince, Witness
from airflow_provider_mssql_cdc.core.position import Lsn, Version
from airflow_provider_mssql_cdc.core.source_choice import (
    check_served,
    feeds_to_read,
    may_read,
    refused_for,
    tracked_anew,
)
from airflow_provider_mssql_cdc.core.table import Column, TableName
from airflow_provider_mssql_cdc.core.table_options import Choice, TableOptions
from airflow_provider_mssql_cdc.core.target import Target

NAME, DAY = TableName("dbo", "a"), datetime.datetime(2026, 1, 1)
COLUMNS = (Column(1, 1, "Id", "int", 4, 10, 0, False, None), Column(2, 2, "v", "int", 4, 10, 0, True, None))
CAPTURED = CaptureInstance("dbo_a", 70, NAME, 7, DAY, COLUMNS, ("Id",), ("Id",))
WHERE = Choice(where=(("v", "=", 1),))
TRACKED = TrackedTable("dbo.a", 7, NAME, 7, DAY, COLUMNS, (), ("Id",))
OPTIONS = TableOptions(Target.parse("iceberg://lake/shop"))
LSN, VERSION = Lsn(bytes([*bytes(9), 5])), Version(5)


def loaded(*positions):
    """A checkpoint with a sink at each of these."""
    sinks = {shape: SinkState(at, at) for shape, at in zip(("mirror", "history"), positions, strict=False)}
    return Checkpoint(Identity("c", "d", NAME, "iceberg://lake/shop"), sinks)


def test_a_named_source_is_the_only_one_that_is_asked():
    asked = {(source, kind) for source in SOURCES for kind in (CaptureInstance, TrackedTable) if may_read(source, kind)}
    assert asked == {(CDC, CaptureInstance), (CT, TrackedTable), (AUTO, CaptureInstance), (AUTO, TrackedTable)}


@pytest.mark.parametrize(
    ("found", "checkpoint", "read"),
    [
        ([CAPTURED, TRACKED], None, CAPTURED),
        ([TRACKED], None, TRACKED),
        ([CAPTURED, TRACKED], loaded(), CAPTURED),
        ([CAPTURED, TRACKED], loaded(LSN), CAPTURED),
        ([CAPTURED, TRACKED], loaded(VERSION), TRACKED),
        ([CAPTURED, TRACKED], loaded(VERSION, VERSION), TRACKED),
    ],
)
def test_a_table_keeps_to_the_source_by_which_it_was_loaded(found, checkpoint, read):
    assert feeds_to_read(NAME, [[feed] for feed in found], AUTO, checkpoint) == [read]


@pytest.mark.parametrize(
    ("left", "at", "before", "now"),
    [(CAPTURED, VERSION, "tracked table", "capture instance"), (TRACKED, LSN, "capture instance", "tracked table")],
)
def test_one_whose_source_is_gone_fails_with_both_ways_out(left, at, before, now):
    with pytest.raises(FeedError) as error:
        feeds_to_read(NAME, [[left]], AUTO, loaded(at))
    text = str(error.value)
    assert f"dbo.a: it was loaded up to {at}, by a {before}, and has none any more, but {left}" in text
    assert f"Either give it a {before} again" in text
    assert f"load it anew by the {now}: drop its target tables and run `mssql-cdc checkpoint reset`" in text
    # a source that is named is told so where positions are compared
    for source in (CDC, CT):
        assert feeds_to_read(NAME, [[left]], source, loaded(at)) == [left]


def test_another_tracking_is_told_by_the_version_at_which_it_began():
    def sink(at, begin):
        seen = TrackedSince(begin) if begin is not None else None
        return SinkState(at, at, Witness(at, DAY, tracking=seen))

    def feed(begin):
        return dataclasses.replace(TRACKED, begin_version=begin)

    probe = Probe(VERSION, {}, {TRACKED.object_id: VERSION})
    assert tracked_anew(feed(Version(3)), sink(VERSION, 3), probe) is None
    told = tracked_anew(feed(Version(5)), sink(VERSION, 3), probe)
    assert "it is tracked from version 5 on now, and was from 3 on" in told
    # where one of the two was not seen, nothing is known
    assert tracked_anew(feed(None), sink(VERSION, 3), probe) is None
    assert tracked_anew(feed(Version(5)), sink(VERSION, None), probe) is None
    assert tracked_anew(feed(Version(5)), SinkState(VERSION, VERSION), probe) is None
    assert tracked_anew(CAPTURED, sink(LSN, 3), probe) is None
    assert tracked_anew(feed(Version(5)), sink(LSN, 3), probe) is None
    # in another side table from the same version on
    aside = dataclasses.replace(feed(Version(3)), side_object_id=8)
    was = dataclasses.replace(sink(VERSION, 3), witness=Witness(VERSION, DAY, tracking=TrackedSince(3, 7)))
    assert "it is tracked in side table 8 now, and was in 7" in tracked_anew(aside, was, probe)


@pytest.mark.parametrize("held", [True, False, None])
@pytest.mark.parametrize("lowest", [VERSION, Version(VERSION.value - 1)])
@pytest.mark.parametrize("emptied", [True, False])
def test_a_truncate_after_which_tracking_begins_with_the_same_version_is_told_by_rows(held, lowest, emptied):
    witness = Witness(VERSION, DAY, tracking=TrackedSince(3, held=held))
    feed = dataclasses.replace(TRACKED, begin_version=Version(3))
    probe = Probe(VERSION, {}, {feed.object_id: lowest}, emptied=frozenset({feed.name} if emptied else ()))
    told = tracked_anew(feed, SinkState(VERSION, VERSION, witness), probe)
    assert (told is not None) == (held is True and lowest == VERSION and emptied)


def test_change_data_capture_is_refused_nothing():
    for how, replay, limits in itertools.product(ON_SCHEMA_CHANGE, (True, False), (True, False)):
        options = dataclasses.replace(OPTIONS, on_schema_change=how, key=("v",), initial=Initial.parse("latest"))
        assert refused_for(CAPTURED, options, replay=replay, limits=limits) == []


@pytest.mark.parametrize(
    ("options", "run", "why"),
    [
        ({}, {}, []),
        ({"key": ("id",)}, {}, []),
        ({"key": ("v",)}, {}, ["key names other columns than the primary key"]),
        ({"initial": Initial.parse("latest")}, {}, []),
        ({"initial": Initial.parse("latest"), "shapes": ("history",)}, {}, ["initial='latest' needs"]),
        ({}, {"limits": True}, ["max_transactions and max_rows"]),
        ({"on_schema_change": "propose"}, {"replay": True}, ["replay=True", "on_schema_change='propose'"]),
        ({"on_schema_change": "evolve"}, {}, []),
        ({"on_schema_change": "fail"}, {}, []),
        ({"shapes": ("history",), "choice": WHERE}, {}, []),
        ({"shapes": ("history",), "history": HistoryOptions("net", operations=("insert",))}, {}, []),
        (
            {"shapes": ("history",), "history": HistoryOptions("net", operations=("insert",)), "choice": WHERE},
            {},
            ["operations beside where need what rows were before"],
        ),
    ],
)
def test_what_a_tracked_table_cannot_do_is_refused(options, run, why):
    found = refused_for(TRACKED, dataclasses.replace(OPTIONS, **options), **run)
    assert len(found) == len(why)
    assert all(text.startswith(begin) for text, begin in zip(found, why, strict=True))


@pytest.mark.parametrize(
    ("type_", "mask", "is_refused"),
    [
        ("varchar", {"ID": "hash"}, True),
        ("varbinary", {"id": "redact"}, True),
        ("nchar", {"v": "hash"}, False),
        ("int", {"id": "hash"}, False),
        ("char", {}, False),
    ],
)
def test_a_key_that_may_be_spelled_otherwise_is_not_hidden(type_, mask, is_refused):
    columns = tuple(dataclasses.replace(c, type=type_) if c.name == "Id" else c for c in TRACKED.columns)
    table = dataclasses.replace(TRACKED, columns=columns)
    found = refused_for(table, dataclasses.replace(OPTIONS, choice=Choice(mask=mask)))
    assert [text.partition(":")[0] for text in found] == ["mask hides Id of the primary key"] * is_refused
    assert refused_for(CAPTURED, dataclasses.replace(OPTIONS, choice=Choice(mask=mask))) == []


def test_only_tables_that_name_change_tracking_are_refused_early():
    wrong = dataclasses.replace(OPTIONS, shapes=("transactions",), deletes="soft")
    for source in (CDC, AUTO):
        check_served([("t", dataclasses.replace(wrong, source=source))], replay=False, limits=True)
    check_served([("t", dataclasses.replace(OPTIONS, source=CT))], replay=False, limits=False)
    with pytest.raises(ParameterError, match=r"source='ct' of u: max_transactions .*; a tracked table does not serve"):
        check_served([("t", OPTIONS), ("u", dataclasses.replace(wrong, source=CT))], replay=False, limits=True)
    every = dataclasses.replace(OPTIONS, shapes=("mirror", "history"), source=CT)
    with pytest.raises(ParameterError, match=r"a history of 'all_old' changes needs every .*: write changes=\"net\"$"):
        check_served([("t", every)], replay=False, limits=False)
    net = dataclasses.replace(every, shapes=("mirror", "scd2", "history"), history=HistoryOptions("net"))
    check_served([("t", net)], replay=False, limits=False, isolation="snapshot")
    with pytest.raises(ParameterError, match=r"isolation='read_committed' .*, and scd2 and history need exact reads$"):
        check_served([("t", net)], replay=False, limits=False, isolation=READ)
    check_served([("t", dataclasses.replace(net, shapes=("mirror",)))], replay=False, limits=False, isolation=READ)


def test_what_a_capture_brings_begins_behind_its_start_and_all_else_at_once():
    for feed, at_once in ((CAPTURED, False), (TRACKED, True)):
        kind: type[Feed] = type(feed)
        low, high = (Lsn(bytes(10)), LSN) if kind is CaptureInstance else (Version(0), VERSION)
        assert has_begun(feed, low, high)
        assert has_begun(feed, low, low) is at_once
        assert not has_begun(feed, high, low)
        assert not has_begun(feed, None, high)
        assert not has_begun(feed, low, None)


def test_a_capture_may_be_late_where_it_brings_something():
    assert is_captured([])
    assert is_captured([[TRACKED], [CAPTURED]])
    assert not is_captured([[TRACKED], [TRACKED]])
