"""A database whose tables Change Tracking tracks, jobs that load them, and writers that note each state."""

from __future__ import annotations

import dataclasses
import datetime
import random
import threading
import uuid
from collections.abc import Sequence
from typing import Any

from airflow.models.connection import Connection

from airflow_provider_mssql_cdc.core.changes import DEFAULT, NET, HistoryOptions
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Identity
from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.choice import choose
from airflow_provider_mssql_cdc.core.codec import from_json, to_json
from airflow_provider_mssql_cdc.core.entry_values import CT
from airflow_provider_mssql_cdc.core.position import Cut, Lsn, Version
from airflow_provider_mssql_cdc.core.receipt import Receipt
from airflow_provider_mssql_cdc.core.shapes import HISTORY, SCD2
from airflow_provider_mssql_cdc.core.spec import JobSpec, SinkSpec, TableSpec
from airflow_provider_mssql_cdc.core.table import TableName, TableSchema
from airflow_provider_mssql_cdc.core.table_options import Choice, TableOptions, read_entries
from airflow_provider_mssql_cdc.core.target import Target
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.hooks.mssql_change_tracking import MsSqlChangeTrackingHook
from airflow_provider_mssql_cdc.operators import checkpoints
from airflow_provider_mssql_cdc.operators.outcome import Outcome
from airflow_provider_mssql_cdc.operators.planning import plan_load
from airflow_provider_mssql_cdc.operators.request import Request
from airflow_provider_mssql_cdc.operators.sourcing import sources_for
from airflow_provider_mssql_cdc.spark.job import run
from tests.core.test_checkpoint import Variables
from tests.support.spark.origin import Origin

_NO_LSN = Lsn(bytes(9) + b"\x01")

_NEVER = 2**63

NET_HISTORY = HistoryOptions(NET)

At = dict[str, tuple[Version, Version]]


class TrackedOrigin:
    """Tables of one database, loaded by Change Tracking.

    :param origin: the database
    :param snapshots: whether it allows SNAPSHOT
    """

    def __init__(self, origin: Origin, *, snapshots: bool) -> None:
        self.origin, self.sql = origin, origin.sql
        self.sql("ALTER DATABASE CURRENT SET CHANGE_TRACKING = ON (CHANGE_RETENTION = 2 DAYS)")
        self.sql(f"ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION {'ON' if snapshots else 'OFF'}")
        self.connection = Connection(
            conn_id="lab",
            conn_type="mssql",
            host=origin.sandbox.host,
            port=origin.sandbox.port,
            login=origin.sandbox.user,
            password=origin.sandbox.password,
            schema=origin.database,
        )
        self.at: dict[str, At] = {}

    def track(self, name: str) -> None:
        """Let Change Tracking track a table."""
        self.sql(f"ALTER TABLE {name} ENABLE CHANGE_TRACKING WITH (TRACK_COLUMNS_UPDATED = ON)")

    def current(self) -> Version:
        """The database's newest version."""
        return Version(self.sql("SELECT CHANGE_TRACKING_CURRENT_VERSION() AS v")[0]["v"])

    def table(
        self,
        name: str,
        choice: Choice | None = None,
        shapes: Sequence[str] = ("mirror",),
        history: HistoryOptions = NET_HISTORY,
    ) -> TableSpec:
        """A table's part of a spec, as a plan makes it."""
        with MsSqlChangeTrackingHook(connection=self.connection) as hook:
            feed = hook.tracked_table(TableName(*name.split(".")))
        schema = TableSchema(feed.columns, feed.primary_key)
        sinks = tuple(
            SinkSpec(
                shape,
                self.origin.target(name, shape),
                *self.at.get(name, {}).get(shape, (None, None)),
                format=self.origin.format,
                history=history if shape == HISTORY else DEFAULT,
            )
            for shape in shapes
        )
        spec = TableSpec(feed.source, feed, schema, sinks)
        if choice is not None:
            spec = dataclasses.replace(spec, selection=choose(feed.source, schema, choice, check=None))
        return spec

    def load(self, *tables: TableSpec, upto: Version | None = None, **options: Any) -> Receipt:
        """Run a job up to a version, and keep what a checkpoint would."""
        whole = self.origin.spec(upto=_NO_LSN, witness=None, recovery_fork=None, **options)
        spec = dataclasses.replace(whole, id=uuid.uuid4().hex[:12], tables=tables, upto=Cut.at(upto or self.current()))
        receipt = run(self.origin.spark, _as_sent(spec))
        for table in receipt.tables:
            for sink in table.sinks:
                assert sink.after is not None
                reached = (_version(sink.read_through), _version(sink.after.position))
                self.at.setdefault(str(table.name), {})[sink.shape] = reached
        return receipt

    def reached(self, name: str, shape: str = "mirror") -> Version:
        """The marker's position."""
        return self.at[name][shape][1]

    def mirror(self, name: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """The mirror's rows."""
        return sorted(tuple(row[column] for column in columns) for row in self.origin.lake(name))

    def shown(self, name: str, shape: str, columns: Sequence[str], at: Version) -> list[tuple[Any, ...]]:
        """The table as a target tells it: a mirror as it is, another shape as of a version.

        :param columns: the key first
        """
        rows = self.origin.lake(name, shape)
        if shape == HISTORY:
            newest: dict[Any, dict[str, Any]] = {}
            # what was copied at a version is behind what changed with it
            for row in sorted(rows, key=lambda row: (row["_version"], row["_seq"])):
                if row["_version"] <= at.value:
                    newest[row[columns[0]]] = row
            rows = [row for row in newest.values() if row["_op"] != "D"]
        elif shape == SCD2:
            rows = [row for row in rows if row["_from_version"] <= at.value < (row["_to_version"] or _NEVER)]
        assert len({row[columns[0]] for row in rows}) == len(rows)
        return sorted(tuple(row[column] for column in columns) for row in rows)

    def source(self, name: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """The table's rows."""
        return sorted(tuple(row.values()) for row in self.sql(f"SELECT {', '.join(columns)} FROM {name}"))


def some_changes(rng: random.Random, n: int, *others: str) -> list[str]:
    """One or two statements that change ``lab.things``, which has the columns id, a and note; or others.

    :param n: what they write
    """
    id, other = rng.randrange(1, 16), rng.randrange(1, 16)
    free = "IF NOT EXISTS (SELECT 1 FROM lab.things WHERE id = {})"
    drawn = (
        f"UPDATE lab.things SET a = {n}, note = N'n{n}' WHERE id = {id}",
        f"UPDATE lab.things SET a = {n} WHERE id BETWEEN {id} AND {id + 2}",
        f"DELETE FROM lab.things WHERE id = {id}",
        f"{free.format(id)} INSERT INTO lab.things (id, a, note) VALUES ({id}, {n}, N'i')",
        f"{free.format(other)} UPDATE lab.things SET id = {other} WHERE id = {id}",
        *others,
    )
    return rng.sample(drawn, rng.choice((1, 2)))


def _as_sent(spec: JobSpec) -> JobSpec:
    return from_json(JobSpec, to_json(spec))


def _version(position: Any) -> Version:
    assert isinstance(position, Version)
    return position


class Writers:
    """A thread that commits one transaction after the other, and notes what the table holds at each version.

    :param statements: the next transaction, in T-SQL
    """

    def __init__(self, tracked: TrackedOrigin, name: str, columns: Sequence[str], statements: Any) -> None:
        self._tracked, self._name, self._columns, self._statements = tracked, name, columns, statements
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.states: dict[Version, list[tuple[Any, ...]]] = {}
        self.note()

    def note(self) -> None:
        """Note the table's rows at the newest version; nothing else writes."""
        self.states[self._tracked.current()] = self._tracked.source(self._name, self._columns)

    def state(self, at: Version) -> list[tuple[Any, ...]]:
        """The table's rows at a version, which may be another table's."""
        return self.states[max(version for version in self.states if version <= at)]

    def _write(self) -> None:
        # a pause, since the loads have only two cores
        while not self._ended.wait(0.05):
            self._tracked.sql(f"BEGIN TRANSACTION; {next(self._statements)}; COMMIT")
            self.note()

    def __enter__(self) -> Writers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


class PlannedRuns:
    """Runs over tables of one database, planned as the operator plans them: by Change Tracking, or by ``source``.

    :param tables: of the schema ``lab``, or entries
    :param said: of all tables, as of ``TableOptions``
    :ivar failures: of the last run: table to the error, where it was allowed to fail
    :ivar options: of each job, such as ``copy_rows``
    :ivar receipt: of the last job
    :ivar warnings: of the last run
    """

    def __init__(
        self, tracked: TrackedOrigin, *tables: str | dict[str, Any], shapes: Sequence[str] = ("mirror",), **said: Any
    ) -> None:
        self._tracked = tracked
        self._store = CheckpointStore(Variables())
        self.options: dict[str, Any] = {}
        self.receipt: Receipt | None = None
        self.warnings: list[str] = []
        self.failures: dict[str, str] = {}
        self._request = Request(
            connection="lab",
            entries=read_entries([f"lab.{t}" if isinstance(t, str) else t for t in tables], salted=True),
            exclude=(),
            defaults=TableOptions(
                Target.parse(tracked.origin.place), (*shapes,), **{"source": CT, "history": NET_HISTORY, **said}
            ),
            asked=True,
        )

    def run(
        self, *, checkpoint: bool = True, may_fail: bool = False, upto: Cut | None = None, limit: int | None = None
    ) -> dict[str, list[str]]:
        """Plan, run the job and move the checkpoints; the outcomes of the sinks, by table.

        :param checkpoint: False ends before these move, as a task does that is killed there
        :param may_fail: for what is read; ``failures`` has why
        :param upto: the cut; None for where the database is
        :param limit: transactions that are loaded at most
        """
        tracked = self._tracked
        with MsSqlCdcHook(connection=tracked.connection) as hook:
            request = dataclasses.replace(self._request, max_transactions=limit)
            plan = plan_load(hook, self._store, request, upto, sources_for(hook, {request.defaults.source}))
        failed = {str(name): str(why) for name, each in plan.candidates.items() for why in each.failed.values()}
        self.failures = failed | {str(name): str(error) for name, error in plan.failures.items()}
        assert may_fail or self.failures == {}, self.failures
        spec, receipt = None, None
        if plan.specs:
            assert plan.upto is not None
            of_plan = {"witness": plan.witness, "recovery_fork": plan.recovery_fork}
            whole = tracked.origin.spec(upto=_NO_LSN, **{**of_plan, **self.options})
            spec = dataclasses.replace(whole, id=uuid.uuid4().hex[:12], tables=tuple(plan.specs), upto=plan.upto)
            self.receipt = receipt = run(tracked.origin.spark, _as_sent(spec))
            errors = {str(table.name): table.error for table in receipt.tables}
            self.failures |= {name: error.message for name, error in errors.items() if error is not None}
            assert may_fail or self.failures == {}, self.failures
        self.warnings = [*plan.warnings]
        self.warnings += [text for each in plan.candidates.values() for text in each.warnings]
        self.warnings += [text for table in (receipt.tables if receipt else ()) for text in table.warnings]
        outcome = Outcome(plan, spec, receipt)
        if checkpoint:
            checkpoints.save(self._store, outcome.checkpoints(datetime.datetime.now(datetime.UTC)), outcome)
        found = receipt.tables if receipt is not None else ()
        return {str(table.name): [sink.outcome for sink in table.sinks] for table in found}

    def position(self, table: str) -> Any:
        """Up to where a table is loaded, as its checkpoint says."""
        stored = self.stored(table)
        assert stored is not None
        return stored.loaded["mirror"].position

    def stored(self, table: str) -> Checkpoint | None:
        """The checkpoint of a table."""
        return self._store.load(self._identity(table))

    def lose(self, table: str) -> None:
        """Lose the checkpoint of a table."""
        self._store.delete(self._identity(table))

    def _identity(self, table: str) -> Identity:
        name = TableName("lab", table)
        return self._request.identity(self._tracked.origin.database, name, self._request.defaults)
