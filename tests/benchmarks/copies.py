"""(l) A first load of a whole table, beside one read by Spark over ranges of the same key and one write of it."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

from airflow_provider_mssql_cdc.core.copies import Hole
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from airflow_provider_mssql_cdc.spark.copies.chunks import Chunks
from airflow_provider_mssql_cdc.spark.files import Parquet
from tests.benchmarks import source
from tests.benchmarks.loads import Loads
from tests.benchmarks.timing import alternate, report, spread

CONNECTIONS = 2


class Killed(Exception):
    """Stands for a kill."""


def measure(rows: int, rounds: int) -> None:
    """Speed of the whole first load, and how many rows are read once it was killed at half."""
    with tempfile.TemporaryDirectory() as name, Sandbox(database=source.DATABASE, capture_interval=0.1) as server:
        folder = Path(name)
        source.create(server, rows)
        with source.spark_session(server, folder) as spark:
            number = itertools.count()
            properties = {"driver": source.DRIVER, "user": server.user, "password": server.password}

            def ours() -> None:
                load = Loads(server, (source.TABLE,), f"iceberg://lake/ours{next(number)}", folder)
                (table,) = load.load(spark, load.plan()).tables
                assert table.error is None

            def plain() -> None:
                given = {"column": "id", "lowerBound": 0, "upperBound": rows, "numPartitions": CONNECTIONS}
                read: Any = spark.read.jdbc(
                    source.jdbc_url(server), source.TABLE, properties={**properties, "fetchsize": "10000"}, **given
                )
                place = f"lake.plain{next(number)}"
                spark.sql(f"CREATE NAMESPACE {place}")
                read.writeTo(f"{place}.dbo_wide").using("iceberg").create()

            seconds = alternate({"ours": ours, "plain": plain}, rounds)
            report(
                f"(l) a first load of {rows:,} rows of 12 columns into Iceberg",
                {
                    "ours, rows/s": spread([rows / s for s in seconds["ours"]], digits=0),
                    "spark.read.jdbc and one write, rows/s": spread([rows / s for s in seconds["plain"]], digits=0),
                    "ours beside that (aim 0.75)": spread(
                        [p / o for o, p in zip(seconds["ours"], seconds["plain"], strict=True)]
                    ),
                },
            )

            read: list[int] = []
            whole = Chunks.read

            def until_half(chunks: Chunks, hole: Hole, place: str) -> Parquet:
                if sum(read) >= rows / 2:
                    raise Killed
                found = whole(chunks, hole, place)
                read.append(found.rows().count())
                return found

            # of the one that was killed nobody has kept a checkpoint
            killed, after = (Loads(server, (source.TABLE,), "iceberg://lake/killed", folder) for _ in range(2))
            with mock.patch.object(Chunks, "read", until_half), contextlib.suppress(RuntimeError):
                killed.load(spark, killed.plan())
            (table,) = after.load(spark, after.plan()).tables
            # what was read at the moment of the kill is read again
            copied = table.counts["copied"]
            there = spark.sql("SELECT COUNT(*) AS n FROM lake.killed.dbo_wide").collect()[0]["n"]
            report(
                f"(l) killed when {sum(read):,} of {rows:,} rows were read",
                {
                    "rows read after that, of all (aim 0.55)": f"{(copied - sum(read)) / copied:.2f}",
                    "rows that are there": f"{there:,}",
                },
            )
