from __future__ import annotations

import dataclasses
import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_provider_mssql_cdc.cli import main
from airflow_provider_mssql_cdc.cli.checkpoint import MetadataVariables
from airflow_provider_mssql_cdc.cli.exit import EXIT_USAGE
from airflow_provider_mssql_cdc.core.checkpoint import (
    KEY_PREFIX,
    Checkpoint,
    CopyState,
    Failure,
    Identity,
    SinkState,
    Told,
)
from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.codec import to_data
from airflow_provider_mssql_cdc.core.feed import FeedRef
from airflow_provider_mssql_cdc.core.lineage import OtherPosition, Witness
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.proposal import Making, Proposal
from airflow_provider_mssql_cdc.core.schema import KeptSchema, SchemaStore
from airflow_provider_mssql_cdc.core.schema_changes import UnwrittenEvent
from airflow_provider_mssql_cdc.core.schema_sight import PendingChange, SeenSchema
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema
from tests.support.core.states import checkpoint_of

NOON = datetime.datetime(2026, 1, 1, 12)
ORDERS = Identity("shop_conn", "Shop", TableName("sales", "orders.old"), "iceberg://lake/shop")
ITEMS = Identity("shop_conn", "Shop", TableName("sales", "items"), "iceberg://lake/shop")
WHERE = ["--conn", "shop_conn", "--database", "Shop", "--table", "sales.orders.old", "--target", "iceberg://lake/shop"]


def lsn(number: int) -> Lsn:
    return Lsn(number.to_bytes(10, "big"))


LOADED = checkpoint_of(
    ORDERS,
    {
        "mirror": SinkState(lsn(5), lsn(7), Witness(lsn(6), NOON)),
        "history": SinkState(lsn(4), lsn(9), Witness(lsn(9), NOON)),
    },
    FeedRef("sales_orders", 77, NOON),
    "1:abc",
    failed=Failure("no luck", NOON.replace(tzinfo=datetime.UTC)),
)


@pytest.fixture
def store(airflow_db):
    """A store over Airflow's own metadata database, with two checkpoints and a foreign Variable."""
    variables = MetadataVariables()
    for key in variables.keys("mssql"):
        variables.delete(key)
    variables.set("mssqlXcdc__other", "not a checkpoint: _ is no wildcard")
    store = CheckpointStore(variables)
    store.overwrite(LOADED)
    store.overwrite(Checkpoint(ITEMS))
    return store


def test_list_shows_every_checkpoint(store, capsys):
    assert main(["checkpoint", "list"]) == 0
    assert set(capsys.readouterr().out.splitlines()) == {
        "shop_conn Shop sales.orders.old -> iceberg://lake/shop",
        f"  mirror: loaded to {lsn(5)}, read to {lsn(7)}",
        f"  history: loaded to {lsn(4)}, read to {lsn(9)}",
        "  mirror: failed 2026-01-01T12:00:00+00:00: no luck",
        "  history: failed 2026-01-01T12:00:00+00:00: no luck",
        "shop_conn Shop sales.items -> iceberg://lake/shop",
        "  not loaded yet",
    }


def test_list_shows_a_copy(store, capsys):
    copy = CopyState("0a", "/work/copies/1", "worker", "IN_PROGRESS", lsn(9), lsn(3), 2)
    store.overwrite(dataclasses.replace(LOADED, copies=(copy,)))
    assert main(["checkpoint", "list"]) == 0
    said = f"  copying: 2 chunks are there, changes are kept up to {lsn(9)}, in /work/copies/1 on worker"
    assert said in capsys.readouterr().out.splitlines()


def test_list_shows_the_instance_that_a_load_is_about_to_make(store, capsys):
    store.overwrite(dataclasses.replace(LOADED, making=FULL.making))
    assert main(["checkpoint", "list"]) == 0
    said = "  about to make capture instance v2 with note since 2026-01-01T12:00:00+00:00"
    assert said in capsys.readouterr().out.splitlines()


def test_list_shows_a_damaged_checkpoint_and_goes_on(store, capsys):
    MetadataVariables().set(KEY_PREFIX + "0", "{")
    assert main(["checkpoint", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("mssql_cdc__0: the checkpoint is not readable")
    assert len(lines) == 8


def test_list_as_json_is_a_backup_that_airflow_brings_back(store, tmp_path):
    """Whatever a later version has made of it meanwhile."""
    command = Path(sys.executable).with_name
    # as a shell has it: what runs a task in this process leaves word of that
    shell = {name: value for name, value in os.environ.items() if not name.startswith("_AIRFLOW")}

    def listed() -> str:
        # of a process of its own: this one may have read, and kept, what was there before
        done = subprocess.run(
            [command("mssql-cdc"), "checkpoint", "list", "--json"],
            capture_output=True,
            text=True,
            check=True,
            env=shell,
        )
        return done.stdout

    schema = KeptSchema.of(TableSchema((Column(1, 1, "id", "int", 4, 10, nullable=False),), ("id",)))
    SchemaStore(store.variables).keep(schema)
    (kept,) = store.variables.keys("mssql_cdc_schema__")
    before = listed()
    assert set(json.loads(before)) == {ORDERS.variable, ITEMS.variable, kept}
    assert json.loads(json.loads(before)[ORDERS.variable]) == to_data(store.load(ORDERS))
    (tmp_path / "backup.json").write_text(before)
    MetadataVariables().set(ORDERS.variable, '{"version": 3}')
    MetadataVariables().delete(ITEMS.variable)
    MetadataVariables().delete(kept)
    imported = [command("airflow"), "variables", "import", tmp_path / "backup.json"]
    done = subprocess.run(imported, capture_output=True, text=True, env=shell)
    assert "3 of 3 variables successfully updated" in done.stdout, done.stdout + done.stderr
    assert json.loads(listed()) == json.loads(before)


@pytest.mark.parametrize("database", ["sqlite:////nowhere/at/all.db", "sqlite:///{folder}/not_migrated.db"])
def test_without_airflows_database_list_says_so_in_one_line(tmp_path, database):
    ended = subprocess.run(
        [Path(sys.executable).with_name("mssql-cdc"), "checkpoint", "list"],
        env={**os.environ, "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database.format(folder=tmp_path)},
        capture_output=True,
        text=True,
    )
    (line,) = ended.stderr.splitlines()
    assert re.fullmatch(r".*Airflow's database, which holds the checkpoints, cannot be asked: .+AIRFLOW_HOME.+", line)
    assert (ended.returncode, ended.stdout) == (EXIT_USAGE, "")


def test_list_says_when_there_is_none(store, capsys):
    store.delete(ORDERS)
    store.delete(ITEMS)
    assert main(["checkpoint", "list"]) == 0
    assert capsys.readouterr().out == "no checkpoints\n"


def test_show_prints_what_is_stored(store, capsys):
    assert main(["checkpoint", "show", *WHERE]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown.pop("updated_at") is not None
    assert shown == {key: value for key, value in to_data(LOADED).items() if key != "updated_at"}


def test_set_takes_all_shapes_at_a_persons_word_and_forgets_what_belonged_to_the_old_position(store, capsys):
    assert main(["checkpoint", "set", *WHERE, "--position", str(lsn(5))]) == 0
    stored = store.load(ORDERS)
    word = stored.sinks["mirror"].asserted
    assert word
    assert stored.sinks == {shape: SinkState(lsn(5), lsn(5), asserted=word) for shape in ("mirror", "history")}
    out = capsys.readouterr().out
    assert f"history, mirror set to {lsn(5)}" in out
    assert "takes it from you" in out
    assert "Where a column was added, rows that are there keep NULL in it until they change." in out
    assert main(["checkpoint", "list"]) == 0
    assert f"  mirror: loaded to {lsn(5)}, read to {lsn(5)}, an asserted position\n" in capsys.readouterr().out


FULL = dataclasses.replace(
    LOADED,
    identity=dataclasses.replace(ORDERS, unknown={"later": 1}),
    sinks={
        **{shape: dataclasses.replace(sink, unknown={"later": 2}) for shape, sink in LOADED.sinks.items()},
        "scd2": SinkState(failed=Failure("no key", NOON.replace(tzinfo=datetime.UTC))),
    },
    announced=lsn(4),
    copies=(CopyState("c1", "/work/c1"),),
    requested=(FeedRef("v2", 78, NOON),),
    schema_changes=(PendingChange(NOON, after="1:def"),),
    waiting_ids=(4,),
    noted=(OtherPosition({"kind": "counted", "at": "42"}),),
    ended_copies=("c0",),
    untold=(Told("copy"),),
    seen_schema=SeenSchema("1:abc", lsn(3)),
    unwritten=(UnwrittenEvent(lsn(3), NOON, "1:abc", "1:def", "x was added"),),
    proposed=(Proposal("note", NOON.replace(tzinfo=datetime.UTC), "v2", unknown={"later": 4}),),
    making=Making("v2", ("note",), NOON.replace(tzinfo=datetime.UTC)),
    unknown={"later": 3},
)
"""A checkpoint that has all that one can have."""


@pytest.mark.parametrize("shape", [[], ["--shape", "mirror"]])
def test_set_keeps_all_that_is_not_of_the_position(store, shape):
    assert all(getattr(FULL, name) for name in Checkpoint.__dataclass_fields__ if name != "updated_at")
    store.overwrite(FULL)
    assert main(["checkpoint", "set", *WHERE, *shape, "--position", str(lsn(5))]) == 0
    before, after = to_data(FULL), to_data(store.load(ORDERS))
    sinks, sinks_before = after.pop("sinks"), before.pop("sinks")
    assert {**after, "updated_at": None} == before
    assert sinks["scd2"] == sinks_before["scd2"]
    assert [sinks[name]["later"] for name in ("mirror", "history")] == [2, 2]
    assert sinks["mirror"]["failed"] is None


def test_set_forgets_by_which_versions_the_position_of_before_could_be_healed(store):
    version = OtherPosition({"kind": "version", "at": "42"}, lsn=lsn(3), purpose="heal")
    sinks = {name: dataclasses.replace(sink, positions=(version,)) for name, sink in FULL.sinks.items()}
    store.overwrite(dataclasses.replace(FULL, noted=(*FULL.noted, version), sinks=sinks))
    assert main(["checkpoint", "set", *WHERE, "--shape", "mirror", "--position", str(lsn(5))]) == 0
    found = store.load(ORDERS)
    assert found.noted == FULL.noted
    assert (found.sinks["mirror"].positions, found.sinks["scd2"].positions) == ((), (version,))


@pytest.mark.parametrize(("at", "told"), [(3, 3), (4, 4), (5, 4)])
def test_what_is_loaded_again_is_told_again(store, at, told):
    store.overwrite(FULL)
    assert main(["checkpoint", "set", *WHERE, "--position", str(lsn(at))]) == 0
    assert store.load(ORDERS).announced == lsn(told)


def test_each_order_is_a_word_of_its_own(store):
    words = set()
    for _ in range(2):
        assert main(["checkpoint", "set", *WHERE, "--shape", "mirror", "--position", str(lsn(8))]) == 0
        sinks = store.load(ORDERS).sinks
        words.add(sinks["mirror"].asserted)
        assert sinks["history"] == LOADED.sinks["history"]
    assert len(words) == 2


def test_set_makes_a_checkpoint_where_there_is_none(store, capsys):
    where = [word.replace("sales.orders.old", "sales.new") for word in WHERE]
    assert main(["checkpoint", "set", *where, "--shape", "history", "--position", str(lsn(3))]) == 0
    identity = Identity("shop_conn", "Shop", TableName("sales", "new"), "iceberg://lake/shop")
    (sink,) = store.load(identity).sinks.values()
    assert (sink.applied, sink.read_through, bool(sink.asserted)) == (lsn(3), lsn(3), True)
    assert "There was no checkpoint of this table" in capsys.readouterr().out


def test_a_table_of_another_name_has_a_checkpoint_of_its_own(store, capsys):
    before, where = store.load(ORDERS), [*WHERE, "--table-name", "all_{table}"]
    assert main(["checkpoint", "set", *where, "--shape", "history", "--position", str(lsn(3))]) == 0
    assert store.load(ORDERS) == before
    found = store.load(dataclasses.replace(ORDERS, name="all_orders.old"))
    assert found.sinks["history"].applied == lsn(3)
    assert "in iceberg://lake/shop as all_orders.old: history set to" in capsys.readouterr().out
    assert main(["checkpoint", "list"]) == 0
    assert "shop_conn Shop sales.orders.old -> iceberg://lake/shop as all_orders.old\n" in capsys.readouterr().out
    assert main(["checkpoint", "show", *WHERE, "--table-name", "{schema}_{table}"]) == 0
    assert json.loads(capsys.readouterr().out)["identity"]["name"] == ""
    assert main(["checkpoint", "reset", *WHERE, "--table-name", "{nope}"]) == 2
    assert "table_name='{nope}'" in capsys.readouterr().err


def test_reset_removes_the_checkpoint_and_no_other(store, capsys):
    assert main(["checkpoint", "reset", *WHERE]) == 0
    assert store.load(ORDERS) is None
    assert store.load(ITEMS).identity == ITEMS
    assert "drop the target table" in capsys.readouterr().out


def test_reset_leaves_what_waits_to_be_asked_for(store, capsys):
    seen = SeenSchema("sha256:1", with_waiting=True)
    stored = dataclasses.replace(store.load(ORDERS), seen_schema=seen, waiting_ids=(4,))
    store.overwrite(stored)
    assert main(["checkpoint", "reset", *WHERE]) == 0
    said = "checkpoint removed, but for the columns that wait to be asked for: a second reset forgets these, too.\n"
    assert said in capsys.readouterr().out
    left = store.load(ORDERS)
    assert (left.sinks, left.seen_schema, left.waiting_ids) == ({}, seen, (4,))
    assert main(["checkpoint", "reset", *WHERE]) == 0
    assert store.load(ORDERS) is None


def test_rename_hands_the_checkpoint_on_and_the_target_keeps_its_name(store, capsys):
    stored = dataclasses.replace(
        store.load(ORDERS), copies=(CopyState("c1", "/w/c1", ("scd2",), NOON.replace(tzinfo=datetime.UTC)),)
    )
    store.overwrite(stored)
    assert main(["checkpoint", "rename", *WHERE, "--to", "[old sales].orders"]) == 0
    renamed = Identity("shop_conn", "Shop", TableName("old sales", "orders"), "iceberg://lake/shop", "sales_orders.old")
    assert store.load(ORDERS) is None
    found = store.load(renamed)
    assert found == dataclasses.replace(stored, identity=renamed, copies=(), updated_at=found.updated_at)
    said = capsys.readouterr().out
    assert "the checkpoint is that of old sales.orders now; a copy that was under way begins again." in said
    entry = json.loads(re.search(r"\{.*\}", said)[0])
    options = {"table": "old sales.orders", "table_name": "sales_orders.old"}
    assert entry == options
    assert Identity.of("shop_conn", "Shop", renamed.table, renamed.target, entry["table_name"]) == renamed
    # and back again
    back = [
        "--conn",
        "shop_conn",
        "--database",
        "Shop",
        "--table",
        "[old sales].orders",
        "--target",
        "iceberg://lake/shop",
    ]
    assert (
        main(["checkpoint", "rename", *back, "--table-name", "sales_orders.old", "--to", "[sales].[orders.old]"]) == 0
    )
    assert store.load(ORDERS).sinks == stored.sinks


def test_rename_leaves_a_table_alone_that_was_loaded_by_that_name(store, capsys):
    other = dataclasses.replace(ITEMS, name="sales_orders.old")
    store.overwrite(dataclasses.replace(store.load(ORDERS), identity=other))
    assert main(["checkpoint", "rename", *WHERE, "--to", "sales.items"]) == 2
    assert "was loaded as a table of its own" in capsys.readouterr().err
    assert main(["checkpoint", "rename", *WHERE, "--to", "sales.orders.old"]) == 2
    assert store.load(ORDERS).loaded


def test_reset_leaves_the_schema_changes_that_no_table_holds_yet(store, capsys):
    store.overwrite(dataclasses.replace(store.load(ORDERS), unwritten=FULL.unwritten))
    assert main(["checkpoint", "reset", *WHERE]) == 0
    assert (
        "but for the schema changes that are not written yet: a second reset forgets these, too.\n"
        in capsys.readouterr().out
    )
    left = store.load(ORDERS)
    assert (left.sinks, left.unwritten) == ({}, FULL.unwritten)


def test_reset_of_one_shape_keeps_the_other(store):
    assert main(["checkpoint", "reset", *WHERE, "--shape", "history"]) == 0
    stored = store.load(ORDERS)
    assert stored.sinks == {"mirror": LOADED.sinks["mirror"]}


def test_reset_removes_a_damaged_checkpoint(store):
    MetadataVariables().set(ORDERS.variable, "{")
    assert main(["checkpoint", "show", *WHERE]) == 2
    assert main(["checkpoint", "reset", *WHERE]) == 0
    assert store.load(ORDERS) is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", *WHERE[:-1], "iceberg://lake/other"], "there is no checkpoint of sales.orders.old of Shop"),
        (["reset", *WHERE[:-1], "iceberg://lake/other"], "there is no checkpoint"),
        (["set", *WHERE[:-1], "iceberg://lake/other", "--position", str(lsn(1))], "say which --shape"),
        (["set", *WHERE, "--position", "12"], "not an LSN: '12'"),
        (["set", *WHERE, "--position", str(lsn(1)), "--shape", "nope"], "expected one of mirror, history"),
        (["show", *WHERE[:-1], "lake/shop"], "iceberg://catalog/namespace"),
        (["show", *WHERE[:-3], "orders", *WHERE[-2:]], "not of the form schema.table"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_changes_nothing(store, capsys, words, message):
    assert main(["checkpoint", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert store.load(ORDERS).sinks == LOADED.sinks
