"""What differs between two schemas, beside a model that changes one at random."""

from __future__ import annotations

import dataclasses
import random

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.schema_diff import SchemaChange, differing, schema_diff
from airflow_provider_mssql_cdc.core.table import Column, TableSchema

ID = Column(1, 1, "id", "int", 4, 10, nullable=False)
NOTE = Column(2, 2, "note", "nvarchar", 40, collation="Latin1_General_CI_AS")


def schema(*columns: Column, key: tuple[str, ...] = ("id",)) -> TableSchema:
    return TableSchema(columns, key)


def said(then: TableSchema, now: TableSchema) -> list[str]:
    return [str(change) for change in schema_diff(KeptSchema.of(then), KeptSchema.of(now))]


@given(st.integers(0, 2**32))
def test_each_change_is_found_and_nothing_else(seed: int) -> None:
    rng = random.Random(seed)
    columns = {n: Column(n, n, f"c{n}", "int", 4, 10, nullable=rng.random() < 0.5) for n in range(1, 7)}
    then = schema(*columns.values(), key=("c1", "c2"))
    expected: set[tuple[str, int | None]] = set()
    key, names = ["c1", "c2"], iter("stuvwxyz")
    for number in list(columns):
        kind = rng.choice(["", "", "drop", "rename", "type", "nullability", "both"])
        column = columns[number]
        if kind == "drop" and column.name not in key:
            del columns[number]
            expected.add(("DROP_COLUMN", number))
        if kind in ("rename", "both"):
            name = next(names)
            key = [name if each == column.name else each for each in key]
            column = columns[number] = dataclasses.replace(column, name=name)
            expected.add(("RENAME_COLUMN", number))
        if kind in ("type", "both"):
            facts = rng.choice([{"type": "bigint"}, {"precision": 11}, {"collation": "x"}, {"computed": True}])
            column = columns[number] = dataclasses.replace(column, **facts)
            expected.add(("ALTER_TYPE", number))
        if kind == "nullability":
            columns[number] = dataclasses.replace(column, nullable=not column.nullable)
            expected.add(("ALTER_NULLABILITY", number))
    if rng.random() < 0.3:
        # the name of one that may have been dropped: it is another column all the same
        columns[9] = Column(9, 9, "c6" if 6 not in columns else "new", "int", 4, 10)
        expected.add(("ADD_COLUMN", 9))
    if rng.random() < 0.3:
        key = key[::-1]
        expected.add(("ALTER_PRIMARY_KEY", None))
    order = list(columns.values())
    rng.shuffle(order)
    found = schema_diff(KeptSchema.of(then), KeptSchema.of(schema(*order, key=tuple(key))))
    assert {(change.kind, change.column_id) for change in found} == expected
    assert len(found) == len(expected)


def test_they_are_said_one_by_one() -> None:
    then = schema(ID, NOTE)
    assert said(then, then) == []
    assert said(then, schema(ID)) == ["column note nvarchar(40,0,0) COLLATE Latin1_General_CI_AS was dropped"]
    assert said(schema(ID), schema(ID, dataclasses.replace(ID, column_id=3, name="n"))) == [
        "column n int(4,10,0) NOT NULL was added"
    ]
    again = dataclasses.replace(NOTE, column_id=7, ordinal=7, collation=None)
    assert said(then, schema(ID, again)) == [
        "column note nvarchar(40,0,0) COLLATE Latin1_General_CI_AS was dropped",
        "column note nvarchar(40,0,0) was added",
    ]
    other = dataclasses.replace(NOTE, name="remark", length=80, nullable=False)
    assert said(then, schema(ID, other, key=("id", "remark"))) == [
        "column note was renamed to remark",
        "column remark was nvarchar(40,0,0) COLLATE Latin1_General_CI_AS, "
        "and is nvarchar(80,0,0) COLLATE Latin1_General_CI_AS",
        "column remark was NULL, and is NOT NULL",
        "the key was (id), and is (id, remark)",
    ]
    # with a renamed key it is the same one
    renamed = schema(dataclasses.replace(ID, name="number"), NOTE, key=("number",))
    assert said(then, renamed) == ["column id was renamed to number"]


def test_an_error_says_what_differs_or_all_that_is_known() -> None:
    change = SchemaChange("ADD_COLUMN", 2, "", "int(4,10,0)", "v")
    assert differing(KeptSchema.of(schema(ID)), schema(ID, Column(2, 2, "v", "int", 4, 10))) == f"  {change}\n"
    assert differing(None, schema(ID)) == (
        "  then: not known: no schema of its hash is kept\n  now:  id int(4,10,0) NOT NULL KEY\n"
    )
