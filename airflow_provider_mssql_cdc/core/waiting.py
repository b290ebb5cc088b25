"""Columns that wait to be asked for: they were not captured at the first sight, or the entry loads what it names."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint
from airflow_provider_mssql_cdc.core.exceptions import SelectionError
from airflow_provider_mssql_cdc.core.feed import Feed
from airflow_provider_mssql_cdc.core.marker import Marker
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.core.table import TableName, TableSchema
from airflow_provider_mssql_cdc.core.table_options import TableOptions


def of_source(checkpoint: Checkpoint, object_id: int | None) -> Checkpoint:
    """The checkpoint as it counts for a source table: what was seen of the columns of another one, which had this name
    before, says nothing of it.

    :param object_id: of the table; None where that is not known
    """
    seen = checkpoint.seen_schema
    if object_id is None or seen is None or seen.source_object_id in (None, object_id):
        return checkpoint
    return dataclasses.replace(
        checkpoint, seen_schema=None, schema_changes=(), waiting_ids=(), proposed=(), making=None
    )


def left_by_reset(checkpoint: Checkpoint) -> Checkpoint | None:
    """What stays of a checkpoint that is removed: the columns that wait, which nobody else knows once the target table
    is dropped, and schema events that no table holds yet. None where there are none, or nothing else is to be removed.
    """
    left = Checkpoint(
        checkpoint.identity,
        updated_at=checkpoint.updated_at,
        seen_schema=checkpoint.seen_schema,
        schema_changes=checkpoint.schema_changes,
        waiting_ids=checkpoint.waiting_ids,
        unwritten=checkpoint.unwritten,
    )
    return left if (left.waiting_ids or left.unwritten) and left != checkpoint else None


def waiting_in(
    feed: Feed,
    checkpoint: Checkpoint | None,
    before: KeptSchema | None,
    loaded: Sequence[KeptSchema | None],
    options: TableOptions,
) -> tuple[tuple[int, ...], bool, tuple[str, ...]]:
    """The column_ids of a source table that wait to be asked for, as its checkpoint and its sinks say, and whether that
    is all of them: a lost checkpoint, and one of a version that did not note them, leave it to the targets' markers.
    With them the names of those that waited and are gone.

    Where it was not noted what waits, all that the sinks lack counts as left out on purpose. A column waits, too, that
    has the name of one that waited and is gone.

    :param before: the source table's columns as they were seen last; None where these are not kept
    :param loaded: what each loaded sink was loaded with; None where that is not kept
    """
    columns = [column for column in (*feed.columns, *feed.others) if not column.dropped]
    names, lacking = [column.name for column in columns], _lacking(feed, loaded)
    if checkpoint is not None and checkpoint.knows_waiting:
        waiting, complete = {*checkpoint.waiting_ids}, True
    else:
        waiting, complete = {column.column_id for column in feed.others} | lacking, bool(loaded) and None not in loaded
        if before is not None:
            # what has come since the first sight nobody has left out
            waiting &= {column.column_id for column in before.columns}
    refused = {column.column_id for column in columns if options.takes(column.name, names) is False}
    waiting |= refused & lacking
    if before is not None:
        # it has come since, and no sink can have it
        waiting |= refused - {column.column_id for column in before.columns}
    there = {column.column_id for column in columns}
    seen = checkpoint.seen_schema if checkpoint is not None else None
    waited = {*seen.waited} if seen is not None else set()
    waited |= {c.name for c in (before.columns if before is not None else ()) if c.column_id in waiting - there}
    alike = {name.casefold() for name in waited}
    has = {column.column_id for schema in loaded if schema is not None for column in schema.columns}
    waiting |= {c.column_id for c in columns if c.column_id not in has and c.name.casefold() in alike}
    return tuple(sorted(waiting)), complete, tuple(sorted(waited))


def _lacking(feed: Feed, loaded: Sequence[KeptSchema | None]) -> set[int]:
    """The column_ids that no sink has; none where there are no sinks, or one has nobody knows what."""
    schemas = [schema for schema in loaded if schema is not None]
    if not loaded or len(schemas) < len(loaded):
        return set()
    has = {column.column_id for schema in schemas for column in schema.columns}
    return {column.column_id for column in (*feed.columns, *feed.others) if not column.dropped} - has


def known_waiting(
    table: TableSpec, marked: Collection[Marker], schemas: Collection[KeptSchema], columns: Collection[int]
) -> tuple[int, ...]:
    """The column_ids of a source table that wait to be asked for, as the checkpoint and the targets' markers know.

    Where neither knows, all that the targets lack counts as left out on purpose.

    :param marked: of the table's sinks
    :param schemas: that these were loaded with, as far as they are kept
    :param columns: the column_ids of all that the source table has
    """
    said = [marker.waiting_in(table.feed) for marker in marked]
    known = {*table.waiting_ids, *(id_ for ids in said for id_ in ids or ())}
    if not table.knows_waiting and schemas and all(ids is None for ids in said):
        known |= {*columns} - {column.column_id for schema in schemas for column in schema.columns}
    return tuple(sorted(known))


def without(schema: TableSchema, waiting: Collection[int]) -> TableSchema:
    """A schema without the columns that wait to be asked for. The key does not wait: there are no rows without it.

    :param waiting: column_ids
    """
    columns = tuple(c for c in schema.columns if c.column_id not in waiting or c.name in schema.key)
    return schema if len(columns) == len(schema.columns) else dataclasses.replace(schema, columns=columns)


def check_filtered(table: TableName, waiting: Collection[str]) -> None:
    """Refuse a filter of rows by columns that wait to be asked for.

    :param waiting: the names of those that the filter judges
    :raises SelectionError: if there are such
    """
    if waiting:
        names = ", ".join(sorted(waiting))
        raise SelectionError(
            f"where names {names}, which waits to be asked for: it was not captured when the table was first seen.",
            table=str(table),
            advice=f'Name it in columns or mask too, or by new_columns={{"{min(waiting)}": "load"}}; or take it out of '
            "where.",
        )
