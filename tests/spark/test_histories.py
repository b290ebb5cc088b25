"""Random histories through hook, planner and Spark job, compared in full with a model in plain Python."""

from __future__ import annotations

import dataclasses
import random
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from airflow_provider_mssql_cdc.spark.job import run
from tests import histories
from tests.spark.loads import Loads, check, prepare, write

pytestmark = [pytest.mark.xdist_group(__name__), pytest.mark.timeout(900)]

HISTORIES = 200


def test_two_hundred_histories_with_random_cuts(live):
    rng = random.Random(20260301)
    models = [histories.Model(h) for h in range(HISTORIES)]
    prepare(live)
    write(live, models, rng, 150)
    live.wait_captured()
    loads = Loads(live)

    # two first loads at once: one of them wins, in each sink
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: loads.load(), range(2)))
    assert all(receipt is not None for _, receipt in both)
    check(loads, models)

    write(live, models, rng, 600)
    live.wait_captured()
    spec, receipt = loads.load(max_transactions=rng.choice([1, 30, 150]))
    assert receipt is not None
    # a second load of the same window changes nothing
    again = run(live.spark, dataclasses.replace(spec, id=uuid.uuid4().hex[:12]))
    assert {sink.outcome for table in again.tables for sink in table.sinks} <= {"already", "empty"}
    while loads.load(max_transactions=300)[1] is not None:
        pass
    check(loads, models)


def test_a_load_beside_writers_and_beside_another_load(live):
    rng = random.Random(7)
    models = [histories.Model(h) for h in range(20)]
    prepare(live)
    write(live, models, rng, 40)
    live.wait_captured()
    loads = Loads(live, ("mirror", "history"))
    with ThreadPoolExecutor(3) as pool:
        writer = pool.submit(write, live, models, rng, 150)
        first = [pool.submit(loads.load) for _ in range(2)]
        for future in [*first, writer]:
            future.result()
    with ThreadPoolExecutor(3) as pool:
        writer = pool.submit(write, live, models, rng, 100)
        more = [pool.submit(loads.load) for _ in range(2)]
        for future in [*more, writer]:
            future.result()
    live.wait_captured()
    loads.load()
    check(loads, models)
