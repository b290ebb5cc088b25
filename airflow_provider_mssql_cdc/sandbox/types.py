"""SQL Server's data types, and the one Arrow representation each of them has inside the sandbox."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

MAX = -1
"""The length of varchar(max), nvarchar(max) and varbinary(max)."""

TICKS_PER_SECOND = 10_000_000
"""time, datetime2 and datetimeoffset count 100 ns ticks, so that their seventh digit survives."""

_FIXED = {
    "bit": pa.bool_(),
    "tinyint": pa.uint8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "money": pa.decimal128(19, 4),
    "smallmoney": pa.decimal128(10, 4),
    "real": pa.float32(),
    "float": pa.float64(),
    "date": pa.date32(),
    # 1/300 s steps, held as the millisecond that clients show (.000 .003 .007); minutes for smalldatetime
    "datetime": pa.timestamp("us"),
    "smalldatetime": pa.timestamp("us"),
    "time": pa.int64(),  # ticks since midnight
    "datetime2": pa.int64(),  # ticks since 0001-01-01
    "datetimeoffset": pa.struct([("utc_ticks", pa.int64()), ("offset_minutes", pa.int16())]),
    "uniqueidentifier": pa.string(),  # upper-case text
    "rowversion": pa.binary(),  # 8 bytes, big-endian
    "image": pa.binary(),
    "binary": pa.binary(),
    "varbinary": pa.binary(),
    "char": pa.string(),
    "varchar": pa.string(),
    "nchar": pa.string(),
    "nvarchar": pa.string(),
    "sysname": pa.string(),
    "text": pa.string(),
    "ntext": pa.string(),
    "xml": pa.string(),
}


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type as declared.

    :param name: system type name in lower case (``numeric`` is ``decimal``, ``timestamp`` is ``rowversion``,
        ``sysname`` is ``nvarchar(128)`` but keeps its name)
    :param length: characters of char/varchar, code units of nchar/nvarchar, bytes of binary/varbinary; MAX for (max);
        0 for types without a length
    :param precision: digits of decimal
    :param scale: digits after the point of decimal; fractional second digits of time, datetime2, datetimeoffset
    :param declared: ``numeric`` where a decimal was declared so: the same type, shown by another name
    :param collation: of a text; see ``collations.comparing``
    """

    name: str
    length: int = 0
    precision: int = 0
    scale: int = 0
    declared: str = field(default="", compare=False)
    collation: str = field(default="", compare=False)

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type of a column of this type, everywhere between storage and wire."""
        if self.name == "decimal":
            return pa.decimal128(self.precision, self.scale)
        return _FIXED[self.name]


_MICROSECONDS_TO_1970 = 62_135_596_800_000_000
"""From 0001-01-01, where ticks begin."""


def in_ticks(type_: SqlType, values: Any) -> Any:
    """Arrow timestamps and times as the ticks that types of date and time are held in; other values as they are.

    A timestamp with a zone is its instant with offset 0 as ``datetimeoffset``.

    :raises pyarrow.ArrowInvalid: for values finer than a microsecond
    """
    if type_.name == "datetime2" and pa.types.is_timestamp(values.type):
        microseconds = values.cast(pa.timestamp("us")).cast(pa.int64())
        return pc.multiply(pc.add(microseconds, _MICROSECONDS_TO_1970), 10)
    if type_.name == "datetimeoffset" and pa.types.is_timestamp(values.type):
        ticks = in_ticks(SqlType("datetime2"), values.cast(pa.timestamp("us")))
        moments = pc.make_struct(ticks, pa.scalar(0, pa.int16()), field_names=["utc_ticks", "offset_minutes"])
        return pc.if_else(pc.is_valid(values), moments, pa.scalar(None, moments.type))
    if type_.name == "time" and pa.types.is_time(values.type):
        return pc.multiply(values.cast(pa.time64("us")).cast(pa.int64()), 10)
    return values
