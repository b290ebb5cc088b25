"""Load one big table: its copy takes several runs, changes are loaded or kept meanwhile, and a gap heals by a copy."""

from __future__ import annotations

import os

from airflow.sdk import DAG

from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator

ROWS = int(os.environ.get("MSSQL_CDC_DEMO_ROWS", "1000000"))
"""Of the table."""
COPY_SECONDS = float(os.environ.get("MSSQL_CDC_DEMO_COPY_SECONDS", "8"))
"""How long a run copies."""
RUNS = 2
"""That a copy takes at least."""

with DAG("big_table", schedule=None, max_active_runs=1, tags=["mssql-cdc"], doc_md=__doc__):
    MsSqlCdcLoadOperator(
        task_id="load",
        tables=["web.visits"],
        target="iceberg://lake/shop",
        shapes=["mirror", "history"],
        on_gap="copy",
        copy_seconds=COPY_SECONDS,
        copy_rows=max(1, ROWS // (4 * RUNS)),
        copy_chunk_seconds=None,
        # a small machine reads a million rows within one run
        copy_rows_per_second=ROWS / (RUNS * COPY_SECONDS),
        connections=2,
        conn_id="spark_default",
        conf={
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": "{{ var.value.shop_warehouse }}",
            "spark.sql.shuffle.partitions": "4",
            "spark.log.level": "WARN",
        },
    )
