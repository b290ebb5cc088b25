"""One look at all change tables that some watches are about: of a sensor, or of watchers that share a poll."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Sequence

from airflow_provider_mssql_cdc.core.exceptions import CdcPermissionError, MsSqlCdcError, SqlServerError
from airflow_provider_mssql_cdc.core.feed import Probe
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.wake import Wake
from airflow_provider_mssql_cdc.hooks.change_source import CdcSource, check_readable
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.hooks.position_watch import PositionWatch
from airflow_provider_mssql_cdc.hooks.watch import Watch

log = logging.getLogger(__name__)


def look(source: CdcSource, watches: Sequence[Watch], now: datetime.datetime) -> Probe:
    """Look once: one statement, more where watches are or prove to be old.

    :raises SqlServerError: what concerns all watches; what concerns one is its ``trouble``
    """
    if old := [watch for watch in watches if watch.is_old(now)]:
        _look_anew(source, watches, old, now)
    try:
        probe = _probe(source, watches)
        contradicted = [watch for watch in watches if watch.contradicts(probe)]
        surprised = list(watches) if source.found_more else contradicted
    except CdcPermissionError:
        surprised = list(watches)
    if surprised:
        _look_anew(source, watches, surprised, now)
        probe = _probe(source, watches)
        for watch in surprised:
            watch.contradicts(probe)
    check_readable(source, lowest_positions(watches))
    return probe


def poll(
    watch: Watch | PositionWatch, source: CdcSource, now: datetime.datetime, waiting_since: datetime.datetime
) -> Wake | None:
    """Look once on behalf of one watch alone; the wake that is due.

    :raises MsSqlCdcError: what kept it from seeing anything
    """
    if isinstance(watch, PositionWatch):
        return watch.poll(source, now, waiting_since)
    probe = look(source, [watch], now)
    if watch.trouble is not None:
        raise watch.trouble
    return watch.judge(probe, now, waiting_since)


def lowest_positions(watches: Sequence[Watch]) -> dict[str, Position]:
    """The lowest position from which anybody's events count, by feed."""
    lowest: dict[str, Position] = {}
    for watch in watches:
        for name, position in watch.positions().items():
            lowest[name] = min(position, lowest.get(name, position))
    return dict(sorted(lowest.items()))


def _probe(source: CdcSource, watches: Sequence[Watch]) -> Probe:
    if not any(watch.enabled for watch in watches):
        return Probe(None, {}, {})
    return source.probe(lowest_positions(watches))


def _look_anew(source: CdcSource, everyone: Sequence[Watch], some: Sequence[Watch], now: datetime.datetime) -> None:
    _refresh(source.hook, some, now)
    source.recheck(lowest_positions(everyone))


def _refresh(hook: MsSqlCdcHook, watches: Sequence[Watch], now: datetime.datetime) -> None:
    for watch in watches:
        try:
            watch.refresh(hook, now)
        except SqlServerError:
            raise
        except MsSqlCdcError as error:
            log.warning("Tables %s cannot be watched now: %s", ", ".join(watch.request.patterns), error)
