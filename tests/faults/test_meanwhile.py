"""What random histories have found: a database restored, or a target rolled back, in the middle of a run."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from unittest import mock

import pytest

from tests.faults.source import TABLES
from tests.faults.targets import check
from tests.faults.world import Killed, World


def _loaded(*, loads: int) -> World:
    world = World()
    world.shapes = ["history"]
    for seed in range(loads):
        _commit(world, seed)
        assert world.load() == {}
    return world


def _commit(world: World, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(8):
        world.source.commit(rng)
    world.source.capture()


@contextlib.contextmanager
def _struck(world: World, faults: dict[str, Callable[[], None]]) -> Iterator[None]:
    """Let faults strike, each at the first point of its name that a run comes to."""
    come, left = world.at, dict(faults)

    def at(point: str) -> None:
        come(point)
        if point in left:
            left.pop(point)()

    with mock.patch.object(world, "at", at):
        yield


def _kill() -> None:
    raise Killed


def _compare(world: World) -> None:
    assert not world.wrong
    for table in TABLES:
        for shape in world.shapes:
            check(world.targets[table, shape], world.source.commits, whole=True)


@pytest.mark.parametrize("point", ["look", "source"])
def test_a_restore_in_mid_run_is_noticed(point: str) -> None:
    """To a moment after the last load; the run is killed before its checkpoint, which would tell, is written."""
    world = _loaded(loads=1)
    _commit(world, 1)
    cut = world.source.captured
    faults = {point: lambda: world.source.restore(0.75), "after the commit": _kill}
    with _struck(world, faults), contextlib.suppress(Killed):
        for reason, permanent in world.load().values():
            assert "the server shows changes up to" in reason
            assert not permanent
    assert world.source.captured < cut
    while world.source.captured <= cut:
        _commit(world, 2)
    assert world.load() == {}
    _compare(world)


def _commit_behind(world: World, cut: int) -> None:
    """Let a restored database go on until it has commits behind a position."""
    while world.source.captured <= cut:
        _commit(world, 2)


@pytest.mark.parametrize("point", ["plan", "probe", "look", "source", "in mid-read"])
@pytest.mark.parametrize("part", [0.2, 0.6, 0.9])
@pytest.mark.parametrize("limit", [None, 12])
def test_a_restored_database_that_has_passed_the_cut_again_is_noticed(
    point: str, part: float, limit: int | None
) -> None:
    """By a login that does not see the recovery fork."""
    world = _loaded(loads=1)
    _commit(world, 1)

    def restore() -> None:
        cut = world.source.captured
        world.source.restore(part)
        _commit_behind(world, cut)

    with _struck(world, {point: restore}):
        failed = world.load(limit=limit)
    assert not world.wrong
    assert world.source.before
    for reason, permanent in failed.values():
        assert "the database was restored while it was read" in reason or permanent
    _commit(world, 3)
    failed = world.load()
    assert all("restored" in reason for reason, _ in failed.values())
    if not failed:
        _compare(world)


def test_a_restore_in_mid_copy_is_said_to_be_one() -> None:
    world = World()
    _commit(world, 0)
    with _struck(world, {"in mid-copy": lambda: world.source.restore(0.5)}):
        failed = world.load()
    for reason, permanent in failed.values():
        assert "the newest position of the database is" in reason
        assert "restored while it was read" in reason
        assert not permanent
    assert failed
    _commit(world, 1)
    assert world.load() == {}
    _compare(world)


def test_a_restore_in_mid_copy_of_what_was_not_captured_yet_is_told_by_the_recovery_fork() -> None:
    """Spark may read a part of a table again after a connection was closed."""
    world = World()
    world.source.fork = "fork"
    _commit(world, 0)
    rng = random.Random(1)
    for _ in range(8):
        world.source.commit(rng)
    with _struck(world, {"in mid-copy": lambda: world.source.restore(0.5)}):
        failed = world.load()
    assert "the recovery fork was fork and is" in failed["dbo.a"][0]
    _commit(world, 1)
    assert world.load() == {}
    _compare(world)


def test_a_replay_does_not_go_beyond_a_target_that_is_rolled_back_meanwhile() -> None:
    """What lies behind the marker is loaded once more."""
    world = _loaded(loads=2)
    times = [time for time, _ in world.source.commits.values()]
    with _struck(world, {"before the commit": lambda: world.targets["a", "history"].roll_back(1)}):
        failed = world.replay(times[1], times[-1])
    assert "is loaded up to" in failed["dbo.a"][0]
    _commit(world, 2)
    assert world.load() == {}
    _compare(world)
