"""Arrow's UTF-8 text to UTF-16LE or code page 1252, a column at a time; code page 1252 as Windows has it."""

from __future__ import annotations

import codecs

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]

# Windows gives the five holes of the code page to the control characters of the same number, Python does not.
_HOLES = frozenset((0x81, 0x8D, 0x8F, 0x90, 0x9D))
_REPLACEMENT = 0x3F


def _cp1252_gaps(error: UnicodeError) -> tuple[str | bytes, int]:
    if isinstance(error, UnicodeDecodeError):
        return "".join(map(chr, error.object[error.start : error.end])), error.end
    assert isinstance(error, UnicodeEncodeError)
    out = bytearray()
    for character in error.object[error.start : error.end]:
        code = ord(character)
        # Beyond the BMP SQL Server sees two code units, and gives a question mark for each.
        out += bytes([code]) if code in _HOLES else bytes([_REPLACEMENT]) * (2 if code > 0xFFFF else 1)
    return bytes(out), error.end


codecs.register_error("mssql-cp1252", _cp1252_gaps)


def decode(data: bytes, code_page: str) -> str:
    """Text of a char, varchar or text value."""
    return data.decode(code_page, "mssql-cp1252" if code_page == "cp1252" else "strict")


# How many code units a byte of UTF-8 stands for, told from the first byte of each character. The same table
# serves code page 1252, where a character beyond the BMP becomes two question marks.
_UNITS = np.zeros(256, dtype=np.int64)
_UNITS[:0x80] = 1
_UNITS[0xC0:0xF0] = 1
_UNITS[0xF0:] = 2


def binary_parts(array: pa.Array) -> tuple[Offsets, Bytes]:
    """Offsets from 0 and bytes of a binary or string array without NULLs."""
    _, offset_buffer, data_buffer = array.buffers()
    if not len(array) or offset_buffer is None:
        return np.zeros(len(array) + 1, dtype=np.int64), np.empty(0, dtype=np.uint8)
    offsets = np.frombuffer(offset_buffer, dtype=np.int32)[array.offset : array.offset + len(array) + 1]
    start, end = int(offsets[0]), int(offsets[-1])
    data = np.empty(0, dtype=np.uint8) if data_buffer is None else np.frombuffer(data_buffer, dtype=np.uint8)
    return offsets.astype(np.int64) - start, data[start:end]


def encode_utf16(array: pa.Array) -> tuple[Offsets, Bytes]:
    """Offsets and bytes of a string array without NULLs, in UTF-16LE."""
    offsets, data = binary_parts(array)
    if not (data & 0x80).any():
        return offsets * 2, data.astype("<u2").view(np.uint8)
    encoded = data.tobytes().decode("utf-8", "surrogatepass").encode("utf-16-le", "surrogatepass")
    return _unit_offsets(offsets, data) * 2, np.frombuffer(encoded, dtype=np.uint8)


def encode_cp1252(array: pa.Array) -> tuple[Offsets, Bytes]:
    """Offsets and bytes of a string array without NULLs, in code page 1252; `?` for what it lacks."""
    offsets, data = binary_parts(array)
    if not (data & 0x80).any():
        return offsets, data
    encoded = data.tobytes().decode("utf-8", "surrogatepass").encode("cp1252", "mssql-cp1252")
    return _unit_offsets(offsets, data), np.frombuffer(encoded, dtype=np.uint8)


def _unit_offsets(offsets: Offsets, data: Bytes) -> Offsets:
    units = np.zeros(len(data) + 1, dtype=np.int64)
    np.cumsum(_UNITS[data], out=units[1:])
    return units[offsets]
