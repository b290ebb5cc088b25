"""What a job is told of a table's copy: the one that is known, how it reads, and what a person asks of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KnownCopy:
    """A copy that the checkpoint knows.

    :param place: where it lies
    :param host: that can read it; None where every host can
    :param left: rows that are still to be read, more or less
    :param fills: whether it fills columns that loaded sinks lack
    """

    id: str
    place: str
    host: str | None = None
    left: int = 0
    fills: bool = False


AUTO, SNAPSHOT, READ_COMMITTED = "auto", "snapshot", "read_committed"
ISOLATIONS = (AUTO, SNAPSHOT, READ_COMMITTED)
"""How copies read: by SNAPSHOT where the database allows it, by nothing else, or never."""

COPY, PAUSE, STOP = "copy", "pause", "stop"

ASKED_COPY = "copy"
"""Stands in a receipt's failures for the copy that a person asks for, which is no sink's."""


@dataclass(frozen=True, slots=True)
class AskedCopy:
    """What a person asks of a table's copy.

    :param id: names it in the markers of sinks that have it
    :param wanted: ``COPY`` goes on with it, ``PAUSE`` keeps changes and reads no rows, ``STOP`` ends it
    :param of_loaded: it is for sinks that are loaded, too: what differs there is written
    :param reason: why it is stopped, where no person has said so
    :param where: conditions of the rows that are to be compared, as the JSON of an entry's ``where``; '' for all rows
    """

    id: str
    wanted: str = COPY
    of_loaded: bool = True
    reason: str | None = None
    where: str = ""
