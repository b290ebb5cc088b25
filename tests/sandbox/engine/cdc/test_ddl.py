"""DDL on tracked tables: what is refused, and what the capture makes of the rest."""

from __future__ import annotations

import dataclasses
import datetime
from decimal import Decimal

import pytest

from airflow_provider_mssql_cdc.sandbox.engine.log import TableAltered
from airflow_provider_mssql_cdc.sandbox.engine.schema import ColumnDef, IndexDef, TableDef
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.types import SqlType
from tests.support.sandbox.engine.cdc.world import INT, VARCHAR10, World, insert, table, update

UNIQUE = IndexDef("UX_b", ("b",), unique=True)
OTHER = IndexDef("UX_a", ("a",), unique=True)
T = table(
    "t",
    {"id": INT, "a": VARCHAR10, "b": ColumnDef(3, "b", INT, nullable=False)},
    key=["id"],
    indexes=[UNIQUE, OTHER],
)


def with_type(of: TableDef, name: str, column_type: SqlType) -> TableDef:
    columns = (dataclasses.replace(each, type=column_type) if each.name == name else each for each in of.columns)
    return dataclasses.replace(of, columns=tuple(columns))


def without_index(name: str) -> TableDef:
    return dataclasses.replace(T, indexes=tuple(index for index in T.indexes if index.name != name))


@pytest.fixture
def world() -> World:
    world = World()
    world.db.enable_table(T)
    world.db.enable_table(T, capture_instance="by_b", index_name="UX_b")
    return world


RENAMED = dataclasses.replace(T, columns=(T.columns[0], dataclasses.replace(T.columns[1], name="z"), T.columns[2]))


@pytest.mark.parametrize(
    ("after", "kind", "number", "procedure"),
    [
        (None, "TRUNCATE", 4711, ""),
        (RENAMED, "rename_column", 4928, "sp_rename"),
        (without_index("PK_t"), "drop_constraint", 22979, ""),
        (without_index("UX_b"), "drop_constraint", 22979, ""),
        (without_index("UX_b"), "drop_index", 22983, ""),
        (without_index("PK_t"), "drop_index", 22979, ""),
    ],
)
def test_refused(world: World, after: TableDef | None, kind: str, number: int, procedure: str) -> None:
    with pytest.raises(SqlError) as caught:
        world.db.check_ddl(T, after, kind)
    assert (caught.value.number, caught.value.severity, caught.value.procedure) == (number, 16, procedure)
    World().db.check_ddl(T, after, kind)  # not tracked


def test_allowed(world: World) -> None:
    world.db.check_ddl(T, None, "drop_table")
    world.db.check_ddl(T, without_index("UX_a"), "drop_index")
    world.db.check_ddl(T, dataclasses.replace(T, schema="sales", name="orders"), "rename_table")
    world.db.check_ddl(T, with_type(T, "a", SqlType("varchar", 20)), "alter_column")


def test_an_added_column_is_seen_by_a_new_instance_only(world: World) -> None:
    after = dataclasses.replace(T, columns=(*T.columns, ColumnDef(4, "c", INT)))
    ddl = world.commit(TableAltered(T, after, "alter table dbo.t add c int"))
    world.db.disable_table(T, "by_b")
    world.db.enable_table(after, capture_instance="new")
    world.commit(insert(after, (1, "x", 2, 3)))
    world.commit(update(after, ((1, "x", 2, 3), (1, "x", 2, 4))))
    world.db.scan()
    assert [row["__$operation"] for row in world.rows("dbo_t")] == [2]
    assert [row["__$update_mask"] for row in world.rows("dbo_t")] == [b"\x07"]
    assert [(row["__$operation"], row["c"]) for row in world.rows("new")] == [(2, 3), (3, 3), (4, 4)]
    (history,) = world.relation("ddl_history")
    assert history == {
        "source_object_id": 100,
        "object_id": 1000,
        "required_column_update": False,
        "ddl_command": "alter table dbo.t add c int",
        "ddl_lsn": ddl,
        "ddl_time": history["ddl_time"],
    }
    committed = world.db.map_lsn_to_time(ddl)
    assert committed is not None
    assert history["ddl_time"] == committed.replace(second=0, microsecond=0)


def test_a_dropped_column_yields_null(world: World) -> None:
    after = dataclasses.replace(T, columns=(T.columns[0], T.columns[2]), indexes=without_index("UX_a").indexes)
    world.commit(insert(T, (1, "x", 1)))
    world.commit(TableAltered(T, after, "ALTER TABLE t DROP COLUMN a"))
    world.commit(insert(after, (2, 2)))
    # A column of the same name is another column.
    again = dataclasses.replace(after, columns=(*after.columns, ColumnDef(4, "a", VARCHAR10)))
    world.commit(TableAltered(after, again, "ALTER TABLE t ADD a varchar(10)"))
    world.commit(insert(again, (3, 3, "y")))
    world.db.scan()
    assert [(row["id"], row["a"], row["b"], row["__$update_mask"]) for row in world.rows("dbo_t")] == [
        (1, "x", 1, b"\x07"),
        (2, None, 2, b"\x07"),
        (3, None, 3, b"\x07"),
    ]
    captured = [row for row in world.relation("captured_columns") if row["object_id"] == 1000]
    assert [(row["column_name"], row["column_id"]) for row in captured] == [("id", 1), ("a", 2), ("b", 3)]
    history = world.relation("ddl_history")
    assert [(row["object_id"], row["required_column_update"]) for row in history] == [
        (1000, False), (1000, False), (1001, False), (1001, False),
    ]  # fmt: skip


def test_a_new_type_comes_in_log_order(world: World) -> None:
    wide = with_type(T, "b", SqlType("bigint"))
    world.commit(insert(T, (1, "x", 1)))
    world.commit(TableAltered(T, wide, "ALTER TABLE t ALTER COLUMN b bigint NOT NULL"))
    world.commit(insert(wide, (2, "x", 2**40)))
    assert world.db.scan(1) == 1
    assert world.db.changes("dbo_t")[0][7].type == INT
    assert world.relation("ddl_history") == []
    assert world.db.scan() == 2
    assert world.db.changes("dbo_t")[0][7].type == SqlType("bigint")
    assert [row["b"] for row in world.rows("dbo_t")] == [1, 2**40]
    assert [row["b"] for row in world.rows("by_b")] == [1, 2**40]
    assert [row["required_column_update"] for row in world.relation("ddl_history")] == [True, True]
    rows = world.relation("captured_columns")
    assert [row["column_type"] for row in rows if row["column_name"] == "b"] == ["bigint", "bigint"]


@pytest.mark.parametrize(
    ("before", "value", "after", "expected"),
    [
        (INT, 7, SqlType("decimal", precision=10, scale=2), Decimal("7.00")),
        (SqlType("money"), Decimal("1.2500"), SqlType("decimal", precision=20, scale=6), Decimal("1.250000")),
        (SqlType("tinyint"), 255, SqlType("smallint"), 255),
        (VARCHAR10, "x", SqlType("nvarchar", 30), "x"),
        (VARCHAR10, "x", SqlType("char", 3), "x  "),
        (SqlType("varbinary", 3), b"\x01", SqlType("binary", 2), b"\x01\x00"),
        (SqlType("datetime2", scale=3), 1_000_000, SqlType("datetime2", scale=7), 1_000_000),
        (INT, -7, SqlType("nvarchar", 10), "-7"),
        (VARCHAR10, "0042", INT, 42),
        (VARCHAR10, "1999-12-31", SqlType("date"), datetime.date(1999, 12, 31)),
        (SqlType("date"), datetime.date(1, 1, 2), SqlType("datetime2", scale=7), 864_000_000_000),
        (SqlType("decimal", precision=5, scale=2), Decimal("12.50"), SqlType("float"), 12.5),
        (SqlType("bit"), True, SqlType("tinyint"), 1),
    ],
)  # fmt: skip
def test_types_that_follow(before: SqlType, value: object, after: SqlType, expected: object) -> None:
    old = table("t", {"v": before})
    new = with_type(old, "v", after)
    world = World()
    world.db.enable_table(old)
    world.commit(insert(old, (value,)))
    world.commit(TableAltered(old, new, "ALTER"))
    world.commit(insert(new, (expected,)))
    world.db.scan()
    assert [row["v"] for row in world.rows("dbo_t")] == [expected, expected]


def test_a_failing_scan_delivers_nothing_and_blocks_until_repaired(world: World) -> None:
    narrow = with_type(T, "a", SqlType("varchar", 3))
    world.commit(insert(T, (1, "long one", 1)))
    world.db.scan()
    mark = world.db.max_lsn()
    world.commit(insert(T, (2, "x", 2)))
    world.commit(TableAltered(T, narrow, "ALTER TABLE t ALTER COLUMN a varchar(3)"))
    world.commit(insert(narrow, (3, "y", 3)))
    for _ in range(2):
        with pytest.raises(SqlError) as caught:
            world.db.scan()
        assert caught.value.number == 22976
    assert [row["id"] for row in world.rows("dbo_t")] == [1]
    assert world.db.max_lsn() == mark
    assert world.relation("ddl_history") == []
    failures = world.relation("dm_cdc_errors")
    assert [row["error_number"] for row in failures] == [22976, 22976]
    assert "truncated in table 'cdc.dbo_t_CT'" in failures[0]["error_message"]
    assert "SQL:" not in failures[0]["error_message"]
    assert [row["session_id"] for row in failures] == [2, 3]
    total = world.relation("dm_cdc_log_scan_sessions")[0]
    assert (total["failed_sessions_count"], total["error_count"]) == (2, 2)
    # The transaction before the ALTER can be taken alone, and the mark then be raised above the long value.
    assert world.db.scan(1) == 1
    for instance in ("dbo_t", "by_b"):
        world.db.cleanup(instance, world.db.max_lsn())
    assert world.db.scan() == 2
    assert [row["id"] for row in world.rows("dbo_t")] == [2, 3]


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        (VARCHAR10, "x", SqlType("date")),
        (VARCHAR10, "2147483648", INT),
        (INT, 256, SqlType("tinyint")),
        (SqlType("date"), datetime.date(2000, 1, 1), INT),
    ],
)
def test_a_captured_value_that_cannot_follow_stops_the_capture(before: SqlType, value: object, after: SqlType) -> None:
    old = table("t", {"v": before})
    world = World()
    world.db.enable_table(old)
    world.commit(TableAltered(old, with_type(old, "v", after), "ALTER"))
    world.db.scan()  # without rows there is nothing to convert
    world = World()
    world.db.enable_table(old)
    world.commit(insert(old, (value,)))
    world.commit(TableAltered(old, with_type(old, "v", after), "ALTER"))
    with pytest.raises(SqlError) as caught:
        world.db.scan()
    assert caught.value.number == 22976


def test_a_renamed_table_keeps_its_instances(world: World) -> None:
    world.db.table_changed(dataclasses.replace(T, schema="sales", name="orders"))
    rows = world.db.help_change_data_capture("sales", "ORDERS")[1].to_pylist()
    assert [(row["source_schema"], row["source_table"], row["capture_instance"]) for row in rows] == [
        ("sales", "orders", "dbo_t"),
        ("sales", "orders", "by_b"),
    ]
