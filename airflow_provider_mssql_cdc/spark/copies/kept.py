"""The events of kept windows, joined."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.copies import KeptWindow, joined_windows
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.position import Position, Window
from airflow_provider_mssql_cdc.spark.copies.folder import CopyFolder
from airflow_provider_mssql_cdc.spark.files import Parquet
from airflow_provider_mssql_cdc.spark.staging import Counts, StagedOnce


@dataclasses.dataclass(frozen=True, slots=True)
class _Part:
    """The rows of one kept window that count.

    :param first: what is added to the numbers of its events
    """

    window: Window
    staged: StagedOnce
    first: int


class KeptEvents:
    """The events of windows that join, numbered in their order: a part of them is a window, too.

    :param low: of the copy
    :param kept: all entries of its folder
    :param gone: columns of targets that the source table has dropped since: no event names them
    """

    def __init__(
        self,
        session: SparkSession,
        folder: CopyFolder,
        low: Position,
        kept: Sequence[KeptWindow],
        gone: Sequence[str] = (),
    ) -> None:
        self._parts: list[_Part] = []
        self._gone = gone
        first = 0
        for after, entry in joined_windows(low, kept):
            files = Parquet.of(session, folder.files_of(entry), entry.columns)
            counted = {Window(entry.after, entry.upto): Counts(**entry.counts)}
            self._parts.append(_Part(Window(after, entry.upto), StagedOnce(files, counted), first))
            first += entry.numbers + 1
        self._whole = Window(low, self._parts[-1].window.upto if self._parts else low)

    def rows(self, window: Window) -> DataFrame:
        """The window's rows."""
        parts = self._within(window) or [(window, self._parts[0])]
        rows = [part.staged.rows(within).withColumn("_n", F.col("_n") + F.lit(part.first)) for within, part in parts]
        joined = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), rows)
        if not self._gone:
            return joined
        return joined.withColumn("_changed", F.array_except("_changed", F.array(*map(F.lit, self._gone))))

    def count(self, window: Window) -> Counts:
        """What a window holds."""
        return sum((part.staged.count(within) for within, part in self._within(window)), Counts())

    def total(self) -> Counts:
        """What all windows hold."""
        return self.count(self._whole)

    def holds(self, window: Window) -> bool:
        """Whether the windows join over all of it."""
        return self._whole.holds(window)

    def reached(self, window: Window) -> Position:
        """The window's end."""
        return window.upto

    def _within(self, window: Window) -> list[tuple[Window, _Part]]:
        found = []
        for part in self._parts:
            after, upto = max(window.after, part.window.after), min(window.upto, part.window.upto)
            if after < upto:
                found.append((Window(after, upto), part))
        return found


def kept_window(
    folder: CopyFolder, name: str, window: Window, staged: StagedOnce, witness: Witness | None
) -> KeptWindow:
    """The entry of a window whose events were staged into the copy's folder."""
    return KeptWindow(
        name,
        window.after,
        window.upto,
        folder.inside(name, staged.files.files),
        staged.files.schema.json(),
        dataclasses.asdict(staged.count(window)),
        staged.highest,
        witness,
        staged.is_whole,
    )
