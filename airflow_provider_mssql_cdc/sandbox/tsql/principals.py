"""Logins, users, roles, GRANT, DENY and REVOKE, and EXECUTE AS: as much as permission errors need."""

from __future__ import annotations

import dataclasses

from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.engine.instance import Principal
from airflow_provider_mssql_cdc.sandbox.engine.rights import (
    DATABASE_PERMISSIONS,
    FIXED_ROLES,
    OBJECT_PERMISSIONS,
    SERVER_PERMISSIONS,
    Right,
)
from airflow_provider_mssql_cdc.sandbox.engine.storage import Catalog
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import tables
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.ddl import key_columns
from airflow_provider_mssql_cdc.sandbox.tsql.executor import Executor
from airflow_provider_mssql_cdc.sandbox.tsql.languages import language_of
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import Cursor
from airflow_provider_mssql_cdc.sandbox.tsql.script import Statement


def _require_owner(executor: Executor) -> None:
    if not executor.env.is_owner(executor.env.current):
        raise SqlError.of(15247)


def _change(executor: Executor, **changes: object) -> None:
    def action() -> None:
        catalog = executor.env.enter(executor.env.current)
        tables.define(executor, dataclasses.replace(catalog, **changes))  # type: ignore[arg-type]

    executor.atomically(action)


def _catalog(executor: Executor) -> Catalog:
    return executor.env.catalog(executor.env.current)


def create_login(executor: Executor, cursor: Cursor) -> None:
    """CREATE LOGIN name WITH PASSWORD = 'text' [, DEFAULT_LANGUAGE = language] [, CHECK_POLICY = OFF]"""
    name = cursor.name()
    cursor.expect("WITH", "PASSWORD", "=")
    password, language = cursor.next().name, ""
    while cursor.take(","):
        if not cursor.take("CHECK_POLICY", "=", "OFF"):
            language = _default_language(cursor)
    cursor.end()
    if not executor.env.principal.sysadmin:
        raise SqlError.of(15247)
    logins = executor.env.instance.logins
    if name.casefold() in logins:
        raise SqlError.of(15025, name)
    logins[name.casefold()] = Principal(name, password, language=language)


def _default_language(cursor: Cursor) -> str:
    cursor.expect("DEFAULT_LANGUAGE", "=")
    return language_of(cursor.name()).name


def alter_login(executor: Executor, cursor: Cursor) -> None:
    """ALTER LOGIN name WITH DEFAULT_LANGUAGE = language; it counts for sessions that begin after it

    :raises SqlError: 15151
    """
    name = cursor.name()
    cursor.expect("WITH")
    language = _default_language(cursor)
    cursor.end()
    login = executor.env.instance.logins.get(name.casefold())
    if login is None or not executor.env.principal.sysadmin:
        raise SqlError.of(15151, "alter", "login", name)
    login.language = language


def create_user(executor: Executor, cursor: Cursor) -> None:
    """CREATE USER name [FOR LOGIN login]"""
    name = cursor.name()
    login = name
    if cursor.take("FOR", "LOGIN") or cursor.take("FROM", "LOGIN"):
        login = cursor.name()
    elif cursor.take("WITHOUT", "LOGIN"):
        login = ""
    if cursor.take("WITH", "DEFAULT_SCHEMA", "=") and cursor.name().casefold() != "dbo":
        raise unsupported("a default schema other than dbo")
    cursor.end()
    _require_owner(executor)
    users = _catalog(executor).users
    if name.casefold() in {user.casefold() for user in users}:
        raise SqlError.of(15023, name)
    if login and login.casefold() not in executor.env.instance.logins:
        raise SqlError.of(15007, login)
    _change(executor, users={**users, name: login})


def create_role(executor: Executor, cursor: Cursor) -> None:
    """CREATE ROLE name

    :raises SqlError: 15023
    """
    name = cursor.name()
    if cursor.take("AUTHORIZATION"):
        cursor.name()
    cursor.end()
    _require_owner(executor)
    catalog = _catalog(executor)
    if name.casefold() in {each.casefold() for each in (*catalog.users, *catalog.roles, *FIXED_ROLES)}:
        raise SqlError.of(15023, name)
    _change(executor, roles={**_catalog(executor).roles, name: frozenset()})


def drop_principal(executor: Executor, cursor: Cursor) -> None:
    """DROP USER | ROLE [IF EXISTS] name"""
    word = cursor.tokens[1].text.lower()
    lenient = cursor.take("IF", "EXISTS")
    name = cursor.name().casefold()
    cursor.end()
    _require_owner(executor)
    catalog = _catalog(executor)
    held = catalog.users if word == "user" else catalog.roles
    if name not in {each.casefold() for each in held}:
        if lenient:
            return
        raise SqlError.of(15151, "drop", word, name)
    if word == "role" and catalog.roles[next(each for each in held if each.casefold() == name)]:
        raise SqlError.of(15144)
    if any(right.grantor == name != right.grantee for right in catalog.rights):
        raise SqlError.of(15284)
    kept = {key: value for key, value in held.items() if key.casefold() != name}
    roles = kept if word == "role" else catalog.roles
    roles = {role: frozenset(m for m in members if m.casefold() != name) for role, members in roles.items()}
    rights = frozenset(right for right in catalog.rights if right.grantee != name)
    users = kept if word == "user" else catalog.users
    _change(executor, users=users, roles=roles, rights=rights)


def alter_role(executor: Executor, cursor: Cursor) -> None:
    """ALTER ROLE name ADD | DROP MEMBER user"""
    role = cursor.name()
    add = cursor.take("ADD")
    if not add:
        cursor.expect("DROP")
    cursor.expect("MEMBER")
    member = cursor.name()
    cursor.end()
    change_member(executor, role, member, add=add)


def change_member(executor: Executor, role: str, member: str, *, add: bool) -> None:
    """Make a user or role a member of a role, or no longer.

    :raises SqlError: 15151
    """
    _require_owner(executor)
    catalog = _catalog(executor)
    known = next((name for name in (*catalog.roles, *FIXED_ROLES) if name.casefold() == role.casefold()), None)
    if known is None:
        raise SqlError.of(15151, "alter", "role", role)
    found = next((name for name in (*catalog.users, *catalog.roles) if name.casefold() == member.casefold()), None)
    if found is None:
        raise SqlError.of(15151, "add", "principal", member)
    members = catalog.roles.get(known, frozenset())
    changed = members | {found} if add else members - {found}
    _change(executor, roles={**catalog.roles, known: changed})


def grant(executor: Executor, cursor: Cursor) -> None:
    """GRANT | DENY | REVOKE permission [(columns)], ... [ON securable [(columns)]] TO principal, ... [AS grantor]

    :raises SqlError: 15151
    """
    verb = cursor.tokens[0].upper
    cursor.take("GRANT", "OPTION", "FOR")
    wanted: list[tuple[str, list[str]]] = []
    while True:
        words = []
        while not cursor.at("(") and not cursor.at(",") and not cursor.at("ON") and not cursor.at("TO"):
            if cursor.token.kind != "word" or cursor.at("FROM"):
                break
            words.append(cursor.next().upper.replace("EXEC", "EXECUTE").replace("EXECUTEUTE", "EXECUTE"))
        wanted.append((" ".join(words), _columns(cursor)))
        if not cursor.take(","):
            break
    schema, name, listed = _securable(cursor) if cursor.take("ON") else ("", "", [])
    if not cursor.take("TO"):
        cursor.expect("FROM")
    grantees = [cursor.name()]
    while cursor.take(","):
        grantees.append(cursor.name())
    grants = cursor.take("WITH", "GRANT", "OPTION")
    cursor.take("CASCADE")
    grantor = cursor.name().casefold() if cursor.take("AS") else "dbo"
    cursor.end()
    for permission, columns in wanted:
        allowed = OBJECT_PERMISSIONS if schema else DATABASE_PERMISSIONS | SERVER_PERMISSIONS | OBJECT_PERMISSIONS
        if permission not in allowed:
            raise unsupported(f"{verb} {permission}", cursor.tokens[0].line)
        for grantee in grantees:
            if permission in SERVER_PERMISSIONS:
                _change_login(executor, grantee, permission, verb)
                continue
            _check_grantee(executor, grantee)
            _check_grantor(executor, grantor, permission, schema, name)
            for column in columns or listed or [""]:
                place = (fold(schema), fold(name), fold(column))
                right = Right(grantee.casefold(), permission, *place, grants=bool(grants), grantor=grantor)
                _change_right(executor, right, verb)


def _columns(cursor: Cursor) -> list[str]:
    if not cursor.at("("):
        return []
    columns, descending = key_columns(cursor)
    if any(descending):
        raise unsupported("DESC in a list of columns", cursor.token.line)
    return columns


def _securable(cursor: Cursor) -> tuple[str, str, list[str]]:
    is_schema = cursor.take("SCHEMA", "::")
    if cursor.take("DATABASE", "::"):
        cursor.name()
        return "", "", []
    cursor.take("OBJECT", "::")
    parts = cursor.dotted()
    listed = _columns(cursor)
    return (parts[-1], "", []) if is_schema else (parts[-2] if len(parts) > 1 else "dbo", parts[-1], listed)


def _check_grantee(executor: Executor, grantee: str) -> None:
    _require_owner(executor)
    catalog = _catalog(executor)
    if grantee.casefold() not in {name.casefold() for name in (*catalog.users, *catalog.roles, "public")}:
        raise SqlError.of(15151, "find", "user", grantee)


def _check_grantor(executor: Executor, grantor: str, permission: str, schema: str, name: str) -> None:
    """Refuse AS somebody who has not got the right on the whole object WITH GRANT OPTION."""
    own = Right(grantor, permission, fold(schema), fold(name), grants=True)
    if grantor != "dbo" and (not name or own not in _catalog(executor).rights):
        raise SqlError.of(15151, "find", "object", name)


def _change_right(executor: Executor, right: Right, verb: str) -> None:
    rights = _catalog(executor).rights
    place = right.permission, right.schema, right.name
    handed_on = (each for each in rights if each.grantor == right.grantee)
    if verb != "GRANT" and any((each.permission, each.schema, each.name) == place for each in handed_on):
        raise unsupported(f"{verb} of a right that was handed on")
    bare = dataclasses.replace(right, grants=False)
    rights = rights - {
        bare,
        dataclasses.replace(bare, grants=True),
        dataclasses.replace(bare, denied=True),
        dataclasses.replace(bare, revoked=True),
    }
    whole = {dataclasses.replace(each, denied=False, grants=False) for each in rights if not each.column}
    if verb == "REVOKE" and right.column and dataclasses.replace(bare, column="") in whole:
        rights = rights | {dataclasses.replace(bare, revoked=True)}
    elif verb == "REVOKE":
        rights = frozenset(
            each
            for each in rights
            if right.column or each != dataclasses.replace(bare, revoked=True, column=each.column)
        )
    else:
        rights = rights | {dataclasses.replace(right, denied=verb == "DENY")}
    _change(executor, rights=rights)


def _change_login(executor: Executor, name: str, permission: str, verb: str) -> None:
    login = executor.env.instance.logins.get(name.casefold())
    if login is None or not executor.env.principal.sysadmin:
        raise SqlError.of(15151, "find", "login", name)
    login.rights = login.rights | {permission} if verb == "GRANT" else login.rights - {permission}


def execute_as(executor: Executor, statement: Statement) -> None:
    """EXECUTE AS USER | LOGIN = 'name'

    :raises SqlError: 15517, 15406
    """
    env, cursor = executor.env, statement.cursor()
    cursor.next()
    cursor.expect("AS")
    word = cursor.next().upper
    cursor.expect("=")
    token = cursor.next()
    cursor.end()
    if word not in ("USER", "LOGIN") or token.kind != "string":
        raise unsupported("this form of EXECUTE AS", statement.line)
    reason = f'because the principal "{token.name}" does not exist, this type of principal cannot be impersonated, or '
    reason += "you do not have permission."
    if word == "LOGIN":
        login = env.instance.logins.get(token.name.casefold())
        if login is None or not env.principal.sysadmin:
            raise SqlError.of(15406, reason)
        env.execute_as(login)
        return
    users = env.catalog(env.current).users
    user = next((name for name in users if name.casefold() == token.name.casefold()), None)
    if user is None or not env.is_owner(env.current):
        raise SqlError.of(15517, reason)
    # a user without a login has only a SID to go by on the server
    env.execute_as(Principal(users[user] or f"S-1-9-3-{env.current.database_id}-{user}", "", user=user))


def revert(executor: Executor, cursor: Cursor) -> None:
    """REVERT"""
    executor.env.revert()
