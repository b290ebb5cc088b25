"""Schema changes of source tables: summary, checkpoint and operations asset tell of each once."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, AssetAlias

from airflow_provider_mssql_cdc.core.codec import from_json, to_json
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.receipt import Receipt
from airflow_provider_mssql_cdc.core.spec import JobSpec, TableSpec
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.taken import TakenBySink, TakenColumn
from airflow_provider_mssql_cdc.operators import job_files
from airflow_provider_mssql_cdc.operators.task_state import TaskState
from tests.support.hooks.source import TARGET, Source
from tests.support.operators.group import A, B
from tests.support.operators.master import write_receipt
from tests.support.operators.tries import Hearing, State, Task, TaskInstance


def run(task: Task, **given: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The schema changes of a run's summary, and what the operations asset hears of such."""
    summary, heard = hear(task, **given)
    assert heard.keys() <= {"schema"}
    return summary["schema_changes"], heard.get("schema", [])


def hear(task: Task, **given: Any) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """A run's summary, and what the operations asset hears of each kind."""
    hearing, ti = Hearing(), TaskInstance(task.instance.pushed or task.instance.before)
    task.instance = ti
    data, operations = AssetAlias("mssql_cdc lake"), AssetAlias("mssql_cdc lake operations")
    context = {
        "task_state_store": State(),
        "ti": ti,
        "outlet_events": {operations: hearing, data: Hearing()},
        # a person tries what failed again
        "dag_run": SimpleNamespace(run_type="manual"),
    }
    try:
        task.operator(outlets=[data, operations], **given).execute(context)  # type: ignore[arg-type]
    except AirflowFailException:
        assert hearing.heard == []
    assert {name for name, _ in hearing.heard} <= {f"{TARGET} operations"}
    return ti.pushed["summary"], {extra["kind"]: extra["events"] for _, extra in hearing.heard}


def test_an_added_column_is_told_once_the_capture_has_passed_it(task: Task) -> None:
    assert run(task) == ([], [])
    stored = task.group.checkpoint(A)
    assert stored is not None
    assert stored.seen_schema is not None

    task.group.change("ALTER TABLE dbo.a ADD city nvarchar(20)")
    task.group.change("ALTER TABLE dbo.a ADD later int; ALTER TABLE dbo.a DROP COLUMN later")
    task.group.change("INSERT INTO dbo.a (id) VALUES (3)")
    assert run(task) == ([], [])
    stored = task.group.checkpoint(A)
    assert stored is not None
    assert len(stored.schema_changes) == 1

    # a run that fails tells nobody, and the next one does
    task.master.job = lambda spec: write_receipt(spec, B)
    task.group.change("INSERT INTO dbo.a (id) VALUES (4); INSERT INTO dbo.b (id) VALUES (4)")
    (told,), heard = run(task)
    assert heard == []
    assert (told["table"], told["found"]) == ("dbo.a", "both")
    assert [(each["kind"], each["column"], each["then"]) for each in told["changes"]] == [("ADD_COLUMN", "city", None)]
    assert told["changes"][0]["now"].startswith("nvarchar(40,0,0)")
    assert told["ddl"][0]["statement"] == "ALTER TABLE dbo.a ADD city nvarchar(20)"
    assert [row["statement"].split()[3] for row in told["ddl"]] == ["ADD", "ADD", "DROP"]
    assert told["lsn"] == told["ddl"][-1]["lsn"]
    stored = task.group.checkpoint(A)
    assert stored is not None
    assert (len(stored.untold), stored.schema_changes) == (1, ())

    task.master.job = write_receipt
    task.group.change("INSERT INTO dbo.a (id) VALUES (5); INSERT INTO dbo.b (id) VALUES (5)")
    assert run(task) == ([told], [told])
    task.group.change("INSERT INTO dbo.a (id) VALUES (6)")
    assert run(task) == ([], [])
    stored = task.group.checkpoint(A)
    assert stored is not None
    assert stored.untold == ()


def with_changes_written(spec: JobSpec) -> None:
    """Answer as a job that loaded all tables, and wrote the schema events that were handed over."""
    write_receipt(spec)
    receipt = from_json(Receipt, job_files.open_path(spec.receipt_path).read_text())
    written = {table.name: table.changes.events[-1].lsn for table in spec.tables if table.changes.events}
    tables = tuple(dataclasses.replace(each, changes_written=written.get(each.name)) for each in receipt.tables)
    job_files.open_path(spec.receipt_path).write_text(to_json(dataclasses.replace(receipt, tables=tables)))


def test_each_job_is_handed_what_no_job_has_written_into_the_table_of_schema_changes(task: Task) -> None:
    specs: list[TableSpec] = []
    number = itertools.count(3)

    def change(*tables: str) -> None:
        ids = [next(number) for _ in tables]
        task.group.change("; ".join(f"INSERT INTO {n} (id) VALUES ({i})" for n, i in zip(tables, ids, strict=True)))

    def load(answer: Callable[[JobSpec], None], *tables: str) -> dict[str, list[str]]:
        """The statements that the job of a run is handed, by table."""
        change(*tables)
        specs.clear()
        task.master.job = lambda spec: (specs.extend(spec.tables), answer(spec))[1]
        run(task)
        places = {spec.changes.table for spec in specs}
        assert places <= {("lake", "shop", f"dbo_{name}_schema_changes") for name in ("a", "b")}
        return {
            str(spec.name): [statement.text for event in spec.changes.events for statement in event.statements]
            for spec in specs
            if spec.changes.events
        }

    def left(name: TableName) -> int:
        stored = task.group.checkpoint(name)
        assert stored is not None
        return len(stored.unwritten)

    run(task)
    load(write_receipt, "dbo.a", "dbo.b")
    task.group.change("ALTER TABLE dbo.a ADD city nvarchar(20); ALTER TABLE dbo.b DROP COLUMN v")
    load(write_receipt, "dbo.a")
    # the table of a cannot be written, and b has nothing to load
    first = "ALTER TABLE dbo.a ADD city nvarchar(20)"
    assert load(write_receipt, "dbo.a") == {"dbo.a": [first]}
    assert (left(A), left(B)) == (1, 1)
    assert load(lambda spec: write_receipt(spec, A), "dbo.a") == {"dbo.a": [first]}

    second = "ALTER TABLE dbo.a ADD more int"
    task.group.change(second)
    load(write_receipt, "dbo.a")
    found = {"dbo.a": [first, second], "dbo.b": ["ALTER TABLE dbo.b DROP COLUMN v"]}
    assert load(with_changes_written, "dbo.a", "dbo.b") == found
    assert (left(A), left(B)) == (0, 0)
    assert load(with_changes_written, "dbo.a", "dbo.b") == {}


def test_what_a_job_has_told_of_a_target_the_next_one_is_handed(task: Task) -> None:
    told: list[dict[str, TakenBySink]] = []
    at = Lsn((1).to_bytes(10))
    taken = TakenBySink((TakenColumn(3, at, at),), fills=True)

    def answer(spec: JobSpec) -> None:
        told.extend(table.changes.told for table in spec.tables if table.name == A and table.changes is not None)
        write_receipt(spec)
        receipt = from_json(Receipt, job_files.open_path(spec.receipt_path).read_text())
        tables = tuple(dataclasses.replace(each, taken_told={"mirror": taken}) for each in receipt.tables)
        job_files.open_path(spec.receipt_path).write_text(to_json(dataclasses.replace(receipt, tables=tables)))

    task.master.job = answer
    for number in (3, 4):
        task.group.change(f"INSERT INTO dbo.a (id) VALUES ({number})")
        run(task)
    assert told[-1] == {"mirror": taken}
    stored = task.group.checkpoint(A)
    assert stored is not None
    assert stored.sinks["mirror"].taken_told == taken


def test_it_is_told_of_a_table_that_its_change_fails_and_of_a_quiet_one(task: Task) -> None:
    specs: list[JobSpec] = []
    task.master.job = lambda spec: (specs.append(spec), write_receipt(spec))[1]
    task.group.change("INSERT INTO dbo.b (id) VALUES (3)")
    assert run(task) == ([], [])
    # b keeps silent but for the drop of its column
    task.group.change("ALTER TABLE dbo.a ALTER COLUMN v bigint; ALTER TABLE dbo.b DROP COLUMN v")
    assert run(task) == ([], [])
    task.group.source.sql("CREATE TABLE dbo.tick (id int)")
    task.group.source.enable("dbo.tick")
    task.group.change("INSERT INTO dbo.tick VALUES (1)")
    told, _ = run(task)
    found = {
        each["table"]: [(change["kind"], change["column"], change["then"], change["now"]) for change in each["changes"]]
        for each in told
    }
    assert found == {
        "dbo.a": [("ALTER_TYPE", "v", "int(4,10,0)", "bigint(8,19,0)")],
        "dbo.b": [("DROP_COLUMN", "v", "int(4,10,0)", None)],
    }
    assert len(specs) == 1
    # until a run succeeds
    assert run(task) == (told, [])


def test_a_table_may_be_stopped_until_a_run_has_told_the_change(task: Task) -> None:
    strict = {"tables": [{"table": "dbo.a", "on_schema_change": "fail"}, "dbo.b"]}
    task.group.change("INSERT INTO dbo.b (id) VALUES (3)")
    run(task, **strict)
    # that a column must not be NULL any more stops nothing
    task.group.change("UPDATE dbo.a SET v = 0; ALTER TABLE dbo.a ALTER COLUMN v int NOT NULL")
    for number in (4, 5):
        task.group.change(f"INSERT INTO dbo.a (id, v) VALUES ({number}, 0)")
        told, _ = run(task, **strict)
    assert [each["changes"][0]["kind"] for each in told] == ["ALTER_NULLABILITY"]
    before = task.group.checkpoint(A)

    task.group.change("ALTER TABLE dbo.a ADD city nvarchar(20); ALTER TABLE dbo.b ADD city nvarchar(20)")
    for number in (6, 7):
        task.group.change(f"INSERT INTO dbo.a (id, v) VALUES ({number}, 0); INSERT INTO dbo.b (id) VALUES ({number})")
        with pytest.raises(AirflowFailException, match=r"not those that were seen last.\n  column city .* was added"):
            task.run(**strict)
        assert {name: row["status"] for name, row in task.rows.items()} == {"dbo.a": "failed", "dbo.b": "loaded"}
        task.state.clear()
    after = task.group.checkpoint(A)
    assert before is not None
    assert after is not None
    assert (after.seen_schema, after.position(["mirror"])) == (before.seen_schema, before.position(["mirror"]))

    # whoever goes on with it says so until it was told
    for number in (8, 9):
        task.group.change(f"INSERT INTO dbo.a (id, v) VALUES ({number}, 0)")
        told, _ = run(task)
    assert {each["table"] for each in told} >= {"dbo.a"}
    task.group.change("INSERT INTO dbo.a (id, v) VALUES (10, 0)")
    task.state.clear()
    task.run(**strict)
    assert task.rows["dbo.a"]["status"] == "loaded"


def test_a_table_is_stopped_before_the_window_that_holds_the_change(task: Task) -> None:
    strict = {"tables": ["dbo.a", "dbo.b"], "on_schema_change": "fail", "max_transactions": 1}

    def position() -> Any:
        stored = task.group.checkpoint(A)
        assert stored is not None
        return stored.position(["mirror"])

    def statuses(**given: Any) -> tuple[str, ...]:
        task.state.clear()
        with suppress(AirflowFailException):
            task.run(**{**strict, **given})
        return tuple(row["status"] for row in task.rows.values())

    run(task, **strict)
    first = task.group.change("INSERT INTO dbo.a (id) VALUES (3)")
    second = task.group.change("INSERT INTO dbo.a (id) VALUES (4)")
    # the catalogue is ahead of the capture
    task.group.source.sql("ALTER TABLE dbo.a ADD city nvarchar(20)")
    assert statuses() == ("loaded", "quiet")
    assert position() == first
    task.group.source.sql("INSERT INTO dbo.b (id) VALUES (3)")
    task.group.change("INSERT INTO dbo.a (id) VALUES (5)")
    assert statuses() == ("loaded", "quiet")
    assert position() == second
    # that of b lies above the statement
    for _ in range(2):
        assert statuses() == ("failed", "loaded")
        task.group.change("INSERT INTO dbo.b (id) SELECT MAX(id) + 1 FROM dbo.b")
        assert "ALTER TABLE dbo.a ADD city nvarchar(20)" in task.rows["dbo.a"]["error"]
    assert position() == second
    assert statuses(on_schema_change="warn")[0] == "loaded"
    assert position() > second


def test_what_is_not_loaded_yet_has_nothing_to_go_on_with(task: Task) -> None:
    """Its failures are all that is known of it: the columns of its first load are what counts."""
    strict = {"tables": ["dbo.bare"], "on_schema_change": "fail"}
    task.group.source.sql("CREATE TABLE dbo.bare (id int NOT NULL, v int)")
    task.group.source.enable("dbo.bare")
    task.group.change("INSERT INTO dbo.bare VALUES (1, 1)")
    with pytest.raises(AirflowFailException, match="key"):
        task.run(**strict)
    task.state.clear()
    task.group.change("ALTER TABLE dbo.bare ADD city nvarchar(20); INSERT INTO dbo.bare (id) VALUES (2)")
    with pytest.raises(AirflowFailException, match="key"):
        task.run(**strict)
    assert "seen last" not in task.rows["dbo.bare"]["error"]


def test_tries_of_one_task_tell_it_once(task: Task) -> None:
    run(task)
    task.group.change("ALTER TABLE dbo.a ADD city nvarchar(20); INSERT INTO dbo.a (id) VALUES (3)")
    task.master.job = lambda spec: write_receipt(spec, A)
    run(task)
    task.group.change("INSERT INTO dbo.a (id) VALUES (4)")
    (told,), heard = run(task)
    assert heard == []
    stored = task.group.checkpoint(A)
    assert stored is not None
    assert [event.kind for event in stored.untold] == ["schema"]
    # in the same task a try whose place was another one is the same event
    state = TaskState({"task_state_store": task.state})  # type: ignore[typeddict-item]
    first = state.told_operations([{"kind": "schema", **told}])
    assert state.told_operations([{"kind": "schema", **told, "lsn": "0x1"}]) == first


def test_a_run_makes_the_instance_that_has_a_new_column(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    def warned(**given: Any) -> list[str]:
        ti = TaskInstance()
        task.operator(on_schema_change="evolve", **given).execute({"task_state_store": State(), "ti": ti})  # type: ignore[arg-type]
        return [text for text in ti.pushed["summary"]["warnings"] if "instance" in text]

    assert warned() == []
    task.group.change("ALTER TABLE dbo.a ADD city nvarchar(20); INSERT INTO dbo.a (id) VALUES (3)")
    assert warned(admin_conn_id="nobody")[0].startswith("no capture instance is made by nobody: ")
    elsewhere = Source(task.group.source.server, f"{task.group.source.name}_other")
    monkeypatch.setenv("AIRFLOW_CONN_ELSEWHERE", elsewhere.airflow_connection().as_json())
    (told,) = warned(admin_conn_id="elsewhere")
    elsewhere.close()
    assert told.startswith(f"no capture instance is made by elsewhere: elsewhere reaches database {elsewhere.name} on ")
    task.group.change("INSERT INTO dbo.a (id) VALUES (4)")
    assert warned() == ["dbo.a: capture instance dbo_a__mc2 was made with city"]
    made = task.group.source.sql(
        "SELECT capture_instance FROM cdc.change_tables WHERE capture_instance LIKE N'dbo[_]a%'"
    )
    assert sorted(name for (name,) in made) == ["dbo_a", "dbo_a__mc2"]
