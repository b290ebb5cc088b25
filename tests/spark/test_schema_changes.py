"""The table of schema changes beside the targets: each statement that was run at the source, once, whatever happens."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.codec import from_json, to_json
from airflow_provider_mssql_cdc.core.spec import JobSpec
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.spark.job import run
from tests.support.spark.kill_points import ABOUT_TO_COMMIT, AFTER, NO_RECEIPT, Point
from tests.support.spark.loads import Loads
from tests.support.spark.origin import Origin
from tests.support.spark.stop import Killed, kill_at

pytestmark = [pytest.mark.xdist_group(__name__), pytest.mark.timeout(900)]

NAME, TABLE = "lab.things", "lab_things_schema_changes"
ADDED, DROPPED = "ADD_COLUMN", "DROP_COLUMN"


class Source:
    """The table, and all statements that were run on it since its first load.

    :ivar expected: of each transaction its statements, and what the run that saw them saw of columns
    """

    def __init__(self, things: Origin) -> None:
        self._things, self._ids = things, itertools.count(100)
        self.expected: list[tuple[list[str], list[tuple[str, str]]]] = []

    def alter(self, *transactions: list[str], sees: list[tuple[str, str]]) -> None:
        """Run transactions of statements between two looks.

        :param sees: kinds of changes, with the columns, between these looks
        """
        for statements in transactions:
            self._things.sql(f"BEGIN TRAN; {'; '.join(statements)}; COMMIT")
            self.expected.append((sorted(statements), sees))

    def write(self) -> None:
        """Commit a row, and capture all."""
        self._things.sql(f"INSERT INTO lab.things (id, a) VALUES ({next(self._ids)}, 1)")
        self._things.wait_captured()


def see(loads: Loads, source: Source) -> None:
    """Let a run without anything to load see the columns, so that the next one gives them their place."""
    loads.origin.wait_captured()
    assert loads.load() == (None, None)
    source.write()


def load(loads: Loads, source: Source, **given: Any) -> None:
    """Let a run see the columns, and another one give them their place."""
    see(loads, source)
    loads.load(**given)


def check(loads: Loads, source: Source) -> None:
    """Compare all rows with the statements, and with what the server says of them."""
    things = loads.origin
    rows = sorted(things.rows(TABLE), key=lambda row: (row["_lsn"], row["_number"]))
    found = []
    for _, of_one in itertools.groupby(rows, key=lambda row: row["_lsn"]):
        # the server knows no order within a transaction
        statements = [*of_one]
        assert [row["_number"] for row in statements] == [*range(1, len(statements) + 1)]
        (changes,) = {row["_changes"] for row in statements}
        found.append((sorted(row["_statement"] for row in statements), [*map(kind, json.loads(changes))]))
    assert found == source.expected
    history = things.sql("SELECT CONVERT(varchar(22), ddl_lsn, 1) AS lsn, ddl_time FROM cdc.ddl_history")
    assert sorted((row["_lsn"], row["_ddl_ts"]) for row in rows) == sorted((r["lsn"], r["ddl_time"]) for r in history)
    assert [row["_ddl_ts_utc"].replace(tzinfo=None) for row in rows] == [row["_ddl_ts"] for row in rows]
    assert {row["_found"] for row in rows} == {"both"}
    steps = list(dict.fromkeys((row["_schema_before"], row["_schema_after"]) for row in rows))
    assert [before for before, _ in steps[1:]] == [after for _, after in steps[:-1]]
    # the rows of the table itself
    captured = things.sql("SELECT id FROM lab.things")
    assert sorted(row["id"] for row in things.lake(NAME, "history")) == sorted(row["id"] for row in captured)


def kind(change: dict) -> tuple[str, str]:
    assert {*change} == {"kind", "column", "column_id", "then", "now"}
    return change["kind"], change["column"]


def documented(table: str, here: str, number: int = 0) -> str:
    """A query that the documentation shows.

    :param table: its table there
    :param here: the table of the test
    :param number: of the query, of those of this table
    """
    blocks = re.findall(r"```sql\n(.*?)```", Path("docs/summary.md").read_text(), re.DOTALL)
    return [block for block in blocks if f" {table}" in block][number].replace(table, here)


def killed_at(loads: Loads, point: Point) -> None:
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Killed):
        kill_at(patch, point)
        loads.load()
        raise AssertionError("it was not killed")


@pytest.fixture
def things(live: Origin) -> Origin:
    live.sql("CREATE SCHEMA lab")
    live.sql("CREATE TABLE lab.things (id int NOT NULL PRIMARY KEY, a int)")
    live.sql("INSERT INTO lab.things VALUES (1, 1), (2, 1)")
    live.enable(NAME)
    live.wait_captured()
    return live


@pytest.mark.parametrize(
    "file_format",
    ["iceberg", *(pytest.param(each, marks=pytest.mark.thorough) for each in ("parquet", "delta", "postgresql"))],
)
def test_each_statement_is_there_once(things, file_format, request):
    things.format = file_format
    if file_format == "postgresql":
        things.into(request.getfixturevalue("postgresql"))
    loads, source = Loads(things, ("history",), ("things",)), Source(things)
    loads.load_all()
    with pytest.raises(Exception, match=TABLE):
        assert things.rows(TABLE), TABLE

    # a run that is killed before its checkpoint is stored; the next one finds it again, with more
    source.alter(["ALTER TABLE lab.things ADD note varchar(20)"], sees=[(ADDED, "note")])
    load(loads, source, checkpoint=False)
    check(loads, source)
    loads.load()
    check(loads, source)

    commit = dataclasses.replace(ABOUT_TO_COMMIT[file_format], call=2)
    for number, point in enumerate((commit, dataclasses.replace(commit, when=AFTER), NO_RECEIPT)):
        source.alter(
            [f"ALTER TABLE lab.things ADD num{number} int", f"ALTER TABLE lab.things ADD gone{number} int"],
            [f"ALTER TABLE lab.things DROP COLUMN gone{number}"],
            sees=[(ADDED, f"num{number}")],
        )
        see(loads, source)
        killed_at(loads, point)
        loads.load()
        check(loads, source)

    # two runs that were planned at once
    source.alter(["ALTER TABLE lab.things DROP COLUMN note"], sees=[(DROPPED, "note")])
    see(loads, source)
    _, planned = loads.plan()
    loads.load()
    run(things.spark, from_json(JobSpec, to_json(planned)))
    check(loads, source)

    if file_format == "postgresql":
        query = documented("shop.sales_orders_schema_changes", f'"{things.namespace}".{TABLE}')
        found = things.warehouse.sql(query)
        sees = [change for _, sees in source.expected for change in sees]
        assert [row[2:4] for row in found] == [*dict.fromkeys(sees)]

    loads.variables.clear()
    source.write()
    loads.load()
    source.alter(["ALTER TABLE lab.things ADD last int"], sees=[(ADDED, "last")])
    load(loads, source)
    check(loads, source)
    assert loads.store.load(loads.identity("things")).unwritten == ()


@pytest.mark.parametrize(
    "file_format",
    [pytest.param(each, marks=pytest.mark.thorough) for each in ("parquet", "iceberg", "delta", "postgresql")],
)
def test_that_a_table_was_dropped_is_there_once(things, file_format, request):
    things.format = file_format
    if file_format == "postgresql":
        things.into(request.getfixturevalue("postgresql"))
    things.sql("CREATE TABLE lab.other (id int NOT NULL PRIMARY KEY)")
    things.enable("lab.other")
    loads, ids = Loads(things, ("history",), ("*",)), itertools.count(1)
    loads.before = (TableName("lab", "things"),)

    def write() -> None:
        things.sql(f"INSERT INTO lab.other VALUES ({next(ids)})")
        things.wait_captured()

    def drop() -> tuple[int, str]:
        (seen,) = things.sql("SELECT OBJECT_ID(N'lab.things') AS id")
        stored = loads.store.load(loads.identity("things"))
        things.sql("DROP TABLE lab.things")
        write()
        return seen["id"], stored.seen_schema.hash

    def rows() -> list[tuple]:
        found = sorted(things.rows(TABLE), key=lambda row: row["_seen_at"])
        said = [(row["_statement"], json.loads(row["_changes"])[0], row["_schema_before"]) for row in found]
        assert {(row["_number"], row["_found"], row["_ddl_ts"], row["_schema_after"]) for row in found} == {
            (0, "catalogue", None, "")
        }
        return [(text, change["kind"], change["then"], before) for text, change, before in said]

    write()
    loads.load_all()
    before = things.lake(NAME, "history")
    drops = [drop()]
    # killed before and after the commit, and before the checkpoint is stored
    commit = dataclasses.replace(ABOUT_TO_COMMIT[file_format], call=2)
    for point in (commit, dataclasses.replace(commit, when=AFTER), NO_RECEIPT):
        killed_at(loads, point)
        write()
    loads.load(checkpoint=False)
    for _ in range(2):
        write()
        loads.load()
        expected = [("the table was dropped", "TABLE_DROPPED", f"object_id {id_}", hash_) for id_, hash_ in drops]
        assert rows() == expected
        assert loads.store.load(loads.identity("things")).unwritten == ()
    assert things.lake(NAME, "history") == before

    # a table of the same name and columns is another one, whose target somebody has dropped
    things.sql("CREATE TABLE lab.things (id int NOT NULL PRIMARY KEY, a int)")
    things.enable(NAME)
    loads.variables.pop(loads.identity("things").variable)
    drop_targets(things)
    things.sql("INSERT INTO lab.things VALUES (7, 7)")
    write()
    loads.load()
    drops.append(drop())
    loads.load()
    expected = [("the table was dropped", "TABLE_DROPPED", f"object_id {id_}", hash_) for id_, hash_ in drops]
    assert rows() == expected


def drop_targets(things: Origin) -> None:
    """Drop the history of the table, as a person does who loads it anew."""
    match things.format:
        case "iceberg":
            things.spark.sql(f"DROP TABLE lake.`{things.namespace}`.lab_things_history")
        case "postgresql":
            things.warehouse.sql(f'DROP TABLE "{things.namespace}".lab_things_history')
        case _:
            shutil.rmtree(Path(str(things.work_dir)) / "lab_things_history")


def test_what_keeps_them_from_being_written_keeps_no_row_from_its_target(things):
    loads, source = Loads(things, ("mirror",), ("things",)), Source(things)
    loads.load_all()
    table = f"lake.`{things.namespace}`.{TABLE}"
    things.spark.sql(f"CREATE TABLE {table} (x int) USING iceberg")
    things.spark.sql(f"INSERT INTO {table} VALUES (1)")
    source.alter(["ALTER TABLE lab.things ADD note varchar(20)"], sees=[(ADDED, "note")])
    see(loads, source)
    for _ in range(2):
        source.write()
        _, receipt = loads.load()
        (told,) = receipt.tables[0].warnings
        assert told.startswith(f"its schema changes are not written into lake.{things.namespace}.{TABLE}, and the next")
        assert "no load has made it" in told
        assert len(loads.mirror("things")) == len(things.sql("SELECT id FROM lab.things"))
        assert len(loads.store.load(loads.identity("things")).unwritten) == 1

    things.spark.sql(f"DROP TABLE {table}")
    # with another change, which a login that may not read cdc.ddl_history sees in the catalogue alone
    things.sql("ALTER TABLE lab.things DROP COLUMN note; ALTER TABLE lab.things ALTER COLUMN a int NOT NULL")
    see(loads, source)
    (instance,) = things.sandbox.cdc(things.database).instances
    instance.ddl_history = ()
    _, receipt = loads.load()
    assert receipt.tables[0].warnings == ()
    type_ = "varchar(20,0,0) COLLATE SQL_Latin1_General_CP1_CI_AS"
    rows = sorted(things.rows(TABLE), key=lambda row: row["_lsn"])
    assert [(row["_number"], row["_found"], row["_statement"]) for row in rows] == [
        (1, "both", "ALTER TABLE lab.things ADD note varchar(20)"),
        (0, "catalogue", f"column a was NULL, and is NOT NULL; column note {type_} was dropped"),
    ]
    assert [row["_ddl_ts"] is None for row in rows] == [False, True]
    found = things.spark.sql(documented("lake.shop.sales_orders_schema_changes", table)).collect()
    first, second = (row["_lsn"] for row in rows)
    assert [(row["lsn"], *row[2:]) for row in found] == [
        (first, ADDED, "note", 3, None, type_),
        (second, "ALTER_NULLABILITY", "a", 2, "NULL", "NOT NULL"),
        (second, DROPPED, "note", 3, type_, None),
    ]
    assert loads.store.load(loads.identity("things")).unwritten == ()
