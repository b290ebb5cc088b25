"""Events in Parquet files, numbered in their order, and counted by window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from airflow_provider_mssql_cdc.core.position import Window
from airflow_provider_mssql_cdc.spark.files import Parquet, write_rows


@dataclass(frozen=True, slots=True)
class Counts:
    """What a window holds, by operation.

    :param unknown: rows with a LOB whose value CDC left out
    :param moved: images of updates that changed the key
    """

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    unknown: int = 0
    moved: int = 0

    @property
    def events(self) -> int:
        """The number of changes; an update is one, though it may have two images."""
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True, slots=True)
class Staged:
    """The staged rows of one table.

    :param counts: of each window asked for
    """

    files: Parquet
    counts: Mapping[Window, Counts]

    def rows(self, window: Window) -> DataFrame:
        """Return the window's rows, in no promised order; ``_n`` gives it."""
        return self.files.rows().where(within(window))

    def count(self, window: Window) -> Counts:
        """Return what a window holds, which may be part of what was staged."""
        if window not in self.counts:
            row = self.rows(window).agg(*_counters("", F.lit(True), self.files.schema)).collect()[0]
            return Counts(*row)
        return self.counts[window]


def within(window: Window) -> Column:
    """The condition that a row lies in the window."""
    position = F.col(f"_{window.upto.KIND}")
    return (position > window.after.sort_key) & (position <= window.upto.sort_key)


def staged(events: DataFrame, windows: Sequence[Window], folder: str) -> Staged:
    """Write events to Parquet, and count each window.

    :param events: with ``_n``, which grows in their order, ``_op`` and the column of positions
    :param folder: must not exist yet
    """
    files = write_rows(events, folder)
    return Staged(files, _counts(files, windows))


def _counts(files: Parquet, windows: Sequence[Window]) -> dict[Window, Counts]:
    """Count all windows in one pass over what was staged: cheaper than counting each row as it is written."""
    if not windows:
        return {}
    counters = [
        counter
        for number, window in enumerate(windows)
        # one window is all that was staged
        for counter in _counters(f"{number}_", within(window) if len(windows) > 1 else F.lit(True), files.schema)
    ]
    found = files.rows().agg(*counters).collect()[0]
    return {
        window: Counts(*(found[f"{number}_{name}"] for name in Counts.__dataclass_fields__))
        for number, window in enumerate(windows)
    }


def _counters(prefix: str, condition: Column, schema: StructType) -> list[Column]:
    op = F.col("_op")
    unknown = F.size("_unknown") > 0 if "_unknown" in schema.names else F.lit(False)
    moved = F.col("_moved") if "_moved" in schema.names else F.lit(False)
    kinds = {"inserted": op == "I", "updated": op == "U", "deleted": op == "D", "unknown": unknown, "moved": moved}
    return [F.count_if(condition & kind).alias(prefix + name) for name, kind in kinds.items()]
