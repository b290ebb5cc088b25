"""What the shop's DAGs share: the tables and where they go, and where Spark finds the lake.

The lake's folder or URL is the Airflow Variable ``shop_warehouse`` (or the environment variable
``AIRFLOW_VAR_SHOP_WAREHOUSE``). It is a template, so that nothing is looked up while a DAG file is parsed.
"""

from __future__ import annotations

SHOP = {
    "tables": ["sales.*", "catalog.*"],
    "target": "iceberg://lake/shop",
    "mssql_conn_id": "mssql_default",
}

SPARK = {
    # A small load spends its time on tasks, not on data; raise this for tables of many gigabytes.
    "spark.sql.shuffle.partitions": "4",
    # The load's own lines are enough; Spark's are thousands.
    "spark.log.level": "WARN",
}

LAKE = {
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
    "spark.sql.catalog.lake.warehouse": "{{ var.value.shop_warehouse }}",
    **SPARK,
}
