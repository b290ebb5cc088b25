"""Data intervals in the server's own clock, which is the only one that CDC keeps."""

from __future__ import annotations

import datetime
import zoneinfo
from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.exceptions import IntervalError
from airflow_provider_mssql_cdc.core.position import Lsn, Window

Edge = datetime.datetime | str | None
"""The start or end of an interval as it is given: text is ISO 8601, or a commit LSN."""


SLIGHTLY = datetime.timedelta(seconds=10)
"""By how much the times of commits may fall against the order of the log without a clock that was set back."""

_FIRST_YEAR = 1753
"""Of ``datetime`` (docs)."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where the log reaches a time of the server's clock.

    Once there is such a place it stays, whatever the clock does later; and the place of a later time is not below it.
    So intervals that follow each other have each commit once. What ``sys.fn_cdc_map_time_to_lsn`` takes instead is not
    known where times do not follow the log.

    :param lsn: the first of a commit at that time or later
    :param before: the largest mapped LSN below it; None where none is known
    :param back_to: the earliest time that a commit behind it has, where that is before the time again
    """

    lsn: Lsn
    before: Lsn | None
    back_to: datetime.datetime | None

    def after(self, edge: datetime.datetime) -> Lsn:
        """The position before it, at which one interval ends and the next one begins.

        :param edge: the time, as the server's clock showed it
        :raises IntervalError: if nothing is known of the time before, or the clock was set back over it: then commits
            of both sides lie behind it
        """
        if self.before is None:
            raise IntervalError(
                f"nothing is known of the time before {edge} (server time): it is older than what CDC keeps.",
                advice="Choose a later interval; the retention is that of the cleanup job (sys.sp_cdc_help_jobs).",
            )
        if self.back_to is not None and edge - self.back_to > SLIGHTLY:
            raise IntervalError(
                f"the server's clock went back over {edge}, to {self.back_to} or before: what was committed then comes "
                f"behind commits of {edge} and later.",
                advice="Choose an interval whose edges the clock has passed only once.",
            )
        return self.before


def edges(interval: object) -> tuple[Edge, Edge]:
    """The two edges of what was given as an interval.

    :raises IntervalError: if it is anything else than two times or two LSNs
    """
    if isinstance(interval, list | tuple) and len(interval) == 2:
        start, end = interval
        if isinstance(start, datetime.datetime | str) and isinstance(end, datetime.datetime | str):
            return start, end
    raise IntervalError(
        f"interval={interval!r} is not two times, and not two LSNs.",
        advice='Write interval=(start, end), as in ("2026-01-31T00:00:00+00:00", "2026-02-01T00:00:00+00:00"), or '
        "(after, upto), two commit LSNs.",
    )


def window_of(start: Edge, end: Edge) -> Window | None:
    """The window of an interval whose edges are LSNs: behind the first one, up to and with the second; None for times.

    :raises IntervalError: if it is empty or turned round, or one edge is a time
    """
    after, upto = _lsn(start), _lsn(end)
    if after is None and upto is None:
        return None
    if after is None or upto is None:
        raise IntervalError(
            f"interval=({start!r}, {end!r}) is an LSN and a time.", advice="Give two LSNs, or two times with a zone."
        )
    if after >= upto:
        raise IntervalError(
            f"the interval from {after} to {upto} is empty: it begins behind its first LSN.",
            advice="Write the smaller LSN first: interval=(after, upto).",
        )
    return Window(after, upto)


def _lsn(edge: Edge) -> Lsn | None:
    try:
        return Lsn.parse(edge) if isinstance(edge, str) else None
    except ValueError:
        return None


def check_edges(start: Edge, end: Edge) -> None:
    """Refuse an interval as ``window_of`` and ``check_interval`` do.

    :raises IntervalError: saying what is wrong
    """
    if window_of(start, end) is None:
        check_interval(start, end)


def check_interval(start: Edge, end: Edge) -> tuple[datetime.datetime, datetime.datetime]:
    """The interval, unless it is missing, empty or turned round, or an edge has no time zone.

    :raises IntervalError: naming what Airflow's default timetables give
    """
    start, end = _moment(start), _moment(end)
    if start is None or end is None:
        raise IntervalError(
            "the run has no data interval.",
            advice="Runs by asset or by hand have none: pass interval=(start, end), or schedule the DAG with "
            "CronDataIntervalTimetable.",
        )
    if start > end:
        raise IntervalError(
            f"the interval ends at {end.isoformat()}, before its start {start.isoformat()}.",
            advice="Write the earlier time first: interval=(start, end).",
        )
    if start == end:
        raise IntervalError(
            f"the data interval from {start.isoformat()} to {end.isoformat()} is empty.",
            advice="Airflow's default cron timetable gives such intervals: use CronDataIntervalTimetable.",
        )
    return start, end


def _moment(edge: Edge) -> datetime.datetime | None:
    if isinstance(edge, str):
        try:
            moment = datetime.datetime.fromisoformat(edge)
        except ValueError as error:
            raise IntervalError(
                f"{edge!r} is not an ISO 8601 time.", advice=f"Correct interval=; {_HOW_TO_GIVE_A_ZONE}"
            ) from error
    elif edge is None:
        return None
    else:
        moment = edge
    if moment.utcoffset() is None:
        raise IntervalError(
            f"{edge} has no time zone, and CDC is asked in the server's.", advice=f"In interval=, {_HOW_TO_GIVE_A_ZONE}"
        )
    return moment


_HOW_TO_GIVE_A_ZONE = (
    'write the offset, as in "2026-01-31T00:00:00+00:00", or pass a datetime with a zone, as in '
    'pendulum.datetime(2026, 1, 31, tz="Europe/Berlin").'
)


def server_time(moment: datetime.datetime, timezone: str) -> datetime.datetime:
    """A moment as the server's clock showed it, without zone.

    :param moment: with a zone
    :param timezone: IANA name of the server's zone
    :raises IntervalError: if the server's clock showed that time twice, since CDC cannot tell the two apart
        (``tran_end_time`` is a server-local datetime), or if the zone is unknown
    """
    try:
        zone = zoneinfo.ZoneInfo(timezone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError, TypeError) as error:
        raise IntervalError(f"{timezone!r} is not an IANA time zone.", advice="Correct server_timezone.") from error
    try:
        local = moment.astimezone(zone)
    except OverflowError:
        local = None
    if local is None or local.year < _FIRST_YEAR:
        raise IntervalError(
            f"{moment.isoformat()} is no time that SQL Server's datetime holds, which begins in {_FIRST_YEAR}.",
            advice="Correct interval.",
        )
    if local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset():
        raise IntervalError(
            f"{moment.isoformat()} lies in the hour that {timezone} repeats when summer time ends.",
            advice="Choose an interval whose edges lie outside that hour.",
        )
    return local.replace(tzinfo=None)
