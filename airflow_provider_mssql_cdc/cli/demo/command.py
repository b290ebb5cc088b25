"""The command ``mssql-cdc demo``: plays a scenario, compares, and says what came of it."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from airflow_provider_mssql_cdc.cli.demo import report
from airflow_provider_mssql_cdc.cli.demo.copying import Copying
from airflow_provider_mssql_cdc.cli.demo.crash import Crash
from airflow_provider_mssql_cdc.cli.demo.play import Demo
from airflow_provider_mssql_cdc.cli.demo.prerequisites import check_java
from airflow_provider_mssql_cdc.cli.demo.schema_change import SchemaChange
from airflow_provider_mssql_cdc.cli.demo.targets import Targets
from airflow_provider_mssql_cdc.cli.demo.tracking import Tracking
from airflow_provider_mssql_cdc.cli.exit import EXIT_DIFFERENT, EXIT_OK, CommandError

SCENARIOS: dict[str, type[Demo]] = {
    "plain": Demo,
    "crash": Crash,
    "targets": Targets,
    "copy": Copying,
    "schema-change": SchemaChange,
    "change-tracking": Tracking,
}

ROWS = {"copy": 1_000_000, "schema-change": 10_000}
"""That a scenario starts with where that is not said, if not 100,000."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run(arguments: argparse.Namespace) -> int:
    """Run the demo.

    :return: 0 if both sides are equal, else 1
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
    check_java()
    if arguments.json:
        _check_writable(Path(arguments.json))
    folder = _make_folder(arguments.keep)
    try:
        with _told(folder / "logs", interrupted):
            code = _play(arguments, folder)
    except KeyboardInterrupt:
        _clean_up(arguments, folder)
        raise
    # of all else than success it holds what there is to look at
    if code == EXIT_OK:
        _clean_up(arguments, folder)
    return code


def _play(arguments: argparse.Namespace, folder: Path) -> int:
    started = time.monotonic()
    reporter = report.Reporter(sys.stdout)
    rows = arguments.rows or ROWS.get(arguments.scenario, 100_000)
    with SCENARIOS[arguments.scenario](folder, rows=rows, reporter=reporter, port=arguments.port) as demo:
        demo.prepare()
        demo.load_first()
        demo.load_changes()
        demo.load_rest()
        tables = demo.compare()
    seconds = round(time.monotonic() - started, 1)
    if arguments.json:
        summary = {
            "scenario": arguments.scenario,
            "tables": tables,
            "left_out": demo.left_out,
            "seconds": seconds,
            "runs": demo.runs,
        }
        Path(arguments.json).write_text(json.dumps(summary, indent=1) + "\n")
    reporter.line()
    for line in report.table_lines(tables):
        reporter.line(line)
    for target, reason in demo.left_out.items():
        reporter.line(f"{target} was left out: {reason}")
    reporter.line()
    if arguments.keep or not all(table["equal"] for table in tables):
        for line in report.look_lines(folder, demo.settings, demo.warehouse, demo.packages, demo.history):
            reporter.line(line)
    else:
        reporter.line("To look at lake, DAG and checkpoints, run it with --keep DIR.")
    return conclude(tables, reporter, seconds, demo.sides, [*demo.left_out])


def conclude(
    tables: Sequence[dict[str, Any]],
    reporter: report.Reporter,
    seconds: float,
    sides: str = Demo.sides,
    left_out: Sequence[str] = (),
) -> int:
    """Say whether all is equal, and return the exit code."""
    wrong = [table for table in tables if not table["equal"]]
    for table in wrong:
        for difference in table["differences"]:
            reporter.line(f"{report.name(table)}: {difference}")
    if wrong:
        reporter.line(f"DIFFERENT: {', '.join(map(report.name, wrong))} ({seconds} s)")
        return EXIT_DIFFERENT
    but = f" but {', '.join(left_out)}" if left_out else ""
    reporter.line(f"{sides}{but} are equal. ({seconds} s)")
    return EXIT_OK


@contextmanager
def _told(logs: Path, interrupted: threading.Event) -> Iterator[None]:
    """Have every error name the logs, and make one line of one that nobody foresaw: where it arose is in a log, too.

    :param interrupted: set if there was an interrupt, which DuckDB makes an error of its own while it works
    """
    try:
        yield
    except Exception as error:
        if interrupted.is_set():
            raise KeyboardInterrupt from error
        if isinstance(error, CommandError):
            if str(logs) in str(error):
                raise
            raise CommandError(f"{error}; the logs are in {logs}") from error
        logs.mkdir(parents=True, exist_ok=True)
        log = logs / "demo.log"
        log.write_text(traceback.format_exc())
        raise CommandError(f"{type(error).__name__}: {' '.join(str(error).split())}; see {log}") from error


def _check_writable(summary: Path) -> None:
    """Find out now, not after minutes, whether the summary can be written."""
    if not summary.absolute().parent.is_dir():
        raise CommandError(f"--json {summary}: there is no such folder")
    try:
        summary.open("a").close()
    except OSError as error:
        raise CommandError(f"--json {summary}: {error.strerror}") from error


def _make_folder(keep: str | None) -> Path:
    if keep is None:
        return Path(tempfile.mkdtemp(prefix="mssql-cdc-demo-"))
    folder = Path(keep).absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CommandError(f"--keep {folder}: it exists and is not an empty folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"--keep {folder}: {error.strerror}") from error
    return folder


def _clean_up(arguments: argparse.Namespace, folder: Path) -> None:
    if not arguments.keep:
        shutil.rmtree(folder, ignore_errors=True)
