"""The points at which a load is stopped or killed: functions, before, while or after they are called."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from airflow_provider_mssql_cdc.spark import files, job, load, staging
from airflow_provider_mssql_cdc.spark.sources.cdc.table import CapturedTable
from airflow_provider_mssql_cdc.spark.targets.delta import DeltaTable
from airflow_provider_mssql_cdc.spark.targets.iceberg import IcebergTable
from airflow_provider_mssql_cdc.spark.targets.iceberg_upsert import Upsert
from airflow_provider_mssql_cdc.spark.targets.parquet import ParquetTable
from airflow_provider_mssql_cdc.spark.targets.postgresql.table import PostgresqlTable

BEFORE, DURING, AFTER = "before", "during", "after"


@dataclass(frozen=True, slots=True)
class Point:
    """A call of a function in a load.

    :param owner: module or class of the function
    :param when: ``DURING``: when it has written files, of which there may come more
    :param call: which of the load's calls; tables commit in the order of their shapes
    """

    owner: Any
    name: str
    when: str
    call: int = 1


COPIED = Point(CapturedTable, "copy", AFTER)
AFTER_PLAN = Point(load.TableLoad, "stage_windows", BEFORE)
READING = Point(staging, "write_rows", DURING)
READ = Point(staging, "write_rows", AFTER)
STAGED = Point(load.TableLoad, "stage_windows", AFTER)
ONE_SINK_COMMITTED = Point(load.TableLoad, "_settle", AFTER)
CLEANING_UP = Point(job, "_remove_staged", BEFORE)
NO_RECEIPT = Point(files, "write_text", BEFORE)

POINTS = {
    "iceberg": {
        "first load, copied": COPIED,
        "after the plan": AFTER_PLAN,
        "in mid-read": READING,
        "read, not counted": READ,
        "staged": STAGED,
        "branch made": Point(IcebergTable, "_write", BEFORE),
        "keys updated, others not added": Point(Upsert, "append", BEFORE),
        "branch written, main not moved": Point(IcebergTable, "_fast_forward", BEFORE, call=2),
        "main moved, properties not": Point(IcebergTable, "_fast_forward", AFTER, call=3),
        "one shape committed": ONE_SINK_COMMITTED,
        "in the clean-up": CLEANING_UP,
        "no receipt": NO_RECEIPT,
    },
    "delta": {
        "about to commit": Point(DeltaTable, "_write", BEFORE, call=3),
        "files being written": Point(DeltaTable, "_write", DURING),
        "committed": Point(DeltaTable, "_write", AFTER, call=2),
        "in the clean-up": CLEANING_UP,
    },
    "postgresql": {
        "staged in the database": Point(PostgresqlTable, "_apply", BEFORE, call=2),
        "committed": Point(PostgresqlTable, "_apply", AFTER),
        "in the clean-up": CLEANING_UP,
    },
    "parquet": {
        # not before a load of a table that is there: the first manifest of all names no files
        "in the clean-up": CLEANING_UP,
        "files written, no manifest": Point(ParquetTable, "_make", BEFORE),
        "committed": Point(ParquetTable, "_make", AFTER),
    },
}
"""Where a load stops in each run of the tests."""
SHAPES = {
    "iceberg": ("mirror", "history", "scd2", "transactions"),
    "delta": ("mirror", "history", "scd2", "transactions"),
    "postgresql": ("mirror", "history", "transactions"),
    "parquet": ("history", "transactions"),
}

ABOUT_TO_COMMIT = {
    "iceberg": Point(IcebergTable, "_fast_forward", BEFORE),
    "delta": Point(DeltaTable, "_write", BEFORE),
    "parquet": Point(ParquetTable, "_make", BEFORE),
    "postgresql": Point(PostgresqlTable, "_apply", BEFORE),
}
"""Where the first commit of a load is about to be seen."""

_EVERYWHERE = {
    "first load, copied": COPIED,
    "after the plan": AFTER_PLAN,
    "in mid-read": READING,
    "read, not counted": READ,
    "staged": STAGED,
    "one shape committed": ONE_SINK_COMMITTED,
    "no receipt": NO_RECEIPT,
}
_TABLES = (IcebergTable, DeltaTable, PostgresqlTable, ParquetTable)
_BY_KEY = ("mirror", "scd2")
"""The shapes whose old rows a load looks for by their keys."""


def all_points(format_: str) -> dict[str, Point]:
    """Every point of a load into a target: what happens within a commit once for each of its shapes.

    The first is one of a first load.
    """
    found = {}
    for label, point in {**_EVERYWHERE, **POINTS[format_]}.items():
        if point.owner in (*_TABLES, Upsert):
            for number, shape in enumerate(_BY_KEY if point.owner is Upsert else SHAPES[format_], 1):
                found[f"{label} ({shape})"] = dataclasses.replace(point, call=number)
        else:
            found[label] = point
    return found
