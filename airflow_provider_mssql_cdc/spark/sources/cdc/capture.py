"""Waits until the capture has seen all that was committed before a moment."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from airflow_provider_mssql_cdc.core.exceptions import CaptureLagError
from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.passing import CopyEnd
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.sources.cdc.state import read_progress, read_state

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.5

_DOUBTED = (
    " The server's clock went back, so that the times of commits prove nothing, but only log scans that find nothing:"
    " they take VIEW DATABASE STATE to be seen. Or the clock must first have passed all that it had shown."
)


def captured_position(jdbc: Jdbc, feed: CaptureInstance, ends: Sequence[CopyEnd], timeout: float) -> Lsn:
    """Wait until the capture has seen all that was committed before a copy's reads ended; its newest position then.

    :param ends: of all reads
    :raises CaptureLagError: if that lasts longer than ``timeout`` seconds
    :raises InstanceChangedError: if the instance is dropped meanwhile, so that the end cannot come
    """
    deadline, moment = time.monotonic() + timeout, max(end.moment for end in ends)
    while True:
        now = read_progress(jdbc)
        readable_from = read_state(jdbc, feed)[0].readable_from
        # each notes what is seen of the clock, so all are asked
        passed = [end.is_passed(now) for end in ends]
        if all(passed):
            # Read again: what the scans had found may have been mapped after the position was read.
            now = read_progress(jdbc)
            if now.max_lsn is not None and readable_from is not None and now.max_lsn > readable_from:
                return now.max_lsn
        if time.monotonic() > deadline:
            doubted = any(end.is_doubted for end in ends)
            raise CaptureLagError(
                f"the capture did not pass the end of the copy, {moment} by the server's clock, in {timeout:.0f} s;"
                f" its newest commit is {now.max_lsn} of {now.max_time}.{_DOUBTED if doubted else ''}",
                table=str(feed.source),
                advice="See whether SQL Server Agent and the capture job run (sys.sp_cdc_help_jobs, "
                "sys.dm_cdc_log_scan_sessions, sys.dm_cdc_errors), and run the task again.",
            )
        log.info("%s: waiting for the capture to pass %s; it is at %s", feed.source, moment, now.max_time)
        time.sleep(_POLL_SECONDS)
