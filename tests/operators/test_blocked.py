"""Capture instances that are not made yet, since somebody uses the table: nobody waits for long, and it is told who."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator

import pytest

from airflow_provider_mssql_cdc.hooks.connection import Row
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from tests.operators.test_new_columns import PROPOSE, evolve, instances, seen_group, settle
from tests.support.hooks.source import CountingHook, Source
from tests.support.operators.group import A, Group
from tests.support.operators.tries import Task

NOT_YET = "dbo.a: capture instance dbo_a__mc2 with note is not made yet, the next run tries: dbo.a was not enabled"
WAITED = f"{NOT_YET} for CDC: a transaction that uses it did not end within 0.1 s. "


@pytest.fixture
def group(source: Source) -> Group:
    """A table that was loaded and seen by a run, and has got a column since."""
    made = seen_group(source)
    made.change("ALTER TABLE dbo.a ADD note nvarchar(20)")
    return made


@pytest.fixture
def user(group: Group) -> Iterator[CountingHook]:
    """Somebody who uses the tables from another program; what is open is rolled back."""
    with group.source.hook(appname="orders") as hook:
        yield hook
        hook.query("IF @@TRANCOUNT > 0 ROLLBACK")


def spid(hook: MsSqlCdcHook) -> int:
    ((number,),) = hook.query("SELECT @@SPID")
    return int(number)


def told(group: Group, hook: MsSqlCdcHook | None = None) -> list[str]:
    """Who is in the way, as a run says that gives up soon; how long their transactions are open is left out."""
    (text,) = evolve(group, hook, lock_timeout=0.1)
    assert text.startswith(WAITED)
    said = text.removeprefix(WAITED)
    return re.sub(r"is open for \d:\d\d:\d\d", "is open", said).removesuffix(".").split(". ")


def test_a_load_gives_up_goes_on_and_names_who_has_written(task: Task) -> None:
    entry = [{"table": "dbo.a", "on_schema_change": "evolve"}]
    source = task.group.source
    task.run(tables=entry, enable_lock_timeout=0.5)
    task.group.change("ALTER TABLE dbo.a ADD note nvarchar(20); CREATE TABLE dbo.c (id int PRIMARY KEY)")
    with source.hook(appname="orders") as writer, source.hook(appname="elsewhere") as other:
        number = spid(writer)
        writer.query("BEGIN TRAN UPDATE dbo.a SET v = 7 WHERE id = 1")
        other.query("BEGIN TRAN INSERT INTO dbo.c VALUES (7)")
        task.group.change("INSERT INTO dbo.b (id) VALUES (3)")
        before = task.position(A)
        summary = task.run(tables=[*entry, "dbo.b"], enable_lock_timeout=0.5)
        (said,) = [text for text in summary["warnings"] if "not made yet" in text]
        # exactly that one, and none of its values
        assert re.fullmatch(
            rf".* did not end within 0\.5 s\. Session {number} \(login '{source.server['user']}', host '.*', program"
            r" 'orders'\) has locks of it in a transaction that is open for \d:\d\d:\d\d, last sent UPDATE\.",
            said,
        )
        writer.query("ROLLBACK")
        other.query("ROLLBACK")
    after = task.position(A)
    assert before is not None
    assert after is not None
    assert after > before
    assert {row["status"] for row in task.rows.values()} <= {"loaded", "quiet"}
    # what the run stores at its end keeps what it is about to make
    stored = task.group.checkpoint(A)
    assert stored is not None
    assert stored.making is not None
    assert (stored.making.instance, stored.making.columns) == ("dbo_a__mc2", ("note",))
    assert instances(task.group) == ["dbo_a", "dbo_b"]
    task.run(tables=[*entry, "dbo.b"])
    assert "dbo_a__mc2" in instances(task.group)
    stored = task.group.checkpoint(A)
    assert stored is not None
    assert stored.making is None


@pytest.mark.parametrize(
    ("statement", "last"),
    [
        ("/* insert */ BEGIN TRAN UPDATE [dbo].[a] SET v = 1 WHERE 'drop' <> '--'", "sent UPDATE"),
        ("BEGIN TRAN SELECT * FROM dbo.a WITH (HOLDLOCK)", "sent BEGIN"),
        ("BEGIN TRAN EXEC sp_executesql N'delete dbo.a'", "sent BEGIN"),
    ],
)
def test_what_kind_of_statement_came_last_is_told_and_never_its_text(
    group: Group, user: CountingHook, statement: str, last: str
) -> None:
    number = spid(user)
    user.query(statement)
    (said,) = told(group)
    who = rf"Session {number} \(login '.*', host '.*', program 'orders'\)"
    assert re.fullmatch(rf"{who} has locks of it in a transaction that is open, last {last}", said)


def test_a_procedure_that_came_last_is_told_by_its_name(group: Group) -> None:
    with group.source.hook() as hook, hook.get_conn() as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE dbo.a SET v = 1")
        cursor.callproc("sys.sp_cdc_help_jobs")
        (said,) = told(group)
        assert said.endswith("in a transaction that is open, last called sys.sp_cdc_help_jobs")
        connection.rollback()


def test_of_many_the_oldest_are_named(group: Group) -> None:
    readers = [group.source.hook() for _ in range(5)]
    for reader in readers:
        reader.query("BEGIN TRAN SELECT * FROM dbo.a WITH (REPEATABLEREAD)")
    *named, rest = told(group)
    assert [text.split()[1] for text in named] == [str(spid(reader)) for reader in readers[:3]]
    assert rest == "2 more have, too"
    for reader in readers:
        reader.query("ROLLBACK")
        reader.close()


def test_a_login_that_may_not_see_it_is_told_the_right_and_nothing_else_fails(group: Group, user: CountingHook) -> None:
    with group.reader() as admin:
        login = admin.where.login
        group.source.sql(f"ALTER ROLE db_owner ADD MEMBER [{login}]")
        number = spid(user)
        user.query("BEGIN TRAN UPDATE dbo.a SET v = 1")
        right = f"VIEW SERVER PERFORMANCE STATE TO [{login}]"
        assert told(group, admin) == [f"Which session has locks of it is seen after GRANT {right}, in master"]
        group.source.sql(f"USE master GRANT {right} USE [{group.source.name}]")
        (said,) = told(group, admin)
        assert said.startswith(f"Session {number} (")
        user.query("ROLLBACK")
        assert evolve(group, admin) == ["dbo.a: capture instance dbo_a__mc2 was made with note"]


def test_a_deadlock_names_who_is_left(sandbox: Sandbox, group: Group, user: CountingHook) -> None:
    user.query("BEGIN TRAN UPDATE dbo.a SET v = 1")
    with sandbox.faults.deadlock("sp_cdc_enable_table", times=2):
        (said,) = evolve(group)
        user.query("ROLLBACK")
        (gone,) = evolve(group)
    assert "with note is not made yet, the next run tries: " in said
    assert f" Session {spid(user)} (" in said
    assert gone.endswith(" No session is seen to have locks of it any more.")
    assert evolve(group) == ["dbo.a: capture instance dbo_a__mc2 was made with note"]


def test_no_other_statement_waits_longer_than_the_limit(group: Group, user: CountingHook) -> None:
    """Beside a transaction that is open for three runs: each keeps others waiting behind it, and gives up."""
    user.query("BEGIN TRAN UPDATE dbo.a SET v = 1")
    watching = (
        "SELECT request_mode FROM sys.dm_tran_locks WHERE resource_database_id = DB_ID() AND request_status = N'WAIT'"
    )
    with group.source.hook() as reader, group.source.hook() as watcher:
        # error 1222 for who has to wait for longer
        reader.query("SET LOCK_TIMEOUT 1500")
        for _ in range(3):
            said: list[str] = []
            making = threading.Thread(target=lambda: said.extend(evolve(group, lock_timeout=1.0)))  # noqa: B023
            making.start()
            while not (waits := watcher.query(watching)):
                assert making.is_alive()
            assert waits == [("Sch-M",)]
            found: list[Row] = []
            reading = threading.Thread(
                target=lambda: found.extend(reader.query("SELECT id FROM dbo.a WITH (NOLOCK) ORDER BY id"))  # noqa: B023
            )
            reading.start()
            reading.join()
            making.join()
            assert found == [(1,), (2,)]
            assert f" Session {spid(user)} (" in said[0]
    user.query("COMMIT")
    assert evolve(group) == ["dbo.a: capture instance dbo_a__mc2 was made with note"]
    assert settle(group, PROPOSE).failures == {}
