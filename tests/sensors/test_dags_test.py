"""The sensor as `airflow dags test` runs it: in one process, which runs its trigger too."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint
from airflow_provider_mssql_cdc.core.codec import from_json
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.wake import Reason
from tests.support.hooks.source import CONN_ID, TARGET, Source

pytestmark = pytest.mark.xdist_group("airflow")

DAG_FILE = """
from airflow.providers.common.compat.sdk import DAG
from airflow_provider_mssql_cdc.sensors.mssql_cdc import MsSqlCdcSensor

with DAG("waits", schedule=None) as dag:
    MsSqlCdcSensor(
        task_id="wait", tables=["dbo.a"], target={target!r}, mssql_conn_id={connection!r},
        deferrable=True, poll_interval=0.05, max_idle=0.2, retries=0,
    )
"""


def test_it_waits_there_too_with_a_connection_of_airflows_database(
    source: Source, airflow_db: Path, dummy_row: Callable[[Source], None], capfd: pytest.CaptureFixture[str]
) -> None:
    from airflow.models import Connection, Variable
    from airflow.models.taskinstance import clear_task_instances
    from airflow.utils.session import create_session

    source.sql("CREATE TABLE dbo.a (id int NOT NULL PRIMARY KEY)")
    source.enable("dbo.a")
    source.sql("INSERT INTO dbo.a VALUES (1)")
    source.scan()
    with source.hook() as hook:
        (instance,) = hook.capture_instances([TableName("dbo", "a")])
    # nothing to load: only max_idle ends the wait
    (stored,) = source.checkpoint(instance, source.max_lsn()).values()
    dummy_row(source)
    given = source.airflow_connection()
    fields = {
        name: getattr(given, name) for name in ("conn_id", "conn_type", "host", "port", "login", "password", "schema")
    }
    with create_session() as session:
        session.add(Connection(**fields))
    Variable.set(source.identity(TableName("dbo", "a")).variable, stored)
    assert from_json(Checkpoint, stored).position(["mirror"]) != source.max_lsn()

    path = airflow_db / "dags" / "waits.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(DAG_FILE.format(target=TARGET, connection=CONN_ID))
    dag = runpy.run_path(str(path))["dag"]
    run = dag.test()

    said = capfd.readouterr().out
    assert str(run.state) == "success", said
    (instance,) = run.get_task_instances()
    assert instance.xcom_pull(task_ids="wait") == str(source.max_lsn())
    # without the checkpoint it would be a first load, and nothing would have waited
    assert f"Something to load up to {source.max_lsn()}: dbo.a ({Reason.IDLE.value})" in said
    assert Reason.FIRST_LOAD.value not in said

    # by this a task that was cleared is told from one that is tried again
    wait = dag.get_task("wait")
    scheduled = {"dag_run": SimpleNamespace(run_type="scheduled"), "ti": instance}
    assert not wait._is_asked(scheduled)
    with create_session() as session:
        instance = session.merge(instance)
        clear_task_instances([instance], session)
        scheduled["ti"] = instance
        assert wait._is_asked(scheduled)
