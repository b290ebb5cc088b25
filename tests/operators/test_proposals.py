"""Capture instances that people are told to make: told once to the operations asset, and waited for as long as said."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_mssql_cdc.core.proposal import Proposal
from airflow_provider_mssql_cdc.operators.planning import plan_load
from tests.operators.test_new_columns import SECOND
from tests.operators.test_schema_events import hear
from tests.support.operators.group import A, B
from tests.support.operators.tries import Task

PROPOSE = {"tables": [{"table": "dbo.a", "on_schema_change": "propose"}, "dbo.b"]}
DAY = datetime.timedelta(days=1)


def heard(task: Task, **given: Any) -> list[dict[str, Any]]:
    """The proposals that the operations asset hears of in a run."""
    return hear(task, **{**PROPOSE, **given})[1].get("proposal", [])


def add(task: Task, column: str, number: int = 3) -> None:
    """Add a column, and change rows by another one."""
    task.group.change(f"ALTER TABLE dbo.a ADD {column} nvarchar(20); INSERT INTO dbo.a (id) VALUES ({number})")


def proposed(task: Task) -> tuple[Proposal, ...]:
    stored = task.group.checkpoint(A)
    assert stored is not None
    return stored.proposed


def told_earlier(task: Task, by: datetime.timedelta) -> datetime.datetime:
    """Let what is proposed have been told earlier; when that was."""
    stored = task.group.checkpoint(A)
    assert stored is not None
    since = tuple(dataclasses.replace(each, since=each.since - by) for each in stored.proposed)
    task.group.store.overwrite(dataclasses.replace(stored, proposed=since))
    return since[0].since


def test_the_operations_asset_hears_of_each_proposal_once(task: Task) -> None:
    assert heard(task) == []
    add(task, "city")
    (told,) = heard(task)
    assert (told["table"], told["columns"], told["instance"], told["held_by"]) == ("dbo.a", ["city"], "dbo_a__mc2", [])
    # quiet runs, and runs with changes
    assert heard(task) == []
    task.group.change("INSERT INTO dbo.a (id) VALUES (4)")
    assert heard(task) == []
    ((city),) = proposed(task)
    assert (city.column, city.instance) == ("city", "dbo_a__mc2")

    # one column more is another proposal; each column keeps its time
    add(task, "note", 5)
    (more,) = heard(task)
    assert more["columns"] == ["city", "note"]
    assert [each.column for each in proposed(task)] == ["city", "note"]
    assert proposed(task)[0] == city
    task.group.source.sql(more["statement"])
    task.group.change("INSERT INTO dbo.a (id) VALUES (6)")
    assert heard(task) == []
    assert proposed(task) == ()


def test_a_proposal_that_a_failed_run_found_is_told_by_the_next_one_that_succeeds(task: Task) -> None:
    hear(task, **PROPOSE)
    add(task, "city")
    task.group.source.sql("DROP TABLE dbo.b")
    for _ in range(2):
        with pytest.raises(AirflowFailException):
            task.run(**PROPOSE)
        task.state.clear()
    stored = task.group.checkpoint(A)
    assert stored is not None
    assert [event.kind for event in stored.untold] == ["proposal"]
    (told,) = heard(task, tables=PROPOSE["tables"][:1])
    assert told["columns"] == ["city"]
    assert heard(task, tables=PROPOSE["tables"][:1]) == []


def test_one_that_has_no_room_is_another_one_once_it_has(task: Task) -> None:
    task.group.source.sql(SECOND)
    hear(task, **PROPOSE)
    add(task, "city")
    (told,) = heard(task)
    assert (told["instance"], told["statement"], told["held_by"]) == (None, None, ["dbo_a", "second"])
    # the one to give up, and what that costs
    assert "@capture_instance = N'second'; what it holds is lost." in told["advice"]
    # also where the load would make it itself
    assert heard(task, on_schema_change="evolve", tables=["dbo.a"]) == []
    task.group.source.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'a', N'second'")
    (told,) = heard(task)
    assert told["instance"] == "dbo_a__mc2"


def test_what_the_load_makes_itself_is_proposed_to_nobody(task: Task) -> None:
    hear(task, on_schema_change="evolve")
    add(task, "city")
    assert heard(task, tables=["dbo.*"], on_schema_change="evolve", propose_timeout=1e-6) == []
    assert proposed(task) == ()


@pytest.mark.parametrize("of_entry", [True, False])
def test_a_table_fails_whose_proposal_nobody_has_followed_in_time(task: Task, of_entry: bool) -> None:
    own = {"tables": [{**PROPOSE["tables"][0], "propose_timeout": DAY}, "dbo.b"]}  # type: ignore[dict-item]
    given: dict[str, Any] = own if of_entry else {**PROPOSE, "propose_timeout": DAY.total_seconds()}
    hear(task, **given)
    add(task, "city")
    task.run(**given)
    task.state.clear()
    (warning,) = [text for text in task.rows["dbo.a"]["warnings"] if "to load city" in text]
    since = proposed(task)[0].since.isoformat(" ", "seconds")
    assert warning.endswith(
        f"; This is told since {since}: 1 day, 0:00:00 after that the table fails (propose_timeout)."
    )

    told_at = told_earlier(task, DAY)
    # a younger one does not give the older one more time
    task.group.change(
        "ALTER TABLE dbo.a ADD note int; INSERT INTO dbo.b (id) VALUES (7); INSERT INTO dbo.a (id) VALUES (7)"
    )
    for _ in range(2):
        with pytest.raises(AirflowFailException) as failed:
            task.run(**given)
        task.state.clear()
        assert (
            f"dbo.a: no capture instance has column city, though one is proposed since "
            f"{told_at.isoformat(' ', 'seconds')}, for longer than propose_timeout (1 day, 0:00:00). It is loaded "
            "again once there is one: to load city, note, run in this database, as db_owner: IF NOT EXISTS"
        ) in str(failed.value)
        assert {name: row["status"] for name, row in task.rows.items()}["dbo.a"] == "failed"
    assert [each.column for each in proposed(task)] == ["city", "note"]
    assert task.position(B) == task.group.source.max_lsn()

    with task.group.source.hook() as hook:
        plan = plan_load(hook, task.group.store, task.operator(**given).request(), None)
    task.group.source.sql(plan.new_instances[A].statement(plan.user))
    task.group.change("INSERT INTO dbo.a (id) VALUES (8)")
    task.run(**given)
    assert task.rows["dbo.a"]["status"] == "loaded"
    assert proposed(task) == ()


def test_without_a_limit_people_have_all_time(task: Task) -> None:
    hear(task, **PROPOSE)
    add(task, "city")
    task.run(**PROPOSE)
    task.state.clear()
    told_earlier(task, 1000 * DAY)
    task.group.change("INSERT INTO dbo.a (id) VALUES (4)")
    task.run(**PROPOSE)
    assert task.rows["dbo.a"]["status"] == "loaded"
