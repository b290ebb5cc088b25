"""A load as an application of its own: spark-submit in a fresh JVM, whose memory is watched."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_mssql_cdc.core.spec import JobSpec, Receipt
from airflow_provider_mssql_cdc.operators import job_files

_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Application:
    """What was measured of it.

    :param seconds: from its submission to its end
    :param peak: bytes: the largest resident set of the JVM, with everything that it holds beside the heap
    """

    receipt: Receipt
    seconds: float
    peak: int

    @property
    def start_seconds(self) -> float:
        """What Spark took beside the job: its start, the look-up of jars, its end."""
        return self.seconds - self.receipt.seconds


def submit(spec: JobSpec, settings: Mapping[str, str]) -> Application:
    """Run a job as the operator does.

    :param settings: of Spark
    :raises ReceiptMissingError: if it ended without a receipt; its log is printed
    """
    job_files.write_spec(spec)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as properties, tempfile.TemporaryFile("w+") as log:
        properties.writelines(f"{name} {value}\n" for name, value in settings.items())
        properties.flush()
        started = time.perf_counter()
        process = subprocess.Popen(
            [
                *(Path(sys.executable).with_name("spark-submit"), "--properties-file", properties.name),
                *("--py-files", job_files.code_path(spec), job_files.JOB, "--spec", spec.path),
            ],
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            peak = _watch(process)
        finally:
            # where this is interrupted, nothing is left to run
            process.kill()
        seconds = time.perf_counter() - started
        if process.returncode:
            log.seek(0)
            print(log.read(), file=sys.stderr)
    return Application(job_files.read_receipt(spec), seconds, peak)


def _watch(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end; the high-water mark of its memory, which the scripts that start the JVM hand over to it."""
    status, peak = Path(f"/proc/{process.pid}/status"), 0
    while True:
        try:
            process.wait(_LOOK_SECONDS)
            return peak
        except subprocess.TimeoutExpired:
            found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text())
            peak = int(found[1]) * 1024 if found else peak
