"""What the demo says: where it is, what each table went through, and where to look further."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

_LOADED = ("table", "target")
_NAMES = (*_LOADED, "shape")
_COUNTS = ("windows", "events", "copied", "inserted", "updated", "deleted")
_TICK = 0.2


class Reporter:
    """Says what the demo does: a running clock on a terminal, plain lines elsewhere.

    :param stream: standard output
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._terminal = stream, stream.isatty()

    def line(self, text: str = "") -> None:
        """Print a line."""
        print(text, file=self._stream, flush=True)

    @contextmanager
    def step(self, text: str) -> Iterator[list[str]]:
        """Say what is being done, and at the end how long it took.

        :yield: what is added to the list is said at the end
        """
        started, notes, done = time.monotonic(), list[str](), threading.Event()
        ticker = threading.Thread(target=self._tick, args=(text, started, done), daemon=True)
        if self._terminal:
            ticker.start()
        else:
            self.line(f"{text} ..")
        completed = False
        try:
            yield notes
            completed = True
        finally:
            done.set()
            if self._terminal:
                ticker.join()
                # What is said next must not stand on the clock's line.
                self._stream.write("\r\x1b[K" if completed else "\n")
        said = f": {', '.join(notes)}" if notes else ""
        self.line(f"{time.monotonic() - started:6.1f} s  {text}{said}")

    def _tick(self, text: str, started: float, done: threading.Event) -> None:
        while not done.wait(_TICK):
            self._stream.write(f"\r\x1b[K{time.monotonic() - started:6.1f} s  {text}")
            self._stream.flush()


def add_up(runs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """What the runs did together, by source table.

    :param runs: the summaries of ``MsSqlCdcLoadOperator``
    """
    tables: dict[str, dict[str, Any]] = {}
    for run in runs:
        for entry in run["tables"]:
            total = tables.setdefault(entry["table"], {**dict.fromkeys(_COUNTS, 0), "seconds": 0.0})
            total["windows"] += len(entry.get("windows", ()))
            total["seconds"] = round(total["seconds"] + sum(entry.get("seconds", {}).values()), 2)
            # A quiet table has no counts.
            for count in _COUNTS[1:]:
                total[count] += entry.get(count, 0)
    return tables


def name(entry: Mapping[str, Any]) -> str:
    """What was compared: a table, or a table in a target and shape."""
    return " ".join(entry[part] for part in _NAMES if part in entry)


def table_lines(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the table of results; what the loads of a target did together stands in its first line alone."""
    names = [part for part in _NAMES if part in entries[0]]
    header = (*names, *_COUNTS, "seconds", "rows", "equal")
    told: set[tuple[str, ...]] = set()
    rows = []
    for entry in entries:
        loaded = tuple(entry[part] for part in _LOADED if part in entry)
        totals = (*(f"{entry[count]:,}" for count in _COUNTS), f"{entry['seconds']:.1f}")
        rows.append(
            (
                *(entry[part] for part in names),
                *([""] * len(totals) if loaded in told else totals),
                f"{entry['rows']:,}",
                "yes" if entry["equal"] else "NO",
            )
        )
        told.add(loaded)
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    for row in (header, *rows):
        cells = list(zip(row, widths, strict=True))
        left = (text.ljust(width) for text, width in cells[: len(names)])
        yield "  ".join((*left, *(text.rjust(width) for text, width in cells[len(names) :])))


def look_lines(folder: Path, env: Mapping[str, str], warehouse: Path, packages: str, history: str) -> Iterator[str]:
    """Yield how to look at what was kept.

    :param history: a history in the lake
    :param env: what the Airflow commands need in their environment
    """
    settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in env.items())
    catalog = "spark.sql.catalog.lake"
    yield f"Kept in {folder}:"
    yield "  the lake"
    yield (
        f"    spark-sql --packages {packages} --conf {catalog}=org.apache.iceberg.spark.SparkCatalog "
        f"--conf {catalog}.type=hadoop --conf {catalog}.warehouse={shlex.quote(str(warehouse))} "
        f"-e 'SELECT _op, COUNT(*) FROM lake.shop.{history} GROUP BY _op'"
    )
    yield "  the DAG and its runs"
    yield f"    {settings} airflow standalone"
    yield "  the checkpoints"
    yield f"    {settings} mssql-cdc checkpoint list"
    yield f"  the logs: {folder / 'logs'}"
