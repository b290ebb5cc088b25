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
    source.sql("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION OFF")
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


@pytest.fixture
def moving(live):
    """A table whose rows move in an index without any change that is captured."""
    live.sql("ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT OFF")
    live.sql("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION OFF")
    live.sql("CREATE TABLE dbo.moving (id int NOT NULL PRIMARY KEY, note nvarchar(20), place int NOT NULL)")
    live.sql("CREATE INDEX by_place ON dbo.moving (place, note)")
    live.sql("INSERT INTO dbo.moving VALUES " + ", ".join(f"({n}, N'n{n}', {n})" for n in range(40)))
    live.enable("dbo.moving", captured_column_list="N'id,note'")
    live.sql("UPDATE dbo.moving SET note = N'x' WHERE id = 1")
    live.wait_captured()
    rows, live.sandbox.instance.piece_rows = live.sandbox.instance.piece_rows, 8
    yield live
    live.sandbox.instance.piece_rows, live.sandbox.instance.between_pieces = rows, lambda table, pieces: None


def copied(origin: Origin, isolation: str = "auto", **given: object) -> tuple[object, list[str]]:
    """A load beside which rows move from the end of the index to what was read already; with the scans it sent."""
    sent: list[str] = []

    def note(text: str) -> bool:
        if "FROM [dbo].[moving]" in text and "[note] AS" in text:
            sent.append(text)
        return False

    def move(table: str, pieces: int) -> None:
        if table == "moving":
            origin.sql(f"UPDATE dbo.moving SET place = -{pieces} WHERE id = {40 - pieces}")

    origin.sandbox.instance.between_pieces = move
    with origin.sandbox.faults.delay(note, seconds=0):
        table = origin.table("dbo.moving", shapes=("mirror",), **given)
        receipt = origin.load(table, copy_rows=1000, isolation=isolation)
    origin.sandbox.instance.between_pieces = lambda table, pieces: None
    return receipt.tables[0], sent


def check_moving(origin: Origin) -> None:
    """Compare the mirror with the source."""
    expected = [(row["id"], row["note"]) for row in origin.sql("SELECT id, note FROM dbo.moving ORDER BY id")]
    assert sorted((row["id"], row["note"]) for row in origin.lake("dbo.moving")) == expected


def test_a_row_that_moves_where_nothing_is_captured_is_neither_missing_nor_twice(moving):
    done, sent = copied(moving)
    assert done.error is None
    assert all("WITH (INDEX([PK__moving__" in text for text in sent)
    check_moving(moving)


def test_where_snapshots_are_allowed_a_copy_reads_by_them(moving):
    moving.sql("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON")
    done, sent = copied(moving)
    assert done.error is None
    assert sent
    assert not any("INDEX" in text for text in sent)
    check_moving(moving)


def test_an_isolation_that_is_named_is_kept_to(moving):
    refused, sent = copied(moving, isolation="snapshot")
    assert (refused.error.kind, refused.error.permanent, sent) == ("CopyRefusedError", True, [])
    assert "SET ALLOW_SNAPSHOT_ISOLATION ON" in refused.error.message
    moving.sql("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON")
    done, sent = copied(moving, isolation="read_committed")
    assert done.error is None
    assert sent
    assert all("WITH (INDEX([PK__moving__" in text for text in sent)
    check_moving(moving)


def test_a_table_that_lies_in_the_order_of_what_is_not_captured_is_refused_where_reads_lock(moving):
    moving.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'moving', N'all'")
    moving.sql("DROP TABLE dbo.moving")
    moving.sql("CREATE TABLE dbo.moving (id int NOT NULL, note nvarchar(20), place int NOT NULL)")
    moving.sql("CREATE CLUSTERED INDEX by_place ON dbo.moving (place)")
    moving.sql("INSERT INTO dbo.moving VALUES " + ", ".join(f"({n}, N'n{n}', {n})" for n in range(40)))
    moving.enable("dbo.moving", captured_column_list="N'id,note'")
    moving.sql("UPDATE dbo.moving SET note = N'x' WHERE id = 1")
    moving.wait_captured()
    refused, sent = copied(moving, key=["id"])
    assert (refused.error.kind, refused.error.permanent, sent) == ("CopyRefusedError", True, [])
    assert "ALLOW_SNAPSHOT_ISOLATION ON" in refused.error.message
    moving.sql("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON")
    done, _ = copied(moving, key=["id"])
    assert done.error is None
    check_moving(moving)
