"""Waiting for tables of two sources: change data capture, and a small second one with positions of another kind."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import TaskDeferred

from airflow_provider_mssql_cdc.core.checkpoint import SinkState
from airflow_provider_mssql_cdc.core.codec import to_json
from airflow_provider_mssql_cdc.core.feed import Feed, FeedRef
from airflow_provider_mssql_cdc.core.position import Cut, Version
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.wake import Reason
from airflow_provider_mssql_cdc.operators.planning import plan_load
from airflow_provider_mssql_cdc.sensors.mssql_cdc import MsSqlCdcSensor
from airflow_provider_mssql_cdc.triggers import shared
from airflow_provider_mssql_cdc.triggers.mssql_cdc import MsSqlCdcEventTrigger
from airflow_provider_mssql_cdc.triggers.polling import utc_now
from tests.support.core.states import checkpoint_of
from tests.support.hooks.source import CONN_ID, TARGET, Source
from tests.support.logged.feed import LoggedTable
from tests.support.logged.waiting import SensorOfTwoSources, TriggerOfTwoSources, WatcherOfTwoSources, two_sources
from tests.support.operators.group import Group

BOXES, STOCK = TableName("depot", "boxes"), TableName("depot", "stock")


class Depot:
    """A database with a table of each source: boxes are captured, the stock has a log of its own."""

    def __init__(self, source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
        self.source, self._patch, self.version = source, monkeypatch, 0
        for statement in (
            "CREATE SCHEMA depot",
            "CREATE SCHEMA logged",
            "CREATE TABLE depot.boxes (id int NOT NULL PRIMARY KEY)",
            "CREATE TABLE depot.stock (id int NOT NULL PRIMARY KEY)",
            "CREATE TABLE logged.stock (id int, version bigint)",
            "CREATE TABLE logged.versions (version bigint)",
            "CREATE TABLE logged.low (name nvarchar(20), version bigint)",
            "INSERT INTO logged.low VALUES (N'stock', 0); INSERT INTO logged.versions VALUES (0)",
        ):
            source.sql(statement)
        source.enable("depot.boxes")
        self._put(source.environment())
        self.box(1)
        self.store(1)

    def _put(self, environment: dict[str, str]) -> None:
        for name, value in environment.items():
            self._patch.setenv(name, value)

    def box(self, key: int) -> None:
        """Change the boxes, and capture that."""
        self.source.sql(f"INSERT INTO depot.boxes VALUES ({key})")
        self.source.scan()

    def store(self, key: int) -> None:
        """Change the stock, and log that."""
        self.version += 1
        self.source.sql(
            f"INSERT INTO depot.stock VALUES ({key}); INSERT INTO logged.stock VALUES ({key}, {self.version});"
            f" INSERT INTO logged.versions VALUES ({self.version})"
        )

    @property
    def cut(self) -> Cut:
        return Cut((self.source.max_lsn(), Version(self.version)))

    def loaded(self) -> None:
        """Make the checkpoints that a load up to now would leave."""
        with self.source.hook() as hook:
            survey = hook.survey(["depot.*"])
            feeds = {name: group for each in two_sources(hook) for name, group in each.discover(survey).items()}
        for name, position in ((BOXES, self.source.max_lsn()), (STOCK, Version(self.version))):
            identity = self.source.identity(name)
            sinks = {"mirror": SinkState(position, position)}
            stored = checkpoint_of(identity, sinks, FeedRef.of(feeds[name][-1]), updated_at=utc_now())
            self._put({f"AIRFLOW_VAR_{identity.variable.upper()}": to_json(stored)})


@pytest.fixture
def depot(source: Source, monkeypatch: pytest.MonkeyPatch) -> Depot:
    monkeypatch.setitem(Feed.KINDS, LoggedTable.KIND, LoggedTable)
    return Depot(source, monkeypatch)


def sensor(kind: type[MsSqlCdcSensor] = SensorOfTwoSources, **given: Any) -> MsSqlCdcSensor:
    return kind(task_id="wait", **{"tables": ["depot.*"], "target": TARGET, "mssql_conn_id": CONN_ID, **given})


def found(wait: MsSqlCdcSensor, capsys: pytest.CaptureFixture[str]) -> tuple[str | None, str]:
    """The cut of one look, and the reasons."""
    capsys.readouterr()
    cut = wait.poke({}).xcom_value
    said = capsys.readouterr().out
    return cut, ", ".join(
        f"{name}: {why.name}" for name in (BOXES, STOCK) for why in Reason if f"{name} ({why.value})" in said
    )


def test_a_sensor_waits_for_tables_of_both_and_hands_on_a_position_of_each_kind(
    depot: Depot, capsys: pytest.CaptureFixture[str]
) -> None:
    assert found(sensor(), capsys) == (depot.cut.text, "depot.boxes: FIRST_LOAD, depot.stock: FIRST_LOAD")
    assert found(sensor(MsSqlCdcSensor), capsys)[1] == "depot.boxes: FIRST_LOAD, depot.stock: DISABLED"
    depot.loaded()
    wait = sensor()
    assert found(wait, capsys) == (None, "")

    depot.store(2)
    assert found(wait, capsys) == (depot.cut.text, "depot.stock: EVENTS")
    depot.box(2)
    cut, why = found(wait, capsys)
    assert (cut, why) == (depot.cut.text, "depot.boxes: EVENTS, depot.stock: EVENTS")

    # what the sensor hands on is what the load takes
    group = Group(depot.source)
    with depot.source.hook() as hook:
        plan = plan_load(hook, group.store, group.request("depot.*"), Cut.parse(cut or ""), two_sources(hook))
    assert (plan.upto, plan.failures, len(plan.specs)) == (depot.cut, {}, 2)

    depot.loaded()
    assert found(wait, capsys) == (None, "")
    depot.store(3)
    depot.source.sql("DELETE FROM logged.stock; UPDATE logged.low SET version = 3")
    assert found(wait, capsys) == (depot.cut.text, "depot.stock: PURGED")


def test_a_sensor_over_tables_of_the_second_source_alone(depot: Depot, capsys: pytest.CaptureFixture[str]) -> None:
    depot.loaded()
    wait = sensor(tables=["depot.stock"])
    assert found(wait, capsys) == (None, "")
    depot.box(2)
    assert found(wait, capsys) == (None, "")
    depot.store(2)
    assert found(wait, capsys) == (depot.cut.text, "depot.stock: EVENTS")


def test_one_sources_feeds_that_may_not_be_read_hold_up_no_others(
    depot: Depot, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    depot.loaded()
    login, password = f"reader_{depot.source.name}", "Reader-pw-12345"
    depot.source.sql(f"CREATE LOGIN [{login}] WITH PASSWORD = N'{password}'")
    depot.source.sql(f"CREATE USER [{login}] FOR LOGIN [{login}]")
    for what in ("SCHEMA::[depot]", "SCHEMA::[logged]", "[cdc].[change_tables]", "[cdc].[captured_columns]",
                 "[cdc].[index_columns]", "[cdc].[lsn_time_mapping]"):  # fmt: skip
        depot.source.sql(f"GRANT SELECT ON {what} TO [{login}]")
    for name, value in depot.source.environment(login, password).items():
        monkeypatch.setenv(name, value)
    wait = sensor(on_disabled="skip")
    assert found(wait, capsys) == (None, "")
    depot.box(2)
    depot.store(2)
    assert found(wait, capsys) == (depot.cut.text, "depot.stock: EVENTS")


def test_the_trigger_waits_for_both(depot: Depot) -> None:
    depot.loaded()
    with pytest.raises(TaskDeferred) as deferred:
        sensor(deferrable=True, poll_interval=0.05).execute({})
    path, arguments = deferred.value.trigger.serialize()
    assert path.endswith(".TriggerOfTwoSources")

    async def fire() -> dict[str, Any]:
        waiting = asyncio.ensure_future(anext(aiter(TriggerOfTwoSources(**arguments).run())))
        await asyncio.to_thread(depot.store, 2)
        return dict((await waiting).payload)

    event = asyncio.run(fire())
    assert (event["status"], event["upto"]) == ("success", depot.cut.text)
    assert event["message"].endswith(": depot.stock (events)")


def test_a_watcher_of_both_polls_beside_one_of_change_data_capture(depot: Depot) -> None:
    depot.loaded()

    @contextlib.asynccontextmanager
    async def watching(kind: type[MsSqlCdcEventTrigger]) -> AsyncIterator[asyncio.Future[Any]]:
        trigger = kind(tables=["depot.*"], target=TARGET, mssql_conn_id=CONN_ID, poll_interval=0.1, on_disabled="skip")
        events = aiter(trigger.run())
        waiting = asyncio.ensure_future(anext(events))
        yield waiting
        await events.aclose()

    async def scenario() -> list[dict[str, Any]]:
        async with watching(WatcherOfTwoSources) as both, watching(MsSqlCdcEventTrigger) as captured:
            await asyncio.to_thread(depot.store, 2)
            events = [dict((await both).payload)]
            assert len([poll for poll in shared._polls.values() if not poll.ended]) == 2
            assert not captured.done()
            await asyncio.to_thread(depot.box, 2)
            return [*events, dict((await captured).payload)]

    first = depot.source.max_lsn()
    of_both, of_captured = asyncio.run(scenario())
    assert of_both["upto"] == Cut((first, Version(2))).text
    assert of_captured["upto"] == str(depot.source.max_lsn())
