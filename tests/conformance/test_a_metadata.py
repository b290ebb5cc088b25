"""Sections A3.5 to A3.7 and A5: what the metadata procedures and the tables of schema cdc say."""

from __future__ import annotations

import pytest

from tests.support.conformance.client import Row
from tests.support.conformance.database import Database


def columns_of(db: Database, name: str) -> list[Row]:
    """Name, type and nullability of an object's columns, in order, from the catalogue."""
    rows = db.run(
        "SELECT name, TYPE_NAME(user_type_id), max_length, is_nullable FROM sys.columns"
        f" WHERE object_id = OBJECT_ID('{name}') ORDER BY column_id"
    )
    return [(column, _type(type_, length), nullable) for column, type_, length, nullable in rows]


def _type(name: str, length: int) -> str:
    if name == "nvarchar" and length != -1:
        length //= 2
    sized = name in ("binary", "varbinary", "nvarchar", "varchar")
    return f"{name}({'max' if length == -1 else length})" if sized else name


_CHANGE_TABLES = [
    ("object_id", "int", False),
    ("version", "int", True),
    ("source_object_id", "int", True),
    ("capture_instance", "sysname", False),
    ("start_lsn", "binary(10)", True),
    ("end_lsn", "binary(10)", True),
    ("supports_net_changes", "bit", True),
    ("has_drop_pending", "bit", True),
    ("role_name", "sysname", True),
    ("index_name", "sysname", True),
    ("filegroup_name", "sysname", True),
    ("create_date", "datetime", True),
    ("partition_switch", "bit", False),
]
_CAPTURED_COLUMNS = [
    ("object_id", "int", False),
    ("column_name", "sysname", False),
    ("column_id", "int", True),
    ("column_type", "sysname", False),
    ("column_ordinal", "int", False),
    ("is_computed", "bit", True),
    ("masking_function", "nvarchar(4000)", True),
]
_INDEX_COLUMNS = [
    ("object_id", "int", False),
    ("column_name", "sysname", False),
    ("index_ordinal", "tinyint", False),
    ("column_id", "int", False),
]
_DDL_HISTORY = [
    ("source_object_id", "int", True),
    ("object_id", "int", False),
    ("required_column_update", "bit", True),
    ("ddl_command", "nvarchar(max)", True),
    ("ddl_lsn", "binary(10)", False),
    ("ddl_time", "datetime", True),
]
_LSN_TIME_MAPPING = [
    ("start_lsn", "binary(10)", False),
    ("tran_begin_time", "datetime", True),
    ("tran_end_time", "datetime", True),
    ("tran_id", "varbinary(10)", True),
    ("tran_begin_lsn", "binary(10)", True),
]
_CHANGE_TABLE = [
    ("__$start_lsn", "binary(10)", False),
    ("__$end_lsn", "binary(10)", True),
    ("__$seqval", "binary(10)", False),
    ("__$operation", "int", False),
    ("__$update_mask", "varbinary(128)", True),
    ("id", "int", True),
    ("a", "varchar(10)", True),
    ("b", "int", True),
    ("__$command_id", "int", True),
]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        pytest.param("cdc.dbo_t_CT", _CHANGE_TABLE, id="21-change-table"),
        pytest.param("cdc.change_tables", _CHANGE_TABLES, id="22-change_tables"),
        pytest.param("cdc.captured_columns", _CAPTURED_COLUMNS, id="a5-captured_columns"),
        pytest.param("cdc.index_columns", _INDEX_COLUMNS, id="a5-index_columns"),
        pytest.param("cdc.ddl_history", _DDL_HISTORY, id="a5-ddl_history"),
        pytest.param("cdc.lsn_time_mapping", _LSN_TIME_MAPPING, id="a5-lsn_time_mapping"),
    ],
)
class TestColumns:
    def test_21_22_names_in_order(self, t: Database, name: str, wanted: list[Row]) -> None:
        assert t.names(f"SELECT * FROM {name}") == [column for column, _, _ in wanted]

    def test_21_22_catalogue_describes_them(self, t: Database, name: str, wanted: list[Row]) -> None:
        assert columns_of(t, name) == wanted


def test_h_sysname_is_nvarchar_128(t: Database) -> None:
    length = "SELECT max_length FROM sys.columns WHERE object_id = OBJECT_ID('cdc.change_tables') AND name = '{}'"
    assert t.value(length.format("capture_instance")) == 256


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (
            "msdb.dbo.cdc_jobs",
            "database_id job_type job_id maxtrans maxscans continuous pollinginterval retention threshold",
        ),
        (
            "sys.dm_cdc_log_scan_sessions",
            "session_id start_time end_time duration scan_phase error_count start_lsn current_lsn end_lsn tran_count"
            " last_commit_lsn last_commit_time log_record_count schema_change_count command_count first_begin_cdc_lsn"
            " last_commit_cdc_lsn last_commit_cdc_time latency empty_scan_count failed_sessions_count",
        ),
        (
            "sys.dm_cdc_errors",
            "session_id phase_number entry_time error_number error_severity error_state error_message start_lsn"
            " begin_lsn sequence_value",
        ),
    ],
)
def test_a5_names_in_order(t: Database, name: str, wanted: str) -> None:
    assert t.names(f"SELECT * FROM {name}") == wanted.split()


def test_21_change_table_has_no_identity_and_is_shipped(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int IDENTITY PRIMARY KEY, a int NOT NULL DEFAULT 7, c AS (a * 2))")
    db.track("t")
    rows = db.run(
        "SELECT name, is_identity, is_computed, is_nullable, default_object_id FROM sys.columns"
        " WHERE object_id = OBJECT_ID('cdc.dbo_t_CT') AND name IN ('id', 'a', 'c') ORDER BY column_id"
    )
    assert rows == [(name, False, False, True, 0) for name in ("id", "a", "c")]
    shipped = "SELECT is_ms_shipped, is_tracked_by_cdc FROM sys.tables WHERE object_id = OBJECT_ID('cdc.dbo_t_CT')"
    assert db.run(shipped) == [(True, False)]


def _indexes(db: Database, name: str) -> dict[tuple[str, bool], list[str]]:
    rows = db.run(
        "SELECT i.type_desc, i.is_unique, c.name FROM sys.indexes AS i JOIN sys.index_columns AS k"
        " ON k.object_id = i.object_id AND k.index_id = i.index_id JOIN sys.columns AS c"
        f" ON c.object_id = k.object_id AND c.column_id = k.column_id WHERE i.object_id = OBJECT_ID('{name}')"
        " ORDER BY i.index_id, k.key_ordinal"
    )
    found: dict[tuple[str, bool], list[str]] = {}
    for kind, unique, column in rows:
        found.setdefault((kind, unique), []).append(column)
    return found


def test_a5_indexes_of_a_change_table(t: Database) -> None:
    order = ["__$start_lsn", "__$command_id", "__$seqval", "__$operation"]
    found = _indexes(t, "cdc.dbo_t_CT")
    assert found[("CLUSTERED", True)] == order
    assert [columns for (kind, _), columns in found.items() if kind == "NONCLUSTERED"] == [["id", *order]]


def test_a5_indexes_of_the_metadata(t: Database) -> None:
    assert ["capture_instance"] in [
        columns for (_, unique), columns in _indexes(t, "cdc.change_tables").items() if unique
    ]
    assert ["start_lsn"] in [columns for (_, unique), columns in _indexes(t, "cdc.lsn_time_mapping").items() if unique]


def test_22_change_tables_row(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int NOT NULL CONSTRAINT pk_t PRIMARY KEY, a int)")
    before = db.value("SELECT GETDATE()")
    db.track("t", capture_instance="mine", role_name="gate", supports_net_changes=1, allow_partition_switch=0)
    row = db.run("SELECT * FROM cdc.change_tables")[0]
    change_table, source = db.run("SELECT OBJECT_ID('cdc.mine_CT'), OBJECT_ID('dbo.t')")[0]
    assert row[:4] == (change_table, 0, source, "mine")
    assert len(row[4]) == 10
    assert row[4] > bytes(10)
    assert row[5:8] == (None, True, None)
    assert row[8:11] == ("gate", "pk_t", None)
    assert before <= row[11] <= db.value("SELECT GETDATE()")
    # what it says of a table without partitions is not known for certain
    assert row[12] in (False, True)


def test_61_captured_columns_name_the_change_table_and_the_sources_columns(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY, gone int, a nvarchar(5), b decimal(9, 2), c AS (id + 1))")
    db.run("ALTER TABLE dbo.t DROP COLUMN gone")
    db.track("t", captured_column_list="id, b, c")
    rows = db.run(
        "SELECT object_id, column_name, column_id, column_type, column_ordinal, is_computed, masking_function"
        " FROM cdc.captured_columns ORDER BY column_ordinal"
    )
    change_table = db.value("SELECT OBJECT_ID('cdc.dbo_t_CT')")
    assert rows == [
        (change_table, "id", 1, "int", 1, False, None),
        (change_table, "b", 4, "decimal", 2, False, None),
        (change_table, "c", 5, "int", 3, True, None),
    ]


def test_a5_index_columns_rows(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (a int NOT NULL, b int NOT NULL, CONSTRAINT pk_t PRIMARY KEY (b, a))")
    db.track("t")
    rows = db.run("SELECT object_id, column_name, index_ordinal, column_id FROM cdc.index_columns ORDER BY 3")
    change_table = db.value("SELECT OBJECT_ID('cdc.dbo_t_CT')")
    assert rows == [(change_table, "b", 1, 2), (change_table, "a", 2, 1)]


def test_a4_functions_are_objects_of_schema_cdc(t: Database) -> None:
    rows = t.run(
        "SELECT name, type, is_ms_shipped FROM sys.objects WHERE schema_id = SCHEMA_ID('cdc')"
        " AND name IN ('fn_cdc_get_all_changes_dbo_t', 'fn_cdc_get_net_changes_dbo_t') ORDER BY name"
    )
    assert [(name, kind.strip(), shipped) for name, kind, shipped in rows] == [
        ("fn_cdc_get_all_changes_dbo_t", "IF", False),
        ("fn_cdc_get_net_changes_dbo_t", "IF", False),
    ]


@pytest.mark.parametrize("name", ["fn_cdc_get_all_changes_...", "fn_cdc_get_net_changes_..."])
def test_a4_placeholder_functions(t: Database, name: str) -> None:
    found = t.run("SELECT name FROM sys.objects WHERE schema_id = SCHEMA_ID('cdc') AND name LIKE 'fn[_]cdc%...%'")
    assert name in {each.replace(" ", "") for (each,) in found}


# Procedures


_HELP = [
    "source_schema", "source_table", "capture_instance", "object_id", "source_object_id", "start_lsn", "end_lsn",
    "supports_net_changes", "has_drop_pending", "role_name", "index_name", "filegroup_name", "create_date",
    "index_column_list", "captured_column_list",
]  # fmt: skip


def test_a3_5_help_change_data_capture(db: Database) -> None:
    db.run("CREATE SCHEMA [odd schema]")
    db.run("CREATE TABLE [odd schema].t (b int NOT NULL, [a]]c] int NOT NULL, CONSTRAINT pk PRIMARY KEY ([a]]c], b))")
    db.run("CREATE TABLE dbo.keyless (x int)")
    db.track("odd schema.t", capture_instance="one", role_name="gate", supports_net_changes=1)
    result = db.sets("EXEC sys.sp_cdc_help_change_data_capture")[-1]
    assert result.names == _HELP
    known = db.run("SELECT object_id, source_object_id, start_lsn, create_date FROM cdc.change_tables")[0]
    change_table, source, start_lsn, created = known
    assert result.rows == [
        (
            "odd schema", "t", "one", change_table, source, start_lsn, None, True, None, "gate", "pk", None, created,
            "[a]]c], [b]", "[b], [a]]c]",
        )
    ]  # fmt: skip
    db.track("keyless")
    keyless = db.run("EXEC sys.sp_cdc_help_change_data_capture 'dbo', 'keyless'")
    assert [(row[:3], row[7], row[9:11], row[14]) for row in keyless] == [
        (("dbo", "keyless", "dbo_keyless"), False, (None, None), "[x]")
    ]


def test_a3_5_help_of_one_table_or_all(t: Database) -> None:
    t.run("CREATE TABLE dbo.u (id int)")
    t.track("u")
    t.track("t", capture_instance="second")
    every = t.run("EXEC sys.sp_cdc_help_change_data_capture")
    assert sorted(row[2] for row in every) == ["dbo_t", "dbo_u", "second"]
    one = t.run("EXEC sys.sp_cdc_help_change_data_capture @source_schema = 'dbo', @source_name = 't'")
    assert sorted(row[2] for row in one) == ["dbo_t", "second"]


@pytest.mark.parametrize("parameter", ["@source_schema = 'dbo'", "@source_name = 't'"])
def test_a3_5_help_needs_both_names_or_none(t: Database, parameter: str) -> None:
    assert t.number(f"EXEC sys.sp_cdc_help_change_data_capture {parameter}") == 22972


_TYPES = """CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, skipped int, v varchar(10), n nvarchar(20),
m nvarchar(max), d decimal(9, 2), t3 datetime2(3), g uniqueidentifier)"""


def test_a3_6_get_captured_columns_open(db: Database) -> None:
    db.run(_TYPES)
    db.track("t", captured_column_list="id, v, n, m, d, t3, g")
    result = db.sets("EXEC sys.sp_cdc_get_captured_columns 'dbo_t'")[-1]
    assert result.names[:5] == ["source_schema", "source_table", "capture_instance", "column_name", "column_id"]
    # which of the two names is not known for certain
    assert result.names[5] == "column_ordinal"
    assert result.names[6:] == [
        "data_type", "character_maximum_length", "numeric_precision", "numeric_precision_radix", "numeric_scale",
        "datetime_precision",
    ]  # fmt: skip
    assert {row[:3] for row in result.rows} == {("dbo", "t", "dbo_t")}
    assert [row[3:8] for row in result.rows] == [
        ("id", 1, 1, "int", None),
        ("v", 3, 2, "varchar", 10),
        ("n", 4, 3, "nvarchar", 20),
        ("m", 5, 4, "nvarchar", -1),
        ("d", 6, 5, "decimal", None),
        ("t3", 7, 6, "datetime2", None),
        ("g", 8, 7, "uniqueidentifier", None),
    ]
    described = {row[3]: (row[8], row[10], row[11]) for row in result.rows}
    assert described["d"] == (9, 2, None)
    assert described["t3"] == (None, None, 3)
    assert described["v"] == (None, None, None)


@pytest.mark.parametrize("procedure", ["sp_cdc_get_captured_columns", "sp_cdc_get_ddl_history"])
def test_a3_6_a3_7_unknown_instance(t: Database, procedure: str) -> None:
    error = t.error(f"EXEC sys.{procedure} 'nosuch'")
    assert (error.number, error.severity, error.text) == (22981, 16, "Object does not exist or access is denied.")


def test_a3_7_get_ddl_history(t: Database) -> None:
    t.commit("ALTER TABLE dbo.t ADD c int NULL")
    result = t.sets("EXEC sys.sp_cdc_get_ddl_history 'dbo_t'")[-1]
    assert result.names == [
        "source_schema", "source_table", "capture_instance", "required_column_update", "ddl_command", "ddl_lsn",
        "ddl_time",
    ]  # fmt: skip
    lsn, time = t.run("SELECT ddl_lsn, ddl_time FROM cdc.ddl_history")[0]
    assert result.rows == [("dbo", "t", "dbo_t", False, "ALTER TABLE dbo.t ADD c int NULL", lsn, time)]
