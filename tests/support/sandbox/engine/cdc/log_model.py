"""What a log with its change rows may look like, in plain Python: the rules that every writer keeps."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Hashable, Sequence
from typing import NamedTuple


class Written(NamedTuple):
    """A captured transaction.

    :param rows: the LSNs of its row changes in the order of its statements, each with the keys that it locks
    """

    begin: bytes
    begin_time: datetime.datetime
    rows: Sequence[tuple[bytes, frozenset[Hashable]]]
    commit: bytes
    end_time: datetime.datetime


def broken_rules(log: Sequence[Written]) -> set[str]:
    """What is wrong with a log.

    :param log: in the order of the commits; its clock never went back
    """
    found = set()
    commits = [each.commit for each in log]
    if commits != sorted(commits):
        found.add("commits rise")
    places = [place for each in log for place in (each.begin, *(row for row, _ in each.rows), each.commit)]
    if len(set(places)) < len(places):
        found.add("one record for each LSN")
    for each in log:
        own = [each.begin, *(row for row, _ in each.rows), each.commit]
        if own != sorted(own):
            found.add("a transaction lies in its own order")
    times = sorted([(each.begin, each.begin_time) for each in log] + [(each.commit, each.end_time) for each in log])
    if any(one > other for (_, one), (_, other) in itertools.pairwise(times)):
        found.add("what lies before is not later")
    unlocked: dict[Hashable, bytes] = {}
    for each in log:
        for row, keys in each.rows:
            if any(row < unlocked.get(key, b"") for key in keys):
                found.add("a row is locked until the commit")
        unlocked |= {key: each.commit for _, keys in each.rows for key in keys}
    return found


def overlap(log: Sequence[Written]) -> int:
    """How many row changes lie before a commit that precedes their own."""
    return sum(row < before.commit for before, each in itertools.pairwise(log) for row, _ in each.rows)
