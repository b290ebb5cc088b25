"""The copy's key ranges, without Spark."""

import random
import re
import sqlite3

import pytest

from airflow_provider_mssql_cdc.core.chunks import KeyPart
from airflow_provider_mssql_cdc.core.table import Column
from airflow_provider_mssql_cdc.sandbox import Sandbox
from airflow_provider_mssql_cdc.spark import copying
from airflow_provider_mssql_cdc.spark.copying import key_bound, range_clauses

VALUES = ["", "a", "A", "ä", "b", "B", "c", "é", "z", "Z", "-a", "a-b", "ab", None, "O'Hara", "ж", "日"]


def scrambled(one: str, other: str) -> int:
    """Compare as no code page does, but always alike."""
    first, second = ([ord(c) * 7919 % 251 for c in text.casefold()] for text in (one, other))
    return (first > second) - (first < second)


@pytest.mark.parametrize("seed", range(20))
def test_every_row_is_in_one_range_however_the_server_orders_the_bounds(seed):
    chosen = random.Random(seed)
    rows = chosen.choices(VALUES, k=60)
    lows = chosen.choices(VALUES, k=chosen.randint(0, 7))
    database = sqlite3.connect(":memory:")
    database.create_collation("scrambled", scrambled)
    database.execute("CREATE TABLE t (k TEXT COLLATE scrambled, n INT)")
    database.executemany("INSERT INTO t VALUES (?, ?)", [(row, n) for n, row in enumerate(rows)])

    clauses = range_clauses("[k]", ["'" + low.replace("'", "''") + "'" for low in lows if low is not None])

    found = [n for clause in clauses for (n,) in database.execute(f"SELECT n FROM t{clause}")]
    assert sorted(found) == list(range(len(rows)))


def test_ranges_of_ordered_bounds_hold_what_lies_between():
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE t (k INT)")
    database.executemany("INSERT INTO t VALUES (?)", [(n,) for n in (*range(10), None)])

    clauses = range_clauses("[k]", ["3", "7"])

    found = [sorted(database.execute(f"SELECT k FROM t{clause}"), key=repr) for clause in clauses]
    assert [[k for (k,) in rows] for rows in found] == [[0, 1, 2, None], [3, 4, 5, 6], [7, 8, 9]]


@pytest.mark.parametrize(
    ("type_", "collation", "bound"),
    [
        ("int", None, "42"),
        ("nvarchar", "Latin1_General_CI_AS", "N'42'"),
        ("varchar", "Cyrillic_General_CI_AS", "CONVERT(varchar(8000), N'42' COLLATE Cyrillic_General_CI_AS)"),
        ("char", None, "CONVERT(varchar(8000), N'42')"),
        ("uniqueidentifier", None, "CONVERT(uniqueidentifier, '42')"),
    ],
)
def test_bounds_are_values_of_the_columns_own_type_and_code_page(type_, collation, bound):
    _, value = key_bound(Column(1, 1, "k", type_, length=20, collation=collation))
    assert value.format("42") == bound


@pytest.mark.parametrize("type_", ["datetime2", "decimal", "float", "varbinary"])
def test_keys_of_other_types_are_copied_by_one_connection(type_):
    assert key_bound(Column(1, 1, "k", type_, length=8)) == ("", "")


@pytest.mark.parametrize("type_", ["nvarchar", "varchar"])
def test_a_collation_that_is_no_name_is_not_written_into_a_statement(type_):
    _, value = key_bound(Column(1, 1, "k", type_, length=20, collation="x'; DROP TABLE t"))
    assert not re.search("DROP", value)


class PlainJdbc:
    """What a copy asks of its source over JDBC, without Spark."""

    def __init__(self, server):
        self.server = server

    def rows(self, query, schema):
        return self.server.execute(query)[-1].to_pylist()


@pytest.mark.parametrize("rows", [1, 7, 40, 1000])
def test_there_are_no_more_chunks_than_connections_and_each_row_is_in_one(rows):
    def column(number, name):
        return KeyPart(Column(number, number, name, "int", nullable=False), descending=number == 2)

    with Sandbox(agent_running=False) as server:
        server.execute("CREATE TABLE dbo.t (g int NOT NULL, k int NOT NULL, PRIMARY KEY (g, k DESC))")
        server.execute("INSERT INTO dbo.t VALUES " + ", ".join(f"({n % 3}, {n})" for n in range(100)))

        clauses = copying._chunks(PlainJdbc(server), (column(1, "g"), column(2, "k")), "dbo.t", rows, 4)

        found = [
            row["k"] for clause in clauses for row in server.execute(f"SELECT k FROM dbo.t{clause}")[-1].to_pylist()
        ]
    assert sorted(found) == list(range(100))
    assert len(clauses) == {1: 4, 7: 4, 40: 2, 1000: 1}[rows]
