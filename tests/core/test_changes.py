import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.changes import CHANGES, DEFAULT, OPERATIONS, HistoryOptions, check_history_key
from airflow_provider_mssql_cdc.core.codec import from_data, to_data
from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.exceptions import KeyRequiredError
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.shapes import event_columns
from airflow_provider_mssql_cdc.core.spec import JobSpec, SinkSpec
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.spark.shapes.wide import wide_columns
from tests.core.test_spec import MARKER, SPEC


def checked(**given):
    return HistoryOptions.checked(
        **{"changes": "all_old", "form": "events", "operations": OPERATIONS, "shapes": ("history",), **given}
    )


def test_what_is_asked_for():
    assert checked() == DEFAULT
    assert checked(operations=["delete", "insert"]).operations == ("insert", "delete")
    assert str(checked(changes="all", operations=["delete", "insert"])) == "'all' changes of insert, delete as events"
    assert [changes for changes in CHANGES if checked(changes=changes).is_net] == ["net", "net_mask", "net_merge"]
    assert checked(shapes=("mirror",)) == DEFAULT
    assert checked(changes="net_merge", operations=["delete"]).operations == ("delete",)
    assert checked(changes="all", operations=["insert"], replay=True).changes == "all"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"changes": "nett"}, "expected one of all, all_old, net"),
        ({"form": "long"}, "history_form='long'"),
        ({"operations": []}, "operations="),
        ({"operations": ["upsert"]}, "operations="),
        ({"operations": ["insert", "insert"]}, "operations="),
        ({"operations": "insert"}, "operations='insert'"),
        ({"changes": "all", "shapes": ("mirror",)}, "belong to shapes"),
        ({"operations": ["insert"], "shapes": ("scd2",)}, "belong to shapes"),
        ({"form": "wide", "changes": "net"}, "has the values before each change"),
        ({"form": "wide", "changes": "all"}, "has the values before each change"),
        ({"changes": "net_merge", "operations": ["insert", "delete"]}, "name both, or neither"),
        ({"changes": "net_mask", "replay": True}, "a replay cannot tell which are missing"),
    ],
)
def test_what_cannot_be_right_is_refused(given, why):
    with pytest.raises(ValueError, match=why):
        checked(**given)


@pytest.mark.parametrize(
    "options", [*(HistoryOptions(changes) for changes in CHANGES), HistoryOptions("all", "events", ("delete",))]
)
def test_some_histories_need_a_key_that_is_enforced(options):
    check_history_key(TableName("s", "t"), options, key=("id",), unique=True)
    for key in ((), ("id",)):
        if options.is_net or (key and options.operations != OPERATIONS):
            with pytest.raises(KeyRequiredError, match=r"s\.t: (changes='net|operations=\['delete)"):
                check_history_key(TableName("s", "t"), options, key=key, unique=False)
        else:
            check_history_key(TableName("s", "t"), options, key=key, unique=False)


NAMES = st.sampled_from(["type", "Type", "lsn", "ts", "_seq", "before_type", "after_lsn", "before_", "x", "x__text"])


@given(st.sets(st.one_of(NAMES, st.text(min_size=1, max_size=9)), max_size=8))
def test_no_two_columns_of_a_wide_history_share_a_name(names):
    distinct = {name.lower(): name for name in names}.values()
    data = [TargetColumn(name, "INT", "{}") for name in distinct]
    columns = [column.name.lower() for column in wide_columns(data, Lsn)]
    assert len(set(columns)) == len(columns) == 2 * len(distinct) + 10


def test_a_wide_history_has_what_identifies_an_event():
    columns = {column.name: column.type for column in wide_columns([TargetColumn("a b", "DATE", "{}")], Lsn)}
    assert {"type", "schema", "table", "lsn", "ts", "before_a b", "after_a b"} <= columns.keys()
    assert columns["before_a b"] == columns["after_a b"] == "DATE"
    assert {name: type_ for name, type_ in columns.items() if name in event_columns(Lsn)} == {
        name: event_columns(Lsn)[name] for name in ("_command_id", "_seqval", "_seq", "_commit_ts_utc", "_unknown")
    }


def test_specs_and_markers_of_before_speak_of_all_changes():
    for value, holder in ((MARKER, lambda data: data), (SPEC, lambda data: data["tables"][0]["sinks"][0])):
        data = to_data(value)
        del holder(data)["history"]
        assert from_data(type(value), data) == value
    options = HistoryOptions("all", "events", ("delete",))
    sink = SinkSpec("history", ("lake", "t"), None, None, history=options)
    spec = dataclasses.replace(SPEC, tables=(dataclasses.replace(SPEC.tables[0], sinks=(sink,)),))
    assert from_data(JobSpec, to_data(spec)) == spec
