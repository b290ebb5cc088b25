"""The rules by which types combine: precedence, common types, arithmetic results, and the DuckDB form of each type."""

from __future__ import annotations

import dataclasses

from airflow_provider_mssql_cdc.sandbox.collations import comparing
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError, Unsupported
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType

BIT = SqlType("bit")
TINYINT = SqlType("tinyint")
SMALLINT = SqlType("smallint")
INT = SqlType("int")
BIGINT = SqlType("bigint")
FLOAT = SqlType("float")
REAL = SqlType("real")
DATE = SqlType("date")
DATETIME = SqlType("datetime")
UNIQUEIDENTIFIER = SqlType("uniqueidentifier")
SYSNAME = SqlType("sysname", 128)
LSN = SqlType("binary", 10)
TABLE = SqlType("table")


def varchar(length: int) -> SqlType:
    """varchar of a length in characters."""
    return SqlType("varchar", length)


def nvarchar(length: int) -> SqlType:
    """nvarchar of a length in UTF-16 code units."""
    return SqlType("nvarchar", length)


def varbinary(length: int) -> SqlType:
    """varbinary of a length in bytes."""
    return SqlType("varbinary", length)


def decimal(precision: int, scale: int) -> SqlType:
    """decimal of a precision and scale."""
    return SqlType("decimal", 0, precision, scale)


# docs: data type precedence, highest first
_PRECEDENCE = (
    "xml", "datetimeoffset", "datetime2", "datetime", "smalldatetime", "date", "time", "float", "real", "decimal",
    "money", "smallmoney", "bigint", "int", "smallint", "tinyint", "bit", "ntext", "text", "image", "rowversion",
    "uniqueidentifier", "sysname", "nvarchar", "nchar", "varchar", "char", "varbinary", "binary",
)  # fmt: skip
_RANK = {name: rank for rank, name in enumerate(_PRECEDENCE)}

_KIND = {
    "bit": "bit",
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "int"),
    **dict.fromkeys(("decimal", "money", "smallmoney"), "dec"),
    **dict.fromkeys(("real", "float"), "float"),
    **dict.fromkeys(("char", "varchar", "nchar", "nvarchar", "sysname", "text", "ntext", "xml"), "str"),
    **dict.fromkeys(("binary", "varbinary", "image", "rowversion"), "bin"),
    **dict.fromkeys(("date", "time", "datetime2", "datetimeoffset"), "time"),
    **dict.fromkeys(("datetime", "smalldatetime"), "time"),
    "uniqueidentifier": "guid",
}

_DUCK = {
    "bit": "BOOLEAN", "tinyint": "UTINYINT", "smallint": "SMALLINT", "int": "INTEGER", "bigint": "BIGINT",
    "money": "DECIMAL(19,4)", "smallmoney": "DECIMAL(10,4)", "real": "FLOAT", "float": "DOUBLE", "date": "DATE",
    "datetime": "TIMESTAMP", "smalldatetime": "TIMESTAMP", "time": "BIGINT", "datetime2": "BIGINT",
    "datetimeoffset": "STRUCT(utc_ticks BIGINT, offset_minutes SMALLINT)",
}  # fmt: skip

_INT_DIGITS = {"bit": 1, "tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
INT_BYTES = {"bit": 1, "tinyint": 1, "smallint": 2, "int": 4, "bigint": 8}
MONEY = ("money", "smallmoney")
LOB_NAMES = frozenset({"text", "ntext", "image", "xml"})


def kind(type_: SqlType) -> str:
    """The family of a type: bit, int, dec, float, str, bin, guid or time."""
    return _KIND[type_.name]


def duck(type_: SqlType) -> str:
    """The DuckDB type that holds a value of this type."""
    if type_.name == "decimal":
        return f"DECIMAL({type_.precision},{type_.scale})"
    return _DUCK.get(type_.name) or ("BLOB" if kind(type_) == "bin" else "VARCHAR")


def is_unicode(type_: SqlType) -> bool:
    """Whether a string type counts UTF-16 code units."""
    return type_.name in ("nchar", "nvarchar", "sysname", "ntext", "xml")


def is_lob(type_: SqlType) -> bool:
    """Whether a column of this type is a large object to CDC: (max) types, text, ntext, image and xml."""
    return type_.length == MAX or type_.name in LOB_NAMES


def as_decimal(type_: SqlType) -> SqlType:
    """The decimal as which an exact number takes part in decimal arithmetic."""
    if type_.name == "decimal":
        return type_
    if type_.name in MONEY:
        return decimal(19 if type_.name == "money" else 10, 4)
    return decimal(_INT_DIGITS[type_.name], 0)


def _longer(left: int, right: int) -> int:
    return MAX if MAX in (left, right) else max(left, right)


def common(left: SqlType, right: SqlType) -> SqlType:
    """The type both sides take in a comparison, CASE, COALESCE or UNION (docs: precedence, precision and length)."""
    result = _common(left, right)
    if kind(result) == "str" and (left.collation or right.collation):
        return dataclasses.replace(result, collation=comparing.meeting(left, right))
    return result


def _common(left: SqlType, right: SqlType) -> SqlType:
    high, low = (left, right) if _RANK[left.name] <= _RANK[right.name] else (right, left)
    if high == low:
        return high
    if high.name == "decimal" and kind(low) in ("dec", "int", "bit"):
        a, b = as_decimal(high), as_decimal(low)
        scale = max(a.scale, b.scale)
        precision = max(a.precision - a.scale, b.precision - b.scale) + scale
        if precision > 38:
            scale = max(0, scale - (precision - 38))
        return decimal(min(precision, 38), scale)
    if kind(high) == "str" and kind(low) == "str":
        if high.name == "sysname":
            high = nvarchar(128)
        name = high.name
        if name in ("nchar", "char") and low.name != name:
            name = "nvarchar" if name == "nchar" else "varchar"
        if name in LOB_NAMES:
            return SqlType(name)
        return SqlType(name, _longer(high.length, low.length))
    if kind(high) == "bin" and kind(low) == "bin" and high.name not in ("rowversion", "image"):
        return SqlType(high.name, _longer(high.length, low.length if low.length else 8))
    if high.name == low.name:
        return SqlType(high.name, 0, 0, max(high.scale, low.scale))
    if high.name in ("datetime2", "datetimeoffset") and low.name in ("datetime2", "time"):
        return SqlType(high.name, 0, 0, max(high.scale, low.scale))
    return high


def arithmetic(operator: str, left: SqlType, right: SqlType) -> SqlType:
    """The type of ``left operator right`` for two numbers (docs: precision, scale and length)."""
    wider = common(left, right)
    if kind(wider) == "bit":
        raise SqlError.of(402, "bit", "bit", _OPERATOR_NAMES[operator])
    if kind(wider) in ("int", "float") or wider.name in MONEY:
        return wider
    a, b = as_decimal(left), as_decimal(right)
    if operator in "+-":
        scale = max(a.scale, b.scale)
        precision = max(a.precision - a.scale, b.precision - b.scale) + scale + 1
        if precision > 38:
            scale = min(38 - min(38, precision - scale), scale)
        return decimal(min(precision, 38), scale)
    if operator == "*":
        precision, scale = a.precision + b.precision + 1, a.scale + b.scale
    elif operator == "/":
        scale = max(6, a.scale + b.precision + 1)
        precision = a.precision - a.scale + b.scale + scale
    else:
        scale = max(a.scale, b.scale)
        return decimal(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)
    if precision > 38:
        integral = precision - scale
        scale = min(scale, max(38 - integral, min(scale, 6)))
    return decimal(min(precision, 38), scale)


_OPERATOR_NAMES = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "modulo"}


def display(type_: SqlType) -> str:
    """The type as error messages name it."""
    return "numeric" if type_.name == "decimal" else "timestamp" if type_.name == "rowversion" else type_.name


_NAMES = {
    "integer": "int", "numeric": "decimal", "dec": "decimal", "timestamp": "rowversion", "character": "char",
    "double precision": "float", "character varying": "varchar", "char varying": "varchar",
    "national character": "nchar", "national char": "nchar", "national character varying": "nvarchar",
    "national char varying": "nvarchar", "binary varying": "varbinary",
}  # fmt: skip
_LACKING = frozenset({"sql_variant", "hierarchyid", "geometry", "geography"})
_SINCE_2025 = frozenset({"json", "vector"})
_LENGTH_LIMITS = {"char": 8000, "varchar": 8000, "binary": 8000, "varbinary": 8000, "nchar": 4000, "nvarchar": 4000}


def named(name: str, arguments: list[str], *, default_length: int = 1, line: int = 1) -> SqlType:
    """A type from its name and its arguments in parentheses.

    :param default_length: the length a string or binary type has without one: 1 in a declaration, 30 in CAST
    :raises SqlError: 102 for a length that is none, 2715 for an unknown type, 50000 for one that the sandbox has
        not, 1001 for a bad length, 2750 and 2751 for bad decimals
    """
    name = name.lower()
    declared, name = name, _NAMES.get(name, name)
    if name == "sysname":
        return SYSNAME
    if len(arguments) > (2 if name == "decimal" else 1):
        raise SqlError.of(102, ",", line=line)
    if name in _SINCE_2025:
        raise Unsupported(f"the type {name}", line=line, since=17, before=SqlError.of(2715, name, line=line))
    if name in _LACKING:
        raise Unsupported(f"the type {name}", line=line)
    if name not in _KIND:
        raise SqlError.of(2715, name, line=line)
    strange = [argument for argument in arguments if not argument.isdecimal() and argument.lower() != "max"]
    if strange:
        raise SqlError.of(102, strange[0], line=line)
    numbers = [MAX if argument.lower() == "max" else int(argument) for argument in arguments]
    if name in _LENGTH_LIMITS:
        length = numbers[0] if numbers else default_length
        if (length == MAX and not name.startswith("var") and name != "nvarchar") or (
            length != MAX and not 1 <= length <= _LENGTH_LIMITS[name]
        ):
            raise SqlError.of(1001, line, length)
        return SqlType(name, length)
    if name == "decimal":
        precision, scale = ([*numbers, 18, 0])[:2] if not numbers else (numbers[0], ([*numbers, 0])[1])
        if not 1 <= precision <= 38:
            raise SqlError.of(2750, precision)
        if not 0 <= scale <= precision:
            raise SqlError.of(2751, scale)
        return SqlType("decimal", 0, precision, scale, "numeric" if declared == "numeric" else "")
    if name == "float":
        return REAL if numbers and numbers[0] <= 24 else FLOAT
    if name in ("time", "datetime2", "datetimeoffset"):
        scale = numbers[0] if numbers else 7
        if not 0 <= scale <= 7:
            raise SqlError.of(1002, line, scale)
        return SqlType(name, 0, 0, scale)
    if numbers:
        raise SqlError.of(2716, name)
    return SqlType(name)
