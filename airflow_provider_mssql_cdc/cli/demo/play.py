"""The demo's plot: fill a shop, load it three times while it changes, and compare."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from airflow_provider_mssql_cdc.cli.demo import airflow_home, lake, report, shop
from airflow_provider_mssql_cdc.cli.demo.compare import Comparison, compare, read_events, read_source
from airflow_provider_mssql_cdc.cli.demo.expected import copied_at
from airflow_provider_mssql_cdc.cli.demo.prerequisites import find_dags
from airflow_provider_mssql_cdc.cli.demo.processes import Children
from airflow_provider_mssql_cdc.cli.demo.writer import Writer
from airflow_provider_mssql_cdc.cli.exit import CommandError
from airflow_provider_mssql_cdc.cli.sandbox import open_sandbox
from airflow_provider_mssql_cdc.sandbox import Sandbox

DATABASE = "shop"

_POLL = 0.05
_CAPTURE_TIMEOUT = 60.0
_COMMITS_BESIDE_COPY = 60
STAGED = "mssql_cdc/*/staged"
"""The folder of staged rows, in the Airflow home: it is there while Spark reads a window, and until all is loaded."""


class Demo:
    """Everything that runs during the demo; all of it ends with the ``with`` statement.

    :param folder: for lake, Airflow home, exports and logs
    :param rows: that the shop starts with
    :param port: of the sandbox, 0 for a free one
    """

    dag_id = "shop_incremental"
    loads: tuple[str, ...] = ("load",)
    """The DAG's tasks that load."""
    history = "sales_orders_history"
    """A table of the lake to look at."""
    reader = lake.__name__
    """The module that reads the lake, in a process of its own."""
    edition = "Developer"
    """Of the server."""
    sides = "Source and lake"
    """What is compared, for the last line."""

    def __init__(self, folder: Path, *, rows: int, reporter: report.Reporter, port: int = 0) -> None:
        self.folder, self.warehouse, self.logs = folder, folder / "lake", folder / "logs"
        self._rows, self._reporter, self._port = rows, reporter, port
        self._airflow_home = folder / "airflow"
        self._export = folder / "export"
        self._lake_reader: subprocess.Popen[str] | None = None
        self._stack = ExitStack()
        self._started_runs = 0
        self.packages = ""
        self.conf: dict[str, Any] = {}
        self.runs: list[dict[str, Any]] = []
        self.left_out: dict[str, str] = {}

    def __enter__(self) -> Demo:
        with ExitStack() as stack:
            self.logs.mkdir(parents=True)
            temporary = self.folder / "tmp"
            temporary.mkdir()
            self.sandbox = stack.enter_context(
                open_sandbox(
                    host="127.0.0.1", port=self._port, database=DATABASE, capture_interval=0.2, edition=self.edition
                )
            )
            self.children = stack.enter_context(Children())
            self.writer = Writer(self._connect, self._rows)
            stack.callback(self.writer.close)
            dags = self.find_dags()
            self.settings = airflow_home.settings(self._airflow_home, dags, self.warehouse)
            self._env = airflow_home.environment(
                {
                    **self.settings,
                    "AIRFLOW_CONN_MSSQL_DEFAULT": self.sandbox.connection_uri(DATABASE),
                    # what a process that is ended leaves behind goes with the folder
                    "TMPDIR": str(temporary),
                    **self.more_settings(),
                    **self._start_more(stack),
                }
            )
            self._dags = dags
            self.start_airflow()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def find_dags(self) -> Path:
        """The folder of the scenario's DAG.

        :raises CommandError: if it cannot be found
        """
        return find_dags()

    def more_settings(self) -> dict[str, str]:
        """Environment variables that the scenario's DAG reads."""
        return {}

    def _start_more(self, stack: ExitStack) -> dict[str, str]:
        """Start what a scenario has beside.

        :param stack: ends it
        :return: environment variables by which the loads find it
        """
        return {}

    def _connect(self) -> Any:
        return connect_to(self.sandbox, DATABASE)

    def start_airflow(self) -> None:
        """Start the process that runs the DAG, without waiting for it."""
        dag = self._dags / f"{self.dag_id}.py"
        self.runner = airflow_home.DagRunner(self.children, self._env, dag, self.loads, self.logs / "airflow.log")

    def prepare(self) -> None:
        """Fill the shop, while Airflow makes its metadata database."""
        with self._reporter.step(f"Shop database in the SQL Server stand-in, {self._rows:,} rows, CDC enabled"):
            shop.build(self.sandbox, DATABASE, self._rows)
        with self._reporter.step("Airflow with a home of its own"):
            self.packages = self.runner.wait_until_ready()["packages"]

    def load_first(self) -> None:
        """Run the DAG for the first time, while the shop changes until the copy of its tables has begun."""
        with self.run_step("first load, while the shop changes") as notes, self._first_customers():
            self._run(notes)

    def load_changes(self) -> None:
        """Run the DAG again: its sensor finds nothing, waits, and wakes as the shop changes again."""
        with self.run_step("changes, as they are made") as notes:
            self._run(notes, on_deferral=self.writer.start)

    def load_rest(self) -> None:
        """Close the shop, let the capture reach the end of the log, and run the DAG for the last time."""
        with self._reporter.step("The shop closes, and the capture reads the rest of the log") as notes:
            self.writer.stop()
            self._wait_for_capture("cdc.sales_orders_CT", "order_id", self.writer.last_order())
            notes.append(f"{self.writer.commits:,} transactions, and {self.writer.rollbacks:,} rolled back")
        with self.run_step("the rest") as notes:
            # Spark's start takes longer than the comparison itself.
            self._lake_reader = self._start_lake_reader()
            self._run(notes)

    @contextmanager
    def run_step(self, what: str) -> Iterator[list[str]]:
        """Say that the DAG is run once more, and at the end how long it took."""
        self._started_runs += 1
        with self._reporter.step(f"DAG run {self._started_runs}: {what}") as notes:
            yield notes

    @contextmanager
    def _first_customers(self) -> Iterator[None]:
        over = threading.Event()
        customers = threading.Thread(target=self._change_until_copied, args=(over,), daemon=True)
        self.writer.start()
        customers.start()
        try:
            yield
        finally:
            over.set()
            customers.join()
        self.writer.stop()

    def _change_until_copied(self, over: threading.Event) -> None:
        """Go on writing until rows that the job copies arrive, and a while longer.

        The capture stands still during that while. So no table's first load can end in it, the changes of all that
        time belong to the first load, and the second run finds nothing: its sensor has to wait.
        """
        while not over.wait(_POLL) and not any(self._airflow_home.glob(STAGED)):
            pass
        self.sandbox.capture.hold()
        try:
            enough = self.writer.commits + _COMMITS_BESIDE_COPY
            while self.writer.running and self.writer.commits < enough and not over.wait(_POLL):
                pass
            self.writer.pause()
        finally:
            self.sandbox.capture.release()

    def _run(self, notes: list[str], on_deferral: Callable[[], None] = lambda: None) -> None:
        deferred = threading.Event()

        def note() -> None:
            deferred.set()
            on_deferral()

        summaries = self.runner.run(note, self.conf)
        if deferred.is_set():
            notes.append("the sensor waited in a trigger")
        self.runs += [{"load": load, **each, "deferred": deferred.is_set()} for load, each in summaries.items()]
        entries = [entry for summary in summaries.values() for entry in summary["tables"]]
        events = sum(entry.get("events", 0) for entry in entries)
        copied = sum(entry.get("copied", 0) for entry in entries)
        upto = " and ".join(dict.fromkeys(summary["upto"] for summary in summaries.values()))
        notes.append((f"{copied:,} rows copied, " if copied else "") + f"{events:,} events, to {upto}")

    def _wait_for_capture(
        self, change_table: str, column: str, key: int, connect: Callable[[], Any] | None = None
    ) -> str:
        """Wait until the capture has reached the transaction that inserted a row, which was the last; its position.

        :param connect: to another server than the shop's
        :raises CommandError: if it does not
        """
        deadline = time.monotonic() + _CAPTURE_TIMEOUT
        query = f"SELECT CONVERT(varchar(22), [__$start_lsn], 1) FROM {change_table} WHERE {column} = {key}"
        with contextlib.closing((connect or self._connect)()) as connection, connection.cursor() as cursor:
            while time.monotonic() < deadline:
                cursor.execute(query)
                if found := cursor.fetchone():
                    return str(found[0])
                connection.rollback()
                time.sleep(_POLL)
        raise CommandError(f"the capture did not reach the last change in {_CAPTURE_TIMEOUT:.0f} s")

    def compare(self) -> list[dict[str, Any]]:
        """Compare every table, and return what became of each; the lake is read anew each time.

        :raises CommandError: if one side cannot be read
        """
        with self._reporter.step("Comparing all rows and columns of source and lake") as notes:
            with self._lake_exported():
                source = self._read_source()
            events = self._read_events()
            totals = report.add_up(self.runs)
            results = []
            for table in shop.TABLES:
                found = {
                    shape: compare(
                        source[table.full_name],
                        lake.read_export(self._export, f"{table.full_name}.{shape}"),
                        table.arrow,
                        table.key,
                    )
                    for shape in ("mirror", "history")
                }
                there = lake.read_export(self._export, f"{table.full_name}.events")
                found["events"] = compare(events[table.full_name], there, table.events, tuple(shop.EVENT))
                results.append(result_of(table.full_name, totals[table.full_name], found))
            notes.append(f"{sum(result['rows'] for result in results):,} rows")
        return results

    @contextmanager
    def _lake_exported(self) -> Iterator[None]:
        """Have the lake read anew, beside what the ``with`` statement does.

        :raises CommandError: if it cannot be read
        """
        reader = self._lake_reader or self._start_lake_reader()
        with contextlib.suppress(BrokenPipeError):
            print("now", file=reader.stdin, flush=True)
        yield
        if reader.wait() != 0:
            raise CommandError(f"the lake could not be read; see {self.logs / 'lake.log'}")
        self._lake_reader = None

    def _start_lake_reader(self) -> subprocess.Popen[str]:
        self._export.mkdir(exist_ok=True)
        return self.children.start(
            [sys.executable, "-m", self.reader, str(self.warehouse), self.packages, str(self._export)],
            env=self._env,
            log=self.logs / "lake.log",
            cwd=self.logs,
            ask=True,
        )

    def _read_source(self) -> dict[str, list[tuple[Any, ...]]]:
        with contextlib.closing(self._connect()) as connection:
            return {table.full_name: read_source(connection, table.full_name, table.arrow) for table in shop.TABLES}

    def _read_events(self) -> dict[str, list[tuple[Any, ...]]]:
        result = {}
        with contextlib.closing(self._connect()) as connection:
            for table in shop.TABLES:
                low = copied_at(table, self.runs)
                changes = f"cdc.[{table.schema}_{table.name}_CT]"
                result[table.full_name] = read_events(connection, changes, table.events, low)
        return result


def connect_to(server: Sandbox, database: str) -> Any:
    """Open a DB-API connection without autocommit."""
    import pymssql

    return pymssql.connect(
        server=server.host, port=str(server.port), user=server.user, password=server.password, database=database
    )


def result_of(table: str, totals: dict[str, Any], found: dict[str, Comparison]) -> dict[str, Any]:
    """What became of a table.

    :param totals: of its loads
    :param found: what was compared: ``mirror``, ``events`` and others
    """
    return {
        "table": table,
        **totals,
        "rows": found["mirror"].source_rows,
        "history_events": found["events"].source_rows,
        "equal": all(comparison.equal for comparison in found.values()),
        "differences": [
            f"{shape}: {example}" for shape, comparison in found.items() for example in comparison.examples
        ],
    }
