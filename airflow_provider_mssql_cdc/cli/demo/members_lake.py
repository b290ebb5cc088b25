"""A plain look at the table whose columns change: a Spark process that reads its Iceberg tables."""

from __future__ import annotations

import sys
from pathlib import Path

from airflow_provider_mssql_cdc.cli.demo import lake
from airflow_provider_mssql_cdc.cli.demo.members import GROWN

SHAPES = {"iceberg": ("mirror", "history", "scd2"), "postgresql": ("mirror", "history")}
"""The targets of the DAG, and the shapes that each takes."""

# a row that a copy brought is as of the end of its position
_NEWEST = "ROW_NUMBER() OVER (PARTITION BY member_id ORDER BY _lsn DESC, COALESCE(_seq, 9223372036854775807) DESC)"


def queries(target: str, mirror: str) -> dict[str, str]:
    """What is read of a target.

    :param mirror: the full name of the mirror there
    """
    names, history = ", ".join(GROWN.arrow.names), f"{mirror}_history"
    found = {
        "mirror": f"SELECT * FROM {mirror}",
        "history": f"SELECT {names} FROM (SELECT *, {_NEWEST} AS nth FROM {history} WHERE _op <> 'B') AS images"
        " WHERE nth = 1 AND _op <> 'D'",
        "events": f"SELECT {', '.join(GROWN.events.names)} FROM {history} WHERE _op <> 'R'",
    }
    if "scd2" in SHAPES[target]:
        found["scd2"] = f"SELECT {names} FROM {mirror}_scd2 WHERE _to_lsn IS NULL"
    return found


def in_the_lake() -> dict[str, str]:
    """What is read of Iceberg."""
    return queries("iceberg", lake.mirror(GROWN))


def main(warehouse: str, packages: str, folder: str) -> None:
    """Start Spark, and export the tables as soon as that is asked for."""
    spark = lake.open_session(warehouse, packages)
    lake.when_asked(spark, lambda: lake.export(spark, Path(folder), in_the_lake()))


if __name__ == "__main__":
    main(*sys.argv[1:])
