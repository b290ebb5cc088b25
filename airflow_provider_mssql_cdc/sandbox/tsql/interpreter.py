"""Runs a batch: each of its statements by what it is, queries and DML here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.collations import comparing
from airflow_provider_mssql_cdc.sandbox.faults import Faults
from airflow_provider_mssql_cdc.sandbox.protocol import (
    Column,
    Message,
    Outcome,
    ResultSet,
    ReturnStatus,
    RowCount,
    SqlError,
)
from airflow_provider_mssql_cdc.sandbox.tsql import bulk, calls, changetable, declarations, dml
from airflow_provider_mssql_cdc.sandbox.tsql.batch_errors import BatchAborted, Caught, is_caught
from airflow_provider_mssql_cdc.sandbox.tsql.control import run_node, wait_for
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment
from airflow_provider_mssql_cdc.sandbox.tsql.executor import Executor, error_message
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr
from airflow_provider_mssql_cdc.sandbox.tsql.expressions import scalar
from airflow_provider_mssql_cdc.sandbox.tsql.meanwhile import meanwhile
from airflow_provider_mssql_cdc.sandbox.tsql.parsing import parse
from airflow_provider_mssql_cdc.sandbox.tsql.query import compile_result
from airflow_provider_mssql_cdc.sandbox.tsql.raising import raise_error, throw
from airflow_provider_mssql_cdc.sandbox.tsql.relation import EVERYTHING
from airflow_provider_mssql_cdc.sandbox.tsql.results import Counter, gathered, limited, mixed, result_columns, typed
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Context, Query, Scope
from airflow_provider_mssql_cdc.sandbox.tsql.script import Statement, inserts_procedure, read_batch
from airflow_provider_mssql_cdc.sandbox.tsql.select_assign import assign_rows, assigns
from airflow_provider_mssql_cdc.sandbox.tsql.select_into import into_of, select_into
from airflow_provider_mssql_cdc.sandbox.tsql.settings import run_set
from airflow_provider_mssql_cdc.sandbox.tsql.tracking_moment import moment
from airflow_provider_mssql_cdc.sandbox.tsql.translation import translated
from airflow_provider_mssql_cdc.sandbox.types import SqlType

_STARTS_IMPLICIT = frozenset(
    [
        "SELECT",
        "INSERT",
        "INSERT BULK",
        "UPDATE",
        "DELETE",
        "WITH",
        "CREATE",
        "ALTER",
        "DROP",
        "TRUNCATE",
        "GRANT",
        "REVOKE",
    ]
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


class Interpreter(Executor):
    """Executes batches for one session.

    :param faults: what may befall its statements
    """

    def __init__(self, environment: Environment, faults: Faults | None = None) -> None:
        super().__init__(environment)
        self._faults = faults
        self._inserting = False
        self._handlers: dict[str, Callable[[Statement], Iterator[Outcome]]] = {
            "SELECT": self._query,
            "WITH": self._query,
            "INSERT": self._query,
            "INSERT BULK": lambda statement: bulk.announce(self, statement),
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
            changetable.check_batch(self.env, text)
        except SqlError as error:
            if is_caught(self.env, error):
                raise Caught(error) from error
            yield error_message(error)
            raise BatchAborted from error
        try:
            yield from run_node(self, block)
        except Returned:
            return

    def statement(self, statement: Statement) -> Iterator[Outcome]:
        """Run one statement; its errors are messages, or go to a CATCH block."""
        if self.env.cancelled.is_set():
            raise BatchAborted
        comparing.DATABASE.set(self.env.current.collation)
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

    # Queries and DML

    def _query(self, statement: Statement) -> Iterator[Outcome]:
        if statement.verb == "INSERT" and inserts_procedure(statement.tokens):
            yield from self._insert_procedure(statement)
            return
        tree = parse(statement.text, statement.line)
        if into_of(tree) is not None:
            count = self.atomically(lambda: select_into(self, tree))
            yield self.wrote(count, "SELECT INTO")
            return
        if isinstance(tree, exp.Query):
            with changetable.context_of(self.context(), tree, scalar), moment(self.env, tree):
                yield from self._select(tree)
            return
        if self.settings.fmtonly:
            return
        if self.settings.rowcount:
            raise unsupported("SET ROWCOUNT for INSERT, UPDATE and DELETE")
        run = _WRITES.get(type(tree))
        if run is None:
            raise unsupported(f"the statement {tree.key.upper()}")
        with changetable.context_of(self.context(), tree, scalar):
            single = not tree.args.get("returning")
            written: dml.Written = self.atomically(lambda: run(self.context(), tree), single=single)
        if written.output is not None:
            columns, rows = written.output
            yield ResultSet(result_columns(columns), iter(rows.to_batches(65536)))
        yield self.wrote(written.count, tree.key.upper())

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

        yield self.wrote(self.atomically(write), "INSERT")

    def _select(self, tree: exp.Expr) -> Iterator[Outcome]:
        meanwhile(self.env, self.env.current)
        if assigns(tree):
            self.env.rowcount = assign_rows(self, tree)
            yield RowCount()
            return
        late: list[SqlError] = []
        query = self.reading(lambda: compile_result(self.context(late), Scope(), tree))
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
            self.mend()
            raise counted.error
        self.env.rowcount = counted.rows
        yield self.done(counted.rows, "SELECT")

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
