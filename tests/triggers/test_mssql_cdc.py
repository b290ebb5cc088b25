"""The triggers against a server: one task's wait, and watchers that share a poll."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import inspect
import json
import os
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from airflow.serialization.encoders import encode_trigger
from airflow.triggers.shared_stream import SharedStreamManager

from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.hooks.parameters import LOAD_ONLY
from airflow_provider_mssql_cdc.sensors.mssql_cdc import MsSqlCdcSensor
from airflow_provider_mssql_cdc.triggers import shared
from airflow_provider_mssql_cdc.triggers.mssql_cdc import MsSqlCdcEventTrigger, MsSqlCdcTrigger
from tests.support.hooks.source import CONN_ID, TARGET, Source
from tests.support.triggers.gate import Gate

OTHER_TARGET = "iceberg://lake/other"


@pytest.fixture
def shop(source: Source, monkeypatch: pytest.MonkeyPatch) -> Source:
    """Two tracked tables, loaded up to now into both targets."""
    for table in ("dbo.a", "dbo.b"):
        source.sql(f"CREATE TABLE {table} (id int NOT NULL PRIMARY KEY)")
    source.enable("dbo.a", "dbo.b")
    source.sql("INSERT INTO dbo.a VALUES (1); INSERT INTO dbo.b VALUES (1)")
    source.scan()
    put(monkeypatch, source.environment())
    for table in ("a", "b"):
        loaded(source, monkeypatch, table)
    return source


def put(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


def instance(source: Source, table: str) -> CaptureInstance:
    with source.hook() as hook:
        return hook.capture_instances([TableName("dbo", table)])[0]


def loaded(source: Source, monkeypatch: pytest.MonkeyPatch, table: str, position: Lsn | None = None) -> None:
    """Make the checkpoints that a load up to now would leave."""
    for target in (TARGET, OTHER_TARGET):
        put(monkeypatch, source.checkpoint(instance(source, table), position or source.max_lsn(), target=target))


def change(source: Source, table: str, key: int) -> str:
    """Commit and capture one event; the cut it makes."""
    source.sql(f"INSERT INTO dbo.{table} VALUES ({key})")
    source.scan()
    return str(source.max_lsn())


def sensors_trigger(**parameters: Any) -> MsSqlCdcTrigger:
    given = {
        "tables": ["dbo.*"],
        "target": TARGET,
        "shapes": ["mirror"],
        "mssql_conn_id": CONN_ID,
        "poll_interval": 0.05,
        "waiting_since": time.time(),
        **parameters,
    }
    return MsSqlCdcTrigger(**given)


def watcher(**parameters: Any) -> MsSqlCdcEventTrigger:
    given = {"tables": ["dbo.*"], "target": TARGET, "mssql_conn_id": CONN_ID, "poll_interval": 0.1, **parameters}
    return MsSqlCdcEventTrigger(**given)


async def first(trigger: MsSqlCdcTrigger) -> dict[str, Any]:
    """The event of a trigger, as the triggerer would take it."""
    events = aiter(trigger.run())
    event = await anext(events)
    with pytest.raises(StopAsyncIteration):
        await anext(events)
    await trigger.cleanup()
    return dict(event.payload)


def inflated(trigger: Any) -> Any:
    """The trigger as another triggerer makes it from what was stored."""
    path, arguments = trigger.serialize()
    encode_trigger({"classpath": path, "kwargs": arguments})
    assert path == f"{type(trigger).__module__}.{type(trigger).__name__}"
    return type(trigger)(**arguments)


# --- the sensor's


def test_it_fires_once_there_is_something(shop: Source) -> None:
    async def scenario() -> tuple[dict[str, Any], str]:
        waiting = asyncio.create_task(first(inflated(sensors_trigger())))
        cut = await asyncio.to_thread(change, shop, "b", 2)
        return await waiting, cut

    event, cut = asyncio.run(scenario())
    assert (event["status"], event["upto"]) == ("success", cut)
    assert "dbo.b (events)" in event["message"]


def test_max_idle_counts_from_when_the_sensor_began_to_wait(shop: Source, dummy_row: Any) -> None:
    dummy_row(shop)
    idle = sensors_trigger(max_idle=3600, waiting_since=time.time() - 3601)
    event = asyncio.run(first(inflated(idle)))
    assert (event["status"], event["upto"]) == ("success", str(shop.max_lsn()))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"tables": ["nothing.*"]}, "nothing.*"),
        ({"mssql_conn_id": "none_such"}, "none_such"),
        ({"target": "s3://bucket"}, "iceberg://"),
    ],
)
def test_it_gives_up_on_what_cannot_mend(shop: Source, parameters: dict[str, Any], message: str) -> None:
    event = asyncio.run(first(sensors_trigger(**parameters)))
    assert event["status"] == "error"
    assert message in event["message"]


def test_a_watcher_is_told_of_extras_without_a_meaning(shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    (said,) = shop.environment().values()
    wrong = {**json.loads(said), "extra": json.dumps({"encrypt": "perhaps"})}
    monkeypatch.setenv(f"AIRFLOW_CONN_{CONN_ID.upper()}", json.dumps(wrong))

    async def scenario() -> dict[str, Any]:
        async with triggerer(watcher()) as (events,):
            return await events.get()

    event = asyncio.run(scenario())
    assert event["status"] == "error"
    assert "encrypt must be true or false" in event["message"]


def test_it_gives_up_when_cdc_is_off(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, source.environment())
    source.sql("CREATE TABLE dbo.a (id int)")
    event = asyncio.run(first(sensors_trigger()))
    assert event["status"] == "error"
    assert "sp_cdc_enable_db" in event["message"]


def test_it_gives_up_when_cdc_is_switched_off_meanwhile(shop: Source) -> None:
    async def scenario() -> dict[str, Any]:
        waiting = asyncio.create_task(first(sensors_trigger()))
        await asyncio.to_thread(shop.sql, "EXEC sys.sp_cdc_disable_db")
        return await waiting

    event = asyncio.run(scenario())
    assert event["status"] == "error"


def test_a_wrong_password_is_permanent_and_not_in_the_event(shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, shop.environment(password="c4nary-Pa$$word"))
    event = asyncio.run(first(sensors_trigger()))
    assert event["status"] == "error"
    assert "refused login" in event["message"]
    assert "c4nary" not in str(event)


def test_it_outlasts_a_server_that_is_away(shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_provider_mssql_cdc.triggers.polling.SHORTEST_BACK_OFF", 0.05)

    async def scenario(gate: Gate) -> tuple[dict[str, Any], str]:
        waiting = asyncio.create_task(first(sensors_trigger()))
        await asyncio.to_thread(gate.wait_for_connection)
        gate.shut()
        cut = await asyncio.to_thread(change, shop, "a", 2)
        await asyncio.to_thread(gate.wait_for_refusal)
        assert not waiting.done()
        gate.open()
        return await waiting, cut

    with Gate(shop.server["host"], shop.server["port"]) as gate:
        put(monkeypatch, shop.environment(port=gate.port))
        event, cut = asyncio.run(scenario(gate))
    assert event["upto"] == cut


def test_a_server_that_does_not_answer_does_not_hold_up_the_event_loop(
    shop: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate is opened by the same loop that a blocking poll would hold for ever."""

    async def scenario(gate: Gate) -> dict[str, Any]:
        waiting = asyncio.create_task(first(sensors_trigger(waiting_since=0.0)))
        while not gate.stalled:
            await asyncio.sleep(0)
        gate.open()
        return await waiting

    position = instance(shop, "a").min_lsn
    assert position is not None
    loaded(shop, monkeypatch, "a", position.previous())
    with Gate(shop.server["host"], shop.server["port"], stall=True) as gate:
        put(monkeypatch, shop.environment(port=gate.port))
        assert asyncio.run(scenario(gate))["status"] == "success"


# --- an asset's


@contextlib.asynccontextmanager
async def triggerer(*watchers: MsSqlCdcEventTrigger) -> AsyncIterator[list[asyncio.Queue[dict[str, Any]]]]:
    """Run watchers over shared streams as the triggerer does; the events of each."""
    manager = SharedStreamManager()
    queues: list[asyncio.Queue[dict[str, Any]]] = [asyncio.Queue() for _ in watchers]

    async def run(number: int) -> None:
        trigger = inflated(watchers[number])
        stream = manager.subscribe(trigger_id=number, trigger=trigger, key=trigger.shared_stream_key())
        async for event in trigger.filter_shared_stream(stream):
            queues[number].put_nowait(dict(event.payload))

    tasks = [asyncio.create_task(run(number)) for number in range(len(watchers))]
    try:
        yield queues
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await manager.stop_all()


def has_looked(place: shared.Subscription, cut: Lsn) -> bool:
    seen = place._newest.seen.cut if place._newest else None
    return seen is not None and seen.of(Lsn) >= cut and not place._arrived.is_set()  # type: ignore[operator]


async def looked_at(cut: Lsn) -> None:
    """Wait until every watcher has taken a poll of this cut or a later one."""
    while True:
        places = shared._subscriptions[CONN_ID, MsSqlCdcEventTrigger.sources]
        if places and all(has_looked(place, cut) for place in places):
            return
        await asyncio.sleep(0.01)


def test_watchers_of_one_database_share_one_connection(shop: Source) -> None:
    async def scenario() -> list[list[dict[str, Any]]]:
        async with triggerer(watcher(), watcher(target=OTHER_TARGET, poll_interval=0.2), watcher(tables=["a"])) as (
            one,
            other,
            narrow,
        ):
            first_cut = await asyncio.to_thread(change, shop, "b", 2)
            seen = [[await one.get(), await other.get()]]
            sessions = await asyncio.to_thread(
                shop.sql,
                "SELECT COUNT(*) FROM sys.dm_exec_sessions WHERE program_name = N'airflow-mssql-cdc'",
            )
            assert sessions == [(1,)]
            second_cut = await asyncio.to_thread(change, shop, "a", 2)
            seen.append([await one.get(), await other.get(), await narrow.get()])
            assert [[event["upto"] for event in events] for events in seen] == [[first_cut] * 2, [second_cut] * 3]
            assert all(queue.empty() for queue in (one, other, narrow))
            return seen

    seen = asyncio.run(scenario())
    assert "dbo.b (events)" in seen[0][0]["message"]
    assert "dbo.a (events)" in seen[1][2]["message"]
    assert "dbo.b" not in seen[1][2]["message"]


def test_a_cut_is_said_once_and_dummy_rows_not_at_all(
    shop: Source, monkeypatch: pytest.MonkeyPatch, dummy_row: Any
) -> None:
    async def scenario() -> list[str]:
        expected = []
        async with triggerer(watcher()) as (events,):
            for key in (2, 3, 4):
                expected.append(await asyncio.to_thread(change, shop, "a", key))
                assert (await events.get())["upto"] == expected[-1]
                await asyncio.to_thread(dummy_row, shop)
                await looked_at(shop.max_lsn())
            loaded(shop, monkeypatch, "a")
            expected.append(await asyncio.to_thread(change, shop, "b", 2))
            event = await events.get()
            assert event["upto"] == expected[-1]
            assert "dbo.a" not in event["message"]
            assert events.empty()
        return expected

    assert len(set(asyncio.run(scenario()))) == 4


def test_each_watcher_has_positions_of_its_own(shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    before = shop.max_lsn()
    cut = change(shop, "a", 2)
    loaded(shop, monkeypatch, "a")
    put(monkeypatch, shop.checkpoint(instance(shop, "a"), before, target=OTHER_TARGET))

    async def scenario() -> None:
        async with triggerer(watcher(), watcher(target=OTHER_TARGET)) as (ahead, behind):
            assert (await behind.get())["upto"] == cut
            await looked_at(shop.max_lsn())
            newer = await asyncio.to_thread(change, shop, "b", 2)
            assert [(await queue.get())["upto"] for queue in (ahead, behind)] == [newer, newer]

    asyncio.run(scenario())


def test_one_watchers_trouble_is_its_own(shop: Source) -> None:
    async def scenario() -> None:
        async with triggerer(watcher(), watcher(tables=["nothing.*"])) as (good, bad):
            error = await bad.get()
            assert error["status"] == "error"
            assert "nothing.*" in error["message"]
            cut = await asyncio.to_thread(change, shop, "a", 2)
            assert (await good.get())["upto"] == cut
            assert bad.empty()

    asyncio.run(scenario())


def test_a_watcher_outlasts_the_drop_of_its_only_instance(shop: Source) -> None:
    async def scenario() -> dict[str, Any]:
        async with triggerer(watcher(tables=["a"], on_disabled="skip")) as (events,):
            await looked_at(shop.max_lsn())
            await asyncio.to_thread(shop.sql, "EXEC sys.sp_cdc_disable_table N'dbo', N'a', N'all'")
            # an event of another table, so that it is seen when the watcher has looked after the drop
            await looked_at(Lsn.parse(await asyncio.to_thread(change, shop, "b", 2)))
            await asyncio.to_thread(shop.enable, "dbo.a")
            await asyncio.to_thread(change, shop, "a", 2)
            return await events.get()

    event = asyncio.run(scenario())
    assert (event["status"], event["upto"]) == ("success", str(shop.max_lsn()))
    assert "its capture instance was replaced" in event["message"]


def test_watchers_are_told_when_cdc_is_switched_off(shop: Source) -> None:
    async def scenario() -> dict[str, Any]:
        async with triggerer(watcher()) as (events,):
            await looked_at(shop.max_lsn())
            await asyncio.to_thread(shop.sql, "EXEC sys.sp_cdc_disable_db")
            return await events.get()

    event = asyncio.run(scenario())
    assert event["status"] == "error"
    assert "sp_cdc_enable_db" in event["message"]


def test_a_connection_that_was_mended_is_used_without_a_restart(shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_provider_mssql_cdc.triggers.polling.SHORTEST_BACK_OFF", 0.05)

    async def scenario(gate: Gate) -> None:
        async with triggerer(watcher()) as (told,):
            waiting = asyncio.create_task(first(sensors_trigger()))
            await looked_at(shop.max_lsn())
            await asyncio.to_thread(gate.wait_for_connection)
            gate.shut()
            cut = await asyncio.to_thread(change, shop, "a", 2)
            await asyncio.to_thread(gate.wait_for_refusal)
            put(monkeypatch, shop.environment())
            events = await asyncio.wait_for(asyncio.gather(waiting, told.get()), 60)
        assert [event["upto"] for event in events] == [cut, cut]

    with Gate(shop.server["host"], shop.server["port"]) as gate:
        put(monkeypatch, shop.environment(port=gate.port))
        asyncio.run(scenario(gate))


def test_without_shared_streams_it_runs_alone(shop: Source) -> None:
    async def scenario() -> tuple[str, str]:
        events = aiter(watcher().run())
        waiting = asyncio.ensure_future(anext(events))
        cut = await asyncio.to_thread(change, shop, "a", 2)
        event = await waiting
        await events.aclose()
        return cut, event.payload["upto"]

    cut, said = asyncio.run(scenario())
    assert said == cut


@pytest.mark.parametrize(
    "parameters",
    [
        {"poll_interval": 0.09},
        {"tables": []},
        {"shapes": ["x"]},
        {"on_disabled": "x"},
        {"max_idle": -1},
        {"max_lag": 0},
        {"on_lag": "x"},
        {"target": "iceberg://lake/.."},
    ],
)
def test_a_watcher_refuses_what_has_no_meaning(parameters: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(parameters))):
        watcher(**parameters)


def test_a_watcher_takes_the_sensors_parameters_and_no_others() -> None:
    """So that sensor, watcher and load can be given one and the same group."""
    own = {"self", "kwargs", "deferrable"}
    names = [name for name in inspect.signature(MsSqlCdcSensor.__init__).parameters if name not in own]
    group = {"shapes": ["mirror"], "table_name": "all_{table}", "exclude": [], "on_disabled": "skip", "source": "auto"}
    group |= {"max_idle": datetime.timedelta(hours=2), "max_lag": datetime.timedelta(hours=1), "on_lag": "fail"}
    assert set(names) - {"tables", "target", "after", "mssql_conn_id", "poll_interval"} == set(group)
    made = inflated(watcher(**group, **dict.fromkeys(LOAD_ONLY)))
    assert (made.max_idle, made.on_disabled, made.table_name) == (7200.0, "skip", "all_{table}")
    assert (made.max_lag, made.on_lag) == (3600.0, "fail")
    with pytest.raises(TypeError, match="takes no parameter tabels"):
        watcher(tabels=["a"])
    with pytest.raises(ValueError, match=r"table_name='\{nope\}'"):
        watcher(table_name="{nope}")


def test_a_watcher_that_cannot_judge_says_so_once(
    shop: Source, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The database answers, but the checkpoints cannot be read when they are to be judged."""
    shut = []

    class Variables:
        def get(self, key: str, default: object = None) -> object:
            if shut:
                raise ConnectionError("the API server is away")
            return os.environ.get(f"AIRFLOW_VAR_{key.upper()}", default)

    monkeypatch.setattr("airflow_provider_mssql_cdc.triggers.mssql_cdc.Variable", Variables())

    async def scenario() -> str:
        async with triggerer(watcher()) as (events,):
            await looked_at(shop.max_lsn())
            shut.append(True)
            for key in (2, 3):
                cut = await asyncio.to_thread(change, shop, "a", key)
                await looked_at(Lsn.parse(cut))
                while "cannot be told now" not in caplog.text:
                    await asyncio.sleep(0.01)
            assert events.empty()
            shut.clear()
            assert (await events.get())["upto"] == cut
        return caplog.text

    said = asyncio.run(scenario())
    assert said.count("What to load cannot be told now: ConnectionError: the API server is away") == 1


def test_watchers_share_by_connection_alone() -> None:
    keys = {watcher(tables=["a"]).shared_stream_key(), watcher(poll_interval=9).shared_stream_key()}
    assert len(keys) == 1
    assert watcher(mssql_conn_id="another").shared_stream_key() not in keys


def test_connections_that_name_one_login_of_one_database_share_one_poll(
    shop: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, elsewhere = "the_same_by_another_id", "a_copy_of_its_own"
    (said,) = shop.environment().values()
    alike = {**json.loads(said), "extra": json.dumps({"login_timeout": 5})}
    monkeypatch.setenv(f"AIRFLOW_CONN_{other.upper()}", json.dumps(alike))
    apart = {**json.loads(said), "extra": json.dumps({"read_only": "true"})}
    monkeypatch.setenv(f"AIRFLOW_CONN_{elsewhere.upper()}", json.dumps(apart))
    looks: list[int] = []
    look = shared.look

    def counted(hook: Any, sources: Any, watches: Any, now: Any) -> Any:
        looks.append(len(watches))
        return look(hook, sources, watches, now)

    monkeypatch.setattr(shared, "look", counted)

    async def scenario() -> tuple[list[str], int]:
        watchers = [watcher(), watcher(mssql_conn_id=other), watcher(mssql_conn_id=elsewhere)]
        async with triggerer(*watchers) as queues:
            # no checkpoint names the other ids: theirs begin
            begun = [(await queue.get())["message"] for queue in queues[1:]]
            cut = await asyncio.to_thread(change, shop, "a", 2)
            assert (await queues[0].get())["upto"] == cut
            while 2 not in looks:
                await asyncio.sleep(0.01)
            mine = [poll for (loop, *_), poll in shared._polls.items() if loop is asyncio.get_running_loop()]
            polls = len([poll for poll in mine if not poll.ended])
        await asyncio.sleep(0)
        assert all(poll.ended for poll in mine), "nobody watches any more"
        return begun, polls

    begun, polls = asyncio.run(scenario())
    assert all("first load" in message for message in begun)
    assert polls == 2
    assert max(looks) == 2
