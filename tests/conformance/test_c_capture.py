"""Section C: when changes become visible, and what happens when a scan fails."""

from __future__ import annotations

import pytest

from tests.support.conformance.client import SqlServerError
from tests.support.conformance.database import Database
from tests.support.conformance.servers import Server


def test_14_commit_is_invisible_until_a_scan(server: Server, t: Database) -> None:
    embedded = server.only_embedded("its capture cannot be held")
    t.run("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    assert (t.changes(), t.mapping(), t.max_lsn()) == ([], [], None)
    assert t.run("SELECT id FROM dbo.t") == [(1,)]
    embedded.capture(t.name, t)
    assert t.changes("__$operation, id, a, b") == [(2, 1, "x", 1)]
    assert t.max_lsn() == t.commits()[0]


def test_14_open_transaction_is_captured_when_it_commits(t: Database) -> None:
    writer = t.connect()
    writer.run("BEGIN TRAN INSERT INTO dbo.t VALUES (1, 'x', 1)")
    t.capture()
    assert t.changes() == []
    writer.run("UPDATE dbo.t SET b = 2 COMMIT")
    t.capture()
    assert t.changes("__$operation, b") == [(2, 1), (3, 1), (4, 2)]


def test_c_changes_before_enabling_are_not_captured(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY, a int)")
    db.run("INSERT INTO dbo.t VALUES (1, 1)")
    db.track("t")
    db.commit("UPDATE dbo.t SET a = 2")
    assert db.changes("__$operation, id, a") == [(3, 1, 1), (4, 1, 2)]


@pytest.fixture
def stuck(t: Database) -> Database:
    """A column became narrower than a value that is still in its change table."""
    t.run("CREATE TABLE dbo.u (id int PRIMARY KEY)")
    t.track("u")
    t.commit(
        "INSERT INTO dbo.t VALUES (1, 'much wider', 1)",
        "UPDATE dbo.t SET a = 'abc'",
        "UPDATE dbo.t SET b = 2",
    )
    t.stop_capture()
    t.scan()
    t.run("ALTER TABLE dbo.t ALTER COLUMN a varchar(3)")
    t.run("INSERT INTO dbo.t VALUES (2, 'def', 3)")
    t.run("INSERT INTO dbo.u VALUES (1)")
    return t


def test_51_failed_scan_delivers_nothing_and_holds_up_what_follows(stuck: Database) -> None:
    before = stuck.changes(), stuck.mapping()
    for _ in range(2):
        with pytest.raises(SqlServerError) as failed:
            stuck.scan()
        assert failed.value.severity >= 16
        assert (stuck.changes(), stuck.mapping()) == before
        assert stuck.changes(instance="dbo_u") == []
        assert stuck.run("SELECT * FROM cdc.ddl_history") == []
    errors = stuck.run("SELECT error_number, error_severity, error_message, session_id FROM sys.dm_cdc_errors")
    assert 22976 in {number for number, _, _, _ in errors}
    assert all(text and session > 0 and severity > 10 for _, severity, text, session in errors)


def test_51_repaired_scan_delivers_everything(stuck: Database) -> None:
    with pytest.raises(SqlServerError):
        stuck.scan()
    # the last update's images are narrow; cleaning up to it removes the wide ones
    stuck.run("DECLARE @mark binary(10) = sys.fn_cdc_get_max_lsn() EXEC sys.sp_cdc_cleanup_change_table 'dbo_t', @mark")
    stuck.scan()
    assert stuck.changes("__$operation, id, a, b") == [
        (3, 1, "abc", 1),
        (4, 1, "abc", 2),
        (2, 2, "def", 3),
    ]
    assert stuck.changes("__$operation, id", "dbo_u") == [(2, 1)]
    assert stuck.run("SELECT required_column_update FROM cdc.ddl_history") == [(True,)]


def test_c_stopped_agent_delays_and_loses_nothing(server: Server, t: Database) -> None:
    embedded = server.only_embedded("its Agent cannot be stopped by a statement")
    with embedded.agent_stopped():
        t.run("INSERT INTO dbo.t VALUES (1, 'x', 1)")
        t.run("CREATE TABLE dbo.u (id int PRIMARY KEY)")
        t.track("u")
        t.run("BEGIN TRAN INSERT INTO dbo.u VALUES (1) UPDATE dbo.t SET b = 2 COMMIT")
        assert (t.changes(), t.changes(instance="dbo_u"), t.max_lsn()) == ([], [], None)
    t.capture()
    assert t.changes("__$operation, id, b") == [(2, 1, 1), (3, 1, 1), (4, 1, 2)]
    assert t.changes("__$operation, id", "dbo_u") == [(2, 1)]
    assert t.commits()[1:] == t.commits("dbo_u")


def test_c_large_transaction_is_captured_whole(t: Database) -> None:
    t.run("EXEC sys.sp_cdc_change_job @maxtrans = 1, @maxscans = 1")
    rows = ", ".join(f"({i}, 'x', {i})" for i in range(1000))
    t.commit(f"BEGIN TRAN INSERT INTO dbo.t VALUES {rows} UPDATE dbo.t SET b = -b WHERE id >= 500 COMMIT")
    assert len(t.commits()) == 1
    assert t.changes("__$operation, __$command_id, id, b") == [
        *((2, i + 1, i, i) for i in range(1000)),
        *((op, 501 + i, i, i if op == 3 else -i) for i in range(500, 1000) for op in (3, 4)),
    ]
