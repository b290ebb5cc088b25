"""Events in Parquet files, numbered in their order, and counted by window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from airflow_provider_mssql_cdc.core.position import Position, Window, merged
from airflow_provider_mssql_cdc.spark.files import Parquet, write_rows


@dataclass(frozen=True, slots=True)
class Counts:
    """What a window holds, by operation.

    :param unknown: rows with a LOB whose value CDC left out
    :param key_changed: images of updates that changed the key
    :param untold: deletes that no change tells of: 1 where there may be some
    """

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    unknown: int = 0
    key_changed: int = 0
    untold: int = 0

    @property
    def events(self) -> int:
        """The number of changes; an update is one, though it may have two images."""
        return self.inserted + self.updated + self.deleted + self.untold

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))


class Staged(Protocol):
    """The staged rows of one table: events in an order, ``_n``, with ``_op`` and the column of positions."""

    def rows(self, window: Window) -> DataFrame:
        """The window's rows, in no promised order; ``_n`` gives it."""

    def count(self, window: Window) -> Counts:
        """What a window holds."""

    def total(self) -> Counts:
        """What all windows that were asked for hold, each change once. It reads nothing."""

    def holds(self, window: Window) -> bool:
        """Whether the window's rows are there, as those of a window of its own."""

    def reached(self, window: Window) -> Position:
        """The position that the window's rows really prove: its end, or one above it."""


@dataclass(frozen=True, slots=True)
class StagedOnce:
    """Each change once, whatever windows ask for it: any part of what was staged is a window, too.

    :param counts: of each window asked for
    :param highest: the largest ``_n`` of its rows
    :param is_whole: all rows that the table has are among them: none of before is left
    """

    files: Parquet
    counts: Mapping[Window, Counts]
    highest: int = 0
    is_whole: bool = False

    def rows(self, window: Window) -> DataFrame:
        """The window's rows."""
        return self.files.rows().where(within(window))

    def total(self) -> Counts:
        """What all windows hold: those that cover the others."""
        total = Counts()
        for window in merged([*self.counts]):
            total += self.counts[window]
        return total

    def holds(self, window: Window) -> bool:
        """Whether a window that was asked for holds this one."""
        return any(asked.holds(window) for asked in self.counts)

    def reached(self, window: Window) -> Position:
        """The window's end."""
        return window.upto

    def count(self, window: Window) -> Counts:
        """What a window holds, which may be part of what was staged."""
        if window not in self.counts:
            row = self.rows(window).agg(*_counters("", F.lit(True), self.files.schema)).collect()[0]
            return Counts(*row)
        return self.counts[window]


def within(window: Window) -> Column:
    """The condition that a row lies in the window."""
    position = F.col(f"_{window.upto.KIND}")
    return (position > window.after.sort_key) & (position <= window.upto.sort_key)


def staged(events: DataFrame, windows: Sequence[Window], folder: str) -> StagedOnce:
    """Write events to Parquet, and count each window.

    :param events: with ``_n``, which grows in their order, ``_op`` and the column of positions
    :param folder: must not exist yet
    """
    files = write_rows(events, folder)
    return _counted(files, windows)


def _counted(files: Parquet, windows: Sequence[Window]) -> StagedOnce:
    """Count all windows in one pass over what was staged: cheaper than counting each row as it is written."""
    counters = [
        counter
        for number, window in enumerate(windows)
        # one window is all that was staged
        for counter in _counters(f"{number}_", within(window) if len(windows) > 1 else F.lit(True), files.schema)
    ]
    found = files.rows().agg(F.max("_n").alias("highest"), *counters).collect()[0]
    counts = {
        window: Counts(*(found[f"{number}_{name}"] for name in Counts.__dataclass_fields__))
        for number, window in enumerate(windows)
    }
    return StagedOnce(files, counts, found["highest"] or 0)


def _counters(prefix: str, condition: Column, schema: StructType) -> list[Column]:
    op = F.col("_op")
    unknown = F.size("_unknown") > 0 if "_unknown" in schema.names else F.lit(False)
    key_changed = F.col("_key_changed") if "_key_changed" in schema.names else F.lit(False)
    kinds = {
        "inserted": op == "I",
        "updated": op == "U",
        "deleted": op == "D",
        "unknown": unknown,
        "key_changed": key_changed,
        "untold": F.lit(False),
    }
    return [F.count_if(condition & kind).alias(prefix + name) for name, kind in kinds.items()]
