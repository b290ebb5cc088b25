"""A column that the source drops: targets keep what was loaded of it, and hold NULL in what is captured since."""

from __future__ import annotations

import dataclasses

import pytest

from airflow_provider_mssql_cdc.core.copy_requests import CopyRequest, CopyRequests
from airflow_provider_mssql_cdc.core.entry_values import EVOLVE
from airflow_provider_mssql_cdc.core.table_options import Choice
from tests.support.spark.loads import Loads
from tests.support.spark.origin import Origin

pytestmark = [pytest.mark.xdist_group(__name__), pytest.mark.timeout(900)]

NAME = "lab.things"


@pytest.fixture
def things(live: Origin) -> Origin:
    live.sql("CREATE SCHEMA lab")
    live.sql("CREATE TABLE lab.things (id int NOT NULL PRIMARY KEY, a int, b varchar(20) NOT NULL, doc nvarchar(max))")
    live.sql("INSERT INTO lab.things VALUES " + ", ".join(f"({n}, {n}, 'b{n}', N'd{n}')" for n in range(1, 7)))
    live.enable(NAME)
    live.wait_captured()
    return live


def mirror(loads: Loads) -> dict[int, tuple]:
    rows = loads.origin.lake(NAME)
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: (row["a"], row["b"], row["doc"]) for row in rows}


def open_versions(loads: Loads) -> dict[int, tuple]:
    rows = [row for row in loads.versions("things") if row["_to_lsn"] is None]
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: (row["a"], row["b"], row["doc"]) for row in rows}


def newest(loads: Loads) -> dict[int, tuple]:
    """The newest image of each key in the history."""
    found: dict[int, tuple] = {}
    events = [row for row in loads.origin.lake(NAME, "history") if row["_op"] != "B"]
    for row in sorted(events, key=lambda row: (row["_lsn"], row["_seq"] if row["_seq"] is not None else 1 << 60)):
        found.pop(row["id"], None)
        if row["_op"] != "D":
            found[row["id"]] = (row["a"], row["b"], row["doc"])
    return found


@pytest.mark.parametrize(
    "file_format", ["iceberg", *(pytest.param(n, marks=pytest.mark.thorough) for n in ("postgresql", "delta"))]
)
def test_what_was_loaded_stays_and_what_is_captured_since_is_null(things, file_format, request):
    things.format = file_format
    if file_format == "postgresql":
        things.into(request.getfixturevalue("postgresql"))
    loads = Loads(things, ("mirror", "history"), ("things",))
    assert loads.load_all() == []

    # before, in one transaction with it, and behind it, all in one window
    things.sql("UPDATE lab.things SET b = 'x1', a = 10 WHERE id = 1; DELETE FROM lab.things WHERE id = 3")
    things.sql("BEGIN TRAN; UPDATE lab.things SET b = 'x5' WHERE id = 5; ALTER TABLE lab.things DROP COLUMN b; COMMIT")
    things.sql("UPDATE lab.things SET a = 20 WHERE id = 2; INSERT INTO lab.things (id, a, doc) VALUES (7, 7, N'd7')")
    things.wait_captured()
    assert loads.load_all() == ["column b is NULL since the source table dropped it"]
    expected = {
        1: (10, "x1", "d1"),
        2: (20, None, "d2"),
        4: (4, "b4", "d4"),
        5: (5, "x5", "d5"),
        6: (6, "b6", "d6"),
        7: (7, None, "d7"),
    }
    assert mirror(loads) == expected == newest(loads)
    events = {(row["_op"], row["id"], row["b"]) for row in things.lake(NAME, "history") if row["_op"] != "R"}
    before = {("B", 1, "b1"), ("U", 1, "x1"), ("D", 3, "b3"), ("B", 5, "b5"), ("U", 5, "x5")}
    assert events - {("B", 2, "b2"), ("B", 2, None)} == before | {("U", 2, None), ("I", 7, None)}

    # another one, which is a large value: what nothing says anew stays
    things.sql("ALTER TABLE lab.things DROP COLUMN doc; UPDATE lab.things SET a = 40 WHERE id = 4")
    things.sql("INSERT INTO lab.things (id, a) VALUES (8, 8)")
    things.wait_captured()
    assert [text.split()[1] for text in loads.load_all()] == ["b", "doc"]
    expected |= {4: (40, None, "d4"), 8: (8, None, None)}
    assert mirror(loads) == expected == newest(loads)

    # the same name again is another column
    things.sql("ALTER TABLE lab.things ADD b varchar(20); UPDATE lab.things SET b = 'new', a = 60 WHERE id = 6")
    things.wait_captured()
    assert loads.load_all()[0] == "column b is not captured by lab_things"
    expected |= {6: (60, None, "d6")}
    assert mirror(loads) == expected == newest(loads)

    # an instance that is made now has none of them
    things.sql("ALTER TABLE lab.things ADD note varchar(20) NOT NULL DEFAULT 'n'")
    things.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'lab', @source_name = N'things', @role_name = NULL,"
        " @capture_instance = N'things_2'"
    )
    # what the entry says of the name means the other one by now, so that the dropped one does not make way for it
    loads.say(on_schema_change="propose", choice=Choice(rename={"b": "b"}))
    things.sql("UPDATE lab.things SET a = 61, note = 'six' WHERE id = 6; DELETE FROM lab.things WHERE id = 8")
    things.wait_captured()
    loads.load_all()
    things.sql(
        "EXEC sys.sp_cdc_disable_table @source_schema = N'lab', @source_name = N'things',"
        " @capture_instance = N'lab_things'"
    )
    things.sql("UPDATE lab.things SET a = 11, b = 'again' WHERE id = 1; INSERT INTO lab.things (id, a) VALUES (9, 9)")
    things.wait_captured()
    told = loads.load_all()
    assert any("column b of things_2 is left out" in text for text in told)
    assert "column b is NULL since the source table dropped it" in told
    expected = expected | {6: (61, None, "d6"), 1: (11, None, "d1"), 9: (9, None, None)}
    del expected[8]
    assert mirror(loads) == expected == newest(loads)
    assert {row["id"]: row["note"] for row in things.lake(NAME)} == dict.fromkeys(expected, "n") | {6: "six"}


@pytest.mark.thorough
def test_copies_know_nothing_of_it_and_take_nothing_away(things):
    loads = Loads(things, ("mirror", "history"), ("things",))
    loads.load_all()
    things.sql("ALTER TABLE lab.things DROP COLUMN b; UPDATE lab.things SET a = 20 WHERE id = 2")
    things.wait_captured()
    loads.load_all()

    # a shape that is added begins with NULL
    loads.shape("mirror", "history", "scd2")
    loads.load_all()
    plain = {n: (n, None, f"d{n}") for n in (1, 3, 4, 5, 6)} | {2: (20, None, "d2")}
    assert open_versions(loads) == plain

    # a copy that a person asks for mends what differs, and leaves alone what the source can no longer tell
    held = {n: (n, f"b{n}", f"d{n}") for n in (1, 3, 4, 5, 6)} | {2: (20, None, "d2")}
    assert mirror(loads) == held
    name = things.sql_name(NAME, "mirror")
    things.spark.newSession().sql(f"UPDATE {name} SET a = -1 WHERE id IN (4, 2)").collect()
    things.spark.newSession().sql(f"DELETE FROM {name} WHERE id = 5").collect()
    CopyRequests(loads.variables).save(CopyRequest(loads.identity("things"), "c1"))
    loads.load_all()
    stored = loads.store.load(loads.identity("things"))
    assert stored is not None
    assert stored.ended_copies == ("c1 COMPLETED",)
    # of a row that is gone nobody knows it
    assert mirror(loads) == held | {5: (5, None, "d5")}
    assert open_versions(loads) == plain
    assert newest(loads) == held
    assert [row for row in things.lake(NAME, "history") if row["_healed"]] == []

    # and none can be asked for by it
    conditions = '[["b", "=", "b1"]]'
    CopyRequests(loads.variables).save(CopyRequest(loads.identity("things"), "c2", where=conditions))
    loads.load(failing=("things",))
    stored = loads.store.load(loads.identity("things"))
    assert stored is not None
    assert stored.ended_copies[-1].startswith("c2 ABORTED: lab.things: the source table has dropped b")

    # one that closes a gap has NULL
    things.sql("UPDATE lab.things SET a = 60 WHERE id = 6")
    things.wait_captured()
    things.sql(f"EXEC sys.sp_cdc_cleanup_change_table N'lab_things', {things.max_lsn()}, 5000")
    defaults = dataclasses.replace(loads.request.defaults, on_gap=("copy",))
    loads.request = dataclasses.replace(loads.request, defaults=defaults)
    loads.load_all()
    plain |= {6: (60, None, "d6")}
    assert mirror(loads) == plain == open_versions(loads) == newest(loads)


def test_rows_whose_key_the_server_does_not_enforce_are_still_told_apart(live):
    live.sql("CREATE SCHEMA lab")
    live.sql("CREATE TABLE lab.things (id int NOT NULL, a int, b varchar(20))")
    live.sql("INSERT INTO lab.things VALUES " + ", ".join(f"({n}, {n}, 'b{n}')" for n in range(1, 6)))
    live.enable(NAME)
    live.wait_captured()
    loads = Loads(live, ("mirror",), ("things",))
    defaults = dataclasses.replace(loads.request.defaults, key=("id",))
    loads.request = dataclasses.replace(loads.request, defaults=defaults)
    loads.load_all()
    live.sql("ALTER TABLE lab.things DROP COLUMN b")
    live.sql("DELETE FROM lab.things WHERE id = 1; UPDATE lab.things SET a = 20 WHERE id = 2")
    live.sql("UPDATE lab.things SET id = 30 WHERE id = 3; INSERT INTO lab.things (id, a) VALUES (6, 6)")
    live.wait_captured()
    loads.load_all()
    expected = {2: (20, None), 4: (4, "b4"), 5: (5, "b5"), 6: (6, None), 30: (3, None)}
    assert {row["id"]: (row["a"], row["b"]) for row in live.lake(NAME)} == expected


def test_a_copy_that_is_under_way_goes_on_without_a_column_that_is_dropped(things):
    loads = Loads(things, ("mirror", "history"), ("things",))
    loads.options = {"copy_rows": 2, "copy_seconds": 0.001, "connections": 1}
    loads.load_all()
    (copy,) = loads.store.load(loads.identity("things")).copies
    assert copy.chunks < 3
    # its events are kept beside the chunks
    things.sql("UPDATE lab.things SET b = 'x1', a = 10 WHERE id = 1; UPDATE lab.things SET b = 'x2' WHERE id = 2")
    things.wait_captured()
    loads.load_all()
    things.sql("ALTER TABLE lab.things DROP COLUMN b; UPDATE lab.things SET a = 60 WHERE id = 6")
    things.wait_captured()
    loads.options = {"copy_rows": 2}
    assert not any("begins again" in text for text in loads.load_all())
    expected = sorted((row["id"], row["a"], row["doc"]) for row in things.sql("SELECT * FROM lab.things"))
    found, events = things.lake(NAME), things.lake(NAME, "history")
    assert sorted((row["id"], row["a"], row["doc"]) for row in found) == expected
    assert not any("b" in row for row in (*found, *events))
    changed = sorted((row["id"], row["_op"], row["a"], row["_changed"]) for row in events if row["_op"] in "UB")
    assert changed == [
        (1, "B", 1, ["a"]),
        (1, "U", 10, ["a"]),
        (2, "B", 2, []),
        (2, "U", 2, []),
        (6, "B", 6, ["a"]),
        (6, "U", 60, ["a"]),
    ]


def test_so_does_one_of_some_of_the_columns(things):
    """Beside a column that is loaded one goes that is not, and a large value is asked for again."""
    things.sql("EXEC sys.sp_cdc_disable_table N'lab', N'things', N'lab_things'")
    things.sql("ALTER TABLE lab.things ADD other int")
    things.sql("EXEC sys.sp_cdc_enable_table N'lab', N'things', @role_name = NULL")
    things.sql("UPDATE lab.things SET other = 1 WHERE id = 6")
    things.wait_captured()
    loads = Loads(things, ("mirror", "history"), ("things",))
    loads.say(on_schema_change=EVOLVE, choice=Choice(columns=("id", "a", "b", "doc")))
    loads.options = {"copy_rows": 2, "copy_seconds": 0.001, "connections": 1}
    loads.load_all()
    (copy,) = loads.store.load(loads.identity("things")).copies
    assert copy.chunks < 3
    # without its large value, which a later chunk may not show
    things.sql("UPDATE lab.things SET b = 'x1', a = 10 WHERE id IN (1, 5)")
    things.sql("ALTER TABLE lab.things DROP COLUMN b, other; UPDATE lab.things SET a = 60 WHERE id = 6")
    things.wait_captured()
    loads.options = {"copy_rows": 2}
    assert not any("begins again" in text for text in loads.load_all())
    assert loads.store.load(loads.identity("things")).copies == ()
    expected = sorted((row["id"], row["a"], row["doc"]) for row in things.sql("SELECT * FROM lab.things"))
    found, events = things.lake(NAME), things.lake(NAME, "history")
    assert sorted((row["id"], row["a"], row["doc"]) for row in found) == expected
    assert not any({"b", "other"} & {*row} for row in (*found, *events))
    assert {(row["id"], *row["_changed"]) for row in events if row["_op"] == "U"} == {(1, "a"), (5, "a"), (6, "a")}
