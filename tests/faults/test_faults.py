"""Random histories with random faults: whatever strikes, no commit says of a target what is not so.

Hypothesis prints a failing history as a script of steps that repeats it.
``MSSQL_CDC_TEST_HISTORIES=10000 pytest tests/faults`` runs more of them, others each time; without it, they are always
the same ones.
"""

from __future__ import annotations

import datetime
import itertools
import os
import random
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from airflow_provider_mssql_cdc.core.exceptions import IntervalError, SourceRestoredError
from tests.support.faults.source import TABLES, events_of, number
from tests.support.faults.targets import SALTS, TargetTable, check
from tests.support.faults.world import CHOICES, SHAPES, Broken, Failures, Killed, World

HISTORIES = int(os.environ.get("MSSQL_CDC_TEST_HISTORIES", "400"))
MORE = "MSSQL_CDC_TEST_HISTORIES" in os.environ

pytestmark = [pytest.mark.timeout(7200)] if MORE else []

# a failing history is short enough without minutes of making it shorter
PHASES = list(Phase) if MORE else [phase for phase in Phase if phase is not Phase.shrink]

seeds = st.integers(0, 2**16)
parts = st.floats(0, 1)
MEDDLING = (
    "changes", "cleanup", "compaction", "expiry", "late expiry", "roll back", "restore", "lost checkpoint",
    "old checkpoints", "other instances", "other salt", "broken target", "put right",
)  # fmt: skip
FAULTS = ("kill", "kill", "load beside", "load beside", "load beside", "replay beside", "broken", *MEDDLING)
some_faults = st.dictionaries(st.integers(0, 25), st.tuples(st.sampled_from(FAULTS), seeds), min_size=1, max_size=4)
faults = st.just({}) | some_faults
DEADLOCK = (
    "com.microsoft.sqlserver.jdbc.SQLServerException: Transaction (Process ID 57) was deadlocked on lock resources "
    "with another process and has been chosen as the deadlock victim. Rerun the transaction."
)


class Histories(RuleBasedStateMachine):
    """A source that changes, loads that are struck by faults, and people who interfere."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.purged = self.expired = self.salted = False
        self.replaced: set[str] = set()
        self.broken: set[str] = set()
        self.widened: set[str] = set()
        self.copies: list[dict[str, str]] = []

    @initialize(fork=st.none() | st.just("fork"))
    def sees_the_recovery_fork(self, fork: str | None) -> None:
        """Let the login see what a restore changes, or not."""
        self.world.source.fork = fork

    # --- the source

    @rule(seed=seeds, count=st.integers(1, 4), captured=st.booleans())
    def change(self, seed: int, count: int, captured: bool) -> None:
        """Commit some transactions."""
        self._change(seed, count, captured)

    def _change(self, seed: int, count: int, captured: bool = True) -> None:
        rng = random.Random(seed)
        for _ in range(count):
            self.world.source.commit(rng)
        if captured:
            self.world.source.capture()

    def _is_restored(self, table: str) -> bool:
        """Whether the database was restored since the table's targets were made."""
        return len(self.world.source.before) > self.world.begun[table]

    # --- what is loaded

    @rule(
        listed=st.sampled_from((["a"], ["b"], ["a", "b"], ["a", "b"])),
        asked=st.sampled_from((SHAPES[:2], SHAPES[1:], SHAPES)),
        load=st.booleans(),
    )
    def ask_for_other_tables_and_shapes(self, listed: list[str], asked: tuple[str, ...], load: bool) -> None:
        """Add or remove a table or a shape."""
        self.world.listed, self.world.shapes = listed, list(asked)
        if load:
            self._load({})

    @rule(table=st.sampled_from(TABLES), choice=st.sampled_from(CHOICES), salt=st.sampled_from(SALTS))
    def choose_other_rows(self, table: str, choice: str, salt: str) -> None:
        """Filter, hash, or take all."""
        self.world.choices[table], self.world.salt = choice, salt

    # --- runs

    @rule(seed=seeds, count=st.integers(1, 3), asked=st.booleans())
    def change_and_load(self, seed: int, count: int, asked: bool) -> None:
        """Commit some transactions, and load them without faults."""
        self._change(seed, count)
        self._load({}, asked=asked)

    @rule(seed=seeds, struck=some_faults, copy_on_gap=st.booleans())
    def change_and_load_with_faults(self, seed: int, struck: dict[int, tuple[str, int]], copy_on_gap: bool) -> None:
        """Commit some transactions, and load them with faults on the way."""
        self._change(seed, 2)
        self._load(struck, copy_on_gap=copy_on_gap)

    @rule(struck=faults, copy_on_gap=st.booleans(), limit=st.none() | st.integers(1, 3), cut=st.none() | parts)
    def load(self, struck: dict[int, tuple[str, int]], copy_on_gap: bool, limit: int | None, cut: float | None) -> None:
        """Load, with faults at some of its points, a part of what there is, or up to a cut of before."""
        mapped = self.world.source.mapped()
        upto = None if cut is None or not mapped else mapped[int(cut * (len(mapped) - 1))]
        self._load(struck, copy_on_gap=copy_on_gap, limit=limit, upto=upto)

    @rule(struck=faults, first=parts, last=parts, rebuild=st.booleans())
    def replay(self, struck: dict[int, tuple[str, int]], first: float, last: float, rebuild: bool) -> None:
        """Write an interval into the histories once more, or into new tables, with faults on the way."""
        self._strike(struck, partial(self._replay, first, last, "_again" if rebuild else ""))

    def _load(self, struck: dict[int, tuple[str, int]], **options: int | bool | None) -> None:
        # an asserted position is no longer true when it is put back later
        if not any(self._has_word(table) for table in TABLES):
            self.copies.append(dict(self.world.variables))
        self._strike(struck, lambda: self._justified(self.world.load(**options)))  # type: ignore[arg-type]

    def _strike(self, struck: dict[int, tuple[str, int]], run: Callable[[], None]) -> None:
        self.world.struck.clear()
        self.world.here = None
        start = next(self.world.points) + 1
        self.world.faults = {start + at: partial(self._fault, kind, seed) for at, (kind, seed) in struck.items()}
        try:
            run()
        except (Killed, Broken):
            return
        finally:
            self.world.faults = {}

    def _replay(self, first: float, last: float, suffix: str) -> None:
        times = [time for time, _ in self.world.source.commits.values()]
        if not times:
            return
        start, end = sorted(times[int(part * (len(times) - 1))] for part in (first, last))
        end += datetime.timedelta(seconds=1)
        self.world.rebuilt.clear()
        try:
            failed = self.world.replay(start, end, suffix)
        except IntervalError:
            # the interval was purged, or is not captured yet
            return
        except SourceRestoredError:
            assert "restore" in self.world.struck
            return
        self._justified(failed, replayed=True)
        if self.world.struck.isdisjoint({"restore", "roll back"}):
            histories = [self.world.targets[name.removeprefix("dbo."), "history"] for name in self.world.replayed]
            for target in self.world.rebuilt if suffix else histories:
                self._check_replayed(target, start, end, whole=bool(suffix))

    def _check_replayed(
        self, target: TargetTable, start: datetime.datetime, end: datetime.datetime, *, whole: bool
    ) -> None:
        """Prove that a history holds an interval, and a table that a replay has built nothing else."""
        source, few = self.world.source, self.world.choices[target.table] == "few"
        within = [p for p, (time, _) in source.commits.items() if start <= time < end]
        events = events_of(source.commits, target.table, within[0] - 1, within[-1])
        wanted = {e[:4] for e in events if e[3] < 3 or not few}
        rows = [e[:4] for e in target.rows_now]
        assert wanted <= set(rows)
        assert not whole or len(rows) == len(wanted)

    # --- faults

    @rule(kind=st.sampled_from((*MEDDLING, "mend")), seed=seeds)
    def meddle(self, kind: str, seed: int) -> None:
        """Let happen between two runs what else strikes them, or let a person mend what it did."""
        self.world.here = None
        self._fault(kind, seed)

    def _fault(self, kind: str, seed: int) -> None:
        rng, world = random.Random(seed), self.world
        target = world.targets[rng.choice(TABLES), rng.choice(world.shapes)]
        if world.here is not None and rng.random() < 0.7:
            target = world.here
        world.struck.add(kind)
        strike: dict[str, Callable[[], object]] = {
            "kill": partial(_fail, Killed()),
            "broken": partial(_fail, Broken(DEADLOCK)),
            "load beside": lambda: self._justified(world.load(copy_on_gap=rng.random() < 0.3)),
            "replay beside": lambda: self._replay(rng.random(), rng.random(), ""),
            "changes": lambda: self._change(seed, 2),
            "cleanup": lambda: self._clean_up(rng.random()),
            "compaction": target.compact,
            "expiry": lambda: self._expire(target, late=False),
            "late expiry": lambda: self._expire(target, late=True),
            "roll back": lambda: self._roll_back(target, rng.randint(1, 3)),
            "restore": lambda: self._restore(rng.random()),
            "lost checkpoint": lambda: self._lose_the_checkpoint(target.table),
            "old checkpoints": lambda: self._put_back_old_checkpoints(rng.random()),
            "other instances": lambda: self._change_instances(target.table, rng.randrange(3), wide=rng.random() < 0.3),
            "broken target": lambda: self._break(target),
            "put right": lambda: setattr(target, "broken", False),
            "other salt": lambda: setattr(world, "salt", rng.choice(SALTS)),
            "mend": lambda: self._mend(asserted=rng.random() < 0.5),
        }
        strike[kind]()

    def _break(self, target: TargetTable) -> None:
        target.broken = True
        self.broken.add(target.table)

    def _clean_up(self, part: float) -> None:
        # it would remove the witness, without which a restore that shows no fork cannot be told
        if self.world.source.fork is not None or not any(map(self._is_restored, TABLES)):
            self.purged = True
            self.world.source.cleanup(part)

    def _restore(self, part: float) -> None:
        """Go back to an earlier moment of the source, which closes all connections."""
        self.world.source.restore(part)
        if self.world.here is not None and self.world.point in ("in mid-read", "in mid-copy"):
            raise Broken("com.microsoft.sqlserver.jdbc.SQLServerException: Connection reset")

    def _change_instances(self, table: str, what: int, *, wide: bool) -> None:
        """Enable a second capture instance, drop the older of two, or drop all and enable one anew.

        :param wide: with one more column
        """
        source = self.world.source
        self.replaced.add(table)
        self.widened |= {table} if wide else set()
        if what == 0:
            source.enable(table, wide=wide)
        elif what == 1:
            source.drop_older(table)
        else:
            source.enable_anew(table, wide=wide)

    def _expire(self, target: TargetTable, *, late: bool) -> None:
        """Leave the last marker to properties, or, where a job was killed before it could write it, an older one."""
        self.expired = True
        checkpoint = self.world.checkpoint(target.table)
        state = checkpoint.sinks.get(target.shape) if checkpoint else None
        # nothing else tells then how far the target is
        loaded = state is not None and state.is_loaded
        known = loaded and any(k.marker and k.marker.position <= state.applied for k in target.marked[-1:])
        target.expire(late=late and known)

    def _roll_back(self, target: TargetTable, steps: int) -> None:
        # else an asserted position is no longer true
        if not self._has_word(target.table):
            target.roll_back(steps)

    def _lose_the_checkpoint(self, table: str) -> None:
        if not self._has_forgotten(table):
            self.world.variables.pop(self.world.identity(table).variable, None)

    def _put_back_old_checkpoints(self, which: float) -> None:
        if self.copies and not any(map(self._has_forgotten, TABLES)):
            old = self.copies[int(which * (len(self.copies) - 1))]
            self.world.variables.clear()
            self.world.variables.update(old)

    def _is_of_other_rows(self, table: str) -> bool:
        """Whether a table was loaded of other rows than a run wants that ends now."""
        return "other salt" in self.world.struck or bool(self.world.loaded_as[table] - {self.world.choice(table)})

    def _has_word(self, table: str) -> bool:
        """Whether an asserted position of the table's targets is still to be loaded on."""
        checkpoint = self.world.checkpoint(table)
        return checkpoint is not None and any(sink.asserted for sink in checkpoint.sinks.values())

    def _has_forgotten(self, table: str) -> bool:
        """Whether the checkpoint alone, or an asserted position in it, tells how far a target is."""
        targets = [self.world.targets[table, shape] for shape in SHAPES]
        return self._has_word(table) or any(target.has_forgotten for target in targets)

    # --- what a person does

    def _mend(self, *, asserted: bool) -> None:
        """Do what the errors advise, until nothing fails any more."""
        self.world.struck.clear()
        for attempt in itertools.count():
            # a table that nothing happened to is not looked at
            touched: set[str] = set()
            while touched != set(TABLES):
                touched |= self.world.source.commit(random.Random(self.world.source.position))
            self.world.source.capture()
            for target in self.world.targets.values():
                target.broken = False
            failed = self.world.load(copy_on_gap=True, asked=True)
            self._justified(failed)
            if not failed:
                return
            assert attempt < 3, failed
            for name, (reason, permanent) in failed.items():
                assert permanent, reason
                self._heal(name.removeprefix("dbo."), reason, asserted=asserted and attempt == 0)

    def _heal(self, table: str, reason: str, *, asserted: bool) -> None:
        forgotten = "its properties remember" in reason or "holds events up to" in reason
        # for other columns, or other rows, nobody may speak
        others = table in self.widened or self._is_of_other_rows(table)
        if asserted and forgotten and not self._is_restored(table) and not others:
            self.world.vouch(table)
            self.copies.clear()
            return
        self.world.drop(table)
        for copy in self.copies:
            copy.pop(self.world.identity(table).variable, None)

    # --- what must be so

    def _justified(self, failed: Failures, *, replayed: bool = False) -> None:
        """Accept an error only where something has happened that leads to it."""
        struck = self.world.struck
        # a sink that rests tells what it once failed with
        self.salted |= "other salt" in struck
        for name, (reason, _) in failed.items():
            table = name.removeprefix("dbo.")
            moved = struck & {"other instances", "restore"}
            assert (
                ("were purged before" in reason and (self.purged or table in self.replaced))
                or ("are not in capture instance" in reason and table in self.replaced)
                or ("restored" in reason and self._is_restored(table))
                or ("its properties remember" in reason and self.expired)
                or ("captured columns" in reason and table in self.widened)
                or ("lacks columns" in reason and table in self.broken)
                or ("is loaded of its rows" in reason and self._is_of_other_rows(table))
                or ("salt of its hashes" in reason and self.salted)
                or ("deadlock victim" in reason and "broken" in struck)
                or ("Connection reset" in reason and "restore" in struck)
                or ("the server shows changes up to" in reason and "restore" in struck)
                or ("since the run was planned" in reason and moved)
                or ("while the run was planned" in reason and moved)
                or ("which this run has not read as a whole" in reason and struck & {"roll back", "restore"})
                or ("just enabled" in reason)
                or (replayed and ("is loaded up to" in reason or "no load has gone on" in reason))
            ), reason

    @invariant()
    def no_commit_was_wrong(self) -> None:
        """Each commit was compared with the source when it was made."""
        for error in self.world.wrong:
            raise error

    def teardown(self) -> None:
        """Whatever has been, people and a last load without faults bring all targets to the cut."""
        self.world.faults = {}
        self.world.listed = list(TABLES)
        self._mend(asserted=True)
        self.no_commit_was_wrong()
        for table, shape in itertools.product(TABLES, self.world.shapes):
            target, checkpoint = self.world.targets[table, shape], self.world.checkpoint(table)
            assert checkpoint is not None
            assert number(checkpoint.sinks[shape].read_through) == self.world.source.captured
            assert checkpoint.sinks[shape].applied == target.marked[-1].marker.position
            check(target, self.world.source.commits, whole=True)


def _fail(error: BaseException) -> None:
    raise error


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=HISTORIES,
    stateful_step_count=20,
    deadline=None,
    phases=PHASES,
    derandomize=not MORE,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
