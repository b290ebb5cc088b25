"""Cleanup by mark and by retention."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from airflow_provider_mssql_cdc.sandbox.engine.cdc.jobs import Settings
from airflow_provider_mssql_cdc.sandbox.engine.cdc.lsn import to_hex
from airflow_provider_mssql_cdc.sandbox.engine.cdc.switches import Switches
from airflow_provider_mssql_cdc.sandbox.engine.harshness import Harshness, Point
from airflow_provider_mssql_cdc.sandbox.engine.log import RowImages
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


def test_steps_cut_across_batches(world: World) -> None:
    count = 150_000
    first = world.commit(RowImages(T, after=pa.table([pa.array(range(count), pa.int32())], schema=T.arrow_schema)))
    last = world.commit(insert(T, (count,)))
    world.db.scan()
    left = []
    world.db.cleanup("dbo_t", last, 70_000, between=lambda: left.append(ids(world, "dbo_t")))
    assert first is not None
    assert left[:3] == [list(range(n, count + 1)) for n in (0, 70_000, 140_000)]
    assert ids(world, "dbo_t") == [count]


# Step by step


State = tuple[dict[str, bytes], dict[str, list[int]], list[bytes]]


def state(world: World) -> State:
    """The marks, the ids in the change tables, and the mapping."""
    names = [each.capture_instance for each in world.db.instances]
    marks = {name: each.start_lsn for name, each in zip(names, world.db.instances, strict=True)}
    return marks, {name: ids(world, name) for name in names}, mapped(world)


def run_in_steps(before: State, mark: bytes, below: dict[str, int], threshold: int, keep: int) -> list[State]:
    """What readers see after each step of a run, the first of all before it.

    :param below: per instance that is cleaned, how many of its rows lie below the mark
    :param keep: how many rows of the mapping stay
    """
    marks, rows, mapping = before
    states = [before, ({**marks, **dict.fromkeys(below, mark)}, rows, mapping)]
    for name, count in below.items():
        for deleted in [*range(threshold, count, threshold), count]:
            marks, rows, mapping = states[-1]
            states.append((marks, {**rows, name: before[1][name][deleted:]}, mapping))
    marks, rows, mapping = states[-1]
    return [*states, (marks, rows, mapping[len(mapping) - keep :])]


@pytest.fixture
def five(world: World) -> tuple[World, list[bytes]]:
    """Five captured transactions, a second apart, with four rows in each table."""
    commits = []
    for i in range(5):
        rows = [(4 * i + k,) for k in range(4)]
        commits.append(world.commit(insert(T, *rows), insert(U, *rows)) or b"")
    world.db.scan()
    world.db.change_job("cleanup", Settings(retention=1, threshold=3))
    return world, commits


def expire(world: World) -> None:
    """Let all five transactions be older than the retention, and an idle scan say so."""
    world.now += datetime.timedelta(hours=1)
    world.db.scan()


def test_what_is_seen_between_the_steps_of_the_procedure(five: tuple[World, list[bytes]]) -> None:
    world, commits = five
    steps = run_in_steps(state(world), commits[2], {"dbo_t": 8}, 3, 5)
    seen = [state(world)]

    def look() -> None:
        seen.append(state(world))
        with pytest.raises(SqlError) as caught:
            world.all_changes("dbo_t", commits[1], commits[4])
        assert caught.value.number == 313
        assert [row["id"] for row in world.all_changes("dbo_t", commits[2], commits[4])] == list(range(8, 20))

    world.db.cleanup("dbo_t", commits[2], 3, between=look)
    assert [*seen, state(world)] == steps
    # a transaction is half there after the second step
    assert steps[2][1]["dbo_t"] == list(range(3, 20))


def test_what_is_seen_between_the_steps_of_the_job(five: tuple[World, list[bytes]]) -> None:
    world, commits = five
    expire(world)
    steps = run_in_steps(state(world), commits[4], {"dbo_t": 16, "dbo_u": 16}, 3, 2)
    seen = [state(world)]
    world.db.cleanup_retention(between=lambda: seen.append(state(world)))
    assert [*seen, state(world)] == steps


@pytest.mark.parametrize("step", range(2, 15))
def test_a_step_that_fails_leaves_what_was_done(five: tuple[World, list[bytes]], step: int) -> None:
    world, commits = five
    expire(world)
    steps = run_in_steps(state(world), commits[4], {"dbo_t": 16, "dbo_u": 16}, 3, 2)
    assert len(steps) == 15  # and the 14th is the last
    world.db.cleanup_fault = lambda number: number == step
    said = world.db.cleanup_retention()
    assert state(world) == steps[step - 1]
    if step == 14:
        assert said is not None
        assert (said.number, said.severity) == (22853, 10)
    else:
        assert said is not None
        assert (said.number, said.severity) == (22852, 10)
        assert ("cdc.dbo_t_CT" if step < 8 else "cdc.dbo_u_CT") in said.text
    # the next run has the same mark, and does what was left
    world.db.cleanup_fault = lambda number: False
    assert world.db.cleanup_retention() is None
    assert state(world) == steps[-1]


def test_marks_that_cannot_be_raised(five: tuple[World, list[bytes]]) -> None:
    world, commits = five
    expire(world)
    before = state(world)
    world.db.cleanup_fault = lambda number: number == 1
    for run in (world.db.cleanup_retention, lambda: world.db.cleanup("dbo_t", commits[1])):
        with pytest.raises(SqlError) as caught:
            run()
        assert caught.value.number == 22851
    assert state(world) == before


def test_null_deletes_what_a_failed_run_has_left(five: tuple[World, list[bytes]]) -> None:
    world, commits = five
    world.db.cleanup_fault = lambda number: number == 3
    assert world.db.cleanup("dbo_t", commits[2], 3) is not None
    assert ids(world, "dbo_t") == list(range(3, 20))
    world.db.cleanup_fault = lambda number: False
    assert world.db.cleanup("dbo_t", None, 3) is None
    assert ids(world, "dbo_t") == list(range(8, 20))


@pytest.mark.parametrize("step", range(1, 6))
def test_what_is_captured_between_two_steps_stays(five: tuple[World, list[bytes]], step: int) -> None:
    world, commits = five
    count = iter(range(1, 6))

    def write() -> None:
        if next(count) == step:
            world.commit(insert(T, (100,)))
            world.db.scan()

    world.db.cleanup("dbo_t", commits[3], 3, between=write)
    assert ids(world, "dbo_t") == [*range(12, 20), *([100] if step < 6 else [])]


def test_a_harsh_run_of_the_job_may_stop_on_its_way() -> None:
    stopped = set()
    for seed in range(40):
        world = World(harshness=Harshness(seed, [Point.CLEANUP]))
        for each in (T, U):
            world.db.enable_table(each)
        commits = [world.commit(insert(T, (i,)), insert(U, (i,))) or b"" for i in range(5)]
        world.db.scan()
        expire(world)
        world.db.change_job("cleanup", Settings(retention=1))
        steps = run_in_steps(state(world), commits[4], {"dbo_t": 4, "dbo_u": 4}, 5000, 2)
        done = 0
        for _ in range(50):
            assert world.db.cleanup_retention() is None
            now = steps.index(state(world))
            assert now >= max(done, 1)
            stopped.add(now)
            done = now
        assert done == 4
        # who calls the procedure waits until it has ended
        world.commit(insert(T, (9,)))
        world.db.scan()
        world.db.cleanup("dbo_t", world.db.max_lsn())
        assert ids(world, "dbo_t") == [9]
    assert stopped == {1, 2, 3, 4}
