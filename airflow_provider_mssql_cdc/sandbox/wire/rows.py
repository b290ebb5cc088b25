"""Record batches to ROW and NBCROW tokens: columns are encoded whole, and Arrow's join puts them in rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mssql_cdc.sandbox.protocol import Column
from airflow_provider_mssql_cdc.sandbox.wire.text import Bytes, Offsets
from airflow_provider_mssql_cdc.sandbox.wire.typeinfo import Prefix, WireType, wire_type
from airflow_provider_mssql_cdc.sandbox.wire.values import fixed_values, variable_values, without_nulls

_ROW, _NBC_ROW = 0xD1, 0xD2
_CHUNK_BYTES = 1024 * 1024
_TEXT_POINTER = b"\x10" + b"sandbox text ptr" + b"timestmp"
"""Length 16, a pointer that no statement of the sandbox takes, and a time stamp."""

_NULL = {Prefix.BYTE: b"\x00", Prefix.USHORT: b"\xff\xff", Prefix.PLP: b"\xff" * 8, Prefix.TEXT_POINTER: b"\x00"}
_FIXED_LENGTH_TYPES = frozenset(("char", "nchar", "binary", "rowversion"))

Mask = npt.NDArray[np.bool_]


class RowEncoder:
    """Encodes the rows of one result set.

    :param columns: as declared in COLMETADATA
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = [(column, wire_type(column.type, nullable=column.nullable)) for column in columns]

    def chunks(self, batch: pa.RecordBatch) -> Iterator[tuple[int, memoryview]]:
        """The rows of a batch as (number of rows, tokens), a megabyte or so each, to bound the memory.

        :raises TypeError: if a column has not the Arrow type that belongs to its SQL Server type
        :raises ValueError: if a value does not fit its column
        """
        if batch.num_columns != len(self._columns):
            raise TypeError(f"{batch.num_columns} arrays for {len(self._columns)} columns")
        for (column, _), array in zip(self._columns, batch.columns, strict=True):
            if array.type != column.type.arrow:
                raise TypeError(f"column {column.name}: {array.type} for {column.type}")
            if array.null_count and not column.nullable:
                raise ValueError(f"column {column.name} has a NULL, and is declared NOT NULL")
        if not batch.num_rows:
            return
        step = max(1, _CHUNK_BYTES * batch.num_rows // max(batch.nbytes, 1))
        for start in range(0, batch.num_rows, step):
            part = batch.slice(start, step)
            yield part.num_rows, self._encode(part)

    def _encode(self, batch: pa.RecordBatch) -> memoryview:
        rows = _Rows(batch.num_rows)
        nulls = _null_matrix(batch)
        if nulls is None:
            rows.add_fixed(np.full((batch.num_rows, 1), _ROW, dtype=np.uint8))
        else:
            bitmap = np.packbits(nulls, axis=1, bitorder="little")
            rows.add_fixed(np.hstack([np.full((batch.num_rows, 1), _NBC_ROW, dtype=np.uint8), bitmap]))
        for place, ((column, wire), array) in enumerate(zip(self._columns, batch.columns, strict=True)):
            mask = nulls[:, place] if nulls is not None and array.null_count else None
            _add_column(rows, column, wire, array, mask, null_marker=b"")
        return rows.join()


def encode_value(column: Column, array: pa.Array) -> bytes:
    """One value as in a ROW token, NULL included.

    :param array: of length 1
    """
    rows = _Rows(1)
    wire = wire_type(column.type, nullable=True)
    mask = np.array([True]) if array.null_count else None
    _add_column(rows, column, wire, array, mask, null_marker=_NULL[wire.prefix])
    return bytes(rows.join())


def _null_matrix(batch: pa.RecordBatch) -> Mask | None:
    if not any(array.null_count for array in batch.columns):
        return None
    nulls = np.zeros((batch.num_rows, batch.num_columns), dtype=bool)
    for place, array in enumerate(batch.columns):
        if array.null_count:
            nulls[:, place] = pc.is_null(array).to_numpy(zero_copy_only=False)
    return nulls


class _Rows:
    """Pieces of rows, from left to right; fixed pieces side by side are kept as one."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._fixed: list[Bytes] = []
        self._pieces: list[pa.Array] = []

    def add_fixed(self, matrix: Bytes) -> None:
        """A piece of the same length in each row."""
        self._fixed.append(matrix)

    def add_variable(self, offsets: Offsets, data: Bytes) -> None:
        """A piece of any length in each row."""
        self._close_fixed()
        parts = (pa.py_buffer(np.ascontiguousarray(part)) for part in (offsets, data))
        self._pieces.append(pa.Array.from_buffers(pa.large_binary(), self._count, [None, *parts]))

    def add_optional(self, matrix: Bytes, nulls: Mask | None, marker: bytes) -> None:
        """A piece that is ``marker`` where ``nulls`` says so; the marker is no longer than the piece."""
        width = matrix.shape[1]
        if nulls is None:
            self.add_fixed(matrix)
            return
        lengths = np.where(nulls, len(marker), width)
        if marker:
            matrix[nulls, : len(marker)] = np.frombuffer(marker, dtype=np.uint8)
            data = matrix[np.arange(width) < lengths[:, None]]
        else:
            data = matrix[~nulls]
        self.add_variable(_offsets(lengths), data.reshape(-1))

    def join(self) -> memoryview:
        """The rows one after the other."""
        self._close_fixed()
        if len(self._pieces) == 1:
            joined = self._pieces[0]
        else:
            joined = pc.binary_join_element_wise(*self._pieces, pa.scalar(b"", pa.large_binary()))
        offsets = np.frombuffer(joined.buffers()[1], dtype=np.int64)
        return memoryview(joined.buffers()[2])[: int(offsets[self._count])]

    def _close_fixed(self) -> None:
        if not self._fixed:
            return
        # as records of opaque fields, which numpy copies three times as fast as it puts matrices side by side
        record = np.dtype([("", f"V{matrix.shape[1]}") for matrix in self._fixed])
        block = np.empty(self._count, record)
        for name, matrix in zip(record.names or (), self._fixed, strict=True):
            block[name] = np.ascontiguousarray(matrix).view(record[name]).reshape(-1)
        self._fixed = []
        self.add_variable(np.arange(self._count + 1, dtype=np.int64) * record.itemsize, block.view(np.uint8))


def _offsets(lengths: npt.NDArray[np.int64]) -> Offsets:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _little_endian(values: npt.NDArray[np.int64], dtype: str) -> Bytes:
    return values.astype(dtype).view(np.uint8).reshape(len(values), -1)


def _constant(data: bytes, count: int) -> Bytes:
    return np.tile(np.frombuffer(data, dtype=np.uint8), (count, 1))


def _add_column(
    rows: _Rows, column: Column, wire: WireType, array: pa.Array, nulls: Mask | None, *, null_marker: bytes
) -> None:
    if wire.prefix in (Prefix.NONE, Prefix.BYTE):
        values = fixed_values(column.type, array)
        if wire.prefix is Prefix.BYTE:
            head = np.full((len(values), 1), wire.size, dtype=np.uint8)
            if nulls is None:
                rows.add_fixed(head)
            else:
                values = np.hstack([head, values])
        rows.add_optional(values, nulls, null_marker)
        return
    offsets, data = variable_values(column.type, without_nulls(array))
    lengths = np.diff(offsets)
    if wire.prefix is Prefix.USHORT:
        _check_lengths(column, wire, lengths, nulls)
        head = _little_endian(lengths, "<u2")
        if nulls is None and lengths[0] and (lengths == lengths[0]).all():
            rows.add_fixed(head)
            rows.add_fixed(data.reshape(len(lengths), -1))
            return
        rows.add_optional(head, nulls, null_marker)
        rows.add_variable(offsets, data)
    elif wire.prefix is Prefix.PLP:
        # One chunk holds the whole value; the zero length of an empty value's chunk is its terminator.
        head = np.hstack([_little_endian(lengths, "<u8"), _little_endian(lengths, "<u4")])
        rows.add_optional(head, nulls, null_marker)
        rows.add_variable(offsets, data)
        terminators = _offsets(np.where(lengths > 0, 4, 0))
        rows.add_variable(terminators, np.zeros(int(terminators[-1]), dtype=np.uint8))
    else:
        head = np.hstack([_constant(_TEXT_POINTER, len(lengths)), _little_endian(lengths, "<u4")])
        rows.add_optional(head, nulls, null_marker)
        rows.add_variable(offsets, data)


def _check_lengths(column: Column, wire: WireType, lengths: npt.NDArray[np.int64], nulls: Mask | None) -> None:
    longest = int(lengths.max(initial=0))
    if longest > wire.size:
        raise ValueError(f"column {column.name}: a value of {longest} bytes for {column.type}")
    if column.type.name in _FIXED_LENGTH_TYPES:
        present = lengths if nulls is None else lengths[~nulls]
        if (present != wire.size).any():
            raise ValueError(f"column {column.name}: a value of {present.min()} bytes for {column.type}")
