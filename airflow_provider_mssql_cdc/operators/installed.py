"""Spark and Java as this worker has them: where spark-submit finds them, and what is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from airflow_provider_mssql_cdc.core.exceptions import SparkMissingError


def missing(binary: str, environment: Mapping[str, str]) -> SparkMissingError | None:
    """Why no Spark can be started on this worker; None where nothing is seen to be missing.

    :param binary: spark-submit
    """
    path = environment.get("PATH", os.defpath)
    if shutil.which(binary, path=path) is None:
        return no_spark(binary)
    return None if java(environment) else no_java()


def no_spark(binary: str) -> SparkMissingError:
    """The error of a worker without Spark."""
    return SparkMissingError(
        f"there is no {binary} on the PATH of this worker.",
        advice="Install Spark 4.1 where the task runs (pip install pyspark brings spark-submit), or put the folder of "
        "its spark-submit on the PATH.",
    )


def no_java() -> SparkMissingError:
    """The error of a worker without Java."""
    return SparkMissingError(
        "Spark finds no Java on this worker.",
        advice="Install Java 17 or 21 where the task runs, and let JAVA_HOME name it, or put java on the PATH.",
    )


def java(environment: Mapping[str, str]) -> Path | None:
    """The Java that Spark's scripts take: JAVA_HOME's, else the one on the PATH."""
    home = environment.get("JAVA_HOME")
    path = environment.get("PATH", os.defpath)
    found = shutil.which(str(Path(home, "bin", "java")) if home else "java", path=path)
    return Path(found).resolve() if found else None


def spark_home(binary: str, environment: Mapping[str, str]) -> Path | None:
    """The folder of Spark: what SPARK_HOME says, else where spark-submit lies.

    :param binary: spark-submit
    :param environment: of spark-submit
    """
    if home := environment.get("SPARK_HOME"):
        return Path(home)
    if (found := shutil.which(binary, path=environment.get("PATH", os.defpath))) is None:
        return None
    script = Path(found).resolve()
    # pip puts Spark's scripts into a folder that is not Spark's, and this one with them
    if script.with_name("find_spark_home.py").exists():
        return next(script.parents[1].glob("lib/python*/site-packages/pyspark"), None)
    return script.parents[1]


def spark_defaults(binary: str, environment: Mapping[str, str]) -> Path | None:
    """The file that spark-submit reads where nobody names one.

    :param binary: spark-submit, beside which Spark is without SPARK_HOME
    :param environment: of spark-submit
    """
    return _configuration("spark-defaults.conf", binary, environment)


def spark_env(binary: str, environment: Mapping[str, str]) -> Path | None:
    """The script that sets more of the environment when Spark starts.

    :param binary: spark-submit, beside which Spark is without SPARK_HOME
    :param environment: of spark-submit
    """
    return _configuration("spark-env.sh", binary, environment)


def _configuration(name: str, binary: str, environment: Mapping[str, str]) -> Path | None:
    home = spark_home(binary, environment)
    folder = environment.get("SPARK_CONF_DIR") or (home and home / "conf")
    return path if folder and (path := Path(folder, name)).is_file() else None


def is_ours(folder: Path) -> bool:
    """Whether a folder belongs to this user, and nobody else can write there."""
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o022
