"""How loud Spark is and where it listens: the load's choice, unless the author says otherwise."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.position import Cut, Lsn
from airflow_provider_mssql_cdc.core.spec import JobSpec, SourceSpec
from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator

SPEC = JobSpec("a1", SourceSpec("db:1", "shop", "jdbc:"), (), Cut.at(Lsn(bytes(9) + b"\1")), "/work")
LOCAL, REMOTE = '{"conn_type": "spark", "host": "local[1]"}', '{"conn_type": "spark", "host": "spark://master:7077"}'


@pytest.fixture(autouse=True)
def airflow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A worker that says nothing of Spark."""
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", LOCAL)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)


def submitted(**given: Any) -> tuple[set[str], dict[str, str]]:
    """The settings and the environment with which an operator calls spark-submit."""
    operator = MsSqlCdcLoadOperator(task_id="load", tables=["a.b"], target="iceberg://lake/x", packages="", **given)
    with operator._submitting(SPEC, {}):
        hook = operator._get_hook()
        command = hook._build_spark_submit_command("job.py")
        environment = dict(hook._env_vars or {})
    assert operator.env_vars == given.get("env_vars")
    return {value for name, value in itertools.pairwise(command) if name == "--conf"}, environment


def test_sparks_own_log_has_warnings_alone(tmp_path: Path) -> None:
    assert "spark.log.level=WARN" in submitted()[0]


@pytest.mark.parametrize("place", ["conf", "file", "defaults"])
def test_the_author_chooses_the_log_level(tmp_path: Path, place: str) -> None:
    given: dict[str, Any] = {"conf": {"spark.log.level": "INFO"}} if place == "conf" else {}
    if place == "file":
        (tmp_path / "their.properties").write_text("spark.log.level INFO\n")
        given = {"properties_file": str(tmp_path / "their.properties")}
    if place == "defaults":
        (tmp_path / "spark-defaults.conf").write_text("spark.log.level INFO\n")
    assert "spark.log.level=WARN" not in submitted(**given)[0]


@pytest.mark.parametrize("variable", ["SPARK_CONF_DIR", "SPARK_HOME", "PATH"])
def test_the_defaults_are_those_that_spark_submit_would_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.log.level INFO\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "spark-submit").touch(mode=0o755)
    places = {"SPARK_CONF_DIR": "conf", "SPARK_HOME": ".", "PATH": "bin"}

    assert "spark.log.level=WARN" not in submitted(env_vars={variable: str(tmp_path / places[variable])})[0]


def test_for_kubernetes_airflow_gives_variables_to_the_driver_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "k8s://https://cluster"}')
    # without Airflow's Kubernetes provider there is no such name
    monkeypatch.setattr("airflow.providers.apache.spark.hooks.spark_submit.kube_client", object(), raising=False)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.log.level INFO\n")

    assert "spark.log.level=WARN" in submitted(env_vars={"SPARK_CONF_DIR": str(tmp_path / "conf")})[0]


def test_a_local_spark_listens_on_loopback_alone(tmp_path: Path) -> None:
    assert submitted()[1] == {"SPARK_LOCAL_IP": "127.0.0.1"}
    assert submitted(env_vars={"A": "b"})[1] == {"A": "b", "SPARK_LOCAL_IP": "127.0.0.1"}


@pytest.mark.parametrize("how", ["driver.host", "driver.bindAddress", "env_vars", "environment", "remote"])
def test_the_author_chooses_where_it_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    given: dict[str, Any] = {"conf": {f"spark.{how}": "10.0.0.1"}} if "driver" in how else {}
    if how == "env_vars":
        given = {"env_vars": {"SPARK_LOCAL_IP": "10.0.0.1"}}
    elif how == "environment":
        monkeypatch.setenv("SPARK_LOCAL_IP", "10.0.0.1")
    elif how == "remote":
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", REMOTE)
    assert submitted(**given)[1] == given.get("env_vars", {})
