"""Who may write to a database: one transaction per table at a time, or one alone; and who waits for whom."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from airflow_provider_mssql_cdc.sandbox.protocol import SqlError

_LOOK = 0.2  # seconds after which who waits looks whether it was cancelled


class Locks:
    """The locks of one database, from a transaction's first write to its end.

    Readers that keep what they read locked hinder only who takes that away.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._whole: object | None = None
        self._tables: dict[int, object] = {}
        self._readers: set[object] = set()
        self._waiting: dict[object, Callable[[], set[object]]] = {}
        self._wait_for_whole: set[object] = set()

    def share(self, reader: object) -> None:
        """Note a reader that keeps its locks until it releases them."""
        with self._condition:
            self._readers.add(reader)

    def acquire(
        self,
        owner: object,
        table: int | None,
        timeout: float | None,
        cancelled: Callable[[], bool],
        *,
        alone: bool = False,
    ) -> None:
        """Wait for a lock; an owner that has it already goes on.

        :param table: its object id, None for the whole database
        :param timeout: seconds, None for ever
        :param alone: an owner that has the whole database waits for the readers, too
        :raises SqlError: 1222 when the time is over; 1205 for who would wait for one that waits for it
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._condition:
            had_whole = self._whole is owner
            if table is None:
                self._wait_for_whole.add(owner)
            try:
                self._wait(owner, lambda: self._in_the_way(owner, table), deadline, cancelled)
                if table is None:
                    self._whole = owner
                else:
                    self._tables[table] = owner
                if alone:
                    self._wait(owner, lambda: self._readers - {owner}, deadline, cancelled)
            except SqlError:
                if self._whole is owner and not had_whole:
                    self._whole = None
                self._condition.notify_all()
                raise
            finally:
                self._wait_for_whole.discard(owner)

    def _in_the_way(self, owner: object, table: int | None) -> set[object]:
        found = {self._whole}
        if table is None:
            found.update(self._tables.values())
        else:
            found.add(self._tables.get(table))
            if owner not in self._readers and owner not in self._tables.values():
                found |= self._wait_for_whole  # who has nothing yet comes after them, or they might wait for ever
        return found - {None, owner}

    def _wait(
        self,
        owner: object,
        in_the_way: Callable[[], set[object]],
        deadline: float | None,
        cancelled: Callable[[], bool],
    ) -> None:
        self._waiting[owner] = in_the_way
        try:
            while in_the_way():
                if self._waits_for_itself(owner):
                    raise SqlError.of(1205, getattr(owner, "session_id", 0))
                left = _LOOK if deadline is None else min(_LOOK, deadline - time.monotonic())
                if left <= 0:
                    raise SqlError.of(1222)
                if cancelled():
                    raise SqlError.of(3617)
                self._condition.wait(left)
        finally:
            del self._waiting[owner]

    def _waits_for_itself(self, owner: object) -> bool:
        seen: set[object] = set()
        following = [owner]
        while following:
            waits = self._waiting.get(following.pop())
            found = waits() - seen if waits is not None else set()
            if owner in found:
                return True
            seen |= found
            following += found
        return False

    def release(self, owner: object) -> None:
        """Give up all that the owner has."""
        with self._condition:
            self._readers.discard(owner)
            if self._whole is owner:
                self._whole = None
            self._tables = {table: each for table, each in self._tables.items() if each is not owner}
            self._condition.notify_all()
