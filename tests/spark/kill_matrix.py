"""Loads whose processes are killed at every point, into every target; then repeated, and compared with the model.

It takes about an hour and a half, and a Spark start for each kill, so that it is no part of the test command.
``MSSQL_CDC_TEST_SPARK_STARTS=200 uv run pytest -n 0 tests/spark/kill_matrix.py`` writes what it found to
``docs/kills.md``; with ``-k`` it renews a part of it.
"""

from __future__ import annotations

import datetime
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_mssql_cdc.core.spec import to_json
from tests import histories
from tests.conftest import spark_settings
from tests.spark import victim
from tests.spark.kill_points import POINTS, SHAPES, all_points
from tests.spark.loads import Loads, check, prepare, write
from tests.spark.victim import JVM, SUBMIT, TASK

pytestmark = pytest.mark.timeout(3600)

ROOT = Path(__file__).parents[2]
PROCESSES = (TASK, JVM, SUBMIT)
CASES = [(format_, process) for format_ in POINTS for process in PROCESSES]
REPORT = ROOT / "docs" / "kills.md"
HEAD = f"""# Loads that are killed

Each line is a point of a load at which a process was ended by SIGKILL: the *task*, a process that runs the job with
Spark's driver in it, or its *JVM* alone, or *spark-submit*, whose child the job is. Then the load was repeated, and all
targets were compared in full with a model in plain Python.
`MSSQL_CDC_TEST_SPARK_STARTS=200 uv run pytest -n 0 tests/spark/kill_matrix.py` writes it, and with `-k` the lines of
some targets.

What an Airflow task does around the job is not in the table: ends of a task before and after its checkpoints are played
by `tests/operators/test_interrupted.py`, and `mssql-cdc demo --scenario crash` kills `spark-submit` in mid-window, and
the task between commit and checkpoint. Nor is the server, whose process `tests/spark/test_server_killed.py` kills.

| Target | Killed | {" | ".join(PROCESSES)} |
| --- | --- |{" --- |" * len(PROCESSES)}
"""
Found = dict[tuple[str, str], dict[str, str]]


@pytest.fixture(scope="module")
def found() -> Iterator[Found]:
    """What each format and point came to, by the process that was killed; the report keeps what did not run."""
    results: Found = {}
    rows = REPORT.read_text().splitlines() if REPORT.exists() else []
    for row in (row for row in rows if row.startswith("| ")):
        format_, point, *cells = (cell.strip() for cell in row.strip("|").split("|"))
        if format_ in POINTS and point in all_points(format_):
            results[format_, point] = dict(zip(PROCESSES, cells, strict=True))
    yield results
    order = [(format_, point) for format_ in POINTS for point in all_points(format_) if (format_, point) in results]
    lines = [f"| {' | '.join((*key, *(results[key].get(p, 'not run') for p in PROCESSES)))} |\n" for key in order]
    REPORT.write_text(HEAD + "".join(lines))


@pytest.mark.parametrize(("format_", "process"), CASES)
def test_a_killed_load_is_repeated(live, request, tmp_path, found, format_, process):
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
    for point in all_points(format_):
        write(live, models, rng, 15)
        live.wait_captured()
        _, spec = loads.plan()
        folder = tmp_path / re.sub(r"\W+", "_", point)
        folder.mkdir()
        (folder / "spec.json").write_text(to_json(spec))
        arguments = [str(folder / "spec.json"), str(warehouse.parent), format_, point, process]
        started = submitted(folder, warehouse.parent) if process == SUBMIT else [sys.executable, "-m", victim.__name__]
        with (folder / "log").open("wb") as log:
            ended = subprocess.run(
                [*started, *arguments],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=300,
            )
        assert (folder / "killed").exists(), (folder / "log").read_text()[-3000:]
        assert (ended.returncode == -9) == (process != JVM)
        results = found.setdefault((format_, point), {})
        today = datetime.date.today()
        results[process] = f"differs, {today}"
        loads.load()
        check(loads, models)
        results[process] = f"equal, {today}"


def submitted(folder: Path, catalogs: Path) -> list[str]:
    """Return the command that has Spark start the victim."""
    properties = folder / "spark.conf"
    properties.write_text("".join(f"{name} {value}\n" for name, value in spark_settings(catalogs).items()))
    return ["spark-submit", "--load-spark-defaults", "--properties-file", str(properties), str(victim.__file__)]
