"""Writers that overlap in a harsh server's log."""

from __future__ import annotations

import datetime
import itertools
import random

import pytest

from airflow_provider_mssql_cdc.sandbox.engine.cdc import lsn
from airflow_provider_mssql_cdc.sandbox.engine.harshness import Harshness, Point
from airflow_provider_mssql_cdc.sandbox.engine.log import RowImages, TableAltered, Transaction
from airflow_provider_mssql_cdc.sandbox.engine.schema import TableDef
from tests.support.sandbox.engine.cdc.log_model import Written, broken_rules, overlap
from tests.support.sandbox.engine.cdc.world import INT, NOON, World, delete, insert, table, update

T = table("t", {"id": INT, "v": INT}, key=["id"])
U = table("u", {"id": INT, "v": INT}, key=["id"], object_id=101)
HEAP = table("heap", {"id": INT, "v": INT}, object_id=102)
Rows = list[dict[str, object]]


def harsh(seed: int = 7) -> World:
    world = World(harshness=Harshness(seed, [Point.OVERLAP]))
    for each in (T, U):
        world.db.enable_table(each)
    return world


def statement(of: TableDef, draw: random.Random, rows: dict[int, int]) -> RowImages:
    """A statement on some rows of a table, which it changes."""
    free = [i for i in range(200) if i not in rows]
    kind = draw.choice(["insert", "update", "move", "delete"]) if rows else "insert"
    chosen = draw.sample(sorted(free if kind == "insert" else rows), min(3, len(free if kind == "insert" else rows)))
    if kind == "insert":
        rows |= dict.fromkeys(chosen, 0)
        return insert(of, *((i, 0) for i in chosen))
    old = [(i, rows.pop(i)) for i in chosen]
    if kind == "delete":
        return delete(of, *old)
    new = [(i if kind == "update" else free.pop(), value + 1) for i, value in old]
    rows |= dict(new)
    return update(of, *zip(old, new, strict=True))


def log_of(world: World, *tables: TableDef, since: bytes = b"") -> list[Written]:
    """What was captured, as the model takes it; a pair of images is one row change."""
    found: dict[bytes, list[tuple[int, bytes, frozenset[object]]]] = {}
    for of in tables:
        rows = world.rows(f"dbo_{of.name}", since)
        for row in rows:
            if row["__$operation"] != 3:
                change = (row["__$command_id"], row["__$seqval"], frozenset({(of.name, row["id"])}))
                found.setdefault(row["__$start_lsn"], []).append(change)
    mapped = {row["start_lsn"]: row for row in world.relation("lsn_time_mapping")}
    return [
        Written(
            mapped[commit]["tran_begin_lsn"],
            mapped[commit]["tran_begin_time"],
            [(place, keys) for _, place, keys in sorted(changes, key=lambda each: each[0])],
            commit,
            mapped[commit]["tran_end_time"],
        )
        for commit, changes in sorted(found.items())
    ]


def brief(rows: Rows) -> list[tuple[object, ...]]:
    return [(row["__$start_lsn"], row["__$operation"], row["id"], row["v"]) for row in rows]


@pytest.mark.parametrize("points", [(), (Point.OVERLAP,)])
def test_writers_that_are_open_at_the_same_time(points: tuple[Point, ...]) -> None:
    overlapping = 0
    for seed in range(60):
        draw = random.Random(seed)
        world = World(harshness=Harshness(seed, points))
        for each in (T, U):
            world.db.enable_table(each)
        state: dict[int, dict[int, int]] = {100: {}, 101: {}}
        opened: dict[int, Transaction] = {}
        committed: list[tuple[bytes, RowImages]] = []
        for _ in range(60):
            world.now += datetime.timedelta(seconds=draw.randint(0, 3))
            of = draw.choice([T, U])
            transaction = opened.setdefault(of.object_id, world.open())
            world.write(transaction, statement(of, draw, state[of.object_id]))
            if draw.random() < 0.6:
                commit = world.db.append(opened.pop(of.object_id))
                assert commit is not None
                committed += [(commit, record) for record, _ in transaction.records if isinstance(record, RowImages)]
            if draw.random() < 0.1:
                world.db.scan()
        world.db.scan()
        log = log_of(world, T, U)
        assert broken_rules(log) == set()
        overlapping += overlap(log)
        for of in (T, U):
            assert brief(world.rows(f"dbo_{of.name}")) == expected(committed, of)
    # also a kind server's open transactions overlap, for they lock tables alone
    assert overlapping > 0


def expected(committed: list[tuple[bytes, RowImages]], of: TableDef) -> list[tuple[object, ...]]:
    """The change rows of a table, worked out row by row."""
    found: list[tuple[object, ...]] = []
    for commit, images in committed:
        if images.table is not of:
            continue
        old, new = ([] if rows is None else rows.to_pylist() for rows in (images.before, images.after))
        if not old or not new:
            found += [(commit, 1 if old else 2, row["id"], row["v"]) for row in old or new]
            continue
        moved = old[0]["id"] != new[0]["id"]
        pairs = [((1 if moved else 3, one), (2 if moved else 4, other)) for one, other in zip(old, new, strict=True)]
        ordered = [one for one, _ in pairs] + [other for _, other in pairs] if moved else [x for p in pairs for x in p]
        found += [(commit, operation, row["id"], row["v"]) for operation, row in ordered]
    return found


def test_single_statements_after_each_other_overlap_too() -> None:
    world, kind = harsh(), World()
    kind.db.enable_table(T)
    for each in (world, kind):
        for i in range(100):
            each.commit(insert(T, *((10 * i + k, 0) for k in range(5))))
        each.db.scan()
    assert overlap(log_of(kind, T)) == 0
    log = log_of(world, T)
    assert broken_rules(log) == set()
    parts = [sum(place < before.commit for place, _ in each.rows) for before, each in itertools.pairwise(log)]
    assert set(parts) == {0, 1, 2, 3, 4, 5}
    mapping = world.relation("lsn_time_mapping")
    assert sum(row["tran_begin_time"] < row["tran_end_time"] for row in mapping) > 20
    assert {row["tran_begin_time"] for row in kind.relation("lsn_time_mapping")} == {
        row["tran_end_time"] for row in kind.relation("lsn_time_mapping")
    }


@pytest.mark.parametrize("of", [T, HEAP])
def test_a_row_is_changed_after_the_commit_that_changed_it_last(of: TableDef) -> None:
    for seed in range(20):
        world = harsh(seed)
        if of is HEAP:
            world.db.enable_table(HEAP)
        world.commit(insert(of, (1, 0)))
        for value in range(20):
            world.commit(update(of, ((1, value), (1, value + 1))))
            world.commit(insert(of, (100 + value, 0)))
        world.db.scan()
        log = log_of(world, of)
        assert broken_rules(log) == set()
        assert overlap(log) > 0  # the inserts


def test_a_new_instance_and_a_new_definition_have_nothing_before_them() -> None:
    wider = table("t", {"id": INT, "v": INT, "w": INT}, key=["id"])
    for seed in range(30):
        world = harsh(seed)
        for i in range(6):
            world.commit(insert(T, (i, 0)))
        altered = world.commit(TableAltered(T, wider, "ALTER TABLE dbo.t ADD w int"))
        world.commit(insert(wider, (10, 0, 0)))
        world.db.enable_table(wider, capture_instance="late")
        for i in range(20, 26):
            world.commit(insert(wider, (i, 0, 0)))
        world.db.scan()
        assert altered is not None
        assert min(row["__$seqval"] for row in world.rows("dbo_t") if row["id"] >= 10) > altered
        start = world.db.min_lsn("late")
        assert start is not None
        assert min(row["__$seqval"] for row in world.rows("late")) > start


def test_a_restored_log_gives_no_place_twice() -> None:
    for seed in range(20):
        world = harsh(seed)
        for i in range(8):
            world.commit(insert(T, (i, 0)))
        kept = world.db.backup()
        for i in range(8, 16):
            world.commit(insert(T, (i, 0)))
        world.db.scan()
        world.db.restore(kept, keep=True)
        for i in range(16, 24):
            world.commit(insert(T, (i, 0)))
        world.db.scan()
        assert [row["id"] for row in world.rows("dbo_t")] == [*range(8), *range(16, 24)]
        assert broken_rules(log_of(world, T)) == set()


def test_the_log_is_kept_from_the_first_transaction_that_waits() -> None:
    world = harsh()
    for i in range(40):
        world.commit(insert(T, (i, 0)))
    before, end = list(world.db._pending), world.db._log.end
    assert world.db.log_space()[1] == lsn.length(min(each.begin for each in before), end)
    world.db.scan(20)
    mapped = sorted(row["tran_begin_lsn"] for row in world.relation("lsn_time_mapping"))
    left = [each.begin for each in before[20:]]
    assert world.db.log_space()[1] == lsn.length(min(left), end)
    assert mapped == sorted(lsn.encode(each.begin) for each in before[:20])
    world.db.scan()
    assert world.db.log_space()[1] == lsn.length(end, end)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"begin": b"\x04"}, "one record for each LSN"),
        ({"begin": b"\x08"}, "a transaction lies in its own order"),
        ({"begin_time": NOON + datetime.timedelta(seconds=5)}, "what lies before is not later"),
        ({"rows": [(b"\x03", frozenset({1}))]}, "a row is locked until the commit"),
        ({"commit": b"\x02"}, "commits rise"),
    ],
)
def test_the_model_tells_what_cannot_be(change: dict[str, object], rule: str) -> None:
    first = Written(b"\x01", NOON, [(b"\x02", frozenset({1}))], b"\x04", NOON + datetime.timedelta(seconds=2))
    good = Written(b"\x03", NOON, [(b"\x05", frozenset({1}))], b"\x07", NOON + datetime.timedelta(seconds=9))
    assert broken_rules([first, good]) == set()
    second = good._replace(**change)  # type: ignore[arg-type]
    if rule == "a row is locked until the commit":
        second = second._replace(begin=b"\x02\x01")
    assert rule in broken_rules([first, second])
