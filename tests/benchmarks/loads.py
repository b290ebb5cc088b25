"""Loads by hook, planner and job, as the operator makes them, with checkpoints in a dict."""

from __future__ import annotations

import dataclasses
import datetime
import uuid
from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import Connection
from pyspark.sql import SparkSession

from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.receipt import Receipt
from airflow_provider_mssql_cdc.core.shapes import MIRROR
from airflow_provider_mssql_cdc.core.spec import DatabaseSpec, JobSpec, SourceSpec
from airflow_provider_mssql_cdc.core.table_options import TableOptions, read_entries
from airflow_provider_mssql_cdc.core.target import Target
from airflow_provider_mssql_cdc.hooks.jdbc import jdbc_url
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.outcome import Outcome
from airflow_provider_mssql_cdc.operators.planning import plan_load
from airflow_provider_mssql_cdc.operators.request import Request
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from airflow_provider_mssql_cdc.spark.job import run
from tests.benchmarks import source


class Variables(dict[str, Any]):
    """Airflow's Variable as far as the store uses it, with the number of reads."""

    reads = 0

    def get(self, key: str, default: Any = None) -> Any:
        self.reads += 1
        return super().get(key, default)

    def set(self, key: str, value: Any, description: str | None = None) -> None:
        self[key] = value


class Loads:
    """Runs over one database.

    :param patterns: the tables
    :param target: its address
    :param shape: of the target's tables
    :param connections: JDBC connections open at once
    :param database: of the target, where it is one
    """

    def __init__(
        self,
        server: Sandbox,
        patterns: tuple[str, ...],
        target: str,
        folder: Path,
        *,
        shape: str = MIRROR,
        connections: int = 2,
        database: DatabaseSpec | None = None,
    ) -> None:
        self.connection = Connection(
            conn_id=source.CONNECTION_ID,
            conn_type="mssql",
            host=server.host,
            port=server.port,
            login=server.user,
            password=server.password,
            schema=source.DATABASE,
            extra='{"trustServerCertificate": "true"}',
        )
        self.variables = Variables()
        self.store = CheckpointStore(self.variables)
        self.folder, self.shape, self.connections, self.database = folder, shape, connections, database
        defaults = TableOptions(Target.parse(target), (shape,))
        self.request = Request(source.CONNECTION_ID, read_entries(patterns, salted=False), (), defaults)

    def plan(self) -> RunPlan:
        """Plan a run to the newest position."""
        hook = MsSqlCdcHook(connection=self.connection)
        try:
            return plan_load(hook, self.store, self.request, None)
        finally:
            hook.close()

    def spec(self, plan: RunPlan) -> JobSpec:
        """The job's spec."""
        url, options = jdbc_url(self.connection)
        if plan.upto is None or plan.failures:
            raise RuntimeError(f"nothing to load: {plan.failures}")
        return JobSpec(
            id=uuid.uuid4().hex[:12],
            source=SourceSpec(f"{self.connection.host}:{self.connection.port}", source.DATABASE, url, options),
            tables=tuple(plan.specs),
            upto=plan.upto,
            work_dir=str(self.folder / "work"),
            connections=self.connections,
            database=self.database,
            witness=plan.witness,
            recovery_fork=plan.recovery_fork,
        )

    def load(self, spark: SparkSession, plan: RunPlan) -> Receipt:
        """Run the job in this process, and move the checkpoints."""
        spec = self.spec(plan)
        receipt = run(spark, spec)
        self.save(plan, spec, receipt)
        return receipt

    def save(self, plan: RunPlan, spec: JobSpec, receipt: Receipt) -> None:
        """Move the checkpoints.

        :raises RuntimeError: if a table failed
        """
        if errors := [table.error for table in receipt.tables if table.error]:
            raise RuntimeError(str(errors))
        for checkpoint in Outcome(plan, spec, receipt).checkpoints(datetime.datetime.now(datetime.UTC)):
            self.store.save(dataclasses.replace(checkpoint))
