"""Cleanup of Change Tracking: what is older than the retention goes, after the marks have said so."""

from __future__ import annotations

from collections.abc import Callable, Collection

import duckdb

from airflow_provider_mssql_cdc.sandbox.engine.cdc.mapping import to_datetime
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database, Storage
from airflow_provider_mssql_cdc.sandbox.engine.tracking.state import COMMITS, Cleaned, TrackedTable
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError

_LOCK_TIMEOUT = 1222
_AT_ONCE = 0.0  # seconds to wait for who writes to the table


def clean(
    storage: Storage,
    database: Database,
    tables: Collection[int] | None = None,
    between: Callable[[], None] = lambda: None,
) -> list[Cleaned]:
    """Take away what is older than the retention, table by table.

    A table that somebody writes to keeps its rows until the next time; its mark has moved all the same.

    :param tables: their object ids; None for all, and then the commit table, too
    :param between: called after the marks have moved, and after each table
    :returns: what was done to each
    """
    options = database.tracking.options
    if options is None:
        return []
    connection = storage.connect()
    try:
        oldest = storage.clock() - options.kept
        ((mark,),) = connection.execute(
            f"SELECT max(commit_ts) FROM {database.duck}.main.{COMMITS} WHERE commit_time < ?", [oldest]
        ).fetchall()
        if mark is None:
            return []
        tracked = [each for each in database.catalog.tracked.values() if tables is None or each.object_id in tables]
        database.tracking.mark({each.side: mark for each in tracked}, mark if tables is None else 0)
        between()
        done = []
        for each in tracked:
            done.append(_clean_table(connection, storage, database, each, mark))
            between()
        if tables is None:
            # the newest row stays, which tells the current version
            newest = f"(SELECT max(commit_ts) FROM {database.duck}.main.{COMMITS})"
            connection.execute(
                f"DELETE FROM {database.duck}.main.{COMMITS} WHERE commit_ts <= {mark} AND commit_ts < {newest}"
            )
        return done
    finally:
        connection.close()


def _clean_table(
    connection: duckdb.DuckDBPyConnection, storage: Storage, database: Database, tracked: TrackedTable, mark: int
) -> Cleaned:
    """Take away the rows of one side table, of which a TRUNCATE must not take the same ones meanwhile."""
    begun, owner, comments, count = to_datetime(storage.clock()), object(), "Cleanup Successful", 0
    try:
        database.locks.acquire(owner, tracked.object_id, _AT_ONCE, lambda: False)
        try:
            if tracked.object_id in database.catalog.tracked:
                side = f"{database.duck}.main.{database.catalog.tracked[tracked.object_id].storage}"
                found = connection.execute(f"DELETE FROM {side} WHERE version <= {mark}").fetchall()
                count = int(found[0][0])
                database.note_write()
        finally:
            database.locks.release(owner)
    except SqlError as error:
        if error.number != _LOCK_TIMEOUT:
            raise
        comments = f"Cleanup error: {error.text}"
    entry = database.catalog.tables.get(tracked.object_id)
    name = "" if entry is None else entry.table.name
    done = Cleaned(tracked.name, name, begun, to_datetime(storage.clock()), count, mark, comments)
    database.tracking.note(done)
    return done
