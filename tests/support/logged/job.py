"""The Spark application, which also knows the second source; it ends itself where it is told to."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import ColumnMapping
from airflow_provider_mssql_cdc.core.copies import Hole
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.position import Position, Version, Window
from airflow_provider_mssql_cdc.core.receipt import SinkReceipt
from airflow_provider_mssql_cdc.core.spec import JobSpec, TableSpec
from airflow_provider_mssql_cdc.core.steps import SinkSteps
from airflow_provider_mssql_cdc.spark import job
from airflow_provider_mssql_cdc.spark.copies.chunks import Chunks
from airflow_provider_mssql_cdc.spark.copies.copy import Copy, CopyOrder
from airflow_provider_mssql_cdc.spark.files import Parquet, write_rows
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.load import TableLoad
from airflow_provider_mssql_cdc.spark.sink import Sink
from airflow_provider_mssql_cdc.spark.sources.base import SourceState
from airflow_provider_mssql_cdc.spark.sources.registry import SOURCES
from airflow_provider_mssql_cdc.spark.staging import Counts
from airflow_provider_mssql_cdc.spark.targets import State
from tests.support.logged.feed import LoggedTable, Versions, register

KILL = "MSSQL_CDC_TEST_KILL"
"""A file that is made before the process is killed. Its name says whether that is ``before`` or ``after`` the commit of
the mirror that is loaded from the second source."""


@dataclass(frozen=True)
class StagedByWindow:
    """Net changes, staged for each window: those of a part are others."""

    files: Mapping[Window, Parquet]
    counts: Mapping[Window, Counts]
    newest: Version

    def rows(self, window: Window) -> DataFrame:
        return self.files[window].rows()

    def count(self, window: Window) -> Counts:
        return self.counts[window]

    def total(self) -> Counts:
        # all windows end at the cut
        return self.counts[min(self.counts, key=lambda window: window.after)]

    def holds(self, window: Window) -> bool:
        return window in self.files

    def reached(self, window: Window) -> Position:
        # the values are those of the moment at which they were read
        return max(window.upto, self.newest)


class LoggedRows:
    """One table by its log."""

    def __init__(self, jdbc: Jdbc, table: TableSpec, mappings: Sequence[ColumnMapping]) -> None:
        assert isinstance(table.feed, LoggedTable)
        self._jdbc, self._table, self._feed, self._mappings = jdbc, table, table.feed, mappings

    def state(self, witnesses: Collection[Witness] = ()) -> SourceState:
        (row,) = self._jdbc.rows(
            "SELECT (SELECT MAX(version) FROM logged.versions) AS newest,"
            f" (SELECT version FROM logged.low WHERE name = N'{self._feed.name}') AS low",
            "newest BIGINT, low BIGINT",
        )
        return SourceState(Version(row["low"]), Versions(Version(row["newest"])))

    def low(self, state: SourceState) -> Position:
        assert state.newest is not None
        return state.newest

    def read(self, windows: Sequence[Window], folder: str, *, before_images: bool) -> StagedByWindow:
        newest = self.state().newest
        assert isinstance(newest, Version)
        read = {window: self._net(window, newest, f"{folder}/{number}") for number, window in enumerate(windows)}
        return StagedByWindow(read, {window: _count(files) for window, files in read.items()}, newest)

    def _net(self, window: Window, newest: Version, folder: str) -> Parquet:
        values = ", ".join(f"{mapping.select} AS {mapping.alias}" for mapping in self._mappings)
        names = ", ".join(f"v.{mapping.alias}" for mapping in self._mappings)
        rows = self._jdbc.frame(
            f"SELECT l.id AS k, l.version, v.here, {names} FROM (SELECT id, MAX(version) AS version"
            f" FROM logged.[{self._feed.name}] WHERE version > {window.after.sort_key}"
            f" AND version <= {max(window.upto.sort_key, newest.sort_key)} GROUP BY id) AS l"
            f" LEFT JOIN (SELECT id AS here, {values} FROM {self._table.name.quoted}) AS v ON v.here = l.id",
            "k INT, version BIGINT, here INT, " + ", ".join(f"{m.alias} {m.read_type}" for m in self._mappings),
        )
        targets = {
            target.name: F.expr(target.expression.replace("{}", mapping.alias))
            for mapping in self._mappings
            for target in mapping.targets
        }
        targets["id"] = F.col("k")
        return write_rows(
            rows.select(
                *(value.alias(name) for name, value in targets.items()),
                F.when(F.col("here").isNull(), "D").otherwise("U").alias("_op"),
                F.col("version").alias("_version"),
                F.col("version").alias("_n"),
            ),
            folder,
        )

    def copy(self, order: CopyOrder) -> Copy:
        low = self.low(self.state())
        whole, folder = Hole(None, None), order.place
        files = Chunks(self._jdbc, self._table, self._mappings).read(whole, f"{folder}/{secrets.token_hex(4)}")
        high = self.low(self.state())
        events = self.read([Window(low, high)], f"{folder}/{secrets.token_hex(4)}", before_images=True)
        return Copy("", files, low, high, files.rows().count(), events, ())

    def respelled(self, staged: Any, window: Window, known: Any, folder: str, *, is_sure: bool | None) -> Any:
        return staged

    def has_lost_copy(self) -> bool:
        return False

    def remove_copy(self) -> None:
        """Its rows go with those that are staged."""

    def remove_copies(self, place: str) -> None:
        """None outlives its job."""


def _count(files: Parquet) -> Counts:
    kinds = {row["_op"]: row["count"] for row in files.rows().groupBy("_op").count().collect()}
    return Counts(updated=kinds.get("U", 0), deleted=kinds.get("D", 0))


def _logged(
    spec: JobSpec, jdbc: Jdbc, table: TableSpec, mappings: Sequence[ColumnMapping], connections: int, salt: str | None
) -> LoggedRows:
    return LoggedRows(jdbc, table, mappings)


class Killed(TableLoad):
    """Ends its process before or after the commit."""

    def _commit(self, sink: Sink, state: State, todo: SinkSteps) -> SinkReceipt | None:
        self._end_at("before", sink)
        done = super()._commit(sink, state, todo)
        self._end_at("after", sink)
        return done

    def _end_at(self, point: str, sink: Sink) -> None:
        here, mark = (
            self._table.feed.KIND == LoggedTable.KIND and sink.shape == "mirror",
            Path(os.environ.get(KILL, "")),
        )
        if here and mark.name == point:
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    register()
    SOURCES[LoggedTable.KIND] = _logged
    job.TableLoad = Killed  # type: ignore[misc]
    job.main()
