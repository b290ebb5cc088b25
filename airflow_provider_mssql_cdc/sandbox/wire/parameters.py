"""RPC requests: which procedures are called, and with which parameters."""

from __future__ import annotations

import datetime
import decimal
import enum
import math
import struct
import uuid
from dataclasses import dataclass
from typing import Any

from airflow_provider_mssql_cdc.sandbox.protocol import Parameter, SqlError
from airflow_provider_mssql_cdc.sandbox.types import TICKS_PER_SECOND, SqlType
from airflow_provider_mssql_cdc.sandbox.wire.framing import ProtocolError
from airflow_provider_mssql_cdc.sandbox.wire.reader import Reader
from airflow_provider_mssql_cdc.sandbox.wire.text import decode
from airflow_provider_mssql_cdc.sandbox.wire.typeinfo import ParameterType, Prefix, read_type_info

_SEPARATOR = 0xFF
"""Stands between two calls in the place of a parameter name's length, which is at most 128."""

_PLP_NULL, _PLP_UNKNOWN = 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFE
_NO_INSTANCE = (
    "The incoming tabular data stream (TDS) remote procedure call (RPC) protocol stream is incorrect."
    ' Parameter {} ("{}"): The supplied value is not a valid instance of data type {}.'
    " Check the source data for invalid values."
    " An example of an invalid value is data of numeric type with scale greater than precision."
)
_EPOCH_1900 = datetime.datetime(1900, 1, 1)
_FIRST_DATETIME = datetime.datetime(1753, 1, 1)
_LAST_DAY = datetime.date.max.toordinal() - 1
_LAST_OFFSET = 14 * 60
_TICKS_PER_DAY = 86400 * TICKS_PER_SECOND
_BINARY_TYPES = frozenset(("binary", "varbinary", "image"))
UTF16_TYPES = frozenset(("nchar", "nvarchar", "ntext", "xml"))
_INTEGER_TYPES = frozenset(("tinyint", "smallint", "int", "bigint"))
_UTF16_MARK = b"\xff\xfe"


class _ParameterStatus(enum.IntFlag):
    BY_REFERENCE = 0x01
    DEFAULT = 0x02
    ENCRYPTED = 0x08


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an RPC request: a procedure by name or by the number of a special procedure."""

    procedure: str | int
    parameters: list[Parameter]


def skip_headers(reader: Reader) -> None:
    """Pass over ALL_HEADERS: query notifications, the transaction descriptor and trace activity.

    :raises ProtocolError: if their length is wrong
    """
    total = reader.u32()
    if total < 4:
        raise ProtocolError(f"ALL_HEADERS of {total} bytes")
    reader.bytes(total - 4)


def read_calls(reader: Reader) -> list[Call]:
    """Read the calls of an RPC request, after its headers.

    :raises ProtocolError: if it is not well formed
    :raises SqlError: for a parameter of a type that the sandbox does not have; 8023 for a value that its type has not
    """
    calls = [_read_call(reader)]
    while reader.remaining:
        calls.append(_read_call(reader))
    return calls


def _read_call(reader: Reader) -> Call:
    units = reader.u16()
    procedure: str | int = reader.u16() if units == 0xFFFF else reader.text(units)
    # Of the option flags fNoMetaData is not obeyed: msodbcsql 18 sets it also when it prepares a statement again with
    # parameters of other types, and then cannot do without the new types of the columns.
    reader.u16()
    parameters: list[Parameter] = []
    while reader.remaining:
        name_length = reader.u8()
        if name_length == _SEPARATOR:
            break
        parameters.append(_read_parameter(reader, name_length, len(parameters) + 1))
    return Call(procedure, parameters)


def _read_parameter(reader: Reader, name_length: int, number: int) -> Parameter:
    name = reader.text(name_length)
    status = reader.u8()
    if status & _ParameterStatus.ENCRYPTED:
        raise ProtocolError("an encrypted parameter without Always Encrypted")
    kind = read_type_info(reader)
    data = _read_data(reader, kind)
    try:
        value = None if data is None else python_value(kind, data)
    except (ValueError, OverflowError):
        raise SqlError(8023, _NO_INSTANCE.format(number, name, kind.sql.name)) from None
    return Parameter(
        name=name,
        type=kind.sql,
        value=value,
        output=bool(status & _ParameterStatus.BY_REFERENCE),
        default=bool(status & _ParameterStatus.DEFAULT),
    )


def _read_data(reader: Reader, kind: ParameterType) -> bytes | None:
    if kind.prefix is Prefix.NONE:
        return reader.bytes(kind.size)
    if kind.prefix is Prefix.BYTE:
        length = reader.u8()
        if kind.size and length not in (0, kind.size):
            raise ProtocolError(f"parameter of type {kind.sql.name}: a value of {length} bytes")
        return reader.bytes(length) or None
    if kind.prefix is Prefix.USHORT:
        length = reader.u16()
        return None if length == 0xFFFF else reader.bytes(length)
    if kind.prefix is Prefix.TEXT_POINTER:
        # Parameters of the old large types have no text pointer (docs: MS-TDS 2.2.5.4.2).
        length = reader.u32()
        return None if length == 0xFFFFFFFF else reader.bytes(length)
    return read_plp(reader)


def read_plp(reader: Reader) -> bytes | None:
    """Read a value that comes in chunks; None for NULL.

    :raises ProtocolError: if it is not as long as it says
    """
    total = reader.u64()
    if total == _PLP_NULL:
        return None
    chunks = []
    while length := reader.u32():
        chunks.append(reader.bytes(length))
    data = b"".join(chunks)
    if total not in (_PLP_UNKNOWN, len(data)):
        raise ProtocolError(f"a large value of {len(data)} bytes is announced with {total}")
    return data


def python_value(kind: ParameterType, data: bytes) -> Any:
    """A value's bytes in the form of ``Parameter``.

    :raises ValueError: for a value that the type has not
    :raises OverflowError: the same
    """
    name = kind.sql.name
    if name in UTF16_TYPES:
        if name == "xml":
            data = data.removeprefix(_UTF16_MARK)
        return data.decode("utf-16-le", "surrogatepass")
    if name in _BINARY_TYPES:
        return data
    if kind.code_page:
        return decode(data, kind.code_page)
    if name in _INTEGER_TYPES:
        return int.from_bytes(data, "little", signed=name != "tinyint")
    if name == "bit":
        return data != b"\0"
    if name in ("real", "float"):
        number: float = struct.unpack("<f" if name == "real" else "<d", data)[0]
        if not math.isfinite(number):
            raise ValueError(f"{number} is no {name}")
        return number
    if name == "decimal":
        return _decimal(data, kind.sql)
    if name == "smallmoney":
        return _scaled(int.from_bytes(data, "little", signed=True), 4)
    if name == "money":
        return _scaled(int.from_bytes(data[4:] + data[:4], "little", signed=True), 4)
    if name == "uniqueidentifier":
        return str(uuid.UUID(bytes_le=data)).upper()
    return _moment(kind, data)


def _scaled(value: int, scale: int) -> decimal.Decimal:
    sign = 1 if value < 0 else 0
    # Built from its digits, since arithmetic would round to the 28 digits of the default context.
    return decimal.Decimal((sign, tuple(map(int, str(abs(value)))), -scale))


def _decimal(data: bytes, sql: SqlType) -> decimal.Decimal:
    magnitude = int.from_bytes(data[1:], "little")
    if magnitude >= 10**sql.precision:
        raise ValueError(f"{magnitude} has more than {sql.precision} digits")
    return _scaled(magnitude if data[0] else -magnitude, sql.scale)


def _moment(kind: ParameterType, data: bytes) -> Any:
    name, scale = kind.sql.name, kind.sql.scale
    if name == "smalldatetime":
        days, minutes = struct.unpack("<HH", data)
        return _EPOCH_1900 + datetime.timedelta(days=days, minutes=minutes)
    if name == "datetime":
        days, steps = struct.unpack("<iI", data)
        # Shown to the millisecond, rounded: .000 .003 .007.
        moment = _EPOCH_1900 + datetime.timedelta(days=days, milliseconds=(steps * 10 + 1) // 3)
        if moment < _FIRST_DATETIME:
            raise ValueError(f"{moment} is no datetime")
        return moment
    if name == "date":
        return datetime.date.fromordinal(1 + _days(data))
    if name == "time":
        return _ticks(data, scale)
    if name == "datetime2":
        return _days(data[-3:]) * _TICKS_PER_DAY + _ticks(data[:-3], scale)
    (offset,) = struct.unpack("<h", data[-2:])
    if abs(offset) > _LAST_OFFSET:
        raise ValueError(f"an offset of {offset} minutes")
    return _days(data[-5:-2]) * _TICKS_PER_DAY + _ticks(data[:-5], scale), offset


def _days(data: bytes) -> int:
    days = int.from_bytes(data, "little")
    if days > _LAST_DAY:
        raise ValueError(f"{days} days after 0001-01-01")
    return days


def _ticks(data: bytes, scale: int) -> int:
    unit: int = 10 ** (7 - scale)
    ticks = int.from_bytes(data, "little") * unit
    if ticks >= _TICKS_PER_DAY:
        raise ValueError(f"a time of day of {ticks} ticks")
    return ticks
