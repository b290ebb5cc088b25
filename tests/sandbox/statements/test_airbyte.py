"""Airbyte reads a shop: its checks, discovery through the JDBC driver, and a first load; Debezium reads the changes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.statements.conftest import Open
from tests.support.clients import airbyte
from tests.support.clients.drivers_in_process import MssqlJdbc
from tests.support.clients.shop import COLUMNS, ITEMS, NULLABLE, ORDERS, Shop, in_any_order

SCHEMAS = "'dbo', 'sales'"
ORDERS_PLACE = {"schema": "dbo", "table": "orders", "key": "id", "columns": "[id], [customer], [amount]"}

_JDBC = {"int": 4, "smallint": 5, "decimal": 3, "datetime2": 93, "varchar": 12, "nvarchar": -9, "char": 1}
"""What ``java.sql.Types`` has for each type."""

SS_DATA_TYPES = {"int": 56, "smallint": 52, "decimal": 106, "datetime2": 0, "varchar": 39, "nvarchar": 39, "char": 47}
"""SS_DATA_TYPE: of a column that takes NULL it is 38 for integers."""


@pytest.fixture
def jdbc(connect: Open) -> MssqlJdbc:
    return connect(MssqlJdbc)


def test_checks(shop: Shop, jdbc: MssqlJdbc) -> None:
    assert jdbc.batch(airbyte.CHECK) == []
    assert jdbc.batch(airbyte.EDITION) == [(3,)]
    assert jdbc.batch(airbyte.AGENT) == [("SQL Server Agent (MSSQLSERVER)", "Running")]
    assert jdbc.batch(airbyte.CDC_ENABLED) == [(True,)]


def test_discovery(shop: Shop, jdbc: MssqlJdbc) -> None:
    for schema, tables in (("dbo", ["labels", "orders"]), ("sales", ["items"])):
        for pattern in (schema, schema.upper()):  # it asks for each name twice
            assert jdbc.procedure("sp_tables", "%", pattern, "shop", None) == [
                ("shop", schema, table, "TABLE", None) for table in tables
            ]
            assert jdbc.batch(airbyte.PSEUDO_COLUMNS) == []
            found = jdbc.prepared(airbyte.JDBC_COLUMNS, "%", pattern, "shop", "%", 2, 3)
            assert _what_airbyte_takes(jdbc.names, found) == [
                (
                    "shop",
                    schema,
                    table,
                    name,
                    _JDBC[type_],
                    type_,
                    _size(type_, length, precision),
                    scale_,
                    shown,
                    number,
                )
                for table in tables
                for number, (name, type_, length, precision, scale) in enumerate(COLUMNS[table], 1)
                for scale_ in [3 if type_ == "datetime2" else scale]
                for shown in ["YES" if name in NULLABLE[table] else "NO"]
            ]
    assert jdbc.batch(airbyte.CLUSTERED_KEYS.format(schemas=SCHEMAS)) == [
        ("dbo", "orders", "pk_orders", 1, "id"),
        ("sales", "items", "pk_items", 1, "order_id"),
        ("sales", "items", "pk_items", 2, "line"),
    ]
    assert in_any_order(jdbc.batch(airbyte.PRIMARY_KEYS.format(schemas=SCHEMAS))) == [
        ("dbo", "orders", "id", 1, "pk_orders"),
        ("sales", "items", "line", 2, "pk_items"),
        ("sales", "items", "order_id", 1, "pk_items"),
    ]
    assert jdbc.batch(airbyte.READABLE.format(**ORDERS_PLACE)) == []
    assert jdbc.names == ["id", "customer", "amount"]


def test_types_of_tds(shop: Shop, jdbc: MssqlJdbc) -> None:
    found = jdbc.prepared(airbyte.JDBC_COLUMNS, "items", "sales", "shop", "%", 2, 3)
    place = jdbc.names.index("SOURCE_DATA_TYPE")
    assert [row[place] for row in found] == [56, 52, 39, 38]


def test_first_load(shop: Shop, jdbc: MssqlJdbc) -> None:
    rows = [row[:3] for row in shop.content.orders]
    assert jdbc.batch(airbyte.MAX_LSN) == [(shop.lsns[-1],)]
    for percent in ("0.00152587890625", "0.390625"):  # a page of the table, or none
        assert jdbc.batch(airbyte.SAMPLED.format(percent=percent, **ORDERS_PLACE)) in (rows, [])
    assert jdbc.batch(airbyte.SAMPLED.format(percent=100, **ORDERS_PLACE)) == rows
    assert jdbc.batch(airbyte.UNSAMPLED.format(**ORDERS_PLACE)) == rows
    assert jdbc.batch(airbyte.LARGEST.format(**ORDERS_PLACE)) == [(3,)]
    assert in_any_order(jdbc.batch(airbyte.WHOLE.format(**ORDERS_PLACE))) == rows
    assert jdbc.batch(airbyte.PAGE.format(size=2, **ORDERS_PLACE)) == rows[:2]
    for _ in range(3):  # run, prepared, and executed
        assert jdbc.prepared(airbyte.NEXT_PAGE.format(size=2, **ORDERS_PLACE), 2) == rows[2:]
        assert in_any_order(jdbc.prepared(airbyte.BETWEEN.format(**ORDERS_PLACE), 1, 3)) == rows[1:]


def test_is_the_saved_position_still_there(shop: Shop, jdbc: MssqlJdbc) -> None:
    shop.go_on()
    lowest = min(shop.first_lsn(ORDERS), shop.first_lsn(ITEMS))
    assert jdbc.batch(airbyte.LSN_RANGE) == [(lowest, shop.lsns[-1])]


def _size(type_: str, length: int | None, precision: int | None) -> int | None:
    return 23 if type_ == "datetime2" else length or precision


def _what_airbyte_takes(names: list[str], rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    wanted = (
        "TABLE_CAT", "TABLE_SCHEM", "TABLE_NAME", "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE",
        "DECIMAL_DIGITS", "IS_NULLABLE", "ORDINAL_POSITION",
    )  # fmt: skip
    return [tuple(row[names.index(name)] for name in wanted) for row in rows]
