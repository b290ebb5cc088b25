"""Tables of two sources in one run: change data capture, and a small second one with positions of another kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Identity
from airflow_provider_mssql_cdc.core.codec import from_json
from airflow_provider_mssql_cdc.core.feed import Feed
from airflow_provider_mssql_cdc.core.table import TableName
from tests.operators import test_load
from tests.operators.test_load import World
from tests.support.logged.feed import LoggedTable
from tests.support.logged.job import KILL

world = test_load.world

ROOT = Path(__file__).parents[2]
DAG_FILE = test_load.DAG_FILE.replace(
    "from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator",
    "from tests.support.logged.source import LoadOfTwoSources as MsSqlCdcLoadOperator",
)
TABLES = [
    {"table": "depot.boxes", "shapes": ["mirror", "history"]},
    {"table": "depot.stock", "shapes": ["mirror", "scd2"]},
]


class Depot:
    """A database with a table of each source."""

    def __init__(self, world: World) -> None:
        self.world, self.version = world, 0
        for statement in (
            "CREATE SCHEMA depot",
            "CREATE SCHEMA logged",
            "CREATE TABLE depot.boxes (id int NOT NULL PRIMARY KEY, v int)",
            "CREATE TABLE depot.stock (id int NOT NULL PRIMARY KEY, v int, note nvarchar(10))",
            "CREATE TABLE logged.stock (id int, version bigint)",
            "CREATE TABLE logged.versions (version bigint)",
            "CREATE TABLE logged.low (name nvarchar(20), version bigint)",
            "INSERT INTO logged.low VALUES (N'stock', 0); INSERT INTO logged.versions VALUES (0)",
            "EXEC sys.sp_cdc_enable_table @source_schema = N'depot', @source_name = N'boxes', @role_name = NULL",
        ):
            world.sql(statement)

    def change(self, sql: str, *ids: int) -> None:
        """Change the stock, and log that; and change a box beside it."""
        self.version += 1
        log = "".join(f"; INSERT INTO logged.stock VALUES ({id_}, {self.version})" for id_ in ids)
        self.world.sql(f"BEGIN TRAN; {sql}{log}; INSERT INTO logged.versions VALUES ({self.version}); COMMIT")
        self.world.sql(f"INSERT INTO depot.boxes VALUES ({self.version}, {self.version * 10})")
        self.world.server.step("shop")

    def load(self, dag_id: str, monkeypatch: pytest.MonkeyPatch, kill: str = "") -> tuple[str, dict[str, Any]]:
        """Run the load; its state, and what its summary says of each table."""
        with monkeypatch.context() as patched:
            patched.setattr(test_load, "DAG_FILE", DAG_FILE)
            mark = self.world.folder / "killed" / dag_id / kill
            mark.parent.mkdir(parents=True, exist_ok=True)
            environment = {"PYTHONPATH": str(ROOT), KILL: str(mark) if kill else ""}
            # for a few rows, interpreting is quicker than generating code, which the other loads of Airflow do
            given = self.world.arguments()["conf"].items()
            conf = {name: value for name, value in given if "codegen" not in name and "eventLog" not in name}
            state, summary = self.world.run(
                dag_id, tables=TABLES, target="iceberg://lake/depot", shapes=["mirror"], env_vars=environment, conf=conf
            )
        assert mark.is_file() == bool(kill), "it was killed where it was to be"
        return state, {row["table"]: row for row in (summary or {"tables": []})["tables"]}

    def lake(self, table: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in self.world.spark.table(f"{self.world.catalog}.depot.{table}").collect())

    def checkpoint(self, table: str) -> Checkpoint:
        from airflow.models import Variable

        identity = Identity("mssql_default", "shop", TableName("depot", table), "iceberg://lake/depot")
        return from_json(Checkpoint, Variable.get(identity.variable))

    def source(self, table: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row.values()) for row in self.world.sql(f"SELECT * FROM depot.{table}"))

    def equal(self) -> None:
        """Both mirrors are the source, and so is each other target as it stands now."""
        assert self.lake("depot_stock") == self.source("stock")
        assert self.lake("depot_boxes") == self.source("boxes")
        versions = self.lake("depot_stock_scd2")
        assert sorted(row[:3] for row in versions if row[4] is None) == self.source("stock")
        inserted = [row[:2] for row in self.lake("depot_boxes_history") if row[2] in ("I", "R")]
        assert sorted(inserted) == self.source("boxes")


@pytest.mark.xdist_group("airflow")
@pytest.mark.thorough
def test_a_table_of_each_source_in_one_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(Feed.KINDS, LoggedTable.KIND, LoggedTable)
    depot = Depot(world)
    depot.change("INSERT INTO depot.stock VALUES (1, 10, N'a'), (2, 20, NULL), (3, 30, N'c')", 1, 2, 3)

    # killed before the first commit of the second source
    state, _ = depot.load("two_killed_before", monkeypatch, kill="before")
    assert state == "failed"
    state, rows = depot.load("two_first", monkeypatch)
    assert (state, rows["depot.stock"]["sinks"]) == ("success", {"mirror": "first_load", "scd2": "first_load"})
    depot.equal()
    assert [row[3:5] for row in depot.lake("depot_stock_scd2")] == [(1, None)] * 3, "versions are whole numbers"
    assert rows["depot.stock"]["position"] == "1"

    # killed after the mirror's commit, before the other's and before the receipt
    depot.change("UPDATE depot.stock SET v = 11 WHERE id = 1; DELETE FROM depot.stock WHERE id = 2", 1, 2)
    depot.change("INSERT INTO depot.stock VALUES (4, 40, N'd'); UPDATE depot.stock SET v = 12 WHERE id = 1", 4, 1)
    state, _ = depot.load("two_killed_after", monkeypatch, kill="after")
    assert state == "failed"
    state, rows = depot.load("two_second", monkeypatch)
    assert (state, rows["depot.stock"]["sinks"]) == ("success", {"mirror": "already", "scd2": "loaded"})
    depot.equal()
    versions = {(row[0], row[3]): row[4] for row in depot.lake("depot_stock_scd2")}
    assert versions == {(1, 1): 3, (1, 3): None, (2, 1): 2, (3, 1): None, (4, 3): None}, "one for each net change"
    assert str(depot.checkpoint("stock").sinks["scd2"].read_through) == "version 3"

    # purged: that table fails alone, and the other is loaded
    depot.change("UPDATE depot.stock SET v = 31 WHERE id = 3", 3)
    depot.change("UPDATE depot.stock SET v = 13 WHERE id = 1", 1)
    world.sql("DELETE FROM logged.stock WHERE version <= 4; UPDATE logged.low SET version = 4")
    before = depot.lake("depot_stock"), depot.lake("depot_stock_scd2")
    state, rows = depot.load("two_purged", monkeypatch)
    assert (state, rows["depot.stock"]["status"], rows["depot.boxes"]["status"]) == ("failed", "failed", "loaded")
    assert "version 3" in rows["depot.stock"]["error"]
    assert "purged" in rows["depot.stock"]["error"]
    assert (depot.lake("depot_stock"), depot.lake("depot_stock_scd2")) == before
    assert depot.lake("depot_boxes") == depot.source("boxes")
