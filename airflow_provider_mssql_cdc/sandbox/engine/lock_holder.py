"""One session's side of locks: what it keeps locked until its transaction ends, and for whom it waits."""

from __future__ import annotations

from collections.abc import Callable, Collection

from airflow_provider_mssql_cdc.sandbox.engine.open_transaction import OpenTransaction
from airflow_provider_mssql_cdc.sandbox.engine.storage import Catalog, Database


class LockHolder:
    """Who holds locks of databases and waits for those of others.

    :ivar open: its transaction
    :ivar lock_timeout: seconds after which waiting ends with error 1222; None to wait for ever
    :ivar cancelled: whether its client has given the statement up
    """

    def __init__(self) -> None:
        self.open: OpenTransaction | None = None
        self.session_id = 0
        self.lock_timeout: float | None = None
        self.cancelled: Callable[[], bool] = lambda: False

    def keep_locked(self, database: Database, table: str) -> None:
        """Let nobody take away what this transaction has read of a database, until it ends.

        :param table: of schema cdc, in lower case
        """
        assert self.open is not None
        self.open.read.add(database)
        self.open.read_changes.add((database, table))
        database.locks.share(self)

    def keep_table(self, database: Database, table: int) -> None:
        """Let nobody write to a table until the transaction ends.

        :param table: its object id
        :raises SqlError: 1222, 1205
        """
        assert self.open is not None
        self.open.read.add(database)
        database.locks.keep_table(self, table, self.lock_timeout, self.cancelled)

    def keep_rows(self, database: Database, table: int, rows: Collection[int]) -> None:
        """Let nobody change rows that this transaction has read, until it ends.

        :param rows: their row identifiers
        """
        assert self.open is not None
        self.open.read.add(database)
        database.locks.keep_rows(self, table, rows)

    def wait_for_readers(self, database: Database, table: int, rows: Collection[int]) -> None:
        """Wait for transactions that keep rows locked which this one is about to change.

        :raises SqlError: 1222, 1205
        """
        database.locks.wait_for_readers(self, table, rows, self.lock_timeout, self.cancelled)

    def wait_for_writer(self, database: Database, table: int, is_in_the_way: Callable[[OpenTransaction], bool]) -> None:
        """Wait for the transaction that writes to a table, until it ends or is not in the way.

        :param table: its object id
        :param is_in_the_way: asked of the open transaction; one that commits is in the way as long as it has its locks
        :raises SqlError: 1222, 1205
        """
        locks = database.locks

        def in_the_way() -> set[object]:
            writer = locks.writer(table)
            if not isinstance(writer, LockHolder) or writer is self:
                return set()
            transaction = writer.open
            return {writer} if transaction is None or is_in_the_way(transaction) else set()

        if locks.writer(table) not in (None, self):
            locks.wait(self, in_the_way, self.lock_timeout, self.cancelled)

    def wait_behind_ddl(self, database: Database, table: int) -> None:
        """Wait for who changes a table's definition or waits to, as every reader does.

        :param table: its object id
        :raises SqlError: 1222, 1205
        """
        database.locks.wait_behind_ddl(self, table, self.lock_timeout, self.cancelled)

    def wait_for_ddl(self, database: Database, changes: Callable[[Catalog], bool]) -> None:
        """Wait for a transaction whose DDL is not committed.

        :param changes: whether what is read is another in that transaction's catalogue
        :raises SqlError: 1222, 1205
        """
        locks = database.locks

        def in_the_way() -> set[object]:
            other = locks.alone
            if not isinstance(other, LockHolder) or other is self:
                return set()
            transaction = other.open  # read once: it may end meanwhile
            catalog = None if transaction is None else transaction.catalog
            return {other} if catalog is not None and catalog is not database.catalog and changes(catalog) else set()

        if in_the_way():
            locks.wait(self, in_the_way, self.lock_timeout, self.cancelled)
