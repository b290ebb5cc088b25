"""A database whose collation tells upper from lower case: so do the names of its tables, columns and system objects."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pymssql
import pytest

from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.server import Sandbox


@pytest.fixture(params=["Latin1_General_CS_AS", "Latin1_General_BIN2"])
def server(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with Sandbox(database=None, agent_running=False) as opened:
        opened.create_database("Strict", request.param)
        opened.database = "Strict"
        opened.execute(
            "CREATE TABLE dbo.orders (id int NOT NULL PRIMARY KEY, Note nvarchar(10))"
            " CREATE TABLE dbo.Orders (id int NOT NULL PRIMARY KEY, note nvarchar(10))"
            " INSERT INTO dbo.orders VALUES (1, N'small') INSERT INTO dbo.Orders VALUES (2, N'large')"
            " EXEC sys.sp_cdc_enable_db"
            " EXEC sys.sp_cdc_enable_table N'dbo', N'orders', @role_name = NULL"
            " EXEC sys.sp_cdc_enable_table N'dbo', N'Orders', @role_name = NULL"
        )
        yield opened


def rows(server: Sandbox, sql: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in server.execute(sql)[-1].to_pylist()]


def test_tables_that_differ_in_case_alone_are_two(server: Sandbox) -> None:
    assert rows(server, "SELECT * FROM dbo.orders") == [(1, "small")]
    assert rows(server, "SELECT * FROM dbo.Orders") == [(2, "large")]
    for name in ("orders", "Orders"):
        listed = f"SELECT name FROM sys.tables WHERE object_id = OBJECT_ID(N'dbo.{name}')"
        assert rows(server, listed) == [(name,)]
    assert rows(server, "SELECT name FROM sys.tables WHERE name = N'Orders'") == [("Orders",)]
    assert (
        rows(server, "SELECT a.Note, b.note FROM dbo.orders AS a JOIN dbo.Orders AS A ON 1 = 0, dbo.Orders AS b") == []
    )


@pytest.mark.parametrize(
    ("sql", "number"),
    [
        ("SELECT * FROM dbo.ORDERS", 208),
        ("SELECT * FROM DBO.orders", 208),
        ("SELECT note FROM dbo.orders", 207),
        ("SELECT O.id FROM dbo.orders AS o", 4104),
        ("INSERT INTO dbo.ORDERS VALUES (3, N'x')", 208),
        ("UPDATE dbo.orders SET note = N'x'", 207),
        ("EXEC sys.SP_CDC_HELP_JOBS", 2812),
        ("CREATE TABLE dbo.Orders (id int)", 2714),
    ],
)
def test_names_in_another_case_are_not_there(server: Sandbox, sql: str, number: int) -> None:
    with pytest.raises(SqlError) as raised:
        server.execute(sql)
    assert raised.value.number == number


@pytest.mark.parametrize(
    "sql",
    ["SELECT * FROM sys.Tables", "SELECT * FROM INFORMATION_SCHEMA.tables", "SELECT sys.FN_CDC_GET_MAX_LSN() AS a"],
)
def test_system_objects_in_another_case_are_not_there(server: Sandbox, sql: str) -> None:
    with pytest.raises(SqlError):
        server.execute(sql)


def test_capture_instances_of_both(server: Sandbox) -> None:
    server.execute("INSERT INTO dbo.orders VALUES (5, N'five') INSERT INTO dbo.Orders VALUES (6, N'six')")
    server.step()
    for name, expected in (("orders", [(5, "five")]), ("Orders", [(6, "six")])):
        column = "Note" if name == "orders" else "note"
        assert rows(server, f"SELECT id, {column} FROM cdc.dbo_{name}_CT") == expected
        low, high = f"sys.fn_cdc_get_min_lsn(N'dbo_{name}')", "sys.fn_cdc_get_max_lsn()"
        function = f"cdc.fn_cdc_get_all_changes_dbo_{name}({low}, {high}, N'all')"
        assert rows(server, f"SELECT id FROM {function}") == [row[:1] for row in expected]
    assert rows(server, "SELECT sys.fn_cdc_get_min_lsn(N'dbo_ORDERS') AS a") == [(bytes(10),)]
    with pytest.raises(SqlError):
        server.execute("SELECT * FROM cdc.dbo_ORDERS_CT")


def test_built_in_functions_and_variables_have_no_case(server: Sandbox) -> None:
    assert rows(server, "DECLARE @v int = 3 SELECT Abs(@V) AS a, upper('x') AS b") == [(3, "X")]


def test_columns_that_differ_in_case_alone_are_refused(server: Sandbox) -> None:
    with pytest.raises(SqlError, match="not supported"):
        server.execute("CREATE TABLE dbo.two (a int, A int)")
    with pytest.raises(SqlError) as raised:
        server.execute("CREATE TABLE dbo.two (a int, a int)")
    assert raised.value.number == 2705


def test_a_procedure_that_is_called_by_name_tells_case_too(server: Sandbox) -> None:
    """Also where nothing else has run on the connection."""
    with pymssql.connect(
        server=server.host, port=str(server.port), user=server.user, password=server.password, database="Strict"
    ) as connection:
        for name, note in (("orders", "Note"), ("Orders", "note")):
            with connection.cursor() as cursor:
                cursor.callproc("sp_columns", (name,))
                assert [(row[2], row[3]) for row in cursor] == [(name, "id"), (name, note)]


def test_a_database_made_of_a_backup_tells_case_as_that_did(server: Sandbox) -> None:
    before = rows(server, "SELECT capture_instance FROM cdc.change_tables ORDER BY capture_instance")
    ids = rows(server, "SELECT id FROM dbo.orders ORDER BY id")
    server.restore(
        f"copy_{server.execute('SELECT DB_ID() AS n')[0].to_pylist()[0]['n']}", server.backup(), keep_cdc=True
    )
    (name,) = {each for each in server.instance.storage.databases if each.startswith("copy_")}
    copied = server.execute("SELECT capture_instance FROM cdc.change_tables ORDER BY capture_instance", name)
    assert [tuple(row.values()) for row in copied[-1].to_pylist()] == before
    assert {("dbo_orders",), ("dbo_Orders",)} <= set(before)
    assert server.seed(name, "dbo.Orders", pa.table({"id": [7]})) == 1
    kept = server.execute("SELECT id FROM dbo.orders ORDER BY id", name)[0].to_pylist()
    assert [(row["id"],) for row in kept] == ids
