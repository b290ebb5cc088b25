"""Columns that a PostgreSQL table gets, or that get wider types or other names, while others read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.spark.targets.postgresql.connection import LOCK_TIMEOUT, Database, quoted
from airflow_provider_mssql_cdc.spark.targets.postgresql.types import of_spark

if TYPE_CHECKING:
    import psycopg

_LOCK_OF_ALTER = "5s"
"""All that come later queue behind the wait for its lock."""


def declared(column: TargetColumn) -> str:
    """A column's type as a table is made with it."""
    type_ = of_spark(column.type).postgresql
    # compared there as it is here, for what is read in part
    return f'{type_} COLLATE "C"' if column.name == "_lsn" else type_


def add_and_drop(
    cursor: psycopg.Cursor[Any], table: str, added: Sequence[TargetColumn], dropped: Sequence[str] = ()
) -> None:
    """Add columns, and drop those of others that are there: who reads meanwhile waits for the end of the transaction.

    :param table: in SQL
    :raises psycopg.Error: among others where a view shows one of them, which it names; nothing is done with CASCADE
    """
    parts = [f"DROP COLUMN IF EXISTS {quoted(name)}" for name in dropped]
    parts += [f"ADD COLUMN {quoted(column.name)} {declared(column)}" for column in added]
    if parts:
        cursor.execute(f"SET LOCAL lock_timeout = '{_LOCK_OF_ALTER}'")
        cursor.execute(f"ALTER TABLE {table} {', '.join(parts)}")
        cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")


def index(cursor: psycopg.Cursor[Any], table: str, key: Sequence[str]) -> None:
    """Make the unique index of a table's key.

    :param table: in SQL
    """
    cursor.execute(f"CREATE UNIQUE INDEX ON {table} ({', '.join(map(quoted, key))})")


def index_anew(cursor: psycopg.Cursor[Any], table: str, before: Sequence[str], key: Sequence[str]) -> None:
    """Make the unique index of another key, and drop that of the one before: who reads meanwhile waits for the end of
    the transaction.

    :param table: in SQL
    :param before: columns of the key that it had
    :param key: none where it gets no index
    """
    cursor.execute(f"SET LOCAL lock_timeout = '{_LOCK_OF_ALTER}'")
    found = cursor.execute(
        "SELECT i.indexrelid::regclass::text FROM pg_index i WHERE i.indrelid = %s::regclass AND i.indisunique"
        " AND i.indpred IS NULL AND i.indexprs IS NULL AND NOT EXISTS"
        " (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid) AND"
        " (SELECT array_agg(a.attname::text ORDER BY k.n) FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(id, n)"
        " JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.id) = %s::text[]",
        (table, list(before)),
    ).fetchall()
    for (name,) in found:
        cursor.execute(f"DROP INDEX {name}")
    if key:
        index(cursor, table, key)
    cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")


def widen(database: Database, table: str, columns: Sequence[TargetColumn]) -> None:
    """Give columns types that hold each value of theirs as it is. PostgreSQL may write the whole table anew for it
    (docs: ALTER TABLE, Notes).

    :param table: in SQL
    :raises TargetError: among others where a view shows one of them, which it names; nothing is done with CASCADE
    """
    altered = ", ".join(f"ALTER COLUMN {quoted(column.name)} TYPE {declared(column)}" for column in columns)
    with database.transaction(lock_timeout=_LOCK_OF_ALTER) as cursor:
        cursor.execute(f"ALTER TABLE {table} {altered}")


def rename(database: Database, table: str, columns: Mapping[str, str]) -> None:
    """Give columns other names. Views that show them keep their own (docs: ALTER TABLE).

    :param table: in SQL
    :param columns: name to the one that it gets
    """
    with database.transaction(lock_timeout=_LOCK_OF_ALTER) as cursor:
        for old, new in columns.items():
            cursor.execute(f"ALTER TABLE {table} RENAME COLUMN {quoted(old)} TO {quoted(new)}")
