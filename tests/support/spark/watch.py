"""A reader that queries a table's targets all the time while loads go on: never half a window, never one taken back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from tests.support.spark.loads import Loads


class Watch:
    """What a reader finds in a table's shapes while loads go on, and what they hold between the loads."""

    def __init__(self, loads: Loads, table: str) -> None:
        self._loads, self._table = loads, table
        self._seen: list[list[int]] = []
        self.moments: list[list[int]] = []
        self.ended = threading.Event()
        self.at_rest()

    def at_rest(self) -> None:
        """Note what the shapes hold while nothing is written."""
        self.moments.append(self._contents())

    def look(self) -> None:
        """Read each shape once."""
        self._seen.append(self._contents())

    def read(self) -> None:
        """Read until the end, and at least once."""
        # a pause, since the loads have only two cores
        while not self.ended.wait(0.3) or not self._seen:
            self.look()

    def check(self) -> None:
        """Prove that what was read of each shape is what it held between the loads, in the same order."""
        assert self._seen
        for held, seen in zip(zip(*self.moments, strict=True), zip(*self._seen, strict=True), strict=True):
            at = 0
            for contents in seen:
                assert contents in held[at:], "back in time" if contents in held else "half a window"
                at = held.index(contents, at)

    def _contents(self) -> list[int]:
        loads = self._loads
        read = {
            "mirror": loads.mirror,
            "history": loads.history,
            "scd2": loads.versions,
            "transactions": loads.transactions,
        }
        return [hash((shape, *sorted(map(repr, read[shape](self._table))))) for shape in loads.shapes]


@contextmanager
def watched(loads: Loads, table: str) -> Iterator[Watch]:
    """Query a table all the time, in a thread of its own."""
    watch = Watch(loads, table)
    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(watch.read)
        try:
            yield watch
        finally:
            watch.ended.set()
        reader.result()
