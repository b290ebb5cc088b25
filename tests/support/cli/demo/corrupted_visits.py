"""Reads what Change Tracking has loaded as ``cli.demo.tracked_lake`` does, after it has changed one cell of it."""

from __future__ import annotations

import sys

from airflow_provider_mssql_cdc.cli.demo import tracked_lake
from tests.support.cli.demo.corrupted_lake import export_corrupted


def main(warehouse: str, packages: str, folder: str) -> None:
    """Change a cell, and export, as soon as that is asked for."""
    given = (warehouse, packages, folder)
    export_corrupted(given, "web_visits", "referrer = 'elsewhere'", "visit_id", tracked_lake.queries())


if __name__ == "__main__":
    main(*sys.argv[1:])
