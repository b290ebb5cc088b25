"""A session's transaction over DuckDB: write lock, statement atomicity, save points, and what COMMIT logs."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.engine.log import RowImages, TableAltered, Transaction
from airflow_provider_mssql_cdc.sandbox.engine.storage import Catalog, Database, Storage
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError, Unsupported

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox.engine.local_tables import LocalTable

STAGE = "staged_rows"


@dataclass(slots=True)
class Operation:
    """One write as DuckDB ran it, so that it can be run again; and what it means to the log.

    :param rows: registered as ``staged_rows`` while the statement runs
    :param on_commit: what happens outside DuckDB when the transaction commits
    :param on_undo: takes back what has happened outside DuckDB at once
    """

    sql: str
    rows: pa.Table | None = None
    record: RowImages | TableAltered | None = None
    on_commit: Callable[[], None] | None = None
    on_undo: Callable[[], None] | None = None


def _undo(operations: list[Operation]) -> None:
    for operation in reversed(operations):
        if operation.on_undo is not None:
            operation.on_undo()


@dataclass(slots=True)
class SavePoint:
    """A named place in a transaction."""

    name: str
    operations: int
    catalog: Catalog | None
    temporary: Mapping[str, LocalTable]


@dataclass(slots=True)
class OpenTransaction:
    """What an open transaction has done so far.

    :param single: a statement that commits by itself, with one write at most
    :param read: databases of whose change tables it keeps locks
    """

    begin_time: datetime.datetime
    temporary: Mapping[str, LocalTable]
    database: Database | None = None
    catalog: Catalog | None = None
    operations: list[Operation] = field(default_factory=list)
    savepoints: list[SavePoint] = field(default_factory=list)
    in_duckdb: bool = False
    single: bool = False
    snapshot_version: dict[str, int] = field(default_factory=dict)
    read: set[Database] = field(default_factory=set)


class TransactionManager:
    """One session's way to write.

    DuckDB gives up a whole transaction at any error and has no save points. So each write is kept as an operation,
    and after an error or a ROLLBACK to a save point DuckDB's transaction is built again from the operations that
    still count. The write lock is held all the while, so nothing else can come between.

    ``temporary`` are the session's temporary tables by name in lower case; a rollback takes them back too.
    """

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.connection = storage.connect()
        self.open: OpenTransaction | None = None
        self.temporary: Mapping[str, LocalTable] = {}
        self.session_id = 0
        self.lock_timeout: float | None = None
        self.cancelled: Callable[[], bool] = lambda: False

    def catalog(self, database: Database) -> Catalog:
        """A database's catalogue as this session sees it."""
        if self.open is not None and self.open.database is database and self.open.catalog is not None:
            return self.open.catalog
        return database.catalog

    def begin(self, *, single: bool = False) -> None:
        """Start a transaction; DuckDB's begins with the first write, or with the first read under ``snapshot``.

        :param single: it consists of one write, which DuckDB commits by itself
        """
        self.open = OpenTransaction(self.storage.clock(), self.temporary, single=single)

    def snapshot(self) -> None:
        """Read everything in this transaction as of now (SNAPSHOT, REPEATABLE READ, SERIALIZABLE)."""
        assert self.open is not None
        if not self.open.in_duckdb:
            self.open.snapshot_version = {d.duck: d.version for d in self.storage.databases.values()}
            self._begin_duckdb()
            # DuckDB takes a database's snapshot when a transaction first touches it; this touches all
            self.connection.execute("SELECT count(*) FROM duckdb_tables()").fetchall()

    def keep_locked(self, database: Database) -> None:
        """Let nobody take away what this transaction has read of a database, until it ends."""
        assert self.open is not None
        self.open.read.add(database)
        database.write_lock.share(self)

    def enter_alone(self, database: Database) -> None:
        """Be ready to take something away that others may have read.

        :raises SqlError: 1222 lock time-out
        """
        self.enter(database)
        database.write_lock.acquire(self, self.lock_timeout, self.cancelled, alone=True)

    def _release(self, transaction: OpenTransaction) -> None:
        for database in {transaction.database, *transaction.read}:
            if database is not None:
                database.write_lock.release(self)

    def enter(self, database: Database) -> OpenTransaction:
        """Be ready to write to a database: take its lock, and open DuckDB's transaction.

        :raises SqlError: 1222 lock time-out; 3960 where a snapshot is older than the last commit
        """
        transaction = self.open
        assert transaction is not None
        if transaction.database is database:
            return transaction
        if transaction.database is not None:
            raise Unsupported("writes to two databases in one transaction")
        database.write_lock.acquire(self, self.lock_timeout, self.cancelled)
        seen = transaction.snapshot_version.get(database.duck)
        if seen is not None and seen != database.version:
            database.write_lock.release(self)
            raise SqlError.of(3960)
        transaction.database, transaction.catalog = database, database.catalog
        transaction.begin_time = self.storage.clock()
        if not transaction.in_duckdb and not transaction.single:
            self._begin_duckdb()
        return transaction

    def _begin_duckdb(self) -> None:
        assert self.open is not None
        self.connection.execute("BEGIN TRANSACTION")
        self.open.in_duckdb = True

    def apply(self, operation: Operation) -> None:
        """Run one write and keep it."""
        assert self.open is not None
        self._run(operation)
        self.open.operations.append(operation)

    def _run(self, operation: Operation) -> None:
        if operation.rows is None:
            for statement in filter(None, operation.sql.split(";\n")):
                self.connection.execute(statement)
            return
        self.connection.register(STAGE, operation.rows)
        try:
            self.connection.execute(operation.sql)
        finally:
            self.connection.unregister(STAGE)

    def mark(self) -> SavePoint:
        """The place where a statement begins."""
        assert self.open is not None
        return SavePoint("", len(self.open.operations), self.open.catalog, self.temporary)

    def undo_to(self, mark: SavePoint) -> None:
        """Take back what was done since a mark, and mend DuckDB's transaction after an error."""
        transaction = self.open
        assert transaction is not None
        self.temporary = mark.temporary
        if not transaction.in_duckdb:
            return
        if transaction.database is not None:
            transaction.catalog = mark.catalog or transaction.database.catalog  # nobody else commits meanwhile
        _undo(transaction.operations[mark.operations :])
        del transaction.operations[mark.operations :]
        self.connection.execute("ROLLBACK")
        self.connection.execute("BEGIN TRANSACTION")
        for operation in transaction.operations:
            self._run(operation)

    def save(self, name: str) -> None:
        """SAVE TRANSACTION."""
        assert self.open is not None
        self.open.savepoints.append(dataclasses.replace(self.mark(), name=name))

    def rollback_to(self, name: str) -> bool:
        """ROLLBACK to the newest save point of a name; False where there is none."""
        assert self.open is not None
        points = self.open.savepoints
        for index in range(len(points) - 1, -1, -1):
            if points[index].name.casefold() == name.casefold():
                point = points[index]
                del points[index + 1 :]
                self.temporary = point.temporary
                if len(self.open.operations) > point.operations:
                    self.undo_to(point)
                return True
        return False

    def commit(self) -> None:
        """Make everything visible; the log gets the transaction while the lock is held, so in commit order."""
        transaction = self.open
        assert transaction is not None
        self.open = None
        database = transaction.database
        try:
            if transaction.in_duckdb:
                self.connection.execute("COMMIT")
            if database is not None and transaction.catalog is not None:
                database.catalog = transaction.catalog
                database.version += bool(transaction.operations)
                records = [operation.record for operation in transaction.operations if operation.record is not None]
                if records:
                    number = self.storage.new_transaction_id()
                    database.cdc.append(Transaction(number, transaction.begin_time, records))
                for operation in transaction.operations:
                    if operation.on_commit is not None:
                        operation.on_commit()
        finally:
            self._release(transaction)

    def rollback(self) -> None:
        """Undo the whole transaction."""
        transaction, self.open = self.open, None
        if transaction is None:
            return
        self.temporary = transaction.temporary
        try:
            _undo(transaction.operations)
            if transaction.in_duckdb:
                self.connection.execute("ROLLBACK")
        except duckdb.Error:
            pass  # DuckDB had given the transaction up by itself
        finally:
            self._release(transaction)

    def close(self) -> None:
        """Roll back and close the connection."""
        self.rollback()
        self.connection.close()
