"""Reads the demo's lake as ``cli.demo.lake`` does, after it has changed one cell of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from airflow_provider_mssql_cdc.cli.demo import lake


def main(warehouse: str, packages: str, folder: str) -> None:
    """Change a cell, and export, as soon as that is asked for."""
    export_corrupted(
        (warehouse, packages, folder), "sales_orders", "amount = amount + 0.0001", "order_id", lake.queries()
    )


def export_corrupted(
    given: tuple[str, str, str], table: str, change: str, key: str, queries: Mapping[str, str]
) -> None:
    """Change the first row of a table of the lake, and export, as soon as that is asked for.

    :param given: warehouse, packages, and the folder of the export
    """
    warehouse, packages, folder = given
    extensions = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    spark = lake.open_session(warehouse, packages, {"spark.sql.extensions": extensions})

    def export() -> None:
        name = f"lake.shop.{table}"
        spark.sql(f"UPDATE {name} SET {change} WHERE {key} = (SELECT MIN({key}) FROM {name})").collect()
        lake.export(spark, Path(folder), queries)

    lake.when_asked(spark, export)


if __name__ == "__main__":
    main(*sys.argv[1:])
