"""SELECT: joins, grouping, ordering, set operations, subqueries, over a small table."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from airflow_provider_mssql_cdc.sandbox.types import SqlType
from tests.sandbox.tsql.conftest import Client

_SETUP = """
CREATE SCHEMA q
CREATE TABLE q.people (id int PRIMARY KEY, name nvarchar(20) NULL, town varchar(10) NULL, pay decimal(8,2) NULL)
CREATE TABLE q.towns (town char(10) NOT NULL PRIMARY KEY, code binary(4) NOT NULL)
INSERT INTO q.people VALUES (1, N'Ann', 'Ulm', 10.00), (2, N'bob', 'ULM ', 20.50), (3, N'Cid', NULL, NULL),
  (4, N'ann', 'Bonn', 5.25)
INSERT q.towns (town, code) VALUES ('ulm', 0x01), ('Bonn', 0x0102), ('Kiel', 0xFF)
"""


@pytest.fixture(scope="module", autouse=True)
def _tables(sandbox: Any) -> None:
    sandbox.execute(_SETUP)


CASES: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("SELECT id FROM q.people WHERE name = 'ANN' ORDER BY id", [(1,), (4,)]),
    ("SELECT id FROM q.people WHERE name IN ('BOB', N'cid') ORDER BY id", [(2,), (3,)]),
    ("SELECT id FROM q.people ORDER BY town, id", [(3,), (4,), (1,), (2,)]),
    ("SELECT id FROM q.people ORDER BY town DESC, id DESC", [(2,), (1,), (4,), (3,)]),
    ("SELECT name AS id FROM q.people WHERE id < 3 ORDER BY 1 DESC", [("bob",), ("Ann",)]),
    ("SELECT p.id, t.code FROM q.people p JOIN q.towns t ON p.town = t.town ORDER BY p.id",
     [(1, b"\1\0\0\0"), (2, b"\1\0\0\0"), (4, b"\1\2\0\0")]),
    ("SELECT t.town, p.id FROM q.towns AS t LEFT JOIN q.people AS p ON p.town = t.town AND p.id <> 2 ORDER BY t.town",
     [("Bonn      ", 4), ("Kiel      ", None), ("ulm       ", 1)]),
    ("SELECT COUNT(*) FROM q.people, q.towns", [(12,)]),
    ("SELECT COUNT(*) FROM q.people a FULL OUTER JOIN q.towns b ON a.town = b.town", [(5,)]),
    ("SELECT COUNT(town), COUNT(DISTINCT town), COUNT(*) FROM q.people", [(3, 2, 4)]),
    ("SELECT MAX(name), MIN(name), SUM(pay), AVG(pay), SUM(id), AVG(id) FROM q.people",
     [("Cid", "Ann", Decimal("35.75"), Decimal("11.916666"), 10, 2)]),
    ("SELECT COUNT(*), SUM(pay) FROM q.people GROUP BY town HAVING COUNT(*) > 1", [(2, Decimal("30.50"))]),
    ("SELECT UPPER(town), COUNT(*) FROM q.people WHERE town IS NOT NULL GROUP BY UPPER(town) ORDER BY COUNT(*) DESC",
     [("ULM", 2), ("BONN", 1)]),
    ("SELECT COUNT(*) FROM (SELECT DISTINCT town FROM q.people) AS d", [(3,)]),
    ("SELECT IIF(id > 1, 'more', 'one'), COUNT(*) FROM q.people GROUP BY IIF(id > 1, 'more', 'one') ORDER BY 2",
     [("one", 1), ("more", 3)]),
    ("SELECT TOP (2) id FROM q.people ORDER BY id DESC", [(4,), (3,)]),
    ("SELECT TOP 1 id FROM q.people ORDER BY pay", [(3,)]),
    ("SELECT id FROM q.people ORDER BY id OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY", [(2,), (3,)]),
    ("SELECT id FROM q.people WHERE town NOT IN ('Ulm', NULL)", []),
    ("SELECT id FROM q.people WHERE id NOT BETWEEN 2 AND 3 ORDER BY id", [(1,), (4,)]),
    (
        "SELECT id FROM q.people p WHERE EXISTS (SELECT 1 "
        "FROM q.towns WHERE town = p.town) ORDER BY id"
    , [(1,), (2,), (4,)]),
    ("SELECT id FROM q.people WHERE town IN (SELECT town FROM q.towns WHERE code < 0x0102)  ORDER BY id", [(1,), (2,)]),
    ("SELECT id, (SELECT MAX(code) FROM q.towns t WHERE t.town = p.town) FROM q.people p WHERE id > 2 ORDER BY id",
     [(3, None), (4, b"\1\2\0\0")]),
    ("SELECT town FROM q.towns WHERE code = 0x01", [("ulm       ",)]),
    ("SELECT town FROM q.towns WHERE code > 0x0102 AND code <= 0xFFFF", [("Kiel      ",)]),
    ("SELECT id FROM q.people WHERE name LIKE 'a%' ORDER BY id", [(1,), (4,)]),
    (
        "SELECT v.p FROM (VALUES (N'A%'), (N'_o_'), (N'!%') ) v (p) WHERE EXISTS (SELECT 1 FROM q.people "
        "WHERE name LIKE v.p ESCAPE N'!')"

     " ORDER BY v.p", [("_o_",), ("A%",)]),
    (
        "SELECT x.s FROM (VALUES ('[t]'), ('T]'), (N'sl\\ash'), ('a_b'), ('axb'), ('c%d'), ('cxd')) AS x (s) "
        "JOIN (VALUES ('\\[t\\]'), ('sl\\\\as_'), ('a\\_b'), ('c\\%%')) AS y (p) "
        "ON x.s LIKE y.p ESCAPE '\\' ORDER BY x.s",
        [("[t]",), ("a_b",), ("c%d",), ("sl\\ash",)],
    ),
    ("SELECT id FROM q.people WHERE name NOT LIKE 'a%' ORDER BY id", [(2,), (3,)]),
    ("SELECT id FROM q.people WHERE name NOT LIKE 'a!%' ESCAPE '!' ORDER BY id", [(1,), (2,), (3,), (4,)]),
    ("SELECT id FROM q.people WHERE id >= ALL (SELECT id FROM q.people)", [(4,)]),
    ("SELECT id FROM q.people WHERE town = ANY (SELECT 'ULM ') ORDER BY id", [(1,), (2,)]),
    ("SELECT id FROM q.people p WHERE id < SOME (SELECT id FROM q.people WHERE id < 3) ORDER BY id", [(1,)]),
    ("SELECT 1 AS n UNION ALL SELECT 2.5 ORDER BY n DESC", [(Decimal("2.5"),), (Decimal("1.0"),)]),
    ("SELECT 'a' AS x UNION SELECT 'A ' UNION SELECT 'b' ORDER BY x", [("a",), ("b",)]),
    ("SELECT NULL AS x UNION ALL SELECT NULL UNION ALL SELECT N'z' ORDER BY x", [(None,), (None,), ("z",)]),
    ("SELECT id FROM q.people EXCEPT SELECT 2 ORDER BY id", [(1,), (3,), (4,)]),
    ("WITH a (n) AS (SELECT id FROM q.people), b AS (SELECT n + 1 AS m FROM a) SELECT SUM(m) FROM b", [(14,)]),
    ("SELECT id, ROW_NUMBER() OVER (PARTITION BY name ORDER BY id DESC) FROM q.people ORDER BY id",
     [(1, 2), (2, 1), (3, 1), (4, 1)]),
    ("SELECT id, SUM(id) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) FROM q.people ORDER BY id",
     [(1, 1), (2, 3), (3, 6), (4, 10)]),
    ("SELECT * FROM (SELECT id, pay FROM q.people) AS t (a, b) WHERE b IS NULL", [(3, None)]),
    ("SELECT p.* FROM q.people AS p WITH (NOLOCK) WHERE p.id = 1", [(1, "Ann", "Ulm", Decimal("10.00"))]),
    ('SELECT  "id","name" FROM (select * from [q].[people]) SPARK_GEN_SUBQ_0 WHERE ("id" = 1)   ', [(1, "Ann")]),
    ("SELECT id FROM shop.q.people WHERE pay = '5.25' OR pay = 20.5 ORDER BY id", [(2,), (4,)]),
    ("SELECT OBJECT_NAME(object_id), OBJECT_SCHEMA_NAME(object_id, DB_ID('shop')) FROM sys.tables WHERE name = 'TOWNS'",
     [("towns", "q")]),
    ("SELECT town FROM q.people EXCEPT SELECT code_of.t FROM (VALUES ('bonn ')) code_of (t) ORDER BY town",
     [(None,), ("Ulm",)]),
    ("SELECT town FROM q.people INTERSECT SELECT v FROM (VALUES (NULL), ('ULM'), ('x')) n (v) ORDER BY town",
     [(None,), ("Ulm",)]),
    ("SELECT p.id, t.code FROM q.people p CROSS APPLY (SELECT code FROM q.towns WHERE town = p.town) t ORDER BY p.id",
     [(1, b"\1\0\0\0"), (2, b"\1\0\0\0"), (4, b"\1\2\0\0")]),
    (
        "SELECT p.id, n.id FROM q.people p OUTER APPLY (SELECT TOP 1 o.id FROM q.people o WHERE o.id > p.id"
        " AND o.town = p.town ORDER BY o.id DESC) AS n ORDER BY p.id",
        [(1, 2), (2, None), (3, None), (4, None)],
    ),
    ("SELECT p.id, v.k FROM q.people p CROSS APPLY (VALUES (p.id * 10), (0)) v (k) WHERE p.id < 3 ORDER BY p.id, v.k",
     [(1, 0), (1, 10), (2, 0), (2, 20)]),
    ("SELECT town, STRING_AGG(name, '; ') WITHIN GROUP (ORDER BY id DESC) FROM q.people GROUP BY town ORDER BY town",
     [(None, "Cid"), ("Bonn", "ann"), ("Ulm", "bob; Ann")]),
    ("SELECT STRING_AGG(town, N'+') FROM q.people WHERE id > 2", [("Bonn",)]),
    (
        "SELECT id, SUM(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING), LAST_VALUE(id) OVER"
        " (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING), LAG(id, 2, -1) OVER (ORDER BY id),"
        " PERCENT_RANK() OVER (ORDER BY id), CUME_DIST() OVER (ORDER BY id) FROM q.people WHERE id < 4 ORDER BY id",
        [(1, 3, 3, -1, 0.0, 1 / 3), (2, 6, 3, -1, 0.5, 2 / 3), (3, 5, 3, 1, 1.0, 1.0)],
    ),
    ("SELECT DISTINCT TOP 2 town FROM q.people ORDER BY town DESC", [("Ulm",), ("Bonn",)]),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "rows"), CASES, ids=[case[0] for case in CASES])
def test_query(client: Client, sql: str, rows: list[tuple[Any, ...]]) -> None:
    assert client.run(sql) == rows


def test_declared_types_come_through(client: Client) -> None:
    client.run(
        "SELECT d.code, d.town, d.n, d.big FROM (SELECT code, town, COUNT(*) AS n, COUNT_BIG(*) AS "
        "big FROM q.towns GROUP BY code, town) AS d"
    )
    assert [(c.name, c.type, c.nullable) for c in client.columns[0]] == [
        ("code", SqlType("binary", 4), False),
        ("town", SqlType("char", 10), False),
        ("n", SqlType("int"), False),
        ("big", SqlType("bigint"), False),
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM q.people FOR XML PATH('')",
        "SELECT * FROM q.people TABLESAMPLE (10 ROWS)",
        "SELECT s.value FROM q.people p CROSS APPLY STRING_SPLIT(p.name, ',') AS s",
        "DECLARE c CURSOR FOR SELECT 1",
        "SELECT TOP 1 WITH TIES id FROM q.people ORDER BY id",
        "SELECT id FROM q.people GROUP BY ROLLUP(id)",
        "UPDATE q.people SET name",
        "MERGE q.people USING q.towns ON 1 = 0 WHEN MATCHED THEN DELETE;",
        "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY id) OVER () FROM q.people",
        "SELECT CONCAT_WS('-', name, 'x') FROM q.people",
        "SELECT * FROM sys.procedures",
        "EXEC sp_fkeys 'people'",
        "SELECT * FROM INFORMATION_SCHEMA.ROUTINES",
        "SELECT * FROM sys.system_views",
        "SELECT PARSENAME('a.b', 1)",
        "SELECT IDENT_CURRENT('q.people')",
        "SELECT * FROM msdb.dbo.sysjobhistory",
        "SELECT * FROM STRING_SPLIT('a,b', ',')",
        "CREATE PROCEDURE q.p AS SELECT 1",
        "CREATE TABLE q.c (a int CHECK (a > 0))",
    ],
)
def test_what_is_missing_is_refused(client: Client, sql: str) -> None:
    assert client.error(sql) in (50000, 102)


def test_set_rowcount_limits(client: Client) -> None:
    assert client.run("SET ROWCOUNT 2 SELECT id FROM q.people ORDER BY id SET ROWCOUNT 0") == [(1,), (2,)]
    assert len(client.run("SELECT id FROM q.people")) == 4


def test_fmtonly_gives_columns_and_no_rows(client: Client) -> None:
    assert client.sets("SET FMTONLY ON SELECT * FROM q.people DELETE q.people SET FMTONLY OFF") == [[]]
    assert [column.name for column in client.columns[0]] == ["id", "name", "town", "pay"]
    assert client.value("COUNT(*) FROM q.people") == 4


def test_variables_and_control_flow(client: Client) -> None:
    rows = client.sets(
        """
        DECLARE @n int = 2, @name nvarchar(20)
        SELECT @name = name, @n = @n + id FROM q.people WHERE id = 2
        IF @n = 4 AND EXISTS (SELECT 1 FROM q.people WHERE name = @name)
        BEGIN
          SET @n += 1
          SELECT @n, @name
        END
        ELSE SELECT 0
        IF @n > 100 SELECT 1; ELSE SELECT @@ROWCOUNT
        """
    )
    assert rows == [[(5, "bob")], [(1,)]]


def test_executesql_with_parameters_and_output(client: Client) -> None:
    sql = """
    DECLARE @found int
    EXEC sp_executesql N'SELECT @out = id FROM q.people WHERE pay > @low AND name = SUBSTRING(@names, 1, 3)',
      N'@low decimal(8,2), @names varchar(10), @out int OUTPUT', @low = 1, @names = 'bobxyz', @out = @found OUTPUT
    SELECT @found
    """
    assert client.run(sql) == [(2,)]
    assert client.error("EXEC sp_executesql N'SELECT @a', N'@a int'") == 8178


def test_return_status_and_output_of_calls(client: Client) -> None:
    rows = client.sets(
        "DECLARE @n int, @rc int, @s nvarchar(100) = N'SELECT @x += 1 SELECT @x'"
        " EXEC @rc = sp_executesql @s, N'@y int, @x int OUT', @x = @n OUTPUT, @y = 1 SELECT @n, @rc"
        " SET @n = 4 EXEC @rc = sp_executesql @s, N'@x int OUTPUT', @n OUT SELECT @n, @rc"
        " EXEC @rc = sys.sp_cdc_disable_table 'q', 'people', 'none' SELECT @rc"
    )
    assert rows == [[(None,)], [(None, 0)], [(5,)], [(5, 0)], [(1,)]]
    assert [message.number for message in client.messages] == [22901]


def test_variables_that_gather_rows(client: Client) -> None:
    client.run(
        "DROP TABLE IF EXISTS #g SELECT * INTO #g FROM (VALUES (1, N'a', 5), (2, N'b', NULL), (3, N'c', 7)) v(i, s, n)"
    )
    rows = client.sets(
        "DECLARE @all nvarchar(max) = N'', @back nvarchar(9), @sum int = 0, @cut varchar(3) = '>'"
        " SELECT @all = @all + QUOTENAME(s) + N',' FROM #g ORDER BY i"
        " SELECT @back = ISNULL(@back + N';', N'') + g.s, @sum += COALESCE(n, 0) FROM #g AS g ORDER BY g.i DESC"
        " SELECT @cut += s FROM #g WHERE n IS NOT NULL OR i = 2"
        " SELECT @all, @back, @sum, @cut, @@ROWCOUNT"
        " SELECT @all = @all + s FROM #g WHERE i > 3 SELECT @sum = @sum + n FROM #g SELECT @all, @sum"
    )
    assert rows == [[("[a],[b],[c],", "c;b;a", 12, ">ab", 3)], [("[a],[b],[c],", None)]]
    assert client.error("DECLARE @s int = 0 SELECT @s = @s + (SELECT MAX(i) FROM #g AS o WHERE o.i = g.i) FROM #g AS g")


def test_print_and_raiserror(client: Client) -> None:
    client.sets("PRINT 'a' + 'b' RAISERROR('low', 10, 1) RAISERROR('high', 16, 2) THROW 51000, 'thrown', 1")
    assert [(m.number, m.text, m.severity) for m in client.messages] == [
        (0, "ab", 0),
        (50000, "low", 10),
        (50000, "high", 16),
        (51000, "thrown", 16),
    ]


def test_two_sessions_have_their_own_settings(connect: Callable[..., Client]) -> None:
    one, two = connect(), connect()
    one.run("USE master SET NOCOUNT ON")
    assert (one.value("DB_NAME()"), two.value("DB_NAME()")) == ("master", "shop")
    assert one.value("@@SPID") != two.value("@@SPID")
