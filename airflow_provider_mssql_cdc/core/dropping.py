"""Columns that the source table has dropped, and that targets are to drop too: from where on, and what is left."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable

from airflow_provider_mssql_cdc.core.entry_values import KEEP
from airflow_provider_mssql_cdc.core.feed import DdlChange, DroppedColumn, Feed
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.schema_sight import GoneColumn
from airflow_provider_mssql_cdc.core.selection import Selection
from airflow_provider_mssql_cdc.core.spec import Chosen
from airflow_provider_mssql_cdc.core.table import TableSchema
from airflow_provider_mssql_cdc.core.table_options import Choice, TableOptions


def drops_of(feed: Feed, ddl: Iterable[DdlChange], gone: Iterable[GoneColumn]) -> tuple[DroppedColumn, ...]:
    """The columns of a feed that its source table has dropped, as far as they have a place among the changes.

    The catalogue is ahead of the capture: one without a place may have values yet.

    :param ddl: the feed's rows of ``cdc.ddl_history``
    :param gone: the columns that were seen to be dropped
    """
    dropped = {column.column_id for column in feed.columns if column.dropped}
    statements = [change.lsn for change in ddl]
    places = {each.column_id: each.place(statements) for each in gone if each.column_id in dropped}
    return tuple(DroppedColumn(column_id, at) for column_id, at in places.items() if at is not None)


def due(schema: TableSchema, drops: Collection[DroppedColumn], position: Position) -> frozenset[int]:
    """The column_ids that a sink drops which is loaded up to a position: what comes behind has no values of them.

    :param schema: of the sink
    """
    places = {each.column_id: each.at for each in drops}
    return frozenset(
        column.column_id
        for column in schema.columns
        # an instance that never had it reaches back to where the sink is; one may be absent for its type alone
        if column.kept and (places[column.column_id] <= position if column.column_id in places else column.absent)
    )


def cut_at(
    schema: TableSchema, drops: Iterable[DroppedColumn], positions: Iterable[Position], cut: Position
) -> Position:
    """Where a run ends that is to go up to a cut: with the first column that its sinks drop, so that all of before is
    loaded with it.

    :param schema: of the sinks
    :param positions: of the sinks that are loaded
    """
    kept = {column.column_id for column in schema.columns if column.kept}
    lowest = min(positions, default=cut)
    ends = [each.at for each in drops if each.column_id in kept and lowest < each.at < cut]
    return min(ends, default=cut)


def without_dropped(chosen: Chosen, ids: Collection[int]) -> Chosen:
    """A table's columns, and what is loaded of them, without some.

    :param ids: their column_ids
    """
    columns = tuple(column for column in chosen.schema.columns if column.column_id not in ids)
    if len(columns) == len(chosen.schema.columns):
        return chosen
    schema = dataclasses.replace(chosen.schema, columns=columns)
    selection = chosen.selection.within({column.name for column in columns})
    if len(selection.columns) == len(schema.loaded):
        # as it is chosen of a table that has no others
        selection = dataclasses.replace(selection, columns=())
    return Chosen(schema, selection)


def told_of_dropped(
    schema: TableSchema, selection: Selection, options: TableOptions, gone: Collection[str] = ()
) -> list[str]:
    """What people are told of columns that the source table has dropped.

    :param gone: names of those that targets have dropped, too
    """
    left = [column.name for column in schema.columns if column.dropped and column.name not in gone]
    told = [f"column {name} is left out: the source table no longer has it" for name in left]
    names = [name for name in schema.kept if selection.holds(name)]
    if options.drops_columns:
        drop = "was dropped by the source table: targets drop it once they are loaded up to there"
        return [*told, *(f"column {name} {drop}" for name in names)]
    told += [f"column {name} is NULL since the source table dropped it" for name in names]
    if options.dropped_columns != KEEP and names:
        told.append(
            'dropped_columns="drop" drops nothing here: it is for on_schema_change="propose" and "evolve", and this is '
            f'"{options.on_schema_change}"'
        )
    return told


def told_of_gone(feed: Feed, gone: Collection[str], choice: Choice) -> list[str]:
    """What people are told of columns that an entry names, and that targets have dropped.

    :param gone: names of those that they have dropped
    """
    live = {column.name.casefold() for column in (*feed.columns, *feed.others) if not column.dropped}
    return [
        f"the entry names column {name}, which was dropped: it says nothing any more"
        for name in sorted(gone)
        if name.casefold() not in live and choice.without({name}, [name]) != choice
    ]
