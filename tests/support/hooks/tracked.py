"""A database whose tables Change Tracking tracks, as a load without a job sees it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from airflow_provider_mssql_cdc.core.change_tracking import TrackedTable
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, SinkState
from airflow_provider_mssql_cdc.core.codec import to_json
from airflow_provider_mssql_cdc.core.feed import FeedRef
from airflow_provider_mssql_cdc.core.lineage import TrackedSince, Witness
from airflow_provider_mssql_cdc.core.position import Version
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.hooks.mssql_change_tracking import MsSqlChangeTrackingHook
from tests.support.core.states import checkpoint_of
from tests.support.hooks.source import CONN_ID, Source


def track(source: Source, *tables: str) -> None:
    """Make tables, and track them; the database, too."""
    if not source.sql("SELECT DATABASEPROPERTYEX(DB_NAME(), N'IsChangeTrackingEnabled')")[0][0]:
        source.sql("ALTER DATABASE CURRENT SET CHANGE_TRACKING = ON")
    for table in tables:
        source.sql(f"CREATE TABLE {table} (id int NOT NULL PRIMARY KEY, v int NULL)")
        source.sql(f"ALTER TABLE {table} ENABLE CHANGE_TRACKING")


def track_existing(source: Source, table: str) -> None:
    """Track a table that is there; the database, too, for seven days."""
    if not source.sql("SELECT DATABASEPROPERTYEX(DB_NAME(), N'IsChangeTrackingEnabled')")[0][0]:
        source.sql("ALTER DATABASE CURRENT SET CHANGE_TRACKING = ON (CHANGE_RETENTION = 7 DAYS)")
    source.sql(f"ALTER TABLE {table} ENABLE CHANGE_TRACKING")


def version(source: Source) -> Version:
    """The current version, by a plain SELECT."""
    return Version(source.sql("SELECT CHANGE_TRACKING_CURRENT_VERSION()")[0][0])


def tracked(source: Source, table: TableName) -> TrackedTable:
    """The table as the hook finds it."""
    with MsSqlChangeTrackingHook(CONN_ID, connection=source.airflow_connection()) as hook:
        return hook.tracked_table(table)


def loaded(source: Source, table: TableName, position: Version | None = None) -> tuple[Checkpoint, KeptSchema]:
    """What a load up to now leaves, or up to a version."""
    feed, at = tracked(source, table), position or version(source)
    schema = KeptSchema.of(feed.schema)
    since = None if feed.begin_version is None else TrackedSince(feed.begin_version.value)
    sinks = {"mirror": SinkState(at, at, Witness(at, datetime.datetime(2026, 1, 1), tracking=since))}
    return checkpoint_of(source.identity(table), sinks, FeedRef.of(feed), schema.hash), schema


def in_environment(checkpoints: Sequence[Checkpoint]) -> dict[str, str]:
    """Checkpoints as Airflow finds them in the environment."""
    return {f"AIRFLOW_VAR_{each.identity.variable.upper()}": to_json(each) for each in checkpoints}
