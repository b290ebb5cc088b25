"""What copies go through, run by run, and who hears of it."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

from airflow.providers.common.compat.sdk import AirflowFailException, AssetAlias

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Told
from airflow_provider_mssql_cdc.core.codec import from_json, to_json
from airflow_provider_mssql_cdc.core.copy_wanted import AskedCopy
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.receipt import CopyingReceipt, Receipt, SinkReceipt, TableReceipt
from airflow_provider_mssql_cdc.core.spec import JobSpec
from airflow_provider_mssql_cdc.operators import job_files
from airflow_provider_mssql_cdc.operators.copy_events import all_untold, copy_events, said
from airflow_provider_mssql_cdc.operators.copying import copies_of
from tests.core.test_checkpoint import IDENTITY
from tests.core.test_spec import MARKER, SPEC
from tests.support.hooks.source import TARGET
from tests.support.operators.group import A, B
from tests.support.operators.master import write_receipt
from tests.support.operators.tries import Hearing, State, Task, TaskInstance

(TABLE,) = SPEC.tables
LOW, POSITION = Lsn((10).to_bytes(10)), Lsn((20).to_bytes(10))
COPYING = CopyingReceipt("abc", ("mirror",), LOW, POSITION, 1, 100, expected=400, last="(100)", highest="(390)")


def runs(*receipts: TableReceipt, asked: str | None = None) -> list[list[str]]:
    """The events of runs that follow each other."""
    spec = dataclasses.replace(TABLE, asked=AskedCopy(asked) if asked else None)
    stored, found = Checkpoint(IDENTITY), []
    for table in receipts:
        events = copy_events(stored, spec, table)
        assert {event.extra["table"] for event in events} <= {str(TABLE.name)}
        found.append([f"{event.extra['id']} {event.extra['event']}" for event in events])
        copies = () if table.ended_copy else copies_of(table, "/copies", stored.copies)
        stored = dataclasses.replace(stored, copies=copies)
    return found


def copying(**given: Any) -> TableReceipt:
    return TableReceipt(TABLE.name, copying=dataclasses.replace(COPYING, **given))


def begun(id_: str = "abc") -> TableReceipt:
    marker = dataclasses.replace(MARKER, copies=(id_,))
    return TableReceipt(
        TABLE.name, (SinkReceipt("mirror", None, marker, "first_load", marker.position),), counts={"copied": 400}
    )


def ended(how: str) -> TableReceipt:
    return TableReceipt(TABLE.name, ended_copy=f"asked {how}", counts={"copied": 400})


def test_a_copy_within_one_run() -> None:
    assert runs(begun()) == [["abc STARTED", "abc TABLE_SCAN_COMPLETED", "abc COMPLETED"]]
    assert runs(ended("COMPLETED")) == [["asked STARTED", "asked TABLE_SCAN_COMPLETED", "asked COMPLETED"]]


def test_a_copy_over_many_runs() -> None:
    assert runs(
        copying(),
        copying(chunks=2),
        copying(paused=True),
        copying(paused=True),
        copying(),
        copying(waits_for="the capture", waits_after=POSITION),
        copying(waits_for="the capture", waits_after=POSITION),
        begun(),
    ) == [
        ["abc STARTED", "abc IN_PROGRESS"],
        ["abc IN_PROGRESS"],
        ["abc PAUSED"],
        [],
        ["abc RESUMED", "abc IN_PROGRESS"],
        ["abc TABLE_SCAN_COMPLETED"],
        [],
        ["abc COMPLETED"],
    ]


def test_one_that_is_asked_for_names_its_request() -> None:
    assert runs(copying(), copying(id="def"), ended("ABORTED: the table was dropped"), asked="asked") == [
        ["abc STARTED", "abc IN_PROGRESS"],
        ["abc ABORTED", "def STARTED", "def IN_PROGRESS"],
        ["def ABORTED"],
    ]
    assert runs(copying(paused=True), ended("STOPPED"), asked="asked") == [
        ["abc STARTED", "abc PAUSED"],
        ["abc ABORTED"],
    ]
    spec = dataclasses.replace(TABLE, asked=AskedCopy("asked"))
    assert {event.extra["request"] for event in copy_events(None, spec, copying())} == {"asked"}


def test_it_ends_once_all_shapes_have_it() -> None:
    """One that failed begins with the same copy later."""
    sink = dataclasses.replace(TABLE.sinks[0], expects=None)
    spec = dataclasses.replace(TABLE, sinks=(sink, dataclasses.replace(sink, shape="history")))
    assert [event.extra["event"] for event in copy_events(None, spec, begun())] == ["STARTED", "TABLE_SCAN_COMPLETED"]
    alone = dataclasses.replace(spec, sinks=spec.sinks[:1])
    assert [event.extra["event"] for event in copy_events(None, alone, begun())][-1] == "COMPLETED"


def test_for_people() -> None:
    (started, progress) = copy_events(None, TABLE, copying())
    assert said(progress) == f"{TABLE.name} copy abc: IN_PROGRESS, 100 rows, up to key (100) of (390)"
    (aborted,) = copy_events(None, TABLE, ended("ABORTED: the table was dropped"))
    assert said(aborted) == f"{TABLE.name} copy asked: ABORTED: the table was dropped"
    assert started.extra["shapes"] == ["mirror"]


def test_of_one_copy_only_the_newest_progress_is_kept() -> None:
    def event(id_: str, name: str, rows: int) -> Told:
        return Told("copy", {"id": id_, "event": name, "rows": rows})

    first = (event("a", "STARTED", 0), event("a", "IN_PROGRESS", 1), event("b", "IN_PROGRESS", 1))
    second = (event("a", "IN_PROGRESS", 2),)
    assert all_untold(first, second) == (first[0], first[2], second[0])


def test_the_operations_asset_hears_of_them_once_a_task_succeeds(task: Task) -> None:
    """What a failed run's copies went through is told by the next one that succeeds."""
    position = task.position(A)
    assert position is not None
    failing = [B]

    def job(spec: JobSpec) -> None:
        write_receipt(spec, *failing)
        path = job_files.open_path(spec.receipt_path)
        receipt = from_json(Receipt, path.read_text())
        far = CopyingReceipt("abc", ("history",), position, position, 1, 100)
        tables = [dataclasses.replace(each, copying=far) if each.name == A else each for each in receipt.tables]
        path.write_text(to_json(dataclasses.replace(receipt, tables=tuple(tables))))

    task.master.job = job
    data, operations = AssetAlias("mssql_cdc lake"), AssetAlias("mssql_cdc lake operations")

    def run(state: State) -> Hearing:
        hearing, ti = Hearing(), TaskInstance()
        context = {
            "task_state_store": state,
            "ti": ti,
            "outlet_events": {operations: hearing, data: Hearing()},
            # a person tries what failed again
            "dag_run": SimpleNamespace(run_type="manual"),
        }
        try:
            summary = task.operator(outlets=[data, operations]).execute(context)  # type: ignore[arg-type]
            assert {event["id"] for event in summary["copies"]} == {"abc"}
        except AirflowFailException:
            assert [event["event"] for event in ti.pushed["summary"]["copies"]] == ["STARTED", "IN_PROGRESS"]
        return hearing

    task.group.change("INSERT INTO dbo.b (id) VALUES (77)")
    assert run(State()).heard == []
    stored = task.group.checkpoint(A)
    assert stored is not None
    assert [event.extra["event"] for event in stored.untold] == ["STARTED", "IN_PROGRESS"]

    failing.clear()
    state = State()
    # a try whose success Airflow did not record tells again
    for number in (78, 79):
        task.group.change(f"INSERT INTO dbo.a (id) VALUES ({number})")
        ((name, extra),) = run(state).heard
        assert (name, extra["kind"]) == (f"{TARGET} operations", "copy")
        assert [event["event"] for event in extra["events"]] == ["STARTED", "IN_PROGRESS"]
    stored = task.group.checkpoint(A)
    assert stored is not None
    assert stored.untold == ()
