"""What keeps a login from reading what tables hold, without any error: masks, and policies that hide rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_provider_mssql_cdc.core.exceptions import MaskedError
from airflow_provider_mssql_cdc.core.feed import Feed
from airflow_provider_mssql_cdc.core.selection import REDACT, Selection
from airflow_provider_mssql_cdc.core.table import TableSchema, quote


@dataclass(frozen=True, slots=True)
class Protection:
    """What the catalogue says of it.

    :param masked: object id of a source table to the columns whose values the login reads masked, there or in change
        tables
    :param filtered: object id of a source table to the names of enabled security policies that filter its rows
    :param known: whether the login sees policies at all (VIEW DEFINITION)
    """

    masked: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    filtered: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    known: bool = True


def _is_read(selection: Selection, column: str) -> bool:
    return selection.holds(column) and selection.masks.get(column) != REDACT


def check_protection(
    protection: Protection, feed: Feed, schema: TableSchema, selection: Selection, user: str, *, allowed: bool
) -> str | None:
    """Prove that the login reads what the table holds.

    :param schema: of the load: the feed may have more columns
    :param selection: only what it loads, or filters by, counts
    :param user: database user of the login
    :param allowed: whether a warning is enough
    :return: the warning, if there is one
    :raises MaskedError: if it does not read it
    """
    captured = {column.name for column in schema.columns}
    masked = [
        column
        for column in protection.masked.get(feed.source_object_id, ())
        if column in captured and (_is_read(selection, column) or column in selection.filtered)
    ]
    policies = protection.filtered.get(feed.source_object_id, ())
    found, advice = [], []
    if masked:
        found.append(f"{user} reads masks in place of the values of {', '.join(masked)}")
        advice.append(f"GRANT UNMASK TO {quote(user)}; shows it the values, or leave these columns out (columns).")
    if policies:
        found.append(f"security policy {', '.join(policies)} may hide rows of the table from {user}")
        advice.append(
            f"Let the policy's predicate admit {user}, or use a login that it admits, after GRANT SELECT ON "
            f"{feed.source.quoted} TO it; changes are captured without the policy."
        )
    if not found:
        return None
    if allowed:
        return f"{' and '.join(found)}; allow_masked=True loads what it reads"
    raise MaskedError(
        f"{' and '.join(found)}.",
        table=str(feed.source),
        advice=f"{' '.join(advice)} allow_masked=True loads what it reads.",
    )
