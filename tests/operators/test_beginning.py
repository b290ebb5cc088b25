"""Where histories begin that begin with changes alone: positions and times, and what lies too early or too late."""

from __future__ import annotations

import datetime

import pytest

from airflow_provider_mssql_cdc.core.exceptions import IntervalError
from airflow_provider_mssql_cdc.core.initial import Initial
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.planning import plan_load
from tests.operators.test_replay import MONDAY, TUESDAY, WEDNESDAY, A, B, Week, week

__all__ = ["week"]


@pytest.fixture
def days(week: Week) -> tuple[Week, Lsn, Lsn]:
    """Three days, and the last position of Monday and of Tuesday."""
    monday = week.on(MONDAY)
    tuesday = week.on(TUESDAY)
    week.on(WEDNESDAY)
    return week, monday, tuesday


def plan(week: Week, initial: object, timezone: str | None = "UTC", **given: object) -> RunPlan:
    with week.group.source.hook() as hook:
        request = week.group.request(initial=Initial.parse(initial), server_timezone=timezone, **given)  # type: ignore[arg-type]
        return plan_load(hook, week.group.store, request, None)


def begun(found: RunPlan) -> set[Initial]:
    return {sink.initial for spec in found.specs for sink in spec.sinks}


@pytest.mark.parametrize("hour", [0, 11, 12])
def test_a_time_is_the_position_before_its_first_commit(days: tuple[Week, Lsn, Lsn], hour: int) -> None:
    week, monday, _ = days
    moment = TUESDAY.replace(hour=hour)
    found = plan(week, moment)
    # the commit of noon itself is loaded
    assert begun(found) == {Initial("", monday)}
    (steps,) = {tuple(map(str, steps.windows.values())) for steps in found.steps.values()}
    assert steps == (f"({monday}, {found.upto}]",)


def test_a_time_behind_all_commits_of_a_day_leaves_them_out(days: tuple[Week, Lsn, Lsn]) -> None:
    week, _, tuesday = days
    moment = TUESDAY.replace(hour=12) + datetime.timedelta(seconds=1)
    assert begun(plan(week, moment.astimezone(datetime.timezone(datetime.timedelta(hours=5))))) == {
        Initial("", tuesday)
    }


def test_words_and_lsns_stay_what_they_are(days: tuple[Week, Lsn, Lsn]) -> None:
    week, monday, _ = days
    for text in ("earliest", "latest", monday.text):
        assert begun(plan(week, text)) == {Initial.parse(text)}


def test_what_is_loaded_does_not_begin_again(days: tuple[Week, Lsn, Lsn]) -> None:
    week, *_ = days
    week.group.loaded(A, B)
    week.on(WEDNESDAY)
    # nobody asks where a time lies
    found = plan(week, TUESDAY, None)
    assert begun(found) == {Initial("copy")}


def test_what_lies_before_all_changes_or_behind_them_is_told_by_the_job(days: tuple[Week, Lsn, Lsn]) -> None:
    """It sees whether a target has a marker, which goes on whatever ``initial`` says."""
    week, monday, tuesday = days
    week.group.source.sql(f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_a', {tuesday}")
    found = plan(week, monday.text)
    assert found.failures == {}
    assert begun(found) == {Initial("", monday)}
    assert [found.steps[name].lost for name in (A, B)] == [{"history": monday}, {}]

    # what the capture has not reached is waited for, without Spark
    for later, reason in (
        (Lsn(b"\xff" * 10).text, "it begins behind 0xFFFF"),
        (WEDNESDAY + datetime.timedelta(days=1), "the capture has reached"),
    ):
        late = plan(week, later)
        assert (late.failures, late.specs) == ({}, [])
        assert [waiting.name for waiting in late.waiting] == [A, B]
        assert all(waiting.reason.startswith(reason) for waiting in late.waiting)
    # older than all that is known
    (initial,) = begun(plan(week, MONDAY - datetime.timedelta(days=400)))
    assert not initial.is_early
    assert str(initial.error(A)).startswith("dbo.a: initial: nothing is known of the time before")
    assert type(initial.error(A)) is IntervalError
    assert {steps.commits for steps in plan(week, MONDAY - datetime.timedelta(days=400)).steps.values()} == {()}


def test_what_begins_counts_for_the_limits_and_waits_where_it_begins_behind_the_cut(
    days: tuple[Week, Lsn, Lsn],
) -> None:
    week, monday, _ = days
    # one transaction of all that the history of B begins with; A has none behind Monday
    found = plan(week, "earliest", max_transactions=1)
    assert found.upto is not None
    assert found.upto.of(Lsn) < monday
    week.group.loaded(A)
    week.on(WEDNESDAY, "INSERT INTO dbo.a (id) VALUES (50)", "INSERT INTO dbo.a (id) VALUES (51)")
    last = week.on(WEDNESDAY, "INSERT INTO dbo.a (id) VALUES (52)")
    limited = plan(week, last.previous().text, max_transactions=1)
    assert limited.failures == {}
    assert [spec.name for spec in limited.specs] == [A]
    (waiting,) = limited.waiting
    assert (waiting.name, "this run goes up to" in waiting.reason) == (B, True)


@pytest.mark.parametrize("initial", ["earliest", "monday", "wednesday"])
def test_of_two_instances_the_one_is_read_that_reaches_back(days: tuple[Week, Lsn, Lsn], initial: str) -> None:
    week, monday, _ = days
    week.group.source.sql("EXEC sys.sp_cdc_enable_table N'dbo', N'b', N'second', @role_name = NULL")
    newest = week.on(WEDNESDAY)
    found = plan(week, {"monday": monday.text, "wednesday": newest.text}.get(initial, initial))
    (feed,) = (spec.feed.name for spec in found.specs if spec.name == B)
    assert feed == ("second" if initial == "wednesday" else "dbo_b")


def test_a_time_needs_the_zone_of_a_server_that_does_not_say_it(days: tuple[Week, Lsn, Lsn]) -> None:
    week, *_ = days
    # in Berlin's wall clock the commits of Tuesday noon were at 11:00 UTC
    berlin = plan(week, TUESDAY.replace(hour=11), "Europe/Berlin")
    assert berlin.failures == {}
    assert begun(berlin) == begun(plan(week, TUESDAY.replace(hour=12)))
