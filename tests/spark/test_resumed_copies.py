"""Copies that were stopped: the next run goes on with what is there, and begins again where that cannot count."""

from __future__ import annotations

import dataclasses
import logging
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import functions

from airflow_provider_mssql_cdc.core.changes import HistoryOptions
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Identity
from airflow_provider_mssql_cdc.core.codec import from_json
from airflow_provider_mssql_cdc.core.copies import reached_by
from airflow_provider_mssql_cdc.core.copy_wanted import KnownCopy
from airflow_provider_mssql_cdc.core.exceptions import KeyRequiredError
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.receipt import Receipt
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.operators.copying import copies_of, known_copy
from airflow_provider_mssql_cdc.spark.copies import chunk_reading, folder, room, table_copy
from airflow_provider_mssql_cdc.spark.copies.chunks import Chunks
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.load import TableLoad
from airflow_provider_mssql_cdc.spark.shapes.mirror import Mirror
from airflow_provider_mssql_cdc.spark.sources.cdc.table import CapturedTable
from tests.support.spark.kill_points import AFTER, BEFORE, Point
from tests.support.spark.stop import Stop

pytestmark = pytest.mark.xdist_group(__name__)

ROWS = 40
COPY_ROWS, CHUNKS = 14, 3


class Stopped(Exception):
    """Stands for a kill."""


@pytest.fixture
def orders(live):
    live.sql("CREATE TABLE dbo.orders (id int NOT NULL PRIMARY KEY, note nvarchar(40), doc nvarchar(max))")
    live.sql("INSERT INTO dbo.orders VALUES " + ", ".join(f"({n}, N'n{n}', N'doc {n}')" for n in range(ROWS)))
    live.enable("dbo.orders")
    live.sql("UPDATE dbo.orders SET note = N'changed' WHERE id = 1")
    live.wait_captured()
    return live


@pytest.fixture
def chunks(monkeypatch):
    """Notes the chunks that are read; ``stop_at`` is the number of one that is not."""
    return Reads(monkeypatch)


class Reads:
    def __init__(self, monkeypatch):
        self.read, self.stop_at = [], None
        plain = Chunks.read

        def noted(chunks, hole, place):
            if self.stop_at is not None and len(self.read) >= self.stop_at:
                raise Stopped
            self.read.append(hole)
            return plain(chunks, hole, place)

        monkeypatch.setattr(Chunks, "read", noted)

    def stopped_at(self, number):
        """From now on chunks are read up to this one."""
        self.read, self.stop_at = [], number


def load(orders, *shapes, at=None, key=None, **options):
    table = orders.table("dbo.orders", shapes or ("mirror", "history"), at=at, key=key)
    return orders.load(table, copy_rows=COPY_ROWS, **options).tables[0]


def place(orders):
    return Path(orders.work_dir, "copies", "dbo_orders")


def at_url(orders):
    """Let jobs know their folder by a URL alone."""
    hadoop = orders.spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set(f"fs.viewfs.mounttable.{orders.namespace}.link./work", orders.work_dir.as_uri())
    orders.work_dir = f"viewfs://{orders.namespace}/work"


def copies(orders):
    return folder.folders(orders.spark, f"{orders.work_dir}/copies/dbo_orders")


def captured(orders):
    """All that the change table has now, in order: it is kept here, since cleanup takes it away."""
    rows = orders.sql(
        "SELECT CONVERT(varchar(22), [__$start_lsn], 1) AS lsn, [__$command_id] AS command, [__$seqval] AS seq,"
        " [__$operation] AS op, id, note FROM cdc.dbo_orders_CT"
    )
    return {(row["lsn"], row["command"], bytes(row["seq"]), row["op"], row["id"], row["note"]) for row in rows}


def notes_at(low, events):
    """The notes by id, as of a position."""
    notes = {n: f"n{n}" for n in range(ROWS)}
    for lsn, _, _, op, id, note in sorted(events):
        if lsn <= str(low):
            if op in (2, 4):
                notes[id] = note
            elif op == 1:
                del notes[id]
    return notes


def check_versions(orders, low, events):
    """Compare all versions in full with what was captured."""
    states = {id: {str(low): note} for id, note in notes_at(low, events).items()}
    for lsn, _, _, op, id, note in sorted(events):
        if lsn > str(low) and op != 3:
            states.setdefault(id, {})[lsn] = None if op == 1 else note
    # a row keeps its document, when its id changes, too
    docs = {id: f"doc {id}" for id in range(ROWS)} | {200 + n: f"doc {10 + n}" for n in range(10)}
    expected = [
        (id, note, docs.get(id), since, until)
        for id, of_id in states.items()
        for (since, note), until in zip(of_id.items(), [*[*of_id][1:], None], strict=True)
        if note is not None
    ]
    versions = orders.lake("dbo.orders", "scd2")
    found = [(row["id"], row["note"], row["doc"], row["_from_lsn"], row["_to_lsn"]) for row in versions]
    assert sorted(found, key=repr) == sorted(expected, key=repr)


def check(orders, low, high, events):
    """Compare mirror and history in full with the source, and with what was captured.

    :param high: the position of the copy's commit
    """
    source = sorted((row["id"], row["note"], row["doc"]) for row in orders.sql("SELECT id, note, doc FROM dbo.orders"))
    assert sorted((row["id"], row["note"], row["doc"]) for row in orders.lake("dbo.orders")) == source
    at_low = notes_at(low, events)
    history = orders.lake("dbo.orders", "history")
    copied = [row for row in history if row["_op"] == "R"]
    assert {row["_lsn"] for row in copied} == {str(low)}
    assert sorted((row["id"], row["note"]) for row in copied) == sorted(at_low.items())
    kinds = {1: "D", 2: "I", 3: "B", 4: "U"}
    assert sorted((row["_lsn"], row["_op"], row["id"], row["note"]) for row in history if row["_op"] != "R") == sorted(
        (lsn, kinds[op], id, note) for lsn, _, _, op, id, note in events if lsn > str(low)
    )


def change(orders, number):
    """Something of all kinds, over the whole table."""
    orders.sql(f"UPDATE dbo.orders SET note = N'time {number}' WHERE id % 7 = {number}")
    orders.sql(f"DELETE FROM dbo.orders WHERE id = {20 + number}")
    orders.sql(f"INSERT INTO dbo.orders VALUES ({100 + number}, N'new', NULL)")
    orders.sql(f"UPDATE dbo.orders SET id = {200 + number} WHERE id = {10 + number}")
    orders.wait_captured()


def test_a_copy_goes_on_where_it_was_stopped_and_outlives_what_is_purged(orders, chunks):
    chunks.stopped_at(1)
    assert load(orders).error.kind == "Stopped"
    ((_, begun),) = copies(orders)
    low, first = begun.begun.low, chunks.read
    assert len(begun.chunks) == len(first) == 1

    change(orders, 1)
    events = captured(orders)
    chunks.stopped_at(1)
    assert load(orders).error.kind == "Stopped"
    second = chunks.read
    # the window is kept, so that its changes may go
    ((_, found),) = copies(orders)
    kept = reached_by(found.begun, found.kept)
    orders.sql(f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_orders', {kept}")
    change(orders, 2)
    events |= captured(orders)
    chunks.stopped_at(None)
    done = load(orders)

    assert done.error is None
    assert [sink.outcome for sink in done.sinks] == ["first_load"] * 2
    high = done.sinks[0].read_through
    check(orders, low, high, events)
    read = [*first, *second, *chunks.read]
    assert len({hole.after for hole in read}) == len(read) == CHUNKS, "no chunk is read twice"
    assert not place(orders).parent.exists()
    (marker,) = {sink.after.copies for sink in done.sinks}
    assert marker == (begun.begun.id,)

    # the next window goes on from there
    change(orders, 3)
    events |= captured(orders)
    chunks.stopped_at(0)
    assert load(orders, at=positions_of(done)).error is None
    check(orders, low, high, events)


def positions_of(table):
    return {sink.shape: (sink.read_through, sink.after.position) for sink in table.sinks}


def test_a_copy_begins_again_where_changes_were_purged_before_they_were_kept(orders, chunks):
    chunks.stopped_at(2)
    assert load(orders).error.kind == "Stopped"
    ((_, begun),) = copies(orders)
    change(orders, 1)
    events = captured(orders)
    orders.sql(f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_orders', {orders.max_lsn()}")
    change(orders, 2)
    chunks.stopped_at(1)
    newest = orders.max_lsn()
    assert load(orders).error.kind == "Stopped"
    ((_, again),) = copies(orders)
    assert again.begun.id != begun.begun.id
    assert begun.begun.low < again.begun.low <= newest
    chunks.stopped_at(None)
    done = load(orders)
    assert done.error is None
    check(orders, again.begun.low, done.sinks[0].read_through, events | captured(orders))


@pytest.mark.parametrize(
    "other", ["schema", *(pytest.param(each, marks=pytest.mark.thorough) for each in ("restored", "selection", "feed"))]
)
def test_a_copy_of_something_else_begins_again(orders, chunks, other):
    chunks.stopped_at(2)
    assert load(orders, "mirror").error.kind == "Stopped"
    ((_, begun),) = copies(orders)
    given = {}
    if other == "schema":
        given["key"] = ["id", "note"]
    if other == "restored":
        orders.fork()
    if other == "feed":
        orders.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'orders', N'all'")
        orders.enable("dbo.orders")
        orders.sql("UPDATE dbo.orders SET note = N'anew' WHERE id = 3")
        orders.wait_captured()
    if other == "selection":
        entry = place(orders) / begun.begun.id / "entries" / "copy.json"
        entry.write_text(entry.read_text().replace('"selection_hash": null', '"selection_hash": "1:other"'))
    chunks.stopped_at(None)
    done = load(orders, "mirror", **given)
    assert done.error is None
    assert done.sinks[0].after.copies != (begun.begun.id,)
    assert sum(1 for hole in chunks.read if hole.after is None) == 1
    source = sorted((row["id"], row["note"], row["doc"]) for row in orders.sql("SELECT id, note, doc FROM dbo.orders"))
    assert sorted((row["id"], row["note"], row["doc"]) for row in orders.lake("dbo.orders")) == source
    assert not place(orders).parent.exists()


@pytest.mark.thorough
def test_a_sink_that_failed_begins_with_the_same_copy_later(orders, chunks, monkeypatch):
    settle = TableLoad._settle

    def fail(load, sink, *args):
        if sink.shape == "history":
            raise OSError("No space left on device")
        return settle(load, sink, *args)

    with monkeypatch.context() as patched:
        patched.setattr(TableLoad, "_settle", fail)
        first = load(orders)
    assert [sink.shape for sink in first.sinks] == ["mirror"]
    ((_, begun),) = copies(orders)
    change(orders, 1)
    # the shape that has it goes on, the other one begins with what was copied then
    chunks.stopped_at(0)
    at = positions_of(first)
    done = load(orders, at=at)
    assert done.error is None
    assert {sink.shape: sink.outcome for sink in done.sinks} == {"mirror": "loaded", "history": "first_load"}
    assert {sink.after.copies for sink in done.sinks} == {(begun.begun.id,)}
    check(orders, begun.begun.low, done.sinks[-1].read_through, captured(orders))
    assert copies(orders) == []


@pytest.mark.thorough
def test_two_runs_at_once_read_into_one_folder_and_both_end_well(orders, chunks):
    chunks.stopped_at(2)
    load(orders)
    ((_, begun),) = copies(orders)
    change(orders, 1)
    chunks.stopped_at(None)
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: load(orders), range(2)))
    assert [table.error for table in both] == [None, None]
    high = min(sink.after.position for table in both for sink in table.sinks)
    check(orders, begun.begun.low, high, captured(orders))
    assert copies(orders) == []
    assert {sink.read_through for table in both for sink in table.sinks} <= {*map(Lsn.parse, lsns(orders))}


def lsns(orders):
    return ["0x" + row["start_lsn"].hex().upper() for row in orders.sql("SELECT start_lsn FROM cdc.lsn_time_mapping")]


@pytest.mark.thorough
def test_one_more_window_is_kept_where_chunks_take_long(orders, chunks, monkeypatch):
    monkeypatch.setattr(chunk_reading, "KEEP_SECONDS", 0.2)
    kept, keep = [], table_copy.TableCopy._keep

    def changing(table, place, state, **given):
        change(orders, len(kept))
        kept.append(keep(table, place, table._source.state(), **given))

    monkeypatch.setattr(table_copy.TableCopy, "_keep", changing)
    done = load(orders)
    assert done.error is None
    assert len(kept) > 1, "while chunks are read, and at the end"
    low = min(Lsn.parse(row["_lsn"]) for row in orders.lake("dbo.orders", "history"))
    check(orders, low, done.sinks[0].read_through, captured(orders))


def test_a_run_copies_as_long_as_it_may_and_the_next_ones_go_on(orders, chunks):
    runs, position = [], None
    while not runs or runs[-1].copying is not None:
        runs.append(load(orders, copy_seconds=0.001))
        change(orders, len(runs))
        assert runs[-1].error is None
        if (copying := runs[-1].copying) is not None:
            assert (copying.shapes, copying.waits_for, runs[-1].sinks) == (("mirror", "history"), None, ())
            assert position is None or copying.position > position, "each run keeps the changes"
            position, low = copying.position, copying.low
            assert not orders.spark.catalog.tableExists(orders.sql_name("dbo.orders", "mirror"))
    # one chunk at least, and not more at once than there are connections
    assert CHUNKS >= len(runs) > 1
    assert len({hole.after for hole in chunks.read}) == len(chunks.read)
    assert copies(orders) == []
    at = positions_of(runs[-1])
    done = load(orders, at=at)
    assert done.error is None
    check(orders, low, runs[-1].sinks[0].read_through, captured(orders))


@pytest.mark.thorough
def test_a_run_copies_no_faster_than_it_may(orders, chunks):
    """Each run reads the rows of its time, not those of its connections, and one chunk at least."""
    runs = []
    while not runs or runs[-1].copying is not None:
        chunks.read.clear()
        runs.append(load(orders, copy_seconds=0.2, copy_rows_per_second=COPY_ROWS))
        assert runs[-1].error is None
        assert len(chunks.read) == 1
    assert len(runs) == CHUNKS
    low = min(Lsn.parse(row["_lsn"]) for row in orders.lake("dbo.orders", "history"))
    check(orders, low, runs[-1].sinks[0].read_through, captured(orders))


def test_a_copy_waits_while_the_capture_is_late(orders, chunks):
    """The newest commit is older than that, and no scan has found nothing since."""
    orders.sandbox.capture.stop()
    try:
        late = load(orders, copy_seconds=1.0, throttle_lag=0.001)
    finally:
        orders.sandbox.capture.start()
    assert late.error is None
    assert late.copying is not None
    assert late.copying.waits_for is None
    assert len(chunks.read) == 1, "one chunk is always read"
    done = load(orders, throttle_lag=3600.0)
    assert (done.error, done.copying) == (None, None)


def test_a_disk_that_has_less_room_than_the_table_is_refused_and_nothing_is_left(orders, monkeypatch):
    full = SimpleNamespace(disk_usage=lambda folder: SimpleNamespace(free=100))
    with monkeypatch.context() as patched:
        patched.setattr(room, "shutil", full)
        refused = load(orders)
    assert (refused.error.kind, refused.error.permanent) == ("NoRoomError", True)
    assert "has 0.0 GiB left" in refused.error.message
    assert copies(orders) == []
    assert load(orders).error is None


def on_a_disk(patched, free, size, little):
    """The disk has so many of 100 GB left, the table takes so many bytes, and so many are little."""
    disk = SimpleNamespace(disk_usage=lambda folder: SimpleNamespace(free=free * 10**9, total=100 * 10**9))
    patched.setattr(room, "shutil", disk)
    patched.setattr(room, "_bytes", lambda *_: size)
    patched.setattr(room, "_LITTLE", little)


@pytest.mark.thorough
def test_changes_that_outgrow_the_table_on_a_full_disk_end_the_copy(orders, monkeypatch):
    assert load(orders, copy_seconds=0, connections=1).copying.chunks == 1
    orders.sql("UPDATE dbo.orders SET note = N'more'")
    orders.wait_captured()
    with monkeypatch.context() as patched:
        on_a_disk(patched, free=21, size=10, little=10)
        warned = load(orders, copy_seconds=0, connections=1)
        assert warned.copying.chunks == 2
        assert [text for text in warned.warnings if "the copy ends where they take more than the table" in text]
        on_a_disk(patched, free=19, size=10, little=10)
        orders.sql("UPDATE dbo.orders SET note = N'and more'")
        orders.wait_captured()
        ended = load(orders, copy_seconds=0, connections=1)
    assert {(error.kind, error.permanent) for error in ended.failed.values()} == {("NoRoomError", True)}
    assert "has 17.7 of 93.1 GiB left: the copy ended" in ended.failed["mirror"].message
    assert copies(orders) == []
    # it begins again
    assert load(orders).error is None


@pytest.mark.parametrize(
    ("size", "little", "free", "warns"),
    [(2000, 10, 19, False), (10, 2000, 19, False), (10, 10, 41, False), (1500, 10, 19, True), (10, 10, 21, True)],
)
def test_changes_that_take_little_end_no_copy(tmp_path, monkeypatch, size, little, free, warns):
    kept, told = tmp_path / "kept", []
    kept.write_bytes(bytes(1000))
    on_a_disk(monkeypatch, free, size, little)
    room.check_kept(None, TableName("dbo", "orders"), str(tmp_path), [str(kept)], told.append)
    assert len(told) == warns


def test_how_far_a_copy_is_names_no_key_that_is_masked(orders, caplog):
    """Its bounds lie in the entries of the folder alone."""
    orders.sql("CREATE TABLE dbo.people (ssn varchar(20) NOT NULL PRIMARY KEY, name nvarchar(20))")
    orders.sql("INSERT INTO dbo.people VALUES " + ", ".join(f"('secret-{n:04d}', N'n{n}')" for n in range(60)))
    orders.enable("dbo.people")
    orders.sql("UPDATE dbo.people SET name = N'x' WHERE ssn = 'secret-0007'")
    orders.wait_captured()

    def copying(**mask):
        spec = orders.table("dbo.people", ("mirror",))
        selection = dataclasses.replace(spec.selection, **mask)
        receipt = orders.load(dataclasses.replace(spec, selection=selection), copy_rows=10, copy_seconds=0.001)
        assert receipt.tables[0].error is None
        return receipt

    caplog.set_level(logging.INFO)
    far = copying(masks={"ssn": "redact"}).tables[0].copying
    assert (far.last, far.highest, far.expected) == (None, None, 60)
    assert "chunk 1 of 1" in caplog.text
    assert "secret-" not in caplog.text
    clear = copying().tables[0].copying
    assert re.fullmatch(r"\(secret-00\d\d\)", clear.last)
    assert clear.highest == "(secret-0059)"


def test_a_shape_that_is_added_waits_for_its_copy_and_the_other_goes_on(orders, chunks):
    first = load(orders, "mirror")
    change(orders, 1)
    cut = orders.max_lsn()
    change(orders, 3)
    second = load(orders, at=positions_of(first), upto=cut, copy_seconds=0.001)
    assert [(sink.shape, sink.outcome) for sink in second.sinks] == [("mirror", "loaded")]
    assert second.copying.shapes == ("history",)
    # the windows were told before the copy went on
    written = Path(orders.work_dir).glob("*/windows.json")
    told = from_json(Receipt, max(written, key=lambda path: path.stat().st_mtime).read_text())
    assert [(table.sinks, table.copying) for table in told.tables] == [(second.sinks, None)]
    low = second.copying.low
    change(orders, 2)
    # commits between the cut of a run and its copy's low
    assert second.sinks[0].read_through < low
    third = load(orders, at=positions_of(second))
    assert third.error is None
    assert {sink.shape: sink.outcome for sink in third.sinks} == {"mirror": "loaded", "history": "first_load"}
    check(orders, low, third.sinks[1].read_through, captured(orders))
    after = str(second.sinks[0].read_through)
    events = {(lsn, id) for lsn, _, _, op, id, _ in captured(orders) if lsn > after and op != 3}
    assert third.counts["events"] == len(events), "each change once, though the mirror has taken some of them before"


def test_a_copy_whose_rows_are_all_read_waits_for_the_capture_of_a_later_run(orders, chunks, monkeypatch):
    monkeypatch.setattr(table_copy, "CAPTURE_SECONDS", 0.01)
    capture = orders.sandbox.cdc(orders.database)
    capture.hold_back()
    orders.sql("UPDATE dbo.orders SET note = N'not captured' WHERE id = 3")
    waiting = load(orders, copy_seconds=3600.0, capture_timeout=0.01)
    assert waiting.error is None
    assert "did not pass the end of the copy" in waiting.copying.waits_for
    assert waiting.copying.rows == ROWS
    capture.deliver()
    orders.sql("UPDATE dbo.orders SET note = N'later' WHERE id = 2")
    orders.wait_captured()
    chunks.stopped_at(0)
    done = load(orders)
    assert done.error is None
    check(orders, waiting.copying.low, done.sinks[0].read_through, captured(orders))


@pytest.mark.parametrize("by_url", [False, pytest.param(True, marks=pytest.mark.thorough)], ids=["local", "URL"])
@pytest.mark.thorough
@pytest.mark.parametrize("finishes", ["a next one", "the other"])
def test_of_two_runs_at_once_one_is_killed_once_its_window_is_kept(orders, chunks, monkeypatch, finishes, by_url):
    """Both windows begin at the low: what both have counts once, and what the killed one has alone is not lost."""
    here, shapes = orders.work_dir, ("mirror", "history", "scd2")
    if by_url:
        at_url(orders)
    chunks.stopped_at(1)
    load(orders, *shapes)
    ((_, begun),) = copies(orders)
    low, read, runs, events = begun.begun.low, chunks.read, [], set()
    chunks.stopped_at(None)
    change(orders, 1)
    part = {"copy_seconds": 0, "connections": 1} if finishes == "a next one" else {}
    with ExitStack() as killed:
        other = Stop(monkeypatch, Point(table_copy.TableCopy, "_keep", BEFORE))
        with other.meanwhile(lambda: runs.append(load(orders, *shapes, **part))):
            change(orders, 2)
            kept = Stop(monkeypatch, Point(table_copy.TableCopy, "_keep", AFTER), kills=True)
            killed.enter_context(kept.meanwhile(lambda: load(orders, *shapes)))
        if finishes == "a next one":
            ((_, found),) = copies(orders)
            shorter, longer = sorted(window.upto for window in found.kept)
            assert {window.after for window in found.kept} == {low}
            assert shorter < longer
            assert runs[0].copying.chunks == 2
            # that one alone has some of the changes now
            events = captured(orders)
            orders.sql(f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_orders', {longer}")
            change(orders, 3)
            runs.append(load(orders, *shapes))
        assert [run.error for run in runs] == [None] * len(runs)
        done, events = runs[-1], events | captured(orders)
        assert [sink.outcome for sink in done.sinks] == ["first_load"] * 3
        assert {sink.after.copies for sink in done.sinks} == {(begun.begun.id,)}
        high = done.sinks[0].read_through
        check(orders, low, high, events)
        check_versions(orders, low, events)
        read = [*read, *chunks.read]
        assert len({hole.after for hole in read}) == len(read) == CHUNKS, "no chunk is lost, and none is read twice"
        assert done.counts["events"] == sum(str(low) < lsn <= str(high) and op != 3 for lsn, _, _, op, _, _ in events)
        assert copies(orders) == []
        if not by_url:
            assert not (here / "copies").exists()
        else:
            # Spark has no way to delete a folder
            left = here / "copies" / "dbo_orders" / begun.begun.id
            assert [path for path in left.rglob("*") if path.is_dir()] == []
            assert orders.spark.read.parquet(str(left)).isEmpty()


def test_a_copy_whose_rows_cannot_be_judged_is_read_anew(orders, chunks, monkeypatch):
    def several(rows, begun, target_rows):
        raise KeyRequiredError("the key is not unique.", table="dbo.orders", advice="Name other columns.")

    with monkeypatch.context() as patched:
        patched.setattr(Mirror, "first", several)
        failed = load(orders, "mirror")
    assert failed.error.kind == "KeyRequiredError"
    assert copies(orders) == []
    chunks.stopped_at(None)
    assert load(orders, "mirror").error is None
    assert len(chunks.read) == CHUNKS


def test_a_copy_of_masked_values_is_not_gone_on_with_by_a_login_that_reads_them(orders, chunks):
    masked = dataclasses.replace(orders.table("dbo.orders", ("mirror",)), protection="shop reads masks of note")
    chunks.stopped_at(1)
    orders.load(masked, copy_rows=COPY_ROWS)
    ((_, begun),) = copies(orders)
    assert begun.begun.protection == "shop reads masks of note"
    chunks.stopped_at(None)
    done = load(orders, "mirror")
    assert done.error is None
    assert "masks, security policies" in done.warnings[0]
    assert done.sinks[0].after.copies != (begun.begun.id,)


def test_a_copy_on_another_workers_disk_is_told_and_read_to_its_end(orders, chunks):
    known = KnownCopy("0123456789ab", "/elsewhere/copies", "worker-1")
    table = dataclasses.replace(orders.table("dbo.orders", ("mirror",)), copy=known)
    done = orders.load(table, copy_rows=COPY_ROWS, copy_seconds=0.001).tables[0]
    assert (done.error, done.copying) == (None, None)
    (warning,) = done.warnings
    assert "copy 0123456789ab of dbo.orders is not found: it was read into /elsewhere/copies on worker-1" in warning


def test_the_folder_of_a_copy_is_nobody_elses(orders, chunks):
    chunks.stopped_at(1)
    load(orders)
    ((found, _),) = copies(orders)
    for folder_of in (Path(found.path), Path(found.path).parent):
        assert stat.S_IMODE(folder_of.stat().st_mode) == 0o700


def test_a_copy_of_a_quiet_table_begins_a_history_that_leaves_events_out(live, chunks):
    live.sql("CREATE TABLE dbo.orders (id int NOT NULL PRIMARY KEY, note nvarchar(40), doc nvarchar(max))")
    live.sql("INSERT INTO dbo.orders VALUES (1, N'n', NULL)")
    live.enable("dbo.orders")
    live.sql("UPDATE dbo.orders SET note = N'x'")
    live.wait_captured()
    table = live.table("dbo.orders", ("history",), history=HistoryOptions(operations=("delete",)))
    done = live.load(table).tables[0]
    assert done.error is None
    assert {row["_op"] for row in live.lake("dbo.orders", "history")} <= {"R"}


def test_a_server_that_lags_behind_the_low_gives_no_rows(orders, chunks, monkeypatch):
    """As a readable secondary may; here the low is one that the server does not have yet."""
    ahead = Lsn(b"\xff" + bytes(9))
    showing = Jdbc.showing
    with monkeypatch.context() as patched:
        patched.setattr(Jdbc, "showing", lambda jdbc, low, **given: showing(jdbc, ahead, **given))
        failed = load(orders)
    assert failed.error.kind == "CaptureLagError"
    assert f"the server does not show {ahead}, with which the copy begins" in failed.error.message
    assert not failed.error.permanent
    # it goes on where the server is not behind
    done = load(orders)
    assert done.error is None
    source = sorted((row["id"], row["note"]) for row in orders.sql("SELECT id, note FROM dbo.orders"))
    assert sorted((row["id"], row["note"]) for row in orders.lake("dbo.orders")) == source


STOPS = {
    "chunk read, no entry": Point(folder.CopyFolder, "add", BEFORE),
    "a chunk's entry written": Point(folder.CopyFolder, "add", AFTER),
    "all chunks read, no window kept": Point(table_copy.TableCopy, "_keep", BEFORE),
    "window kept": Point(table_copy.TableCopy, "_keep", AFTER),
    "about to begin": Point(folder.CopyFolder, "begin", BEFORE),
    "begun": Point(folder.CopyFolder, "begin", AFTER),
    "one sink committed": Point(TableLoad, "_settle", AFTER),
    "folder to be removed": Point(CapturedTable, "remove_copy", BEFORE),
}


OFTEN = ("chunk read, no entry",)


@pytest.mark.parametrize(
    "point", [each if each in OFTEN else pytest.param(each, marks=pytest.mark.thorough) for each in STOPS]
)
def test_a_run_that_stops_anywhere_in_a_copy_does_no_harm(orders, monkeypatch, point):
    """As one whose worker was taken for dead: another one does its work, and then it goes on."""
    with monkeypatch.context() as patched:
        stop = Stop(patched, STOPS[point])
        with stop.meanwhile(lambda: load(orders)):
            change(orders, 1)
            done = load(orders)
            assert done.error is None
            low = min(row["_lsn"] for row in orders.lake("dbo.orders", "history"))
            history = done.sinks[1]
            # the copy's own commit may be that of the one that stopped
            high = history.read_through if history.outcome == "first_load" else history.before
            check(orders, low, high, captured(orders))
    check(orders, low, high, captured(orders))
    assert copies(orders) == []
    change(orders, 2)
    later = load(orders, at=positions_of(done))
    assert later.error is None
    check(orders, low, high, captured(orders))


@pytest.mark.thorough
def test_what_can_be_finished_comes_before_what_takes_more_runs(orders, monkeypatch):
    orders.sql("CREATE TABLE dbo.few (id int NOT NULL PRIMARY KEY, note nvarchar(40), doc nvarchar(max))")
    orders.sql("INSERT INTO dbo.few VALUES " + ", ".join(f"({n}, N'n{n}', N'doc {n}')" for n in range(COPY_ROWS + 1)))
    orders.enable("dbo.few")
    orders.sql("UPDATE dbo.few SET note = N'changed' WHERE id = 1")
    orders.wait_captured()
    tables = [orders.table(name, ("mirror",)) for name in ("dbo.orders", "dbo.few")]
    options = {"copy_rows": COPY_ROWS, "copy_seconds": 0, "tables_at_once": 1, "connections": 1}
    begun = orders.load(*tables, **options).tables
    left = [known_copy(checkpoint_of(table)).left for table in begun]
    assert left == [ROWS - COPY_ROWS, 1]
    known = [
        dataclasses.replace(table, copy=KnownCopy(receipt.copying.id, "", left=rows))
        for table, receipt, rows in zip(tables, begun, left, strict=True)
    ]
    order, plain = [], TableLoad.load_copies
    monkeypatch.setattr(
        TableLoad, "load_copies", lambda self, time: (order.append(str(self._table.name)), plain(self, time))[1]
    )
    done = {str(table.name): table for table in orders.load(*known, **options).tables}
    assert order == ["dbo.few", "dbo.orders"]
    assert done["dbo.few"].copying is None
    assert done["dbo.orders"].copying.rows == 2 * COPY_ROWS


def checkpoint_of(table):
    """The checkpoint that an operator would store."""
    copies = copies_of(table, "copies")
    return Checkpoint(Identity("db", "shop", table.name, "iceberg://lake/shop"), copies=copies)


@pytest.mark.thorough
def test_a_copy_that_is_cut_by_other_columns_is_gone_on_with_while_rows_move_in_them(orders, chunks):
    orders.sql("CREATE INDEX by_note ON dbo.orders (note)")
    orders.sql("UPDATE dbo.orders SET note = CASE WHEN id % 3 = 0 THEN NULL ELSE CONCAT(N'g', id % 4) END")
    orders.wait_captured()
    table = dataclasses.replace(orders.table("dbo.orders"), copy_by=("note",))

    def load_by(**options):
        return orders.load(table, copy_rows=5, connections=1, **options).tables[0]

    begun = load_by(copy_seconds=0)
    assert (begun.copying.chunks, begun.copying.last, begun.copying.highest) == (1, "(NULL)", "(g3)")
    # from what is read into what is not, and back
    orders.sql("UPDATE dbo.orders SET note = N'g9' WHERE id IN (0, 3); UPDATE dbo.orders SET note = NULL WHERE id = 4")
    orders.sql(
        "DELETE FROM dbo.orders WHERE id = 6; INSERT INTO dbo.orders VALUES (100, N'g2', N'new'), (101, NULL, N'n')"
    )
    orders.wait_captured()
    while (done := load_by(copy_seconds=0)).copying is not None:
        pass
    assert done.error is None
    # the groups: NULL, and four others
    assert len(chunks.read) == 5
    orders.wait_captured()
    at = {sink.shape: (sink.read_through, sink.after.position) for sink in done.sinks}
    assert orders.load(orders.table("dbo.orders", at=at)).tables[0].error is None
    source = sorted((row["id"], row["note"], row["doc"]) for row in orders.sql("SELECT id, note, doc FROM dbo.orders"))
    assert sorted((row["id"], row["note"], row["doc"]) for row in orders.lake("dbo.orders")) == source


@pytest.mark.thorough
def test_bounds_of_other_columns_say_nothing(orders):
    orders.sql("CREATE INDEX by_note ON dbo.orders (note)")
    again = orders.table("dbo.orders", ("scd2",))
    begun = orders.load(dataclasses.replace(again, copy_by=("note",)), copy_rows=5, connections=1, copy_seconds=0)
    assert begun.tables[0].copying.chunks == 1
    (warning,) = [w for w in orders.load(again, copy_rows=5).tables[0].warnings if "begins again" in w]
    assert "it is cut by note, and by id now (copy_by)" in warning


def test_a_copy_at_a_url_that_another_run_removes_as_it_is_looked_for_is_none(orders, chunks, monkeypatch):
    at_url(orders)
    chunks.stopped_at(1)
    load(orders)
    ((found, _),) = copies(orders)

    def removed(name):
        found.remove()
        return functions.col(name)

    monkeypatch.setattr(folder, "F", SimpleNamespace(col=removed))
    assert copies(orders) == []
