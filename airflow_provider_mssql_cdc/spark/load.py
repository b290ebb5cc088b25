"""One table's load: look, copy or read, stage, fold, commit; and again from the look where another run came first."""

from __future__ import annotations

import dataclasses
import logging
import secrets
from collections.abc import Sequence

from airflow_provider_mssql_cdc.core.columns import check_columns, map_columns
from airflow_provider_mssql_cdc.core.copy_wanted import STOP, AskedCopy
from airflow_provider_mssql_cdc.core.exceptions import LostValueError
from airflow_provider_mssql_cdc.core.marker import Marker
from airflow_provider_mssql_cdc.core.position import Window
from airflow_provider_mssql_cdc.core.receipt import SinkReceipt
from airflow_provider_mssql_cdc.core.spec import JobSpec, ReplaySpec, SinkSpec, TableSpec
from airflow_provider_mssql_cdc.core.steps import SinkSteps
from airflow_provider_mssql_cdc.spark.comparing import Comparing
from airflow_provider_mssql_cdc.spark.copies.copy import Copy
from airflow_provider_mssql_cdc.spark.copies.pace import CopyTime
from airflow_provider_mssql_cdc.spark.decide import (
    copy_stopped,
    is_of_no_more_use,
    said_window,
    table_of,
    unreported,
)
from airflow_provider_mssql_cdc.spark.healing import Healer
from airflow_provider_mssql_cdc.spark.looks import Looks, SinkPlan
from airflow_provider_mssql_cdc.spark.notes import Notes
from airflow_provider_mssql_cdc.spark.parts import Parts
from airflow_provider_mssql_cdc.spark.reading import Reading
from airflow_provider_mssql_cdc.spark.replay import replay_sinks
from airflow_provider_mssql_cdc.spark.selecting import check_salt
from airflow_provider_mssql_cdc.spark.shapes.base import SinkRows
from airflow_provider_mssql_cdc.spark.shapes.table import TableRows
from airflow_provider_mssql_cdc.spark.sink import Sink
from airflow_provider_mssql_cdc.spark.staging import Staged
from airflow_provider_mssql_cdc.spark.targets import State

log = logging.getLogger(__name__)

_COPIES = 3


class TableLoad:
    """Loads one table's sinks.

    :param parts: what it is put together from
    :ivar notes: what is noted of it
    :ivar waiting: sinks that wait for a copy
    """

    def __init__(self, job: JobSpec, table: TableSpec, parts: Parts) -> None:
        self._job, self._table, self._parts = job, table, parts
        self.notes = Notes()
        cut = job.upto.of(table.feed.POSITION)
        if cut is None:
            raise ValueError(f"the cut {job.upto} names no position of {table.name}")
        # of this attempt alone: another one of the same job may run beside it, or may have been killed
        self.staging_path = f"{job.staging_path}/{secrets.token_hex(8)}"
        check_columns(table.name, table.schema, table.selection, table.feed.POSITION)
        check_salt(table.name, table.selection, parts.salt)
        mappings = map_columns(table.name, table.schema, table.selection)
        rows = TableRows(table, mappings, job.source.timezone, f"{self.staging_path}/resolved")
        self._reading = Reading(parts.source(table, mappings), job, table, self.staging_path, rows.unsure)
        self._rows = [parts.rows(rows, sink) for sink in table.sinks]
        self._healer = Healer(table, mappings, parts.source, self.notes, lambda: self._reading.readable_from)
        self._looks = Looks(table, self._reading, cut, self._sink, self.notes.alone)
        self._unreported: list[Marker] = []
        self.waiting: list[SinkPlan] = []
        self._going_on: set[str] = set()
        self._looked: tuple[list[tuple[Sink, State]], dict[str, tuple[Exception, str | None]]] | None = None
        self._asked = table.asked

    def found_table(self) -> TableSpec:
        """The table by the capture instance that the markers name, where several may be read."""
        if not self._table.alternatives:
            return self._table
        found = table_of(self._table, [state.marker for _, state in self._looks.look(self._rows)])
        self.notes.failed.clear()
        return found

    @property
    def table(self) -> TableSpec:
        """With the columns that the sinks have."""
        return self._table

    @property
    def shapes(self) -> list[str]:
        """The shapes of the sinks."""
        return [rows.sink.shape for rows in self._rows]

    @property
    def sinks(self) -> list[SinkSpec]:
        """The sinks."""
        return [rows.sink for rows in self._rows]

    @property
    def comparable(self) -> set[str]:
        """The shapes whose sinks show each row of the source table as it is at their markers."""
        return {rows.sink.shape for rows in self._rows if rows.is_comparable}

    @property
    def staging_paths(self) -> list[str]:
        """The folders of what is staged."""
        return [self.staging_path]

    def marked(self) -> list[tuple[Sink, Marker]]:
        """The sinks that have markers which can be read."""
        failed = dict(self.notes.failed)
        found = self._looks.look(self._rows)
        # commits are on condition that nothing has changed since: what was seen need not be looked for again
        self._looked = found, {s: why for s, why in self.notes.failed.items() if s not in failed}
        self.notes.failed = failed
        return [(sink, state.marker) for sink, state in found if state.marker is not None]

    def forget_asked(self) -> None:
        """Leave what a person asks for to the table's other sinks."""
        self._asked = None

    def sink_of(self, shape: str) -> Sink:
        """The sink of a shape."""
        return self._sink(next(rows for rows in self._rows if rows.sink.shape == shape))

    def load_windows(self) -> None:
        """Load what goes on by windows up to the cut. A sink that cannot be loaded is left out; the notes have why.

        :raises MsSqlCdcError: if none of the sinks that are still to be loaded can be
        """
        plans = self._plans(self._rows)
        # a marker that was refused says nothing of this table
        self._unreported = unreported([sink.spec for sink, _, _ in plans], [state.marker for _, state, _ in plans])
        self._load_what_goes_on(plans)

    @property
    def has_copies_left(self) -> bool:
        """Whether sinks wait for a copy, or a person asks for one."""
        return bool(self.waiting) or self._asked is not None

    def give_up_copies(self) -> None:
        """Leave what wants a copy to the next run."""
        self.waiting, self._asked = [], None

    def load_copies(self, time: CopyTime) -> None:
        """Copy the table where sinks wait for that or a person asks for it, and load them once the copy is whole.

        :param time: of the run for copies
        """
        asked = self._asked
        if asked is not None and asked.wanted == STOP:
            self._stop(asked)
        else:
            self._load_waiting(time)
            if asked is not None and asked.of_loaded:
                place = f"{self.staging_path}/differences"
                comparing = Comparing(
                    self._table,
                    self._rows,
                    self.notes,
                    self._reading,
                    self._sink,
                    self._load_up_to,
                    self._load_again,
                    place,
                )
                if comparing.run(asked, time):
                    self.count()
                    self._reading.stop_copies()
                self.waiting = []
        self._asked = None

    def abort_copy(self, why: str) -> None:
        """End the copy that a person asks for, which no retry can mend."""
        if self._table.asked is not None:
            self.notes.ended_copy = f"{self._table.asked.id} ABORTED: {why}"
            self._reading.stop_copies()

    def _stop(self, asked: AskedCopy) -> None:
        """End the table's copy; what begins with one fails for good, and the others begin."""
        self._reading.stop_copies()
        others = [plan for plan in self.waiting if not plan[2].copied]
        for sink in [sink for sink, _, todo in self.waiting if todo.copied]:
            with self.notes.alone(sink.shape):
                raise copy_stopped(self._table, sink.spec, asked.reason)
        # one that could not be looked at may wait for the copy, too
        unseen = {s for s, (error, _) in self.notes.failed.items() if not isinstance(error, LostValueError)}
        if unseen <= {sink.shape for sink, _, _ in self.waiting}:
            self.notes.ended_copy = f"{asked.id} {f'ABORTED: {asked.reason}' if asked.reason else 'STOPPED'}"
        self.waiting = []
        self._load_windows(others)

    def load_up_to_end(self, copy: Copy, shapes: Sequence[str]) -> list[str]:
        """Load the changes up to a copy's end; the shapes that have them all.

        :param shapes: that this run has loaded
        """
        left = [each for each in self._rows if each.sink.shape in shapes]
        if not self._table.feed.CAN.exact_cut:
            # a window that is read now ends where the source is now
            self._reading.take_events(copy)
        self._load_up_to(copy, left)
        done, failed = self.notes.done, self.notes.failed
        return [s for s in shapes if s in done and s not in failed and done[s].read_through == copy.high]

    def _load_up_to(self, copy: Copy, left: Sequence[SinkRows]) -> bool:
        """Load the changes up to a copy's end, so that both sides are as of one position; whether all are there."""
        self._looks.cut = max(self._looks.cut, copy.high)
        for each in left:
            done = self.notes.done.get(each.sink.shape)
            if done is not None and done.after is not None:
                # what lies behind its marker was proven empty by this run
                each.sink = dataclasses.replace(each.sink, read_through=done.read_through, expects=done.after.position)
        self._load_again(left)
        shapes = {each.sink.shape for each in left}
        return shapes <= self.notes.done.keys() and not shapes & self.notes.failed.keys()

    def _load_again(self, rows: Sequence[SinkRows]) -> None:
        """Load some sinks as they stand now."""
        self._load_what_goes_on(self._plans(rows))

    def _load_waiting(self, time: CopyTime) -> None:
        for _ in range(_COPIES):
            if not self.waiting:
                return
            time.begin()
            if left := self._load_copy(self.waiting, time):
                self._load_what_goes_on(self._plans([rows for rows in self._rows if rows.sink.shape in left]))
            else:
                self.waiting = []
        for sink, _, _ in self.waiting:
            with self.notes.alone(sink.shape):
                raise sink.conflict(f"to begin with a copy, which other runs have removed {_COPIES} times")

    def replay(self, replay: ReplaySpec) -> None:
        """Write a window again that was loaded before.

        :raises MsSqlCdcError: if the window was purged or not loaded yet, or a target must not take it
        """
        sinks = [self._sink(rows, replay.suffix) for rows in self._rows]
        stage, logged = self.stage_windows, self._looks.logged
        for done in replay_sinks(sinks, replay, self._table, self._reading, stage, logged, self.notes):
            self.notes.note(done)

    def _plans(self, rows: Sequence[SinkRows]) -> list[SinkPlan]:
        """What is to be done with some sinks, as the source and their markers say now."""
        looked, self._looked = self._looked, None
        with self.notes.timed("plan"):
            if looked is not None and rows is self._rows:
                found, failed = looked
                self.notes.failed |= failed
            else:
                found = self._looks.look(rows)
            self._source = self._reading.state([state for _, state in found])
            self._reading.saw_readable(self._source.readable_from)
            plans = self._looks.plan(found, self._source)
            if any(todo.window for _, _, todo in plans):
                self._reading.check_reached(self._source, self._looks.cut)
            return plans

    def _load_what_goes_on(self, plans: Sequence[SinkPlan]) -> None:
        """Load all but what begins with a copy, and what begins beside that: these wait for it."""
        waits = any(todo.copied for _, _, todo in plans)
        self.waiting = [plan for plan in plans if waits and plan[2].begins and plan[2].window is None]
        self._going_on |= {sink.shape for sink, _, todo in plans if not todo.begins or todo.window is not None}
        self._load_windows([plan for plan in plans if plan not in self.waiting])

    def _load_windows(self, plans: Sequence[SinkPlan]) -> None:
        """Load what goes on by windows, or begins without a copy."""
        if beginning := [sink for sink, _, todo in plans if todo.begins and todo.window is None]:
            with self.notes.alone(*(sink.shape for sink in beginning)):
                self._reading.begin(self._source, self._looks.cut)
                self._warn_of_no_key(beginning)
            plans = self._left(plans)
        planned = [(sink, sink.window(todo, self._reading, self._looks.cut)) for sink, _, todo in plans]
        windows = list(dict.fromkeys(window for _, window in planned if window is not None and not window.is_empty))
        if windows and not all(self._reading.holds(window, before_images=True) for window in windows):
            with self.notes.timed("read"):
                # of those, too, that have nothing to read yet: another job may begin them meanwhile
                left = [sink for sink, _, todo in plans if todo.done is None]
                self.stage_windows(windows, before_images=any(sink.rows.before_images for sink in left))
        self._settle_all(plans)

    def _load_copy(self, plans: Sequence[SinkPlan], time: CopyTime) -> set[str]:
        """Load what begins with a copy, or beside one; the shapes that are left because another run has finished it."""
        is_asked = self._asked is not None and self._asked.of_loaded
        changed = self._healer.changed(plans, of_all=is_asked)
        plans = self._left(plans)
        if not any(todo.copied for _, _, todo in plans):
            self._load_windows(plans)
            return set()
        shapes = [sink.shape for sink, _, _ in plans]
        above = [todo.lost_after for _, _, todo in plans if todo.lost_after is not None]
        with self.notes.alone(*shapes):
            with self.notes.timed("copy"):
                unfinished = self._reading.take_copy(time, max(above, default=None), changed=changed)
            copy = unfinished or self._reading.copy
            for text in copy.warnings if copy else ():
                self.notes.warn(text)
            if unfinished is not None:
                self.notes.copying = dataclasses.replace(unfinished.receipt, shapes=tuple(shapes))
            else:
                self._warn_of_no_key([sink for sink, _, _ in plans])
        if self.notes.copying is None:
            self._settle_all(self._left(plans))
        left = {shape for shape in shapes if shape not in self.notes.done}
        if left and self._reading.has_lost_copy():
            self.notes.copying = None
            self.notes.failed = {s: why for s, why in self.notes.failed.items() if s not in left}
            return left
        if self.notes.copying is None and not is_asked and is_of_no_more_use(left, self.notes.failed, self._going_on):
            self.count()
            self._reading.remove_copy()
        return set()

    def _left(self, plans: Sequence[SinkPlan]) -> list[SinkPlan]:
        """Those that have not failed."""
        return [plan for plan in plans if plan[0].shape not in self.notes.failed]

    def _settle_all(self, plans: Sequence[SinkPlan]) -> None:
        for sink, state, todo in plans:
            with self.notes.alone(sink.shape):
                self.notes.note(self._settle(sink, state, todo))

    def count(self) -> None:
        """Count what was read, for the receipt: what was staged and kept may be removed then."""
        # what is read again for another sink is counted with that
        unreported = [marker for marker in self._unreported if not self._reading.has_read(marker)]
        self.notes.windows = (*map(said_window, unreported), *map(str, self._reading.windows))
        self.notes.counts = self._reading.counts(unreported)

    def stage_windows(self, windows: Sequence[Window], *, before_images: bool) -> Staged:
        """Stage all windows, each change once.

        :param before_images: whether some sink needs them
        :raises MsSqlCdcError: as ``Reading.stage`` does
        """
        return self._reading.stage(windows, before_images=before_images)

    def _sink(self, rows: SinkRows, suffix: str = "") -> Sink:
        """A sink of the table.

        :param suffix: behind the name of a table that a replay builds beside the sink's own
        :raises TargetError: if the target cannot hold its own name, or that of a column
        """
        name = (*rows.sink.table[:-1], rows.sink.table[-1] + suffix)
        return Sink(self._job, rows, self._parts.target, name, self.notes.warn)

    def _warn_of_no_key(self, beginning: Sequence[Sink]) -> None:
        if not self._table.schema.key and any(sink.rows.takes_copy for sink in beginning):
            low = self._reading.low
            self.notes.warn(f"{self._table.name} has no key: its history starts at {low}, without the rows of before.")

    def _settle(self, sink: Sink, state: State, todo: SinkSteps) -> SinkReceipt:
        """Commit what is to be done; where another commit came first, look again, over the same staged rows."""

        def attempt(number: int) -> SinkReceipt | None:
            if number == 0:
                return self._commit(sink, state, todo)
            now = sink.state()
            source = self._reading.state([now])
            self._reading.check_not_restored(source.lineage)
            return self._commit(sink, now, self._looks.again(sink, now, source))

        return sink.until_committed(attempt)

    def _commit(self, sink: Sink, state: State, todo: SinkSteps) -> SinkReceipt | None:
        """Commit what is to be done with a sink; None if another commit came first."""
        before = state.marker.position if state.marker else None
        if todo.done is not None:
            marker = None if todo.asserted else state.marker
            has = sink.columns.loaded_with(marker)
            lacks = sink.columns.unfilled_yet(state) if marker is not None else None
            return SinkReceipt(sink.shape, before, marker, todo.done.outcome, todo.done.read_through, has, lacks)
        window = sink.window(todo, self._reading, self._looks.cut)
        if window is not None and todo.lost_after is not None and todo.lost_after > window.after:
            raise sink.conflict(f"loaded up to {todo.lost_after}, behind the begin of this run's copy")
        if window is None:
            raise sink.conflict("emptied after this run had found rows there, so that nothing was copied")
        if not self._reading.holds(window, before_images=sink.rows.before_images):
            raise sink.conflict(f"changed so that {window} is missing, which this run has not read as a whole")
        sink.check_whole(window, self._reading, todo)
        if self._reading.changed_after is not None and todo.copied:
            self._healer.check((sink, state, todo), self._reading.changed_after)
        if todo.goes_on and not self._reading.count(window).events and not todo.asserted:
            reached, has = self._reading.reached(window), sink.columns.loaded_with(state.marker)
            lacks = sink.columns.unfilled_yet(state)
            return SinkReceipt(sink.shape, before, state.marker, "empty", reached, has, lacks)
        layout = sink.layout(state)
        marker = sink.marker(window, self._reading, state, todo, layout)
        if todo.begins:
            # not before all is read: columns that change meanwhile must not leave a table without them
            with self.notes.writes(sink.target.name):
                sink.make(state, layout)
        with self.notes.timed("fold"):
            write = sink.write(window, self._reading, state, todo, layout)
        with self.notes.timed("commit"), self.notes.writes(sink.target.name):
            done = sink.target.commit(state, write, marker)
        outcome = "healed" if self._reading.heals(todo) else "first_load" if todo.begins else "loaded"
        return SinkReceipt(sink.shape, before, marker, outcome, marker.position) if done else None
