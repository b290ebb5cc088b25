"""One poll of a database for all watchers in a triggerer, each of which sees the newest result only."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field

from airflow_provider_mssql_cdc.core.exceptions import CdcPermissionError, MsSqlCdcError, SqlServerError
from airflow_provider_mssql_cdc.core.feed import Probe
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.hooks.change_source import CdcSource, check_readable
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.hooks.watch import Watch
from airflow_provider_mssql_cdc.triggers.polling import (
    LONGEST_BACK_OFF,
    BackOff,
    close_later,
    in_thread,
    open_hook,
    utc_now,
)

log = logging.getLogger(__name__)

_NOBODY_WATCHES_YET = 0.05


@dataclass(frozen=True, slots=True)
class Tick:
    """The result of one poll.

    :param error: why there is none
    """

    probe: Probe
    error: Exception | None = None

    def check(self, watch: Watch) -> None:
        """Raise what kept the poll, or this watch, from seeing anything.

        :raises Exception: whatever it was
        """
        if self.error is not None:
            raise self.error
        if watch.trouble is not None:
            raise watch.trouble


@dataclass(eq=False, slots=True)
class Subscription:
    """A watcher's place in the shared poll.

    :param poll_interval: seconds
    """

    watch: Watch
    poll_interval: float
    _newest: Tick | None = None
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, tick: Tick) -> None:
        """Take a result; an older one that was not looked at yet is forgotten."""
        self._newest = tick
        self._arrived.set()

    async def next(self, source: asyncio.Task[None]) -> Tick | None:
        """Return the newest result as soon as there is one; None when the source ended.

        :raises Exception: what ended the source
        """
        arrival = asyncio.create_task(self._arrived.wait())
        try:
            await asyncio.wait({arrival, source}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            arrival.cancel()
        if not self._arrived.is_set():
            source.result()
            return None
        self._arrived.clear()
        return self._newest


_subscriptions: dict[str, set[Subscription]] = defaultdict(set)


@contextlib.contextmanager
def subscribe(mssql_conn_id: str, watch: Watch, poll_interval: float) -> Iterator[Subscription]:
    """Take part in the poll of this connection, within the context."""
    subscription = Subscription(watch, poll_interval)
    _subscriptions[mssql_conn_id].add(subscription)
    try:
        yield subscription
    finally:
        _subscriptions[mssql_conn_id].discard(subscription)


async def poll_for_all(mssql_conn_id: str) -> AsyncIterator[Tick]:
    """Yield a result for every poll, for ever; what goes wrong is a result too."""
    source: CdcSource | None = None
    back_off = BackOff()
    try:
        while True:
            everyone = list(_subscriptions[mssql_conn_id])
            if not everyone:
                await asyncio.sleep(_NOBODY_WATCHES_YET)
                continue
            try:
                source = source or CdcSource(await open_hook(mssql_conn_id))
                probe = await in_thread(look, source, [s.watch for s in everyone], utc_now())
            except Exception as error:
                permanent = isinstance(error, MsSqlCdcError) and error.permanent
                delay = LONGEST_BACK_OFF if permanent else back_off.next()
                log.warning("Polling for connection %s failed; next try in %.0f s: %s", mssql_conn_id, delay, error)
                yield Tick(Probe(None, {}, {}), error)
            else:
                back_off.reset()
                delay = min(s.poll_interval for s in everyone)
                yield Tick(probe)
            await asyncio.sleep(delay)
    finally:
        if source is not None:
            close_later(source.hook)


def look(source: CdcSource, watches: Sequence[Watch], now: datetime.datetime) -> Probe:
    """Look once at all change tables that somebody watches: one statement, more where watches are or prove to be old.

    :raises SqlServerError: what concerns all watches; what concerns one is its ``trouble``
    """
    old = [watch for watch in watches if watch.is_old(now)]
    if old:
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


def _probe(source: CdcSource, watches: Sequence[Watch]) -> Probe:
    if not any(watch.enabled for watch in watches):
        return Probe(None, {}, {})
    return source.probe(lowest_positions(watches))


def _look_anew(source: CdcSource, everyone: Sequence[Watch], some: Sequence[Watch], now: datetime.datetime) -> None:
    _refresh(source.hook, some, now)
    source.recheck(lowest_positions(everyone))


def lowest_positions(watches: Sequence[Watch]) -> dict[str, Position]:
    """The lowest position from which anybody's events count, by feed."""
    lowest: dict[str, Position] = {}
    for watch in watches:
        for name, position in watch.positions().items():
            lowest[name] = min(position, lowest.get(name, position))
    return dict(sorted(lowest.items()))


def _refresh(hook: MsSqlCdcHook, watches: Sequence[Watch], now: datetime.datetime) -> None:
    for watch in watches:
        try:
            watch.refresh(hook, now)
        except SqlServerError:
            raise
        except MsSqlCdcError as error:
            log.warning("Tables %s cannot be watched now: %s", ", ".join(watch.request.patterns), error)
