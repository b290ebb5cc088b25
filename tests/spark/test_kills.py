"""A load that stops at any point, and is repeated: the targets equal the model, and the stopped one does no harm.

What stops is a thread: nothing of it runs any more, as after SIGKILL. Once the repeated load is compared, it goes on,
as a worker does that was taken for dead; then all is compared again.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests import histories
from tests.spark.kill_points import AFTER, BEFORE, POINTS, SHAPES
from tests.spark.loads import Loads, check, prepare, write

pytestmark = [pytest.mark.xdist_group(__name__), pytest.mark.timeout(900)]


class Stop:
    """Stops the first thread that comes to a function, before or after it, until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, when: str) -> None:
        self._stands, self._go, self._first = threading.Event(), threading.Event(), threading.Lock()
        real: Callable[..., Any] = getattr(owner, name)

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if not self._first.acquire(blocking=False):
                return real(*args, **kwargs)
            result = real(*args, **kwargs) if when == AFTER else None
            self._stands.set()
            self._go.wait(600)
            return real(*args, **kwargs) if when == BEFORE else result

        monkeypatch.setattr(owner, name, wrapped)

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
    for number, (point, (owner, name, when)) in enumerate(POINTS[format_].items()):
        # the first point stops a first load
        if number:
            write(live, models, rng, 15)
            live.wait_captured()
        with monkeypatch.context() as patched:
            stop = Stop(patched, owner, name, when)
            with stop.meanwhile(loads.load):
                loads.load()
                check_at(point, loads, models)
        check_at(f"{point}, and gone on", loads, models)

    write(live, models, rng, 15)
    live.wait_captured()
    loads.load(checkpoint=False)
    loads.load()
    check_at("no checkpoint", loads, models)
    assert loads.load()[1] is None


def check_at(point: str, loads: Loads, models: list[histories.Model]) -> None:
    try:
        check(loads, models)
    except AssertionError as error:
        error.add_note(f"stopped at: {point}")
        raise
