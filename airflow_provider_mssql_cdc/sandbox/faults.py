"""Faults that a test asks for: connections that end, waits, deadlocks, and a capture or cleanup that fails."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.engine.cdc.database import CdcDatabase
from airflow_provider_mssql_cdc.sandbox.protocol import ConnectionDropped, Outcome, ResultSet, RowCount, SqlError

# what these run is matched statement by statement
_RUNS_TEXT = re.compile(
    r"(EXEC(UTE)?\s*)?(\(|(\[?sys\]?\.)?\[?sp_(executesql|prepare|execute|prepexec)\b)", re.IGNORECASE
)

Matching = str | Callable[[str], bool]


@dataclass(eq=False)
class Fault:
    """A fault that is switched on, until it has struck often enough, ``end`` is called or its ``with`` is left.

    :ivar count: how often it has struck
    """

    kind: Literal["drop", "delay", "deadlock", "capture", "cleanup"]
    matching: Matching = ""
    times: int | None = None
    rows: int = 0
    seconds: float = 0.0
    count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Fault:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Switch it off."""
        with self._lock:
            self.times = self.count

    def strikes(self, text: str = "") -> bool:
        """Whether it strikes a statement; if so, that counts."""
        matching = self.matching
        if not (matching(text) if callable(matching) else matching.casefold() in text.casefold()):
            return False
        with self._lock:
            if self.times is not None and self.count >= self.times:
                return False
            self.count += 1
            return True


class Faults:
    """The faults of a sandbox. They strike clients, not what ``Sandbox.execute`` and ``Sandbox.seed`` do.

    ``matching`` is a text that a statement contains, in any case, or a function that says of a statement's text
    whether it is meant. A statement is what T-SQL calls so: one of a batch, or of a text that ``sp_executesql`` or a
    prepared handle runs; the conditions of IF and WHILE are none. ``times`` is how many statements are struck, None
    for all until the fault is ended.

    :param cdc: a database's CDC by name, None for the default database
    """

    def __init__(self, cdc: Callable[[str | None], CdcDatabase]) -> None:
        self._cdc = cdc
        self._faults: list[Fault] = []

    def drop(self, matching: Matching = "", *, rows: int = 0, times: int | None = None) -> Fault:
        """End the connection of a client in the middle of a statement's answer.

        The statement itself is done by then: what is not in a transaction stays, and the client is not told.

        :param rows: how many rows of its result reach the client before
        """
        return self._add(Fault("drop", matching, times, rows=rows))

    def delay(self, matching: Matching = "", *, seconds: float, times: int | None = None) -> Fault:
        """Let statements wait before they run; a client that cancels one waits no longer."""
        return self._add(Fault("delay", matching, times, seconds=seconds))

    def deadlock(self, matching: Matching = "", *, times: int | None = None) -> Fault:
        """Make statements deadlock victims: error 1205, and their transaction is rolled back."""
        return self._add(Fault("deadlock", matching, times))

    def capture(self, database: str | None = None, *, times: int | None = None) -> Fault:
        """Let log scans that find something fail: nothing is delivered, and sys.dm_cdc_errors says so.

        The capture job tries again at its next run; meanwhile everything waits in the log.

        :param database: None for the sandbox's default database
        :param times: how many scans fail, None for all until the fault is ended
        """
        fault = Fault("capture", times=times)
        self._cdc(database).fault = fault.strikes
        return fault

    def cleanup(self, database: str | None = None, *, step: int = 2, times: int | None = None) -> Fault:
        """Let a step of the runs of the cleanup job and of sys.sp_cdc_cleanup_change_table fail, which ends the run.

        The first step raises the low-water marks; each of the next ones deletes as many rows of one change table as
        the threshold allows; the last one deletes rows of lsn_time_mapping. What was done before the step stays, and
        the next run does the rest.

        :param database: None for the sandbox's default database
        :param step: which of them, from 1; runs that have fewer steps go well
        :param times: how many runs fail, None for all until the fault is ended
        """
        fault = Fault("cleanup", times=times)
        self._cdc(database).cleanup_fault = lambda number: number == step and fault.strikes()
        return fault

    def _add(self, fault: Fault) -> Fault:
        active = [each for each in self._faults if each.times is None or each.count < each.times]
        self._faults = [*active, fault]
        return fault

    def around(
        self, text: str, outcomes: Iterator[Outcome], session_id: int, pause: Callable[[float], bool]
    ) -> Iterator[Outcome]:
        """A statement's outcomes as the faults leave them.

        :param outcomes: run the statement when they are asked for
        :param pause: waits for some seconds; true if it was cancelled
        :raises SqlError: 1205, 3617 where a delay was cancelled
        :raises ConnectionDropped: where the client gets no more
        """
        if _RUNS_TEXT.match(text):
            return outcomes
        for fault in self._faults:
            if fault.strikes(text):
                outcomes = _struck(fault, outcomes, session_id, pause)
        return outcomes


def _struck(
    fault: Fault, outcomes: Iterator[Outcome], session_id: int, pause: Callable[[float], bool]
) -> Iterator[Outcome]:
    if fault.kind == "delay" and pause(fault.seconds):
        raise SqlError.of(3617)
    if fault.kind == "deadlock":
        raise SqlError.of(1205, session_id)
    if fault.kind != "drop":
        yield from outcomes
        return
    for outcome in outcomes:
        if isinstance(outcome, ResultSet):
            yield ResultSet(outcome.columns, _first(outcome.batches, fault.rows))
        elif not isinstance(outcome, RowCount):
            yield outcome
    raise ConnectionDropped


def _first(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The first rows, and then the end of the connection."""
    for batch in batches:
        yield batch.slice(0, rows)
        rows -= min(rows, batch.num_rows)
        if not rows:
            break
    raise ConnectionDropped
