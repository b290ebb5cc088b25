"""A lake that others have made, in the tests' own Spark."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession


def add_catalog(spark: SparkSession, name: str, warehouse: Path) -> None:
    """Have the lake in a folder as an Iceberg catalog."""
    spark.conf.set(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(f"spark.sql.catalog.{name}.type", "hadoop")
    spark.conf.set(f"spark.sql.catalog.{name}.warehouse", str(warehouse))
    # a table that was looked at would stay as it was for half a minute
    spark.conf.set(f"spark.sql.catalog.{name}.cache-enabled", "false")
