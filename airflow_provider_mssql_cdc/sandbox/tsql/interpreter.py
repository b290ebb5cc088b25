"""Runs a batch: control flow, transactions, variables, queries and DML, one statement after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.faults import Faults
from airflow_provider_mssql_cdc.sandbox.protocol import (
    Column,
    Message,
    Outcome,
    ResultSet,
    ReturnStatus,
    RowCount,
    SqlError,
    Unsupported,
)
from airflow_provider_mssql_cdc.sandbox.tsql import calls, declarations, dml
from airflow_provider_mssql_cdc.sandbox.tsql.control import BatchAborted, Caught, is_caught, run_node, wait_for
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr
from airflow_provider_mssql_cdc.sandbox.tsql.expressions import scalar
from airflow_provider_mssql_cdc.sandbox.tsql.parsing import parse
from airflow_provider_mssql_cdc.sandbox.tsql.query import compile_query
from airflow_provider_mssql_cdc.sandbox.tsql.raising import Thrown, raise_error, throw
from airflow_provider_mssql_cdc.sandbox.tsql.relation import EVERYTHING
from airflow_provider_mssql_cdc.sandbox.tsql.results import Counter, gathered, limited, mixed, result_columns, typed
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Context, Query, Scope
from airflow_provider_mssql_cdc.sandbox.tsql.script import Statement, inserts_procedure, read_batch
from airflow_provider_mssql_cdc.sandbox.tsql.select_assign import assign_rows, assigns
from airflow_provider_mssql_cdc.sandbox.tsql.select_into import into_of, select_into
from airflow_provider_mssql_cdc.sandbox.tsql.settings import Settings, run_set
from airflow_provider_mssql_cdc.sandbox.tsql.transactions import Transactions, uncommittable
from airflow_provider_mssql_cdc.sandbox.tsql.translation import translated
from airflow_provider_mssql_cdc.sandbox.types import SqlType

# errors that end the batch; those above severity 16 end the connection, which the sandbox never does
_ABORT_TRANSACTION = frozenset({241, 242, 245, 295, 1205, 3960, 3961, 8114, 8169})
_ABORT_BATCH = _ABORT_TRANSACTION | {
    102, 105, 113, 137, 156, 168, 174, 189, 195, 207, 208, 209, 313, 1007, 1087, 3617, 3930, 3931, 4104, 4121, 10704,
}  # fmt: skip
# errors after which a statement that writes is said to be terminated
_TERMINATE = frozenset({220, 512, 515, 544, 1505, 2601, 2627, 2628, 7139, 8115, 8134})
_STARTS_IMPLICIT = frozenset(
    ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "CREATE", "ALTER", "DROP", "TRUNCATE", "GRANT", "REVOKE"]
)


_WRITES: dict[type, Callable[[Context, Any], dml.Written]] = {
    exp.Insert: dml.insert,
    exp.Update: dml.update,
    exp.Delete: dml.delete,
}


def _starts_implicitly(statement: Statement) -> bool:
    # docs (SET IMPLICIT_TRANSACTIONS): a SELECT from no table does not start a transaction
    reads = statement.verb != "SELECT" or any(token.upper == "FROM" for token in statement.tokens)
    return statement.verb in _STARTS_IMPLICIT and reads


def _failing(error: SqlError) -> Iterator[pa.RecordBatch]:
    """Rows of which an error comes first."""
    yield from ()
    raise error


class Returned(Exception):
    """RETURN was run."""


class Interpreter:
    """Executes batches for one session.

    :param faults: what may befall its statements
    """

    def __init__(self, environment: Environment, faults: Faults | None = None) -> None:
        self._faults = faults
        self.env = environment
        self.settings = Settings()
        self.prepared = calls.Prepared()
        self._inserting = False
        self._undone: BaseException | None = None  # what a writing statement last failed with
        self.transactions = Transactions(environment)
        self._handlers: dict[str, Callable[[Statement], Iterator[Outcome]]] = {
            "SELECT": self._query,
            "WITH": self._query,
            "INSERT": self._query,
            "UPDATE": self._query,
            "DELETE": self._query,
            "DECLARE": self._declare,
            "SET": self._set,
            "PRINT": self._print,
            "RAISERROR": self._raise,
            "THROW": lambda statement: throw(self, statement),
            "WAITFOR": lambda statement: wait_for(self, statement),
            "BEGIN": self.transactions.run_begin,
            "COMMIT": self.transactions.run_commit,
            "ROLLBACK": self.transactions.run_rollback,
            "SAVE": self.transactions.run_save,
            "RETURN": self._return,
            "EXEC": self._exec,
        }

    def run(self, text: str) -> Iterator[Outcome]:
        """Run a batch with the session's variables; its outcomes, errors among them as messages."""
        try:
            block = read_batch(text)
        except SqlError as error:
            if is_caught(self, error):
                raise Caught(error) from error
            yield self._message(error)
            raise BatchAborted from error
        try:
            yield from run_node(self, block)
        except Returned:
            return

    def context(self) -> Context:
        """A new statement's compilation context."""
        return Context(self.env, compile_query)

    def statement(self, statement: Statement) -> Iterator[Outcome]:
        """Run one statement; its errors are messages, or go to a CATCH block."""
        if self.env.cancelled.is_set():
            raise BatchAborted
        if self.settings.implicit_transactions and not self.env.trancount and _starts_implicitly(statement):
            yield from self.transactions.begin()
        handler = self._handlers.get(statement.verb)
        try:
            outcomes = handler(statement) if handler is not None else declarations.run(self, statement)
            if self._faults is not None:
                spid = self.env.info.session_id
                outcomes = self._faults.around(statement.text, outcomes, spid, self.env.cancelled.wait)
            yield from outcomes
            if statement.verb not in ("DECLARE", "PRINT", "RETURN", "RAISERROR"):
                self.env.last_error = 0
        except (SqlError, duckdb.Error) as error:
            yield from self.failed(error, statement.line)
        finally:
            self.env.forget()

    def _message(self, error: SqlError) -> Message:
        return Message(error.number, error.text, error.severity, error.state, error.procedure, error.line)

    def failed(self, error: SqlError | duckdb.Error, line: int) -> Iterator[Outcome]:
        """A statement failed: what of its transaction and its batch goes on.

        :raises Caught: where a CATCH block takes the error
        :raises BatchAborted: where the error ends the batch
        """
        problem = translated(error) if isinstance(error, duckdb.Error) else error
        if isinstance(problem, Unsupported):
            problem = problem.on(self.env.instance.version.number[0])
        if problem.line <= 1:
            problem.line = line
        self.env.last_error, self.env.rowcount = problem.number, 0
        ends = isinstance(problem, Thrown | Unsupported)
        aborts = problem.number in _ABORT_TRANSACTION or (
            self.settings.xact_abort and (problem.number != 50000 or ends)
        )
        if is_caught(self, problem):
            # docs (XACT_STATE): what would have rolled the transaction back leaves it uncommittable in a TRY block
            self.env.doomed = self.env.doomed or (aborts and self.env.trancount > 0)
            raise Caught(problem)
        yield self._message(problem)
        if not ends and error is self._undone and problem.number in _TERMINATE:
            yield Message(3621, "The statement has been terminated.", 0)
        if aborts and self.env.trancount:
            yield from self.transactions.end("rollback")
        yield RowCount()
        if aborts or ends or problem.number in _ABORT_BATCH or problem.severity >= 20:
            raise BatchAborted

    # Queries and DML

    def _query(self, statement: Statement) -> Iterator[Outcome]:
        if statement.verb == "INSERT" and inserts_procedure(statement.tokens):
            yield from self._insert_procedure(statement)
            return
        tree = parse(statement.text, statement.line)
        if into_of(tree) is not None:
            count = self.atomically(lambda: select_into(self, tree))
            yield self._wrote(count, "SELECT INTO")
            return
        if isinstance(tree, exp.Query):
            yield from self._select(tree)
            return
        if self.settings.fmtonly:
            return
        if self.settings.rowcount:
            raise unsupported("SET ROWCOUNT for INSERT, UPDATE and DELETE")
        run = _WRITES.get(type(tree))
        if run is None:
            raise unsupported(f"the statement {tree.key.upper()}")
        written: dml.Written = self.atomically(lambda: run(self.context(), tree), single=not tree.args.get("returning"))
        if written.output is not None:
            columns, rows = written.output
            yield ResultSet(result_columns(columns), iter(rows.to_batches(65536)))
        yield self._wrote(written.count, tree.key.upper())

    def _wrote(self, rows: int, command: str) -> RowCount:
        self.env.rowcount = rows
        return self._done(rows, command)

    def _insert_procedure(self, statement: Statement) -> Iterator[Outcome]:
        """INSERT ... EXEC: all rows that a call returns go into a table."""
        place = next(i for i, token in enumerate(statement.tokens) if token.upper in ("EXEC", "EXECUTE"))
        head, call = statement.split(place)
        tree = parse(f"{head} SELECT NULL", statement.line)
        if self._inserting:
            raise SqlError.of(8164)
        found: list[tuple[list[SqlType], pa.Table]] = []
        self._inserting = True
        try:
            for outcome in calls.execute(self, call):
                if isinstance(outcome, ResultSet):
                    schema = pa.schema([(f"k{i}", column.type.arrow) for i, column in enumerate(outcome.columns, 1)])
                    batches = [pa.RecordBatch.from_arrays(b.columns, schema=schema) for b in outcome.batches]
                    types = [column.type for column in outcome.columns]
                    found.append((types, pa.Table.from_batches(batches, schema)))
                elif not isinstance(outcome, RowCount | ReturnStatus):
                    yield outcome
        finally:
            self._inserting = False

        def write() -> int:
            return sum(dml.insert_rows(self.context(), tree.this, *each).count for each in found)

        yield self._wrote(self.atomically(write), "INSERT")

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

    def _select(self, tree: exp.Expr) -> Iterator[Outcome]:
        if assigns(tree):
            self.env.rowcount = assign_rows(self, tree)
            yield RowCount()
            return
        late: list[SqlError] = []
        query = self.reading(lambda: compile_query(Context(self.env, compile_query, late=late), Scope(), tree))
        columns = result_columns(query.columns)
        if self.settings.fmtonly:
            yield ResultSet(columns, iter(()))
            yield RowCount(0)
            return
        batches = _failing(late[0]) if late else self.reading(lambda: self._batches(query, columns))
        counted = Counter(batches)
        rows = iter(list(counted)) if self.env.tries else iter(counted)  # an error must show while the TRY block runs
        if counted.error is None:
            yield ResultSet(columns, rows)
        if counted.error is not None:
            self._mend()
            raise counted.error
        self.env.rowcount = counted.rows
        yield self._done(counted.rows, "SELECT")

    def reading(self, action: Callable[[], Any]) -> Any:
        """Run a read; an error in an open transaction must not cost what it has written."""
        try:
            return action()
        except duckdb.Error:
            self._mend()
            raise

    def _mend(self) -> None:
        manager = self.env.manager
        self.env.finish_reading()
        if manager.open is not None and manager.open.in_duckdb:
            manager.undo_to(manager.mark())

    def _batches(self, query: Query, columns: list[Column]) -> Iterator[pa.RecordBatch]:
        most = self.settings.rowcount or None
        if query.direct is not None:
            batches = gathered(limited(query.direct.read(EVERYTHING), most))
        else:
            batches = gathered(self.env.read(f"SELECT * FROM ({query.sql}) LIMIT {most}" if most else query.sql))
        if not query.sorted and self.env.mixing:
            batches = mixed(batches, self.env.mixing)
        try:
            first = next(batches, None)  # most errors show here, before the client is told of columns
        except (pa.ArrowException, OSError) as error:
            raise duckdb.Error(str(error)) from error
        return self._stream(first, batches, columns)

    def _stream(
        self, first: pa.RecordBatch | None, batches: Iterator[pa.RecordBatch], columns: list[Column]
    ) -> Iterator[pa.RecordBatch]:
        batch = first
        while batch is not None:
            yield typed(batch, columns)
            if self.env.cancelled.is_set():
                return
            try:
                batch = next(batches, None)
            except duckdb.Error as error:
                raise translated(error) from error
            except (pa.ArrowException, OSError) as error:
                raise translated(duckdb.Error(str(error))) from error

    def _done(self, rows: int, command: str) -> RowCount:
        return RowCount(None if self.settings.nocount else rows, suppress=self.settings.nocount, command=command)

    # Variables

    def evaluate(self, text: str, line: int = 1) -> Expr:
        """An expression of T-SQL as a typed constant."""
        tree = parse(f"SELECT {text}", line)
        if len(tree.expressions) != 1:
            raise SqlError.of(102, ",", line=line)
        return scalar(self.context(), Scope(), tree.expressions[0])

    def assign(self, name: str, value: Any, expr: Expr) -> None:
        """Give a variable a value, converted to its type."""
        type_, _ = self.env.variable(name)
        if value is not None and expr.type != type_:
            typed = Expr(calls.literal_of(value, expr.type), expr.type, constant=True)
            value = self.env.evaluate(Expr(typed.to(type_), type_, constant=True))
        self.env.variables[name.casefold()] = (type_, value)

    def _declare(self, statement: Statement) -> Iterator[Outcome]:
        declarations.declare(self, statement)
        yield from ()

    def _set(self, statement: Statement) -> Iterator[Outcome]:
        yield from run_set(self, statement)
        yield RowCount()

    def _print(self, statement: Statement) -> Iterator[Outcome]:
        cursor = statement.cursor()
        cursor.next()
        expr = self.evaluate(cursor.text[cursor.token.start : statement.tokens[-1].end], statement.line)
        value = self.env.evaluate(Expr(expr.to(SqlType("nvarchar", -1)), SqlType("nvarchar", -1), constant=True))
        yield Message(0, " " if value is None else value, 0, line=statement.line)

    def _raise(self, statement: Statement) -> Iterator[Outcome]:
        yield from raise_error(self, statement)
        yield RowCount()

    def _return(self, statement: Statement) -> Iterator[Outcome]:
        if len(statement.tokens) > 1:
            raise SqlError.of(178)
        yield from ()
        raise Returned

    def _exec(self, statement: Statement) -> Iterator[Outcome]:
        yield from calls.execute(self, statement)
