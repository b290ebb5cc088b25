"""The hook for Change Tracking against a server, and beside it the same facts by plain SELECTs."""

from __future__ import annotations

import dataclasses
import datetime
import os
import random
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pymssql
import pytest

from airflow_provider_mssql_cdc.core.change_tracking import (
    DatabaseTracking,
    DatabaseVersions,
    LackingRight,
    Retention,
    Standing,
    TrackedChange,
    TrackedTable,
    TrackedVersions,
    context_clause,
)
from airflow_provider_mssql_cdc.core.exceptions import (
    CdcPermissionError,
    ChangeTrackingDisabledError,
    GapError,
    InstanceChangedError,
    KeyRequiredError,
    ParameterError,
    RestoredError,
    SqlServerError,
    TableNotFoundError,
)
from airflow_provider_mssql_cdc.core.position import Version
from airflow_provider_mssql_cdc.core.table import Column, TableName
from airflow_provider_mssql_cdc.hooks.connection import Row
from airflow_provider_mssql_cdc.hooks.mssql_change_tracking import MsSqlChangeTrackingHook
from airflow_provider_mssql_cdc.sandbox import Sandbox
from airflow_provider_mssql_cdc.sandbox.tsql import changetable
from tests.hooks.conftest import REAL_SERVER
from tests.support.hooks.source import CONN_ID, Source

ORDERS, ODD, PLAIN, NONE = (
    TableName("sales", "orders"), TableName("odd.name", "a]b%s'c"), TableName("dbo", "plain"), TableName("no", "such"),
)  # fmt: skip
SIDE = "SELECT it.object_id, it.create_date FROM sys.internal_tables AS it WHERE it.parent_id = OBJECT_ID(N'{}')"
PASSWORD = "Reader-pw-12345"
_BEYOND_A_MINUTE = 120.0  # seconds


class CountingHook(MsSqlChangeTrackingHook):
    """The hook, with the statements it sent, and what is done before each."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sent: list[str] = []
        self.before: Callable[[], Any] = lambda: None

    def _run(self, sql: str, parameters: Any) -> list[list[Row]]:
        self.before()
        self.sent.append(sql)
        return super()._run(sql, parameters)


Hooks = Callable[..., CountingHook]


@pytest.fixture
def hooks(source: Source) -> Iterator[Hooks]:
    """Hooks of a database, by login."""
    opened: list[CountingHook] = []

    def make(login: str = "", password: str = PASSWORD) -> CountingHook:
        given = (login, password) if login else ()
        opened.append(CountingHook(CONN_ID, connection=source.airflow_connection(*given)))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


@pytest.fixture
def user(source: Source) -> Callable[..., str]:
    """Makes logins without rights but those that are granted, each with a name that needs quotes."""

    def make(*grants: str) -> str:
        name = f"u]{uuid.uuid4().hex[:8]}"
        quoted = f"[{name.replace(']', ']]')}]"
        source.sql(f"CREATE LOGIN {quoted} WITH PASSWORD = N'{PASSWORD}'")
        source.sql(f"CREATE USER {quoted} FOR LOGIN {quoted}")
        for grant in grants:
            source.sql(f"{grant} TO {quoted}")
        return name

    return make


@pytest.fixture
def shop(source: Source) -> Source:
    """Two tracked tables and one that is not, with four versions."""
    source.sql("ALTER DATABASE CURRENT SET CHANGE_TRACKING = ON (CHANGE_RETENTION = 50 HOURS, AUTO_CLEANUP = OFF)")
    source.sql("CREATE SCHEMA [sales]")
    source.sql("CREATE SCHEMA [odd.name]")
    source.sql(
        "CREATE TABLE sales.orders (line smallint NOT NULL, id int NOT NULL, amount decimal(19, 4) NULL,"
        " note nvarchar(max) NULL, stamp rowversion, twice AS (id * 2), code char(3) COLLATE Latin1_General_BIN2 NULL,"
        " CONSTRAINT pk_orders PRIMARY KEY (id, line))"
    )
    source.sql("CREATE TABLE dbo.plain (id int NOT NULL PRIMARY KEY)")
    source.sql("ALTER TABLE sales.orders ENABLE CHANGE_TRACKING WITH (TRACK_COLUMNS_UPDATED = ON)")
    source.sql("INSERT INTO sales.orders (id, line, amount) VALUES (1, 1, 1), (2, 1, 2), (3, 1, 3)")
    source.sql("CREATE TABLE [odd.name].[a]]b%s'c] ([k]]%s] uniqueidentifier NOT NULL PRIMARY KEY, [v%d] int NULL)")
    source.sql("ALTER TABLE [odd.name].[a]]b%s'c] ENABLE CHANGE_TRACKING")
    source.sql("UPDATE sales.orders SET amount = 5, code = 'abc' WHERE id = 2")
    source.sql("WITH CHANGE_TRACKING_CONTEXT (0xCAFE00) DELETE FROM sales.orders WHERE id = 1")
    source.sql("INSERT INTO [odd.name].[a]]b%s'c] VALUES ('6F9619FF-8B86-D011-B42D-00C04FC964FF', 1)")
    return source


def only_sandbox(request: pytest.FixtureRequest, why: str) -> Sandbox:
    """The sandbox that runs; skip the test on a real server."""
    if os.environ.get(REAL_SERVER):
        pytest.skip(f"a real server: {why}")
    found: Sandbox = request.getfixturevalue("sandbox")
    return found


# The database


def test_status(source: Source, hooks: Hooks) -> None:
    hook = hooks()
    level = source.sql("SELECT compatibility_level FROM sys.databases WHERE name = DB_NAME()")[0][0]
    off = DatabaseTracking(source.name, "dbo", False, None, None, False, "READ_WRITE", level)
    assert hook.status() == off
    assert not off.read_only
    source.sql("ALTER DATABASE CURRENT SET CHANGE_TRACKING = ON")
    source.sql("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON")
    assert hook.status() == DatabaseTracking(
        source.name, "dbo", True, Retention(2, "DAYS"), True, True, "READ_WRITE", level
    )
    assert len(hook.sent) == 2


def test_a_database_is_switched_on_with_a_week_and_off(source: Source, hooks: Hooks) -> None:
    hook = hooks()
    assert hook.current_version() is None
    assert hook.enable_database() == hook.status()
    asked = (
        "SELECT is_auto_cleanup_on, retention_period, retention_period_units_desc"
        " FROM sys.change_tracking_databases WHERE database_id = DB_ID()"
    )
    assert source.sql(asked) == [(True, 7, "DAYS")]
    assert hook.current_version() == Version(0)
    # it is on: nothing happens
    kept = hook.enable_database(retention=datetime.timedelta(hours=5), auto_cleanup=False)
    assert (kept.retention, kept.auto_cleanup, source.sql(asked)) == (Retention(7, "DAYS"), True, [(True, 7, "DAYS")])
    assert hook.set_options(retention=datetime.timedelta(hours=5)).retention == Retention(5, "HOURS")
    assert source.sql(asked) == [(True, 5, "HOURS")]
    assert hook.set_options(auto_cleanup=False).auto_cleanup is False
    assert hook.set_options() == hook.status()
    assert source.sql(asked) == [(False, 5, "HOURS")]
    hook.set_options(retention=datetime.timedelta(minutes=90), auto_cleanup=True)
    assert source.sql(asked) == [(True, 90, "MINUTES")]
    hook.disable_database()
    hook.disable_database()
    assert (source.sql(asked), hook.current_version(), hook.status().enabled) == ([], None, False)
    with pytest.raises(ChangeTrackingDisabledError, match=f"off for {source.name}.*enable_database.*ALTER DATABASE"):
        hook.set_options(auto_cleanup=True)


def test_options_of_the_first_moment(source: Source, hooks: Hooks) -> None:
    found = hooks().enable_database(retention=datetime.timedelta(hours=36), auto_cleanup=False)
    assert (found.enabled, found.retention, found.auto_cleanup) == (True, Retention(36, "HOURS"), False)


def test_a_retention_that_the_server_does_not_take_is_refused_before_it_is_asked(source: Source, hooks: Hooks) -> None:
    hook = hooks()
    for retention in (datetime.timedelta(0), datetime.timedelta(seconds=90), datetime.timedelta(days=1_500_000)):
        with pytest.raises(ParameterError, match="whole minutes"):
            hook.enable_database(retention=retention)
        with pytest.raises(ParameterError, match="whole minutes"):
            hook.set_options(retention=retention)
    assert hook.sent == []


def test_who_may_not_alter_the_database_is_told_so(source: Source, hooks: Hooks, user: Callable[..., str]) -> None:
    login = user()
    hook, quoted = hooks(login), f"[{login.replace(']', ']]')}]"
    with pytest.raises(CdcPermissionError) as denied:
        hook.enable_database()
    assert denied.value.number == 5011
    assert denied.value.advice == f"ALTER DATABASE is needed: GRANT ALTER TO {quoted};"
    source.sql(denied.value.advice.partition(": ")[2])
    assert hook.enable_database().enabled


def test_a_database_whose_tables_are_tracked_stays_on(shop: Source, hooks: Hooks) -> None:
    hook = hooks()
    with pytest.raises(SqlServerError, match=r"stays on.*odd\.name\.a\]b%s'c, sales\.orders") as caught:
        hook.disable_database()
    assert caught.value.number == 22115
    for table in (ORDERS, ODD):
        hook.disable_table(table)
    hook.disable_database()
    assert not hook.status().enabled


@pytest.mark.parametrize("refuses", [True, False], ids=["refuses", "answers"])
def test_a_secondary_says_that_it_is_one_and_no_versions(
    shop: Source, hooks: Hooks, request: pytest.FixtureRequest, refuses: bool
) -> None:
    sandbox = only_sandbox(request, "it has no secondary")
    hook = hooks()
    (tracked,) = hook.tracked_tables([ORDERS])
    tracking = sandbox.tracking(shop.name)
    tracking.secondary, tracking.switches = True, dataclasses.replace(tracking.switches, secondary_refuses=refuses)
    status = hook.status()
    assert (status.enabled, status.updateability, status.read_only) == (True, "READ_ONLY", True)
    for ask in (
        hook.current_version,
        lambda: hook.versions([ORDERS]),
        lambda: hook.versions([]),
        lambda: hook.tracked_tables([ORDERS]),
        lambda: hook.changes(tracked, Version(0)),
    ):
        with pytest.raises(SqlServerError, match=r"secondary replica.*primary") as caught:
            ask()
        assert caught.value.number == 22117


# Tables


def test_a_tracked_table_is_complete(shop: Source, hooks: Hooks) -> None:
    hook = hooks()
    assert [table.source for table in hook.tracked_tables([NONE, ODD, PLAIN, ORDERS])] == [ODD, ORDERS]
    assert len(hook.sent) == 2
    ((object_id, created),) = shop.sql("SELECT object_id, create_date FROM sys.tables WHERE name = N'orders'")
    ((collation,),) = shop.sql("SELECT collation_name FROM sys.databases WHERE name = DB_NAME()")
    ((nullable,),) = shop.sql("SELECT is_nullable FROM sys.columns WHERE name = N'twice' AND is_computed = 1")
    side = f"SELECT object_id FROM sys.internal_tables WHERE internal_type = 209 AND parent_id = {object_id}"
    found = hook.tracked_table(ORDERS)
    assert found == TrackedTable(
        name="sales.orders",
        object_id=object_id,
        source=ORDERS,
        source_object_id=object_id,
        create_date=created,
        columns=(
            Column(1, 1, "line", "smallint", 2, 5, 0, nullable=False),
            Column(2, 2, "id", "int", 4, 10, 0, nullable=False),
            Column(3, 3, "amount", "decimal", 9, 19, 4),
            Column(4, 4, "note", "nvarchar", -1, 0, 0, collation=collation),
            Column(5, 5, "stamp", "timestamp", 8, 0, 0, nullable=False),
            Column(6, 6, "twice", "int", 4, 10, 0, nullable=nullable, computed=True),
            Column(7, 7, "code", "char", 3, 0, 0, collation="Latin1_General_BIN2"),
        ),
        primary_key=("id", "line"),
        columns_updated=True,
        begin_version=Version(0),
        min_valid_version=Version(0),
        side_object_id=shop.sql(side)[0][0],
        snapshots=True,
    )
    odd = hook.tracked_table(ODD)
    assert (odd.primary_key, [column.name for column in odd.columns]) == (("k]%s",), ["k]%s", "v%d"])
    assert (odd.columns_updated, odd.begin_version) == (False, Version(1))


def test_the_hash_of_a_schema_changes_with_the_columns_and_not_with_the_place(shop: Source, hooks: Hooks) -> None:
    hook = hooks()
    before = hook.tracked_table(ORDERS).schema
    shop.sql("ALTER TABLE sales.orders ADD extra int NULL")
    added = hook.tracked_table(ORDERS).schema
    shop.sql("ALTER TABLE sales.orders DROP COLUMN extra")
    shop.sql("ALTER TABLE sales.orders ADD extra int NULL")
    anew = hook.tracked_table(ORDERS).schema
    assert len({before.hash, added.hash, anew.hash}) == 3
    assert [(c.column_id, c.name) for c in anew.columns][-1] == (9, "extra")
    shop.sql("ALTER TABLE sales.orders DROP COLUMN extra")
    assert hook.tracked_table(ORDERS).schema == before
    shop.sql("EXEC sp_rename 'sales.orders.code', 'sign', 'COLUMN'")
    renamed = hook.tracked_table(ORDERS).schema
    assert (renamed.hash == before.hash, renamed.columns[-1].column_id) == (False, 7)


def test_what_is_not_tracked_or_not_there_is_told_apart(shop: Source, hooks: Hooks) -> None:
    hook = hooks()
    with pytest.raises(ChangeTrackingDisabledError, match=r"dbo\.plain: .*does not track it.*enable_table"):
        hook.tracked_table(PLAIN)
    with pytest.raises(TableNotFoundError, match=r"no\.such: there is no such table.*GRANT SELECT ON \[no\]\.\[such\]"):
        hook.tracked_table(NONE)
    assert hook.tracked_tables([]) == []
    shop.sql("ALTER TABLE dbo.plain ENABLE CHANGE_TRACKING")
    assert hook.tracked_tables() == hook.tracked_tables([PLAIN, ODD, ORDERS])


def test_a_table_is_switched_on_and_off(shop: Source, hooks: Hooks) -> None:
    hook = hooks()
    tracked = (
        "SELECT is_track_columns_updated_on FROM sys.change_tracking_tables WHERE object_id = OBJECT_ID('dbo.plain')"
    )
    for columns_updated in (True, False):
        hook.enable_table(PLAIN, columns_updated=columns_updated)
        hook.enable_table(PLAIN, columns_updated=not columns_updated)
        assert shop.sql(tracked) == [(columns_updated,)]
        assert hook.tracked_table(PLAIN).columns_updated is columns_updated
        hook.disable_table(PLAIN)
        hook.disable_table(PLAIN)
        assert shop.sql(tracked) == []
    hook.disable_table(ODD)
    hook.enable_table(ODD)
    assert hook.tracked_table(ODD).begin_version == Version(4)
    with pytest.raises(TableNotFoundError, match=r"no\.such"):
        hook.enable_table(NONE)
    with pytest.raises(TableNotFoundError, match=r"no\.such"):
        hook.disable_table(NONE)


@pytest.mark.parametrize("columns", ["id int NOT NULL", "id rowversion NOT NULL PRIMARY KEY"])
def test_a_table_needs_a_primary_key(shop: Source, hooks: Hooks, columns: str) -> None:
    shop.sql(f"CREATE TABLE dbo.heap ({columns})")
    with pytest.raises(KeyRequiredError, match=r"dbo\.heap: .*primary key.*change data capture"):
        hooks().enable_table(TableName("dbo", "heap"))


def test_a_table_needs_a_database_that_is_tracked(source: Source, hooks: Hooks) -> None:
    source.sql("CREATE TABLE dbo.plain (id int NOT NULL PRIMARY KEY)")
    for ask in (hooks().enable_table, hooks().tracked_table):
        with pytest.raises(ChangeTrackingDisabledError, match=f"off for {source.name}.*ALTER DATABASE"):
            ask(PLAIN)


def test_who_may_not_alter_a_table_is_told_so(shop: Source, hooks: Hooks, user: Callable[..., str]) -> None:
    login = user("GRANT SELECT ON dbo.plain")
    hook = hooks(login)
    with pytest.raises(CdcPermissionError) as denied:
        hook.enable_table(PLAIN)
    assert denied.value.advice is not None
    shop.sql(denied.value.advice.removeprefix("Run: "))
    hook.enable_table(PLAIN)
    assert hooks().tracked_table(PLAIN).source == PLAIN


def test_a_table_that_is_written_to_is_waited_for_as_long_as_was_said(shop: Source, hooks: Hooks) -> None:
    hook, writer = hooks(), hooks()
    writer.query("BEGIN TRAN INSERT INTO dbo.plain VALUES (1)")
    with pytest.raises(SqlServerError, match=r"dbo\.plain stays as it is.*0\.1 s") as caught:
        hook.enable_table(PLAIN, lock_timeout=0.1)
    assert caught.value.number == 1222
    assert hook.query("SELECT @@LOCK_TIMEOUT") == [(-1,)]
    writer.query("COMMIT")
    hook.enable_table(PLAIN, lock_timeout=0.1)
    assert hook.versions([PLAIN]).tables[PLAIN].standing is Standing.TRACKED


@pytest.mark.parametrize("lock_timeout", [-1, -0.001, float("inf"), float("nan"), 2_147_484])
def test_a_wait_without_an_end_is_refused(shop: Source, hooks: Hooks, lock_timeout: float) -> None:
    hook = hooks()
    for ask in (hook.enable_table, hook.disable_table):
        with pytest.raises(ParameterError, match="lock_timeout="):
            ask(PLAIN, lock_timeout=lock_timeout)
    assert hook.sent == []


# Versions


def test_versions_of_many_tables_are_one_statement(shop: Source, hooks: Hooks) -> None:
    hook = hooks()
    ((orders,), (odd,), (plain,)) = shop.sql(
        "SELECT object_id FROM sys.tables ORDER BY CASE name WHEN N'orders' THEN 1 WHEN N'plain' THEN 3 ELSE 2 END"
    )
    ((side, made),) = shop.sql(SIDE.format("sales.orders"))
    ((odd_side, odd_made),) = shop.sql(SIDE.format("[odd.name].[a]]b%s''c]"))
    expected = {
        NONE: TrackedVersions(NONE, Standing.UNKNOWN),
        ORDERS: TrackedVersions(ORDERS, Standing.TRACKED, orders, Version(0), Version(0), side, made),
        PLAIN: TrackedVersions(PLAIN, Standing.UNTRACKED, plain),
        ODD: TrackedVersions(ODD, Standing.TRACKED, odd, Version(1), Version(1), odd_side, odd_made),
    }
    found = hook.versions([NONE, ORDERS, PLAIN, ODD, ORDERS])
    assert found == DatabaseVersions(Version(4), expected)
    assert list(found.tables) == [NONE, ORDERS, PLAIN, ODD]
    assert len(hook.sent) == 1
    assert hook.versions([]) == DatabaseVersions(Version(4), {})


def test_names_are_compared_as_the_server_does(shop: Source, hooks: Hooks, user: Callable[..., str]) -> None:
    spelled, hook = TableName("SALES", "Orders"), hooks()
    both = hook.versions([spelled, ORDERS]).tables
    assert dataclasses.replace(both[spelled], table=ORDERS) == both[ORDERS]
    assert both[spelled].standing is Standing.TRACKED
    assert hook.tracked_table(spelled) == hook.tracked_table(ORDERS)
    reader = hooks(user("GRANT VIEW CHANGE TRACKING ON sales.orders", "GRANT SELECT ON sales.orders (line)"))
    lacking = [(right.permission, right.table, right.columns) for right in reader.lacking_rights([spelled])]
    assert lacking == [("VIEW DATABASE STATE", None, ()), ("SELECT", spelled, ("id",))]


def test_versions_while_nothing_is_tracked(source: Source, hooks: Hooks) -> None:
    source.sql("CREATE TABLE dbo.plain (id int NOT NULL PRIMARY KEY)")
    ((plain,),) = source.sql("SELECT OBJECT_ID(N'dbo.plain')")
    assert hooks().versions([PLAIN]) == DatabaseVersions(
        None, {PLAIN: TrackedVersions(PLAIN, Standing.UNTRACKED, plain)}
    )


def test_a_table_that_may_not_be_asked_about_is_told_apart(
    shop: Source, hooks: Hooks, user: Callable[..., str]
) -> None:
    login = user("GRANT SELECT ON sales.orders", "GRANT SELECT ON dbo.plain")
    hook = hooks(login)
    found = hook.versions([ORDERS, PLAIN, ODD])
    assert {name: each.standing for name, each in found.tables.items()} == {
        ORDERS: Standing.DENIED, PLAIN: Standing.UNTRACKED, ODD: Standing.UNKNOWN,
    }  # fmt: skip
    assert (found.current, found.tables[ORDERS].begin, found.tables[ORDERS].min_valid) == (Version(4), Version(0), None)
    problem = found.tables[ORDERS].problem(Version(4), found.current, login)
    assert problem is not None
    shop.sql(problem[problem.index("GRANT") :])
    allowed = hook.versions([ORDERS]).tables[ORDERS]
    assert (allowed.standing, allowed.min_valid, allowed.problem(Version(0), found.current, login)) == (
        Standing.TRACKED, Version(0), None,
    )  # fmt: skip


def test_truncate_and_off_and_on_leave_the_last_version_valid_and_are_seen_otherwise(
    shop: Source, hooks: Hooks
) -> None:
    hook = hooks()
    before = hook.versions([ORDERS]).tables[ORDERS]
    shop.sql("TRUNCATE TABLE sales.orders")
    truncated = hook.versions([ORDERS])
    now = truncated.tables[ORDERS]
    assert (truncated.current, now.begin, now.min_valid) == (Version(4), Version(4), Version(4))
    assert [now.is_valid(Version(at), truncated.current) for at in (3, 4, 5)] == [False, True, False]
    assert now.begin != before.begin
    hook.disable_table(ORDERS)
    hook.enable_table(ORDERS)
    found = hook.versions([ORDERS])
    anew = found.tables[ORDERS]
    assert (anew.is_valid(Version(4), found.current), anew.begin) == (True, now.begin)
    assert anew.side_object_id != now.side_object_id


# Changes


def test_changes_are_those_of_changetable(shop: Source, hooks: Hooks) -> None:
    hook = hooks()
    orders = hook.tracked_table(ORDERS)

    def change(version: int, creation: int | None, op: str, number: int, columns: Any, context: Any) -> TrackedChange:
        created = None if creation is None else Version(creation)
        return TrackedChange(Version(version), created, op, {"id": number, "line": 1}, columns, context)

    third, second = change(1, 1, "I", 3, None, None), change(2, 1, "I", 2, None, None)
    first = change(3, None, "D", 1, None, b"\xca\xfe\x00")
    assert hook.changes(orders, Version(0)) == [third, second, change(3, 1, "D", 1, None, b"\xca\xfe\x00")]
    named = change(2, None, "U", 2, ("amount", "code"), None)
    assert hook.changes(orders, Version(1)) == [named, first]
    assert hook.changes(orders, Version(1), limit=1) == [named]
    assert hook.changes(orders, Version(1), Version(2)) == [named]
    assert hook.changes(orders, Version(2), Version(3)) == [first]
    assert hook.changes(orders, Version(4)) == []
    plain = shop.sql(
        "SELECT SYS_CHANGE_VERSION, SYS_CHANGE_CREATION_VERSION, SYS_CHANGE_OPERATION, id, line, SYS_CHANGE_CONTEXT"
        " FROM CHANGETABLE(CHANGES sales.orders, 1) AS c ORDER BY 1"
    )
    assert [
        (c.version.value, c.creation_version, c.operation, *c.key.values(), c.context)
        for c in hook.changes(orders, Version(1))
    ] == plain
    # the key changed again, so that it is behind the window
    shop.sql("UPDATE sales.orders SET note = N'x' WHERE id = 2")
    assert hook.changes(orders, Version(1), Version(4)) == [first]
    assert hook.changes(orders, Version(1)) == [first, change(5, None, "U", 2, ("amount", "note", "code"), None)]


def test_changes_of_a_table_whose_columns_are_not_tracked(shop: Source, hooks: Hooks) -> None:
    hook = hooks()
    shop.sql("UPDATE [odd.name].[a]]b%s'c] SET [v%d] = 2")
    key = {"k]%s": uuid.UUID("6F9619FF-8B86-D011-B42D-00C04FC964FF")}
    odd = hook.tracked_table(ODD)
    assert hook.changes(odd, Version(1)) == [TrackedChange(Version(5), Version(4), "I", key, None, None)]
    assert hook.changes(odd, Version(4)) == [TrackedChange(Version(5), None, "U", key, None, None)]


def test_changes_that_were_removed_are_a_gap(shop: Source, hooks: Hooks) -> None:
    hook = hooks()
    odd = hook.tracked_table(ODD)
    with pytest.raises(GapError, match=r"the changes after version 0 up to version 1 were purged") as caught:
        hook.changes(odd, Version(0))
    assert (caught.value.after, caught.value.readable_from) == (Version(0), Version(1))
    shop.sql("TRUNCATE TABLE [odd.name].[a]]b%s'c]")
    with pytest.raises(GapError):
        hook.changes(odd, Version(3))
    assert hook.changes(odd, Version(4)) == []
    hook.disable_table(ODD)
    with pytest.raises(ChangeTrackingDisabledError, match=r"odd\.name\.a\]b%s'c: .*Call enable_table first"):
        hook.changes(odd, Version(4))
    shop.sql("DROP TABLE [odd.name].[a]]b%s'c]")
    with pytest.raises(TableNotFoundError, match=r"odd\.name\.a\]b%s'c: there is no such table"):
        hook.changes(odd, Version(4))


def test_changes_of_a_table_that_was_made_anew(shop: Source, hooks: Hooks) -> None:
    hook, made = hooks(), "CREATE TABLE sales.orders (id int NOT NULL, {} int NOT NULL, PRIMARY KEY (id, {}))"
    orders = hook.tracked_table(ORDERS)
    for column in ("line", "other"):
        shop.sql("DROP TABLE sales.orders")
        shop.sql(made.format(column, column))
        with pytest.raises(ChangeTrackingDisabledError, match=r"sales\.orders: "):
            hook.changes(orders, Version(4))
        shop.sql("ALTER TABLE sales.orders ENABLE CHANGE_TRACKING")
        with pytest.raises(InstanceChangedError, match=r"sales\.orders: .*no longer the table.*tracked_table again"):
            hook.changes(orders, Version(4))
    assert hook.changes(hook.tracked_table(ORDERS), Version(4)) == []


def test_a_table_that_goes_while_it_is_described_is_left_out(shop: Source, hooks: Hooks) -> None:
    hook = hooks()
    hook.before = lambda: shop.sql("DROP TABLE sales.orders") if len(hook.sent) == 1 else None
    assert [table.source for table in hook.tracked_tables([ORDERS, ODD])] == [ODD]


def test_a_version_of_another_history_is_no_empty_window(shop: Source, hooks: Hooks) -> None:
    hook = hooks()
    orders = hook.tracked_table(ORDERS)
    with pytest.raises(RestoredError, match=r"sales\.orders: the database is at version 4, below version 400.*anew"):
        hook.changes(orders, Version(400))


def test_what_is_removed_while_it_is_listed_is_a_gap(
    shop: Source, hooks: Hooks, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = only_sandbox(request, "its cleanup cannot be timed")
    hook = hooks()
    orders = hook.tracked_table(ORDERS)
    shop.sql("ALTER DATABASE CURRENT SET CHANGE_TRACKING (CHANGE_RETENTION = 1 MINUTES, AUTO_CLEANUP = ON)")
    sandbox.step_clock(_BEYOND_A_MINUTE)
    # at the last moment before the rows are read: a mark from before would say that none is missing
    monkeypatch.setattr(changetable, "meanwhile", lambda env, database: sandbox.clean_tracking(shop.name))
    with pytest.raises(GapError) as caught:
        hook.changes(orders, Version(1))
    assert (caught.value.after, caught.value.readable_from) == (Version(1), Version(4))


@pytest.mark.parametrize("seed", range(2))
def test_changes_of_random_histories(source: Source, hooks: Hooks, seed: int) -> None:
    hook, table, drawn = hooks(), TableName("dbo", "t"), random.Random(seed)
    source.sql("ALTER DATABASE CURRENT SET CHANGE_TRACKING = ON (CHANGE_RETENTION = 7 DAYS)")
    source.sql("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, a int NULL, b int NULL, c int NULL)")
    source.sql("ALTER TABLE dbo.t ENABLE CHANGE_TRACKING WITH (TRACK_COLUMNS_UPDATED = ON)")
    present: set[int] = set()
    done: list[tuple[int, int, str, frozenset[str] | None, bytes]] = []
    version = 0
    for number in range(24):
        key, context = drawn.randrange(5), bytes([seed, number])
        if key not in present:
            op, named, sql = "I", None, f"INSERT INTO dbo.t VALUES ({key}, 0, 0, 0)"
            present.add(key)
        elif drawn.random() < 0.4:
            op, named, sql = "D", None, f"DELETE FROM dbo.t WHERE id = {key}"
            present.remove(key)
        else:
            named = frozenset(drawn.sample("ab", drawn.randrange(1, 3)))
            op, sql = "U", f"UPDATE dbo.t SET {', '.join(f'{name} = {number}' for name in named)} WHERE id = {key}"
        source.sql(context_clause(context) + sql)
        version += 1
        done.append((version, key, op, named, context))
    tracked = hook.tracked_table(table)
    assert hook.current_version() == Version(version)
    for after in (0, *sorted(drawn.sample(range(1, version), 6)), version):
        expected = []
        for key in range(5):
            mine = [each for each in done if each[1] == key and each[0] > after]
            if not mine:
                continue
            ops = [op for _, _, op, _, _ in mine]
            masks = [named for _, _, _, named, _ in mine if named is not None]
            whole = len(masks) < len(mine)
            inserted = [at for at, _, op, _, _ in mine if op == "I"]
            expected.append(
                TrackedChange(
                    Version(mine[-1][0]),
                    Version(inserted[-1]) if inserted else None,
                    "D" if ops[-1] == "D" else "I" if ops[0] == "I" else "U",
                    {"id": key},
                    None if whole else tuple(sorted(frozenset().union(*masks))),
                    mine[-1][4],
                )
            )
        expected.sort(key=lambda change: change.version)
        assert hook.changes(tracked, Version(after)) == expected
        assert hook.changes(tracked, Version(after), limit=2) == expected[:2]


@pytest.mark.parametrize("limit", [0, -1, 10_001])
def test_a_list_of_changes_is_for_people(shop: Source, hooks: Hooks, limit: int) -> None:
    hook = hooks()
    orders = hook.tracked_table(ORDERS)
    with pytest.raises(ParameterError, match="1 to 10000"):
        hook.changes(orders, Version(0), limit=limit)
    with pytest.raises(ParameterError, match="after version 3 and up to version 2"):
        hook.changes(orders, Version(3), Version(2))


def test_columns_in_a_mask(shop: Source, hooks: Hooks) -> None:
    hook = hooks()
    orders = hook.tracked_table(ORDERS)
    (mask,) = shop.sql("SELECT SYS_CHANGE_COLUMNS FROM CHANGETABLE(CHANGES sales.orders, 1) AS c WHERE id = 2")[0]
    assert hook.columns_in_mask(orders, bytes(mask)) == ("amount", "code")
    assert hook.columns_in_mask(orders, None) == ("amount", "note", "code")
    with pytest.raises(SqlServerError) as caught:
        hook.columns_in_mask(orders, b"\x00")
    assert caught.value.number == 22101
    # a column that is gone may still be in a mask
    shop.sql("ALTER TABLE sales.orders DROP COLUMN code")
    assert hook.columns_in_mask(hook.tracked_table(ORDERS), bytes(mask)) == ("amount",)


def test_a_context_is_written_with_the_clause(shop: Source, hooks: Hooks) -> None:
    hook = hooks()
    for number, context in enumerate((b"", b"sync", bytes(range(128))), 10):
        shop.sql(f"{context_clause(context)}INSERT INTO sales.orders (id, line) VALUES ({number}, 1)")
    told = [change.context for change in hook.changes(hook.tracked_table(ORDERS), Version(4))]
    assert told == [b"", b"sync", bytes(range(128))]


# Housekeeping


def test_sizes(shop: Source, hooks: Hooks) -> None:
    hook = hooks()
    found = hook.sizes()
    assert len(hook.sent) == 1
    commits, odd, orders = found
    assert (odd.table, odd.rows, orders.table, orders.rows) == (ODD, 1, ORDERS, 5)
    assert [size.table for size in found] == [None, ODD, ORDERS]
    # what a server has not yet written to disk is not counted
    assert 0 <= commits.rows <= 4
    pages = shop.sql(
        "SELECT SUM(p.reserved_page_count) FROM sys.dm_db_partition_stats AS p WHERE p.object_id IN"
        " (SELECT object_id FROM sys.internal_tables WHERE internal_type IN (209, 210)) GROUP BY p.object_id"
    )
    assert sorted(size.reserved for size in found) == sorted(8192 * count for (count,) in pages)


def test_who_may_not_see_sizes_is_told_the_grant(shop: Source, hooks: Hooks, user: Callable[..., str]) -> None:
    login = user("GRANT SELECT ON sales.orders", "GRANT VIEW DEFINITION")
    hook = hooks(login)
    with pytest.raises(CdcPermissionError) as denied:
        hook.sizes()
    grant = f"GRANT VIEW DATABASE STATE TO [{login.replace(']', ']]')}];"
    assert denied.value.advice == f"Run: {grant}"
    shop.sql(grant)
    assert (ORDERS, 5) in [(size.table, size.rows) for size in hook.sizes()]


def test_what_cleanup_did(shop: Source, hooks: Hooks, user: Callable[..., str], request: pytest.FixtureRequest) -> None:
    sandbox = only_sandbox(request, "it keeps a minute at least")
    hook, reader = hooks(), hooks(login := user("GRANT SELECT ON sales.orders"))
    assert hook.cleanups() == []
    shop.sql("ALTER DATABASE CURRENT SET CHANGE_TRACKING (CHANGE_RETENTION = 1 MINUTES)")
    sandbox.step_clock(_BEYOND_A_MINUTE)
    shop.sql("EXEC sys.sp_flush_CT_internal_table_on_demand 'sales.orders'")
    sandbox.step_clock(1)
    shop.sql("EXEC sys.sp_flush_CT_internal_table_on_demand")
    listed = shop.sql(
        "SELECT table_name, start_time, end_time, rows_cleaned_up, cleanup_version,"
        " CAST(comments AS nvarchar(max)) FROM dbo.MSchange_tracking_history"
    )
    found = hook.cleanups()
    assert {(c.table, c.began, c.ended, c.rows, c.version and c.version.value, c.comments) for c in found} == {*listed}
    assert [(c.table, c.rows, c.version) for c in found] == [
        ("a]b%s'c", 1, Version(4)), ("orders", 0, Version(4)), ("orders", 5, Version(4)),
    ]  # fmt: skip
    assert hook.cleanups(limit=2) == found[:2]
    with pytest.raises(CdcPermissionError, match="MSchange_tracking_history") as denied:
        reader.cleanups()
    quoted = f"[{login.replace(']', ']]')}]"
    grant = f"GRANT SELECT ON [dbo].[MSchange_tracking_history] TO {quoted};"
    assert (denied.value.number, denied.value.advice) == (229, f"Run: {grant}")
    shop.sql(grant)
    assert reader.cleanups() == found


# Permissions


def test_who_lacks_nothing(shop: Source, hooks: Hooks) -> None:
    hook = hooks()
    assert hook.lacking_rights([ORDERS, ODD]) == []
    assert len(hook.sent) == 4


def test_rights_on_a_table_that_is_not_tracked_yet(shop: Source, hooks: Hooks, user: Callable[..., str]) -> None:
    login = user("GRANT VIEW DATABASE STATE", "GRANT VIEW DEFINITION ON dbo.plain")
    lacking = hooks(login).lacking_rights([PLAIN, PLAIN])
    assert [(right.permission, right.table, right.columns) for right in lacking] == [
        ("VIEW CHANGE TRACKING", PLAIN, ()), ("SELECT", PLAIN, ("id",)),
    ]  # fmt: skip


def test_each_right_that_is_lacking_is_told_with_its_grant(
    shop: Source, hooks: Hooks, user: Callable[..., str]
) -> None:
    login = user("GRANT SELECT ON sales.orders (id)")
    hook, to = hooks(login), f"TO [{login.replace(']', ']]')}];"
    odd = "[odd.name].[a]]b%s'c]"
    told = {(right.permission, right.table, right.columns): right.grant for right in hook.lacking_rights([ORDERS, ODD])}
    assert told == {
        ("VIEW DATABASE STATE", None, ()): f"GRANT VIEW DATABASE STATE {to}",
        ("VIEW CHANGE TRACKING", ORDERS, ()): f"GRANT VIEW CHANGE TRACKING ON [sales].[orders] {to}",
        ("SELECT", ORDERS, ("line",)): f"GRANT SELECT ON [sales].[orders] ([line]) {to}",
        ("VIEW CHANGE TRACKING", ODD, ()): f"GRANT VIEW CHANGE TRACKING ON {odd} {to}",
        ("SELECT", ODD, ()): f"GRANT SELECT ON {odd} {to}",
    }
    assert hook.versions([ORDERS]).tables[ORDERS].standing is Standing.DENIED
    for table in (ORDERS, ODD):
        with pytest.raises(CdcPermissionError) as denied:
            hook.changes(hooks().tracked_table(table), Version(1))
        grants = [grant for (_, of, _), grant in told.items() if of == table]
        assert denied.value.advice == f"Run: {' '.join(grants)}"
    for grant in told.values():
        shop.sql(grant)
    assert hook.lacking_rights([ORDERS, ODD]) == []
    assert [change.key["id"] for change in hook.changes(hook.tracked_table(ORDERS), Version(1))] == [2, 1]


def test_rights_on_a_table_that_is_not_there(shop: Source, hooks: Hooks, user: Callable[..., str]) -> None:
    for hook in (hooks(), hooks(user("GRANT SELECT ON sales.orders"))):
        with pytest.raises(TableNotFoundError, match=r"no\.such: there is no such table"):
            hook.lacking_rights([ORDERS, NONE])


def test_rights_of_many_tables(shop: Source, hooks: Hooks, user: Callable[..., str]) -> None:
    names = [TableName("dbo", f"m{number}") for number in range(60)]
    for name in names:
        shop.sql(f"CREATE TABLE {name.quoted} (id int NOT NULL PRIMARY KEY)")
        shop.sql(f"ALTER TABLE {name.quoted} ENABLE CHANGE_TRACKING")
    login = user("GRANT SELECT ON SCHEMA::dbo", "DENY SELECT ON dbo.m59", "GRANT VIEW DATABASE STATE")
    found: list[LackingRight] = hooks(login).lacking_rights(names)
    lacking = [("VIEW CHANGE TRACKING", name) for name in names]
    assert sorted((r.permission, r.table) for r in found if r.table) == sorted([*lacking, ("SELECT", names[59])])


def test_no_connection_is_left_when_the_hook_is_left(shop: Source) -> None:
    with MsSqlChangeTrackingHook(CONN_ID, connection=shop.airflow_connection()) as hook:
        assert hook.status().enabled
        assert isinstance(hook._open, pymssql.Connection)
    assert hook._open is None
