"""Load a shop that only Change Tracking tells of, and a table with both, whose gaps Change Tracking heals."""

from __future__ import annotations

from airflow.sdk import DAG

from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator
from airflow_provider_mssql_cdc.operators.task_group import MsSqlCdcTaskGroup

LAKE = {
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
    "spark.sql.catalog.lake.warehouse": "{{ var.value.shop_warehouse }}",
    "spark.sql.shuffle.partitions": "4",
    "spark.log.level": "WARN",
}

with DAG("tracked_shop", schedule=None, max_active_runs=1, tags=["mssql-cdc"], doc_md=__doc__):
    MsSqlCdcTaskGroup(
        "shop",
        tables=["sales.*", "catalog.*"],
        target="iceberg://lake/shop",
        source="ct",
        shapes=["mirror", "history", "scd2"],
        changes="net",
        wait={"deferrable": True},
        spark={"conf": LAKE},
        prefix_group_id=False,
    )
    MsSqlCdcLoadOperator(
        task_id="visits",
        mssql_conn_id="mssql_web",
        tables=["web.visits"],
        target="iceberg://lake/shop",
        shapes=["mirror", "history"],
        on_gap="ct",
        conf=LAKE,
    )
