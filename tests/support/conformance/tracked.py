"""What the tests of Change Tracking do with a database."""

from __future__ import annotations

from typing import Any

from tests.support.conformance.client import Row
from tests.support.conformance.database import Database

ENABLE = "ALTER DATABASE CURRENT SET CHANGE_TRACKING = ON"
TRACK = "ALTER TABLE dbo.t ENABLE CHANGE_TRACKING"
COLUMNS = " WITH (TRACK_COLUMNS_UPDATED = ON)"


def version(db: Database) -> Any:
    """CHANGE_TRACKING_CURRENT_VERSION()"""
    return db.value("SELECT CHANGE_TRACKING_CURRENT_VERSION()")


def min_valid(db: Database, table: str = "dbo.t") -> Any:
    """CHANGE_TRACKING_MIN_VALID_VERSION of a table."""
    return db.value(f"SELECT CHANGE_TRACKING_MIN_VALID_VERSION(OBJECT_ID('{table}'))")


def net(db: Database, after: int | str, columns: str = "SYS_CHANGE_OPERATION, id", table: str = "dbo.t") -> list[Row]:
    """What CHANGETABLE tells of a table, by its key."""
    return db.run(f"SELECT {columns} FROM CHANGETABLE(CHANGES {table}, {after}) AS c ORDER BY c.id")


def mask(*column_ids: int) -> bytes:
    """SYS_CHANGE_COLUMNS with these columns."""
    return bytes(4) + b"".join(number.to_bytes(4, "little") for number in column_ids)


def with_tracked_table(database: Database) -> Database:
    """The database, whose new table dbo.t (id, a) is tracked."""
    database.run(ENABLE)
    database.run("CREATE TABLE dbo.t (id int NOT NULL CONSTRAINT pk_t PRIMARY KEY, a int NULL)")
    database.run(TRACK)
    return database
