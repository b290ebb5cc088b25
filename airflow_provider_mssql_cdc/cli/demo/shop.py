"""The shop database of the demo: its tables, and the rows that it starts with."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox import Sandbox

_SEED = 20_260_101
_OPENED = datetime.datetime(2026, 1, 1)
_TICKS_PER_MICROSECOND = 10
_TICKS_BEFORE_1970 = (datetime.datetime(1970, 1, 1) - datetime.datetime(1, 1, 1)).days * 86_400 * 10_000_000
_CITIES = ("Lund", "Zürich", "São Paulo", "東京", "Kraków", "O'Fallon", "Αθήνα", "")
_WORDS = ("light", "steel", "größe", "hand-made", "naïve", "☕", "blue", "second", "quiet", "the", "of", "oak", "500 g")
STATUSES = ("new", "paid", "shipped", "returned")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the shop.

    :param sql: its T-SQL type and nullability
    :param arrow: the one type in which both sides must deliver it
    """

    name: str
    sql: str
    arrow: pa.DataType


EVENT = {"_lsn": pa.string(), "_command_id": pa.int32(), "_op": pa.string()}
"""What identifies an event of a history."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the shop.

    :param share: its part of the rows that the shop starts with
    """

    schema: str
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    share: float

    @property
    def full_name(self) -> str:
        """``schema.table``."""
        return f"{self.schema}.{self.name}"

    @property
    def arrow(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        return pa.schema([(column.name, column.arrow) for column in self.columns])

    @property
    def events(self) -> pa.Schema:
        """What identifies an event of a history, and the columns, but for the large ones, which CDC may leave out."""
        columns = [(column.name, column.arrow) for column in self.columns if "(max)" not in column.sql]
        return pa.schema([*EVENT.items(), *columns])

    @property
    def ddl(self) -> str:
        """The CREATE TABLE statement."""
        columns = ", ".join(f"[{column.name}] {column.sql}" for column in self.columns)
        key = ", ".join(f"[{name}]" for name in self.key)
        return (
            f"CREATE TABLE [{self.schema}].[{self.name}] ({columns}, "
            f"CONSTRAINT [PK_{self.name}] PRIMARY KEY CLUSTERED ({key}))"
        )


CUSTOMERS = Table(
    "sales",
    "customers",
    (
        Column("customer_id", "int NOT NULL", pa.int32()),
        Column("name", "nvarchar(100) NOT NULL", pa.string()),
        Column("city", "nvarchar(60) NULL", pa.string()),
        Column("credit_limit", "decimal(12,2) NULL", pa.decimal128(12, 2)),
        Column("active", "bit NOT NULL", pa.bool_()),
        Column("created_at", "datetime2(3) NOT NULL", pa.timestamp("us")),
    ),
    ("customer_id",),
    0.10,
)
ORDERS = Table(
    "sales",
    "orders",
    (
        Column("order_id", "bigint NOT NULL", pa.int64()),
        Column("customer_id", "int NOT NULL", pa.int32()),
        Column("status", "varchar(20) NOT NULL", pa.string()),
        Column("amount", "decimal(18,4) NOT NULL", pa.decimal128(18, 4)),
        Column("ordered_at", "datetime2(6) NOT NULL", pa.timestamp("us")),
        Column("shipped_on", "date NULL", pa.date32()),
    ),
    ("order_id",),
    0.30,
)
ORDER_ITEMS = Table(
    "sales",
    "order_items",
    (
        Column("order_id", "bigint NOT NULL", pa.int64()),
        Column("line_no", "int NOT NULL", pa.int32()),
        Column("product_id", "int NOT NULL", pa.int32()),
        Column("quantity", "int NOT NULL", pa.int32()),
        Column("unit_price", "decimal(10,2) NOT NULL", pa.decimal128(10, 2)),
        Column("discount", "float NULL", pa.float64()),
    ),
    ("order_id", "line_no"),
    0.58,
)
PRODUCTS = Table(
    "catalog",
    "products",
    (
        Column("product_id", "int NOT NULL", pa.int32()),
        Column("sku", "varchar(20) NOT NULL", pa.string()),
        Column("title", "nvarchar(100) NOT NULL", pa.string()),
        Column("price", "decimal(10,2) NOT NULL", pa.decimal128(10, 2)),
        Column("description", "nvarchar(max) NULL", pa.string()),
    ),
    ("product_id",),
    0.02,
)
TABLES = (CUSTOMERS, ORDERS, ORDER_ITEMS, PRODUCTS)


def sizes(rows: int) -> dict[str, int]:
    """The number of rows of each table that together make about ``rows``; none is empty."""
    return {table.full_name: max(1, round(rows * table.share)) for table in TABLES}


def statements() -> Iterator[str]:
    """Yield the batches that create the schemas and tables."""
    for schema in dict.fromkeys(table.schema for table in TABLES):
        yield f"CREATE SCHEMA [{schema}]"
    for table in TABLES:
        yield table.ddl


def capture_statements() -> Iterator[str]:
    """Yield the batches that enable CDC, by SQL Server's own procedures."""
    yield "EXEC sys.sp_cdc_enable_db"
    for table in TABLES:
        yield (
            f"EXEC sys.sp_cdc_enable_table @source_schema = N'{table.schema}', @source_name = N'{table.name}', "
            "@role_name = NULL"
        )


def build(sandbox: Sandbox, database: str, rows: int, *, captured: bool = True) -> None:
    """Create the shop in an existing, empty database, fill it, and enable CDC.

    :param rows: over all tables
    :param captured: False leaves CDC off
    """
    for statement in statements():
        sandbox.execute(statement, database=database)
    for name, table in first_rows(rows).items():
        sandbox.seed(database, name, _with_ticks(table))
    for statement in capture_statements() if captured else ():
        sandbox.execute(statement, database=database)


def _with_ticks(table: pa.Table) -> pa.Table:
    """The rows as the sandbox holds them: datetime2 as ticks of 100 ns since the year 1."""
    for position, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            since_1970 = pc.multiply(table.column(position).cast(pa.int64()), _TICKS_PER_MICROSECOND)
            table = table.set_column(position, field.name, pc.add(since_1970, _TICKS_BEFORE_1970))
    return table


def first_rows(rows: int) -> dict[str, pa.Table]:
    """The rows that the shop starts with, always the same ones.

    :param rows: over all tables
    """
    chance = random.Random(_SEED)
    counts = sizes(rows)
    makers = {
        CUSTOMERS: lambda n: customer(chance, n + 1),
        ORDERS: lambda n: order(chance, n + 1, chance.randint(1, counts["sales.customers"])),
        # Two lines for each order come before a third: every order has some, as long as there are enough.
        ORDER_ITEMS: lambda n: order_item(
            chance,
            n % counts["sales.orders"] + 1,
            n // counts["sales.orders"] + 1,
            chance.randint(1, counts["catalog.products"]),
        ),
        PRODUCTS: lambda n: product(chance, n + 1),
    }
    return {
        table.full_name: _columns(table, [makers[table](n) for n in range(counts[table.full_name])]) for table in TABLES
    }


def _columns(table: Table, rows: list[tuple[Any, ...]]) -> pa.Table:
    values = zip(*rows, strict=True)
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(values, table.arrow, strict=True)], schema=table.arrow
    )


def customer(chance: random.Random, customer_id: int) -> tuple[Any, ...]:
    """A row of sales.customers."""
    return (
        customer_id,
        f"Customer {customer_id} {chance.choice(_WORDS)}",
        chance.choice((*_CITIES, None)),
        Decimal(chance.randrange(-(10**8), 10**10)).scaleb(-2) if chance.random() < 0.8 else None,
        chance.random() < 0.9,
        _OPENED + datetime.timedelta(milliseconds=chance.randrange(10**10)),
    )


def order(chance: random.Random, order_id: int, customer_id: int) -> tuple[Any, ...]:
    """A row of sales.orders."""
    ordered_at = _OPENED + datetime.timedelta(microseconds=chance.randrange(10**13))
    shipped = ordered_at.date() + datetime.timedelta(days=2) if chance.random() < 0.5 else None
    amount = Decimal(chance.randrange(10**9)).scaleb(-4)
    return order_id, customer_id, chance.choice(STATUSES), amount, ordered_at, shipped


def order_item(chance: random.Random, order_id: int, line_no: int, product_id: int) -> tuple[Any, ...]:
    """A row of sales.order_items."""
    price = Decimal(chance.randrange(1, 10**6)).scaleb(-2)
    return order_id, line_no, product_id, chance.randint(1, 20), price, chance.choice((None, 0.0, 0.1, chance.random()))


def product(chance: random.Random, product_id: int) -> tuple[Any, ...]:
    """A row of catalog.products."""
    price = Decimal(chance.randrange(1, 10**6)).scaleb(-2)
    return product_id, f"SKU-{product_id:06}", f"Product {product_id} {chance.choice(_CITIES)}", price, text(chance)


def text(chance: random.Random) -> str | None:
    """A product's description: missing, empty, short, or longer than a page of SQL Server."""
    words = chance.choice((None, 0, 5, 60, 60, 300, 1500))
    return None if words is None else " ".join(chance.choices(_WORDS, k=words))
