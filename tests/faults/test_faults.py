"""Random histories with random faults: whatever strikes, no commit says of a target what is not so.

Hypothesis prints a failing history as a script of steps that repeats it.
``MSSQL_CDC_TEST_HISTORIES=10000 pytest tests/faults`` runs more of them, others each time; without it, they are always
the same ones.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import partial

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint
from airflow_provider_mssql_cdc.core.exceptions import MsSqlCdcError
from airflow_provider_mssql_cdc.core.table import TableName
from tests.faults.world import SHAPES, TABLES, Killed, TargetTable, World, number

HISTORIES = int(os.environ.get("MSSQL_CDC_TEST_HISTORIES", "1000"))
MORE = "MSSQL_CDC_TEST_HISTORIES" in os.environ

# a failing history is short enough without minutes of making it shorter
PHASES = list(Phase) if MORE else [phase for phase in Phase if phase is not Phase.shrink]

seeds = st.integers(0, 2**16)
parts = st.floats(0, 1)
tables, shapes = st.sampled_from(TABLES), st.sampled_from(SHAPES)
FAULTS = ("kill", "load beside it", "changes", "cleanup", "compaction")
faults = st.dictionaries(st.integers(0, 25), st.tuples(st.sampled_from(FAULTS), seeds), max_size=3)


class Histories(RuleBasedStateMachine):
    """A source that changes, loads that are struck by faults, and people who interfere."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.purged = self.restored = False
        self.copies: list[dict[str, str]] = []

    @rule(seed=seeds, count=st.integers(1, 4), captured=st.booleans())
    def change(self, seed: int, count: int, captured: bool) -> None:
        """Commit some transactions."""
        rng = random.Random(seed)
        for _ in range(count):
            self.world.source.commit(rng)
        if captured:
            self.world.source.capture()

    @rule(part=parts)
    def purge(self, part: float) -> None:
        """Let the cleanup job run."""
        # it would remove the witness, without which a restore that leaves the fork as it is cannot be told
        if self.restored and self.world.source.fork is None:
            return
        self.purged = True
        self.world.source.cleanup(part)

    @rule(seed=seeds, count=st.integers(1, 3))
    def change_and_load(self, seed: int, count: int) -> None:
        """Commit some transactions, and load them without faults."""
        self.change.__wrapped__(self, seed, count, True)  # type: ignore[attr-defined]
        self.load.__wrapped__(self, {}, False, None)  # type: ignore[attr-defined]

    @rule(seed=seeds, struck=faults, resnapshot=st.booleans())
    def change_and_load_with_faults(self, seed: int, struck: dict[int, tuple[str, int]], resnapshot: bool) -> None:
        """Commit some transactions, and load them with faults on the way."""
        self.change.__wrapped__(self, seed, 2, True)  # type: ignore[attr-defined]
        self.load.__wrapped__(self, struck, resnapshot, None)  # type: ignore[attr-defined]

    @rule(struck=faults, resnapshot=st.booleans(), limit=st.none() | st.integers(1, 3))
    def load(self, struck: dict[int, tuple[str, int]], resnapshot: bool, limit: int | None) -> None:
        """Load, with faults at some of its points."""
        self.copies.append(dict(self.world.variables))
        start = next(self.world.points) + 1
        self.world.faults = {start + at: self._fault(kind, seed) for at, (kind, seed) in struck.items()}
        try:
            failed = self.world.load(resnapshot=resnapshot, max_transactions=limit)
        except Killed:
            return
        except MsSqlCdcError:
            assert self.restored
            return
        finally:
            self.world.faults = {}
        self._justified(failed, resnapshot=resnapshot)

    def _justified(self, failed: dict[str, tuple[str, bool]], *, resnapshot: bool) -> None:
        for reason, _ in failed.values():
            assert (
                (self.restored)
                or ("purged" in reason and self.purged)
                or ("just enabled" in reason)
                or ("its properties remember" in reason)
                or ("missing or empty, although it was loaded" in reason)
                or ("changed 6 times" in reason or "was emptied" in reason)
            ), reason

    def _fault(self, kind: str, seed: int) -> Callable[[], None]:
        rng = random.Random(seed)
        table, shape = rng.choice(TABLES), rng.choice(SHAPES)
        if kind == "kill":
            return _kill
        if kind == "load beside it":
            return partial(self._load_beside, resnapshot=rng.random() < 0.3)
        if kind == "changes":
            return partial(self.change.__wrapped__, self, seed, 2, True)  # type: ignore[attr-defined]
        if kind == "cleanup":
            return partial(self.purge.__wrapped__, self, rng.random())  # type: ignore[attr-defined]
        return self.world.targets[table, shape].compact

    def _load_beside(self, *, resnapshot: bool) -> None:
        try:
            self._justified(self.world.load(resnapshot=resnapshot), resnapshot=resnapshot)
        except MsSqlCdcError:
            assert self.restored

    @rule(table=tables)
    def lose_the_checkpoint(self, table: str) -> None:
        """Delete a checkpoint's Variable."""
        self.world.store.delete(self.world.request.identity("db", TableName("dbo", table)))

    @precondition(lambda self: self.copies)
    @rule(which=parts)
    def put_back_old_checkpoints(self, which: float) -> None:
        """Restore Airflow's database from a copy."""
        old = self.copies[int(which * (len(self.copies) - 1))]
        self.world.variables.clear()
        self.world.variables.update(old)

    @rule(table=tables, shape=shapes, steps=st.integers(1, 3))
    def roll_the_target_back(self, table: str, shape: str, steps: int) -> None:
        """Go back to an earlier commit of a target."""
        self.world.targets[table, shape].roll_back(steps)

    @rule(table=tables, shape=shapes)
    def let_commits_expire(self, table: str, shape: str) -> None:
        """Leave the last marker to the table's properties."""
        self.world.targets[table, shape].forget()

    @rule(part=parts, fork=st.booleans())
    def restore_the_database(self, part: float, fork: bool) -> None:
        """Go back to an earlier moment of the source."""
        self.restored = True
        self.world.source.restore(part, fork=fork)

    @precondition(lambda self: self.restored)
    @rule()
    def reset(self) -> None:
        """Drop all targets and checkpoints, as is said after a restore."""
        self.world.targets.update({place: TargetTable(self.world, *place) for place in self.world.targets})
        self.world.variables.clear()
        self.copies.clear()
        self.restored = False

    @invariant()
    def no_commit_was_wrong(self) -> None:
        """Each commit was compared with the source when it was made."""
        for error in self.world.wrong:
            raise error

    def teardown(self) -> None:
        """Whatever has been, a last load without faults brings all targets to the cut, or says why not."""
        self.world.faults = {}
        # a target that was rolled back is looked at when there is something to load
        for seed in range(20):
            self.world.source.commit(random.Random(seed))
        self.world.source.capture()
        if self.restored:
            return
        failed = self.world.load(resnapshot=True)
        self.no_commit_was_wrong()
        self._justified(failed, resnapshot=True)
        for (table, shape), target in self.world.targets.items():
            if f"dbo.{table}" not in failed and target.line:
                stored = self.world.store.load(self.world.request.identity("db", TableName("dbo", table)))
                assert isinstance(stored, Checkpoint)
                if shape == "mirror":
                    truth = self.world.source.rows[table]
                    assert {e[3]: e[4] for e in target.rows_now} == truth
                assert number(stored.sinks[shape].applied) <= self.world.source.captured


def _kill() -> None:
    raise Killed


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=HISTORIES,
    stateful_step_count=20,
    deadline=None,
    phases=PHASES,
    derandomize=not MORE,
    suppress_health_check=list(HealthCheck),
)
