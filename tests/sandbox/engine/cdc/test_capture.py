"""What a scan makes of inserts, updates, deletes and key updates."""

from __future__ import annotations

import dataclasses
import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_mssql_cdc.sandbox.engine.cdc.ddl import check_lob_size
from airflow_provider_mssql_cdc.sandbox.engine.cdc.switches import Switches
from airflow_provider_mssql_cdc.sandbox.engine.log import RowImages
from airflow_provider_mssql_cdc.sandbox.engine.schema import ColumnDef, IndexDef
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType
from tests.support.sandbox.engine.cdc.world import INT, NOON, VARCHAR10, World, delete, insert, table, update

T = table("t", {"id": INT, "a": VARCHAR10, "b": INT}, key=["id"])
U = table("u", {"id": INT, "v": INT}, key=["id"], object_id=101)


@pytest.fixture
def world() -> World:
    world = World()
    world.db.enable_table(T)
    return world


def brief(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in ("__$command_id", "__$operation", *names)) for row in rows]


def test_rows_of_a_transaction_share_the_commit_lsn_across_tables(world: World) -> None:
    world.db.enable_table(U)
    first = world.commit(insert(T, (1, "x", 1)), insert(U, (1, 1)), insert(T, (2, "y", 1)))
    second = world.commit(insert(U, (2, 2)))
    world.db.scan()
    assert first is not None
    assert second is not None
    assert first < second
    t, u = world.rows("dbo_t"), world.rows("dbo_u")
    assert {row["__$start_lsn"] for row in t} == {first}
    assert [row["__$start_lsn"] for row in u] == [first, second]
    # Command ids and log records count through the whole transaction.
    assert [row["__$command_id"] for row in t + u] == [1, 3, 2, 1]
    assert t[0]["__$seqval"] < u[0]["__$seqval"] < t[1]["__$seqval"] < first < u[1]["__$seqval"] < second


def test_a_commit_is_invisible_until_a_scan(world: World) -> None:
    world.commit(insert(T, (1, "x", 1)))
    assert world.rows("dbo_t") == []
    assert world.relation("lsn_time_mapping") == []
    assert world.db.max_lsn() is None
    assert world.db.scan() == 1
    assert len(world.rows("dbo_t")) == len(world.relation("lsn_time_mapping")) == 1
    assert world.db.scan() == 0
    assert len(world.rows("dbo_t")) == 1


def test_a_scan_takes_no_more_transactions_than_asked(world: World) -> None:
    commits = [world.commit(insert(T, (i, "x", 1))) for i in range(5)]
    assert world.db.scan(3) == 3
    assert [row["__$start_lsn"] for row in world.rows("dbo_t")] == commits[:3]
    assert world.db.max_lsn() == commits[2]
    assert world.db.backlog == 2
    assert world.db.scan(3) == 2
    assert [row["id"] for row in world.rows("dbo_t")] == [0, 1, 2, 3, 4]


def test_untracked_tables_leave_nothing(world: World) -> None:
    assert world.commit(insert(U, (1, 1))) is None
    assert world.commit(insert(T, (1, "x", 1)), insert(U, (2, 2)))
    assert world.db.scan() == 1
    assert len(world.rows("dbo_t")) == 1


@pytest.mark.parametrize(
    "index",
    [
        IndexDef("UX", ("b",), unique=True),
        IndexDef("CX", ("b",), clustered=True),
        IndexDef("PK", ("b",), unique=True, primary_key=True),
    ],
)
def test_update_of_primary_unique_or_clustered_key_is_delete_and_insert(index: IndexDef) -> None:
    world, t = World(), table("t", {"id": INT, "a": VARCHAR10, "b": INT}, indexes=[index])
    world.db.enable_table(t)
    world.commit(update(t, ((1, "x", 1), (1, "x", 2)), ((2, "y", 3), (2, "z", 3))))
    world.db.scan()
    rows = world.rows("dbo_t")
    assert brief(rows, "id", "a", "b", "__$update_mask") == [
        (1, 1, 1, "x", 1, b"\x07"),
        (2, 3, 2, "y", 3, b"\x02"),
        (2, 4, 2, "z", 3, b"\x02"),
        (3, 2, 1, "x", 2, b"\x07"),
    ]
    assert [row["__$seqval"] for row in rows] == sorted(row["__$seqval"] for row in rows)


def test_update_of_a_plain_index_column_is_no_key_update() -> None:
    world, t = World(), table("t", {"id": INT, "b": INT}, key=["id"], indexes=[IndexDef("IX", ("b",))])
    world.db.enable_table(t)
    world.commit(update(t, ((1, 1), (1, 2))))
    world.db.scan()
    assert brief(world.rows("dbo_t")) == [(1, 3), (1, 4)]


def test_keys_that_move_over_each_other_are_deleted_before_they_are_inserted(world: World) -> None:
    world.commit(update(T, ((1, "x", 1), (2, "x", 1)), ((2, "y", 2), (3, "y", 2))))
    world.db.scan()
    assert brief(world.rows("dbo_t"), "id") == [(1, 1, 1), (2, 1, 2), (3, 2, 2), (4, 2, 3)]


def test_a_shared_command_id_is_a_switch() -> None:
    world = World(Switches(deferred_pair_shares_command_id=True))
    world.db.enable_table(T)
    world.commit(update(T, ((1, "x", 1), (2, "x", 1))), insert(T, (5, "x", 1)))
    world.db.scan()
    assert brief(world.rows("dbo_t"), "id") == [(1, 1, 1), (1, 2, 2), (2, 2, 5)]


def test_trace_flag_8207_makes_single_row_key_updates_plain_updates() -> None:
    world = World(Switches(trace_flag_8207=True))
    world.db.enable_table(T)
    world.commit(update(T, ((1, "x", 1), (2, "x", 1))))
    world.commit(update(T, ((2, "x", 1), (3, "x", 1)), ((7, "x", 1), (8, "x", 1))))
    world.db.scan()
    assert brief(world.rows("dbo_t"), "id") == [(1, 3, 1), (1, 4, 2), (1, 1, 2), (2, 1, 7), (3, 2, 3), (4, 2, 8)]


def test_nulls_count_as_values(world: World) -> None:
    world.commit(
        update(T, ((1, None, 1), (1, "x", 1)), ((2, "x", 2), (2, None, 2)), ((3, None, None), (3, None, None)))
    )
    world.db.scan()
    assert brief(world.rows("dbo_t"), "id", "a", "__$update_mask") == [
        (1, 3, 1, None, b"\x02"),
        (1, 4, 1, "x", b"\x02"),
        (2, 3, 2, "x", b"\x02"),
        (2, 4, 2, None, b"\x02"),
    ]


def test_updates_of_other_columns_write_no_rows() -> None:
    world = World()
    world.db.enable_table(T, captured_column_list="id, [a]")
    world.commit(update(T, ((1, "x", 1), (1, "x", 2))))
    world.commit(update(T, ((1, "x", 2), (1, "y", 3))))
    world.db.scan()
    assert [(row["__$operation"], row["a"], row["__$update_mask"]) for row in world.rows("dbo_t")] == [
        (3, "x", b"\x02"),
        (4, "y", b"\x02"),
    ]
    assert "b" not in world.rows("dbo_t")[0]


@pytest.mark.parametrize(
    ("count", "changed", "full", "mask"),
    [
        (9, 1, "01ff", "0001"),
        (9, 9, "01ff", "0100"),
        (17, 8, "01ffff", "000080"),
        (17, 17, "01ffff", "010000"),
        (300, 300, "0f" + "ff" * 37, "08" + "00" * 37),
    ],
)
def test_masks_of_wide_tables(count: int, changed: int, full: str, mask: str) -> None:
    world, t = World(), table("wide", {f"c{i}": INT for i in range(1, count + 1)})
    world.db.enable_table(t)
    old = [0] * count
    new = [1 if i == changed else 0 for i in range(1, count + 1)]
    world.commit(insert(t, old), update(t, (old, new)), delete(t, new))
    world.db.scan()
    assert [row["__$update_mask"].hex() for row in world.rows("dbo_wide")] == [full, mask, mask, full]
    assert world.db.column_ordinal("DBO_WIDE", f"c{changed}") == changed


def test_computed_rowversion_and_identity_columns() -> None:
    t = table(
        "t",
        {
            "id": ColumnDef(1, "id", INT, nullable=False, identity=True),
            "twice": ColumnDef(2, "twice", INT, computed="([id]*(2))"),
            "rv": ColumnDef(3, "rv", SqlType("rowversion"), nullable=False),
        },
    )
    world = World()
    world.db.enable_table(t)
    world.commit(insert(t, (1, 2, b"\0" * 7 + b"\1")))
    world.commit(update(t, ((1, 2, b"\0" * 7 + b"\1"), (1, 3, b"\0" * 7 + b"\2"))))
    world.db.scan()
    assert [(row["id"], row["twice"], row["rv"][-1], row["__$update_mask"]) for row in world.rows("dbo_t")] == [
        (1, None, 1, b"\x07"),
        (1, None, 1, b"\x04"),
        (1, None, 2, b"\x04"),
    ]
    captured = world.db.changes("dbo_t")[0][5:8]
    assert [(each.name, each.type, each.nullable, each.identity) for each in captured] == [
        ("id", INT, True, False),
        ("twice", INT, True, False),
        ("rv", SqlType("binary", 8), True, False),
    ]


@pytest.mark.parametrize("kind", [SqlType("nvarchar", MAX), SqlType("varchar", MAX), SqlType("xml")])
def test_old_lob_values_are_null_unless_changed(kind: SqlType) -> None:
    world, t = World(), table("t", {"id": INT, "x": kind, "b": INT}, key=["id"])
    world.db.enable_table(t)
    world.commit(
        insert(t, (1, "long", 1)),
        update(t, ((1, "long", 1), (1, "long", 2)), ((2, "q", 1), (2, "r", 2))),
        update(t, ((1, "long", 2), (9, "long", 2))),
        delete(t, (9, "long", 2)),
    )
    world.db.scan()
    assert [(row["__$operation"], row["x"]) for row in world.rows("dbo_t")] == [
        (2, "long"), (3, None), (4, "long"), (3, "q"), (4, "r"), (1, "long"), (2, "long"), (1, "long"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["nvarchar", "xml", "text"])
def test_after_images_may_leave_out_lobs_that_did_not_change(name: str) -> None:
    kind = SqlType(name, MAX) if name == "nvarchar" else SqlType(name)
    world, t = (
        World(Switches(after_images_leave_lobs_out=True)),
        table("t", {"id": INT, "x": kind, "b": INT}, key=["id"]),
    )
    world.db.enable_table(t)
    world.commit(
        insert(t, (1, "long", 1)),
        update(t, ((1, "long", 1), (1, "long", 2))),
        update(t, ((1, "long", 2), (1, "new", 2))),
        update(t, ((1, "new", 2), (9, "new", 2))),
    )
    world.db.scan()
    old = None if name == "text" else "long"
    deleted = None if name == "text" else "new"
    assert [(row["__$operation"], row["x"], row["__$update_mask"]) for row in world.rows("dbo_t")] == [
        (2, "long", b"\x07"), (3, None, b"\x04"), (4, None, b"\x04"), (3, old, b"\x02"), (4, "new", b"\x02"),
        (1, deleted, b"\x07"), (2, "new", b"\x07"),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["text", "ntext", "image"])
def test_text_pointers_have_no_old_values(kind: str) -> None:
    value, other = (b"v", b"o") if kind == "image" else ("v", "o")
    world, t = World(), table("t", {"id": INT, "x": SqlType(kind)}, key=["id"])
    world.db.enable_table(t)
    world.commit(insert(t, (1, value)), update(t, ((1, value), (1, other))), delete(t, (1, other)))
    world.db.scan()
    assert [(row["__$operation"], row["x"]) for row in world.rows("dbo_t")] == [
        (2, value), (3, None), (4, other), (1, None),
    ]  # fmt: skip


def test_values_of_every_type_arrive_as_they_were() -> None:
    moment = {"utc_ticks": 638_000_000_000_000_001, "offset_minutes": 840}
    later = {"utc_ticks": 638_000_000_000_000_001, "offset_minutes": -840}
    old = {
        "decimal": (SqlType("decimal", precision=38, scale=10), Decimal("1234567890123456789012345678.0123456789")),
        "money": (SqlType("money"), Decimal("-922337203685477.5808")),
        "tiny": (SqlType("tinyint"), 255),
        "bit": (SqlType("bit"), True),
        "float": (SqlType("float"), 1e308),
        "date": (SqlType("date"), datetime.date(1, 1, 1)),
        "dt": (SqlType("datetime"), datetime.datetime(2026, 1, 1, 0, 0, 0, 3000)),
        "dt2": (SqlType("datetime2", scale=7), 3_155_378_975_999_999_999),
        "dto": (SqlType("datetimeoffset", scale=7), moment),
        "bin": (SqlType("varbinary", 10), b"\x00\xff"),
        "text": (SqlType("nvarchar", 10), "Zoë 🙂"),
    }
    t = table("t", {name: kind for name, (kind, _) in old.items()})
    before = [value for _, value in old.values()]
    after = [later if name == "dto" else value for name, (_, value) in old.items()]
    world = World()
    world.db.enable_table(t)
    world.commit(insert(t, before), update(t, (before, after)))
    world.db.scan()
    rows = world.rows("dbo_t")
    assert [[row[name] for name in old] for row in rows] == [before, before, after]
    # Two offsets of one instant are two values: the ninth column changed.
    assert rows[2]["__$update_mask"] == b"\x01\x00"


def test_many_rows_come_in_batches_and_ranges(world: World) -> None:
    count = 150_000
    ids = pa.array(range(count), pa.int32())
    rows = pa.table([ids, pa.array(["x"] * count), ids], schema=T.arrow_schema)
    first = world.commit(RowImages(T, after=rows))
    second = world.commit(RowImages(T, before=rows))
    world.db.scan()
    assert first is not None
    batches = world.db.change_rows("dbo_t", first, first)
    assert max(batch.num_rows for batch in batches) <= 65_536
    got = pa.Table.from_batches(batches)
    assert got.column("id").to_pylist() == list(range(count))
    assert got.column("__$command_id").to_pylist() == list(range(1, count + 1))
    assert sum(batch.num_rows for batch in world.db.change_rows("dbo_t", second)) == count
    assert sum(batch.num_rows for batch in world.db.change_rows("dbo_t")) == 2 * count


def test_ranges_of_commits(world: World) -> None:
    commits = []
    for i in range(200):
        commits.append(world.commit(insert(T, (i, "x", 1), (1000 + i, "x", 1))))
        if i % 7 == 0:
            world.db.scan()
    world.db.scan()
    for low, high in [(0, 199), (0, 0), (199, 199), (3, 150), (6, 7), (7, 8), (64, 127)]:
        got = world.rows("dbo_t", commits[low], commits[high])
        assert [row["id"] for row in got] == [n for i in range(low, high + 1) for n in (i, 1000 + i)]
    between = world.db.increment_lsn(commits[5])
    assert world.rows("dbo_t", between, between) == []


def test_two_instances_capture_the_same_commits_from_the_newer_start(world: World) -> None:
    first = world.commit(insert(T, (1, "x", 1)))
    world.db.enable_table(T, capture_instance="T_v2", captured_column_list="id,b")
    second = world.commit(insert(T, (2, "y", 2)), update(T, ((1, "x", 1), (1, "q", 1))))
    world.db.scan()
    assert first is not None
    assert second is not None
    old, new = world.rows("dbo_t"), world.rows("t_V2")
    assert [row["__$start_lsn"] for row in old] == [first, second, second, second]
    assert [(row["__$start_lsn"], row["__$command_id"], row["id"], row["b"]) for row in new] == [(second, 2, 2, 2)]
    # the insert is one command for each instance, the update only for the one that captures its column
    assert [row["__$command_id"] for row in old] == [1, 1, 3, 3]
    start = world.db.min_lsn("T_V2")
    assert start is not None
    assert first < start < second


def test_a_row_change_is_one_command_for_each_instance(world: World) -> None:
    """Measured on 2017 and 2022."""
    world.db.enable_table(T, capture_instance="v2")
    world.commit(insert(T, (1, "x", 1)), update(T, ((1, "x", 1), (1, "y", 1))), delete(T, (1, "y", 1)))
    world.db.scan()
    assert brief(world.rows("dbo_t")) == [(1, 2), (3, 3), (3, 4), (5, 1)]
    assert brief(world.rows("v2")) == [(2, 2), (4, 3), (4, 4), (6, 1)]


@pytest.mark.parametrize(("across", "ids"), [(True, [1, 4, 2, 3]), (False, [1, 2, 1, 2])])
def test_whether_commands_count_across_tables_is_a_switch(across: bool, ids: list[int]) -> None:
    world = World(Switches(command_ids_count_across_tables=across))
    for each in (T, U):
        world.db.enable_table(each)
    for _ in range(2):
        world.commit(insert(T, (1, "x", 1)), insert(U, (1, 1), (2, 1)), delete(T, (1, "x", 1)))
    world.db.scan()
    rows = world.rows("dbo_t")[:2] + world.rows("dbo_u")[:2] + world.rows("dbo_t")[2:] + world.rows("dbo_u")[2:]
    assert [row["__$command_id"] for row in rows] == ids * 2


def test_mapping_rows_and_times(world: World) -> None:
    world.now = NOON.replace(microsecond=4_999)
    commit = world.commit(insert(T, (1, "x", 1)))
    world.db.scan()
    (row,) = world.relation("lsn_time_mapping")
    shown = datetime.datetime(2026, 3, 2, 12, 0, 1, 3_000)  # the nearest 1/300 s
    assert (row["start_lsn"], row["tran_begin_time"], row["tran_end_time"]) == (commit, shown, shown)
    assert int.from_bytes(row["tran_id"], "big") == 1
    assert row["tran_begin_lsn"] < world.rows("dbo_t")[0]["__$seqval"]
    assert world.db.map_lsn_to_time(commit) == shown
    assert world.db.map_lsn_to_time(world.db.increment_lsn(commit)) is None
    assert world.db.map_lsn_to_time(None) is None


def test_dummy_rows_move_max_lsn_of_an_idle_database(world: World) -> None:
    assert world.db.max_lsn() is None
    world.db.scan()
    (first,) = world.relation("lsn_time_mapping")
    assert first["tran_id"] == b"\x00"
    world.now += datetime.timedelta(minutes=4, seconds=59)
    world.db.scan()
    assert world.db.max_lsn() == first["start_lsn"]
    world.now += datetime.timedelta(seconds=1)
    world.db.scan()
    second = world.db.max_lsn()
    assert second is not None
    assert second > first["start_lsn"]
    world.db.scan(dummy=True)
    third = world.db.max_lsn()
    assert third is not None
    assert third > second
    commit = world.commit(insert(T, (1, "x", 1)))
    assert commit is not None
    assert commit > third
    world.db.scan()
    assert [row["tran_id"] == b"\x00" for row in world.relation("lsn_time_mapping")] == [True, True, True, False]
    assert world.rows("dbo_t")[0]["__$start_lsn"] == commit


def test_lob_size_limit() -> None:
    t = table("t", {"id": INT, "x": SqlType("nvarchar", MAX), "y": SqlType("varchar", MAX)})

    def rows(x: str, y: str) -> pa.Table:
        return pa.table([pa.array([1], pa.int32()), pa.array([x]), pa.array([y])], schema=t.arrow_schema)

    check_lob_size(10, t, rows("12345", "é234567890"))
    check_lob_size(-1, t, rows("1" * 100, "1" * 100))
    check_lob_size(10, t, pa.Table.from_batches([], t.arrow_schema))
    with pytest.raises(SqlError) as caught:
        check_lob_size(10, t, rows("🙂🙂x" + "y", "a"))
    assert (caught.value.number, "12" in caught.value.text) == (7139, True)
    with pytest.raises(SqlError) as caught:
        check_lob_size(10, t, rows("a", "12345678901"))
    assert (caught.value.number, "11" in caught.value.text) == (7139, True)


def test_definitions_that_differ_only_in_name_are_one_stream(world: World) -> None:
    renamed = dataclasses.replace(T, name="t_new")
    world.commit(insert(T, (1, "x", 1)))
    world.db.table_changed(renamed)
    world.commit(insert(renamed, (2, "y", 2)))
    world.db.scan()
    assert [row["id"] for row in world.rows("dbo_t")] == [1, 2]
