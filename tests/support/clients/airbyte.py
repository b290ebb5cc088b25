"""Airbyte's source-mssql 4, of 2026: what airbytehq/airbyte sends by itself, through mssql-jdbc.

Read in ``airbyte-integrations/connectors/source-mssql``: MsSqlSourceMetadataQuerier.kt at d8aa5abc,
MsSqlServerDebeziumOperations.kt at 0019a9fe, MsSqlSourceOperations.kt at 01bf471f, MsSqlServerJdbcPartition.kt at
03b10847, application.yml at 3141f6be; what the driver makes of ``DatabaseMetaData`` in microsoft/mssql-jdbc 12,
SQLServerDatabaseMetaData.java (white space aside). Debezium reads the changes: what it sends is held by the tests that
run it.
"""

from __future__ import annotations

CHECK = "SELECT 1 WHERE 1 = 0;"
EDITION = "SELECT ServerProperty('EngineEdition') AS EngineEdition"
AGENT = (
    "SELECT servicename, status_desc FROM sys.dm_server_services"
    " WHERE servicename LIKE '%SQL Server Agent%' OR servicename LIKE '%SQL Server \u4ee3\u7406%'"
)
CDC_ENABLED = "SELECT is_cdc_enabled FROM sys.databases WHERE name = DB_NAME()"

PSEUDO_COLUMNS = (
    "SELECT cast(NULL as char(1)) as TABLE_CAT, cast(NULL as char(1)) as TABLE_SCHEM,"
    " cast(NULL as char(1)) as TABLE_NAME, cast(NULL as char(1)) as COLUMN_NAME,"
    " cast(0 as int) as DATA_TYPE, cast(0 as int) as COLUMN_SIZE,"
    " cast(0 as int) as DECIMAL_DIGITS, cast(0 as int) as NUM_PREC_RADIX, cast(NULL as char(1)) as COLUMN_USAGE,"
    " cast(NULL as char(1)) as REMARKS, cast(0 as int) as CHAR_OCTET_LENGTH, cast(NULL as char(1)) as IS_NULLABLE"
    " where 0 = 1"
)

JDBC_COLUMNS = (
    "DECLARE @mssqljdbc_temp_sp_columns_result TABLE(TABLE_QUALIFIER SYSNAME, TABLE_OWNER SYSNAME,TABLE_NAME SYSNAME,"
    " COLUMN_NAME SYSNAME, DATA_TYPE SMALLINT, TYPE_NAME SYSNAME, PRECISION INT,LENGTH INT, SCALE SMALLINT,"
    " RADIX SMALLINT, NULLABLE SMALLINT, REMARKS VARCHAR(254), COLUMN_DEF NVARCHAR(4000),SQL_DATA_TYPE SMALLINT,"
    " SQL_DATETIME_SUB SMALLINT, CHAR_OCTET_LENGTH INT, ORDINAL_POSITION INT,IS_NULLABLE VARCHAR(254),"
    " SS_IS_SPARSE SMALLINT, SS_IS_COLUMN_SET SMALLINT, SS_IS_COMPUTED SMALLINT,"
    "SS_IS_IDENTITY SMALLINT, SS_UDT_CATALOG_NAME NVARCHAR(128),"
    " SS_UDT_SCHEMA_NAME NVARCHAR(128),SS_UDT_ASSEMBLY_TYPE_NAME NVARCHAR(max),"
    " SS_XML_SCHEMACOLLECTION_CATALOG_NAME NVARCHAR(128),SS_XML_SCHEMACOLLECTION_SCHEMA_NAME NVARCHAR(128),"
    " SS_XML_SCHEMACOLLECTION_NAME NVARCHAR(128),SS_DATA_TYPE TINYINT);"
    "INSERT INTO @mssqljdbc_temp_sp_columns_result EXEC sp_columns_100 ?,?,?,?,?,?;"
    "SELECT TABLE_QUALIFIER AS TABLE_CAT, TABLE_OWNER AS TABLE_SCHEM, TABLE_NAME, COLUMN_NAME, DATA_TYPE,TYPE_NAME,"
    " PRECISION AS COLUMN_SIZE, LENGTH AS BUFFER_LENGTH, SCALE AS DECIMAL_DIGITS, RADIX AS NUM_PREC_RADIX,NULLABLE,"
    " REMARKS, COLUMN_DEF, SQL_DATA_TYPE, SQL_DATETIME_SUB, CHAR_OCTET_LENGTH, ORDINAL_POSITION, IS_NULLABLE,"
    "NULL AS SCOPE_CATALOG, NULL AS SCOPE_SCHEMA, NULL AS SCOPE_TABLE, SS_DATA_TYPE AS SOURCE_DATA_TYPE,"
    "CASE SS_IS_IDENTITY WHEN 0 THEN 'NO' WHEN 1 THEN 'YES' WHEN '' THEN '' END AS IS_AUTOINCREMENT,"
    "CASE SS_IS_COMPUTED WHEN 0 THEN 'NO' WHEN 1 THEN 'YES' WHEN '' THEN '' END AS IS_GENERATEDCOLUMN, SS_IS_SPARSE,"
    " SS_IS_COLUMN_SET, SS_UDT_CATALOG_NAME, SS_UDT_SCHEMA_NAME, SS_UDT_ASSEMBLY_TYPE_NAME,"
    "SS_XML_SCHEMACOLLECTION_CATALOG_NAME, SS_XML_SCHEMACOLLECTION_SCHEMA_NAME, SS_XML_SCHEMACOLLECTION_NAME"
    " FROM @mssqljdbc_temp_sp_columns_result ORDER BY TABLE_CAT, TABLE_SCHEM, TABLE_NAME, ORDINAL_POSITION;"
)

CLUSTERED_KEYS = """
        SELECT
            s.name as table_schema,
            t.name as table_name,
            i.name as index_name,
            ic.key_ordinal,
            c.name as column_name
        FROM
            sys.tables t
        INNER JOIN
            sys.schemas s ON t.schema_id = s.schema_id
        INNER JOIN
            sys.indexes i ON t.object_id = i.object_id
        INNER JOIN
            sys.index_columns ic ON i.object_id = ic.object_id AND i.index_id = ic.index_id
        INNER JOIN
            sys.columns c ON ic.object_id = c.object_id AND ic.column_id = c.column_id
        WHERE
            s.name IN ({schemas})
            AND i.type = 1  -- Clustered index
            AND i.is_unique = 1  -- Only unique indexes
            AND ic.is_included_column = 0  -- Only key columns, not included columns
        ORDER BY
            s.name, t.name, ic.key_ordinal;
            """

PRIMARY_KEYS = """
        SELECT
            kcu.TABLE_SCHEMA as table_schema,
            kcu.TABLE_NAME as table_name,
            kcu.COLUMN_NAME as column_name,
            kcu.ORDINAL_POSITION as ordinal_position,
            kcu.CONSTRAINT_NAME as constraint_name
        FROM
            INFORMATION_SCHEMA.KEY_COLUMN_USAGE kcu
        INNER JOIN
            INFORMATION_SCHEMA.TABLE_CONSTRAINTS tc
        ON
            kcu.CONSTRAINT_NAME = tc.CONSTRAINT_NAME
            AND kcu.TABLE_SCHEMA = tc.TABLE_SCHEMA
        WHERE
            kcu.TABLE_SCHEMA IN ({schemas})
            AND tc.CONSTRAINT_TYPE = 'PRIMARY KEY';
            """

MAX_LSN = "SELECT sys.fn_cdc_get_max_lsn() AS max_lsn"
LSN_RANGE = """SELECT
    MIN(sys.fn_cdc_get_min_lsn(capture_instance)) as min_lsn,
    sys.fn_cdc_get_max_lsn() as max_lsn
FROM cdc.change_tables"""

READABLE = "SELECT TOP 0 {columns} FROM [{schema}].[{table}]"
SAMPLED = (
    "SELECT TOP 1024 {columns} FROM (SELECT TOP 1024 * FROM [{schema}].[{table}] TABLESAMPLE ({percent} PERCENT)"
    " ORDER BY NEWID()) AS randomly_sampled ORDER BY [{key}]"
)
UNSAMPLED = "SELECT TOP 1024 {columns} FROM [{schema}].[{table}] ORDER BY [{key}]"
LARGEST = "SELECT MAX([{key}]) FROM [{schema}].[{table}]"
WHOLE = "SELECT {columns} FROM [{schema}].[{table}]"
PAGE = "SELECT TOP {size} {columns} FROM [{schema}].[{table}] ORDER BY [{key}]"
NEXT_PAGE = "SELECT TOP {size} {columns} FROM [{schema}].[{table}] WHERE [{key}] > ? ORDER BY [{key}]"
BETWEEN = "SELECT {columns} FROM [{schema}].[{table}] WHERE ([{key}] > ?) AND ([{key}] <= ?)"
