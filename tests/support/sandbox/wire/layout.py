"""TYPE_INFO and value layouts by hand (MS-TDS 2.2.5.4 to 2.2.5.5), for types whose samples give the value alone."""

from __future__ import annotations

from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType

COLLATION = "0904d00034"
# What stands before the value in a row, and after it, where that is not the plain length of the sample.
TEXT_POINTER = 1 + 16 + 8

TYPE_INFOS = {
    "bit": ("68 01", "32"),
    "tinyint": ("26 01", "30"),
    "smallint": ("26 02", "34"),
    "int": ("26 04", "38"),
    "bigint": ("26 08", "7f"),
    "money": ("6e 08", "3c"),
    "smallmoney": ("6e 04", "7a"),
    "real": ("6d 04", "3b"),
    "float": ("6d 08", "3e"),
    "datetime": ("6f 08", "3d"),
    "smalldatetime": ("6f 04", "3a"),
    "date": ("28", "28"),
    "uniqueidentifier": ("24 10", "24 10"),
    "rowversion": ("ad 0800", "ad 0800"),
    "xml": ("f1 00", "f1 00"),
    "sysname": (f"e7 0001 {COLLATION}",) * 2,
    "text": (f"23 ffffff7f {COLLATION} 01 0000",) * 2,
    "ntext": (f"63 feffff7f {COLLATION} 01 0000",) * 2,
    "image": ("22 ffffff7f 01 0000",) * 2,
}
TOKENS = {
    "binary": "ad",
    "varbinary": "a5",
    "char": "af",
    "varchar": "a7",
    "nchar": "ef",
    "nvarchar": "e7",
    "time": "29",
    "datetime2": "2a",
    "datetimeoffset": "2b",
}


def declared(kind: SqlType, *, nullable: bool) -> bytes:
    if kind.name in TYPE_INFOS:
        return bytes.fromhex(TYPE_INFOS[kind.name][0 if nullable else 1])
    if kind.name == "decimal":
        size = next(size for digits, size in ((9, 5), (19, 9), (28, 13), (38, 17)) if kind.precision <= digits)
        return bytes([0x6A, size, kind.precision, kind.scale])
    head = bytes.fromhex(TOKENS[kind.name])
    if kind.name in ("time", "datetime2", "datetimeoffset"):
        return head + bytes([kind.scale])
    size = kind.length * (2 if kind.name.startswith("n") else 1)
    size_bytes = b"\xff\xff" if kind.length == MAX else size.to_bytes(2, "little")
    return head + size_bytes + (b"" if "binary" in kind.name else bytes.fromhex(COLLATION))


def in_row(kind: SqlType, wire: str, *, nullable: bool) -> bytes:
    data = bytes.fromhex(wire)
    if kind.name in ("text", "ntext", "image"):
        pointer = b"\x10" + b"sandbox text ptr" + b"timestmp"
        assert len(pointer) == TEXT_POINTER
        return pointer + len(data).to_bytes(4, "little") + data
    if kind.length == MAX or kind.name == "xml":
        chunk = len(data).to_bytes(4, "little") + data if data else b""
        return len(data).to_bytes(8, "little") + chunk + bytes(4)
    fixed_when_not_null = kind.name in TYPE_INFOS and len(TYPE_INFOS[kind.name][1]) == 2 and kind.name != "date"
    return data[1:] if fixed_when_not_null and not nullable else data
