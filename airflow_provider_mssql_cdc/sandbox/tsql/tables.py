"""CREATE, ALTER, DROP and TRUNCATE TABLE, on the engine's definitions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from airflow_provider_mssql_cdc.sandbox.collations import comparing
from airflow_provider_mssql_cdc.sandbox.collations.names import DEFAULT
from airflow_provider_mssql_cdc.sandbox.engine.local_tables import LocalTable
from airflow_provider_mssql_cdc.sandbox.engine.log import TableAltered
from airflow_provider_mssql_cdc.sandbox.engine.open_transaction import Operation
from airflow_provider_mssql_cdc.sandbox.engine.rights import following, without_objects
from airflow_provider_mssql_cdc.sandbox.engine.schema import ColumnDef, IndexDef
from airflow_provider_mssql_cdc.sandbox.engine.storage import ROW_ID, Catalog, Database, TableEntry
from airflow_provider_mssql_cdc.sandbox.engine.stored import STAGE, physical, staged, stored_name
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import definitions, dml, row_security, tracking
from airflow_provider_mssql_cdc.sandbox.tsql.assignment import assign
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.ddl import (
    TableSpec,
    check_columns,
    check_number,
    check_single,
    collation_of,
    data_type,
    elements,
)
from airflow_provider_mssql_cdc.sandbox.tsql.executor import Executor
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr
from airflow_provider_mssql_cdc.sandbox.tsql.insert_rows import default_of
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import Cursor, sub_cursor
from airflow_provider_mssql_cdc.sandbox.tsql.mask_functions import mask_of
from airflow_provider_mssql_cdc.sandbox.tsql.typing import duck, kind
from airflow_provider_mssql_cdc.sandbox.types import SqlType

_STRINGS = ("char", "varchar", "nchar", "nvarchar", "sysname")


def define(executor: Executor, catalog: Catalog, operation: Operation | None = None) -> None:
    """Make a new catalogue the transaction's, with the DuckDB change that goes with it."""
    manager = executor.env.manager
    assert manager.open is not None
    manager.apply(operation or Operation(""))
    manager.open.catalog = catalog


def parts_of(cursor: Cursor) -> tuple[str, str, str]:
    parts = cursor.dotted()
    if len(parts) > 3:
        raise SqlError.of(117)
    database, schema, name = ("", "", *parts)[-3:]
    if name.startswith("##"):
        raise unsupported("global temporary tables", cursor.token.line)
    return database, schema, name


def _enter(executor: Executor, parts: tuple[str, str, str]) -> tuple[Database, Catalog]:
    database = executor.env.database_named(parts[0])
    env = executor.env
    known = env.catalog(database).find(parts[1] or "dbo", parts[2])
    if not env.permitted(database, "ALTER", parts[1] or "dbo", parts[2]):
        if known is not None:
            name = ".".join(filter(None, parts))
            raise SqlError.of(1088, name, state=13)
        raise SqlError.of(262, "CREATE TABLE", database.name)
    if database.cdc.enabled and not env.is_owner(database) and not env.user_in_role(database, "db_ddladmin"):
        raise SqlError.of(22914)
    return database, env.enter(database, None if known is None else known.table.object_id)


def existing(executor: Executor, parts: tuple[str, str, str]) -> tuple[Database, Catalog, TableEntry]:
    """A table to change, its database locked.

    :raises SqlError: 4902 where there is none
    """
    if parts[2].startswith("#"):
        raise unsupported("ALTER TABLE and unique indexes of a temporary table")
    database, catalog = _enter(executor, parts)
    entry = catalog.find(parts[1] or "dbo", parts[2])
    if entry is None:
        name = ".".join(filter(None, parts))
        raise SqlError.of(4902, name)
    return database, catalog, entry


def _computed_type(executor: Executor) -> definitions.ComputedType:
    def compiled(text: str, columns: list[ColumnDef]) -> tuple[SqlType, bool]:
        expr = dml.compile_computed(executor.context(), text, columns)
        return expr.type, expr.nullable

    return compiled


def replaced(catalog: Catalog, entry: TableEntry) -> Catalog:
    """The catalogue with one table's entry exchanged."""
    return dataclasses.replace(catalog, tables={**catalog.tables, entry.table.object_id: entry})


def create_table(executor: Executor, cursor: Cursor) -> None:
    """CREATE TABLE"""
    parts = parts_of(cursor)
    spec = elements(sub_cursor(cursor, cursor.group()))
    if cursor.take("ON"):
        cursor.name()
    if cursor.take("TEXTIMAGE_ON"):
        cursor.name()
    if cursor.take("WITH"):
        raise unsupported("WITH in CREATE TABLE", cursor.token.line)
    cursor.end()
    check_columns(spec.columns, parts[2])
    create(executor, parts, spec)


def create(executor: Executor, parts: tuple[str, str, str], spec: TableSpec) -> None:
    """Create a table in the open transaction.

    :raises SqlError: 2714, 2760
    """
    if parts[2].startswith("#"):
        if parts[2].casefold() in executor.env.manager.temporary:
            raise SqlError.of(2714, parts[2])
        executor.env.keep(parts[2], local_table(executor, parts[2], spec))
        return
    database, catalog = _enter(executor, parts)
    schema = catalog.schema_name(parts[1] or "dbo")
    if schema is None:
        raise SqlError.of(2760, parts[1])
    if catalog.find(schema, parts[2]) is not None:
        raise SqlError.of(2714, parts[2])
    entry = _defined(executor, schema, parts[2], spec)
    sql = f"CREATE TABLE {stored_name(database, entry)} ({definitions.storage_columns(entry.table)})"
    define(executor, replaced(catalog, entry), Operation(sql))


def _defined(executor: Executor, schema: str, name: str, spec: TableSpec) -> TableEntry:
    storage = executor.env.instance.storage
    entry = definitions.create_table(
        storage.new_object_id(), schema, name, spec, storage.clock(), _computed_type(executor)
    )
    for column in entry.table.columns:
        if column.default is not None:
            assign(default_of(executor.context(), column), column, name)
    return entry


def local_table(executor: Executor, name: str, spec: TableSpec) -> LocalTable:
    """A temporary table or table variable, as yet without rows.

    Its texts have the collation of tempdb, those of a variable that of the current database (docs: COLLATE, tempdb).
    """
    if name.startswith("#"):
        for column in spec.columns:
            column.collation = column.collation or DEFAULT
    check_columns(spec.columns, name)
    return LocalTable.empty(_defined(executor, "dbo", name, spec), executor.env.procedure_depth)


def alter_table(executor: Executor, cursor: Cursor) -> None:
    """ALTER TABLE ... ADD, DROP COLUMN, DROP CONSTRAINT, ALTER COLUMN, ENABLE and DISABLE CHANGE_TRACKING"""
    parts = parts_of(cursor)
    if not cursor.take("WITH", "CHECK"):
        cursor.take("WITH", "NOCHECK")
    text = cursor.source(cursor.tokens[:-1])
    place = existing(executor, parts)
    if cursor.take("ADD"):
        _add(executor, place, elements(cursor), text)
    elif cursor.take("DROP"):
        _drop(executor, place, cursor, text)
    elif cursor.at("ENABLE", "CHANGE_TRACKING") or cursor.at("DISABLE", "CHANGE_TRACKING"):
        tracking.alter_table(executor, place, cursor, enable=cursor.next().upper == "ENABLE")
    elif cursor.take("ALTER", "COLUMN"):
        _alter_column(executor, place, cursor, text)
    else:
        raise unsupported(f"ALTER TABLE {cursor.token.text.upper()}", cursor.token.line)


Place = tuple[Database, Catalog, TableEntry]


def _apply(executor: Executor, place: Place, after: TableEntry, sql: str, text: str, kind_: str) -> None:
    database, catalog, before = place
    database.cdc.check_ddl(before.table, after.table, kind_)
    full = f"ALTER TABLE {stored_name(database, before)} {sql}" if sql else ""
    tracked = database.cdc.is_tracked(before.table.object_id)
    record = TableAltered(before.table, after.table, text) if tracked else None
    define(executor, replaced(catalog, after), Operation(full, record=record))


def _add(executor: Executor, place: Place, spec: TableSpec, text: str) -> None:
    database, _, entry = place
    storage = executor.env.instance.storage
    after = definitions.add_elements(entry, spec, storage.clock(), _computed_type(executor))
    check_number(after.table.columns, after.table.name, "ALTER TABLE")
    check_single(after.table.columns, after.table.name)
    indexes = after.table.indexes[len(entry.table.indexes) :]
    for index in indexes:
        _check_not_null(entry, index)
    ctx, name = executor.context(), stored_name(database, entry)
    full = f"{database.name}.{entry.table.schema}.{entry.table.name}"
    has_rows = bool(executor.env.fetchall(f"SELECT 1 FROM {name} LIMIT 1"))
    new = after.table.columns[len(entry.table.columns) :]
    changes, defaults = [], {}
    for column, given in zip(new, spec.columns, strict=True):
        fill = ""
        if column.default is not None and (given.with_values or not column.nullable):
            expr = default_of(ctx, column)
            value = assign(expr, column, full)
            if expr.constant:
                fill = f" DEFAULT ({value})"
            else:
                defaults[column.column_id] = value
        elif has_rows and not column.nullable and not _is_made(column):
            raise SqlError.of(4901, column.name, entry.table.name)
        changes.append(f"ADD COLUMN c{column.column_id} {duck(column.type)}{fill}")
    _apply(executor, place, after, f";\nALTER TABLE {name} ".join(changes), text, "add")
    _fill(executor, database, after, new, defaults)
    for index in indexes:
        check_unique(executor, database, after, index)


def _is_made(column: ColumnDef) -> bool:
    """Whether the server gives each row its value."""
    return column.computed is not None or column.identity or column.type.name == "rowversion"


def _fill(
    executor: Executor, database: Database, after: TableEntry, new: Sequence[ColumnDef], defaults: dict[int, str]
) -> None:
    """Give the rows that are there a value each in new columns; none of it is a change to CDC.

    :param defaults: by column id those that are another value for each row
    """
    env, table = executor.env, after.table
    if any(column.identity for column in new):
        number, last = table.object_id, database.last_identity(table.object_id)
        env.manager.apply(Operation("", on_undo=lambda: database.reset_identity(number, last)))
        database.reset_identity(number)
    filled = [f"c{c.column_id}" for c in new if _is_made(c) or c.column_id in defaults]
    name = stored_name(database, after)
    known = [c.column_id for c in table.columns if c not in new or not _is_made(c)]
    items = [f"{defaults.get(i, f'c{i}')} AS c{i}" for i in known]
    rows = env.fetch(f"SELECT {', '.join([*items, ROW_ID])} FROM {name} ORDER BY {ROW_ID}") if filled else None
    if rows is None or not rows.num_rows:
        return
    arrays = {i: rows.column(f"c{i}") for i in known}
    complete = dml.completed(executor.context(), database, after, arrays, rows.num_rows)
    sets = ", ".join(f"{each} = n.{each}" for each in filled)
    sql = f"UPDATE {name} AS t SET {sets} FROM {STAGE} AS n WHERE t.{ROW_ID} = n.{ROW_ID}"
    env.manager.apply(Operation(sql, staged(table, complete, rows.column(ROW_ID))))


def _check_not_null(entry: TableEntry, index: IndexDef) -> None:
    for column in entry.table.columns:
        if index.primary_key and column.name in index.columns and column.nullable:
            raise SqlError.of(8111, entry.table.name)


def check_unique(executor: Executor, database: Database, entry: TableEntry, index: IndexDef) -> None:
    """Refuse a unique index over rows that it does not fit.

    :raises SqlError: 1505
    """
    if not index.unique:
        return
    keys = []
    known = {column.name: column for column in entry.table.columns}
    for name in index.columns:
        stored = physical(entry.table, name)
        keys.append(comparing.equal(stored, known[name].type) if known[name].type.name in _STRINGS else stored)
    sql = f"SELECT 1 FROM {stored_name(database, entry)} GROUP BY {', '.join(keys)} HAVING count(*) > 1 LIMIT 1"
    if executor.env.fetchall(sql):
        full = f"{entry.table.schema}.{entry.table.name}"
        raise SqlError.of(1505, full, index.name)


def _drop(executor: Executor, place: Place, cursor: Cursor, text: str) -> None:
    now = executor.env.instance.storage.clock()
    is_constraint = cursor.take("CONSTRAINT")
    if not is_constraint:
        cursor.take("COLUMN")
    lenient = cursor.take("IF", "EXISTS")
    database, catalog, entry = place
    sqls, after = [], entry
    while True:
        name = cursor.name()
        if is_constraint:
            changed = definitions.drop_index(after, name, now)
            if changed is None and not lenient:
                raise SqlError.of(3728, name)
            after = changed or after
            tracking.check_drop_constraint(catalog, entry, after)
        elif not lenient or after.table.column(name) is not None:
            after, sql = definitions.drop_column(after, name, now)
            sqls.append(sql)
        if not cursor.take(","):
            break
    cursor.end()
    joined = f";\nALTER TABLE {stored_name(database, entry)} ".join(sqls)
    catalog = dataclasses.replace(catalog, rights=following(catalog.rights, entry.table, after.table))
    _apply(executor, (database, catalog, entry), after, joined, text, "drop")


def _alter_column(executor: Executor, place: Place, cursor: Cursor, text: str) -> None:
    database, _, entry = place
    name = cursor.name()
    if cursor.at("ADD") or cursor.at("DROP"):
        _change_mask(executor, place, cursor, name, text)
        return
    type_ = data_type(cursor)
    # docs: without COLLATE the column takes the collation of the database
    chosen = collation_of(cursor).name if cursor.take("COLLATE") else comparing.DATABASE.get()
    nullable = not cursor.take("NOT", "NULL")
    cursor.take("NULL")
    cursor.end()
    after, sql = definitions.alter_column(
        entry, name, definitions.collated(type_, chosen), nullable, executor.env.instance.storage.clock()
    )
    old = entry.table.named(name)
    new = next(c for c in after.table.columns if c.column_id == old.column_id)
    stored, full = f"c{old.column_id}", f"{database.name}.{entry.table.schema}.{entry.table.name}"
    checked = assign(Expr(stored, old.type), new, full)  # values that no longer fit are an error
    rows = executor.env.fetch(f"SELECT {checked} AS v FROM {stored_name(database, entry)}")
    if not nullable and rows.column(0).null_count:
        raise SqlError.of(515, new.name, full, "UPDATE")
    if kind(old.type) == kind(type_) == "bin" and sql:
        sql = f"ALTER COLUMN {stored} TYPE {duck(type_)} USING {checked}"
    _apply(executor, place, after, sql, text, "alter")


def _change_mask(executor: Executor, place: Place, cursor: Cursor, name: str, text: str) -> None:
    """ALTER COLUMN c ADD MASKED WITH (FUNCTION = '...') and DROP MASKED"""
    _, _, entry = place
    column = definitions.find_column(entry.table, name)
    mask = None
    if cursor.take("ADD"):
        cursor.expect("MASKED")
        mask = mask_of(cursor, None if column.computed is not None else column.type)
    else:
        cursor.expect("DROP", "MASKED")
    cursor.end()
    table = definitions.replace_column(entry.table, column, dataclasses.replace(column, mask=mask))
    after = dataclasses.replace(entry, table=table, modified=executor.env.instance.storage.clock())
    _apply(executor, place, after, "", text, "alter")


def drop_table(executor: Executor, cursor: Cursor) -> None:
    """DROP TABLE [IF EXISTS] t, ..."""
    lenient = cursor.take("IF", "EXISTS")
    names = [parts_of(cursor)]
    while cursor.take(","):
        names.append(parts_of(cursor))
    cursor.end()

    def action(parts: tuple[str, str, str]) -> None:
        if parts[2].startswith("#") and parts[2].casefold() in executor.env.manager.temporary:
            executor.env.keep(parts[2], None)
            return
        database, catalog = _enter(executor, parts)
        entry = catalog.find(parts[1] or "dbo", parts[2])
        if entry is None:
            if lenient:
                return
            name = ".".join(filter(None, parts))
            raise SqlError.of(3701, "table", name)
        object_id = entry.table.object_id
        row_security.check_drop(catalog, entry)
        database.cdc.check_ddl(entry.table, None, "drop")
        left = {key: value for key, value in catalog.tables.items() if key != object_id}
        rights = without_objects(catalog.rights, entry.table.schema, [entry.table.name])
        for instance in database.cdc.instances:
            if instance.source_object_id == object_id:
                rights = without_objects(rights, "cdc", instance.objects)
        operation = Operation(
            f"DROP TABLE {stored_name(database, entry)}", on_commit=lambda: database.cdc.drop_table(object_id)
        )
        catalog = dataclasses.replace(catalog, tables=left, rights=rights)
        define(executor, *tracking.dropped_with(database, catalog, object_id, operation))

    for each in names:
        executor.atomically(lambda each=each: action(each))  # type: ignore[misc]


def truncate_table(executor: Executor, cursor: Cursor) -> None:
    """TRUNCATE TABLE"""
    parts = parts_of(cursor)
    cursor.end()
    local = executor.env.local(parts[2])
    if local is not None:
        executor.env.keep(parts[2], LocalTable.empty(local.entry, local.depth))
        executor.env.instance.storage.database("tempdb").reset_identity(local.entry.table.object_id)
        return
    database, catalog, entry = existing(executor, parts)
    database.cdc.check_ddl(entry.table, None, "truncate")
    object_id = entry.table.object_id
    sql = f"DELETE FROM {stored_name(database, entry)}"
    operation = Operation(sql, on_commit=lambda: database.reset_identity(object_id))
    define(executor, *tracking.truncated_with(database, catalog, object_id, operation))
