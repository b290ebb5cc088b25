"""The real planner, job, markers and checkpoints between a source and targets in plain Python.

Rows are folded by this model; that Spark folds them alike is shown where Spark runs. Whatever is done here comes to
``World.at`` on its way, where faults strike.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, TypeVar, cast
from unittest import mock

from airflow_provider_mssql_cdc.cli import checkpoint as cli
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Identity
from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.codec import from_json, to_json
from airflow_provider_mssql_cdc.core.position import Cut
from airflow_provider_mssql_cdc.core.receipt import Receipt
from airflow_provider_mssql_cdc.core.selection import salt_check
from airflow_provider_mssql_cdc.core.spec import JobSpec, SourceSpec
from airflow_provider_mssql_cdc.core.table_options import TableOptions, read_entries
from airflow_provider_mssql_cdc.core.target import Target
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.outcome import Outcome
from airflow_provider_mssql_cdc.operators.planning import plan_load
from airflow_provider_mssql_cdc.operators.replay import plan_replay
from airflow_provider_mssql_cdc.operators.request import Request
from airflow_provider_mssql_cdc.spark import job
from airflow_provider_mssql_cdc.spark.jdbc import Credentials
from tests.support.core.variables import Variables
from tests.support.faults.parts import WorldParts
from tests.support.faults.source import TABLES, Hook, Source, lsn, name_of
from tests.support.faults.targets import SALTS, TargetTable, check

SHAPES = ("mirror", "history", "scd2")
CHOICES = ("all", "few", "hashed")
TARGET = Target.parse("iceberg://lake/x")

T = TypeVar("T")

Failures = dict[str, tuple[str, bool]]
"""By table: the reason, and whether it is permanent."""


class Killed(BaseException):
    """The process is gone."""


class Broken(Exception):
    """A connection is gone, or a statement was a deadlock's victim; as the JDBC driver says it."""


class World:
    """All of it, with the Airflow Variables that hold the checkpoints.

    :ivar into: where its targets are
    :ivar point: where a load is
    :ivar here: the target that it last looked at or is about to change
    :ivar struck: the faults that have struck since the last load began
    :ivar replayed: the tables of the last replay that did not fail
    :ivar rebuilt: the targets that it has built
    :ivar loaded_as: by table, what was chosen in the loads since its targets were made
    :ivar copy_error: why no table can be copied; None where each can
    :ivar begun: by table, the number of restores before its targets were made
    """

    def __init__(self) -> None:
        self.into = TARGET
        self.source = self.new_source()
        self.variables = Variables()
        self.store = CheckpointStore(self.variables)
        self.targets: dict[tuple[str, str], TargetTable] = {}
        self.listed, self.shapes = list(TABLES), list(SHAPES[:2])
        self.choices, self.salt = dict.fromkeys(TABLES, "all"), SALTS[0]
        self.loaded_as: dict[str, set[str]] = {}
        self.begun: dict[str, int] = {}
        self.copy_error: Exception | None = None
        self.faults: dict[int, Callable[[], None]] = {}
        self.wrong: list[AssertionError] = []
        self.points = itertools.count()
        self.point = ""
        self.struck: set[str] = set()
        self.here: TargetTable | None = None
        self.replayed: list[str] = []
        self.rebuilt: list[TargetTable] = []
        self._ids = itertools.count(1)
        self._receipts: dict[str, str] = {}
        self._running: list[int] = []
        for table in TABLES:
            self.drop(table)

    def new_source(self) -> Source:
        """The database, as it begins."""
        return Source()

    def hook(self) -> Hook:
        """What the planner asks the source."""
        return Hook(self)

    def parts(self, spec: JobSpec) -> WorldParts:
        """What a job puts its loads together from."""
        return WorldParts(self, spec)

    def new_target(self, name: Sequence[str], table: str, shape: str) -> TargetTable:
        """A target that nothing was loaded into."""
        return TargetTable(self, name, table, shape)

    def drop(self, table: str) -> None:
        """Drop a table's targets and its checkpoint."""
        for shape in SHAPES:
            name = self.into.table("{schema}_{table}", name_of(table), shape)
            self.targets[table, shape] = self.new_target(name, table, shape)
        self.variables.pop(self.identity(table).variable, None)
        self.loaded_as[table], self.begun[table] = set(), len(self.source.before)

    def identity(self, table: str) -> Identity:
        """What names the table's checkpoint."""
        return Identity("db", "db", name_of(table), self.into.address)

    def checkpoint(self, table: str) -> Checkpoint | None:
        """The table's checkpoint."""
        return self.store.load(self.identity(table))

    def vouch(self, table: str) -> None:
        """Say by ``mssql-cdc checkpoint set`` what each of the table's targets stands for."""
        for shape in SHAPES:
            if marked := self.targets[table, shape].marked:
                assert marked[-1].marker is not None
                said = argparse.Namespace(position=str(marked[-1].marker.position), shape=shape)
                cli._ACTIONS["set"](self.store, self.identity(table), said)

    def choice(self, table: str) -> str:
        """What is chosen of the table's rows now."""
        return self.salt if self.choices[table] == "hashed" else self.choices[table]

    def at(self, point: str) -> None:
        """Come to a point of a load, where a fault may strike."""
        self.point, fault = point, self.faults.pop(next(self.points), None)
        if fault is not None:
            fault()

    def request(
        self, shapes: Sequence[str], *, copy_on_gap: bool = False, limit: int | None = None, asked: bool = False
    ) -> Request:
        """What the DAG author asks for."""
        said = {"few": {"where": [("id", "<", 3)]}, "hashed": {"mask": {"value": "hash"}}}
        entries = [{"table": f"dbo.{table}", **said.get(self.choices[table], {})} for table in self.listed]
        return Request(
            connection="db",
            entries=read_entries(entries or "dbo.*", salted=True),
            exclude=(),
            defaults=TableOptions(self.into, tuple(shapes), on_gap=("copy",) if copy_on_gap else ("fail",)),
            max_transactions=limit,
            salt_check=salt_check(self.salt),
            asked=asked,
        )

    def plan(
        self, *, copy_on_gap: bool = False, limit: int | None = None, upto: int | None = None, asked: bool = False
    ) -> RunPlan:
        """What a load would do."""
        request = self.request(self.shapes, copy_on_gap=copy_on_gap, limit=limit, asked=asked)
        return plan_load(self.hook(), self.store, request, None if upto is None else Cut.at(lsn(upto)))  # type: ignore[arg-type]

    def load(
        self,
        *,
        copy_on_gap: bool = False,
        limit: int | None = None,
        upto: int | None = None,
        asked: bool = False,
    ) -> Failures:
        """Plan, run the job, move the checkpoints; what failed.

        :param asked: what failed for good is tried, too
        """
        # before another salt may come
        chosen = {table: self.choice(table) for table in TABLES}
        with self._history():
            plan = self.plan(copy_on_gap=copy_on_gap, limit=limit, upto=upto, asked=asked)
            for table in plan.specs:
                self.loaded_as[table.name.table].add(chosen[table.name.table])
            outcome = self.outcome(plan)
            # every other time the checkpoints are so old that those of quiet tables are written too
            now = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=self.source.clock % 2)
            for written in outcome.checkpoints(now):
                self.at("checkpoint")
                self.store.save(written, plan.checkpoints.get(written.identity.table))
        return outcome.failures()

    def replay(self, start: datetime.datetime, end: datetime.datetime, suffix: str = "") -> Failures:
        """Write an interval into the histories once more."""
        interval = start.replace(tzinfo=datetime.UTC), end.replace(tzinfo=datetime.UTC)
        with self._history():
            plan = plan_replay(self.hook(), self.store, self.request(["history"]), interval, None, suffix)  # type: ignore[arg-type]
            outcome = self.outcome(plan)
        self.replayed = [str(spec.name) for spec in plan.specs if str(spec.name) not in outcome.failures()]
        return outcome.failures()

    @contextmanager
    def _history(self) -> Iterator[None]:
        """Remember which commits a run may have read, though the database is restored before it has ended."""
        self._running.append(len(self.source.before))
        try:
            yield
        finally:
            self._running.pop()

    def outcome(self, plan: RunPlan) -> Outcome:
        """What comes of a plan."""
        if not plan.specs:
            return Outcome(plan)
        assert plan.upto is not None
        where = SourceSpec("server", "db", "jdbc", {}, "UTC")
        spec = JobSpec(
            f"{next(self._ids):012}", where, tuple(plan.specs), plan.upto, "/nowhere", plan.replay, tables_at_once=1,
            witness=plan.witness, recovery_fork=plan.recovery_fork,
        )  # fmt: skip
        spec = _read(JobSpec, _written(spec, spec.id))
        with self._history():
            job.run(self, spec)  # type: ignore[arg-type]
        return Outcome(plan, spec, _read(Receipt, self._receipts.pop(spec.receipt_path)))

    def open_table(self, table: str, shape: str, name: Sequence[str]) -> TargetTable:
        """A sink's table, or, for a replay into a table of its own, a new one."""
        known = self.targets[table, shape]
        return known if known.name == ".".join(name) else self.new_target(name, table, "rebuilt")

    def write_text(self, path: str, text: str) -> None:
        """Store a receipt."""
        self.at("receipt")
        self._receipts[path] = text

    def judge(self, target: TargetTable) -> None:
        """Compare what was just committed with the source, or with what it was when the run began.

        What is wrong is remembered: the job would take it for a failure of its own.
        """
        if target.shape == "rebuilt":
            self.rebuilt.append(target)
            return
        errors = []
        for commits in [self.source.commits, *self.source.before[self._running[0] :]]:
            try:
                check(target, commits)
                return
            except AssertionError as error:
                errors.append(error)
        self.wrong.append(errors[0])


class Unwritten(str):
    """What stands for the JSON of a value: the slow way over the text is taken by every eighth job."""

    value: Any

    def replace(self, *_: Any) -> Unwritten:  # type: ignore[override]
        return self


def _written(value: Any, job_id: str) -> str:
    if int(job_id) % 8 == 0:
        return to_json(value)
    text = Unwritten()
    text.value = value
    return text


def _read(kind: type[T], text: str) -> T:
    return cast(T, text.value) if isinstance(text, Unwritten) else from_json(kind, text)


@contextmanager
def patched() -> Iterator[None]:
    """Put a world where the job would find Spark and the server."""
    nobody = Credentials(None, None)
    with mock.patch.multiple(
        job,
        credentials=lambda _: nobody,
        target_credentials=lambda _: nobody,
        salt=lambda world: world.salt,
        table_session=lambda world: world,
        SparkParts=lambda world, spec, *_: world.parts(spec),
        _application_id=lambda _: "",
        to_json=lambda receipt: _written(receipt, receipt.spec_id),
        files=SimpleNamespace(
            write_text=lambda world, path, text: world.write_text(path, text),
            remove=lambda world, _: world.at("clean-up"),
        ),
    ):
        yield
