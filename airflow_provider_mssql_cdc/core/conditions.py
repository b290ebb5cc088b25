"""Conditions of a row filter: which values a column can be compared with, and what the server may judge first."""

from __future__ import annotations

import datetime
import math
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from airflow_provider_mssql_cdc.core.exceptions import SelectionError
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema, quote

EQUALITIES = ("=", "<>", "in", "not in")
ORDERS = ("<", "<=", ">", ">=")
NULLS = ("is null", "is not null")
OPERATORS = (*EQUALITIES, *ORDERS, *NULLS)
LISTS = ("in", "not in")

INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
DECIMALS = frozenset({"decimal", "numeric", "money", "smallmoney"})
FLOATS = frozenset({"real", "float"})
MOMENTS = frozenset({"datetime", "smalldatetime", "datetime2"})
PADDED = frozenset({"char", "nchar"})
TEXTS = PADDED | {"varchar", "nvarchar"}

_MONEY = {"money": (19, 4), "smallmoney": (10, 4)}
_CONTINUED = re.compile(r"\\\r?\n")
"""What T-SQL leaves out of a string constant (docs: Backslash (line continuation))."""
_UNORDERED = frozenset({"bit", "uniqueidentifier"})
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of one column with constants.

    :param column: of the source table
    :param operator: one of ``OPERATORS``
    :param values: as text, of the form that the column's type has here: digits, ``true`` and ``false``, ISO 8601;
        one, or for ``in`` and ``not in`` several, or for ``is null`` and ``is not null`` none
    """

    column: str
    operator: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.operator in NULLS:
            return f"{self.column} {self.operator}"
        values = ", ".join(map(repr, self.values))
        return f"{self.column} {self.operator} {f'({values})' if self.operator in LISTS else values}"


def operator_of(text: object) -> str | None:
    """The operator as it is named here; None if it is none."""
    operator = " ".join(str(text).lower().split())
    return operator if operator in OPERATORS else None


def decimal_type(column: Column) -> tuple[int, int]:
    """Precision and scale of a decimal or of money."""
    return _MONEY.get(column.type, (column.precision, column.scale))


def condition(table: TableName, column: Column, operator: str, given: Sequence[object]) -> Condition:
    """A condition that means the same to everybody.

    :param table: for messages
    :param operator: one of ``OPERATORS``
    :param given: as the user gave them
    :raises SelectionError: for a column that cannot be judged exactly, or a value that is none of its type
    """
    if column.is_lob:
        raise _refused(table, column, "CDC leaves its value out where it did not change.")
    if operator in NULLS:
        return Condition(column.name, operator)
    if column.type in FLOATS and operator in EQUALITIES:
        raise _refused(table, column, f"{operator} of floating-point numbers depends on how they are rounded.")
    if column.type in _UNORDERED and operator in ORDERS:
        raise _refused(table, column, f"the order of {column.type} is not the same everywhere.")
    texts = tuple(_text(table, column, value) for value in given)
    # of a list the order says nothing, and a set of Python has another one in each process
    return Condition(column.name, operator, tuple(sorted(set(texts))) if operator in LISTS else texts)


def pushed_filter(schema: TableSchema, conditions: Sequence[Condition]) -> str:
    """T-SQL that every row fulfils which fulfils all conditions, and maybe others; '' if all rows do."""
    return " AND ".join(filter(None, (pushed(schema.column(each.column), each) for each in conditions)))


def pushed(column: Column, condition: Condition) -> str | None:
    """T-SQL that every row fulfils which fulfils the condition, and maybe others: Spark judges them all again.

    :return: None where the server compares in another way. Its collation may take texts for equal that differ, but
        none for different that are equal
    """
    name, operator = quote(column.name), condition.operator
    if operator in NULLS:
        return f"{name} {operator.upper()}"
    if column.type in TEXTS and operator not in ("=", "in"):
        return None
    literals = [_literal(column, value) for value in condition.values]
    if None in literals:
        return None
    if operator in LISTS:
        return f"{name} {operator.upper()} ({', '.join(filter(None, literals))})"
    return f"{name} {operator} {literals[0]}"


def _literal(column: Column, value: str) -> str | None:
    if column.type in INTEGERS:
        return value
    if column.type in DECIMALS:
        return _decimal_literal(column, value)
    if column.type == "bit":
        return "1" if value == "true" else "0"
    if column.type == "date":
        return f"CONVERT(date, '{value}', 23)"
    if column.type in TEXTS:
        if _CONTINUED.search(value):
            return None
        return "N'" + value.replace("'", "''") + "'"
    if column.type == "uniqueidentifier":
        return f"CONVERT(uniqueidentifier, '{value}')"
    # a datetime counts in thirds of 10 ms, which are shown as whole milliseconds
    if column.type in MOMENTS and (column.type != "datetime" or value.endswith(".000000")):
        return f"CONVERT(datetime2(7), '{value}', 121)"
    return None


def _decimal_literal(column: Column, value: str) -> str:
    """A constant of the column's own scale: what is common to two scales may have less digits than either."""
    whole, _, digits = value.partition(".")
    scale = decimal_type(column)[1]
    return f"{whole}.{digits.ljust(scale, '0')}" if scale else whole


def _text(table: TableName, column: Column, value: object) -> str:
    found = _as_text(column, value)
    if found is None:
        raise _refused(table, column, f"{value!r} is no value of {_described(column)}.")
    return found


def _as_text(column: Column, value: object) -> str | None:
    if isinstance(value, str) and column.type not in TEXTS:
        value = _read(column, value)
    if column.type == "bit":
        return str(bool(value)).lower() if isinstance(value, int) and value in (0, 1) else None
    if isinstance(value, bool):
        return None
    if column.type in INTEGERS:
        return str(value) if isinstance(value, int) and -(2**63) <= value < 2**63 else None
    if column.type in DECIMALS:
        # JSON and YAML have no decimals: what is written there is the shortest text of the float
        exact = Decimal(repr(value)) if isinstance(value, float) else value
        return _decimal_text(column, Decimal(exact)) if isinstance(exact, int | Decimal) else None
    if column.type in FLOATS:
        return _float_text(value) if isinstance(value, int | float | Decimal) else None
    if column.type in TEXTS and isinstance(value, str):
        return value.rstrip(" ") if column.type in PADDED else value
    if column.type == "uniqueidentifier" and isinstance(value, uuid.UUID):
        return str(value).upper()
    if column.type == "date" and isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value.isoformat()
    if column.type in MOMENTS:
        return _moment_text(value)
    return None


def _read(column: Column, text: str) -> object:
    """The value that a text stands for, as templates, JSON and YAML write it; None if it stands for none."""
    if column.type == "bit":
        return {"true": True, "false": False, "1": True, "0": False}.get(text.lower())
    try:
        if column.type in INTEGERS | DECIMALS | FLOATS:
            return _NUMBER.fullmatch(text) and (int(text) if column.type in INTEGERS else Decimal(text))
        if column.type == "uniqueidentifier":
            return uuid.UUID(text)
        if column.type == "date":
            return datetime.date.fromisoformat(text) if _DATE.fullmatch(text) else None
        return datetime.datetime.fromisoformat(text) if _DATE.match(text) else None
    except (ValueError, ArithmeticError):
        return None


def _decimal_text(column: Column, value: Decimal) -> str | None:
    precision, scale = decimal_type(column)
    # abs() would round to 28 digits
    if not value.is_finite() or value.copy_abs() >= Decimal(10) ** (precision - scale):
        return None
    digits = format(value, "f")
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return digits if len(digits.partition(".")[2]) <= scale else None


def _float_text(value: float | Decimal) -> str | None:
    number = float(value)
    return repr(number) if math.isfinite(number) and number == value else None


def _moment_text(value: object) -> str | None:
    if isinstance(value, datetime.datetime):
        moment = value
    elif isinstance(value, datetime.date):
        moment = datetime.datetime.combine(value, datetime.time())
    else:
        return None
    return moment.isoformat(" ", "microseconds") if moment.tzinfo is None else None


def _described(column: Column) -> str:
    if column.type in DECIMALS:
        return "{}({},{})".format(column.type, *decimal_type(column))
    if column.type in MOMENTS:
        return f"{column.type}, which has no zone"
    return column.type


def _refused(table: TableName, column: Column, why: str) -> SelectionError:
    return SelectionError(
        f"where cannot judge column {column.name!r} of type {column.type}: {why}",
        table=str(table),
        advice="Numbers, dates, datetime and datetime2, bit, uniqueidentifier and texts can be compared, each with "
        "values of its type; others can be asked for NULL, but for LOBs.",
    )
