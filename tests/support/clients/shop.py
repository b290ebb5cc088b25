"""A shop for readers of changes: two tracked tables, one that is not, and a model of them that knows no SQL."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from airflow_provider_mssql_cdc.sandbox import Sandbox
from airflow_provider_mssql_cdc.sandbox.engine.harshness import Point
from tests.support import harsh

Row = tuple[Any, ...]

DELETE, INSERT, BEFORE, AFTER = 1, 2, 3, 4
ORDERS, ITEMS = "dbo_orders", "sales_items"
"""The capture instances."""

START = dt.datetime(2026, 1, 5, 8)

_TABLES = (
    """
    CREATE TABLE dbo.orders (
      id int NOT NULL CONSTRAINT pk_orders PRIMARY KEY, customer nvarchar(20) NULL, amount decimal(9,2) NULL,
      placed datetime2(3) NOT NULL)
    CREATE TABLE dbo.labels (code char(3) NOT NULL, label nvarchar(30) NULL)
    EXEC sys.sp_cdc_enable_db
    EXEC sys.sp_cdc_enable_table 'dbo', 'orders', @role_name = NULL, @supports_net_changes = 0
    """,
    "CREATE SCHEMA sales",
    """
    CREATE TABLE sales.items (
      order_id int NOT NULL, line smallint NOT NULL, sku varchar(20) NOT NULL, qty int NULL,
      CONSTRAINT pk_items PRIMARY KEY (order_id, line))
    EXEC sys.sp_cdc_enable_table 'sales', 'items', @role_name = NULL, @supports_net_changes = 0
    """,
)


@dataclass(frozen=True)
class Change:
    """A row of a change table.

    :param commit: number of its transaction among all, from 0
    """

    commit: int
    operation: int
    mask: bytes
    row: Row


@dataclass
class Content:
    """What the tables hold, and what was captured, at one moment."""

    orders: list[Row]
    items: list[Row]
    labels: list[Row]
    changes: dict[str, list[Change]]
    times: list[dt.datetime]


def _order(number: int, customer: str | None, amount: str | None, minute: int) -> Row:
    placed = dt.datetime(2026, 1, 2, 3, minute, 5, 678_000)
    return (number, customer, None if amount is None else Decimal(amount), placed)


_ALL = b"\x0f"
_ADA, _ZOE, _NOBODY = _order(1, "Ada", "10.50", 4), _order(2, "Zo\u00eb", None, 5), _order(3, None, "-3.00", 6)
_ADA_LATER, _ZOE_LATER, _BEA = _order(1, "Ada", "11.50", 4), _order(2, "Zoe", None, 30), _order(4, "Bea", "0.00", 20)
_ITEMS = [(1, 1, "A-1", 2), (1, 2, "B-7", None), (2, 1, "A-1", 1)]
_RESTOCKED = (1, 2, "B-7", 5)

_BEFORE: tuple[tuple[str, dict[str, list[tuple[int, bytes, Row]]]], ...] = (
    (
        "INSERT INTO dbo.orders VALUES (1, N'Ada', 10.50, '2026-01-02T03:04:05.678'),"
        " (2, N'Zo\u00eb', NULL, '2026-01-02T03:05:05.678'), (3, NULL, -3, '2026-01-02T03:06:05.678')",
        {ORDERS: [(INSERT, _ALL, _ADA), (INSERT, _ALL, _ZOE), (INSERT, _ALL, _NOBODY)]},
    ),
    (
        "INSERT INTO sales.items VALUES (1, 1, 'A-1', 2), (1, 2, 'B-7', NULL), (2, 1, 'A-1', 1)",
        {ITEMS: [(INSERT, _ALL, row) for row in _ITEMS]},
    ),
    (
        "UPDATE dbo.orders SET amount = amount + 1 WHERE id = 1",
        {ORDERS: [(BEFORE, b"\x04", _ADA), (AFTER, b"\x04", _ADA_LATER)]},
    ),
    ("INSERT INTO dbo.labels VALUES ('abc', N'first'), ('xyz', NULL)", {}),
)
_AFTER: tuple[tuple[str, dict[str, list[tuple[int, bytes, Row]]]], ...] = (
    (
        "BEGIN TRAN INSERT INTO dbo.orders VALUES (4, N'Bea', 0, '2026-01-02T03:20:05.678')"
        " UPDATE sales.items SET qty = 5 WHERE order_id = 1 AND line = 2 COMMIT",
        {
            ORDERS: [(INSERT, _ALL, _BEA)],
            ITEMS: [(BEFORE, b"\x08", _ITEMS[1]), (AFTER, b"\x08", _RESTOCKED)],
        },
    ),
    (
        "UPDATE dbo.orders SET customer = N'Zoe', placed = '2026-01-02T03:30:05.678' WHERE id = 2",
        {ORDERS: [(BEFORE, b"\x0a", _ZOE), (AFTER, b"\x0a", _ZOE_LATER)]},
    ),
    ("DELETE FROM dbo.orders WHERE id = 3", {ORDERS: [(DELETE, _ALL, _NOBODY)]}),
    ("DELETE FROM sales.items WHERE order_id = 2", {ITEMS: [(DELETE, _ALL, _ITEMS[2])]}),
    ("INSERT INTO dbo.labels VALUES ('new', N'third')", {}),
)
_ROWS_BEFORE: tuple[list[Row], list[Row], list[Row]] = (
    [_ADA_LATER, _ZOE, _NOBODY],
    list(_ITEMS),
    [("abc", "first"), ("xyz", None)],
)
_ROWS_AFTER: tuple[list[Row], list[Row], list[Row]] = (
    [_ADA_LATER, _ZOE_LATER, _BEA],
    [_ITEMS[0], _RESTOCKED],
    [("abc", "first"), ("xyz", None), ("new", "third")],
)


class Shop:
    """The server with the tables as a first load finds them; ``go_on`` makes the changes of one increment."""

    def __init__(self) -> None:
        # whoever asks for no order gets none that lasts
        self.server = Sandbox(database="shop", harsh=[Point.ORDER], seed=harsh.SEED)
        self.server.capture.hold()
        self.server.capture.start()
        self.now = START
        self.server.set_time(self.now)
        for batch in _TABLES:
            self.server.execute(batch)
        self.content = Content(*_ROWS_BEFORE, {ORDERS: [], ITEMS: []}, [])
        self._run(_BEFORE)

    def go_on(self) -> None:
        """Make the changes that come after a first load."""
        content = self.content
        self.content = Content(*_ROWS_AFTER, content.changes, content.times)
        self._run(_AFTER)

    def _run(self, history: Any) -> None:
        for statement, captured in history:
            self.now += dt.timedelta(minutes=1)
            self.server.set_time(self.now)
            self.server.execute(statement)
            if captured:
                for instance, rows in captured.items():
                    changes = self.content.changes[instance]
                    changes += [Change(len(self.content.times), *row) for row in rows]
                self.content.times.append(self.now)
        self.server.step()

    @property
    def lsns(self) -> list[bytes]:
        """The LSN of each transaction, as the engine has drawn it."""
        _, mapping = self.server.cdc().relation("lsn_time_mapping")
        return sorted(row["start_lsn"] for row in mapping.to_pylist() if any(row["tran_id"]))

    def first_lsn(self, instance: str) -> bytes:
        """The LSN from which on a capture instance has changes, as the engine has drawn it."""
        found = self.server.cdc().instance(instance)
        assert found is not None
        return bytes(found.start_lsn)

    def seqvals(self, instance: str) -> list[bytes]:
        """The sequence value of each change, as the engine has drawn it."""
        batches = self.server.cdc().change_rows(instance)
        return [value for batch in batches for value in batch.column(2).to_pylist()]

    def changed(self, instance: str, *, since: int = 0, before: bool = True) -> Iterator[tuple[bytes, bytes, Change]]:
        """The rows of a change table in their order, with LSN and sequence value.

        :param since: number of the first transaction
        :param before: also before images
        """
        lsns = self.lsns
        for change, seqval in zip(self.content.changes[instance], self.seqvals(instance), strict=True):
            if change.commit >= since and (before or change.operation != BEFORE):
                yield lsns[change.commit], seqval, change

    def function_rows(self, instance: str, *, since: int = 0, before: bool = False) -> list[Row]:
        """What ``fn_cdc_get_all_changes`` returns: LSN, sequence value, operation, mask and the columns."""
        return [
            (lsn, seqval, change.operation, change.mask, *change.row)
            for lsn, seqval, change in self.changed(instance, since=since, before=before)
        ]


def advanced(lsn: bytes, by: int = 1) -> bytes:
    """What ``fn_cdc_increment_lsn`` makes of an LSN."""
    return (int.from_bytes(lsn) + by).to_bytes(10)


def hexadecimal(lsn: bytes) -> str:
    """An LSN as CONVERT with style 1 shows it."""
    return f"0x{lsn.hex().upper()}"


def in_any_order(rows: list[Row]) -> list[Row]:
    """Rows that nobody asked an order for."""
    return sorted(rows, key=repr)


def ticks(moment: dt.datetime) -> int:
    """A datetime2 as it is held within the server."""
    return (moment - dt.datetime(1, 1, 1)) // dt.timedelta(microseconds=1) * 10


def held(rows: list[Row]) -> list[Row]:
    """Rows of dbo.orders as they are held within the server: ``placed``, the last column, in ticks."""
    return [(*row[:-1], ticks(row[-1])) for row in rows]


CDC_COLUMNS: dict[str, list[tuple[str, str, int | None, int | None]]] = {
    "captured_columns": [
        ("object_id", "int", None, 10), ("column_name", "nvarchar", 128, None), ("column_id", "int", None, 10),
        ("column_type", "nvarchar", 128, None), ("column_ordinal", "int", None, 10), ("is_computed", "bit", None, None),
        ("masking_function", "nvarchar", 4000, None),
    ],
    "change_tables": [
        ("object_id", "int", None, 10), ("version", "int", None, 10), ("source_object_id", "int", None, 10),
        ("capture_instance", "nvarchar", 128, None), ("start_lsn", "binary", 10, None), ("end_lsn", "binary", 10, None),
        ("supports_net_changes", "bit", None, None), ("has_drop_pending", "bit", None, None),
        ("role_name", "nvarchar", 128, None), ("index_name", "nvarchar", 128, None),
        ("filegroup_name", "nvarchar", 128, None), ("create_date", "datetime", None, None),
        ("partition_switch", "bit", None, None),
    ],
    "ddl_history": [
        ("source_object_id", "int", None, 10), ("object_id", "int", None, 10),
        ("required_column_update", "bit", None, None), ("ddl_command", "nvarchar", -1, None),
        ("ddl_lsn", "binary", 10, None), ("ddl_time", "datetime", None, None),
    ],
    "index_columns": [
        ("object_id", "int", None, 10), ("column_name", "nvarchar", 128, None), ("index_ordinal", "tinyint", None, 3),
        ("column_id", "int", None, 10),
    ],
    "lsn_time_mapping": [
        ("start_lsn", "binary", 10, None), ("tran_begin_time", "datetime", None, None),
        ("tran_end_time", "datetime", None, None), ("tran_id", "varbinary", 10, None),
        ("tran_begin_lsn", "binary", 10, None),
    ],
}  # fmt: skip
"""The tables of schema cdc (docs): name, type, length and digits of each column."""

CDC_TABLES = sorted([*CDC_COLUMNS, f"{ORDERS}_CT", f"{ITEMS}_CT"])
TABLES = [*(("cdc", name) for name in CDC_TABLES), ("dbo", "labels"), ("dbo", "orders"), ("sales", "items")]
"""All tables, by schema."""

COLUMNS: dict[str, list[tuple[str, str, int | None, int | None, int | None]]] = {
    "orders": [
        ("id", "int", None, 10, 0), ("customer", "nvarchar", 20, None, None), ("amount", "decimal", None, 9, 2),
        ("placed", "datetime2", None, None, None),
    ],
    "items": [
        ("order_id", "int", None, 10, 0), ("line", "smallint", None, 5, 0), ("sku", "varchar", 20, None, None),
        ("qty", "int", None, 10, 0),
    ],
    "labels": [("code", "char", 3, None, None), ("label", "nvarchar", 30, None, None)],
}  # fmt: skip
"""The columns of the user's tables: name, type, length, precision and scale."""

KEYS = {"orders": ["id"], "items": ["order_id", "line"], "labels": []}
NULLABLE = {"orders": {"customer", "amount"}, "items": {"qty"}, "labels": {"label"}}
