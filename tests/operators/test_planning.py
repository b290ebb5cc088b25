"""Plans against a server: what is loaded, what is quiet, and which table fails alone."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Failure
from airflow_provider_mssql_cdc.core.copy_requests import CopyRequest, CopyRequests
from airflow_provider_mssql_cdc.core.database import ChangeTables
from airflow_provider_mssql_cdc.core.exceptions import (
    CdcDisabledError,
    CdcPermissionError,
    CheckpointError,
    GapError,
    InstanceChangedError,
    ParameterError,
    RestoredError,
    SqlServerError,
    TargetError,
)
from airflow_provider_mssql_cdc.core.feed import FeedRef
from airflow_provider_mssql_cdc.core.position import Cut, Lsn
from airflow_provider_mssql_cdc.core.receipt import Receipt, TableReceipt
from airflow_provider_mssql_cdc.core.resting import fingerprint
from airflow_provider_mssql_cdc.core.spec import JobSpec, SourceSpec
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.table_options import TableOptions, read_entries
from airflow_provider_mssql_cdc.core.target import Target
from airflow_provider_mssql_cdc.core.wake import Reason
from airflow_provider_mssql_cdc.hooks.change_source import CdcSource
from airflow_provider_mssql_cdc.hooks.looking import poll
from airflow_provider_mssql_cdc.hooks.watch import Watch, WatchRequest
from airflow_provider_mssql_cdc.operators.outcome import Outcome
from airflow_provider_mssql_cdc.operators.planning import plan_load
from airflow_provider_mssql_cdc.triggers.polling import utc_now
from tests.support.core.states import checkpoint_of
from tests.support.hooks.source import CONN_ID, TARGET, CountingHook, Source
from tests.support.operators.group import A, B, Group
from tests.support.operators.master import loaded


@pytest.fixture
def group(source: Source) -> Group:
    """Two tables, each with one event."""
    made = Group(source)
    made.make("dbo.a", "dbo.b")
    return made


class Interrupted(CountingHook):
    """The hook, to which something happens right before its second probe."""

    happening: Callable[[], Any]
    probes = 0

    def probe(self, *args: Any, **kwargs: Any) -> ChangeTables:
        self.probes += 1
        if self.probes == 2:
            self.happening()
        return super().probe(*args, **kwargs)


def interrupted(source: Source, happening: Callable[[], Any]) -> Interrupted:
    hook = Interrupted(connection=source.airflow_connection())
    hook.happening = happening
    return hook


def limited(group: Group, happening: Callable[[], Any], **given: Any) -> Any:
    """A plan whose limit admits the first transaction only; something happens between its two looks."""
    with interrupted(group.source, happening) as hook:
        plan = plan_load(hook, group.store, group.request(max_transactions=1, **given), None)
    assert hook.probes == 2
    return plan


def test_without_a_checkpoint_the_job_is_told_of_both_instances(group: Group) -> None:
    """The markers of the targets, which only the job sees, say which of them goes on."""
    group.loaded(B)
    group.source.sql(
        "EXEC sys.sp_cdc_enable_table N'dbo', N'a', N'second', @role_name = NULL, @supports_net_changes = 0"
    )
    group.source.sql(
        "EXEC sys.sp_cdc_enable_table N'dbo', N'b', N'third', @role_name = NULL, @supports_net_changes = 0"
    )
    group.change("INSERT INTO dbo.a (id) VALUES (2); INSERT INTO dbo.b (id) VALUES (2)")
    with group.source.hook() as hook:
        plan = plan_load(hook, group.store, group.request(), None)
    told = {str(s.name): (s.feed.name, [a.feed.name for a in s.alternatives]) for s in plan.specs}
    assert told == {"dbo.a": ("second", ["dbo_a"]), "dbo.b": ("dbo_b", [])}


def test_a_checkpoint_that_only_knows_a_failure_says_no_more_of_the_instance_than_none(group: Group) -> None:
    group.loaded(B)
    failure = Failure("no", datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), fingerprint(()))
    group.store.overwrite(Checkpoint(group.source.identity(A)).failing(["mirror"], failure))
    group.source.sql(
        "EXEC sys.sp_cdc_enable_table N'dbo', N'a', N'second', @role_name = NULL, @supports_net_changes = 0"
    )
    group.change("INSERT INTO dbo.a (id) VALUES (2)")
    with group.source.hook() as hook:
        (spec,) = plan_load(hook, group.store, group.request(), None).specs
    assert (spec.feed.name, [each.feed.name for each in spec.alternatives]) == ("second", ["dbo_a"])


@pytest.mark.parametrize(("rows", "small"), [(5, True), (4, False), (0, False)])
def test_a_small_run_has_few_change_rows_in_all_tables_together(group: Group, rows: int, small: bool) -> None:
    group.loaded(A, B)
    # an update has two images
    group.change(
        "INSERT INTO dbo.a (id) VALUES (107), (108); INSERT INTO dbo.b (id) VALUES (109);"
        " UPDATE dbo.b SET v = 5 WHERE id = 109"
    )
    with group.source.hook() as hook:
        plan = plan_load(hook, group.store, group.request(small_window=rows), None)
    assert (len(plan.specs), plan.small) == (2, small)


def test_the_job_is_told_what_copies_are_cut_by(group: Group) -> None:
    with group.source.hook() as hook:
        request = group.request("dbo.a", {"table": "dbo.b", "copy_by": ["v", "id"]})
        specs = plan_load(hook, group.store, request, None).specs
    assert {spec.name: spec.copy_by for spec in specs} == {A: (), B: ("v", "id")}


def test_a_run_with_a_copy_is_not_small(group: Group) -> None:
    group.loaded(B)
    group.change("INSERT INTO dbo.b (id) VALUES (2)")
    with group.source.hook() as hook:
        plan = plan_load(hook, group.store, group.request(small_window=1000), None)
    assert (len(plan.specs), plan.small) == (2, False)


class Uncounted(CdcSource):
    """The source, whose change rows cannot be counted."""

    def has_at_most(self, *_: Any) -> bool:
        raise SqlServerError("deadlock", number=1205)


def test_changes_that_cannot_be_counted_are_no_small_run(group: Group) -> None:
    group.loaded(A, B)
    group.change("INSERT INTO dbo.a (id) VALUES (107)")
    with group.source.hook() as hook:
        plan = plan_load(hook, group.store, group.request(small_window=1000), None, (Uncounted(hook),))
    assert ([str(spec.name) for spec in plan.specs], plan.failures, plan.small) == (["dbo.a"], {}, False)


def test_an_instance_that_was_just_enabled_keeps_nobody_from_reading_the_other_one(group: Group) -> None:
    group.loaded(B)
    group.source.sql(
        "EXEC sys.sp_cdc_enable_table N'dbo', N'a', N'second', @role_name = NULL, @supports_net_changes = 0"
    )
    with group.source.hook() as hook:
        plan = plan_load(hook, group.store, group.request(), None)
    assert [(spec.name, spec.feed.name, spec.alternatives) for spec in plan.specs] == [(A, "dbo_a", ())]
    assert (plan.waiting, plan.failures) == ([], {})


def test_a_limit_admits_the_first_transaction(group: Group) -> None:
    group.loaded(A, B)
    first = group.change("INSERT INTO dbo.a (id) VALUES (2)")
    group.change("INSERT INTO dbo.a (id) VALUES (3)")
    plan = limited(group, lambda: None)
    assert ([spec.name for spec in plan.specs], list(plan.quiet), plan.failures) == ([A], [B], {})
    assert plan.upto == Cut.at(first)


def test_a_limited_run_leaves_alone_what_only_a_copy_mends(group: Group) -> None:
    group.loaded(A, B)
    stored, identity = group.checkpoint(A), group.source.identity(A)
    assert stored is not None
    lost = Failure("a value is lost", datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), copy_mends=True)
    group.store.overwrite(stored.failing(["mirror"], lost))
    CopyRequests(group.variables).save(CopyRequest(identity, "c1"))
    group.change("INSERT INTO dbo.b (id) VALUES (2); INSERT INTO dbo.a (id) VALUES (2)")
    group.change("INSERT INTO dbo.b (id) VALUES (3)")
    assert [spec.name for spec in limited(group, lambda: None).specs] == [B]
    with group.source.hook() as hook:
        specs = plan_load(hook, group.store, group.request(), None).specs
    assert {spec.name: [sink.shape for sink in spec.sinks] for spec in specs} == {A: ["mirror"], B: ["mirror"]}


def test_a_renamed_table_is_another_one(group: Group) -> None:
    position = group.loaded(A, B)
    group.source.sql("EXEC sp_rename 'dbo.a', 'c'")
    group.change("INSERT INTO dbo.c (id) VALUES (2)")
    with group.source.hook() as hook:
        plan = plan_load(hook, group.store, group.request(), None)
    (spec,) = plan.specs
    assert (spec.name, spec.feed.name) == (TableName("dbo", "c"), "dbo_a")
    assert [(sink.read_through, sink.table[-1]) for sink in spec.sinks] == [(None, "dbo_c")]
    assert (list(plan.quiet), plan.failures) == ([B], {})
    left = group.checkpoint(A)
    assert left is not None
    assert left.position(left.sinks) == position


@pytest.mark.parametrize("copy_on_gap", [False, True])
def test_what_is_purged_between_the_two_looks_of_a_limited_run_is_a_gap(group: Group, copy_on_gap: bool) -> None:
    position = group.loaded(A, B)
    group.change("INSERT INTO dbo.a (id) VALUES (2)")
    last = group.change("INSERT INTO dbo.a (id) VALUES (3)")

    def purge() -> None:
        group.source.sql(f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_a', {last}")

    plan = limited(group, purge, copy_on_gap=copy_on_gap)
    assert list(plan.quiet) == [B]
    if copy_on_gap:
        (sink,) = plan.specs[0].sinks
        assert (plan.specs[0].name, sink.read_through, sink.lost_after) == (A, None, position)
        return
    assert plan.specs == []
    assert isinstance(plan.failures[A], GapError)
    # of commits with one time the first one becomes the mark (docs)
    ((mark,),) = group.source.sql("SELECT sys.fn_cdc_get_min_lsn(N'dbo_a')")
    assert (plan.failures[A].after, plan.failures[A].readable_from) == (position, Lsn(mark).previous())


def test_an_instance_that_vanishes_between_the_two_looks_is_planned_again(group: Group) -> None:
    """The rows of its change table were looked at before; its mark is gone."""
    group.loaded(A, B)
    group.change("INSERT INTO dbo.a (id) VALUES (2)")
    group.change("INSERT INTO dbo.a (id) VALUES (3)")

    class Vanishing(Interrupted):
        def probe(self, *args: Any, **kwargs: Any) -> ChangeTables:
            probe = super().probe(*args, **kwargs)
            # between the two statements of one probe
            gone = {i.object_id for i in self.capture_instances([A])} if self.probes == 2 else set()
            return dataclasses.replace(probe, min_lsns={k: v for k, v in probe.min_lsns.items() if k not in gone})

    hook = Vanishing(connection=group.source.airflow_connection())
    hook.happening = lambda: None
    with hook:
        plan = plan_load(hook, group.store, group.request(max_transactions=1), None)
    assert (plan.specs, list(plan.quiet)) == ([], [B])
    assert isinstance(plan.failures[A], InstanceChangedError)
    assert not plan.failures[A].permanent


def test_a_failed_table_without_an_instance_keeps_what_is_loaded(group: Group) -> None:
    group.loaded(A, B)
    before = group.checkpoint(A)
    group.source.sql(
        "EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'a', @capture_instance = N'all'"
    )
    with group.source.hook() as hook:
        plan = plan_load(hook, group.store, group.request(), None)
    assert isinstance(plan.failures[A], CdcDisabledError)
    rows = group.settle(plan, group.request())
    assert rows["dbo.a"]["status"] == "failed"
    after = group.checkpoint(A)
    assert before is not None
    assert after is not None
    failed = after.failure()
    assert failed is not None
    assert failed.seen == fingerprint(())
    assert after == dataclasses.replace(before, updated_at=after.updated_at).failing(["mirror"], failed)
    with group.source.hook() as hook:
        group.settle(plan_load(hook, group.store, group.request(), None), group.request())
    assert group.checkpoint(A) == after, "what is known is not written again"


@pytest.mark.parametrize("text", ["{", '{"version": 99}'], ids=["damaged", "newer"])
def test_an_unreadable_checkpoint_fails_its_table_alone_and_stays(group: Group, text: str) -> None:
    group.loaded(A, B)
    variable = group.source.identity(B).variable
    group.variables[variable] = text
    group.change("INSERT INTO dbo.a (id) VALUES (2); INSERT INTO dbo.b (id) VALUES (2)")
    with group.source.hook() as hook:
        plan = plan_load(hook, group.store, group.request(), None)
    assert [spec.name for spec in plan.specs] == [A]
    assert isinstance(plan.failures[B], CheckpointError)
    assert str(plan.failures[B]).startswith("dbo.b: ")
    rows = group.settle(plan, group.request())
    assert "checkpoint" in rows["dbo.b"]["error"]
    assert group.variables[variable] == text


def test_a_table_that_cannot_be_enabled_fails_alone(group: Group) -> None:
    group.loaded(A, B)
    # both would have the capture instance x_y_z
    for statement in (
        "CREATE SCHEMA x",
        "CREATE SCHEMA x_y",
        "CREATE TABLE x.y_z (id int NOT NULL PRIMARY KEY)",
        "CREATE TABLE x_y.z (id int NOT NULL PRIMARY KEY)",
    ):
        group.source.sql(statement)
    request = group.request("dbo.*", "x.*", "x_y.*", on_disabled="enable")
    # so that their target tables have names of their own
    request = dataclasses.replace(
        request, defaults=dataclasses.replace(request.defaults, table_name="{schema}.{table}")
    )
    with group.source.hook() as hook:
        plan = plan_load(hook, group.store, request, None)
    enabled = group.source.sql("SELECT OBJECT_NAME(source_object_id) FROM cdc.change_tables")
    assert {name for (name,) in enabled} == {"a", "b", "y_z"}
    (failed,) = plan.failures
    assert str(failed) == "x_y.z"
    assert isinstance(plan.failures[failed], SqlServerError)
    assert "x_y_z" in str(plan.failures[failed])


def test_a_tracked_table_whose_instance_the_login_may_not_see_is_not_enabled_again(group: Group) -> None:
    group.loaded(A, B)
    login, password = f"reader_{group.source.name}", "Reader-pw-12345"
    group.source.sql(f"CREATE LOGIN [{login}] WITH PASSWORD = N'{password}'")
    group.source.sql(f"CREATE USER [{login}] FOR LOGIN [{login}]")
    group.source.sql(f"GRANT SELECT ON SCHEMA::[dbo] TO [{login}]")
    for name in ("change_tables", "captured_columns", "index_columns", "ddl_history", "lsn_time_mapping", "dbo_b_CT"):
        group.source.sql(f"GRANT SELECT ON [cdc].[{name}] TO [{login}]")
    with group.source.hook(login, password) as hook:
        assert hook.enable_table(A) == []
        plan = plan_load(hook, group.store, group.request(on_disabled="enable"), None)
    assert list(plan.failures) == [A]
    text = str(plan.failures[A])
    assert f"GRANT SELECT ON SCHEMA::[cdc] TO [{login}];" in text
    assert "sp_cdc_enable_table" not in text
    assert list(plan.candidates) == [B]


@pytest.mark.parametrize("readable", [("dbo_b_CT",), ()], ids=["another", "none"])
def test_a_change_table_that_may_not_be_read_fails_alone(group: Group, readable: tuple[str, ...]) -> None:
    """Of a login that sees all of them (VIEW DEFINITION)."""
    group.loaded(A, B)
    group.change("INSERT INTO dbo.a (id) VALUES (2); INSERT INTO dbo.b (id) VALUES (2)")
    with group.source.hook() as hook, group.reader("lsn_time_mapping", "change_tables", *readable) as reader:
        hook.probe = reader.probe  # type: ignore[method-assign]
        plan = plan_load(hook, group.store, group.request(), None)
    assert [spec.name for spec in plan.specs] == ([B] if readable else [])
    assert list(plan.failures) == ([A] if readable else [A, B])
    for name, failure in plan.failures.items():
        assert isinstance(failure, CdcPermissionError)
        assert failure.permanent
        assert str(failure).startswith(f"{name}: ")
        assert f"GRANT SELECT ON SCHEMA::[cdc] TO [{reader.where.login}];" in str(failure)
    group.settle(plan, group.request())
    after = group.checkpoint(A)
    assert after is not None
    assert after.failure() is not None


@pytest.mark.parametrize("look", [1, 2])
def test_a_change_table_that_is_dropped_while_a_run_is_planned_fails_alone(group: Group, look: int) -> None:
    group.loaded(A, B)
    group.change("INSERT INTO dbo.b (id) VALUES (2)")
    group.change("INSERT INTO dbo.a (id) VALUES (2); INSERT INTO dbo.b (id) VALUES (3)")

    class Dropping(CountingHook):
        looks = 0

        def probe(self, *args: Any, **kwargs: Any) -> ChangeTables:
            self.looks += 1
            if self.looks == look:
                group.source.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'a', N'all'")
            return super().probe(*args, **kwargs)

    with Dropping(connection=group.source.airflow_connection()) as hook:
        plan = plan_load(hook, group.store, group.request(max_transactions=1), None)
    assert [spec.name for spec in plan.specs] == [B]
    assert isinstance(plan.failures[A], InstanceChangedError)
    assert not plan.failures[A].permanent


@pytest.mark.parametrize("behind", [False, True])
def test_a_run_without_events_takes_over_the_new_instance_at_once(group: Group, behind: bool) -> None:
    """Else the sensor would call for one run after the other, until the checkpoint is an hour old."""
    group.loaded(A, B)
    group.source.sql("EXEC sys.sp_cdc_enable_table N'dbo', N'a', N'a2', @role_name = NULL, @supports_net_changes = 0")
    position = group.change("INSERT INTO dbo.b (id) VALUES (2)")
    stored = group.checkpoint(A)
    assert stored is not None
    group.store.overwrite(
        dataclasses.replace(
            stored,
            sinks={"mirror": dataclasses.replace(stored.sinks["mirror"], applied=position, read_through=position)},
        )
    )
    if behind:
        group.change("INSERT INTO dbo.b (id) VALUES (3)")
    group.loaded(B)
    group.source.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'a', N'dbo_a'")
    assert called(group) == {A: Reason.INSTANCE_GONE}
    with group.source.hook() as hook:
        plan = plan_load(hook, group.store, group.request(), None)
        (instance,) = hook.capture_instances([A])
    assert (plan.specs, plan.failures) == ([], {})
    group.settle(plan, group.request())
    after = group.checkpoint(A)
    assert after is not None
    assert (after.sinks["mirror"].feed, after.position(after.sinks)) == (FeedRef.of(instance), group.source.max_lsn())
    assert called(group) == {}


def test_a_position_that_was_named_is_watched_where_a_load_would_read(group: Group) -> None:
    group.loaded(A, B)
    stored = group.checkpoint(A)
    assert stored is not None
    group.store.overwrite(checkpoint_of(stored.identity, stored.sinks))
    group.source.sql("EXEC sys.sp_cdc_enable_table N'dbo', N'a', N'a2', @role_name = NULL, @supports_net_changes = 0")
    group.change("INSERT INTO dbo.b (id) VALUES (2)")
    group.loaded(B)
    assert called(group) == {}
    with group.source.hook() as hook:
        plan = plan_load(hook, group.store, group.request(), None)
        instance = hook.capture_instances([A])[0]
    group.settle(plan, group.request())
    after = group.checkpoint(A)
    assert after is not None
    assert after.sinks["mirror"].feed == FeedRef.of(instance)
    assert called(group) == {}


def called(group: Group) -> dict[TableName, Reason]:
    """The tables for which a sensor would call, and why."""
    entries, defaults = read_entries("dbo.*", salted=True), TableOptions(Target.parse(TARGET))
    watch, now = Watch(WatchRequest(CONN_ID, entries, (), defaults), group.store), utc_now()
    with group.source.hook() as hook:
        wake = poll(watch, hook, (CdcSource(hook),), now, now)
    return {} if wake is None else {name: call.reason for name, call in wake.calls.items()}


@pytest.fixture
def keyless(source: Source) -> Group:
    """A table without a key, with an odd name, beside one that has one."""
    made = Group(source)
    made.make("dbo.a")
    source.sql("CREATE SCHEMA [odd.Name]")
    source.sql("CREATE TABLE [odd.Name].[a ]]Table] (Id int NOT NULL, v int NULL)")
    source.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'odd.Name', @source_name = N'a ]Table', @role_name = NULL,"
        " @supports_net_changes = 0"
    )
    source.sql("INSERT INTO [odd.Name].[a ]]Table] VALUES (1, 1)")
    source.scan()
    return made


ODD = TableName("odd.Name", "a ]Table")


@pytest.mark.parametrize("written", ["[odd.Name].[a ]]Table]", "[ODD.name].[A ]]TABLE]", '"odd.name"."a ]table"'])
def test_entries_name_tables_as_patterns_do(keyless: Group, written: str) -> None:
    request = keyless.request(
        "*.*", {"table": "A", "partition_by": "id"}, {"table": written, "key": "id", "partition_by": ["v"]}
    )
    with keyless.source.hook() as hook:
        plan = plan_load(hook, keyless.store, request, None)
    assert plan.failures == {}
    found = {spec.name: (spec.schema.key, spec.sinks[0].partition_by) for spec in plan.specs}
    assert found == {A: (("id",), ("id",)), ODD: (("Id",), ("v",))}


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (("a", "DBO.A"), "'a' and 'DBO.A' of tables, two entries without"),
        (({"table": "*.*", "key": "id"}, {"table": "dbo.*", "key": "id"}), "two entries with"),
        (("*.*", {"table": "a", "key": "nope"}), "key names nope, and the table has no such column"),
        (("*.*", {"table": "a", "columns": ["nope"]}), "columns names 'nope'"),
    ],
)
def test_a_table_of_which_its_entries_leave_open_what_holds_fails_alone(
    keyless: Group, entries: tuple[Any, ...], said: str
) -> None:
    odd = {"table": "[odd.Name].[a ]]Table]", "key": ["id"]}
    with keyless.source.hook() as hook:
        plan = plan_load(hook, keyless.store, keyless.request(*entries, odd), None)
    assert list(plan.failures) == [A]
    assert said in str(plan.failures[A])
    assert plan.failures[A].permanent
    assert [spec.name for spec in plan.specs] == [ODD]


def test_tables_of_one_run_may_have_shapes_and_names_of_their_own(group: Group) -> None:
    group.source.sql("INSERT INTO dbo.a (id) VALUES (2); INSERT INTO dbo.b (id) VALUES (2)")
    group.source.scan()
    request = group.request("dbo.*", {"table": "dbo.b", "shapes": ["history"], "table_name": "all_of_{table}"})
    with group.source.hook() as hook:
        plan = plan_load(hook, group.store, request, None)
    assert [(spec.name, [sink.table[-1] for sink in spec.sinks]) for spec in plan.specs] == [
        (A, ["dbo_a"]),
        (B, ["all_of_b_history"]),
    ]
    assert plan.identity(B).name == "all_of_b"


def test_a_table_whose_name_would_be_a_path_fails_alone(group: Group) -> None:
    group.source.sql("CREATE TABLE dbo.[in/out] (id int NOT NULL PRIMARY KEY)")
    group.source.enable("dbo.in/out")
    group.change("INSERT INTO dbo.[in/out] VALUES (1)")
    with group.source.hook() as hook:
        plan = plan_load(hook, group.store, group.request(), None)
        assert [spec.name for spec in plan.specs] == [A, B]
        (name,) = plan.failures
        assert isinstance(plan.failures[name], TargetError)
        assert "'dbo_in/out' is a path" in str(plan.failures[name])
        request = group.request("[in/out]")
        named = dataclasses.replace(request, defaults=dataclasses.replace(request.defaults, table_name="in_out"))
        plan = plan_load(hook, group.store, named, None)
    assert (plan.failures, [spec.sinks[0].table[-1] for spec in plan.specs]) == ({}, ["in_out"])


def test_loads_of_a_table_by_two_names_do_not_take_each_others_positions(group: Group) -> None:
    request = group.request()
    other = dataclasses.replace(request, defaults=dataclasses.replace(request.defaults, table_name="{table}_too"))
    cut = group.loaded(A, B)
    with group.source.hook() as hook:
        assert plan_load(hook, group.store, request, None).specs == []
        plan = plan_load(hook, group.store, other, None)
    assert [(spec.name, spec.sinks[0].table[-1], spec.sinks[0].read_through) for spec in plan.specs] == [
        (A, "a_too", None),
        (B, "b_too", None),
    ]
    identities = [each.identity(plan.database, A, each.defaults) for each in (request, other)]
    group.store.overwrite(Checkpoint(identities[1]))
    assert [group.store.load(identity).position(["mirror"]) for identity in identities] == [cut, None]


def test_two_tables_onto_one_name_stop_the_run_for_good(group: Group) -> None:
    request = group.request()
    request = dataclasses.replace(request, defaults=dataclasses.replace(request.defaults, table_name="all"))
    with group.source.hook() as hook, pytest.raises(ParameterError, match="would both be loaded") as refused:
        plan_load(hook, group.store, request, None)
    assert refused.value.permanent


def test_no_table_is_loaded_into_that_of_the_schema_changes_of_another(group: Group) -> None:
    group.make("dbo.a_schema_changes")
    both = r"dbo.a \(schema changes\) and dbo.a_schema_changes \(mirror\) would both be loaded"
    with group.source.hook() as hook, pytest.raises(ParameterError, match=both):
        plan_load(hook, group.store, group.request(), None)


def test_a_load_goes_on_where_a_column_must_not_be_null_any_more_or_is_gone(group: Group) -> None:
    group.loaded(A, B)
    before = group.checkpoint(A)
    assert before is not None
    group.source.sql("UPDATE dbo.a SET v = 0; ALTER TABLE dbo.a ALTER COLUMN v int NOT NULL")
    group.source.sql("ALTER TABLE dbo.b DROP COLUMN v; INSERT INTO dbo.b (id) VALUES (9)")
    group.source.scan()
    with group.source.hook() as hook:
        plan = plan_load(hook, group.store, group.request(), None)
    assert plan.failures == {}
    specs = {spec.name: spec for spec in plan.specs}
    assert {name: spec.schema.hash for name, spec in specs.items()} == {
        name: stored.sinks["mirror"].schema_hash for name in (A, B) if (stored := group.checkpoint(name)) is not None
    }
    assert {name: spec.schema.kept for name, spec in specs.items()} == {A: (), B: ("v",)}
    assert plan.candidates[B].warnings == ("column v is NULL since the source table dropped it",)

    judged = group.request({"table": "dbo.b", "where": [["V", ">", 1]]})
    with group.source.hook() as hook:
        plan = plan_load(hook, group.store, judged, None)
    assert "the source table has dropped column v, which where names" in str(plan.failures[B])

    # chunks that are cut by it are cut as before, for values that may be NULL
    cut = group.request({"table": "dbo.a", "copy_by": ["v"]})
    with group.source.hook() as hook:
        plan = plan_load(hook, group.store, cut, None)
    assert plan.failures == {}
    assert {spec.name: spec.schema.column("v").nullable for spec in plan.specs}[A]


def test_the_gap_behind_a_dropped_instance_says_how_to_load_anew(group: Group) -> None:
    group.loaded(A, B)
    group.change("INSERT INTO dbo.a (id) VALUES (2)")
    group.source.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'a', N'all'")
    group.source.enable("dbo.a")
    group.change("INSERT INTO dbo.a (id) VALUES (3)")
    with group.source.hook() as hook:
        plan = plan_load(hook, group.store, group.request(), None)
        assert isinstance(plan.failures[A], GapError)
        assert 'dbo_a was dropped before all was loaded. Load the table anew once with on_gap="copy"' in str(
            plan.failures[A]
        )
        again = plan_load(hook, group.store, group.request(copy_on_gap=True), None)
    assert [spec.name for spec in again.specs] == [A]


def test_an_instance_that_was_not_probed_does_not_make_its_table_a_quiet_one(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    group.loaded(A, B)
    for name in ("second", "third"):
        if name == "third":
            position, stored = group.source.max_lsn(), group.checkpoint(A)
            assert stored is not None
            sink = dataclasses.replace(stored.sinks["mirror"], applied=position, read_through=position, witness=None)
            group.store.overwrite(dataclasses.replace(stored, sinks={"mirror": sink}))
            group.source.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'a', N'dbo_a'")
            group.change("INSERT INTO dbo.a (id) VALUES (2)")
        group.source.sql(
            f"EXEC sys.sp_cdc_enable_table N'dbo', N'a', @capture_instance = N'{name}', @role_name = NULL,"
            " @supports_net_changes = 0"
        )
        group.change("INSERT INTO dbo.b (id) VALUES (2); DELETE FROM dbo.b WHERE id = 2")
    find = CdcSource.probe

    def reaching_back(source: CdcSource, *given: Any, **named: Any) -> Any:
        (third,) = (each.object_id for each in source.hook.capture_instances([A]) if each.name == "third")
        probe = find(source, *given, **named)
        return dataclasses.replace(probe, readable_from={**probe.readable_from, third: position})

    with group.source.hook() as hook:
        plan = plan_load(hook, group.store, group.request(), None)
        assert [(spec.name, spec.feed.name) for spec in plan.specs] == [(A, "second"), (B, "dbo_b")]
        monkeypatch.setattr(CdcSource, "probe", reaching_back)
        plan = plan_load(hook, group.store, group.request(), None)
    assert [spec.name for spec in plan.specs] == [B]
    assert "changed while the run was planned" in str(plan.failures[A])


def test_an_instance_that_reaches_back_to_one_shape_goes_on_with_that(group: Group) -> None:
    request = group.request({"table": "dbo.*", "shapes": ["mirror", "history"]}, copy_on_gap=True)
    group.loaded(A, B)
    group.change("INSERT INTO dbo.a (id) VALUES (2)")
    group.source.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'a', N'all'")
    group.source.enable("dbo.a")
    behind = group.checkpoint(A)
    assert behind is not None
    ahead = group.change("INSERT INTO dbo.a (id) VALUES (3)")
    mirror = dataclasses.replace(behind.sinks["mirror"], applied=ahead, read_through=ahead, witness=None)
    group.store.overwrite(
        dataclasses.replace(behind, sinks={"mirror": mirror, "history": behind.sinks["mirror"]}),
    )
    cut = group.change("INSERT INTO dbo.a (id) VALUES (4)")
    with group.source.hook() as hook:
        plan = plan_load(hook, group.store, request, None)
    assert plan.failures == {}
    spec = next(spec for spec in plan.specs if spec.name == A)
    assert [(s.shape, s.read_through, s.lost_after) for s in spec.sinks] == [
        ("mirror", ahead, None),
        ("history", None, behind.position(behind.sinks)),
    ]
    assert plan.upto == Cut.at(cut)


def test_another_recovery_fork_stops_the_tables(group: Group, request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue("sandbox") if group.source.server["host"] == "127.0.0.1" else None
    if server is None:
        pytest.skip("a real server would have to restore a backup")
    with group.source.hook() as hook:
        fork = hook.database_status().recovery_fork_guid
        position = group.loaded(A, B)
        group.change("INSERT INTO dbo.a (id) VALUES (2)")
        plan = plan_load(hook, group.store, group.request(), None)
        assert plan.witness is not None
        assert plan.witness.recovery_fork == fork
        rows = group.settle(plan, group.request())
        assert {name: row["status"] for name, row in rows.items()} == {"dbo.a": "quiet", "dbo.b": "quiet"}
        stored = group.checkpoint(B)
        assert stored is not None
        moved = dataclasses.replace(stored.sinks["mirror"], witness=plan.witness)
        group.store.overwrite(dataclasses.replace(stored, sinks={"mirror": moved}))
        server.instance.storage.database(group.source.name).recovery_fork_guid = "0" * 36
        plan = plan_load(hook, group.store, group.request(), None)
    assert isinstance(plan.failures[B], RestoredError)
    assert f"recovery fork was {fork}" in str(plan.failures[B])
    assert [spec.name for spec in plan.specs] == [A], f"its witness, of {position}, knows no fork"


def test_without_a_checkpoint_the_instance_is_noted_that_the_job_has_read(group: Group) -> None:
    group.loaded(B)
    group.source.sql(
        "EXEC sys.sp_cdc_enable_table N'dbo', N'a', N'second', @role_name = NULL, @supports_net_changes = 0"
    )
    group.change("INSERT INTO dbo.a (id) VALUES (2)")
    with group.source.hook() as hook:
        plan = plan_load(hook, group.store, group.request(), None)
    assert plan.upto is not None
    spec = JobSpec("a1", SourceSpec("db:1", plan.database, "jdbc:"), tuple(plan.specs), plan.upto, "/work")
    (table,) = [each for each in plan.specs if each.name == A]
    (known,) = table.alternatives
    sinks = tuple(loaded(spec, known, sink) for sink in known.sinks)
    outcome = Outcome(plan, spec, Receipt(spec.id, (TableReceipt(A, sinks),)))
    (written,) = [each for each in outcome.checkpoints(utc_now()) if each.identity.table == A]
    assert [(feed.name, feed.object_id) for feed in written.feeds(["mirror"])] == [("dbo_a", known.feed.object_id)]
    row = next(row for row in outcome.summary(0)["tables"] if row["table"] == "dbo.a")
    assert row["feed"] == "dbo_a"


def test_what_failed_for_good_goes_to_the_job_though_it_is_at_the_cut(group: Group) -> None:
    """Only the job sees whether the target is mended."""
    position = group.loaded(A, B)
    stored = group.checkpoint(A)
    assert stored is not None
    with group.source.hook() as hook:
        seen = fingerprint(hook.capture_instances([A]))
        failure = Failure("no", utc_now() - datetime.timedelta(days=1), seen)
        group.store.overwrite(stored.failing(["mirror"], failure))
        plan = plan_load(hook, group.store, group.request(), Cut.at(position))
    assert ([spec.name for spec in plan.specs], plan.quiet) == ([A], {})


def test_a_cut_above_the_newest_position_is_of_another_database(source: Source, group: Group) -> None:
    newest = source.max_lsn()
    with source.hook() as hook:
        assert plan_load(hook, group.store, group.request(), Cut.at(newest)).upto == Cut.at(newest)
        with pytest.raises(RestoredError, match="lies above the database's newest position"):
            plan_load(hook, group.store, group.request(), Cut.at(newest.next()))
