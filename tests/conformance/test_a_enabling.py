"""Sections A1 to A3: enabling and disabling CDC for databases and tables."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.support.conformance.client import Client, SqlServerError
from tests.support.conformance.database import Database, track
from tests.support.conformance.servers import Embedded, Server, wait_for

CDC_TABLES = {"change_tables", "captured_columns", "index_columns", "ddl_history", "lsn_time_mapping"}


def in_order(text: str, *arguments: object) -> bool:
    """Whether a text carries these arguments in this order."""
    at = 0
    for argument in arguments:
        at = text.find(str(argument), at) + 1
        if not at:
            return False
    return True


# Databases


def test_a3_1_enabling_creates_schema_user_and_tables_and_no_job(plain: Database) -> None:
    assert plain.value("SELECT is_cdc_enabled FROM sys.databases WHERE name = DB_NAME()") is False
    assert plain.value("DECLARE @r int EXEC @r = sys.sp_cdc_enable_db SELECT @r") == 0
    assert plain.value("SELECT is_cdc_enabled FROM sys.databases WHERE name = DB_NAME()") is True
    assert plain.run("SELECT name FROM sys.schemas WHERE name = 'cdc'") == [("cdc",)]
    tables = plain.run("SELECT name FROM sys.tables WHERE schema_id = SCHEMA_ID('cdc') AND is_ms_shipped = 1")
    assert {name for (name,) in tables} >= CDC_TABLES
    user = "SELECT name, type, default_schema_name FROM sys.database_principals WHERE name = 'cdc'"
    assert plain.run(user) == [("cdc", "S", "cdc")]
    jobs = f"SELECT name FROM msdb.dbo.sysjobs WHERE name IN ('cdc.{plain.name}_capture', 'cdc.{plain.name}_cleanup')"
    assert plain.run(jobs) == []


def test_a3_1_user_cdc_is_a_member_of_db_owner(db: Database) -> None:
    members = db.run(
        "SELECT r.name FROM sys.database_role_members AS m"
        " JOIN sys.database_principals AS r ON r.principal_id = m.role_principal_id"
        " JOIN sys.database_principals AS u ON u.principal_id = m.member_principal_id WHERE u.name = 'cdc'"
    )
    assert members == [("db_owner",)]


def test_a3_1_enabling_creates_systranschemas(db: Database) -> None:
    assert db.names("SELECT * FROM dbo.systranschemas") == ["tabid", "startlsn", "endlsn", "typeid"]


def test_a5_cdc_jobs_is_absent_until_some_database_used_cdc(server: Server) -> None:
    server.only_embedded("it may have had databases with CDC before")
    with Embedded() as fresh:
        database = Database(fresh)
        error = database.error("SELECT * FROM msdb.dbo.cdc_jobs")
        assert (error.number, error.text) == (208, "Invalid object name 'msdb.dbo.cdc_jobs'.")
        database.close()


@pytest.mark.parametrize(
    "call",
    [
        "sp_cdc_enable_table 'dbo', 't', @role_name = NULL",
        "sp_cdc_disable_table 'dbo', 't', 'all'",
        "sp_cdc_scan",
        "sp_cdc_help_jobs",
        "sp_cdc_add_job 'capture'",
        "sp_cdc_add_job 'cleanup'",
        "sp_cdc_change_job 'capture', @maxtrans = 5",
        "sp_cdc_drop_job 'capture'",
        "sp_cdc_start_job",
        "sp_cdc_stop_job",
        "sp_cdc_get_captured_columns 'dbo_t'",
        "sp_cdc_get_ddl_history 'dbo_t'",
    ],
)
def test_38_disabled_database_is_refused_with_22901(plain: Database, call: str) -> None:
    error = plain.error(f"CREATE TABLE dbo.t (id int PRIMARY KEY) EXEC sys.{call}")
    assert (error.number, error.severity, error.state) == (22901, 16, 1)
    assert plain.name in error.text


def test_38_disabled_database_is_refused_with_22901_by_help_memory(plain: Database) -> None:
    assert plain.number("EXEC sys.sp_cdc_help_change_data_capture") == 22901


def test_38_cleanup_in_a_disabled_database_is_refused_with_22910(plain: Database) -> None:
    error = plain.error("EXEC sys.sp_cdc_cleanup_change_table 'dbo_t', NULL")
    assert (error.number, error.severity) == (22910, 16)
    assert plain.name in error.text


def test_38_disabling_a_disabled_database_is_no_exception(plain: Database) -> None:
    assert plain.value("DECLARE @r int EXEC @r = sys.sp_cdc_disable_db SELECT @r") == 0
    assert [message.severity for message in plain.messages if plain.name in message.text] in ([0], [10])


def test_39_enabling_twice_is_only_a_message(db: Database) -> None:
    messages = db.notes("EXEC sys.sp_cdc_enable_db")
    assert len(messages) == 1
    assert db.name in messages[0]
    assert db.value("SELECT is_cdc_enabled FROM sys.databases WHERE name = DB_NAME()") is True


@pytest.mark.parametrize("statement", ["CREATE SCHEMA cdc", "CREATE USER cdc WITHOUT LOGIN"])
def test_43_schema_or_user_cdc_is_in_the_way(plain: Database, statement: str) -> None:
    plain.run(statement)
    error = plain.error("EXEC sys.sp_cdc_enable_db")
    assert (error.number, error.severity) == (22906, 16)
    assert plain.name in error.text


def test_a1_system_database_is_refused(plain: Database) -> None:
    error = plain.connect().error("USE master EXEC sys.sp_cdc_enable_db")
    assert (error.number, error.severity) == (22989, 16)
    assert "master" in error.text


@pytest.mark.parametrize("mode", ["ALLOWED", "FORCED"])
def test_a3_1_delayed_durability_excludes_cdc(plain: Database, mode: str) -> None:
    plain.run(f"ALTER DATABASE {plain.name} SET DELAYED_DURABILITY = {mode}")
    assert plain.number("EXEC sys.sp_cdc_enable_db") in (22891, 22892)
    plain.run(f"ALTER DATABASE {plain.name} SET DELAYED_DURABILITY = DISABLED")
    plain.enable()
    assert plain.number(f"ALTER DATABASE {plain.name} SET DELAYED_DURABILITY = {mode}") in (22891, 22892)
    assert plain.run(
        "SELECT delayed_durability, delayed_durability_desc FROM sys.databases WHERE database_id = DB_ID()"
    ) == [(0, "DISABLED")]


def test_a3_2_disabling_a_database_drops_everything_but_the_gating_role(t: Database) -> None:
    t.run("CREATE TABLE dbo.u (id int PRIMARY KEY)")
    t.track("u", role_name="gate")
    jobs = f"SELECT name FROM msdb.dbo.sysjobs WHERE name LIKE 'cdc.{t.name}%' ORDER BY name"
    assert t.run(jobs) == [(f"cdc.{t.name}_capture",), (f"cdc.{t.name}_cleanup",)]
    assert t.value("DECLARE @r int EXEC @r = sys.sp_cdc_disable_db SELECT @r") == 0
    assert t.run(jobs) == []
    assert t.run("SELECT name FROM sys.schemas WHERE name = 'cdc'") == []
    assert t.run("SELECT name FROM sys.database_principals WHERE name IN ('cdc', 'gate')") == [("gate",)]
    assert t.run("SELECT name, is_tracked_by_cdc FROM sys.tables ORDER BY name") == [("t", False), ("u", False)]
    assert t.value("SELECT is_cdc_enabled FROM sys.databases WHERE name = DB_NAME()") is False
    for name in ("cdc.change_tables", "cdc.dbo_t_CT", "cdc.fn_cdc_get_all_changes_dbo_t(0x00, 0x00, 'all')"):
        assert t.number(f"SELECT * FROM {name}") == 208
    t.enable()
    assert t.run("SELECT capture_instance FROM cdc.change_tables") == []
    assert t.max_lsn() is None


def test_a3_2_cdc_jobs_stays_without_rows(t: Database) -> None:
    t.run("EXEC sys.sp_cdc_disable_db")
    assert t.run("SELECT * FROM msdb.dbo.cdc_jobs WHERE database_id = DB_ID()") == []


def test_a3_2_dropping_a_database_drops_its_jobs(t: Database) -> None:
    other = f"{t.name}_2"
    t.run(f"CREATE DATABASE {other}")
    client = t.connect()
    client.run(f"USE {other} EXEC sys.sp_cdc_enable_db CREATE TABLE dbo.t (id int)")
    client.run(track("t"))
    number = client.value("SELECT DB_ID()")
    jobs = (
        f"SELECT name FROM msdb.dbo.sysjobs WHERE name LIKE 'cdc.{other}[_]c%' UNION ALL"
        f" SELECT job_type FROM msdb.dbo.cdc_jobs WHERE database_id = {number}"
    )
    assert len(t.run(jobs)) == 4
    client.run("USE master")
    t.server.drop(other, [], client)
    assert t.run(jobs) == []


# Tables


def test_a3_3_defaults(db: Database) -> None:
    db.run("CREATE SCHEMA sales")
    db.run("CREATE TABLE sales.orders (id int NOT NULL CONSTRAINT pk_orders PRIMARY KEY, a int)")
    db.run("CREATE TABLE dbo.keyless (a int)")
    enabling = "EXEC @r = sys.sp_cdc_enable_table @source_schema = 'sales', @source_name = 'orders', @role_name = NULL"
    assert db.value(f"DECLARE @r int {enabling} SELECT @r") == 0
    db.run("EXEC sys.sp_cdc_enable_table @source_schema = 'dbo', @source_name = 'keyless', @role_name = NULL")
    rows = db.run("SELECT capture_instance, role_name, index_name FROM cdc.change_tables ORDER BY capture_instance")
    assert rows == [("dbo_keyless", None, None), ("sales_orders", None, "pk_orders")]
    assert (
        db.value("SELECT supports_net_changes FROM cdc.change_tables WHERE capture_instance = 'dbo_keyless'") is False
    )
    assert db.run("SELECT name, is_tracked_by_cdc FROM sys.tables WHERE is_ms_shipped = 0 ORDER BY name") == [
        ("keyless", True),
        ("orders", True),
    ]


def test_a3_3_net_changes_by_default_with_a_key_open(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    db.run("EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL")
    # docs: 1; one observation: 0
    net = db.value("SELECT supports_net_changes FROM cdc.change_tables")
    function = "SELECT COUNT(*) FROM sys.objects WHERE name = 'fn_cdc_get_net_changes_dbo_t'"
    assert db.value(function) == int(net)


def test_a3_3_role_name_must_be_given_memory(plain: Database) -> None:
    plain.enable()
    plain.run("CREATE TABLE dbo.t (id int)")
    assert plain.number("EXEC sys.sp_cdc_enable_table 'dbo', 't'") == 201


@pytest.mark.parametrize("call", ["sys.sp_cdc_enable_table", "sp_cdc_enable_table", "{db}.sys.sp_cdc_enable_table"])
def test_a2_procedures_resolve_however_they_are_named(db: Database, call: str) -> None:
    db.run("CREATE TABLE dbo.t (id int)")
    db.run(f"EXEC {call.format(db=db.name)} 'dbo', 't', @role_name = NULL")
    assert db.run("SELECT capture_instance FROM cdc.change_tables") == [("dbo_t",)]


def test_a2_procedures_resolve_with_an_empty_schema(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int)")
    db.run(f"EXEC {db.name}..sp_cdc_enable_table 'dbo', 't', @role_name = NULL")
    assert db.run("SELECT capture_instance FROM cdc.change_tables") == [("dbo_t",)]


def test_a3_3_first_table_creates_and_starts_the_jobs(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int) CREATE TABLE dbo.u (id int)")
    assert db.notes(track("t")) == [
        f"Job 'cdc.{db.name}_capture' started successfully.",
        f"Job 'cdc.{db.name}_cleanup' started successfully.",
    ]
    assert db.notes(track("u")) == []


@pytest.mark.parametrize(
    ("listed", "captured"),
    [
        ("id, a", ["id", "a"]),
        ("[id],[odd, name]", ["id", "odd, name"]),
        ('"id" , "odd, name"', ["id", "odd, name"]),
        ("ID,[b]]c]", ["id", "b]c"]),
    ],
)
def test_a3_3_captured_column_list(db: Database, listed: str, captured: list[str]) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY, a int, [odd, name] int, [b]]c] int)")
    db.track("t", captured_column_list=listed)
    rows = db.run("SELECT column_name, column_ordinal FROM cdc.captured_columns ORDER BY column_ordinal")
    assert rows == list(zip(captured, range(1, len(captured) + 1), strict=True))


def test_a3_3_any_unique_index_may_identify_rows(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY, code char(3) NOT NULL, part int NOT NULL)")
    db.run("CREATE UNIQUE INDEX ux_code ON dbo.t (part, code)")
    db.track("t", index_name="ux_code", supports_net_changes=1)
    assert db.value("SELECT index_name FROM cdc.change_tables") == "ux_code"
    columns = db.run("SELECT column_name, index_ordinal, column_id FROM cdc.index_columns ORDER BY index_ordinal")
    assert columns == [("part", 1, 3), ("code", 2, 2)]


_TABLES = """
CREATE TABLE dbo.t (id int NOT NULL CONSTRAINT pk_t PRIMARY KEY, a int NULL, b int NOT NULL)
CREATE INDEX ix_a ON dbo.t (a)
CREATE UNIQUE INDEX ux_a ON dbo.t (a)
CREATE TABLE dbo.keyless (a int)
CREATE TABLE dbo.reserved (id int PRIMARY KEY, [__$operation] int)
"""


@pytest.mark.parametrize(
    ("table", "options", "number", "arguments"),
    [
        pytest.param("nosuch", {}, 22931, ("dbo", "nosuch"), id="40-no-such-table"),
        pytest.param("t", {"index_name": "nosuch"}, 22928, ("nosuch", "dbo", "t"), id="40-no-such-index"),
        pytest.param("t", {"index_name": "ix_a"}, 22929, ("ix_a", "dbo", "t"), id="40-index-not-unique"),
        pytest.param("t", {"index_name": "ux_a"}, 22838, ("ux_a", "dbo", "t"), id="40-index-nullable"),
        pytest.param("keyless", {"supports_net_changes": 1}, 22939, (), id="41-net-without-key"),
        pytest.param(
            "t", {"supports_net_changes": 1, "captured_column_list": "a, b"}, 22943, (), id="41-key-not-captured"
        ),
        pytest.param("t", {"captured_column_list": "id, nosuch"}, 22942, ("dbo", "t"), id="41-unknown-column"),
        pytest.param("t", {"captured_column_list": "id, [a"}, 22965, (), id="a3.3-unterminated-bracket"),
        pytest.param("t", {"captured_column_list": 'id, "a'}, 22965, (), id="a3.3-unterminated-quote"),
        pytest.param("t", {"capture_instance": "x" * 101}, 22927, ("x" * 101,), id="42-name-too-long"),
        pytest.param("cdc.change_tables", {}, 22974, (), id="42-schema-cdc"),
        pytest.param("t", {"role_name": ""}, 22907, (), id="42-empty-role"),
        pytest.param("t", {"filegroup_name": "nosuch"}, 22973, ("nosuch", "{db}"), id="a7-filegroup"),
        pytest.param("reserved", {}, 22975, ("reserved",), id="a7-reserved-column-name"),
        pytest.param("t", {"capture_instance": ""}, 22932, (), id="a7-no-identifier"),
    ],
)
def test_40_41_42_refused_tables(db: Database, table: str, options: dict, number: int, arguments: tuple) -> None:
    db.run(_TABLES)
    error = db.error(track(table, **options))
    assert (error.number, error.severity, error.state) == (number, 16, 1)
    assert in_order(error.text, *(each.format(db=db.name) for each in arguments))
    assert db.run("SELECT * FROM cdc.change_tables") == []
    assert db.run("SELECT name FROM sys.tables WHERE is_tracked_by_cdc = 1") == []


def test_a2_inner_errors_name_the_inner_procedure(db: Database) -> None:
    db.run("CREATE TABLE dbo.keyless (a int)")
    error = db.error(track("keyless", supports_net_changes=1))
    assert error.number == 22939
    assert error.procedure.endswith("sp_cdc_enable_table_internal")
    assert error.line > 0


def test_42_longest_name_is_100_characters(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int)")
    db.track("t", capture_instance="x" * 100)
    assert db.value("SELECT capture_instance FROM cdc.change_tables") == "x" * 100
    assert db.run(f"SELECT * FROM cdc.{'x' * 100}_CT") == []


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        ("sp_cdc_enable_table NULL, 't', @role_name = NULL", "@source_schema"),
        ("sp_cdc_enable_table 'dbo', NULL, @role_name = NULL", "@source_name"),
        ("sp_cdc_enable_table 'dbo', '', @role_name = NULL", "@source_name"),
        ("sp_cdc_disable_table NULL, 't', 'all'", "@source_schema"),
        ("sp_cdc_disable_table 'dbo', NULL, 'all'", "@source_name"),
        ("sp_cdc_disable_table 'dbo', 't', NULL", "@capture_instance"),
        ("sp_cdc_get_captured_columns NULL", "@capture_instance"),
    ],
)
def test_42_required_parameters(t: Database, call: str, parameter: str) -> None:
    error = t.error(f"EXEC sys.{call}")
    assert (error.number, error.severity) == (22963, 16)
    assert parameter in error.text


def test_a7_column_set_is_refused(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY, a int SPARSE, all_of_it xml COLUMN_SET FOR ALL_SPARSE_COLUMNS)")
    error = db.error(track("t"))
    assert (error.number, "t" in error.text) == (22854, True)


def test_a7_column_set_is_kept_from_a_tracked_table(t: Database) -> None:
    error = t.error("ALTER TABLE dbo.t ADD all_of_it xml COLUMN_SET FOR ALL_SPARSE_COLUMNS")
    assert (error.number, "t" in error.text) == (22854, True)


def test_a7_disabled_index_is_refused(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int NOT NULL)")
    db.run("CREATE UNIQUE INDEX ux ON dbo.t (id)")
    db.run("ALTER INDEX ux ON dbo.t DISABLE")
    error = db.error(track("t", index_name="ux"))
    assert error.number == 22980
    assert in_order(error.text, "ux", "dbo", "t")
    db.run("ALTER INDEX ux ON dbo.t REBUILD")
    db.track("t", index_name="ux")
    assert db.number("ALTER INDEX ux ON dbo.t DISABLE") in (22979, 22983)


def test_a7_disabled_index_lets_rows_be_equal_until_it_is_built_again(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int NOT NULL)")
    plain.run("CREATE UNIQUE INDEX ux ON dbo.t (id)")
    disabled = "SELECT is_disabled FROM sys.indexes WHERE name = 'ux'"
    assert plain.value(disabled) is False
    plain.run("ALTER INDEX ux ON dbo.t DISABLE")
    plain.run("INSERT INTO dbo.t VALUES (1), (1)")
    assert plain.value(disabled) is True
    assert plain.number("ALTER INDEX ux ON dbo.t REBUILD") == 1505
    plain.run("DELETE TOP (1) FROM dbo.t")
    plain.run("ALTER INDEX ux ON dbo.t REBUILD")
    assert (plain.value(disabled), plain.number("INSERT INTO dbo.t VALUES (1)")) == (False, 2601)
    assert plain.number("ALTER INDEX none ON dbo.t DISABLE") == 7999


def test_a7_more_than_14_key_columns_allow_no_net_changes(db: Database) -> None:
    names = [f"c{i}" for i in range(15)]
    columns = ", ".join(f"{name} int NOT NULL" for name in names)
    db.run(f"CREATE TABLE dbo.t ({columns}, CONSTRAINT pk_t PRIMARY KEY ({', '.join(names)}))")
    error = db.error(track("t", supports_net_changes=1))
    assert error.number == 22865
    assert in_order(error.text, "pk_t", "dbo", "t")
    db.track("t")
    assert db.value("SELECT COUNT(*) FROM cdc.index_columns") == 15


def test_a2_extended_ddl_handling_needs_its_switch(db: Database) -> None:
    if db.major() < 16:
        pytest.skip("the parameter came with SQL Server 2022")
    db.run("CREATE TABLE dbo.t (id int)")
    assert db.number(track("t", enable_extended_ddl_handling=1)) == 22874


def test_23_third_instance_and_taken_name(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int) CREATE TABLE dbo.u (id int)")
    db.track("t", capture_instance="one")
    taken = db.error(track("u", capture_instance="ONE"))
    assert taken.number == 22926
    assert "ONE" in taken.text
    assert db.number(track("t", capture_instance="one")) == 22926
    db.track("t", capture_instance="two")
    third = db.error(track("t", capture_instance="three"))
    assert third.number == 22962
    assert in_order(third.text, "dbo", "t")
    names = db.run("SELECT capture_instance FROM cdc.change_tables ORDER BY capture_instance")
    assert names == [("one",), ("two",)]


def test_a3_3_gating_role_is_created_or_taken(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY) CREATE TABLE dbo.u (id int PRIMARY KEY)")
    db.run("CREATE ROLE present")
    db.track("t", role_name="fresh")
    db.track("u", role_name="present")
    roles = db.run("SELECT name FROM sys.database_principals WHERE type = 'R' AND name IN ('fresh', 'present')")
    assert sorted(roles) == [("fresh",), ("present",)]
    assert db.run("SELECT capture_instance, role_name FROM cdc.change_tables ORDER BY 1") == [
        ("dbo_t", "fresh"),
        ("dbo_u", "present"),
    ]


@pytest.mark.parametrize(
    ("call", "number", "arguments"),
    [
        ("'dbo', 'nosuch', 'all'", 22931, ("dbo", "nosuch")),
        ("'dbo', 'untracked', 'all'", 22985, ("dbo", "untracked")),
        ("'dbo', 't', 'nosuch'", 22960, ("nosuch", "dbo", "t")),
        ("'dbo', 't', 'dbo_u'", 22960, ("dbo_u", "dbo", "t")),
    ],
)
def test_a3_4_refused_disabling(t: Database, call: str, number: int, arguments: tuple) -> None:
    t.run("CREATE TABLE dbo.untracked (id int) CREATE TABLE dbo.u (id int)")
    t.track("u")
    error = t.error(f"EXEC sys.sp_cdc_disable_table {call}")
    assert (error.number, error.severity) == (number, 16)
    assert in_order(error.text, *arguments)
    assert t.value("SELECT COUNT(*) FROM cdc.change_tables") == 2


def test_48_last_instance_takes_tracking_and_jobs_with_it(t: Database) -> None:
    t.track("t", capture_instance="second")
    t.run("ALTER TABLE dbo.t ADD c int")
    t.capture()
    tracked = "SELECT is_tracked_by_cdc FROM sys.tables WHERE name = 't'"
    jobs = "SELECT job_type FROM msdb.dbo.cdc_jobs WHERE database_id = DB_ID() ORDER BY job_type"
    t.run("EXEC sys.sp_cdc_disable_table 'dbo', 't', 'dbo_t'")
    assert t.value(tracked) is True
    assert t.run("SELECT capture_instance FROM cdc.change_tables") == [("second",)]
    for name in ("cdc.dbo_t_CT", "cdc.fn_cdc_get_all_changes_dbo_t(0x00, 0x00, 'all')"):
        assert t.number(f"SELECT * FROM {name}") == 208
    assert t.run("SELECT COUNT(*) FROM cdc.ddl_history") == [(1,)]
    assert t.run(jobs) == [("capture",), ("cleanup",)]
    t.run("EXEC sys.sp_cdc_disable_table 'dbo', 't', 'second'")
    assert t.value(tracked) is False
    for name in ("change_tables", "captured_columns", "index_columns", "ddl_history"):
        assert t.run(f"SELECT * FROM cdc.{name}") == []
    assert t.run(f"SELECT name FROM msdb.dbo.sysjobs WHERE name LIKE 'cdc.{t.name}%'") == []


def test_48_all_disables_every_instance(t: Database) -> None:
    t.track("t", capture_instance="second")
    assert t.value("DECLARE @r int EXEC @r = sys.sp_cdc_disable_table 'dbo', 't', 'all' SELECT @r") == 0
    assert t.run("SELECT * FROM cdc.change_tables") == []
    assert t.value("SELECT is_tracked_by_cdc FROM sys.tables WHERE name = 't'") is False
    assert t.number("SELECT * FROM cdc.second_CT") == 208


def test_49_enabling_waits_for_open_writers(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    writer, enabler = db.connect(), db.connect()
    writer.run("BEGIN TRAN INSERT INTO dbo.t VALUES (1)")
    enabling = threading.Thread(target=enabler.run, args=(track("t"),))
    enabling.start()
    enabling.join(0.2)
    assert enabling.is_alive()
    writer.run("INSERT INTO dbo.t VALUES (2) COMMIT")
    enabling.join(30)
    assert not enabling.is_alive()
    db.commit("INSERT INTO dbo.t VALUES (3)")
    # none of a transaction that wrote before is captured in part
    assert db.changes("__$operation, id") == [(2, 3)]


@pytest.fixture
def waiting(db: Database) -> Iterator[Client]:
    """A session that has written dbo.t, so that another waits to enable CDC for it until the first one ends."""
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY) CREATE TABLE dbo.u (id int PRIMARY KEY)")
    writer, enabler, prober = db.connect(), db.connect(), db.connect()
    db.run("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON")
    writer.run("BEGIN TRAN INSERT INTO dbo.t VALUES (1)")
    enabling = threading.Thread(target=enabler.run, args=(track("t"),))
    enabling.start()
    prober.run("SET LOCK_TIMEOUT 0")
    # who reads what is not committed waits for nobody but for who changes the definition
    wait_for(lambda: not _goes_through(prober, "SELECT id FROM dbo.t WITH (NOLOCK)"))
    yield writer
    writer.run("IF @@TRANCOUNT > 0 COMMIT")
    enabling.join(30)
    assert not enabling.is_alive()


def _goes_through(client: Client, statement: str) -> bool:
    try:
        client.run(statement)
    except SqlServerError as error:
        if error.number != 1222:
            raise
        return False
    return True


@pytest.mark.parametrize(
    "isolation", ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE", "SNAPSHOT"]
)
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT id FROM dbo.t WHERE id = 9",
        "INSERT INTO dbo.t VALUES (9)",
        "DELETE FROM dbo.t",
        "ALTER TABLE dbo.t ADD c int",
    ],
)
def test_49_all_others_wait_behind_enabling(db: Database, waiting: Client, isolation: str, statement: str) -> None:
    other = db.connect()
    other.run(f"SET TRANSACTION ISOLATION LEVEL {isolation} SET LOCK_TIMEOUT 50")
    assert other.number(statement) == 1222


def test_49_other_tables_go_on_beside_enabling(db: Database, waiting: Client) -> None:
    db.run("SET LOCK_TIMEOUT 0 INSERT INTO dbo.u VALUES (8)")
    db.run("UPDATE dbo.u SET id = 9")
    assert db.run("SELECT id FROM dbo.u") == [(9,)]
    # who has locks of the table comes before who waits for it
    waiting.run("UPDATE dbo.t SET id = 2 INSERT INTO dbo.t VALUES (3)")
    assert waiting.run("SELECT id FROM dbo.t ORDER BY id") == [(2,), (3,)]
    waiting.run("COMMIT")


def test_49_who_waited_behind_enabling_goes_on_and_is_captured(db: Database, waiting: Client) -> None:
    other = db.connect()
    behind = threading.Thread(target=other.run, args=("INSERT INTO dbo.t VALUES (2)",))
    behind.start()
    behind.join(0.2)
    assert behind.is_alive()
    waiting.run("COMMIT")
    behind.join(30)
    assert not behind.is_alive()
    db.capture()
    assert db.changes("__$operation, id") == [(2, 2)]


def test_49_a_lock_timeout_bounds_enabling_memory(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    writer, enabler = db.connect(), db.connect()
    writer.run("BEGIN TRAN INSERT INTO dbo.t VALUES (1)")
    assert enabler.number(f"SET LOCK_TIMEOUT 100 {track('t')}") == 1222
    # nobody waits behind one who has given up
    other = db.connect()
    assert _goes_through(other, "SET LOCK_TIMEOUT 0 SELECT id FROM dbo.t WITH (NOLOCK)")
    writer.run("COMMIT")
    assert db.run("SELECT capture_instance FROM cdc.change_tables") == []
    assert db.value("SELECT is_tracked_by_cdc FROM sys.tables WHERE name = 't'") is False


def test_49_others_wait_until_the_enabling_transaction_ends(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY) INSERT INTO dbo.t VALUES (1)")
    enabler, other = db.connect(), db.connect()
    other.run("SET LOCK_TIMEOUT 50")
    enabler.run(f"BEGIN TRAN {track('t')}")
    assert other.number("SELECT id FROM dbo.t WITH (NOLOCK)") == 1222
    assert other.number("DELETE FROM dbo.t") == 1222
    enabler.run("ROLLBACK")
    assert other.run("SELECT id FROM dbo.t") == [(1,)]
    assert db.run("SELECT capture_instance FROM cdc.change_tables") == []


def test_49_readers_of_the_change_table_block_disabling(t: Database) -> None:
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    reader, disabler = t.connect(), t.connect()
    reader.run("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE BEGIN TRAN SELECT COUNT(*) FROM cdc.dbo_t_CT")
    disabling = threading.Thread(target=disabler.run, args=("EXEC sys.sp_cdc_disable_table 'dbo', 't', 'all'",))
    disabling.start()
    disabling.join(0.2)
    waited = disabling.is_alive()
    reader.run("COMMIT")
    disabling.join(30)
    assert waited
    assert t.run("SELECT * FROM cdc.change_tables") == []
