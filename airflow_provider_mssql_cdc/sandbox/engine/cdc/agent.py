"""SQL Server Agent: it runs the capture and cleanup jobs of a server's databases."""

from __future__ import annotations

import contextlib
import datetime
import logging
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from airflow_provider_mssql_cdc.sandbox.engine.cdc import jobs
from airflow_provider_mssql_cdc.sandbox.engine.cdc.database import CdcDatabase
from airflow_provider_mssql_cdc.sandbox.engine.cdc.mapping import to_datetime
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation, relation
from airflow_provider_mssql_cdc.sandbox.engine.cdc.state import CdcState
from airflow_provider_mssql_cdc.sandbox.protocol import Message, SqlError

log = logging.getLogger(__name__)

_CLEANUP_TIME = datetime.time(2)
_STATES = {True: (4, "Running"), False: (1, "Stopped")}
_LONGEST_WAIT = 60.0  # seconds; the server's clock may be set


@dataclass(slots=True, eq=False)
class Activity:
    """One run of a job.

    :param session_id: of the Agent, from 1
    :param stop: None while it runs
    """

    job_id: str
    session_id: int
    start: datetime.datetime
    stop: datetime.datetime | None = None


@dataclass(slots=True, eq=False)
class _Capture:
    """A capture job that runs: with the settings it started with, until it is told to end."""

    database: CdcDatabase
    job: jobs.Job
    interval: float
    session_id: int
    close_session: Callable[[], None]
    thread: threading.Thread | None = None
    ending: bool = False
    wake: threading.Event = field(default_factory=threading.Event)


@dataclass(slots=True, eq=False)
class _Attached:
    """A database and the lock under which its log is scanned by the Agent or by a test."""

    database: CdcDatabase
    turn: threading.Lock = field(default_factory=threading.Lock)
    capture: _Capture | None = None
    activities: dict[str, Activity] = field(default_factory=dict)


class Agent:
    """The Agent of a server, at first stopped. Safe to use from several threads.

    :param clock: the server's local time, naive
    :param open_session: opens a session for the capture job of a database; its number, and what closes it
    :ivar cdc_used: whether msdb.dbo.cdc_jobs is there: since the first job of any database
    :param clock_rate: seconds of that clock in one second
    :param capture_interval: seconds between two cycles of a capture job; None takes the job's polling interval
    """

    def __init__(
        self,
        *,
        clock: Callable[[], datetime.datetime],
        clock_rate: float = 1.0,
        capture_interval: float | None = None,
        open_session: Callable[[str], tuple[int, Callable[[], None]]] = lambda database: (0, lambda: None),
    ) -> None:
        self.services_visible = True
        self.cdc_used = False
        self._clock, self._interval, self._open_session = clock, capture_interval, open_session
        self._rate = clock_rate
        self._lock = threading.RLock()
        self._databases: dict[str, _Attached] = {}
        self._sessions: list[datetime.datetime] = []
        self._running = self._held = False
        self._stopped = threading.Event()
        self._scheduler: threading.Thread | None = None
        self._server_start = to_datetime(clock())

    # The service

    @property
    def running(self) -> bool:
        """Whether the service runs."""
        return self._running

    def start(self) -> None:
        """Start the service, and with it every capture job, which SQL Server schedules for the Agent's start."""
        with self._lock:
            if self._running:
                return
            self._running = True
            self._sessions.append(to_datetime(self._clock()))
            self._stopped = threading.Event()
            for attached in self._databases.values():
                attached.activities.clear()
            self._scheduler = threading.Thread(target=self._schedule, args=(self._stopped,), name="agent", daemon=True)
            self._scheduler.start()
            databases = [each.database for each in self._databases.values()]
        for database in databases:
            if any(job.job_type == jobs.CAPTURE for job in database.jobs):
                self.start_job(database, jobs.CAPTURE)

    def stop(self) -> None:
        """Stop the service and the jobs it runs; returns when they have ended."""
        with self._lock:
            if not self._running:
                return
            self._running = False
            self._stopped.set()
            scheduler, databases = self._scheduler, [each.database for each in self._databases.values()]
        for database in databases:
            self._end_capture(database)
        if scheduler is not None:
            scheduler.join()

    def attach(self, database: CdcDatabase) -> None:
        """Take care of a database's jobs from now on."""
        with self._lock:
            self._databases[database.name.casefold()] = _Attached(database)
        database.runner = self
        if self._running and any(job.job_type == jobs.CAPTURE for job in database.jobs):
            self.start_job(database, jobs.CAPTURE)

    def detach(self, database: CdcDatabase) -> None:
        """Let go of a database that is dropped."""
        self._end_capture(database)
        database.runner = None
        with self._lock:
            self._databases.pop(database.name.casefold(), None)

    # Tests take the jobs into their own hands

    def hold(self) -> None:
        """Keep the jobs from scanning and from cleaning up; when this returns no scan is under way any more."""
        with self._lock:
            self._held = True
            attached = list(self._databases.values())
        for each in attached:
            with each.turn:
                each.database.finish()

    def release(self) -> None:
        """Let the jobs go on; those of the capture scan at once."""
        with self._lock:
            self._held = False
            for attached in self._databases.values():
                if attached.capture is not None:
                    attached.capture.wake.set()

    def step(self, database: CdcDatabase, *, dummy: bool = False, within: Callable[[str], None] | None = None) -> int:
        """One scan, here and now, whether or not the Agent runs or is held; of as much as one cycle may take.

        :param dummy: see ``CdcDatabase.scan``
        :param within: see ``CdcDatabase.scan``
        :returns: the number of transactions taken from the log
        """
        attached = self._attached(database)
        job = next((each for each in database.jobs if each.job_type == jobs.CAPTURE), None)
        with attached.turn:
            most = None if job is None else job.maxtrans * job.maxscans
            return database.scan(most, dummy=dummy, within=within)

    def interject(self, database: CdcDatabase, drawn: random.Random, job_type: str = jobs.CAPTURE) -> None:
        """One scan or one step of the cleanup by a job of a database, if it runs: as between two reads.

        :param drawn: draws how it writes, and whether it stays unfinished: until a reader waits for it, or the job
            goes on
        """
        attached = self._attached(database)
        capture = attached.capture
        if not self._running or self._held or not attached.turn.acquire(blocking=False):
            return
        try:
            with contextlib.suppress(SqlError):
                if job_type == jobs.CLEANUP:
                    database.cleanup_step(drawn)
                elif capture is not None:
                    database.scan(capture.job.maxtrans, session_id=capture.session_id, drawn=drawn)
        finally:
            attached.turn.release()

    # Jobs

    def start_job(self, database: CdcDatabase, job_type: str | None = jobs.CAPTURE) -> list[Message]:
        """sys.sp_cdc_start_job: a capture job runs until it is stopped, a cleanup job has ended when this returns.

        :raises SqlError: 22992; 22997 without such a job; 22022 if the Agent or the job says no (memory)
        """
        wanted = jobs.job_type_of(job_type)
        job = self._job(database, wanted)
        with self._lock:
            if not self._running:
                raise SqlError.of(22022, "start", job.name, "the Agent is not running", procedure="sp_start_job")
            attached = self._attached(database)
            if attached.capture is not None and wanted == jobs.CAPTURE:
                raise SqlError.of(22022, "start", job.name, "the job is running already", procedure="sp_start_job")
            activity = Activity(job.job_id, len(self._sessions), to_datetime(self._clock()))
            attached.activities[wanted] = activity
            if wanted == jobs.CAPTURE:
                interval = float(job.pollinginterval) if self._interval is None else self._interval
                capture = _Capture(database, job, interval, *self._open_session(database.name))
                attached.capture = capture
                name = f"capture {database.name}"
                capture.thread = threading.Thread(target=self._run, args=(attached, capture), name=name, daemon=True)
                capture.thread.start()
        if wanted == jobs.CLEANUP:
            try:
                failed = database.cleanup_retention()
                if failed is not None:
                    log.debug(f"{job.name}: error {failed.number}: {failed.text}")
            finally:
                activity.stop = to_datetime(self._clock())
        return [Message(0, f"Job '{job.name}' started successfully.", severity=0)]

    def stop_job(self, database: CdcDatabase, job_type: str | None = jobs.CAPTURE) -> list[Message]:
        """sys.sp_cdc_stop_job; returns when the job has ended.

        :raises SqlError: 22992; 22997 without such a job; 22022 if it is not running (memory)
        """
        wanted = jobs.job_type_of(job_type)
        job = self._job(database, wanted)
        if wanted == jobs.CLEANUP or not self._end_capture(database):
            raise SqlError.of(22022, "stop", job.name, "the job is not running", procedure="sp_stop_job")
        return [Message(0, f"Job '{job.name}' stopped successfully.", severity=0)]

    def start_created(self, database: CdcState) -> list[Message]:
        """Start the jobs that enabling a table has created; with the Agent stopped the client is only told so."""
        messages: list[Message] = []
        self.cdc_used = True
        known = self._attached(database).database
        for job in known.jobs:
            if self._running:
                # The cleanup job has nothing to remove yet, but SQL Server starts it too.
                messages += self.start_job(known, job.job_type)
            else:
                messages.append(Message.notice(22022, job.name))
        return messages

    def drop(self, database: CdcState, job_type: str) -> None:
        """Stop a job that no longer exists, and forget it."""
        if job_type == jobs.CAPTURE:
            self._end_capture(database)
        with self._lock:
            self._attached(database).activities.pop(job_type, None)

    def capture_session(self, database: CdcState) -> int | None:
        """The session of the capture job of a database, if it runs."""
        with self._lock:
            capture = self._attached(database).capture
            return None if capture is None else capture.session_id

    def restart(self, database: CdcState) -> None:
        """Start the capture job of a database again, whose end a rollback takes back."""
        self.start_job(self._attached(database).database)

    def _attached(self, database: CdcState) -> _Attached:
        return self._databases[database.name.casefold()]

    def _job(self, database: CdcDatabase, job_type: str) -> jobs.Job:
        job = next((each for each in database.jobs if each.job_type == job_type), None)
        if job is None:
            raise SqlError.of(22997, job_type)
        return job

    def _end_capture(self, database: CdcState) -> bool:
        """End the capture job of a database, if it runs; returns whether it did."""
        with self._lock:
            capture = self._attached(database).capture
        if capture is None or capture.thread is None:
            return False
        capture.ending = True
        capture.wake.set()
        capture.thread.join()
        return True

    # What the threads do

    def _run(self, attached: _Attached, capture: _Capture) -> None:
        try:
            while not capture.ending:
                self._cycle(attached, capture)
                if not capture.job.continuous:
                    break
                # however much the log still holds (docs: sys.sp_cdc_change_job, @pollinginterval)
                capture.wake.wait(capture.interval / self._rate)
                capture.wake.clear()
        finally:
            attached.database.finish()
            capture.close_session()
            with self._lock:
                attached.capture = None
                activity = attached.activities.get(jobs.CAPTURE)
                if activity is not None:
                    activity.stop = to_datetime(self._clock())

    def _cycle(self, attached: _Attached, capture: _Capture) -> None:
        """One cycle of a capture job: as many scans as it may make, while the log holds more."""
        job = capture.job
        with attached.turn:
            if self._held:
                return
            try:
                limits = job.maxtrans, job.maxscans
                attached.database.sp_cdc_scan(*limits, session_id=capture.session_id, by_job=True)
            except SqlError as reason:
                # It stands in dm_cdc_errors; everything behind the change waits for the next cycle.
                log.debug(f"{job.name}: error {reason.number}: {reason.text}")
            except Exception:
                log.exception(f"{job.name}: the scan failed")

    def _schedule(self, stopped: threading.Event) -> None:
        """Run the cleanup jobs daily at 02:00, as SQL Server schedules them."""
        due = _next_cleanup(self._clock())
        while not stopped.wait(min(_LONGEST_WAIT, max(0.0, (due - self._clock()).total_seconds() / self._rate))):
            if self._clock() < due:
                continue
            due = _next_cleanup(self._clock())
            with self._lock:
                databases = [each.database for each in self._databases.values()]
            for database in databases:
                self._clean(database)

    def _clean(self, database: CdcDatabase) -> None:
        if self._held:
            return
        try:
            self.start_job(database, jobs.CLEANUP)
        except SqlError as reason:
            # No CDC or no such job: nothing to clean.
            log.debug(f"cleanup of {database.name}: error {reason.number}: {reason.text}")

    # What clients see of it

    def services(self) -> Relation:
        """sys.dm_server_services; without rows, which means unknown, while ``services_visible`` is off."""
        description = (
            "servicename nvarchar(256)!, startup_type int, startup_type_desc nvarchar(256)!, status int, "
            "status_desc nvarchar(256)!, process_id int, last_startup_time datetimeoffset(7), "
            "service_account nvarchar(256)!, filename nvarchar(256)!, is_clustered nvarchar(1)!, "
            "cluster_nodename nvarchar(256)"
        )
        running = {"SQL Server": True, "SQL Server Agent": self._running} if self.services_visible else {}
        rows = [
            (f"{name} (MSSQLSERVER)", 2, "Automatic", *_STATES[state], None, None, "LocalSystem", "", "N", None)
            for name, state in running.items()
        ]
        return relation(description, rows)

    def sysjobs(self) -> Relation:
        """msdb.dbo.sysjobs"""
        description = (
            "job_id uniqueidentifier!, originating_server_id int!, name sysname!, enabled tinyint!, "
            "description nvarchar(512), start_step_id int!, date_created datetime!, date_modified datetime!, "
            "version_number int!"
        )
        made = self._server_start
        with self._lock:
            found = [job for attached in self._databases.values() for job in attached.database.jobs]
        rows = [(job.job_id, 0, job.name, 1, f"CDC {job.job_type} job", 1, made, made, 1) for job in found]
        return relation(description, rows)

    def sysjobactivity(self) -> Relation:
        """msdb.dbo.sysjobactivity, of the newest session: start not NULL and stop NULL means running."""
        description = (
            "session_id int!, job_id uniqueidentifier!, run_requested_date datetime, run_requested_source sysname, "
            "queued_date datetime, start_execution_date datetime, last_executed_step_id int, "
            "last_executed_step_date datetime, stop_execution_date datetime, job_history_id int, "
            "next_scheduled_run_date datetime"
        )
        with self._lock:
            found = [each for attached in self._databases.values() for each in attached.activities.values()]
        rows = [(a.session_id, a.job_id, a.start, None, None, a.start, None, None, a.stop, None, None) for a in found]
        return relation(description, rows)

    def syssessions(self) -> Relation:
        """msdb.dbo.syssessions: one row for each start of the Agent."""
        with self._lock:
            return relation("session_id int!, agent_start_date datetime!", list(enumerate(self._sessions, 1)))


def _next_cleanup(now: datetime.datetime) -> datetime.datetime:
    today = datetime.datetime.combine(now.date(), _CLEANUP_TIME)
    return today if now < today else today + datetime.timedelta(days=1)
