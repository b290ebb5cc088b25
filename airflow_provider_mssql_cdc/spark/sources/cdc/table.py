"""A table by its capture instance."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from functools import reduce

from pyspark.sql import DataFrame

from airflow_provider_mssql_cdc.core.columns import ColumnMapping
from airflow_provider_mssql_cdc.core.exceptions import CaptureLagError
from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.passing import CopyEnd
from airflow_provider_mssql_cdc.core.position import Lsn, Position, Window, merged
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.spark.copying import Copy, copy_rows
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.sources.base import SourceState
from airflow_provider_mssql_cdc.spark.sources.cdc.capture import captured_position
from airflow_provider_mssql_cdc.spark.sources.cdc.events import stage
from airflow_provider_mssql_cdc.spark.sources.cdc.low import copy_low
from airflow_provider_mssql_cdc.spark.sources.cdc.query import read_window
from airflow_provider_mssql_cdc.spark.sources.cdc.state import check_columns, read_progress, read_state
from airflow_provider_mssql_cdc.spark.staging import Staged


class CapturedTable:
    """A table that is read from the change table of its capture instance.

    :param connections: JDBC connections that it may open at once
    :param slice_rows: change rows below which a window is read by one connection
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
        salt: str | None = None,
        sees_fork: bool = False,
    ) -> None:
        assert isinstance(table.feed, CaptureInstance)
        self._jdbc, self._table, self._feed, self._mappings = jdbc, table, table.feed, mappings
        self._connections, self._slice_rows, self._salt = connections, slice_rows, salt
        self._sees_fork = sees_fork

    def state(self, witnesses: Collection[Witness] = ()) -> SourceState:
        """Read the state: one statement."""
        lsns = sorted({witness.lsn for witness in witnesses if isinstance(witness.lsn, Lsn)})
        state, self._feed = read_state(self._jdbc, self._feed, lsns, sees_fork=self._sees_fork)
        return state

    def low(self, state: SourceState) -> Position:
        """The max LSN, or the position before min LSN where that is higher."""
        if state.readable_from is None or state.newest is None or state.newest <= state.readable_from:
            raise CaptureLagError(
                f"{self._feed} was just enabled, and nothing is captured yet.",
                table=str(self._table.name),
                advice="Run the task again; if it stays so, see whether SQL Server Agent and the capture job run.",
            )
        return max(state.readable_from, state.newest)

    def read(self, windows: Sequence[Window], folder: str, *, before_images: bool) -> Staged:
        """Read the union of the windows once, in slices in LSN order."""
        whole = merged(windows)
        parts = [
            read_window(
                self._jdbc,
                self._feed,
                self._table.schema,
                self._mappings,
                window,
                history=before_images,
                slice_rows=self._slice_rows,
                connections=self._connections,
                selection=self._table.selection,
            )
            for window in whole
        ]
        rows = reduce(DataFrame.unionAll, parts)
        return stage(
            # each partition reads over a connection of its own
            rows.coalesce(self._connections) if len(parts) > 1 else rows,
            self._table.schema,
            self._mappings,
            list(dict.fromkeys([*windows, *whole])),
            folder,
            history=before_images,
            selection=self._table.selection,
            salt=self._salt,
        )

    def copy(self, folder: str, timeout: float) -> Copy:
        """Copy the rows, and wait until the capture has passed the end of that."""
        before = self.state()
        low = copy_low(self._jdbc, self._feed, before.readable_from, self.low(before), timeout)
        begun, begin = time.monotonic(), read_progress(self._jdbc)
        files = copy_rows(
            self._jdbc,
            self._table,
            self._mappings,
            folder,
            slice_rows=self._slice_rows,
            connections=self._connections,
            salt=self._salt,
        )
        end = read_progress(self._jdbc)
        copy_end = CopyEnd(begin, end, time.monotonic() - begun)
        high, newest = captured_position(self._jdbc, self._feed, copy_end, timeout)
        # events up to the end would lack values
        check_columns(self._jdbc, self._table)
        seen = before.lineage.witnesses()
        fork = seen[0].recovery_fork if seen else None
        times = ((end.max_lsn, end.max_time), (high, newest))
        later = [Witness(lsn, time, fork) for lsn, time in times if lsn and time]
        return Copy(files, low, high, files.rows().count(), (*seen, *later))
