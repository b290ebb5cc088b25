"""What a harsh server's seed lets others do between two reads: scans, commits, steps of the cleanup, and DDL."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from airflow_provider_mssql_cdc.sandbox.engine.harshness import Point
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from tests.sandbox.tsql.conftest import Client

ROUNDS = 24
STEPS = (Point.SCAN, Point.STEP, Point.MEANWHILE)
BY_LOCKS = "ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT OFF"
CAPTURED = "(SELECT COUNT(*) FROM cdc.dbo_t_CT)"
MAPPED = "(SELECT COUNT(*) FROM cdc.lsn_time_mapping)"
MARK = "(SELECT CONVERT(varchar(22), MIN(start_lsn), 1) FROM cdc.change_tables)"
CLEANED = f"CONCAT({MARK}, ' ', {CAPTURED}, ' ', {MAPPED})"


class Clock:
    """Stands still until a test sets it."""

    def __init__(self) -> None:
        self.now = datetime.datetime(2026, 1, 1, 12)

    def __call__(self) -> datetime.datetime:
        return self.now


@contextmanager
def started(*points: Point, seed: int = 3) -> Iterator[tuple[Sandbox, Clock]]:
    """A server with dbo.t, which is tracked, read by locks in pieces of two rows, and kept for a minute."""
    clock = Clock()
    with Sandbox(harsh=points, seed=seed, clock=clock, capture_interval=3600) as server:
        server.execute(
            f"{BY_LOCKS} CREATE TABLE dbo.t (id int PRIMARY KEY, v int NULL) EXEC sys.sp_cdc_enable_db"
            " EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL"
            " EXEC sys.sp_cdc_change_job 'cleanup', @retention = 1"
        )
        while not server.cdc().relation("dm_cdc_log_scan_sessions")[1]:
            pass  # what the capture job scans by itself, before it waits for an hour
        server.instance.piece_rows = 2
        server.execute("INSERT dbo.t VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0)")
        server.step()
        server.harshness.begin("a test")
        yield server, clock


def rows_of(server: Sandbox, sql: str) -> list[object]:
    """The values of the first row of each result set."""
    return [value for table in server.execute(sql) for value in table.to_pylist()[0].values()]


def to_scan(server: Sandbox, clock: Clock, number: int) -> None:
    server.execute(f"INSERT dbo.t VALUES ({number}, 0)")


def to_clean(server: Sandbox, clock: Clock, number: int) -> None:
    clock.now += datetime.timedelta(minutes=2)
    server.execute(f"INSERT dbo.t VALUES ({number}, 0)")
    server.step()


def to_commit(server: Sandbox, clock: Clock, number: int) -> None:
    server.meanwhile([f"BEGIN TRAN INSERT dbo.t VALUES ({number}, 0) INSERT dbo.t VALUES ({-number}, 0) COMMIT"])


def to_alter(server: Sandbox, clock: Clock, number: int) -> None:
    server.meanwhile([f"ALTER TABLE dbo.t ADD c{number} int NULL"])


Prepare = Callable[[Sandbox, Clock, int], None]
COLUMNS = "(SELECT COUNT(*) FROM sys.columns WHERE object_id = OBJECT_ID('dbo.t'))"
# a statement reads a view of the catalogue once
COLUMNS_TOO = "(SELECT COUNT(*) FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_SCHEMA = 'dbo' AND TABLE_NAME = 't')"
LESS, MORE = "(SELECT COUNT(*) FROM dbo.t WHERE id < 0)", "(SELECT COUNT(*) FROM dbo.t WHERE id > 99)"
KINDS = {
    "scan": (to_scan, CAPTURED, CAPTURED),
    "cleanup": (to_clean, CLEANED, CLEANED),
    "commit": (to_commit, LESS, MORE),
    "ddl": (to_alter, COLUMNS, COLUMNS_TOO),
}
FORMS = {"batch": "SELECT {} AS a SELECT {} AS b", "statement": "SELECT {} AS a, {} AS b"}


def moved(prepare: Prepare, sql: str, points: tuple[Point, ...], seed: int = 3, setting: str = "") -> list[bool]:
    """Of each round, whether the two reads differ."""
    found = []
    with started(*points, seed=seed) as (server, clock):
        server.execute(setting or BY_LOCKS)
        for number in range(100, 100 + ROUNDS):
            prepare(server, clock, number)
            one, other = rows_of(server, sql)
            found.append(one != other)
            server.meanwhile(()).finish()
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.in_turn
def test_the_seed_draws_what_happens_between_two_reads(kind: str, form: str) -> None:
    prepare, one, other = KINDS[kind]
    sql = FORMS[form].format(one, other)
    drawn = moved(prepare, sql, STEPS)
    assert {*drawn} == {True, False}
    assert moved(prepare, sql, STEPS) == drawn
    assert moved(prepare, sql, STEPS, seed=4) != drawn
    assert not any(moved(prepare, sql, ()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_that_reads_by_row_versions(kind: str) -> None:
    prepare, one, other = KINDS[kind]
    by_versions = BY_LOCKS.replace("OFF", "ON")
    assert any(moved(prepare, FORMS["batch"].format(one, other), STEPS, setting=by_versions))
    if kind != "ddl":
        # of one moment, but for the catalogue, which has no versions
        assert not any(moved(prepare, FORMS["statement"].format(one, other), STEPS, setting=by_versions))


# The cleanup


@pytest.mark.in_turn
def test_steps_of_the_cleanup_come_in_their_order_until_nothing_is_old() -> None:
    found = set()
    with started(Point.STEP) as (server, clock):
        server.execute("EXEC sys.sp_cdc_change_job 'cleanup', @threshold = 4")
        to_clean(server, clock, 99)
        for number in range(100, 112):
            to_clean(server, clock, number)
            seen = [tuple(rows_of(server, f"SELECT {MARK} AS m, {CAPTURED} AS c, {MAPPED} AS l")) for _ in range(60)]
            # a mark first, then rows below it, then the mapping; the last commit and the one at the mark stay
            assert seen == sorted(seen, key=lambda state: (state[0], -state[1], -state[2]))  # type: ignore[operator]
            assert seen[-1][1] <= 2  # type: ignore[operator]
            found.add(len(dict.fromkeys(seen)))
            assert rows_of(server, "SELECT COUNT(*) AS n FROM dbo.t") == [number - 93]
    assert max(found) > 2


@pytest.mark.parametrize("why", ["held", "stopped", "no job", "kept", "young"])
def test_no_step_where_the_cleanup_would_not_work(why: str) -> None:
    with started(Point.STEP) as (server, clock):
        server.execute("EXEC sys.sp_cdc_change_job 'cleanup', @retention = 1000" if why == "young" else "SELECT 1 AS a")
        if why == "no job":
            server.execute("EXEC sys.sp_cdc_drop_job 'cleanup'")
        reader = Client(server.instance, server.user, server.password)
        if why == "kept":
            reader.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ BEGIN TRAN SELECT * FROM cdc.dbo_t_CT")
        if why == "held":
            server.capture.hold()
        if why == "stopped":
            server.capture.stop()
        to_clean(server, clock, 100)
        to_clean(server, clock, 101)
        assert len({reader.value(CLEANED) for _ in range(40)}) == 1
        reader.session.close()


def test_a_step_may_stay_unfinished_for_a_while() -> None:
    dirty, found = CAPTURED.replace("CT)", "CT WITH (NOLOCK))"), set()
    with started(Point.STEP) as (server, clock):
        for number in range(100, 140):
            to_clean(server, clock, number)
            server.execute(f"SELECT {MARK} AS m")
            seen, is_there = rows_of(server, f"SELECT {dirty} AS a"), server.cdc().unfinished is not None
            found.add(is_there)
            assert not is_there or rows_of(server, f"SELECT {CAPTURED} AS a")[0] <= seen[0]  # type: ignore[operator]
    assert found == {True, False}


# The supply


def test_statements_happen_in_their_order_each_once_and_the_rest_at_the_end() -> None:
    with started(Point.MEANWHILE) as (server, _):
        server.execute("CREATE TABLE dbo.done (n int IDENTITY PRIMARY KEY, what int)")
        statements = [f"INSERT dbo.done VALUES ({i})" for i in range(30)]
        supply = server.meanwhile(statements[:20])
        assert server.meanwhile(iter(statements[20:])) is supply
        for _ in range(40):
            server.execute("SELECT 1 AS a SELECT 2 AS b")
        assert supply.left == statements[-len(supply.left) :]
        assert 0 < len(supply.left) < 30
        supply.finish()
        assert supply.left == []
        done = server.execute("SELECT what FROM dbo.done ORDER BY n")[0].column(0).to_pylist()
        assert done == [*range(30)]


def test_a_statement_that_fails_is_told_of_at_the_end() -> None:
    with started(Point.MEANWHILE) as (server, _):
        supply = server.meanwhile(["INSERT dbo.t VALUES (1, 1)", "INSERT dbo.t VALUES (6, 1)"])
        while supply.left:
            server.execute("SELECT 1 AS a")
        assert rows_of(server, "SELECT COUNT(*) AS n FROM dbo.t") == [6]
        with pytest.raises(SqlError, match="duplicate key"):
            supply.finish()
        supply.finish()


def test_who_would_wait_for_the_reader_comes_later_and_whole() -> None:
    with started(Point.MEANWHILE) as (server, _):
        server.execute("CREATE TABLE dbo.u (id int PRIMARY KEY)")
        both = "BEGIN TRAN INSERT dbo.u VALUES (1) UPDATE dbo.t SET v = v + 1 WHERE id = 2 COMMIT"
        supply = server.meanwhile([both, "ALTER TABLE dbo.t ADD more int NULL"])
        reader = Client(server.instance, server.user, server.password)
        reader.run("BEGIN TRAN UPDATE dbo.t SET v = 5 WHERE id = 2")
        assert {reader.value("(SELECT v FROM dbo.t WHERE id = 2)") for _ in range(40)} == {5}
        assert reader.value("(SELECT COUNT(*) FROM dbo.u)") == 0
        assert len(supply.left) == 2
        reader.run("COMMIT")
        while supply.left:
            reader.run("SELECT * FROM dbo.t")
        assert reader.value("(SELECT v FROM dbo.t WHERE id = 2)") == 6
        assert reader.value("(SELECT COUNT(*) FROM dbo.u)") == 1
        reader.session.close()


def test_what_a_statement_reads_keeps_its_definition() -> None:
    # of each piece, how much was left then
    left: list[int] = []
    with started(Point.MEANWHILE) as (server, _):
        server.execute("CREATE TABLE dbo.u (id int PRIMARY KEY)")
        reader = Client(server.instance, server.user, server.password)
        for number in range(ROUNDS):
            supply = server.meanwhile([f"ALTER TABLE dbo.t ADD c{number} int NULL"])
            server.instance.between_pieces = lambda table, pieces, supply=supply: left.append(len(supply.left))
            reader.run("SELECT * FROM dbo.t")
            server.instance.between_pieces = lambda table, pieces: None
            # before all pieces or after them
            assert len({*left}) == 1
            supply.finish()
            assert len(reader.columns[0]) == 2 + number + (not left[0])
            left.clear()
        # another table's may change
        found = set()
        for number in range(ROUNDS):
            supply = server.meanwhile([f"ALTER TABLE dbo.u ADD c{number} int NULL"])
            server.instance.between_pieces = lambda table, pieces, supply=supply: left.append(len(supply.left))
            reader.run("SELECT * FROM dbo.t")
            found.add(len({*left}))
            left.clear()
            supply.finish()
        assert found == {1, 2}
        reader.session.close()


def test_a_change_table_stays_while_a_statement_reads_it() -> None:
    instances = "(SELECT COUNT(*) FROM cdc.change_tables)"
    found: set[object] = set()
    with started(Point.MEANWHILE) as (server, _):
        for number in range(ROUNDS):
            server.execute(
                f"CREATE TABLE dbo.t{number} (id int PRIMARY KEY)"
                f" EXEC sys.sp_cdc_enable_table 'dbo', 't{number}', @role_name = NULL"
            )
            supply = server.meanwhile([f"EXEC sys.sp_cdc_disable_table 'dbo', 't{number}', 'all'"])
            read = CAPTURED.replace("dbo_t", f"dbo_t{number}")
            try:
                found.add(tuple(rows_of(server, f"SELECT {read} AS a, {instances} AS b")))
            except SqlError as error:
                found.add(error.number)
            supply.finish()
    assert found == {(0, 2), 208}


@pytest.mark.parametrize("hint", ["WITH (TABLOCK)", "WITH (HOLDLOCK)", "WITH (REPEATABLEREAD)", ""])
def test_a_statement_that_has_locks_of_its_own_is_not_disturbed(hint: str) -> None:
    found = set()
    with started(Point.MEANWHILE) as (server, clock):
        for number in range(100, 100 + ROUNDS):
            to_commit(server, clock, number)
            ids = server.execute(f"SELECT id FROM dbo.t {hint}")[0].column(0).to_pylist()
            found.add((-number in ids, number in ids))
            server.meanwhile(()).finish()
    assert ((False, True) in found) == (hint == "")
    assert (True, True) in found or (False, False) in found


def test_rows_that_are_kept_are_kept_from_their_piece_on() -> None:
    with started(Point.MEANWHILE) as (server, _):
        reader = Client(server.instance, server.user, server.password)
        reader.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        for number in range(ROUNDS):
            supply = server.meanwhile([f"UPDATE dbo.t SET v = {number + 1} WHERE id = 1"])
            reader.run("BEGIN TRAN")
            (first, *_), (again, *_) = (reader.run("SELECT id, v FROM dbo.t") for _ in range(2))
            assert first == again
            reader.run("COMMIT")
            supply.finish()
        reader.session.close()


def test_none_happens_while_no_commit_can_be_seen() -> None:
    with started(Point.MEANWHILE) as (server, _):
        supply = server.meanwhile(["INSERT dbo.t VALUES (6, 0)"])
        server.visibility.hold()
        for _ in range(40):
            server.execute("SELECT * FROM dbo.t")
        assert len(supply.left) == 1
        server.visibility.release()
        while supply.left:
            server.execute("SELECT * FROM dbo.t")


def test_the_reader_goes_on_in_the_collation_of_its_database() -> None:
    with started(Point.MEANWHILE) as (server, _):
        server.create_database("other", "Latin1_General_BIN2")
        supply = server.meanwhile(["CREATE TABLE dbo.x (id int)"] + ["INSERT dbo.x VALUES (1)"] * 20, "other")
        while supply.left:
            sql = "SELECT (SELECT COUNT(*) FROM dbo.t) AS n, CASE WHEN 'a' = 'A' THEN 1 ELSE 0 END AS same"
            assert rows_of(server, sql) == [5, 1]
