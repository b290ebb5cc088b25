"""What the log of a Delta table says: its commits, and which of them made what the table holds."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Row

APPLICATION = "mssql_cdc"
"""The application whose transaction versions the table's log counts (``txnAppId``); a table is one sink's."""

_WITHOUT_FILES = frozenset(
    {"CREATE TABLE", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "UPGRADE PROTOCOL", "VACUUM START", "VACUUM END"}
)
NO_CHANGE_OF_ROWS = _WITHOUT_FILES | {"OPTIMIZE", "REORG", "RESTORE"}
"""Operations that leave the rows as they are, or as they were at a version that is looked at, too."""

_WIDEST_ZONE = datetime.timedelta(hours=18)
"""Java has no time zone that is farther from UTC (docs: ``java.time.ZoneOffset``)."""

_MOST_COMPARED = 200
"""Versions that are compared in full with the restored one before it is left to a person."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of the table.

    :param back_to: the version that a RESTORE went back to; several where the log names a moment, not its time zone
    :param load: what a commit of this package says of itself: ``attempt``, ``txn``, ``marker``, and ``follows``, the
        attempt whose marker it found; None there is a table without marker
    :param files_added: data files that it wrote, or brought back; None where the log does not tell
    """

    version: int
    time: datetime.datetime
    operation: str
    back_to: tuple[int, ...]
    load: Mapping[str, Any] | None
    files_added: int | None


@dataclass(frozen=True, slots=True)
class Line:
    """Where the way back from a version leads.

    :param marked: the nearest commit with a marker
    :param written: whether others may have changed rows since
    :param end: where there is none, the version that the log does not know; negative before the first
    """

    marked: Commit | None
    written: bool
    end: int

    @property
    def attempt(self) -> str | None:
        """What the marked commit is told by."""
        if self.marked is None or self.marked.load is None:
            return None
        attempt: str = self.marked.load["attempt"]
        return attempt


class UnclearMomentError(Exception):
    """A RESTORE went to a moment that is one or another version, by the time zone, which the log does not tell."""

    def __init__(self, restore: Commit) -> None:
        super().__init__(restore.version)
        self.restore = restore


def commits_of(rows: Sequence[Row]) -> dict[int, Commit]:
    """The commits by version.

    :param rows: of DESCRIBE HISTORY, the time in UTC
    """
    times = {row["version"]: row["timestamp"] for row in rows}
    return {
        row["version"]: Commit(
            row["version"],
            row["timestamp"],
            row["operation"],
            _back_to(row, times),
            _load(row["userMetadata"]),
            _files_added(row),
        )
        for row in rows
    }


def most_files(commits: Mapping[int, Commit]) -> int | None:
    """As many files as the table can have at most; None where the log does not know all of its commits."""
    added = [commit.files_added for commit in commits.values()]
    return None if 0 not in commits or None in added else sum(number or 0 for number in added)


def line(commits: Mapping[int, Commit], version: int, same: Callable[[int, int], bool]) -> Line:
    """Go back from a version to the commit whose marker says what the table held then.

    :param same: whether the table may hold the same rows at two versions; asked where a RESTORE names a moment
    :raises UnclearMomentError: if that does not tell the version either
    """
    written = False
    while version in commits:
        commit = commits[version]
        if commit.load is not None and commit.load["marker"] is not None:
            return Line(commit, written, version)
        if len(commit.back_to) > 1:
            ways = {then: line(commits, then, same) for then in commit.back_to}
            if _differ(ways) and len(ways) <= _MOST_COMPARED:
                ways = {then: way for then, way in ways.items() if same(commit.version, then)}
            if not ways or _differ(ways):
                raise UnclearMomentError(commit)
            any_written = written or any(way.written for way in ways.values())
            return replace(next(iter(ways.values())), written=any_written)
        # this package's commits without marker only add rows
        written = written or (commit.load is None and commit.operation not in NO_CHANGE_OF_ROWS)
        version = commit.back_to[0] if commit.back_to else version - 1
    return Line(None, written, version)


def _differ(ways: Mapping[int, Line]) -> bool:
    return len({(way.attempt, way.end) for way in ways.values()}) > 1


def _back_to(row: Row, times: Mapping[int, datetime.datetime]) -> tuple[int, ...]:
    """The versions that a RESTORE may have gone back to.

    Delta writes a moment down as text without its zone, and takes it in the zone of the session of then.
    """
    parameters = row["operationParameters"] or {}
    if row["operation"] != "RESTORE":
        return ()
    if parameters.get("version") is not None:
        return (int(parameters["version"]),)
    moment = datetime.datetime.fromisoformat(parameters["timestamp"])
    lowest, highest = moment - _WIDEST_ZONE, moment + _WIDEST_ZONE
    earlier = {version: time for version, time in times.items() if version < row["version"]}
    first = max((version for version, time in earlier.items() if time <= lowest), default=None)
    others = sorted(version for version, time in earlier.items() if lowest < time <= highest)
    if first is None and min(times) == 0 and others:
        return tuple(others)
    # the log forgets its oldest commits, and the table may have been restored to one of them
    return (min(times) - 1 if first is None else first, *others)


_FILES_ADDED = ("numFiles", "numAddedFiles", "numTargetFilesAdded", "numRestoredFiles")
"""Metrics of the operations that add files (docs: Delta, operation metrics keys)."""


def _files_added(row: Row) -> int | None:
    if row["operation"] in _WITHOUT_FILES:
        return 0
    metrics = row["operationMetrics"] or {}
    return next((int(metrics[name]) for name in _FILES_ADDED if name in metrics), None)


def _load(metadata: str | None) -> Mapping[str, Any] | None:
    """What a commit of this package says of itself; others may write metadata of their own."""
    try:
        said = json.loads(metadata or "")
    except ValueError:
        return None
    found: Mapping[str, Any] | None = said.get(APPLICATION) if isinstance(said, dict) else None
    return found
