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


# a lake stops at every tenth, or twelfth, point; PARTS says where it begins to count
OFTEN = {("iceberg", 0)}
EVERY = {"iceberg": 10, "delta": 12}
PARTS = [
    *(
        pytest.param(format_, part, marks=() if (format_, part) in OFTEN else pytest.mark.thorough)
        for format_, every in EVERY.items()
        for part in range(every)
    ),
    pytest.param("parquet", None, marks=pytest.mark.thorough),
    pytest.param("postgresql", None, marks=pytest.mark.thorough),
]


def test_each_format_has_its_points() -> None:
    assert {getattr(part, "values", part)[0] for part in PARTS} == set(POINTS)


@pytest.mark.every_run
@pytest.mark.parametrize(("format_", "part"), PARTS)
def test_a_load_that_stops_anywhere_is_repeated(live, monkeypatch, format_, part, request):
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
    for number, (label, point) in enumerate([at_first, *(later if part is None else later[part :: EVERY[format_]])]):
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
