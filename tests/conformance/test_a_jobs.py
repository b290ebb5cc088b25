"""Sections A3.8 to A3.11 and A3.13: the capture and cleanup jobs, and the log scan by hand."""

from __future__ import annotations

import re

import pytest

from tests.support.conformance.client import Row
from tests.support.conformance.database import Database
from tests.support.conformance.servers import Server, wait_for

_SETTINGS = "maxtrans, maxscans, continuous, pollinginterval, retention, threshold"


def _settings(db: Database, job_type: str) -> Row:
    rows = db.run(f"SELECT {_SETTINGS} FROM msdb.dbo.cdc_jobs WHERE database_id = DB_ID() AND job_type = '{job_type}'")
    assert len(rows) == 1
    return rows[0]


def _drop_jobs(db: Database) -> None:
    db.run("EXEC sys.sp_cdc_drop_job 'capture'")
    db.run("EXEC sys.sp_cdc_drop_job 'cleanup'")


def test_46_help_jobs_and_defaults(t: Database) -> None:
    result = t.sets("EXEC sys.sp_cdc_help_jobs")[-1]
    assert result.names == ["job_id", "job_type", "job_name", *_SETTINGS.split(", ")]
    captures = {"15": [500], "16": [500]}.get(str(t.major()), [10000, 500])
    thresholds = {"15": [5000], "16": [5000]}.get(str(t.major()), [4999, 5000])
    rows = {row[1]: row for row in result.rows}
    assert len(result.rows) == 2
    assert rows["capture"][2] == f"cdc.{t.name}_capture"
    assert rows["capture"][3] in captures
    assert rows["capture"][4:] == (10, True, 5, 0, 0)
    assert rows["cleanup"][2:8] == (f"cdc.{t.name}_cleanup", 0, 0, False, 0, 4320)
    assert rows["cleanup"][8] in thresholds


def test_63_cdc_jobs_and_sysjobs_agree_with_help_jobs(t: Database) -> None:
    helped = t.run("EXEC sys.sp_cdc_help_jobs")
    jobs = t.run(
        f"SELECT j.job_id, c.job_type, j.name, {_SETTINGS} FROM msdb.dbo.cdc_jobs AS c"
        " JOIN msdb.dbo.sysjobs AS j ON j.job_id = c.job_id WHERE c.database_id = DB_ID()"
    )
    assert sorted(jobs, key=lambda row: row[1]) == sorted(helped, key=lambda row: row[1])


@pytest.mark.parametrize(
    ("arguments", "job_type", "wanted"),
    [
        ("'capture', @start_job = 0, @maxtrans = 7, @maxscans = 3", "capture", (7, 3, True, 5, 0, 0)),
        ("'capture', @start_job = 0, @maxtrans = 7, @continuous = 0", "capture", (7, 10, False, 0, 0, 0)),
        ("'  CAPTURE ', 0, 7, 3, 1, 86399", "capture", (7, 3, True, 86399, 0, 0)),
        ("'Cleanup', 0, @retention = 52594800, @threshold = 1", "cleanup", (0, 0, False, 0, 52594800, 1)),
        ("'cleanup', 0, @retention = 1, @threshold = 9", "cleanup", (0, 0, False, 0, 1, 9)),
    ],
)
def test_46_add_job(t: Database, arguments: str, job_type: str, wanted: Row) -> None:
    _drop_jobs(t)
    t.run(f"EXEC sys.sp_cdc_add_job {arguments}")
    assert _settings(t, job_type) == wanted


_REFUSED = [
    ("'capture', @retention = 5", 22995),
    ("'capture', @threshold = 5", 22995),
    ("'cleanup', @maxtrans = 5", 22996),
    ("'cleanup', @maxscans = 5", 22996),
    ("'cleanup', @continuous = 1", 22996),
    ("'cleanup', @pollinginterval = 5", 22996),
    ("'capture', @pollinginterval = -1", 22990),
    ("'capture', @pollinginterval = 86400", 22990),
    ("'cleanup', @retention = 0", 22994),
    ("'cleanup', @retention = -1", 22994),
    ("'cleanup', @retention = 52594801", 22994),
    ("'cleanup', @threshold = 0", 22850),
    ("'capture', @maxtrans = 0", 22991),
    ("'capture', @maxscans = 0", 22970),
    ("'nonsense'", 22992),
]


@pytest.mark.parametrize(("arguments", "number"), _REFUSED)
def test_47_add_job_refuses(t: Database, arguments: str, number: int) -> None:
    _drop_jobs(t)
    error = t.error(f"EXEC sys.sp_cdc_add_job {arguments}")
    assert (error.number, error.severity) == (number, 16)
    assert number != 22992 or "nonsense" in error.text
    assert t.run("EXEC sys.sp_cdc_help_jobs") == []


@pytest.mark.parametrize(("arguments", "number"), _REFUSED)
def test_47_change_job_refuses(t: Database, arguments: str, number: int) -> None:
    before = t.run("EXEC sys.sp_cdc_help_jobs")
    assert t.number(f"EXEC sys.sp_cdc_change_job {arguments}") == number
    assert t.run("EXEC sys.sp_cdc_help_jobs") == before


def test_46_add_job_that_exists_memory_open(t: Database) -> None:
    before = t.run("EXEC sys.sp_cdc_help_jobs")
    # which number is not known for certain
    assert t.error("EXEC sys.sp_cdc_add_job 'capture'").severity >= 16
    assert t.run("EXEC sys.sp_cdc_help_jobs") == before


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ("@maxtrans = 7", (7, 10, True, 5, 0, 0)),
        ("'capture', @maxscans = 3, @pollinginterval = 60", (500, 3, True, 60, 0, 0)),
        ("@continuous = 0", (500, 10, False, 0, 0, 0)),
        ("@continuous = 0, @pollinginterval = 5", (500, 10, False, 0, 0, 0)),
    ],
)
def test_47_change_job(t: Database, arguments: str, wanted: Row) -> None:
    t.run("EXEC sys.sp_cdc_change_job @maxtrans = 500")
    t.run(f"EXEC sys.sp_cdc_change_job {arguments}")
    assert _settings(t, "capture") == wanted


def test_47_polling_makes_a_job_continuous_again(t: Database) -> None:
    t.run("EXEC sys.sp_cdc_change_job @maxtrans = 500, @continuous = 0")
    t.run("EXEC sys.sp_cdc_change_job @pollinginterval = 9")
    assert _settings(t, "capture") == (500, 10, True, 9, 0, 0)


def test_47_change_of_cleanup(t: Database) -> None:
    t.run("EXEC sys.sp_cdc_change_job 'cleanup', @retention = 60, @threshold = 11")
    t.run("EXEC sys.sp_cdc_change_job 'cleanup', @threshold = 12")
    assert _settings(t, "cleanup") == (0, 0, False, 0, 60, 12)


@pytest.mark.parametrize("job_type", ["capture", "cleanup"])
def test_47_job_that_is_gone(t: Database, job_type: str) -> None:
    t.run(f"EXEC sys.sp_cdc_drop_job '{job_type}'")
    for call in (f"sp_cdc_drop_job '{job_type}'", f"sp_cdc_change_job '{job_type}'"):
        error = t.error(f"EXEC sys.{call}")
        assert (error.number, error.severity) == (22997, 16)
        assert job_type in error.text
    left = {"capture": "cleanup", "cleanup": "capture"}[job_type]
    assert [row[1] for row in t.run("EXEC sys.sp_cdc_help_jobs")] == [left]
    assert t.run(f"SELECT name FROM msdb.dbo.sysjobs WHERE name LIKE 'cdc.{t.name}%'") == [(f"cdc.{t.name}_{left}",)]


@pytest.mark.parametrize(
    "call", ["sp_cdc_drop_job 'x'", "sp_cdc_change_job 'x'", "sp_cdc_start_job 'x'", "sp_cdc_stop_job 'x'"]
)
def test_47_unknown_job_type(t: Database, call: str) -> None:
    assert t.number(f"EXEC sys.{call}") == 22992


def test_a3_11_stopping_and_starting_are_told(t: Database) -> None:
    assert t.notes("EXEC sys.sp_cdc_stop_job") == [f"Job 'cdc.{t.name}_capture' stopped successfully."]
    wait_for(lambda: not t.job_runs())
    assert t.notes("EXEC sys.sp_cdc_start_job") == [f"Job 'cdc.{t.name}_capture' started successfully."]
    assert t.notes("EXEC sys.sp_cdc_start_job 'cleanup'") == [f"Job 'cdc.{t.name}_cleanup' started successfully."]


def test_a3_11_stopping_an_idle_job_memory(t: Database) -> None:
    t.stop_capture()
    wait_for(lambda: not t.job_runs())
    assert t.number("EXEC sys.sp_cdc_stop_job") == 22022


def test_63_job_activity_follows_the_job(t: Database) -> None:
    wait_for(lambda: t.job_runs())
    t.stop_capture()
    wait_for(lambda: not t.job_runs())
    t.run("EXEC sys.sp_cdc_start_job")
    wait_for(lambda: t.job_runs())


def test_63_activity_of_a_stopped_agent(server: Server, t: Database) -> None:
    embedded = server.only_embedded("its Agent cannot be stopped by a statement")
    with embedded.agent_stopped():
        assert not t.job_runs()
        assert t.number("EXEC sys.sp_cdc_start_job") == 22022
    assert t.job_runs()


def _inserts(*ids: int) -> str:
    return " ".join(f"INSERT INTO dbo.t VALUES ({i}, 'x', 1)" for i in ids)


def test_47_changes_take_effect_when_the_job_starts_again(t: Database) -> None:
    sessions = "SELECT tran_count FROM sys.dm_cdc_log_scan_sessions WHERE session_id > 0 AND tran_count > 0"
    t.run("EXEC sys.sp_cdc_change_job @maxtrans = 1, @maxscans = 1")
    t.run(_inserts(1, 2, 3))
    with t.server.at_large():
        wait_for(lambda: len(t.changes()) == 3)
    assert t.run(sessions) == [(3,)]
    t.stop_capture()
    wait_for(lambda: not t.job_runs())
    t.run(_inserts(4, 5, 6))
    t.run("EXEC sys.sp_cdc_start_job")
    with t.server.at_large():
        wait_for(lambda: len(t.changes()) == 6)
    assert sorted(t.run(sessions)) == [(1,), (1,), (1,), (3,)]


def test_14_stopped_job_delivers_nothing_and_loses_nothing(t: Database) -> None:
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    t.stop_capture()
    wait_for(lambda: not t.job_runs())
    newest = t.max_lsn()
    t.run("INSERT INTO dbo.t VALUES (2, 'y', 2)")
    t.run("UPDATE dbo.t SET b = 9 WHERE id = 1")
    assert (t.max_lsn(), len(t.changes())) == (newest, 1)
    t.run("EXEC sys.sp_cdc_start_job")
    t.capture()
    assert t.changes("__$operation, id, a, b") == [
        (2, 1, "x", 1),
        (2, 2, "y", 2),
        (3, 1, "x", 1),
        (4, 1, "x", 9),
    ]
    assert t.max_lsn() > newest


def test_15_scan_by_hand_captures_at_once(t: Database) -> None:
    t.stop_capture()
    t.run("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    t.scan()
    assert t.changes("__$operation, id, a, b") == [(2, 1, "x", 1)]


def test_15_scan_by_hand_needs_no_agent(server: Server, t: Database) -> None:
    with server.only_embedded("its Agent cannot be stopped by a statement").agent_stopped():
        t.run("INSERT INTO dbo.t VALUES (1, 'x', 1)")
        assert t.changes() == []
        t.run("EXEC sys.sp_cdc_scan")
        assert t.changes("__$operation, id, a, b") == [(2, 1, "x", 1)]


def test_15_scan_ends_after_maxscans(t: Database) -> None:
    t.stop_capture()
    t.scan()
    for i in range(5):
        t.run(f"INSERT INTO dbo.t VALUES ({i}, 'x', 1)")
    t.scan("@maxtrans = 1, @maxscans = 2")
    assert t.changes("id") == [(0,), (1,)]
    t.scan("@maxtrans = 2, @maxscans = 1")
    assert t.changes("id") == [(0,), (1,), (2,), (3,)]
    t.scan()
    assert t.changes("id") == [(0,), (1,), (2,), (3,), (4,)]


@pytest.mark.parametrize(
    ("arguments", "number"),
    [
        ("@continuous = 2", 22998),
        ("@pollinginterval = 5", 22999),
        ("@continuous = 1, @pollinginterval = -1", 22990),
        ("@continuous = 1, @pollinginterval = 86400", 22990),
        ("@maxtrans = 0", 22991),
        ("@maxscans = 0", 22970),
    ],
)
def test_a3_13_scan_refuses(t: Database, arguments: str, number: int) -> None:
    assert t.number(f"EXEC sys.sp_cdc_scan {arguments}") == number


def test_50_one_log_scan_at_a_time(t: Database) -> None:
    wait_for(lambda: t.job_runs())
    error = t.error("EXEC sys.sp_cdc_scan")
    assert (error.number, error.severity) == (22903, 16)
    sessions = {number for (number,) in t.run("SELECT session_id FROM sys.dm_exec_sessions WHERE session_id <> @@SPID")}
    assert sessions & set(map(int, re.findall(r"\d+", error.text)))


def test_81_agent_that_does_not_run_is_only_told(server: Server, db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    with server.only_embedded("its Agent cannot be stopped by a statement").agent_stopped():
        notes = db.notes("EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL, @supports_net_changes = 0")
        assert notes
        assert all("not running" in note for note in notes)
        assert db.run("SELECT capture_instance FROM cdc.change_tables") == [("dbo_t",)]
        assert len(db.run("EXEC sys.sp_cdc_help_jobs")) == 2
