import copy
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
    Checkpoint,
    CopyState,
    Failure,
    Identity,
    SinkState,
    Told,
)
from airflow_provider_mssql_cdc.core.checkpoint_store import _PROGRESS, CheckpointStore
from airflow_provider_mssql_cdc.core.codec import from_data, from_json, to_data, to_json
from airflow_provider_mssql_cdc.core.exceptions import CheckpointError, NewerCheckpointError
from airflow_provider_mssql_cdc.core.feed import FeedRef
from airflow_provider_mssql_cdc.core.lineage import OtherPosition, Witness
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.proposal import Making, Proposal
from airflow_provider_mssql_cdc.core.schema_changes import Statement, UnwrittenEvent
from airflow_provider_mssql_cdc.core.schema_sight import PendingChange, SeenSchema
from airflow_provider_mssql_cdc.core.table import SAME_TIME, TableName
from tests.support.core.states import checkpoint_of
from tests.support.core.strategies import checkpoints
from tests.support.core.variables import Variables

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
    assert from_json(Checkpoint, to_json(checkpoint)) == checkpoint


@given(checkpoints)
def test_the_position_is_the_lowest_read_through(checkpoint):
    throughs = [sink.read_through for sink in checkpoint.sinks.values()]
    assert checkpoint.position(checkpoint.sinks) == (min(throughs) if throughs else None)


def test_the_key_is_short_and_holds_no_name():
    assert re.fullmatch("mssql_cdc__[0-9a-f]{16}", IDENTITY.variable)
    other = dataclasses.replace(IDENTITY, table=TableName("sales.token", "orders"))
    assert other.variable != IDENTITY.variable


def test_the_json_shows_the_identity_to_people():
    data = to_data(Checkpoint(IDENTITY))
    assert {key: data[key] for key in ("version", "needs", "identity")} == {
        "version": 2,
        "needs": "0.2.0",
        "identity": {
            "connection": "mssql_default",
            "database": "shop",
            "table": {"schema": "sales", "table": "token.orders"},
            "target": "iceberg://lake/shop",
            "name": "",
        },
    }


def test_read_through_cannot_lie_below_applied():
    with pytest.raises(ValueError, match="lies below"):
        SinkState(lsn(2), lsn(1))


def store_of(text: str) -> CheckpointStore:
    return CheckpointStore(Variables({IDENTITY.variable: text}))


def test_a_newer_version_is_refused_and_stays_as_it_is():
    text = json.dumps({**to_data(Checkpoint(IDENTITY)), "version": 3, "needs": "0.9.1"})
    store = store_of(text)
    for use in (store.load, lambda identity: store.save(LOADED), lambda identity: store.save(LOADED, LOADED)):
        with pytest.raises(NewerCheckpointError, match=rf"version 3.*0\.9\.1 reads.*Upgrade.*{IDENTITY.variable}"):
            use(IDENTITY)
    assert store.variables == {IDENTITY.variable: text}


@pytest.mark.parametrize(
    "damage",
    ["", "[]", "{}", '{"version": 1}', '{"version": 2}', "null", "not json", '{"version": null}', '{"version": "x"}'],
)
def test_a_damaged_checkpoint_is_an_error_that_says_so(damage):
    with pytest.raises(CheckpointError, match=r"sales\.token\.orders: .*checkpoint.*Repair or delete"):
        store_of(damage).load(IDENTITY)


def test_a_damaged_position_is_named():
    checkpoint = Checkpoint(IDENTITY, {"mirror": SinkState(lsn(1), lsn(1))})
    with pytest.raises(CheckpointError, match=r"sales\.token\.orders.*not an LSN"):
        store_of(to_json(checkpoint).replace(str(lsn(1)), "0x01")).load(IDENTITY)


def test_a_position_of_another_kind_is_refused():
    checkpoint = Checkpoint(IDENTITY, {"mirror": SinkState(lsn(1), lsn(1))})
    text = to_json(checkpoint).replace('"kind": "lsn"', '"kind": "sync_version"')
    with pytest.raises(CheckpointError, match="'sync_version' is none of lsn"):
        store_of(text).load(IDENTITY)


VERSION_1 = {
    "version": 1,
    "connection": IDENTITY.connection,
    "database": IDENTITY.database,
    "schema": IDENTITY.table.schema,
    "table": IDENTITY.table.table,
    "target": IDENTITY.target,
    "name": "",
    "sinks": {
        "mirror": {
            "applied": str(lsn(1)),
            "read_through": str(lsn(5)),
            "witness": {"lsn": str(lsn(4)), "time": "2026-03-01T12:00:00", "recovery_fork": "A"},
            "vouched": None,
        },
        "history": {"applied": str(lsn(2)), "read_through": str(lsn(2)), "witness": None, "vouched": "word"},
    },
    "instance": {"name": "sales_orders", "object_id": 11, "create_date": "2026-03-01T12:00:00"},
    "schema_hash": "1:abc",
    "columns": ["id int"],
    "selection_hash": "1:def",
    "selection": ["rows with id > '1'"],
    "failed": {"reason": "no luck", "time": "2026-03-02T12:00:00", "seen": "a1"},
    "announced": str(lsn(1)),
    "updated_at": "2026-03-02T12:00:01",
}


def test_version_1_is_upgraded_when_it_is_read():
    found = store_of(json.dumps(VERSION_1)).load(IDENTITY)
    of_all = {
        "feed": FeedRef("sales_orders", 11, NOON),
        "schema_hash": "1:abc",
        "selection_hash": "1:def",
        "selection": ("rows with id > '1'",),
        "failed": Failure("no luck", NOON + datetime.timedelta(days=1), "a1"),
    }
    assert found == Checkpoint(
        IDENTITY,
        {
            "mirror": SinkState(lsn(1), lsn(5), Witness(lsn(4), NOON, "A"), **of_all),
            "history": SinkState(lsn(2), lsn(2), asserted="word", **of_all),
        },
        announced=lsn(1),
        updated_at=NOON + datetime.timedelta(days=1, seconds=1),
    )


def test_what_earlier_ones_of_version_1_lack_is_empty():
    bare = {**copy.deepcopy(VERSION_1), "instance": None, "failed": None}
    for name in ("name", "selection_hash", "selection", "announced"):
        del bare[name]
    for sink in bare["sinks"].values():
        sink.pop("vouched", None)
    found = store_of(json.dumps(bare)).load(IDENTITY)
    assert (found.announced, found.failure()) == (None, None)
    assert {(s.feed, s.selection_hash, s.selection, s.asserted) for s in found.sinks.values()} == {
        (None, None, (), None)
    }


def test_a_failure_of_version_1_without_sinks_is_found_again_by_the_next_run():
    found = store_of(json.dumps({**VERSION_1, "sinks": {}, "instance": None, "schema_hash": None})).load(IDENTITY)
    assert (found.sinks, found.failure()) == ({}, None)


def test_what_a_version_does_not_know_is_there_when_it_has_written():
    data = to_data(LOADED)
    data["later"] = {"a": [1]}
    data["sinks"]["mirror"]["later"] = "b"
    data["sinks"]["mirror"]["feed"]["later"] = "c"
    failed = {"reason": "no", "time": NOON.isoformat(), "seen": None, "since": None}
    failed |= dict.fromkeys(("planned", "stopped", "copy_mends"), False)
    data["sinks"]["history"]["failed"] = {**failed, "later": "d"}
    store = store_of(json.dumps(data))
    seen = store.load(IDENTITY)
    moved = dataclasses.replace(seen.sinks["mirror"], applied=lsn(9), read_through=lsn(9))
    assert store.save(dataclasses.replace(seen, sinks={**seen.sinks, "mirror": moved}), seen)
    stored = json.loads(store.variables[IDENTITY.variable])
    assert stored.pop("updated_at") is not None
    data["sinks"]["mirror"]["applied"] = data["sinks"]["mirror"]["read_through"] = {"kind": "lsn", "at": str(lsn(9))}
    assert stored == {name: value for name, value in data.items() if name != "updated_at"}


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
    data = to_data(stored)
    del data["sinks"]["mirror"]["witness"]["recovery_fork"]
    assert from_data(Checkpoint, data).sinks["mirror"].witness == Witness(lsn(1), NOON)


NOON = datetime.datetime(2026, 3, 1, 12)
FEED = FeedRef("sales_orders", 11, NOON)
LOADED = checkpoint_of(
    IDENTITY, {"mirror": SinkState(lsn(1), lsn(5)), "history": SinkState(lsn(1), lsn(2))}, FEED, "1:abc"
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
    assert not store.save(dataclasses.replace(LOADED, sinks=older).failing(older, Failure("an older run's", NOON)))
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
    newer = FeedRef("sales_orders_v2", 12, NOON)
    written = checkpoint_of(IDENTITY, {"mirror": SinkState(lsn(6), lsn(6))}, newer, "1:def")
    assert saved(LOADED, written).sinks == {**LOADED.sinks, **written.sinks}


def test_two_tasks_of_different_shapes_write_what_each_has_changed():
    store = CheckpointStore(Variables())
    store.save(LOADED)
    seen = store.load(IDENTITY)

    def moved(shape, position, **more):
        sink = dataclasses.replace(seen.sinks[shape], applied=lsn(position), read_through=lsn(position), **more)
        return dataclasses.replace(seen, sinks={**seen.sinks, shape: sink})

    mirror = dataclasses.replace(moved("mirror", 9), announced=lsn(9))
    history = moved("history", 8, feed=dataclasses.replace(FEED, name="v2")).failing(["history"], Failure("no", NOON))
    history = dataclasses.replace(history, requested=(FEED,), announced=lsn(3))
    for written in (mirror, history):
        assert store.save(written, seen)
    assert dataclasses.replace(store.load(IDENTITY), updated_at=None) == Checkpoint(
        IDENTITY,
        {"mirror": mirror.sinks["mirror"], "history": history.sinks["history"]},
        announced=lsn(9),
        requested=(FEED,),
    )


def test_a_failure_of_one_tasks_shapes_is_not_the_others():
    store = CheckpointStore(Variables())
    store.save(LOADED)
    seen, failed = store.load(IDENTITY), Failure("no", NOON)
    assert store.save(seen.failing(["mirror"], failed), seen)
    stored = store.load(IDENTITY)
    assert (stored.failure(["mirror"]), stored.failure(["history"]), stored.failure()) == (failed, None, failed)


def test_a_failure_before_the_first_load_keeps_what_is_loaded():
    failed = Failure("no capture instance", NOON)
    scd2 = Checkpoint(IDENTITY).failing(["scd2"], failed)
    assert saved(LOADED, scd2) == dataclasses.replace(LOADED, sinks={**LOADED.sinks, "scd2": SinkState(failed=failed)})
    # another task has loaded the mirror meanwhile
    assert saved(LOADED, Checkpoint(IDENTITY).failing(["mirror"], failed)) == LOADED


def test_a_success_ends_the_failure():
    failed = LOADED.failing(LOADED.sinks, Failure("no", NOON))
    store = CheckpointStore(Variables())
    store.save(failed)
    assert store.save(LOADED, failed)
    assert store.load(IDENTITY).sinks == LOADED.sinks


def test_a_failure_that_is_taken_away_leaves_no_sink_that_was_never_loaded():
    failed = LOADED.failing(["mirror", "scd2"], Failure("no", NOON))
    assert failed.failing(["mirror", "scd2"], None) == LOADED


@given(st.lists(checkpoints, max_size=4))
def test_whatever_the_order_of_writes_each_sink_ends_where_it_was_furthest(written):
    written = [
        dataclasses.replace(
            checkpoint,
            identity=IDENTITY,
            # as runs write them: an asserted position comes from elsewhere
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
    variables[IDENTITY.variable] = to_json(Checkpoint(other))
    with pytest.raises(CheckpointError, match="holds the checkpoint of"):
        CheckpointStore(variables).load(IDENTITY)


VERSION = OtherPosition({"kind": "version", "at": "42"})
STATEMENT = Statement(lsn(4), NOON, "ALTER TABLE t ADD x int")
OF_TABLE = {
    "announced": lsn(5),
    "copies": (CopyState("c1", "/copies/c1"),),
    "requested": (FEED,),
    "schema_changes": (PendingChange(NOON, "1:abc", "1:def"),),
    "waiting_ids": (7,),
    "noted": (VERSION,),
    "ended_copies": ("c0",),
    "untold": (Told("copy"),),
    "seen_schema": SeenSchema("1:abc", lsn(5)),
    "unwritten": (
        UnwrittenEvent(lsn(4), NOON, "1:abc", "1:def", "x was added", ({"kind": "ADD_COLUMN"},), (STATEMENT,)),
    ),
    "proposed": (Proposal("note", NOON, "sales_orders__mc2"),),
    "making": Making("sales_orders__mc2", ("note",), NOON),
}


def test_each_field_of_a_table_is_known_to_the_next_test():
    names = {field.name for field in dataclasses.fields(Checkpoint)}
    assert {*OF_TABLE} == names - {"identity", "sinks", "updated_at", "unknown"}


@pytest.mark.parametrize("name", OF_TABLE)
def test_what_a_run_says_of_the_table_is_stored_beside_what_another_has_said_meanwhile(name):
    store = CheckpointStore(Variables())
    store.save(LOADED)
    seen = store.load(IDENTITY)
    for field in (name, *(OF_TABLE.keys() - {name})):
        assert store.save(dataclasses.replace(seen, **{field: OF_TABLE[field]}), seen)
    stored = store.load(IDENTITY)
    assert {field: getattr(stored, field) for field in OF_TABLE} == OF_TABLE


def test_positions_of_another_kind_go_with_the_position_that_they_stand_for():
    """Two tasks move one sink: what the later one says of other kinds is not mixed with the position of the other."""
    store = CheckpointStore(Variables())
    store.save(LOADED)
    seen = store.load(IDENTITY)

    def moved(position, **more):
        sink = dataclasses.replace(seen.sinks["mirror"], applied=lsn(position), read_through=lsn(position), **more)
        return dataclasses.replace(seen, sinks={**seen.sinks, "mirror": sink})

    assert store.save(moved(8, positions=(VERSION,)), seen)
    assert store.save(moved(9), seen)
    assert store.load(IDENTITY).sinks["mirror"] == moved(9).sinks["mirror"]


def test_of_two_runs_that_say_which_columns_wait_each_is_believed():
    store = CheckpointStore(Variables())
    for ids in ((4,), (7,)):
        assert store.save(dataclasses.replace(LOADED, waiting_ids=ids))
    assert store.load(IDENTITY).waiting_ids == (4, 7)


def test_a_load_ends_a_failure_that_another_run_has_noted_meanwhile():
    store = CheckpointStore(Variables())
    store.save(LOADED)
    seen = store.load(IDENTITY)
    assert store.save(seen.failing(["mirror"], Failure("no", NOON)), seen)
    moved = dataclasses.replace(seen.sinks["mirror"], applied=lsn(9), read_through=lsn(9))
    assert store.save(dataclasses.replace(seen, sinks={**seen.sinks, "mirror": moved}), seen)
    assert store.load(IDENTITY).sinks["mirror"] == moved


def test_what_a_later_version_has_added_to_a_sink_meanwhile_stays():
    store = CheckpointStore(Variables())
    store.save(LOADED)
    seen = store.load(IDENTITY)
    newer = dataclasses.replace(seen.sinks["mirror"], unknown={"later": 1})
    store.overwrite(dataclasses.replace(seen, sinks={**seen.sinks, "mirror": newer}))
    moved = dataclasses.replace(seen.sinks["mirror"], applied=lsn(9), read_through=lsn(9))
    assert store.save(dataclasses.replace(seen, sinks={**seen.sinks, "mirror": moved}), seen)
    stored = store.load(IDENTITY).sinks["mirror"]
    assert (stored.position, stored.unknown) == (lsn(9), {"later": 1})


def test_a_sink_that_a_run_leaves_out_is_gone_unless_another_has_changed_it_meanwhile():
    store = CheckpointStore(Variables())
    store.save(LOADED.failing(["scd2"], Failure("no", NOON)))
    seen = store.load(IDENTITY)
    assert store.save(seen.failing(["scd2"], None), seen)
    assert "scd2" not in store.load(IDENTITY).sinks
    store = CheckpointStore(Variables())
    store.save(LOADED.failing(["scd2"], Failure("no", NOON)))
    seen, later = store.load(IDENTITY), Failure("no, again", NOON)
    assert store.save(seen.failing(["scd2"], later), seen)
    moved = dataclasses.replace(seen.sinks["mirror"], applied=lsn(9), read_through=lsn(9))
    without = seen.failing(["scd2"], None)
    assert store.save(dataclasses.replace(without, sinks={**without.sinks, "mirror": moved}), seen)
    assert store.load(IDENTITY).sinks["scd2"].failed == later


def test_all_that_a_load_says_of_a_sink_is_stored_together():
    assert SinkState.__dataclass_fields__.keys() - {"failed", "unknown", "taken_told"} == _PROGRESS
