"""A table by Change Tracking: exact where the database allows SNAPSHOT, else right once writers have come to rest."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from pyspark.sql import DataFrame

from airflow_provider_mssql_cdc.core.change_tracking import TrackedTable
from airflow_provider_mssql_cdc.core.columns import ColumnMapping, key_columns
from airflow_provider_mssql_cdc.core.copies import Hole
from airflow_provider_mssql_cdc.core.copy_wanted import AUTO, READ_COMMITTED, SNAPSHOT
from airflow_provider_mssql_cdc.core.exceptions import ConnectionSettingError, GapError
from airflow_provider_mssql_cdc.core.key import loose
from airflow_provider_mssql_cdc.core.lineage import CONVERGING, EXACT, VersionHistory, Witness
from airflow_provider_mssql_cdc.core.position import Position, Version, Window, is_gap
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.spark.copies.chunks import Chunks, table_scan
from airflow_provider_mssql_cdc.spark.copies.copy import Copy, CopyOrder
from airflow_provider_mssql_cdc.spark.files import Parquet
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.sources.base import SourceState
from airflow_provider_mssql_cdc.spark.sources.ct.changes import (
    LEVEL_OF_SNAPSHOTS,
    ReadChanges,
    StagedChanges,
    read_changes,
    together,
)
from airflow_provider_mssql_cdc.spark.sources.ct.slices import slices_of
from airflow_provider_mssql_cdc.spark.sources.ct.spellings import other_spellings
from airflow_provider_mssql_cdc.spark.sources.ct.state import TrackedState, check_columns, read_state
from airflow_provider_mssql_cdc.spark.staging import Staged

log = logging.getLogger(__name__)


class TrackedRows:
    """A table that Change Tracking tracks.

    Read under SNAPSHOT, the rows are those of one moment, and the position is the version of that moment as far as this
    table goes. Else a row may be newer than the position, which is the version of before the read: the next run reads
    it once more.

    :param connections: JDBC connections that it may open at once
    :param slice_rows: changed keys below which what changed is read by one statement
    :param chunk_rows: of the chunks of a copy, at least
    :param isolation: one of ``ISOLATIONS``
    :param salt: of hashes
    """

    def __init__(
        self,
        jdbc: Jdbc,
        table: TableSpec,
        mappings: Sequence[ColumnMapping],
        *,
        connections: int,
        slice_rows: int = 200_000,
        chunk_rows: int = 200_000,
        isolation: str = AUTO,
        salt: str | None = None,
    ) -> None:
        assert isinstance(table.feed, TrackedTable)
        self._jdbc, self._table, self._feed, self._mappings = jdbc, table, table.feed, mappings
        self._connections, self._slice_rows, self._chunk_rows, self._salt = connections, slice_rows, chunk_rows, salt
        self._isolation = isolation
        self._proven: dict[Version, Witness] = {}

    def state(self, witnesses: Collection[Witness] = ()) -> SourceState:
        """Read the versions: one statement."""
        found = read_state(self._jdbc, self._feed)
        return SourceState(
            found.min_valid, VersionHistory(found.current, tracking=found.since, seen=(*self._proven.values(),))
        )

    def low(self, state: SourceState) -> Position:
        """The newest version."""
        assert state.newest is not None
        return state.newest

    def read(self, windows: Sequence[Window], folder: str, *, before_images: bool) -> StagedChanges:
        """Read each window by a statement of its own."""
        read, proven = {}, {}
        for number, window in enumerate(windows):
            read[window], proven[window] = self._read(window.after, f"{folder}/{number}")
        check_columns(self._jdbc, self._table)
        return StagedChanges(read, proven)

    def _read(self, after: Position, folder: str) -> tuple[ReadChanges, Version]:
        """What changed after a version, and the version up to which that is all.

        Slices are each as new as they are. A statement behind them reads once more what has changed since before the
        first: then all is as of its moment.
        """
        # asked before: at or below the statements' own moments
        before = read_state(self._jdbc, self._feed)
        within = slices_of(self._jdbc, self._table, after, rows=self._slice_rows, most=self._connections)
        with ThreadPoolExecutor(len(within), thread_name_prefix="slice") as pool:
            read = [
                pool.submit(self._changes, before, after, f"{folder}/{number}", within=each)
                for number, each in enumerate(within)
            ]
            found = together([each.result() for each in read])
        if len(within) > 1 and self._by_snapshots(before):
            closing = self._changes(before, after, f"{folder}/closing", above=before.current)
            key = key_columns(self._table.schema, self._mappings)
            other = self._spelled_otherwise(closing, found.rows, f"{folder}/spelled")
            found = found.closed_by(closing, before.current, key, other)
        reached = before.current
        if self._by_snapshots(before) and found.newest is not None:
            # behind the newest of its rows the moment that was read shows no change of this table
            reached = max(reached, found.newest)
        self._proven[reached] = before.witness(reached, EXACT if self._by_snapshots(before) else CONVERGING)
        return found, reached

    def _changes(
        self, before: TrackedState, after: Position, folder: str, *, within: str = "", above: Position | None = None
    ) -> ReadChanges:
        """What one statement reads."""
        jdbc = self._by(before)
        found = read_changes(jdbc, self._table, self._mappings, after, folder, self._salt, within=within, above=above)
        if self._by_snapshots(before) and found.level != LEVEL_OF_SNAPSHOTS:
            raise ConnectionSettingError(
                f"a statement was to read one moment (SNAPSHOT), and ran by isolation level {found.level}.",
                table=str(self._table.name),
                advice="Take what sets another level out of the connection's JDBC properties.",
            )
        if is_gap(after, found.min_valid):
            advice = "They went while it was read: run the task again."
            raise GapError(str(self._table.name), after, found.min_valid, advice=advice)
        return found

    def _spelled_otherwise(self, changes: ReadChanges, known: DataFrame, folder: str) -> DataFrame | None:
        schema = self._table.schema
        if not loose(schema, schema.key):
            return None
        return other_spellings(self._jdbc, schema, self._mappings, changes.events(), known, folder)

    def respelled(self, staged: Staged, window: Window, known: Callable[[], DataFrame], folder: str) -> Staged:
        """With a delete of each key that the target spells otherwise than one that changed."""
        if not loose(self._table.schema, self._table.schema.key):
            return staged
        assert isinstance(staged, StagedChanges)
        read = staged.read[window]
        gone = self._spelled_otherwise(read, known(), folder)
        return replace(staged, read={**staged.read, window: replace(read, gone=gone)})

    def _by(self, state: TrackedState) -> Jdbc:
        return self._jdbc.by_snapshots() if self._by_snapshots(state) else self._jdbc

    def _by_snapshots(self, state: TrackedState) -> bool:
        """Whether each statement reads one moment.

        :raises ConnectionSettingError: where nothing else is wanted, and the database does not allow it
        """
        if self._isolation == SNAPSHOT and not state.by_snapshots:
            raise ConnectionSettingError(
                'isolation="snapshot", and the database does not allow it.',
                table=str(self._table.name),
                advice="ALTER DATABASE .. SET ALLOW_SNAPSHOT_ISOLATION ON, or write another isolation.",
            )
        return state.by_snapshots and self._isolation != READ_COMMITTED

    def copy(self, order: CopyOrder) -> Copy:
        """Copy the rows, in chunks that are each as new as they are, then read what has changed since the first."""
        before, place = read_state(self._jdbc, self._feed), f"{order.place}/{secrets.token_hex(6)}"
        low = before.current
        scan = table_scan(self._jdbc, self._table, snapshots=self._by_snapshots(before))
        parts = scan.parts if scan.rows >= self._chunk_rows else ()
        chunks = Chunks(self._by(before), self._table, self._mappings, parts, self._salt)
        until = chunks.highest() if parts else None
        with ThreadPoolExecutor(self._connections, thread_name_prefix="chunk") as pool:
            pieces = chunks.cut(Hole(None, None), lambda: self._chunk_rows, until)
            read = [pool.submit(chunks.read, piece, f"{place}/chunk{n}") for n, piece in enumerate(pieces)]
            found = [each.result() for each in read]
        files = Parquet(found[0].session, tuple(file for each in found for file in each.files), found[0].schema)
        changes, high = self._read(low, f"{place}/changes")
        check_columns(self._jdbc, self._table)
        window = Window(low, high)
        staged = StagedChanges({window: changes}, {window: high})
        events = self.respelled(staged, window, files.rows, f"{place}/spelled")
        return Copy("", files, low, high, files.rows().count(), events, (self._proven[high],))

    def read_again(self, keys: DataFrame) -> Copy:
        """Never asked for: rows come whole, by a key that the server enforces."""
        raise NotImplementedError

    def has_lost_copy(self) -> bool:
        """No other run reads a copy of this one."""
        return False

    def remove_copies(self, place: str) -> None:
        """None outlives its run."""

    def remove_copy(self) -> None:
        """Its rows go with those that are staged."""
