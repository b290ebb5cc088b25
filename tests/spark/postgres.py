"""A PostgreSQL of the tests: Debian's package, started on the loopback interface with a data folder of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from airflow_provider_mssql_cdc.cli.demo.postgres import account, find_programs, free_port, initialize
from airflow_provider_mssql_cdc.core.spec import DatabaseSpec
from tests.logins import TARGET_PASSWORD, TARGET_USER

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "shared_buffers": "32MB",
    "timezone": "America/New_York",
}


class Postgres:
    """One server with one login, which owns the database."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        # a locale whose order is not that of bytes
        locale = ("--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=und")
        self.data = initialize(folder, TARGET_USER, TARGET_PASSWORD, *locale)
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in {**SETTINGS, "port": self.port}.items())
        self.start()
        self.sql('CREATE DATABASE "ware % house"', database="postgres")

    @property
    def spec(self) -> DatabaseSpec:
        return DatabaseSpec("127.0.0.1", self.port, "ware % house", {"sslmode": "disable"})

    def start(self) -> None:
        self._tool("pg_ctl", "start", "--wait", "--silent", f"--log={self.data / 'log'}")

    def stop(self) -> None:
        """End it at once, as a crash does."""
        self._tool("pg_ctl", "stop", "--mode=immediate", "--silent")

    @contextlib.contextmanager
    def connect(self, database: str | None = None, **given: Any) -> Iterator[Any]:
        """Return a connection in autocommit."""
        address = {"host": "127.0.0.1", "port": self.port, "user": TARGET_USER, "password": TARGET_PASSWORD, **given}
        with psycopg.connect(dbname=database or self.spec.database, autocommit=True, **address) as connection:
            yield connection

    def sql(self, text: str, database: str | None = None) -> list[tuple]:
        """Run a statement; its rows, dates as text."""
        with self.connect(database) as connection:
            cursor = connection.execute(text)
            return cursor.fetchall() if cursor.description else []

    def rows(self, schema: str, table: str) -> list[dict]:
        """Return the rows of a table; instants in UTC."""
        with self.connect(row_factory=dict_row, options="-c timezone=UTC") as connection:
            # a real's text is the shortest, not that of the same double
            return connection.execute(f'SELECT * FROM "{schema}"."{table}"', binary=True).fetchall()

    def _tool(self, name: str, *arguments: str) -> None:
        user = account()
        done = subprocess.run(
            [find_programs() / name, "-D", self.data, *arguments],
            user=user,
            group=user,
            extra_groups=[] if user else None,
            cwd="/",
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            # what the server inherits must not keep a pipe open
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if done.returncode:
            log = self.data / "log"
            raise RuntimeError(f"{name} failed: {log.read_text() if log.exists() else ''}")


@contextlib.contextmanager
def running() -> Iterator[Postgres]:
    """Run a server, or skip the test where PostgreSQL is not installed."""
    if find_programs() is None:
        pytest.skip("PostgreSQL is not installed (Debian package postgresql)")
    with tempfile.TemporaryDirectory(prefix="mssql_cdc_pg-", dir="/tmp") as folder:
        server = Postgres(Path(folder))
        try:
            yield server
        finally:
            server.stop()
