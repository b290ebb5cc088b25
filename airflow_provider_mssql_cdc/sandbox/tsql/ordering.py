"""Rows in the order in which they lie: whether that is the order of some columns, and the rows' numbers in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_LSN = np.dtype([("high", ">u8"), ("low", ">u2")])
_LOWEST = -(1 << 63)

Numbers = npt.NDArray[Any]


def ascending(batches: Iterable[pa.RecordBatch], positions: Sequence[int]) -> bool:
    """Whether rows lie in ascending order of some columns, which hold LSNs or integers."""
    last: list[Any] = []
    for batch in batches if positions else ():
        if not batch.num_rows:
            continue
        parts = _parts([batch.column(position) for position in positions])
        if last:
            parts = [np.append(value, part) for value, part in zip(last, parts, strict=True)]
        same, above = np.ones(len(parts[0]) - 1, np.bool_), np.zeros(len(parts[0]) - 1, np.bool_)
        for part in parts:
            above |= same & (part[1:] > part[:-1])
            same &= part[1:] == part[:-1]
        if not (above | same).all():
            return False
        last = [part[-1] for part in parts]
    return True


class RowNumbers:
    """Numbers rows that come in batches, anew from 1 where a value of some columns is not that of the row before."""

    def __init__(self) -> None:
        self._last: list[Any] = []
        self._count = 0

    def of(self, rows: int, columns: Sequence[pa.Array]) -> pa.Array:
        """The numbers of a batch's rows.

        :param columns: hold LSNs or integers; without any the rows are counted through
        """
        if not rows:
            return pa.array([], pa.int64())
        parts = _parts(columns)
        place: npt.NDArray[np.int64] = np.arange(rows, dtype=np.int64)
        starts = np.zeros(rows, np.bool_)
        for part in parts:
            starts[1:] |= part[1:] != part[:-1]
        if any(value != part[0] for value, part in zip(self._last, parts, strict=False)):
            self._count = 0
        # rows before the first start go on from the last batch
        numbers = place - np.maximum.accumulate(np.where(starts, place, -self._count)) + 1
        self._last, self._count = [part[-1] for part in parts], int(numbers[-1])
        return pa.array(numbers)


def _parts(columns: Iterable[pa.Array]) -> list[Numbers]:
    """Numbers for each row that compare, one after the other, as the columns' values do."""
    return [part for column in columns for part in _numbers(column)]


def _numbers(column: pa.Array) -> list[Numbers]:
    if not pa.types.is_binary(column.type):
        return [column.cast(pa.int64()).fill_null(_LOWEST).to_numpy(zero_copy_only=False)]
    first = np.frombuffer(column.buffers()[1], np.int32)[column.offset]
    data = np.frombuffer(column.buffers()[2], np.uint8)
    values = data[first : first + len(column) * _LSN.itemsize].view(_LSN)
    return [values["high"].astype(np.uint64), values["low"].astype(np.uint16)]
