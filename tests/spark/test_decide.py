"""What a job does with a sink, by what run and target say: each case of the rule, without Spark."""

import dataclasses

import pytest

from airflow_provider_mssql_cdc.core.copy_wanted import KnownCopy
from airflow_provider_mssql_cdc.core.exceptions import GapError, SchemaChangedError, TargetError
from airflow_provider_mssql_cdc.core.feed import DdlChange, FeedRef
from airflow_provider_mssql_cdc.core.filling import FILLING, copied_in, known_of_its_kind
from airflow_provider_mssql_cdc.core.marker import FeedSpan, Marker
from airflow_provider_mssql_cdc.core.position import Window
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.spec import SinkSpec, SourceSpec
from airflow_provider_mssql_cdc.core.steps import Done, SinkSteps, Stand, table_steps
from airflow_provider_mssql_cdc.core.table import TableName, TableSchema
from airflow_provider_mssql_cdc.spark.decide import check_origin, gap, other_instance, stand_of
from airflow_provider_mssql_cdc.spark.dropping import up_to
from airflow_provider_mssql_cdc.spark.sink_columns import noted_of, since_loaded
from airflow_provider_mssql_cdc.spark.targets import State
from tests.support.spark.model import lsn, table_spec

SOURCE = SourceSpec("db:1433", "shop", "jdbc:sqlserver://")
TABLE = table_spec()


def feeds(name="dbo_t", object_id=100, create_date=None):
    return (FeedSpan(FeedRef(name, object_id, create_date), None),)


def marker(position, **changes):
    found = Marker(lsn(position), None, "db:1433", "shop", TABLE.name, feeds(), TABLE.schema.hash, None, {}, "spec")
    return dataclasses.replace(found, **changes)


def sink(read_through=None, expects=None, lost_after=None, asserted=None):
    positions = [None if n is None else lsn(n) for n in (read_through, expects, lost_after)]
    return SinkSpec("mirror", ("lake", "n", "t"), *positions, asserted=asserted)


def decided(sink, found, cut=50, readable_from=0, is_empty=False, **state):
    """What is done with a sink, as its marker says."""
    held = State(**{"exists": True, "snapshot": 1, "marker": found, "is_empty": is_empty, **state})
    stand = stand_of(TABLE, sink, held)
    from_here = None if readable_from is None else lsn(readable_from)
    table = dataclasses.replace(TABLE, sinks=(sink,))
    steps = table_steps(table, {sink.shape: stand}, cut=lsn(cut), readable_from=from_here)
    if steps.lost:
        raise gap(table, steps.lost[sink.shape], from_here, None if stand.asserted else found)
    return steps.of(sink.shape)


@pytest.mark.parametrize(
    ("sink_", "position", "after"),
    [
        pytest.param(sink(10, 10), 10, 10, id="as expected"),
        pytest.param(sink(20, 10), 10, 20, id="as expected, and proven empty since"),
        pytest.param(sink(20, 10), 15, 20, id="another run went on, less far than proven empty"),
        pytest.param(sink(20, 10), 30, 30, id="another run went on, further"),
        pytest.param(sink(20, 10), 5, 5, id="behind: rolled back"),
        pytest.param(sink(), 7, 7, id="no checkpoint: continue"),
        pytest.param(sink(lost_after=7), 9, 9, id="a gap that another run has closed"),
    ],
)
def test_a_load_starts_where_marker_and_checkpoint_agree(sink_, position, after):
    assert decided(sink_, marker(position)) == SinkSteps(window=Window(lsn(after), lsn(50)))


@pytest.mark.parametrize(
    ("sink_", "position", "done"),
    [
        pytest.param(sink(10, 10), 50, Done("already", lsn(50)), id="at the cut"),
        pytest.param(sink(10, 10), 80, Done("already", lsn(80)), id="past the cut"),
        pytest.param(sink(90, 10), 80, Done("already", lsn(90)), id="past the cut, proven further"),
        pytest.param(sink(90, 85), 80, Done("already", lsn(80)), id="past the cut, rolled back: unproven"),
        pytest.param(sink(60, 10), 10, Done("empty", lsn(60)), id="the cut lies in what is proven empty"),
        pytest.param(sink(), 80, Done("already", lsn(80)), id="no checkpoint"),
    ],
)
def test_nothing_is_done_where_all_is_there(sink_, position, done):
    assert decided(sink_, marker(position)) == SinkSteps(done=done)


def test_by_another_key_one_begins_anew_also_where_asserted_and_is_missed_where_it_is_gone():
    table = dataclasses.replace(TABLE, schema=TableSchema(TABLE.schema.columns, ("id",)), rekeys=True)
    kept, expected = (
        {TABLE.schema.hash: KeptSchema.of(TABLE.schema)}.get,
        dataclasses.replace(sink(70, 50), rekeyed=True),
    )
    held = State(exists=True, snapshot=1, marker=marker(50), is_empty=False)
    assert stand_of(table, expected, held, kept) == Stand(lsn(50), rekeyed=True)
    asserted = dataclasses.replace(expected, asserted="a")
    assert stand_of(table, asserted, held, kept) == Stand(lsn(50), asserted=True, rekeyed=True)
    gone = State(exists=False, snapshot=None, marker=None, is_empty=True)
    with pytest.raises(TargetError, match="missing or empty"):
        stand_of(table, expected, gone, kept)


def test_an_empty_target_without_checkpoint_is_loaded_for_the_first_time():
    assert decided(sink(), None, is_empty=True) == SinkSteps(copied=True, begins=True)


@pytest.mark.parametrize(
    ("sink_", "is_empty", "text"),
    [
        pytest.param(sink(), False, "what it holds is not known.*checkpoint set", id="rows of unknown origin"),
        pytest.param(sink(10, 10), False, "what it holds is not known.*checkpoint set", id="rows, and a checkpoint"),
        pytest.param(sink(10, 10), True, "missing or empty.*checkpoint reset", id="nothing, beside a checkpoint"),
    ],
)
def test_a_target_without_marker_is_refused(sink_, is_empty, text):
    with pytest.raises(TargetError, match=text):
        decided(sink_, None, is_empty=is_empty)


@pytest.mark.parametrize("changes", [{"server": "other"}, {"database": "d"}, {"table": table_spec("u").name}])
def test_the_marker_of_another_source_is_refused(changes):
    with pytest.raises(TargetError, match="is loaded from"):
        check_origin(SOURCE, TABLE, sink(), marker(10, **changes))


@pytest.mark.parametrize(
    "changes",
    [{"name": "dbo_t_v2"}, {"object_id": 7}, {"create_date": TABLE.feed.create_date.replace(day=2)}],
)
def test_another_instance_goes_on_from_a_marker_without_a_gap_and_that_is_said(changes):
    found = marker(10, feeds=feeds(**changes))

    assert decided(sink(10, 10), found, readable_from=10) == SinkSteps(window=Window(lsn(10), lsn(50)))
    assert other_instance(TABLE, found) == (
        f"was loaded from capture instance {found.feed.name} (change table {found.feed.object_id}); "
        "this run reads dbo_t (100)"
    )
    said = rf"are not in capture instance dbo_t\. .*was loaded from capture instance {found.feed.name}"
    with pytest.raises(GapError, match=said):
        decided(sink(10, 10), found, readable_from=11)


@pytest.mark.parametrize("create_date", [None, TABLE.feed.create_date])
def test_the_instance_of_the_marker_is_nothing_to_speak_of(create_date):
    assert other_instance(TABLE, marker(10, feeds=feeds(create_date=create_date))) is None


def test_a_table_that_was_renamed_is_the_same_and_one_that_took_its_name_is_not():
    before = TableName("dbo", "before")
    same = marker(1, table=before, source_object_id=TABLE.feed.source_object_id)
    check_origin(SOURCE, TABLE, sink(1, 1), same)
    for object_id in (TABLE.feed.source_object_id + 1, None):
        with pytest.raises(TargetError, match=r"is loaded from dbo\.before"):
            check_origin(SOURCE, TABLE, sink(1, 1), dataclasses.replace(same, source_object_id=object_id))
    with pytest.raises(TargetError):
        check_origin(SOURCE, TABLE, sink(1, 1), dataclasses.replace(same, database="other"))
    taken = marker(1, source_object_id=TABLE.feed.source_object_id + 1)
    with pytest.raises(TargetError):
        check_origin(SOURCE, TABLE, sink(1, 1), taken)
    # a marker of an earlier version names no object_id: the checkpoint does that stands on its commit
    known = dataclasses.replace(TABLE, source_object_id=TABLE.feed.source_object_id)
    unnamed = dataclasses.replace(same, source_object_id=None)
    check_origin(SOURCE, known, sink(1, 1), unnamed)
    with pytest.raises(TargetError):
        check_origin(SOURCE, known, sink(2, 2), unnamed)
    # one that is copied anew takes its place
    check_origin(SOURCE, TABLE, sink(lost_after=1), taken)


def test_other_columns_are_refused():
    with pytest.raises(SchemaChangedError):
        check_origin(SOURCE, TABLE, sink(), marker(10, schema_hash="1:other"))


def test_the_marker_of_this_source_is_accepted():
    check_origin(SOURCE, TABLE, sink(), marker(10))


@pytest.mark.parametrize(("readable_from", "lost"), [(9, False), (10, False), (11, True), (None, True)])
def test_a_gap_is_what_lies_between_the_start_and_what_can_be_read(readable_from, lost):
    if lost:
        with pytest.raises(GapError) as caught:
            decided(sink(10, 10), marker(10), readable_from=readable_from)
        assert caught.value.after == lsn(10)
    else:
        assert decided(sink(10, 10), marker(10), readable_from=readable_from).window


def test_a_gap_behind_which_nothing_is_to_be_loaded_is_none():
    assert decided(sink(60, 10), marker(10), readable_from=29).done
    assert decided(sink(40, 10), marker(10), readable_from=29).window


def test_a_gap_is_closed_by_a_new_copy_where_that_is_asked_for():
    assert decided(sink(lost_after=10), marker(10), readable_from=29) == SinkSteps(
        lost_after=lsn(10), copied=True, begins=True
    )
    # it was rolled back since: what had been loaded behind its marker is lost, too
    assert decided(sink(lost_after=20), marker(10), readable_from=29) == SinkSteps(
        lost_after=lsn(10), copied=True, begins=True
    )


def test_a_remembered_marker_older_than_the_checkpoint_is_refused():
    with pytest.raises(TargetError, match="have expired"):
        decided(sink(20, 20), marker(10), from_property=True)
    assert decided(sink(10, 10), marker(10), from_property=True).window


@pytest.mark.parametrize(("was", "is_now"), [("ignore", "hard"), ("hard", "ignore"), ("soft", "hard")])
def test_a_mirror_does_with_deleted_rows_what_it_did_before(was, is_now):
    now = dataclasses.replace(sink(10, 10), deletes=is_now)
    with pytest.raises(TargetError, match=f'was loaded with deletes="{was}", and this load has deletes="{is_now}"'):
        check_origin(SOURCE, TABLE, now, marker(10, deletes=was))
    check_origin(SOURCE, TABLE, now, marker(10, deletes=is_now))
    check_origin(SOURCE, TABLE, now, marker(10))


DOUBT = TargetError("its memory cannot be believed")


def test_a_memory_in_doubt_is_refused():
    with pytest.raises(TargetError, match="cannot be believed"):
        decided(sink(10, 10), None, doubt=DOUBT)


@pytest.mark.parametrize(
    ("found", "state"),
    [
        pytest.param(None, {}, id="rows without marker"),
        pytest.param(None, {"is_empty": True}, id="an empty table"),
        pytest.param(None, {"doubt": DOUBT}, id="a memory in doubt"),
        pytest.param(marker(5), {}, id="a marker of before"),
        pytest.param(marker(5), {"from_property": True}, id="a remembered marker of before"),
        pytest.param(marker(30, asserted="earlier"), {}, id="a marker on an earlier word"),
        pytest.param(marker(99, server="other"), {}, id="a marker of elsewhere"),
    ],
)
def test_a_persons_word_stands_in_for_a_marker(found, state):
    assert decided(sink(10, 10, asserted="word"), found, **state) == SinkSteps(
        asserted=True, window=Window(lsn(10), lsn(50))
    )


def test_a_persons_word_counts_until_a_load_has_committed_on_it():
    found = marker(30, asserted="word")
    assert decided(sink(10, 10, asserted="word"), found) == SinkSteps(window=Window(lsn(30), lsn(50)))
    assert decided(sink(10, 10), found) == SinkSteps(window=Window(lsn(30), lsn(50)))


def test_a_persons_word_that_reaches_the_cut_is_kept_for_the_next_run():
    assert decided(sink(50, 50, asserted="word"), marker(5)) == SinkSteps(asserted=True, done=Done("empty", lsn(50)))


@pytest.mark.parametrize("found", [None, marker(5), marker(80), marker(80, server="other")])
def test_what_stands_on_a_persons_word_is_replaced_after_a_gap_whatever_its_marker_says(found):
    word = sink(lost_after=10, asserted="word")
    assert decided(word, found, cut=100, readable_from=39) == SinkSteps(
        asserted=True, lost_after=lsn(10), copied=True, begins=True
    )
    with pytest.raises(TargetError, match="is missing, although"):
        decided(word, None, exists=False, is_empty=True)


def test_a_persons_word_makes_up_neither_for_a_missing_table_nor_for_purged_changes():
    with pytest.raises(TargetError, match="is missing, although"):
        decided(sink(10, 10, asserted="word"), None, exists=False, is_empty=True)
    with pytest.raises(GapError) as caught:
        decided(sink(10, 10, asserted="word"), None, readable_from=19)
    assert (caught.value.after, caught.value.readable_from) == (lsn(10), lsn(19))


def test_of_a_target_that_was_rolled_back_its_marker_alone_says_which_ddl_it_knows():
    """The checkpoint stands above, and what a later commit had followed this one has not."""
    ddl = tuple(DdlChange("dbo_t", f"ALTER {n}", lsn(n), None, requires_column_update=True) for n in (5, 10, 20))
    table = dataclasses.replace(TABLE, ddl=ddl)
    at_20 = dataclasses.replace(sink(30, 30), ddl_upto=lsn(20))
    for found, since in (
        (marker(30), []),
        (marker(7), [10, 20]),
        (marker(7, ddl_upto=lsn(10)), [20]),
        (marker(3), [5, 10, 20]),
    ):
        assert [change.lsn for change in since_loaded(table, at_20, found, TABLE.schema)] == [lsn(n) for n in since]
    # one that a load below the statements has written, whose checkpoint knows
    assert since_loaded(table, dataclasses.replace(sink(3, 3), ddl_upto=lsn(20)), marker(3), TABLE.schema) == ()


def test_a_sink_that_is_to_be_loaded_by_another_key_drops_no_column_before():
    by_other = dataclasses.replace(TABLE.schema, key=(TABLE.schema.columns[1].name,))
    then = KeptSchema.of(by_other)
    kept = {then.hash: then}.get
    table = dataclasses.replace(TABLE, rekeys=True)
    before, since = marker(10, schema_hash=then.hash), marker(10)
    assert up_to(table, sink(10, 10), before, kept) is None
    assert up_to(table, sink(10, 10), since, kept) == lsn(10)
    assert up_to(table, sink(20, 10), since, kept) == lsn(20)
    assert up_to(table, sink(10, 10, asserted="x"), since, kept) is None


def test_sinks_of_different_columns_do_not_share_a_copy():
    under_way = KnownCopy("c", "place")
    table = dataclasses.replace(TABLE, copies="t", copy=under_way)
    spec = dataclasses.replace(table, copies="", copy=None)
    found = [copied_in(spec, table, suffix) for suffix in ("", ".12345678")]
    assert [(each.copies, each.copy) for each in found] == [("t", under_way), ("t.12345678", None)]
    # one that fills columns is not one of whole rows
    fills = dataclasses.replace(under_way, fills=True)
    for suffix, mine, other in (("", under_way, fills), (FILLING, fills, under_way)):
        asked = dataclasses.replace(table, copies=f"t{suffix}")
        assert known_of_its_kind(dataclasses.replace(asked, copy=mine)) == mine
        assert known_of_its_kind(dataclasses.replace(asked, copy=other)) is None
    assert copied_in(spec, dataclasses.replace(table, copies=""), ".1").copies == ""


def test_columns_that_the_checkpoint_notes_as_unfilled_count_beside_the_marker_that_it_knows():
    """A later commit says itself what is left to fill, and a target that was rolled back lacks what its marker says."""
    noting = dataclasses.replace(sink(30, 20), unfilled=("a", "b"))
    assert noted_of(noting, marker(20, unfilled=("b",))) == ("a",)
    assert noted_of(noting, marker(25)) == noted_of(noting, marker(10)) == ()
