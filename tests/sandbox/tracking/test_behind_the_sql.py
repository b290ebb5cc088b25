"""What the sandbox alone can show of Change Tracking: open points, backups, editions, secondaries, side tables."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_mssql_cdc.sandbox import Sandbox
from airflow_provider_mssql_cdc.sandbox.engine.harshness import Point
from tests.sandbox.tracking.conftest import TRACK, marks, net
from tests.sandbox.tsql.conftest import Client

_ALL = (
    "SYS_CHANGE_VERSION, SYS_CHANGE_CREATION_VERSION, SYS_CHANGE_OPERATION, SYS_CHANGE_COLUMNS, SYS_CHANGE_CONTEXT, id"
)


def switch(server: Sandbox, **switches: Any) -> None:
    """Answer an open point the one way or the other."""
    tracking = server.tracking()
    tracking.switches = dataclasses.replace(tracking.switches, **switches)


# Open points


@pytest.mark.parametrize("is_error", [True, False])
def test_a_context_before_a_select(server: Sandbox, client: Client, is_error: bool) -> None:
    switch(server, context_on_select_error=is_error)
    select = "WITH CHANGE_TRACKING_CONTEXT (0x01) SELECT id FROM dbo.t"
    if is_error:
        assert client.error(select) == 22108
    else:
        assert client.run(select) == []
    client.run("INSERT INTO dbo.t VALUES (1, 1)")
    assert net(client, 0, _ALL) == [(1, 1, "I", None, None, 1)]


@pytest.mark.parametrize(("newest", "spelled"), [(True, "ABC "), (False, "abc")])
def test_a_key_that_changes_to_an_equal_text(server: Sandbox, client: Client, newest: bool, spelled: str) -> None:
    switch(server, newest_spelling=newest)
    client.run("CREATE TABLE dbo.k (id varchar(10) PRIMARY KEY, a int) ALTER TABLE dbo.k ENABLE CHANGE_TRACKING")
    client.run("INSERT INTO dbo.k VALUES ('abc', 1), ('x', 2)")
    client.run("UPDATE dbo.k SET id = 'ABC ' WHERE a = 1")
    told = "SELECT SYS_CHANGE_VERSION, SYS_CHANGE_OPERATION, id FROM CHANGETABLE(CHANGES dbo.k, 1) AS c"
    assert client.run(told) == [(2, "U", spelled)]
    assert client.run("SELECT SYS_CHANGE_VERSION, id FROM CHANGETABLE(VERSION dbo.k, (id), ('aBc')) AS c") == [
        (2, "ABC ")
    ]


@pytest.mark.parametrize("isolation", ["SNAPSHOT", "READ COMMITTED"])
@pytest.mark.parametrize("of_snapshot", [True, False])
def test_the_version_beside_rows(server: Sandbox, client: Client, of_snapshot: bool, isolation: str) -> None:
    switch(server, version_of_the_snapshot=of_snapshot)
    client.run("INSERT INTO dbo.t VALUES (1, 1) INSERT INTO dbo.t VALUES (2, 2)")
    client.run(f"SET TRANSACTION ISOLATION LEVEL {isolation}")
    asked = (
        "SELECT CHANGE_TRACKING_CURRENT_VERSION(), c.id, t.a FROM CHANGETABLE(CHANGES dbo.t, 0) AS c"
        " JOIN dbo.t AS t ON t.id = c.id"
    )
    assert sorted(client.run(asked)) == [(2, 1, 1), (2, 2, 2)]
    client.run("INSERT INTO dbo.t VALUES (3, 3)")  # the session is in no transaction
    assert marks(client)[0] == 3


@pytest.mark.parametrize(("of_snapshot", "seen"), [(True, {(0, 0), (1, 1)}), (False, {(0, 0), (1, 0), (1, 1)})])
def test_what_commits_between_the_rows_and_the_version(of_snapshot: bool, seen: set[tuple[int, int]]) -> None:
    found = set()
    for seed in range(12):
        with Sandbox(agent_running=False, harsh=[Point.MEANWHILE], seed=seed) as server:
            server.execute("ALTER DATABASE shop SET CHANGE_TRACKING = ON")
            server.execute(f"CREATE TABLE dbo.t (id int PRIMARY KEY) {TRACK}")
            switch(server, version_of_the_snapshot=of_snapshot)
            server.meanwhile(["INSERT INTO dbo.t VALUES (1)"])
            asked = (
                "SELECT CHANGE_TRACKING_CURRENT_VERSION() AS v, c.id, t.id AS t FROM (SELECT 1 AS one) AS o"
                " LEFT JOIN CHANGETABLE(CHANGES dbo.t, 0) AS c LEFT JOIN dbo.t AS t ON t.id = c.id ON 1 = 1"
            )
            ((version, key, row),) = (tuple(each.values()) for each in server.execute(asked)[0].to_pylist())
            assert key == row
            found.add((version, key or 0))
    assert found == seen


def test_harsh_databases_draw_what_is_open() -> None:
    drawn = set()
    for seed in range(20):
        server = Sandbox(harsh=[Point.TRACKING], seed=seed)
        switches = server.tracking().switches
        drawn.add((switches.newest_spelling, switches.version_of_the_snapshot))
        server.stop()
    assert drawn == {(True, True), (True, False), (False, True), (False, False)}


# Backups


def test_a_restored_database_has_the_versions_of_then(server: Sandbox, client: Client) -> None:
    client.run("INSERT INTO dbo.t VALUES (1, 1)")
    then = (marks(client), net(client, 0, _ALL), client.run("SELECT * FROM sys.dm_tran_commit_table"))
    kept = server.backup()
    client.run("UPDATE dbo.t SET a = 2 INSERT INTO dbo.t VALUES (2, 2)")
    client.run("CREATE TABLE dbo.u (id int PRIMARY KEY) ALTER TABLE dbo.u ENABLE CHANGE_TRACKING")
    server.set_time(dt.datetime(2026, 4, 1))
    server.clean_tracking()
    assert marks(client) == (3, 0, 3, 3)
    server.restore(None, kept)
    assert (marks(client), net(client, 0, _ALL), client.run("SELECT * FROM sys.dm_tran_commit_table")) == then
    client.run("INSERT INTO dbo.t VALUES (3, 3)")
    assert net(client, 0) == [(1, "I", 1), (2, "I", 3)]
    commits = client.run("SELECT commit_ts, xdes_id, commit_csn FROM sys.dm_tran_commit_table")
    assert [row[0] for row in commits] == [1, 2]
    assert commits[1][1:] > then[2][0][1:]


def test_a_copy_of_a_database_has_its_versions(server: Sandbox, client: Client, connect: Callable[..., Client]) -> None:
    client.run("INSERT INTO dbo.t VALUES (1, 1)")
    server.restore("copied", server.backup())
    copied = connect(database="copied")
    copied.run("DELETE FROM dbo.t")
    assert (marks(copied), net(copied, 0)) == ((2, 0, 0, 0), [(2, "D", 1)])
    assert (marks(client), net(client, 0)) == ((1, 0, 0, 0), [(1, "I", 1)])


# Editions and replicas


def test_express_has_change_tracking_alone() -> None:
    with Sandbox(edition="Express") as server:
        assert not server.capture.running
        properties = "CAST(SERVERPROPERTY('Edition') AS nvarchar(128)), CAST(SERVERPROPERTY('EngineEdition') AS int)"
        client = Client(server.instance, server.user, server.password)
        assert client.run(f"SELECT {properties}") == [("Express Edition (64-bit)", 4)]
        assert "Express Edition (64-bit)" in client.value("@@VERSION")
        assert client.run("SELECT servicename FROM sys.dm_server_services") == [("SQL Server (MSSQLSERVER)",)]
        assert client.error("EXEC sys.sp_cdc_enable_db") == 22988
        client.run("CREATE TABLE dbo.t (id int PRIMARY KEY) ALTER DATABASE shop SET CHANGE_TRACKING = ON")
        assert client.error("EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL") == 22988
        client.run(f"{TRACK} INSERT INTO dbo.t VALUES (1)")
        assert net(client) == [(1, "I", 1)]
        server.restart()
        assert not server.capture.running
        client.session.close()


def test_other_editions_are_unknown() -> None:
    with pytest.raises(ValueError, match="edition is one of Developer, Express, not Web"):
        Sandbox(edition="Web")  # type: ignore[arg-type]


def test_a_secondary_tells_nothing(server: Sandbox, client: Client) -> None:
    updateability = "CAST(DATABASEPROPERTYEX('shop', 'Updateability') AS nvarchar(20))"
    assert client.value(updateability) == "READ_WRITE"
    server.tracking().secondary = True
    assert client.value(updateability) == "READ_ONLY"
    asked = (
        "SELECT CHANGE_TRACKING_CURRENT_VERSION()",
        "SELECT CHANGE_TRACKING_MIN_VALID_VERSION(OBJECT_ID('dbo.t'))",
        "SELECT * FROM CHANGETABLE(CHANGES dbo.t, 0) AS c",
        "SELECT * FROM CHANGETABLE(VERSION dbo.t, (id), (1)) AS c",
    )
    assert [client.error(each) for each in asked] == [22117] * 4
    server.tracking().switches = dataclasses.replace(server.tracking().switches, secondary_refuses=False)
    assert client.value("CHANGE_TRACKING_CURRENT_VERSION()") == 0
    assert client.value("CHANGE_TRACKING_MIN_VALID_VERSION(OBJECT_ID('dbo.t'))") is not None
    server.tracking().secondary = False
    assert client.run(asked[0]) == [(0,)]


# The catalogue


def test_side_tables(client: Client) -> None:
    client.run("INSERT INTO dbo.t VALUES (1, 1), (2, 2) UPDATE dbo.t SET a = 3")
    table = client.value("OBJECT_ID('dbo.t')")
    listed = "SELECT name, type, type_desc, schema_id, parent_object_id, create_date FROM {}"
    made = dt.datetime(2026, 3, 1, 12)
    row = (f"change_tracking_{table}", "IT", "INTERNAL_TABLE", 4, table, made)
    assert client.run(listed.format("sys.internal_tables WHERE internal_type = 209")) == [row]
    assert client.run(listed.format("sys.objects WHERE type = 'IT' AND parent_object_id <> 0")) == [row]
    assert client.run("SELECT name, internal_type, internal_type_desc, parent_id FROM sys.internal_tables") == [
        (row[0], 209, "CHANGE_TRACKING", table), ("syscommittab", 210, "TRACKED_COMMITTED_TRANSACTIONS", 0),
    ]  # fmt: skip
    counted = (
        "SELECT i.object_id, p.row_count FROM sys.internal_tables AS i JOIN sys.dm_db_partition_stats AS p"
        " ON p.object_id = i.object_id WHERE i.object_id = OBJECT_ID('sys.{}')"
    )
    side = client.run("SELECT object_id FROM sys.internal_tables WHERE internal_type = 209")[0][0]
    assert client.run(counted.format(row[0])) == [(side, 4)]
    assert [count for _, count in client.run(counted.format("syscommittab"))] == [2]
    client.run("ALTER TABLE dbo.t DISABLE CHANGE_TRACKING")
    assert client.run("SELECT name FROM sys.internal_tables") == [("syscommittab",)]
    client.run("ALTER DATABASE shop SET CHANGE_TRACKING = OFF")
    assert [count for _, count in client.run(counted.format("syscommittab"))] == [0]


def test_the_commit_table(server: Sandbox, client: Client, connect: Callable[..., Client]) -> None:
    client.run("INSERT INTO dbo.t VALUES (1, 1)")
    server.set_time(dt.datetime(2026, 3, 1, 12, 0, 0, 5000))
    client.run("INSERT INTO dbo.t VALUES (2, 2)")
    rows = client.run("SELECT commit_ts, commit_time, xdes_id, commit_lbn FROM sys.dm_tran_commit_table")
    assert [row[:2] for row in rows] == [
        (1, dt.datetime(2026, 3, 1, 12)),
        (2, dt.datetime(2026, 3, 1, 12, 0, 0, 7000)),
    ]
    assert rows[0][2:] < rows[1][2:]
    client.run("CREATE LOGIN reader WITH PASSWORD = 'Pw-1' CREATE USER reader FOR LOGIN reader")
    assert connect("reader", "Pw-1").error("SELECT * FROM sys.dm_tran_commit_table") == 262
    client.run("ALTER TABLE dbo.t DISABLE CHANGE_TRACKING ALTER DATABASE shop SET CHANGE_TRACKING = OFF")
    assert client.run("SELECT * FROM sys.dm_tran_commit_table") == []
    client.run(f"ALTER DATABASE shop SET CHANGE_TRACKING = ON {TRACK} INSERT INTO dbo.t VALUES (3, 3)")
    assert client.run("SELECT commit_ts FROM sys.dm_tran_commit_table") == [(3,)]


def test_rights(client: Client, connect: Callable[..., Client]) -> None:
    client.run(
        "CREATE LOGIN reader WITH PASSWORD = 'Pw-1' CREATE USER reader FOR LOGIN reader\n"
        "GRANT SELECT ON dbo.t TO reader GRANT VIEW CHANGE TRACKING ON SCHEMA::dbo TO reader"
    )
    reader = connect("reader", "Pw-1")
    asked = "HAS_PERMS_BY_NAME('dbo.t', 'OBJECT', 'VIEW CHANGE TRACKING')"
    assert (reader.value(asked), net(reader)) == (1, [])
    client.run("REVOKE VIEW CHANGE TRACKING ON SCHEMA::dbo FROM reader")
    assert (reader.value(asked), reader.error("SELECT * FROM CHANGETABLE(CHANGES dbo.t, 0) AS c")) == (0, 229)
    assert "VIEW CHANGE TRACKING" in reader.messages[-1].text
    client.run("GRANT VIEW CHANGE TRACKING ON dbo.t TO reader DENY SELECT ON dbo.t (a) TO reader")
    assert net(reader) == []  # the key is enough
    client.run("DENY SELECT ON dbo.t (id) TO reader")
    assert reader.error("SELECT * FROM CHANGETABLE(CHANGES dbo.t, 0) AS c") == 229


# Ways to write


def test_seeded_rows_are_one_transaction(server: Sandbox, client: Client) -> None:
    assert server.seed(None, "dbo.t", pa.table({"id": list(range(1000)), "a": [None] * 1000})) == 1000
    assert marks(client)[0] == 1
    counted = "SELECT COUNT(*), MIN(SYS_CHANGE_VERSION), MAX(SYS_CHANGE_VERSION), MIN(id), MAX(id)"
    assert client.run(f"{counted} FROM CHANGETABLE(CHANGES dbo.t, 0) AS c") == [(1000, 1, 1, 0, 999)]


def test_a_table_with_cdc_too(server: Sandbox, client: Client) -> None:
    client.run("EXEC sys.sp_cdc_enable_db EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL")
    client.run("BEGIN TRAN INSERT INTO dbo.t VALUES (1, 1) UPDATE dbo.t SET a = 2 COMMIT")
    client.run("UPDATE dbo.t SET a = 2")
    server.step()
    captured = "SELECT __$operation, id, a FROM cdc.dbo_t_CT ORDER BY __$start_lsn, __$command_id, __$operation"
    assert client.run(captured) == [(2, 1, 1), (3, 1, 1), (4, 1, 2)]
    assert net(client, 1, _ALL) == [(2, None, "U", None, None, 1)]


def test_what_a_transaction_wrote_before_it_truncates(client: Client) -> None:
    client.run("INSERT INTO dbo.t VALUES (1, 1)")
    client.run("BEGIN TRAN INSERT INTO dbo.t VALUES (2, 2) TRUNCATE TABLE dbo.t INSERT INTO dbo.t VALUES (3, 3) COMMIT")
    assert (marks(client), net(client)) == ((2, 1, 0, 1), [(2, "I", 3)])


def test_tracking_begins_within_a_transaction(client: Client) -> None:
    client.run("ALTER TABLE dbo.t DISABLE CHANGE_TRACKING")
    client.run(f"BEGIN TRAN INSERT INTO dbo.t VALUES (1, 1) {TRACK} INSERT INTO dbo.t VALUES (2, 2) COMMIT")
    assert (marks(client), net(client)) == ((1, 0, 0, 0), [(1, "I", 2)])
    client.run("BEGIN TRAN DELETE FROM dbo.t ALTER TABLE dbo.t DISABLE CHANGE_TRACKING COMMIT")
    assert client.run("SELECT * FROM sys.change_tracking_tables") == []


def test_rowversion_and_computed_columns_are_in_no_mask(client: Client) -> None:
    client.run(
        "CREATE TABLE dbo.r (id int PRIMARY KEY, a int, b int, v rowversion, c AS (a + 1))\n"
        "ALTER TABLE dbo.r ENABLE CHANGE_TRACKING WITH (TRACK_COLUMNS_UPDATED = ON)\n"
        "INSERT INTO dbo.r (id, a, b) VALUES (1, 1, 1) UPDATE dbo.r SET b = 2"
    )
    found = client.run("SELECT SYS_CHANGE_COLUMNS FROM CHANGETABLE(CHANGES dbo.r, 1) AS c")
    assert found == [(bytes.fromhex("0000000003000000"),)]


def test_output_into_carries_the_context(client: Client) -> None:
    client.run("CREATE TABLE dbo.log (id int PRIMARY KEY) ALTER TABLE dbo.log ENABLE CHANGE_TRACKING")
    client.run("WITH CHANGE_TRACKING_CONTEXT (0x0A) INSERT INTO dbo.t OUTPUT inserted.id INTO dbo.log VALUES (1, 1)")
    client.run("INSERT INTO dbo.log VALUES (2)")
    told = "SELECT SYS_CHANGE_VERSION, SYS_CHANGE_CONTEXT, id FROM CHANGETABLE(CHANGES dbo.log, 0) AS c ORDER BY id"
    assert client.run(told) == [(1, b"\n", 1), (2, None, 2)]
    assert net(client, 0, _ALL) == [(1, 1, "I", None, b"\n", 1)]


# Errors


def test_a_catch_block_sees_the_last_of_two_errors(client: Client) -> None:
    batch = "BEGIN TRY {} END TRY BEGIN CATCH SELECT ERROR_NUMBER() END CATCH"
    assert client.run(batch.format("ALTER DATABASE shop SET CHANGE_TRACKING = ON")) == [(5069,)]
    assert client.run(batch.format("ALTER TABLE dbo.t DROP CONSTRAINT pk_t")) == [(3727,)]
    client.sets("ALTER TABLE dbo.t DROP CONSTRAINT pk_t SELECT @@ERROR")
    assert [message.number for message in client.messages] == [3735, 3727]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("SELECT * FROM CHANGETABLE(CHANGES dbo.t, 0 + 1) AS c", 102),
        ("SELECT * FROM CHANGETABLE(CHANGES dbo.t) AS c", 22102),
        ("SELECT * FROM CHANGETABLE(VERSION dbo.t, (id)) AS c", 22103),
        ("SELECT * FROM CHANGETABLE(VERSION dbo.t, (id), (1, 2)) AS c", 22103),
        ("SELECT * FROM CHANGETABLE(CHANGES far.shop.dbo.t, 0) AS c", 22106),
        ("SELECT * FROM CHANGETABLE(CHANGES dbo.missing, 0) AS c", 208),
        ("DECLARE @v datetime = '2026-01-01' SELECT * FROM CHANGETABLE(CHANGES dbo.t, @v) AS c", 257),
        ("WITH CHANGE_TRACKING_CONTEXT ('text') INSERT INTO dbo.t VALUES (1, 1)", 22109),
        ("SELECT CHANGE_TRACKING_CURRENT_VERSION(1)", 174),
        ("BEGIN TRAN ALTER DATABASE shop SET CHANGE_TRACKING (AUTO_CLEANUP = OFF)", 226),
    ],
)
def test_errors(client: Client, text: str, number: int) -> None:
    assert client.error(text) == number
    client.run("IF @@TRANCOUNT > 0 ROLLBACK")
    assert (client.run("SELECT * FROM dbo.t"), marks(client)) == ([], (0, 0, 0, 0))


def test_a_batch_may_track_what_it_reads_when_the_table_is_new(client: Client) -> None:
    client.run(
        "CREATE TABLE dbo.n (id int PRIMARY KEY) ALTER TABLE dbo.n ENABLE CHANGE_TRACKING"
        " INSERT INTO dbo.n VALUES (1)\nSELECT * FROM CHANGETABLE(CHANGES dbo.n, 0) AS c"
    )
    client.run("ALTER TABLE dbo.n DISABLE CHANGE_TRACKING")
    both = "SELECT id FROM CHANGETABLE(CHANGES dbo.t, 0) AS c {} SELECT id FROM CHANGETABLE(CHANGES dbo.n, 0) AS c"
    assert client.sets(both.format("")) == []
    assert client.sets(both.format("EXEC('") + "')") == [[]]
    assert [message.number for message in client.messages] == [22105]
