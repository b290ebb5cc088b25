"""T-SQL as far as CDC readers and administrators go: queries, changes of rows, and definitions."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.support.conformance.client import Row
from tests.support.conformance.database import Database
from tests.support.conformance.not_built import right_or_refused


@pytest.fixture
def shop(plain: Database) -> Database:
    """Customers and orders."""
    plain.run(
        """
        CREATE TABLE dbo.c (id int PRIMARY KEY, name nvarchar(20), city varchar(10) NULL)
        CREATE TABLE dbo.o (id int PRIMARY KEY, c int, total decimal(9, 2), day date)
        INSERT INTO dbo.c VALUES (1, N'Ann', 'Rome'), (2, N'Bob', NULL), (3, N'Cid', 'rome')
        INSERT INTO dbo.o VALUES (10, 1, 5.00, '2024-01-01'), (11, 1, 7.50, '2024-01-02'), (12, 2, 1.25, '2024-01-02')
        """
    )
    return plain


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        pytest.param("SELECT TOP 2 id FROM dbo.o ORDER BY id DESC", [(12,), (11,)], id="top"),
        pytest.param("SELECT TOP (1 + 1) id FROM dbo.o ORDER BY id", [(10,), (11,)], id="top-expression"),
        pytest.param("SELECT TOP 0 id FROM dbo.o", [], id="top-0"),
        pytest.param("SELECT TOP 100 PERCENT id FROM dbo.o ORDER BY id", [(10,), (11,), (12,)], id="top-100-percent"),
        pytest.param("SELECT COUNT(*) FROM dbo.o TABLESAMPLE (100 PERCENT)", [(3,)], id="sample-of-all"),
        pytest.param(
            "SELECT COUNT(*) FROM dbo.o TABLESAMPLE SYSTEM (100 PERCENT) REPEATABLE (5) WHERE id > 10",
            [(2,)],
            id="sample-repeated",
        ),
        pytest.param("SELECT CAST(@@MAX_CONNECTIONS AS nvarchar(32))", [("32767",)], id="max-connections"),
        pytest.param("SELECT id FROM dbo.o ORDER BY id OFFSET 1 ROWS", [(11,), (12,)], id="offset"),
        pytest.param("SELECT id FROM dbo.o ORDER BY id OFFSET 1 ROW FETCH FIRST 1 ROW ONLY", [(11,)], id="fetch"),
        pytest.param("SELECT name FROM dbo.c WHERE city = 'ROME' ORDER BY id", [("Ann",), ("Cid",)], id="collation"),
        pytest.param("SELECT id FROM dbo.c WHERE city <> 'Oslo' ORDER BY id", [(1,), (3,)], id="null-is-not-unequal"),
        pytest.param("SELECT id FROM dbo.c WHERE name LIKE '[AB]%' ORDER BY id", [(1,), (2,)], id="like-set"),
        pytest.param("SELECT id FROM dbo.c WHERE name LIKE '_n_'", [(1,)], id="like-one"),
        pytest.param(
            "SELECT id FROM dbo.c WHERE name NOT LIKE 'A%' ORDER BY id", [(2,), (3,)], id="not-like",
        ),
        pytest.param("SELECT id FROM dbo.c WHERE id BETWEEN 2 AND 3 AND id NOT IN (3)", [(2,)], id="between-in"),
        pytest.param("SELECT id FROM dbo.c WHERE 'Ann ' = name", [(1,)], id="trailing-blanks-do-not-count"),
        pytest.param(
            "SELECT c.name, SUM(o.total), COUNT(o.id) FROM dbo.c LEFT JOIN dbo.o ON o.c = c.id GROUP BY c.name"
            " HAVING COUNT(*) > 0 ORDER BY c.name",
            [("Ann", Decimal("12.50"), 2), ("Bob", Decimal("1.25"), 1), ("Cid", None, 0)],
            id="join-group",
        ),
        pytest.param(
            "SELECT c.id, o.id FROM dbo.c RIGHT OUTER JOIN dbo.o ON c.id = o.c WHERE c.id = 2",
            [(2, 12)],
            id="right-join",
        ),
        pytest.param("SELECT COUNT(*) FROM dbo.c CROSS JOIN dbo.o", [(9,)], id="cross-join"),
        pytest.param("SELECT COUNT(*) FROM dbo.c, dbo.o WHERE c.id = o.c", [(3,)], id="comma-join"),
        pytest.param(
            "SELECT c.id, x.total FROM dbo.c CROSS APPLY (SELECT TOP 1 total FROM dbo.o WHERE c = c.id"
            " ORDER BY id DESC) x ORDER BY c.id",
            [(1, Decimal("7.50")), (2, Decimal("1.25"))],
            id="apply",
        ),
        pytest.param(
            "WITH big AS (SELECT c, total FROM dbo.o WHERE total > 2), n (k) AS (SELECT COUNT(*) FROM big)"
            " SELECT k, (SELECT MAX(total) FROM big) FROM n",
            [(2, Decimal("7.50"))],
            id="cte",
        ),
        pytest.param(
            "WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT i FROM n ORDER BY i",
            [(1,), (2,), (3,), (4,)],
            id="recursive-cte",
        ),
        pytest.param(
            "WITH d (id, path, depth) AS (SELECT id, CAST(name AS varchar(50)), 0 FROM dbo.c WHERE id = 1 UNION ALL"
            " SELECT c.id, CAST(d.path + '/' + c.name AS varchar(50)), d.depth + 1 FROM dbo.c AS c JOIN d"
            " ON c.id = d.id + 1) SELECT depth, COUNT(*) FROM d GROUP BY depth ORDER BY depth",
            [(0, 1), (1, 1), (2, 1)],
            id="recursive-cte-over-a-table",
        ),
        pytest.param(
            "WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 300) SELECT COUNT(*), SUM(i) FROM n"
            " OPTION (MAXRECURSION 0)",
            [(300, 45150)],
            id="recursive-cte-without-limit",
        ),
        pytest.param(
            "SELECT id, ROW_NUMBER() OVER (PARTITION BY c ORDER BY id DESC), SUM(total) OVER (ORDER BY id) FROM dbo.o"
            " ORDER BY id",
            [(10, 2, Decimal("5.00")), (11, 1, Decimal("12.50")), (12, 1, Decimal("13.75"))],
            id="windows",
        ),
        pytest.param(
            "SELECT id, LAG(total) OVER (ORDER BY id), RANK() OVER (ORDER BY day), DENSE_RANK() OVER (ORDER BY day)"
            " FROM dbo.o ORDER BY id",
            [(10, None, 1, 1), (11, Decimal("5.00"), 2, 2), (12, Decimal("7.50"), 2, 2)],
            id="lag-rank",
        ),
        pytest.param("SELECT DISTINCT day FROM dbo.o WHERE id > 10", None, id="distinct"),
        pytest.param("SELECT id FROM dbo.c EXCEPT SELECT c FROM dbo.o", [(3,)], id="except"),
        pytest.param("SELECT id FROM dbo.c INTERSECT SELECT c FROM dbo.o ORDER BY id", [(1,), (2,)], id="intersect"),
        pytest.param("SELECT 1 UNION SELECT 1 UNION ALL SELECT 2", [(1,), (2,)], id="union"),
        pytest.param(
            "SELECT name FROM dbo.c WHERE EXISTS (SELECT * FROM dbo.o WHERE o.c = c.id AND total < 2)",
            [("Bob",)],
            id="exists",
        ),
        pytest.param("SELECT id FROM dbo.c WHERE id > ALL (SELECT c FROM dbo.o)", [(3,)], id="all"),
        pytest.param(
            "SELECT CASE WHEN total > 6 THEN 'much' WHEN total > 2 THEN 'some' END FROM dbo.o ORDER BY id",
            [("some",), ("much",), (None,)],
            id="case",
        ),
        pytest.param(
            "SELECT CASE id WHEN 1 THEN 'D' WHEN 2 THEN 'I' ELSE '?' END, IIF(id = 1, 1, 0), COALESCE(city, 'none'),"
            " ISNULL(city, 'nil'), NULLIF(id, 2) FROM dbo.c WHERE id < 3 ORDER BY id",
            [("D", 1, "Rome", "Rome", 1), ("I", 0, "none", "nil", None)],
            id="choices",
        ),
        pytest.param("SELECT id FROM (VALUES (1, 'a'), (2, 'b')) AS v (id, name) WHERE name = 'b'", [(2,)], id="v"),
        pytest.param("SELECT id FROM dbo.o WITH (NOLOCK) WHERE id = 10 OPTION (RECOMPILE)", [(10,)], id="hints"),
        pytest.param("SELECT o.* FROM dbo.o AS o WHERE o.id = 10 AND o.day >= '20240101'", None, id="star"),
        pytest.param("SELECT a = id, [b c] = 2 FROM dbo.c WHERE id = 1", [(1, 2)], id="alias-by-equals"),
        pytest.param(
            "SELECT STRING_AGG(name, ',') WITHIN GROUP (ORDER BY id DESC) FROM dbo.c", [("Cid,Bob,Ann",)], id="agg",
        ),
        pytest.param(
            "SELECT STRING_AGG(name, CHAR(31)) WITHIN GROUP (ORDER BY id) FROM dbo.c", [("Ann\x1fBob\x1fCid",)],
            id="agg-with-a-separator-by-its-code",
        ),
    ],
)  # fmt: skip
def test_tsql_queries(shop: Database, query: str, rows: list[Row] | None) -> None:
    found = shop.run(query)
    assert found if rows is None else found == rows


def test_tsql_grouping_follows_the_collation(shop: Database) -> None:
    assert shop.value("SELECT COUNT(*) FROM (SELECT city FROM dbo.c WHERE city IS NOT NULL GROUP BY city) AS g") == 1
    assert shop.value("SELECT COUNT(DISTINCT city) FROM dbo.c") == 1


_OFFSET = "CAST('2026-01-02 03:04:05.1234567 +02:00' AS datetimeoffset)"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("7 / 2", 3),
        (f"CONVERT(varchar(40), {_OFFSET}, 127)", "2026-01-02T01:04:05.1234567Z"),
        (f"CONVERT(varchar(40), CAST({_OFFSET} AS datetimeoffset(3)), 127)", "2026-01-02T01:04:05.123Z"),
        (f"CONVERT(varchar(40), {_OFFSET}, 126)", "2026-01-02T03:04:05.1234567+02:00"),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("7 / 2.0", Decimal("3.500000")),
        ("1 + '2'", 3),
        ("'1' + '2'", "12"),
        ("LEN('ab  ')", 2),
        ("DATALENGTH(N'ab')", 4),
        ("DATALENGTH('ab')", 2),
        ("SUBSTRING('abcdef', 2, 3)", "bcd"),
        ("SUBSTRING(0x010203, 2, 1)", b"\x02"),
        ("LEFT('abc', 2) + RIGHT('abc', 1)", "abc"),
        ("UPPER('aé') + LOWER('AÉ')", "AÉaé"),
        ("REPLACE('aXbx', 'x', '-')", "a-b-"),
        ("LTRIM(RTRIM('  a  '))", "a"),
        ("CHARINDEX('c', 'abcabc')", 3),
        ("CONCAT('a', NULL, 1)", "a1"),
        ("REPLICATE('ab', 3)", "ababab"),
        ("QUOTENAME('a]b')", "[a]]b]"),
        ("ABS(-5)", 5),
        ("ROUND(2.555, 2)", Decimal("2.560")),
        ("CEILING(1.2)", Decimal(2)),
        ("FLOOR(-1.2)", Decimal(-2)),
        ("CAST(2.9 AS int)", 2),
        ("CAST(-2.9 AS int)", -2),
        ("CAST('  12 ' AS int)", 12),
        ("TRY_CAST('x' AS int)", None),
        ("TRY_CONVERT(int, '5')", 5),
        ("CAST(1 AS varchar(5)) + 'x'", "1x"),
        ("CAST(5 AS binary(4))", b"\x00\x00\x00\x05"),
        ("CAST(0x05 AS int)", 5),
        ("CAST('ab' AS binary(4))", b"ab\x00\x00"),
        ("CAST(0x6162 AS varchar(5))", "ab"),
        ("5 & 3", 1),
        ("5 | 3", 7),
        ("5 ^ 3", 6),
        ("~5", -6),
        ("CASE WHEN 0x00 = 0x0000 THEN 1 ELSE 0 END", 1),
        ("CASE WHEN 0x01 = 0x0001 THEN 1 ELSE 0 END", 0),
        ("CASE WHEN 'a' = 'A' THEN 1 ELSE 0 END", 1),
        ("CASE WHEN NULL IN (1, NULL) THEN 1 ELSE 0 END", 0),
    ],
)
def test_tsql_expressions(plain: Database, expression: str, value: object) -> None:
    found = plain.value(f"SELECT {expression}")
    assert found == value
    assert type(found) is type(value)


_DATES = (
    "DECLARE @d datetime = '2024-02-29T13:02:03.007', @d2 datetime2 = '2024-02-29 13:02:03.1234567',"
    " @o datetimeoffset = '2024-02-29 13:02:03.1234567 +02:00' "
)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        # LSNs
        ("CONVERT(varchar(22), 0x0000002D00000580001D, 1)", "0x0000002D00000580001D"),
        ("CONVERT(varchar(20), 0x0000002D00000580001D, 2)", "0000002D00000580001D"),
        ("CONVERT(nvarchar(22), CAST(0x0AFF AS binary(10)), 1)", "0x0AFF0000000000000000"),
        ("sys.fn_varbintohexstr(0x0AFF)", "0x0aff"),
        # dates
        ("CONVERT(varchar(30), @d, 0)", "Feb 29 2024  1:02PM"),
        ("CONVERT(varchar(30), @d, 112)", "20240229"),
        ("CONVERT(varchar(30), @d, 120)", "2024-02-29 13:02:03"),
        ("CONVERT(varchar(30), @d, 121)", "2024-02-29 13:02:03.007"),
        ("CONVERT(varchar(30), @d, 126)", "2024-02-29T13:02:03.007"),
        ("CONVERT(varchar(10), @d, 23)", "2024-02-29"),
        ("CAST(@d AS varchar(30))", "Feb 29 2024  1:02PM"),
        ("CONVERT(varchar(30), @d2, 121)", "2024-02-29 13:02:03.1234567"),
        ("CONVERT(varchar(30), @d2, 126)", "2024-02-29T13:02:03.1234567"),
        ("CONVERT(varchar(30), CAST(@d AS datetime2(0)), 126)", "2024-02-29T13:02:03"),
        ("CONVERT(varchar(30), DATEADD(ms, -7, CAST(@d AS datetime2(3))), 126)", "2024-02-29T13:02:03"),
        ("CAST(@d2 AS varchar(30))", "2024-02-29 13:02:03.1234567"),
        ("CONVERT(varchar(40), @o, 121)", "2024-02-29 13:02:03.1234567 +02:00"),
        ("CONVERT(varchar(40), TODATETIMEOFFSET(@d2, 90), 121)", "2024-02-29 13:02:03.1234567 +01:30"),
        ("CONVERT(varchar(30), DATEADD(day, 1, @d), 112)", "20240301"),
        ("CONVERT(varchar(30), EOMONTH(@d), 112)", "20240229"),
        ("CAST(DATEDIFF(day, '20231231', @d) AS varchar(5))", "60"),
        ("CAST(DATEDIFF(minute, @d, DATEADD(second, 57, @d)) AS varchar(5))", "1"),
        ("CAST(DATEPART(hour, @d) * 100 + DATEPART(minute, @d) AS varchar(5))", "1302"),
        ("CAST(YEAR(@d) * 10000 + MONTH(@d) * 100 + DAY(@d) AS varchar(8))", "20240229"),
        ("CONVERT(varchar(30), CONVERT(datetime2(3), '2024-02-29T01:02:03.004', 126), 121)", "2024-02-29 01:02:03.004"),
    ],
)
def test_tsql_convert_styles(plain: Database, expression: str, text: str) -> None:
    assert plain.value(f"{_DATES} SELECT {expression}") == text


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("CONVERT(varchar(30), @d, 101)", "02/29/2024"),
        ("CONVERT(varchar(30), @d, 103)", "29/02/2024"),
        ("CONVERT(varchar(30), @d, 104)", "29.02.2024"),
        ("CONVERT(varchar(30), @d, 108)", "13:02:03"),
        ("CONVERT(varchar(30), @d, 111)", "2024/02/29"),
        ("CONVERT(varchar(30), @d, 114)", "13:02:03:007"),
        ("CONVERT(varchar(40), @o, 127)", "2024-02-29T11:02:03.1234567Z"),
        pytest.param(
            "CONVERT(varchar(40), SWITCHOFFSET(@o, '-05:00'), 121)",
            "2024-02-29 06:02:03.1234567 -05:00",
        ),
        pytest.param(
            "DATENAME(weekday, @d) + DATENAME(month, @d)",
            "ThursdayFebruary",
        ),
        pytest.param(
            "CONVERT(varchar(30), CONVERT(datetime, '29.02.2024', 104), 112)",
            "20240229",
        ),
    ],
)
def test_tsql_further_conversions_of_dates(plain: Database, expression: str, text: str) -> None:
    right_or_refused(plain, f"{_DATES} SELECT {expression}", text)


def test_tsql_lsn_from_text(plain: Database) -> None:
    lsn = bytes.fromhex("0000002d00000580001d")
    assert plain.value("SELECT CONVERT(binary(10), '0x0000002D00000580001D', 1)") == lsn
    assert plain.value("SELECT CONVERT(varbinary(10), '0000002d00000580001d', 2)") == lsn


def test_tsql_lsn_from_bad_text_memory(plain: Database) -> None:
    assert plain.number("SELECT CONVERT(binary(10), '0xZZ', 1)") == 8114


# Changes of rows


def test_tsql_update_from(shop: Database) -> None:
    shop.run(
        "UPDATE o SET total = o.total + 1, day = '2025-01-01' FROM dbo.o AS o JOIN dbo.c AS c ON c.id = o.c"
        " WHERE c.name = N'Ann'"
    )
    assert shop.run("SELECT id, total FROM dbo.o ORDER BY id") == [
        (10, Decimal("6.00")),
        (11, Decimal("8.50")),
        (12, Decimal("1.25")),
    ]
    shop.run("UPDATE dbo.o SET total = (SELECT MAX(id) FROM dbo.c) WHERE id = 12")
    assert shop.value("SELECT total FROM dbo.o WHERE id = 12") == 3


def test_tsql_update_sees_the_old_values(shop: Database) -> None:
    shop.run("UPDATE dbo.o SET id = c + 100, c = id WHERE id = 10")
    assert shop.run("SELECT id, c FROM dbo.o WHERE id > 99") == [(101, 10)]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE o FROM dbo.o AS o JOIN dbo.c AS c ON c.id = o.c WHERE c.name = N'Ann'",
        "DELETE dbo.o FROM dbo.o JOIN dbo.c ON c.id = o.c WHERE c.name = N'Ann'",
        "DELETE dbo.o WHERE c = 1",
        "DELETE FROM dbo.o WHERE c IN (SELECT id FROM dbo.c WHERE name = N'Ann')",
        "DELETE FROM o FROM dbo.o AS o JOIN dbo.c AS c ON c.id = o.c WHERE c.name = N'Ann'",
        "DELETE TOP (2) FROM dbo.o WHERE c = 1",
        "WITH a AS (SELECT * FROM dbo.o WHERE c = 1) DELETE FROM a",
    ],
)
def test_tsql_delete_from(shop: Database, statement: str) -> None:
    shop.run(statement)
    assert shop.run("SELECT id FROM dbo.o") == [(12,)]


def test_tsql_update_top(shop: Database) -> None:
    shop.run("UPDATE TOP (1) dbo.o SET total = 0")
    assert shop.value("SELECT COUNT(*) FROM dbo.o WHERE total = 0") == 1


def test_tsql_output_clause(shop: Database) -> None:
    assert shop.run("INSERT INTO dbo.c OUTPUT inserted.id, inserted.name VALUES (4, N'Dee', NULL)") == [(4, "Dee")]
    assert shop.run("UPDATE dbo.c SET city = 'Bonn' OUTPUT deleted.city, inserted.city WHERE id = 1") == [
        ("Rome", "Bonn")
    ]
    assert shop.run("DELETE FROM dbo.c OUTPUT deleted.id WHERE id = 4") == [(4,)]


def test_tsql_insert_select(shop: Database) -> None:
    shop.run("INSERT dbo.o (id, c) SELECT id + 100, id FROM dbo.c WHERE city IS NULL")
    assert shop.run("SELECT * FROM dbo.o WHERE id > 100") == [(102, 2, None, None)]


def test_tsql_identity(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int IDENTITY(10, 5) NOT NULL, a varchar(5))")
    assert plain.value("INSERT INTO dbo.t (a) VALUES ('x'), ('y') SELECT CAST(SCOPE_IDENTITY() AS int)") == 15
    assert plain.value("SELECT CAST(@@IDENTITY AS int)") == 15
    assert plain.number("INSERT INTO dbo.t (id, a) VALUES (1, 'z')") == 544
    plain.run("SET IDENTITY_INSERT dbo.t ON INSERT INTO dbo.t (id, a) VALUES (100, 'z') SET IDENTITY_INSERT dbo.t OFF")
    plain.run("INSERT INTO dbo.t (a) VALUES ('w')")
    assert plain.run("SELECT id, a FROM dbo.t ORDER BY id") == [(10, "x"), (15, "y"), (100, "z"), (105, "w")]
    # a value that was drawn is not given out again
    plain.run("BEGIN TRAN INSERT INTO dbo.t (a) VALUES ('r') ROLLBACK INSERT INTO dbo.t (a) VALUES ('s')")
    assert plain.value("SELECT id FROM dbo.t WHERE a = 's'") == 115


def test_tsql_defaults(plain: Database) -> None:
    plain.run(
        "CREATE TABLE dbo.t (id int, a varchar(5) DEFAULT 'x', d datetime NOT NULL CONSTRAINT df DEFAULT GETDATE())"
    )
    plain.run("INSERT INTO dbo.t (id) VALUES (1) INSERT INTO dbo.t (id, a) VALUES (2, NULL)")
    plain.run("INSERT INTO dbo.t (id, a) VALUES (3, DEFAULT)")
    assert plain.run("SELECT id, a, IIF(d IS NULL, 1, 0) FROM dbo.t ORDER BY id") == [
        (1, "x", 0),
        (2, None, 0),
        (3, "x", 0),
    ]


def test_tsql_keys(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (a int, b int, c int CONSTRAINT uq UNIQUE, CONSTRAINT pk PRIMARY KEY (a, b))")
    plain.run("INSERT INTO dbo.t VALUES (1, 1, NULL)")
    assert plain.number("INSERT INTO dbo.t VALUES (1, 1, 2)") == 2627
    assert plain.number("INSERT INTO dbo.t VALUES (1, NULL, 2)") == 515
    # a unique constraint takes one NULL
    assert plain.number("INSERT INTO dbo.t VALUES (2, 2, NULL)") == 2627
    plain.run("CREATE UNIQUE INDEX ux ON dbo.t (b)")
    assert plain.number("INSERT INTO dbo.t VALUES (3, 1, 5)") == 2601
    plain.run("INSERT INTO dbo.t VALUES (3, 3, 5)")
    assert plain.number("UPDATE dbo.t SET c = 5") == 2627
    assert plain.run("SELECT a, b, c FROM dbo.t ORDER BY a") == [(1, 1, None), (3, 3, 5)]


def test_tsql_text_keys_follow_the_collation(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (k nvarchar(10) PRIMARY KEY) INSERT INTO dbo.t VALUES (N'abc')")
    assert plain.number("INSERT INTO dbo.t VALUES (N'ABC')") == 2627
    assert plain.number("INSERT INTO dbo.t VALUES (N'abc  ')") == 2627


# Definitions


def test_tsql_alter_table(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int NOT NULL, a varchar(5)) INSERT INTO dbo.t VALUES (1, 'x')")
    plain.run("ALTER TABLE dbo.t ADD b int NULL, c int NOT NULL CONSTRAINT df_c DEFAULT 7")
    plain.run("ALTER TABLE dbo.t ADD CONSTRAINT pk_t PRIMARY KEY (id)")
    plain.run("ALTER TABLE dbo.t ALTER COLUMN a nvarchar(10) NOT NULL")
    assert plain.run("SELECT * FROM dbo.t") == [(1, "x", None, 7)]
    plain.run("ALTER TABLE dbo.t DROP CONSTRAINT df_c")
    plain.run("ALTER TABLE dbo.t DROP COLUMN c, b")
    assert plain.names("SELECT * FROM dbo.t") == ["id", "a"]
    assert plain.number("ALTER TABLE dbo.t DROP COLUMN nosuch") == 4924
    assert plain.number("ALTER TABLE dbo.nosuch ADD a int") == 4902
    assert plain.number("ALTER TABLE dbo.t ADD a int") == 2705
    assert plain.number("ALTER TABLE dbo.t ALTER COLUMN a int") == 245


def test_tsql_column_ids_are_not_given_out_again(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (a int, b int, c int)")
    plain.run("ALTER TABLE dbo.t DROP COLUMN b")
    plain.run("ALTER TABLE dbo.t ADD d int")
    rows = plain.run("SELECT name, column_id FROM sys.columns WHERE object_id = OBJECT_ID('dbo.t') ORDER BY column_id")
    assert rows == [("a", 1), ("c", 3), ("d", 4)]


def test_tsql_rename(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int, a int) INSERT INTO dbo.t VALUES (1, 2)")
    plain.run("EXEC sp_rename 'dbo.t.a', 'b', 'COLUMN'")
    plain.run("EXEC sp_rename @objname = N'dbo.t', @newname = N'u'")
    assert plain.names("SELECT * FROM dbo.u") == ["id", "b"]
    assert plain.number("SELECT * FROM dbo.t") == 208


def test_tsql_drop_if_exists(plain: Database) -> None:
    plain.run("DROP TABLE IF EXISTS dbo.nosuch CREATE TABLE dbo.t (id int) DROP TABLE IF EXISTS dbo.t")
    assert plain.value("SELECT OBJECT_ID('dbo.t')") is None
    plain.run("IF OBJECT_ID('dbo.t', 'U') IS NULL CREATE TABLE dbo.t (id int)")
    assert plain.value("SELECT OBJECT_ID('dbo.t', 'U')") == plain.value(
        "SELECT object_id FROM sys.tables WHERE name = 't'"
    )


def test_tsql_users_roles_and_grants(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int) CREATE TABLE dbo.u (id int) CREATE ROLE reading")
    plain.run("GRANT SELECT ON dbo.t TO reading")
    user = plain.user("ALTER ROLE reading ADD MEMBER {user}")
    assert user.run("SELECT * FROM dbo.t") == []
    error = user.error("SELECT * FROM dbo.u")
    text = f"The SELECT permission was denied on the object 'u', database '{plain.name}', schema 'dbo'."
    assert (error.number, error.severity, error.state, error.text) == (229, 14, 5, text)
    assert user.number("INSERT INTO dbo.t VALUES (1)") == 229
    plain.run("GRANT SELECT ON SCHEMA::dbo TO reading")
    assert user.run("SELECT id FROM dbo.t UNION ALL SELECT id FROM dbo.u") == []
    name = user.value("SELECT SUSER_SNAME()")
    assert user.run("SELECT IS_MEMBER('reading'), IS_MEMBER('db_owner'), IS_SRVROLEMEMBER('sysadmin')") == [(1, 0, 0)]
    plain.run(f"ALTER ROLE reading DROP MEMBER {name}")
    assert user.number("SELECT * FROM dbo.t") == 229


def test_tsql_reader_role_of_the_database(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int)")
    user = plain.user("ALTER ROLE db_datareader ADD MEMBER {user}")
    assert user.run("SELECT * FROM dbo.t") == []
    assert user.number("INSERT INTO dbo.t VALUES (1)") == 229


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 102) SELECT MAX(i) FROM n", 530),
        ("WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT * FROM n", 530),
        ("WITH n AS (SELECT 1 AS i UNION SELECT i + 1 FROM n WHERE i < 9) SELECT MAX(i) FROM n", 252),
        ("WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 0.5 FROM n WHERE i < 9) SELECT MAX(i) FROM n", 240),
        ("WITH n AS (SELECT 'a' AS i UNION ALL SELECT i + 'b' FROM n WHERE LEN(i) < 9) SELECT MAX(i) FROM n", 240),
    ],
)
def test_tsql_recursion_has_limits(plain: Database, query: str, number: int) -> None:
    assert plain.number(query) == number
    assert (
        plain.value("WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 101) SELECT MAX(i) FROM n") == 101
    )


# docs (AT TIME ZONE): a time that the clock leaves out, and one that it shows twice
@pytest.mark.parametrize(
    ("value", "zone", "shown"),
    [
        ("'2022-03-27T01:01:00'", "Central European Standard Time", "2022-03-27 01:01:00 +01:00"),
        ("'2022-03-27T02:01:00'", "Central European Standard Time", "2022-03-27 03:01:00 +02:00"),
        ("'2022-03-27T03:01:00'", "Central European Standard Time", "2022-03-27 03:01:00 +02:00"),
        ("'2022-10-30T01:33:00'", "Central European Standard Time", "2022-10-30 01:33:00 +02:00"),
        ("'2022-10-30T02:33:00'", "Central European Standard Time", "2022-10-30 02:33:00 +02:00"),
        ("'2022-10-30T03:33:00'", "Central European Standard Time", "2022-10-30 03:33:00 +01:00"),
        ("'2022-07-01T12:00:00'", "Pacific Standard Time", "2022-07-01 12:00:00 -07:00"),
        ("'2022-07-01T12:00:00'", "AUS Eastern Standard Time", "2022-07-01 12:00:00 +10:00"),
        ("'1969-07-01T12:00:00'", "utc", "1969-07-01 12:00:00 +00:00"),
        ("'2022-07-01T12:00:00'", "India Standard Time", "2022-07-01 12:00:00 +05:30"),
        ("NULL", "UTC", None),
    ],
)
def test_tsql_at_time_zone(plain: Database, value: str, zone: str, shown: str | None) -> None:
    expression = f"CAST({value} AS datetime2(0)) AT TIME ZONE '{zone}'"
    assert plain.value(f"SELECT CONVERT(varchar(40), {expression})") == shown


def test_tsql_at_time_zone_from_another(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.z (id int, d datetime, o datetimeoffset(7))")
    plain.run("INSERT INTO dbo.z VALUES (1, '2024-01-15T10:30:00.997', '2024-07-15T10:30:00.1234567+00:00')")
    found = plain.run(
        "DECLARE @zone nvarchar(128) = N'Eastern Standard Time'"
        " SELECT CONVERT(varchar(40), d AT TIME ZONE 'UTC' AT TIME ZONE @zone),"
        " CONVERT(varchar(40), o AT TIME ZONE @zone) FROM dbo.z"
    )
    assert found == [("2024-01-15 05:30:00.997 -05:00", "2024-07-15 06:30:00.1234567 -04:00")]
    assert plain.number("SELECT CAST('2024-01-15' AS date) AT TIME ZONE 'UTC'") == 8116
