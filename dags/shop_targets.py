"""Load one table into every kind of target, in all shapes that it takes, up to one common position.

Each target has a task of its own, and checkpoints of its own: one that fails does not hold up the others, and later
goes on where it was. The parameter ``targets`` says which are loaded.

To run it: connections ``mssql_default`` (the shop, with CDC enabled), ``spark_default`` and ``postgres_default``, the
Variable ``shop_warehouse``, which is to be a local folder here, and then ``airflow dags test shop_targets``; without
PostgreSQL with ``--conf '{"targets": ["iceberg", "delta", "parquet"]}'``.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param, task
from shop_lake import LAKE, SHOP, SPARK

from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator
from airflow_provider_mssql_cdc.sensors.mssql_cdc import MsSqlCdcSensor

ORDERS = {**SHOP, "tables": ["sales.orders"]}
FOLDER = "file://{{ var.value.shop_warehouse }}"

ALL = ["mirror", "history", "scd2", "transactions"]
WITHOUT_VERSIONS = ["mirror", "history", "transactions"]
GROWING = ["history", "transactions"]

TARGETS = {
    "iceberg": {"target": "iceberg://lake/shop", "shapes": ALL, "conf": LAKE},
    "delta": {"target": f"delta+{FOLDER}/delta", "shapes": ALL, "conf": SPARK},
    "parquet": {"target": f"parquet+{FOLDER}/parquet", "shapes": GROWING, "conf": SPARK},
    "postgresql": {"target": "postgresql://postgres_default/shop", "shapes": WITHOUT_VERSIONS, "conf": SPARK},
}

with DAG(
    "shop_targets",
    schedule=None,
    max_active_runs=1,
    params={"targets": Param([*TARGETS], type="array", items={"enum": [*TARGETS]})},
    tags=["mssql-cdc"],
    doc_md=__doc__,
):

    @task.branch
    def choose(params=None):
        """Return the tasks that are to run; the others are skipped."""
        return params["targets"]

    # It looks at the lake's checkpoints alone; the others are loaded to the position that it finds.
    wait = MsSqlCdcSensor(task_id="wait", shapes=TARGETS["iceberg"]["shapes"], deferrable=True, **ORDERS)
    chosen = choose()
    wait >> chosen
    for task_id, options in TARGETS.items():
        load = MsSqlCdcLoadOperator(task_id=task_id, upto=wait.output, conn_id="spark_default", **{**ORDERS, **options})
        chosen >> load
