"""mssql-cdc-pyspark 0.4.0, of October 2026: what emanuel-luis/mssql-cdc-pyspark sends, through mssql-python.

Read in ``src/mssql_cdc/client/_sql_client.py`` and ``_sql.py`` at 2c0ed03d; the order in ``src/mssql_cdc/source.py`` at
ade34863. LSNs go as hexadecimal text, prepared statements with ``?``.
"""

from __future__ import annotations

from collections.abc import Sequence

ZONE_IS_NAMED = (
    "SELECT CASE WHEN CAST(SERVERPROPERTY('ProductMajorVersion') AS int) >= 16 "
    "OR CAST(SERVERPROPERTY('EngineEdition') AS int) IN (5, 8) THEN 1 ELSE 0 END"
)
ZONE = "SELECT CURRENT_TIMEZONE_ID()"
OFFSET = "SELECT DATEPART(TZOFFSET, SYSDATETIMEOFFSET())"

INSTANCES = "EXEC sys.sp_cdc_help_change_data_capture"
INSTANCES_OF_TABLE = "EXEC sys.sp_cdc_help_change_data_capture @source_schema = ?, @source_name = ?"
CAPTURED_COLUMNS = "EXEC sys.sp_cdc_get_captured_columns @capture_instance = ?"
DDL_HISTORY = "EXEC sys.sp_cdc_get_ddl_history @capture_instance = ?"
COLUMNS = (
    "SELECT name, column_id, is_computed FROM sys.columns "
    "WHERE object_id = OBJECT_ID(QUOTENAME(?) + '.' + QUOTENAME(?))"
)
COLLATIONS = (
    "SELECT name, collation_name FROM sys.columns WHERE object_id = OBJECT_ID(QUOTENAME(?) + '.' + QUOTENAME(?))"
)

MAX_LSN = "SELECT CONVERT(varchar(22), sys.fn_cdc_get_max_lsn(), 1)"
MIN_LSN = "SELECT CONVERT(varchar(22), sys.fn_cdc_get_min_lsn(?), 1)"
INCREMENT_LSN = "SELECT CONVERT(varchar(22), sys.fn_cdc_increment_lsn(CONVERT(binary(10), ?, 1)), 1)"
DECREMENT_LSN = "SELECT CONVERT(varchar(22), sys.fn_cdc_decrement_lsn(CONVERT(binary(10), ?, 1)), 1)"

COMMIT_TIME = (
    "SELECT TOP (1) CONVERT(varchar(23), CAST(m.tran_end_time AS datetime2(3)), 126)"
    " FROM cdc.lsn_time_mapping m WHERE m.start_lsn {sign} CONVERT(binary(10), ?, 1) ORDER BY m.start_lsn DESC"
)
"""Where the zone is UTC; ``sign`` is = or <=."""

NTH_COMMIT = (
    "SELECT CONVERT(varchar(22), MAX(start_lsn), 1) FROM ("
    "SELECT TOP ({n}) start_lsn FROM cdc.lsn_time_mapping "
    "WHERE start_lsn > CONVERT(binary(10), ?, 1) ORDER BY start_lsn) t"
)

SPLIT_POINTS = (
    "SELECT CONVERT(varchar(22), MAX(__$start_lsn), 1) AS b, "
    "CONVERT(varchar(22), sys.fn_cdc_increment_lsn(MAX(__$start_lsn)), 1) AS n, "
    "COUNT_BIG(*) AS r FROM ("
    "SELECT __$start_lsn, NTILE({n}) OVER (ORDER BY __$start_lsn) AS g "
    "FROM cdc.[{instance}_CT] "
    "WHERE __$start_lsn BETWEEN CONVERT(binary(10), ?, 1) AND CONVERT(binary(10), ?, 1)"
    ") x GROUP BY g ORDER BY b"
)

PING = "SELECT 1"
WAITED = (
    "SELECT wait_time_ms FROM sys.dm_exec_session_wait_stats "
    "WHERE session_id = @@SPID AND wait_type = 'ASYNC_NETWORK_IO'"
)
"""Asked for, and done without where it fails."""

ROWS = "EXEC sys.sp_spaceused @objname = ?"

DENIED = (
    "SELECT CASE WHEN sys.fn_cdc_get_min_lsn(?) > 0x00000000000000000000 "
    "THEN HAS_PERMS_BY_NAME(?, 'OBJECT', 'SELECT') END"
)

SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL SNAPSHOT; "
LOCK_TIMEOUT = "SET LOCK_TIMEOUT 30000; "


def commit_time_in(zone: str) -> str:
    """``_commit_time`` where the server's clock has daylight saving, for one LSN."""
    t, shifted = "m.tran_end_time", "DATEADD(hour, 3, {})"

    def offset(of: str) -> str:
        return f"DATEPART(TZOFFSET, {of} AT TIME ZONE N'{zone}')"

    def repeated(of: str) -> str:
        now, later = offset(of), offset(shifted.format(of))
        moved = offset(f"DATEADD(minute, {now} - {later}, {of})")
        return f"({later} < {now} AND {moved} = {later})"

    before = (
        "COALESCE((SELECT TOP (1) start_lsn FROM cdc.lsn_time_mapping "
        f"WHERE tran_end_time <= DATEADD(hour, -3, {t}) ORDER BY tran_end_time DESC), 0x00000000000000000000)"
    )
    drops = (
        f"SELECT d.start_lsn, d.t FROM (SELECT CASE WHEN {repeated(t)} THEN {before} ELSE m.start_lsn END AS lo) b"
        " CROSS APPLY ("
        "SELECT start_lsn, tran_end_time AS t, LAG(tran_end_time) OVER (ORDER BY start_lsn) "
        "AS prev FROM cdc.lsn_time_mapping "
        "WHERE start_lsn > b.lo AND start_lsn <= m.start_lsn) d "
        f"WHERE d.t < DATEADD(minute, -1, d.prev) AND {repeated('d.t')}"
    )
    first = f"CAST(({t} AT TIME ZONE N'{zone}') AT TIME ZONE 'UTC' AS datetime2(3))"
    utc = (
        f"CASE WHEN EXISTS (SELECT 1 FROM ({drops}) x WHERE x.start_lsn <= m.start_lsn "
        f"AND x.t > DATEADD(hour, -3, {t})) "
        f"THEN CAST(DATEADD(minute, -{offset(shifted.format(t))}, {t}) AS datetime2(3)) ELSE {first} END"
    )
    return (
        f"SELECT TOP (1) CONVERT(varchar(23), {utc}, 126) FROM cdc.lsn_time_mapping m WHERE m.start_lsn = "
        "CONVERT(binary(10), ?, 1) ORDER BY m.start_lsn DESC"
    )


def key_range(table: str, key: str) -> str:
    """``key_range``: of a key that is one column."""
    return f"SELECT (SELECT MIN([{key}]) FROM {table}) AS lo, (SELECT MAX([{key}]) FROM {table}) AS hi"


def key_tiles(table: str, keys: Sequence[str], tiles: int) -> str:
    """``key_tiles``: the first key of each range but the first."""
    k = _listed(keys)
    return (
        f"SELECT {k} FROM (SELECT {k}, [__$tile], "
        f"LAG([__$tile]) OVER (ORDER BY {k}) AS [__$prev] FROM ("
        f"SELECT {k}, NTILE({tiles}) OVER (ORDER BY {k}) AS [__$tile] FROM {table}) a"
        ") b WHERE [__$tile] <> [__$prev] ORDER BY [__$tile]"
    )


def key_max(table: str, keys: Sequence[str]) -> str:
    """``key_max``."""
    return f"SELECT TOP (1) {_listed(keys)} FROM {table} ORDER BY {', '.join(f'[{key}] DESC' for key in keys)}"


def key_bound(table: str, key: str, low: int, rows: int) -> str:
    """``key_bound``: where the next chunk of a key that is one integer ends."""
    union = f"SELECT * FROM (SELECT TOP ({rows + 1}) [{key}] FROM {table} WHERE [{key}] >= {low} ORDER BY [{key}]) p"
    return f"SELECT [{key}] FROM ({union}) u ORDER BY [{key}] OFFSET {rows} ROWS FETCH NEXT 1 ROWS ONLY"


def rows_between(table: str, columns: Sequence[str], key: str, low: int | None, high: int | None) -> str:
    """``iter_table`` of a key that is one integer; None is open."""
    conditions = [f"[{key}] >= {low}"] if low is not None else []
    conditions += [f"([{key}] < {high} OR [{key}] IS NULL)"] if high is not None else []
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {_listed(columns)} FROM {table}{where}"


def rows_behind(table: str, columns: Sequence[str], keys: Sequence[tuple[str, str]]) -> str:
    """``iter_table`` of the last range, for a key of two columns with their types; it takes three values."""
    (one, first), (two, second) = keys
    select = f"SELECT {_listed(columns)} FROM {table}"
    return (
        f"{select} WHERE [{one}] = CAST(? AS {first}) AND [{two}] >= CAST(? AS {second})"
        f" UNION ALL {select} WHERE [{one}] > CAST(? AS {first})"
    )


def changes(instance: str, columns: Sequence[str]) -> str:
    """``iter_changes`` where the zone is UTC."""
    cols = ", ".join(f"c.[{column}]" for column in columns)
    return (
        "SELECT CONVERT(varchar(22), c.[__$start_lsn], 1) AS _start_lsn, "
        "CONVERT(varchar(22), c.[__$seqval], 1) AS _seqval, "
        "c.[__$operation] AS _operation, c.[__$command_id] AS _command_id, "
        f"CAST(m.tran_end_time AS datetime2(3)) AS _commit_ts, {cols} "
        f"FROM cdc.[{instance}_CT] c "
        "JOIN cdc.lsn_time_mapping m ON m.start_lsn = c.[__$start_lsn] "
        "WHERE c.[__$start_lsn] BETWEEN CONVERT(binary(10), ?, 1) AND CONVERT(binary(10), ?, 1) "
        "ORDER BY c.[__$start_lsn], c.[__$command_id], c.[__$seqval], c.[__$operation]"
    )


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(f"[{column}]" for column in columns)
