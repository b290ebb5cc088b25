"""What random histories have found: a database restored, or a target rolled back, in the middle of a run."""

from __future__ import annotations

import contextlib
import datetime
import random
from collections.abc import Callable, Iterator
from unittest import mock

import pytest

from airflow_provider_mssql_cdc.core.exceptions import SourceRestoredError
from tests.support.faults.source import START, TABLES, number
from tests.support.faults.targets import check
from tests.support.faults.world import Killed, World


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


def _commit_behind(world: World, cut: int) -> None:
    """Let a restored database go on until it has commits behind a position."""
    while world.source.captured <= cut:
        _commit(world, 2)


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
    _commit_behind(world, cut)
    assert world.load() == {}
    _compare(world)


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
    # the probe asks once more then, and all is of one history
    assert failed or point in ("plan", "probe") or part > 0.5
    _commit(world, 3)
    failed = world.load()
    assert all("restored" in reason for reason, _ in failed.values())
    if not failed:
        _compare(world)


def _back_to(world: World, position: int) -> Callable[[], None]:
    """What restores the database to a commit."""

    def restore() -> None:
        known = list(world.source.commits)
        world.source.restore(min(1.0, (known.index(position) + 0.5) / (len(known) - 1)))
        assert world.source.position == position

    return restore


@pytest.mark.parametrize("seed", range(1, 20))
def test_what_is_captured_while_a_restored_database_is_probed_is_loaded_later(seed: int) -> None:
    """A cut of before the restore lies above all that there is; a commit may come after the look for events."""
    world = _loaded(loads=1)
    loaded = world.source.captured
    _commit(world, seed)

    def go_on() -> None:
        world.source.commit(random.Random(seed))
        world.source.capture()

    with _struck(world, {"plan": _back_to(world, loaded), "probe": go_on}):
        assert world.load(upto=world.source.captured) == {}
    _commit(world, seed + 1)
    assert world.load() == {}
    _compare(world)


@pytest.mark.parametrize("suffix", ["", "_again"])
def test_a_replay_of_an_interval_of_before_a_restore_is_not_planned(suffix: str) -> None:
    world = _loaded(loads=2)
    loaded = world.source.captured
    _commit(world, 2)
    times = [time for time, _ in world.source.commits.values()]

    with _struck(world, {"plan": _back_to(world, loaded)}), pytest.raises(SourceRestoredError, match="restored while"):
        world.replay(times[2], times[-1], suffix)
    _commit(world, 3)
    assert world.load() == {}
    _compare(world)


def test_a_replay_that_reads_a_restored_database_builds_nothing() -> None:
    world = _loaded(loads=2)
    loaded = world.source.captured
    _commit(world, 2)
    assert world.load() == {}
    times = [time for time, _ in world.source.commits.values()]

    def restore() -> None:
        cut = world.source.captured
        _back_to(world, loaded)()
        _commit_behind(world, cut)

    with _struck(world, {"in mid-read": restore}):
        failed = world.replay(times[2], times[-1], "_again")
    assert all("restored while it was read" in reason for reason, _ in failed.values())
    assert failed
    assert world.rebuilt == []


@pytest.mark.parametrize("fork", [None, "fork"])
def test_a_restore_after_the_read_and_a_load_of_the_new_history_before_the_commit(fork: str | None) -> None:
    """The other load's marker lies within what was read, and belongs to another history."""
    world = _loaded(loads=1)
    world.source.fork = fork
    loaded = world.source.captured
    assert world.load() == {}
    _commit(world, 1)

    def restore_and_load() -> None:
        _back_to(world, loaded)()
        world.source.commit(random.Random(5))
        world.source.capture()
        world.load()
        _commit_behind(world, loaded + 100)

    with _struck(world, {"before the commit": restore_and_load}):
        failed = world.load()
    assert not world.wrong
    assert all("restored" in reason for reason, _ in failed.values())
    assert failed


@pytest.mark.parametrize("seed", range(1, 20))
def test_a_restore_between_two_probes_is_noticed(seed: int) -> None:
    """The limits are asked for in between; a table without changes within them is given to no job that would notice."""
    world = _loaded(loads=2)
    before = list(world.source.commits)[-3]
    _commit(world, 2)
    cut, probes = world.source.captured, []

    def restore() -> None:
        probes.append(None)
        if len(probes) == 2:
            _back_to(world, before)()
            world.source.position += 1
            rng = random.Random(seed)
            while world.source.captured <= cut:
                world.source.commit(rng)
                world.source.capture()

    with mock.patch.object(world, "at", lambda point: restore() if point == "plan" else None):
        failed = world.load(limit=2)
    assert len(probes) == 2
    assert {name for name, (reason, _) in failed.items() if "restored" in reason} == {"dbo.a", "dbo.b"}


def _put(world: World, table: str, times: int = 1, *, captured: bool = True) -> None:
    """Change one table alone."""
    source, rows = world.source, world.source.rows[table]
    for _ in range(times):
        source.clock += 2
        source.position += 2
        key = source.position // 2 % 5
        event = (source.position, 0, "U" if key in rows else "I", key, source.position)
        rows[key] = source.position
        source.commits[source.position] = (START + datetime.timedelta(seconds=source.clock), {table: [event]})
    if captured:
        source.capture()


def test_a_shape_that_a_load_finds_ahead_of_its_cut_keeps_the_witness_of_its_position() -> None:
    """Which an older one does not replace: the database may be restored to a moment between the two."""
    world = World()
    world.shapes = ["mirror", "history"]
    _put(world, "a", 3)
    _put(world, "b", 3)
    assert world.load() == {}
    world.shapes = ["mirror"]
    _put(world, "a")
    assert world.load() == {}
    between = world.source.captured + 4
    _put(world, "b", 7)
    # so late that the checkpoint of the quiet table is written
    world.source.clock += 1
    assert world.load() == {}
    world.shapes = ["mirror", "history"]
    assert world.load(limit=1) == {}
    checkpoint = world.checkpoint("a")
    assert checkpoint is not None
    mirror = checkpoint.sinks["mirror"]
    assert mirror.read_through > mirror.applied
    assert mirror.witness is not None
    assert mirror.witness.lsn == mirror.read_through

    _back_to(world, between)()
    world.source.position += 1
    _put(world, "a", 2)
    while world.source.captured <= number(mirror.read_through):
        _put(world, "b")
    assert "restored" in world.load()["dbo.a"][0]
    assert not world.wrong


def test_a_gap_that_is_gone_with_a_restore_leaves_nothing_out() -> None:
    """Between the look at the instances and the probe."""
    world = World()
    world.shapes = ["mirror", "history"]
    _put(world, "a", 4)
    _put(world, "b", 2)
    assert world.load() == {}
    world.source.enable("a", wide=False)
    _put(world, "b", 2)
    _put(world, "a")
    assert world.load() == {}
    loaded = world.source.captured
    _put(world, "a", 4)
    _put(world, "b", 2)
    world.source.cleanup(1.0)
    world.source.drop_older("a")

    def restore() -> None:
        _back_to(world, loaded)()
        world.source.position += 1
        _put(world, "a", 3)

    with _struck(world, {"plan": restore}):
        assert world.load(copy_on_gap=True) == {}
    _compare(world)
    _put(world, "a")
    assert world.load() == {}
    _compare(world)


@pytest.mark.parametrize("fork", [None, "fork"])
def test_a_replay_does_not_add_old_events_to_a_history_that_was_begun_anew(fork: str | None) -> None:
    """The database is restored behind the read, and a person loads anew before the replay commits."""
    world = World()
    world.source.fork, world.shapes = fork, ["history"]
    _put(world, "a", 4)
    assert world.load() == {}
    loaded = world.source.captured
    _put(world, "a", 4)
    assert world.load() == {}
    times = [time for time, _ in world.source.commits.values()]
    _put(world, "b")
    assert world.load() == {}
    end = world.source.captured

    def begin_anew() -> None:
        _back_to(world, loaded)()
        world.source.position += 1
        _put(world, "a", 3)
        while world.source.captured <= end + 2:
            _put(world, "b")
        for table in TABLES:
            target = world.targets[table, "history"]
            target.line, target.remembered, target.oldest = [], None, len(target.commits)
            world.variables.pop(world.identity(table).variable, None)
        assert world.load() == {}

    last = world.source.commits[end][0]
    with _struck(world, {"before the commit": begin_anew}):
        failed = world.replay(times[2], last)
    assert "restored while it was read" in failed["dbo.a"][0]
    _compare(world)


def test_a_cut_that_is_older_than_the_mapping_does_not_hide_the_recovery_fork() -> None:
    world = World()
    world.source.fork = "fork"
    _put(world, "a", 6)
    _put(world, "b", 6)
    world.source.cleanup(0.7)
    captured = world.source.captured
    _put(world, "a", 3, captured=False)

    def restore() -> None:
        _back_to(world, captured)()
        _put(world, "b", 3)

    with _struck(world, {"in mid-copy": restore}):
        failed = world.load(upto=world.source.min_lsn - 1)
    assert "the recovery fork was" in failed["dbo.a"][0]
    assert world.targets["a", "mirror"].line == []


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
    """What was copied before the restore is told by nothing else."""
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
