"""A database that is taken back to a backup while a load reads it, and goes on until it has passed the cut again."""

from __future__ import annotations

import re

import pytest

from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.spec import ReplaySpec
from airflow_provider_mssql_cdc.spark.copies import chunks
from tests.support.spark.kill_points import AFTER, AFTER_PLAN, COPIED, READ, Point
from tests.support.spark.origin import positions
from tests.support.spark.stop import Stop

pytestmark = pytest.mark.xdist_group(__name__)

WRITTEN = Point(chunks, "write_rows", AFTER)


@pytest.fixture
def orders(live):
    live.sql("CREATE TABLE dbo.orders (id int NOT NULL PRIMARY KEY, note nvarchar(40))")
    live.sql("INSERT INTO dbo.orders VALUES " + ", ".join(f"({n}, N'n{n}')" for n in range(1, 21)))
    live.enable("dbo.orders")
    change(live, "before")
    return live


def change(orders, note: str, count: int = 1) -> Lsn:
    """Change some rows; the position to which that is captured."""
    for n in range(count):
        orders.sql(
            f"UPDATE dbo.orders SET note = N'{note} {n}' WHERE id <= 3; DELETE FROM dbo.orders WHERE id = {n + 4};"
            f" INSERT INTO dbo.orders VALUES ({n + 4}, N'{note} again')"
        )
    orders.wait_captured()
    return orders.max_lsn()


def restored(orders, monkeypatch, point: Point, kept, *tables, upto=None, unseen=False, **options):
    """The error of a load that stands at a point while its database goes back and on.

    :param unseen: whether the recovery fork remains
    """
    newest, fork, receipts = orders.max_lsn(), orders.recovery_fork, []
    with monkeypatch.context() as patched:
        stop = Stop(patched, point)
        with stop.meanwhile(lambda: receipts.append(orders.load(*tables, upto=upto or newest, **options))):
            orders.sandbox.restore(orders.database, kept)
            if unseen:
                orders.fork(fork)
            while change(orders, "other") <= newest:
                pass
    ((table,),) = [receipt.tables for receipt in receipts]
    return table.error


def contents(orders) -> list[list[str]]:
    """All rows of mirror and history."""
    return [sorted(map(repr, orders.lake("dbo.orders", shape))) for shape in ("mirror", "history")]


def compare(orders) -> None:
    """Compare mirror and history with the source."""
    now = {row["id"]: row["note"] for row in orders.sql("SELECT id, note FROM dbo.orders")}
    assert {row["id"]: row["note"] for row in orders.lake("dbo.orders")} == now
    events = [row for row in orders.lake("dbo.orders", "history") if row["_op"] != "R"]
    low = max(row["_lsn"] for row in orders.lake("dbo.orders", "history") if row["_op"] == "R")
    captured = orders.sql(
        "SELECT CONVERT(varchar(22), [__$start_lsn], 1) AS l, [__$operation] AS o, id, note FROM cdc.dbo_orders_CT"
        f" WHERE [__$start_lsn] > {low}"
    )
    kinds = {1: "D", 2: "I", 3: "B", 4: "U"}
    assert sorted((e["_lsn"], e["_op"], e["id"], e["note"]) for e in events) == sorted(
        (c["l"], kinds[c["o"]], c["id"], c["note"]) for c in captured
    )


@pytest.mark.parametrize(
    ("point", "unseen"), [(AFTER_PLAN, True), (READ, False)], ids=["before the read", "after it, and the fork is seen"]
)
def test_what_was_read_of_two_histories_is_not_loaded(orders, monkeypatch, point, unseen):
    loaded = orders.load(orders.table("dbo.orders"))
    change(orders, "kept")
    kept = orders.sandbox.backup(orders.database)
    change(orders, "lost", 2)
    held = contents(orders)

    at = positions(loaded)
    error = restored(orders, monkeypatch, point, kept, orders.table("dbo.orders", at=at), unseen=unseen)

    assert (error.kind, error.permanent) == ("SourceRestoredError", False)
    assert "the database was restored while it was read" in error.message
    following = orders.load(orders.table("dbo.orders", at=at))
    if unseen:
        # what is loaded lies before the backup
        assert following.tables[0].error is None
        compare(orders)
    else:
        # which a person has to decide on, as after any restore
        assert following.tables[0].error.kind == "RestoredError"
        assert contents(orders) == held


@pytest.mark.parametrize(
    "point", [pytest.param(WRITTEN, marks=pytest.mark.thorough), COPIED], ids=["copied", "captured"]
)
def test_what_was_copied_of_two_histories_is_not_loaded(orders, monkeypatch, point):
    """Though the cut is of both, and the recovery fork is not seen."""
    cut = orders.max_lsn()
    change(orders, "kept")
    kept = orders.sandbox.backup(orders.database)
    change(orders, "lost", 2)

    error = restored(orders, monkeypatch, point, kept, orders.table("dbo.orders"), upto=cut, unseen=True)

    assert (error.kind, error.permanent) == ("SourceRestoredError", False)
    # the other history has that LSN too, or has none there
    assert re.search(" now, and stood for | is missing from cdc.lsn_time_mapping", error.message)
    again = orders.load(orders.table("dbo.orders"))
    assert again.tables[0].error is None
    compare(orders)


def test_what_a_copy_saw_and_nobody_captured_is_told_by_the_recovery_fork(orders, monkeypatch):
    """The capture's position of before the copy holds afterwards too."""
    kept = orders.sandbox.backup(orders.database)

    error = restored(orders, monkeypatch, WRITTEN, kept, orders.table("dbo.orders"))

    assert error.kind == "SourceRestoredError"
    assert "the recovery fork was" in error.message
    assert orders.load(orders.table("dbo.orders")).tables[0].error is None
    compare(orders)


def test_a_replay_of_what_is_no_more_writes_nothing(orders, monkeypatch):
    loaded = orders.load(orders.table("dbo.orders"))
    kept = orders.sandbox.backup(orders.database)
    cut = change(orders, "lost", 2)
    at = positions(orders.load(orders.table("dbo.orders", at=positions(loaded))))
    held = contents(orders)
    replay = ReplaySpec(positions(loaded)["history"][0], cut)
    history = orders.table("dbo.orders", shapes=["history"], at=at)

    error = restored(orders, monkeypatch, AFTER_PLAN, kept, history, replay=replay)

    assert error.kind == "SourceRestoredError"
    assert contents(orders) == held
