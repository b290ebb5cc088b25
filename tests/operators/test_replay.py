"""Replays against a sandbox whose clock the test sets: what is written again, and what must not be."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint
from airflow_provider_mssql_cdc.core.exceptions import (
    CdcPermissionError,
    GapError,
    IntervalError,
    IntervalNotReachedError,
    RestoredError,
    SchemaChangedError,
    TargetError,
)
from airflow_provider_mssql_cdc.core.feed import CaptureInstance, FeedRef
from airflow_provider_mssql_cdc.core.marker import FeedSpan
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.schema_sight import SeenSchema
from airflow_provider_mssql_cdc.core.spec import ReplaySpec, SinkSpec
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.replay import plan_replay
from airflow_provider_mssql_cdc.spark.replay import look_before_replay
from tests.core.test_spec import MARKER
from tests.support.harsh import harsh_sandbox
from tests.support.hooks.source import Source
from tests.support.operators.group import A, B, Group

DAY = datetime.timedelta(days=1)
# the sandbox takes the difference from the real time for its zone, which holds some days
MONDAY = datetime.datetime.now(datetime.UTC).replace(hour=0, minute=0, second=0, microsecond=0) - 4 * DAY
TUESDAY, WEDNESDAY = MONDAY + DAY, MONDAY + 2 * DAY


class Week:
    """A group of two tables, and the server's clock, at noon of the day that is set."""

    def __init__(self) -> None:
        self.today = MONDAY
        self.group: Group

    def __call__(self) -> datetime.datetime:
        return self.today.replace(tzinfo=None) + DAY / 2

    def on(self, day: datetime.datetime, *statements: str) -> Lsn:
        """Commit and capture on that day; the position."""
        self.today = day
        for statement in statements:
            self.group.source.sql(statement)
        return self.group.change("INSERT INTO dbo.b (id) SELECT MAX(id) + 1 FROM dbo.b")

    def replay_of_tuesday(self, suffix: str = "") -> RunPlan:
        with self.group.source.hook() as hook:
            return plan_replay(hook, self.group.store, self.group.request(), (TUESDAY, WEDNESDAY), "UTC", suffix)


@pytest.fixture
def week() -> Iterator[Week]:
    """Two tables with an event of Monday."""
    week = Week()
    with harsh_sandbox(database=None, clock=week) as server:
        address = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
        source = Source(address, "week")
        week.group = Group(source, "history")
        week.group.make("dbo.a", "dbo.b")
        yield week
        source.close()


def test_a_new_table_has_no_column_that_waits_to_be_asked_for(week: Week) -> None:
    week.on(TUESDAY, "INSERT INTO dbo.a (id) VALUES (3)")
    week.on(WEDNESDAY)
    week.group.loaded(A, B)
    stored = week.group.checkpoint(A)
    assert stored is not None
    seen = SeenSchema("1:abc", with_waiting=True)
    week.group.store.overwrite(Checkpoint(stored.identity, seen_schema=seen, waiting_ids=(2,)))
    (spec,) = [spec for spec in week.replay_of_tuesday("_again").specs if spec.name == A]
    assert [column.name for column in spec.schema.columns] == ["id"]
    assert (spec.waiting_ids, spec.knows_waiting) == ((2,), True)


def test_a_day_is_the_window_between_its_first_and_its_last_transaction(week: Week) -> None:
    first = week.on(TUESDAY)
    last = week.on(TUESDAY)
    week.on(WEDNESDAY)
    position = week.group.loaded(A, B)
    plan = week.replay_of_tuesday()
    assert (plan.failures, [spec.name for spec in plan.specs]) == ({}, [B])
    assert plan.replay is not None
    assert (plan.replay.after, plan.replay.upto) == (first.previous(), last)
    (sink,) = plan.specs[0].sinks
    assert (sink.read_through, sink.expects) == (position, position)


def test_two_lsns_are_a_window_too(week: Week) -> None:
    first = week.on(TUESDAY)
    last = week.on(TUESDAY)
    later = week.on(WEDNESDAY)
    week.group.loaded(A, B)

    def replay(after: Lsn, upto: Lsn) -> RunPlan:
        with week.group.source.hook() as hook:
            request = week.group.request()
            return plan_replay(hook, week.group.store, request, (after.text, upto.text), None, "")

    # neither needs to be a commit's
    plan = replay(first.previous().previous(), later.previous())
    assert (plan.failures, [spec.name for spec in plan.specs]) == ({}, [B])
    assert plan.replay is not None
    assert (plan.replay.after, plan.replay.upto) == (first.previous(), last)
    assert replay(first, last).replay.after == last.previous(), "the first one is left out"
    assert replay(last, later.previous()).replay is None
    with pytest.raises(IntervalNotReachedError, match="the capture has reached"):
        replay(first, Lsn.parse("0xFFFF0000000000000001"))


@pytest.mark.parametrize("suffix", ["", "_again"])
def test_columns_that_change_within_the_window_stop_the_table(week: Week, suffix: str) -> None:
    week.on(TUESDAY, "ALTER TABLE dbo.a ALTER COLUMN v bigint", "INSERT INTO dbo.a (id) VALUES (2)")
    week.on(WEDNESDAY)
    week.group.loaded(A, B)
    plan = week.replay_of_tuesday(suffix)
    assert [spec.name for spec in plan.specs] == [B]
    assert isinstance(plan.failures[A], SchemaChangedError)
    assert "ALTER COLUMN v bigint" in str(plan.failures[A])


def test_columns_other_than_those_of_the_history_stop_the_table_but_not_a_new_one(week: Week) -> None:
    week.on(TUESDAY, "INSERT INTO dbo.a (id) VALUES (2)")
    week.on(WEDNESDAY)
    week.group.loaded(A, B)
    week.on(WEDNESDAY, "ALTER TABLE dbo.a ALTER COLUMN v bigint")
    plan = week.replay_of_tuesday()
    assert [spec.name for spec in plan.specs] == [B]
    assert isinstance(plan.failures[A], SchemaChangedError)
    assert "is bigint" in str(plan.failures[A])
    anew = week.replay_of_tuesday("_again")
    assert ([spec.name for spec in anew.specs], anew.failures) == ([A, B], {})


def test_columns_that_change_outside_the_window_stop_nothing(week: Week) -> None:
    week.on(MONDAY, "ALTER TABLE dbo.a ALTER COLUMN v bigint")
    week.on(TUESDAY, "INSERT INTO dbo.a (id) VALUES (2)")
    week.on(WEDNESDAY)
    week.group.loaded(A, B)
    assert [spec.name for spec in week.replay_of_tuesday().specs] == [A, B]


def test_a_history_of_before_a_restore_is_left_alone(week: Week) -> None:
    week.on(TUESDAY, "INSERT INTO dbo.a (id) VALUES (2)")
    week.on(WEDNESDAY)
    week.group.loaded(A, B)
    stored = week.group.checkpoint(A)
    assert stored is not None
    sink = stored.sinks["history"]
    assert sink.witness is not None
    other = dataclasses.replace(sink.witness, time=sink.witness.time - DAY)
    week.group.store.overwrite(dataclasses.replace(stored, sinks={"history": dataclasses.replace(sink, witness=other)}))
    plan = week.replay_of_tuesday()
    assert [spec.name for spec in plan.specs] == [B]
    assert isinstance(plan.failures[A], RestoredError)


def test_a_change_table_that_may_not_be_read_fails_alone(week: Week) -> None:
    week.on(TUESDAY, "INSERT INTO dbo.a (id) VALUES (2)")
    week.on(WEDNESDAY)
    week.group.loaded(A, B)
    with week.group.source.hook() as hook, week.group.reader("lsn_time_mapping", "change_tables", "dbo_b_CT") as reader:
        hook.probe = reader.probe  # type: ignore[method-assign]
        plan = plan_replay(hook, week.group.store, week.group.request(), (TUESDAY, WEDNESDAY), "UTC", "")
    assert [spec.name for spec in plan.specs] == [B]
    assert isinstance(plan.failures[A], CdcPermissionError)


def test_an_interval_that_the_capture_has_not_passed_waits_for_another_try(week: Week) -> None:
    week.on(TUESDAY)
    week.group.loaded(A, B)
    with week.group.source.hook() as hook:
        state = hook.agent_health().detail
    with pytest.raises(IntervalNotReachedError, match=f"not yet {WEDNESDAY.replace(tzinfo=None)}") as early:
        week.replay_of_tuesday()
    assert not early.value.permanent
    assert state.startswith("SQL Server Agent")
    assert str(early.value).endswith(state)


def test_a_history_that_has_not_reached_the_interval_waits_for_another_try(week: Week) -> None:
    week.on(TUESDAY)
    position = week.group.loaded(A, B)
    last = week.on(TUESDAY)
    week.on(WEDNESDAY)
    plan = week.replay_of_tuesday()
    assert (plan.specs, list(plan.failures)) == ([], [B])
    assert isinstance(plan.failures[B], IntervalNotReachedError)
    assert not plan.failures[B].permanent
    assert f"loaded up to {position}, and the interval's last event is at {last}" in str(plan.failures[B])


@pytest.mark.parametrize("days", [(-3, -2), (-1, 2)], ids=["before", "across"])
def test_what_lies_before_the_oldest_mapping_is_a_gap(week: Week, days: tuple[int, int]) -> None:
    """The largest LSN below such an edge is NULL, which must not be taken for the beginning."""
    week.on(TUESDAY)
    week.on(WEDNESDAY)
    week.group.loaded(A, B)
    start, end = (MONDAY + number * DAY for number in days)
    with (
        week.group.source.hook() as hook,
        pytest.raises(IntervalError, match=f"nothing is known of the time before {start.date()}") as old,
    ):
        plan_replay(hook, week.group.store, week.group.request(), (start, end), "UTC", "")
    assert old.value.permanent


@pytest.mark.parametrize(("version", "offset"), [("2022", 120), ("2019", 0)])
def test_a_clock_that_may_not_be_utc_needs_a_zone(version: str, offset: int) -> None:
    with harsh_sandbox(database=None, build=version, utc_offset=offset) as server:
        address = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
        source = Source(address, "elsewhere")
        group = Group(source, "history")
        group.make("dbo.a")
        with source.hook() as hook:
            with pytest.raises(IntervalError, match=r'Name its IANA zone: server_timezone="Europe/Berlin"') as unnamed:
                plan_replay(hook, group.store, group.request(), (MONDAY, TUESDAY), None, "")
            assert unnamed.value.permanent
            with pytest.raises(IntervalError, match="nothing is known of the time before"):
                plan_replay(hook, group.store, group.request(), (MONDAY, TUESDAY), "Europe/Berlin", "")
        source.close()


def test_a_server_that_says_it_is_utc_needs_none(week: Week) -> None:
    week.on(TUESDAY)
    week.on(WEDNESDAY)
    week.group.loaded(A, B)
    with week.group.source.hook() as hook:
        plan = plan_replay(hook, week.group.store, week.group.request(), (TUESDAY, WEDNESDAY), None, "")
    assert plan.replay == week.replay_of_tuesday().replay


def test_an_interval_without_zone_is_refused(week: Week) -> None:
    edges = TUESDAY.replace(tzinfo=None), WEDNESDAY.replace(tzinfo=None)
    with week.group.source.hook() as hook, pytest.raises(IntervalError, match="has no time zone"):
        plan_replay(hook, week.group.store, week.group.request(), edges, "UTC", "")


def test_an_interval_whose_changes_were_purged_is_a_gap_not_an_interval_without_changes(week: Week) -> None:
    week.on(TUESDAY, "INSERT INTO dbo.a (id) VALUES (2)")
    wednesday = week.on(WEDNESDAY)
    week.group.loaded(A, B)
    week.group.source.sql(f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_b', {wednesday}")
    plan = week.replay_of_tuesday()
    assert [spec.name for spec in plan.specs] == [A]
    assert isinstance(plan.failures[B], GapError)


@pytest.mark.parametrize(("after", "refused"), [(6, True), (7, False)])
def test_events_that_another_instance_gave_are_not_replayed_into_a_history(after: int, refused: bool) -> None:
    def lsn(number: int) -> Lsn:
        return Lsn(number.to_bytes(10))

    spans = (FeedSpan(FeedRef("v1", 1, None), lsn(1)), FeedSpan(FeedRef("v2", 2, None), lsn(7)))
    feed = CaptureInstance("v2", 2, A, 5, MONDAY, ())
    state = SimpleNamespace(marker=dataclasses.replace(MARKER, feeds=spans), doubt=None)
    spec = SinkSpec("history", ("lake", "a"), lsn(9), lsn(9))
    sink: Any = mock.Mock()
    sink.spec, sink.state.return_value, sink.rows.table.spec = spec, state, SimpleNamespace(name=A, feed=feed)
    sink.target.name = "lake.a"

    def look(suffix: str = "") -> None:
        look_before_replay(sink, reading=mock.Mock(staged=None), replay=ReplaySpec(lsn(after), lsn(9), suffix))

    if refused:
        with pytest.raises(TargetError, match="loaded from capture instance v1"):
            look()
    else:
        look()
