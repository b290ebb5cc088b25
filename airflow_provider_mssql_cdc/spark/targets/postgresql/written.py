"""The statements by which staged rows come into a PostgreSQL table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_mssql_cdc.core.exceptions import TargetError
from airflow_provider_mssql_cdc.spark.targets import OldRows, Write
from airflow_provider_mssql_cdc.spark.targets.postgresql import altered
from airflow_provider_mssql_cdc.spark.targets.postgresql.connection import quoted
from airflow_provider_mssql_cdc.spark.targets.postgresql.staging import Staging
from airflow_provider_mssql_cdc.spark.targets.postgresql.types import equality

if TYPE_CHECKING:
    import psycopg


def put(
    cursor: psycopg.Cursor[Any], name: str, table: str, staging: Staging, write: Write, *, index: Sequence[str]
) -> None:
    """Write staged rows into a table.

    :param name: of the table for people
    :param table: its name in SQL
    :param index: columns of its unique index, where it is to have one
    """
    cursor.execute(f"ANALYZE {staging.sql_name}")
    names = ", ".join(map(quoted, staging.columns))
    staged = ", ".join(map(staging.value, staging.columns))
    insert = f"INSERT INTO {table} ({names}) SELECT {staged} FROM {staging.sql_name} s"
    if write.old is OldRows.OF_KEY:
        _merge(cursor, name, table, staging, write, insert)
        return
    if write.old is OldRows.ALL:
        # TRUNCATE would show an empty table to those that read meanwhile
        cursor.execute(f"DELETE FROM {table}")
    if write.key_before:
        altered.index_anew(cursor, table, write.key_before, index)
    cursor.execute(insert)


def _merge(cursor: psycopg.Cursor[Any], called: str, table: str, staging: Staging, write: Write, insert: str) -> None:
    source = staging.sql_name
    key = ", ".join(staging.numbered[name] for name in write.key)
    if cursor.execute(f"SELECT FROM {source} GROUP BY {key} HAVING count(*) > 1 LIMIT 1").fetchone() is not None:
        raise TargetError(f"{called}: several rows of one key were to be merged.")
    on = " AND ".join(
        equality(
            f"t.{quoted(name)}",
            staging.value(name),
            staging.columns[name].postgresql,
            nullable=write.nullable_key,
        )
        for name in write.key
    )
    gone, stays = "s._op IN ('D', 'B')", "s._op NOT IN ('D', 'B')"
    values = ", ".join(f"{quoted(name)} = {staging.value(name)}" for name in staging.columns)
    cursor.execute(f"DELETE FROM {table} t USING {source} s WHERE {gone} AND {on}")
    cursor.execute(f"UPDATE {table} t SET {values} FROM {source} s WHERE {stays} AND {on}")
    cursor.execute(f"{insert} WHERE {stays} AND NOT EXISTS (SELECT FROM {table} t WHERE {on})")
