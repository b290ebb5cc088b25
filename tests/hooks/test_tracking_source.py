"""Change Tracking as a source: what it finds, how it is probed, and what is left out alone."""

from __future__ import annotations

import dataclasses
import datetime
import uuid
from collections.abc import Iterator

import pytest

from airflow_provider_mssql_cdc.core.change_tracking import TrackedTable
from airflow_provider_mssql_cdc.core.exceptions import CdcPermissionError, KeyRequiredError, SqlServerError
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.position import Version
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.hooks.tracking_source import TrackingSource
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.planning import leave_out_unreadable
from airflow_provider_mssql_cdc.sandbox import Sandbox
from tests.support.hooks.source import CountingHook, Source

A, B, ODD = TableName("dbo", "a"), TableName("dbo", "b"), TableName("odd.one", "c]%s'")
PASSWORD = "Reader-pw-12345"


@pytest.fixture
def shop(source: Source) -> Source:
    """Three tables that are tracked, one that is not, and no change data capture."""
    source.sql("ALTER DATABASE CURRENT SET CHANGE_TRACKING = ON")
    source.sql("CREATE SCHEMA [odd.one]")
    for table in (A, B, ODD):
        source.sql(f"CREATE TABLE {table.quoted} (id int NOT NULL PRIMARY KEY, v int NULL)")
        source.sql(f"ALTER TABLE {table.quoted} ENABLE CHANGE_TRACKING")
    source.sql("CREATE TABLE dbo.plain (id int NOT NULL PRIMARY KEY)")
    return source


@pytest.fixture
def hook(shop: Source) -> Iterator[CountingHook]:
    with shop.hook() as opened:
        yield opened


def found(source: TrackingSource, hook: CountingHook, *patterns: str) -> dict[TableName, TrackedTable]:
    tables = source.discover(hook.survey(patterns or ("*.*",)))
    assert all(len(feeds) == 1 for feeds in tables.values())
    return {name: feeds[0] for name, feeds in tables.items() if isinstance(feeds[0], TrackedTable)}


def reader(shop: Source, *grants: str) -> CountingHook:
    """The hook of a new login with these rights."""
    name = f"r_{uuid.uuid4().hex[:8]}"
    shop.sql(f"CREATE LOGIN [{name}] WITH PASSWORD = N'{PASSWORD}'")
    shop.sql(f"CREATE USER [{name}] FOR LOGIN [{name}]")
    for grant in grants:
        shop.sql(f"GRANT {grant} TO [{name}]")
    return shop.hook(name, PASSWORD)


def test_it_finds_the_tracked_ones_by_the_connection_that_is_open(shop: Source, hook: CountingHook) -> None:
    source = TrackingSource(hook)
    survey = hook.survey(["*.*"])
    assert A in {table.name for table in survey.matches.tables}
    hook.sent.clear()
    assert source.discover(survey).keys() == {A, B, ODD}
    assert len(hook.sent) == 2
    (tracked,) = source.discover(hook.survey(["dbo.a"]))[A]
    ((object_id, created),) = shop.sql("SELECT object_id, create_date FROM sys.tables WHERE name = N'a'")
    assert isinstance(tracked, TrackedTable)
    assert (tracked.object_id, tracked.create_date, tracked.primary_key) == (object_id, created, ("id",))
    assert [column.name for column in tracked.columns] == ["id", "v"]
    hook.sent.clear()
    assert source.discover(hook.survey(["dbo.plain"])) == {}


def test_a_probe_is_one_statement_and_says_which_tables_have_changes(shop: Source, hook: CountingHook) -> None:
    source = TrackingSource(hook)
    tables = found(source, hook)
    shop.sql("INSERT INTO dbo.a VALUES (1, 1)")
    shop.sql("INSERT INTO dbo.b VALUES (1, 1)")
    shop.sql(f"INSERT INTO {ODD.quoted} VALUES (1, 1)")
    hook.sent.clear()
    after = {tables[A].name: Version(0), tables[B].name: Version(2), tables[ODD].name: Version(1)}
    probe = source.probe(after)
    assert len(hook.sent) == 1
    assert probe.cut == Version(3)
    assert probe.newest == {"dbo.a": Version(3), tables[ODD].name: Version(3)}
    assert probe.readable_from == {table.object_id: Version(0) for table in tables.values()}
    assert (probe.witness, probe.lineage.newest) == (None, Version(3))

    # to a cut that was given: what is behind it counts for the next run
    early = source.probe(after, upto=Version(1))
    assert (early.cut, early.newest) == (Version(1), {"dbo.a": Version(1)})
    assert early.lineage.newest == Version(3)
    assert source.probe({}).cut == Version(3)


def test_a_restored_database_is_told_by_its_version_and_by_its_fork(shop: Source, hook: CountingHook) -> None:
    source = TrackingSource(hook)
    found(source, hook)
    shop.sql("INSERT INTO dbo.a VALUES (1, 1)")
    lineage = source.probe({}, status=hook.database_status()).lineage
    assert lineage.contradiction(Version(1), None) is None
    assert lineage.contradiction(Version(2), None) == "the current version of the database is 1"
    other = Witness(Version(1), hook.database_status().server_time, "another")
    assert "the recovery fork was another" in str(lineage.contradiction(Version(1), other))


def test_a_table_that_is_tracked_no_more_is_left_out_alone(shop: Source, hook: CountingHook) -> None:
    source = TrackingSource(hook)
    tables = found(source, hook)
    after = {table.name: Version(0) for table in tables.values()}
    shop.sql("INSERT INTO dbo.a VALUES (1, 1)")
    shop.sql("ALTER TABLE dbo.b DISABLE CHANGE_TRACKING")
    probe = source.probe(after)
    assert source.found_more
    assert probe.newest == {"dbo.a": Version(1)}
    assert source.unreadable.keys() == {"dbo.b"}
    plan = RunPlan("c", "d", feeds={B: (tables[B],), A: (tables[A],)})
    left = {A: 1, B: 1}
    leave_out_unreadable(source, plan, left)
    assert (left, plan.failures[B].permanent) == ({A: 1}, False)
    assert "vanished while the run was planned" in str(plan.failures[B])

    hook.sent.clear()
    assert source.probe(after).newest == {"dbo.a": Version(1)}
    assert (len(hook.sent), source.found_more) == (1, False)
    shop.sql("DROP TABLE dbo.a")
    assert source.probe(after).newest == {}
    assert source.unreadable.keys() == {"dbo.a", "dbo.b"}

    shop.sql("ALTER TABLE dbo.b ENABLE CHANGE_TRACKING")
    source.recheck(after)
    assert source.unreadable.keys() == {"dbo.a"}


def test_another_connection_knows_tables_that_one_before_it_has_discovered(shop: Source, hook: CountingHook) -> None:
    """As a trigger does that has lost its connection: what it watches it has listed by the other one."""
    shop.sql("INSERT INTO dbo.a VALUES (1, 1)")
    source = TrackingSource(hook)
    after = {"dbo.a": Version(0), "dbo.b": Version(0), "dbo.gone": Version(0)}
    assert source.probe(after).newest == {"dbo.a": Version(1)}
    assert (source.unreadable.keys(), source.found_more) == ({"dbo.gone"}, True)
    hook.sent.clear()
    assert source.probe(after).newest == {"dbo.a": Version(1)}
    assert len(hook.sent) == 1
    source.recheck(after)
    assert source.unreadable.keys() == {"dbo.gone"}


@pytest.mark.parametrize(
    ("grants", "advice"),
    [
        (["SELECT ON dbo.b"], "GRANT VIEW CHANGE TRACKING ON [dbo].[b] TO"),
        (["VIEW CHANGE TRACKING ON dbo.b"], "GRANT SELECT ON SCHEMA::[dbo]"),
    ],
)
def test_a_table_that_may_not_be_read_is_left_out_with_the_grant(shop: Source, grants: list[str], advice: str) -> None:
    shop.sql("INSERT INTO dbo.a VALUES (1, 1); INSERT INTO dbo.b VALUES (1, 1)")
    with reader(shop, "SELECT ON dbo.a", "VIEW CHANGE TRACKING ON dbo.a", *grants) as hook:
        source = TrackingSource(hook)
        tables = found(source, hook)
        probe = source.probe({table.name: Version(0) for table in tables.values()})
    assert probe.newest.keys() == {"dbo.a"}
    assert source.unreadable.keys() == {"dbo.b"}
    assert advice in str(source.unreadable["dbo.b"])


@pytest.mark.parametrize("refuses", [True, False], ids=["refuses", "answers"])
def test_a_secondary_is_refused(shop: Source, hook: CountingHook, sandbox: Sandbox, refuses: bool) -> None:
    source = TrackingSource(hook)
    found(source, hook)
    survey = hook.survey(["dbo.*"])
    tracking = sandbox.tracking(shop.name)
    tracking.secondary, tracking.switches = True, dataclasses.replace(tracking.switches, secondary_refuses=refuses)
    with pytest.raises(SqlServerError, match=r"secondary replica.*primary"):
        source.discover(survey)
    with pytest.raises(SqlServerError, match=r"secondary replica.*primary"):
        source.probe({"dbo.a": Version(0)})


def test_tables_are_enabled_each_alone_with_the_retention(source: Source) -> None:
    source.sql("CREATE TABLE dbo.a (id int NOT NULL PRIMARY KEY); CREATE TABLE dbo.b (id int)")
    with source.hook() as hook:
        tracking = TrackingSource(hook)
        assert tracking.discover(hook.survey(["dbo.*"])) == {}
        failed = tracking.enable([A, B], datetime.timedelta(hours=36))
        assert tracking.discover(hook.survey(["dbo.*"])).keys() == {A}
    assert isinstance(failed[B], KeyRequiredError)
    assert 'source="cdc"' in str(failed[B])
    rows = source.sql("SELECT retention_period, retention_period_units_desc FROM sys.change_tracking_databases")
    assert (36, "HOURS") in rows


def test_a_login_that_may_not_alter_the_database_is_told(source: Source) -> None:
    source.sql("CREATE TABLE dbo.a (id int NOT NULL PRIMARY KEY)")
    with reader(source, "SELECT ON dbo.a") as hook:
        failed = TrackingSource(hook).enable([A, B], datetime.timedelta(days=7))
    assert failed.keys() == {A, B}
    assert isinstance(failed[A], CdcPermissionError)
    assert "ALTER DATABASE is needed: GRANT ALTER TO" in str(failed[A])


def test_a_table_that_has_none_of_its_rows_left_is_named_unless_changes_tell_of_it(
    shop: Source, hook: CountingHook
) -> None:
    """Where the version is the lowest valid one, which a TRUNCATE leaves as it is."""
    source = TrackingSource(hook)
    tables = found(source, hook)
    shop.sql(f"INSERT INTO dbo.a VALUES (1, 1), (2, 2); INSERT INTO {ODD.quoted} VALUES (1, 1)")

    def emptied(version: int) -> set[str]:
        return {*source.probe({table.name: Version(version) for table in tables.values()}).emptied}

    def track_again(table: TableName) -> None:
        shop.sql(f"ALTER TABLE {table.quoted} DISABLE CHANGE_TRACKING")
        shop.sql(f"ALTER TABLE {table.quoted} ENABLE CHANGE_TRACKING")

    for table in (A, B, ODD):
        track_again(table)
    assert emptied(2) == {"dbo.b"}
    assert emptied(1) == set()
    shop.sql(f"TRUNCATE TABLE {ODD.quoted}")
    assert emptied(2) == {"dbo.b", tables[ODD].name}
    # changes tell of these
    shop.sql(f"UPDATE dbo.a SET v = 5; INSERT INTO {ODD.quoted} VALUES (2, 2)")
    assert emptied(2) == {"dbo.b"}
