"""(l) What changes that are made while a table is copied cost: the copy's commit, and the runs that keep them."""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import numpy as np
from pyspark.sql import SparkSession

from airflow_provider_mssql_cdc.core.copy_requests import CopyRequest, CopyRequests
from airflow_provider_mssql_cdc.core.copy_wanted import COPY, PAUSE
from airflow_provider_mssql_cdc.core.receipt import Receipt, TableReceipt
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from airflow_provider_mssql_cdc.spark.copies.chunks import Chunks
from airflow_provider_mssql_cdc.spark.job import run
from airflow_provider_mssql_cdc.spark.sources.cdc import table as cdc_table
from airflow_provider_mssql_cdc.spark.sources.cdc.low import SETTLED_SECONDS
from tests.benchmarks import source
from tests.benchmarks.copies import Killed
from tests.benchmarks.loads import Loads
from tests.benchmarks.timing import report, spread
from tests.benchmarks.windows import steps

_CHUNKS = 10


class Changing:
    """The source table, of which a tenth of the keys changes at a time."""

    def __init__(self, server: Sandbox, rows: int) -> None:
        self._server, self._random = server, np.random.default_rng(rows)
        source.create(server, rows)
        self._keys, self._next = np.arange(rows, dtype=np.int64), rows

    def change(self) -> int:
        """Make and capture changes, each of another key: of ten eight are updates, one is an insert, one a delete.

        :return: their number
        """
        each = len(self._keys) // 100
        self._random.shuffle(self._keys)
        deleted, updated = self._keys[:each], self._keys[each : 9 * each]
        inserted = np.arange(self._next, self._next + each, dtype=np.int64)
        source.execute_for(self._server, source.UPDATE.format(table=source.TABLE), updated)
        source.execute_for(self._server, f"DELETE FROM {source.TABLE}", deleted)
        source.insert(self._server, source.TABLE, inserted)
        self._server.step()
        self._keys, self._next = np.concatenate([self._keys[each:], inserted]), self._next + each
        return 10 * each

    def differing(self, spark: SparkSession, table: str) -> int:
        """How many rows a mirror lacks, has too many, or has with another number of changes."""
        properties = {"driver": source.DRIVER, "user": self._server.user, "password": self._server.password}
        url = source.jdbc_url(self._server)
        expected = spark.read.jdbc(url, source.TABLE, properties=properties).select("id", "total")
        # loads have sessions of their own
        spark.sql(f"REFRESH TABLE {table}")
        found = spark.table(table).select("id", "total")
        return expected.exceptAll(found).count() + found.exceptAll(expected).count()


def measure(rows: int, rounds: int) -> None:
    """The commit of a copy in which a tenth of the keys changed, and a run that keeps its window beside a copy."""
    with tempfile.TemporaryDirectory() as name, Sandbox(database=source.DATABASE, capture_interval=0.1) as server:
        folder, table = Path(name), Changing(server, rows)
        with source.spark_session(server, folder) as spark:
            finish(server, spark, folder, table, rows, rounds)
            keep(server, spark, folder, table, rows, rounds)


def finish(server: Sandbox, spark: SparkSession, folder: Path, table: Changing, rows: int, rounds: int) -> None:
    """The end of first loads whose chunks are all there: beside changes of a tenth of the keys, and without any."""
    receipts: dict[str, list[Receipt]] = {"quiet": [], "changed": []}
    for number in range(rounds + 1):
        for way in sorted(receipts, reverse=number % 2 == 0):
            # what was committed just before a copy belongs to its window
            time.sleep(SETTLED_SECONDS + 1)
            loads = Loads(server, (source.TABLE,), f"iceberg://lake/{way}{number}", folder)
            with (
                mock.patch.object(cdc_table, "captured_position", side_effect=Killed),
                contextlib.suppress(RuntimeError),
            ):
                loads.load(spark, loads.plan())
            events = table.change() if way == "changed" else 0
            # else more than the end would be measured
            with mock.patch.object(Chunks, "read", side_effect=AssertionError("a chunk was not there")):
                receipts[way].append(loads.load(spark, loads.plan()))
            _check(receipts[way][-1], events)
    _report(
        f"(l) the end of a first load of {rows:,} rows into Iceberg, all of which are read",
        {
            "no key changed meanwhile": receipts["quiet"],
            f"{receipts['changed'][-1].tables[0].counts['events']:,} keys changed": receipts["changed"],
        },
        table.differing(spark, f"lake.changed{rounds}.dbo_wide"),
    )


def keep(server: Sandbox, spark: SparkSession, folder: Path, table: Changing, rows: int, rounds: int) -> None:
    """One window after the other into two mirrors: while a copy for one of them is paused, and without any."""
    ways = {way: Loads(server, (source.TABLE,), f"iceberg://lake/{way}", folder) for way in ("alone", "beside")}
    for loads in ways.values():
        loads.load(spark, loads.plan())
    _pause_copy(ways["beside"], spark, rows)
    receipts: dict[str, list[Receipt]] = {way: [] for way in ways}
    for number in range(rounds + 1):
        events = table.change()
        # whoever comes second finds a server that has just read the same
        for way in sorted(ways, reverse=number % 2 == 0):
            receipts[way].append(ways[way].load(spark, ways[way].plan()))
            copying = _check(receipts[way][-1], events).copying
            if (copying is not None and copying.paused and copying.chunks > 0) != (way == "beside"):
                raise RuntimeError(f"no run {way}: {copying}")
    _report(
        f"(l) a window of {events:,} changes into {rows:,} rows in Iceberg",
        {"without a copy": receipts["alone"], "kept beside a paused copy, too": receipts["beside"]},
        sum(table.differing(spark, f"lake.{way}.dbo_wide") for way in ways),
    )


def _pause_copy(loads: Loads, spark: SparkSession, rows: int) -> None:
    """Ask for a copy of the only table, read a chunk of it, and pause it."""
    plan = loads.plan()
    (name,) = plan.candidates
    requests, request = CopyRequests(loads.store.variables), CopyRequest(plan.identity(name), "bench", COPY)
    requests.save(request)
    plan = loads.plan()
    spec = dataclasses.replace(loads.spec(plan), copy_rows=rows // _CHUNKS, copy_seconds=0.0)
    loads.save(plan, spec, run(spark, spec))
    requests.save(dataclasses.replace(request, wanted=PAUSE))


def _check(receipt: Receipt, events: int) -> TableReceipt:
    """The only table of a run that read so many events."""
    (table,) = receipt.tables
    if table.counts["events"] != events:
        raise RuntimeError(f"not {events} events: {table.counts}")
    return table


def _report(title: str, runs: dict[str, list[Receipt]], differing: int) -> None:
    """Print the seconds of runs of two kinds, the second beside the first; the first of each kind warms up."""
    seconds = {name: [receipt.seconds for receipt in of_kind[1:]] for name, of_kind in runs.items()}
    first, second = seconds.values()
    report(
        title,
        {
            **{f"{name}, seconds": spread(found) for name, found in seconds.items()},
            "the second beside the first, times": spread([b / a for a, b in zip(first, second, strict=True)]),
            **{f"{name}, by step": steps(_medians(of_kind[1:])) for name, of_kind in runs.items()},
            "rows that differ": str(differing),
        },
    )


def _medians(runs: Sequence[Receipt]) -> dict[str, float]:
    """Seconds by step of the only table."""
    found = [receipt.tables[0].seconds for receipt in runs]
    return {step: statistics.median(each[step] for each in found) for step in found[0]}
