"""What a job does with a sink, by what run and target say: each case of the rule, without Spark."""

import dataclasses

import pytest

from airflow_provider_mssql_cdc.core.exceptions import GapError, SchemaChangedError, TargetError
from airflow_provider_mssql_cdc.core.marker import FeedSpan, Marker
from airflow_provider_mssql_cdc.core.spec import SinkSpec, SourceSpec
from airflow_provider_mssql_cdc.core.table import InstanceRef
from airflow_provider_mssql_cdc.core.window import Window
from airflow_provider_mssql_cdc.spark.decide import (
    Done,
    FirstLoad,
    Load,
    check_origin,
    decide,
    other_instance,
)
from airflow_provider_mssql_cdc.spark.targets import State
from tests.spark.model import lsn, table_spec

SOURCE = SourceSpec("db:1433", "shop", "jdbc:sqlserver://")
TABLE = table_spec()


def feeds(name="dbo_t", object_id=100, create_date=None):
    return (FeedSpan(InstanceRef(name, object_id, create_date), None),)


def marker(position, **changes):
    found = Marker(lsn(position), None, "db:1433", "shop", TABLE.name, feeds(), TABLE.schema.hash, None, {}, "spec")
    return dataclasses.replace(found, **changes)


def sink(read_through=None, expects=None, lost_after=None, asserted=None):
    positions = [None if n is None else lsn(n) for n in (read_through, expects, lost_after)]
    return SinkSpec("mirror", ("lake", "n", "t"), *positions, asserted=asserted)


def decided(sink, found, cut=50, min_lsn=1, is_empty=False, **state):
    held = State(**{"exists": True, "snapshot": 1, "marker": found, "is_empty": is_empty, **state})
    return decide(TABLE, sink, held, cut=lsn(cut), min_lsn=None if min_lsn is None else lsn(min_lsn))


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
    assert decided(sink_, marker(position)) == Load(Window(lsn(after), lsn(50)), marker(position))


@pytest.mark.parametrize(
    ("sink_", "position", "done"),
    [
        pytest.param(sink(10, 10), 50, Done(marker(50), "already", lsn(50)), id="at the cut"),
        pytest.param(sink(10, 10), 80, Done(marker(80), "already", lsn(80)), id="past the cut"),
        pytest.param(sink(90, 10), 80, Done(marker(80), "already", lsn(90)), id="past the cut, proven further"),
        pytest.param(sink(90, 85), 80, Done(marker(80), "already", lsn(80)), id="past the cut, rolled back: unproven"),
        pytest.param(sink(60, 10), 10, Done(marker(10), "empty", lsn(60)), id="the cut lies in what is proven empty"),
        pytest.param(sink(), 80, Done(marker(80), "already", lsn(80)), id="no checkpoint"),
    ],
)
def test_nothing_is_done_where_all_is_there(sink_, position, done):
    assert decided(sink_, marker(position)) == done


def test_an_empty_target_without_checkpoint_is_loaded_for_the_first_time():
    assert decided(sink(), None, is_empty=True) == FirstLoad()


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
    [{"name": "dbo_t_v2"}, {"object_id": 7}, {"create_date": TABLE.instance.create_date.replace(day=2)}],
)
def test_another_instance_goes_on_from_a_marker_without_a_gap_and_that_is_said(changes):
    found = marker(10, feeds=feeds(**changes))

    assert decided(sink(10, 10), found, min_lsn=11) == Load(Window(lsn(10), lsn(50)), found)
    assert other_instance(TABLE, found) == (
        f"was loaded from capture instance {found.feed.name} (change table {found.feed.object_id}); "
        "this run reads dbo_t (100)"
    )
    with pytest.raises(GapError, match=f"was loaded from capture instance {found.feed.name}"):
        decided(sink(10, 10), found, min_lsn=12)


@pytest.mark.parametrize("create_date", [None, TABLE.instance.create_date])
def test_the_instance_of_the_marker_is_nothing_to_speak_of(create_date):
    assert other_instance(TABLE, marker(10, feeds=feeds(create_date=create_date))) is None


def test_other_columns_are_refused():
    with pytest.raises(SchemaChangedError):
        check_origin(SOURCE, TABLE, sink(), marker(10, schema_hash="1:other"))


def test_the_marker_of_this_source_is_accepted():
    check_origin(SOURCE, TABLE, sink(), marker(10))


@pytest.mark.parametrize(("min_lsn", "lost"), [(10, False), (11, False), (12, True), (None, True)])
def test_a_gap_is_what_lies_between_the_start_and_what_can_be_read(min_lsn, lost):
    if lost:
        with pytest.raises(GapError) as caught:
            decided(sink(10, 10), marker(10), min_lsn=min_lsn)
        assert caught.value.after == lsn(10)
    else:
        assert isinstance(decided(sink(10, 10), marker(10), min_lsn=min_lsn), Load)


def test_a_gap_behind_which_nothing_is_to_be_loaded_is_none():
    assert isinstance(decided(sink(60, 10), marker(10), min_lsn=30), Done)
    assert isinstance(decided(sink(40, 10), marker(10), min_lsn=30), Load)


def test_a_gap_is_closed_by_a_new_copy_where_that_is_asked_for():
    assert decided(sink(lost_after=10), marker(10), min_lsn=30) == FirstLoad(marker(10), lost_after=lsn(10))
    # it was rolled back since: what had been loaded behind its marker is lost, too
    assert decided(sink(lost_after=20), marker(10), min_lsn=30) == FirstLoad(marker(10), lost_after=lsn(10))


def test_a_remembered_marker_older_than_the_checkpoint_is_refused():
    with pytest.raises(TargetError, match="have expired"):
        decided(sink(20, 20), marker(10), from_property=True)
    assert isinstance(decided(sink(10, 10), marker(10), from_property=True), Load)


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
    assert decided(sink(10, 10, asserted="word"), found, **state) == Load(
        Window(lsn(10), lsn(50)), found, asserted=True
    )


def test_a_persons_word_counts_until_a_load_has_committed_on_it():
    found = marker(30, asserted="word")
    assert decided(sink(10, 10, asserted="word"), found) == Load(Window(lsn(30), lsn(50)), found)
    assert decided(sink(10, 10), found) == Load(Window(lsn(30), lsn(50)), found)


def test_a_persons_word_that_reaches_the_cut_is_kept_for_the_next_run():
    assert decided(sink(50, 50, asserted="word"), marker(5)) == Done(None, "empty", lsn(50))


@pytest.mark.parametrize("found", [None, marker(5), marker(80), marker(80, server="other")])
def test_what_stands_on_a_persons_word_is_replaced_after_a_gap_whatever_its_marker_says(found):
    word = sink(lost_after=10, asserted="word")
    assert decided(word, found, cut=100, min_lsn=40) == FirstLoad(found, asserted=True, lost_after=lsn(10))
    with pytest.raises(TargetError, match="is missing, although"):
        decided(word, None, exists=False, is_empty=True)


def test_a_persons_word_makes_up_neither_for_a_missing_table_nor_for_purged_changes():
    with pytest.raises(TargetError, match="is missing, although"):
        decided(sink(10, 10, asserted="word"), None, exists=False, is_empty=True)
    with pytest.raises(GapError) as caught:
        decided(sink(10, 10, asserted="word"), None, min_lsn=20)
    assert (caught.value.after, caught.value.min_lsn) == (lsn(10), lsn(20))
