"""A whole Airflow on this machine: API server, scheduler, DAG processor and triggerer, with SQLite."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.conftest import LIGHT_JAVA

COMPONENTS = {
    "api-server": ("--host", "127.0.0.1", "--workers", "1"),
    "scheduler": ("--skip-serve-logs",),
    "dag-processor": (),
    "triggerer": ("--skip-serve-logs",),
}
WRITERS = ("scheduler", "dag-processor", "triggerer")


class Deployment:
    """A running Airflow.

    :param home: its home, empty
    :param dags: folder of DAG files
    :param variables: further environment variables
    """

    def __init__(self, home: Path, dags: Path, variables: Mapping[str, str]) -> None:
        port = _free_port()
        self.home, self._api = home, f"http://127.0.0.1:{port}/api/v2"
        self.environment = {
            **os.environ,
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__CORE__FERNET_KEY": "",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db?timeout=30",
            "AIRFLOW__API__PORT": str(port),
            # only this machine can reach it, and only for this test
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__API__SECRET_KEY": secrets.token_hex(16),
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(16),
            "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
            # the files do not change
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "600",
            # these Spark jobs are too short to be worth the second compiler
            "JDK_JAVA_OPTIONS": LIGHT_JAVA,
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
            **variables,
        }
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Deployment:
        self.home.mkdir(parents=True)
        self.run("db", "migrate")
        try:
            self._start(COMPONENTS)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop(COMPONENTS)

    def _start(self, names: Iterable[str]) -> None:
        for name in names:
            with (self.home / f"{name}.log").open("ab") as log:
                self._processes[name] = subprocess.Popen(
                    [sys.executable, "-m", "airflow", name, *COMPONENTS[name]],
                    env=self.environment,
                    cwd=self.home,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )

    def _stop(self, names: Iterable[str]) -> None:
        processes = [self._processes.pop(name) for name in names if name in self._processes]
        for how in (signal.SIGTERM, signal.SIGKILL):
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, how)
            for process in processes:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(15)

    @contextlib.contextmanager
    def still(self) -> Iterator[None]:
        """Stop meanwhile what writes to the database by itself.

        SQLite refuses a transaction at once that has read what another one changed since; commands of Airflow that
        read much before they write do not try again.
        """
        self._stop(WRITERS)
        try:
            yield
        finally:
            self._start(WRITERS)

    def run(self, *arguments: str) -> str:
        """Run an ``airflow`` command and return what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "airflow", *arguments],
            env=self.environment,
            cwd=self.home,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def set_paused(self, dag_id: str, is_paused: bool) -> None:
        """Pause or unpause a DAG."""
        self._call("PATCH", f"/dags/{dag_id}", {"is_paused": is_paused})

    def trigger(self, dag_id: str) -> None:
        """Start a run of a DAG."""
        self._call("POST", f"/dags/{dag_id}/dagRuns", {"logical_date": None})

    def _call(self, method: str, path: str, body: dict[str, Any]) -> None:
        """Ask the API server, as the user interface does; a command of its own would take seconds to start."""
        request = urllib.request.Request(
            self._api + path, json.dumps(body).encode(), {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=60):
            pass

    def is_up(self) -> bool:
        """Whether the API server answers."""
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{self._api}/version", timeout=60):
            return True
        return False

    def query(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Ask the metadata database."""
        with contextlib.closing(sqlite3.connect(self.home / "airflow.db", timeout=30)) as database:
            return database.execute(statement, parameters).fetchall()

    def wait_for(self, what: str, condition: Callable[[], Any], seconds: float = 600) -> Any:
        """What the condition says as soon as that is true; fail with the logs' ends when time is up."""
        deadline, pause = time.monotonic() + seconds, threading.Event()
        while not (found := condition()):
            dead = [name for name, process in self._processes.items() if process.poll() is not None]
            if dead or time.monotonic() > deadline:
                raise AssertionError(f"waited for {what}; ended: {dead}\n" + "\n".join(self.log_ends()))
            pause.wait(0.25)
        return found

    def log_ends(self) -> Iterator[str]:
        """Yield the last lines of each component's and each task's log."""
        for path in sorted(self.home.rglob("*.log")):
            lines = path.read_text(errors="replace").splitlines()
            yield f"--- {path.relative_to(self.home)}\n" + "\n".join(line[:600] for line in lines[-12:])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
