"""One poll of a database for all watchers in a triggerer that use one login there; each sees the newest result."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from airflow_provider_mssql_cdc.core.exceptions import MsSqlCdcError
from airflow_provider_mssql_cdc.core.wake import Seen
from airflow_provider_mssql_cdc.hooks.change_source import ChangeSource
from airflow_provider_mssql_cdc.hooks.looking import look
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

Sources = Callable[[MsSqlCdcHook], Sequence[ChangeSource]]
"""Names what tables of a database may be read from, the preferred ones first."""


@dataclass(frozen=True, slots=True)
class Tick:
    """The result of one poll.

    :param error: why there is none
    """

    seen: Seen
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
        """The newest result as soon as there is one; None when the source ended.

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


class Poll:
    """The poll of one database by one login, for the watchers of all connections that name them in the same way."""

    def __init__(self, hook: MsSqlCdcHook, sources: Sources) -> None:
        self._hook, self._sources = hook, sources
        self._streams: dict[asyncio.Queue[Tick], str] = {}
        self._left = False
        self._task = asyncio.create_task(self._run())

    @property
    def ended(self) -> bool:
        """Whether nobody can take part any more."""
        return self._left or self._task.done()

    @contextlib.contextmanager
    def of(self, mssql_conn_id: str) -> Iterator[asyncio.Queue[Tick]]:
        """Take part for the watchers of a connection, within the context; the newest result is in the queue."""
        ticks: asyncio.Queue[Tick] = asyncio.Queue(1)
        self._streams[ticks] = mssql_conn_id
        try:
            yield ticks
        finally:
            del self._streams[ticks]
            if not self._streams:
                # the task itself is done only when the loop has come to it
                self._left = True
                self._task.cancel()

    async def next(self, ticks: asyncio.Queue[Tick]) -> Tick:
        """The next result.

        :raises Exception: what ended the poll
        """
        arrival = asyncio.create_task(ticks.get())
        try:
            await asyncio.wait({arrival, self._task}, return_when=asyncio.FIRST_COMPLETED)
            if not arrival.done():
                self._task.result()
            return await arrival
        finally:
            arrival.cancel()

    async def _run(self) -> None:
        back_off = BackOff()
        try:
            sources = self._sources(self._hook)
            while True:
                connections = sorted({*self._streams.values()})
                everyone = [place for name in connections for place in _subscriptions[name, self._sources]]
                if not everyone:
                    await asyncio.sleep(_NOBODY_WATCHES_YET)
                    continue
                try:
                    watches = [place.watch for place in everyone]
                    seen = await in_thread(look, self._hook, sources, watches, utc_now())
                except Exception as error:
                    delay = _delay_after(error, back_off)
                    log.warning("Polling for %s failed; next try in %.0f s: %s", ", ".join(connections), delay, error)
                    self._put(Tick(Seen(), error))
                else:
                    back_off.reset()
                    delay = min(place.poll_interval for place in everyone)
                    self._put(Tick(seen))
                await asyncio.sleep(delay)
        finally:
            close_later(self._hook)

    def _put(self, tick: Tick) -> None:
        for ticks in self._streams:
            with contextlib.suppress(asyncio.QueueEmpty):
                ticks.get_nowait()
            ticks.put_nowait(tick)


_subscriptions: dict[tuple[str, Sources], set[Subscription]] = defaultdict(set)
_polls: dict[Hashable, Poll] = {}
"""The polls of this process, by event loop, by what their connections say, and by sources."""


@contextlib.contextmanager
def subscribe(mssql_conn_id: str, sources: Sources, watch: Watch, poll_interval: float) -> Iterator[Subscription]:
    """Take part in the poll of this connection and these sources, within the context."""
    subscription = Subscription(watch, poll_interval)
    _subscriptions[mssql_conn_id, sources].add(subscription)
    try:
        yield subscription
    finally:
        _subscriptions[mssql_conn_id, sources].discard(subscription)


async def poll_for_all(mssql_conn_id: str, sources: Sources) -> AsyncIterator[Tick]:
    """Yield a result for every poll, for ever; what goes wrong is a result too.

    Connections that name the same host, port, database and login share one poll, whatever their ids, unless their
    passwords differ, or what decides which replica answers or how it is talked to (``read_only``, encryption).
    """
    back_off = BackOff()
    while True:
        try:
            hook = await open_hook(mssql_conn_id)
            # in a thread: Airflow's masking of the extras would block the loop
            place = await in_thread(getattr, hook, "place")
        except Exception as error:
            log.warning("Connection %s cannot be used: %s", mssql_conn_id, error)
            tick = Tick(Seen(), error)
            yield tick
        else:
            poll = _poll_of(hook, place, sources)
            with poll.of(mssql_conn_id) as ticks:
                while (tick := await poll.next(ticks)).error is None:
                    back_off.reset()
                    yield tick
            yield tick
        # then the connection is looked up anew, as it may have been mended
        await asyncio.sleep(_delay_after(tick.error, back_off))


def _poll_of(hook: MsSqlCdcHook, place: Hashable, sources: Sources) -> Poll:
    """The poll of this place, or one that begins with this hook."""
    for ended in [key for key, poll in _polls.items() if poll.ended]:
        del _polls[ended]
    key = (asyncio.get_running_loop(), place, sources)
    if key not in _polls:
        _polls[key] = Poll(hook, sources)
    return _polls[key]


def _delay_after(error: Exception | None, back_off: BackOff) -> float:
    """Seconds to wait after a failure."""
    return LONGEST_BACK_OFF if isinstance(error, MsSqlCdcError) and error.permanent else back_off.next()
