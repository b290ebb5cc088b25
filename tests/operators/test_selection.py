"""What of a row is loaded, as the operator is told: which way the salt goes, and what a run is planned with."""

from __future__ import annotations

import json
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_mssql_cdc.core.codec import to_json
from airflow_provider_mssql_cdc.core.selection import salt_check
from airflow_provider_mssql_cdc.core.spec import JobSpec
from airflow_provider_mssql_cdc.hooks.watch import Watch
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator
from airflow_provider_mssql_cdc.operators.planning import plan_load
from airflow_provider_mssql_cdc.sensors.mssql_cdc import MsSqlCdcSensor
from airflow_provider_mssql_cdc.triggers.mssql_cdc import watch_of
from tests.support.hooks.source import TARGET, Source
from tests.support.operators.group import A, B, Group
from tests.support.operators.master import properties, write_receipt
from tests.support.operators.tries import Task

SALT = "s4lt-c4nary of some length"


@pytest.fixture
def group(source: Source) -> Group:
    """Two tables, each with one event."""
    made = Group(source)
    made.make("dbo.a", "dbo.b")
    return made


def plan(group: Group, *entries: dict[str, Any]) -> RunPlan:
    with group.source.hook() as hook:
        return plan_load(hook, group.store, group.request("dbo.*", *entries), None)


def test_the_salt_goes_by_the_properties_file_alone(
    task: Task, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_PEPPER", json.dumps({"conn_type": "generic", "password": SALT}))
    told: list[tuple[JobSpec, str]] = []

    def job(spec: JobSpec) -> None:
        told.append((spec, properties(task.master.submissions[0])))
        write_receipt(spec)

    task.master.job = job
    task.group.store.delete(task.group.source.identity(A))
    summary = task.run(
        tables=["dbo.*", {"table": "dbo.a", "mask": {"ID": "hash"}, "rename": {"v": "value"}}], salt_conn_id="pepper"
    )

    spec, told_by_file = told[0]
    (table,) = spec.tables
    assert table.selection.describe() == ("v renamed to value", "id masked by hash", f"salt {salt_check(SALT)}")
    assert f"spark.mssql_cdc.salt={SALT.replace(' ', chr(92) + 'u0020')}\n" in told_by_file
    seen = [to_json(spec), str(summary), caplog.text, *task.master.submissions, str(task.state), str(task.emitted)]
    assert [text for text in seen if "s4lt-c4nary" in text] == []
    stored = task.group.checkpoint(A)
    assert stored is not None
    sink = stored.sinks["mirror"]
    assert (sink.selection_hash, sink.selection) == (table.selection.hash, table.selection.describe())


@pytest.mark.parametrize(("password", "message"), [("", "has no password"), ("short", "less than 16 characters")])
def test_a_connection_without_a_good_salt_fails_for_good(
    task: Task, monkeypatch: pytest.MonkeyPatch, password: str, message: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_PEPPER", json.dumps({"conn_type": "generic", "password": password}))
    with pytest.raises(AirflowFailException, match=message):
        task.run(tables=[{"table": "dbo.a", "mask": {"id": "hash"}}], salt_conn_id="pepper")
    assert task.master.submissions == []


def test_another_choice_fails_its_table_alone_though_it_is_quiet(group: Group) -> None:
    group.loaded(A, B)

    planned = plan(group, {"table": "dbo.a", "columns": "id"})

    assert list(planned.failures) == [A]
    assert "new: columns id" in str(planned.failures[A])
    assert "checkpoint reset" in str(planned.failures[A])
    assert list(planned.candidates) == [B]


def test_a_choice_that_a_table_cannot_have_fails_it_alone(group: Group) -> None:
    planned = plan(group, {"table": "dbo.a", "columns": ["v"]}, {"table": "b", "where": [("v", ">", 1)]})

    assert list(planned.failures) == [A]
    (spec,) = planned.specs
    assert spec.selection.describe() == ("rows with v > '1'",)


def test_the_sensor_takes_the_same() -> None:
    entry = {"table": "sales.a", "columns": ["id"], "where": [("id", "<", 5)], "mask": {"id": "hash"}}
    group: dict[str, Any] = {"tables": ["sales.*", entry], "target": TARGET, "salt_conn_id": "pepper"}

    wait = MsSqlCdcSensor(task_id="wait", **group)
    load = MsSqlCdcLoadOperator(task_id="load", **group)

    watch = watch_of(wait)
    assert isinstance(watch, Watch)
    assert [entry.text for entry in watch.request.entries] == ["sales.*", "sales.a"]
    assert load.tables == group["tables"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"mask": {"v": "hash"}}, "salt_conn_id"),
        ({"where": [("v", "between", 1)]}, "'between' is none of"),
        ({"columns": []}, "at least one"),
        ({"masks": {"v": "drop"}}, "did you mean mask"),
    ],
)
def test_what_cannot_be_right_is_refused_when_the_dag_is_parsed(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MsSqlCdcLoadOperator(task_id="load", tables=["dbo.*", {"table": "dbo.a", **entry}], target=TARGET)
