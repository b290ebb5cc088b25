"""The server's clock: a zone with summer time, steps, and commits whose times do not follow their LSNs."""

from __future__ import annotations

import datetime
import itertools
import zoneinfo
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_mssql_cdc.sandbox.engine.clock import Clock
from airflow_provider_mssql_cdc.sandbox.engine.harshness import Point
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.server import Sandbox

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
HALF = datetime.timedelta(minutes=30)
# an hour before the clocks go back, and an hour before they go forward
AUTUMN = datetime.datetime(2026, 10, 25, 0, tzinfo=datetime.UTC)
SPRING = datetime.datetime(2026, 3, 29, 0, tzinfo=datetime.UTC)
SHOWN = (
    "SELECT CONVERT(varchar(23), GETDATE(), 121) AS a, CONVERT(varchar(23), SYSDATETIME(), 121) AS b,"
    " CONVERT(varchar(23), CURRENT_TIMESTAMP, 121) AS c, CONVERT(varchar(23), GETUTCDATE(), 121) AS d,"
    " CONVERT(varchar(23), SYSUTCDATETIME(), 121) AS e, DATEPART(TZOFFSET, SYSDATETIMEOFFSET()) AS f,"
    " CONVERT(varchar(23), SYSDATETIMEOFFSET(), 121) AS g, CURRENT_TIMEZONE_ID() AS h"
)


def tracked(server: Sandbox) -> Sandbox:
    server.execute(
        "CREATE TABLE dbo.t (id int IDENTITY PRIMARY KEY, v int) EXEC sys.sp_cdc_enable_db"
        " EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL"
    )
    return server


@pytest.fixture
def berlin() -> Iterator[Sandbox]:
    server = Sandbox(agent_running=False, zone="Europe/Berlin")
    yield tracked(server)
    server.stop()


def rows_of(server: Sandbox, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in server.execute(sql)[-1].to_pylist()]


def mapped(server: Sandbox) -> list[tuple[datetime.datetime, datetime.datetime]]:
    times = "SELECT tran_begin_time AS a, tran_end_time AS b FROM cdc.lsn_time_mapping ORDER BY start_lsn"
    return rows_of(server, times)


@pytest.mark.parametrize("first", [AUTUMN, SPRING])
def test_every_function_follows_the_zone(berlin: Sandbox, first: datetime.datetime) -> None:
    for number in range(5):
        moment = first + number * HALF
        local = moment.astimezone(BERLIN)
        berlin.set_time(moment)
        here, utc = (f"{time:%Y-%m-%d %H:%M:%S}.000" for time in (local, moment))
        offset = (local.utcoffset() or datetime.timedelta()) // datetime.timedelta(minutes=1)
        assert rows_of(berlin, SHOWN) == [(here, here, here, utc, utc, offset, here, "W. Europe Standard Time")]


def test_an_hour_is_mapped_twice_in_autumn(berlin: Sandbox) -> None:
    expected = []
    for number in range(6):
        moment = AUTUMN + number * HALF
        berlin.set_time(moment)
        berlin.execute("INSERT dbo.t VALUES (1)")
        expected.append(moment.astimezone(BERLIN).replace(tzinfo=None))
    berlin.step()
    assert [end for _, end in mapped(berlin)] == expected
    assert [f"{time:%H:%M}" for time in expected] == ["02:00", "02:30", "02:00", "02:30", "03:00", "03:30"]


@pytest.mark.parametrize(("fold", "offset"), [(0, 120), (1, 60)])
def test_a_local_time_that_the_zone_has_twice(berlin: Sandbox, fold: int, offset: int) -> None:
    berlin.set_time(datetime.datetime(2026, 10, 25, 2, 30, fold=fold))
    assert rows_of(berlin, "SELECT DATEPART(TZOFFSET, SYSDATETIMEOFFSET()) AS n") == [(offset,)]


def test_a_clock_in_a_zone_runs() -> None:
    server = Sandbox(agent_running=False, zone="Asia/Kolkata", clock_rate=50)
    before = datetime.datetime.now(datetime.UTC)
    ((ticks, offset),) = rows_of(server, "SELECT SYSUTCDATETIME() AS a, DATEPART(TZOFFSET, SYSDATETIMEOFFSET()) AS b")
    utc = datetime.datetime(1, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=ticks // 10)
    assert before - datetime.timedelta(minutes=1) < utc < before + datetime.timedelta(hours=1)
    assert offset == 330
    server.stop()


def test_what_is_no_zone_or_has_no_known_name_is_refused() -> None:
    with pytest.raises(ValueError, match="not an IANA time zone"):
        Sandbox(zone="Europe/Atlantis")
    with pytest.raises(ValueError, match="a zone or an offset"):
        Sandbox(zone="Europe/Berlin", utc_offset=60)
    server = Sandbox(agent_running=False, zone="Africa/Casablanca")
    with pytest.raises(SqlError, match="not supported by the sandbox"):
        server.execute("SELECT CURRENT_TIMEZONE_ID()")
    server.stop()


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_a_step_moves_a_clock_that_runs_or_stands(zone: str | None) -> None:
    at = [datetime.datetime(2026, 6, 1, 12)]
    clock = Clock(lambda: at[0], zone=zone)
    clock.step(datetime.timedelta(seconds=-90))
    assert clock() == datetime.datetime(2026, 6, 1, 11, 58, 30)
    at[0] += HALF
    assert clock() == datetime.datetime(2026, 6, 1, 12, 28, 30)
    clock.stand_at(datetime.datetime(2026, 6, 2))
    clock.step(datetime.timedelta(seconds=5))
    assert clock() == datetime.datetime(2026, 6, 2, 0, 0, 5)
    clock.stand_at(None)
    assert clock() == datetime.datetime(2026, 6, 1, 12, 28, 30)


def test_a_step_back_over_a_commit(berlin: Sandbox) -> None:
    berlin.set_time(datetime.datetime(2026, 6, 1, 12))
    berlin.execute("INSERT dbo.t VALUES (1)")
    berlin.step_clock(-90)
    berlin.execute("INSERT dbo.t VALUES (1)")
    berlin.step()
    assert [f"{end:%H:%M:%S}" for _, end in mapped(berlin)] == ["12:00:00", "11:58:30"]
    assert rows_of(berlin, "SELECT DATEPART(TZOFFSET, SYSDATETIMEOFFSET()) AS n") == [(120,)]


def drawn_times(seed: int, **harsh: Any) -> list[datetime.datetime]:
    """The times of sixty commits: twenty in one moment, then twenty each second, then twenty in one moment."""
    at = [datetime.datetime(2026, 6, 1, 12)]
    server = tracked(Sandbox(agent_running=False, clock=lambda: at[0], seed=seed, **harsh))
    for number in range(60):
        at[0] += datetime.timedelta(seconds=20 <= number < 40)
        server.execute("INSERT dbo.t VALUES (1)")
    server.step()
    found = mapped(server)
    assert all(begin <= end for begin, end in found)
    server.stop()
    return [end for _, end in found]


@pytest.mark.parametrize("seed", range(3))
def test_neighbours_of_a_harsh_server_have_equal_or_slightly_descending_times(seed: int) -> None:
    kind = drawn_times(seed)
    harsh = drawn_times(seed, harsh=[Point.CLOCK])
    steps = [later - earlier for earlier, later in itertools.pairwise(harsh)]
    near = [step for number, step in enumerate(steps) if not 19 <= number < 40]
    assert {step > datetime.timedelta() for step in near} == {False, True}
    assert datetime.timedelta() in near
    assert datetime.timedelta(milliseconds=-11) < min(near) < datetime.timedelta()
    behind = [one - other for one, other in zip(kind, harsh, strict=True)]
    assert all(datetime.timedelta() <= each < datetime.timedelta(seconds=1) for each in behind)
    assert harsh[20:40] == kind[20:40]
    assert drawn_times(seed, harsh=[Point.CLOCK]) == harsh
    assert kind == sorted(kind)
