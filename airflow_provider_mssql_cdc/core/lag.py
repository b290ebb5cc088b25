"""Whether the capture is late: judged by the server's own clock, and by the log scans that it has ended."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.database import AgentHealth, DatabaseStatus, Running

MAX_LAG = datetime.timedelta(minutes=30)
"""How old the newest sign of the capture may be by default: idle, it maps an LSN about every five minutes."""

ON_LAG = ("warn", "fail")


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

    All times are the server's local ones. When its clock goes back in autumn, an age comes out smaller by up to an
    hour, so that a late capture is told later; none that is in time is taken for late.
    """
    newest = status.max_lsn_time
    return status.cdc_enabled and (newest is None or status.server_time - newest > max_lag)


def judge(
    status: DatabaseStatus, last_scan: datetime.datetime | None, health: AgentHealth, max_lag: datetime.timedelta
) -> Lag | None:
    """Judge a capture that ``is_silent``.

    :param last_scan: when the last log scan ended, in the server's local time; None where no scan can be seen: for
        want of a right, on a readable secondary, after a restart of the server
    :return: None where a scan ended in time
    """
    if last_scan is not None and status.server_time - last_scan <= max_lag:
        return None
    newest = status.max_lsn_time
    since = "nothing was ever captured" if newest is None else f"the newest captured commit is of {_minute(newest)}"
    seen = f"{since}, and the server's clock says {_minute(status.server_time)} (max_lag={max_lag})"
    if last_scan is not None:
        return Lag(
            True,
            f"the capture of {status.name} is late: {seen}. Its last log scan ended at {_minute(last_scan)}. "
            f"{health.detail}. sys.dm_cdc_errors may say why.",
        )
    if Running.STOPPED in (health.agent, health.capture_job):
        return Lag(True, f"the capture of {status.name} is late: {seen}. {health.detail}.")
    return Lag(
        False,
        f"whether the capture of {status.name} is late cannot be known: {seen}. No log scan can be seen, which takes "
        f"VIEW DATABASE STATE on the primary. {health.detail}.",
    )


def _minute(time: datetime.datetime) -> str:
    return time.isoformat(" ", "minutes")
