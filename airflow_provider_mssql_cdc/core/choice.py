"""What a DAG author chooses of a table's rows, and what that means for the columns that are captured."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_mssql_cdc.core.checkpoint import SinkState
from airflow_provider_mssql_cdc.core.columns import check_columns, map_columns
from airflow_provider_mssql_cdc.core.conditions import FLOATS, LISTS, NULLS, OPERATORS, condition, operator_of
from airflow_provider_mssql_cdc.core.exceptions import (
    RESET_ADVICE,
    ParameterError,
    SelectionChangedError,
    SelectionError,
)
from airflow_provider_mssql_cdc.core.selection import (
    DROP,
    HASH,
    MASKS,
    REDACT,
    Selection,
    same_selection,
    what_differs,
)
from airflow_provider_mssql_cdc.core.table import TableName, TableSchema, column_meant
from airflow_provider_mssql_cdc.core.target import MIRROR


@dataclass(frozen=True, slots=True)
class Choice:
    """What a DAG author says of one table; names are those of the source, in any case if only one column can be meant.

    :param columns: to be loaded; all if empty
    :param row_filter: (column, operator) or (column, operator, value), all to be fulfilled
    :param renames: column to its name in the targets
    :param masks: column to one of ``MASKS``
    """

    columns: tuple[str, ...] = ()
    row_filter: tuple[tuple[Any, ...], ...] = ()
    renames: Mapping[str, str] = field(default_factory=dict)
    masks: Mapping[str, str] = field(default_factory=dict)


EVERY_ROW = Choice()


@dataclass(frozen=True, slots=True)
class Choices:
    """What a DAG author says, by table, named as patterns name it; the parts of ``Choice``."""

    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    row_filters: Mapping[str, tuple[tuple[Any, ...], ...]] = field(default_factory=dict)
    renames: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    masks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def checked(
        cls,
        columns: Mapping[str, Sequence[str]] | None,
        row_filters: Mapping[str, Sequence[Sequence[Any]]] | None,
        renames: Mapping[str, Mapping[str, str]] | None,
        masks: Mapping[str, Mapping[str, str]] | None,
        *,
        salted: bool,
    ) -> Choices:
        """Return what is given, as far as it can be right whatever the tables are.

        :param salted: whether there is a salt
        :raises ParameterError: otherwise
        """
        for table, masked in (masks or {}).items():
            for column, mask in masked.items():
                if mask not in MASKS:
                    raise ParameterError(f"masks: {mask!r} for {column} of {table}: expected one of {list(MASKS)}")
                if mask == HASH and not salted:
                    raise ParameterError(
                        f"masks hash {column} of {table}, and without a salt whoever can guess a value finds its hash: "
                        "name by salt_conn_id the Airflow connection whose password is the salt"
                    )
        for table, names in (renames or {}).items():
            if not all(isinstance(new, str) and new.strip() for new in names.values()):
                raise ParameterError(f"renames of {table}: {dict(names)!r}: expected a new name for each column")
        return cls(
            {table: _names(table, names) for table, names in (columns or {}).items()},
            {table: tuple(_given(table, given) for given in rows) for table, rows in (row_filters or {}).items()},
            {table: dict(names) for table, names in (renames or {}).items()},
            {table: dict(masked) for table, masked in (masks or {}).items()},
        )

    def of(self, table: str) -> Choice:
        """Return what is said of a table by this name."""
        return Choice(
            self.columns.get(table, ()),
            self.row_filters.get(table, ()),
            self.renames.get(table, {}),
            self.masks.get(table, {}),
        )

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables' names."""
        return (*self.columns, *self.row_filters, *self.renames, *self.masks)


def select(
    name: TableName, schema: TableSchema, choice: Choice, shapes: Collection[str], *, check: str | None
) -> Selection:
    """Return what is loaded of a table's rows, and prove that it can be.

    :param check: ``core.selection.salt_check`` of the salt; None where there is none
    :raises SelectionError: if it cannot be chosen so
    :raises UnsupportedColumnError: if a column that is loaded would not arrive unchanged
    """
    selection = choose(name, schema, choice, check=check)
    check_columns(name, schema, selection)
    lobs = [mapping.name for mapping in map_columns(name, schema, selection) if mapping.is_lob]
    if selection.conditions and lobs and MIRROR in shapes:
        raise SelectionError(
            f"row_filters and a mirror that holds {', '.join(lobs)}: of a row that comes to fulfil the filter, CDC may "
            "leave out the value of such a column, and no earlier row of the target has it.",
            table=str(name),
            advice="Leave these columns out (columns=..), or load scd2 or history, which name them in _unknown.",
        )
    return selection


def check_selection(name: TableName, selection: Selection, sinks: Iterable[SinkState]) -> None:
    """Refuse what would add rows of another selection to those that are loaded.

    :raises SelectionChangedError: with what differs
    """
    for sink in sinks:
        # without a schema, the position is a person's word on what the target holds
        if sink.schema_hash is not None and not same_selection(sink.selection_hash, selection):
            raise selection_changed(name, "the last load", sink.selection, selection)


def selection_changed(
    name: TableName, loaded_by: str, then: Iterable[str], selection: Selection
) -> SelectionChangedError:
    """Return the error that says what differs.

    :param then: what was chosen, as ``Selection.describe`` says it
    """
    return SelectionChangedError(
        f"what is loaded of its rows is not what {loaded_by} took: {what_differs(then, selection.describe())}.",
        table=str(name),
        advice=f"Put it back, or load into another table (table_name). {RESET_ADVICE}",
    )


def choose(table: TableName, schema: TableSchema, choice: Choice, *, check: str | None) -> Selection:
    """Return what a choice means for a table.

    :param schema: what is captured, with the key to use
    :param check: ``salt_check`` of the salt; None where there is none
    :raises SelectionError: for columns that are not there, a key that would be lost, and what cannot be done exactly
    """

    def meant(parameter: str, name: str) -> str:
        names = [column.name for column in schema.loaded]
        found = column_meant(name, names)
        if found not in names:
            raise SelectionError(
                f"{parameter} names {name!r}, which is none of the columns that can be loaded.",
                table=str(table),
                advice=f"These are: {', '.join(names)}.",
            )
        return found

    def by_column(parameter: str, given: Mapping[str, str]) -> dict[str, str]:
        result: dict[str, str] = {}
        for name, value in given.items():
            column = meant(parameter, name)
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

    wanted = {meant("columns", name) for name in choice.columns}
    masks = by_column("masks", choice.masks)
    held = [
        column.name
        for column in schema.loaded
        if (not wanted or column.name in wanted) and masks.get(column.name) != DROP
    ]
    renames = {old: new for old, new in by_column("renames", choice.renames).items() if old != new}
    for name in renames.keys() - held:
        raise SelectionError(f"renames names {name!r}, which masks drop.", table=str(table))
    _check_key(table, schema, held, masks)
    _check_hashes(table, schema, masks)
    conditions = []
    for name, operator, *given in choice.row_filter:
        values = given[0] if operator in LISTS else given
        conditions.append(condition(table, schema.column(meant("row_filters", name)), operator, values))
    hidden = {name: mask for name, mask in masks.items() if mask != DROP}
    return Selection(
        () if len(held) == len(schema.loaded) else tuple(held),
        tuple(dict.fromkeys(conditions)),
        renames,
        hidden,
        check if HASH in hidden.values() else None,
    )


def _check_key(table: TableName, schema: TableSchema, held: Sequence[str], masks: Mapping[str, str]) -> None:
    lost = [name for name in schema.key if name not in held or masks.get(name) == REDACT]
    if lost:
        raise SelectionError(
            f"{', '.join(lost)} identifies the rows, and would be left out or be the same for all.",
            table=str(table),
            advice='Load the whole key; what it says can be hidden by masks={..: "hash"}.',
        )
    if not held:
        raise SelectionError("masks leave no column.", table=str(table), advice="Leave the table out with exclude.")


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


def _names(table: str, given: Sequence[str]) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given)
    if not names:
        raise ParameterError(f"columns of {table}: name at least one, or leave the table out of columns")
    return names


def _given(table: str, given: Sequence[Any]) -> tuple[Any, ...]:
    text = f"row_filters of {table}: {given!r}"
    if isinstance(given, str) or not 2 <= len(given) <= 3 or not isinstance(given[0], str):
        raise ParameterError(f'{text}: expected (column, operator, value), as in ("status", "<>", "draft")')
    operator = operator_of(given[1])
    if operator is None:
        raise ParameterError(f"{text}: {given[1]!r} is none of {', '.join(OPERATORS)}")
    if (operator in NULLS) != (len(given) == 2):
        raise ParameterError(f"{text}: {operator!r} takes {'no' if operator in NULLS else 'a'} value")
    if operator in NULLS:
        return (given[0], operator)
    value = given[2]
    if operator in LISTS:
        value = None if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
        if not value:
            raise ParameterError(f"{text}: {operator!r} takes a list of values")
    if value is None or (operator in LISTS and None in value):
        raise ParameterError(f'{text}: NULL is not compared with; use "is null" or "is not null"')
    return (given[0], operator, value)
