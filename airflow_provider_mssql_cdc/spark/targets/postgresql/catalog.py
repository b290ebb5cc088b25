"""What PostgreSQL's catalog says of schemas and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_mssql_cdc.core.exceptions import TargetError
from airflow_provider_mssql_cdc.spark.targets.postgresql.connection import quoted

if TYPE_CHECKING:
    import psycopg

_TABLES = frozenset({"r", "p"})
"""``relkind`` of tables, and of partitioned ones."""


def check_may_create(cursor: psycopg.Cursor[Any], schema: str, target: str) -> None:
    """Ask whether the login may create tables in a schema, or the schema.

    :param target: the target table's name for people
    :raises TargetError: with the GRANT, if it may not
    """
    cursor.execute(
        "SELECT current_user, current_database(), n.oid IS NOT NULL,"
        " COALESCE(has_schema_privilege(n.oid, 'CREATE'), false),"
        " has_database_privilege(current_database(), 'CREATE')"
        " FROM (SELECT) AS one LEFT JOIN pg_namespace AS n ON n.nspname = %s",
        (schema,),
    )
    user, database, exists, schema_right, right = only_row(cursor)
    if not (schema_right if exists else right):
        what = f"SCHEMA {quoted(schema)}" if exists else f"DATABASE {quoted(database)}"
        raise TargetError(
            f"{user} may not create {target}.", advice=f"GRANT CREATE ON {what} TO {quoted(user)}; lets it."
        )


def check_encoding(cursor: psycopg.Cursor[Any], target: str) -> None:
    """Refuse a database that is not encoded in UTF-8.

    :param target: the target table's name for people
    :raises TargetError: with the encoding
    """
    (encoding,) = only_row(cursor.execute("SELECT current_setting('server_encoding')"))
    if encoding != "UTF8":
        raise TargetError(
            f"{target}: the database is encoded in {encoding}, which cannot hold every text.",
            advice="Choose a database with ENCODING 'UTF8'.",
        )


def find_table(cursor: psycopg.Cursor[Any], schema: str, table: str, target: str) -> int | None:
    """The OID of a table.

    :param target: the target table's name for people
    :raises TargetError: if something else has its name
    """
    row = cursor.execute(
        "SELECT c.oid, c.relkind FROM pg_catalog.pg_class c"
        " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s",
        (schema, table),
    ).fetchone()
    if row is not None and row[1] not in _TABLES:
        raise TargetError(f"{target}: {schema}.{table} is there already, and is not a table.")
    return None if row is None else int(row[0])


def declared_types(cursor: psycopg.Cursor[Any], schema: str, table: str) -> dict[str, str]:
    """The columns of a table with their types as PostgreSQL writes them, in order."""
    rows = cursor.execute(
        "SELECT a.attname, format_type(a.atttypid, a.atttypmod)"
        # such a collation takes different texts for equal
        " || CASE WHEN l.collisdeterministic IS FALSE THEN ' COLLATE ' || l.collname ELSE '' END"
        " FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid"
        " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        " LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation"
        " WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
        (schema, table),
    )
    return dict(rows.fetchall())


def has_column(cursor: psycopg.Cursor[Any], oid: int | None, name: str) -> bool:
    """Whether a table has a column."""
    found = cursor.execute(
        "SELECT FROM pg_catalog.pg_attribute WHERE attrelid = %s AND attname = %s AND NOT attisdropped", (oid, name)
    )
    return found.fetchone() is not None


def is_owner(cursor: psycopg.Cursor[Any], oid: int | None) -> bool:
    """Whether the login owns a table."""
    cursor.execute("SELECT pg_has_role(relowner, 'USAGE') FROM pg_catalog.pg_class WHERE oid = %s", (oid,))
    (owns,) = only_row(cursor)
    return bool(owns)


def only_row(cursor: psycopg.Cursor[Any]) -> tuple[Any, ...]:
    """The row of a query that has one."""
    row = cursor.fetchone()
    assert row is not None
    return tuple(row)
