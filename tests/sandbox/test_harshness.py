"""What a harsh server may do, beside a kind one: the same rows in another order, drawn again by the same seed."""

from __future__ import annotations

import dataclasses
import datetime
import threading
from collections.abc import Iterator

import pytest

from airflow_provider_mssql_cdc.sandbox.engine.harshness import Harshness, Point
from airflow_provider_mssql_cdc.sandbox.fixtures import mssql_sandbox  # noqa: F401
from airflow_provider_mssql_cdc.sandbox.server import Sandbox

ROWS = 500


@pytest.fixture(scope="module")
def kind() -> Iterator[Sandbox]:
    with Sandbox(agent_running=False) as server:
        yield filled(server)


@pytest.fixture(scope="module")
def harsh() -> Iterator[Sandbox]:
    with Sandbox(agent_running=False, harsh=[Point.ORDER], seed=7) as server:
        yield filled(server)


def filled(server: Sandbox) -> Sandbox:
    server.execute(
        "CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, half int NOT NULL, name varchar(20) NOT NULL)"
        " EXEC sys.sp_cdc_enable_db EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL"
    )
    for first in range(0, ROWS, 100):
        rows = ", ".join(f"({i}, {i // 2}, 'n{i}')" for i in range(first, first + 100))
        server.execute(f"INSERT INTO dbo.t VALUES {rows}")
    server.step()
    return server


def rows_of(server: Sandbox, sql: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in server.execute(sql)[-1].to_pylist()]


NOT_ORDERED = (
    "SELECT id, name FROM dbo.t",
    "SELECT id FROM dbo.t WHERE id > 100",
    "SELECT [__$start_lsn], [__$seqval], id FROM cdc.dbo_t_CT",
    "SELECT a.id, b.name FROM dbo.t a JOIN cdc.dbo_t_CT b ON b.id = a.id",
    "SELECT id FROM dbo.t UNION ALL SELECT half FROM dbo.t",
    "SELECT half, COUNT(*) AS n FROM dbo.t GROUP BY half",
    "SELECT DISTINCT half FROM dbo.t",
    "SELECT * FROM (SELECT id FROM dbo.t) AS d",
)


@pytest.mark.parametrize("sql", NOT_ORDERED)
def test_the_same_rows_in_an_order_of_their_own(kind: Sandbox, harsh: Sandbox, sql: str) -> None:
    expected = sorted(rows_of(kind, sql))
    found = [rows_of(harsh, sql) for _ in range(10)]
    assert all(sorted(rows) == expected for rows in found)
    assert len({tuple(rows) for rows in found}) > 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, name FROM dbo.t ORDER BY id DESC",
        "SELECT id FROM cdc.dbo_t_CT ORDER BY [__$start_lsn], [__$command_id], [__$seqval], [__$operation]",
        "SELECT TOP (5) id FROM dbo.t ORDER BY id",
        "SELECT id FROM dbo.t UNION ALL SELECT id FROM dbo.t ORDER BY id",
        "SELECT STRING_AGG(name, ',') WITHIN GROUP (ORDER BY id) AS names FROM dbo.t",
        "SELECT id FROM dbo.t ORDER BY id OFFSET 10 ROWS FETCH NEXT 5 ROWS ONLY",
    ],
)
def test_what_is_ordered_stays_so(kind: Sandbox, harsh: Sandbox, sql: str) -> None:
    expected = rows_of(kind, sql)
    assert all(rows_of(harsh, sql) == expected for _ in range(10))


def test_rows_of_equal_keys_come_in_any_order(harsh: Sandbox) -> None:
    found = [rows_of(harsh, "SELECT half, id FROM dbo.t ORDER BY half") for _ in range(10)]
    assert all([half for half, _ in rows] == [n // 2 for n in range(ROWS)] for rows in found)
    assert len({tuple(rows) for rows in found}) > 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT TOP (1) id FROM dbo.t",
        "SELECT TOP (1) id FROM cdc.dbo_t_CT",
        "SELECT TOP (1) id FROM cdc.dbo_t_CT ORDER BY [__$start_lsn]",
        "SELECT TOP (1) half, id FROM dbo.t ORDER BY half",
        "SELECT STRING_AGG(name, ',') AS names FROM dbo.t",
        "DECLARE @id int SELECT @id = id FROM dbo.t SELECT @id AS id",
        "DECLARE @all varchar(max) = '' SELECT @all = @all + name FROM dbo.t WHERE id < 5 SELECT @all AS names",
    ],
)
def test_which_rows_are_the_first_or_the_last_is_not_said(harsh: Sandbox, sql: str) -> None:
    # half of the statements are not mixed, and of two rows the first is so in half of the others
    assert len({tuple(rows_of(harsh, sql)) for _ in range(60)}) > 1


def test_the_same_seed_draws_the_same(harsh: Sandbox) -> None:
    def drawn() -> list[list[tuple[object, ...]]]:
        harsh.harshness.begin("a test")
        return [rows_of(harsh, sql) for sql in NOT_ORDERED]

    assert drawn() == drawn()
    others = drawn()
    harsh.harshness.begin("another test")
    assert [rows_of(harsh, sql) for sql in NOT_ORDERED] != others


def test_draws_of_a_point_do_not_depend_on_its_neighbours() -> None:
    alone, beside = (Harshness(3, tuple(Point)) for _ in range(2))
    for point in Point:
        if point is not Point.ORDER:
            beside.strikes(point)
    assert [alone.strikes(Point.ORDER) for _ in range(50)] == [beside.strikes(Point.ORDER) for _ in range(50)]


def change_rows(server: Sandbox) -> list[tuple[object, ...]]:
    return rows_of(server, "SELECT [__$operation], id FROM cdc.dbo_t_CT WHERE id >= 1000 ORDER BY id, [__$operation]")


def test_a_commit_is_captured_before_its_rows_are_seen(mssql_sandbox: Sandbox) -> None:  # noqa: F811
    filled(mssql_sandbox)
    mssql_sandbox.execute("CREATE TABLE dbo.other (id int)")
    before = rows_of(mssql_sandbox, "SELECT * FROM dbo.t ORDER BY id")
    mssql_sandbox.visibility.hold()
    writer = threading.Thread(target=mssql_sandbox.execute, args=("INSERT INTO dbo.t VALUES (1000, 500, 'late')",))
    writer.start()
    while not mssql_sandbox.step():
        pass
    newest = "SELECT sys.fn_cdc_get_max_lsn() AS high, MAX([__$start_lsn]) AS captured FROM cdc.dbo_t_CT"
    ((high, captured),) = rows_of(mssql_sandbox, newest)
    assert high == captured
    assert change_rows(mssql_sandbox) == [(2, 1000)]
    assert rows_of(mssql_sandbox, "SELECT * FROM dbo.t ORDER BY id") == before
    # others go on meanwhile, and are seen first
    mssql_sandbox.execute("INSERT INTO dbo.other VALUES (1)")
    assert rows_of(mssql_sandbox, "SELECT id FROM dbo.other") == [(1,)]
    mssql_sandbox.visibility.release()
    writer.join()
    assert rows_of(mssql_sandbox, "SELECT * FROM dbo.t ORDER BY id") == [*before, (1000, 500, "late")]


def test_commits_that_are_seen_late_are_all_there_in_the_end() -> None:
    with Sandbox(harsh=[Point.COMMIT], seed=5, clock_rate=100, capture_interval=None) as server:
        for name in ("a", "b"):
            server.execute(f"CREATE TABLE dbo.{name} (id int PRIMARY KEY, v int)")
        server.execute("EXEC sys.sp_cdc_enable_db")
        for name in ("a", "b"):
            server.execute(f"EXEC sys.sp_cdc_enable_table 'dbo', '{name}', @role_name = NULL")

        def write(name: str) -> None:
            for i in range(60):
                server.execute(f"INSERT INTO dbo.{name} VALUES ({i}, 0)")
                if i % 3 == 0:
                    server.execute(f"UPDATE dbo.{name} SET v = v + 1 WHERE id <= {i}")

        writers = [threading.Thread(target=write, args=(name,)) for name in ("a", "b")]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        server.step()
        expected = [(i, 20 - (i + 2) // 3) for i in range(60)]
        for name in ("a", "b"):
            assert rows_of(server, f"SELECT id, v FROM dbo.{name} ORDER BY id") == expected
            after = (
                "SELECT id, v FROM (SELECT id, v, ROW_NUMBER() OVER (PARTITION BY id ORDER BY [__$start_lsn] DESC) AS n"
                f" FROM cdc.dbo_{name}_CT WHERE [__$operation] IN (2, 4)) AS r WHERE n = 1 ORDER BY id"
            )
            assert rows_of(server, after) == expected


def test_a_fast_clock_takes_the_jobs_along() -> None:
    with Sandbox(clock_rate=200, capture_interval=None) as server:
        server.execute(
            "CREATE TABLE dbo.s (i int PRIMARY KEY) EXEC sys.sp_cdc_enable_db"
            " EXEC sys.sp_cdc_enable_table 'dbo', 's', @role_name = NULL"
        )
        started = server.execute("SELECT GETDATE() AS now")[0].to_pylist()[0]["now"]
        server.execute("INSERT INTO dbo.s VALUES (1)")
        while not server.execute("SELECT * FROM cdc.dbo_s_CT")[0].num_rows:
            pass
        # dummy rows come five minutes of that clock after the last commit
        while len(server.execute("SELECT * FROM cdc.lsn_time_mapping")[0]) < 3:
            pass
        now = server.execute("SELECT GETDATE() AS now")[0].to_pylist()[0]["now"]
        assert now - started > datetime.timedelta(minutes=5)


def test_a_backlog_takes_a_polling_interval_for_each_cycle() -> None:
    with Sandbox(clock_rate=50, capture_interval=None, agent_running=False) as server:
        server.execute(
            "CREATE TABLE dbo.s (i int PRIMARY KEY) EXEC sys.sp_cdc_enable_db"
            " EXEC sys.sp_cdc_enable_table 'dbo', 's', @role_name = NULL"
            " EXEC sys.sp_cdc_change_job 'capture', @maxtrans = 5, @maxscans = 2, @pollinginterval = 5"
        )
        for i in range(60):
            server.execute(f"INSERT INTO dbo.s VALUES ({i})")
        server.capture.start()
        while server.execute("SELECT * FROM cdc.dbo_s_CT")[0].num_rows < 60:
            pass
        times = (
            "SELECT MIN(start_time) AS a, MAX(start_time) AS b FROM sys.dm_cdc_log_scan_sessions WHERE tran_count > 0"
        )
        ((first, last),) = rows_of(server, f"{times} AND session_id > 0")
        # six cycles of ten transactions: five intervals of five seconds by the server's clock
        assert last - first >= datetime.timedelta(seconds=25)  # type: ignore[operator]


@pytest.mark.parametrize("count", [True, False])
def test_scans_that_are_held_back_deliver_nothing(mssql_sandbox: Sandbox, count: bool) -> None:  # noqa: F811
    server = filled(mssql_sandbox)
    server.cdc().switches = dataclasses.replace(server.cdc().switches, held_back_scans_are_empty=count)
    empty = "SELECT empty_scan_count FROM sys.dm_cdc_log_scan_sessions WHERE session_id = 0"
    replica = "SELECT replica_id FROM sys.databases WHERE name = 'shop'"
    server.step()
    assert rows_of(server, replica) == [(None,)]
    server.cdc().hold_back()
    server.execute("INSERT INTO dbo.t VALUES (1000, 500, 'x')")
    (before,) = rows_of(server, empty)
    newest = server.cdc().max_lsn()
    assert server.step() == 0
    assert change_rows(server) == []
    assert server.cdc().max_lsn() == newest
    assert rows_of(server, empty) == [(before[0] + count,)]  # type: ignore[operator]
    ((found,),) = rows_of(server, replica)
    assert found is not None
    server.cdc().deliver()
    assert server.step() == 1
    assert change_rows(server) == [(2, 1000)]


def test_nothing_is_mapped_before_something_is_captured_or_minutes_are_over() -> None:
    clock = [datetime.datetime(2026, 1, 1, 12)]
    with Sandbox(harsh=[Point.QUIET], seed=1, clock=lambda: clock[0], agent_running=False) as server:
        server.execute("EXEC sys.sp_cdc_enable_db")
        found = []
        for minutes in (0, 4, 5, 9, 10):
            clock[0] = datetime.datetime(2026, 1, 1, 12, minutes)
            server.step()
            found.append(len(rows_of(server, "SELECT * FROM cdc.lsn_time_mapping")))
        assert found == [0, 0, 1, 1, 2]


def test_the_capture_scans_between_two_reads_of_one_statement() -> None:
    newest = "SELECT a.n - b.n AS d FROM (SELECT COUNT(*) AS n FROM cdc.dbo_t_CT) AS a"
    newest += " CROSS JOIN (SELECT COUNT(*) AS n FROM cdc.dbo_t_CT) AS b"
    differences = set()
    with Sandbox(harsh=[Point.SCAN], seed=4, capture_interval=3600) as server:
        server.execute("ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT OFF")
        filled(server)
        for n in range(20):
            server.execute(f"INSERT INTO dbo.t VALUES ({1000 + n}, 0, 'x')")
            differences.add(rows_of(server, newest)[0][0] == 0)
        server.execute("ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON")
        for n in range(20):
            server.execute(f"INSERT INTO dbo.t VALUES ({2000 + n}, 0, 'x')")
            assert rows_of(server, newest) == [(0,)]
    assert differences == {True, False}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CASE id WHEN '1' THEN 'one' WHEN '' THEN '' END AS word, id FROM dbo.t WHERE id < 9 ORDER BY id",
        "SELECT CONVERT(varchar(22), MAX(CONVERT(binary(10), id)), 1) AS b,"
        " CONVERT(varchar(22), sys.fn_cdc_increment_lsn(MAX(CONVERT(binary(10), id))), 1) AS n"
        " FROM (SELECT id, NTILE(2) OVER (ORDER BY id) AS g FROM dbo.t) x GROUP BY g ORDER BY b",
        "SELECT TOP 9 name, NEWID() AS n FROM dbo.t WHERE id < 9 ORDER BY half * 0 + id",
    ],
)
def test_columns_that_no_order_by_may_name(kind: Sandbox, harsh: Sandbox, sql: str) -> None:
    """What may raise, what is an aggregate, and what is drawn anew each time."""
    expected = [row[0] for row in rows_of(kind, sql)]
    assert all([row[0] for row in rows_of(harsh, sql)] == expected for _ in range(8))


def test_single_statements_overlap_in_the_log() -> None:
    begun = "SELECT start_lsn, tran_begin_lsn FROM cdc.lsn_time_mapping ORDER BY start_lsn"
    rows = "SELECT [__$start_lsn] AS lsn, [__$seqval] AS seqval, id FROM cdc.dbo_t_CT ORDER BY lsn, [__$command_id]"
    found = []
    for points in ([], [Point.OVERLAP]):
        with Sandbox(agent_running=False, harsh=points, seed=7) as server:
            filled(server)
            for i in range(20):
                server.execute(f"INSERT INTO dbo.t VALUES ({1000 + 2 * i}, 0, 'x'), ({1001 + 2 * i}, 0, 'x')")
            server.step()
            changes, mapping = rows_of(server, rows), rows_of(server, begun)
        assert [number for _, _, number in changes] == [*range(ROWS), *range(1000, 1040)]
        assert all(seqval < lsn for lsn, seqval, _ in changes)  # type: ignore[operator]
        commits = [lsn for lsn, _ in mapping]
        before = [
            sum(low < commit < lsn for commit in commits)  # type: ignore[operator]
            for low, lsn in [*((seqval, lsn) for lsn, seqval, _ in changes), *((begin, lsn) for lsn, begin in mapping)]
        ]
        found.append(max(before))
    assert found[0] == 0
    assert found[1] > 0


def test_the_insert_of_a_key_update_may_lie_before_its_delete() -> None:
    sql = "SELECT [__$operation] AS o FROM cdc.dbo_t_CT WHERE id >= 1000 ORDER BY [__$start_lsn], {}, [__$operation]"
    by_seqval = set()
    with Sandbox(agent_running=False, harsh=[Point.SEQVAL], seed=7) as server:
        filled(server)
        server.execute("INSERT INTO dbo.t VALUES (1000, 0, 'x')")
        for i in range(1000, 1020):
            server.execute(f"UPDATE dbo.t SET id = {i + 1} WHERE id = {i}")
            server.step()
        operations = [operation for (operation,) in rows_of(server, sql.format("[__$command_id], [__$seqval]"))]
        assert operations == [2] + [1, 2] * 20
        operations = [operation for (operation,) in rows_of(server, sql.format("[__$seqval]"))][1:]
        by_seqval = {tuple(operations[i : i + 2]) for i in range(0, 40, 2)}
    assert by_seqval == {(1, 2), (2, 1)}


def test_the_cleanup_job_may_be_at_work_when_who_started_it_goes_on() -> None:
    clock = [datetime.datetime(2026, 1, 1, 12)]
    looked = "SELECT (SELECT COUNT(*) FROM cdc.dbo_t_CT) AS rows, (SELECT COUNT(*) FROM cdc.lsn_time_mapping) AS mapped"
    marks = (
        "SELECT COUNT(*) AS n FROM cdc.change_tables WHERE start_lsn IN (SELECT start_lsn FROM cdc.lsn_time_mapping)"
    )
    with Sandbox(harsh=[Point.CLEANUP], seed=6, clock=lambda: clock[0]) as server:
        server.capture.hold()
        filled(server)
        for number in (1000, 1001):
            clock[0] += datetime.timedelta(days=9)
            server.execute(f"INSERT INTO dbo.t VALUES ({number}, 0, 'x')")
            server.step()
        # the mark alone, then the rows below it, then the mapping
        states = [(ROWS + 2, 7), (2, 7), (2, 2)]
        kept, found = server.backup(), set()
        for draws in range(24):
            server.restore(None, kept)
            server.harshness.begin(str(draws))
            assert rows_of(server, looked) == states[:1]
            seen = []
            for _ in range(12):
                server.execute("EXEC sys.sp_cdc_start_job 'cleanup'")
                assert rows_of(server, marks) == [(1,)]
                seen += rows_of(server, looked)
            assert seen == sorted(seen, key=states.index)
            assert seen[-1] == states[-1]
            found.add(tuple(dict.fromkeys(seen)))
    assert len(found) > 2
    assert {state for states_seen in found for state in states_seen} == {*states}


@pytest.mark.mssql_sandbox(harsh=True, seed=7)
def test_a_marker_makes_the_fixture_harsh(mssql_sandbox: Sandbox) -> None:  # noqa: F811
    assert mssql_sandbox.harshness.seed == 7
    assert mssql_sandbox.harshness.points == set(Point)


def test_a_kind_server_draws_nothing(mssql_sandbox: Sandbox) -> None:  # noqa: F811
    assert not any(mssql_sandbox.harshness.strikes(point, 1) for point in Point)
