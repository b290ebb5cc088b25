"""A fill of a new column over several runs: what meets it, and what it may look at."""

from __future__ import annotations

import pytest

from airflow_provider_mssql_cdc.core.initial import Initial
from airflow_provider_mssql_cdc.core.table_options import Choice
from airflow_provider_mssql_cdc.operators import checkpoints
from airflow_provider_mssql_cdc.spark.copies.chunks import Chunks
from tests.spark.test_changed_keys import another_primary_key, in_order, source
from tests.spark.test_changed_keys import loads_of as evolving_loads
from tests.spark.test_evolving_histories import unfilled
from tests.spark.test_filled_columns import check, loads_of, second_instance, things_history
from tests.support.spark.loads import Loads
from tests.support.spark.origin import Origin

pytestmark = [pytest.mark.xdist_group("tests.spark.test_filled_columns"), pytest.mark.timeout(900)]

NAME = "lab.things"
SHAPES = ("mirror", "history", "scd2")
A_CHUNK = {"copy_rows": 3, "copy_seconds": 0.001}
"""Options of a job that reads one chunk of three rows."""


@pytest.fixture
def things(live: Origin) -> Origin:
    """A table of eight rows, whose primary key may be another later."""
    live.sql("CREATE SCHEMA lab")
    live.sql(
        "CREATE TABLE lab.things (id int NOT NULL CONSTRAINT pk_things PRIMARY KEY, code varchar(9) NOT NULL, a int)"
    )
    live.sql("INSERT INTO lab.things VALUES " + ", ".join(f"({id}, 'c{id % 7}', 1)" for id in range(1, 9)))
    live.enable(NAME)
    live.wait_captured()
    return live


def is_shown(loads: Loads) -> bool:
    return "note" in loads.origin.lake(NAME)[0]


def add_note(things: Origin, loads: Loads) -> None:
    """Add a column, with values of which no instance tells; jobs read chunks of three rows from then on."""
    loads.options = A_CHUNK
    things.sql("ALTER TABLE lab.things ADD note varchar(20)")
    things.sql("UPDATE lab.things SET note = CONCAT('n', id)")
    second_instance(things)
    things.wait_captured()


def begin_fill(things: Origin, loads: Loads) -> None:
    """Load until the fill is under way."""
    while (receipt := loads.load()[1]) is None or receipt.tables[0].copying is None:
        assert not is_shown(loads)
        things.sql("UPDATE lab.things SET a = a + 1 WHERE id = 2")
        things.wait_captured()


def check_all(things: Origin, loads: Loads, key: str, untold: int | None = None) -> None:
    """Compare all targets with the source.

    :param key: by which a history's rows are told apart
    :param untold: id of a row that is gone, and of which no event tells
    """
    columns = ("id", "code", "a", "note")
    expected = in_order(source(things, *columns), *columns)
    assert in_order(things.lake(NAME), *columns) == expected
    opened = [row for row in loads.versions("things") if row["_to_lsn"] is None]
    assert in_order(opened, *columns) == expected
    last = {row[key]: row for row in things_history(loads)}.values()
    there = (row for row in last if row["_op"] != "D" and row["id"] != untold)
    assert in_order(there, *columns) == expected


def look_again(loads: Loads) -> None:
    """Plan a run more, which removes what nobody needs any more."""
    checkpoints.store_given_up(loads.store, loads.look())


def copies_left(things: Origin) -> list[str]:
    return sorted(str(path) for path in (things.work_dir / "copies").glob("*/*"))


def test_a_kill_between_the_fills_commit_and_the_checkpoint_does_not_fill_again(things):
    loads = loads_of(things, SHAPES)
    loads.load_all()
    add_note(things, loads)
    runs = 0
    while not is_shown(loads):
        # each run is killed before it writes the checkpoint, and done again
        runs += 1
        assert runs < 9
        things.sql(f"UPDATE lab.things SET a = {runs}, note = 'r{runs}' WHERE id = {runs}")
        things.wait_captured()
        loads.load(checkpoint=False)
        if not is_shown(loads):
            loads.load()
            assert not is_shown(loads)
    assert runs > 1
    before = {shape: loads.origin.lake(NAME, shape) for shape in SHAPES}

    looks = [loads.look(), loads.look()]

    assert [plan.failures for plan in looks] == [{}, {}]
    _, receipt = loads.load()
    assert receipt is None or receipt.tables[0].copying is None
    assert {shape: in_order(loads.origin.lake(NAME, shape), "id", "code", "a", "note") for shape in SHAPES} == {
        shape: in_order(rows, "id", "code", "a", "note") for shape, rows in before.items()
    }
    check(loads, "code", "note")
    assert unfilled(loads) == set()
    assert copies_left(things) == []
    things.sql("UPDATE lab.things SET note = 'last' WHERE id = 5; DELETE FROM lab.things WHERE id = 6")
    things.wait_captured()
    loads.load()
    check(loads, "code", "note")


def test_another_primary_key_meets_a_fill(things):
    loads = evolving_loads(things, SHAPES)
    loads.load_all()
    things.sql("DELETE FROM lab.things WHERE id = 1")
    add_note(things, loads)
    begin_fill(things, loads)

    things.sql("EXEC sys.sp_cdc_disable_table N'lab', N'things', N'things_2'")
    another_primary_key(things, "code")
    things.sql("UPDATE lab.things SET a = 40 WHERE id = 4; INSERT INTO lab.things VALUES (4, 'u', 41, 'twice')")
    runs = 0
    while not is_shown(loads):
        runs += 1
        assert runs < 12
        things.sql(f"UPDATE lab.things SET a = {runs}, note = 'r{runs}' WHERE code = 'c{runs % 7}'")
        things.wait_captured()
        loads.load()

    check_all(things, loads, "code")
    assert unfilled(loads) == set()
    look_again(loads)
    assert copies_left(things) == []


def test_a_gap_meets_a_fill(things):
    """The mirror falls into it while the others' fill is under way: a whole copy takes the place of its own."""
    loads = evolving_loads(things, SHAPES)
    loads.say(on_gap=("copy",))
    loads.load_all()
    add_note(things, loads)
    begin_fill(things, loads)
    # what no run has read or kept is gone
    things.sql("UPDATE lab.things SET a = 30, note = 'lost' WHERE id = 3; DELETE FROM lab.things WHERE id = 4")
    things.wait_captured()
    things.sql("UPDATE lab.things SET a = 50 WHERE id = 5")
    things.wait_captured()
    newest = things.max_lsn()
    for instance in ("lab_things", "things_2"):
        things.sql(f"EXEC sys.sp_cdc_cleanup_change_table N'{instance}', {newest}, 5000")
    runs = 0
    while not is_shown(loads) or unfilled(loads):
        runs += 1
        assert runs < 12
        things.sql(f"UPDATE lab.things SET a = {runs} WHERE id = 6")
        things.wait_captured()
        loads.load()
    # that row 4 has gone no event tells, so a history has its last image
    check_all(things, loads, "id", untold=4)
    look_again(loads)
    assert copies_left(things) == []


def test_a_history_that_began_with_changes_gets_rows_of_keys_that_it_does_not_know(things):
    loads = loads_of(things, ("history",))
    loads.say(initial=Initial.parse("latest"))
    loads.load_all()
    things.sql("UPDATE lab.things SET a = 2 WHERE id = 1")
    things.wait_captured()
    loads.load_all()
    things.sql("ALTER TABLE lab.things ADD note varchar(20)")
    things.sql("UPDATE lab.things SET note = 'between' WHERE id IN (1, 7)")
    second_instance(things)
    things.wait_captured()
    while unfilled(loads) or "note" not in things.lake(NAME, "history")[0]:
        things.sql("UPDATE lab.things SET a = a + 1 WHERE id = 2")
        things.wait_captured()
        loads.load()
    rows = [row for row in things.lake(NAME, "history") if row["_op"] == "R"]
    found = {row["id"]: (row["code"], row["a"], row["note"], sorted(row["_unknown"])) for row in rows}
    assert found == {1: ("c1", 2, "between", []), 7: (None, None, "between", ["a", "code"])}


def test_what_is_masked_is_not_looked_at_for_common_values(things, monkeypatch):
    """They would lie beside the copy as they are."""
    monkeypatch.setattr(Chunks, "common", lambda *_: pytest.fail("it is looked at"))
    loads = loads_of(things, ("mirror",))
    loads.load_all()
    things.sql("ALTER TABLE lab.things ADD secret varchar(20) NOT NULL DEFAULT 'of nearly all'")
    loads.say(choice=Choice(mask={"secret": "redact"}))
    things.sql("UPDATE lab.things SET secret = 'of one' WHERE id = 1")
    second_instance(things)
    things.wait_captured()
    while "secret" not in things.lake(NAME)[0]:
        things.sql("UPDATE lab.things SET a = a + 1 WHERE id = 2")
        things.wait_captured()
        loads.load()
    assert len({row["secret"] for row in things.lake(NAME)} - {"of one", "of nearly all"}) == 1
    assert unfilled(loads) == set()
