"""The scenario ``crash``: Spark is killed in mid-window, then the task between commit and checkpoint."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

import psutil

from airflow_provider_mssql_cdc.cli.demo.play import STAGED, Demo
from airflow_provider_mssql_cdc.cli.exit import CommandError

_RECEIPT = "mssql_cdc/*/receipt.json"
_SPARK = "org.apache.spark.deploy.SparkSubmit"
_POLL = 0.01


class Crash(Demo):
    """The demo without a run for the changes: two are killed on the way, and the last one goes on."""

    def load_changes(self) -> None:
        """Run the DAG until Spark is killed, and again until the task is."""
        with self.run_step("changes, as they are made; Spark is killed in mid-window"):
            self._run_until_killed(STAGED, self._kill_spark, on_deferral=self.writer.start)
        with self.run_step("the task is killed when the lake has it all, before its checkpoints move"):
            self._run_until_killed(_RECEIPT, self.runner.kill)
        with self._reporter.step("Airflow again"):
            self.start_airflow()
            self.runner.wait_until_ready()

    def _run_until_killed(
        self, sign: str, kill: Callable[[], None], on_deferral: Callable[[], None] = lambda: None
    ) -> None:
        """Run the DAG, and kill as soon as a new file comes.

        :param sign: pattern of the file in the Airflow home
        :param kill: what is to be killed
        :param on_deferral: called when the sensor waits
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
            self.runner.run(on_deferral)
        except CommandError:
            if not killed.is_set():
                raise
        else:
            raise CommandError("the DAG run did not fail, though it was to be killed")
        finally:
            over.set()
            watcher.join()

    def _kill_spark(self) -> None:
        for process in psutil.Process(self.runner.pid).children(recursive=True):
            # one that has just ended by itself has no command line any more
            with contextlib.suppress(psutil.NoSuchProcess):
                if _SPARK in process.cmdline():
                    process.kill()
