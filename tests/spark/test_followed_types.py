"""Columns of a table get wider types in mid-stream: the targets follow, and hold what the source has."""

from __future__ import annotations

import dataclasses
from decimal import Decimal

import pytest

from airflow_provider_mssql_cdc.core.entry_values import EVOLVE
from airflow_provider_mssql_cdc.core.exceptions import SchemaChangedError
from airflow_provider_mssql_cdc.spark.sink_columns import SinkColumns
from tests.support.spark.loads import Loads
from tests.support.spark.origin import Origin
from tests.support.spark.stop import Killed

pytestmark = [pytest.mark.xdist_group("tests.spark.test_filled_columns"), pytest.mark.timeout(900)]

NAME = "lab.things"
COLUMNS = ("id", "n", "d", "f", "s", "b", "more")
SHAPES = ("mirror", "history", "scd2", "transactions")


@pytest.fixture
def things(live: Origin) -> Origin:
    live.sql("CREATE SCHEMA lab")
    live.sql(
        "CREATE TABLE lab.things (id int NOT NULL PRIMARY KEY, n smallint, d decimal(4,2), f real, s varchar(3),"
        " b varbinary(2))"
    )
    live.sql(
        "INSERT INTO lab.things VALUES " + ", ".join(f"({n}, {n}, {n}.25, {n}.5, 's{n}', 0x0{n})" for n in (1, 2, 3))
    )
    live.enable(NAME)
    live.wait_captured()
    return live


def loads_of(things: Origin, shapes: tuple[str, ...]) -> Loads:
    """Loads that follow what changes."""
    loads = Loads(things, shapes, ("things",))
    properties = {"delta.enableTypeWidening": "true"} if things.format == "delta" else {}
    loads.say(on_schema_change=EVOLVE, table_properties=properties)
    return loads


def values(row: dict, names: tuple[str, ...] = COLUMNS[:-1]) -> tuple:
    return tuple(bytes(row[name]) if isinstance(row[name], bytearray) else row[name] for name in names)


def check(loads: Loads, events: list[tuple[str, tuple]], names: tuple[str, ...] = COLUMNS[:-1]) -> None:
    """Compare the targets with the source, and the history with these events beside those of before."""
    source = sorted(values(row, names) for row in loads.origin.sql(f"SELECT {', '.join(names)} FROM lab.things"))
    if "mirror" in loads.shapes:
        assert sorted(values(row, names) for row in loads.origin.lake(NAME)) == source
    if "scd2" in loads.shapes:
        versions = loads.versions("things")
        assert sorted(values(row, names) for row in versions if row["_to_lsn"] is None) == source
        closed = [values(row) for row in versions if row["_to_lsn"] is not None]
        assert sorted(closed) == sorted(image for op, image in events if op in ("B", "D"))
    rows = [row for row in loads.origin.lake(NAME, "history") if row["_op"] != "R"]
    found = [(row["_op"], values(row)) for row in sorted(rows, key=lambda row: (row["_lsn"], row["_seq"], row["_op"]))]
    assert found == events


@pytest.mark.parametrize(
    ("file_format", "shapes"),
    [
        ("iceberg", SHAPES),
        pytest.param("postgresql", ("mirror", "history", "transactions"), marks=pytest.mark.thorough),
        pytest.param("delta", SHAPES, marks=pytest.mark.thorough),
        pytest.param("parquet", ("history",), marks=pytest.mark.thorough),
    ],
)
def test_targets_have_each_value_before_and_after(things, file_format, shapes, request, monkeypatch):
    things.format = file_format
    if file_format == "postgresql":
        things.into(request.getfixturevalue("postgresql"))
    loads = loads_of(things, shapes)
    loads.load_all()
    one = (1, 1, Decimal("1.25"), 1.5, "s1", b"\x01")
    # an event of before, one of the statements' own transaction, and one behind them
    things.sql("UPDATE lab.things SET n = 7, d = 99.99 WHERE id = 1")
    things.sql(
        "BEGIN TRAN; UPDATE lab.things SET f = 0.1 WHERE id = 1; ALTER TABLE lab.things ALTER COLUMN n bigint;"
        " ALTER TABLE lab.things ALTER COLUMN d decimal(12,2); ALTER TABLE lab.things ALTER COLUMN s varchar(40);"
        " UPDATE lab.things SET n = 5000000000, d = 1234567.89, s = REPLICATE('x', 40) WHERE id = 2; COMMIT"
    )
    things.sql("ALTER TABLE lab.things ALTER COLUMN f float; ALTER TABLE lab.things ALTER COLUMN b varbinary(4)")
    things.sql("UPDATE lab.things SET f = 0.1, b = 0x01020304 WHERE id = 2; DELETE FROM lab.things WHERE id = 3")
    things.wait_captured()
    told = [f"column {name} was " for name in COLUMNS[1:-1]]
    with monkeypatch.context() as patch:
        follow = SinkColumns._follow

        def killed(*given: object) -> None:
            follow(*given)
            raise Killed

        patch.setattr(SinkColumns, "_follow", killed)
        with pytest.raises(Killed):
            loads.load()
    warned = loads.load_all()
    assert [text[: len(each)] for text, each in zip(warned, told, strict=True)] == told
    assert warned[0].endswith(f"was smallint(2,5,0), and is bigint(8,19,0): {', '.join(shapes)} follow")
    seven = (1, 7, Decimal("99.99"), 1.5, "s1", b"\x01")
    tenth = (*seven[:3], SINGLE_TENTH, *seven[4:])
    two = (2, 2, Decimal("2.25"), 2.5, "s2", b"\x02")
    great = (2, 5_000_000_000, Decimal("1234567.89"), 2.5, "x" * 40, b"\x02")
    long = (*great[:3], 0.1, great[4], b"\x01\x02\x03\x04")
    three = (3, 3, Decimal("3.25"), 3.5, "s3", b"\x03")
    events = [
        *(("B", one), ("U", seven), ("B", seven), ("U", tenth), ("B", two), ("U", great)),
        *(("B", great), ("U", long), ("D", three)),
    ]
    check(loads, events)
    assert loads.load_all() == []

    # what changes values is refused, and nothing of it is loaded
    things.sql("ALTER TABLE lab.things ALTER COLUMN d decimal(12,1); UPDATE lab.things SET n = 1 WHERE id = 1")
    things.wait_captured()
    (error,) = loads.look().failures.values()
    assert isinstance(error, SchemaChangedError)
    assert "column d was decimal(9,12,2), and is decimal(9,12,1)" in error.message


SINGLE_TENTH = 0.10000000149011612
"""What float(24) makes of 0.1."""


@pytest.mark.thorough
def test_a_column_that_is_filled_meanwhile_and_a_run_that_ends_below_the_statement(things):
    """Each sink goes on with its own columns in their types of now."""
    loads = loads_of(things, ("mirror", "history", "scd2"))
    loads.load_all()
    things.sql("ALTER TABLE lab.things ADD more int NOT NULL DEFAULT 5")
    things.sql("UPDATE lab.things SET n = 4 WHERE id = 1")
    things.sql("UPDATE lab.things SET n = 5 WHERE id = 1")
    things.sql("ALTER TABLE lab.things ALTER COLUMN n bigint; UPDATE lab.things SET n = 5000000000 WHERE id = 1")
    things.wait_captured()
    # the change table has the type already, and the run ends before it came: killed before its checkpoint is written
    before = loads.store.load(loads.identity("things"))
    loads.load(max_transactions=1)
    loads.store.overwrite(before)
    things.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'lab', @source_name = N'things', @role_name = NULL,"
        " @capture_instance = N'things_2'"
    )
    things.sql("UPDATE lab.things SET more = 6, d = 9 WHERE id = 2")
    things.wait_captured()
    loads.load()
    things.sql("ALTER TABLE lab.things ALTER COLUMN s varchar(40); UPDATE lab.things SET s = REPLICATE('y', 40)")
    things.wait_captured()
    for _ in range(4):
        loads.load()
    source = sorted(values(row, COLUMNS) for row in things.sql("SELECT * FROM lab.things"))
    assert sorted(values(row, COLUMNS) for row in things.lake(NAME)) == source
    versions = [row for row in loads.versions("things") if row["_to_lsn"] is None]
    assert sorted(values(row, COLUMNS) for row in versions) == source
    found = {
        row["id"]: row for row in sorted(things.lake(NAME, "history"), key=lambda row: (row["_lsn"], row["_seq"] or 0))
    }
    assert sorted(values(row, COLUMNS) for row in found.values()) == source
    assert dataclasses.asdict(loads.store.load(loads.identity("things")))["schema_changes"] == ()
