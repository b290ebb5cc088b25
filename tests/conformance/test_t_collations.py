"""Texts compare by their collation: as documented, and as others have measured and published it."""

from __future__ import annotations

import pytest

from tests.support.conformance.database import Database
from tests.support.conformance.servers import unique

SQL, WINDOWS, STRICT, BINARY, UTF8 = (
    "SQL_Latin1_General_CP1_CI_AS",
    "Latin1_General_CI_AS",
    "Latin1_General_CS_AS",
    "Latin1_General_BIN2",
    "Latin1_General_100_CI_AS_SC_UTF8",
)


def compared(db: Database, type_: str, collation: str, one: str, other: str) -> str:
    """How two texts compare: <, = or >."""
    a, b = (f"CAST(N'{text}' AS {type_}(20)) COLLATE {collation}" for text in (one, other))
    return str(db.value(f"SELECT CASE WHEN {a} = {b} THEN '=' WHEN {a} < {b} THEN '<' WHEN {a} > {b} THEN '>' END"))


@pytest.mark.parametrize(
    ("type_", "collation", "one", "relation", "other"),
    [
        # docs: case, trailing blanks, width
        ("varchar", SQL, "abc", "=", "ABC  "),
        ("nvarchar", WINDOWS, "abc", "=", "ABC  "),
        ("varchar", STRICT, "a", "<", "A"),
        ("nvarchar", STRICT, "a ", "=", "a"),
        ("nvarchar", STRICT, "ab", "<", "Ac"),
        ("varchar", BINARY, "a", ">", "A"),
        ("nvarchar", BINARY, "a", "=", "a "),
        ("nvarchar", SQL, "Ａ", "=", "a"),
        ("nvarchar", SQL, "e", "<", "é"),
        ("varchar", SQL, "É", "=", "é"),
        # KB 322112: word sort ignores the hyphen at first, sort order 52 does not
        ("varchar", SQL, "a-c", "<", "ab"),
        ("nvarchar", SQL, "a-c", ">", "ab"),
        ("varchar", WINDOWS, "a-c", ">", "ab"),
        ("nvarchar", SQL, "co-op", ">", "coop"),
        # measured on 2019
        ("varchar", SQL, "ss", "<>", "ß"),
        ("nvarchar", SQL, "ss", "=", "ß"),
        # measured on 2025: varchar compares the bytes of its code page
        ("varchar", BINARY, "€", "<", "é"),
        ("nvarchar", BINARY, "€", ">", "é"),
    ],
)
def test_tsql_collations(plain: Database, type_: str, collation: str, one: str, relation: str, other: str) -> None:
    if relation == "<>":
        sql = f"SELECT IIF(CAST(N'{one}' AS {type_}(9)) COLLATE {collation} = CAST(N'{other}' AS {type_}(9)), 1, 0)"
        assert plain.value(sql) == 0
    else:
        assert compared(plain, type_, collation, one, other) == relation


def test_tsql_utf8_column(plain: Database) -> None:
    plain.run(f"CREATE TABLE dbo.t (k varchar(6) COLLATE {UTF8} NOT NULL PRIMARY KEY)")
    plain.run("INSERT INTO dbo.t VALUES (N'é')")
    assert plain.number("INSERT INTO dbo.t VALUES (N'É ')") == 2627
    assert plain.run("SELECT k, DATALENGTH(k) FROM dbo.t WHERE k = N'É'") == [("é", 2)]


@pytest.mark.parametrize(
    ("type_", "collation", "listed"),
    [
        ("varchar", SQL, ["€", "a", "ab", "é", "z"]),
        ("varchar", SQL, ["co-op", "co_op", "coat", "coop"]),
        ("nvarchar", SQL, ["co_op", "coat", "comb", "coop", "co-op", "cork", "went", "were", "we''re"]),
        ("varchar", WINDOWS, ["carps", "cars", "car''s", "car-s"]),
        ("nvarchar", BINARY, ["A", "B", "a", "é", "€"]),
    ],
)
def test_tsql_order_of_collations(plain: Database, type_: str, collation: str, listed: list[str]) -> None:
    plain.run(f"CREATE TABLE dbo.t (k {type_}(20) COLLATE {collation} NOT NULL PRIMARY KEY)")
    values = ", ".join(f"(N'{text}')" for text in reversed(listed))
    plain.run(f"INSERT INTO dbo.t VALUES {values}")
    expected = [(text.replace("''", "'"),) for text in listed]
    assert plain.run("SELECT k FROM dbo.t ORDER BY k") == expected


def test_tsql_collations_that_meet(plain: Database) -> None:
    plain.run(f"CREATE TABLE dbo.t (a varchar(5) COLLATE {STRICT}, b varchar(5) COLLATE {WINDOWS})")
    plain.run("INSERT INTO dbo.t VALUES ('x', 'X')")
    assert plain.number("SELECT 1 FROM dbo.t WHERE a = b") == 468
    assert plain.run(f"SELECT 1 FROM dbo.t WHERE a = b COLLATE {WINDOWS}") == [(1,)]
    assert plain.run("SELECT 1 FROM dbo.t WHERE a = 'X'") == []
    assert plain.run("SELECT 1 FROM dbo.t WHERE b = 'x'") == [(1,)]
    assert plain.number("SELECT 'a' COLLATE nosuchcollation") == 448


def test_tsql_names_of_a_case_sensitive_database(plain: Database) -> None:
    name = unique("strict")
    plain.run(f"CREATE DATABASE {name} COLLATE {STRICT}")
    try:
        plain.run(f"USE {name}")
        plain.run("CREATE TABLE dbo.orders (id int)")
        plain.run("CREATE TABLE dbo.Orders (id int)")
        plain.run("INSERT INTO dbo.Orders VALUES (7)")
        assert plain.run("SELECT * FROM dbo.orders") == []
        assert plain.run("SELECT * FROM dbo.Orders") == [(7,)]
        assert plain.number("SELECT * FROM dbo.ORDERS") == 208
        assert plain.number("SELECT Id FROM dbo.Orders") == 207
        assert plain.run("SELECT name FROM sys.tables WHERE name = 'orders'") == [("orders",)]
        assert plain.value(f"SELECT collation_name FROM sys.databases WHERE name = '{name}'") == STRICT
    finally:
        plain.run(f"USE master; DROP DATABASE {name}")
