"""Reads the table whose columns change as ``cli.demo.members_lake`` does, after it has changed one cell of it."""

from __future__ import annotations

import sys

from airflow_provider_mssql_cdc.cli.demo import members_lake
from tests.support.cli.demo.corrupted_lake import export_corrupted


def main(warehouse: str, packages: str, folder: str) -> None:
    """Change a cell, and export, as soon as that is asked for."""
    given = (warehouse, packages, folder)
    export_corrupted(given, "sales_members", "email = 'elsewhere'", "member_id", members_lake.in_the_lake())


if __name__ == "__main__":
    main(*sys.argv[1:])
