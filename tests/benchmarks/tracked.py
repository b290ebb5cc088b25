"""Change Tracking: the read of many changed keys beside a plain query, and a poll over many tables."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from airflow_provider_mssql_cdc.core.columns import map_columns
from airflow_provider_mssql_cdc.core.position import Version, Window
from airflow_provider_mssql_cdc.core.spec import SinkSpec, SourceSpec, TableSpec
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.hooks.jdbc import jdbc_url
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.hooks.mssql_change_tracking import MsSqlChangeTrackingHook
from airflow_provider_mssql_cdc.hooks.tracking_source import TrackingSource
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.session import credentials
from airflow_provider_mssql_cdc.spark.sources.ct.table import TrackedRows
from tests.benchmarks import source
from tests.benchmarks.loads import Loads
from tests.benchmarks.timing import alternate, ratios, report, spread

_ON = (
    "ALTER DATABASE CURRENT SET CHANGE_TRACKING = ON",
    "ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON",
)


def read(rows: int, rounds: int) -> None:
    """(m) So many changed keys, each with its row, staged by our reader and by one plain query."""
    with tempfile.TemporaryDirectory() as name, Sandbox(database=source.DATABASE) as server:
        folder = Path(name)
        for statement in (*_ON, source.ddl(source.TABLE)):
            server.execute(statement)
        # without a row that did not change the reader would look whether the table was truncated
        source.insert(server, source.TABLE, np.array([rows], dtype=np.int64))
        server.execute(f"ALTER TABLE {source.TABLE} ENABLE CHANGE_TRACKING")
        source.insert_first(server, source.TABLE, rows)
        connection = Loads(server, (source.TABLE,), "iceberg://lake/ours", folder).connection
        with MsSqlChangeTrackingHook(connection=connection) as hook:
            feed = hook.tracked_table(TableName(*source.TABLE.split(".")))
        url, options = jdbc_url(connection)
        spec = TableSpec(feed.source, feed, feed.schema, (SinkSpec("mirror", ("lake", "ours", "wide"), None, None),))
        mappings, window = map_columns(spec.name, spec.schema), Window(Version(0), Version(Version.LARGEST))
        with source.spark_session(server, folder) as spark:
            reader = Jdbc(
                spark, SourceSpec("bench", source.DATABASE, url, options), credentials(spark), fetch_size=10_000
            )
            place = f"{folder}/staged"

            def ours(connections: int) -> None:
                rows_of = TrackedRows(reader, spec, mappings, connections=connections)
                staged = rows_of.read([window], place, before_images=False)
                if staged.count(window).events != rows:
                    raise RuntimeError(f"{staged.count(window)}, of {rows:,} keys")
                shutil.rmtree(place)

            def plain() -> None:
                names = ", ".join(f"t.{column.name}" for column in spec.schema.columns if column.name != "id")
                query = (
                    f"(SELECT c.SYS_CHANGE_VERSION AS v, c.SYS_CHANGE_OPERATION AS op, c.id, {names}"
                    f" FROM CHANGETABLE(CHANGES {source.TABLE}, 0) AS c LEFT JOIN {source.TABLE} AS t ON t.id = c.id) q"
                )
                properties = {
                    "driver": source.DRIVER,
                    "user": server.user,
                    "password": server.password,
                    "fetchsize": "10000",
                }
                spark.read.jdbc(source.jdbc_url(server), query, properties=properties).write.parquet(place)
                shutil.rmtree(place)

            seconds = alternate({"one": lambda: ours(1), "two": lambda: ours(2), "plain": plain}, rounds)
            report(
                f"(m) {rows:,} changed keys with rows of 12 columns, read and staged",
                {
                    "ours, one connection, rows/s": spread([rows / s for s in seconds["one"]], digits=0),
                    "ours, two connections, rows/s": spread([rows / s for s in seconds["two"]], digits=0),
                    "plain spark.read.jdbc, rows/s": spread([rows / s for s in seconds["plain"]], digits=0),
                    "one beside plain (aim 1.0)": spread(ratios(seconds["one"], seconds["plain"])),
                    "two beside plain (aim above 1)": spread(ratios(seconds["two"], seconds["plain"])),
                },
            )


def poll(tables: int, rounds: int) -> None:
    """(n) A look at so many tables, of which few have changed: by how many statements."""

    class Counting(MsSqlCdcHook):
        sent = 0

        def _run(self, sql: str, parameters: Any) -> Any:
            self.sent += 1
            return super()._run(sql, parameters)

    with tempfile.TemporaryDirectory() as name, Sandbox(database=source.DATABASE) as server:
        server.execute(_ON[0])
        for n in range(tables):
            server.execute(f"CREATE TABLE dbo.t{n} (id int NOT NULL PRIMARY KEY, a nvarchar(20) NULL)")
            server.execute(f"ALTER TABLE dbo.t{n} ENABLE CHANGE_TRACKING")
        loads = Loads(server, ("dbo.t*",), "iceberg://lake/empty", Path(name))
        sent, quiet, busy = set(), [], []
        with Counting(connection=loads.connection) as hook:
            survey = hook.survey(loads.request.patterns, (), captured=False)
            for n in range(rounds + 1):
                look = TrackingSource(hook)
                found = look.discover(survey)
                after = {feed.name: Version(n) for (feed,) in found.values()}  # type: ignore[misc]
                for seconds in (quiet, busy):
                    before, started = hook.sent, time.perf_counter()
                    changed = look.probe(after).newest
                    seconds.append(time.perf_counter() - started)
                    sent.add(hook.sent - before)
                    if len(changed) != (seconds is busy):
                        raise RuntimeError(f"{len(changed)} tables have changed")
                    if seconds is quiet:
                        server.execute(f"INSERT INTO dbo.t{n % tables} VALUES ({n}, N'a')")
        report(
            f"(n) a look at {tables} tables",
            {
                "nothing has changed, seconds": spread(quiet[1:]),
                "one table has, seconds": spread(busy[1:]),
                "statements (aim at most 3)": ", ".join(map(str, sorted(sent))),
            },
        )
