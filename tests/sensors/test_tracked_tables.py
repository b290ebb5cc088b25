"""Waiting for tables that Change Tracking tracks, without change data capture, and beside it."""

from __future__ import annotations

import asyncio
import datetime
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import TaskDeferred

from airflow_provider_mssql_cdc.core.checkpoint import Failure
from airflow_provider_mssql_cdc.core.position import Version
from airflow_provider_mssql_cdc.core.resting import fingerprint
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.wake import Reason
from airflow_provider_mssql_cdc.sandbox import Sandbox
from airflow_provider_mssql_cdc.sensors import mssql_cdc
from airflow_provider_mssql_cdc.sensors.mssql_cdc import MsSqlCdcSensor
from airflow_provider_mssql_cdc.triggers.mssql_cdc import MsSqlCdcEventTrigger, MsSqlCdcTrigger
from tests.support.harsh import harsh_sandbox
from tests.support.hooks import tracked
from tests.support.hooks.source import CONN_ID, TARGET, CountingHook, Source

A, B = TableName("dbo", "a"), TableName("dbo", "b")


@pytest.fixture(scope="module")
def express() -> Iterator[Sandbox]:
    """A server that has neither change data capture nor an Agent."""
    with harsh_sandbox(host="127.0.0.1", port=0, edition="Express") as server:
        yield server


def shop_of(source: Source, monkeypatch: pytest.MonkeyPatch) -> Source:
    tracked.track(source, "dbo.a", "dbo.b")
    source.sql("INSERT INTO dbo.a VALUES (1, 1)")
    put(monkeypatch, source.environment())
    return source


@pytest.fixture
def small(express: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    """Two tracked tables of that server."""
    address = {"host": express.host, "port": express.port, "user": express.user, "password": express.password}
    source = Source(address, f"t_{uuid.uuid4().hex[:10]}")
    yield shop_of(source, monkeypatch)
    source.close()


@pytest.fixture
def shop(source: Source, monkeypatch: pytest.MonkeyPatch) -> Source:
    """Two tracked tables of a server that has both."""
    return shop_of(source, monkeypatch)


def put(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


def loaded(source: Source, monkeypatch: pytest.MonkeyPatch, *tables: TableName, at: Version | None = None) -> None:
    """Make the checkpoints that a load up to now would leave."""
    put(monkeypatch, tracked.in_environment([tracked.loaded(source, table, at)[0] for table in tables]))


def sensor(**given: Any) -> MsSqlCdcSensor:
    return MsSqlCdcSensor(
        task_id="wait", **{"tables": ["dbo.*"], "target": TARGET, "mssql_conn_id": CONN_ID, "source": "ct", **given}
    )


def found(wait: MsSqlCdcSensor, capsys: pytest.CaptureFixture[str]) -> tuple[str | None, str]:
    """The cut of one look, and the reasons."""
    capsys.readouterr()
    cut = wait.poke({}).xcom_value
    said = capsys.readouterr().out
    assert "Agent" not in said
    return cut, ", ".join(
        f"{name.table}: {why.name}" for name in (A, B) for why in Reason if f"{name} ({why.value})" in said
    )


@pytest.mark.parametrize("source", ["ct", "auto"])
def test_a_sensor_waits_without_change_data_capture(
    small: Source, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], source: str
) -> None:
    assert found(sensor(source=source), capsys) == ("version=1", "a: FIRST_LOAD, b: FIRST_LOAD")
    loaded(small, monkeypatch, A, B)
    wait = sensor(source=source)
    assert found(wait, capsys) == (None, "")
    small.sql("INSERT INTO dbo.b VALUES (2, 2)")
    assert found(wait, capsys) == ("version=2", "b: EVENTS")
    small.sql("TRUNCATE TABLE dbo.b")
    assert found(wait, capsys)[1] == "b: PURGED"
    # where nothing is behind the version, another tracking tells
    loaded(small, monkeypatch, A, B)
    assert found(sensor(source=source), capsys) == (None, "")
    small.sql("TRUNCATE TABLE dbo.a")
    small.sql("INSERT INTO dbo.a VALUES (9, 9)")
    loaded(small, monkeypatch, A, B)
    assert found(sensor(source=source), capsys) == (None, "")
    small.sql("TRUNCATE TABLE dbo.a")
    assert found(sensor(source=source), capsys)[1] == "a: TRACKED_ANEW"


def test_a_look_while_nothing_changes_is_one_statement(small: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks: list[CountingHook] = []

    def counting(*args: Any, **kwargs: Any) -> CountingHook:
        hooks.append(CountingHook(*args, **kwargs))
        return hooks[-1]

    monkeypatch.setattr(mssql_cdc, "MsSqlCdcHook", counting)
    loaded(small, monkeypatch, A, B)
    wait = sensor()
    assert not wait.poke({})
    (hook,) = hooks
    hook.sent.clear()
    for _ in range(3):
        assert not wait.poke({})
    assert len(hook.sent) == 3


def test_what_is_in_the_way_calls_for_a_load_that_says_so(
    small: Source, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded(small, monkeypatch, A)
    small.sql("ALTER TABLE dbo.b DISABLE CHANGE_TRACKING")
    assert found(sensor(), capsys)[1] == "b: UNTRACKED"
    assert found(sensor(on_disabled="skip"), capsys)[1] == ""
    assert found(sensor(on_disabled="enable"), capsys)[1] == "b: NOT_YET_TRACKED"
    assert found(sensor(on_disabled="enable", source="auto"), capsys)[1] == "b: DISABLED"
    loaded(small, monkeypatch, A, at=Version(9))
    assert found(sensor(on_disabled="skip"), capsys)[1] == "a: OTHER_LINEAGE"


def test_a_table_whose_source_of_before_is_gone_calls_for_a_load_once(
    shop: Source, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint, _ = tracked.loaded(shop, A)
    put(monkeypatch, tracked.in_environment([checkpoint]))
    shop.enable("dbo.a")
    shop.sql("INSERT INTO dbo.a VALUES (2, 2)")
    shop.scan()
    one = {"tables": ["dbo.a"], "source": "auto"}
    assert found(sensor(**one), capsys)[1] == "a: EVENTS"
    shop.sql("ALTER TABLE dbo.a DISABLE CHANGE_TRACKING")
    assert found(sensor(**one), capsys)[1] == "a: INSTANCE_GONE"
    with shop.hook() as hook:
        seen = fingerprint(hook.capture_instances([A]))
    failure = Failure("it was loaded by a tracked table", datetime.datetime.now(datetime.UTC), seen)
    put(monkeypatch, tracked.in_environment([checkpoint.failing(["mirror"], failure)]))
    assert found(sensor(**one), capsys)[1] == ""


def test_tables_of_both_are_waited_for_in_one_cut(
    shop: Source, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.enable("dbo.a")
    shop.sql("INSERT INTO dbo.a VALUES (2, 2)")
    shop.scan()
    loaded(shop, monkeypatch, B)
    cut, why = found(sensor(source="auto"), capsys)
    assert (cut, why) == (f"lsn={shop.max_lsn()},version=2", "a: FIRST_LOAD")
    assert found(sensor(source="ct"), capsys) == ("version=2", "a: FIRST_LOAD")
    assert found(sensor(source="cdc"), capsys)[1] == "a: FIRST_LOAD, b: DISABLED"


def test_the_trigger_and_the_watcher_wait_there_too(small: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(small, monkeypatch, A, B)
    with pytest.raises(TaskDeferred) as deferred:
        sensor(deferrable=True, poll_interval=0.05).execute({})
    _, arguments = deferred.value.trigger.serialize()

    async def fire(trigger: Any) -> dict[str, Any]:
        events = aiter(trigger.run())
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.to_thread(small.sql, "UPDATE dbo.a SET v = v + 1")
        event = dict((await waiting).payload)
        await events.aclose()
        return event

    event = asyncio.run(fire(MsSqlCdcTrigger(**arguments)))
    assert (event["status"], event["upto"]) == ("success", "version=2")
    assert event["message"].endswith(": dbo.a (events)")
    loaded(small, monkeypatch, A, B)
    watcher = MsSqlCdcEventTrigger(
        tables=["dbo.*"], target=TARGET, mssql_conn_id=CONN_ID, poll_interval=0.1, source="ct"
    )
    assert watcher.serialize()[1]["source"] == "ct"
    assert asyncio.run(fire(watcher))["upto"] == "version=3"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"source": "log"}, "source='log': expected one of cdc, ct, auto"),
        ({"after": "0x" + "00" * 10, "target": None}, 'after is a commit LSN, which only source="cdc" has'),
    ],
)
def test_what_has_no_meaning_is_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        sensor(**given)
