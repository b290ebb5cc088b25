"""A table by its capture instance."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import reduce

from pyspark.sql import DataFrame

from airflow_provider_mssql_cdc.core.chunks import KeyPart
from airflow_provider_mssql_cdc.core.columns import ColumnMapping
from airflow_provider_mssql_cdc.core.conditions import Condition
from airflow_provider_mssql_cdc.core.copies import KeptWindow
from airflow_provider_mssql_cdc.core.copy_wanted import AUTO, READ_COMMITTED
from airflow_provider_mssql_cdc.core.exceptions import CaptureLagError
from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.passing import CaptureProgress, CopyEnd
from airflow_provider_mssql_cdc.core.position import Lsn, Position, Window, merged
from airflow_provider_mssql_cdc.core.spec import SinkSpec, TableSpec
from airflow_provider_mssql_cdc.spark.copies.chunks import Chunks, TableScan, table_scan
from airflow_provider_mssql_cdc.spark.copies.copied_table import CopiedTable
from airflow_provider_mssql_cdc.spark.copies.copy import CopyOrder
from airflow_provider_mssql_cdc.spark.copies.folder import CopyFolder
from airflow_provider_mssql_cdc.spark.copies.kept import KeptEvents
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.sources.base import SourceState
from airflow_provider_mssql_cdc.spark.sources.cdc.capture import captured_position
from airflow_provider_mssql_cdc.spark.sources.cdc.events import stage
from airflow_provider_mssql_cdc.spark.sources.cdc.low import copy_low
from airflow_provider_mssql_cdc.spark.sources.cdc.query import read_window
from airflow_provider_mssql_cdc.spark.sources.cdc.scan import check_scan
from airflow_provider_mssql_cdc.spark.sources.cdc.state import check_altered, check_columns, read_progress, read_state
from airflow_provider_mssql_cdc.spark.staging import Staged, StagedOnce


class CapturedTable(CopiedTable):
    """A table that is read from the change table of its capture instance.

    :param connections: JDBC connections that it may open at once
    :param slice_rows: change rows below which a window is read by one connection
    :param chunk_rows: of the first chunks of a copy, at least
    :param chunk_seconds: that a chunk is to take, which later ones are made for; None leaves them as they are
    :param isolation: by which copies read, one of ``ISOLATIONS``
    :param salt: of hashes
    :param sees_fork: whether the login is known to see the database's recovery fork
    """

    def __init__(
        self,
        jdbc: Jdbc,
        table: TableSpec,
        mappings: Sequence[ColumnMapping],
        *,
        connections: int,
        slice_rows: int,
        chunk_rows: int = 200_000,
        chunk_seconds: float | None = None,
        isolation: str = AUTO,
        salt: str | None = None,
        sees_fork: bool = False,
    ) -> None:
        assert isinstance(table.feed, CaptureInstance)
        self.jdbc, self.table, self.connections = jdbc, table, connections
        self.chunk_rows, self.chunk_seconds, self._isolation = chunk_rows, chunk_seconds, isolation
        self.feed: CaptureInstance = table.feed
        self._mappings = mappings
        self._slice_rows, self._salt, self._sees_fork = slice_rows, salt, sees_fork
        self._altered_upto, self._is_begun = table.altered_at or table.altered_upto, False

    def state(self, witnesses: Collection[Witness] = ()) -> SourceState:
        """Read the state: one statement, and one more where the change table was altered since the run was planned, or
        since a sink was loaded.
        """
        lsns = sorted({witness.lsn for witness in witnesses if isinstance(witness.lsn, Lsn)})
        state, self.feed, altered = read_state(self.jdbc, self.feed, lsns, sees_fork=self._sees_fork)
        if altered is not None:
            is_new = self._altered_upto is None or altered > self._altered_upto
            # a plan reads the columns before it reads the statements
            if is_new or (not self._is_begun and any(_is_behind(altered, sink) for sink in self.table.sinks)):
                # where there was no plan, the first look says what was there
                known = self._is_begun or self.table.altered_at is not None
                check_altered(self.jdbc, self.table, altered, meanwhile=is_new and known)
                self._altered_upto = altered
        self._is_begun = True
        return state

    def low(self, state: SourceState) -> Position:
        """The max LSN, or the position before min LSN where that is higher."""
        if state.readable_from is None or state.newest is None or state.newest <= state.readable_from:
            raise CaptureLagError(
                f"{self.feed} was just enabled, and nothing is captured yet.",
                table=str(self.table.name),
                advice="Run the task again; if it stays so, see whether SQL Server Agent and the capture job run.",
            )
        return max(state.readable_from, state.newest)

    def read(
        self, windows: Sequence[Window], folder: str, *, before_images: bool, connections: int | None = None
    ) -> StagedOnce:
        """Read the union of the windows once, in slices in LSN order.

        :param connections: by default all that there are
        """
        most = connections or self.connections
        whole = merged(windows)
        parts = [
            read_window(
                self.jdbc,
                self.feed,
                self.table.schema,
                self._mappings,
                window,
                history=before_images,
                slice_rows=self._slice_rows,
                connections=most,
                selection=self.table.selection,
            )
            for window in whole
        ]
        rows = reduce(DataFrame.unionAll, parts)
        return stage(
            # each partition reads over a connection of its own
            rows.coalesce(most) if len(parts) > 1 else rows,
            self.table.schema,
            self._mappings,
            list(dict.fromkeys([*windows, *whole])),
            folder,
            history=before_images,
            selection=self.table.selection,
            salt=self._salt,
        )

    def chunks(
        self, parts: Sequence[KeyPart], low: Position, scan: TableScan, conditions: Sequence[Condition] = ()
    ) -> Chunks:
        """The table's chunks.

        :param parts: what it is cut by
        :param low: of the copy: each server that is read from shows it
        :param scan: says how it can be read: by snapshots where the database allows it, else by the database's own
            option; by locks in the order of an index in which rows move only with a change that is captured
        :param conditions: that the rows fulfil beside those of the selection
        """
        by_locks = not (scan.by_versions or scan.by_snapshots)
        jdbc = self.jdbc.showing(low, by_snapshots=scan.by_snapshots)
        pin = scan.pin if by_locks else None
        return Chunks(jdbc, self.table, self._mappings, parts, self._salt, pin, conditions)

    def respelled(
        self, staged: Staged, window: Window, known: Callable[[], DataFrame], folder: str, *, is_sure: bool | None
    ) -> Staged:
        """The same: an image says how the key was spelled before."""
        return staged

    def scan(self) -> TableScan:
        """How the table can be scanned, so that no row moves without a change that is captured."""
        scan = table_scan(self.jdbc, self.table, snapshots=self._isolation != READ_COMMITTED)
        check_scan(self.table.name, scan, self._isolation)
        return scan

    def copy_low(self, state: SourceState, scan: TableScan, order: CopyOrder) -> Position:
        """The position before what is read now, below commits that row versions may not show yet."""
        by_versions, newest = scan.by_versions or scan.by_snapshots, self.low(state)
        return copy_low(self.jdbc, self.feed, state.readable_from, newest, order, by_versions=by_versions)

    def progress(self) -> CaptureProgress:
        """How far the capture is."""
        return read_progress(self.jdbc)

    def passed(self, ends: Sequence[CopyEnd], timeout: float) -> Position:
        """Wait until the capture has passed some ends; its newest position then."""
        return captured_position(self.jdbc, self.feed, ends, timeout)

    def keep(self, window: Window, folder: str, *, connections: int | None = None) -> tuple[Window, StagedOnce]:
        """Read the window, with all images."""
        return window, self.read([window], folder, before_images=True, connections=connections)

    def kept_events(
        self,
        folder: CopyFolder,
        low: Position,
        kept: Sequence[KeptWindow],
        gone: Sequence[str],
        copied: Callable[[], DataFrame],
    ) -> Staged:
        """The events of the windows, of which any part is a window, too."""
        return KeptEvents(self.jdbc.session, folder, low, kept, gone)

    def check_columns(self) -> None:
        """Prove that the captured columns are still those that were planned."""
        check_columns(self.jdbc, self.table)


def _is_behind(altered: Position, sink: SinkSpec) -> bool:
    """Whether a sink was last loaded with columns of before a statement, or never."""
    return sink.expects is None or altered > max(sink.expects, sink.ddl_upto or sink.expects)
