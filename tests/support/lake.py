"""A lake that others have made, in the tests' own Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def catalog(name: str, warehouse: Path) -> dict[str, str]:
    """The settings of an Iceberg catalog whose tables lie in a folder."""
    return {
        f"spark.sql.catalog.{name}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{name}.type": "hadoop",
        f"spark.sql.catalog.{name}.warehouse": str(warehouse),
    }


def add_catalog(spark: SparkSession, name: str, warehouse: Path) -> None:
    """Have the lake in a folder as an Iceberg catalog."""
    for setting, value in catalog(name, warehouse).items():
        spark.conf.set(setting, value)
    # a table that was looked at would stay as it was for half a minute
    spark.conf.set(f"spark.sql.catalog.{name}.cache-enabled", "false")
