"""A column that the source table has got is filled by a copy, and shown in one step, once an instance has it."""

from __future__ import annotations

import dataclasses

import pytest

from airflow_provider_mssql_cdc.core.entry_values import PROPOSE
from tests.support.spark.loads import Loads
from tests.support.spark.origin import Origin

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


@pytest.mark.parametrize("file_format", ["iceberg", "delta", "postgresql"])
def test_it_is_filled_as_the_source_has_it(things, file_format, request):
    things.format = file_format
    if file_format == "postgresql":
        things.into(request.getfixturevalue("postgresql"))
    loads = loads_of(things)
    loads.load_all()
    things.sql(
        "ALTER TABLE lab.things ADD note varchar(20), num int NOT NULL DEFAULT 5, seen datetime2, doc varchar(max)"
    )
    # no instance has it: there is no event of it
    things.sql("UPDATE lab.things SET note = 'between', doc = 'd' WHERE id IN (1, 2, 3)")
    things.sql("UPDATE lab.things SET seen = '2026-01-02T03:04:05.1234567' WHERE id < 8")
    things.sql("UPDATE lab.things SET a = 2 WHERE id = 2")
    things.wait_captured()
    assert loads.load_all() == [f"column {name} is not captured by lab_things" for name in ADDED]
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
