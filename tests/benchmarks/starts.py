"""What a small window costs from spark-submit to its end: beside an empty application, by options of Java."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from airflow_provider_mssql_cdc.core.formats import ICEBERG
from airflow_provider_mssql_cdc.core.shapes import MIRROR
from airflow_provider_mssql_cdc.operators import class_archive
from tests.benchmarks import source, upserts
from tests.benchmarks.application import cpu_seconds, submit
from tests.benchmarks.lab import Lab, opened
from tests.benchmarks.timing import report, spread

_EMPTY = "from pyspark.sql import SparkSession\nSparkSession.builder.getOrCreate().stop()\n"


def measure(sizes: Sequence[int], windows: Sequence[int], rounds: int, heap: str) -> None:
    """(i) One window into an Iceberg mirror, by turns with and without the options of Java, and an empty application.

    :param sizes: rows of the tables
    :param windows: changes of each
    """
    archive = class_archive.found("spark-submit", os.environ)
    quick = class_archive.QUICK_START
    java = {"no options": "", "options of a small window": quick}
    if archive is None:
        print("there is no archive: `mssql-cdc warm` makes one", flush=True)
    else:
        java["options and archive"] = f"{quick} {class_archive.option(archive)}"
    for size in sizes:
        for changes in windows:
            with opened([ICEBERG], heap) as lab:
                loads = lab.loads((source.TABLE,), ICEBERG, MIRROR)
                plan, table = upserts.prepare(lab, loads, size, changes, ICEBERG, MIRROR, newest=False)
                snapshot = upserts.snapshot_of(lab.spark, table, ICEBERG)
                settings = {**source.settings(lab.server, lab.folder, [ICEBERG]), "spark.driver.memory": heap}
                seconds: dict[str, list[float]] = {}
                cpu: dict[str, list[float]] = {}
                for _ in range(rounds):
                    for name, options in java.items():
                        given = {**settings, source.JAVA_OPTIONS: options}
                        upserts.go_back(lab.spark, table, ICEBERG, snapshot)
                        done = submit(loads.spec(plan), given, lab.folder)
                        if error := done.receipt.tables[0].error:
                            raise RuntimeError(str(error))
                        empty = _empty(lab, given)
                        for what, took in ((name, (done.seconds, done.cpu)), (f"empty, {name}", empty)):
                            seconds.setdefault(what, []).append(took[0])
                            cpu.setdefault(what, []).append(took[1])
            lines = {
                what: f"{spread(found, ' s', 1)}; of all cores {spread(cpu[what], ' s', 1)}"
                for what, found in seconds.items()
            }
            for name in java:
                ratios = [a / b for a, b in zip(seconds[name], seconds[f"empty, {name}"], strict=True)]
                lines[f"{name}, beside empty"] = spread(ratios, " times")
            report(f"(i) {changes:,} changes into a mirror of {size:,} rows, from spark-submit to its end", lines)


def _empty(lab: Lab, settings: dict[str, str]) -> tuple[float, float]:
    """Seconds, and those of all cores, of an application that starts a session with the same jars and ends."""
    application = Path(lab.folder, "empty.py")
    application.write_text(_EMPTY)
    properties = source.properties_file(lab.folder, settings)
    started, cpu = time.perf_counter(), cpu_seconds()
    subprocess.run(
        [Path(sys.executable).with_name("spark-submit"), "--properties-file", properties, application],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        check=True,
        capture_output=True,
    )
    return time.perf_counter() - started, cpu_seconds() - cpu
