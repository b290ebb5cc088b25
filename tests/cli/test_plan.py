"""``mssql-cdc plan``: what a load would do, and that it does nothing."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from airflow_provider_mssql_cdc.cli import main
from airflow_provider_mssql_cdc.cli.checkpoint import MetadataVariables
from airflow_provider_mssql_cdc.core.checkpoint import Failure
from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.database import Survey
from airflow_provider_mssql_cdc.core.feed import Feed
from airflow_provider_mssql_cdc.core.resting import fingerprint
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.hooks.change_source import CdcSource, ChangeSource
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator
from tests.support.hooks.source import CONN_ID, TARGET, Source
from tests.support.operators.group import A, B, Group

DAG = """
from airflow.sdk import DAG, task

from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator
from airflow_provider_mssql_cdc.operators.task_group import MsSqlCdcTaskGroup

with DAG("shop"):
    MsSqlCdcTaskGroup("group", tables=["dbo.*"], target={target!r}, mssql_conn_id={conn!r}, on_disabled="enable")
    MsSqlCdcLoadOperator(task_id="said", tables="{{{{ params.t }}}}", target={target!r})
    MsSqlCdcLoadOperator(task_id="zeros", tables="a", target={target!r}, mssql_conn_id={conn!r}, upto="0x" + "0" * 20)
    MsSqlCdcLoadOperator(task_id="replay", tables="a", target={target!r}, shapes=["history"], replay=True)

    @task
    def other():
        pass

    other()
"""


@pytest.fixture
def group(source: Source, airflow_db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Group:
    """Two tables with an event each and a DAG that loads them; the checkpoints lie in Airflow's database."""
    (tmp_path / "shop.py").write_text(DAG.format(target=TARGET, conn=CONN_ID))
    monkeypatch.setenv(f"AIRFLOW_CONN_{CONN_ID.upper()}", source.airflow_connection().as_json())
    made = Group(source)
    made.make("dbo.a", "dbo.b")
    variables = MetadataVariables()
    for key in variables.keys("mssql"):
        variables.delete(key)
    made.store = CheckpointStore(variables)
    return made


def plan(tmp_path: Path, *more: str, task: str = "group.load") -> int:
    return main(["plan", "--dag", "shop", "--task", task, "--dags-folder", str(tmp_path), *more])


def test_it_shows_the_steps_of_each_table_and_does_none(
    group: Group, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded = group.loaded(A)
    cut = group.change("INSERT INTO dbo.a (id) VALUES (2); CREATE TABLE dbo.off (id int NOT NULL PRIMARY KEY)")
    variables = MetadataVariables()
    stored = {key: variables.get(key) for key in variables.keys("mssql")}

    assert plan(tmp_path) == 0

    assert capsys.readouterr().out.splitlines() == [
        f"to {cut}",
        f"dbo.a: read mirror ({loaded}, {cut}]",
        "dbo.b: copy mirror for the first time, then read mirror from its low on, to the cut",
        "dbo.off: change data capture is off: a run enables it",
        'on_schema_change="warn": dbo.a, dbo.b',
        "A marker in a target may shorten this: the job goes on from there, and loads nothing twice.",
    ]
    assert {key: variables.get(key) for key in variables.keys("mssql")} == stored
    tracked = group.source.sql("SELECT name FROM sys.tables WHERE is_tracked_by_cdc = 1 ORDER BY name")
    assert [name for (name,) in tracked] == ["a", "b"]

    assert plan(tmp_path, "--table", "dbo.A") == 0
    assert capsys.readouterr().out.splitlines()[1:-1] == [
        f"dbo.a: read mirror ({loaded}, {cut}]",
        'on_schema_change="warn": dbo.a',
    ]


def test_a_table_with_nothing_to_load_and_one_that_fails_say_so(
    group: Group, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group.loaded(A, B)
    MetadataVariables().set(group.source.identity(B).variable, json.dumps({"version": 99}))
    assert plan(tmp_path) == 0
    _, first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == f"{A}: nothing to do"
    assert second.startswith(f"{B}: fails: the checkpoint has version 99")


def test_it_says_what_becomes_of_columns(group: Group, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group.loaded(A, B)
    group.source.sql("ALTER TABLE dbo.a ADD note int")
    assert plan(tmp_path, "--table", "dbo.a") == 0
    assert capsys.readouterr().out.splitlines()[1:-1] == [
        "dbo.a: nothing to do",
        "dbo.a: warning: column note is not captured by dbo_a",
        'on_schema_change="warn": dbo.a',
    ]


def test_an_advice_names_the_whole_command(group: Group, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group.loaded(A, B)
    stored = group.checkpoint(A)
    assert stored is not None
    witness = stored.sinks["mirror"].witness
    assert witness is not None
    earlier = dataclasses.replace(witness, time=datetime.datetime(2001, 1, 1))
    group.store.overwrite(
        dataclasses.replace(stored, sinks={"mirror": dataclasses.replace(stored.sinks["mirror"], witness=earlier)})
    )
    assert plan(tmp_path, "--table", str(A)) == 0
    said = "".join(capsys.readouterr().out.splitlines()[1:-1])
    assert said.count(f"{A}: ") == 1
    where = f"--conn {CONN_ID} --database {group.source.name} --table {A} --target {TARGET}"
    assert f"`mssql-cdc checkpoint reset {where}`" in said
    assert f"`mssql-cdc checkpoint set {where} --position LSN`" in said


def test_what_rests_names_its_table_once(group: Group, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group.loaded(A, B)
    stored = group.checkpoint(A)
    assert stored is not None
    with group.source.hook() as hook:
        seen = fingerprint(hook.capture_instances([A]))
    group.store.overwrite(
        stored.failing(["mirror"], Failure(f"{A}: no.", datetime.datetime.now(datetime.UTC), seen, None, False))
    )
    assert plan(tmp_path, "--table", str(A)) == 0
    assert capsys.readouterr().out.splitlines()[1:-1] == [f"{A}: mirror rests: no."]


def test_tables_are_read_from_the_sources_of_the_task(
    group: Group, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class OfA(CdcSource):
        def discover(self, survey: Survey) -> dict[TableName, Sequence[Feed]]:
            return {name: feeds for name, feeds in super().discover(survey).items() if name == A}

    def of_a(_: MsSqlCdcLoadOperator, hook: MsSqlCdcHook) -> Sequence[ChangeSource]:
        return (OfA(hook),)

    monkeypatch.setattr(MsSqlCdcLoadOperator, "sources", of_a)
    assert plan(tmp_path) == 0
    _, first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{A}: copy mirror")
    assert second == f"{B}: change data capture is off: a run enables it"


@pytest.mark.parametrize("said", [True, False], ids=["said", "by a template"])
def test_it_goes_to_the_cut_that_the_dag_says_else_to_the_newest_position(
    group: Group, tmp_path: Path, capsys: pytest.CaptureFixture[str], said: bool
) -> None:
    loaded = group.loaded(A, B)
    cut = group.change("INSERT INTO dbo.a (id) VALUES (2)")
    newest = group.change("INSERT INTO dbo.a (id) VALUES (3)")
    upto = str(cut) if said else "{{ params.upto }}"
    (tmp_path / "upto.py").write_text(
        "from airflow.sdk import DAG\n"
        "from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator\n"
        "with DAG('upto'):\n"
        f"    MsSqlCdcLoadOperator(task_id='load', tables='dbo.*', target={TARGET!r}, mssql_conn_id={CONN_ID!r},"
        f" upto={upto!r})\n"
    )
    assert main(["plan", "--dag", "upto", "--task", "load", "--dags-folder", str(tmp_path)]) == 0
    to = cut if said else newest
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert (first, second) == (f"to {to}", f"{A}: read mirror ({loaded}, {to}]")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"task": "nope"}, "DAG shop has no task nope: "),
        ({"task": "group.wait"}, "task group.wait is no MsSqlCdcLoadOperator"),
        ({"task": "other"}, "task other is no MsSqlCdcLoadOperator"),
        ({"task": "zeros"}, "upto='0x00000000000000000000' is no position"),
        ({"task": "replay"}, "its window follows from the data interval of its run"),
        ({"task": "said"}, "tables of task said is said by its run alone"),
        ({"more": ("--table", "dbo.nope")}, "dbo.nope is none of the task's tables"),
        ({"more": ("--table", "a.b.c.d")}, "table pattern"),
    ],
)
def test_what_cannot_be_shown_is_one_line(
    group: Group, tmp_path: Path, capsys: pytest.CaptureFixture[str], given: dict, said: str
) -> None:
    assert plan(tmp_path, *given.get("more", ()), task=given.get("task", "group.load")) == 2
    out, err = capsys.readouterr()
    (line,) = [line for line in err.splitlines() if line.startswith("mssql-cdc plan: ")]
    assert said in line
    assert out == ""


def test_a_dag_that_is_not_there_is_said_with_what_keeps_files_from_being_read(
    group: Group, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.py").write_text("from airflow.sdk import DAG\nnothing_of_this_name\n")
    assert main(["plan", "--dag", "other", "--task", "load", "--dags-folder", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "there is no DAG other in" in error
    assert "nothing_of_this_name" in error
