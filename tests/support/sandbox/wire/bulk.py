"""Bulk loads by hand, from the layouts of MS-TDS 2.2.6.1, 2.2.7.4 and 2.2.7.20."""

from __future__ import annotations

from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType
from tests.support.sandbox.wire.layout import COLLATION
from tests.support.sandbox.wire.rawclient import RawClient

TYPE_BULK = 7
DONE = b"\xfd" + bytes(12)
NULLS = {"text": "00", "ntext": "00", "image": "00", "xml": "ff" * 8}

INT, INTN = bytes.fromhex("38"), bytes.fromhex("26 04")
VARCHAR_10 = bytes.fromhex(f"a7 0a00 {COLLATION}")
NVARCHAR_20 = bytes.fromhex(f"e7 2800 {COLLATION}")
NVARCHAR_MAX = bytes.fromhex(f"e7 ffff {COLLATION}")


def column(name: str, info: bytes, *, nullable: bool, table: str | None = None) -> bytes:
    """A column of COLMETADATA.

    :param table: of the old large types
    """
    of_table = b"" if table is None else len(table).to_bytes(2, "little") + table.encode("utf-16-le")
    flags = 0x09 if nullable else 0x08
    return bytes(4) + bytes([flags, 0]) + info + of_table + bytes([len(name)]) + name.encode("utf-16-le")


def message(columns: list[bytes], *rows: bytes) -> bytes:
    """A bulk load; each row is the bytes of its values."""
    head = b"\x81" + len(columns).to_bytes(2, "little") + b"".join(columns)
    return head + b"".join(b"\xd1" + row for row in rows) + DONE


def number(value: int) -> bytes:
    """An int that cannot be NULL."""
    return value.to_bytes(4, "little", signed=True)


def maybe(value: int | None) -> bytes:
    """An int that can be NULL."""
    return b"\0" if value is None else b"\x04" + number(value)


def short(value: str | None) -> bytes:
    """A value of varchar(n)."""
    return b"\xff\xff" if value is None else len(value).to_bytes(2, "little") + value.encode("cp1252")


def wide(value: str | None) -> bytes:
    """A value of nvarchar(n)."""
    data = "" if value is None else value
    return b"\xff\xff" if value is None else (2 * len(data)).to_bytes(2, "little") + data.encode("utf-16-le")


def null(kind: SqlType) -> bytes:
    """NULL in a row."""
    if kind.name in NULLS:
        return bytes.fromhex(NULLS[kind.name])
    if kind.length == MAX:
        return b"\xff" * 8
    return b"\xff\xff" if "char" in kind.name or "binary" in kind.name or kind.name == "sysname" else b"\0"


def logged_in(server: Sandbox) -> RawClient:
    """A raw connection to a sandbox."""
    client = RawClient(server.port, server.host)
    client.login(user=server.user, password=server.password, database=server.database or "")
    return client
