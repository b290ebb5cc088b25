"""TYPE_INFO: how a type is declared on the wire, written for columns and read for parameters."""

from __future__ import annotations

import dataclasses
import enum
import struct
from dataclasses import dataclass

from airflow_provider_mssql_cdc.sandbox.collations.names import COLLATIONS, DEFAULT, Collation
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType
from airflow_provider_mssql_cdc.sandbox.wire.reader import Reader

COLLATION = COLLATIONS[DEFAULT].wire
"""The server's."""

TIMESTAMP_USER_TYPE = 80

_UTF8_FLAG = 1 << 26


class Prefix(enum.Enum):
    """What stands before a value and says how long it is."""

    NONE = 0
    BYTE = 1
    USHORT = 2
    PLP = 3
    TEXT_POINTER = 4


@dataclass(frozen=True, slots=True)
class WireType:
    """A type on the wire.

    :param info: its TYPE_INFO
    :param size: bytes of a value, the most for types of variable length, 0 where only 2 GiB limit it
    """

    info: bytes
    prefix: Prefix
    size: int
    user_type: int = 0


# name: (token when NOT NULL, token when nullable, bytes)
_SIMPLE = {
    "bit": (0x32, 0x68, 1),
    "tinyint": (0x30, 0x26, 1),
    "smallint": (0x34, 0x26, 2),
    "int": (0x38, 0x26, 4),
    "bigint": (0x7F, 0x26, 8),
    "real": (0x3B, 0x6D, 4),
    "float": (0x3E, 0x6D, 8),
    "smallmoney": (0x7A, 0x6E, 4),
    "money": (0x3C, 0x6E, 8),
    "smalldatetime": (0x3A, 0x6F, 4),
    "datetime": (0x3D, 0x6F, 8),
}
_TEMPORAL = {"time": 0x29, "datetime2": 0x2A, "datetimeoffset": 0x2B}
_CHARACTER = {"char": (0xAF, 1), "varchar": (0xA7, 1), "nchar": (0xEF, 2), "nvarchar": (0xE7, 2)}
_BINARY = {"binary": 0xAD, "varbinary": 0xA5}
_OLD_LARGE = {"text": (0x23, 0x7FFFFFFF), "ntext": (0x63, 0x7FFFFFFE), "image": (0x22, 0x7FFFFFFF)}


def named_in(sql: SqlType) -> Collation:
    """The collation that a column's type names; the server's where it names none."""
    return COLLATIONS[sql.collation.rstrip("!").partition("|")[0] or DEFAULT]


def decimal_size(precision: int) -> int:
    """Bytes of a decimal value with its sign (docs: decimal and numeric, storage bytes)."""
    return 5 if precision <= 9 else 9 if precision <= 19 else 13 if precision <= 28 else 17


def time_size(scale: int) -> int:
    """Bytes of a time of day."""
    return 3 if scale <= 2 else 4 if scale <= 4 else 5


def _temporal_size(name: str, scale: int) -> int:
    return time_size(scale) + {"time": 0, "datetime2": 3, "datetimeoffset": 5}[name]


def wire_type(sql: SqlType, *, nullable: bool) -> WireType:
    """How values of ``sql`` travel as a column; the forms without a length byte are for NOT NULL columns.

    :raises TypeError: for a type that the sandbox does not have
    """
    name = sql.name
    if name in _SIMPLE:
        fixed, variable, size = _SIMPLE[name]
        if nullable:
            return WireType(bytes([variable, size]), Prefix.BYTE, size)
        return WireType(bytes([fixed]), Prefix.NONE, size)
    if name == "decimal":
        size = decimal_size(sql.precision)
        return WireType(bytes([0x6C if sql.declared else 0x6A, size, sql.precision, sql.scale]), Prefix.BYTE, size)
    if name == "date":
        return WireType(b"\x28", Prefix.BYTE, 3)
    if name in _TEMPORAL:
        return WireType(bytes([_TEMPORAL[name], sql.scale]), Prefix.BYTE, _temporal_size(name, sql.scale))
    if name == "uniqueidentifier":
        return WireType(b"\x24\x10", Prefix.BYTE, 16)
    if name in _OLD_LARGE:
        token, limit = _OLD_LARGE[name]
        collation = b"" if name == "image" else named_in(sql).wire
        return WireType(struct.pack("<BI", token, limit) + collation, Prefix.TEXT_POINTER, 0)
    if name == "xml":
        return WireType(b"\xf1\x00", Prefix.PLP, 0)
    if name == "rowversion":
        return WireType(b"\xad\x08\x00", Prefix.USHORT, 8, TIMESTAMP_USER_TYPE)
    if name == "sysname":
        return wire_type(dataclasses.replace(sql, name="nvarchar", length=128), nullable=nullable)
    if name not in _CHARACTER and name not in _BINARY:
        raise TypeError(f"the sandbox does not send values of type {name}")
    token, unit = _CHARACTER[name] if name in _CHARACTER else (_BINARY[name], 1)
    collation = named_in(sql).wire if name in _CHARACTER else b""
    if sql.length == MAX:
        return WireType(bytes([token, 0xFF, 0xFF]) + collation, Prefix.PLP, 0)
    size = max(sql.length, 1) * unit
    return WireType(struct.pack("<BH", token, size) + collation, Prefix.USHORT, size)


@dataclass(frozen=True, slots=True)
class ParameterType:
    """A parameter's declared type, and how its value is laid out.

    :param size: bytes of a value if it has only one length, else 0
    :param code_page: of the character types that are not UTF-16
    """

    sql: SqlType
    prefix: Prefix
    size: int = 0
    code_page: str = ""


_FIXED_TOKENS = {fixed: (name, size) for name, (fixed, _, size) in _SIMPLE.items()}
_SIZED_TOKENS = {(variable, size): name for name, (_, variable, size) in _SIMPLE.items()}
_VARIABLE_TOKENS = {variable for _, variable, _ in _SIMPLE.values()}
_TEMPORAL_TOKENS = {token: name for name, token in _TEMPORAL.items()}
_CHARACTER_TOKENS = {token: (name, unit) for name, (token, unit) in _CHARACTER.items()}
_BINARY_TOKENS = {token: name for name, token in _BINARY.items()}
_OLD_LARGE_TOKENS = {token: name for name, (token, _) in _OLD_LARGE.items()}
_REFUSED = {0x62: "sql_variant", 0xF0: "CLR", 0xF3: "table-valued", 0xF4: "json", 0xF5: "vector"}


def read_type_info(reader: Reader) -> ParameterType:
    """Read the TYPE_INFO of a parameter.

    :raises SqlError: for a type that the sandbox does not have
    """
    token = reader.u8()
    if token in _FIXED_TOKENS:
        name, size = _FIXED_TOKENS[token]
        return ParameterType(SqlType(name), Prefix.NONE, size)
    if token in _VARIABLE_TOKENS:
        size = reader.u8()
        if (token, size) not in _SIZED_TOKENS:
            raise _unknown(token)
        return ParameterType(SqlType(_SIZED_TOKENS[token, size]), Prefix.BYTE, size)
    if token in (0x6A, 0x6C):
        reader.u8()
        precision, scale = reader.u8(), reader.u8()
        if not (1 <= precision <= 38 and scale <= precision):
            raise _unknown(token)
        return ParameterType(SqlType("decimal", precision=precision, scale=scale), Prefix.BYTE)
    if token == 0x28:
        return ParameterType(SqlType("date"), Prefix.BYTE, 3)
    if token in _TEMPORAL_TOKENS:
        scale = reader.u8()
        if scale > 7:
            raise _unknown(token)
        name = _TEMPORAL_TOKENS[token]
        return ParameterType(SqlType(name, scale=scale), Prefix.BYTE, _temporal_size(name, scale))
    if token == 0x24:
        reader.u8()
        return ParameterType(SqlType("uniqueidentifier"), Prefix.BYTE, 16)
    if token in _CHARACTER_TOKENS:
        name, unit = _CHARACTER_TOKENS[token]
        size, code_page = reader.u16(), _code_page(reader.bytes(5))
        return _sized(name, size, unit, code_page)
    if token in _BINARY_TOKENS:
        return _sized(_BINARY_TOKENS[token], reader.u16(), 1, "")
    if token in _OLD_LARGE_TOKENS:
        name = _OLD_LARGE_TOKENS[token]
        reader.u32()
        code_page = "" if name == "image" else _code_page(reader.bytes(5))
        return ParameterType(SqlType(name), Prefix.TEXT_POINTER, code_page=code_page)
    if token == 0xF1:
        if reader.u8():
            raise SqlError(50000, "The sandbox does not support xml parameters with a schema collection.")
        return ParameterType(SqlType("xml"), Prefix.PLP)
    raise _unknown(token)


def _sized(name: str, size: int, unit: int, code_page: str) -> ParameterType:
    if size == 0xFFFF:
        return ParameterType(SqlType(name, MAX), Prefix.PLP, code_page=code_page)
    return ParameterType(SqlType(name, size // unit), Prefix.USHORT, code_page=code_page)


def _code_page(collation: bytes) -> str:
    flags = int.from_bytes(collation[:4], "little")
    if flags & _UTF8_FLAG:
        return "utf-8"
    # A collation of zeros is what some clients send before they know the server's.
    if flags & 0xFFFFF in (0, 0x409):
        return "cp1252"
    raise SqlError(50000, f"The sandbox does not support parameters of the collation 0x{collation.hex()}.")


def _unknown(token: int) -> SqlError:
    kind = _REFUSED.get(token, "this")
    return SqlError(50000, f"The sandbox does not support parameters of {kind} type (0x{token:02X}).")
