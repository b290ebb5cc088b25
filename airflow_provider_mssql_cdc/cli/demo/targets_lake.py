"""A plain look at the table that went into every target: a Spark process that reads all of them but PostgreSQL."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

from airflow_provider_mssql_cdc.cli.demo import lake, shop

TABLE = shop.ORDERS
NAME = f"{TABLE.schema}_{TABLE.name}"
SHAPES = {
    "iceberg": ("mirror", "history", "scd2", "transactions"),
    "delta": ("mirror", "history", "scd2", "transactions"),
    "parquet": ("history", "transactions"),
    "postgresql": ("mirror", "history", "transactions"),
}
"""The targets of the DAG, and the shapes that each takes."""

HISTORY = pa.schema([*TABLE.events])
VERSIONS = pa.schema([*TABLE.arrow, ("_from_lsn", pa.string()), ("_to_lsn", pa.string())])
COUNTS = ("events", "inserted", "updated", "deleted")
TRANSACTIONS = pa.schema([("_lsn", pa.string()), *((name, pa.int64()) for name in COUNTS)])

_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
}


def query(table: str, shape: str) -> str:
    """The query for what is compared of a shape."""
    schemas = {"history": HISTORY, "scd2": VERSIONS, "transactions": TRANSACTIONS}
    columns = schemas[shape].names if shape in schemas else ["*"]
    return f"SELECT {', '.join(columns)} FROM {table}"


def queries(warehouse: str) -> dict[str, str]:
    """What is read: ``iceberg.mirror``, ``delta.scd2``, .."""
    found = {f"parquet.{shape}": query(_view(shape), shape) for shape in SHAPES["parquet"]}
    for shape in SHAPES["iceberg"]:
        suffix = "" if shape == "mirror" else f"_{shape}"
        found[f"iceberg.{shape}"] = query(lake.mirror(TABLE) + suffix, shape)
        found[f"delta.{shape}"] = query(f"delta.`{warehouse}/delta/{NAME}{suffix}`", shape)
    return found


def _view(shape: str) -> str:
    return f"parquet_{shape}"


def main(warehouse: str, packages: str, folder: str) -> None:
    """Start Spark, and export the targets as soon as that is asked for."""
    from airflow_provider_mssql_cdc.spark.targets.parquet import read_history

    spark = lake.open_session(warehouse, packages, _DELTA)

    def export() -> None:
        # manifests say which files count, so this is how others read them, too
        for shape in SHAPES["parquet"]:
            rows = read_history(spark, f"file://{warehouse}/parquet", f"{NAME}_{shape}")
            rows.createOrReplaceTempView(_view(shape))
        lake.export(spark, Path(folder), queries(warehouse))

    lake.when_asked(spark, export)


if __name__ == "__main__":
    main(*sys.argv[1:])
