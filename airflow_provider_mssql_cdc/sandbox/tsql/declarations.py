"""DECLARE, USE, and the statements that define things: databases, schemas, tables, indexes, principals."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator

from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.collations.names import DEFAULT
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database
from airflow_provider_mssql_cdc.sandbox.protocol import DatabaseChanged, Outcome, RowCount, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import indexes, policies, principals, renaming, tables, tracking
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.ddl import collation_of, data_type, elements
from airflow_provider_mssql_cdc.sandbox.tsql.executor import Executor
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import Cursor, sub_cursor, syntax_error
from airflow_provider_mssql_cdc.sandbox.tsql.script import Statement


def declare(executor: Executor, statement: Statement) -> None:
    """DECLARE @name type [= value], ..."""
    cursor = statement.cursor()
    cursor.next()
    while True:
        token = cursor.next()
        if token.kind != "variable":
            raise unsupported("DECLARE of a cursor", token.line)
        cursor.take("AS")
        name = token.text[1:]
        if name.casefold() in executor.env.variables:
            raise SqlError.of(134, token.text, line=token.line)
        if cursor.take("TABLE"):
            spec = elements(sub_cursor(cursor, cursor.group()))
            executor.env.keep(token.text, tables.local_table(executor, token.text, spec))
            cursor.end()
            return
        executor.env.variables[name.casefold()] = (data_type(cursor), None)
        if cursor.take("="):
            start, depth = cursor.token, 0
            while cursor.token.kind != "end" and not (depth == 0 and cursor.at(",")):
                depth += {"(": 1, ")": -1}.get(cursor.next().text, 0)
            expr = executor.evaluate(cursor.text[start.start : cursor.tokens[cursor.position - 1].end], statement.line)
            executor.assign(name, executor.reading(lambda e=expr: executor.env.evaluate(e)), expr)  # type: ignore[misc]
        if not cursor.take(","):
            break
    cursor.end()


def run(executor: Executor, statement: Statement) -> Iterator[Outcome]:
    """Run a statement that is neither a query nor about control flow or transactions."""
    cursor = statement.cursor()
    verb, second = cursor.next().upper, cursor.token.upper
    if verb == "USE":
        yield from _use(executor, cursor.name())
        return
    if verb == "RECONFIGURE":
        if cursor.take("WITH"):
            cursor.expect("OVERRIDE")
        cursor.end()
        yield RowCount()
        return
    action = _ACTIONS.get((verb, second)) or _OTHERS.get((verb, second)) or _OTHERS.get((verb, ""))
    if action is None:
        raise unsupported(f"{verb} {second}", statement.line)
    if (verb, second) in _ACTIONS:
        cursor.next()
    if executor.settings.fmtonly:
        return
    if action in _SEPARATE:
        action(executor, cursor)
    else:
        executor.atomically(lambda: action(executor, cursor))
    yield RowCount()


def _use(executor: Executor, name: str) -> Iterator[Outcome]:
    old = executor.env.current.name
    database = executor.env.database_named(name)
    executor.env.current = database
    yield DatabaseChanged(old, database.name)
    yield RowCount()


def _require_no_transaction(executor: Executor, what: str) -> None:
    if executor.env.trancount:
        raise SqlError.of(226, what)


def _create_database(executor: Executor, cursor: Cursor) -> None:
    name = cursor.name()
    collation = collation_of(cursor).name if cursor.take("COLLATE") else DEFAULT
    cursor.end()
    _require_no_transaction(executor, "CREATE DATABASE")
    _require_sysadmin(executor, "CREATE DATABASE", "master")
    executor.env.instance.create_database(name, collation)


def _require_sysadmin(executor: Executor, what: str, database: str) -> None:
    if not executor.env.principal.sysadmin:
        raise SqlError.of(262, what, database)


def _drop_database(executor: Executor, cursor: Cursor) -> None:
    lenient = cursor.take("IF", "EXISTS")
    name = cursor.name()
    cursor.end()
    _require_no_transaction(executor, "DROP DATABASE")
    _require_sysadmin(executor, "DROP DATABASE", name)
    if lenient and name.casefold() not in executor.env.instance.storage.databases:
        return
    executor.env.instance.drop_database(name)


_LOOK = 0.01  # seconds after which who waits for others looks whether they have gone
_SWITCH = ("ON", "OFF")
# with the words that may follow; AUTO_CLOSE and AUTO_SHRINK change nothing that is simulated
_DATABASE_OPTIONS = {
    "ALLOW_SNAPSHOT_ISOLATION": _SWITCH,
    "READ_COMMITTED_SNAPSHOT": _SWITCH,
    "RECOVERY": ("FULL", "SIMPLE", "BULK_LOGGED"),
    "AUTO_CLOSE": _SWITCH,
    "AUTO_SHRINK": _SWITCH,
    "SINGLE_USER": ("",),
    "MULTI_USER": ("",),
    "DELAYED_DURABILITY": ("DISABLED", "ALLOWED", "FORCED"),
}


def _alter_database(executor: Executor, cursor: Cursor) -> None:
    name = cursor.name()
    database = executor.env.current if name.upper() == "CURRENT" else executor.env.database_named(name)
    if not executor.env.permitted(database, "ALTER"):
        raise tracking.failed(SqlError.of(5011, database.name, state=9))
    cursor.expect("SET")
    option = cursor.name().upper()
    if option == "CHANGE_TRACKING":
        _require_no_transaction(executor, "ALTER DATABASE")
        tracking.alter_database(executor, database, cursor)
        return
    if option not in _DATABASE_OPTIONS:
        raise unsupported(f"ALTER DATABASE SET {option}", cursor.token.line)
    if option == "DELAYED_DURABILITY":
        cursor.expect("=")
    value = next((word for word in _DATABASE_OPTIONS[option] if not word or cursor.take(word)), None)
    if value is None:
        raise syntax_error(cursor.token)
    tracking.check_alone(cursor)
    patience = _patience(cursor)
    cursor.end()
    if option == "ALLOW_SNAPSHOT_ISOLATION":
        database.snapshot_isolation = value == "ON"
    elif option == "READ_COMMITTED_SNAPSHOT":
        if database.read_committed_snapshot is not (value == "ON"):
            # docs (ALTER DATABASE SET): no other connection may be in it; docs (SET LOCK_TIMEOUT): however long
            _wait_for_others(executor, database, *patience)
        database.read_committed_snapshot = value == "ON"
    elif option == "RECOVERY":
        database.recovery_model = value
    elif option == "SINGLE_USER":
        _wait_for_others(executor, database, *patience)
        database.single_user = True
    elif option == "MULTI_USER":
        database.single_user = False
    elif option == "DELAYED_DURABILITY":
        if database.cdc.enabled and value != "DISABLED":
            raise SqlError.of(22892)
        database.delayed_durability = value


def _patience(cursor: Cursor) -> tuple[float, bool]:
    """How many seconds to wait for others, and whether they are thrown out then (docs: ALTER DATABASE SET, WITH)."""
    if not cursor.take("WITH"):
        return math.inf, False
    if cursor.take("NO_WAIT"):
        return 0, False
    if cursor.take("ROLLBACK", "IMMEDIATE"):
        return 0, True
    cursor.expect("ROLLBACK", "AFTER")
    token = cursor.next()
    if not token.text.isdecimal():
        raise syntax_error(token)
    cursor.take("SECONDS")
    return int(token.text), True


def _wait_for_others(executor: Executor, database: Database, seconds: float, thrown_out: bool) -> None:
    """Wait until no other connection is in a database.

    :raises SqlError: 5061 where some still are when the time is over and they stay; 3617 cancelled
    """
    env, deadline = executor.env, time.monotonic() + seconds
    while others := [each for each in env.instance.connections(database) if each is not env.info]:
        if time.monotonic() >= deadline and not thrown_out:
            raise SqlError.of(5061, database.name)
        for each in others if time.monotonic() >= deadline else ():
            if each.login.hang_up is not None:
                each.login.hang_up()
        if env.cancelled.wait(_LOOK):
            raise SqlError.of(3617)


def _create_schema(executor: Executor, cursor: Cursor) -> None:
    name = cursor.name()
    if cursor.take("AUTHORIZATION"):
        cursor.name()
    cursor.end()
    catalog = executor.env.enter(executor.env.current)
    if catalog.schema_name(name) is not None:
        raise SqlError.of(2714, name)
    number = max([4, *catalog.schemas.values()]) + 1
    tables.define(executor, dataclasses.replace(catalog, schemas={**catalog.schemas, name: number}))


def _drop_schema(executor: Executor, cursor: Cursor) -> None:
    lenient = cursor.take("IF", "EXISTS")
    name = cursor.name()
    cursor.end()
    catalog = executor.env.enter(executor.env.current)
    known = catalog.schema_name(name)
    if known is None:
        if lenient:
            return
        raise SqlError.of(15151, "drop", "schema", name)
    held = [(entry.table.schema, entry.table.name) for entry in catalog.tables.values()]
    held += [(function.schema, function.name) for function in catalog.functions.values()]
    held += [(policy.schema, policy.name) for policy in catalog.policies]
    used = [object_name for schema, object_name in held if schema == known]
    if used:
        raise SqlError.of(3729, name, used[0])
    schemas = {key: value for key, value in catalog.schemas.items() if key != known}
    rights = frozenset(right for right in catalog.rights if right.schema != fold(known))
    tables.define(executor, dataclasses.replace(catalog, schemas=schemas, rights=rights))


Action = Callable[[Executor, Cursor], None]

# by the first two words of a statement, after which the action reads on
_ACTIONS: dict[tuple[str, str], Action] = {
    ("CREATE", "DATABASE"): _create_database,
    ("DROP", "DATABASE"): _drop_database,
    ("ALTER", "DATABASE"): _alter_database,
    ("CREATE", "SCHEMA"): _create_schema,
    ("DROP", "SCHEMA"): _drop_schema,
    ("ALTER", "SCHEMA"): renaming.transfer,
    ("CREATE", "TABLE"): tables.create_table,
    ("ALTER", "TABLE"): tables.alter_table,
    ("DROP", "TABLE"): tables.drop_table,
    ("ALTER", "INDEX"): indexes.alter_index,
    ("DROP", "INDEX"): indexes.drop_index,
    ("TRUNCATE", "TABLE"): tables.truncate_table,
    ("CREATE", "LOGIN"): principals.create_login,
    ("ALTER", "LOGIN"): principals.alter_login,
    ("CREATE", "FUNCTION"): policies.create_function,
    ("DROP", "FUNCTION"): policies.drop_function,
    ("CREATE", "SECURITY"): policies.create_policy,
    ("ALTER", "SECURITY"): policies.alter_policy,
    ("DROP", "SECURITY"): policies.drop_policy,
    ("CREATE", "USER"): principals.create_user,
    ("CREATE", "ROLE"): principals.create_role,
    ("ALTER", "ROLE"): principals.alter_role,
    ("DROP", "USER"): principals.drop_principal,
    ("DROP", "ROLE"): principals.drop_principal,
    ("REVERT", ""): principals.revert,
}
# after the first word
_OTHERS: dict[tuple[str, str], Action] = {
    **dict.fromkeys((("GRANT", ""), ("REVOKE", ""), ("DENY", "")), principals.grant),
    **{("CREATE", word): indexes.create_index for word in ("INDEX", "UNIQUE", "CLUSTERED", "NONCLUSTERED")},
}
# not in one transaction with whatever is open, or several statements in one
_SEPARATE: tuple[Action, ...] = (_create_database, _drop_database, _alter_database, tables.drop_table)
