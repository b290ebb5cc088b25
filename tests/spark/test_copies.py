"""Copies beside commits that the capture reads before their rows can be seen."""

from __future__ import annotations

import datetime
import logging
import threading

import pytest

from airflow_provider_mssql_cdc.spark.sources.cdc import low
from tests.support.harsh import harsh_sandbox
from tests.support.logins import SPARK_PASSWORD, SPARK_USER
from tests.support.spark.origin import Origin, positions

pytestmark = pytest.mark.xdist_group(__name__)


class Clock:
    """A clock that runs, and is put forward by the test."""

    def __init__(self) -> None:
        self.ahead = datetime.timedelta()

    def __call__(self) -> datetime.datetime:
        return datetime.datetime.now(datetime.UTC).replace(tzinfo=None) + self.ahead


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def server(clock):
    with harsh_sandbox(user=SPARK_USER, password=SPARK_PASSWORD, clock=clock, capture_interval=0.1) as server:
        yield server


@pytest.fixture
def source(spark, server, clock, tmp_path, namespace):
    """A table whose instance is older than any commit that is seen late."""
    origin = Origin(spark, server, tmp_path, namespace, live=True)
    origin.sql("ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON")
    origin.sql("CREATE TABLE dbo.items (id int NOT NULL PRIMARY KEY, v int NOT NULL)")
    origin.enable("dbo.items")
    origin.sql("INSERT INTO dbo.items VALUES " + ", ".join(f"({n}, {n})" for n in range(20)))
    origin.wait_captured()
    clock.ahead += datetime.timedelta(minutes=1)
    return origin


def change(origin: Origin) -> threading.Thread:
    """Begin a commit, of which the log has the record but nobody sees the rows; come back when it is captured."""
    captured = "SELECT COUNT(*) AS n FROM cdc.dbo_items_CT"
    before = origin.sql(captured)
    origin.sandbox.visibility.hold()
    statement = (
        "BEGIN TRAN UPDATE dbo.items SET v = v + 100 WHERE id < 5 DELETE FROM dbo.items WHERE id = 7"
        " INSERT INTO dbo.items VALUES (99, 99) COMMIT"
    )
    thread = threading.Thread(target=origin.sql, args=(statement,))
    thread.start()
    while origin.sql(captured) == before:
        pass
    return thread


def rows_of(origin: Origin, shape: str) -> list[tuple[int, int]]:
    return sorted((row["id"], row["v"]) for row in origin.lake("dbo.items", shape))


def source_rows(origin: Origin) -> list[tuple[int, int]]:
    return [(row["id"], row["v"]) for row in origin.sql("SELECT id, v FROM dbo.items ORDER BY id")]


def test_a_first_load_begins_below_a_commit_whose_rows_are_not_seen_yet(source):
    before = source_rows(source)
    waiting = change(source)
    assert source_rows(source) == before
    try:
        receipt = source.load(source.table("dbo.items", shapes=("mirror", "scd2")))
    finally:
        source.sandbox.visibility.release()
        waiting.join()
    assert receipt.tables[0].error is None
    source.load(source.table("dbo.items", shapes=("mirror", "scd2"), at=positions(receipt)))
    expected = source_rows(source)
    assert (99, 99) in expected
    assert rows_of(source, "mirror") == expected
    open_versions = [row for row in source.lake("dbo.items", "scd2") if row["_to_lsn"] is None]
    assert sorted((row["id"], row["v"]) for row in open_versions) == expected


def test_scans_that_are_held_back_do_not_end_a_copy(source):
    source.sql("CREATE TABLE dbo.others (id int NOT NULL PRIMARY KEY)")
    source.enable("dbo.others")
    cdc = source.sandbox.cdc(source.database)
    cdc.hold_back()
    source.sql("UPDATE dbo.items SET v = v + 100 WHERE id < 5")
    (table,) = source.load(source.table("dbo.items", shapes=("history",)), capture_timeout=3.0).tables
    assert table.error is not None
    assert "did not pass the end of the copy" in str(table.error)
    cdc.deliver()
    stop = threading.Event()

    def go_on() -> None:
        number = 0
        while not stop.wait(0.2):
            number += 1
            source.sql(f"INSERT INTO dbo.others VALUES ({number})")

    writer = threading.Thread(target=go_on)
    writer.start()
    try:
        (table,) = source.load(source.table("dbo.items", shapes=("history",))).tables
    finally:
        stop.set()
        writer.join()
    assert table.error is None
    history = sorted(source.lake("dbo.items", "history"), key=lambda row: row["_lsn"])
    assert sorted({row["id"]: row["v"] for row in history if row["_op"] in "RIU"}.items()) == source_rows(source)


def test_where_reads_wait_for_locks_a_copy_begins_at_the_newest_commit(source):
    source.sql("ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT OFF")
    source.sql("UPDATE dbo.items SET v = v + 100 WHERE id < 5")
    source.wait_captured()
    newest = source.max_lsn()
    source.load(source.table("dbo.items", shapes=("history",)))
    copied = {row["_lsn"] for row in source.lake("dbo.items", "history") if row["_op"] == "R"}
    assert min(copied) >= newest.text
    assert len(copied) == 1


def test_a_new_instance_is_copied_once_all_commits_of_before_are_seen(source, clock, caplog):
    caplog.set_level(logging.INFO, low.__name__)
    source.sql("CREATE TABLE dbo.others (id int NOT NULL PRIMARY KEY, v int NOT NULL)")
    source.sql("INSERT INTO dbo.others VALUES (1, 1), (2, 2)")
    source.enable("dbo.others")
    source.sql("INSERT INTO dbo.others VALUES (3, 3)")
    source.wait_captured()
    loads = threading.Thread(target=lambda: source.load(source.table("dbo.others", shapes=("mirror",))))
    loads.start()
    while "waiting until its first change is 10 s old" not in caplog.text:
        loads.join(0.05)
        assert loads.is_alive()
    clock.ahead += datetime.timedelta(seconds=10)
    loads.join()
    assert sorted(row["id"] for row in source.lake("dbo.others")) == [1, 2, 3]
