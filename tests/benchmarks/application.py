"""A load as an application of its own: spark-submit in a fresh JVM, whose memory is watched."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_mssql_cdc.cli.demo.processes import Children
from airflow_provider_mssql_cdc.core.receipt import Receipt
from airflow_provider_mssql_cdc.core.spec import JobSpec
from airflow_provider_mssql_cdc.operators import job_files
from tests.benchmarks.source import properties_file

_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Application:
    """What was measured of it.

    :param seconds: from its submission to its end
    :param cpu: seconds that its processes took of all cores
    :param peak: bytes: the largest resident set of the JVM, with everything that it holds beside the heap
    """

    receipt: Receipt
    seconds: float
    cpu: float
    peak: int

    @property
    def start_seconds(self) -> float:
        """What Spark took beside the job: its start, the look-up of jars, its end."""
        return self.seconds - self.receipt.seconds


def submit(spec: JobSpec, settings: Mapping[str, str], folder: Path) -> Application:
    """Run a job as the operator does.

    :param settings: of Spark
    :param folder: for its log and scratch files while it runs
    :raises ReceiptMissingError: if it ended without a receipt; its log is printed
    """
    job_files.write_spec(spec)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    # where this is interrupted, nothing is left to run: they end before the folder goes
    with tempfile.TemporaryDirectory(dir=folder) as name, Children() as children:
        scratch = Path(name)
        properties, log = properties_file(scratch, settings), scratch / "log"
        started, cpu = time.perf_counter(), cpu_seconds()
        process = children.start(
            [
                *(str(Path(sys.executable).with_name("spark-submit")), "--properties-file", str(properties)),
                *("--py-files", job_files.code_path(spec), str(job_files.JOB), "--spec", spec.path),
            ],
            env=environment,
            log=log,
            cwd=scratch,
        )
        peak = _watch(process)
        seconds, cpu = time.perf_counter() - started, cpu_seconds() - cpu
        if process.returncode:
            print(log.read_text(), file=sys.stderr)
    return Application(job_files.read_receipt(spec), seconds, cpu, peak)


def cpu_seconds() -> float:
    """Seconds that processes which have ended took of all cores."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _watch(process: subprocess.Popen[str]) -> int:
    """Wait for the end; the high-water mark of its memory, which the scripts that start the JVM hand over to it."""
    status, peak = Path(f"/proc/{process.pid}/status"), 0
    while True:
        try:
            process.wait(_LOOK_SECONDS)
            return peak
        except subprocess.TimeoutExpired:
            found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text())
            peak = int(found[1]) * 1024 if found else peak
