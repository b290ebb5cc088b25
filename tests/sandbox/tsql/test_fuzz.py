"""Random T-SQL: whatever arrives is answered with rows or with an error of SQL Server's, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import gc
import re
import sys
import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.sandbox.catalog.cdc_functions import CDC_FUNCTIONS
from airflow_provider_mssql_cdc.sandbox.catalog.functions import METADATA_FUNCTIONS
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from airflow_provider_mssql_cdc.sandbox.tsql.aggregates import AGGREGATES
from airflow_provider_mssql_cdc.sandbox.tsql.dates import DATE_FUNCTIONS
from airflow_provider_mssql_cdc.sandbox.tsql.parsing import parse
from airflow_provider_mssql_cdc.sandbox.tsql.script import read_batch
from airflow_provider_mssql_cdc.sandbox.tsql.strings import SCALAR_FUNCTIONS
from tests.sandbox.tsql.conftest import Client

BATCHES = (
    "SELECT a, b + 1 AS c FROM dbo.t WHERE a IN (1, 2) ORDER BY b DESC OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY",
    "SELECT TOP (2) * FROM dbo.t t LEFT JOIN dbo.u u ON u.a = t.a AND u.d IS NOT NULL ORDER BY t.a",
    "SELECT COUNT(*) OVER (PARTITION BY a), ROW_NUMBER() OVER (ORDER BY b) FROM dbo.t GROUP BY a, b HAVING MAX(b) > 0",
    "WITH x AS (SELECT a FROM dbo.t UNION ALL SELECT 7) SELECT CASE WHEN a > 1 THEN N'x' ELSE NULL END FROM x",
    "SELECT CONVERT(varchar(30), SYSDATETIME(), 121), CAST('0x1F' AS varbinary(4)), CONVERT(varchar(42), 0x00FF, 1)",
    "SELECT DATEADD(day, 1, '2026-01-01'), DATEDIFF(minute, '2026-01-01', GETDATE()),"
    " DATEPART(TZOFFSET, SYSDATETIMEOFFSET())",
    "DECLARE @n int = 3, @s nvarchar(max); SET @s = REPLICATE(N'é', @n); SELECT @s, LEN(@s), SUBSTRING(@s, 2, 1)",
    "INSERT INTO dbo.t (a, b) OUTPUT inserted.a VALUES (10, 1), (11, NULL); SELECT @@ROWCOUNT, SCOPE_IDENTITY()",
    "UPDATE t SET b = u.a FROM dbo.t t JOIN dbo.u u ON u.a = t.a WHERE t.b < 5",
    "DELETE TOP (1) FROM dbo.t WHERE EXISTS (SELECT 1 FROM dbo.u WHERE u.a = t.a)",
    "BEGIN TRANSACTION; SAVE TRANSACTION s; UPDATE dbo.t SET b = 1; ROLLBACK TRANSACTION s; COMMIT",
    "IF EXISTS (SELECT * FROM dbo.t) BEGIN PRINT 'yes' END ELSE PRINT 'no'",
    "DECLARE @i int = 0 WHILE @i < 3 BEGIN SET @i += 1 IF @i = 2 CONTINUE IF @i = 3 BREAK END SELECT @i",
    "BEGIN TRY RAISERROR (N'told %d', 16, 1, 5) END TRY BEGIN CATCH SELECT ERROR_NUMBER(), ERROR_MESSAGE(); THROW"
    " END CATCH",
    "CREATE TABLE #x (i int IDENTITY(1,1), v varchar(10) DEFAULT 'd'); INSERT #x DEFAULT VALUES; SELECT * FROM #x",
    "EXEC sp_executesql N'SELECT @p + 1', N'@p int', @p = 4",
    "DECLARE @t TABLE (i int NOT NULL PRIMARY KEY); INSERT @t VALUES (1); SELECT * FROM @t",
    "ALTER TABLE dbo.u ADD e datetime2(3) NULL; ALTER TABLE dbo.u DROP COLUMN e",
    "EXEC sys.sp_cdc_help_change_data_capture; SELECT * FROM cdc.change_tables; SELECT sys.fn_cdc_get_max_lsn()",
    "SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_t(sys.fn_cdc_get_min_lsn('dbo_t'), sys.fn_cdc_get_max_lsn(), N'all')",
    "SELECT sys.fn_cdc_map_time_to_lsn('largest less than or equal', GETDATE()), sys.fn_cdc_is_bit_set(1, 0x03)",
    "SELECT name, OBJECT_ID('dbo.t'), TYPE_NAME(system_type_id) FROM sys.columns WHERE object_id = OBJECT_ID(N'dbo.t')",
    "GRANT SELECT ON SCHEMA::[dbo] TO [public]; SELECT HAS_PERMS_BY_NAME('dbo.t', 'OBJECT', 'SELECT')",
    "SELECT x.v.value('(/a)[1]', 'int') FROM (SELECT CAST('<a>1</a>' AS xml) AS v) x FOR XML PATH",
)
TOKEN = re.compile(r"N?'[^']*'|\[[^\]]*\]|[@#]*\w+|\s+|.", re.DOTALL)
TOKENS = tuple(dict.fromkeys(token for batch in BATCHES for token in TOKEN.findall(batch) if not token.isspace()))
ODD = ("'", "[", '"', "/*", "--", ")", "(", ";;", "\0", "0x", "@", "N'", "9" * 41, "1e999", "\U0001f600", "GO")

FUNCTIONS = sorted({
    *AGGREGATES, *DATE_FUNCTIONS, *SCALAR_FUNCTIONS, *METADATA_FUNCTIONS, *(f"sys.{name}" for name in CDC_FUNCTIONS),
    "iif", "coalesce", "isnull", "nullif", "choose", "string_agg", "convert", "cast", "parse",
    *(f"{name}() over (order by a)" for name in ("row_number", "ntile", "lag", "first_value", "sum", "cume_dist")),
})  # fmt: skip
ARGUMENTS = ("1", "day", "NULL", "a", "'x'", "*", "DISTINCT a", "0x01", "a = 1", "(SELECT 1)", "1 AS int", "99999")


@st.composite
def batches(draw: st.DrawFn) -> str:
    """A batch that SQL Server would run, with tokens lost, doubled, exchanged or put in."""
    tokens = TOKEN.findall(draw(st.sampled_from(BATCHES)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(tokens)))
        match draw(st.sampled_from(("lose", "put", "odd", "exchange", "cut"))):
            case "lose":
                del tokens[at : at + draw(st.integers(1, 3))]
            case "put":
                tokens[at:at] = [" ", draw(st.sampled_from(TOKENS)), " "]
            case "odd":
                tokens[at:at] = [draw(st.sampled_from(ODD))]
            case "exchange":
                tokens[at : at + 1] = [draw(st.sampled_from(TOKENS))]
            case "cut":
                del tokens[at:]
    return "".join(tokens)


@st.composite
def calls(draw: st.DrawFn) -> str:
    """A function with any arguments."""
    given = ", ".join(draw(st.lists(st.sampled_from(ARGUMENTS), max_size=6)))
    return _call(draw(st.sampled_from(FUNCTIONS)), given)


def _call(function: str, given: str) -> str:
    name, _, rest = function.partition("()")
    return f"SELECT {name}({given}){rest} FROM dbo.t"


def _create(server: Sandbox) -> None:
    server.execute(
        "CREATE TABLE dbo.t (a int NOT NULL PRIMARY KEY, b int); INSERT dbo.t VALUES (1, 1), (2, 3), (3, NULL);"
        " CREATE TABLE dbo.u (a int, d varchar(10)); INSERT dbo.u VALUES (1, 'x'), (3, NULL)"
    )
    server.execute("EXEC sys.sp_cdc_enable_db")
    server.execute("EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL")


@pytest.fixture(scope="module")
def server() -> Iterator[Sandbox]:
    with Sandbox(agent_running=False) as server:
        _create(server)
        yield server


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(batches(), calls()))
def test_any_batch_is_answered(server: Sandbox, batch: str) -> None:
    client = Client(server.instance, server.user, server.password)
    timer = threading.Timer(3, client.session.cancel)  # a WHILE may have lost what ends it
    timer.start()
    try:
        with contextlib.suppress(SqlError):
            client.run(batch)
    finally:
        timer.cancel()
        client.session.close()
    assert server.execute("SELECT 1 AS one")[0].to_pylist() == [{"one": 1}]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_any_number_of_arguments_is_answered(server: Sandbox, function: str) -> None:
    for number in range(7):
        with contextlib.suppress(SqlError):
            server.execute(_call(function, ", ".join(["1"] * number)))


@pytest.mark.parametrize(
    ("batch", "number"),
    [
        ("SELECT 1 FROM FROM", 156),
        ("SELECT FROM dbo.t", 156),
        ("BEGIN TRANSACTION END", 156),
        ("SELECT CONVERT(", 102),
        ("SELECT CONVERT(int, 1", 102),
        ("UPDATE dbo.t SET b =", 102),
        ("SELECT a FROM dbo.t ORDER BY a OFFSET 1 ROWS FETCH NEXT", 102),
        ("CREATE TABLE #x (i int IDENTITY(1, c))", 102),
        ("CREATE TABLE #x (i int IDENTITY(1))", 102),
        ("DECLARE @s varchar(x)", 102),
        ("SELECT CAST(1 AS varchar(1, 2))", 102),
        ("SELECT CONVERT(varchar(10), 1, 'x')", 8116),
        ("SELECT 1e999", 168),
        (f"SELECT {'9' * 39}", 1007),
        (f"SELECT 1.{'9' * 38}", 1007),
        ("SELECT DATEADD(day, 1)", 174),
        ("SELECT ISNULL(1)", 174),
        ("SELECT LAG() OVER (ORDER BY a) FROM dbo.t", 189),
        ("SELECT HAS_PERMS_BY_NAME('a', 'b')", 189),
        ("SELECT sys.fn_cdc_is_bit_set(1)", 313),
        ("SELECT sys.fn_cdc_is_bit_set(1, 0x01, 2)", 8144),
        ("EXEC sp_executesql N'SELECT @p', 30, @p = 4", 214),
        ("EXEC sp_prepare", 201),
    ],
)
def test_what_is_wrong_with_it(server: Sandbox, batch: str, number: int) -> None:
    with pytest.raises(SqlError) as caught:
        server.execute(batch)
    assert caught.value.number == number


@pytest.mark.parametrize(("statement", "number"), [("SET @i KEY += 1", 156), ("SET @i +=", 102)])
def test_a_statement_that_cannot_be_read_ends_its_loop(server: Sandbox, statement: str, number: int) -> None:
    with pytest.raises(SqlError) as caught:
        server.execute(f"DECLARE @i int = 0 WHILE @i < 3 BEGIN {statement} END")
    assert caught.value.number == number


def test_a_fraction_of_38_digits(server: Sandbox) -> None:
    digits = "12345678901234567890123456789012345678"
    (table,) = server.execute(f"SELECT 0.{digits} AS whole, -.{digits} AS bare")
    assert table.schema.types == [pa.decimal128(38, 38)] * 2
    assert table.to_pylist() == [{"whole": Decimal(f"0.{digits}"), "bare": Decimal(f"-0.{digits}")}]


# Nothing grows

FAILING = (
    "SELECT nothing_{n} FROM dbo.t",
    "SELECT * FROM dbo.missing_{n}",
    "SELECT {n} FROM FROM",
    "SELECT a / ({n} - {n}) FROM dbo.t",
    "SELECT CAST('x{n}' AS int)",
    "INSERT dbo.t VALUES (1, {n})",
    "CREATE TABLE #x{n} (i int PRIMARY KEY); INSERT #x{n} VALUES (1), (1)",
    "DECLARE @t TABLE (i int NOT NULL); INSERT @t VALUES ({n}), (NULL)",
    "BEGIN TRANSACTION; SAVE TRANSACTION s{n}; UPDATE dbo.t SET b = {n}; SELECT missing",
    "BEGIN TRANSACTION; CREATE TABLE dbo.half{n} (i int); INSERT dbo.half{n} VALUES (NULL), ('x')",
    "SET XACT_ABORT ON; BEGIN TRANSACTION; DELETE dbo.t; INSERT dbo.t VALUES (1, {n}), (1, {n})",
    "BEGIN TRY INSERT dbo.t VALUES (1, {n}) END TRY BEGIN CATCH THROW END CATCH",
    "EXEC sp_executesql N'SELECT @p + missing', N'@p int', @p = {n}",
    "EXEC missing_{n}",
    "SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_t(0x{n:020}, 0x00, N'all')",
    "WITH x AS (SELECT {n} AS a) SELECT a FROM x WHERE 1 = 'y'",
)


def _state(server: Sandbox, client: Client) -> dict[str, Any]:
    """What failing batches could leave behind."""
    connection = client.session._env.manager.connection
    seen = "SELECT * FROM {} WHERE NOT internal ORDER BY ALL"
    return {
        "sessions": sorted(server.instance.sessions),
        "rows": server.execute("SELECT * FROM dbo.t ORDER BY a")[0].to_pylist(),
        "objects": server.execute("SELECT name FROM sys.objects ORDER BY name")[0].to_pylist(),
        "trancount": client.value("@@TRANCOUNT"),
        "own": (dict(client.session._env.manager.temporary), client.session._env.manager.open),
        "databases": connection.execute("SELECT database_name FROM duckdb_databases() ORDER BY 1").fetchall(),
        "tables": [row[3] for row in connection.execute(seen.format("duckdb_tables()")).fetchall()],
        "views": [row[3] for row in connection.execute(seen.format("duckdb_views()")).fetchall()],
    }


def _fail(server: Sandbox, client: Client, numbers: range) -> None:
    for n in numbers:
        batch = FAILING[n % len(FAILING)].format(n=n)
        with pytest.raises(SqlError):
            server.execute(batch)
        with pytest.raises(SqlError):
            client.run(batch)
        client.session.reset()  # as a pool does


def _blocks() -> int:
    """How many blocks of memory Python has given out, without what caches hold."""
    parse.cache_clear()
    read_batch.cache_clear()
    gc.collect()
    return sys.getallocatedblocks()


def test_failing_batches_leave_nothing_behind() -> None:
    with Sandbox(agent_running=False) as server:
        _create(server)
        client = Client(server.instance, server.user, server.password)
        _fail(server, client, range(2 * len(FAILING)))
        before, blocks = _state(server, client), _blocks()
        _fail(server, client, range(600))
        assert _state(server, client) == before
        assert _blocks() - blocks < 600  # one for each batch in each session would be 1200
        client.session.close()


def test_what_is_nested_too_deeply_is_refused(client: Client) -> None:
    for start, end in (("(", ")"), ("(1 + ", ")"), ("ABS(", ")"), ("CASE WHEN 1 = 1 THEN ", " END")):
        assert client.error(f"SELECT {start * 5000}1{end * 5000}") == 50000
    assert client.error(f"{'IF 1 = 1 ' * 5000} SELECT 1") == 50000
    assert client.error(f"{'BEGIN ' * 5000} SELECT 1 {' END' * 5000}") == 50000
    assert client.value("1") == 1
