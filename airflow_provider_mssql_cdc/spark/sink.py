"""One sink of a table's load: where it stands, what it has to have, what is written into it, and its marker."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame

from airflow_provider_mssql_cdc.core.exceptions import (
    RESET_ADVICE,
    CommitConflictError,
    FormatError,
    GapError,
    TargetError,
)
from airflow_provider_mssql_cdc.core.feed import FeedRef
from airflow_provider_mssql_cdc.core.formats import check_identifiers
from airflow_provider_mssql_cdc.core.healing import Healing
from airflow_provider_mssql_cdc.core.initial import EARLIEST, purged_meanwhile
from airflow_provider_mssql_cdc.core.lineage import OtherPosition, restored
from airflow_provider_mssql_cdc.core.marker import LAYOUT, Marker, carried, line_of_feeds
from airflow_provider_mssql_cdc.core.position import Position, Window
from airflow_provider_mssql_cdc.core.receipt import SinkReceipt
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.spec import JobSpec
from airflow_provider_mssql_cdc.core.steps import SinkSteps
from airflow_provider_mssql_cdc.spark.copies.copy import Copy
from airflow_provider_mssql_cdc.spark.decide import check_origin, other_instance
from airflow_provider_mssql_cdc.spark.files import write_rows
from airflow_provider_mssql_cdc.spark.layouts import layout_of, marked_layout
from airflow_provider_mssql_cdc.spark.lost import Lost
from airflow_provider_mssql_cdc.spark.reading import Reading
from airflow_provider_mssql_cdc.spark.shapes.base import Beginning, SinkRows
from airflow_provider_mssql_cdc.spark.sink_columns import SinkColumns
from airflow_provider_mssql_cdc.spark.sources.base import SourceState
from airflow_provider_mssql_cdc.spark.targets import OldRows, State, TargetTable, Write, with_nulls

log = logging.getLogger(__name__)

_ATTEMPTS = 5
COPIES_NAMED = 7
"""So many copies a marker names: those of long ago are of copies whose folders are gone."""


class Sink:
    """One sink of a table's load.

    :param rows: what it holds
    :param open_target: opens a table for them
    :param name: of its table: the sink's own, or one that a replay builds beside it
    :param warn: takes what people are to be told
    :raises TargetError: if the table cannot hold its own name, or that of a column
    """

    def __init__(
        self,
        job: JobSpec,
        rows: SinkRows,
        open_target: Callable[[SinkRows, Sequence[str]], TargetTable],
        name: Sequence[str],
        warn: Callable[[str], None],
    ) -> None:
        self._job, self._table, self._warn = job, rows.table.spec, warn
        self.rows, self.spec = rows, rows.sink
        check_identifiers(self.spec.format, name[-1], (c.name for c in rows.columns()), self._table.name)
        self.target = open_target(rows, name)
        self.columns = SinkColumns(rows, self.target)
        self._lost = Lost(rows, self.columns, warn)

    @property
    def shape(self) -> str:
        """Its shape."""
        return self.spec.shape

    def state(self) -> State:
        """What the target holds now.

        :raises FormatError: if its marker cannot be read
        """
        try:
            return self.target.state()
        except FormatError as error:
            error.message, error.table = f"of {self.target.name}, {error.message}", str(self._table.name)
            error.advice = error.advice or RESET_ADVICE
            raise

    def check_marker(self, marker: Marker, source: SourceState) -> None:
        """Refuse a marker of another source, or of another history of this one.

        :raises MsSqlCdcError: if it is one
        """
        check_origin(self._job.source, self._table, self.spec, marker, self.columns.kept)
        if why := source.lineage.contradiction(marker.position, marker.witness):
            raise restored(self._table.name, f"{self.spec.name} is loaded up to {marker.position}", why)

    def prepare(self, state: State, todo: SinkSteps) -> None:
        """Look whether the sink can be loaded, and tidy up.

        :raises MsSqlCdcError: if it cannot
        """
        self.rows.check_key()
        if todo.window is not None:
            self.columns.check_ddl(state.marker, todo.window)
        if todo.done is None:
            self._check_start(state, todo)
        if state.exists:
            layout = self.layout(state)
            self.target.create(self.rows.columns(layout))
            self.columns.added(state, layout)
            self.target.drop_leftovers()

    def make(self, state: State, layout: int) -> None:
        """Create the table unless it exists, with the columns of a layout.

        :raises TargetError: if it has others, and does not get those that it lacks
        """
        self.target.create(self.rows.columns(layout))
        self.columns.added(state, layout)

    def layout(self, state: State) -> int:
        """The version of the system columns that the target has, or gets.

        :raises TargetError: if a later version of this package has made it
        :raises UnsupportedColumnError: if a column of the source would take the place of a system column
        """
        if state.marker is not None:
            return marked_layout(self.rows, self.target.name, state.marker.layout)
        added = self.rows.facts.added_columns(LAYOUT)
        if state.exists:
            return layout_of(self.rows, self.target.rows(state).columns)
        layout = layout_of(self.rows, [*added])
        if layout < LAYOUT:
            missing = ", ".join(added)
            self._warn(f"{self.target.name} gets no {missing}, since the source has a column of such a name")
        return layout

    def window(self, todo: SinkSteps, reading: Reading, cut: Position) -> Window | None:
        """The window to be loaded; None where there is none, or where its beginning is not known."""
        if todo.window is not None or not todo.begins or reading.low is None:
            return todo.window
        if reading.copy is not None:
            return reading.copy.window
        if todo.copied:
            return None
        return Window(reading.low, max(reading.low, cut))

    def check_whole(self, window: Window, reading: Reading, todo: SinkSteps) -> None:
        """Prove that nothing of a window was purged before it was read.

        :raises MsSqlCdcError: if something was
        """
        self.rows.check_exact(reading.witness(reading.reached(window)))
        try:
            reading.check_whole(window)
        except GapError as error:
            if self.spec.initial.kind != EARLIEST or not todo.begins or todo.window is None:
                raise
            raise purged_meanwhile(self._table.name, window.after) from error

    def write(self, window: Window, reading: Reading, state: State, todo: SinkSteps, layout: int) -> Write:
        """What a window, or the copied rows with it, add."""
        added = self.columns.growing(state, layout) if state.exists else ()
        self.rows.unfilled = self.columns.unfilled(state)
        if todo.goes_on:
            assert todo.window is not None
            staged = reading.respelled(window, self.rows, lambda: self.target.rows(state))
            gaps = self._lost.gaps(state, window, todo, reading)
            target_rows = self.target.rows_of(state, lambda: self.rows.looked_up(window, staged))
            target_rows = with_nulls(target_rows, added)
            if reading.copy is None:
                write = self.rows.next(window, staged, target_rows, gaps)
            else:
                write = self.rows.next_beside(reading.copy, window, staged, target_rows, gaps)
        else:
            target_rows = with_nulls(self.target.rows(state), added)
            witness = reading.witness(window.upto)
            known_at, anew = witness.time if witness else None, todo.lost_after is not None
            copy = reading.copy if todo.window is None else None
            before = self.columns.key_before(state.marker) if anew else None
            lacked = tuple(column.name for column in added)
            missed = self._lost.missed(window, reading, state, todo)
            asked = None
            if reading.heals(todo):
                asked = reading.asked(self.rows.table.key, lambda: self.rows.keys_there(self.target.rows(state)))
            begun = Beginning(window, reading.staged, copy, anew, known_at, before, lacked, missed, asked)
            write = self.rows.first(begun, target_rows)
        before = self.columns.key_before(state.marker)
        return dataclasses.replace(self.rows.laid_out(write, layout), adds=added, key_before=before or ())

    def marker(self, window: Window, reading: Reading, state: State, todo: SinkSteps, layout: int) -> Marker:
        """What the commit says of itself. The schema is kept beside the table before that."""
        counts, source = reading.count(window), self._job.source
        events = {"inserted": counts.inserted, "updated": counts.updated, "deleted": counts.deleted}
        copied = reading.copy.rows_copied if todo.copied and reading.copy else 0
        heals = reading.heals(todo)
        goes_on = not todo.asserted and (todo.window is not None or heals or self.rows.keeps_rows)
        before = state.marker if goes_on else None
        missed = self._lost.missed(window, reading, state, todo)
        marker = Marker(
            position=reading.reached(window),
            witness=reading.witness(reading.reached(window)),
            server=source.server,
            database=source.database,
            table=self._table.name,
            feeds=line_of_feeds(before, FeedRef.of(self._table.feed), (missed[0] if missed else window).after),
            schema_hash=self._table.schema.hash,
            window_after=None if todo.window is None else window.after,
            events={**events, "copied": copied},
            spec_id=self._job.id,
            gaps=self._lost.gaps(state, window, todo, reading),
            asserted=self.spec.asserted or (state.marker.asserted if state.marker else None),
            history=self.spec.history,
            selection_hash=self._table.selection.hash,
            selection=self._table.selection.describe(),
            deletes=self.spec.deletes if self.rows.facts.takes_deletes else None,
            run=self._job.run,
        )
        marker = carried(state.marker, marker, rows=goes_on)
        copies = marker.copies
        if todo.copied and reading.copy and reading.copy.id:
            asked = self._table.asked
            copies = (reading.copy.id, asked.id) if asked is not None and asked.of_loaded else (reading.copy.id,)
        if self.rows.facts.has_data and (todo.goes_on or todo.copied):
            # a copy brings the values of all columns, also to a history that keeps its rows
            marker = dataclasses.replace(marker, unfilled=() if todo.copied else self.columns.unfilled(state))
        before_rows = state.marker if goes_on or todo.goes_on else None
        return dataclasses.replace(
            marker,
            layout=layout,
            copies=copies,
            schema_kept=self.keep_schema(state, todo),
            ddl_upto=self._table.followed_upto,
            positions=self._positions(None if todo.asserted else state.marker, marker.position),
            taken=self.columns.taken(before_rows, window.after, marker.position if todo.copied and not heals else None)
            or self.columns.dropped(state.marker),
            **self._waiting(state.marker),
        )

    def _positions(self, before: Marker | None, at: Position) -> tuple[OtherPosition, ...]:
        """The versions of Change Tracking that may be used, as far as some are known."""
        healing = self._table.healing or Healing()
        return healing.kept(
            (*healing.noted, *self.spec.positions, *(before.positions if before is not None else ())), at
        )

    def _waiting(self, before: Marker | None) -> dict[str, Any]:
        """What a marker says of the columns that wait to be asked for, as checkpoint and markers know."""
        table = self._table
        loaded = {column.column_id for column in table.schema.columns}
        known = {*table.waiting_ids, *((before.waiting_in(table.feed) if before is not None else None) or ())}
        return {"waiting_ids": tuple(sorted(known - loaded)), "source_object_id": table.feed.source_object_id}

    def columns_said(self, state: State, marker: Marker) -> dict[str, Any]:
        """What a commit says of the table's columns.

        :param marker: of the commit before
        """
        table = self._table
        if marker.schema_hash == table.schema.hash:
            return {}
        return {
            "schema_hash": table.schema.hash,
            "schema_kept": self.keep_schema(state, SinkSteps()),
            "selection_hash": table.selection.hash,
            "selection": table.selection.describe(),
            "ddl_upto": table.followed_upto,
            **self._waiting(marker),
        }

    def has_copy(self, id_: str) -> bool:
        """Whether a commit has written what differed at the end of a copy, or began with it.

        :param id_: of the copy, as it was asked for
        """
        marker = self.state().marker
        return marker is not None and id_ in marker.copies

    def suspects(self, copy: Copy) -> DataFrame | None:
        """The keys of which a copy by conditions does not tell, and that may be gone, as ``SinkRows.suspects``."""
        state = self.state()
        added = self.columns.growing(state, self.layout(state))
        return self.rows.suspects(copy, self.rows.of_key(with_nulls(self.target.rows(state), added), state.gaps))

    def compare(self, copy: Copy, id_: str, reading: Reading, folder: str) -> tuple[SinkReceipt, str]:
        """Compare the target with the table as of a copy's end, and write what differs.

        :param id_: of the copy, as it was asked for
        :param reading: the target is loaded up to the copy's end, or nothing happened behind its marker up to there
        :param folder: for what differs; must not exist yet
        :return: with what was found, for people
        :raises CommitConflictError: if another run has loaded the target meanwhile
        """
        state = self.state()
        marker, at = state.marker, copy.high
        if marker is None or marker.position > at:
            raise self.conflict(f"loaded to {marker.position if marker else 'nothing'}, beside a copy to {at}")
        staged = None if copy.window.is_empty else copy.events
        layout = self.layout(state)
        added = self.columns.growing(state, layout)
        target_rows = self.rows.of_key(with_nulls(self.target.rows(state), added), state.gaps)
        found = self.rows.differences(Beginning(copy.window, staged, copy), target_rows)
        # once: all that the target holds is gone through for each of them
        names = ("rows", "old", "vanished")
        kept = {name: write_rows(getattr(found, name), f"{folder}/{name}").rows() for name in names}
        found = dataclasses.replace(found, **kept)
        self.rows.check_exact(witness := reading.witness(at))
        write = self.rows.mended(found, target_rows, at, witness.time if witness else None)
        after = marker
        if marker.position < at:
            window = Window(marker.position, at)
            after = self.marker(window, reading, state, SinkSteps(window=window), layout)
        ids = (*marker.copies[-COPIES_NAMED:], id_)
        after = dataclasses.replace(
            after,
            copies=ids,
            layout=layout,
            spec_id=self._job.id,
            run=self._job.run,
            **self.columns_said(state, marker),
            # a copy of all rows tells the values of all columns
            unfilled=self.columns.unfilled(state) if copy.conditions else (),
            taken=self.columns.taken(marker, after.position, None if copy.conditions else after.position),
        )
        differ, gone = found.rows.count(), found.vanished.count()
        equal = not (differ or gone or write.old is OldRows.ALL)
        write = dataclasses.replace(self.rows.laid_out(write, layout), adds=added)
        if not self.target.commit(state, write, after):
            raise self.conflict("changed while it was compared")
        what = "equal" if equal else f"{differ} rows were missing or differed, {gone} of its rows were not there"
        of = f"the table's rows where {' and '.join(map(str, copy.conditions))}" if copy.conditions else "the table"
        text = f"{self.spec.name} was compared with {of} at {at}: {what}."
        return SinkReceipt(self.shape, marker.position, after, "already" if equal else "loaded", at), text

    def until_committed(self, attempt: Callable[[int], SinkReceipt | None]) -> SinkReceipt:
        """What an attempt has done; where another commit came first, what the next one has.

        :param attempt: does it, given its number from 0; None where another commit came first
        :raises CommitConflictError: if others come first again and again
        """
        for number in range(_ATTEMPTS + 1):
            if number:
                log.info("%s: %s changed the target; trying again", self._table.name, self.target.changed_by())
            if (done := attempt(number)) is not None:
                return done
        raise self.conflict(f"changed {_ATTEMPTS + 1} times while this load was about to commit")

    def conflict(self, how: str) -> CommitConflictError:
        """The error of a target that others change."""
        return CommitConflictError(
            f"{self.target.name} was {how}; last changed by {self.target.changed_by()}.",
            table=str(self._table.name),
            advice="Run the task again; let one run at a time load it, and keep maintenance of the table apart from "
            "loads.",
        )

    def keep_schema(self, state: State, todo: SinkSteps) -> bool:
        """Keep the schema beside the table, unless its marker says that it is there; whether it is there now."""
        schema, marker = KeptSchema.of(self._table.schema), state.marker if not todo.asserted else None
        if marker is not None and marker.schema_kept and marker.schema_hash == schema.hash:
            return True
        return self.target.keep_schema(schema)

    def _check_start(self, state: State, todo: SinkSteps) -> None:
        """Refuse rows behind a start that their own commit does not prove."""
        name, position = self.target.name, state.marker.position if state.marker else None
        if todo.asserted:
            position = self.spec.read_through or self.spec.lost_after
            self._warn(f"{name} stands for {position}, as `checkpoint set` said.")
        elif todo.window and state.marker and (other := other_instance(self._table, state.marker)):
            self._warn(f"{name} {other}")
        if position is None or not (todo.asserted or state.from_property):
            return
        newest = self.rows.newest(self.target.rows(state))
        if newest is not None and newest > position.sort_key:  # type: ignore[operator]
            said = "`checkpoint set` names" if todo.asserted else "its properties remember"
            raise TargetError(
                f"the {self.shape} holds events up to {newest}, but {said} {position} as loaded.",
                table=str(self._table.name),
                advice="Delete its later events, or name the position that it stands for with "
                "`mssql-cdc checkpoint set`.",
            )
