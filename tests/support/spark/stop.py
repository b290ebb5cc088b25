"""A thread that stands still at a point of a load while others go on."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from airflow_provider_mssql_cdc.spark.targets.delta import DeltaTable
from tests.support.spark.kill_points import AFTER, DURING, Point


class Killed(BaseException):
    """Ends a thread that is not to go on."""


class Stop:
    """Stops the thread that comes to a point until it is let go.

    :param kills: it never goes on from there: let go, it ends
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, point: Point, *, kills: bool = False) -> None:
        self._stands, self._go, self._reached = threading.Event(), threading.Event(), False
        real: Callable[..., Any] = getattr(point.owner, point.name)
        calls = itertools.count(1)

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if next(calls) != point.call:
                return real(*args, **kwargs)
            result = real(*args, **kwargs) if point.when == AFTER else None
            if point.when == DURING and point.owner is DeltaTable:
                table, write = args
                write.rows.limit(3).write.mode("append").parquet("/".join(table._name))
            elif point.when == DURING:
                rows, folder = args
                rows.limit(3).write.parquet(folder)
            self._reached = True
            self._stands.set()
            self._go.wait(600)
            if kills:
                raise Killed
            return result if point.when == AFTER else real(*args, **kwargs)

        monkeypatch.setattr(point.owner, point.name, wrapped)

    @contextmanager
    def meanwhile(self, work: Callable[[], object], *, may_fail: bool = False) -> Iterator[None]:
        """Begin the work, and let it stand still meanwhile; it goes on at the end.

        :param may_fail: when it goes on
        """
        failures: list[BaseException] = []

        def run() -> None:
            try:
                work()
            except BaseException as error:
                failures.append(error)
            finally:
                self._stands.set()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            assert self._stands.wait(300)
            assert self._reached, failures
            yield
        finally:
            self._go.set()
            thread.join(300)
        assert not thread.is_alive()
        expected = (Killed, AssertionError) if may_fail else Killed
        if failures and not isinstance(failures[0], expected):
            raise failures[0]


def kill_at(patch: pytest.MonkeyPatch, point: Point) -> None:
    """End the load at a point."""
    real, calls = getattr(point.owner, point.name), itertools.count(1)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if next(calls) != point.call:
            return real(*args, **kwargs)
        if point.when == AFTER:
            real(*args, **kwargs)
        raise Killed

    patch.setattr(point.owner, point.name, wrapped)
