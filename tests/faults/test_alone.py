"""A sink that fails for good fails alone: it holds up, and wakes, nobody."""

from __future__ import annotations

import dataclasses
import datetime
import random
from unittest import mock

import pytest

from airflow_provider_mssql_cdc.core.exceptions import CaptureLagError, CdcPermissionError
from airflow_provider_mssql_cdc.core.feed import CaptureInstance, DdlChange
from airflow_provider_mssql_cdc.core.position import KINDS
from airflow_provider_mssql_cdc.core.wake import Reason, Seen, Wake, WakeRules, Watched, decide, positions_to_probe
from airflow_provider_mssql_cdc.hooks.change_source import CdcSource
from airflow_provider_mssql_cdc.operators.outcome import Outcome
from tests.support.core.positions import Counted
from tests.support.faults import source, world
from tests.support.faults.source import Hook, lsn, name_of, number
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
    feeds = changes.discover(hook.survey(("dbo.*",), ()))
    tables = [
        Watched(name_of(table), tuple(feeds[name_of(table)]), world.checkpoint(table), shapes=tuple(world.shapes))
        for table in source.TABLES
    ]
    seen = Seen({CaptureInstance.KIND: changes.probe(positions_to_probe(tables, CaptureInstance))})
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


@pytest.mark.parametrize(
    "error",
    [CdcPermissionError("the SELECT permission was denied.", number=229), CaptureLagError("the capture is behind.")],
)
def test_a_copy_that_fails_leaves_alone_what_is_loaded(three: World, error: Exception) -> None:
    three.shapes = ["mirror", "history", "scd2"]
    three.copy_error = error
    for _ in range(2):
        _commit(three, 12)
        assert {name: str(error) in reason for name, (reason, _) in three.load(asked=True).items()} == dict.fromkeys(
            ("dbo.a", "dbo.b", "dbo.c"), True
        )
        _equal(three, "mirror", "history")
    three.copy_error = None
    assert three.load(asked=True) == {}
    _equal(three, "mirror", "history", "scd2")


def test_what_is_tried_again_beside_a_first_load_lowers_no_cut(three: World) -> None:
    three.shapes = ["mirror"]
    three.targets["a", "mirror"].broken = True
    _commit(three, 40)
    three.load()
    _commit(three, 12)
    three.shapes = ["mirror", "scd2"]
    left_alone, tried = three.plan(limit=1), three.plan(limit=1, asked=True)
    assert "mirror" in tried.candidates[name_of("a")].again
    assert tried.upto == left_alone.upto


def test_a_gap_of_one_sink_starts_no_spark_for_a_quiet_table_and_its_neighbour_goes_on(three: World) -> None:
    three.targets["a", "mirror"].broken = True
    _commit(three, 12)
    three.load()
    three.targets["a", "mirror"].broken = False
    loaded = three.source.captured
    three.source.cleanup(1.0)
    for _ in range(6):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(source, "TABLES", ("b", "c"))
            _commit(three, 3)
        assert name_of("a") not in {spec.name for spec in three.plan(asked=True).specs}
        assert "were purged before" in three.load(asked=True)["dbo.a"][0]
    # every other load finds checkpoints that are a day old
    assert number(three.checkpoint("a").sinks["history"].position) > loaded + 9, "it never expires"


def test_a_planned_failure_is_written_once_for_as_long_as_it_is_the_same(three: World) -> None:
    three.targets["a", "mirror"].broken = True
    _commit(three, 12)
    three.load()
    three.source.cleanup(1.0)
    now = datetime.datetime.now(datetime.UTC)
    three.load(asked=True)
    plan = three.plan()
    first = three.checkpoint("a").sinks["mirror"].failed
    assert first is not None
    assert [c.identity.table.table for c in Outcome(plan).checkpoints(now)] == []
    later = first.time + plan.max_idle
    (again,) = [c for c in Outcome(plan).checkpoints(later) if c.identity.table.table == "a"]
    assert again.sinks["mirror"].failed == dataclasses.replace(first, time=later, since=first.began)


def test_ddl_that_lies_between_a_marker_and_its_checkpoint_is_seen_by_the_job(three: World) -> None:
    """The operator looks from the checkpoint on; a target that was rolled back is read from its marker on."""
    before = three.source.captured
    _commit(three, 12)
    assert three.load() == {}
    three.targets["a", "mirror"].roll_back(1)
    _commit(three, 12)
    ddl = DdlChange("dbo_a", "ALTER TABLE dbo.a ALTER COLUMN value bigint", lsn(before + 1), None, True)
    plan = three.plan()
    plan.specs = [dataclasses.replace(spec, ddl=(ddl,)) for spec in plan.specs if spec.name == name_of("a")]
    outcome = three.outcome(plan)
    assert outcome.receipt is not None
    (receipt,) = outcome.receipt.tables
    assert [sink.shape for sink in receipt.sinks] == ["history"]
    assert "ALTER COLUMN value bigint" in receipt.failed["mirror"].message


def test_positions_of_another_kind_fail_their_table_alone(three: World) -> None:
    stored = three.checkpoint("a")
    counted = {s: dataclasses.replace(k, applied=Counted(1), read_through=Counted(1)) for s, k in stored.sinks.items()}
    with mock.patch.dict(KINDS, {Counted.KIND: Counted}):
        three.store.overwrite(dataclasses.replace(stored, sinks=counted))
        _commit(three, 12)
        for copy_on_gap in (False, True):
            ((table, (reason, permanent)),) = three.load(copy_on_gap=copy_on_gap).items()
            assert (table, "was loaded up to counted 1" in reason, permanent) == ("dbo.a", True, True)
