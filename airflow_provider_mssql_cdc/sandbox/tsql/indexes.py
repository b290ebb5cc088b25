"""CREATE INDEX, ALTER INDEX and DROP INDEX."""

from __future__ import annotations

import dataclasses

from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import definitions, tables
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.ddl import KeySpec, key_columns
from airflow_provider_mssql_cdc.sandbox.tsql.executor import Executor
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import Cursor, syntax_error


def create_index(executor: Executor, cursor: Cursor) -> None:
    """CREATE [UNIQUE] [CLUSTERED | NONCLUSTERED] INDEX name ON table (columns)"""
    unique = cursor.take("UNIQUE")
    clustered = cursor.take("CLUSTERED")
    cursor.take("NONCLUSTERED")
    cursor.expect("INDEX")
    name = cursor.name()
    cursor.expect("ON")
    parts = tables.parts_of(cursor)
    columns, descending = key_columns(cursor)
    key = KeySpec(name, columns, False, unique, clustered, constraint=False, descending=descending)
    if cursor.take("INCLUDE"):
        cursor.group()
    if cursor.at("WHERE"):
        raise unsupported("filtered indexes", cursor.token.line)
    if cursor.take("WITH"):
        cursor.group()
    if cursor.take("ON"):
        cursor.name()
    cursor.end()
    local = None if unique else executor.env.local(parts[2])
    if local is not None:
        indexed = definitions.add_index(local.entry, key, executor.env.instance.storage.clock())
        executor.env.keep(parts[2], dataclasses.replace(local, entry=indexed))
        return
    database, catalog, entry = tables.existing(executor, parts)
    after = definitions.add_index(entry, key, executor.env.instance.storage.clock())
    tables.check_unique(executor, database, entry, after.table.indexes[-1])
    tables.define(executor, tables.replaced(catalog, after))


def alter_index(executor: Executor, cursor: Cursor) -> None:
    """ALTER INDEX name ON table DISABLE | REBUILD | REORGANIZE

    A disabled unique index lets rows be equal, until it is built again (docs: disable indexes and constraints).
    """
    if cursor.at("ALL"):
        raise unsupported("ALTER INDEX ALL", cursor.token.line)
    name = cursor.name()
    cursor.expect("ON")
    database, catalog, entry = tables.existing(executor, tables.parts_of(cursor))
    index = next((i for i in entry.table.indexes if i.name.casefold() == name.casefold()), None)
    action = next((word for word in ("DISABLE", "REBUILD", "REORGANIZE") if cursor.take(word)), "")
    if not action:
        raise syntax_error(cursor.token)
    if action != "DISABLE" and cursor.take("WITH"):
        cursor.group()
    cursor.end()
    if index is None:
        raise SqlError.of(7999, name, entry.table.name)
    if action == "REORGANIZE":
        return
    if action == "DISABLE" and index.clustered:
        raise unsupported("a table whose clustered index is disabled", cursor.token.line)
    changed = dataclasses.replace(index, disabled=action == "DISABLE")
    if index.disabled and not changed.disabled:
        tables.check_unique(executor, database, entry, changed)
    indexes = tuple(changed if each is index else each for each in entry.table.indexes)
    after = dataclasses.replace(entry, table=dataclasses.replace(entry.table, indexes=indexes))
    database.cdc.check_ddl(entry.table, after.table, "alter_index")
    tables.define(executor, tables.replaced(catalog, after))


def drop_index(executor: Executor, cursor: Cursor) -> None:
    """DROP INDEX [IF EXISTS] name ON table"""
    lenient = cursor.take("IF", "EXISTS")
    name = cursor.name()
    cursor.expect("ON")
    parts = tables.parts_of(cursor)
    cursor.end()
    database, catalog, entry = tables.existing(executor, parts)
    index = next((i for i in entry.table.indexes if i.name.casefold() == name.casefold()), None)
    if index is None:
        if lenient:
            return
        raise SqlError.of(3701, "index", f"{entry.table.name}.{name}", state=7)
    if index.primary_key or index.name in entry.unique_constraints:
        raise SqlError.of(3723, entry.table.name, name)
    after = definitions.drop_index(entry, name, executor.env.instance.storage.clock())
    assert after is not None
    database.cdc.check_ddl(entry.table, after.table, "drop_index")
    tables.define(executor, tables.replaced(catalog, after))
