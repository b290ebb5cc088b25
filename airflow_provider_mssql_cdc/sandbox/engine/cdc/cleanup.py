"""Cleanup in its steps: low-water marks go up, then change rows below them go away, and time mappings last."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.engine.cdc import jobs
from airflow_provider_mssql_cdc.sandbox.engine.cdc.instance import CaptureInstance
from airflow_provider_mssql_cdc.sandbox.engine.cdc.lsn import ZERO_LSN, to_hex
from airflow_provider_mssql_cdc.sandbox.engine.cdc.mapping import LsnTimeMapping, MappingRow
from airflow_provider_mssql_cdc.sandbox.engine.cdc.state import CdcState
from airflow_provider_mssql_cdc.sandbox.engine.harshness import Point
from airflow_provider_mssql_cdc.sandbox.protocol import Message, SqlError

PROCEDURE = "sp_cdc_cleanup_change_table"


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What a run of sys.sp_cdc_cleanup_change_table did.

    :param failed: why rows stayed that should go; None where all went well
    :param take_back: undoes it; change rows that were captured meanwhile stay
    """

    failed: Message | None
    take_back: Callable[[], None]


@dataclass(slots=True)
class _Run:
    """One run, and what it has done so far.

    :param threshold: how many rows a step deletes at most
    :param raised: the marks that it left
    """

    instances: Sequence[CaptureInstance]
    threshold: int
    raised: list[bytes] = field(default_factory=list)
    deleted: list[pa.RecordBatch] = field(default_factory=list)
    trimmed: tuple[MappingRow, ...] = ()
    finished: bool = False

    def raise_marks(self, mark: bytes | None) -> None:
        """Let the validity of the instances begin at a mark; none is lowered."""
        for instance in self.instances:
            instance.start_lsn = max(instance.start_lsn, mark or ZERO_LSN)
        self.raised = [each.start_lsn for each in self.instances]

    def delete(self, instance: CaptureInstance) -> None:
        """Delete rows below the mark, the oldest first."""
        changes, below = instance.changes, instance.changes.below(instance.start_lsn)
        count = min(below, self.threshold)
        self.deleted += changes.first(count)
        instance.changes = changes.from_lsn(instance.start_lsn) if count == below else changes.after(count)

    def trim(self, mapping: LsnTimeMapping, instances: Sequence[CaptureInstance]) -> None:
        """Remove the mapping rows that no instance needs any more."""
        before = mapping.rows()
        if instances:
            mapping.trim(min(each.start_lsn for each in instances))
        self.trimmed = before[: len(before) - len(mapping.rows())]
        self.finished = True


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
    ) -> Cleaned:
        """sys.sp_cdc_cleanup_change_table: raise an instance's low-water mark and delete the rows below it.

        :param low_water_mark: a start_lsn of lsn_time_mapping; None keeps the present mark
        :param threshold: rows per DELETE
        :param between: called between two steps
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
            start = instance.start_lsn
        run = _Run((instance,), self.switches.default_threshold if threshold is None else threshold)
        failed = self._run(run, lambda: _checked(instance, low_water_mark, self._mapping), between)

        def take_back() -> None:
            with self._scanning, self._lock:
                # what another run has raised meanwhile stays so, and its rows are gone
                if [instance.start_lsn] == run.raised:
                    instance.start_lsn, instance.changes = start, instance.changes.preceded(run.deleted)
                    self._mapping.precede(run.trimmed)

        return Cleaned(failed, take_back)

    def cleanup_retention(self, *, between: Callable[[], None] = lambda: None) -> Message | None:
        """What a run of the cleanup job does: every instance keeps the retention of the job.

        On a harsh server it may come to a stop between two steps; the rest is left to the next run.

        :param between: called between two steps
        :returns: what the job's history says of rows that could not be deleted
        :raises SqlError: 22910; 22997 where there is no cleanup job; 22851 where the marks cannot be raised
        """
        with self._lock:
            if not self.enabled:
                raise SqlError.of(22910, self.name, procedure=PROCEDURE)
            job, instances = self._job(jobs.CLEANUP), self.instances
        retention = datetime.timedelta(minutes=job.retention)
        source = self.harshness.drawn(Point.CLEANUP)
        most = None if source is None or source.random() < 0.5 else source.randint(1, 3)
        return self._run(_Run(instances, job.threshold), lambda: _expired(retention, self._mapping), between, most)

    def _run(
        self, run: _Run, mark: Callable[[], bytes | None], between: Callable[[], None], most: int | None = None
    ) -> Message | None:
        """Do the steps of a run.

        :param most: how many; None for all
        :returns: what is said of a step that failed
        """
        steps, number = self._steps(run, mark), 0
        while not run.finished and number != most:
            if number:
                between()
            number += 1
            with self._scanning, self._lock:
                statement, step = next(steps)
                if not self.cleanup_fault(number):
                    step()
                    continue
            error = SqlError.of(1222)
            arguments = (self.name, statement, error.number, error.text)
            if number == 1:
                raise SqlError.of(22851, *arguments, procedure=PROCEDURE)
            return Message.notice(22853 if "lsn_time_mapping" in statement else 22852, *arguments, procedure=PROCEDURE)
        return None

    def _steps(self, run: _Run, mark: Callable[[], bytes | None]) -> Iterator[tuple[str, Callable[[], None]]]:
        """The steps of a run, each to be done before the next is asked for, and how they would read in T-SQL."""
        yield "UPDATE cdc.change_tables SET start_lsn = @p1", lambda: run.raise_marks(mark())
        for instance in run.instances:
            statement = f"DELETE TOP (@p1) FROM cdc.{instance.capture_instance}_CT WHERE __$start_lsn < @p2"
            while instance.changes.below(instance.start_lsn):
                yield statement, functools.partial(run.delete, instance)
        yield (
            "DELETE FROM cdc.lsn_time_mapping WHERE start_lsn < @p1",
            lambda: run.trim(self._mapping, self.instances),
        )


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
