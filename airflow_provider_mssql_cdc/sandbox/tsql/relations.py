"""What a name in a FROM clause stands for: user tables as the session reads them, views, change tables, functions."""

from __future__ import annotations

import dataclasses
from typing import Any

from airflow_provider_mssql_cdc.sandbox.catalog import changes, state_views, views
from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold, system
from airflow_provider_mssql_cdc.sandbox.engine.storage import ROW_ID, Database, TableEntry
from airflow_provider_mssql_cdc.sandbox.engine.stored import stored_name
from airflow_provider_mssql_cdc.sandbox.protocol import Column, IsolationLevel, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import masks, row_filter, row_security
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment, denied
from airflow_provider_mssql_cdc.sandbox.tsql.locked_reads import PieceReader, Wanted, beside_a_writer, lock_table
from airflow_provider_mssql_cdc.sandbox.tsql.meanwhile import meanwhile
from airflow_provider_mssql_cdc.sandbox.tsql.reads import Reads, how
from airflow_provider_mssql_cdc.sandbox.tsql.relation import Range, Relation

_OF_SESSIONS = ("dm_exec_", "dm_tran_")
"""What the names of views begin with that tell of sessions, not of a database: they wait for nobody."""


def relation(
    env: Environment, parts: tuple[str, str, str], bounds: Range, right: str = "SELECT", wanted: Wanted | None = None
) -> Relation:
    """A table, view or change table to read from.

    :param right: what the session needs on a user table
    :param wanted: what the statement says of it; None where it reads by row versions
    """
    database, schema = env.database_named(parts[0]), parts[1] or "dbo"
    full = ".".join(filter(None, parts))
    local = env.local(parts[2])
    if local is not None:
        return _stored(env.register(local.rows), local.entry, "tempdb")
    if system(schema, "")[0] not in ("sys", "information_schema"):
        env.see_snapshot(database)
    if fold(schema) == "cdc":
        hints = frozenset() if wanted is None else wanted.hints
        found = changes.change_relation(env, database, parts[2], bounds, full, hints)
        if env.trancount and env.isolation in (IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE):
            env.manager.keep_locked(database, parts[2].casefold())
        if not env.may_select(database, "cdc", parts[2]):
            raise denied("SELECT", parts[2], database, "cdc")
        return found
    entry = env.catalog(database).find(schema, parts[2])
    if entry is not None:
        env.manager.wait_behind_ddl(database, entry.table.object_id)
    env.manager.wait_for_ddl(
        database, lambda catalog: catalog.find(schema, parts[2]) is not database.catalog.find(schema, parts[2])
    )
    env.manager.check_metadata(database, schema, parts[2])
    entry = env.catalog(database).find(schema, parts[2])
    if entry is not None:
        if not env.permitted(database, right, entry.table.schema, entry.table.name):
            raise denied(right, entry.table.name, database, entry.table.schema)
        if entry.table.has_column_set:
            raise unsupported("rows of a table with a column set")
        env.standing.setdefault(database, set()).add(entry.table.object_id)
        env.manager.see(database, entry.table.object_id)
        stored = _stored(stored_name(database, entry), entry, database.name)
        if hidden := masks.of_table(env, database, entry):
            stored = dataclasses.replace(stored, masks=hidden)
        found = stored if wanted is None else _read_as(env, wanted, database, entry, stored)
        return row_filter.filtered(env, database, entry, found)
    key = (database.name, *system(schema, parts[2]))
    if key not in env.views:
        meanwhile(env, database)
        if not key[2].startswith(_OF_SESSIONS):
            env.manager.wait_for_ddl(database, lambda catalog: True)
        view = views.find(env, database, schema, parts[2])
        if view is None:
            raise _unknown(database, parts, schema)
        if database.name == "msdb" and schema.casefold() == "dbo" and not env.may_select(database, *key[1:]):
            raise denied("SELECT", parts[2], database, schema)
        env.views[key] = env.arrow_relation(*view)
    return env.views[key]


def _read_as(env: Environment, wanted: Wanted, database: Database, entry: TableEntry, stored: Relation) -> Relation:
    """A user table by the session's isolation level, the database's options and the hints."""
    number = entry.table.object_id
    reads = how(env.isolation, database, wanted.hints)
    if reads is not Reads.VERSIONS:
        meanwhile(env, database)
    if reads is Reads.LOCKS or wanted.hints:
        lock_table(env, database, number, wanted.hints)
    if reads is Reads.VERSIONS or database.locks.writer(number) is env.manager:
        return stored
    if reads in (Reads.NOT_COMMITTED, Reads.PAST_LOCKS):
        rows = beside_a_writer(env, database, entry, reads)
        return stored if rows is None else dataclasses.replace(stored, source=env.register(rows))
    keeps = bool(env.trancount) and (
        env.isolation is IsolationLevel.REPEATABLE_READ or "repeatableread" in wanted.hints
    )
    pieces = PieceReader(env, database, entry, wanted.columns(), keeps, wanted.index)
    return dataclasses.replace(stored, source=env.later(pieces.read), narrow=pieces.narrow)


def _stored(source: str, entry: TableEntry, database: str) -> Relation:
    columns = [
        (Column(c.name, c.type, c.nullable, c.identity, c.computed is not None), f"c{c.column_id}")
        for c in entry.table.columns
    ]
    return Relation(source, columns, hidden=ROW_ID, parts=(database, entry.table.schema, entry.table.name))


def table_function(
    env: Environment, parts: tuple[str, str, str], arguments: list[Any], late: list[SqlError] | None
) -> Relation:
    """A table-valued function of the catalogue or of CDC.

    :param late: see ``Context.late``
    """
    database = env.database_named(parts[0])
    if system(parts[1] or "dbo", parts[2]) == ("sys", state_views.INPUT_BUFFER):
        return env.arrow_relation(*state_views.input_buffer(env, arguments))
    found = changes.change_function(env, database, parts[1] or "sys", parts[2], arguments, late)
    if found is None:
        if row_security.find_function(env.catalog(database), parts[1] or "dbo", parts[2]) is not None:
            raise unsupported("calling a function other than by a security policy")
        raise _unknown(database, parts, parts[1] or "sys")
    read = env.arrow_relation(*found, changes.rows_of_function(*found))
    instance = changes.instance_of_function(database.cdc, parts[2])
    if instance is None:
        return read
    return dataclasses.replace(read, masks=masks.of_changes(env, database, instance, read.columns))


def _unknown(database: Database, parts: tuple[str, str, str], schema: str) -> SqlError:
    """What is raised for an object that is not there: whether a server has one of the system's is not known."""
    full = ".".join(filter(None, parts))
    of_msdb = database.name == "msdb" and parts[2].casefold().startswith("sys")
    of_system = of_msdb or system(schema, "")[0] in ("sys", "information_schema")
    return unsupported(full) if of_system else SqlError.of(208, full)
