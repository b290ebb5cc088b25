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
