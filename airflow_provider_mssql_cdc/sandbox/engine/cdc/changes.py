"""The rows of a change table: an immutable, ordered sequence of Arrow batches, searched by commit LSN."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

CHUNK_ROWS = 65_536
_CHUNK_BYTES = 64 * 1024 * 1024

# By position, since a captured column cannot have one of the reserved names but may be called anything else.
START_LSN, END_LSN, SEQVAL, OPERATION, UPDATE_MASK = range(5)
FIRST_CAPTURED = 5


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some consecutive rows of a change table, with their lowest and highest commit LSN."""

    rows: pa.RecordBatch
    low: bytes
    high: bytes

    @classmethod
    def of(cls, rows: pa.RecordBatch) -> Chunk:
        """A chunk of rows that are in clustered order; at least one."""
        commits = rows.column(START_LSN)
        return cls(rows, commits[0].as_py(), commits[len(commits) - 1].as_py())

    def first_at_or_above(self, lsn: bytes) -> int:
        """The number of rows below a commit LSN."""
        commits = self.rows.column(START_LSN)
        return bisect_left(range(len(commits)), lsn, key=lambda row: commits[row].as_py())

    def first_above(self, lsn: bytes) -> int:
        """The number of rows at or below a commit LSN."""
        commits = self.rows.column(START_LSN)
        return bisect_right(range(len(commits)), lsn, key=lambda row: commits[row].as_py())


@dataclass(frozen=True, slots=True)
class ChangeRows:
    """All rows of one change table, in the order of its clustered index."""

    chunks: tuple[Chunk, ...] = ()

    def __len__(self) -> int:
        return sum(chunk.rows.num_rows for chunk in self.chunks)

    def appended(self, rows: pa.RecordBatch) -> ChangeRows:
        """These rows and newer ones after them.

        :param rows: in clustered order, all above the present ones
        """
        chunks = list(self.chunks)
        for offset in range(0, rows.num_rows, CHUNK_ROWS):
            chunks.append(Chunk.of(rows.slice(offset, CHUNK_ROWS)))
            _merge_tail(chunks)
        return ChangeRows(tuple(chunks))

    def first(self, count: int) -> list[pa.RecordBatch]:
        """The first rows."""
        found = []
        for chunk in self.chunks:
            if count > 0:
                found.append(chunk.rows.slice(0, count))
                count -= chunk.rows.num_rows
        return found

    def until(self, count: int) -> ChangeRows:
        """The first rows alone."""
        return ChangeRows(tuple(map(Chunk.of, self.first(count))))

    def between(self, low: bytes | None, high: bytes | None) -> list[pa.RecordBatch]:
        """The rows from one commit LSN to another, both included; None leaves an end open."""
        first = 0 if low is None else bisect_left(self.chunks, low, key=lambda chunk: chunk.high)
        last = len(self.chunks) if high is None else bisect_right(self.chunks, high, key=lambda chunk: chunk.low)
        found = []
        for chunk in self.chunks[first:last]:
            start = 0 if low is None or low <= chunk.low else chunk.first_at_or_above(low)
            stop = chunk.rows.num_rows if high is None or chunk.high <= high else chunk.first_above(high)
            if start < stop:
                found.append(chunk.rows.slice(start, stop - start))
        return found

    def below(self, mark: bytes) -> int:
        """How many rows lie below a commit LSN."""
        return sum(
            chunk.rows.num_rows if chunk.high < mark else chunk.first_at_or_above(mark)
            for chunk in self.chunks
            if chunk.low < mark
        )

    def after(self, count: int) -> ChangeRows:
        """The rows without the first ones, whose memory is still held."""
        kept = []
        for chunk in self.chunks:
            if count < chunk.rows.num_rows:
                kept.append(Chunk.of(chunk.rows.slice(count)) if count > 0 else chunk)
            count -= chunk.rows.num_rows
        return ChangeRows(tuple(kept))

    def from_lsn(self, mark: bytes) -> ChangeRows:
        """The rows at or above a commit LSN; the memory of the others is given back."""
        first = bisect_left(self.chunks, mark, key=lambda chunk: chunk.high)
        kept = list(self.chunks[first:])
        if kept and kept[0].low < mark:
            cut = kept[0].first_at_or_above(mark)
            # A slice would keep the whole chunk alive.
            kept[0] = Chunk.of(pa.concat_batches([kept[0].rows.slice(cut), kept[0].rows.slice(0, 0)]))
        return ChangeRows(tuple(kept))

    def with_column(self, position: int, name: str, change: Callable[[pa.Array], pa.Array]) -> ChangeRows:
        """The same rows with one column's values replaced."""
        return ChangeRows(
            tuple(
                Chunk(chunk.rows.set_column(position, name, change(chunk.rows.column(position))), chunk.low, chunk.high)
                for chunk in self.chunks
            )
        )

    def with_nulls(self, name: str, column_type: pa.DataType) -> ChangeRows:
        """The same rows with one column more behind the others, which holds nothing."""
        return ChangeRows(
            tuple(
                Chunk(chunk.rows.append_column(name, pa.nulls(chunk.rows.num_rows, column_type)), chunk.low, chunk.high)
                for chunk in self.chunks
            )
        )


def _merge_tail(chunks: list[Chunk]) -> None:
    # As in a log-structured store: a row is copied about log2(65,536) times at most, however small the commits are.
    while len(chunks) > 1:
        older, newer = chunks[-2].rows, chunks[-1].rows
        if older.num_rows > 2 * newer.num_rows or older.num_rows + newer.num_rows > CHUNK_ROWS:
            return
        if older.nbytes + newer.nbytes > _CHUNK_BYTES:
            return
        chunks[-2:] = [Chunk(pa.concat_batches([older, newer]), chunks[-2].low, chunks[-1].high)]
