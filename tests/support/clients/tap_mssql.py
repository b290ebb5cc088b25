"""tap-mssql, the one of pipelinewise: what wintersrd/pipelinewise-tap-mssql sends for LOG_BASED, through pymssql.

Read in ``tap_mssql/sync_strategies`` (log_based.py at a6739b30, common.py at b21261d9, of 2.5.0) and, for discovery,
``tap_mssql/__init__.py`` (s7clarke10/pipelinewise-tap-mssql, its maintainer's, at 0d594690, of 2.1.0). All are batches:
pymssql writes values into the text, and the tap writes LSNs there itself.
"""

from __future__ import annotations

from collections.abc import Sequence

SERVER = "SELECT @@VERSION as version, @@lock_timeout as lock_wait_timeout"

_NOT_OF_THE_SERVER = """
        WHERE c.table_schema NOT IN (
        'information_schema',
        'performance_schema',
        'sys'
        )"""

TABLES = f"""SELECT table_schema,
                table_name,
                table_type
            FROM information_schema.tables c
            {_NOT_OF_THE_SERVER}
        """

COLUMNS = f"""with constraint_columns as (
                select c.table_schema
                , c.table_name
                , c.column_name

                from information_schema.constraint_column_usage c

                join information_schema.table_constraints tc
                        on tc.table_schema = c.table_schema
                        and tc.table_name = c.table_name
                        and tc.constraint_name = c.constraint_name
                        and tc.constraint_type in ('PRIMARY KEY', 'UNIQUE'))
                SELECT c.table_schema,
                    c.table_name,
                    c.column_name,
                    data_type,
                    character_maximum_length,
                    numeric_precision,
                    numeric_scale,
                    case when cc.column_name is null then 0 else 1 end
                FROM information_schema.columns c

                left join constraint_columns cc
                    on cc.table_name = c.table_name
                    and cc.table_schema = c.table_schema
                    and cc.column_name = c.column_name

                {_NOT_OF_THE_SERVER}
                ORDER BY c.table_schema, c.table_name, c.ORDINAL_POSITION
        """

DATABASE_IS_TRACKED = """SELECT name, is_cdc_enabled
                   FROM sys.databases WHERE database_id = DB_ID()"""

TABLE_IS_TRACKED = """select s.name as schema_name, t.name as table_name, t.is_tracked_by_cdc, t.object_id
                   from sys.tables t
                   join sys.schemas s on (s.schema_id = t.schema_id)
                   and  t.name = '{table}'
                   and  s.name = '{schema}'"""

ISOLATION = """SELECT DB_NAME(database_id),
                          is_read_committed_snapshot_on,
                          snapshot_isolation_state_desc
                   FROM sys.databases
                   WHERE database_id = DB_ID();"""

MAX_LSN = "select sys.fn_cdc_get_max_lsn () "

LSN_RANGE = """SELECT sys.fn_cdc_get_min_lsn ( '{instance}' ) lsn_from
                    , sys.fn_cdc_get_max_lsn () lsn_to
               ;
            """


def column(name: str, type_: str = "") -> str:
    """``prepare_columns_sql``: a column as it is selected; two types become text."""
    quoted = f' "{name}" '
    style = {"datetime2": 121, "datetimeoffset": 127}.get(type_)
    if style is None:
        return quoted
    return f"""case when {quoted} is not null then
                      CONVERT(VARCHAR,{quoted},{style})
                    else null end
                    """


def first_load(schema: str, table: str, columns: Sequence[str]) -> str:
    """``sync_historic_table``.

    :param columns: each as ``column`` has it
    """
    return f"""
                            SELECT {",".join(columns)}
                                ,'I' _sdc_operation_type
                                , cast('1900-01-01' as datetime) _sdc_lsn_commit_timestamp
                                , null _sdc_lsn_deleted_at
                                , '00000000000000000000' _sdc_lsn_value
                                , '00000000000000000000' _sdc_lsn_seq_value
                                , 2 as _sdc_lsn_operation
                            FROM {schema}.{table}
                            ;"""


def increment(instance: str, columns: Sequence[str], after: bytes, upto: bytes) -> str:
    """``sync_table``; nothing is incremented where there is nothing new.

    :param columns: each as ``column`` has it
    """
    low = f"CONVERT(BINARY(10),'0x{after.hex()}',1)"
    first = low if after == upto else f"sys.fn_cdc_increment_lsn({low})"
    return f"""DECLARE @from_lsn binary (10), @to_lsn binary (10)

                                SET @from_lsn = {first}
                                SET @to_lsn = CONVERT(BINARY(10),'0x{upto.hex()}',1)

                                SELECT {",".join(columns)}
                                    ,case __$operation
                                        when 2 then 'I'
                                        when 4 then 'U'
                                        when 1 then 'D'
                                    end _sdc_operation_type
                                    , sys.fn_cdc_map_lsn_to_time(__$start_lsn) _sdc_lsn_commit_timestamp
                                    , case __$operation
                                        when 1 then sys.fn_cdc_map_lsn_to_time(__$start_lsn)
                                        else null
                                        end _sdc_lsn_deleted_at
                                    , __$start_lsn _sdc_lsn_value
                                    , __$seqval _sdc_lsn_seq_value
                                    , __$operation _sdc_lsn_operation
                                FROM cdc.fn_cdc_get_all_changes_{instance}(@from_lsn, @to_lsn, 'all')
                                ORDER BY __$start_lsn, __$seqval, __$operation
                                ;"""
