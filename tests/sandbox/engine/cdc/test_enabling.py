"""Enabling and disabling: what is refused, what is settled, what clients are told."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_mssql_cdc.sandbox.engine.cdc.database import CdcDatabase
from airflow_provider_mssql_cdc.sandbox.engine.cdc.enabling import parse_column_list
from airflow_provider_mssql_cdc.sandbox.engine.cdc.switches import Switches
from airflow_provider_mssql_cdc.sandbox.engine.schema import ColumnDef, IndexDef, TableDef
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from tests.support.sandbox.engine.cdc.world import INT, NOON, VARCHAR10, World, insert, table

UNIQUE = IndexDef("UX_b", ("b",), unique=True)
NULLABLE = IndexDef("UX_a", ("a",), unique=True)
PLAIN = IndexDef("IX_b", ("b",))
T = table(
    "t",
    {"id": INT, "a": VARCHAR10, "b": ColumnDef(3, "b", INT, nullable=False)},
    key=["id"],
    indexes=[UNIQUE, NULLABLE, PLAIN],
)
HEAP = table("heap", {"id": INT, "a": VARCHAR10}, object_id=101)


def refusal(world: World, of: TableDef, **options: Any) -> tuple[int, str]:
    with pytest.raises(SqlError) as caught:
        world.db.enable_table(of, **options)
    assert (caught.value.severity, caught.value.state) == (16, 1)
    return caught.value.number, caught.value.text


@pytest.mark.parametrize(
    ("of", "options", "number", "arguments"),
    [
        (table("t", {"id": INT}, schema="CDC"), {}, 22974, []),
        (T, {"role_name": ""}, 22907, []),
        (T, {"capture_instance": "i" * 101}, 22927, ["i" * 101]),
        (T, {"capture_instance": " "}, 22932, []),
        (T, {"filegroup_name": "FAST"}, 22973, ["FAST", "shop"]),
        (T, {"index_name": "IX_none"}, 22928, ["IX_none", "dbo", "t"]),
        (T, {"index_name": "ix_B"}, 22929, ["IX_b", "dbo", "t"]),
        (T, {"index_name": "UX_a"}, 22838, ["UX_a", "dbo", "t"]),
        (T, {"captured_column_list": "id, [a"}, 22965, []),
        (T, {"captured_column_list": "id, c"}, 22942, ["dbo", "t"]),
        (T, {"captured_column_list": ""}, 22942, ["dbo", "t"]),
        (HEAP, {"supports_net_changes": True}, 22939, []),
        (T, {"supports_net_changes": True, "captured_column_list": "a,b"}, 22943, []),
        (T, {"captured_column_list": "a,b"}, 22943, []),
        (table("t", {"id": INT, "__$operation": INT}), {}, 22975, ["t"]),
        (table("t", {f"c{i}": INT for i in range(1025)}), {}, 22925, ["1025"]),
        (
            table("t", {f"c{i}": INT for i in range(15)}, key=[f"c{i}" for i in range(15)]),
            {"supports_net_changes": True},
            22865,
            ["PK_t", "dbo", "t"],
        ),
    ],
)
def test_refused(of: TableDef, options: dict[str, Any], number: int, arguments: list[str]) -> None:
    world = World()
    got, text = refusal(world, of, **options)
    assert got == number
    at = 0
    for argument in arguments:
        at = text.index(argument, at) + len(argument)
    assert world.db.instances == ()
    assert not world.db.is_tracked(of.object_id)


def test_two_instances_at_most_and_names_once() -> None:
    world = World()
    world.db.enable_table(T)
    assert refusal(world, T)[0] == 22926
    assert refusal(world, HEAP, capture_instance="DBO_T")[0] == 22926
    world.db.enable_table(T, capture_instance="second")
    assert refusal(world, T, capture_instance="third")[0] == 22962
    world.db.enable_table(HEAP, capture_instance="third")
    assert [each.capture_instance for each in world.db.instances] == ["dbo_t", "second", "third"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b", ["a", "b"]),
        (' [a] , "b c" ,d ', ["a", "b c", "d"]),
        ("[a]]b],[c,d]", ["a]b", "c,d"]),
        ('"a""b"', ['a"b']),
        ("[a] b", ["ab"]),
        ("", []),
    ],
)
def test_column_lists(text: str, names: list[str]) -> None:
    assert parse_column_list(text) == names


def test_defaults_with_a_primary_key() -> None:
    world = World()
    world.db.enable_table(T)
    (instance,) = world.db.instances
    assert instance.capture_instance == "dbo_t"
    assert instance.supports_net_changes
    assert (instance.index_name, [key.name for key in instance.key]) == ("PK_t", ["id"])
    assert (instance.role_name, instance.filegroup_name, instance.partition_switch) == (None, None, True)
    assert instance.create_date == NOON
    assert instance.change_table_object_id == 1000


def test_defaults_without_a_key() -> None:
    world = World()
    world.db.enable_table(HEAP)
    (instance,) = world.db.instances
    assert (instance.supports_net_changes, instance.index_name, instance.key) == (False, None, ())


def test_net_changes_by_default_is_a_switch() -> None:
    world = World(Switches(net_changes_by_default=False))
    assert world.db.enable_table(T) == []
    assert not world.db.instances[0].supports_net_changes


def test_choices() -> None:
    world = World()
    world.db.enable_table(
        T,
        capture_instance="ci",
        supports_net_changes=True,
        role_name="readers",
        index_name="ux_b",
        captured_column_list="B,ID",
        filegroup_name="primary",
        allow_partition_switch=False,
    )
    (instance,) = world.db.instances
    assert [column.name for column in instance.columns] == ["id", "b"]
    assert (instance.index_name, [key.column_id for key in instance.key]) == ("UX_b", [3])
    assert (instance.role_name, instance.filegroup_name, instance.partition_switch) == ("readers", "primary", False)


def test_enable_db_twice_is_only_a_message() -> None:
    world = World()
    (message,) = world.db.enable()
    assert (message.number, message.severity) == (22905, 10)
    assert "shop" in message.text


def test_system_databases_have_no_cdc() -> None:
    world = World()
    master = CdcDatabase("master", 1, clock=lambda: world.now, new_object_id=lambda: 1)
    with pytest.raises(SqlError) as caught:
        master.enable()
    assert caught.value.number == 22989


def test_a_database_without_cdc() -> None:
    world = World()
    world.db.enable_table(T)
    world.commit(insert(T, (1, "x", 1)))
    world.db.scan()
    assert world.db.disable() == []
    assert not world.db.enabled
    assert not world.db.is_tracked(T.object_id)
    (message,) = world.db.disable()
    assert (message.number, message.severity) == (22901, 10)
    calls = [
        lambda: world.db.enable_table(T),
        lambda: world.db.disable_table(T, "all"),
        lambda: world.db.scan(),
        lambda: world.db.sp_cdc_scan(),
        lambda: world.db.help_jobs(),
        lambda: world.db.add_job("capture"),
        lambda: world.db.drop_job("capture"),
        lambda: world.db.help_change_data_capture(None, None),
        lambda: world.db.get_captured_columns("dbo_t"),
        lambda: world.db.get_ddl_history("dbo_t"),
    ]
    for call in calls:
        with pytest.raises(SqlError) as caught:
            call()
        assert caught.value.number == 22901
    with pytest.raises(SqlError) as caught:
        world.db.cleanup("dbo_t", None)
    assert caught.value.number == 22910
    assert world.commit(insert(T, (2, "x", 1))) is None


def test_enabling_again_starts_empty_above_the_old_lsns() -> None:
    world = World()
    world.db.enable_table(T)
    commit = world.commit(insert(T, (1, "x", 1)))
    world.db.scan()
    world.db.disable()
    world.db.enable()
    assert world.db.max_lsn() is None
    world.db.enable_table(T)
    start = world.db.min_lsn("dbo_t")
    assert commit is not None
    assert start is not None
    assert start > commit
    assert world.rows("dbo_t") == []


def test_disable_table() -> None:
    world = World()
    world.db.enable_table(T)
    world.db.enable_table(T, capture_instance="second")
    world.db.enable_table(HEAP)
    for of, name, number in [(T, "third", 22960), (T, "dbo_heap", 22960), (T, "", 22963)]:
        with pytest.raises(SqlError) as caught:
            world.db.disable_table(of, name)
        assert caught.value.number == number
    world.db.disable_table(T, "DBO_T")
    assert [each.capture_instance for each in world.db.instances] == ["second", "dbo_heap"]
    assert world.db.is_tracked(T.object_id)
    world.db.enable_table(T)
    world.db.disable_table(T, "ALL")
    assert not world.db.is_tracked(T.object_id)
    assert world.db.is_tracked(HEAP.object_id)
    with pytest.raises(SqlError) as caught:
        world.db.disable_table(T, "all")
    assert caught.value.number == 22985
    assert [job.job_type for job in world.db.jobs] == ["capture", "cleanup"]
    world.db.disable_table(HEAP, "all")
    assert world.db.jobs == []


def test_drop_table_takes_its_instances_along() -> None:
    world = World()
    world.db.enable_table(T)
    world.db.enable_table(HEAP)
    world.commit(insert(T, (1, "x", 1)), insert(HEAP, (1, "x")))
    world.db.drop_table(T.object_id)
    assert world.db.scan() == 1
    assert [each.capture_instance for each in world.db.instances] == ["dbo_heap"]
    assert [row["id"] for row in world.rows("dbo_heap")] == [1]
    assert [row["capture_instance"] for row in world.relation("change_tables")] == ["dbo_heap"]
