"""Columns that an entry names, and that others are called as by now: what is said of them is said of no other one."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_mssql_cdc.operators.schema_events import schema_events
from tests.operators.test_new_columns import PROPOSE, SECOND, plan_of, settle
from tests.support.hooks.source import Source
from tests.support.operators.group import A, Group

MASKED = {"mask": {"ssn": "redact"}, "new_columns": "load"}


def renamed(source: Source, said: dict[str, Any], *after: str) -> tuple[Group, dict[str, Any]]:
    group = Group(source)
    group.make("dbo.a")
    group.loaded(A)
    group.change("INSERT INTO dbo.a (id) VALUES (2)")
    settle(group, PROPOSE)
    entry = {**PROPOSE, **said}
    group.change("ALTER TABLE dbo.a ADD ssn nvarchar(20)")
    group.change("INSERT INTO dbo.a (id, ssn) VALUES (3, N'123')")
    group.loaded_up_to_now(A)
    # runs that see ssn: it is proposed, and nobody has made the instance
    for n in (4, 5):
        assert any("ssn" in new.wanted for new in settle(group, entry).new_instances.values())
        group.change(f"INSERT INTO dbo.a (id) VALUES ({n})")
    source.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'a', N'all'")
    for statement in ("EXEC sp_rename N'dbo.a.ssn', N'tax', N'COLUMN'", *after):
        source.sql(statement)
    source.enable("dbo.a")
    group.change("INSERT INTO dbo.a (id, tax) VALUES (6, N'123')")
    return group, entry


@pytest.mark.parametrize("gap", ["copy", "fail"])
def test_a_masked_column_that_no_sink_has_yet_does_not_come_in_clear_under_another_name(
    source: Source, gap: str
) -> None:
    group, entry = renamed(source, {**MASKED, "on_gap": gap}, "ALTER TABLE dbo.a ADD ssn nvarchar(20)")
    if gap == "fail":
        group.loaded_up_to_now(A)
        group.change("INSERT INTO dbo.a (id, tax) VALUES (7, N'123')")
    for number in (8, 9):
        plan = plan_of(group, entry)
        assert "renamed to tax" in str(plan.failures[A])
        # it says so again in the next run, which has seen the names of now else
        group.settle(plan, group.request(entry))
        assert schema_events(plan) == []
        group.change(f"INSERT INTO dbo.a (id, tax) VALUES ({number}, N'123')")
    # who names both has said what becomes of each
    plan = plan_of(group, {**entry, "mask": {"ssn": "redact", "tax": "redact"}, "on_gap": "copy"})
    assert plan.failures == {}
    clear = [
        column.name
        for spec in plan.specs
        for column in spec.schema.loaded
        if column.name == "tax" and spec.selection.holds("tax") and "tax" not in spec.selection.masks
    ]
    assert clear == []


def test_the_error_of_one_that_no_sink_has_yet_has_both_names(source: Source) -> None:
    group, entry = renamed(source, MASKED)
    group.loaded_up_to_now(A)
    group.change("INSERT INTO dbo.a (id, tax) VALUES (7, N'123')")
    assert "renamed to tax" in str(plan_of(group, entry).failures[A])


SAID = [{"mask": {"note": "redact"}}, {"rename": {"note": "remark"}}, {}]


@pytest.mark.parametrize("again", ["note", "Note"])
@pytest.mark.parametrize("said", [*SAID, {"columns": ["id", "note"]}], ids=str)
def test_a_table_goes_on_by_the_second_instance(source: Source, said: dict[str, Any], again: str) -> None:
    group = Group(source)
    source.sql("CREATE TABLE dbo.a (id int NOT NULL PRIMARY KEY, v int NULL, note nvarchar(20))")
    source.enable("dbo.a")
    group.change("INSERT INTO dbo.a (id) VALUES (1)")
    entry = {**PROPOSE, **said}
    group.loaded(A)
    group.chosen(A, group.request(entry))
    group.change("INSERT INTO dbo.a (id) VALUES (2)")
    settle(group, entry)
    group.change("ALTER TABLE dbo.a DROP COLUMN note")
    group.change(f"ALTER TABLE dbo.a ADD {again} nvarchar(20)")
    group.change("INSERT INTO dbo.a (id, note) VALUES (3, N'n')")
    group.loaded_up_to_now(A)
    settle(group, entry)
    group.source.sql(SECOND)
    group.change("INSERT INTO dbo.a (id, note) VALUES (4, N'n')")
    group.loaded_up_to_now(A)
    # as where a DBA has let the new one take its place
    group.source.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'a', N'dbo_a'")
    group.change("INSERT INTO dbo.a (id, note) VALUES (5, N'n')")
    plan = plan_of(group, entry)
    assert plan.failures == {}
    assert plan.candidates[A].failed == {}


@pytest.mark.parametrize("again", ["note", "Note"])
@pytest.mark.parametrize("said", SAID, ids=str)
def test_a_table_goes_on_beside_the_first_instance(source: Source, said: dict[str, Any], again: str) -> None:
    """The load goes over by itself, to the instance that it has asked for, or made."""
    group = Group(source)
    source.sql("CREATE TABLE dbo.a (id int NOT NULL PRIMARY KEY, v int NULL, note nvarchar(20))")
    source.enable("dbo.a")
    group.change("INSERT INTO dbo.a (id) VALUES (1)")
    entry = {**PROPOSE, **said, "new_columns": "load"}
    group.loaded(A)
    group.chosen(A, group.request(entry))
    group.change("INSERT INTO dbo.a (id) VALUES (2)")
    settle(group, entry)
    group.change("ALTER TABLE dbo.a DROP COLUMN note")
    group.change(f"ALTER TABLE dbo.a ADD {again} nvarchar(20), other int")
    group.change("INSERT INTO dbo.a (id, note) VALUES (3, N'n')")
    group.loaded_up_to_now(A)
    plan = settle(group, entry)
    (new,) = plan.new_instances.values()
    group.source.sql(new.statement(plan.user))
    group.change("INSERT INTO dbo.a (id, note) VALUES (4, N'n')")
    group.loaded_up_to_now(A)
    group.change("INSERT INTO dbo.a (id, note) VALUES (5, N'n')")
    plan = plan_of(group, entry)
    assert plan.failures == {}
    assert plan.candidates[A].failed == {}
