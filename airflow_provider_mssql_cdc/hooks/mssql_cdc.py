"""The hook: asks SQL Server about its change data capture, and switches it on and off."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from airflow_provider_mssql_cdc.core import lag
from airflow_provider_mssql_cdc.core.catalog import lsn
from airflow_provider_mssql_cdc.core.database import AZURE_SQL_DATABASE, AgentHealth, DatabaseStatus, Running
from airflow_provider_mssql_cdc.core.exceptions import (
    CaptureLagError,
    CdcDisabledError,
    DatabaseUnavailableError,
    IntervalError,
    IntervalNotReachedError,
    LoginError,
    ServerUnreachableError,
    SqlServerError,
)
from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.interval import server_time
from airflow_provider_mssql_cdc.core.lag import Lag
from airflow_provider_mssql_cdc.core.passing import EMPTY_SCANS, NO_SCANS, CaptureProgress
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.proposal import NewInstance
from airflow_provider_mssql_cdc.core.rights import CopiedRights
from airflow_provider_mssql_cdc.core.table import TableName, quote
from airflow_provider_mssql_cdc.hooks import statements
from airflow_provider_mssql_cdc.hooks.connection import Row
from airflow_provider_mssql_cdc.hooks.reading import ReadingHook

_OF_ALTERED_COLUMNS = (22888, 22976, 22977, 22978)
"""Error numbers of a log scan that could not alter a change table as the source table was altered (sys.messages)."""

_SECONDS_BETWEEN_LOOKS = 0.2
_AGENT_RUNNING = 4
LOCK_TIMEOUT = 1222
"""Error number of a lock that was not given in time."""
_CURRENT_TIMEZONE_ID_SINCE = 16

_T = TypeVar("_T")


class MsSqlCdcHook(ReadingHook):
    """Metadata of SQL Server change data capture, never row data; and the procedures that switch it on and off.

    One connection, opened at the first statement and kept until ``close``; autocommit, so that nothing is locked
    between statements. Use it as a context manager. Every method raises the errors of ``core.exceptions``:
    LoginError, ServerUnreachableError, DatabaseUnavailableError, CdcPermissionError, CdcDisabledError, SqlServerError.

    :param mssql_conn_id: Airflow connection of type ``mssql``. Extras that are used: ``timeout`` and
        ``login_timeout`` (seconds), ``encrypt``, ``encryption``, ``appname``, ``tds_version``, ``read_only``,
        ``conn_properties``, and for JDBC those that ``hooks.jdbc`` names. Others are ignored with a warning.
    :param schema: database that overrides the connection's
    :param kwargs: as for ``MsSqlHook``; ``connection`` gives the resolved connection where a lookup would block
    """

    def __enter__(self) -> MsSqlCdcHook:
        """The hook itself."""
        return self

    def agent_health(self) -> AgentHealth:
        """Whether Agent and capture job run, as far as the login can see.

        :raises SqlServerError: if the server does not answer at all
        """
        agent = self._agent()
        if agent is Running.STOPPED:
            # The job's last entry stays open when the Agent goes down.
            job, detail = (
                Running.STOPPED,
                "SQL Server Agent is stopped, so nothing is captured; start its service",
            )
        else:
            job = self._capture_job()
            detail = f"SQL Server Agent: {agent.value}; capture job: {job.value}"
            if job is Running.STOPPED:
                detail += "; start it with EXEC sys.sp_cdc_start_job"
            elif Running.UNKNOWN in (agent, job):
                detail += "; to see both, a login needs VIEW SERVER STATE and SELECT on msdb.dbo.sysjobactivity"
        error = self._capture_error() if agent is not Running.STOPPED else ""
        return AgentHealth(agent, job, detail + error, fails=bool(error))

    def lag(self, status: DatabaseStatus, max_lag: datetime.timedelta) -> Lag | None:
        """Judge the capture by its newest commit and log scan.

        Some statements more, and only where the status shows no younger commit.

        :param status: as it was just read
        :return: None where the capture is in time
        """
        if not lag.is_silent(status, max_lag):
            return None
        if self._seen(statements.UPDATEABILITY) == [(lag.READ_ONLY,)]:
            return lag.on_secondary(status, max_lag)
        scans = self._seen(statements.LAST_SCAN)
        return lag.judge(status, scans[0][0] if scans else None, self.agent_health(), max_lag)

    def capture_progress(self) -> CaptureProgress:
        """How far the capture is, by the server's own clock: one statement, two for a login without VIEW DATABASE
        STATE, which sees no log scans.
        """
        rows = self._seen(statements.CAPTURE_PROGRESS.format(empty_scans=EMPTY_SCANS))
        rows = rows or self.query(statements.CAPTURE_PROGRESS.format(empty_scans=NO_SCANS))
        ((now, newest, newest_time, scans, latest, offset),) = rows
        return CaptureProgress(now, lsn(newest), newest_time, scans, latest, offset)

    def _capture_error(self) -> str:
        """What keeps the capture from getting on; '' where nothing does, or that cannot be seen."""
        rows = self._seen(statements.CAPTURE_ERROR)
        if not rows:
            return ""
        time, number, message = rows[0]
        text = f"; the capture stands still since its log scan of {time} failed with error {number}: {message}"
        if number in _OF_ALTERED_COLUMNS:
            text += (
                " (the change table cannot follow an ALTER of the source table: change the rows that do not fit, or "
                "disable that capture instance; until then nothing of the database is captured)"
            )
        return text

    def _agent(self) -> Running:
        rows = self._seen(statements.AGENT)
        if not rows:
            return Running.UNKNOWN
        return Running.RUNNING if rows[0][0] == _AGENT_RUNNING else Running.STOPPED

    def _capture_job(self) -> Running:
        rows = self._seen(statements.CAPTURE_JOB)
        if not rows:
            # None is needed beside transactional replication, whose log reader captures (docs: sp_cdc_add_job).
            return Running.UNKNOWN
        started, stopped = rows[0]
        return Running.RUNNING if started is not None and stopped is None else Running.STOPPED

    def _seen(self, statement: str) -> list[Row]:
        """The rows of a statement; none where the login may not read them, or the platform has no such thing."""
        try:
            return self.query(statement)
        except (LoginError, ServerUnreachableError, DatabaseUnavailableError):
            raise
        except SqlServerError:
            return []

    def server_timezone(self) -> str | None:
        """``UTC``, or the Windows name of the server's zone; None where the server cannot say (before 2022)."""
        status = self.database_status(captured=False)
        if status.engine_edition == AZURE_SQL_DATABASE:
            return "UTC"
        if status.major_version < _CURRENT_TIMEZONE_ID_SINCE:
            return None
        ((name,),) = self.query(statements.TIMEZONE)
        return None if name is None else str(name)

    def server_zone(self, given: str | None) -> str:
        """The IANA zone of the server's clock, which is the only one that CDC keeps.

        :param given: by the DAG author; None is accepted only from a server that runs in UTC
        :raises IntervalError: if it is not known
        """
        zone = given or self.server_timezone()
        if zone is None or (given is None and zone != "UTC"):
            raise IntervalError(
                f"the server's clock runs in {zone or 'a zone that it cannot tell'}, and CDC keeps no other time.",
                advice='Name its IANA zone: server_timezone="Europe/Berlin", for instance.',
            )
        return zone

    def position_before(self, moment: datetime.datetime, zone: str) -> Lsn:
        """The position before the first commit of a moment or later.

        :param moment: with a zone
        :param zone: IANA zone of the server's clock
        :raises IntervalNotReachedError: if the capture has not come so far
        :raises IntervalError: if the moment has no place in the log, or more than one
        """
        local = server_time(moment, zone)
        crossing = self.crossing(local)
        if crossing is None:
            raise IntervalNotReachedError(
                f"the capture has reached {self.database_status().max_lsn_time}, not yet {local} (server time).",
                advice=self.agent_health().detail,
            )
        return crossing.after(local)

    def enable_database(self, *, timeout: float = 60.0) -> None:
        """Enable CDC for the database; nothing happens where it is on.

        :param timeout: seconds to wait until the new state can be seen
        :raises CdcPermissionError: for a login that is not sysadmin
        :raises CaptureLagError: if the new state cannot be seen in time
        """
        if self._enabled():
            return
        self.query(statements.ENABLE_DATABASE, repeatable=False)
        _wait(self._enabled, timeout, f"{self.where.database} is not shown as enabled for CDC.")

    def disable_database(self, *, timeout: float = 60.0) -> None:
        """Disable CDC for the database: all capture instances go, with what they captured.

        :raises CaptureLagError: if the new state cannot be seen in time
        """
        self.query(statements.DISABLE_DATABASE, repeatable=False)
        _wait(lambda: not self._enabled(), timeout, f"{self.where.database} is still shown as enabled for CDC.")

    def _enabled(self) -> bool:
        return bool(self.query(statements.CDC_ENABLED)[0][0])

    def enable_table(
        self,
        table: TableName,
        *,
        capture_instance: str | None = None,
        role_name: str | None = None,
        captured_columns: Sequence[str] | None = None,
        index_name: str | None = None,
        supports_net_changes: bool = False,
        filegroup_name: str | None = None,
        allow_partition_switch: bool = True,
        lock_timeout: float = 10.0,
        timeout: float = 60.0,
    ) -> list[CaptureInstance]:
        """Enable CDC for a table. A table that is tracked already is left alone.

        The procedure waits for transactions that have written the table, and all other readers and writers wait behind.

        :param capture_instance: None for ``schema_table``
        :param role_name: gating role, made if it is missing; None for none
        :param captured_columns: None for all
        :param index_name: unique index that identifies rows; None for the primary key
        :param filegroup_name: of the change table; None for the default
        :param lock_timeout: seconds to wait for those transactions, and to keep others waiting
        :param timeout: seconds to wait until the new state can be seen
        :return: the table's capture instances that the login can see
        :raises TableNotFoundError: if the login sees no such table
        :raises SqlServerError: with number 1222 if they do not end in time
        :raises CaptureLagError: if the new instance cannot be seen in time
        """
        if not self._enabled():
            raise CdcDisabledError(
                f"{self.where.database} is not enabled for CDC.",
                table=str(table),
                advice="Call enable_database first.",
            )
        # not by its instances: a login that may not see them would add a second one
        if self.is_tracked(table):
            return self.capture_instances([table])
        columns = None if captured_columns is None else ", ".join(quote(name) for name in captured_columns)
        given = (table.schema, table.table, role_name, capture_instance, supports_net_changes, index_name, columns)
        self._enable(table, (*given, filegroup_name, allow_partition_switch), lock_timeout)
        return _wait(lambda: self.capture_instances([table]), timeout, f"no capture instance of {table} can be seen.")

    def add_instance(self, instance: NewInstance, *, lock_timeout: float = 5.0, timeout: float = 60.0) -> None:
        """Make a capture instance beside the one that a table has.

        :param lock_timeout: as ``enable_table``
        :param timeout: seconds to wait until it can be seen
        :raises SqlServerError: with number 1222 if transactions do not end in time; 22926 and 22962 if another session
            has made one
        :raises CaptureLagError: if it cannot be seen in time
        """
        feed, table = instance.beside, instance.beside.source
        columns = ", ".join(quote(name) for name in instance.columns)
        given = (table.schema, table.table, feed.role, instance.name, feed.supports_net_changes, feed.index_name)
        self._enable(table, (*given, columns, feed.filegroup, feed.partition_switch), lock_timeout)

        _wait(
            lambda: self.has_instance(instance), timeout, f"capture instance {instance.name} of {table} cannot be seen."
        )

    def has_instance(self, instance: NewInstance) -> bool:
        """Whether a capture instance is there already that was to be made."""
        return instance.name in [each.name for each in self.capture_instances([instance.beside.source])]

    def copy_rights(self, instance: NewInstance, user: str) -> CopiedRights:
        """Let those read its change table who read that of the one beside it, and nobody who is denied that.

        :param user: who is to read it, too
        """
        before = set(self.query(statements.READERS, (instance.change_table,)))
        left = [name for (name,) in self.query(instance.grants(user), repeatable=False)]
        now = self.query(statements.READERS, (instance.change_table,))
        new = [(name, kind) for name, kind in now if (name, kind) not in before]
        return CopiedRights(
            [name for name, kind in new if kind == statements.READS and name.casefold() != user.casefold()],
            [name for name, kind in new if kind == statements.DENIED],
            [name for name, kind in new if kind == statements.OF_COLUMNS],
            left,
        )

    def _enable(self, table: TableName, given: Sequence[Any], lock_timeout: float) -> None:
        try:
            self.query(
                statements.ENABLE_TABLE.format(milliseconds=int(lock_timeout * 1000)), (*given,), repeatable=False
            )
        except SqlServerError as error:
            # the procedure may hand it on within an error of its own
            if error.number != LOCK_TIMEOUT and f"{LOCK_TIMEOUT}:" not in str(error):
                raise
            raise SqlServerError(
                f"{table} was not enabled for CDC: a transaction that uses it did not end within {lock_timeout:g} s.",
                number=LOCK_TIMEOUT,
                advice="Run it again when no long transaction uses the table: while enabling waits, all other sessions"
                " that use the table wait behind it.",
            ) from None

    def disable_table(self, table: TableName, *, capture_instance: str = "all", timeout: float = 60.0) -> None:
        """Drop one capture instance of a table, or all of them, with what they captured.

        :raises CaptureLagError: if the new state cannot be seen in time
        """
        self.query(statements.DISABLE_TABLE, (table.schema, table.table, capture_instance), repeatable=False)

        def gone() -> bool:
            left = [instance.name for instance in self.capture_instances([table])]
            return not left if capture_instance == "all" else capture_instance not in left

        _wait(gone, timeout, f"capture instances of {table} can still be seen.")


def _wait(look: Callable[[], _T], timeout: float, missing: str) -> _T:
    """Look until the answer is true.

    :raises CaptureLagError: saying what is missing
    """
    end = time.monotonic() + timeout
    while not (answer := look()):
        if time.monotonic() >= end:
            raise CaptureLagError(
                f"after {timeout:g} s {missing}",
                advice="On a readable secondary this lasts until the redo caught up.",
            )
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return answer
