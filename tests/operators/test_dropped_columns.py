"""Columns that source tables drop: where a run ends for them, and what its job is told."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.exceptions import SchemaChangedError
from airflow_provider_mssql_cdc.core.position import Cut, Lsn
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.planning import plan_load
from tests.support.hooks.source import Source
from tests.support.operators.group import A, B, Group

DROP = {"table": "dbo.a", "on_schema_change": "evolve", "dropped_columns": "drop"}
GONE = "column v was dropped by the source table: targets drop it once they are loaded up to there"


@pytest.fixture
def group(source: Source) -> Group:
    """Two tables that were loaded up to now."""
    made = Group(source)
    made.make("dbo.a", "dbo.b")
    made.loaded(A, B)
    return made


def plan_of(group: Group, entry: dict[str, Any]) -> RunPlan:
    with group.source.hook() as hook:
        return plan_load(hook, group.store, group.request(entry, "dbo.b"), None)


def cut_of(plan: RunPlan) -> Lsn:
    assert plan.upto is not None
    cut = plan.upto.of(Lsn)
    assert isinstance(cut, Lsn)
    return cut


def at_ddl(group: Group) -> Lsn:
    ((lsn,),) = group.source.sql("SELECT ddl_lsn FROM cdc.ddl_history")
    return Lsn(bytes(lsn))


def test_a_run_ends_with_the_ddl_and_the_next_one_goes_on_behind_it(group: Group) -> None:
    group.change("UPDATE dbo.a SET v = 1; ALTER TABLE dbo.a DROP COLUMN v")
    newest = group.change("INSERT INTO dbo.a (id) VALUES (2); INSERT INTO dbo.b (id) VALUES (2)")
    ddl = at_ddl(group)
    assert ddl < newest
    plan = plan_of(group, DROP)
    assert (plan.failures, plan.upto) == ({}, Cut((ddl,)))
    (spec,) = plan.specs
    assert spec.schema.kept == ("v",)
    assert [(each.column_id, each.at) for each in spec.drops or ()] == [(2, ddl)]
    assert GONE in plan.candidates[A].warnings

    group.loaded_up_to_now(A, ddl)
    group.loaded_up_to_now(B, ddl)
    plan = plan_of(group, DROP)
    assert cut_of(plan) == newest
    assert [(spec.name, spec.drops is not None) for spec in plan.specs] == [(A, True), (B, False)]


def test_a_table_that_stays_behind_its_ddl_does_not_hold_the_others(group: Group) -> None:
    group.change("UPDATE dbo.a SET v = 1; ALTER TABLE dbo.a DROP COLUMN v")
    newest = group.change("INSERT INTO dbo.a (id) VALUES (2); INSERT INTO dbo.b (id) VALUES (2)")
    ddl = at_ddl(group)
    assert cut_of(plan_of(group, DROP)) == ddl
    group.loaded_up_to_now(B, ddl)
    assert cut_of(plan_of(group, DROP)) == newest
    # alone it goes there first
    with group.source.hook() as hook:
        assert cut_of(plan_load(hook, group.store, group.request(DROP), None)) == ddl


@pytest.mark.parametrize(
    "said",
    [
        {"dropped_columns": "keep"},
        {"on_schema_change": "warn"},
    ],
    ids=str,
)
def test_what_stays_ends_no_run(group: Group, said: dict[str, Any]) -> None:
    group.change("ALTER TABLE dbo.a DROP COLUMN v")
    newest = group.change("INSERT INTO dbo.a (id) VALUES (2)")
    plan = plan_of(group, {**DROP, **said})
    assert cut_of(plan) == newest
    assert [spec.drops for spec in plan.specs] == [None]
    warnings = plan.candidates[A].warnings
    assert "column v is NULL since the source table dropped it" in warnings
    assert any(text.startswith('dropped_columns="drop" drops nothing') for text in warnings) == (
        said != {"dropped_columns": "keep"}
    )


def test_a_quiet_table_has_a_job_once_its_targets_are_where_they_drop_a_column(group: Group) -> None:
    group.change("UPDATE dbo.a SET v = 1; ALTER TABLE dbo.a DROP COLUMN v")
    newest = group.change("INSERT INTO dbo.b (id) VALUES (2)")
    group.loaded_up_to_now(A, newest)
    group.loaded_up_to_now(B, newest)
    assert [spec.name for spec in plan_of(group, DROP).specs] == [A]
    assert plan_of(group, {**DROP, "dropped_columns": "keep"}).specs == []


def test_nothing_ends_where_nothing_happened_since(group: Group) -> None:
    group.change("INSERT INTO dbo.a (id) VALUES (2)")
    group.change("ALTER TABLE dbo.a DROP COLUMN v")
    newest = group.change("INSERT INTO dbo.b (id) VALUES (2)")
    assert cut_of(plan_of(group, DROP)) == newest


def test_a_table_on_which_nothing_happened_before_does_not_end_each_run(group: Group) -> None:
    group.change("ALTER TABLE dbo.a DROP COLUMN v")
    group.change("INSERT INTO dbo.a (id) VALUES (2)")
    newest, request = group.change("INSERT INTO dbo.b (id) VALUES (2)"), group.request(DROP, "dbo.b")
    plan = plan_of(group, DROP)
    assert (cut_of(plan), plan.specs) == (at_ddl(group), [])
    # its columns were seen before
    plan.sights.clear()
    group.settle(plan, request)
    plan = plan_of(group, DROP)
    assert cut_of(plan) == newest
    assert [spec.name for spec in plan.specs] == [A, B]


def test_a_column_that_decides_which_rows_are_loaded_fails_the_table_and_ends_nothing(group: Group) -> None:
    entry = {**DROP, "where": [("v", "is null")]}
    group.chosen(A, group.request(entry))
    group.change("ALTER TABLE dbo.a DROP COLUMN v")
    newest = group.change("INSERT INTO dbo.a (id) VALUES (2); INSERT INTO dbo.b (id) VALUES (2)")
    plan = plan_of(group, entry)
    with pytest.raises(SchemaChangedError, match="has dropped column v, which where names"):
        raise plan.failures[A]
    assert cut_of(plan) == newest
