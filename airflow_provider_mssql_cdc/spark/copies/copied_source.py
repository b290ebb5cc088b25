"""What a copy asks of the table that it copies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from pyspark.sql import DataFrame

from airflow_provider_mssql_cdc.core.chunks import KeyPart
from airflow_provider_mssql_cdc.core.conditions import Condition
from airflow_provider_mssql_cdc.core.copies import KeptWindow
from airflow_provider_mssql_cdc.core.feed import Feed
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.passing import CaptureProgress, CopyEnd
from airflow_provider_mssql_cdc.core.position import Position, Window
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.spark.copies.chunks import Chunks, TableScan
from airflow_provider_mssql_cdc.spark.copies.copy import CopyOrder
from airflow_provider_mssql_cdc.spark.copies.folder import CopyFolder
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.sources.base import SourceState
from airflow_provider_mssql_cdc.spark.staging import Staged, StagedOnce


class CopiedSource(Protocol):
    """What a copy asks of its table.

    :ivar connections: JDBC connections that it may open at once
    :ivar chunk_rows: of the first chunks, at least
    :ivar chunk_seconds: that a chunk is to take, which later ones are made for; None leaves them as they are
    """

    jdbc: Jdbc
    table: TableSpec
    feed: Feed
    connections: int
    chunk_rows: int
    chunk_seconds: float | None

    def state(self, witnesses: Collection[Witness] = ()) -> SourceState:
        """Read the state."""

    def scan(self) -> TableScan:
        """How the table can be scanned.

        :raises CopyRefusedError: if rows may be missing then, and no change would tell
        """

    def copy_low(self, state: SourceState, scan: TableScan, order: CopyOrder) -> Position:
        """The position before what is read now: every change that a read may lack comes after it."""

    def chunks(
        self, parts: Sequence[KeyPart], low: Position, scan: TableScan, conditions: Sequence[Condition] = ()
    ) -> Chunks:
        """The table's chunks."""

    def progress(self) -> CaptureProgress | None:
        """How far the capture is; None where changes can be read once they are committed."""

    def passed(self, ends: Sequence[CopyEnd], timeout: float) -> Position | None:
        """Wait until all that was committed before some reads ended can be read, and the newest position then; None
        where nothing is waited for: what is read next has all that.

        :raises CaptureLagError: if that lasts longer than ``timeout`` seconds
        """

    def keep(self, window: Window, folder: str, *, connections: int | None = None) -> tuple[Window, StagedOnce]:
        """Read what changed in a window, to be kept beside chunks, and the window that this proves.

        :param folder: for the rows; must not exist yet
        :param connections: by default all that there are
        """

    def kept_events(
        self,
        folder: CopyFolder,
        low: Position,
        kept: Sequence[KeptWindow],
        gone: Sequence[str],
        copied: Callable[[], DataFrame],
    ) -> Staged:
        """What kept windows hold together.

        :param low: of the copy
        :param gone: columns of targets that the source table has dropped since
        :param copied: the copied rows
        """

    def check_columns(self) -> None:
        """Prove that the columns are still those that were planned.

        :raises SchemaChangedError: with what differs
        """
