"""A database as it was at one moment, to go back to: what BACKUP and RESTORE DATABASE do."""

from __future__ import annotations

import itertools
import uuid
from dataclasses import dataclass

from airflow_provider_mssql_cdc.sandbox.collations.names import COLLATIONS
from airflow_provider_mssql_cdc.sandbox.engine.cdc.state import CdcBackup
from airflow_provider_mssql_cdc.sandbox.engine.storage import Catalog, Counters, Database, Storage
from airflow_provider_mssql_cdc.sandbox.engine.tracking.state import COMMITS, TrackingState

_PATIENCE = 10.0  # seconds for open transactions to end
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Backup:
    """What ``backup`` took.

    :param name: of the database
    :param duck: of DuckDB's database with the rows
    """

    name: str
    storage: Storage
    duck: str
    catalog: Catalog
    counters: Counters
    snapshot_isolation: bool
    read_committed_snapshot: bool
    collation: str
    cdc: CdcBackup
    tracking: TrackingState


def backup(storage: Storage, database: Database) -> Backup:
    """Keep a database as it is between two commits: its rows, its catalogue, its log, and all of CDC.

    :raises SqlError: 1222 where an open transaction goes on writing to it
    """
    owner, duck = object(), f"backup{next(_numbers)}"
    database.locks.acquire(owner, None, _PATIENCE, lambda: False)
    try:
        connection = storage.connect()
        connection.execute(f"ATTACH ':memory:' AS {duck}")
        _copy(storage, database.catalog, database.duck, duck)
        return Backup(
            database.name,
            storage,
            duck,
            database.catalog,
            database.counters,
            database.snapshot_isolation,
            database.read_committed_snapshot,
            database.collation,
            database.cdc.backup(),
            database.tracking.state,
        )
    finally:
        database.locks.release(owner)


def restore(storage: Storage, database: Database, kept: Backup, *, keep_cdc: bool) -> None:
    """Put what was kept in the place of a database: LSNs and all counters go on from there, on a new recovery fork.

    Under another name CDC is left behind unless ``keep_cdc``, and its jobs are (docs: back up and restore with CDC).

    :raises SqlError: 1222 where an open transaction goes on writing to the database
    """
    if kept.storage is not storage:
        raise ValueError("a backup is restored in the sandbox that took it")
    owner = object()
    database.locks.acquire(owner, None, _PATIENCE, lambda: False)
    try:
        _copy(storage, kept.catalog, kept.duck, database.duck, instead_of=database.catalog)
        database.catalog = kept.catalog
        database.note_write()
        database.counters = kept.counters
        database.snapshot_isolation = kept.snapshot_isolation
        database.read_committed_snapshot = kept.read_committed_snapshot
        database.collation = kept.collation
        database.cdc.case_sensitive = COLLATIONS[kept.collation].case_sensitive
        database.tracking.state = kept.tracking
        database.recovery_fork_guid = str(uuid.uuid4()).upper()
        same = database.name.casefold() == kept.name.casefold()
        database.cdc.restore(kept.cdc, keep=same or keep_cdc)
    finally:
        database.locks.release(owner)


def _copy(storage: Storage, catalog: Catalog, source: str, target: str, *, instead_of: Catalog | None = None) -> None:
    there = [] if instead_of is None else _stored(instead_of)
    statements = [f"DROP TABLE {target}.main.{name}" for name in there]
    statements += [
        f"CREATE TABLE {target}.main.{name} AS SELECT * FROM {source}.main.{name}" for name in _stored(catalog)
    ]
    connection = storage.connect()
    connection.execute("BEGIN TRANSACTION")
    for statement in statements:
        connection.execute(statement)
    connection.execute("COMMIT")
    connection.close()


def _stored(catalog: Catalog) -> list[str]:
    """What a database has in DuckDB, by name."""
    return [
        COMMITS, *(each.storage for each in catalog.tables.values()),
        *(each.storage for each in catalog.tracked.values()),
    ]  # fmt: skip
