"""Load one table whose columns change, into two targets: what is added is captured and filled by the loads."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, Param, task

from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator
from airflow_provider_mssql_cdc.sensors.mssql_cdc import MsSqlCdcSensor

MEMBERS: dict[str, Any] = {
    "tables": ["sales.members"],
    "target": "iceberg://lake/shop",
    "shapes": ["mirror", "history", "scd2"],
}

SPARK = {"spark.sql.shuffle.partitions": "4", "spark.log.level": "WARN"}
LAKE = {
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
    "spark.sql.catalog.lake.warehouse": "{{ var.value.shop_warehouse }}",
    **SPARK,
}

TARGETS: dict[str, dict[str, Any]] = {
    "iceberg": {"conf": LAKE},
    "postgresql": {"target": "postgresql://postgres_default/shop", "shapes": ["mirror", "history"], "conf": SPARK},
}

with DAG(
    "changing_columns",
    schedule=None,
    max_active_runs=1,
    params={"targets": Param([*TARGETS], type="array", items={"enum": [*TARGETS]})},
    tags=["mssql-cdc"],
    doc_md=__doc__,
):

    @task.branch
    def choose(params: Any = None) -> list[str]:
        """Return the tasks that are to run; the others are skipped."""
        named: list[str] = params["targets"]
        return named

    # It looks at the lake's checkpoints alone; the other target is loaded to the position that it finds.
    wait = MsSqlCdcSensor(task_id="wait", deferrable=True, **MEMBERS)
    chosen = choose()
    wait >> chosen
    for task_id, options in TARGETS.items():
        chosen >> MsSqlCdcLoadOperator(
            task_id=task_id,
            on_schema_change="evolve",
            connections=2,
            conn_id="spark_default",
            **{**MEMBERS, **options, "upto": wait.output},
        )
