"""The demo's Airflow process: makes its metadata database, and runs one DAG once for each line that it is sent.

The line is the run's configuration as JSON. It answers with lines of JSON: ``{"event": "ready", "packages"}`` once,
then for each run ``{"event": "deferred"}`` when a task begins to wait in a trigger, and ``{"event": "run", "state",
"summaries", "failed"}`` at the end: load to its summary, for those that came so far, and the tasks that failed. All
else goes to standard error.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import IO, Any

_DEFERRED = "running trigger in line"


class _DeferralEvents(logging.Handler):
    """Turns Airflow's own log line about a deferral into an event: the database does not show it during dag.test()."""

    def __init__(self, answers: IO[str]) -> None:
        super().__init__()
        self._answers = answers

    def emit(self, record: logging.LogRecord) -> None:
        if _DEFERRED in record.getMessage():
            _say(self._answers, event="deferred")


def _say(answers: IO[str], **event: Any) -> None:
    print(json.dumps(event), file=answers, flush=True)


def _read_commands(commands: queue.Queue[str]) -> None:
    for line in sys.stdin:
        commands.put(line)
    # The demo has ended or is gone, and with it goes what was started for it. Airflow's own handler of SIGTERM would
    # let this process live on.
    os.killpg(os.getpgrp(), signal.SIGTERM)
    os._exit(0)


def _find_dag(path: str, dag_id: str) -> Any:
    from airflow.dag_processing.dagbag import BundleDagBag

    # Only the bundle's own bag finds the modules beside a DAG file.
    bag = BundleDagBag(path, bundle_path=Path(path).parent, bundle_name="dags-folder")
    if bag.import_errors:
        raise SystemExit("\n".join(bag.import_errors.values()))
    return bag.dags[dag_id]


def _summaries(run: Any, loads: list[str]) -> dict[str, Any]:
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    query = XComModel.get_many(run_id=run.run_id, key="summary", task_ids=loads, dag_ids=run.dag_id)
    with create_session() as session:
        rows: Any = session.scalars(query)
        found = {row.task_id: XComModel.deserialize_value(row) for row in rows}
    return {load: found[load] for load in loads if load in found}


def _failed(run: Any) -> list[str]:
    from airflow.models.dagrun import DagRun
    from airflow.utils.state import TaskInstanceState

    found = DagRun.fetch_task_instances(run.dag_id, run.run_id, state=TaskInstanceState.FAILED)
    return sorted(instance.task_id for instance in found)


def _packages(dag: Any, loads: list[str]) -> str:
    """The jars that the loads name, each once."""
    named = [package for load in loads for package in dag.get_task(load).packages.split(",")]
    return ",".join(dict.fromkeys(named))


def main(path: str, dag_id: str, *names: str) -> None:
    """Serve until standard input ends.

    :param path: the DAG's file
    :param names: the tasks that push summaries
    """
    loads = list(names)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    commands: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read_commands, args=(commands,), daemon=True).start()

    from airflow.utils.db import upgradedb

    upgradedb()
    dag = _find_dag(path, dag_id)
    logging.getLogger("airflow.sdk.definitions.dag").addHandler(_DeferralEvents(answers))
    _say(answers, event="ready", packages=_packages(dag, loads))
    while True:
        run = dag.test(run_conf=json.loads(commands.get()))
        _say(answers, event="run", state=str(run.state), summaries=_summaries(run, loads), failed=_failed(run))


if __name__ == "__main__":
    main(*sys.argv[1:])
