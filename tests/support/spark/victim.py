"""A process that loads what a job spec says, until a kill point, where it or its JVM is killed.

``kill_matrix`` runs ``python -m tests.support.spark.victim SPEC FOLDER FORMAT POINT PROCESS``, or submits this file to
Spark with the same words. FOLDER is that of the catalogs; beside the spec it leaves a file ``reached`` before it kills,
so that its end for another reason is noticed. Instead of being killed it may be held there, until there is a file
``go``.
"""

from __future__ import annotations

import itertools
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from airflow_provider_mssql_cdc.core.codec import from_json
from airflow_provider_mssql_cdc.core.spec import JobSpec
from airflow_provider_mssql_cdc.spark.job import run
from airflow_provider_mssql_cdc.spark.targets.delta import DeltaTable
from tests.conftest import LIGHT_JAVA, spark_session
from tests.support.spark.kill_points import AFTER, BEFORE, DURING, all_points

TASK, JVM, SUBMIT, HELD = "task", "JVM", "spark-submit", "held"


def main() -> None:
    """Load, and be killed."""
    spec, folder, format_, point, process = sys.argv[1:]
    chosen = all_points(format_)[point]
    spark, real = spark_session(Path(folder), LIGHT_JAVA), getattr(chosen.owner, chosen.name)
    calls = itertools.count(1)

    def deadly(*arguments: Any, **options: Any) -> Any:
        if next(calls) != chosen.call:
            return real(*arguments, **options)
        if chosen.when == BEFORE:
            kill(process, Path(spec))
        if chosen.when == DURING:
            threading.Thread(
                target=kill_when_written, args=(process, Path(spec), place(*arguments)), daemon=True
            ).start()
        result = real(*arguments, **options)
        if chosen.when == AFTER:
            kill(process, Path(spec))
        return result

    setattr(chosen.owner, chosen.name, deadly)
    run(spark, from_json(JobSpec, Path(spec).read_text()))


def place(first: Any, second: Any) -> Path:
    """The folder to which these arguments of a function write."""
    folder = f"{first._name[0]}/{first._name[1]}" if isinstance(first, DeltaTable) else second
    return Path(folder.removeprefix("file://"))


def kill_when_written(process: str, spec: Path, folder: Path) -> None:
    """Kill as soon as there is one file more."""
    before = set(folder.rglob("*.parquet"))
    while not set(folder.rglob("*.parquet")) - before:
        time.sleep(0.001)
    kill(process, spec)


def wait_for(file: Path, *, unless: Callable[[], object] = lambda: None) -> None:
    """Wait until there is a file.

    :param unless: says something once it will not come
    """
    while not (file.exists() or unless() is not None):
        time.sleep(0.01)


def kill(process: str, spec: Path) -> None:
    """Kill this process, or the one in which Spark runs: a child of it, or ``spark-submit``, whose child it is.

    Or hold it, until another one has done the same.
    """
    spec.with_name("reached").touch()
    if process == HELD:
        wait_for(spec.with_name("go"))
        return
    this = psutil.Process()
    java = [child for child in this.children(recursive=True) if child.name() == "java"]
    victims = {TASK: [this], JVM: java, SUBMIT: this.parents()[:1]}[process]
    for victim in victims:
        victim.send_signal(signal.SIGKILL)
    # nothing of them is to go on; of a job whose JVM is gone, what Python does by itself may
    psutil.wait_procs(victims)


if __name__ == "__main__":
    main()
