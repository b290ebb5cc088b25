"""Data intervals in the server's own clock, which is the only one that CDC keeps."""

from __future__ import annotations

import datetime
import zoneinfo

from airflow_provider_mssql_cdc.core.exceptions import IntervalError


def check_interval(
    start: datetime.datetime | None, end: datetime.datetime | None
) -> tuple[datetime.datetime, datetime.datetime]:
    """Return the interval, unless it is missing, empty or turned round.

    :raises IntervalError: naming what Airflow's default timetables give
    """
    if start is None or end is None:
        raise IntervalError(
            "the run has no data interval.",
            advice="Runs by asset or by hand have none: pass interval=(start, end), or schedule the DAG with "
            "CronDataIntervalTimetable.",
        )
    if start >= end:
        raise IntervalError(
            f"the data interval from {start.isoformat()} to {end.isoformat()} is empty.",
            advice="Airflow's default cron timetable gives such intervals: use CronDataIntervalTimetable.",
        )
    return start, end


def server_time(moment: datetime.datetime, timezone: str) -> datetime.datetime:
    """Return a moment as the server's clock showed it, without zone.

    :param moment: with a zone
    :param timezone: IANA name of the server's zone
    :raises IntervalError: if the server's clock showed that time twice, since CDC cannot tell the two apart
        (``tran_end_time`` is a server-local datetime), or if the zone is unknown
    """
    try:
        zone = zoneinfo.ZoneInfo(timezone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError) as error:
        raise IntervalError(f"{timezone!r} is not an IANA time zone.", advice="Correct server_timezone.") from error
    local = moment.astimezone(zone)
    if local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset():
        raise IntervalError(
            f"{moment.isoformat()} lies in the hour that {timezone} repeats when summer time ends.",
            advice="Choose an interval whose edges lie outside that hour.",
        )
    return local.replace(tzinfo=None)
