"""Statements of other sessions that a harsh server lets happen between two reads, where the seed draws it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from airflow_provider_mssql_cdc.sandbox.engine.harshness import Harshness, Point
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError

_SHARE = 0.25  # of the reads before which one happens, while there are any
_TRY_AGAIN = (1222, 1205)


class Supply:
    """Statements that wait to happen, in their order, each once. Safe to use from several threads.

    :ivar run: runs a statement in a session of its own, in a database; it waits for locks, or gets error 1222
    """

    def __init__(self, harshness: Harshness) -> None:
        self._harshness = harshness
        self._statements: deque[tuple[str, str]] = deque()
        self._failed: list[SqlError] = []
        self._turn = threading.Lock()
        self.run: Callable[[str, str, bool], object] = lambda sql, database, waits: None

    def add(self, statements: Iterable[str], database: str) -> None:
        """Let statements follow those that are there already."""
        self._statements.extend((sql, database) for sql in statements)

    @property
    def left(self) -> list[str]:
        """The statements that have not happened yet."""
        return [sql for sql, _ in list(self._statements)]

    def finish(self) -> None:
        """Run what is left, and wait for locks.

        :raises SqlError: the first error of a statement, here or between two reads; the others were run all the same
        """
        with self._turn:
            while self._statements:
                self._next(waits=True)
            failed, self._failed = self._failed, []
        if failed:
            raise failed[0]

    def may_happen(self, beside: AbstractContextManager[None]) -> None:
        """Run the next statement where that is drawn; one that would wait stays the next one.

        :param beside: what the reader keeps others from meanwhile
        """
        # what a statement of the supply reads is no occasion for the next one
        if not self._statements or not self._turn.acquire(blocking=False):
            return
        try:
            if self._statements and self._harshness.strikes(Point.MEANWHILE, _SHARE):
                with beside:
                    self._next(waits=False)
        finally:
            self._turn.release()

    def _next(self, *, waits: bool) -> None:
        sql, database = self._statements[0]
        try:
            self.run(sql, database, waits)
        except SqlError as error:
            if not waits and error.number in _TRY_AGAIN:
                return
            self._failed.append(error)
        self._statements.popleft()
