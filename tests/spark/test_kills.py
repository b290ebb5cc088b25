"""A load that stops at any point, and is repeated: the targets equal the model, and the stopped one does no harm.

What stops is a thread: nothing of it runs any more, as after SIGKILL. Once the repeated load is compared, it goes on,
as a worker does that was taken for dead; then all is compared again.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests import histories
from tests.spark.kill_points import AFTER, DURING, POINTS, SHAPES, Point
from tests.spark.loads import Loads, check, prepare, write

pytestmark = [pytest.mark.xdist_group(__name__), pytest.mark.timeout(900)]


class Stop:
    """Stops the thread that comes to a point until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, point: Point) -> None:
        self._stands, self._go = threading.Event(), threading.Event()
        real: Callable[..., Any] = getattr(point.owner, point.name)
        calls = itertools.count(1)

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if next(calls) != point.call:
                return real(*args, **kwargs)
            result = real(*args, **kwargs) if point.when == AFTER else None
            if point.when == DURING:
                rows, folder = args
                rows.limit(3).write.parquet(folder)
            self._stands.set()
            self._go.wait(600)
            return result if point.when == AFTER else real(*args, **kwargs)

        monkeypatch.setattr(point.owner, point.name, wrapped)

    @contextmanager
    def meanwhile(self, work: Callable[[], object]) -> Iterator[None]:
        """Begin the work, and let it stand still meanwhile; it goes on at the end."""
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
            assert thread.is_alive(), failures
            yield
        finally:
            self._go.set()
            thread.join(300)
        assert not thread.is_alive()
        # what it finds gone is its own folder, or the target moved on
        assert all(isinstance(failure, AssertionError) for failure in failures), failures


@pytest.mark.parametrize("format_", POINTS)
def test_a_load_that_stops_anywhere_is_repeated(live, monkeypatch, format_, request):
    rng = random.Random(11)
    models = [histories.Model(h) for h in range(8)]
    live.format = format_
    if format_ == "postgresql":
        live.into(request.getfixturevalue("postgresql"))
    prepare(live)
    write(live, models, rng, 20)
    live.wait_captured()
    # one table, since each format takes seconds for each shape of each; LOBs are looked up before any commit
    loads = Loads(live, SHAPES[format_], tables=("parts",) if format_ == "parquet" else ("items",))
    for number, (label, point) in enumerate(POINTS[format_].items()):
        # the first point stops a first load
        if number:
            write(live, models, rng, 15)
            live.wait_captured()
        with monkeypatch.context() as patched:
            stop = Stop(patched, point)
            with stop.meanwhile(loads.load):
                loads.load()
                check_at(label, loads, models)
        check_at(f"{label}, and gone on", loads, models)

    write(live, models, rng, 15)
    live.wait_captured()
    loads.load(checkpoint=False)
    loads.load()
    check_at("no checkpoint", loads, models)
    assert loads.load()[1] is None


def check_at(label: str, loads: Loads, models: list[histories.Model]) -> None:
    try:
        check(loads, models)
    except AssertionError as error:
        error.add_note(f"stopped at: {label}")
        raise
