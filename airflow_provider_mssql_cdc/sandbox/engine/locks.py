"""Who may write to a database, what readers keep locked until they end, and who waits for whom.

One transaction writes to a table at a time, or one to the whole database. Readers keep rows, or whole tables; there are
no locks of key ranges, and none grow into larger ones. Who changes a table's definition waits for all who have locks of
it, and lets all others wait behind it, readers by row versions too (docs: Sch-M and Sch-S locks).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from airflow_provider_mssql_cdc.sandbox.protocol import SqlError

_LOOK = 0.2  # seconds after which who waits looks whether it was cancelled


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


@dataclass(frozen=True, slots=True)
class Held:
    """What an owner had locked at some moment.

    :param rows: by table
    :param changing: tables whose definition it changes
    """

    whole: bool = False
    written: frozenset[int] = frozenset()
    closed: frozenset[int] = frozenset()
    kept: frozenset[int] = frozenset()
    rows: Mapping[int, frozenset[int]] = field(default_factory=dict)
    reads: bool = False
    changing: frozenset[int] = frozenset()

    @property
    def tables(self) -> frozenset[int]:
        """The tables of which something was locked."""
        return self.written | self.kept | self.rows.keys()


class Locks:
    """The locks of one database, until the transactions end that have them.

    Readers of change tables hinder only who takes these away.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._whole: object | None = None
        self._tables: dict[int, object] = {}
        self._closed: set[int] = set()  # tables that their writer has for itself
        self._kept_tables: dict[object, set[int]] = {}
        self._kept_rows: dict[object, dict[int, set[int]]] = {}
        self._readers: set[object] = set()
        self._standing: dict[object, Collection[int | None]] = {}
        self._waiting: dict[object, Callable[[], set[object]]] = {}
        self._wait_for_whole: set[object] = set()
        self._wanted: dict[object, tuple[int | None, str]] = {}  # the table that who waits asks for, and the mode
        self._changing: dict[int, list[object]] = {}  # who changes a table's definition, or waits to, the first first

    def share(self, reader: object) -> None:
        """Note a reader that keeps its locks until it releases them."""
        with self._condition:
            self._readers.add(reader)

    @property
    def has_readers(self) -> bool:
        """Whether somebody keeps locked what it has read of change tables."""
        return bool(self._readers)

    @contextmanager
    def standing(self, owner: object, tables: Collection[int | None]) -> Iterator[None]:
        """Let nobody change the definition of tables meanwhile, which a statement of the owner reads.

        :param tables: their object ids; None among them stands for schema cdc
        """
        with self._condition:
            self._standing[owner] = tables
        try:
            yield
        finally:
            with self._condition:
                del self._standing[owner]
                self._condition.notify_all()

    def _reading(self, table: int | None) -> set[object]:
        return {each for each, tables in self._standing.items() if table in tables}

    @property
    def alone(self) -> object | None:
        """Who has the whole database."""
        return self._whole

    def writer(self, table: int) -> object | None:
        """Who may write to a table now."""
        return self._whole or self._tables.get(table)

    def is_closed(self, table: int) -> bool:
        """Whether the writer of a table keeps readers by locks out, too."""
        return table in self._closed

    def close(self, owner: object, table: int) -> None:
        """Keep readers by locks out of a table that the owner may write to (TABLOCKX)."""
        with self._condition:
            if self.writer(table) is owner:
                self._closed.add(table)

    def keep_table(self, owner: object, table: int, timeout: float | None, cancelled: Callable[[], bool]) -> None:
        """Wait for the writer of a table, and let nobody else write to it.

        :raises SqlError: 1222, 1205, 3617
        """
        with self._condition:
            with self._asking(owner, table, "S"):
                self._wait(owner, lambda: {self.writer(table)} - {None, owner}, _deadline(timeout), cancelled)
            self._kept_tables.setdefault(owner, set()).add(table)

    def keep_rows(self, owner: object, table: int, rows: Collection[int]) -> None:
        """Let nobody else change or delete rows.

        :param rows: their row identifiers
        """
        with self._condition:
            self._kept_rows.setdefault(owner, {}).setdefault(table, set()).update(rows)

    def wait_for_readers(
        self, owner: object, table: int, rows: Collection[int], timeout: float | None, cancelled: Callable[[], bool]
    ) -> None:
        """Wait until nobody else keeps one of some rows.

        :raises SqlError: 1222, 1205, 3617
        """
        if self._kept_rows:
            self.wait(owner, lambda: self._keepers(table, rows) - {owner}, timeout, cancelled)

    def _keepers(self, table: int, rows: Collection[int]) -> set[object]:
        return {each for each, kept in self._kept_rows.items() if not kept.get(table, set()).isdisjoint(rows)}

    def wait(
        self,
        owner: object,
        in_the_way: Callable[[], set[object]],
        timeout: float | None,
        cancelled: Callable[[], bool],
    ) -> None:
        """Wait until nobody is in the way.

        :param timeout: seconds, None for ever
        :raises SqlError: 1222, 1205, 3617
        """
        with self._condition:
            self._wait(owner, in_the_way, _deadline(timeout), cancelled)

    @property
    def changing(self) -> bool:
        """Whether somebody changes the definition of a table, or waits to."""
        return bool(self._changing)

    def wait_behind_ddl(self, owner: object, table: int, timeout: float | None, cancelled: Callable[[], bool]) -> None:
        """Wait for all who change a table's definition or wait to; who has a lock of the table comes before them.

        :raises SqlError: 1222, 1205, 3617
        """

        def in_the_way() -> set[object]:
            found = self._before(owner, table)
            # who waits for the whole database waits for every lock in it
            return found - self._wait_for_whole if found and self._has_locks(owner) else found

        if self._changing:
            with self._asking(owner, table, "Sch-S"):
                self.wait(owner, in_the_way, timeout, cancelled)

    def _before(self, owner: object, table: int) -> set[object]:
        """Who changes a table's definition, or waits to, and is not behind the owner."""
        waiting = self._changing.get(table, [])
        kept = table in self._kept_tables.get(owner, ()) or table in self._kept_rows.get(owner, {})
        if kept or self._tables.get(table) is owner:
            return set()
        return set(waiting[: waiting.index(owner)] if owner in waiting else waiting)

    def _has_locks(self, owner: object) -> bool:
        return owner in self._tables.values() or owner in self._kept_tables or owner in self._kept_rows

    def acquire(
        self,
        owner: object,
        table: int | None,
        timeout: float | None,
        cancelled: Callable[[], bool],
        *,
        alone: bool = False,
        changes: int | None = None,
    ) -> None:
        """Wait for a lock; an owner that has it already goes on.

        :param table: its object id, None for the whole database
        :param timeout: seconds, None for ever
        :param alone: an owner that has the whole database waits for the readers, too
        :param changes: the table whose definition the owner will change
        :raises SqlError: 1222 when the time is over; 1205 for who would wait for one that waits for it
        """
        deadline = _deadline(timeout)
        with self._condition:
            had_whole = self._whole is owner
            if table is None:
                self._wait_for_whole.add(owner)
            is_new = changes is not None and owner not in self._changing.get(changes, [])
            if changes is not None and is_new:
                self._changing.setdefault(changes, []).append(owner)
            try:
                asked, mode = (changes, "Sch-M") if changes is not None else (table, "X" if table is None else "IX")
                with self._asking(owner, asked, mode):
                    self._wait(owner, lambda: self._in_the_way(owner, table, changes), deadline, cancelled)
                if table is None:
                    self._whole = owner
                else:
                    self._tables[table] = owner
                if alone:
                    self._wait(owner, lambda: (self._readers | self._reading(None)) - {owner}, deadline, cancelled)
            except BaseException:
                if self._whole is owner and not had_whole:
                    self._whole = None
                if changes is not None and is_new:
                    self._leave(owner, {changes})
                self._condition.notify_all()
                raise
            finally:
                self._wait_for_whole.discard(owner)

    def _leave(self, owner: object, tables: Collection[int]) -> None:
        for table in tables:
            self._changing[table].remove(owner)
            if not self._changing[table]:
                del self._changing[table]

    def _in_the_way(self, owner: object, table: int | None, changes: int | None) -> set[object]:
        found = {self._whole}
        keeping = {each for each, tables in self._kept_tables.items() if table is None or table in tables}
        found |= keeping
        if table is None:
            found.update(self._tables.values())
            found.update(self._kept_rows)
        else:
            found.add(self._tables.get(table))
            before = self._before(owner, table)
            # who waits for the whole database waits for every lock in it
            found |= before - self._wait_for_whole if self._has_locks(owner) else before
            if changes is not None:
                found.update(each for each, rows in self._kept_rows.items() if changes in rows)
            if owner not in self._readers and not self._has_locks(owner):
                found |= self._wait_for_whole  # who has nothing yet comes after them, or they might wait for ever
        if changes is not None:
            found |= self._reading(changes)
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

    @contextmanager
    def _asking(self, owner: object, table: int | None, mode: str) -> Iterator[None]:
        """Note for what lock of a whole table, or of the database, an owner may have to wait meanwhile."""
        with self._condition:
            self._wanted[owner] = (table, mode)
        try:
            yield
        finally:
            with self._condition:
                del self._wanted[owner]

    def now(self) -> list[tuple[object, Held, tuple[int | None, str] | None]]:
        """All who have locks or wait for one: what each has, and the table and mode that it waits for.

        Of who waits for rows it is not said which. None as a table stands for the whole database.
        """
        with self._condition:
            owners = {*self._tables.values(), *self._kept_tables, *self._kept_rows, *self._readers, *self._wanted}
            owners |= {self._whole} - {None}
            return [
                (owner, self.held(owner), self._wanted.get(owner) if owner in self._waiting else None)
                for owner in owners
            ]

    def held(self, owner: object) -> Held:
        """What an owner has locked now."""
        with self._condition:
            written = frozenset(table for table, each in self._tables.items() if each is owner)
            rows = {table: frozenset(kept) for table, kept in self._kept_rows.get(owner, {}).items() if kept}
            kept = frozenset(self._kept_tables.get(owner, ()))
            changing = frozenset(table for table, owners in self._changing.items() if owner in owners)
            return Held(
                self._whole is owner, written, written & self._closed, kept, rows, owner in self._readers, changing
            )

    def give_back(self, owner: object, before: Held) -> Held:
        """Give up what an owner has locked since some moment; what it has then is returned.

        docs (ROLLBACK TRANSACTION): locks taken since a save point are released, conversions of those before are not.
        A table of which something was locked before had a lock itself, so that a lock of all of it since is one.

        :param before: what it had at that moment
        """
        now = self.held(owner)
        with self._condition:
            if now.whole and not before.whole and not before.tables:
                self._whole = None
            kept = {*before.kept, *(now.kept & before.tables)}
            written = {*before.written, *(now.written & (before.kept | (now.closed & before.tables)))}
            for table in now.written - written:
                del self._tables[table]
            self._closed &= self._tables.keys()
            self._kept_tables.pop(owner, None)
            self._kept_rows.pop(owner, None)
            if kept:
                self._kept_tables[owner] = kept
            if before.rows:
                self._kept_rows[owner] = {table: set(rows) for table, rows in before.rows.items()}
            self._leave(owner, now.changing - before.changing)
            if not before.reads:
                self._readers.discard(owner)
            self._condition.notify_all()
        return self.held(owner)

    def release(self, owner: object) -> None:
        """Give up all that the owner has."""
        with self._condition:
            self._readers.discard(owner)
            self._kept_tables.pop(owner, None)
            self._kept_rows.pop(owner, None)
            if self._whole is owner:
                self._whole = None
            self._tables = {table: each for table, each in self._tables.items() if each is not owner}
            self._closed &= self._tables.keys()
            self._leave(owner, [table for table, owners in self._changing.items() if owner in owners])
            self._condition.notify_all()
