"""Temporary tables, table variables, SELECT INTO, INSERT ... EXEC and OUTPUT INTO."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.sandbox.tsql.conftest import Client


@pytest.fixture(autouse=True)
def _table(client: Client) -> Iterator[None]:
    client.run("DROP TABLE IF EXISTS dbo.l CREATE TABLE dbo.l (id int IDENTITY(5, 5) PRIMARY KEY, a varchar(9) NULL)")
    client.run("INSERT dbo.l (a) VALUES ('x'), (NULL), ('z')")
    yield
    client.run("IF @@TRANCOUNT > 0 ROLLBACK")


def test_table_variable(client: Client) -> None:
    rows = client.run(
        "DECLARE @n int = 2, @t TABLE (id int PRIMARY KEY, a varchar(9) NOT NULL DEFAULT 'd', b AS (id * 2))"
        " INSERT @t (id, a) VALUES (1, 'x'), (@n, DEFAULT) INSERT INTO @t SELECT 3, 'z'"
        " UPDATE @t SET a = 'y' WHERE id = 1 DELETE FROM @t WHERE id = 3"
        " SELECT t.id, t.a, t.b, o.a FROM @t AS t LEFT JOIN dbo.l AS o ON o.id = 5 * t.id ORDER BY t.id"
    )
    assert rows == [(1, "y", 2, "x"), (2, "d", 4, None)]


def test_table_variable_keeps_constraints_and_is_not_rolled_back(client: Client) -> None:
    sets = client.sets(
        "DECLARE @t TABLE (id int PRIMARY KEY, a varchar(2) NOT NULL) INSERT @t VALUES (1, 'a')"
        " INSERT @t VALUES (2, 'b'), (1, 'c')"
        " INSERT @t (id) VALUES (3)"
        " INSERT @t VALUES (4, 'long')"
        " BEGIN TRAN INSERT @t VALUES (5, 'e') INSERT dbo.l DEFAULT VALUES ROLLBACK"
        " SELECT id FROM @t ORDER BY id SELECT COUNT(*) FROM dbo.l"
    )
    assert [message.number for message in client.messages if message.severity > 10] == [2627, 515, 2628]
    assert sets == [[(1,), (5,)], [(3,)]]


@pytest.mark.parametrize(
    ("sql", "number"),
    [
        ("DECLARE @t TABLE (a int) SELECT @t", 137),
        ("SELECT * FROM @t", 1087),
        ("DECLARE @t int INSERT @t VALUES (1)", 1087),
        ("DECLARE @t TABLE (a int) DECLARE @t int", 134),
        ("DECLARE @t TABLE (a int) EXEC ('SELECT a FROM @t')", 1087),
        ("DECLARE @t TABLE (a int, A int)", 2705),
        ("SELECT * FROM #none", 208),
        ("DROP TABLE #none", 3701),
        ("CREATE TABLE #t (a int) CREATE TABLE #T (a int)", 2714),
        ("SELECT id + 1 INTO #t FROM dbo.l", 1038),
        ("SELECT 1 AS x INTO dbo.l", 2714),
        ("CREATE TABLE ##t (a int)", 50000),
        ("CREATE TABLE #t (a int) ALTER TABLE #t ADD b int", 50000),
        ("DECLARE @t TABLE (a int) INSERT @t EXEC ('SELECT 1, 2')", 213),
        ("DECLARE @t TABLE (a int) INSERT @t EXEC ('DECLARE @u TABLE (a int) INSERT @u EXEC (''SELECT 1'')')", 8164),
        ("DECLARE @t TABLE (a int) INSERT dbo.l (a) OUTPUT inserted.id, inserted.a INTO @t VALUES ('q')", 213),
    ],
)
def test_error(client: Client, sql: str, number: int) -> None:
    assert client.error(sql) == number


def test_temporary_table_lives_as_long_as_its_session(client: Client, connect: Callable[..., Client]) -> None:
    client.run("CREATE TABLE #t (id int IDENTITY PRIMARY KEY, a nvarchar(10)) INSERT #t (a) VALUES ('a'), ('b'), ('c')")
    client.run("UPDATE #t SET a += N'!' WHERE id > 1 DELETE t FROM #t AS t JOIN dbo.l AS o ON t.a = N'b!' AND o.id = 5")
    assert client.run("SELECT * FROM #t ORDER BY id DESC") == [(3, "c!"), (1, "a")]
    assert client.run("SELECT COUNT(*) FROM tempdb..#t WHERE OBJECT_ID('tempdb..#t') IS NOT NULL") == [(2,)]
    assert connect().error("SELECT * FROM #t") == 208
    client.run("CREATE INDEX ix ON #t (a) TRUNCATE TABLE #t INSERT #t (a) VALUES ('d')")
    assert client.run("SELECT * FROM #t") == [(1, "d")]
    client.run("DROP TABLE IF EXISTS #t, #none")
    assert client.value("OBJECT_ID('tempdb..#t')") is None
    client.run("SELECT 1 AS x INTO #t")
    client.session.reset()
    assert client.error("SELECT * FROM #t") == 208


def test_temporary_table_is_rolled_back(client: Client) -> None:
    client.run("CREATE TABLE #t (a int) BEGIN TRAN INSERT #t VALUES (1) SAVE TRAN s INSERT #t VALUES (2)")
    client.run("CREATE TABLE #u (a int) ROLLBACK TRAN s")
    assert client.run("SELECT a FROM #t") == [(1,)]
    assert client.error("SELECT * FROM #u") == 208
    client.run("ROLLBACK DELETE #t" if client.value("@@TRANCOUNT") else "BEGIN TRAN ROLLBACK")
    assert client.run("SELECT a FROM #t") == []


def test_temporary_table_of_a_called_batch_goes_with_it(client: Client) -> None:
    client.run("CREATE TABLE #outer (a int) EXEC ('CREATE TABLE #inner (a int) INSERT #outer VALUES (1)')")
    assert client.run("SELECT * FROM #outer") == [(1,)]
    assert client.error("SELECT * FROM #inner") == 208


def test_select_into(client: Client) -> None:
    client.run("DROP TABLE IF EXISTS dbo.l2 SELECT *, CAST(1.5 AS decimal(5, 2)) AS d INTO dbo.l2 FROM dbo.l")
    client.run("INSERT dbo.l2 (a, d) VALUES ('new', 2)")
    assert [(*row[:2], str(row[2])) for row in client.run("SELECT * FROM dbo.l2 ORDER BY id")] == [
        (5, "x", "1.50"),
        (10, None, "1.50"),
        (15, "z", "1.50"),
        (16, "new", "2.00"),
    ]
    described = "SELECT name, is_nullable, is_identity FROM sys.columns WHERE object_id = OBJECT_ID('dbo.l2')"
    assert client.run(f"{described} ORDER BY column_id")[:2] == [("id", False, True), ("a", True, False)]
    client.run("WITH q AS (SELECT TOP 1 id FROM dbo.l ORDER BY id DESC) SELECT id INTO #q FROM q UNION ALL SELECT 7")
    assert client.run("SELECT id FROM #q ORDER BY id") == [(7,), (15,)]


def test_insert_of_what_a_call_returns(client: Client) -> None:
    client.run("CREATE TABLE #t (n bigint NULL, s varchar(20) NULL, d int NOT NULL DEFAULT 9)")
    client.run("INSERT INTO #t (n, s) EXEC ('SELECT id, a FROM dbo.l SELECT 1, NULL')")
    client.run("INSERT #t EXECUTE sp_executesql N'SELECT @a, ''s'', 3', N'@a int', @a = 4")
    assert client.value("@@ROWCOUNT") == 1
    assert client.run("SELECT * FROM #t") == [
        (5, "x", 9),
        (10, None, 9),
        (15, "z", 9),
        (1, None, 9),
        (4, "s", 3),
    ]
    assert client.error("INSERT #t (d) EXEC ('SELECT 1 SELECT NULL')") == 515
    assert client.value("COUNT(*) FROM #t") == 5


def test_columns_as_jdbc_asks_for_them(client: Client) -> None:
    rows = client.run(
        "DECLARE @temp_columns TABLE (TABLE_QUALIFIER SYSNAME, TABLE_OWNER SYSNAME, TABLE_NAME SYSNAME,"
        " COLUMN_NAME SYSNAME, DATA_TYPE SMALLINT, TYPE_NAME SYSNAME, PRECISION INT, LENGTH INT, SCALE SMALLINT,"
        " RADIX SMALLINT, NULLABLE SMALLINT, REMARKS VARCHAR(254), COLUMN_DEF NVARCHAR(4000), SQL_DATA_TYPE SMALLINT,"
        " SQL_DATETIME_SUB SMALLINT, CHAR_OCTET_LENGTH INT, ORDINAL_POSITION INT, IS_NULLABLE VARCHAR(254),"
        " SS_IS_SPARSE SMALLINT, SS_IS_COLUMN_SET SMALLINT, SS_IS_COMPUTED SMALLINT, SS_IS_IDENTITY SMALLINT,"
        " SS_UDT_CATALOG_NAME NVARCHAR(128), SS_UDT_SCHEMA_NAME NVARCHAR(128),"
        " SS_UDT_ASSEMBLY_TYPE_NAME NVARCHAR(MAX), SS_XML_SCHEMACOLLECTION_CATALOG_NAME NVARCHAR(128),"
        " SS_XML_SCHEMACOLLECTION_SCHEMA_NAME NVARCHAR(128), SS_XML_SCHEMACOLLECTION_NAME NVARCHAR(128),"
        " SS_DATA_TYPE TINYINT);"
        "INSERT INTO @temp_columns EXEC sp_columns_100 'l','dbo','shop','%',2,3;"
        "SELECT TABLE_QUALIFIER AS TABLE_CAT, TABLE_OWNER AS TABLE_SCHEM, TABLE_NAME, COLUMN_NAME,"
        " CAST(DATA_TYPE AS INT) AS DATA_TYPE, TYPE_NAME, PRECISION AS COLUMN_SIZE, LENGTH AS BUFFER_LENGTH,"
        " CAST(SCALE AS INT) AS DECIMAL_DIGITS, IS_NULLABLE, SS_IS_IDENTITY AS IS_AUTOINCREMENT"
        " FROM @temp_columns ORDER BY TABLE_CAT, TABLE_SCHEM, TABLE_NAME, ORDINAL_POSITION"
    )
    assert rows == [
        ("shop", "dbo", "l", "id", 4, "int identity", 10, 4, 0, "NO", 1),
        ("shop", "dbo", "l", "a", 12, "varchar", 9, 9, None, "YES", 0),
    ]


def test_output_into(client: Client) -> None:
    rows = client.sets(
        "DECLARE @log TABLE (id int, old varchar(9), new varchar(9))"
        " UPDATE dbo.l SET a = 'new' OUTPUT inserted.id, deleted.a, inserted.a INTO @log WHERE id < 15"
        " INSERT dbo.l (a) OUTPUT inserted.id, inserted.a INTO @log (id, new) VALUES ('add')"
        " DELETE dbo.l OUTPUT deleted.id, deleted.a INTO @log (id, old) WHERE id = 15"
        " SELECT * FROM @log"
    )
    assert rows == [[(5, "x", "new"), (10, None, "new"), (20, None, "add"), (15, "z", None)]]


def test_a_failed_output_into_takes_the_statement_back(client: Client) -> None:
    client.sets(
        "CREATE TABLE #t (a varchar(1) NOT NULL) UPDATE #t SET a = 'b' INSERT #t VALUES ('q')"
        " INSERT dbo.l (a) OUTPUT inserted.a INTO #t VALUES (NULL)"
        " DELETE #t OUTPUT 'long' INTO #t"
    )
    assert [message.number for message in client.messages if message.severity > 10] == [515, 2628]
    assert client.run("SELECT a FROM dbo.l") == [("x",), (None,), ("z",)]
    assert client.run("SELECT a FROM #t") == [("q",)]
