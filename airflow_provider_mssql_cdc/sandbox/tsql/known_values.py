"""Known values on their way into a column without DuckDB: rows of literals need no query to be worked out."""

from __future__ import annotations

import datetime
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from airflow_provider_mssql_cdc.sandbox.engine.schema import ColumnDef
from airflow_provider_mssql_cdc.sandbox.tsql.expr import NOT_CONSTANT, Expr
from airflow_provider_mssql_cdc.sandbox.tsql.typing import is_unicode, kind
from airflow_provider_mssql_cdc.sandbox.types import MAX, TICKS_PER_SECOND, SqlType

_RANGES = {
    "tinyint": (0, 255),
    "smallint": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "bigint": (-(2**63), 2**63 - 1),
}
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,7}))?)?")
_DIGITS = Context(prec=38)
_DAY = 86400 * TICKS_PER_SECOND


def known_value(expr: Expr, column: ColumnDef) -> Any:
    """What a known expression becomes in a column, in Arrow form.

    :returns: NOT_CONSTANT for whatever is not plain; then the query that does it also finds what is wrong with it
    """
    value = expr.value
    if value is None or value is NOT_CONSTANT:
        return value
    target = column.type
    family = kind(target)
    if family == "int" and isinstance(value, int):
        low, high = _RANGES[target.name]
        return int(value) if low <= value <= high else NOT_CONSTANT
    if family == "bit" and isinstance(value, int):
        return value != 0
    if family == "dec" and isinstance(value, int | Decimal) and not isinstance(value, bool):
        return _decimal(value, target)
    if target.name == "float" and isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return float(value)
    if family == "str" and isinstance(value, str) and kind(expr.type) == "str":
        return _text(value, target)
    if family == "bin" and isinstance(value, bytes) and kind(expr.type) == "bin":
        return _bytes(value, target)
    if family == "time":
        return _temporal(value, expr.type, target)
    return NOT_CONSTANT


def _decimal(value: int | Decimal, target: SqlType) -> Any:
    if target.name != "decimal":
        return NOT_CONSTANT
    number = Decimal(value)
    if number and number.adjusted() + 1 > target.precision - target.scale:
        return NOT_CONSTANT
    if number.as_tuple().exponent >= -target.scale:  # type: ignore[operator]
        return number
    rounded = number.quantize(Decimal(1).scaleb(-target.scale), ROUND_HALF_UP, _DIGITS)
    return rounded if not rounded or rounded.adjusted() < target.precision - target.scale else NOT_CONSTANT


def _text(value: str, target: SqlType) -> Any:
    if target.name == "xml" or not (value.isascii() or is_unicode(target)):
        return NOT_CONSTANT
    units = len(value) if value.isascii() else len(value.encode("utf-16-le")) // 2
    if target.length not in (0, MAX) and units > target.length:
        return NOT_CONSTANT
    if target.name in ("char", "nchar"):
        return value + " " * (target.length - units)
    return value


def _bytes(value: bytes, target: SqlType) -> Any:
    if target.name == "rowversion" or (target.length not in (0, MAX) and len(value) > target.length):
        return NOT_CONSTANT
    return value.ljust(target.length, b"\x00") if target.name == "binary" else value


def _temporal(value: Any, source: SqlType, target: SqlType) -> Any:
    if source == target and target.name != "datetimeoffset":
        return value
    match = _ISO.fullmatch(value) if isinstance(value, str) else None
    if match is None or target.name not in ("date", "datetime2"):
        return NOT_CONSTANT
    try:
        day = datetime.date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return NOT_CONSTANT
    if target.name == "date":
        return day
    hours, minutes, seconds = (int(match[i] or 0) for i in (4, 5, 6))
    if hours > 23 or minutes > 59 or seconds > 59:
        return NOT_CONSTANT
    ticks = (day.toordinal() - 1) * _DAY + (hours * 3600 + minutes * 60 + seconds) * TICKS_PER_SECOND
    ticks += int((match[7] or "").ljust(7, "0"))
    unit = 10 ** (7 - target.scale)
    return (ticks + unit // 2) // unit * unit
