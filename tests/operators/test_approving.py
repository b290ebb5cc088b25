"""The example DAG that lets a person approve capture instances: what it reads of proposals, and what it runs."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from tests.operators.test_proposals import PROPOSE, add, heard
from tests.support.hooks.source import CONN_ID
from tests.support.operators.tries import Task

DAGS = Path(__file__).parents[2] / "dags"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DAGS))
    spec = importlib.util.spec_from_file_location("shop_approve_columns", DAGS / "shop_approve_columns.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules.pop("shop_lake", None)
    return module


def read(example: ModuleType, *extras: dict[str, Any]) -> list[str]:
    """What the DAG takes from the events that have started it."""
    function = example.approve.dag.get_task("proposed").python_callable
    found: list[str] = function({example.operations: [SimpleNamespace(extra=extra) for extra in extras]})
    return found


def test_what_is_proposed_is_made_once_it_is_approved(
    task: Task, example: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard(task)
    add(task, "city")
    events = heard(task)
    # the same load tells of other things, too, and Airflow may merge the events of several runs
    told = {"kind": "proposal", "events": events}
    (statement,) = read(example, {"kind": "schema", "events": []}, told, told)

    fields = json.loads(task.group.source.environment()[f"AIRFLOW_CONN_{CONN_ID.upper()}"])
    monkeypatch.setenv("AIRFLOW_CONN_MSSQL_ADMIN", json.dumps(fields))
    make = example.make
    make.sql = [statement]
    make.execute({})
    made = task.group.source.sql("SELECT capture_instance FROM cdc.change_tables WHERE capture_instance LIKE '%mc2'")
    assert made == [("dbo_a__mc2",)]
    # twice is as good as once, and nothing is proposed any more
    make.execute({})
    task.group.change("INSERT INTO dbo.a (id) VALUES (9)")
    assert heard(task, **PROPOSE) == []


@pytest.mark.parametrize(
    "extra",
    [
        {"kind": "schema", "events": [{"table": "dbo.a"}]},
        {"kind": "proposal", "events": [{"table": "dbo.a", "instance": None, "statement": None}]},
    ],
)
def test_nobody_is_asked_where_nothing_can_be_made(example: ModuleType, extra: dict[str, Any]) -> None:
    with pytest.raises(AirflowSkipException):
        read(example, extra)


def test_a_rejected_proposal_runs_nothing(example: ModuleType) -> None:
    assert example.make.upstream_task_ids == {"approve", "proposed"}
    assert not example.approve.fail_on_reject
    assert "body" in example.approve.template_fields
