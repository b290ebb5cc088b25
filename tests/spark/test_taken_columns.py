"""The table of schema changes says of each target from where to where it lacks a column, and whether one is filled."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.entry_values import PROPOSE
from airflow_provider_mssql_cdc.spark import schema_changes
from tests.spark.test_schema_changes import documented
from tests.support.spark.kill_points import NO_RECEIPT
from tests.support.spark.loads import Loads
from tests.support.spark.origin import Origin
from tests.support.spark.stop import Killed, kill_at

pytestmark = [pytest.mark.xdist_group("tests.spark.test_filled_columns"), pytest.mark.timeout(900)]

NAME, TABLE = "lab.things", "lab_things_schema_changes"
PADDED, PLAIN = "w1       ", "w1"


class Things:
    """The table, its loads, and what is told of it.

    :ivar written: how many rows were written
    """

    def __init__(self, origin: Origin, shapes: tuple[str, ...]) -> None:
        self.origin, self.written = origin, 0
        self.loads = Loads(origin, shapes, ("things",))
        self.loads.say(on_schema_change=PROPOSE)

    def load(self, columns: str = "", values: str = "") -> None:
        """Commit a row, and load it."""
        self.written += 1
        id_ = 100 + self.written
        self.origin.sql(f"INSERT INTO lab.things (id, c{columns}) VALUES ({id_}, 'n'{values})")
        self.origin.wait_captured()
        self.loads.load_all()

    def steps(self) -> dict[str, list[tuple[Any, ...]]]:
        """What is told of each sink, in order: number, column, state, where it begins and ends to lack the column, and
        where it is filled.
        """
        rows = self.origin.rows(TABLE)
        events = {(row["_seen_at"], row["_schema_after"]) for row in rows if row["_shape"] is None}
        found: dict[str, list[tuple[Any, ...]]] = {}
        for row in sorted((row for row in rows if row["_shape"] is not None), key=lambda row: row["_step"]):
            assert (row["_seen_at"], row["_schema_after"]) in events
            assert (row["_number"], row["_changes"], row["_found"]) == (0, "[]", None)
            told = (row["_column_id"], row["_state"], row["_lacked_from"], row["_lacked_upto"], row["_filled_at"])
            found.setdefault(row["_shape"], []).append((row["_step"], *told))
        return found

    def position(self, shape: str) -> str:
        """Up to where a sink is loaded."""
        stored = self.loads.store.load(self.loads.identity("things"))
        assert stored is not None
        return str(stored.sinks[shape].applied)

    def ddl(self, text: str) -> str:
        """Run a statement; its LSN, as the server has it."""
        self.origin.sql(text)
        self.origin.wait_captured()
        rows = self.origin.sql("SELECT CONVERT(varchar(22), MAX(ddl_lsn), 1) AS lsn FROM cdc.ddl_history")
        return str(rows[0]["lsn"])


@pytest.fixture
def origin(live: Origin) -> Origin:
    live.sql("CREATE SCHEMA lab")
    live.sql("CREATE TABLE lab.things (id int NOT NULL PRIMARY KEY, c varchar(9))")
    live.sql("INSERT INTO lab.things VALUES (1, 'w1'), (2, 'w2'), (3, 'w3'), (4, 'w4'), (5, 'w5')")
    live.enable(NAME)
    live.wait_captured()
    return live


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("file_format", "shapes"),
    [
        ("iceberg", ("mirror", "history")),
        ("postgresql", ("mirror", "history")),
        ("delta", ("mirror", "history", "scd2", "transactions")),
        ("parquet", ("history",)),
    ],
)
def test_from_where_to_where_a_target_lacks_a_column_and_whether_it_is_filled(
    origin, file_format, shapes, request, monkeypatch
):
    origin.format = file_format
    if file_format == "postgresql":
        origin.into(request.getfixturevalue("postgresql"))
    things = Things(origin, shapes)
    things.load()
    # from now on a copy takes several runs
    things.loads.options = {"copy_rows": 4, "copy_seconds": 0.001}
    added = things.ddl("ALTER TABLE lab.things ADD note varchar(20)")
    with monkeypatch.context() as patch:
        # by a version that tells nothing of sinks
        columns = schema_changes.schema_changes_columns
        of_sinks = schema_changes.OF_SINKS
        patch.setattr(schema_changes, "OF_SINKS", ())
        patch.setattr(
            schema_changes,
            "schema_changes_columns",
            lambda position: tuple(column for column in columns(position) if column.name not in of_sinks),
        )
        for _ in range(2):
            things.load(", note", ", 'x'")
    assert [row["_changes"] and "_shape" in row for row in origin.rows(TABLE)] == [False]

    origin.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'lab', @source_name = N'things', @role_name = NULL,"
        " @capture_instance = N'things_2'"
    )
    before = {shape: things.position(shape) for shape in shapes}
    seen: list[dict[str, list[tuple[Any, ...]]]] = []
    for number in range(12):
        if number == 2:
            # what a run has committed that was killed before it could answer, the next one tells
            with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Killed):
                kill_at(patch, NO_RECEIPT)
                things.load(", note", ", 'x'")
        things.load(", note", ", 'x'")
        if "_shape" in origin.rows(TABLE)[0]:
            seen.append(things.steps())
        if seen and {steps[-1][2] for steps in seen[-1].values()} == {"filled"}:
            break
    last, at = seen[-1], {}
    assert {*last} == {*shapes} - {"transactions"}
    for shape, steps in last.items():
        assert [step[:3] for step in steps] == [
            (number, 3, state) for number, state in enumerate(["filling", "filled"][-len(steps) :], 1)
        ]
        assert {step[3] for step in steps} == {added}
        (upto,) = {step[4] for step in steps}
        at[shape] = upto, steps[-1][5]
        assert before[shape] <= upto <= at[shape][1] <= things.position(shape)
    # the events say so themselves: each row of then has the column in the source
    events = [row for row in origin.lake(NAME, "history") if row["_op"] == "I" and row["id"] > 100]
    without = [row["_lsn"] for row in events if row["_lsn"] > added and row["note"] is None]
    upto = at["history"][0]
    assert len(without) >= 2
    assert max(without) <= upto
    assert min(row["_lsn"] for row in events if row["note"] is not None) > upto
    assert len(last["history"]) == 2
    assert any(steps["history"] == last["history"][:1] for steps in seen)
    for shape in {"mirror", "scd2"} & {*shapes}:
        assert at[shape] == (at["history"][1], at["history"][1])

    check_altered(things, shapes)
    if file_format in ("iceberg", "postgresql"):
        place = f'"{origin.namespace}"' if origin.warehouse else f"lake.`{origin.namespace}`"
        query = documented("shop.sales_orders_schema_changes", f"{place}.{TABLE}", 1)
        rows = origin.warehouse.sql(query) if origin.warehouse else origin.spark.sql(query).collect()
        newest = {(shape, steps[-1][1]): steps[-1][2:] for shape, steps in by_event(things).items()}
        newest |= {(shape, 3): last[shape][-1][2:] for shape in last}
        assert {(row[1], row[2]): tuple(row[3:]) for row in rows} == newest
    # nothing is told twice
    total = len(origin.rows(TABLE))
    things.loads.variables.clear()
    for _ in range(2):
        things.load(", note", ", 'x'")
    assert len(origin.rows(TABLE)) == total
    assert sorted(json.loads(row["_changes"])[0]["kind"] for row in origin.rows(TABLE) if row["_shape"] is None) == [
        "ADD_COLUMN",
        "ALTER_TYPE",
    ]


def check_altered(things: Things, shapes: tuple[str, ...]) -> None:
    """Alter values, and follow what is told until they are filled."""
    last = things.steps()
    altered = things.ddl("ALTER TABLE lab.things ALTER COLUMN c char(9)")
    count = {shape: len(steps) for shape, steps in last.items()}
    for number in range(9):
        if number in (1, 3):
            with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Killed):
                kill_at(patch, NO_RECEIPT)
                things.load(", note", ", 'x'")
        things.load(", note", ", 'x'")
        told = {shape: [step[2] for step in steps[count[shape] :]] for shape, steps in by_event(things).items()}
        if "mirror" in shapes:
            (value,) = (row["c"] for row in things.origin.lake(NAME) if row["id"] == 1)
            if told["mirror"]:
                assert (told["mirror"][-1], value) in (("filling", PLAIN), ("filled", PADDED))
        if {tuple(steps[-1:]) for steps in told.values()} == {("filled",)}:
            break
    assert told == {shape: ["filling", "filled"] for shape in last}
    for steps in by_event(things).values():
        first, second = steps[-2:]
        assert (first[:3], second[:3]) == ((1, 2, "filling"), (2, 2, "filled"))
        assert (first[3:], second[3:5]) == ((None, None, None), (None, None))
        assert altered < second[5] <= things.position("history")


def by_event(things: Things) -> dict[str, list[tuple[Any, ...]]]:
    """The steps of each sink, those of the column that was added first."""
    return {shape: sorted(steps, key=lambda step: (-step[1], step[0])) for shape, steps in things.steps().items()}
