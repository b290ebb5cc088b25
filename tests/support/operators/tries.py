"""Tries of a task that loads two tables by a Spark cluster, what Airflow keeps of it, and what its jobs commit."""

from __future__ import annotations

import dataclasses
import threading
from types import SimpleNamespace
from typing import Any

from airflow.providers.common.compat.sdk import Asset, AssetAlias

from airflow_provider_mssql_cdc.core.checkpoint import SinkState
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.spec import JobSpec, SourceSpec
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.operators import job_files
from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator
from airflow_provider_mssql_cdc.operators.planning import plan_load
from tests.support.hooks.source import CONN_ID, TARGET
from tests.support.operators.group import A, B, Group
from tests.support.operators.master import DRIVER, Master, write_receipt

JOB_ID, SPEC, CUT, POD = "spark_job_id", "mssql_cdc_spec", "mssql_cdc_upto", "k8s_driver_status"
EVENT, TRY = "mssql_cdc_event", "mssql_cdc_try"


class State(dict[str, Any]):
    """A task's state store."""

    def set(self, key: str, value: Any) -> None:
        self[key] = value

    def delete(self, key: str) -> None:
        self.pop(key, None)


class TaskInstance:
    """What a task instance is asked for."""

    def __init__(self, before: dict[str, Any] | None = None) -> None:
        self.stats_tags: dict[str, str] = {}
        self.pushed: dict[str, Any] = {}
        self.before = before or {}

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value

    map_index = -1
    dag_id, task_id, run_id, try_number, max_tries = "shop", "load", "scheduled__2026-03-01", 1, 3

    def xcom_pull(self, task_ids: str, key: str, include_prior_dates: bool, map_indexes: int | None = None) -> Any:
        """What the run before has pushed; as Airflow does, that of all runs before where no map index is named."""
        return [self.before.get(key)] * 2 if map_indexes is None else self.before.get(key)


class Hearing:
    """Takes asset events, as Airflow's ``outlet_events`` do."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []

    def add(self, asset: Asset, extra: dict[str, Any]) -> None:
        self.heard.append((asset.name, extra))


class Task:
    """A load of two tables by a Spark cluster, and what Airflow keeps of it."""

    def __init__(self, group: Group, master: Master) -> None:
        self.group, self.master = group, master
        self.state, self.instance = State(), TaskInstance()
        self.base = self.position(B)
        self.emitted: list[dict[str, Any]] = []
        self.params: dict[str, Any] = {}

    def again(self) -> Task:
        """The same task instance, for a try beside this one."""
        other = Task(self.group, self.master)
        other.state = self.state
        return other

    def events(self) -> dict[str, Any] | None:
        """The LSN ranges that the last try announced; None where there was no asset event."""
        (emitted,) = self.emitted or [None]
        if emitted is None:
            return None
        ranges = {}
        for table, told in emitted["tables"].items():
            stored = self.group.checkpoint(TableName(*table.split(".")))
            assert stored is not None
            feed = stored.sinks["mirror"].feed
            assert feed is not None
            assert (told["feed"], told["schema_hash"]) == (feed.name, stored.sinks["mirror"].schema_hash)
            ranges[table] = {"after": told["after"], "upto": told["upto"]}
        return ranges

    def add(self, asset: Asset, extra: dict[str, Any]) -> None:
        """Take an asset event, as Airflow's ``outlet_events`` do."""
        self.emitted.append(extra)

    def run(self, *, again: bool = False, by_hand: bool = False, **given: Any) -> dict[str, Any]:
        """One try.

        :param again: of a task that was tried before: a retry, or one that was cleared
        :param by_hand: in a run that a person started
        """
        self.instance, self.emitted = TaskInstance(self.instance.pushed or self.instance.before), []
        self.instance.try_number = 1 + again
        alias = AssetAlias("loaded")
        self.running = self.operator(outlets=[alias], **given)
        context = {"task_state_store": self.state, "ti": self.instance, "outlet_events": {alias: self}}
        context["params"] = self.params
        context["dag_run"] = SimpleNamespace(run_type="manual" if by_hand else "scheduled")
        summary: dict[str, Any] = self.running.execute(context)
        return summary

    def operator(self, **given: Any) -> MsSqlCdcLoadOperator:
        """The operator of a try."""
        arguments = {"tables": ["dbo.*"], "target": TARGET, "mssql_conn_id": CONN_ID, "work_dir": self.master.work_dir}
        return MsSqlCdcLoadOperator(
            task_id="load", status_poll_interval=0, packages="", **{"outlets": [], **arguments, **given}
        )

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        """The rows of the summary that the last try pushed."""
        return {row["table"]: row for row in self.instance.pushed["summary"]["tables"]}

    def submitted(self, *tables: TableName) -> JobSpec:
        """Leave what a try leaves whose worker was killed after it had submitted."""
        request = self.group.request()
        with self.group.source.hook() as hook:
            plan = plan_load(hook, self.group.store, request, None)
        assert plan.upto is not None
        specs = tuple(spec for spec in plan.specs if spec.name in tables)
        source, work_dir = SourceSpec("db:1", plan.database, "jdbc:"), self.master.work_dir
        spec = JobSpec("a1", source, specs, plan.upto, work_dir, witness=plan.witness)
        job_files.write_spec(spec)
        self.state.update({JOB_ID: DRIVER, SPEC: spec.path, POD: "Succeeded"})
        return spec

    def sinks(self, table: TableName) -> dict[str, SinkState]:
        """What the checkpoint says of a table's sinks."""
        stored = self.group.checkpoint(table)
        assert stored is not None
        return dict(stored.sinks)

    def assert_position(self, text: str) -> None:
        """Name the position of the first table's mirror anew, as a person does; the checkpoint counts as old."""
        stored = self.group.checkpoint(A)
        assert stored is not None
        sinks = {"mirror": dataclasses.replace(stored.sinks["mirror"], asserted=text)}
        self.group.store.overwrite(dataclasses.replace(stored, sinks=sinks, updated_at=None))

    def position(self, table: TableName) -> Lsn | None:
        stored = self.group.checkpoint(table)
        return stored.position(stored.sinks) if stored else None


class Lake:
    """Stands for the target: windows come to it as jobs commit them, each from where the table's marker is."""

    def __init__(self) -> None:
        self.commits: dict[TableName, list[tuple[Lsn, Lsn]]] = {}

    def load(self, spec: JobSpec) -> None:
        """Commit what the spec asks for and is not there yet, and write the receipt."""
        for table in spec.tables:
            (sink,) = table.sinks
            assert sink.expects is not None
            commits = self.commits.setdefault(table.name, [])
            marker = commits[-1][1] if commits else sink.expects
            upto = spec.upto.of(Lsn)
            assert upto is not None
            if marker < upto:
                commits.append((marker, upto))
        write_receipt(spec)


class Halt:
    """Holds the first tries that ask for their driver, each until it is let go.

    :param tries: how many
    """

    def __init__(self, master: Master, tries: int) -> None:
        self._gates = [threading.Event() for _ in range(tries)]
        self._reached = threading.Semaphore(0)
        self._waiting = iter(self._gates)
        master.asked = self._hold

    def __enter__(self) -> Halt:
        return self

    def __exit__(self, *_: object) -> None:
        for gate in self._gates:
            gate.set()

    def wait(self) -> None:
        """Wait until one more try is held."""
        assert self._reached.acquire(timeout=60)

    def release(self, number: int) -> None:
        """Let go the try that came as this one, from 0."""
        self._gates[number].set()

    def _hold(self) -> None:
        if gate := next(self._waiting, None):
            self._reached.release()
            gate.wait(60)
