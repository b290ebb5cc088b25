"""tap-mssql reads a shop through pymssql: discovery, a first load, and the changes of one increment."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.clients import tap_mssql
from tests.support.clients.drivers import Pymssql
from tests.support.clients.shop import (
    CDC_COLUMNS,
    COLUMNS,
    DELETE,
    INSERT,
    ITEMS,
    KEYS,
    ORDERS,
    TABLES,
    Shop,
    in_any_order,
)

TEXTS = {DELETE: "D", INSERT: "I", 4: "U"}


@pytest.fixture
def tap(shop: Shop) -> Iterator[Pymssql]:
    shop.server.start()
    client = Pymssql(shop.server)
    yield client
    client.close()


def test_tables(shop: Shop, tap: Pymssql) -> None:
    ((version, timeout),) = tap.run(tap_mssql.SERVER)
    assert version.startswith("Microsoft SQL Server 2022")
    assert timeout == -1
    assert in_any_order(tap.run(tap_mssql.TABLES)) == in_any_order([(*each, "BASE TABLE") for each in TABLES])


def test_columns(shop: Shop, tap: Pymssql) -> None:
    meta = [
        ("__$start_lsn", "binary", 10, None, None), ("__$end_lsn", "binary", 10, None, None),
        ("__$seqval", "binary", 10, None, None), ("__$operation", "int", None, 10, 0),
        ("__$update_mask", "varbinary", 128, None, None),
    ]  # fmt: skip
    command = ("__$command_id", "int", None, 10, 0)
    known = {name: [(*column, 0 if column[3] else None) for column in of] for name, of in CDC_COLUMNS.items()}
    known |= {f"{name}_CT": [*meta, *COLUMNS[name.partition("_")[2]], command] for name in (ORDERS, ITEMS)}
    known |= COLUMNS
    assert tap.run(tap_mssql.COLUMNS) == [
        (schema, table, *column, int(column[0] in KEYS.get(table, ())))
        for schema, table in TABLES
        for column in known[table]
    ]


def test_first_load_and_increment(shop: Shop, tap: Pymssql) -> None:
    positions = {}
    for instance, schema, table in ((ORDERS, "dbo", "orders"), (ITEMS, "sales", "items")):
        assert tap.run(tap_mssql.DATABASE_IS_TRACKED) == [("shop", True)]
        ((*names, tracked, _),) = tap.run(tap_mssql.TABLE_IS_TRACKED.format(schema=schema, table=table))
        assert (names, tracked) == ([schema, table], True)
        assert tap.run(tap_mssql.ISOLATION) == [("shop", True, "OFF")]
        ((positions[instance],),) = tap.run(tap_mssql.MAX_LSN)
        assert positions[instance] == shop.lsns[-1]
        rows = shop.content.orders if instance == ORDERS else shop.content.items
        zeros = "0" * 20
        assert in_any_order(tap.run(tap_mssql.first_load(schema, table, _columns(table)))) == in_any_order(
            [(*_shown(row), "I", dt.datetime(1900, 1, 1), None, zeros, zeros, 2) for row in rows]
        )
    ((*_, tracked, _),) = tap.run(tap_mssql.TABLE_IS_TRACKED.format(schema="dbo", table="labels"))
    assert tracked is False

    since = len(shop.content.times)
    shop.go_on()
    for instance, table in ((ORDERS, "orders"), (ITEMS, "items")):
        ((low, high),) = tap.run(tap_mssql.LSN_RANGE.format(instance=instance))
        assert (low, high) == (shop.first_lsn(instance), shop.lsns[-1])
        assert low.hex() <= positions[instance].hex()
        expected = [
            (
                *_shown(change.row), TEXTS[change.operation], time, time if change.operation == DELETE else None,
                lsn, seqval, change.operation,
            )
            for lsn, seqval, change in shop.changed(instance, since=since, before=False)
            for time in [shop.content.times[change.commit]]
        ]  # fmt: skip
        assert tap.run(tap_mssql.increment(instance, _columns(table), positions[instance], high)) == expected
        assert tap.run(tap_mssql.increment(instance, _columns(table), high, high)) == [
            row for row in expected if row[-3] == high
        ]  # where nothing is new it reads the last commit again


def _columns(table: str) -> list[str]:
    return [tap_mssql.column(name, type_) for name, type_, *_ in COLUMNS[table]]


def _shown(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row as the tap gets it: a datetime2 is text."""
    return tuple(
        value.isoformat(" ", timespec="milliseconds") if isinstance(value, dt.datetime) else value for value in row
    )
