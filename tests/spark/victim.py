"""A process that loads what a job spec says, until a kill point, where it or its JVM is killed: nothing of it goes on.

``python -m tests.spark.victim SPEC FOLDER FORMAT POINT PROCESS`` is started by ``kill_matrix``. FOLDER is that of the
catalogs; beside the spec it leaves a file ``killed`` before it kills, so that its end for another reason is noticed.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import psutil

from airflow_provider_mssql_cdc.core.spec import JobSpec, from_json
from airflow_provider_mssql_cdc.spark.job import run
from tests.conftest import spark_session
from tests.spark.kill_points import BEFORE, EVERYWHERE, POINTS

TASK, JVM = "task", "JVM"


def main() -> None:
    """Load, and be killed."""
    spec, folder, format_, point, process = sys.argv[1:]
    owner, name, when = {**EVERYWHERE, **POINTS[format_]}[point]
    spark, real = spark_session(Path(folder)), getattr(owner, name)

    def deadly(*arguments: Any, **options: Any) -> Any:
        if when == BEFORE:
            kill(process, Path(spec))
        result = real(*arguments, **options)
        kill(process, Path(spec))
        return result

    setattr(owner, name, deadly)
    run(spark, from_json(JobSpec, Path(spec).read_text()))


def kill(process: str, spec: Path) -> None:
    """Kill this process, or the one in which Spark runs."""
    spec.with_name("killed").touch()
    children = psutil.Process().children(recursive=True)
    for pid in [os.getpid()] if process == TASK else [child.pid for child in children if child.name() == "java"]:
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
