"""When the rows of a commit can be seen: with its LSN, or some time after that."""

from __future__ import annotations

import threading

from airflow_provider_mssql_cdc.sandbox.engine.harshness import Harshness, Point

_SHARE = 0.1
_LONGEST = 5.0  # seconds of the server's clock


class Visibility:
    """What lies between a commit's record in the log, which the capture reads, and the end of the commit.

    Readers by row versions see nothing of the transaction until then; who reads by locks waits for them. Safe to use
    from several threads.

    :param rate: seconds of the server's clock in one second
    """

    def __init__(self, harshness: Harshness, rate: float) -> None:
        self._harshness, self._rate = harshness, rate
        self._open = threading.Event()
        self._open.set()

    @property
    def may_be_late(self) -> bool:
        """Whether rows may be seen later than the LSN of their commit."""
        return Point.COMMIT in self._harshness.points or self.held

    @property
    def held(self) -> bool:
        """Whether no commit can be seen until ``release``."""
        return not self._open.is_set()

    def hold(self) -> None:
        """Keep the rows of all commits from now on from being seen: their clients wait, the capture does not."""
        self._open.clear()

    def release(self) -> None:
        """Let all be seen."""
        self._open.set()

    def wait(self) -> None:
        """Come back when the rows of a commit that is in the log can be seen."""
        source = self._harshness.drawn(Point.COMMIT)
        if source is not None and source.random() < _SHARE:
            threading.Event().wait(_LONGEST * source.random() ** 2 / self._rate)
        self._open.wait()
