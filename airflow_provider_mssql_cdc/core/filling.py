"""A table whose sinks have different columns: each goes on with its own, and what is copied to fill those that lack."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping

from airflow_provider_mssql_cdc.core.changes import OPERATIONS, HistoryOptions
from airflow_provider_mssql_cdc.core.checkpoint import SinkState
from airflow_provider_mssql_cdc.core.copy_wanted import KnownCopy
from airflow_provider_mssql_cdc.core.entry_values import NONE
from airflow_provider_mssql_cdc.core.going_on import Followed, follows, goes_on_with, held_as, is_small
from airflow_provider_mssql_cdc.core.schema import KeptSchemas
from airflow_provider_mssql_cdc.core.shapes import SHAPES
from airflow_provider_mssql_cdc.core.spec import Chosen, SinkSpec, TableSpec
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema, same_schema
from airflow_provider_mssql_cdc.core.waiting import check_filtered, without

FILLING = ".filling"
"""Behind the name of the folder of a table's copies: that of copies which fill columns."""

_DIGITS = 8


@dataclasses.dataclass(frozen=True, slots=True)
class LeftOut:
    """A history that gets no rows of the table with columns that it lacks.

    :param why: as people are told
    """

    columns: tuple[str, ...]
    why: str


def own_columns(
    table: Chosen,
    now: TableSchema,
    schema_hash: str | None,
    kept: KeptSchemas,
    exact: Collection[str],
    *,
    widens: str = "",
    there: Collection[int] | None = None,
    sets_aside: Callable[[Column], bool] = is_small,
) -> Chosen:
    """The columns with which a sink goes on: those that it has, or where that is not known the table's.

    :param now: all that the feed has
    :param schema_hash: of what the sink was loaded with
    :param kept: schemas by their hash
    :param exact: columns beside the key's whose nullability counts
    :param widens: as for ``goes_on_with``
    :param there: as for ``goes_on_with``
    :param sets_aside: as for ``goes_on_with``
    """
    if schema_hash is None or same_schema(schema_hash, table.schema):
        return table
    found = goes_on_with(now, kept(schema_hash), exact, widens=widens, there=there, sets_aside=sets_aside)
    if found is not None and follows(
        like := held_as(found, [table.schema]), schema_hash, kept(schema_hash), widens=widens
    ):
        found = like
    if found is None or found.hash == table.schema.hash:
        return table
    return Chosen(found, table.selection.within({column.name for column in found.columns}))


def beginning(table: TableName, chosen: Chosen, waiting: Collection[int]) -> Chosen:
    """The columns with which a sink begins beside others of whose columns only their markers know: a table's, without
    those that wait to be asked for.

    :param waiting: column_ids
    :raises SelectionError: if rows are filtered by one of these
    """
    schema = without(chosen.schema, waiting)
    if schema is chosen.schema:
        return chosen
    names = {column.name for column in schema.columns}
    check_filtered(table, chosen.selection.filtered - names)
    return Chosen(schema, chosen.selection.within(names))


def lacking(table: Chosen, own: Chosen, unfilled: Collection[str]) -> tuple[str, ...]:
    """The columns that a sink lacks, or of which it lacks the values of before, as the source names them.

    :param own: that it has
    :param unfilled: target columns of which it lacks the values of before
    """
    has = {c.column_id: own.selection.name_of(c) for c in own.schema.columns if own.selection.holds(c.name)}
    # what the source has dropped it cannot tell
    held = [c for c in table.schema.loaded if table.selection.holds(c.name) and not c.kept]
    return tuple(c.name for c in held if c.column_id not in has or has[c.column_id] in unfilled)


def lagging_in(
    table: Chosen,
    own: Chosen,
    sink: SinkState | None,
    shape: str,
    unique: bool,
    history: HistoryOptions,
    history_fill: str,
    types: Mapping[str, Followed],
) -> tuple[str, ...]:
    """The columns that a copy is to fill in a sink: that it lacks, or of which it lacks the values of before.

    :param own: that it has
    :param unique: whether the server enforces the key
    :param history_fill: which rows a history gets
    :param types: of its columns that it follows
    """
    facts = SHAPES[shape]
    if not facts.has_data or not table.schema.key or (facts.takes_history and history_fill == NONE):
        return ()
    if why_left_out(table, shape, unique, history) is not None:
        return ()
    unfilled = unfilled_now(sink.unfilled if sink is not None else (), types, own)
    return lacking(table, own, (*unfilled, *to_read_again(types, own)))


def why_left_out(table: Chosen, shape: str, unique: bool, history: HistoryOptions) -> str | None:
    """Why a history gets no rows of the table with the columns that it lacks; None of what gets them.

    :param unique: whether the server enforces the key
    """
    if not SHAPES[shape].takes_history:
        return None
    if not table.schema.key:
        return "the table has no key"
    if not unique:
        return "the server does not enforce its key"
    if history.is_wide:
        return "it is wide"
    return None if history.operations == OPERATIONS else "it has some operations only"


def left_out(
    chosen: Chosen,
    own: Mapping[str, Chosen],
    lagging: Mapping[str, Collection[str]],
    unique: bool,
    history: HistoryOptions,
    history_fill: str,
) -> dict[str, LeftOut]:
    """The histories that get no rows of the table with columns that they lack, or that other sinks are filled with,
    though the entry asks for them.

    :param own: the columns that sinks have, by shape
    :param lagging: those that a copy fills, by shape
    :param unique: whether the server enforces the key
    :param history_fill: which rows a history is to get
    """
    if history_fill == NONE:
        return {}
    filled = {name for names in lagging.values() for name in names}
    found = {}
    for shape, columns in own.items():
        if (why := why_left_out(chosen, shape, unique, history)) is None:
            continue
        lacks = lacking(chosen, columns, ())
        names = tuple(c.name for c in chosen.schema.loaded if c.name in filled or c.name in lacks)
        if names:
            found[shape] = LeftOut(names, why)
    return found


def told_of_filling(
    chosen: Chosen,
    own: Mapping[str, Chosen],
    lagging: Mapping[str, Collection[str]],
    types: Mapping[str, Mapping[str, Followed]],
    left: Mapping[str, LeftOut],
    *,
    leaves_null: bool,
) -> list[str]:
    """What people are told of columns that sinks lack, or whose values their source has altered with their types.

    :param own: the columns that sinks have, by shape
    :param lagging: those that a copy fills, by shape
    :param types: that sinks follow, by shape and column
    :param left: the histories that get no rows, by shape
    """
    told = []
    if filled := sorted({name for names in lagging.values() for name in names}):
        told.append(f"{', '.join(filled)}: filled by a copy of {', '.join(lagging)}, and shown with all values")
    told += [
        f"{', '.join(each.columns)}: {shape} gets no rows with the values of before, since {each.why}"
        for shape, each in left.items()
    ]
    anew = {
        shape: [name for name, each in of.items() if each.anew and own[shape].selection.holds(name)]
        for shape, of in types.items()
    }
    for name in sorted({name for names in anew.values() for name in names}):
        if stay := [shape for shape, names in anew.items() if name in names and name not in lagging.get(shape, ())]:
            told.append(f"{name}: what {', '.join(stay)} has of it stays as it was loaded, until the row changes")
    if leaves_null:
        nulls = dict.fromkeys(name for columns in own.values() for name in lacking(chosen, columns, ()))
        told += [f'{name}: NULL in the rows that targets have, until they change: fill="none"' for name in nulls]
    return told


def to_read_again(types: Mapping[str, Followed], own: Chosen) -> tuple[str, ...]:
    """The target columns whose values are to be read again, since a change of type has altered them.

    :param types: that a sink follows, by column
    :param own: its columns
    """
    anew = [name for name, each in types.items() if each.anew and own.selection.holds(name)]
    return tuple(own.selection.name_of(own.schema.column(name)) for name in anew)


def noted(sink: SinkState, types: Mapping[str, Followed], own: Chosen) -> SinkState:
    """A sink's state with the columns whose values are to be read again: a newer feed knows nothing of the statements
    that have altered them, and nothing may be committed before it is read.

    :param types: that the sink follows, by column
    :param own: its columns
    """
    return dataclasses.replace(sink, unfilled=unfilled_with(sink.unfilled, types, own))


def unfilled_with(unfilled: Collection[str], types: Mapping[str, Followed], own: Chosen) -> tuple[str, ...]:
    """Target columns that lack values of before, with those whose values are to be read again.

    :param types: that a sink follows, by column
    :param own: its columns
    """
    return tuple(dict.fromkeys((*unfilled_now(unfilled, types, own), *to_read_again(types, own))))


def unfilled_now(unfilled: Collection[str], types: Mapping[str, Followed], own: Chosen) -> tuple[str, ...]:
    """Target columns that lack values of before, by the names that they get.

    :param types: that a sink follows, by column
    :param own: its columns
    """
    renames = own.selection.renames
    names = {
        renames.get(column, each.was.name) + each.was.suffix: own.selection.name_of(own.schema.column(column))
        for column, each in types.items()
    }
    left = {own.selection.name_of(column) for column in own.schema.columns if column.kept}
    return tuple(name for name in (names.get(name, name) for name in unfilled) if name not in left)


def going_on(table: TableSpec, own: Chosen, sinks: tuple[SinkSpec, ...]) -> TableSpec:
    """The table with some sinks that go on with the columns that they have."""
    return dataclasses.replace(
        table,
        schema=own.schema,
        selection=own.selection,
        sinks=sinks,
        grows=False,
        fills=False,
    )


def suffix_of(own: Chosen) -> str:
    """What stands behind the name of the folder of copies with these columns."""
    return f".{own.schema.hash.rpartition(':')[2][:_DIGITS]}"


def with_all(table: TableSpec, sinks: tuple[SinkSpec, ...], grows_from: Mapping[str, Chosen]) -> TableSpec:
    """The table with some sinks that have all columns, or get them with their next commit."""
    return dataclasses.replace(table, sinks=sinks, grows_from=dict(grows_from))


def copied_in(spec: TableSpec, table: TableSpec, suffix: str) -> TableSpec:
    """Some of a table's sinks with the folder of their copies: two copies of different columns are not each other's.

    :param table: with all of them
    :param suffix: what stands behind the name of the table's folder; '' for those whose copy may be under way there
    """
    copy = None if suffix else table.copy
    return dataclasses.replace(spec, copies=table.copies and table.copies + suffix, copy=copy)


def known_of_its_kind(table: TableSpec) -> KnownCopy | None:
    """The copy that the checkpoint knows, where it is one of the same kind: of whole rows, or to fill columns."""
    is_fill = (table.copies or "").endswith(FILLING)
    return table.copy if table.copy is not None and table.copy.fills == is_fill else None


def filling(table: TableSpec, columns: Collection[str]) -> TableSpec:
    """The key, and columns that sinks lack: what is copied to fill these; with all others, where sinks that are loaded
    in these take the changes up to the copy's end from it.
    """
    wanted = {*table.schema.key, *columns}
    held = tuple(column.name for column in table.schema.loaded if column.name in wanted)
    selection = dataclasses.replace(table.selection, columns=held)
    return dataclasses.replace(
        table,
        selection=selection if table.feed.CAN.exact_cut else table.selection,
        sinks=(),
        copies=table.copies and table.copies + FILLING,
        protection=None,
    )
