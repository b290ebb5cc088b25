"""One moment for all that a snapshot transaction, or a statement that reads by row versions, sees of CDC."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_provider_mssql_cdc.sandbox.catalog import changes
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from tests.sandbox.tsql.conftest import Client, Rows

SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL SNAPSHOT BEGIN TRAN"
READS = (
    "SELECT id, v FROM dbo.t ORDER BY id",
    "SELECT [__$start_lsn], [__$operation] AS op, id, v FROM cdc.dbo_t_CT ORDER BY [__$start_lsn], [__$seqval], op",
    "SELECT start_lsn, tran_end_time, tran_id FROM cdc.lsn_time_mapping ORDER BY start_lsn",
    "SELECT capture_instance, start_lsn FROM cdc.change_tables ORDER BY capture_instance",
    "SELECT object_id, column_name, column_ordinal FROM cdc.captured_columns ORDER BY object_id, column_ordinal",
    "SELECT ddl_command, ddl_lsn FROM cdc.ddl_history ORDER BY ddl_lsn",
    "SELECT sys.fn_cdc_get_max_lsn(), sys.fn_cdc_get_min_lsn('dbo_t')",
    "SELECT sys.fn_cdc_map_time_to_lsn('largest less than', '9999-01-01')",
    "SELECT start_lsn, sys.fn_cdc_map_lsn_to_time(start_lsn) FROM cdc.lsn_time_mapping ORDER BY start_lsn",
    "SELECT [__$start_lsn], id, v FROM cdc.fn_cdc_get_all_changes_dbo_t(sys.fn_cdc_get_min_lsn('dbo_t'),"
    " sys.fn_cdc_get_max_lsn(), N'all') ORDER BY [__$start_lsn], [__$seqval]",
    "SELECT [__$operation], id, v FROM cdc.fn_cdc_get_net_changes_dbo_t(sys.fn_cdc_get_min_lsn('dbo_t'),"
    " sys.fn_cdc_get_max_lsn(), N'all') ORDER BY id",
)


@pytest.fixture
def one(sandbox: Sandbox, client: Client) -> Iterator[Client]:
    """A tracked table with some captured changes, in a database of its own."""
    sandbox.create_database("moments")
    client.run("USE moments ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON")
    client.run(
        "CREATE TABLE dbo.t (id int PRIMARY KEY, v int) CREATE TABLE dbo.u (id int PRIMARY KEY)"
        " EXEC sys.sp_cdc_enable_db"
        " EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL, @supports_net_changes = 1"
    )
    change(sandbox, client, 1)
    yield client
    client.run("IF @@TRANCOUNT > 0 ROLLBACK SET TRANSACTION ISOLATION LEVEL READ COMMITTED USE shop")
    sandbox.instance.drop_database("moments")


@pytest.fixture
def other(one: Client, connect: Callable[..., Client]) -> Iterator[Client]:
    opened = connect(database="moments")
    yield opened
    opened.run("IF @@TRANCOUNT > 0 ROLLBACK USE shop")


def change(sandbox: Sandbox, client: Client, number: int) -> None:
    client.run(f"INSERT dbo.t VALUES ({number}, 0)")
    client.run(f"UPDATE dbo.t SET v = v + {number}")
    sandbox.step("moments")


def all_of(client: Client) -> list[Rows]:
    return [client.run(sql) for sql in READS]


@pytest.mark.parametrize("first", READS)
def test_a_snapshot_transaction_sees_one_moment(sandbox: Sandbox, one: Client, other: Client, first: str) -> None:
    before = all_of(one)
    other.run(f"{SNAPSHOT} {first}")
    change(sandbox, one, 2)
    one.run("EXEC sys.sp_cdc_cleanup_change_table 'dbo_t', NULL")
    assert all_of(other) == before
    change(sandbox, one, 3)
    assert all_of(other) == before
    other.run("COMMIT")
    after = all_of(one)
    assert all_of(other) == after
    assert [one_ != two for one_, two in zip(before, after, strict=True)] == [
        i not in (3, 4, 5) for i in range(len(READS))
    ]


def test_cleanup_takes_nothing_from_a_snapshot(sandbox: Sandbox, one: Client, other: Client) -> None:
    change(sandbox, one, 2)
    before = all_of(one)
    other.run(f"{SNAPSHOT} {READS[0]}")
    one.run("DECLARE @m binary(10) = sys.fn_cdc_get_max_lsn() EXEC sys.sp_cdc_cleanup_change_table 'dbo_t', @m")
    one.run("EXEC sys.sp_cdc_enable_table 'dbo', 'u', @role_name = NULL")
    assert all_of(other) == before
    assert len(one.run("SELECT capture_instance FROM cdc.change_tables")) == 2
    assert one.run(READS[6]) != before[6]


@pytest.mark.parametrize("seed", range(6))
def test_snapshots_of_many_moments_beside_each_other(
    sandbox: Sandbox, one: Client, connect: Callable[..., Client], seed: int
) -> None:
    """Each open snapshot keeps what a plain reader saw when it began, whatever commits, scans and cleanups follow."""
    drawn = random.Random(seed)
    open_ones: list[tuple[Client, list[Rows]]] = []
    for number in range(10, 30):
        match drawn.randrange(5):
            case 0 if len(open_ones) < 4:
                reader = connect(database="moments")
                reader.run(f"{SNAPSHOT} {drawn.choice(READS)}")
                open_ones.append((reader, all_of(one)))
            case 1:
                one.run(f"INSERT dbo.t VALUES ({number}, 1)")
            case 2 if drawn.random() < 0.5:
                mapped = one.run("SELECT start_lsn FROM cdc.lsn_time_mapping WHERE start_lsn >="
                                 " sys.fn_cdc_get_min_lsn('dbo_t') ORDER BY start_lsn")  # fmt: skip
                mark = drawn.choice(mapped)[0].hex()
                one.run(f"EXEC sys.sp_cdc_cleanup_change_table 'dbo_t', 0x{mark}")
            case _:
                change(sandbox, one, number)
        for reader, seen in open_ones:
            assert all_of(reader) == seen
    for reader, _ in open_ones:
        reader.run("COMMIT USE shop")


def test_views_of_the_catalogue_stay_current(one: Client, other: Client) -> None:
    tables = "SELECT name FROM sys.tables WHERE name IN ('u', 'w') ORDER BY name"
    scans = "SELECT COUNT(*) FROM sys.dm_cdc_log_scan_sessions"
    other.run(f"{SNAPSHOT} {READS[0]}")
    seen = other.run(scans)
    one.run("CREATE TABLE dbo.w (id int) EXEC sys.sp_cdc_scan")
    assert other.run(tables) == [("u",), ("w",)]
    assert other.run(scans) != seen


@pytest.mark.parametrize(
    ("ddl", "read", "number"),
    [
        ("ALTER TABLE dbo.u ADD w int", "SELECT * FROM dbo.u", 3961),
        ("CREATE INDEX ix ON dbo.u (id)", "SELECT * FROM dbo.u", 3961),
        ("DROP TABLE dbo.u", "SELECT * FROM dbo.u", 3961),
        ("CREATE TABLE dbo.w (id int)", "SELECT * FROM dbo.w", 3961),
        ("EXEC sys.sp_cdc_disable_table 'dbo', 't', 'all'", READS[1], 3961),
        ("EXEC sys.sp_cdc_disable_table 'dbo', 't', 'all'", READS[9], 3961),
        ("EXEC sys.sp_cdc_enable_table 'dbo', 'u', @role_name = NULL", "SELECT id FROM cdc.dbo_u_CT", 3961),
        ("ALTER TABLE dbo.t ALTER COLUMN v bigint EXEC sys.sp_cdc_scan", READS[1], 3961),
        ("ALTER TABLE dbo.t ALTER COLUMN v bigint EXEC sys.sp_cdc_scan", READS[10], 3961),
        ("EXEC sys.sp_cdc_disable_db", READS[2], 3961),
        ("EXEC sys.sp_cdc_disable_db", READS[6], 3961),
        ("EXEC sys.sp_cdc_disable_db EXEC sys.sp_cdc_enable_db", READS[3], 3961),
        ("CREATE TABLE dbo.w (id int)", "SELECT * FROM dbo.nosuch", 208),
    ],
)  # fmt: skip
def test_what_ddl_has_changed_since_cannot_be_read(
    one: Client, other: Client, ddl: str, read: str, number: int
) -> None:
    other.run(f"{SNAPSHOT} SELECT COUNT(*) FROM cdc.change_tables")
    one.run(ddl)
    assert other.error(read) == number


@pytest.mark.parametrize(
    ("ddl", "untouched"),
    [
        ("ALTER TABLE dbo.u ADD w int DROP TABLE dbo.u", READS),
        ("ALTER TABLE dbo.t ADD w int EXEC sys.sp_cdc_scan", READS[1:]),
        ("EXEC sys.sp_cdc_disable_table 'dbo', 't', 'all'", (*READS[2:9], READS[0])),
        ("BEGIN TRAN EXEC sys.sp_cdc_disable_db ROLLBACK BEGIN TRAN ALTER TABLE dbo.t ADD w int ROLLBACK", READS),
    ],
)
def test_what_ddl_has_not_changed_is_read_as_it_was(
    one: Client, other: Client, ddl: str, untouched: tuple[str, ...]
) -> None:
    before = [one.run(sql) for sql in untouched]
    other.run(f"{SNAPSHOT} SELECT COUNT(*) FROM cdc.change_tables")
    one.run(ddl)
    assert [other.run(sql) for sql in untouched] == before


def test_functions_begin_the_snapshot_and_are_refused_where_there_is_none(
    sandbox: Sandbox, one: Client, other: Client
) -> None:
    (newest,) = one.run("SELECT sys.fn_cdc_get_max_lsn()")
    other.run(f"{SNAPSHOT} SELECT sys.fn_cdc_get_max_lsn()")
    change(sandbox, one, 2)
    assert other.run("SELECT sys.fn_cdc_get_max_lsn()") == [newest]
    assert other.run("SELECT id FROM dbo.t") == [(1,)]
    other.run("COMMIT")
    one.run("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION OFF")
    assert other.error("SELECT sys.fn_cdc_get_max_lsn()") == 3952


def scanning(monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox) -> None:
    """Let the capture scan whenever a statement has read one thing of CDC."""
    read = changes.change_relation

    def then_scan(*arguments: Any) -> Any:
        found = read(*arguments)
        sandbox.step("moments")
        return found

    monkeypatch.setattr(changes, "change_relation", then_scan)


@pytest.mark.parametrize("versions", [True, False])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT (SELECT MAX([__$start_lsn]) FROM cdc.dbo_t_CT), (SELECT MAX(start_lsn) FROM cdc.lsn_time_mapping)",
        "SELECT (SELECT MAX(start_lsn) FROM cdc.lsn_time_mapping), sys.fn_cdc_get_max_lsn()",
        "SELECT MAX(c.[__$start_lsn]), MAX(m.start_lsn) FROM cdc.dbo_t_CT AS c"
        " FULL JOIN cdc.lsn_time_mapping AS m ON m.start_lsn = c.[__$start_lsn]",
        "SELECT MAX(m.start_lsn), MAX(c.[__$start_lsn]) FROM cdc.lsn_time_mapping AS m"
        " FULL JOIN cdc.fn_cdc_get_all_changes_dbo_t(sys.fn_cdc_get_min_lsn('dbo_t'), sys.fn_cdc_get_max_lsn(), N'all')"
        " AS c ON c.[__$start_lsn] = m.start_lsn",
    ],
)
def test_a_statement_by_row_versions_sees_one_moment(
    monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox, one: Client, versions: bool, sql: str
) -> None:
    """By locks it need not: each table is read at a moment of its own."""
    one.run(f"ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT {'ON' if versions else 'OFF'}")
    ((known,),) = one.run("SELECT sys.fn_cdc_get_max_lsn()")
    one.run("INSERT dbo.t VALUES (2, 2)")
    scanning(monkeypatch, sandbox)
    ((first, second),) = one.run(sql)
    assert known in (first, second)
    assert (first == second) is versions
