"""A load into PostgreSQL as the operator submits it: where the target is, and which way its login goes."""

from __future__ import annotations

import json

import pytest

from airflow_provider_mssql_cdc.core.codec import to_json
from airflow_provider_mssql_cdc.core.spec import DatabaseSpec, JobSpec
from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator
from tests.support.operators.master import properties, write_receipt
from tests.support.operators.tries import Task

CANARY = "t4rget-c4nary"
ADDRESS = "postgresql://warehouse/my shop"


def test_the_targets_login_goes_by_the_properties_file_alone(
    task: Task,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    connection = {"conn_type": "postgres", "host": "pg.example", "login": "loader", "password": CANARY, "schema": "db"}
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", json.dumps({**connection, "extra": {"sslmode": "verify-full"}}))
    told: list[tuple[JobSpec, str]] = []

    def job(spec: JobSpec) -> None:
        told.append((spec, properties(task.master.submissions[0])))
        write_receipt(spec)

    task.master.job = job
    summary = task.run(target=ADDRESS)

    spec, told_by_file = told[0]
    assert spec.database == DatabaseSpec("pg.example", 5432, "db", {"sslmode": "verify-full"})
    assert {(sink.format, sink.table) for table in spec.tables for sink in table.sinks} == {
        ("postgresql", ("warehouse", "my shop", "dbo_a")),
        ("postgresql", ("warehouse", "my shop", "dbo_b")),
    }
    assert f"spark.mssql_cdc.target_user=loader\nspark.mssql_cdc.target_password={CANARY}\n" in told_by_file
    seen = [to_json(spec), str(summary), caplog.text, *task.master.submissions, str(task.state), str(task.emitted)]
    assert [text for text in seen if CANARY in text] == []
    assert {row["status"] for row in task.rows.values()} == {"loaded"}


def test_both_jdbc_drivers_are_fetched() -> None:
    operator = MsSqlCdcLoadOperator(task_id="load", tables=["dbo.*"], target=ADDRESS)
    assert operator.packages == "org.postgresql:postgresql:42.7.14,com.microsoft.sqlserver:mssql-jdbc:13.6.2.jre11"
