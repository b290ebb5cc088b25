"""A sink that fails for good fails alone: it holds up, and wakes, nobody."""

from __future__ import annotations

import datetime
import random

import pytest

from airflow_provider_mssql_cdc.core.wake import Reason, Seen, Wake, WakeRules, Watched, decide, positions_to_probe
from airflow_provider_mssql_cdc.hooks.change_source import CdcSource
from tests.support.faults import source, world
from tests.support.faults.source import Hook, name_of, number
from tests.support.faults.targets import check
from tests.support.faults.world import World

RULES = WakeRules(datetime.timedelta(hours=1))
THREE = ("a", "b", "c")


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> World:
    """A world of three tables, all of them loaded."""
    for module in (source, world):
        monkeypatch.setattr(module, "TABLES", THREE)
    found = World()
    _commit(found, 12)
    assert found.load() == {}
    return found


def _commit(world: World, transactions: int) -> None:
    rng = random.Random(world.source.position)
    for _ in range(transactions):
        world.source.commit(rng)
    world.source.capture()


def _wake(world: World) -> Wake | None:
    """What a sensor finds now, that has just begun to wait."""
    hook, now = Hook(world), datetime.datetime.now(datetime.UTC)
    changes = CdcSource(hook)  # type: ignore[arg-type]
    feeds = changes.discover(hook.snapshot(("dbo.*",), ()))
    tables = [
        Watched(name_of(table), tuple(feeds[name_of(table)]), world.checkpoint(table), shapes=tuple(world.shapes))
        for table in source.TABLES
    ]
    seen = Seen({changes.kind.KIND: changes.probe(positions_to_probe(tables, changes.kind))})
    return decide(tables, seen, RULES, now=now, waiting_since=now)


def _equal(world: World, *shapes: str) -> None:
    assert not world.wrong
    for table in source.TABLES:
        for shape in shapes:
            checkpoint = world.checkpoint(table)
            assert checkpoint is not None
            assert number(checkpoint.sinks[shape].position) == world.source.captured
            check(world.targets[table, shape], world.source.commits, whole=True)


def test_a_history_goes_on_beside_a_mirror_that_is_broken_until_that_is_mended(
    three: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = three.targets["a", "mirror"]
    mirror.broken, rows = True, mirror.rows_now
    _commit(three, 12)
    assert _wake(three).calls[name_of("a")].reason is Reason.EVENTS
    ((name, (reason, permanent)),) = three.load().items()
    assert (name, "lacks columns" in reason, permanent) == ("dbo.a", True, True)
    stuck = three.checkpoint("a").sinks["mirror"].read_through
    _equal(three, "history")

    # nothing happens to its table
    assert _wake(three) is None, "the sensor does not spin"
    with monkeypatch.context() as patched:
        patched.setattr(source, "TABLES", ("b", "c"))
        _commit(three, 3)
    assert name_of("a") not in _wake(three).calls
    three.load()
    assert three.checkpoint("a").sinks["mirror"].read_through == stuck
    _commit(three, 12)
    assert _wake(three).calls[name_of("a")].reason is Reason.EVENTS, "nor does it sleep"
    three.load()
    _equal(three, "history")
    assert three.checkpoint("a").sinks["mirror"].read_through == stuck
    assert mirror.rows_now == rows

    # mended, and tried since a person asks
    mirror.broken = False
    _commit(three, 5)
    assert "is left alone" in three.load()["dbo.a"][0]
    assert three.load(asked=True) == {}
    _equal(three, "mirror", "history")


def test_limits_count_from_what_is_loaded_not_from_what_failed(three: World) -> None:
    three.targets["a", "mirror"].broken = True
    _commit(three, 40)
    cuts = []
    for _ in range(20):
        failed = three.load(limit=1)
        assert list(failed) == ["dbo.a"]
        cuts.append(max(number(three.checkpoint(table).sinks["history"].position) for table in THREE))
    assert cuts == sorted(set(cuts)), "each run goes on by a transaction"
    three.load()
    _equal(three, "history")
    three.targets["a", "mirror"].broken = False
    assert three.load(asked=True) == {}
    _equal(three, "mirror", "history")


def test_changes_that_are_purged_for_a_sink_that_failed_are_not_lost_for_its_neighbour(three: World) -> None:
    three.targets["a", "mirror"].broken = True
    _commit(three, 12)
    three.load()
    three.source.cleanup(1.0)
    _commit(three, 12)
    assert list(three.load()) == ["dbo.a"]
    _equal(three, "history")
    three.targets["a", "mirror"].broken = False
    ((_, (reason, _)),) = three.load(asked=True).items()
    assert "were purged before" in reason
    assert three.load(copy_on_gap=True, asked=True) == {}
    _equal(three, "mirror", "history")
