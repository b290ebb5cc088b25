"""Cleanup by mark and by retention."""

from __future__ import annotations

import datetime

import pytest

from airflow_provider_mssql_cdc.sandbox.engine.cdc.jobs import Settings
from airflow_provider_mssql_cdc.sandbox.engine.cdc.lsn import to_hex
from airflow_provider_mssql_cdc.sandbox.engine.cdc.switches import Switches
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from tests.support.sandbox.engine.cdc.world import INT, NOON, World, insert, table

T = table("t", {"id": INT}, key=["id"])
U = table("u", {"id": INT}, key=["id"], object_id=101)


@pytest.fixture
def world() -> World:
    world = World()
    world.db.enable_table(T)
    world.db.enable_table(U)
    return world


def commit_at(world: World, seconds: float, ident: int) -> bytes:
    world.now = NOON + datetime.timedelta(seconds=seconds - 1)
    lsn = world.commit(insert(T, (ident,)), insert(U, (ident,)))
    assert lsn is not None
    return lsn


def ids(world: World, instance: str) -> list[int]:
    return [row["id"] for row in world.rows(instance)]


def mapped(world: World) -> list[bytes]:
    return [row["start_lsn"] for row in world.relation("lsn_time_mapping")]


def test_cleanup_by_mark(world: World) -> None:
    commits = [commit_at(world, i, i) for i in range(6)]
    world.db.scan()
    start = world.db.min_lsn("dbo_u")
    world.db.cleanup("DBO_T", commits[3])
    assert ids(world, "dbo_t") == [3, 4, 5]
    assert ids(world, "dbo_u") == [0, 1, 2, 3, 4, 5]
    assert (world.db.min_lsn("dbo_t"), world.db.min_lsn("dbo_u")) == (commits[3], start)
    # The other instance needs the whole mapping still.
    assert mapped(world) == commits
    world.db.cleanup("dbo_u", commits[2])
    assert mapped(world) == commits[2:]
    with pytest.raises(SqlError) as caught:
        world.all_changes("dbo_t", commits[2], commits[5])
    assert caught.value.number == 313
    assert [row["id"] for row in world.all_changes("dbo_t", commits[3], commits[5])] == [3, 4, 5]
    world.db.cleanup("dbo_t", None)
    assert ids(world, "dbo_t") == [3, 4, 5]
    assert world.relation("change_tables")[0]["start_lsn"] == commits[3]


def test_cleanup_refusals(world: World) -> None:
    commits = [commit_at(world, i, i) for i in range(3)]
    world.db.scan()
    world.db.cleanup("dbo_t", commits[1])

    def refusal(instance: str, mark: bytes | None, threshold: int = 5000) -> tuple[int, str]:
        with pytest.raises(SqlError) as caught:
            world.db.cleanup(instance, mark, threshold)
        return caught.value.number, caught.value.text

    unmapped = world.db.increment_lsn(commits[1])
    assert unmapped is not None
    number, text = refusal("dbo_t", unmapped)
    assert number == 22964
    assert to_hex(unmapped) in text
    number, text = refusal("dbo_t", commits[0])
    assert number == 22957
    places = [text.index(each) for each in (to_hex(commits[0]), "dbo_t", to_hex(commits[1]), to_hex(commits[2]))]
    assert places == sorted(places)
    assert refusal("", None)[0] == 22963
    assert refusal("dbo_t", None, 0)[0] == 22850
    assert refusal("nobody", None)[0] == 22956
    assert ids(world, "dbo_t") == [1, 2]


def test_the_error_of_an_unknown_instance_is_a_switch() -> None:
    with pytest.raises(SqlError) as caught:
        World(Switches(cleanup_unknown_instance_error=22920)).db.cleanup("nobody", None)
    assert caught.value.number == 22920


def test_commits_of_one_moment_stay_together(world: World) -> None:
    commits = [commit_at(world, second, i) for i, second in enumerate([0, 1, 1, 2])]
    world.db.scan()
    world.db.cleanup("dbo_t", commits[2])
    assert world.db.min_lsn("dbo_t") == commits[1]
    assert ids(world, "dbo_t") == [1, 2, 3]


def test_retention_counts_from_the_last_mapped_time(world: World) -> None:
    world.db.change_job("cleanup", Settings(retention=1))
    commits = [commit_at(world, second, i) for i, second in enumerate([0, 29, 30, 90])]
    world.db.scan()
    # Capture stands still, so nothing expires, however late it is.
    world.now = NOON + datetime.timedelta(days=9)
    world.db.cleanup_retention()
    # 90 s - 60 s = 30 s: the largest commit before that is the mark.
    assert ids(world, "dbo_t") == ids(world, "dbo_u") == [1, 2, 3]
    assert world.db.min_lsn("dbo_t") == world.db.min_lsn("dbo_u") == commits[1]
    assert mapped(world) == commits[1:]
    world.db.scan()
    world.db.cleanup_retention()
    # The dummy row is nine days later: everything before the last real commit goes.
    assert ids(world, "dbo_t") == [3]


def test_retention_never_lowers(world: World) -> None:
    commits = [commit_at(world, second, i) for i, second in enumerate([0, 10, 90])]
    world.db.scan()
    world.db.cleanup("dbo_t", commits[2])
    world.db.change_job("cleanup", Settings(retention=1))
    world.db.cleanup_retention()
    assert (world.db.min_lsn("dbo_t"), world.db.min_lsn("dbo_u")) == (commits[2], commits[1])


def test_nothing_to_clean(world: World) -> None:
    start = world.db.min_lsn("dbo_t")
    world.db.cleanup_retention()
    commit_at(world, 0, 0)
    world.db.scan()
    world.db.cleanup_retention()
    assert world.db.min_lsn("dbo_t") == start
    world.db.drop_job("cleanup")
    with pytest.raises(SqlError) as caught:
        world.db.cleanup_retention()
    assert caught.value.number == 22997


def test_large_change_tables_are_cut_inside_a_batch(world: World) -> None:
    commits = [commit_at(world, i, i) for i in range(1000)]
    world.db.scan()
    for cut in (1, 500, 998):
        world.db.cleanup("dbo_t", commits[cut])
        assert ids(world, "dbo_t") == list(range(cut, 1000))
