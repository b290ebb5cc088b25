"""mssql-cdc-pyspark reads a shop through mssql-python: a snapshot in ranges of keys, and batches of the stream."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.clients import mssql_cdc_pyspark as reader
from tests.support.clients.drivers import MssqlPython
from tests.support.clients.shop import COLUMNS, ITEMS, ORDERS, Shop, advanced, hexadecimal, in_any_order

ORDERS_PLACE, ITEMS_PLACE = "[dbo].[orders]", "[sales].[items]"


@pytest.fixture
def client(shop: Shop) -> Iterator[MssqlPython]:
    shop.server.start()
    opened = MssqlPython(shop.server)
    opened.connection.autocommit = True
    yield opened
    opened.close()


def names_of(table: str) -> list[str]:
    return [name for name, *_ in COLUMNS[table]]


def test_metadata(shop: Shop, client: MssqlPython) -> None:
    assert client.run(reader.ZONE_IS_NAMED) == [(1,)]
    assert client.run(reader.ZONE) == [("UTC",)]
    assert client.run(reader.OFFSET) == [(0,)]
    assert client.run(reader.PING) == [(1,)]
    known = client.run(reader.INSTANCES)
    listed = [
        ("dbo", "orders", ORDERS, "pk_orders", "[id]", "[id], [customer], [amount], [placed]"),
        ("sales", "items", ITEMS, "pk_items", "[order_id], [line]", "[order_id], [line], [sku], [qty]"),
    ]
    # two object ids are the server's
    assert in_any_order([(*row[:3], *row[5:]) for row in known]) == [
        (
            schema,
            table,
            name,
            shop.first_lsn(name),
            None,
            False,
            None,
            None,
            index,
            None,
            dt.datetime(2026, 1, 5, 8),
            *of,
        )
        for schema, table, name, index, *of in listed
    ]
    for schema, table, name, *_ in listed:
        assert client.run(reader.INSTANCES_OF_TABLE, schema, table) == [row for row in known if row[2] == name]
        assert in_any_order(client.run(reader.COLUMNS, schema, table)) == in_any_order(
            [(column, number, False) for number, column in enumerate(names_of(table), 1)]
        )
        assert client.run(reader.DDL_HISTORY, name) == []
        assert client.run(reader.DENIED, name, f"cdc.[{name}_CT]") == [(1,)]
    assert in_any_order(client.run(reader.COLLATIONS, "sales", "items")) == in_any_order(
        [(name, "SQL_Latin1_General_CP1_CI_AS" if name == "sku" else None) for name in names_of("items")]
    )
    captured = {"id": (None, 10, 10, 0, None), "customer": (20, None, None, None, None)}
    captured |= {"amount": (None, 9, 10, 2, None), "placed": (None, None, None, None, 3)}
    assert client.run(reader.CAPTURED_COLUMNS, ORDERS) == [
        ("dbo", "orders", ORDERS, name, number, number, type_, *captured[name])
        for number, (name, type_, *_) in enumerate(COLUMNS["orders"], 1)
    ]


def test_row_estimate(shop: Shop, client: MssqlPython) -> None:
    ((name, rows, *_),) = client.run(reader.ROWS, ORDERS_PLACE)
    assert (name, int(rows)) == ("orders", len(shop.content.orders))


def test_commit_time_where_the_clock_goes_back(shop: Shop, client: MssqlPython) -> None:
    text = reader.commit_time_in("W. Europe Standard Time")
    assert client.run(text, hexadecimal(shop.lsns[0])) == [("2026-01-05T07:01:00",)]


def test_snapshot(shop: Shop, client: MssqlPython) -> None:
    ((position,),) = client.run(reader.MAX_LSN)
    assert position == hexadecimal(shop.lsns[-1])
    assert client.run(reader.COMMIT_TIME.format(sign="="), position) == [(_text(shop.content.times[-1]),)]

    rows = shop.content.orders
    for prefix in ("", reader.LOCK_TIMEOUT):
        assert client.run(prefix + reader.key_range(ORDERS_PLACE, "id")) == [(1, 3)]
    for low, high in ((None, 2), (2, 3), (3, None), (None, None)):
        expected = [row for row in rows if (low or 0) <= row[0] < (high or 9)]
        text = reader.rows_between(ORDERS_PLACE, names_of("orders"), "id", low, high)
        assert in_any_order(client.run(text)) == in_any_order(expected)
    assert client.run(reader.key_bound(ORDERS_PLACE, "id", 1, 2)) == [(3,)]
    assert client.run(reader.key_bound(ORDERS_PLACE, "id", 2, 2)) == []

    keys = ["order_id", "line"]
    assert client.run(reader.key_tiles(ITEMS_PLACE, keys, 2)) == [(2, 1)]
    assert client.run(reader.key_max(ITEMS_PLACE, keys)) == [(2, 1)]
    behind = reader.rows_behind(ITEMS_PLACE, names_of("items"), [("order_id", "int"), ("line", "smallint")])
    assert in_any_order(client.run(behind, "1", "2", "1")) == in_any_order(shop.content.items[1:])


def test_snapshot_isolation(shop: Shop, client: MssqlPython) -> None:
    shop.server.execute("ALTER DATABASE shop SET ALLOW_SNAPSHOT_ISOLATION ON")
    text = reader.SNAPSHOT + reader.rows_between(ORDERS_PLACE, ["id"], "id", None, 2)
    assert client.run(text) == [(1,)]


def test_stream(shop: Shop, client: MssqlPython) -> None:
    start, since = shop.lsns[-1], len(shop.content.times)
    shop.go_on()
    lsns = [hexadecimal(lsn) for lsn in shop.lsns]
    for instance, table in ((ORDERS, "orders"), (ITEMS, "items")):
        assert client.run(reader.MAX_LSN) == [(lsns[-1],)]
        assert client.run(reader.NTH_COMMIT.format(n=2), hexadecimal(start)) == [(lsns[since + 1],)]
        assert client.run(reader.NTH_COMMIT.format(n=99), lsns[-1]) == [(None,)]
        low = hexadecimal(advanced(start))
        assert client.run(reader.INCREMENT_LSN, hexadecimal(start)) == [(low,)]
        first = shop.first_lsn(instance)
        assert client.run(reader.MIN_LSN, instance) == [(hexadecimal(first),)]
        assert client.run(reader.DECREMENT_LSN, hexadecimal(first)) == [(hexadecimal(advanced(first, -1)),)]
        rows = list(shop.changed(instance, since=since))
        assert client.run(reader.SPLIT_POINTS.format(n=2, instance=instance), low, lsns[-1]) == _halves(rows)
        assert client.run(reader.changes(instance, names_of(table)), low, lsns[-1]) == [
            (
                hexadecimal(lsn), hexadecimal(seqval), change.operation, command,
                shop.content.times[change.commit], *change.row,
            )
            for (lsn, seqval, change), command in zip(rows, _commands(shop, instance, since), strict=True)
        ]  # fmt: skip
        last = reader.COMMIT_TIME.format(sign="<=")
        assert client.run(last, lsns[-1]) == [(_text(shop.content.times[-1]),)]
    assert client.run(reader.COMMIT_TIME.format(sign="="), hexadecimal(advanced(start))) == []


def _halves(rows: list[tuple[bytes, bytes, Any]]) -> list[tuple[str, str, int]]:
    """Two tiles of as many rows, or one more in the first: where each ends, what comes next, and its rows."""
    middle = (len(rows) + 1) // 2
    return [
        (hexadecimal(part[-1][0]), hexadecimal(advanced(part[-1][0])), len(part))
        for part in (rows[:middle], rows[middle:])
    ]


def _commands(shop: Shop, instance: str, since: int) -> list[int]:
    """The numbers of the commands within their transactions."""
    batches = shop.server.cdc().change_rows(instance)
    numbers = [number for batch in batches for number in batch.column(batch.num_columns - 1).to_pylist()]
    return numbers[-len(list(shop.changed(instance, since=since))) :]


def _text(moment: dt.datetime) -> str:
    """A datetime2(3) as style 126 shows it: without a fraction where it is zero."""
    return moment.isoformat(timespec="milliseconds" if moment.microsecond else "seconds")
