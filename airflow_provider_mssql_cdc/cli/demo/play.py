"""The demo's plot: fill a shop, load it three times while it changes, and compare."""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from airflow_provider_mssql_cdc.cli.demo import airflow_home, lake, report, shop
from airflow_provider_mssql_cdc.cli.demo.compare import Comparison, compare, read_events, read_source
from airflow_provider_mssql_cdc.cli.demo.prerequisites import check_java, find_dags
from airflow_provider_mssql_cdc.cli.demo.processes import Children
from airflow_provider_mssql_cdc.cli.demo.writer import Writer
from airflow_provider_mssql_cdc.cli.exit import EXIT_DIFFERENT, EXIT_OK, CommandError
from airflow_provider_mssql_cdc.cli.sandbox import open_sandbox

DATABASE = "shop"

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_POLL = 0.05
_CAPTURE_TIMEOUT = 60.0
_COMMITS_BESIDE_COPY = 60
_STAGED = "mssql_cdc/*/staged"


class Demo:
    """Everything that runs during the demo; all of it ends with the ``with`` statement.

    :param folder: for lake, Airflow home, exports and logs
    :param rows: that the shop starts with
    :param port: of the sandbox, 0 for a free one
    """

    def __init__(self, folder: Path, *, rows: int, reporter: report.Reporter, port: int = 0) -> None:
        self.folder, self.warehouse, self.logs = folder, folder / "lake", folder / "logs"
        self._rows, self._reporter, self._port = rows, reporter, port
        self._airflow_home = folder / "airflow"
        self._export = folder / "export"
        self._lake_reader: subprocess.Popen[str] | None = None
        self._stack = ExitStack()
        self.packages = ""
        self.runs: list[dict[str, Any]] = []

    def __enter__(self) -> Demo:
        with ExitStack() as stack:
            self.logs.mkdir(parents=True)
            temporary = self.folder / "tmp"
            temporary.mkdir()
            self.sandbox = stack.enter_context(
                open_sandbox(host="127.0.0.1", port=self._port, database=DATABASE, capture_interval=0.2)
            )
            self.children = stack.enter_context(Children())
            self.writer = Writer(self._connect, self._rows)
            stack.callback(self.writer.close)
            dags = find_dags()
            self.settings = airflow_home.settings(self._airflow_home, dags, self.warehouse)
            self._env = airflow_home.environment(
                {
                    **self.settings,
                    "AIRFLOW_CONN_MSSQL_DEFAULT": self.sandbox.connection_uri(DATABASE),
                    # what a process that is ended leaves behind goes with the folder
                    "TMPDIR": str(temporary),
                }
            )
            self._runner = airflow_home.DagRunner(self.children, self._env, dags, self.logs / "airflow.log")
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _connect(self) -> Any:
        import pymssql

        return pymssql.connect(
            server=self.sandbox.host,
            port=str(self.sandbox.port),
            user=self.sandbox.user,
            password=self.sandbox.password,
            database=DATABASE,
        )

    def prepare(self) -> None:
        """Fill the shop, while Airflow makes its metadata database."""
        with self._reporter.step(f"Shop database in the SQL Server stand-in, {self._rows:,} rows, CDC enabled"):
            shop.build(self.sandbox, DATABASE, self._rows)
        with self._reporter.step("Airflow with a home of its own"):
            self.packages = self._runner.wait_until_ready()["packages"]

    def load_first(self) -> None:
        """Run the DAG for the first time, while the shop changes until the copy of its tables has begun."""
        with self._reporter.step("DAG run 1: first load, while the shop changes") as notes, self._first_customers():
            self._run(notes)

    def load_changes(self) -> None:
        """Run the DAG again: its sensor finds nothing, waits, and wakes as the shop changes again."""
        with self._reporter.step("DAG run 2: changes, as they are made") as notes:
            self._run(notes, on_deferral=self.writer.start)

    def load_rest(self) -> None:
        """Close the shop, let the capture reach the end of the log, and run the DAG for the last time."""
        with self._reporter.step("The shop closes, and the capture reads the rest of the log") as notes:
            self.writer.stop()
            self._wait_for_capture(self.writer.last_order())
            notes.append(f"{self.writer.commits:,} transactions, and {self.writer.rollbacks:,} rolled back")
        with self._reporter.step("DAG run 3: the rest") as notes:
            # Spark's start takes longer than the comparison itself.
            self._lake_reader = self._start_lake_reader()
            self._run(notes)

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
        while not over.wait(_POLL) and not any(self._airflow_home.glob(_STAGED)):
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

        summary = self._runner.run(note)
        self.runs.append({**summary, "deferred": deferred.is_set()})
        if deferred.is_set():
            notes.append("the sensor waited in a trigger")
        events = sum(entry.get("events", 0) for entry in summary["tables"])
        copied = sum(entry.get("copied", 0) for entry in summary["tables"])
        notes.append((f"{copied:,} rows copied, " if copied else "") + f"{events:,} events, to {summary['upto']}")

    def _wait_for_capture(self, order_id: int) -> None:
        """Wait until the capture has reached the transaction that inserted an order, which was the last."""
        deadline = time.monotonic() + _CAPTURE_TIMEOUT
        with contextlib.closing(self._connect()) as connection, connection.cursor() as cursor:
            while True:
                cursor.execute(f"SELECT COUNT(*) FROM cdc.sales_orders_CT WHERE order_id = {order_id}")
                if cursor.fetchone()[0]:
                    return
                if time.monotonic() > deadline:
                    raise CommandError(f"the capture did not reach the last change in {_CAPTURE_TIMEOUT:.0f} s")
                time.sleep(_POLL)

    def compare(self) -> list[dict[str, Any]]:
        """Compare every table, and return what became of each.

        :raises CommandError: if one side cannot be read
        """
        with self._reporter.step("Comparing all rows and columns of source and lake") as notes:
            reader = self._lake_reader or self._start_lake_reader()
            with contextlib.suppress(BrokenPipeError):
                print("now", file=reader.stdin, flush=True)
            source = self._read_source()
            if reader.wait() != 0:
                raise CommandError(f"the lake could not be read; see {self.logs / 'lake.log'}")
            events = self._read_events()
            totals = report.add_up(self.runs)
            results = []
            for table in shop.TABLES:
                found = {
                    shape: compare(
                        source[table.full_name], lake.read_export(self._export, table, shape), table.arrow, table.key
                    )
                    for shape in ("mirror", "history")
                }
                there = lake.read_export(self._export, table, "events")
                found["events"] = compare(events[table.full_name], there, table.events, tuple(shop.EVENT))
                results.append(_result(table.full_name, totals[table.full_name], found))
            notes.append(f"{sum(result['rows'] for result in results):,} rows")
        return results

    def _start_lake_reader(self) -> subprocess.Popen[str]:
        self._export.mkdir()
        return self.children.start(
            [sys.executable, "-m", lake.__name__, str(self.warehouse), self.packages, str(self._export)],
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
                (low,) = lake.read_export(self._export, table, "copied").column("low").to_pylist()
                changes = f"cdc.[{table.schema}_{table.name}_CT]"
                result[table.full_name] = read_events(connection, changes, table.events, low)
        return result


def _result(table: str, totals: dict[str, Any], found: dict[str, Comparison]) -> dict[str, Any]:
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


def run(arguments: argparse.Namespace) -> int:
    """Run the demo.

    :return: 0 if source and lake are equal, else 1
    :raises KeyboardInterrupt: on SIGINT or SIGTERM, when everything has ended
    """
    interrupted = threading.Event()

    def interrupt(number: int, frame: object) -> NoReturn:
        interrupted.set()
        # A second Ctrl-C must not hinder the first one's clean-up.
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in _SIGNALS:
        signal.signal(number, interrupt)
    try:
        return _play(arguments)
    except Exception as error:
        # DuckDB makes an error of its own of an interrupt that comes while it works.
        if interrupted.is_set():
            raise KeyboardInterrupt from error
        raise


def _play(arguments: argparse.Namespace) -> int:
    started = time.monotonic()
    check_java()
    if arguments.json:
        _check_writable(Path(arguments.json))
    reporter = report.Reporter()
    with _folder(arguments.keep) as folder:
        with Demo(folder, rows=arguments.rows, reporter=reporter, port=arguments.port) as demo:
            demo.prepare()
            demo.load_first()
            demo.load_changes()
            demo.load_rest()
            tables = demo.compare()
        seconds = round(time.monotonic() - started, 1)
        if arguments.json:
            summary = {"tables": tables, "seconds": seconds, "runs": demo.runs}
            Path(arguments.json).write_text(json.dumps(summary, indent=1) + "\n")
        reporter.line()
        for line in report.table_lines(tables):
            reporter.line(line)
        reporter.line()
        if arguments.keep:
            for line in report.look_lines(folder, demo.settings, demo.warehouse, demo.packages):
                reporter.line(line)
        else:
            reporter.line("To look at lake, DAG and checkpoints, run it with --keep DIR.")
        return conclude(tables, reporter, seconds)


def conclude(tables: Sequence[dict[str, Any]], reporter: report.Reporter, seconds: float) -> int:
    """Say whether all is equal, and return the exit code."""
    wrong = [table for table in tables if not table["equal"]]
    for table in wrong:
        for difference in table["differences"]:
            reporter.line(f"{table['table']}: {difference}")
    if wrong:
        reporter.line(f"DIFFERENT: {', '.join(table['table'] for table in wrong)} ({seconds} s)")
        return EXIT_DIFFERENT
    reporter.line(f"Source and lake are equal. ({seconds} s)")
    return EXIT_OK


def _check_writable(summary: Path) -> None:
    """Find out now, not after minutes, whether the summary can be written."""
    if not summary.absolute().parent.is_dir():
        raise CommandError(f"--json {summary}: there is no such folder")
    try:
        summary.open("a").close()
    except OSError as error:
        raise CommandError(f"--json {summary}: {error.strerror}") from error


@contextmanager
def _folder(keep: str | None) -> Iterator[Path]:
    if keep is None:
        folder = Path(tempfile.mkdtemp(prefix="mssql-cdc-demo-"))
        try:
            yield folder
        except CommandError:
            # Its message names a log in there.
            raise
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        shutil.rmtree(folder, ignore_errors=True)
        return
    folder = Path(keep).absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CommandError(f"--keep {folder}: it exists and is not an empty folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"--keep {folder}: {error.strerror}") from error
    yield folder
