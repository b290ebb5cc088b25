"""From the rows of the statements about Change Tracking to what a database and its tables say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from airflow_provider_mssql_cdc.core.change_tracking import (
    Cleanup,
    DatabaseTracking,
    Retention,
    Standing,
    TrackedChange,
    TrackedTable,
    TrackedVersions,
    TrackingSize,
)
from airflow_provider_mssql_cdc.core.exceptions import (
    ChangeTrackingDisabledError,
    InstanceChangedError,
    TableNotFoundError,
)
from airflow_provider_mssql_cdc.core.position import Version
from airflow_provider_mssql_cdc.core.table import Column, TableName, quote
from airflow_provider_mssql_cdc.core.tracked_catalog import schema_of
from airflow_provider_mssql_cdc.hooks import tracking_statements as statements

Row = tuple[Any, ...]


def version(value: int | None) -> Version | None:
    """The version; None for NULL."""
    return None if value is None else Version(value)


def database_of(row: Row) -> DatabaseTracking:
    """Read the row of ``statements.STATUS``."""
    name, user, enabled, period, unit, cleanup, isolation, updateability, level = row
    return DatabaseTracking(
        name=name,
        user=user,
        enabled=bool(enabled),
        retention=None if period is None else Retention(period, unit),
        auto_cleanup=None if cleanup is None else bool(cleanup),
        snapshot_isolation=isolation == statements.SNAPSHOT_ISOLATION_ON,
        updateability=updateability,
        compatibility_level=level,
    )


def versions_of(rows: Iterable[Row], wanted: Sequence[TableName]) -> dict[TableName, TrackedVersions]:
    """Read the rows of ``statements.versions``; tables without a row are unknown."""
    found = {name: TrackedVersions(name, Standing.UNKNOWN) for name in wanted}
    for ordinal, object_id, _, _, _, tracked, _, begin, min_valid, side, made, _ in rows:
        name = wanted[ordinal]
        if tracked is None:
            found[name] = TrackedVersions(name, Standing.UNTRACKED, object_id)
            continue
        standing = Standing.DENIED if min_valid is None else Standing.TRACKED
        found[name] = TrackedVersions(name, standing, object_id, version(begin), version(min_valid), side, made)
    return found


def schemas_of(column_rows: Iterable[Row]) -> dict[int, tuple[tuple[Column, ...], tuple[str, ...]]]:
    """Read the rows of ``statements.COLUMNS``: object id to columns and primary key."""
    described: dict[int, list[Row]] = defaultdict(list)
    for row in column_rows:
        described[row[1]].append(row)
    return {object_id: schema_of(rows) for object_id, rows in described.items()}


def tables_of(rows: Iterable[Row], column_rows: Iterable[Row]) -> list[TrackedTable]:
    """Put the rows of ``statements.versions``, of tracked tables, and of ``statements.COLUMNS`` together."""
    described = schemas_of(column_rows)
    result = []
    for _, object_id, schema, table, created, _, columns_updated, begin, min_valid, side, _, snapshots in rows:
        if object_id not in described:  # it went meanwhile
            continue
        columns, key = described[object_id]
        name = TableName(schema, table)
        result.append(
            TrackedTable(
                name=str(name),
                object_id=object_id,
                source=name,
                source_object_id=object_id,
                create_date=created,
                columns=columns,
                primary_key=key,
                columns_updated=bool(columns_updated),
                begin_version=version(begin),
                min_valid_version=version(min_valid),
                side_object_id=side,
                snapshots=snapshots == statements.SNAPSHOT_ISOLATION_ON,
            )
        )
    return result


def change_of(table: TrackedTable, row: Row, asked: Sequence[Column]) -> TrackedChange:
    """Read a row of ``statements.changes``.

    :param asked: columns of which the row says whether they are in the mask
    """
    at, creation, operation, mask, context, *rest = row
    key = dict(zip(table.primary_key, rest, strict=False))
    in_mask = zip(asked, rest[len(key) :], strict=True)
    named = None if mask is None else tuple(column.name for column, found in in_mask if found)
    told = None if context is None else bytes(context)
    return TrackedChange(Version(at), version(creation), operation, key, named, told)


def sizes_of(rows: Iterable[Row]) -> list[TrackingSize]:
    """Read the rows of ``statements.SIZES``."""
    return [
        TrackingSize(None if table is None else TableName(schema, table), int(count), int(reserved))
        for schema, table, count, reserved in rows
    ]


def cleanups_of(rows: Iterable[Row]) -> list[Cleanup]:
    """Read the rows of ``statements.CLEANUPS``."""
    return [
        Cleanup(table, began, ended, deleted, version(upto), comments or "")
        for table, began, ended, deleted, upto, comments in rows
    ]


def disabled(database: str, table: TableName | None = None) -> ChangeTrackingDisabledError:
    """The error that says what is off: the table, or all of the database."""
    if table is None:
        return ChangeTrackingDisabledError(
            f"Change Tracking is off for {database}.",
            advice="Call enable_database first, as a login that may ALTER DATABASE.",
        )
    return ChangeTrackingDisabledError(
        f"Change Tracking of {database} does not track it.", table=str(table), advice="Call enable_table first."
    )


def made_anew(table: TableName) -> InstanceChangedError:
    """The error that says that a table is not the one that was described."""
    return InstanceChangedError(
        "it is no longer the table that was described: it was made anew, or its key has other columns.",
        table=str(table),
        advice="Call tracked_table again.",
    )


def not_found(table: TableName, login: str) -> TableNotFoundError:
    """The error that says that a table is not to be seen."""
    return TableNotFoundError(
        "there is no such table, or the login does not see it.",
        table=str(table),
        advice=f"Check its name; a login that may read it sees it: GRANT SELECT ON {table.quoted} TO {quote(login)};",
    )
