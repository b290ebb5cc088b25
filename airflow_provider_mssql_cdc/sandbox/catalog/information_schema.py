"""INFORMATION_SCHEMA: tables, columns, schemata, keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow_provider_mssql_cdc.sandbox import system_types
from airflow_provider_mssql_cdc.sandbox.catalog import objects
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation, relation
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database
from airflow_provider_mssql_cdc.sandbox.tsql.typing import display, kind

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment


def _tables(env: Environment, database: Database) -> Relation:
    spec = "TABLE_CATALOG nvarchar(128), TABLE_SCHEMA nvarchar(128), TABLE_NAME sysname!, TABLE_TYPE varchar(10)"
    data = [[database.name, each.schema, each.name, "BASE TABLE"] for each in objects.tables(env, database)]
    return relation(spec, data)


def _columns(env: Environment, database: Database) -> Relation:
    spec = (
        "TABLE_CATALOG nvarchar(128), TABLE_SCHEMA nvarchar(128), TABLE_NAME sysname!, COLUMN_NAME sysname, "
        "ORDINAL_POSITION int!, COLUMN_DEFAULT nvarchar(4000), IS_NULLABLE varchar(3), DATA_TYPE nvarchar(128), "
        "CHARACTER_MAXIMUM_LENGTH int, CHARACTER_OCTET_LENGTH int, NUMERIC_PRECISION tinyint, "
        "NUMERIC_PRECISION_RADIX smallint, NUMERIC_SCALE int, DATETIME_PRECISION smallint, "
        "CHARACTER_SET_NAME sysname, COLLATION_NAME sysname"
    )
    data = []
    for each in objects.tables(env, database):
        for ordinal, column in enumerate(each.columns, 1):
            data.append(_column(database, each, column, ordinal))
    return relation(spec, data)


def _column(database: Database, each: objects.DbObject, column: Any, ordinal: int) -> list[Any]:
    type_ = column.type
    length, *numbers = system_types.measures(type_)
    name = (
        type_.declared or type_.name
        if type_.name == "decimal"
        else "nvarchar"
        if type_.name == "sysname"
        else display(type_)
    )
    unicode_ = type_.name in ("nchar", "nvarchar", "ntext", "sysname")
    charset = None if kind(type_) != "str" or type_.name == "xml" else "UNICODE" if unicode_ else "iso_1"
    return [
        database.name, each.schema, each.name, column.name, ordinal,
        column.default, "YES" if column.nullable else "NO", name,
        length, system_types.octet_length(type_), *numbers, charset, objects.collation(type_, column.collation),
    ]  # fmt: skip


def _schemata(env: Environment, database: Database) -> Relation:
    spec = (
        "CATALOG_NAME nvarchar(128), SCHEMA_NAME nvarchar(128)!, SCHEMA_OWNER nvarchar(128), "
        "DEFAULT_CHARACTER_SET_CATALOG varchar(6), DEFAULT_CHARACTER_SET_SCHEMA varchar(3), "
        "DEFAULT_CHARACTER_SET_NAME sysname"
    )
    data = [[database.name, name, "dbo", None, None, "iso_1"] for name in objects.schemas(env, database)]
    return relation(spec, data)


def _keys(env: Environment, database: Database) -> list[tuple[objects.DbObject, str, str, tuple[str, ...]]]:
    found = []
    for each in objects.tables(env, database):
        for index in each.entry.table.indexes:
            if index.primary_key or index.name in each.entry.unique_constraints:
                found.append((each, index.name, "PRIMARY KEY" if index.primary_key else "UNIQUE", index.columns))
    return found


def _table_constraints(env: Environment, database: Database) -> Relation:
    spec = (
        "CONSTRAINT_CATALOG nvarchar(128), CONSTRAINT_SCHEMA nvarchar(128), CONSTRAINT_NAME sysname!, "
        "TABLE_CATALOG nvarchar(128), TABLE_SCHEMA nvarchar(128), TABLE_NAME sysname, CONSTRAINT_TYPE varchar(11), "
        "IS_DEFERRABLE varchar(2)!, INITIALLY_DEFERRED varchar(2)!"
    )
    name = database.name
    data = [
        [name, each.schema, key, name, each.schema, each.name, type_, "NO", "NO"]
        for each, key, type_, _ in _keys(env, database)
    ]
    return relation(spec, data)


def _key_column_usage(env: Environment, database: Database) -> Relation:
    spec = (
        "CONSTRAINT_CATALOG nvarchar(128), CONSTRAINT_SCHEMA nvarchar(128), CONSTRAINT_NAME nvarchar(128)!, "
        "TABLE_CATALOG nvarchar(128), TABLE_SCHEMA nvarchar(128), TABLE_NAME nvarchar(128)!, "
        "COLUMN_NAME nvarchar(128), "
        "ORDINAL_POSITION int!"
    )
    name = database.name
    data = [
        [name, each.schema, key, name, each.schema, each.name, column, i]
        for each, key, _, columns in _keys(env, database)
        for i, column in enumerate(columns, 1)
    ]
    return relation(spec, data)


def _constraint_column_usage(env: Environment, database: Database) -> Relation:
    spec = (
        "TABLE_CATALOG nvarchar(128), TABLE_SCHEMA nvarchar(128), TABLE_NAME nvarchar(128)!, "
        "COLUMN_NAME nvarchar(128), "
        "CONSTRAINT_CATALOG nvarchar(128), CONSTRAINT_SCHEMA nvarchar(128), CONSTRAINT_NAME nvarchar(128)!"
    )
    name = database.name
    data = [
        [name, each.schema, each.name, column, name, each.schema, key]
        for each, key, _, columns in _keys(env, database)
        for column in columns
    ]
    return relation(spec, data)


def _referential_constraints(env: Environment, database: Database) -> Relation:
    spec = (
        "CONSTRAINT_CATALOG nvarchar(128), CONSTRAINT_SCHEMA nvarchar(128), CONSTRAINT_NAME sysname!, "
        "UNIQUE_CONSTRAINT_CATALOG nvarchar(128), UNIQUE_CONSTRAINT_SCHEMA nvarchar(128), "
        "UNIQUE_CONSTRAINT_NAME sysname, "
        "MATCH_OPTION varchar(7), UPDATE_RULE varchar(11), DELETE_RULE varchar(11)"
    )
    return relation(spec, [])  # foreign keys are refused, so there are none


VIEWS: dict[tuple[str, str], Callable[[Any, Database], Relation]] = {
    ("information_schema", "tables"): _tables,
    ("information_schema", "columns"): _columns,
    ("information_schema", "schemata"): _schemata,
    ("information_schema", "table_constraints"): _table_constraints,
    ("information_schema", "referential_constraints"): _referential_constraints,
    ("information_schema", "key_column_usage"): _key_column_usage,
    ("information_schema", "constraint_column_usage"): _constraint_column_usage,
}
