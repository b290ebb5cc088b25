"""Random histories that go on between the reads of a load, where the seed of a harsh server draws it.

What the loads leave of them is done after each load, so that the targets are compared with the model in full.
"""

from __future__ import annotations

import pytest

from tests.spark.test_histories import BATCHES, begun, seeded  # noqa: F401
from tests.support.spark.loads import check, write_meanwhile

# where Spark runs already
pytestmark = [pytest.mark.xdist_group("tests.spark.test_histories"), pytest.mark.timeout(900)]

LOADS, TRANSACTIONS = 2, 30


@pytest.mark.thorough
@pytest.mark.parametrize("seed", BATCHES)
def test_histories_that_go_on_between_the_reads_of_a_load(seeded, seed, request):  # noqa: F811
    live, between = seeded, []
    rng, models, loads = begun(live, seed, request, 100)
    for _ in range(LOADS):
        supply = write_meanwhile(live, models, rng, TRANSACTIONS)
        loads.load()
        between.append(TRANSACTIONS - len(supply.left))
        supply.finish()
        live.wait_captured()
    while loads.load()[1] is not None:
        pass
    assert all(between)
    check(loads, models)
