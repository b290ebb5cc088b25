"""How drivers hand statements to a server, without the network: as batches, and as calls of the special procedures."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from airflow_provider_mssql_cdc.sandbox import Sandbox
from airflow_provider_mssql_cdc.sandbox.protocol import (
    IsolationLevel,
    Login,
    Message,
    Outcome,
    Parameter,
    ResultSet,
    ReturnValue,
    SqlError,
)
from airflow_provider_mssql_cdc.sandbox.tsql.session import SqlSession
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType

Rows = list[tuple[Any, ...]]

_TEXT = SqlType("nvarchar", MAX)
_INT = SqlType("int")


class Driver:
    """A session that sends batches as any driver does."""

    def __init__(self, server: Sandbox, database: str = "shop") -> None:
        self.session = SqlSession(server.instance, Login(server.user, server.password, database))
        self.names: list[str] = []
        self.outputs: list[Any] = []

    def close(self) -> None:
        """End the session."""
        self.session.close()

    def sets(self, outcomes: Iterable[Outcome]) -> list[Rows]:
        """All result sets of an answer; ``names`` has the columns of the last one.

        :raises SqlError: the first error of the answer
        """
        results: list[Rows] = []
        self.outputs = []
        for outcome in outcomes:
            if isinstance(outcome, ResultSet):
                rows = [row for batch in outcome.batches for row in zip(*map(_python, batch.columns), strict=True)]
                self.names = [column.name for column in outcome.columns]
                results.append(rows)
            elif isinstance(outcome, ReturnValue):
                self.outputs.append(outcome.value)
            elif isinstance(outcome, Message) and outcome.severity > 10:
                raise SqlError(outcome.number, outcome.text, severity=outcome.severity, line=outcome.line)
        return results

    def batch(self, sql: str) -> Rows:
        """Send a batch; its last result set."""
        return (self.sets(self.session.batch(sql)) or [[]])[-1]

    def call(self, procedure: str | int, *arguments: Parameter) -> Rows:
        """Call a procedure by RPC; its last result set."""
        return (self.sets(self.session.rpc(procedure, list(arguments))) or [[]])[-1]

    def begin(self, isolation: IsolationLevel) -> None:
        """Ask the transaction manager for a transaction."""
        self.sets(self.session.begin(isolation, ""))

    def rollback(self) -> None:
        """Ask the transaction manager to take the transaction back."""
        self.sets(self.session.rollback(""))

    def commit(self) -> None:
        """Ask the transaction manager to keep the transaction."""
        self.sets(self.session.commit(""))


def _python(column: Any) -> list[Any]:
    return column.to_pylist()  # type: ignore[no-any-return]


def _executesql(sql: str, names: list[str], given: list[tuple[SqlType, str, Any]]) -> list[Parameter]:
    declared = ",".join(f"{name} {shown}" for name, (_, shown, _) in zip(names, given, strict=True))
    values = [Parameter(name, type_, value) for name, (type_, _, value) in zip(names, given, strict=True)]
    return [Parameter("", _TEXT, sql), Parameter("", _TEXT, declared), *values]


class GoMssqldb(Driver):
    """microsoft/go-mssqldb 1.9: a batch where there are no parameters, else sp_executesql with each value's length."""

    def query(self, sql: str, *values: Any) -> Rows:
        """``QueryContext``: the parameters are @p1, @p2 and so on."""
        if not values:
            return self.batch(sql)
        names = [f"@p{number}" for number in range(1, len(values) + 1)]
        return self.call(10, *_executesql(sql, names, [self._sent(value) for value in values]))

    @staticmethod
    def _sent(value: Any) -> tuple[SqlType, str, Any]:
        if isinstance(value, str):
            return SqlType("nvarchar", len(value)), f"nvarchar({len(value)})", value
        if isinstance(value, bytes):
            return SqlType("varbinary", len(value)), f"varbinary({len(value)})", value
        assert isinstance(value, int)
        return SqlType("bigint"), "bigint", value


class Tiberius(Driver):
    """prisma/tiberius 0.12: ``query`` is sp_executesql, also without parameters, ``simple_query`` a batch."""

    def query(self, sql: str, *values: str) -> Rows:
        """``Client::query``: the parameters are @P1, @P2 and so on, text of at most 4,000 characters."""
        names = [f"@P{number}" for number in range(1, len(values) + 1)]
        given = [(SqlType("nvarchar", 4000), "nvarchar(4000)", value) for value in values]
        return self.call(10, *_executesql(sql, names, given))


class MssqlJdbc(Driver):
    """microsoft/mssql-jdbc 12.4: a statement is run by sp_executesql, then prepared by sp_prepexec, then executed."""

    def __init__(self, server: Sandbox, database: str = "shop") -> None:
        super().__init__(server, database)
        self._seen: dict[str, int | None] = {}

    def prepared(self, sql: str, *values: Any) -> Rows:
        """A ``PreparedStatement``: each ``?`` is @P0, @P1 and so on; a batch where there is none."""
        if not values:
            return self.batch(sql)
        numbers = iter(range(len(values)))
        text = re.sub(r"\?", lambda _: f"@P{next(numbers)}", sql)
        names = [f"@P{number}" for number in range(len(values))]
        statement, declared, *bound = _executesql(text, names, [self._sent(value) for value in values])
        for each in bound:
            each.name = ""
        handle = self._seen.get(text, 0)
        if text not in self._seen:
            self._seen[text] = None
            return self.call(10, statement, declared, *bound)
        if handle is None:
            rows = self.call(13, Parameter("", _INT, None, output=True), declared, statement, *bound)
            (self._seen[text],) = self.outputs
            return rows
        return self.call(12, Parameter("", _INT, handle), *bound)

    def procedure(self, name: str, *arguments: str | None) -> Rows:
        """What ``DatabaseMetaData`` calls: {call name(?, ...)}."""
        return self.call(name, *(Parameter("", SqlType("nvarchar", 4000), value) for value in arguments))

    @staticmethod
    def _sent(value: Any) -> tuple[SqlType, str, Any]:
        if isinstance(value, str):
            return SqlType("nvarchar", 4000), "nvarchar(4000)", value
        if isinstance(value, bytes):
            return SqlType("varbinary", 8000), "varbinary(8000)", value
        assert isinstance(value, int)
        return _INT, "int", value
