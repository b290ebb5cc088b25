"""Copies by Change Tracking that take several runs: what changes meanwhile is kept beside the chunks, and wins."""

from __future__ import annotations

import contextlib
import datetime
import random

import pytest

from airflow_provider_mssql_cdc.core.position import Version
from airflow_provider_mssql_cdc.spark.copies.chunk_reading import ChunkReading
from airflow_provider_mssql_cdc.spark.copies.table_copy import TableCopy
from airflow_provider_mssql_cdc.spark.sources.ct.table import TrackedRows
from tests.spark.test_tracked_tables import COLUMNS, NAME, drawn, tracked
from tests.support import harsh
from tests.support.spark.kill_points import AFTER, BEFORE, POINTS, Point
from tests.support.spark.stop import Killed, kill_at
from tests.support.spark.tracked_origin import PlannedRuns, TrackedOrigin, Writers

pytestmark = [pytest.mark.xdist_group("tests.spark.test_tracked_tables"), pytest.mark.timeout(900)]

A_CHUNK = {"copy_rows": 8, "copy_seconds": 0.001, "connections": 2, "slice_rows": 5}
"""Options of a job that reads little more than a chunk."""

STOPS = [
    Point(ChunkReading, "read", AFTER),
    Point(TrackedRows, "keep", BEFORE),
    Point(TrackedRows, "keep", AFTER),
    Point(TableCopy, "_keep", AFTER),
    Point(TableCopy, "_finished", AFTER),
    *(POINTS["iceberg"][label] for label in ("branch made", "one shape committed", "no receipt")),
]


def copied(runs: PlannedRuns) -> int | None:
    """Rows that are copied so far; None where no copy is under way."""
    assert runs.receipt is not None
    (table,) = runs.receipt.tables
    return None if table.copying is None else table.copying.rows


def folders(found: TrackedOrigin) -> list[str]:
    return [str(path) for path in (found.origin.work_dir / "copies").glob("*/*")]


def right(found: TrackedOrigin) -> None:
    assert found.mirror(NAME, COLUMNS) == found.source(NAME, COLUMNS)


@pytest.mark.parametrize(
    "snapshots", [True, pytest.param(False, marks=pytest.mark.thorough)], ids=["exact", "converging"]
)
def test_targets_are_the_source_at_their_versions_after_runs_that_are_killed(origin, monkeypatch, snapshots):
    found = tracked(origin, snapshots=snapshots)
    rng = random.Random(harsh.SEED)
    shapes = ("mirror", "history", "scd2") if snapshots else ("mirror",)
    runs = PlannedRuns(found, "things", shapes=shapes)
    runs.options = A_CHUNK
    with Writers(found, NAME, COLUMNS, drawn(rng)) as writers:
        for number in range(12):
            if number % 3:
                with monkeypatch.context() as patch, contextlib.suppress(Killed):
                    kill_at(patch, STOPS[(number + harsh.SEED) % len(STOPS)])
                    runs.run(checkpoint=False)
            runs.run()
            if copied(runs) is None:
                break
        else:
            raise AssertionError("it never ends")
    assert number > 1
    for shape, sink in runs.stored("things").loaded.items() if snapshots else ():
        assert found.shown(NAME, shape, COLUMNS, sink.applied) == writers.state(sink.applied), shape
    runs.run()
    for shape, sink in runs.stored("things").loaded.items():
        assert found.shown(NAME, shape, COLUMNS, sink.position) == found.source(NAME, COLUMNS), shape
    assert folders(found) == []
    assert runs.stored("things").copies == ()


def test_what_makes_a_copy_begin_again(origin):
    found = tracked(origin, snapshots=True)
    found.sql("UPDATE lab.things SET a = 2 WHERE id = 1")
    runs = PlannedRuns(found, "things", on_gap=("copy",))
    runs.options = A_CHUNK
    runs.run()
    assert copied(runs) < 40
    # no change tells of the rows that have gone
    rows = ", ".join(f"({id}, 1, N'x')" for id in range(30, 61))
    found.sql(f"TRUNCATE TABLE lab.things; INSERT INTO lab.things VALUES {rows}")
    runs.run()
    assert [text for text in runs.warnings if "begins again" in text and "was truncated, or Change Tracking" in text]
    assert copied(runs) < 31
    # a change that no run has kept
    found.sql("DELETE FROM lab.things WHERE id = 30")
    found.origin.sandbox.set_time(datetime.datetime(2031, 1, 1))
    found.origin.sandbox.clean_tracking()
    runs.run()
    assert [text for text in runs.warnings if "begins again" in text and "were purged" in text]
    while copied(runs) is not None:
        found.sql("UPDATE lab.things SET a = a + 1 WHERE id IN (31, 59); DELETE FROM lab.things WHERE id = 40")
        runs.run()
    right(found)
    assert folders(found) == []
    assert found.source(NAME, COLUMNS)


def test_a_key_that_is_spelled_otherwise_in_each_run_is_one_row(origin):
    found = TrackedOrigin(origin, snapshots=True)
    found.sql("CREATE SCHEMA lab")
    found.sql(
        "CREATE TABLE lab.things (k varchar(20) COLLATE Latin1_General_CI_AS NOT NULL PRIMARY KEY, v int);"
        " INSERT INTO lab.things VALUES " + ", ".join(f"(N'key {n:02}', {n})" for n in range(30))
    )
    found.track(NAME)
    runs = PlannedRuns(found, "things")
    runs.options = {**A_CHUNK, "copy_rows": 4, "connections": 1}
    runs.run()
    spellings = ("KEY", "Key", "kEY", "key")
    for spelling in spellings:
        assert copied(runs) is not None
        found.sql(f"UPDATE lab.things SET k = REPLACE(k, N'key', N'{spelling}') WHERE v % 5 = 0")
        found.sql(f"UPDATE lab.things SET k = N'{spelling} 02', v = v + 1000 WHERE k = N'key 02'")
        found.sql("DELETE FROM lab.things WHERE v = 17; INSERT INTO lab.things VALUES (N'KEY 17', 17)")
        runs.run()
    while copied(runs) is not None:
        runs.run()
    assert found.mirror(NAME, ("k", "v")) == found.source(NAME, ("k", "v"))


def test_a_table_that_is_tracked_anew_is_copied_though_its_checkpoint_is_lost(origin):
    found = tracked(origin, snapshots=True)
    runs = PlannedRuns(found, "things", on_gap=("copy",))
    found.sql("UPDATE lab.things SET a = 2 WHERE id = 1")
    runs.run()
    right(found)
    found.sql("TRUNCATE TABLE lab.things")
    runs.lose("things")
    assert runs.run() == {NAME: ["first_load"]}
    right(found)
    # tracked from the same version on, in another side table
    found.sql("INSERT INTO lab.things VALUES (1, 1, N'one'), (2, 2, N'two')")
    runs.run()
    right(found)
    for gone in (1, 2):
        found.sql("ALTER TABLE lab.things DISABLE CHANGE_TRACKING")
        found.sql(f"DELETE FROM lab.things WHERE id = {gone}")
        found.track(NAME)
        assert runs.run() == {NAME: ["first_load"]}
        right(found)
        assert runs.run() == {}


@pytest.mark.parametrize(
    "snapshots", [True, pytest.param(False, marks=pytest.mark.thorough)], ids=["exact", "converging"]
)
def test_a_truncate_of_which_nothing_tells_takes_the_rows(origin, snapshots):
    """Tracking begins with the version that the target is loaded up to, and does so again."""
    found = tracked(origin, snapshots=snapshots)
    runs = PlannedRuns(found, "things", on_gap=("copy",))
    runs.options = A_CHUNK
    # while it is copied
    runs.run()
    assert copied(runs) < 40
    found.sql("TRUNCATE TABLE lab.things")
    while copied(runs) is not None:
        runs.run()
    assert found.mirror(NAME, COLUMNS) == []
    assert runs.position("things") == found.current() == Version(0)
    assert runs.run() == {}
    # behind rows that have come since
    found.sql(
        "ALTER TABLE lab.things DISABLE CHANGE_TRACKING; INSERT INTO lab.things VALUES (1, 1, N'a'), (2, 2, N'b')"
    )
    found.track(NAME)
    runs.options = {}
    runs.run()
    right(found)
    assert runs.position("things") == found.table(NAME).feed.begin_version
    found.sql("TRUNCATE TABLE lab.things; INSERT INTO lab.things VALUES (2, 20, N'new'), (3, 3, N'c')")
    assert runs.run() == {NAME: ["loaded"]}
    right(found)
    # where none has come, and the checkpoint is lost
    found.sql("ALTER TABLE lab.things DISABLE CHANGE_TRACKING")
    found.track(NAME)
    runs.run()
    assert runs.position("things") == found.table(NAME).feed.begin_version
    found.sql("TRUNCATE TABLE lab.things; CREATE TABLE lab.other (id int NOT NULL PRIMARY KEY)")
    found.track("lab.other")
    found.sql("INSERT INTO lab.other VALUES (1)")
    runs.lose("things")
    assert runs.run() == {NAME: ["loaded"]}
    right(found)
    found.sql("INSERT INTO lab.things VALUES (4, 4, N'd')")
    runs.run()
    right(found)
    # and where none has come, nor anything else
    found.sql("TRUNCATE TABLE lab.things")
    assert runs.run() == {NAME: ["first_load"]}
    right(found)
    found.sql("ALTER TABLE lab.things DISABLE CHANGE_TRACKING; INSERT INTO lab.things VALUES (7, 7, N'g')")
    found.track(NAME)
    runs.run()
    assert found.mirror(NAME, COLUMNS) == [(7, 7, "g")]
    found.sql("TRUNCATE TABLE lab.things")
    assert runs.position("things") == found.table(NAME).feed.begin_version == found.current()
    assert runs.run() == {NAME: ["first_load"]}
    assert found.mirror(NAME, COLUMNS) == []
    assert runs.run() == {}


def test_a_restored_database_whose_version_has_grown_beyond_is_told(origin):
    found = tracked(origin, snapshots=True)
    kept = origin.sandbox.backup(origin.database)
    found.sql("UPDATE lab.things SET a = 7 WHERE id = 1")
    found.load(found.table(NAME))
    before = found.mirror(NAME, COLUMNS)
    origin.sandbox.restore(origin.database, kept)
    found.sql("UPDATE lab.things SET a = 8 WHERE id = 2")
    found.sql("UPDATE lab.things SET a = 9 WHERE id = 3")
    assert found.current() > found.reached(NAME)
    (table,) = found.load(found.table(NAME)).tables
    assert table.errors[0].kind == "RestoredError"
    assert "version 1 was drawn by another transaction" in table.errors[0].message
    assert found.mirror(NAME, COLUMNS) == before
