"""The objects of a database as the catalogue counts them: tables, constraints, functions, policies, and CDC's own."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_mssql_cdc.sandbox.collations import comparing
from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.engine.cdc.mapping import to_datetime
from airflow_provider_mssql_cdc.sandbox.engine.schema import ColumnDef, IndexDef, TableDef
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database, TableEntry
from airflow_provider_mssql_cdc.sandbox.protocol import Column
from airflow_provider_mssql_cdc.sandbox.tsql.definitions import object_id_of
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import Cursor, tokenize
from airflow_provider_mssql_cdc.sandbox.tsql.typing import kind
from airflow_provider_mssql_cdc.sandbox.types import SqlType

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment

OBJECT_COLUMNS = (
    "name sysname!, object_id int!, principal_id int, schema_id int!, parent_object_id int!, type char(2), "
    "type_desc nvarchar(60), create_date datetime!, modify_date datetime!, is_ms_shipped bit!, is_published bit!, "
    "is_schema_published bit!"
)
CDC_SCHEMA_ID = 100
COMMIT_TABLE = "syscommittab"
# the metadata tables of schema cdc and their unique indexes, the clustered one first
METADATA: dict[str, list[tuple[str, ...]]] = {
    "change_tables": [("object_id",), ("capture_instance",)],
    "captured_columns": [("object_id", "column_name")],
    "index_columns": [("object_id", "index_ordinal", "column_id")],
    "ddl_history": [("object_id", "ddl_lsn")],
    "lsn_time_mapping": [("start_lsn",)],
}
CLUSTERED_ORDER = ("__$start_lsn", "__$command_id", "__$seqval", "__$operation")
_NO_TABLE = TableEntry(TableDef(0, "", "", ()), datetime.datetime.min, datetime.datetime.min, 1)
_TYPE_NAMES = {
    "U": "USER_TABLE",
    "PK": "PRIMARY_KEY_CONSTRAINT",
    "UQ": "UNIQUE_CONSTRAINT",
    "D": "DEFAULT_CONSTRAINT",
    "IF": "SQL_INLINE_TABLE_VALUED_FUNCTION",
    "V": "VIEW",
    "SP": "SECURITY_POLICY",
    "IT": "INTERNAL_TABLE",
}


def collation(type_: SqlType, given: str | None = None) -> str | None:
    """The collation of a column of this type."""
    return (given or comparing.DATABASE.get()) if kind(type_) == "str" and type_.name != "xml" else None


@dataclass(frozen=True, slots=True)
class DbObject:
    """A row of sys.objects.

    :param entry: the definition of a table, also of CDC's own
    :param tracked: whether a table has a capture instance
    :param is_system_named: whether a constraint was given no name
    """

    object_id: int
    name: str
    schema: str
    type: str
    created: datetime.datetime
    modified: datetime.datetime
    parent: int = 0
    is_ms_shipped: bool = False
    entry: TableEntry = _NO_TABLE
    tracked: bool = False
    is_system_named: bool = False

    @property
    def type_desc(self) -> str:
        """The type in words."""
        return _TYPE_NAMES[self.type]

    @property
    def columns(self) -> tuple[ColumnDef, ...]:
        """The columns of a table."""
        return self.entry.table.columns


def object_row(each: DbObject, schema_ids: dict[str, int]) -> list[Any]:
    """A row of sys.objects."""
    schema_id = schema_ids[each.schema]
    return [
        each.name, each.object_id, None, schema_id, each.parent, each.type.ljust(2), each.type_desc,
        to_datetime(each.created), to_datetime(each.modified), each.is_ms_shipped, False, False,
    ]  # fmt: skip


def schemas(env: Environment, database: Database) -> dict[str, int]:
    """Schemas by name; cdc is there while CDC is on."""
    known = dict(env.catalog(database).schemas)
    if database.cdc.enabled:
        known["cdc"] = CDC_SCHEMA_ID
    return known


def _table(entry: TableEntry, *, tracked: bool = False, shipped: bool = False) -> DbObject:
    table, times = entry.table, (entry.created, entry.modified)
    return DbObject(table.object_id, table.name, table.schema, "U", *times, 0, shipped, entry, tracked)


def tables(env: Environment, database: Database) -> list[DbObject]:
    """User tables and the tables of CDC that the session may see."""
    tracked = database.cdc.tracked()
    found = [_table(e, tracked=number in tracked) for number, e in env.catalog(database).tables.items()]
    found += cdc_tables(database)
    return [t for t in found if env.may_see(database, t.schema, t.name)]


def cdc_tables(database: Database) -> list[DbObject]:
    """The tables of schema cdc."""
    if not database.cdc.enabled:
        return []
    cdc, when = database.cdc, database.created
    found = [
        _cdc_table(object_id_of(database.database_id, name), name, cdc.relation(name)[0], keys, when)
        for name, keys in METADATA.items()
    ]
    for each in cdc.instances:
        # before there was __$command_id the key went without it (memory)
        order = tuple(column for column in CLUSTERED_ORDER if each.has_command_ids or column != "__$command_id")
        keys: list[tuple[str, ...]] = [order]
        if each.supports_net_changes:
            keys.append((*(key.name for key in each.key), *order))
        name = f"{each.capture_instance}_CT"
        masks = {column.name: column.mask for column in each.columns}
        found.append(_cdc_table(each.change_table_object_id, name, each.change_columns, keys, each.create_date, masks))
    return found


def _cdc_table(
    number: int,
    name: str,
    columns: list[Column],
    keys: Sequence[tuple[str, ...]],
    when: datetime.datetime,
    masks: Mapping[str, str | None] | None = None,
) -> DbObject:
    """A table of schema cdc; the first of its unique indexes is the clustered one."""
    indexes = [
        IndexDef(f"{name}_{'idx' if i else 'clustered_idx'}", key, unique=True, clustered=not i)
        for i, key in enumerate(keys)
    ]
    hidden = masks or {}
    defined = tuple(
        ColumnDef(i, column.name, column.type, column.nullable, mask=hidden.get(column.name))
        for i, column in enumerate(columns, 1)
    )
    table = TableDef(number, "cdc", name, defined, tuple(indexes))
    return _table(TableEntry(table, when, when, len(columns) + 1), shipped=True)


def all_objects(env: Environment, database: Database) -> list[DbObject]:
    """Tables, their constraints, and the generated functions."""
    found = tables(env, database)
    for each in list(found):
        found += _constraints(each, each.entry)
    for kind_ in ("all", "net") if database.cdc.enabled else ():
        name, when = f"fn_cdc_get_{kind_}_changes_...", database.created
        found.append(DbObject(object_id_of(database.database_id, name), name, "cdc", "IF", when, when))
    for instance in database.cdc.instances:
        kinds = ["all", "net"] if instance.supports_net_changes else ["all"]
        for kind_ in kinds:
            name = f"fn_cdc_get_{kind_}_changes_{instance.capture_instance}"
            number, when = object_id_of(instance.change_table_object_id, kind_), instance.create_date
            found.append(DbObject(number, name, "cdc", "IF", when, when))
    catalog, when = env.catalog(database), database.created
    found += [DbObject(f.object_id, f.name, f.schema, "IF", when, when) for f in catalog.functions.values()]
    found += internal_tables(env, database)
    return found + [DbObject(p.object_id, p.name, p.schema, "SP", when, when) for p in catalog.policies]


def internal_tables(env: Environment, database: Database) -> list[DbObject]:
    """The side tables of tracked tables that the session may see, and the commit table, which is always there.

    An owner alone sees that one, since it belongs to no other table (memory).
    """
    catalog, when = env.catalog(database), database.created
    found = [
        DbObject(each.side, each.name, "sys", "IT", each.created, each.created, each.object_id, is_ms_shipped=True)
        for each in catalog.tracked.values()
        if (entry := catalog.tables.get(each.object_id)) is not None
        and env.may_see(database, entry.table.schema, entry.table.name)
    ]
    if env.is_owner(database):
        number = object_id_of(database.database_id, COMMIT_TABLE)
        found.append(DbObject(number, COMMIT_TABLE, "sys", "IT", when, when, is_ms_shipped=True))
    return found


def _constraints(table: DbObject, entry: TableEntry) -> list[DbObject]:
    def made(name: str, type_: str) -> DbObject:
        number = object_id_of(table.object_id, name)
        when, system_named = table.created, name in entry.made_names
        return DbObject(number, name, table.schema, type_, when, when, table.object_id, is_system_named=system_named)

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
        return None if local is None else _table(local.entry)
    for each in all_objects(env, database):
        if (fold(each.schema), fold(each.name)) == (fold(schema), fold(wanted)):
            return each
    return None
