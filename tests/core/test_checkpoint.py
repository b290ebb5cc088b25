import dataclasses
import datetime
import decimal
import itertools
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.checkpoint import (
    SAME_TIME,
    Checkpoint,
    CheckpointStore,
    Failure,
    Identity,
    InstanceRef,
    SinkState,
    Witness,
)
from airflow_provider_mssql_cdc.core.exceptions import CheckpointError
from airflow_provider_mssql_cdc.core.lsn import Lsn
from airflow_provider_mssql_cdc.core.table import TableName

from .strategies import checkpoints
from .variables import Variables

IDENTITY = Identity("mssql_default", "shop", TableName("sales", "token.orders"), "iceberg://lake/shop")


def lsn(number: int) -> Lsn:
    return Lsn(number.to_bytes(10, "big"))


def ticks() -> list[set[datetime.datetime]]:
    """For each tick of a second of SQL Server's datetime, the moments that clients make of it."""
    noon = datetime.datetime(2026, 3, 1, 12)
    exact = [decimal.Decimal(tick) / 300 for tick in range(301)]
    return [
        {
            noon + datetime.timedelta(seconds=float(seconds.quantize(decimal.Decimal(digits), rounding)))
            for digits, rounding in [
                ("0.001", decimal.ROUND_HALF_UP),  # styles 21 and 121, mssql-jdbc
                ("0.001", decimal.ROUND_DOWN),
                ("0.000001", decimal.ROUND_DOWN),
                ("0.000001", decimal.ROUND_HALF_UP),
            ]
        }
        for seconds in exact
    ]


def test_a_datetime_is_the_same_in_all_clients_and_never_the_next_tick():
    every = ticks()
    for same in every:
        assert max(same) - min(same) < SAME_TIME
    for one, following in itertools.pairwise(every):
        assert min(following) - max(one) >= SAME_TIME


@given(checkpoints)
def test_every_checkpoint_reads_back_from_its_json(checkpoint):
    assert Checkpoint.from_json(checkpoint.to_json()) == checkpoint


@given(checkpoints)
def test_the_position_is_the_lowest_read_through(checkpoint):
    throughs = [sink.read_through for sink in checkpoint.sinks.values()]
    assert checkpoint.position == (min(throughs) if throughs else None)


def test_the_key_is_short_and_holds_no_name():
    assert re.fullmatch("mssql_cdc__[0-9a-f]{16}", IDENTITY.variable)
    other = dataclasses.replace(IDENTITY, table=TableName("sales.token", "orders"))
    assert other.variable != IDENTITY.variable


def test_the_json_shows_the_identity_to_people():
    data = json.loads(Checkpoint(IDENTITY).to_json())
    assert {key: data[key] for key in ("version", "connection", "database", "schema", "table", "target")} == {
        "version": 1,
        "connection": "mssql_default",
        "database": "shop",
        "schema": "sales",
        "table": "token.orders",
        "target": "iceberg://lake/shop",
    }


def test_read_through_cannot_lie_below_applied():
    with pytest.raises(ValueError, match="lies below"):
        SinkState(lsn(2), lsn(1))


def test_a_newer_version_is_refused():
    text = json.dumps({**json.loads(Checkpoint(IDENTITY).to_json()), "version": 2})
    with pytest.raises(CheckpointError, match=r"version 2.*Upgrade"):
        Checkpoint.from_json(text)


@pytest.mark.parametrize(
    "damage", ["", "[]", "{}", '{"version": 1}', "null", "not json", '{"version": null}', '{"version": "x"}']
)
def test_a_damaged_checkpoint_is_an_error_that_says_so(damage):
    with pytest.raises(CheckpointError, match="checkpoint"):
        Checkpoint.from_json(damage)


def test_a_damaged_position_is_named():
    checkpoint = Checkpoint(IDENTITY, {"mirror": SinkState(lsn(1), lsn(1))})
    with pytest.raises(CheckpointError, match=r"sales\.token\.orders.*not an LSN"):
        Checkpoint.from_json(checkpoint.to_json().replace(str(lsn(1)), "0x01"))


def test_the_store_gives_back_what_it_saved_and_stamps_it():
    store = CheckpointStore(Variables())
    checkpoint = Checkpoint(IDENTITY, {"mirror": SinkState(lsn(1), lsn(3))})
    assert store.load(IDENTITY) is None
    assert store.save(checkpoint)
    loaded = store.load(IDENTITY)
    assert loaded.updated_at is not None
    assert dataclasses.replace(loaded, updated_at=None) == checkpoint


def test_a_witness_of_an_earlier_version_knows_no_recovery_fork():
    stored = Checkpoint(IDENTITY, {"mirror": SinkState(lsn(1), lsn(1), Witness(lsn(1), NOON, "A"))})
    data = json.loads(stored.to_json())
    del data["sinks"]["mirror"]["witness"]["recovery_fork"]
    assert Checkpoint.from_json(json.dumps(data)).sinks["mirror"].witness == Witness(lsn(1), NOON)


NOON = datetime.datetime(2026, 3, 1, 12)
LOADED = Checkpoint(
    IDENTITY,
    {"mirror": SinkState(lsn(1), lsn(5)), "history": SinkState(lsn(1), lsn(2))},
    InstanceRef("sales_orders", 11, NOON),
    "1:abc",
    ("id int",),
)


def saved(*written: Checkpoint) -> Checkpoint:
    """What is stored after these writes, one after the other."""
    store = CheckpointStore(Variables())
    for checkpoint in written:
        store.save(checkpoint)
    return dataclasses.replace(store.load(IDENTITY), updated_at=None)


def test_an_automatic_write_never_moves_a_sink_back():
    variables = Variables()
    store = CheckpointStore(variables)
    store.save(LOADED)
    before = dict(variables)
    older = {"mirror": SinkState(lsn(4), lsn(4)), "history": SinkState(lsn(1), lsn(1))}
    assert not store.save(dataclasses.replace(LOADED, sinks=older, failed=Failure("an older run's", NOON)))
    assert variables == before


def test_a_run_that_was_planned_before_does_not_undo_what_a_person_set():
    variables = Variables()
    store = CheckpointStore(variables)
    named = Checkpoint(IDENTITY, {"mirror": SinkState(lsn(4), lsn(4), asserted="word")})
    store.overwrite(named)
    before = dict(variables)
    further = Checkpoint(IDENTITY, {"mirror": SinkState(lsn(9), lsn(9))})
    for seen in (None, further, Checkpoint(IDENTITY, {"mirror": SinkState(lsn(1), lsn(1), asserted="earlier")})):
        assert not store.save(further, seen)
        assert variables == before
    assert store.save(further, named)
    assert store.load(IDENTITY).sinks == further.sinks


def test_a_run_that_was_planned_before_does_not_bring_back_what_a_person_reset():
    variables = Variables()
    store = CheckpointStore(variables)
    further = {shape: SinkState(lsn(9), lsn(9)) for shape in LOADED.sinks}
    assert not store.save(dataclasses.replace(LOADED, sinks=further), LOADED)
    assert variables == {}
    history = {"history": LOADED.sinks["history"]}
    store.overwrite(dataclasses.replace(LOADED, sinks=history))
    assert store.save(dataclasses.replace(LOADED, sinks=further), LOADED)
    assert store.load(IDENTITY).sinks == {"history": SinkState(lsn(9), lsn(9))}
    # a first load adds what was not there
    assert store.save(dataclasses.replace(LOADED, sinks=further), store.load(IDENTITY))
    assert store.load(IDENTITY).sinks == further


def test_an_older_write_of_one_sink_keeps_the_progress_of_another():
    written = {"mirror": SinkState(lsn(4), lsn(4)), "history": SinkState(lsn(9), lsn(9))}
    merged = saved(LOADED, dataclasses.replace(LOADED, sinks=written))
    assert merged == dataclasses.replace(
        LOADED, sinks={"mirror": LOADED.sinks["mirror"], "history": written["history"]}
    )


def test_a_write_of_one_sink_keeps_the_others():
    mirror = {"mirror": SinkState(lsn(6), lsn(6))}
    newer = InstanceRef("sales_orders_v2", 12, NOON)
    written = Checkpoint(IDENTITY, mirror, newer, "1:def", ("id bigint",))
    assert saved(LOADED, written) == dataclasses.replace(written, sinks={**LOADED.sinks, **mirror})


def test_a_failure_without_sinks_keeps_what_is_loaded():
    failed = Failure("no capture instance", NOON)
    assert saved(LOADED, Checkpoint(IDENTITY, failed=failed)) == dataclasses.replace(LOADED, failed=failed)


def test_a_success_ends_the_failure():
    assert saved(dataclasses.replace(LOADED, failed=Failure("no", NOON)), LOADED) == LOADED


@given(st.lists(checkpoints, max_size=4))
def test_whatever_the_order_of_writes_each_sink_ends_where_it_was_furthest(written):
    written = [
        dataclasses.replace(
            checkpoint,
            identity=IDENTITY,
            # as runs write them: a person's word comes from elsewhere
            sinks={shape: dataclasses.replace(sink, asserted=None) for shape, sink in checkpoint.sinks.items()},
        )
        for checkpoint in written
    ]
    states: dict[str, list[SinkState]] = {}
    for checkpoint in written:
        for shape, state in checkpoint.sinks.items():
            states.setdefault(shape, []).append(state)
    furthest = {shape: max(each, key=lambda s: (s.read_through, s.applied)) for shape, each in states.items()}
    for order in (written, written[::-1]):
        if order:
            assert {shape: (s.applied, s.read_through) for shape, s in saved(*order).sinks.items()} == {
                shape: (s.applied, s.read_through) for shape, s in furthest.items()
            }


def test_another_tables_checkpoint_under_the_same_key_is_refused():
    variables = Variables()
    other = dataclasses.replace(IDENTITY, database="other")
    variables[IDENTITY.variable] = Checkpoint(other).to_json()
    with pytest.raises(CheckpointError, match="holds the checkpoint of"):
        CheckpointStore(variables).load(IDENTITY)
