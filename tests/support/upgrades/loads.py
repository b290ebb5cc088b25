"""Loads of the samples' tables as the operator makes them: planned by the hook, one job for all tables of a format."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import uuid
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from airflow.models.connection import Connection
from pyspark.sql import SparkSession

from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.codec import from_json, to_json
from airflow_provider_mssql_cdc.core.marker import TaskRun
from airflow_provider_mssql_cdc.core.position import Cut, Lsn
from airflow_provider_mssql_cdc.core.receipt import Receipt
from airflow_provider_mssql_cdc.core.schema import SchemaStore
from airflow_provider_mssql_cdc.core.spec import JobSpec, SourceSpec
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.outcome import Outcome
from airflow_provider_mssql_cdc.operators.planning import plan_load
from airflow_provider_mssql_cdc.operators.request import Request
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from airflow_provider_mssql_cdc.spark.job import run
from airflow_provider_mssql_cdc.spark.targets.parquet import read_history
from tests.support.core.variables import Variables
from tests.support.lake import catalog
from tests.support.spark.postgres import Postgres
from tests.support.upgrades.cases import CASES, CONNECTION, DATABASE, SERVER, Case
from tests.support.upgrades.place import ADDRESSES, FILES, FOLDER, LAKE, TABLES


@dataclasses.dataclass
class Loads:
    """The loads of one format.

    :param warehouse: the server of PostgreSQL's targets
    :param only: names of the cases that are loaded; None for all
    """

    spark: SparkSession
    server: Sandbox
    file_format: str
    warehouse: Postgres | None = None
    variables: Variables = dataclasses.field(default_factory=Variables)
    only: Collection[str] | None = None

    def __post_init__(self) -> None:
        self.store, self.schemas = CheckpointStore(self.variables), SchemaStore(self.variables)

    @property
    def cases(self) -> list[Case]:
        """Those that the format has."""
        wanted = [case for case in CASES if self.only is None or case.name in self.only]
        return [case for case in wanted if case.shapes_in(self.file_format)]

    def request(self, case: Case) -> Request:
        """What the DAG author of a case asks for."""
        return case.request(self.file_format, ADDRESSES[self.file_format])

    def load(self, requests: Mapping[str, Request], upto: Lsn) -> tuple[JobSpec, Receipt]:
        """Load tables, each with the options of its own DAG, by one job, and store their checkpoints.

        :param requests: by the name of the case
        """
        plans = self.plans(requests, upto)
        spec = self.spec(plans, upto)
        receipt = run(self.spark, from_json(JobSpec, to_json(spec)))
        failed = {t.name.table: t.error for t in receipt.tables if t.error}
        assert not failed, failed
        self.settle(requests, plans, spec, receipt)
        return spec, receipt

    def plans(self, requests: Mapping[str, Request], upto: Lsn) -> dict[str, RunPlan]:
        """Plan each table."""
        found = {}
        with self.hook() as hook:
            for name, request in requests.items():
                found[name] = plan_load(hook, self.store, request, Cut.at(upto))
                assert found[name].failures == {}
                assert [spec.name.table for spec in found[name].specs] == [name]
        return found

    def spec(self, plans: Mapping[str, RunPlan], upto: Lsn) -> JobSpec:
        """The spec of one job for all tables."""
        (plan, *_) = plans.values()
        source = SourceSpec(
            server=SERVER,
            database=DATABASE,
            jdbc_url=f"jdbc:sqlserver://;serverName={self.server.host};port={self.server.port};databaseName={DATABASE}",
            options={"encrypt": "true", "trustServerCertificate": "true"},
            timezone="UTC",
        )
        return JobSpec(
            uuid.uuid4().hex[:12],
            source,
            tuple(spec for each in plans.values() for spec in each.specs),
            Cut.at(upto),
            f"{FOLDER}/work",
            connections=4,
            capture_timeout=60.0,
            database=self.warehouse.spec if self.warehouse else None,
            witness=plan.witness,
            recovery_fork=plan.recovery_fork,
            run=TaskRun("upgrades", "shop.load", "scheduled__2026-01-01T00:00:00+00:00", 1),
        )

    def settle(
        self, requests: Mapping[str, Request], plans: Mapping[str, RunPlan], spec: JobSpec, receipt: Receipt
    ) -> None:
        """Store what follows for the checkpoint of each table, and the schemas that it names."""
        now = datetime.datetime.now(datetime.UTC)
        for name in requests:
            own = dataclasses.replace(spec, tables=tuple(t for t in spec.tables if t.name.table == name))
            answer = dataclasses.replace(receipt, tables=tuple(t for t in receipt.tables if t.name.table == name))
            outcome = Outcome(plans[name], own, answer)
            written = outcome.checkpoints(now)
            for schema in outcome.new_schemas(written):
                self.schemas.keep(schema)
            for checkpoint in written:
                assert self.store.save(checkpoint, plans[name].checkpoints[checkpoint.identity.table])

    @contextlib.contextmanager
    def hook(self) -> Iterator[MsSqlCdcHook]:
        """A hook of the source."""
        connection = Connection(
            conn_id=CONNECTION,
            conn_type="mssql",
            host=self.server.host,
            port=self.server.port,
            login=self.server.user,
            password=self.server.password,
            schema=DATABASE,
        )
        hook = MsSqlCdcHook(connection=connection)
        try:
            yield hook
        finally:
            hook.close()

    def table(self, case: Case, shape: str) -> str:
        """The name of a target table."""
        return f"lab_{case.name}" + ("" if shape == "mirror" else f"_{shape}")

    def sql_name(self, case: Case, shape: str) -> str:
        """A target table in Spark SQL."""
        name = self.table(case, shape)
        return f"delta.`file://{TABLES}/{name}`" if self.file_format == "delta" else f"upgrades.kept.{name}"

    def rows(self, case: Case, shape: str) -> list[dict[str, Any]]:
        """The rows of a target table, in the order of their texts."""
        if self.warehouse is not None:
            found = self.warehouse.rows("kept", self.table(case, shape))
        else:
            session = self.spark.newSession()
            if self.file_format == "parquet":
                frame = read_history(session, f"file://{FILES}", self.table(case, shape))
            else:
                frame = session.table(self.sql_name(case, shape))
            found = [row.asDict() for row in frame.collect()]
        return sorted(found, key=lambda row: repr(sorted(row.items(), key=lambda item: item[0])))


def configure(spark: SparkSession) -> None:
    """Have the samples' Iceberg catalog in all sessions to come."""
    conf = spark.sparkContext._jsc.sc().conf()
    for name, value in {**catalog("upgrades", LAKE), "spark.sql.catalog.upgrades.cache-enabled": "false"}.items():
        conf.set(name, value)
