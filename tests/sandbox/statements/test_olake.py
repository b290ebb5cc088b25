"""OLake reads a shop: discovery, a first load in chunks, and the changes of one increment."""

from __future__ import annotations

import math

import pytest

from airflow_provider_mssql_cdc.sandbox.protocol import IsolationLevel
from tests.sandbox.statements.conftest import Open
from tests.support.clients import olake
from tests.support.clients.drivers_in_process import GoMssqldb
from tests.support.clients.shop import (
    COLUMNS,
    ITEMS,
    KEYS,
    NULLABLE,
    ORDERS,
    TABLES,
    Shop,
    advanced,
    held,
    in_any_order,
)

STREAMS = ("dbo.orders", "sales.items")


@pytest.fixture
def go(connect: Open) -> GoMssqldb:
    return connect(GoMssqldb)


def test_discovery(shop: Shop, go: GoMssqldb) -> None:
    assert go.query(olake.CDC_SUPPORT) == [(True,)]
    assert in_any_order(go.query(olake.TABLES)) == in_any_order([each for each in TABLES if each[0] != "cdc"])
    for schema, table in (("dbo", "orders"), ("sales", "items"), ("dbo", "labels")):
        assert go.query(olake.COLUMNS, schema, table) == [
            (name, type_, "YES" if name in NULLABLE[table] else "NO", name in KEYS[table])
            for name, type_, *_ in COLUMNS[table]
        ]


def test_first_load_and_increment(shop: Shop, go: GoMssqldb) -> None:
    first = {name: shop.first_lsn(name) for name in (ORDERS, ITEMS)}
    captures = [("dbo", "orders", ORDERS, first[ORDERS]), ("sales", "items", ITEMS, first[ITEMS])]
    assert go.query(olake.capture_instances(STREAMS)) == captures
    assert go.query(olake.MAY_SEE_SCANS) == [(True,)]
    # a row of each job: SQL Server has them by job_type, but nothing is said of the order
    assert in_any_order(go.query(olake.CAPTURE_JOB)) == [(0, 0), (500, 5)]
    ((_, ended, taken),) = go.query(olake.LATEST_SCAN)
    assert (ended, taken) == (shop.now, len(shop.content.times))
    ((position,),) = go.query(olake.MAX_LSN)
    assert position == shop.lsns[-1]
    assert go.query(olake.ddl_history(STREAMS)) == []

    _load_orders(shop, go)
    _load_items(shop, go)

    since = len(shop.content.times)
    shop.go_on()
    assert go.query(olake.capture_instances(STREAMS)) == captures
    ((target,),) = go.query(olake.MAX_LSN)
    assert target == shop.lsns[-1]
    for instance in (ORDERS, ITEMS):
        ((low,),) = go.query(olake.ADVANCE_LSN, position)
        assert low == advanced(position)
        expected = shop.function_rows(instance, since=since)
        assert go.query(olake.changes(instance), low, target) == (held(expected) if instance == ORDERS else expected)
        assert go.names[:4] == ["__$start_lsn", "__$seqval", "__$operation", "__$update_mask"]
        assert go.names[4:] == [name for name, *_ in COLUMNS[instance.partition("_")[2]]]


def _load_orders(shop: Shop, go: GoMssqldb) -> None:
    rows = held(shop.content.orders)
    _stats(go, "dbo", "orders", len(rows))
    assert go.query(olake.extremes("[dbo].[orders]", ["id"])) == [(1, 3)]
    assert go.query(olake.COLUMN_TYPE, "dbo", "orders", "id") == [("int",)]
    text = olake.next_chunk_end("[dbo].[orders]", ["id"], 2)
    assert go.query(text, "1") == [(3,)]
    assert go.query(text, "3") == []
    conditions = ("([id] < '1')", "((([id] >= '1'))) AND ((([id] < '3')))", "(([id] >= '3'))")
    for condition, expected in zip(conditions, ([], rows[:2], rows[2:]), strict=True):
        go.begin(IsolationLevel.READ_COMMITTED)
        assert go.query(olake.chunk("[dbo].[orders]", ["id"], condition)) == expected
        go.rollback()


def _load_items(shop: Shop, go: GoMssqldb) -> None:
    keys = ["line", "order_id"]  # in the order of the alphabet
    rows = sorted(shop.content.items, key=lambda row: (row[1], row[0]))
    _stats(go, "sales", "items", len(rows))
    assert go.query(olake.extremes("[sales].[items]", keys)) == [("1,1", "2,1")]
    text = olake.next_chunk_end("[sales].[items]", keys, 1)
    ends, last = [], "1,1"
    while found := go.query(text, *[part for i in range(2) for part in last.split(",")[: i + 1]]):
        ((last,),) = found
        ends.append(last)
    assert ends == ["1,2", "2,1"]
    low, high = (
        "(([line] > '1') OR ([line] = '1' AND [order_id] >= '2'))",
        "(([line] < '2') OR ([line] = '2' AND [order_id] < '1'))",
    )
    assert go.query(olake.chunk("[sales].[items]", keys, f"({low}) AND ({high})")) == rows[1:2]
    assert go.query(olake.chunk("[sales].[items]", keys, low)) == rows[1:]


def _stats(go: GoMssqldb, schema: str, table: str, rows: int) -> None:
    """Rows, and the bytes of the pages on which they lie."""
    ((pages,),) = go.batch(
        f"SELECT reserved_page_count FROM sys.dm_db_partition_stats WHERE object_id = OBJECT_ID('{schema}.{table}')"
    )
    assert go.query(olake.ROW_STATS, schema, table) == [(rows, math.ceil(pages * 8192 / rows))]
