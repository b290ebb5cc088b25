"""CREATE INDEX and DROP INDEX."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import definitions, tables
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.ddl import KeySpec, key_columns
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import Cursor

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox.tsql.interpreter import Interpreter


def create_index(interpreter: Interpreter, cursor: Cursor) -> None:
    """CREATE [UNIQUE] [CLUSTERED | NONCLUSTERED] INDEX name ON table (columns)"""
    unique = cursor.take("UNIQUE")
    clustered = cursor.take("CLUSTERED")
    cursor.take("NONCLUSTERED")
    cursor.expect("INDEX")
    name = cursor.name()
    cursor.expect("ON")
    parts = tables.parts_of(cursor)
    key = KeySpec(name, key_columns(cursor), False, unique, clustered, constraint=False)
    if cursor.take("INCLUDE"):
        cursor.group()
    if cursor.at("WHERE"):
        raise unsupported("filtered indexes", cursor.token.line)
    if cursor.take("WITH"):
        cursor.group()
    if cursor.take("ON"):
        cursor.name()
    cursor.end()
    local = None if unique else interpreter.env.local(parts[2])
    if local is not None:
        indexed = definitions.add_index(local.entry, key, interpreter.env.instance.storage.clock())
        interpreter.env.keep(parts[2], dataclasses.replace(local, entry=indexed))
        return
    database, catalog, entry = tables.existing(interpreter, parts)
    after = definitions.add_index(entry, key, interpreter.env.instance.storage.clock())
    tables.check_unique(interpreter, database, entry, after.table.indexes[-1])
    tables.define(interpreter, tables.replaced(catalog, after))


def drop_index(interpreter: Interpreter, cursor: Cursor) -> None:
    """DROP INDEX [IF EXISTS] name ON table"""
    lenient = cursor.take("IF", "EXISTS")
    name = cursor.name()
    cursor.expect("ON")
    parts = tables.parts_of(cursor)
    cursor.end()
    database, catalog, entry = tables.existing(interpreter, parts)
    index = next((i for i in entry.table.indexes if i.name.casefold() == name.casefold()), None)
    if index is None:
        if lenient:
            return
        raise SqlError.of(3701, "index", f"{entry.table.name}.{name}", state=7)
    if index.primary_key or index.name in entry.unique_constraints:
        raise SqlError.of(3723, entry.table.name, name)
    after = definitions.drop_index(entry, name, interpreter.env.instance.storage.clock())
    assert after is not None
    database.cdc.check_ddl(entry.table, after.table, "drop_index")
    tables.define(interpreter, tables.replaced(catalog, after))
