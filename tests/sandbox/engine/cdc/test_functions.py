"""The change functions: ranges, options, net changes; and the time functions."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from airflow_provider_mssql_cdc.sandbox.engine.cdc.switches import Switches
from airflow_provider_mssql_cdc.sandbox.engine.log import RowImages
from airflow_provider_mssql_cdc.sandbox.engine.schema import ColumnDef
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from tests.support.sandbox.engine.cdc.world import INT, NOON, VARCHAR10, World, delete, insert, table, update

T = table("t", {"id": INT, "a": VARCHAR10, "b": INT}, key=["id"])


@pytest.fixture
def world() -> World:
    world = World()
    world.db.enable_table(T)
    return world


@pytest.mark.parametrize("function", ["all", "net"])
def test_error_313_for_every_bad_range(world: World, function: str) -> None:
    call = world.all_changes if function == "all" else world.net_changes
    first = world.commit(insert(T, (1, "x", 1)))
    last = world.commit(insert(T, (2, "x", 1)))
    world.db.scan()
    low, db = world.db.min_lsn("dbo_t"), world.db
    assert len(call("dbo_t", low, last)) == 2
    assert len(call("dbo_t", first, first)) == 1
    bad = [
        (db.decrement_lsn(low), last, "all"),
        (low, db.increment_lsn(last), "all"),
        (last, first, "all"),
        (None, last, "all"),
        (low, None, "all"),
        (bytes(10), bytes(10), "all"),
        (low, last, "every"),
        (low, last, None),
    ]
    for from_lsn, to_lsn, option in bad:
        with pytest.raises(SqlError) as caught:
            call("dbo_t", from_lsn, to_lsn, option)
        failed = caught.value
        assert (failed.number, failed.severity, failed.state) == (313, 16, 3)
        assert failed.text == (
            "An insufficient number of arguments were supplied for the procedure or function "
            f"cdc.fn_cdc_get_{function}_changes_ ... ."
        )


def test_nothing_captured_yet_is_313_too(world: World) -> None:
    with pytest.raises(SqlError, match=r"cdc.fn_cdc_get_all_changes_ \.\.\. \.$"):
        world.all_changes("dbo_t", world.db.min_lsn("dbo_t"), world.db.min_lsn("dbo_t"))


def test_column_lists(world: World) -> None:
    low = world.commit(insert(T, (1, "x", 1)))
    world.db.scan()
    columns, batches = world.db.all_changes("DBO_T", low, low, "all")
    names = ["__$start_lsn", "__$seqval", "__$operation", "__$update_mask", "id", "a", "b"]
    assert [each.name for each in columns] == names
    assert all(batch.schema.names == names for batch in batches)
    columns, batches = world.db.net_changes("DBO_T", low, low, "all")
    names.remove("__$seqval")
    assert [each.name for each in columns] == names
    assert all(batch.schema.names == names for batch in batches)


def test_functions_that_do_not_exist() -> None:
    world = World()
    world.db.enable_table(T, supports_net_changes=False)
    low = world.commit(insert(T, (1, "x", 1)))
    world.db.scan()
    for call, name in [
        (lambda: world.net_changes("dbo_t", low, low), "cdc.fn_cdc_get_net_changes_dbo_t"),
        (lambda: world.all_changes("dbo_x", low, low), "cdc.fn_cdc_get_all_changes_dbo_x"),
        (lambda: world.rows("dbo_x"), "cdc.dbo_x_CT"),
    ]:
        with pytest.raises(SqlError) as caught:
            call()
        assert (caught.value.number, caught.value.text) == (208, f"Invalid object name '{name}'.")


X, Y, Z = (1, "x", 1), (1, "y", 1), (1, "y", 2)
INS, UPD, UPD2, DEL = insert(T, X), update(T, (X, Y)), update(T, (Y, Z)), delete(T, X)


@pytest.mark.parametrize(
    ("records", "net", "mask"),
    [
        ([INS], 2, None),
        ([INS, UPD], 2, None),
        ([INS, DEL], None, None),
        ([UPD], 4, b"\x02"),
        ([UPD, UPD2], 4, b"\x06"),
        ([DEL], 1, None),
        ([DEL, INS], 4, b"\x07"),
        ([UPD, delete(T, Y)], 1, None),
        ([INS, DEL, INS], 2, None),
        ([DEL, INS, DEL], 1, None),
    ],
)
@pytest.mark.parametrize("commits", ["one", "many"])
def test_net_of_one_key(
    world: World, records: list[RowImages], net: int | None, mask: bytes | None, commits: str
) -> None:
    other = insert(T, (7, "o", 7))
    if commits == "one":
        lsns = [world.commit(*records, other)]
    else:
        lsns = [world.commit(each) for each in records]
        world.commit(other)
    world.db.scan()
    low, high = lsns[0], world.db.max_lsn()

    def of_key(option: str) -> list[tuple[Any, ...]]:
        found = world.net_changes("dbo_t", low, high, option)
        assert [(row["id"], row["b"]) for row in found if row["id"] != 1] == [(7, 7)]
        return [(row["__$operation"], row["__$update_mask"]) for row in found if row["id"] == 1]

    assert of_key("all") == ([] if net is None else [(net, None)])
    assert of_key("all with mask") == ([] if net is None else [(net, mask)])
    merged = 1 if net == 1 else 5
    assert of_key("All With Merge") == ([] if net is None else [(merged, None)])


def test_net_values_are_those_of_the_last_change(world: World) -> None:
    first = world.commit(insert(T, (1, "x", 1), (2, "x", 1)))
    second = world.commit(update(T, ((1, "x", 1), (1, "y", 1))), delete(T, (2, "x", 1)))
    third = world.commit(insert(T, (2, "z", 3)), delete(T, (2, "z", 3)))
    world.db.scan()
    rows = world.net_changes("dbo_t", second, third)
    names = ("__$start_lsn", "__$operation", "id", "a", "b")
    assert [tuple(row[name] for name in names) for row in rows] == [(second, 4, 1, "y", 1), (third, 1, 2, "z", 3)]
    assert [row["id"] for row in world.net_changes("dbo_t", first, third)] == [1]


def test_net_without_clr_has_no_masks() -> None:
    world = World(Switches())
    (message,) = world.db.enable_table(T)
    assert (message.number, message.severity) == (22969, 10)
    low = world.commit(update(T, ((1, "x", 1), (1, "x", 2))))
    world.db.scan()
    (row,) = world.net_changes("dbo_t", low, low, "all with mask")
    assert (row["__$operation"], row["__$update_mask"]) == (4, None)


def test_net_by_composite_key_with_collation() -> None:
    columns = {
        "a": ColumnDef(1, "a", VARCHAR10, nullable=False),
        "b": ColumnDef(2, "b", INT, nullable=False),
        "v": ColumnDef(3, "v", INT),
    }
    loose = table("loose", columns, key=["a", "b"])
    strict = table(
        "strict",
        columns | {"a": ColumnDef(1, "a", VARCHAR10, nullable=False, collation="Latin1_General_CS_AS")},
        key=["a", "b"],
        object_id=101,
    )
    world = World()
    for t in (loose, strict):
        world.db.enable_table(t)
    low = world.commit(
        *(insert(t, ("K", 1, 1), ("k", 2, 1), ("L", 1, 1), ("K ", 3, 1)) for t in (loose, strict)),
        *(delete(t, ("k", 1, 1)) for t in (loose, strict)),
    )
    world.db.scan()
    # In the default collation K and k are one key.
    assert [(row["a"], row["b"]) for row in world.net_changes("dbo_loose", low, low)] == [("k", 2), ("L", 1), ("K ", 3)]
    assert [(row["a"], row["b"]) for row in world.net_changes("dbo_strict", low, low)] == [
        ("K", 1), ("k", 2), ("L", 1), ("K ", 3), ("k", 1),
    ]  # fmt: skip


def test_lsns_by_time(world: World) -> None:
    start = NOON + datetime.timedelta(seconds=1)
    ids = iter(range(10))
    commits = []
    for offset in (0, 0, 2, 4):  # the first two at the same moment
        world.now = NOON + datetime.timedelta(seconds=offset)
        commits.append(world.commit(insert(T, (next(ids), "x", 1))))
    world.db.scan()
    a, b, c, d = commits

    def at(op: str, seconds: float) -> bytes | None:
        return world.db.map_time_to_lsn(op, start + datetime.timedelta(seconds=seconds))

    assert [at("largest less than", s) for s in (0, 1, 2, 9)] == [None, b, b, d]
    assert [at("largest less than or equal", s) for s in (-1, 0, 2, 3)] == [None, b, c, c]
    assert [at("smallest greater than", s) for s in (-1, 0, 3, 4)] == [a, c, d, None]
    assert [at(" Smallest greater than OR equal", s) for s in (-1, 0, 1, 5)] == [a, a, c, None]
    assert at("nearest", 0) is None
    assert world.db.map_time_to_lsn("largest less than", None) is None


def test_min_lsn(world: World) -> None:
    assert world.db.min_lsn("nobody") == bytes(10)
    assert world.db.min_lsn("") == bytes(10)
    assert world.db.min_lsn(None) == bytes(10)
    start = world.db.min_lsn("DBO_T")
    assert start == world.relation("change_tables")[0]["start_lsn"]
    commit = world.commit(insert(T, (1, "x", 1)))
    assert start is not None
    assert commit is not None
    assert start < commit


def test_min_lsn_of_a_new_instance_may_be_null() -> None:
    world = World(Switches(min_lsn_null_until_captured=True))
    world.db.enable_table(T)
    world.db.scan()
    world.db.enable_table(T, capture_instance="v2")
    assert world.db.min_lsn("v2") is None
    world.db.scan(dummy=True)
    assert world.db.min_lsn("v2") == world.relation("change_tables")[1]["start_lsn"]


def test_columns_that_are_not_there(world: World) -> None:
    assert world.db.column_ordinal("dbo_t", "B") == 3
    assert world.db.column_ordinal("dbo_t", "c") is None
    assert world.db.column_ordinal("nobody", "b") is None


def test_without_cdc() -> None:
    world = World()
    world.db.disable()
    with pytest.raises(SqlError) as caught:
        world.db.max_lsn()
    assert (caught.value.number, caught.value.text) == (208, "Invalid object name 'cdc.lsn_time_mapping'.")
