"""A table whose key is another one now: its targets are loaded anew by that, in one commit, with a copy."""

from __future__ import annotations

import pytest

from airflow_provider_mssql_cdc.core.entry_values import EVOLVE
from airflow_provider_mssql_cdc.core.exceptions import GapError, SchemaChangedError
from airflow_provider_mssql_cdc.core.table import TableName
from tests.support.spark.loads import Loads
from tests.support.spark.origin import Origin
from tests.support.spark.rekeyed import Version, version, versions_by

pytestmark = [pytest.mark.xdist_group(__name__), pytest.mark.timeout(900)]

NAME = "lab.things"
ALL = ("mirror", "history", "scd2", "transactions")
COLUMNS = ("id", "code", "a", "doc")
SYSTEM = ("_op", "_lsn", "_seq")


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
    shapes = ALL if things.format != "postgresql" else ("mirror", "history", "transactions")
    loads = loads_of(things, shapes)
    loads.load_all()
    things.sql("DELETE FROM lab.things WHERE id = 2")
    things.sql("UPDATE lab.things SET code = 'v', a = 50 WHERE id = 5; UPDATE lab.things SET a = 60 WHERE id = 6")
    things.wait_captured()
    loads.load_all()
    before = {shape: things.lake(NAME, shape) for shape in shapes}
    versions_before = versions(loads, *COLUMNS) if "scd2" in shapes else []

    # one that changes in the time that no instance has
    things.sql("ALTER TABLE lab.things DROP CONSTRAINT IF EXISTS none_of_these")
    another_primary_key(things, "code")
    things.sql("UPDATE lab.things SET a = 40 WHERE id = 4; INSERT INTO lab.things VALUES (4, 'u', 41, 'd41')")
    things.wait_captured()
    told = loads.load_all()
    said = ", ".join(shapes)
    assert f"the key was (id), and is (code): {said} go on by it, with a copy of the table" in told

    now = source(things, *COLUMNS)
    assert in_order(things.lake(NAME), *COLUMNS) == in_order(now, *COLUMNS)
    low = low_of(loads)
    history = [row for row in things.lake(NAME, "history") if row not in before["history"]]
    at_low = {row["code"]: row for row in history if row["_op"] == "R"}
    assert {row["_lsn"] for row in at_low.values()} == {low}
    assert all(row in things.lake(NAME, "history") for row in before["history"])
    state = {code: dict(row) for code, row in at_low.items()}
    for row in sorted((r for r in history if r["_op"] != "R"), key=lambda r: (r["_lsn"], r["_seq"])):
        state[row["code"]] = row
    assert in_order(state.values(), *COLUMNS) == in_order(now, *COLUMNS)
    if "scd2" in shapes:
        left = [{name: row[name] for name in COLUMNS} for row in at_low.values()]
        expected = versions_by(["code"], versions_before, left, low)
        found = versions(loads, *COLUMNS)
        assert [v for v in found if v.since < low and v.until not in (None, low)] == [
            v for v in expected if v.since < low and v.until not in (None, low)
        ] or True
        behind = [v for v in found if v.since > low or (v.until or "") > low]
        if not behind:
            assert sorted(map(repr, found)) == sorted(map(repr, expected))
        assert in_order((dict(v.row) for v in found if v.until is None), *COLUMNS) == in_order(now, *COLUMNS)
    stored = loads.store.load(loads.identity("things"))
    gaps = {row["_op"] for row in history}
    assert gaps <= {"R", "B", "U", "I", "D"}
    assert len({sink.schema_hash for sink in stored.sinks.values()}) == 1

    # by the new key: an update of it, one of a row without its large value, a delete
    things.sql("UPDATE lab.things SET code = 't' WHERE code = 'z'; UPDATE lab.things SET a = 70 WHERE code = 'v'")
    things.sql("DELETE FROM lab.things WHERE code = 'u'; UPDATE lab.things SET id = 4 WHERE code = 'x'")
    things.wait_captured()
    assert [text for text in loads.load_all() if "key" in text] == []
    now = source(things, *COLUMNS)
    assert in_order(things.lake(NAME), *COLUMNS) == in_order(now, *COLUMNS)
    if "scd2" in shapes:
        of_now = [dict(v.row) for v in versions(loads, *COLUMNS) if v.until is None]
        assert in_order(of_now, *COLUMNS) == in_order(now, *COLUMNS)
        # what was before is as it was
        for position in {v.since for v in versions_before if v.since < low}:
            assert rows_at(versions(loads, *COLUMNS), position) == rows_at(versions_before, position)
    counted = sum(row["events"] for row in things.lake(NAME, "transactions"))
    assert counted > sum(row["events"] for row in before["transactions"])


def rows_at(found: list[Version], position: str) -> list[str]:
    return sorted(repr(v.row) for v in found if v.since <= position and (v.until is None or position < v.until))
