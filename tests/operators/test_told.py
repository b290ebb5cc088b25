"""What a run tells: in its summary, its log and its errors."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint
from airflow_provider_mssql_cdc.core.codec import to_json
from airflow_provider_mssql_cdc.core.exceptions import CaptureLateError, LoadFailedError
from airflow_provider_mssql_cdc.core.receipt import EVERY, JobError, Receipt, TableReceipt
from airflow_provider_mssql_cdc.core.resting import MISSING
from airflow_provider_mssql_cdc.core.spec import JobSpec
from airflow_provider_mssql_cdc.core.summary import Summary, TableSummary
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.operators import job_files
from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator
from tests.support.hooks.source import CONN_ID, TARGET
from tests.support.operators.group import A
from tests.support.operators.master import write_receipt
from tests.support.operators.tries import Task

GONE = TableName("dbo", "Ax")
AT_ONCE = datetime.timedelta(microseconds=1)


def failed(task: Task, **given: Any) -> str:
    """The text with which a run fails for good."""
    with pytest.raises(AirflowFailException) as error:
        task.run(**given)
    return str(error.value)


def with_counts(spec: JobSpec) -> None:
    """Answer as a job that loaded one row into each table."""
    write_receipt(spec)
    receipt = json.loads(job_files.open_path(spec.receipt_path).read_text())
    for table in receipt["tables"]:
        table["counts"] = {"events": 1, "inserted": 1, "updated": 0, "deleted": 0, "copied": 0}
        table["windows"] = ["(0x1, 0x2]"]
        table["seconds"] = {"read": 1.25, "commit": 0.5}
        table["warnings"] = ["column extra is not captured by dbo_a"]
    job_files.open_path(spec.receipt_path).write_text(json.dumps(receipt))


def test_every_table_of_every_run_has_all_keys(task: Task) -> None:
    source = task.group.source
    source.sql("CREATE TABLE dbo.off (id int NOT NULL PRIMARY KEY)")
    source.sql("CREATE TABLE dbo.new (id int NOT NULL PRIMARY KEY)")
    source.enable("dbo.new")
    source.sql("DROP TABLE dbo.b")
    failed(task, tables=["dbo.a", "dbo.off", "dbo.new", "dbo.b"])
    summary = task.instance.pushed["summary"]
    assert set(summary) == set(Summary.__annotations__)
    assert all(set(row) == set(TableSummary.__annotations__) for row in summary["tables"])
    assert {row["table"]: row["status"] for row in summary["tables"]} == {
        "dbo.a": "loaded",
        "dbo.b": "failed",
        "dbo.new": "waiting",
        "dbo.off": "failed",
    }
    assert task.rows["dbo.a"]["feed"] == "dbo_a"
    assert task.rows["dbo.a"]["schema_hash"].startswith("1:")
    task.run(tables=["dbo.a", "dbo.off"], on_disabled="skip")
    assert {name: row["status"] for name, row in task.rows.items()} == {"dbo.a": "quiet", "dbo.off": "skipped"}
    assert all(set(row) == set(TableSummary.__annotations__) for row in task.rows.values())


def test_the_docs_show_the_summary_as_it_is() -> None:
    text = (Path(__file__).parents[2] / "docs" / "summary.md").read_text()
    shown = json.loads(re.findall(r"```json\n(.*?)```", text, re.DOTALL)[0])
    assert list(shown) == list(Summary.__annotations__)
    assert list(shown["tables"][0]) == list(TableSummary.__annotations__)


def test_the_log_says_what_became_of_each_table_and_shape(task: Task, capsys: pytest.CaptureFixture[str]) -> None:
    task.master.job = with_counts
    cut = task.group.source.max_lsn()
    task.run()
    said = capsys.readouterr().out
    assert f"dbo.a mirror: loaded, (0x1, 0x2], 1 inserted, now at {cut}, 1.8 s for the table" in said
    assert "dbo.a: column extra is not captured by dbo_a" in said
    assert task.instance.pushed["summary"]["warnings"] == ["dbo.a: column extra is not captured by dbo_a"]


def test_a_named_table_that_is_not_there_fails_alone_and_is_remembered(task: Task) -> None:
    told = failed(task, tables=["dbo.a", {"table": "dbo.Ax", "key": ["id"]}, "dbo.z*"])
    source = task.group.source
    user = source.sql("SELECT USER_NAME()")[0][0]
    assert told == (
        "1 of 2 table(s) failed; of the others, 1 loaded:\n"
        f"  dbo.Ax: it does not exist in {source.name}, or {user} may not see it. It sees dbo.a. Correct "
        "tables, or GRANT SELECT on it; a pattern with * may match nothing."
    )
    assert task.rows["dbo.a"]["status"] == "loaded"
    assert task.instance.pushed["summary"]["warnings"] == ["pattern 'dbo.z*' matches no table"]
    stored = task.group.checkpoint(GONE)
    assert stored is not None
    noted = stored.failure()
    assert noted is not None
    assert noted.seen == MISSING

    # the table comes under the database's own spelling
    source.sql("CREATE TABLE dbo.ax (id int NOT NULL PRIMARY KEY)")
    source.enable("dbo.ax")
    source.sql("INSERT INTO dbo.ax VALUES (1)")
    source.scan()
    task.run(tables=["dbo.a", "dbo.Ax"])
    assert task.group.checkpoint(GONE) is None
    assert task.rows["dbo.ax"]["status"] == "loaded"


def test_an_excluded_table_is_not_missed_and_one_in_two_spellings_once(task: Task) -> None:
    for exclude in (["dbo.Gone"], ["dbo.go*"], "gone"):
        task.run(tables=["dbo.*", "dbo.Gone"], exclude=exclude)
    told = failed(task, tables=["dbo.*", "dbo.Gone", "DBO.gone", "gone"], exclude=["sales.gone", "dbo.g"])
    assert told.startswith("1 of 3 table(s) failed")
    assert "It sees no table of a name that is near." in told


def test_a_missing_table_that_is_no_longer_named_is_forgotten(task: Task) -> None:
    failed(task, tables=["dbo.a", "Ax"])
    failed(task, tables=["dbo.a", "dbo.Ax"])
    assert task.group.checkpoint(GONE) is not None
    task.run(tables=["dbo.a"])
    assert task.group.checkpoint(GONE) is None


def test_it_is_forgotten_too_where_the_task_is_cleared_or_its_schema_has_a_dot(task: Task) -> None:
    dotted = TableName("sa.les", "x")
    failed(task, tables=["dbo.a", "dbo.Ax", "[sa.les].x"])
    assert [task.group.checkpoint(name) is None for name in (GONE, dotted)] == [False, False]
    # of a task that is cleared Airflow drops what it pushed
    task.instance.pushed, task.instance.before = {}, {}
    task.run(tables=["dbo.a"], again=True)
    assert [task.group.checkpoint(name) is None for name in (GONE, dotted)] == [True, True]


def test_a_loaded_table_that_is_dropped_keeps_its_positions(task: Task) -> None:
    task.run()
    before = task.group.checkpoint(A)
    source = task.group.source
    source.sql("DROP TABLE dbo.a")
    assert "dbo.a: it does not exist" in failed(task, tables=["dbo.a", "dbo.b"])
    task.run(tables=["dbo.b"])
    stored = task.group.checkpoint(A)
    assert stored is not None
    assert before is not None
    assert stored.failing(stored.sinks, None).sinks == before.sinks
    assert stored.failure() is not None


def test_without_any_table_the_run_fails(task: Task) -> None:
    assert "no user table" in failed(task, tables=["dbo.gone", "sales.gone"])


def test_only_what_was_loaded_is_said_to_be_loaded(task: Task) -> None:
    def refused(spec: JobSpec) -> None:
        tables = tuple(
            TableReceipt(t.name, failed={EVERY: JobError("X", f"{t.name}: no.", False)}) for t in spec.tables
        )
        job_files.open_path(spec.receipt_path).write_text(to_json(Receipt(spec.id, tables)))

    task.master.job = refused
    with pytest.raises(LoadFailedError) as error:
        task.run()
    assert str(error.value) == "1 of 2 table(s) failed; of the others, 1 without anything new:\n  dbo.a: no."
    with pytest.raises(LoadFailedError) as error:
        task.run(tables=["dbo.a"])
    assert str(error.value) == "1 of 1 table(s) failed:\n  dbo.a: no."
    source = task.group.source
    source.sql("CREATE TABLE dbo.off (id int NOT NULL PRIMARY KEY)")
    source.sql("CREATE TABLE dbo.new (id int NOT NULL PRIMARY KEY)")
    source.enable("dbo.new")
    with pytest.raises(LoadFailedError) as error:
        task.run(tables=["dbo.*"], on_disabled="skip")
    assert str(error.value) == (
        "1 of 4 table(s) failed; of the others, 1 without anything new, 1 skipped, 1 waiting for the capture:\n"
        "  dbo.a: no."
    )


def test_an_advice_names_the_whole_command(task: Task) -> None:
    def refused(spec: JobSpec) -> None:
        error = JobError("X", "dbo.a: no. Run `mssql-cdc checkpoint reset --shape mirror`.", True)
        job_files.open_path(spec.receipt_path).write_text(
            to_json(Receipt(spec.id, (TableReceipt(A, failed={EVERY: error}),)))
        )

    task.master.job = refused
    told = failed(task)
    where = f"--conn {CONN_ID} --database {task.group.source.name} --table dbo.a --target {TARGET}"
    command = f"`mssql-cdc checkpoint reset {where} --shape mirror`"
    stored = task.group.checkpoint(A)
    assert stored is not None
    noted = stored.failure()
    assert noted is not None
    assert all(command in text for text in (told, task.rows["dbo.a"]["error"], noted.reason))


def test_a_late_capture_is_told_once_in_summary_and_log(task: Task, capsys: pytest.CaptureFixture[str]) -> None:
    summary = task.run(max_lag=AT_ONCE)
    assert summary["late"] in summary["warnings"]
    assert f"the capture of {task.group.source.name} is late" in summary["late"]
    assert capsys.readouterr().out.count(" is late: ") == 1
    assert task.run(max_lag=datetime.timedelta(hours=1))["late"] is None


def test_a_late_capture_fails_the_run_after_what_is_there_was_loaded(task: Task) -> None:
    cut = task.group.source.max_lsn()
    with pytest.raises(CaptureLateError, match=r"what is there was loaded, but the capture of \w+ is late"):
        task.run(max_lag=AT_ONCE, on_lag="fail")
    assert (task.position(A), task.events()) == (cut, None)
    # Airflow hands on events of successful tasks only: the next one tells them
    task.run()
    assert task.events() == {
        "dbo.a": {"after": None, "upto": str(cut)},
        "dbo.b": {"after": None, "upto": str(task.base)},
    }


def test_a_late_capture_is_told_beside_failed_tables(task: Task) -> None:
    task.master.job = lambda spec: write_receipt(spec, A)
    told = failed(task, max_lag=AT_ONCE, on_lag="fail")
    assert "dbo.a: the target is no table" in told
    assert " is late: " in told


def test_a_try_that_waits_for_an_earlier_job_tells_of_the_capture_too(task: Task) -> None:
    spec = task.submitted(A)
    write_receipt(spec)
    assert task.run(max_lag=AT_ONCE)["late"] is not None


@pytest.mark.parametrize("given", [{"max_lag": 0}, {"on_lag": "x"}])
def test_what_has_no_meaning_is_refused_when_the_dag_is_parsed(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(given))):
        MsSqlCdcLoadOperator(task_id="load", tables=["a"], target="iceberg://lake/shop", **given)


def test_a_missing_spark_connection_is_found_before_anything_is_asked(task: Task) -> None:
    told = failed(task, conn_id="not_there", mssql_conn_id="not_there_either")
    assert "there is no Airflow connection 'not_there', which says where Spark runs." in told
    assert "airflow connections add not_there --conn-type spark" in told
    assert task.master.submissions == []


def test_a_checkpoint_without_sinks_is_kept_as_long_as_its_table_is_named(task: Task) -> None:
    source = task.group.source
    source.sql("CREATE TABLE dbo.off (id int NOT NULL PRIMARY KEY)")
    off = TableName("dbo", "off")
    failed(task, tables=["dbo.*"])
    failed(task, tables=["dbo.*"])
    stored = task.group.checkpoint(off)
    assert isinstance(stored, Checkpoint)
    task.run(tables=["dbo.a"])
    assert task.group.checkpoint(off) is None
