"""T-SQL as far as CDC readers and administrators go: batches, control flow, errors and transactions."""

from __future__ import annotations

import threading

import pymssql
import pytest

from tests.support.conformance.client import Client, Row
from tests.support.conformance.database import Database
from tests.support.conformance.not_built import right_or_refused
from tests.support.conformance.servers import Server


@pytest.mark.parametrize(
    ("batch", "rows"),
    [
        pytest.param("DECLARE @a int SET @a = 1 SELECT @a SELECT @a + 1", [[(1,)], [(2,)]], id="no-semicolons"),
        pytest.param("DECLARE @a int = 3, @b varchar(5) = 'x' SELECT @a, @b", [[(3, "x")]], id="declare-with-values"),
        pytest.param("DECLARE @a int SELECT @a = 5 SELECT @a", [[(5,)]], id="select-into-a-variable"),
        pytest.param("DECLARE @a int = 2 SET @a += 3 SELECT @a", [[(5,)]], id="compound-assignment"),
        pytest.param("DECLARE @a int SELECT @a", [[(None,)]], id="variables-begin-as-null"),
        pytest.param("-- one\nSELECT 1 /* two /* nested */ still */ AS a", [[(1,)]], id="comments"),
        pytest.param("SELECT 'it''s', N'x', 0x0A, 1.50, -1, 1e0", None, id="literals"),
        pytest.param("IF 1 = 1 SELECT 'yes' ELSE SELECT 'no'", [[("yes",)]], id="if"),
        pytest.param("IF 1 = 2 SELECT 1 ELSE IF 2 = 2 SELECT 2 ELSE SELECT 3", [[(2,)]], id="else-if"),
        pytest.param("IF NULL = NULL SELECT 'yes' ELSE SELECT 'no'", [[("no",)]], id="if-unknown"),
        pytest.param("IF EXISTS (SELECT 1) BEGIN SELECT 1 SELECT 2 END SELECT 3", [[(1,)], [(2,)], [(3,)]], id="block"),
        pytest.param(
            "IF NOT EXISTS (SELECT * FROM sys.tables WHERE name = 'x') SELECT 0", [[(0,)]], id="if-not-exists"
        ),
        pytest.param("SELECT 1 RETURN SELECT 2", [[(1,)]], id="return"),
        pytest.param("EXEC('SELECT 1 SELECT 2')", [[(1,)], [(2,)]], id="dynamic"),
        pytest.param("DECLARE @s nvarchar(50) = N'SELECT ' + '7' EXEC(@s)", [[(7,)]], id="dynamic-variable"),
        pytest.param("EXEC('SET LOCK_TIMEOUT 5') SELECT @@LOCK_TIMEOUT", [[(-1,)]], id="set-in-a-string-lock-timeout"),
        pytest.param(
            "SET LOCK_TIMEOUT 7 EXEC sp_executesql N'SET LOCK_TIMEOUT 5 SELECT @@LOCK_TIMEOUT' SELECT @@LOCK_TIMEOUT",
            [[(5,)], [(7,)]],
            id="set-in-sp_executesql",
        ),
        pytest.param(
            "EXEC('SET TRANSACTION ISOLATION LEVEL SERIALIZABLE') SELECT transaction_isolation_level"
            " FROM sys.dm_exec_sessions WHERE session_id = @@SPID",
            [[(2,)]],
            id="set-in-a-string-isolation",
        ),
        pytest.param(
            "EXEC('SET IMPLICIT_TRANSACTIONS ON') SELECT COUNT(*) FROM sys.tables WHERE name = 'no' SELECT @@TRANCOUNT",
            [[(0,)], [(0,)]],
            id="set-in-a-string-implicit-transactions",
        ),
        pytest.param("EXEC sp_executesql N'SELECT @a + 1', N'@a int', @a = 4", [[(5,)]], id="sp_executesql"),
        pytest.param(
            "DECLARE @r int EXEC sp_executesql N'SET @o = @i * 2', N'@i int, @o int OUTPUT', 21, @r OUTPUT SELECT @r",
            [[(42,)]],
            id="sp_executesql-output",
        ),
        pytest.param(
            "DECLARE @i int = 0, @s int = 0 WHILE @i < 5 BEGIN SET @i = @i + 1 SET @s = @s + @i END SELECT @s",
            [[(15,)]],
            id="while",
        ),
        pytest.param(
            "DECLARE @i int = 0 WHILE 1 = 1 BEGIN SET @i += 1 IF @i = 2 CONTINUE IF @i > 3 BREAK SELECT @i END",
            [[(1,)], [(3,)]],
            id="break-and-continue",
        ),
        pytest.param("SET NOCOUNT ON SELECT 1 UNION ALL SELECT 2 SELECT @@ROWCOUNT", None, id="rowcount"),
        pytest.param(
            "DECLARE @d datetime = '2024-01-31' SELECT CONVERT(varchar(10), DATEADD(month, 1, @d), 120)",
            [[("2024-02-29",)]],
            id="dates",
        ),
        pytest.param("SELECT @@TRANCOUNT BEGIN TRAN SELECT @@TRANCOUNT ROLLBACK SELECT @@TRANCOUNT",
                     [[(0,)], [(1,)], [(0,)]], id="trancount"),
        pytest.param("SET ANSI_NULLS, QUOTED_IDENTIFIER ON SELECT 1", [[(1,)]], id="set-several-options"),
        pytest.param(
            "ALTER DATABASE CURRENT SET RECOVERY SIMPLE WITH NO_WAIT"
            " SELECT recovery_model, recovery_model_desc FROM sys.databases WHERE name = DB_NAME()",
            [[(3, "SIMPLE")]],
            id="recovery-model",
        ),
        pytest.param(
            "ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON WITH ROLLBACK IMMEDIATE"
            " SELECT is_read_committed_snapshot_on FROM sys.databases WHERE name = DB_NAME()",
            [[(True,)]],
            id="alter-database-with-rollback",
        ),
        pytest.param("RECONFIGURE WITH OVERRIDE SELECT 1", [[(1,)]], id="reconfigure-with-override"),
    ],
)  # fmt: skip
def test_tsql_batches(plain: Database, batch: str, rows: list[list[Row]] | None) -> None:
    found = [result.rows for result in plain.sets(batch)]
    assert found if rows is None else found == rows


def test_tsql_rowcount(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY, a int)")
    assert plain.value("INSERT INTO dbo.t VALUES (1, 1), (2, 2), (3, 3) SELECT @@ROWCOUNT") == 3
    assert plain.value("UPDATE dbo.t SET a = 9 WHERE id > 1 SELECT @@ROWCOUNT") == 2
    assert plain.value("DELETE FROM dbo.t WHERE id = 7 SELECT @@ROWCOUNT") == 0
    assert [result.rows for result in plain.sets("SELECT id FROM dbo.t ORDER BY id SELECT @@ROWCOUNT")][-1] == [(3,)]


def test_tsql_batch_is_checked_before_anything_runs(plain: Database) -> None:
    assert plain.number("CREATE TABLE dbo.t (id int) SELECT FROM WHERE") in (102, 156)
    assert plain.value("SELECT OBJECT_ID('dbo.t')") is None


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1 LIMIT 5",
        "SELECT 1::int",
        "SHOW TABLES",
        "CREATE TABLE dbo.x AS SELECT 1",
    ],
)
def test_tsql_other_dialects_are_no_tsql(plain: Database, statement: str) -> None:
    error = plain.error(f"SELECT 1\n{statement}")
    assert error.number in (102, 156, 2812, 319) or "not supported by the sandbox" in error.text
    assert error.line == 2


def test_tsql_what_is_not_known_is_refused(server: Server, plain: Database) -> None:
    server.only_embedded("it has this")
    error = plain.error("CHECKPOINT")
    assert error.number == 102 or "not supported by the sandbox" in error.text
    assert error.line == 1


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("SELECT POWER(2, 10)", 1024),
        ("SELECT STUFF('abcdef', 2, 3, 'X')", "aXef"),
        ("SELECT REVERSE('abc')", "cba"),
        ("SELECT FORMAT(CAST('20240229' AS date), 'yyyy-MM')", "2024-02"),
        ("SELECT ISNUMERIC('1e5')", 1),
    ],
)
def test_tsql_functions_that_are_not_known_are_refused_plainly(plain: Database, query: str, value: object) -> None:
    right_or_refused(plain, query, value)


# Names


def test_tsql_three_part_names_and_use(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int) INSERT INTO dbo.t VALUES (1)")
    other = plain.connect()
    other.run("USE master")
    assert other.value("SELECT DB_NAME()") == "master"
    assert other.run(f"SELECT id FROM {plain.name}.dbo.t") == [(1,)]
    assert other.run(f"SELECT id FROM [{plain.name}]..[t]") == [(1,)]
    other.run(f"INSERT INTO {plain.name}.dbo.t VALUES (2) UPDATE {plain.name}.dbo.t SET id = 5 WHERE id = 2")
    other.run(f"DELETE FROM {plain.name}.dbo.t WHERE id = 1")
    assert other.run(f"USE {plain.name} SELECT DB_NAME() SELECT id FROM t") == [(5,)]


def test_tsql_quoted_names(plain: Database) -> None:
    plain.run("CREATE SCHEMA [odd schema]")
    plain.run('CREATE TABLE [odd schema].[a]]b "c"] ([the id] int, "select" int)')
    plain.run('INSERT INTO [odd schema].[a]]b "c"] ([the id], [select]) VALUES (1, 2)')
    assert plain.names('SELECT * FROM [ODD SCHEMA].[A]]B "C"]') == ["the id", "select"]
    assert plain.run('SELECT "the id", x."select" AS [an alias] FROM [odd schema].[a]]b "c"] AS x') == [(1, 2)]


# Errors and transactions


def test_tsql_statement_error_leaves_the_transaction_open(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    assert plain.number("BEGIN TRAN INSERT INTO dbo.t VALUES (1) INSERT INTO dbo.t VALUES (1)") == 2627
    assert plain.value("SELECT @@TRANCOUNT") == 1
    plain.run("INSERT INTO dbo.t VALUES (2) COMMIT")
    assert plain.run("SELECT id FROM dbo.t ORDER BY id") == [(1,), (2,)]


def test_tsql_batch_goes_on_after_a_statement_error(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    error = plain.error("INSERT INTO dbo.t VALUES (1) INSERT INTO dbo.t VALUES (1) INSERT INTO dbo.t VALUES (2)")
    assert error.number == 2627
    assert plain.run("SELECT id FROM dbo.t ORDER BY id") == [(1,), (2,)]


def test_tsql_xact_abort(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    number = plain.number(
        "SET XACT_ABORT ON BEGIN TRAN INSERT INTO dbo.t VALUES (1) INSERT INTO dbo.t VALUES (1)"
        " INSERT INTO dbo.t VALUES (2) COMMIT"
    )
    assert number == 2627
    assert plain.value("SELECT @@TRANCOUNT") == 0
    assert plain.run("SELECT id FROM dbo.t") == []


def test_tsql_savepoints(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    plain.run(
        "BEGIN TRAN INSERT INTO dbo.t VALUES (1) SAVE TRAN one INSERT INTO dbo.t VALUES (2) SAVE TRANSACTION [two]"
        " INSERT INTO dbo.t VALUES (3) ROLLBACK TRAN two INSERT INTO dbo.t VALUES (4)"
    )
    assert plain.run("SELECT id FROM dbo.t ORDER BY id") == [(1,), (2,), (4,)]
    plain.run("ROLLBACK TRAN one")
    assert plain.run("SELECT id FROM dbo.t ORDER BY id") == [(1,)]
    assert plain.number("ROLLBACK TRAN nosuch") == 6401
    plain.run("COMMIT")
    assert plain.run("SELECT id FROM dbo.t ORDER BY id") == [(1,)]


def test_tsql_implicit_transactions(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    plain.run("SET IMPLICIT_TRANSACTIONS ON")
    assert plain.value("SELECT @@TRANCOUNT") == 0
    assert plain.run("SELECT id FROM dbo.t SELECT @@TRANCOUNT") == [(1,)]
    plain.run("COMMIT INSERT INTO dbo.t VALUES (1)")
    assert plain.value("SELECT @@TRANCOUNT") == 1
    plain.run("ROLLBACK SET IMPLICIT_TRANSACTIONS OFF INSERT INTO dbo.t VALUES (2)")
    assert plain.run("SELECT id FROM dbo.t") == [(2,)]
    assert plain.value("SELECT @@TRANCOUNT") == 0


def test_tsql_ddl_rolls_back(plain: Database) -> None:
    plain.run("BEGIN TRAN CREATE TABLE dbo.t (id int) INSERT INTO dbo.t VALUES (1)")
    plain.run("ROLLBACK")
    assert plain.value("SELECT OBJECT_ID('dbo.t')") is None


def test_tsql_snapshot_isolation_of_readers(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY, a int) INSERT INTO dbo.t VALUES (1, 1)")
    reader = plain.connect()
    begin = "SET TRANSACTION ISOLATION LEVEL SNAPSHOT BEGIN TRAN SELECT a FROM dbo.t"
    plain.run(f"ALTER DATABASE {plain.name} SET ALLOW_SNAPSHOT_ISOLATION ON")
    assert reader.run(begin) == [(1,)]
    plain.run("UPDATE dbo.t SET a = 2 INSERT INTO dbo.t VALUES (2, 2)")
    assert reader.run("SELECT id, a FROM dbo.t") == [(1, 1)]
    reader.run("COMMIT")
    assert reader.run("SELECT id, a FROM dbo.t ORDER BY id") == [(1, 2), (2, 2)]


def test_tsql_snapshot_isolation_must_be_allowed_memory(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    assert plain.number("SET TRANSACTION ISOLATION LEVEL SNAPSHOT BEGIN TRAN SELECT id FROM dbo.t") == 3952


def test_tsql_uncommitted_rows_are_not_read(plain: Database) -> None:
    plain.run(f"ALTER DATABASE {plain.name} SET READ_COMMITTED_SNAPSHOT ON")
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY) INSERT INTO dbo.t VALUES (1)")
    writer = plain.connect()
    writer.run("BEGIN TRAN INSERT INTO dbo.t VALUES (2) DELETE FROM dbo.t WHERE id = 1")
    assert plain.run("SELECT id FROM dbo.t") == [(1,)]
    assert writer.run("SELECT id FROM dbo.t") == [(2,)]
    writer.run("COMMIT")
    assert plain.run("SELECT id FROM dbo.t") == [(2,)]


def test_tsql_lock_timeout(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY) INSERT INTO dbo.t VALUES (1)")
    writer = plain.connect()
    writer.run("BEGIN TRAN UPDATE dbo.t SET id = 2")
    assert plain.number("SET LOCK_TIMEOUT 50 UPDATE dbo.t SET id = 3") == 1222
    writer.run("ROLLBACK")
    plain.run("UPDATE dbo.t SET id = 3")
    assert plain.run("SELECT id FROM dbo.t") == [(3,)]


_CAUGHT = """
BEGIN TRY
    SELECT 1
    {statement}
    SELECT 'not reached'
END TRY
BEGIN CATCH
    SELECT ERROR_NUMBER(), ERROR_SEVERITY(), ERROR_STATE(), ERROR_LINE(), ERROR_MESSAGE()
END CATCH
"""


@pytest.mark.parametrize(
    ("statement", "caught"),
    [
        ("SELECT 1 / 0", (8134, 16, 1, 4, "Divide by zero error encountered.")),
        ("RAISERROR('gone wrong', 16, 7)", (50000, 16, 7, 4, "gone wrong")),
        (";THROW 51000, 'thrown', 3", (51000, 16, 3, 4, "thrown")),
    ],
)
def test_tsql_try_and_catch(plain: Database, statement: str, caught: Row) -> None:
    results = [result.rows for result in plain.sets(_CAUGHT.format(statement=statement))]
    assert (results[0], results[-1]) == ([(1,)], [caught])
    assert [("not reached",)] not in results


def test_tsql_throw_again(plain: Database) -> None:
    error = plain.error(
        "BEGIN TRY\nRAISERROR('first', 16, 4)\nEND TRY\nBEGIN CATCH\nPRINT ERROR_MESSAGE();\nTHROW\nEND CATCH"
    )
    assert (error.number, error.text, error.state, error.line) == (50000, "first", 4, 2)


def test_tsql_low_severity_is_not_caught(plain: Database) -> None:
    batch = "BEGIN TRY RAISERROR('told', 10, 1) SELECT 'on' END TRY BEGIN CATCH SELECT 'caught' END CATCH"
    assert plain.value(batch) == "on"


def test_tsql_transaction_state_in_catch(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    batch = (
        "SET XACT_ABORT {} BEGIN TRY BEGIN TRAN INSERT INTO dbo.t VALUES (1) INSERT INTO dbo.t VALUES (1) END TRY"
        " BEGIN CATCH SELECT XACT_STATE(), @@TRANCOUNT IF @@TRANCOUNT > 0 ROLLBACK END CATCH"
    )
    assert plain.run(batch.format("OFF")) == [(1, 1)]
    assert plain.run(batch.format("ON")) == [(-1, 1)]
    assert plain.run("SELECT id FROM dbo.t") == []


def test_tsql_cdc_errors_are_caught(db: Database) -> None:
    batch = (
        "BEGIN TRY EXEC sys.sp_cdc_enable_table 'dbo', 'nosuch', @role_name = NULL END TRY"
        " BEGIN CATCH SELECT ERROR_NUMBER(), ERROR_SEVERITY() END CATCH"
    )
    assert db.run(batch) == [(22931, 16)]


@pytest.mark.parametrize(
    ("batch", "text"),
    [
        ("RAISERROR('%s has %d rows', 16, 1, 'dbo.t', 5)", "dbo.t has 5 rows"),
        ("RAISERROR('100%% of %i', 16, 1, 7)", "100% of 7"),
        ("DECLARE @n nvarchar(10) = N'é' RAISERROR(N'<%s>', 16, 1, @n)", "<é>"),
    ],
)
def test_tsql_raiserror_with_arguments(plain: Database, batch: str, text: str) -> None:
    assert plain.error(batch).text == text


# Temporary tables, and what procedures return


def test_tsql_temporary_table(plain: Database) -> None:
    plain.run("CREATE TABLE #work (id int IDENTITY PRIMARY KEY, name sysname)")
    plain.run("INSERT INTO #work (name) VALUES ('a'), ('b') UPDATE #work SET name = 'c' WHERE id = 2")
    assert plain.run("SELECT id, name FROM #work ORDER BY id") == [(1, "a"), (2, "c")]
    assert plain.connect().number("SELECT * FROM #work") == 208
    plain.run("DROP TABLE #work")
    assert plain.number("SELECT * FROM #work") == 208


def test_tsql_select_into(plain: Database) -> None:
    plain.run("SELECT 1 AS id, N'x' AS name INTO #work")
    assert plain.run("SELECT id, name FROM #work") == [(1, "x")]
    assert plain.value("SELECT OBJECT_ID('tempdb..#work')") is not None
    plain.run("IF OBJECT_ID('tempdb..#work') IS NOT NULL DROP TABLE #work")
    assert plain.value("SELECT OBJECT_ID('tempdb..#work')") is None


def test_tsql_changes_of_temporary_tables_are_no_changes(t: Database) -> None:
    t.commit(
        "CREATE TABLE #t (id int) BEGIN TRAN INSERT INTO #t VALUES (1) INSERT INTO dbo.t VALUES (1, 'x', 1) COMMIT"
    )
    assert t.changes("__$operation, __$command_id, id") == [(2, 1, 1)]


def test_tsql_insert_exec(t: Database) -> None:
    t.run(
        "CREATE TABLE #columns (a sysname, b sysname, c sysname, d sysname, e int, f int, g sysname, h int, i tinyint,"
        " j smallint, k int, l smallint)"
    )
    t.run("INSERT INTO #columns EXEC sys.sp_cdc_get_captured_columns 'dbo_t'")
    assert t.run("SELECT d, f FROM #columns ORDER BY f") == [("id", 1), ("a", 2), ("b", 3)]


def test_tsql_insert_exec_into_a_table(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (a int, b int)")
    plain.run("INSERT INTO dbo.t EXEC('SELECT 1, 2 UNION ALL SELECT 3, 4')")
    assert plain.run("SELECT a, b FROM dbo.t ORDER BY a") == [(1, 2), (3, 4)]


def test_tsql_script_that_tracks_every_table(db: Database) -> None:
    db.run("CREATE SCHEMA sales")
    db.run(
        "CREATE TABLE dbo.a (id int PRIMARY KEY) CREATE TABLE sales.b (id int PRIMARY KEY) CREATE TABLE dbo.c (id int)"
    )
    db.run(
        """
        SET NOCOUNT ON
        DECLARE @schema sysname, @name sysname, @id int, @role sysname
        SELECT ROW_NUMBER() OVER (ORDER BY t.name) AS id, s.name AS [schema], t.name INTO #todo
        FROM sys.tables AS t JOIN sys.schemas AS s ON s.schema_id = t.schema_id
        WHERE t.is_ms_shipped = 0 AND t.is_tracked_by_cdc = 0
        WHILE EXISTS (SELECT 1 FROM #todo)
        BEGIN
            SELECT TOP (1) @id = id, @schema = [schema], @name = name FROM #todo ORDER BY id
            BEGIN TRY
                EXEC sys.sp_cdc_enable_table @source_schema = @schema, @source_name = @name, @role_name = @role,
                    @supports_net_changes = 0
            END TRY
            BEGIN CATCH
                PRINT ERROR_MESSAGE()
            END CATCH
            DELETE FROM #todo WHERE id = @id
        END
        DROP TABLE #todo
        """
    )
    instances = db.run("SELECT capture_instance FROM cdc.change_tables ORDER BY capture_instance")
    assert instances == [("dbo_a",), ("dbo_c",), ("sales_b",)]


def test_tsql_a_database_in_use_is_not_dropped(plain: Database) -> None:
    assert plain.number(f"DROP DATABASE {plain.name}") == 3702
    other = plain.connect()
    plain.run("USE master")
    assert plain.number(f"DROP DATABASE {plain.name}") == 3702
    other.run(f"USE master; DROP DATABASE {plain.name}")
    assert plain.value(f"SELECT DB_ID('{plain.name}')") is None
    plain.run(f"CREATE DATABASE {plain.name}")


def test_tsql_a_database_for_a_single_user(plain: Database, server: Server) -> None:
    access = (
        f"SELECT user_access_desc FROM sys.databases WHERE name = '{plain.name}'"
        f" AND user_access_desc = DATABASEPROPERTYEX('{plain.name}', 'UserAccess')"
    )
    plain.run("CREATE TABLE dbo.t (id int)")
    other = plain.connect()
    other.run("BEGIN TRAN INSERT INTO dbo.t VALUES (1)")
    assert plain.number("ALTER DATABASE CURRENT SET SINGLE_USER WITH NO_WAIT") == 5061
    assert plain.value(access) == "MULTI_USER"
    assert other.run("SELECT id, @@TRANCOUNT FROM dbo.t") == [(1, 1)]
    plain.run("ALTER DATABASE CURRENT SET SINGLE_USER WITH ROLLBACK IMMEDIATE")
    assert plain.value(access) == "SINGLE_USER"
    assert plain.run("SELECT id FROM dbo.t") == []
    with pytest.raises(pymssql.Error):
        other.run("SELECT 1")
    with pytest.raises(pymssql.Error):
        Client(server.address, plain.name)
    elsewhere = Client(server.address)
    assert elsewhere.number(f"USE {plain.name}") == 924
    assert elsewhere.number(f"SELECT id FROM {plain.name}.dbo.t") == 924
    plain.run("ALTER DATABASE CURRENT SET MULTI_USER")
    assert elsewhere.run(f"USE {plain.name}; SELECT id FROM dbo.t") == []
    elsewhere.close()


def test_tsql_read_committed_snapshot_waits_for_other_connections(plain: Database) -> None:
    """docs (ALTER DATABASE SET, SET LOCK_TIMEOUT): whatever these do there, and however long it lasts."""
    option = f"SELECT is_read_committed_snapshot_on FROM sys.databases WHERE name = '{plain.name}'"
    setting = "ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT"
    plain.run(f"{setting} OFF WITH ROLLBACK IMMEDIATE CREATE TABLE dbo.t (id int)")
    other = plain.connect()
    other.run("BEGIN TRAN INSERT INTO dbo.t VALUES (1)")
    leaving = threading.Thread(target=other.run, args=("WAITFOR DELAY '00:00:00.100' COMMIT USE master",))
    leaving.start()
    plain.run(f"SET LOCK_TIMEOUT 0 {setting} ON")
    leaving.join()
    assert other.value("SELECT DB_NAME()") == "master"
    assert plain.value(option) is True
    other.run(f"USE {plain.name} BEGIN TRAN INSERT INTO dbo.t VALUES (2)")
    plain.run(f"{setting} OFF WITH ROLLBACK IMMEDIATE")
    with pytest.raises(pymssql.Error):
        other.run("SELECT 1")
    assert plain.value(option) is False
    assert plain.run("SELECT id FROM dbo.t") == [(1,)]


def test_tsql_read_committed_snapshot_without_a_wait_memory(plain: Database) -> None:
    plain.run("ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT OFF WITH ROLLBACK IMMEDIATE")
    other = plain.connect()
    other.run("CREATE TABLE dbo.t (id int) BEGIN TRAN INSERT INTO dbo.t VALUES (1)")
    assert plain.number("ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON WITH NO_WAIT") in (5061, 5070)
    other.run("COMMIT")


def test_tsql_a_single_user_waits_for_the_others(plain: Database) -> None:
    other = plain.connect()
    leaving = threading.Thread(target=other.run, args=("WAITFOR DELAY '00:00:00.100' USE master",))
    leaving.start()
    plain.run("ALTER DATABASE CURRENT SET SINGLE_USER WITH ROLLBACK AFTER 60 SECONDS")
    leaving.join()
    assert other.value("SELECT DB_NAME()") == "master"


@pytest.mark.parametrize(
    ("columns", "number"),
    [
        (["id int", *(f"c{i} int" for i in range(1023))], 0),
        (["id int", *(f"c{i} int" for i in range(1024))], 1702),
        (["id int", *(f"c{i} int SPARSE" for i in range(1023)), "rest xml COLUMN_SET FOR ALL_SPARSE_COLUMNS"], 0),
    ],
)
def test_tsql_most_columns_of_a_table(plain: Database, columns: list[str], number: int) -> None:
    create = f"CREATE TABLE dbo.wide ({', '.join(columns)})"
    if number:
        assert plain.number(create) == number
        return
    plain.run(create)
    assert plain.value("SELECT COUNT(*) FROM sys.columns WHERE object_id = OBJECT_ID('dbo.wide')") == len(columns)
    if len(columns) == 1024:
        assert plain.number("ALTER TABLE dbo.wide ADD more int") == 1702


@pytest.mark.parametrize("depth", [1, 200])
def test_tsql_nested_parentheses(plain: Database, depth: int) -> None:
    start, end = "(" * depth, ")" * depth
    assert plain.value(f"SELECT {'(1 + ' * depth}1{end}") == depth + 1
    assert plain.run(f"IF {start}1 = 1{end} SELECT {start}'yes'{end} WHERE {start}1 = 1{end}") == [("yes",)]
