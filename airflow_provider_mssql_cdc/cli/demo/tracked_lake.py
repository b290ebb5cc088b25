"""A plain look at what Change Tracking has loaded or healed: a Spark process that reads the lake's tables."""

from __future__ import annotations

import sys
from pathlib import Path

from airflow_provider_mssql_cdc.cli.demo import lake, shop
from airflow_provider_mssql_cdc.cli.demo.visits import VISITS


def queries() -> dict[str, str]:
    """What is read of each table: ``sales.orders.mirror``, ``sales.orders.history``, ``sales.orders.scd2``, .."""
    found = {}
    for table in shop.TABLES:
        names = ", ".join(table.arrow.names)
        found[f"{table.full_name}.mirror"] = f"SELECT * FROM {lake.mirror(table)}"
        found[f"{table.full_name}.history"] = lake.newest_rows(table, position="_version")
        versions = f"{lake.mirror(table)}_scd2"
        found[f"{table.full_name}.scd2"] = f"SELECT {names} FROM {versions} WHERE _to_version IS NULL"
    found[f"{VISITS.full_name}.mirror"] = f"SELECT * FROM {lake.mirror(VISITS)}"
    found[f"{VISITS.full_name}.history"] = lake.newest_rows(VISITS)
    return found


def main(warehouse: str, packages: str, folder: str) -> None:
    """Start Spark, and export the tables as soon as that is asked for."""
    spark = lake.open_session(warehouse, packages)
    lake.when_asked(spark, lambda: lake.export(spark, Path(folder), queries()))


if __name__ == "__main__":
    main(*sys.argv[1:])
