"""The contract between the wire and the language: a session takes requests and answers with outcomes."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.messages import MESSAGES, NOTICES, SEVERITIES, STATES
from airflow_provider_mssql_cdc.sandbox.types import SqlType

_UNSUPPORTED = "not supported by the sandbox: "


class SqlError(Exception):
    """An error as SQL Server reports it; severity 11 and above.

    :param line: 1-based line within the batch, 0 where unknown
    :param procedure: the procedure that raised it, '' in a batch
    :ivar followed: errors that are sent after it; a CATCH block sees the last one
    """

    def __init__(
        self, number: int, text: str, *, severity: int = 16, state: int = 1, procedure: str = "", line: int = 1
    ) -> None:
        super().__init__(text)
        self.number, self.text, self.severity, self.state = number, text, severity, state
        self.procedure, self.line = procedure, line
        self.followed: tuple[SqlError, ...] = ()

    @classmethod
    def of(
        cls,
        number: int,
        *arguments: object,
        severity: int | None = None,
        state: int | None = None,
        procedure: str = "",
        line: int = 1,
    ) -> SqlError:
        """One of SQL Server's own messages.

        :param arguments: what the text carries, in order
        :param severity: the message's own if None, as the state
        """
        severity = SEVERITIES.get(number, 16) if severity is None else severity
        state = STATES.get(number, 1) if state is None else state
        text = MESSAGES[number].format(*arguments)
        return cls(number, text, severity=severity, state=state, procedure=procedure, line=line)


class Unsupported(SqlError):
    """What the sandbox does not simulate: it ends the batch, whatever encloses the statement.

    A server would have gone on differently: nothing that follows may run as if the statement had failed there, too.

    :param since: the first major version that has it
    :param before: what earlier ones say
    """

    def __init__(self, what: str, *, line: int = 1, since: int = 0, before: SqlError | None = None) -> None:
        super().__init__(50000, f"{_UNSUPPORTED}{what}", line=line)
        self._since, self._before = since, before

    def on(self, major: int) -> SqlError:
        """What a version says."""
        return self._before if self._before is not None and major < self._since else self

    @classmethod
    def read(cls, text: str) -> Unsupported:
        """The error again, from its text."""
        return cls(text.removeprefix(_UNSUPPORTED))


class ConnectionDropped(Exception):
    """The connection ends here: the client gets what was sent so far, and nothing more."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a result set."""

    name: str
    type: SqlType
    nullable: bool = True
    identity: bool = False
    computed: bool = False


@dataclass(slots=True)
class ResultSet:
    """Rows of one statement. Each record batch has one array per column, in order, of ``column.type.arrow``.

    The batches are made lazily while the wire sends them; an error raised by the iterator goes to the client after
    the rows already sent. Batches hold at most 65,536 rows, so that a cancel is seen in time.
    """

    columns: list[Column]
    batches: Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Message:
    """An error (severity 11 and up) or an informational message (10 and below)."""

    number: int
    text: str
    severity: int = 16
    state: int = 1
    procedure: str = ""
    line: int = 1

    @classmethod
    def notice(cls, number: int, *arguments: object, procedure: str = "") -> Message:
        """A message of severity 10, which no client takes for an exception."""
        text = NOTICES.get(number) or MESSAGES[number]
        return cls(number, text.format(*arguments), severity=10, procedure=procedure)


@dataclass(frozen=True, slots=True)
class RowCount:
    """The end of one statement: DONE (DONEINPROC within a procedure) with or without a row count.

    ``rows`` is None where no count is sent (SET, DECLARE, under NOCOUNT). After a ResultSet the wire counts by
    itself, and ``rows`` is ignored unless ``suppress`` is set. ``command`` names the statement: INSERT, UPDATE,
    DELETE, MERGE, SELECT or SELECT INTO, empty for all others; mssql-jdbc takes a count for an update count by it.
    """

    rows: int | None = None
    suppress: bool = False
    command: str = ""


@dataclass(frozen=True, slots=True)
class DatabaseChanged:
    """USE: the wire sends ENVCHANGE and message 5701."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class TransactionChanged:
    """A transaction began or ended: the wire sends ENVCHANGE 8, 9 or 10 with this descriptor (8 bytes)."""

    kind: str  # "begin", "commit", "rollback"
    descriptor: int


@dataclass(frozen=True, slots=True)
class ReturnValue:
    """An OUTPUT parameter after a procedure call."""

    name: str
    type: SqlType
    value: Any
    ordinal: int = 0


@dataclass(frozen=True, slots=True)
class ReturnStatus:
    """The integer a procedure returns."""

    value: int


Outcome = ResultSet | Message | RowCount | DatabaseChanged | TransactionChanged | ReturnValue | ReturnStatus


@dataclass(slots=True)
class Parameter:
    """A parameter of a procedure call as the client sent it; the value in Python form.

    int, bool, float, Decimal, str, bytes, None; date as datetime.date, datetime and smalldatetime as
    datetime.datetime; time and datetime2 as ticks, datetimeoffset as (utc_ticks, offset_minutes), as in Arrow.
    """

    name: str
    type: SqlType
    value: Any
    output: bool = False
    default: bool = False


@dataclass(frozen=True, slots=True)
class BulkColumn:
    """A column of a bulk load as the client describes it."""

    type: SqlType
    nullable: bool


BulkLoad = tuple[list[BulkColumn], Iterator[list[Any]]]
"""The columns of a bulk load and its rows, read as they are asked for; values in the form of ``Parameter``."""


class IsolationLevel(enum.Enum):
    """As numbered in TDS transaction manager requests; 0 keeps the present level."""

    KEEP = 0
    READ_UNCOMMITTED = 1
    READ_COMMITTED = 2
    REPEATABLE_READ = 3
    SERIALIZABLE = 4
    SNAPSHOT = 5


@dataclass(frozen=True, slots=True)
class Login:
    """What the client said when it logged in.

    :param hang_up: ends the connection, from another thread; None where a session has none
    """

    user: str
    password: str = field(repr=False)
    database: str = ""
    app_name: str = ""
    host_name: str = ""
    read_only: bool = False
    language: str = ""
    hang_up: Callable[[], None] | None = field(default=None, repr=False, compare=False)


class Session(Protocol):
    """One connection's state on the language side. Calls come from one thread; only ``cancel`` comes from another.

    Statement errors are yielded as Message; ConnectionDropped ends the connection; any other exception than SqlError
    is a fault of the sandbox, which the wire reports as error 50000 with the exception's text, and logs.
    """

    database: str

    @property
    def language(self) -> str:
        """The language of its messages, by its name on the server."""

    def batch(self, text: str) -> Iterator[Outcome]:
        """Run a batch of T-SQL."""

    def rpc(self, procedure: str | int, parameters: list[Parameter]) -> Iterator[Outcome]:
        """Call a procedure by name, or by the number of a TDS special procedure (10 sp_executesql, 11 sp_prepare,
        12 sp_execute, 13 sp_prepexec, 15 sp_unprepare, 1-9 cursors)."""

    def begin(self, isolation: IsolationLevel, name: str) -> Iterator[Outcome]:
        """Transaction manager request: begin."""

    def commit(self, name: str) -> Iterator[Outcome]:
        """Transaction manager request: commit."""

    def rollback(self, name: str) -> Iterator[Outcome]:
        """Transaction manager request: roll back to the start or to a save point."""

    def save(self, name: str) -> Iterator[Outcome]:
        """Transaction manager request: set a save point."""

    def bulk(self, read: Callable[[], BulkLoad]) -> Iterator[Outcome]:
        """Take the rows that INSERT BULK has announced.

        :param read: begins to read them; SqlError where they are not well formed, as while they are read
        """

    def discard_bulk(self) -> None:
        """The rows that INSERT BULK has announced will not come."""

    def cancel(self) -> None:
        """Attention: let the running request end soon; safe to call from another thread, at any time.

        It may come more than once, and when the request has ended already: the next request must not feel it.
        """

    def reset(self) -> None:
        """RESETCONNECTION: roll back, drop temporary tables, SET options to their defaults."""

    def close(self) -> None:
        """The connection is gone: roll back and let go of everything."""


class Backend(Protocol):
    """What the wire needs of the server side."""

    server_name: str

    @property
    def version(self) -> tuple[int, int, int]:
        """Major, minor and build of the server, which an update changes."""

    def login(self, login: Login) -> Session:
        """Open a session; SqlError 18456 on a wrong password, 4060 on an unknown database."""
