"""``mssql-cdc instances``: which checkpoints stand on a capture instance, and that none loses what it needs."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from airflow_provider_mssql_cdc.cli import main
from airflow_provider_mssql_cdc.cli.checkpoint import MetadataVariables
from airflow_provider_mssql_cdc.core.checkpoint import CopyState
from airflow_provider_mssql_cdc.core.feed import FeedRef
from airflow_provider_mssql_cdc.core.position import Lsn
from tests.cli import test_plan
from tests.operators.test_new_columns import settle
from tests.support.hooks.source import CONN_ID, TARGET
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
    assert capsys.readouterr().out == "dbo.a: capture instance dbo_a__mc2 was made with note\n"
    assert there(group) == ["dbo_a", "dbo_a__mc2"]
    assert instances(tmp_path, "apply", "--table", "dbo.a") == 0
    assert capsys.readouterr().out == "no capture instance is asked for\n"

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
