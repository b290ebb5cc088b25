"""The points at which a load is stopped or killed: functions, before or after they are called."""

from __future__ import annotations

from airflow_provider_mssql_cdc.spark import files, job, load, staging
from airflow_provider_mssql_cdc.spark.targets.delta import DeltaTable
from airflow_provider_mssql_cdc.spark.targets.iceberg import IcebergTable
from airflow_provider_mssql_cdc.spark.targets.parquet import ParquetTable
from airflow_provider_mssql_cdc.spark.targets.postgresql.table import PostgresqlTable

BEFORE, AFTER = "before", "after"

COPIED = (load, "copy_table", AFTER)
AFTER_PLAN = (load.TableLoad, "stage_windows", BEFORE)
READ = (staging, "write_rows", AFTER)
STAGED = (load.TableLoad, "stage_windows", AFTER)
ONE_SINK_COMMITTED = (load.TableLoad, "_settle", AFTER)
CLEANING_UP = (job, "_remove_staged", BEFORE)
NO_RECEIPT = (files, "write_text", BEFORE)

POINTS = {
    "iceberg": {
        "first load, copied": COPIED,
        "after the plan": AFTER_PLAN,
        "read, not counted": READ,
        "staged": STAGED,
        "branch made": (IcebergTable, "_write", BEFORE),
        "branch written, main not moved": (IcebergTable, "_fast_forward", BEFORE),
        "main moved, properties not": (IcebergTable, "_fast_forward", AFTER),
        "one shape committed": ONE_SINK_COMMITTED,
        "in the clean-up": CLEANING_UP,
        "no receipt": NO_RECEIPT,
    },
    "delta": {
        "about to commit": (DeltaTable, "_write", BEFORE),
        "committed": (DeltaTable, "_write", AFTER),
        "in the clean-up": CLEANING_UP,
    },
    "postgresql": {
        "staged in the database": (PostgresqlTable, "_apply", BEFORE),
        "committed": (PostgresqlTable, "_apply", AFTER),
        "in the clean-up": CLEANING_UP,
    },
    "parquet": {
        "files written, no manifest": (ParquetTable, "_make", BEFORE),
        "committed": (ParquetTable, "_make", AFTER),
        "in the clean-up": CLEANING_UP,
    },
}
SHAPES = {
    "iceberg": ("mirror", "history", "scd2"),
    "delta": ("mirror", "history", "scd2"),
    "postgresql": ("mirror", "history"),
    "parquet": ("history",),
}

EVERYWHERE = {
    "first load, copied": COPIED,
    "after the plan": AFTER_PLAN,
    "read, not counted": READ,
    "staged": STAGED,
    "one shape committed": ONE_SINK_COMMITTED,
    "no receipt": NO_RECEIPT,
}
"""Those that no target has to itself; ``POINTS`` has them for Iceberg alone."""
