"""The receipt with which the Spark job answers: what became of each table."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from airflow_provider_mssql_cdc.core.codec import Format
from airflow_provider_mssql_cdc.core.marker import Marker
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.taken import TakenBySink

EVERY = "*"
"""Stands for every shape of a table."""


@dataclass(frozen=True, slots=True)
class JobError:
    """Why a table failed in the job.

    :param kind: class name in ``core.exceptions``, or of the foreign exception
    :param permanent: whether a retry is bound to fail again
    """

    kind: str
    message: str
    permanent: bool


@dataclass(frozen=True, slots=True)
class SinkReceipt:
    """What became of one sink.

    :param before: position of the marker found; None where there was none
    :param after: the marker now in the table
    :param outcome: ``loaded``, ``first_load``, ``healed`` (by the rows that changed), ``already`` (the marker was at or
        past the cut), ``empty``, or ``replayed`` (a window that was loaded before was written again; the marker stays)
    :param read_through: everything up to here is loaded or was proven empty
    :param schema: canonical JSON of the columns that it was loaded with last, where these are not the table's
    :param unfilled: target columns whose rows of before are not filled yet, where nothing was committed that says so
    """

    shape: str
    before: Position | None
    after: Marker | None
    outcome: str
    read_through: Position
    schema: str | None = None
    unfilled: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class CopyingReceipt:
    """A copy that the next run goes on with.

    :param shapes: that wait for it
    :param low: every change after it is read beside the copy
    :param position: up to here they are kept
    :param chunks: that are read
    :param rows: of these
    :param waits_for: why the copy is not at its end though all rows are read; None where some are not
    :param waits_after: a position behind which it may be at its end
    :param paused: a person wants no rows to be read now
    :param expected: rows that the table was said to have when the copy was begun
    :param begun_at: when that was
    :param last: the key up to which rows are read, as text; None where it is masked, or the table is one chunk
    :param highest: the highest key that is to be read
    :param mends: shape to why it goes on with nothing but the copy
    :param fills: the columns that it fills; empty for a copy of whole rows
    :param suffix: behind the name of the folder of the table's copies
    """

    id: str
    shapes: tuple[str, ...]
    low: Position
    position: Position
    chunks: int
    rows: int
    waits_for: str | None = None
    waits_after: Position | None = None
    paused: bool = False
    expected: int = 0
    begun_at: datetime.datetime | None = None
    last: str | None = None
    highest: str | None = None
    mends: dict[str, str] = field(default_factory=dict)
    fills: tuple[str, ...] = ()
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class TableReceipt:
    """What became of one table.

    :param failed: shape to why that sink was not loaded; ``EVERY`` for all of which nothing else is said
    :param counts: events, inserted, updated, deleted, copied (rows of a first load)
    :param seconds: wall time by step
    :param windows: the windows read, as text
    :param copying: what is left for the next run; None where nothing is
    :param ended_copy: id of the copy that a person asked for and how it ended, once nothing is left to do with it
    :param waiting_ids: column_ids that wait to be asked for, as checkpoint, source and markers say
    :param changes_written: up to here the schema events that were handed over are in their table
    :param taken_told: what that table says of the columns that sinks have taken, as far as this job has written it; by
        shape
    """

    name: TableName
    sinks: tuple[SinkReceipt, ...] = ()
    failed: dict[str, JobError] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    windows: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    copying: CopyingReceipt | None = None
    ended_copy: str | None = None
    waiting_ids: tuple[int, ...] = ()
    changes_written: Position | None = None
    taken_told: dict[str, TakenBySink] = field(default_factory=dict)

    @property
    def reads(self) -> str | None:
        """How its rows were read up to the positions of the markers, by Change Tracking: ``CONVERGING`` where one was
        read so, else ``EXACT``; None by change data capture.
        """
        witnesses = [sink.after.witness for sink in self.sinks if sink.after is not None]
        tracked = [each.tracking for each in witnesses if each is not None and each.tracking is not None]
        return min((each.reads for each in tracked if each.reads), default=None)

    @property
    def errors(self) -> list[JobError]:
        """All errors, each once."""
        return list(dict.fromkeys(self.failed.values()))

    @property
    def error(self) -> JobError | None:
        """The first error; None if all sinks were loaded."""
        return next(iter(self.failed.values()), None)

    def error_of(self, shape: str) -> JobError | None:
        """Why a sink was not loaded; None if it was."""
        if any(sink.shape == shape for sink in self.sinks):
            return None
        return self.failed.get(shape, self.failed.get(EVERY))


def _failed_tables(data: Mapping[str, Any]) -> dict[str, Any]:
    """A receipt of before version 3, whose failures are the tables'."""

    def table(found: Mapping[str, Any]) -> dict[str, Any]:
        error = found.get("error")
        kept = {name: value for name, value in found.items() if name != "error"}
        return {**kept, "failed": {EVERY: error} if error else {}}

    return {**data, "tables": [*map(table, data["tables"])]}


@dataclass(frozen=True, slots=True)
class Receipt:
    """The job's answer; without it nothing is believed.

    :param dropped: what became of the schema events of tables that are there no more
    """

    spec_id: str
    tables: tuple[TableReceipt, ...]
    application_id: str = ""
    seconds: float = 0.0
    dropped: tuple[TableReceipt, ...] = ()

    FORMAT: ClassVar[Format] = Format("receipt", 3, "0.3.0", {1: dict, 2: _failed_tables})
