"""Readers that do not read by row versions: what they wait for, what they keep, and what they meet twice or never."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.sandbox.engine.harshness import Point
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from tests.sandbox.tsql.conftest import Client, errors_at_once

OPTIONS = (
    "SELECT is_read_committed_snapshot_on, snapshot_isolation_state FROM sys.databases WHERE database_id = DB_ID()"
)


@pytest.fixture
def one(sandbox: Sandbox, client: Client) -> Iterator[Client]:
    """A session of a database that reads by locks; tables a, with an index on v, and b."""
    client.run(
        "ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT OFF ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON"
        " DROP TABLE IF EXISTS dbo.a, dbo.b CREATE TABLE dbo.a (id int PRIMARY KEY, v int NOT NULL, w varchar(9) NULL)"
        " CREATE INDEX by_v ON dbo.a (v) CREATE TABLE dbo.b (id int PRIMARY KEY, v int)"
        " INSERT dbo.a VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c'), (4, 40, 'd'), (5, 50, 'e'), (6, 60, 'f')"
        " INSERT dbo.b VALUES (1, 0)"
    )
    rows = sandbox.instance.piece_rows
    yield client
    sandbox.instance.piece_rows, sandbox.instance.between_pieces = rows, lambda table, pieces: None
    client.run("IF @@TRANCOUNT > 0 ROLLBACK SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
    client.run("ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON")


@pytest.fixture
def other(connect: Callable[..., Client]) -> Client:
    client = connect()
    client.run("SET LOCK_TIMEOUT 0")
    return client


def test_a_plain_database_reads_by_row_versions(client: Client, connect: Callable[..., Client]) -> None:
    assert client.run(OPTIONS) == [(True, 1)] or client.run(OPTIONS) == [(True, 0)]
    client.run("DROP TABLE IF EXISTS dbo.p CREATE TABLE dbo.p (id int PRIMARY KEY) INSERT dbo.p VALUES (1)")
    client.run("BEGIN TRAN INSERT dbo.p VALUES (2) DELETE dbo.p WHERE id = 1")
    assert connect().run("SELECT id FROM dbo.p") == [(1,)]
    client.run("COMMIT")
    assert connect().run("SELECT id FROM dbo.p") == [(2,)]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM dbo.a",
        "SELECT w FROM dbo.a WHERE id = 3",
        "SELECT w FROM dbo.a WHERE id BETWEEN 2 AND 4",
        "SELECT w FROM dbo.a WHERE w = 'a'",
        "SELECT v FROM dbo.a WHERE v < 35",
        "SELECT COUNT(*) FROM dbo.a",
        "SELECT b.id FROM dbo.b AS b JOIN dbo.a AS a ON a.id = b.id",
        "SELECT (SELECT MAX(v) FROM dbo.a) AS m",
        "IF EXISTS (SELECT * FROM dbo.a WHERE id = 3) SELECT 1",
        "UPDATE dbo.b SET v = (SELECT MAX(v) FROM dbo.a)",
    ],
)
def test_a_reader_waits_for_rows_that_are_not_committed(one: Client, other: Client, statement: str) -> None:
    one.run("BEGIN TRAN UPDATE dbo.a SET v = 31, w = 'x' WHERE id = 3")
    assert other.error(statement) == 1222
    one.run("COMMIT")
    other.run(statement)
    assert other.run("SELECT v, w FROM dbo.a WHERE id = 3") == [(31, "x")]


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("SELECT w FROM dbo.a WHERE id = 2", [("b",)]),
        ("SELECT w FROM dbo.a WHERE id IN (1, 2)", [("a",), ("b",)]),
        ("SELECT id FROM dbo.a WHERE id > 3 AND w <> 'x'", [(4,), (5,), (6,)]),
        ("SELECT * FROM dbo.b", [(1, 0)]),
    ],
)
def test_a_reader_waits_for_nobody_else(
    one: Client, other: Client, statement: str, rows: list[tuple[object, ...]]
) -> None:
    one.run("BEGIN TRAN UPDATE dbo.a SET v = 31, w = 'x' WHERE id = 3")
    assert sorted(other.run(statement)) == rows


@pytest.mark.parametrize("write", ["INSERT dbo.a VALUES (7, 70, 'g')", "DELETE dbo.a WHERE id = 6"])
def test_inserted_and_deleted_rows_are_waited_for_too(one: Client, other: Client, write: str) -> None:
    one.run(f"BEGIN TRAN {write}")
    assert other.error("SELECT * FROM dbo.a") == 1222
    assert len(other.run("SELECT * FROM dbo.a WHERE id < 6")) == 5
    one.run("ROLLBACK")
    assert len(other.run("SELECT * FROM dbo.a")) == 6


def test_a_waiting_reader_sees_what_it_waited_for(one: Client, connect: Callable[..., Client]) -> None:
    one.run("BEGIN TRAN UPDATE dbo.a SET v = v + 1")
    found: list[object] = []
    reader = threading.Thread(target=lambda: found.extend(connect().run("SELECT v FROM dbo.a ORDER BY id")))
    reader.start()
    one.run("UPDATE dbo.a SET v = v + 1 COMMIT")
    reader.join()
    assert found == [(12,), (22,), (32,), (42,), (52,), (62,)]


def test_a_reader_and_a_writer_can_be_in_a_deadlock(one: Client, connect: Callable[..., Client]) -> None:
    second = connect()
    one.run("BEGIN TRAN UPDATE dbo.a SET v = 1")
    second.run("BEGIN TRAN UPDATE dbo.b SET v = 2")
    read = "SELECT * FROM dbo.{} IF @@TRANCOUNT > 0 COMMIT"
    assert errors_at_once((one, read.format("b")), (second, read.format("a"))) == [1205]


# What is met while rows move


def read_while(sandbox: Sandbox, reader: Client, statement: str, meanwhile: Callable[[], object]) -> list[object]:
    """Read in pieces of two rows, and do something after the first of them."""
    sandbox.instance.piece_rows = 2
    sandbox.instance.between_pieces = lambda table, pieces: meanwhile() if pieces == 1 else None
    return [row[0] for row in reader.run(statement)]


@pytest.mark.parametrize(
    ("moves", "statement", "met"),
    [
        ("UPDATE dbo.a SET id = 9 WHERE id = 1", "SELECT w FROM dbo.a", ["a", "b", "c", "d", "e", "f", "a"]),
        ("UPDATE dbo.a SET id = -1 WHERE id = 5", "SELECT w FROM dbo.a", ["a", "b", "c", "d", "f"]),
        ("UPDATE dbo.a SET w = 'z' WHERE id IN (1, 6)", "SELECT w FROM dbo.a", ["a", "b", "c", "d", "e", "z"]),
        ("DELETE dbo.a WHERE id IN (1, 6)", "SELECT id FROM dbo.a WHERE w <> ''", [1, 2, 3, 4, 5]),
        # the index on v has all that is asked for, and another order
        ("UPDATE dbo.a SET v = 99 WHERE id = 1", "SELECT id FROM dbo.a WHERE v > 0", [1, 2, 3, 4, 5, 6, 1]),
        ("UPDATE dbo.a SET v = 1 WHERE id = 5", "SELECT id FROM dbo.a WHERE v > 0", [1, 2, 3, 4, 6]),
        ("UPDATE dbo.a SET v = 1 WHERE id = 5", "SELECT w FROM dbo.a WHERE v > 0", ["a", "b", "c", "d", "e", "f"]),
        # a hint says which one is read
        ("UPDATE dbo.a SET v = 99 WHERE id = 1", "SELECT id FROM dbo.a WITH (INDEX(1))", [1, 2, 3, 4, 5, 6]),
        ("UPDATE dbo.a SET v = 99 WHERE id = 1", "SELECT w FROM dbo.a WITH (INDEX(by_v))", [*"abcdefa"]),
        ("UPDATE dbo.a SET v = 1 WHERE id = 5", "SELECT w FROM dbo.a WITH (INDEX([by_v])) WHERE id > 0", [*"abcdf"]),
    ],
)
def test_a_row_that_moves_is_met_twice_or_never(
    sandbox: Sandbox, one: Client, other: Client, moves: str, statement: str, met: list[object]
) -> None:
    assert read_while(sandbox, one, statement, lambda: other.run(moves)) == met


def test_an_index_that_a_hint_names_must_be_there(one: Client) -> None:
    assert one.error("SELECT id FROM dbo.a WITH (INDEX(no_such))") == 308


@pytest.mark.parametrize("statement", ["SELECT id FROM dbo.a", "SELECT id FROM dbo.a WITH (TABLOCK)"])
def test_row_versions_are_of_one_moment(sandbox: Sandbox, one: Client, other: Client, statement: str) -> None:
    one.run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT BEGIN TRAN SELECT 1 FROM dbo.b")
    found = read_while(sandbox, one, "SELECT id FROM dbo.a", lambda: other.run("UPDATE dbo.a SET id = 9 WHERE id = 1"))
    assert found == [1, 2, 3, 4, 5, 6]


MOVES = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), max_size=6)


@settings(max_examples=40)
@given(moves=st.lists(MOVES, max_size=4), size=st.integers(1, 5))
def test_what_is_met_is_what_the_model_of_an_index_says(moves: list[list[tuple[int, int]]], size: int) -> None:
    """The model: a sorted list, read behind the last key, ``size`` keys at a time; moves happen between."""
    with_locks, rows = Sandbox(agent_running=False), {key: key for key in range(1, 9)}
    with_locks.execute("ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT OFF")
    with_locks.execute("CREATE TABLE dbo.m (k int PRIMARY KEY, v int)")
    with_locks.execute("INSERT dbo.m VALUES " + ", ".join(f"({key}, {key})" for key in rows))
    steps = [[(old, new) for old, new in each] for each in moves]

    def apply(keys: dict[int, int], step: list[tuple[int, int]]) -> list[str]:
        statements = []
        for old, new in step:
            if old in keys and new not in keys:
                keys[new] = keys.pop(old)
                statements.append(f"UPDATE dbo.m SET k = {new} WHERE k = {old}")
        return statements

    expected, model, last, done = [], dict(rows), 0, 0
    while True:
        piece = sorted(key for key in model if key > last)[:size]
        expected += [model[key] for key in piece]
        if len(piece) < size:
            break
        last = piece[-1]
        if done < len(steps):
            apply(model, steps[done])
            done += 1

    real = dict(rows)
    with_locks.instance.piece_rows = size

    def meanwhile(table: str, pieces: int) -> None:
        if pieces <= len(steps):
            for statement in apply(real, steps[pieces - 1]):
                with_locks.execute(statement)

    with_locks.instance.between_pieces = meanwhile
    found = [row["v"] for row in with_locks.execute("SELECT v FROM dbo.m")[0].to_pylist()]
    with_locks.instance.close()
    assert found == expected


# What stays locked


def test_a_repeatable_read_keeps_its_rows(one: Client, other: Client) -> None:
    one.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ BEGIN TRAN SELECT * FROM dbo.a WHERE id < 3")
    assert other.error("UPDATE dbo.a SET v = 0 WHERE id = 2") == 1222
    assert other.error("DELETE dbo.a WHERE id = 1") == 1222
    other.run("UPDATE dbo.a SET v = 0 WHERE id = 5 INSERT dbo.a VALUES (0, 0, 'new')")
    assert [row[0] for row in one.run("SELECT w FROM dbo.a WHERE id < 3")] == ["new", "a", "b"]
    one.run("COMMIT")
    other.run("UPDATE dbo.a SET v = 0 WHERE id = 2")


@pytest.mark.parametrize(
    ("level", "hint"),
    [("SERIALIZABLE", ""), ("READ COMMITTED", "WITH (HOLDLOCK)"), ("REPEATABLE READ", "WITH (TABLOCK)")],
)
def test_a_kept_range_lets_nobody_insert(one: Client, other: Client, level: str, hint: str) -> None:
    one.run(f"SET TRANSACTION ISOLATION LEVEL {level} BEGIN TRAN SELECT * FROM dbo.a {hint}")
    assert other.error("INSERT dbo.a VALUES (9, 9, 'new')") == 1222
    assert len(other.run("SELECT * FROM dbo.a")) == 6
    other.run("UPDATE dbo.b SET v = 2")
    one.run("COMMIT")
    other.run("INSERT dbo.a VALUES (9, 9, 'new')")


def test_a_table_lock_of_read_committed_ends_with_its_statement(one: Client, other: Client) -> None:
    one.run("BEGIN TRAN SELECT * FROM dbo.a WITH (TABLOCK)")
    other.run("INSERT dbo.a VALUES (9, 9, 'new')")


def test_a_closed_table_is_read_by_nobody_with_locks(one: Client, other: Client) -> None:
    one.run("BEGIN TRAN SELECT * FROM dbo.a WITH (TABLOCKX)")
    assert other.error("SELECT * FROM dbo.a WHERE id = 2") == 1222
    assert other.error("UPDATE dbo.a SET v = 0 WHERE id = 2") == 1222
    assert len(other.run("SELECT * FROM dbo.a WITH (NOLOCK)")) == 6
    other.run("UPDATE dbo.b SET v = 2")
    one.run("COMMIT")
    assert other.run("SELECT w FROM dbo.a WHERE id = 2") == [("b",)]


def test_a_closed_table_is_read_by_row_versions(one: Client, other: Client) -> None:
    one.run("ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON BEGIN TRAN SELECT * FROM dbo.a WITH (TABLOCKX)")
    assert len(other.run("SELECT * FROM dbo.a")) == 6
    assert other.error("SELECT * FROM dbo.a WITH (READCOMMITTEDLOCK)") == 1222


LEVEL = "SET TRANSACTION ISOLATION LEVEL"


@pytest.mark.parametrize(
    "since",
    [
        "SELECT TOP (0) * FROM dbo.a WITH (TABLOCKX)",
        "UPDATE dbo.a SET v = 0 WHERE id = 2",
        "SELECT * FROM dbo.a WITH (UPDLOCK)",
        f"{LEVEL} REPEATABLE READ SELECT * FROM dbo.a",
        f"{LEVEL} SERIALIZABLE SELECT * FROM dbo.a",
        "ALTER TABLE dbo.a ADD x int",
        "INSERT dbo.b VALUES (3, 3) DELETE dbo.a",
    ],
)
def test_a_save_point_gives_locks_back(one: Client, other: Client, since: str) -> None:
    one.run(f"BEGIN TRAN SAVE TRAN s {since}")
    assert other.error("UPDATE dbo.a SET v = 1 WHERE id = 2") == 1222
    one.run("ROLLBACK TRAN s")
    other.run("INSERT dbo.a VALUES (9, 9, 'new') ALTER TABLE dbo.b ADD z int")
    # what others have done meanwhile is seen, and stays
    assert one.run("SELECT COUNT(*) FROM dbo.a") == [(7,)]
    one.run("INSERT dbo.b VALUES (7, 7, 7) COMMIT")
    assert other.run("SELECT id, z FROM dbo.b ORDER BY id") == [(1, None), (7, 7)]


@pytest.mark.parametrize(
    ("before", "since"),
    [
        ("UPDATE dbo.a SET v = 0 WHERE id = 2", "SELECT TOP (0) * FROM dbo.b WITH (TABLOCKX)"),
        (f"{LEVEL} REPEATABLE READ SELECT * FROM dbo.a", "UPDATE dbo.b SET v = 2"),
        (f"{LEVEL} SERIALIZABLE SELECT * FROM dbo.a", "DELETE dbo.b"),
    ],
)
def test_what_was_locked_before_the_save_point_stays_so(one: Client, other: Client, before: str, since: str) -> None:
    one.run(f"BEGIN TRAN {before} SAVE TRAN s {since} ROLLBACK TRAN s")
    other.run("UPDATE dbo.b SET v = 5")
    assert other.error("UPDATE dbo.a SET v = 1 WHERE id = 2") == 1222
    assert other.error("DROP TABLE dbo.a") == 1222
    one.run("COMMIT")
    other.run("UPDATE dbo.a SET v = 1 WHERE id = 2")
    assert other.run("SELECT v FROM dbo.b") == [(5,)]


def test_a_lock_that_was_converted_since_stays(one: Client, other: Client) -> None:
    one.run(f"{LEVEL} REPEATABLE READ BEGIN TRAN SELECT * FROM dbo.a WHERE id = 1 SAVE TRAN s")
    one.run("SELECT * FROM dbo.a WITH (TABLOCKX) WHERE id = 3 ROLLBACK TRAN s")
    assert other.error("SELECT * FROM dbo.a WHERE id = 5") == 1222
    one.run("COMMIT BEGIN TRAN SELECT * FROM dbo.a WHERE id = 1 SAVE TRAN s")
    one.run("UPDATE dbo.a SET v = 0 WHERE id = 3 ROLLBACK TRAN s")
    other.run("UPDATE dbo.a SET v = 1 WHERE id = 3")
    assert other.error("UPDATE dbo.a SET v = 1 WHERE id = 1") == 1222


def test_a_lock_for_update_keeps_writers_out_and_readers_not(one: Client, other: Client) -> None:
    one.run("BEGIN TRAN SELECT * FROM dbo.a WITH (UPDLOCK) WHERE id = 1")
    assert other.error("UPDATE dbo.a SET v = 0 WHERE id = 1") == 1222
    assert len(other.run("SELECT * FROM dbo.a")) == 6


# What is not committed


@pytest.mark.parametrize(
    ("before", "hint"), [("", "WITH (NOLOCK)"), ("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", "")]
)
def test_a_dirty_read_sees_open_writers_rows(one: Client, other: Client, before: str, hint: str) -> None:
    many = ", ".join(f"({n}, {n}, NULL)" for n in range(100, 140))
    one.run(f"BEGIN TRAN UPDATE dbo.a SET v = v + 1 WHERE id < 3 DELETE dbo.a WHERE id > 4 INSERT dbo.a VALUES {many}")
    expected = [(1, 11), (2, 21), (3, 30), (4, 40), *((n, n) for n in range(100, 140))]
    assert sorted(other.run(f"{before} SELECT id, v FROM dbo.a {hint}")) == expected
    one.run("ROLLBACK")
    assert sorted(other.run(f"SELECT id FROM dbo.a {hint}")) == [(n,) for n in range(1, 7)]


def test_rows_that_others_have_changed_are_skipped(one: Client, other: Client) -> None:
    one.run(
        "BEGIN TRAN UPDATE dbo.a SET v = v + 1 WHERE id < 3 DELETE dbo.a WHERE id = 6 INSERT dbo.a VALUES (7, 7, '')"
    )
    assert sorted(other.run("SELECT id, v FROM dbo.a WITH (READPAST)")) == [(3, 30), (4, 40), (5, 50)]
    one.run("COMMIT")
    assert len(other.run("SELECT id FROM dbo.a WITH (READPAST)")) == 6


@pytest.mark.parametrize("level", ["SERIALIZABLE", "SNAPSHOT", "READ UNCOMMITTED"])
@pytest.mark.parametrize("hints", ["READPAST", "UPDLOCK, READPAST", "HOLDLOCK, READPAST"])
def test_rows_are_skipped_in_few_isolation_levels(one: Client, other: Client, level: str, hints: str) -> None:
    one.run("BEGIN TRAN UPDATE dbo.a SET v = 0 WHERE id = 1")
    other.run(f"SET TRANSACTION ISOLATION LEVEL {level}")
    assert other.error(f"SELECT id FROM dbo.a WITH ({hints})") == 650
    other.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    assert sorted(other.run("SELECT id FROM dbo.a WITH (READPAST)")) == [(n,) for n in range(2, 7)]


@pytest.mark.parametrize(
    ("level", "hints"), [("READ COMMITTED", "HOLDLOCK, READPAST"), ("SERIALIZABLE", "READCOMMITTEDLOCK, READPAST")]
)
def test_what_is_not_known_of_skipping_is_refused(one: Client, other: Client, level: str, hints: str) -> None:
    assert other.error(f"SET TRANSACTION ISOLATION LEVEL {level} SELECT id FROM dbo.a WITH ({hints})") == 50000


def test_ddl_that_is_not_committed_is_waited_for_by_all(one: Client, other: Client) -> None:
    one.run("BEGIN TRAN ALTER TABLE dbo.a ADD x int")
    for statement in (
        "SELECT * FROM dbo.a",
        "SELECT * FROM dbo.a WITH (NOLOCK)",
        "SELECT name FROM sys.columns",
        "SELECT name FROM sys.tables",
    ):
        assert other.error(statement) == 1222
    assert other.run("SELECT * FROM dbo.b") == [(1, 0)]
    one.run("COMMIT")
    assert len(other.run("SELECT name FROM sys.columns WHERE object_id = OBJECT_ID('dbo.a')")) == 4


def test_harsh_databases_read_in_each_way_and_say_so() -> None:
    server = Sandbox(agent_running=False, harsh=[Point.ISOLATION], seed=3)
    found = set()
    for number in range(12):
        server.create_database(f"d{number}")
        options = server.execute(OPTIONS, f"d{number}")[0].to_pylist()[0]
        by_versions, by_snapshots = options["is_read_committed_snapshot_on"], options["snapshot_isolation_state"]
        found.add((by_versions, by_snapshots))
        server.execute("CREATE TABLE dbo.t (id int PRIMARY KEY) INSERT dbo.t VALUES (1)", f"d{number}")
        writer, reader = (Client(server.instance, server.user, server.password, f"d{number}") for _ in range(2))
        writer.run("BEGIN TRAN INSERT dbo.t VALUES (2)")
        reader.run("SET LOCK_TIMEOUT 0")
        if by_versions:
            assert reader.run("SELECT id FROM dbo.t") == [(1,)]
        else:
            assert reader.error("SELECT id FROM dbo.t") == 1222
    server.instance.close()
    assert found == {(False, 0), (True, 0), (False, 1)}
