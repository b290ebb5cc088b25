"""Sessions beside each other: who waits for whom, what each sees, and how their transactions lie in the log."""

from __future__ import annotations

import pytest

from tests.support.conformance.client import Client, Row
from tests.support.conformance.database import Database

_ROWS: list[Row] = [(1, 10), (2, 20), (3, 30)]


@pytest.fixture
def one(plain: Database) -> Database:
    """A database that reads with locks, with the tables dbo.a and dbo.b (id, v)."""
    plain.run(f"ALTER DATABASE {plain.name} SET READ_COMMITTED_SNAPSHOT OFF")
    plain.run(f"ALTER DATABASE {plain.name} SET ALLOW_SNAPSHOT_ISOLATION ON")
    for name in "ab":
        plain.run(f"CREATE TABLE dbo.{name} (id int NOT NULL PRIMARY KEY, v int NOT NULL)")
        plain.run(f"INSERT dbo.{name} VALUES (1, 10), (2, 20), (3, 30)")
    return plain


@pytest.fixture
def other(one: Database) -> Client:
    """Another session, which does not wait."""
    client = one.connect()
    client.run("SET LOCK_TIMEOUT 0")
    return client


def test_a1_read_committed_waits_for_rows_that_are_not_committed_and_for_no_others(
    one: Database, other: Client
) -> None:
    one.run("BEGIN TRAN UPDATE dbo.a SET v = 31 WHERE id = 3")
    assert other.number("SELECT id, v FROM dbo.a ORDER BY id") == 1222
    assert other.run("SELECT id, v FROM dbo.a WHERE id = 2") == [(2, 20)]
    assert other.run("SELECT id, v FROM dbo.b ORDER BY id") == _ROWS
    one.run("COMMIT")
    assert other.run("SELECT id, v FROM dbo.a ORDER BY id") == [*_ROWS[:2], (3, 31)]


def test_a1_readers_by_row_versions_see_what_was_committed(one: Database, other: Client) -> None:
    one.run("BEGIN TRAN UPDATE dbo.a SET v = v + 1 DELETE dbo.a WHERE id = 1 INSERT dbo.a VALUES (4, 40)")
    other.run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT BEGIN TRAN")
    assert other.run("SELECT id, v FROM dbo.a ORDER BY id") == _ROWS
    one.run("COMMIT")
    assert other.run("SELECT id, v FROM dbo.a ORDER BY id") == _ROWS
    assert other.run("COMMIT SELECT id, v FROM dbo.a ORDER BY id") == [(2, 21), (3, 31), (4, 40)]


def test_a1_read_committed_by_row_versions_sees_the_newest_commits(one: Database) -> None:
    one.run(f"ALTER DATABASE {one.name} SET READ_COMMITTED_SNAPSHOT ON")
    other = one.connect()
    one.run("BEGIN TRAN UPDATE dbo.a SET v = v + 1")
    assert other.run("SET LOCK_TIMEOUT 0 BEGIN TRAN SELECT id, v FROM dbo.a ORDER BY id") == _ROWS
    one.run("COMMIT")
    assert other.run("SELECT id, v FROM dbo.a ORDER BY id") == [(1, 11), (2, 21), (3, 31)]
    other.run("COMMIT")


def test_a1_nolock_sees_what_is_not_committed_and_readpast_skips_it(one: Database, other: Client) -> None:
    one.run("BEGIN TRAN UPDATE dbo.a SET v = 11 WHERE id = 1")
    assert other.run("SELECT id, v FROM dbo.a WITH (NOLOCK) ORDER BY id") == [(1, 11), *_ROWS[1:]]
    assert other.run("SELECT id, v FROM dbo.a WITH (READPAST) ORDER BY id") == _ROWS[1:]
    one.run("ROLLBACK")
    assert other.run("SELECT id, v FROM dbo.a WITH (NOLOCK) ORDER BY id") == _ROWS


_UPDATE, _INSERT = "UPDATE dbo.a SET v = 21 WHERE id = 2", "INSERT dbo.a VALUES (4, 40)"


@pytest.mark.parametrize(
    ("level", "hint", "refused"),
    [
        ("READ COMMITTED", "", []),
        ("REPEATABLE READ", "", [_UPDATE]),
        ("SERIALIZABLE", "", [_UPDATE, _INSERT]),
        ("READ COMMITTED", "WITH (HOLDLOCK)", [_UPDATE, _INSERT]),
        ("REPEATABLE READ", "WITH (TABLOCK)", [_UPDATE, _INSERT]),
    ],
)
def test_a1_what_a_reader_keeps_locked(one: Database, other: Client, level: str, hint: str, refused: list[str]) -> None:
    one.run(f"SET TRANSACTION ISOLATION LEVEL {level} BEGIN TRAN SELECT id, v FROM dbo.a {hint}")
    for statement in refused:
        assert other.number(statement) == 1222
    assert other.run("SELECT id, v FROM dbo.a ORDER BY id") == _ROWS
    for statement in {_UPDATE, _INSERT} - set(refused):
        other.run(statement)
    one.run("COMMIT")
    for statement in refused:
        other.run(statement)
    assert one.run("SELECT id, v FROM dbo.a ORDER BY id") == [(1, 10), (2, 21), (3, 30), (4, 40)]


def test_a1_a_table_lock_keeps_all_out_but_those_who_read_versions_or_take_no_locks(
    one: Database, other: Client
) -> None:
    one.run("BEGIN TRAN SELECT TOP (0) id FROM dbo.a WITH (TABLOCKX)")
    assert other.number("SELECT id, v FROM dbo.a WHERE id = 1") == 1222
    assert other.number("UPDATE dbo.a SET v = 0 WHERE id = 1") == 1222
    assert other.run("SELECT id, v FROM dbo.a WITH (NOLOCK) ORDER BY id") == _ROWS
    assert other.run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT SELECT id, v FROM dbo.a ORDER BY id") == _ROWS
    one.run("COMMIT")


def test_a1_all_wait_for_ddl_that_is_not_committed(one: Database, other: Client) -> None:
    one.run("BEGIN TRAN ALTER TABLE dbo.a ADD w int NULL")
    assert other.number("SELECT id FROM dbo.a") == 1222
    assert other.number("SELECT id FROM dbo.a WITH (NOLOCK)") == 1222
    assert other.run("SELECT id, v FROM dbo.b ORDER BY id") == _ROWS
    one.run("ROLLBACK")
    assert other.run("SELECT * FROM dbo.a ORDER BY id") == _ROWS


def test_a2_a_transaction_that_commits_later_may_have_written_earlier(one: Database) -> None:
    one.enable()
    one.track("a")
    one.track("b")
    long = one.connect()
    long.run("BEGIN TRAN INSERT dbo.a VALUES (4, 40), (5, 50)")
    one.server.tick(one)
    one.run("INSERT dbo.b VALUES (4, 40)")
    one.server.tick(one)
    long.run("INSERT dbo.a VALUES (6, 60) COMMIT")
    one.capture()

    ((short_commit,),) = one.changes("__$start_lsn", "dbo_b")
    rows = one.changes("__$start_lsn, __$seqval, id, __$operation", "dbo_a")
    assert [row[2:] for row in rows] == [(4, 2), (5, 2), (6, 2)]
    (commit,) = {row[0] for row in rows}
    first, second, last = (row[1] for row in rows)
    assert first < second < short_commit < last < commit
    begun = "SELECT tran_begin_time, tran_end_time FROM cdc.lsn_time_mapping WHERE start_lsn = 0x"
    (long_times,), (short_times,) = one.run(begun + commit.hex()), one.run(begun + short_commit.hex())
    assert long_times[0] < short_times[0]
    assert short_times[1] < long_times[1]


@pytest.mark.parametrize(
    "call",
    ["EXEC('SET LOCK_TIMEOUT 7')", "EXEC sys.sp_executesql N'SET LOCK_TIMEOUT 7'"],
    ids=["EXEC", "sp_executesql"],
)
def test_a10_what_a_called_batch_sets_ends_with_it(plain: Database, call: str) -> None:
    plain.run("SET LOCK_TIMEOUT 5")
    assert plain.run(f"{call} SELECT @@LOCK_TIMEOUT") == [(5,)]
