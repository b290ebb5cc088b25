"""A watcher's place in the shared poll, and the delays after failures."""

from __future__ import annotations

import asyncio
import datetime

import pytest

from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.exceptions import TableNotFoundError
from airflow_provider_mssql_cdc.core.feed import CaptureInstance, Probe
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.table_options import TableOptions, read_entries
from airflow_provider_mssql_cdc.core.target import Target
from airflow_provider_mssql_cdc.core.wake import Seen
from airflow_provider_mssql_cdc.hooks.change_source import CdcSource
from airflow_provider_mssql_cdc.hooks.looking import look
from airflow_provider_mssql_cdc.hooks.watch import REFRESH, Watch, WatchRequest
from airflow_provider_mssql_cdc.triggers import shared
from airflow_provider_mssql_cdc.triggers.mssql_cdc import MsSqlCdcEventTrigger
from airflow_provider_mssql_cdc.triggers.polling import BackOff
from airflow_provider_mssql_cdc.triggers.shared import Subscription, Tick
from tests.support.hooks.source import CONN_ID, TARGET, Source

SOURCES = MsSqlCdcEventTrigger.sources


class NoVariables:
    """Airflow without a Variable."""

    def get(self, key: str, default: object = None) -> object:
        return default

    def set(self, key: str, value: object, description: str | None = None) -> None:
        raise AssertionError(key)


def tick(cut: int) -> Tick:
    return Tick(Seen({CaptureInstance.KIND: Probe(Lsn(cut.to_bytes(10)), {}, {})}))


def subscription() -> Subscription:
    request = WatchRequest(
        "db", read_entries("dbo.*", salted=True), (), TableOptions(Target.parse("iceberg://lake/shop"))
    )
    return Subscription(Watch(request, CheckpointStore(NoVariables())), 0.1)


def test_a_slow_watcher_gets_the_newest_result_only() -> None:
    async def scenario() -> list[Tick | None]:
        place = subscription()
        source: asyncio.Task[None] = asyncio.create_task(asyncio.sleep(3600))
        for cut in (1, 2, 3):
            place.put(tick(cut))
        seen = [await place.next(source)]
        waiting = asyncio.create_task(place.next(source))
        await asyncio.sleep(0)
        assert not waiting.done()
        place.put(tick(4))
        seen.append(await waiting)
        source.cancel()
        return seen

    assert asyncio.run(scenario()) == [tick(3), tick(4)]


def test_the_end_of_the_stream_reaches_the_watcher() -> None:
    async def end() -> None:
        raise RuntimeError("the poll is gone")

    async def scenario() -> None:
        place = subscription()
        await place.next(asyncio.create_task(end()))

    with pytest.raises(RuntimeError, match="the poll is gone"):
        asyncio.run(scenario())


def test_delays_grow_to_a_minute_and_start_again() -> None:
    back_off = BackOff()
    # with 60 s each, 2000 are more than a day without the server
    delays = [back_off.next() for _ in range(2000)]
    ceilings = [1, 2, 4, 8, 16, 32, *[60] * 1994]
    assert all(max(1, ceiling / 2) <= delay <= ceiling for delay, ceiling in zip(delays, ceilings, strict=True))
    back_off.reset()
    assert back_off.next() == 1
    assert len({BackOff().next() for _ in range(3)}) == 1
    others = [BackOff() for _ in range(8)]
    assert len({[each.next() for _ in range(8)][-1] for each in others}) > 1


def test_a_watch_that_cannot_refresh_costs_no_statement_until_it_is_old(source: Source) -> None:
    for table in ("a", "b"):
        source.sql(f"CREATE TABLE dbo.{table} (id int NOT NULL PRIMARY KEY)")
    source.enable("dbo.a")
    store = CheckpointStore(NoVariables())
    good, bad = (
        Watch(WatchRequest(CONN_ID, read_entries(pattern, salted=True), (), TableOptions(Target.parse(TARGET))), store)
        for pattern in ("dbo.*", "nothing.*")
    )
    now, second = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC), datetime.timedelta(seconds=1)
    with source.hook() as hook:
        look(hook, (CdcSource(hook),), [good, bad], now)
        assert isinstance(bad.trouble, TableNotFoundError)
        source.enable("dbo.b")
        look(hook, (CdcSource(hook),), [good, bad], now + second)
        assert isinstance(bad.trouble, TableNotFoundError)
        for number in range(2, 5):
            hook.sent.clear()
            look(hook, (CdcSource(hook),), [good, bad], now + number * second)
            assert len(hook.sent) == 1
        source.sql("CREATE SCHEMA nothing")
        source.sql("CREATE TABLE nothing.more (id int)")
        look(hook, (CdcSource(hook),), [good, bad], now + REFRESH + second)
    assert bad.trouble is None


def test_what_ends_a_poll_ends_all_that_take_part(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in source.environment().items():
        monkeypatch.setenv(name, value)
    place = subscription()
    monkeypatch.setitem(shared._subscriptions, (CONN_ID, SOURCES), {place})

    def broken(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(shared.Poll, "_put", broken)

    async def scenario() -> None:
        async for _ in shared.poll_for_all(CONN_ID, SOURCES):
            raise AssertionError("there is no result")

    with pytest.raises(MemoryError):
        asyncio.run(scenario())


def test_a_stream_that_comes_when_the_last_one_has_left_gets_a_poll_of_its_own(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in the tick of the loop in which the old poll is told to end and has not ended yet."""
    for name, value in source.environment().items():
        monkeypatch.setenv(name, value)
    source.sql("CREATE TABLE dbo.a (id int NOT NULL PRIMARY KEY)")
    source.enable("dbo.a")
    monkeypatch.setitem(shared._subscriptions, (CONN_ID, SOURCES), {subscription()})

    async def scenario() -> list[Tick]:
        first, second = shared.poll_for_all(CONN_ID, SOURCES), shared.poll_for_all(CONN_ID, SOURCES)
        seen = [await anext(first)]
        (poll,) = shared._polls.values()
        await first.aclose()
        assert poll.ended, "who comes in this tick must not take part"
        seen.append(await anext(second))
        await second.aclose()
        return seen

    monkeypatch.setattr(shared, "_polls", {})
    assert [tick.error for tick in asyncio.run(scenario())] == [None, None]


def test_streams_of_one_connection_all_see_each_poll(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in source.environment().items():
        monkeypatch.setenv(name, value)
    source.sql("CREATE TABLE dbo.a (id int NOT NULL PRIMARY KEY)")
    source.enable("dbo.a")
    monkeypatch.setitem(shared._subscriptions, (CONN_ID, SOURCES), {subscription()})
    monkeypatch.setattr(shared, "_polls", {})

    async def scenario() -> None:
        first, second = shared.poll_for_all(CONN_ID, SOURCES), shared.poll_for_all(CONN_ID, SOURCES)
        await anext(first)
        await anext(second)
        await anext(first)
        await second.aclose()
        await anext(first)
        await first.aclose()

    asyncio.run(asyncio.wait_for(scenario(), 20))
