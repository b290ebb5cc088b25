"""Whether the capture is late: judged by the server's own clock, and by the log scans that it has ended."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.database import AgentHealth, DatabaseStatus, Running
from airflow_provider_mssql_cdc.core.zones import zones

MAX_LAG = datetime.timedelta(minutes=30)
"""How old the newest sign of the capture may be by default: idle, it maps an LSN about every five minutes."""

ON_LAG = ("warn", "fail")

READ_ONLY = "READ_ONLY"
"""What ``DATABASEPROPERTYEX`` says of the ``Updateability`` of a readable secondary."""

_HOUR = datetime.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Lag:
    """What is known of a capture that has mapped no commit for longer than it may.

    :param late: it is known to be late; else nothing can be known about it
    :param text: what was seen, and what to do
    """

    late: bool
    text: str


def is_silent(status: DatabaseStatus, max_lag: datetime.timedelta) -> bool:
    """Whether ``cdc.lsn_time_mapping`` has no row that is younger than ``max_lag``, so that more must be asked.

    All times are the server's local ones. Where its clock was set meanwhile, an age comes out smaller by up to an hour,
    so that a late capture is told later; none that is in time is taken for late.
    """
    newest = status.max_lsn_time
    return status.cdc_enabled and (newest is None or not _is_within(newest, status, max_lag))


def judge(
    status: DatabaseStatus, last_scan: datetime.datetime | None, health: AgentHealth, max_lag: datetime.timedelta
) -> Lag | None:
    """Judge a capture that ``is_silent``.

    :param last_scan: when the last log scan ended, in the server's local time; None where no scan can be seen: for
        want of a right, on a readable secondary, after a restart of the server
    :return: None where a scan ended in time
    """
    if last_scan is not None and _is_within(last_scan, status, max_lag):
        return None
    seen = _seen(status, max_lag)
    if last_scan is not None:
        return Lag(
            True,
            f"the capture of {status.name} is late: {seen}. Its last log scan ended at {_minute(last_scan)}. "
            f"{health.detail}.{'' if health.fails else ' sys.dm_cdc_errors may say why.'}",
        )
    if health.fails or Running.STOPPED in (health.agent, health.capture_job):
        return Lag(True, f"the capture of {status.name} is late: {seen}. {health.detail}.")
    return Lag(
        False,
        f"whether the capture of {status.name} is late cannot be known: {seen}. No log scan can be seen, which takes "
        f"VIEW DATABASE STATE on the primary. {health.detail}.",
    )


def on_secondary(status: DatabaseStatus, max_lag: datetime.timedelta) -> Lag:
    """What can be said of a capture that ``is_silent`` as a readable secondary shows it."""
    return Lag(
        False,
        f"whether the capture of {status.name} is late cannot be known: {_seen(status, max_lag)}. The database is "
        "read-only here, where neither Agent nor log scans are those of its primary.",
    )


def _seen(status: DatabaseStatus, max_lag: datetime.timedelta) -> str:
    newest = status.max_lsn_time
    since = "nothing was ever captured" if newest is None else f"the newest captured commit is of {_minute(newest)}"
    return f"{since}, and the server's clock says {_minute(status.server_time)} (max_lag={max_lag})"


def _is_within(then: datetime.datetime, status: DatabaseStatus, limit: datetime.timedelta) -> bool:
    """Whether a local time of the server is no older than a limit, or only looks older, since clocks went forward.

    The server tells the offset of its clock, but not its zone: so it is any zone that has this offset now, which
    matters in the hours after one of them has changed its clocks.
    """
    age = status.server_time - then
    if age <= limit or age > limit + _HOUR:
        return age <= limit
    offset = datetime.timedelta(minutes=status.utc_offset_minutes)
    now = (status.server_time - offset).replace(tzinfo=datetime.UTC)
    return any(
        now - then.replace(tzinfo=zone).astimezone(datetime.UTC) <= limit
        for zone in zones()
        if now.astimezone(zone).utcoffset() == offset
    )


def _minute(time: datetime.datetime) -> str:
    return time.isoformat(" ", "minutes")
