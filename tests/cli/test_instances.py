"""``mssql-cdc instances``: which checkpoints stand on a capture instance, and that none loses what it needs."""

from __future__ import annotations

import dataclasses
import datetime
from pathlib import Path

import pytest

from airflow_provider_mssql_cdc.cli import main
from airflow_provider_mssql_cdc.cli.checkpoint import MetadataVariables
from airflow_provider_mssql_cdc.core.checkpoint import CopyState
from airflow_provider_mssql_cdc.core.feed import FeedRef
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.proposal import Proposal
from tests.cli import test_plan
from tests.operators.test_new_columns import SECOND, settle
from tests.support.hooks.source import CONN_ID, TARGET, Source
from tests.support.operators.group import A, Group

group = test_plan.group

DAG = """
from airflow.sdk import DAG

from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator

with DAG("shop"):
    MsSqlCdcLoadOperator(
        task_id="load", tables=["dbo.a"], target={target!r}, mssql_conn_id={conn!r}, on_schema_change={mode!r}
    )
"""
DROP = ("drop", "--table", "dbo.a", "--instance")


@pytest.fixture(autouse=True)
def dag(group: Group, tmp_path: Path) -> None:
    """A DAG that loads one table; its schemas are kept in Airflow's database, too."""
    group.variables = group.store.variables
    (tmp_path / "shop.py").write_text(DAG.format(target=TARGET, conn=CONN_ID, mode="propose"))


def instances(tmp_path: Path, *words: str) -> int:
    action, *more = words
    return main(["instances", action, "--dag", "shop", "--task", "load", "--dags-folder", str(tmp_path), *more])


def there(group: Group) -> list[str]:
    found = group.source.sql(
        "SELECT capture_instance FROM cdc.change_tables WHERE source_object_id = OBJECT_ID('dbo.a') ORDER BY 1"
    )
    return [name for (name,) in found]


def go_over(group: Group, name: str) -> None:
    """Move the checkpoint to another instance, as a load does that has come so far."""
    with group.source.hook() as hook:
        (feed,) = [FeedRef.of(each) for each in hook.capture_instances([A]) if each.name == name]
    stored = group.checkpoint(A)
    assert stored is not None
    sinks = {shape: dataclasses.replace(sink, feed=feed) for shape, sink in stored.sinks.items()}
    group.store.overwrite(dataclasses.replace(stored, sinks=sinks))


def test_one_is_made_as_the_load_asks_and_the_one_that_nobody_needs_any_more_is_dropped(
    group: Group, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group.loaded(A)
    at = group.change("INSERT INTO dbo.a (id) VALUES (20)")
    # a run has seen the table without the column
    settle(group, {"table": "dbo.a", "on_schema_change": "propose"})
    group.loaded_up_to_now(A)
    group.change("ALTER TABLE dbo.a ADD note nvarchar(20)")
    assert instances(tmp_path, "apply") == 0
    assert capsys.readouterr().out.splitlines() == [
        "dbo.a: column note is not captured by dbo_a",
        "dbo.a: capture instance dbo_a__mc2 was made with note",
    ]
    assert there(group) == ["dbo_a", "dbo_a__mc2"]
    assert instances(tmp_path, "apply", "--table", "dbo.a") == 0
    *_, held_back, last = capsys.readouterr().out.splitlines()
    assert held_back.startswith("dbo.a: capture instance dbo_a__mc2 has note, and is not read: it begins behind")
    assert last == "no capture instance is asked for"

    group.change("INSERT INTO dbo.a (id, note) VALUES (2, N'n')")
    who = f"dbo.a -> {TARGET} ({CONN_ID})"
    assert instances(tmp_path, "list") == 0
    first, stands, second, free = capsys.readouterr().out.splitlines()
    assert first.startswith("dbo.a: capture instance dbo_a begins behind 0x")
    assert first.endswith(": id, v")
    assert stands == f"  {who} mirror: read to {at}"
    assert second.startswith("dbo.a: capture instance dbo_a__mc2 begins behind 0x")
    assert second.endswith(": id, v, note")
    assert free == "  no checkpoint of this Airflow stands on it"

    assert instances(tmp_path, *DROP, "DBO_A") == 2
    err = capsys.readouterr().err
    assert (
        f"capture instance dbo_a of dbo.a was not dropped. These checkpoints may still need it:\n  {who} mirror: read"
        in err
    )
    assert len(there(group)) == 2
    go_over(group, "dbo_a__mc2")
    assert instances(tmp_path, *DROP, "DBO_A") == 0
    assert "capture instance dbo_a is dropped" in capsys.readouterr().out
    assert there(group) == ["dbo_a__mc2"]
    assert instances(tmp_path, *DROP, "dbo_a__mc2") == 2
    assert "is the only one of dbo.a" in capsys.readouterr().err


def wants_a_column(group: Group) -> None:
    """A load that has seen its table, which has got a column since."""
    group.loaded(A)
    group.change("INSERT INTO dbo.a (id) VALUES (20)")
    settle(group, {"table": "dbo.a", "on_schema_change": "propose"})
    group.loaded_up_to_now(A)
    group.change("ALTER TABLE dbo.a ADD note nvarchar(20)")


def test_grants_that_were_not_given_are_given_by_the_next_apply(
    group: Group, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after a connection that was lost between the two: the load itself reads all of the schema cdc."""
    wants_a_column(group)
    group.source.sql("CREATE USER reporter WITHOUT LOGIN; GRANT SELECT ON cdc.dbo_a_CT TO reporter")
    assert instances(tmp_path, "apply") == 0
    assert "was made with note; reporter may read it as they read dbo_a" in capsys.readouterr().out
    group.source.sql("REVOKE SELECT ON cdc.dbo_a__mc2_CT FROM reporter")
    assert instances(tmp_path, "apply") == 0
    assert (
        "dbo.a: capture instance dbo_a__mc2 is there with note; reporter may read it as they read dbo_a\n"
        in capsys.readouterr().out
    )
    assert instances(tmp_path, "apply") == 0
    assert "reporter" not in capsys.readouterr().out


def test_what_apply_could_not_do_is_said_and_is_no_success(
    group: Group, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wants_a_column(group)
    assert instances(tmp_path, "apply", "--table", "dbo.z") == 2
    assert "dbo.z is none of the tables of task load" in capsys.readouterr().err
    with group.source.hook() as writer:
        writer.query("BEGIN TRAN UPDATE dbo.a SET v = 1")
        text = DAG.format(target=TARGET, conn=CONN_ID, mode="propose")
        (tmp_path / "shop.py").write_text(text.replace("task_id", "enable_lock_timeout=0.2, task_id"))
        assert instances(tmp_path, "apply") == 1
        writer.query("ROLLBACK")
    assert "dbo.a: capture instance dbo_a__mc2 with note is not made yet" in capsys.readouterr().out
    # beside one that can be made another table fails
    (tmp_path / "shop.py").write_text(text.replace('["dbo.a"]', '["dbo.a", "dbo.gone"]'))
    assert instances(tmp_path, "apply") == 1
    out = capsys.readouterr().out
    assert "dbo.a: capture instance dbo_a__mc2 was made with note" in out
    assert "dbo.gone: fails: it does not exist in" in out
    assert instances(tmp_path, "apply", "--table", "dbo.a") == 0


def test_what_fails_since_nobody_made_it_is_mended_by_apply(
    group: Group, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wants_a_column(group)
    stored = group.checkpoint(A)
    assert stored is not None
    long_ago = Proposal("note", datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), "dbo_a__mc2")
    group.store.overwrite(dataclasses.replace(stored, proposed=(long_ago,)))
    text = DAG.format(target=TARGET, conn=CONN_ID, mode="propose")
    (tmp_path / "shop.py").write_text(text.replace("task_id", "propose_timeout=3600, task_id"))
    assert test_plan.plan(tmp_path, task="load") == 0
    assert "fails: no capture instance has column note, though one is proposed since 2026" in capsys.readouterr().out
    assert instances(tmp_path, "apply") == 0
    assert capsys.readouterr().out == "dbo.a: capture instance dbo_a__mc2 was made with note\n"


def test_nothing_is_made_or_dropped_in_another_database(
    group: Group, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wants_a_column(group)
    text = DAG.format(target=TARGET, conn=CONN_ID, mode="propose")
    (tmp_path / "shop.py").write_text(text.replace("task_id", 'admin_conn_id="elsewhere", task_id'))
    elsewhere = Source(group.source.server, f"{group.source.name}_other")
    monkeypatch.setenv("AIRFLOW_CONN_ELSEWHERE", elsewhere.airflow_connection().as_json())
    refused = f"elsewhere reaches database {elsewhere.name} on "
    assert instances(tmp_path, "apply") == 2
    assert refused in capsys.readouterr().err
    assert there(group) == ["dbo_a"]
    group.source.sql(SECOND)
    go_over(group, "second")
    assert instances(tmp_path, *DROP, "dbo_a") == 2
    assert refused in capsys.readouterr().err
    assert there(group) == ["dbo_a", "second"]
    monkeypatch.setenv("AIRFLOW_CONN_ELSEWHERE", group.source.airflow_connection().as_json())
    assert instances(tmp_path, *DROP, "dbo_a") == 0
    elsewhere.close()


def test_whoever_may_stand_on_it_is_in_the_way(
    group: Group, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group.loaded(A)
    group.source.sql("EXEC sys.sp_cdc_enable_table N'dbo', N'a', N'second', @role_name = NULL")
    group.change("INSERT INTO dbo.a (id) VALUES (2)")
    stored = group.checkpoint(A)
    assert stored is not None
    mirror = stored.sinks["mirror"]
    elsewhere = dataclasses.replace(stored.identity, connection="other", database=stored.identity.database.upper())

    for checkpoint, said in (
        # of another connection, name and target
        (dataclasses.replace(stored, identity=elsewhere), "(other) mirror: read to"),
        (
            dataclasses.replace(stored, identity=elsewhere, sinks={"mirror": dataclasses.replace(mirror, feed=None)}),
            ", its instance is not known",
        ),
        # whose own instance is gone: it may go on by any that reaches back to it
        (
            dataclasses.replace(
                stored,
                identity=elsewhere,
                sinks={"mirror": dataclasses.replace(mirror, feed=dataclasses.replace(mirror.feed, object_id=1))},
            ),
            ", its instance is not known",
        ),
        # that was reset: its target may have a marker
        (dataclasses.replace(stored, identity=elsewhere, sinks={}, waiting_ids=(3,)), "not loaded, or reset"),
        # a first load that goes on with its copy
        (
            dataclasses.replace(
                stored, identity=elsewhere, sinks={}, copies=(CopyState("c", "/copies", position=Lsn(b"\1" * 10)),)
            ),
            "(other): a copy is under way",
        ),
    ):
        go_over(group, "second")
        group.store.overwrite(checkpoint)
        assert instances(tmp_path, *DROP, "dbo_a") == 2
        assert said in capsys.readouterr().err
        group.store.delete(elsewhere)
    MetadataVariables().set(elsewhere.variable, "{")
    assert instances(tmp_path, *DROP, "dbo_a") == 2
    assert f"{elsewhere.variable} cannot be read, so nobody knows on what it stands" in capsys.readouterr().err
    assert instances(tmp_path, *DROP, "nope") == 2
    assert "dbo.a has no capture instance nope, only dbo_a, second" in capsys.readouterr().err
    assert there(group) == ["dbo_a", "second"]
    group.store.delete(elsewhere)
    assert instances(tmp_path, *DROP, "dbo_a") == 0
