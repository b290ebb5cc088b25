"""One look at all feeds that some watches are about: of a sensor, or of watchers that share a poll."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Sequence

from airflow_provider_mssql_cdc.core.exceptions import CdcPermissionError, MsSqlCdcError, SqlServerError
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.wake import Seen, Wake
from airflow_provider_mssql_cdc.hooks.change_source import ChangeSource, check_readable
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.hooks.position_watch import PositionWatch
from airflow_provider_mssql_cdc.hooks.watch import Watch

log = logging.getLogger(__name__)


def look(hook: MsSqlCdcHook, sources: Sequence[ChangeSource], watches: Sequence[Watch], now: datetime.datetime) -> Seen:
    """Look once: one statement for each source, more where watches are or prove to be old.

    :param sources: that tables may be read from, the preferred ones first
    :raises SqlServerError: what concerns all watches; what concerns one is its ``trouble``
    """
    if old := [watch for watch in watches if watch.is_old(now)]:
        _look_anew(hook, sources, watches, old, now)
    try:
        seen = _probe(sources, watches)
        contradicted = [watch for watch in watches if watch.contradicts(seen)]
        found_more = any(source.found_more for source in sources if source.kind.KIND in seen.probes)
        surprised = list(watches) if found_more else contradicted
    except CdcPermissionError:
        surprised = list(watches)
    if surprised:
        _look_anew(hook, sources, watches, surprised, now)
        seen = _probe(sources, watches)
        for watch in surprised:
            watch.contradicts(seen)
    _check_readable(sources, watches)
    return seen


def poll(
    watch: Watch | PositionWatch,
    hook: MsSqlCdcHook,
    sources: Sequence[ChangeSource],
    now: datetime.datetime,
    waiting_since: datetime.datetime,
) -> Wake | None:
    """Look once on behalf of one watch alone; the wake that is due.

    :param sources: as for ``look``
    :raises MsSqlCdcError: what kept it from seeing anything
    """
    if isinstance(watch, PositionWatch):
        return watch.poll(hook, sources, now)
    seen = look(hook, sources, [watch], now)
    if watch.trouble is not None:
        raise watch.trouble
    return watch.judge(seen, now, waiting_since)


def lowest_positions(watches: Sequence[Watch], source: ChangeSource) -> dict[str, Position]:
    """The lowest position from which anybody's events count, by feed of a source."""
    lowest: dict[str, Position] = {}
    for watch in watches:
        for name, position in watch.positions(source.kind).items():
            lowest[name] = min(position, lowest.get(name, position))
    return dict(sorted(lowest.items()))


def _probe(sources: Sequence[ChangeSource], watches: Sequence[Watch]) -> Seen:
    """Probe the sources that a table is read from, and the preferred one, which tells of tables that it gets."""
    used = {kind for watch in watches for kind in watch.kinds}
    if any(watch.enabled for watch in watches):
        used.add(sources[0].kind.KIND)
    return Seen(
        {
            source.kind.KIND: source.probe(lowest_positions(watches, source))
            for source in sources
            if source.kind.KIND in used
        }
    )


def _check_readable(sources: Sequence[ChangeSource], watches: Sequence[Watch]) -> None:
    """Refuse to look on where no feed of any source can be read.

    :raises CdcPermissionError: why one of them cannot
    """
    asked = [(source, after) for source in sources if (after := lowest_positions(watches, source))]
    if all(after.keys() <= source.unreadable.keys() for source, after in asked):
        for source, after in asked:
            check_readable(source, after)


def _look_anew(
    hook: MsSqlCdcHook,
    sources: Sequence[ChangeSource],
    everyone: Sequence[Watch],
    some: Sequence[Watch],
    now: datetime.datetime,
) -> None:
    for watch in some:
        try:
            watch.refresh(hook, sources, now)
        except SqlServerError:
            raise
        except MsSqlCdcError as error:
            log.warning("Tables %s cannot be watched now: %s", ", ".join(watch.request.patterns), error)
    for source in sources:
        source.recheck(lowest_positions(everyone, source))
