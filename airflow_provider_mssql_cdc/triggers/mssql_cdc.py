"""Triggers that wait for changes: one for the sensor, one for an asset's watcher."""

from __future__ import annotations

import asyncio
import datetime
import logging
from collections.abc import AsyncIterator, Hashable, Sequence
from typing import Any

from airflow.providers.common.compat.sdk import AirflowNotFoundException, Variable
from airflow.triggers.base import BaseEventTrigger, BaseTrigger, TriggerEvent

from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.entry_values import CDC
from airflow_provider_mssql_cdc.core.exceptions import CaptureLateError, MsSqlCdcError
from airflow_provider_mssql_cdc.core.lag import MAX_LAG
from airflow_provider_mssql_cdc.core.table_entry import TableEntry
from airflow_provider_mssql_cdc.core.table_options import watched
from airflow_provider_mssql_cdc.core.target import TABLE_NAME
from airflow_provider_mssql_cdc.core.wake import Announcer, Wake
from airflow_provider_mssql_cdc.hooks.change_source import CdcSource, ChangeSource
from airflow_provider_mssql_cdc.hooks.looking import poll
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.hooks.parameters import lag_allowed, seconds, without_load_only
from airflow_provider_mssql_cdc.hooks.position_watch import PositionWatch
from airflow_provider_mssql_cdc.hooks.tracking_source import TrackingSource
from airflow_provider_mssql_cdc.hooks.watch import Watch, WatchRequest
from airflow_provider_mssql_cdc.triggers.polling import BackOff, close_later, in_thread, open_hook, utc_now
from airflow_provider_mssql_cdc.triggers.shared import Subscription, Tick, poll_for_all, subscribe

log = logging.getLogger(__name__)

SHORTEST_POLL_INTERVAL = 0.1


class MsSqlCdcTrigger(BaseTrigger):
    """
    Wait until there is something to load, on behalf of ``MsSqlCdcSensor``.

    Fires once: ``{"status": "success", "upto": "0x..", "message": ..}``, where ``upto`` is None while nothing at all
    is captured; or ``{"status": "error", "message": ..}`` for what a repetition cannot mend.

    :param tables: as for the sensor
    :param target: as for the sensor
    :param after: as for the sensor
    :param shapes: as for the sensor
    :param table_name: as for the sensor
    :param mssql_conn_id: as for the sensor
    :param exclude: as for the sensor
    :param source: as for the sensor
    :param on_disabled: as for the sensor
    :param max_idle: in seconds
    :param max_lag: in seconds
    :param on_lag: as for the sensor
    :param poll_interval: in seconds
    :param waiting_since: since when the sensor waits, in seconds since 1970; it survives a restart
    :param asked: a person asks for this run: what failed for good before the wait began is to be tried
    """

    def __init__(
        self,
        *,
        tables: Sequence[str | TableEntry] | None,
        target: str | None = None,
        after: str | None = None,
        shapes: Sequence[str] = ("mirror",),
        table_name: str = TABLE_NAME,
        mssql_conn_id: str = "mssql_default",
        exclude: Sequence[str] = (),
        source: str = CDC,
        on_disabled: str = "fail",
        max_idle: float | None = None,
        max_lag: float = MAX_LAG.total_seconds(),
        on_lag: str = "warn",
        poll_interval: float = 5.0,
        waiting_since: float,
        asked: bool = False,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.tables = None if tables is None else watched(tables)
        self.exclude, self.shapes = list(exclude), list(shapes)
        self.target, self.after, self.table_name = target, after, table_name
        self.mssql_conn_id, self.source, self.on_disabled = mssql_conn_id, source, on_disabled
        self.max_idle, self.poll_interval, self.waiting_since = max_idle, poll_interval, waiting_since
        self.max_lag, self.on_lag, self.asked = max_lag, on_lag, asked
        self._hook: MsSqlCdcHook | None = None

    @staticmethod
    def sources(hook: MsSqlCdcHook) -> Sequence[ChangeSource]:
        """What tables may be read from, the preferred ones first."""
        return (CdcSource(hook), TrackingSource(hook))

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class path and arguments; no password among them."""
        return _serialized(self, "after", "waiting_since", "asked")

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Poll until there is something to load, or until it is certain that there never will be."""
        since = datetime.datetime.fromtimestamp(self.waiting_since, datetime.UTC)
        try:
            watch = watch_of(self, asked=self.asked)
        except MsSqlCdcError as error:
            yield _failure(error)
            return
        back_off = BackOff()
        sources: Sequence[ChangeSource] = ()
        while True:
            try:
                if self._hook is None:
                    self._hook = await open_hook(self.mssql_conn_id)
                    sources = self.sources(self._hook)
                wake = await in_thread(poll, watch, self._hook, sources, utc_now(), since)
            except Exception as error:
                if is_permanent(error):
                    yield _failure(error)
                    return
                await self.cleanup()
                delay = back_off.next()
                self.log.warning("Polling failed; next try in %.0f s: %s", delay, error)
            else:
                if wake is not None:
                    yield _event(payload(wake))
                    return
                back_off.reset()
                delay = self.poll_interval
            await asyncio.sleep(delay)

    async def cleanup(self) -> None:
        """Close the connection; a poll after that looks it up anew, as it may have been mended."""
        if self._hook is not None:
            close_later(self._hook)
            self._hook = None


class MsSqlCdcEventTrigger(BaseEventTrigger):
    """
    Wake an asset when there is something to load, for an ``AssetWatcher``.

    Watchers whose connections name the same host, port, database and login share one poll, at the shortest of their
    intervals, whatever the ids of these; connections with another password, ``read_only`` or encryption have one of
    their own.

    Each says ``{"status": "success", "upto": "0x..", "message": ..}`` for what is new: a table's reason, or newer
    events, never the same ones twice unless no load has reached them after ``max_idle``. The payload only informs; a
    load that is woken takes its own cut. What a repetition cannot mend is said once, as ``{"status": "error",
    "message": ..}``, so that the DAG runs and shows it; the watcher goes on trying.

    Parameters of the load that only say how to load (all of ``hooks.parameters.LOAD_ONLY``) are accepted and not used,
    so that watcher and load can be given the same ``**group``.

    :param tables: patterns such as ``sales.orders`` or ``sales.*``; a bare name means the default schema
    :param target: ``iceberg://catalog/namespace``, as for the load that is woken
    :param shapes: as for the load that is woken
    :param table_name: as for the load that is woken
    :param mssql_conn_id: Airflow connection of type ``mssql``
    :param exclude: patterns of tables to leave out
    :param source: as for the load that is woken
    :param on_disabled: as for ``MsSqlCdcSensor``
    :param max_idle: seconds or timedelta after which a run is due though nothing happened; by default the smaller of
        six hours and a tenth of the retention, an hour where that is unknown
    :param max_lag: as for the load, seconds or timedelta
    :param on_lag: what to do when the capture is late: ``warn`` in the triggerer's log, or ``fail``: say it as an error
    :param poll_interval: seconds, from 0.1
    """

    def __init__(
        self,
        *,
        tables: Sequence[str | TableEntry],
        target: str,
        shapes: Sequence[str] = ("mirror",),
        table_name: str = TABLE_NAME,
        mssql_conn_id: str = "mssql_default",
        exclude: Sequence[str] = (),
        source: str = CDC,
        on_disabled: str = "fail",
        max_idle: datetime.timedelta | float | None = None,
        max_lag: datetime.timedelta | float = MAX_LAG,
        on_lag: str = "warn",
        poll_interval: float = 5.0,
        **kwargs: Any,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        if unknown := without_load_only(kwargs):
            raise TypeError(f"MsSqlCdcEventTrigger takes no parameter {', '.join(unknown)}")
        if poll_interval < SHORTEST_POLL_INTERVAL:
            raise ValueError(f"poll_interval={poll_interval}: expected at least {SHORTEST_POLL_INTERVAL} s")
        self.tables = watched([tables] if isinstance(tables, str) else tables)
        self.exclude = [exclude] if isinstance(exclude, str) else list(exclude)
        self.shapes = list(shapes)
        self.target, self.table_name = target, table_name
        self.mssql_conn_id, self.source, self.on_disabled = mssql_conn_id, source, on_disabled
        self.max_idle, self.poll_interval = seconds(max_idle), poll_interval
        self.max_lag, self.on_lag = lag_allowed(max_lag, on_lag).total_seconds(), on_lag
        watch_request(self)

    sources = staticmethod(MsSqlCdcTrigger.sources)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class path and arguments; no password among them."""
        return _serialized(self)

    def shared_stream_key(self) -> Hashable:
        """What is the same for all watchers of one connection and the same sources."""
        return ("mssql-cdc", self.mssql_conn_id, type(self).sources)

    @classmethod
    async def open_shared_stream(cls, kwargs: dict[str, Any]) -> AsyncIterator[Tick]:
        """Poll once for all watchers of the connection, as long as there is one."""
        async for tick in poll_for_all(kwargs["mssql_conn_id"], cls.sources):
            yield tick

    async def filter_shared_stream(self, shared_stream: AsyncIterator[Tick]) -> AsyncIterator[TriggerEvent]:
        """Judge each poll by this watcher's own positions; one that was overtaken by a newer poll is dropped."""
        watch = Watch(watch_request(self), CheckpointStore(Variable))
        with subscribe(self.mssql_conn_id, type(self).sources, watch, self.poll_interval) as subscription:
            newest = asyncio.create_task(_keep_newest(shared_stream, subscription))
            try:
                async for event in self._events(subscription, newest):
                    yield event
            finally:
                newest.cancel()

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Do the same where the triggerer does not share streams."""
        async for event in self.filter_shared_stream(self.open_shared_stream({"mssql_conn_id": self.mssql_conn_id})):
            yield event

    async def _events(self, subscription: Subscription, newest: asyncio.Task[None]) -> AsyncIterator[TriggerEvent]:
        watch, since, said, warned = subscription.watch, utc_now(), "", ""
        announcer: Announcer | None = None
        while tick := await subscription.next(newest):
            now = utc_now()
            try:
                tick.check(watch)
                wake = await in_thread(watch.judge, tick.seen, now, since)
            except Exception as error:
                # that of a late capture names the time
                what = type(error).__name__ if isinstance(error, CaptureLateError) else str(error)
                if is_permanent(error) and what != said:
                    said = what
                    yield _failure(error)
                # what kept the poll itself from seeing anything is logged where it polls
                elif error not in (tick.error, watch.trouble) and str(error) != warned:
                    warned = str(error)
                    log.warning("What to load cannot be told now: %s: %s", type(error).__name__, error)
                continue
            said = warned = ""
            announcer = announcer or Announcer(watch.rules.max_idle)
            if wake is not None and announcer.is_news(wake, now):
                since = now
                yield _event(payload(wake))


async def _keep_newest(stream: AsyncIterator[Tick], subscription: Subscription) -> None:
    async for tick in stream:
        subscription.put(tick)


def is_permanent(error: Exception) -> bool:
    """Whether a repetition without a change by a person is bound to fail again, or an error was asked for."""
    if isinstance(error, MsSqlCdcError):
        return error.permanent or isinstance(error, CaptureLateError)
    return isinstance(error, AirflowNotFoundException)


def payload(wake: Wake) -> dict[str, Any]:
    """The event that says there is something to load."""
    return {"status": "success", "upto": wake.cut.text if wake.cut else None, "message": str(wake)}


def _failure(error: Exception) -> TriggerEvent:
    return _event({"status": "error", "message": str(error)})


def _event(content: dict[str, Any]) -> TriggerEvent:
    return TriggerEvent(content)  # type: ignore[no-untyped-call]


_PARAMETERS = (
    "tables",
    "target",
    "shapes",
    "table_name",
    "mssql_conn_id",
    "exclude",
    "source",
    "on_disabled",
    "max_idle",
    "max_lag",
    "on_lag",
)


def watch_of(waiting: Any, *, asked: bool = False, begun: bool = False) -> Watch | PositionWatch:
    """What a sensor or trigger polls.

    :param waiting: the sensor or trigger, with the parameters of ``MsSqlCdcTrigger``
    :param asked: as for ``MsSqlCdcTrigger``
    :param begun: as for ``Watch``
    :raises MsSqlCdcError: if one of them has no meaning
    """
    if waiting.after is None:
        return Watch(watch_request(waiting, asked=asked), CheckpointStore(Variable), begun=begun)
    names = ("after", "tables", "exclude", "max_lag", "on_lag")
    return PositionWatch.of(**{name: getattr(waiting, name) for name in names})


def watch_request(waiting: Any, *, asked: bool = False) -> WatchRequest:
    """What a sensor or trigger is asked to watch.

    :param waiting: sensor or trigger
    :param asked: as for ``MsSqlCdcTrigger``
    :raises MsSqlCdcError: if one of its parameters has no meaning
    """
    return WatchRequest.of(**{name: getattr(waiting, name) for name in _PARAMETERS}, asked=asked)


def _serialized(trigger: BaseTrigger, *more: str) -> tuple[str, dict[str, Any]]:
    arguments = {name: getattr(trigger, name) for name in (*_PARAMETERS, "poll_interval", *more)}
    return f"{type(trigger).__module__}.{type(trigger).__qualname__}", arguments
