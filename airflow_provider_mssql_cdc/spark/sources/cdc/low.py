"""Where a copy begins: not above a commit whose rows the copy may not see yet."""

from __future__ import annotations

import logging
import time

from airflow_provider_mssql_cdc.core.exceptions import CaptureLagError
from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.position import Lsn, Position
from airflow_provider_mssql_cdc.core.table import literal, lsn_literal
from airflow_provider_mssql_cdc.spark.copies.copy import CopyOrder
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc

log = logging.getLogger(__name__)

SETTLED_SECONDS = 10
"""How old a commit is, by the server's clock, when all its rows can surely be seen.

A commit has its LSN, and may be captured, before readers by row versions see its rows: these read what was committed
when their statement began, and a transaction counts as committed a little after its record is in the log. A clock that
is set forward in just that while makes a commit look older than it is; nothing that any login may read tells of that.
"""

_POLL_SECONDS = 0.5

_LOOK = (
    "SELECT (SELECT MIN(start_lsn) FROM cdc.lsn_time_mapping"
    " WHERE tran_end_time > DATEADD(second, -{seconds}, GETDATE())) AS young,"
    " CAST(CASE WHEN t.create_date > DATEADD(second, -{seconds}, GETDATE()) THEN 1 ELSE 0 END AS bit) AS is_new"
    " FROM sys.databases d LEFT JOIN cdc.change_tables t ON t.capture_instance = {instance}"
    " WHERE d.database_id = DB_ID()"
)
_LOOKED = "young BINARY, is_new BOOLEAN"


def copy_low(
    jdbc: Jdbc,
    feed: CaptureInstance,
    readable_from: Position | None,
    newest: Position,
    order: CopyOrder,
    *,
    by_versions: bool,
) -> Position:
    """The position before a copy: each change of which the copy may show nothing is captured after it.

    Where reads wait for locks that is the newest position. Where they go by row versions, it lies below every commit
    that is younger than ``SETTLED_SECONDS``; but not before the instance can be read, which is waited for.

    :param readable_from: the position before the instance's first change
    :param newest: the newest position, or the one before the instance's first change where that is higher
    :param order: the copy's: how long is waited, and the position that the low must not lie below
    :param by_versions: whether the copy is read so (READ_COMMITTED_SNAPSHOT, SNAPSHOT)
    :raises CaptureLagError: if the instance is too young for that time, or the server's clock stands still
    """
    if not by_versions:
        return newest
    assert readable_from is not None
    deadline, least = time.monotonic() + order.capture_timeout, max(filter(None, (readable_from, order.above)))
    while True:
        row = jdbc.rows(_LOOK.format(instance=literal(feed.name), seconds=SETTLED_SECONDS), _LOOKED)[0]
        young = Lsn(bytes(row["young"])) if row["young"] is not None else None
        if young is None or young > least:
            settled = newest if young is None else _mapped_below(jdbc, young)
            if settled is not None and settled >= least:
                return min(settled, newest)
            if not row["is_new"]:
                return least
        if time.monotonic() > deadline:
            raise CaptureLagError(
                f"after {order.capture_timeout:.0f} s the first change that {feed} has is not {SETTLED_SECONDS} s old"
                " by the server's clock. The database reads by row versions, which may not show yet what was committed"
                " before.",
                table=str(feed.source),
                advice="See whether the server's clock goes on, and run the task again.",
            )
        log.info("%s: waiting until its first change is %s s old", feed.source, SETTLED_SECONDS)
        time.sleep(_POLL_SECONDS)


def _mapped_below(jdbc: Jdbc, lsn: Lsn) -> Lsn | None:
    query = f"SELECT MAX(start_lsn) AS lsn FROM cdc.lsn_time_mapping WHERE start_lsn < {lsn_literal(lsn)}"
    found = jdbc.rows(query, "lsn BINARY")[0]["lsn"]
    return None if found is None else Lsn(bytes(found))
