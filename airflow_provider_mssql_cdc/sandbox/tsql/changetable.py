"""CHANGETABLE: what changed in a tracked table, and the versions of its rows, as something to read from."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold, system
from airflow_provider_mssql_cdc.sandbox.engine.schema import ColumnDef
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database, TableEntry
from airflow_provider_mssql_cdc.sandbox.engine.stored import stored_name
from airflow_provider_mssql_cdc.sandbox.engine.tracking import net
from airflow_provider_mssql_cdc.sandbox.engine.tracking.state import TrackedTable
from airflow_provider_mssql_cdc.sandbox.protocol import Column, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import operators
from airflow_provider_mssql_cdc.sandbox.tsql.changetable_grammar import CHANGETABLE, CONTEXT
from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment, denied
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import Cursor, tokenize
from airflow_provider_mssql_cdc.sandbox.tsql.meanwhile import meanwhile
from airflow_provider_mssql_cdc.sandbox.tsql.relation import Relation
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Context, Scope
from airflow_provider_mssql_cdc.sandbox.tsql.typing import BIGINT, kind, varbinary
from airflow_provider_mssql_cdc.sandbox.types import SqlType

VIEW = "VIEW CHANGE TRACKING"
_MOST_CONTEXT = 128
# the nearest that is simulated to Latin1_General_BIN, which docs name
_OPERATION = SqlType("nchar", 1, collation="Latin1_General_BIN2")

Compile = Callable[[Context, Scope, Any], Expr]


def is_changetable(node: exp.Expr) -> bool:
    """Whether an item of a FROM clause is CHANGETABLE."""
    return isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous) and node.this.name == CHANGETABLE


def changetable(ctx: Context, scope: Scope, node: exp.Table, scalar: Compile) -> Relation:
    """The rows of CHANGETABLE.

    :param scope: what its arguments may name
    :raises SqlError: 208, 229, 3961, 8114, 22103 to 22112, 22117
    """
    form, named, *arguments = node.this.expressions
    database, entry, tracked = _found(ctx.env, named)
    keys = net.key_columns(tracked, entry.table)
    side = f"{database.duck}.main.{tracked.storage}"
    context = Column("SYS_CHANGE_CONTEXT", varbinary(_MOST_CONTEXT))
    key = [(Column(column.name, column.type, False), f"c{column.column_id}") for column in keys]
    if form.name == "VERSION":
        conditions = _conditions(ctx, scope, entry, keys, arguments, scalar)
        source = net.versions(side, stored_name(database, entry), tracked, entry.table, conditions)
        return Relation(source, [(Column("SYS_CHANGE_VERSION", BIGINT), "version"), (context, "context"), *key])
    after = _version(ctx, scalar(ctx, scope, arguments[0]))
    newest = database.tracking.switches.newest_spelling
    columns = [
        (Column("SYS_CHANGE_VERSION", BIGINT), "version"),
        (Column("SYS_CHANGE_CREATION_VERSION", BIGINT), "creation"),
        (Column("SYS_CHANGE_OPERATION", _OPERATION), "op"),
        (Column("SYS_CHANGE_COLUMNS", varbinary(4100)), "mask"),
        (context, "context"),
        *key,
    ]
    return Relation(net.changes(side, tracked, entry.table, after, newest_spelling=newest), columns)


def _found(env: Environment, node: exp.Table) -> tuple[Database, TableEntry, TrackedTable]:
    """The tracked table that is named, ready to be read."""
    parts = [part.name for part in node.parts]
    full = ".".join(parts)
    if len(parts) > 3:
        raise SqlError.of(22106)
    name, schema = parts[-1], parts[-2] if len(parts) > 1 and parts[-2] else "dbo"
    database = env.database_named(parts[0] if len(parts) == 3 else "")
    check_primary(database)
    if system(schema, "")[0] in ("sys", "information_schema", "cdc") or name.startswith(("#", "@")):
        raise SqlError.of(22107, full)
    env.see_snapshot(database)
    meanwhile(env, database)
    entry = env.catalog(database).find(schema, name)
    if entry is not None:
        env.manager.wait_behind_ddl(database, entry.table.object_id)
    env.manager.wait_for_ddl(
        database, lambda catalog: catalog.find(schema, name) is not database.catalog.find(schema, name)
    )
    env.manager.check_metadata(database, schema, name)
    catalog = env.catalog(database)
    entry = catalog.find(schema, name)
    if entry is None:
        raise SqlError.of(208, full)
    tracked = catalog.tracked.get(entry.table.object_id)
    if tracked is None:
        raise SqlError.of(22105, full)
    table = entry.table
    if not env.permitted(database, VIEW, table.schema, table.name):
        raise denied(VIEW, table.name, database, table.schema)
    names = [column.name for column in net.key_columns(tracked, table)]
    if not env.permitted(database, "SELECT", table.schema, table.name, names):
        raise denied("SELECT", table.name, database, table.schema)
    env.standing.setdefault(database, set()).add(table.object_id)
    env.manager.see_commits(database)
    return database, entry, tracked


def check_primary(database: Database) -> None:
    """Refuse what a secondary replica cannot say.

    :raises SqlError: 22117
    """
    if database.tracking.secondary and database.tracking.switches.secondary_refuses:
        raise SqlError.of(22117)


def _version(ctx: Context, given: Expr) -> str:
    """The version as DuckDB takes it; '' for NULL."""
    if kind(given.type) in ("time", "guid"):
        raise SqlError.of(257 if kind(given.type) == "time" else 206, given.type.name, "bigint")
    value = ctx.value(given, "the version of CHANGETABLE")
    if value is None:
        return ""
    if isinstance(value, str):
        text = value.strip()
        if not text.removeprefix("-").isdecimal():
            raise SqlError(8114, f"Error converting data type {given.type.name} to bigint.", state=5)
        return str(int(text or "0"))
    return str(int.from_bytes(value[-8:], signed=len(value) >= 8) if isinstance(value, bytes) else int(value))


def _conditions(
    ctx: Context, scope: Scope, entry: TableEntry, keys: list[ColumnDef], arguments: list[exp.Expr], scalar: Compile
) -> list[str]:
    """That the key's columns have the values that are given, in any order."""
    columns, values = (each.expressions for each in arguments)
    table = entry.table.name
    if any(not isinstance(column, exp.Column) for column in columns):
        raise SqlError.of(22103)
    known, given = {fold(column.name): column for column in keys}, [column.name for column in columns]
    for name in given:
        if fold(name) not in known:
            raise SqlError.of(22111, name, table)
        if [fold(each) for each in given].count(fold(name)) > 1:
            raise SqlError.of(22112, name)
    if len(given) != len(keys):
        raise SqlError.of(22110, table)
    if len(values) != len(given):
        raise SqlError.of(22103)
    conditions = []
    for name, value in zip(given, values, strict=True):
        column = known[fold(name)]
        stored = Expr(f"b.c{column.column_id}", column.type, column.nullable)
        conditions.append(operators.compare("=", stored, scalar(ctx, scope, value)))
    return conditions


# What stands before a statement, and before a batch


@contextlib.contextmanager
def context_of(ctx: Context, tree: exp.Expr, scalar: Compile) -> Iterator[None]:
    """Let what a statement changes carry its context.

    :raises SqlError: 22108, 22109
    """
    node = tree.meta.get(CONTEXT)
    if node is None:
        yield
        return
    env = ctx.env
    if isinstance(tree, exp.Query) and env.current.tracking.switches.context_on_select_error:
        raise SqlError.of(22108)
    given = scalar(ctx, Scope(), node)
    value = ctx.value(given, "a context")
    is_binary = value is None or given.type.name in ("binary", "varbinary")
    if not is_binary or (value is not None and len(value) > _MOST_CONTEXT):
        raise SqlError.of(22109)
    env.manager.context = value
    try:
        yield
    finally:
        env.manager.context = None


def check_batch(env: Environment, text: str) -> None:
    """Refuse a whole batch that asks for the changes of a table which is not tracked.

    A table that is not there yet is looked up when its statement runs.

    :raises SqlError: 22105
    """
    if CHANGETABLE not in text.upper():
        return
    cursor = Cursor(tokenize(text), text)
    while cursor.token.kind != "end":
        line = cursor.token.line
        if not (cursor.take(CHANGETABLE, "(") and (cursor.take("CHANGES") or cursor.take("VERSION"))):
            cursor.next()
            continue
        if not cursor.token.is_name:
            continue
        parts = cursor.dotted()
        with contextlib.suppress(SqlError):
            database, schema, name = ("", "", *parts)[-3:]
            found = env.table((database, schema, name)) if len(parts) <= 3 else None
            if found is not None and found[1].table.object_id not in env.catalog(found[0]).tracked:
                error = SqlError.of(22105, ".".join(parts), line=line)
                break
    else:
        return
    raise error
