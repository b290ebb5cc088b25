"""rivet, as of 2026 (crate rivet-cli, later than 0.3.5): what panchenkoai/rivet sends, through tiberius.

Read in ``src/source/mssql`` (mod.rs at 01bbbbb8, proxy.rs at b535dbb5, cdc.rs at 02778da1) and ``src/source/query.rs``
at 03a72e32.
"""

from __future__ import annotations

CONNECT = "SELECT 1"
SESSION = "SELECT CAST(@@SPID AS INT)"
EDITION = "SELECT CAST(SERVERPROPERTY('EngineEdition') AS INT)"
BANNER = "SELECT @@VERSION"

CONTEXT = (
    "SELECT CAST(SERVERPROPERTY('ProductVersion') AS NVARCHAR(128))",
    "SELECT CAST(SERVERPROPERTY('Edition') AS NVARCHAR(128))",
    "SELECT CAST(@@LOCK_TIMEOUT AS NVARCHAR(32))",
    "SELECT CAST(@@MAX_CONNECTIONS AS NVARCHAR(32))",
    "SELECT CAST(SERVERPROPERTY('Collation') AS NVARCHAR(128))",
)

MAX_LSN = "SELECT CONVERT(varchar(24), sys.fn_cdc_get_max_lsn(), 1)"
MIN_LSN = "SELECT CONVERT(varchar(24), sys.fn_cdc_get_min_lsn(@P1), 1)"
AGENT = "SELECT status_desc FROM sys.dm_server_services WHERE servicename LIKE 'SQL Server Agent%'"
MAY_SEE_WAITS = "SELECT HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW SERVER STATE')"

WAITS = "SELECT SUM(waiting_tasks_count), SUM(wait_time_ms) FROM sys.dm_os_wait_stats WHERE wait_type LIKE 'LCK%'"
PRESSURE = (
    "SELECT cntr_value FROM sys.dm_os_performance_counters"
    " WHERE counter_name LIKE 'Log Flush Waits%' AND instance_name = '_Total'"
)
"""Both are asked for, and done without where they fail."""

KEY = (
    "SELECT STRING_AGG(c.name, CHAR(31)) WITHIN GROUP (ORDER BY ic.key_ordinal)"
    " FROM sys.indexes i"
    " JOIN sys.index_columns ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id"
    " JOIN sys.columns c ON c.object_id = ic.object_id AND c.column_id = ic.column_id"
    " WHERE i.is_primary_key = 1 AND i.object_id = OBJECT_ID(N'{table}')"
)

DECIMALS = (
    "SELECT c.name, c.precision, c.scale"
    " FROM sys.columns c"
    " JOIN sys.types t ON t.user_type_id = c.user_type_id"
    " JOIN sys.objects o ON o.object_id = c.object_id"
    " JOIN sys.schemas s ON s.schema_id = o.schema_id"
    " WHERE s.name = N'{schema}' AND o.name = N'{table}'"
    " AND t.name IN ('decimal', 'numeric')"
)

SHAPE = "SELECT * FROM ({query}) AS _rivet_q WHERE 1 = 0"

LOCK_TIMEOUT = "SET LOCK_TIMEOUT {milliseconds}"
PAGE = "SELECT * FROM ({query}) AS _rivet ORDER BY [{key}] OFFSET 0 ROWS FETCH NEXT {size} ROWS ONLY"
NEXT_PAGE = (
    "SELECT * FROM ({query}) AS _rivet WHERE [{key}] > N'{last}' ORDER BY [{key}]"
    " OFFSET 0 ROWS FETCH NEXT {size} ROWS ONLY"
)
BY_CURSOR = "SELECT * FROM ({query}) AS _rivet ORDER BY [{key}]"
BEHIND_CURSOR = "SELECT * FROM ({query}) AS _rivet WHERE [{key}] > N'{last}' ORDER BY [{key}]"

CAPTURED = (
    "SELECT t.name + ':' + CAST(COUNT(cc.column_name) AS varchar(12)) + '/' +"
    " CAST((SELECT COUNT(*) FROM sys.columns sc WHERE sc.object_id = t.object_id) AS varchar(12))"
    " FROM cdc.change_tables ct"
    " JOIN sys.tables t ON t.object_id = ct.source_object_id"
    " JOIN cdc.captured_columns cc ON cc.object_id = ct.object_id"
    " WHERE ct.capture_instance = '{instance}'"
    " GROUP BY t.name, t.object_id"
)

SOURCE = (
    "SELECT OBJECT_SCHEMA_NAME(source_object_id), OBJECT_NAME(source_object_id)"
    " FROM cdc.change_tables WHERE capture_instance = @P1"
)

_PURGED = (
    "rivet cdc: the resume position is older than the SQL Server CDC change-table retention (the cleanup job removed"
    " it). Resuming would silently skip changes \u2014 re-snapshot the table (mode: full) and restart CDC from a fresh"
    " checkpoint."
)


def poll(instance: str, after: str | None, *, size: int, upto: str | None = None, pinned: bool = False) -> str:
    """``fill_sql``, a batch.

    :param after: digits of the last LSN; None reads from the instance's first
    :param size: rows of one poll, at least
    :param upto: digits of the LSN of a bounded run; None asks for the largest
    :param pinned: nothing was read up to ``after`` yet: it may lie below the instance's start
    """
    first = f"sys.fn_cdc_increment_lsn(0x{after})" if after else f"sys.fn_cdc_get_min_lsn('{instance}')"
    last = f"0x{upto}" if upto else "sys.fn_cdc_get_max_lsn()"
    floor = (
        f"DECLARE @start binary(10) = (SELECT start_lsn FROM cdc.change_tables WHERE capture_instance = '{instance}');"
        " IF @from IS NOT NULL AND @start IS NOT NULL AND @from < @start SET @from = @min;"
    )
    return (
        f"DECLARE @from binary(10) = {first};"
        f" DECLARE @min binary(10) = sys.fn_cdc_get_min_lsn('{instance}');"
        f" DECLARE @max binary(10) = {last};"
        f" {floor if pinned else ''}"
        " IF @from IS NOT NULL AND @min IS NOT NULL AND @from < @min"
        f" THROW 51000, '{_PURGED}', 1;"
        " DECLARE @to binary(10) = NULL;"
        " IF @from IS NOT NULL AND @max IS NOT NULL AND @from <= @max"
        f" SELECT @to = MAX(s) FROM (SELECT TOP ({size}) __$start_lsn AS s"
        f" FROM cdc.fn_cdc_get_all_changes_{instance}(@from, @max, N'all')"
        " ORDER BY __$start_lsn) q;"
        " IF @to IS NOT NULL"
        f" SELECT * FROM cdc.fn_cdc_get_all_changes_{instance}(@from, @to, N'all')"
        " ORDER BY __$start_lsn, __$seqval;"
    )
