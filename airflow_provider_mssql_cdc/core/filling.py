"""A table whose sinks have different columns: each goes on with its own, and what is copied to fill those that lack."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

from airflow_provider_mssql_cdc.core.schema import KeptSchemas, as_loaded
from airflow_provider_mssql_cdc.core.spec import Chosen, SinkSpec, TableSpec
from airflow_provider_mssql_cdc.core.table import TableSchema, same_schema

FILLING = ".filling"
"""Behind the name of the folder of a table's copies: that of copies which fill columns."""

_DIGITS = 8


def own_columns(
    table: Chosen, now: TableSchema, schema_hash: str | None, kept: KeptSchemas, exact: Collection[str]
) -> Chosen:
    """The columns with which a sink goes on: those that it has, or where that is not known the table's.

    :param now: all that the feed has
    :param schema_hash: of what the sink was loaded with
    :param kept: schemas by their hash
    :param exact: columns beside the key's whose nullability counts
    """
    if schema_hash is None or same_schema(schema_hash, table.schema):
        return table
    found = as_loaded(now, kept(schema_hash), exact)
    if found.hash != schema_hash:
        return table
    return Chosen(found, table.selection.within({column.name for column in found.columns}))


def beginning(table: Chosen, waiting: Collection[int]) -> Chosen:
    """The columns with which a sink begins beside others of whose columns only their markers know: a table's, without
    those that wait to be asked for.

    :param waiting: column_ids
    """
    columns = tuple(c for c in table.schema.columns if c.column_id not in waiting or c.name in table.schema.key)
    if len(columns) == len(table.schema.columns):
        return table
    return Chosen(
        dataclasses.replace(table.schema, columns=columns), table.selection.within({column.name for column in columns})
    )


def lacking(table: Chosen, own: Chosen, unfilled: Collection[str]) -> tuple[str, ...]:
    """The columns that a sink lacks, or of which it lacks the values of before, as the source names them.

    :param own: that it has
    :param unfilled: target columns of which it lacks the values of before
    """
    has = {column.name for column in own.schema.columns if own.selection.holds(column.name)}
    held = (column.name for column in table.schema.loaded if table.selection.holds(column.name))
    return tuple(name for name in held if name not in has or table.selection.renames.get(name, name) in unfilled)


def going_on(table: TableSpec, own: Chosen, sinks: tuple[SinkSpec, ...]) -> TableSpec:
    """The table with some sinks that go on with the columns that they have."""
    return dataclasses.replace(
        table,
        schema=own.schema,
        selection=own.selection,
        sinks=sinks,
        grows=False,
        fills=False,
        # two copies of different columns are not each other's
        copies=table.copies and f"{table.copies}{suffix_of(own)}",
        copy=None,
    )


def suffix_of(own: Chosen) -> str:
    """What stands behind the name of the folder of copies with these columns."""
    return f".{own.schema.hash.rpartition(':')[2][:_DIGITS]}"


def with_all(table: TableSpec, sinks: tuple[SinkSpec, ...], grows_from: Mapping[str, Chosen]) -> TableSpec:
    """The table with some sinks that have all columns, or get them with their next commit."""
    copy = None if table.copy is not None and table.copy.fills else table.copy
    return dataclasses.replace(table, sinks=sinks, grows_from=dict(grows_from), copy=copy)


def filling(table: TableSpec, columns: Collection[str]) -> TableSpec:
    """The key, and columns that sinks lack: what is copied to fill these."""
    wanted = {*table.schema.key, *columns}
    held = tuple(column.name for column in table.schema.loaded if column.name in wanted)
    return dataclasses.replace(
        table,
        selection=dataclasses.replace(table.selection, columns=held),
        sinks=(),
        copies=table.copies and table.copies + FILLING,
        copy=table.copy if table.copy is not None and table.copy.fills else None,
        protection=None,
    )
