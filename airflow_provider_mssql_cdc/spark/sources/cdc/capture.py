"""Waits until the capture has seen all that was committed before a moment."""

from __future__ import annotations

import datetime
import logging
import time

from airflow_provider_mssql_cdc.core.exceptions import CaptureLagError
from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.sources.cdc.state import CaptureProgress, read_progress, read_state

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.5


def captured_position(
    jdbc: Jdbc, feed: CaptureInstance, end: CaptureProgress, timeout: float
) -> tuple[Lsn, datetime.datetime | None]:
    """Wait until the capture has seen all that was committed before the copy's end.

    :return: its newest position then, and the time of that
    :raises CaptureLagError: if that lasts longer than ``timeout`` seconds
    :raises InstanceChangedError: if the instance is dropped meanwhile, so that the end cannot come
    """
    deadline = time.monotonic() + timeout
    while True:
        now = read_progress(jdbc)
        readable_from = read_state(jdbc, feed).readable_from
        if has_passed(end, now):
            # Read again: what the scans had found may have been mapped after the position was read.
            now = read_progress(jdbc)
            if now.max_lsn is not None and readable_from is not None and now.max_lsn > readable_from:
                return now.max_lsn, now.max_time
        if time.monotonic() > deadline:
            raise CaptureLagError(
                f"the capture did not pass the end of the copy, {end.now} by the server's clock, in {timeout:.0f} s;"
                f" its newest commit is {now.max_lsn} of {now.max_time}.",
                table=str(feed.source),
                advice="See whether SQL Server Agent and the capture job run (sys.sp_cdc_help_jobs, "
                "sys.dm_cdc_log_scan_sessions, sys.dm_cdc_errors), and run the task again.",
            )
        log.info("%s: waiting for the capture to pass %s; it is at %s", feed.source, end.now, now.max_time)
        time.sleep(_POLL_SECONDS)


def has_passed(end: CaptureProgress, now: CaptureProgress) -> bool:
    """Whether the capture has seen all that was committed before a moment.

    It has when it has mapped a new commit that is later by the server's own clock, or when two more log scans found
    nothing: the second of them began after that moment. A commit that was mapped before does not count, nor does the
    latest time of all: when clocks go back, commits of the hour before look later than the moment.
    """
    is_newer = now.max_lsn is not None and (end.max_lsn is None or now.max_lsn > end.max_lsn)
    if is_newer and now.max_time is not None and now.max_time > end.now:
        return True
    return end.empty_scans is not None and now.empty_scans is not None and now.empty_scans >= end.empty_scans + 2
