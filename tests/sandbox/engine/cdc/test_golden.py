"""The golden scenario: six transactions on one table, with every row they must leave, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.sandbox.engine.cdc.world import INT, VARCHAR10, World, delete, insert, table, update

T = table("t", {"id": INT, "a": VARCHAR10, "b": INT}, key=["id"])


@pytest.fixture
def played() -> tuple[World, list[bytes]]:
    """T1 to T5 committed and scanned; T6 was rolled back, so the log has nothing of it."""
    world = World()
    world.db.enable_table(T, supports_net_changes=True)
    commits = [
        world.commit(insert(T, (1, "x", 1), (2, "y", 2))),
        world.commit(update(T, ((1, "x", 1), (1, "x", 5)))),
        world.commit(insert(T, (3, "z", 3)), update(T, ((3, "z", 3), (3, "w", 3))), delete(T, (3, "w", 3))),
        world.commit(update(T, ((2, "y", 2), (9, "y", 2)))),
        world.commit(update(T, ((1, "x", 5), (1, "x", 5)), ((9, "y", 2), (9, "y", 2)))),
    ]
    assert None not in commits
    world.db.scan()
    return world, [each for each in commits if each is not None]


def of(row: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


CT = ("__$start_lsn", "__$command_id", "__$operation", "__$update_mask", "id", "a", "b")


def test_change_table(played: tuple[World, list[bytes]]) -> None:
    world, (t1, t2, t3, t4, _) = played
    rows = world.rows("dbo_t")
    assert [of(row, *CT) for row in rows] == [
        (t1, 1, 2, b"\x07", 1, "x", 1),
        (t1, 2, 2, b"\x07", 2, "y", 2),
        (t2, 1, 3, b"\x04", 1, "x", 1),
        (t2, 1, 4, b"\x04", 1, "x", 5),
        (t3, 1, 2, b"\x07", 3, "z", 3),
        (t3, 2, 3, b"\x02", 3, "z", 3),
        (t3, 2, 4, b"\x02", 3, "w", 3),
        (t3, 3, 1, b"\x07", 3, "w", 3),
        (t4, 1, 1, b"\x07", 2, "y", 2),
        (t4, 2, 2, b"\x07", 9, "y", 2),
    ]
    assert rows[2]["__$seqval"] == rows[3]["__$seqval"]
    assert all(row["__$seqval"] < row["__$start_lsn"] and row["__$end_lsn"] is None for row in rows)


def test_all_changes(played: tuple[World, list[bytes]]) -> None:
    world, (t1, t2, t3, t4, _) = played
    shown = world.all_changes("dbo_t", t1, t4)
    assert [of(row, "__$start_lsn", "__$operation", "id") for row in shown] == [
        (t1, 2, 1), (t1, 2, 2), (t2, 4, 1), (t3, 2, 3), (t3, 4, 3), (t3, 1, 3), (t4, 1, 2), (t4, 2, 9),
    ]  # fmt: skip
    old = world.all_changes("dbo_t", t1, t4, " ALL update OLD ")
    assert [row["__$operation"] for row in old] == [2, 2, 3, 4, 2, 3, 4, 1, 1, 2]


def test_net_changes(played: tuple[World, list[bytes]]) -> None:
    world, (t1, t2, _, t4, _) = played
    names = ("__$start_lsn", "__$operation", "__$update_mask", "id", "a", "b")
    assert [of(row, *names) for row in world.net_changes("dbo_t", t1, t4)] == [
        (t2, 2, None, 1, "x", 5),
        (t4, 2, None, 9, "y", 2),
    ]
    assert [of(row, *names) for row in world.net_changes("dbo_t", t2, t4)] == [
        (t2, 4, None, 1, "x", 5),
        (t4, 1, None, 2, "y", 2),
        (t4, 2, None, 9, "y", 2),
    ]


def test_mapping(played: tuple[World, list[bytes]]) -> None:
    world, commits = played
    assert [row["start_lsn"] for row in world.relation("lsn_time_mapping")] == commits[:4]
    assert world.db.max_lsn() == commits[3]
