"""By which version of Change Tracking a gap of CDC can be healed: each is noted with the LSN from which it may be used.

A version may be used for a position where each transaction up to the version has its commit LSN at or below the
position: then each change behind the position has a version above it. An older one only reads more keys; one that is
too new loses rows.

A version from before a column was added tells which rows may have something else in it than what the statement gave to
all: those that changed since.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_mssql_cdc.core.change_tracking import TrackedTable
from airflow_provider_mssql_cdc.core.key import loose
from airflow_provider_mssql_cdc.core.lineage import OtherPosition
from airflow_provider_mssql_cdc.core.passing import CaptureProgress, CopyEnd
from airflow_provider_mssql_cdc.core.position import Lsn, Position, Version, is_gap
from airflow_provider_mssql_cdc.core.selection import Selection
from airflow_provider_mssql_cdc.core.table import TableSchema

_PURPOSE = "heal"

MOST_NOTED = 32
"""So many versions wait at most for a sink to reach their LSN."""

_MOST_BEFORE_COLUMNS = 8
"""So many versions from before columns were added a sink keeps at most."""


def noted(
    version: Version,
    table: TrackedTable,
    fork: str | None,
    seen: CaptureProgress,
    at: datetime.datetime,
    before: Iterable[OtherPosition] = (),
) -> OtherPosition:
    """A version that was the current one, before the capture has passed the moment at which that was read.

    :param table: as it was tracked then
    :param fork: the database's recovery fork; None where the login does not see it
    :param seen: how far the capture was, read behind the version
    :param at: by the clock of this machine
    :param before: what was noted before: by it the server's clock is seen to have gone back since
    """
    position = {"kind": Version.KIND, "at": version.text}
    times = [(each.noted_at, each.seen.now) for each in before if each.noted_at is not None and each.seen is not None]
    shown = max((now + (at - then) for then, now in times if then <= at), default=seen.now)
    seen = dataclasses.replace(seen, now=max(seen.now, shown))
    proof, highest = _proof(table, fork), max(column.column_id for column in table.columns)
    return OtherPosition(position, proof, noted_at=at, purpose=_PURPOSE, seen=seen, column_upto=highest)


def is_noted(found: Iterable[OtherPosition], version: Version, table: TrackedTable, fork: str | None) -> bool:
    """Whether a version of this tracking is among some."""
    proof = _proof(table, fork)
    return any(_heals(each) and _version(each) == version.value and each.witness == proof for each in found)


def _proof(table: TrackedTable, fork: str | None) -> dict[str, Any]:
    """What is another one once the table was made anew, switched off and on, or restored with its database."""
    return {
        "object_id": table.object_id,
        "create_date": table.create_date.isoformat() if table.create_date is not None else None,
        "begin_version": table.since.begin_version,
        "side_object_id": table.since.side_object_id,
        "fork": fork,
    }


def passed(found: Iterable[OtherPosition], now: CaptureProgress, newest: Lsn | None) -> tuple[OtherPosition, ...]:
    """What was noted, with the LSN of each version whose moment the capture has passed by now.

    :param now: how far the capture is
    :param newest: max LSN, read behind that: what log scans had found by then may have been mapped later
    """

    def placed(each: OtherPosition) -> OtherPosition:
        if not _heals(each) or each.lsn is not None or each.seen is None or newest is None:
            return each
        is_passed = CopyEnd(each.seen, each.seen, 0).is_passed(now)
        return dataclasses.replace(each, lsn=newest) if is_passed else each

    return tuple(map(placed, found))


def waiting(found: Iterable[OtherPosition], lowest: Position | None) -> tuple[OtherPosition, ...]:
    """What was noted, without the versions that each sink keeps, or has a newer one for.

    :param lowest: position of the sinks; None where none is loaded
    """
    found = tuple(found)
    left = [each for each in found if _heals(each) and (lowest is None or not _fits(each, lowest))]
    return (*without_versions(found), *_thinned(sorted(left, key=_version)))


def without_versions(found: Iterable[OtherPosition]) -> tuple[OtherPosition, ...]:
    """What others have noted."""
    return tuple(each for each in found if not _heals(each))


def _thinned(found: list[OtherPosition]) -> list[OtherPosition]:
    """At most ``MOST_NOTED`` of some versions: the oldest stays, and others go where they are closest together."""
    while len(found) > MOST_NOTED:
        closest = min(range(1, len(found) - 1), key=lambda n: _version(found[n + 1]) - _version(found[n - 1]))
        found = found[:closest] + found[closest + 1 :]
    return found


def _heals(each: OtherPosition) -> bool:
    return each.purpose == _PURPOSE and each.position.get("kind") == Version.KIND


def _version(each: OtherPosition) -> int:
    return Version.parse(each.position["at"]).value


def _fits(each: OtherPosition, at: Position) -> bool:
    return each.lsn is not None and isinstance(at, Lsn) and each.lsn <= at


@dataclass(frozen=True, slots=True)
class Healing:
    """What heals gaps of a table that is captured.

    :param tracked: the table as Change Tracking has it; None where it does not, or the login may not ask
    :param noted: versions, each with the LSN from which it may be used
    :param copies: a copy of the table closes a gap that Change Tracking cannot heal
    :param current: the database's version
    :param fork: the database's recovery fork; None where the login does not see it
    :param unasked: why nothing of this could be asked; '' where it could
    """

    tracked: TrackedTable | None = None
    noted: tuple[OtherPosition, ...] = ()
    copies: bool = False
    current: Version | None = None
    fork: str | None = None
    unasked: str = ""
    unknown: dict[str, Any] = dataclasses.field(default_factory=dict, compare=False)

    def lacks(self, schema: TableSchema, selection: Selection, *, unique_key: bool) -> str | None:
        """Why Change Tracking heals no gap of the table; None where it may.

        :param schema: what its sinks hold
        :param selection: what of the rows they hold
        :param unique_key: whether the server enforces its key
        """
        if self.unasked:
            return f"it could not be asked: {self.unasked}"
        if self.tracked is None:
            return "Change Tracking is off for it, or the login may not ask about its changes"
        if not unique_key or {*schema.key} != {*self.tracked.primary_key}:
            return f"its rows are told apart by {', '.join(schema.key) or 'nothing'}, not by the primary key"
        if left := [column.name for column in schema.columns if column.kept or column.former]:
            return f"{', '.join(left)} are not in it any more, or were of another type"
        if masked := [name for name in loose(schema, schema.key) if name in selection.masks]:
            return f"mask hides {', '.join(masked)} of its key, and where only its spelling changes nobody can tell"
        return None

    def best(self, found: Iterable[OtherPosition], at: Position | None) -> tuple[OtherPosition, ...]:
        """The newest version that may be used for a position, as a sink keeps it; none where there is none.

        One of another tracking counts only where there is no other: it tells people what has happened.
        """
        fitting = [each for each in found if _heals(each) and at is not None and _fits(each, at)]
        mine = [each for each in fitting if not self._belies(each)]
        return (max(mine or fitting, key=_version),) if fitting else ()

    def kept(self, found: Iterable[OtherPosition], at: Position | None) -> tuple[OtherPosition, ...]:
        """What a sink keeps: the newest version that may be used for its position, and those by which columns can be
        filled that were added since.

        :param found: that it kept before, and that were noted
        """
        found = tuple(found)
        best = self.best(found, at)
        return (*best, *(each for each in self.before_columns(found) if each not in best))

    def before_columns(self, found: Iterable[OtherPosition]) -> tuple[OtherPosition, ...]:
        """The newest versions from before columns were added, as long as their changes are there; the oldest stays."""
        newest = {each.column_upto: each for each in sorted(filter(self._tells_columns, found), key=_version)}
        last = max((upto for upto in newest if upto is not None), default=0)
        if self.tracked is not None:
            last = max(column.column_id for column in self.tracked.columns)
        older = [newest[upto] for upto in sorted(upto for upto in newest if upto is not None and upto < last)]
        return (*older[:1], *older[1:][1 - _MOST_BEFORE_COLUMNS :])

    def _tells_columns(self, each: OtherPosition) -> bool:
        """Whether what changed after a version, and the columns of then, are still known."""
        if not _heals(each) or each.column_upto is None or self._belies(each):
            return False
        version = Version(_version(each))
        lowest = self.tracked.min_valid_version if self.tracked is not None else None
        return not (self.current is not None and version > self.current) and not (lowest and version < lowest)

    def before(self, found: Iterable[OtherPosition], column_id: int) -> Version | None:
        """The newest version from before a column was added; None where none is known.

        :param found: that sinks keep
        """
        told = [each for each in (*found, *self.noted) if self._tells_columns(each)]
        fitting = [each for each in told if each.column_upto is not None and each.column_upto < column_id]
        return Version(max(map(_version, fitting))) if fitting and self.tracked is not None else None

    def _belies(self, each: OtherPosition) -> set[str]:
        """What tells that a version is of another tracking, table or database."""
        if self.tracked is None:
            return set()
        proof, now = each.witness or {}, _proof(self.tracked, self.fork)
        return {name for name, value in now.items() if None not in (value, proof.get(name)) and value != proof[name]}

    def version(self, found: Sequence[OtherPosition], at: Position, readable_from: Position | None) -> Version | str:
        """The version behind which all changes of rows are that a sink lacks; or why there is none.

        :param found: that the sink keeps
        :param at: where it stands
        :param readable_from: the lowest version from which all changes are there
        """
        assert self.tracked is not None
        known = self.best((*found, *self.noted), at)
        if not known:
            return f"no version is known for {at}: on_gap named it too late, or the capture had not passed one"
        version = Version(_version(known[0]))
        changed = self._belies(known[0])
        if {"begin_version", "side_object_id"} & changed:
            return f"it was switched off and on since {version}"
        if changed or self.current is None or version > self.current:
            return f"{version} is of another table or database: one of them was made anew, or restored"
        if is_gap(version, readable_from):
            return f"its changes after {version} were removed, too: it keeps them for too short a time"
        return version


def not_healed(why: str, *, copies: bool = False) -> str:
    """That Change Tracking does not heal a gap, for people.

    :param copies: ``on_gap`` names a copy, too
    """
    what = "The next run asks again." if copies else 'It takes on_gap=["ct", "copy"] to copy the table then.'
    return f"Change Tracking cannot heal it: {why}. {what}"
