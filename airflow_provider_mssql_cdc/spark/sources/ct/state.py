"""What SQL Server says of a tracked table: its versions, whether it is still the planned one, and its columns."""

from __future__ import annotations

import datetime
from collections.abc import Collection
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core import tracked_catalog
from airflow_provider_mssql_cdc.core.change_tracking import READ_WRITE, TrackedTable
from airflow_provider_mssql_cdc.core.exceptions import (
    InstanceChangedError,
    SchemaChangedError,
    SqlServerError,
)
from airflow_provider_mssql_cdc.core.lineage import CommitRow, TrackedSince, Witness
from airflow_provider_mssql_cdc.core.position import Version, Window
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.schema_diff import differing
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.core.table import SAME_TIME, TableSchema
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.sources.catalog import read_parts

_ON = 1
"""``snapshot_isolation_state`` of a database that allows it (docs: sys.databases)."""

_VERSIONS = 500
"""Of so many versions a statement asks by their numbers."""

ON_A_SECONDARY = 22117
"""What SQL Server itself answers on a secondary replica that knows no versions."""


@dataclass(frozen=True, slots=True)
class TrackedState:
    """The versions of a tracked table.

    :param current: of the database
    :param min_valid: the lowest version from which all changes of the table are there
    :param by_snapshots: whether a statement may read one moment (ALLOW_SNAPSHOT_ISOLATION)
    :param since: what tells this tracking of the table from another one
    :param time: by the server's clock
    """

    current: Version
    min_valid: Version
    by_snapshots: bool
    since: TrackedSince
    time: datetime.datetime

    def witness(self, at: Version, reads: str) -> Witness:
        """What was seen of a version.

        :param reads: ``EXACT`` or ``CONVERGING``
        """
        return Witness(at, self.time, tracking=replace(self.since, reads=reads))


def read_state(jdbc: Jdbc, feed: TrackedTable) -> TrackedState:
    """Read the versions, and prove that the table is still the planned one: one statement.

    :raises InstanceChangedError: if the table was dropped or made anew, is not tracked any more, or was truncated
    :raises SqlServerError: with number 22117 on a readable secondary, whose versions are not to be trusted
    """
    rows = jdbc.rows(
        "SELECT CHANGE_TRACKING_CURRENT_VERSION() AS current_version,"
        " CHANGE_TRACKING_MIN_VALID_VERSION(t.object_id) AS min_valid, ct.begin_version,"
        " CONVERT(varchar(23), t.create_date, 121) AS create_date, CONVERT(varchar(23), GETDATE(), 121) AS now,"
        # 209: the side table of a tracked table (docs: sys.internal_tables)
        " (SELECT MAX(i.object_id) FROM sys.internal_tables i"
        " WHERE i.parent_id = t.object_id AND i.internal_type = 209) AS side,"
        " CAST(d.snapshot_isolation_state AS int) AS snapshots,"
        " CAST(DATABASEPROPERTYEX(DB_NAME(), N'Updateability') AS nvarchar(128)) AS updateability"
        " FROM sys.tables t CROSS JOIN sys.databases d"
        " LEFT JOIN sys.change_tracking_tables ct ON ct.object_id = t.object_id"
        f" WHERE t.object_id = {feed.object_id} AND d.name = DB_NAME()",
        "current_version BIGINT, min_valid BIGINT, begin_version BIGINT, create_date STRING, now STRING,"
        " side INT, snapshots INT, updateability STRING",
    )
    name = str(feed.source)
    if rows and rows[0]["updateability"] != READ_WRITE:
        raise SqlServerError(
            "the connection leads to a readable secondary, where versions of Change Tracking are not to be trusted.",
            number=ON_A_SECONDARY,
            advice="Connect to the primary: without ApplicationIntent=ReadOnly, and without read_only.",
        )
    if not rows:
        raise InstanceChangedError(
            "the table was dropped since the run was planned, or the login does not see it any more.",
            table=name,
            advice="Run the task again.",
        )
    created = datetime.datetime.fromisoformat(rows[0]["create_date"])
    if abs(created - feed.create_date) >= SAME_TIME:
        raise InstanceChangedError(
            f"the table was made anew at {created}; that of the plan was made at {feed.create_date}.",
            table=name,
            advice="Run the task again.",
        )
    (row,) = rows
    if row["min_valid"] is None or row["current_version"] is None:
        raise InstanceChangedError(
            "Change Tracking was switched off for it since the run was planned, or the login may no longer ask about "
            "its changes.",
            table=name,
            advice="Run the task again: it says which.",
        )
    begin = row["begin_version"]
    if begin is not None and feed.begin_version is not None and begin != feed.begin_version.value:
        raise InstanceChangedError(
            "it was truncated, or Change Tracking switched off and on, since the run was planned.",
            table=name,
            advice="Run the task again.",
        )
    return TrackedState(
        Version(row["current_version"]),
        Version(row["min_valid"]),
        row["snapshots"] == _ON,
        TrackedSince(begin, row["side"]),
        datetime.datetime.fromisoformat(row["now"]),
    )


def check_columns(jdbc: Jdbc, table: TableSpec) -> None:
    """Prove that the columns are still those that were planned: what was read meanwhile is of one shape then.

    :raises SchemaChangedError: with what differs
    """
    parts = read_parts(jdbc, tracked_catalog.columns(f"= {table.feed.object_id}"))
    columns, _ = tracked_catalog.schema_of(parts)
    planned, now = TableSchema(table.feed.columns, ()), TableSchema(columns, ())
    if planned.hash != now.hash:
        raise SchemaChangedError(
            f"its columns were changed while it was read.\n{differing(KeptSchema.of(planned), now)}",
            table=str(table.name),
            advice="Nothing was loaded. Run the task again.",
        )


def read_times(jdbc: Jdbc, window: Window, changes: DataFrame) -> DataFrame:
    """The times of the commits of a window, by version, for a login that sees ``sys.dm_tran_commit_table``.

    :param changes: of which the times are asked for; where they name many versions, those of all others are read, too
    """
    rows = changes.select("_version").distinct().limit(_VERSIONS + 1).collect()
    few = ", ".join(str(row["_version"]) for row in rows) or "NULL" if len(rows) <= _VERSIONS else ""
    query = (
        "SELECT commit_ts AS _version, CONVERT(varchar(23), commit_time, 121) AS _commit_ts"
        " FROM sys.dm_tran_commit_table"
        f" WHERE commit_ts > {window.after.sort_key} AND commit_ts <= {window.upto.sort_key}"
        f"{f' AND commit_ts IN ({few})' if few else ''}"
    )
    times = jdbc.frame(query, "_version BIGINT, _commit_ts STRING")
    return times.withColumn("_commit_ts", F.col("_commit_ts").cast("timestamp_ntz"))


def read_commits(
    jdbc: Jdbc, versions: Collection[int] = (), upto: Version | None = None
) -> tuple[dict[int, CommitRow], int | None]:
    """Rows of ``sys.dm_tran_commit_table``, by version, and the lowest version that it has; None where the login does
    not see it (docs: VIEW DATABASE STATE).

    :param versions: that are asked for
    :param upto: the newest one at or below it is asked for, too
    """
    wanted = [f"commit_ts = {version}" for version in sorted(versions)]
    if upto is not None:
        newest = f"SELECT MAX(commit_ts) FROM sys.dm_tran_commit_table WHERE commit_ts <= {upto.value}"
        wanted.append(f"commit_ts = ({newest})")
    rows = jdbc.rows_if_allowed(
        "SELECT l.low, c.commit_ts, c.xdes_id, c.commit_lbn"
        " FROM (SELECT MIN(commit_ts) AS low FROM sys.dm_tran_commit_table) AS l"
        f" LEFT JOIN sys.dm_tran_commit_table AS c ON {' OR '.join(wanted)}",
        "low BIGINT, commit_ts BIGINT, xdes_id BIGINT, commit_lbn BIGINT",
    )
    found = [CommitRow(row["commit_ts"], row["xdes_id"], row["commit_lbn"]) for row in rows if row["commit_ts"]]
    return {row.version: row for row in found}, rows[0]["low"] if rows else None
