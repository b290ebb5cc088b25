"""What is known of one database's CDC, the lock it stands under, and its rows of msdb.dbo.cdc_jobs."""

from __future__ import annotations

import datetime
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, get_args

from airflow_provider_mssql_cdc.sandbox.engine.cdc.holes import Holes
from airflow_provider_mssql_cdc.sandbox.engine.cdc.instance import CaptureInstance, OrphanedDdl
from airflow_provider_mssql_cdc.sandbox.engine.cdc.jobs import (
    CAPTURE,
    Job,
    Settings,
    changed_job,
    help_jobs,
    job_type_of,
    new_job,
)
from airflow_provider_mssql_cdc.sandbox.engine.cdc.lsn import Log
from airflow_provider_mssql_cdc.sandbox.engine.cdc.mapping import LsnTimeMapping, MappingRow
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation
from airflow_provider_mssql_cdc.sandbox.engine.cdc.scans import ScanSessions
from airflow_provider_mssql_cdc.sandbox.engine.cdc.switches import EqualKeys, Switches
from airflow_provider_mssql_cdc.sandbox.engine.cdc.unfinished import Turn, Unfinished
from airflow_provider_mssql_cdc.sandbox.engine.harshness import Harshness, Point
from airflow_provider_mssql_cdc.sandbox.engine.log import LoggedTransaction
from airflow_provider_mssql_cdc.sandbox.protocol import Message, SqlError


class JobRunner(Protocol):
    """What runs the jobs: SQL Server Agent."""

    def start_created(self, database: CdcState) -> list[Message]:
        """Start the jobs that enabling a table has just created; returns what the client is told."""

    def capture_session(self, database: CdcState) -> int | None:
        """The session of the capture job of a database, if it runs."""

    def restart(self, database: CdcState) -> None:
        """Start the capture job of a database again, whose end a rollback takes back."""

    def drop(self, database: CdcState, job_type: str) -> None:
        """Stop a job that no longer exists, and forget it."""


@dataclass(frozen=True, slots=True)
class CdcBackup:
    """What a backup of the database holds of its CDC and its log; jobs are the server's.

    :param log_end: the position after the last log record
    """

    enabled: bool
    instances: tuple[CaptureInstance, ...]
    pending: tuple[LoggedTransaction, ...]
    mapping: tuple[MappingRow, ...]
    log_end: int


class Kept(NamedTuple):
    """What a rollback of enabling or disabling goes back to.

    :param capture_runs: whether the capture job ran
    """

    enabled: bool
    instances: dict[str, CaptureInstance]
    pending: deque[LoggedTransaction]
    mapping: LsnTimeMapping
    scans: ScanSessions
    jobs: dict[str, Job]
    capture_runs: bool


class CdcState:
    """The state of ``CdcDatabase``, which documents the parameters.

    ``_log_reader`` is held by a scan, ``_scanning`` by scans and by whatever takes rows or instances away, ``_lock``
    while state is read or changed; they are taken in this order. What a scan or cleanup leaves unfinished is ended by
    the next one that takes ``_scanning``, if not before.

    :ivar fault: whether the scan that asks is to fail
    :ivar held_back: scans deliver nothing, as while a replica of its availability group is down
    :ivar cleanup_fault: whether a step of a cleanup is to fail, by its number from 1
    :ivar unfinished: what a scan or a step of a cleanup has written so far and not committed
    :ivar _reader_session: the session of the last scan
    """

    def __init__(
        self,
        name: str,
        database_id: int,
        *,
        clock: Callable[[], datetime.datetime],
        new_object_id: Callable[[], int],
        switches: Switches | None = None,
        harshness: Harshness | None = None,
        case_sensitive: bool = False,
    ) -> None:
        self.name, self.database_id = name, database_id
        self.case_sensitive = case_sensitive
        self.harshness = Harshness() if harshness is None else harshness
        chosen = Switches() if switches is None else switches
        if self.harshness.strikes(Point.QUIET):
            chosen = replace(chosen, min_lsn_null_until_captured=True)
        drawn = self.harshness.drawn(Point.EQUAL_KEYS)
        if drawn is not None:
            chosen = replace(chosen, equal_keys_are_captured=drawn.choice(get_args(EqualKeys)))
        self.switches = chosen
        self.runner: JobRunner | None = None
        self.enabled = False
        self.held_back = False
        self.in_availability_group = False
        self.fault: Callable[[], bool] = lambda: False
        self.cleanup_fault: Callable[[int], bool] = lambda step: False
        self._clock, self._new_object_id = clock, new_object_id
        self._enabled_at = clock()
        self._reader_session = 0
        self._last_end_time: datetime.datetime | None = None
        self.unfinished: Unfinished | None = None
        self._log_reader, self._scanning, self._lock = threading.Lock(), Turn(self.finish), threading.RLock()
        self._log = Log()
        self._clear()

    def hold_back(self) -> None:
        """Let scans deliver nothing from now on, as in an availability group while a replica is down."""
        self.in_availability_group = self.held_back = True

    def deliver(self) -> None:
        """Let scans deliver again."""
        self.held_back = False

    def finish(self) -> None:
        """End what a scan or a step of a cleanup has begun to write."""
        with self._lock:
            if self.unfinished is not None:
                self.unfinished.end()
                self.unfinished = None

    def _write(self, unfinished: Unfinished, leave_after: int | None = None) -> None:
        """Write and commit; the caller has ``_scanning``.

        :param leave_after: so many writes, and leave the rest to whoever comes next
        """
        with self._lock:
            self.unfinished = unfinished
            for _ in range(leave_after or 0):
                unfinished.advance()
            if leave_after is None:
                self.finish()

    def _go_on(self, unfinished: Unfinished, within: Callable[[str], None]) -> None:
        """Go on with what was begun, and commit; the caller has not ``_scanning``, so that anybody may end it.

        :param within: called after each write with its table, while nothing is committed
        """
        try:
            while (table := self._advance(unfinished)) is not None:
                within(table)
        finally:
            with self._lock:
                if self.unfinished is unfinished:
                    self.finish()

    def _advance(self, unfinished: Unfinished) -> str | None:
        with self._lock:
            return unfinished.advance()

    def _clear(self) -> None:
        self._instances: dict[str, CaptureInstance] = {}
        self._pending: deque[LoggedTransaction] = deque()
        self._mapping = LsnTimeMapping()
        self._scans = ScanSessions()
        self._holes = Holes()
        self._jobs: dict[str, Job] = {}
        self._orphans: tuple[OrphanedDdl, ...] = ()

    def keep(self) -> Kept:
        """What is to be put back if the transaction that changes it now is rolled back."""
        runs = self.runner is not None and self.runner.capture_session(self) is not None
        with self._lock:
            instances, jobs = dict(self._instances), dict(self._jobs)
            return Kept(self.enabled, instances, self._pending, self._mapping, self._scans, jobs, runs)

    def put_back(self, kept: Kept) -> None:
        """Undo the enabling or disabling of the database or of a table.

        The capture job is started again if it ran.
        """
        with self._scanning, self._lock:
            made, was_ended = self._jobs.keys() - kept.jobs.keys(), CAPTURE not in self._jobs
            self.enabled, self._instances, self._jobs = kept.enabled, kept.instances, kept.jobs
            self._pending, self._mapping, self._scans = kept.pending, kept.mapping, kept.scans
        self._drop_from_runner(sorted(made))
        if was_ended and kept.capture_runs and self.runner is not None:
            self.runner.restart(self)

    def backup(self) -> CdcBackup:
        """CDC and the log as they are now."""
        with self._scanning, self._lock:
            instances = tuple(replace(each) for each in self._instances.values())
            return CdcBackup(self.enabled, instances, tuple(self._pending), self._mapping.rows(), self._log.end)

    def restore(self, kept: CdcBackup, *, keep: bool) -> None:
        """Go back to an earlier log, and to its CDC if that is kept; without CDC there are no jobs."""
        with self._scanning, self._lock:
            jobs = self._jobs
            self._clear()
            self._log = Log(kept.log_end)
            self.enabled = keep and kept.enabled
            if self.enabled:
                self._jobs = jobs
                self._instances = {self.key_of(each.capture_instance): replace(each) for each in kept.instances}
                self._fit_change_tables()
                self._pending.extend(kept.pending)
                self._mapping.extend(kept.mapping)
        if not self.enabled:
            self._drop_from_runner(list(jobs))

    def forget_scans(self) -> None:
        """Empty the views of log scans, as a restart of the server does."""
        with self._scanning, self._lock:
            self._scans = ScanSessions()

    def add_command_ids(self) -> None:
        """Give all change tables ``__$command_id``, those that are there and those to come."""
        with self._scanning, self._lock:
            self.switches = replace(self.switches, has_command_ids=True)
            self._fit_change_tables()

    def _fit_change_tables(self) -> None:
        if self.switches.has_command_ids:
            self._instances = {key: each.with_command_ids() for key, each in self._instances.items()}

    @property
    def instances(self) -> tuple[CaptureInstance, ...]:
        """The capture instances, in the order in which they were enabled."""
        with self._lock:
            return tuple(self._instances.values())

    def instance(self, capture_instance: str | None) -> CaptureInstance | None:
        """A capture instance by name."""
        with self._lock:
            return self._instances.get(self.key_of(capture_instance or ""))

    def key_of(self, capture_instance: str) -> str:
        """What is the same of names of capture instances that are the same in this database."""
        return capture_instance if self.case_sensitive else capture_instance.casefold()

    def is_tracked(self, object_id: int) -> bool:
        """sys.tables.is_tracked_by_cdc"""
        return object_id in self.tracked()

    def tracked(self) -> set[int]:
        """The object ids of the tables that have a capture instance."""
        with self._lock:
            return {each.source_object_id for each in self._instances.values()}

    def _drop_from_runner(self, job_types: list[str]) -> None:
        for job_type in job_types:
            if self.runner is not None:
                self.runner.drop(self, job_type)

    def _require_enabled(self, procedure: str) -> None:
        if not self.enabled:
            raise SqlError.of(22901, self.name, procedure=procedure)

    def _require_object(self, name: str) -> None:
        if not self.enabled:
            raise SqlError.of(208, f"cdc.{name}")

    def _existing(self, capture_instance: str, object_name: str) -> CaptureInstance:
        instance = self.instance(capture_instance)
        if instance is None:
            raise SqlError.of(208, f"cdc.{object_name}")
        return instance

    @property
    def jobs(self) -> list[Job]:
        """The jobs of the database, as msdb.dbo.cdc_jobs has them now."""
        with self._lock:
            return list(self._jobs.values())

    def _job(self, job_type: str) -> Job:
        job = self._jobs.get(job_type)
        if job is None:
            raise SqlError.of(22997, job_type)
        return job

    def help_jobs(self) -> Relation:
        """sys.sp_cdc_help_jobs

        :raises SqlError: 22901
        """
        self._require_enabled("sp_cdc_help_jobs")
        return help_jobs(self.jobs)

    def add_job(self, job_type: str | None, settings: Settings | None = None) -> None:
        """sys.sp_cdc_add_job; starting it is up to the Agent.

        :raises SqlError: 22901, 22992, 22836 or 14261 where the job exists, and what ``Settings.check`` raises
        """
        with self._lock:
            self._require_enabled("sp_cdc_add_job")
            wanted = job_type_of(job_type)
            job = new_job(self.name, wanted, settings or Settings(), self.switches)
            if wanted in self._jobs:
                if self.switches.second_job_error == 14261:
                    raise SqlError.of(14261, "@name", job.name, procedure="sp_verify_job")
                raise SqlError.of(22836, wanted, procedure="sp_cdc_add_job_internal")
            self._jobs[wanted] = job

    def change_job(self, job_type: str | None, settings: Settings) -> None:
        """sys.sp_cdc_change_job; a running job keeps what it started with.

        :raises SqlError: 22901, 22992, 22997, and what ``Settings.check`` raises
        """
        with self._lock:
            self._require_enabled("sp_cdc_change_job")
            wanted = job_type_of(job_type)
            self._jobs[wanted] = changed_job(self._job(wanted), settings)

    def drop_job(self, job_type: str | None) -> None:
        """sys.sp_cdc_drop_job

        :raises SqlError: 22901, 22992, 22997
        """
        with self._lock:
            self._require_enabled("sp_cdc_drop_job")
            wanted = job_type_of(job_type)
            self._job(wanted)
            del self._jobs[wanted]
        self._drop_from_runner([wanted])
