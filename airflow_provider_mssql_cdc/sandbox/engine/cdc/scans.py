"""sys.dm_cdc_log_scan_sessions and sys.dm_cdc_errors: what the log scans of a database did."""

from __future__ import annotations

import datetime
from collections import deque
from dataclasses import dataclass, field, replace

from airflow_provider_mssql_cdc.sandbox.engine.cdc.lsn import ZERO_LSN, to_colon_form
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation, relation
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError

_KEPT_SESSIONS = 32
_SESSIONS = (
    "session_id int!, start_time datetime, end_time datetime, duration bigint, scan_phase nvarchar(200), "
    "error_count int, start_lsn nvarchar(23), current_lsn nvarchar(23), end_lsn nvarchar(23), tran_count bigint, "
    "last_commit_lsn nvarchar(23), last_commit_time datetime, log_record_count bigint, schema_change_count int, "
    "command_count bigint, first_begin_cdc_lsn nvarchar(23), last_commit_cdc_lsn nvarchar(23), "
    "last_commit_cdc_time datetime, latency int, empty_scan_count int, failed_sessions_count int"
)
_ERRORS = (
    "session_id int, phase_number int, entry_time datetime, error_number int, error_severity int, error_state int, "
    "error_message nvarchar(1024), start_lsn nvarchar(23), begin_lsn nvarchar(23), sequence_value nvarchar(23)"
)
_CAPTURE_PHASE = 7


@dataclass(frozen=True, slots=True)
class ScanSession:
    """One log scan, or several empty ones after each other.

    :param last_commit_time: server-local
    """

    session_id: int
    start_time: datetime.datetime
    end_time: datetime.datetime
    first_lsn: bytes = ZERO_LSN
    last_commit_lsn: bytes = ZERO_LSN
    last_commit_time: datetime.datetime | None = None
    tran_count: int = 0
    log_record_count: int = 0
    schema_change_count: int = 0
    command_count: int = 0
    error_count: int = 0
    empty_scan_count: int = 0
    failed_sessions_count: int = 0

    def row(self) -> tuple[object, ...]:
        """The row of the DMV."""
        latency = 0
        if self.last_commit_time is not None:
            latency = int((self.end_time - self.last_commit_time).total_seconds())
        first, last = dmv_lsn(self.first_lsn), dmv_lsn(self.last_commit_lsn)
        duration = int((self.end_time - self.start_time).total_seconds())
        return (
            self.session_id, self.start_time, self.end_time, duration, "Error" if self.error_count else "Done",
            self.error_count, first, last, last, self.tran_count, last, self.last_commit_time, self.log_record_count,
            self.schema_change_count, self.command_count, first, last, self.last_commit_time, latency,
            self.empty_scan_count, self.failed_sessions_count,
        )  # fmt: skip


def dmv_lsn(lsn: bytes) -> str:
    """An LSN as nvarchar(23): 22 characters and, as clients rely on, a NUL character."""
    return to_colon_form(lsn) + "\0"


@dataclass(slots=True)
class ScanSessions:
    """The sessions since the server started; the newest 32, and their sum over all time as session 0."""

    _sessions: deque[ScanSession] = field(default_factory=lambda: deque(maxlen=_KEPT_SESSIONS))
    _errors: list[tuple[int, tuple[object, ...]]] = field(default_factory=list)
    _total: ScanSession | None = None
    _count: int = 0

    def add(self, session: ScanSession) -> None:
        """Note a finished scan; its session_id is given here. Consecutive empty ones become one row."""
        last = self._sessions[-1] if self._sessions else None
        if session.empty_scan_count and last is not None and last.empty_scan_count:
            total = last.empty_scan_count + session.empty_scan_count
            self._sessions[-1] = replace(last, end_time=session.end_time, empty_scan_count=total)
        else:
            self._count += 1
            self._sessions.append(replace(session, session_id=self._count))
        self._total = session if self._total is None else _sum(self._total, session)
        oldest = self._sessions[0].session_id
        self._errors = [each for each in self._errors if each[0] >= oldest]

    def fail(self, session: ScanSession, reason: SqlError, begin_lsn: bytes) -> None:
        """Note a scan that delivered nothing.

        :param begin_lsn: of the first transaction of the scan
        """
        self.add(replace(session, error_count=1, failed_sessions_count=1))
        number = self._sessions[-1].session_id
        lsn = dmv_lsn(begin_lsn)
        text = reason.text[:1024]
        row = (reason.number, reason.severity, reason.state, text, lsn, lsn, dmv_lsn(ZERO_LSN))
        self._errors.append((number, (number, _CAPTURE_PHASE, session.end_time, *row)))

    def sessions(self) -> Relation:
        """sys.dm_cdc_log_scan_sessions."""
        rows = [each.row() for each in self._sessions]
        if self._total is not None:
            rows.insert(0, replace(self._total, session_id=0).row())
        return relation(_SESSIONS, rows)

    def errors(self) -> Relation:
        """sys.dm_cdc_errors."""
        return relation(_ERRORS, [row for _, row in self._errors])


_COUNTS = (
    "tran_count", "log_record_count", "schema_change_count", "command_count", "error_count", "empty_scan_count",
    "failed_sessions_count",
)  # fmt: skip


def _sum(total: ScanSession, session: ScanSession) -> ScanSession:
    last = session if session.tran_count else total
    return replace(
        total,
        end_time=session.end_time,
        first_lsn=session.first_lsn if total.first_lsn == ZERO_LSN else total.first_lsn,
        last_commit_lsn=last.last_commit_lsn,
        last_commit_time=last.last_commit_time,
        **{name: getattr(total, name) + getattr(session, name) for name in _COUNTS},
    )
