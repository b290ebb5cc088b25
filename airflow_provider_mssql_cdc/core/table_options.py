"""What a DAG author says of tables: entries of ``tables``, and the one record that each table gets of it."""

from __future__ import annotations

import dataclasses
import datetime
import difflib
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from airflow_provider_mssql_cdc.core.changes import DEFAULT, WIDE, HistoryOptions
from airflow_provider_mssql_cdc.core.entry_values import (
    ASK,
    CDC,
    CHANGED,
    COPY,
    CT,
    EVOLVE,
    FAIL,
    KEEP,
    LOAD,
    NONE,
    OF_ROWS,
    PROPOSE,
    READ,
    WARN,
)
from airflow_provider_mssql_cdc.core.exceptions import ParameterError
from airflow_provider_mssql_cdc.core.formats import check_format
from airflow_provider_mssql_cdc.core.initial import WITH_COPY, Initial, check_initial
from airflow_provider_mssql_cdc.core.patterns import TablePattern, parse_pattern
from airflow_provider_mssql_cdc.core.selection import DROP, HASH
from airflow_provider_mssql_cdc.core.shapes import HARD, MIRROR, SHAPES
from airflow_provider_mssql_cdc.core.table import TableName, column_meant
from airflow_provider_mssql_cdc.core.target import TABLE_NAME, Target


@dataclass(frozen=True, slots=True)
class Choice:
    """What of a table's rows is to be loaded; names are those of the source, in any case if only one column can be
    meant.

    :param columns: to be loaded; all if empty
    :param where: (column, operator) or (column, operator, value), all to be fulfilled
    :param rename: column to its name in the targets
    :param mask: column to one of ``MASKS``
    """

    columns: tuple[str, ...] = ()
    where: tuple[tuple[Any, ...], ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    mask: Mapping[str, str] = field(default_factory=dict)

    def without(self, names: Collection[str], columns: Sequence[str]) -> Choice:
        """The choice where a table does not have some columns.

        :param names: of these columns
        :param columns: all that the choice may name
        """

        def named(given: Mapping[str, str]) -> dict[str, str]:
            return {name: value for name, value in given.items() if column_meant(name, columns) not in names}

        kept = tuple(name for name in self.columns if column_meant(name, columns) not in names)
        return dataclasses.replace(self, columns=kept, rename=named(self.rename), mask=named(self.mask))


@dataclass(frozen=True, slots=True)
class TableOptions:
    """All that a DAG author says of a table.

    :param deletes: what a mirror does with deleted rows
    :param history: what a history holds
    :param on_gap: one of ``ON_GAP``
    :param on_schema_change: one of ``ON_SCHEMA_CHANGE``
    :param allow_masked: load what the login reads masked or filtered
    :param key: the user's; empty for the table's own
    :param partition_by: Spark SQL partition expressions for tables that the load creates
    :param table_properties: for tables that the load creates
    :param choice: of its rows
    :param initial: with what a history and ``transactions`` begin
    :param copy_by: columns by which copies are cut; empty for the key
    :param new_columns: one of ``NEW_COLUMNS``, or column to one of them; None for what follows from the choice
    :param fill: one of ``FILL``
    :param history_fill: one of ``HISTORY_FILL``
    :param widen_list: make a capture instance also beside one that leaves out columns on purpose
    :param incompatible_types: one of ``INCOMPATIBLE_TYPES``
    :param dropped_columns: one of ``DROPPED_COLUMNS``
    :param propose_timeout: how long people have to make a capture instance that is proposed; None for ever
    :param source: one of ``SOURCES``
    """

    target: Target
    shapes: tuple[str, ...] = (MIRROR,)
    table_name: str = TABLE_NAME
    table_properties: Mapping[str, str] = field(default_factory=dict)
    on_gap: tuple[str, ...] = (FAIL,)
    deletes: str = HARD
    history: HistoryOptions = DEFAULT
    allow_masked: bool = False
    key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    choice: Choice = field(default_factory=Choice)
    initial: Initial = WITH_COPY
    copy_by: tuple[str, ...] = ()
    on_schema_change: str = WARN
    new_columns: str | Mapping[str, str] | None = None
    fill: str = COPY
    propose_timeout: datetime.timedelta | None = None
    history_fill: str = CHANGED
    widen_list: bool = False
    incompatible_types: str = FAIL
    dropped_columns: str = KEEP
    source: str = CDC

    def target_tables(self, source: TableName) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The tables that loads of a source table make, or may make: what each holds, and its name."""
        for shape in self.shapes:
            yield shape, self.target.table(self.table_name, source, shape)
        yield "schema changes", self.target.schema_changes(self.table_name, source)

    @property
    def fails_on_schema_change(self) -> bool:
        """Whether a column that was added or dropped fails the table."""
        return self.on_schema_change == FAIL

    @property
    def loads_new_columns(self) -> bool:
        """Whether a column that was added is loaded once a capture instance has it."""
        return self.on_schema_change in (PROPOSE, EVOLVE)

    @property
    def leaves_null(self) -> bool:
        """Whether a new column is NULL in the rows that targets have."""
        return self.fill == NONE

    @property
    def follows_types(self) -> str:
        """Where targets follow types that have changed, what becomes of one that their columns do not hold; else ''."""
        return self.incompatible_types if self.loads_new_columns else ""

    @property
    def drops_columns(self) -> bool:
        """Whether targets drop a column that the source table has dropped."""
        return self.loads_new_columns and self.dropped_columns == DROP

    def takes(self, column: str, columns: Sequence[str]) -> bool | None:
        """Whether the author says that a new column is loaded; None where it follows from when it came.

        :param columns: all that the author may mean
        """
        chosen, said = self.choice, self.new_columns
        if isinstance(said, Mapping):
            for name, how in said.items():
                if column_meant(name, columns) == column:
                    return how == LOAD
        masks = {column_meant(name, columns): mask for name, mask in chosen.mask.items()}
        if column in masks or any(column_meant(name, columns) == column for name in chosen.columns):
            return masks.get(column) != DROP
        usual = ASK if chosen.columns or chosen.mask or chosen.where else LOAD
        return None if (said if isinstance(said, str) else usual) == LOAD else False

    @property
    def named_to_load(self) -> tuple[str, ...]:
        """The columns that ``new_columns`` names to be loaded."""
        said = self.new_columns
        return tuple(name for name, how in said.items() if how == LOAD) if isinstance(said, Mapping) else ()

    @property
    def copies_on_gap(self) -> bool:
        """Whether a gap is closed by a new copy, at least where Change Tracking cannot heal it."""
        return COPY in self.on_gap

    @property
    def heals_gaps(self) -> bool:
        """Whether a gap is healed by what Change Tracking says to have changed."""
        return CT in self.on_gap

    @property
    def closes_gaps(self) -> bool:
        """Whether a gap is closed in some way."""
        return self.on_gap != (FAIL,)

    def check(self) -> TableOptions:
        """The record, unless parts of it do not go together.

        :raises ParameterError: saying which
        """
        check_format(
            self.target.address, self.shapes, partition_by=self.partition_by, table_properties=self.table_properties
        )
        check_partitions(self.history.form, self.shapes, self.partition_by)
        if self.heals_gaps and self.source == CT:
            raise ParameterError(
                'on_gap names "ct", which heals gaps of CDC, beside source="ct": a gap of Change Tracking takes "copy"'
            )
        if self.new_columns == LOAD and self.choice.columns:
            raise ParameterError(
                'new_columns="load" beside columns, which says what is loaded: name new columns there, or as in '
                'new_columns={"email2": "load"}'
            )
        return self


def check_partitions(history_form: str, shapes: Iterable[str], partition_by: object) -> None:
    """Refuse partitions by columns that a wide history does not have.

    :raises ParameterError: if there are such
    """
    if history_form == WIDE and partition_by and not all(SHAPES[shape].only_adds for shape in shapes):
        raise ParameterError(
            "partition_by names columns that a wide history does not have: load it by a task of its own"
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of ``tables`` that was read.

    :param said: keys of ``TableEntry`` to their values; None for a pattern alone, which says nothing else
    """

    pattern: TablePattern
    said: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """The pattern as the author wrote it."""
        return self.pattern.text

    def options(self, defaults: TableOptions) -> TableOptions:
        """The record of a table that this entry decides.

        :raises ParameterError: if parts of it do not go together
        """
        if self.said is None:
            return defaults
        own = {name: value for name, value in self.said.items() if name not in OF_ROWS}
        rows = {name: value for name, value in self.said.items() if name in OF_ROWS}
        options = dataclasses.replace(defaults, **own, choice=Choice(**rows)).check()
        if "initial" in own:
            try:
                check_initial(options.initial, options.shapes)
            except ParameterError as error:
                raise ParameterError(f"the entry of {self.text}: {error}") from error
        return options


def read_entries(tables: object, *, salted: bool) -> tuple[Entry, ...]:
    """Read ``tables``: a pattern, an entry, or several of both.

    :param salted: whether there is a salt for hashes
    :raises ParameterError: for what is none, and for what cannot be right whatever the tables are
    :raises PatternError: if a pattern cannot be read
    """
    given = [tables] if isinstance(tables, str | Mapping) else tables
    if not isinstance(given, Iterable) or not (given := list(given)):
        raise ParameterError('tables is empty: name at least one pattern, such as "sales.*"')
    return tuple(_entry(each, salted=salted) for each in given)


def check_entries(tables: object, *, salted: bool) -> tuple[Entry, ...]:
    """Refuse entries that cannot be right. What is a template, or another task's output, is left for the run to check.

    :param salted: whether there is a salt for hashes
    :return: those of which all is known
    :raises ParameterError: for what is no entry
    :raises PatternError: if a pattern cannot be read
    """
    if isinstance(tables, str | Mapping):
        tables = [tables]
    if not isinstance(tables, list | tuple):
        return ()
    if is_said(tables):
        return read_entries(tables, salted=salted)
    known = [each for each in tables if is_said(each)]
    for each in tables:
        if isinstance(each, Mapping) and not is_said(each):
            # a value that is said elsewhere may be right; so may the table
            said = {name: value for name, value in each.items() if is_said(value)}
            read_entries({"table": "*", **said}, salted=salted)
    return read_entries(known, salted=salted) if known else ()


def is_said(value: object) -> bool:
    """Whether a value is known when the DAG is parsed: no part is a template or another task's output."""
    if isinstance(value, str):
        return "{{" not in value and "{%" not in value
    if isinstance(value, Mapping):
        return all(is_said(part) for pair in value.items() for part in pair)
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(is_said, value))
    return isinstance(value, int | float | Decimal | datetime.date | datetime.timedelta | uuid.UUID | None)


def watched(tables: Any) -> Any:
    """The same entries with what tells whether there is something to load, and without all else: no values of rows."""
    if isinstance(tables, Mapping):
        tables = [tables]
    if isinstance(tables, str) or not isinstance(tables, Iterable):
        return tables
    return [
        {name: each[name] for name in each if name not in READ or name in ("shapes", "table_name", "source")}
        if isinstance(each, Mapping)
        else each
        for each in tables
    ]


def hashes(entries: Iterable[Entry]) -> bool:
    """Whether some column is hashed."""
    return any(HASH in (entry.said or {}).get("mask", {}).values() for entry in entries)


def shapes_said(tables: object, shapes: Iterable[str]) -> set[str]:
    """All shapes that some table may have, as far as that is known when the DAG is parsed.

    :param shapes: the default
    """
    entries = [tables] if isinstance(tables, str | Mapping) else tables
    if not isinstance(entries, list | tuple):
        return {*SHAPES}
    own = [entry["shapes"] for entry in entries if isinstance(entry, Mapping) and "shapes" in entry]
    return {*SHAPES} if not all(map(is_said, own)) else {*shapes, *(shape for each in own for shape in each)}


def deciding(name: TableName, entries: Sequence[Entry]) -> Entry:
    """The entry that decides of a table: one without ``*``, else the only one with options, else any.

    :param entries: those that match the table
    :raises ParameterError: if two decide
    """
    named = [entry for entry in entries if entry.pattern.names_one]
    wide = [entry for entry in entries if not entry.pattern.names_one and entry.said is not None]
    for found, kind in ((named, "without *"), (wide, "with * and options")):
        if len(found) > 1:
            both = " and ".join(repr(entry.text) for entry in found[:2])
            raise ParameterError(f"{both} of tables, two entries {kind}, both match {name}: which one counts?")
        if found:
            return found[0]
    return entries[0]


def _entry(given: object, *, salted: bool) -> Entry:
    if isinstance(given, str):
        return Entry(parse_pattern(given))
    if not isinstance(given, Mapping):
        raise ParameterError(f"tables has {given!r}: expected a pattern, or a mapping with the key table")
    table = given.get("table")
    if not isinstance(table, str):
        raise ParameterError(f"tables has {dict(given)!r}: its key table is to name a pattern")
    for name in given:
        if name not in READ and name != "table":
            near = difflib.get_close_matches(str(name), [*READ, "table"], n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are table, {', '.join(READ)}"
            raise ParameterError(f"the entry of {table} has an unknown key {name!r}: {hint}")
    said = {name: READ[name](table, value) for name, value in given.items() if name != "table"}
    if HASH in said.get("mask", {}).values() and not salted:
        raise ParameterError(
            f"mask of {table} hashes {', '.join(c for c, m in said['mask'].items() if m == HASH)}, and without a salt "
            "whoever can guess a value finds its hash: name by salt_conn_id the Airflow connection whose password is "
            "the salt"
        )
    return Entry(parse_pattern(table), said)
