"""Builds: what an old server lacks, and what its update brings to the rows that are there and those to come."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pymssql
import pytest

from airflow_provider_mssql_cdc.sandbox.engine.harshness import Point
from airflow_provider_mssql_cdc.sandbox.fixtures import mssql_sandbox  # noqa: F401
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.server import Sandbox

COMMAND_ID = "__$command_id"
METADATA = ["__$start_lsn", "__$end_lsn", "__$seqval", "__$operation", "__$update_mask"]
SCHEMA = """
CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, a varchar(10) NULL, b int NULL)
EXEC sys.sp_cdc_enable_db
EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL, @supports_net_changes = 1
"""
GOLDEN = (
    "INSERT dbo.t VALUES (1, 'x', 1), (2, 'y', 2)",
    "UPDATE dbo.t SET b = 5 WHERE id = 1",
    "BEGIN TRAN INSERT dbo.t VALUES (3, 'z', 3) UPDATE dbo.t SET a = 'w' WHERE id = 3 DELETE dbo.t WHERE id = 3 COMMIT",
    "UPDATE dbo.t SET id = 9 WHERE id = 2",
)


@pytest.fixture
def old() -> Iterator[Sandbox]:
    with Sandbox(build="2016", agent_running=False) as server:
        server.execute(SCHEMA)
        yield server


def rows_of(server: Sandbox, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in server.execute(sql)[-1].to_pylist()]


def value_of(server: Sandbox, sql: str) -> Any:
    ((value,),) = rows_of(server, sql)
    return value


def columns_of(server: Sandbox, instance: str = "dbo_t") -> list[str]:
    sql = f"SELECT name FROM sys.columns WHERE object_id = OBJECT_ID('cdc.{instance}_CT') ORDER BY column_id"
    return [name for (name,) in rows_of(server, sql)]


def indexes_of(server: Sandbox) -> list[list[str]]:
    rows = rows_of(
        server,
        "SELECT i.index_id, c.name FROM sys.indexes AS i JOIN sys.index_columns AS k ON k.object_id = i.object_id"
        " AND k.index_id = i.index_id JOIN sys.columns AS c ON c.object_id = k.object_id AND c.column_id = k.column_id"
        " WHERE i.object_id = OBJECT_ID('cdc.dbo_t_CT') ORDER BY i.index_id, k.key_ordinal",
    )
    return [[name for of, name in rows if of == number] for number in sorted({number for number, _ in rows})]


def changes(server: Sandbox, order: str = "__$seqval, __$operation") -> list[tuple[Any, ...]]:
    return rows_of(
        server,
        "SELECT DENSE_RANK() OVER (ORDER BY __$start_lsn), __$operation, __$update_mask, id, a, b"
        f" FROM cdc.dbo_t_CT ORDER BY __$start_lsn, {order}",
    )


def test_2016_has_change_tables_without_command_ids(old: Sandbox) -> None:
    for batch in GOLDEN:
        old.execute(batch)
    old.step()
    assert columns_of(old) == [*METADATA, "id", "a", "b"]
    assert list(old.execute("SELECT * FROM cdc.dbo_t_CT")[0].column_names) == [*METADATA, "id", "a", "b"]
    key = ["__$start_lsn", "__$seqval", "__$operation"]
    assert indexes_of(old) == [key, ["id", *key]]
    with pytest.raises(SqlError) as caught:
        old.execute("SELECT __$command_id FROM cdc.dbo_t_CT")
    assert caught.value.number == 207

    full = b"\x07"
    assert changes(old) == [
        (1, 2, full, 1, "x", 1), (1, 2, full, 2, "y", 2),
        (2, 3, b"\x04", 1, "x", 1), (2, 4, b"\x04", 1, "x", 5),
        (3, 2, full, 3, "z", 3), (3, 3, b"\x02", 3, "z", 3), (3, 4, b"\x02", 3, "w", 3), (3, 1, full, 3, "w", 3),
        (4, 1, full, 2, "y", 2), (4, 2, full, 9, "y", 2),
    ]  # fmt: skip
    window = "(sys.fn_cdc_get_min_lsn('dbo_t'), sys.fn_cdc_get_max_lsn(), 'all')"
    every = f"SELECT __$operation, id, a, b FROM cdc.fn_cdc_get_all_changes_dbo_t{window}"
    assert rows_of(old, f"{every} ORDER BY __$start_lsn, __$seqval") == [
        (2, 1, "x", 1), (2, 2, "y", 2), (4, 1, "x", 5), (2, 3, "z", 3), (4, 3, "w", 3), (1, 3, "w", 3), (1, 2, "y", 2),
        (2, 9, "y", 2),
    ]  # fmt: skip
    net = f"SELECT __$operation, id, a, b FROM cdc.fn_cdc_get_net_changes_dbo_t{window} ORDER BY id"
    assert rows_of(old, net) == [(2, 1, "x", 5), (2, 9, "y", 2)]


@pytest.mark.mssql_sandbox(build="2016", harsh=[Point.SEQVAL], seed=11, agent_running=False)
def test_rows_lie_by_seqval_and_those_of_a_key_in_their_order(mssql_sandbox: Sandbox) -> None:  # noqa: F811
    server = mssql_sandbox
    server.execute(SCHEMA + " INSERT dbo.t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4)")
    server.step()
    swapped = 0
    for _ in range(40):
        before = dict(rows_of(server, "SELECT id, a FROM dbo.t"))
        server.execute("UPDATE dbo.t SET id = id % 5 + 1")  # one of five keys is free: each passes its own on
        server.step()
        lie = [
            row
            for batch in server.cdc().change_rows("dbo_t", server.cdc().max_lsn())
            for row in batch.select(["__$seqval", "__$operation", "id", "a"]).to_pylist()
        ]
        assert [row["__$seqval"] for row in lie] == sorted(row["__$seqval"] for row in lie)
        state = dict(before)
        for row in lie:
            if row["__$operation"] == 1:
                assert state.pop(row["id"]) == row["a"]
            else:
                assert row["id"] not in state
                state[row["id"]] = row["a"]
        assert state == dict(rows_of(server, "SELECT id, a FROM dbo.t"))
        swapped += [row["__$operation"] for row in lie] != [1] * 4 + [2] * 4
    assert swapped > 5


def test_the_update_adds_command_ids_that_old_rows_lack(old: Sandbox) -> None:
    for batch in GOLDEN:
        old.execute(batch)
    old.step()
    before = changes(old)
    edge = old.cdc().max_lsn()
    objects = rows_of(old, "SELECT object_id, create_date, start_lsn FROM cdc.change_tables")
    old.execute("UPDATE dbo.t SET a = 'late' WHERE id = 1")  # committed before the update, captured after it

    old.upgrade()

    assert value_of(old, "SELECT @@VERSION").startswith("Microsoft SQL Server 2016 (SP3) - 13.0.6300.2 (X64)")
    assert value_of(old, "SELECT CAST(SERVERPROPERTY('ProductLevel') AS nvarchar(128))") == "SP3"
    assert rows_of(old, "SELECT object_id, create_date, start_lsn FROM cdc.change_tables") == objects
    assert columns_of(old) == [*METADATA, "id", "a", "b", COMMAND_ID]
    key = ["__$start_lsn", COMMAND_ID, "__$seqval", "__$operation"]
    assert indexes_of(old) == [key, ["id", *key]]
    assert changes(old) == before
    old.execute("BEGIN TRAN UPDATE dbo.t SET b = 6 WHERE id = 1 UPDATE dbo.t SET id = 8 WHERE id = 9 COMMIT")
    old.step()
    assert edge is not None
    ids = "SELECT __$command_id, __$operation, id FROM cdc.dbo_t_CT WHERE __$start_lsn {} ORDER BY {}"
    order = "__$start_lsn, __$command_id, __$seqval, __$operation"
    assert {number for number, _, _ in rows_of(old, ids.format(f"<= 0x{edge.hex()}", order))} == {None}
    assert rows_of(old, ids.format(f"> 0x{edge.hex()}", order)) == [
        (1, 3, 1), (1, 4, 1),
        (1, 3, 1), (1, 4, 1), (2, 1, 9), (3, 2, 8),
    ]  # fmt: skip
    # a window over the edge, in the order of the index and in another one
    whole = ids.format(">= 0x00", order)
    assert rows_of(old, whole) == [
        (None, operation, id) for _, operation, _, id, _, _ in before
    ] + rows_of(old, ids.format(f"> 0x{edge.hex()}", order))  # fmt: skip
    number = "ROW_NUMBER() OVER (PARTITION BY __$start_lsn ORDER BY __$command_id, __$seqval, __$operation)"
    numbered = rows_of(old, f"SELECT {number} FROM cdc.dbo_t_CT ORDER BY {order}")
    assert [n for (n,) in numbered] == [1, 2, 1, 2, 1, 2, 3, 4, 1, 2, 1, 2, 1, 2, 3, 4]
    nulls = "SELECT COUNT(*) FROM cdc.dbo_t_CT WHERE __$command_id IS NULL"
    assert value_of(old, nulls) == len(before)
    old.execute("EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL, @capture_instance = 'new'")
    assert columns_of(old, "new")[-1] == COMMAND_ID


def test_a_backup_of_before_the_update_is_updated_when_it_is_restored(old: Sandbox) -> None:
    old.execute("INSERT dbo.t VALUES (1, 'x', 1)")
    old.step()
    kept = old.backup()
    old.upgrade()
    old.restore(None, kept)
    old.execute("INSERT dbo.t VALUES (2, 'y', 2)")
    old.step()
    rows = rows_of(old, "SELECT __$command_id, id FROM cdc.dbo_t_CT ORDER BY __$start_lsn")
    assert rows == [(None, 1), (1, 2)]


def test_the_update_restarts_the_server() -> None:
    with Sandbox(build="2016") as server:
        server.execute(SCHEMA)
        address = {"server": server.host, "port": str(server.port), "user": server.user, "password": server.password}
        with pymssql.connect(**address, database="shop") as connection:
            cursor = connection.cursor()
            cursor.execute("INSERT dbo.t VALUES (1, 'lost', 1)")
            server.visibility.hold()
            server.upgrade()
            with pytest.raises(pymssql.Error):
                cursor.execute("SELECT 1")
        server.execute("INSERT dbo.t VALUES (2, 'kept', 2)")
        with pymssql.connect(**address, database="shop") as connection:
            cursor = connection.cursor()
            cursor.execute("SELECT id, a FROM dbo.t")
            assert cursor.fetchall() == [(2, "kept")]
        captured = "SELECT __$command_id, id FROM cdc.dbo_t_CT"
        while not rows_of(server, captured):  # by the job, which has begun again
            pass
        assert rows_of(server, captured) == [(1, 2)]
        assert value_of(server, "SELECT COUNT(*) FROM msdb.dbo.syssessions") == 2


def test_a_restart_keeps_what_is_committed_and_forgets_what_scans_found() -> None:
    with Sandbox(build="2016", agent_running=False) as server:
        server.execute(SCHEMA + " INSERT dbo.t VALUES (1, 'x', 1)")
        server.step()
        server.execute("INSERT dbo.t VALUES (2, 'y', 2)")
        port = server.port
        server.restart()
        assert server.port == port
        assert not server.capture.running
        assert rows_of(server, "SELECT session_id FROM sys.dm_cdc_log_scan_sessions") == []
        server.step()
        assert rows_of(server, "SELECT id FROM cdc.dbo_t_CT ORDER BY __$start_lsn") == [(1,), (2,)]
        assert COMMAND_ID not in columns_of(server)


def test_what_cannot_be_is_refused(old: Sandbox) -> None:
    with pytest.raises(ValueError, match="build is one of 2016, 2019, 2022, 2025, not 2017"):
        Sandbox(build="2017")
    with Sandbox(agent_running=False) as server, pytest.raises(ValueError, match="has no update"):
        server.upgrade()
    old.cdc().hold_back()
    with pytest.raises(ValueError, match="availability group"):
        old.upgrade()
    assert COMMAND_ID not in columns_of(old)
    old.cdc().in_availability_group = False
    old.cdc().deliver()
    old.upgrade()
    with pytest.raises(ValueError, match="has no update"):
        old.upgrade()


@pytest.mark.parametrize("build", ["2016", "2019", "2022", "2025"])
def test_what_came_later_is_not_there(build: str) -> None:
    with Sandbox(build=build, agent_running=False) as server:

        def number(sql: str) -> int:
            try:
                server.execute(sql)
            except SqlError as error:
                return error.number
            return 0

        server.execute("CREATE TABLE dbo.s (v varchar(3) NULL)")
        before = {since: int(build) < since for since in (2017, 2019, 2022, 2025)}
        assert number("SELECT STRING_AGG(name, ',') FROM sys.tables") == (195 if before[2017] else 0)
        aggregate = "SELECT STRING_AGG(name, ',') WITHIN GROUP (ORDER BY name) FROM sys.tables"
        assert number(aggregate) == (195 if before[2017] else 0)
        assert number("SELECT TRIM(' a ')") == (195 if before[2017] else 0)
        assert number("SELECT auto_created FROM sys.indexes") == (207 if before[2017] else 0)
        assert number("INSERT dbo.s VALUES ('long')") == (8152 if before[2019] else 2628)
        assert number("SELECT CURRENT_TIMEZONE_ID()") == (195 if before[2022] else 0)
        assert number("SELECT column_store_order_ordinal FROM sys.index_columns") == (207 if before[2022] else 0)
        assert number("DECLARE @v json") == (2715 if before[2025] else 50000)
        level = {"2016": 130, "2019": 150, "2022": 160, "2025": 170}[build]
        assert value_of(server, "SELECT compatibility_level FROM sys.databases WHERE name = 'shop'") == level


@pytest.mark.parametrize("build", ["2022", "2025"])
def test_min_lsn_is_null_at_first_on_2025(build: str) -> None:
    with Sandbox(build=build, agent_running=False) as server:
        server.set_time(datetime.datetime(2026, 3, 1, 12))
        server.execute(SCHEMA)
        server.execute("CREATE TABLE dbo.u (id int) EXEC sys.sp_cdc_enable_table 'dbo', 'u', @role_name = NULL")
        server.execute("INSERT dbo.t VALUES (1, 'x', 1)")
        server.step()
        server.execute("EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL, @capture_instance = 'new'")
        (start,) = rows_of(server, "SELECT start_lsn FROM cdc.change_tables WHERE capture_instance = 'new'")
        asked = "SELECT sys.fn_cdc_get_min_lsn('new')"
        assert value_of(server, asked) == (None if build == "2025" else start[0])
        server.execute("INSERT dbo.t VALUES (2, 'y', 2)")
        server.step()
        assert value_of(server, asked) == start[0]
