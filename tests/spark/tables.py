"""A small target table in each format, and what tests do with it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import psycopg
from pyspark.sql import DataFrame

from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.spec import Marker
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.spark.targets import Append
from airflow_provider_mssql_cdc.spark.targets.delta import DeltaTable
from airflow_provider_mssql_cdc.spark.targets.iceberg import IcebergTable
from airflow_provider_mssql_cdc.spark.targets.postgresql.table import PostgresqlTable
from tests.spark.model import lsn

COLUMNS = (TargetColumn("id", "INT", "{}"), TargetColumn("a `b.c", "STRING", "{}"), TargetColumn("s", "SMALLINT", "{}"))
DDL = "id INT, `a ``b.c` STRING, s SMALLINT"

Table = IcebergTable | DeltaTable | PostgresqlTable
Maker = Callable[..., Table]


def marker(position: int) -> Marker:
    """Return the marker of a load up to a position."""
    return Marker(
        position=lsn(position),
        witness=None,
        server="db:1433",
        database="shop",
        table=TableName("dbo", "t"),
        instance="dbo_t",
        object_id=1,
        schema_hash="1:abc",
        window_after=None,
        events={"inserted": 1},
        spec_id="spec",
    )


def frame(target: Table, rows: list[tuple]) -> DataFrame:
    """Return rows for an append."""
    return target._session.createDataFrame(rows, DDL)


def changes(target: Table, rows: list[tuple]) -> DataFrame:
    """Return rows for a merge."""
    return target._session.createDataFrame(rows, DDL + ", _op STRING, _n BIGINT")


def contents(target: Table) -> list[tuple]:
    """Return what the table holds, in order."""
    if isinstance(target, PostgresqlTable):
        rows = by_hand(target, f"SELECT * FROM {target.sql_name}")
    else:
        rows = target._session.table(target.sql_name).collect()
    return sorted((tuple(row) for row in rows), key=lambda row: (row[0] is not None, *row))


def by_hand(target: Table, statement: str) -> list:
    """Run a statement as others do, in the table's own system; its rows."""
    if not isinstance(target, PostgresqlTable):
        return target._session.sql(statement).collect()
    with contextlib.closing(target._database._connect(psycopg)) as connection:
        connection.autocommit = True
        cursor = connection.execute(statement, binary=True)
        return cursor.fetchall() if cursor.description else []


def load(target: Table, position: int, rows: list[tuple]) -> None:
    """Append rows with a marker."""
    assert target.commit(target.state(), Append(frame(target, rows)), marker(position))
