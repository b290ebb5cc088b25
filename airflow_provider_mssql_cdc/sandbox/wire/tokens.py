"""The tokens of a server's reply, but for rows."""

from __future__ import annotations

import enum
import struct
from collections.abc import Sequence

from airflow_provider_mssql_cdc.sandbox.protocol import Column, Message
from airflow_provider_mssql_cdc.sandbox.wire.typeinfo import COLLATION, Prefix, wire_type

FEATURE_EXT_ACK_NONE = b"\xae\xff"
"""No feature of LOGIN7 is taken up: most would change the layout of later tokens."""

_MAX_MESSAGE_UNITS = 8000
_INFO_SEVERITY = 10


class Done(enum.IntEnum):
    """Which of the three DONE tokens."""

    BATCH = 0xFD
    PROCEDURE = 0xFE
    IN_PROCEDURE = 0xFF


class DoneStatus(enum.IntFlag):
    """Status bits of the DONE tokens."""

    FINAL = 0x00
    MORE = 0x01
    ERROR = 0x02
    IN_TRANSACTION = 0x04
    COUNT = 0x10
    ATTENTION = 0x20


class EnvChange(enum.IntEnum):
    """Kinds of ENVCHANGE."""

    DATABASE = 1
    LANGUAGE = 2
    PACKET_SIZE = 4
    COLLATION = 7
    BEGIN = 8
    COMMIT = 9
    ROLLBACK = 10
    RESET = 18


COMMANDS = {
    "SELECT": 0xC1, "SELECT INTO": 0xC2, "INSERT": 0xC3, "DELETE": 0xC4, "UPDATE": 0xC5, "BULK INSERT": 0xF0,
    "MERGE": 0x117,
}  # fmt: skip
"""Statement codes in DONE: mssql-jdbc takes a row count for an update count by these alone."""


def b_varchar(text: str) -> bytes:
    """A text with its length in one byte; cut to 255 code units, which no name of SQL Server reaches."""
    data = text.encode("utf-16-le", "surrogatepass")[:510]
    return bytes([len(data) // 2]) + data


def us_varchar(text: str) -> bytes:
    """A text with its length in two bytes, cut to what fits into a message token."""
    data = text.encode("utf-16-le", "surrogatepass")[: 2 * _MAX_MESSAGE_UNITS]
    return struct.pack("<H", len(data) // 2) + data


def done(kind: Done, status: DoneStatus, command: str = "", rows: int = 0) -> bytes:
    """The end of a statement, a procedure or a batch."""
    return struct.pack("<BHHQ", kind, status, COMMANDS.get(command, 0), rows)


def message(item: Message, server_name: str) -> bytes:
    """ERROR, or INFO up to severity 10, which the server sends as 0 (docs: Database Engine error severities)."""
    token = 0xAA if item.severity > _INFO_SEVERITY else 0xAB
    severity = 0 if item.severity == _INFO_SEVERITY else item.severity
    body = (
        struct.pack("<iBB", item.number, item.state, severity)
        + us_varchar(item.text)
        + b_varchar(server_name)
        + b_varchar(item.procedure)
        + struct.pack("<I", max(item.line, 0))
    )
    return struct.pack("<BH", token, len(body)) + body


def env_change_text(kind: EnvChange, new: str, old: str) -> bytes:
    """ENVCHANGE of a named setting."""
    return _env_change(kind, b_varchar(new) + b_varchar(old))


def env_change_bytes(kind: EnvChange, new: bytes, old: bytes = b"") -> bytes:
    """ENVCHANGE of a binary value: a collation, a transaction descriptor; both empty for a reset."""
    return _env_change(kind, bytes([len(new)]) + new + bytes([len(old)]) + old)


def _env_change(kind: EnvChange, values: bytes) -> bytes:
    return struct.pack("<BHB", 0xE3, 1 + len(values), kind) + values


def login_ack(tds_version: int, server_version: tuple[int, int, int]) -> bytes:
    """LOGINACK; the interface is 1, Transact-SQL."""
    major, minor, build = server_version
    body = (
        struct.pack(">BI", 1, tds_version)
        + b_varchar("Microsoft SQL Server")
        + struct.pack(">BBH", major, minor, build)
    )
    return struct.pack("<BH", 0xAD, len(body)) + body


def login_environment(database: str, language: str, packet_size: int, default_packet_size: int) -> bytes:
    """The settings told at login, but for LOGINACK and the messages."""
    return (
        env_change_text(EnvChange.DATABASE, database, "master")
        + env_change_bytes(EnvChange.COLLATION, COLLATION)
        + env_change_text(EnvChange.LANGUAGE, language, "")
        + env_change_text(EnvChange.PACKET_SIZE, str(packet_size), str(default_packet_size))
    )


def return_status(value: int) -> bytes:
    """What a procedure returned."""
    return struct.pack("<Bi", 0x79, value)


def column_metadata(columns: Sequence[Column]) -> bytes:
    """COLMETADATA of a result set."""
    parts = [struct.pack("<BH", 0x81, len(columns))]
    for column in columns:
        wire = wire_type(column.type, nullable=column.nullable)
        # FreeTDS leaves computed columns out of a bulk copy by this
        flags = 0x0020 if column.computed else 0x0008
        flags |= (0x0001 if column.nullable else 0) | (0x0010 if column.identity else 0)
        parts.append(struct.pack("<IH", wire.user_type, flags) + wire.info)
        if wire.prefix is Prefix.TEXT_POINTER:
            # The old large types name their table: one part, here without a name.
            parts.append(b"\x01" + us_varchar(""))
        parts.append(b_varchar(column.name))
    return b"".join(parts)


def return_value(name: str, ordinal: int, user_type: int, info: bytes, value: bytes) -> bytes:
    """RETURNVALUE of an OUTPUT parameter; ``value`` as in a row."""
    head = struct.pack("<BH", 0xAC, ordinal) + b_varchar(name)
    return head + struct.pack("<BIH", 1, user_type, 0x0001) + info + value
