"""Random histories of tables whose columns come, go and change beside faults.

What planner, job, markers and checkpoints make of them is compared with the source after each commit. Rows are folded
and filled by a model.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.entry_values import ALL, NONE, PROPOSE
from airflow_provider_mssql_cdc.core.schema import ColumnFacts
from tests.support.faults.evolving import EvolvingWorld, patched
from tests.support.faults.evolving_targets import EvolvingTarget, check
from tests.support.faults.source import TABLES, number
from tests.support.faults.world import SHAPES, Broken, Failures, Killed

FEW, OTHERS = range(12), range(12, int(os.environ.get("MSSQL_CDC_TEST_HISTORIES", "300")))
"""Seeds: always the same ones; with more histories other ones follow them."""
_POINTS = 40
_STEPS_OF_MAKING = (
    "look for the instance",
    "make the instance",
    "made the instance",
    "before the rights",
    "after the rights",
)
_RARE_POINTS = (
    *_STEPS_OF_MAKING,
    "before the types",
    "after the types",
    "before a name",
    "after a name",
    "before the schema changes",
    "after the schema changes",
)
"""Few loads come to them, and faults at random points seldom strike there."""
_DEADLOCK = (
    "com.microsoft.sqlserver.jdbc.SQLServerException: Transaction (Process ID 57) was deadlocked on lock resources "
    "with another process and has been chosen as the deadlock victim. Rerun the transaction."
)


@pytest.fixture(autouse=True)
def columns() -> Iterator[None]:
    with patched():
        yield


class History:
    """A source whose columns change, loads that are struck, and people who interfere.

    :ivar script: what has happened, for people
    :ivar captured: up to here all was captured when the load began
    :ivar was_killed: some load has ended midway
    :ivar was_rolled_back: some target was
    :ivar was_proposing: some load was to leave it to people to make instances
    :ivar unseen: tables with columns that may have come while nobody knew which there had been: these wait to be
        asked for
    """

    def __init__(self, seed: int) -> None:
        self.rng, self.world = random.Random(seed), EvolvingWorld()
        self.script: list[str] = []
        self.struck: set[str] = set()
        self.unseen: set[str] = set()
        self.captured, self.was_killed, self.was_rolled_back, self.was_proposing = 0, False, False, False

    def step(self) -> None:
        """Let something happen, and load."""
        rng = self.rng
        self.change(rng.randrange(4))
        if rng.random() < 0.5:
            for _ in range(rng.choice((1, 1, 1, 2, 3))):
                self.alter()
                self.change(rng.randrange(3))
        if rng.random() < 0.25:
            self.strike(rng.choice([*MEDDLING, *BETWEEN]))
        self.world.locked, self.world.may_make = rng.random() < 0.1, rng.random() < 0.9
        self.world.said = {key: rng.choice(values) for key, values in SAID.items() if rng.random() < 0.3}
        self.add_shape()
        self.world.pauses = rng.choice((0, 0, 1, 2, 3))
        self.world.killed_at = rng.choice(_RARE_POINTS) if rng.random() < 0.3 else None
        if rng.random() < 0.8:
            self.world.source.capture()
        faults = rng.choices([*FAULTS, *MEDDLING], k=rng.choice((0, 0, 1, 1, 2)))
        self.load({rng.randrange(_POINTS): kind for kind in faults}, copy_on_gap=rng.random() < 0.3)

    def add_shape(self) -> None:
        """Ask for a shape more, where that is not all."""
        others = [shape for shape in SHAPES if shape not in self.world.shapes]
        if others and self.rng.random() < 0.3:
            self.world.shapes.append(self.rng.choice(others))

    def change(self, transactions: int) -> None:
        """Commit some."""
        for _ in range(transactions):
            self.world.source.commit(self.rng)
        self.script.append(f"{transactions} transactions, up to {self.world.source.position}")

    def alter(self) -> None:
        """Change a column of a table."""
        source = self.world.source
        kinds = ("add", "add", "add", "again", "drop", "drop", "alter", "alter", "back")
        kind, table = self.rng.choice(kinds), self.rng.choice(TABLES)
        checkpoint = self.world.checkpoint(table)
        if checkpoint is None or checkpoint.seen_schema is None:
            self.unseen.add(table)
        for said in source.alter_and_back(self.rng, table) if kind == "back" else [source.alter(self.rng, table, kind)]:
            self.script.append(f"at {source.position}: {said}")

    def load(self, faults: dict[int, str], **given: bool) -> Failures:
        """Load, with faults at some of its points."""
        self.struck.clear()
        self.captured = self.world.source.captured
        start = next(self.world.points) + 1
        self.world.here = None
        self.was_proposing |= "on_schema_change" in self.world.said
        self.world.faults = {start + at: partial(self.strike, kind, start + at) for at, kind in faults.items()}
        self.script.append(f"load of {self.world.shapes}, {self.world.pauses} pauses, {self.world.said}, {given}")
        try:
            failed = self.world.load(**given)
        except (Killed, Broken) as end:
            self.was_killed = True
            self.script.append(f"  ended by {type(end).__name__} at {self.world.point}")
            return {}
        finally:
            self.world.faults = {}
        for name, (reason, _) in failed.items():
            self.script.append(f"  {name}: {reason}")
        self.justified(failed)
        self.warned()
        return failed

    def strike(self, kind: str, at: int | None = None) -> None:
        """Let a fault happen, between runs or at a point of one."""
        self.struck.add(kind)
        self.script.append(f"  {kind}" + (f" at {self.world.point}" if at is not None else " between runs"))
        {**MEDDLING, **BETWEEN, **FAULTS}[kind](self)

    # --- what strikes

    def _kill(self) -> None:
        raise Killed

    def _break(self) -> None:
        raise Broken(_DEADLOCK)

    def _load_beside(self) -> None:
        self.justified(self.world.load(copy_on_gap=self.rng.random() < 0.3))

    def _change(self) -> None:
        self.change(2)
        self.world.source.capture()

    def _alter(self) -> None:
        self.alter()
        if self.rng.random() < 0.5:
            self.world.source.capture()

    def _purge(self) -> None:
        self.world.source.cleanup(self.rng.random())

    def _make_by_hand(self) -> None:
        """A second instance, with all columns or without one that no instance has."""
        table, source = self.rng.choice(TABLES), self.world.source
        (first, *_) = source.alive(table)
        there = [column.id for column in source.there(table)]
        keep = [id_ for id_ in there if id_ in first.ids or self.rng.random() < 0.7]  # type: ignore[attr-defined]
        source.enable(table, ids=keep)

    def _drop_older(self) -> None:
        self.world.source.drop_older(self.rng.choice(TABLES))

    def _lose_checkpoint(self) -> None:
        table = self.rng.choice(TABLES)
        self.unseen.add(table)
        self.world.variables.pop(self.world.identity(table).variable, None)

    def _reset(self) -> None:
        """A person has a table loaded anew: without its checkpoint, but for the columns that wait."""
        table = self.rng.choice(TABLES)
        self.unseen.add(table)
        self.world.reset(table)

    def _compact(self) -> None:
        self._target().compact()

    def _roll_back(self) -> None:
        """To a commit with the same columns: a lake's table keeps those that it has got."""
        target = self._target()
        hashes = [m.schema_hash if (m := target.commits[n].marker) is not None else None for n in target.line[-2:]]
        if len(hashes) == 2 and None not in hashes and len({*hashes}) == 1:
            target.roll_back(1)
            self.was_rolled_back = True

    def _target(self) -> EvolvingTarget:
        found = self.world.targets[self.rng.choice(TABLES), self.rng.choice(self.world.shapes)]
        assert isinstance(found, EvolvingTarget)
        return found

    # --- what must be so

    def justified(self, failed: Failures) -> None:
        """Accept an error only where something has happened that leads to it."""
        for _, (reason, _) in failed.items():
            self._explained(reason, REASONS)

    def warned(self) -> None:
        """Accept a warning only where something has happened that leads to it."""
        for text in self.world.warnings:
            self._explained(text, WARNINGS)
        self.world.warnings.clear()

    def _explained(self, text: str, causes: tuple[tuple[str, set[str]], ...]) -> None:
        source, there = self.world.source, {*self.struck}
        instances = [*itertools.chain.from_iterable(source.instances.values())]
        if source.has_lost:
            there.add(LOST)
        if any(instance.start > self.captured for instance in instances):
            there.add(NEW)
        statements = itertools.chain.from_iterable(source.statements.values())
        if any(each.altered is not None and each.position > self.captured for each in statements):
            there.add(ALTERED)
        if len(instances) > len(TABLES):
            there.add(OTHER)
        if self.was_killed:
            there.add(KILLED)
        if self.was_rolled_back:
            there.add(ROLLED_BACK)
        assert any(said in text and kinds & there for said, kinds in causes), text

    def make_room(self) -> None:
        """Drop an instance where there are two and no sink stands on it: the older one, or the newer one where loads
        ask for that.
        """
        for table in TABLES:
            alive, checkpoint = self.world.source.alive(table), self.world.checkpoint(table)
            if checkpoint is None or len(alive) < 2:
                continue
            used = {sink.feed.name for sink in checkpoint.sinks.values() if sink.feed}
            asked_for = any(each.instance is None for each in checkpoint.proposed)
            if used == {alive[1].name} or (used == {alive[0].name} and asked_for):
                (unused,) = (each for each in alive if each.name not in used)
                unused.end = self.world.source.position
                self.script.append(f"{unused.name} is dropped")

    def end(self) -> None:
        """Without faults all targets come to show all columns, as the source has them."""
        self.world.locked, self.world.pauses, self.world.killed_at = False, 0, None
        self.world.may_make, self.world.said, self.world.shapes = True, {}, [*SHAPES]
        for _ in range(12):
            touched: set[str] = set()
            while touched != set(TABLES):
                touched |= self.world.source.commit(self.rng)
            self.world.source.capture()
            self.script.append(f"the end: captured up to {self.world.source.captured}")
            failed = self.load({}, copy_on_gap=True, asked=True)
            self.no_commit_was_wrong()
            self.make_room()
            for name, (reason, _) in failed.items():
                if "checkpoint set --position" in reason or "never loaded: drop it" in reason:
                    # its marker alone knows of the gap, or a first load was killed: a person has to begin anew
                    self.world.drop(name.removeprefix("dbo."))
                    self.unseen.add(name.removeprefix("dbo."))
            sinks = [*itertools.product(TABLES, self.world.shapes)]
            if not failed and not any(self.lacks(*sink) for sink in sinks) and not any(map(self.is_untold, TABLES)):
                break
        else:
            left = {sink: self.lacks(*sink) for sink in itertools.product(TABLES, self.world.shapes)}
            raise AssertionError(f"failed: {failed}, lacks: {left}")
        for sink in itertools.product(TABLES, self.world.shapes):
            target = self.world.targets[sink]
            assert isinstance(target, EvolvingTarget)
            marker = target.marked[-1].marker
            assert marker is not None
            # of what came since, nothing is in the columns that its instance has
            since, source = number(marker.position), self.world.source
            (feed,) = (i for i in source.instances[target.table] if i.object_id == marker.feed.object_id)
            assert source.captured_by(feed, since, source.captured) == []
            check(target, self.world.source, whole=True)
        for table in TABLES:
            checkpoint = self.world.checkpoint(table)
            assert checkpoint is not None
            assert checkpoint.making is None, table
            others = self.world.source.alive(table)[1:]
            # what was made and is alone since, a person has to grant; or where the author has taken it back meanwhile
            assert self.was_proposing or all(each.is_readable for each in others), table  # type: ignore[attr-defined]

    def lacks(self, table: str, shape: str) -> set[str]:
        """The columns that a target does not show, and is to."""
        target, checkpoint = self.world.targets[table, shape], self.world.checkpoint(table)
        assert isinstance(target, EvolvingTarget)
        marker = target.marked[-1].marker if target.marked else None
        if marker is None or checkpoint is None:
            return {"all"}
        waiting = {*checkpoint.waiting_ids, *marker.waiting_ids}
        assert not waiting or table in self.unseen
        has = {facts.column_id for facts in target.kept[marker.schema_hash].columns}
        there = [c for c in self.world.source.there(table) if c.id not in waiting and c.id not in has]
        return {column.name for column in there} | {*marker.unfilled}

    def is_untold(self, table: str) -> bool:
        """Whether there are schema events that the table of these does not hold: one whose feed has captured nothing
        has no job.
        """
        checkpoint = self.world.checkpoint(table)
        return checkpoint is None or bool(checkpoint.unwritten)

    def no_commit_was_wrong(self) -> None:
        """Each commit was compared with the source when it was made."""
        for error in self.world.wrong:
            raise error


SAID: dict[str, tuple[Any, ...]] = {
    "on_schema_change": (PROPOSE,),
    "widen_list": (False,),
    "history_fill": (ALL, NONE),
    "fill": (NONE,),
}
"""What a DAG author may say at times."""
MEDDLING: dict[str, Callable[[History], None]] = {
    "changes": History._change,
    "alter": History._alter,
    "purge": History._purge,
    "instance by hand": History._make_by_hand,
    "older dropped": History._drop_older,
    "lost checkpoint": History._lose_checkpoint,
    "compaction": History._compact,
    "rollback": History._roll_back,
}
BETWEEN: dict[str, Callable[[History], None]] = {"reset": History._reset}
"""What people do while no load runs."""
FAULTS: dict[str, Callable[[History], None]] = {
    "kill": History._kill,
    "another kill": History._kill,
    "third kill": History._kill,
    "broken": History._break,
    "load beside": History._load_beside,
}
LOST, NEW, OTHER = "lost, ever", "new instance", "other instance"
ALTERED = "captured ALTER"
KILLED, ROLLED_BACK = "killed, ever", "rolled back, ever"
REASONS: tuple[tuple[str, set[str]], ...] = (
    ("were purged before", {LOST}),
    # behind where its other sinks have gone over to a newer one
    ("are not in capture instance", {LOST, ROLLED_BACK}),
    ("deadlock victim", {"broken"}),
    ("dropped since the run was planned", {"older dropped"}),
    ("altered since the run was planned", {ALTERED}),
    ("vanished while the run was planned", {"older dropped"}),
    ("just enabled", {NEW}),
    ("It is empty, and was never loaded: drop it", {KILLED}),
    ("which this run has not read as a whole", {"rollback"}),
    # a run that was planned before another one followed a statement
    ("does not have the columns that this load writes", {"load beside"}),
    ("the captured columns or the key are not those that", {"load beside"}),
    ("has other columns than when this run looked at it", {"load beside", "broken"}),
)
WARNINGS: tuple[tuple[str, set[str]], ...] = (
    ("was loaded from capture instance", {OTHER}),
    ("are lost; loaded anew from there", {LOST}),
    ("its schema changes are not written", {"broken"}),
)


def run(seed: int) -> None:
    """A history by its seed, told where it fails."""
    history = History(seed)
    history.world.shapes = history.rng.sample(SHAPES, history.rng.choice((1, 2, 3, 3)))
    try:
        for _ in range(10):
            history.step()
            history.no_commit_was_wrong()
            history.make_room()
        history.end()
    except BaseException as error:
        error.add_note(f"seed {seed}:\n" + "\n".join(history.script))
        raise


@pytest.mark.parametrize("seed", FEW)
def test_columns_that_come_and_go_beside_faults(seed: int) -> None:
    run(seed)


@pytest.mark.thorough
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", OTHERS)
def test_more_histories_of_columns(seed: int) -> None:
    run(seed)


def test_a_column_that_comes_while_the_first_copy_takes_several_runs_does_not_wait() -> None:
    """It was not there at the first sight, so nobody has left it out."""
    history = History(1)
    history.change(5)
    history.world.source.capture()
    history.world.pauses = 2
    assert history.load({}) == {}
    assert history.world.source.alter(random.Random(1), "a", "add").startswith("ALTER TABLE dbo.a ADD c4")
    history.change(3)
    history.end()
    assert {c.column_id for c in shown(history.world, "a", "mirror")} == {1, 2, 3, 4}


@pytest.mark.parametrize("pauses", [0, 1])
def test_a_column_that_comes_after_a_first_load_of_which_a_part_failed_does_not_wait(pauses: int) -> None:
    """The table was seen without it, though not all of its sinks were asked."""
    history = History(1)
    history.change(5)
    history.world.source.capture()
    history.world.pauses = pauses
    history.load({2: "broken"})
    history.world.source.alter(random.Random(1), "a", "add")
    history.change(4)
    history.end()
    assert {c.column_id for c in shown(history.world, "a", "mirror")} == {1, 2, 3, 4}


@pytest.mark.parametrize("point", _STEPS_OF_MAKING)
def test_an_instance_is_made_once_and_readable_wherever_the_run_that_makes_it_is_killed(point: str) -> None:
    history = loaded()
    world, source = history.world, history.world.source
    source.alter(random.Random(1), "a", "add")
    source.capture()
    world.killed_at = point
    with pytest.raises(Killed):
        world.load()
    checkpoint = world.checkpoint("a")
    assert checkpoint is not None
    assert checkpoint.making is not None
    assert (checkpoint.making.instance, checkpoint.making.columns) == ("dbo_a__mc2", ("c4",))
    assert world.load() == {}
    checkpoint = world.checkpoint("a")
    assert checkpoint is not None
    assert checkpoint.making is None
    assert [(i.name, i.is_readable) for i in source.alive("a")] == [("dbo_a", True), ("dbo_a__mc2", True)]  # type: ignore[attr-defined]
    history.end()


@pytest.mark.parametrize("point", _STEPS_OF_MAKING)
def test_two_dags_that_make_an_instance_at_once_make_one_and_both_go_over_to_it(point: str) -> None:
    """One is about to make it, or has made it, when the other one does as much."""
    history = loaded()
    world, source = history.world, history.world.source
    other = world.beside()
    assert other.load() == {}
    source.alter(random.Random(1), "a", "add")
    source.capture()
    come = world.at

    def at(here: str) -> None:
        if here == point:
            world.at = come  # type: ignore[method-assign]
            assert other.load() == {}
        come(here)

    world.at = at  # type: ignore[method-assign]
    assert world.load() == {}
    assert world.at == come
    assert [(i.name, i.is_readable) for i in source.alive("a")] == [("dbo_a", True), ("dbo_a__mc2", True)]  # type: ignore[attr-defined]
    for each in (other, world):
        for _ in range(2):
            history.change(8)
            source.capture()
            assert each.load() == {}
        assert each.wrong == []
        for shape in each.shapes:
            assert {c.column_id for c in shown(each, "a", shape)} == {1, 2, 3, 4}
    history.end()


def test_three_columns_come_in_three_runs_beside_an_instance_that_was_made_by_hand() -> None:
    """The place beside it is taken until the older one is dropped, which has none of them."""
    history = loaded()
    world, source = history.world, history.world.source
    source.alter(random.Random(1), "a", "add")
    source.enable("a")
    for _ in range(2):
        history.change(8)
        source.capture()
        assert history.load({}) == {}
        source.alter(random.Random(1), "a", "add")
        source.capture()
        assert history.load({}) == {}
    assert [i.name for i in source.alive("a")] == ["dbo_a", "dbo_a_2"]
    for shape in world.shapes:
        assert {c.column_id for c in shown(world, "a", shape)} == {1, 2, 3, 4}
    history.no_commit_was_wrong()
    history.make_room()
    history.end()
    for shape in world.shapes:
        assert {c.column_id for c in shown(world, "a", shape)} == {1, 2, 3, 4, 5, 6}


def test_an_instance_that_is_not_wanted_any_more_is_forgotten() -> None:
    history = loaded()
    world, source = history.world, history.world.source
    source.alter(random.Random(1), "a", "add")
    source.capture()
    world.killed_at = "make the instance"
    with pytest.raises(Killed):
        world.load()
    source.column("a", 4).dropped = source.position
    source.capture()
    assert world.load() == {}
    checkpoint = world.checkpoint("a")
    assert checkpoint is not None
    assert checkpoint.making is None
    assert [instance.name for instance in source.alive("a")] == ["dbo_a"]


def test_who_is_in_the_way_of_an_instance_is_told() -> None:
    history = loaded()
    world, source = history.world, history.world.source
    source.alter(random.Random(1), "a", "add")
    source.capture()
    world.locked = True
    plan = world.plan()
    assert world.finish(plan) == {}
    (told,) = plan.warnings
    assert "dbo_a__mc2 with c4 is not made yet, the next run tries" in told
    assert "Session 57 (login 'billing', host 'app01', program 'invoices') has locks of it" in told
    assert told.endswith("open for 0:01:15, last sent UPDATE.")


def test_a_column_comes_in_the_run_whose_copy_closes_a_gap() -> None:
    """A history takes new columns with what it commits next, be that events or a copy."""
    history = loaded()
    world, source = history.world, history.world.source
    source.alter(random.Random(1), "a", "add")
    source.capture()
    assert history.load({}) == {}
    history.change(8)
    source.capture()
    source.cleanup(1.0)
    source.drop_older("a")
    assert history.load({}, copy_on_gap=True) == {}
    for shape in world.shapes:
        assert {c.column_id for c in shown(world, "a", shape)} == {1, 2, 3, 4}
    history.end()


def test_a_gap_is_closed_by_the_instance_that_sinks_have_gone_over_to_though_their_checkpoint_is_behind() -> None:
    """The older one lacks a column that a history has by then."""
    history = loaded()
    world, source = history.world, history.world.source
    source.alter(random.Random(1), "a", "add")
    source.capture()
    assert history.load({}) == {}
    history.change(8)
    source.capture()
    world.pauses, world.killed_at = 1, "checkpoint"
    history.load({})
    assert history.was_killed
    history.change(8)
    source.capture()
    source.cleanup(1.0)
    assert history.load({}, copy_on_gap=True) == {}
    history.no_commit_was_wrong()
    history.end()


def test_a_sink_goes_over_to_a_newer_instance_once_that_reaches_back_to_it() -> None:
    """What was committed before the instance was made, and is captured after that, the older one alone has."""
    history = loaded()
    world, source = history.world, history.world.source
    source.alter(random.Random(1), "a", "add")
    history.change(6)
    assert history.load({}) == {}
    behind, (_, newer) = source.captured, source.alive("a")
    assert behind < newer.start - 1
    source.capture()
    for feed in ("dbo_a", "dbo_a__mc2"):
        assert history.load({}) == {}
        history.no_commit_was_wrong()
        markers = [world.targets["a", shape].marked[-1].marker for shape in world.shapes]
        assert {marker.feed.name for marker in markers if marker is not None} == {feed}
        while "a" not in source.commit(history.rng):
            pass
        source.capture()
    history.end()


@pytest.mark.parametrize("point", ["before a name", "after a name"])
def test_a_dropped_column_makes_way_for_another_of_its_name_wherever_a_run_is_killed(point: str) -> None:
    history = loaded()
    world, source = history.world, history.world.source
    for kind in ("drop", "again"):
        said = source.alter(random.Random(1), "a", kind)
        history.change(6)
        source.capture()
    assert said.startswith("ALTER TABLE dbo.a ADD note ")
    for _ in world.shapes:
        world.killed_at = point
        history.load({})
        history.no_commit_was_wrong()
        history.change(4)
        source.capture()
    assert history.was_killed
    history.end()
    for shape in world.shapes:
        names = {facts.column_id: facts.name for facts in shown(world, "a", shape)}
        assert names == {1: "id", 2: "value", 3: "note__dropped_3", 4: "note"}


@pytest.mark.parametrize("then", ["int", "bigint"])
@pytest.mark.parametrize("kept", [True, False], ids=["older instance there", "older instance dropped"])
@pytest.mark.parametrize("stop", ["paused", "killed", "not filled", "checkpoint lost"])
def test_what_a_type_has_altered_that_came_back_is_read_again_by_a_newer_instance(
    stop: str, kept: bool, then: str
) -> None:
    """The newer one knows nothing of statements of before it was made, and nothing was committed meanwhile."""
    history = loaded()
    world, source, rng = history.world, history.world.source, history.rng
    for type_ in ("char", "int", then) if then != "int" else ("char", then):
        source.alter(rng, "a", "alter", "note", to=type_, alone=True)
    source.alter(rng, "a", "add", alone=True)
    source.capture()
    if stop == "killed":
        world.killed_at = "in mid-copy"
        history.load({})
        assert history.was_killed
    elif stop == "not filled":
        # the checkpoint of a quiet table is old enough to be written
        world.said, source.clock = {"fill": NONE}, source.clock | 1
    elif stop == "checkpoint lost":
        # nobody knows then that it has come since, and it waits to be asked for
        world.variables.pop(world.identity("a").variable)
        history.unseen.add("a")
        source.enable("a")
    world.pauses = 1
    assert history.load({}) == {}
    world.pauses, world.said = 0, {}
    markers = [world.targets["a", shape].marked[-1].marker for shape in world.shapes]
    assert {(marker.feed.name, marker.unfilled) for marker in markers if marker is not None} == {("dbo_a", ())}
    if not kept:
        source.drop_older("a")
    # another table's, with which the newer one begins to be readable
    source.alter(rng, "b", "drop", alone=True)
    source.capture()
    # a copy that is under way by the older one comes to its end first
    for _ in range(1 + (kept and stop in ("paused", "killed"))):
        assert history.load({}) == {}
    history.no_commit_was_wrong()
    read = source.alive("a")[-1].name
    markers = [world.targets["a", shape].marked[-1].marker for shape in world.shapes]
    assert {(marker.feed.name, marker.unfilled) for marker in markers if marker is not None} == {(read, ())}
    history.end()


def test_what_a_type_has_altered_that_came_back_before_the_job_began_is_read_again() -> None:
    """The columns are those of the plan again, which knows none of the statements."""
    history = loaded()
    world, source, rng = history.world, history.world.source, history.rng
    history.change(4)
    source.capture()
    plan = world.plan()
    for type_ in ("char", "int"):
        source.alter(rng, "a", "alter", "note", to=type_)
    source.capture()
    assert plan.specs
    failed = world.finish(plan)
    assert failed == {"dbo.a": ("dbo.a: was altered since the run was planned.", False)}
    assert history.load({}) == {}
    history.no_commit_was_wrong()
    history.end()


def test_a_column_that_comes_during_a_fill_is_filled_behind_it() -> None:
    """By an instance and a copy of its own."""
    history = loaded()
    world, source, rng = history.world, history.world.source, history.rng
    source.alter(rng, "a", "add")
    source.enable("a")
    for world.pauses in (0, 1):
        history.change(4)
        source.capture()
        assert history.load({}) == {}
    assert [folder.parts for folder in world.folders.values()] == [1]
    source.drop_older("a")
    source.alter(rng, "a", "add")
    source.enable("a")
    for _ in range(2):
        # the second one could read the newest instance, and reads the last part of three
        world.pauses = 1
        history.change(4)
        source.capture()
        assert history.load({}) == {}
    history.no_commit_was_wrong()
    assert {(shape, name) for shape in world.shapes for name in history.lacks("a", shape)} == {
        (shape, "c5") for shape in world.shapes
    }
    history.end()


def test_a_name_that_came_again_and_went_before_the_checkpoint_knew_of_it() -> None:
    """The next run is planned by the older instance, whose change table has the name with the values of before."""
    history = loaded()
    world, source, rng = history.world, history.world.source, history.rng
    source.alter(rng, "a", "drop", "note", alone=True)
    assert "ADD note" in source.alter(rng, "a", "again", alone=True)
    for _ in range(2):
        history.change(4)
        source.capture()
        kept = world.variables[world.identity("a").variable]
        assert history.load({}) == {}
    names = {facts.column_id: facts.name for facts in shown(world, "a", "mirror")}
    assert names == {1: "id", 2: "value", 3: "note__dropped_3", 4: "note"}
    # a kill between the commit and the checkpoint
    world.variables[world.identity("a").variable] = kept
    source.alter(rng, "a", "drop", "note", alone=True)
    history.change(4)
    source.capture()
    assert history.load({}) == {}
    history.end()


def test_a_column_gets_another_type_and_is_dropped_between_two_runs() -> None:
    """Its change table has the later type; what was loaded stays, and there is nothing to read again."""
    history = loaded()
    source = history.world.source
    assert source.alter(random.Random(1), "a", "alter") == "ALTER TABLE dbo.a ALTER COLUMN note bigint"
    history.change(4)
    assert source.alter(random.Random(1), "a", "drop") == "ALTER TABLE dbo.a DROP COLUMN note"
    history.change(4)
    source.capture()
    assert history.load({}) == {}
    assert [c.type for c in shown(history.world, "a", "mirror")] == ["int", "int", "bigint"]
    history.end()


def test_a_column_that_sinks_lack_yet_gets_another_type_and_is_dropped_between_two_runs() -> None:
    """What is not loaded is nothing to a sink, though its change table has it."""
    history = loaded()
    world, source = history.world, history.world.source
    source.alter(random.Random(1), "a", "add")
    source.capture()
    for _ in range(2):
        history.change(8)
        source.capture()
        world.pauses = 1
        assert history.load({}) == {}
    assert [c.name for c in shown(world, "a", "mirror")] == ["id", "value", "note"]
    for kind in ("alter", "drop"):
        assert "COLUMN c4" in source.alter(random.Random(1), "a", kind, "c4")
        history.change(4)
    source.capture()
    assert history.load({}) == {}
    history.no_commit_was_wrong()
    history.end()


def test_a_column_is_dropped_that_one_sink_has_and_others_are_not_filled_with_any_more() -> None:
    history = loaded()
    world, source = history.world, history.world.source
    source.alter(random.Random(1), "a", "add")
    source.capture()
    for _ in range(2):
        history.change(8)
        source.capture()
        world.pauses = 1
        assert history.load({}) == {}
    assert source.alter(random.Random(1), "a", "drop", "c4").endswith("DROP COLUMN c4")
    history.change(4)
    source.capture()
    world.said = {"fill": NONE}
    assert history.load({}) == {}
    history.no_commit_was_wrong()
    history.end()


def test_an_instance_that_is_dropped_while_a_run_is_planned_is_not_told_as_a_restore() -> None:
    history = loaded()
    world, source = history.world, history.world.source
    source.enable("a")
    history.change(4)
    source.capture()
    assert history.load({}) == {}
    world.faults = {next(world.points) + 2: partial(source.drop_older, "a")}
    history.change(4)
    source.capture()
    reason, permanent = world.load()["dbo.a"]
    assert world.faults == {}
    assert ("capture instance dbo_a vanished while the run was planned" in reason, permanent) == (True, False)
    history.end()


def test_what_a_killed_first_load_has_made_is_said_to_be_empty_when_the_columns_are_others() -> None:
    history = History(1)
    history.change(5)
    history.world.source.capture()
    history.world.killed_at = "before the commit"
    assert history.load({}) == {}
    assert history.was_killed
    assert history.world.targets["a", "mirror"].exists
    assert history.world.source.alter(random.Random(1), "a", "drop").endswith("DROP COLUMN note")
    history.change(5)
    history.world.source.capture()
    ((name, (reason, permanent)),) = history.load({}).items()
    assert (name, permanent) == ("dbo.a", True)
    assert "It is empty, and was never loaded: drop it" in reason
    history.end()


def loaded() -> History:
    """A history whose tables are loaded."""
    history = History(1)
    history.change(12)
    history.world.source.capture()
    assert history.load({}) == {}
    return history


def shown(world: EvolvingWorld, table: str, shape: str) -> list[ColumnFacts]:
    """The columns that a target has."""
    target = world.targets[table, shape]
    assert isinstance(target, EvolvingTarget)
    marker = target.marked[-1].marker
    assert marker is not None
    return [*target.kept[marker.schema_hash].columns]
