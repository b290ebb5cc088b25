"""The big table of the scenario ``copy``, and its visitors: they note all that they have changed."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from airflow_provider_mssql_cdc.cli.demo.changing import Changing
from airflow_provider_mssql_cdc.cli.demo.shop import Column, Table
from airflow_provider_mssql_cdc.sandbox import Sandbox

VISITS = Table(
    "web",
    "visits",
    (
        Column("visit_id", "bigint NOT NULL", pa.int64()),
        Column("page", "nvarchar(60) NOT NULL", pa.string()),
        Column("seconds", "int NULL", pa.int32()),
        Column("referrer", "varchar(40) NULL", pa.string()),
    ),
    ("visit_id",),
    1.0,
)
EVENTS = pa.schema([("visit_id", pa.int64()), ("nth", pa.int32()), ("_op", pa.string()), *list(VISITS.arrow)[1:]])
"""What a history holds of the changes of each key, in their order."""

MARK = "/mark"
"""The page of rows that say nothing."""

_DELETED = 0.2
_BLOCK = 200_000

Row = tuple[Any, ...]


def build(sandbox: Sandbox, database: str, rows: int) -> None:
    """Create and fill the table in an existing, empty database, and enable CDC."""
    sandbox.execute("CREATE SCHEMA web", database=database)
    sandbox.execute(VISITS.ddl, database=database)
    for first in range(1, rows + 1, _BLOCK):
        numbers = range(first, min(first + _BLOCK, rows + 1))
        columns = list(zip(*map(first_row, numbers), strict=True))
        sandbox.seed(database, VISITS.full_name, pa.table(columns, VISITS.arrow))
    sandbox.execute("EXEC sys.sp_cdc_enable_db", database=database)
    sandbox.execute(
        "EXEC sys.sp_cdc_enable_table N'web', N'visits', @role_name = NULL, @supports_net_changes = 0",
        database=database,
    )


def first_row(number: int) -> Row:
    """The row that the table starts with under a number."""
    return number, f"/seite/{number % 97}", number % 600 if number % 7 else None, f"site-{number % 13}"


class Visitors(Changing):
    """Changes the table in small transactions, and notes each change of each key.

    :param rows: that the table started with
    :ivar events: key to its changes in order: operation, and the row after it, or before it for B and D
    """

    def __init__(self, connect: Callable[[], Any], rows: int, seed: int = 1) -> None:
        super().__init__(connect)
        self._chance, self._rows = random.Random(seed), rows
        self._changed: dict[int, Row | None] = {}
        self._next = rows
        self.events: dict[int, list[tuple[str, Row]]] = {}

    def change(self, commits: int, *, noted: bool) -> None:
        """Change the table in so many transactions, and return when they are committed.

        :param noted: whether a history will hold them
        """
        with contextlib.closing(self._connect()) as connection:
            for _ in range(commits):
                self._change(connection, noted=noted)

    def transact(self, connection: Any) -> None:
        """Change the table in one transaction that is noted."""
        self._change(connection, noted=True)

    def mark(self) -> int:
        """Insert one row that says nothing, and return its key once it is committed."""
        with contextlib.closing(self._connect()) as connection:
            with connection.cursor() as cursor:
                key = self._insert(cursor, MARK)[0]
            connection.commit()
        self.commits += 1
        return key

    def _change(self, connection: Any, *, noted: bool) -> None:
        with connection.cursor() as cursor:
            made = [self._insert(cursor, "/new"), *(self._update(cursor) for _ in range(self._chance.randint(1, 3)))]
        connection.commit()
        self.commits += 1
        for key, events in made if noted else ():
            self.events.setdefault(key, []).extend(events)

    def _insert(self, cursor: Any, page: str) -> tuple[int, list[tuple[str, Row]]]:
        self._next += 1
        row = (self._next, page, self._chance.randrange(100), None)
        cursor.execute("INSERT INTO web.visits VALUES (%s, %s, %s, %s)", row)
        return self._next, [("I", row)]

    def _update(self, cursor: Any) -> tuple[int, list[tuple[str, Row]]]:
        """Change a row that the table started with: it is updated, goes, or comes back."""
        key = self._chance.randint(1, self._rows)
        before = self._changed[key] if key in self._changed else first_row(key)
        if before is None:
            row = self._changed[key] = (key, "/back", None, "site")
            cursor.execute("INSERT INTO web.visits VALUES (%s, %s, %s, %s)", row)
            return key, [("I", row)]
        if self._chance.random() < _DELETED:
            self._changed[key] = None
            cursor.execute("DELETE FROM web.visits WHERE visit_id = %s", (key,))
            return key, [("D", before)]
        # an update to the same values is no change
        after = self._changed[key] = (key, before[1], (before[2] or 0) + self._chance.randint(1, 1000), before[3])
        cursor.execute("UPDATE web.visits SET seconds = %s WHERE visit_id = %s", (after[2], key))
        return key, [("B", before), ("U", after)]

    def noted(self) -> list[Row]:
        """All noted changes as rows of ``EVENTS``."""
        return [
            (key, nth, operation, *row[1:])
            for key, events in self.events.items()
            for nth, (operation, row) in enumerate(events, 1)
        ]
