"""A column that has another name since CDC was off: the targets' column gets it, beside what was loaded."""

from __future__ import annotations

import contextlib

import pytest

from airflow_provider_mssql_cdc.core.entry_values import EVOLVE, PROPOSE
from airflow_provider_mssql_cdc.spark import filling
from airflow_provider_mssql_cdc.spark.sink import Sink
from tests.support.spark.kill_points import BEFORE, Point
from tests.support.spark.loads import Loads
from tests.support.spark.origin import Origin
from tests.support.spark.stop import Killed, kill_at

pytestmark = [pytest.mark.xdist_group("tests.spark.test_dropped_columns"), pytest.mark.timeout(900)]

NAME = "lab.things"
FORMATS = [
    ("iceberg", ("mirror", "history")),
    pytest.param("iceberg", ("mirror", "history", "scd2"), marks=pytest.mark.thorough),
    pytest.param("delta", ("mirror", "history", "scd2"), marks=pytest.mark.thorough),
    pytest.param("postgresql", ("mirror", "history"), marks=pytest.mark.thorough),
    pytest.param("parquet", ("history",), marks=pytest.mark.thorough),
]
PROPERTIES = {"delta": {"delta.columnMapping.mode": "name"}}


@pytest.fixture
def things(live: Origin) -> Origin:
    live.sql("CREATE SCHEMA lab")
    live.sql("CREATE TABLE lab.things (id int NOT NULL PRIMARY KEY, a int, b varchar(20) NOT NULL, doc nvarchar(max))")
    live.sql("INSERT INTO lab.things VALUES " + ", ".join(f"({n}, {n}, 'b{n}', N'd{n}')" for n in range(1, 7)))
    live.enable(NAME)
    live.wait_captured()
    return live


def loads_of(things: Origin, format_: str, shapes: tuple[str, ...], **options) -> Loads:
    things.format = format_
    loads = Loads(things, shapes, ("things",))
    loads.say(on_gap=("copy",), table_properties=PROPERTIES.get(format_, {}), **options)
    loads.load_all()
    return loads


def rename(things: Origin, **names: str) -> None:
    """What SQL Server refuses while the table has an instance (error 4928)."""
    things.sql("EXEC sys.sp_cdc_disable_table N'lab', N'things', N'all'")
    for old, new in names.items():
        things.sql(f"EXEC sp_rename N'lab.things.{old}', N'{new}', N'COLUMN'")


def images(rows: list[dict], *columns: str) -> dict[int, tuple]:
    assert len({row[columns[0]] for row in rows}) == len(rows)
    return {row[columns[0]]: tuple(row[name] for name in columns[1:]) for row in rows}


@pytest.mark.parametrize(("format_", "shapes"), FORMATS)
def test_columns_get_the_names_of_now_and_another_one_the_name_of_before(things, format_, shapes, request, monkeypatch):
    if format_ == "postgresql":
        things.into(request.getfixturevalue("postgresql"))
    loads = loads_of(things, format_, shapes, on_schema_change=EVOLVE)
    things.sql("UPDATE lab.things SET a = 10 WHERE id = 1; DELETE FROM lab.things WHERE id = 6")
    things.wait_captured()
    loads.load_all()
    before = things.lake(NAME, "history")

    rename(things, id="thing_id", a="amount")
    things.sql("ALTER TABLE lab.things ADD a varchar(9)")
    things.enable(NAME)
    things.sql("UPDATE lab.things SET amount = 20, a = 'new' WHERE thing_id = 2")
    things.sql("DELETE FROM lab.things WHERE thing_id = 3; INSERT INTO lab.things VALUES (7, 7, 'b7', N'd7', 'seven')")
    things.wait_captured()
    with monkeypatch.context() as patch:

        def killed(*given: object) -> None:
            raise Killed

        patch.setattr(Sink, "write", killed)
        with pytest.raises(Killed):
            loads.load()
    told = loads.load_all()
    assert f"column id was renamed to thing_id: {', '.join(shapes)} follow" in told
    for _ in range(3):
        told = loads.load_all()
    assert told == []

    columns = ("thing_id", "amount", "b", "doc", "a")
    rows = things.sql("SELECT * FROM lab.things")
    if "mirror" in shapes:
        assert images(things.lake(NAME), *columns) == images(rows, *columns)
        assert sorted(name for name in things.lake(NAME)[0] if not name.startswith("_")) == sorted(columns)
    if "scd2" in shapes:
        now = [row for row in loads.versions("things") if row["_to_lsn"] is None]
        assert images(now, *columns) == images(rows, *columns)
    # each event of before tells what it told, by the names of now
    after = things.lake(NAME, "history")
    told_of = {(r["_lsn"], r["_seq"], r["_op"], r["id"]): (r["a"], r["b"], r["doc"]) for r in before}
    assert {
        key: (r["amount"], r["b"], r["doc"])
        for r in after
        if (key := (r["_lsn"], r["_seq"], r["_op"], r["thing_id"])) in told_of
    } == told_of
    assert {r["a"] for r in after if (r["_lsn"], r["_seq"], r["_op"], r["thing_id"]) in told_of} == {None}

    # and goes on as ever
    things.sql("UPDATE lab.things SET amount = 70, a = NULL WHERE thing_id = 7")
    things.wait_captured()
    loads.load_all()
    updates = [row for row in things.lake(NAME, "history") if row["_op"] == "U"]
    event = max(updates, key=lambda row: row["_lsn"])
    assert (event["thing_id"], event["amount"], event["a"], event["doc"]) == (7, 70, None, "d7")


def test_two_that_swap_their_names_and_large_values_fail_as_under_warn(things):
    loads = loads_of(things, "iceberg", ("mirror",), on_schema_change=PROPOSE)
    held = things.lake(NAME)
    rename(things, a="x", doc="a", x="doc")
    things.enable(NAME)
    things.sql("DELETE FROM lab.things WHERE id = 2")
    things.wait_captured()
    (error,) = loads.look().failures.values()
    assert "column a was renamed to doc" in str(error)
    assert things.lake(NAME) == held


def test_without_propose_or_evolve_a_renamed_column_fails(things):
    loads = loads_of(things, "iceberg", ("mirror",))
    rename(things, a="amount")
    things.enable(NAME)
    things.sql("DELETE FROM lab.things WHERE id = 2")
    things.wait_captured()
    (error,) = loads.look().failures.values()
    assert "column a was renamed to amount" in str(error)


@pytest.mark.thorough
@pytest.mark.parametrize(("format_", "shapes"), FORMATS)
def test_a_dropped_column_makes_way_for_another_one_of_its_name(things, format_, shapes, request, monkeypatch):
    if format_ == "postgresql":
        things.into(request.getfixturevalue("postgresql"))
    loads = loads_of(things, format_, shapes, on_schema_change=EVOLVE)
    dropped = {id_: b for id_, _, b, _ in (row.values() for row in things.sql("SELECT * FROM lab.things"))}
    things.sql("ALTER TABLE lab.things DROP COLUMN b; ALTER TABLE lab.things ADD b int NOT NULL DEFAULT 5")
    things.sql("UPDATE lab.things SET a = 20, b = 6 WHERE id = 2")
    things.wait_captured()
    loads.load_all()
    things.enable(NAME, capture_instance="N'two'")
    things.sql("UPDATE lab.things SET b = 7 WHERE id = 3; INSERT INTO lab.things (id, a, b) VALUES (7, 7, 70)")
    things.wait_captured()
    # by the first instance, behind the beginning of the second one
    loads.load_all()
    # it has its other name already in the sink that is filled then, and those who read it do not see the one that comes
    for number in (1, 2)[: len(shapes)]:
        with monkeypatch.context() as patch:
            kill_at(patch, Point(filling, "with_nulls", BEFORE, call=number))
            with pytest.raises(Killed) if number == 1 else contextlib.suppress(Killed):
                loads.load()
        if number == 1:
            things.sql("UPDATE lab.things SET a = 40 WHERE id = 4")
            things.wait_captured()
    told = [text for _ in range(3) for text in loads.load_all()]
    assert "column b, which the source table dropped, gets the name b__dropped_3: another one has its own" in told
    assert loads.load_all() == ["column b__dropped_3 is NULL since the source table dropped it"]

    rows = things.sql("SELECT id, a, b, doc FROM lab.things")
    expected = images(rows, "id", "a", "b", "doc")
    if "mirror" in shapes:
        assert images(things.lake(NAME), "id", "a", "b", "doc") == expected
        held = {row["id"]: row["b__dropped_3"] for row in things.lake(NAME)}
        # of rows of which an event tells since nobody knows it
        assert held == {**dropped, 2: None, 4: None, 7: None}
    if "scd2" in shapes:
        now = [row for row in loads.versions("things") if row["_to_lsn"] is None]
        assert images(now, "id", "a", "b", "doc") == expected
    events = things.lake(NAME, "history")
    first = [row for row in events if row["_lsn"] == min(each["_lsn"] for each in events)]
    assert images(first, "id", "b__dropped_3", "b") == {id_: (b, None) for id_, b in dropped.items()}
