"""What an open transaction has done so far: its writes, which can be run again, and its save points."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.engine.cdc.reading import ChangeReader
from airflow_provider_mssql_cdc.sandbox.engine.local_tables import LocalTable
from airflow_provider_mssql_cdc.sandbox.engine.locks import Held
from airflow_provider_mssql_cdc.sandbox.engine.log import RowImages, TableAltered
from airflow_provider_mssql_cdc.sandbox.engine.storage import Catalog, Database
from airflow_provider_mssql_cdc.sandbox.engine.tracking.rows import TrackedRows

_NUMBERS = itertools.count(1)


@dataclass(slots=True)
class Operation:
    """One write as DuckDB ran it, so that it can be run again; and what it means to the log.

    :param rows: registered as ``staged_rows`` while the statement runs
    :param touched: the rows that it writes, where it is not DDL
    :param on_commit: what happens outside DuckDB when the transaction commits
    :param on_undo: takes back what has happened outside DuckDB at once
    :param tracked: what it is to Change Tracking
    :param forgets: object id of the side table that it empties or drops, with what the transaction did before
    :ivar position: of the record in the log; None where the capture would not read it
    """

    sql: str
    rows: pa.Table | None = None
    record: RowImages | TableAltered | None = None
    touched: RowImages | None = None
    on_commit: Callable[[], None] | None = None
    on_undo: Callable[[], None] | None = None
    tracked: TrackedRows | None = None
    forgets: int | None = None
    position: int | None = None


def undo(operations: list[Operation]) -> None:
    """Take back, the last first, what operations have done outside DuckDB."""
    for operation in reversed(operations):
        if operation.on_undo is not None:
            operation.on_undo()


@dataclass(slots=True)
class SavePoint:
    """A named place in a transaction.

    :param locked: what was locked of each database there; of a database that is not named nothing was
    """

    name: str
    operations: int
    catalog: Catalog | None
    temporary: Mapping[str, LocalTable]
    locked: Mapping[Database, Held] = field(default_factory=dict)


@dataclass(slots=True)
class OpenTransaction:
    """What an open transaction has done so far.

    :param begin_time: when it first wrote, for the log
    :param started: when it was begun
    :param number: by which views of the server's state name it
    :param single: a statement that commits by itself, with one write at most
    :param tables: object ids of the tables that it has locked in its database; None among them stands for all
    :param begin: where in the log it begins to write
    :param frozen: it sees every database as it was when it first read
    :param seen: by the names of databases in DuckDB, the version that DuckDB's transaction sees of them
    :param registered: what was made readable in DuckDB's transaction, which loses it when it is rolled back
    :param past: of each database what has no versions in DuckDB, as it was when the transaction was frozen
    :param committing: whether it keeps others from committing
    :param read: databases in which it keeps what it read locked
    :param read_changes: tables of schema cdc of which it keeps locked what it read
    """

    begin_time: datetime.datetime
    temporary: Mapping[str, LocalTable]
    database: Database | None = None
    catalog: Catalog | None = None
    operations: list[Operation] = field(default_factory=list)
    savepoints: list[SavePoint] = field(default_factory=list)
    tables: set[int | None] = field(default_factory=set)
    begin: int | None = None
    in_duckdb: bool = False
    single: bool = False
    frozen: bool = False
    seen: dict[str, int] = field(default_factory=dict)
    registered: dict[str, pa.Table] = field(default_factory=dict)
    past: dict[Database, tuple[Catalog, ChangeReader]] = field(default_factory=dict)
    committing: bool = False
    read: set[Database] = field(default_factory=set)
    read_changes: set[tuple[Database, str]] = field(default_factory=set)
    started: datetime.datetime = field(init=False)
    number: int = field(default_factory=_NUMBERS.__next__)

    def __post_init__(self) -> None:
        self.started = self.begin_time

    @property
    def locked_in(self) -> set[Database]:
        """The databases in which it may have locked something."""
        return {database for database in (self.database, *self.read) if database is not None}
