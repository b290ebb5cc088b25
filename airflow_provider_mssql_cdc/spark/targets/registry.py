"""From a sink's format to the table it writes."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from airflow_provider_mssql_cdc.core.exceptions import SpecError
from airflow_provider_mssql_cdc.core.spec import JobSpec, SinkSpec
from airflow_provider_mssql_cdc.core.target import DELTA, ICEBERG, MIRROR, PARQUET, POSTGRESQL
from airflow_provider_mssql_cdc.spark.session import target_credentials
from airflow_provider_mssql_cdc.spark.shapes import TableShape
from airflow_provider_mssql_cdc.spark.targets import TargetTable
from airflow_provider_mssql_cdc.spark.targets.delta import DeltaTable
from airflow_provider_mssql_cdc.spark.targets.iceberg import IcebergTable
from airflow_provider_mssql_cdc.spark.targets.parquet import ParquetTable
from airflow_provider_mssql_cdc.spark.targets.postgresql.table import PostgresqlTable

_FILES: dict[str, type[IcebergTable | DeltaTable | ParquetTable]] = {
    ICEBERG: IcebergTable,
    DELTA: DeltaTable,
    PARQUET: ParquetTable,
}


def open_table(
    session: SparkSession,
    job: JobSpec,
    shape: TableShape,
    sink: SinkSpec,
    table: Sequence[str],
    *,
    connections: int,
) -> TargetTable:
    """Return a table that a sink writes to.

    :param session: of the source table alone
    :param shape: of the source table
    :param table: the sink's own table, or one that a replay builds beside it
    :param connections: JDBC connections that may be open at once
    :raises SpecError: if the spec does not say where the table is
    """
    if sink.format != POSTGRESQL:
        return _FILES[sink.format](session, table, job.id, partition_by=sink.partition_by, properties=sink.properties)
    if job.database is None:
        raise SpecError("the spec names no database for its targets.")
    return PostgresqlTable(
        session,
        table,
        job.id,
        database=job.database,
        credentials=target_credentials(session),
        key=shape.key,
        # what SQL Server has an index of is short enough for one of PostgreSQL
        indexed=sink.shape == MIRROR and shape.spec.unique_key and not shape.nullable_key,
        connections=connections,
    )
