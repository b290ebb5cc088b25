"""Loads whose processes are killed at every point, into every target; then repeated, and compared with the model.

Or they are held there while another process loads the same, and go on then.

It takes hours, and a Spark start for each line and process, so that it is no part of the test command.
``MSSQL_CDC_TEST_SPARK_STARTS=300 uv run pytest -n 0 tests/spark/kill_matrix.py`` writes what it found to
``docs/kills.md``, point by point, and goes on where one of the same commit was stopped; with ``-k`` it renews the
targets and processes so chosen, and with ``MSSQL_CDC_TEST_KILL_POINTS`` the points whose names this regular expression
finds.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from airflow_provider_mssql_cdc.core.codec import to_json
from tests.conftest import spark_settings
from tests.support import histories
from tests.support.spark import victim
from tests.support.spark.kill_points import DURING, POINTS, SHAPES, all_points
from tests.support.spark.loads import Loads, check, prepare, write
from tests.support.spark.victim import HELD, JVM, SUBMIT, TASK, wait_for

pytestmark = pytest.mark.timeout(3600)

ROOT = Path(__file__).parents[2]
PROCESSES = (TASK, JVM, SUBMIT, HELD)
CASES = [(format_, process) for format_ in POINTS for process in PROCESSES]
CHOSEN = re.compile(os.environ.get("MSSQL_CDC_TEST_KILL_POINTS", ""))
REPORT = ROOT / "docs" / "kills.md"
COMMIT = subprocess.run(
    ["git", "log", "-1", "--format=%cs %h"], cwd=ROOT, capture_output=True, text=True, check=True
).stdout.strip()
HEAD = f"""# Loads that are killed

Each line is a point of a load at which a process was ended by SIGKILL: the *task*, a process that runs the job with
Spark's driver in it, or its *JVM* alone, or *spark-submit*, whose child the job is. Then the load was repeated, and all
targets were compared in full with a model in plain Python. The last column is of no kill: the process was *held* at the
point while another one loaded the same and committed; then it went on to its end. All was compared before and after
that. While files are written there is nothing to hold. Beside each result stand date and name of the commit whose code
was run.

`MSSQL_CDC_TEST_SPARK_STARTS=300 uv run pytest -n 0 tests/spark/kill_matrix.py` writes it, and with `-k` some columns of
some targets.

What an Airflow task does around the job is not in the table: ends of a task before and after its checkpoints are played
by `tests/operators/test_interrupted.py`, a task that is cleared while its job runs by `tests/spark/test_cleared.py`;
`mssql-cdc demo --scenario crash` kills `spark-submit` in mid-window, and the task between commit and checkpoint. Nor is
the server, whose process `tests/spark/test_server_killed.py` kills.

| Target | Killed | {" | ".join(PROCESSES)} |
| --- | --- |{" --- |" * len(PROCESSES)}
"""
NOT_RUN = "-"
Found = dict[tuple[str, str], dict[str, str]]


def known() -> Found:
    """What the report says of each format and point, by the process that was killed."""
    results: Found = {}
    rows = REPORT.read_text().splitlines() if REPORT.exists() else []
    for row in (row for row in rows if row.startswith("| ")):
        format_, point, *cells = (cell.strip() for cell in row.strip("|").split("|"))
        if format_ in POINTS and point in all_points(format_):
            cells_known = zip(PROCESSES, cells, strict=False)
            results[format_, point] = {process: cell for process, cell in cells_known if cell != NOT_RUN}
    return results


def note(format_: str, point: str, process: str, what: str) -> None:
    """Write what a point came to into the report."""
    results = known()
    results.setdefault((format_, point), {})[process] = what
    order = [(format_, point) for format_ in POINTS for point in all_points(format_) if (format_, point) in results]
    lines = [f"| {' | '.join((*key, *(results[key].get(p, NOT_RUN) for p in PROCESSES)))} |\n" for key in order]
    REPORT.write_text(HEAD + "".join(lines))


@pytest.mark.parametrize(("format_", "process"), CASES)
def test_a_killed_load_is_repeated(live, request, tmp_path, format_, process):
    rng = random.Random(11)
    models = [histories.Model(h) for h in range(8)]
    live.format = format_
    if format_ == "postgresql":
        live.into(request.getfixturevalue("postgresql"))
    prepare(live)
    write(live, models, rng, 20)
    loads = Loads(live, SHAPES[format_], tables=("parts",))
    warehouse = Path(live.spark.conf.get("spark.sql.catalog.lake.warehouse"))
    # the first of them stops a first load
    points = [name for name, point in all_points(format_).items() if process != HELD or point.when != DURING]
    done = f"equal, {COMMIT}"
    left = [name for name in filter(CHOSEN.search, points) if known().get((format_, name), {}).get(process) != done]
    if left and left[0] != points[0]:
        live.wait_captured()
        loads.load()
    for name in left:
        write(live, models, rng, 15)
        live.wait_captured()
        _, spec = loads.plan()
        folder = tmp_path / re.sub(r"\W+", "_", name)
        folder.mkdir()
        (folder / "spec.json").write_text(to_json(spec))
        note(format_, name, process, f"did not end, {COMMIT}")
        with victim_at(name, folder, warehouse.parent, format_, process):
            if process == HELD:
                loads.load()
                check(loads, models)
        if process != HELD:
            loads.load()
        check(loads, models)
        note(format_, name, process, done)


@contextmanager
def victim_at(point: str, folder: Path, catalogs: Path, format_: str, process: str) -> Iterator[None]:
    """Start a victim, wait until it has come to its point, and in the end for its end."""
    arguments = [str(folder / "spec.json"), str(catalogs), format_, point, process]
    started = submitted(folder, catalogs) if process == SUBMIT else [sys.executable, "-m", victim.__name__]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(
            [*started, *arguments], cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            wait_for(folder / "reached", unless=running.poll)
            assert (folder / "reached").exists(), (folder / "log").read_text()[-3000:]
            yield
        finally:
            (folder / "go").touch()
            ended = running.wait(300)
    assert (ended == -9) == (process in (TASK, SUBMIT)), ended
    # one whose JVM is killed may come to its end, too: at last there is only the receipt to write
    assert ended == 0 or process != HELD, (folder / "log").read_text()[-3000:]


def submitted(folder: Path, catalogs: Path) -> list[str]:
    """The command that has Spark start the victim."""
    properties = folder / "spark.conf"
    properties.write_text("".join(f"{name} {value}\n" for name, value in spark_settings(catalogs).items()))
    return ["spark-submit", "--load-spark-defaults", "--properties-file", str(properties), str(victim.__file__)]
