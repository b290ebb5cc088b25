"""What a load pushes to XCom as its summary: always with the same keys."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal, TypedDict

Status = Literal["loaded", "quiet", "waiting", "copying", "skipped", "dropped", "failed"]


class TableSummary(TypedDict):
    """One table of a run. Every table has all keys.

    :ivar table: ``schema.table``
    :ivar status: ``loaded``; ``quiet`` (nothing new); ``waiting`` (for the capture); ``skipped`` (CDC is off, and
        ``on_disabled="skip"``); ``copying`` (some shape waits for a copy that the next run goes on with);
        ``dropped`` (the source table is gone, told once); ``failed``
    :ivar position: everything up to this LSN is loaded, or was proven empty; None before the first load
    :ivar reason: what a waiting table waits for; how far a copy is
    :ivar error: why a failed table failed
    :ivar feed: name of the capture instance; None where there is none
    :ivar schema_hash: of the feed's columns; None where there is no feed
    :ivar reads: by Change Tracking, how the job has read it: ``exact``, as of the moment of its version, or
        ``converging``, where rows may be newer; None by change data capture, and where no job ran
    :ivar sinks: shape to ``first_load``, ``healed``, ``loaded``, ``empty``, ``already``, ``copying`` or ``replayed``;
        empty where no job ran
    :ivar windows: ``(after, upto]`` of what was read; before them those that a job has committed whose task was killed
        before it could report them, ``(, upto]`` for a first load. The counts are those of all these windows
    :ivar events: changes, an update counted once
    :ivar copied: rows of a first load, or those by which a gap was healed
    :ivar seconds: of each step of the job
    :ivar warnings: of this table
    """

    table: str
    status: Status
    position: str | None
    reason: str | None
    error: str | None
    feed: str | None
    schema_hash: str | None
    reads: str | None
    sinks: dict[str, str]
    windows: list[str]
    events: int
    inserted: int
    updated: int
    deleted: int
    copied: int
    seconds: dict[str, float]
    warnings: list[str]


class Summary(TypedDict):
    """A run.

    :ivar upto: the cut; None while nothing at all is captured
    :ivar seconds: from the task's first look to its last
    :ivar application: id of the Spark application; None where none ran
    :ivar late: what was seen of a capture that is late; None where it is in time, or where that cannot be known
    :ivar warnings: all of them, those of tables with the table's name
    :ivar copies: what copies went through in this run, in order, each with ``table``, ``id`` and ``event``:
        ``STARTED``, ``IN_PROGRESS``, ``PAUSED``, ``RESUMED``, ``TABLE_SCAN_COMPLETED``, ``COMPLETED`` or ``ABORTED``;
        where there are such with ``rows``, ``chunks``, ``expected`` (rows), ``last`` and ``highest`` (keys), ``shapes``
        and ``reason``
    :ivar schema_changes: what has changed in the columns of source tables and was given its place in this run, each
        with ``table``, ``lsn``, ``seen_at``, ``found``, ``changes``, ``ddl``, ``schema_before`` and ``schema_after``
    :ivar schema_changes_found: how many of these the ``catalogue`` tells of, the ``ddl_history``, or ``both``
    :ivar tables: sorted by name
    """

    upto: str | None
    seconds: float
    application: str | None
    late: str | None
    warnings: list[str]
    copies: list[dict[str, Any]]
    schema_changes: list[dict[str, Any]]
    schema_changes_found: dict[str, int]
    tables: list[TableSummary]


def others(summary: Summary) -> dict[str, int]:
    """What became of the tables that did not fail: status to their number."""
    return Counter(table["status"] for table in summary["tables"] if table["status"] != "failed")


def row(table: str) -> TableSummary:
    """The row of a table of which nothing else is known."""
    return {
        "table": table,
        "status": "quiet",
        "position": None,
        "reason": None,
        "error": None,
        "feed": None,
        "schema_hash": None,
        "reads": None,
        "sinks": {},
        "windows": [],
        "events": 0,
        "inserted": 0,
        "updated": 0,
        "deleted": 0,
        "copied": 0,
        "seconds": {},
        "warnings": [],
    }
