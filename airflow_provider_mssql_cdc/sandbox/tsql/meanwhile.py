"""What the seed of a harsh server lets others do before a read: a scan, a step of the cleanup, another's statement."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from airflow_provider_mssql_cdc.sandbox.engine.cdc import jobs
from airflow_provider_mssql_cdc.sandbox.engine.harshness import Point
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database
from airflow_provider_mssql_cdc.sandbox.engine.tracking.cleanup import clean
from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment

_SCANS, _STEPS = 0.5, 0.25  # the shares of the reads


def meanwhile(env: Environment, database: Database) -> None:
    """Let happen what is drawn; a scan or a step may stay unfinished.

    :param database: of which something is read next
    """
    instance = env.instance
    scan = instance.harshness.drawn(Point.SCAN)
    if scan is not None and scan.random() < _SCANS:
        instance.agent.interject(database.cdc, scan)
    step = instance.harshness.drawn(Point.STEP)
    # a cleanup would wait for who keeps locked what it has read
    if step is not None and step.random() < _STEPS:
        if not database.locks.has_readers:
            instance.agent.interject(database.cdc, step, jobs.CLEANUP)
        if database.tracking.options is not None and database.tracking.options.auto_cleanup:
            clean(instance.storage, database)
    is_committing = env.manager.open is not None and env.manager.open.committing
    # a commit that waits until it may be seen would wait for this reader's thread
    if not (env.undisturbed or is_committing or instance.storage.visibility.held):
        instance.supply.may_happen(_beside(env))


@contextlib.contextmanager
def _beside(env: Environment) -> Iterator[None]:
    """Keep others from changing the definition of what the statement has met so far, as on a server until it ends."""
    with contextlib.ExitStack() as kept:
        for database, tables in env.standing.items():
            kept.enter_context(database.locks.standing(env.manager, tables))
        yield
