"""CDC through T-SQL: the golden scenario, ranges, procedures and permissions."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from airflow_provider_mssql_cdc.sandbox.types import SqlType
from tests.sandbox.tsql.conftest import Client

_GOLDEN = [
    "INSERT INTO dbo.t VALUES (1, 'x', 1), (2, 'y', 2)",
    "UPDATE dbo.t SET b = 5 WHERE id = 1",
    "BEGIN TRAN INSERT INTO dbo.t VALUES (3, 'z', 3) UPDATE dbo.t SET a = 'zz' WHERE id = 3 DELETE "
    "dbo.t WHERE id = 3 COMMIT",
    "UPDATE dbo.t SET id = 9 WHERE id = 2",
    "UPDATE dbo.t SET b = b",
    "BEGIN TRAN INSERT INTO dbo.t VALUES (4, 'w', 4) ROLLBACK",
]


@pytest.fixture
def golden(sandbox: Sandbox, connect: Callable[..., Client]) -> Iterator[Client]:
    """A database of its own with the golden scenario captured."""
    sandbox.create_database("golden")
    client = connect(database="golden")
    client.run("CREATE TABLE dbo.t (id int PRIMARY KEY, a varchar(10), b int) EXEC sys.sp_cdc_enable_db")
    client.run("EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = N'readers', @supports_net_changes = 1")
    for batch in _GOLDEN:
        client.run(batch)
    sandbox.step("golden")
    yield client
    client.run("USE master DROP DATABASE golden")


def test_golden_scenario(golden: Client) -> None:
    rows = golden.run(
        """
        SELECT DENSE_RANK() OVER (ORDER BY __$start_lsn), __$operation, __$command_id, __$update_mask, id, a, b
        FROM cdc.dbo_t_CT ORDER BY __$start_lsn, __$command_id, __$seqval, __$operation
        """
    )
    assert rows == [
        (1, 2, 1, b"\x07", 1, "x", 1),
        (1, 2, 2, b"\x07", 2, "y", 2),
        (2, 3, 1, b"\x04", 1, "x", 1),
        (2, 4, 1, b"\x04", 1, "x", 5),
        (3, 2, 1, b"\x07", 3, "z", 3),
        (3, 3, 2, b"\x02", 3, "z", 3),
        (3, 4, 2, b"\x02", 3, "zz", 3),
        (3, 1, 3, b"\x07", 3, "zz", 3),
        (4, 1, 1, b"\x07", 2, "y", 2),
        (4, 2, 2, b"\x07", 9, "y", 2),
    ]
    net = golden.run(
        """
        DECLARE @low binary(10) = sys.fn_cdc_get_min_lsn('dbo_t'), @high binary(10) = sys.fn_cdc_get_max_lsn()
        SELECT __$operation, id, a, b FROM cdc.fn_cdc_get_net_changes_dbo_t(@low, @high, N'all') ORDER BY id
        """
    )
    assert net == [(2, 1, "x", 5), (2, 9, "y", 2)]


def test_every_way_to_a_slice_gives_the_same_rows(golden: Client) -> None:
    """Rows as they lie, sorted by a query, of a derived table, and of EXISTS, at every pair of bounds."""
    commits = [row[0] for row in golden.run("SELECT DISTINCT __$start_lsn FROM cdc.dbo_t_CT ORDER BY __$start_lsn")]
    everything = golden.run("SELECT * FROM cdc.dbo_t_CT")
    edges = [bytes(10), *commits, b"\xff" * 10]
    for low in edges:
        for high in edges:
            wanted = [row for row in everything if low < row[0] <= high]
            bounds = f"[__$start_lsn] > 0x{low.hex()} AND [__$start_lsn] <= 0x{high.hex()}"
            assert golden.run(f"SELECT * FROM cdc.dbo_t_CT WHERE {bounds}") == wanted
            by_duck = (
                f"SELECT * FROM cdc.dbo_t_CT AS c WHERE {bounds} AND 1 = 1 ORDER BY __$start_lsn, "
                "__$command_id, __$operation, id"
            )
            assert golden.run(by_duck) == wanted
            derived = (
                f"SELECT id, o FROM (SELECT [__$start_lsn], id, [__$operation] AS o FROM cdc.dbo_t_CT) t WHERE {bounds}"
            )
            assert sorted(golden.run(derived)) == sorted((row[5], row[3]) for row in wanted)
            found = golden.run(
                f"SELECT CASE WHEN EXISTS (SELECT 1 FROM [cdc].[dbo_t_CT] WHERE {bounds}) THEN 1 ELSE 0 END"
            )
            assert found == [(int(bool(wanted)),)]


def test_window_over_a_slice_is_not_narrowed_by_what_is_outside(golden: Client) -> None:
    inner = (
        "SELECT id, __$start_lsn AS l, ROW_NUMBER() OVER (ORDER BY __$start_lsn, __$command_id, "
        "__$operation) AS n FROM cdc.dbo_t_CT"
    )
    last = golden.run("SELECT MAX(__$start_lsn) FROM cdc.dbo_t_CT")[0][0]
    assert golden.run(f"SELECT n FROM ({inner}) AS t WHERE l = 0x{last.hex()} ORDER BY n") == [(9,), (10,)]


def test_change_table_columns(golden: Client) -> None:
    golden.run("SELECT * FROM cdc.dbo_t_CT WHERE 1 = 0")
    assert [(c.name, c.type, c.nullable) for c in golden.columns[0]] == [
        ("__$start_lsn", SqlType("binary", 10), False),
        ("__$end_lsn", SqlType("binary", 10), True),
        ("__$seqval", SqlType("binary", 10), False),
        ("__$operation", SqlType("int"), False),
        ("__$update_mask", SqlType("varbinary", 128), True),
        ("id", SqlType("int"), True),
        ("a", SqlType("varchar", 10), True),
        ("b", SqlType("int"), True),
        ("__$command_id", SqlType("int"), True),
    ]


@pytest.mark.parametrize(
    ("call", "number"),
    [
        ("cdc.fn_cdc_get_all_changes_dbo_t(0x00, sys.fn_cdc_get_max_lsn(), N'all')", 313),
        ("cdc.fn_cdc_get_all_changes_dbo_t(sys.fn_cdc_get_min_lsn('dbo_t'), NULL, N'all')", 313),
        ("cdc.fn_cdc_get_all_changes_dbo_t(sys.fn_cdc_get_min_lsn('dbo_t'), 0xFF, N'all')", 313),
        ("cdc.fn_cdc_get_all_changes_nosuch(0x00, 0x00, N'all')", 208),
        ("cdc.nosuch_CT", 208),
    ],
)
def test_refused_reads(golden: Client, call: str, number: int) -> None:
    assert golden.error(f"SELECT * FROM {call}") == number


def test_ddl_on_a_tracked_table(golden: Client, sandbox: Sandbox) -> None:
    assert golden.error("TRUNCATE TABLE dbo.t") == 4711
    assert golden.error("EXEC sp_rename 'dbo.t.a', 'z', 'COLUMN'") == 4928
    golden.run("ALTER TABLE dbo.t ADD c int NULL INSERT INTO dbo.t VALUES (20, 'n', 1, 2)")
    sandbox.step("golden")
    assert golden.run("SELECT id, a, b FROM cdc.dbo_t_CT WHERE id = 20") == [(20, "n", 1)]
    assert golden.run("SELECT ddl_command, required_column_update FROM cdc.ddl_history") == [
        ("ALTER TABLE dbo.t ADD c int NULL", False)
    ]
    golden.run("EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL, @capture_instance = 'second'")
    golden.run("UPDATE dbo.t SET c = 3 WHERE id = 20")
    sandbox.step("golden")
    assert golden.run("SELECT __$operation, c FROM cdc.second_CT") == [(3, 2), (4, 3)]
    assert golden.error("EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL, @capture_instance = 'x'") == 22962
    golden.run("DROP TABLE dbo.t")
    assert golden.run("SELECT * FROM cdc.change_tables") == []


def test_who_may_do_what(golden: Client, sandbox: Sandbox, connect: Callable[..., Client]) -> None:
    golden.run(
        "CREATE LOGIN ann WITH PASSWORD = 'secret' CREATE USER ann FOR LOGIN ann CREATE USER other WITHOUT LOGIN"
    )
    with pytest.raises(SqlError) as refused:
        connect("ann", "wrong", "golden")
    assert refused.value.number == 18456
    ann = connect("ann", "secret", "golden")
    function = (
        "SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_t(sys.fn_cdc_get_min_lsn('dbo_t'), "
        "sys.fn_cdc_get_max_lsn(), 'all')"
    )
    try:
        assert ann.error("SELECT * FROM cdc.dbo_t_CT") == 229
        assert ann.error("SELECT * FROM dbo.t") == 229
        assert ann.error("EXEC sys.sp_cdc_enable_db") == 22902
        assert ann.error("EXEC sys.sp_cdc_disable_table 'dbo', 't', 'all'") == 22904
        assert ann.value("sys.fn_cdc_get_min_lsn('dbo_t')") == bytes(10)
        assert ann.run("EXEC sys.sp_cdc_help_change_data_capture") == []
        assert ann.error("EXEC sys.sp_cdc_get_captured_columns 'dbo_t'") == 22981
        golden.run("GRANT SELECT ON SCHEMA::cdc TO ann")
        assert len(ann.run("SELECT * FROM cdc.dbo_t_CT")) == 10
        assert ann.error(function) == 229
        golden.run("ALTER ROLE readers ADD MEMBER ann GRANT SELECT ON dbo.t TO ann")
        assert len(ann.run(function)) == 8
        golden.run("ALTER ROLE db_owner ADD MEMBER ann")
        assert ann.run(
            "EXEC sys.sp_cdc_disable_table 'dbo', 't', 'all' SELECT is_tracked_by_cdc FROM sys.tables WHERE name = 't'"
        ) == [(False,)]
    finally:
        sandbox.instance.logins.pop("ann")


def test_enable_and_disable_messages(sandbox: Sandbox, connect: Callable[..., Client]) -> None:
    sandbox.create_database("onoff")
    client = connect(database="onoff")
    assert client.error("EXEC sys.sp_cdc_help_jobs") == 22901
    assert client.error("SELECT sys.fn_cdc_get_max_lsn()") == 208
    client.run("EXEC sys.sp_cdc_disable_db")
    assert [(m.number, m.severity) for m in client.messages] == [(22901, 10)]
    client.run("EXEC sys.sp_cdc_enable_db")
    assert client.value("sys.fn_cdc_get_max_lsn()") is None
    client.run("EXEC sys.sp_cdc_enable_db")
    assert [(m.number, m.severity) for m in client.messages] == [(22905, 10)]
    assert client.error("EXEC sys.sp_cdc_enable_table 'dbo', 'nosuch', @role_name = NULL") == 22931
    assert client.error("EXEC sys.sp_cdc_enable_table 'dbo', 'nosuch'") == 201
    assert client.error("EXEC sys.sp_cdc_enable_table 'dbo', 'nosuch', @role_name = NULL, @nosuch = 1") == 8145
    assert client.run("SELECT is_cdc_enabled FROM sys.databases WHERE name = 'onoff'") == [(True,)]


def test_lob_over_the_limit(sandbox: Sandbox, connect: Callable[..., Client]) -> None:
    sandbox.create_database("lobs")
    client = connect(database="lobs")
    client.run("CREATE TABLE dbo.l (id int PRIMARY KEY, body nvarchar(max)) EXEC sys.sp_cdc_enable_db")
    client.run("EXEC sys.sp_cdc_enable_table 'dbo', 'l', @role_name = NULL")
    long_text = "x" * 40_000
    assert client.error(f"INSERT INTO dbo.l VALUES (1, N'{long_text}')") == 7139
    client.run("EXEC sp_configure 'max text repl size (B)', -1 RECONFIGURE")
    try:
        client.run(f"INSERT INTO dbo.l VALUES (1, N'{long_text}')")
    finally:
        client.run("EXEC sp_configure 'max text repl size (B)', 65536 RECONFIGURE")
    assert client.run("SELECT DATALENGTH(body) FROM dbo.l") == [(80_000,)]


def test_debezium_statements(golden: Client) -> None:
    def one(sql: str) -> Any:
        return golden.run(f"DECLARE @from varbinary(10) = 0x00, @n int = 10 {sql}")

    newest = one("SELECT MAX(start_lsn) FROM [golden].cdc.lsn_time_mapping WHERE tran_id <> 0x00")
    assert newest == one("SELECT [golden].sys.fn_cdc_get_max_lsn()")
    bounded = (
        "SELECT TOP (@n + 1) start_lsn FROM [golden].cdc.lsn_time_mapping WHERE start_lsn >= @from AND tran_id <> 0x00"
    )
    assert one(f"SELECT MAX(start_lsn) FROM ({bounded} ORDER BY start_lsn) AS next_lsns") == newest
    rows = one(
        """
        SELECT [__$start_lsn], [__$seqval], [__$operation], [__$update_mask], [id],
          TODATETIMEOFFSET([golden].sys.fn_cdc_map_lsn_to_time([__$start_lsn]), DATEPART(TZOFFSET, SYSDATETIMEOFFSET()))
        FROM [golden].cdc.[fn_cdc_get_all_changes_dbo_t]([golden].sys.fn_cdc_get_min_lsn(N'dbo_t'),
          [golden].sys.fn_cdc_get_max_lsn(), N'all update old')
        WHERE (([__$start_lsn] = @from AND [__$seqval] > @from) OR [__$start_lsn] > @from) AND [__$operation] NOT IN (3)
        ORDER BY [__$start_lsn] ASC, [__$seqval] ASC, [__$operation] ASC
        """
    )
    assert [row[2] for row in rows] == [2, 2, 4, 2, 4, 1, 1, 2]
    assert all(row[5] is not None for row in rows)
    assert one(
        """
        WITH ordered_change_tables AS (
          SELECT ROW_NUMBER() OVER (PARTITION BY ct.source_object_id, ct.start_lsn
            ORDER BY ct.create_date DESC) AS ct_sequence, ct.*
          FROM [golden].cdc.change_tables AS ct)
        SELECT OBJECT_SCHEMA_NAME(source_object_id, DB_ID('golden')),
          OBJECT_NAME(source_object_id, DB_ID('golden')), capture_instance
        FROM ordered_change_tables WHERE ct_sequence = 1
        """
    ) == [("dbo", "t", "dbo_t")]


def test_a_reader_that_would_wait_for_who_waits_for_it_is_a_deadlock_victim(
    golden: Client, connect: Callable[..., Client]
) -> None:
    reader, disabler, probe = (connect(database="golden") for _ in range(3))
    reader.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ BEGIN TRAN SELECT * FROM cdc.dbo_t_CT")
    dropping = threading.Thread(target=disabler.run, args=("EXEC sys.sp_cdc_disable_table 'dbo', 't', 'all'",))
    dropping.start()
    # who has read may still write while the procedure has no lock; once it has, it waits for all who have read
    probe.sets("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ SET LOCK_TIMEOUT 0")
    while not any(each.number == 1205 for each in probe.messages):
        probe.sets("BEGIN TRAN SELECT * FROM cdc.dbo_t_CT UPDATE dbo.t SET b = b ROLLBACK")
    assert reader.error("INSERT INTO dbo.t VALUES (5, 'v', 5)") == 1205
    dropping.join()
    assert golden.error("SELECT * FROM cdc.dbo_t_CT") == 208
    assert reader.value("@@TRANCOUNT") == 0


def test_who_has_waited_for_readers_in_vain_has_no_lock(golden: Client, connect: Callable[..., Client]) -> None:
    reader, disabler = (connect(database="golden") for _ in range(2))
    reader.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ BEGIN TRAN SELECT * FROM cdc.dbo_t_CT")
    assert disabler.error("SET LOCK_TIMEOUT 0 EXEC sys.sp_cdc_disable_table 'dbo', 't', 'all'") == 1222
    golden.run("SET LOCK_TIMEOUT 0 UPDATE dbo.t SET b = 7")
    assert reader.run("COMMIT SELECT DISTINCT b FROM dbo.t") == [(7,)]


def test_a_rollback_takes_enabling_back(sandbox: Sandbox, connect: Callable[..., Client]) -> None:
    sandbox.create_database("undone")
    client = connect(database="undone")
    client.run("BEGIN TRAN EXEC sys.sp_cdc_enable_db ROLLBACK")
    assert client.run("SELECT is_cdc_enabled FROM sys.databases WHERE name = 'undone'") == [(False,)]
    client.run("EXEC sys.sp_cdc_enable_db")
    client.run(
        "BEGIN TRAN CREATE TABLE dbo.t (id int) EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = 'r' ROLLBACK"
    )
    assert client.run("SELECT capture_instance FROM cdc.change_tables") == []
    assert client.run("SELECT name FROM msdb.dbo.sysjobs WHERE name LIKE 'cdc.undone%'") == []
    client.run(
        "CREATE TABLE dbo.t (id int) BEGIN TRAN SAVE TRAN s EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL"
        " ROLLBACK TRAN s COMMIT"
    )
    assert client.run("SELECT is_tracked_by_cdc FROM sys.tables WHERE name = 't'") == [(False,)]
    client.run("USE master DROP DATABASE undone")


def test_a_rollback_takes_disabling_back(golden: Client, sandbox: Sandbox) -> None:
    def known() -> list[list[tuple[Any, ...]]]:
        return golden.sets(
            "SELECT * FROM cdc.dbo_t_CT SELECT * FROM cdc.lsn_time_mapping EXEC sys.sp_cdc_help_change_data_capture"
            " EXEC sys.sp_cdc_help_jobs"
        )

    before = known()
    golden.run("BEGIN TRAN EXEC sys.sp_cdc_disable_table 'dbo', 't', 'all' ROLLBACK")
    assert known() == before
    golden.run("BEGIN TRAN EXEC sys.sp_cdc_disable_db ROLLBACK")
    assert known() == before
    golden.run("INSERT INTO dbo.t VALUES (10, 'x', 1)")
    assert sandbox.step("golden") == 1
    assert len(known()[0]) == len(before[0]) + 1


def test_a_rollback_of_disabling_starts_the_capture_job_again(golden: Client, sandbox: Sandbox) -> None:
    jobs = "EXEC sys.sp_cdc_help_jobs"
    kept = golden.run(jobs)
    sandbox.capture.start()
    try:
        golden.run("BEGIN TRAN EXEC sys.sp_cdc_disable_db")
        assert sandbox.capture.capture_session(sandbox.cdc("golden")) is None
        golden.run("ROLLBACK")
        assert golden.run(jobs) == kept
        assert sandbox.capture.capture_session(sandbox.cdc("golden")) is not None
    finally:
        sandbox.capture.stop()


@pytest.mark.parametrize("begin", ["BEGIN TRAN", "SET IMPLICIT_TRANSACTIONS ON"])
@pytest.mark.parametrize(
    "change",
    [
        "EXEC sys.sp_cdc_change_job 'capture', @maxtrans = 7",
        "EXEC sys.sp_cdc_drop_job 'cleanup'",
        "EXEC sys.sp_cdc_add_job 'capture', @start_job = 0, @maxscans = 3",
        "DECLARE @lsn binary(10) = sys.fn_cdc_get_max_lsn() EXEC sys.sp_cdc_cleanup_change_table 'dbo_t', @lsn",
    ],
)
def test_what_no_rollback_could_take_back_is_refused_in_a_transaction(golden: Client, begin: str, change: str) -> None:
    known = "EXEC sys.sp_cdc_help_jobs SELECT * FROM cdc.change_tables SELECT * FROM cdc.dbo_t_CT"
    before = golden.sets(known)
    with pytest.raises(SqlError, match="a change of CDC jobs, or a cleanup, in a transaction"):
        golden.run(f"{begin} {change}")
    golden.run("IF @@TRANCOUNT > 0 ROLLBACK SET IMPLICIT_TRANSACTIONS OFF")
    assert golden.sets(known) == before


def test_a_transaction_is_captured_from_where_it_enables_the_table(golden: Client, sandbox: Sandbox) -> None:
    golden.run("CREATE TABLE dbo.late (id int)")
    golden.run(
        "BEGIN TRAN INSERT INTO dbo.late VALUES (1), (2) ALTER TABLE dbo.late ADD v int"
        " EXEC sys.sp_cdc_enable_table 'dbo', 'late', @role_name = NULL INSERT INTO dbo.late VALUES (3, 3) COMMIT"
    )
    sandbox.step("golden")
    assert golden.run("SELECT __$operation, __$command_id, id, v FROM cdc.dbo_late_CT") == [(2, 1, 3, 3)]
    assert golden.run("SELECT COUNT(*) FROM cdc.ddl_history") == [(0,)]


@pytest.mark.parametrize("first", [True, False])
def test_columns_before_error_313_are_a_switch(golden: Client, sandbox: Sandbox, first: bool) -> None:
    cdc = sandbox.cdc("golden")
    cdc.switches = dataclasses.replace(cdc.switches, columns_before_range_error=first)
    for kind, head in (("all", ["__$start_lsn", "__$seqval"]), ("net", ["__$start_lsn"])):
        read = f"SELECT * FROM cdc.fn_cdc_get_{kind}_changes_dbo_t(NULL, NULL, N'all')"
        assert golden.sets(f"{read} SELECT 1") == ([[]] if first else [])
        assert [message.number for message in golden.messages] == [313]
        names = [*head, "__$operation", "__$update_mask", "id", "a", "b"]
        assert [[column.name for column in columns] for columns in golden.columns] == ([names] if first else [])


def test_dummy_rows_of_any_length_equal_one_zero_byte(golden: Client, sandbox: Sandbox) -> None:
    cdc = sandbox.cdc("golden")
    real = golden.run("SELECT start_lsn FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00")
    for length in (1, 6, 10):
        cdc.switches = dataclasses.replace(cdc.switches, dummy_tran_id=bytes(length))
        sandbox.capture.step(cdc, dummy=True)
    assert golden.run("SELECT DATALENGTH(tran_id) FROM cdc.lsn_time_mapping WHERE tran_id = 0x00") == [
        (1,),
        (6,),
        (10,),
    ]
    assert golden.run("SELECT start_lsn FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00") == real
