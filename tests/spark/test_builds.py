"""Loads from a server of before ``__$command_id``, and over the update that brings it."""

from __future__ import annotations

import copy
import random
import threading
import uuid

import pytest

from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.spec import ReplaySpec
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from airflow_provider_mssql_cdc.spark.copies.chunks import Chunks
from airflow_provider_mssql_cdc.spark.job import run
from tests.support import histories
from tests.support.harsh import harsh_sandbox
from tests.support.logins import SPARK_PASSWORD, SPARK_USER
from tests.support.spark.loads import Loads, check, prepare, write
from tests.support.spark.origin import Origin

pytestmark = [pytest.mark.xdist_group(__name__), pytest.mark.timeout(900)]

IDENTITY = ("_lsn", "_command_id", "_seqval", "_op")
SHAPES = ("mirror", "history")
TABLES = ("items", "parts")
OPERATIONS = {1: "D", 2: "I", 3: "B", 4: "U"}


@pytest.fixture
def live(spark, tmp_path, namespace):
    """A database of an old server, whose capture job runs."""
    with harsh_sandbox(user=SPARK_USER, password=SPARK_PASSWORD, build="2016") as server:
        yield Origin(spark, server, tmp_path, namespace, live=True)


def reader(origin: Origin) -> Loads:
    """Loads into targets of their own."""
    elsewhere = copy.copy(origin)
    elsewhere.namespace = f"t{uuid.uuid4().hex}"
    loads = Loads(elsewhere, SHAPES, TABLES)
    loads.unordered = True
    return loads


def captured(origin: Origin, name: str) -> set[tuple]:
    """The identities of all events that the source holds of a table."""
    columns = [row["name"] for row in origin.sql(f"SELECT name FROM sys.columns WHERE object_id = OBJECT_ID('{name}')")]
    command_id = "__$command_id" if "__$command_id" in columns else "CAST(NULL AS int)"
    rows = origin.sql(
        f"SELECT CONVERT(varchar(22), __$start_lsn, 1) AS lsn, {command_id} AS command,"
        f" CONVERT(varchar(22), __$seqval, 1) AS seqval, __$operation AS operation FROM {name}"
    )
    return {(row["lsn"], row["command"], row["seqval"], OPERATIONS[row["operation"]]) for row in rows}


def check_identities(origin: Origin, name: str, *, upto: str | None = None) -> int:
    """The events of a history are those that the source holds from the first of them on; how many they are."""
    rows = origin.lake(f"lab.{name}", "history")
    found = [tuple(row[column] for column in IDENTITY) for row in rows if row["_op"] != "R"]
    since = min((row["_lsn"] for row in rows if row["_op"] != "R"), default="0x")
    source = captured(origin, f"cdc.lab_{name}_CT")
    assert len(found) == len(set(found))
    assert set(found) == {each for each in source if found and since <= each[0] and (upto is None or each[0] <= upto)}
    return len(found)


def check_rows(loads: Loads, models: list[histories.Model]) -> None:
    """Mirror and history's outcome, where the source no longer holds all of its changes."""
    for name in loads.tables:
        width = histories.KEY_LENGTH[name]
        rows = sorted((row for model in models for row in model.rows[name].values()), key=repr)
        assert loads.mirror(name) == rows
        state: dict[tuple, tuple] = {}
        for operation, _, _, row in sorted(loads.history(name), key=lambda event: (event[1], event[2])):
            if operation == "D":
                del state[row[:width]]
            elif operation in "RIU":
                state[row[:width]] = row
        assert sorted(state.values(), key=repr) == rows


@pytest.mark.thorough
def test_random_histories_a_purge_a_restart_and_the_update(live):
    rng = random.Random(20160601)
    server: Sandbox = live.sandbox
    models = [histories.Model(h) for h in range(20)]
    prepare(live)
    write(live, models, rng, 40)
    live.wait_captured()
    between, across = reader(live), reader(live)
    for loads in (between, across):
        assert loads.load()[1] is not None

    write(live, models, rng, 60)
    live.wait_captured()
    assert between.load(max_transactions=25)[1] is not None
    server.restart()
    write(live, models, rng, 20)
    live.wait_captured()
    assert between.load()[1] is not None
    check(between, models)
    for name in TABLES:
        check_identities(between.origin, name)
    edge = str(live.max_lsn())
    # committed before the update, and captured after it; no dummy row comes behind what is loaded
    server.capture.hold()
    write(live, models, rng, 10)

    # between two windows of one reader, and within one of the other
    server.upgrade()

    write(live, models, rng, 40)
    live.wait_captured()
    for loads in (between, across):
        assert loads.load()[1] is not None
        check(loads, models)
        for name in TABLES:
            check_identities(loads.origin, name)
        ids = {row["_command_id"] is None for row in loads.origin.lake("lab.items", "history") if row["_lsn"] > edge}
        assert ids == {False}
    for name in TABLES:
        one, other = (loads.origin.lake(f"lab.{name}", "history") for loads in (between, across))
        low = max(min(row["_lsn"] for row in rows) for rows in (one, other))
        numbered = [{(*(r[c] for c in IDENTITY), r["_seq"]) for r in rows if r["_lsn"] > low} for rows in (one, other)]
        assert numbered[0] == numbered[1]

    # a window that begins among rows without command ids, and ends among those that have them, is there already
    upto = Lsn.parse(across.position("parts"))
    history = across.origin.table("lab.parts", shapes=["history"], at={"history": (upto, upto)})
    rows = sorted(map(repr, across.origin.lake("lab.parts", "history")))
    low = min(row["_lsn"] for row in across.origin.lake("lab.parts", "history"))
    replayed = across.origin.load(history, upto=upto, replay=ReplaySpec(Lsn.parse(low), upto))
    assert [each.error for each in replayed.tables] == [None]
    assert sorted(map(repr, across.origin.lake("lab.parts", "history"))) == rows

    # all that was loaded is purged, with the rows of before the update
    server.step_clock(30 * 86_400)
    write(live, models, rng, 20)
    live.wait_captured()
    old = [f"SELECT h FROM cdc.lab_{name}_CT WHERE __$command_id IS NULL" for name in TABLES]
    while any(live.sql(each) for each in old):
        server.cleanup(live.database)
    for loads in (between, across):
        assert loads.load()[1] is not None
    check_rows(between, models)


def test_a_first_load_that_was_planned_before_the_update_reads_command_ids(live, monkeypatch):
    rng = random.Random(3)
    models = [histories.Model(h) for h in range(5)]
    prepare(live)
    write(live, models, rng, 15)
    live.wait_captured()
    loads = Loads(live, ("history",), TABLES)
    _, spec = loads.plan()
    assert {each.feed.has_command_id for each in spec.tables} == {False}
    live.sandbox.upgrade()
    read, alone = Chunks.read, threading.Lock()

    def beside_writers(*args):
        found = read(*args)
        with alone:
            write(live, models, rng, 15)
        return found

    monkeypatch.setattr(Chunks, "read", beside_writers)
    receipt = run(live.spark, spec)
    assert [each.error for each in receipt.tables] == [None] * 2
    events = 0
    for each in receipt.tables:
        name, upto = each.name.table, str(each.sinks[0].read_through)
        events += check_identities(live, name, upto=upto)
    assert events > 0
