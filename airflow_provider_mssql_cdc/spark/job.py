"""The Spark application: ``spark-submit job.py --spec FILE`` loads every table of a job spec and writes a receipt."""

from __future__ import annotations

import argparse
import dataclasses
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce

from pyspark.sql import SparkSession

from airflow_provider_mssql_cdc.core.codec import from_json, to_json
from airflow_provider_mssql_cdc.core.copy_wanted import ASKED_COPY
from airflow_provider_mssql_cdc.core.exceptions import GapError, MsSqlCdcError, TargetError
from airflow_provider_mssql_cdc.core.receipt import JobError, Receipt, TableReceipt
from airflow_provider_mssql_cdc.core.spec import ChangedTable, JobSpec, SinkSpec, TableSpec
from airflow_provider_mssql_cdc.core.taken import NOTHING_TAKEN, TakenBySink, taken_by
from airflow_provider_mssql_cdc.core.target import display_name
from airflow_provider_mssql_cdc.spark import files
from airflow_provider_mssql_cdc.spark.copies.pace import CopyTime, Pace
from airflow_provider_mssql_cdc.spark.failures import explain
from airflow_provider_mssql_cdc.spark.filling import PartedLoad
from airflow_provider_mssql_cdc.spark.jdbc import Credentials, Jdbc
from airflow_provider_mssql_cdc.spark.load import TableLoad
from airflow_provider_mssql_cdc.spark.notes import Notes
from airflow_provider_mssql_cdc.spark.parted import parted
from airflow_provider_mssql_cdc.spark.parts import SparkParts
from airflow_provider_mssql_cdc.spark.schema_changes import SchemaChanges
from airflow_provider_mssql_cdc.spark.session import credentials, salt, table_session, target_credentials

log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the job named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, help="path or URL of the job spec")
    path = parser.parse_args(arguments).spec
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # py4j logs each call at level INFO
    logging.getLogger("py4j").setLevel(logging.WARNING)
    spark = SparkSession.builder.getOrCreate()
    try:
        run(spark, from_json(JobSpec, files.read_text(spark, path)))
    finally:
        spark.stop()


def run(spark: SparkSession, job: JobSpec) -> Receipt:
    """Load all tables, side by side, then go on with copies, and write the receipt.

    A table that fails does not keep the others from it; one that is copied for long holds up no other's changes.
    """
    started = time.monotonic()
    at_once = max(1, min(job.tables_at_once, job.connections, len(job.tables)))
    secrets = credentials(spark), target_credentials(spark), Credentials(None, salt(spark))
    runs = [_TableRun(spark, job, table, secrets, job.connections // at_once) for table in job.tables]
    copy_time = CopyTime(job.copy_seconds, Pace(job.copy_rows_per_second, job.throttle_lag))
    with ThreadPoolExecutor(at_once, thread_name_prefix="table") as pool:
        list(pool.map(_TableRun.load_windows, runs))
        # before copies, which may take hours
        dropped = tuple(_events_written(spark, job, of, {}, secrets) for of in job.dropped)
        if any(run.has_copies_left for run in runs):
            _say_windows(spark, job, runs)
        # what can be finished, and what nobody knows yet, before what takes more than this run
        list(pool.map(lambda run: run.load_copies(copy_time), sorted(runs, key=_TableRun.copy_left)))
    receipts = tuple(run.receipt() for run in runs)
    receipt = Receipt(job.id, receipts, _application_id(spark), round(time.monotonic() - started, 3), dropped)
    _write(spark, job.receipt_path, receipt)
    return receipt


def _say_windows(spark: SparkSession, job: JobSpec, runs: Sequence[_TableRun]) -> None:
    """Say what is loaded, before copies are gone on with: they may take hours, and the checkpoints need not wait."""
    try:
        _write(spark, job.windows_path, Receipt(job.id, tuple(run.windows() for run in runs)))
    except Exception as error:
        # the receipt says it, too
        log.warning("what is loaded is not said before the copies: %s", error)


def _write(spark: SparkSession, path: str, receipt: Receipt) -> None:
    # one line, which Spark's text files hold as one row
    files.write_text(spark, path, to_json(receipt).replace("\n", " "))


class _TableRun:
    """One table's part of the job.

    :param secrets: of the source, of the target, and the salt
    :param connections: that it may open at once
    """

    def __init__(
        self,
        spark: SparkSession,
        job: JobSpec,
        table: TableSpec,
        secrets: tuple[Credentials, Credentials, Credentials],
        connections: int,
    ) -> None:
        self._spark, self._job, self._table = spark, job, table
        self._secrets, self._connections = secrets, connections
        self._load: TableLoad | PartedLoad | None = None
        self._told = TableReceipt(table.name)
        self._failures: dict[str, tuple[Exception, str | None]] = {}

    def load_windows(self) -> None:
        """Load what goes on by windows, or replay."""
        self._do(self._load_windows)
        self._tell_changes()

    def copy_left(self) -> int:
        """Rows that the table's copy has still to read, as far as is known."""
        return self._table.copy.left if self._table.copy is not None else 0

    @property
    def has_copies_left(self) -> bool:
        """Whether a copy is wanted."""
        return self._load is not None and self._load.has_copies_left

    def windows(self) -> TableReceipt:
        """What is loaded by now."""
        return self._receipt({})

    def load_copies(self, copy_time: CopyTime) -> None:
        """Go on with a copy where sinks wait for one."""
        load = self._load
        if load is not None and load.has_copies_left:
            self._do(lambda: load.load_copies(copy_time))
            if (failure := load.notes.failed.get(ASKED_COPY)) is not None:
                error = self._described(*failure)
                # a copy that has a gap begins again
                if error.permanent and error.kind != GapError.__name__:
                    load.abort_copy(error.message)
            self._tell_changes()

    def receipt(self) -> TableReceipt:
        """What became of the table."""
        failures = self._failures | (self._load.notes.failed if self._load else {})
        failed = {shape: self._described(failure, writing) for shape, (failure, writing) in failures.items()}
        for shape, error in failed.items():
            log.error("%s %s failed: %s: %s", self._table.name, shape, error.kind, error.message)
        if not failed:
            log.info("%s: done", self._table.name)
        return self._receipt(failed)

    def _receipt(self, failed: Mapping[str, JobError]) -> TableReceipt:
        found = (self._load.notes if self._load else Notes()).receipt(self._table.name, failed)
        return dataclasses.replace(
            found,
            warnings=(*found.warnings, *self._told.warnings),
            changes_written=self._told.changes_written,
            taken_told=self._told.taken_told,
        )

    def _tell_changes(self) -> None:
        """Write the table's schema events that are not written yet, and what its sinks have taken since."""
        of = self._table.changed
        if of is None:
            return
        told, taken = of.changes.told | self._told.taken_told, self._taken(of.changes.fills)
        moved = {shape: each for shape, each in taken.items() if each != told.get(shape, NOTHING_TAKEN)}
        if moved or (of.changes.events and self._told.changes_written is None):
            # of a sink that this job has not loaded the checkpoint may know less than the table says
            found = _events_written(self._spark, self._job, of, taken, self._secrets)
            if found.warnings:
                self._told = dataclasses.replace(self._told, warnings=found.warnings)
            else:
                self._told = dataclasses.replace(found, taken_told=self._told.taken_told | moved)

    def _taken(self, fills: Collection[str]) -> dict[str, TakenBySink]:
        """The columns that sinks have taken since their first loads, by shape.

        :param fills: the shapes in which a copy fills what they lack
        """
        load, taken = self._load, {}
        for shape, done in load.notes.done.items() if load is not None else ():
            if load is not None and done.after is not None:
                columns = done.after.taken
                try:
                    # where nothing happens the copy that reads altered values again comes long before a commit
                    if self._table.widens:
                        columns = load.sink_of(shape).columns.taking(done.after)
                except Exception as error:
                    # what is committed counts for more, and the next run looks again
                    log.warning("%s %s: which columns it has taken is not known: %s", self._table.name, shape, error)
                else:
                    taken[shape] = taken_by(columns, fills=shape in fills)
        return taken

    def _described(self, failure: Exception, writing: str | None) -> JobError:
        return describe(failure, *self._secrets, table=str(self._table.name), writing=writing)

    def _load_windows(self) -> None:
        session = table_session(self._spark)
        jdbc = Jdbc(session, self._job.source, self._secrets[0], self._job.fetch_size)
        parts = SparkParts(session, self._job, jdbc, self._connections, self._secrets[2].password)
        self._load = load = TableLoad(self._job, self._table, parts)
        if (found := load.found_table()) is not self._table:
            shapes = {sink.shape for sink in found.sinks}
            self._failures = {s.shape: (_not_of(found, s), None) for s in self._table.sinks if s.shape not in shapes}
            self._load = load = TableLoad(self._job, found, parts)
        self._load = parted(load, self._job, found, parts)
        if self._job.replay is None:
            self._load.load_windows()
        else:
            self._load.replay(self._job.replay)

    def _count(self, load: TableLoad | PartedLoad) -> None:
        try:
            load.count()
        except Exception as error:
            # what is committed counts for more
            log.warning("%s: what was read cannot be counted: %s", self._table.name, error)

    def _do(self, what: Callable[[], None]) -> None:
        try:
            what()
        except Exception as failure:
            load = self._load
            writing = load.notes.writing if load else None
            left = [sink.shape for sink in self._table.sinks if load is None or sink.shape not in load.notes.done]
            left = left or [sink.shape for sink in self._table.sinks]
            self._failures |= dict.fromkeys(left, (failure, writing))
            if load is not None:
                load.give_up_copies()
        finally:
            if self._load is not None and not self._load.has_copies_left:
                self._count(self._load)
                for path in self._load.staging_paths:
                    _remove_staged(self._spark, path)


def _events_written(
    spark: SparkSession,
    job: JobSpec,
    of: ChangedTable,
    sinks: Mapping[str, TakenBySink],
    secrets: tuple[Credentials, Credentials, Credentials],
) -> TableReceipt:
    """Write a table's schema events, and what sinks have taken. Rows count for more: what keeps these from being
    written is a warning.
    """
    name = display_name(of.changes.table)
    try:
        # commits say of themselves what their session is set to
        written = SchemaChanges(table_session(spark), job, of, sinks).write()
    except Exception as failure:
        error = describe(failure, *secrets, table=str(of.name), writing=name)
        warning = f"its schema changes are not written into {name}, and the next load tries again: {error.message}"
        return TableReceipt(of.name, warnings=(warning,))
    return TableReceipt(of.name, changes_written=written)


def _not_of(table: TableSpec, sink: SinkSpec) -> TargetError:
    """The error of a sink that the instance which the others are loaded from does not suit."""
    return TargetError(
        f"{sink.name} cannot be loaded from {table.feed}, from which the table's other shapes are loaded.",
        table=str(table.name),
        advice="`mssql-cdc plan` says why, once this run has stored what the others are loaded from.",
    )


def _remove_staged(spark: SparkSession, path: str) -> None:
    try:
        files.remove(spark, path)
    except Exception as error:
        # the receipt of what is loaded counts for more; the operator removes the whole folder of the job
        log.warning("staged rows stay in %s: %s", path, error)


def describe(
    failure: Exception, source: Credentials, *others: Credentials, table: str, writing: str | None = None
) -> JobError:
    """What a receipt says of a failure: its kind, its text without secrets, whether a retry can help.

    :param source: of the source
    :param others: of the target, and the salt
    :param table: the source table concerned
    :param writing: the target table that was written to, if one was
    """

    def scrub(text: str) -> str:
        return reduce(lambda left, secret: secret.scrub(left), others, source.scrub(text))

    if isinstance(failure, MsSqlCdcError):
        return JobError(type(failure).__name__, scrub(str(failure)), failure.permanent)
    texts, cause = [str(failure)], failure.__cause__
    while cause is not None:
        texts.append(str(cause))
        cause = cause.__cause__
    text = scrub("\nCaused by: ".join(texts))
    return explain(text, type(failure).__name__, table, source.user, writing)


def _application_id(spark: SparkSession) -> str:
    return str(spark.conf.get("spark.app.id", ""))


if __name__ == "__main__":
    main()
