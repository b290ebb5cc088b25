"""What sys.types, sys.columns and INFORMATION_SCHEMA say of a type: ids, lengths, precision and scale."""

from __future__ import annotations

from typing import NamedTuple

from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType


class SystemType(NamedTuple):
    """A row of sys.types."""

    name: str
    system_type_id: int
    user_type_id: int
    max_length: int
    precision: int
    scale: int


SYSTEM_TYPES = tuple(
    SystemType(*row)
    for row in (
        ("image", 34, 34, 16, 0, 0), ("text", 35, 35, 16, 0, 0), ("uniqueidentifier", 36, 36, 16, 0, 0),
        ("date", 40, 40, 3, 10, 0), ("time", 41, 41, 5, 16, 7), ("datetime2", 42, 42, 8, 27, 7),
        ("datetimeoffset", 43, 43, 10, 34, 7), ("tinyint", 48, 48, 1, 3, 0), ("smallint", 52, 52, 2, 5, 0),
        ("int", 56, 56, 4, 10, 0), ("smalldatetime", 58, 58, 4, 16, 0), ("real", 59, 59, 4, 24, 0),
        ("money", 60, 60, 8, 19, 4), ("datetime", 61, 61, 8, 23, 3), ("float", 62, 62, 8, 53, 0),
        ("ntext", 99, 99, 16, 0, 0), ("bit", 104, 104, 1, 1, 0), ("decimal", 106, 106, 17, 38, 38),
        ("numeric", 108, 108, 17, 38, 38), ("smallmoney", 122, 122, 4, 10, 4), ("bigint", 127, 127, 8, 19, 0),
        ("varbinary", 165, 165, 8000, 0, 0), ("varchar", 167, 167, 8000, 0, 0), ("binary", 173, 173, 8000, 0, 0),
        ("char", 175, 175, 8000, 0, 0), ("timestamp", 189, 189, 8, 0, 0), ("nvarchar", 231, 231, 8000, 0, 0),
        ("nchar", 239, 239, 8000, 0, 0), ("xml", 241, 241, -1, 0, 0), ("sysname", 231, 256, 256, 0, 0),
    )
)  # fmt: skip
_BY_NAME = {each.name: each for each in SYSTEM_TYPES}
_FRACTIONS = {"date": 0, "smalldatetime": 0, "datetime": 3}
_SCALED = ("time", "datetime2", "datetimeoffset")
_UNICODE = ("nchar", "nvarchar", "sysname", "ntext", "xml")
_OLD_LARGE = {"text": 2147483647, "image": 2147483647, "ntext": 1073741823}
_RADIX = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "decimal", "money", "smallmoney"), 10),
    **dict.fromkeys(("real", "float"), 2),
}


def system_type(type_: SqlType) -> SystemType:
    """The sys.types row of a type."""
    return _BY_NAME["timestamp" if type_.name == "rowversion" else type_.declared or type_.name]


def max_length(type_: SqlType) -> int:
    """sys.columns.max_length: bytes; -1 for (max) and xml."""
    if type_.length:
        return type_.length if type_.length == MAX or type_.name not in _UNICODE else 2 * type_.length
    if type_.name == "decimal":
        return 5 if type_.precision <= 9 else 9 if type_.precision <= 19 else 13 if type_.precision <= 28 else 17
    if type_.name in _SCALED:
        return system_type(type_).max_length - (2 if type_.scale <= 2 else 1 if type_.scale <= 4 else 0)
    return system_type(type_).max_length


def precision(type_: SqlType) -> int:
    """sys.columns.precision: digits, or characters of a date or time as text; 0 for others."""
    if type_.name == "decimal":
        return type_.precision
    most = system_type(type_).precision
    return most - (7 - type_.scale if type_.scale else 8) if type_.name in _SCALED else most


def scale(type_: SqlType) -> int:
    """sys.columns.scale"""
    return type_.scale if type_.name == "decimal" or type_.name in _SCALED else system_type(type_).scale


def character_length(type_: SqlType) -> int | None:
    """INFORMATION_SCHEMA.COLUMNS.CHARACTER_MAXIMUM_LENGTH"""
    return MAX if type_.name == "xml" else _OLD_LARGE.get(type_.name, type_.length or None)


def octet_length(type_: SqlType) -> int | None:
    """INFORMATION_SCHEMA.COLUMNS.CHARACTER_OCTET_LENGTH"""
    length = character_length(type_)
    if length is None or length == MAX or type_.name not in _UNICODE:
        return length
    return min(2 * length, 2147483646)


def measures(type_: SqlType) -> tuple[int | None, int | None, int | None, int | None, int | None]:
    """Length, numeric precision, its radix, scale, and digits of a second; each where a type has it."""
    radix = _RADIX.get(type_.name)
    digits = type_.scale if type_.name in _SCALED else _FRACTIONS.get(type_.name)
    exact = scale(type_) if radix == 10 else None
    return character_length(type_), precision(type_) if radix else None, radix, exact, digits
