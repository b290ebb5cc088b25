"""SeaTunnel reads a shop: discovery, splits between two watermarks, and the changes of one increment."""

from __future__ import annotations

import pytest

from tests.sandbox.statements.conftest import Open
from tests.support.clients import seatunnel
from tests.support.clients.drivers_in_process import MssqlJdbc
from tests.support.clients.seatunnel import filled
from tests.support.clients.shop import (
    COLUMNS,
    ITEMS,
    NULLABLE,
    ORDERS,
    TABLES,
    Shop,
    advanced,
    held,
    in_any_order,
    ticks,
)

KEY = {"schema": "dbo", "table": "orders", "key": "id"}


@pytest.fixture
def jdbc(connect: Open) -> MssqlJdbc:
    return connect(MssqlJdbc)


def test_discovery(shop: Shop, jdbc: MssqlJdbc) -> None:
    databases = jdbc.prepared(seatunnel.DATABASES)
    assert [row[:2] for row in sorted(databases, key=lambda row: row[1])] == [
        ("master", 1), ("tempdb", 2), ("model", 3), ("msdb", 4), ("shop", 5),
    ]  # fmt: skip
    for name, *_ in databases:
        expected = [("shop", *each, "BASE TABLE") for each in TABLES] if name == "shop" else []
        found = jdbc.prepared(seatunnel.TABLES.format(database=name))
        assert in_any_order(found) == in_any_order(expected)
    assert jdbc.prepared(seatunnel.DATABASE_NAME, "SHOP") == [("shop",)]
    digits = {"id": (4, 10, 0), "customer": (40, 0, 0), "amount": (5, 9, 2), "placed": (7, 23, 3)}
    assert jdbc.prepared(seatunnel.COLUMNS.format(**KEY)) == [
        ("orders", name, None, number, type_, *digits[name], name in NULLABLE["orders"], None)
        for number, (name, type_, *_) in enumerate(COLUMNS["orders"], 1)
    ]


def test_splits(shop: Shop, jdbc: MssqlJdbc) -> None:
    rows = held(shop.content.orders)
    keys = [row[:1] for row in rows]
    assert jdbc.prepared(seatunnel.MIN_MAX.format(**KEY)) == [(1, 3)]
    assert jdbc.prepared(seatunnel.USE.format(database="shop")) == []
    assert jdbc.prepared(seatunnel.ROW_COUNT.format(**KEY)) == [(len(rows),)]
    assert jdbc.prepared(seatunnel.SAMPLE.format(rate=2, **KEY)) == [keys[0], keys[2]]
    assert in_any_order(jdbc.prepared(seatunnel.ALL_KEYS.format(**KEY))) == keys
    following = seatunnel.NEXT_CHUNK_MAX.format(size=2, **KEY)
    assert [jdbc.prepared(following, low) for low in (1, 2, 3, 4)] == [[(2,)], [(3,)], [(3,)], [(None,)]]
    assert jdbc.prepared(seatunnel.MIN_ABOVE.format(**KEY), 2) == [(3,)]

    for text, values, expected in (
        (seatunnel.WHOLE, (), rows),
        (seatunnel.FIRST_SPLIT, (2, 2), rows[:1]),
        (seatunnel.MIDDLE_SPLIT, (2, 3, 3), rows[1:2]),
        (seatunnel.LAST_SPLIT, (3,), rows[2:]),
    ):
        low = jdbc.prepared(filled(seatunnel.MAX_TRANSACTION_LSN))
        assert in_any_order(jdbc.prepared(text.format(**KEY), *values)) == expected
        assert jdbc.prepared(filled(seatunnel.MAX_TRANSACTION_LSN)) == low == [(shop.lsns[-1],)]


def test_increment(shop: Shop, jdbc: MssqlJdbc) -> None:
    position, since = shop.lsns[-1], len(shop.content.times)
    captured = jdbc.prepared(filled(seatunnel.CAPTURED_COLUMNS))
    numbers = list(dict.fromkeys(number for number, _ in captured))
    assert [name for _, name in captured] == [name for table in ("orders", "items") for name, *_ in COLUMNS[table]]
    tables = [
        ("dbo", "orders", ORDERS, numbers[0], shop.first_lsn(ORDERS)),
        ("sales", "items", ITEMS, numbers[1], shop.first_lsn(ITEMS)),
    ]
    known = jdbc.prepared(filled(seatunnel.CHANGE_TABLES.format(where="")), "shop", "shop")
    assert in_any_order(known) == tables
    shop.go_on()
    for _ in range(3):  # run, prepared, and executed
        assert jdbc.prepared(filled(seatunnel.MAX_LSN)) == [(shop.lsns[-1],)]
        ((target,),) = jdbc.prepared(filled(seatunnel.MAX_TRANSACTION_LSN))
        assert target == shop.lsns[-1]
        assert jdbc.prepared(filled(seatunnel.NTH_LSN_FROM_BEGINNING), 2) == [(shop.lsns[1],)]
        assert jdbc.prepared(filled(seatunnel.NTH_LSN_FROM_LAST), 2, position) == [(shop.lsns[since + 1],)]
        ((low,),) = jdbc.prepared(filled(seatunnel.INCREMENT_LSN), position)
        assert low == advanced(position)
        assert jdbc.prepared(filled(seatunnel.NEW_CHANGE_TABLES), low, target) == []
        upto = filled(seatunnel.CHANGE_TABLES.format(where=seatunnel.UPTO))
        assert in_any_order(jdbc.prepared(upto, target, "shop", "shop")) == tables
        for instance in (ORDERS, ITEMS):
            assert jdbc.prepared(filled(seatunnel.MIN_LSN, instance)) == [(shop.first_lsn(instance),)]
            found = jdbc.prepared(filled(seatunnel.CHANGES, instance), low, target)
            assert found == _with_times(shop, instance, since)


def _with_times(shop: Shop, instance: str, since: int) -> list[tuple[object, ...]]:
    rows = shop.function_rows(instance, since=since, before=True)
    times = [shop.content.times[change.commit] for _, _, change in shop.changed(instance, since=since)]
    moments = [{"utc_ticks": ticks(time), "offset_minutes": 0} for time in times]
    shown = held(rows) if instance == ORDERS else rows
    return [(*row, moment) for row, moment in zip(shown, moments, strict=True)]
