"""A database goes back to an earlier moment."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_mssql_cdc.sandbox.protocol import Login, SqlError
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from airflow_provider_mssql_cdc.sandbox.tsql.session import SqlSession


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    server = Sandbox(agent_running=False)
    server.execute(
        "CREATE TABLE dbo.t (id int IDENTITY PRIMARY KEY, v nvarchar(10) NULL, r rowversion,"
        " o datetimeoffset(7) NULL, d decimal(38, 4) NULL, b varbinary(max) NULL)\n"
        "INSERT INTO dbo.t (v, o, d, b) VALUES (N'é', '2024-01-02T03:04:05.1234567+01:00', 1234567890.1234, 0x00FF)\n"
        "EXEC sys.sp_cdc_enable_db\n"
        "EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL, @supports_net_changes = 1"
    )
    server.execute("INSERT INTO dbo.t (v) VALUES (N'captured')")
    server.step()
    server.execute("INSERT INTO dbo.t (v) VALUES (N'waiting')")
    yield server
    server.stop()


def content(server: Sandbox, database: str = "shop") -> list[Any]:
    """All that a client can see of the table and of CDC."""
    tables = server.execute(
        "SELECT * FROM dbo.t ORDER BY id SELECT * FROM cdc.dbo_t_CT ORDER BY __$start_lsn, __$seqval\n"
        "SELECT * FROM cdc.change_tables SELECT * FROM cdc.captured_columns SELECT * FROM cdc.index_columns\n"
        "SELECT * FROM cdc.ddl_history SELECT * FROM cdc.lsn_time_mapping ORDER BY start_lsn\n"
        "SELECT sys.fn_cdc_get_max_lsn() AS high, sys.fn_cdc_get_min_lsn('dbo_t') AS low, @@DBTS AS version\n"
        "SELECT name, column_id, user_type_id FROM sys.columns WHERE object_id = OBJECT_ID('dbo.t')",
        database,
    )
    return [table.to_pylist() for table in tables]


def value(server: Sandbox, query: str, database: str = "shop") -> Any:
    return server.execute(query, database)[0].column(0)[0].as_py()


FORK = "SELECT recovery_fork_guid AS g FROM sys.database_recovery_status WHERE database_id = DB_ID()"


def test_everything_is_as_it_was(sandbox: Sandbox) -> None:
    before, fork, kept = content(sandbox), value(sandbox, FORK), sandbox.backup()
    for _ in range(2):
        sandbox.execute(
            "UPDATE dbo.t SET v = N'changed' ALTER TABLE dbo.t ADD more int NULL\n"
            "CREATE TABLE dbo.later (i int) EXEC sys.sp_cdc_enable_table 'dbo', 'later', @role_name = NULL"
        )
        sandbox.step()
        assert content(sandbox) != before
        sandbox.restore(None, kept)
        assert content(sandbox) == before
        user_tables = "SELECT name FROM sys.tables WHERE is_ms_shipped = 0"
        assert sandbox.execute(user_tables)[0].to_pylist() == [{"name": "t"}]
        newer = value(sandbox, FORK)
        assert newer != fork
        fork = newer


def test_the_log_goes_on_from_there(sandbox: Sandbox) -> None:
    kept = sandbox.backup()
    sandbox.execute("INSERT INTO dbo.t (v) VALUES (N'lost'), (N'lost')")
    sandbox.step()
    lost = value(sandbox, "SELECT sys.fn_cdc_get_max_lsn() AS x")
    sandbox.restore(None, kept)
    sandbox.execute("INSERT INTO dbo.t (v) VALUES (N'new')")
    assert sandbox.step() == 2
    rows = sandbox.execute("SELECT id, v FROM cdc.dbo_t_CT ORDER BY __$start_lsn")[0].to_pylist()
    assert rows == [{"id": 2, "v": "captured"}, {"id": 3, "v": "waiting"}, {"id": 4, "v": "new"}]
    # positions of what was lost are given out again
    assert value(sandbox, "SELECT sys.fn_cdc_get_max_lsn() AS x") <= lost


def test_jobs_are_the_servers(sandbox: Sandbox) -> None:
    kept = sandbox.backup()
    sandbox.execute("EXEC sys.sp_cdc_change_job 'cleanup', @retention = 7")
    sandbox.restore(None, kept)
    assert [job.retention for job in sandbox.cdc().jobs] == [0, 7]


def test_cdc_enabled_after_the_backup_is_gone_and_so_are_its_jobs() -> None:
    server = Sandbox(agent_running=True)
    try:
        kept = server.backup()
        server.execute("CREATE TABLE dbo.t (i int) EXEC sys.sp_cdc_enable_db")
        server.execute("EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL")
        server.restore(None, kept)
        assert value(server, "SELECT is_cdc_enabled AS x FROM sys.databases WHERE name = 'shop'") is False
        assert server.execute("SELECT name FROM sys.tables")[0].num_rows == 0
        assert server.execute("SELECT name FROM msdb.dbo.sysjobs")[0].num_rows == 0
    finally:
        server.stop()


@pytest.mark.parametrize("exists", [False, True])
def test_another_name_leaves_cdc_behind_unless_it_is_kept(sandbox: Sandbox, exists: bool) -> None:
    before, kept = content(sandbox), sandbox.backup()
    for name in ("plain", "other"):
        if exists:
            sandbox.create_database(name)
            sandbox.execute("CREATE TABLE dbo.u (i int)", name)
        sandbox.restore(name, kept, keep_cdc=name == "other")
    assert content(sandbox, "other") == before
    assert sandbox.cdc("other").jobs == []
    sandbox.execute("EXEC sys.sp_cdc_add_job 'capture', @start_job = 0", "other")
    assert sandbox.step("other") == 1
    assert sandbox.execute("SELECT v FROM dbo.t", "plain")[0].num_rows == 3
    assert value(sandbox, "SELECT is_cdc_enabled AS x FROM sys.databases WHERE name = 'plain'") is False
    with pytest.raises(SqlError) as absent:
        sandbox.execute("SELECT * FROM cdc.change_tables", "plain")
    assert absent.value.number == 208
    sandbox.execute("UPDATE dbo.t SET v = N'the copy'", "plain")
    assert content(sandbox) == before


def test_an_open_transaction_is_waited_for(sandbox: Sandbox) -> None:
    writer = SqlSession(sandbox.instance, Login(sandbox.user, sandbox.password, "shop"))
    list(writer.batch("BEGIN TRAN INSERT INTO dbo.t (v) VALUES (N'long')"))
    kept: list[Any] = []
    backing_up = threading.Thread(target=lambda: kept.append(sandbox.backup()))
    backing_up.start()
    backing_up.join(0.1)
    assert backing_up.is_alive()
    list(writer.batch("COMMIT"))
    backing_up.join()
    before = content(sandbox)
    list(writer.batch("DELETE FROM dbo.t"))
    sandbox.restore(None, kept[0])
    assert content(sandbox) == before
    writer.close()


def test_a_backup_belongs_to_its_sandbox(sandbox: Sandbox) -> None:
    other = Sandbox(agent_running=False)
    with pytest.raises(ValueError, match="the sandbox that took it"):
        sandbox.restore(None, other.backup())
    other.stop()
