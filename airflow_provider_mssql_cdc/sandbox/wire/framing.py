"""TDS packets and messages over a socket, in the clear or inside TLS."""

from __future__ import annotations

import enum
import socket
import ssl
import struct
from dataclasses import dataclass

import numpy as np

HEADER = struct.Struct(">BBHHBB")
"""Type, status, length with the header, SPID, packet id, window."""

DEFAULT_PACKET_SIZE = 4096

_SEND_THRESHOLD = 128 * 1024
_TLS_RECORD_LIMIT = 16384 + 2048


class ProtocolError(Exception):
    """The client broke TDS in a way after which its bytes make no sense; the connection ends."""


class ConnectionLost(ProtocolError):
    """The other side is gone, or did not answer in time."""


class MessageType(enum.IntEnum):
    """Packet types a client may send, and the one a server answers with."""

    SQL_BATCH = 1
    RPC = 3
    REPLY = 4
    ATTENTION = 6
    BULK_LOAD = 7
    TRANSACTION_MANAGER = 14
    LOGIN7 = 16
    SSPI = 17
    PRELOGIN = 18


class Status(enum.IntFlag):
    """Packet status bits."""

    END_OF_MESSAGE = 0x01
    IGNORE = 0x02
    RESET_CONNECTION = 0x08
    RESET_CONNECTION_SKIP_TRAN = 0x10


@dataclass(frozen=True, slots=True)
class ClientMessage:
    """All packets of one message put together; ``status`` joins the bits of its first and last packet."""

    type: MessageType
    status: Status
    payload: bytes


class Channel:
    """One connection's bytes; TLS can be put on top and taken off again between two messages.

    No byte is ever read ahead of what was asked for (with TLS: of the record it came in), so that what waits
    in the socket while a request runs is what the client sent after it.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._tls: ssl.SSLObject | None = None
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()

    def read(self, size: int) -> bytes:
        """Read exactly ``size`` bytes.

        :raises ConnectionLost: if the client closed the connection or a time-out passed
        """
        if self._tls is None:
            return self._read_raw(size)
        data = bytearray()
        while len(data) < size:
            try:
                piece = self._tls.read(size - len(data))
            except ssl.SSLWantReadError:
                self._incoming.write(self._read_record())
                continue
            except ssl.SSLError as error:
                raise ConnectionLost(f"TLS: {error}") from error
            if not piece:
                raise ConnectionLost("the client closed TLS")
            data += piece
        return bytes(data)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send all of ``data``; blocks while the client does not read.

        :raises ConnectionLost: if the client is gone
        """
        if self._tls is not None:
            try:
                self._tls.write(data)
            except ssl.SSLError as error:
                raise ConnectionLost(f"TLS: {error}") from error
            data = self._outgoing.read()
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise ConnectionLost(str(error)) from error

    def has_input(self) -> bool:
        """Whether bytes (or the end of the connection) wait to be read; does not block, from any thread."""
        try:
            self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def start_tls(self, context: ssl.SSLContext) -> None:
        """Be the server of a TLS handshake whose records travel in PRELOGIN packets (docs: MS-TDS 2.2.6.5).

        :raises ConnectionLost: if the handshake fails
        """
        tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        done = False
        while not done:
            try:
                tls.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as error:
                raise ConnectionLost(f"TLS handshake: {error}") from error
            if self._outgoing.pending:
                writer = MessageWriter(self, message_type=MessageType.PRELOGIN)
                writer.write(self._outgoing.read())
                writer.end()
            if not done:
                kind, _, payload = read_packet(self)
                if kind is not MessageType.PRELOGIN:
                    raise ProtocolError(f"{kind.name} packet inside the TLS handshake")
                self._incoming.write(payload)
        self._tls = tls

    def end_tls(self) -> None:
        """Go on in the clear: encryption was for the login message only, and has no closing exchange."""
        self._tls = None

    def _read_raw(self, size: int) -> bytes:
        data = bytearray(size)
        view, filled = memoryview(data), 0
        while filled < size:
            try:
                received = self._socket.recv_into(view[filled:])
            except OSError as error:
                raise ConnectionLost(str(error)) from error
            if not received:
                raise ConnectionLost("the client closed the connection")
            filled += received
        return bytes(data)

    def _read_record(self) -> bytes:
        header = self._read_raw(5)
        length = int.from_bytes(header[3:5], "big")
        if length > _TLS_RECORD_LIMIT:
            raise ProtocolError(f"TLS record of {length} bytes")
        return header + self._read_raw(length)


def read_packet(channel: Channel) -> tuple[MessageType, Status, bytes]:
    """Read one packet.

    :raises ProtocolError: if its header is none that a TDS client sends
    """
    kind, status, length, _, _, _ = HEADER.unpack(channel.read(HEADER.size))
    if length < HEADER.size:
        raise ProtocolError(f"packet of length {length}")
    try:
        message_type = MessageType(kind)
    except ValueError:
        raise ProtocolError(f"packet of type 0x{kind:02X}") from None
    return message_type, Status(status), channel.read(length - HEADER.size)


def read_message(channel: Channel, limit: int, *, logged_in: bool = False) -> ClientMessage:
    """Read one message of at most ``limit`` bytes.

    :param logged_in: a bulk load may be of any length, and is dropped where an attention comes in its middle, which is
        the message then
    :raises ProtocolError: if it is longer, or its packets are of different types
    """
    kind, status, payload = read_packet(channel)
    if status & Status.END_OF_MESSAGE:
        return ClientMessage(kind, status, payload)
    parts, size = [payload], len(payload)
    while True:
        next_kind, next_status, payload = read_packet(channel)
        is_bulk = logged_in and kind is MessageType.BULK_LOAD
        if is_bulk and next_kind is MessageType.ATTENTION:
            return ClientMessage(next_kind, next_status, payload)
        if next_kind is not kind:
            raise ProtocolError(f"{next_kind.name} packet inside a {kind.name} message")
        size += len(payload)
        if size > limit and not is_bulk:
            raise ProtocolError(f"message of more than {limit} bytes")
        parts.append(payload)
        if next_status & Status.END_OF_MESSAGE:
            return ClientMessage(kind, status | next_status, b"".join(parts))


class MessageWriter:
    """Cuts what is written into the packets of one message, and sends them as they fill up.

    :param packet_size: length of a full packet with its header, as agreed on at login
    :param spid: session id in the packet headers
    """

    def __init__(
        self,
        channel: Channel,
        packet_size: int = DEFAULT_PACKET_SIZE,
        spid: int = 0,
        message_type: MessageType = MessageType.REPLY,
    ) -> None:
        self._channel, self._size, self._spid, self._type = channel, packet_size, spid, message_type
        self._buffer = bytearray()
        self._sent = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Add bytes to the message."""
        self._buffer += data
        if len(self._buffer) >= _SEND_THRESHOLD:
            self._send_full_packets()

    def end(self) -> None:
        """Send what is left, with the end-of-message bit."""
        self.flush(Status.END_OF_MESSAGE)
        self._sent = 0

    def flush(self, status: int = 0) -> None:
        """Send what is left, in a short packet if need be; the message goes on."""
        self._send_full_packets()
        length = HEADER.size + len(self._buffer)
        packet_id = (self._sent + 1) & 0xFF
        header = HEADER.pack(self._type, status, length, self._spid, packet_id, 0)
        self._channel.write(header + self._buffer)
        self._buffer.clear()
        self._sent += 1

    def _send_full_packets(self) -> None:
        body = self._size - HEADER.size
        # The last byte stays, since the packet that ends the message should not be an empty one.
        count = max(len(self._buffer) - 1, 0) // body
        if not count:
            return
        packets = np.empty((count, self._size), dtype=np.uint8)
        header = HEADER.pack(self._type, 0, self._size, self._spid, 0, 0)
        packets[:, : HEADER.size] = np.frombuffer(header, dtype=np.uint8)
        packets[:, 6] = (np.arange(count) + self._sent + 1) & 0xFF
        payload = np.frombuffer(bytes(self._buffer[: count * body]), dtype=np.uint8)
        packets[:, HEADER.size :] = payload.reshape(count, body)
        self._channel.write(packets.reshape(-1).data)
        self._sent += count
        del self._buffer[: count * body]
