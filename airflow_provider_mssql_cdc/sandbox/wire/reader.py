"""Reading little-endian TDS fields from a message, never past its end."""

from __future__ import annotations

import struct

from airflow_provider_mssql_cdc.sandbox.wire.framing import ProtocolError

_U16, _U32, _U64 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<Q")


class StreamEnded(ProtocolError):
    """A message ended inside a field."""


class Reader:
    """A position in a message.

    :raises StreamEnded: by every method, if the message is too short for what it reads
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def remaining(self) -> int:
        """Bytes not read yet."""
        return len(self._data) - self._position

    def bytes(self, size: int) -> bytes:
        """Read ``size`` bytes."""
        end = self._position + size
        if end > len(self._data):
            raise StreamEnded(f"{size} bytes expected, {self.remaining} left")
        value = self._data[self._position : end]
        self._position = end
        return value

    def u8(self) -> int:
        """Read an unsigned byte."""
        return self.bytes(1)[0]

    def u16(self) -> int:
        """Read an unsigned 16-bit number."""
        value: int = _U16.unpack(self.bytes(2))[0]
        return value

    def u32(self) -> int:
        """Read an unsigned 32-bit number."""
        value: int = _U32.unpack(self.bytes(4))[0]
        return value

    def u64(self) -> int:
        """Read an unsigned 64-bit number."""
        value: int = _U64.unpack(self.bytes(8))[0]
        return value

    def text(self, units: int) -> str:
        """Read ``units`` UTF-16 code units; a lone surrogate stays one, as nvarchar allows it."""
        return self.bytes(2 * units).decode("utf-16-le", "surrogatepass")

    def b_varchar(self) -> str:
        """Read a text whose length is in one byte."""
        return self.text(self.u8())
