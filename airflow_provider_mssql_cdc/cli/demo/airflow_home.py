"""A private Airflow for the demo: a home with SQLite, and one process that runs the DAG."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow_provider_mssql_cdc.cli.demo.processes import Children
from airflow_provider_mssql_cdc.cli.exit import CommandError

RUNNER = "airflow_provider_mssql_cdc.cli.demo.dag_runner"
"""The module that runs in that process."""
_LONGEST = 300
_UNRESOLVED = ("unresolved dependency", "UNRESOLVED DEPENDENCIES", "FAILED DOWNLOADS")


def settings(home: Path, dags: Path, warehouse: Path) -> dict[str, str]:
    """The environment variables by which Airflow finds home, DAGs and lake."""
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_VAR_SHOP_WAREHOUSE": str(warehouse),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
    }


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without any other Airflow or Spark, and with ``extra``."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW") and name != "SPARK_HOME"
    }
    return {
        **inherited,
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), inherited.get("PATH", os.defpath))),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        # Each JVM lives for less than a minute: what the second compiler would save comes too late. The code cache of
        # the first one alone is too small for Spark.
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m",
        **extra,
    }


class DagRunner:
    """The process in which all runs of the DAG take place; starting it does not wait.

    :param env: as ``environment`` makes it
    :param dag: the DAG's file, which is named as the DAG is
    :param loads: its tasks that load
    :param log: the process's log, with the logs of all tasks
    """

    def __init__(self, children: Children, env: Mapping[str, str], dag: Path, loads: Sequence[str], log: Path) -> None:
        self._log = log
        self._process = children.start(
            [sys.executable, "-m", RUNNER, str(dag), dag.stem, *loads],
            env=env,
            log=log,
            cwd=log.parent,
            ask=True,
            listen=True,
        )

    @property
    def pid(self) -> int:
        """The number of the process, in which tasks run, too."""
        return self._process.pid

    def kill(self) -> None:
        """Kill the process as the system does when memory is short: nothing of it runs any more."""
        self._process.kill()

    def wait_until_ready(self) -> dict[str, Any]:
        """Wait for the metadata database and the DAG.

        :return: ``packages``: the jars that the DAG names
        :raises CommandError: if the process ends before
        """
        return self._next()

    def run(
        self, on_deferral: Callable[[], None] = lambda: None, conf: Mapping[str, Any] | None = None
    ) -> dict[str, dict[str, Any]]:
        """Run the DAG once.

        :param on_deferral: called when a task has begun to wait in a trigger
        :param conf: the DAG's parameters that are to be others than its own
        :return: the summaries that the loads pushed, by task
        :raises CommandError: if the run fails, or the process has ended
        """
        # of one that has ended nothing more can be read, which is told then
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(conf or {}), file=self._process.stdin, flush=True)
        while (event := self._next())["event"] == "deferred":
            on_deferral()
        summaries: dict[str, dict[str, Any]] = event["summaries"]
        if event["state"] != "success":
            failed = {task: summaries.get(task) for task in event["failed"]}
            raise CommandError(f"{explain(self._log.read_text(errors='replace'), failed)}; see {self._log}")
        return summaries

    def _next(self) -> dict[str, Any]:
        line = self._process.stdout.readline() if self._process.stdout else ""
        # a line without an end is what one that was killed had said so far
        if not line.endswith("\n"):
            raise CommandError(f"Airflow ended with exit code {self._process.wait()}; see {self._log}")
        event: dict[str, Any] = json.loads(line)
        return event


def explain(log: str, failed: Mapping[str, Mapping[str, Any] | None]) -> str:
    """Why a run failed, in one line.

    :param log: of Airflow and Spark
    :param failed: the tasks that failed, each with the summary that it pushed if it came so far
    """
    if any(sign in log for sign in _UNRESOLVED):
        return "Spark could not download its jars from Maven Central, which the first run needs the network for"
    reasons = "; ".join(_reason(task, summary or {}) for task, summary in failed.items())
    return f"the DAG run failed: {reasons}" if reasons else "the DAG run failed"


def _reason(task: str, summary: Mapping[str, Any]) -> str:
    errors = [(entry["table"], entry["error"]) for entry in summary.get("tables", ()) if entry["error"]]
    if not errors:
        return task if summary else f"{task} (without a summary)"
    table, error = errors[0]
    others = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{task}: {table}: {' '.join(error.removeprefix(f'{table}: ').split())[:_LONGEST]}{others}"
