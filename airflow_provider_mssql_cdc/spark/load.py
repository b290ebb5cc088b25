"""One table's load: look, copy or read, stage, fold, commit; and again from the look where another run came first."""

from __future__ import annotations

import dataclasses
import functools
import logging
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.changes import check_history_key
from airflow_provider_mssql_cdc.core.columns import added_columns, check_columns, map_columns
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
from airflow_provider_mssql_cdc.core.lineage import LogHistory, Witness, check_unmoved, restored
from airflow_provider_mssql_cdc.core.lsn import Lsn
from airflow_provider_mssql_cdc.core.marker import LAYOUT, Gap, Marker, carried, line_of_feeds
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
from airflow_provider_mssql_cdc.core.table import InstanceRef
from airflow_provider_mssql_cdc.core.target import (
    HISTORY,
    KEYLESS,
    MIRROR,
    SCD2,
    SOFT,
    TRANSACTIONS,
    check_identifiers,
)
from airflow_provider_mssql_cdc.core.window import Window
from airflow_provider_mssql_cdc.spark.changes import identified
from airflow_provider_mssql_cdc.spark.decide import (
    Decision,
    Done,
    FirstLoad,
    Load,
    check_origin,
    decide,
    gap,
    is_asserted,
    is_gap,
    other_instance,
    said_window,
    table_of,
    unreported,
)
from airflow_provider_mssql_cdc.spark.first_load import Copy, copy_table, low_position
from airflow_provider_mssql_cdc.spark.replay import check_replay, replay_sink
from airflow_provider_mssql_cdc.spark.selecting import check_salt
from airflow_provider_mssql_cdc.spark.shapes import TableShape
from airflow_provider_mssql_cdc.spark.source import Source, SourceState
from airflow_provider_mssql_cdc.spark.staging import Counts, Staged
from airflow_provider_mssql_cdc.spark.targets import State, TargetTable, Write
from airflow_provider_mssql_cdc.spark.targets.registry import open_table
from airflow_provider_mssql_cdc.spark.window_reading import merged, stage_windows
from airflow_provider_mssql_cdc.spark.writes import first_rows, laid_out, next_window, takes_copy

log = logging.getLogger(__name__)

_ATTEMPTS = 5


class TableLoad:
    """Loads one table's sinks.

    :param session: of this table alone
    :param connections: JDBC connections that it may open at once
    :param salt: of hashes
    :ivar writing: the target table to which a commit is under way
    """

    def __init__(
        self,
        session: SparkSession,
        job: JobSpec,
        table: TableSpec,
        source: Source,
        *,
        connections: int,
        salt: str | None = None,
    ) -> None:
        self._session, self._job, self._table, self._source = session, job, table, source
        self._connections = connections
        # of this attempt alone: another one of the same job may run beside it, or may have been killed
        self.staging_path = f"{job.staging_path}/{secrets.token_hex(8)}"
        check_columns(table.name, table.schema, table.selection)
        check_salt(table.name, table.selection, salt)
        self._salt = salt
        mappings = map_columns(table.name, table.schema, table.selection)
        self.shape = TableShape(table, mappings, job.source.timezone, f"{self.staging_path}/resolved")
        self._sinks: list[SinkReceipt] = []
        self._windows: list[Window] = []
        self._unreported: list[Marker] = []
        self.writing: str | None = None
        self._seconds: dict[str, float] = {}
        self._warnings: list[str] = []
        self._copy: Copy | None = None
        self._low: Lsn | None = None
        self._staged: Staged | None = None
        self._min_lsn: Lsn | None = None
        # what was seen of positions that this load stands on; if the database is restored, they belie what was read
        self._witnesses: dict[Lsn, Witness] = {job.witness.lsn: job.witness} if job.witness else {}

    def found_table(self) -> TableSpec:
        """The table by the capture instance that the markers name, where several may be read."""
        if not self._table.alternatives:
            return self._table
        return table_of(self._table, [self.target(sink.table, sink).state().marker for sink in self._table.sinks])

    def run(self) -> None:
        """Load the table up to the cut.

        :raises MsSqlCdcError: if a sink cannot be loaded; what other sinks of it have committed stays
        """
        with self._step("plan"):
            targets = [self.target(sink.table, sink) for sink in self._table.sinks]
            states = [self._state_of(target) for target in targets]
            state = self._source_state(states)
            self._min_lsn = state.min_lsn
            plans = [self._look(*found, state) for found in zip(self._table.sinks, targets, states, strict=True)]
        self._unreported = unreported(self._table.sinks, [found.marker for found in states])
        if any(isinstance(decision, Load) for decision in plans):
            self._check_reached(state, self._job.upto)
        with self._step("plan"):
            for target, found, decision in zip(targets, states, plans, strict=True):
                if isinstance(decision, FirstLoad) and not found.exists:
                    target.check_place()
        if any(isinstance(decision, FirstLoad) for decision in plans):
            beginning = [s for s, d in zip(self._table.sinks, plans, strict=True) if isinstance(d, FirstLoad)]
            self._begin(state, copied=any(map(takes_copy, beginning)))
        planned = (self._window(sink, d) for sink, d in zip(self._table.sinks, plans, strict=True))
        self._windows = list(dict.fromkeys(w for w in planned if w is not None and not w.is_empty))
        # what is read again for another sink is counted with that
        self._unreported = [marker for marker in self._unreported if not self._reads(marker)]
        if self._windows:
            with self._step("read"):
                self._staged = self.stage_windows(self._windows)
        for planned_sink in zip(self._table.sinks, targets, states, plans, strict=True):
            self._sinks.append(self._settle(*planned_sink))

    def replay(self, replay: ReplaySpec) -> None:
        """Write a window again that was loaded before.

        :raises MsSqlCdcError: if the window was purged or not loaded yet, or a target must not take it
        """
        window = Window(replay.after, replay.upto)
        with self._step("plan"):
            targets = [self.target((*s.table[:-1], s.table[-1] + replay.suffix), s) for s in self._table.sinks]
            for sink, target in zip(self._table.sinks, targets, strict=True):
                self._look_before_replay(sink, target, replay)
            state = self._source.state(self._table.instance)
            self._check_reached(state, replay.upto)
            self._min_lsn = state.min_lsn
            if is_gap(window.after, self._min_lsn):
                raise gap(self._table, window.after, self._min_lsn)
        self._windows = [window]
        with self._step("read"):
            self._staged = self.stage_windows(self._windows)
        with self._step("commit"):
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
                self._check_unmoved(source.history)
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
                self.shape.mappings,
                windows,
                f"{self.staging_path}/events",
                history=history,
                slice_rows=self._job.slice_rows,
                connections=self._connections,
                salt=self._salt,
                lsns=[*self._witnesses],
            )
        except GapError as gap:
            if self._copy is None or gap.after != self._copy.low:
                raise
            raise GapError(
                str(self._table.name),
                gap.after,
                gap.min_lsn,
                advice="They were made while the table was copied, which took longer than changes are kept: raise the "
                "retention (sys.sp_cdc_change_job @job_type = N'cleanup'), and run the task again.",
            ) from gap
        self._min_lsn = state.min_lsn
        # a database that was restored before the read has had nothing to show behind that moment
        self._check_reached(state, max(window.upto for window in windows))
        self._check_unmoved(state.history)
        return staged

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self._seconds[name] = round(self._seconds.get(name, 0.0) + time.monotonic() - started, 3)

    def _check_reached(self, state: SourceState, upto: Lsn) -> None:
        """Refuse to read where a replica shows less than the server that named the cut."""
        if state.max_lsn is None or state.max_lsn < upto:
            raise CaptureLagError(
                f"the server shows changes up to {state.max_lsn or 'nothing'}, and the cut is {upto}.",
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
        lsns = {*self._witnesses, *(witness.lsn for witness in markers if witness is not None)}
        return self._source.state(self._table.instance, sorted(lsns))

    def _saw(self, witnesses: Iterable[Witness]) -> None:
        """Stand on more positions; what was seen of one first remains."""
        self._witnesses = {**{witness.lsn: witness for witness in witnesses}, **self._witnesses}

    def _check_unmoved(self, history: LogHistory) -> None:
        """Prove that the database was not restored since the run was planned.

        :raises SourceMovedError: if it was
        """
        check_unmoved(self._table.name, self._witnesses.values(), history, self._job.recovery_fork)

    def _check_marker(self, sink: SinkSpec, target: TargetTable, marker: Marker, source: SourceState) -> None:
        """Refuse a marker of another source, or of another history of this one."""
        check_origin(self._job.source, self._table, sink, marker, target.kept_schema)
        if why := source.history.contradiction(marker.position, marker.witness):
            raise restored(self._table.name, f"{sink.name} is loaded up to {marker.position}", why)

    def _look(self, sink: SinkSpec, target: TargetTable, state: State, source: SourceState) -> Decision:
        if state.marker is not None and not is_asserted(sink, state.marker):
            self._check_marker(sink, target, state.marker, source)
        decision = decide(self._table, sink, state, cut=self._job.upto, min_lsn=self._min_lsn)
        if isinstance(decision, FirstLoad) and sink.shape not in KEYLESS and not self._table.schema.key:
            raise KeyRequiredError(f"{sink.shape} needs a key, and the table has none.", table=str(self._table.name))
        key, unique = self._table.schema.key, self._table.unique_key
        check_history_key(self._table.name, sink.history, key=key, unique=unique)
        if state.exists:
            target.create(self.shape.columns(sink, self._layout(sink, target, state)))
            target.drop_leftovers()
        if isinstance(decision, Load | FirstLoad):
            self._check_start(sink, target, state, decision)
        return decision

    def _warn(self, text: str) -> None:
        if text not in self._warnings:
            self._warnings.append(text)

    def _check_start(self, sink: SinkSpec, target: TargetTable, state: State, decision: Load | FirstLoad) -> None:
        """Refuse a history with events behind a start that its own commit does not prove."""
        position = state.marker.position if state.marker else None
        if decision.asserted:
            position = sink.read_through or sink.lost_after
            self._warn(f"{target.name} stands for {position}, as `checkpoint set` said.")
        elif isinstance(decision, Load) and decision.marker and (other := other_instance(self._table, decision.marker)):
            self._warn(f"{target.name} {other}")
        lsns = {
            HISTORY: ("_lsn",),
            TRANSACTIONS: ("_lsn",),
            SCD2: ("_from_lsn", "_to_lsn"),
        }.get(sink.shape)
        if lsns is None or position is None or not (decision.asserted or state.from_property):
            return
        found = identified(sink, target.rows(state)).agg(*(F.max(name) for name in lsns)).collect()[0]
        newest = max(filter(None, found), default=None)
        if newest is not None and Lsn.parse(newest) > position:
            said = "`checkpoint set` names" if decision.asserted else "its properties remember"
            raise TargetError(
                f"the {sink.shape} holds events up to {newest}, but {said} {position} as loaded.",
                table=str(self._table.name),
                advice="Delete its later events, or name the position that it stands for with "
                "`mssql-cdc checkpoint set`.",
            )

    def _begin(self, state: SourceState, *, copied: bool) -> None:
        if not copied or not self._table.schema.key:
            self._check_reached(state, self._job.upto)
            self._low = low_position(self._table, state)
            self._saw(state.history.witnesses())
        if not copied:
            return
        if not self._table.schema.key:
            self._warn(f"{self._table.name} has no key: its history starts at {self._low}, without the rows of before.")
            return
        with self._step("copy"):
            self._copy = copy_table(
                self._source,
                self._table,
                self.shape.mappings,
                f"{self.staging_path}/copy",
                slice_rows=self._job.slice_rows,
                connections=self._connections,
                capture_timeout=self._job.capture_timeout,
                salt=self._salt,
            )
        self._low, high = self._copy.low, self._copy.high
        self._saw(self._copy.witnesses)
        # where nothing is read after the copy, nothing else tells that the database was restored since
        state = self._source.state(self._table.instance, [*self._witnesses])
        self._check_reached(state, high)
        self._check_unmoved(state.history)

    def _window(self, sink: SinkSpec, decision: Decision) -> Window | None:
        if isinstance(decision, Load):
            return decision.window
        can_begin = self._copy is not None or not self._table.schema.key or not takes_copy(sink)
        if isinstance(decision, FirstLoad) and self._low is not None and can_begin:
            return Window(self._low, self._copy.high if self._copy else max(self._low, self._job.upto))
        return None

    def _settle(self, sink: SinkSpec, target: TargetTable, state: State, decision: Decision) -> SinkReceipt:
        """Commit what was decided; where another commit came first, decide again, over the same staged rows."""
        for attempt in range(_ATTEMPTS + 1):
            if attempt:
                log.info("%s: %s moved the target; trying again", self._table.name, target.moved_by())
                state = self._state_of(target)
                source = self._source_state([state])
                self._check_unmoved(source.history)
                decision = self._look(sink, target, state, source)
            before = state.marker.position if state.marker else None
            window = self._window(sink, decision)
            if isinstance(decision, Done):
                return SinkReceipt(sink.shape, before, decision.marker, decision.outcome, decision.read_through)
            if window is None:
                raise self._moved(target, "emptied after this run had found rows there, so that nothing was copied")
            counts = self._count(target, window)
            if isinstance(decision, Load) and not counts.events and not decision.asserted:
                return SinkReceipt(sink.shape, before, decision.marker, "empty", window.upto)
            layout, kept = self._layout(sink, target, state), self._keep_schema(target, state, decision)
            if isinstance(decision, FirstLoad):
                # not before all is read: columns that change meanwhile must not leave a table without them
                target.create(self.shape.columns(sink, layout))
            marker = self._marker(sink, state, window, counts, decision)
            marker = dataclasses.replace(marker, layout=layout, schema_kept=kept)
            with self._step("fold"):
                write = laid_out(sink, self._write(sink, target, state, decision), layout)
            self.writing = target.name
            with self._step("commit"):
                done = target.commit(state, write, marker)
            self.writing = None
            if done:
                outcome = "loaded" if isinstance(decision, Load) else "first_load"
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

    def _keep_schema(self, target: TargetTable, state: State, decision: Load | FirstLoad) -> bool:
        """Keep the schema beside the table, unless its marker says that it is there; whether it is there now."""
        schema, marker = KeptSchema.of(self._table.schema), state.marker if not decision.asserted else None
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
        if staged is None or not any(w.after <= window.after and window.upto <= w.upto for w in staged.counts):
            raise self._moved(target, f"changed so that {window} is missing, which this run has not read as a whole")
        return staged.count(window)

    def _write(self, sink: SinkSpec, target: TargetTable, state: State, decision: Load | FirstLoad) -> Write:
        window, held = self._window(sink, decision), target.rows(state)
        if isinstance(decision, Load):
            assert self._staged is not None
            return next_window(self.shape, sink, decision.window, self._staged, held, state.gaps)
        assert window is not None
        witness = self._witnesses.get(window.upto)
        return first_rows(
            self.shape,
            sink,
            window,
            self._staged,
            self._copy,
            held,
            anew=decision.anew,
            known_at=witness.time if witness else None,
        )

    def _gaps(self, sink: SinkSpec, window: Window, decision: Load | FirstLoad) -> tuple[Gap, ...]:
        """Return what a history lacks: what it lacked before, and what is lost between that and a new copy."""
        if isinstance(decision, Load):
            return decision.marker.gaps if decision.marker else ()
        if decision.lost_after is None:
            return ()
        known, after = decision.replaced.gaps if decision.replaced else (), decision.lost_after
        self._warn(f"{sink.name}: the changes from {after} to {window.after} are lost; loaded anew from there")
        # nothing is missing from a mirror that was replaced; a version of before the gap that changed while the table
        # was copied counts up to that change, though it may have ended in the gap
        upto = window.upto if sink.shape == SCD2 else window.after
        return () if sink.shape == MIRROR else (*known, Gap(after, upto))

    def _marker(
        self, sink: SinkSpec, state: State, window: Window, counts: Counts, decision: Load | FirstLoad
    ) -> Marker:
        source, copied = self._job.source, self._copy.rows_copied if self._copy else 0
        events = {"inserted": counts.inserted, "updated": counts.updated, "deleted": counts.deleted}
        goes_on = not decision.asserted and (isinstance(decision, Load) or sink.shape != MIRROR)
        before = state.marker if goes_on else None
        marker = Marker(
            position=window.upto,
            witness=self._witnesses.get(window.upto),
            server=source.server,
            database=source.database,
            table=self._table.name,
            feeds=line_of_feeds(before, InstanceRef.of(self._table.instance), window.after),
            schema_hash=self._table.schema.hash,
            window_after=window.after if isinstance(decision, Load) else None,
            events={**events, "copied": copied if isinstance(decision, FirstLoad) and takes_copy(sink) else 0},
            spec_id=self._job.id,
            gaps=self._gaps(sink, window, decision),
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
        return any(w.after <= marker.window_after and marker.position <= w.upto for w in self._windows)

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
