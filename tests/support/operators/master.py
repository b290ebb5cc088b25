"""What a durable load talks to: a Spark master's REST server, a spark-submit, and an object store, all of this test."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import re
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import fsspec
from airflow.sdk.io import attach

from airflow_provider_mssql_cdc.core.codec import to_json
from airflow_provider_mssql_cdc.core.exceptions import FormatError
from airflow_provider_mssql_cdc.core.feed import FeedRef
from airflow_provider_mssql_cdc.core.marker import FeedSpan, Marker
from airflow_provider_mssql_cdc.core.receipt import EVERY, JobError, Receipt, SinkReceipt, TableReceipt
from airflow_provider_mssql_cdc.core.spec import JobSpec, SinkSpec, TableSpec
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.operators import job_files

DRIVER = "driver-20260301120000-0001"


class Master:
    """Answers that the driver has ended, each time after ``asked`` and the job of the test have run.

    :param folder: for the spark-submit, to be put before the others on the PATH
    """

    def __init__(self, folder: Path) -> None:
        attach("memory", fs=fsspec.filesystem("memory"))
        self.work_dir = f"memory://work/{folder.name}"
        self.job: Callable[[JobSpec], None] = lambda spec: None
        self.asked: Callable[[], None] = lambda: None
        self.state = "FINISHED"
        self._calls = folder / "calls"
        script = folder / "spark-submit"
        script.write_text(f'#!/bin/sh\necho "$@" >> "{self._calls}"\necho {DRIVER}\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        self.path = os.pathsep.join((str(folder), os.environ["PATH"]))
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Master:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def connection(self) -> str:
        """The Airflow connection to it."""
        extra = {"deploy-mode": "cluster", "rest-port": self._server.server_address[1]}
        return json.dumps({"conn_type": "spark", "host": "spark://127.0.0.1", "port": 7077, "extra": json.dumps(extra)})

    @property
    def submissions(self) -> list[str]:
        """The command line of each spark-submit so far."""
        return self._calls.read_text().splitlines() if self._calls.exists() else []

    @property
    def folders(self) -> list[str]:
        """The job folders that exist."""
        root = job_files.open_path(self.work_dir)
        return [folder.name for folder in root.iterdir()] if root.exists() else []

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        master = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                master.asked()
                for folder in master.folders:
                    with contextlib.suppress(FileNotFoundError, FormatError):
                        master.job(job_files.read_spec(f"{master.work_dir}/{folder}/spec.json"))
                answer = {"success": True, "submissionId": DRIVER, "driverState": master.state}
                self.send_response(200)
                self.end_headers()
                # one field in a line, as Spark writes it, since Airflow reads it by lines
                self.wfile.write(json.dumps(answer, indent=2, separators=(",", " : ")).encode())

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        return Handler


def write_receipt(spec: JobSpec, *failed: TableName) -> None:
    """Answer as a job that loaded all tables but these, which failed for good."""
    tables = tuple(
        TableReceipt(table.name, failed={EVERY: JobError("TargetError", "the target is no table", True)})
        if table.name in failed
        else TableReceipt(table.name, tuple(loaded(spec, table, sink) for sink in table.sinks))
        for table in spec.tables
    )
    written = [TableReceipt(each.name, changes_written=each.changes.events[-1].lsn) for each in spec.dropped]
    receipt = Receipt(spec.id, tables, dropped=tuple(written))
    job_files.open_path(spec.receipt_path).write_text(to_json(receipt))


def loaded(spec: JobSpec, table: TableSpec, sink: SinkSpec) -> SinkReceipt:
    """What a job says of a sink that it has loaded to the cut."""
    upto = spec.upto.of(table.feed.POSITION)
    assert upto is not None
    marker = Marker(
        position=upto,
        witness=None,
        server=spec.source.server,
        database=spec.source.database,
        table=table.name,
        feeds=(FeedSpan(FeedRef.of(table.feed), upto),),
        schema_hash=table.schema.hash,
        window_after=sink.read_through,
        events={},
        spec_id=spec.id,
        asserted=sink.asserted,
    )
    return SinkReceipt(sink.shape, sink.expects, marker, "loaded", upto)


def properties(submission: str) -> str:
    """What the properties file holds that a submission names."""
    path = re.search(r"--properties-file (\S+)", submission)
    assert path is not None
    return Path(path[1]).read_text()
