"""dlt's sql_database, as of 2026, and Meltano's tap-mssql: what they let SQLAlchemy send.

Read in ``dlt/sources/sql_database/helpers.py`` (dlt-hub/dlt at 019afb2a) and in ``tap_mssql/client.py``
(BuzzCutNorman/tap-mssql at 00dc593b). Neither writes SQL: both reflect tables, and select all of their columns, from
the largest value of a cursor on. So SQLAlchemy itself (2.1) is run for what it asks of the catalogue; the texts are
those of the tables' rows.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import sqlalchemy as sa

FIRST_LOADS = (
    "SELECT dbo.orders.id, dbo.orders.customer, dbo.orders.amount, dbo.orders.placed \nFROM dbo.orders",
    "SELECT sales.items.order_id, sales.items.line, sales.items.sku, sales.items.qty \nFROM sales.items",
    "SELECT dbo.labels.code, dbo.labels.label \nFROM dbo.labels",
)
"""The first load of each table; dlt asks for no order unless told to."""

INCREMENT = FIRST_LOADS[0] + " \nWHERE dbo.orders.placed >= %(placed_1)s"
INCREMENT_IN_ORDER = INCREMENT + " ORDER BY dbo.orders.placed ASC"
"""dlt with ``row_order="asc"``; tap-mssql with a replication key, in this order also at its first load."""


def increment(table: sa.Table, since: dt.datetime, *, in_order: bool) -> sa.Select[Any]:
    """``TableLoader._make_query`` where a cursor column has been read up to a value: a closed range."""
    query = table.select().where(table.c.placed >= since)
    return query.order_by(table.c.placed.asc()) if in_order else query
