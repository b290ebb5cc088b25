"""What the catalogue says of a table's columns and keys, read over JDBC for any kind of feed."""

from __future__ import annotations

from pyspark.sql import Row

from airflow_provider_mssql_cdc.spark.jdbc import Jdbc

_PARTS = (
    "kind INT, object_id INT, ordinal INT, name STRING, column_id INT, type_name STRING, max_length INT,"
    " precision INT, scale INT, is_nullable BOOLEAN, collation_name STRING, is_computed BOOLEAN,"
    " encryption_type INT"
)


def read_parts(jdbc: Jdbc, statement: str) -> list[Row]:
    """The rows of a statement about columns and keys.

    :param statement: from ``core.catalog`` or ``core.tracked_catalog``, which read its rows
    """
    return jdbc.rows(statement, _PARTS)
