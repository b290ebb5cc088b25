"""Faults as pymssql sees them, over a socket."""

from __future__ import annotations

import contextlib
import datetime
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pymssql
import pytest

from airflow_provider_mssql_cdc.sandbox.faults import Fault
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.server import Sandbox

ROWS = 20_000


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(agent_running=False) as server:
        server.execute("CREATE TABLE dbo.t (i int NOT NULL PRIMARY KEY, v varchar(10) NULL)")
        server.seed("shop", "dbo.t", pa.table({"i": pa.array(range(ROWS), pa.int32())}))
        server.execute("CREATE TABLE dbo.w (i int NOT NULL)")
        yield server


@pytest.fixture(autouse=True)
def nothing_written(sandbox: Sandbox) -> None:
    sandbox.execute("DELETE FROM dbo.w")


@contextlib.contextmanager
def connected(sandbox: Sandbox) -> Iterator[Any]:
    opened = pymssql.connect(
        server=sandbox.host,
        port=str(sandbox.port),
        user=sandbox.user,
        password=sandbox.password,
        database="shop",
        autocommit=True,
    )
    with opened, opened.cursor() as cursor:
        yield cursor


def written(sandbox: Sandbox) -> list[int]:
    return sandbox.execute("SELECT i FROM dbo.w ORDER BY i")[0]["i"].to_pylist()


def received(cursor: Any) -> list[tuple[Any, ...]]:
    """What arrives of a result before its connection ends."""
    rows: list[tuple[Any, ...]] = []
    with pytest.raises(pymssql.Error) as lost:
        rows.extend(iter(cursor.fetchone, None))
    assert "20017" in str(lost.value) or "20006" in str(lost.value)  # DB-Library: end of file, a failed write
    return rows


@pytest.mark.parametrize("rows", [0, 1, 7, 15_000])
@pytest.mark.parametrize(
    "query", ["SELECT i FROM dbo.t ORDER BY i", "EXEC sp_executesql N'SELECT i FROM dbo.t ORDER BY i'"]
)
def test_a_connection_ends_after_some_rows(sandbox: Sandbox, query: str, rows: int) -> None:
    with connected(sandbox) as struck, connected(sandbox) as other, sandbox.faults.drop("ORDER BY", rows=rows, times=1):
        # a driver that reads ahead may say so at once
        arrived: list[tuple[Any, ...]] = []
        try:
            struck.execute(query)
        except pymssql.Error:
            assert rows < 2
        else:
            arrived = received(struck)
        assert arrived == [(i,) for i in range(rows)][: len(arrived)]
        assert len(arrived) >= rows - 1
        other.execute(query)
        assert other.fetchall() == [(i,) for i in range(ROWS)]


@pytest.mark.parametrize(("begin", "kept"), [("", [1]), ("BEGIN TRAN ", [])])
def test_a_write_whose_end_the_client_does_not_see(sandbox: Sandbox, begin: str, kept: list[int]) -> None:
    with sandbox.faults.drop("INSERT") as fault, connected(sandbox) as cursor:
        with pytest.raises(pymssql.Error):
            cursor.execute(f"{begin}INSERT INTO dbo.w VALUES (1) COMMIT")
        assert fault.count == 1
    sandbox.execute("UPDATE dbo.w SET i = i")  # waits until the lost session's transaction is gone
    assert written(sandbox) == kept


def test_a_deadlock_rolls_the_transaction_back(sandbox: Sandbox) -> None:
    with connected(sandbox) as cursor:
        cursor.execute("BEGIN TRAN INSERT INTO dbo.w VALUES (1)")
        with sandbox.faults.deadlock(lambda text: "VALUES (2)" in text, times=1) as fault:
            seen: list[tuple[int, int]] = []
            cursor.connection._conn.set_msghandler(lambda state, severity, *rest: seen.append((severity, rest[2])))
            with pytest.raises(pymssql.OperationalError) as victim:
                cursor.execute("INSERT INTO dbo.w VALUES (2)\nINSERT INTO dbo.w VALUES (3)")
            assert victim.value.args[0] == 1205
            assert seen[0] == (13, 1)
            cursor.execute("SELECT @@TRANCOUNT")
            assert cursor.fetchall() == [(0,)]
            cursor.execute("INSERT INTO dbo.w VALUES (2)")
            assert fault.count == 1
    assert written(sandbox) == [2]


def test_a_deadlock_in_a_try_block_dooms_the_transaction(sandbox: Sandbox) -> None:
    with connected(sandbox) as cursor, sandbox.faults.deadlock("(2)"):
        cursor.execute(
            "BEGIN TRAN INSERT INTO dbo.w VALUES (1)\nBEGIN TRY INSERT INTO dbo.w VALUES (2) END TRY\n"
            "BEGIN CATCH SELECT ERROR_NUMBER(), XACT_STATE() ROLLBACK END CATCH"
        )
        assert cursor.fetchall() == [(1205, -1)]
    assert written(sandbox) == []


def test_a_delay_lets_a_statement_wait(sandbox: Sandbox) -> None:
    with connected(sandbox) as cursor, sandbox.faults.delay("dbo.t", seconds=0.2, times=1) as fault:
        start = time.monotonic()
        cursor.execute("EXEC sp_executesql N'SELECT COUNT(*) FROM dbo.t'")
        assert cursor.fetchall() == [(ROWS,)]
        assert time.monotonic() - start >= 0.2
        assert fault.count == 1


def test_several_faults_count_for_themselves(sandbox: Sandbox) -> None:
    with (
        connected(sandbox) as cursor,
        sandbox.faults.delay("dbo.w", seconds=0) as delay,
        sandbox.faults.deadlock("INSERT", times=2) as deadlock,
    ):
        for number in range(3):
            with contextlib.suppress(pymssql.OperationalError):
                cursor.execute(f"INSERT INTO dbo.w VALUES ({number})")
        assert (delay.count, deadlock.count) == (3, 2)
    assert written(sandbox) == [2]


def test_the_sandbox_itself_is_not_struck(sandbox: Sandbox) -> None:
    with sandbox.faults.deadlock() as fault:
        assert sandbox.execute("SELECT 1 AS one")[0].to_pylist() == [{"one": 1}]
    assert fault.count == 0


@pytest.fixture
def tracked(sandbox: Sandbox) -> Iterator[str]:
    sandbox.create_database("tracked")
    sandbox.execute(
        "CREATE TABLE dbo.c (i int NOT NULL PRIMARY KEY) EXEC sys.sp_cdc_enable_db"
        " EXEC sys.sp_cdc_enable_table 'dbo', 'c', @role_name = NULL",
        "tracked",
    )
    yield "tracked"
    sandbox.execute("DROP DATABASE tracked", "master")


def test_a_failed_scan_delivers_nothing_and_is_tried_again(sandbox: Sandbox, tracked: str) -> None:
    errors = "SELECT error_number, error_severity FROM sys.dm_cdc_errors"

    def scan(fault: Fault) -> tuple[int, list[dict[str, Any]], list[int]]:
        with contextlib.suppress(Exception):
            sandbox.step(tracked)
        captured = sandbox.execute("SELECT i FROM cdc.dbo_c_CT", tracked)[0]["i"].to_pylist()
        return fault.count, sandbox.execute(errors, tracked)[0].to_pylist(), captured

    failed = {"error_number": 22859, "error_severity": 16}
    with sandbox.faults.capture(tracked, times=2) as fault:
        assert scan(fault) == (0, [], [])  # nothing to read, nothing that could fail
        sandbox.execute("INSERT INTO dbo.c VALUES (1)", tracked)
        assert scan(fault) == (1, [failed], [])
        sandbox.execute("INSERT INTO dbo.c VALUES (2)", tracked)
        assert scan(fault) == (2, [failed, failed], [])
        assert scan(fault) == (2, [failed, failed], [1, 2])
    with sandbox.faults.capture(tracked) as fault:
        sandbox.execute("INSERT INTO dbo.c VALUES (3)", tracked)
        assert scan(fault) == (1, [failed] * 3, [1, 2])
    assert scan(fault) == (1, [failed] * 3, [1, 2, 3])


def test_the_capture_job_goes_on_after_a_failed_scan() -> None:
    with Sandbox(capture_interval=0.01) as server:
        server.execute(
            "CREATE TABLE dbo.c (i int NOT NULL PRIMARY KEY) EXEC sys.sp_cdc_enable_db"
            " EXEC sys.sp_cdc_enable_table 'dbo', 'c', @role_name = NULL"
        )
        with server.faults.capture(times=3) as fault:
            server.execute("INSERT INTO dbo.c VALUES (1)")
            while not server.execute("SELECT i FROM cdc.dbo_c_CT")[0].num_rows:
                pass
            assert fault.count == 3


def test_a_cleanup_fails_at_a_step() -> None:
    with Sandbox(agent_running=False) as server:
        server.execute(
            "CREATE TABLE dbo.s (i int PRIMARY KEY) EXEC sys.sp_cdc_enable_db"
            " EXEC sys.sp_cdc_enable_table 'dbo', 's', @role_name = NULL"
            " EXEC sys.sp_cdc_change_job 'cleanup', @threshold = 1"
        )
        for day in range(1, 6):
            server.set_time(datetime.datetime(2024, 1, 2 * day))
            server.execute(f"INSERT INTO dbo.s VALUES ({day})")
            server.step()

        def left() -> list[int]:
            return server.execute("SELECT i FROM cdc.dbo_s_CT ORDER BY i")[0]["i"].to_pylist()

        with server.faults.cleanup(step=3, times=1) as fault:
            server.cleanup()
            assert (fault.count, left()) == (1, [2, 3, 4, 5])
            assert len(server.execute("SELECT * FROM cdc.lsn_time_mapping")[0]) == 5
            server.cleanup()
        assert (fault.count, left()) == (1, [3, 4, 5])
        with server.faults.cleanup(step=1), pytest.raises(SqlError, match="Low-water marks"):
            server.cleanup()
        assert len(server.execute("SELECT * FROM cdc.lsn_time_mapping")[0]) == 3
