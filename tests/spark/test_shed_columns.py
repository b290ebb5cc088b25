"""A column that the source drops, and that targets drop with it: at the DDL, beside kills, and the same name again."""

from __future__ import annotations

import contextlib

import pytest

from airflow_provider_mssql_cdc.core.entry_values import EVOLVE, KEEP
from airflow_provider_mssql_cdc.core.formats import COLUMN_MAPPING
from airflow_provider_mssql_cdc.core.selection import DROP
from airflow_provider_mssql_cdc.core.table_options import Choice
from airflow_provider_mssql_cdc.spark import dropping
from airflow_provider_mssql_cdc.spark.targets.delta import DeltaTable
from airflow_provider_mssql_cdc.spark.targets.file_table import LakeTable
from airflow_provider_mssql_cdc.spark.targets.iceberg import IcebergTable
from airflow_provider_mssql_cdc.spark.targets.parquet import ParquetTable
from airflow_provider_mssql_cdc.spark.targets.postgresql.table import PostgresqlTable
from tests.support.spark.kill_points import AFTER, BEFORE, NO_RECEIPT, SHAPES, STAGED, Point
from tests.support.spark.loads import Loads
from tests.support.spark.origin import Origin
from tests.support.spark.stop import Killed, kill_at

pytestmark = [pytest.mark.xdist_group("tests.spark.test_dropped_columns"), pytest.mark.timeout(900)]

NAME = "lab.things"
FORMATS = ["iceberg", *(pytest.param(n, marks=pytest.mark.thorough) for n in ("postgresql", "delta", "parquet"))]
COMMITS = {
    "iceberg": (LakeTable, "drop", IcebergTable, "_fast_forward"),
    "delta": (LakeTable, "drop", DeltaTable, "_transact"),
    "postgresql": (PostgresqlTable, "drop", PostgresqlTable, "_apply"),
    "parquet": (ParquetTable, "drop", ParquetTable, "_make"),
}


@pytest.fixture
def things(live: Origin) -> Origin:
    live.sql("CREATE SCHEMA lab")
    live.sql(
        "CREATE TABLE lab.things (id int NOT NULL CONSTRAINT pk_things PRIMARY KEY, a int, b varchar(20) NOT NULL,"
        " doc nvarchar(max))"
    )
    live.sql("INSERT INTO lab.things VALUES " + ", ".join(f"({n}, {n}, 'b{n}', N'd{n}')" for n in range(1, 7)))
    live.enable(NAME)
    live.wait_captured()
    return live


def loads_of(
    things: Origin, format_: str, request: pytest.FixtureRequest, shapes: tuple[str, ...] = (), **options
) -> Loads:
    things.format = format_
    if format_ == "postgresql":
        things.into(request.getfixturevalue("postgresql"))
    loads = Loads(things, shapes or SHAPES[format_], ("things",))
    loads.say(**{"on_schema_change": EVOLVE, "dropped_columns": DROP, **options})
    loads.load_all()
    return loads


def source(things: Origin, columns: str = "a, doc") -> dict[int, tuple]:
    return {row["id"]: tuple(row.values())[1:] for row in things.sql(f"SELECT id, {columns} FROM lab.things")}


def now_in(loads: Loads, *columns: str) -> dict[str, dict[int, tuple]]:
    """The rows that count now, by shape."""
    found = {"mirror": loads.origin.lake(NAME)} if "mirror" in loads.shapes else {}
    if "scd2" in loads.shapes:
        found["scd2"] = [row for row in loads.versions("things") if row["_to_lsn"] is None]
    events = sorted(loads.origin.lake(NAME, "history"), key=lambda row: (row["_lsn"], row["_seq"] or 2**62))
    newest = {row["id"]: row for row in events if row["_op"] != "B"}
    found["history"] = [row for row in newest.values() if row["_op"] != "D"]
    for rows in found.values():
        assert len({row["id"] for row in rows}) == len(rows)
    return {shape: {row["id"]: tuple(row.get(c) for c in columns) for row in rows} for shape, rows in found.items()}


def columns_of(loads: Loads) -> dict[str, set[str]]:
    shapes = [shape for shape in loads.shapes if shape != "transactions"]
    return {shape: {*loads.origin.lake(NAME, shape)[0]} for shape in shapes}


def changes(things: Origin) -> set[tuple]:
    """What was captured, without the column, as a history has it."""
    ops = {1: "D", 2: "I", 3: "B", 4: "U"}
    rows = things.sql("SELECT CONVERT(varchar(22), [__$start_lsn], 1) AS lsn, * FROM cdc.lab_things_CT")
    return {(row["lsn"], ops[row["__$operation"]], row["id"], row["a"]) for row in rows}


@pytest.mark.parametrize("format_", FORMATS)
def test_it_is_dropped_at_the_ddl_and_one_of_its_name_is_another_one(things, format_, request, monkeypatch):
    loads = loads_of(things, format_, request)
    # before, in one transaction with it, and behind it, all captured before a run looks
    things.sql("UPDATE lab.things SET b = 'x1', a = 10 WHERE id = 1; DELETE FROM lab.things WHERE id = 3")
    things.sql("BEGIN TRAN; UPDATE lab.things SET b = 'x5' WHERE id = 5; ALTER TABLE lab.things DROP COLUMN b; COMMIT")
    things.sql("UPDATE lab.things SET a = 20 WHERE id = 2; INSERT INTO lab.things (id, a, doc) VALUES (7, 7, N'd7')")
    things.sql("DELETE FROM lab.things WHERE id = 6")
    things.wait_captured()
    (ddl,) = things.sql("SELECT CONVERT(varchar(22), ddl_lsn, 1) AS lsn FROM cdc.ddl_history")
    then = {1: (10, "x1", "d1"), 2: (2, "b2", "d2"), 4: (4, "b4", "d4"), 5: (5, "x5", "d5"), 6: (6, "b6", "d6")}
    told = loads.load_all()
    assert "column b was dropped by the source table: targets drop it once they are loaded up to there" in told
    # the window ends with the DDL: all of before is loaded with the column
    assert loads.position("things") == ddl["lsn"]
    assert now_in(loads, "a", "b", "doc") == dict.fromkeys(now_in(loads), then)
    events = {(row["_op"], row["id"], row["b"]) for row in things.lake(NAME, "history") if row["_op"] != "R"}
    assert events == {("B", 1, "b1"), ("U", 1, "x1"), ("D", 3, "b3"), ("B", 5, "b5"), ("U", 5, "x5")}

    if format_ == "iceberg":
        newest = f"SELECT snapshot_id FROM {things.sql_name(NAME, 'mirror')}.refs WHERE name = 'main'"
        snapshot = things.spark.newSession().sql(newest).collect()[0][0]

    # killed anywhere, it goes on: who reads sees all of before, or what came since without the column
    dropper, drop, committer, commit = COMMITS[format_]
    points = [Point(committer, commit, BEFORE, call=2)]
    if format_ != "iceberg":
        points += [Point(dropping, "_commit", AFTER)]
    elif request.config.getoption("--thorough"):
        points += [Point(dropper, drop, AFTER), Point(committer, commit, AFTER)]
        points += [Point(dropping, "_commit", AFTER, call=2), STAGED, NO_RECEIPT]
    now = source(things)
    before = {id_: (a, doc) for id_, (a, _, doc) in then.items()}
    for point in points:
        with monkeypatch.context() as patch, contextlib.suppress(Killed):
            kill_at(patch, point)
            loads.load(checkpoint=False)
        has = columns_of(loads)
        for shape, rows in now_in(loads, "a", "doc").items():
            assert rows in (before, now), (point, shape)
            assert rows == before or "b" not in has[shape], (point, shape)
            assert "b" not in has[shape] or now_in(loads, "b")[shape] == {id_: (b,) for id_, (_, b, _) in then.items()}
    loads.load_all()
    assert loads.load_all() == []
    assert [shape for shape, has in columns_of(loads).items() if "b" in has] == []
    assert now_in(loads, "a", "doc") == dict.fromkeys(now_in(loads), now)
    history = [row for row in things.lake(NAME, "history") if row["_op"] != "R"]
    assert {(row["_lsn"], row["_op"], row["id"], row["a"]) for row in history} == changes(things)
    assert len(history) == len(changes(things))
    if "scd2" in loads.shapes:
        closed = sorted((row["id"], row["a"]) for row in loads.versions("things") if row["_to_lsn"] is not None)
        assert closed == [(1, 1), (2, 2), (3, 3), (5, 5), (6, 6)]
    if format_ == "iceberg":
        # older snapshots keep it
        rows = things.spark.read.option("versionAsOf", snapshot).table(things.sql_name(NAME, "mirror")).collect()
        assert {row["id"]: (row["a"], row["b"], row["doc"]) for row in rows} == then
    steps = [row for row in things.rows("lab_things_schema_changes") if row["_shape"] is not None]
    shapes = [shape for shape in loads.shapes if shape != "transactions"]
    assert sorted((row["_shape"], row["_column_id"], row["_state"]) for row in steps) == sorted(
        (shape, 3, "dropped") for shape in shapes
    )


@pytest.mark.thorough
def test_what_a_killed_run_has_dropped_stays_so_whatever_is_asked_for_then(things, request, monkeypatch):
    loads = loads_of(things, "iceberg", request, shapes=("mirror", "history"))
    things.sql("UPDATE lab.things SET b = 'x1' WHERE id = 1; ALTER TABLE lab.things DROP COLUMN b")
    things.sql("UPDATE lab.things SET a = 20 WHERE id = 2")
    things.wait_captured()
    loads.load_all()
    with monkeypatch.context() as patch, contextlib.suppress(Killed):
        kill_at(patch, Point(LakeTable, "drop", AFTER))
        loads.load(checkpoint=False)
    assert ["b" in has for has in columns_of(loads).values()].count(False) == 1
    loads.say(dropped_columns=KEEP)
    loads.load_all()
    assert now_in(loads, "a", "doc") == dict.fromkeys(("mirror", "history"), source(things))
    # the other one keeps it
    assert ["b" in has for has in columns_of(loads).values()].count(False) == 1
    things.sql("DELETE FROM lab.things WHERE id = 3; INSERT INTO lab.things (id, a, doc) VALUES (8, 8, N'd8')")
    things.wait_captured()
    loads.load_all()
    assert now_in(loads, "a", "doc") == dict.fromkeys(("mirror", "history"), source(things))


@pytest.mark.thorough
def test_a_table_that_gets_another_key_too_is_loaded_anew_by_it_first(things, request):
    loads = loads_of(things, "iceberg", request, shapes=("mirror", "history"))
    things.sql(
        "EXEC sys.sp_cdc_disable_table @source_schema = N'lab', @source_name = N'things', @capture_instance = N'all'"
    )
    # of this a copy alone tells
    things.sql("UPDATE lab.things SET doc = N'off' WHERE id = 4; DELETE FROM lab.things WHERE id = 5")
    things.sql("ALTER TABLE lab.things DROP CONSTRAINT pk_things; ALTER TABLE lab.things DROP COLUMN b")
    things.sql("ALTER TABLE lab.things ALTER COLUMN a int NOT NULL")
    things.sql("ALTER TABLE lab.things ADD CONSTRAINT pk_things PRIMARY KEY (a)")
    things.enable(NAME)
    things.sql("UPDATE lab.things SET id = 7 WHERE a = 1; INSERT INTO lab.things VALUES (2, 20, N'd20')")
    things.wait_captured()
    for _ in range(3):
        loads.load_all()
        things.sql("UPDATE lab.things SET doc = doc + N'+' WHERE a = 6")
        things.wait_captured()
    loads.load_all()
    rows = sorted((row["a"], row["id"], row["doc"]) for row in things.lake(NAME))
    assert rows == sorted((row["a"], row["id"], row["doc"]) for row in things.sql("SELECT * FROM lab.things"))
    assert len(rows) == 6
    assert [shape for shape, has in columns_of(loads).items() if "b" in has] == []


@pytest.mark.thorough
@pytest.mark.parametrize("format_", ["iceberg", "delta", "postgresql", "parquet"])
def test_one_of_its_name_is_a_column_like_any_other_that_was_added(things, format_, request):
    loads = loads_of(things, format_, request, shapes=("mirror", "history") if format_ != "parquet" else ("history",))
    things.sql("ALTER TABLE lab.things DROP COLUMN b; ALTER TABLE lab.things ADD b int")
    things.sql("UPDATE lab.things SET b = id * 100 WHERE id < 5")
    things.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'lab', @source_name = N'things', @role_name = NULL,"
        " @capture_instance = N'things_2'"
    )
    things.sql("UPDATE lab.things SET b = 1 WHERE id = 1")
    things.wait_captured()
    for _ in range(5):
        loads.load_all()
    assert loads.load_all() == []
    for shape, rows in now_in(loads, "a", "b", "doc").items():
        assert rows == source(things, "a, b, doc"), shape
    has = columns_of(loads)
    assert {name for names in has.values() for name in names if name.startswith("b")} == {"b"}


@pytest.mark.thorough
@pytest.mark.parametrize("format_", ["delta", "postgresql"])
def test_a_target_that_cannot_drop_it_says_so_and_is_as_it_was(things, format_, request):
    options = {"table_properties": {"delta.columnMapping.mode": "none"}} if format_ == "delta" else {}
    loads = loads_of(things, format_, request, shapes=("mirror",), choice=Choice(rename={"b": "x"}), **options)
    things.sql("UPDATE lab.things SET b = 'x1' WHERE id = 1; ALTER TABLE lab.things DROP COLUMN b")
    things.sql("DELETE FROM lab.things WHERE id = 2")
    things.wait_captured()
    loads.load_all()
    before = [(row["id"], row["a"], row["x"]) for row in sorted(things.lake(NAME), key=lambda row: row["id"])]
    assert before == [(n, n, "x1" if n == 1 else f"b{n}") for n in range(1, 7)]
    table = things.sql_name(NAME, "mirror")
    if format_ == "postgresql":
        table = f'"{things.namespace}".lab_things'
        things.warehouse.sql(f'CREATE VIEW "{things.namespace}".seen AS SELECT x FROM {table}')
    _, receipt = loads.load(failing=("things",))
    message = receipt.tables[0].error.message
    assert ("view" in message and "seen" in message) if format_ == "postgresql" else COLUMN_MAPPING in message
    assert [(row["id"], row["a"], row["x"]) for row in sorted(things.lake(NAME), key=lambda row: row["id"])] == before

    if format_ == "postgresql":
        things.warehouse.sql(f'DROP VIEW "{things.namespace}".seen')
    else:
        said = f"'{COLUMN_MAPPING}' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'"
        things.spark.newSession().sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({said})")
    loads.load_all()
    # the entry may still name it
    things.sql("UPDATE lab.things SET a = 10 WHERE id = 1")
    things.wait_captured()
    assert loads.load_all() == ["the entry names column b, which was dropped: it says nothing any more"]
    assert now_in_mirror(things) == source(things)
    assert {*things.lake(NAME)[0]} == {"id", "a", "doc"}


def now_in_mirror(things: Origin) -> dict[int, tuple]:
    return {row["id"]: (row["a"], row["doc"]) for row in things.lake(NAME)}
