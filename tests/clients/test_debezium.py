"""A CDC reader that knows nothing of this project reads the sandbox: its events are what was committed."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from py4j.java_gateway import JavaGateway

from airflow_provider_mssql_cdc.sandbox import Sandbox
from tests.support.clients.debezium import Debezium, Event
from tests.support.harsh import harsh_sandbox
from tests.support.sandbox.kinds import compiled_queries

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("debezium"), pytest.mark.timeout(600)]

TABLES = """
CREATE TABLE dbo.customers (
  id int NOT NULL PRIMARY KEY, name nvarchar(40) NULL, amount decimal(18,4) NULL, at datetime2(3) NULL,
  note varchar(max) NULL)
CREATE TABLE dbo.lines (a int NOT NULL, b nvarchar(10) NOT NULL, n bigint NULL, CONSTRAINT pk_lines PRIMARY KEY (a, b))
INSERT INTO dbo.customers VALUES (1, N'one', 1.5, '2026-01-01T10:00:00.123', 'long'),
  (2, N'zw\u00f6i', NULL, NULL, NULL)
INSERT INTO dbo.lines VALUES (1, N'x', 10)
"""


@pytest.fixture
def server():
    with harsh_sandbox(database="shop") as server:
        server.execute(TABLES)
        server.execute("EXEC sys.sp_cdc_enable_db")
        for table in ("customers", "lines"):
            enable(server, table, table)
        server.step()
        yield server


def enable(server: Sandbox, table: str, instance: str) -> None:
    server.execute(
        f"EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'{table}', @role_name = NULL,"
        f" @capture_instance = N'{instance}'"
    )


def customer(key: int, name: str | None, amount: str | None, at: str | None = None, note: str | None = None) -> dict:
    return {"id": key, "name": name, "amount": amount, "at": at, "note": note}


ONE = customer(1, "one", "1.5000", "2026-01-01T10:00:00.123Z", "long")
TWO = customer(2, "zw\u00f6i", None)


def changes(events: list[Event], table: str) -> list[tuple]:
    return [(e.op, e.before, e.after) for e in events if e.table == table and e.op != "r"]


def without(events: list[tuple], column: str) -> list[tuple]:
    return [
        (op, *({k: v for k, v in image.items() if k != column} if image else None for image in images))
        for op, *images in events
    ]


def deletes_first(events: list[tuple]) -> list[tuple]:
    """The events with the delete of a key update before its insert.

    The generated functions hide ``__$command_id``, so that who reads them goes by ``__$seqval`` (KB3030352).
    """

    def values(image: dict) -> dict:
        return {name: value for name, value in image.items() if name not in ("id", "b")}

    ordered = [*events]
    for place, ((op, _, after), (next_op, before, _)) in enumerate(itertools.pairwise(events)):
        if (op, next_op) == ("c", "d") and values(after) == values(before):
            ordered[place : place + 2] = [events[place + 1], events[place]]
    return ordered


def snapshot(events: list[Event], table: str) -> list[dict]:
    """The copied rows by key: Debezium asks for no order."""
    return sorted((e.after for e in events if e.table == table and e.op == "r"), key=lambda row: row.get("id", 0))


@pytest.mark.parametrize("mode", ["function", "direct"])
@pytest.mark.parametrize("isolation", ["repeatable_read", "snapshot"])
def test_snapshot_and_streaming(jvm: JavaGateway, server: Sandbox, tmp_path: Path, mode: str, isolation: str):
    if isolation == "snapshot":
        server.execute("ALTER DATABASE shop SET ALLOW_SNAPSHOT_ISOLATION ON")
    with Debezium(jvm, server, tmp_path, data__query__mode=mode, snapshot__isolation__mode=isolation) as debezium:
        first = debezium.wait_for(lambda events: len(events) == 3)
        assert snapshot(first, "dbo.customers") == [ONE, TWO]
        assert snapshot(first, "dbo.lines") == [{"a": 1, "b": "x", "n": 10}]

        server.execute(
            "BEGIN TRANSACTION;"
            " INSERT INTO dbo.customers (id, name, amount) VALUES (3, N'three', 3.25), (4, N'four', NULL);"
            " UPDATE dbo.lines SET n = n + 1;"
            " UPDATE dbo.customers SET name = N'eins' WHERE id = 1;"
            " COMMIT TRANSACTION;"
            "BEGIN TRANSACTION; DELETE FROM dbo.customers; ROLLBACK TRANSACTION;"
            "UPDATE dbo.customers SET id = 20 WHERE id = 2;"
            "UPDATE dbo.lines SET b = N'y' WHERE b = N'x';"
            "DELETE FROM dbo.customers WHERE id IN (3, 4)"
        )
        found = debezium.wait_for(lambda events: len(changes(events, "dbo.customers")) >= 7)
    read = deletes_first if mode == "function" else list
    # An unchanged LOB may be missing in the images of an update (docs: cdc.<instance>_CT).
    assert read(without(changes(found, "dbo.customers"), "note")) == without(
        [
            ("c", None, customer(3, "three", "3.2500")),
            ("c", None, customer(4, "four", None)),
            ("u", ONE, {**ONE, "name": "eins"}),
            ("d", TWO, None),
            ("c", None, {**TWO, "id": 20}),
            ("d", customer(3, "three", "3.2500"), None),
            ("d", customer(4, "four", None), None),
        ],
        "note",
    )
    assert read(changes(found, "dbo.lines")) == [
        ("u", {"a": 1, "b": "x", "n": 10}, {"a": 1, "b": "x", "n": 11}),
        ("d", {"a": 1, "b": "x", "n": 11}, None),
        ("c", None, {"a": 1, "b": "y", "n": 11}),
    ]


@pytest.mark.parametrize(("mode", "source"), [("function", "fn_cdc_get_all_changes_"), ("direct", "_ct")])
def test_changes_are_read_as_they_lie(jvm: JavaGateway, server: Sandbox, tmp_path: Path, mode: str, source: str):
    # a harsh server mixes rows, which it then does not read as they lie
    server.harshness.points = frozenset()
    with compiled_queries() as queries, Debezium(jvm, server, tmp_path, data__query__mode=mode) as debezium:
        debezium.wait_for(lambda events: len(events) == 3)
        server.execute("INSERT INTO dbo.lines VALUES (2, N'a', 1) UPDATE dbo.lines SET b = N'z' WHERE a = 2")
        debezium.wait_for(lambda events: len(events) >= 6)
    reads = [query.direct is not None for text, query in queries if source in text.lower()]
    assert reads
    assert all(reads)


@pytest.mark.parametrize("mode", ["function", "direct"])
def test_a_restart_and_an_agent_that_was_stopped_lose_nothing(
    jvm: JavaGateway, server: Sandbox, tmp_path: Path, mode: str
):
    with Debezium(jvm, server, tmp_path, data__query__mode=mode) as debezium:
        debezium.wait_for(lambda events: len(events) == 3)
        server.execute("INSERT INTO dbo.lines VALUES (2, N'a', 1)")
        debezium.wait_for(lambda events: len(events) == 4)
    server.capture.stop()
    server.execute("INSERT INTO dbo.lines VALUES (2, N'b', 2); UPDATE dbo.lines SET n = 3 WHERE b = N'a'")
    with Debezium(jvm, server, tmp_path, data__query__mode=mode) as debezium:
        server.capture.start()
        found = debezium.wait_for(lambda events: len(events) >= 2)
        server.execute("DELETE FROM dbo.lines WHERE a = 2")
        found = debezium.wait_for(lambda events: len(events) >= 4)
    assert [(e.op, e.before, e.after) for e in found] == [
        ("c", None, {"a": 2, "b": "b", "n": 2}),
        ("u", {"a": 2, "b": "a", "n": 1}, {"a": 2, "b": "a", "n": 3}),
        ("d", {"a": 2, "b": "a", "n": 3}, None),
        ("d", {"a": 2, "b": "b", "n": 2}, None),
    ]


@pytest.mark.parametrize("mode", ["function", "direct"])
def test_two_instances_with_a_schema_change_between(jvm: JavaGateway, server: Sandbox, tmp_path: Path, mode: str):
    with Debezium(jvm, server, tmp_path, data__query__mode=mode) as debezium:
        debezium.wait_for(lambda events: len(events) == 3)
        server.execute("INSERT INTO dbo.lines VALUES (2, N'old', 1)")
        debezium.wait_for(lambda events: len(events) == 4)
        server.execute("ALTER TABLE dbo.lines ADD more nvarchar(20) NULL")
        server.execute("INSERT INTO dbo.lines VALUES (2, N'between', 2, N'unseen')")
        enable(server, "lines", "lines_v2")
        server.execute("INSERT INTO dbo.lines VALUES (2, N'new', 3, N'seen')")
        server.execute("UPDATE dbo.lines SET more = N'now' WHERE b = N'old'")
        found = debezium.wait_for(lambda events: len(events) >= 7)
    assert changes(found, "dbo.lines") == [
        ("c", None, {"a": 2, "b": "old", "n": 1}),
        ("c", None, {"a": 2, "b": "between", "n": 2}),
        ("c", None, {"a": 2, "b": "new", "n": 3, "more": "seen"}),
        ("u", {"a": 2, "b": "old", "n": 1, "more": None}, {"a": 2, "b": "old", "n": 1, "more": "now"}),
    ]
