"""Who may do what in a database: membership of roles, and rights that were granted or denied."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.engine.schema import TableDef

# docs: the fixed roles of a database with their principal_id
FIXED_ROLES = {
    "db_owner": 16384, "db_accessadmin": 16385, "db_securityadmin": 16386, "db_ddladmin": 16387,
    "db_backupoperator": 16389, "db_datareader": 16390, "db_datawriter": 16391, "db_denydatareader": 16392,
    "db_denydatawriter": 16393,
}  # fmt: skip
_CHANGES = frozenset({"INSERT", "UPDATE", "DELETE"})
_GRANTED = {"db_datareader": frozenset({"SELECT"}), "db_datawriter": _CHANGES, "db_ddladmin": frozenset({"ALTER"})}
_DENIED = {"db_denydatareader": frozenset({"SELECT"}), "db_denydatawriter": _CHANGES}
# docs (permissions hierarchy): what also gives a right, besides CONTROL
_COVERING = {
    "VIEW DATABASE PERFORMANCE STATE": frozenset({"VIEW DATABASE STATE"}),
    "VIEW SERVER PERFORMANCE STATE": frozenset({"VIEW SERVER STATE"}),
}
DATABASE_PERMISSIONS = frozenset(
    {"VIEW DATABASE STATE", "VIEW DATABASE PERFORMANCE STATE", "VIEW DEFINITION", "UNMASK"}
)
SERVER_PERMISSIONS = frozenset({"VIEW SERVER STATE", "VIEW SERVER PERFORMANCE STATE", "VIEW SERVER SECURITY STATE"})
OBJECT_PERMISSIONS = (
    frozenset(
        {"SELECT", "ALTER", "CONTROL", "EXECUTE", "REFERENCES", "VIEW DEFINITION", "UNMASK", "VIEW CHANGE TRACKING"}
    )
    | _CHANGES
)
# UNMASK on the whole database says nothing of its tables
_SHOWING = OBJECT_PERMISSIONS - {"UNMASK"}


@dataclass(frozen=True, slots=True)
class Right:
    """A right on a database, a schema (``name`` is empty), an object or a column; names in lower case.

    :param grants: WITH GRANT OPTION
    :param revoked: the right on the whole object does not hold for this column (docs: sys.database_permissions)
    :param grantor: who says so, in lower case; each says his own of the same place, and a denial of anybody holds
    """

    grantee: str
    permission: str
    schema: str = ""
    name: str = ""
    column: str = ""
    denied: bool = False
    grants: bool = False
    revoked: bool = False
    grantor: str = "dbo"

    def reaches(self, schema: str, name: str, column: str) -> bool:
        """Whether it is a right on this, or on what this is part of."""
        return self.schema in ("", schema) and self.name in ("", name) and self.column in ("", column)


def without_objects(rights: frozenset[Right], schema: str, names: Collection[str]) -> frozenset[Right]:
    """What is left of rights when objects of a schema are dropped: what was granted on them goes with them."""
    gone = {(fold(schema), fold(name)) for name in names}
    return frozenset(right for right in rights if (right.schema, right.name) not in gone)


def following(rights: frozenset[Right], before: TableDef, after: TableDef) -> frozenset[Right]:
    """The rights when a table or its columns get other names; a table in another schema leaves them behind, and those
    on a column end with it.

    docs: ALTER SCHEMA drops the permissions of what it moves.
    """
    place = (fold(before.schema), fold(before.name))
    ids = {column.column_id: fold(column.name) for column in after.columns}
    names = {fold(column.name): ids.get(column.column_id, "") for column in before.columns}
    mine = frozenset(right for right in rights if (right.schema, right.name) == place)
    if before.schema != after.schema:
        return rights - mine
    return (rights - mine) | {
        replace(right, name=fold(after.name), column=names.get(right.column, ""))
        for right in mine
        if not right.column or names.get(right.column)
    }


def roles_of(roles: Mapping[str, frozenset[str]], user: str) -> set[str]:
    """The roles of a user, those of its roles among them, in lower case."""
    found, new = {"public"}, {user.casefold()}
    while new:
        new = {
            role.casefold() for role, members in roles.items() if {member.casefold() for member in members} & new
        } - found
        found |= new
    return found


def permitted(
    roles: Mapping[str, frozenset[str]],
    rights: frozenset[Right],
    user: str,
    permission: str,
    schema: str = "",
    name: str = "",
    column: str = "",
) -> bool:
    """Whether a user has a right; a denial anywhere outweighs what was granted."""
    mine = roles_of(roles, user)
    if "db_owner" in mine:
        return True
    wanted = {permission, "CONTROL", *_COVERING.get(permission, ())}
    place = (fold(schema), fold(name), fold(column))
    held = [
        right
        for right in rights
        if right.grantee in mine | {user.casefold()} and right.permission in wanted and right.reaches(*place)
    ]
    without = {right.grantee for right in held if right.revoked}
    held = [
        right
        for right in held
        if not right.revoked and not (right.grantee in without and right.name and not right.column)
    ]
    denied = any(right.denied for right in held) or any(permission in _DENIED.get(role, ()) for role in mine)
    granted = bool(held) or any(permission in _GRANTED.get(role, ()) for role in mine)
    return granted and not denied


def sees(roles: Mapping[str, frozenset[str]], rights: frozenset[Right], user: str, schema: str, name: str) -> bool:
    """Whether the catalogue shows an object to a user: any right on it does, and SELECT on a column of it, unless the
    right to view its definition is denied (docs: VIEW DEFINITION)."""
    mine = roles_of(roles, user) | {user.casefold()}
    hiding = {"VIEW DEFINITION", "CONTROL"}
    if any(
        right.denied
        and right.permission in hiding
        and right.grantee in mine
        and right.reaches(fold(schema), fold(name), "")
        for right in rights
    ):
        return False
    if any(permitted(roles, rights, user, each, schema, name) for each in _SHOWING):
        return True
    columns = {right.column for right in rights if (right.schema, right.name) == (fold(schema), fold(name))}
    return any(permitted(roles, rights, user, "SELECT", schema, name, column) for column in columns - {""})
