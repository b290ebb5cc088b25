"""One table's load: look, copy or read, stage, fold, commit; and again from the look where another run came first."""

from __future__ import annotations

import functools
import logging
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from airflow_provider_mssql_cdc.core.columns import check_columns, map_columns
from airflow_provider_mssql_cdc.core.marker import Marker
from airflow_provider_mssql_cdc.core.position import Position, Window, is_gap
from airflow_provider_mssql_cdc.core.spec import JobError, JobSpec, ReplaySpec, SinkReceipt, TableReceipt, TableSpec
from airflow_provider_mssql_cdc.core.steps import SinkSteps, table_steps
from airflow_provider_mssql_cdc.spark.decide import gap, is_asserted, said_window, stand_of, table_of, unreported
from airflow_provider_mssql_cdc.spark.parts import Parts
from airflow_provider_mssql_cdc.spark.reading import Reading
from airflow_provider_mssql_cdc.spark.replay import look_before_replay, replay_sink
from airflow_provider_mssql_cdc.spark.selecting import check_salt
from airflow_provider_mssql_cdc.spark.shapes.table import TableRows
from airflow_provider_mssql_cdc.spark.sink import Sink
from airflow_provider_mssql_cdc.spark.sources.base import SourceState
from airflow_provider_mssql_cdc.spark.staging import Staged
from airflow_provider_mssql_cdc.spark.targets import State

log = logging.getLogger(__name__)

_ATTEMPTS = 5


class TableLoad:
    """Loads one table's sinks.

    :param parts: what it is put together from
    :ivar writing: the target table to which a commit is under way
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
        self._seconds: dict[str, float] = {}
        self._warnings: list[str] = []

    def found_table(self) -> TableSpec:
        """The table by the capture instance that the markers name, where several may be read."""
        if not self._table.alternatives:
            return self._table
        return table_of(self._table, [sink.state().marker for sink in self.sinks()])

    def run(self) -> None:
        """Load the table up to the cut.

        :raises MsSqlCdcError: if a sink cannot be loaded; what other sinks of it have committed stays
        """
        with self._timed("plan"):
            sinks = self.sinks()
            states = [sink.state() for sink in sinks]
            source = self._reading.state(states)
            self._reading.readable_from = source.readable_from
            plans = self._steps([*zip(sinks, states, strict=True)], source)
            self._unreported = unreported(self._table.sinks, [found.marker for found in states])
            if any(todo.window for todo in plans):
                self._reading.check_reached(source, self._cut)
            for sink, found, todo in zip(sinks, states, plans, strict=True):
                if todo.copies and not found.exists:
                    sink.target.check_place()
        if any(todo.copies for todo in plans):
            self._begin(source, [sink for sink, todo in zip(sinks, plans, strict=True) if todo.copies])
        planned = (sink.window(todo, self._reading, self._cut) for sink, todo in zip(sinks, plans, strict=True))
        windows = list(dict.fromkeys(window for window in planned if window is not None and not window.is_empty))
        # what is read again for another sink is counted with that
        self._unreported = [marker for marker in self._unreported if not self._reading.has_read(marker, windows)]
        if windows:
            with self._timed("read"):
                self.stage_windows(windows)
        for sink, found, todo in zip(sinks, states, plans, strict=True):
            self._done.append(self._settle(sink, found, todo))

    def replay(self, replay: ReplaySpec) -> None:
        """Write a window again that was loaded before.

        :raises MsSqlCdcError: if the window was purged or not loaded yet, or a target must not take it
        """
        window = Window(replay.after, replay.upto)
        with self._timed("plan"):
            sinks = self.sinks(replay.suffix)
            look = functools.partial(look_before_replay, reading=self._reading, replay=replay)
            for sink in sinks:
                look(sink)
            state = self._reading.state()
            self._reading.check_reached(state, replay.upto)
            if is_gap(window.after, state.readable_from):
                raise gap(self._table, window.after, state.readable_from)
        with self._timed("read"):
            staged = self.stage_windows([window])
        with self._timed("commit"):
            self._done = [
                replay_sink(sink, staged, window, functools.partial(look, sink), anew=bool(replay.suffix))
                for sink in sinks
            ]

    def receipt(self, error: JobError | None = None) -> TableReceipt:
        """What was done, though it may have ended early."""
        return TableReceipt(
            name=self._table.name,
            sinks=tuple(self._done),
            error=error,
            counts=self._reading.counts(self._unreported),
            seconds=self._seconds,
            windows=(*map(said_window, self._unreported), *map(str, self._reading.windows)),
            warnings=tuple(self._warnings),
        )

    def sinks(self, suffix: str = "") -> list[Sink]:
        """The table's sinks.

        :param suffix: behind the names of tables that a replay builds beside theirs
        :raises TargetError: if a target cannot hold its own name, or that of a column
        """
        names = [(*rows.sink.table[:-1], rows.sink.table[-1] + suffix) for rows in self._rows]
        return [
            Sink(self._job, rows, self._parts.target, name, self._warn)
            for rows, name in zip(self._rows, names, strict=True)
        ]

    def stage_windows(self, windows: Sequence[Window]) -> Staged:
        """Stage all windows, each change once, and prove that none was purged meanwhile.

        :raises MsSqlCdcError: as ``Reading.stage`` does
        """
        return self._reading.stage(windows, before_images=any(rows.before_images for rows in self._rows))

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

    def _steps(self, sinks: Sequence[tuple[Sink, State]], source: SourceState) -> list[SinkSteps]:
        """What is to be done with some sinks, as their markers say.

        :raises MsSqlCdcError: if one of them must not be loaded
        """
        stands = {}
        for sink, state in sinks:
            if state.marker is not None and not is_asserted(sink.spec, state.marker):
                sink.check_marker(state.marker, source)
            stands[sink.shape] = stand_of(self._table, sink.spec, state)
        readable_from = self._reading.readable_from
        steps = table_steps(self._table, stands, cut=self._cut, readable_from=readable_from)
        for commit in steps.commits:
            log.info("%s: %s", self._table.name, commit)
        for sink, state in sinks:
            if sink.shape in steps.lost:
                marker = None if stands[sink.shape].word else state.marker
                raise gap(self._table, steps.lost[sink.shape], readable_from, marker)
            sink.prepare(state, steps.of(sink.shape))
        return [steps.of(sink.shape) for sink, _ in sinks]

    def _begin(self, source: SourceState, beginning: Sequence[Sink]) -> None:
        """Note where some sinks begin, and copy the table's rows where they take them."""
        takes_copy, has_key = any(sink.rows.takes_copy for sink in beginning), bool(self._table.schema.key)
        if not (takes_copy and has_key):
            self._reading.begin(source, self._cut, copied=False)
        else:
            with self._timed("copy"):
                self._reading.begin(source, self._cut, copied=True)
        if takes_copy and not has_key:
            low = self._reading.low
            self._warn(f"{self._table.name} has no key: its history starts at {low}, without the rows of before.")

    def _settle(self, sink: Sink, state: State, todo: SinkSteps) -> SinkReceipt:
        """Commit what is to be done; where another commit came first, look again, over the same staged rows."""
        for attempt in range(_ATTEMPTS + 1):
            if attempt:
                log.info("%s: %s moved the target; trying again", self._table.name, sink.target.moved_by())
                state = sink.state()
                source = self._reading.state([state])
                self._reading.check_unmoved(source.lineage)
                (todo,) = self._steps([(sink, state)], source)
            if (done := self._commit(sink, state, todo)) is not None:
                return done
        raise sink.moved(f"changed {_ATTEMPTS + 1} times while this load was about to commit")

    def _commit(self, sink: Sink, state: State, todo: SinkSteps) -> SinkReceipt | None:
        """Commit what is to be done with a sink; None if another commit came first."""
        before = state.marker.position if state.marker else None
        if todo.done is not None:
            marker = None if todo.word else state.marker
            return SinkReceipt(sink.shape, before, marker, todo.done.outcome, todo.done.read_through)
        window = sink.window(todo, self._reading, self._cut)
        if window is None:
            raise sink.moved("emptied after this run had found rows there, so that nothing was copied")
        if not self._reading.holds(window):
            raise sink.moved(f"changed so that {window} is missing, which this run has not read as a whole")
        if todo.window and not self._reading.count(window).events and not todo.word:
            return SinkReceipt(sink.shape, before, state.marker, "empty", window.upto)
        layout = sink.layout(state)
        marker = sink.marker(window, self._reading, state, todo, layout)
        if todo.copies:
            # not before all is read: columns that change meanwhile must not leave a table without them
            sink.make(layout)
        with self._timed("fold"):
            write = sink.write(window, self._reading, state, todo, layout)
        self.writing = sink.target.name
        with self._timed("commit"):
            done = sink.target.commit(state, write, marker)
        self.writing = None
        outcome = "first_load" if todo.copies else "loaded"
        return SinkReceipt(sink.shape, before, marker, outcome, window.upto) if done else None
