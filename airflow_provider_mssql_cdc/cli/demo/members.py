"""The table of the scenario ``schema-change``: its columns before and after each DDL statement, and a writer."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import threading
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from airflow_provider_mssql_cdc.cli.demo.changing import Changing
from airflow_provider_mssql_cdc.cli.demo.shop import Column, Table
from airflow_provider_mssql_cdc.sandbox import Sandbox

FAX = Column("fax", "varchar(20) NULL", pa.string())
"""The column that is dropped."""
EMAIL = Column("email", "nvarchar(100) NULL", pa.string())
CREDIT = Column("credit", "decimal(9,2) NOT NULL DEFAULT 12.50", pa.decimal128(9, 2))

AT_FIRST = Table(
    "sales",
    "members",
    (
        Column("member_id", "int NOT NULL", pa.int32()),
        Column("name", "nvarchar(60) NOT NULL", pa.string()),
        Column("city", "nvarchar(40) NULL", pa.string()),
        Column("points", "int NOT NULL", pa.int32()),
        FAX,
    ),
    ("member_id",),
    1.0,
)
ADDED = dataclasses.replace(AT_FIRST, columns=(*AT_FIRST.columns, EMAIL, CREDIT))
"""With the columns that are added."""
POINTS = Column("points", "bigint NOT NULL", pa.int64())
GROWN = dataclasses.replace(
    ADDED, columns=tuple(POINTS if column.name == POINTS.name else column for column in ADDED.columns)
)
"""With the type that is made wider; so the targets have it at the end."""
AT_LAST = dataclasses.replace(GROWN, columns=tuple(column for column in GROWN.columns if column is not FAX))
"""So the source has it at the end."""

ADD = tuple(f"ALTER TABLE {AT_FIRST.full_name} ADD {column.name} {column.sql}" for column in (EMAIL, CREDIT))
WIDEN = f"ALTER TABLE {AT_FIRST.full_name} ALTER COLUMN {POINTS.name} {POINTS.sql}"
DROP = f"ALTER TABLE {AT_FIRST.full_name} DROP COLUMN {FAX.name}"
BACK_FILL = (
    f"UPDATE {AT_FIRST.full_name} SET email = N'member-' + CONVERT(nvarchar(10), member_id) + N'@example.com'"
    " WHERE member_id % 3 = 0"
)
"""Of the new column alone: a capture instance without it has no event of this."""

_ROWS = 5
_CITIES = ("Lund", "Zürich", "東京", "", None)


def build(sandbox: Sandbox, database: str, rows: int) -> None:
    """Create and fill the table in an existing, empty database, and enable CDC."""
    sandbox.execute(f"CREATE SCHEMA {AT_FIRST.schema}", database=database)
    sandbox.execute(AT_FIRST.ddl, database=database)
    columns = zip(*map(first_row, range(1, rows + 1)), strict=True)
    sandbox.seed(database, AT_FIRST.full_name, pa.table([*columns], AT_FIRST.arrow))
    sandbox.execute("EXEC sys.sp_cdc_enable_db", database=database)
    sandbox.execute(
        f"EXEC sys.sp_cdc_enable_table N'{AT_FIRST.schema}', N'{AT_FIRST.name}', @role_name = NULL,"
        " @supports_net_changes = 0",
        database=database,
    )


def first_row(number: int) -> tuple[Any, ...]:
    """The row that the table starts with under a number."""
    return number, f"Member {number}", _CITIES[number % 5], number % 1000, f"+46 {number:06}" if number % 4 else None


class Clerk(Changing):
    """Writes into the columns that it knows: a new one as soon as it is there, one that is to go no longer, and large
    numbers once there is room for them.

    :param rows: that the table started with
    """

    # a copy ends soon after a log scan that finds nothing, else when the server's clock has gone on by ten seconds
    pause = 0.4

    def __init__(self, connect: Callable[[], Any], rows: int, seed: int = 1) -> None:
        super().__init__(connect)
        self._chance, self._last = random.Random(seed), rows
        self._known, self._learning = AT_FIRST, threading.Lock()

    def learn(self, table: Table) -> None:
        """Write into these columns from the next transaction on; one that is under way is over before this returns."""
        with self._learning:
            self._known = table

    def transact(self, connection: Any) -> None:
        """Insert rows, change some, and delete one."""
        with self._learning:
            with connection.cursor() as cursor:
                for _ in range(_ROWS):
                    self._insert(cursor)
                    self._update(cursor)
                cursor.execute(f"DELETE FROM {AT_FIRST.full_name} WHERE member_id = {self._some()}")
            connection.commit()
        self.commits += 1

    def change(self, commits: int) -> None:
        """Change the table in so many transactions."""
        with contextlib.closing(self._connect()) as connection:
            for _ in range(commits):
                self.transact(connection)

    def last_row(self) -> int:
        """Run one more transaction, and return the key of the row that it inserted."""
        self.change(1)
        return self._last

    def _some(self) -> int:
        # of a row that is gone nothing is changed
        return self._chance.randint(1, self._last)

    def _insert(self, cursor: Any) -> None:
        self._last += 1
        values = {"member_id": self._last, "name": f"Member {self._last}", "points": 0}
        # else NULL, or the default
        values |= {name: self._value(name) for name in self._optional() if self._chance.random() < 0.5}
        marks = ", ".join(["%s"] * len(values))
        cursor.execute(f"INSERT INTO {AT_FIRST.full_name} ({', '.join(values)}) VALUES ({marks})", (*values.values(),))

    def _update(self, cursor: Any) -> None:
        """Change one column of a row: where it is one that no capture instance has, that is no event."""
        name = self._chance.choice(["points", *self._optional()])
        cursor.execute(
            f"UPDATE {AT_FIRST.full_name} SET {name} = %s WHERE member_id = %s", (self._value(name), self._some())
        )

    def _optional(self) -> list[str]:
        return [name for name in self._known.arrow.names if name not in ("member_id", "name", "points")]

    def _value(self, name: str) -> Any:
        number = self._chance.randrange(10**6)
        match name:
            case "city":
                return self._chance.choice(_CITIES)
            case "fax":
                return f"+41 {number:06}"
            case "email":
                return self._chance.choice((f"{number}@example.org", None))
            case "credit":
                return Decimal(number).scaleb(-2)
            case "points" if self._known.arrow.field(name).type == POINTS.arrow:
                return number * 10**6
        return number
