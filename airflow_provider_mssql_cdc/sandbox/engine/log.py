"""What a transaction leaves in the log: row images and DDL, in the order in which they happened."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.engine.schema import TableDef


@dataclass(frozen=True, slots=True)
class RowImages:
    """The rows that one statement touched in one table.

    Insert: only ``after``. Delete: only ``before``. Update: both, row by row in the same order, also for rows whose
    values did not change (the capture leaves them out). Both have ``table.arrow_schema``.

    :param assigned: names in lower case of the columns that an update sets
    """

    table: TableDef
    before: pa.Table | None = None
    after: pa.Table | None = None
    assigned: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TableAltered:
    """An ALTER TABLE on a table, with its text as issued."""

    before: TableDef
    after: TableDef
    statement: str


@dataclass(frozen=True, slots=True)
class LogRecord:
    """What one statement did to one table, and where that lies in the log.

    :param position: of its first log record; the others follow
    :param early: how many of its first log records lie apart, from ``hole`` on
    :param seed: of the order in which the deletes and inserts of its key updates lie; None for all deletes first
    """

    record: RowImages | TableAltered
    position: int
    early: int = 0
    hole: int = 0
    seed: int | None = None


def log_records(record: RowImages | TableAltered) -> int:
    """How many log records a record takes: room for a delete and an insert of each updated row."""
    if isinstance(record, TableAltered):
        return 1
    if record.before is not None and record.after is not None:
        return 2 * int(record.after.num_rows)
    rows = record.after if record.after is not None else record.before
    return 0 if rows is None else int(rows.num_rows)


@dataclass(slots=True)
class Transaction:
    """A committed transaction; times are server-local, ``begin_time`` when it first wrote.

    :param begin: its first position in the log
    :param records: what it wrote, each with the position of its first log record
    """

    tran_id: int
    begin_time: datetime.datetime
    begin: int
    records: list[tuple[RowImages | TableAltered, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LoggedTransaction:
    """A committed transaction in the log; positions as ``lsn.Log`` gives them.

    :param records: what it did to tracked tables
    """

    tran_id: int
    begin: int
    commit: int
    begin_time: datetime.datetime
    end_time: datetime.datetime
    records: tuple[LogRecord, ...]

    @property
    def log_records(self) -> int:
        """How many log records it has, with those of its beginning and its end."""
        return 2 + sum(log_records(each.record) for each in self.records)
