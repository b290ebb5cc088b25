"""Catalogue views of a database's users and roles, and of what they were granted and denied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from airflow_provider_mssql_cdc.sandbox.catalog import objects
from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation, relation
from airflow_provider_mssql_cdc.sandbox.engine.rights import FIXED_ROLES, Right, roles_of
from airflow_provider_mssql_cdc.sandbox.engine.storage import Catalog, Database

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment

_PUBLIC, _DBO = 0, 1
_FIRST_USER, _FIRST_ROLE, _CDC = 5, 500, 499
_DATABASE, _OBJECT, _SCHEMA = (0, "DATABASE"), (1, "OBJECT_OR_COLUMN"), (3, "SCHEMA")
_TYPES = {
    "SELECT": "SL", "INSERT": "IN", "UPDATE": "UP", "DELETE": "DL", "EXECUTE": "EX", "ALTER": "AL", "CONTROL": "CL",
    "REFERENCES": "RF", "VIEW DEFINITION": "VW", "UNMASK": "UMSK", "VIEW DATABASE STATE": "VWDS",
    "VIEW DATABASE PERFORMANCE STATE": "VDP", "VIEW CHANGE TRACKING": "VWCT",
}  # fmt: skip


def principals(env: Environment, database: Database) -> Relation:
    """sys.database_principals"""
    spec = (
        "name sysname!, principal_id int!, type char(1)!, type_desc nvarchar(60), default_schema_name "
        "sysname, owning_principal_id int"
    )
    catalog = env.catalog(database)
    data = [["public", _PUBLIC, "R", "DATABASE_ROLE", None, 1], ["dbo", _DBO, "S", "SQL_USER", "dbo", None]]
    data += [[name, number, "S", "SQL_USER", "dbo", None] for name, number in _user_ids(catalog).items()]
    data += [[name, number, "R", "DATABASE_ROLE", None, 1] for name, number in _role_ids(catalog).items()]
    if database.cdc.enabled:
        data.append(["cdc", _CDC, "S", "SQL_USER", "cdc", None])
    return relation(spec, data)


def _user_ids(catalog: Catalog) -> dict[str, int]:
    return {name: number for number, name in enumerate(catalog.users, _FIRST_USER)}


def _role_ids(catalog: Catalog) -> dict[str, int]:
    made = [name for name in catalog.roles if name not in FIXED_ROLES]
    return {**{name: number for number, name in enumerate(made, _FIRST_ROLE)}, **FIXED_ROLES}


def _ids(catalog: Catalog) -> dict[str, int]:
    """The ids of users and roles by their names in lower case."""
    known = {"public": _PUBLIC, "dbo": _DBO, **_user_ids(catalog), **_role_ids(catalog)}
    return {name.casefold(): number for name, number in known.items()}


def role_members(env: Environment, database: Database) -> Relation:
    """sys.database_role_members"""
    catalog = env.catalog(database)
    roles, ids = _role_ids(catalog), _ids(catalog)
    data = [[roles[role], ids[member.casefold()]] for role, members in catalog.roles.items() for member in members]
    if database.cdc.enabled:
        data.append([FIXED_ROLES["db_owner"], _CDC])
    data.append([FIXED_ROLES["db_owner"], _DBO])
    return relation("role_principal_id int!, member_principal_id int!", data)


def permissions(env: Environment, database: Database) -> Relation:
    """sys.database_permissions: of all principals for who may see definitions, of one's own for everybody"""
    spec = (
        "class tinyint!, class_desc nvarchar(60), major_id int!, minor_id int!, grantee_principal_id int!, "
        "grantor_principal_id int!, type char(4)!, permission_name nvarchar(128), state char(1)!, "
        "state_desc nvarchar(60)"
    )
    catalog = env.catalog(database)
    ids = _ids(catalog)
    user = env.user_name(database)
    mine = None if env.permitted(database, "VIEW DEFINITION") else {user.casefold(), *roles_of(catalog.roles, user)}
    # CREATE USER lets the user connect
    rights = [Right(name.casefold(), "CONNECT") for name in catalog.users]
    rights += sorted(
        catalog.rights, key=lambda each: (each.schema, each.name, each.column, each.permission, ids[each.grantor])
    )
    data = []
    for right in rights:
        if mine is not None and right.grantee not in mine:
            continue
        state = ("W", "GRANT_WITH_GRANT_OPTION") if right.grants else ("G", "GRANT")
        if right.denied or right.revoked:
            state = ("D", "DENY") if right.denied else ("R", "REVOKE")
        type_ = _TYPES.get(right.permission, "CO").ljust(4)
        for place in _places(env, database, right):
            data.append([*place, ids[right.grantee], ids[right.grantor], type_, right.permission, *state])
    return relation(spec, data)


def _places(env: Environment, database: Database, right: Right) -> Iterator[tuple[int, str, int, int]]:
    """Class, major_id and minor_id of what a right is on; none where it cannot be seen, or is gone."""
    if not right.schema:
        yield *_DATABASE, 0, 0
    elif not right.name:
        schemas = {fold(name): number for name, number in objects.schemas(env, database).items()}
        if right.schema in schemas:
            yield *_SCHEMA, schemas[right.schema], 0
    for each in objects.all_objects(env, database) if right.name else ():
        if (fold(each.schema), fold(each.name)) == (right.schema, right.name):
            columns = {fold(column.name): column.column_id for column in each.columns}
            yield *_OBJECT, each.object_id, columns.get(right.column, 0)
