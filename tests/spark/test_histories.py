"""Random histories through hook, planner and Spark job, compared in full with a model in plain Python.

They are always the same ones; ``python -m tests.histories --count 1000 --seed 1`` runs others, and more, with more
stops. They come in batches, each with a harsh server and a seed of its own. A failing history is told as a script in
T-SQL, and the loads and stops as they come.
"""

from __future__ import annotations

import dataclasses
import os
import random
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from airflow_provider_mssql_cdc.sandbox.protocol import IsolationLevel
from airflow_provider_mssql_cdc.sandbox.tsql import relations
from airflow_provider_mssql_cdc.sandbox.tsql.reads import Reads
from airflow_provider_mssql_cdc.spark.job import run
from airflow_provider_mssql_cdc.spark.load import TableLoad
from tests.support import harsh, histories
from tests.support.logins import SPARK_PASSWORD, SPARK_USER
from tests.support.spark.kill_points import COPIED, POINTS, SHAPES
from tests.support.spark.loads import Loads, check, prepare, write
from tests.support.spark.origin import Origin
from tests.support.spark.stop import Stop
from tests.support.spark.watch import watched

pytestmark = [pytest.mark.xdist_group(__name__), pytest.mark.timeout(900)]

HISTORIES = int(os.environ.get("MSSQL_CDC_TEST_HISTORIES", "8"))
BATCH = min(HISTORIES, int(os.environ.get("MSSQL_CDC_TEST_BATCH", "200")))
FORMAT = os.environ.get("MSSQL_CDC_TEST_FORMAT", "iceberg")
BATCHES = {harsh.SEED + n: min(BATCH, HISTORIES - n * BATCH) for n in range(-(-HISTORIES // BATCH))}
"""How many histories there are of each seed."""
WAYS = {
    "locks": ("OFF", "OFF", IsolationLevel.READ_COMMITTED, Reads.LOCKS),
    "READ_COMMITTED_SNAPSHOT": ("ON", "OFF", IsolationLevel.READ_COMMITTED, Reads.VERSIONS),
    "SNAPSHOT": ("OFF", "ON", IsolationLevel.SNAPSHOT, Reads.VERSIONS),
}
"""The ways to read a table: READ_COMMITTED_SNAPSHOT, ALLOW_SNAPSHOT_ISOLATION, and how the server reads it then."""


@pytest.fixture
def seeded(spark, tmp_path, namespace, seed):
    """A database on a server that draws by the seed, and whose capture job runs."""
    with harsh.harsh_sandbox(user=SPARK_USER, password=SPARK_PASSWORD, seed=seed) as server:
        yield Origin(spark, server, tmp_path, namespace, live=True)


def begun(live, seed, request, transactions):
    """Histories that were written so far: what draws them, their models, and the loads of them."""
    count = BATCHES[seed]
    # what a failure needs to be repeated
    print(f"python -m tests.histories --seed {seed} --count {count} --format {FORMAT} --build {harsh.BUILD}")
    rng = random.Random(seed)
    live.format = FORMAT
    if FORMAT == "postgresql":
        live.into(request.getfixturevalue("postgresql"))
    models = [histories.Model(h) for h in range(count)]
    prepare(live)
    write(live, models, rng, transactions)
    live.wait_captured()
    loads = Loads(live, SHAPES[FORMAT])
    loads.unordered = harsh.BUILD == "2016"
    return rng, models, loads


@contextmanager
def read_by(live: Origin, way: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the database's options decide how tables are read, and prove that all that is read of them meanwhile is."""
    versions, snapshots, *expected = WAYS[way]
    live.sql(f"ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT {versions}")
    live.sql(f"ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION {snapshots}")
    found, how = set(), relations.how

    def noted(isolation, database, hints):
        reads = how(isolation, database, hints)
        found.add((isolation, reads))
        return reads

    with monkeypatch.context() as patched:
        patched.setattr(relations, "how", noted)
        yield
    assert found == {tuple(expected)}


@pytest.mark.every_run
@pytest.mark.parametrize("seed", BATCHES)
def test_histories_with_random_cuts_and_stops(seeded, seed, monkeypatch, request):
    live, count = seeded, BATCHES[seed]
    rng, models, loads = begun(live, seed, request, 100)

    # a third of the rows is copied in each way
    for table, way in zip(histories.COLUMNS, rng.sample(list(WAYS), len(WAYS)), strict=True):
        print(f"two first loads of {table} by {way} at once: one of them wins, in each sink")
        loads.take(table)
        with read_by(live, way, monkeypatch), ThreadPoolExecutor(2) as pool:
            both = list(pool.map(lambda _: loads.load(), range(2)))
        assert all(receipt is not None for _, receipt in both)
    loads.take(*histories.COLUMNS)
    check(loads, models)

    # enough for each of the loads to come
    write(live, models, rng, max(3 * count, 320))
    live.wait_captured()
    limit = rng.choice([1, 30, 150])
    print(f"a load of {limit} transactions")
    spec, receipt = loads.load(max_transactions=limit)
    assert receipt is not None
    # a second load of the same window changes nothing
    again = run(live.spark, dataclasses.replace(spec, id=uuid.uuid4().hex[:12]))
    assert {sink.outcome for table in again.tables for sink in table.sinks} <= {"already", "empty"}
    later = [label for label, point in POINTS[FORMAT].items() if point != COPIED]
    with watched(loads, "flags") as found:
        for label in rng.choices(later, k=-(-count // 100)):
            print(f"a load of 150 transactions that stops at: {label}; another one; and it goes on")
            with monkeypatch.context() as patched:
                stop = Stop(patched, POINTS[FORMAT][label])
                with stop.meanwhile(lambda: loads.load(max_transactions=150), may_fail=True):
                    loads.load(max_transactions=150)
            found.at_rest()
        while loads.load(max_transactions=150)[1] is not None:
            found.at_rest()
    assert found.moments[0] != found.moments[-1]
    found.check()
    check(loads, models)


@pytest.mark.thorough
def test_the_list_of_tables_may_change(live, monkeypatch):
    rng = random.Random(3)
    models = [histories.Model(h) for h in range(5)]
    prepare(live)

    def load(*tables, failing=()):
        write(live, models, rng, 20)
        live.wait_captured()
        loads.take(*tables)
        _, receipt = loads.load(failing=failing)
        return {table.name.table: [sink.outcome for sink in table.sinks] for table in receipt.tables}

    def contents(table):
        return loads.mirror(table), loads.history(table)

    loads = Loads(live, ("mirror", "history"))
    assert load("flags") == {"flags": ["first_load"] * 2}

    # a table that is added begins by itself, and the others go on
    assert load("flags", "items") == {"flags": ["loaded"] * 2, "items": ["first_load"] * 2}
    check(loads, models)

    # one that is removed is left alone
    left = contents("flags")
    assert load("items") == {"items": ["loaded"] * 2}
    check(loads, models)
    assert contents("flags") == left

    # one of which the second shape fails after the first has committed does not hold up the other
    settle = TableLoad._settle

    def fail(load, sink, *args):
        if load._table.name.table == "items" and sink.shape == "history":
            raise OSError("No space left on device")
        return settle(load, sink, *args)

    with monkeypatch.context() as patched:
        patched.setattr(TableLoad, "_settle", fail)
        assert load("items", "flags", failing=("items",)) == {"items": ["loaded"], "flags": ["loaded"] * 2}
    assert load("items", "flags") == {"items": ["loaded"] * 2, "flags": ["loaded"] * 2}
    check(loads, models)

    # nor does one whose mirror somebody has changed, whose history goes on
    mirror = loads.mirror("items")
    live.spark.sql(f"ALTER TABLE {live.sql_name('lab.items', 'mirror')} RENAME COLUMN amount TO amounts").collect()
    assert load("flags", "items", failing=("items",)) == {"flags": ["loaded"] * 2, "items": ["loaded"]}
    live.spark.sql(f"ALTER TABLE {live.sql_name('lab.items', 'mirror')} RENAME COLUMN amounts TO amount").collect()
    assert loads.mirror("items") == mirror
    assert load("flags", "items") == {"flags": ["loaded"] * 2, "items": ["loaded"] * 2}
    check(loads, models)


@pytest.mark.thorough
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
