"""How loud Spark is, where it listens, how it starts: the load's choice, unless the author says otherwise."""

from __future__ import annotations

import dataclasses
import itertools
import os
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.position import Cut, Lsn
from airflow_provider_mssql_cdc.core.spec import JobSpec, SourceSpec
from airflow_provider_mssql_cdc.operators import class_archive, jars
from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator

SPEC = JobSpec("a1", SourceSpec("db:1", "shop", "jdbc:"), (), Cut.at(Lsn(bytes(9) + b"\1")), "/work")
LOCAL, REMOTE = '{"conn_type": "spark", "host": "local[1]"}', '{"conn_type": "spark", "host": "spark://master:7077"}'


@pytest.fixture(autouse=True)
def airflow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A worker that says nothing of Spark."""
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", LOCAL)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv(jars.FOLDER, str(tmp_path / "jars"))
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)


def submitted(*, small: bool = False, spec: JobSpec = SPEC, **given: Any) -> tuple[set[str], dict[str, str]]:
    """The settings and the environment with which an operator calls spark-submit."""
    operator = MsSqlCdcLoadOperator(task_id="load", tables=["a.b"], target="iceberg://lake/x", packages="", **given)
    with operator._submitting(spec, {}, small=small):
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


QUICK = "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture
def plain_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that says nothing to Java."""
    for variable in class_archive.JAVA_VARIABLES:
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.usefixtures("plain_java")
@pytest.mark.parametrize("where", [LOCAL, REMOTE])
def test_the_driver_of_a_small_run_starts_quickly(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", where)
    assert QUICK in submitted(small=True)[0]
    assert QUICK not in submitted()[0]


@pytest.mark.usefixtures("plain_java")
@pytest.mark.parametrize("where", [LOCAL, REMOTE])
def test_the_driver_starts_from_the_archive_that_there_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", where)
    monkeypatch.setenv(jars.FOLDER, str(tmp_path / "a folder"))
    place = class_archive.place("spark-submit", os.environ)
    assert place is not None
    place.parent.mkdir(mode=0o700)
    archive = place.with_name(f"{place.name}-0.jsa")
    archive.touch()
    option = f'"-XX:SharedArchiveFile={archive}"'
    assert f"spark.driver.extraJavaOptions={option}" in submitted()[0]
    assert f"{QUICK} {option}" in submitted(small=True)[0]
    theirs = submitted(small=True, conf={"spark.driver.defaultJavaOptions": "-Xss4m"})[0]
    assert not any("SharedArchiveFile" in setting for setting in theirs)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", REMOTE)
    there = {"deploy_mode": "cluster", "work_dir": "s3a://bucket/x"}
    far = submitted(spec=dataclasses.replace(SPEC, work_dir=there["work_dir"]), **there)[0]
    assert not any("SharedArchiveFile" in setting for setting in far)


@pytest.mark.parametrize("name", ["spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions"])
@pytest.mark.parametrize("place", ["conf", "file", "defaults"])
def test_the_author_chooses_the_options_of_java(tmp_path: Path, place: str, name: str) -> None:
    given: dict[str, Any] = {"conf": {name: "-Xss4m"}} if place == "conf" else {}
    if place == "file":
        (tmp_path / "their.properties").write_text(f"{name} -Xss4m\n")
        given = {"properties_file": str(tmp_path / "their.properties")}
    if place == "defaults":
        (tmp_path / "spark-defaults.conf").write_text(f"{name} -Xss4m\n")
    assert QUICK not in submitted(small=True, **given)[0]


@pytest.mark.parametrize("variable", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"])
def test_a_second_garbage_collector_would_end_the_jvm(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    assert QUICK not in submitted(small=True, env_vars={variable: "-XX:+UseG1GC"})[0]
    monkeypatch.setenv(variable, "-XX:+UseG1GC")
    assert QUICK not in submitted(small=True)[0]


@pytest.mark.usefixtures("plain_java")
def test_what_sparks_own_script_says_to_java_is_not_known_here(tmp_path: Path) -> None:
    assert QUICK in submitted(small=True)[0]
    (tmp_path / "spark-env.sh").write_text('export SPARK_SUBMIT_OPTS="-XX:+UseG1GC"\n')
    assert QUICK not in submitted(small=True)[0]
    (tmp_path / "spark-env.sh").write_text("export SPARK_LOCAL_DIRS=/scratch\n")
    assert QUICK in submitted(small=True)[0]
    assert QUICK not in submitted(small=True, env_vars={"JDK_JAVA_OPTIONS": "@options"})[0]


def test_a_driver_on_another_machine_starts_as_it_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", REMOTE)
    there = "s3a://bucket/x"
    spec = dataclasses.replace(SPEC, work_dir=there)
    assert QUICK not in submitted(small=True, spec=spec, deploy_mode="cluster", work_dir=there)[0]
