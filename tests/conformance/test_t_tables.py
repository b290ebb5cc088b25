"""T-SQL: what the catalogue says of defaults and constraints, and columns that are added to a table with rows."""

from __future__ import annotations

import datetime
import re
import uuid
from typing import Any

import pytest

from tests.support.conformance.client import Row
from tests.support.conformance.database import Database

# as it is written, and as the catalogue has it (memory where no published script shows it)
DEFAULTS = [
    ("bit", "1", "((1))"),
    ("int", "7", "((7))"),
    ("int", "(7)", "((7))"),
    ("int", "((7))", "((7))"),
    ("int", "-1", "((-1))"),
    ("bigint", "9000000000", "((9000000000.))"),
    ("bigint", "-2147483648", "((-2147483648))"),
    ("decimal(9, 2)", "1.5", "((1.5))"),
    ("decimal(9, 2)", "-1.50", "((-1.50))"),
    ("float", "1.5E0", "((1.5000000000000000e+000))"),
    ("float", "-1e-3", "((-1.0000000000000000e-003))"),
    ("varchar(9)", "'x'", "('x')"),
    ("varchar(9)", "'it''s'", "('it''s')"),
    ("nvarchar(9)", "N'x'", "(N'x')"),
    ("varchar(9)", "( 'a' + 'b' )", "('a'+'b')"),
    ("int", "(1 + 2)", "((1)+(2))"),
    ("int", "((1 + 2) * 3)", "(((1)+(2))*(3))"),
    ("int", "(1/1/1999)", "(((1)/(1))/(1999))"),
    ("int", "NULL", "(NULL)"),
    ("datetime", "GETDATE()", "(getdate())"),
    ("datetime", "CURRENT_TIMESTAMP", "(getdate())"),
    ("datetime2", "(SysUtcDateTime ( ))", "(sysutcdatetime())"),
    ("datetime", "DATEADD(dd, 1, GETDATE())", "(dateadd(day,(1),getdate()))"),
    ("date", "CAST(GETDATE() AS date)", "(CONVERT([date],getdate()))"),
    ("bit", "CAST(1 AS bit)", "(CONVERT([bit],(1)))"),
    ("varchar(30)", "CONVERT(varchar(30), GETDATE(), 126)", "(CONVERT([varchar](30),getdate(),(126)))"),
    ("uniqueidentifier", "NEWID()", "(newid())"),
    ("nvarchar(128)", "SUSER_SNAME()", "(suser_sname())"),
]


@pytest.mark.parametrize(("type_", "written", "decoded"), DEFAULTS, ids=[written for _, written, _ in DEFAULTS])
def test_tsql_defaults_are_decoded(plain: Database, type_: str, written: str, decoded: str) -> None:
    plain.run(f"CREATE TABLE dbo.d (id int, a {type_} NULL DEFAULT {written}, b {type_} NULL)")
    plain.run(f"ALTER TABLE dbo.d ADD CONSTRAINT of_b DEFAULT {written} FOR b, c {type_} NULL DEFAULT {written}")
    definitions = plain.run("SELECT definition FROM sys.default_constraints ORDER BY parent_column_id")
    assert definitions == [(decoded,)] * 3
    shown = plain.run("SELECT COLUMN_DEFAULT FROM INFORMATION_SCHEMA.COLUMNS ORDER BY ORDINAL_POSITION")
    assert shown == [(None,), *[(decoded,)] * 3]
    plain.run("INSERT INTO dbo.d (id) VALUES (1)")
    if written.upper() == "NEWID()":
        assert len(set(plain.run("SELECT a, b, c FROM dbo.d")[0])) == 3
    elif "GETDATE" not in written and "TIME" not in written.upper():
        expected = plain.value(f"SELECT CAST({written} AS {type_})")
        assert plain.run("SELECT a, b, c FROM dbo.d") == [(expected, expected, expected)]


def test_tsql_defaults_as_drivers_ask_for_them(plain: Database) -> None:
    plain.run(
        "CREATE TABLE dbo.d (a bit DEFAULT 1, b decimal(9, 2) DEFAULT 1.5, c datetime DEFAULT GETDATE(),"
        " d varchar(9) DEFAULT 'x', e int)"
    )
    decoded = ["((1))", "((1.5))", "(getdate())", "('x')", None]
    for call in ("sp_columns N'd', N'dbo'", "sp_columns_100 N'd', N'dbo', NULL, N'%', 2, 3"):
        result = plain.sets(f"EXEC {call}")[-1]
        place = result.names.index("COLUMN_DEF")
        assert [row[place] for row in result.rows] == decoded


def test_tsql_made_names_of_constraints(plain: Database) -> None:
    plain.run(
        "CREATE TABLE dbo.orders (id int PRIMARY KEY, a int NOT NULL UNIQUE, b int UNIQUE, status int DEFAULT 1,"
        " created_at_some_time int DEFAULT 2, named int CONSTRAINT df_named DEFAULT 3,"
        " CONSTRAINT uq_named UNIQUE (b, a))"
        " CREATE TABLE dbo.order_lines (id int CONSTRAINT pk_lines PRIMARY KEY, quantity int DEFAULT 1)"
        " ALTER TABLE dbo.order_lines ADD price int NOT NULL DEFAULT 4, CONSTRAINT df_added DEFAULT 5 FOR id"
    )
    constraints = plain.run(
        "SELECT type, name, is_system_named FROM sys.key_constraints UNION ALL"
        " SELECT type, name, is_system_named FROM sys.default_constraints"
    )
    shapes = [
        "D 0 df_added", "D 0 df_named", "D 1 DF__order_lin__price__8", "D 1 DF__order_lin__quant__8",
        "D 1 DF__orders__created___8", "D 1 DF__orders__status__8", "PK 0 pk_lines", "PK 1 PK__orders__16",
        "UQ 0 uq_named", "UQ 1 UQ__orders__16", "UQ 1 UQ__orders__16",
    ]  # fmt: skip
    found = []
    for type_, name, made in constraints:
        digits = re.search("[0-9A-F]{8,}$", name) if made else None
        shown = name if digits is None else name[: digits.start()] + str(len(digits.group()))
        found.append(f"{type_.strip()} {int(made)} {shown}")
    assert sorted(found) == shapes
    assert len({name for _, name, _ in constraints}) == len(constraints)


def test_tsql_dropped_and_named_again(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (a int DEFAULT 1)")
    (name,) = plain.run("SELECT name FROM sys.default_constraints")[0]
    plain.run(f"ALTER TABLE dbo.t DROP CONSTRAINT [{name}]")
    plain.run(f"ALTER TABLE dbo.t ADD CONSTRAINT [{name}] DEFAULT 2 FOR a")
    found = plain.run("SELECT name, definition, is_system_named FROM sys.default_constraints")
    assert found == [(name, "((2))", False)]


def test_tsql_renamed_column_keeps_its_default(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int, a int CONSTRAINT df_a DEFAULT 7)")
    plain.run("EXEC sp_rename 'dbo.t.a', 'z', 'COLUMN'")
    plain.run("INSERT INTO dbo.t (id) VALUES (1)")
    assert plain.run("SELECT id, z FROM dbo.t") == [(1, 7)]
    query = (
        "SELECT d.name, c.name FROM sys.default_constraints AS d JOIN sys.columns AS c"
        " ON c.object_id = d.parent_object_id AND c.column_id = d.parent_column_id"
        " AND c.default_object_id = d.object_id"
    )
    assert plain.run(query) == [("df_a", "z")]
    plain.run("ALTER TABLE dbo.t DROP CONSTRAINT df_a INSERT INTO dbo.t (id) VALUES (2)")
    assert plain.run("SELECT id, z FROM dbo.t ORDER BY id") == [(1, 7), (2, None)]


def test_tsql_constraint_column_usage(plain: Database) -> None:
    plain.run(
        "CREATE TABLE dbo.a (x int NOT NULL, y int NOT NULL, z int, CONSTRAINT pk_a PRIMARY KEY (y, x),"
        " CONSTRAINT uq_a UNIQUE (z)) CREATE TABLE dbo.b (id int CONSTRAINT pk_b PRIMARY KEY)"
    )
    query = "SELECT * FROM INFORMATION_SCHEMA.CONSTRAINT_COLUMN_USAGE"
    names = ["CATALOG", "SCHEMA", "NAME"]
    head, tail = [f"TABLE_{name}" for name in names], [f"CONSTRAINT_{name}" for name in names]
    assert plain.names(query) == [*head, "COLUMN_NAME", *tail]
    expected = {("a", "x", "pk_a"), ("a", "y", "pk_a"), ("a", "z", "uq_a"), ("b", "id", "pk_b")}
    rows = [(plain.name, "dbo", table, column, plain.name, "dbo", key) for table, column, key in expected]
    assert sorted(plain.run(query)) == sorted(rows)


def test_tsql_space_of_a_table(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY, a int) CREATE INDEX ix ON dbo.t (a)")
    plain.run("INSERT INTO dbo.t VALUES (1, 1), (2, 2), (3, 3)")
    result = plain.sets("EXEC sp_spaceused @objname = N'dbo.t'")[-1]
    assert result.names == ["name", "rows", "reserved", "data", "index_size", "unused"]
    ((name, rows, *sizes),) = result.rows
    assert (name, rows) == ("t", f"{3:<20}")
    reserved, *parts = (int(re.fullmatch(r"(\d+) KB", size)[1]) for size in sizes)  # type: ignore[index]
    assert reserved == sum(parts) > 0
    assert plain.number("EXEC sp_spaceused 'dbo.nosuch'") == 15009


# Columns that are added to a table with rows: each with what the two rows (1 and 2) get (docs: ALTER TABLE, ADD)
ADDED: list[tuple[str, list[Any]]] = [
    ("c int NULL", [None, None]),
    ("c int NULL DEFAULT 5", [None, None]),
    ("c int DEFAULT 5", [None, None]),
    ("c int NULL DEFAULT 5 WITH VALUES", [5, 5]),
    ("c int DEFAULT 5 WITH VALUES NULL", [5, 5]),
    ("c int NOT NULL DEFAULT 5", [5, 5]),
    ("c varchar(9) NOT NULL CONSTRAINT df_c DEFAULT 'x' WITH VALUES", ["x", "x"]),
    ("c int IDENTITY(10, 5)", [10, 15]),
    ("c AS id * 10 + n", [None, 22]),
    ("c AS id * 10 PERSISTED NOT NULL", [10, 20]),
]


@pytest.mark.parametrize(("column", "values"), ADDED, ids=[column for column, _ in ADDED])
def test_tsql_rows_that_are_there_get(plain: Database, column: str, values: list[Any]) -> None:
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY, n int) INSERT INTO dbo.t VALUES (1, NULL), (2, 2)")
    plain.run(f"ALTER TABLE dbo.t ADD {column}")
    assert plain.run("SELECT id, n, c FROM dbo.t ORDER BY id") == [(1, None, values[0]), (2, 2, values[1])]
    plain.run("INSERT INTO dbo.t (id) VALUES (3)")
    new = {"IDENTITY": 20, "* 10 +": None, "PERSISTED": 30, "DEFAULT 5": 5, "'x'": "x"}
    expected = next((value for part, value in new.items() if part in column), None)
    assert plain.run("SELECT c FROM dbo.t WHERE id = 3") == [(expected,)]


def test_tsql_each_row_gets_a_value_of_its_own(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY) INSERT INTO dbo.t VALUES (1), (2), (3)")
    before = plain.value("SELECT @@DBTS")
    plain.run(
        "ALTER TABLE dbo.t ADD guid uniqueidentifier NOT NULL DEFAULT NEWID(), version rowversion,"
        " moment datetime NOT NULL DEFAULT GETDATE(), other uniqueidentifier NULL DEFAULT NEWID() WITH VALUES"
    )
    rows = plain.run("SELECT guid, version, moment, other FROM dbo.t ORDER BY id")
    guids = [guid for row in rows for guid in (row[0], row[3])]
    assert len(set(guids)) == 6
    assert all(isinstance(guid, uuid.UUID) for guid in guids)
    assert len({row[1] for row in rows}) == 3
    assert all(row[1] > before for row in rows)
    assert len({row[2] for row in rows}) == 1
    assert isinstance(rows[0][2], datetime.datetime)


def _rows(plain: Database) -> list[Row]:
    return plain.run("SELECT * FROM dbo.t ORDER BY id")


def test_tsql_added_columns_are_rolled_back(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY) INSERT INTO dbo.t VALUES (1), (2)")
    plain.run("BEGIN TRAN ALTER TABLE dbo.t ADD k int IDENTITY(1, 1) ROLLBACK")
    assert _rows(plain) == [(1,), (2,)]
    plain.run("BEGIN TRAN INSERT INTO dbo.t VALUES (3) ALTER TABLE dbo.t ADD k int IDENTITY(5, 1), c AS id + k COMMIT")
    assert _rows(plain) == [(1, 5, 6), (2, 6, 8), (3, 7, 10)]
    plain.run("BEGIN TRAN ALTER TABLE dbo.t DROP COLUMN c, k ALTER TABLE dbo.t ADD k int IDENTITY(100, 1) ROLLBACK")
    plain.run("INSERT INTO dbo.t (id) VALUES (4)")
    assert _rows(plain) == [(1, 5, 6), (2, 6, 8), (3, 7, 10), (4, 8, 12)]


def test_tsql_added_columns_that_no_row_fits(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int IDENTITY PRIMARY KEY, v rowversion) INSERT INTO dbo.t DEFAULT VALUES")
    plain.run("INSERT INTO dbo.t DEFAULT VALUES")
    for column, number in (
        ("c int NOT NULL", 4901),
        ("c int IDENTITY", 2744),
        ("c rowversion", 2738),
    ):
        assert plain.number(f"ALTER TABLE dbo.t ADD {column}") == number
    assert plain.number("ALTER TABLE dbo.t ADD c int NOT NULL DEFAULT 5 UNIQUE") in (1505, 1750)
    assert plain.number("CREATE TABLE dbo.u (a rowversion, b rowversion)") == 2738
    assert plain.names("SELECT * FROM dbo.t") == ["id", "v"]
    plain.run("ALTER TABLE dbo.t ADD c uniqueidentifier NOT NULL DEFAULT NEWID() CONSTRAINT uq UNIQUE")
    assert plain.value("SELECT COUNT(DISTINCT c) FROM dbo.t") == 2
