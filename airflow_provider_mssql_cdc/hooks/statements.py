"""The statements that the hook sends: plain T-SQL for SQL Server 2016 and later.

``%s`` are the driver's parameters. LSNs go in as ``bytearray``, since pymssql takes ASCII ``bytes`` for text.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from airflow_provider_mssql_cdc.core import catalog
from airflow_provider_mssql_cdc.core.patterns import ESCAPE
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.table import quote

_FACTS = """
    d.name, USER_NAME(), d.is_cdc_enabled, GETDATE(), DATEPART(TZOFFSET, SYSDATETIMEOFFSET()), d.collation_name,
    CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(128)), CAST(SERVERPROPERTY('Edition') AS nvarchar(128)),
    CAST(SERVERPROPERTY('EngineEdition') AS int)"""

_RIGHTS_NEEDED = """
    (SELECT j.retention FROM msdb.dbo.cdc_jobs AS j WHERE j.database_id = DB_ID() AND j.job_type = N'cleanup'),
    (SELECT r.recovery_fork_guid FROM sys.database_recovery_status AS r WHERE r.database_id = DB_ID()),
    (SELECT CAST(c.value_in_use AS int) FROM sys.configurations AS c WHERE c.name = N'max text repl size (B)')"""

_WITHOUT_RIGHTS = "\n    CAST(NULL AS bigint), CAST(NULL AS uniqueidentifier), CAST(NULL AS int)"

# The newest row is read at once: of two reads in one statement, the second may see what was captured in between.
# A statement that names cdc.lsn_time_mapping cannot be compiled where CDC is off; within IF it need not be.
# The database is found by name, since ids differ from DB_ID() on Azure SQL Database (docs: sys.databases).
_STATUS = """
IF EXISTS (SELECT 1 FROM sys.databases WHERE name = DB_NAME() AND is_cdc_enabled = 1)
  SELECT{facts},{more},
    m.start_lsn, m.tran_end_time, (SELECT MIN(start_lsn) FROM cdc.lsn_time_mapping)
  FROM sys.databases AS d
  LEFT JOIN (SELECT TOP (1) start_lsn, tran_end_time FROM cdc.lsn_time_mapping ORDER BY start_lsn DESC) AS m ON 1 = 1
  WHERE d.name = DB_NAME()
ELSE
  SELECT{facts},{more},
    CAST(NULL AS binary(10)), CAST(NULL AS datetime), CAST(NULL AS binary(10))
  FROM sys.databases AS d
  WHERE d.name = DB_NAME()"""

STATUS = _STATUS.format(facts=_FACTS, more=_RIGHTS_NEEDED)
STATUS_WITHOUT_RIGHTS = _STATUS.format(facts=_FACTS, more=_WITHOUT_RIGHTS)

_OF_OTHERS = f"""
  SELECT{_FACTS.replace("d.is_cdc_enabled", "CAST(0 AS bit)")},{{more}},
    CAST(NULL AS binary(10)), CAST(NULL AS datetime), CAST(NULL AS binary(10))
  FROM sys.databases AS d
  WHERE d.name = DB_NAME()"""
STATUS_TEXTS = {
    True: (STATUS, STATUS_WITHOUT_RIGHTS),
    False: (_OF_OTHERS.format(more=_RIGHTS_NEEDED), _OF_OTHERS.format(more=_WITHOUT_RIGHTS)),
}
"""The status by whether change data capture is asked, which not each login may: it counts as off where it is not. Each
with what a login takes that lacks some rights."""

_TABLES = """
SELECT p.ordinal, p.purpose, t.object_id, s.name, t.name, t.is_tracked_by_cdc, {instance}
FROM (VALUES {patterns}) AS p (ordinal, purpose, schema_pattern, table_pattern)
JOIN sys.tables AS t ON t.name COLLATE DATABASE_DEFAULT LIKE p.table_pattern ESCAPE N'{escape}'
JOIN sys.schemas AS s ON s.schema_id = t.schema_id
  AND (s.name COLLATE DATABASE_DEFAULT LIKE p.schema_pattern ESCAPE N'{escape}'
    OR p.schema_pattern IS NULL AND s.name = SCHEMA_NAME())
{join}
WHERE t.is_ms_shipped = 0 AND s.name <> N'cdc'"""

_INSTANCE = """ct.capture_instance, ct.object_id, ct.create_date, ct.start_lsn,
  ct.supports_net_changes, ct.role_name, ct.index_name, ct.filegroup_name, ct.partition_switch, ct.has_drop_pending,
  ct.end_lsn"""


WANTED, EXCLUDED = range(2)
"""What a pattern is for: tables to take, tables to leave out."""


def tables(patterns: int, *, with_instances: bool) -> str:
    """The statement that resolves so many patterns; parameters of each: ordinal, purpose, schema, table.

    The comparison is made by the server, in the database's collation.

    :param with_instances: whether to add the tables' capture instances, one row each; only where CDC is on
    """
    row = "(%s, %s, CAST(%s AS nvarchar(400)), CAST(%s AS nvarchar(400)))"
    return _TABLES.format(
        patterns=", ".join([row] * patterns),
        escape=ESCAPE,
        instance=_INSTANCE if with_instances else "NULL",
        join="LEFT JOIN cdc.change_tables AS ct ON ct.source_object_id = t.object_id" if with_instances else "",
    )


RIGHTS_TO_READ = """
SELECT HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'UNMASK'),
  HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'VIEW DEFINITION')"""

MASKED, FILTERED = range(2)
"""What a row of ``PROTECTED`` says: a masked column of a table or a change table, or a policy that filters rows."""

_MASKED_TABLES = f"""
SELECT {MASKED}, t.object_id, s.name, t.name, c.name
FROM sys.tables AS t
JOIN sys.schemas AS s ON s.schema_id = t.schema_id
JOIN sys.columns AS c ON c.object_id = t.object_id
WHERE t.object_id IN %s AND c.is_masked = 1
UNION ALL"""
_MASKED_CHANGE_TABLES = f"""
SELECT {MASKED}, ct.source_object_id, N'cdc', ct.capture_instance + N'_CT', c.name
FROM cdc.change_tables AS ct
JOIN sys.columns AS c ON c.object_id = ct.object_id
WHERE ct.source_object_id IN %s AND c.is_masked = 1
UNION ALL"""
_FILTERED = f"""
SELECT {FILTERED}, pr.target_object_id, NULL, NULL, p.name
FROM sys.security_predicates AS pr
JOIN sys.security_policies AS p ON p.object_id = pr.object_id
WHERE pr.target_object_id IN %s AND pr.predicate_type = 0 AND p.is_enabled = 1"""

PROTECTED = _MASKED_TABLES + _MASKED_CHANGE_TABLES + _FILTERED
PROTECTED_TABLES = _MASKED_TABLES + _FILTERED
"""The same where CDC is off: there is no schema cdc."""


def may_unmask(columns: int) -> str:
    """The statement that tells for so many columns whether the login reads their values; NULL before 2022,
    where only the database's right counts (docs: dynamic data masking)."""
    one = "SELECT {} AS n, HAS_PERMS_BY_NAME(%s, 'OBJECT', 'UNMASK', %s, 'COLUMN') AS may"
    return " UNION ALL ".join(one.format(number) for number in range(columns))


DEFAULT_SCHEMA = "SELECT SCHEMA_NAME()"
NAMES = """
SELECT s.name, t.name FROM sys.tables AS t JOIN sys.schemas AS s ON s.schema_id = t.schema_id
WHERE t.is_ms_shipped = 0 AND s.name <> N'cdc'"""

NAME_OF = f"{NAMES} AND t.object_id = %s"

INSTANCE_OF = """
IF EXISTS (SELECT 1 FROM sys.databases WHERE name = DB_NAME() AND is_cdc_enabled = 1)
  SELECT TOP 1 ct.object_id FROM cdc.change_tables AS ct WHERE ct.source_object_id = %s"""

INSTANCE_NAMES = "SELECT capture_instance, source_object_id FROM cdc.change_tables"

ROW_COUNTS = """
SELECT p.object_id, SUM(p.rows) FROM sys.partitions AS p
WHERE p.object_id IN %s AND p.index_id IN (0, 1) GROUP BY p.object_id"""

COLUMNS = catalog.columns("IN %s")

DDL_HISTORY = """
SELECT ct.capture_instance, h.ddl_command, h.ddl_lsn, h.ddl_time, h.required_column_update
FROM cdc.ddl_history AS h
JOIN cdc.change_tables AS ct ON ct.object_id = h.object_id
WHERE h.object_id IN %s AND h.ddl_lsn > %s
ORDER BY h.ddl_lsn, ct.capture_instance"""

MAX_LSN = "SELECT sys.fn_cdc_get_max_lsn()"
CAPTURE_PROGRESS = """
SELECT GETDATE(), n.max_lsn, m.tran_end_time, {empty_scans}, n.latest, DATEPART(TZOFFSET, SYSDATETIMEOFFSET())
FROM (SELECT MAX(start_lsn) AS max_lsn, MAX(tran_end_time) AS latest FROM cdc.lsn_time_mapping) AS n
LEFT JOIN cdc.lsn_time_mapping AS m ON m.start_lsn = n.max_lsn"""
# fn_cdc_get_min_lsn answers with zeros who may read the change table but is no member of its gating role, so the mark
# is read where that function reads it (docs: sys.fn_cdc_get_min_lsn, cdc.change_tables).
MIN_LSN = "SELECT start_lsn FROM cdc.change_tables WHERE capture_instance = %s"
INCREMENT = "SELECT sys.fn_cdc_increment_lsn(%s)"
DECREMENT = "SELECT sys.fn_cdc_decrement_lsn(%s)"
LSN_TO_TIME = "SELECT sys.fn_cdc_map_lsn_to_time(%s)"
TIME_TO_LSN = "SELECT sys.fn_cdc_map_time_to_lsn(%s, CAST(%s AS datetime))"
# Each edge of an interval is one place in the log, which does not move: not so what fn_cdc_map_time_to_lsn finds once
# the clock has gone back.
CROSSING = """
SELECT c.lsn,
  (SELECT MAX(start_lsn) FROM cdc.lsn_time_mapping WHERE start_lsn < c.lsn),
  (SELECT MIN(tran_end_time) FROM cdc.lsn_time_mapping WHERE start_lsn > c.lsn AND tran_end_time < CAST(%s AS datetime))
FROM (SELECT MIN(start_lsn) AS lsn FROM cdc.lsn_time_mapping WHERE tran_end_time >= CAST(%s AS datetime)) AS c"""
WITNESS = """
SELECT TOP (1) start_lsn, tran_end_time FROM cdc.lsn_time_mapping WHERE start_lsn <= %s ORDER BY start_lsn DESC"""
TRANSACTIONS = """
SELECT TOP (%s) start_lsn, tran_begin_time, tran_end_time, tran_id
FROM cdc.lsn_time_mapping
WHERE start_lsn > %s AND start_lsn <= %s AND tran_id <> 0x00
ORDER BY start_lsn"""

AGENT = "SELECT status, status_desc FROM sys.dm_server_services WHERE servicename LIKE N'SQL Server Agent (%'"
CAPTURE_JOB = """
SELECT a.start_execution_date, a.stop_execution_date
FROM msdb.dbo.cdc_jobs AS c
JOIN msdb.dbo.sysjobs AS j ON j.job_id = c.job_id
LEFT JOIN msdb.dbo.sysjobactivity AS a ON a.job_id = j.job_id
  AND a.session_id = (SELECT MAX(session_id) FROM msdb.dbo.sysjobactivity)
WHERE c.database_id = DB_ID() AND c.job_type = N'capture'"""
# The newest by its number: the end of an older session may look later in the hour when clocks go back. A scan with an
# error has captured nothing.
LAST_SCAN = """
SELECT TOP (1) end_time FROM sys.dm_cdc_log_scan_sessions
WHERE session_id > 0 AND end_time IS NOT NULL AND error_count = 0 ORDER BY session_id DESC"""
# Of a scan that failed since one went well: the capture tries again and again, and gets no further.
CAPTURE_ERROR = """
SELECT TOP (1) entry_time, error_number, error_message FROM sys.dm_cdc_errors
WHERE session_id > COALESCE((
  SELECT MAX(session_id) FROM sys.dm_cdc_log_scan_sessions WHERE end_time IS NOT NULL AND error_count = 0), 0)
ORDER BY session_id DESC, entry_time DESC"""
UPDATEABILITY = "SELECT CAST(DATABASEPROPERTYEX(DB_NAME(), N'Updateability') AS nvarchar(128))"
RECOVERY_FORK = "SELECT recovery_fork_guid FROM sys.database_recovery_status WHERE database_id = DB_ID()"
HELP_JOBS = "EXEC sys.sp_cdc_help_jobs"
HELP_JOBS_TYPE, HELP_JOBS_RETENTION = 1, 7
AZURE_RETENTION = "SELECT job_type, retention FROM cdc.cdc_jobs WHERE job_type = N'cleanup'"
TIMEZONE = "SELECT CURRENT_TIMEZONE_ID()"
SERVER_NAME = "SELECT @@SERVERNAME"
CDC_ENABLED = "SELECT is_cdc_enabled FROM sys.databases WHERE name = DB_NAME()"

ENABLE_DATABASE = "EXEC sys.sp_cdc_enable_db"
DISABLE_DATABASE = "EXEC sys.sp_cdc_disable_db"
# Who waits to change a table keeps all others waiting behind, readers too. A SET within sp_executesql ends with it.
ENABLE_TABLE = """
EXEC sp_executesql N'
SET LOCK_TIMEOUT {milliseconds};
SET DEADLOCK_PRIORITY LOW;
EXEC sys.sp_cdc_enable_table @source_schema = @schema, @source_name = @table, @role_name = @role,
  @capture_instance = @instance, @supports_net_changes = @net, @index_name = @index,
  @captured_column_list = @columns, @filegroup_name = @filegroup, @allow_partition_switch = @switch',
N'@schema sysname, @table sysname, @role sysname, @instance sysname, @net bit, @index sysname,
  @columns nvarchar(max), @filegroup sysname, @switch bit',
  @schema = %s, @table = %s, @role = %s, @instance = %s, @net = %s, @index = %s, @columns = %s, @filegroup = %s,
  @switch = %s"""
# Each transaction that has read or written rows of a table has a lock of the table. Its name is not asked for: that
# would wait for who alters it.
LOCKED_BY = """
SELECT l.request_session_id, s.login_name, s.host_name, s.program_name,
  DATEDIFF(second, MIN(t.transaction_begin_time), GETDATE())
FROM sys.dm_tran_locks AS l
LEFT JOIN sys.dm_exec_sessions AS s ON s.session_id = l.request_session_id
LEFT JOIN sys.dm_tran_active_transactions AS t
  ON t.transaction_id = l.request_owner_id AND l.request_owner_type = N'TRANSACTION'
WHERE l.resource_type = N'OBJECT' AND l.resource_database_id = DB_ID() AND l.resource_associated_entity_id = %s
  AND l.request_status = N'GRANT' AND l.request_session_id <> @@SPID
GROUP BY l.request_session_id, s.login_name, s.host_name, s.program_name
ORDER BY MIN(t.transaction_begin_time), l.request_session_id"""
LAST_SENT = "SELECT event_type, event_info FROM sys.dm_exec_input_buffer(%s, NULL)"
READS, DENIED, OF_COLUMNS = range(3)
"""What a row of ``READERS`` says: who may read a table, is denied it, or has rights on single columns of it."""

READERS = f"""
SELECT DISTINCT p.name, CASE WHEN g.minor_id <> 0 THEN {OF_COLUMNS} WHEN g.state = 'D' THEN {DENIED} ELSE {READS} END
FROM sys.database_permissions AS g
JOIN sys.database_principals AS p ON p.principal_id = g.grantee_principal_id
WHERE g.class = 1 AND g.major_id = OBJECT_ID(%s) AND g.type = 'SL'
ORDER BY p.name"""
DISABLE_TABLE = "EXEC sys.sp_cdc_disable_table @source_schema = %s, @source_name = %s, @capture_instance = %s"


def change_table(capture_instance: str) -> str:
    """The name of an instance's change table in T-SQL."""
    return f"cdc.{quote(capture_instance + '_CT')}"


def packed(lsns: Collection[Lsn]) -> bytearray:
    """LSNs one after the other, as ``_unpacked`` takes them apart."""
    return bytearray(b"".join(lsn.value for lsn in lsns))


def _unpacked(parameter: str, ordinal: int) -> str:
    # As binary(10), like the column beside it: a varbinary(max) there would keep the index from being used.
    return f"CAST(SUBSTRING({parameter}, {ordinal * Lsn.LENGTH + 1}, {Lsn.LENGTH}) AS binary({Lsn.LENGTH}))"


def _window(ordinal: int, upto: str) -> str:
    return f"[__$start_lsn] > {_unpacked('@after', ordinal)} AND [__$start_lsn] <= {upto}"


EXECUTE_PROBE = "EXEC sp_executesql %s, N'@upto binary(10), @after varbinary(max)', @upto = %s, @after = %s"
EXECUTE_PROBE_WITH_WITNESSES = (
    "EXEC sp_executesql %s, N'@upto binary(10), @after varbinary(max), @witnesses varbinary(max)', "
    "@upto = %s, @after = %s, @witnesses = %s"
)


def probe(instances: Sequence[str], witnesses: int) -> str:
    """The inner text of a probe, constant for these instances and this number of witnesses.

    Result sets: the cut; newest event by ordinal of the instance (only if there are instances); min LSNs; the mapping
    rows of the cut (kind 1) and of the witnesses (kind 2), and the smallest mapped LSN (kind 3), read last, so that one
    that cleanup has just removed lies below it.
    """
    events = " UNION ALL ".join(
        f"SELECT {ordinal} AS ordinal, MAX([__$start_lsn]) AS newest FROM {change_table(name)}"
        f" WHERE {_window(ordinal, '@cut')}"
        for ordinal, name in enumerate(instances)
    )
    wanted = ", ".join(_unpacked("@witnesses", ordinal) for ordinal in range(witnesses))
    known = "start_lsn, tran_end_time FROM cdc.lsn_time_mapping WHERE start_lsn"
    mapping = [
        f"SELECT 1 AS kind, {known} = @cut",
        *([f"SELECT 2, {known} IN ({wanted})"] if witnesses else []),
        "SELECT 3, MIN(start_lsn), NULL FROM cdc.lsn_time_mapping",
    ]
    statements = [
        # In a statement of its own, before the change tables are read: a row of theirs is then never half a scan. Down
        # to a commit: between it and a cut that is none, a database that was restored may still commit something.
        # ISNULL, since COALESCE runs a subquery twice.
        "DECLARE @cut binary(10) ="
        " ISNULL((SELECT MAX(start_lsn) FROM cdc.lsn_time_mapping WHERE start_lsn <= @upto),"
        " ISNULL(@upto, (SELECT MAX(start_lsn) FROM cdc.lsn_time_mapping)))",
        "SELECT @cut AS cut",
        *([events] if events else []),
        "SELECT object_id, start_lsn FROM cdc.change_tables",
        " UNION ALL ".join(mapping),
    ]
    return ";\n".join(statements)


EXECUTE_LIMIT = (
    "EXEC sp_executesql %s, N'@upto binary(10), @after varbinary(max), @limit bigint', "
    "@upto = %s, @after = %s, @limit = %s"
)


def nth_transaction(instances: Sequence[str]) -> str:
    """The inner text that finds the LSN of transaction number ``@limit`` over all windows."""
    each = " UNION ".join(
        f"SELECT lsn FROM (SELECT DISTINCT TOP (@limit) [__$start_lsn] AS lsn FROM {change_table(name)}"
        f" WHERE {_window(ordinal, '@upto')} ORDER BY lsn) AS t{ordinal}"
        for ordinal, name in enumerate(instances)
    )
    first = f"SELECT TOP (@limit) lsn FROM ({each}) AS every_lsn ORDER BY lsn"
    return f"SELECT COUNT(*), MAX(lsn) FROM ({first}) AS first_lsns"


def transaction_at_row(instances: Sequence[str]) -> str:
    """The inner text that finds the last transaction with at most ``@limit`` rows up to its end, or the first.

    One row more than the limit is enough of each table: if it ends within a transaction, that one is over the limit.
    """
    each = " UNION ALL ".join(
        f"SELECT lsn FROM (SELECT TOP (@limit + 1) [__$start_lsn] AS lsn FROM {change_table(name)}"
        f" WHERE {_window(ordinal, '@upto')} ORDER BY lsn) AS t{ordinal}"
        for ordinal, name in enumerate(instances)
    )
    return (
        "SELECT MAX(up_to_here), MAX(CASE WHEN up_to_here <= @limit OR place = 1 THEN lsn END) FROM ("
        "SELECT lsn, SUM(row_count) OVER (ORDER BY lsn ROWS UNBOUNDED PRECEDING) AS up_to_here,"
        " ROW_NUMBER() OVER (ORDER BY lsn) AS place"
        f" FROM (SELECT lsn, COUNT_BIG(*) AS row_count FROM ({each}) AS every_row GROUP BY lsn) AS by_lsn) AS counted"
    )
