"""When a capture is late: by the server's own clock, also in the hours when that is set."""

import dataclasses
import datetime
import zoneinfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.database import AgentHealth, DatabaseStatus, Running
from airflow_provider_mssql_cdc.core.lag import is_silent, judge, on_secondary
from airflow_provider_mssql_cdc.core.position import Lsn

MAX_LAG = datetime.timedelta(minutes=30)
MINUTE = datetime.timedelta(minutes=1)
NOON = datetime.datetime(2026, 3, 1, 12)
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


CHANGES = [
    # zone, and when its clocks are set: 02:00 to 03:00 is repeated or left out, elsewhere other hours, or half of one
    ("Europe/Berlin", datetime.datetime(2026, 10, 25, 1)),
    ("Europe/Berlin", datetime.datetime(2026, 3, 29, 1)),
    ("America/New_York", datetime.datetime(2026, 11, 1, 6)),
    ("America/New_York", datetime.datetime(2026, 3, 8, 7)),
    ("America/Santiago", datetime.datetime(2026, 9, 6, 4)),
    ("Australia/Lord_Howe", datetime.datetime(2026, 10, 3, 15, 30)),
    ("Australia/Lord_Howe", datetime.datetime(2026, 4, 4, 15)),
]


def told(zone: str, change: datetime.datetime, newest: float, scan: float, now: float) -> str:
    """The verdict where these minutes lie behind a change of the clock."""
    times = [
        (change.replace(tzinfo=datetime.UTC) + minutes * MINUTE).astimezone(zoneinfo.ZoneInfo(zone))
        for minutes in (newest, scan, now)
    ]
    offset = times[2].utcoffset()
    assert offset is not None
    at, scanned, clock = (time.replace(tzinfo=None) for time in times)
    seen = dataclasses.replace(status(at, clock), utc_offset_minutes=int(offset / MINUTE))
    if not is_silent(seen, MAX_LAG):
        return "in time"
    lag = judge(seen, scanned, RUNS, MAX_LAG)
    return "in time" if lag is None else "late" if lag.late else "unknown"


# whole seconds: less than a microsecond before the change is no time of its own
minutes_around = st.integers(-14_400, 14_400).map(lambda seconds: seconds / 60)


# the first example reads the zones of the world
@settings(deadline=None)
@given(st.sampled_from(CHANGES), minutes_around, minutes_around, minutes_around)
def test_where_clocks_are_set_nothing_in_time_is_late_and_late_is_told_an_hour_later(
    change: tuple[str, datetime.datetime], first: float, second: float, third: float
) -> None:
    newest, scan, now = sorted((first, second, third))
    silent_for = now - scan
    found = told(*change, newest, scan, now)
    if silent_for <= 30:
        assert found == "in time"
    if silent_for > 30 + 60:
        assert found == "late"
    # the hour is given only where it may have been left out: not before the change, and not long after it
    if silent_for > 30 and (now < 0 or (scan > 60 and (newest > 60 or now - newest > 90))):
        assert found == "late"


def test_in_the_seconds_after_the_clocks_went_forward_a_capture_that_runs_is_in_time() -> None:
    spring = CHANGES[1]
    assert told(*spring, -2, -1 / 30, 1 / 30) == "in time"
    assert told(*spring, -120, -29, 1) == "in time"
    assert told(*spring, -120, -30, 1) == "late"
    # an hour that nobody's clock has left out
    assert told(spring[0], spring[1] + datetime.timedelta(days=30), -91, -60, 1) == "late"


def test_on_a_readable_secondary_nothing_can_be_known() -> None:
    """It has an Agent of its own, and scans at most from when it was the primary."""
    lag = on_secondary(status(NOON - 45 * MINUTE, NOON), MAX_LAG)
    assert (lag.late, lag.text) == (
        False,
        "whether the capture of shop is late cannot be known: the newest captured commit is of 2026-03-01 11:15, and "
        "the server's clock says 2026-03-01 12:00 (max_lag=0:30:00). The database is read-only here, where neither "
        "Agent nor log scans are those of its primary.",
    )
