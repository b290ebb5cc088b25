"""Values of every type with their bytes on the wire, worked out by hand from the layouts of MS-TDS 2.2.5."""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType

NINES = Decimal("9" * 38)


def ticks(day: int, hours: int = 0, minutes: int = 0, seconds: int = 0, hundred_ns: int = 0) -> int:
    return ((day * 24 + hours) * 60 + minutes) * 600_000_000 + seconds * 10_000_000 + hundred_ns


LAST_TICK = ticks(3652058, 23, 59, 59, 9_999_999)
ZONE_14 = dt.timezone(dt.timedelta(hours=14))


@dataclass(frozen=True)
class Sample:
    """One value.

    :param arrow: as it stands in the sandbox's Arrow array
    :param wire: hexadecimal, with the length prefix of a nullable column, without text pointers and PLP chunks
    :param python: what pymssql makes of it
    """

    type: SqlType
    arrow: Any
    wire: str
    python: Any

    def __str__(self) -> str:
        return f"{self.type.name}-{self.type.length}-{self.type.scale}-{self.wire[:12]}"


def offset(utc: int, minutes: int) -> dict[str, int]:
    return {"utc_ticks": utc, "offset_minutes": minutes}


def text(name: str, length: int, value: str, wire: str) -> Sample:
    return Sample(SqlType(name, length), value, wire, value)


def binary(name: str, length: int, value: bytes, wire: str) -> Sample:
    return Sample(SqlType(name, length), value, wire, value)


def number(name: str, value: Any, wire: str) -> Sample:
    return Sample(SqlType(name), value, wire, value)


def decimal(precision: int, scale: int, value: str, wire: str) -> Sample:
    return Sample(SqlType("decimal", precision=precision, scale=scale), Decimal(value), wire, Decimal(value))


def moment(name: str, scale: int, arrow: Any, wire: str, python: Any) -> Sample:
    return Sample(SqlType(name, scale=scale), arrow, wire, python)


SAMPLES = [
    number("bit", True, "01 01"),
    number("bit", False, "01 00"),
    number("tinyint", 255, "01 ff"),
    number("tinyint", 0, "01 00"),
    number("smallint", -32768, "02 0080"),
    number("int", -2147483648, "04 00000080"),
    number("int", 2147483647, "04 ffffff7f"),
    number("bigint", 9223372036854775807, "08 ffffffffffffff7f"),
    number("bigint", -2, "08 feffffffffffffff"),
    decimal(5, 2, "-1.23", "05 00 7b000000"),
    decimal(9, 0, "999999999", "05 01 ffc99a3b"),
    decimal(10, 0, "-4294967296", "09 00 0000000001000000"),
    decimal(28, 10, "1.5000000000", "0d 01 00d6117e03000000 00000000"),
    decimal(38, 0, str(NINES), "11 01 ffffffff3f228a097ac4865aa84c3b4b"),
    decimal(38, 38, "-0." + "9" * 38, "11 00 ffffffff3f228a097ac4865aa84c3b4b"),
    decimal(38, 4, "0.0000", "11 01 00000000000000000000000000000000"),
    number("money", Decimal("922337203685477.5807"), "08 ffffff7f ffffffff"),
    number("money", Decimal("-922337203685477.5808"), "08 00000080 00000000"),
    number("money", Decimal("-0.0001"), "08 ffffffff ffffffff"),
    number("money", Decimal("1.0000"), "08 00000000 10270000"),
    number("smallmoney", Decimal("-214748.3648"), "04 00000080"),
    number("smallmoney", Decimal("214748.3647"), "04 ffffff7f"),
    number("real", 1.5, "04 0000c03f"),
    number("float", -2.5, "08 00000000000004c0"),
    number("float", 1.7976931348623157e308, "08 ffffffffffffef7f"),
    number("date", dt.date(1, 1, 1), "03 000000"),
    number("date", dt.date(9999, 12, 31), "03 dab937"),
    moment("time", 7, ticks(0, 23, 59, 59, 9_999_999), "05 ffbf692ac9", dt.time(23, 59, 59, 999_999)),
    moment("time", 4, ticks(0, 0, 0, 1, 1_000), "04 11270000", dt.time(0, 0, 1, 100)),
    moment("time", 0, ticks(0, 23, 59, 59), "03 7f5101", dt.time(23, 59, 59)),
    moment("datetime2", 7, LAST_TICK, "08 ffbf692ac9 dab937", dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)),
    moment("datetime2", 7, 0, "08 0000000000 000000", dt.datetime(1, 1, 1)),
    moment("datetime2", 3, ticks(1, 0, 0, 0, 10_000), "07 01000000 010000", dt.datetime(1, 1, 2, 0, 0, 0, 1_000)),
    moment(
        "datetimeoffset",
        7,
        offset(0, 840),
        "0a 0000000000 000000 4803",
        dt.datetime(1, 1, 1, 14, tzinfo=ZONE_14),
    ),
    moment(
        "datetimeoffset",
        0,
        offset(ticks(3652058, 23, 59, 59), -840),
        "08 7f5101 dab937 b8fc",
        dt.datetime(9999, 12, 31, 9, 59, 59, tzinfo=dt.timezone(dt.timedelta(hours=-14))),
    ),
    number("datetime", dt.datetime(1753, 1, 1), "08 462effff 00000000"),
    number("datetime", dt.datetime(9999, 12, 31, 23, 59, 59, 997_000), "08 7f242d00 ff818b01"),
    number("datetime", dt.datetime(1900, 1, 1, 0, 0, 0, 3_000), "08 00000000 01000000"),
    number("datetime", dt.datetime(1900, 1, 1, 0, 0, 0, 7_000), "08 00000000 02000000"),
    number("smalldatetime", dt.datetime(2079, 6, 6, 23, 59), "04 ffff 9f05"),
    number("smalldatetime", dt.datetime(1900, 1, 1), "04 0000 0000"),
    Sample(
        SqlType("uniqueidentifier"),
        "6F9619FF-8B86-D011-B42D-00C04FC964FF",
        "10 ff19966f 868b 11d0 b42d00c04fc964ff",
        uuid.UUID("6F9619FF-8B86-D011-B42D-00C04FC964FF"),
    ),
    binary("rowversion", 0, bytes(range(1, 9)), "0800 0102030405060708"),
    binary("binary", 10, bytes(9) + b"\x0a", "0a00 0000000000000000000a"),
    binary("varbinary", 20, b"\x00\xff", "0200 00ff"),
    binary("varbinary", 20, b"", "0000"),
    binary("varbinary", MAX, b"\x01\x02", "0102"),
    binary("varbinary", MAX, b"", ""),
    binary("image", 0, b"\xff\x00", "ff00"),
    text("char", 4, "a€  ", "0400 61802020"),
    # 0x81 and 0x9D are holes of code page 1252 that Windows fills; FreeTDS does not know them.
    Sample(SqlType("varchar", 20), "é\x81\x9dÿ", "0400 e9819dff", "é??ÿ"),
    text("varchar", 20, "", "0000"),
    text("varchar", MAX, "ß", "df"),
    text("nchar", 2, "ж ", "0400 3604 2000"),
    text("nvarchar", 20, "a😀", "0600 6100 3dd8 00de"),
    text("nvarchar", MAX, "😀é", "3dd8 00de e900"),
    text("nvarchar", MAX, "", ""),
    text("sysname", 0, "dbo", "0600 6400 6200 6f00"),
    text("text", 0, "tè", "74e8"),
    text("ntext", 0, "n中", "6e00 2d4e"),
    text("xml", 0, "<a>é</a>", "3c00 6100 3e00 e900 3c00 2f00 6100 3e00"),
]
