from __future__ import annotations

import contextlib
import datetime
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pymssql
import pytest

from airflow_provider_mssql_cdc.cli import parser

COMMAND = str(Path(sys.executable).with_name("mssql-cdc"))


@contextlib.contextmanager
def sandbox(*words):
    """The command as a process, and what its one line says."""
    process = subprocess.Popen(
        [COMMAND, "sandbox", "--port", "0", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def connect(said):
    return pymssql.connect(
        server=said["host"],
        port=str(said["port"]),
        user=said["user"],
        password=said["password"],
        database=said["database"],
    )


def rows(said, statement):
    with connect(said) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_how_to_connect_serves_and_stops(number):
    with sandbox("--database", "mine", "--user", "me", "--password", "S3cret!pass") as (process, said):
        assert said == {
            "host": "127.0.0.1",
            "port": said["port"],
            "user": "me",
            "password": "S3cret!pass",
            "database": "mine",
            "connection": said["connection"],
        }
        assert rows(said, "SELECT DB_NAME()") == [("mine",)]
        process.send_signal(number)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.parametrize("build", ["2016", "2019", "2022", "2025"])
def test_it_is_the_build_that_was_asked_for(build):
    with sandbox("--build", build) as (_, said):
        ((shown,),) = rows(said, "SELECT @@VERSION")
    assert shown.startswith(f"Microsoft SQL Server {build} ")


def test_the_connection_is_one_that_airflow_reads():
    from airflow.sdk import Connection

    with sandbox("--database", "mine") as (_, said):
        connection = Connection.from_uri(said["connection"], conn_id="any")
        assert {
            "conn_type": connection.conn_type,
            "host": connection.host,
            "port": connection.port,
            "user": connection.login,
            "password": connection.password,
            "database": connection.schema,
        } == {"conn_type": "mssql", **{key: value for key, value in said.items() if key != "connection"}}


def test_the_seeded_shop_has_its_rows_and_captures_changes():
    with sandbox("--seed", "shop", "--rows", "100", "--capture-interval", "0.05") as (_, said):
        counts = {
            table: rows(said, f"SELECT COUNT(*) FROM {table}")[0][0]
            for table in ("sales.customers", "sales.orders", "sales.order_items", "catalog.products")
        }
        assert counts == {
            "sales.customers": 10,
            "sales.orders": 30,
            "sales.order_items": 58,
            "catalog.products": 2,
        }
        tracked = rows(said, "SELECT name FROM sys.tables WHERE is_tracked_by_cdc = 1 ORDER BY name")
        assert tracked == [("customers",), ("order_items",), ("orders",), ("products",)]


def test_the_capture_job_polls_as_its_settings_say_unless_told_otherwise():
    assert parser().parse_args(["sandbox"]).capture_interval is None
    assert parser().parse_args(["sandbox", "--capture-interval", "0.5"]).capture_interval == 0.5


def test_the_clock_may_run_fast():
    with sandbox("--clock-rate", "3600") as (_, said):
        (((first,),), ((second,),)) = (rows(said, "SELECT GETDATE()") for _ in range(2))
    assert second - first >= datetime.timedelta(seconds=1)


def test_a_port_in_use_is_one_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run([COMMAND, "sandbox", "--port", str(port)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"mssql-cdc sandbox: 127.0.0.1:{port} is in use; choose another --port, or 0 for a free one\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port", "70000"], "between 0 and 65535"),
        (["--capture-interval", "0"], "above 0"),
        (["--rows", "0"], "least 1"),
        (["--build", "2017"], "invalid choice"),
        (["--password", ""], "must not be empty"),
        (["--port", "0", "--database", "master"], "'master' already exists"),
    ],
)
def test_wrong_arguments_are_refused(words, said):
    done = subprocess.run([COMMAND, "sandbox", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr
