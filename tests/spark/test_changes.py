"""The five ways to look at a window's changes, against the model of the capture."""

import dataclasses
from random import Random

import pytest
from hypothesis import given

from airflow_provider_mssql_cdc.core.changes import CHANGES, HistoryOptions
from airflow_provider_mssql_cdc.core.spec import SinkSpec
from airflow_provider_mssql_cdc.core.window import Window
from airflow_provider_mssql_cdc.spark.changes import history_rows, identified, known_in_history, seen_as
from airflow_provider_mssql_cdc.spark.session import table_session
from airflow_provider_mssql_cdc.spark.staging import stage
from tests.spark import model
from tests.spark.drawn import DDL, MAPPINGS, SHAPE, SPEC, before, copied, draw, few, frame, seeds
from tests.spark.rows import local

pytestmark = pytest.mark.xdist_group(__name__)

OPERATIONS = {1: "D", 2: "I", 3: "B", 4: "U"}
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


def drawn(spark, folder, captures, low, high):
    """Return the shape, the staged window, the window, and what is known of each key before it."""
    session, window = table_session(spark), Window(model.lsn(low), model.lsn(high))
    raw = frame(session, model.raw_rows(captures, low, high))
    staged = stage(raw, SPEC.schema, MAPPINGS, [window], str(folder / "events"), history=True)
    shape = dataclasses.replace(SHAPE, scratch=str(folder / "resolved"))
    known = local(session, [(*row, []) for row in before(captures, low)], DDL + ", _unknown ARRAY<STRING>")
    return shape, staged, window, known


@few
@given(seeds)
def test_each_way_shows_what_the_source_did(spark, tmp_path_factory, seed):
    captures, low, high = draw(seed)
    shape, staged, window, known = drawn(spark, tmp_path_factory.mktemp("staged"), captures, low, high)
    events = shape.history_events(staged, window, known, once=False)

    found = {changes: seen_as(changes, shape, events).collect() for changes in CHANGES}

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

    (row,) = seen_as("net_mask", SHAPE, SHAPE.history_events(staged, window, None)).collect()

    assert (row["_op"], row["_lsn"], row["_changed"]) == ("U", str(model.lsn(40)), ["name", "doc", "old text"])


@few
@given(seeds)
def test_a_wide_record_has_the_values_before_and_after_its_change(spark, tmp_path_factory, seed):
    captures, low, high = draw(seed)
    shape, staged, window, known = drawn(spark, tmp_path_factory.mktemp("staged"), captures, low, high)
    sink = SinkSpec("history", ("lake", "t"), None, None, history=HistoryOptions(form="wide"))
    alone = dataclasses.replace(sink, history=HistoryOptions(form="wide", operations=("update",)))

    rows = history_rows(shape, sink, staged, window, known)
    updates = history_rows(shape, alone, staged, window, known)

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
    assert rows.columns == [column.name for column in SHAPE.columns(sink)]
    # each record stands for one event, and a history of them tells what the next window needs to know
    events = staged.rows(window).where("_op != 'B'").select("_lsn", "_command_id", "_seqval", "_op").collect()
    assert sorted(map(tuple, events)) == sorted(
        tuple(row) for row in identified(sink, rows).select("_lsn", "_command_id", "_seqval", "_op").collect()
    )
    later = Window(model.lsn(high), model.lsn(high + 1))
    of_records = known_in_history(SHAPE, sink, rows, later)
    of_events = SHAPE.known_in_history(shape.history_events(staged, window, known, once=False), later)
    kept = [f"`{name}`" for name in ("h", "id", "doc", "old text", "_unknown")]
    assert sorted(map(repr, of_records.select(*kept).collect())) == sorted(map(repr, of_events.select(*kept).collect()))


@few
@given(seeds)
def test_copied_rows_give_way_to_the_changes_that_a_history_holds_alone(spark, tmp_path_factory, seed):
    captures, low, high = draw(seed)
    random, session, window = Random(seed), table_session(spark), Window(model.lsn(low), model.lsn(high))
    raw = frame(session, model.raw_rows(captures, low, high))
    folder = str(tmp_path_factory.mktemp("staged") / "events")
    staged = stage(raw, SPEC.schema, MAPPINGS, [window], folder, history=True)
    copy = copied(session, [row for capture in captures for row in capture.scanned(random, low, high)])

    rows = SHAPE.history_copy(copy, model.lsn(low), staged, window, ["I", "D"]).collect()

    there = {row[:2] for row in before(captures, high)}
    # an update of the key ends one row and begins another
    held = {
        key for key, found in changes_by_key(captures, low, high).items() if any(bits == 31 for _, bits, _ in found)
    }
    assert sorted((row["h"], row["id"]) for row in rows) == sorted(there - held)
