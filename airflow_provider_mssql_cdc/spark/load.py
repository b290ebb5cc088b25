"""One table's load: look, copy or read, stage, fold, commit; and again from the look where another run came first."""

from __future__ import annotations

import dataclasses
import functools
import logging
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.changes import check_history_key
from airflow_provider_mssql_cdc.core.columns import ColumnMapping, added_columns, check_columns, map_columns
from airflow_provider_mssql_cdc.core.exceptions import (
    RESET_ADVICE,
    CaptureLagError,
    FormatError,
    GapError,
    KeyRequiredError,
    MarkerMovedError,
    NotLoadedYetError,
    TargetError,
)
from airflow_provider_mssql_cdc.core.feed import FeedRef
from airflow_provider_mssql_cdc.core.lineage import Lineage, Witness, check_unmoved, restored
from airflow_provider_mssql_cdc.core.marker import LAYOUT, Gap, Marker, carried, line_of_feeds
from airflow_provider_mssql_cdc.core.position import Lsn, Position, Window, is_gap, merged
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.spec import (
    JobError,
    JobSpec,
    ReplaySpec,
    SinkReceipt,
    SinkSpec,
    TableReceipt,
    TableSpec,
)
from airflow_provider_mssql_cdc.core.steps import SinkSteps, table_steps
from airflow_provider_mssql_cdc.core.target import (
    HISTORY,
    KEYLESS,
    MIRROR,
    SCD2,
    SOFT,
    TRANSACTIONS,
    check_identifiers,
)
from airflow_provider_mssql_cdc.spark.changes import identified
from airflow_provider_mssql_cdc.spark.copying import Copy
from airflow_provider_mssql_cdc.spark.decide import (
    check_origin,
    gap,
    is_asserted,
    other_instance,
    said_window,
    stand_of,
    table_of,
    unreported,
)
from airflow_provider_mssql_cdc.spark.replay import check_replay, replay_sink
from airflow_provider_mssql_cdc.spark.selecting import check_salt
from airflow_provider_mssql_cdc.spark.shapes import TableShape
from airflow_provider_mssql_cdc.spark.sources.base import SourceState, TableSource
from airflow_provider_mssql_cdc.spark.staging import Counts, Staged
from airflow_provider_mssql_cdc.spark.targets import State, TargetTable, Write
from airflow_provider_mssql_cdc.spark.targets.registry import open_table
from airflow_provider_mssql_cdc.spark.window_reading import stage_windows
from airflow_provider_mssql_cdc.spark.writes import first_rows, laid_out, next_window, takes_copy

log = logging.getLogger(__name__)

_ATTEMPTS = 5


class TableLoad:
    """Loads one table's sinks.

    :param session: of this table alone
    :param opened: its source
    :param connections: JDBC connections that it may open at once
    :param salt: of hashes
    :ivar writing: the target table to which a commit is under way
    """

    def __init__(
        self,
        session: SparkSession,
        job: JobSpec,
        table: TableSpec,
        opened: Callable[[TableSpec, Sequence[ColumnMapping]], TableSource],
        *,
        connections: int,
        salt: str | None = None,
    ) -> None:
        self._session, self._job, self._table = session, job, table
        cut = job.upto.of(table.feed.POSITION)
        if cut is None:
            raise ValueError(f"the cut {job.upto} names no position of {table.name}")
        self._cut: Position = cut
        self._connections = connections
        # of this attempt alone: another one of the same job may run beside it, or may have been killed
        self.staging_path = f"{job.staging_path}/{secrets.token_hex(8)}"
        check_columns(table.name, table.schema, table.selection)
        check_salt(table.name, table.selection, salt)
        mappings = map_columns(table.name, table.schema, table.selection)
        self._source = opened(table, mappings)
        self.shape = TableShape(table, mappings, job.source.timezone, f"{self.staging_path}/resolved")
        self._sinks: list[SinkReceipt] = []
        self._windows: list[Window] = []
        self._unreported: list[Marker] = []
        self.writing: str | None = None
        self._seconds: dict[str, float] = {}
        self._warnings: list[str] = []
        self._copy: Copy | None = None
        self._low: Position | None = None
        self._staged: Staged | None = None
        self._readable_from: Position | None = None
        # what was seen of positions that this load stands on; if the database is restored, they belie what was read
        self._witnesses: dict[Position, Witness] = {job.witness.lsn: job.witness} if job.witness else {}

    def found_table(self) -> TableSpec:
        """The table by the capture instance that the markers name, where several may be read."""
        if not self._table.alternatives:
            return self._table
        return table_of(self._table, [self.target(sink.table, sink).state().marker for sink in self._table.sinks])

    def run(self) -> None:
        """Load the table up to the cut.

        :raises MsSqlCdcError: if a sink cannot be loaded; what other sinks of it have committed stays
        """
        with self._timed("plan"):
            targets = [self.target(sink.table, sink) for sink in self._table.sinks]
            states = [self._state_of(target) for target in targets]
            state = self._source_state(states)
            self._readable_from = state.readable_from
            plans = self._steps([*zip(self._table.sinks, targets, states, strict=True)], state)
        self._unreported = unreported(self._table.sinks, [found.marker for found in states])
        if any(todo.window for todo in plans):
            self._check_reached(state, self._cut)
        with self._timed("plan"):
            for target, found, todo in zip(targets, states, plans, strict=True):
                if todo.copies and not found.exists:
                    target.check_place()
        if beginning := [sink for sink, todo in zip(self._table.sinks, plans, strict=True) if todo.copies]:
            self._begin(state, copied=any(map(takes_copy, beginning)))
        planned = (self._window(sink, todo) for sink, todo in zip(self._table.sinks, plans, strict=True))
        self._windows = list(dict.fromkeys(w for w in planned if w is not None and not w.is_empty))
        # what is read again for another sink is counted with that
        self._unreported = [marker for marker in self._unreported if not self._reads(marker)]
        if self._windows:
            with self._timed("read"):
                self._staged = self.stage_windows(self._windows)
        for planned_sink in zip(self._table.sinks, targets, states, plans, strict=True):
            self._sinks.append(self._settle(*planned_sink))

    def replay(self, replay: ReplaySpec) -> None:
        """Write a window again that was loaded before.

        :raises MsSqlCdcError: if the window was purged or not loaded yet, or a target must not take it
        """
        window = Window(replay.after, replay.upto)
        with self._timed("plan"):
            targets = [self.target((*s.table[:-1], s.table[-1] + replay.suffix), s) for s in self._table.sinks]
            for sink, target in zip(self._table.sinks, targets, strict=True):
                self._look_before_replay(sink, target, replay)
            state = self._source.state()
            self._check_reached(state, replay.upto)
            self._readable_from = state.readable_from
            if is_gap(window.after, self._readable_from):
                raise gap(self._table, window.after, self._readable_from)
        self._windows = [window]
        with self._timed("read"):
            self._staged = self.stage_windows(self._windows)
        with self._timed("commit"):
            self._sinks = [
                replay_sink(
                    self.shape,
                    sink,
                    target,
                    self._staged,
                    window,
                    functools.partial(self._look_before_replay, sink, target, replay),
                    anew=bool(replay.suffix),
                )
                for sink, target in zip(self._table.sinks, targets, strict=True)
            ]

    def _look_before_replay(self, sink: SinkSpec, target: TargetTable, replay: ReplaySpec) -> State:
        """Return the state of a target that may take a replay.

        :raises MsSqlCdcError: if it must not
        """
        found = self._state_of(target)
        if is_asserted(sink, found.marker):
            raise NotLoadedYetError(
                f"{target.name} stands for what `checkpoint set` said, and no load has gone on from there yet.",
                table=str(self._table.name),
                advice="Run the load first.",
            )
        if found.doubt is not None:
            raise found.doubt
        if found.marker is not None:
            source = self._source_state([found])
            if self._staged is not None:
                self._check_unmoved(source.lineage)
            self._check_marker(sink, target, found.marker, source)
        check_replay(self._table, sink, target.name, found, replay)
        return found

    def receipt(self, error: JobError | None = None) -> TableReceipt:
        """Return what was done, though it may have ended early."""
        return TableReceipt(
            name=self._table.name,
            sinks=tuple(self._sinks),
            error=error,
            counts=self._counts(),
            seconds=self._seconds,
            windows=(*map(said_window, self._unreported), *map(str, self._windows)),
            warnings=tuple(self._warnings),
        )

    def target(self, name: Sequence[str], sink: SinkSpec) -> TargetTable:
        """Return the table that a sink writes to.

        :raises TargetError: if it cannot hold its own name, or that of a column
        """
        columns = (column.name for column in self.shape.columns(sink))
        check_identifiers(sink.format, name, columns, self._table.name)
        return open_table(self._session, self._job, self.shape, sink, name, connections=self._connections)

    def stage_windows(self, windows: Sequence[Window]) -> Staged:
        """Stage all windows, each change once, and prove that none was purged meanwhile.

        :raises GapError: if changes were purged before they were read
        :raises CaptureLagError: if the server no longer shows changes up to the windows' end
        :raises SourceMovedError: if the database was restored meanwhile
        """
        # where the server does not enforce the key, the before images tell which row left it
        history = not self._table.unique_key or any(s.shape != MIRROR or s.deletes == SOFT for s in self._table.sinks)
        try:
            staged, state = stage_windows(
                self._source,
                self._table,
                windows,
                f"{self.staging_path}/events",
                before_images=history,
                witnesses=self._witnesses.values(),
            )
        except GapError as gap:
            if self._copy is None or gap.after != self._copy.low:
                raise
            raise GapError(
                str(self._table.name),
                gap.after,
                gap.readable_from,
                advice="They were made while the table was copied, which took longer than changes are kept: raise the "
                "retention (sys.sp_cdc_change_job @job_type = N'cleanup'), and run the task again.",
            ) from gap
        self._readable_from = state.readable_from
        # a database that was restored before the read has had nothing to show behind that moment
        self._check_reached(state, max(window.upto for window in windows))
        self._check_unmoved(state.lineage)
        return staged

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self._seconds[name] = round(self._seconds.get(name, 0.0) + time.monotonic() - started, 3)

    def _check_reached(self, state: SourceState, upto: Position) -> None:
        """Refuse to read where a replica shows less than the server that named the cut."""
        if state.newest is None or state.newest < upto:
            raise CaptureLagError(
                f"the server shows changes up to {state.newest or 'nothing'}, and the cut is {upto}.",
                table=str(self._table.name),
                advice="A readable secondary may lag behind: run the task again.",
            )

    def _state_of(self, target: TargetTable) -> State:
        """What a target holds now.

        :raises FormatError: if its marker cannot be read
        """
        try:
            return target.state()
        except FormatError as error:
            error.message, error.table = f"of {target.name}, {error.message}", str(self._table.name)
            error.advice = error.advice or RESET_ADVICE
            raise

    def _source_state(self, found: Sequence[State]) -> SourceState:
        """Return the state of the source, with what tells whether the markers of targets still hold."""
        markers = [state.marker.witness for state in found if state.marker is not None]
        return self._source.state([*self._witnesses.values(), *(witness for witness in markers if witness)])

    def _saw(self, witnesses: Iterable[Witness]) -> None:
        """Stand on more positions; what was seen of one first remains."""
        self._witnesses = {**{witness.lsn: witness for witness in witnesses}, **self._witnesses}

    def _check_unmoved(self, lineage: Lineage) -> None:
        """Prove that the database was not restored since the run was planned.

        :raises SourceMovedError: if it was
        """
        check_unmoved(self._table.name, self._witnesses.values(), lineage, self._job.recovery_fork)

    def _check_marker(self, sink: SinkSpec, target: TargetTable, marker: Marker, source: SourceState) -> None:
        """Refuse a marker of another source, or of another history of this one."""
        check_origin(self._job.source, self._table, sink, marker, target.kept_schema)
        if why := source.lineage.contradiction(marker.position, marker.witness):
            raise restored(self._table.name, f"{sink.name} is loaded up to {marker.position}", why)

    def _steps(self, sinks: Sequence[tuple[SinkSpec, TargetTable, State]], source: SourceState) -> list[SinkSteps]:
        """What is to be done with some sinks, as their markers say.

        :raises MsSqlCdcError: if one of them must not be loaded
        """
        stands = {}
        for sink, target, state in sinks:
            if state.marker is not None and not is_asserted(sink, state.marker):
                self._check_marker(sink, target, state.marker, source)
            stands[sink.shape] = stand_of(self._table, sink, state)
        steps = table_steps(self._table, stands, cut=self._cut, readable_from=self._readable_from)
        for commit in steps.commits:
            log.info("%s: %s", self._table.name, commit)
        for sink, target, state in sinks:
            if sink.shape in steps.lost:
                marker = None if stands[sink.shape].word else state.marker
                raise gap(self._table, steps.lost[sink.shape], self._readable_from, marker)
            self._prepare(sink, target, state, steps.of(sink.shape))
        return [steps.of(sink.shape) for sink, _, _ in sinks]

    def _prepare(self, sink: SinkSpec, target: TargetTable, state: State, todo: SinkSteps) -> None:
        if todo.copies and sink.shape not in KEYLESS and not self._table.schema.key:
            raise KeyRequiredError(f"{sink.shape} needs a key, and the table has none.", table=str(self._table.name))
        key, unique = self._table.schema.key, self._table.unique_key
        check_history_key(self._table.name, sink.history, key=key, unique=unique)
        if state.exists:
            target.create(self.shape.columns(sink, self._layout(sink, target, state)))
            target.drop_leftovers()
        if todo.done is None:
            self._check_start(sink, target, state, todo)

    def _warn(self, text: str) -> None:
        if text not in self._warnings:
            self._warnings.append(text)

    def _check_start(self, sink: SinkSpec, target: TargetTable, state: State, todo: SinkSteps) -> None:
        """Refuse a history with events behind a start that its own commit does not prove."""
        position = state.marker.position if state.marker else None
        if todo.word:
            position = sink.read_through or sink.lost_after
            self._warn(f"{target.name} stands for {position}, as `checkpoint set` said.")
        elif todo.window and state.marker and (other := other_instance(self._table, state.marker)):
            self._warn(f"{target.name} {other}")
        lsns = {
            HISTORY: ("_lsn",),
            TRANSACTIONS: ("_lsn",),
            SCD2: ("_from_lsn", "_to_lsn"),
        }.get(sink.shape)
        if lsns is None or position is None or not (todo.word or state.from_property):
            return
        found = identified(sink, target.rows(state)).agg(*(F.max(name) for name in lsns)).collect()[0]
        newest = max(filter(None, found), default=None)
        if newest is not None and Lsn.parse(newest) > position:
            said = "`checkpoint set` names" if todo.word else "its properties remember"
            raise TargetError(
                f"the {sink.shape} holds events up to {newest}, but {said} {position} as loaded.",
                table=str(self._table.name),
                advice="Delete its later events, or name the position that it stands for with "
                "`mssql-cdc checkpoint set`.",
            )

    def _begin(self, state: SourceState, *, copied: bool) -> None:
        if not copied or not self._table.schema.key:
            self._check_reached(state, self._cut)
            self._low = self._source.low(state)
            self._saw(state.lineage.witnesses())
        if not copied:
            return
        if not self._table.schema.key:
            self._warn(f"{self._table.name} has no key: its history starts at {self._low}, without the rows of before.")
            return
        with self._timed("copy"):
            self._copy = self._source.copy(f"{self.staging_path}/copy", self._job.capture_timeout)
        self._low, high = self._copy.low, self._copy.high
        self._saw(self._copy.witnesses)
        # where nothing is read after the copy, nothing else tells that the database was restored since
        state = self._source.state(self._witnesses.values())
        self._check_reached(state, high)
        self._check_unmoved(state.lineage)

    def _window(self, sink: SinkSpec, todo: SinkSteps) -> Window | None:
        if todo.window is not None:
            return todo.window
        can_begin = self._copy is not None or not self._table.schema.key or not takes_copy(sink)
        if todo.copies and self._low is not None and can_begin:
            return Window(self._low, self._copy.high if self._copy else max(self._low, self._cut))
        return None

    def _settle(self, sink: SinkSpec, target: TargetTable, state: State, todo: SinkSteps) -> SinkReceipt:
        """Commit what is to be done; where another commit came first, look again, over the same staged rows."""
        for attempt in range(_ATTEMPTS + 1):
            if attempt:
                log.info("%s: %s moved the target; trying again", self._table.name, target.moved_by())
                state = self._state_of(target)
                source = self._source_state([state])
                self._check_unmoved(source.lineage)
                (todo,) = self._steps([(sink, target, state)], source)
            before = state.marker.position if state.marker else None
            window = self._window(sink, todo)
            if todo.done is not None:
                marker = None if todo.word else state.marker
                return SinkReceipt(sink.shape, before, marker, todo.done.outcome, todo.done.read_through)
            if window is None:
                raise self._moved(target, "emptied after this run had found rows there, so that nothing was copied")
            counts = self._count(target, window)
            if todo.window and not counts.events and not todo.word:
                return SinkReceipt(sink.shape, before, state.marker, "empty", window.upto)
            layout, kept = self._layout(sink, target, state), self._keep_schema(target, state, todo)
            if todo.copies:
                # not before all is read: columns that change meanwhile must not leave a table without them
                target.create(self.shape.columns(sink, layout))
            marker = self._marker(sink, state, window, counts, todo)
            marker = dataclasses.replace(marker, layout=layout, schema_kept=kept)
            with self._timed("fold"):
                write = laid_out(sink, self._write(sink, target, state, todo), layout)
            self.writing = target.name
            with self._timed("commit"):
                done = target.commit(state, write, marker)
            self.writing = None
            if done:
                outcome = "first_load" if todo.copies else "loaded"
                return SinkReceipt(sink.shape, before, marker, outcome, window.upto)
        raise self._moved(target, f"changed {_ATTEMPTS + 1} times while this load was about to commit")

    def _layout(self, sink: SinkSpec, target: TargetTable, state: State) -> int:
        """The version of the system columns that a target has, or gets.

        :raises TargetError: if a later version of this package has made it
        :raises UnsupportedColumnError: if a column of the source would take the place of a system column
        """
        if state.marker is None:
            if state.exists:
                return self.shape.layout_of(sink, target.rows(state).columns)
            layout = self.shape.new_layout(sink)
            if layout < LAYOUT:
                missing = ", ".join(added_columns(sink.shape, LAYOUT))
                self._warn(f"{target.name} gets no {missing}, since the source has a column of such a name")
            return layout
        return self.shape.marked_layout(sink, target.name, state.marker)

    def _keep_schema(self, target: TargetTable, state: State, todo: SinkSteps) -> bool:
        """Keep the schema beside the table, unless its marker says that it is there; whether it is there now."""
        schema, marker = KeptSchema.of(self._table.schema), state.marker if not todo.word else None
        if marker is not None and marker.schema_kept and marker.schema_hash == schema.hash:
            return True
        return target.keep_schema(schema)

    def _moved(self, target: TargetTable, how: str) -> MarkerMovedError:
        return MarkerMovedError(
            f"{target.name} was {how}; last changed by {target.moved_by()}.",
            table=str(self._table.name),
            advice="Run the task again; let one run at a time load it, and keep maintenance of the table apart from "
            "loads.",
        )

    def _count(self, target: TargetTable, window: Window) -> Counts:
        if window.is_empty:
            return Counts()
        staged = self._staged
        if staged is None or not any(w.holds(window) for w in staged.counts):
            raise self._moved(target, f"changed so that {window} is missing, which this run has not read as a whole")
        return staged.count(window)

    def _write(self, sink: SinkSpec, target: TargetTable, state: State, todo: SinkSteps) -> Write:
        window, held = self._window(sink, todo), target.rows(state)
        if todo.window is not None:
            assert self._staged is not None
            return next_window(self.shape, sink, todo.window, self._staged, held, state.gaps)
        assert window is not None
        witness = self._witnesses.get(window.upto)
        return first_rows(
            self.shape,
            sink,
            window,
            self._staged,
            self._copy,
            held,
            anew=todo.lost_after is not None,
            known_at=witness.time if witness else None,
        )

    def _gaps(self, sink: SinkSpec, state: State, window: Window, todo: SinkSteps) -> tuple[Gap, ...]:
        """What a history lacks: what it lacked before, and what is lost between that and a new copy."""
        if todo.window is not None:
            return state.gaps
        if todo.lost_after is None:
            return ()
        known, after = state.gaps, todo.lost_after
        self._warn(f"{sink.name}: the changes from {after} to {window.after} are lost; loaded anew from there")
        # nothing is missing from a mirror that was replaced; a version of before the gap that changed while the table
        # was copied counts up to that change, though it may have ended in the gap
        upto = window.upto if sink.shape == SCD2 else window.after
        return () if sink.shape == MIRROR else (*known, Gap(after, upto))

    def _marker(self, sink: SinkSpec, state: State, window: Window, counts: Counts, todo: SinkSteps) -> Marker:
        source, copied = self._job.source, self._copy.rows_copied if self._copy else 0
        events = {"inserted": counts.inserted, "updated": counts.updated, "deleted": counts.deleted}
        goes_on = not todo.word and (todo.window is not None or sink.shape != MIRROR)
        before = state.marker if goes_on else None
        marker = Marker(
            position=window.upto,
            witness=self._witnesses.get(window.upto),
            server=source.server,
            database=source.database,
            table=self._table.name,
            feeds=line_of_feeds(before, FeedRef.of(self._table.feed), window.after),
            schema_hash=self._table.schema.hash,
            window_after=None if todo.copies else window.after,
            events={**events, "copied": copied if todo.copies and takes_copy(sink) else 0},
            spec_id=self._job.id,
            gaps=self._gaps(sink, state, window, todo),
            asserted=sink.asserted or (state.marker.asserted if state.marker else None),
            history=sink.history,
            selection_hash=self._table.selection.hash,
            selection=self._table.selection.describe(),
            deletes=sink.deletes if sink.shape == MIRROR else None,
            run=self._job.run,
        )
        return carried(state.marker, marker, rows=goes_on)

    def _reads(self, marker: Marker) -> bool:
        """Whether this run reads or copies all that a commit brought."""
        if marker.window_after is None:
            return self._copy is not None
        return any(w.holds(Window(marker.window_after, marker.position)) for w in self._windows)

    def _counts(self) -> dict[str, int]:
        """Count each change of the table once, however many sinks took it."""
        whole = [self._staged.count(window) for window in merged(self._windows)] if self._staged else []
        total = {name: sum(getattr(c, name) for c in whole) for name in ("events", "inserted", "updated", "deleted")}
        total["copied"] = self._copy.rows_copied if self._copy else 0
        for marker in self._unreported:
            for name, number in marker.events.items():
                total[name] = total.get(name, 0) + number
                total["events"] += number if name != "copied" else 0
        return total
