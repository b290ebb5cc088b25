"""Plans for tables that Change Tracking tracks, also where a database has no change data capture at all."""

from __future__ import annotations

import dataclasses
import datetime
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_mssql_cdc.core.change_tracking import TrackedTable
from airflow_provider_mssql_cdc.core.changes import HistoryOptions
from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.position import Cut, Version
from airflow_provider_mssql_cdc.core.schema import SchemaStore
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator
from airflow_provider_mssql_cdc.operators.planning import plan_load
from airflow_provider_mssql_cdc.operators.sourcing import sources_for
from airflow_provider_mssql_cdc.sandbox import Sandbox
from tests.support.harsh import harsh_sandbox
from tests.support.hooks import tracked
from tests.support.hooks.source import CONN_ID, TARGET, Source
from tests.support.operators.group import A, B, Group
from tests.support.operators.master import Master, write_receipt
from tests.support.operators.tries import Task

C = TableName("dbo", "c")
PASSWORD = "Reader-pw-12345"


@pytest.fixture(scope="module")
def express() -> Iterator[Sandbox]:
    """A server that has neither change data capture nor an Agent."""
    with harsh_sandbox(host="127.0.0.1", port=0, edition="Express") as server:
        yield server


def group_of(source: Source) -> Group:
    group = Group(source)
    tracked.track(source, "dbo.a", "dbo.b")
    source.sql("INSERT INTO dbo.a VALUES (1, 1)")
    source.sql("INSERT INTO dbo.b VALUES (1, 1)")
    return group


@pytest.fixture
def small(express: Sandbox) -> Iterator[Group]:
    """Two tracked tables of that server."""
    address = {"host": express.host, "port": express.port, "user": express.user, "password": express.password}
    source = Source(address, f"t_{uuid.uuid4().hex[:10]}")
    yield group_of(source)
    source.close()


@pytest.fixture
def group(source: Source) -> Group:
    """Two tracked tables of a server that has both."""
    return group_of(source)


def loaded(group: Group, *tables: TableName) -> None:
    """Write the checkpoints of a load up to now."""
    for table in tables:
        checkpoint, schema = tracked.loaded(group.source, table)
        SchemaStore(group.variables).keep(schema)
        group.store.overwrite(checkpoint)


def planned(
    group: Group, *tables: Any, upto: Cut | None = None, login: str = "", **given: Any
) -> tuple[RunPlan, list[str]]:
    """The plan, and the statements that were sent for it."""
    request = group.request(*tables, **given)
    named = {entry.options(request.defaults).source for entry in request.entries}
    with group.source.hook(login, PASSWORD if login else "") as hook:
        return plan_load(hook, group.store, request, upto, sources_for(hook, named)), hook.sent


def of_cdc(sent: list[str]) -> list[str]:
    """The statements that need change data capture."""
    return [text for text in sent if "cdc." in text.replace("msdb.dbo.cdc_jobs", "") and "is_cdc_enabled" not in text]


@pytest.mark.parametrize("source", ["ct", "auto"])
def test_a_database_without_change_data_capture_is_loaded_by_change_tracking(small: Group, source: str) -> None:
    plan, sent = planned(small, source=source)
    assert (plan.failures, plan.warnings, plan.lag, plan.waiting) == ({}, [], None, [])
    assert of_cdc(sent) == []
    assert plan.upto is not None
    assert plan.upto.text == "version=2"
    assert [(spec.name, type(spec.feed), spec.schema.key, spec.unique_key) for spec in plan.specs] == [
        (A, TrackedTable, ("id",), True),
        (B, TrackedTable, ("id",), True),
    ]
    assert [sink.expects for spec in plan.specs for sink in spec.sinks] == [None, None]


def test_a_login_without_a_right_to_change_data_capture_loads_by_change_tracking(group: Group) -> None:
    group.source.enable("dbo.a")
    login = f"r_{group.source.name}"
    group.source.sql(f"CREATE LOGIN [{login}] WITH PASSWORD = N'{PASSWORD}'")
    group.source.sql(f"CREATE USER [{login}] FOR LOGIN [{login}]")
    for right in ("SELECT", "VIEW CHANGE TRACKING"):
        group.source.sql(f"GRANT {right} ON SCHEMA::[dbo] TO [{login}]")
    plan, sent = planned(group, login=login, source="ct")
    assert ({spec.name for spec in plan.specs}, plan.failures) == ({A, B}, {})
    (told,) = plan.warnings
    assert told.startswith("the login lacks VIEW DATABASE STATE: a database that was restored is not told")
    assert told.endswith(f"Run: GRANT VIEW DATABASE STATE TO [{login}];")
    assert of_cdc(sent) == []
    group.source.sql(f"GRANT VIEW DATABASE STATE TO [{login}]")
    assert planned(group, login=login, source="ct")[0].warnings == []


def test_a_table_that_was_just_enabled_is_loaded_at_version_0(small: Group) -> None:
    tracked.track(small.source, "dbo.c")
    plan, _ = planned(small, "dbo.c", source="ct", upto=Cut.at(Version(2)))
    assert [spec.name for spec in plan.specs] == [C]
    assert plan.waiting == []


def test_a_quiet_table_moves_on_and_a_changed_one_is_loaded(small: Group) -> None:
    loaded(small, A, B)
    small.source.sql("UPDATE dbo.a SET v = 2")
    plan, sent = planned(small, source="ct")
    (spec,) = plan.specs
    assert (spec.name, spec.sinks[0].expects, spec.sinks[0].read_through) == (A, Version(2), Version(2))
    assert [str(commit) for commit in plan.steps[A].commits]
    assert plan.quiet[B].sinks["mirror"].position == Version(3)
    assert of_cdc(sent) == []
    assert sum("CHANGETABLE" in text or "CHANGE_TRACKING" in text for text in sent) <= 3
    rows = small.settle(plan, small.request(source="ct"))
    assert (rows["dbo.b"]["position"], rows["dbo.b"]["feed"], rows["dbo.b"]["status"]) == ("3", "dbo.b", "quiet")

    # to the sensor's cut, which a table may be behind of
    plan, _ = planned(small, source="ct", upto=Cut.at(Version(2)))
    assert (plan.specs, plan.failures) == ([], {})
    plan, _ = planned(small, source="ct")
    assert [spec.name for spec in plan.specs] == [A]


@pytest.mark.parametrize("how", ["truncated", "switched off and on"])
def test_a_quiet_table_that_is_tracked_anew_is_told_though_its_version_is_valid(small: Group, how: str) -> None:
    loaded(small, A, B)
    small.source.sql("UPDATE dbo.b SET v = 2")
    # what is proven empty keeps what was seen
    plan, _ = planned(small, "dbo.a", source="ct")
    small.settle(plan, small.request(source="ct"))
    small.store.overwrite(plan.quiet[A])
    assert plan.quiet[A].sinks["mirror"].position == Version(3)
    if how == "truncated":
        small.source.sql("TRUNCATE TABLE dbo.a")
    else:
        small.source.sql("ALTER TABLE dbo.a DISABLE CHANGE_TRACKING; DELETE FROM dbo.a")
        small.source.sql("ALTER TABLE dbo.a ENABLE CHANGE_TRACKING")
    assert tracked.version(small.source) == Version(3)
    assert tracked.tracked(small.source, A).min_valid_version == Version(3)
    plan, _ = planned(small, source="ct")
    assert [spec.name for spec in plan.specs] == [B]
    assert plan.failures[A].message.startswith(
        "the changes after version 3 do not tell all that has gone: the table was truncated, or Change Tracking"
    )
    # a copy closes the gap
    plan, _ = planned(small, source="ct", copy_on_gap=True)
    assert plan.failures == {}
    spec = next(spec for spec in plan.specs if spec.name == A)
    assert [(sink.expects, sink.lost_after) for sink in spec.sinks] == [(None, Version(3))]
    assert plan.steps[A].copies == {"mirror": Version(3)}


def removed(group: Group, table: TableName) -> None:
    """Let a table have no changes before now, as after cleanup."""
    group.source.sql(f"TRUNCATE TABLE {table}")
    stored = group.store.load(group.source.identity(table))
    assert stored is not None
    sinks = {shape: dataclasses.replace(sink, witness=None) for shape, sink in stored.sinks.items()}
    group.store.overwrite(dataclasses.replace(stored, sinks=sinks))


def test_changes_that_were_removed_are_a_gap_of_that_table_alone(small: Group) -> None:
    loaded(small, A, B)
    small.source.sql("UPDATE dbo.a SET v = 2; UPDATE dbo.b SET v = 2")
    removed(small, A)
    plan, _ = planned(small, source="ct")
    assert [spec.name for spec in plan.specs] == [B]
    assert plan.failures.keys() == {A}
    assert "the changes after version 2 up to version 4 were purged" in str(plan.failures[A])
    assert "ALTER DATABASE CURRENT SET CHANGE_TRACKING (CHANGE_RETENTION" in str(plan.failures[A])
    plan, _ = planned(small, source="ct", copy_on_gap=True)
    assert {spec.name for spec in plan.specs} == {A, B}


def test_rows_are_whole_so_that_a_filter_may_stand_beside_long_values(small: Group) -> None:
    small.source.sql(
        "CREATE TABLE dbo.c (id int NOT NULL PRIMARY KEY, note nvarchar(max), stamp rowversion, twice AS (id * 2))"
    )
    small.source.sql("ALTER TABLE dbo.c ENABLE CHANGE_TRACKING")
    plan, _ = planned(small, {"table": "dbo.c", "where": [("id", "<", 5)]}, source="ct")
    (spec,) = plan.specs
    assert [column.name for column in spec.schema.loaded] == ["id", "note", "stamp"]
    assert plan.candidates[C].warnings == ("computed column twice is left out: it follows from others",)


def test_a_restored_database_is_told(small: Group) -> None:
    checkpoint, schema = tracked.loaded(small.source, A, Version(9))
    SchemaStore(small.variables).keep(schema)
    small.store.overwrite(checkpoint)
    plan, _ = planned(small, "dbo.a", source="ct")
    assert "the checkpoint stands at version 9, but the current version of the database is 2" in str(plan.failures[A])


def test_a_table_that_is_not_tracked_fails_is_left_out_or_is_enabled(small: Group) -> None:
    small.source.sql("CREATE TABLE dbo.c (id int NOT NULL PRIMARY KEY); CREATE TABLE dbo.d (id int)")
    plan, _ = planned(small, source="ct")
    error = str(plan.failures[C])
    assert "Change Tracking is off for this table. ALTER TABLE [dbo].[c] ENABLE CHANGE_TRACKING; switches" in error
    assert 'on_disabled="enable"' in error
    plan, _ = planned(small, source="ct", on_disabled="skip")
    assert (set(plan.skipped), plan.failures) == ({C, TableName("dbo", "d")}, {})
    plan, sent = planned(small, source="ct", on_disabled="enable")
    assert {spec.name for spec in plan.specs} == {A, B, C}
    assert "Change Tracking needs a primary key" in str(plan.failures[TableName("dbo", "d")])
    assert of_cdc(sent) == []


def test_enabling_switches_the_database_on_with_the_retention_or_says_which_right_lacks(source: Source) -> None:
    group = Group(source)
    source.sql("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON")
    source.sql("CREATE TABLE dbo.a (id int NOT NULL PRIMARY KEY)")
    login = f"r_{source.name}"
    source.sql(f"CREATE LOGIN [{login}] WITH PASSWORD = N'{PASSWORD}'")
    source.sql(f"CREATE USER [{login}] FOR LOGIN [{login}]; GRANT SELECT ON dbo.a TO [{login}]")
    given: dict[str, Any] = {"source": "ct", "on_disabled": "enable", "ct_retention": datetime.timedelta(hours=30)}
    plan, _ = planned(group, login=login, **given)
    assert "ALTER DATABASE is needed: GRANT ALTER TO" in str(plan.failures[A])
    plan, _ = planned(group, **given)
    assert [spec.name for spec in plan.specs] == [A]
    masks = "SELECT is_track_columns_updated_on FROM sys.change_tracking_tables"
    assert source.sql(masks) == [(False,)]
    source.sql("CREATE TABLE dbo.b (id int NOT NULL PRIMARY KEY)")
    entry = {"table": "dbo.b", "shapes": ["history"]}
    plan, _ = planned(group, entry, history=HistoryOptions("net_mask"), **given)
    assert ([spec.name for spec in plan.specs], plan.candidates[B].failed) == ([B], {})
    assert sorted(source.sql(masks)) == [(False,), (True,)]
    (kept,) = source.sql(
        "SELECT c.retention_period, c.retention_period_units_desc FROM sys.change_tracking_databases AS c"
        " WHERE c.database_id = DB_ID()"
    )
    assert kept == (30, "HOURS")


@pytest.fixture
def small_task(small: Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Task]:
    """A load of these tables, whose jobs are answered for."""
    with Master(tmp_path) as master:
        for name, value in small.source.environment().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", master.connection)
        monkeypatch.setenv("PATH", master.path)
        monkeypatch.setattr("airflow_provider_mssql_cdc.operators.load_run.Variable", small.variables)
        master.job = write_receipt
        yield Task(small, master)


@pytest.mark.parametrize("source", ["ct", "auto"])
def test_runs_go_on_from_version_to_version_without_change_data_capture(small_task: Task, source: str) -> None:
    task, database = small_task, small_task.group.source
    first = task.run(source=source)
    assert (first["upto"], first["late"], first["warnings"]) == ("version=2", None, [])
    assert {name: (row["status"], row["position"]) for name, row in task.rows.items()} == {
        "dbo.a": ("loaded", "2"),
        "dbo.b": ("loaded", "2"),
    }
    database.sql("UPDATE dbo.b SET v = 5")
    task.state.clear()
    task.run(source=source)
    assert {name: (row["status"], row["position"]) for name, row in task.rows.items()} == {
        "dbo.a": ("quiet", "3"),
        "dbo.b": ("loaded", "3"),
    }
    assert {each.applied for each in task.sinks(B).values()} == {Version(3)}

    # one that is dropped is told once, and holds up no other
    database.sql("DROP TABLE dbo.a; UPDATE dbo.b SET v = 6")
    task.state.clear()
    summary = task.run(source=source)
    assert {name: row["status"] for name, row in task.rows.items()} == {"dbo.a": "dropped", "dbo.b": "loaded"}
    assert summary["warnings"] == ["dbo.a: the source table was dropped; its targets stay as they are"]

    # a column that comes is seen, and left for later
    database.sql("ALTER TABLE dbo.b ADD w int NULL")
    database.sql("UPDATE dbo.b SET v = 7")
    for _ in range(2):
        task.state.clear()
        summary = task.run(source=source)
        assert task.rows["dbo.b"]["position"] == "5"
    assert [change["changes"][0]["column"] for change in summary["schema_changes"]] == ["w"]


def test_a_column_that_comes_stops_a_table_at_once_where_that_is_asked_for(small_task: Task) -> None:
    """What is read is of now: there is no window below the change."""
    task, database = small_task, small_task.group.source
    strict: dict[str, Any] = {"source": "ct", "on_schema_change": "fail"}
    task.run(**strict)
    database.sql("ALTER TABLE dbo.b ADD w int NULL")
    for value in (7, 8):
        database.sql(f"UPDATE dbo.b SET v = {value}; UPDATE dbo.a SET v = {value}")
        task.state.clear()
        with pytest.raises(AirflowFailException, match=r"not those that were seen last.\n  column w "):
            task.run(**strict)
        assert {name: row["status"] for name, row in task.rows.items()} == {"dbo.a": "loaded", "dbo.b": "failed"}
    assert {each.applied for each in task.sinks(B).values()} == {Version(2)}


# whichever of the two it has


def test_auto_takes_what_each_table_has_and_enables_nothing(group: Group) -> None:
    source = group.source
    source.sql("CREATE TABLE dbo.c (id int NOT NULL PRIMARY KEY)")
    source.enable("dbo.a")
    source.sql("INSERT INTO dbo.a VALUES (2, 2)")
    source.scan()
    plan, _ = planned(group, source="auto", on_disabled="enable")
    assert {spec.name: type(spec.feed) for spec in plan.specs} == {A: CaptureInstance, B: TrackedTable}
    assert plan.upto == Cut((source.max_lsn(), tracked.version(source)))
    error = str(plan.failures[C])
    assert "neither a capture instance nor Change Tracking" in error
    assert "sp_cdc_enable_table" in error
    assert "ENABLE CHANGE_TRACKING" in error
    assert source.sql("SELECT is_tracked_by_cdc FROM sys.tables WHERE name = N'c'") == [(False,)]
    assert len(source.sql("SELECT object_id FROM sys.change_tracking_tables")) == 2


def test_auto_keeps_to_the_source_by_which_a_table_was_loaded(group: Group) -> None:
    source = group.source
    loaded(group, A)
    source.enable("dbo.a", "dbo.b")
    source.sql("INSERT INTO dbo.a VALUES (2, 2); INSERT INTO dbo.b VALUES (2, 2)")
    source.scan()
    group.loaded(B)
    source.sql("INSERT INTO dbo.b VALUES (3, 3)")
    source.scan()
    plan, _ = planned(group, source="auto")
    assert {spec.name: type(spec.feed) for spec in plan.specs} == {A: TrackedTable, B: CaptureInstance}

    source.sql("ALTER TABLE dbo.a DISABLE CHANGE_TRACKING")
    source.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'b', N'all'")
    plan, _ = planned(group, source="auto")
    assert plan.specs == []
    of_a, of_b = str(plan.failures[A]), str(plan.failures[B])
    assert "loaded up to version 2, by a tracked table, and has none any more, but capture instance dbo_a" in of_a
    assert "by a capture instance, and has none any more, but tracked table dbo.b" in of_b
    for error, again, other in (
        (of_a, "tracked table", "capture instance"),
        (of_b, "capture instance", "tracked table"),
    ):
        assert f"Either give it a {again} again" in error
        assert f"load it anew by the {other}: drop its target tables and run `mssql-cdc checkpoint reset`" in error


def test_the_other_source_is_not_read_where_one_is_named(group: Group) -> None:
    loaded(group, A)
    group.source.enable("dbo.a")
    group.change("INSERT INTO dbo.a VALUES (2, 2)")
    plan, _ = planned(group, "dbo.a", source="cdc")
    assert "loaded up to version 2, and capture instance dbo_a has none of that kind" in str(plan.failures[A])


def test_each_entry_names_its_own(group: Group) -> None:
    group.source.enable("dbo.a", "dbo.b")
    group.change("INSERT INTO dbo.a VALUES (2, 2)")
    plan, _ = planned(group, {"table": "dbo.a", "source": "ct"}, "dbo.b")
    assert {spec.name: type(spec.feed) for spec in plan.specs} == {A: TrackedTable, B: CaptureInstance}


def test_a_run_by_change_data_capture_asks_nothing_of_change_tracking(group: Group) -> None:
    group.source.enable("dbo.a", "dbo.b")
    group.change("INSERT INTO dbo.a VALUES (2, 2)")
    plan, sent = planned(group)
    assert len(plan.specs) == 2
    assert not [text for text in sent if "CHANGE_TRACKING" in text or "change_tracking" in text]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"max_rows": 5}, "max_transactions and max_rows end a window early, and a tracked table is read to where"),
        ({"on_schema_change": "propose"}, "proposes capture instances, and a tracked table has all columns"),
        ({"key": ("v",)}, "key names other columns than the primary key"),
    ],
)
def test_what_change_tracking_cannot_do_is_refused_when_the_table_is_resolved(
    group: Group, given: dict[str, Any], why: str
) -> None:
    plan, _ = planned(group, "dbo.a", source="auto", **given)
    assert why in str(plan.failures[A])


ALL_SHAPES = ["mirror", "history", "scd2"]


@pytest.mark.parametrize(
    ("history", "snapshots", "served"),
    [
        (HistoryOptions("net"), "ON", ALL_SHAPES),
        (HistoryOptions("net"), "OFF", ["mirror"]),
        (HistoryOptions("net_mask"), "ON", ["mirror", "scd2"]),
        (HistoryOptions(), "ON", ["mirror", "scd2"]),
    ],
)
def test_shapes_that_change_tracking_does_not_serve_are_refused_alone(
    group: Group, history: HistoryOptions, snapshots: str, served: list[str]
) -> None:
    group.source.sql(f"ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION {snapshots}")
    plan, _ = planned(group, {"table": "dbo.a", "shapes": ALL_SHAPES}, source="auto", history=history)
    (spec,) = plan.specs
    assert [sink.shape for sink in spec.sinks] == served
    failed = {shape: str(error) for shape, error in plan.candidates[A].failed.items()}
    assert [*failed] == [shape for shape in ALL_SHAPES if shape not in served]
    why = (
        "needs exact reads: the database does not allow SNAPSHOT"
        if snapshots == "OFF"
        else "'net_mask' changes needs the"
    )
    why = "'all_old' changes needs every change" if not history.is_net else why
    assert all(why in text for text in failed.values())


def load(**given: Any) -> MsSqlCdcLoadOperator:
    return MsSqlCdcLoadOperator(task_id="load", **{"tables": ["dbo.*"], "target": TARGET, "source": "ct", **given})


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"max_transactions": 1}, "max_transactions and max_rows"),
        ({"max_rows": 1}, "max_transactions and max_rows"),
        ({"shapes": ["history"], "replay": True}, "replay=True needs the rows of a past window"),
        ({"shapes": ["history"], "initial": "latest"}, "initial='latest' needs the changes of before"),
        ({"shapes": ["history"]}, "a history of 'all_old' changes needs every change, .* write changes=.net."),
        ({"shapes": ["history"], "changes": "all"}, "a history of 'all' changes needs every change"),
        ({"shapes": ["history"], "history_form": "wide"}, "a history of 'all_old' changes needs every change"),
        (
            {"shapes": ["scd2"], "isolation": "read_committed"},
            "isolation='read_committed' reads rows .* scd2 needs exact",
        ),
        ({"shapes": ["transactions"]}, "does not serve transactions"),
        ({"deletes": "soft"}, "needs the times of deletes"),
        ({"on_schema_change": "propose"}, "on_schema_change='propose'"),
        (
            {"source": "cdc", "tables": ["dbo.a", {"table": "dbo.b", "source": "ct", "shapes": ["transactions"]}]},
            "of dbo.b",
        ),
        ({"tables": "{{ params.tables }}", "shapes": ["transactions"]}, "of all tables"),
        ({"source": "log"}, "source='log': expected one of cdc, ct, auto"),
        ({"ct_retention": 0}, "expected whole minutes"),
    ],
)
def test_what_change_tracking_cannot_do_is_refused_when_the_dag_is_parsed(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        load(**given)


def test_what_it_can_do_is_taken() -> None:
    entry = {"table": "dbo.b", "source": "cdc", "shapes": ["history"]}
    request = load(tables=["dbo.a", entry], on_gap="copy", on_schema_change="fail", ct_retention=86400).request()
    assert [each.options(request.defaults).source for each in request.entries] == ["ct", "cdc"]
    assert request.ct_retention == datetime.timedelta(days=1)
    load(source="auto", shapes=["history"], max_rows=5)
    load(shapes=["mirror", "history", "scd2"], changes="net_mask", operations=["delete"], on_schema_change="evolve")


@pytest.mark.parametrize(
    ("tables", "source", "kinds"),
    [
        (["a"], "cdc", ["capture_instance"]),
        (["a"], "ct", ["tracked_table"]),
        (["a"], "auto", ["capture_instance", "tracked_table"]),
        (["a", {"table": "b", "source": "ct"}], "cdc", ["capture_instance", "tracked_table"]),
        ([{"table": "b", "source": "cdc"}], "ct", ["capture_instance"]),
    ],
)
def test_a_run_has_the_sources_that_it_names(tables: Any, source: Any, kinds: list[str]) -> None:
    with MsSqlCdcHook(CONN_ID) as hook:
        assert [each.kind.KIND for each in load(tables=tables, source=source).sources(hook)] == kinds
