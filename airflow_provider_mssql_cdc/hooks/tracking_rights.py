"""What a login lacks to read the changes of tables, and the statements that give it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from airflow_provider_mssql_cdc.core.change_tracking import LackingRight, grant_view
from airflow_provider_mssql_cdc.core.exceptions import CdcPermissionError
from airflow_provider_mssql_cdc.core.table import TableName, quote
from airflow_provider_mssql_cdc.hooks import tracking_statements as statements
from airflow_provider_mssql_cdc.hooks.tracking_catalog import not_found

_AT_ONCE = 50
"""Permissions of which one statement asks."""

Query = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]


def lacking_rights(
    query: Query, tables: Sequence[TableName], keys: Mapping[TableName, Sequence[str]]
) -> list[LackingRight]:
    """What the login lacks, by one statement about the database, and one for some fifty permissions on tables.

    :param keys: the primary keys of those tables that the login sees
    :raises TableNotFoundError: if a table is not there, as far as the login may know
    """
    ((user, *state),) = query(statements.DATABASE_STATE, ())
    purpose = "to tell a restored database, and when a transaction was committed"
    lacking = [] if any(state) else [LackingRight("VIEW DATABASE STATE", None, (), grant_state(user), purpose)]
    may_not: dict[tuple[TableName, bool], list[str]] = defaultdict(list)
    questions = [question for table in tables for question in _questions_about(table, keys.get(table, ()))]
    for start in range(0, len(questions), _AT_ONCE):
        some = questions[start : start + _AT_ONCE]
        given = [each for _, _, table, column in some for each in (table.quoted, column) if each]
        for number, may in query(statements.permissions([text for text, *_ in some]), given):
            _, reading, table, column = some[number]
            if may is None and table not in keys:
                raise not_found(table, user)
            if not may:
                may_not[table, reading].append(column)
    return lacking + [_lacking_right(table, columns, user, reading) for (table, reading), columns in may_not.items()]


def _questions_about(table: TableName, key: Sequence[str]) -> list[tuple[str, bool, TableName, str]]:
    """T-SQL, whether it is about reading, the table, and the column; of a key that is not known, about all columns."""
    reading = [(statements.MAY_READ_COLUMN, True, table, column) for column in key]
    return [(statements.MAY_TRACK, False, table, ""), *(reading or [(statements.MAY_READ, True, table, "")])]


def _lacking_right(table: TableName, columns: list[str], user: str, reading: bool) -> LackingRight:
    """What is lacking of one table.

    :param columns: that may not be read
    :param reading: or to ask about its changes
    """
    if not reading:
        return LackingRight("VIEW CHANGE TRACKING", table, (), grant_view(table, user), "to ask about its changes")
    named = tuple(column for column in columns if column)
    grant = grant_select(table, user, named)
    return LackingRight("SELECT", table, named, grant, "to read the keys of its changes")


def grant_select(table: TableName, user: str, columns: Sequence[str] = ()) -> str:
    """The statement that lets a user read a table, or some of its columns."""
    listed = f" ({', '.join(map(quote, columns))})" if columns else ""
    return f"GRANT SELECT ON {table.quoted}{listed} TO {quote(user)};"


def grant_state(user: str) -> str:
    """The statement that lets a user see sizes, and the commit table."""
    return f"GRANT VIEW DATABASE STATE TO {quote(user)};"


def denied(error: CdcPermissionError, grants: Sequence[str]) -> CdcPermissionError:
    """The same error, with what to run."""
    return CdcPermissionError(error.message, number=error.number, advice=f"Run: {' '.join(grants)}")
