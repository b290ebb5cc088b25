"""Functions that tell a session what it may do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow_provider_mssql_cdc.sandbox.catalog import objects
from airflow_provider_mssql_cdc.sandbox.catalog.cdc_functions import values_of
from airflow_provider_mssql_cdc.sandbox.engine.rights import (
    DATABASE_PERMISSIONS,
    FIXED_ROLES,
    OBJECT_PERMISSIONS,
    SERVER_PERMISSIONS,
)
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr, constant
from airflow_provider_mssql_cdc.sandbox.tsql.typing import INT

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment


def _permission(env: Environment, arguments: list[Expr]) -> Expr:
    """HAS_PERMS_BY_NAME(securable, class, permission [, column, 'COLUMN'])"""
    values = [None if each is None else str(each) for each in values_of(env, arguments, "HAS_PERMS_BY_NAME")]
    securable, class_, permission, column = (*values, None)[:4] if len(values) == 3 else values[:4]
    class_, permission = (class_ or "SERVER").upper(), (permission or "").upper()
    database = env.current
    if permission not in OBJECT_PERMISSIONS | DATABASE_PERMISSIONS | SERVER_PERMISSIONS:
        raise unsupported(f"HAS_PERMS_BY_NAME of {permission}")
    if class_ == "SERVER":
        return constant(int(env.has_server_right(permission)), INT)
    if class_ == "DATABASE":
        named = objects.parts_of(securable) if securable else ("", "", database.name)
        found = env.instance.storage.databases.get(named[-1].casefold()) if named and not named[1] else None
        return constant(None if found is None else int(env.permitted(found, permission)), INT)
    if permission == "UNMASK" and not env.instance.version.granular_unmask:
        return constant(None, INT)
    if class_ == "SCHEMA":
        return constant(int(env.permitted(database, permission, securable or "")), INT)
    if class_ != "OBJECT":
        raise unsupported(f"HAS_PERMS_BY_NAME of the class {class_}")
    parts = objects.parts_of(securable or "")
    if parts is None or not _is_there(env, parts, securable or ""):
        return constant(None, INT)
    return constant(int(env.permitted(database, permission, parts[1] or "dbo", parts[2], [column or ""])), INT)


def _is_there(env: Environment, parts: tuple[str, str, str], named: str) -> bool:
    schema = parts[1].casefold()
    if schema == "cdc" or env.table(parts) is not None:
        return True
    return env.is_owner(env.current) and (schema == "sys" or objects.find(env, named) is not None)


def _server_role(env: Environment, arguments: list[Expr]) -> Expr:
    role = str(values_of(env, arguments, "IS_SRVROLEMEMBER")[0]).casefold()
    roles = (
        "sysadmin",
        "serveradmin",
        "setupadmin",
        "securityadmin",
        "processadmin",
        "dbcreator",
        "diskadmin",
        "bulkadmin",
    )
    return constant(int(env.principal.sysadmin or role == "public") if role in (*roles, "public") else None, INT)


def _database_role(env: Environment, arguments: list[Expr]) -> Expr:
    if len(arguments) > 1:
        raise unsupported("IS_ROLEMEMBER of another principal")
    role = str(values_of(env, arguments, "IS_MEMBER")[0]).casefold()
    if role == "db_owner":
        return constant(int(env.is_owner(env.current)), INT)
    if env.principal.sysadmin and role in FIXED_ROLES:
        return constant(int("deny" not in role), INT)
    known = {name.casefold() for name in (*env.catalog(env.current).roles, *FIXED_ROLES, "public")}
    return constant(int(env.user_in_role(env.current, role)) if role in known else None, INT)


SECURITY_FUNCTIONS: dict[str, Callable[[Any, list[Expr]], Expr]] = {
    "has_perms_by_name": _permission,
    "is_srvrolemember": _server_role,
    "is_member": _database_role,
    "is_rolemember": _database_role,
}
