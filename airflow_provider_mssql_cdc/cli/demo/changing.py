"""A thread that changes a table of the source in small transactions until it is stopped."""

from __future__ import annotations

import abc
import contextlib
import threading
from collections.abc import Callable
from typing import Any

from airflow_provider_mssql_cdc.cli.exit import CommandError


class Changing(abc.ABC):
    """Changes a table, in a thread of its own or on demand; not both at a time.

    :param connect: opens a DB-API connection without autocommit, with ``%s`` placeholders
    :ivar commits: how many transactions there were
    """

    pause = 0.01
    """Seconds between two transactions."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self.commits = 0

    def start(self) -> None:
        """Begin, or go on, in a thread."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End after the current transaction.

        :raises CommandError: if the thread ended with an error
        """
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            raise CommandError(f"the table could not be changed: {self._error}") from self._error

    @property
    def running(self) -> bool:
        """Whether the thread is at work."""
        return self._thread is not None and self._thread.is_alive()

    @abc.abstractmethod
    def transact(self, connection: Any) -> None:
        """Run one transaction, commit it, and count it."""

    def _run(self) -> None:
        try:
            with contextlib.closing(self._connect()) as connection:
                while not self._stop.wait(self.pause):
                    self.transact(connection)
        except Exception as error:
            # for the thread that stops this one
            self._error = error
