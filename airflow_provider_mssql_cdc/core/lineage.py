"""Positions with what proves them, and whether a database's log lineage is still the one that they were reached in."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from airflow_provider_mssql_cdc.core.exceptions import RESET_ADVICE, RestoredError, SourceRestoredError
from airflow_provider_mssql_cdc.core.passing import CaptureProgress
from airflow_provider_mssql_cdc.core.position import Lsn, Position, Version
from airflow_provider_mssql_cdc.core.table import SAME_TIME, TableName

EXACT, CONVERGING = "exact", "converging"
"""How rows are read by Change Tracking: as of one moment, that of the version; or so that rows may be newer than the
version, and are right once writers rest and one more run was made.
"""


@dataclass(frozen=True, slots=True)
class CommitRow:
    """A row of ``sys.dm_tran_commit_table``: which transaction has a version.

    :param version: ``commit_ts``
    :param transaction: ``xdes_id``
    :param place: in the log, ``commit_lbn``
    """

    version: int
    transaction: int
    place: int
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class TrackedSince:
    """What is another one once a table was truncated, or Change Tracking switched off and on for it.

    The version that was read last may still count as valid then: on a quiet database it is the lowest valid one.

    :param begin_version: of ``sys.change_tracking_tables``; None where the login does not see it
    :param side_object_id: of its side table in ``sys.internal_tables``; None where the login does not see it
    :param reads: how a job has read the rows up to the version: ``EXACT`` or ``CONVERGING``; '' where none did
    :param held: whether the table had rows at the version; None where it was not asked, since it is not the lowest
        valid one
    :param commit: the newest one of the database at or below the version; None where the login does not see it
    """

    begin_version: int | None = None
    side_object_id: int | None = None
    reads: str = field(default="", compare=False)
    held: bool | None = field(default=None, compare=False)
    commit: CommitRow | None = field(default=None, compare=False)
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)

    def differs(self, now: TrackedSince) -> bool:
        """Whether another tracking has begun, as far as both are known."""
        pairs = ((self.begin_version, now.begin_version), (self.side_object_id, now.side_object_id))
        return any(then != found for then, found in pairs if then is not None and found is not None)


@dataclass(frozen=True, slots=True)
class Witness:
    """What was seen of a position: of an LSN the largest one of ``cdc.lsn_time_mapping`` at or below it, and its
    ``tran_end_time``.

    As long as the mapping still reaches back to it, it must be found there unchanged: otherwise the database was
    restored, or CDC was enabled anew, and positions of before mean nothing.

    :param recovery_fork: ``recovery_fork_guid`` of ``sys.database_recovery_status``; None where it was not seen
    :param tracking: of a version, since when Change Tracking tracks the table (``TrackedSince``); None of an LSN
    """

    lsn: Position
    time: datetime.datetime
    recovery_fork: str | None = None
    tracking: TrackedSince | None = None
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)

    KIND: ClassVar[str] = "lsn"


@dataclass(frozen=True, slots=True)
class OtherPosition:
    """A position of another kind than LSNs, such as a sync version of Change Tracking, with what proves it.

    :param position: with its ``kind``
    :param witness: of it, with its ``kind``
    :param lsn: the LSN that it belongs to, or from which it may be used; None where it stands by itself
    :param noted_at: when it was noted; None where nobody asks
    :param purpose: what it is kept for
    :param seen: how far the capture was when it was noted; None where nobody asks
    :param column_upto: the highest column_id that the table had, read behind it: columns with a higher one were added
        later; None where nobody asks
    """

    position: dict[str, Any]
    witness: dict[str, Any] | None = None
    lsn: Lsn | None = None
    noted_at: datetime.datetime | None = None
    purpose: str | None = None
    seen: CaptureProgress | None = None
    column_upto: int | None = None
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)


class Lineage(Protocol):
    """What a source says now, by which positions of before are judged."""

    @property
    def newest(self) -> Position | None:
        """The newest position; None while there is none."""

    def witnesses(self) -> list[Witness]:
        """The witness of each position that is known here."""

    def other_fork(self, fork: str | None) -> str | None:
        """Say that the recovery fork is another; None where it is the same, or one is not known."""

    def tracked_anew(self, witness: Witness | None) -> str | None:
        """Say that another tracking of the table has begun since, before which changes are not all told though its
        positions hold; None where nothing shows that.
        """

    def contradiction(self, position: Position, witness: Witness | None) -> str | None:
        """Say what shows that a position is not of this lineage; None where nothing does.

        :param witness: of the position; None where there was none
        """


@dataclass(frozen=True, slots=True)
class LogHistory:
    """What ``cdc.lsn_time_mapping`` says now.

    :param max_lsn: ``sys.fn_cdc_get_max_lsn()``, None while nothing was captured
    :param min_mapped: the smallest ``start_lsn``
    :param mapped: ``start_lsn`` to ``tran_end_time`` of those LSNs that were asked for and are there
    :param recovery_fork: ``recovery_fork_guid`` of ``sys.database_recovery_status``; None where the login cannot see it
    """

    max_lsn: Lsn | None
    min_mapped: Lsn | None
    mapped: Mapping[Lsn, datetime.datetime] = field(default_factory=dict)
    recovery_fork: str | None = None

    @property
    def newest(self) -> Lsn | None:
        """The max LSN."""
        return self.max_lsn

    def witnesses(self) -> list[Witness]:
        """The witness of each mapped LSN that is known here."""
        return [Witness(lsn, time, self.recovery_fork) for lsn, time in self.mapped.items()]

    def other_fork(self, fork: str | None) -> str | None:
        """Say that the recovery fork was this one and is another; None where it is the same, or one is not known."""
        return _other_fork(fork, self.recovery_fork)

    def tracked_anew(self, witness: Witness | None) -> str | None:
        """Nothing: a captured table cannot be truncated, and an instance that is made anew is another one."""
        return None

    def contradiction(self, position: Position, witness: Witness | None) -> str | None:
        """Say what shows that a position belongs to another lineage: that the database was restored, or CDC enabled
        anew; None where nothing does.

        :param witness: of the position; None where there was none
        """
        if self.max_lsn is None or self.min_mapped is None:
            return "cdc.lsn_time_mapping is empty"
        if max(position, witness.lsn if witness else position) > self.max_lsn:
            return f"the newest position of the database is {self.max_lsn}"
        if witness is None:
            return None
        if other := self.other_fork(witness.recovery_fork):
            return other
        if witness.lsn < self.min_mapped:
            return None
        time = self.mapped.get(Lsn.of(witness.lsn))
        if time is None:
            return f"{witness.lsn} of {witness.time} is missing from cdc.lsn_time_mapping"
        if abs(time - witness.time) >= SAME_TIME:
            return f"{witness.lsn} stands for {time} now, and stood for {witness.time}"
        return None


@dataclass(frozen=True, slots=True)
class VersionHistory:
    """What a database says now of its versions, which count on for as long as it is not restored.

    :param newest: the current version; None while Change Tracking is off
    :param recovery_fork: as ``LogHistory`` has it
    :param tracking: of the one table that is asked about; None where it is not asked for
    :param seen: what was seen of versions that were proven
    :param commits: those that were asked for and are there, by version
    :param min_commit: the lowest version that the database knows a commit of; None where it was not asked for, or the
        login does not see it
    """

    newest: Version | None
    recovery_fork: str | None = None
    tracking: TrackedSince | None = None
    seen: tuple[Witness, ...] = ()
    commits: Mapping[int, CommitRow] = field(default_factory=dict)
    min_commit: int | None = None

    def witnesses(self) -> list[Witness]:
        """What was seen of versions that were proven."""
        return [*self.seen]

    def other_fork(self, fork: str | None) -> str | None:
        """As of ``LogHistory``."""
        return _other_fork(fork, self.recovery_fork)

    def contradiction(self, position: Position, witness: Witness | None) -> str | None:
        """Say that a position is above the current version, of another recovery fork, or behind another commit, as
        after a restore of which the versions have grown beyond it since; None where nothing shows that.

        :param witness: of the position; None where there was none
        """
        if self.newest is None:
            return "Change Tracking is off for the database"
        if position > self.newest:
            return f"the current version of the database is {self.newest.text}"
        if witness is None:
            return None
        then = witness.tracking.commit if witness.tracking is not None else None
        if then is not None and self.min_commit is not None and then.version >= self.min_commit:
            now = self.commits.get(then.version)
            if now is None:
                return f"version {then.version} is missing from sys.dm_tran_commit_table"
            if now != then:
                return f"version {then.version} was drawn by another transaction"
        return self.other_fork(witness.recovery_fork)

    def tracked_anew(self, witness: Witness | None) -> str | None:
        """Say that another tracking of the table has begun since, as far as it is known."""
        then, now = witness.tracking if witness is not None else None, self.tracking
        if then is None or now is None or not then.differs(now):
            return None
        how = f"from version {now.begin_version} on now, and was from {then.begin_version} on"
        if None in (then.begin_version, now.begin_version) or then.begin_version == now.begin_version:
            how = f"in side table {now.side_object_id} now, and was in {then.side_object_id}"
        return f"the table was truncated, or Change Tracking switched off and on for it: it is tracked {how}"


def _other_fork(then: str | None, now: str | None) -> str | None:
    return None if now is None or then in (None, now) else f"the recovery fork was {then} and is {now} now"


def restored(name: TableName, what: str, why: str) -> RestoredError:
    """The error that says of which position the database knows no more.

    :param why: as ``Lineage.contradiction`` says
    """
    return RestoredError(
        f"{what}, but {why}: the database was restored, or CDC or Change Tracking enabled anew.",
        table=str(name),
        advice=RESET_ADVICE,
    )


def check_not_restored(
    name: TableName, seen: Iterable[Witness], lineage: Lineage, recovery_fork: str | None = None
) -> None:
    """Prove that what was read between two moments is of one lineage.

    :param seen: at the first moment, or before it
    :param lineage: at the second one
    :param recovery_fork: at the first one
    :raises SourceRestoredError: if it is not
    """
    seen = [*seen]
    why = next(filter(None, (lineage.contradiction(witness.lsn, witness) for witness in seen)), None)
    if why := why or lineage.other_fork(recovery_fork):
        raise SourceRestoredError(
            f"{why}: the database was restored while it was read.", table=str(name), advice="Run it again."
        )
    if why := next(filter(None, map(lineage.tracked_anew, seen)), None):
        raise SourceRestoredError(f"{why}, while it was read.", table=str(name), advice="Run it again.")
