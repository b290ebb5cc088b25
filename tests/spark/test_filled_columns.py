"""A column that the source table has got is filled by a copy, and shown in one step, once an instance has it."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random

import pytest

from airflow_provider_mssql_cdc.core.copy_requests import CopyRequest, CopyRequests
from airflow_provider_mssql_cdc.core.entry_values import PROPOSE
from airflow_provider_mssql_cdc.spark import filling
from airflow_provider_mssql_cdc.spark.copies import chunk_reading
from airflow_provider_mssql_cdc.spark.targets.iceberg_columns import AddedColumns
from tests.support import harsh
from tests.support.spark.kill_points import AFTER, BEFORE, POINTS, Point
from tests.support.spark.loads import Loads
from tests.support.spark.origin import Origin
from tests.support.spark.stop import Killed, kill_at

pytestmark = [pytest.mark.xdist_group(__name__), pytest.mark.timeout(900)]

NAME = "lab.things"
ADDED = ("note", "num", "seen", "doc")
ALL = ("mirror", "history", "scd2", "transactions")


@pytest.fixture
def things(live: Origin) -> Origin:
    live.sql("CREATE SCHEMA lab")
    live.sql("CREATE TABLE lab.things (id int NOT NULL PRIMARY KEY, a int)")
    live.sql("INSERT INTO lab.things VALUES " + ", ".join(f"({id}, 1)" for id in range(1, 9)))
    live.enable(NAME)
    live.wait_captured()
    return live


def loads_of(things: Origin, shapes: tuple[str, ...] = ALL) -> Loads:
    """Loads that take new columns."""
    loads = Loads(things, shapes, ("things",))
    defaults = dataclasses.replace(loads.request.defaults, on_schema_change=PROPOSE)
    loads.request = dataclasses.replace(loads.request, defaults=defaults)
    return loads


def second_instance(things: Origin) -> None:
    things.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'lab', @source_name = N'things', @role_name = NULL,"
        " @capture_instance = N'things_2'"
    )


def check(loads: Loads, *names: str) -> None:
    """Compare mirror and open versions with the source, in all columns."""
    columns = ["id", "a", *names]
    source = sorted(tuple(row.values()) for row in loads.origin.sql(f"SELECT {', '.join(columns)} FROM lab.things"))
    rows = {"mirror": loads.origin.lake(NAME)} if "mirror" in loads.shapes else {}
    if "history" in loads.shapes and names:
        rows["history"] = newest(things_history(loads))
    if "scd2" in loads.shapes:
        rows["scd2"] = [row for row in loads.versions("things") if row["_to_lsn"] is None]
    for found in rows.values():
        assert sorted(tuple(row[name] for name in columns) for row in found) == source
        assert {name for name in found[0] if not name.startswith("_")} - {"seen", "seen__text"} == {*columns}


def things_history(loads: Loads) -> list[dict]:
    """The history's images but for old ones, in order: a row that is no event is as of the end of its position."""
    rows = [row for row in loads.origin.lake(NAME, "history") if row["_op"] != "B"]
    return sorted(rows, key=lambda row: (row["_lsn"], row["_seq"] or 2**62))


def newest(rows: list[dict]) -> list[dict]:
    """The newest image of each key that is there."""
    return [row for row in {row["id"]: row for row in rows}.values() if row["_op"] != "D"]


@pytest.mark.parametrize(
    "file_format", ["iceberg", *(pytest.param(each, marks=pytest.mark.thorough) for each in ("postgresql", "delta"))]
)
def test_it_is_filled_as_the_source_has_it(things, file_format, request):
    things.format = file_format
    if file_format == "postgresql":
        things.into(request.getfixturevalue("postgresql"))
    loads = loads_of(things)
    loads.load_all()
    first = things_history(loads)[-1]["_lsn"]
    things.sql(
        "ALTER TABLE lab.things ADD note varchar(20), num int NOT NULL DEFAULT 5, seen datetime2, doc varchar(max)"
    )
    # no instance has it: there is no event of it
    things.sql("UPDATE lab.things SET note = 'between', doc = 'd' WHERE id IN (1, 2, 3)")
    things.sql("UPDATE lab.things SET seen = '2026-01-02T03:04:05.1234567' WHERE id < 8")
    things.sql("UPDATE lab.things SET a = 2 WHERE id = 2")
    things.wait_captured()
    *told, asked = loads.load_all()
    assert told == [f"column {name} is not captured by lab_things" for name in ADDED]
    assert asked.startswith("to load note, num, seen, doc, run in this database")
    check(loads)
    second_instance(things)
    things.sql("UPDATE lab.things SET a = 3, num = 6 WHERE id = 3; UPDATE lab.things SET note = 'alone' WHERE id = 4")
    things.sql("DELETE FROM lab.things WHERE id = 5; INSERT INTO lab.things (id, a, note, num) VALUES (9, 1, 'new', 7)")
    things.wait_captured()
    loads.load_all()
    things.sql("UPDATE lab.things SET num = 8 WHERE id IN (1, 6)")
    things.wait_captured()
    loads.load_all()
    check(loads, "note", "num", "doc")
    assert loads.load_all() == []
    # each target says so itself
    told = {
        (row["_shape"], row["_column_id"]): (row["_step"], row["_state"])
        for row in sorted(things.rows("lab_things_schema_changes"), key=lambda row: row["_step"] or 0)
        if row["_shape"] is not None
    }
    steps = {"mirror": (1, "filled"), "history": (2, "filled"), "scd2": (1, "filled")}
    assert told == {(shape, id_): step for shape, step in steps.items() for id_ in (3, 4, 5, 6)}
    # num is never NULL in the source: where it is here, the event says that it does not know it
    rows = [row for row in things.lake(NAME, "history") if row["_lsn"] > first]
    assert {(row["num"] is None, *sorted(row["_unknown"])) for row in rows} == {
        (True, *sorted(ADDED)),
        (False,),
        # of a large one that an update left alone
        (False, "doc"),
    }


@pytest.mark.thorough
def test_what_old_rows_got_is_read_and_not_derived_from_a_default(things):
    """NULL beside a default that old rows did not get, and what differs in each row: no ALTER tells the values."""
    loads = loads_of(things, ("mirror", "history", "scd2"))
    loads.load_all()
    things.sql(
        "BEGIN TRANSACTION;"
        " ALTER TABLE lab.things ADD left_null int NULL DEFAULT 5, got int NULL DEFAULT 5 WITH VALUES,"
        " word varchar(10) NOT NULL DEFAULT 'old', guid uniqueidentifier NOT NULL DEFAULT NEWID(),"
        " counted int IDENTITY(7, 3), stamp rowversion;"
        # filled in the same transaction, of which no instance captures it
        " EXEC sys.sp_executesql N'UPDATE lab.things SET left_null = 6 WHERE id IN (1, 2)'; COMMIT TRANSACTION"
    )
    second_instance(things)
    things.sql("UPDATE lab.things SET a = 3, got = NULL WHERE id = 3; INSERT INTO lab.things (id, a) VALUES (9, 1)")
    things.wait_captured()
    for _ in range(2):
        loads.load_all()
        things.sql("UPDATE lab.things SET a = a + 1 WHERE id = 4")
        things.wait_captured()
    loads.load_all()
    source = things.sql(
        "SELECT id, a, left_null, got, word, CAST(guid AS varchar(36)) AS guid, counted,"
        " CONVERT(varchar(16), CAST(stamp AS binary(8)), 2) AS stamp FROM lab.things"
    )
    assert len({(row["guid"], row["counted"], row["stamp"]) for row in source}) == 9
    expected = sorted(tuple(row.values()) for row in source)

    def shown(rows):
        named = ({**row, "guid": row["guid"].upper(), "stamp": row["stamp"].hex().upper()} for row in rows)
        return sorted(tuple(row[name] for name in source[0]) for row in named)

    assert shown(things.lake(NAME)) == expected
    assert shown(newest(things_history(loads))) == expected
    assert shown(row for row in loads.versions("things") if row["_to_lsn"] is None) == expected


@pytest.mark.thorough
@pytest.mark.parametrize(("which", "keys"), [("all", [1, 2, 3, 4, 5, 6, 7, 8]), ("none", []), ("changed", [2, 3])])
def test_a_history_gets_rows_of_the_keys_that_are_asked_for(things, which, keys):
    loads = loads_of(things, ("mirror", "history"))
    loads.say(history_fill=which)
    loads.load_all()
    first = max(row["_lsn"] for row in things_history(loads))
    things.sql("ALTER TABLE lab.things ADD note varchar(20)")
    things.sql("UPDATE lab.things SET note = 'between' WHERE id IN (1, 2)")
    second_instance(things)
    # its event is read by the first instance, and names the column in _unknown
    things.sql("UPDATE lab.things SET a = 3 WHERE id = 3")
    things.wait_captured()
    loads.load_all()
    things.sql("UPDATE lab.things SET note = 'event' WHERE id = 1")
    things.wait_captured()
    for _ in range(2):
        loads.load_all()
    rows = [row for row in things_history(loads) if row["_op"] == "R" and row["_lsn"] > first]
    source = {row["id"]: (row["a"], row["note"]) for row in things.sql("SELECT * FROM lab.things")}
    assert sorted((row["id"], (row["a"], row["note"])) for row in rows) == [(key, source[key]) for key in keys]
    assert {row["id"]: (row["a"], row["note"]) for row in things.lake(NAME)} == source


@pytest.mark.thorough
@pytest.mark.parametrize("file_format", ["iceberg", "postgresql", "delta"])
def test_none_is_filled_where_that_is_asked_for_until_it_is(things, file_format, request):
    """A column is NULL in the rows of before; each row that changes has its value."""
    things.format = file_format
    if file_format == "postgresql":
        things.into(request.getfixturevalue("postgresql"))
    shapes = ALL if file_format != "postgresql" else ("mirror", "history", "transactions")
    loads = loads_of(things, shapes)
    loads.load_all()
    things.sql("ALTER TABLE lab.things ADD note varchar(20), num int NOT NULL DEFAULT 5, doc varchar(max)")
    things.sql("UPDATE lab.things SET note = 'n', doc = REPLICATE('d', 20) WHERE id BETWEEN 2 AND 5")
    second_instance(things)
    things.sql("UPDATE lab.things SET a = 7 WHERE id = 7")
    things.wait_captured()
    loads.say(fill="none")
    loads.load_all()
    things.sql("UPDATE lab.things SET a = 2, note = 'x' WHERE id IN (1, 6); DELETE FROM lab.things WHERE id = 2")
    things.sql("INSERT INTO lab.things (id, a, note, doc) VALUES (9, 1, 'y', 'e')")
    things.wait_captured()
    names = ("note", "num", "doc")
    told = loads.load_all()
    assert all(f'{name}: NULL in the rows that targets have, until they change: fill="none"' in told for name in names)
    # rows without large values: CDC may leave these out where they did not change
    changed = {1: ("x", 5, None), 6: ("x", 5, None), 9: ("y", 5, "e")}
    expected = dict.fromkeys((3, 4, 5, 7, 8), (None, None, None)) | changed
    assert {row["id"]: tuple(row[name] for name in names) for row in things.lake(NAME)} == expected
    if "scd2" in shapes:
        versions = [row for row in loads.versions("things") if row["_to_lsn"] is None]
        assert {row["id"]: tuple(row[name] for name in names) for row in versions} == expected
    events = {(row["id"], *(row[n] for n in names)) for row in things_history(loads) if row["_op"] in ("U", "I")}
    assert events >= {(1, "x", 5, None), (6, "x", 5, None), (9, "y", 5, "e")}

    loads.say(fill="copy")
    loads.load_all()
    check(loads, *names)
    things.sql("UPDATE lab.things SET a = 3 WHERE id = 3")
    things.wait_captured()
    loads.load_all()
    check(loads, *names)


@pytest.mark.thorough
def test_one_that_comes_meanwhile_a_lost_checkpoint_and_a_change_of_mind(things):
    """Each sink goes on with the columns that its marker names, whatever a run is told, until it has them all."""
    loads = loads_of(things, ("mirror", "scd2", "history"))
    loads.load_all()
    things.sql("ALTER TABLE lab.things ADD note varchar(20), num int NOT NULL DEFAULT 5, doc varchar(max)")
    things.sql("UPDATE lab.things SET note = 'n', doc = REPLICATE('d', 20) WHERE id < 5")
    second_instance(things)
    things.sql("UPDATE lab.things SET a = 2 WHERE id = 7")
    things.wait_captured()
    said = {"new_columns": {"note": "load", "num": "ask", "doc": "load"}}
    loads.say(**said)
    loads.load()
    # the history has both columns; the copy is not whole
    loads.options = {"copy_rows": 3, "copy_seconds": 0.001}
    things.sql("UPDATE lab.things SET a = 3 WHERE id IN (2, 6)")
    things.wait_captured()
    loads.load()
    events = [row for row in loads.origin.lake(NAME, "history") if row["_op"] == "U" and row["a"] == 3]
    # CDC leaves out a value that is NULL and was not changed; the history's row of before does not know it
    assert [(row["id"], row["_unknown"]) for row in sorted(events, key=lambda row: row["id"])] == [
        (2, []),
        (6, ["doc"]),
    ]
    assert "note" not in loads.origin.lake(NAME)[0]

    # what a person asks for is as of the columns that each has
    CopyRequests(loads.variables).save(CopyRequest(loads.identity("things"), "asked"))
    # a third one is named: the history has other columns than all, and than the others
    loads.say(new_columns="load")
    for _ in range(12):
        loads.load()
        if loads.store.load(loads.identity("things")).ending_of("asked") is not None:
            break
    assert loads.store.load(loads.identity("things")).ending_of("asked") == "COMPLETED"
    check(loads)
    loads.say(on_schema_change="warn")
    things.sql("UPDATE lab.things SET a = 4, num = 8 WHERE id = 1")
    things.wait_captured()
    loads.load()
    check(loads)
    stored = loads.store.load(loads.identity("things"))
    loads.variables.clear()
    things.sql("UPDATE lab.things SET a = 5 WHERE id = 2")
    things.wait_captured()
    loads.load()
    check(loads)
    found = loads.store.load(loads.identity("things")).sinks
    assert {shape: sink.schema_hash for shape, sink in found.items()} == {
        shape: sink.schema_hash for shape, sink in stored.sinks.items()
    }

    loads.say(on_schema_change=PROPOSE, new_columns=dict.fromkeys(("note", "num", "doc"), "load"))
    for _ in range(12):
        loads.load()
        if "note" in loads.origin.lake(NAME)[0]:
            break
    check(loads, "note", "num", "doc")


@pytest.mark.parametrize("default", ["'new'", pytest.param("NULL", marks=pytest.mark.thorough)])
def test_only_rows_come_over_that_differ_from_nearly_all(things, default, monkeypatch):
    """By their bytes: what is alike for the collation is another value."""
    things.sql(
        "INSERT INTO lab.things SELECT n.id, 1 FROM (VALUES " + ", ".join(f"({n})" for n in range(9, 61)) + ") n(id)"
    )
    things.wait_captured()
    loads = loads_of(things, ("mirror", "history", "scd2"))
    loads.say(deletes="soft")
    loads.load_all()
    things.sql("DELETE FROM lab.things WHERE id IN (1, 30)")
    things.sql(
        f"ALTER TABLE lab.things ADD note varchar(20) DEFAULT {default} WITH VALUES, num float NOT NULL DEFAULT 0,"
        f" doc varchar(max) DEFAULT {default} WITH VALUES"
    )
    alike = {3: "'NEW'", 40: "'new '", 41: "N'nëw'", 42: "'new' + CHAR(0)", 43: "NULL", 44: "''"}
    for id, value in alike.items():
        things.sql(f"UPDATE lab.things SET note = {value} WHERE id = {id}")
    things.sql("UPDATE lab.things SET num = -1 * num WHERE id = 45; UPDATE lab.things SET doc = 'NEW' WHERE id = 46")
    second_instance(things)
    things.wait_captured()
    loads.load()
    loads.options = {"copy_rows": 20, "copy_seconds": 0.001}
    receipts = []
    with monkeypatch.context() as patch, contextlib.suppress(Killed):
        # what is common is noted, and no chunk is read yet
        kill_at(patch, Point(chunk_reading.ChunkReading, "read", BEFORE))
        loads.load()
    for n in range(8):
        # a new row, another value, a row that goes, and an update of which CDC leaves out the large value
        things.sql(f"INSERT INTO lab.things (id, a) VALUES ({100 + n}, 1)")
        things.sql(f"UPDATE lab.things SET note = 'of {n}' WHERE id = {5 + 7 * n}")
        things.sql(f"DELETE FROM lab.things WHERE id = {6 + 7 * n}; UPDATE lab.things SET a = 2 WHERE id = {7 + 7 * n}")
        things.wait_captured()
        receipts.append(loads.load()[1].tables[0])
        if "note" in loads.origin.lake(NAME)[0]:
            break
        assert loads.origin.lake(NAME, "scd2")[0].keys().isdisjoint(ADDED)
    assert len(receipts) > 2
    (told,) = [text for text in receipts[0].warnings if "are copied" in text]
    assert told.startswith("lab.things: to fill doc, note, num, about ")
    assert receipts[-1].counts["copied"] < 30
    source = {row["id"]: row for row in things.sql("SELECT * FROM lab.things")}
    mirror = {row["id"]: row for row in things.lake(NAME)}
    there = {id: row for id, row in mirror.items() if row["_deleted_at"] is None}
    columns = ("id", "a", "note", "num", "doc")

    def values(rows):
        return {id: tuple(repr(row[name]) for name in columns) for id, row in rows.items()}

    assert values(there) == values(source)
    # what is deleted gets no value
    assert {mirror[id]["note"] for id in (1, 30)} == {None}
    assert values({row["id"]: row for row in newest(things_history(loads))}) == values(source)
    versions = loads.versions("things")
    assert values({row["id"]: row for row in versions if row["_to_lsn"] is None}) == values(source)


class Writer:
    """Transactions on the table, drawn.

    :param added: whether it has the new columns
    """

    def __init__(self, things: Origin, rng: random.Random) -> None:
        self._things, self._rng, self.added = things, rng, False

    def write(self, transactions: int) -> None:
        """Commit some, and wait until they are captured."""
        for _ in range(transactions):
            statements = [self._statement() for _ in range(self._rng.choice((1, 1, 2, 3)))]
            self._things.sql(f"BEGIN TRANSACTION; {'; '.join(statements)}; COMMIT")
        self._things.wait_captured()

    def _statement(self) -> str:
        rng, id = self._rng, self._rng.randrange(14)
        values = {"a": str(rng.randrange(100))}
        if self.added:
            drawn = {
                "note": rng.choice(("NULL", f"'n{rng.randrange(100)}'")),
                "num": str(rng.randrange(9)),
                "doc": rng.choice(("NULL", f"REPLICATE('d{rng.randrange(10)}', 20)")),
            }
            values = {name: value for name, value in (values | drawn).items() if rng.random() < 0.5} or drawn
        put = ", ".join(f"{name} = {value}" for name, value in values.items())
        named = "".join(f", {name}" for name in values)
        insert = f"INSERT INTO lab.things (id{named}) SELECT {id}, {', '.join(values.values())} WHERE NOT EXISTS"
        return rng.choice(
            (
                f"UPDATE lab.things SET {put} WHERE id = {id}",
                f"UPDATE lab.things SET {put} WHERE id BETWEEN {id} AND {id + 3}",
                f"{insert} (SELECT 1 FROM lab.things WHERE id = {id})",
                f"DELETE FROM lab.things WHERE id = {id}",
                f"UPDATE lab.things SET id = {id + 20} WHERE id = {id} AND NOT EXISTS"
                f" (SELECT 1 FROM lab.things WHERE id = {id + 20})",
            )
        )


STOPS = [
    Point(filling, "_filled", BEFORE),
    Point(filling, "_filled", AFTER),
    Point(filling, "_filled", BEFORE, call=2),
    Point(AddedColumns, "add", AFTER),
    Point(AddedColumns, "finish", BEFORE),
    Point(AddedColumns, "finish", BEFORE, call=3),
    *(POINTS["iceberg"][label] for label in ("branch made", "one shape committed", "staged", "no receipt")),
]


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [harsh.SEED + n for n in range(int(os.environ.get("MSSQL_CDC_TEST_BATCHES", "1")))])
def test_random_histories_beside_an_instance_that_comes_later(things, seed, monkeypatch):
    print(f"MSSQL_CDC_TEST_SEED={seed}")
    rng = random.Random(seed)
    loads, writer = loads_of(things, ("mirror", "history", "scd2")), Writer(things, rng)
    loads.load_all()
    # a chunk in each run
    loads.options = {"copy_rows": rng.choice((3, 1000)), "copy_seconds": 0.001}
    writer.write(rng.randrange(4))
    things.sql("ALTER TABLE lab.things ADD note varchar(20), num int NOT NULL DEFAULT 5, doc varchar(max)")
    writer.added = True
    for _ in range(rng.randrange(3)):
        writer.write(rng.randrange(1, 5))
        if rng.random() < 0.7:
            loads.load()
    second_instance(things)
    for _ in range(40):
        writer.write(rng.randrange(4))
        if rng.random() < 0.4:
            point = rng.choice(STOPS)
            with monkeypatch.context() as patch, contextlib.suppress(Killed):
                kill_at(patch, point)
                loads.load(checkpoint=rng.random() < 0.5)
            print("killed at", point.owner, point.name, point.when)
            # what the kill left is whole, whatever it is
            columns = [set(loads.origin.lake(NAME, shape)[0]) & {*ADDED} for shape in loads.shapes]
            assert all(each in (set(), {"note", "num", "doc"}) for each in columns)
        loads.load()
        if set(loads.origin.lake(NAME)[0]) & {*ADDED}:
            break
        check(loads)
    else:
        raise AssertionError("it is never filled")
    check(loads, "note", "num", "doc")
    writer.write(3)
    loads.load()
    check(loads, "note", "num", "doc")
