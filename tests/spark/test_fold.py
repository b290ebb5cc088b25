"""Staging, fold and LOBs against a model of the capture in plain Python: many histories share one table."""

from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.columns import map_columns
from airflow_provider_mssql_cdc.core.window import Window
from airflow_provider_mssql_cdc.spark.reader import raw_schema
from airflow_provider_mssql_cdc.spark.session import table_session
from airflow_provider_mssql_cdc.spark.shapes import TableShape
from airflow_provider_mssql_cdc.spark.staging import stage
from tests.spark import model

pytestmark = pytest.mark.xdist_group("spark")

SPEC = model.table_spec()
MAPPINGS = map_columns(SPEC.name, SPEC.schema)
SHAPE = TableShape(SPEC, MAPPINGS, "UTC")


seeds = st.integers(0, 2**32)


def draw(seed):
    """Histories that share a table, and two cuts."""
    random = Random(seed)
    low = random.randint(5, 60)
    return [model.random_history(random, number) for number in range(100)], low, random.randint(low, 95)


def frame(session, rows):
    """Make rows of several partitions in the order of the list, as slices are; each partition is shuffled inside."""
    half = len(rows) // 2
    while 0 < half < len(rows) and rows[half][0] == rows[half - 1][0]:
        half += 1
    parts = [rows[:half][::-1], rows[half:][::-1]]
    frames = [session.createDataFrame(part, raw_schema(MAPPINGS)).coalesce(1) for part in parts if part]
    if not frames:
        return session.createDataFrame([], raw_schema(MAPPINGS))
    return frames[0] if len(frames) == 1 else frames[0].unionAll(frames[1])


def before(captures, cut):
    """What a mirror holds at the cut."""
    return [(c.history, id_, *values) for c in captures for id_, values in c.state(cut).items()]


def only_key_changes(rows):
    """What is read for mirrors alone: of before images, those of changed keys."""
    return [row for row in rows if row[3] != 3 or row[4][-1] & 0b11]


@settings(
    max_examples=2,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
@given(seeds)
def test_a_mirror_becomes_what_the_source_was_at_the_cut(spark, tmp_path_factory, seed):
    captures, low, high = draw(seed)
    session, window = table_session(spark), Window(model.lsn(low), model.lsn(high))
    rows = only_key_changes(model.raw_rows(captures, low, high))
    path = str(tmp_path_factory.mktemp("staged") / "events")
    staged = stage(frame(session, rows), SPEC.schema, MAPPINGS, [window], path, history=False)
    start = before(captures, low)
    known = session.createDataFrame(start, "h INT, id INT, name STRING, doc STRING, `old text` STRING")

    changes = SHAPE.mirror_changes(staged, window, known).collect()

    mirror = {(h, id_): (h, id_, *rest) for h, id_, *rest in start}
    assert len({(row["h"], row["id"]) for row in changes}) == len(changes)
    for row in changes:
        if row["_op"] in "DB":
            mirror.pop((row["h"], row["id"]), None)
        else:
            mirror[row["h"], row["id"]] = tuple(row[name] for name in model.NAMES)
    assert sorted(mirror.values(), key=repr) == sorted(before(captures, high), key=repr)
    counts, operations = staged.count(window), [row[3] for row in rows]
    assert (counts.inserted, counts.updated, counts.deleted) == tuple(operations.count(n) for n in (2, 4, 1))


@settings(
    max_examples=2,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
@given(seeds)
def test_a_history_holds_every_image_in_full(spark, tmp_path_factory, seed):
    captures, low, high = draw(seed)
    session, window = table_session(spark), Window(model.lsn(low), model.lsn(high))
    rows = model.raw_rows(captures, low, high)
    path = str(tmp_path_factory.mktemp("staged") / "events")
    staged = stage(frame(session, rows), SPEC.schema, MAPPINGS, [window], path, history=True)
    known = session.createDataFrame(
        [(*row, []) for row in before(captures, low)],
        "h INT, id INT, name STRING, doc STRING, `old text` STRING, _unknown ARRAY<STRING>",
    )

    events = SHAPE.history_events(staged, window, known).collect()

    kinds = {1: "D", 2: "I", 3: "B", 4: "U"}
    expected = {
        (str(model.lsn(position)), history * 1000 + command, kinds[operation]): (history, id_, *values)
        for capture in captures
        for position, command, operation, history, id_, *values in capture.images
        if low < position <= high
    }
    found = {(e["_lsn"], e["_command_id"], e["_op"]): tuple(e[name] for name in model.NAMES) for e in events}
    assert len(found) == len(events)
    assert found == expected
    assert {tuple(event["_unknown"]) for event in events} <= {()}
    order = [(row[0], row[5]) for row in rows]
    assert [(bytes.fromhex(e["_lsn"][2:]), e["_seq"]) for e in sorted(events, key=lambda e: e["_n"])] == order
