"""Loads beside a clock that goes back: each commit is in one interval or refused; copies end behind all they saw."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.exceptions import IntervalError
from airflow_provider_mssql_cdc.core.passing import CaptureProgress, CopyEnd
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.operators.replay import interval_positions
from airflow_provider_mssql_cdc.spark.sources.cdc.state import read_progress
from tests.support.harsh import harsh_sandbox
from tests.support.hooks.source import Source

UTC = datetime.UTC
SECOND, MINUTE, HOUR = (datetime.timedelta(seconds=n) for n in (1, 60, 3600))
NOON = datetime.datetime(2026, 6, 1, 12, tzinfo=UTC)
# the clocks go back at 01:00 UTC, from 03:00 to 02:00
MIDNIGHT = datetime.datetime(2026, 10, 24, 22, tzinfo=UTC)

Rows = list[tuple[Lsn, datetime.datetime]]


class Place:
    """A tracked table on a server whose clock the test sets."""

    def __init__(self, server: Any, source: Source) -> None:
        self.server, self.source = server, source

    def commits(self, *moments: datetime.datetime) -> None:
        """Commit at each of these moments, and have it captured."""
        for moment in moments:
            self.server.set_time(moment)
            self.source.sql("INSERT INTO dbo.t (v) VALUES (1)")
        self.source.scan()

    def let_function_take(self, takes: Any) -> None:
        """Set what sys.fn_cdc_map_time_to_lsn takes."""
        cdc = self.server.cdc(self.source.name)
        cdc.switches = dataclasses.replace(cdc.switches, time_to_lsn_takes=takes)

    def rows(self) -> Rows:
        """All commits, in the order of the log."""
        rows = self.source.sql("SELECT start_lsn, tran_end_time FROM cdc.lsn_time_mapping ORDER BY start_lsn")
        return [(Lsn(bytes(lsn)), time) for lsn, time in rows]

    def windows(self, edges: list[datetime.datetime], zone: str) -> list[list[Lsn] | None]:
        """The commits of each interval between neighbours of the edges; None for those that are refused."""
        found: list[list[Lsn] | None] = []
        with self.source.hook() as hook:
            for start, end in itertools.pairwise(edges):
                found.append(commits_of(hook, start, end, zone))
        return found


def commits_of(hook: MsSqlCdcHook, start: datetime.datetime, end: datetime.datetime, zone: str) -> list[Lsn] | None:
    try:
        after, upto = interval_positions(hook, start, end, zone)
    except IntervalError:
        return None
    return [each.lsn for each in hook.transactions_between(after, upto)]


@pytest.fixture
def berlin() -> Iterator[Place]:
    yield from made(zone="Europe/Berlin")


@pytest.fixture
def utc() -> Iterator[Place]:
    yield from made()


TAKES = ("nearest", "first", "extreme")
"""Whatever sys.fn_cdc_map_time_to_lsn takes, loads are the same."""


def made(**options: Any) -> Iterator[Place]:
    with harsh_sandbox(database=None, agent_running=False, **options) as server:
        address = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
        server.set_time(NOON - datetime.timedelta(days=100))
        source = Source(address, "clocks")
        source.sql("CREATE TABLE dbo.t (id int IDENTITY PRIMARY KEY, v int)")
        source.enable("dbo.t")
        yield Place(server, source)
        source.close()


def test_an_interval_that_ends_where_the_repeated_hour_does_has_all_of_it(berlin: Place) -> None:
    """The last time below 03:00 is one of the first pass; behind it lies the second one."""
    berlin.commits(*(MIDNIGHT + minutes * MINUTE for minutes in (0, 100, 179, 181, 230, 245, 250)))
    lsns = [lsn for lsn, _ in berlin.rows()]
    edges = [MIDNIGHT + minutes * MINUTE for minutes in (1, 240, 250)]
    assert berlin.windows(edges, "Europe/Berlin") == [lsns[1:5], lsns[5:6]]


def test_a_clock_that_was_set_back_over_an_edge_by_minutes_is_refused(utc: Place) -> None:
    utc.commits(*(NOON + minutes * MINUTE for minutes in (0, 10, 12, 5, 8, 20, 30)))
    lsns = [lsn for lsn, _ in utc.rows()]
    assert utc.windows([NOON + MINUTE, NOON + 7 * MINUTE, NOON + 13 * MINUTE], "UTC") == [None, None]
    assert utc.windows([NOON + 4 * MINUTE, NOON + 13 * MINUTE, NOON + 25 * MINUTE], "UTC") == [lsns[1:5], lsns[5:6]]
    with (
        utc.source.hook() as hook,
        pytest.raises(IntervalError, match=r"clock went back over 2026-06-01 12:07:00.*to 2026-06-01 12:05:00"),
    ):
        interval_positions(hook, NOON + 7 * MINUTE, NOON + 25 * MINUTE, "UTC")


def test_a_clock_that_showed_another_day_for_a_moment_hides_no_commits(utc: Place) -> None:
    """What follows has times of before the edges, and lies behind a commit that is later than them."""
    utc.commits(NOON, NOON + 24 * HOUR, *(NOON + minutes * MINUTE for minutes in (10, 20, 30)), NOON + 25 * HOUR)
    assert utc.windows([NOON + 5 * MINUTE, NOON + 25 * MINUTE], "UTC") == [None]


@pytest.mark.parametrize("seed", range(3))
def test_commits_that_overtake_each_other_by_little_are_in_one_interval_each(utc: Place, seed: int) -> None:
    utc.let_function_take(TAKES[seed])
    drawn = random.Random(seed)
    moments = [NOON - HOUR]
    for _ in range(30):
        moments.append(moments[-1] + drawn.choice((SECOND / 100, SECOND, MINUTE)))
    shown = [moment + drawn.choice((0, 0, -1, -3)) * SECOND for moment in moments]
    utc.commits(*shown, NOON + HOUR)
    rows = utc.rows()
    times = sorted({time.replace(tzinfo=UTC) for _, time in rows[1:-1]})
    edges = sorted({NOON - HOUR + 5 * SECOND, *drawn.sample(times[3:], 8), NOON + HOUR})
    found = utc.windows(edges, "UTC")
    first, last = (
        next(lsn for lsn, time in rows if time.replace(tzinfo=UTC) >= edge) for edge in (edges[0], edges[-1])
    )
    assert None not in found
    assert [lsn for window in found for lsn in window or ()] == [lsn for lsn, _ in rows if first <= lsn < last]


@pytest.mark.parametrize("seed", range(3))
def test_whatever_the_clock_does_each_commit_is_in_one_interval_at_most(utc: Place, seed: int) -> None:
    """Intervals are asked for as soon as they can be, and again at the end: what is not refused says the same."""
    utc.let_function_take(TAKES[seed])
    drawn = random.Random(100 + seed)
    edges = [NOON + number * 7 * MINUTE for number in range(7)]
    asked: dict[int, list[Lsn]] = {}
    shown = NOON - MINUTE
    for number in range(24):
        shown += drawn.choice((SECOND, MINUTE, 3 * MINUTE, 5 * MINUTE))
        if drawn.random() < 0.1:
            shown -= drawn.choice((SECOND, MINUTE, 20 * MINUTE))
        utc.commits(shown)
        for place, window in enumerate(utc.windows(edges, "UTC") if number % 8 == 7 else ()):
            if window is not None:
                assert asked.setdefault(place, window) == window
    rows = utc.rows()
    several = [lsn for window in asked.values() for lsn in window]
    assert len(set(several)) == len(several)
    for number, window in asked.items():
        start, end = (edge.replace(tzinfo=None) for edge in edges[number : number + 2])
        first, last = (next(lsn for lsn, time in rows if time >= edge) for edge in (start, end))
        assert window == [lsn for lsn, _ in rows if first <= lsn < last]


class PlainJdbc:
    """What a load asks of its source over JDBC, without Spark."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def rows(self, query: str, schema: str) -> list[dict[str, Any]]:
        names = [column.split()[0] for column in schema.split(", ")]
        return [dict(zip(names, row, strict=True)) for row in self._source.sql(query)]

    rows_if_allowed = rows


def test_a_copy_that_ends_in_the_repeated_hour_is_not_ended_by_a_commit_of_its_first_pass(berlin: Place) -> None:
    """The capture is an hour behind; then it maps a commit of 02:58, which looks later than the copy's end at 02:30."""
    jdbc: Any = PlainJdbc(berlin.source)

    def commit(minutes: float) -> None:
        berlin.server.set_time(MIDNIGHT + minutes * MINUTE)
        berlin.source.sql("INSERT INTO dbo.t (v) VALUES (1)")

    def seen(minutes: float) -> CaptureProgress:
        berlin.server.set_time(MIDNIGHT + minutes * MINUTE)
        return dataclasses.replace(read_progress(jdbc), empty_scans=None)

    berlin.commits(MIDNIGHT, MIDNIGHT + 60 * MINUTE)
    for minutes in (178, 200, 230):  # 02:58, and then 02:20 and 02:50
        commit(minutes)
    begin, end = seen(205), seen(210)
    assert (begin.utc_offset_minutes, end.now) == (60, datetime.datetime(2026, 10, 25, 2, 30))
    copy = CopyEnd(begin, end, 300)
    berlin.source.sql("EXEC sys.sp_cdc_scan @maxtrans = 1, @maxscans = 1")
    mapped = seen(239)
    assert mapped.max_time == mapped.latest == datetime.datetime(2026, 10, 25, 2, 58)
    assert not copy.is_passed(mapped)
    berlin.source.scan()
    assert not copy.is_passed(seen(239.5))
    commit(272)
    berlin.source.scan()
    assert copy.is_passed(seen(273))
    assert not copy.is_doubted
