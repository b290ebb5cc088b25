"""Change Tracking switched on and off, for a database and for its tables, and what it forbids."""

from __future__ import annotations

import dataclasses

from airflow_provider_mssql_cdc.sandbox.engine.open_transaction import Operation
from airflow_provider_mssql_cdc.sandbox.engine.storage import Catalog, Database, TableEntry
from airflow_provider_mssql_cdc.sandbox.engine.tracking.rows import create_side_table
from airflow_provider_mssql_cdc.sandbox.engine.tracking.state import COMMITS, Options, TrackedTable
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import tracking_options
from airflow_provider_mssql_cdc.sandbox.tsql.executor import Executor
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import Cursor, sub_cursor

_SYSTEM = ("master", "tempdb", "model", "msdb")


def alter_database(executor: Executor, database: Database, cursor: Cursor) -> None:
    """ALTER DATABASE d SET CHANGE_TRACKING = ON [(...)] | = OFF | (...)

    :raises SqlError: 5088 to 5092, 22114, 22115, each followed by 5069
    """
    wanted, tracking = tracking_options.read(cursor), database.tracking
    name = database.name
    if wanted.mixed:
        raise failed(SqlError.of(22114))
    if name in _SYSTEM:
        raise failed(SqlError.of(5090, name))
    before = tracking.options
    if wanted.on:
        if before is not None:
            raise failed(SqlError.of(5088, name))
        tracking.switch_on(wanted.options(Options()))
    elif before is None:
        raise failed(SqlError.of(5089, name, state=2 if wanted.on is None else 1))
    elif wanted.on is None:
        tracking.set_options(wanted.options(before))
    else:
        if executor.env.catalog(database).tracked:
            raise failed(SqlError.of(22115, name))
        tracking.switch_off()
        newest = f"(SELECT max(commit_ts) FROM {database.duck}.main.{COMMITS})"
        executor.env.fetchall(f"DELETE FROM {database.duck}.main.{COMMITS} WHERE commit_ts < {newest}")


def check_alone(cursor: Cursor) -> None:
    """Refuse options of Change Tracking behind others of ALTER DATABASE.

    :raises SqlError: 22114, followed by 5069
    """
    if cursor.at(",") and any(token.upper == "CHANGE_TRACKING" for token in cursor.tokens[cursor.position :]):
        raise failed(SqlError.of(22114))


def failed(error: SqlError) -> SqlError:
    """An error of ALTER DATABASE, which always says behind it that the statement failed."""
    error.followed = (SqlError.of(5069),)
    return error


def alter_table(
    executor: Executor, place: tuple[Database, Catalog, TableEntry], cursor: Cursor, *, enable: bool
) -> None:
    """ALTER TABLE t ENABLE CHANGE_TRACKING [WITH (TRACK_COLUMNS_UPDATED = ON | OFF)] | DISABLE CHANGE_TRACKING

    :raises SqlError: 1718, 4996, 4997, 4999, 22119; 4998
    """
    cursor.expect("CHANGE_TRACKING")
    columns_updated = enable and cursor.take("WITH") and _columns_updated(sub_cursor(cursor, cursor.group()))
    cursor.end()
    database, catalog, entry = place
    now = executor.env.instance.storage.clock()
    # who reads by an older snapshot must see that the definition is another
    changed = dataclasses.replace(entry, modified=now)
    tables = {**catalog.tables, entry.table.object_id: changed}
    if enable:
        tracked = _tracked(executor, place, columns_updated)
        after = dataclasses.replace(catalog, tables=tables, tracked={**catalog.tracked, tracked.object_id: tracked})
        operation = Operation(create_side_table(database.duck, tracked, entry.table))
    else:
        known = catalog.tracked.get(entry.table.object_id)
        if known is None:
            raise SqlError.of(4998, entry.table.name)
        after = dataclasses.replace(catalog, tables=tables, tracked=_without(catalog, known))
        operation = Operation(_dropped(database, known), forgets=known.side)
    _define(executor, after, operation)


def _columns_updated(cursor: Cursor) -> bool:
    cursor.expect("TRACK_COLUMNS_UPDATED", "=")
    on = cursor.take("ON")
    if not on:
        cursor.expect("OFF")
    cursor.end()
    return on


def _tracked(executor: Executor, place: tuple[Database, Catalog, TableEntry], columns_updated: bool) -> TrackedTable:
    database, catalog, entry = place
    table = entry.table
    if database.tracking.options is None:
        raise SqlError.of(1718, database.name, table.name)
    if table.object_id in catalog.tracked:
        raise SqlError.of(4996, table.name)
    if table.primary_key is None:
        raise SqlError.of(4997, table.name)
    key = [table.named(name) for name in table.primary_key.columns]
    if any(column.type.name == "rowversion" for column in key):
        raise SqlError.of(4999, table.name)
    if table.primary_key.disabled:
        raise SqlError.of(22119, table.name)
    storage = executor.env.instance.storage
    ids = tuple(column.column_id for column in key)
    return TrackedTable(
        table.object_id, storage.new_object_id(), ids, storage.clock(), columns_updated, database.tracking.version
    )


def _without(catalog: Catalog, tracked: TrackedTable) -> dict[int, TrackedTable]:
    """The tracked tables that are left."""
    return {number: each for number, each in catalog.tracked.items() if each is not tracked}


def _dropped(database: Database, tracked: TrackedTable) -> str:
    return f"DROP TABLE {database.duck}.main.{tracked.storage}"


def dropped_with(
    database: Database, catalog: Catalog, object_id: int, operation: Operation
) -> tuple[Catalog, Operation]:
    """DROP TABLE: the catalogue and the operation, which drops the side table, too."""
    known = catalog.tracked.get(object_id)
    if known is None:
        return catalog, operation
    sql = f"{operation.sql};\n{_dropped(database, known)}"
    after = dataclasses.replace(catalog, tracked=_without(catalog, known))
    return after, dataclasses.replace(operation, sql=sql, forgets=known.side)


def truncated_with(
    database: Database, catalog: Catalog, object_id: int, operation: Operation
) -> tuple[Catalog, Operation]:
    """TRUNCATE TABLE: the catalogue and the operation, which empties the side table, too; no version is drawn."""
    known = catalog.tracked.get(object_id)
    if known is None:
        return catalog, operation
    begun = dataclasses.replace(known, begin_version=database.tracking.version)
    sql = f"{operation.sql};\nDELETE FROM {database.duck}.main.{known.storage}"
    after = dataclasses.replace(catalog, tracked={**catalog.tracked, object_id: begun})
    return after, dataclasses.replace(operation, sql=sql, forgets=known.side)


def check_drop_constraint(catalog: Catalog, before: TableEntry, after: TableEntry) -> None:
    """Refuse to drop the primary key of a tracked table.

    :raises SqlError: 3735, followed by 3727
    """
    key = before.table.primary_key
    if key is not None and after.table.primary_key is None and before.table.object_id in catalog.tracked:
        error = SqlError.of(3735, key.name, before.table.name)
        error.followed = (SqlError.of(3727),)
        raise error


def _define(executor: Executor, catalog: Catalog, operation: Operation) -> None:
    manager = executor.env.manager
    assert manager.open is not None
    manager.apply(operation)
    manager.open.catalog = catalog
