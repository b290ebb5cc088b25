"""Columns whose types change: with which a load goes on, as its plan says, and which fail their table."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.exceptions import SchemaChangedError
from airflow_provider_mssql_cdc.core.position import Cut
from airflow_provider_mssql_cdc.core.schema import KeptSchema, SchemaStore
from airflow_provider_mssql_cdc.core.standing import loaded_from
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.planning import plan_load
from tests.operators.test_new_columns import SECOND, settle
from tests.support.hooks.source import Source
from tests.support.operators.group import A, Group

PROPOSE = {"table": "dbo.a", "on_schema_change": "propose"}


@pytest.fixture
def group(source: Source) -> Group:
    """A table that was loaded up to now."""
    made = Group(source)
    made.make("dbo.a")
    made.loaded(A)
    return made


def plan_of(group: Group, entry: dict[str, Any]) -> RunPlan:
    with group.source.hook() as hook:
        return plan_load(hook, group.store, group.request(entry), None)


@pytest.mark.parametrize("mode", ["propose", "evolve"])
def test_a_wider_type_is_followed_where_the_entry_says_so(group: Group, mode: str) -> None:
    group.change("ALTER TABLE dbo.a ALTER COLUMN v bigint")
    group.change("INSERT INTO dbo.a (id, v) VALUES (2, 5000000000)")
    plan = plan_of(group, {"table": "dbo.a", "on_schema_change": mode})
    assert plan.failures == {}
    (spec,) = plan.specs
    assert [(column.name, column.type) for column in spec.schema.columns] == [("id", "int"), ("v", "bigint")]
    stored = group.checkpoint(A)
    assert stored is not None
    loaded = stored.sinks["mirror"].schema_hash
    assert (spec.widens, [*spec.loaded_with]) == (True, [loaded])
    assert "column v was int(4,10,0), and is bigint(8,19,0): mirror follow" in plan.candidates[A].warnings


@pytest.mark.parametrize("mode", ["warn", "fail"])
def test_no_type_is_followed_by_default(group: Group, mode: str) -> None:
    group.change("ALTER TABLE dbo.a ALTER COLUMN v bigint")
    group.change("INSERT INTO dbo.a (id, v) VALUES (2, 5000000000)")
    with pytest.raises(SchemaChangedError):
        raise plan_of(group, {"table": "dbo.a", "on_schema_change": mode}).failures[A]


@pytest.mark.parametrize(
    ("said", "filled", "told"),
    [
        ({}, {"mirror": ("w",)}, "w: filled by a copy of mirror, and shown with all values"),
        ({"fill": "none"}, {}, "w: what mirror has of it stays as it was loaded, until the row changes"),
        ({"rename": {"w": "word"}, "columns": ["id", "w"]}, {"mirror": ("w",)}, "w: filled by a copy of mirror"),
        ({"columns": ["id", "v"]}, {}, ""),
    ],
    ids=str,
)
def test_what_a_type_has_altered_is_read_again(
    source: Source, said: dict[str, Any], filled: dict[str, tuple[str, ...]], told: str
) -> None:
    group = with_text(source, said)
    group.change("ALTER TABLE dbo.a ALTER COLUMN w char(9)")
    # also of a table of which nothing else has changed
    group.change("INSERT INTO dbo.b (id) VALUES (2)")
    plan = plan_of(group, {**PROPOSE, **said})
    assert plan.failures == {}
    assert plan.candidates[A].lagging == filled
    assert [spec.fills for spec in plan.specs] == [True] * len(filled)
    if told:
        assert [text for text in plan.candidates[A].warnings if text.startswith(told)]


def with_text(source: Source, said: dict[str, Any]) -> Group:
    """A table with a text, loaded up to now."""
    group = Group(source)
    group.make("dbo.b")
    source.sql("CREATE TABLE dbo.a (id int NOT NULL PRIMARY KEY, v int NULL, w varchar(5) NULL)")
    source.enable("dbo.a")
    group.change("INSERT INTO dbo.a VALUES (1, 1, 'one')")
    group.loaded(A)
    group.chosen(A, group.request({**PROPOSE, **said}))
    return group


def test_rows_that_a_changed_type_chooses_anew_fail_their_table(source: Source) -> None:
    said = {"where": [("w", "=", "one")]}
    group = with_text(source, said)
    group.change("ALTER TABLE dbo.a ALTER COLUMN w char(9)")
    group.change("INSERT INTO dbo.a VALUES (2, 2, 'one')")
    with pytest.raises(SchemaChangedError, match="where names w, whose type has changed"):
        raise plan_of(group, {**PROPOSE, **said}).failures[A]


def test_a_type_that_targets_hold_in_another_way_fails_its_table(group: Group) -> None:
    group.change("ALTER TABLE dbo.a ALTER COLUMN v varchar(20)")
    group.change("INSERT INTO dbo.a (id, v) VALUES (2, 'two')")
    with pytest.raises(SchemaChangedError, match=r"column v was int.*, and is varchar"):
        raise plan_of(group, PROPOSE).failures[A]


def test_a_column_whose_type_came_back_is_read_again(group: Group) -> None:
    """What it had meanwhile may have altered its values."""
    for type_ in ("varchar(20)", "int"):
        group.change(f"ALTER TABLE dbo.a ALTER COLUMN v {type_}")
    group.change("INSERT INTO dbo.a (id, v) VALUES (2, 2)")
    plan = plan_of(group, PROPOSE)
    assert (plan.failures, plan.candidates[A].lagging) == ({}, {"mirror": ("v",)})
    with pytest.raises(SchemaChangedError, match=r"(?s)ALTER COLUMN v varchar.*ALTER COLUMN v int"):
        raise plan_of(group, {"table": "dbo.a"}).failures[A]


def test_statements_behind_the_cut_count_too(group: Group) -> None:
    """What they have altered is in the change table, and no later run would look at them again."""
    cut = group.change("INSERT INTO dbo.a (id) VALUES (2)")
    for type_ in ("varchar(20)", "int"):
        group.change(f"ALTER TABLE dbo.a ALTER COLUMN v {type_}")
    group.change("INSERT INTO dbo.a (id) VALUES (3)")
    with group.source.hook() as hook:
        plan = plan_load(hook, group.store, group.request(PROPOSE), Cut.at(cut))
    assert (plan.failures, plan.candidates[A].lagging) == ({}, {"mirror": ("v",)})


def test_what_a_load_below_the_statement_has_followed_is_not_refused_above_it(group: Group) -> None:
    """The change table has the type as soon as the capture has read the statement: a run that ends below loads it."""
    group.change("ALTER TABLE dbo.a ALTER COLUMN v bigint")
    group.change("INSERT INTO dbo.a (id, v) VALUES (2, 5000000000)")
    (spec,) = plan_of(group, PROPOSE).specs
    stored = group.checkpoint(A)
    assert stored is not None
    sink = dataclasses.replace(stored.sinks["mirror"], **loaded_from(spec, None))
    SchemaStore(group.variables).keep(KeptSchema.of(spec.schema))
    group.store.overwrite(dataclasses.replace(stored, sinks={"mirror": sink}))
    plan = plan_of(group, PROPOSE)
    assert plan.failures == {}
    (again,) = plan.specs
    assert (again.sinks[0].ddl_upto, again.loaded_with) == (spec.ddl[0].lsn, {})
    # one that comes later is another one
    group.change("ALTER TABLE dbo.a ALTER COLUMN v varchar(20)")
    group.change("ALTER TABLE dbo.a ALTER COLUMN v bigint")
    group.change("INSERT INTO dbo.a (id) VALUES (3)")
    assert plan_of(group, PROPOSE).candidates[A].lagging == {"mirror": ("v",)}


@pytest.mark.parametrize("type_", ["bigint", "varchar(9)"])
def test_a_column_that_no_target_has_yet_may_have_had_another_type(group: Group, type_: str) -> None:
    group.change("INSERT INTO dbo.a (id) VALUES (9)")
    settle(group, PROPOSE)
    group.change("ALTER TABLE dbo.a ADD note int")
    group.source.sql(SECOND)
    group.change("INSERT INTO dbo.a (id, note) VALUES (2, 2)")
    group.loaded_up_to_now(A)
    group.change(f"ALTER TABLE dbo.a ALTER COLUMN note {type_}")
    group.change("INSERT INTO dbo.a (id, note) VALUES (3, 3)")
    plan = plan_of(group, PROPOSE)
    assert plan.failures == {}
    (spec,) = plan.specs
    assert (spec.feed.name, plan.candidates[A].lagging) == ("second", {"mirror": ("note",)})
    # once a target has it, it counts
    group.change("ALTER TABLE dbo.a ALTER COLUMN v varchar(20); INSERT INTO dbo.a (id) VALUES (4)")
    with pytest.raises(SchemaChangedError):
        raise plan_of(group, PROPOSE).failures[A]


def test_a_quiet_table_follows_with_its_next_change(group: Group) -> None:
    group.make("dbo.b")
    group.loaded_up_to_now(A)
    group.change("ALTER TABLE dbo.a ALTER COLUMN v bigint; INSERT INTO dbo.b (id) VALUES (2)")
    plan = plan_of(group, PROPOSE)
    assert (plan.failures, plan.specs) == ({}, [])
    group.settle(plan, group.request(PROPOSE))
    group.change("INSERT INTO dbo.a (id, v) VALUES (2, 5000000000)")
    (spec,) = plan_of(group, PROPOSE).specs
    assert [column.type for column in spec.schema.columns] == ["int", "bigint"]


@pytest.mark.parametrize("dropped", [False, True], ids=["older instance there", "older instance dropped"])
@pytest.mark.parametrize(
    "types", [("(10,2)", "(10,4)"), ("(10,2)", "(12,4)")], ids=["came back", "came back with more digits"]
)
def test_what_was_rounded_is_read_again_though_a_newer_instance_knows_nothing_of_it(
    source: Source, types: tuple[str, str], dropped: bool
) -> None:
    """``cdc.ddl_history`` has of an instance what came after it was made, and goes with it."""
    group = Group(source)
    group.make("dbo.b")
    source.sql("CREATE TABLE dbo.a (id int NOT NULL PRIMARY KEY, d decimal(10,4) NULL)")
    source.enable("dbo.a")
    group.change("INSERT INTO dbo.a VALUES (1, 1.2345)")
    group.loaded(A)
    settle(group, PROPOSE)
    for type_ in types:
        group.change(f"ALTER TABLE dbo.a ALTER COLUMN d decimal{type_}")
    group.change("ALTER TABLE dbo.a ADD note int; INSERT INTO dbo.b (id) VALUES (2)")
    source.sql(SECOND)
    group.change("INSERT INTO dbo.b (id) VALUES (3)")
    plan = plan_of(group, PROPOSE)
    (spec,) = plan.specs
    assert (plan.failures, plan.candidates[A].lagging) == ({}, {"mirror": ("d",)})
    assert (spec.feed.name, spec.sinks[0].unfilled) == ("dbo_a", ("d",))
    # a run that fills nothing moves it on
    moved = plan_of(group, {**PROPOSE, "fill": "none"}).quiet[A]
    group.store.overwrite(moved)
    if dropped:
        source.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'a', N'dbo_a'")
    group.change("INSERT INTO dbo.b (id) VALUES (4)")
    plan = plan_of(group, PROPOSE)
    (spec,) = plan.specs
    assert (plan.failures, plan.candidates[A].lagging) == ({}, {"mirror": ("d", "note")})
    assert (spec.feed.name, spec.ddl, spec.sinks[0].unfilled) == ("second", (), ("d",))
