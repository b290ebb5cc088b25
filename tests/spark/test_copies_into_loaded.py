"""Copies that a person asks for: loaded targets are compared with the table, and what differs is written."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest

from airflow_provider_mssql_cdc.core.copy_requests import CopyRequest, CopyRequests
from airflow_provider_mssql_cdc.core.copy_wanted import COPY, PAUSE, STOP, AskedCopy
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.spark.copies import folder
from airflow_provider_mssql_cdc.spark.copies.chunks import Chunks
from airflow_provider_mssql_cdc.spark.copies.table_copy import TableCopy
from airflow_provider_mssql_cdc.spark.session import table_session
from airflow_provider_mssql_cdc.spark.sink import Sink
from tests.support import histories
from tests.support.spark.asked import SHAPES, change, load, make, name_of, newest, rows, source
from tests.support.spark.loads import Loads, check, prepare, write
from tests.support.spark.origin import positions

pytestmark = pytest.mark.xdist_group(__name__)


@pytest.fixture
def orders(live, request):
    live.format = getattr(request, "param", "iceberg")
    if live.format == "postgresql":
        live.into(request.getfixturevalue("postgresql"))
    make(live)
    return live


def spoil(orders, shapes):
    """Rows of each table are lost, wrong, or none of the source's."""
    session = table_session(orders.spark)
    for shape in shapes:
        name = name_of(orders, shape)
        session.sql(f"DELETE FROM {name} WHERE id IN (3, 4)")
        session.sql(f"UPDATE {name} SET note = 'wrong' WHERE id IN (5, 9)")
        ghost = {"id": "99", "note": "'ghost'", "doc": "'boo'"}
        if shape == "history":
            ghost |= {"_op": "'R'", "_lsn": "'0x00000000000000000001'"}
        elif shape == "scd2":
            ghost |= {"_from_lsn": "'0x00000000000000000001'"}
        session.sql(f"INSERT INTO {name} ({', '.join(ghost)}) VALUES ({', '.join(ghost.values())})")


def snapshots(orders, shape):
    name = name_of(orders, shape)
    return table_session(orders.spark).sql(f"SELECT snapshot_id FROM {name}.snapshots").count()


@pytest.mark.parametrize("orders", ["iceberg", pytest.param("delta", marks=pytest.mark.thorough)], indirect=True)
def test_what_differs_is_written_and_what_vanished_ends(orders):
    first = load(orders)
    spoil(orders, SHAPES)
    change(orders)
    before = {shape: orders.lake("dbo.orders", shape) for shape in SHAPES}

    done = load(orders, asked=AskedCopy("c1"), at=positions(first))

    (table,) = done.tables
    assert table.ended_copy == "c1 COMPLETED"
    assert rows(orders.lake("dbo.orders")) == source(orders)
    assert newest(orders) == source(orders)
    scd2 = orders.lake("dbo.orders", "scd2")
    assert rows(row for row in scd2 if row["_to_lsn"] is None) == source(orders)
    assert len({(row["id"], row["_from_lsn"]) for row in scd2}) == len(scd2)
    (at,) = {sink.after.position for sink in table.sinks}
    # 9 became 200, so that its wrong image is only of the past
    healed = [row for row in orders.lake("dbo.orders", "history") if row["_healed"]]
    assert {(row["id"], row["_op"]) for row in healed} == {(3, "R"), (5, "R"), (99, "D")}
    assert {row["_lsn"] for row in healed} == {at.text}
    # nothing of before went
    kept = [row for row in orders.lake("dbo.orders", "history") if not row["_healed"]]
    assert all(row in kept for row in before["history"])
    ended = {row["id"]: row["_to_lsn"] for row in scd2 if row["note"] in ("wrong", "ghost")}
    assert (ended[5], ended[99]) == (at.text, at.text)
    assert [text.partition(": ")[2] for text in table.warnings] == [
        "2 rows were missing or differed, 1 of its rows were not there."
    ] * 3
    assert folder.folders(orders.spark, str(Path(orders.work_dir, "copies", "dbo_orders"))) == []

    # who has it is done with it
    again = load(orders, asked=AskedCopy("c1"), at=positions(first))
    assert {sink.outcome for sink in again.tables[0].sinks} <= {"already", "empty"}
    assert again.tables[0].ended_copy == "c1 COMPLETED"
    assert [w for w in again.tables[0].warnings if "compared" in w] == []

    # of what is equal nothing is written but that it was compared
    third = load(orders, asked=AskedCopy("c2"), at=positions(done))
    said = [text for text in third.tables[0].warnings if "compared" in text]
    assert len(said) == 3
    assert all(text.endswith(": equal.") for text in said)
    assert rows(orders.lake("dbo.orders")) == source(orders)
    change_again = orders.sql("UPDATE dbo.orders SET note = N'last' WHERE id = 3")
    assert change_again == []
    orders.wait_captured()
    load(orders, at=positions(third))
    assert rows(orders.lake("dbo.orders")) == source(orders) == newest(orders)


@pytest.mark.thorough
@pytest.mark.parametrize("orders", ["postgresql"], indirect=True)
def test_a_database_is_compared_too(orders):
    shapes = ("mirror", "history")
    first = load(orders, shapes)
    change(orders)
    done = load(orders, shapes, asked=AskedCopy("c1"), at=positions(first))
    said = [text for text in done.tables[0].warnings if "compared" in text]
    assert len(said) == 2
    assert all(text.endswith(": equal.") for text in said)
    assert rows(orders.lake("dbo.orders")) == source(orders) == newest(orders)


@pytest.mark.parametrize("deletes", ["soft", pytest.param("ignore", marks=pytest.mark.thorough)])
def test_a_mirror_that_keeps_deleted_rows_keeps_what_vanished(orders, deletes):
    first = load(orders, ("mirror",), deletes=deletes)
    spoil(orders, ("mirror",))
    if deletes == "soft":
        name = name_of(orders, "mirror")
        table_session(orders.spark).sql(f"UPDATE {name} SET _deleted_at = TIMESTAMP_NTZ'2020-01-01' WHERE id = 6")
    load(orders, ("mirror",), asked=AskedCopy("c1"), at=positions(first), deletes=deletes)
    found = orders.lake("dbo.orders")
    if deletes == "ignore":
        assert rows(found) == sorted([*source(orders), (99, "ghost", "boo")])
    else:
        assert rows(row for row in found if row["_deleted_at"] is None) == source(orders)
        assert [row["id"] for row in found if row["_deleted_at"] is not None] == [99]


@pytest.mark.parametrize("deletes", [pytest.param("hard", marks=pytest.mark.thorough), "soft"])
def test_a_key_that_the_mirror_has_twice_is_there_once(orders, deletes):
    first = load(orders, ("mirror",), deletes=deletes)
    name = name_of(orders, "mirror")
    session = table_session(orders.spark)
    session.sql(
        f"INSERT INTO {name} (id, note, doc) VALUES (3, 'stale', 'doc 3'), (4, 'n4', 'doc 4'), (98, 'no', 'no')"
    )
    load(orders, ("mirror",), asked=AskedCopy("c1"), at=positions(first), deletes=deletes)
    found = orders.lake("dbo.orders")
    assert rows(row for row in found if row.get("_deleted_at") is None) == source(orders)
    assert [row["id"] for row in found if row.get("_deleted_at") is not None] == ([98] if deletes == "soft" else [])


@pytest.mark.parametrize(
    ("deletes", "asked_before"),
    [
        pytest.param("soft", True, marks=pytest.mark.thorough),
        pytest.param("hard", False, marks=pytest.mark.thorough),
        pytest.param("hard", True, marks=pytest.mark.thorough),
        pytest.param("soft", False, marks=pytest.mark.thorough),
    ],
)
def test_a_mirror_that_lost_a_row_of_which_a_change_leaves_a_value_out_is_healed(orders, deletes, asked_before):
    orders.sql("UPDATE dbo.orders SET doc = NULL WHERE id IN (4, 5)")
    orders.wait_captured()
    first = load(orders, ("mirror",), deletes=deletes)
    name = name_of(orders, "mirror")
    table_session(orders.spark).sql(f"DELETE FROM {name} WHERE id IN (4, 6)")
    if asked_before:
        # its rows are read before the change, and the copy is not whole yet
        held = load(
            orders, ("mirror",), asked=AskedCopy("c1"), at=positions(first), deletes=deletes, copy_seconds=0.001
        )
        assert held.tables[0].copying is not None
    change(orders)
    if asked_before:
        # the mirror waits, and its run does not fail
        paused = load(orders, ("mirror",), asked=AskedCopy("c1", PAUSE), at=positions(first), deletes=deletes).tables[0]
        assert (paused.sinks, paused.copying.shapes) == ((), ("mirror",))
        assert "doc of id=4" in paused.copying.mends["mirror"]
    if not asked_before:
        spec = orders.table("dbo.orders", ("mirror",), at=positions(first), deletes=deletes)
        (table,) = orders.load(spec).tables
        assert table.failed["mirror"].kind == "LostValueError"
        assert "doc of id=4" in table.failed["mirror"].message
        assert "mssql-cdc copy start" in table.failed["mirror"].message

    done = load(orders, ("mirror",), asked=AskedCopy("c1"), at=positions(first), deletes=deletes)

    assert done.tables[0].ended_copy == "c1 COMPLETED"
    found = orders.lake("dbo.orders")
    living = found if deletes == "hard" else [row for row in found if row["_deleted_at"] is None]
    assert rows(living) == source(orders)
    if deletes == "soft":
        assert {row["id"] for row in found if row["_deleted_at"] is not None} == {8, 9}


@pytest.mark.thorough
def test_a_stop_ends_the_copy_for_which_a_mirror_waits_that_lost_a_row(orders):
    orders.sql("UPDATE dbo.orders SET doc = NULL WHERE id = 4")
    orders.wait_captured()
    first = load(orders, ("mirror",))
    table_session(orders.spark).sql(f"DELETE FROM {name_of(orders, 'mirror')} WHERE id = 4")
    change(orders)
    waiting = load(orders, ("mirror",), asked=AskedCopy("c1"), at=positions(first), copy_seconds=0.001).tables[0]
    assert waiting.copying.shapes == ("mirror",)
    table = orders.table("dbo.orders", ("mirror",), at=positions(first))
    (stopped,) = orders.load(dataclasses.replace(table, asked=AskedCopy("c1", STOP))).tables
    assert (stopped.ended_copy, stopped.failed["mirror"].kind) == ("c1 STOPPED", "LostValueError")
    assert folder.folders(orders.spark, str(Path(orders.work_dir, "copies", "dbo_orders"))) == []
    # one of some rows is none for it
    (receipt,) = orders.load(dataclasses.replace(table, asked=AskedCopy("c2", where='[["id", "=", 4]]'))).tables
    assert receipt.ended_copy.startswith("c2 ABORTED: dbo.orders: CDC left out the value of doc of id=4")


def test_what_fails_is_the_copy_alone(orders):
    first = load(orders)
    change(orders)
    table = orders.table("dbo.orders", SHAPES, at=positions(first))
    table = dataclasses.replace(table, asked=AskedCopy("c1"), protection="its column note is masked")
    done = orders.load(table).tables[0]
    assert {sink.shape: sink.outcome for sink in done.sinks} == dict.fromkeys(SHAPES, "loaded")
    assert done.failed.keys() == {"copy"}
    assert done.failed["copy"].kind == "CopyRefusedError"
    assert [done.error_of(shape) for shape in SHAPES] == [None] * 3
    assert done.ended_copy.startswith("c1 ABORTED: dbo.orders: its rows would be compared as the login reads them")
    assert rows(orders.lake("dbo.orders")) == source(orders) == newest(orders)


@pytest.mark.thorough
def test_changes_that_were_purged_while_the_table_was_copied_are_taken_from_beside_the_copy(orders, monkeypatch):
    at = positions(load(orders))
    spoil(orders, SHAPES)
    asked = AskedCopy("c1")
    assert load(orders, asked=asked, at=at, copy_seconds=0, connections=1).tables[0].copying is not None
    change(orders)
    at = positions(load(orders, asked=dataclasses.replace(asked, wanted=PAUSE), at=at))
    keep = TableCopy._keep

    def keep_and_purge(self, *args, **given):
        orders.sql("UPDATE dbo.orders SET note = CONCAT(note, N'+') WHERE id IN (12, 4)")
        orders.wait_captured()
        keep(self, folder=args[0], state=self._source.state(), **given)
        # the newest position moves on by itself meanwhile
        mark = str(self._reached)
        orders.sql(f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_orders', {mark}, 5000")

    with monkeypatch.context() as patched:
        patched.setattr(TableCopy, "_keep", keep_and_purge)
        done = load(orders, asked=asked, at=at).tables[0]
    assert done.ended_copy == "c1 COMPLETED"
    assert rows(orders.lake("dbo.orders")) == source(orders) == newest(orders)
    assert [sink.after.gaps for sink in done.sinks] == [()] * 3


@pytest.mark.thorough
def test_it_is_paused_goes_on_over_runs_and_rows_change_meanwhile(orders, monkeypatch):
    read, shapes = [], ("mirror", "history")
    plain = Chunks.read
    monkeypatch.setattr(Chunks, "read", lambda self, hole, place: (read.append(hole), plain(self, hole, place))[1])
    at = positions(load(orders, shapes))
    spoil(orders, shapes)
    begun = load(orders, shapes, asked=AskedCopy("c1"), at=at, copy_seconds=0, connections=1).tables[0]
    assert (begun.copying.shapes, begun.copying.chunks, begun.ended_copy) == (shapes, 1, None)
    assert "wrong" in {row["note"] for row in orders.lake("dbo.orders")}, "nothing is shown before its end"

    change(orders)
    read.clear()
    paused = load(orders, shapes, asked=AskedCopy("c1", PAUSE), at=at).tables[0]
    assert read == []
    assert (paused.copying.paused, paused.copying.chunks) == (True, 1)
    assert paused.copying.position > begun.copying.position

    change_later = "UPDATE dbo.orders SET note = N'later' WHERE id IN (3, 5, 20); DELETE FROM dbo.orders WHERE id = 2"
    orders.sql(change_later)
    orders.wait_captured()
    done = load(orders, shapes, asked=AskedCopy("c1", COPY), at=at).tables[0]
    assert len(read) == 2
    assert done.ended_copy == "c1 COMPLETED"
    assert rows(orders.lake("dbo.orders")) == source(orders) == newest(orders)


def test_a_first_load_that_is_stopped_begins_no_more(orders):
    table = orders.table("dbo.orders", ("mirror", "history"))
    begun = orders.load(table, copy_rows=10, copy_seconds=0, connections=1).tables[0]
    assert begun.copying.chunks == 1
    place = str(Path(orders.work_dir, "copies", "dbo_orders"))
    assert len(folder.folders(orders.spark, place)) == 1
    asked = AskedCopy(begun.copying.id, STOP, of_loaded=False)
    for _ in range(2):
        stopped = orders.load(dataclasses.replace(table, asked=asked)).tables[0]
        assert {error.kind for error in stopped.failed.values()} == {"CopyStoppedError"}
        assert stopped.failed.keys() == {"mirror", "history"}
        assert all(error.permanent for error in stopped.failed.values())
        assert stopped.ended_copy == f"{asked.id} STOPPED"
        assert folder.folders(orders.spark, place) == []
    late = orders.load(dataclasses.replace(table, asked=dataclasses.replace(asked, reason="it was paused too long")))
    assert late.tables[0].ended_copy == f"{asked.id} ABORTED: it was paused too long"
    assert "was stopped: it was paused too long" in late.tables[0].failed["mirror"].message
    load(orders, ("mirror",), asked=AskedCopy("c2"))
    assert rows(orders.lake("dbo.orders")) == source(orders)


@pytest.mark.thorough
def test_a_sink_that_begins_beside_one_that_is_loaded_has_the_copy_too(orders):
    at = positions(load(orders, ("mirror",)))
    spoil(orders, ("mirror",))
    done = load(orders, ("mirror", "history", "transactions"), asked=AskedCopy("c1"), at=at).tables[0]
    assert done.ended_copy == "c1 COMPLETED"
    assert {sink.shape: sink.outcome for sink in done.sinks} == {
        "mirror": "loaded",
        "history": "first_load",
        "transactions": "first_load",
    }
    assert [text for text in done.warnings if "takes no copy" in text]
    assert rows(orders.lake("dbo.orders")) == source(orders) == newest(orders)


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


@pytest.mark.thorough
@pytest.mark.parametrize("committed", [0, 1, 2, 3])
def test_a_run_that_is_killed_between_its_comparisons_is_repeated_and_nothing_is_written_twice(
    orders, monkeypatch, committed
):
    first = load(orders)
    spoil(orders, SHAPES)
    change(orders)
    compare, calls = Sink.compare, []

    def killed(sink, *args):
        if len(calls) == committed:
            raise Killed
        calls.append(sink.shape)
        done = compare(sink, *args)
        if len(calls) == committed == len(SHAPES):
            raise Killed
        return done

    with monkeypatch.context() as patched:
        patched.setattr(Sink, "compare", killed)
        with pytest.raises(Killed):
            load(orders, asked=AskedCopy("c1"), at=positions(first))
    assert len(calls) == committed
    healed = {shape: orders.lake("dbo.orders", shape) for shape in calls}
    ids = {shape: snapshots(orders, shape) for shape in calls}

    done = load(orders, asked=AskedCopy("c1"), at=positions(first))
    assert done.tables[0].ended_copy == "c1 COMPLETED"
    assert rows(orders.lake("dbo.orders")) == source(orders)
    assert newest(orders) == source(orders)
    assert rows(row for row in orders.lake("dbo.orders", "scd2") if row["_to_lsn"] is None) == source(orders)
    for shape in calls:
        assert sorted(map(str, orders.lake("dbo.orders", shape))) == sorted(map(str, healed[shape]))
        assert snapshots(orders, shape) == ids[shape]
    healing = [row for row in orders.lake("dbo.orders", "history") if row["_healed"]]
    assert len({(row["id"], row["_op"]) for row in healing}) == len(healing) > 0


@pytest.mark.thorough
def test_a_request_is_carried_out_by_the_next_run_and_once(live):
    rng, models = random.Random(5), [histories.Model(h) for h in range(4)]
    prepare(live)
    write(live, models, rng, 20)
    live.wait_captured()
    loads = Loads(live, ("mirror",), tables=("items",))
    spec, _ = loads.load()
    check(loads, models)
    stored = loads.look().checkpoints[TableName("lab", "items")]
    spoiled = ".".join(spec.tables[0].sinks[0].table)
    table_session(live.spark).sql(f"DELETE FROM {spoiled} WHERE h = 1")
    with pytest.raises(AssertionError):
        check(loads, models)
    CopyRequests(loads.store.variables).save(CopyRequest(stored.identity, "c1"))

    spec, receipt = loads.load()

    assert spec.tables[0].asked == AskedCopy("c1")
    assert receipt.tables[0].ended_copy == "c1 COMPLETED"
    check(loads, models)
    after = loads.store.load(stored.identity)
    assert (after.ended_copies, after.copies) == (("c1 COMPLETED",), ())
    assert loads.load()[1] is None
    write(live, models, rng, 5)
    live.wait_captured()
    spec, _ = loads.load()
    assert spec.tables[0].asked is None
    check(loads, models)
