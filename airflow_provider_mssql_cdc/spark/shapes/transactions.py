"""``transactions``: a row for each transaction that changed the source table, with the number of its events."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import TRAN_ID
from airflow_provider_mssql_cdc.core.marker import Gap
from airflow_provider_mssql_cdc.core.position import Window
from airflow_provider_mssql_cdc.spark.shapes.base import Beginning, SinkRows
from airflow_provider_mssql_cdc.spark.shapes.fold import tran_id
from airflow_provider_mssql_cdc.spark.staging import Staged
from airflow_provider_mssql_cdc.spark.targets import Write


class Transactions(SinkRows):
    """One row per transaction; it begins with the events."""

    def added_values(self, rows: DataFrame) -> dict[str, Column]:
        """The transaction's id."""
        return {"_tran_id": tran_id(rows)}

    def first(self, begun: Beginning, target_rows: DataFrame) -> Write:
        """The transactions since its low."""
        if begun.staged is None or begun.window.is_empty:
            return Write(target_rows.limit(0))
        return Write(self.rows(begun.window, begun.staged))

    def next(self, window: Window, staged: Staged, target_rows: DataFrame, gaps: Sequence[Gap]) -> Write:
        """The window's transactions."""
        return Write(self.rows(window, staged))

    def newest(self, target_rows: DataFrame) -> str | int | None:
        """The newest transaction."""
        newest: str | int | None = target_rows.agg(F.max(self.table.position)).collect()[0][0]
        return newest

    def rows(self, window: Window, staged: Staged) -> DataFrame:
        """A row for each transaction of the window that changed the table."""
        kinds = {"inserted": "I", "updated": "U", "deleted": "D"}
        counted = {name: F.count_if(F.col("_op") == kind).alias(name) for name, kind in kinds.items()}
        same = [F.min(name).alias(name) for name in ("_commit_ts", TRAN_ID)]
        rows = self.table.read(staged, window).groupBy(self.table.position).agg(*same, *counted.values())
        name = self.table.spec.name
        return rows.withColumns(
            {
                "_commit_ts_utc": self.table.commit_ts_utc,
                "schema": F.lit(name.schema),
                "table": F.lit(name.table),
                "events": F.col("inserted") + F.col("updated") + F.col("deleted"),
            }
        )
