"""A shape of a test's own: for each key how often it changed, and its last operation."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import TEMPORARY, TargetColumn
from airflow_provider_mssql_cdc.core.marker import LAYOUT, Gap
from airflow_provider_mssql_cdc.core.position import Window
from airflow_provider_mssql_cdc.core.shapes import Shape
from airflow_provider_mssql_cdc.spark.shapes.base import Beginning, SinkRows
from airflow_provider_mssql_cdc.spark.shapes.fold import column, renamed, same_key
from airflow_provider_mssql_cdc.spark.staging import Staged
from airflow_provider_mssql_cdc.spark.targets import OldRows, Write

_LAST_TIME = f"{TEMPORARY}last_time"

TALLIES = Shape(
    "tallies",
    f"{__name__}:Tallies",
    lambda position: {"_changes": "BIGINT", "_last_op": "STRING", f"_last_{position.KIND}": position.COLUMN_TYPE},
    {2: {"_last_ts": "TIMESTAMP_NTZ"}},
    suffix="_tallies",
    has_data=False,
    begins_with_rows=False,
    needs_every_change=True,
)


class Tallies(SinkRows):
    """One row per key that has changed since the load began."""

    def columns(self, layout: int = LAYOUT) -> tuple[TargetColumn, ...]:
        """The key's columns, and the tally."""
        key = (target for target in self.table.data_columns if target.name in self.table.key)
        return (*key, *super().columns(layout))

    def added_values(self, rows: DataFrame) -> dict[str, Column]:
        """The time of the last change."""
        return {"_last_ts": F.col(_LAST_TIME)}

    def first(self, begun: Beginning, target_rows: DataFrame) -> Write:
        """The tally of what came since its low."""
        if begun.staged is None:
            return Write(target_rows.limit(0).withColumn(_LAST_TIME, F.col("_last_ts")))
        return Write(self._tally(begun.window, begun.staged))

    def next(self, window: Window, staged: Staged, target_rows: DataFrame, gaps: Sequence[Gap]) -> Write:
        """The tally of the keys that changed, with what it was before."""
        before = target_rows.select(*renamed(self.table.key), F.col("_changes").alias("_before"))
        rows = self._tally(window, staged).join(before, same_key(self.table.key), "left")
        rows = rows.withColumn("_changes", F.col("_changes") + F.coalesce("_before", F.lit(0))).withColumn(
            "_op", F.lit("U")
        )
        return Write(rows, self.table.key, OldRows.OF_KEY)

    def _tally(self, window: Window, staged: Staged) -> DataFrame:
        events, last = staged.rows(window).where("_op != 'B'"), f"_last{self.table.position}"
        counted = [
            F.count("*").alias("_changes"),
            F.max_by("_op", "_n").alias("_last_op"),
            F.max_by("_commit_ts", "_n").alias(_LAST_TIME),
        ]
        return events.groupBy(*map(column, self.table.key)).agg(*counted, F.max(self.table.position).alias(last))
