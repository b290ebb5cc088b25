"""Entries of tables: what is read, what is refused, and which one decides."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.changes import HistoryOptions
from airflow_provider_mssql_cdc.core.exceptions import ParameterError
from airflow_provider_mssql_cdc.core.initial import Initial
from airflow_provider_mssql_cdc.core.patterns import PatternError
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.table_entry import TableEntry
from airflow_provider_mssql_cdc.core.table_options import (
    Choice,
    TableOptions,
    check_entries,
    deciding,
    read_entries,
    shapes_said,
    watched,
)
from airflow_provider_mssql_cdc.core.target import Target

DEFAULTS = TableOptions(
    Target.parse("iceberg://lake/shop"),
    ("mirror", "history"),
    table_properties={"format-version": "3"},
    history=HistoryOptions("all"),
)
PEOPLE: TableEntry = {
    "table": "sales.people",
    "columns": ["id", "email", "ssn"],
    "where": [("status", "<>", "draft"), ("kind", "IN", ["a", "b"]), ("gone", "is  NULL")],
    "rename": {"email": "mail"},
    "mask": {"ssn": "hash"},
    "key": "id",
    "copy_by": ["status", "id"],
    "partition_by": ["bucket(16, id)"],
    "shapes": ["scd2", "history"],
    "deletes": "soft",
    "table_name": "{table}",
    "table_properties": {"a": "b"},
    "on_gap": "copy",
    "on_schema_change": "propose",
    "propose_timeout": 3600,
    "new_columns": {"mail2": "load", "phone": "ask"},
    "fill": "none",
    "history_fill": "all",
    "widen_list": True,
    "incompatible_types": "new_column",
    "dropped_columns": "drop",
    "allow_masked": True,
    "initial": "latest",
    "source": "auto",
}


def test_an_entry_says_all_of_its_keys_and_the_run_what_it_leaves_out():
    orders, people = read_entries(["sales.orders", PEOPLE], salted=True)
    assert orders.options(DEFAULTS) == DEFAULTS
    assert people.options(DEFAULTS) == TableOptions(
        DEFAULTS.target,
        ("scd2", "history"),
        "{table}",
        {"a": "b"},
        ("copy",),
        "soft",
        DEFAULTS.history,
        True,
        ("id",),
        ("bucket(16, id)",),
        Choice(
            ("id", "email", "ssn"),
            (("status", "<>", "draft"), ("kind", "in", ("a", "b")), ("gone", "is null")),
            {"email": "mail"},
            {"ssn": "hash"},
        ),
        Initial.parse("latest"),
        ("status", "id"),
        "propose",
        {"mail2": "load", "phone": "ask"},
        "none",
        datetime.timedelta(hours=1),
        "all",
        True,
        "new_column",
        "drop",
        "auto",
    )
    (alone,) = read_entries({"table": "a"}, salted=False)
    assert alone.options(DEFAULTS) == DEFAULTS
    assert TableEntry.__annotations__.keys() == PEOPLE.keys()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"table": "t", "colums": ["a"]}, "unknown key 'colums': did you mean columns"),
        ({"table": "t", "keys": ["a"]}, "unknown key 'keys': did you mean key"),
        ({"table": "t", "propose_timeout": 0}, "the entry of t has propose_timeout=0: expected seconds or a timedelta"),
        ({"table": "t", "propose_timeout": "1 day"}, "propose_timeout='1 day': expected seconds or a timedelta"),
        (
            {"table": "t", "propose_timeout": datetime.timedelta(-1)},
            "expected seconds or a timedelta of more than 0 s, or None",
        ),
        ({"table": "t", "propose_timeout": 1e20}, "expected seconds or a timedelta of more than 0 s, or None"),
        ({"table": "t", "x": 1}, "unknown key 'x': known are table, columns, where"),
        ({"columns": ["a"]}, "its key table is to name a pattern"),
        ({"table": ["t"]}, "its key table is to name a pattern"),
        (5, "expected a pattern, or a mapping"),
        ({"table": "t", "columns": []}, "at least one"),
        ({"table": "t", "columns": [5]}, "at least one name"),
        ({"table": "t", "key": {}}, "at least one"),
        ({"table": "t", "where": "status = 'a'"}, "expected conditions"),
        ({"table": "t", "where": ["status = 'a'"]}, "expected .column, operator, value."),
        ({"table": "t", "where": [("status",)]}, "expected .column, operator, value."),
        ({"table": "t", "where": [("status", "like", "a%")]}, "'like' is none of =, <>"),
        ({"table": "t", "where": [("status", "=")]}, "'=' takes a value"),
        ({"table": "t", "where": [("status", "is null", 1)]}, "'is null' takes no value"),
        ({"table": "t", "where": [("status", "in", "abc")]}, "'in' takes a list of values"),
        ({"table": "t", "where": [("status", "not in", [])]}, "'not in' takes a list of values"),
        ({"table": "t", "where": [("status", "=", None)]}, 'use "is null"'),
        ({"table": "t", "where": [("status", "in", ["a", None])]}, 'use "is null"'),
        ({"table": "t", "rename": {"a": " "}}, "expected a mapping of names to texts"),
        ({"table": "t", "rename": ["a"]}, "expected a mapping of names to texts"),
        ({"table": "t", "mask": {"a": "md5"}}, r"'md5' for a: expected one of \['hash', 'redact', 'drop'\]"),
        ({"table": "t", "mask": {"a": "hash"}}, "salt_conn_id"),
        ({"table": "t", "shapes": ["mirrors"]}, "mirrors"),
        ({"table": "t", "deletes": "never"}, "'never' of t: expected one of 'hard', 'soft', 'ignore'"),
        ({"table": "t", "table_name": "{x}"}, "the fields are"),
        ({"table": "t", "on_gap": "heal"}, "'heal' of t"),
        ({"table": "t", "on_gap": ["copy", "ct"]}, 'expected "fail", "copy", "ct" or'),
        ({"table": "t", "on_gap": {"ct": 1}}, 'of t: expected "fail"'),
        (
            {"table": "t", "history_fill": "some"},
            "history_fill='some' of t: expected one of 'changed', 'all', 'none'",
        ),
        (
            {"table": "t", "incompatible_types": "text"},
            "incompatible_types='text' of t: expected one of 'fail', 'new_column', 'string'",
        ),
        (
            {"table": "t", "dropped_columns": "null"},
            "dropped_columns='null' of t: expected one of 'keep', 'drop'",
        ),
        ({"table": "t", "fill": "later"}, "fill='later' of t: expected one of 'copy', 'none'"),
        ({"table": "t", "new_columns": "never"}, 'expected "load" or "ask", or column to one of them'),
        ({"table": "t", "new_columns": {"a": "maybe"}}, 'expected "load" or "ask", or column to one of them'),
        ({"table": "t", "new_columns": {}}, 'expected "load" or "ask", or column to one of them'),
        ({"table": "t", "allow_masked": "yes"}, "'yes' of t"),
        ({"table": "t", "initial": "first"}, "the entry of t has initial='first': expected"),
    ],
)
def test_what_cannot_be_right_is_refused_with_the_table_and_the_key(entry, message):
    with pytest.raises(ParameterError, match=message):
        read_entries(["sales.*", entry], salted=False)
    with pytest.raises(ParameterError, match=message):
        check_entries(["sales.*", entry], salted=False)


@pytest.mark.parametrize("tables", [[], (), 5, None])
def test_no_table_at_all_is_refused(tables):
    with pytest.raises(ParameterError, match="at least one pattern"):
        read_entries(tables, salted=False)


def test_a_pattern_that_cannot_be_read_is_refused():
    for tables in (["a.b.c"], [{"table": "a.b.c"}], "a.b.c"):
        with pytest.raises(PatternError):
            check_entries(tables, salted=False)


def test_what_begins_with_a_copy_takes_no_other_beginning():
    (late,) = read_entries({"table": "t", "initial": "latest", "shapes": ["mirror", "scd2"]}, salted=False)
    with pytest.raises(
        ParameterError, match=r'initial="latest" is for history and transactions: mirror and scd2 begin'
    ):
        late.options(DEFAULTS)


def test_parts_that_do_not_go_together_are_refused():
    (wide,) = read_entries({"table": "t", "partition_by": ["id"]}, salted=False)
    with pytest.raises(ParameterError, match="a wide history does not have"):
        wide.options(TableOptions(DEFAULTS.target, ("mirror", "history"), history=HistoryOptions(form="wide")))
    (versions,) = read_entries({"table": "t", "shapes": ["scd2"]}, salted=False)
    with pytest.raises(ParameterError, match="hold shapes="):
        versions.options(TableOptions(Target.parse("parquet+file:///lake"), ("history",)))


@pytest.mark.parametrize(
    "tables",
    [
        "{{ params.tables }}",
        ["{{ params.table }}"],
        [{"table": "{{ params.table }}", "columns": ["{{ params.column }}"]}],
        [{"table": "t", "where": [("at", ">", "{{ ds }}")], "mask": "{{ params.mask }}", "shapes": ["{{ s }}"]}],
    ],
)
def test_templates_are_left_for_the_run(tables):
    check_entries(tables, salted=False)


def test_beside_a_template_the_rest_is_checked():
    for entry in ({"table": "{{ t }}", "colums": []}, {"table": "t", "columns": ["{{ c }}"], "deletes": "x"}):
        with pytest.raises(ParameterError, match=r"colums|deletes"):
            check_entries([entry], salted=False)


def test_shapes_that_a_table_may_have():
    assert shapes_said(["a", {"table": "b", "shapes": ["scd2"]}], ["mirror"]) == {"mirror", "scd2"}
    assert shapes_said([{"table": "b", "shapes": ["{{ s }}"]}], ["mirror"]) > {"mirror", "scd2"}
    assert shapes_said(object(), ["mirror"]) > {"mirror", "scd2"}


A = TableName("sales", "a")


def chosen(*tables):
    entries = read_entries(list(tables), salted=True)
    return entries.index(deciding(A, entries))


def test_an_entry_without_star_wins_as_a_whole_over_those_with_it():
    assert chosen("sales.*", {"table": "sales.a", "key": "id"}) == 1
    assert chosen({"table": "sales.*", "columns": ["id"]}, "sales.a") == 1
    assert chosen("*", {"table": "sales.*", "columns": ["id"]}, "s*.a") == 1
    assert chosen("*.*", "sales.*") == 0


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        (("sales.a", "SALES.A"), "'sales.a' and 'SALES.A' of tables, two entries without"),
        (({"table": "sales.*", "key": "id"}, {"table": "*.a", "key": "id"}), r"'sales.\*' and '\*.a' of tables, two"),
    ],
)
def test_two_that_decide_are_both_named(tables, said):
    with pytest.raises(ParameterError, match=said):
        chosen(*tables)


def test_what_watches_knows_patterns_shapes_and_names_alone():
    assert watched(["sales.*", PEOPLE]) == [
        "sales.*",
        {"table": "sales.people", "shapes": ["scd2", "history"], "table_name": "{table}", "source": "auto"},
    ]
    assert watched("sales.*") == "sales.*"
    with pytest.raises(ParameterError, match="colums"):
        read_entries(watched([{"table": "t", "colums": 1}]), salted=True)


names = st.text("abc ", min_size=1).filter(str.strip)
values = st.text("xy'", max_size=3) | st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)
conditions = st.tuples(names, st.sampled_from(["=", "<>", "<"]), values) | st.tuples(
    names, st.sampled_from(["in", "not in"]), st.lists(values, min_size=1)
)
entries = st.fixed_dictionaries(
    {"table": st.sampled_from(["a", "sales.*"])},
    optional={
        "columns": st.lists(names, min_size=1),
        "where": st.lists(conditions),
        "rename": st.dictionaries(names, names),
        "mask": st.dictionaries(names, st.sampled_from(["hash", "redact", "drop"])),
        "shapes": st.sampled_from([("mirror",), ("history", "scd2")]),
    },
)


@given(st.lists(entries | st.just("sales.*"), min_size=1))
def test_lists_and_tuples_json_and_yaml_mean_the_same(tables):
    read = read_entries(tables, salted=True)
    assert read_entries(tuple(tables), salted=True) == read
    assert read_entries(json.loads(json.dumps(tables)), salted=True) == read
    assert read_entries(yaml.safe_load(yaml.safe_dump(json.loads(json.dumps(tables)))), salted=True) == read


def test_values_that_json_has_not_keep_their_meaning_as_text():
    from tests.core.test_choice import meant

    given = [("at", ">=", datetime.datetime(2026, 1, 31)), ("amount", "<", Decimal("2.50"))]
    (one,) = read_entries({"table": "t", "where": given}, salted=True)
    (other,) = read_entries(json.loads(json.dumps({"table": "t", "where": given}, default=str)), salted=True)
    assert meant(one.options(DEFAULTS).choice).hash == meant(other.options(DEFAULTS).choice).hash
