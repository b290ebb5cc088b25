"""What statements run on: the session's environment, options and transactions, and what becomes of errors."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from typing import Any

import duckdb

from airflow_provider_mssql_cdc.sandbox.collations import comparing
from airflow_provider_mssql_cdc.sandbox.protocol import Message, Outcome, RowCount, SqlError, Unsupported
from airflow_provider_mssql_cdc.sandbox.tsql import masks
from airflow_provider_mssql_cdc.sandbox.tsql.batch_errors import (
    ENDS_BATCH,
    ENDS_STATEMENT,
    ENDS_TRANSACTION,
    BatchAborted,
    Caught,
    Thrown,
    is_caught,
)
from airflow_provider_mssql_cdc.sandbox.tsql.bulk_target import Announced
from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr
from airflow_provider_mssql_cdc.sandbox.tsql.expressions import scalar
from airflow_provider_mssql_cdc.sandbox.tsql.literals import literal_of
from airflow_provider_mssql_cdc.sandbox.tsql.options import Settings
from airflow_provider_mssql_cdc.sandbox.tsql.parsing import parse
from airflow_provider_mssql_cdc.sandbox.tsql.prepared import Prepared
from airflow_provider_mssql_cdc.sandbox.tsql.query import compile_query
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Context, Scope
from airflow_provider_mssql_cdc.sandbox.tsql.script import Statement
from airflow_provider_mssql_cdc.sandbox.tsql.transactions import Transactions, uncommittable
from airflow_provider_mssql_cdc.sandbox.tsql.translation import translated


class Executor(abc.ABC):
    """What each kind of statement is run on; how a batch is taken apart is left open.

    :ivar settings: the session's SET options
    :ivar prepared: its prepared statements
    :ivar bulk: where the rows go that the client sends next
    """

    def __init__(self, environment: Environment) -> None:
        self.env = environment
        self.settings = Settings()
        self.prepared = Prepared()
        self.bulk: Announced | None = None
        self.transactions = Transactions(environment)
        self._undone: BaseException | None = None  # what a writing statement last failed with

    @abc.abstractmethod
    def run(self, text: str) -> Iterator[Outcome]:
        """Run a batch with the session's variables; its outcomes, errors among them as messages."""

    @abc.abstractmethod
    def statement(self, statement: Statement) -> Iterator[Outcome]:
        """Run one statement; its errors are messages, or go to a CATCH block."""

    def context(self, late: list[SqlError] | None = None) -> Context:
        """A new statement's compilation context.

        :param late: see ``Context.late``
        """
        comparing.DATABASE.set(self.env.current.collation)
        return Context(self.env, compile_query, late=late)

    def failed(self, error: SqlError | duckdb.Error, line: int) -> Iterator[Outcome]:
        """A statement failed: what of its transaction and its batch goes on.

        :raises Caught: where a CATCH block takes the error
        :raises BatchAborted: where the error ends the batch
        """
        problem = translated(error) if isinstance(error, duckdb.Error) else error
        problem = self.env.instance.version.says(problem)
        if problem.line <= 1:
            problem.line = line
        last = problem.followed[-1] if problem.followed else problem
        last.line = problem.line
        self.env.last_error, self.env.rowcount = last.number, 0
        ends = isinstance(problem, Thrown | Unsupported)
        aborts = problem.number in ENDS_TRANSACTION or (self.settings.xact_abort and (problem.number != 50000 or ends))
        if is_caught(self.env, problem):
            # docs (XACT_STATE): what would have rolled the transaction back leaves it uncommittable in a TRY block
            self.env.doomed = self.env.doomed or (aborts and self.env.trancount > 0)
            raise Caught(last)
        yield error_message(problem)
        for each in problem.followed:
            each.line = problem.line
            yield error_message(each)
        if not ends and error is self._undone and problem.number in ENDS_STATEMENT:
            yield Message(3621, "The statement has been terminated.", 0)
        if aborts and self.env.trancount:
            yield from self.transactions.end("rollback")
        yield RowCount()
        if aborts or ends or problem.number in ENDS_BATCH or problem.severity >= 20:
            raise BatchAborted

    def atomically(self, action: Callable[[], Any], *, single: bool = False) -> Any:
        """Run a writing statement: alone in its own transaction, or as a step of the open one, all or nothing.

        :param single: the statement writes once at most
        """
        if self.env.doomed:
            raise uncommittable(3930)
        manager, variables = self.env.manager, dict(self.env.variables)
        alone = manager.open is None
        if alone:
            manager.begin(single=single)
        mark = manager.mark()
        try:
            result = action()
        except BaseException as error:
            self._undone = error
            self.env.finish_reading()
            self.env.variables.update(variables)
            if alone:
                manager.rollback()
            else:
                manager.undo_to(mark)
            raise
        if alone:
            manager.commit()
        return result

    def reading(self, action: Callable[[], Any]) -> Any:
        """Run a read; an error in an open transaction must not cost what it has written."""
        try:
            return action()
        except duckdb.Error:
            self.mend()
            raise

    def mend(self) -> None:
        """Mend DuckDB's transaction after an error of a read."""
        manager = self.env.manager
        self.env.finish_reading()
        if manager.open is not None and manager.open.in_duckdb:
            manager.undo_to(manager.mark())

    def evaluate(self, text: str, line: int = 1) -> Expr:
        """An expression of T-SQL as a typed constant."""
        tree = parse(f"SELECT {text}", line)
        if len(tree.expressions) != 1:
            raise SqlError.of(102, ",", line=line)
        ctx = self.context()
        return masks.masked_value(ctx, scalar(ctx, Scope(), tree.expressions[0]))

    def assign(self, name: str, value: Any, expr: Expr) -> None:
        """Give a variable a value, converted to its type."""
        type_, _ = self.env.variable(name)
        if value is not None and expr.type != type_:
            typed = Expr(literal_of(value, expr.type), expr.type, constant=True)
            value = self.env.evaluate(Expr(typed.to(type_), type_, constant=True))
        self.env.variables[name.casefold()] = (type_, value)

    def done(self, rows: int, command: str) -> RowCount:
        """What tells the client how many rows a statement returned or wrote.

        :param command: its first word, in upper case
        """
        return RowCount(None if self.settings.nocount else rows, suppress=self.settings.nocount, command=command)

    def wrote(self, rows: int, command: str) -> RowCount:
        """The end of a statement that has written rows."""
        self.env.rowcount = rows
        return self.done(rows, command)


def error_message(error: SqlError) -> Message:
    """An error as the client is told of it."""
    return Message(error.number, error.text, error.severity, error.state, error.procedure, error.line)
