"""What the catalogue says of tracked tables: one statement for their columns and keys, and how its rows are read."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_mssql_cdc.core import catalog
from airflow_provider_mssql_cdc.core.catalog import COLUMN, PRIMARY, Row
from airflow_provider_mssql_cdc.core.table import Column, TableName, quote

# In the shape of the statement about capture instances. Types beyond the system's own (CLR) share one system_type_id,
# so their name is their own.
_COLUMNS = f"""
SELECT {COLUMN} AS kind, c.object_id, c.column_id AS ordinal, c.name, c.column_id,
  COALESCE(base.name, own.name) AS type_name, c.max_length, c.precision, c.scale,
  c.is_nullable, c.collation_name, c.is_computed, c.encryption_type
FROM sys.columns AS c
LEFT JOIN sys.types AS base ON base.user_type_id = c.system_type_id
LEFT JOIN sys.types AS own ON own.user_type_id = c.user_type_id
WHERE c.object_id {{tables}}
UNION ALL
SELECT {PRIMARY}, i.object_id, ic.key_ordinal, c.name, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM sys.indexes AS i
JOIN sys.index_columns AS ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id AND ic.key_ordinal > 0
JOIN sys.columns AS c ON c.object_id = ic.object_id AND c.column_id = ic.column_id
WHERE i.object_id {{tables}} AND i.is_primary_key = 1"""


def columns(tables: str) -> str:
    """The statement: kind, object id of the table, place, name, and what ``schema_of`` reads.

    :param tables: T-SQL behind ``object_id``: which tables are meant
    """
    return _COLUMNS.format(tables=tables)


def schema_of(rows: Sequence[Row]) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """The columns of a table, in the order of their ids, and those of its primary key, in key order.

    :param rows: of the statement, those with the object id of the table
    """
    return catalog.captured_columns(rows), catalog.primary_key(rows)


def untouched(table: TableName, key: Sequence[str], version: str) -> str:
    """The statement that finds a row which has not changed since a version.

    A TRUNCATE takes such rows away, and no change tells of it. VERSION has a row for each that is there, with NULL
    where no change is kept (docs: CHANGETABLE).

    :param key: columns of the primary key
    :param version: in T-SQL
    """
    names, values = (", ".join(f"{prefix}{quote(column)}" for column in key) for prefix in ("", "t."))
    return (
        f"SELECT TOP (1) 1 AS found FROM {table.quoted} AS t"
        f" CROSS APPLY CHANGETABLE(VERSION {table.quoted}, ({names}), ({values})) AS v"
        f" WHERE v.SYS_CHANGE_VERSION IS NULL OR v.SYS_CHANGE_VERSION <= {version}"
    )


def unchanged(table: TableName, columns: Sequence[str], key: Sequence[str], version: str) -> str:
    """The rows that have not changed since a version, as T-SQL behind FROM.

    :param columns: that they have
    :param key: columns of the primary key
    :param version: in T-SQL
    """
    names = ", ".join(f"t.{quote(column)}" for column in columns)
    same = " AND ".join(f"c.{quote(column)} = t.{quote(column)}" for column in key)
    return (
        f"(SELECT {names} FROM {table.quoted} AS t"
        f" LEFT JOIN CHANGETABLE(CHANGES {table.quoted}, {version}) AS c ON {same}"
        f" WHERE c.{quote(key[0])} IS NULL) AS u"
    )
