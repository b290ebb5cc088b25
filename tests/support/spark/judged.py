"""Values that row filters are to judge, at the edges of their types and drawn between, and how Python judges them."""

from __future__ import annotations

import operator
import struct
import uuid
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

EXACT = {"=": operator.eq, "<>": operator.ne}
ORDERED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}

_INTEGERS = {"tinyint": (0, 255), "int": (-(2**31), 2**31 - 1), "bigint": (-(2**63), 2**63 - 1)}
_DECIMALS = {"decimal(38,0)": (38, 0), "decimal(38,38)": (38, 38), "numeric(9,4)": (9, 4)}
_MONEY = {"money": 2**63 - 1, "smallmoney": 2**31 - 1}
_FLOATS = {"real": (-3.4e38, 1e-37, 3.4e38), "float": (-1.7e308, 2.3e-308, 1.7e308)}
_MOMENTS = {"datetime": 3, "smalldatetime": 0, "datetime2(0)": 0, "datetime2(3)": 3, "datetime2(7)": 7}
_FIRST = {"datetime": datetime(1753, 1, 1), "smalldatetime": datetime(1900, 1, 1)}
_LAST = {"smalldatetime": datetime(2079, 6, 6)}
_LENGTHS = {"char(6)": 6, "nchar(6)": 6, "varchar(20)": 20, "nvarchar(20)": 20}
_LETTERS = (*"aAäÄéeEßs -'", "e\N{COMBINING ACUTE ACCENT}")

TYPES = (*_INTEGERS, *_DECIMALS, *_MONEY, *_FLOATS, *_MOMENTS, *_LENGTHS, "bit", "date", "uniqueidentifier")


def values(type_: str, random: Random) -> list[Any]:
    """Values that a column of the type may hold; of ``datetime2(7)`` some as text, with all seven digits."""
    return list({repr(value): value for value in _values(type_, random)}.values())


def _values(type_: str, random: Random) -> Iterator[Any]:
    if type_ in _INTEGERS:
        low, high = _INTEGERS[type_]
        yield from (low, 0, 1, high, random.randint(low, high))
    elif type_ in _DECIMALS:
        precision, scale = _DECIMALS[type_]
        most = 10**precision - 1
        for digits in (-most, -1, 0, 1, most, random.randint(-most, most), 10 ** (precision - 1)):
            yield _scaled(digits, scale)
    elif type_ in _MONEY:
        most = _MONEY[type_]
        for digits in (-most - 1, -1, 0, 1, 15_000, most, random.randint(-most, most)):
            yield _scaled(digits, 4)
    elif type_ in _FLOATS:
        yield from (*_FLOATS[type_], 0.1, 0.5, random.uniform(-1e6, 1e6), 0.0, -0.0, -1.0)
    elif type_ in _MOMENTS:
        yield from _moments(type_, _MOMENTS[type_], random)
    elif type_ in _LENGTHS:
        drawn = ["".join(random.choices(_LETTERS, k=random.randint(1, 3))) for _ in range(3)]
        # how a blank compares that only hyphens or apostrophes follow is not known
        drawn = [text.replace(" ", "s") if " -" in text or " '" in text else text for text in drawn]
        texts = ["", " ", "a", "A", "a ", "ä", "ß", "ss", "it's", *drawn]
        more = ["ＡＢ", "œ™"] if type_.startswith("n") else []
        for text in (*texts, *more):
            # of no other letters does the code page of varchar know
            yield text if type_.startswith("n") else text.replace("\N{COMBINING ACUTE ACCENT}", "u")
    elif type_ == "bit":
        yield from (False, True)
    elif type_ == "date":
        yield from (
            date.min,
            date(1582, 10, 10),
            date(2026, 1, 2),
            date.max,
            date.min + timedelta(random.randint(0, 10**6)),
        )
    else:
        yield from (str(uuid.UUID(int=number)) for number in (0, 0xA << 124, random.getrandbits(128), 2**128 - 1))


def _scaled(digits: int, scale: int) -> Decimal:
    # arithmetic would round to 28 digits
    return Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -scale))


def _moments(type_: str, scale: int, random: Random) -> Iterator[Any]:
    first, last = _FIRST.get(type_, datetime.min), _LAST.get(type_, datetime(9999, 12, 31))
    between = first + timedelta(minutes=random.randint(0, int((last - first).total_seconds()) // 60))
    yield from (first, datetime(2026, 1, 2), datetime(2026, 1, 2, 3, 4), between, last)
    if type_ == "datetime":
        # thirds of 10 ms, as they are shown
        yield from (datetime(2026, 1, 2, 3, 4, 0, micros) for micros in (3_000, 7_000, 500_000, 997_000))
    elif type_ != "smalldatetime":
        yield datetime(2026, 1, 2, 3, 4, 5)
        yield from (datetime(2026, 1, 2, 3, 4, 5, 10 ** (6 - digits)) for digits in range(1, min(scale, 6) + 1))
    if scale == 7:
        yield from ("2026-01-02 03:04:05.0000001", "2026-01-02 03:04:05.9999999", "9999-12-31 23:59:59.9999999")


def _beyond(type_: str) -> list[Any]:
    """Constants that no column of the type holds."""
    if type_ in _INTEGERS:
        return [-(2**63), 2**63 - 1, -1]
    if type_ in _MOMENTS:
        return [datetime.min, datetime(9999, 12, 31, 23, 59, 59), datetime(2026, 1, 2, 3, 4, 0, 1)]
    return ["longer than the column"] if type_ in _LENGTHS else []


def literal(value: Any) -> str:
    """A value in T-SQL."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float):
        return format(value, ".17e")
    if isinstance(value, datetime):
        text = value.isoformat("T", "microseconds" if value.microsecond % 1000 else "milliseconds")
        return f"'{text}'"
    if isinstance(value, date):
        return f"'{value.isoformat()}'"
    return f"N'{value.replace(chr(39), chr(39) * 2)}'" if isinstance(value, str) else str(value)


def key(type_: str) -> Callable[[Any], Any]:
    """What values of the type are compared by, exactly."""
    if type_ in _MOMENTS:
        return lambda value: value if isinstance(value, str) else value.isoformat(" ", "microseconds") + "0"
    if type_ in _LENGTHS and "var" not in type_:
        return lambda value: value.rstrip(" ")
    return str.upper if type_ == "uniqueidentifier" else lambda value: value


def stored(type_: str, value: Any) -> Any:
    """What a column of the type holds of a value."""
    return struct.unpack("f", struct.pack("f", value))[0] if type_ == "real" else value


def conditions(type_: str, held: list[Any]) -> Iterator[tuple[str, Any, Callable[[Any], bool]]]:
    """Each operator, with a value or a list of values, and what Python says of a value that is not NULL."""
    of = key(type_)
    # constants are datetimes, of which Python knows microseconds alone
    given = [value for value in held if type_ != "datetime2(7)" or not isinstance(value, str)]
    given += _beyond(type_)
    operators = dict(EXACT) if type_ not in _FLOATS else {}
    operators |= ORDERED if type_ not in ("bit", "uniqueidentifier") else {}
    for value in given:
        for name, judges in operators.items():
            yield name, value, lambda row, value=value, judges=judges: judges(of(row), of(value))
    if type_ not in _FLOATS:
        for some in (given[:1], given[1:3], given[-2:]):
            yield "in", some, lambda row, some=some: of(row) in [of(value) for value in some]
            yield "not in", some, lambda row, some=some: of(row) not in [of(value) for value in some]
