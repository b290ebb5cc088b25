"""Copies that a task asks for, or the params of a run; and the waiting for them."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import re
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, TaskDeferred

from airflow_provider_mssql_cdc.core.checkpoint import Failure
from airflow_provider_mssql_cdc.core.copy_asking import CopyAsking
from airflow_provider_mssql_cdc.core.copy_requests import CopyRequest, CopyRequests
from airflow_provider_mssql_cdc.core.copy_wanted import COPY, PAUSE, STOP, AskedCopy
from airflow_provider_mssql_cdc.core.exceptions import CopyAskedError, ServerUnreachableError
from airflow_provider_mssql_cdc.core.spec import JobSpec
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.operators.copy import MsSqlCdcCopyOperator
from airflow_provider_mssql_cdc.sensors.mssql_cdc import MsSqlCdcSensor
from airflow_provider_mssql_cdc.triggers.copy import MsSqlCdcCopyTrigger
from tests.support.hooks.source import CONN_ID, TARGET, Source
from tests.support.operators.group import A, B, Group
from tests.support.operators.master import write_receipt
from tests.support.operators.tries import Task, TaskInstance


class Copies:
    """Two loaded tables, and what is asked of their copies."""

    def __init__(self, group: Group) -> None:
        self.group = group

    def operator(self, **given: Any) -> MsSqlCdcCopyOperator:
        arguments = {"tables": ["dbo.*"], "target": TARGET, "mssql_conn_id": CONN_ID, "poll_interval": 0.01}
        return MsSqlCdcCopyOperator(**{"task_id": "copy", **arguments, **given})

    def run(self, *, max_tries: int = 3, **given: Any) -> dict[str, str]:
        ti = TaskInstance()
        ti.max_tries = max_tries
        return self.operator(**given).execute({"ti": ti})  # type: ignore[typeddict-item]

    def request(self, table: TableName = A) -> CopyRequest | None:
        return CopyRequests(self.group.variables).load(self.group.source.identity(table))

    def asked(self) -> dict[str, str]:
        found = {str(table): self.request(table) for table in (A, B)}
        return {table: request.wanted for table, request in found.items() if request is not None}

    def end(self, how: str = "COMPLETED", table: TableName = A) -> None:
        """What a load stores that has done the copy."""
        request, checkpoint = self.request(table), self.group.checkpoint(table)
        assert request is not None
        assert checkpoint is not None
        self.group.store.overwrite(dataclasses.replace(checkpoint, ended_copies=(f"{request.id} {how}",), copies=()))


class OtherTask(TaskInstance):
    task_id = "other"


@pytest.fixture
def copies(source: Source, monkeypatch: pytest.MonkeyPatch) -> Copies:
    group = Group(source)
    group.make("dbo.a", "dbo.b")
    group.loaded(A, B)
    for name, value in source.environment().items():
        monkeypatch.setenv(name, value)
    for module in ("operators.copy", "triggers.copy", "triggers.mssql_cdc", "sensors.mssql_cdc"):
        # outside of a task, Airflow's own can only be read
        monkeypatch.setattr(f"airflow_provider_mssql_cdc.{module}.Variable", group.variables)
    return Copies(group)


def test_the_tries_of_a_task_ask_for_one_copy_and_a_cleared_one_for_another(copies: Copies) -> None:
    ids = copies.run(wait_for_completion=False)
    assert copies.asked() == {"dbo.a": COPY, "dbo.b": COPY}
    assert len({*ids.values()}) == 2
    assert copies.run(wait_for_completion=False) == ids
    copies.end()
    # what has ended is not asked for again
    assert copies.run(wait_for_completion=False) == ids
    request = copies.request()
    assert request is not None
    assert request.has_ended(copies.group.checkpoint(A))

    # what has not ended is gone on with, though the task was cleared
    again = copies.run(max_tries=7, wait_for_completion=False)
    assert again["dbo.b"] == ids["dbo.b"]
    assert again["dbo.a"] != ids["dbo.a"]
    copies.end(table=B)
    copies.end(table=A)
    last = copies.run(max_tries=11, wait_for_completion=False)
    assert not {*last.values()} & {*again.values()}
    with pytest.raises(AirflowFailException, match=f"dbo.b: copy {last['dbo.b']} stands in the way"):
        copies.operator(task_id="other", tables="dbo.b").execute({"ti": OtherTask()})  # type: ignore[typeddict-item]


def test_a_worker_waits_until_the_load_has_done_them(copies: Copies) -> None:
    stored = threading.Event()

    def load() -> None:
        assert stored.wait(60)
        copies.end()
        copies.end(table=B)

    def put(key: str, value: Any, description: str | None = None) -> None:
        copies.group.variables[key] = value
        if len(copies.asked()) == 2:
            stored.set()

    copies.group.variables.set = put  # type: ignore[method-assign]
    thread = threading.Thread(target=load)
    thread.start()
    assert copies.run() == {"dbo.a": "COMPLETED", "dbo.b": "COMPLETED"}
    thread.join()


@pytest.mark.parametrize("how", ["STOPPED", "ABORTED: the table was dropped"])
def test_a_copy_that_ended_otherwise_fails_for_good(copies: Copies, how: str) -> None:
    copies.run(tables="dbo.a", wait_for_completion=False)
    copies.end(how)
    with pytest.raises(AirflowFailException, match=f"the copy of dbo.a ended: {how}"):
        copies.run(tables="dbo.a")


def fired(trigger: MsSqlCdcCopyTrigger) -> dict[str, Any]:
    async def first() -> Any:
        async for event in trigger.run():
            return event.payload

    return asyncio.run(asyncio.wait_for(first(), 60))  # type: ignore[no-any-return]


def test_the_triggerer_waits_in_the_workers_place(copies: Copies) -> None:
    with pytest.raises(TaskDeferred) as deferred:
        copies.run(deferrable=True, execution_timeout=datetime.timedelta(hours=3))
    assert deferred.value.timeout == datetime.timedelta(hours=3)
    path, arguments = deferred.value.trigger.serialize()
    assert path == "airflow_provider_mssql_cdc.triggers.copy.MsSqlCdcCopyTrigger"
    trigger = MsSqlCdcCopyTrigger(**arguments)
    thread = threading.Timer(0.1, lambda: [copies.end(table=table) for table in (A, B)])
    thread.start()
    event = fired(trigger)
    assert event == {"status": "success", "endings": {"dbo.a": "COMPLETED", "dbo.b": "COMPLETED"}}
    assert copies.operator().execute_complete({}, event) == event["endings"]  # type: ignore[typeddict-item]
    # nothing is left to wait for
    assert copies.run(deferrable=True) == event["endings"]

    CopyRequests(copies.group.variables).delete(copies.group.source.identity(B))
    checkpoint = copies.group.checkpoint(B)
    assert checkpoint is not None
    copies.group.store.overwrite(dataclasses.replace(checkpoint, ended_copies=()))
    event = fired(trigger)
    assert event["status"] == "error"
    with pytest.raises(AirflowFailException, match="is no longer asked for"):
        copies.operator().execute_complete({}, event)  # type: ignore[typeddict-item]


def test_what_no_load_has_is_refused(copies: Copies) -> None:
    with pytest.raises(AirflowFailException, match=r"no load has dbo.a -> iceberg://other/shop, dbo.b -> .* by conn"):
        copies.run(target="iceberg://other/shop")
    for tables in (["dbo.nothing"], ["dbo.a", "dbo.nothing"]):
        with pytest.raises(AirflowFailException, match=r"dbo\.nothing"):
            copies.run(tables=tables)
    # the shapes of the load do not matter, but where its tables lie
    entry = {"table": "dbo.a", "table_name": "x_{table}"}
    with pytest.raises(AirflowFailException, match=r"no load has dbo.a -> parquet\+file:///lake as x_a"):
        copies.run(tables=[entry], target="parquet+file:///lake")
    assert copies.asked() == {}


def test_pause_resume_and_stop(copies: Copies) -> None:
    copies.run(wait_for_completion=False)
    assert copies.run(tables="dbo.a", action="pause").keys() == {"dbo.a"}
    assert copies.asked() == {"dbo.a": PAUSE, "dbo.b": COPY}
    copies.run(action="resume")
    assert copies.asked() == {"dbo.a": COPY, "dbo.b": COPY}
    copies.run(action="stop")
    assert copies.asked() == {"dbo.a": STOP, "dbo.b": STOP}
    with pytest.raises(AirflowFailException, match="is to be stopped by the next run"):
        copies.run(action="pause")
    again = TaskInstance()
    again.try_number = 2
    assert copies.operator(action="stop").execute({"ti": again}) == {}  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"action": "begin"}, "expected one of start"),
        ({"poll_interval": 0}, "more than 0 s"),
        ({"tables": []}, "empty"),
    ],
)
def test_what_cannot_be_right_is_refused_when_the_dag_is_parsed(
    copies: Copies, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        copies.operator(**given)
    copies.operator(action="{{ params.action }}", tables="{{ params.table }}")


@pytest.fixture
def asking(copies: Copies) -> dict[str, Any]:
    """The context of a run whose params ask for a copy of one table."""
    ti = TaskInstance()
    return {"ti": ti, "params": {"copy": "dbo.a"}, "dag_run": SimpleNamespace(run_type="scheduled")}


def wait(**given: Any) -> MsSqlCdcSensor:
    return MsSqlCdcSensor(task_id="wait", **{"tables": ["dbo.*"], "target": TARGET, "mssql_conn_id": CONN_ID, **given})


def test_the_params_of_a_run_ask_the_sensor_which_calls_for_the_load(copies: Copies, asking: dict[str, Any]) -> None:
    quiet = {**asking, "params": {}}
    with_request = wait().poke(asking)  # type: ignore[arg-type]
    assert copies.asked() == {"dbo.a": COPY}
    assert with_request.is_done
    request = copies.request()
    # each look of the run asks for the same one
    wait().poke(asking)  # type: ignore[arg-type]
    assert copies.request() == request
    copies.end()
    wait().poke(asking)  # type: ignore[arg-type]
    assert not wait().poke(quiet).is_done  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("dbo.c", r"dbo.c is none of the tables of task load: dbo.a, dbo.b"),
        ("a.b.c", "a.b.c"),
    ],
)
def test_params_that_name_no_table_of_the_load_fail_it(
    copies: Copies, asking: dict[str, Any], given: object, message: str
) -> None:
    with pytest.raises(AirflowFailException, match=message):
        wait().poke({**asking, "params": {"copy": given}})  # type: ignore[typeddict-unknown-key]
    assert copies.asked() == {}


def test_a_sensor_leaves_it_to_the_load_to_refuse_a_copy(copies: Copies, asking: dict[str, Any]) -> None:
    dag = SimpleNamespace(tasks=[SimpleNamespace(copy_seconds=None)])
    given = {**asking, "params": {"copy": "dbo.c"}, "dag": dag}
    sensor = wait()
    assert not sensor.poke(given).is_done  # type: ignore[arg-type]
    copies.group.change("INSERT INTO dbo.a (id) VALUES (7)")
    assert sensor.poke(given).is_done  # type: ignore[arg-type]
    assert copies.asked() == {}


def test_params_ask_for_a_copy_of_some_rows(copies: Copies, asking: dict[str, Any]) -> None:
    given = {"tables": "dbo.a", "where": [["id", ">", 7]]}
    assert wait().poke({**asking, "params": {"copy": given}}).is_done  # type: ignore[typeddict-unknown-key]
    assert copies.request().where == '[["id", ">", 7]]'


@pytest.mark.parametrize("given", [True, False, 0, {"table": "dbo.a"}, [1], [], "", None])
def test_a_param_of_the_authors_own_asks_for_no_copy(copies: Copies, asking: dict[str, Any], given: object) -> None:
    assert not wait().poke({**asking, "params": {"copy": given}}).is_done  # type: ignore[typeddict-unknown-key]
    assert copies.asked() == {}


def test_of_two_loads_in_a_dag_each_takes_its_own_tables(copies: Copies, asking: dict[str, Any]) -> None:
    loads = [SimpleNamespace(copy_seconds=None), SimpleNamespace(copy_seconds=None)]
    both = {**asking, "params": {"copy": ["dbo.a", "crm.people"]}, "dag": SimpleNamespace(tasks=loads)}
    wait(tables=["dbo.b"]).poke(both)  # type: ignore[arg-type]
    assert copies.asked() == {}
    wait().poke(both)  # type: ignore[arg-type]
    assert copies.asked() == {"dbo.a": COPY}


def test_a_sensor_whose_first_look_fails_asks_later(
    copies: Copies, asking: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = wait()
    survey = MsSqlCdcHook.survey

    def away(*_: Any, **_options: Any) -> Any:
        raise ServerUnreachableError("no answer", number=20009)

    monkeypatch.setattr(MsSqlCdcHook, "survey", away)
    assert not waiting.poke(asking).is_done  # type: ignore[arg-type]
    deferring, slept = wait(deferrable=True), []
    monkeypatch.setattr("airflow_provider_mssql_cdc.sensors.mssql_cdc.time", SimpleNamespace(sleep=slept.append))
    with pytest.raises(CopyAskedError, match="could not be asked for"):
        deferring.execute(asking)  # type: ignore[arg-type]
    assert len(slept) == 6
    monkeypatch.setattr(MsSqlCdcHook, "survey", survey)
    assert waiting.poke(asking).is_done  # type: ignore[arg-type]
    assert copies.asked() == {"dbo.a": COPY}


def test_what_fails_for_good_is_not_waited_for(copies: Copies) -> None:
    copies.run(tables="dbo.a", wait_for_completion=False)
    checkpoint = copies.group.checkpoint(A)
    assert checkpoint is not None
    failed = checkpoint.failing(["mirror"], Failure("a column changed", datetime.datetime.now(datetime.UTC)))
    copies.group.store.overwrite(failed)
    with pytest.raises(AirflowFailException, match="fails for good: a column changed"):
        copies.run(tables="dbo.a")
    lost = Failure("a value is lost", datetime.datetime.now(datetime.UTC), copy_mends=True)
    copies.group.store.overwrite(failed.failing(["mirror"], lost))
    standing = CopyAsking(copies.group.variables).standing(copies.group.source.identity(A))
    assert standing.cannot_be_done is None, "the copy mends it"


def test_a_copy_that_has_ended_is_not_resumed(copies: Copies) -> None:
    copies.run(tables="dbo.a", wait_for_completion=False)
    copies.run(tables="dbo.a", action="pause")
    copies.end("ABORTED: it was paused for too long")
    with pytest.raises(AirflowFailException, match=r"has ended \(ABORTED: it was paused for too long\)"):
        copies.run(tables="dbo.a", action="resume")


def test_a_load_without_sensor_does_what_its_params_ask_for(task: Task) -> None:
    """Its own job is told of the copy, of a table that did not change."""
    asked: list[AskedCopy | None] = []

    def job(spec: JobSpec) -> None:
        asked.extend(table.asked for table in spec.tables if table.name == B)
        write_receipt(spec)

    task.master.job = job
    task.params = {"copy": ["dbo.b"]}
    task.run()
    assert [copy.wanted for copy in asked if copy is not None] == [COPY]


def test_a_copy_that_is_refused_keeps_nothing_from_being_loaded(task: Task) -> None:
    loaded: list[TableName] = []

    def job(spec: JobSpec) -> None:
        loaded.extend(table.name for table in spec.tables)
        write_receipt(spec)

    task.master.job = job
    task.params = {"copy": ["dbo.nonsense"]}
    said = "dbo.nonsense is none of the tables of task load: dbo.a, dbo.b. Name one of them, as it is written."
    with pytest.raises(AirflowFailException, match=re.escape(said)):
        task.run()
    # b is loaded already
    assert loaded == [A]
    assert (task.rows["dbo.a"]["status"], task.instance.pushed["summary"]["warnings"]) == ("loaded", [said])


def test_a_copy_of_some_rows_is_asked_for(copies: Copies) -> None:
    copies.run(tables="dbo.a", where=[("id", "in", {7, 8})], wait_for_completion=False)
    assert copies.request().where in ('[["id", "in", [7, 8]]]', '[["id", "in", [8, 7]]]')  # type: ignore[union-attr]
    copies.end()
    with pytest.raises(AirflowFailException, match="where names 'nonsense', which is none of the columns"):
        copies.run(tables="dbo.a", where=[("nonsense", "=", 1)], max_tries=9)
