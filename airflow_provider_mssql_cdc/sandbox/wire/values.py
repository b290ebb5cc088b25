"""Arrow columns to the bytes of TDS values: a matrix for fixed widths, offsets and bytes for the others."""

from __future__ import annotations

import decimal
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mssql_cdc.sandbox.types import TICKS_PER_SECOND, SqlType
from airflow_provider_mssql_cdc.sandbox.wire.text import Bytes, Offsets, binary_parts, encode_cp1252, encode_utf16
from airflow_provider_mssql_cdc.sandbox.wire.typeinfo import decimal_size, named_in, time_size

_TICKS_PER_DAY = 86400 * TICKS_PER_SECOND
_TICKS_PER_MINUTE = 60 * TICKS_PER_SECOND
_DAYS_TO_1970 = 719162
_DAYS_1900_TO_1970 = 25567
_US_PER_DAY = 86_400_000_000
_DATETIME_STEPS_PER_DAY = 86400 * 300
_LAST_DAY = 3652058

_CODE_PAGE_TYPES = frozenset(("char", "varchar", "text"))

# The wire order of a GUID's bytes: its first three groups are little-endian.
_GUID_ORDER = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15]
_GUID_DIGITS = [place for place in range(36) if place not in (8, 13, 18, 23)]
_HEX = np.full(256, 0xFF, dtype=np.uint8)
for _digit in range(16):
    for _character in f"{_digit:x}{_digit:X}":
        _HEX[ord(_character)] = _digit

Int64 = npt.NDArray[np.int64]


def without_nulls(array: pa.Array) -> pa.Array:
    """The array with some value in the place of each NULL, since those slots may have bytes of their own."""
    if not array.null_count:
        return array
    kind = array.type
    filler: object = 0
    if pa.types.is_boolean(kind):
        filler = False
    elif pa.types.is_string(kind):
        filler = ""
    elif pa.types.is_binary(kind):
        filler = b""
    elif pa.types.is_decimal(kind):
        filler = decimal.Decimal(0)
    return pc.fill_null(array, pa.scalar(filler, type=kind))


def variable_values(sql: SqlType, array: pa.Array) -> tuple[Offsets, Bytes]:
    """Offsets and bytes of a column of a character or binary type.

    :param array: without NULLs
    """
    if not pa.types.is_string(array.type):
        return binary_parts(array)
    if sql.name not in _CODE_PAGE_TYPES:
        return encode_utf16(array)
    return binary_parts(array) if named_in(sql).utf8 else encode_cp1252(array)


def fixed_values(sql: SqlType, array: pa.Array) -> Bytes:
    """One row of bytes per value, without prefix, of a column of any other type.

    :param array: with or without NULLs; the bytes of a NULL have no meaning
    :raises ValueError: if a value is outside the type's range or finer than its scale
    """
    if sql.name == "datetimeoffset":
        return _datetimeoffset(sql, array)
    if sql.name == "uniqueidentifier":
        return _uniqueidentifier(array)
    return _ENCODERS[sql.name](sql, without_nulls(array))


def _numbers(array: pa.Array, dtype: str) -> npt.NDArray[np.generic]:
    buffer = array.buffers()[1]
    if buffer is None:
        return np.empty(0, dtype=dtype)
    return np.frombuffer(buffer, dtype=dtype)[array.offset : array.offset + len(array)]


def _int64(array: pa.Array) -> Int64:
    return _numbers(array, "<i8").astype(np.int64, copy=False)


def _matrix(values: npt.NDArray[np.generic], size: int | None = None) -> Bytes:
    """Little-endian bytes of each number, the low ``size`` of them."""
    values = np.ascontiguousarray(values)
    width = values.dtype.itemsize
    return values.view(np.uint8).reshape(len(values), width)[:, : size or width]


def _check(holds: npt.NDArray[np.bool_], sql: SqlType) -> None:
    if not holds.all():
        raise ValueError(f"a value does not fit {sql}")


def _plain(sql: SqlType, array: pa.Array) -> Bytes:
    return _matrix(_numbers(array, _PLAIN[sql.name]))


def _bit(sql: SqlType, array: pa.Array) -> Bytes:
    return _matrix(_numbers(array.cast(pa.uint8()), "u1"))


def _decimal_halves(array: pa.Array) -> npt.NDArray[np.uint64]:
    buffer = array.buffers()[1]
    halves = np.frombuffer(buffer, dtype="<u8").reshape(-1, 2)[array.offset : array.offset + len(array)]
    return halves.astype(np.uint64, copy=False)


def _decimal(sql: SqlType, array: pa.Array) -> Bytes:
    """A sign byte (1 for plus) and the magnitude."""
    halves = _decimal_halves(array)
    low, high = halves[:, 0], halves[:, 1]
    negative = (high >> np.uint64(63)).astype(bool)
    magnitude = np.empty((len(array), 2), dtype="<u8")
    magnitude[:, 0] = np.where(negative, ~low + np.uint64(1), low)
    magnitude[:, 1] = np.where(negative, ~high + (low == 0).astype(np.uint64), high)
    size = decimal_size(sql.precision)
    digits = magnitude.view(np.uint8)
    _check(digits[:, size - 1 :] == 0, sql)
    out = np.empty((len(array), size), dtype=np.uint8)
    out[:, 0] = ~negative
    out[:, 1:] = digits[:, : size - 1]
    return out


def _money(sql: SqlType, array: pa.Array) -> Bytes:
    """Ten-thousandths; of the eight bytes the upper four come first."""
    halves = _decimal_halves(array)
    amount = halves[:, 0].view(np.int64)
    _check(halves[:, 1].view(np.int64) == amount >> 63, sql)
    if sql.name == "smallmoney":
        _check(amount == amount.astype(np.int32), sql)
        return _matrix(amount.astype("<i4"))
    return _matrix(amount)[:, [4, 5, 6, 7, 0, 1, 2, 3]]


def _days(days: Int64, sql: SqlType) -> Bytes:
    _check((days >= 0) & (days <= _LAST_DAY), sql)
    return _matrix(days, 3)


def _date(sql: SqlType, array: pa.Array) -> Bytes:
    return _days(_numbers(array, "<i4").astype(np.int64) + _DAYS_TO_1970, sql)


def _time_of_day(ticks: Int64, sql: SqlType) -> Bytes:
    unit = 10 ** (7 - sql.scale)
    steps, rest = np.divmod(ticks, unit) if unit > 1 else (ticks, np.zeros(0, dtype=np.int64))
    _check(rest == 0, sql)
    return _matrix(steps, time_size(sql.scale))


def _time(sql: SqlType, array: pa.Array) -> Bytes:
    ticks = _int64(array)
    _check((ticks >= 0) & (ticks < _TICKS_PER_DAY), sql)
    return _time_of_day(ticks, sql)


def _instant(ticks: Int64, sql: SqlType) -> list[Bytes]:
    days, of_day = np.divmod(ticks, _TICKS_PER_DAY)
    return [_time_of_day(of_day, sql), _days(days, sql)]


def _datetime2(sql: SqlType, array: pa.Array) -> Bytes:
    return np.hstack(_instant(_int64(array), sql))


def _datetimeoffset(sql: SqlType, array: pa.Array) -> Bytes:
    ticks, minutes = array.flatten()
    if ticks.null_count != array.null_count or minutes.null_count != array.null_count:
        raise ValueError("a datetimeoffset value is NULL in one of its two parts")
    utc = _int64(without_nulls(ticks))
    offset = _numbers(without_nulls(minutes), "<i2").astype(np.int64)
    local = utc + offset * _TICKS_PER_MINUTE
    _check((offset >= -840) & (offset <= 840), sql)
    _check((local >= 0) & (local < (_LAST_DAY + 1) * _TICKS_PER_DAY), sql)
    return np.hstack([*_instant(utc, sql), _matrix(offset, 2)])


def _datetime(sql: SqlType, array: pa.Array) -> Bytes:
    """Days since 1900 and 1/300 s since midnight."""
    microseconds = _int64(array) + _DAYS_1900_TO_1970 * _US_PER_DAY
    days, steps = np.divmod((microseconds * 3 + 5000) // 10000, _DATETIME_STEPS_PER_DAY)
    _check((days >= -53690) & (days <= 2958463), sql)
    out = np.empty((len(days), 2), dtype="<i4")
    out[:, 0], out[:, 1] = days, steps
    return out.view(np.uint8)


def _smalldatetime(sql: SqlType, array: pa.Array) -> Bytes:
    """Days since 1900 and minutes since midnight."""
    microseconds = _int64(array) + _DAYS_1900_TO_1970 * _US_PER_DAY
    minutes, rest = np.divmod(microseconds, 60_000_000)
    days, of_day = np.divmod(minutes, 1440)
    _check((rest == 0) & (days >= 0) & (days <= 0xFFFF), sql)
    out = np.empty((len(days), 2), dtype="<u2")
    out[:, 0], out[:, 1] = days, of_day
    return out.view(np.uint8)


def _uniqueidentifier(array: pa.Array) -> Bytes:
    if array.null_count:
        array = pc.fill_null(array, "00000000-0000-0000-0000-000000000000")
    offsets, data = binary_parts(array)
    if (np.diff(offsets) != 36).any():
        raise ValueError("a uniqueidentifier value is not of 36 characters")
    digits = _HEX[data.reshape(-1, 36)[:, _GUID_DIGITS]]
    if (digits == 0xFF).any():
        raise ValueError("a uniqueidentifier value has a character that is no hexadecimal digit")
    packed: Bytes = (digits[:, 0::2] << 4 | digits[:, 1::2]).astype(np.uint8)
    return packed[:, _GUID_ORDER]


_PLAIN = {"tinyint": "u1", "smallint": "<i2", "int": "<i4", "bigint": "<i8", "real": "<f4", "float": "<f8"}
_ENCODERS: dict[str, Callable[[SqlType, pa.Array], Bytes]] = {
    **dict.fromkeys(_PLAIN, _plain),
    "bit": _bit,
    "decimal": _decimal,
    "money": _money,
    "smallmoney": _money,
    "date": _date,
    "time": _time,
    "datetime2": _datetime2,
    "datetime": _datetime,
    "smalldatetime": _smalldatetime,
}
