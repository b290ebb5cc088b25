"""The servers under test: the embedded sandbox, whose capture a test steps, or a real SQL Server."""

from __future__ import annotations

import contextlib
import datetime
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

import pytest

from airflow_provider_mssql_cdc.sandbox import Sandbox
from tests.support.conformance.client import Client, SqlServerError

REAL_SERVER = "MSSQL_CDC_TEST_CONN"
"""Environment variable with the URI of an Airflow connection to a sysadmin of a SQL Server."""

_PATIENCE = 120  # seconds for a real capture job to find what was committed
_PAUSE = 0.5  # seconds
_LOG_IS_READ = 22903


class Server(Protocol):
    """What the tests ask of either server.

    :param address: host, port, user and password of a sysadmin
    """

    address: dict[str, Any]

    def begin(self) -> None:
        """Start a test."""

    def only_embedded(self, reason: str) -> Embedded:
        """The sandbox, or skip the test.

        :param reason: why a real server cannot do it
        """

    def capture(self, database: str, admin: Client) -> None:
        """Have everything captured that is committed."""

    def scan(self, call: str, admin: Client) -> None:
        """Run sys.sp_cdc_scan, soon after the capture job was stopped."""

    def at_large(self) -> AbstractContextManager[None]:
        """Let the capture jobs run by themselves."""

    def tick(self, admin: Client) -> None:
        """Let commits before and after get different times."""

    def drop(self, database: str, logins: list[str], admin: Client) -> None:
        """Drop a database and logins."""


class Clock:
    """The sandbox's time, which stands still during a test unless that moves it."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Take the time of this machine, in UTC."""
        self.now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None, microsecond=0)

    def __call__(self) -> datetime.datetime:
        return self.now


class Embedded:
    """A sandbox with a running Agent whose capture jobs are held.

    :param options: further ones of ``Sandbox``
    """

    def __init__(self, **options: Any) -> None:
        self.clock = Clock()
        self.sandbox = Sandbox(database=None, clock=self.clock, capture_interval=None, **options)
        self.sandbox.start()
        self.sandbox.capture.hold()
        self.address = {
            "host": self.sandbox.host,
            "port": self.sandbox.port,
            "user": self.sandbox.user,
            "password": self.sandbox.password,
        }

    def begin(self) -> None:
        self.clock.start()

    def only_embedded(self, reason: str) -> Embedded:
        return self

    def capture(self, database: str, admin: Client) -> None:
        while self.sandbox.step(database):
            pass

    def scan(self, call: str, admin: Client) -> None:
        admin.run(call)

    @contextlib.contextmanager
    def at_large(self) -> Iterator[None]:
        self.sandbox.capture.release()
        try:
            yield
        finally:
            self.sandbox.capture.hold()

    @contextlib.contextmanager
    def agent_stopped(self) -> Iterator[None]:
        """Stop SQL Server Agent meanwhile."""
        self.sandbox.capture.stop()
        try:
            yield
        finally:
            self.sandbox.capture.start()

    @contextlib.contextmanager
    def services_hidden(self) -> Iterator[None]:
        """Show no services meanwhile."""
        self.sandbox.capture.services_visible = False
        try:
            yield
        finally:
            self.sandbox.capture.services_visible = True

    def idle_scan(self, database: str) -> None:
        """One scan, which finds nothing if the test has captured everything."""
        self.sandbox.step(database)

    def tick(self, admin: Client) -> None:
        self.advance(seconds=1)

    def drop(self, database: str, logins: list[str], admin: Client) -> None:
        """Logins stay: they end with the sandbox."""
        _drop(database, admin)

    def advance(self, **by: float) -> None:
        """Move the clock on.

        :param by: as ``datetime.timedelta`` takes it
        """
        self.clock.now += datetime.timedelta(**by)

    def close(self) -> None:
        """Stop it."""
        self.sandbox.stop()

    def __enter__(self) -> Embedded:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class Real:
    """A SQL Server with a running Agent.

    :param uri: of an Airflow connection
    """

    def __init__(self, uri: str) -> None:
        # Airflow takes seconds to import, and the sandbox needs nothing of it
        from airflow.providers.common.compat.sdk import Connection

        given = Connection.from_uri(uri, conn_id="conformance")
        self.address = {
            "host": given.host,
            "port": given.port or 1433,
            "user": given.login,
            "password": given.password,
        }

    def begin(self) -> None:
        """A real server needs nothing."""

    def only_embedded(self, reason: str) -> Embedded:
        pytest.skip(f"a real server: {reason}")

    def capture(self, database: str, admin: Client) -> None:
        """Wait for two scans that found nothing: the second began after everything was committed."""
        deadline, seen, empty = time.monotonic() + _PATIENCE, _last_scan(admin), 0
        while empty < 2:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{database}: no capture within {_PATIENCE} s; does SQL Server Agent run?")
            time.sleep(_PAUSE)
            if (newest := _last_scan(admin)) != seen:
                seen = newest
                empty += newest is not None and newest[2] == 0

    def scan(self, call: str, admin: Client) -> None:
        """A job that was told to stop keeps the log reader for a moment."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                admin.run(call)
                return
            except SqlServerError as error:
                if error.number != _LOG_IS_READ or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE)

    def at_large(self) -> AbstractContextManager[None]:
        return contextlib.nullcontext()

    def tick(self, admin: Client) -> None:
        admin.run("WAITFOR DELAY '00:00:00.050'")

    def drop(self, database: str, logins: list[str], admin: Client) -> None:
        _drop(database, admin)
        for login in logins:
            admin.run(f"DROP LOGIN {login}")

    def close(self) -> None:
        """Nothing is left behind: every test drops its database."""


def wait_for(condition: Callable[[], bool]) -> None:
    """Ask until a condition holds.

    :raises TimeoutError: if it does not in two minutes
    """
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("what the test waits for did not happen")


def _drop(database: str, admin: Client) -> None:
    """Drop a database, with whoever is still connected to it."""
    admin.run(f"ALTER DATABASE {database} SET SINGLE_USER WITH ROLLBACK IMMEDIATE")
    admin.run(f"DROP DATABASE {database}")


def _last_scan(admin: Client) -> tuple[Any, ...] | None:
    rows = admin.run(
        "SELECT TOP 1 session_id, empty_scan_count, tran_count FROM sys.dm_cdc_log_scan_sessions"
        " WHERE session_id <> 0 ORDER BY session_id DESC"
    )
    return rows[0] if rows else None


def unique(prefix: str) -> str:
    """A name that nobody else uses."""
    return f"{prefix}_{uuid.uuid4().hex[:10]}"
