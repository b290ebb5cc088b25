"""What is noted of one table's load: failures, each of some sinks alone, warnings and times."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Notes:
    """What is noted of one table's load.

    :ivar failed: shape to why that sink was not loaded, and to the table that was written to then
    :ivar writing: the target table to which a commit is under way
    :ivar seconds: wall time by step
    :ivar warnings: for people, each once
    """

    def __init__(self) -> None:
        self.failed: dict[str, tuple[Exception, str | None]] = {}
        self.writing: str | None = None
        self.seconds: dict[str, float] = {}
        self.warnings: list[str] = []

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
