"""Sling reads a shop: discovery, a first load, and as an increment what has a later update key."""

from __future__ import annotations

import pytest

from tests.sandbox.statements.conftest import Open
from tests.support.clients import sling
from tests.support.clients.drivers_in_process import GoMssqldb
from tests.support.clients.shop import COLUMNS, KEYS, TABLES, Shop, held, in_any_order

ITEMS = {"schema": "sales", "table": "items"}


def test_discovery(shop: Shop, connect: Open) -> None:
    go = connect(GoMssqldb)
    ((version,),) = go.batch(sling.VERSION)
    assert "sql azure" not in version.lower()
    assert go.batch(sling.DATABASES) == [("shop",)]
    names = go.batch(sling.SCHEMAS)
    assert {("cdc",), ("dbo",), ("sales",)} < set(names)
    assert names == sorted(names, key=lambda row: row[0].lower())
    assert go.batch(sling.TABLES.format(filter="")) == [(*each, "false") for each in TABLES]
    of_sales = sling.OF_SCHEMA.format(schema="sales")
    assert go.batch(sling.TABLES.format(filter=of_sales)) == [("sales", "items", "false")]
    assert go.batch(sling.VIEWS.format(filter=of_sales)) == []
    assert go.batch(sling.SCHEMATA.format(schema="dbo", tables="'orders', 'labels'")) == [
        ("dbo", table, "false", name, type_, position)
        for table in ("labels", "orders")
        for position, (name, type_, *_) in enumerate(COLUMNS[table], 1)
    ]
    assert go.batch(sling.KEYS.format(**ITEMS)) == [
        ("pk_items", position, name) for position, name in enumerate(KEYS["items"], 1)
    ]
    assert go.batch(sling.INDEXES.format(**ITEMS)) == []
    shop.server.execute("CREATE INDEX by_qty ON sales.items (qty, sku)")
    assert go.batch(sling.INDEXES.format(**ITEMS)) == [("by_qty", "qty"), ("by_qty", "sku")]


def test_first_load_and_increment(shop: Shop, connect: Open) -> None:
    go = connect(GoMssqldb)
    content = {"orders": held(shop.content.orders), "items": shop.content.items, "labels": shop.content.labels}
    for schema, table in (("dbo", "orders"), ("sales", "items"), ("dbo", "labels")):
        assert go.batch(sling.COLUMNS.format(schema=schema, table=table)) == COLUMNS[table]
        found = go.batch(sling.FIRST_LOAD.format(schema=schema, table=table))
        assert in_any_order(found) == in_any_order(content[table])

    since = max(row[-1] for row in shop.content.orders)
    shop.go_on()
    value = sling.MOMENT.format(value=f"{since:%Y-%m-%d %H:%M:%S.%f}0")
    later = held(sorted((row for row in shop.content.orders if row[-1] > since), key=lambda row: row[-1]))
    for text in (sling.INCREMENT, sling.INCREMENT_NOW):
        filled = text.format(schema="dbo", table="orders", key="placed", sign=">", value=value)
        assert go.batch(filled) == later


@pytest.mark.parametrize("sign", [">", ">="])
def test_the_largest_value_itself_is_read_again_where_a_key_is_given(shop: Shop, connect: Open, sign: str) -> None:
    go = connect(GoMssqldb)
    filled = sling.INCREMENT.format(schema="sales", table="items", key="order_id", sign=sign, value=2)
    expected = [row for row in shop.content.items if row[0] > 2 or (row[0] == 2 and sign == ">=")]
    assert go.batch(filled) == expected
