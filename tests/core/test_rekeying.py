"""Sinks that were loaded by another key than that of now: under ``evolve`` they go on by it, with a copy."""

from __future__ import annotations

import dataclasses
import datetime

import pytest

from airflow_provider_mssql_cdc.core.changes import HistoryOptions
from airflow_provider_mssql_cdc.core.checkpoint import SinkState
from airflow_provider_mssql_cdc.core.choice import Choice
from airflow_provider_mssql_cdc.core.columns import map_columns
from airflow_provider_mssql_cdc.core.exceptions import (
    GapError,
    KeyRequiredError,
    SchemaChangedError,
    SelectionChangedError,
    SelectionError,
)
from airflow_provider_mssql_cdc.core.feed import FeedRef, Probe
from airflow_provider_mssql_cdc.core.going_on import as_before
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.rekeying import (
    anew_without_checkpoint,
    begins_anew,
    by_loaded_key,
    had,
    key_columns_before,
)
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.schema_sight import SeenSchema
from airflow_provider_mssql_cdc.core.selection import Selection
from airflow_provider_mssql_cdc.core.spec import Chosen
from airflow_provider_mssql_cdc.core.steps import Stand, checkpoint_steps, table_steps
from airflow_provider_mssql_cdc.core.table import Column, TableSchema
from airflow_provider_mssql_cdc.core.table_spec import table_spec
from tests.core.test_plan import IDENTITY, OPTIONS, ORDERS, instance, lsn, verdict
from tests.support.core.states import checkpoint_of

DAY = datetime.datetime(2026, 3, 1)
ID, CODE = Column(1, 1, "id", "int", 4, 10, nullable=False), Column(2, 2, "code", "varchar", 9)
NOTE, SKU = Column(3, 3, "note", "int", 4, 10), Column(4, 4, "sku", "int", 4, 10, nullable=False)
THEN = TableSchema((ID, CODE, NOTE), ("id",))
KEPT = {THEN.hash: KeptSchema.of(THEN)}
SHAPES = ("mirror", "history", "scd2", "transactions")
EVOLVE = dataclasses.replace(OPTIONS, shapes=SHAPES, on_schema_change="evolve")


def of_now(*columns: Column, key=("code",), **fields):
    return instance(columns=columns or (ID, CODE, NOTE), **{"index_key": key, "primary_key": key, **fields})


def stored(schema=THEN, shapes=SHAPES, position=50, of=None, **fields):
    state = SinkState(lsn(position), lsn(position), Witness(lsn(50), DAY))
    feed = FeedRef.of(of or of_now())
    return checkpoint_of(IDENTITY, dict.fromkeys(shapes, state), feed, schema.hash, **fields)


def planned(candidate, options=EVOLVE, cut=90, newest=None):
    probe = Probe(lsn(cut), newest or {}, {candidate.feed.object_id: candidate.feed.readable_from})
    spec = table_spec(candidate, options)
    return spec, checkpoint_steps(spec, probe, lsn(cut))


def test_each_sink_with_rows_begins_anew_and_transactions_go_on():
    found = verdict(stored(), [of_now()], options=EVOLVE, kept=KEPT.get)
    assert found.failed == {}
    assert (
        "the key was (id), and is (code): a copy of the table loads mirror, history, scd2 anew by it" in found.warnings
    )
    spec, steps = planned(found, newest={"sales_orders": lsn(80)})
    assert spec.schema == dataclasses.replace(THEN, key=("code",))
    assert [sink.rekeyed for sink in spec.sinks] == [True] * 4
    assert steps.copies == dict.fromkeys(SHAPES[:3], lsn(50))
    assert {shape: (window.after, window.upto) for shape, window in steps.windows.items()} == {
        "transactions": (lsn(50), lsn(90))
    }
    assert next(str(commit) for commit in steps.commits).startswith(
        f"copy mirror again by another key, after {lsn(50)}, "
    )


def test_a_history_without_copied_rows_goes_on_and_nobody_is_told_of_a_copy_of_it():
    wide = dataclasses.replace(EVOLVE, history=HistoryOptions(form="wide"))
    found = verdict(stored(), [of_now()], options=wide, kept=KEPT.get)
    told = [text for text in found.warnings if "the key was" in text]
    assert told == ["the key was (id), and is (code): a copy of the table loads mirror, scd2 anew by it"]
    assert planned(found, wide)[1].windows.keys() == {"history", "transactions"}


@pytest.mark.parametrize("how", ["fail", "warn", "propose"])
def test_else_it_fails_and_says_what_to_do(how):
    options = dataclasses.replace(EVOLVE, on_schema_change=how)
    with pytest.raises(SchemaChangedError, match=r"the key was \(id\), and is \(code\)[^$]*on_schema_change=.evolve"):
        verdict(stored(), [of_now()], options=options, kept=KEPT.get)


def test_one_that_has_it_by_its_marker_goes_on_and_one_that_was_rolled_back_begins_anew():
    spec, _ = planned(verdict(stored(), [of_now()], options=EVOLVE, kept=KEPT.get))
    stands = {"mirror": Stand(lsn(70)), "history": Stand(lsn(90), rekeyed=True), "scd2": Stand(lsn(50), rekeyed=True)}
    steps = table_steps(spec, stands, cut=lsn(90), readable_from=lsn(9))
    assert steps.copies == {"history": lsn(90), "scd2": lsn(50)}
    assert {shape: window.after for shape, window in steps.windows.items()} == {"mirror": lsn(70)}


def test_what_is_lost_meanwhile_keeps_nobody_from_the_copy():
    """SQL Server lets nobody change a key that change data capture uses: it is off meanwhile."""
    anew = of_now(object_id=12, day=2, min_lsn=60)
    gone = stored(of=instance())
    reset = dataclasses.replace(
        gone, sinks={shape: dataclasses.replace(sink, feed=None) for shape, sink in gone.sinks.items()}
    )
    found = verdict(reset, [anew], options=EVOLVE, kept=KEPT.get)
    _, steps = planned(found)
    assert steps.begins == dict.fromkeys(SHAPES, lsn(50))
    assert found.failed == {}


def test_a_quiet_table_has_lost_nothing_of_what_was_proven_empty():
    """Its marker lies behind what can still be read, and its position does not."""
    quiet = stored()
    quiet = dataclasses.replace(
        quiet, sinks={shape: dataclasses.replace(sink, read_through=lsn(70)) for shape, sink in quiet.sinks.items()}
    )
    spec, steps = planned(verdict(quiet, [of_now(min_lsn=60)], options=EVOLVE, kept=KEPT.get))
    assert {(sink.read_through, sink.expects, sink.lost_after) for sink in spec.sinks} == {(lsn(70), lsn(50), None)}
    assert steps.copies == dict.fromkeys(SHAPES[:3], lsn(70))
    found = {shape: Stand(lsn(50), rekeyed=True) for shape in SHAPES}
    steps = table_steps(spec, found, cut=lsn(90), readable_from=lsn(60))
    assert (steps.copies, steps.lost) == (dict.fromkeys(SHAPES[:3], lsn(70)), {})
    # one that another run has loaded by it goes on from there, and one whose marker is gone was not expected to be
    steps = table_steps(spec, {"mirror": Stand(lsn(80))}, cut=lsn(90), readable_from=lsn(60))
    assert (steps.copies, steps.windows["mirror"].after) == ({}, lsn(80))


def test_an_asserted_one_begins_anew_by_another_key():
    spec, _ = planned(verdict(stored(), [of_now()], options=EVOLVE, kept=KEPT.get))
    stands = {"mirror": Stand(lsn(50), asserted=True, rekeyed=True)}
    assert table_steps(spec, stands, cut=lsn(90), readable_from=lsn(9)).copies == {"mirror": lsn(50)}


def test_what_was_purged_is_lost_unless_its_instance_had_to_go():
    anew = of_now(min_lsn=60)
    found = verdict(stored(), [anew], options=EVOLVE, kept=KEPT.get)
    assert found.failed.keys() == {"history", "transactions"}
    assert all(isinstance(error, GapError) for error in found.failed.values())
    assert planned(found)[1].copies == dict.fromkeys(("mirror", "scd2"), lsn(50))
    closing = dataclasses.replace(EVOLVE, on_gap=("copy",))
    found = verdict(stored(), [anew], options=closing, kept=KEPT.get)
    assert (found.failed, planned(found, closing)[1].begins) == ({}, dict.fromkeys(SHAPES, lsn(50)))


def test_the_entry_names_another_one():
    then, bare = dataclasses.replace(THEN, key=("id",)), of_now(key=(), index_key=(), primary_key=())
    options = dataclasses.replace(EVOLVE, shapes=("mirror", "history"))
    before = stored(then, options.shapes, of=bare)
    assert planned(verdict(before, [bare], options=options, kept=KEPT.get, key=["id"]), options)[1].copies == {}
    spec, steps = planned(verdict(before, [bare], options=options, kept=KEPT.get, key=["code"]), options)
    assert (spec.schema.key, spec.unique_key, steps.copies.keys()) == (("code",), False, {"mirror", "history"})
    with pytest.raises(KeyRequiredError, match="mirror needs a key"):
        raise verdict(before, [bare], options=options, kept=KEPT.get).failed["mirror"]


def test_a_primary_key_that_the_instance_lacks_is_an_event_only():
    bare = of_now(index_key=(), primary_key=("code",))
    options = dataclasses.replace(OPTIONS, shapes=("mirror", "history"))
    for how in ("warn", "evolve"):
        asked = dataclasses.replace(options, on_schema_change=how)
        found = verdict(stored(THEN, options.shapes, of=bare), [bare], options=asked, kept=KEPT.get, key=["id"])
        assert (found.schema, found.unique_key, found.failed) == (THEN, False, {})
    keyless = dataclasses.replace(THEN, key=())
    kept = {keyless.hash: KeptSchema.of(keyless)}
    only = dataclasses.replace(options, shapes=("history",))
    found = verdict(stored(keyless, ("history",), of=bare), [bare], options=only, kept=kept.get)
    assert (found.schema.key, found.failed) == ((), {})
    # of one that is loaded for the first time it is the key
    assert verdict(None, [bare], options=options, key=["id"]).schema.key == ("code",)


def test_a_column_of_the_key_that_has_just_come_comes_with_it():
    made = of_now(ID, CODE, NOTE, SKU, key=("sku",))
    seen = SeenSchema("1:x", with_waiting=True, source_object_id=1)
    spec, steps = planned(verdict(stored(seen_schema=seen), [made], options=EVOLVE, kept=KEPT.get))
    assert [column.name for column in spec.schema.columns] == ["id", "code", "note", "sku"]
    assert steps.copies.keys() == {*SHAPES[:3]}
    waits = stored(seen_schema=seen, waiting_ids=(4,))
    with pytest.raises(SelectionError, match=r"column sku waits to be asked for.*new_columns=.\"sku\": \"load\""):
        verdict(waits, [made], options=EVOLVE, kept=KEPT.get)
    named = dataclasses.replace(EVOLVE, new_columns={"sku": "load"})
    assert verdict(waits, [made], options=named, kept=KEPT.get).schema.key == ("sku",)


def test_the_key_of_before_may_be_gone():
    gone = dataclasses.replace(ID, dropped=True)
    made = of_now(gone, CODE, NOTE)
    spec, steps = planned(verdict(stored(), [made], options=EVOLVE, kept=KEPT.get))
    assert (spec.schema.kept, spec.schema.key) == (("id",), ("code",))
    assert steps.copies.keys() == {*SHAPES[:3]}
    # nor does an instance have it that is made since
    seen = SeenSchema("1:x", with_waiting=True, source_object_id=1)
    absent = of_now(CODE, NOTE)
    spec, _ = planned(verdict(stored(seen_schema=seen), [absent], options=EVOLVE, kept=KEPT.get))
    assert (spec.schema.kept, [c.absent for c in spec.schema.columns]) == (("id",), [False, False, True])


GIVEN = Column(5, 5, "gid", "int", 4, 10, nullable=False)


def test_no_row_is_kept_of_which_nothing_tells_whether_it_is_there():
    """The key of before is gone, and the rows have nothing of that of now."""
    made = of_now(dataclasses.replace(ID, dropped=True), CODE, NOTE, GIVEN, key=("gid",))
    before = stored(seen_schema=SeenSchema("1:x", with_waiting=True, source_object_id=1))
    ignoring = dataclasses.replace(EVOLVE, deletes="ignore")
    found = verdict(before, [made], options=ignoring, kept=KEPT.get)
    assert found.failed.keys() == {"mirror"}
    with pytest.raises(SchemaChangedError, match=r"which of its rows are gone.*\(gid\).*\(id\)"):
        raise found.failed["mirror"]
    soft = dataclasses.replace(EVOLVE, deletes="soft")
    found = verdict(before, [made], options=soft, kept=KEPT.get)
    assert found.failed == {}
    assert any("mirror marks no row as deleted that is gone since" in text for text in found.warnings)
    # by one of them they are told apart
    for made in (
        of_now(ID, CODE, NOTE, GIVEN, key=("gid",)),
        of_now(dataclasses.replace(ID, dropped=True), CODE, NOTE),
    ):
        for options in (ignoring, soft):
            found = verdict(before, [made], options=options, kept=KEPT.get)
            assert (found.failed, [text for text in found.warnings if "marks" in text]) == ({}, [])


def test_a_column_of_the_key_that_the_entry_left_out_comes_once_it_names_it():
    chosen = ("id", "note")
    before = dataclasses.replace(EVOLVE, choice=Choice(columns=chosen))
    selection = verdict(None, [of_now(key=("id",))], options=before).selection
    state = stored(selection_hash=selection.hash, selection=selection.describe())
    with pytest.raises(SelectionError, match="Load the whole key"):
        verdict(state, [of_now()], options=before, kept=KEPT.get)
    for columns in (("id", "note", "code"), ()):
        named = dataclasses.replace(EVOLVE, choice=Choice(columns=columns))
        found = verdict(state, [of_now()], options=named, kept=KEPT.get)
        assert (found.failed, found.schema.key) == ({}, ("code",))
        has = had(Chosen(found.schema, found.selection), KEPT[THEN.hash], selection.hash)
        assert ([column.name for column in has.schema.columns], has.selection.hash) == (["id", "note"], selection.hash)
    other = dataclasses.replace(EVOLVE, choice=Choice(columns=("id", "code")))
    with pytest.raises(SelectionChangedError):
        verdict(state, [of_now()], options=other, kept=KEPT.get)


def test_the_order_of_a_key_is_none_of_it():
    both = dataclasses.replace(THEN, key=("code", "id"))
    kept = {both.hash: KeptSchema.of(both)}
    for how in ("warn", "evolve"):
        options = dataclasses.replace(OPTIONS, on_schema_change=how)
        found = verdict(
            stored(both, options.shapes),
            [of_now(key=("id", "code"))],
            options=options,
            kept=kept.get,
            key=["code", "id"],
        )
        assert (found.schema, found.unique_key, found.failed, found.rekeyed) == (both, True, {}, {})


def test_without_its_checkpoint_a_table_is_loaded_by_the_key_that_its_targets_have():
    both = dataclasses.replace(THEN, key=("code", "id"))
    spec = table_spec(verdict(None, [of_now(key=("id", "code"))], options=EVOLVE), EVOLVE)
    assert (spec.schema.key, by_loaded_key(spec, [KeptSchema.of(both)]).schema) == (("id", "code"), both)
    # a primary key that the instance does not have
    bare = of_now(index_key=(), primary_key=("code",))
    named = dataclasses.replace(EVOLVE, key=("id",))
    spec = table_spec(verdict(None, [bare], options=EVOLVE, key=["id"]), named)
    assert (spec.schema.key, spec.unique_key) == (("code",), True)
    found = by_loaded_key(spec, [KeptSchema.of(THEN)])
    assert (found.schema, found.unique_key) == (THEN, False)
    assert by_loaded_key(spec, [KeptSchema.of(both)]) == by_loaded_key(spec, []) == spec
    # by another one of the instance's own it begins anew
    spec = table_spec(verdict(None, [of_now()], options=EVOLVE, key=["id"]), named)
    assert by_loaded_key(spec, [KeptSchema.of(THEN)]) == spec


def test_without_its_checkpoint_it_gets_nothing_that_waits():
    secret = Column(5, 5, "secret", "int", 4, 10)
    made = of_now(ID, CODE, NOTE, SKU, secret, key=("sku",))
    spec = table_spec(verdict(None, [made], options=EVOLVE), EVOLVE)
    whole = Chosen(spec.schema, spec.selection)
    found = anew_without_checkpoint(spec, whole, KEPT[THEN.hash], {5}, None)
    assert [column.name for column in found.schema.columns] == ["id", "code", "note", "sku"]
    assert begins_anew(found.schema, KEPT[THEN.hash])
    with pytest.raises(SelectionError, match="column sku waits to be asked for"):
        anew_without_checkpoint(spec, whole, KEPT[THEN.hash], {4, 5}, None)
    # nor does it lack what the source has dropped
    absent = of_now(CODE, NOTE)
    spec = table_spec(verdict(None, [absent], options=EVOLVE), EVOLVE)
    found = anew_without_checkpoint(spec, Chosen(spec.schema), KEPT[THEN.hash], (), {2, 3})
    assert (found.schema.kept, found.schema.key) == (("id",), ("code",))
    # with one the plan has seen to it
    assert anew_without_checkpoint(spec, found, KEPT[THEN.hash], (), {2, 3}) is found


def test_the_key_of_before_in_a_target_is_the_text_where_only_that_is_exact():
    at = Column(2, 2, "at", "datetime2", 8, scale=7, nullable=False)
    then, now = TableSchema((ID, at, NOTE), ("at", "id")), TableSchema((ID, at, NOTE), ("note",))
    mappings = map_columns(ORDERS, now, Selection(renames={"id": "number"}))
    assert key_columns_before(now, mappings, KeptSchema.of(then)) == ("at__text", "number")


def test_what_else_has_changed_still_fails_it():
    longer = dataclasses.replace(NOTE, type="varchar", length=4)
    with pytest.raises(SchemaChangedError, match="column note was int"):
        verdict(stored(), [of_now(ID, CODE, longer)], options=EVOLVE, kept=KEPT.get)
    wider = dataclasses.replace(NOTE, type="bigint", length=8, precision=19)
    found = verdict(stored(), [of_now(ID, CODE, wider)], options=EVOLVE, kept=KEPT.get)
    assert found.schema.column("note").type == "bigint"
    # a name is none of it
    renamed = dataclasses.replace(ID, name="number")
    same = verdict(stored(), [of_now(renamed, CODE, NOTE, key=("number",))], options=EVOLVE, kept=KEPT.get)
    assert not same.rekeyed


def test_what_a_sink_had_is_told_by_the_names_of_then():
    kept = KeptSchema.of(THEN)
    now = TableSchema((ID, dataclasses.replace(CODE, name="kind", nullable=False), NOTE, SKU), ("sku", "kind"))
    assert begins_anew(now, kept, widens="fail")
    assert not begins_anew(now, kept)
    assert not begins_anew(as_before(now, kept), KeptSchema.of(as_before(now, kept)))
    found = had(
        Chosen(now, Selection(renames={"kind": "k"})), kept, Selection(renames={"code": "k"}).hash, widens="fail"
    )
    assert [column.name for column in found.schema.columns] == ["id", "code", "note"]
    assert found.selection.renames == {"code": "k"}
