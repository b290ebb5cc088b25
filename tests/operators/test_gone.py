"""Tables of a pattern, or named ones, that are dropped: told once, and their targets and positions are left."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_mssql_cdc.core.spec import ChangedTable, JobSpec
from tests.operators.test_schema_events import hear
from tests.support.operators.group import A, B
from tests.support.operators.master import write_receipt
from tests.support.operators.tries import Task


def dropped(told: list[dict[str, Any]]) -> list[str]:
    """The tables of which it is told that they were dropped."""
    return [each["table"] for each in told if each["changes"][0]["kind"] == "TABLE_DROPPED"]


def test_a_table_of_a_pattern_that_was_dropped_is_told_once(task: Task) -> None:
    hear(task)
    before = task.group.checkpoint(A)
    assert before is not None
    task.group.change("DROP TABLE dbo.a; INSERT INTO dbo.b (id) VALUES (7)")
    summary, events = hear(task)
    (told,) = events["schema"]
    assert dropped([told]) == ["dbo.a"]
    assert before.seen_schema is not None
    assert (told["found"], told["ddl"], told["schema_before"]) == ("catalogue", [], before.seen_schema.hash)
    assert task.rows["dbo.a"]["status"] == "dropped"
    assert "dbo.a: the source table was dropped; its targets stay as they are" in summary["warnings"]
    # nor is anything said by later runs, or forgotten by them
    for _ in range(2):
        task.group.change("INSERT INTO dbo.b (id) SELECT MAX(id) + 1 FROM dbo.b")
        summary, events = hear(task)
        assert (summary["warnings"], summary["schema_changes"], [*task.rows], events.get("schema")) == (
            [],
            [],
            ["dbo.b"],
            None,
        )
    stored = task.group.checkpoint(A)
    assert stored is not None
    assert stored.failing(stored.sinks, None).sinks == before.sinks


def test_each_job_is_handed_what_no_job_has_written(task: Task) -> None:
    handed: list[ChangedTable] = []

    def answering(*, writes: bool) -> Callable[[JobSpec], None]:
        def answer(spec: JobSpec) -> None:
            handed[:] = spec.dropped
            write_receipt(spec if writes else dataclasses.replace(spec, dropped=()))

        return answer

    def waiting() -> list[str]:
        stored = task.group.checkpoint(A)
        assert stored is not None
        return [change["kind"] for event in stored.unwritten for change in event.changes]

    numbers = itertools.count(7)
    for number in (1, 2, 3):
        task.group.change(f"INSERT INTO dbo.a (id) VALUES ({next(numbers)}), ({next(numbers)})")
        hear(task)
        if number == 1:
            task.group.change("ALTER TABLE dbo.a ADD city nvarchar(20)")
    before = task.group.checkpoint(A)
    assert before is not None
    assert waiting() == ["ADD_COLUMN"]
    task.group.change(f"DROP TABLE dbo.a; INSERT INTO dbo.b (id) VALUES ({next(numbers)})")
    task.master.job = answering(writes=False)
    for _ in range(2):
        summary, _ = hear(task)
        assert task.rows["dbo.a"]["status"] == "dropped"
        (of,) = handed
        assert (of.name, of.format, of.feed) == (A, "iceberg", before.sinks["mirror"].feed)
        assert of.changes.table == ("lake", "shop", "dbo_a_schema_changes")
        assert [each.text.split(" was ")[-1] for each in of.changes.events] == ["added", "dropped"]
        assert waiting() == ["ADD_COLUMN", "TABLE_DROPPED"]
        task.group.change(f"INSERT INTO dbo.b (id) VALUES ({next(numbers)})")
    # no job is made for that alone
    hear(task)
    submissions = len(task.master.submissions)
    hear(task)
    assert (len(task.master.submissions), waiting()) == (submissions, ["ADD_COLUMN", "TABLE_DROPPED"])

    task.master.job = answering(writes=True)
    task.group.change(f"INSERT INTO dbo.b (id) VALUES ({next(numbers)})")
    summary, events = hear(task)
    assert (len(handed), waiting(), summary["schema_changes"], events.get("schema")) == (1, [], [], None)
    for _ in range(2):
        task.group.change(f"INSERT INTO dbo.b (id) VALUES ({next(numbers)})")
        hear(task)
        assert (handed, [*task.rows]) == ([], ["dbo.b"])


def test_a_run_that_fails_leaves_it_to_the_next_one(task: Task) -> None:
    hear(task)
    task.group.change("DROP TABLE dbo.a; INSERT INTO dbo.b (id) VALUES (7)")
    with pytest.raises(AirflowFailException):
        task.run(tables=["dbo.*", "dbo.never"])
    assert dropped(task.instance.pushed["summary"]["schema_changes"]) == ["dbo.a"]
    task.state.clear()
    task.group.change("INSERT INTO dbo.b (id) VALUES (8)")
    assert dropped(hear(task)[1]["schema"]) == ["dbo.a"]


def test_a_named_one_fails_and_its_event_is_told_by_the_next_run_that_succeeds(task: Task) -> None:
    named = ["dbo.a", "dbo.b"]
    hear(task, tables=named)
    task.group.change("DROP TABLE dbo.a; INSERT INTO dbo.b (id) VALUES (7)")
    for _ in range(2):
        with pytest.raises(AirflowFailException, match=r"dbo\.a: it does not exist"):
            task.run(tables=named)
        task.state.clear()
    stored = task.group.checkpoint(A)
    assert stored is not None
    assert [event.extra["changes"][0]["kind"] for event in stored.untold] == ["TABLE_DROPPED"]
    # one that does not name it succeeds
    for number, told in ((8, ["dbo.a"]), (9, [])):
        task.group.change(f"INSERT INTO dbo.b (id) VALUES ({number})")
        assert dropped(hear(task, tables=["dbo.b"])[1].get("schema", [])) == told


@pytest.mark.parametrize("statement", ["EXEC sp_rename N'dbo.a', N'c'", "SELECT 1"])
def test_one_that_was_renamed_or_is_excluded_was_not_dropped(task: Task, statement: str) -> None:
    hear(task)
    task.group.source.sql(statement)
    task.group.change("INSERT INTO dbo.b (id) VALUES (7)")
    _, events = hear(task, exclude=["dbo.a"])
    assert "schema" not in events
    assert task.group.checkpoint(B) is not None
