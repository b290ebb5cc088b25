"""A source, the targets that are measured, and a Spark session that prepares and looks at them."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_provider_mssql_cdc.cli.demo.postgres import missing
from airflow_provider_mssql_cdc.core.formats import DELTA, ICEBERG, PARQUET, POSTGRESQL
from airflow_provider_mssql_cdc.core.shapes import HISTORY, MIRROR, SCD2
from airflow_provider_mssql_cdc.core.spec import DatabaseSpec
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from tests.benchmarks import source
from tests.benchmarks.application import Application, submit
from tests.benchmarks.contents import differing_rows
from tests.benchmarks.loads import Loads
from tests.support.spark import postgres

SHAPES = {
    ICEBERG: (MIRROR, HISTORY, SCD2),
    DELTA: (MIRROR, HISTORY, SCD2),
    PARQUET: (HISTORY,),
    POSTGRESQL: (MIRROR, HISTORY),
}

_CONNECTIONS = 8


def available(targets: Sequence[str]) -> list[str]:
    """The targets, without PostgreSQL where none can be had, which is said."""
    if POSTGRESQL in targets and (reason := missing()):
        print(f"PostgreSQL is left out: {reason}", flush=True)
        return [target for target in targets if target != POSTGRESQL]
    return list(targets)


@dataclasses.dataclass(frozen=True)
class Lab:
    """Loads of one source into targets that begin empty.

    :param heap: of the applications that are measured, as Spark takes it
    :param database: of the targets in PostgreSQL
    """

    server: Sandbox
    folder: Path
    spark: SparkSession
    heap: str
    database: DatabaseSpec | None

    def loads(self, patterns: tuple[str, ...], target: str, shape: str) -> Loads:
        """The loads of tables into one shape, by as many connections as the operator opens by default."""
        address = {
            ICEBERG: f"iceberg://lake/{shape}",
            DELTA: f"delta+file://{self.folder}/delta_{shape}",
            PARQUET: f"parquet+file://{self.folder}/parquet_{shape}",
            POSTGRESQL: f"postgresql://warehouse/{shape}",
        }[target]
        database = self.database if target == POSTGRESQL else None
        return Loads(
            self.server, patterns, address, self.folder, shape=shape, connections=_CONNECTIONS, database=database
        )

    def submit(self, loads: Loads, plan: RunPlan) -> Application:
        """Load in an application of its own, with the jars of its target alone, and move the checkpoints."""
        spec = loads.spec(plan)
        targets = sorted({sink.format for table in plan.specs for sink in table.sinks})
        settings = {**source.settings(self.server, self.folder, targets), "spark.driver.memory": self.heap}
        application = submit(spec, settings, self.folder)
        loads.save(plan, spec, application.receipt)
        return application

    def differing(self, loads: Loads, plan: RunPlan, keys: int) -> int:
        """How many rows differ in the targets of a plan.

        :param keys: with which the tables were made
        """
        return sum(
            differing_rows(self.spark, self.server, table, keys, self.folder, loads.database) for table in plan.specs
        )


@contextlib.contextmanager
def opened(targets: Sequence[str], heap: str, conf: Mapping[str, str] | None = None) -> Iterator[Lab]:
    """Start what the targets need.

    :param conf: further settings of the session
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(Sandbox(database=source.DATABASE, capture_interval=0.1))
        database = stack.enter_context(postgres.running()).spec if POSTGRESQL in targets else None
        spark = stack.enter_context(source.spark_session(server, folder, conf))
        yield Lab(server, folder, spark, heap, database)
