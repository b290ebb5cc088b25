"""Cleanup of Change Tracking: what goes, in which order, and who sees it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_mssql_cdc.sandbox import Sandbox
from airflow_provider_mssql_cdc.sandbox.engine.harshness import Point
from tests.sandbox.tracking.conftest import TRACK, marks, net
from tests.sandbox.tsql.conftest import Client

_COMMITS = "SELECT commit_ts, commit_time FROM sys.dm_tran_commit_table ORDER BY commit_ts"


@pytest.fixture
def aged(server: Sandbox, client: Client) -> Client:
    """Three versions, a day apart, of which the last one is a day old."""
    for number in range(1, 4):
        server.set_time(dt.datetime(2026, 3, number, 12))
        client.run(f"INSERT INTO dbo.t VALUES ({number}, 0)")
    server.set_time(dt.datetime(2026, 3, 4, 11))
    return client


def test_what_is_older_than_the_retention_goes(server: Sandbox, aged: Client) -> None:
    assert (marks(aged), net(aged)) == ((3, 0, 0, 0), [(1, "I", 1), (2, "I", 2), (3, "I", 3)])
    server.clean_tracking()
    assert (marks(aged), net(aged, 0)) == ((3, 0, 1, 1), [(2, "I", 2), (3, "I", 3)])
    assert aged.run(_COMMITS) == [(2, dt.datetime(2026, 3, 2, 12)), (3, dt.datetime(2026, 3, 3, 12))]
    assert aged.run("SELECT max_cleanup_version FROM sys.change_tracking_databases") == [(1,)]
    server.clean_tracking()
    assert marks(aged) == (3, 0, 1, 1)
    assert aged.run("SELECT id, a FROM dbo.t ORDER BY id") == [(1, 0), (2, 0), (3, 0)]


def test_the_newest_version_is_told_when_all_are_gone(server: Sandbox, aged: Client) -> None:
    server.set_time(dt.datetime(2026, 4, 1))
    server.clean_tracking()
    assert (marks(aged), net(aged, 0)) == ((3, 0, 3, 3), [])
    aged.run("UPDATE dbo.t SET a = 1 WHERE id = 2")
    assert (marks(aged), net(aged, 3)) == ((4, 0, 3, 3), [(4, "U", 2)])


@pytest.mark.parametrize(
    ("options", "lowest"),
    [
        ("AUTO_CLEANUP = OFF", 0),
        ("CHANGE_RETENTION = 1 DAYS", 2),
        ("CHANGE_RETENTION = 71 HOURS", 0),
        ("CHANGE_RETENTION = 70 HOURS", 1),
        ("CHANGE_RETENTION = 1 MINUTES", 3),
    ],
)
def test_options_count(server: Sandbox, aged: Client, options: str, lowest: int) -> None:
    aged.run(f"ALTER DATABASE shop SET CHANGE_TRACKING ({options})")
    server.clean_tracking()
    assert (marks(aged)[3], [row[0] for row in net(aged)]) == (lowest, list(range(lowest + 1, 4)))


def test_marks_move_before_rows_go(server: Sandbox, aged: Client) -> None:
    seen: list[Any] = []
    server.clean_tracking(between=lambda: seen.append((marks(aged)[3], [row[0] for row in net(aged)])))
    assert seen == [(1, [1, 2, 3]), (1, [2, 3])]


def test_a_snapshot_transaction_keeps_what_it_sees(
    server: Sandbox, aged: Client, connect: Callable[..., Client]
) -> None:
    reader = connect()
    reader.run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT BEGIN TRAN SELECT CHANGE_TRACKING_CURRENT_VERSION()")
    server.clean_tracking()
    assert net(reader) == [(1, "I", 1), (2, "I", 2), (3, "I", 3)]
    reader.run("COMMIT")
    assert net(reader) == [(2, "I", 2), (3, "I", 3)]


def test_rows_of_a_table_that_is_written_to_wait(server: Sandbox, aged: Client, connect: Callable[..., Client]) -> None:
    writer = connect()
    writer.run("BEGIN TRAN UPDATE dbo.t SET a = 5 WHERE id = 3")
    server.clean_tracking()
    assert (marks(aged)[3], net(aged, 0)) == (1, [(1, "I", 1), (2, "I", 2), (3, "I", 3)])
    writer.run("TRUNCATE TABLE dbo.t COMMIT")
    server.clean_tracking()
    assert (marks(aged), net(aged)) == ((4, 3, 1, 3), [])
    noted = aged.run(
        "SELECT internal_table_name, table_name, rows_cleaned_up, cleanup_version, comments"
        " FROM dbo.MSchange_tracking_history"
    )
    side = aged.run("SELECT name FROM sys.internal_tables")[0][0]
    assert noted == [
        (side, "t", 0, 1, "Cleanup error: Lock request time out period exceeded."),
    ]


def test_cleanup_by_hand(aged: Client) -> None:
    aged.run("ALTER DATABASE shop SET CHANGE_TRACKING (AUTO_CLEANUP = OFF)")
    aged.run("CREATE TABLE dbo.u (id int PRIMARY KEY) ALTER TABLE dbo.u ENABLE CHANGE_TRACKING")
    call = "DECLARE @n bigint EXEC sys.sp_flush_CT_internal_table_on_demand {}@DeletedRowCount = @n OUTPUT SELECT @n"
    assert aged.run(call.format("'dbo.t', ")) == [(1,)]
    side = aged.run("SELECT name FROM sys.internal_tables WHERE parent_id = OBJECT_ID('dbo.t')")[0][0]
    aged.sets("EXEC sys.sp_flush_CT_internal_table_on_demand '[dbo].[t]'")
    assert [message.text for message in aged.messages] == [
        "Cleanup Watermark = 1",
        f"Internal Change Tracking table name : {side}",
        "Total rows deleted: 0.",
    ]
    assert [row[0] for row in net(aged)] == [2, 3]
    assert [row[0] for row in aged.run(_COMMITS)] == [1, 2, 3]
    assert aged.run(call.format("")) == [(0,)]
    assert [row[0] for row in aged.run(_COMMITS)] == [2, 3]
    aged.run("CREATE TABLE dbo.plain (id int PRIMARY KEY)")
    assert aged.error("EXEC sys.sp_flush_CT_internal_table_on_demand 'dbo.plain'") == 22105


def test_a_table_that_is_tracked_anew_forgets_the_marks(server: Sandbox, aged: Client) -> None:
    side = "SELECT object_id, create_date FROM sys.internal_tables WHERE internal_type = 209"
    server.clean_tracking()
    before = aged.run(side)
    aged.run(f"ALTER TABLE dbo.t DISABLE CHANGE_TRACKING {TRACK}")
    after = aged.run(side)
    assert (marks(aged), net(aged)) == ((3, 3, 0, 3), [])
    assert len(before) == len(after) == 1
    assert before[0][0] != after[0][0]
    assert before[0][1] < after[0][1]


def test_a_harsh_server_cleans_between_two_reads() -> None:
    clock, found = [dt.datetime(2026, 3, 1)], set()
    for seed in range(8):
        with Sandbox(harsh=[Point.STEP], seed=seed, clock=lambda: clock[0], agent_running=False) as server:
            server.execute("ALTER DATABASE shop SET CHANGE_TRACKING = ON")
            server.execute(f"CREATE TABLE dbo.t (id int PRIMARY KEY) {TRACK} INSERT INTO dbo.t VALUES (1)")
            clock[0] += dt.timedelta(days=3)
            low, rows = server.execute(
                "SELECT min_valid_version FROM sys.change_tracking_tables\n"
                "SELECT id FROM CHANGETABLE(CHANGES dbo.t, 0) AS c"
            )
            found.add((low.column(0)[0].as_py(), rows.num_rows))
    assert found == {(0, 1), (0, 0), (1, 0)}
