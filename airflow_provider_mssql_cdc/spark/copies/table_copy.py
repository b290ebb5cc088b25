"""The copy of a table: begun or found, read in chunks beside the windows that are kept, and finished."""

from __future__ import annotations

import dataclasses
import logging
import secrets
import time
from collections.abc import Sequence
from functools import partial

from pyspark.sql import DataFrame

from airflow_provider_mssql_cdc.core.copies import (
    ChunkRead,
    CommonRead,
    KeysRead,
    covering,
    reached_by,
    usable,
    witnesses_of,
)
from airflow_provider_mssql_cdc.core.copy_wanted import KnownCopy
from airflow_provider_mssql_cdc.core.exceptions import (
    CaptureLagError,
    CommitConflictError,
    GapError,
)
from airflow_provider_mssql_cdc.core.lineage import Witness, check_not_restored
from airflow_provider_mssql_cdc.core.position import Position, Window, is_gap
from airflow_provider_mssql_cdc.core.void_copies import why_void
from airflow_provider_mssql_cdc.spark.copies.again import RowsAgain
from airflow_provider_mssql_cdc.spark.copies.chunk_reading import ChunkReading
from airflow_provider_mssql_cdc.spark.copies.common import look_for_common, told_of_common, told_of_unchanged
from airflow_provider_mssql_cdc.spark.copies.copied_source import CopiedSource
from airflow_provider_mssql_cdc.spark.copies.copy import Changed, Copy, CopyOrder, Unfinished
from airflow_provider_mssql_cdc.spark.copies.copying import copying, hides_bounds
from airflow_provider_mssql_cdc.spark.copies.folder import CopyFolder, Found, folders
from airflow_provider_mssql_cdc.spark.copies.kept import kept_window
from airflow_provider_mssql_cdc.spark.copies.new_copy import cut_by_others, new_copy, parts_of
from airflow_provider_mssql_cdc.spark.copies.room import check_kept
from airflow_provider_mssql_cdc.spark.copies.shed import dropped_since, loaded_of, target_names, without
from airflow_provider_mssql_cdc.spark.files import Parquet
from airflow_provider_mssql_cdc.spark.sources.base import SourceState

log = logging.getLogger(__name__)

CAPTURE_SECONDS = 30.0
"""How long the capture is waited for at least, though the run's time for copies is over."""


class TableCopy:
    """One table's copy in this run: what lies in its folder is gone on with.

    :param order: what is asked for
    """

    def __init__(self, source: CopiedSource, order: CopyOrder) -> None:
        self._source, self._place, self._order = source, order.place, order
        self._jdbc, self._table, self._session = source.jdbc, source.table, source.jdbc.session
        self._folder: CopyFolder | None = None
        self._time = order.time
        self._voided: set[str] = set()
        self._is_throttled = False
        self._warnings: list[str] = []
        self._used: list[ChunkRead] = []
        self._common: CommonRead | None = None
        self._gone: tuple[str, ...] = ()
        self._newest: Witness | None = None
        self._is_emptied = False

    def run(self) -> Copy | Unfinished:
        """Copy what is missing, wait until the changes of meanwhile can be read, and keep them.

        :raises CaptureLagError: if that lasts too long
        :raises SchemaChangedError: if columns were changed meanwhile
        :raises GapError: if changes were purged before they were kept
        """
        self._scan, self._is_emptied = self._source.scan(), False
        if (going_on := self._gone_on_with()) is None and self._order.known is not None:
            self._say_lost(self._order.known)
        folder, found = going_on or self._begun()
        self._folder = folder
        if found.begun.changed_after is None:
            self._order = dataclasses.replace(self._order, changed=None)
        self._begin, self._kept = found.begun, list(found.kept)
        self._again = RowsAgain.of(self._session, folder, found.begun.low, found.again)
        self._is_paused = self._order.paused in ("", folder.id)
        self._conditions = self._order.conditions if found.begun.where else ()
        parts, low = parts_of(self._table, found.begun), found.begun.low
        self._chunks = self._source.chunks(parts, low, self._scan, self._conditions)
        there, self._common = usable(found.chunks, found.common, self._order.leaves_out)
        if not there and self._order.leaves_out and not self._is_paused:
            self._common = self._common or self._looked_for(folder)
            if self._order.changed is not None and self._common is None:
                others = f"rows that did not change have different values in {', '.join(self._order.leaves_out)}"
                self._void(folder, f"{others}, or none is left, so that all rows are read")
                self._order = dataclasses.replace(self._order, changed=None)
                return self.run()
        if self._common is not None:
            self._chunks = self._chunks.differing(self._common.of, self._common.values)
        if there or self._is_paused:
            # what was read by others may take long to finish
            self._keep(folder, self._source.state())
        if self._order.changed is not None:
            self._used, is_whole = [], self._has_changed(folder, self._order.changed)
        else:
            self._used, is_whole = self._read(folder, there)
        if not is_whole or self._is_paused:
            return self._unfinished(self._used)
        return self._finished(folder)

    def _has_changed(self, folder: CopyFolder, changed: Changed) -> bool:
        """Whether the rows that changed are there, which are read unless they are."""
        known = self._again.changed_after
        has_all = known is not None and known <= changed.after
        if not has_all and not self._is_paused:
            started = time.monotonic(), self._source.progress()
            found = changed.read(folder.rows_of(f"changed-{secrets.token_hex(6)}"))
            self._again = self._again.read(
                found.keys,
                self._begin.low,
                lambda _: found.rows,
                self._source.progress,
                started,
                is_whole=found.is_whole,
                changed_after=changed.after,
            )
        return has_all or not self._is_paused

    def _looked_for(self, folder: CopyFolder) -> CommonRead | None:
        """What nearly all rows have, of which people are told before others alone are read."""
        name, changed, rows = str(self._table.name), self._order.changed, self._source.chunk_rows
        unchanged = changed.unchanged if changed is not None else ""
        common = look_for_common(folder, self._chunks, self._order.leaves_out, rows, unchanged)
        if common is not None and changed is not None:
            self._warn(told_of_unchanged(common, name, changed.after))
        elif common is not None:
            self._warn(told_of_common(common, name, self._begin.rows))
        return common

    def _finished(self, folder: CopyFolder) -> Copy | Unfinished:
        """The copy, once all that was committed before the end of its reads can be read."""
        used = self._used
        ends = [end.judged for end in [*(chunk.end for chunk in used if chunk.end is not None), *self._again.ends]]
        try:
            high = self._source.passed(ends, self._capture_timeout)
        except CaptureLagError as error:
            if self._time.left is None:
                raise
            return self._unfinished(used, error.message)
        self._keep(folder, self._source.state(), at_least=high, closes=high is None)
        if self._is_emptied and any(chunk.rows for chunk in used):
            self._void(folder, "its rows have gone, and no change tells of it: the table was truncated")
            return self.run()
        # events up to the end would lack values
        self._source.check_columns()
        again, rows = self._again if self._again.entries else None, sum(chunk.rows for chunk in used)
        copied = self._copied(folder)
        read: list[ChunkRead | KeysRead] = [*used, *self._again.entries]
        return Copy(
            id=folder.id,
            files=copied,
            low=self._begin.low,
            high=self._reached,
            rows_copied=rows if again is None else again.in_place(copied.rows()).count(),
            events=self._source.kept_events(folder, self._begin.low, self._kept, self._gone, copied.rows),
            witnesses=tuple(filter(None, [*witnesses_of(self._begin, self._kept, read), self._newest])),
            warnings=tuple(self._warnings),
            conditions=self._conditions,
            again=again,
            common=self._example(folder),
            changed_after=self._again.changed_after,
        )

    def read_again(self, keys: DataFrame) -> Copy | Unfinished:
        """The whole copy with the rows of some keys as they are now.

        Such a row gives way to events, as any other row of the copy: to those behind the low of its own read, where
        those of before leave open what is there.

        :param keys: as targets have them, each once
        """
        folder, most = self._folder, self._source.connections
        assert folder is not None
        low = max(self._source.copy_low(self._source.state(), self._scan, self._order), self._begin.low)
        chunks = self._source.chunks(parts_of(self._table, self._begin), low, self._scan, self._conditions)
        copied = self._again.in_place(self._copied(folder).rows())
        rows = partial(chunks.read_keys, copied=copied, connections=most)
        self._again = self._again.read(keys, low, rows, self._source.progress)
        return self._finished(folder)

    def _example(self, folder: CopyFolder) -> Parquet | None:
        common = self._common
        return None if common is None else Parquet.of(self._session, folder.files_of(common), common.columns)

    def _copied(self, folder: CopyFolder) -> Parquet:
        files = [path for chunk in self._used for path in folder.files_of(chunk)]
        read: list[ChunkRead | KeysRead] = [*self._used, *self._again.entries]
        return Parquet.of(self._session, files, read[0].columns)

    @property
    def _capture_timeout(self) -> float:
        """How long the capture is waited for: what is left of the run's time for copies, but not too short a while."""
        left, timeout = self._time.left, self._order.capture_timeout
        return timeout if left is None else min(timeout, max(left, CAPTURE_SECONDS))

    def _unfinished(self, used: list[ChunkRead], waits_for: str | None = None) -> Unfinished:
        # bounds may be keys of rows that the filter leaves out
        parts = [] if hides_bounds(self._begin, self._table.selection) else parts_of(self._table, self._begin)
        ends = [*(chunk.end for chunk in used if chunk.end is not None), *self._again.ends]
        waits = bool(waits_for) or self._is_throttled
        receipt = copying(self._begin, self._reached, used, ends, parts, waits=waits)
        receipt = dataclasses.replace(receipt, waits_for=waits_for, paused=self._is_paused)
        if self._order.changed is not None:
            read = sum(entry.rows for entry in self._again.entries)
            receipt = dataclasses.replace(receipt, rows=read, expected=read)
        return Unfinished(receipt, tuple(self._warnings))

    def is_lost(self) -> bool:
        """Whether the folder has gone; what this run has written there since goes, too."""
        if self._folder is None or self._folder.id in {folder.id for folder, _ in folders(self._session, self._place)}:
            return False
        self._folder.remove()
        return True

    def remove(self) -> None:
        """Remove the folder."""
        if self._folder is not None:
            self._folder.remove()

    @property
    def _reached(self) -> Position:
        return reached_by(self._begin, self._kept)

    def _gone_on_with(self) -> tuple[CopyFolder, Found] | None:
        """The copy that was begun and can go on; others go."""
        going_on = None
        for folder, found in folders(self._session, self._place):
            read: list[ChunkRead | KeysRead] = [*found.chunks, *found.again]
            written = found.begun, found.kept, read
            state, feed = self._source.state(witnesses_of(*written)), self._source.feed
            gone = dropped_since(self._table, found.begun)
            # what fills columns may have begun with all rows, since others than those that changed differ
            takes_all = bool(self._order.leaves_out) and found.begun.changed_after is None
            loaded = loaded_of(self._table, found.begun, gone) if gone else None
            why = why_void(
                *written,
                feed=feed,
                schema_hash=self._table.schema.hash,
                selection_hash=self._table.selection.hash if loaded is None else found.begun.selection_hash,
                protection=self._table.protection,
                key=self._table.schema.key,
                gone=gone,
                where=tuple(map(str, self._order.conditions)),
                by=cut_by_others(self._table),
                altered_upto=self._table.altered_upto,
                changed_after=None if takes_all else self._order.changed_after,
                lineage=state.lineage,
                readable_from=state.readable_from,
            )
            if self._order.above is not None and found.begun.low < self._order.above:
                why = why or f"it was begun at {found.begun.low}, and a sink has all up to {self._order.above}"
            if why is None and going_on is None:
                self._gone = target_names(self._table, loaded or ())
                going_on = folder, without(found, self._gone)
                text = "%s: copy %s goes on%s: %d chunks and the events up to %s are there"
                less = f" without {', '.join(self._gone)}, which the table has dropped" * bool(loaded)
                reached = reached_by(found.begun, found.kept)
                log.info(text, self._table.name, folder.id, less, len(found.chunks), reached)
                continue
            if why is None:
                folder.remove()
            else:
                self._void(folder, why)
        return going_on

    def _void(self, folder: CopyFolder, why: str) -> None:
        self._warn(f"the copy of {self._table.name} ({folder.id}) begins again: {why}")
        self._voided.add(folder.id)
        folder.remove()

    def _say_lost(self, known: KnownCopy) -> None:
        """Say that the copy which the checkpoint knows is not here. It may never be: so this run copies to the end."""
        if known.id not in self._voided:
            where = f"{known.place} on {known.host}" if known.host else known.place
            self._warn(
                f"copy {known.id} of {self._table.name} is not found: it was read into {where}. It begins again, and "
                "is read to its end in this run. Let all workers share a work_dir, so that copies go on."
            )
            self._time = self._time.endless()

    def _warn(self, text: str) -> None:
        log.warning(text)
        self._warnings.append(text)

    def _begun(self) -> tuple[CopyFolder, Found]:
        """Begin a copy; of two that were begun at once, the one with the smaller id."""
        begun = new_copy(self._source, self._order, self._scan, self._warn)
        CopyFolder(self._session, self._place, begun.id).begin(begun)
        there = folders(self._session, self._place)
        if [folder.id for folder, _ in there] == [begun.id]:
            return there[0]
        going_on = self._gone_on_with()
        if going_on is None:
            raise CommitConflictError(
                f"copy {begun.id} of {self._table.name} was removed by another run as it was begun.",
                table=str(self._table.name),
                advice="Run the task again; let one run at a time load a table.",
            )
        return going_on

    def _read(self, folder: CopyFolder, there: Sequence[ChunkRead]) -> tuple[list[ChunkRead], bool]:
        """Read what no chunk has yet, one chunk at least; the chunks that count then, and whether they are all.

        :param there: chunks that were read before
        """
        used, holes = covering(there, self._chunks.places)
        if self._is_paused:
            return used, not holes
        reading = ChunkReading(
            self._source.progress,
            self._table.name,
            folder,
            self._chunks,
            connections=self._source.connections,
            rows=self._source.chunk_rows,
            seconds=self._source.chunk_seconds,
            expected=self._begin.rows,
            run_time=self._time,
            keep=lambda: self._keep(folder, self._source.state(), connections=1),
            capture_timeout=self._order.capture_timeout,
            without=self._common.name if self._common is not None else "",
        )
        is_whole = reading.read(holes, used, self._begin.highest)
        self._is_throttled = reading.is_throttled
        return [*used, *reading.all_read()], is_whole

    def _keep(
        self,
        folder: CopyFolder,
        state: SourceState,
        at_least: Position | None = None,
        connections: int | None = None,
        *,
        closes: bool = False,
    ) -> None:
        """Keep the events behind the newest kept window.

        :param state: of the source now: up to its newest position
        :param at_least: up to here all are wanted
        :param connections: by default all that there are
        :param closes: it is read though no position is newer: a read may have seen what is committed since
        """
        upto = state.newest
        if upto is None or (at_least is not None and upto < at_least):
            raise CaptureLagError(
                f"the server shows changes up to {upto or 'nothing'}, and a copy needs those up to {at_least}.",
                table=str(self._table.name),
                advice="A readable secondary may lag behind: run the task again.",
            )
        if upto <= self._reached and not closes:
            return
        name = folder.new_window()
        asked = Window(self._reached, max(upto, self._reached))
        window, staged = self._source.keep(asked, folder.rows_of(name), connections=connections)
        seen = [witness for witness in state.lineage.witnesses() if witness.lsn == upto]
        now = self._source.state(seen)
        check_not_restored(self._table.name, seen, now.lineage)
        # cleanup raises the mark before it deletes
        if is_gap(window.after, now.readable_from):
            raise GapError(
                str(self._table.name),
                window.after,
                now.readable_from,
                advice="They were made while the table was copied, which took longer than changes are kept, and no run "
                f"has kept them in time: raise the retention ({self._table.feed.KEPT_LONGER_BY}), or run the task more "
                "often. The next run begins the copy again.",
            )
        known = [*seen, *now.lineage.witnesses()]
        self._newest = next((witness for witness in reversed(known) if witness.lsn == window.upto), None)
        if window.is_empty:
            self._is_emptied = staged.is_whole
            return
        entry = kept_window(folder, name, window, staged, self._newest)
        folder.add(entry)
        self._kept.append(entry)
        files = [path for each in self._kept for path in folder.files_of(each)]
        check_kept(self._jdbc, self._table.name, self._place, files, self._warn)
