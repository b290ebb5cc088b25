"""The scenario ``schema-change``: columns are added and filled, and others change, while a writer writes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from airflow_provider_mssql_cdc.cli.demo import captured, lake, members, members_lake, report
from airflow_provider_mssql_cdc.cli.demo.captured import Instance, Row
from airflow_provider_mssql_cdc.cli.demo.compare import compare, read_source
from airflow_provider_mssql_cdc.cli.demo.expected import copied_at
from airflow_provider_mssql_cdc.cli.demo.members import ADDED, AT_FIRST, AT_LAST, FAX, GROWN
from airflow_provider_mssql_cdc.cli.demo.play import DATABASE
from airflow_provider_mssql_cdc.cli.demo.shop import EVENT
from airflow_provider_mssql_cdc.cli.demo.targets import Targets, result_of_sink
from airflow_provider_mssql_cdc.cli.exit import CommandError

_MOST_RUNS = 8
_COMMITS_BETWEEN = 5
_POLL = 0.05


class SchemaChange(Targets):
    """The demo with one table, whose columns change, and a DAG of its own, whose loads take new columns by themselves.

    Each change of the columns is a step of ``load_changes``.
    """

    dag_id = "changing_columns"
    history = "sales_members_history"
    reader = members_lake.__name__
    shapes = members_lake.SHAPES

    def find_dags(self) -> Path:
        """The folder of the demo's own DAGs."""
        return Path(__file__).with_name("dags")

    def prepare(self) -> None:
        """Fill the table, while Airflow makes its metadata database."""
        self._told: set[str] = set()
        self._feeds: dict[str, str] = {}
        self._filled: dict[str, int] = {}
        self.clerk = members.Clerk(self._connect, self._rows)
        self._stack.callback(self.clerk.stop)
        with self._reporter.step(f"{GROWN.full_name} in the SQL Server stand-in, {self._rows:,} rows, CDC enabled"):
            members.build(self.sandbox, DATABASE, self._rows)
        with self._reporter.step("Airflow with a home of its own"):
            self.packages = self.runner.wait_until_ready()["packages"]

    def load_first(self) -> None:
        """Run the DAG for the first time, while the writer writes."""
        self.clerk.start()
        self._load("first load, while a writer writes")

    def load_changes(self) -> None:
        """Change the columns, and load, with changes of the rows all the time."""
        self._add_columns()
        self._load_until_shown()
        self._widen_column()
        self._drop_column()

    def load_rest(self) -> None:
        """Let the capture reach the end of the log, and run the DAG for the last time."""
        with self._reporter.step("The writer ends, and the capture reads the rest of the log") as notes:
            self.clerk.stop()
            newest = self._instances()[-1]
            self._wait_for_capture(newest.change_table, "member_id", self.clerk.last_row())
            notes.append(f"{self.clerk.commits:,} transactions")
        self._lake_reader = self._start_lake_reader()
        self._load("the rest")
        for instance in self._instances():
            columns = ", ".join(instance.columns)
            self._reporter.line(f"Capture instance {instance.name} begins at {instance.since}: {columns}")
        for target, rows in self._filled.items():
            self._reporter.line(f"The copy that filled the new columns of {target} had {rows:,} rows")

    def compare(self) -> list[dict[str, Any]]:
        """Compare the table in each target and shape, and return what became of each.

        :raises CommandError: if one side cannot be read
        """
        with self._reporter.step("Comparing source and targets") as notes:
            with self._lake_exported():
                source, first, second = self._read_all()
            results = []
            for target in self.loads:
                runs = [run for run in self.runs if run["load"] == target]
                events = read_by(runs, first, second)
                totals = report.add_up(runs)[GROWN.full_name]
                for shape in self.shapes[target]:
                    there = self._read_target(target, shape)
                    found = {"rows": compare(source, there, GROWN.arrow, GROWN.key)}
                    if shape == "history":
                        held = self._read_target(target, "events")
                        found["events"] = compare(events, held, GROWN.events, tuple(EVENT))
                    results.append(result_of_sink(GROWN, target, shape, totals, found))
            notes.append(f"{sum(result['rows'] for result in results):,} rows")
        return results

    def _add_columns(self) -> None:
        """Add columns, and fill one of them, before any capture instance has them."""
        for statement in members.ADD:
            self._alter(statement)
        self.clerk.learn(ADDED)
        with self._reporter.step(members.BACK_FILL) as notes:
            (counted,) = self.sandbox.execute(f"{members.BACK_FILL}; SELECT @@ROWCOUNT AS n", database=DATABASE)
            (rows,) = counted.column("n").to_pylist()
            notes.append(f"{rows:,} rows, and no event, since no capture instance has the column")
        self._go_on()

    def _widen_column(self) -> None:
        """Give a column a wider type, and write what only that can hold; the last run meets that."""
        self._alter(members.WIDEN)
        self.clerk.learn(GROWN)
        self._go_on()

    def _drop_column(self) -> None:
        """Drop a column that all targets have; the last run meets that, too."""
        self.clerk.learn(AT_LAST)
        self._alter(members.DROP)
        self._go_on()

    def _alter(self, statement: str) -> None:
        with self._reporter.step(f"{statement}, while the writer writes"):
            self.sandbox.execute(statement, database=DATABASE)

    def _go_on(self) -> None:
        """Let the writer go on for a while."""
        enough = self.clerk.commits + _COMMITS_BETWEEN
        while self.clerk.running and self.clerk.commits < enough:
            time.sleep(_POLL)

    def _load_until_shown(self) -> None:
        """Run the DAG until all targets show the new columns.

        :raises CommandError: if they do not come to show them
        """
        targets = list(self.loads)
        self.conf = {"targets": targets[-1:]}
        self._load(f"{targets[-1]} alone: its load makes a capture instance with the new columns")
        self.conf = {"targets": targets}
        for _ in range(_MOST_RUNS):
            for run in self._load("up to the new instance, or by it, with a copy that fills the new columns"):
                for event in run["copies"]:
                    if event["event"] == "COMPLETED":
                        self._filled[run["load"]] = event["rows"]
            if self._filled.keys() == {*targets}:
                return
        raise CommandError(f"not all targets show the new columns after {_MOST_RUNS} runs")

    def _load(self, what: str) -> list[dict[str, Any]]:
        """Run the DAG, and say what the loads said of columns and capture instances; the loads' summaries."""
        before = len(self.runs)
        with self.run_step(what) as notes:
            self._run(notes)
        for run in self.runs[before:]:
            load, (entry,) = run["load"], run["tables"]
            for text in said(run, self._feeds.get(load)):
                line = f"{load}: {text}"
                if line not in self._told:
                    self._reporter.line(f"{'':10}{line}")
                self._told.add(line)
            self._feeds[load] = entry["feed"]
        return self.runs[before:]

    def _instances(self) -> list[Instance]:
        with contextlib.closing(self._connect()) as connection:
            return captured.instances(connection, GROWN)

    def _read_all(self) -> tuple[list[Row], list[Row], list[Row]]:
        """The source, with what rows had last in the column that it lost, and the events of both instances."""
        first, second = self._instances()
        with contextlib.closing(self._connect()) as connection:
            rows = read_source(connection, GROWN.full_name, AT_LAST.arrow)
            by_first, by_second = (captured.events(connection, each, GROWN) for each in (first, second))
            end = captured.dropped_at(connection, GROWN, FAX.name)
        place = AT_FIRST.arrow.names.index(FAX.name)
        at_first = {row[0]: row[place] for row in map(members.first_row, range(1, self._rows + 1))}
        rows = captured.with_dropped(rows, GROWN, FAX.name, at_first, [*by_first, *by_second], end)
        return rows, by_first, by_second

    def _read_target(self, target: str, shape: str) -> pa.Table:
        if target != "postgresql" or self.postgres is None:
            return lake.read_export(self._export, shape)
        return self.postgres.read(members_lake.queries(target, f"shop.{GROWN.schema}_{GROWN.name}")[shape])


def read_by(runs: Sequence[Mapping[str, Any]], first: Sequence[Row], second: Sequence[Row]) -> list[Row]:
    """The events that the loads of a target have read, each by one instance.

    :param runs: their summaries
    :param first: the events of the instance that the first load has read
    :param second: those of the one that it went over to
    """
    entries = [entry for run in runs for entry in run["tables"]]
    read = [window for entry in entries if entry["feed"] == entries[0]["feed"] for window in entry["windows"]]
    low = copied_at(GROWN, runs)
    switch = max((window.strip("(]").split(", ")[1] for window in read), default=low)
    return [
        *(event for event in first if low < event[0] <= switch),
        *(event for event in second if event[0] > switch),
    ]


def said(run: Mapping[str, Any], before: str | None) -> Iterator[str]:
    """Yield what a load's summary says of columns and capture instances.

    :param before: the capture instance that the load's last run has read
    """
    (entry,) = run["tables"]
    for warning in run["warnings"]:
        # which sinks go over to another instance is one line here
        if "was loaded from capture instance" not in warning:
            yield warning.removeprefix(f"{GROWN.full_name}: ")
    if before is not None and entry["feed"] != before:
        yield f"goes over from capture instance {before} to {entry['feed']}"
    for change in run["schema_changes"]:
        names = ", ".join(f"{each['kind']} {each['column']}" for each in change["changes"])
        yield f"schema change at {change['lsn']}: {names}"
