"""A column that gets the name of one that the source table has dropped, in every target, and where a run is killed."""

from __future__ import annotations

import contextlib

import pytest

from airflow_provider_mssql_cdc.spark.sink import Sink
from airflow_provider_mssql_cdc.spark.sink_columns import SinkColumns
from airflow_provider_mssql_cdc.spark.targets.iceberg_columns import AddedColumns
from tests.support.spark.kill_points import AFTER, BEFORE, POINTS, Point
from tests.support.spark.stop import Killed, kill_at
from tests.support.spark.tracked_origin import PlannedRuns, TrackedOrigin

pytestmark = [pytest.mark.xdist_group("tests.spark.test_tracked_tables"), pytest.mark.timeout(1800)]

NAME, SHAPES = "lab.things", ("mirror", "history", "scd2")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("format_", "shapes"),
    [("iceberg", SHAPES), ("delta", SHAPES), ("postgresql", SHAPES), ("parquet", ("history",))],
)
def test_it_gets_the_name_and_the_other_one_makes_way(origin, monkeypatch, format_, shapes, request):
    origin.format = format_
    if format_ == "postgresql":
        origin.into(request.getfixturevalue("postgresql"))
    found = TrackedOrigin(origin, snapshots=True)
    found.sql("EXEC sys.sp_cdc_disable_db; CREATE SCHEMA lab")
    found.sql("CREATE TABLE lab.things (id int NOT NULL PRIMARY KEY, a int, b int)")
    found.sql("INSERT INTO lab.things VALUES (1, 1, 10), (2, 2, 20), (3, 3, 30), (4, 4, 40)")
    found.track(NAME)
    runs = PlannedRuns(found, "things", shapes=shapes, on_schema_change="evolve")

    def check(columns: tuple[str, ...]) -> None:
        stored = runs.stored("things")
        for shape in shapes:
            at = stored.loaded[shape].position
            assert found.shown(NAME, shape, columns, at) == found.source(NAME, columns), shape

    runs.run()
    dropped = {row["id"]: row["a"] for row in found.sql("SELECT id, a FROM lab.things")}
    found.sql("ALTER TABLE lab.things DROP COLUMN a; EXEC sp_rename 'lab.things.b', 'a', 'COLUMN'")
    # and another one comes, with a commit that may be killed, too
    found.sql("ALTER TABLE lab.things ADD c int NOT NULL DEFAULT 7")
    found.sql("UPDATE lab.things SET a = 21 WHERE id = 2; INSERT INTO lab.things VALUES (5, 50, 8)")
    for point in (
        Point(SinkColumns, "_rename", BEFORE),
        Point(SinkColumns, "_rename", AFTER),
        Point(Sink, "write", BEFORE),
        POINTS["iceberg"]["one shape committed"],
        *((Point(AddedColumns, "add", AFTER),) if format_ == "iceberg" else ()),
    ):
        with monkeypatch.context() as patch, contextlib.suppress(Killed):
            kill_at(patch, point)
            runs.run(checkpoint=False)
    runs.run()
    check(("id", "a"))
    found.sql("UPDATE lab.things SET a = 31 WHERE id = 3; DELETE FROM lab.things WHERE id = 4")
    runs.run()
    check(("id", "a", "c"))
    if "mirror" in shapes:
        rows = {row["id"]: row["a__dropped_2"] for row in origin.lake(NAME)}
        assert rows == {1: dropped[1], 2: None, 3: None, 5: None}
