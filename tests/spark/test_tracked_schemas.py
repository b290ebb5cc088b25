"""Columns that come, go, grow and get other names in tables that Change Tracking tracks."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Iterator, Sequence

import pytest

from airflow_provider_mssql_cdc.spark import filling
from airflow_provider_mssql_cdc.spark.copies.table_copy import TableCopy
from airflow_provider_mssql_cdc.spark.sources.ct.table import TrackedRows
from tests.support import harsh
from tests.support.spark.kill_points import AFTER, BEFORE, POINTS, Point
from tests.support.spark.stop import Killed, kill_at
from tests.support.spark.tracked_origin import PlannedRuns, TrackedOrigin, Writers

pytestmark = [pytest.mark.xdist_group("tests.spark.test_tracked_tables"), pytest.mark.timeout(1800)]

NAME, SHAPES = "lab.things", ("mirror", "history", "scd2")

STOPS = [
    Point(TrackedRows, "keep", AFTER),
    Point(TableCopy, "_finished", AFTER),
    Point(filling, "_filled", BEFORE),
    Point(filling, "_filled", AFTER),
    *(POINTS["iceberg"][label] for label in ("branch made", "one shape committed", "no receipt")),
]

STEPS = {
    "a column with a default, and one that only an update fills": (
        "ALTER TABLE lab.things ADD b int NOT NULL DEFAULT 7; ALTER TABLE lab.things ADD c nvarchar(20)",
        "UPDATE lab.things SET c = N'c' WHERE id = 2; UPDATE lab.things SET b = 8 WHERE id = 1",
    ),
    "another name": ("EXEC sp_rename 'lab.things.b', 'bb', 'COLUMN'", "UPDATE lab.things SET bb = 9 WHERE id = 3"),
    "another name, and a new column of the name of before": (
        "EXEC sp_rename 'lab.things.c', 'was_c', 'COLUMN'; ALTER TABLE lab.things ADD c int NOT NULL DEFAULT 1",
        "UPDATE lab.things SET c = 2, was_c = N'new' WHERE id = 3",
    ),
    "a wider type": (
        "ALTER TABLE lab.things ALTER COLUMN a bigint",
        "UPDATE lab.things SET a = 50000000000 WHERE id = 4",
    ),
    "a column less": (
        "ALTER TABLE lab.things DROP COLUMN was_c",
        "INSERT INTO lab.things (id, a, bb) VALUES (9, 9, 9)",
    ),
    "the name of one that goes": (
        "ALTER TABLE lab.things DROP COLUMN a; EXEC sp_rename 'lab.things.c', 'a', 'COLUMN'",
        "UPDATE lab.things SET a = 77 WHERE id = 2",
    ),
}


def columns_of(found: TrackedOrigin) -> list[str]:
    rows = found.sql("SELECT name FROM sys.columns WHERE object_id = OBJECT_ID(N'lab.things') ORDER BY column_id")
    return [row["name"] for row in rows]


def check(runs: PlannedRuns, found: TrackedOrigin) -> None:
    """All targets show the table as it is now, in the columns of now."""
    columns, stored = columns_of(found), runs.stored("things")
    assert stored is not None
    for shape in SHAPES:
        assert found.shown(NAME, shape, columns, stored.loaded[shape].position) == found.source(NAME, columns), shape


def test_what_columns_become_is_followed(origin):
    found = TrackedOrigin(origin, snapshots=True)
    found.sql("EXEC sys.sp_cdc_disable_db; CREATE SCHEMA lab")
    found.sql("CREATE TABLE lab.things (id int NOT NULL PRIMARY KEY, a int)")
    found.sql("INSERT INTO lab.things VALUES (1, 1), (2, 2), (3, 3), (4, 4)")
    found.track(NAME)
    runs = PlannedRuns(found, "things", shapes=SHAPES, on_schema_change="evolve")
    runs.run()
    check(runs, found)
    for what, (ddl, changes) in STEPS.items():
        print("#####", what)
        found.sql("UPDATE lab.things SET a = a + 1 WHERE id = 4")
        found.sql(ddl)
        found.sql(changes)
        for _ in range(2):
            print(runs.run(), runs.warnings)
        check(runs, found)
        assert runs.run() == {}


def drawn(rng: random.Random, set_: str) -> Iterator[str]:
    """Transactions on the table.

    :param set_: what an update sets, with ``{}`` for a number
    """
    for number in itertools.count(100):
        id = rng.randrange(60)
        yield rng.choice(
            (
                f"UPDATE lab.things SET {set_.format(number)} WHERE id BETWEEN {id} AND {id + 3}",
                f"DELETE FROM lab.things WHERE id = {id}",
                f"INSERT INTO lab.things (id, a) SELECT {id}, {number}"
                f" WHERE NOT EXISTS (SELECT 1 FROM lab.things WHERE id = {id})",
            )
        )


def test_a_new_column_is_filled_while_others_write_and_runs_are_killed(origin, monkeypatch):
    found = TrackedOrigin(origin, snapshots=True)
    found.sql("EXEC sys.sp_cdc_disable_db; CREATE SCHEMA lab")
    found.sql("CREATE TABLE lab.things (id int NOT NULL PRIMARY KEY, a int)")
    found.sql("INSERT INTO lab.things VALUES " + ", ".join(f"({id}, 1)" for id in range(40)))
    found.track(NAME)
    runs = PlannedRuns(found, "things", shapes=SHAPES, on_schema_change="evolve")
    runs.options = {"connections": 2, "copy_rows": 10, "slice_rows": 5}
    rng = random.Random(harsh.SEED)

    def compare(writers: Writers, columns: Sequence[str]) -> None:
        stored = runs.stored("things")
        for shape in SHAPES:
            at = stored.loaded[shape].applied
            assert found.shown(NAME, shape, columns, at) == writers.state(at), (shape, at)

    with Writers(found, NAME, ("id", "a"), drawn(rng, "a = {}")) as before:
        for _ in range(2):
            runs.run()
    compare(before, ("id", "a"))
    found.sql("ALTER TABLE lab.things ADD b int NOT NULL DEFAULT 7")
    columns = ("id", "a", "b")
    with Writers(found, NAME, columns, drawn(rng, "b = {}")) as writers:
        for number in range(6):
            with monkeypatch.context() as patch, contextlib.suppress(Killed):
                kill_at(patch, STOPS[(number + harsh.SEED) % len(STOPS)])
                runs.run(checkpoint=False)
            runs.run()
            if all("b" in origin.lake(NAME, shape)[0] for shape in SHAPES):
                break
    compare(writers, columns)
    with Writers(found, NAME, columns, drawn(rng, "a = {0}, b = {0}")) as writers:
        runs.run()
    compare(writers, columns)
    # nobody asks for what changed before the column was filled
    assert {name for row in origin.lake(NAME, "scd2") for name in row["_unknown"]} <= {"b"}
