"""From a sink's format to the table it writes."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from airflow_provider_mssql_cdc.core.spec import SinkSpec
from airflow_provider_mssql_cdc.core.target import DELTA, ICEBERG, PARQUET
from airflow_provider_mssql_cdc.spark.targets import TargetTable
from airflow_provider_mssql_cdc.spark.targets.delta import DeltaTable
from airflow_provider_mssql_cdc.spark.targets.iceberg import IcebergTable
from airflow_provider_mssql_cdc.spark.targets.parquet import ParquetTable

_FORMATS: dict[str, type[IcebergTable | DeltaTable | ParquetTable]] = {
    ICEBERG: IcebergTable,
    DELTA: DeltaTable,
    PARQUET: ParquetTable,
}


def open_table(session: SparkSession, sink: SinkSpec, table: Sequence[str], spec_id: str) -> TargetTable:
    """Return a table that a sink writes to.

    :param session: of the source table alone
    :param table: the sink's own table, or one that a replay builds beside it
    :param spec_id: of the job
    """
    kind = _FORMATS[sink.format]
    return kind(session, table, spec_id, partition_by=sink.partition_by, properties=sink.properties)
