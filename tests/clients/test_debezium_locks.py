"""Debezium's snapshot beside writers: by default repeatable_read, TABLOCKX under a save point, and 10 s to wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from py4j.java_gateway import JavaGateway

from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from tests.support.clients.debezium import Debezium, Event
from tests.support.clients.drivers_in_process import Driver
from tests.support.harsh import harsh_sandbox

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("debezium"), pytest.mark.timeout(600)]

PATIENCE = 10.0
"""Seconds: ``snapshot.lock.timeout.ms`` by default."""

TABLES = """
CREATE TABLE dbo.customers (id int NOT NULL PRIMARY KEY, name nvarchar(40) NULL)
CREATE TABLE dbo.lines (id int NOT NULL PRIMARY KEY, n int NULL)
INSERT INTO dbo.customers VALUES (1, N'one'), (2, N'two')
INSERT INTO dbo.lines VALUES (1, 10)
EXEC sys.sp_cdc_enable_db
EXEC sys.sp_cdc_enable_table 'dbo', 'customers', @role_name = NULL
EXEC sys.sp_cdc_enable_table 'dbo', 'lines', @role_name = NULL
"""


@pytest.fixture
def server() -> Iterator[Sandbox]:
    with harsh_sandbox(database="shop") as server:
        server.execute(TABLES)
        server.step()
        yield server


@pytest.fixture
def writer(server: Sandbox) -> Iterator[Driver]:
    session = Driver(server)
    yield session
    session.close()


def before(server: Sandbox, part: str, action: Callable[[], None]) -> None:
    """Do something once, before a client's statement that contains a text, while that waits."""
    done = threading.Event()

    def look(text: str) -> bool:
        if part in text and not done.is_set():
            done.set()
            action()
        return False

    server.faults.delay(look, seconds=0)


def copied(events: list[Event], table: str) -> list[dict[str, Any] | None]:
    return sorted((e.after for e in events if e.table == table and e.op == "r"), key=lambda row: row["id"])


def as_events_leave_it(events: list[Event], table: str) -> list[dict[str, Any]]:
    """The rows of a table as who follows the events has them."""
    rows: dict[int, dict[str, Any]] = {}
    for event in events:
        if event.table == table and event.after is not None:
            rows[event.after["id"]] = event.after
        elif event.table == table and event.before is not None:
            rows.pop(event.before["id"], None)
    return sorted(rows.values(), key=lambda row: row["id"])


def named(*names: str) -> list[dict[str, Any]]:
    return [{"id": number, "name": name} for number, name in enumerate(names, 1)]


@pytest.mark.parametrize("mode", ["repeatable_read", pytest.param("exclusive", marks=pytest.mark.thorough)])
def test_it_waits_for_a_writer_that_ends(
    jvm: JavaGateway, server: Sandbox, writer: Driver, tmp_path: Path, mode: str
) -> None:
    locks = server.instance.storage.database("shop").locks
    acquire, met = locks.acquire, []
    ending = threading.Thread(target=writer.batch, args=("COMMIT",))

    def noted(owner: object, table: int | None, timeout: float | None, *rest: Any, **options: Any) -> None:
        if table is not None and locks.writer(table) not in (None, owner) and not met:
            met.append(timeout)
            ending.start()
        acquire(owner, table, timeout, *rest, **options)

    writer.batch("BEGIN TRAN UPDATE dbo.customers SET name = N'eins' WHERE id = 1")
    with (
        mock.patch.object(locks, "acquire", noted),
        Debezium(jvm, server, tmp_path, snapshot__isolation__mode=mode) as debezium,
    ):
        found = debezium.wait_for(lambda events: len([e for e in events if e.op == "r"]) == 3)
        ending.join()
        server.execute("INSERT INTO dbo.customers VALUES (3, N'three')")
        after = debezium.wait_for(lambda events: any(e.op == "c" for e in events))
    assert met == [PATIENCE]
    assert copied(found, "dbo.customers") == named("eins", "two")
    assert as_events_leave_it(after, "dbo.customers") == named("eins", "two", "three")
    assert as_events_leave_it(after, "dbo.lines") == [{"id": 1, "n": 10}]


def test_a_writer_that_stays_open_is_an_error_and_nothing_is_told(
    jvm: JavaGateway, server: Sandbox, writer: Driver, tmp_path: Path
) -> None:
    writer.batch("BEGIN TRAN UPDATE dbo.lines SET n = 11")
    with Debezium(jvm, server, tmp_path) as debezium:
        message = debezium.wait_for_end()
        assert debezium.events() == []
    assert "Lock request time out period exceeded" in message
    writer.batch("COMMIT")
    with Debezium(jvm, server, tmp_path) as debezium:
        found = debezium.wait_for(lambda events: len([e for e in events if e.op == "r"]) == 3)
    assert copied(found, "dbo.customers") == named("one", "two")
    assert copied(found, "dbo.lines") == [{"id": 1, "n": 11}]


def test_after_its_save_point_writers_of_other_rows_go_on(
    jvm: JavaGateway, server: Sandbox, writer: Driver, tmp_path: Path
) -> None:
    refused: list[int] = []

    def write() -> None:
        for statement in (
            "INSERT INTO dbo.customers VALUES (3, N'three')",
            "UPDATE dbo.lines SET n = 11",
            "UPDATE dbo.customers SET name = N'eins' WHERE id = 1",  # a row that was read stays locked
        ):
            try:
                writer.batch(f"SET LOCK_TIMEOUT 0 {statement}")
            except SqlError as error:
                refused.append(error.number)

    before(server, "[n] FROM [shop].[dbo].[lines]", write)
    with Debezium(jvm, server, tmp_path) as debezium:
        debezium.wait_for(lambda events: len([e for e in events if e.op == "r"]) == 3)
        server.execute("INSERT INTO dbo.customers VALUES (4, N'four')")
        found = debezium.wait_for(lambda events: any(e.after and e.after.get("name") == "four" for e in events))
    assert refused == [1222]
    assert copied(found, "dbo.customers") == named("one", "two")
    assert as_events_leave_it(found, "dbo.customers") == named("one", "two", "three", "four")
    assert as_events_leave_it(found, "dbo.lines") == [{"id": 1, "n": 11}]


def test_exclusive_keeps_writers_out_until_the_copy_ends(
    jvm: JavaGateway, server: Sandbox, writer: Driver, tmp_path: Path
) -> None:
    refused: list[int] = []

    def write() -> None:
        for table in ("customers", "lines"):
            try:
                writer.batch(f"SET LOCK_TIMEOUT 0 INSERT INTO dbo.{table} VALUES (7, NULL)")
            except SqlError as error:
                refused.append(error.number)

    before(server, "[n] FROM [shop].[dbo].[lines]", write)
    with Debezium(jvm, server, tmp_path, snapshot__isolation__mode="exclusive") as debezium:
        debezium.wait_for(lambda events: len([e for e in events if e.op == "r"]) == 3)
        writer.batch("SET LOCK_TIMEOUT -1 INSERT INTO dbo.lines VALUES (7, NULL)")
        found = debezium.wait_for(lambda events: any(e.op == "c" for e in events))
    assert refused == [1222, 1222]
    assert copied(found, "dbo.customers") == named("one", "two")
    assert as_events_leave_it(found, "dbo.lines") == [{"id": 1, "n": 10}, {"id": 7, "n": None}]


def test_snapshot_waits_for_nobody(jvm: JavaGateway, server: Sandbox, writer: Driver, tmp_path: Path) -> None:
    server.execute("ALTER DATABASE shop SET ALLOW_SNAPSHOT_ISOLATION ON")
    writer.batch("BEGIN TRAN UPDATE dbo.customers SET name = N'eins' WHERE id = 1")
    with Debezium(jvm, server, tmp_path, snapshot__isolation__mode="snapshot") as debezium:
        first = debezium.wait_for(lambda events: len([e for e in events if e.op == "r"]) == 3)
        writer.batch("COMMIT")
        found = debezium.wait_for(lambda events: any(e.op == "u" for e in events))
    assert copied(first, "dbo.customers") == named("one", "two")
    assert as_events_leave_it(found, "dbo.customers") == named("eins", "two")
