"""Metadata tables, the procedures' result sets, and the DMVs of the log scan."""

from __future__ import annotations

import datetime

import pytest

from airflow_provider_mssql_cdc.sandbox.engine.schema import ColumnDef
from airflow_provider_mssql_cdc.sandbox.protocol import Column, SqlError
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType
from tests.support.sandbox.engine.cdc.world import INT, NOON, VARCHAR10, World, insert, table

LSN = SqlType("binary", 10)
T = table(
    "t",
    {
        "id": ColumnDef(1, "id", INT, nullable=False),
        "a": ColumnDef(3, "a", VARCHAR10),
        "c]d": ColumnDef(4, "c]d", INT, computed="([id])"),
        "rv": ColumnDef(7, "rv", SqlType("rowversion"), nullable=False),
    },
    key=["id"],
)


@pytest.fixture
def world() -> World:
    world = World()
    world.db.enable_table(T, role_name="readers")
    world.db.enable_table(T, capture_instance="v2", captured_column_list="a", supports_net_changes=False)
    return world


def test_change_table_columns(world: World) -> None:
    assert world.db.changes("DBO_t")[0] == [
        Column("__$start_lsn", LSN, nullable=False),
        Column("__$end_lsn", LSN),
        Column("__$seqval", LSN, nullable=False),
        Column("__$operation", INT, nullable=False),
        Column("__$update_mask", SqlType("varbinary", 128)),
        Column("id", INT),
        Column("a", VARCHAR10),
        Column("c]d", INT),
        Column("rv", SqlType("binary", 8)),
        Column("__$command_id", INT),
    ]
    world.commit(insert(T, (1, "x", None, b"12345678")))
    world.db.scan()
    (batch,) = world.db.change_rows("dbo_t")
    columns = world.db.changes("dbo_t")[0]
    assert batch.schema.names == [each.name for each in columns]
    assert batch.schema.types == [each.type.arrow for each in columns]


def test_change_tables(world: World) -> None:
    columns, _ = world.db.relation("change_tables")
    assert [each.name for each in columns] == [
        "object_id", "version", "source_object_id", "capture_instance", "start_lsn", "end_lsn", "supports_net_changes",
        "has_drop_pending", "role_name", "index_name", "filegroup_name", "create_date", "partition_switch",
    ]  # fmt: skip
    assert [each.name for each in columns if not each.nullable] == ["object_id", "capture_instance", "partition_switch"]
    starts = [world.db.min_lsn("dbo_t"), world.db.min_lsn("v2")]
    assert [tuple(row.values()) for row in world.relation("change_tables")] == [
        (1000, 0, 100, "dbo_t", starts[0], None, True, None, "readers", "PK_t", None, NOON, True),
        (1001, 0, 100, "v2", starts[1], None, False, None, None, "PK_t", None, NOON, True),
    ]


def test_captured_and_index_columns(world: World) -> None:
    assert [tuple(row.values()) for row in world.relation("captured_columns")] == [
        (1000, "id", 1, "int", 1, False, None),
        (1000, "a", 3, "varchar", 2, False, None),
        (1000, "c]d", 4, "int", 3, True, None),
        (1000, "rv", 7, "timestamp", 4, False, None),
        (1001, "a", 3, "varchar", 1, False, None),
    ]
    assert [tuple(row.values()) for row in world.relation("index_columns")] == [
        (1000, "id", 1, 1),
        (1001, "id", 1, 1),
    ]


def test_mapping_columns(world: World) -> None:
    columns, rows = world.db.relation("LSN_time_mapping")
    assert [(each.name, each.type.name, each.type.length, each.nullable) for each in columns] == [
        ("start_lsn", "binary", 10, False),
        ("tran_begin_time", "datetime", 0, True),
        ("tran_end_time", "datetime", 0, True),
        ("tran_id", "varbinary", 10, True),
        ("tran_begin_lsn", "binary", 10, True),
    ]
    assert rows.num_rows == 0
    assert rows.schema.types == [each.type.arrow for each in columns]


def test_mapping_grows_by_many_small_reads(world: World) -> None:
    commits = []
    for i in range(200):
        commits.append(world.commit(insert(T, (i, "x", None, b"12345678"))))
        world.db.scan()
        assert len(world.relation("lsn_time_mapping")) == i + 1
    assert [row["start_lsn"] for row in world.relation("lsn_time_mapping")] == commits


def test_relations_that_are_not_there(world: World) -> None:
    with pytest.raises(SqlError) as caught:
        world.db.relation("tables")
    assert (caught.value.number, caught.value.text) == (208, "Invalid object name 'cdc.tables'.")
    world.db.disable()
    with pytest.raises(SqlError) as caught:
        world.db.relation("change_tables")
    assert (caught.value.number, caught.value.text) == (208, "Invalid object name 'cdc.change_tables'.")
    assert world.relation("cdc_jobs") == []
    assert world.relation("dm_cdc_log_scan_sessions") == []


def test_help_change_data_capture(world: World) -> None:
    columns, rows = world.db.help_change_data_capture(None, None)
    assert [(each.name, each.type.name) for each in columns] == [
        ("source_schema", "sysname"),
        ("source_table", "sysname"),
        ("capture_instance", "sysname"),
        ("object_id", "int"),
        ("source_object_id", "int"),
        ("start_lsn", "binary"),
        ("end_lsn", "binary"),
        ("supports_net_changes", "bit"),
        ("has_drop_pending", "bit"),
        ("role_name", "sysname"),
        ("index_name", "sysname"),
        ("filegroup_name", "sysname"),
        ("create_date", "datetime"),
        ("index_column_list", "nvarchar"),
        ("captured_column_list", "nvarchar"),
    ]
    first, second = rows.to_pylist()
    assert (first["index_column_list"], first["captured_column_list"]) == ("[id]", "[id], [a], [c]]d], [rv]")
    assert (first["object_id"], first["source_object_id"], first["role_name"]) == (1000, 100, "readers")
    assert (second["capture_instance"], second["captured_column_list"]) == ("v2", "[a]")
    assert world.db.help_change_data_capture("dbo", "other")[1].num_rows == 0
    assert world.db.help_change_data_capture("DBO", "T")[1].num_rows == 2
    visible = world.db.help_change_data_capture(None, None, lambda each: each.role_name is None)[1].to_pylist()
    assert [row["capture_instance"] for row in visible] == ["v2"]
    for schema, name in [("dbo", None), (None, "t")]:
        with pytest.raises(SqlError) as caught:
            world.db.help_change_data_capture(schema, name)
        assert caught.value.number == 22972


def test_get_captured_columns() -> None:
    kinds = {
        "n": SqlType("nvarchar", 30),
        "m": SqlType("varchar", MAX),
        "d": SqlType("decimal", precision=12, scale=3),
        "t": SqlType("tinyint"),
        "f": SqlType("float"),
        "w": SqlType("money"),
        "x": SqlType("datetime2", scale=7),
        "y": SqlType("datetime"),
        "z": SqlType("uniqueidentifier"),
    }
    world = World()
    world.db.enable_table(table("t", kinds, schema="sales"))
    columns, rows = world.db.get_captured_columns("sales_T")
    assert [each.name for each in columns] == [
        "source_schema", "source_table", "capture_instance", "column_name", "column_id", "column_ordinal",
        "data_type", "character_maximum_length", "numeric_precision", "numeric_precision_radix", "numeric_scale",
        "datetime_precision",
    ]  # fmt: skip
    assert [tuple(row.values())[:3] for row in rows.to_pylist()] == [("sales", "t", "sales_t")] * 9
    assert [tuple(row.values())[3:] for row in rows.to_pylist()] == [
        ("n", 1, 1, "nvarchar", 30, None, None, None, None),
        ("m", 2, 2, "varchar", -1, None, None, None, None),
        ("d", 3, 3, "decimal", None, 12, 10, 3, None),
        ("t", 4, 4, "tinyint", None, 3, 10, 0, None),
        ("f", 5, 5, "float", None, 53, 2, None, None),
        ("w", 6, 6, "money", None, 19, 10, 4, None),
        ("x", 7, 7, "datetime2", None, None, None, None, 7),
        ("y", 8, 8, "datetime", None, None, None, None, 3),
        ("z", 9, 9, "uniqueidentifier", None, None, None, None, None),
    ]


@pytest.mark.parametrize(("name", "number"), [("nobody", 22981), ("", 22963), (None, 22963)])
def test_descriptions_of_unknown_instances(world: World, name: str | None, number: int) -> None:
    for call in (world.db.get_captured_columns, world.db.get_ddl_history):
        with pytest.raises(SqlError) as caught:
            call(name)
        assert caught.value.number == number
        if number == 22981:
            assert caught.value.text == "Object does not exist or access is denied."


def test_scan_sessions(world: World) -> None:
    for _ in range(3):
        world.now += datetime.timedelta(seconds=1)
        world.db.scan()
    first = world.commit(insert(T, (1, "x", None, b"12345678"), (2, "x", None, b"12345678")))
    last = world.commit(insert(T, (3, "x", None, b"12345678")))
    world.now += datetime.timedelta(seconds=4)
    world.db.scan()
    world.db.scan()
    total, empty, full, idle = world.relation("dm_cdc_log_scan_sessions")
    assert [row["session_id"] for row in (total, empty, full, idle)] == [0, 1, 2, 3]
    assert [row["empty_scan_count"] for row in (total, empty, full, idle)] == [4, 3, 0, 1]
    assert [row["tran_count"] for row in (total, empty, full, idle)] == [2, 0, 2, 0]
    # Three rows, captured by two instances.
    assert (full["command_count"], full["latency"]) == (6, 4)
    assert empty["start_lsn"] == empty["end_lsn"] == "00000000:00000000:0000\0"
    assert (empty["start_time"], empty["end_time"]) == (
        NOON + datetime.timedelta(seconds=1),
        NOON + datetime.timedelta(seconds=3),
    )
    assert first is not None
    assert last is not None
    text = last.hex()
    assert full["last_commit_lsn"] == f"{text[:8]}:{text[8:16]}:{text[16:]}\0"
    assert full["last_commit_time"] == world.db.map_lsn_to_time(last)
    assert full["scan_phase"] == "Done"


def test_sessions_are_kept_for_a_while_only(world: World) -> None:
    for i in range(40):
        world.commit(insert(T, (i, "x", None, b"12345678")))
        world.db.scan()
    rows = world.relation("dm_cdc_log_scan_sessions")
    assert [row["session_id"] for row in rows] == [0, *range(9, 41)]
    assert rows[0]["tran_count"] == 40
