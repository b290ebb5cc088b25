"""A connection whose results, messages and errors come back whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pymssql

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """One result set.

    :param names: its column names, in order
    """

    names: list[str]
    rows: list[Row]


@dataclass(frozen=True, slots=True)
class Message:
    """What arrives beside the results; an informational message carries no number where a client could see it."""

    text: str
    severity: int
    state: int
    procedure: str
    line: int
    server: str


class SqlServerError(Exception):
    """An error as the server sent it.

    :param number: its number
    :param message: the rest of it
    :param results: the result sets that came before it
    """

    def __init__(self, number: int, message: Message, results: list[Result]) -> None:
        self.number, self.results = number, results
        self.text, self.severity, self.state = message.text, message.severity, message.state
        self.procedure, self.line, self.server = message.procedure, message.line, message.server
        place = f"{self.procedure or 'batch'}, line {self.line}"
        super().__init__(f"Msg {number}, Level {self.severity}, State {self.state}, {place}: {self.text}")


class Client:
    """A connection in autocommit mode.

    :param address: host, port, user, password
    """

    def __init__(self, address: dict[str, Any], database: str = "") -> None:
        self.messages: list[Message] = []
        self._connection = pymssql.connect(
            server=address["host"],
            port=str(address["port"]),
            user=address["user"],
            password=address["password"],
            database=database,
            autocommit=True,
        )
        self._connection._conn.set_msghandler(self._note)

    def _note(self, state: int, severity: int, server: bytes, procedure: bytes, line: int, text: bytes) -> None:
        self.messages.append(Message(text.decode(), severity, state, procedure.decode(), line, server.decode()))

    def sets(self, sql: str, parameters: Sequence[Any] = ()) -> list[Result]:
        """Run a batch.

        :param parameters: values for the ``%s`` in it
        :returns: all its result sets; ``messages`` holds what else it sent
        :raises SqlServerError: the first error
        """
        self.messages.clear()
        results: list[Result] = []
        with self._connection.cursor() as cursor:
            try:
                cursor.execute(*([sql, tuple(parameters)] if parameters else [sql]))
                while True:
                    if cursor.description is not None:
                        names = [column[0] for column in cursor.description]
                        results.append(Result(names, cursor.fetchall()))
                    if not cursor.nextset():
                        return results
            except pymssql.Error as error:
                raise self._error(error, results) from None

    def _error(self, error: pymssql.Error, results: list[Result]) -> Exception:
        detail = error.__context__
        sent = [message for message in self.messages if message.severity > 10]
        if not isinstance(detail, pymssql._mssql.MSSQLDatabaseException) or not sent:
            return error
        return SqlServerError(detail.number, sent[0], results)

    def run(self, sql: str, *parameters: Any) -> list[Row]:
        """The rows of a batch's last result set; none if it has none."""
        results = self.sets(sql, parameters)
        return results[-1].rows if results else []

    def names(self, sql: str) -> list[str]:
        """The column names of a batch's last result set."""
        return self.sets(sql)[-1].names

    def value(self, sql: str, *parameters: Any) -> Any:
        """The only value of a batch's last result set."""
        rows = self.run(sql, *parameters)
        assert len(rows) == 1, f"{len(rows)} rows instead of one value"
        assert len(rows[0]) == 1, f"{len(rows[0])} columns instead of one value"
        return rows[0][0]

    def error(self, sql: str) -> SqlServerError:
        """The error that a batch must end with."""
        try:
            results = self.sets(sql)
        except SqlServerError as error:
            return error
        raise AssertionError(f"no error, but {results}")

    def number(self, sql: str) -> int:
        """The number of the error that a batch must end with."""
        return self.error(sql).number

    def notes(self, sql: str) -> list[str]:
        """The texts of the informational messages of a batch, without errors among them."""
        self.sets(sql)
        assert all(message.severity in (0, 10) for message in self.messages), self.messages
        return [message.text for message in self.messages]

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


def literal(value: Any) -> str:
    """A value as T-SQL writes it."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return "0x" + value.hex().upper()
    if isinstance(value, str):
        return "N'" + value.replace("'", "''") + "'"
    return str(int(value))
