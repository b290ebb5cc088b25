"""A session's transaction over DuckDB: statement atomicity, save points, and what it logs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import duckdb
import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.engine.cdc.reading import ChangeReader
from airflow_provider_mssql_cdc.sandbox.engine.local_tables import LocalTable
from airflow_provider_mssql_cdc.sandbox.engine.lock_holder import LockHolder
from airflow_provider_mssql_cdc.sandbox.engine.locks import Held
from airflow_provider_mssql_cdc.sandbox.engine.log import Transaction
from airflow_provider_mssql_cdc.sandbox.engine.open_transaction import OpenTransaction, Operation, SavePoint, undo
from airflow_provider_mssql_cdc.sandbox.engine.storage import Catalog, Database, Storage
from airflow_provider_mssql_cdc.sandbox.engine.stored import STAGE
from airflow_provider_mssql_cdc.sandbox.engine.tracking.rows import Commit, write
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError, Unsupported


class TransactionManager(LockHolder):
    """One session's way to write.

    DuckDB gives up a whole transaction at any error and has no save points. So each write is kept as an operation,
    and after an error or a ROLLBACK to a save point DuckDB's transaction is built again from the operations that
    still count. The tables stay locked all the while, so nothing else can come between. DuckDB's transaction sees
    of other tables what was committed when it began, and is built again, too, where it must see what came later.

    ``temporary`` are the session's temporary tables by name in lower case; a rollback takes them back too.

    :ivar context: what the statement that runs leaves with its changes (WITH CHANGE_TRACKING_CONTEXT)
    """

    def __init__(self, storage: Storage) -> None:
        super().__init__()
        self.storage = storage
        self.connection = storage.connect()
        self.temporary: Mapping[str, LocalTable] = {}
        self.context: bytes | None = None

    def catalog(self, database: Database) -> Catalog:
        """A database's catalogue as this session sees it."""
        if self.open is not None and self.open.database is database and self.open.catalog is not None:
            return self.open.catalog
        return database.catalog

    def begin(self, *, single: bool = False) -> None:
        """Start a transaction; DuckDB's begins with the first write, or with the first read under ``snapshot``.

        :param single: it consists of one write, which DuckDB commits by itself
        """
        single = single and not self.storage.visibility.may_be_late
        self.open = OpenTransaction(self.storage.clock(), self.temporary, single=single)

    def snapshot(self) -> None:
        """Read everything in this transaction as of now (SNAPSHOT)."""
        transaction = self.open
        assert transaction is not None
        if transaction.frozen:
            return
        if transaction.database is not None:
            self.enter(transaction.database)
        transaction.frozen = True
        # before DuckDB's: rows may be newer than what is captured of them, as ever
        transaction.past = {d: (d.catalog, d.cdc.frozen()) for d in self.storage.databases.values()}
        if not transaction.in_duckdb:
            transaction.seen = {d.duck: d.version for d in self.storage.databases.values()}
            self._begin_duckdb()
            # DuckDB takes a database's snapshot when a transaction first touches it; this touches all
            self.connection.execute("SELECT count(*) FROM duckdb_tables()").fetchall()

    def changes(self, database: Database) -> ChangeReader | None:
        """What a frozen transaction reads of a database's CDC; None where it reads what is there now.

        :raises SqlError: 3961 where CDC came or went since
        """
        self.check_metadata(database, "cdc")
        found = None if self.open is None else self.open.past.get(database)
        return None if found is None else found[1]

    def check_metadata(self, database: Database, schema: str, name: str = "") -> None:
        """Refuse to read, out of the past, what another transaction has made, changed or dropped since.

        Metadata have no versions (docs: error 3961).

        :param name: of the table; in schema cdc of the capture instance, '' for the tables of all instances
        :raises SqlError: 3961
        """
        past = None if self.open is None else self.open.past.get(database)
        if past is None:
            return
        if schema.casefold() == "cdc":
            same = database.cdc.has_metadata_of(past[1], name)
        else:
            same = past[0].find(schema, name) is database.catalog.find(schema, name)
        if not same:
            raise SqlError.of(3961, database.name)

    def enter_alone(self, database: Database) -> None:
        """Be ready to take something away that others may have read.

        :raises SqlError: 1222 lock time-out
        """
        self.enter(database, alone=True)

    def _release(self, transaction: OpenTransaction) -> None:
        self._end_to_commit(transaction)
        for database in transaction.locked_in:
            database.locks.release(self)

    def enter(
        self, database: Database, table: int | None = None, *, alone: bool = False, changes: int | None = None
    ) -> OpenTransaction:
        """Be ready to write to a database: lock the table or all of it, and open DuckDB's transaction.

        :param table: object id of the only table that is written to
        :param alone: wait for those too who keep locked what they have read
        :param changes: object id of the table whose definition will be another, which all others wait for
        :raises SqlError: 1222 lock time-out; 1205; 3960 where a snapshot is older than the last commit
        """
        transaction = self.open
        assert transaction is not None
        if transaction.database not in (None, database):
            raise Unsupported("writes to two databases in one transaction")
        wanted = None if transaction.frozen else table
        has_it = transaction.database is database and transaction.tables & {None, wanted}
        if has_it and not alone and changes is None:
            return transaction
        database.locks.acquire(self, wanted, self.lock_timeout, self.cancelled, alone=alone, changes=changes)
        if transaction.frozen and transaction.seen.get(database.duck, database.version) != database.version:
            database.locks.release(self)
            raise SqlError.of(3960)
        if transaction.database is None:
            transaction.database, transaction.catalog = database, database.catalog
            transaction.begin_time = self.storage.clock()
        transaction.tables.add(wanted)
        if transaction.in_duckdb:
            self._see(database)
        elif not transaction.single:
            self._begin_duckdb()
        return transaction

    def see(self, database: Database, table: int) -> None:
        """Be ready to read a table as the last commit left it, or as this transaction did.

        :param table: its object id
        """
        transaction = self.open
        if transaction is None or not transaction.in_duckdb or transaction.frozen:
            return
        if transaction.database is not database or not transaction.tables & {None, table}:
            self._see(database)

    def see_commits(self, database: Database) -> None:
        """Be ready to read versions and side tables as the last commit left them."""
        if self.open is not None and self.open.in_duckdb and not self.open.frozen:
            self._see(database)

    def _see(self, database: Database) -> None:
        assert self.open is not None
        if self.open.seen.setdefault(database.duck, database.version) != database.version:
            self._rebuild()

    def register(self, name: str, rows: pa.Table) -> None:
        """Make rows readable in DuckDB."""
        self.connection.register(name, rows)
        if self.open is not None and self.open.in_duckdb:
            self.open.registered[name] = rows

    def unregister(self, name: str) -> None:
        """Take back what was made readable."""
        self.connection.unregister(name)
        if self.open is not None:
            self.open.registered.pop(name, None)

    def _begin_duckdb(self) -> None:
        assert self.open is not None
        if not self.open.frozen and self.open.database is not None:
            self.open.seen = {self.open.database.duck: self.open.database.version}
        self.connection.execute("BEGIN TRANSACTION")
        self.open.in_duckdb = True

    def _rebuild(self) -> None:
        """Begin DuckDB's transaction anew, and do again in it what was done."""
        assert self.open is not None
        self.connection.execute("ROLLBACK")
        self._begin_duckdb()
        for name, rows in self.open.registered.items():
            self.connection.register(name, rows)
        for operation in self.open.operations:
            self._run(operation)

    def apply(self, operation: Operation) -> None:
        """Run one write, note it in the log, and keep it."""
        transaction = self.open
        assert transaction is not None
        assert transaction.database is not None
        if operation.tracked is not None and not transaction.in_duckdb:
            transaction.single = False  # its side rows are written, too
            self._begin_duckdb()
        if not transaction.in_duckdb:
            self._start_to_commit(transaction)  # which DuckDB does with the write
        self._run(operation)
        if operation.record is not None:
            if transaction.begin is None:
                transaction.begin = transaction.database.cdc.begin()
            operation.position = transaction.database.cdc.write(operation.record)
        transaction.operations.append(operation)

    def _start_to_commit(self, transaction: OpenTransaction) -> None:
        if transaction.database is not None and not transaction.committing:
            transaction.database.committing.acquire()
            transaction.committing = True

    def _end_to_commit(self, transaction: OpenTransaction) -> None:
        if transaction.database is not None and transaction.committing:
            transaction.database.committing.release()
            transaction.committing = False

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
            transaction.catalog = mark.catalog or transaction.database.catalog
        undo(transaction.operations[mark.operations :])
        del transaction.operations[mark.operations :]
        self._rebuild()

    def save(self, name: str) -> None:
        """SAVE TRANSACTION."""
        assert self.open is not None
        locked = {database: database.locks.held(self) for database in self.open.locked_in}
        self.open.savepoints.append(dataclasses.replace(self.mark(), name=name, locked=locked))

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
                self._give_back(self.open, point)
                return True
        return False

    def _give_back(self, transaction: OpenTransaction, point: SavePoint) -> None:
        """Give back the locks that were taken since a save point."""
        if transaction.frozen:
            return  # it has the whole database, of which it has seen one moment
        for database in transaction.locked_in:
            left = database.locks.give_back(self, point.locked.get(database, Held()))
            if database is transaction.database:
                transaction.tables = {*left.written, *([None] if left.whole else [])}
                if not transaction.tables:
                    # whoever changes the catalogue need not wait any more
                    transaction.database = transaction.catalog = transaction.begin = None

    def commit(self) -> None:
        """Write the commit to the log, and make everything visible, at once or some time later."""
        transaction = self.open
        assert transaction is not None
        self.open = None
        database = transaction.database
        logged = False
        try:
            self._start_to_commit(transaction)
            if self._is_seen_late(transaction):
                assert database is not None
                assert transaction.begin is not None
                self._log(transaction, database, transaction.begin)
                logged = True
                self._end_to_commit(transaction)
                self.storage.visibility.wait()
                self._start_to_commit(transaction)
            drawn = self._track(transaction)
            if transaction.in_duckdb:
                self.connection.execute("COMMIT")
            if drawn is not None and database is not None:
                database.tracking.drawn(*drawn)
            if database is not None and transaction.catalog is not None:
                database.catalog = transaction.catalog
                if transaction.operations:
                    database.note_write()
                if transaction.begin is not None and not logged:
                    self._log(transaction, database, transaction.begin)
                for operation in transaction.operations:
                    if operation.on_commit is not None:
                        operation.on_commit()
        finally:
            self._release(transaction)

    def _track(self, transaction: OpenTransaction) -> tuple[int, int] | None:
        """Write side rows with the next version, which nobody else can draw until this commit is over."""
        written = [each.tracked for each in transaction.operations if each.tracked is not None]
        if not written or transaction.database is None:
            return None
        before, forgotten = 0, []
        for each in transaction.operations:
            before += each.tracked is not None
            if each.forgets is not None:
                forgotten.append((each.forgets, before))
        database, storage = transaction.database, self.storage
        number = storage.new_transaction_id()
        commit = Commit(number, number * 2, storage.clock())
        return write(self.connection, database.duck, database.tracking, written, forgotten, commit)

    def _is_seen_late(self, transaction: OpenTransaction) -> bool:
        """Whether the capture may read the commit before the rows are seen; DDL waits for nobody to see it."""
        database = transaction.database
        return (
            self.storage.visibility.may_be_late
            and database is not None
            and transaction.in_duckdb
            and transaction.begin is not None
            and transaction.catalog is database.catalog
            and None not in transaction.tables
        )

    def _log(self, transaction: OpenTransaction, database: Database, begin: int) -> None:
        records = [
            (each.record, each.position)
            for each in transaction.operations
            if each.record is not None and each.position is not None
        ]
        number = self.storage.new_transaction_id()
        database.cdc.append(Transaction(number, transaction.begin_time, begin, records))

    def rollback(self) -> None:
        """Undo the whole transaction."""
        transaction, self.open = self.open, None
        if transaction is None:
            return
        self.temporary = transaction.temporary
        try:
            undo(transaction.operations)
            if transaction.in_duckdb:
                self.connection.execute("ROLLBACK")
                for name, rows in transaction.registered.items():
                    self.connection.register(name, rows)
        except duckdb.Error:
            pass  # DuckDB had given the transaction up by itself
        finally:
            self._release(transaction)

    def close(self) -> None:
        """Roll back and close the connection."""
        self.rollback()
        self.connection.close()
