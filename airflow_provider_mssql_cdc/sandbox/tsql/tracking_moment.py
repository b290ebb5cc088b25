"""The version function beside the rows of one statement: as of the same moment, or newer."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.engine.storage import Database
from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment
from airflow_provider_mssql_cdc.sandbox.tsql.meanwhile import meanwhile
from airflow_provider_mssql_cdc.sandbox.tsql.reads import Reads, how

_FUNCTION = "change_tracking_current_version"


@contextlib.contextmanager
def moment(env: Environment, tree: exp.Expr) -> Iterator[None]:
    """Let a query that is a transaction of its own read its rows as of now, and the version as of later.

    Only where the database answers so, which is not known of SQL Server.
    """
    database = env.current
    if env.manager.open is not None or not _answers_newest(env, database) or not _asks(tree):
        yield
        return
    meanwhile(env, database)
    env.manager.begin()
    env.manager.snapshot()
    try:
        meanwhile(env, database)
        env.newest_version = database.tracking.version
        yield
    finally:
        env.newest_version = None
        env.finish_reading()
        env.manager.rollback()


def _answers_newest(env: Environment, database: Database) -> bool:
    tracking = database.tracking
    if tracking.options is None or tracking.switches.version_of_the_snapshot:
        return False
    return how(env.isolation, database, frozenset()) is Reads.VERSIONS


def _asks(tree: exp.Expr) -> bool:
    return any(call.name.lower() == _FUNCTION for call in tree.find_all(exp.Anonymous)) and any(
        True for _ in tree.find_all(exp.From)
    )
