from __future__ import annotations

import datetime
import math
import os
import shutil
import stat
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from airflow_provider_mssql_cdc.cli.demo import postgres
from airflow_provider_mssql_cdc.cli.demo.processes import Children
from airflow_provider_mssql_cdc.cli.exit import CommandError

needed = pytest.mark.skipif(postgres.missing() is not None, reason=str(postgres.missing()))


@needed
def test_a_server_serves_one_login_and_leaves_nothing_behind(tmp_path):
    with Children() as children, postgres.running(children, tmp_path / "log") as server:
        folder = Path(server.read("SELECT current_setting('data_directory') AS d").to_pylist()[0]["d"]).parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert not (folder / "password").exists()
        assert server.password not in (tmp_path / "log").read_text()
        with pytest.raises(Exception, match="password authentication failed"):
            postgres.PostgreSql(server.port, "another").read("SELECT 1")
        rows = server.read(
            "SELECT 1 AS i, 2::bigint AS b, 'x'::text AS t, true AS f, 1.50::numeric(10,2) AS n,"
            " DATE '2026-01-02' AS d, TIMESTAMP '2026-01-02 03:04:05.000006' AS s, 0.1::double precision AS p"
        )
        nothing = server.read("SELECT 1::numeric(18,4) AS n WHERE false")
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, 6)
    assert rows.to_pylist() == [
        {"i": 1, "b": 2, "t": "x", "f": True, "n": Decimal("1.50"), "d": at.date(), "s": at, "p": 0.1}
    ]
    assert rows.schema.types[4] == pa.decimal128(10, 2)
    assert (nothing.schema.types, nothing.num_rows) == ([pa.decimal128(18, 4)], 0)
    assert not folder.exists()
    with pytest.raises(Exception, match="refused"):
        server.read("SELECT 1")


@needed
def test_a_server_that_does_not_start_is_one_line_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(postgres, "_TIMEOUT", math.inf)
    with Children() as children, postgres.running(children, tmp_path / "log") as server:
        monkeypatch.setattr(postgres, "free_port", lambda: server.port)
        other = postgres.running(children, tmp_path / "other")
        with pytest.raises(CommandError, match=r"PostgreSQL could not be started; see .*other"), other:
            pass


HOLDER = """
import sys
from pathlib import Path
from airflow_provider_mssql_cdc.cli.demo import postgres
from airflow_provider_mssql_cdc.cli.demo.processes import Children
with Children() as children, postgres.running(children, Path(sys.argv[1])) as server:
    folder = server.read("SELECT current_setting('data_directory') AS d").to_pylist()[0]["d"]
    print(f"{folder}/postmaster.pid", flush=True)
    sys.stdin.read()
"""


@needed
def test_it_ends_and_leaves_no_data_when_who_started_it_is_killed(tmp_path):
    words = [sys.executable, "-c", HOLDER, str(tmp_path / "log")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        file = Path(holder.stdout.readline().strip())
        postmaster = psutil.Process(int(file.read_text().split()[0]))
        shell, folder = postmaster.parent(), file.parents[1]
        holder.kill()
    try:
        postmaster.wait()
        shell.wait()
        assert not folder.exists()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_why_there_is_none_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(postgres, "find_programs", lambda: None)
    assert "initdb is neither in /usr/lib/postgresql nor on the PATH" in postgres.missing()
    monkeypatch.setattr(postgres, "find_programs", lambda: tmp_path)
    monkeypatch.setattr(postgres.importlib.util, "find_spec", lambda name: None)
    assert "psycopg is not installed" in postgres.missing()


def test_programs_on_the_path_come_first(tmp_path, monkeypatch):
    program = tmp_path / "initdb"
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert postgres.find_programs() == tmp_path.resolve()


@pytest.mark.parametrize(
    ("versions", "newest"), [(["9.6", "15", "9.5"], "15"), (["9.6", "9.10"], "9.10"), (["17", "local", "9.6"], "17")]
)
def test_else_the_newest_of_debians(tmp_path, monkeypatch, versions, newest):
    for version in versions:
        (tmp_path / version / "bin").mkdir(parents=True)
        (tmp_path / version / "bin" / "initdb").touch(mode=0o755)
    monkeypatch.setattr(postgres, "_DEBIANS", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert postgres.find_programs() == tmp_path / newest / "bin"
