"""Jobs and the Agent that runs them; the threads are real, and nothing here waits by the clock."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Iterator

import pytest

from airflow_provider_mssql_cdc.sandbox.engine.cdc.agent import Agent
from airflow_provider_mssql_cdc.sandbox.engine.cdc.jobs import Settings
from airflow_provider_mssql_cdc.sandbox.engine.cdc.switches import Switches
from airflow_provider_mssql_cdc.sandbox.engine.log import TableAltered
from airflow_provider_mssql_cdc.sandbox.protocol import Message, SqlError
from airflow_provider_mssql_cdc.sandbox.types import SqlType
from tests.support.sandbox.engine.cdc.world import INT, NOON, World, insert, table

T = table("t", {"id": INT}, key=["id"])
NEVER = 3600.0  # seconds between two cycles: what happens in a test happens at once or because it was asked for


class Watched(World):
    """A world with an Agent whose captures can be awaited."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.agent = Agent(clock=lambda: self.now, capture_interval=NEVER)
        self.agent.attach(self.db)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a thread of the Agent has brought something about."""
        waiting = threading.Event()
        for _ in range(5000):
            if condition():
                return
            waiting.wait(0.002)
        raise AssertionError("it did not come about")

    def captured(self, count: int) -> list[int]:
        """The ids in the change table, as soon as there are ``count``."""
        self.until(lambda: len(self.rows("dbo_t")) >= count)
        return [row["id"] for row in self.rows("dbo_t")]


@pytest.fixture
def world() -> Iterator[Watched]:
    world = Watched()
    yield world
    world.agent.stop()


def texts(messages: list[Message]) -> list[str]:
    return [each.text for each in messages]


def refusal(call: object, *arguments: object) -> int:
    assert callable(call)
    with pytest.raises(SqlError) as caught:
        call(*arguments)
    return caught.value.number


def test_the_first_table_creates_and_starts_the_jobs(world: Watched) -> None:
    world.agent.start()
    messages = world.db.enable_table(T)
    assert texts(messages) == [
        "Job 'cdc.shop_capture' started successfully.",
        "Job 'cdc.shop_cleanup' started successfully.",
    ]
    assert all(each.severity <= 10 for each in messages)
    assert world.db.enable_table(T, capture_instance="second") == []
    assert world.agent.capture_session(world.db) == 0


def test_with_the_agent_stopped_enabling_works_and_nothing_is_lost(world: Watched) -> None:
    messages = world.db.enable_table(T)
    assert [each.severity for each in messages] == [10, 10]
    assert all("not running" in each.text for each in messages)
    world.commit(insert(T, (1,)))
    world.commit(insert(T, (2,)))
    assert world.rows("dbo_t") == []
    world.agent.start()
    assert world.captured(2) == [1, 2]


def test_a_stopped_agent_captures_nothing_but_a_scan_by_hand_does(world: Watched) -> None:
    world.agent.start()
    world.db.enable_table(T)
    world.agent.stop()
    assert not world.agent.running
    assert world.agent.capture_session(world.db) is None
    world.commit(insert(T, (1,)))
    assert world.rows("dbo_t") == []
    assert world.db.sp_cdc_scan() == 1
    assert world.captured(1) == [1]


def test_hold_step_release(world: Watched) -> None:
    world.db.enable_table(T)
    world.agent.hold()
    world.agent.start()
    for i in range(3):
        world.commit(insert(T, (i,)))
    assert world.rows("dbo_t") == []
    assert world.agent.step(world.db) == 3
    assert [row["id"] for row in world.rows("dbo_t")] == [0, 1, 2]
    world.commit(insert(T, (3,)))
    world.agent.release()
    assert world.captured(4) == [0, 1, 2, 3]


def test_step_works_with_the_agent_stopped_and_can_write_a_dummy_row(world: Watched) -> None:
    world.db.enable_table(T)
    world.commit(insert(T, (1,)))
    assert world.agent.step(world.db) == 1
    before = world.db.max_lsn()
    assert world.agent.step(world.db, dummy=True) == 0
    after = world.db.max_lsn()
    assert before is not None
    assert after is not None
    assert after > before


def test_a_cycle_takes_no_more_than_its_scans_may(world: Watched) -> None:
    world.db.enable_table(T)
    world.db.change_job("capture", Settings(maxtrans=2, maxscans=2))
    for i in range(11):
        world.commit(insert(T, (i,)))
    world.agent.start()
    for count in (4, 8, 11):
        assert world.captured(count) == list(range(count))
        world.agent.release()  # as if the polling interval were over


def test_settings_take_effect_only_when_the_job_is_started_again(world: Watched) -> None:
    world.db.enable_table(T)
    world.agent.hold()
    world.agent.start()
    world.db.change_job("capture", Settings(maxtrans=1, maxscans=1, continuous=0))
    for i in range(3):
        world.commit(insert(T, (i,)))
    world.agent.release()
    assert world.captured(3) == [0, 1, 2]
    assert world.agent.capture_session(world.db) == 0
    world.agent.stop_job(world.db)
    world.agent.hold()
    for i in range(3, 6):
        world.commit(insert(T, (i,)))
    world.agent.release()
    world.agent.start_job(world.db)
    # Not continuous now: one cycle of one transaction, and the job has ended.
    assert world.captured(4) == [0, 1, 2, 3]
    world.agent.stop()
    assert world.captured(4) == [0, 1, 2, 3]


def test_job_procedures(world: Watched) -> None:
    world.db.enable_table(T)
    assert refusal(world.agent.start_job, world.db) == 22022
    world.agent.start()
    assert refusal(world.agent.start_job, world.db) == 22022
    assert texts(world.agent.stop_job(world.db)) == ["Job 'cdc.shop_capture' stopped successfully."]
    assert refusal(world.agent.stop_job, world.db) == 22022
    assert refusal(world.agent.stop_job, world.db, "cleanup") == 22022
    assert texts(world.agent.start_job(world.db, " CAPTURE ")) == ["Job 'cdc.shop_capture' started successfully."]
    assert refusal(world.agent.start_job, world.db, "both") == 22992
    world.db.drop_job("capture")
    assert world.agent.capture_session(world.db) is None
    assert refusal(world.agent.start_job, world.db) == 22997
    assert [row["name"] for row in world.agent.sysjobs()[1].to_pylist()] == ["cdc.shop_cleanup"]


def test_the_cleanup_job_cleans(world: Watched) -> None:
    world.db.enable_table(T)
    world.agent.start()
    world.agent.hold()
    world.db.change_job("cleanup", Settings(retention=1))
    for i in range(130):
        world.commit(insert(T, (i,)))
    world.agent.step(world.db)
    assert texts(world.agent.start_job(world.db, "cleanup")) == ["Job 'cdc.shop_cleanup' started successfully."]
    # 130 commits a second apart: the mark is the last one more than 60 s before the newest.
    assert [row["id"] for row in world.rows("dbo_t")] == list(range(68, 130))


def test_the_cleanup_job_runs_at_two_o_clock(world: Watched) -> None:
    world.db.enable_table(T)
    world.db.change_job("cleanup", Settings(retention=1))
    world.now = datetime.datetime(2026, 3, 3, 1, 55)
    for i in range(299):
        world.commit(insert(T, (i,)))
    world.agent.step(world.db)
    world.agent.start()
    assert len(world.rows("dbo_t")) == 299
    world.now += datetime.timedelta(seconds=1)
    assert world.now == datetime.datetime(2026, 3, 3, 2)
    world.until(lambda: len(world.rows("dbo_t")) < 299)
    # The newest is from 01:59:59, the mark is the last one before 01:58:59: the one from 01:58:58.
    assert [row["id"] for row in world.rows("dbo_t")] == list(range(237, 299))


def test_jobs_and_agent_tell_one_story(world: Watched) -> None:
    def agent_status() -> list[tuple[str, int]]:
        rows = world.agent.services()[1].to_pylist()
        return [
            (row["status_desc"], row["status"]) for row in rows if row["servicename"].startswith("SQL Server Agent (")
        ]

    def activity() -> dict[str, tuple[object, object]]:
        names = {row["job_id"]: row["name"] for row in world.agent.sysjobs()[1].to_pylist()}
        newest = max((row["session_id"] for row in world.agent.syssessions()[1].to_pylist()), default=0)
        return {
            names[row["job_id"]]: (row["start_execution_date"], row["stop_execution_date"])
            for row in world.agent.sysjobactivity()[1].to_pylist()
            if row["session_id"] == newest
        }

    world.db.enable_table(T)
    jobs = {row["job_id"] for row in world.relation("cdc_jobs")}
    assert {row["job_id"] for row in world.agent.sysjobs()[1].to_pylist()} == jobs
    assert agent_status() == [("Stopped", 1)]
    assert activity() == {}
    world.agent.start()
    assert agent_status() == [("Running", 4)]
    assert activity() == {"cdc.shop_capture": (NOON, None)}
    world.agent.stop()
    assert activity() == {"cdc.shop_capture": (NOON, NOON)}
    world.agent.start()
    assert [row["session_id"] for row in world.agent.syssessions()[1].to_pylist()] == [1, 2]
    assert activity() == {"cdc.shop_capture": (NOON, None)}
    world.agent.services_visible = False
    assert agent_status() == []
    world.db.disable()
    assert world.agent.sysjobs()[1].num_rows == world.agent.sysjobactivity()[1].num_rows == 0


def test_a_failing_scan_does_not_end_the_job(world: Watched) -> None:
    wide, narrow = (table("w", {"a": SqlType("varchar", length)}) for length in (10, 1))
    world.db.enable_table(wide)
    world.commit(insert(wide, ("xx",)))
    world.agent.step(world.db)
    world.agent.hold()
    world.commit(TableAltered(wide, narrow, "ALTER"))
    world.agent.start()
    world.agent.release()
    world.until(lambda: bool(world.relation("dm_cdc_errors")))
    assert world.relation("dm_cdc_errors")[0]["error_number"] == 22976
    assert world.agent.capture_session(world.db) == 0


def test_detach(world: Watched) -> None:
    world.db.enable_table(T)
    world.agent.start()
    world.agent.detach(world.db)
    assert world.agent.sysjobs()[1].num_rows == 0
    assert world.db.runner is None


# The jobs' settings


def job_row(world: World, job_type: str) -> tuple[object, ...]:
    (row,) = (row for row in world.db.help_jobs()[1].to_pylist() if row["job_type"] == job_type)
    names = ("maxtrans", "maxscans", "continuous", "pollinginterval", "retention", "threshold")
    return tuple(row[name] for name in names)


def test_help_jobs_and_cdc_jobs() -> None:
    world = World()
    world.db.enable_table(T)
    columns, rows = world.db.help_jobs()
    assert [each.name for each in columns] == [
        "job_id", "job_type", "job_name", "maxtrans", "maxscans", "continuous", "pollinginterval", "retention",
        "threshold",
    ]  # fmt: skip
    assert [row["job_name"] for row in rows.to_pylist()] == ["cdc.shop_capture", "cdc.shop_cleanup"]
    assert job_row(world, "capture") == (500, 10, True, 5, 0, 0)
    assert job_row(world, "cleanup") == (0, 0, False, 0, 4320, 5000)
    columns, _ = world.db.relation("cdc_jobs")
    assert [each.name for each in columns] == [
        "database_id", "job_type", "job_id", "maxtrans", "maxscans", "continuous", "pollinginterval", "retention",
        "threshold",
    ]  # fmt: skip
    assert {row["database_id"] for row in world.relation("cdc_jobs")} == {5}


def test_defaults_of_another_version() -> None:
    world = World(Switches(default_maxtrans=10_000, default_threshold=4999))
    world.db.enable_table(T)
    assert job_row(world, "capture")[:2] == (10_000, 10)
    assert job_row(world, "cleanup")[4:] == (4320, 4999)


def test_add_job() -> None:
    world = World()
    assert refusal(world.db.add_job, "capture_all") == 22992
    world.db.add_job(" Capture ", Settings(maxtrans=7, continuous=0))
    assert job_row(world, "capture") == (7, 10, False, 0, 0, 0)
    assert refusal(world.db.add_job, "capture") == 22836
    # Enabling a table leaves the job that is there alone.
    world.db.enable_table(T)
    assert job_row(world, "capture")[0] == 7
    world.db.drop_job("cleanup")
    assert refusal(world.db.drop_job, "cleanup") == 22997
    assert refusal(world.db.change_job, "cleanup", Settings(retention=1)) == 22997


@pytest.mark.parametrize(
    ("job_type", "settings", "number"),
    [
        ("cleanup", Settings(maxtrans=1), 22996),
        ("cleanup", Settings(pollinginterval=1), 22996),
        ("capture", Settings(retention=1), 22995),
        ("capture", Settings(threshold=1), 22995),
        ("capture", Settings(continuous=2), 22998),
        ("capture", Settings(pollinginterval=-1), 22990),
        ("capture", Settings(pollinginterval=86_400), 22990),
        ("capture", Settings(maxtrans=0), 22991),
        ("capture", Settings(maxscans=0), 22970),
        ("cleanup", Settings(retention=0), 22994),
        ("cleanup", Settings(retention=52_594_801), 22994),
        ("cleanup", Settings(threshold=0), 22850),
    ],
)
def test_settings_that_are_refused(job_type: str, settings: Settings, number: int) -> None:
    world = World()
    assert refusal(world.db.add_job, job_type, settings) == number
    world.db.enable_table(T)
    before = job_row(world, job_type)
    assert refusal(world.db.change_job, job_type, settings) == number
    assert job_row(world, job_type) == before


def test_polling_and_continuous_go_together() -> None:
    world = World()
    world.db.enable_table(T)
    world.db.change_job("capture", Settings(continuous=0))
    assert job_row(world, "capture")[2:4] == (False, 0)
    world.db.change_job("capture", Settings(pollinginterval=30))
    assert job_row(world, "capture")[2:4] == (True, 30)
    world.db.change_job("capture", Settings(maxtrans=9))
    assert job_row(world, "capture") == (9, 10, True, 30, 0, 0)


def test_scan_procedure() -> None:
    world = World()
    world.db.enable_table(T)
    for i in range(7):
        world.commit(insert(T, (i,)))
    assert refusal(world.db.sp_cdc_scan, 0) == 22991
    assert refusal(world.db.sp_cdc_scan, 1, 0) == 22970
    assert refusal(world.db.sp_cdc_scan, 1, 1, 2) == 22998
    assert refusal(world.db.sp_cdc_scan, 1, 1, 0, 5) == 22999
    assert refusal(world.db.sp_cdc_scan, 1, 1, 1, 86_400) == 22990
    assert world.db.sp_cdc_scan(2, 2) == 4
    assert world.db.sp_cdc_scan() == 3
    assert [row["tran_count"] for row in world.relation("dm_cdc_log_scan_sessions")] == [7, 2, 2, 3]
