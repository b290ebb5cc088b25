"""ingestr reads a shop: a first load, as an increment what has a later time, and changes by Change Tracking."""

from __future__ import annotations

import datetime as dt

from tests.sandbox.statements.conftest import Open
from tests.support.clients import ingestr
from tests.support.clients.drivers_in_process import GoMssqldb
from tests.support.clients.shop import COLUMNS, KEYS, NULLABLE, Shop, held, in_any_order

PLACES = {
    "orders": ("dbo", "[dbo].[orders]"),
    "items": ("sales", "[sales].[items]"),
    "labels": ("dbo", "[dbo].[labels]"),
}


def test_first_load_and_increment(shop: Shop, connect: Open) -> None:
    go = connect(GoMssqldb)
    assert isinstance(go, GoMssqldb)
    assert go.query(ingestr.PING) == [(1,)]
    content = {"orders": held(shop.content.orders), "items": shop.content.items, "labels": shop.content.labels}
    for table, (schema, place) in PLACES.items():
        assert go.query(ingestr.COLUMNS, schema, table) == [
            (name, type_, "YES" if name in NULLABLE[table] else "NO", precision, scale, length)
            for name, type_, length, precision, scale in COLUMNS[table]
        ]
        assert go.query(ingestr.KEY, schema, table) == [(name,) for name in KEYS[table]]
        names = [name for name, *_ in COLUMNS[table]]
        assert in_any_order(go.query(ingestr.read(place, names))) == in_any_order(content[table])
        assert go.names == names

    since = max(row[-1] for row in shop.content.orders)
    shop.go_on()
    names = [name for name, *_ in COLUMNS["orders"]]
    later = [row for row in shop.content.orders if row[-1] >= since.replace(microsecond=0)]
    assert in_any_order(go.query(ingestr.read("[dbo].[orders]", names, "placed", since))) == in_any_order(held(later))
    end = dt.datetime(2026, 1, 2, 3, 25)
    text = ingestr.read("[dbo].[orders]", names, "placed", since, end)
    assert in_any_order(go.query(text)) == in_any_order(held([row for row in later if row[-1] <= end]))


def test_it_sees_that_there_is_no_change_tracking(shop: Shop, connect: Open) -> None:
    go = connect(GoMssqldb)
    assert isinstance(go, GoMssqldb)
    assert go.query(ingestr.TRACKING_DATABASE) == [(0,)]  # here it stops
    assert go.query(ingestr.TRACKING_TABLE, "dbo", "orders") == [(0,)]


def test_it_reads_tracked_changes(shop: Shop, connect: Open) -> None:
    shop.server.execute("ALTER DATABASE shop SET CHANGE_TRACKING = ON")
    tables = [("dbo", "orders", ["id", "customer", "amount", "placed"])]
    tables.append(("sales", "items", ["order_id", "line", "sku", "qty"]))
    for schema, table, _ in tables:
        shop.server.execute(f"ALTER TABLE {schema}.{table} ENABLE CHANGE_TRACKING")
    go = connect(GoMssqldb)
    assert isinstance(go, GoMssqldb)
    assert go.query(ingestr.TRACKING_DATABASE) == [(1,)]
    before = {"orders": held(shop.content.orders), "items": shop.content.items}
    ((start,),) = go.query(ingestr.TRACKING_VERSION)
    shop.go_on()
    ((end,),) = go.query(ingestr.TRACKING_VERSION)
    after = {"orders": held(shop.content.orders), "items": shop.content.items}
    for schema, table, columns in tables:
        assert go.query(ingestr.TRACKING_TABLE, schema, table) == [(1,)]
        assert go.query(ingestr.TRACKING_MIN_VERSION, f"[{schema}].[{table}]") == [(0,)]
        keys = KEYS[table]
        rows = go.query(ingestr.tracked_changes(f"[{schema}].[{table}]", columns, keys), start, end)
        mirror = {row[: len(keys)]: row for row in before[table]}
        for row in rows:
            key = row[: len(keys)]
            if row[-2]:
                mirror.pop(key, None)
            else:
                mirror[key] = row[: len(columns)]
        assert in_any_order(list(mirror.values())) == in_any_order(after[table])
        positions = [row[len(columns)] for row in rows]
        assert positions == sorted(positions)
        assert {len(position) for position in positions} == {20}
