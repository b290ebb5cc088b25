"""A connection's session: the language side of ``protocol.Session``."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mssql_cdc.sandbox.collations import comparing
from airflow_provider_mssql_cdc.sandbox.engine.instance import Instance
from airflow_provider_mssql_cdc.sandbox.faults import Faults
from airflow_provider_mssql_cdc.sandbox.protocol import (
    BulkLoad,
    IsolationLevel,
    Login,
    Message,
    Outcome,
    Parameter,
    RowCount,
    SqlError,
)
from airflow_provider_mssql_cdc.sandbox.tsql import bulk, calls, dml, languages, seeding
from airflow_provider_mssql_cdc.sandbox.tsql.batch_errors import BatchAborted
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment
from airflow_provider_mssql_cdc.sandbox.tsql.executor import error_message
from airflow_provider_mssql_cdc.sandbox.tsql.interpreter import Interpreter
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import Cursor, tokenize
from airflow_provider_mssql_cdc.sandbox.tsql.options import Settings
from airflow_provider_mssql_cdc.sandbox.tsql.prepared import Prepared
from airflow_provider_mssql_cdc.sandbox.tsql.translation import translated

log = logging.getLogger(__name__)

_SIGNALLED = "Query interrupted"
"""What DuckDB makes of a signal that came while it worked for the main thread."""


class SqlSession:
    """One logged-in connection.

    :param faults: what may befall its statements
    :raises SqlError: 18456, 4060, 50000 for a language that the sandbox does not have
    """

    def __init__(self, instance: Instance, login: Login, faults: Faults | None = None) -> None:
        principal, database = instance.authenticate(login)
        languages.language_of(login.language or principal.language)
        self._instance = instance
        self._env = Environment(instance, principal, instance.open_session(login, database))
        self._interpreter = Interpreter(self._env, faults)
        self._login = login
        self._speak()
        self.database = database.name

    @property
    def language(self) -> str:
        """The language of its messages."""
        return self._env.dates.language.name

    def _speak(self) -> None:
        """Take the language that the client asked for, or the login's own (docs: LOGIN7, CREATE LOGIN)."""
        name = self._login.language or self._env.principal.language
        self._env.read_dates(languages.Dates.of(languages.language_of(name)))

    def batch(self, text: str) -> Iterator[Outcome]:
        """Run a batch of T-SQL."""
        self._env.info.sent = ("Language Event", text)
        self._env.variables = {}
        yield from self._guarded(lambda: self._interpreter.run(text))

    def rpc(self, procedure: str | int, parameters: list[Parameter]) -> Iterator[Outcome]:
        """Call a procedure."""
        name = procedure if isinstance(procedure, str) else calls.SPECIAL_PROCEDURES.get(procedure, "")
        self._env.info.sent = ("RPC Event", name)
        self._env.variables = {}
        yield from self._guarded(lambda: calls.rpc(self._interpreter, procedure, parameters))

    def begin(self, isolation: IsolationLevel, name: str) -> Iterator[Outcome]:
        """Transaction manager request: begin."""
        if isolation is not IsolationLevel.KEEP:
            self._env.isolation = isolation
        yield from self._guarded(self._interpreter.transactions.begin)

    def commit(self, name: str) -> Iterator[Outcome]:
        """Transaction manager request: commit."""
        yield from self._guarded(self._interpreter.transactions.commit)

    def rollback(self, name: str) -> Iterator[Outcome]:
        """Transaction manager request: roll back."""
        yield from self._guarded(lambda: self._interpreter.transactions.rollback(name))

    def save(self, name: str) -> Iterator[Outcome]:
        """Transaction manager request: set a save point."""

        def run() -> Iterator[Outcome]:
            self._interpreter.transactions.save(name)
            yield from ()

        yield from self._guarded(run)

    def bulk(self, read: Callable[[], BulkLoad]) -> Iterator[Outcome]:
        """Take the rows that INSERT BULK has announced."""
        announced, self._interpreter.bulk = self._interpreter.bulk, None

        def run() -> Iterator[Outcome]:
            if announced is None:
                raise unsupported("a bulk load without INSERT BULK")
            yield from bulk.load(self._interpreter, announced, read)

        yield from self._guarded(run)

    def discard_bulk(self) -> None:
        """The rows that INSERT BULK has announced will not come."""
        self._interpreter.bulk = None

    def load(self, name: str, rows: pa.Table) -> int:
        """Insert Arrow rows in one transaction of their own; columns by name.

        :raises SqlError: 208, 207, 273, 515, 2627, and what ``seeding.stored`` raises
        """
        comparing.DATABASE.set(self._env.current.collation)
        cursor = Cursor(tokenize(name), name)
        database_name, schema, table_name = ("", "", *cursor.dotted())[-3:]

        def action() -> int:
            database, entry = self._env.target((database_name, schema, table_name))
            table = entry.table
            given = {column.casefold(): rows.column(column) for column in rows.column_names}
            unknown = set(given) - {column.name.casefold() for column in table.columns}
            if unknown:
                raise SqlError.of(207, sorted(unknown)[0])
            if any(column.type.name == "rowversion" and column.name.casefold() in given for column in table.columns):
                raise SqlError.of(273)
            place = f"{database.name}.{table.schema}.{table.name}"
            wanted = {c.column_id: given[c.name.casefold()] for c in table.columns if c.name.casefold() in given}
            arrays = seeding.stored(self._env, table, place, wanted)
            for column in table.columns:
                if column.column_id in arrays:
                    if column.identity and rows.num_rows:
                        database.note_identity(entry, pc.max(arrays[column.column_id]).as_py())
                elif column.type.name == "rowversion":
                    arrays[column.column_id] = pa.array(database.new_rowversions(rows.num_rows), pa.binary())
                elif column.identity:
                    arrays[column.column_id] = pa.array(database.identities(entry, rows.num_rows))
                elif column.computed is None:
                    arrays[column.column_id] = pa.nulls(rows.num_rows, column.type.arrow)
            complete = dml.computed(self._interpreter.context(), table, arrays, rows.num_rows)
            return self._env.writer(database, entry).insert(complete)

        try:
            return int(self._interpreter.atomically(action))
        except duckdb.Error as error:
            raise translated(error) from error
        finally:
            self._env.forget()

    def _guarded(self, run: Callable[[], Iterator[Outcome]]) -> Iterator[Outcome]:
        comparing.DATABASE.set(self._env.current.collation)
        self._env.cancelled.clear()
        try:
            if self._interpreter.bulk is not None:
                self._interpreter.bulk = None
                raise SqlError.of(4022)
            with contextlib.suppress(BatchAborted):
                yield from run()
            yield from self._interpreter.transactions.batch_ended()
        except (SqlError, duckdb.Error, RecursionError) as error:
            yield _message(self._instance.version.says(error) if isinstance(error, SqlError) else error)
            yield RowCount()
        except Exception as error:
            if str(error) == _SIGNALLED:
                raise KeyboardInterrupt from error
            # whoever sends what nobody thought of keeps the connection
            log.exception("a statement that the sandbox did not understand")
            yield _message(unsupported(f"a statement that ends in {type(error).__name__}"))
            yield RowCount()
        finally:
            self._env.forget()
            self.database = self._env.current.name

    def cancel(self) -> None:
        """Attention: end the running request soon."""
        self._env.cancelled.set()
        with contextlib.suppress(duckdb.ConnectionException):  # closed meanwhile
            self._env.manager.connection.interrupt()

    def reset(self) -> None:
        """RESETCONNECTION: as after login."""
        self._env.forget()
        self._env.manager.rollback()
        self._env.manager.temporary = {}
        self._env.revert(-1)
        self._env.trancount, self._env.doomed = 0, False
        self._env.isolation = IsolationLevel.READ_COMMITTED
        self._env.manager.lock_timeout = None
        self._env.identity_insert_table = None
        self._env.scope_identity = self._env.last_insert_identity = None
        self._interpreter.settings = Settings()
        self._interpreter.prepared = Prepared()
        self._interpreter.bulk = None
        self._speak()

    def close(self) -> None:
        """The connection is gone."""
        self._env.forget()
        self._env.manager.close()
        self._instance.close_session(self._env.info)


def _message(error: SqlError | duckdb.Error | RecursionError) -> Message:
    if isinstance(error, RecursionError):
        error = unsupported("a statement that is nested so deeply")
    problem = translated(error) if isinstance(error, duckdb.Error) else error
    return error_message(problem)
