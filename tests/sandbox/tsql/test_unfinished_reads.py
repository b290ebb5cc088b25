"""Readers of schema cdc beside a scan or a cleanup that has written and not committed, each kind of them."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator

import pytest

from airflow_provider_mssql_cdc.sandbox.engine.harshness import Point
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from tests.sandbox.tsql.conftest import Client

NAME = "unfinished"
LEVEL = "SET TRANSACTION ISOLATION LEVEL"
OF_T = "SELECT id FROM cdc.dbo_t_CT{} ORDER BY id"
OF_U = "SELECT id FROM cdc.dbo_u_CT{} ORDER BY id"
MAPPED = "SELECT CONVERT(int, COUNT(*)) FROM cdc.lsn_time_mapping{} WHERE tran_id <> 0x00"
ALL = (
    "SELECT id FROM cdc.fn_cdc_get_all_changes_dbo_t(sys.fn_cdc_get_min_lsn('dbo_t'), sys.fn_cdc_get_max_lsn(), N'all')"
    " ORDER BY id"
)
NET = ALL.replace("all_changes", "net_changes")
ON = "ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON"
OFF = "ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT OFF"
TABLES = (
    "CREATE TABLE dbo.t (id int PRIMARY KEY) CREATE TABLE dbo.u (id int PRIMARY KEY) EXEC sys.sp_cdc_enable_db"
    " EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL, @supports_net_changes = 1"
    " EXEC sys.sp_cdc_enable_table 'dbo', 'u', @role_name = NULL"
)


@pytest.fixture
def one(sandbox: Sandbox, client: Client) -> Iterator[Client]:
    """A writer; dbo.t and dbo.u are tracked, read by locks, and have a change each."""
    sandbox.create_database(NAME)
    client.run(f"USE {NAME} ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON {OFF} {TABLES}")
    client.run("INSERT dbo.t VALUES (1)")
    client.run("INSERT dbo.u VALUES (1)")
    sandbox.step(NAME)
    yield client
    client.run("USE shop")
    sandbox.instance.drop_database(NAME)


@pytest.fixture
def reader(one: Client, connect: Callable[..., Client]) -> Iterator[Client]:
    opened = connect(database=NAME)
    yield opened
    opened.run(f"IF @@TRANCOUNT > 0 ROLLBACK {LEVEL} READ COMMITTED USE shop")


def numbers(client: Client, sql: str) -> list[int] | int:
    """The first column, or the number of the error."""
    try:
        return [row[0] for row in client.run(sql)]
    except SqlError as error:
        return error.number


def changed(one: Client) -> None:
    """Two transactions: three rows of dbo.t, and one of dbo.u."""
    one.run("INSERT dbo.t VALUES (2), (3), (4)")
    one.run("INSERT dbo.u VALUES (2)")


def during_a_scan(sandbox: Sandbox, look: Callable[[], object]) -> list[tuple[str, object]]:
    seen: list[tuple[str, object]] = []
    sandbox.step(NAME, within=lambda table: seen.append((table, look())))
    return seen


STEPS = ["dbo_t_ct", "dbo_t_ct", "dbo_u_ct", "lsn_time_mapping"]
BEFORE = [[1], [1], [2]]
AFTER = [[1, 2, 3, 4], [1, 2], [4]]
HALF = [1, 2, 3]


def all_three(client: Client, hint: str = "") -> list[list[int] | int]:
    return [numbers(client, sql.format(hint)) for sql in (OF_T, OF_U, MAPPED)]


def test_readers_by_locks_are_in_the_way_of_what_is_written_so_far(
    sandbox: Sandbox, one: Client, reader: Client
) -> None:
    changed(one)
    reader.run("SET LOCK_TIMEOUT 0")
    seen = during_a_scan(sandbox, lambda: all_three(reader))
    assert [table for table, _ in seen] == STEPS
    assert [found for _, found in seen] == [[1222, [1], [2]], [1222, [1], [2]], [1222, 1222, [2]], [1222, 1222, 1222]]
    assert all_three(reader) == AFTER


@pytest.mark.parametrize("level", ["READ COMMITTED", "SNAPSHOT"])
def test_readers_by_row_versions_see_what_was_before(sandbox: Sandbox, one: Client, reader: Client, level: str) -> None:
    changed(one)
    one.run(ON)
    reader.run(f"SET LOCK_TIMEOUT 0 {LEVEL} {level}")
    seen = during_a_scan(sandbox, lambda: [*all_three(reader), numbers(reader, ALL), numbers(reader, NET)])
    assert [found for _, found in seen] == [[*BEFORE, [1], [1]]] * 4
    assert [*all_three(reader), numbers(reader, NET)] == [*AFTER, AFTER[0]]


@pytest.mark.parametrize(
    ("level", "hint"), [("READ COMMITTED", " WITH (NOLOCK)"), ("READ UNCOMMITTED", ""), ("SNAPSHOT", None)]
)
def test_only_readers_of_what_is_not_committed_see_some_of_it(
    sandbox: Sandbox, one: Client, reader: Client, level: str, hint: str | None
) -> None:
    """One table before another."""
    changed(one)
    reader.run(f"SET LOCK_TIMEOUT 0 {LEVEL} {level}")
    seen = [found for _, found in during_a_scan(sandbox, lambda: all_three(reader, hint or ""))]
    if hint is None:
        assert seen == [BEFORE] * 4
    else:
        assert seen == [[HALF, [1], [2]], [AFTER[0], [1], [2]], [*AFTER[:2], [2]], AFTER]


def test_the_generated_functions_see_rows_that_are_not_committed_once_the_range_allows_it(
    sandbox: Sandbox, one: Client, reader: Client
) -> None:
    changed(one)
    reader.run(f"SET LOCK_TIMEOUT 0 {LEVEL} READ UNCOMMITTED")
    seen = during_a_scan(sandbox, lambda: [numbers(reader, ALL), numbers(reader, NET)])
    assert [found for _, found in seen] == [[[1], [1]]] * 3 + [[AFTER[0], AFTER[0]]]


def test_locked_rows_are_skipped(sandbox: Sandbox, one: Client, reader: Client) -> None:
    changed(one)
    seen = during_a_scan(sandbox, lambda: all_three(reader, " WITH (READPAST)"))
    assert [found for _, found in seen] == [BEFORE] * 4


@pytest.mark.parametrize("limit", ["", "SET LOCK_TIMEOUT 10000"])
@pytest.mark.parametrize(
    "sql", [OF_T.format(""), ALL.replace(" ORDER BY id", ""), "SELECT sys.fn_cdc_get_max_lsn()", MAPPED.format("")]
)
def test_who_waits_lets_the_scan_end(sandbox: Sandbox, one: Client, reader: Client, sql: str, limit: str) -> None:
    changed(one)
    reader.run(limit)
    waited: list[str] = []

    def read(table: str) -> None:
        waited.append(table)
        found = numbers(reader, sql)
        if sandbox.cdc(NAME).unfinished is None:
            assert found == numbers(one, sql)
            assert all_three(reader) == AFTER

    assert sandbox.step(NAME, within=read) == 2
    assert waited == (STEPS[:1] if sql.startswith("SELECT id FROM cdc.dbo_t") else STEPS)
    assert all_three(reader) == AFTER
    assert sandbox.step(NAME) == 0


def test_a_scan_ends_whatever_befalls_who_looks_on(sandbox: Sandbox, one: Client) -> None:
    changed(one)

    def fail(table: str) -> None:
        raise ValueError(table)

    with pytest.raises(ValueError, match="dbo_t_ct"):
        sandbox.step(NAME, within=fail)
    assert all_three(one) == AFTER


@pytest.mark.parametrize(
    "other",
    [
        "EXEC sys.sp_cdc_disable_table 'dbo', 'u', 'all'",
        "DECLARE @m binary(10) = sys.fn_cdc_get_max_lsn() EXEC sys.sp_cdc_cleanup_change_table 'dbo_u', @m",
        "DROP TABLE dbo.u",
    ],
)
def test_whatever_takes_rows_away_lets_the_scan_end_first(
    sandbox: Sandbox, one: Client, reader: Client, other: str
) -> None:
    changed(one)
    during_a_scan(sandbox, lambda: numbers(one, other))
    assert numbers(reader, OF_T.format("")) == AFTER[0]
    assert sandbox.cdc(NAME).backlog == 0


@pytest.mark.parametrize(
    ("level", "found"), [("REPEATABLE READ", AFTER[0]), ("SERIALIZABLE", 1205), ("READ COMMITTED", AFTER[0])]
)
def test_a_reader_that_keeps_out_what_is_still_to_be_written_is_a_deadlocks_victim(
    sandbox: Sandbox, one: Client, reader: Client, level: str, found: object
) -> None:
    changed(one)
    reader.run(f"{LEVEL} {level} BEGIN TRAN {OF_U.format('')}")
    seen = during_a_scan(sandbox, lambda: numbers(reader, OF_T.format("")))
    assert seen[0] == (STEPS[0], found)
    assert reader.value("@@TRANCOUNT") == (0 if found == 1205 else 1)
    assert all_three(one) == AFTER


def test_a_statement_of_two_tables_may_be_a_deadlocks_victim() -> None:
    server = Sandbox(agent_running=False, harsh=[Point.SCAN], seed=5)
    server.execute(f"{OFF} {TABLES} INSERT dbo.t VALUES (1) INSERT dbo.u VALUES (1)")
    server.step()
    client = Client(server.instance, server.user, server.password)
    sql = "SELECT COUNT(*) FROM cdc.dbo_u_CT AS u CROSS JOIN cdc.dbo_t_CT AS t"
    found: list[object] = []
    for number in range(2, 30):
        server.execute(f"INSERT dbo.t VALUES ({number})")
        server.execute(f"INSERT dbo.u VALUES ({number})")
        seen = []

        def look(table: str, seen: list[object] = seen) -> None:
            seen.append(numbers(client, sql))

        server.step(within=look)
        # u is read as it was before, and t as it is after
        assert seen[0] in (1205, [(number - 1) * number])
        assert numbers(client, sql) == [number * number]
        found.append(seen[0] == 1205)
    server.instance.close()
    assert {*found} == {True, False}


# Cleanup


@pytest.fixture
def old(sandbox: Sandbox, one: Client) -> Iterator[Client]:
    """Rows that are older than the retention, the last commit that is, and rows that are not."""
    sandbox.set_time(datetime.datetime(2039, 12, 1))
    changed(one)
    sandbox.set_time(datetime.datetime(2039, 12, 2))
    one.run("INSERT dbo.u VALUES (3)")
    sandbox.set_time(datetime.datetime(2040, 1, 1))
    one.run("INSERT dbo.t VALUES (5)")
    one.run("INSERT dbo.u VALUES (5)")
    sandbox.step(NAME)
    yield one
    sandbox.set_time(None)


CLEANED = ["change_tables", "dbo_t_ct", "dbo_t_ct", "dbo_u_ct", "dbo_u_ct", "lsn_time_mapping"]
FULL, CLEAN = [[1, 2, 3, 4, 5], [1, 2, 3, 5]], [[5], [3, 5]]


def changes_of(client: Client, hint: str = "") -> list[list[int] | int]:
    return [numbers(client, sql.format(hint)) for sql in (OF_T, OF_U)]


def during_a_cleanup(sandbox: Sandbox, look: Callable[[], object]) -> list[tuple[str, object]]:
    seen: list[tuple[str, object]] = []
    sandbox.cleanup(NAME, within=lambda table: seen.append((table, look())))
    return seen


def test_readers_beside_a_cleanup(sandbox: Sandbox, old: Client, reader: Client) -> None:
    reader.run("SET LOCK_TIMEOUT 0")
    seen = during_a_cleanup(
        sandbox,
        lambda: [changes_of(reader), changes_of(reader, " WITH (NOLOCK)"), changes_of(reader, " WITH (READPAST)")],
    )
    assert [table for table, _ in seen] == CLEANED
    half = [3, 4, 5]
    assert [found for _, found in seen] == [
        [FULL, FULL, FULL],
        [[1222, FULL[1]], [half, FULL[1]], [half, FULL[1]]],
        [[1222, FULL[1]], [[5], FULL[1]], [[5], FULL[1]]],
        [[[5], 1222], [[5], [2, 3, 5]], [[5], [2, 3, 5]]],
        [[[5], 1222], CLEAN, CLEAN],
        [CLEAN, CLEAN, CLEAN],
    ]
    assert changes_of(reader) == CLEAN


def test_readers_by_row_versions_see_rows_until_their_delete_is_committed(
    sandbox: Sandbox, old: Client, reader: Client
) -> None:
    old.run(ON)
    seen = [found for _, found in during_a_cleanup(sandbox, lambda: changes_of(reader))]
    assert seen == [FULL, FULL, FULL, [[5], FULL[1]], [[5], FULL[1]], CLEAN]


def test_the_generated_functions_begin_at_the_mark_as_soon_as_that_is_committed(
    sandbox: Sandbox, old: Client, reader: Client
) -> None:
    """They wait for the mark, and see deletes that are not committed: of rows for which nobody may ask then."""
    cdc = sandbox.cdc(NAME)
    ((low, high),) = reader.run("SELECT sys.fn_cdc_get_min_lsn('dbo_t'), sys.fn_cdc_get_max_lsn()")
    sql = f"SELECT id FROM cdc.fn_cdc_get_all_changes_dbo_t(0x{{}}, 0x{high.hex()}, N'all') ORDER BY id"
    seen = during_a_cleanup(
        sandbox, lambda: [numbers(reader, sql.format(lsn.hex())) for lsn in (low, cdc.min_lsn("dbo_t"))]
    )
    assert [found for _, found in seen] == [[313, 313], *[[313, [5]]] * 5]


@pytest.mark.parametrize(
    ("level", "found"), [("REPEATABLE READ", 1205), ("SERIALIZABLE", 1205), ("READ COMMITTED", [5])]
)
def test_a_reader_can_be_the_victim_of_a_cleanup(
    sandbox: Sandbox, old: Client, reader: Client, level: str, found: object
) -> None:
    reader.run(f"{LEVEL} {level} BEGIN TRAN {OF_T.format('')}")
    seen = during_a_cleanup(sandbox, lambda: numbers(reader, OF_T.format("")))
    assert seen[1] == ("dbo_t_ct", found)
    assert changes_of(old) == CLEAN


# As the seed draws it


def test_a_scan_may_stay_unfinished_for_a_while() -> None:
    with Sandbox(harsh=[Point.SCAN], seed=3, capture_interval=3600) as server:
        server.execute(f"{OFF} {TABLES}")
        dirty = "SELECT (SELECT COUNT(*) FROM cdc.dbo_t_CT WITH (NOLOCK)) AS t,"
        dirty += " (SELECT COUNT(*) FROM cdc.dbo_u_CT WITH (NOLOCK)) AS u"
        states = set()
        for number in range(40):
            server.execute(f"BEGIN TRAN INSERT dbo.t VALUES ({number}) INSERT dbo.u VALUES ({number}) COMMIT")
            ((t, u),) = [tuple(row.values()) for row in server.execute(dirty)[0].to_pylist()]
            states.add(t - u)
            assert server.cdc().unfinished is None or server.cdc().unfinished.written
        server.capture.hold()
        assert server.cdc().unfinished is None
        server.step()
        for name in "tu":
            ids = server.execute(f"SELECT id FROM cdc.dbo_{name}_CT ORDER BY id")[0].column(0).to_pylist()
            assert ids == [*range(40)]
    assert {-1, 0, 1} <= states


def test_a_cleanup_may_stay_within_a_step_for_a_while() -> None:
    clock = [datetime.datetime(2026, 1, 1, 12)]
    with Sandbox(harsh=[Point.CLEANUP], seed=6, clock=lambda: clock[0], agent_running=False) as server:
        server.execute(f"{TABLES} INSERT dbo.t VALUES (1), (2), (3), (4)")
        server.step()
        clock[0] += datetime.timedelta(days=9)
        server.execute("INSERT dbo.t VALUES (5)")
        clock[0] += datetime.timedelta(days=9)
        server.execute("INSERT dbo.t VALUES (6)")
        server.step()
        kept, found = server.backup(), set()
        dirty = "SELECT COUNT(*) AS n FROM cdc.dbo_t_CT WITH (NOLOCK)"
        for draws in range(90):
            server.restore(None, kept)
            server.harshness.begin(str(draws))
            for _ in range(5):
                server.cleanup()
                rows = [server.execute(sql)[0].to_pylist()[0]["n"] for sql in (dirty, dirty.split(" WITH")[0])]
                found.add(tuple(rows))
            assert rows == [2, 2]
    assert found == {(6, 6), (2, 2), (4, 6), (2, 6)}
