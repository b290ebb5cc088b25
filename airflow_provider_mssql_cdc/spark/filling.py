"""A table whose sinks have different columns: each goes on with its own, until a copy has filled those that lack."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from airflow_provider_mssql_cdc.core.columns import map_columns
from airflow_provider_mssql_cdc.core.copy_wanted import ASKED_COPY, STOP
from airflow_provider_mssql_cdc.core.entry_values import ALL, NONE
from airflow_provider_mssql_cdc.core.feed import FeedRef
from airflow_provider_mssql_cdc.core.filling import (
    FILLING,
    filling,
    lacking,
    with_all,
)
from airflow_provider_mssql_cdc.core.marker import Marker, line_of_feeds
from airflow_provider_mssql_cdc.core.position import Position, Window
from airflow_provider_mssql_cdc.core.receipt import SinkReceipt
from airflow_provider_mssql_cdc.core.shapes import IGNORE, SHAPES
from airflow_provider_mssql_cdc.core.spec import Chosen, JobSpec, ReplaySpec, TableSpec
from airflow_provider_mssql_cdc.core.steps import SinkSteps
from airflow_provider_mssql_cdc.spark.copies.copy import Changed, Copy
from airflow_provider_mssql_cdc.spark.copies.pace import CopyTime
from airflow_provider_mssql_cdc.spark.decide import SAME_AGAIN
from airflow_provider_mssql_cdc.spark.dropping import Shrunk
from airflow_provider_mssql_cdc.spark.healing import Healer
from airflow_provider_mssql_cdc.spark.load import TableLoad
from airflow_provider_mssql_cdc.spark.marked_columns import columns_of, loaded_with, unfilled_of
from airflow_provider_mssql_cdc.spark.notes import Notes, merged
from airflow_provider_mssql_cdc.spark.parts import Parts
from airflow_provider_mssql_cdc.spark.reading import Reading
from airflow_provider_mssql_cdc.spark.shapes.table import TableRows
from airflow_provider_mssql_cdc.spark.sink import COPIES_NAMED, Sink
from airflow_provider_mssql_cdc.spark.targets import with_nulls


class PartedLoad:
    """Loads one table's sinks by the columns that they have, and fills those that some lack.

    :param table: with the columns that all are to have
    :param loads: of the sinks that have the same columns, by what stands behind the name of the folder of their copies
    :param owns: sinks that do not have the table's columns, by shape
    :param planned: hash of the columns that the plan knows
    :param small: what was dropped before
    """

    def __init__(
        self,
        job: JobSpec,
        table: TableSpec,
        loads: Mapping[str, TableLoad],
        owns: Mapping[str, Chosen],
        parts: Parts,
        planned: str,
        small: Shrunk,
    ) -> None:
        self._job, self._table, self._loads, self._owns, self._parts = job, table, loads, owns, parts
        self._planned = planned
        self._notes, self._behind = small.notes, small.left.keys()
        self._notes.waiting_ids = table.waiting_ids
        self._left = table.fills
        self._filled = 0

    @property
    def notes(self) -> Notes:
        """What is noted of all."""
        for load in self._loads.values():
            if load.table.schema.hash != self._planned:
                said, done = load.table.schema.canonical, load.notes.done
                load.notes.done = {s: dataclasses.replace(each, schema=each.schema or said) for s, each in done.items()}
        return merged([*(load.notes for load in self._loads.values()), self._notes])

    def sink_of(self, shape: str) -> Sink:
        """The sink of a shape, with the columns with which its windows are loaded."""
        return next(load for load in self._loads.values() if shape in load.shapes).sink_of(shape)

    @property
    def staging_paths(self) -> list[str]:
        """The folders of what is staged."""
        return [path for load in self._loads.values() for path in load.staging_paths]

    def load_windows(self) -> None:
        """Load what goes on by windows up to the cut, as ``TableLoad`` does.

        :raises MsSqlCdcError: if none of the sinks can be loaded
        """
        errors = []
        for load in self._loads.values():
            try:
                load.load_windows()
            except Exception as error:
                errors.append(error)
                left = (shape for shape in load.shapes if shape not in load.notes.done)
                load.notes.failed |= dict.fromkeys(left, (error, load.notes.writing))
                load.give_up_copies()
        if len(errors) == len(self._loads):
            raise errors[0]

    def replay(self, replay: ReplaySpec) -> None:
        """Write a window again that was loaded before.

        :raises MsSqlCdcError: as ``TableLoad.replay``
        """
        for load in self._loads.values():
            load.replay(replay)

    @property
    def has_copies_left(self) -> bool:
        """Whether sinks wait for a copy, or lack columns."""
        return self._left or any(load.has_copies_left for load in self._loads.values())

    def give_up_copies(self) -> None:
        """Leave what wants a copy to the next run."""
        self._left = False
        for load in self._loads.values():
            load.give_up_copies()

    def abort_copy(self, why: str) -> None:
        """End the copy that a person asks for, which no retry can mend."""
        for load in self._loads.values():
            load.abort_copy(why)

    def load_copies(self, time: CopyTime) -> None:
        """Copy where sinks wait for that or a person asks for it, then fill the columns that are lacking.

        :param time: of the run for copies
        """
        asked, fills, self._left = self._table.asked, self._left, False
        takes = [load for load in self._loads.values() if load.comparable]
        for suffix, load in self._loads.items():
            if takes and load not in takes and asked is not None and asked.wanted != STOP:
                load.forget_asked()
            if load.has_copies_left:
                load.load_copies(time)
            if load.notes.copying is not None:
                load.notes.copying = dataclasses.replace(load.notes.copying, suffix=suffix)
        if asked is not None and (asked.of_loaded or asked.wanted == STOP):
            self._end_asked(takes or [*self._loads.values()])
            if asked.wanted == STOP:
                self._reading(filling(self._table, ()), "stopped")[1].stop_copies()
        elif fills and all(load.notes.copying is None for load in self._loads.values()):
            with self._notes.alone(ASKED_COPY):
                self._fill(time)

    def _end_asked(self, loads: Sequence[TableLoad]) -> None:
        """What a person asked for has ended once it has for all."""
        endings = [load.notes.ended_copy for load in loads]
        for load in self._loads.values():
            load.notes.ended_copy = None
        if all(endings):
            self._notes.ended_copy = next((ending for ending in endings if "ABORTED" in str(ending)), endings[0])

    def count(self) -> None:
        """Count what was read, for the receipt: what was staged and kept may be removed then."""
        windows: list[str] = []
        counts: dict[str, int] = {}
        for load in self._loads.values():
            load.count()
            windows += [window for window in load.notes.windows if window not in windows]
            # of a window that several have read each change counts once
            counts = {n: max(counts.get(n, 0), load.notes.counts.get(n, 0)) for n in counts | load.notes.counts}
        counts["copied"] = counts.get("copied", 0) + self._filled
        self._notes.windows, self._notes.counts = tuple(windows), counts

    def _fill(self, time: CopyTime) -> None:
        """Copy the key and the columns that are lacking, and show them at the copy's end."""
        left = self._unfilled()
        columns = {name for names in left.values() for name in names}
        if not columns:
            return
        table = filling(self._table, columns)
        rows, reading = self._reading(table, "filling")
        time.begin()
        try:
            with self._notes.timed("copy"):
                leaves_out = tuple(sorted(columns)) if self._may_leave_out(left) else ()
                changed = self._changed(table, rows, leaves_out)
                beside = min(self.notes.done[shape].read_through for shape in left)
                unfinished = reading.take_copy(time, None, leaves_out=leaves_out, beside=beside, changed=changed)
            copy = reading.copy
            found = unfinished or copy
            for text in found.warnings if found is not None else ():
                self._notes.warn(text)
            if unfinished is not None:
                fills = tuple(c.name for c in table.schema.columns if c.name in columns)
                self._notes.copying = dataclasses.replace(
                    unfinished.receipt, shapes=tuple(left), fills=fills, suffix=FILLING
                )
                return
            assert copy is not None
            for load in self._loads.values():
                if shapes := [shape for shape in load.shapes if shape in left]:
                    self._show(load, copy, load.load_up_to_end(copy, shapes), left, rows, reading)
        except SAME_AGAIN:
            reading.remove_copy()
            raise
        # what another run has filled meanwhile is no failure of this one
        still = self._unfilled()
        for shape in left.keys() - still.keys():
            self._notes.failed.pop(shape, None)
            for load in self._loads.values():
                load.notes.failed.pop(shape, None)
        if not still:
            self._filled = copy.rows_copied
            reading.remove_copy()
            self._notes.ended_copy = f"{copy.id} COMPLETED"

    def _changed(self, table: TableSpec, rows: TableRows, columns: Collection[str]) -> Changed | None:
        """The rows that may have other values than those with which the columns were added; None where all are read.

        :param rows: of the table as it is copied
        :param columns: of which values may be left out
        """
        if not columns:
            return None
        healer = Healer(table, rows.mappings, self._parts.source, self._notes, lambda: None)
        marked = [each for load in self._loads.values() for each in load.marked()]
        kept = [known for sink, marker in marked for known in (*marker.positions, *sink.spec.positions)]
        return healer.with_values(kept, columns)

    def _may_leave_out(self, shapes: Mapping[str, Collection[str]]) -> bool:
        """Whether each row that these sinks have and that no copy has is known to be in the source table. It is not
        where deletes were ignored, or lost in a gap, or a person said up to where a target is loaded.

        :param shapes: with the columns that they lack
        """
        table, selection = self._table, self._table.selection
        if table.protection is not None or not table.unique_key:
            return False
        # common values are kept as they are, and those of all rows are looked at
        if selection.conditions or any(column in selection.masks for columns in shapes.values() for column in columns):
            return False
        # a history may not know each key, of which all are asked for
        if table.history_fill == ALL and any(SHAPES[shape].takes_history for shape in shapes):
            return False
        deletes = {sink.shape: sink.deletes for sink in table.sinks}
        for load in self._loads.values():
            for sink, marker in load.marked():
                keeps_deleted = SHAPES[sink.shape].takes_deletes and deletes[sink.shape] == IGNORE
                if sink.shape in shapes and (keeps_deleted or marker.gaps or marker.asserted):
                    return False
        return True

    def _reading(self, table: TableSpec, folder: str) -> tuple[TableRows, Reading]:
        first = next(iter(self._loads.values()))
        place = f"{first.staging_path}/{folder}"
        mappings = map_columns(table.name, table.schema, table.selection)
        rows = TableRows(table, mappings, self._job.source.timezone, f"{place}/resolved")
        return rows, Reading(self._parts.source(table, mappings), self._job, table, place, rows.unsure)

    def _show(
        self,
        load: TableLoad,
        copy: Copy,
        shapes: Sequence[str],
        columns: Mapping[str, Sequence[str]],
        rows: TableRows,
        reading: Reading,
    ) -> None:
        """Commit the columns to sinks that are loaded up to the copy's end, to each alone."""
        sinks = tuple(sink for sink in load.sinks if sink.shape in shapes)
        grows = {shape: own for shape, own in self._owns.items() if shape in shapes}
        wide = TableLoad(self._job, with_all(self._table, sinks, grows), self._parts)
        targets = {mapping.column.name: [target.name for target in mapping.live] for mapping in rows.mappings}
        for shape in shapes:
            with self._notes.alone(shape):
                sink, loaded = wide.sink_of(shape), load.notes.done[shape].after
                assert loaded is not None
                names = [name for column in columns[shape] for name in targets[column]]
                with self._notes.timed("fill"), self._notes.writes(sink.target.name):
                    self._notes.note(_filled(sink, self._job, copy, rows, names, reading, loaded.position))

    def _unfilled(self) -> dict[str, tuple[str, ...]]:
        """The loaded sinks that show each row, with the columns that they lack, or of which they lack values."""
        table, found = self._table, {}
        whole = Chosen(table.schema, table.selection)
        for load in self._loads.values():
            marked = load.marked()
            owns, were = columns_of(marked, table), loaded_with(marked)
            for sink, marker in marked:
                wants = table.history_fill != NONE or not SHAPES[sink.shape].takes_history
                # one that has columns yet which the table lacks is filled once it has dropped them
                wants = wants and sink.shape not in self._behind
                if wants and sink.shape in load.comparable and sink.shape in load.notes.done:
                    own = owns.get(sink.shape, whole)
                    found[sink.shape] = lacking(whole, own, unfilled_of(table, sink, marker, own, were))
        return {shape: names for shape, names in found.items() if names}


def _filled(
    sink: Sink,
    job: JobSpec,
    copy: Copy,
    filling: TableRows,
    names: Sequence[str],
    reading: Reading,
    expects: Position,
) -> SinkReceipt:
    """Show columns that a target lacks, with all their values, as of a copy's end.

    :param copy: of the key and these columns
    :param filling: its rows
    :param names: of the columns
    :param reading: of the copy
    :param expects: position of the marker: the target is loaded up to the copy's end, or nothing happened behind it
    :raises CommitConflictError: if another run has loaded the target meanwhile
    """
    state, table, at = sink.state(), sink.rows.table.spec, copy.high
    marker = state.marker
    if marker is None or marker.position != expects:
        raise sink.conflict(f"loaded to {marker.position if marker else 'nothing'}, and not to {expects}")
    layout = sink.layout(state)
    added = sink.columns.added(state, layout, fills=True)
    sink.target.expect(added)
    copied = filling.copied(copy, None if copy.window.is_empty else copy.events, copy.window)
    there = filling.at_end(copied, copy.rows().limit(0))
    target_rows = with_nulls(sink.target.rows(state), added)
    common = copy.common.rows() if copy.common is not None else None
    sink.rows.check_exact(known := reading.witness(at))
    known_at = known.time if known is not None else None
    write = sink.rows.filled(target_rows, there, copied.events, names, copy.window, common, known_at)
    after: Marker = marker
    if marker.position < at:
        after = sink.marker(Window(marker.position, at), reading, state, SinkSteps(window=copy.window), layout)
    after = dataclasses.replace(
        after,
        feeds=line_of_feeds(marker, FeedRef.of(table.feed), at),
        **sink.columns_said(state, marker),
        unfilled=(),
        taken=sink.columns.taken(marker, after.position, after.position),
        copies=(*marker.copies[-COPIES_NAMED:], copy.id),
        layout=layout,
        spec_id=job.id,
        run=job.run,
    )
    write = dataclasses.replace(sink.rows.laid_out(write, layout), adds=added)
    if not sink.target.commit(state, write, after):
        raise sink.conflict("changed while columns were filled")
    return SinkReceipt(sink.shape, marker.position, after, "loaded", at)
