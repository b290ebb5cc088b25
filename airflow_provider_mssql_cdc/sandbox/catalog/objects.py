"""The objects of a database as the catalogue counts them: user tables, constraints, and what CDC made."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_mssql_cdc.sandbox.engine.schema import ColumnDef
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database, TableEntry
from airflow_provider_mssql_cdc.sandbox.protocol import Column
from airflow_provider_mssql_cdc.sandbox.tsql.definitions import COLLATION, object_id_of
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import Cursor, tokenize
from airflow_provider_mssql_cdc.sandbox.tsql.typing import kind
from airflow_provider_mssql_cdc.sandbox.types import SqlType

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment

CDC_SCHEMA_ID = 100
_CDC_TABLES = ("change_tables", "captured_columns", "index_columns", "ddl_history", "lsn_time_mapping")
_TYPE_NAMES = {
    "U": "USER_TABLE",
    "PK": "PRIMARY_KEY_CONSTRAINT",
    "UQ": "UNIQUE_CONSTRAINT",
    "D": "DEFAULT_CONSTRAINT",
    "IF": "SQL_INLINE_TABLE_VALUED_FUNCTION",
    "V": "VIEW",
}


def collation(type_: SqlType, given: str | None = None) -> str | None:
    """The collation of a column of this type."""
    return (given or COLLATION) if kind(type_) == "str" and type_.name != "xml" else None


@dataclass(frozen=True, slots=True)
class DbObject:
    """A row of sys.objects, with its columns if it is a table."""

    object_id: int
    name: str
    schema: str
    type: str
    created: datetime.datetime
    modified: datetime.datetime
    parent: int = 0
    is_ms_shipped: bool = False
    columns: tuple[ColumnDef, ...] = ()
    entry: TableEntry | None = None
    tracked: bool = False

    @property
    def type_desc(self) -> str:
        """The type in words."""
        return _TYPE_NAMES[self.type]


def schemas(env: Environment, database: Database) -> dict[str, int]:
    """Schemas by name; cdc is there while CDC is on."""
    known = dict(env.catalog(database).schemas)
    if database.cdc.enabled:
        known["cdc"] = CDC_SCHEMA_ID
    return known


def _columns(columns: list[Column]) -> tuple[ColumnDef, ...]:
    return tuple(ColumnDef(i, column.name, column.type, column.nullable) for i, column in enumerate(columns, 1))


def _user_table(entry: TableEntry, *, tracked: bool = False) -> DbObject:
    table, times = entry.table, (entry.created, entry.modified)
    return DbObject(
        table.object_id, table.name, table.schema, "U", *times, columns=table.columns, entry=entry, tracked=tracked
    )


def tables(env: Environment, database: Database) -> list[DbObject]:
    """User tables and the tables of CDC that the session may see."""
    found, tracked = [], database.cdc.tracked()
    for entry in env.catalog(database).tables.values():
        table = entry.table
        if env.may_select(database, table.schema, table.name):
            found.append(_user_table(entry, tracked=table.object_id in tracked))
    return found + cdc_tables(env, database)


def cdc_tables(env: Environment, database: Database) -> list[DbObject]:
    """The tables of schema cdc."""
    if not database.cdc.enabled:
        return []
    when = database.created
    found = [
        DbObject(
            object_id_of(database.database_id, name), name, "cdc", "U", when, when, 0, True,
            _columns(database.cdc.relation(name)[0]),
        )
        for name in _CDC_TABLES
    ]  # fmt: skip
    for instance in database.cdc.instances:
        name = f"{instance.capture_instance}_CT"
        if env.may_select(database, "cdc", name):
            columns = _columns(database.cdc.change_columns(instance.capture_instance))
            number, when = instance.change_table_object_id, instance.create_date
            found.append(DbObject(number, name, "cdc", "U", when, when, 0, True, columns))
    return found


def all_objects(env: Environment, database: Database) -> list[DbObject]:
    """Tables, their constraints, and the generated functions."""
    found = tables(env, database)
    for each in list(found):
        if each.entry is not None:
            found += _constraints(each, each.entry)
    for instance in database.cdc.instances:
        kinds = ["all", "net"] if instance.supports_net_changes else ["all"]
        for kind_ in kinds:
            name = f"fn_cdc_get_{kind_}_changes_{instance.capture_instance}"
            number, when = object_id_of(instance.change_table_object_id, kind_), instance.create_date
            found.append(DbObject(number, name, "cdc", "IF", when, when))
    return found


def _constraints(table: DbObject, entry: TableEntry) -> list[DbObject]:
    def made(name: str, type_: str) -> DbObject:
        number = object_id_of(table.object_id, name)
        return DbObject(number, name, table.schema, type_, table.created, table.created, table.object_id)

    found = [made(index.name, "PK") for index in entry.table.indexes if index.primary_key]
    found += [made(name, "UQ") for name in sorted(entry.unique_constraints)]
    return found + [made(name, "D") for name in entry.default_names.values()]


def parts_of(name: str) -> tuple[str, str, str] | None:
    """Database, schema and name of an object's name in a string; None where it is no name."""
    cursor = Cursor(tokenize(name), name)
    parts = cursor.dotted() if cursor.token.is_name else ()
    if not parts or cursor.token.kind != "end" or len(parts) > 3:
        return None
    database, schema, wanted = ("", "", *parts)[-3:]
    return database, schema, wanted


def find(env: Environment, name: str) -> DbObject | None:
    """An object by its name as T-SQL writes it."""
    parts = parts_of(name)
    if parts is None:
        return None
    database_name, schema, wanted = parts
    if database_name and database_name.casefold() not in env.instance.storage.databases:
        return None
    database = env.database_named(database_name)
    schema = schema or "dbo"
    if wanted.startswith("#"):
        local = env.manager.temporary.get(wanted.casefold()) if database.name == "tempdb" else None
        return None if local is None else _user_table(local.entry)
    for each in all_objects(env, database):
        if (each.schema.casefold(), each.name.casefold()) == (schema.casefold(), wanted.casefold()):
            return each
    return None
