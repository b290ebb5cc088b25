"""sp_rename of tables and columns, and ALTER SCHEMA ... TRANSFER."""

from __future__ import annotations

import dataclasses

from airflow_provider_mssql_cdc.sandbox.engine.open_transaction import Operation
from airflow_provider_mssql_cdc.sandbox.engine.rights import following
from airflow_provider_mssql_cdc.sandbox.engine.schema import TableDef
from airflow_provider_mssql_cdc.sandbox.engine.storage import Catalog, Database, TableEntry
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import definitions
from airflow_provider_mssql_cdc.sandbox.tsql.executor import Executor
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import Cursor, tokenize
from airflow_provider_mssql_cdc.sandbox.tsql.tables import define, existing, parts_of, replaced


def rename(executor: Executor, name: str, new: str, kind_: str) -> None:
    """sp_rename of a table or a column."""
    cursor = Cursor(tokenize(name), name)
    parts = cursor.dotted()
    cursor.end()
    column = parts[-1] if kind_.upper() == "COLUMN" else ""
    owner = parts[:-1] if column else parts
    full = (owner[-3] if len(owner) > 2 else "", owner[-2] if len(owner) > 1 else "", owner[-1] if owner else "")

    def action() -> None:
        try:
            database, catalog, entry = existing(executor, full)
        except SqlError:
            raise SqlError.of(15248) from None
        table = entry.table
        if column:
            after = _renamed_column(table, column, new)
        else:
            if catalog.find(table.schema, new) is not None:
                raise SqlError.of(15335, new)
            after = dataclasses.replace(table, name=new)
        database.cdc.check_ddl(table, after, "rename")
        _change(executor, database, catalog, entry, after)

    executor.atomically(action)


def transfer(executor: Executor, cursor: Cursor) -> None:
    """ALTER SCHEMA ... TRANSFER of a table; its capture instances go on.

    :raises SqlError: 15151 without such a schema, 15530 where it has a table of that name
    """
    wanted = cursor.name()
    cursor.expect("TRANSFER")
    database, catalog, entry = existing(executor, parts_of(cursor))
    cursor.end()
    schema = catalog.schema_name(wanted)
    if schema is None:
        raise SqlError.of(15151, "alter", "schema", wanted)
    if catalog.find(schema, entry.table.name) is not None:
        raise SqlError.of(15530, entry.table.name)
    after = dataclasses.replace(entry.table, schema=schema)
    database.cdc.check_ddl(entry.table, after, "transfer")
    _change(executor, database, catalog, entry, after)


def _change(executor: Executor, database: Database, catalog: Catalog, entry: TableEntry, after: TableDef) -> None:
    ids = {column.column_id: column.name for column in after.columns}
    names = {
        ids[column.column_id]: entry.default_names[column.name]
        for column in entry.table.columns
        if column.name in entry.default_names
    }
    now = executor.env.instance.storage.clock()
    changed = dataclasses.replace(entry, table=after, modified=now, default_names=names)
    operation = Operation("", on_commit=lambda: database.cdc.table_changed(after))
    catalog = dataclasses.replace(catalog, rights=following(catalog.rights, entry.table, after))
    define(executor, replaced(catalog, changed), operation)


def _renamed_column(table: TableDef, column: str, new: str) -> TableDef:
    known = table.column(column)
    if known is None:
        raise SqlError.of(15248)
    changed = definitions.replace_column(table, known, dataclasses.replace(known, name=new))
    indexes = tuple(
        dataclasses.replace(
            i,
            columns=tuple(new if c == known.name else c for c in i.columns),
            descending=frozenset(new if c == known.name else c for c in i.descending),
        )
        for i in table.indexes
    )
    return dataclasses.replace(changed, indexes=indexes)
