"""What a finished copy is to the sinks that begin with it."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.position import Position, Window
from airflow_provider_mssql_cdc.spark.files import Parquet
from airflow_provider_mssql_cdc.spark.staging import Staged


@dataclass(frozen=True, slots=True)
class Copy:
    """A table's rows as they were at some moments between two positions, and the events between these.

    :param id: names the copy in markers; '' for one that no later run goes on with
    :param low: every change after it that the copy may lack is among the events
    :param high: every change that the copy may hold is captured up to it
    :param rows_copied: their number
    :param events: of the window from ``low`` to ``high``, with all images
    :param witnesses: of the moments before the copy, at its end and at ``high``
    """

    id: str
    files: Parquet
    low: Position
    high: Position
    rows_copied: int
    events: Staged
    witnesses: tuple[Witness, ...]

    @property
    def window(self) -> Window:
        """The window of its events."""
        return Window(self.low, self.high)

    def rows(self) -> DataFrame:
        """The copied rows."""
        return self.files.rows()
