"""OLake, as of 2026: what datazip-inc/olake sends, through go-mssqldb.

Read in ``pkg/jdbc/jdbc.go`` and ``drivers/mssql/internal`` (mssql.go at 05af31d2, backfill.go at 0c5bb4c2,
prerequisites.go at 381a9b5a, cdc.go of the same time), white space aside. Later versions sample the primary key first
(TABLESAMPLE): that text was not found.
"""

from __future__ import annotations

from collections.abc import Sequence

CDC_SUPPORT = """
        SELECT is_cdc_enabled
        FROM sys.databases
        WHERE name = DB_NAME()
    """

TABLES = """
        SELECT
            t.TABLE_SCHEMA,
            t.TABLE_NAME
        FROM INFORMATION_SCHEMA.TABLES t
        WHERE t.TABLE_TYPE = 'BASE TABLE'
        AND t.TABLE_SCHEMA NOT IN ('INFORMATION_SCHEMA','sys','cdc')
    """

COLUMNS = """
        SELECT  c.COLUMN_NAME,
                c.DATA_TYPE,
                c.IS_NULLABLE,
                CAST(CASE WHEN tc.CONSTRAINT_TYPE = 'PRIMARY KEY' THEN 1 ELSE 0 END AS BIT) AS IS_PRIMARY_KEY
        FROM    INFORMATION_SCHEMA.COLUMNS AS c
        LEFT JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE AS kcu
               ON  c.TABLE_CATALOG = kcu.TABLE_CATALOG
               AND c.TABLE_SCHEMA  = kcu.TABLE_SCHEMA
               AND c.TABLE_NAME    = kcu.TABLE_NAME
               AND c.COLUMN_NAME   = kcu.COLUMN_NAME
        LEFT JOIN INFORMATION_SCHEMA.TABLE_CONSTRAINTS AS tc
               ON  kcu.TABLE_CATALOG = tc.TABLE_CATALOG
               AND kcu.TABLE_SCHEMA  = tc.TABLE_SCHEMA
               AND kcu.TABLE_NAME    = tc.TABLE_NAME
               AND kcu.CONSTRAINT_NAME = tc.CONSTRAINT_NAME
               AND tc.CONSTRAINT_TYPE = 'PRIMARY KEY'
        WHERE   c.TABLE_SCHEMA = @p1
          AND   c.TABLE_NAME   = @p2
        ORDER BY c.ORDINAL_POSITION
    """

MAY_SEE_SCANS = """
        SELECT CAST(CASE
            WHEN HAS_PERMS_BY_NAME(NULL, 'DATABASE', 'VIEW DATABASE STATE') = 1 THEN 1
            WHEN HAS_PERMS_BY_NAME(NULL, 'DATABASE', 'VIEW DATABASE PERFORMANCE STATE') = 1 THEN 1
            ELSE 0
        END AS BIT)
    """

CAPTURE_JOB = "SELECT maxtrans, pollinginterval FROM msdb.dbo.cdc_jobs WHERE database_id = DB_ID()"

LATEST_SCAN = """
        SELECT TOP (1) session_id, end_time, tran_count
        FROM sys.dm_cdc_log_scan_sessions
        WHERE scan_phase = 'Done'
        ORDER BY session_id DESC
    """

MAX_LSN = "SELECT sys.fn_cdc_get_max_lsn()"

ADVANCE_LSN = "SELECT sys.fn_cdc_increment_lsn(@p1)"

ROW_STATS = """
        SELECT
            SUM(p.rows) AS row_count,
            CEILING((SUM(a.total_pages) * 8.0 * 1024.0) / NULLIF(SUM(p.rows), 0)) AS avg_row_bytes
        FROM sys.tables t
        JOIN sys.indexes i ON t.object_id = i.object_id
        JOIN sys.partitions p ON i.object_id = p.object_id AND i.index_id = p.index_id
        JOIN sys.allocation_units a ON p.partition_id = a.container_id
        JOIN sys.schemas s ON t.schema_id = s.schema_id
        WHERE t.type = 'U'
        AND i.index_id IN (0,1)
        AND s.name = @p1
        AND t.name = @p2
    """

COLUMN_TYPE = """
        SELECT c.DATA_TYPE
        FROM INFORMATION_SCHEMA.COLUMNS AS c
        WHERE c.TABLE_SCHEMA = @p1
          AND c.TABLE_NAME = @p2
          AND c.COLUMN_NAME = @p3
    """

HEAP_EXTREMES = "SELECT MIN(%%physloc%%), MAX(%%physloc%%) FROM [dbo].[labels]"
HEAP_CHUNK = "SELECT * FROM [dbo].[labels] WITH (READPAST) WHERE 1 = 1 ORDER BY %%physloc%%"


def capture_instances(streams: Sequence[str]) -> str:
    """``MSSQLCDCDiscoverQuery``.

    :param streams: ``schema.table`` of each
    """
    ids = "','".join(streams)
    return f"""
        SELECT
            s.name AS schema_name,
            t.name AS table_name,
            c.capture_instance,
            c.start_lsn
        FROM sys.tables t
        JOIN sys.schemas s
            ON t.schema_id = s.schema_id
        JOIN cdc.change_tables c
            ON t.object_id = c.source_object_id
        WHERE CONCAT(s.name, '.', t.name) IN ('{ids}')
        ORDER BY
            s.name ASC,
            t.name ASC,
            c.start_lsn ASC"""


def ddl_history(streams: Sequence[str]) -> str:
    """``MSSQLCDCGetDDLHistoryBulkQuery``.

    :param streams: ``schema.table`` of each
    """
    ids = "','".join(streams)
    return f"""
        SELECT sch.name, tbl.name, hist.required_column_update, hist.ddl_command, hist.ddl_lsn, hist.ddl_time
        FROM cdc.ddl_history AS hist
        JOIN sys.tables AS tbl ON hist.source_object_id = tbl.object_id
        JOIN sys.schemas AS sch ON tbl.schema_id = sch.schema_id
        WHERE CONCAT(sch.name, '.', tbl.name) IN ('{ids}')
        ORDER BY hist.ddl_lsn ASC
    """


def extremes(table: str, keys: Sequence[str]) -> str:
    """``MinMaxQueryMSSQL``.

    :param table: quoted, as the others'
    :param keys: names of the key's columns in the order of the alphabet
    """
    each, down = ", ".join(f"[{key}]" for key in keys), ", ".join(f"[{key}] DESC" for key in keys)
    joined = _joined(keys)
    return f"""
    SELECT
        (SELECT TOP 1 {joined} FROM {table} ORDER BY {each}) AS min_value,
        (SELECT TOP 1 {joined} FROM {table} ORDER BY {down}) AS max_value
    """


def next_chunk_end(table: str, keys: Sequence[str], size: int) -> str:
    """``MSSQLNextChunkEndQuery`` for a key of one column or two."""
    if len(keys) == 1:
        behind = f"([{keys[0]}] > @p1)"
    else:
        behind = f"([{keys[0]}] > @p1) OR ([{keys[0]}] = @p2 AND [{keys[1]}] > @p3)"
    each = ", ".join(f"[{key}]" for key in keys)
    return (
        f"WITH ordered AS (SELECT {_joined(keys)} AS key_str, ROW_NUMBER() OVER (ORDER BY {each}) AS rn FROM {table}"
        f" WHERE {behind}) SELECT key_str FROM ordered WHERE rn = {size}"
    )


def chunk(table: str, keys: Sequence[str], condition: str) -> str:
    """``MSSQLChunkScanQuery``.

    :param condition: of ``buildLexicographicChunkCondition``
    """
    each = ", ".join(f"[{key}]" for key in keys)
    return f"SELECT * FROM {table} WITH (READPAST) WHERE {condition} ORDER BY {each}"


def changes(instance: str) -> str:
    """``MSSQLCDCGetChangesQuery``."""
    return f"""
        SELECT *
        FROM cdc.[fn_cdc_get_all_changes_{instance}](@p1, @p2, 'all')
        ORDER BY [__$start_lsn], [__$seqval]
    """


def _joined(keys: Sequence[str]) -> str:
    parts = "], ',', [".join(keys)
    return f"[{parts}]" if len(keys) == 1 else f"CONCAT([{parts}])"
