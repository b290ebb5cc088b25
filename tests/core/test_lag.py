"""When a capture is late: by the server's own clock, also in the hours when that is set."""

import dataclasses
import datetime
import zoneinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.database import AgentHealth, DatabaseStatus, Running
from airflow_provider_mssql_cdc.core.lag import is_silent, judge
from airflow_provider_mssql_cdc.core.position import Lsn

MAX_LAG = datetime.timedelta(minutes=30)
MINUTE = datetime.timedelta(minutes=1)
NOON = datetime.datetime(2026, 3, 1, 12)
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
STATUS = DatabaseStatus(
    name="shop",
    user="loader",
    cdc_enabled=True,
    max_lsn=Lsn((7).to_bytes(10)),
    max_lsn_time=NOON,
    min_mapped_lsn=None,
    retention_minutes=4320,
    server_time=NOON,
    utc_offset_minutes=60,
    collation="Latin1_General_CI_AS",
    version="16.0.1000.6",
    edition="Developer",
    engine_edition=3,
    recovery_fork_guid=None,
    max_text_repl_size=65536,
)
RUNS = AgentHealth(Running.RUNNING, Running.RUNNING, "SQL Server Agent: running; capture job: running")
UNKNOWN = AgentHealth(Running.UNKNOWN, Running.UNKNOWN, "SQL Server Agent: unknown; capture job: unknown")
STOPPED = AgentHealth(Running.STOPPED, Running.STOPPED, "SQL Server Agent is stopped")
JOB_STOPPED = AgentHealth(Running.RUNNING, Running.STOPPED, "capture job: stopped")


def status(newest: datetime.datetime | None, now: datetime.datetime) -> DatabaseStatus:
    return dataclasses.replace(STATUS, max_lsn_time=newest, server_time=now)


def verdict(newest, scan, now, health=RUNS):
    """``late``, ``unknown`` or ``in time``."""
    seen = status(newest, now)
    if not is_silent(seen, MAX_LAG):
        return "in time"
    lag = judge(seen, scan, health, MAX_LAG)
    return "in time" if lag is None else "late" if lag.late else "unknown"


@pytest.mark.parametrize(
    ("minutes", "scan", "health", "expected"),
    [
        (30, None, STOPPED, "in time"),
        (31, 0, RUNS, "in time"),
        (31, 30, RUNS, "in time"),
        # a scan that ended after the newest commit, but long ago, proves nothing of now
        (45, 31, RUNS, "late"),
        (31, None, STOPPED, "late"),
        (31, None, JOB_STOPPED, "late"),
        (31, None, RUNS, "unknown"),
        (31, None, UNKNOWN, "unknown"),
        # what the scans say counts for more than what the job says
        (31, 1, STOPPED, "in time"),
    ],
)
def test_signs_of_the_capture(minutes, scan, health, expected):
    at = None if scan is None else NOON - scan * MINUTE
    assert verdict(NOON - minutes * MINUTE, at, NOON, health) == expected


@pytest.mark.parametrize(("health", "expected"), [(STOPPED, "late"), (RUNS, "unknown")])
def test_where_nothing_was_ever_captured(health, expected):
    assert verdict(None, None, NOON, health) == expected


def test_without_cdc_nothing_is_late():
    assert not is_silent(dataclasses.replace(status(None, NOON), cdc_enabled=False), MAX_LAG)


def test_what_is_said_names_the_times_and_what_to_look_at():
    lag = judge(status(NOON - 45 * MINUTE, NOON), NOON - 40 * MINUTE, RUNS, MAX_LAG)
    assert lag is not None
    assert lag.text == (
        "the capture of shop is late: the newest captured commit is of 2026-03-01 11:15, and the server's clock says "
        "2026-03-01 12:00 (max_lag=0:30:00). Its last log scan ended at 2026-03-01 11:20. SQL Server Agent: running; "
        "capture job: running. sys.dm_cdc_errors may say why."
    )


AUTUMN = datetime.datetime(2026, 10, 24, 22, tzinfo=datetime.UTC)
"""Clocks go back at 01:00 UTC on 25 October: 02:00 to 03:00 is repeated."""


def local(minutes: float) -> datetime.datetime:
    return (AUTUMN + minutes * MINUTE).astimezone(BERLIN).replace(tzinfo=None)


@given(st.integers(0, 420), st.integers(0, 420), st.integers(0, 420))
def test_in_the_repeated_hour_nothing_in_time_is_late_and_late_is_told_an_hour_later(first, second, third):
    newest, scan, now = sorted((first, second, third))
    silent_for = now - scan
    found = verdict(local(newest), local(scan), local(now))
    if silent_for <= 30:
        assert found == "in time"
    if silent_for > 30 + 60:
        assert found == "late"
