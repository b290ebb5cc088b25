"""dlt and Meltano's tap-mssql read a shop through SQLAlchemy: reflection, a first load, and what has a later cursor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mssql

from tests.support.clients import dlt
from tests.support.clients.shop import COLUMNS, KEYS, NULLABLE, TABLES, Shop, in_any_order

PLACES = (("dbo", "orders"), ("sales", "items"), ("dbo", "labels"))

_TYPES: dict[str, type[sa.types.TypeEngine[Any]]] = {
    "int": sa.INTEGER, "smallint": sa.SMALLINT, "decimal": sa.DECIMAL, "datetime2": mssql.DATETIME2,
    "varchar": sa.VARCHAR, "nvarchar": sa.NVARCHAR, "char": sa.CHAR,
}  # fmt: skip


@pytest.fixture
def engine(shop: Shop) -> Iterator[sa.Engine]:
    server = shop.server
    server.start()
    url = sa.URL.create("mssql+pymssql", server.user, server.password, server.host, server.port, server.database)
    opened = sa.create_engine(url)
    yield opened
    opened.dispose()


def test_discovery(shop: Shop, engine: sa.Engine) -> None:
    inspector = sa.inspect(engine)
    assert {"cdc", "dbo", "sales"} < set(inspector.get_schema_names())
    for schema in ("cdc", "dbo", "sales"):
        assert inspector.get_table_names(schema) == [table for owner, table in TABLES if owner == schema]
        assert inspector.get_view_names(schema) == []
    for schema, table in PLACES:
        columns = inspector.get_columns(table, schema)
        found = [
            (
                column["name"], type(column["type"]), getattr(column["type"], "length", None) or None,
                *((column["type"].precision, column["type"].scale) if isinstance(column["type"], sa.DECIMAL) else ()),
                column["nullable"], column["default"],
            )
            for column in columns
        ]  # fmt: skip
        assert found == [
            (
                name, _TYPES[type_], length, *((precision, scale) if type_ == "decimal" else ()),
                name in NULLABLE[table], None,
            )
            for name, type_, length, precision, scale in COLUMNS[table]
        ]  # fmt: skip
        key = inspector.get_pk_constraint(table, schema)
        assert (key["constrained_columns"], key["name"]) == (KEYS[table], f"pk_{table}" if KEYS[table] else None)
        assert inspector.get_indexes(table, schema) == []
        assert inspector.get_foreign_keys(table, schema) == []


def test_first_load_and_increment(shop: Shop, engine: sa.Engine) -> None:
    sent: list[str] = []

    @sa.event.listens_for(engine, "before_cursor_execute")
    def noted(_: Any, __: Any, statement: str, *___: Any) -> None:
        sent.append(statement)

    metadata = sa.MetaData()
    for schema in ("dbo", "sales"):
        metadata.reflect(engine, schema, resolve_fks=False)
    tables = [metadata.tables[f"{schema}.{table}"] for schema, table in PLACES]
    content = (shop.content.orders, shop.content.items, shop.content.labels)
    sent.clear()
    with engine.connect() as connection:
        for table, rows in zip(tables, content, strict=True):
            found = connection.execution_options(yield_per=2).execute(table.select())
            assert in_any_order([tuple(row) for row in found]) == in_any_order(rows)
    assert tuple(sent) == dlt.FIRST_LOADS

    since = max(row[-1] for row in shop.content.orders)
    shop.go_on()
    later = sorted((row for row in shop.content.orders if row[-1] >= since), key=lambda row: row[-1])
    sent.clear()
    with engine.connect() as connection:
        unordered = connection.execute(dlt.increment(tables[0], since, in_order=False))
        assert in_any_order([tuple(row) for row in unordered]) == in_any_order(later)
        ordered = connection.execute(dlt.increment(tables[0], since, in_order=True))
        assert [tuple(row) for row in ordered] == later
    assert sent == [dlt.INCREMENT, dlt.INCREMENT_IN_ORDER]
