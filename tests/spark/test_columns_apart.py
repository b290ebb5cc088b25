"""Types that a target's column does not hold: one of their own has all values, and the old one keeps what it had."""

from __future__ import annotations

import contextlib
import os
import random

import pytest

from airflow_provider_mssql_cdc.core.entry_values import EVOLVE, NEW_COLUMN, STRING
from airflow_provider_mssql_cdc.spark import filling
from airflow_provider_mssql_cdc.spark.targets.iceberg_columns import AddedColumns
from tests.support import harsh
from tests.support.spark.kill_points import AFTER, BEFORE, POINTS, Point
from tests.support.spark.loads import Loads
from tests.support.spark.origin import Origin
from tests.support.spark.stop import Killed, kill_at

pytestmark = [pytest.mark.xdist_group("tests.spark.test_filled_columns"), pytest.mark.timeout(900)]

NAME = "lab.sums"
SHAPES = ("mirror", "history", "scd2")
FORMATS = [
    pytest.param("iceberg", SHAPES, marks=pytest.mark.thorough),
    ("iceberg", ("mirror", "history")),
    pytest.param("postgresql", ("mirror", "history"), marks=pytest.mark.thorough),
    pytest.param("delta", (*SHAPES, "transactions"), marks=pytest.mark.thorough),
    pytest.param("parquet", ("history",), marks=pytest.mark.thorough),
]
OLD = ("a", "d", "t", "s")
ROWS = {id_: (id_ * 10, f"{id_}.25", f"2024-03-0{id_} 10:00:00", f"{id_}") for id_ in range(1, 6)}


@pytest.fixture
def sums(live: Origin) -> Origin:
    live.sql("CREATE SCHEMA lab")
    live.sql(
        "CREATE TABLE lab.sums (id int NOT NULL PRIMARY KEY, a int, d decimal(9,2), t datetime, s varchar(9), n int)"
    )
    for id_, (a, d, t, s) in ROWS.items():
        live.sql(f"INSERT INTO lab.sums VALUES ({id_}, {a}, {d}, '{t}', '{s}', 0)")
    live.enable(NAME)
    live.wait_captured()
    return live


def loads_of(sums: Origin, how: str, shapes: tuple[str, ...] = SHAPES) -> Loads:
    loads = Loads(sums, shapes, ("sums",))
    loads.say(on_schema_change=EVOLVE, incompatible_types=how)
    return loads


def into(sums: Origin, file_format: str, request: pytest.FixtureRequest) -> None:
    sums.format = file_format
    if file_format == "postgresql":
        sums.into(request.getfixturevalue("postgresql"))


def source(sums: Origin, columns: str) -> dict[int, tuple]:
    rows = sums.sql(f"SELECT id, {columns} FROM lab.sums")
    return {row["id"]: said(list(row.values())[1:]) for row in rows}


def said(values) -> tuple:
    return tuple(None if value is None else str(value) for value in values)


def held(rows: list[dict], *names: str) -> dict[int, tuple]:
    return {row["id"]: said(row[name] for name in names) for row in rows}


def now_in(loads: Loads) -> dict[str, list[dict]]:
    """The rows that count now, by shape; a row of a history that is no event is as of the end of its position."""
    found = {"mirror": loads.origin.lake(NAME)} if "mirror" in loads.shapes else {}
    if "scd2" in loads.shapes:
        found["scd2"] = [row for row in loads.versions("sums") if row["_to_lsn"] is None]
    events = sorted(history(loads), key=lambda row: (row["_lsn"], row["_seq"] or 2**62))
    found["history"] = [row for row in {row["id"]: row for row in events}.values() if row["_op"] != "D"]
    return found


def history(loads: Loads) -> list[dict]:
    return [row for row in loads.origin.lake(NAME, "history") if row["_op"] != "B"]


def killed_before_the_fill(loads: Loads, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:

        def killed(*given: object) -> None:
            raise Killed

        patch.setattr(filling, "_filled", killed)
        with pytest.raises(Killed):
            loads.load()


@pytest.mark.parametrize(("file_format", "shapes"), FORMATS)
def test_the_old_column_keeps_what_it_had_and_the_new_one_has_all(sums, file_format, shapes, request, monkeypatch):
    into(sums, file_format, request)
    loads = loads_of(sums, NEW_COLUMN, shapes)
    loads.load_all()
    sums.sql("UPDATE lab.sums SET n = 1 WHERE id = 1; DELETE FROM lab.sums WHERE id = 5")
    sums.sql(
        "BEGIN TRAN; UPDATE lab.sums SET n = 2 WHERE id = 2; ALTER TABLE lab.sums ALTER COLUMN a varchar(20);"
        " ALTER TABLE lab.sums ALTER COLUMN d decimal(11,1); ALTER TABLE lab.sums ALTER COLUMN t date;"
        " ALTER TABLE lab.sums ALTER COLUMN s int; COMMIT"
    )
    sums.sql("UPDATE lab.sums SET a = 'three', d = 3.5 WHERE id = 3")
    sums.sql("INSERT INTO lab.sums VALUES (6, 'six', 6.5, '2024-03-06', 66, 0)")
    sums.wait_captured()

    # the rows are loaded, and it ends before what they had is read again
    killed_before_the_fill(loads, monkeypatch)
    new = ("a__varchar", "d__decimal_11_1", "t__date", "s__int")
    now, untouched = source(sums, "a, d, t, s"), {4: said((40, "4.25", "2024-03-04 10:00:00", "4"))}
    if "mirror" in shapes:
        # no value is missing in both
        rows = sums.lake(NAME)
        assert held(rows, *OLD) == {**dict.fromkeys((1, 2, 3, 6), (None,) * 4), **untouched}
        assert held(rows, *new) == {**now, 4: (None,) * 4}
    warned = "".join(loads.load_all())
    assert "a, d, s, t: filled by a copy of" in warned
    assert loads.load_all() == []

    for found in now_in(loads).values():
        assert held(found, *new) == now
        assert held(found, *OLD) == {**dict.fromkeys((1, 2, 3, 6), (None,) * 4), **untouched}
    # each event that was read since has the values that the change table has by now
    since = [row for row in history(loads) if row["_op"] in "IUD"]
    assert sorted((row["_op"], row["id"], *said(row[name] for name in (*OLD, *new))) for row in since) == [
        ("D", 5, None, None, None, None, "50", "5.3", "2024-03-05", "5"),
        ("I", 6, None, None, None, None, "six", "6.5", "2024-03-06", "66"),
        ("U", 1, None, None, None, None, *now[1]),
        ("U", 2, None, None, None, None, *now[2]),
        ("U", 3, None, None, None, None, *now[3]),
    ]
    assert [sorted(row["_changed"]) for row in since if row["id"] == 3] == [["a__varchar", "d__decimal_11_1"]]

    # it goes on, and a type that the new column holds changes there
    sums.sql("UPDATE lab.sums SET a = 'four', s = 44 WHERE id = 4; ALTER TABLE lab.sums ALTER COLUMN a nvarchar(30)")
    sums.wait_captured()
    loads.load_all()
    assert loads.load_all() == []
    for found in now_in(loads).values():
        assert held(found, *new) == source(sums, "a, d, t, s")


@pytest.mark.thorough
@pytest.mark.parametrize(("file_format", "shapes"), FORMATS)
def test_a_second_change_leaves_the_second_column_too(sums, file_format, shapes, request, monkeypatch):
    into(sums, file_format, request)
    loads = loads_of(sums, NEW_COLUMN, shapes)
    loads.load_all()
    sums.sql("ALTER TABLE lab.sums ALTER COLUMN a varchar(20); UPDATE lab.sums SET n = 3, a = '101' WHERE id = 1")
    sums.wait_captured()
    killed_before_the_fill(loads, monkeypatch)
    # the first one is not filled yet
    sums.sql("UPDATE lab.sums SET a = '102.5' WHERE id = 2; UPDATE lab.sums SET a = NULL WHERE id = 3")
    sums.sql("ALTER TABLE lab.sums ALTER COLUMN a decimal(9,2); ALTER TABLE lab.sums ALTER COLUMN s int")
    sums.sql("UPDATE lab.sums SET a = 105 WHERE id = 5")
    sums.wait_captured()
    loads.load_all()
    assert loads.load_all() == []
    for found in now_in(loads).values():
        assert held(found, "a__decimal_9_2", "s__int") == source(sums, "a, s")
        # row 4 had no event, and row 1 none since the first change was loaded
        assert held(found, "a", "a__varchar", "s") == {
            **dict.fromkeys((2, 3, 5), (None, None, None)),
            1: (None, "101", "1"),
            4: ("40", None, "4"),
        }
    if "mirror" in shapes:
        assert set(sums.lake(NAME)[0]) - {"id", "d", "t", "n"} == {"a", "a__varchar", "a__decimal_9_2", "s", "s__int"}

    # a lost checkpoint finds the columns by the marker; one that is back at an earlier type has a column of its own
    loads.variables.clear()
    sums.sql("ALTER TABLE lab.sums ALTER COLUMN a varchar(20); UPDATE lab.sums SET a = 'end' WHERE id = 3")
    sums.wait_captured()
    loads.load_all()
    loads.load_all()
    assert loads.load_all() == []
    for found in now_in(loads).values():
        assert held(found, "a__varchar_2", "s__int") == source(sums, "a, s")
        assert held(found, "a__decimal_9_2")[5] == ("105.00",)


@pytest.mark.thorough
@pytest.mark.parametrize(("file_format", "shapes"), FORMATS)
def test_all_goes_on_as_text(sums, file_format, shapes, request):
    into(sums, file_format, request)
    loads = loads_of(sums, STRING, shapes)
    loads.load_all()
    sums.sql("UPDATE lab.sums SET n = 1 WHERE id = 1")
    sums.sql(
        "ALTER TABLE lab.sums ALTER COLUMN a decimal(9,3); ALTER TABLE lab.sums ALTER COLUMN s int;"
        " ALTER TABLE lab.sums ALTER COLUMN t date; ALTER TABLE lab.sums ALTER COLUMN d float"
    )
    sums.sql("UPDATE lab.sums SET a = 2.125, s = 7 WHERE id = 2")
    sums.wait_captured()
    loads.load_all()
    assert loads.load_all() == []
    texts = "CONVERT(varchar(41), a) AS a, CONVERT(varchar(32), d, 3) AS d, CONVERT(varchar(10), t, 23) AS t, s"
    for found in now_in(loads).values():
        assert held(found, "a__string", "d__string", "t__string", "s") == source(sums, texts)
    # text holds each later type
    sums.sql("ALTER TABLE lab.sums ALTER COLUMN a varchar(30); ALTER TABLE lab.sums ALTER COLUMN s decimal(9,2)")
    sums.sql("UPDATE lab.sums SET a = 'three' WHERE id = 3")
    sums.wait_captured()
    loads.load_all()
    assert loads.load_all() == []
    for found in now_in(loads).values():
        assert held(found, "a__string", "d__string", "t__string", "s") == source(sums, texts)


KINDS = ("int", "bigint", "varchar(10)", "nvarchar(12)", "decimal(9,0)")
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
def test_random_types_beside_kills_leave_every_value_in_one_column(live, seed, monkeypatch):
    """Values are digits, which each type holds: wherever one stands, it is known what it was."""
    print(f"MSSQL_CDC_TEST_SEED={seed}")
    rng, how = random.Random(seed), random.Random(seed).choice((NEW_COLUMN, STRING))
    live.sql("CREATE SCHEMA lab")
    live.sql("CREATE TABLE lab.sums (id int NOT NULL PRIMARY KEY, v int)")
    live.sql("INSERT INTO lab.sums VALUES " + ", ".join(f"({id_}, {id_})" for id_ in range(1, 7)))
    live.enable(NAME)
    live.wait_captured()
    loads = loads_of(live, how)
    loads.load_all()
    kind, columns, values = "int", ["v"], {id_: {id_} for id_ in range(1, 7)}
    for _ in range(3):
        for _ in range(rng.randrange(1, 3)):
            # row 1 has no event
            id_, value = rng.randrange(2, 9), rng.choice((None, 7, 8, 9))
            text = "NULL" if value is None else str(value)
            live.sql(
                f"UPDATE lab.sums SET v = {text} WHERE id = {id_};"
                f" IF @@ROWCOUNT = 0 INSERT INTO lab.sums VALUES ({id_}, {text})"
            )
            values.setdefault(id_, set()).add(value)
        kind = rng.choice([each for each in KINDS if each != kind])
        live.sql(f"ALTER TABLE lab.sums ALTER COLUMN v {kind}")
        live.sql(f"UPDATE lab.sums SET v = {rng.choice((3, 4))} WHERE id = 2")
        values[2] |= {3, 4}
        live.wait_captured()
        point = rng.choice(STOPS)
        with monkeypatch.context() as patch, contextlib.suppress(Killed):
            kill_at(patch, point)
            loads.load(checkpoint=rng.random() < 0.5)
        print(how, kind, "killed at", point.owner, point.name, point.when)
        if rng.random() < 0.5:
            continue
        for _ in range(3):
            loads.load_all()
        assert loads.load_all() == []
        now = {row["id"]: row["v"] and int(row["v"]) for row in live.sql("SELECT id, v FROM lab.sums")}
        for shape, found in now_in(loads).items():
            has = [name for name in found[0] if name == "v" or name.startswith("v__")]
            assert {*columns} <= {*has}, shape
            of_now = [name for name in has if {row["id"]: whole(row[name]) for row in found} == now]
            assert of_now, (shape, found, now)
            for row in found:
                assert {whole(row[name]) for name in has} <= {*values[row["id"]], None}
            if shape == "mirror":
                left = has
        columns = left


def whole(value: object) -> int | None:
    return None if value is None else int(str(value))
