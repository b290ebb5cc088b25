"""A plain look at the table that went into every target: a Spark process that reads all of them but PostgreSQL."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

from airflow_provider_mssql_cdc.cli.demo import lake, shop

TABLE = shop.ORDERS
NAME = f"{TABLE.schema}_{TABLE.name}"
SHAPES = {
    "iceberg": ("mirror", "history", "scd2"),
    "delta": ("mirror", "history", "scd2"),
    "parquet": ("history",),
    "postgresql": ("mirror", "history"),
}
"""The targets of the DAG, and the shapes that each takes."""

HISTORY = pa.schema([*TABLE.events])
VERSIONS = pa.schema([*TABLE.arrow, ("_from_lsn", pa.string()), ("_to_lsn", pa.string())])

_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
}
_PARQUET = "parquet_history"


def query(table: str, shape: str) -> str:
    """Return the query for what is compared of a shape."""
    columns = {"history": HISTORY.names, "scd2": VERSIONS.names}.get(shape, ["*"])
    return f"SELECT {', '.join(columns)} FROM {table}"


def queries(warehouse: str) -> dict[str, str]:
    """Return what is read: ``iceberg.mirror``, ``delta.scd2``, .."""
    found = {"parquet.history": query(_PARQUET, "history")}
    for shape in SHAPES["iceberg"]:
        suffix = "" if shape == "mirror" else f"_{shape}"
        found[f"iceberg.{shape}"] = query(lake.mirror(TABLE) + suffix, shape)
        found[f"delta.{shape}"] = query(f"delta.`{warehouse}/delta/{NAME}{suffix}`", shape)
    return found


def main(warehouse: str, packages: str, folder: str) -> None:
    """Start Spark, and export the targets as soon as that is asked for."""
    from airflow_provider_mssql_cdc.spark.targets.parquet import read_history

    spark = lake.open_session(warehouse, packages, _DELTA)

    def export() -> None:
        # manifests say which files count, so this is how others read them, too
        read_history(spark, f"file://{warehouse}/parquet", f"{NAME}_history").createOrReplaceTempView(_PARQUET)
        lake.export(spark, Path(folder), queries(warehouse))

    lake.when_asked(spark, export)


if __name__ == "__main__":
    main(*sys.argv[1:])
