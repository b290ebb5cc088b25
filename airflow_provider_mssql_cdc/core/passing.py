"""Whether the capture has seen all that was committed before a copy ended."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_mssql_cdc.core.interval import SLIGHTLY
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.zones import may_be_repeated

# session 0 sums up all sessions since the server started (docs: sys.dm_cdc_log_scan_sessions)
EMPTY_SCANS = (
    "(SELECT empty_scan_count FROM sys.dm_cdc_log_scan_sessions WHERE session_id = 0"
    # in an availability group a scan may find nothing because a replica is down
    " AND NOT EXISTS (SELECT * FROM sys.databases WHERE database_id = DB_ID() AND replica_id IS NOT NULL))"
)
"""T-SQL of ``CaptureProgress.empty_scans``, for a login with VIEW DATABASE STATE."""

NO_SCANS = "CAST(NULL AS int)"
"""The same for one without."""

_FALL = datetime.timedelta(seconds=2)
"""By how much a commit may be later than the clock, or than one behind it, before the clock is said to have gone back.

As little as clocks that go on allow: what is seen to have gone back is judged with more care.
"""

_REPEATED = datetime.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class CaptureProgress:
    """How far the capture is, by the server's own clock.

    :param now: the server's local time
    :param max_lsn: newest mapped LSN
    :param max_time: its ``tran_end_time``
    :param empty_scans: log scans that found nothing since the server started; None where the login cannot see them, or
        where they prove nothing, in an availability group
    :param latest: the largest ``tran_end_time`` of all
    :param utc_offset_minutes: of the server's clock
    """

    now: datetime.datetime
    max_lsn: Lsn | None
    max_time: datetime.datetime | None
    empty_scans: int | None
    latest: datetime.datetime | None
    utc_offset_minutes: int
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)


class CopyEnd:
    """The end of a copy.

    The capture has passed it when two more log scans found nothing: the second of them began after the end. Or when it
    has mapped a new commit that is later, by the server's clock, than all that this showed before the end. The second
    is worth as much as the clock: one that went back gives commits of before the end later times. By up to
    ``SLIGHTLY`` it may have gone back unseen; by more it is seen to, once a commit is later than the clock itself, and
    while the table is copied by the time that has really gone by; an hour that is repeated is told by the offset.

    Where it was seen to, scans that found nothing prove the end, as ever; and, since none are seen in an availability
    group, a commit that is later than every time which the clock showed before it went back: the latest commit of
    before is known once one of after it, and so an earlier one, is the newest. A clock that was set back before the
    copy, beside a capture that lags by more than that, leaves no trace where no scan is seen.

    :param begin: what was seen before the copy
    :param end: what was seen after it
    :param elapsed: seconds between the two, by the clock of this machine
    :ivar is_doubted: whether the server's clock was seen to have gone back
    """

    def __init__(self, begin: CaptureProgress, end: CaptureProgress, elapsed: float) -> None:
        self._end = end
        shown = max(end.now, begin.now + datetime.timedelta(seconds=elapsed))
        if may_be_repeated(end.now, end.utc_offset_minutes):
            shown += _REPEATED
        self._shown = shown
        self.is_doubted = False
        self._peak: datetime.datetime | None = None
        self._note(begin)
        self._note(end)

    @property
    def moment(self) -> datetime.datetime:
        """The end, by the server's clock."""
        return self._end.now

    def is_passed(self, now: CaptureProgress) -> bool:
        """Whether the capture has passed it. What was seen of the clock is kept for the next time.

        :param now: what is seen now
        """
        end = self._end
        if end.empty_scans is not None and now.empty_scans is not None and now.empty_scans >= end.empty_scans + 2:
            return True
        self._note(now)
        is_newer = now.max_lsn is not None and (end.max_lsn is None or now.max_lsn > end.max_lsn)
        if not is_newer or now.max_time is None:
            return False
        shown = self._shown
        if self.is_doubted:
            if self._peak is None:
                return False
            shown = max(shown, self._peak)
        is_last = now.latest is None or now.max_time >= now.latest - _FALL
        return is_last and now.max_time > shown + SLIGHTLY

    def _note(self, seen: CaptureProgress) -> None:
        """Keep whether the clock went back, and the latest time of before once commits of after it are mapped."""
        if seen.latest is None:
            return
        if seen.latest > seen.now + _FALL:
            self.is_doubted = True
            if self._peak is not None and seen.latest > self._peak:
                self._peak = None  # it went back once more
        if self.is_doubted and seen.max_time is not None and seen.max_time < seen.latest - SLIGHTLY:
            self._peak = seen.latest
