"""Random histories through hook, planner and Spark job, compared in full with a model in plain Python."""

from __future__ import annotations

import dataclasses
import datetime
import random
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from airflow.models.connection import Connection

from airflow_provider_mssql_cdc.core.checkpoint import CheckpointStore
from airflow_provider_mssql_cdc.core.plan import SinkOptions
from airflow_provider_mssql_cdc.core.spec import JobSpec, Receipt, from_json, to_json
from airflow_provider_mssql_cdc.core.target import Target
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.operators.outcome import Outcome
from airflow_provider_mssql_cdc.operators.planning import Request, plan_load
from airflow_provider_mssql_cdc.spark.job import run
from tests import histories
from tests.core.test_checkpoint import Variables

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(900)]

HISTORIES = 200
SHAPES = ("mirror", "history")


class Loads:
    """Runs of the load over one database, with checkpoints in a dict, as the operator makes them."""

    def __init__(self, origin) -> None:
        self.origin = origin
        self.store = CheckpointStore(Variables())
        self.request = Request(
            connection="lab",
            patterns=("lab.*",),
            exclude=(),
            options=SinkOptions(Target.parse(f"iceberg://lake/{origin.namespace}"), SHAPES, "{schema}_{table}"),
        )
        self.connection = Connection(
            conn_id="lab",
            conn_type="mssql",
            host=origin.sandbox.host,
            port=origin.sandbox.port,
            login=origin.sandbox.user,
            password=origin.sandbox.password,
            schema=origin.database,
        )

    def load(self, max_transactions: int | None = None) -> tuple[JobSpec | None, Receipt | None]:
        """Plan, run the job, and move the checkpoints."""
        request = dataclasses.replace(self.request, max_transactions=max_transactions)
        hook = MsSqlCdcHook(connection=self.connection)
        try:
            plan = plan_load(hook, self.store, request, None)
        finally:
            hook.close()
        assert plan.failures == {}
        assert plan.upto is not None
        spec = receipt = None
        if plan.specs:
            spec = self.origin.spec(*plan.specs, upto=plan.upto)
            spec = dataclasses.replace(spec, id=uuid.uuid4().hex[:12])
            receipt = run(self.origin.spark, from_json(JobSpec, to_json(spec)))
            assert [table.error for table in receipt.tables] == [None] * len(receipt.tables)
        for checkpoint in Outcome(plan, spec, receipt).checkpoints(request, datetime.datetime.now(datetime.UTC)):
            self.store.save(checkpoint)
        return spec, receipt

    def mirror(self, table: str) -> list[tuple]:
        rows = self.origin.spark.table(f"lake.{self.origin.namespace}.lab_{table}").collect()
        return sorted((plain(row) for row in rows), key=repr)

    def history(self, table: str, h: int | None = None) -> list[tuple[str, str, int, tuple]]:
        """The history's rows in event order: operation, commit LSN, number in the transaction, values."""
        columns = histories.COLUMNS[table]
        rows = self.origin.spark.table(f"lake.{self.origin.namespace}.lab_{table}_history").collect()
        found = [(row["_op"], row["_lsn"], row["_seq"] or 0, plain(row[c] for c in columns)) for row in rows]
        return sorted(found, key=lambda event: (event[1], event[2]))


def plain(values) -> tuple:
    return tuple(bytes(value) if isinstance(value, bytearray) else value for value in values)


def prepare(origin) -> None:
    origin.sql("CREATE SCHEMA lab")
    origin.sql(histories.SCHEMA)
    first, *others = histories.COLUMNS
    for table in others:
        origin.sql(
            f"EXEC sys.sp_cdc_enable_table @source_schema = N'lab', @source_name = N'{table}', @role_name = NULL"
        )
    origin.enable(f"lab.{first}")


def write(origin, models, rng, transactions: int) -> None:
    for _ in range(transactions):
        origin.sql(";\n".join(histories.transaction(rng.choice(models), rng)))


def check(loads: Loads, models: list[histories.Model]) -> None:
    """The mirror holds the models' rows; the history holds copied rows, then every event since, and leads to them."""
    for table in histories.COLUMNS:
        assert loads.mirror(table) == sorted(histories.expected_rows(models, table), key=repr)
        by_history: dict[int, list[tuple[str, str, int, tuple]]] = {model.h: [] for model in models}
        for event in loads.history(table):
            by_history[event[3][0]].append(event)
        for model in models:
            check_history(table, model, by_history[model.h])


def check_history(table: str, model: histories.Model, found: list[tuple[str, str, int, tuple]]) -> None:
    copied = {row[: histories.KEY_LENGTH[table]]: row for op, _, _, row in found if op == "R"}
    events = [(op, row) for op, _, _, row in found if op != "R"]
    expected = [(op, row) for _, op, row in model.events[table]]
    assert events == expected[len(expected) - len(events) :]
    state = dict(replay(table, expected[: len(expected) - len(events)], {}).items())
    # a copied row whose key changed while the copy was made gives way to the events
    assert copied.items() <= state.items()
    touched = {row[: histories.KEY_LENGTH[table]] for op, row in events}
    assert state.keys() - copied.keys() <= touched
    assert replay(table, events, state) == model.rows[table]


def replay(table: str, events, state):
    state = dict(state)
    for op, row in events:
        key = row[: histories.KEY_LENGTH[table]]
        if op == "D":
            del state[key]
        elif op in "IU":
            state[key] = row
    return state


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

    for _ in range(3):
        write(live, models, rng, 200)
        live.wait_captured()
        spec, receipt = loads.load(max_transactions=rng.choice([1, 30, 150]))
        assert receipt is not None
        # a second load of the same window changes nothing
        again = run(live.spark, dataclasses.replace(spec, id=uuid.uuid4().hex[:12]))
        assert {sink.outcome for table in again.tables for sink in table.sinks} <= {"already", "empty"}
    while loads.load(max_transactions=250)[1] is not None:
        pass
    check(loads, models)


def test_a_load_beside_writers_and_beside_another_load(live):
    rng = random.Random(7)
    models = [histories.Model(h) for h in range(20)]
    prepare(live)
    write(live, models, rng, 40)
    live.wait_captured()
    loads = Loads(live)
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
