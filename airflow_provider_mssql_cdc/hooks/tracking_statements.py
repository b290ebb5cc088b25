"""The statements that the hook for Change Tracking sends: plain T-SQL for SQL Server 2016 and later.

``%s`` are the driver's parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_mssql_cdc.core import tracked_catalog
from airflow_provider_mssql_cdc.core.change_tracking import Retention, TrackedTable
from airflow_provider_mssql_cdc.core.exceptions import ParameterError
from airflow_provider_mssql_cdc.core.position import Version
from airflow_provider_mssql_cdc.core.table import Column, TableName, literal, quote

# The database is found by name, since ids differ from DB_ID() on Azure SQL Database (docs: sys.databases); which of
# them the view of tracked databases has there is not said. A secondary replica answers this, but nothing about versions
# (error 22117).
STATUS = """
SELECT d.name, USER_NAME(), CAST(DATABASEPROPERTYEX(DB_NAME(), N'IsChangeTrackingEnabled') AS int),
  c.retention_period, c.retention_period_units_desc, c.is_auto_cleanup_on,
  d.snapshot_isolation_state, CAST(DATABASEPROPERTYEX(DB_NAME(), N'Updateability') AS nvarchar(128)),
  d.compatibility_level
FROM sys.databases AS d
LEFT JOIN sys.change_tracking_databases AS c ON c.database_id IN (DB_ID(), d.database_id)
WHERE d.name = DB_NAME()"""

SNAPSHOT_ISOLATION_ON = 1
"""``snapshot_isolation_state`` while it is on; others are off, and being switched (docs: sys.databases)."""

# some secondary replicas answer, with what does not fit together: a version counts beside READ_WRITE alone
_UPDATEABILITY = "CAST(DATABASEPROPERTYEX(DB_NAME(), N'Updateability') AS nvarchar(128))"
CURRENT_VERSION = f"SELECT CHANGE_TRACKING_CURRENT_VERSION(), {_UPDATEABILITY}"
"""The current version, and whether this may be a secondary replica."""

# The current version is read at once and first, so that it is a lower bound of what the lowest valid ones allow. For
# those only the function counts: the catalogue shows them to logins that may not ask about changes, too.
_VERSIONS = f"""
{CURRENT_VERSION};
SELECT w.ordinal, t.object_id, s.name, t.name, t.create_date, ct.object_id, ct.is_track_columns_updated_on,
  ct.begin_version, CHANGE_TRACKING_MIN_VALID_VERSION(t.object_id), it.object_id, it.create_date,
  (SELECT snapshot_isolation_state FROM sys.databases WHERE name = DB_NAME())
FROM (VALUES {{tables}}) AS w (ordinal, schema_name, table_name)
JOIN sys.schemas AS s ON s.name COLLATE DATABASE_DEFAULT = w.schema_name
JOIN sys.tables AS t ON t.schema_id = s.schema_id AND t.name COLLATE DATABASE_DEFAULT = w.table_name
LEFT JOIN sys.change_tracking_tables AS ct ON ct.object_id = t.object_id
LEFT JOIN sys.internal_tables AS it ON it.parent_id = t.object_id AND it.internal_type = 209
ORDER BY w.ordinal"""


def versions(tables: int) -> str:
    """The statement about so many tables; parameters of each: ordinal, schema, table.

    Result sets: ``CURRENT_VERSION``; a row for each table that the login sees.
    """
    row = "(%s, CAST(%s AS nvarchar(128)), CAST(%s AS nvarchar(128)))"
    return _VERSIONS.format(tables=", ".join([row] * tables))


COLUMNS = tracked_catalog.columns("IN %s")

TRACKED = """
SELECT s.name, t.name
FROM sys.change_tracking_tables AS ct
JOIN sys.tables AS t ON t.object_id = ct.object_id
JOIN sys.schemas AS s ON s.schema_id = t.schema_id
ORDER BY s.name, t.name"""


def enable_database(retention: Retention, *, auto_cleanup: bool) -> str:
    """ALTER DATABASE takes no variables; the options are numbers and words."""
    return f"ALTER DATABASE CURRENT SET CHANGE_TRACKING = ON ({_options(retention, auto_cleanup)})"


def set_options(retention: Retention | None, *, auto_cleanup: bool | None) -> str:
    """The statement that changes the options of a tracked database, of which one at least is given."""
    return f"ALTER DATABASE CURRENT SET CHANGE_TRACKING ({_options(retention, auto_cleanup)})"


def _options(retention: Retention | None, auto_cleanup: bool | None) -> str:
    said = [] if retention is None else [retention.option]
    if auto_cleanup is not None:
        said.append(f"AUTO_CLEANUP = {'ON' if auto_cleanup else 'OFF'}")
    return ", ".join(said)


DISABLE_DATABASE = "ALTER DATABASE CURRENT SET CHANGE_TRACKING = OFF"

# Who waits to change a table keeps all others waiting behind, readers too. A SET within sp_executesql ends with it.
EXECUTE = "EXEC sp_executesql %s"
_LONGEST_WAIT = 2_147_483
"""Seconds that SET LOCK_TIMEOUT takes, in milliseconds of an int."""
_ALTER_TABLE = """
SET LOCK_TIMEOUT {milliseconds};
SET DEADLOCK_PRIORITY LOW;
ALTER TABLE {table} {change} CHANGE_TRACKING"""


def enable_table(table: TableName, *, columns_updated: bool, lock_timeout: float) -> str:
    """The inner text that tracks a table."""
    text = _ALTER_TABLE.format(milliseconds=_milliseconds(lock_timeout), table=table.quoted, change="ENABLE")
    return f"{text} WITH (TRACK_COLUMNS_UPDATED = {'ON' if columns_updated else 'OFF'})"


def disable_table(table: TableName, *, lock_timeout: float) -> str:
    """The inner text that tracks a table no longer."""
    return _ALTER_TABLE.format(milliseconds=_milliseconds(lock_timeout), table=table.quoted, change="DISABLE")


def _milliseconds(lock_timeout: float) -> int:
    if not 0 <= lock_timeout <= _LONGEST_WAIT:
        raise ParameterError(f"lock_timeout={lock_timeout!r}: expected seconds, from 0 to {_LONGEST_WAIT}")
    return int(lock_timeout * 1000)


_STAMP = "timestamp"  # the catalogue's name of rowversion

EXECUTE_CHANGES = (
    "EXEC sp_executesql %s, N'@limit int, @after bigint, @upto bigint, @table int', "
    "@limit = %s, @after = %s, @upto = %s, @table = %s"
)


def updatable(table: TrackedTable) -> tuple[Column, ...]:
    """The columns that an update may name without touching the key."""
    return tuple(
        column
        for column in table.columns
        if not column.computed and column.type != _STAMP and column.name not in table.primary_key
    )


def changes(table: TrackedTable) -> str:
    """The inner text that lists changes.

    Result sets: ``CURRENT_VERSION``; version, creation, operation, mask, context, the key, and whether each of the
    ``updatable`` columns is in the mask; the lowest valid version, read afterwards.
    """
    keys = ", ".join(f"c.{quote(name)}" for name in table.primary_key)
    asked = updatable(table) if table.columns_updated else ()
    masks = "".join(
        f", CHANGE_TRACKING_IS_COLUMN_IN_MASK({column.column_id}, c.SYS_CHANGE_COLUMNS)" for column in asked
    )
    return (
        f"{CURRENT_VERSION};\n"
        "SELECT TOP (@limit) c.SYS_CHANGE_VERSION, c.SYS_CHANGE_CREATION_VERSION, c.SYS_CHANGE_OPERATION,"
        f" c.SYS_CHANGE_COLUMNS, c.SYS_CHANGE_CONTEXT, {keys}{masks}"
        f" FROM CHANGETABLE(CHANGES {table.source.quoted}, @after) AS c"
        f" WHERE c.SYS_CHANGE_VERSION <= @upto ORDER BY c.SYS_CHANGE_VERSION, {keys};\n"
        "SELECT CHANGE_TRACKING_MIN_VALID_VERSION(@table)"
    )


EXECUTE_PROBE = "EXEC sp_executesql %s, N'@after varbinary(max)', @after = %s"
_BYTES = 8


def packed(versions: Sequence[Version]) -> bytearray:
    """Versions one after the other, as ``probe`` takes them apart."""
    return bytearray(b"".join(version.value.to_bytes(_BYTES) for version in versions))


def probe(tables: Sequence[tuple[TableName, Sequence[str]]]) -> str:
    """The inner text of a probe, constant for these tables.

    Result sets: ``CURRENT_VERSION``, in a statement of its own before the changes are looked at, so that it is a lower
    bound of what they show; the places of the tables that have no row left which they had at the version, if this is
    the lowest valid one, and of those that have changes (both only if there are tables), in this order, so that what
    took the rows shows as changes unless it was a TRUNCATE; object_id and lowest valid version of each tracked table,
    read last, since cleanup raises them before it removes anything.

    :param tables: with the columns of their primary keys
    """
    # CHANGETABLE takes a constant or a variable, and no expression
    taken = ", ".join(
        f"@v{place} bigint = CAST(SUBSTRING(@after, {place * _BYTES + 1}, {_BYTES}) AS bigint)"
        for place in range(len(tables))
    )
    changed = " UNION ALL ".join(
        f"SELECT {place} AS place WHERE EXISTS (SELECT 1 FROM CHANGETABLE(CHANGES {table.quoted}, @v{place}) AS c)"
        for place, (table, _) in enumerate(tables)
    )
    emptied = " UNION ALL ".join(
        # CASE asks one after the other (docs: CASE)
        f"SELECT {place} AS place WHERE 1 = CASE WHEN"
        f" CHANGE_TRACKING_MIN_VALID_VERSION(OBJECT_ID({literal(table.quoted)})) <> @v{place} THEN 0"
        f" WHEN EXISTS ({tracked_catalog.untouched(table, key, f'@v{place}')}) THEN 0 ELSE 1 END"
        for place, (table, key) in enumerate(tables)
    )
    parts = [f"DECLARE {taken}", CURRENT_VERSION, emptied, changed] if tables else [CURRENT_VERSION]
    lows = "SELECT object_id, CHANGE_TRACKING_MIN_VALID_VERSION(object_id) FROM sys.change_tracking_tables"
    return ";\n".join([*parts, lows])


EXECUTE_MASK = "EXEC sp_executesql %s, N'@mask varbinary(4100)', @mask = %s"


def in_mask(table: TrackedTable) -> str:
    """The inner text that asks of each of the ``updatable`` columns whether it is in a mask."""
    asked = (f"CHANGE_TRACKING_IS_COLUMN_IN_MASK({column.column_id}, @mask)" for column in updatable(table))
    return f"SELECT {', '.join(asked)}"


# Of the internal tables 209 are side tables, and 210 the commit table (docs: sys.internal_tables).
SIZES = """
SELECT s.name, t.name, SUM(CASE WHEN p.index_id IN (0, 1) THEN p.row_count ELSE 0 END),
  SUM(p.reserved_page_count) * 8192
FROM sys.internal_tables AS it
JOIN sys.dm_db_partition_stats AS p ON p.object_id = it.object_id
LEFT JOIN sys.tables AS t ON t.object_id = it.parent_id
LEFT JOIN sys.schemas AS s ON s.schema_id = t.schema_id
WHERE it.internal_type = 210 OR (it.internal_type = 209 AND t.object_id IS NOT NULL)
GROUP BY it.object_id, s.name, t.name
ORDER BY s.name, t.name"""

CLEANUPS = """
SELECT TOP (%s) table_name, start_time, end_time, rows_cleaned_up, cleanup_version, CAST(comments AS nvarchar(max))
FROM dbo.MSchange_tracking_history
ORDER BY start_time DESC, table_name"""

MAY_ALTER = "SELECT USER_NAME(), HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'ALTER')"

DATABASE_STATE = """
SELECT USER_NAME(), HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'VIEW DATABASE STATE'),
  HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'VIEW DATABASE PERFORMANCE STATE')"""

MAY_TRACK = "HAS_PERMS_BY_NAME(%s, 'OBJECT', 'VIEW CHANGE TRACKING')"
MAY_READ = "HAS_PERMS_BY_NAME(%s, 'OBJECT', 'SELECT')"
MAY_READ_COLUMN = "HAS_PERMS_BY_NAME(%s, 'OBJECT', 'SELECT', %s, 'COLUMN')"


def permissions(asked: list[str]) -> str:
    """The statement that numbers the answers to what is asked."""
    one = " UNION ALL ".join(f"SELECT {number} AS n, {each} AS may" for number, each in enumerate(asked))
    return f"{one} ORDER BY n"
