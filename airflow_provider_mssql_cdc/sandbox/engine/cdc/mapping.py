"""cdc.lsn_time_mapping: which commit LSN was written when."""

from __future__ import annotations

import copy
import datetime
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.engine.cdc.lsn import LSN_BYTES, ZERO_LSN
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import columns
from airflow_provider_mssql_cdc.sandbox.engine.cdc.switches import TimeToLsn

_AFTER_ALL = b"\xff" * (LSN_BYTES + 1)
_MOST_PARTS = 64

COLUMNS = columns(
    "start_lsn binary(10)!, tran_begin_time datetime, tran_end_time datetime, tran_id varbinary(10), "
    "tran_begin_lsn binary(10)"
)
_SCHEMA = pa.schema([pa.field(column.name, column.type.arrow) for column in COLUMNS])


class MappingRow(NamedTuple):
    """One captured transaction, or a dummy (``tran_id`` 0x00); times are server-local, in steps of 1/300 s."""

    start_lsn: bytes
    tran_begin_time: datetime.datetime | None
    tran_end_time: datetime.datetime
    tran_id: bytes
    tran_begin_lsn: bytes


def dummy_row(lsn: bytes, time: datetime.datetime, tran_id: bytes) -> MappingRow:
    """What the capture writes into an idle database, so that max LSN moves on."""
    return MappingRow(lsn, time, time, tran_id, ZERO_LSN)


def to_datetime(time: datetime.datetime) -> datetime.datetime:
    """The ``datetime`` value nearest to a time: 1/300 s steps, as the millisecond that clients show."""
    start = time.replace(microsecond=0)
    ticks = (time.microsecond * 300 + 500_000) // 1_000_000
    return start + datetime.timedelta(milliseconds=(ticks * 10 + 1) // 3)


class LsnTimeMapping:
    """The rows of cdc.lsn_time_mapping, in LSN order, searchable by time. Not thread-safe."""

    def __init__(self) -> None:
        # Only ever added to, so that those who see fewer rows share them.
        self._rows: list[MappingRow]
        self._size: int
        # The clock may be set back, so the order of times is kept apart; ties in LSN order.
        self._by_time: list[tuple[datetime.datetime, bytes]]
        self._table: pa.Table
        self._replace([])

    def frozen(self) -> LsnTimeMapping:
        """These rows as they are now, whatever comes to them or goes; to be read only, and under the same lock."""
        return copy.copy(self)

    def with_rows(self, rows: Iterable[MappingRow]) -> LsnTimeMapping:
        """These rows and others above them, apart from what becomes of these."""
        made = LsnTimeMapping()
        made._replace([*self.rows(), *rows])
        return made

    def rows(self) -> tuple[MappingRow, ...]:
        """All rows, in LSN order."""
        return tuple(self._rows[: self._size])

    @property
    def oldest(self) -> MappingRow | None:
        """The row with the lowest LSN."""
        return self._rows[0] if self._size else None

    @property
    def newest(self) -> MappingRow | None:
        """The row with the highest LSN."""
        return self._rows[self._size - 1] if self._size else None

    @property
    def last_time(self) -> datetime.datetime | None:
        """MAX(tran_end_time)."""
        return self._by_time[-1][0] if self._by_time else None

    def extend(self, rows: Iterable[MappingRow]) -> None:
        """Add rows, in LSN order, above those that are here."""
        for row in rows:
            self._rows.append(row)
            self._size += 1
            insort(self._by_time, (row.tran_end_time, row.start_lsn))

    def trim(self, mark: bytes) -> None:
        """Remove the rows below an LSN."""
        cut = bisect_left(self._rows, mark, key=lambda row: row.start_lsn)
        if cut:
            self._replace(self._rows[cut:])

    def _replace(self, rows: list[MappingRow]) -> None:
        self._rows, self._size = rows, len(rows)
        self._by_time = sorted((row.tran_end_time, row.start_lsn) for row in rows)
        # not empty_table: with that, pyarrow imports pandas where it is installed, which takes longer than all else
        self._table = pa.Table.from_batches([], _SCHEMA)

    def time_of(self, lsn: bytes) -> datetime.datetime | None:
        """tran_end_time of an LSN; None where it has no row."""
        index = bisect_left(self._rows, lsn, hi=self._size, key=lambda row: row.start_lsn)
        if index < self._size and self._rows[index].start_lsn == lsn:
            return self._rows[index].tran_end_time
        return None

    def first_of_time(self, time: datetime.datetime) -> bytes:
        """The smallest LSN among the rows with a commit time; there is one."""
        return self._by_time[bisect_left(self._by_time, (time, b""))][1]

    def find(self, operator: str, time: datetime.datetime, takes: TimeToLsn = "nearest") -> bytes | None:
        """sys.fn_cdc_map_time_to_lsn: an LSN whose commit time lies on the side of a time that the operator names.

        An unknown operator gives None.

        :param takes: which of them; see ``Switches.time_to_lsn_takes``
        """
        match operator.strip().lower():
            case "largest less than":
                index, step = bisect_left(self._by_time, (time, b"")) - 1, -1
            case "largest less than or equal":
                index, step = bisect_right(self._by_time, (time, _AFTER_ALL)) - 1, -1
            case "smallest greater than":
                index, step = bisect_right(self._by_time, (time, _AFTER_ALL)), 1
            case "smallest greater than or equal":
                index, step = bisect_left(self._by_time, (time, b"")), 1
            case _:
                return None
        newest = self.newest
        if newest is None:
            return None
        # what came since these rows were frozen is left out
        found = (each for each in self._from(index, step) if each[1] <= newest.start_lsn)
        if takes == "extreme":
            lsns = (lsn for _, lsn in found)
            return max(lsns, default=None) if step < 0 else min(lsns, default=None)
        nearest = next(found, None)
        if nearest is None:
            return None
        return self.first_of_time(nearest[0]) if takes == "first" else nearest[1]

    def _from(self, index: int, step: int) -> Iterator[tuple[datetime.datetime, bytes]]:
        while 0 <= index < len(self._by_time):
            yield self._by_time[index]
            index += step

    def table(self) -> pa.Table:
        """All rows, in LSN order."""
        fresh = self._rows[self._table.num_rows : self._size]
        if fresh:
            arrays = [
                pa.array(values, field.type) for values, field in zip(zip(*fresh, strict=True), _SCHEMA, strict=True)
            ]
            self._table = pa.concat_tables([self._table, pa.table(arrays, schema=_SCHEMA)])
            if self._table.column(0).num_chunks > _MOST_PARTS:
                self._table = self._table.combine_chunks()
        return self._table
