"""The Spark application: ``spark-submit job.py --spec FILE`` loads every table of a job spec and writes a receipt."""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce

from pyspark.sql import SparkSession

from airflow_provider_mssql_cdc.core.codec import from_json, to_json
from airflow_provider_mssql_cdc.core.exceptions import MsSqlCdcError, TargetError
from airflow_provider_mssql_cdc.core.spec import JobError, JobSpec, Receipt, SinkSpec, TableReceipt, TableSpec
from airflow_provider_mssql_cdc.spark import files
from airflow_provider_mssql_cdc.spark.failures import explain
from airflow_provider_mssql_cdc.spark.jdbc import Credentials, Jdbc
from airflow_provider_mssql_cdc.spark.load import TableLoad
from airflow_provider_mssql_cdc.spark.parts import SparkParts
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
    """Load all tables, side by side, and write the receipt. A table that fails does not keep the others from it."""
    started = time.monotonic()
    at_once = max(1, min(job.tables_at_once, job.connections, len(job.tables)))
    secrets = credentials(spark), target_credentials(spark), Credentials(None, salt(spark))
    with ThreadPoolExecutor(at_once, thread_name_prefix="table") as pool:
        receipts = pool.map(lambda table: _load(spark, job, table, secrets, job.connections // at_once), job.tables)
        receipt = Receipt(job.id, tuple(receipts), _application_id(spark), round(time.monotonic() - started, 3))
    # one line, which Spark's text files hold as one row
    files.write_text(spark, job.receipt_path, to_json(receipt).replace("\n", " "))
    return receipt


def _load(
    spark: SparkSession,
    job: JobSpec,
    table: TableSpec,
    secrets: tuple[Credentials, Credentials, Credentials],
    connections: int,
) -> TableReceipt:
    load: TableLoad | None = None
    failures: dict[str, tuple[Exception, str | None]] = {}
    try:
        session = table_session(spark)
        jdbc = Jdbc(session, job.source, secrets[0], job.fetch_size)
        parts = SparkParts(session, job, jdbc, connections, secrets[2].password)
        load = TableLoad(job, table, parts)
        if (found := load.found_table()) is not table:
            shapes = {sink.shape for sink in found.sinks}
            failures = {s.shape: (_not_of(found, s), None) for s in table.sinks if s.shape not in shapes}
            load = TableLoad(job, found, parts)
        if job.replay is None:
            load.run()
        else:
            load.replay(job.replay)
    except Exception as failure:
        writing = load.writing if load else None
        left = [sink.shape for sink in table.sinks if load is None or not load.is_done(sink.shape)]
        failures |= dict.fromkeys(left or [sink.shape for sink in table.sinks], (failure, writing))
    finally:
        if load is not None:
            _remove_staged(spark, load.staging_path)
    failures |= load.failed if load else {}
    failed = {
        shape: describe(failure, *secrets, table=str(table.name), writing=writing)
        for shape, (failure, writing) in failures.items()
    }
    for shape, error in failed.items():
        log.error("%s %s failed: %s: %s", table.name, shape, error.kind, error.message)
    if not failed:
        log.info("%s: done", table.name)
    return load.receipt(failed) if load else TableReceipt(table.name, failed=failed)


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
