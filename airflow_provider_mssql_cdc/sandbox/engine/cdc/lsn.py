"""Log sequence numbers: how the log hands them out, and the arithmetic that SQL Server offers on them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

LSN_BYTES = 10
ZERO_LSN = bytes(LSN_BYTES)

_FIRST_VLF = 0x2D
_FIRST_BLOCK = 0x10  # in sectors: the header of a virtual log file comes first
_SECTORS_PER_BLOCK = 8
_SECTOR = 512  # bytes
_BLOCKS_PER_VLF = 16_384
_SLOTS_PER_BLOCK = 32
_LAST = 2 ** (8 * LSN_BYTES) - 1
_WIRE = np.dtype([("block", ">u8"), ("slot", ">u2")])


class Log:
    """The end of a database's log. It hands out positions: integers that grow in the order of the log records.

    A position stands for one LSN (``encode``). A commit closes its log block, as flushing to disk does.

    :ivar end: the next position
    """

    def __init__(self, end: int = 0) -> None:
        self.end = end

    def reserve(self, records: int) -> int:
        """Take positions for log records.

        :param records: how many
        :returns: the first position; the others follow without a gap
        """
        first = self.end
        self.end += records
        return first

    def commit(self) -> int:
        """Take the position of a commit record and close the log block."""
        position = self.reserve(1)
        self.end = (position // _SLOTS_PER_BLOCK + 1) * _SLOTS_PER_BLOCK
        return position


def encode(position: int) -> bytes:
    """The LSN of one position: 4 bytes VLF, 4 bytes log block, 2 bytes slot, big-endian."""
    block, slot = divmod(position, _SLOTS_PER_BLOCK)
    vlf, offset = divmod(block, _BLOCKS_PER_VLF)
    return (
        (_FIRST_VLF + vlf).to_bytes(4, "big")
        + (_FIRST_BLOCK + offset * _SECTORS_PER_BLOCK).to_bytes(4, "big")
        + (slot + 1).to_bytes(2, "big")
    )


def length(first: int, end: int) -> int:
    """The bytes of the log blocks from one position to another."""
    return (end // _SLOTS_PER_BLOCK - first // _SLOTS_PER_BLOCK + 1) * _SECTORS_PER_BLOCK * _SECTOR


def size(end: int) -> int:
    """The bytes of the virtual log files up to a position."""
    files = end // (_SLOTS_PER_BLOCK * _BLOCKS_PER_VLF) + 1
    return files * (_FIRST_BLOCK + _BLOCKS_PER_VLF * _SECTORS_PER_BLOCK) * _SECTOR


def encode_all(positions: npt.NDArray[np.int64]) -> pa.Array:
    """The LSNs of many positions, as one binary array of ten-byte values."""
    blocks, slots = np.divmod(positions, _SLOTS_PER_BLOCK)
    vlfs, offsets = np.divmod(blocks, _BLOCKS_PER_VLF)
    wire = np.empty(len(positions), _WIRE)
    wire["block"] = ((_FIRST_VLF + vlfs) << 32) + _FIRST_BLOCK + offsets * _SECTORS_PER_BLOCK
    wire["slot"] = slots + 1
    return fixed_binary(wire.view(np.uint8).reshape(-1, LSN_BYTES))


def fixed_binary(rows: npt.NDArray[np.uint8]) -> pa.Array:
    """A binary array from a matrix with one value per row."""
    count, width = rows.shape
    offsets = np.arange(0, (count + 1) * width, width, dtype=np.int32)
    return pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(rows))]
    )


def to_hex(lsn: bytes) -> str:
    """An LSN as SQL Server prints it: 0x and upper-case digits."""
    return "0x" + lsn.hex().upper()


def to_colon_form(lsn: bytes) -> str:
    """The form of the log functions and DMVs: ``0000002d:00000580:001d``."""
    digits = lsn.hex()
    return f"{digits[:8]}:{digits[8:16]}:{digits[16:]}"


def increment_lsn(lsn: bytes | None, *, wrap: bool = False) -> bytes | None:
    """sys.fn_cdc_increment_lsn: one more, as an 80-bit number.

    :param lsn: ten bytes; NULL gives NULL
    :param wrap: whether the highest LSN is followed by zero; otherwise NULL follows (not known of SQL Server)
    """
    return _moved(lsn, 1, wrap)


def decrement_lsn(lsn: bytes | None, *, wrap: bool = False) -> bytes | None:
    """sys.fn_cdc_decrement_lsn: one less, as an 80-bit number.

    :param lsn: ten bytes; NULL gives NULL
    :param wrap: whether zero is preceded by the highest LSN; otherwise NULL precedes it (not known of SQL Server)
    """
    return _moved(lsn, -1, wrap)


def _moved(lsn: bytes | None, step: int, wrap: bool) -> bytes | None:
    if lsn is None:
        return None
    number = int.from_bytes(lsn, "big") + step
    if not 0 <= number <= _LAST and not wrap:
        return None
    return int.to_bytes(number & _LAST, LSN_BYTES, "big")
