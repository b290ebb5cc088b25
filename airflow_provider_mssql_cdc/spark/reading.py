"""One table's source within a load: its state, what was seen of it, and the rows that were copied and staged."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.conditions import Condition
from airflow_provider_mssql_cdc.core.copy_wanted import PAUSE
from airflow_provider_mssql_cdc.core.exceptions import CaptureLagError
from airflow_provider_mssql_cdc.core.filling import known_of_its_kind
from airflow_provider_mssql_cdc.core.lineage import Lineage, Witness, check_not_restored
from airflow_provider_mssql_cdc.core.marker import Marker
from airflow_provider_mssql_cdc.core.position import Position, Version, Window, is_gap, merged
from airflow_provider_mssql_cdc.core.spec import JobSpec, TableSpec
from airflow_provider_mssql_cdc.core.steps import SinkSteps
from airflow_provider_mssql_cdc.spark.copies.copy import Changed, Copy, CopyOrder, Unfinished
from airflow_provider_mssql_cdc.spark.copies.pace import CopyTime
from airflow_provider_mssql_cdc.spark.decide import gap
from airflow_provider_mssql_cdc.spark.shapes.base import SinkRows
from airflow_provider_mssql_cdc.spark.shapes.fold import column
from airflow_provider_mssql_cdc.spark.sources.base import SourceState, TableSource
from airflow_provider_mssql_cdc.spark.staging import Counts, Staged
from airflow_provider_mssql_cdc.spark.targets import State

_AGAIN = 5
"""How often rows are read again in one run, of which the events leave open what is there."""


class Reading:
    """What a load reads of one table.

    :param folder: for copied and staged rows; must not exist yet
    :param unsure: the keys of which a copy leaves open what is there: their rows are read again, some times
    :ivar readable_from: behind it all changes can be read, as was last seen
    :ivar windows: that were staged, or kept beside a copy
    :ivar low: every change after it is read, where something begins; None before that
    :ivar copy: the copied rows; None where none were copied
    :ivar staged: the rows that windows are taken from now: those of the copy, once there is one
    """

    def __init__(
        self,
        source: TableSource,
        job: JobSpec,
        table: TableSpec,
        folder: str,
        unsure: Callable[[Copy], DataFrame | None],
    ) -> None:
        self._source, self._job, self._table, self._folder = source, job, table, folder
        self._unsure = unsure
        self.readable_from: Position | None = None
        self.windows: list[Window] = []
        self.low: Position | None = None
        self.copy: Copy | None = None
        self.staged: Staged | None = None
        self._changed: Changed | None = None
        self._all_staged: list[tuple[list[Window], Staged]] = []
        self._before_images = False
        self._before_copy: dict[Window, Staged | None] = {}
        # what was seen of positions that the load stands on; if the database is restored, they belie what was read
        of_cut = job.witness if job.witness is not None and isinstance(job.witness.lsn, table.feed.POSITION) else None
        self._witnesses: dict[Position, Witness] = {of_cut.lsn: of_cut} if of_cut else {}

    def saw_readable(self, readable_from: Position | None) -> None:
        """Note from where on the feed can be read; what lies beside a copy can be read, too."""
        if self.copy is not None and readable_from is not None:
            readable_from = min(readable_from, self.copy.low)
        self.readable_from = readable_from

    def state(self, found: Sequence[State] = ()) -> SourceState:
        """The state of the source, with what tells whether the markers of targets still hold."""
        markers = [state.marker.witness for state in found if state.marker is not None]
        return self._source.state([*self._witnesses.values(), *(witness for witness in markers if witness)])

    def witness(self, position: Position) -> Witness | None:
        """What was seen of a position."""
        return self._witnesses.get(position)

    def check_reached(self, state: SourceState, upto: Position) -> None:
        """Refuse to read where a replica shows less than the server that named the cut.

        :raises CaptureLagError: if it does
        """
        if state.newest is None or state.newest < upto:
            raise CaptureLagError(
                f"the server shows changes up to {state.newest or 'nothing'}, and the cut is {upto}.",
                table=str(self._table.name),
                advice="A readable secondary may lag behind: run the task again.",
            )

    def check_not_restored(self, lineage: Lineage) -> None:
        """Prove that the database was not restored since the run was planned.

        :raises SourceRestoredError: if it was
        """
        check_not_restored(self._table.name, self._witnesses.values(), lineage, self._job.recovery_fork)

    def begin(self, state: SourceState, cut: Position) -> None:
        """Note where what begins now begins, without a copy.

        :raises CaptureLagError: if nothing is captured yet
        """
        self.check_reached(state, cut)
        self.low = self._source.low(state)
        self._saw(state.lineage.witnesses())

    def take_copy(
        self,
        time: CopyTime,
        above: Position | None,
        conditions: tuple[Condition, ...] = (),
        leaves_out: tuple[str, ...] = (),
        beside: Position | None = None,
        changed: Changed | None = None,
    ) -> Unfinished | None:
        """Copy the table's rows, or go on with a copy. At its end windows are taken from its events.

        :param time: of the run for copies
        :param above: a copy that was begun below this is not gone on with
        :param conditions: that the rows are to fulfil
        :param leaves_out: columns: rows that have in them what nearly all rows have need not be copied
        :param beside: up to where sinks are loaded, which want the changes up to the copy's end; the lowest
        :param changed: the rows that are wanted; None for all
        :return: how far it is; None where it is at its end
        :raises CaptureLagError: if the changes of meanwhile cannot be read in time
        :raises GapError: if some of them were purged
        :raises SourceRestoredError: if the database was restored meanwhile
        """
        place, asked = self._job.copies_path(self._table), self._table.asked
        if place is None:
            place, time = f"{self._folder}/copy", time.endless()
        paused = None
        if asked is not None and asked.wanted == PAUSE:
            paused = "" if asked.of_loaded else asked.id
        known = known_of_its_kind(self._table)
        order = CopyOrder(
            place,
            self._job.capture_timeout,
            time,
            above=above,
            beside=beside,
            known=known,
            paused=paused,
            conditions=conditions,
            leaves_out=leaves_out,
            changed=changed,
        )
        self._changed = changed
        copy = self._source.copy(order)
        if isinstance(copy, Unfinished):
            return copy
        self._hold(copy)
        assert self.copy is not None
        for _ in range(_AGAIN):
            if (keys := self._unsure(self.copy)) is None:
                break
            if (unfinished := self.read_again(keys)) is not None:
                return unfinished
        return None

    def read_again(self, keys: DataFrame) -> Unfinished | None:
        """Read the rows of some keys into the copy, which ends later then.

        :param keys: as targets have them, each once
        :return: how far it is; None where it is at its end
        :raises GapError: if changes of meanwhile were purged
        """
        self._forget_copy()
        copy = self._source.read_again(keys)
        if isinstance(copy, Unfinished):
            return copy
        self._hold(copy)
        return None

    def _hold(self, copy: Copy) -> None:
        """Take windows from a copy's events, once it is proven that the source has all of them."""
        self._saw(copy.witnesses)
        state = self._source.state(self._witnesses.values())
        self.check_reached(state, copy.high)
        self.check_not_restored(state.lineage)
        self.copy, self.low = copy, copy.low
        self.take_events(copy)

    def take_events(self, copy: Copy) -> None:
        """Take windows from the events of a copy, which another one may have read."""
        self._saw(copy.witnesses)
        self.staged, self._before_images = None if copy.window.is_empty else copy.events, True
        if not copy.window.is_empty:
            self.windows.append(copy.window)
            self._all_staged.append(([copy.window], copy.events))

    def respelled(self, window: Window, sink: SinkRows, target_rows: Callable[[], DataFrame]) -> Staged:
        """What was staged, for a target that may spell keys otherwise than the source does by now.

        :param sink: of the target
        :param target_rows: its rows
        """
        assert self.staged is not None
        folder = f"{self._folder}/spelled-{secrets.token_hex(6)}"
        is_sure = sink.is_comparable if sink.facts.takes_history else None
        return self._source.respelled(
            self.staged, window, lambda: sink.keys_there(target_rows()), folder, is_sure=is_sure
        )

    def asked(self, key: Sequence[str], keys_there: Callable[[], DataFrame]) -> DataFrame | None:
        """The keys that a copy of changed rows asked for, with those that a target spells otherwise; None where it has
        all rows.

        :param key: of the target
        :param keys_there: the keys that it shows
        """
        if self.copy is None or self.copy.changed_after is None or self._changed is None or self.copy.again is None:
            return None
        keys, names = self.copy.again.asked(), [*map(column, key)]
        if self.copy.again.is_whole:
            # what the target has beside these rows has gone
            return keys.select(*names).unionAll(keys_there().select(*names)).distinct()
        at = F.lit(self.copy.changed_after.sort_key)
        place = f"{self._folder}/spelled-{secrets.token_hex(6)}"
        other = self._changed.spelled(keys.select(*names, at.alias("_version")), keys_there(), place)
        return keys.select(*names) if other is None else keys.select(*names).unionAll(other.select(*names)).distinct()

    @property
    def changed_after(self) -> Version | None:
        """The version after which the copied rows changed; None where all were copied, or none."""
        return self.copy.changed_after if self.copy is not None else None

    def heals(self, todo: SinkSteps) -> bool:
        """Whether a sink is healed: of its rows those stay that did not change."""
        return todo.copied and self.changed_after is not None

    def has_lost_copy(self) -> bool:
        """Whether another run has finished the copy that this one reads, and removed it: it counts for nothing then."""
        if not self._source.has_lost_copy():
            return False
        self._forget_copy()
        return True

    def _forget_copy(self) -> None:
        if self.copy is not None:
            window = self.copy.window
            self.windows = [each for each in self.windows if each != window]
            self._all_staged = [each for each in self._all_staged if each[0] != [window]]
        self.copy = self.low = self.staged = None

    def stop_copies(self) -> None:
        """Remove what copies of the table have left: a person has stopped them."""
        if (place := self._job.copies_path(self._table)) is not None:
            self._source.remove_copies(place)

    def remove_copy(self) -> None:
        """Remove what the copy has left, once all its sinks have it."""
        self._source.remove_copy()

    def stage(self, windows: Sequence[Window], *, before_images: bool) -> Staged:
        """Stage all windows, each change once. ``check_whole`` tells of each whether something was purged before that.

        :param before_images: with all of them, and the times of commits
        :raises CaptureLagError: if the server no longer shows changes up to the windows' end
        :raises SourceRestoredError: if the database was restored meanwhile
        """
        self._before_images = before_images
        folder = f"{self._folder}/events{len(self._all_staged) or ''}"
        self.staged = self._source.read(windows, folder, before_images=before_images)
        self.windows += windows
        self._all_staged.append((list(windows), self.staged))
        state = self._source.state(self._witnesses.values())
        self.readable_from = state.readable_from
        # a database that was restored before the read has had nothing to show behind that moment
        reached = {self.staged.reached(window) for window in windows}
        self._saw(witness for witness in state.lineage.witnesses() if witness.lsn in reached)
        self.check_reached(state, max(window.upto for window in windows))
        self.check_not_restored(state.lineage)
        return self.staged

    def before_copy(self, window: Window) -> Staged | None:
        """What happened between a target's position and the low of the copy; None where it can no longer be read.

        :raises MsSqlCdcError: as ``stage``
        """
        if window.is_empty or is_gap(window.after, self.readable_from) or not self._table.feed.CAN.exact_cut:
            return None
        if window not in self._before_copy:
            events, number = self.staged, len(self._all_staged)
            found = self.stage([window], before_images=True)
            # windows are taken from the copy's events, the last that were staged
            self.staged, self._all_staged = events, [self._all_staged[number], *self._all_staged[:number]]
            self._before_copy[window] = None if is_gap(window.after, self.readable_from) else found
        return self._before_copy[window]

    def holds(self, window: Window, *, before_images: bool) -> bool:
        """Whether all of a window was staged.

        :param before_images: with all of them, and the times of commits
        """
        if window.is_empty:
            return True
        return self.staged is not None and self.staged.holds(window) and self._before_images >= before_images

    def reached(self, window: Window) -> Position:
        """The position that the rows of a window prove."""
        return window.upto if window.is_empty or self.staged is None else self.staged.reached(window)

    def check_whole(self, window: Window) -> None:
        """Prove that nothing of a window was purged before it was read.

        Cleanup raises the mark before it deletes: a mark that is no higher after the read proves that all was there.

        :raises GapError: if something was
        """
        if window.is_empty or not is_gap(window.after, self.readable_from):
            return
        if self.copy is None or not self.copy.window.holds(window):
            raise gap(self._table, window.after, self.readable_from)

    def count(self, window: Window) -> Counts:
        """What a window holds, all of which was staged."""
        return Counts() if window.is_empty or self.staged is None else self.staged.count(window)

    def has_read(self, marker: Marker) -> bool:
        """Whether all that a commit brought is copied, or read."""
        if marker.window_after is None:
            return self.copy is not None
        return any(w.holds(Window(marker.window_after, marker.position)) for w in self.windows)

    def counts(self, others: Iterable[Marker] = ()) -> dict[str, int]:
        """Each change of the table counted once, however many sinks took it; and the copied rows.

        :param others: of commits of before, whose changes are counted too
        """
        staged = self._staged_once()
        total = {name: getattr(staged, name) for name in ("events", "inserted", "updated", "deleted")}
        total["copied"] = self.copy.rows_copied if self.copy else 0
        for marker in others:
            for name, number in marker.events.items():
                total[name] = total.get(name, 0) + number
                total["events"] += number if name != "copied" else 0
        return total

    def _staged_once(self) -> Counts:
        """Each change that was staged, once: what a copy's events hold, and what was staged before them besides."""
        if len(self._all_staged) < 2:
            return self._all_staged[0][1].total() if self._all_staged else Counts()
        *before, (copied, events) = self._all_staged
        total, first, last = events.total(), min(w.after for w in copied), max(w.upto for w in copied)
        for windows, staged in before:
            for window in merged(windows):
                for begin, end in ((window.after, first), (last, window.upto)):
                    after, upto = max(begin, window.after), min(end, window.upto)
                    if after < upto:
                        total += staged.count(Window(after, upto))
        return total

    def _saw(self, witnesses: Iterable[Witness]) -> None:
        """Stand on more positions; what was seen of one first remains."""
        self._witnesses = {**{witness.lsn: witness for witness in witnesses}, **self._witnesses}
