"""A job that goes on with copies for long: what it has loaded before is heard of while it runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from airflow_provider_mssql_cdc.core.receipt import Receipt
from airflow_provider_mssql_cdc.core.spec import JobSpec
from airflow_provider_mssql_cdc.operators import job_files

log = logging.getLogger(__name__)

_SECONDS = 5.0
"""From one look to the next."""


@contextmanager
def watching(spec: JobSpec, heard: Callable[[Receipt], None]) -> Iterator[None]:
    """While the job runs in here, look for what it has loaded before it goes on with copies.

    :param heard: is told of it, once and in another thread; what fails is tried again
    """
    ended = threading.Event()

    def look() -> None:
        said = False
        while not ended.wait(_SECONDS):
            try:
                receipt = job_files.read_windows(spec)
                if receipt is not None:
                    heard(receipt)
                    return
            except Exception as error:
                # at its end the job's folder goes, too
                if not said and not ended.is_set():
                    log.warning("what the job has loaded before its copies is not heard of yet: %s", error)
                    said = True

    thread = threading.Thread(target=look, name="windows of a job", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
