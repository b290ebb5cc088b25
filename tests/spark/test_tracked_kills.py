"""A load by Change Tracking, or a heal, that stops at any point and is repeated: the targets show the table.

What stops is a thread. Once the repeated load is compared, it goes on, as a worker does that was taken for dead. Then
all is compared again.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from airflow_provider_mssql_cdc.spark import staging
from airflow_provider_mssql_cdc.spark.copies.again import RowsAgain
from airflow_provider_mssql_cdc.spark.copies.chunk_reading import ChunkReading
from airflow_provider_mssql_cdc.spark.copies.table_copy import TableCopy
from airflow_provider_mssql_cdc.spark.sources.ct import changes
from airflow_provider_mssql_cdc.spark.sources.ct.table import TrackedRows
from tests.spark.test_healed_gaps import Healed
from tests.support.spark.kill_points import AFTER, BEFORE, COPIED, DURING, POINTS, Point
from tests.support.spark.stop import Stop
from tests.support.spark.tracked_origin import PlannedRuns, TrackedOrigin, some_changes

pytestmark = [pytest.mark.xdist_group("tests.spark.test_tracked_tables"), pytest.mark.timeout(1800)]

NAME, COLUMNS = "lab.things", ("id", "a", "note")
SHAPES = {"iceberg": ("mirror", "history", "scd2"), "delta": ("mirror", "history", "scd2")}
SHAPES |= {"postgresql": ("mirror", "history", "scd2"), "parquet": ("history",)}

COPIES = {
    "a chunk is there": Point(ChunkReading, "read", AFTER),
    "changes are kept": Point(TrackedRows, "keep", AFTER),
    "copied": Point(TableCopy, "_finished", AFTER),
}
"""Where a first load stops."""
READS = {
    "a slice is read": Point(TrackedRows, "_changes", AFTER),
    "the second slice is about to be read": Point(TrackedRows, "_changes", BEFORE, call=2),
    "the closing statement is about to be sent": Point(TrackedRows, "_changes", BEFORE, call=3),
    "closed": Point(TrackedRows, "_changes", AFTER, call=3),
    "in mid-read": Point(changes, "write_rows", DURING),
}
"""Where a load stops whose changes come in two slices."""
HEALS = {
    "rows that changed are read": Point(RowsAgain, "read", AFTER),
    "changes beside them are kept": Point(TableCopy, "_keep", AFTER),
    "all is there": Point(TableCopy, "_finished", AFTER),
    **{label: POINTS["iceberg"][label] for label in ("branch made", "main moved, properties not")},
    **{label: POINTS["iceberg"][label] for label in ("one shape committed", "in the clean-up", "no receipt")},
}
"""Where a heal stops."""


def check(found: TrackedOrigin, runs: PlannedRuns, shapes: tuple[str, ...], label: str) -> None:
    stored = runs.stored("things")
    assert stored is not None, label
    for shape in shapes:
        at: Any = stored.loaded[shape].applied
        assert found.shown(NAME, shape, COLUMNS, at) == found.source(NAME, COLUMNS), (label, shape)


@pytest.mark.thorough
@pytest.mark.parametrize("format_", SHAPES)
def test_a_load_that_stops_anywhere_is_repeated(origin, monkeypatch, format_, request):
    rng, shapes, number = random.Random(5), SHAPES[format_], 0
    origin.format = format_
    if format_ == "postgresql":
        origin.into(request.getfixturevalue("postgresql"))
    found = TrackedOrigin(origin, snapshots=True)
    found.sql("EXEC sys.sp_cdc_disable_db; CREATE SCHEMA lab")
    found.sql("CREATE TABLE lab.things (id int NOT NULL PRIMARY KEY, a int, note nvarchar(max))")
    found.sql("INSERT INTO lab.things VALUES " + ", ".join(f"({id}, 1, N'old {id}')" for id in range(1, 41)))
    found.track(NAME)
    runs = PlannedRuns(found, "things", shapes=shapes, on_gap=("copy",))
    runs.options |= {"connections": 2, "slice_rows": 2, "copy_rows": 8, "copy_chunk_seconds": None}
    # what is staged is read by another module
    later = {label: point for label, point in POINTS[format_].items() if point.owner not in (staging, COPIED.owner)}
    for label, point in (COPIES | READS | later).items():
        first = point in COPIES.values()
        if first:
            found.sql("TRUNCATE TABLE lab.things")
            found.sql("INSERT INTO lab.things VALUES " + ", ".join(f"({id}, {number}, N'x')" for id in range(1, 41)))
        found.sql(f"UPDATE lab.things SET a = {number} WHERE id BETWEEN 20 AND 26")
        for _ in range(3):
            number += 1
            found.sql("; ".join(some_changes(rng, number)))
        with monkeypatch.context() as patched:
            with Stop(patched, point).meanwhile(lambda: runs.run(may_fail=True), may_fail=True):
                number += 1
                found.sql("; ".join(some_changes(rng, number)))
                runs.run()
                check(found, runs, shapes, label)
            check(found, runs, shapes, f"{label}, and gone on")
    found.sql("; ".join(some_changes(rng, number + 1)))
    runs.run()
    check(found, runs, shapes, "all")


@pytest.mark.thorough
def test_a_heal_that_stops_anywhere_is_repeated(live, monkeypatch):
    rng, number = random.Random(6), 0
    found = Healed(live)
    for number in range(3):
        found.sql(f"UPDATE lab.things SET a = {number} WHERE id = 1")
        found.run()
    for label, point in HEALS.items():
        found.sql(f"UPDATE lab.things SET a = {number} WHERE id = 31")
        for _ in range(3):
            number += 1
            found.sql("; ".join(some_changes(rng, number)))
        found.purge()
        with monkeypatch.context() as patched:
            with Stop(patched, point).meanwhile(lambda: found.runs.run(may_fail=True), may_fail=True):
                number += 1
                found.sql("; ".join(some_changes(rng, number)))
                found.run()
                found.check()
            found.check()
        # a version of behind the heal
        for _ in range(2):
            number += 1
            found.sql(f"UPDATE lab.things SET a = {number} WHERE id BETWEEN 20 AND 30")
            assert "loaded" in found.run(), label
        found.check()
