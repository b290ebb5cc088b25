"""The five ways to look at a window's changes, against the model of the capture."""

import dataclasses
import datetime
from random import Random

import pytest
from hypothesis import given
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.changes import CHANGES
from airflow_provider_mssql_cdc.core.columns import TRAN_ID, map_columns
from airflow_provider_mssql_cdc.core.exceptions import KeyRequiredError
from airflow_provider_mssql_cdc.core.marker import LAYOUT, Gap
from airflow_provider_mssql_cdc.core.position import Version, Window
from airflow_provider_mssql_cdc.core.spec import SinkSpec
from airflow_provider_mssql_cdc.core.table import Column
from airflow_provider_mssql_cdc.spark.session import table_session
from airflow_provider_mssql_cdc.spark.shapes.base import Beginning
from airflow_provider_mssql_cdc.spark.shapes.history import history_events
from airflow_provider_mssql_cdc.spark.shapes.table import TableRows
from airflow_provider_mssql_cdc.spark.shapes.transactions import Transactions
from airflow_provider_mssql_cdc.spark.shapes.ways import seen_as
from airflow_provider_mssql_cdc.spark.shapes.wide import identified
from airflow_provider_mssql_cdc.spark.sources.cdc.events import stage
from airflow_provider_mssql_cdc.spark.staging import Counts
from airflow_provider_mssql_cdc.spark.targets import Write
from tests.support.logged.feed import LoggedTable
from tests.support.spark import model
from tests.support.spark.drawn import (
    DDL,
    MAPPINGS,
    SPEC,
    TABLE,
    Copied,
    before,
    copied,
    draw,
    few,
    frame,
    history_of,
    seeds,
)
from tests.support.spark.rows import local

pytestmark = pytest.mark.xdist_group(__name__)

OPERATIONS = {1: "D", 2: "I", 3: "B", 4: "U"}
BUT_UPDATES = ("insert", "delete")
NET = ("net", "net_mask", "net_merge")


def changes_by_key(captures, low, high):
    """Each key with its change rows: position, mask and real values; a row that left or took a key has every bit."""
    found = {}
    for capture in captures:
        for change, image in zip(capture.changes, capture.images, strict=True):
            position, _, operation, history, id_, *values = image
            mask = change["update_mask"][-1]
            moved = operation in (3, 4) and mask & 0b10
            if low < position <= high and (operation != 3 or moved):
                row = (position, 0b11111 if moved else mask, (history, id_, *values))
                found.setdefault((history, id_), []).append(row)
    return found


def net_changes(captures, low, high):
    """What each key's changes come to: by the rows of before and after, not by the operations."""
    was, now = ({row[:2]: row for row in before(captures, at)} for at in (low, high))
    for key, changes in changes_by_key(captures, low, high).items():
        position, _, values = changes[-1]
        if key in was or key in now:
            operation = "U" if key in was and key in now else "I" if key in now else "D"
            bits = 0
            for _, mask, _ in changes:
                bits |= mask
            yield operation, str(model.lsn(position)), now.get(key, values), bits


def _plain(lsn: str) -> str:
    return "0x" + lsn.replace(":", "").upper()


def drawn(spark, folder, captures, low, high):
    """The table, the staged window, the window, and what is known of each key before it."""
    session, window = table_session(spark), Window(model.lsn(low), model.lsn(high))
    raw = frame(session, model.raw_rows(captures, low, high))
    staged = stage(raw, SPEC.schema, MAPPINGS, [window], str(folder / "events"), history=True)
    table = dataclasses.replace(TABLE, scratch=str(folder / "resolved"))
    known = local(session, [(*row, []) for row in before(captures, low)], DDL + ", _unknown ARRAY<STRING>")
    return table, staged, window, known


@few
@given(seeds)
def test_each_way_shows_what_the_source_did(spark, tmp_path_factory, seed):
    captures, low, high = draw(seed)
    table, staged, window, known = drawn(spark, tmp_path_factory.mktemp("staged"), captures, low, high)
    events = history_events(table, "all_old", staged, window, known, once=False)

    found = {changes: seen_as(changes, table, events).collect() for changes in CHANGES}

    images = sorted(
        (str(model.lsn(position)), history * 1000 + command, OPERATIONS[operation], history, id_, *map(repr, values))
        for capture in captures
        for position, command, operation, history, id_, *values in capture.images
        if low < position <= high
    )
    for changes, left_out in (("all_old", ""), ("all", "B")):
        rows = sorted(
            (r["_lsn"], r["_command_id"], r["_op"], r["h"], r["id"], *(repr(r[n]) for n in model.NAMES[2:]))
            for r in found[changes]
        )
        assert rows == [image for image in images if image[2] != left_out]
    expected = sorted(net_changes(captures, low, high), key=repr)
    for changes in NET:
        rows, kinds = found[changes], {"I": "M", "U": "M", "D": "D"}
        assert len({(row["h"], row["id"]) for row in rows}) == len(rows)
        assert sorted(((r["_op"], r["_lsn"], tuple(r[n] for n in model.NAMES)) for r in rows), key=repr) == sorted(
            ((kinds[op] if changes == "net_merge" else op, lsn, values) for op, lsn, values, _ in expected), key=repr
        )
        assert {tuple(row["_unknown"]) for row in rows} <= {()}
    masks = {(values[0], values[1]): bits if op == "U" else None for op, _, values, bits in expected}
    for row in found["net_mask"]:
        bits = masks[row["h"], row["id"]]
        for ordinal, name in enumerate(model.NAMES):
            assert (row["_changed"] is None) if bits is None else (name in row["_changed"]) == bool(bits >> ordinal & 1)
    assert {row["_changed"] for changes in ("net", "net_merge") for row in found[changes]} <= {None}


def test_an_update_that_follows_another_names_the_columns_of_both_in_their_order(spark, tmp_path):
    session, capture = table_session(spark), model.Capture(1, keeps=False)
    for position, values in (
        (10, ("a", "x", "t")),
        (20, ("a", "x", "u")),
        (30, ("a", "y", "u")),
        (40, ("b", "y", "u")),
    ):
        capture.begin(position)
        if position == 10:
            capture.insert(1, values)
            capture.insert(2, values)
        else:
            capture.update(1, values, 1, deferred=False)
        capture.commit()
    window = Window(model.lsn(10), model.lsn(40))
    raw = frame(session, model.raw_rows([capture], 10, 40))
    staged = stage(raw, SPEC.schema, MAPPINGS, [window], str(tmp_path / "events"), history=True)

    (row,) = seen_as("net_mask", TABLE, history_events(TABLE, "all_old", staged, window, None)).collect()

    assert (row["_op"], row["_lsn"], row["_changed"]) == ("U", str(model.lsn(40)), ["name", "doc", "old text"])


@few
@given(seeds)
def test_a_wide_record_has_the_values_before_and_after_its_change(spark, tmp_path_factory, seed):
    captures, low, high = draw(seed)
    table, staged, window, known = drawn(spark, tmp_path_factory.mktemp("staged"), captures, low, high)
    wide = history_of(table, form="wide")

    rows = wide.rows(window, staged, known)
    updates = history_of(table, form="wide", operations=("update",)).rows(window, staged, known)

    pairs = {}
    for capture in captures:
        for position, command, operation, history, id_, *values in capture.images:
            if low < position <= high:
                sides = pairs.setdefault((position, history * 1000 + command), [None, None])
                sides[operation in (2, 4)] = (history, id_, *values)
    kinds = {(False, True): "insert", (True, True): "update", (True, False): "delete"}
    nothing = (None,) * len(model.NAMES)
    expected = sorted(
        (
            (
                kinds[old is not None, new is not None],
                f"00000000:00000000:{position:04x}",
                command,
                *(old or nothing),
                *(new or nothing),
            )
            for (position, command), (old, new) in pairs.items()
        ),
        key=repr,
    )
    names = [side + name for side in ("before_", "after_") for name in model.NAMES]

    def found(frame):
        return sorted(
            ((row["type"], row["lsn"], row["_command_id"], *(row[name] for name in names)) for row in frame.collect()),
            key=repr,
        )

    assert found(rows) == expected
    assert found(updates) == [record for record in expected if record[0] == "update"]
    as_kept = wide.laid_out(Write(rows), LAYOUT).rows.drop(TRAN_ID)
    assert as_kept.columns == [column.name for column in wide.columns()]
    assert wide.laid_out(Write(rows), 1).rows.drop(TRAN_ID).columns == as_kept.columns[:-2]
    ids = {(row["_lsn"], row[TRAN_ID]) for row in staged.rows(window).collect()}
    assert {(_plain(row["lsn"]), row["_tran_id"]) for row in as_kept.collect()} <= ids
    assert {row["_healed"] for row in as_kept.collect()} <= {False}
    # each record stands for one event, and a history of them tells what the next window needs to know
    events = staged.rows(window).where("_op != 'B'").select("_lsn", "_command_id", "_seqval", "_op").collect()
    assert sorted(map(tuple, events)) == sorted(
        tuple(row) for row in identified(table, rows).select("_lsn", "_command_id", "_seqval", "_op").collect()
    )
    later = Window(model.lsn(high), model.lsn(high + 1))
    of_records = wide.known(later, rows)
    of_events = history_of().latest(later, history_events(table, "all_old", staged, window, known, once=False))
    kept = [f"`{name}`" for name in ("h", "id", "doc", "old text", "_unknown")]

    def told(known):
        return sorted(map(repr, known.select(*kept).collect()))

    assert told(of_records) == told(of_events)
    # what was there before a gap may have changed within it
    middle = model.lsn((low + high) // 2)
    gaps = (Gap(model.lsn(low), model.lsn(low)), Gap(model.lsn(low + 1), middle), Gap(later.upto, later.upto))
    events_of_later = history_events(table, "all_old", staged, window, known, once=False).where(
        F.col("_lsn") >= str(middle)
    )
    of_later = history_of().latest(later, events_of_later)
    assert told(wide.known(later, rows, gaps)) == told(of_later)


def test_a_key_column_may_have_any_name(spark):
    columns = (Column(1, 1, "latest", "int"), Column(2, 2, "count", "int"), Column(3, 3, "doc", "ntext"))
    spec = model.table_spec(columns=columns, key=("latest", "count"), unique_key=False)
    table = TableRows(spec, map_columns(spec.name, spec.schema), None)
    names = "latest INT, count INT, doc STRING"
    rows = local(
        table_session(spark),
        [(1, 2, "a", [], "I", str(model.lsn(2)), 1), (1, 2, "b", [], "U", str(model.lsn(3)), 1)],
        f"{names}, _unknown ARRAY<STRING>, _op STRING, _lsn STRING, _seq BIGINT",
    )

    known = history_of(table).latest(Window(model.lsn(3), model.lsn(4)), rows)

    assert [tuple(row) for row in known.collect()] == [(1, 2, "b", [])]
    images = rows.select("latest", "count", "doc")
    table.unenforced_key.refuse_duplicates(images.limit(1))
    with pytest.raises(KeyRequiredError, match="latest=1, count=2"):
        table.unenforced_key.refuse_duplicates(images)
    assert table.unenforced_key.alone(images).collect() == []


@few
@given(seeds)
def test_a_history_begins_with_all_rows_of_its_low_whatever_changes_it_holds(spark, tmp_path_factory, seed):
    captures, low, high = draw(seed)
    random, session, window = Random(seed), table_session(spark), Window(model.lsn(low), model.lsn(high))
    raw = frame(session, model.raw_rows(captures, low, high))
    folder = str(tmp_path_factory.mktemp("staged") / "events")
    staged = stage(raw, SPEC.schema, MAPPINGS, [window], folder, history=True)
    scanned = [row for capture in captures for row in capture.scanned(random, low, high)]
    copy = Copied(copied(session, scanned))

    def begun(changes):
        history = history_of(changes=changes, operations=BUT_UPDATES)
        rows = history.first(Beginning(window, staged, copy), copy.rows()).rows.collect()
        assert not [row for row in rows if row["_op"] == "U"]
        return [(row["h"], row["id"], row["name"]) for row in rows if row["_op"] == "R"]

    there = sorted((row[:3] for row in before(captures, low)), key=repr)
    assert sorted(begun("all_old"), key=repr) == there
    assert sorted(begun("net"), key=repr) == there


class OneWindow:
    """Staged rows, all of one window."""

    def __init__(self, rows):
        self._rows = rows

    def rows(self, window):
        return self._rows

    def count(self, window):
        return Counts(inserted=1, updated=1, deleted=1)


class WithImages(LoggedTable):
    """A log that holds every change, with what was there before."""

    CAN = dataclasses.replace(LoggedTable.CAN, every_change=True, before_images=True)


def test_positions_of_another_kind_have_columns_of_their_own(spark):
    session = table_session(spark)
    columns = (Column(1, 1, "id", "int", nullable=False), Column(2, 2, "v", "int"))
    spec = model.table_spec(columns=columns, key=("id",))
    log = WithImages("t", 7, spec.name, 50, datetime.datetime(2026, 1, 1), columns)
    table = TableRows(dataclasses.replace(spec, feed=log), map_columns(spec.name, spec.schema), None)
    events = [(1, 11, "U", 8, 1), (3, 30, "I", 9, 2), (2, 20, "D", 10, 3)]
    staged = OneWindow(local(session, events, "id INT, v INT, _op STRING, _version BIGINT, _n BIGINT"))
    copy = Copied(local(session, [(1, 10), (2, 20), (4, 40)], "id INT, v INT"))
    window, later = Window(Version(7), Version(10)), Window(Version(10), Version(12))
    # as numbers: texts would have 10 before 9
    happened = [(3, 30, "I", 9), (1, 11, "U", 8), (2, 20, "D", 10)]
    history, wide = history_of(table, changes="all"), history_of(table, form="wide")
    for shape, position in ((history, "_version"), (wide, "version")):
        names = {c.name: c.type for c in shape.columns()}
        assert names[position] == "BIGINT"
        assert not [name for name in names if "lsn" in name]
    target = local(session, [], ", ".join(f"{column.name} {column.type}" for column in history.columns()))

    first = history.laid_out(history.first(Beginning(window, staged, copy), target), LAYOUT).rows
    rows = first.select(*target.columns)

    said = [(row["id"], row["v"], row["_op"], row["_version"]) for row in rows.collect()]
    assert sorted(said) == sorted([(2, 20, "R", 7), (4, 40, "R", 7), *happened])
    assert history.newest(rows) == 10
    assert history.has_others(later, rows)
    assert not history.has_others(Window(Version(6), Version(10)), rows)
    assert {row["id"] for row in history.known(later, rows).collect()} == {1, 3, 4}
    assert {row["id"] for row in history.known(Window(Version(8), Version(10)), rows).collect()} == {1, 2, 4}
    again = history.missing(window, staged, rows.where("_version != 9"), ()).rows
    assert [(row["id"], row["_version"]) for row in again.collect()] == [(3, 9)]

    net = history_of(table, changes="net", operations=BUT_UPDATES).first(Beginning(window, staged, copy), target)
    held = [(row["id"], row["_op"], row["_version"]) for row in net.rows.collect()]
    assert sorted(held) == [(2, "D", 10), (2, "R", 7), (3, "I", 9), (4, "R", 7)]

    records = wide.rows(window, OneWindow(staged.rows(window).where("_op != 'U'")), None)
    assert sorted((row["version"], row["type"]) for row in records.collect()) == [(9, "insert"), (10, "delete")]
    assert wide.newest(records) == 10
    assert {row["id"] for row in wide.known(later, records).collect()} == {3}

    of_transactions = Transactions(table, SinkSpec("transactions", ("lake", "t"), None, None))
    counted = of_transactions.laid_out(of_transactions.next(window, staged, target, ()), LAYOUT).rows
    by_transaction = counted.select(*(column.name for column in of_transactions.columns()))
    told = ("_version", "events", "deleted", "_tran_id")
    assert sorted(tuple(row[name] for name in told) for row in by_transaction.collect()) == [
        (8, 1, 0, None),
        (9, 1, 0, None),
        (10, 1, 1, None),
    ]
    assert of_transactions.newest(by_transaction) == 10
