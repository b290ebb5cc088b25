"""Writers that overlap in the log of a harsh server: places in it that are left to transactions that come later."""

from __future__ import annotations

import datetime
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from airflow_provider_mssql_cdc.sandbox.engine.cdc.keys import Keys, keys_of
from airflow_provider_mssql_cdc.sandbox.engine.cdc.lsn import Log
from airflow_provider_mssql_cdc.sandbox.engine.log import LogRecord, RowImages, log_records

_MOST_HOLES = 4
_LARGEST = 16  # positions
_MOST_ROWS = 1000  # of a commit behind which the holes are kept

Records = tuple[LogRecord, ...]


@dataclass(slots=True)
class _Hole:
    """Free positions before a commit.

    :param time: of that commit
    :param written: the keys of the rows that were written by it and by those after it
    """

    first: int
    size: int
    time: datetime.datetime
    written: set[tuple[object, ...]] = field(default_factory=set)


class Holes:
    """The holes of one log. A transaction that takes one looks as if it had begun before commits that it followed.

    A row stays locked from the log record of its change to the commit: so nothing goes into a hole that changes a row
    which a commit behind the hole has changed, and nothing of a table whose definition changed behind it, or which has
    been enabled since.
    """

    def __init__(self) -> None:
        self._holes: deque[_Hole] = deque(maxlen=_MOST_HOLES)

    def clear(self) -> None:
        """Leave no hole that is there to anybody."""
        self._holes.clear()

    def leave(self, log: Log, time: datetime.datetime, source: random.Random) -> None:
        """Leave a hole before a commit, if it is so drawn.

        :param time: of the commit
        """
        size = source.randint(0, _LARGEST)
        if size:
            self._holes.append(_Hole(log.reserve(size), size, time))

    def filled(
        self, begin: int, begin_time: datetime.datetime, records: Records, source: random.Random
    ) -> tuple[int, datetime.datetime, Records]:
        """Where a transaction begins and what its records are as it lies in the log.

        :param source: draws whether its beginning, and how many of its first rows, lie in a hole
        """
        earlier = [each for each in self._holes if each.first < begin]
        if not earlier or source.random() < 0.5:
            return begin, begin_time, records
        hole = source.choice(earlier)
        free = 0
        for keys in _keys_of_log_records(records, hole.size - 1):
            if not hole.written.isdisjoint(keys):
                break
            free += 1
        self._holes.remove(hole)
        place, left = hole.first + 1, source.randint(0, free)
        moved = []
        for record in records:
            early = min(left, log_records(record.record))
            moved.append(replace(record, early=early, hole=place))
            place, left = place + early, left - early
        return hole.first, min(begin_time, hole.time), tuple(moved)

    def written(self, records: Records) -> None:
        """Note what a commit has written."""
        images = [each.record for each in records if isinstance(each.record, RowImages)]
        if len(images) < len(records) or sum(map(log_records, images)) > _MOST_ROWS:
            self.clear()
        if not self._holes:
            return
        found = {
            key
            for each in images
            for rows in (each.before, each.after)
            if rows is not None
            for keys in keys_of(each.table, rows)
            for key in keys
        }
        for hole in self._holes:
            hole.written |= found


def _keys_of_log_records(records: Records, most: int) -> Iterator[Keys]:
    """The keys of the rows that a transaction's first log records write, up to a change of a definition."""
    for each in records:
        if most <= 0 or not isinstance(each.record, RowImages):
            return
        images, table = each.record, each.record.table
        old = [] if images.before is None else keys_of(table, images.before.slice(0, most))
        new = [] if images.after is None else keys_of(table, images.after.slice(0, most))
        changed = [before | after for before, after in zip(old, new, strict=True)] if old and new else old or new
        # an update may have two log records for each row; of the second ones only the insert counts
        count = log_records(images)
        yield from [*changed, *new][: min(most, count)] if old and new else changed
        most -= count
