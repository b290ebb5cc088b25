"""The scenario ``crash``: Spark is killed in mid-window, then the task between commit and checkpoint."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil

from airflow_provider_mssql_cdc.cli.demo.play import STAGED, Demo
from airflow_provider_mssql_cdc.cli.exit import CommandError
from airflow_provider_mssql_cdc.core.checkpoint import KEY_PREFIX

_RECEIPT = "mssql_cdc/*/receipt.json"
_SPARK = "org.apache.spark.deploy.SparkSubmit"
_POLL = 0.01


class Crash(Demo):
    """The demo without a run for the changes: two are killed on the way, and the last one goes on."""

    def load_changes(self) -> None:
        """Run the DAG until Spark is killed, and again until the task is.

        :raises CommandError: if the kills left other checkpoints than those of the first load
        """
        before = self._checkpoints()
        with self._killed(STAGED, self._kill_spark):
            super().load_changes()
        self._reporter.line("Spark was killed in mid-window")
        with (
            self.run_step("the task is killed when the lake has it all, before its checkpoints move"),
            self._killed(_RECEIPT, self.runner.kill),
        ):
            self.runner.run()
        if self._checkpoints() != before:
            raise CommandError("the checkpoints moved, though the task was to be killed before that")
        self._reporter.line(f"The {len(before)} checkpoints are those of the first load")
        with self._reporter.step("Airflow again"):
            self.start_airflow()
            self.runner.wait_until_ready()

    @contextmanager
    def _killed(self, sign: str, kill: Callable[[], None]) -> Iterator[None]:
        """Kill as soon as a new file comes, and expect that the run fails thereby.

        :param sign: pattern of the file in the Airflow home
        :param kill: what is to be killed
        :raises CommandError: if the run ended before there was anything to kill, or failed for another reason
        """
        before, over, killed = set(self._airflow_home.glob(sign)), threading.Event(), threading.Event()

        def watch() -> None:
            while not over.wait(_POLL):
                if set(self._airflow_home.glob(sign)) - before:
                    killed.set()
                    kill()
                    return

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        except CommandError:
            if not killed.is_set():
                raise
        else:
            raise CommandError("the DAG run did not fail, though it was to be killed")
        finally:
            over.set()
            watcher.join()

    def _checkpoints(self) -> list[tuple[str, str]]:
        """The checkpoints as Airflow's database holds them, which nothing of Airflow is needed to compare."""
        with contextlib.closing(sqlite3.connect(self._airflow_home / "airflow.db")) as database:
            found = database.execute("SELECT key, val FROM variable ORDER BY key").fetchall()
        return [(key, value) for key, value in found if key.startswith(KEY_PREFIX)]

    def _kill_spark(self) -> None:
        for process in psutil.Process(self.runner.pid).children(recursive=True):
            # one that has just ended by itself has no command line any more
            with contextlib.suppress(psutil.NoSuchProcess):
                if _SPARK in process.cmdline():
                    process.kill()
