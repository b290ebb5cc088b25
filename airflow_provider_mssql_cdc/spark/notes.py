"""What is noted of one table's load, for its receipt: what was done, failures of some sinks alone, warnings, times."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from airflow_provider_mssql_cdc.core.receipt import CopyingReceipt, JobError, SinkReceipt, TableReceipt
from airflow_provider_mssql_cdc.core.table import TableName

_NOTHING = ("already", "empty")


class Notes:
    """What is noted of one table's load.

    :ivar done: shape to what became of that sink
    :ivar copying: the copy that the next run goes on with
    :ivar ended_copy: the copy that has ended, with how
    :ivar counts: of what was read
    :ivar windows: that were read
    :ivar failed: shape to why that sink was not loaded, and to the table that was written to then
    :ivar writing: the target table to which a commit is under way
    :ivar seconds: wall time by step
    :ivar warnings: for people, each once
    :ivar waiting_ids: column_ids that wait to be asked for
    """

    def __init__(self) -> None:
        self.done: dict[str, SinkReceipt] = {}
        self.copying: CopyingReceipt | None = None
        self.ended_copy: str | None = None
        self.counts: dict[str, int] = {}
        self.windows: tuple[str, ...] = ()
        self.failed: dict[str, tuple[Exception, str | None]] = {}
        self.writing: str | None = None
        self.seconds: dict[str, float] = {}
        self.warnings: list[str] = []
        self.waiting_ids: tuple[int, ...] = ()

    @contextmanager
    def alone(self, *shapes: str) -> Iterator[None]:
        """A failure in here is that of these sinks alone: the others are loaded."""
        try:
            yield
        except Exception as error:
            self.failed |= dict.fromkeys(shapes, (error, self.writing))
            self.writing = None

    @contextmanager
    def writes(self, name: str) -> Iterator[None]:
        """A failure in here, such as a full disk, is one of this target table."""
        self.writing = name
        yield
        self.writing = None

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """What is done in here takes the time of a step."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[step] = round(self.seconds.get(step, 0.0) + time.monotonic() - started, 3)

    def warn(self, text: str) -> None:
        """Tell people."""
        if text not in self.warnings:
            self.warnings.append(text)

    def note(self, done: SinkReceipt) -> None:
        """Note what became of a sink, which may have been loaded before in this run."""
        if (earlier := self.done.get(done.shape)) is not None:
            outcome = done.outcome if done.outcome not in _NOTHING else earlier.outcome
            done = dataclasses.replace(done, before=earlier.before, outcome=outcome)
        self.done[done.shape] = done

    def receipt(self, name: TableName, failed: Mapping[str, JobError] = MappingProxyType({})) -> TableReceipt:
        """What was done, though it may have ended early.

        :param name: of the source table
        :param failed: shape to why that sink was not loaded
        """
        return TableReceipt(
            name=name,
            sinks=tuple(self.done.values()),
            failed=dict(failed),
            counts=self.counts,
            seconds=self.seconds,
            windows=self.windows,
            warnings=tuple(self.warnings),
            copying=self.copying,
            ended_copy=self.ended_copy,
            waiting_ids=self.waiting_ids,
        )


def merged(parts: Sequence[Notes]) -> Notes:
    """What is noted of the parts of one table's load.

    :param parts: what a later one says of a sink counts
    """
    found = Notes()
    for part in parts:
        for done in part.done.values():
            found.note(done)
        found.failed |= part.failed
        found.copying = found.copying or part.copying
        found.ended_copy = found.ended_copy or part.ended_copy
        found.counts, found.windows = part.counts or found.counts, part.windows or found.windows
        found.writing = found.writing or part.writing
        found.waiting_ids = found.waiting_ids or part.waiting_ids
        for step, value in part.seconds.items():
            found.seconds[step] = round(found.seconds.get(step, 0.0) + value, 3)
        for text in part.warnings:
            found.warn(text)
    return found
