"""A load that stops at any point, and is repeated: the targets equal the model, and the stopped one does no harm.

What stops is a thread: nothing of it runs any more, as after SIGKILL. Once the repeated load is compared, it goes on,
as a worker does that was taken for dead; then all is compared again. Where it stands still, a reader finds all of a
window or nothing.
"""

from __future__ import annotations

import random

import pytest

from tests.support import histories
from tests.support.spark.kill_points import POINTS, SHAPES
from tests.support.spark.loads import Loads, check, prepare, write
from tests.support.spark.stop import Stop
from tests.support.spark.watch import Watch, watched

pytestmark = [pytest.mark.xdist_group(__name__), pytest.mark.timeout(900)]


# what both lakes share stops the one at every third point, and the other at others
THIRDS = [
    ("iceberg", 0),
    *(pytest.param("iceberg", third, marks=pytest.mark.thorough) for third in (1, 2)),
    *(pytest.param("delta", third, marks=pytest.mark.thorough) for third in (0, 2)),
    ("delta", 1),
    ("parquet", None),
    ("postgresql", None),
]


def test_each_format_has_its_points() -> None:
    assert {getattr(third, "values", third)[0] for third in THIRDS} == set(POINTS)


@pytest.mark.parametrize(("format_", "third"), THIRDS)
def test_a_load_that_stops_anywhere_is_repeated(live, monkeypatch, format_, third, request):
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
    at_first, *later = POINTS[format_].items()
    for number, (label, point) in enumerate([at_first, *(later if third is None else later[third::3])]):
        # the first point stops a first load
        if number:
            write(live, models, rng, 15)
            live.wait_captured()
        # before a first load there is nothing to read
        reader = Watch(loads, loads.tables[0]) if number else None
        with monkeypatch.context() as patched:
            stop = Stop(patched, point)
            # what it finds gone is its own folder, or the target moved on
            with stop.meanwhile(loads.load, may_fail=True):
                if reader:
                    reader.look()
                loads.load()
                check_at(label, loads, models)
        check_at(f"{label}, and gone on", loads, models)
        if reader:
            reader.at_rest()
            reader.check()

    write(live, models, rng, 15)
    live.wait_captured()
    with watched(loads, loads.tables[0]) as found:
        loads.load(checkpoint=False)
    found.at_rest()
    found.check()
    loads.load()
    check_at("no checkpoint", loads, models)
    assert loads.load()[1] is None


def check_at(label: str, loads: Loads, models: list[histories.Model]) -> None:
    try:
        check(loads, models)
    except AssertionError as error:
        error.add_note(f"stopped at: {label}")
        raise
