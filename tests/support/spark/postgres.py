"""A PostgreSQL of the tests: Debian's package, started on the loopback interface with a data folder of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_mssql_cdc.cli.demo.postgres import account, command, free_port, initialize, missing, wait
from airflow_provider_mssql_cdc.cli.exit import CommandError
from airflow_provider_mssql_cdc.core.spec import DatabaseSpec
from tests.support.logins import TARGET_PASSWORD, TARGET_USER

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "shared_buffers": "32MB",
    "timezone": "America/New_York",
}


class Postgres:
    """One server with one login, which owns the database; it ends with the process that started it.

    :param folder: an empty one
    """

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._log = folder / "log"
        # a locale whose order is not that of bytes
        locale = ("--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=und")
        self._data = initialize(folder, TARGET_USER, TARGET_PASSWORD, *locale)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def spec(self) -> DatabaseSpec:
        return DatabaseSpec("127.0.0.1", self.port, "ware % house", {"sslmode": "disable"})

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        user = account()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command(self._data, {**SETTINGS, "port": self.port}),
                user=user,
                group=user,
                extra_groups=[] if user else None,
                cwd="/",
                env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                # a Ctrl-C at the terminal is for the tests
                start_new_session=True,
            )
        try:
            wait(lambda: self._connect("postgres"), self._process, self._log)
        except CommandError as error:
            # it goes with its folder
            error.add_note(self._log.read_text())
            raise

    def stop(self) -> None:
        """End it at once, as a crash does."""
        if self._process is not None:
            self._process.communicate()

    @contextlib.contextmanager
    def connect(self, database: str | None = None, **given: Any) -> Iterator[Any]:
        """A connection in autocommit."""
        with self._connect(database or self.spec.database, **given) as connection:
            yield connection

    def sql(self, text: str, database: str | None = None) -> list[tuple]:
        """Run a statement; its rows, dates as text."""
        with self.connect(database) as connection:
            cursor = connection.execute(text)
            return cursor.fetchall() if cursor.description else []

    def rows(self, schema: str, table: str) -> list[dict]:
        """The rows of a table; instants in UTC."""
        from psycopg.rows import dict_row

        with self.connect(row_factory=dict_row, options="-c timezone=UTC") as connection:
            # a real's text is the shortest, not that of the same double
            return connection.execute(f'SELECT * FROM "{schema}"."{table}"', binary=True).fetchall()

    def _connect(self, database: str, **given: Any) -> Any:
        import psycopg

        address = {"host": "127.0.0.1", "port": self.port, "user": TARGET_USER, "password": TARGET_PASSWORD, **given}
        return psycopg.connect(dbname=database, autocommit=True, **address)


@contextlib.contextmanager
def running() -> Iterator[Postgres]:
    """Run a server, or skip the test where none can be had."""
    if reason := missing():
        pytest.skip(reason)
    # where another user may come, too
    with tempfile.TemporaryDirectory(prefix="mssql_cdc_pg-", dir="/tmp") as folder:
        server = Postgres(Path(folder))
        try:
            server.start()
            server.sql('CREATE DATABASE "ware % house"', database="postgres")
            yield server
        finally:
            server.stop()
