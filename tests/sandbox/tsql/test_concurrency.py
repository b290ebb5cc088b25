"""Transactions that are open at the same time: what they see of each other, and who waits for whom."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from tests.sandbox.tsql.conftest import Client, errors_at_once


@pytest.fixture
def one(client: Client) -> Iterator[Client]:
    client.run(
        "DROP TABLE IF EXISTS dbo.a, dbo.b CREATE TABLE dbo.a (id int PRIMARY KEY, v int)"
        " CREATE TABLE dbo.b (id int PRIMARY KEY, v int) INSERT dbo.a VALUES (1, 0) INSERT dbo.b VALUES (1, 0)"
    )
    yield client
    client.run("IF @@TRANCOUNT > 0 ROLLBACK SET TRANSACTION ISOLATION LEVEL READ COMMITTED")


@pytest.fixture
def other(connect: Callable[..., Client]) -> Client:
    return connect()


def test_transactions_write_different_tables(one: Client, other: Client) -> None:
    one.run("BEGIN TRAN UPDATE dbo.a SET v = 1")
    other.run("BEGIN TRAN UPDATE dbo.b SET v = 2 COMMIT")
    one.run("INSERT dbo.a VALUES (2, 1) COMMIT")
    assert one.run("SELECT 'a', id, v FROM dbo.a UNION ALL SELECT 'b', id, v FROM dbo.b ORDER BY 1, 2") == [
        ("a", 1, 1), ("a", 2, 1), ("b", 1, 2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "after"),
    [
        ("INSERT dbo.a SELECT id, v FROM dbo.b WHERE id > 1", [(1, 1), (2, 5)]),
        ("UPDATE dbo.a SET v = (SELECT SUM(v) FROM dbo.b)", [(1, 8)]),
        ("UPDATE a SET v = b.v FROM dbo.a AS a JOIN dbo.b AS b ON b.id = a.id", [(1, 3)]),
        ("IF EXISTS (SELECT * FROM dbo.b WHERE v = 5) INSERT dbo.a VALUES (9, 9)", [(1, 1), (9, 9)]),
        ("DECLARE @n int SELECT @n = COUNT(*) FROM dbo.b INSERT dbo.a VALUES (2, @n)", [(1, 1), (2, 2)]),
        ("DELETE dbo.b WHERE v = 5 INSERT dbo.a SELECT id + 1, v FROM dbo.b", [(1, 1), (2, 3)]),
        ("DELETE dbo.b OUTPUT deleted.id + 5, deleted.v INTO dbo.a", [(1, 1), (6, 3), (7, 5)]),
        (
            "INSERT dbo.a SELECT p.row_count + 5, 7 FROM sys.dm_db_partition_stats AS p"
            " WHERE p.object_id = OBJECT_ID('dbo.b')",
            [(1, 1), (7, 7)],
        ),
    ],
)
def test_a_statement_sees_what_others_have_committed(
    one: Client, other: Client, statement: str, after: list[tuple[int, int]]
) -> None:
    one.run("BEGIN TRAN UPDATE dbo.a SET v = 1")
    other.run("UPDATE dbo.b SET v = 3 INSERT dbo.b VALUES (2, 5)")
    one.run(statement)
    assert one.run("COMMIT SELECT id, v FROM dbo.a ORDER BY id") == after


def test_who_waited_sees_what_it_waited_for(one: Client, other: Client) -> None:
    one.run("BEGIN TRAN UPDATE dbo.a SET v = 1")
    other.run("BEGIN TRAN UPDATE dbo.b SET v = 7")
    waiting = threading.Thread(target=one.run, args=("UPDATE dbo.b SET v = v + 1 COMMIT",))
    waiting.start()
    other.run("UPDATE dbo.b SET v = v * 2 COMMIT")
    waiting.join()
    assert other.run("SELECT v FROM dbo.b") == [(15,)]


def test_the_same_table_is_written_by_one_at_a_time(one: Client, other: Client) -> None:
    one.run("BEGIN TRAN UPDATE dbo.a SET v = 1")
    other.run("SET LOCK_TIMEOUT 0")
    assert other.error("INSERT dbo.a VALUES (2, 2)") == 1222
    assert other.error("ALTER TABLE dbo.b ADD w int") == 1222
    other.run("UPDATE dbo.b SET v = 2")
    one.run("ROLLBACK")
    other.run("INSERT dbo.a VALUES (2, 2) ALTER TABLE dbo.b ADD w int")
    assert other.run("SELECT * FROM dbo.a AS a JOIN dbo.b AS b ON 1 = 1 ORDER BY a.id") == [
        (1, 0, 1, 2, None), (2, 2, 1, 2, None),
    ]  # fmt: skip


def test_who_would_wait_for_one_that_waits_for_it_is_a_deadlock_victim(one: Client, other: Client) -> None:
    one.run("BEGIN TRAN UPDATE dbo.a SET v = 1")
    other.run("BEGIN TRAN UPDATE dbo.b SET v = 2")
    update = "UPDATE dbo.{} SET v = v + 10 IF @@TRANCOUNT > 0 COMMIT"
    assert errors_at_once((one, update.format("b")), (other, update.format("a"))) == [1205]
    assert other.run("SELECT a.v, b.v FROM dbo.a AS a JOIN dbo.b AS b ON 1 = 1") in ([(1, 10)], [(10, 2)])


def test_a_repeatable_read_stays_one_after_writing(one: Client, other: Client) -> None:
    one.run("BEGIN TRAN UPDATE dbo.a SET v = 1 SET TRANSACTION ISOLATION LEVEL REPEATABLE READ SELECT * FROM dbo.b")
    other.run("SET LOCK_TIMEOUT 0")
    assert other.error("UPDATE dbo.b SET v = 2") == 1222
    assert one.run("SELECT * FROM dbo.b COMMIT") == [(1, 0)]


def test_who_sees_a_snapshot_writes_alone(one: Client, other: Client) -> None:
    one.run("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON SET TRANSACTION ISOLATION LEVEL SNAPSHOT")
    one.run("BEGIN TRAN INSERT dbo.a VALUES (2, 2)")
    other.run("SET LOCK_TIMEOUT 0")
    assert other.error("UPDATE dbo.b SET v = 2") == 1222
    assert one.run("SELECT * FROM dbo.b COMMIT") == [(1, 0)]


def test_a_rollback_leaves_what_was_read_in_the_transaction_readable(one: Client) -> None:
    empty = "SELECT name FROM sys.foreign_keys WHERE name = 'none'"
    one.run(f"BEGIN TRAN UPDATE dbo.a SET v = 1 {empty} ROLLBACK")
    assert one.run(empty) == []
