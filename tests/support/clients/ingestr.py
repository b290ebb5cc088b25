"""ingestr 1 (its Go line), as of 2026: what bruin-data/ingestr sends, through go-mssqldb.

Read in ``pkg/source/mssql``: mssql.go at 05138c51, change_tracking.go (mssql+ct, in which alone it tells changes) at
0b286fc4; white space aside.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

PING = "select 1;"

COLUMNS = """
        SELECT
            COLUMN_NAME,
            DATA_TYPE,
            IS_NULLABLE,
            NUMERIC_PRECISION,
            NUMERIC_SCALE,
            CHARACTER_MAXIMUM_LENGTH
        FROM INFORMATION_SCHEMA.COLUMNS
        WHERE TABLE_SCHEMA = @p1 AND TABLE_NAME = @p2
        ORDER BY ORDINAL_POSITION
    """

KEY = """
        SELECT c.COLUMN_NAME
        FROM INFORMATION_SCHEMA.TABLE_CONSTRAINTS tc
        JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE c
            ON tc.CONSTRAINT_NAME = c.CONSTRAINT_NAME
            AND tc.TABLE_SCHEMA = c.TABLE_SCHEMA
        WHERE tc.CONSTRAINT_TYPE = 'PRIMARY KEY'
            AND tc.TABLE_SCHEMA = @p1
            AND tc.TABLE_NAME = @p2
        ORDER BY c.ORDINAL_POSITION
    """

TRACKING_DATABASE = "SELECT COUNT(*) FROM sys.change_tracking_databases WHERE database_id = DB_ID()"

TRACKING_TABLE = """
        SELECT COUNT(*)
        FROM sys.change_tracking_tables AS ctt
        JOIN sys.tables AS t ON t.object_id = ctt.object_id
        JOIN sys.schemas AS ss ON ss.schema_id = t.schema_id
        WHERE ss.name = @p1
          AND t.name = @p2
    """

TRACKING_MIN_VERSION = "SELECT CHANGE_TRACKING_MIN_VALID_VERSION(OBJECT_ID(@p1))"

TRACKING_VERSION = "SELECT CHANGE_TRACKING_CURRENT_VERSION()"


def read(
    table: str, columns: Sequence[str], key: str = "", start: dt.datetime | None = None, end: dt.datetime | None = None
) -> str:
    """``buildSelectQuery``.

    :param key: the incremental key; the bounds are written in whole seconds
    """
    conditions = [
        f"[{key}] {operator} '{bound:%Y-%m-%d %H:%M:%S}'" for operator, bound in ((">=", start), ("<=", end)) if bound
    ]
    where = " WHERE " + " AND ".join(conditions) if conditions else ""
    return f"SELECT {', '.join(f'[{column}]' for column in columns)} FROM {table}{where}"


def tracked_changes(table: str, columns: Sequence[str], keys: Sequence[str]) -> str:
    """``buildCTChangesQuery``."""
    selects = [f"{'CT' if column in keys else 'T'}.[{column}] AS [{column}]" for column in columns]
    selects += [
        "RIGHT(REPLICATE('0', 20) + CONVERT(varchar(20), CT.SYS_CHANGE_VERSION), 20) AS [_cdc_lsn]",
        "CAST(CASE WHEN CT.SYS_CHANGE_OPERATION = 'D' THEN 1 ELSE 0 END AS bit) AS [_cdc_deleted]",
        "SYSUTCDATETIME() AS [_cdc_synced_at]",
    ]
    joined = " AND ".join(f"T.[{key}] = CT.[{key}]" for key in keys)
    order = ", ".join(["CT.SYS_CHANGE_VERSION", *(f"CT.[{key}]" for key in keys)])
    return f"""
        SELECT {", ".join(selects)}
        FROM CHANGETABLE(CHANGES {table}, @p1) AS CT
        LEFT JOIN {table} AS T ON {joined}
        WHERE CT.SYS_CHANGE_VERSION <= @p2
        ORDER BY {order}
    """
