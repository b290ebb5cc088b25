"""BEGIN, COMMIT, ROLLBACK and SAVE TRANSACTION of a session."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_provider_mssql_cdc.sandbox.protocol import Message, Outcome, RowCount, SqlError, TransactionChanged
from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import Cursor
from airflow_provider_mssql_cdc.sandbox.tsql.script import Statement


def uncommittable(number: int) -> SqlError:
    """What cannot be done in a transaction that an error has made uncommittable: 3930, or 3931 for save points."""
    rest = "cannot support operations that write to the log file. Roll back the transaction."
    if number == 3931:
        rest = "cannot be rolled back to a savepoint. Roll back the entire transaction."
    return SqlError(number, f"The current transaction cannot be committed and {rest}")


class Transactions:
    """What counts nested transactions and tells the client of their ends."""

    def __init__(self, environment: Environment) -> None:
        self.env = environment
        self._descriptor = 0
        self._name = ""

    def begin(self) -> Iterator[Outcome]:
        """Start a transaction, or count one more."""
        self.env.trancount += 1
        if self.env.trancount == 1:
            self.env.manager.begin()
            self._descriptor += 1
            yield TransactionChanged("begin", self._descriptor)

    def end(self, kind: str) -> Iterator[Outcome]:
        """Commit or roll back the whole transaction."""
        self.env.finish_reading()
        self.env.trancount, self.env.doomed = 0, False
        if kind == "commit":
            self.env.manager.commit()
        else:
            self.env.manager.rollback()
        yield TransactionChanged(kind, self._descriptor)

    def commit(self) -> Iterator[Outcome]:
        """COMMIT: only the outermost one counts."""
        if not self.env.trancount:
            raise SqlError.of(3902)
        if self.env.doomed:
            raise uncommittable(3930)
        if self.env.trancount > 1:
            self.env.trancount -= 1
            return
        yield from self.end("commit")

    def rollback(self, name: str = "") -> Iterator[Outcome]:
        """ROLLBACK: all, whatever the nesting; or to a save point."""
        if not self.env.trancount:
            raise SqlError.of(3903)
        if self.env.doomed and name and name.casefold() != self._name.casefold():
            raise uncommittable(3931)
        if name and self.env.manager.rollback_to(name):
            return
        if name and name.casefold() != self._name.casefold():
            raise SqlError.of(6401, name)
        yield from self.end("rollback")

    def save(self, name: str) -> None:
        """SAVE TRANSACTION"""
        if not self.env.trancount:
            raise SqlError.of(628)
        if self.env.doomed:
            raise uncommittable(3931)
        self.env.manager.save(name)

    def batch_ended(self) -> Iterator[Outcome]:
        """Roll an uncommittable transaction back when the client's batch is over."""
        if self.env.doomed:
            text = "Uncommittable transaction is detected at the end of the batch. The transaction is rolled back."
            yield Message(3998, text)
            yield from self.end("rollback")
            yield RowCount()

    def _named(self, cursor: Cursor) -> str:
        cursor.next()
        if not (cursor.take("TRAN") or cursor.take("TRANSACTION")):
            cursor.take("WORK")
        if cursor.token.kind == "variable":
            return str(self.env.variable(cursor.next().text[1:])[1])
        return cursor.name() if cursor.token.is_name else ""

    def run_begin(self, statement: Statement) -> Iterator[Outcome]:
        """Run BEGIN TRANSACTION."""
        name = self._named(statement.cursor())
        if not self.env.trancount:
            self._name = name
        yield from self.begin()
        yield RowCount()

    def run_commit(self, statement: Statement) -> Iterator[Outcome]:
        """Run COMMIT."""
        yield from self.commit()
        yield RowCount()

    def run_rollback(self, statement: Statement) -> Iterator[Outcome]:
        """Run ROLLBACK."""
        yield from self.rollback(self._named(statement.cursor()))
        yield RowCount()

    def run_save(self, statement: Statement) -> Iterator[Outcome]:
        """Run SAVE TRANSACTION."""
        self.save(self._named(statement.cursor()))
        yield RowCount()
