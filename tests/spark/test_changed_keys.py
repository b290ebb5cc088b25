"""A table whose key is another one now: its targets are loaded anew by that, in one commit, with a copy."""

from __future__ import annotations

import contextlib
import datetime

import pytest

from airflow_provider_mssql_cdc.core.entry_values import EVOLVE
from airflow_provider_mssql_cdc.spark.sources.cdc.table import CapturedTable
from airflow_provider_mssql_cdc.spark.targets.iceberg_columns import PREFIX, AddedColumns
from tests.support.spark.kill_points import AFTER, BEFORE, POINTS, Point
from tests.support.spark.loads import Loads
from tests.support.spark.origin import Origin
from tests.support.spark.rekeyed import Version, marked_by, version, versions_by
from tests.support.spark.stop import Killed, kill_at

pytestmark = [pytest.mark.xdist_group(__name__), pytest.mark.timeout(900)]

NAME = "lab.things"
ALL = ("mirror", "history", "scd2", "transactions")
COLUMNS = ("id", "code", "a", "doc")


@pytest.fixture
def things(live: Origin, request) -> Origin:
    live.format = getattr(request, "param", "iceberg")
    if live.format == "postgresql":
        live.into(request.getfixturevalue("postgresql"))
    live.sql("CREATE SCHEMA lab")
    live.sql(
        "CREATE TABLE lab.things (id int NOT NULL CONSTRAINT pk_things PRIMARY KEY, code varchar(9) NOT NULL, a int,"
        " doc varchar(max))"
    )
    # two of a code, of which one will be gone, and one will have another
    rows = {1: "x", 2: "x", 3: "y", 4: "z", 5: "y", 6: "w"}
    live.sql("INSERT INTO lab.things VALUES " + ", ".join(f"({n}, '{c}', {n}, 'd{n}')" for n, c in rows.items()))
    live.enable(NAME)
    live.wait_captured()
    return live


def loads_of(things: Origin, shapes: tuple[str, ...] = ALL) -> Loads:
    loads = Loads(things, shapes, ("things",))
    loads.say(on_schema_change=EVOLVE)
    return loads


def another_primary_key(things: Origin, key: str) -> None:
    """As SQL Server wants it: change data capture is off meanwhile."""
    things.sql(
        "EXEC sys.sp_cdc_disable_table @source_schema = N'lab', @source_name = N'things', @capture_instance = N'all'"
    )
    things.sql("ALTER TABLE lab.things DROP CONSTRAINT pk_things")
    things.sql(f"ALTER TABLE lab.things ADD CONSTRAINT pk_things PRIMARY KEY ({key})")
    things.enable(NAME)


def source(things: Origin, *columns: str) -> list[dict]:
    return things.sql(f"SELECT {', '.join(columns)} FROM lab.things")


def in_order(rows, *columns: str) -> list[tuple]:
    return sorted((tuple(row[name] for name in columns) for row in rows), key=repr)


def versions(loads: Loads, *columns: str) -> list[Version]:
    return [
        version({name: row.get(name) for name in columns}, row["_from_lsn"], row["_to_lsn"])
        for row in loads.versions("things")
    ]


def low_of(loads: Loads) -> str:
    """The low of the newest copy: where its rows are in the history."""
    return max(row["_lsn"] for row in loads.origin.lake(NAME, "history") if row["_op"] == "R")


@pytest.mark.parametrize(
    "things",
    ["iceberg", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("delta", "postgresql"))],
    indirect=True,
)
def test_targets_are_loaded_anew_by_another_primary_key(things):
    # each of a load's sinks takes its time: what goes on beside a copy the other formats show
    shapes = {"iceberg": ALL[:3], "postgresql": ("mirror", "history", "transactions")}.get(things.format, ALL)
    loads = loads_of(things, shapes)
    loads.load_all()
    things.sql("DELETE FROM lab.things WHERE id = 2")
    things.sql("UPDATE lab.things SET code = 'v', a = 50 WHERE id = 5; UPDATE lab.things SET a = 60 WHERE id = 6")
    things.wait_captured()
    loads.load_all()
    before = {shape: things.lake(NAME, shape) for shape in shapes}
    versions_before = versions(loads, *COLUMNS) if "scd2" in shapes else []

    another_primary_key(things, "code")
    things.sql("UPDATE lab.things SET a = 40 WHERE id = 4; INSERT INTO lab.things VALUES (4, 'u', 41, 'd41')")
    things.wait_captured()
    told = loads.load_all()
    said = ", ".join(shape for shape in shapes if shape != "transactions")
    assert f"the key was (id), and is (code): a copy of the table loads {said} anew by it" in told
    now = source(things, *COLUMNS)
    assert in_order(things.lake(NAME), *COLUMNS) == in_order(now, *COLUMNS)
    low, history = low_of(loads), things.lake(NAME, "history")
    assert all(row in history for row in before["history"])
    behind = [row for row in history if row not in before["history"]]
    at_low = [{name: row[name] for name in COLUMNS} for row in behind if row["_op"] == "R"]
    state = {row["code"]: row for row in at_low}
    for row in sorted((r for r in behind if r["_op"] in "IU"), key=lambda r: (r["_lsn"], r["_seq"])):
        assert row["_lsn"] > low
        state[row["code"]] = row
    assert in_order(state.values(), *COLUMNS) == in_order(now, *COLUMNS)
    if "scd2" in shapes:
        expected, found = versions_by(["code"], versions_before, at_low, low), versions(loads, *COLUMNS)
        since = [v for v in found if v.since > low or (v.until or "") > low]
        assert {repr(v) for v in found} - {repr(v) for v in since} <= {repr(v) for v in expected}
        assert rows_at(found, low) == rows_at(expected, low)
        assert in_order((dict(v.row) for v in found if v.until is None), *COLUMNS) == in_order(now, *COLUMNS)
    assert len({sink.schema_hash for sink in loads.store.load(loads.identity("things")).sinks.values()}) == 1

    # by the new key: an update of it, one of a row without its large value, one of the key of before, a delete
    things.sql("UPDATE lab.things SET code = 't' WHERE code = 'z'; UPDATE lab.things SET a = 70 WHERE code = 'v'")
    things.sql("DELETE FROM lab.things WHERE code = 'u'; UPDATE lab.things SET id = 4 WHERE code = 'x'")
    things.wait_captured()
    assert [text for text in loads.load_all() if "key" in text] == []
    now = source(things, *COLUMNS)
    assert in_order(things.lake(NAME), *COLUMNS) == in_order(now, *COLUMNS)
    if "scd2" in shapes:
        found = versions(loads, *COLUMNS)
        assert in_order((dict(v.row) for v in found if v.until is None), *COLUMNS) == in_order(now, *COLUMNS)
        for position in {low, *(v.since for v in versions_before if v.since < low)}:
            assert rows_at(found, position) == rows_at(versions_before if position < low else expected, position)
    if "transactions" in shapes:
        counted = [row["events"] for row in things.lake(NAME, "transactions")]
        assert sum(counted) > sum(row["events"] for row in before["transactions"])


POINTS_OF_A_COPY = [
    Point(CapturedTable, "copy", AFTER),
    Point(AddedColumns, "add", AFTER),
    Point(AddedColumns, "finish", BEFORE),
    *(POINTS["iceberg"][label] for label in ("branch made", "one shape committed", "no receipt")),
]


@pytest.mark.thorough
def test_another_index_of_a_column_that_has_just_come_with_a_kill_at_each_step(things, monkeypatch):
    """No value is lost, since the newer instance reaches back to what was loaded."""
    loads, columns = loads_of(things, ("mirror", "history", "scd2")), (*COLUMNS, "sku")
    loads.say(deletes="soft")
    loads.load_all()
    things.sql("DELETE FROM lab.things WHERE id = 2; UPDATE lab.things SET a = 60 WHERE id = 6")
    things.sql("ALTER TABLE lab.things ADD sku int NOT NULL DEFAULT 0")
    things.sql("UPDATE lab.things SET sku = 10 * id; CREATE UNIQUE INDEX ux ON lab.things (sku)")
    things.enable(NAME, capture_instance="N'things_2'", index_name="N'ux'")
    things.sql("UPDATE lab.things SET a = 61 WHERE id = 6")
    things.wait_captured()
    assert any("things_2 has sku, and is not read" in text for text in loads.load_all())
    position, old = loads.position("things"), {shape: things.lake(NAME, shape) for shape in loads.shapes}
    versions_before = versions(loads, *columns)

    things.sql(
        "EXEC sys.sp_cdc_disable_table @source_schema = N'lab', @source_name = N'things',"
        " @capture_instance = N'lab_things'"
    )
    things.sql("UPDATE lab.things SET sku = 31 WHERE id = 3; INSERT INTO lab.things VALUES (7, 'x', 7, 'd7', 70)")
    things.sql("DELETE FROM lab.things WHERE id = 5; UPDATE lab.things SET a = 71 WHERE id = 7")
    things.wait_captured()
    loads.options = {"copy_rows": 3}
    done: set[str] = set()
    for point in POINTS_OF_A_COPY:
        with monkeypatch.context() as patch, contextlib.suppress(Killed):
            kill_at(patch, point)
            loads.load(checkpoint=False)
        for shape in loads.shapes:
            rows = things.lake(NAME, shape)
            # what a sink shows is what it had, or all
            if any(row.get(name) is not None for row in rows for name in ("sku", f"{PREFIX}sku")):
                done.add(shape)
            else:
                assert shape not in done
                assert in_order(rows, *old[shape][0]) == in_order(old[shape], *old[shape][0])
    loads.load_all()

    now, low = source(things, *columns), low_of(loads)
    mirror = things.lake(NAME)
    assert in_order((row for row in mirror if row["_deleted_at"] is None), *columns) == in_order(now, *columns)
    gone = [row for row in mirror if row["_deleted_at"] is not None]
    model = marked_by(["sku"], ["id"], [{**row, "sku": None} for row in old["mirror"]], now, datetime.datetime.max)
    left = [row for row, deleted in model if deleted is not None]
    assert in_order(gone, *columns) == in_order(left, *columns)
    events = [row for row in things.lake(NAME, "history") if row["_lsn"] > position and row["_op"] != "R"]
    captured = things.sql(f"SELECT COUNT(*) AS n FROM cdc.things_2_CT WHERE [__$start_lsn] > {position}")[0]["n"]
    assert (len(events), captured) == (captured, 6)
    assert {(row["_op"], row["id"], row["sku"], row["a"]) for row in events} >= {
        ("D", 3, 30, 3),
        ("I", 3, 31, 3),
        ("U", 7, 70, 71),
        ("D", 5, 50, 5),
    }
    found = versions(loads, *columns)
    at_low = [{n: row[n] for n in columns} for row in things.lake(NAME, "history") if row["_op"] == "R"]
    at_low = [row for row in at_low if row["sku"] is not None]
    assert sorted(map(repr, found)) == sorted(map(repr, versions_by(["sku"], versions_before, at_low, low)))
    ended = [row for row in loads.versions("things") if row["_to_lsn"] is not None]
    assert {tuple(row["_unknown"]) for row in ended} == {("sku",)}

    things.sql("UPDATE lab.things SET sku = 61 WHERE id = 6; UPDATE lab.things SET a = 72 WHERE id = 7")
    things.sql("DELETE FROM lab.things WHERE sku = 31; INSERT INTO lab.things VALUES (5, 'again', 5, NULL, 50)")
    things.wait_captured()
    loads.load_all()
    now, mirror = source(things, *columns), things.lake(NAME)
    assert in_order((row for row in mirror if row["_deleted_at"] is None), *columns) == in_order(now, *columns)
    assert in_order((dict(v.row) for v in versions(loads, *columns) if v.until is None), *columns) == in_order(
        now, *columns
    )


def rows_at(found: list[Version], position: str) -> list[str]:
    return sorted(repr(v.row) for v in found if v.since <= position and (v.until is None or position < v.until))
