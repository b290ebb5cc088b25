"""Where the deletes and inserts of a key update lie in the log: the orders that may be, all of them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from airflow_provider_mssql_cdc.sandbox.engine.cdc.switches import Switches
from airflow_provider_mssql_cdc.sandbox.engine.harshness import Harshness, Point
from airflow_provider_mssql_cdc.sandbox.engine.log import RowImages
from airflow_provider_mssql_cdc.sandbox.engine.schema import IndexDef
from tests.support.sandbox.engine.cdc import model
from tests.support.sandbox.engine.cdc.world import INT, VARCHAR10, World, table, update

T = table("t", {"id": INT, "a": INT}, key=["id"])
Order = tuple[tuple[int, Any], ...]


def orders(images: RowImages, switches: Switches | None = None) -> set[Order]:
    """The orders by seqval in which an UPDATE was captured, each with operations and first columns."""
    found = set()
    for seed in range(200):
        world = World(switches or Switches(), harshness=Harshness(seed, [Point.SEQVAL]))
        world.db.enable_table(images.table)
        commit = world.commit(images)
        world.db.scan()
        rows = world.rows(f"dbo_{images.table.name}")
        clustered = [(row["__$command_id"], row["__$seqval"], row["__$operation"]) for row in rows]
        assert clustered == sorted(clustered)
        seqvals = [row["__$seqval"] for row in rows if row["__$operation"] != 4]
        assert len(set(seqvals)) == len(seqvals)
        assert all(row["__$seqval"] < commit for row in rows)
        rows.sort(key=lambda row: (row["__$seqval"], row["__$operation"]))
        found.add(tuple((row["__$operation"], row[images.table.columns[0].name]) for row in rows))
    return found


def possible(*pairs: tuple[tuple[int, int], tuple[int, int]]) -> set[Order]:
    """All orders that the model allows."""
    statement = model.Statement("t", "update", pairs)
    rows = model.changes([(0, [statement])], {"t": model.Instance("t", (0, 1))}, {"t": (0,)})["t"]
    return {
        tuple((row.operation, row.values[0]) for row in order)
        for order in itertools.permutations(rows)
        if all(
            rows.index(one) < rows.index(other) or model.may_lie_before(one, other)
            for one, other in itertools.combinations(order, 2)
        )
    }


@pytest.mark.parametrize(
    ("pairs", "count"),
    [
        ([((1, 0), (11, 0))], 2),
        ([((1, 0), (11, 0)), ((2, 0), (12, 0))], 6),
        ([((1, 0), (2, 0)), ((2, 0), (3, 0))], 1),
        ([((1, 0), (9, 0)), ((2, 0), (1, 0))], 5),
        ([((1, 0), (2, 0)), ((2, 0), (1, 0))], 1),
        ([((1, 0), (11, 0)), ((2, 0), (2, 5))], 1),
        ([((2, 0), (2, 5)), ((1, 0), (11, 0))], 2),
    ],
)
def test_all_orders_that_may_be_and_no_others(pairs: list[Any], count: int) -> None:
    expected = possible(*pairs)
    assert len(expected) == count
    assert orders(update(T, *pairs)) == expected


def test_a_kind_server_has_the_deletes_first() -> None:
    world = World()
    world.db.enable_table(T)
    world.commit(update(T, ((1, 0), (11, 0)), ((2, 0), (12, 0))))
    world.db.scan()
    seqvals = [row["__$seqval"] for row in world.rows("dbo_t")]
    assert seqvals == sorted(seqvals)


@pytest.mark.parametrize("index", [IndexDef("UX", ("a",), unique=True), IndexDef("CX", ("a",), clustered=True)])
def test_a_row_that_keeps_its_primary_key_is_deleted_before_it_is_inserted(index: IndexDef) -> None:
    t = table("t", {"id": INT, "a": INT}, key=["id"], indexes=[index])
    assert orders(update(t, ((1, 5), (1, 6)))) == {((1, 1), (2, 1))}


def test_keys_are_compared_as_the_server_compares_them() -> None:
    t = table("t", {"id": VARCHAR10, "a": INT}, key=["id"])
    assert orders(update(t, (("b", 0), ("A ", 0)), (("a", 0), ("c", 0)))) == {((1, "b"), (1, "a"), (2, "A "), (2, "c"))}
    assert len(orders(update(t, (("b", 0), ("x", 0)), (("a", 0), ("c", 0))))) == 6


def test_where_the_pair_shares_a_command_the_lower_seqval_comes_first() -> None:
    found = orders(update(T, ((1, 0), (11, 0))), Switches(deferred_pair_shares_command_id=True))
    assert found == {((1, 1), (2, 11)), ((2, 11), (1, 1))}


def test_what_is_read_from_the_log_again_lies_where_it_lay() -> None:
    world = World(harshness=Harshness(3, [Point.SEQVAL, Point.OVERLAP]))
    world.db.enable_table(T)
    for number in range(20):
        world.commit(update(T, *(((i, 0), (i + 100, number)) for i in range(number, number + 5))))
    kept = world.db.backup()
    faults = iter([True])
    world.db.fault = lambda: next(faults, False)
    with pytest.raises(Exception, match="log scan"):
        world.db.scan()
    world.db.scan()
    first = world.rows("dbo_t")
    world.db.restore(kept, keep=True)
    world.db.scan(1)
    world.db.scan()
    assert world.rows("dbo_t") == first
    inserts = [row["__$seqval"] for row in first if row["__$operation"] == 2]
    assert min(inserts[:5]) < max(row["__$seqval"] for row in first if row["__$operation"] == 1)


def test_instances_of_a_table_have_the_same_seqvals() -> None:
    world = World(harshness=Harshness(5, [Point.SEQVAL]))
    world.db.enable_table(T)
    world.db.enable_table(T, capture_instance="other")
    for number in range(20):
        world.commit(update(T, *(((i, 0), (i + 100, 0)) for i in range(number, number + 3))))
    world.db.scan()
    one, other = world.rows("dbo_t"), world.rows("other")
    assert [row["__$seqval"] for row in one] == [row["__$seqval"] for row in other]
    assert [row["__$command_id"] for row in one] == [1, 3, 5, 7, 9, 11] * 20
    assert [row["__$command_id"] for row in other] == [2, 4, 6, 8, 10, 12] * 20
