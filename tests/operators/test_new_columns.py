"""Columns that a source table gets: which of them a load asks for, waits for, or fills, as its plan says."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.changes import INSERT, UPDATE, WIDE, HistoryOptions
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, SinkState
from airflow_provider_mssql_cdc.core.exceptions import SelectionError
from airflow_provider_mssql_cdc.core.filling import filling
from airflow_provider_mssql_cdc.core.schema import SchemaStore
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.operators.evolving import make_instances
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.intents import Intents
from airflow_provider_mssql_cdc.operators.planning import plan_load
from tests.support.hooks.source import Source
from tests.support.operators.group import A, Group

PROPOSE = {"table": "dbo.a", "on_schema_change": "propose"}
SECOND = "EXEC sys.sp_cdc_enable_table N'dbo', N'a', N'second', @role_name = NULL, @supports_net_changes = 0"


@pytest.fixture
def group(source: Source) -> Group:
    return seen_group(source)


def seen_group(source: Source) -> Group:
    """A table that was loaded and seen by a run."""
    made = Group(source)
    made.make("dbo.a")
    made.loaded(A)
    made.change("INSERT INTO dbo.a (id) VALUES (2)")
    settle(made, PROPOSE)
    return made


def plan_of(group: Group, *entries: dict[str, Any], **given: Any) -> RunPlan:
    with group.source.hook() as hook:
        return plan_load(hook, group.store, group.request(*entries, **given), None)


def lacking(plan: RunPlan) -> tuple[str, ...]:
    """The columns that are to be filled in the mirror."""
    return plan.candidates[A].lagging.get("mirror", ())


def settle(group: Group, *entries: dict[str, Any], **given: Any) -> RunPlan:
    """A run that loads all up to now, as its checkpoint tells."""
    plan = plan_of(group, *entries, **given)
    assert plan.failures == {}
    group.settle(plan, group.request(*entries, **given))
    stored = group.checkpoint(A)
    assert stored is not None
    sight = plan.sights[A]
    SchemaStore(group.variables).keep(sight.schema)
    group.store.overwrite(
        dataclasses.replace(stored, seen_schema=sight.seen, schema_changes=sight.pending, waiting_ids=sight.waiting_ids)
    )
    return plan


def test_a_load_asks_for_an_instance_with_a_column_that_was_added(group: Group) -> None:
    group.change("ALTER TABLE dbo.a ADD note nvarchar(20), twice AS (v * 2)")
    (asked,) = [text for text in settle(group, PROPOSE).candidates[A].warnings if "to load" in text]
    assert asked.startswith("to load note, run in this database, as db_owner: IF NOT EXISTS (SELECT 1 FROM")
    statement = asked.partition("as db_owner: ")[2]
    # twice is as good as once
    for _ in range(2):
        group.source.sql(statement)
    made = group.source.sql("SELECT capture_instance FROM cdc.change_tables ORDER BY create_date")
    assert [name for (name,) in made] == ["dbo_a", "dbo_a__mc2"]

    group.change("INSERT INTO dbo.a (id, note) VALUES (3, N'n')")
    plan = settle(group, PROPOSE)
    assert "capture instance dbo_a__mc2 has note, and is not read: it begins behind" in "".join(
        plan.candidates[A].warnings
    )
    assert plan.candidates[A].feed.name == "dbo_a"
    # a run has come so far
    group.loaded_up_to_now(A)
    plan = plan_of(group, PROPOSE)
    (spec,) = plan.specs
    assert (spec.feed.name, spec.fills) == ("dbo_a__mc2", True)
    ((rows,),) = group.source.sql("SELECT COUNT(*) FROM dbo.a")
    assert plan.warnings == [
        f"dbo.a: to fill note, the key and these columns of {rows} rows are copied (of a table of which nearly all "
        "first rows have the same values there, only the others); all rows of mirror that get a value are written, "
        f"also those that are not copied: up to about {rows} in each, and more where it holds older versions"
    ]
    assert [column.name for column in spec.schema.columns] == ["id", "v", "note"]
    assert lacking(plan_of(group, PROPOSE)) == ("note",)
    assert filling(spec, ["note"]).selection.columns == ("id", "note")
    assert plan_of(group, {"table": "dbo.a"}).candidates[A].feed.name == "dbo_a"


def test_a_table_with_two_instances_gets_no_third(group: Group) -> None:
    group.source.sql(SECOND)
    group.change("ALTER TABLE dbo.a ADD note nvarchar(20)")
    settle(group, PROPOSE)
    group.change("INSERT INTO dbo.a (id) VALUES (3)")
    (asked,) = [text for text in plan_of(group, PROPOSE).candidates[A].warnings if "to load" in text]
    assert "has two already: dbo_a, which this load reads, and second. Once no load reads second any more" in asked


@pytest.mark.parametrize(
    ("said", "filled"),
    [
        ({}, ("note", "more")),
        ({"new_columns": "ask"}, ()),
        ({"new_columns": {"more": "load", "note": "ask"}}, ("more",)),
        ({"columns": ["id", "v"]}, ()),
        ({"columns": ["id", "v", "note"]}, ("note",)),
        ({"columns": ["id", "v"], "new_columns": {"MORE": "load"}}, ("more",)),
        ({"mask": {"v": "redact"}}, ()),
        ({"mask": {"v": "redact", "note": "redact"}}, ("note",)),
        ({"mask": {"note": "drop"}, "new_columns": {"more": "load"}}, ("more",)),
        ({"mask": {"v": "redact"}, "new_columns": "load"}, ("note", "more")),
        ({"where": [("id", ">", 0)]}, ()),
        ({"on_schema_change": "warn"}, ()),
    ],
    ids=str,
)
def test_the_entry_says_which_columns_are_loaded(source: Source, said: dict[str, Any], filled: tuple[str, ...]) -> None:
    entry = {**PROPOSE, **said}
    group = Group(source)
    group.make("dbo.a")
    old = {name: value for name, value in entry.items() if name != "new_columns"}
    for name in ("columns", "mask"):
        if name in old:
            names = [each for each in old[name] if each in ("id", "v")]
            old[name] = names if name == "columns" else {each: old[name][each] for each in names}
    group.loaded(A)
    group.chosen(A, group.request(old))
    group.change("INSERT INTO dbo.a (id) VALUES (2)")
    settle(group, old)
    group.change("ALTER TABLE dbo.a ADD note nvarchar(20), more int")
    group.source.sql(SECOND)
    group.change("INSERT INTO dbo.a (id) VALUES (3)")
    group.loaded_up_to_now(A)
    plan = plan_of(group, entry)
    assert plan.failures == {}
    candidate = plan.candidates[A]
    assert candidate.feed.name == ("second" if filled else "dbo_a")
    assert lacking(plan) == filled
    assert [spec.fills for spec in plan.specs] == ([True] if filled else [])


def partly_captured(source: Source, left_out: str) -> Group:
    """A table that was loaded and seen by a run, by an instance that leaves out a column."""
    group = Group(source)
    group.make("dbo.b")
    source.sql(f"CREATE TABLE dbo.a (id int NOT NULL PRIMARY KEY, v int NULL, {left_out} nvarchar(20))")
    source.sql(
        "EXEC sys.sp_cdc_enable_table N'dbo', N'a', @role_name = NULL, @supports_net_changes = 0,"
        " @captured_column_list = N'id, v'"
    )
    group.change("INSERT INTO dbo.a (id) VALUES (1)")
    group.loaded(A)
    group.change("INSERT INTO dbo.a (id) VALUES (2)")
    settle(group, PROPOSE)
    return group


def test_what_was_not_captured_at_first_sight_waits_until_it_is_named(source: Source) -> None:
    group = partly_captured(source, "kept")
    group.source.sql("ALTER TABLE dbo.a ADD note int")
    group.source.sql(SECOND)
    group.change("INSERT INTO dbo.a (id) VALUES (3)")
    group.loaded_up_to_now(A)
    plan = plan_of(group, PROPOSE)
    assert lacking(plan) == ("note",)
    assert 'column kept of second is left out: it waits until the entry names it: new_columns={"kept": "load"}' in (
        plan.candidates[A].warnings
    )
    named = {**PROPOSE, "new_columns": {"kept": "load"}}
    assert lacking(plan_of(group, named)) == ("kept", "note")

    # `mssql-cdc checkpoint reset` leaves what waits, and the first load leaves it out
    stored = group.checkpoint(A)
    assert stored is not None
    group.store.overwrite(Checkpoint(stored.identity, seen_schema=stored.seen_schema, waiting_ids=stored.waiting_ids))
    for entry, names in ((PROPOSE, ["id", "v", "note"]), (named, ["id", "v", "kept", "note"])):
        (spec,) = plan_of(group, entry).specs
        assert (spec.sinks[0].read_through, [column.name for column in spec.schema.columns]) == (None, names)

    with pytest.raises(SelectionError, match="where names kept, which waits to be asked for"):
        raise plan_of(group, {**PROPOSE, "where": [("kept", "=", "x")]}).failures[A]
    # nor does a position that a person has set beside it say that the target has the column
    loaded = next(iter(stored.loaded.values()))
    stands = SinkState(loaded.applied, loaded.read_through, asserted="0123456789abcdef")
    group.store.overwrite(dataclasses.replace(stored, sinks={"mirror": stands}))
    group.change("INSERT INTO dbo.a (id) VALUES (4)")
    (spec,) = plan_of(group, PROPOSE).specs
    assert [column.name for column in spec.schema.columns] == ["id", "v", "note"]


def test_what_waits_for_the_entry_waits_also_once_another_entry_would_load_it(group: Group) -> None:
    group.change("ALTER TABLE dbo.a ADD note nvarchar(20)")
    group.change("INSERT INTO dbo.a (id) VALUES (3)")
    settle(group, {**PROPOSE, "new_columns": "ask"})
    stored = group.checkpoint(A)
    assert stored is not None
    group.source.sql(SECOND)
    group.change("INSERT INTO dbo.a (id) VALUES (4)")
    group.loaded_up_to_now(A)
    assert lacking(plan_of(group, PROPOSE)) == ()
    # nor does it come by a first load
    group.store.overwrite(dataclasses.replace(stored, sinks={}))
    for said, names in (({}, ["id", "v"]), ({"new_columns": {"note": "load"}}, ["id", "v", "note"])):
        (spec,) = plan_of(group, {**PROPOSE, **said}).specs
        assert (spec.sinks[0].read_through, [column.name for column in spec.schema.columns]) == (None, names)


def test_a_column_that_no_run_has_seen_before_a_reset_waits_for_the_entry(group: Group) -> None:
    stored = group.checkpoint(A)
    assert stored is not None
    group.change("ALTER TABLE dbo.a ADD email nvarchar(20)")
    group.source.sql(SECOND)
    group.source.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'a', N'dbo_a'")
    group.change("INSERT INTO dbo.a (id) VALUES (3)")
    group.store.overwrite(dataclasses.replace(stored, sinks={}))
    asks = {**PROPOSE, "new_columns": "ask"}
    plan = plan_of(group, asks)
    assert plan.sights[A].waiting_ids == (3,)
    (spec,) = plan.specs
    assert ([column.name for column in spec.schema.columns], spec.unnamed_ids) == (["id", "v"], (1, 2, 3))


def test_what_was_left_out_waits_under_its_name_also_once_it_comes_back(source: Source) -> None:
    group = partly_captured(source, "ssn")
    group.change("ALTER TABLE dbo.a DROP COLUMN ssn; INSERT INTO dbo.a (id) VALUES (3)")
    for number in (4, 5):
        settle(group, PROPOSE)
        group.change(f"INSERT INTO dbo.a (id) VALUES ({number})")
    group.change("ALTER TABLE dbo.a ADD ssn varchar(30); INSERT INTO dbo.a (id) VALUES (6)")
    plan = settle(group, PROPOSE)
    assert plan.sights[A].waiting_ids == (3, 4)
    assert [text for text in plan.candidates[A].warnings if "to load" in text] == []
    assert lacking(plan_of(group, {**PROPOSE, "new_columns": {"ssn": "load"}})) == ()


def test_where_it_was_not_noted_what_waits_all_that_the_sinks_lack_does(source: Source) -> None:
    group = partly_captured(source, "kept")
    group.source.sql(SECOND)
    group.change("INSERT INTO dbo.a (id) VALUES (3)")
    stored = group.checkpoint(A)
    assert stored is not None
    assert stored.seen_schema is not None
    seen = dataclasses.replace(stored.seen_schema, with_waiting=False)
    # the newer instance, which is read now, has captured it
    before = dataclasses.replace(stored, seen_schema=seen, waiting_ids=())
    group.store.overwrite(before)
    group.loaded_up_to_now(A)
    group.source.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'a', N'dbo_a'")
    group.change("INSERT INTO dbo.a (id) VALUES (4)")
    sight = plan_of(group, PROPOSE).sights[A]
    assert (sight.waiting_ids, sight.seen.with_waiting) == ((3,), True)
    # of a position that a person has set nobody knows what it has: the job asks the markers
    (sink,) = before.loaded.values()
    stands = SinkState(sink.applied, sink.read_through, asserted="0123456789abcdef")
    group.store.overwrite(dataclasses.replace(before, sinks={"mirror": stands}))
    assert not plan_of(group, PROPOSE).sights[A].seen.with_waiting


def test_a_shape_begins_without_what_waits_also_beside_one_that_cannot_go_on(source: Source) -> None:
    group = partly_captured(source, "kept")
    group.source.sql(SECOND)
    group.change("INSERT INTO dbo.a (id) VALUES (3)")
    group.loaded_up_to_now(A)
    group.source.sql("ALTER TABLE dbo.a ALTER COLUMN v varchar(20)")
    group.source.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'a', N'dbo_a'")
    group.change("INSERT INTO dbo.a (id) VALUES (4)")
    plan = plan_of(group, {**PROPOSE, "shapes": ["mirror", "history"]})
    candidate = plan.candidates[A]
    assert (list(candidate.failed), list(candidate.sinks)) == (["mirror"], ["history"])
    assert [column.name for column in candidate.schema.columns] == ["id", "v"]


def test_no_row_is_copied_where_the_entry_says_so(group: Group) -> None:
    group.change("ALTER TABLE dbo.a ADD note nvarchar(20)")
    group.source.sql(SECOND)
    group.change("INSERT INTO dbo.a (id) VALUES (3)")
    group.loaded_up_to_now(A)
    group.change("INSERT INTO dbo.a (id) VALUES (4)")
    plan = plan_of(group, {**PROPOSE, "fill": "none"})
    (spec,) = plan.specs
    assert [column.name for column in spec.schema.columns] == ["id", "v", "note"]
    assert (spec.feed.name, spec.grows, spec.leaves_null, spec.fills, lacking(plan)) == (
        "second",
        True,
        True,
        False,
        (),
    )
    assert 'note: NULL in the rows that targets have, until they change: fill="none"' in plan.candidates[A].warnings


def test_what_cannot_be_copied_as_it_is_is_not_filled(group: Group) -> None:
    entry = {**PROPOSE, "where": [["v", ">", 0]], "new_columns": "load"}
    group.chosen(A, group.request(entry))
    group.change("ALTER TABLE dbo.a ADD text nvarchar(max), note int")
    group.source.sql(SECOND)
    group.change("INSERT INTO dbo.a (id) VALUES (3)")
    group.loaded_up_to_now(A)
    plan = plan_of(group, entry)
    assert lacking(plan) == ("note",)
    assert "column text of second is left out: where and a mirror that holds text" in "".join(
        plan.candidates[A].warnings
    )


@pytest.mark.parametrize("second", [True, False])
@pytest.mark.parametrize(
    ("name", "said"), [("_lsn", {}), ("amount", {"rename": {"v": "Amount"}}), ("_Seq", {"rename": {"v": "w"}})]
)
def test_a_new_column_whose_name_is_taken_fails_the_table(
    group: Group, name: str, said: dict[str, Any], second: bool
) -> None:
    """Whether an instance has it yet or not; a rename, or that it waits, lets the table go on."""
    entry = {**PROPOSE, **said}
    group.chosen(A, group.request(entry))
    group.change(f"ALTER TABLE dbo.a ADD {name} int")
    if second:
        group.source.sql(SECOND)
    group.change("INSERT INTO dbo.a (id) VALUES (3)")
    group.loaded_up_to_now(A)
    failed = plan_of(group, entry).failures[A]
    assert f"column '{name}' of type int would be loaded as '{name}', the name of" in failed.message
    assert f'new_columns={{"{name}": "ask"}}' in str(failed.advice)
    assert plan_of(group, {**entry, "on_schema_change": "warn"}).failures == {}
    assert plan_of(group, {**entry, "new_columns": {name: "ask"}}).failures == {}
    renamed = {**entry, "rename": {**said.get("rename", {}), name: "other"}}
    plan = plan_of(group, renamed)
    assert plan.failures == {}
    if second:
        assert lacking(plan) == (name,)


def test_a_name_that_a_dropped_column_has_is_waited_for(group: Group) -> None:
    """Targets may drop that column at the statement, and free the name."""
    entry = {**PROPOSE, "rename": {"v": "other"}, "dropped_columns": "drop"}
    group.chosen(A, group.request(entry))
    group.change("ALTER TABLE dbo.a DROP COLUMN v; ALTER TABLE dbo.a ADD other int")
    group.source.sql(SECOND)
    group.change("INSERT INTO dbo.a (id) VALUES (3)")
    plan = plan_of(group, entry)
    assert plan.failures == {}
    assert plan.specs


def evolve(group: Group, hook: MsSqlCdcHook | None = None, *, lock_timeout: float = 5.0, **said: Any) -> list[str]:
    """What a run says that makes instances."""
    entry = {**PROPOSE, "on_schema_change": "evolve", **said}
    with group.source.hook() as own:
        plan = plan_load(own, group.store, group.request(entry), None)
        plan.warnings.clear()
        make_instances(plan, hook or own, Intents(group.store, plan), lock_timeout=lock_timeout)
    return plan.warnings


def instances(group: Group) -> list[str]:
    rows = group.source.sql("SELECT capture_instance FROM cdc.change_tables ORDER BY create_date")
    return [name for (name,) in rows]


def test_a_load_that_may_makes_the_instance(group: Group) -> None:
    group.change("ALTER TABLE dbo.a ADD note nvarchar(20)")
    assert evolve(group) == ["dbo.a: capture instance dbo_a__mc2 was made with note"]
    assert instances(group) == ["dbo_a", "dbo_a__mc2"]
    rows = group.source.sql("SELECT column_name FROM cdc.captured_columns ORDER BY object_id, column_ordinal")
    assert [name for (name,) in rows] == ["id", "v", "id", "v", "note"]
    # it is there, and the load goes over to it by itself
    assert evolve(group) == []
    group.change("ALTER TABLE dbo.a ADD more int")
    (text,) = evolve(group)
    assert "the table has two already: dbo_a, which this load reads, and dbo_a__mc2" in text


def test_an_instance_that_leaves_out_columns_on_purpose_stays_alone(source: Source) -> None:
    group = partly_captured(source, "ssn")
    group.change("ALTER TABLE dbo.a ADD note int")
    (text,) = evolve(group)
    assert text.startswith("dbo.a: its capture instance leaves out columns on purpose, so none is made beside it (wide")
    assert instances(group) == ["dbo_b", "dbo_a"]
    # nor does the one that is made nevertheless have what was left out
    (text,) = evolve(group, widen_list=True)
    assert "capture instance dbo_a__mc2 was made with note" in text
    rows = group.source.sql(
        "SELECT column_name FROM cdc.captured_columns AS c JOIN cdc.change_tables AS t ON t.object_id = c.object_id"
        " WHERE t.capture_instance = N'dbo_a__mc2' ORDER BY column_ordinal"
    )
    assert [name for (name,) in rows] == ["id", "v", "note"]


def test_what_is_in_the_way_of_making_one_is_said_and_fails_no_load(group: Group) -> None:
    group.change("ALTER TABLE dbo.a ADD note nvarchar(20)")
    with group.reader("change_tables", "captured_columns") as reader:
        (text,) = evolve(group, reader)
    assert text.startswith("dbo.a: capture instance dbo_a__mc2 could not be made (")
    assert "as db_owner: IF NOT EXISTS" in text
    with group.source.hook() as writer:
        writer.query("BEGIN TRAN UPDATE dbo.a SET v = 1")
        (text,) = evolve(group, lock_timeout=0.2)
        writer.query("ROLLBACK")
    assert text.startswith(
        "dbo.a: capture instance dbo_a__mc2 with note is not made yet, the next run tries: dbo.a was"
    )
    assert instances(group) == ["dbo_a"]
    assert evolve(group) == ["dbo.a: capture instance dbo_a__mc2 was made with note"]


def test_a_limited_run_fills_nothing_and_lets_what_only_adds_rows_have_the_column(group: Group) -> None:
    group.change("ALTER TABLE dbo.a ADD note nvarchar(20)")
    group.source.sql(SECOND)
    group.change("INSERT INTO dbo.a (id) VALUES (3)")
    group.loaded_up_to_now(A)
    for number in (4, 5):
        group.change(f"INSERT INTO dbo.a (id) VALUES ({number})")
    with group.source.hook() as hook:
        (spec,) = plan_load(hook, group.store, group.request(PROPOSE, max_transactions=1), None).specs
    assert (spec.feed.name, spec.grows, spec.fills) == ("second", True, False)
    assert list(spec.loaded_with.values()) == [spec_schema(group)]
    # one that is to go on without it goes on by the instance that it has
    (spec,) = plan_of(group, {"table": "dbo.a"}).specs
    assert (spec.feed.name, spec.grows, spec.fills) == ("dbo_a", False, False)


def spec_schema(group: Group) -> str:
    """The columns that the mirror was loaded with."""
    (spec,) = plan_of(group, {"table": "dbo.a"}).specs
    return spec.schema.canonical


def test_an_instance_is_asked_for_that_lacks_what_the_source_has_dropped(group: Group) -> None:
    group.change("ALTER TABLE dbo.a DROP COLUMN v")
    group.change("ALTER TABLE dbo.a ADD note nvarchar(20); INSERT INTO dbo.a (id) VALUES (3)")
    # a checkpoint of before says nothing of the table whose columns these are
    stored = group.checkpoint(A)
    assert stored is not None
    assert stored.seen_schema is not None
    older = dataclasses.replace(stored.seen_schema, source_object_id=None)
    group.store.overwrite(dataclasses.replace(stored, seen_schema=older))
    text = "note cannot be loaded by another capture instance: the sinks have v, which it would not have"
    assert text in plan_of(group, PROPOSE).candidates[A].warnings
    group.store.overwrite(stored)
    (made,) = evolve(group)
    assert made.startswith("dbo.a: capture instance dbo_a__mc2 was made")
    group.change("INSERT INTO dbo.a (id, note) VALUES (4, N'n')")
    group.loaded_up_to_now(A)
    group.change("INSERT INTO dbo.a (id, note) VALUES (5, N'n')")
    plan = plan_of(group, PROPOSE)
    assert plan.failures == {}
    (spec,) = plan.specs
    assert (spec.feed.name, lacking(plan)) == ("dbo_a__mc2", ("note",))
    columns = [(column.name, column.kept, column.absent) for column in spec.schema.columns]
    assert columns == [("id", False, False), ("note", False, False), ("v", True, True)]


def test_no_instance_is_asked_for_because_of_what_is_not_loaded(group: Group) -> None:
    group.change("ALTER TABLE dbo.a ADD note nvarchar(20), more int")
    entry = {**PROPOSE, "mask": {"note": "drop"}, "new_columns": "load"}
    plan = plan_of(group, entry)
    assert [new.wanted for new in plan.new_instances.values()] == [("more",)]
    assert plan_of(group, {**entry, "new_columns": {"more": "ask"}}).new_instances == {}


@pytest.mark.parametrize(
    ("key", "said", "why"),
    [
        ("PRIMARY KEY", {"history": HistoryOptions(form=WIDE)}, "it is wide"),
        ("PRIMARY KEY", {"history": HistoryOptions(operations=(INSERT, UPDATE))}, "it has some operations only"),
        ("", {}, "the table has no key"),
        ("PRIMARY KEY", {}, None),
    ],
    ids=str,
)
def test_a_history_that_gets_no_rows_is_told_with_their_number(
    source: Source, key: str, said: dict[str, Any], why: str | None
) -> None:
    group = Group(source, "history")
    source.sql(f"CREATE TABLE dbo.a (id int NOT NULL {key}, v int NULL)")
    source.enable("dbo.a")
    group.change("INSERT INTO dbo.a (id) VALUES (1), (2), (3)")
    group.loaded(A)
    group.change("INSERT INTO dbo.a (id) VALUES (4)")
    settle(group, PROPOSE, **said)
    group.change("ALTER TABLE dbo.a ADD note nvarchar(20)")
    settle(group, PROPOSE, **said)
    group.source.sql(SECOND)
    group.change("INSERT INTO dbo.a (id, note) VALUES (5, N'n')")
    settle(group, PROPOSE, **said)
    group.loaded_up_to_now(A)
    # the step with which the history takes the column
    group.change("INSERT INTO dbo.a (id, note) VALUES (6, N'n')")
    plan = plan_of(group, PROPOSE, **said)
    assert (plan.failures, plan.candidates[A].feed.name) == ({}, "second")
    warned = [text for text in plan.candidates[A].warnings if "gets no rows" in text]
    counted = [text for text in plan.warnings if "gets no rows" in text]
    assert warned == ([f"note: history gets no rows with the values of before, since {why}"] if why else [])
    told = f"dbo.a: history gets no rows with note for the 6 rows of the table, since {why}"
    assert counted == ([told] if why else [])
    assert plan.candidates[A].lagging == ({} if why else {"history": ("note",)})
