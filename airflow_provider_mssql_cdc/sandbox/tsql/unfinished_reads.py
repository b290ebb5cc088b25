"""Tables of schema cdc as readers that do not read by row versions meet them beside a scan or a cleanup."""

from __future__ import annotations

from airflow_provider_mssql_cdc.sandbox.engine.cdc.reading import ChangeReader
from airflow_provider_mssql_cdc.sandbox.engine.cdc.unfinished import Unfinished
from airflow_provider_mssql_cdc.sandbox.engine.harshness import Point
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database
from airflow_provider_mssql_cdc.sandbox.protocol import IsolationLevel, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment
from airflow_provider_mssql_cdc.sandbox.tsql.meanwhile import meanwhile
from airflow_provider_mssql_cdc.sandbox.tsql.reads import Reads, how


def changes_of(
    env: Environment, database: Database, table: str = "", hints: frozenset[str] = frozenset()
) -> ChangeReader:
    """What a statement reads of a database's CDC: all of one moment where it reads by row versions.

    :param table: of schema cdc, in lower case; '' for what no scan or cleanup writes
    :raises SqlError: 3952; 3961 where a snapshot is older than CDC's own tables; 1222, 1205, 650
    """
    env.see_snapshot(database)
    found = env.manager.changes(database)
    if found is not None:
        return found
    reads = how(env.isolation, database, hints)
    if reads is not Reads.VERSIONS:
        meanwhile(env, database)
        env.standing.setdefault(database, set()).add(None)
        return _beside_the_capture(env, database, table, reads)
    env.standing.setdefault(database, set()).add(None)
    if database not in env.frozen_changes:
        env.frozen_changes[database] = database.cdc.frozen()
    return env.frozen_changes[database]


def _beside_the_capture(env: Environment, database: Database, table: str, reads: Reads) -> ChangeReader:
    """What a statement reads of a database's CDC that does not read by row versions.

    :param table: of schema cdc, in lower case
    :raises SqlError: 1222; 1205 for who has locked what the scan or cleanup has still to write
    """
    cdc = database.cdc
    unfinished = cdc.unfinished  # read once: it may end meanwhile
    if reads is Reads.LOCKS:
        if unfinished is not None and table in unfinished.written:
            _wait(env, database, unfinished)
        env.met.add((database, table))
        return cdc
    if unfinished is None or table not in unfinished.written:
        return cdc
    if reads is Reads.PAST_LOCKS and table == "change_tables":
        raise unsupported("READPAST of cdc.change_tables while cleanup changes it")
    return cdc.uncommitted() if unfinished.removes or reads is Reads.NOT_COMMITTED else cdc


def rows_of_functions(env: Environment, database: Database, reader: ChangeReader) -> ChangeReader:
    """Where the generated functions find their rows: they read with NOLOCK, but for snapshot transactions.

    :param reader: what the statement reads of the database's CDC
    """
    if database.cdc.unfinished is None or env.manager.changes(database) is not None:
        return reader
    return database.cdc.uncommitted()


def _wait(env: Environment, database: Database, unfinished: Unfinished) -> None:
    """Wait for a scan or a step of a cleanup: it goes on now, and ends.

    A reader that keeps locked what is still to be written would wait for one that waits for it. One that has read that
    in the same statement may have it locked still.
    """
    if env.manager.lock_timeout == 0:
        raise SqlError.of(1222)
    to_write = {(database, each) for each in unfinished.to_write}
    if _keeps(env, unfinished) & to_write:
        raise SqlError.of(1205, env.info.session_id)
    point = Point.CLEANUP if unfinished.removes else Point.SCAN
    if env.met & to_write and env.instance.harshness.strikes(point):
        raise SqlError.of(1205, env.info.session_id)
    database.cdc.finish()


def _keeps(env: Environment, unfinished: Unfinished) -> set[tuple[Database, str]]:
    """The tables whose rows the transaction keeps from being changed; new ones are kept out by SERIALIZABLE alone."""
    if env.manager.open is None or not (unfinished.removes or env.isolation is IsolationLevel.SERIALIZABLE):
        return set()
    return env.manager.open.read_changes
