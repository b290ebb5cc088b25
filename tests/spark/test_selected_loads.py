"""Whole loads of what was chosen of a table, and what the source is asked for them."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest
from hypothesis import given as drawn_from
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.choice import choose
from airflow_provider_mssql_cdc.core.columns import map_columns
from airflow_provider_mssql_cdc.core.conditions import (
    EQUALITIES,
    FLOATS,
    NULLS,
    OPERATORS,
    TEXTS,
    Condition,
    pushed,
)
from airflow_provider_mssql_cdc.core.selection import salt_check
from airflow_provider_mssql_cdc.core.table import Column, TableSchema
from airflow_provider_mssql_cdc.core.table_options import Choice, read_entries
from airflow_provider_mssql_cdc.spark.jdbc import Credentials, Jdbc
from airflow_provider_mssql_cdc.spark.read_changes import read_changes
from airflow_provider_mssql_cdc.spark.selecting import fulfils
from tests.support.logins import SALT, SPARK_PASSWORD, SPARK_USER
from tests.support.spark import judged
from tests.support.spark.drawn import few, seeds
from tests.support.spark.origin import Origin, positions

pytestmark = pytest.mark.xdist_group(__name__)

SHAPES = ("mirror", "history", "scd2", "transactions")
PAGE = Path(__file__).parents[2] / "docs" / "choosing-columns.md"


def example() -> Choice:
    """What the documentation chooses."""
    section = PAGE.read_text().partition("```python\n")[2]
    names: dict = {}
    exec(compile(section.partition("```")[0], str(PAGE), "exec"), names)
    _, people = read_entries(names["shop"]["tables"], salted="salt_conn_id" in names["shop"])
    return Choice(**people.said)


CHOICE = example()


def hashed(value) -> str | None:
    return None if value is None else hashlib.sha256((SALT + str(value)).encode()).hexdigest()


@pytest.fixture
def people(live: Origin) -> Origin:
    live.sql(
        "CREATE TABLE dbo.people (id int NOT NULL PRIMARY KEY, email nvarchar(40), status nvarchar(10), amount"
        " decimal(9,2), ssn varchar(11), note nvarchar(max))"
    )
    live.sql(
        "INSERT INTO dbo.people VALUES (1, N'a@x', N'open', 1, '1-é', N'n'), (2, N'b@x', N'draft', 2, '2', N'n'),"
        " (3, N'c@x', N'Draft', 3, NULL, NULL), (4, N'd@x', N'open', 0, '4', NULL), (5, N'e@x', NULL, 5, '5', NULL),"
        " (6, N'f@x', N'open', 6, '6', NULL), (7, N'g@x', N'open', 7, '7', NULL), (8, N'h@x', N'open', 8, '8', NULL)"
    )
    live.enable("dbo.people")
    live.sql("UPDATE dbo.people SET note = N'early' WHERE id = 1")
    live.wait_captured()
    return live


def table(origin: Origin, shapes=SHAPES, at=None, choice=CHOICE, salt=SALT, key=None):
    spec = origin.table("dbo.people", shapes, at=at, key=key)
    selection = choose(spec.name, spec.schema, choice, check=salt_check(salt))
    return dataclasses.replace(spec, selection=selection)


def view(origin: Origin) -> list[tuple]:
    """What the source has of it now, judged in Python: case counts."""
    rows = origin.sql("SELECT id, status, amount, ssn FROM dbo.people")
    return sorted(
        (hashed(row["id"]), "redacted", row["amount"], hashed(row["ssn"]))
        for row in rows
        if row["status"] not in (None, "draft") and row["amount"] > 0
    )


def held(rows) -> list[tuple]:
    return sorted((row["id"], row["mail"], row["amount"], row["ssn"]) for row in rows)


def current(origin: Origin) -> list[tuple]:
    return held(row for row in origin.lake("dbo.people", "scd2") if row["_to_lsn"] is None)


def test_columns_that_are_dropped_are_judged_and_not_loaded(people: Origin) -> None:
    masks = dict.fromkeys(("email", "status", "note"), "drop")
    choice = dataclasses.replace(CHOICE, columns=(), rename={}, mask=masks)
    first = people.load(table(people, choice=choice))
    people.sql(
        "BEGIN TRAN; UPDATE dbo.people SET status = N'draft' WHERE id = 1; UPDATE dbo.people SET status = N'open',"
        " note = N'x' WHERE id = 2; UPDATE dbo.people SET email = N'new' WHERE id = 4; COMMIT"
    )
    people.wait_captured()
    second = people.load(table(people, at=positions(first), choice=choice))

    assert [receipt.tables[0].error for receipt in (first, second)] == [None, None]
    rows = people.sql("SELECT id, status, amount, ssn FROM dbo.people")
    kept = [row for row in rows if row["status"] not in (None, "draft") and row["amount"] > 0]
    expected = sorted((row["id"], row["amount"], row["ssn"]) for row in kept)
    mirror = people.lake("dbo.people")
    assert sorted((row["id"], row["amount"], row["ssn"]) for row in mirror) == expected
    held_columns = [set(people.lake("dbo.people", shape)[0]) for shape in ("mirror", "history", "scd2")]
    assert all({"id", "amount", "ssn"} <= columns and columns.isdisjoint(masks) for columns in held_columns)


def test_loads_hold_what_was_chosen_and_refuse_another_choice(people: Origin, monkeypatch) -> None:
    asked: list[str] = []
    frame = Jdbc.frame
    monkeypatch.setattr(Jdbc, "frame", lambda self, query, schema: asked.append(query) or frame(self, query, schema))

    first = people.load(table(people))

    (loaded,) = first.tables
    assert loaded.error is None
    assert loaded.counts["copied"] == 5
    assert held(people.lake("dbo.people")) == view(people) == current(people)
    assert {row["_op"] for row in people.lake("dbo.people", "history")} <= {"R", "U", "B"}
    copies = [query for query in asked if "FROM (SELECT * FROM [dbo].[people]" in query]
    assert copies
    # where reads lock, a hint names the index
    filtered = re.compile(r"FROM \[dbo\]\.\[people\]( WITH \(INDEX\(\S+\)\))? WHERE \[amount\] > 0\.00\) r")
    assert all(filtered.search(query) for query in copies)
    assert [query for query in asked if "[note]" in query or "[email]" in query] == []

    at = positions(first)
    low = str(people.max_lsn())
    for batch in (
        "UPDATE dbo.people SET status = N'open' WHERE id = 2",
        "UPDATE dbo.people SET status = N'draft', ssn = '111' WHERE id = 1",
        "UPDATE dbo.people SET id = 30, amount = 33 WHERE id = 3",
        "UPDATE dbo.people SET amount = 44, id = 40 WHERE id = 4; UPDATE dbo.people SET id = 50 WHERE id = 5",
        "DELETE FROM dbo.people WHERE id = 6; UPDATE dbo.people SET note = N'nobody asked' WHERE id = 7",
    ):
        people.sql(f"BEGIN TRAN; {batch}; COMMIT")
    people.wait_captured()
    received: list[str] = []
    asked.clear()
    with people.sandbox.faults.delay(lambda text: received.append(text) is not None, seconds=0):
        second = people.load(table(people, at=at), slice_rows=7)

    assert second.tables[0].error is None
    # 13 rows over two connections, for all shapes together; Spark asks for the columns of each query as well
    read = [text for text in received if "[__$update_mask] AS update_mask" in text and "1=0" not in text]
    assert len(read) == len(set(read)) == 2
    assert held(people.lake("dbo.people")) == view(people) == current(people)
    # an update of a key is captured as delete and insert
    expected = [
        ("D", 1, 1), ("D", 3, 3), ("D", 6, 6),
        ("I", 2, 2), ("I", 30, 33), ("I", 40, 44), ("B", 7, 7), ("U", 7, 7),
    ]  # fmt: skip
    events = [row for row in people.lake("dbo.people", "history") if row["_lsn"] > low]
    assert sorted((e["_op"], e["id"], e["amount"]) for e in events) == sorted((o, hashed(i), a) for o, i, a in expected)
    assert {tuple(e["_changed"]) for e in events if e["_op"] in "DI"} == {("id", "mail", "amount", "ssn")}
    assert {tuple(e["_changed"]) for e in events if e["_op"] in "BU"} == {()}
    transactions = sorted(people.lake("dbo.people", "transactions"), key=lambda row: row["_lsn"])
    found = [(row["inserted"], row["updated"], row["deleted"]) for row in transactions if row["_lsn"] > low]
    assert found == [(1, 0, 0), (0, 0, 1), (1, 0, 1), (1, 0, 0), (0, 1, 1)]
    images = [query for query in asked if "[__$update_mask] AS update_mask" in query]
    assert all("[status]" in query and "[note]" not in query and "[email]" not in query for query in images)
    # all but the delete of a row without amount
    sent = Counter(row["operation"] for query in images for row in people.sql(query))
    assert sent == {1: 3, 2: 3, 3: 3, 4: 3}

    at = positions(second)
    other = dataclasses.replace(CHOICE, where=(("amount", ">", 0),))
    people.sql("UPDATE dbo.people SET amount = 9 WHERE id = 8")
    people.wait_captured()
    refused = [
        people.load(given).tables[0].error
        for given in (
            table(people, ("mirror",), at, other),
            table(people, ("mirror",), at, Choice()),
            table(people, ("mirror",), at, salt="another salt, as long as it"),
        )
    ]
    assert [error.kind for error in refused] == ["SelectionChangedError", "SelectionChangedError", "SelectionError"]
    assert "no longer: rows with status <> 'draft'." in refused[0].message
    assert "new: columns" not in refused[1].message
    assert "spark.mssql_cdc.salt" in refused[2].message
    assert held(people.lake("dbo.people")) != view(people)

    people.sql("DELETE FROM dbo.people WHERE id = 7; UPDATE dbo.people SET status = N'draft' WHERE id = 2")
    people.wait_captured()
    mark = people.max_lsn()
    people.sql(f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_people', {mark}, 1000")
    people.sql("UPDATE dbo.people SET status = N'open' WHERE id = 1")
    people.wait_captured()
    again = table(people, ("mirror", "history", "scd2"))
    sinks = tuple(dataclasses.replace(sink, lost_after=at[sink.shape][0]) for sink in again.sinks)
    third = people.load(dataclasses.replace(again, sinks=sinks))

    assert third.tables[0].error is None
    assert held(people.lake("dbo.people")) == view(people) == current(people)


@pytest.mark.parametrize(
    ("format_", "shapes", "key"),
    [
        pytest.param("delta", ("mirror", "history", "scd2"), None, marks=pytest.mark.thorough),
        ("parquet", ("history",), None),
        ("postgresql", ("mirror", "history"), None),
        ("iceberg", ("mirror", "history"), ["ssn"]),
    ],
)
def test_every_target_holds_what_was_chosen(people: Origin, format_, shapes, key, request) -> None:
    people.format = format_
    if format_ == "postgresql":
        people.into(request.getfixturevalue("postgresql"))
    # no two rows have the same, not even none, but nothing says so to the server
    people.sql("UPDATE dbo.people SET ssn = '33' WHERE id = 3")
    people.wait_captured()
    first = people.load(table(people, shapes, key=key))
    (loaded,) = first.tables
    assert loaded.error is None
    state = {row["id"]: row for row in people.lake("dbo.people", "history")}
    low = str(people.max_lsn())
    for batch in (
        "UPDATE dbo.people SET status = N'open' WHERE id = 2; UPDATE dbo.people SET status = N'draft' WHERE id = 1",
        "UPDATE dbo.people SET id = 30, amount = 33 WHERE id = 3; DELETE FROM dbo.people WHERE id = 6",
        "UPDATE dbo.people SET ssn = '77', amount = 70 WHERE id = 7; UPDATE dbo.people SET ssn = '7' WHERE id = 8",
        "INSERT INTO dbo.people VALUES (9, N'i@x', N'open', 9, '99', N'n'), (10, N'j@x', N'draft', 9, '100', N'n')",
    ):
        people.sql(f"BEGIN TRAN; {batch}; COMMIT")
    people.wait_captured()

    second = people.load(table(people, shapes, positions(first), key=key))

    assert second.tables[0].error is None
    expected = view(people)
    assert len(expected) == 5
    for row in sorted(people.lake("dbo.people", "history"), key=lambda row: (row["_lsn"], row["_seq"] or 0)):
        if row["_lsn"] > low and row["_op"] in "BD":
            assert state.pop(row["id"])["amount"] == row["amount"]
        elif row["_lsn"] > low:
            state[row["id"]] = row
    assert held(state.values()) == expected
    if "mirror" in shapes:
        assert held(people.lake("dbo.people")) == expected
    if "scd2" in shapes:
        assert current(people) == expected


def test_changes_are_read_as_chosen(people: Origin) -> None:
    low = people.max_lsn()
    people.sql("UPDATE dbo.people SET status = N'DRAFT', amount = 10 WHERE id = 2")
    people.sql("UPDATE dbo.people SET amount = -1 WHERE id = 6")
    people.wait_captured()

    rows = read_changes(
        people.spark,
        (str(low), str(people.max_lsn())),
        table="dbo.people",
        url=people.spec(upto=low).source.jdbc_url,
        folder=str(people.work_dir / "changes"),
        user=SPARK_USER,
        password=SPARK_PASSWORD,
        options={"encrypt": "true", "trustServerCertificate": "true"},
        columns=CHOICE.columns,
        where=CHOICE.where,
        rename=CHOICE.rename,
        mask=CHOICE.mask,
        salt=SALT,
    )

    found = [(r["_op"], r["id"], r["mail"], r["amount"], r["ssn"]) for r in rows.orderBy("_lsn", "_seq").collect()]
    assert found == [
        ("I", hashed(2), "redacted", 10, hashed("2")),
        ("D", hashed(6), "redacted", 6, hashed("6")),
    ]
    assert "status" not in rows.columns


def asked_first(table, held, rows) -> dict[Column, list[tuple[Condition, str, set[int]]]]:
    """By column what the server judges first: each condition, in T-SQL, and the rows that fulfil it by Python."""
    asked: dict[Column, list[tuple[Condition, str, set[int]]]] = {}
    for name, (type_, values) in held.items():
        filters = [
            ((name, operator, given), {n for n, row in enumerate(rows[:-1]) if judge(judged.stored(type_, row[name]))})
            for operator, given, judge in judged.conditions(type_, values)
        ]
        filters += [((name, "is null"), {len(rows) - 1}), ((name, "is not null"), set(range(len(rows) - 1)))]
        column = table.schema.column(name)
        for row_filter, expected in filters:
            (made,) = choose(table.name, table.schema, Choice(where=(row_filter,)), check=None).conditions
            query = pushed(column, made)
            if query is not None:
                asked.setdefault(column, []).append((made, query, expected))
    return asked


@few
@drawn_from(seeds)
def test_what_the_server_judges_first_leaves_out_nothing_that_fulfils_the_filter(spark, sandbox, seed) -> None:
    random = Random(seed)
    held = {f"c{number}": (type_, judged.values(type_, random)) for number, type_ in enumerate(judged.TYPES)}
    # NULLs in the last row, each time
    rows = [
        {name: values[number % len(values)] for name, (_, values) in held.items()}
        for number in range(max(len(values) for _, values in held.values()))
    ]
    rows.append(dict.fromkeys(held))
    origin = Origin(spark, sandbox, None, "")
    columns = ", ".join(f"{name} {type_} NULL" for name, (type_, _) in held.items())
    origin.sql(f"CREATE TABLE dbo.judged (id int NOT NULL PRIMARY KEY, {columns})")
    for number, row in enumerate(rows):
        values = ", ".join("NULL" if value is None else judged.literal(value) for value in row.values())
        origin.sql(f"INSERT INTO dbo.judged VALUES ({number}, {values})")
    origin.enable("dbo.judged")
    origin.scan()
    table = origin.table("dbo.judged", ("mirror",))

    asked = asked_first(table, held, rows)
    mappings = map_columns(table.name, table.schema)
    read = ", ".join(f"{mapping.select} AS {mapping.alias}" for mapping in mappings)
    jdbc = Jdbc(spark, origin.spec(table, upto=origin.max_lsn()).source, Credentials(SPARK_USER, SPARK_PASSWORD))
    frame = jdbc.frame(
        f"SELECT {read} FROM dbo.judged", ", ".join(f"{mapping.alias} {mapping.read_type}" for mapping in mappings)
    )
    judgements = [F.array(*(fulfils(mappings, [made]) for made, _, _ in each)) for each in asked.values()]
    answers = {number: found for number, *found in frame.select(F.col(mappings[0].alias), *judgements).collect()}
    assert sorted(answers) == list(range(len(rows)))
    wrong = []
    for place, (column, each) in enumerate(asked.items()):
        cases = ", ".join(f"CASE WHEN {query} THEN 1 ELSE 0 END AS q{n}" for n, (_, query, _) in enumerate(each))
        by_server = origin.sql(f"SELECT id, {cases} FROM dbo.judged")
        for n, (made, query, expected) in enumerate(each):
            by_spark = {number for number, found in answers.items() if found[place][n]}
            first = {row["id"] for row in by_server if row[f"q{n}"]}
            # the collation may let some more texts pass
            if by_spark != expected or (first & expected if column.type in TEXTS else first) != expected:
                wrong.append((column.type, str(made), query, by_spark, first, expected))
    assert wrong == []
    compared = {column.type: {made.operator for made, _, _ in each} for column, each in asked.items()}
    few_of = {**dict.fromkeys(TEXTS, ("=", "in")), **dict.fromkeys(FLOATS, ()), "bit": EQUALITIES}
    few_of["uniqueidentifier"] = EQUALITIES
    assert compared == {
        type_: {*few_of[type_], *NULLS} if type_ in few_of else {*OPERATORS}
        for type_ in (table.schema.column(name).type for name in held)
    }


def test_the_server_understands_what_it_judges_first(origin: Origin) -> None:
    values = {
        "n": ("bigint", "5", [("<", 6), (">=", -5), ("in", [5, 2**40]), ("<>", 4)]),
        "b": ("bit", "1", [("=", True), ("not in", [0])]),
        "m": ("money", "1.5", [("=", Decimal("1.50")), (">", -1)]),
        "d": ("date", "'2026-01-02'", [("=", date(2026, 1, 2)), ("<", date(2026, 1, 3))]),
        "t": ("datetime", "'2026-01-02T03:04:05'", [("=", datetime(2026, 1, 2, 3, 4, 5)), (">", date(2026, 1, 2))]),
        "u": ("datetime2(7)", "'2026-01-02T03:04:05.0000001'", [(">", datetime(2026, 1, 2, 3, 4, 5))]),
        "s": ("smalldatetime", "'2026-01-02T03:04:00'", [("<", datetime(2026, 1, 2, 3, 4, 0, 1))]),
        "v": ("varchar(10)", "'it''s é'", [("=", "it's é"), ("in", ["x", "it's é"])]),
        "g": (
            "uniqueidentifier",
            "'0A0A0A0A-0000-0000-0000-00000000000B'",
            [("=", "0a0a0a0a-0000-0000-0000-00000000000b")],
        ),
        "x": ("time", "NULL", [("is null",)]),
    }
    origin.sql(
        f"CREATE TABLE dbo.typed ({', '.join(f'{name} {type_} NULL' for name, (type_, _, _) in values.items())})"
    )
    origin.sql(f"INSERT INTO dbo.typed VALUES ({', '.join(value for _, value, _ in values.values())})")
    origin.enable("dbo.typed")
    instance = origin.instance("dbo.typed")
    schema = TableSchema(instance.columns, ())

    asked = []
    for name, (_, _, conditions) in values.items():
        for operator, *given in conditions:
            (made,) = choose(instance.source, schema, Choice(where=((name, operator, *given),)), check=None).conditions
            query = pushed(schema.column(name), made)
            assert query is not None
            asked.append(query)

    (row,) = origin.sql(f"SELECT COUNT(*) AS n FROM dbo.typed WHERE {' AND '.join(asked)}")
    assert row["n"] == 1
