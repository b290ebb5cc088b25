"""What a scan or a step of a cleanup has written of schema cdc and not committed, and who waits for it.

Readers by row versions see what was before, readers by locks wait for the tables that it has written, and readers of
what is not committed see those tables as they are, each table for itself. Nothing here takes time: whoever waits lets
the writer go on, so that it ends and nobody waits for ever.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from airflow_provider_mssql_cdc.sandbox.engine.cdc.changes import ChangeRows
from airflow_provider_mssql_cdc.sandbox.engine.cdc.instance import CapturedColumn
from airflow_provider_mssql_cdc.sandbox.engine.cdc.mapping import MappingRow


class View(Protocol):
    """What one reader sees, and into which writes are put that are not committed."""

    def show_changes(
        self, capture_instance: str, changes: ChangeRows, columns: tuple[CapturedColumn, ...] | None = None
    ) -> None:
        """Let a change table have these rows."""

    def show_mapping(self, rows: Iterable[MappingRow]) -> None:
        """Let lsn_time_mapping have these rows too."""

    def show_trimmed(self, mark: bytes) -> None:
        """Let lsn_time_mapping have no rows below an LSN."""

    def show_marks(self, marks: Mapping[str, bytes]) -> None:
        """Let instances have these low-water marks."""


@dataclass(frozen=True, slots=True)
class Write:
    """One write to a table.

    :param table: in schema cdc, in lower case
    :param show: puts into a reader's own view what the table holds then
    """

    table: str
    show: Callable[[View], None]


class Unfinished:
    """A transaction of the capture or of cleanup. Its methods are called under the lock of its database's state.

    :param writes: in their order
    :param commit: makes all of it the state
    :param removes: rows, which are locked then for readers that skip locked ones
    """

    def __init__(self, writes: Sequence[Write], commit: Callable[[], None], *, removes: bool) -> None:
        self._writes, self._commit, self.removes = tuple(writes), commit, removes
        self._done = 0
        self.ended = False

    @property
    def written(self) -> frozenset[str]:
        """The tables that it has written to."""
        return frozenset() if self.ended else frozenset(each.table for each in self._writes[: self._done])

    @property
    def to_write(self) -> frozenset[str]:
        """The tables that it has still to write to."""
        return frozenset() if self.ended else frozenset(each.table for each in self._writes[self._done :])

    def advance(self) -> str | None:
        """Do the next write; its table, or None where all was written and it has committed now."""
        if self.ended:
            return None
        if self._done < len(self._writes):
            self._done += 1
            return self._writes[self._done - 1].table
        self.end()
        return None

    def end(self) -> None:
        """Do all that is left, and commit."""
        if not self.ended:
            self._commit()
            self.ended = True

    def drawn(self, source: random.Random) -> int | None:
        """Take the tables in an order that is drawn; after how many writes it stops, None where there are none."""
        tables = sorted({each.table for each in self._writes})
        source.shuffle(tables)
        self._writes = tuple(sorted(self._writes, key=lambda each: tables.index(each.table)))
        return source.randint(1, len(self._writes)) if self._writes else None

    def show(self, view: View) -> None:
        """Put into a reader's view what was written so far."""
        if not self.ended:
            for each in self._writes[: self._done]:
                each.show(view)


class Turn:
    """The lock of scans, and of whatever takes rows or instances away: who has it finds nothing unfinished.

    :param finish: ends what is unfinished
    """

    def __init__(self, finish: Callable[[], None]) -> None:
        self._lock, self._finish = threading.Lock(), finish

    def __enter__(self) -> None:
        self._lock.acquire()
        try:
            self._finish()
        except BaseException:
            self._lock.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
