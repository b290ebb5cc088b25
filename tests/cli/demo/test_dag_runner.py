from __future__ import annotations

import pytest

from airflow_provider_mssql_cdc.cli.demo import dag_runner

DAG = """
from airflow.sdk import DAG, task

with DAG("some_fail", schedule=None):

    @task
    def loaded(ti=None):
        ti.xcom_push(key="summary", value={"of": "loaded"})

    @task
    def pushes(ti=None):
        ti.xcom_push(key="summary", value={"of": "pushes"})
        raise ValueError("no")

    @task
    def pushes_nothing():
        raise ValueError("no")

    @task
    def comes_after():
        pass

    loaded()
    [pushes(), pushes_nothing()] >> comes_after()
"""


@pytest.mark.xdist_group("airflow")
def test_a_run_that_failed_says_which_tasks_did_and_what_they_pushed(airflow_db):
    path = airflow_db / "dags" / "some_fail.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(DAG)
    try:
        run = dag_runner._find_dag(str(path), "some_fail").test()
    finally:
        path.unlink()
    assert str(run.state) == "failed"
    assert dag_runner._failed(run) == ["pushes", "pushes_nothing"]
    loads = ["loaded", "pushes", "pushes_nothing"]
    assert dag_runner._summaries(run, loads) == {name: {"of": name} for name in loads[:2]}
