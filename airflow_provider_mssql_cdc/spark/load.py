"""One table's load: look, copy or read, stage, fold, commit; and again from the look where another run came first."""

from __future__ import annotations

import dataclasses
import functools
import logging
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from airflow_provider_mssql_cdc.core.columns import check_columns, map_columns
from airflow_provider_mssql_cdc.core.exceptions import CopyUncertainError, KeyRequiredError
from airflow_provider_mssql_cdc.core.marker import Marker
from airflow_provider_mssql_cdc.core.position import Position, Window
from airflow_provider_mssql_cdc.core.spec import (
    CopyingReceipt,
    JobError,
    JobSpec,
    ReplaySpec,
    SinkReceipt,
    TableReceipt,
    TableSpec,
)
from airflow_provider_mssql_cdc.core.steps import SinkSteps, Stand, TableSteps, replay_steps, table_steps
from airflow_provider_mssql_cdc.spark.copies.copy import CopyTime
from airflow_provider_mssql_cdc.spark.decide import gap, is_asserted, said_window, stand_of, table_of, unreported
from airflow_provider_mssql_cdc.spark.parts import Parts
from airflow_provider_mssql_cdc.spark.reading import Reading
from airflow_provider_mssql_cdc.spark.replay import look_before_replay, replay_sink
from airflow_provider_mssql_cdc.spark.selecting import check_salt
from airflow_provider_mssql_cdc.spark.shapes.base import SinkRows
from airflow_provider_mssql_cdc.spark.shapes.table import TableRows
from airflow_provider_mssql_cdc.spark.sink import Sink
from airflow_provider_mssql_cdc.spark.sources.base import SourceState
from airflow_provider_mssql_cdc.spark.staging import Staged
from airflow_provider_mssql_cdc.spark.targets import State

log = logging.getLogger(__name__)


_Plan = tuple[Sink, State, SinkSteps]
_COPIES = 3


class TableLoad:
    """Loads one table's sinks.

    :param parts: what it is put together from
    :ivar writing: the target table to which a commit is under way
    :ivar waiting: sinks that wait for a copy
    :ivar failed: shape to why that sink was not loaded, and to the table that was written to then
    """

    def __init__(self, job: JobSpec, table: TableSpec, parts: Parts) -> None:
        self._job, self._table, self._parts = job, table, parts
        cut = job.upto.of(table.feed.POSITION)
        if cut is None:
            raise ValueError(f"the cut {job.upto} names no position of {table.name}")
        self._cut: Position = cut
        # of this attempt alone: another one of the same job may run beside it, or may have been killed
        self.staging_path = f"{job.staging_path}/{secrets.token_hex(8)}"
        check_columns(table.name, table.schema, table.selection)
        check_salt(table.name, table.selection, parts.salt)
        mappings = map_columns(table.name, table.schema, table.selection)
        self._reading = Reading(parts.source(table, mappings), job, table, self.staging_path)
        rows = TableRows(table, mappings, job.source.timezone, f"{self.staging_path}/resolved")
        self._rows = [parts.rows(rows, sink) for sink in table.sinks]
        self._done: list[SinkReceipt] = []
        self._unreported: list[Marker] = []
        self.writing: str | None = None
        self.failed: dict[str, tuple[Exception, str | None]] = {}
        self.waiting: list[_Plan] = []
        self._going_on: set[str] = set()
        self._seconds: dict[str, float] = {}
        self._warnings: list[str] = []
        self._copying: CopyingReceipt | None = None
        self._counts: dict[str, int] = {}
        self._windows: tuple[str, ...] = ()

    def found_table(self) -> TableSpec:
        """The table by the capture instance that the markers name, where several may be read."""
        if not self._table.alternatives:
            return self._table
        found = table_of(self._table, [state.marker for _, state in self._look(self._rows)])
        self.failed.clear()
        return found

    def load_windows(self) -> None:
        """Load what goes on by windows up to the cut. A sink that cannot be loaded is left out; ``failed`` has why.

        :raises MsSqlCdcError: if none of the sinks that are still to be loaded can be
        """
        plans = self._plans(self._rows)
        # a marker that was refused says nothing of this table
        self._unreported = unreported([sink.spec for sink, _, _ in plans], [state.marker for _, state, _ in plans])
        self._load_what_goes_on(plans)

    def load_copies(self, time: CopyTime) -> None:
        """Copy the table where sinks wait for that, as far as the time allows, and load them once the copy is whole.

        :param time: of the run for copies
        """
        for _ in range(_COPIES):
            if not self.waiting:
                return
            time.begin()
            if left := self._load_copy(self.waiting, time):
                self._load_what_goes_on(self._plans([rows for rows in self._rows if rows.sink.shape in left]))
            else:
                self.waiting = []
        for sink, _, _ in self.waiting:
            with self._alone(sink.shape):
                raise sink.conflict(f"to begin with a copy, which other runs have removed {_COPIES} times")

    def replay(self, replay: ReplaySpec) -> None:
        """Write a window again that was loaded before.

        :raises MsSqlCdcError: if the window was purged or not loaded yet, or a target must not take it
        """
        with self._timed("plan"):
            sinks = [self._sink(rows, replay.suffix) for rows in self._rows]
            look = functools.partial(look_before_replay, reading=self._reading, replay=replay)
            for sink in sinks:
                look(sink)
            state = self._reading.state()
            self._reading.check_reached(state, replay.upto)
            steps = self._logged(replay_steps(self._table, replay, readable_from=state.readable_from))
            for after in steps.lost.values():
                raise gap(self._table, after, state.readable_from)
        with self._timed("read"):
            windows = [*dict.fromkeys(steps.windows.values())]
            staged = self.stage_windows(windows, before_images=any(sink.rows.before_images for sink in sinks))
            for window in steps.windows.values():
                self._reading.check_whole(window)
        with self._timed("commit"):
            for sink in sinks:
                with self._writes(sink):
                    again = functools.partial(look, sink)
                    window = steps.windows[sink.shape]
                    self._done.append(replay_sink(sink, staged, window, again, anew=bool(replay.suffix)))

    def _plans(self, rows: Sequence[SinkRows]) -> list[_Plan]:
        """What is to be done with some sinks, as the source and their markers say now."""
        with self._timed("plan"):
            found = self._look(rows)
            self._source = self._reading.state([state for _, state in found])
            self._reading.readable_from = self._source.readable_from
            plans = self._plan(found, self._source)
            if any(todo.window for _, _, todo in plans):
                self._reading.check_reached(self._source, self._cut)
            return plans

    def _load_what_goes_on(self, plans: Sequence[_Plan]) -> None:
        """Load all but what begins with a copy, and what begins beside that: these wait for it."""
        waits = any(todo.copied for _, _, todo in plans)
        self.waiting = [plan for plan in plans if waits and plan[2].begins]
        self._going_on |= {sink.shape for sink, _, todo in plans if not todo.begins}
        self._load_windows([plan for plan in plans if plan not in self.waiting])

    def _load_windows(self, plans: Sequence[_Plan]) -> None:
        """Load what goes on by windows, or begins without a copy."""
        if beginning := [sink for sink, _, todo in plans if todo.begins]:
            with self._alone(*(sink.shape for sink in beginning)):
                self._reading.begin(self._source, self._cut)
                self._warn_of_no_key(beginning)
            plans = [plan for plan in plans if plan[0].shape not in self.failed]
        planned = [(sink, sink.window(todo, self._reading, self._cut)) for sink, _, todo in plans]
        windows = list(dict.fromkeys(window for _, window in planned if window is not None and not window.is_empty))
        if windows:
            with self._timed("read"):
                # of those, too, that have nothing to read yet: another job may begin them meanwhile
                left = [sink for sink, _, todo in plans if todo.done is None]
                self.stage_windows(windows, before_images=any(sink.rows.before_images for sink in left))
        self._settle_all(plans)

    def _load_copy(self, plans: Sequence[_Plan], time: CopyTime) -> set[str]:
        """Load what begins with a copy, or beside one; the shapes that are left because another run has finished it."""
        shapes = [sink.shape for sink, _, _ in plans]
        above = [todo.lost_after for _, _, todo in plans if todo.lost_after is not None]
        with self._alone(*shapes):
            with self._timed("copy"):
                unfinished = self._reading.take_copy(time, max(above, default=None))
            copy = unfinished or self._reading.copy
            for text in copy.warnings if copy else ():
                self._warn(text)
            if unfinished is not None:
                self._copying = dataclasses.replace(unfinished.receipt, shapes=tuple(shapes))
            else:
                self._warn_of_no_key([sink for sink, _, _ in plans])
        if self._copying is None:
            self._settle_all([plan for plan in plans if plan[0].shape not in self.failed])
        left = {shape for shape in shapes if not self.is_done(shape)}
        if left and self._reading.has_lost_copy():
            self._copying = None
            for shape in left:
                self.failed.pop(shape, None)
            return left
        if self._copying is None and self._is_of_no_more_use(left):
            self.count()
            self._reading.remove_copy()
        return set()

    def _is_of_no_more_use(self, left: set[str]) -> bool:
        """Whether nobody waits for a whole copy any more, or who does would fail with the same rows in the same way.

        :param left: the shapes that have not begun with it
        """
        errors = [self.failed[shape][0] for shape in left & self.failed.keys()]
        if any(isinstance(error, (CopyUncertainError, KeyRequiredError)) for error in errors):
            return True
        # one that could not be looked at may wait for it
        return not left and self.failed.keys() <= self._going_on

    def _settle_all(self, plans: Sequence[_Plan]) -> None:
        for sink, state, todo in plans:
            with self._alone(sink.shape):
                self._done.append(self._settle(sink, state, todo))

    def is_done(self, shape: str) -> bool:
        """Whether a sink was loaded, or there was nothing to load."""
        return any(done.shape == shape for done in self._done)

    def receipt(self, failed: Mapping[str, JobError] = MappingProxyType({})) -> TableReceipt:
        """What was done, though it may have ended early.

        :param failed: shape to why that sink was not loaded
        """
        return TableReceipt(
            name=self._table.name,
            sinks=tuple(self._done),
            failed=dict(failed),
            counts=self._counts,
            seconds=self._seconds,
            windows=self._windows,
            warnings=tuple(self._warnings),
            copying=self._copying,
        )

    def count(self) -> None:
        """Count what was read, for the receipt: what was staged and kept may be removed then."""
        # what is read again for another sink is counted with that
        unreported = [marker for marker in self._unreported if not self._reading.has_read(marker)]
        self._windows = (*map(said_window, unreported), *map(str, self._reading.windows))
        self._counts = self._reading.counts(unreported)

    def stage_windows(self, windows: Sequence[Window], *, before_images: bool) -> Staged:
        """Stage all windows, each change once.

        :param before_images: whether some sink needs them
        :raises MsSqlCdcError: as ``Reading.stage`` does
        """
        return self._reading.stage(windows, before_images=before_images)

    @contextmanager
    def _alone(self, *shapes: str) -> Iterator[None]:
        """A failure in here is that of these sinks alone: the others are loaded."""
        try:
            yield
        except Exception as error:
            self.failed |= dict.fromkeys(shapes, (error, self.writing))
            self.writing = None

    @contextmanager
    def _writes(self, sink: Sink) -> Iterator[None]:
        """A failure in here, such as a full disk, is one of the sink's table."""
        self.writing = sink.target.name
        yield
        self.writing = None

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self._seconds[name] = round(self._seconds.get(name, 0.0) + time.monotonic() - started, 3)

    def _warn(self, text: str) -> None:
        if text not in self._warnings:
            self._warnings.append(text)

    def _sink(self, rows: SinkRows, suffix: str = "") -> Sink:
        """A sink of the table.

        :param suffix: behind the name of a table that a replay builds beside the sink's own
        :raises TargetError: if the target cannot hold its own name, or that of a column
        """
        name = (*rows.sink.table[:-1], rows.sink.table[-1] + suffix)
        return Sink(self._job, rows, self._parts.target, name, self._warn)

    def _look(self, looked_at: Sequence[SinkRows]) -> list[tuple[Sink, State]]:
        """The sinks, each with what its target holds now."""
        found = []
        for rows in looked_at:
            with self._alone(rows.sink.shape):
                sink = self._sink(rows)
                found.append((sink, sink.state()))
        return found

    def _plan(self, sinks: Sequence[tuple[Sink, State]], source: SourceState) -> list[_Plan]:
        """What is to be done with the sinks, as their markers say."""
        stands = {}
        for sink, state in sinks:
            with self._alone(sink.shape):
                stands[sink.shape] = self._stand(sink, state, source)
        steps = self._steps(stands)
        planned = []
        for sink, state in sinks:
            with self._alone(sink.shape):
                if sink.shape in stands:
                    todo = self._todo(sink, state, stands[sink.shape], steps)
                    if todo.begins and not state.exists:
                        sink.target.check_place()
                    planned.append((sink, state, todo))
        return planned

    def _stand(self, sink: Sink, state: State, source: SourceState) -> Stand:
        """Where a sink stands, after its marker was looked at."""
        if state.marker is not None and not is_asserted(sink.spec, state.marker):
            sink.check_marker(state.marker, source)
        return stand_of(self._table, sink.spec, state)

    def _steps(self, stands: Mapping[str, Stand]) -> TableSteps:
        return self._logged(table_steps(self._table, stands, cut=self._cut, readable_from=self._reading.readable_from))

    def _logged(self, steps: TableSteps) -> TableSteps:
        for commit in steps.commits:
            log.info("%s: %s", self._table.name, commit)
        return steps

    def _todo(self, sink: Sink, state: State, stand: Stand, steps: TableSteps) -> SinkSteps:
        """What is to be done with a sink, for which it is made ready.

        :raises MsSqlCdcError: if it must not be loaded
        """
        if sink.shape in steps.lost:
            marker = None if stand.asserted else state.marker
            raise gap(self._table, steps.lost[sink.shape], self._reading.readable_from, marker)
        sink.prepare(state, steps.of(sink.shape))
        return steps.of(sink.shape)

    def _warn_of_no_key(self, beginning: Sequence[Sink]) -> None:
        if not self._table.schema.key and any(sink.rows.takes_copy for sink in beginning):
            low = self._reading.low
            self._warn(f"{self._table.name} has no key: its history starts at {low}, without the rows of before.")

    def _settle(self, sink: Sink, state: State, todo: SinkSteps) -> SinkReceipt:
        """Commit what is to be done; where another commit came first, look again, over the same staged rows."""

        def attempt(number: int) -> SinkReceipt | None:
            if number == 0:
                return self._commit(sink, state, todo)
            now = sink.state()
            source = self._reading.state([now])
            self._reading.check_not_restored(source.lineage)
            stand = self._stand(sink, now, source)
            return self._commit(sink, now, self._todo(sink, now, stand, self._steps({sink.shape: stand})))

        return sink.until_committed(attempt)

    def _commit(self, sink: Sink, state: State, todo: SinkSteps) -> SinkReceipt | None:
        """Commit what is to be done with a sink; None if another commit came first."""
        before = state.marker.position if state.marker else None
        if todo.done is not None:
            marker = None if todo.asserted else state.marker
            return SinkReceipt(sink.shape, before, marker, todo.done.outcome, todo.done.read_through)
        window = sink.window(todo, self._reading, self._cut)
        if window is not None and todo.lost_after is not None and todo.lost_after > window.after:
            raise sink.conflict(f"loaded up to {todo.lost_after}, behind the begin of this run's copy")
        if window is None:
            raise sink.conflict("emptied after this run had found rows there, so that nothing was copied")
        if not self._reading.holds(window, before_images=sink.rows.before_images):
            raise sink.conflict(f"changed so that {window} is missing, which this run has not read as a whole")
        self._reading.check_whole(window)
        if todo.window and not self._reading.count(window).events and not todo.asserted:
            return SinkReceipt(sink.shape, before, state.marker, "empty", self._reading.reached(window))
        layout = sink.layout(state)
        marker = sink.marker(window, self._reading, state, todo, layout)
        if todo.begins:
            # not before all is read: columns that change meanwhile must not leave a table without them
            with self._writes(sink):
                sink.make(layout)
        with self._timed("fold"):
            write = sink.write(window, self._reading, state, todo, layout)
        with self._timed("commit"), self._writes(sink):
            done = sink.target.commit(state, write, marker)
        outcome = "first_load" if todo.begins else "loaded"
        return SinkReceipt(sink.shape, before, marker, outcome, marker.position) if done else None
