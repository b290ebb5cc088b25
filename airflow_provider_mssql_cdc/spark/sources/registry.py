"""Which source reads which kind of feeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from airflow_provider_mssql_cdc.core.change_tracking import TrackedTable
from airflow_provider_mssql_cdc.core.columns import ColumnMapping
from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.spec import JobSpec, TableSpec
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.sources.base import TableSource
from airflow_provider_mssql_cdc.spark.sources.cdc.table import CapturedTable
from airflow_provider_mssql_cdc.spark.sources.ct.table import TrackedRows


def _captured(
    job: JobSpec, jdbc: Jdbc, table: TableSpec, mappings: Sequence[ColumnMapping], connections: int, salt: str | None
) -> TableSource:
    return CapturedTable(
        jdbc,
        table,
        mappings,
        connections=connections,
        slice_rows=job.slice_rows,
        chunk_rows=job.copy_rows,
        chunk_seconds=job.copy_chunk_seconds,
        isolation=job.isolation,
        salt=salt,
        sees_fork=job.recovery_fork is not None,
    )


def _tracked(
    job: JobSpec, jdbc: Jdbc, table: TableSpec, mappings: Sequence[ColumnMapping], connections: int, salt: str | None
) -> TableSource:
    return TrackedRows(
        jdbc,
        table,
        mappings,
        connections=connections,
        slice_rows=job.slice_rows,
        chunk_rows=job.copy_rows,
        chunk_seconds=job.copy_chunk_seconds,
        isolation=job.isolation,
        salt=salt,
    )


SOURCES: dict[str, Callable[[JobSpec, Jdbc, TableSpec, Sequence[ColumnMapping], int, str | None], TableSource]] = {
    CaptureInstance.KIND: _captured,
    TrackedTable.KIND: _tracked,
}
"""What makes a table's source, by the kind of its feed."""
