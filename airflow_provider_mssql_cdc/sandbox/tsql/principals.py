"""Logins, users, roles and GRANT SELECT: as much as permission errors need."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from airflow_provider_mssql_cdc.sandbox.engine.instance import Principal
from airflow_provider_mssql_cdc.sandbox.engine.storage import Catalog
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import tables
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.script import Statement

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox.tsql.interpreter import Interpreter


def _require_owner(interpreter: Interpreter) -> None:
    if not interpreter.env.is_owner(interpreter.env.current):
        raise SqlError(15247, "User does not have permission to perform this action.")


def _change(interpreter: Interpreter, **changes: object) -> None:
    def action() -> None:
        transaction = interpreter.env.manager.enter(interpreter.env.current)
        assert transaction.catalog is not None
        tables.define(interpreter, dataclasses.replace(transaction.catalog, **changes))  # type: ignore[arg-type]

    interpreter.atomically(action)


def _catalog(interpreter: Interpreter) -> Catalog:
    return interpreter.env.catalog(interpreter.env.current)


def create_login(interpreter: Interpreter, statement: Statement) -> None:
    """CREATE LOGIN name WITH PASSWORD = 'text'"""
    cursor = statement.cursor()
    cursor.expect("CREATE", "LOGIN")
    name = cursor.name()
    cursor.expect("WITH", "PASSWORD", "=")
    password = cursor.next().name
    cursor.take(",", "CHECK_POLICY", "=", "OFF")
    cursor.end()
    if not interpreter.env.principal.sysadmin:
        raise SqlError(15247, "User does not have permission to perform this action.")
    logins = interpreter.env.instance.logins
    if name.casefold() in logins:
        raise SqlError(15025, f"The server principal '{name}' already exists.")
    logins[name.casefold()] = Principal(name, password)


def create_user(interpreter: Interpreter, statement: Statement) -> None:
    """CREATE USER name [FOR LOGIN login]"""
    cursor = statement.cursor()
    cursor.expect("CREATE", "USER")
    name = cursor.name()
    login = name
    if cursor.take("FOR", "LOGIN") or cursor.take("FROM", "LOGIN"):
        login = cursor.name()
    elif cursor.take("WITHOUT", "LOGIN"):
        login = ""
    cursor.end()
    _require_owner(interpreter)
    users = _catalog(interpreter).users
    if name.casefold() in {user.casefold() for user in users}:
        raise SqlError(15023, f"User, group, or role '{name}' already exists in the current database.")
    if login and login.casefold() not in interpreter.env.instance.logins:
        raise SqlError(15007, f"'{login}' is not a valid login or you do not have permission.")
    _change(interpreter, users={**users, name: login})


def create_role(interpreter: Interpreter, statement: Statement) -> None:
    """CREATE ROLE name"""
    cursor = statement.cursor()
    cursor.expect("CREATE", "ROLE")
    name = cursor.name()
    cursor.end()
    _require_owner(interpreter)
    _change(interpreter, roles={**_catalog(interpreter).roles, name: frozenset()})


_FIXED_ROLES = ("db_owner", "db_datareader")


def alter_role(interpreter: Interpreter, statement: Statement) -> None:
    """ALTER ROLE name ADD | DROP MEMBER user"""
    cursor = statement.cursor()
    cursor.expect("ALTER", "ROLE")
    role = cursor.name()
    add = cursor.take("ADD")
    if not add:
        cursor.expect("DROP")
    cursor.expect("MEMBER")
    member = cursor.name()
    cursor.end()
    _require_owner(interpreter)
    catalog = _catalog(interpreter)
    known = next((name for name in catalog.roles if name.casefold() == role.casefold()), None)
    if known is None and role.casefold() in _FIXED_ROLES:
        known = role.casefold()
    if known is None:
        message = f"Cannot alter the role '{role}', because it does not exist or you do not have permission."
        raise SqlError(15151, message)
    if member.casefold() not in {user.casefold() for user in catalog.users}:
        message = f"Cannot add the principal '{member}', because it does not exist or you do not have permission."
        raise SqlError(15151, message)
    members = set(catalog.roles.get(known, frozenset()))
    members = members | {member} if add else {each for each in members if each.casefold() != member.casefold()}
    _change(interpreter, roles={**catalog.roles, known: frozenset(members)})


def grant(interpreter: Interpreter, statement: Statement) -> None:
    """GRANT | REVOKE SELECT ON [OBJECT::]name | SCHEMA::name TO user"""
    cursor = statement.cursor()
    verb = cursor.next().upper
    if verb == "DENY" or not cursor.take("SELECT"):
        raise unsupported(f"{verb} {cursor.token.text.upper()}", statement.line)
    cursor.expect("ON")
    is_schema = cursor.take("SCHEMA", "::")
    cursor.take("OBJECT", "::")
    parts = cursor.dotted()
    if not cursor.take("TO"):
        cursor.expect("FROM")
    user = cursor.name()
    cursor.end()
    _require_owner(interpreter)
    catalog = _catalog(interpreter)
    if user.casefold() not in {name.casefold() for name in (*catalog.users, *catalog.roles)}:
        message = f"Cannot find the user '{user}', because it does not exist or you do not have permission."
        raise SqlError(15151, message)
    schema, name = (parts[-1], "") if is_schema else (parts[-2] if len(parts) > 1 else "dbo", parts[-1])
    right = (user, schema, name)
    grants = catalog.grants | {right} if verb == "GRANT" else catalog.grants - {right}
    _change(interpreter, grants=grants)
