"""A table whose sinks have different columns: each goes on with its own, and what is copied to fill those that lack."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

from airflow_provider_mssql_cdc.core.spec import Chosen, SinkSpec, TableSpec
from airflow_provider_mssql_cdc.core.table import TableSchema

FILLING = ".filling"
"""Behind the name of the folder of a table's copies: that of copies which fill columns."""

_DIGITS = 8


def lacking(table: TableSpec, own: Chosen) -> tuple[str, ...]:
    """The columns that a sink lacks, as the source names them.

    :param own: that it has
    """
    has = {column.name for column in own.schema.columns if own.selection.holds(column.name)}
    return tuple(c.name for c in table.schema.loaded if c.name not in has and table.selection.holds(c.name))


def chosen_of(table: TableSpec, schema: TableSchema) -> Chosen:
    """What a sink has that was loaded with some columns of a table."""
    return Chosen(schema, table.selection.within({column.name for column in schema.columns}))


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
