"""The example DAGs under a real scheduler, triggerer and DAG processor."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest

from airflow_provider_mssql_cdc.cli.demo import shop
from airflow_provider_mssql_cdc.sandbox import Sandbox
from tests.support.airflow.deployment import Deployment
from tests.support.harsh import harsh_sandbox
from tests.support.lake import add_catalog

DAGS = Path(__file__).parents[2] / "dags"
DAY = datetime.timedelta(days=1)
MINUTE = datetime.timedelta(minutes=1)

pytestmark = [pytest.mark.xdist_group("airflow"), pytest.mark.timeout(1200)]


class Clock:
    """The server's clock, which the test puts back by whole days."""

    def __init__(self, days_ago: int) -> None:
        self.days_ago = days_ago

    def __call__(self) -> datetime.datetime:
        return datetime.datetime.now(datetime.UTC).replace(tzinfo=None) - self.days_ago * DAY


def parsed(airflow: Deployment) -> set[str]:
    return {dag_id for (dag_id,) in airflow.query("SELECT dag_id FROM dag WHERE is_stale = 0")}


def runs(airflow: Deployment, dag_id: str, state: str = "success") -> list[tuple]:
    return airflow.query("SELECT run_id, run_type FROM dag_run WHERE dag_id = ? AND state = ?", dag_id, state)


def finished(airflow: Deployment, dag_id: str, count: int) -> bool:
    failed = runs(airflow, dag_id, "failed")
    assert not failed, "\n".join([str(failed), *airflow.log_ends()])
    return len(runs(airflow, dag_id)) >= count


def history(spark, warehouse: Path, table: str) -> list[tuple]:
    rows = spark.read.format("iceberg").load(f"{warehouse}/shop/{table}_history").collect()
    return sorted((tuple(row) for row in rows), key=repr)


def test_a_deferral_a_watcher_and_a_backfill(tmp_path, spark):
    clock, warehouse = Clock(days_ago=3), tmp_path / "lake"
    now = datetime.datetime.now(datetime.UTC)
    today = now.date()
    if (now + 20 * MINUTE).date() != today:
        pytest.skip("midnight (UTC) is near: yesterday would become another day meanwhile")
    with harsh_sandbox(database="shop", clock=clock) as server:
        shop.build(server, "shop", 300)
        # as if the capture had been idle for minutes: this clock runs no faster, and a first load waits for that
        server.capture.step(server.cdc("shop"), dummy=True)
        # one table of each schema does; every further one takes its time in each of the loads
        for table in ("orders", "order_items"):
            server.execute(f"DROP TABLE sales.{table}", database="shop")
        variables = {
            "AIRFLOW_CONN_MSSQL_DEFAULT": server.connection_uri("shop"),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
            "AIRFLOW_VAR_SHOP_WAREHOUSE": str(warehouse),
        }
        with Deployment(tmp_path / "airflow", DAGS, variables) as airflow:
            # the first load wakes the sensor at once
            airflow.wait_for(
                "the DAGs", lambda: parsed(airflow) >= {"shop_incremental", "shop_on_change", "shop_replay"}
            )
            airflow.wait_for("the API", airflow.is_up)
            airflow.set_paused("shop_incremental", False)
            airflow.wait_for("the first load", lambda: finished(airflow, "shop_incremental", 1))

            # without changes it defers, and a change lets it go on
            airflow.trigger("shop_incremental")
            airflow.wait_for(
                "the deferral",
                lambda: airflow.query("SELECT 1 FROM task_instance WHERE task_id = 'wait' AND state = 'deferred'"),
            )
            clock.days_ago = 2
            change(server, "two days ago")
            airflow.wait_for("the second load", lambda: finished(airflow, "shop_incremental", 2))
            airflow.set_paused("shop_incremental", True)

            # a watcher starts a run
            clock.days_ago = 1
            airflow.set_paused("shop_on_change", False)
            # a watcher begins when its file is parsed, which is a matter of minutes
            airflow.run("dags", "reserialize")
            change(server, "yesterday")
            airflow.wait_for("the watcher's run", lambda: finished(airflow, "shop_on_change", 1))
            assert {kind for _, kind in runs(airflow, "shop_on_change")} == {"asset_triggered"}
            airflow.set_paused("shop_on_change", True)

            # of what is missing from the history, the schedule brings back yesterday by itself
            clock.days_ago = 0
            change(server, "today")
            complete = history(spark, warehouse, "sales_customers")
            add_catalog(spark, "replayed", warehouse)
            spark.sql("DELETE FROM replayed.shop.sales_customers_history WHERE _op <> 'R'")
            airflow.set_paused("shop_replay", False)
            airflow.wait_for("the schedule's replay", lambda: finished(airflow, "shop_replay", 1))
            assert {kind for _, kind in runs(airflow, "shop_replay")} == {"scheduled"}
            yesterdays = history(spark, warehouse, "sales_customers")
            assert [row for row in yesterdays if "yesterday" in repr(row)]
            assert {*map(repr, yesterdays)} < {*map(repr, complete)}

            # and a backfill the day before, and yesterday once more
            with airflow.still():
                airflow.run(
                    *("backfill", "create", "--dag-id", "shop_replay", "--reprocess-behavior", "completed"),
                    *("--from-date", str(today - 2 * DAY), "--to-date", str(today - DAY)),
                )
            airflow.wait_for("both days", lambda: finished(airflow, "shop_replay", 2))
            assert [kind for _, kind in runs(airflow, "shop_replay")] == ["backfill", "backfill"]
            assert history(spark, warehouse, "sales_customers") == complete


def change(server: Sandbox, name: str) -> None:
    server.execute(
        "BEGIN TRANSACTION;"
        f" UPDATE sales.customers SET name = N'{name}' WHERE customer_id <= 3;"
        f" INSERT INTO sales.customers (customer_id, name, active, created_at)"
        f" SELECT MAX(customer_id) + 1, N'{name}', 1, '2026-01-01' FROM sales.customers;"
        " COMMIT TRANSACTION",
        database="shop",
    )
