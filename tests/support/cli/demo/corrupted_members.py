"""Reads the table whose columns change as ``cli.demo.members_lake`` does, after it has changed one cell of it."""

from __future__ import annotations

import sys
from pathlib import Path

from airflow_provider_mssql_cdc.cli.demo import lake, members_lake


def main(warehouse: str, packages: str, folder: str) -> None:
    """Change a cell, and export, as soon as that is asked for."""
    extensions = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    spark = lake.open_session(warehouse, packages, {"spark.sql.extensions": extensions})

    def export() -> None:
        table = "lake.shop.sales_members"
        spark.sql(
            f"UPDATE {table} SET email = 'elsewhere' WHERE member_id = (SELECT MIN(member_id) FROM {table})"
        ).collect()
        lake.export(spark, Path(folder), members_lake.in_the_lake())

    lake.when_asked(spark, export)


if __name__ == "__main__":
    main(*sys.argv[1:])
