"""The scenario ``copy``: a big table is copied over several runs, paused, killed and resumed; then a gap heals."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from typing import Any

from airflow_provider_mssql_cdc.cli.demo import lake, report, visits, visits_lake
from airflow_provider_mssql_cdc.cli.demo.compare import compare, read_source
from airflow_provider_mssql_cdc.cli.demo.crash import Crash
from airflow_provider_mssql_cdc.cli.demo.play import DATABASE, result_of
from airflow_provider_mssql_cdc.cli.demo.visits import EVENTS, VISITS
from airflow_provider_mssql_cdc.cli.exit import CommandError

_CHUNK = "mssql_cdc/copies/*/*/chunk-*"
_MOST_RUNS = 20
_LOST = 50


class Copying(Crash):
    """The demo with one big table and a DAG of its own. After each run cleanup removes all that the run has kept."""

    dag_id = "big_table"
    history = "web_visits_history"
    _purged = ""
    reader = visits_lake.__name__

    def find_dags(self) -> Path:
        """The folder of the demo's own DAGs."""
        return Path(__file__).with_name("dags")

    def more_settings(self) -> dict[str, str]:
        """How large the table is."""
        return {"MSSQL_CDC_DEMO_ROWS": str(self._rows)}

    def prepare(self) -> None:
        """Fill the table, while Airflow makes its metadata database."""
        self.visitors = visits.Visitors(self._connect, self._rows)
        self._stack.callback(self.visitors.stop)
        with self._reporter.step(f"A table in the SQL Server stand-in, {self._rows:,} rows, CDC enabled"):
            visits.build(self.sandbox, DATABASE, self._rows)
            self.visitors.mark()
        with self._reporter.step("Airflow with a home of its own"):
            self.packages = self.runner.wait_until_ready()["packages"]

    def load_first(self) -> None:
        """Copy the table, with changes all the time: the copy is paused, resumed, killed, and goes on."""
        with self.run_step("the copy begins") as notes:
            self._copy(notes, ends=False)
        self.visitors.start()
        self._ask("pause")
        with self.run_step("it is paused, and the changes are kept") as notes:
            self._copy(notes, ends=False)
        self._clean_up()
        self._ask("resume")
        with self.run_step("it goes on, and Spark is killed"), self._killed(_CHUNK, self._kill_spark):
            self.runner.run()
        self._clean_up()
        self._copy_to_its_end("it goes on")

    def load_changes(self) -> None:
        """Lose changes, and let the gap heal by a copy, with changes all the time."""
        self.visitors.stop()
        self._wait_for_all()
        with self.run_step("all changes") as notes:
            self._run(notes)
        with self._reporter.step("Changes that are purged before any run sees them") as notes:
            self.visitors.change(_LOST, noted=False)
            self._clean_up(self._wait_for_all())
            notes.append(f"{_LOST} transactions")
        with self.run_step("a copy heals the gap") as notes:
            self._copy(notes, ends=False)
        self.visitors.start()
        self._copy_to_its_end("it goes on")

    def load_rest(self) -> None:
        """Let the capture reach the end of the log, and run the DAG for the last time."""
        with self._reporter.step("The visitors leave, and the capture reads the rest of the log") as notes:
            self.visitors.stop()
            self._wait_for_all()
            notes.append(f"{self.visitors.commits:,} transactions")
        with self.run_step("the rest") as notes:
            self._lake_reader = self._start_lake_reader()
            self._run(notes)

    def compare(self) -> list[dict[str, Any]]:
        """Compare the table with its targets, and the changes with those that the visitors have noted.

        :raises CommandError: if one side cannot be read
        """
        with self._reporter.step("Comparing all rows, columns and changes") as notes:
            with self._lake_exported(), contextlib.closing(self._connect()) as connection:
                source = read_source(connection, VISITS.full_name, VISITS.arrow)
            found = {
                shape: compare(source, lake.read_export(self._export, shape), VISITS.arrow, VISITS.key)
                for shape in ("mirror", "history")
            }
            there = lake.read_export(self._export, "events")
            found["events"] = compare(self.visitors.noted(), there, EVENTS, ("visit_id", "nth"))
            notes.append(f"{len(source):,} rows, {there.num_rows:,} changes")
        return [result_of(VISITS.full_name, report.add_up(self.runs)[VISITS.full_name], found)]

    def _copy_to_its_end(self, what: str) -> None:
        for _ in range(_MOST_RUNS):
            with self.run_step(what) as notes:
                if self._copy(notes):
                    return
            self._clean_up()
        raise CommandError(f"the copy did not come to its end in {_MOST_RUNS} runs")

    def _copy(self, notes: list[str], *, ends: bool | None = None) -> bool:
        """Run the DAG; whether the copy is at its end.

        :param ends: whether it is to be
        :raises CommandError: if it is otherwise
        """
        self._run(notes)
        events = [event for event in self.runs[-1]["copies"] if event["event"] != "IN_PROGRESS"]
        notes.extend(event["event"] for event in events)
        (table,) = self.runs[-1]["tables"]
        ended = bool(table["status"] != "copying")
        if ends is not None and ended is not ends:
            raise CommandError(f"the run left the table {table['status']}: {table['reason']}")
        if not ended:
            notes.append(table["reason"].partition(": ")[2].partition(" are ")[0])
        return ended

    def _ask(self, action: str) -> None:
        """Say what is to become of the copy, as a person does."""
        with self._reporter.step(f"mssql-cdc copy {action}"):
            command = ["mssql-cdc", "copy", action, "--dag", self.dag_id, "--task", "load"]
            done = subprocess.run(command, env=self._env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CommandError(f"{' '.join(command)}: {done.stderr.strip().splitlines()[-1]}")

    def _clean_up(self, upto: str | None = None) -> None:
        """Purge all changes up to a position, by default the cut of the last run that told of one."""
        mark = upto or str(self.runs[-1]["upto"])
        if mark != self._purged:
            self.sandbox.execute(
                f"EXEC sys.sp_cdc_cleanup_change_table N'web_visits', {mark}, @threshold = 100000", database=DATABASE
            )
            self._purged = mark

    def _wait_for_all(self) -> str:
        """Wait until the capture has reached a transaction that is made now; its position."""
        return self._wait_for_capture("cdc.web_visits_CT", "visit_id", self.visitors.mark())
