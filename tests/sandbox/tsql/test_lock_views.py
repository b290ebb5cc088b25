"""sys.dm_tran_locks and its neighbours: who has locks of tables, or waits for them, and what is open for how long."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Iterator

import pytest

from airflow_provider_mssql_cdc.sandbox import Sandbox
from tests.sandbox.tsql.conftest import Client

LOCKS = (
    "SELECT OBJECT_NAME(resource_associated_entity_id), request_session_id, request_mode, request_status"
    " FROM sys.dm_tran_locks WHERE resource_type = 'OBJECT' AND resource_database_id = DB_ID() ORDER BY 1, 2, 4"
)


@pytest.fixture
def one(client: Client) -> Iterator[Client]:
    client.run(
        "DROP TABLE IF EXISTS dbo.a, dbo.b CREATE TABLE dbo.a (id int PRIMARY KEY, v int)"
        " CREATE TABLE dbo.b (id int PRIMARY KEY, v int) INSERT dbo.a VALUES (1, 0) INSERT dbo.b VALUES (1, 0)"
    )
    yield client
    client.run("IF @@TRANCOUNT > 0 ROLLBACK SET TRANSACTION ISOLATION LEVEL READ COMMITTED")


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE dbo.a SET v = 1", [("a", "IX")]),
        ("UPDATE dbo.a SET v = 1 DELETE dbo.b", [("a", "IX"), ("b", "IX")]),
        ("SELECT * FROM dbo.a WITH (TABLOCKX)", [("a", "X")]),
        ("SELECT * FROM dbo.a WITH (HOLDLOCK)", [("a", "S")]),
        ("SELECT * FROM dbo.a WITH (HOLDLOCK) UPDATE dbo.a SET v = 1", [("a", "SIX")]),
        ("SELECT * FROM dbo.a WITH (REPEATABLEREAD)", [("a", "IS")]),
        ("SELECT * FROM dbo.a", []),
        ("ALTER TABLE dbo.a ADD w int", [("a", "Sch-M")]),
    ],
)
def test_what_a_transaction_has_locked_until_it_ends(
    one: Client, connect: Callable[..., Client], statement: str, expected: list[tuple[str, str]]
) -> None:
    spid, other = one.value("@@SPID"), connect()
    # names of tables that are altered could not be asked for
    names = dict(one.run("SELECT object_id, name FROM sys.tables"))
    one.run(f"BEGIN TRAN {statement}")
    found = other.run(LOCKS.replace("OBJECT_NAME", ""))
    assert sorted((names[table], *more) for table, *more in found) == [
        (table, spid, mode, "GRANT") for table, mode in expected
    ]
    one.run("ROLLBACK")
    assert other.run(LOCKS) == []


def test_who_waits_is_there_with_what_it_waits_for(one: Client, connect: Callable[..., Client]) -> None:
    waits, behind, other = connect(), connect(), connect()
    spids = [each.value("@@SPID") for each in (one, waits, behind)]
    one.run("BEGIN TRAN UPDATE dbo.a SET v = 1")
    threads = []
    for client, sql in ((waits, "DROP TABLE dbo.a"), (behind, "SELECT * FROM dbo.a")):
        threads.append(threading.Thread(target=client.sets, args=(sql,)))
        threads[-1].start()
        while len(found := other.run(LOCKS)) < len(threads) + 1:
            pass
    assert found == sorted([
        ("a", spids[0], "IX", "GRANT"), ("a", spids[1], "Sch-M", "WAIT"), ("a", spids[2], "Sch-S", "WAIT"),
    ])  # fmt: skip
    one.run("ROLLBACK")
    for thread in threads:
        thread.join()
    assert other.run(LOCKS) == []


def test_since_when_a_transaction_is_open_and_what_its_client_has_sent(
    sandbox: Sandbox, one: Client, connect: Callable[..., Client]
) -> None:
    moment = datetime.datetime(2026, 3, 1, 12)
    sandbox.set_time(moment)
    spid, other = one.value("@@SPID"), connect()
    one.run("BEGIN TRAN")
    sandbox.set_time(moment + datetime.timedelta(seconds=90))
    one.run("UPDATE dbo.a SET v = 1")
    try:
        assert other.run(
            "SELECT l.request_session_id, s.login_name, t.transaction_begin_time FROM sys.dm_tran_locks AS l"
            " JOIN sys.dm_exec_sessions AS s ON s.session_id = l.request_session_id"
            " JOIN sys.dm_tran_active_transactions AS t ON t.transaction_id = l.request_owner_id"
        ) == [(spid, "sa", moment)]
    finally:
        sandbox.set_time(None)
    sent = "SELECT event_type, event_info FROM sys.dm_exec_input_buffer({}, NULL)"
    assert other.run(sent.format(spid)) == [("Language Event", "UPDATE dbo.a SET v = 1")]
    assert other.run(sent.format(32000)) == []
    one.run("ROLLBACK")
    assert other.run("SELECT * FROM sys.dm_tran_active_transactions") == []


def test_others_are_seen_by_who_may_see_the_servers_state(one: Client, connect: Callable[..., Client]) -> None:
    one.run("CREATE LOGIN looker WITH PASSWORD = 'Secret_1' CREATE USER looker FOR LOGIN looker")
    spid, looker = one.value("@@SPID"), connect("looker", "Secret_1")
    own = "SELECT event_info FROM sys.dm_exec_input_buffer(@@SPID, NULL)"
    statements = (
        "SELECT COUNT(*) FROM sys.dm_tran_locks", "SELECT COUNT(*) FROM sys.dm_tran_active_transactions",
        f"SELECT COUNT(*) FROM sys.dm_exec_input_buffer({spid}, NULL)",
    )  # fmt: skip
    assert [looker.error(statement) for statement in statements] == [300, 300, 300]
    assert looker.run(own) == [(own,)]
    one.run("GRANT VIEW SERVER PERFORMANCE STATE TO looker")
    assert [looker.run(statement) for statement in statements] == [[(0,)], [(0,)], [(1,)]]
