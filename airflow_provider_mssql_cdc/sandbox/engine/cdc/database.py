"""The CDC state of one user database: its log, capture instances, change tables and jobs."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from itertools import islice
from typing import Any

from airflow_provider_mssql_cdc.sandbox.engine.cdc import ddl, jobs, lsn
from airflow_provider_mssql_cdc.sandbox.engine.cdc.capture import ScanResult, capture, unfinished_scan
from airflow_provider_mssql_cdc.sandbox.engine.cdc.cleanup import Cleaner
from airflow_provider_mssql_cdc.sandbox.engine.cdc.enabling import PROCEDURE, Request, plan
from airflow_provider_mssql_cdc.sandbox.engine.cdc.instance import CaptureInstance, DdlRow, OrphanedDdl
from airflow_provider_mssql_cdc.sandbox.engine.cdc.mapping import dummy_row, to_datetime
from airflow_provider_mssql_cdc.sandbox.engine.cdc.reading import ChangeReader
from airflow_provider_mssql_cdc.sandbox.engine.cdc.scans import ScanSession
from airflow_provider_mssql_cdc.sandbox.engine.cdc.unfinished import Unfinished
from airflow_provider_mssql_cdc.sandbox.engine.cdc.writing import LogWriter
from airflow_provider_mssql_cdc.sandbox.engine.harshness import Point
from airflow_provider_mssql_cdc.sandbox.engine.log import LoggedTransaction
from airflow_provider_mssql_cdc.sandbox.engine.schema import TableDef
from airflow_provider_mssql_cdc.sandbox.protocol import Message, SqlError

_ENDED_AT_ONCE = 0.5  # the share of scans beside a reader that leave nothing unfinished
_SYSTEM_DATABASES = ("master", "tempdb", "model", "msdb", "distribution")


class CdcDatabase(ChangeReader, LogWriter, Cleaner):
    """Change data capture of one database. Safe to use from several threads.

    Scans, and whatever takes rows or instances away, exclude each other; commits and reads go on meanwhile. What a
    scan found becomes visible in one step.

    :param name: of the database
    :param database_id: of the database
    :param clock: the server's local time, naive
    :param new_object_id: object ids for change tables
    :param switches: the behaviours that are not known for certain
    :param harshness: what is drawn for it; a kind server's if None
    :param case_sensitive: whether names differ in case
    """

    # Enabling and disabling

    def enable(self) -> list[Message]:
        """sys.sp_cdc_enable_db: a database that has CDC already is told so at severity 10.

        :raises SqlError: 22989 for a system database
        """
        if self.name.casefold() in _SYSTEM_DATABASES:
            raise SqlError.of(22989, self.name, procedure="sp_cdc_enable_db_internal")
        with self._lock:
            if self.enabled:
                return [Message.notice(22905, self.name, procedure="sp_cdc_enable_db")]
            self.enabled = True
            self._enabled_at = to_datetime(self._clock())
            return []

    def disable(self) -> list[Message]:
        """sys.sp_cdc_disable_db: everything goes; a database without CDC is told so at severity 10."""
        with self._scanning, self._lock:
            if not self.enabled:
                return [Message.notice(22901, self.name, procedure="sp_cdc_disable_db")]
            self.enabled = False
            dropped = list(self._jobs)
            self._clear()
        self._drop_from_runner(dropped)
        return []

    def enable_table(self, table: TableDef, **given: Any) -> list[Message]:
        """sys.sp_cdc_enable_table: a new capture instance, from the next commit on.

        The caller waits for open transactions that wrote the table. The first table creates and starts the jobs.

        :param given: what the procedure takes; see ``enabling.Request``
        :raises SqlError: 22901, and what ``enabling.plan`` raises
        """
        request = Request(**given)
        messages: list[Message] = []
        with self._lock:
            self._require_enabled("sp_cdc_enable_table")
            planned = plan(table, request, self.instances, self.name, self.switches.net_changes_by_default)
            position = self._log.commit()
            self._holes.clear()
            first = not self._instances
            self._instances[self.key_of(planned.capture_instance)] = CaptureInstance(
                planned.capture_instance,
                table,
                self._new_object_id(),
                position,
                lsn.encode(position),
                to_datetime(self._clock()),
                planned.columns,
                planned.key,
                planned.index_name,
                request.role_name,
                request.filegroup_name,
                planned.supports_net_changes,
                request.allow_partition_switch,
                self.switches.clr_enabled,
                self.switches.has_command_ids,
            )
            if planned.supports_net_changes and not self.switches.clr_enabled:
                messages.append(Message.notice(22969, procedure=PROCEDURE))
            if first:
                for job_type in (jobs.CAPTURE, jobs.CLEANUP):
                    self._jobs.setdefault(job_type, jobs.new_job(self.name, job_type, jobs.Settings(), self.switches))
        if first and self.runner is not None:
            messages += self.runner.start_created(self)
        return messages

    def disable_table(self, table: TableDef, capture_instance: str) -> list[Message]:
        """sys.sp_cdc_disable_table: drop one capture instance of a table, or 'all'.

        :raises SqlError: 22901, 22963, 22985, 22960
        """
        procedure = "sp_cdc_disable_table_internal"
        with self._scanning, self._lock:
            self._require_enabled("sp_cdc_disable_table")
            if not capture_instance:
                raise SqlError.of(22963, "@capture_instance", procedure=procedure)
            present = [key for key, each in self._instances.items() if each.source_object_id == table.object_id]
            if not present:
                raise SqlError.of(22985, table.schema, table.name, procedure=procedure)
            wanted = self.key_of(capture_instance)
            if wanted != "all" and wanted not in present:
                raise SqlError.of(22960, capture_instance, table.schema, table.name, procedure=procedure)
            dropped = self._remove([key for key in present if wanted in ("all", key)])
        self._drop_from_runner(dropped)
        return []

    def drop_table(self, object_id: int) -> None:
        """DROP TABLE takes the table's capture instances with it."""
        with self._scanning, self._lock:
            dropped = self._remove([key for key, each in self._instances.items() if each.source_object_id == object_id])
        self._drop_from_runner(dropped)

    def _remove(self, keys: list[str]) -> list[str]:
        """Remove instances; returns the types of the jobs that went with the last one."""
        for key in keys:
            del self._instances[key]
        # docs: the jobs go when no table is enabled any more
        dropped = list(self._jobs) if keys and not self._instances else []
        for job_type in dropped:
            del self._jobs[job_type]
        return dropped

    # Tables and their definition

    def check_ddl(self, before: TableDef, after: TableDef | None, kind: str) -> None:
        """Refuse DDL that CDC does not allow on a tracked table; see ``ddl.check``.

        :raises SqlError: 3724, 4711, 4928, 15051, 22979, 22983
        """
        instances = [each for each in self.instances if each.source_object_id == before.object_id]
        ddl.check(instances, before, after, kind, stays=self.switches.tracked_tables_stay)

    def plant_orphaned_ddl(self, source_object_id: int, command: str, *, required_column_update: bool = False) -> int:
        """Leave a row in cdc.ddl_history as of now whose capture instance is gone, as some servers do; for tests.

        :param source_object_id: of the table that the instance captured
        :param command: the statement
        :param required_column_update: whether it changed the type of a captured column
        :returns: the object id of the change table that is no more
        """
        with self._lock:
            time = ddl.ddl_time(to_datetime(self._clock()), rounds=self.switches.ddl_time_rounds)
            row = DdlRow(required_column_update, command, lsn.encode(self._log.commit()), time)
            gone = OrphanedDdl(source_object_id, self._new_object_id(), row)
            self._orphans = (*self._orphans, gone)
            return gone.object_id

    # Log scans

    @property
    def backlog(self) -> int:
        """How many committed transactions wait for the capture."""
        with self._lock:
            return len(self._pending)

    def scan(
        self,
        max_transactions: int | None = None,
        *,
        dummy: bool = False,
        session_id: int = 0,
        within: Callable[[str], None] | None = None,
        drawn: random.Random | None = None,
    ) -> int:
        """One log scan: move committed transactions into the change tables, all of them in one step.

        :param max_transactions: at most so many; None takes all
        :param dummy: write a dummy row into lsn_time_mapping if nothing was found, however new the last row is
        :param session_id: of who scans; 0 for the hand of a test
        :param within: called after each write to a table of schema cdc, while nothing is committed, with its name
        :param drawn: draws how the scan writes, and whether it stays unfinished for a while
        :returns: how many transactions were taken from the log
        :raises SqlError: 22901; 22903 where another scan runs; or why a change could not be captured, and then
            everything stays in the log
        """
        if not self._log_reader.acquire(blocking=False):
            raise SqlError.of(22903, self._reader_session, procedure="sp_replcmds")
        self._reader_session = session_id
        try:
            with self._scanning:
                taken, unfinished = self._scan(max_transactions, dummy)
                leave_after = None if within is None else 0
                if unfinished is not None:
                    if drawn is not None and drawn.random() >= _ENDED_AT_ONCE:
                        leave_after = unfinished.drawn(drawn)
                    self._write(unfinished, leave_after)
            if unfinished is not None and within is not None:
                self._go_on(unfinished, within)
            return taken
        finally:
            self._log_reader.release()

    def _scan(self, max_transactions: int | None, dummy: bool) -> tuple[int, Unfinished | None]:
        """How many transactions were taken from the log, and what is to be written of them."""
        with self._lock:
            self._require_enabled("sp_cdc_scan")
            start = to_datetime(self._clock())
            taken = list(islice(self._pending, max_transactions))
            instances = self.instances
        if taken and self.held_back:
            if self.switches.held_back_scans_are_empty:
                with self._lock:
                    self._scans.add(ScanSession(0, start, to_datetime(self._clock()), empty_scan_count=1))
            return 0, None
        if not taken:
            self._note_idle(start, dummy)
            return 0, None
        session = ScanSession(0, start, start, lsn.encode(taken[0].begin))
        try:
            if self.fault():
                raise SqlError.of(22859, procedure="sp_replcmds")
            result = capture(taken, instances, self.switches)
        except SqlError as reason:
            with self._lock:
                self._scans.fail(session, reason, lsn.encode(taken[0].begin))
            raise
        return len(taken), unfinished_scan(result, lambda: self._publish(session, taken, result))

    def _note_idle(self, start: datetime.datetime, dummy: bool) -> None:
        with self._lock:
            now = to_datetime(self._clock())
            newest = self._mapping.newest
            last = self._first_idle(now) if newest is None else newest.tran_end_time
            due = now - last >= self.switches.dummy_interval
            # What was committed since the scan looked comes first.
            if (due or dummy) and not self._pending:
                row = dummy_row(lsn.encode(self._log.commit()), now, self.switches.dummy_tran_id)
                self._mapping.extend([row])
            self._scans.add(ScanSession(0, start, now, empty_scan_count=1))

    def _first_idle(self, now: datetime.datetime) -> datetime.datetime:
        """Since when a database waits for its first row of the mapping, as the capture sees it."""
        if Point.QUIET in self.harshness.points:
            return self._enabled_at
        return now - self.switches.dummy_interval

    def _publish(self, session: ScanSession, taken: list[LoggedTransaction], result: ScanResult) -> None:
        with self._lock:
            for draft in result.drafts:
                draft.instance.changes = draft.changes
                draft.instance.columns = draft.columns
                draft.instance.ddl_history += tuple(draft.ddl)
            self._mapping.extend(result.mapping)
            for _ in taken:
                self._pending.popleft()
            last = taken[-1]
            self._scans.add(
                ScanSession(
                    0,
                    session.start_time,
                    to_datetime(self._clock()),
                    session.first_lsn,
                    lsn.encode(last.commit),
                    to_datetime(last.end_time),
                    len(taken),
                    sum(each.log_records for each in taken),
                    result.schema_changes,
                    result.change_rows,
                )
            )

    def sp_cdc_scan(
        self,
        maxtrans: int | None = None,
        maxscans: int | None = None,
        continuous: int = 0,
        pollinginterval: int = 0,
        *,
        session_id: int = 0,
        by_job: bool = False,
    ) -> int:
        """sys.sp_cdc_scan: scans of ``maxtrans`` transactions until the log is drained, at most ``maxscans``.

        A continuous scan would not return, so here it ends like one that is not.

        :param session_id: of who scans
        :param by_job: the capture job calls it, which keeps the log for itself between its scans too
        :raises SqlError: 22901, 22998, 22990, 22991, 22970, 22999, 22903 beside the capture job, and what ``scan``
            raises
        """
        self._require_enabled("sp_cdc_scan")
        jobs.Settings(maxtrans, maxscans, continuous, pollinginterval).check(jobs.CAPTURE)
        if pollinginterval and not continuous:
            raise SqlError.of(22999, procedure="sp_cdc_scan")
        job_session = None if by_job or self.runner is None else self.runner.capture_session(self)
        if job_session is not None:
            raise SqlError.of(22903, job_session, procedure="sp_replcmds")
        most = self.switches.default_maxtrans if maxtrans is None else maxtrans
        moved = 0
        for _ in range(self.switches.default_scan_maxscans if maxscans is None else maxscans):
            found = self.scan(most, session_id=session_id)
            moved += found
            if found < most:
                break
        return moved
