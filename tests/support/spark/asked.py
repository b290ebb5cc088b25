"""A table with a large value, loaded into all shapes, of which copies are asked for."""

from __future__ import annotations

import dataclasses

from airflow_provider_mssql_cdc.spark.session import table_session

ROWS = 30
SHAPES = ("mirror", "history", "scd2")
COLUMNS = ("id", "note", "doc")


def make(live):
    """The table, with its first change captured."""
    live.sql("CREATE TABLE dbo.orders (id int NOT NULL PRIMARY KEY, note nvarchar(40), doc nvarchar(max))")
    live.sql("INSERT INTO dbo.orders VALUES " + ", ".join(f"({n}, N'n{n}', N'doc {n}')" for n in range(ROWS)))
    live.enable("dbo.orders")
    live.sql("UPDATE dbo.orders SET note = N'early' WHERE id = 1")
    live.wait_captured()


def load(orders, shapes=SHAPES, asked=None, at=None, deletes="hard", **options):
    table = dataclasses.replace(orders.table("dbo.orders", shapes, at=at, deletes=deletes), asked=asked)
    receipt = orders.load(table, copy_rows=10, **options)
    assert receipt.tables[0].error is None, receipt.tables[0].error
    return receipt


def source(orders):
    return sorted(tuple(row.values()) for row in orders.sql("SELECT id, note, doc FROM dbo.orders"))


def rows(found, columns=COLUMNS):
    return sorted(tuple(row[name] for name in columns) for row in found)


def newest(orders):
    """What the history says that there is: the newest image of each key."""
    found = {}
    for row in sorted(
        (row for row in orders.lake("dbo.orders", "history") if row["_op"] != "B"),
        key=lambda row: (row["_lsn"], row["_seq"] or 0),
    ):
        found[row["id"]] = None if row["_op"] == "D" else tuple(row[name] for name in COLUMNS)
    return sorted(row for row in found.values() if row is not None)


def change(orders):
    orders.sql("UPDATE dbo.orders SET note = N'changed' WHERE id IN (4, 7); DELETE FROM dbo.orders WHERE id = 8")
    orders.sql("INSERT INTO dbo.orders VALUES (100, N'new', N'doc new'); UPDATE dbo.orders SET id = 200 WHERE id = 9")
    orders.wait_captured()


def name_of(orders, shape):
    """A target table in Spark SQL."""
    place = orders.table("dbo.orders", (shape,)).sinks[0].table
    return f"delta.`{'/'.join(place)}`" if orders.format == "delta" else ".".join(place)


def spoil_by(orders, shape, *statements):
    name = name_of(orders, shape)
    for statement in statements:
        table_session(orders.spark).sql(statement.format(name=name))
