"""The sensor against a server: what wakes it, what does not, and what ends it."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import itertools
import json
import logging
import re
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException, TaskDeferred

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Failure
from airflow_provider_mssql_cdc.core.codec import to_json
from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.resting import MISSING, fingerprint
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.table_options import TableOptions, read_entries
from airflow_provider_mssql_cdc.core.target import Target
from airflow_provider_mssql_cdc.core.wake import Reason
from airflow_provider_mssql_cdc.hooks.change_source import CdcSource
from airflow_provider_mssql_cdc.hooks.looking import poll
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.hooks.parameters import LOAD_ONLY
from airflow_provider_mssql_cdc.hooks.watch import Watch, WatchRequest
from airflow_provider_mssql_cdc.operators.planning import plan_load
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sensors.mssql_cdc import MsSqlCdcSensor
from airflow_provider_mssql_cdc.triggers.mssql_cdc import MsSqlCdcTrigger
from airflow_provider_mssql_cdc.triggers.polling import utc_now
from tests.support.harsh import harsh_sandbox
from tests.support.hooks.source import CONN_ID, TARGET, Source
from tests.support.operators.group import A, B, Group


@pytest.fixture
def shop(source: Source, monkeypatch: pytest.MonkeyPatch) -> Source:
    """Two tracked tables, both with an event, and the connection in Airflow's environment."""
    for table in ("dbo.a", "dbo.b"):
        source.sql(f"CREATE TABLE {table} (id int NOT NULL PRIMARY KEY)")
    source.enable("dbo.a", "dbo.b")
    source.sql("INSERT INTO dbo.a VALUES (1); INSERT INTO dbo.b VALUES (1)")
    source.scan()
    put(monkeypatch, source.environment())
    return source


def put(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


def instance(source: Source, table: str) -> CaptureInstance:
    with source.hook() as hook:
        return hook.capture_instances([TableName("dbo", table)])[0]


def loaded(
    source: Source,
    monkeypatch: pytest.MonkeyPatch,
    *tables: str,
    position: Lsn | None = None,
    age: datetime.timedelta = datetime.timedelta(0),
    failed: Failure | None = None,
) -> None:
    """Make checkpoints as a load up to now would."""
    for table in tables:
        at = position or source.max_lsn()
        put(monkeypatch, source.checkpoint(instance(source, table), at, age=age, failed=failed))


def sensor(**parameters: Any) -> MsSqlCdcSensor:
    given = {"tables": ["dbo.*"], "target": TARGET, "mssql_conn_id": CONN_ID, **parameters}
    return MsSqlCdcSensor(task_id="wait", **given)


def test_tables_that_were_never_loaded_wake_at_once(shop: Source) -> None:
    found = sensor().poke({})
    assert (found.is_done, found.xcom_value) == (True, str(shop.max_lsn()))


def test_it_wakes_for_events_and_for_nothing_else(shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(shop, monkeypatch, "a", "b")
    wait = sensor()
    assert not wait.poke({})
    shop.sql("CREATE TABLE dbo.elsewhere (id int)")
    shop.enable("dbo.elsewhere")
    shop.sql("INSERT INTO dbo.elsewhere VALUES (1)")
    shop.scan()
    narrow = sensor(tables=["dbo.a", "dbo.b"])
    assert not narrow.poke({})
    shop.sql("INSERT INTO dbo.b VALUES (2)")
    assert not narrow.poke({})
    shop.scan()
    found = narrow.poke({})
    assert (found.is_done, found.xcom_value) == (True, str(shop.max_lsn()))


def test_tables_of_another_name_are_at_positions_of_their_own(shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(shop, monkeypatch, "a", "b")
    assert not sensor(table_name="dbo_{table}").poke({})
    found = sensor(table_name="{table}_too").poke({})
    assert (found.is_done, found.xcom_value) == (True, str(shop.max_lsn()))


def test_a_new_instance_is_noticed_between_two_pokes(shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(shop, monkeypatch, "a", "b")
    wait = sensor()
    assert not wait.poke({})
    shop.sql("CREATE TABLE dbo.c (id int NOT NULL PRIMARY KEY)")
    shop.enable("dbo.c")
    shop.sql("INSERT INTO dbo.c VALUES (1)")
    shop.scan()
    assert wait.poke({}).is_done


def test_dummy_rows_do_not_wake_it_but_max_idle_does(
    shop: Source, monkeypatch: pytest.MonkeyPatch, dummy_row: Any
) -> None:
    loaded(shop, monkeypatch, "a", "b")
    before = shop.max_lsn()
    dummy_row(shop)
    assert shop.max_lsn() > before
    assert not sensor().poke({})
    loaded(shop, monkeypatch, "a", position=before, age=datetime.timedelta(hours=7))
    assert sensor().poke({}).xcom_value == str(shop.max_lsn())
    assert not sensor(max_idle=datetime.timedelta(hours=8)).poke({})


def test_a_failed_table_waits_for_a_repair(shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    start = instance(shop, "a").min_lsn
    assert start is not None
    loaded(shop, monkeypatch, "b")
    now = datetime.datetime.now(datetime.UTC)
    seen = fingerprint([instance(shop, "a")])
    loaded(shop, monkeypatch, "a", position=start.previous(), failed=Failure("no", now, seen))
    assert not sensor().poke({})
    old = Failure("no", now - datetime.timedelta(hours=7), seen)
    loaded(shop, monkeypatch, "a", position=start.previous(), failed=old)
    assert sensor().poke({}).is_done
    loaded(shop, monkeypatch, "a", position=start.previous(), failed=Failure("no", now, seen))
    shop.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'a', @role_name = NULL,"
        " @capture_instance = N'a2', @supports_net_changes = 0"
    )
    assert sensor().poke({}).is_done


def context(*, run_type: str = "scheduled", max_tries: int = 0) -> Any:
    """What a task is told of itself: clearing it adds all of its retries to the tries that it had."""
    task_instance = SimpleNamespace(max_tries=max_tries, get_first_reschedule_date=lambda _: None)
    return {"dag_run": SimpleNamespace(run_type=run_type), "ti": task_instance}


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        (context(), False),
        # whichever try of the three that Airflow gives by itself
        (context(max_tries=2), False),
        (context(max_tries=3), True),
        (context(run_type="manual", max_tries=2), True),
    ],
)
def test_what_failed_is_tried_at_once_where_a_person_asks(
    shop: Source,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    given: Any,
    asked: bool,
) -> None:
    loaded(shop, monkeypatch, "b")
    failed = Failure("no luck at all", utc_now(), fingerprint([instance(shop, "a")]))
    loaded(shop, monkeypatch, "a", failed=failed)
    wait = sensor(retries=2)
    assert wait.poke(given).xcom_value == (str(shop.max_lsn()) if asked else None)
    assert (f"dbo.a ({Reason.RETRY.value})" in capsys.readouterr().out) == asked
    assert ("it is tried again now, since a person asks for this run: no luck at all" in caplog.text) == asked
    # what fails after the wait began was tried; a trigger knows both, too
    loaded(shop, monkeypatch, "a", failed=dataclasses.replace(failed, time=utc_now()))
    wait = sensor(retries=2, deferrable=True)
    wait._waiting_since = utc_now() - datetime.timedelta(minutes=1)
    with pytest.raises(TaskDeferred) as deferred:
        wait.execute(given)
    _, arguments = deferred.value.trigger.serialize()
    assert (arguments["asked"], arguments["waiting_since"]) == (asked, wait._waiting_since.timestamp())


def test_the_trigger_tries_what_failed_before_the_wait(shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(shop, monkeypatch, "b")
    loaded(shop, monkeypatch, "a", failed=Failure("no luck", utc_now(), fingerprint([instance(shop, "a")])))
    trigger = MsSqlCdcTrigger(
        tables=["dbo.*"], target=TARGET, mssql_conn_id=CONN_ID, waiting_since=utc_now().timestamp(), asked=True
    )

    async def fire() -> dict[str, Any]:
        return dict((await anext(aiter(trigger.run()))).payload)

    assert f"dbo.a ({Reason.RETRY.value})" in asyncio.run(fire())["message"]


def test_a_table_that_failed_for_want_of_cdc_is_called_for_once_it_is_to_be_enabled(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whom may do that, and once by whom may not: that login would fail in each run."""
    group = Group(source)
    group.make("dbo.b")
    group.loaded(B)
    source.sql("CREATE TABLE dbo.a (id int NOT NULL PRIMARY KEY)")

    def called(on_disabled: str, hook: MsSqlCdcHook) -> dict[TableName, Reason]:
        request = WatchRequest(
            CONN_ID, read_entries("dbo.*", salted=True), (), TableOptions(Target.parse(TARGET)), on_disabled
        )
        wake = poll(Watch(request, group.store), hook, (CdcSource(hook),), utc_now(), utc_now())
        return {} if wake is None else {name: call.reason for name, call in wake.calls.items()}

    def load(on_disabled: str, hook: MsSqlCdcHook) -> None:
        request = group.request(on_disabled=on_disabled)
        group.settle(plan_load(hook, group.store, request, None), request)

    with source.hook() as owner, group.reader() as reader:
        for schema in ("dbo", "cdc"):
            source.sql(f"GRANT SELECT ON SCHEMA::[{schema}] TO [{reader.where.login}]")
        assert called("fail", owner) == {A: Reason.DISABLED}
        load("fail", owner)
        assert called("fail", owner) == {}
        assert called("enable", owner) == {A: Reason.NOT_ENABLED}
        load("enable", reader)
        assert "Ask a member of" in group.checkpoint(A).failure().reason  # type: ignore[union-attr]
        assert called("enable", owner) == {}
        load("enable", owner)
        assert len(owner.capture_instances([A])) == 1


def test_a_repaired_table_waits_until_its_new_instance_has_captured(
    shop: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load would wait too, and the sensor would call for another at once."""
    loaded(shop, monkeypatch, "b")
    seen = fingerprint([instance(shop, "a")])
    loaded(shop, monkeypatch, "a", failed=Failure("no", datetime.datetime.now(datetime.UTC), seen))
    shop.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'a', N'all'")
    assert not sensor().poke({})
    shop.enable("dbo.a")
    assert not sensor().poke({})
    shop.sql("INSERT INTO dbo.a VALUES (2)")
    shop.scan()
    assert sensor().poke({}).is_done


def test_an_unreadable_checkpoint_troubles_its_table_alone(
    shop: Source, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loaded(shop, monkeypatch, "a")
    variable = shop.identity(TableName("dbo", "b")).variable
    put(monkeypatch, {f"AIRFLOW_VAR_{variable.upper()}": "{"})
    wait = sensor()
    assert not wait.poke({})
    assert not wait.poke({})
    assert [
        record.levelno for record in caplog.records if "left out: dbo.b: the checkpoint" in record.getMessage()
    ] == [logging.WARNING]
    shop.sql("INSERT INTO dbo.a VALUES (2); INSERT INTO dbo.b VALUES (2)")
    shop.scan()
    assert wait.poke({}).is_done
    assert wait._watch is not None
    now = datetime.datetime.now(datetime.UTC)
    with shop.hook() as hook:
        wake = poll(wait._watch, hook, (CdcSource(hook),), now, now)
    assert wake is not None
    assert {str(name): call.reason for name, call in wake.calls.items()} == {"dbo.a": Reason.EVENTS}


def test_a_newer_checkpoint_ends_it_at_once(shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(shop, monkeypatch, "a", "b")
    identity = shop.identity(TableName("dbo", "a"))
    newer = {"version": 99, "needs": "0.9.1"}
    put(monkeypatch, {f"AIRFLOW_VAR_{identity.variable.upper()}": json.dumps(newer)})
    for deferrable in (False, True):
        with pytest.raises(
            AirflowFailException, match=r"has version 99, which .* 0\.9\.1 reads; this is .*Upgrade the package"
        ):
            sensor(deferrable=deferrable).execute({})


def test_an_unreadable_checkpoint_calls_for_a_run_that_says_so_after_max_idle(
    shop: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded(shop, monkeypatch, "a")
    variable = shop.identity(TableName("dbo", "b")).variable
    put(monkeypatch, {f"AIRFLOW_VAR_{variable.upper()}": "{"})
    wait = sensor(max_idle=3600)
    assert not wait.poke({})
    wait._waiting_since = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=2)
    assert wait.poke({}).is_done


def test_an_instance_that_is_dropped_for_a_newer_one_calls_for_a_load(
    shop: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With it goes the only change table that is looked at."""
    loaded(shop, monkeypatch, "a")
    wait = sensor(tables=["dbo.a"])
    assert not wait.poke({})
    shop.sql("EXEC sys.sp_cdc_enable_table N'dbo', N'a', N'a2', @role_name = NULL, @supports_net_changes = 0")
    shop.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'a', N'dbo_a'")
    assert not wait.poke({}), "nothing is captured yet"
    shop.sql("INSERT INTO dbo.a VALUES (2)")
    shop.scan()
    assert wait.poke({}).is_done


def test_a_table_whose_last_instance_is_dropped_is_waited_for(
    shop: Source, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loaded(shop, monkeypatch, "a")
    wait = sensor(tables=["dbo.a"])
    assert not wait.poke({})
    shop.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'a', N'dbo_a'")
    assert wait.poke({}).is_done, "a load fails, and says so"
    assert "dbo.a has no capture instance" in caplog.text
    loaded(shop, monkeypatch, "b")
    identity = shop.identity(TableName("dbo", "a"))
    told = Checkpoint(identity, updated_at=utc_now())
    told = told.failing(["mirror"], Failure("CDC is off", utc_now(), fingerprint(())))
    put(monkeypatch, {f"AIRFLOW_VAR_{identity.variable.upper()}": to_json(told)})
    wait = sensor(tables=["dbo.a"])
    assert not wait.poke({})
    shop.enable("dbo.a")
    shop.sql("INSERT INTO dbo.a VALUES (2)")
    shop.scan()
    assert wait.poke({}).is_done


def test_a_table_that_may_not_be_read_does_not_hold_up_the_others(
    shop: Source, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    start = instance(shop, "a").min_lsn
    assert start is not None
    loaded(shop, monkeypatch, "a", "b", position=start.previous())
    login, password = f"watcher_{shop.name}", "Watcher-pw-12345"
    shop.sql(f"CREATE LOGIN [{login}] WITH PASSWORD = N'{password}'")
    shop.sql(f"CREATE USER [{login}] FOR LOGIN [{login}]")
    shop.sql(f"GRANT SELECT ON SCHEMA::[dbo] TO [{login}]")
    for name in ("change_tables", "captured_columns", "index_columns", "ddl_history", "lsn_time_mapping", "dbo_b_CT"):
        shop.sql(f"GRANT SELECT ON [cdc].[{name}] TO [{login}]")
    put(monkeypatch, shop.environment(login, password))
    wait = sensor()
    with caplog.at_level(logging.WARNING):
        assert wait.poke({}).is_done
    assert "dbo_a" in caplog.text
    assert f"GRANT SELECT ON SCHEMA::[cdc] TO [{login}];" in caplog.text
    loaded(shop, monkeypatch, "b")
    assert sensor().poke({}).is_done, "a load says what is to be done about the other one"
    assert not sensor(on_disabled="skip").poke({})


@pytest.mark.parametrize("on_disabled", ["fail", "skip"])
def test_cdc_off_for_the_database_ends_it(source: Source, monkeypatch: pytest.MonkeyPatch, on_disabled: str) -> None:
    source.sql("CREATE TABLE dbo.a (id int)")
    put(monkeypatch, source.environment())
    with pytest.raises(AirflowFailException, match="sp_cdc_enable_db"):
        sensor(on_disabled=on_disabled).poke({})


def test_cdc_off_calls_for_a_load_that_enables_it(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    source.sql("CREATE TABLE dbo.a (id int)")
    put(monkeypatch, source.environment())
    found = sensor(on_disabled="enable").poke({})
    assert (found.is_done, found.xcom_value) == (True, None)


def test_an_untracked_table_is_named_and_left_to_the_load(
    shop: Source,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    loaded(shop, monkeypatch, "a", "b")
    shop.sql("CREATE TABLE dbo.plain (id int)")
    wait = sensor(on_disabled="skip")
    assert not wait.poke({})
    assert not wait.poke({})
    assert caplog.text.count("dbo.plain has no capture instance") == 1
    # the load enables it, or fails
    for on_disabled, why in (("enable", Reason.NOT_ENABLED), ("fail", Reason.DISABLED)):
        assert sensor(on_disabled=on_disabled).poke({}).is_done
        assert f"dbo.plain ({why.value})" in capsys.readouterr().out


def test_a_named_table_that_is_not_there_calls_for_one_load(
    shop: Source, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded(shop, monkeypatch, "a")
    named = ["a", "dbo.Gone", "sales.*"]
    assert sensor(tables=named).poke({}).is_done
    assert f"dbo.Gone ({Reason.MISSING.value})" in capsys.readouterr().out
    failed = Failure("it does not exist", utc_now(), MISSING)
    identity = shop.identity(TableName("dbo", "Gone"))
    told = Checkpoint(identity, updated_at=utc_now()).failing(["mirror"], failed)
    put(monkeypatch, {f"AIRFLOW_VAR_{identity.variable.upper()}": to_json(told)})
    assert not sensor(tables=named).poke({})
    # once it is there, only what it is itself counts
    shop.sql("CREATE TABLE dbo.Gone (id int NOT NULL PRIMARY KEY)")
    shop.enable("dbo.Gone")
    shop.sql("INSERT INTO dbo.Gone VALUES (1)")
    shop.scan()
    assert sensor(tables=named).poke({}).is_done
    assert f"dbo.Gone ({Reason.FIRST_LOAD.value})" in capsys.readouterr().out


def test_failed_tables_are_named_when_it_begins_to_wait(
    shop: Source, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seen = fingerprint([instance(shop, "a")])
    loaded(shop, monkeypatch, "b")
    since = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
    loaded(shop, monkeypatch, "a", failed=Failure("dbo.a: no luck at all", utc_now(), seen, since))
    wait = sensor(max_idle=7200)
    assert not wait.poke({})
    assert not wait.poke({})
    (line,) = [record.getMessage() for record in caplog.records if "no luck" in record.getMessage()]
    assert re.fullmatch(
        r"dbo\.a fails since 2026-03-01 12:00:00\+00:00; it is tried again when its capture instance or schema "
        r"changes, when you clear the task or start a run by hand, or after 2:00:00: no luck at all",
        line,
    )


def test_no_table_at_all_ends_it(shop: Source) -> None:
    with pytest.raises(AirflowFailException, match=r"nothing\.\*"):
        sensor(tables=["nothing.*"]).poke({})


def test_a_capture_that_is_late_is_told_when_it_begins_and_once_per_max_lag(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with harsh_sandbox(agent_running=False) as still:
        server = {"host": still.host, "port": still.port, "user": still.user, "password": still.password}
        database = Source(server, "still")
        database.sql("CREATE TABLE dbo.a (id int NOT NULL PRIMARY KEY)")
        for statement in (
            "EXEC sys.sp_cdc_enable_db",
            "EXEC sys.sp_cdc_enable_table N'dbo', N'a', @role_name = NULL, @supports_net_changes = 0",
        ):
            still.execute(statement, database="still")
        put(monkeypatch, database.environment())
        wait = sensor()
        assert not wait.poke({})
        assert not wait.poke({})
        assert caplog.text.count("the capture of still is late") == 1
        assert "SQL Server Agent is stopped" in caplog.text
        watch, now = wait._watch, utc_now()
        with database.hook() as hook:
            for minutes, told in ((29, 1), (31, 2), (59, 2), (62, 3)):
                watch.refresh(hook, (CdcSource(hook),), now + datetime.timedelta(minutes=minutes))
                assert caplog.text.count("the capture of still is late") == told
        for deferrable in (False, True):
            with pytest.raises(AirflowFailException, match="the capture of still is late"):
                sensor(on_lag="fail", deferrable=deferrable).execute({})
        # who may not see the Agent is told once that nothing can be known
        caplog.clear()
        caplog.set_level(logging.INFO)
        database.sql("CREATE LOGIN plain WITH PASSWORD = N'Reader-pw-12345'")
        for statement in ("CREATE USER plain FOR LOGIN plain", "GRANT SELECT TO plain"):
            still.execute(statement, database="still")
        put(monkeypatch, database.environment("plain", "Reader-pw-12345"))
        wait = sensor(on_lag="fail")
        assert not wait.poke({})
        assert not wait.poke({})
        (record,) = [r for r in caplog.records if "is late cannot be known" in r.getMessage()]
        assert record.levelname == "INFO"
        database.close()


class Rescheduled(dict[str, Any]):
    """What Airflow gives each process of a sensor that is rescheduled: a state, and when the first one began."""

    first: datetime.datetime | None = None

    def set(self, key: str, value: Any) -> None:
        self[key] = value

    def poke(self, **parameters: Any) -> Any:
        """Poke in a process of its own."""
        ti = SimpleNamespace(max_tries=0, get_first_reschedule_date=lambda _: self.first)
        wait = sensor(mode="reschedule", **parameters)
        try:
            return wait.poke({"ti": ti, "task_state_store": self})
        finally:
            wait._close()
            self.first = self.first or utc_now()


def test_each_process_of_a_rescheduled_wait_says_only_what_is_new(
    shop: Source, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loaded(shop, monkeypatch, "b")
    loaded(shop, monkeypatch, "a", failed=Failure("no luck", utc_now(), fingerprint([instance(shop, "a")])))
    shop.sql("CREATE TABLE dbo.plain (id int); CREATE TABLE dbo.c (id int NOT NULL PRIMARY KEY)")
    shop.enable("dbo.c")
    put(monkeypatch, {f"AIRFLOW_VAR_{shop.identity(TableName('dbo', 'c')).variable.upper()}": "{"})
    said = ["no luck", "dbo.plain has no capture instance", "left out: dbo.c"]
    for wait in (Rescheduled(), Rescheduled()):
        caplog.clear()
        for _ in range(3):
            assert not wait.poke(on_disabled="skip")
            assert [caplog.text.count(line) for line in said] == [1, 1, 1]


def test_a_rescheduled_wait_tells_once_per_max_lag_that_the_capture_is_late(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with harsh_sandbox(agent_running=False) as still:
        server = {"host": still.host, "port": still.port, "user": still.user, "password": still.password}
        database = Source(server, "still")
        for statement in (
            "EXEC sys.sp_cdc_enable_db",
            "CREATE TABLE dbo.a (id int NOT NULL PRIMARY KEY)",
            "EXEC sys.sp_cdc_enable_table N'dbo', N'a', @role_name = NULL, @supports_net_changes = 0",
        ):
            still.execute(statement, database="still")
        put(monkeypatch, database.environment())
        for given in ({}, {"target": None, "after": "0x" + "F" * 20}):
            caplog.clear()
            wait, now = Rescheduled(), utc_now()
            for minutes, told in ((0, 1), (1, 1), (29, 1), (31, 2), (59, 2), (62, 3)):
                monkeypatch.setattr(
                    "airflow_provider_mssql_cdc.sensors.mssql_cdc.utc_now",
                    lambda: now + datetime.timedelta(minutes=minutes),  # noqa: B023
                )
                assert not wait.poke(**given)
                assert caplog.text.count("the capture of still is late") == told
            # another try begins anew
            wait.first = None
            assert not wait.poke(**given)
            assert caplog.text.count("the capture of still is late") == 4
        database.close()


def test_a_scan_that_failed_is_no_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    with harsh_sandbox(agent_running=False) as still:
        server = {"host": still.host, "port": still.port, "user": still.user, "password": still.password}
        database = Source(server, "still")
        for statement in (
            "EXEC sys.sp_cdc_enable_db",
            "CREATE TABLE dbo.a (id int NOT NULL PRIMARY KEY)",
            "EXEC sys.sp_cdc_enable_table N'dbo', N'a', @role_name = NULL, @supports_net_changes = 0",
            "INSERT INTO dbo.a VALUES (1)",
        ):
            still.execute(statement, database="still")
        still.step("still")
        then = datetime.datetime(2030, 1, 1)
        still.set_time(then)
        still.execute("INSERT INTO dbo.a VALUES (2)", database="still")
        with database.hook() as hook:
            with still.faults.capture("still"):
                with pytest.raises(SqlError):
                    still.step("still")
                lag = hook.lag(hook.database_status(), datetime.timedelta(minutes=30))
            assert lag is not None
            assert lag.late
            still.step("still")
            assert hook.lag(hook.database_status(), datetime.timedelta(minutes=30)) is None
        database.close()


def test_poking_returns_the_cut(shop: Source) -> None:
    assert sensor(mode="poke").execute({}) == str(shop.max_lsn())


def test_deferral_and_the_trigger_that_ends_it(shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    wait = sensor(deferrable=True, poll_interval=0.05, timeout=3600, max_idle=7200)
    assert wait.execute({}) == str(shop.max_lsn())
    loaded(shop, monkeypatch, "a", "b")
    with pytest.raises(TaskDeferred) as deferred:
        wait.execute({})
    assert deferred.value.timeout == datetime.timedelta(hours=1)
    trigger = deferred.value.trigger
    assert isinstance(trigger, MsSqlCdcTrigger)
    path, arguments = trigger.serialize()
    assert path == "airflow_provider_mssql_cdc.triggers.mssql_cdc.MsSqlCdcTrigger"
    assert (arguments["max_idle"], arguments["poll_interval"], arguments["shapes"]) == (7200, 0.05, ["mirror"])
    shop.sql("INSERT INTO dbo.a VALUES (2)")
    shop.scan()

    async def fire() -> dict[str, Any]:
        event = await anext(aiter(MsSqlCdcTrigger(**arguments).run()))
        return dict(event.payload)

    event = asyncio.run(fire())
    assert getattr(wait, deferred.value.method_name)({}, event) == str(shop.max_lsn())


def test_a_trigger_that_gave_up_fails_the_task() -> None:
    with pytest.raises(AirflowFailException, match="because"):
        sensor().execute_complete({}, {"status": "error", "message": "because"})


def test_an_unreachable_server_is_left_to_the_trigger(shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Source.__new__(Source)
    gone.server, gone.name = {**shop.server, "port": 1}, shop.name
    put(monkeypatch, gone.environment())
    with pytest.raises(TaskDeferred):
        sensor(deferrable=True).execute({})


def test_poking_outlasts_a_server_that_is_away(
    shop: Source, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = Source.__new__(Source)
    gone.server, gone.name = {**shop.server, "port": 1}, shop.name
    put(monkeypatch, gone.environment())
    wait = sensor()
    assert not wait.poke({})
    assert "This look failed, and is repeated: no SQL Server answers at" in capsys.readouterr().out
    put(monkeypatch, shop.environment())
    wait._close()
    assert wait.poke({}).is_done


def test_soft_fail_skips_before_a_deferral_too(shop: Source) -> None:
    with pytest.raises(AirflowSkipException):
        sensor(deferrable=True, soft_fail=True, tables=["nothing.*"]).execute({})


def test_it_takes_the_loads_parameters_and_no_others() -> None:
    shared = dict.fromkeys(LOAD_ONLY)
    assert sensor(**shared).tables == ["dbo.*"]
    with pytest.raises(TypeError, match="tabels"):
        sensor(tabels=["a"])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"on_disabled": "ignore"}, "on_disabled"),
        ({"poll_interval": 0}, "poll_interval"),
        ({"shapes": ["mirrors"]}, "shapes"),
        ({"max_idle": 0}, "max_idle"),
        ({"tables": []}, "tables is empty"),
        ({"tables": ["a.b.c"]}, "a.b.c"),
        ({"target": "iceberg://lake/../x"}, "no name of a namespace"),
        ({"table_name": "{nope}"}, "table_name='{nope}'"),
    ],
)
def test_parameters_without_a_meaning_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sensor(**parameters)


@pytest.mark.parametrize("deferrable", [False, True])
def test_a_connection_that_is_not_there_fails_at_once(deferrable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(f"AIRFLOW_CONN_{CONN_ID.upper()}", raising=False)
    with pytest.raises(AirflowFailException, match=CONN_ID):
        sensor(deferrable=deferrable).execute({})


@pytest.mark.parametrize(
    ("name", "rendered", "message"),
    [("tables", [], "tables is empty"), ("exclude", ["a."], "a."), ("target", "iceberg://lake/..", "namespace")],
)
@pytest.mark.parametrize("deferrable", [False, True])
def test_templates_that_become_nothing_useful_fail_at_once(
    name: str, rendered: object, message: str, deferrable: bool
) -> None:
    wait = sensor(**{name: "{{ params.given }}"}, deferrable=deferrable)
    setattr(wait, name, rendered)
    with pytest.raises(AirflowFailException, match=message):
        wait.execute({})


# --- for a job of one's own


def above(after: object, **parameters: Any) -> MsSqlCdcSensor:
    return MsSqlCdcSensor(task_id="wait", after=str(after), mssql_conn_id=CONN_ID, **parameters)


def test_without_target_it_waits_for_a_change_above_a_position(shop: Source) -> None:
    begun = shop.max_lsn()
    both, whole = above(begun, tables=["dbo.a", "dbo.b"]), above(begun)
    assert not both.poke({}).is_done
    assert not whole.poke({}).is_done
    shop.sql("CREATE TABLE dbo.c (id int PRIMARY KEY)")
    shop.enable("dbo.c")
    shop.sql("INSERT INTO dbo.c VALUES (1)")
    shop.scan()
    assert not both.poke({}).is_done, "another table's change is none of theirs"
    found = whole.poke({})
    assert (found.is_done, found.xcom_value) == (True, str(shop.max_lsn()))
    shop.sql("INSERT INTO dbo.b VALUES (2)")
    shop.scan()
    found = both.poke({})
    assert (found.is_done, found.xcom_value) == (True, str(shop.max_lsn()))
    assert not above(found.xcom_value, tables=["dbo.a", "dbo.b"]).poke({}).is_done, "the next run's after"


def test_what_was_purged_above_the_position_ends_the_wait(shop: Source, capsys: pytest.CaptureFixture[str]) -> None:
    begun = shop.max_lsn()
    shop.sql("INSERT INTO dbo.a VALUES (2)")
    shop.scan()
    # commits of one moment stay together: what purges must be of a later one
    moments = f"SELECT COUNT(DISTINCT tran_end_time) FROM cdc.lsn_time_mapping WHERE start_lsn > {begun}"
    for key in itertools.count(2):
        shop.sql(f"INSERT INTO dbo.b VALUES ({key})")
        shop.scan()
        if shop.sql(moments) != [(1,)]:
            break
    purge = f"EXEC sys.sp_cdc_cleanup_change_table 'dbo_a', {shop.max_lsn()}"
    assert shop.sql(f"{purge} SELECT COUNT(*) FROM cdc.dbo_a_CT") == [(0,)]
    found = above(begun, tables=["dbo.a"]).poke({})
    assert (found.is_done, found.xcom_value) == (True, str(shop.max_lsn()))
    assert "dbo.a (changes were purged" in capsys.readouterr().out
    assert not above(found.xcom_value, tables=["dbo.a"]).poke({}).is_done, "it does not spin"


def test_it_defers_with_the_position(shop: Source) -> None:
    wait = above(shop.max_lsn(), tables=["dbo.a"], deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        wait.execute({})
    path, arguments = deferred.value.trigger.serialize()
    again = MsSqlCdcTrigger(**arguments)
    assert path.endswith("MsSqlCdcTrigger")
    assert (again.after, again.target, again.tables) == (str(shop.max_lsn()), None, ["dbo.a"])

    async def fired() -> dict[str, Any]:
        async for event in again.run():
            return event.payload
        raise AssertionError("it ended without an event")

    shop.sql("INSERT INTO dbo.a VALUES (9)")
    shop.scan()
    assert asyncio.run(fired()) == {
        "status": "success", "upto": str(shop.max_lsn()), "message": f"up to {shop.max_lsn()}: dbo.a (events)",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "one of them"),
        ({"after": "0x0", "target": TARGET, "tables": ["dbo.a"]}, "one of them"),
        ({"target": TARGET}, "tables: name the tables"),
        ({"after": "0x0", "tables": []}, "tables is empty"),
    ],
)
def test_target_and_after_exclude_each_other(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        MsSqlCdcSensor(task_id="wait", **given)


def test_what_is_no_position_and_what_has_no_changes_fail_at_once(shop: Source) -> None:
    with pytest.raises(AirflowFailException, match=r"after='None' is no LSN.*this sensor returns it so"):
        above(None, tables=["dbo.a"]).poke({})
    shop.sql("CREATE TABLE dbo.untracked (id int)")
    with pytest.raises(AirflowFailException, match=r"off for all tables that dbo\.untracked match"):
        above(shop.max_lsn(), tables=["dbo.untracked"]).poke({})
