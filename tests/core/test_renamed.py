"""Columns that have other names than when a sink was loaded: which ones targets follow, and what an entry may say."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.adding import Adding, wider_of
from airflow_provider_mssql_cdc.core.choice import choose
from airflow_provider_mssql_cdc.core.conditions import Condition
from airflow_provider_mssql_cdc.core.dropping import told_of_gone
from airflow_provider_mssql_cdc.core.exceptions import SelectionError
from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.filling import lacking, unfilled_now
from airflow_provider_mssql_cdc.core.formats import COLUMN_MAPPING
from airflow_provider_mssql_cdc.core.going_on import chosen_before, followed, goes_on_with, names_before
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.selection import Selection
from airflow_provider_mssql_cdc.core.spec import Chosen
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema
from airflow_provider_mssql_cdc.core.table_options import Choice, TableOptions
from airflow_provider_mssql_cdc.core.target import Target

NAMES = ("a", "A", "b", "c", "d")
TYPES = ({"type": "int"}, {"type": "bigint"}, {"type": "varchar", "length": 8}, {"type": "varchar", "length": -1})


@st.composite
def renamings(draw):
    """A table's columns then, and those of them that are left now, by other names perhaps, and by other types."""
    drawn = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    then = [Column(n, n, name, **draw(st.sampled_from(TYPES))) for n, name in enumerate(drawn, 1)]
    names = draw(st.lists(st.sampled_from(NAMES), min_size=len(then), max_size=len(then), unique=True))
    now = [dataclasses.replace(column, name=name) for column, name in zip(then, names, strict=True)]
    if draw(st.booleans()):
        now[0] = dataclasses.replace(now[0], **{"length": 0, **draw(st.sampled_from(TYPES))})
    key = draw(st.sampled_from([0, 1])) if len(then) > 1 else 0
    return TableSchema(tuple(then), (then[key].name,)), TableSchema(tuple(now), (now[key].name,))


def model(then: TableSchema, now: TableSchema) -> bool:
    """Whether targets follow all that differs, said column by column."""
    for was, column in zip(then.columns, now.columns, strict=True):
        had = {each.name.lower() for each in then.columns}
        if was.name != column.name and (column.is_lob or was.is_lob or column.name.lower() in had):
            return False
        types = (was.type, was.length), (column.type, column.length)
        if types[0] != types[1] and types != (("int", 0), ("bigint", 0)):
            return False
    return True


@given(renamings())
def test_targets_follow_names_that_no_other_column_had(drawn):
    then, now = drawn
    kept = KeptSchema.of(then)
    found = goes_on_with(now, kept, widens="fail")
    assert (found is not None) == model(then, now)
    if found is None:
        return
    assert found == now
    before = chosen_before(Chosen(now, Selection()), kept)
    assert (before.schema.hash, before.schema.key) == (then.hash, then.key)
    renamed = {c.name: was.name for was, c in zip(then.columns, now.columns, strict=True) if was.name != c.name}
    assert names_before(kept, now) == renamed
    assert {name: each.was.name for name, each in followed(kept, now).items() if each.was.name != name} == renamed
    # no value is another one by its name
    types = {c.name for was, c in zip(then.columns, now.columns, strict=True) if was.type != c.type}
    assert {name for name, each in followed(kept, now).items() if each.anew} <= types
    if renamed:
        assert goes_on_with(now, kept) is None


def live_now(schema: TableSchema) -> set[str]:
    return {column.name.lower() for column in schema.columns}


def facts(column: Column) -> tuple[str, int]:
    return column.type, column.length


@given(renamings(), st.data())
def test_what_the_source_has_dropped_makes_way_for_a_column_that_gets_its_name(drawn, data):
    then, now = drawn
    gone = set(
        data.draw(st.lists(st.sampled_from([c.column_id for c in then.columns if c.name not in then.key] or [9])))
    )
    left = TableSchema(tuple(c for c in now.columns if c.column_id not in gone), now.key)
    names = {c.column_id: c.name for c in then.columns}
    live = {name.lower() for id_, name in names.items() if id_ not in gone}
    dropped = {c.name.lower(): c for c in then.columns if c.column_id in gone}
    renamed = [c for c in left.columns if c.name != names[c.column_id]]
    aside = [dropped[c.name.lower()] for c in renamed if c.name.lower() in dropped]
    small = not any(c.is_lob for c in (*renamed, *aside, *(then.columns[c.column_id - 1] for c in renamed)))
    same = dataclasses.replace(left, columns=tuple(c for c in left.columns if c.name == names[c.column_id]))
    # names that differ in their case alone are another matter, and so are other types
    alike = len({c.name.lower() for c in then.columns}) < len(names) or len(live_now(left)) < len(left.columns)
    if (
        alike
        or live_now(same) & dropped.keys()
        or any(facts(c) != facts(then.columns[c.column_id - 1]) for c in left.columns)
    ):
        return
    found = goes_on_with(left, KeptSchema.of(then), widens="fail", there={c.column_id for c in left.columns})
    follows = small and not any(c.name.lower() in live for c in renamed)
    assert (found is not None) == follows
    if found is None:
        return
    called = {c.column_id: c.name for c in found.columns}
    assert {c.column_id for c in found.columns} == set(names)
    assert {id_: called[id_] for id_ in set(names) - gone} == {c.column_id: c.name for c in left.columns}
    for id_ in gone & set(names):
        assert called[id_] == f"{names[id_]}__dropped_{id_}" if then.columns[id_ - 1] in aside else names[id_]
    assert len({name.lower() for name in called.values()}) == len(called)
    assert chosen_before(Chosen(found, Selection()), KeptSchema.of(then)).schema.hash == then.hash
    # where targets cannot have that name, or names are not followed, it is refused
    if aside:
        how = {"there": {c.column_id for c in left.columns}}
        assert goes_on_with(left, KeptSchema.of(then), widens="fail", sets_aside=lambda _: False, **how) is None
        assert goes_on_with(left, KeptSchema.of(then), **how) is None


def test_a_column_gets_the_name_of_one_that_was_dropped_before_the_same_load():
    then = TableSchema(tuple(Column(n, n, name, "int") for n, name in enumerate(("id", "a", "b"), 1)), ("id",))
    # and another one comes under its own name
    now = TableSchema((then.columns[0], Column(2, 3, "a", "int"), Column(3, 4, "b", "int")), ("id",))
    found = goes_on_with(now, KeptSchema.of(then), widens="fail", there={1, 3, 4})
    assert found is not None
    assert [(column.name, column.column_id) for column in found.columns] == [("id", 1), ("a", 3), ("a__dropped_2", 2)]
    assert names_before(KeptSchema.of(then), found) == {"a": "b", "a__dropped_2": "a"}
    again = goes_on_with(now, KeptSchema.of(found), widens="fail", there={1, 3, 4})
    assert again is not None
    assert again.hash == found.hash


@given(renamings())
def test_what_is_loaded_of_the_rows_is_the_same_by_other_names(drawn):
    then, now = drawn
    names = {c.name: was.name for was, c in zip(then.columns, now.columns, strict=True)}

    def chosen(name):
        return Selection(
            columns=tuple(map(name, names)),
            conditions=tuple(Condition(name(column), "=", ("1",)) for column in names),
            renames={name(column): f"t{n}" for n, column in enumerate(names)},
            masks={name(column): "redact" for column in names},
        )

    assert chosen(str).named(names) == chosen(names.__getitem__)
    assert chosen(str).named({}) == chosen(str)


def test_a_column_that_is_to_be_filled_is_so_by_its_name_of_now():
    then = TableSchema(tuple(Column(n, n, name, "int") for n, name in enumerate("abc", 1)), ("a",))
    now = TableSchema(tuple(Column(n, n, name, "int") for n, name in enumerate("axy", 1)), ("a",))
    types = followed(KeptSchema.of(then), now)
    assert unfilled_now(("b", "c"), types, Chosen(now, Selection())) == ("x", "y")
    # the entry names it as before in the target
    assert unfilled_now(("b", "c"), types, Chosen(now, Selection(renames={"y": "c"}))) == ("x", "c")


def instance(*names: str) -> CaptureInstance:
    columns = tuple(Column(n, n, name, "int") for n, name in enumerate(names, 1))
    return CaptureInstance(
        "i", TableName("dbo", "t"), 1, Lsn(bytes(10)), datetime.datetime(2026, 1, 1), columns=columns
    )


@pytest.mark.parametrize(
    "said",
    [
        {"choice": Choice(columns=("id", "SSN"))},
        {"choice": Choice(mask={"ssn": "redact"})},
        {"choice": Choice(mask={"ssn": "drop"})},
        {"choice": Choice(rename={"ssn": "number"})},
        {"choice": Choice(where=(("ssn", "is not null"),))},
        {"choice": Choice(columns=("id",)), "new_columns": {"ssn": "load"}, "on_schema_change": "evolve"},
        {"partition_by": ("bucket(4, ssn)",)},
        {"copy_by": ("ssn",)},
    ],
)
def test_an_entry_that_names_a_column_of_before_fails_with_both_names(said):
    options = TableOptions(Target.parse("iceberg://lake/x"), ("mirror",), **said)
    adding = Adding(options, lambda _: False, {1: "id", 2: "ssn"})
    feed = instance("id", "tax_number")
    with pytest.raises(
        SelectionError, match=r"the entry names column ssn, which was renamed to tax_number\."
    ) as raised:
        adding.choice(TableSchema(feed.columns, ("id",)), feed)
    assert raised.value.advice == "Name it tax_number."
    feed = instance("id", "ssn")
    adding.choice(TableSchema(feed.columns, ("id",)), feed)


def test_a_masked_column_does_not_come_in_clear_where_another_one_has_its_name():
    feed = instance("id", "tax", "ssn")
    for choice, refused in (
        (Choice(mask={"ssn": "redact"}), True),
        (Choice(columns=("id", "ssn")), True),
        (Choice(mask={"ssn": "redact", "tax": "redact"}), False),
        (Choice(columns=("id", "tax", "ssn")), False),
        (Choice(rename={"ssn": "number"}), False),
    ):
        options = TableOptions(Target.parse("iceberg://lake/x"), ("mirror",), choice=choice)
        adding = Adding(options, lambda _: False, {1: "id", 2: "ssn"})
        with pytest.raises(SelectionError, match="renamed to tax") if refused else contextlib.nullcontext():
            adding.choice(TableSchema(feed.columns, ("id",)), feed)


@pytest.mark.parametrize("entry", [{"mask": {"ssn": "redact"}}, {"columns": ("id", "ssn")}, {"rename": {"ssn": "x"}}])
def test_what_an_entry_says_of_a_dropped_column_it_says_of_one_that_is_spelt_alike(entry):
    choice = Choice(**entry)
    options = TableOptions(
        Target.parse("iceberg://lake/x"), ("mirror",), choice=choice, on_schema_change="evolve", dropped_columns="drop"
    )
    adding = Adding(options, lambda _: False, {1: "id"}, gone=frozenset({"ssn", "note"}))
    feed = instance("id", "SSN")
    assert adding.choice(TableSchema(feed.columns, ("id",)), feed) == choice
    assert told_of_gone(feed, adding.gone, choice) == []
    # of one that has gone it says nothing
    feed = instance("id", "other")
    left = adding.choice(TableSchema(feed.columns, ("id",)), feed)
    assert (left.mask, left.rename, left.columns) == ({}, {}, ("id",) if choice.columns else ())


def test_a_name_that_the_target_keeps_is_no_other_choice():
    assert Selection(renames={"x": "a"}).named({"x": "a"}) == Selection()


def test_a_type_that_targets_do_not_hold_and_that_is_gone_since_is_null_where_it_came_between():
    columns = (Column(1, 1, "id", "int"), Column(2, 2, "a", "int"), Column(3, 3, "b", "varchar", 8))
    then = KeptSchema.of(TableSchema(columns, ("id",)))
    gone = (
        dataclasses.replace(columns[1], type="varchar", length=20, dropped=True),
        dataclasses.replace(columns[2], length=20, dropped=True),
    )
    now = TableSchema((columns[0], *gone), ("id",))
    assert goes_on_with(now, then) is None
    for how in ("fail", "new_column", "string"):
        found = goes_on_with(now, then, widens=how)
        assert found is not None
        # of the other one what came between is read
        assert [(c.name, c.type, c.kept, c.absent) for c in found.columns[1:]] == [
            ("a", "int", True, True),
            ("b", "varchar", True, False),
        ]
        assert lacking(Chosen(found, Selection()), Chosen(found, Selection()), ("a", "b")) == ()


def test_a_kept_column_makes_way_for_another_one_of_its_name():
    columns = [Column(n, n, name, "int") for n, name in enumerate(("id", "a", "b"), 1)]
    then = KeptSchema.of(TableSchema(tuple(columns), ("id",)))
    newer = CaptureInstance(
        "two",
        TableName("dbo", "t"),
        2,
        Lsn(bytes(10)),
        datetime.datetime(2026, 1, 1),
        columns=(*columns[:2], Column(3, 4, "b", "varchar", 8)),
    )
    now = TableSchema(newer.columns, ("id",))
    own = goes_on_with(now, then, widens="fail", there={1, 2, 4})
    assert own is not None
    assert [(column.name, column.column_id) for column in own.columns] == [("id", 1), ("a", 2), ("b", 3)]

    def wider(choice, target="iceberg://lake/x", **properties):
        said = {"choice": choice, "table_properties": properties, "new_columns": "load"}
        options = TableOptions(Target.parse(target), ("mirror",), on_schema_change="evolve", **said)
        adding = Adding(options, lambda _: False, {1: "id", 2: "a", 3: "b"})
        return wider_of(TableName("dbo", "t"), newer, own, adding, lambda _: None, check=None)

    found, refusals = wider(Choice())
    assert (refusals, found is not None) == ({}, True)
    names = [(column.name, column.column_id) for column in found.schema.columns]
    assert names == [("id", 1), ("a", 2), ("b", 4), ("b__dropped_3", 3)]
    assert names_before(then, found.schema) == {"b__dropped_3": "b"}
    assert lacking(found, Chosen(own, Selection()), ()) == ("b",)
    # and goes on so
    again = goes_on_with(now, KeptSchema.of(found.schema), widens="fail", there={1, 2, 4})
    assert again is not None
    assert again.hash == found.schema.hash

    # a Delta table that a load makes can have it
    delta = "delta+file:///x"
    assert wider(Choice(), delta)[0] == found
    for refused in (
        wider(Choice(mask={"b": "redact"})),
        wider(Choice(columns=("id", "a", "b"))),
        wider(Choice(where=(("b", "is not null"),))),
        wider(Choice(), delta, **{COLUMN_MAPPING: "none"}),
    ):
        assert refused == (None, {"b": "targets keep a column of this name, which the source table has dropped"})


@pytest.mark.parametrize(
    "choice",
    [
        Choice(columns=("id", "ssn")),
        Choice(mask={"SSN": "redact"}),
        Choice(mask={"ssn": "drop"}),
        Choice(rename={"ssn": "n"}),
    ],
)
def test_an_option_that_names_a_column_that_was_dropped_before_the_first_load_is_a_warning(choice):
    options = TableOptions(Target.parse("iceberg://lake/x"), ("mirror",), choice=choice)
    adding, feed = Adding(options, lambda _: False, {}), instance("id", "ssn")
    id_, ssn = feed.columns
    feed = dataclasses.replace(feed, columns=(id_, dataclasses.replace(ssn, dropped=True)))
    schema = TableSchema(feed.columns, ("id",))
    left = adding.choice(schema, feed)
    choose(feed.source, schema, left, check=None)
    assert not left.mask
    assert not left.rename
    assert set(left.columns) <= {"id"}
    assert adding.told_of_gone(feed) == ["the entry names column ssn, which was dropped: it says nothing any more"]
    # which rows are loaded it decided
    by_it = dataclasses.replace(options, choice=Choice(where=(("ssn", "is not null"),)))
    with pytest.raises(SelectionError, match="where names 'ssn'"):
        choose(feed.source, schema, dataclasses.replace(adding, options=by_it).choice(schema, feed), check=None)
