"""Sling 1.5, as of 2026: what slingdata-io/sling-cli sends as a source, through go-mssqldb.

Read in ``core/dbio/templates/sqlserver.yaml`` at 994efaa2 and 17bc099a, ``core/dbio/database/database_sqlserver.go`` at
05d05111 and ``core/sling/task_run_read.go`` at 02df4378. It has no log of SQL Server as a source: an increment is what
has a larger update key.
"""

from __future__ import annotations

VERSION = "select @@version v -- nD/"

DATABASES = "select db_name() as name"

SCHEMAS = """select schema_name
from INFORMATION_SCHEMA.SCHEMATA
order by schema_name
"""

TABLES = """select table_schema as schema_name, table_name, 'false' as is_view
from INFORMATION_SCHEMA.TABLES
where table_type = 'BASE TABLE'
  {filter}
order by table_schema, table_name
"""

VIEWS = """select table_schema as schema_name, table_name, 'true' as is_view
from INFORMATION_SCHEMA.TABLES
where table_type = 'VIEW'
  {filter}
order by table_schema, table_name
"""

OF_SCHEMA = "and table_schema = '{schema}'"

COLUMNS = """select
  column_name,
  data_type,
  character_maximum_length as maximum_length,
  numeric_precision as precision,
  numeric_scale as scale
from INFORMATION_SCHEMA.COLUMNS
where table_schema = '{schema}'
  and table_name = '{table}'
order by ordinal_position
"""

KEYS = """select tco.constraint_name as pk_name,
       kcu.ordinal_position as position,
       kcu.column_name as column_name
from INFORMATION_SCHEMA.TABLE_CONSTRAINTS tco
join INFORMATION_SCHEMA.KEY_COLUMN_USAGE kcu
     on kcu.constraint_name = tco.constraint_name
     and kcu.constraint_schema = tco.constraint_schema
     and kcu.constraint_name = tco.constraint_name
where kcu.table_schema = '{schema}'
  and kcu.table_name = '{table}'
order by kcu.table_schema,
         kcu.table_name,
         position
"""

INDEXES = """SELECT
  ind.name as index_name,
  col.name as column_name
from sys.indexes ind
INNER JOIN sys.index_columns ic ON ind.object_id = ic.object_id
  and ind.index_id = ic.index_id
INNER JOIN sys.columns col ON ic.object_id = col.object_id
  and ic.column_id = col.column_id
INNER JOIN sys.tables t ON ind.object_id = t.object_id
where schema_name(t.schema_id) = '{schema}' and t.name = '{table}'
  AND ind.is_primary_key = 0
  AND ind.is_unique = 0
  AND ind.is_unique_constraint = 0
  AND t.is_ms_shipped = 0
ORDER BY
  ind.name,
  ind.index_id,
  ic.index_column_id
"""

SCHEMATA = """with tables as (
  select
    table_catalog,
    table_schema,
    table_name,
    case table_type
      when 'VIEW' then 'true'
      else 'false'
    end as is_view
  from INFORMATION_SCHEMA.TABLES
  where 1=1
    and table_schema = '{schema}'
    and table_name in ({tables})
)
select
  cols.table_schema as schema_name,
  cols.table_name as table_name,
  tables.is_view as is_view,
  cols.column_name as column_name,
  cols.data_type as data_type,
  cols.ordinal_position as position
from INFORMATION_SCHEMA.COLUMNS cols
join tables
  on tables.table_catalog = cols.table_catalog
  and tables.table_schema = cols.table_schema
  and tables.table_name = cols.table_name
order by cols.table_catalog, cols.table_schema, cols.table_name, cols.ordinal_position
"""

FIRST_LOAD = 'select * from "{schema}"."{table}"'

INCREMENT = 'select * from "{schema}"."{table}" where "{key}" {sign} {value} order by "{key}" asc'
"""``sign`` is >= where a primary key is given, else >."""

INCREMENT_NOW = 'select top 100 percent * from "{schema}"."{table}" where ("{key}" {sign} {value}) order by "{key}" asc'
"""As the later template has it (incremental_select)."""

MOMENT = "cast('{value}' as datetime2)"
"""A value of an update key that is a time, with seven digits."""
