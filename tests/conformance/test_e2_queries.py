"""Section E2, and what clients.md adds: the statements of CDC readers, as they send them."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from tests.support.conformance.client import Client, Row, literal
from tests.support.conformance.database import Database
from tests.support.conformance.servers import Server


def prepared(client: Client, sql: str, *values: Any) -> list[Row]:
    """Run a statement with ``?`` in it as mssql-jdbc does at its first use."""
    parts = sql.split("?")
    text = parts[0] + "".join(f"@P{i}{part}" for i, part in enumerate(parts[1:]))
    types = ", ".join(f"@P{i} {_TYPES[type(value)]}" for i, value in enumerate(values))
    given = ", ".join(literal(value) for value in values)
    return client.run(f"EXEC sp_executesql {literal(text)}, {literal(types)}, {given}")


_TYPES = {bytes: "varbinary(8000)", str: "nvarchar(4000)", int: "int"}


@pytest.fixture
def golden(t: Database) -> Database:
    """The scenario of D2."""
    t.commit(
        "INSERT INTO dbo.t VALUES (1, 'x', 1), (2, 'y', 2)",
        "UPDATE dbo.t SET b = 5 WHERE id = 1",
        "BEGIN TRAN INSERT INTO dbo.t VALUES (3, 'z', 3) UPDATE dbo.t SET a = 'w' WHERE id = 3"
        " DELETE FROM dbo.t WHERE id = 3 COMMIT",
        "UPDATE dbo.t SET id = 9 WHERE id = 2",
    )
    return t


@pytest.fixture
def other(golden: Database) -> Client:
    """A connection that is in another database."""
    client = golden.connect()
    client.run("USE master")
    return client


# Positions


def test_59_positions(golden: Database, other: Client) -> None:
    db, commits = f"[{golden.name}]", golden.commits()
    newest = golden.max_lsn()
    assert other.value(f"SELECT {db}.sys.fn_cdc_get_max_lsn()") == newest
    assert prepared(other, f"SELECT {db}.sys.fn_cdc_get_min_lsn(?)", "dbo_t") == [(golden.min_lsn(),)]
    raised = int.from_bytes(newest, "big") + 1
    assert prepared(other, f"SELECT {db}.sys.fn_cdc_increment_lsn(?)", newest) == [(raised.to_bytes(10, "big"),)]
    assert other.value(f"select min(start_lsn) from {db}.cdc.change_tables") == golden.min_lsn()
    mapping = f"FROM {db}.cdc.lsn_time_mapping WHERE"
    assert other.value(f"SELECT MAX(start_lsn) {mapping} tran_id <> 0x00") == commits[-1]
    for limit in (1, 2, 4, 9):
        first = f"(SELECT TOP (?) start_lsn {mapping} tran_id <> 0x00 ORDER BY start_lsn)"
        rows = prepared(other, f"SELECT MAX(start_lsn) FROM {first} as next_lsns", limit)
        assert rows == [(commits[min(limit, 4) - 1],)]
        following = f"(SELECT TOP (? + 1) start_lsn {mapping} start_lsn >= ? AND tran_id <> 0x00 ORDER BY start_lsn)"
        rows = prepared(other, f"SELECT MAX(start_lsn) FROM {following} as next_lsns", limit, commits[1])
        assert rows == [(commits[min(limit + 1, 3)],)]


def test_59_dummy_rows_equal_one_zero_byte(server: Server, golden: Database) -> None:
    embedded = server.only_embedded("it takes five minutes for dummy rows")
    real = golden.commits()[-1]
    embedded.advance(minutes=6)
    embedded.idle_scan(golden.name)
    assert golden.max_lsn() > real
    assert golden.value("SELECT MAX(start_lsn) FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00") == real
    assert golden.value("SELECT MAX(start_lsn) FROM cdc.lsn_time_mapping WHERE tran_id = 0x00") == golden.max_lsn()


def test_59_server_time_and_name(golden: Database, other: Client) -> None:
    assert other.value("SELECT CONVERT(varchar(34), SYSDATETIMEOFFSET(), 121)")[-6] in "+-"
    rows = prepared(other, "SELECT name FROM sys.databases WHERE name = ?", golden.name.upper())
    assert rows == [(golden.name,)]
    assert prepared(other, "SELECT name FROM sys.databases WHERE name = ?", "nosuch") == []
    assert prepared(other, "select 1 from sys.databases where name = ? AND is_cdc_enabled = 1", golden.name) == [(1,)]
    assert "Microsoft SQL Server" in other.value("SELECT @@VERSION")


# Changes


_FUNCTION = (
    "SELECT [__$start_lsn], [__$seqval], [__$operation], [__$update_mask], [id], [a], [b],"
    " TODATETIMEOFFSET([{db}].sys.fn_cdc_map_lsn_to_time([__$start_lsn]), DATEPART(TZOFFSET, SYSDATETIMEOFFSET()))"
    " FROM [{db}].cdc.[fn_cdc_get_all_changes_dbo_t](?, ?, N'all update old')"
    " WHERE (([__$start_lsn] = ? AND [__$seqval] = ? AND [__$operation] > ?)"
    " OR ([__$start_lsn] = ? AND [__$seqval] > ?) OR ([__$start_lsn] > ?)) AND [__$start_lsn] <= ?"
    " order by [__$start_lsn] ASC, [__$seqval] ASC, [__$operation] ASC"
)
_DIRECT = (
    "SELECT [__$start_lsn], [__$seqval], [__$operation], [__$update_mask], [id], [a], [b],"
    " TODATETIMEOFFSET(ltm.tran_begin_time, DATEPART(TZOFFSET, SYSDATETIMEOFFSET()))"
    " FROM [{db}].cdc.[dbo_t_CT] AS cdc_data"
    " LEFT JOIN [{db}].cdc.lsn_time_mapping ltm ON ltm.start_lsn = cdc_data.[__$start_lsn]"
    " WHERE (([__$start_lsn] = ? AND [__$seqval] = ? AND [__$operation] > ?)"
    " OR ([__$start_lsn] = ? AND [__$seqval] > ?) OR ([__$start_lsn] > ?)) AND [__$start_lsn] <= ?"
)
_DIRECT_ORDER = " order by [__$start_lsn] ASC, [__$command_id] ASC, [__$seqval] ASC, [__$operation] ASC"


def _by_seqval(db: Database) -> list[Row]:
    columns = "__$start_lsn, __$seqval, __$operation, __$update_mask, id, a, b"
    return sorted(db.changes(columns), key=lambda row: row[:3])


def _resumes(rows: list[Row]) -> list[tuple[bytes, bytes, int]]:
    return [(bytes(10), bytes(10), 0), *(row[:3] for row in rows)]


def test_59_function_mode_resumes_anywhere(golden: Database, other: Client) -> None:
    wanted, low, high = _by_seqval(golden), golden.min_lsn(), golden.max_lsn()
    sql = _FUNCTION.format(db=golden.name)
    for lsn, sequence, operation in _resumes(wanted):
        parameters = (low, high, lsn, sequence, operation, lsn, sequence, lsn, high)
        rows = prepared(other, sql, *parameters)
        left = [row for row in wanted if row[:3] > (lsn, sequence, operation)]
        assert [row[:7] for row in rows] == left
        limited = prepared(other, sql.replace("SELECT ", "SELECT TOP 3 ", 1), *parameters)
        assert [row[:7] for row in limited] == left[:3]


def test_59_direct_mode_resumes_anywhere(golden: Database, other: Client) -> None:
    wanted, high = _by_seqval(golden), golden.max_lsn()
    ordered = golden.changes("__$start_lsn, __$seqval, __$operation, __$update_mask, id, a, b")
    sql = _DIRECT.format(db=golden.name)
    for lsn, sequence, operation in _resumes(wanted):
        parameters = (lsn, sequence, operation, lsn, sequence, lsn, high)
        left = [row for row in ordered if row[:3] > (lsn, sequence, operation)]
        assert [row[:7] for row in prepared(other, sql + _DIRECT_ORDER, *parameters)] == left
        skipping = prepared(other, f"{sql} AND [__$operation] NOT IN (1,3){_DIRECT_ORDER}", *parameters)
        assert [row[:7] for row in skipping] == [row for row in left if row[2] not in (1, 3)]


def test_59_upper_bound_of_a_window(golden: Database) -> None:
    zero, commits = bytes(10), golden.commits()
    for high in commits:
        rows = prepared(golden, _DIRECT.format(db=golden.name) + _DIRECT_ORDER, zero, zero, 0, zero, zero, zero, high)
        assert {row[0] for row in rows} == {lsn for lsn in commits if lsn <= high}


def test_59_commit_times_come_with_the_servers_offset(golden: Database) -> None:
    shifted = "TODATETIMEOFFSET(tran_end_time, DATEPART(TZOFFSET, SYSDATETIMEOFFSET()))"
    times = golden.run(
        f"SELECT CONVERT(varchar(34), {shifted}, 121), CONVERT(varchar(23), tran_end_time, 121),"
        " DATEPART(TZOFFSET, SYSDATETIMEOFFSET()) FROM cdc.lsn_time_mapping"
    )
    for text, local, minutes in times:
        offset = f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
        assert text.endswith(f" {offset}")
        assert text.removesuffix(f" {offset}").rstrip("0") == local.rstrip("0")


def test_59_older_reader_selects_everything_and_inlines_the_name(golden: Database) -> None:
    low = golden.value("SELECT sys.fn_cdc_get_min_lsn('dbo_t')")
    rows = prepared(
        golden,
        f"SELECT *, TODATETIMEOFFSET([{golden.name}].sys.fn_cdc_map_lsn_to_time([__$start_lsn]),"
        f" DATEPART(TZOFFSET, SYSDATETIMEOFFSET())) FROM [{golden.name}].cdc.[fn_cdc_get_all_changes_dbo_t]"
        "(?, ?, N'all update old') order by [__$start_lsn] ASC, [__$seqval] ASC, [__$operation] ASC",
        low,
        golden.max_lsn(),
    )
    assert [row[:7] for row in rows] == _by_seqval(golden)


def test_59_dropped_instance_is_named_in_full(golden: Database, other: Client) -> None:
    golden.run("EXEC sys.sp_cdc_disable_table 'dbo', 't', 'all'")
    name = f"{golden.name}.cdc.fn_cdc_get_all_changes_dbo_t"
    error = other.error(f"SELECT * FROM [{golden.name}].cdc.[fn_cdc_get_all_changes_dbo_t](0x00, 0x00, N'all')")
    assert (error.number, error.text) == (208, f"Invalid object name '{name}'.")


def test_59_position_from_a_timestamp(golden: Database) -> None:
    lsn, time = golden.run(
        "SELECT start_lsn, CONVERT(varchar(23), tran_end_time, 121) FROM cdc.lsn_time_mapping ORDER BY start_lsn"
    )[1]
    found = prepared(golden, "SELECT sys.fn_cdc_map_time_to_lsn('smallest greater than or equal', ?)", time)
    assert found == [(lsn,)]


# Instances


_INSTANCES = (
    "WITH ordered_change_tables AS (SELECT ROW_NUMBER() OVER (PARTITION BY ct.source_object_id, ct.start_lsn"
    " ORDER BY ct.create_date DESC) AS ct_sequence, ct.* FROM [{db}].cdc.change_tables AS ct{where})"
    " SELECT OBJECT_SCHEMA_NAME(source_object_id, DB_ID(?)), OBJECT_NAME(source_object_id, DB_ID(?)),"
    " capture_instance, object_id, start_lsn FROM ordered_change_tables WHERE ct_sequence = 1"
)


def test_59_instances(golden: Database, other: Client) -> None:
    golden.run("CREATE SCHEMA s")
    golden.run("CREATE TABLE s.t (id int)")
    golden.track("s.t")
    golden.track("t", capture_instance="v2")
    known = golden.run("SELECT capture_instance, object_id, start_lsn FROM cdc.change_tables")
    names = {"dbo_t": ("dbo", "t"), "v2": ("dbo", "t"), "s_t": ("s", "t")}
    wanted = sorted((*names[instance], instance, number, lsn) for instance, number, lsn in known)
    everything = _INSTANCES.format(db=golden.name, where="")
    assert sorted(prepared(other, everything, golden.name, golden.name)) == wanted
    bounded = _INSTANCES.format(db=golden.name, where=" WHERE ct.start_lsn <= ?")
    first = min(lsn for _, _, lsn in known)
    rows = prepared(other, bounded, first, golden.name, golden.name)
    assert rows == [row for row in wanted if row[4] == first]


def test_59_new_instances_by_ordinal(golden: Database, other: Client) -> None:
    golden.track("t", capture_instance="v2")
    known = {
        instance: (number, lsn)
        for instance, number, lsn in golden.run("SELECT capture_instance, object_id, start_lsn FROM cdc.change_tables")
    }
    sql = f"SELECT * FROM [{golden.name}].cdc.change_tables WHERE start_lsn BETWEEN ? AND ?"
    rows = prepared(other, sql, golden.commits()[0], b"\xff" * 10)
    assert [(row[3], (row[0], row[4])) for row in rows] == [("v2", known["v2"])]
    assert prepared(other, sql, bytes(10), known["dbo_t"][1])[0][3] == "dbo_t"


def test_59_columns_of_the_instances(golden: Database, other: Client) -> None:
    golden.track("t", capture_instance="v2", captured_column_list="id, b")
    tables = dict(golden.run("SELECT capture_instance, object_id FROM cdc.change_tables"))
    rows = other.run(
        f"SELECT object_id, column_name FROM [{golden.name}].cdc.captured_columns ORDER BY object_id, column_id"
    )
    wanted = {tables["dbo_t"]: ["id", "a", "b"], tables["v2"]: ["id", "b"]}
    assert rows == [(number, name) for number in sorted(wanted) for name in wanted[number]]
    joined = other.run(
        f"SELECT t.object_id, c.name FROM [{golden.name}].sys.columns c JOIN [{golden.name}].cdc.change_tables t"
        " ON c.object_id = t.object_id WHERE c.name NOT IN ('__$start_lsn', '__$end_lsn', '__$seqval', '__$operation',"
        " '__$update_mask', '__$command_id') ORDER BY t.object_id, c.column_id"
    )
    assert joined == rows


def test_59_access_checks(golden: Database, other: Client) -> None:
    rows = other.run(f"EXEC [{golden.name}].sys.sp_cdc_help_change_data_capture")
    assert [row[:3] for row in rows] == [("dbo", "t", "dbo_t")]
    assert other.value(f"SELECT COUNT(*) FROM [{golden.name}].cdc.change_tables") == 1
    result = golden.sets("EXEC sys.sp_cdc_help_jobs")[-1]
    jobs = [dict(zip(result.names, row, strict=True)) for row in result.rows]
    assert [job["pollinginterval"] for job in jobs if job["job_type"] == "capture"] == [5]


_AGENT = (
    "SELECT CASE WHEN dss.[status]=4 THEN 1 ELSE 0 END AS isRunning FROM [{db}].sys.dm_server_services dss"
    " WHERE dss.[servicename] LIKE N'SQL Server Agent (%';"
)


def test_59_64_agent_that_runs(golden: Database, other: Client) -> None:
    assert other.run(_AGENT.format(db=golden.name)) in ([(1,)], [])
    status = "SELECT TOP(1) status_desc FROM sys.dm_server_services WHERE servicename LIKE 'SQL Server Agent (%'"
    assert other.run(status) in ([("Running",)], [])


def test_59_64_agent_that_is_stopped(server: Server, golden: Database, other: Client) -> None:
    with server.only_embedded("its Agent cannot be stopped by a statement").agent_stopped():
        assert other.run(_AGENT.format(db=golden.name)) == [(0,)]
    assert other.run(_AGENT.format(db=golden.name)) == [(1,)]


def test_59_62_idle_scan_has_a_zero_lsn_with_a_trailing_nul(server: Server, golden: Database) -> None:
    golden.capture()
    lsn = golden.value("SELECT TOP 1 start_lsn from sys.dm_cdc_log_scan_sessions ORDER BY session_id DESC")
    assert lsn == "00000000:00000000:0000\0"


# Snapshots


def test_59_snapshot_with_an_exclusive_lock(golden: Database) -> None:
    golden.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ SET LOCK_TIMEOUT 10000")
    golden.run("BEGIN TRAN")
    golden.run("IF @@TRANCOUNT = 0 BEGIN BEGIN TRAN IF @@TRANCOUNT = 2 COMMIT TRAN END SAVE TRAN [dbz_schema_snapshot]")
    assert golden.run(f"SELECT TOP(0) * FROM [{golden.name}].[dbo].[t] WITH (TABLOCKX)") == []
    golden.run("ROLLBACK TRAN [dbz_schema_snapshot]")
    rows = golden.run(f"SELECT [id], [a], [b] FROM [{golden.name}].[dbo].[t] ORDER BY [id]")
    assert rows == [(1, "x", 5), (9, "y", 2)]
    assert sorted(golden.run("SELECT * FROM [dbo].[t] WITH (TABLOCKX)")) == rows
    golden.run("IF @@TRANCOUNT > 0 ROLLBACK TRAN")
    golden.run("SET LOCK_TIMEOUT -1")


@pytest.mark.parametrize("level", ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE", "SNAPSHOT"])
def test_59_snapshot_under_each_isolation_level(golden: Database, level: str) -> None:
    golden.run(f"ALTER DATABASE {golden.name} SET ALLOW_SNAPSHOT_ISOLATION ON")
    client = golden.connect()
    client.run(f"set transaction isolation level {level.lower()}")
    client.run("set implicit_transactions on")
    assert client.value("SELECT COUNT(1) FROM [dbo].[t]") == 2
    client.run("IF @@TRANCOUNT > 0 COMMIT TRAN")
    client.run("set implicit_transactions off")


def test_59_chunks_of_a_snapshot(golden: Database) -> None:
    golden.run("DELETE FROM dbo.t INSERT INTO dbo.t VALUES " + ", ".join(f"({i}, 'x', {i % 3})" for i in range(1, 11)))
    assert golden.value("SELECT COUNT(1) FROM [dbo].[t]") == 10
    assert golden.run("SELECT [id] FROM [dbo].[t] ORDER BY [id] OFFSET 4 ROWS FETCH NEXT 1 ROWS ONLY") == [(5,)]
    boundary = "SELECT [id] FROM [dbo].[t] WHERE [id] >= ? ORDER BY [id] OFFSET 3 ROWS FETCH NEXT 1 ROWS ONLY"
    assert prepared(golden, boundary, 5) == [(8,)]
    assert golden.run("SELECT TOP 1 [id] FROM [dbo].[t] ORDER BY [id] DESC") == [(10,)]
    assert golden.run("SELECT TOP 1 * FROM [dbo].[t] ORDER BY [id] DESC") == [(10, "x", 1)]
    chunk = (
        "SELECT TOP 3 [id], [a], [b] FROM [dbo].[t] WHERE (([b] > ?) OR ([b] = ? AND [id] > ?)) AND NOT (([b] > ?)"
        " OR ([b] = ? AND [id] > ?)) ORDER BY [b], [id] OPTION(RECOMPILE)"
    )
    assert prepared(golden, chunk, 0, 0, 6, 1, 1, 7) == [(9, "x", 0), (1, "x", 1), (4, "x", 1)]
    assert golden.run("SELECT MIN([id]), MAX([id]) FROM [dbo].[t]") == [(1, 10)]
    highest = "SELECT MAX([id]) FROM (SELECT TOP (4) [id] FROM [dbo].[t] WHERE [id] >= ? ORDER BY [id] ASC) AS T"
    assert prepared(golden, highest, 3) == [(6,)]
    assert prepared(golden, "SELECT MIN([id]) FROM [dbo].[t] WHERE [id] > ?", 6) == [(7,)]
    between = "SELECT * FROM [dbo].[t] WHERE [id] >= ? AND NOT ([id] = ?) AND [id] <= ?"
    assert sorted(prepared(golden, between, 2, 4, 4)) == [(2, "x", 2), (3, "x", 0)]


def test_59_signal_table(golden: Database) -> None:
    golden.run("CREATE TABLE dbo.signal (id varchar(42) PRIMARY KEY, type varchar(32), data varchar(2048))")
    golden.track("signal")
    insert = "INSERT INTO dbo.signal VALUES (?, ?, ?)"
    prepared(golden, insert, "open", "snapshot-window-open", "{}")
    prepared(golden, "DELETE FROM dbo.signal WHERE id = ?", "open")
    golden.capture()
    assert golden.changes("__$operation, id, type", "dbo_signal") == [
        (2, "open", "snapshot-window-open"),
        (1, "open", "snapshot-window-open"),
    ]


@pytest.mark.parametrize(
    ("text", "type_", "wanted"),
    [
        ("2024-02-29", "date", "2024-02-29"),
        ("2024-02-29 01:02:03.004", "datetime2", "2024-02-29 01:02:03.0040000"),
        ("2024-02-29 01:02:03", "smalldatetime", "2024-02-29 01:02:00.000"),
        ("01:02:03.4", "time", "01:02:03.4000000"),
        ("2024-02-29 01:02:03 +02:00", "datetimeoffset", "2024-02-29 01:02:03.0000000 +02:00"),
    ],
)
def test_59_defaults_are_parsed_by_the_server(golden: Database, text: str, type_: str, wanted: str) -> None:
    rows = prepared(golden, f"SELECT CONVERT(varchar(40), PARSE(? AS {type_}), 121)", text)
    assert rows == [(wanted,)]


# Discovery


def test_59_information_schema(golden: Database, other: Client) -> None:
    rows = other.run(f"SELECT * FROM [{golden.name}].INFORMATION_SCHEMA.TABLES WHERE TABLE_TYPE = 'BASE TABLE'")
    assert (golden.name, "dbo", "t") in [row[:3] for row in rows]
    schemas = other.run(f"SELECT SCHEMA_NAME FROM [{golden.name}].INFORMATION_SCHEMA.SCHEMATA")
    assert {("dbo",), ("cdc",), ("sys",)} <= set(schemas)
    row = prepared(other, "SELECT name, database_id, create_date FROM sys.databases WHERE name = ?", golden.name)[0]
    assert row[:2] == (golden.name, golden.value("SELECT DB_ID()"))
    assert isinstance(row[2], datetime.datetime)


def test_59_row_count_by_partition(golden: Database, other: Client) -> None:
    count = (
        f"USE [{golden.name}]; SELECT SUM(row_count) FROM sys.dm_db_partition_stats"
        " WHERE object_name(object_id) = 't' AND index_id < 2"
    )
    assert other.value(count) == 2


def test_59_tables_by_procedure(golden: Database) -> None:
    result = golden.sets("EXEC sp_tables N't', N'dbo', NULL, N'''TABLE'''")[-1]
    assert result.names[:4] == ["TABLE_QUALIFIER", "TABLE_OWNER", "TABLE_NAME", "TABLE_TYPE"]
    assert [row[:4] for row in result.rows] == [(golden.name, "dbo", "t", "TABLE")]


def test_59_columns_by_procedure(db: Database) -> None:
    db.run(
        "CREATE TABLE dbo.t (id int IDENTITY NOT NULL PRIMARY KEY, n nvarchar(20) NULL, d decimal(9, 2) NOT NULL"
        " DEFAULT 1.5, g uniqueidentifier, t7 datetime2(7))"
    )
    result = db.sets("EXEC sp_columns_100 N't', N'dbo', NULL, N'%', 2, 3")[-1]
    rows = [dict(zip(result.names, row, strict=True)) for row in result.rows]
    shown = [
        (row["COLUMN_NAME"], row["TYPE_NAME"], row["PRECISION"], row["SCALE"], row["NULLABLE"], row["ORDINAL_POSITION"])
        for row in rows
    ]
    assert shown == [
        ("id", "int identity", 10, 0, 0, 1),
        ("n", "nvarchar", 20, None, 1, 2),
        ("d", "decimal", 9, 2, 0, 3),
        ("g", "uniqueidentifier", 36, None, 1, 4),
        ("t7", "datetime2", 27, 7, 1, 5),
    ]
    # readers strip the parentheses
    assert [row["COLUMN_DEF"] and row["COLUMN_DEF"].strip("()") for row in rows] == [None, None, "1.5", None, None]


def test_59_keys_and_statistics_by_procedure(db: Database) -> None:
    db.run(
        "CREATE TABLE dbo.t (a int NOT NULL, b int NOT NULL, c int NOT NULL, CONSTRAINT pk_t PRIMARY KEY (b, a))"
        " CREATE UNIQUE INDEX ux ON dbo.t (c)"
    )
    keys = db.run("EXEC sp_pkeys N't', N'dbo', NULL")
    assert [(row[2], row[3], row[4], row[5]) for row in keys] == [("t", "b", 1, "pk_t"), ("t", "a", 2, "pk_t")]
    rows = db.run("EXEC sp_statistics_100 N't', N'dbo', NULL, N'%', N'Y', N'Q'")
    listed = [(row[5], row[7], row[8]) for row in rows if row[6] != 0]
    assert sorted(listed) == [("pk_t", 1, "b"), ("pk_t", 2, "a"), ("ux", 1, "c")]


def test_59_columns_as_the_jdbc_driver_asks_for_them(golden: Database) -> None:
    edition = golden.value("SELECT CAST(SERVERPROPERTY('EngineEdition') AS int)")
    assert isinstance(edition, int)
    columns = golden.sets("EXEC sp_columns_100 N't', N'dbo', NULL, N'%', 2, 3")[-1].names
    declared = ", ".join(f"[{name}] nvarchar(4000)" for name in columns)
    rows = golden.run(
        f"DECLARE @jdbc_temp_sp_columns_result TABLE ({declared});"
        " INSERT INTO @jdbc_temp_sp_columns_result EXEC sp_columns_100 N't', N'dbo', NULL, N'%', 2, 3;"
        " SELECT TABLE_QUALIFIER AS TABLE_CAT, TABLE_OWNER AS TABLE_SCHEM, TABLE_NAME, COLUMN_NAME, TYPE_NAME,"
        " CAST(ORDINAL_POSITION AS int) FROM @jdbc_temp_sp_columns_result ORDER BY TABLE_CAT, TABLE_SCHEM, TABLE_NAME,"
        " ORDINAL_POSITION;"
    )
    assert rows == [
        (golden.name, "dbo", "t", "id", "int", 1),
        (golden.name, "dbo", "t", "a", "varchar", 2),
        (golden.name, "dbo", "t", "b", "int", 3),
    ]
