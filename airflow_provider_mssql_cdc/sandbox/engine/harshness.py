"""What a harsh server does where SQL Server only may: points that are switched on, and what a seed draws of each."""

from __future__ import annotations

import itertools
import random
import threading
from collections import defaultdict
from collections.abc import Collection, Iterator
from enum import Enum


class Point(Enum):
    """One behaviour that SQL Server has at times, and that can hide a loader's mistake where a test never meets it."""

    ORDER = "rows come in another order where a query asks for none"
    COMMIT = "the capture reads a commit before its rows can be seen"
    ISOLATION = "a new database reads by locks, by row versions, or allows snapshot transactions"
    QUIET = "nothing is mapped until something is captured, or for minutes; min LSN is NULL until then"
    SCAN = "the capture scans between two reads of one statement or batch"
    STEP = "the cleanup job does one step between two reads of one statement or batch"
    MEANWHILE = "a statement of another session runs between two reads of one statement or batch"
    PIECES = "a reader with locks reads fewer rows at a moment"
    OVERLAP = "the first rows of a transaction lie in the log before commits that came before its own"
    SEQVAL = "the insert of a key update lies in the log before its delete"
    CLEANUP = "a run of the cleanup job is still at work when who started it goes on"
    EQUAL_KEYS = "a key that changes in case, width or blanks at the end is captured as an update, in some databases"
    TRACKING = (
        "beside the rows of one statement Change Tracking's version is a newer one, and a key that changed to an equal "
        "text has its first spelling, each in some databases"
    )
    CLOCK = "commits that follow each other have equal times, or slightly earlier ones"


class Harshness:
    """What happens at each point, as a seed draws it. Safe to use from several threads.

    The draws of a point do not depend on those of others: the n-th draw of a point is the same in every run.

    :param seed: of all draws
    :param points: those that are switched on; at all others the answer is the kind one
    """

    def __init__(self, seed: int = 0, points: Collection[Point] = ()) -> None:
        self.seed, self.points = seed, frozenset(points)
        self._lock = threading.Lock()
        self.begin()

    def begin(self, test: str = "") -> None:
        """Start the draws anew, so that a test meets the same ones alone and after others.

        :param test: what they are drawn for
        """
        with self._lock:
            self._test = test
            self._counts: dict[Point, Iterator[int]] = defaultdict(itertools.count)

    def drawn(self, point: Point) -> random.Random | None:
        """The source of a point's next draw; None where the point is switched off."""
        if point not in self.points:
            return None
        with self._lock:
            number = next(self._counts[point])
        return random.Random(f"{self.seed} {self._test} {point.name} {number}")

    def strikes(self, point: Point, share: float = 0.5) -> bool:
        """Whether it happens this time.

        :param share: of the times in which it does, from 0 to 1
        """
        source = self.drawn(point)
        return source is not None and source.random() < share
