"""A plain look at the lake: a Spark process that reads whole tables into Arrow files.

It knows the tables only as any other reader of the lake does, and shares no code with the load.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from airflow_provider_mssql_cdc.cli.demo import shop
from airflow_provider_mssql_cdc.core import formats
from airflow_provider_mssql_cdc.operators import jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMESPACE = "lake.shop"

_AT_ONCE = 4


def mirror(table: shop.Table) -> str:
    """The name of the lake's table that holds a shop table's current rows."""
    return f"{NAMESPACE}.{table.schema}_{table.name}"


def newest_rows(table: shop.Table, history: str | None = None, position: str = "_lsn") -> str:
    """A query for the rows that the history says there are now: each key's last image, unless it was deleted.

    :param history: what is read of it; by default all
    :param position: the column of positions
    """
    history = history or f"{mirror(table)}_history"
    keys, columns = ", ".join(table.key), ", ".join(column.name for column in table.columns)
    return (
        f"SELECT {columns} FROM"
        f" (SELECT *, ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY {position} DESC, _seq DESC) AS nth"
        f" FROM {history} WHERE _op <> 'B') WHERE nth = 1 AND _op <> 'D'"
    )


def events(table: shop.Table) -> str:
    """A query for the events of the history, without the rows that the first load copied."""
    return f"SELECT {', '.join(table.events.names)} FROM {mirror(table)}_history WHERE _op <> 'R'"


def open_session(warehouse: str, packages: str, more: Mapping[str, str] | None = None) -> SparkSession:
    """Start Spark.

    :param warehouse: folder of the Iceberg catalog
    :param packages: Maven coordinates of those that loads need, separated by commas
    :param more: settings
    """
    from pyspark.sql import SparkSession

    settings: dict[str, bool | float | int | str | None] = {
        **jars.spark_settings(formats.named(packages)),
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": warehouse,
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        **(more or {}),
    }
    builder = SparkSession.builder.appName("mssql-cdc demo: read the lake").master("local[2]")
    return builder.config(map=settings).getOrCreate()


def queries() -> dict[str, str]:
    """What is read of each table: ``sales.orders.mirror``, ``sales.orders.history``, .."""
    found = {}
    for table in shop.TABLES:
        found[f"{table.full_name}.mirror"] = f"SELECT * FROM {mirror(table)}"
        found[f"{table.full_name}.history"] = newest_rows(table)
        found[f"{table.full_name}.events"] = events(table)
    return found


def export(spark: SparkSession, folder: Path, wanted: Mapping[str, str]) -> None:
    """Write what queries return to Arrow files of their names."""

    def write(name: str) -> None:
        rows = spark.sql(wanted[name]).toArrow()
        with pa.ipc.new_file(folder / name, rows.schema) as file:
            file.write_table(rows)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(write, wanted))


def read_export(folder: Path, name: str) -> pa.Table:
    """What ``export`` wrote of a query."""
    return pa.ipc.open_file((folder / name).read_bytes()).read_all()


def when_asked(spark: SparkSession, work: Callable[[], None]) -> None:
    """Wait for a line on standard input, do the work, and end Spark; without that line, only end it."""
    try:
        if sys.stdin.readline():
            work()
    finally:
        spark.stop()


def main(warehouse: str, packages: str, folder: str) -> None:
    """Start Spark, and export the lake as soon as that is asked for."""
    spark = open_session(warehouse, packages)
    when_asked(spark, lambda: export(spark, Path(folder), queries()))


if __name__ == "__main__":
    main(*sys.argv[1:])
