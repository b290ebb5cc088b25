"""Reads the chunks of a copy that are missing, several at once, and keeps changes beside them from time to time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from airflow_provider_mssql_cdc.core.copies import ChunkRead, Hole, ReadEnd, next_size
from airflow_provider_mssql_cdc.core.passing import CaptureProgress
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.spark.copies.chunks import Chunks
from airflow_provider_mssql_cdc.spark.copies.folder import CopyFolder
from airflow_provider_mssql_cdc.spark.copies.pace import CopyTime

log = logging.getLogger(__name__)

KEEP_SECONDS = 600.0
"""How long a copy reads chunks before it keeps one more window."""

_LOOK_SECONDS = 5.0
"""From one look at a late capture to the next."""


class ChunkReading:
    """Reads chunks of one table.

    :param progress: looks how far the capture is, over one connection; None where changes can be read at once
    :param folder: for them
    :param connections: JDBC connections open at once
    :param rows: of the first chunks, at least
    :param seconds: that a chunk is to take, which later ones are made for; None leaves them as they are
    :param expected: rows that the table was said to have
    :param run_time: of the run for copies
    :param keep: keeps one more window, over one connection
    :param capture_timeout: seconds to wait for a late capture, where the run's time for copies has no end
    :param without: names the values whose rows the chunks do not have; '' where they have all
    :ivar is_throttled: it ended since the capture was late
    """

    def __init__(
        self,
        progress: Callable[[], CaptureProgress | None],
        table: TableName,
        folder: CopyFolder,
        chunks: Chunks,
        *,
        connections: int,
        rows: int,
        seconds: float | None,
        expected: int,
        run_time: CopyTime,
        keep: Callable[[], None],
        capture_timeout: float,
        without: str = "",
    ) -> None:
        self._progress, self._table, self._folder, self._chunks = progress, table, folder, chunks
        self._most, self._rows, self._seconds, self._expected = connections, rows, seconds, expected
        self._time, self._keep, self._timeout, self._without = run_time, keep, capture_timeout, without
        self.is_throttled = False
        # each query, and each chunk, takes a connection
        self._connections = threading.BoundedSemaphore(connections)
        self._kept_at = 0.0
        self._running: set[Future[ChunkRead]] = set()
        self._read: list[ChunkRead] = []
        self._lock = threading.Lock()
        self._done = (0, 0)

    def read(self, holes: Sequence[Hole], used: Sequence[ChunkRead], until: tuple[str | None, ...] | None) -> bool:
        """Read what no chunk has yet, one chunk at least unless it would be too fast; whether that is all.

        :param used: the chunks that are there
        :param until: the highest key
        """
        started, begin = time.monotonic(), self._progress()
        self._kept_at = started
        self._done = (len(used), sum(chunk.rows for chunk in used))
        with ThreadPoolExecutor(self._most, thread_name_prefix="chunk") as pool:
            for hole in self._cut(holes, until):
                if not self._may_go_on():
                    return False
                # what is under way counts, too
                counted = self._size()
                self._time.pace.read(counted)
                self._running.add(pool.submit(self._read_chunk, hole, begin, started, counted))
                self._until_fewer_than(self._most)
            self._until_fewer_than(1)
        return True

    def all_read(self) -> list[ChunkRead]:
        """The chunks that were read."""
        self._until_fewer_than(1)
        return self._read

    def _may_go_on(self) -> bool:
        """Wait as the pace wants it; whether the run's time for copies is not over then."""
        pace, late_since = self._time.pace, None
        while True:
            is_first = not (self._read or self._running)
            seconds, left = pace.wait, self._time.left
            if left == 0 and not (is_first and seconds <= 0):
                return False
            # one chunk is read however late the capture is
            if seconds <= 0 and not is_first and self._is_late():
                seconds = _LOOK_SECONDS
                if late_since is None:
                    log.warning("%s: the capture is late, so that the copy waits for it", self._table)
                    late_since = time.monotonic()
                self.is_throttled = True
                if left is None and time.monotonic() > late_since + self._timeout:
                    return False
            elif seconds <= 0:
                self.is_throttled = False
                return True
            self._until_fewer_than(self._most)
            time.sleep(min(seconds, _LOOK_SECONDS, left if left else _LOOK_SECONDS))

    def _is_late(self) -> bool:
        if not self._time.pace.heeds_lag:
            return False
        with self._connections:
            now = self._progress()
        return now is not None and self._time.pace.is_late(now)

    def _until_fewer_than(self, most: int) -> None:
        """Wait for chunks, and keep one more window from time to time, over a connection of its own."""
        while len(self._running) >= most or time.monotonic() > self._kept_at + KEEP_SECONDS:
            if time.monotonic() > self._kept_at + KEEP_SECONDS:
                with self._connections:
                    self._keep()
                self._kept_at = time.monotonic()
            else:
                left = self._kept_at + KEEP_SECONDS - time.monotonic()
                done, self._running = wait(self._running, max(left, 0.01), FIRST_COMPLETED)
                self._read.extend(chunk.result() for chunk in done)

    def _cut(self, holes: Sequence[Hole], until: tuple[str | None, ...] | None) -> Iterator[Hole]:
        for hole in holes:
            pieces = self._chunks.cut(hole, self._size, until)
            while True:
                with self._connections:
                    piece = next(pieces, None)
                if piece is None:
                    break
                yield piece

    def _size(self) -> int:
        most = self._time.pace.most_rows
        return self._rows if most is None else min(self._rows, most)

    def _read_chunk(self, hole: Hole, begin: CaptureProgress | None, started: float, counted: int) -> ChunkRead:
        name = self._folder.new_chunk()
        with self._connections:
            begun = time.monotonic()
            files = self._chunks.read(hole, self._folder.rows_of(name))
            seconds = time.monotonic() - begun
            end = ReadEnd.of(begin, self._progress(), time.monotonic() - started)
            rows = files.rows().count()
        self._time.pace.read(rows - counted)
        self._rows = next_size(self._rows, rows, seconds, self._seconds)
        inside = self._folder.inside(name, files.files)
        entry = ChunkRead(name, hole.after, hole.last, rows, inside, files.schema.json(), end, self._without)
        self._folder.add(entry)
        with self._lock:
            number, before = self._done
            self._done = (number + 1, before + rows)
        log.info(
            "%s: chunk %d of %d rows is copied in %.1f s; %d of about %d rows are there",
            self._table, number + 1, rows, seconds, before + rows, max(self._expected, before + rows),
        )  # fmt: skip
        return entry
