"""What a copy asks of the table that it copies."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from airflow_provider_mssql_cdc.core.chunks import KeyPart
from airflow_provider_mssql_cdc.core.conditions import Condition
from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.position import Position, Window
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.spark.copies.chunks import Chunks, TableScan
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.sources.base import SourceState
from airflow_provider_mssql_cdc.spark.staging import StagedOnce


class CopiedSource(Protocol):
    """What a copy asks of its table."""

    jdbc: Jdbc
    table: TableSpec
    feed: CaptureInstance
    connections: int
    chunk_rows: int
    chunk_seconds: float | None
    isolation: str

    def state(self, witnesses: Collection[Witness] = ()) -> SourceState:
        """Read the state."""

    def low(self, state: SourceState) -> Position:
        """The position before what begins now."""

    def read(
        self, windows: Sequence[Window], folder: str, *, before_images: bool, connections: int | None = None
    ) -> StagedOnce:
        """Stage windows."""

    def chunks(
        self, parts: Sequence[KeyPart], low: Position, scan: TableScan, conditions: Sequence[Condition] = ()
    ) -> Chunks:
        """The table's chunks."""
