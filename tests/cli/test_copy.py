"""``mssql-cdc copy``: what people ask of copies, and what planning and waiting make of it."""

from __future__ import annotations

import dataclasses
import datetime
import socket
from pathlib import Path

from airflow_provider_mssql_cdc.cli import main
from airflow_provider_mssql_cdc.cli.checkpoint import MetadataVariables
from airflow_provider_mssql_cdc.core.checkpoint import CopyState, Failure
from airflow_provider_mssql_cdc.core.copy_requests import KEY_PREFIX, CopyRequests
from airflow_provider_mssql_cdc.core.copy_wanted import COPY, PAUSE, STOP
from airflow_provider_mssql_cdc.operators.checkpoints import store_given_up
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
    under_way = CopyState(
        "0123456789ab",
        str(tmp_path),
        host=socket.gethostname(),
        position=group.source.max_lsn(),
        chunks=3,
        shapes=("mirror",),
        rows=300,
        expected=1000,
        begun_at=NOW,
        at=NOW + datetime.timedelta(seconds=10),
        last="(300)",
        highest="(1000)",
    )
    found = dataclasses.replace(group.checkpoint(A), sinks={}, copies=(under_way,))
    group.store.overwrite(found)

    assert copy(tmp_path, "pause") == 0
    said = capsys.readouterr()
    assert "dbo.b" not in said.out, "none is under way there"
    assert (stored(group).id, stored(group).wanted, stored(group).of_loaded) == (under_way.id, PAUSE, False)
    assert asked(group) == {"dbo.a": PAUSE}, "it is a first load, and keeps its changes"
    assert copy(tmp_path, "status", "--table", "dbo.a") == 0
    out = capsys.readouterr().out
    assert "3 chunks with 300 of about 1,000 rows are read, 30 rows/s since" in out
    assert "about 0:00:23 left at this rate, up to key (300) of (1000), changes are kept up to 0x" in out
    assert f"in {tmp_path} on {socket.gethostname()}, " in out
    assert out.strip().endswith(" GiB free there")
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


def test_a_copy_of_some_rows_is_asked_for(group, tmp_path, capsys):
    group.loaded(A, B)
    for given, told in {
        "id = 7": "expected JSON, such as",
        "[]": "has no condition",
        "null": "has no condition",
        '[["id", "like", 7]]': "'like' is none of",
        '[["nonsense", "=", 7]]': "where names 'nonsense', which is none of the columns",
        '[["id", "=", "seven"]]': "'seven' is no value of int",
    }.items():
        assert copy(tmp_path, "start", "--table", "dbo.a", "--where", given) == 2
        assert told in capsys.readouterr().err
    assert stored(group) is None

    assert copy(tmp_path, "start", "--table", "dbo.a", "--where", '[["id", "in", [7, 8]]]') == 0
    assert stored(group).where == '[["id", "in", [7, 8]]]'
    (spec,) = planned(group).specs
    assert spec.asked.where == stored(group).where
    capsys.readouterr()
    assert copy(tmp_path, "status", "--table", "dbo.a") == 0
    assert 'of the rows where [["id", "in", [7, 8]]]' in capsys.readouterr().out


def test_a_request_that_cannot_be_read_fails_its_table_alone(group, tmp_path):
    group.loaded(A, B)
    assert copy(tmp_path, "start") == 0
    (key,) = [k for k in MetadataVariables().keys(KEY_PREFIX) if group.source.identity(A).short in k]
    MetadataVariables().set(key, "{")
    plan = planned(group)
    assert [str(name) for name in plan.failures] == ["dbo.a"]
    assert key in str(plan.failures[A])
    assert asked(group) == {"dbo.b": COPY}


def test_a_copy_ends_that_all_who_wait_for_it_have_failed_for_too_long(group, tmp_path):
    keep, now = datetime.timedelta(days=14), datetime.datetime.now(datetime.UTC)
    folder = tmp_path / "copies" / "0123456789ab"
    folder.mkdir(parents=True)
    copy_state = CopyState(folder.name, str(folder.parent), position=group.source.max_lsn(), shapes=("mirror", "scd2"))
    group.loaded(A, B)
    loaded = group.checkpoint(A)

    def failing(mirror: float | None, scd2: float | None, went_on: float = 30):
        """The plan of a run where the shapes have failed for so many days, and a run went on with the copy then."""
        at = now - datetime.timedelta(days=went_on)
        checkpoint = dataclasses.replace(loaded, sinks={}, copies=(dataclasses.replace(copy_state, at=at),))
        for shape, days in (("mirror", mirror), ("scd2", scd2)):
            if days is not None:
                began = now - datetime.timedelta(days=days)
                checkpoint = checkpoint.failing([shape], Failure("the target is gone", now, since=began))
        group.store.overwrite(checkpoint)
        with group.source.hook() as hook:
            return plan_load(hook, group.store, group.request(copy_keep=keep), None)

    assert failing(15, None).given_up == {}
    plan = failing(15, 6)
    assert (plan.given_up, plan.warnings) == ({}, [])
    plan = failing(15, 8)
    assert plan.given_up == {}
    (warning,) = plan.warnings
    assert warning.startswith("dbo.a: copy 0123456789ab: all that waits for it (mirror, scd2) fails since")
    assert "it ends at" in warning

    # one that a run goes on with may be about to mend them
    assert failing(20, 15, went_on=1).given_up == {}
    plan = failing(20, 15)
    # nothing is written by who only plans
    assert [each.id for each in group.checkpoint(A).copies] == [copy_state.id]
    assert set(plan.turns[A].resting) == {"mirror"}
    # nor is the folder removed of one that another run has moved on
    found = group.checkpoint(A)
    group.store.overwrite(loaded)
    store_given_up(group.store, plan)
    assert folder.exists()
    assert (plan.given_up, plan.turns[A].resting, A in {spec.name for spec in plan.specs}) == ({}, {}, False)
    group.store.overwrite(found)
    plan = planned(group)
    assert plan.given_up.keys() == {A}
    assert set(plan.turns[A].resting) == {"mirror"}
    store_given_up(group.store, plan)
    after = group.checkpoint(A)
    why = "all that waited for it failed for longer than copy_keep, 14 days, 0:00:00"
    assert (after.copies, after.ended_copies) == ((), (f"0123456789ab ABORTED: {why}",))
    assert [event.extra for event in after.untold] == [
        {"table": "dbo.a", "event": "ABORTED", "id": "0123456789ab", "reason": why}
    ]
    assert [sink.failed.stopped for sink in after.sinks.values()] == [True, True]
    assert "It failed with: the target is gone `mssql-cdc copy start`" in after.sinks["scd2"].failed.reason
    assert not folder.exists()
    # nothing begins by itself, until a person says so
    assert set(planned(group).turns[A].resting) == {"mirror"}
    assert copy(tmp_path, "start", "--table", "dbo.a") == 0
    assert planned(group).turns[A].resting == {}


def test_a_copy_that_is_paused_for_too_long_ends(group, tmp_path, capsys):
    keep = datetime.timedelta(days=14)

    def paused(days: float):
        under_way = CopyState(
            "0123456789ab",
            "/copies",
            state="PAUSED",
            position=group.source.max_lsn(),
            shapes=("mirror",),
            paused_since=datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=days),
        )
        group.store.overwrite(dataclasses.replace(group.checkpoint(A), sinks={}, copies=(under_way,)))
        with group.source.hook() as hook:
            return plan_load(hook, group.store, group.request(copy_keep=keep), None)

    group.loaded(A, B)
    paused(0)
    assert copy(tmp_path, "pause", "--table", "dbo.a") == 0
    # it is as if it were paused again since
    assert paused(15).warnings == []
    then = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=20)
    CopyRequests(MetadataVariables()).save(dataclasses.replace(stored(group), at=then))
    assert paused(6).warnings == []
    (warning,) = paused(8).warnings
    assert "dbo.a: copy 0123456789ab is paused since" in warning
    assert "it ends at" in warning
    plan = paused(15)
    (spec,) = plan.specs
    assert (spec.asked.wanted, spec.asked.of_loaded) == (STOP, False)
    assert spec.asked.reason == "it was paused for longer than copy_keep, 14 days, 0:00:00"
    assert plan.warnings[0].endswith(f"and ends: {spec.asked.reason}")
