"""How fast copies read, by a clock of the test's own."""

from __future__ import annotations

import datetime
from types import SimpleNamespace

import pytest

from airflow_provider_mssql_cdc.core.passing import CaptureProgress
from airflow_provider_mssql_cdc.spark.copies import pace
from airflow_provider_mssql_cdc.spark.copies.pace import CopyTime, Pace

NOON = datetime.datetime(2026, 1, 31, 12)


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr(pace, "time", SimpleNamespace(monotonic=lambda: now.seconds))
    return now


def test_rows_are_counted_over_all_tables_from_the_first_chunk_on(clock):
    slow = Pace(rows_per_second=100)
    assert (slow.wait, slow.most_rows) == (0, 1000)
    slow.read(500)
    assert slow.wait == 5
    clock.seconds += 2
    slow.read(100)
    assert slow.wait == 4
    clock.seconds += 60
    assert slow.wait == 0
    # what was not read meanwhile is not made up for
    slow.read(700)
    assert slow.wait == 7
    # a chunk that was smaller than it was said to be
    slow.read(-600)
    assert slow.wait == 1


def test_without_a_limit_nothing_waits(clock):
    fast = Pace()
    fast.read(10**9)
    assert (fast.wait, fast.most_rows, fast.heeds_lag) == (0, None, False)
    assert not fast.is_late(seen(3600))


def seen(age: float | None, scans: int | None = None, at: float = 0.0) -> CaptureProgress:
    now = NOON + datetime.timedelta(seconds=at)
    newest = None if age is None else NOON - datetime.timedelta(seconds=age)
    return CaptureProgress(now, None, newest, scans, newest, 0)


def test_a_capture_is_late_by_its_newest_commit_unless_scans_find_nothing():
    heeding = Pace(throttle_lag=60)
    assert heeding.heeds_lag
    assert [heeding.is_late(seen(age)) for age in (None, 10, 60, 61)] == [False, False, False, True]
    assert heeding.is_late(seen(300, 7))
    # a scan has found nothing: it is quiet, however often that is asked before the next scan
    assert not heeding.is_late(seen(300, 8, at=1))
    assert not heeding.is_late(seen(300, 8, at=30))
    assert not heeding.is_late(seen(300, None, at=61))
    assert heeding.is_late(seen(300, 8, at=62))


def test_the_time_of_a_run_begins_with_its_first_copy(clock):
    run = CopyTime(10, Pace(5))
    clock.seconds += 100
    run.begin()
    clock.seconds += 4
    run.begin()
    assert run.left == 6
    clock.seconds += 60
    assert run.left == 0
    assert run.endless().left is None
    assert run.endless().pace is run.pace
