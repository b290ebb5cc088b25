"""How long and how fast the copies of a run read, over all tables."""

from __future__ import annotations

import datetime
import threading
import time

from airflow_provider_mssql_cdc.core.passing import CaptureProgress

_BURST_SECONDS = 10.0
"""How much of what may be read one chunk may have: it is read as fast as the server gives it."""


class Pace:
    """How fast they read.

    :param rows_per_second: at most, from the first chunk on; None is without limit
    :param throttle_lag: seconds by which the capture may be late while chunks are read; None however late
    """

    def __init__(self, rows_per_second: float | None = None, throttle_lag: float | None = None) -> None:
        self._rate, self._lag = rows_per_second, throttle_lag
        # when all that was read so far will have taken its time
        self._free_at: float | None = None
        self._lock = threading.Lock()
        self._scans: int | None = None
        self._idle_at: datetime.datetime | None = None

    @property
    def heeds_lag(self) -> bool:
        """Whether the capture is to be looked at before each chunk."""
        return self._lag is not None

    @property
    def most_rows(self) -> int | None:
        """The rows that a chunk should have at most."""
        return None if self._rate is None else max(1, int(self._rate * _BURST_SECONDS))

    def read(self, rows: int) -> None:
        """Note that rows are read: what was not read in the time before is not made up for."""
        if self._rate is None:
            return
        with self._lock:
            begin = self._free_at if rows < 0 else max(self._free_at or 0.0, time.monotonic())
            self._free_at = (begin or time.monotonic()) + rows / self._rate

    @property
    def wait(self) -> float:
        """Seconds until the next chunk may be read."""
        with self._lock:
            return 0.0 if self._free_at is None else max(0.0, self._free_at - time.monotonic())

    def is_late(self, progress: CaptureProgress) -> bool:
        """Whether the capture is later than it may be.

        Since that long it has mapped no commit, and no log scan was seen to have found nothing.
        """
        if self._lag is None or progress.max_time is None:
            return False
        with self._lock:
            if progress.empty_scans is not None:
                if self._scans is not None and progress.empty_scans > self._scans:
                    self._idle_at = progress.now
                self._scans = progress.empty_scans
            seen = [time for time in (progress.max_time, self._idle_at) if time is not None]
        return progress.now - max(seen) > datetime.timedelta(seconds=self._lag)


class CopyTime:
    """The time that copies take in a run, from the first of them on.

    :param seconds: None does not end
    """

    def __init__(self, seconds: float | None = None, pace: Pace | None = None) -> None:
        self._seconds, self._begun = seconds, 0.0
        self.pace = pace or Pace()

    def begin(self) -> None:
        """Let the time run, unless it does."""
        self._begun = self._begun or time.monotonic()

    def endless(self) -> CopyTime:
        """Without an end, at the same pace."""
        return CopyTime(None, self.pace)

    @property
    def left(self) -> float | None:
        """Seconds; None where there is no end."""
        return None if self._seconds is None else max(0.0, self._begun + self._seconds - time.monotonic())
