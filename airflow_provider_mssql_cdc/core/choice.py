"""What a choice of a table's rows means for the columns that are captured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow_provider_mssql_cdc.core.checkpoint import SinkState
from airflow_provider_mssql_cdc.core.columns import check_columns, map_columns
from airflow_provider_mssql_cdc.core.conditions import FLOATS, LISTS, Condition, condition
from airflow_provider_mssql_cdc.core.exceptions import (
    RESET_ADVICE,
    SelectionChangedError,
    SelectionError,
)
from airflow_provider_mssql_cdc.core.position import Lsn, Position
from airflow_provider_mssql_cdc.core.selection import (
    DROP,
    HASH,
    REDACT,
    Selection,
    same_selection,
    what_differs,
)
from airflow_provider_mssql_cdc.core.shapes import SHAPES
from airflow_provider_mssql_cdc.core.table import TableName, TableSchema, column_meant
from airflow_provider_mssql_cdc.core.table_options import Choice


def select(
    name: TableName, schema: TableSchema, choice: Choice, *, check: str | None, position: type[Position] = Lsn
) -> Selection:
    """What is loaded of a table's rows, and prove that it can be.

    :param check: ``core.selection.salt_check`` of the salt; None where there is none
    :param position: kind of the feed's positions
    :raises SelectionError: if it cannot be chosen so
    :raises UnsupportedColumnError: if a column that is loaded would not arrive unchanged
    """
    selection = choose(name, schema, choice, check=check)
    check_columns(name, schema, selection, position)
    return selection


def check_values(name: TableName, schema: TableSchema, selection: Selection, shape: str) -> None:
    """Refuse a row filter beside columns that CDC may leave out, for a shape that needs all values.

    :raises SelectionError: naming the columns
    """
    lobs = [mapping.name for mapping in map_columns(name, schema, selection) if mapping.is_lob]
    if selection.conditions and lobs and SHAPES[shape].needs_values:
        raise SelectionError(
            f"where and a mirror that holds {', '.join(lobs)}: of a row that comes to fulfil the filter, CDC may "
            "leave out the value of such a column, and no earlier row of the target has it.",
            table=str(name),
            advice="Leave these columns out (columns=..), or load scd2 or history, which name them in _unknown.",
        )


def check_selection(name: TableName, selection: Selection, sinks: Iterable[SinkState]) -> None:
    """Refuse what would add rows of another selection to those that are loaded.

    :raises SelectionChangedError: with what differs
    """
    for sink in sinks:
        # without a schema, the position is an asserted one
        if sink.schema_hash is not None and not same_selection(sink.selection_hash, selection):
            raise selection_changed(name, "the last load", sink.selection, selection)


def selection_changed(
    name: TableName, loaded_by: str, then: Iterable[str], selection: Selection
) -> SelectionChangedError:
    """The error that says what differs.

    :param then: what was chosen, as ``Selection.describe`` says it
    """
    return SelectionChangedError(
        f"what is loaded of its rows is not what {loaded_by} took: {what_differs(then, selection.describe())}.",
        table=str(name),
        advice=f"Put it back, or load into another table (table_name). {RESET_ADVICE}",
    )


def choose(table: TableName, schema: TableSchema, choice: Choice, *, check: str | None) -> Selection:
    """What a choice means for a table.

    :param schema: what is captured, with the key to use
    :param check: ``salt_check`` of the salt; None where there is none
    :raises SelectionError: for columns that are not there, a key that would be lost, and what cannot be done exactly
    """

    def by_column(parameter: str, given: Mapping[str, str]) -> dict[str, str]:
        result: dict[str, str] = {}
        for name, value in given.items():
            column = _meant(table, schema, parameter, name)
            if column in result:
                raise SelectionError(f"{parameter} names {column!r} twice.", table=str(table))
            if wanted and column not in wanted:
                raise SelectionError(
                    f"{parameter} names {name!r}, which columns leaves out already.",
                    table=str(table),
                    advice="Name it in one of the two.",
                )
            result[column] = value
        return result

    wanted = {_meant(table, schema, "columns", name) for name in choice.columns}
    masks = by_column("mask", choice.mask)
    # in the order of before, also where the change table lacks some by now
    in_order = any(column.absent for column in schema.loaded)
    kept = [
        column.name
        for column in (sorted(schema.loaded, key=lambda each: each.column_id) if in_order else schema.loaded)
        if (not wanted or column.name in wanted) and masks.get(column.name) != DROP
    ]
    renames = {old: new for old, new in by_column("rename", choice.rename).items() if old != new}
    for name in renames.keys() - kept:
        raise SelectionError(f"rename names {name!r}, which mask drops.", table=str(table))
    _check_key(table, schema, kept, masks)
    _check_hashes(table, schema, masks)
    hidden = {name: mask for name, mask in masks.items() if mask != DROP}
    return Selection(
        () if len(kept) == len(schema.loaded) else tuple(kept),
        conditions_of(table, schema, choice.where),
        renames,
        hidden,
        check if HASH in hidden.values() else None,
    )


def conditions_of(table: TableName, schema: TableSchema, where: Iterable[Sequence[Any]]) -> tuple[Condition, ...]:
    """What conditions mean for a table.

    :param where: as ``Choice`` has them
    :raises SelectionError: for columns that are not there, and what cannot be judged exactly
    """
    conditions = []
    for name, operator, *given in where:
        values = given[0] if operator in LISTS else given
        column = schema.column(_meant(table, schema, "where", name))
        conditions.append(condition(table, column, operator, values))
    return tuple(dict.fromkeys(conditions))


def _meant(table: TableName, schema: TableSchema, parameter: str, name: str) -> str:
    names = [column.name for column in schema.loaded]
    found = column_meant(name, names)
    if found not in names:
        raise SelectionError(
            f"{parameter} names {name!r}, which is none of the columns that can be loaded.",
            table=str(table),
            advice=f"These are: {', '.join(names)}.",
        )
    return found


def _check_key(table: TableName, schema: TableSchema, kept: Sequence[str], masks: Mapping[str, str]) -> None:
    lost = [name for name in schema.key if name not in kept or masks.get(name) == REDACT]
    if lost:
        raise SelectionError(
            f"{', '.join(lost)} identifies the rows, and would be left out or be the same for all.",
            table=str(table),
            advice='Load the whole key; what it says can be hidden by a mask: {..: "hash"}.',
        )
    if not kept:
        raise SelectionError("mask leaves no column.", table=str(table), advice="Leave the table out with exclude.")


def _check_hashes(table: TableName, schema: TableSchema, masks: Mapping[str, str]) -> None:
    for name, mask in masks.items():
        column = schema.column(name)
        if mask != HASH:
            continue
        if column.type in FLOATS:
            why = "a floating-point number has no text that is the same everywhere"
        elif column.type == "datetimeoffset" and name in schema.key:
            why = "values of a key that are equal in two zones would get two hashes"
        else:
            continue
        raise SelectionError(
            f"column {name!r} of type {column.type} cannot be hashed: {why}.",
            table=str(table),
            advice="Redact or drop it." if name not in schema.key else "Load it as it is, or leave the table out.",
        )
