"""Columns that wait to be asked for: who knows them, and what a run begins without."""

import dataclasses
from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Identity
from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.choice import select
from airflow_provider_mssql_cdc.core.exceptions import SelectionError
from airflow_provider_mssql_cdc.core.filling import beginning
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.schema_sight import SeenSchema
from airflow_provider_mssql_cdc.core.spec import Chosen
from airflow_provider_mssql_cdc.core.table import Column, TableSchema
from airflow_provider_mssql_cdc.core.table_options import Choice, TableOptions
from airflow_provider_mssql_cdc.core.target import Target
from airflow_provider_mssql_cdc.core.waiting import known_waiting, left_by_reset, of_source, waiting_in, without
from tests.core.test_spec import MARKER, ORDERS, SPEC
from tests.support.core.variables import Variables

(TABLE,) = SPEC.tables
SOURCE, ANOTHER = TABLE.feed.source_object_id, TABLE.feed.source_object_id + 1
IDENTITY = Identity("shop", "shop", ORDERS, "iceberg://lake/shop")
OPTIONS = TableOptions(Target.parse("iceberg://lake/shop"), ("mirror",))
SEEN = Checkpoint(
    IDENTITY, seen_schema=SeenSchema("1:abc", with_waiting=True, source_object_id=SOURCE), waiting_ids=(4,)
)
IDS = st.frozensets(st.integers(1, 6))


def schema(ids: Collection[int], key: tuple[str, ...] = ("c1",)) -> TableSchema:
    return TableSchema(tuple(Column(id_, id_, f"c{id_}", "int", 4, 10) for id_ in sorted({1, *ids})), key)


@given(
    IDS,
    st.booleans(),
    st.lists(st.tuples(st.none() | IDS, IDS, st.sampled_from([None, SOURCE, ANOTHER])), max_size=3),
    IDS,
)
def test_what_waits_is_what_any_marker_or_the_checkpoint_names(by_checkpoint, knows, sinks, there):
    table = dataclasses.replace(TABLE, waiting_ids=tuple(by_checkpoint), knows_waiting=knows)
    marked = [
        dataclasses.replace(MARKER, waiting_ids=None if ids is None else tuple(ids), source_object_id=object_id)
        for ids, _, object_id in sinks
    ]
    schemas = [KeptSchema.of(schema(has)) for _, has, _ in sinks]
    # the model: one who knows is believed; where nobody does, and there are targets, what all of them lack was left out
    believed = [
        ids for ids, _, object_id in sinks if (object_id == SOURCE and ids is not None) or (object_id is None and ids)
    ]
    expected = set(by_checkpoint).union(*believed)
    if sinks and not knows and not believed:
        expected |= there - {1}.union(*(has for _, has, _ in sinks))
    assert known_waiting(table, marked, schemas, there) == tuple(sorted(expected))


@given(
    IDS,
    IDS,
    IDS,
    st.lists(st.none() | IDS, max_size=3),
    st.sampled_from(["unknown", "knows", "lost"]),
    IDS,
    st.booleans(),
    st.none() | IDS,
)
def test_a_run_notes_what_was_left_out_and_what_the_entry_does_not_name(
    captured, others, noted, sinks, checkpoint, named, asks, seen
):
    columns = schema(captured).columns
    others -= {column.column_id for column in columns}
    feed = dataclasses.replace(
        TABLE.feed, columns=columns, others=tuple(Column(id_, id_, f"c{id_}", "int", 4, 10) for id_ in sorted(others))
    )
    given_ = dict.fromkeys([f"c{id_}" for id_ in named if id_ in captured | others], "load")
    options = dataclasses.replace(OPTIONS, new_columns=given_ or ("ask" if asks else "load"))
    stored = {
        "unknown": dataclasses.replace(SEEN, seen_schema=SeenSchema("1:abc"), waiting_ids=()),
        "knows": dataclasses.replace(SEEN, waiting_ids=tuple(noted)),
        "lost": None,
    }[checkpoint]
    loaded = [None if has is None else KeptSchema.of(schema(has)) for has in sinks]
    before = None if seen is None else KeptSchema.of(schema(seen))
    # the model: what all sinks lack is known only where each says what it has
    there = {1, *captured, *others}
    lacking = there - {1}.union(*filter(None, sinks)) if sinks and None not in sinks else set()
    expected = {*noted} if checkpoint == "knows" else lacking | others
    if checkpoint != "knows" and seen is not None:
        # what has come since was not left out when the table was first seen
        expected &= {1, *seen}
    if asks and not given_:
        expected |= lacking
        # what has come since the columns were seen no sink can have
        expected |= there - {1, *seen} if seen is not None else set()
    complete = checkpoint == "knows" or (bool(sinks) and None not in sinks)
    gone = tuple(sorted(f"c{id_}" for id_ in expected - there if seen is not None and id_ in {1, *seen}))
    assert waiting_in(feed, stored, before, loaded, options) == (tuple(sorted(expected)), complete, gone)


def test_a_column_waits_that_takes_over_the_name_of_one_that_waited():
    (*columns, last) = schema({2, 3}).columns
    before = KeptSchema.of(schema({2, 3}))
    feed = dataclasses.replace(TABLE.feed, columns=tuple(columns), others=(dataclasses.replace(last, column_id=7),))
    stored = dataclasses.replace(SEEN, waiting_ids=(3,))
    for seen, waits in ((before, (3, 7)), (None, (3,))):
        assert waiting_in(feed, stored, seen, [before], OPTIONS) == (waits, True, ("c3",) if seen else ())
    # also where a run came between, which has seen the table without it
    without_it = KeptSchema.of(schema({2}))
    between = dataclasses.replace(stored, seen_schema=dataclasses.replace(SEEN.seen_schema, waited=("C3",)))
    assert waiting_in(feed, between, without_it, [before], OPTIONS) == ((3, 7), True, ("C3",))


@given(IDS, IDS)
def test_all_but_what_waits_is_loaded_and_the_key(has, waiting):
    kept = {column.column_id for column in without(schema(has), waiting).columns}
    assert kept == ({1, *has} - waiting) | {1}


def test_rows_are_not_filtered_by_what_waits():
    whole = schema({2, 3})
    chosen = Chosen(whole, select(ORDERS, whole, Choice(where=(("c3", ">", 0),)), check=None))
    assert beginning(ORDERS, chosen, {2}).selection.filtered == {"c3"}
    with pytest.raises(SelectionError, match="where names c3, which waits to be asked for") as raised:
        beginning(ORDERS, chosen, {3})
    assert 'new_columns={"c3": "load"}' in raised.value.advice


@pytest.mark.parametrize(
    ("known", "now", "counts"),
    [(SOURCE, SOURCE, True), (SOURCE, None, True), (None, SOURCE, True), (SOURCE, ANOTHER, False)],
)
def test_what_was_seen_of_another_table_does_not_count(known, now, counts):
    stored = dataclasses.replace(SEEN, seen_schema=dataclasses.replace(SEEN.seen_schema, source_object_id=known))
    assert of_source(stored, now) == (stored if counts else Checkpoint(IDENTITY))


def test_a_reset_leaves_what_waits_and_a_second_one_nothing():
    assert left_by_reset(dataclasses.replace(SEEN, ended_copies=("c1 COMPLETED",))) == SEEN
    assert left_by_reset(SEEN) is None
    assert left_by_reset(dataclasses.replace(SEEN, waiting_ids=())) is None


@pytest.mark.parametrize(("object_id", "waits"), [(SOURCE, (4, 7)), (ANOTHER, (7,))])
def test_what_waited_in_a_table_that_is_gone_is_stored_no_longer(object_id, waits):
    store = CheckpointStore(Variables())
    store.save(SEEN)
    seen = dataclasses.replace(SEEN.seen_schema, source_object_id=object_id)
    assert store.save(
        dataclasses.replace(SEEN, seen_schema=seen, waiting_ids=(7,)), of_source(store.load(IDENTITY), object_id)
    )
    assert store.load(IDENTITY).waiting_ids == waits
