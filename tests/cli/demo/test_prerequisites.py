from __future__ import annotations

import pytest

from airflow_provider_mssql_cdc.cli.demo.prerequisites import check_java, find_dags
from airflow_provider_mssql_cdc.cli.exit import CommandError


def java(folder, version):
    """A java that says its version, as the real one does on standard error."""
    (folder / "bin").mkdir(parents=True)
    script = folder / "bin" / "java"
    script.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-01' >&2\n")
    script.chmod(0o755)
    return folder


@pytest.mark.parametrize("version", ["17.0.15", "21", "21.0.2"])
@pytest.mark.parametrize("variable", ["JAVA_HOME", "PATH"])
def test_java_17_and_21_are_found(tmp_path, version, variable):
    home = java(tmp_path, version)
    check_java({"JAVA_HOME": str(home)} if variable == "JAVA_HOME" else {"PATH": str(home / "bin")})


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", "25"])
def test_other_versions_are_refused_in_one_line(tmp_path, version):
    with pytest.raises(CommandError, match=rf"Java 17 or 21.*{version}") as error:
        check_java({"JAVA_HOME": str(java(tmp_path, version))})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("variable", ["JAVA_HOME", "PATH"])
def test_missing_java_is_one_line(tmp_path, variable):
    with pytest.raises(CommandError, match=r"Spark needs Java 17 or 21: .*JAVA_HOME") as error:
        check_java({variable: str(tmp_path)})
    assert "\n" not in str(error.value)


def test_java_home_comes_before_the_path_as_in_sparks_own_scripts(tmp_path):
    old, new = java(tmp_path / "old", "11.0.2"), java(tmp_path / "new", "17.0.1")
    check_java({"JAVA_HOME": str(new), "PATH": str(old / "bin")})
    with pytest.raises(CommandError):
        check_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")})


def test_the_demo_runs_the_repositorys_own_dags():
    assert (find_dags() / "shop_incremental.py").is_file()
