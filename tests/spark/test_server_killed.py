"""A server that is killed while a load reads it: another one of the same name in its place, and the same one again.

A sandbox keeps everything in memory. So that the same one comes back, what is killed then is a process through which
all its connections go.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pymssql
import pytest

from airflow_provider_mssql_cdc.core.exceptions import RestoredError, ServerUnreachableError
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.sandbox import Sandbox
from airflow_provider_mssql_cdc.spark import staging
from airflow_provider_mssql_cdc.spark.copies import chunks
from airflow_provider_mssql_cdc.spark.job import run
from tests.support import histories
from tests.support.logins import SPARK_PASSWORD, SPARK_USER
from tests.support.spark.kill_points import BEFORE, READING, STAGED, Point
from tests.support.spark.loads import Loads, check, prepare, write
from tests.support.spark.origin import Origin
from tests.support.spark.stop import Stop
from tests.support.spark.watch import Watch

pytestmark = [pytest.mark.xdist_group(__name__), pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
COMMAND = str(Path(sys.executable).with_name("mssql-cdc"))


class Server:
    """A sandbox in a process of its own."""

    def __init__(self, port: int = 0) -> None:
        words = ["--port", str(port), "--user", SPARK_USER, "--password", SPARK_PASSWORD]
        words += ["--capture-interval", "0.1"]
        self.process = subprocess.Popen([COMMAND, "sandbox", *words], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        said = json.loads(self.process.stdout.readline())
        self.host, self.port, self.user, self.password = (said[key] for key in ("host", "port", "user", "password"))

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.communicate()

    def create_database(self, name: str) -> None:
        self.run(f"CREATE DATABASE {name}", "master")

    def run(self, text: str, database: str) -> list[dict]:
        """Run a batch; the rows of its last result set."""
        login = {"server": self.host, "port": str(self.port), "user": self.user, "password": self.password}
        with pymssql.connect(**login, database=database, autocommit=True, as_dict=True) as connection:
            cursor = connection.cursor()
            cursor.execute(text)
            rows = cursor.fetchall() if cursor.description else []
            while cursor.nextset():
                rows = cursor.fetchall() if cursor.description else rows
            return rows


class Remote(Origin):
    """A database of such a server, whose capture job runs."""

    def sql(self, text: str) -> list[dict]:
        return self.sandbox.run(text, self.database)

    def wait_captured(self) -> None:
        """Wait for the second scan from here that finds nothing, which began after this call, as scans are serial."""
        query = "SELECT empty_scan_count AS n FROM sys.dm_cdc_log_scan_sessions WHERE session_id = 0"
        (before,) = self.sql(query)
        while self.sql(query)[0]["n"] < before["n"] + 2:
            pass

    def begin_anew(self) -> None:
        """Have a server that was never there before at the same address, with a database of the same name."""
        self.sandbox = Server(self.sandbox.port)
        self.sandbox.create_database(self.database)
        self.sql("EXEC sys.sp_cdc_enable_db")


class Wire:
    """A process through which all connections of clients to a sandbox go."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox, self.port = sandbox, 0
        self.connect()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox, name)

    def connect(self) -> None:
        """Start it, where it was before if it was there."""
        code = "import sys; from tests.support.clients.relay import Relay; relay = Relay(*map(int, sys.argv[1:]))\n"
        code += "with relay: print(relay.port, flush=True); sys.stdin.read()"
        words = [sys.executable, "-c", code, str(self._sandbox.port), str(self.port)]
        self.process = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def wired(spark, sandbox, tmp_path, namespace):
    """A database behind such a process."""
    origin = Origin(spark, Wire(sandbox), tmp_path, namespace, live=True)
    yield origin
    origin.close()
    origin.sandbox.kill()


@pytest.fixture
def remote(spark, tmp_path, namespace):
    """A database of a server that may be killed."""
    origin = Remote(spark, Server(), tmp_path, namespace, live=True)
    yield origin
    origin.sandbox.kill()


@pytest.mark.thorough
def test_a_killed_server_leaves_all_as_it_was_and_another_one_is_not_taken_for_it(remote, monkeypatch):
    rng = random.Random(5)
    models = [histories.Model(h) for h in range(5)]
    prepare(remote)
    write(remote, models, rng, 20)
    remote.wait_captured()
    loads = Loads(remote, tables=("parts",))
    loads.load()
    check(loads, models)

    watch = Watch(loads, "parts")
    write(remote, models, rng, 20)
    remote.wait_captured()
    _, planned = loads.plan()
    receipts = []
    # the changes are counted, and not yet read
    stop = Stop(monkeypatch, Point(staging, "write_rows", BEFORE))
    with stop.meanwhile(lambda: receipts.append(loads.load(failing=("parts",))[1])):
        remote.sandbox.kill()
    (table,) = receipts[0].tables
    assert (table.error.kind, table.error.permanent, table.sinks) == ("ServerUnreachableError", False, ())
    watch.look()
    watch.check()

    remote.begin_anew()
    prepare(remote)
    others = [histories.Model(h) for h in range(5)]
    # as far as before and further, so that its positions do not tell
    write(remote, others, rng, 60)
    remote.wait_captured()
    assert remote.max_lsn() > planned.upto.of(Lsn)
    # the job that was planned before, and a new plan
    (table,) = run(remote.spark, planned).tables
    assert (table.error.kind, table.sinks) == ("InstanceChangedError", ())
    plan = loads.look()
    assert plan.specs == []
    (failure,) = plan.failures.values()
    assert isinstance(failure, RestoredError)
    watch.look()
    watch.check()


def test_a_load_goes_on_when_the_server_is_there_again(wired, monkeypatch):
    rng = random.Random(7)
    models = [histories.Model(h) for h in range(5)]
    prepare(wired)
    write(wired, models, rng, 20)
    loads = Loads(wired, tables=("items",))
    for point in (Point(chunks, "write_rows", BEFORE), READING, STAGED):
        write(wired, models, rng, 15)
        wired.wait_captured()
        with monkeypatch.context() as patched:
            stop = Stop(patched, point)
            with stop.meanwhile(loads.load, may_fail=True):
                wired.sandbox.kill()
        with pytest.raises(ServerUnreachableError):
            loads.look()
        wired.sandbox.connect()
        loads.load()
        check(loads, models)
