"""SeaTunnel's SqlServer-CDC, as of 2026: what apache/seatunnel sends, through mssql-jdbc.

Read in ``seatunnel-connectors-v2/connector-cdc/connector-cdc-sqlserver``: SqlServerUtils.java at 15c30f77,
TableDiscoveryUtils.java at 1242945d, and Debezium 1.9's SqlServerConnection.java as it carries it, at 0bf5b90f; the
columns in ``connector-jdbc``, SqlServerCatalog.java at 00b66fa8. ``?`` is a parameter.
"""

from __future__ import annotations

import re

DATABASES = "SELECT name, database_id, create_date  \nFROM sys.databases;  "
TABLES = "SELECT * FROM {database}.INFORMATION_SCHEMA.TABLES WHERE TABLE_TYPE = 'BASE TABLE';"
DATABASE_NAME = "SELECT name FROM sys.databases WHERE name = ?"

COLUMNS = (
    "    SELECT tbl.name AS table_name, \n           col.name AS column_name, \n           ext.value AS comment, \n"
    "           col.column_id AS column_id, \n           types.name AS type, \n"
    "           col.max_length AS max_length, \n           col.precision AS precision, \n"
    "           col.scale AS scale, \n           col.is_nullable AS is_nullable, \n"
    " def.definition AS default_value\n     FROM sys.tables tbl \nINNER JOIN sys.columns col \n"
    "        ON tbl.object_id = col.object_id \n LEFT JOIN sys.types types \n"
    "        ON col.user_type_id = types.user_type_id \n LEFT JOIN sys.extended_properties ext \n"
    "        ON ext.major_id = col.object_id and ext.minor_id = col.column_id \n"
    "   LEFT JOIN sys.default_constraints def ON col.default_object_id = def.object_id \n"
    "    AND ext.minor_id = col.column_id \n       AND ext.name = 'MS_Description' \n"
    "     WHERE schema_name(tbl.schema_id) = '{schema}' \n       AND tbl.name = '{table}' \n"
    "  ORDER BY tbl.name, col.column_id"
)

MIN_MAX = "SELECT MIN([{key}]), MAX([{key}]) FROM [{schema}].[{table}]"
USE = "USE [{database}];"
ROW_COUNT = (
    "SELECT Total_Rows = SUM(st.row_count) FROM sys.dm_db_partition_stats st"
    " WHERE object_name(object_id) = '{table}' AND index_id < 2;"
)
MIN_ABOVE = "SELECT MIN([{key}]) FROM [{schema}].[{table}] WHERE [{key}] > ?"
NEXT_CHUNK_MAX = (
    "SELECT MAX([{key}]) FROM (SELECT TOP ({size}) [{key}] FROM [{schema}].[{table}]"
    " WHERE [{key}] >= ? ORDER BY [{key}] ASC ) AS T"
)
SAMPLE = (
    "SELECT [{key}] FROM [{schema}].[{table}] WHERE ([{key}] - (SELECT MIN([{key}]) FROM [{schema}].[{table}]))"
    " % {rate} = 0 ORDER BY [{key}]"
)
ALL_KEYS = "SELECT [{key}] FROM [{schema}].[{table}]"

WHOLE = "SELECT * FROM [{schema}].[{table}]"
FIRST_SPLIT = WHOLE + " WHERE [{key}] <= ? AND NOT ([{key}] = ?)"
MIDDLE_SPLIT = WHOLE + " WHERE [{key}] >= ? AND NOT ([{key}] = ?) AND [{key}] <= ?"
LAST_SPLIT = WHOLE + " WHERE [{key}] >= ?"

MAX_TRANSACTION_LSN = "SELECT MAX(start_lsn) FROM [#db].cdc.lsn_time_mapping WHERE tran_id <> 0x00"
NTH_LSN_FROM_BEGINNING = (
    "SELECT MAX(start_lsn) FROM (SELECT TOP (?) start_lsn FROM [#db].cdc.lsn_time_mapping WHERE tran_id <> 0x00"
    " ORDER BY start_lsn) as next_lsns"
)
NTH_LSN_FROM_LAST = (
    "SELECT MAX(start_lsn) FROM (SELECT TOP (? + 1) start_lsn FROM [#db].cdc.lsn_time_mapping WHERE start_lsn >= ? AND"
    " tran_id <> 0x00 ORDER BY start_lsn) as next_lsns"
)
MAX_LSN = "SELECT [#db].sys.fn_cdc_get_max_lsn()"
MIN_LSN = "SELECT [#db].sys.fn_cdc_get_min_lsn('#')"
INCREMENT_LSN = "SELECT [#db].sys.fn_cdc_increment_lsn(?)"
CAPTURED_COLUMNS = "SELECT object_id, column_name FROM [#db].cdc.captured_columns ORDER BY object_id, column_id"
CHANGE_TABLES = (
    "WITH ordered_change_tables"
    " AS (SELECT ROW_NUMBER() OVER (PARTITION BY ct.source_object_id, ct.start_lsn ORDER BY ct.create_date DESC)"
    " AS ct_sequence, ct.* FROM [#db].cdc.change_tables AS ct{where})"
    " SELECT OBJECT_SCHEMA_NAME(source_object_id, DB_ID(?)),"
    " OBJECT_NAME(source_object_id, DB_ID(?)),"
    " capture_instance, object_id, start_lsn FROM ordered_change_tables WHERE ct_sequence = 1"
)
UPTO = " WHERE ct.start_lsn <= ?"
NEW_CHANGE_TABLES = "SELECT * FROM [#db].cdc.change_tables WHERE start_lsn BETWEEN ? AND ?"
CHANGES = (
    "SELECT *, TODATETIMEOFFSET([#db].sys.fn_cdc_map_lsn_to_time([__$start_lsn]),"
    " DATEPART(TZOFFSET, SYSDATETIMEOFFSET()))"
    " FROM [#db].cdc.[fn_cdc_get_all_changes_#](?, ?, N'all update old')"
    " order by [__$start_lsn] ASC, [__$seqval] ASC, [__$operation] ASC"
)


def filled(sql: str, instance: str = "", database: str = "shop") -> str:
    """A text of Debezium's with its places filled."""
    return re.sub("#(db)?", lambda place: database if place[1] else instance, sql)
