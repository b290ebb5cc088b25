"""The hook against a server, and beside it the same facts by plain SELECTs."""

from __future__ import annotations

import dataclasses
import datetime
import random
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.database import Running, TimeOperator
from airflow_provider_mssql_cdc.core.exceptions import (
    CdcDisabledError,
    CdcPermissionError,
    DatabaseUnavailableError,
    LoginError,
    SqlServerError,
    TableNotFoundError,
)
from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.going_on import goes_on_with
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema
from airflow_provider_mssql_cdc.hooks import statements
from airflow_provider_mssql_cdc.hooks.connection import Row
from tests.support.hooks.source import CountingHook, Source

ORDERS = TableName("sales", "orders")


@pytest.fixture
def shop(source: Source) -> Source:
    """Tables of several kinds, the first three tracked, with two transactions captured."""
    source.sql("CREATE SCHEMA [sales]")
    source.sql("CREATE SCHEMA [odd.name]")
    source.sql(
        "CREATE TABLE sales.orders (id int NOT NULL, line smallint NOT NULL, amount decimal(19, 4) NULL,"
        " note nvarchar(max) NULL, at datetime2(3) NULL, twice AS (id * 2),"
        " CONSTRAINT pk_orders PRIMARY KEY (line, id))"
    )
    source.sql("CREATE TABLE sales.customers (id int NOT NULL PRIMARY KEY, name varchar(40) NOT NULL)")
    source.sql("CREATE TABLE [odd.name].[a]]b_c] (id int NOT NULL PRIMARY KEY)")
    source.sql("CREATE TABLE dbo.untracked (id int NOT NULL PRIMARY KEY)")
    source.enable("sales.orders", "sales.customers")
    source.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'odd.name', @source_name = N'a]b_c', @role_name = NULL,"
        " @capture_instance = N'odd', @supports_net_changes = 0"
    )
    source.stop_capture()
    source.sql("INSERT INTO sales.orders (id, line, amount) VALUES (1, 1, 1.5), (2, 1, 2.5)")
    source.sql("UPDATE sales.orders SET amount = 3 WHERE id = 1")
    source.scan()
    return source


def test_status_while_cdc_is_off(source: Source) -> None:
    with source.hook() as hook:
        status = hook.database_status()
    assert (status.name, status.cdc_enabled, status.max_lsn, status.min_mapped_lsn) == (source.name, False, None, None)
    assert status.major_version >= 13
    assert status.retention_minutes is None


def test_status(shop: Source) -> None:
    with shop.hook() as hook:
        status = hook.database_status()
        assert hook.retention_minutes() == 4320
        assert hook.max_text_repl_size() == status.max_text_repl_size
    ((low, high, last),) = shop.sql(
        "SELECT low, high, tran_end_time FROM cdc.lsn_time_mapping JOIN (SELECT MIN(start_lsn) AS low,"
        " MAX(start_lsn) AS high FROM cdc.lsn_time_mapping) AS ends ON high = start_lsn"
    )
    ((name, collation, version, edition, engine, text_size),) = shop.sql(
        "SELECT d.name, d.collation_name, CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(128)),"
        " CAST(SERVERPROPERTY('Edition') AS nvarchar(128)), CAST(SERVERPROPERTY('EngineEdition') AS int),"
        " (SELECT CAST(value_in_use AS int) FROM sys.configurations WHERE name = N'max text repl size (B)')"
        " FROM sys.databases AS d WHERE d.name = DB_NAME()"
    )
    assert status.cdc_enabled
    assert (status.name, status.collation, status.version) == (name, collation, version)
    assert (status.edition, status.engine_edition, status.max_text_repl_size) == (edition, engine, text_size)
    assert (status.min_mapped_lsn, status.max_lsn) == (Lsn(bytes(low)), Lsn(bytes(high)))
    assert (status.max_lsn_time, status.retention_minutes) == (last, 4320)
    assert abs(status.server_time - shop.sql("SELECT GETDATE()")[0][0]) < datetime.timedelta(minutes=5)


@pytest.mark.parametrize(
    ("patterns", "exclude", "expected", "empty"),
    [
        (["sales.*"], [], ["sales.customers", "sales.orders"], []),
        (["SALES.Orders"], [], ["sales.orders"], []),
        (["untracked"], [], ["dbo.untracked"], []),
        (["*.*"], ["sales.*"], ["dbo.untracked", "odd.name.a]b_c"], []),
        (["[odd.name].[a]]b_c]", "sales.orders"], [], ["odd.name.a]b_c", "sales.orders"], []),
        (["sales.*", "sales.orders", "sales.x*"], [], ["sales.customers", "sales.orders"], ["sales.x*"]),
        (["sales.order_"], [], None, []),
        (["nothing.*", "cdc.*"], [], None, []),
        (["sales.*"], ["*.*"], None, []),
    ],
)
def test_patterns(
    shop: Source, patterns: list[str], exclude: list[str], expected: list[str] | None, empty: list[str]
) -> None:
    with shop.hook() as hook:
        if expected is None:
            with pytest.raises(TableNotFoundError) as caught:
                hook.resolve_tables(patterns, exclude)
            assert all(pattern in str(caught.value) for pattern in patterns)
            return
        matches = hook.resolve_tables(patterns, exclude)
    assert [str(table.name) for table in matches.tables] == expected
    assert list(matches.empty_patterns) == empty
    tracked = {
        f"{s}.{t}": bool(flag)
        for s, t, flag in shop.sql(
            "SELECT s.name, t.name, t.is_tracked_by_cdc FROM sys.tables AS t JOIN sys.schemas AS s"
            " ON s.schema_id = t.schema_id"
        )
    }
    assert {str(table.name): table.tracked for table in matches.tables} == {name: tracked[name] for name in expected}


def test_a_snapshot_takes_three_statements(shop: Source) -> None:
    with shop.hook() as hook:
        survey = hook.survey(["*.*"], [])
        assert len(hook.sent) == 3
        assert survey.status == hook.database_status() or survey.status.name == shop.name
        assert list(survey.instances) == hook.capture_instances([table.name for table in survey.matches.tables])
    assert {i.name for i in survey.instances} == {"sales_orders", "sales_customers", "odd"}
    by_table = {str(table.name): survey.instances_of(table) for table in survey.matches.tables}
    assert {name: [i.name for i in found] for name, found in by_table.items()} == {
        "dbo.untracked": [],
        "odd.name.a]b_c": ["odd"],
        "sales.customers": ["sales_customers"],
        "sales.orders": ["sales_orders"],
    }


def test_a_capture_instance_is_complete(shop: Source) -> None:
    ((object_id, source_id, created, start),) = shop.sql(
        "SELECT object_id, source_object_id, create_date, start_lsn FROM cdc.change_tables"
        " WHERE capture_instance = N'sales_orders'"
    )
    ((nullable,),) = shop.sql("SELECT is_nullable FROM sys.columns WHERE name = N'twice' AND is_computed = 1")
    ((index, filegroup, switch),) = shop.sql(
        "SELECT index_name, filegroup_name, partition_switch FROM cdc.change_tables"
        " WHERE capture_instance = N'sales_orders'"
    )
    ((collation,),) = shop.sql("SELECT collation_name FROM sys.databases WHERE name = DB_NAME()")
    with shop.hook() as hook:
        (found,) = hook.capture_instances([ORDERS])
    assert found == CaptureInstance(
        name="sales_orders",
        object_id=object_id,
        source=ORDERS,
        source_object_id=source_id,
        create_date=created,
        start_lsn=Lsn(bytes(start)),
        min_lsn=Lsn(bytes(start)),
        columns=(
            Column(1, 1, "id", "int", 4, 10, 0, nullable=False),
            Column(2, 2, "line", "smallint", 2, 5, 0, nullable=False),
            Column(3, 3, "amount", "decimal", 9, 19, 4),
            Column(4, 4, "note", "nvarchar", -1, 0, 0, collation=collation),
            Column(5, 5, "at", "datetime2", 7, 23, 3),
            Column(6, 6, "twice", "int", 4, 10, 0, nullable=nullable, computed=True),
        ),
        index_key=("line", "id"),
        primary_key=("line", "id"),
        supports_net_changes=False,
        role=None,
        has_command_id=True,
        index_name=index,
        filegroup=filegroup,
        partition_switch=switch,
    )
    assert found.index_name == "pk_orders"


def test_a_second_instance_with_fewer_columns(shop: Source) -> None:
    shop.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'sales', @source_name = N'orders', @role_name = N'readers',"
        " @capture_instance = N'second', @captured_column_list = N'[id], [line], [note]', @supports_net_changes = 0"
    )
    with shop.hook() as hook:
        first, second = hook.capture_instances([ORDERS])
    assert (first.name, second.name) == ("sales_orders", "second")
    assert [column.name for column in second.columns] == ["id", "line", "note"]
    assert second.uncaptured == ("amount", "at", "twice")
    assert (second.role, second.supports_net_changes) == ("readers", False)


def test_enabling_can_be_seen_at_once_and_is_done_once(source: Source) -> None:
    source.sql("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, a int NULL, b int NULL)")
    table = TableName("dbo", "t")
    with source.hook() as hook:
        with pytest.raises(CdcDisabledError, match="not enabled"):
            hook.enable_table(table)
        hook.enable_database()
        hook.enable_database()
        assert hook.database_status().cdc_enabled
        (made,) = hook.enable_table(table, captured_columns=["id", "a"], role_name="readers", capture_instance="mine")
        assert (made.name, made.role, made.uncaptured, made.supports_net_changes) == ("mine", "readers", ("b",), False)
        assert hook.enable_table(table, capture_instance="other") == [made]
        assert source.sql("SELECT COUNT(*) FROM cdc.change_tables")[0][0] == 1
        hook.disable_table(table)
        assert hook.capture_instances([table]) == []
        assert not hook.resolve_tables(["t"]).tables[0].tracked
        hook.disable_database()
        assert not hook.database_status().cdc_enabled


def test_enabling_with_a_missing_index_says_so(source: Source) -> None:
    source.sql("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY)")
    source.enable()
    with source.hook() as hook, pytest.raises(SqlServerError) as caught:
        hook.enable_table(TableName("dbo", "t"), index_name="none_such")
    assert caught.value.number == 22928


def test_enabling_waits_for_an_open_transaction_no_longer_than_it_is_told(source: Source) -> None:
    source.sql("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY)")
    source.enable()
    table = TableName("dbo", "t")
    with source.hook() as hook, source.hook() as writer:
        writer.query("BEGIN TRAN INSERT INTO dbo.t VALUES (1)")
        with pytest.raises(SqlServerError, match=r"in 0\.1 s") as caught:
            hook.enable_table(table, lock_timeout=0.1)
        assert caught.value.number == 1222
        assert hook.query("SELECT @@LOCK_TIMEOUT") == [(-1,)]
        assert not hook.is_tracked(table)
        writer.query("COMMIT")
        assert [made.name for made in hook.enable_table(table, lock_timeout=0.1)] == ["dbo_t"]


def test_positions_and_times(shop: Source) -> None:
    rows = shop.sql("SELECT start_lsn, tran_end_time FROM cdc.lsn_time_mapping ORDER BY start_lsn")
    known = {Lsn(bytes(at)): when for at, when in rows}
    first, last = min(known), max(known)
    with shop.hook() as hook:
        assert hook.max_lsn() == last
        assert hook.min_lsn("sales_orders") == hook.capture_instances([ORDERS])[0].min_lsn
        with pytest.raises(CdcDisabledError, match="none_such"):
            hook.min_lsn("none_such")
        assert {at: hook.lsn_to_time(at) for at in known} == known
        assert hook.lsn_to_time(last.next()) is None
        assert hook.witnesses([first, last, last.next()]) == {first: known[first], last: known[last]}
        assert hook.witness(last.next()).lsn == last  # type: ignore[union-attr]
        assert hook.witness(first.previous()) is None
        far = datetime.datetime(2099, 1, 1)
        assert hook.time_to_lsn(TimeOperator.LARGEST_LESS_THAN, far) == last
        assert hook.time_to_lsn(TimeOperator.LARGEST_LESS_THAN_OR_EQUAL, far) == last
        assert hook.time_to_lsn(TimeOperator.SMALLEST_GREATER_THAN, far) is None
        past = datetime.datetime(2001, 1, 1)
        assert hook.time_to_lsn(TimeOperator.SMALLEST_GREATER_THAN, past) == first
        assert hook.time_to_lsn(TimeOperator.SMALLEST_GREATER_THAN_OR_EQUAL, past) == first
        assert hook.time_to_lsn(TimeOperator.LARGEST_LESS_THAN, past) is None
        with pytest.raises(ValueError, match="zone"):
            hook.time_to_lsn(TimeOperator.LARGEST_LESS_THAN, far.replace(tzinfo=datetime.UTC))


@pytest.mark.parametrize("option", ["SET DATEFORMAT dmy", "SET LANGUAGE British"])
def test_no_format_of_dates_changes_what_a_time_means(shop: Source, option: str) -> None:
    moments = [datetime.datetime(year, 2, 3, 4, 5, 6, 789000) for year in (2001, 2098)]
    shop.sql("INSERT INTO sales.orders (id, line) VALUES (900, 1)")
    shop.scan()
    moments += [datetime.datetime(year, 1, 13) for year in (2001, 2098)]  # there is no thirteenth month
    with shop.hook() as plain, shop.hook(conn_properties=option) as other:
        assert plain.query("SELECT CAST('2026-02-03 00:00' AS datetime)") != other.query(
            "SELECT CAST('2026-02-03 00:00' AS datetime)"
        )
        for moment in moments:
            for operator in TimeOperator:
                assert other.time_to_lsn(operator, moment) == plain.time_to_lsn(operator, moment)
            assert other.crossing(moment) == plain.crossing(moment)


@pytest.mark.parametrize("value", [b"ABCDEFGHIJ", b"\x00" * 9 + b"\x01", b"'%s'%%s--", b"\x01" + b"\xff" * 9])
def test_lsns_reach_the_server_as_bytes(source: Source, value: bytes) -> None:
    """pymssql would send bytes that are ASCII as text."""
    lsn = Lsn(value.ljust(10, b"!"))
    with source.hook() as hook:
        assert hook.increment(lsn) == lsn.next()
        assert hook.decrement(lsn) == lsn.previous()


def test_transactions_between(shop: Source) -> None:
    rows = shop.sql(
        "SELECT start_lsn, tran_begin_time, tran_end_time FROM cdc.lsn_time_mapping"
        " WHERE tran_id <> 0x00 ORDER BY start_lsn"
    )
    known = [(Lsn(bytes(at)), begin, end) for at, begin, end in rows]
    with shop.hook() as hook:
        found = hook.transactions_between(known[0][0].previous(), known[-1][0])
        assert [(t.lsn, t.begin_time, t.end_time) for t in found] == known
        assert [t.lsn for t in hook.transactions_between(known[0][0], known[-1][0], limit=1)] == [known[1][0]]


def test_ddl_history(shop: Source) -> None:
    with shop.hook() as hook:
        instances = hook.capture_instances([ORDERS, TableName("sales", "customers")])
        before = hook.max_lsn()
        assert before is not None
        shop.sql("ALTER TABLE sales.customers ADD city nvarchar(20) NULL")
        shop.sql("ALTER TABLE sales.customers ALTER COLUMN name varchar(80) NOT NULL")
        shop.scan()
        found = hook.ddl_history(instances, before)
        assert [(d.capture_instance, d.requires_column_update) for d in found] == [
            ("sales_customers", False),
            ("sales_customers", True),
        ]
        assert "ADD city" in found[0].command
        assert hook.ddl_history(instances, found[-1].lsn) == []
        assert hook.ddl_history([], before) == []
        (customers,) = hook.capture_instances([TableName("sales", "customers")])
    assert (customers.uncaptured, customers.columns[1].length) == (("city",), 80)


def test_a_column_dropped_from_the_source_keeps_its_place_and_is_told_apart(shop: Source) -> None:
    with shop.hook() as hook:
        (before,) = hook.capture_instances([ORDERS])
        shop.sql("ALTER TABLE sales.orders DROP COLUMN note")
        (after,) = hook.capture_instances([ORDERS])
    assert [(column.name, column.dropped) for column in after.columns] == [
        (column.name, column.name == "note") for column in before.columns
    ]
    loaded, now = (TableSchema(instance.columns, instance.primary_key) for instance in (before, after))
    kept = goes_on_with(now, KeptSchema.of(loaded))
    assert (kept.kept, kept.hash, now.hash != loaded.hash) == (("note",), loaded.hash, True)


@pytest.fixture
def busy(source: Source) -> Source:
    """Three tables changed at random: transactions of several rows, over several tables."""
    tables = ["dbo.a", "dbo.b", "dbo.c"]
    for table in tables:
        source.sql(f"CREATE TABLE {table} (id int NOT NULL PRIMARY KEY, v int NULL)")
    source.enable(*tables)
    chance = random.Random(7)
    for number in range(14):
        body = "".join(
            f" INSERT INTO {table} (id) VALUES ({', '.join(f'{number * 10 + row}), (' for row in range(rows))[:-4]});"
            for table in tables
            if (rows := chance.choice((0, 0, 1, 3)))
        )
        source.sql(f"BEGIN TRAN;{body} COMMIT")
    source.sql("UPDATE dbo.a SET v = 1")
    source.scan()
    return source


INSTANCES = ("dbo_a", "dbo_b", "dbo_c")


def test_a_probe_finds_the_newest_event_of_each_window(busy: Source) -> None:
    events = {name: busy.events(name) for name in INSTANCES}
    every = sorted({at for found in events.values() for at in found})
    marks = {i: Lsn(bytes(at)) for i, at in busy.sql("SELECT object_id, start_lsn FROM cdc.change_tables")}
    times = {Lsn(bytes(at)): when for at, when in busy.sql("SELECT start_lsn, tran_end_time FROM cdc.lsn_time_mapping")}
    chance = random.Random(11)
    with busy.hook() as hook:
        for _ in range(20):
            after = {name: chance.choice(every).previous() for name in INSTANCES}
            upto = chance.choice([None, *every])
            asked = chance.sample(every, 3)
            hook.sent.clear()
            probe = hook.probe(after, upto=upto, witnesses=asked)
            assert len(hook.sent) == 1
            cut = upto or busy.max_lsn()
            assert probe.cut == cut
            windows = {name: [at for at in events[name] if after[name] < at <= cut] for name in INSTANCES}
            assert probe.newest == {name: max(found) for name, found in windows.items() if found}
            assert probe.min_lsns == marks
            assert probe.mapped == {at: times[at] for at in asked}
            assert probe.min_mapped_lsn == min(times)
            assert probe.witness is not None
            assert (probe.witness.lsn, probe.witness.time) == (cut, times[cut])


def test_limits_admit_whole_transactions(busy: Source) -> None:
    events = {name: busy.events(name) for name in INSTANCES}
    every = sorted({at for found in events.values() for at in found})
    chance = random.Random(13)
    with busy.hook() as hook:
        for _ in range(25):
            after = {name: chance.choice([every[0].previous(), *every]) for name in INSTANCES}
            upto, limit = chance.choice(every), chance.randint(1, 12)
            rows = sorted(at for name in INSTANCES for at in events[name] if after[name] < at <= upto)
            transactions = sorted(set(rows))
            expected = transactions[limit - 1] if len(transactions) >= limit else upto
            assert hook.cut_by_transactions(after, upto, limit) == expected
            fitting = [at for at in transactions if sum(row <= at for row in rows) <= limit]
            admitted = (fitting or transactions)[-1 if fitting else 0] if transactions else upto
            assert hook.cut_by_rows(after, upto, limit) == (upto if len(rows) <= limit else admitted)
            counted = hook.count_rows(after, upto, limit)
            assert counted == len(rows) if len(rows) <= limit else limit < counted <= len(rows)
        with pytest.raises(ValueError, match="at least one"):
            hook.cut_by_rows({}, every[-1], 0)
        with pytest.raises(ValueError, match="at least one"):
            hook.cut_by_transactions({}, every[-1], 0)


def test_an_empty_run_over_many_tables_takes_five_statements(source: Source) -> None:
    tables = [f"dbo.t{number}" for number in range(30)]
    for table in tables:
        source.sql(f"CREATE TABLE {table} (id int NOT NULL PRIMARY KEY)")
    source.enable(*tables)
    source.sql("INSERT INTO dbo.t7 VALUES (1)")
    source.scan()
    with source.hook() as hook:
        survey = hook.survey(["t*"])
        cut = survey.status.max_lsn
        assert cut is not None
        assert hook.ddl_history(survey.instances, cut) == []
        probe = hook.probe({i.name: cut for i in survey.instances}, witnesses=[cut])
        assert len(hook.sent) == 5
    assert (len(survey.instances), probe.newest, set(probe.mapped)) == (30, {}, {cut})


def test_health_of_a_stopped_capture_job(shop: Source) -> None:
    with shop.hook() as hook:
        assert hook.agent_health().capture_job is Running.STOPPED
        shop.sql("EXEC sys.sp_cdc_start_job")
        assert (hook.agent_health().agent, hook.agent_health().capture_job) == (Running.RUNNING, Running.RUNNING)


def test_health_that_a_login_cannot_see_is_unknown(shop: Source) -> None:
    login, password = f"blind_{shop.name}", "Reader-pw-12345"
    shop.sql(f"CREATE LOGIN [{login}] WITH PASSWORD = N'{password}'")
    shop.sql(f"CREATE USER [{login}] FOR LOGIN [{login}]")
    with shop.hook(login, password) as hook:
        health = hook.agent_health()
    assert (health.agent, health.capture_job) == (Running.UNKNOWN, Running.UNKNOWN)
    assert "a login needs VIEW SERVER STATE and SELECT on msdb.dbo.sysjobactivity" in health.detail


def test_wrong_password_and_unknown_database(source: Source) -> None:
    with pytest.raises(LoginError) as refused:
        source.hook(password="c4nary-wrong").max_lsn()
    assert "c4nary" not in str(refused.value) + repr(refused.value)
    hook = source.hook()
    hook.schema = "none_such"
    with pytest.raises(DatabaseUnavailableError, match="none_such"):
        hook.max_lsn()


def test_a_login_without_a_grant_in_msdb_sees_the_recovery_fork(shop: Source) -> None:
    ((fork,),) = shop.sql("SELECT recovery_fork_guid FROM sys.database_recovery_status WHERE database_id = DB_ID()")
    shop.sql(f"CREATE LOGIN plain_{shop.name} WITH PASSWORD = 'Secret-1'")
    shop.sql(f"CREATE USER plain_{shop.name}; GRANT SELECT ON SCHEMA::cdc TO plain_{shop.name}")
    with shop.hook(login=f"plain_{shop.name}", password="Secret-1") as hook:
        with pytest.raises(SqlServerError):
            hook.query("SELECT retention FROM msdb.dbo.cdc_jobs")
        assert hook.database_status().recovery_fork_guid == str(fork).upper()


def test_a_login_without_rights_is_told_the_grant_that_helps(shop: Source) -> None:
    login, password = f"reader_{shop.name}", "Reader-pw-12345"
    shop.sql(f"CREATE LOGIN [{login}] WITH PASSWORD = N'{password}'")
    shop.sql(f"CREATE USER [{login}] FOR LOGIN [{login}]")
    shop.sql(f"GRANT SELECT ON SCHEMA::[sales] TO [{login}]")
    with shop.hook(login, password) as hook:
        with pytest.raises(CdcPermissionError) as denied:
            hook.probe({"sales_orders": Lsn(bytes(10))})
        advice = denied.value.advice or ""
        assert advice.endswith(f"GRANT SELECT ON SCHEMA::[cdc] TO [{login}];")
        shop.sql(advice[advice.index("GRANT") :])
        survey = hook.survey(["*.*"])
        assert [str(table.name) for table in survey.matches.tables] == ["sales.customers", "sales.orders"]
        orders = survey.instances[1]
        assert orders.columns == shop.hook().capture_instances([ORDERS])[0].columns
        assert hook.probe({orders.name: Lsn(bytes(10))}).newest == {orders.name: shop.events("sales_orders")[-1]}


class Secondary(CountingHook):
    """The hook of a database that is read-only, as no server of the tests has one."""

    def _run(self, sql: str, parameters: Any) -> list[list[Row]]:
        found = super()._run(sql, parameters)
        if sql == statements.UPDATEABILITY:
            assert found == [[("READ_WRITE",)]]
            return [[("READ_ONLY",)]]
        return found


def test_a_readable_secondary_is_never_late_by_its_own_agent_or_scans(shop: Source) -> None:
    soon = datetime.timedelta(microseconds=1)
    with Secondary(connection=shop.airflow_connection()) as hook:
        status = hook.database_status()
        status = dataclasses.replace(status, server_time=status.server_time + datetime.timedelta(hours=2))
        hook.sent.clear()
        lag = hook.lag(status, soon)
    assert lag is not None
    assert not lag.late
    assert hook.sent == [statements.UPDATEABILITY]
    with shop.hook() as primary:
        lag = primary.lag(status, soon)
    assert lag is not None
    assert lag.late, "its capture job is stopped"
