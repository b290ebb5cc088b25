"""What the catalogue says of capture instances: one statement for what belongs to them, and how its rows are read."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.table import Column, TableName

Row = tuple[Any, ...]

_LONGEST_BINARY = 8000

COLUMN, UNCAPTURED, INDEX, PRIMARY, COMMAND_ID = range(5)
"""What a row of the statement describes."""

# Types are those of the change table, which an ALTER of the source reaches in log order. Whether NULLs are allowed only
# the source knows; a column that was dropped there keeps its place in the change table (docs: sp_cdc_enable_table).
# Types beyond the system's own (CLR) share one system_type_id, so their name is their own.
_COLUMNS = f"""
SELECT {COLUMN} AS kind, cc.object_id, cc.column_ordinal AS ordinal, cc.column_name AS name, cc.column_id,
  COALESCE(base.name, own.name) AS type_name, c.max_length, c.precision, c.scale,
  source.is_nullable, c.collation_name,
  COALESCE(cc.is_computed, CAST(0 AS bit)) AS is_computed,
  COALESCE(c.encryption_type, source.encryption_type) AS encryption_type
FROM cdc.change_tables AS ct
JOIN cdc.captured_columns AS cc ON cc.object_id = ct.object_id
JOIN sys.columns AS c ON c.object_id = ct.object_id AND c.name = cc.column_name
LEFT JOIN sys.types AS base ON base.user_type_id = c.system_type_id
LEFT JOIN sys.types AS own ON own.user_type_id = c.user_type_id
LEFT JOIN sys.columns AS source ON source.object_id = ct.source_object_id AND source.column_id = cc.column_id
WHERE ct.source_object_id {{tables}}
UNION ALL
SELECT {UNCAPTURED}, ct.object_id, source.column_id, source.name, source.column_id,
  COALESCE(base.name, own.name), source.max_length, source.precision, source.scale,
  source.is_nullable, source.collation_name, source.is_computed, source.encryption_type
FROM cdc.change_tables AS ct
JOIN sys.columns AS source ON source.object_id = ct.source_object_id
LEFT JOIN sys.types AS base ON base.user_type_id = source.system_type_id
LEFT JOIN sys.types AS own ON own.user_type_id = source.user_type_id
WHERE ct.source_object_id {{tables}} AND NOT EXISTS (
  SELECT 1 FROM cdc.captured_columns AS cc WHERE cc.object_id = ct.object_id AND cc.column_id = source.column_id)
UNION ALL
SELECT {INDEX}, ct.object_id, ic.index_ordinal, ic.column_name, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM cdc.change_tables AS ct
JOIN cdc.index_columns AS ic ON ic.object_id = ct.object_id
WHERE ct.source_object_id {{tables}}
UNION ALL
SELECT {PRIMARY}, ct.object_id, ic.key_ordinal, c.name, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM cdc.change_tables AS ct
JOIN sys.indexes AS i ON i.object_id = ct.source_object_id AND i.is_primary_key = 1
JOIN sys.index_columns AS ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id AND ic.key_ordinal > 0
JOIN sys.columns AS c ON c.object_id = ic.object_id AND c.column_id = ic.column_id
WHERE ct.source_object_id {{tables}}
UNION ALL
SELECT {COMMAND_ID}, ct.object_id, c.column_id, c.name, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM cdc.change_tables AS ct
JOIN sys.columns AS c ON c.object_id = ct.object_id AND c.name = N'__$command_id'
WHERE ct.source_object_id {{tables}}"""


def columns(tables: str) -> str:
    """The statement: kind, object id of the change table, place, name, and what ``instance`` reads.

    :param tables: T-SQL behind ``source_object_id``: which source tables are meant
    """
    return _COLUMNS.format(tables=tables)


def lsn(value: bytes | None) -> Lsn | None:
    """The LSN; None for NULL and for ten zero bytes, neither of which is a position."""
    if value is None:
        return None
    found = Lsn(bytes(value))
    return None if found.is_zero else found


def instance(
    name: str,
    source: TableName,
    source_object_id: int,
    created: datetime.datetime,
    start: bytes | None,
    rows: Sequence[Row],
    *,
    net_changes: bool = False,
    role: str | None = None,
    index: str | None = None,
    filegroup: str | None = None,
    partition_switch: bool = True,
    drop_pending: bool = False,
    end: bytes | None = None,
) -> CaptureInstance | None:
    """A capture instance.

    :param start: ``start_lsn`` of ``cdc.change_tables``
    :param rows: of the statement, those with the object id of its change table
    :param end: ``end_lsn`` of ``cdc.change_tables``
    :return: None where the login may not see the change table
    """
    captured = [row for row in rows if row[0] == COLUMN]
    if not captured:
        return None
    mark = lsn(start)
    return CaptureInstance(
        name=name,
        object_id=captured[0][1],
        source=source,
        source_object_id=source_object_id,
        create_date=created,
        start_lsn=mark,
        min_lsn=mark,
        columns=captured_columns(rows),
        index_key=_names(rows, INDEX),
        primary_key=primary_key(rows),
        uncaptured=_names(rows, UNCAPTURED),
        others=uncaptured_columns(rows),
        supports_net_changes=net_changes,
        role=role,
        has_command_id=bool(_names(rows, COMMAND_ID)),
        index_name=index,
        filegroup=filegroup,
        partition_switch=partition_switch,
        drop_pending=drop_pending,
        end_lsn=lsn(end),
    )


def captured_columns(rows: Sequence[Row]) -> tuple[Column, ...]:
    """The columns of a capture instance, in the order of the change table.

    :param rows: of the statement, those with the object id of its change table
    """
    return _columns(rows, COLUMN)


def uncaptured_columns(rows: Sequence[Row]) -> tuple[Column, ...]:
    """The columns of the source table that a capture instance does not have.

    :param rows: of the statement, those with the object id of its change table
    """
    return _columns(rows, UNCAPTURED)


def primary_key(rows: Sequence[Row]) -> tuple[str, ...]:
    """The columns of a table's primary key, in key order.

    :param rows: of the statement
    """
    return _names(rows, PRIMARY)


def _columns(rows: Sequence[Row], kind: int) -> tuple[Column, ...]:
    return tuple(sorted((_column(row) for row in rows if row[0] == kind), key=lambda column: column.ordinal))


def _column(row: Row) -> Column:
    _, _, ordinal, name, column_id, type_name, length, precision, scale, nullable, collation, computed, encryption = row
    if encryption is not None:
        # without its key a client reads the ciphertext, whatever the type is (docs: Always Encrypted)
        type_name, length = "varbinary", -1 if length == -1 else _LONGEST_BINARY
        precision = scale = 0
        collation = None
    return Column(
        ordinal=ordinal,
        column_id=column_id,
        name=name,
        # a login may not see the name of a type of somebody's own
        type=(type_name or "").lower(),
        length=length,
        precision=precision,
        scale=scale,
        nullable=nullable is None or bool(nullable),
        collation=collation,
        computed=bool(computed),
        dropped=nullable is None,
        encrypted=encryption is not None,
    )


def _names(rows: Sequence[Row], kind: int) -> tuple[str, ...]:
    return tuple(row[3] for row in sorted((row for row in rows if row[0] == kind), key=lambda row: row[2]))
