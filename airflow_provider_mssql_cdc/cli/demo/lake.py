"""A plain look at the lake: a Spark process that reads whole tables into Arrow files.

It knows the tables only as any other reader of the lake does, and shares no code with the load.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from airflow_provider_mssql_cdc.cli.demo import shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMESPACE = "lake.shop"

_AT_ONCE = 4


def mirror(table: shop.Table) -> str:
    """Return the name of the lake's table that holds a shop table's current rows."""
    return f"{NAMESPACE}.{table.schema}_{table.name}"


def newest_rows(table: shop.Table) -> str:
    """Return a query for the rows that the history says there are now: each key's last image, unless it was deleted."""
    keys, columns = ", ".join(table.key), ", ".join(column.name for column in table.columns)
    return (
        f"SELECT {columns} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY _lsn DESC, _seq DESC) AS nth"
        f" FROM {mirror(table)}_history WHERE _op <> 'B') WHERE nth = 1 AND _op <> 'D'"
    )


def events(table: shop.Table) -> str:
    """Return a query for the events of the history, without the rows that the first load copied."""
    return f"SELECT {', '.join(table.events.names)} FROM {mirror(table)}_history WHERE _op <> 'R'"


def copied(table: shop.Table) -> str:
    """Return a query for the position behind which the history has events."""
    return f"SELECT MAX(_lsn) AS low FROM {mirror(table)}_history WHERE _op = 'R'"


def open_session(warehouse: str, packages: str) -> SparkSession:
    """Start Spark.

    :param warehouse: folder of the Iceberg catalog
    :param packages: Maven coordinates, separated by commas
    """
    from pyspark.sql import SparkSession

    settings: dict[str, bool | float | int | str | None] = {
        "spark.jars.packages": packages,
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": warehouse,
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    builder = SparkSession.builder.appName("mssql-cdc demo: read the lake").master("local[2]")
    return builder.config(map=settings).getOrCreate()


def export(spark: SparkSession, folder: Path) -> None:
    """Write each table of the lake to Arrow files: ``sales.orders.mirror``, ``sales.orders.history``, .."""
    queries = {}
    for table in shop.TABLES:
        queries[f"{table.full_name}.mirror"] = f"SELECT * FROM {mirror(table)}"
        queries[f"{table.full_name}.history"] = newest_rows(table)
        queries[f"{table.full_name}.events"] = events(table)
        queries[f"{table.full_name}.copied"] = copied(table)

    def write(name: str) -> None:
        rows = spark.sql(queries[name]).toArrow()
        with pa.ipc.new_file(folder / name, rows.schema) as file:
            file.write_table(rows)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(write, queries))


def read_export(folder: Path, table: shop.Table, shape: str) -> pa.Table:
    """Return what ``export`` wrote of a table."""
    return pa.ipc.open_file((folder / f"{table.full_name}.{shape}").read_bytes()).read_all()


def main(warehouse: str, packages: str, folder: str) -> None:
    """Start Spark, wait for a line on standard input, and export the lake; without that line, do not."""
    spark = open_session(warehouse, packages)
    try:
        if sys.stdin.readline():
            export(spark, Path(folder))
    finally:
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
