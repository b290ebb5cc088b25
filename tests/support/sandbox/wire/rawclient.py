"""A TDS client and decoder written from the token layouts, sharing nothing with the server's encoder."""

from __future__ import annotations

import socket
import ssl
import struct
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tests.support.sandbox.wire.toy import PASSWORD

EMPTY_HEADERS = struct.pack("<IIHQI", 22, 18, 2, 0, 1)
TYPE_BATCH, TYPE_RPC, TYPE_ATTENTION, TYPE_TM, TYPE_LOGIN, TYPE_PRELOGIN = 1, 3, 6, 14, 16, 18

FIXED = {0x30: 1, 0x32: 1, 0x34: 2, 0x38: 4, 0x7F: 8, 0x3B: 4, 0x3E: 8, 0x3C: 8, 0x7A: 4, 0x3D: 8, 0x3A: 4}
BYTE_LENGTH = {0x26, 0x68, 0x6D, 0x6E, 0x6F, 0x24, 0x6A, 0x6C, 0x28, 0x29, 0x2A, 0x2B}
USHORT_LENGTH = {0xA7, 0xAF, 0xE7, 0xEF, 0xA5, 0xAD}
OLD_LARGE = {0x22, 0x23, 0x63}


@dataclass
class ColumnInfo:
    """A column of COLMETADATA, or the type of a RETURNVALUE."""

    token: int
    size: int = 0
    precision: int = 0
    scale: int = 0
    collation: bytes = b""
    flags: int = 0
    user_type: int = 0
    name: str = ""


@dataclass
class Answer:
    """One reply message: its tokens in order, as (name, ...) tuples."""

    tokens: list[tuple[Any, ...]] = field(default_factory=list)

    def of(self, name: str) -> list[tuple[Any, ...]]:
        return [token[1:] for token in self.tokens if token[0] == name]

    @property
    def rows(self) -> list[tuple[bytes | None, ...]]:
        return [token[1] for token in self.tokens if token[0] in ("row", "nbcrow")]


class Cursor:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        assert self.at + size <= len(self.data), "the reply ends inside a token"
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int, *, signed: bool = False) -> int:
        return int.from_bytes(self.take(size), "little", signed=signed)

    def b_text(self) -> str:
        return self.take(2 * self.number(1)).decode("utf-16-le")

    def us_text(self) -> str:
        return self.take(2 * self.number(2)).decode("utf-16-le")


def type_info(cursor: Cursor) -> ColumnInfo:
    info = ColumnInfo(cursor.number(1))
    token = info.token
    if token in FIXED:
        info.size = FIXED[token]
    elif token in (0x6A, 0x6C):
        info.size, info.precision, info.scale = cursor.take(3)
    elif token in (0x29, 0x2A, 0x2B):
        info.scale = cursor.number(1)
    elif token in (0x26, 0x68, 0x6D, 0x6E, 0x6F, 0x24):
        info.size = cursor.number(1)
    elif token in USHORT_LENGTH:
        info.size = cursor.number(2)
        if token not in (0xA5, 0xAD):
            info.collation = cursor.take(5)
    elif token in OLD_LARGE:
        info.size = cursor.number(4)
        if token != 0x22:
            info.collation = cursor.take(5)
    elif token == 0xF1:
        assert cursor.number(1) == 0
    else:
        assert token == 0x28, f"unknown type 0x{token:02X}"
    return info


def value(cursor: Cursor, info: ColumnInfo) -> bytes | None:
    """The bytes of one value without prefix and chunks."""
    if info.token in FIXED:
        return cursor.take(info.size)
    if info.token in BYTE_LENGTH:
        return cursor.take(cursor.number(1)) or None
    if info.token in USHORT_LENGTH and info.size != 0xFFFF:
        length = cursor.number(2)
        return None if length == 0xFFFF else cursor.take(length)
    if info.token in OLD_LARGE:
        pointer = cursor.number(1)
        if not pointer:
            return None
        cursor.take(pointer + 8)
        return cursor.take(cursor.number(4))
    total = cursor.number(8)
    if total == 0xFFFFFFFFFFFFFFFF:
        return None
    data = b""
    while length := cursor.number(4):
        data += cursor.take(length)
    assert total == len(data)
    return data


def parse(data: bytes) -> Answer:
    """All tokens of a reply."""
    cursor, answer, columns = Cursor(data), Answer(), []
    while cursor.at < len(data):
        token = cursor.number(1)
        if token == 0x81:
            count = cursor.number(2)
            if count != 0xFFFF:
                columns = [column(cursor) for _ in range(count)]
            answer.tokens.append(("columns", columns if count != 0xFFFF else None))
        elif token == 0xD1:
            answer.tokens.append(("row", tuple(value(cursor, info) for info in columns)))
        elif token == 0xD2:
            bits = cursor.take((len(columns) + 7) // 8)
            row = tuple(
                None if bits[place // 8] >> place % 8 & 1 else value(cursor, info) for place, info in enumerate(columns)
            )
            answer.tokens.append(("nbcrow", row))
        elif token in (0xFD, 0xFE, 0xFF):
            name = {0xFD: "done", 0xFE: "doneproc", 0xFF: "doneinproc"}[token]
            answer.tokens.append((name, cursor.number(2), cursor.number(2), cursor.number(8)))
        elif token == 0x79:
            answer.tokens.append(("status", cursor.number(4, signed=True)))
        else:
            answer.tokens.append(sized_token(token, cursor))
    return answer


def column(cursor: Cursor) -> ColumnInfo:
    user_type, flags = cursor.number(4), cursor.number(2)
    info = type_info(cursor)
    if info.token in OLD_LARGE:
        for _ in range(cursor.number(1)):
            cursor.us_text()
    info.user_type, info.flags, info.name = user_type, flags, cursor.b_text()
    return info


def sized_token(token: int, cursor: Cursor) -> tuple[Any, ...]:
    if token == 0xAC:
        ordinal, name, status = cursor.number(2), cursor.b_text(), cursor.number(1)
        user_type, flags = cursor.number(4), cursor.number(2)
        info = type_info(cursor)
        info.user_type, info.flags = user_type, flags
        return ("returnvalue", ordinal, name, status, info, value(cursor, info))
    if token == 0xAE:
        assert cursor.number(1) == 0xFF
        return ("featureextack",)
    body = Cursor(cursor.take(cursor.number(2)))
    if token in (0xAA, 0xAB):
        number, state, severity = body.number(4, signed=True), body.number(1), body.number(1)
        parts = (number, state, severity, body.us_text(), body.b_text(), body.b_text(), body.number(4))
        return ("error" if token == 0xAA else "info", *parts)
    if token == 0xAD:
        interface, version = body.number(1), body.take(4)
        return ("loginack", interface, version.hex(), body.b_text(), body.take(4).hex())
    assert token == 0xE3, f"unknown token 0x{token:02X}"
    kind = body.number(1)
    if kind in (1, 2, 4):
        return ("envchange", kind, body.b_text(), body.b_text())
    return ("envchange", kind, body.take(body.number(1)), body.take(body.number(1)))


def python_value(info: ColumnInfo, data: bytes | None) -> Any:
    """The value in the form that the sandbox's Arrow types give; datetime and smalldatetime as their two numbers."""
    if data is None:
        return None
    token = info.token
    if token in (0x32, 0x68):
        return data == b"\1"
    if token in (0x30, 0x34, 0x38, 0x7F, 0x26):
        return int.from_bytes(data, "little", signed=len(data) > 1)
    if token in (0x3B, 0x3E, 0x6D):
        return struct.unpack("<f" if len(data) == 4 else "<d", data)[0]
    if token in (0x3C, 0x7A, 0x6E):
        amount = int.from_bytes(data[4:] + data[:4] if len(data) == 8 else data, "little", signed=True)
        return Decimal(amount).scaleb(-4)
    if token in (0x6A, 0x6C):
        digits = str(int.from_bytes(data[1:], "little"))
        return Decimal(("" if data[0] else "-") + digits + f"e-{info.scale}")
    if token in (0x3D, 0x3A, 0x6F):
        return struct.unpack("<ii" if len(data) == 8 else "<HH", data)
    if token == 0x24:
        first, second, third = struct.unpack("<IHH", data[:8])
        return f"{first:08X}-{second:04X}-{third:04X}-{data[8:10].hex()}-{data[10:].hex()}".upper()
    if token in (0x28, 0x29, 0x2A, 0x2B):
        return moment(info, data)
    if token in (0xE7, 0xEF, 0x63, 0xF1):
        return data.decode("utf-16-le")
    return data.decode("cp1252") if token in (0xA7, 0xAF, 0x23) else data


def moment(info: ColumnInfo, data: bytes) -> Any:
    if info.token == 0x28:
        return int.from_bytes(data, "little")
    offset = None
    if info.token == 0x2B:
        data, offset = data[:-2], int.from_bytes(data[-2:], "little", signed=True)
    days = 0
    if info.token != 0x29:
        data, days = data[:-3], int.from_bytes(data[-3:], "little")
    ticks = int.from_bytes(data, "little") * 10 ** (7 - info.scale) + days * 864_000_000_000
    return ticks if offset is None else (ticks, offset)


def prelogin(encryption: int) -> bytes:
    options = [(0, bytes(6)), (1, bytes([encryption])), (4, b"\0")]
    head, body = b"", b""
    for token, data in options:
        head += struct.pack(">BHH", token, 5 * len(options) + 1 + len(body), len(data))
        body += data
    return head + b"\xff" + body


def login7(
    *,
    user: str = "sa",
    password: str = PASSWORD,
    database: str = "",
    version: int = 0x74000004,
    packet_size: int = 4096,
    flags2: int = 0,
    type_flags: int = 0,
    flags3: int = 0,
    features: bytes = b"",
) -> bytes:
    hidden = bytes(((byte << 4 & 0xF0) | byte >> 4) ^ 0xA5 for byte in password.encode("utf-16-le"))
    texts = ["raw host", user, None, "raw app", "server", None, "raw", "", database]
    table, data, start = b"", b"", 94
    for text in texts:
        if text is None and len(table) == 8:
            item, units = hidden, len(hidden) // 2
        elif text is None:
            item, units = struct.pack("<I", 0), 4
        else:
            item = text.encode("utf-16-le")
            units = len(item) // 2
        table += struct.pack("<HH", start + len(data), units)
        data += item
    table += bytes(6) + struct.pack("<HH", start, 0) * 3 + bytes(4)
    if features:
        pointer = start + len(data)
        at = struct.unpack_from("<H", table, 20)[0] - start
        data = data[:at] + struct.pack("<I", pointer) + data[at + 4 :] + features
    fixed = struct.pack("<IIIIII", start + len(data), version, packet_size, 7, 1, 0)
    fixed += bytes([0xE0, flags2, type_flags, flags3]) + struct.pack("<iI", 0, 0x409)
    return fixed + table + data


class RawClient:
    """A connection on which every byte can be chosen."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.socket = socket.create_connection((host, port), timeout=20)
        self.tls: ssl.SSLObject | None = None
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.packet_sizes: list[int] = []
        self.packet_ids: list[int] = []

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def write(self, data: bytes) -> None:
        if self.tls is not None:
            self.tls.write(data)
            data = self.outgoing.read()
        self.socket.sendall(data)

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            if self.tls is not None:
                try:
                    data += self.tls.read(size - len(data))
                except ssl.SSLWantReadError:
                    self.incoming.write(self.receive(65536))
            else:
                data += self.receive(size - len(data))
        return data

    def receive(self, size: int) -> bytes:
        piece = self.socket.recv(size)
        if not piece:
            raise EOFError
        return piece

    def send(self, kind: int, payload: bytes, *, status: int = 1, packet: int = 4088) -> None:
        parts = [payload[start : start + packet] for start in range(0, len(payload), packet)] or [b""]
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            bits = status if last else status & ~1
            self.write(struct.pack(">BBHHBB", kind, bits, 8 + len(part), 0, number & 0xFF, 0) + part)

    def read_message(self) -> tuple[int, bytes]:
        data, self.packet_sizes, self.packet_ids = b"", [], []
        while True:
            kind, status, length, _, packet_id, _ = struct.unpack(">BBHHBB", self.read(8))
            data += self.read(length - 8)
            self.packet_sizes.append(length)
            self.packet_ids.append(packet_id)
            if status & 1:
                return kind, data

    def answer(self) -> Answer:
        kind, data = self.read_message()
        assert kind == 4
        return parse(data)

    def handshake(self, context: ssl.SSLContext, host: str = "localhost") -> ssl.SSLObject:
        tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=host)
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                pass
            self.send(TYPE_PRELOGIN, self.outgoing.read())
            kind, data = self.read_message()
            assert kind == TYPE_PRELOGIN
            self.incoming.write(data)
        assert not self.outgoing.pending
        return tls

    def login(self, encryption: int = 2, **fields: Any) -> Answer:
        """Log in; without TLS unless a handshake was made before."""
        self.send(TYPE_PRELOGIN, prelogin(encryption))
        self.read_message()
        self.send(TYPE_LOGIN, login7(**fields))
        return self.answer()

    def batch(self, text: str, *, status: int = 1) -> Answer:
        self.send(TYPE_BATCH, EMPTY_HEADERS + text.encode("utf-16-le"), status=status)
        return self.answer()

    def ended(self) -> bool:
        """Whether the server has closed the connection; waits for it."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionResetError:
            return True
        return True
