"""WHILE, TRY/CATCH, THROW and RAISERROR, and what becomes of transactions whose errors are caught."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.sandbox.tsql.conftest import Client

ERROR = "SELECT ERROR_NUMBER(), ERROR_SEVERITY(), ERROR_STATE(), ERROR_LINE(), ERROR_PROCEDURE(), ERROR_MESSAGE()"


@pytest.fixture(autouse=True)
def _table(client: Client) -> Iterator[None]:
    client.run("DROP TABLE IF EXISTS dbo.c CREATE TABLE dbo.c (id int PRIMARY KEY)")
    yield
    client.run("SET XACT_ABORT OFF IF @@TRANCOUNT > 0 ROLLBACK")


def _errors(client: Client) -> list[int]:
    return [message.number for message in client.messages if message.severity > 10]


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("DECLARE @i int = 0 WHILE @i < 5 SET @i += 1 SELECT @i", 5),
        ("DECLARE @i int = 0 WHILE 1 = 1 BEGIN SET @i += 1 IF @i = 7 BREAK END SELECT @i", 7),
        (
            "DECLARE @i int = 0, @n int = 0 WHILE @i < 10 BEGIN SET @i += 1; IF @i % 2 = 0 CONTINUE; SET @n += @i; END"
            " SELECT @n",
            25,
        ),
        (
            "DECLARE @i int = 0, @j int, @n int = 0 WHILE @i < 3 BEGIN SELECT @i += 1, @j = 0 WHILE (@j < 9)"
            " BEGIN SET @j += 1 SET @n += 1 IF @j = @i BREAK END END SELECT @n",
            6,
        ),
        ("WHILE (SELECT COUNT(*) FROM dbo.c) < 4 INSERT dbo.c SELECT COUNT(*) FROM dbo.c SELECT SUM(id) FROM dbo.c", 6),
    ],
)
def test_while(client: Client, sql: str, value: int) -> None:
    assert client.run(sql) == [(value,)]


@pytest.mark.parametrize(
    ("sql", "number"),
    [
        ("SELECT 1 BREAK", 135),
        ("IF 1 = 1 BEGIN CONTINUE END", 136),
        ("WHILE", 102),
        ("BEGIN TRY SELECT 1 END TRY", 102),
        ("BEGIN TRY SELECT 1 END BEGIN CATCH END CATCH", 156),
        ("BEGIN TRY END TRY BEGIN CATCH END CATCH", 102),
        ("GOTO done", 50000),
        ("THROW", 10704),
        ("THROW 49999, 'low', 1", 35100),
        ("THROW 50000, 'few'", 102),
        ("RAISERROR ('%d', 16, 1, 'text')", 2786),
        ("RAISERROR (50001, 16, 1)", 18054),
        ("RAISERROR (12999, 16, 1)", 2732),
        ("RAISERROR (13000, 16, 1)", 50000),
        ("RAISERROR ('x', 19, 1)", 2754),
        ("RAISERROR ('x', 16, 1) WITH NOTHING", 102),
    ],
)
def test_error(client: Client, sql: str, number: int) -> None:
    assert client.error(sql) == number


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("SELECT 1 / 0", (8134, 16, 1, 3, None, "Divide by zero error encountered.")),
        ("RAISERROR ('a %s', 12, 7, 'b')", (50000, 12, 7, 3, None, "a b")),
        ("THROW 50123, '100% sure', 9", (50123, 16, 9, 3, None, "100% sure")),
        ("EXEC ('SELECT 1\nSELECT * FROM dbo.none')", (208, 16, 1, 2, None, "Invalid object name 'dbo.none'.")),
        ("EXEC ('SELEC')", (2812, 16, 62, 1, None, "Could not find stored procedure 'SELEC'.")),
        ("EXEC ('SELECT (')", (102, 15, 1, 1, None, None)),
        (
            "EXEC sys.sp_cdc_enable_table 'dbo', 'c', @role_name = NULL",
            (22901, 16, 1, None, "sp_cdc_enable_table", None),
        ),
    ],
)
def test_catch_knows_the_error(client: Client, statement: str, error: tuple[Any, ...]) -> None:
    sets = client.sets(f"BEGIN TRY\nPRINT 'a'\n{statement}\nSELECT 0\nEND TRY BEGIN CATCH\n{ERROR}\nEND CATCH {ERROR}")
    assert not _errors(client)
    assert sets[-1] == [(None,) * 6]
    (caught,) = sets[-2]
    assert [one for one, other in zip(caught, error, strict=True) if other is not None] == [
        each for each in error if each is not None
    ]
    assert caught[4] == error[4]


def test_a_statement_without_error_skips_the_handler(client: Client) -> None:
    assert client.sets("BEGIN TRY SELECT 1; END TRY BEGIN CATCH SELECT 2; END CATCH; SELECT 3") == [[(1,)], [(3,)]]
    client.run("BEGIN TRY RAISERROR ('only a note', 10, 1) PRINT 'on' END TRY BEGIN CATCH SELECT 2 END CATCH")
    assert [message.text for message in client.messages] == ["only a note", "on"]


def test_errors_of_compiling_are_not_caught_at_the_same_level(client: Client) -> None:
    sets = client.sets("BEGIN TRY SELECT 1 SELECT * FROM dbo.none END TRY BEGIN CATCH SELECT 2 END CATCH SELECT 3")
    assert (sets, _errors(client)) == ([[(1,)]], [208])


def test_nested_and_rethrown(client: Client) -> None:
    sets = client.sets(
        "BEGIN TRY BEGIN TRY\nINSERT dbo.c VALUES (1), (1) END TRY BEGIN CATCH SELECT ERROR_NUMBER(), @@ERROR\n"
        "BEGIN TRY RAISERROR ('in', 16, 1) END TRY BEGIN CATCH SELECT ERROR_MESSAGE() END CATCH\n"
        "SELECT ERROR_NUMBER();\nTHROW SELECT 0 END CATCH END TRY\n"
        "BEGIN CATCH SELECT ERROR_NUMBER(), ERROR_LINE();\nTHROW;\nSELECT 0 END CATCH SELECT 0"
    )
    assert sets == [[(2627, 2627)], [("in",)], [(2627,)], [(2627, 2)]]
    assert [(m.number, m.severity, m.line) for m in client.messages] == [(2627, 14, 2)]


def test_an_error_in_rows_that_come_late_is_caught(client: Client) -> None:
    numbers = "SELECT TOP 300000 ROW_NUMBER() OVER (ORDER BY a.id) AS n FROM dbo.c a, dbo.c b, dbo.c d, dbo.c e"
    client.run("DECLARE @i int = 0 WHILE @i < 25 BEGIN SET @i += 1 INSERT dbo.c VALUES (@i) END")
    sets = client.sets(
        f"BEGIN TRY SELECT 1 / (n - 299999) FROM ({numbers}) AS q END TRY BEGIN CATCH SELECT ERROR_NUMBER() END CATCH"
    )
    assert sets[-1] == [(8134,)]


def test_throw_ends_the_batch_and_raiserror_does_not(client: Client) -> None:
    assert client.sets("RAISERROR ('go on', 16, 1) SELECT @@ERROR") == [[(50000,)]]
    assert client.sets("SELECT 1; THROW 50000, 'stop', 1; SELECT 2") == [[(1,)]]
    client.sets("BEGIN TRAN INSERT dbo.c VALUES (1); THROW 50000, 'stop', 1")
    assert client.run("SELECT @@TRANCOUNT, XACT_STATE()") == [(1, 1)]
    client.sets("SET XACT_ABORT ON RAISERROR ('no abort', 16, 1)")
    assert client.value("@@TRANCOUNT") == 1
    client.sets("THROW 50000, 'abort', 1")
    assert client.value("@@TRANCOUNT") == 0


def test_a_caught_error_leaves_the_transaction_committable(client: Client) -> None:
    sets = client.sets(
        "BEGIN TRAN INSERT dbo.c VALUES (1) BEGIN TRY INSERT dbo.c VALUES (2), (1) END TRY"
        " BEGIN CATCH SELECT XACT_STATE() INSERT dbo.c VALUES (3) COMMIT END CATCH SELECT id FROM dbo.c"
    )
    assert (sets, _errors(client)) == ([[(1,)], [(1,), (3,)]], [])


@pytest.mark.parametrize(
    ("setting", "statement"),
    [("ON", "INSERT dbo.c VALUES (1)"), ("OFF", "SELECT CONVERT(int, 'x')"), ("ON", "EXEC ('SELECT * FROM dbo.none')")],
)
def test_an_uncommittable_transaction_can_be_read_and_rolled_back(client: Client, setting: str, statement: str) -> None:
    sets = client.sets(
        f"SET XACT_ABORT {setting} BEGIN TRAN INSERT dbo.c VALUES (1) BEGIN TRY {statement} END TRY"
        " BEGIN CATCH SELECT XACT_STATE(), @@TRANCOUNT SELECT id FROM dbo.c"
        " IF XACT_STATE() = -1 ROLLBACK SELECT XACT_STATE() INSERT dbo.c VALUES (9) END CATCH SELECT id FROM dbo.c"
    )
    assert (sets, _errors(client)) == ([[(-1, 1)], [(1,)], [(0,)], [(9,)]], [])


@pytest.mark.parametrize(
    ("statement", "number"),
    [("INSERT dbo.c VALUES (2)", 3930), ("COMMIT", 3930), ("SAVE TRAN s", 3931), ("ROLLBACK TRAN s", 3931)],
)
def test_an_uncommittable_transaction_takes_nothing_else(client: Client, statement: str, number: int) -> None:
    sets = client.sets(
        "BEGIN TRAN INSERT dbo.c VALUES (1) BEGIN TRY SELECT CONVERT(int, 'x') END TRY BEGIN CATCH"
        f" {statement} SELECT 'not reached' END CATCH"
    )
    assert (sets, _errors(client)) == ([], [number, 3998])
    assert client.run("SELECT @@TRANCOUNT, XACT_STATE(), COUNT(*) FROM dbo.c") == [(0, 0, 0)]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("'%s has %d rows, %i%%', 10, 1, 'dbo.c', 42, 7", "dbo.c has 42 rows, 7%"),
        ("'<%5d|%-5d|%05d|%+d>', 10, 1, 42, 42, 42, 42", "<   42|42   |00042|+42>"),
        ("'<%x|%X|%#x|%o|%u>', 10, 1, 255, 255, 255, 8, 9", "<ff|FF|0xff|10|9>"),
        ("'<%7.3s|%*s>', 10, 1, 'abcdef', 4, 'ab'", "<    abc|  ab>"),
        ("'<%s|%d>', 10, 1, NULL", "<(null)|(null)>"),
        ("@text, 10, 1, @number", "n = 3"),
    ],
)
def test_raiserror_formats(client: Client, arguments: str, text: str) -> None:
    client.run(f"DECLARE @text nvarchar(20) = N'n = %d', @number smallint = 3 RAISERROR ({arguments}) WITH NOWAIT, LOG")
    assert [(message.text, message.number) for message in client.messages] == [(text, 50000)]


def test_raiserror_severity_and_state(client: Client) -> None:
    client.sets("RAISERROR ('a', 11, -1) RAISERROR ('b', 10, 200) WITH SETERROR SELECT @@ERROR")
    assert [(m.severity, m.state) for m in client.messages] == [(11, 1), (10, 200)]
    assert client.sets("RAISERROR ('b', 1, 1) WITH SETERROR SELECT @@ERROR") == [[(50000,)]]


def test_waitfor(client: Client) -> None:
    assert client.run("DECLARE @d char(12) = '00:00:00.001' WAITFOR DELAY @d WAITFOR DELAY '0:00' SELECT 1") == [(1,)]


UNSUPPORTED = {
    "unread": "GOTO done",
    "type": "SELECT CAST(1 AS sql_variant)",
    "value": "SELECT CHAR(200 + id) FROM dbo.c",
    "tried value": "SELECT TRY_CAST(1e300 * id AS varchar(30)) FROM dbo.c",
    "condition": "IF CHAR(200 + (SELECT MAX(id) FROM dbo.c)) = 'x' PRINT 'x'",
    "called batch": "EXEC ('SELECT CHAR(200 + id) FROM dbo.c')",
    "procedure": "EXEC sp_configure 'no such option', 1",
}


@pytest.mark.parametrize("statement", UNSUPPORTED.values(), ids=list(UNSUPPORTED))
@pytest.mark.parametrize(
    "enclosing", ["{}", "WHILE 1 = 1 {}", "WHILE 1 = 1 BEGIN BEGIN TRY {} END TRY BEGIN CATCH PRINT 'on' END CATCH END"]
)
def test_what_is_not_supported_ends_the_batch_whatever_encloses_it(
    client: Client, statement: str, enclosing: str
) -> None:
    client.run("INSERT dbo.c VALUES (1)")
    sets = client.sets(f"{enclosing.format(statement)} SELECT 'further'")
    assert [(m.number, m.text[:28]) for m in client.messages] == [(50000, "not supported by the sandbox")]
    assert [("further",)] not in sets


def test_what_is_not_supported_leaves_the_transaction_open_unless_xact_abort_is_on(client: Client) -> None:
    client.sets(
        "BEGIN TRAN INSERT dbo.c VALUES (1) BEGIN TRY SELECT CHAR(200 + id) FROM dbo.c END TRY BEGIN CATCH END CATCH"
    )
    assert client.run("SELECT @@TRANCOUNT, XACT_STATE(), COUNT(*) FROM dbo.c") == [(1, 1, 1)]
    client.sets("SET XACT_ABORT ON SELECT CHAR(200 + id) FROM dbo.c")
    assert client.run("SELECT @@TRANCOUNT, XACT_STATE(), COUNT(*) FROM dbo.c") == [(0, 0, 0)]


LATE = """
SELECT TOP 300000 ROW_NUMBER() OVER (ORDER BY a.id) AS n FROM dbo.c a, dbo.c b, dbo.c d, dbo.c e
"""


@pytest.mark.parametrize(
    ("expression", "number", "goes_on", "trancount"),
    [
        ("1 / (n - 299999)", 8134, True, 1),
        ("CAST(CASE n WHEN 299999 THEN 'x' ELSE '1' END AS int)", 245, False, 0),
        ("CHAR(CASE n WHEN 299999 THEN 200 ELSE 65 END)", 50000, False, 1),
    ],
)
def test_an_error_in_rows_that_come_late_is_like_one_that_comes_at_once(
    client: Client, expression: str, number: int, goes_on: bool, trancount: int
) -> None:
    client.run("DECLARE @i int = 0 WHILE @i < 25 BEGIN SET @i += 1 INSERT dbo.c VALUES (@i) END")
    sets = client.sets(f"BEGIN TRAN DELETE dbo.c WHERE id = 25 SELECT {expression} FROM ({LATE}) AS q SELECT 'further'")
    assert (_errors(client), [("further",)] in sets) == ([number], goes_on)
    assert client.run("SELECT @@TRANCOUNT, COUNT(*) FROM dbo.c") == [(trancount, 25 - trancount)]


def test_what_is_nested_too_deeply_is_refused(client: Client) -> None:
    call = "EXEC sp_executesql @s, N'@s nvarchar(max)', @s"
    text = call.replace("'", "''")
    assert client.error(f"DECLARE @s nvarchar(max) = N'{text}' {call}") == 217
    client.run("BEGIN TRAN")
    assert client.error("SELECT " + "(" * 900 + "1" + ")" * 900) == 50000
    assert client.value("@@TRANCOUNT") == 1
    client.run("ROLLBACK")


@pytest.mark.parametrize("sql", ["SET LOCK_TIMEOUT 1.5", "DECLARE @n int SET LOCK_TIMEOUT @n"])
def test_a_statement_that_nobody_thought_of_keeps_the_connection(client: Client, sql: str) -> None:
    assert client.error(sql) == 50000
    assert "not supported by the sandbox" in client.messages[-1].text
    assert client.run("SELECT 1") == [(1,)]
