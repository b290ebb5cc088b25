"""A session's outcomes to the tokens of one reply."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.protocol import (
    Column,
    DatabaseChanged,
    Message,
    Outcome,
    ResultSet,
    ReturnStatus,
    ReturnValue,
    RowCount,
    SqlError,
    TransactionChanged,
)
from airflow_provider_mssql_cdc.sandbox.wire import tokens
from airflow_provider_mssql_cdc.sandbox.wire.framing import MessageWriter
from airflow_provider_mssql_cdc.sandbox.wire.rows import RowEncoder, encode_value
from airflow_provider_mssql_cdc.sandbox.wire.tokens import Done, DoneStatus, EnvChange
from airflow_provider_mssql_cdc.sandbox.wire.typeinfo import Prefix, wire_type

_ENV_CHANGES = {"begin": EnvChange.BEGIN, "commit": EnvChange.COMMIT, "rollback": EnvChange.ROLLBACK}
_ERROR_SEVERITY, _FATAL_SEVERITY = 11, 20


class Interrupted(Exception):
    """The client sent something while rows were on their way to it: an attention, or its end."""


def error_message(error: SqlError) -> Message:
    """The message that reports ``error``."""
    return Message(error.number, error.text, error.severity, error.state, error.procedure, error.line)


class Reply:
    """Writes one reply. A DONE is held back until it is known whether something follows it.

    :param interrupted: asked between chunks of rows and between outcomes
    """

    def __init__(self, writer: MessageWriter, server_name: str, interrupted: Callable[[], bool]) -> None:
        self._writer, self._server_name, self._interrupted = writer, server_name, interrupted
        self._held: tuple[Done, DoneStatus, str, int] | None = None
        self._rows: int | None = None
        self.failed = False
        self._statement_end = Done.BATCH
        self.in_transaction = False
        self.fatal = False

    def start_call(self) -> None:
        """What follows belongs to a procedure call, until :meth:`end_call`."""
        self._statement_end = Done.IN_PROCEDURE

    def end_call(self) -> None:
        """Write the end of a procedure call."""
        self._close_result()
        self._hold(Done.PROCEDURE, DoneStatus.FINAL)

    def add(self, outcome: Outcome) -> None:
        """Write one outcome.

        :raises Interrupted: if the client sent something meanwhile
        """
        if isinstance(outcome, RowCount):
            self._row_count(outcome)
        elif isinstance(outcome, Message):
            self.message(outcome)
        else:
            self._close_result()
            if isinstance(outcome, ResultSet):
                self._result_set(outcome)
            elif isinstance(outcome, ReturnStatus):
                self._write(tokens.return_status(outcome.value))
                if self._statement_end is Done.BATCH:
                    self._hold(Done.PROCEDURE, DoneStatus.FINAL)
            elif isinstance(outcome, ReturnValue):
                self._return_value(outcome)
            elif isinstance(outcome, DatabaseChanged):
                self._write(tokens.env_change_text(EnvChange.DATABASE, outcome.new, outcome.old))
                self.message(Message(5701, f"Changed database context to '{outcome.new}'.", severity=0))
            else:
                self._transaction(outcome)
        if self._interrupted():
            raise Interrupted

    def message(self, item: Message) -> None:
        """Write an error or an informational message."""
        self._write(tokens.message(item, self._server_name))
        self.failed |= item.severity >= _ERROR_SEVERITY
        self.fatal |= item.severity >= _FATAL_SEVERITY

    def abandon(self) -> None:
        """Leave the statement that is running without an end of its own: the client has cancelled it."""
        self._rows, self.failed = None, False
        self._release(more=True)

    def reset_done(self) -> None:
        """Say that the connection was reset, and with it its transaction."""
        self.in_transaction = False
        self._write(tokens.env_change_bytes(EnvChange.RESET, b""))

    def flush(self) -> None:
        """Send what was written so far."""
        self._writer.flush()

    def finish(self, status: DoneStatus = DoneStatus.FINAL) -> None:
        """Write the last DONE, and end the message."""
        self._close_result()
        if self._held is None:
            self._hold(Done.BATCH, status)
        self._release(more=False)
        self._writer.end()

    def _write(self, data: bytes | memoryview) -> None:
        self._release(more=True)
        self._writer.write(data)

    def _hold(self, kind: Done, status: DoneStatus, command: str = "", rows: int = 0) -> None:
        self._release(more=True)
        if self.failed:
            status |= DoneStatus.ERROR
        if self.in_transaction:
            status |= DoneStatus.IN_TRANSACTION
        self._held, self.failed = (kind, status, command, rows), False

    def _release(self, *, more: bool) -> None:
        if self._held is None:
            return
        kind, status, command, rows = self._held
        self._held = None
        self._writer.write(tokens.done(kind, status | DoneStatus.MORE if more else status, command, rows))

    def _close_result(self) -> None:
        """End a result set for which the session has sent no row count."""
        if self._rows is not None:
            self._row_count(RowCount())

    def _row_count(self, outcome: RowCount) -> None:
        count, command = outcome.rows, outcome.command
        if self._rows is not None:
            count, command, self._rows = self._rows, command or "SELECT", None
        if outcome.suppress:
            count = None
        status = DoneStatus.FINAL if count is None else DoneStatus.COUNT
        self._hold(self._statement_end, status, command, count or 0)

    def _result_set(self, result: ResultSet) -> None:
        encoder = RowEncoder(result.columns)
        if self.failed:
            self._row_count(RowCount())
        self._write(tokens.column_metadata(result.columns))
        self._rows = 0
        for batch in _until_error(result.batches, self.message):
            for count, rows in encoder.chunks(batch):
                self._write(rows)
                self._rows += count
                if self._interrupted():
                    raise Interrupted

    def _return_value(self, outcome: ReturnValue) -> None:
        wire = wire_type(outcome.type, nullable=True)
        if wire.prefix is Prefix.TEXT_POINTER:
            raise TypeError(f"{outcome.type.name} cannot be an OUTPUT parameter")
        value = outcome.value
        if outcome.type.name == "datetimeoffset" and value is not None:
            value = dict(zip(("utc_ticks", "offset_minutes"), value, strict=True))
        encoded = encode_value(Column(outcome.name, outcome.type), pa.array([value], outcome.type.arrow))
        self._write(tokens.return_value(outcome.name, outcome.ordinal, wire.user_type, wire.info, encoded))

    def _transaction(self, outcome: TransactionChanged) -> None:
        self.in_transaction = outcome.kind == "begin"
        descriptor = outcome.descriptor.to_bytes(8, "little")
        new, old = (descriptor, b"") if self.in_transaction else (b"", descriptor)
        self._write(tokens.env_change_bytes(_ENV_CHANGES[outcome.kind], new, old))


def _until_error(batches: Iterator[pa.RecordBatch], report: Callable[[Message], None]) -> Iterator[pa.RecordBatch]:
    """The batches; an error among them goes to the client after the rows before it, and ends the rows."""
    try:
        yield from batches
    except SqlError as error:
        report(error_message(error))
