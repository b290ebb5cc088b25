"""A table by Change Tracking: exact where the database allows SNAPSHOT, else right once writers have come to rest."""

from __future__ import annotations

import datetime
import logging
import secrets
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core import tracked_catalog
from airflow_provider_mssql_cdc.core.change_tracking import TrackedTable
from airflow_provider_mssql_cdc.core.chunks import KeyPart
from airflow_provider_mssql_cdc.core.columns import ColumnMapping, key_columns
from airflow_provider_mssql_cdc.core.conditions import Condition
from airflow_provider_mssql_cdc.core.copies import KeptWindow, joined_windows
from airflow_provider_mssql_cdc.core.copy_wanted import AUTO, READ_COMMITTED, SNAPSHOT
from airflow_provider_mssql_cdc.core.exceptions import CommitConflictError, ConnectionSettingError, GapError
from airflow_provider_mssql_cdc.core.key import loose
from airflow_provider_mssql_cdc.core.lineage import CONVERGING, EXACT, VersionHistory, Witness
from airflow_provider_mssql_cdc.core.passing import CopyEnd
from airflow_provider_mssql_cdc.core.position import Position, Version, Window, is_gap
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.spark.copies.chunks import Chunks, TableScan, table_scan
from airflow_provider_mssql_cdc.spark.copies.copied_table import CopiedTable
from airflow_provider_mssql_cdc.spark.copies.copy import CopyOrder
from airflow_provider_mssql_cdc.spark.copies.folder import CopyFolder
from airflow_provider_mssql_cdc.spark.files import Parquet, remove, write_rows
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.shapes.fold import by_keys_of, column
from airflow_provider_mssql_cdc.spark.sources.base import SourceState
from airflow_provider_mssql_cdc.spark.sources.ct.changes import (
    LEVEL_OF_SNAPSHOTS,
    ReadChanges,
    StagedChanges,
    counted,
    lettered,
    newest_of,
    read_changes,
    replaced,
    together,
)
from airflow_provider_mssql_cdc.spark.sources.ct.slices import slices_of
from airflow_provider_mssql_cdc.spark.sources.ct.spellings import other_spellings
from airflow_provider_mssql_cdc.spark.sources.ct.state import (
    TrackedState,
    check_columns,
    read_commits,
    read_state,
    read_times,
)
from airflow_provider_mssql_cdc.spark.staging import Staged, StagedOnce

log = logging.getLogger(__name__)


class TrackedRows(CopiedTable):
    """A table that Change Tracking tracks.

    Read under SNAPSHOT, the rows are those of one moment, and the position is the version of that moment as far as this
    table goes. Else a row may be newer than the position, which is the version of before the read: the next run reads
    it once more.

    :param connections: JDBC connections that it may open at once
    :param slice_rows: changed keys below which what changed is read by one statement
    :param chunk_rows: of the first chunks of a copy, at least
    :param chunk_seconds: that a chunk is to take, which later ones are made for; None leaves them as they are
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
        chunk_seconds: float | None = None,
        isolation: str = AUTO,
        salt: str | None = None,
    ) -> None:
        assert isinstance(table.feed, TrackedTable)
        self.jdbc, self.table, self.mappings = jdbc, table, mappings
        self.feed: TrackedTable = table.feed
        self.connections, self.chunk_rows, self.chunk_seconds = connections, chunk_rows, chunk_seconds
        self._slice_rows, self._salt, self._isolation = slice_rows, salt, isolation
        self._proven: dict[Version, Witness] = {}

    @property
    def planned(self) -> Witness:
        """What tells the tracking that was planned for from another one."""
        return Witness(Version(0), datetime.datetime.min, tracking=self.feed.since)

    @property
    def key(self) -> tuple[str, ...]:
        """The target columns that identify a row."""
        return key_columns(self.table.schema, self.mappings)

    def state(self, witnesses: Collection[Witness] = ()) -> SourceState:
        """Read the versions: one statement, and one more about the commits of witnesses."""
        found = read_state(self.jdbc, self.feed)
        known = {w.tracking.commit.version for w in witnesses if w.tracking is not None and w.tracking.commit}
        commits, min_commit = read_commits(self.jdbc, known) if known else ({}, None)
        seen = {found.current: found.witness(found.current, ""), **self._proven}
        lineage = VersionHistory(
            found.current, tracking=found.since, seen=(*seen.values(),), commits=commits, min_commit=min_commit
        )
        return SourceState(found.min_valid, lineage)

    def low(self, state: SourceState) -> Position:
        """The newest version."""
        assert state.newest is not None
        return state.newest

    def read(self, windows: Sequence[Window], folder: str, *, before_images: bool) -> StagedChanges:
        """Read each window by a statement of its own."""
        read, proven = {}, {}
        for number, window in enumerate(windows):
            read[window], proven[window] = self._read(window.after, f"{folder}/{number}")
            if before_images:
                whole = Window(window.after, proven[window])
                times = self._times(whole, read[window].rows, f"{folder}/{number}-times")
                read[window] = replace(read[window], times=times)
        check_columns(self.jdbc, self.table)
        return StagedChanges(read, proven)

    def _read(self, after: Position, folder: str, connections: int | None = None) -> tuple[ReadChanges, Version]:
        """What changed after a version, and the version up to which that is all.

        Where the version is the lowest valid one, a TRUNCATE may have come first, which no change tells of. It has left
        no row that is unchanged since. So where there is none, what has changed by then is all that the table has.
        """
        found, reached = self._read_once(after, folder, connections)
        if found.min_valid == after and not self._has_untouched(after):
            found, reached = self._read_once(after, f"{folder}-whole", connections)
            # where no change is left either, a target may yet have rows
            counts = found.counts if found.counts.events else replace(found.counts, untold=1)
            found = replace(found, counts=counts, is_whole=True)
        held = self._has_rows() if found.min_valid == reached else None
        commit = next(iter(read_commits(self.jdbc, upto=reached)[0].values()), None)
        witness = self._proven[reached]
        assert witness.tracking is not None
        self._proven[reached] = replace(witness, tracking=replace(witness.tracking, held=held, commit=commit))
        return found, reached

    def _times(self, window: Window, changes: DataFrame, folder: str) -> DataFrame | None:
        """The times of the commits of a window that was read; None where the login does not see them."""
        witness = self._proven[Version.of(window.upto)]
        if window.is_empty or witness.tracking is None or witness.tracking.commit is None:
            return None
        return write_rows(read_times(self.jdbc, window, changes), folder).rows()

    def _has_untouched(self, since: Position) -> bool:
        statement = tracked_catalog.untouched(self.table.name, self.feed.primary_key, str(since.sort_key))
        return bool(self.jdbc.rows(statement, "found INT"))

    def _has_rows(self) -> bool:
        return bool(self.jdbc.rows(f"SELECT TOP (1) 1 AS found FROM {self.table.name.quoted}", "found INT"))

    def _read_once(self, after: Position, folder: str, connections: int | None) -> tuple[ReadChanges, Version]:
        """What changed after a version, and the version up to which that is all.

        Slices are each as new as they are. A statement behind them reads once more what has changed since before the
        first: then all is as of its moment.
        """
        # asked before: at or below the statements' own moments
        before = read_state(self.jdbc, self.feed)
        most = connections or self.connections
        within = slices_of(self.jdbc, self.table, after, rows=self._slice_rows, most=most)
        with ThreadPoolExecutor(len(within), thread_name_prefix="slice") as pool:
            read = [
                pool.submit(self._changes, before, after, f"{folder}/{number}", within=each)
                for number, each in enumerate(within)
            ]
            found = together([each.result() for each in read])
        if len(within) > 1 and self._by_snapshots(before):
            closing = self._changes(before, after, f"{folder}/closing", above=before.current)
            key = self.key
            other = self.spelled_otherwise(closing.rows, found.rows, f"{folder}/spelled")
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
        found = read_changes(jdbc, self.table, self.mappings, after, folder, self._salt, within=within, above=above)
        if self._by_snapshots(before) and found.level != LEVEL_OF_SNAPSHOTS:
            raise ConnectionSettingError(
                f"a statement was to read one moment (SNAPSHOT), and ran by isolation level {found.level}.",
                table=str(self.table.name),
                advice="Take what sets another level out of the connection's JDBC properties.",
            )
        if is_gap(after, found.min_valid):
            advice = "They went while it was read: run the task again."
            raise GapError(str(self.table.name), after, found.min_valid, advice=advice)
        return found

    def spelled_otherwise(self, changes: DataFrame, known: DataFrame, folder: str) -> DataFrame | None:
        """Keys that are known and that the changes spell otherwise; None where no key can be."""
        schema = self.table.schema
        if not loose(schema, schema.key):
            return None
        return other_spellings(self.jdbc, schema, self.mappings, changes, known, folder)

    def respelled(
        self, staged: Staged, window: Window, known: Callable[[], DataFrame], folder: str, *, is_sure: bool | None
    ) -> StagedChanges:
        """With a delete of each key that the target spells otherwise than one that changed, or that is gone; and with
        inserts and updates by what the target has, where the letters do not tell.
        """
        assert isinstance(staged, StagedChanges)
        read, key = staged.of(window), self.key
        hides, is_net, rows = bool(self.table.selection.conditions), read.is_net, read.rows
        if not is_net and is_sure is False:
            raise CommitConflictError(
                f"{window} was read in parts, and the target does not tell which keys were there.",
                table=str(self.table.name),
                advice="Nothing was loaded into it. Run the task again.",
            )
        if is_sure and (hides or not is_net):
            rows = lettered(rows, known(), key, hides=hides, has_columns=is_net)
        proven = Version.of(staged.reached(window))
        found = replace(read, rows=rows, gone=self._gone(read, proven, known, folder))
        return StagedChanges({**staged.read, window: found}, {**staged.proven, window: proven})

    def _gone(
        self, read: ReadChanges, reached: Position, known: Callable[[], DataFrame], folder: str
    ) -> DataFrame | None:
        """The keys that are known, and that no change names though they went; None where there can be none."""
        key = self.key
        if read.is_whole:
            left = by_keys_of(known().select(*map(column, key)), read.rows, key, "left_anti")
            return left.withColumn("_version", F.lit(reached.sort_key))
        if loose(self.table.schema, self.table.schema.key):
            return self.spelled_otherwise(read.rows, known(), folder)
        return None

    def _by(self, state: TrackedState) -> Jdbc:
        return self.jdbc.by_snapshots() if self._by_snapshots(state) else self.jdbc

    def _by_snapshots(self, state: TrackedState) -> bool:
        """Whether each statement reads one moment.

        :raises ConnectionSettingError: where nothing else is wanted, and the database does not allow it
        """
        if self._isolation == SNAPSHOT and not state.by_snapshots:
            raise ConnectionSettingError(
                'isolation="snapshot", and the database does not allow it.',
                table=str(self.table.name),
                advice="ALTER DATABASE .. SET ALLOW_SNAPSHOT_ISOLATION ON, or write another isolation.",
            )
        return state.by_snapshots and self._isolation != READ_COMMITTED

    def scan(self) -> TableScan:
        """How the table can be scanned: each row that moves meanwhile is one that changed.

        :raises ConnectionSettingError: as of a read
        """
        self._by_snapshots(read_state(self.jdbc, self.feed))
        return table_scan(self.jdbc, self.table, snapshots=self._isolation != READ_COMMITTED)

    def copy_low(self, state: SourceState, scan: TableScan, order: CopyOrder) -> Position:
        """The newest version; one below it, behind which sinks want the changes of meanwhile."""
        low = self.low(state)
        if order.beside is None or is_gap(order.beside, state.readable_from):
            return low
        return min(low, order.beside)

    def chunks(
        self, parts: Sequence[KeyPart], low: Position, scan: TableScan, conditions: Sequence[Condition] = ()
    ) -> Chunks:
        """The table's chunks, each as new as it is."""
        jdbc = self.jdbc.by_snapshots() if scan.by_snapshots else self.jdbc
        return Chunks(jdbc, self.table, self.mappings, parts, self._salt, None, conditions)

    def progress(self) -> None:
        """Nobody captures anything."""

    def passed(self, ends: Sequence[CopyEnd], timeout: float) -> None:
        """Nothing is waited for."""

    def keep(self, window: Window, folder: str, *, connections: int | None = None) -> tuple[Window, StagedOnce]:
        """Read what changed behind the window's begin, up to the version that this proves."""
        found, reached = self._read(window.after, f"{folder}-read", connections)
        rows, proven = write_rows(found.rows, folder), Window(window.after, reached)
        remove(self.jdbc.session, f"{folder}-read")
        remove(self.jdbc.session, f"{folder}-read-whole")
        return proven, StagedOnce(rows, {proven: found.counts}, is_whole=found.is_whole)

    def kept_events(
        self,
        folder: CopyFolder,
        low: Position,
        kept: Sequence[KeptWindow],
        gone: Sequence[str],
        copied: Callable[[], DataFrame],
    ) -> StagedChanges:
        """What the windows come to: later ones win."""
        session, place = self.jdbc.session, folder.rows_of(f"joined-{secrets.token_hex(6)}")
        entries = [entry for _, entry in joined_windows(low, kept)]
        if not entries:
            return StagedChanges({}, {})
        # nothing of before is left then
        first = max((number for number, entry in enumerate(entries) if entry.is_whole), default=0)
        is_whole, entries = entries[first].is_whole, entries[first:]
        parts = [Parquet.of(session, folder.files_of(entry), entry.columns).rows() for entry in entries]
        key, window = self.key, Window(low, entries[-1].upto)
        if loose(self.table.schema, self.table.schema.key):
            rows = parts[0]
            for number, newer in enumerate(parts[1:]):
                other = self.spelled_otherwise(newer, rows, f"{place}/spelled{number}")
                rows = write_rows(replaced(rows, newer, key, other), f"{place}/rows{number}").rows()
        else:
            rows = newest_of(parts, key)
        witness, times = self._proven.get(Version.of(window.upto)), None
        if witness is not None:
            times = self._times(window, rows, f"{place}/times")
        read_at = witness.time if witness is not None else None
        counts = counted(rows)
        if is_whole and not counts.events:
            # a target may yet have rows
            counts = replace(counts, untold=1)
        if gone and "_changed" in rows.columns:
            rows = rows.withColumn("_changed", F.array_except("_changed", F.array(*map(F.lit, gone))))
        is_net = len(entries) == 1
        found = ReadChanges(rows, counts, None, None, None, read_at, times, is_whole=is_whole, is_net=is_net)
        found = replace(found, gone=self._gone(found, window.upto, copied, f"{place}/spelled"))
        return StagedChanges({window: found}, {window: Version.of(window.upto)})

    def check_columns(self) -> None:
        """Prove that the columns are still those that were planned."""
        check_columns(self.jdbc, self.table)
