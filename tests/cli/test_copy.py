"""``mssql-cdc copy``: what people ask of copies, and what planning and waiting make of it."""

from __future__ import annotations

import dataclasses
import datetime
from pathlib import Path

from airflow_provider_mssql_cdc.cli import main
from airflow_provider_mssql_cdc.cli.checkpoint import MetadataVariables
from airflow_provider_mssql_cdc.core.checkpoint import CopyState, Failure
from airflow_provider_mssql_cdc.core.copy_requests import KEY_PREFIX, CopyRequests
from airflow_provider_mssql_cdc.core.spec import COPY, PAUSE, STOP
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.planning import plan_load
from tests.cli import test_plan
from tests.support.operators.group import A, B, Group

group = test_plan.group
NOW = datetime.datetime.now(datetime.UTC)


def copy(tmp_path: Path, action: str, *more: str, task: str = "group.load") -> int:
    return main(["copy", action, "--dag", "shop", "--task", task, "--dags-folder", str(tmp_path), *more])


def stored(group: Group, table=A):
    return CopyRequests(MetadataVariables()).load(group.source.identity(table))


def planned(group: Group) -> RunPlan:
    with group.source.hook() as hook:
        return plan_load(hook, group.store, group.request(), None)


def asked(group: Group) -> dict[str, str]:
    return {str(spec.name): spec.asked.wanted for spec in planned(group).specs if spec.asked is not None}


def end(group: Group, table=A) -> str:
    """Note that the copy of a table was ended; its id."""
    request = stored(group, table)
    found = group.checkpoint(table)
    group.store.overwrite(dataclasses.replace(found, ended_copies=(f"{request.id} COMPLETED",), copies=()))
    return request.id


def test_a_copy_is_asked_for_paused_and_resumed_and_a_second_one_waits(group, tmp_path, capsys):
    group.loaded(A, B)
    assert planned(group).specs == []

    assert copy(tmp_path, "start", "--table", "dbo.a") == 0
    assert "a copy is asked for" in capsys.readouterr().out
    first = stored(group)
    assert (first.wanted, first.of_loaded, len(first.id)) == (COPY, True, 12)
    assert stored(group, B) is None
    # though nothing happened in the table
    assert asked(group) == {"dbo.a": COPY}

    assert copy(tmp_path, "start") == 2
    error = capsys.readouterr().err
    assert f"dbo.a: copy {first.id} stands in the way" in error
    # all of them or none
    assert stored(group, B) is None

    assert copy(tmp_path, "pause", "--table", "dbo.a") == 0
    assert (stored(group).id, stored(group).wanted) == (first.id, PAUSE)
    assert asked(group) == {}
    assert copy(tmp_path, "resume") == 0
    assert (stored(group).id, stored(group).wanted) == (first.id, COPY)
    assert copy(tmp_path, "status") == 0
    out = capsys.readouterr().out
    assert f"copy {first.id}" in out
    assert "dbo.b -> " in out
    assert out.splitlines()[-1].endswith(": no copy")

    end(group)
    assert asked(group) == {}
    assert copy(tmp_path, "status", "--table", "dbo.a") == 0
    assert capsys.readouterr().out.strip().endswith(": COMPLETED")
    assert copy(tmp_path, "start", "--table", "dbo.a") == 0
    assert stored(group).id != first.id


def test_a_copy_of_a_first_load_is_paused_resumed_and_stopped(group, tmp_path, capsys):
    group.loaded(A)
    under_way = CopyState("0123456789ab", "/copies", position=group.source.max_lsn(), chunks=3, shapes=("mirror",))
    found = dataclasses.replace(group.checkpoint(A), sinks={}, copies=(under_way,))
    group.store.overwrite(found)

    assert copy(tmp_path, "pause") == 0
    said = capsys.readouterr()
    assert "dbo.b" not in said.out, "none is under way there"
    assert (stored(group).id, stored(group).wanted, stored(group).of_loaded) == (under_way.id, PAUSE, False)
    assert asked(group) == {"dbo.a": PAUSE}, "it is a first load, and keeps its changes"
    assert copy(tmp_path, "status", "--table", "dbo.a") == 0
    assert "3 chunks are there" in capsys.readouterr().out
    assert copy(tmp_path, "resume") == 0
    assert stored(group) is None
    assert copy(tmp_path, "resume") == 2
    assert "no copy is paused" in capsys.readouterr().err

    assert copy(tmp_path, "stop", "--table", "dbo.a") == 0
    assert (stored(group).wanted, stored(group).of_loaded) == (STOP, False)
    assert asked(group) == {"dbo.a": STOP}
    for action in ("start", "pause", "stop"):
        assert copy(tmp_path, action, "--table", "dbo.a") == 2
        assert "stop" in capsys.readouterr().err
    end(group)
    group.store.overwrite(group.checkpoint(A).failing(["mirror"], Failure("it was stopped", NOW, stopped=True)))
    # however long ago that was, and whoever asks for what failed
    with group.source.hook() as hook:
        later = plan_load(hook, group.store, group.request(asked=True), None)
    assert later.turns[A].resting.keys() == {"mirror"}
    assert asked(group) == {}
    assert copy(tmp_path, "start", "--table", "dbo.a") == 0
    assert group.checkpoint(A).failure() is None
    assert asked(group) == {"dbo.a": COPY}


def test_a_reset_forgets_that_a_copy_was_stopped(group, tmp_path):
    under_way = CopyState("0123456789ab", "/copies", position=group.source.max_lsn(), shapes=("mirror",))
    group.loaded(A)
    group.store.overwrite(dataclasses.replace(group.checkpoint(A), sinks={}, copies=(under_way,)))
    assert copy(tmp_path, "stop", "--table", "dbo.a") == 0
    identity = group.source.identity(A)
    place = ["--conn", identity.connection, "--database", identity.database, "--table", "dbo.a"]
    assert main(["checkpoint", "reset", *place, "--target", identity.target]) == 0
    assert stored(group) is None
    assert asked(group) == {}


def test_what_cannot_be_asked_is_told(group, tmp_path, capsys):
    group.loaded(A, B)
    assert copy(tmp_path, "start", "--table", "dbo.c") == 2
    assert "dbo.c is none of the tables of task group.load: dbo.a, dbo.b" in capsys.readouterr().err
    assert copy(tmp_path, "pause") == 2
    assert "dbo.a: no copy is under way, and none is asked for" in capsys.readouterr().err
    assert copy(tmp_path, "start", task="other") == 2
    assert "is no MsSqlCdcLoadOperator" in capsys.readouterr().err
    assert MetadataVariables().keys(KEY_PREFIX) == []


def test_a_request_that_cannot_be_read_fails_its_table_alone(group, tmp_path):
    group.loaded(A, B)
    assert copy(tmp_path, "start") == 0
    (key,) = [k for k in MetadataVariables().keys(KEY_PREFIX) if group.source.identity(A).short in k]
    MetadataVariables().set(key, "{")
    plan = planned(group)
    assert [str(name) for name in plan.failures] == ["dbo.a"]
    assert key in str(plan.failures[A])
    assert asked(group) == {"dbo.b": COPY}
