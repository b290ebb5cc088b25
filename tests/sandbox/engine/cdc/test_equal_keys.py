"""A key that changes to an equal text: in case, width or blanks at the end alone."""

from __future__ import annotations

import dataclasses

import pytest

from airflow_provider_mssql_cdc.sandbox.engine.cdc.switches import EqualKeys, Switches
from airflow_provider_mssql_cdc.sandbox.engine.harshness import Harshness, Point
from airflow_provider_mssql_cdc.sandbox.engine.schema import ColumnDef
from airflow_provider_mssql_cdc.sandbox.types import SqlType
from tests.support.sandbox.engine.cdc.world import INT, World, table, update

WIDE = "Latin1_General_CI_AS"
KEY = ColumnDef(1, "k", SqlType("nvarchar", 10, collation=WIDE), nullable=False, collation=WIDE)
T = table("t", {"k": KEY, "v": INT}, key=["k"])
EQUAL = [("a", "A"), ("a", "a "), ("a", "ａ"), ("ss", "ß")]


def captured(way: EqualKeys, *pairs: tuple[tuple[str, int], tuple[str, int]]) -> list[tuple[int, int, str, int, bytes]]:
    world = World(Switches(equal_keys_are_captured=way))
    world.db.enable_table(T)
    world.commit(update(T, *pairs))
    world.db.scan()
    names = ("__$command_id", "__$operation", "k", "v", "__$update_mask")
    return [tuple(row[name] for name in names) for row in world.rows("dbo_t")]  # type: ignore[misc]


@pytest.mark.parametrize(("old", "new"), EQUAL)
def test_three_ways(old: str, new: str) -> None:
    change = ((old, 1), (new, 2))
    assert captured("as delete and insert", change) == [(1, 1, old, 1, b"\x03"), (2, 2, new, 2, b"\x03")]
    assert captured("as update", change) == [(1, 3, old, 1, b"\x03"), (1, 4, new, 2, b"\x03")]
    assert captured("unmasked", change) == [(1, 3, old, 1, b"\x02"), (1, 4, new, 2, b"\x02")]


@pytest.mark.parametrize("way", ["as update", "unmasked"])
def test_a_key_that_is_not_equal_stays_a_delete_and_an_insert(way: EqualKeys) -> None:
    found = captured(way, (("a", 1), ("b", 1)), (("x", 1), ("X", 1)))
    assert [row[1:4] for row in found] == [(1, "a", 1), (3, "x", 1), (4, "X", 1), (2, "b", 1)]
    alone = captured(way, (("x", 1), ("X", 1)))
    assert [row[1:] for row in alone] == [
        (3, "x", 1, b"\x01" if way == "as update" else b"\x00"),
        (4, "X", 1, b"\x01" if way == "as update" else b"\x00"),
    ]


def test_a_harsh_database_has_one_of_them() -> None:
    drawn = {
        World(harshness=Harshness(seed, [Point.EQUAL_KEYS])).db.switches.equal_keys_are_captured for seed in range(30)
    }
    assert drawn == {"as delete and insert", "as update", "unmasked"}


def test_a_case_sensitive_key_is_never_equal() -> None:
    strict = dataclasses.replace(KEY, collation="Latin1_General_CS_AS")
    t = table("t", {"k": strict, "v": INT}, key=["k"])
    world = World(Switches(equal_keys_are_captured="unmasked"))
    world.db.enable_table(t)
    world.commit(update(t, (("a", 1), ("A", 1))))
    world.db.scan()
    assert [row["__$operation"] for row in world.rows("dbo_t")] == [1, 2]
