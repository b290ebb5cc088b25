"""A table whose sinks lack columns: they go on without these, until a copy has filled them in one step."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from airflow_provider_mssql_cdc.core.columns import map_columns
from airflow_provider_mssql_cdc.core.copy_wanted import ASKED_COPY, STOP
from airflow_provider_mssql_cdc.core.feed import FeedRef
from airflow_provider_mssql_cdc.core.filling import filling, lacking, widened
from airflow_provider_mssql_cdc.core.marker import Marker, line_of_feeds
from airflow_provider_mssql_cdc.core.position import Position, Window
from airflow_provider_mssql_cdc.core.shapes import SHAPES
from airflow_provider_mssql_cdc.core.spec import Chosen, JobSpec, ReplaySpec, SinkReceipt, TableSpec
from airflow_provider_mssql_cdc.core.steps import SinkSteps
from airflow_provider_mssql_cdc.spark.copies.copy import Copy
from airflow_provider_mssql_cdc.spark.copies.pace import CopyTime
from airflow_provider_mssql_cdc.spark.decide import SAME_AGAIN
from airflow_provider_mssql_cdc.spark.load import TableLoad
from airflow_provider_mssql_cdc.spark.notes import Notes
from airflow_provider_mssql_cdc.spark.parts import Parts
from airflow_provider_mssql_cdc.spark.reading import Reading
from airflow_provider_mssql_cdc.spark.shapes.table import TableRows
from airflow_provider_mssql_cdc.spark.sink import COPIES_NAMED, Sink
from airflow_provider_mssql_cdc.spark.targets import with_nulls


def parted(load: TableLoad, job: JobSpec, table: TableSpec, parts: Parts) -> TableLoad | FillingLoad:
    """The load of a table some of whose sinks may lack columns, as their markers say.

    :param load: of all of them, without these columns
    :param table: with what they are to go on, in ``wider``
    """
    assert table.wider is not None
    markers, comparable = load.markers(), load.comparable
    lacks = {sink.shape for sink in table.sinks if _lacks(sink.shape, markers.get(sink.shape), table.wider)}
    # of a marker that cannot be read nobody knows, and its sink fails
    lacks |= {sink.shape for sink in table.sinks if sink.shape not in markers}
    others = tuple(sink for sink in table.sinks if sink.shape not in lacks)
    if not lacks and not any(_is_unfilled(markers[s.shape], table.wider) for s in others if s.shape in comparable):
        return TableLoad(job, widened(table), parts)
    narrow = dataclasses.replace(table, sinks=tuple(sink for sink in table.sinks if sink.shape in lacks))
    return FillingLoad(job, narrow, dataclasses.replace(widened(table), sinks=others) if others else None, parts)


def _lacks(shape: str, marker: Marker | None, wider: Chosen) -> bool:
    """Whether a sink goes on without columns until they are filled. One that begins has them from the beginning, and
    one that only adds rows gets them with its next commit.
    """
    return marker is not None and not SHAPES[shape].only_adds and marker.schema_hash != wider.schema.hash


def _is_unfilled(marker: Marker | None, wider: Chosen) -> bool:
    """Whether a sink lacks values of before of columns that it has, or gets with its next commit."""
    return marker is not None and (bool(marker.unfilled) or marker.schema_hash != wider.schema.hash)


class FillingLoad:
    """Loads one table's sinks, and fills columns that some of them lack.

    :param table: the sinks that lack columns, and go on without them
    :param others: the sinks that have them
    :ivar notes: what is noted of all
    """

    def __init__(self, job: JobSpec, table: TableSpec, others: TableSpec | None, parts: Parts) -> None:
        self.notes = Notes()
        self._job, self._table, self._parts = job, table, parts
        self._lacking = TableLoad(job, table, parts, self.notes)
        self._others = TableLoad(job, others, parts, self.notes) if others is not None else None
        self._left = True
        self._filled = 0

    @property
    def staging_paths(self) -> list[str]:
        """The folders of what is staged."""
        return [path for load in self._loads for path in load.staging_paths]

    @property
    def _loads(self) -> list[TableLoad]:
        return [self._lacking, *([self._others] if self._others is not None else [])]

    def load_windows(self) -> None:
        """Load what goes on by windows up to the cut, as ``TableLoad`` does.

        :raises MsSqlCdcError: if none of the sinks can be loaded
        """
        errors = []
        loads = [load for load in self._loads if load.shapes]
        for load in loads:
            try:
                load.load_windows()
            except Exception as error:
                errors.append(error)
                self.notes.failed |= {shape: (error, None) for shape in load.shapes if shape not in self.notes.done}
        if len(errors) == len(loads):
            raise errors[0]

    def replay(self, replay: ReplaySpec) -> None:
        """Write a window again that was loaded before.

        :raises MsSqlCdcError: as ``TableLoad.replay``
        """
        for load in self._loads:
            load.replay(replay)

    @property
    def has_copies_left(self) -> bool:
        """Whether sinks wait for a copy, or lack columns."""
        return self._left or any(load.has_copies_left for load in self._loads)

    def give_up_copies(self) -> None:
        """Leave what wants a copy to the next run."""
        self._left = False
        for load in self._loads:
            load.give_up_copies()

    def abort_copy(self, why: str) -> None:
        """End the copy that a person asks for, which no retry can mend."""
        self._lacking.abort_copy(why)

    def load_copies(self, time: CopyTime) -> None:
        """Copy where sinks wait for that or a person asks for it, then fill the columns that are lacking.

        :param time: of the run for copies
        """
        # what begins has all columns; what a person asks for is as of those that the loaded sinks have
        for load in reversed(self._loads):
            if load.has_copies_left:
                load.load_copies(time)
        asked = self._table.asked
        self._left = False
        is_asked = asked is not None and (asked.of_loaded or asked.wanted == STOP)
        if not is_asked and self.notes.copying is None:
            with self.notes.alone(ASKED_COPY):
                self._fill(time)

    def count(self) -> None:
        """Count what was read, for the receipt: what was staged and kept may be removed then."""
        windows: list[str] = []
        counts: dict[str, int] = {"copied": self._filled}
        for load in self._loads:
            load.count()
            windows += [window for window in self.notes.windows if window not in windows]
            counts = {name: counts.get(name, 0) + self.notes.counts.get(name, 0) for name in counts | self.notes.counts}
        self.notes.windows, self.notes.counts = tuple(windows), counts

    def _fill(self, time: CopyTime) -> None:
        """Copy the key and the columns that are lacking, and show them at the copy's end."""
        shapes = self._unfilled([shape for load in self._loads for shape in load.shapes if shape in self.notes.done])
        if not shapes:
            return
        table = filling(self._table)
        folder = f"{self._lacking.staging_path}/filling"
        mappings = map_columns(table.name, table.schema, table.selection)
        rows = TableRows(table, mappings, self._job.source.timezone, f"{folder}/resolved")
        reading = Reading(self._parts.source(table, mappings), self._job, table, folder, rows.unsure)
        time.begin()
        try:
            self._fill_all(shapes, rows, reading, time)
        except SAME_AGAIN:
            reading.remove_copy()
            raise

    def _fill_all(self, shapes: Sequence[str], rows: TableRows, reading: Reading, time: CopyTime) -> None:
        with self.notes.timed("copy"):
            unfinished = reading.take_copy(time, None)
        columns, copy = lacking(self._table), reading.copy
        found = unfinished or copy
        for text in found.warnings if found is not None else ():
            self.notes.warn(text)
        if unfinished is not None:
            self.notes.copying = dataclasses.replace(unfinished.receipt, shapes=tuple(shapes), fills=columns)
            return
        assert copy is not None
        try:
            for load in self._loads:
                if mine := [shape for shape in shapes if shape in load.shapes]:
                    self._show(copy, load.load_up_to_end(copy, mine), rows, reading)
        except Exception:
            # another run may have filled them, and removed the folder
            if self._unfilled(shapes):
                raise
            self.notes.writing = None
        if not self._unfilled(shapes):
            self._filled = copy.rows_copied
            reading.remove_copy()
            self.notes.ended_copy = f"{copy.id} COMPLETED"

    def _show(self, copy: Copy, shapes: Sequence[str], rows: TableRows, reading: Reading) -> None:
        """Commit the columns to sinks that are loaded up to the copy's end."""
        sinks = tuple(sink for load in self._loads for sink in load.sinks if sink.shape in shapes)
        wide = TableLoad(self._job, dataclasses.replace(widened(self._table), sinks=sinks), self._parts, self.notes)
        for shape in shapes:
            sink, loaded = wide.sink_of(shape), self.notes.done[shape].after
            assert loaded is not None
            with self.notes.timed("fill"), self.notes.writes(sink.target.name):
                done = _filled(sink, self._job, copy, rows, reading, loaded.position)
            self.notes.note(done)

    def _unfilled(self, shapes: Sequence[str]) -> list[str]:
        """Those of some shapes that lack columns, or values of before."""
        assert self._table.wider is not None
        found = []
        for load in self._loads:
            markers, comparable = load.markers(), load.comparable
            mine = [shape for shape in shapes if shape in markers and shape in comparable]
            found += [shape for shape in mine if _is_unfilled(markers[shape], self._table.wider)]
        return found


def _filled(
    sink: Sink, job: JobSpec, copy: Copy, filling: TableRows, reading: Reading, expects: Position
) -> SinkReceipt:
    """Show the columns that a target lacks, with all their values, as of a copy's end.

    :param copy: of the key and these columns
    :param filling: its rows
    :param reading: of the copy
    :param expects: position of the marker: the target is loaded up to the copy's end, or nothing happened behind it
    :raises CommitConflictError: if another run has loaded the target meanwhile
    """
    state, table, at = sink.state(), sink.rows.table.spec, copy.high
    marker, wider = state.marker, Chosen(table.schema, table.selection)
    if marker is None or marker.position != expects or not _is_unfilled(marker, wider):
        raise sink.conflict(f"loaded to {marker.position if marker else 'nothing'}, and not to {expects}")
    layout = sink.layout(state)
    added = sink.added(state, layout, fills=True)
    copied = filling.copied(copy, None if copy.window.is_empty else copy.events, copy.window)
    there = filling.at_end(copied, copy.rows().limit(0))
    names = [target.name for target in filling.data_columns if target.name not in filling.key]
    target_rows = with_nulls(sink.target.rows(state), added)
    write = sink.rows.filled(target_rows, there, copied.events, names, copy.window)
    after = marker
    if marker.position < at:
        after = sink.marker(Window(marker.position, at), reading, state, SinkSteps(window=copy.window), layout)
    after = dataclasses.replace(
        after,
        feeds=line_of_feeds(marker, FeedRef.of(table.feed), at),
        schema_hash=table.schema.hash,
        schema_kept=sink.keep_schema(state, SinkSteps()),
        selection_hash=table.selection.hash,
        selection=table.selection.describe(),
        unfilled=(),
        copies=(*marker.copies[-COPIES_NAMED:], copy.id),
        layout=layout,
        spec_id=job.id,
        run=job.run,
    )
    write = dataclasses.replace(sink.rows.laid_out(write, layout), adds=added)
    if not sink.target.commit(state, write, after):
        raise sink.conflict("changed while columns were filled")
    return SinkReceipt(sink.shape, marker.position, after, "loaded", at)
