"""Cleanup in its steps: low-water marks go up, then change rows below them go away, and time mappings last."""

from __future__ import annotations

import datetime
import functools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from airflow_provider_mssql_cdc.sandbox.engine.cdc import jobs
from airflow_provider_mssql_cdc.sandbox.engine.cdc.instance import CaptureInstance
from airflow_provider_mssql_cdc.sandbox.engine.cdc.lsn import ZERO_LSN, to_hex
from airflow_provider_mssql_cdc.sandbox.engine.cdc.mapping import LsnTimeMapping
from airflow_provider_mssql_cdc.sandbox.engine.cdc.state import CdcState
from airflow_provider_mssql_cdc.sandbox.engine.cdc.unfinished import Unfinished, View, Write
from airflow_provider_mssql_cdc.sandbox.engine.harshness import Point
from airflow_provider_mssql_cdc.sandbox.protocol import Message, SqlError

PROCEDURE = "sp_cdc_cleanup_change_table"
_ENDED_AT_ONCE = 0.5  # the share of steps beside a reader that leave nothing unfinished


@dataclass(frozen=True, slots=True)
class _Step:
    """One step of a run, a transaction of its own.

    :param statement: how it would read in T-SQL
    """

    statement: str
    writes: Sequence[Write]
    commit: Callable[[], None]
    removes: bool = False

    def begun(self) -> Unfinished:
        """Its transaction."""
        return Unfinished(self.writes, self.commit, removes=self.removes)


@dataclass(slots=True)
class _Run:
    """One run.

    :param threshold: how many rows a step deletes at most
    """

    instances: Sequence[CaptureInstance]
    threshold: int
    finished: bool = False

    def marks(self, mark: bytes | None) -> _Step:
        """Let the validity of the instances begin at a mark; none is lowered."""
        raised = {each.capture_instance: max(each.start_lsn, mark or ZERO_LSN) for each in self.instances}

        def commit() -> None:
            for instance in self.instances:
                instance.start_lsn = raised[instance.capture_instance]

        shown = Write("change_tables", lambda view: view.show_marks(raised))
        return _Step("UPDATE cdc.change_tables SET start_lsn = @p1", [shown], commit)

    def deletion(self, instance: CaptureInstance) -> _Step:
        """Delete rows below the mark, the oldest first."""
        name, changes = instance.capture_instance, instance.changes
        below = changes.below(instance.start_lsn)
        count = min(below, self.threshold)

        def commit() -> None:
            instance.changes = changes.from_lsn(instance.start_lsn) if count == below else changes.after(count)

        def show(gone: int, view: View) -> None:
            view.show_changes(name, changes.after(gone))

        table = f"{name}_ct".casefold()
        writes = [Write(table, functools.partial(show, gone)) for gone in sorted({(count + 1) // 2, count})]
        statement = f"DELETE TOP (@p1) FROM cdc.{name}_CT WHERE __$start_lsn < @p2"
        return _Step(statement, writes, commit, removes=True)

    def trimming(self, mapping: LsnTimeMapping, instances: Sequence[CaptureInstance]) -> _Step:
        """Remove the mapping rows that no instance needs any more."""
        lowest = min((each.start_lsn for each in instances), default=ZERO_LSN)

        def commit() -> None:
            mapping.trim(lowest)
            self.finished = True

        shown = Write("lsn_time_mapping", lambda view: view.show_trimmed(lowest))
        statement = "DELETE FROM cdc.lsn_time_mapping WHERE start_lsn < @p1"
        return _Step(statement, [shown], commit, removes=True)


class Cleaner(CdcState):
    """The cleanup of ``CdcDatabase``.

    A run works in steps, and each is seen as soon as it is done: the marks, then deletes of ``threshold`` rows at
    most, then lsn_time_mapping. A delete that fails leaves the marks as they are, and its rows to the next run (docs).
    """

    def cleanup(
        self,
        capture_instance: str,
        low_water_mark: bytes | None,
        threshold: int | None = None,
        *,
        between: Callable[[], None] = lambda: None,
    ) -> Message | None:
        """sys.sp_cdc_cleanup_change_table: raise an instance's low-water mark and delete the rows below it.

        :param low_water_mark: a start_lsn of lsn_time_mapping; None keeps the present mark
        :param threshold: rows per DELETE
        :param between: called between two steps
        :returns: what is said of rows that could not be deleted
        :raises SqlError: 22910, 22963, 22850, 22956 or 22920; 22964 where the mark is not a mapped LSN, 22957 where it
            is outside [min LSN, max LSN]; 22851 where the mark cannot be raised
        """
        with self._lock:
            if not self.enabled:
                raise SqlError.of(22910, self.name, procedure=PROCEDURE)
            instance = self.instance(capture_instance)
            jobs.Settings(threshold=threshold).check(jobs.CLEANUP)
            if not capture_instance:
                raise SqlError.of(22963, "@capture_instance", procedure=PROCEDURE)
            if instance is None:
                number = self.switches.cleanup_unknown_instance_error
                raise SqlError.of(number, capture_instance, self.name, procedure=PROCEDURE)
        run = _Run((instance,), self.switches.default_threshold if threshold is None else threshold)
        return self._run(run, lambda: _checked(instance, low_water_mark, self._mapping), between)

    def cleanup_retention(
        self, *, between: Callable[[], None] = lambda: None, within: Callable[[str], None] | None = None
    ) -> Message | None:
        """What a run of the cleanup job does: every instance keeps the retention of the job.

        On a harsh server it may come to a stop between two steps, or within one; the rest is left to the next run.

        :param between: called between two steps
        :param within: called after each write of a step, while that is not committed, with the table in schema cdc
        :returns: what the job's history says of rows that could not be deleted
        :raises SqlError: 22910; 22997 where there is no cleanup job; 22851 where the marks cannot be raised
        """
        with self._lock:
            if not self.enabled:
                raise SqlError.of(22910, self.name, procedure=PROCEDURE)
            job, instances = self._job(jobs.CLEANUP), self.instances
        retention = datetime.timedelta(minutes=job.retention)
        source = self.harshness.drawn(Point.CLEANUP)
        stops = None if source is None or source.random() < 0.5 else source
        run = _Run(instances, job.threshold)
        return self._run(run, lambda: _expired(retention, self._mapping), between, within, stops)

    def cleanup_step(self, drawn: random.Random) -> None:
        """The next step of the cleanup job, where something lies behind the retention.

        :param drawn: draws whether it stays unfinished for a while
        :raises SqlError: 22997 where there is no cleanup job
        """
        with self._scanning, self._lock:
            job, instances = self._job(jobs.CLEANUP), self.instances
            mark = _expired(datetime.timedelta(minutes=job.retention), self._mapping)
            step = self._next_step(_Run(instances, job.threshold), mark)
            if step is not None:
                unfinished = step.begun()
                self._write(unfinished, None if drawn.random() < _ENDED_AT_ONCE else unfinished.drawn(drawn))

    def _next_step(self, run: _Run, mark: bytes | None) -> _Step | None:
        """The step with which the run goes on that was begun last, or the first one of the next run; None at rest."""
        for instance in run.instances:
            if instance.changes.below(instance.start_lsn):
                return run.deletion(instance)
        oldest, lowest = self._mapping.oldest, min((each.start_lsn for each in run.instances), default=ZERO_LSN)
        if mark is None or oldest is None:
            return None
        if oldest.start_lsn < min(lowest, mark):
            return run.trimming(self._mapping, run.instances)
        return run.marks(mark) if lowest < mark else None

    def _run(
        self,
        run: _Run,
        mark: Callable[[], bytes | None],
        between: Callable[[], None],
        within: Callable[[str], None] | None = None,
        stops: random.Random | None = None,
    ) -> Message | None:
        """Do the steps of a run.

        :param stops: draws after how many steps it stops, and whether it has begun another one then
        :returns: what is said of a step that failed
        """
        steps, number = self._steps(run, mark), 0
        most = None if stops is None else stops.randint(1, 3)
        while not run.finished and number != most:
            if number:
                between()
            number += 1
            with self._scanning, self._lock:
                step = next(steps)
                failed = self.cleanup_fault(number)
                unfinished = step.begun()
                if not failed:
                    self._write(unfinished, None if within is None else 0)
            if not failed:
                if within is not None:
                    self._go_on(unfinished, within)
                continue
            error = SqlError.of(1222)
            arguments = (self.name, step.statement, error.number, error.text)
            if number == 1:
                raise SqlError.of(22851, *arguments, procedure=PROCEDURE)
            failure = 22853 if "lsn_time_mapping" in step.statement else 22852
            return Message.notice(failure, *arguments, procedure=PROCEDURE)
        if stops is not None and not run.finished and stops.random() < 0.5:
            with self._scanning, self._lock:
                unfinished = next(steps).begun()
                self._write(unfinished, unfinished.drawn(stops))
        return None

    def _steps(self, run: _Run, mark: Callable[[], bytes | None]) -> Iterator[_Step]:
        """The steps of a run, each to be done before the next is asked for."""
        yield run.marks(mark())
        for instance in run.instances:
            while instance.changes.below(instance.start_lsn):
                yield run.deletion(instance)
        yield run.trimming(self._mapping, self.instances)


def _checked(instance: CaptureInstance, mark: bytes | None, mapping: LsnTimeMapping) -> bytes:
    """The mark that an instance gets where one is asked for.

    :raises SqlError: 22964, 22957
    """
    if mark is None:
        return instance.start_lsn
    time = mapping.time_of(mark)
    if time is None:
        raise SqlError.of(22964, to_hex(mark), procedure=PROCEDURE)
    newest = mapping.newest
    high = ZERO_LSN if newest is None else newest.start_lsn
    if not instance.start_lsn <= mark <= high:
        ends = to_hex(instance.start_lsn), to_hex(high)
        raise SqlError.of(22957, to_hex(mark), instance.capture_instance, *ends, procedure=PROCEDURE)
    # Commits of one moment stay together: the new mark is the first of them.
    return mapping.first_of_time(time)


def _expired(retention: datetime.timedelta, mapping: LsnTimeMapping) -> bytes | None:
    """The mark below which everything is older than the retention, counted from the last mapped time (docs)."""
    last = mapping.last_time
    mark = None if last is None else mapping.find("largest less than", last - retention)
    time = None if mark is None else mapping.time_of(mark)
    return None if time is None else mapping.first_of_time(time)
