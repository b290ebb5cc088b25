"""What a load asks of a copy, and what it gets: all that its sinks begin with, or how far it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from airflow_provider_mssql_cdc.core.conditions import Condition
from airflow_provider_mssql_cdc.core.copy_wanted import KnownCopy
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.position import Position, Version, Window
from airflow_provider_mssql_cdc.core.receipt import CopyingReceipt
from airflow_provider_mssql_cdc.spark.copies.again import RowsAgain
from airflow_provider_mssql_cdc.spark.copies.pace import CopyTime
from airflow_provider_mssql_cdc.spark.files import Parquet
from airflow_provider_mssql_cdc.spark.staging import Staged


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Rows that changed.

    :param keys: as targets have them, each once
    :param rows: of the keys that are there
    :param is_whole: all rows that the table has are among these
    """

    keys: DataFrame
    rows: DataFrame
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Changed:
    """The rows that changed after a version of Change Tracking, in the place of all rows.

    :param after: the version
    :param read: reads them into a folder that must not exist yet
    :param spelled: of some keys, with a column ``_version``, and the keys of a target those that the server takes for
        equal and that are spelled otherwise there; None where no key can be. It takes a folder that must not exist yet
    :param unchanged: all other rows, as T-SQL behind FROM; '' where nobody asks
    """

    after: Version
    read: Callable[[str], ChangedRows]
    spelled: Callable[[DataFrame, DataFrame, str], DataFrame | None]
    unchanged: str = ""


@dataclass(frozen=True, slots=True)
class CopyOrder:
    """A copy that is asked for.

    :param place: folder for its rows; of a source that can go on with a copy it may hold one that was begun
    :param capture_timeout: seconds to wait for the capture, where the run's time for copies has no end
    :param above: a copy that was begun below this is not gone on with
    :param beside: sinks that are loaded from here on want the changes up to the end: a copy that begins now is to
        begin there, where windows of the source end only where it is now; None where no sink does
    :param known: the copy that the checkpoint knows
    :param paused: the copy of which changes are kept, and no rows are read; '' for any; None for none
    :param conditions: that the rows fulfil; a copy of all rows is gone on with, too
    :param leaves_out: columns: where nearly all rows have the same values in them, only other rows are copied; empty
        where all are wanted
    :param changed: the rows that are wanted; None for all. Of columns that may be left out all are wanted unless all
        others have the same values in them
    """

    place: str
    capture_timeout: float
    time: CopyTime
    above: Position | None = None
    beside: Position | None = None
    known: KnownCopy | None = None
    paused: str | None = None
    conditions: tuple[Condition, ...] = ()
    leaves_out: tuple[str, ...] = ()
    changed: Changed | None = None

    @property
    def changed_after(self) -> Version | None:
        """The version after which the rows changed that are wanted; None for all."""
        return self.changed.after if self.changed is not None else None


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A copy that the next run goes on with.

    :param receipt: how far it is; the shapes that wait for it are not known here
    """

    receipt: CopyingReceipt
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Copy:
    """A table's rows as they were at some moments between two positions, and the events between these.

    :param id: names the copy in markers; '' for one that no later run goes on with
    :param files: of its chunks
    :param low: every change after it that the copy may lack is among the events
    :param high: every change that the copy may hold is captured up to it
    :param rows_copied: their number
    :param events: of the window from ``low`` to ``high``, with all images
    :param witnesses: of the moments before the copy, at its end and at ``high``
    :param conditions: that its rows fulfil, but for those that were read again; empty where it has all that are loaded
    :param again: the rows that were read by their keys; None if none were
    :param common: one row with what targets hold of the table's rows that were not copied; None where all were
    :param changed_after: it has no rows but those that changed after this version of Change Tracking; None where it has
        all
    """

    id: str
    files: Parquet
    low: Position
    high: Position
    rows_copied: int
    events: Staged
    witnesses: tuple[Witness, ...]
    warnings: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    again: RowsAgain | None = None
    common: Parquet | None = None
    changed_after: Version | None = None

    @property
    def window(self) -> Window:
        """The window of its events."""
        return Window(self.low, self.high)

    def rows(self) -> DataFrame:
        """The copied rows."""
        rows = self.files.rows()
        return rows if self.again is None else self.again.in_place(rows)
