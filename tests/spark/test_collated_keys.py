"""Keys whose equality is the collation's: ``A`` is ``a`` is ``a`` with a blank behind it, each loaded as it is."""

import dataclasses
import typing

import pytest

from airflow_provider_mssql_cdc.sandbox.collations.names import COLLATIONS
from airflow_provider_mssql_cdc.sandbox.engine.cdc.switches import EqualKeys

pytestmark = pytest.mark.xdist_group(__name__)

SHAPES = ("mirror", "history", "scd2")
COLUMNS = list(zip(("varchar", "nvarchar", "varchar", "nvarchar", "varchar"), COLLATIONS, strict=True))
BEFORE = ["plain", "case", "blank", "width", "both", "gone", "Straße", "co-op"]
# key before, key after, and whether the value changes too
CHANGES = [("case", "CASE", True), ("blank", "blank  ", True), ("both", "BOTH ", False), ("co-op", "Co-Op", True)]


def quoted(text):
    return "N'" + text.replace("'", "''") + "'"


def change(origin, table, old, new, *, value):
    also = ", v = v + 1" if value else ""
    origin.sql(f"UPDATE dbo.{table} SET k = {quoted(new)}{also} WHERE k = {quoted(old)}")


def source(origin, table):
    return sorted((row["k"], row["v"]) for row in origin.sql(f"SELECT k, v FROM dbo.{table}"))


def played(rows):
    """What is left after the events of a history, one after the other."""
    left = {}
    for row in sorted(rows, key=lambda row: (row["_lsn"], row["_seq"] or 0)):
        if row["_op"] in ("B", "D"):
            assert left.pop(row["k"]) == row["v"]
        else:
            assert row["k"] not in left
            left[row["k"]] = row["v"]
    return sorted(left.items())


def check(origin, tables, shapes):
    for table in tables:
        expected = source(origin, table)
        assert sorted((row["k"], row["v"]) for row in origin.lake(f"dbo.{table}")) == expected, table
        assert played(origin.lake(f"dbo.{table}", "history")) == expected, table
        if "scd2" not in shapes:
            continue
        versions = [row for row in origin.lake(f"dbo.{table}", "scd2") if row["_to_lsn"] is None]
        assert sorted((row["k"], row["v"]) for row in versions) == expected, table


def load(origin, tables, at, shapes):
    specs = [origin.table(f"dbo.{table}", shapes=shapes, at=at.get(table)) for table in tables]
    receipt = origin.load(*specs)
    assert [table.error for table in receipt.tables] == [None] * len(tables)
    return {
        table.name.table: {sink.shape: (sink.read_through, sink.after.position) for sink in table.sinks}
        for table in receipt.tables
    }


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(way, marks=() if way == "as delete and insert" else pytest.mark.thorough)
        for way in typing.get_args(EqualKeys)
    ],
)
def test_a_key_that_changes_to_an_equal_one_is_one_row_in_every_way_of_capture(live, way):
    origin = live
    cdc = origin.sandbox.cdc(origin.database)
    cdc.switches = dataclasses.replace(cdc.switches, equal_keys_are_captured=way)
    # the way in which a mask says nothing is the one that tells the collations apart
    columns = COLUMNS if way == "unmasked" else COLUMNS[1:2]
    shapes = SHAPES[:2] if way == "unmasked" else SHAPES
    tables = [f"t{place}" for place in range(len(columns))]
    for table, (type_, collation) in zip(tables, columns, strict=True):
        origin.sql(f"CREATE TABLE dbo.{table} (k {type_}(20) COLLATE {collation} NOT NULL PRIMARY KEY, v int NOT NULL)")
        values = ", ".join(f"({quoted(key)}, {number})" for number, key in enumerate(BEFORE))
        origin.sql(f"INSERT INTO dbo.{table} VALUES {values}")
        origin.enable(f"dbo.{table}")
        # between low and the end of the copy: an event of its own in the first load
        change(origin, table, "plain", "Plain", value=True)
    origin.wait_captured()
    at = load(origin, tables, {}, shapes)
    check(origin, tables, shapes)

    for table, (type_, _) in zip(tables, columns, strict=True):
        for old, new, value in CHANGES:
            change(origin, table, old, new, value=value)
        if type_ == "nvarchar":
            change(origin, table, "width", "ｗｉｄｔｈ", value=True)
        change(origin, table, "CASE", "cAsE", value=False)
        origin.sql(f"UPDATE dbo.{table} SET v = v + 100")
        origin.sql(f"DELETE FROM dbo.{table} WHERE k = N'gone' INSERT INTO dbo.{table} VALUES (N'GONE', 70)")
    origin.wait_captured()
    load(origin, tables, at, shapes)
    check(origin, tables, shapes)
