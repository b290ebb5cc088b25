"""How the value of each key of an entry of ``tables`` is read."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from airflow_provider_mssql_cdc.core.conditions import LISTS, NULLS, OPERATORS, operator_of
from airflow_provider_mssql_cdc.core.exceptions import ParameterError
from airflow_provider_mssql_cdc.core.initial import Initial
from airflow_provider_mssql_cdc.core.selection import DROP, MASKS
from airflow_provider_mssql_cdc.core.shapes import DELETES, check_shapes
from airflow_provider_mssql_cdc.core.target import check_template

FAIL, COPY = "fail", "copy"

WARN, PROPOSE, EVOLVE = "warn", "propose", "evolve"
ON_SCHEMA_CHANGE = (WARN, FAIL, PROPOSE, EVOLVE)
"""What to do when the source table has got a column, or lost one."""

NONE = "none"
FILL = (COPY, NONE)
"""What becomes of a new column in the rows that targets have: a copy fills it, or it is NULL there."""

CHANGED, ALL = "changed", "all"
HISTORY_FILL = (CHANGED, ALL, NONE)
"""Which rows get an event ``R`` in a history when a copy fills a column: those of which its newest image says something
else, all, or none."""

NEW_COLUMN, STRING = "new_column", "string"
INCOMPATIBLE_TYPES = (FAIL, NEW_COLUMN, STRING)
"""What becomes of values whose type the target's column does not hold, after the source's has got another one: the
table fails, or they go on in a column of their own, or as text."""

KEEP = "keep"
DROPPED_COLUMNS = (KEEP, DROP)
"""What becomes of a target's column that the source table has dropped: what was loaded stays, or the target drops it,
too."""

CDC, CT, AUTO = "cdc", "ct", "auto"
SOURCES = (CDC, CT, AUTO)
"""By what a table is read: change data capture, Change Tracking, or whichever of them it has."""

ON_GAP = ((FAIL,), (COPY,), (CT,), (CT, COPY))
"""What to do when changes were purged before they were loaded: the table fails; it is copied; the rows are read that
Change Tracking says to have changed; or so, and where that cannot be done it is copied.
"""

CHOICES = {
    "source": SOURCES,
    "on_schema_change": ON_SCHEMA_CHANGE,
    "fill": FILL,
    "history_fill": HISTORY_FILL,
    "incompatible_types": INCOMPATIBLE_TYPES,
    "dropped_columns": DROPPED_COLUMNS,
}
"""Those of them that a run has as parameters, too."""

LOAD, ASK = "load", "ask"
NEW_COLUMNS = (LOAD, ASK)
"""Whether columns that the source table gets are loaded, or wait until the entry names them."""


def read_on_gap(of: str, given: Any) -> tuple[str, ...]:
    """The ways to close a gap, in their order.

    :param of: for messages
    :raises ParameterError: for what is none of ``ON_GAP``
    """
    ways = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else ()
    if ways not in ON_GAP:
        raise ParameterError(f'on_gap={given!r}{of}: expected "fail", "copy", "ct" or ["ct", "copy"]')
    return ways


def _names(key: str) -> Callable[[str, Any], tuple[str, ...]]:
    def read(table: str, given: Any) -> tuple[str, ...]:
        names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else ()
        if not names or not all(isinstance(name, str) and name.strip() for name in names):
            raise ParameterError(f"{key} of {table}: {given!r}: expected at least one name, or no {key} at all")
        return names

    return read


def _texts(key: str) -> Callable[[str, Any], dict[str, str]]:
    def read(table: str, given: Any) -> dict[str, str]:
        texts = [part for pair in given.items() for part in pair] if isinstance(given, Mapping) else [None]
        if not all(isinstance(text, str) and text.strip() for text in texts):
            raise ParameterError(f"{key} of {table}: {given!r}: expected a mapping of names to texts")
        return dict(given)

    return read


def _mask(table: str, given: Any) -> dict[str, str]:
    found = _texts("mask")(table, given)
    for column, mask in found.items():
        if mask not in MASKS:
            raise ParameterError(f"mask of {table}: {mask!r} for {column}: expected one of {list(MASKS)}")
    return found


def _one_of(key: str, known: Sequence[Any]) -> Callable[[str, Any], Any]:
    def read(table: str, given: Any) -> Any:
        if given not in known:
            raise ParameterError(f"{key}={given!r} of {table}: expected one of {', '.join(map(repr, known))}")
        return given

    return read


def _template(table: str, given: Any) -> str:
    if not isinstance(given, str):
        raise ParameterError(f"table_name of {table}: {given!r}: expected a text")
    check_template(given)
    return given


def read_where(table: str, given: Any) -> tuple[tuple[Any, ...], ...]:
    """Conditions, as ``TableEntry`` describes them.

    :param table: for messages
    :raises ParameterError: for what is none
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ParameterError(f'where of {table}: {given!r}: expected conditions, as in [("status", "<>", "draft")]')
    return tuple(_condition(table, each) for each in given)


def _condition(table: str, given: Any) -> tuple[Any, ...]:
    text = f"where of {table}: {given!r}"
    is_row = isinstance(given, Sequence) and not isinstance(given, str)
    if not is_row or not 2 <= len(given) <= 3 or not isinstance(given[0], str):
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


def _new_columns(table: str, given: Any) -> str | dict[str, str]:
    said = given if isinstance(given, Mapping) else {"": given}
    if not said or any(not isinstance(name, str) or how not in NEW_COLUMNS for name, how in said.items()):
        raise ParameterError(
            f'new_columns of {table}: {given!r}: expected "load" or "ask", or column to one of them, as in '
            '{"email2": "load"}'
        )
    return dict(given) if isinstance(given, Mapping) else str(given)


def read_timeout(key: str, given: Any) -> datetime.timedelta | None:
    """How long something is waited for; None is for ever.

    :param key: for messages
    :raises ParameterError: for what is no duration
    """
    try:
        found = given if isinstance(given, datetime.timedelta | None) else datetime.timedelta(seconds=given)
    except (TypeError, ValueError, OverflowError):
        found = datetime.timedelta(0)
    if found is not None and found <= datetime.timedelta(0):
        raise ParameterError(f"{key}={given!r}: expected seconds or a timedelta of more than 0 s, or None")
    return found


def _initial(table: str, given: Any) -> Initial:
    try:
        return Initial.parse(given)
    except ParameterError as error:
        raise ParameterError(f"the entry of {table} has {error}") from error


OF_ROWS = ("columns", "where", "rename", "mask")

READ: dict[str, Callable[[str, Any], Any]] = {
    "columns": _names("columns"),
    "where": read_where,
    "rename": _texts("rename"),
    "mask": _mask,
    "key": _names("key"),
    "copy_by": _names("copy_by"),
    "partition_by": _names("partition_by"),
    "shapes": lambda _, given: check_shapes((given,) if isinstance(given, str) else given),
    "deletes": _one_of("deletes", DELETES),
    "table_name": _template,
    "table_properties": _texts("table_properties"),
    "propose_timeout": lambda table, given: read_timeout(f"the entry of {table} has propose_timeout", given),
    "new_columns": _new_columns,
    "on_gap": lambda table, given: read_on_gap(f" of {table}", given),
    **{name: _one_of(name, known) for name, known in CHOICES.items()},
    "widen_list": _one_of("widen_list", (True, False)),
    "allow_masked": _one_of("allow_masked", (True, False)),
    "initial": _initial,
}
"""How the value of each key is read, for the entry of a table."""
