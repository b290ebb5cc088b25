"""Bulk copy of mssql-jdbc, in the JVM of Debezium's connector, which brings the driver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError

from airflow_provider_mssql_cdc.sandbox.server import Sandbox

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("debezium"), pytest.mark.timeout(600)]

COLUMNS = (
    "id int NOT NULL, b bit NULL, t tinyint NULL, s smallint NOT NULL, l bigint NULL, d decimal(19,4) NULL,"
    " num numeric(9,2) NULL, m money NULL, sm smallmoney NULL, r real NULL, f float NULL, dt date NULL,"
    " tm time(7) NULL, d2 datetime2(3) NULL, o datetimeoffset(7) NULL, dti datetime NULL, sd smalldatetime NULL,"
    " g uniqueidentifier NULL, bi binary(4) NULL, vb varbinary(10) NULL, vm varbinary(max) NULL, c char(5) NULL,"
    " v varchar(10) NULL, x varchar(max) NULL, nc nchar(3) NULL, nv nvarchar(20) NULL, nm nvarchar(max) NULL"
)
ROWS = """
INSERT INTO dbo.source VALUES
 (1, 1, 255, -32768, 9223372036854775807, 123456789012345.6789, -1.25, 922337203685477.5807, -1.5, 1.5, -2.5e300,
  '2024-02-29', '23:59:59.9999999', '9999-12-31T23:59:59.999', '2024-06-30T22:00:00.1234567 +05:30',
  '1999-12-31T23:59:59.997', '2079-06-06T23:59', '6F9619FF-8B86-D011-B42D-00C04FC964FF', 0xCAFE, 0x00FF, 0x0102,
  'ab', 'naïve', REPLICATE(CAST('x' AS varchar(max)), 9000), N'Ω', N'a😀',
  REPLICATE(CAST(N'ň' AS nvarchar(max)), 5000))
INSERT INTO dbo.source (id, s) VALUES (2, 0)
INSERT INTO dbo.source VALUES
 (3, 0, 0, 1, -1, 0, 0, 0, 0, 0, 0, '0001-01-01', '00:00', '0001-01-01', '0001-01-01 +00:00', '1753-01-01',
  '1900-01-01', '00000000-0000-0000-0000-000000000000', 0x, 0x, 0x, '', '', '', N'', N'', N'')
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Sandbox]:
    with Sandbox(database="shop", agent_running=False) as server:
        server.execute(f"CREATE TABLE dbo.source ({COLUMNS}) {ROWS}")
        server.execute("EXEC sys.sp_cdc_enable_db")
        yield server


@pytest.fixture
def target(server: Sandbox) -> Iterator[str]:
    server.execute(f"CREATE TABLE dbo.target ({COLUMNS}, PRIMARY KEY (id))")
    server.execute("EXEC sys.sp_cdc_enable_table 'dbo', 'target', @role_name = NULL")
    yield "dbo.target"
    server.execute("DROP TABLE dbo.target")


class Jdbc:
    """Connections of the driver."""

    def __init__(self, jvm: JavaGateway, server: Sandbox) -> None:
        self.java = jvm.jvm
        self.url = (
            f"jdbc:sqlserver://{server.host}:{server.port};databaseName=shop;user={server.user};"
            f"password={{{server.password}}};trustServerCertificate=true"
        )
        self._opened: list[Any] = []

    def connect(self, **properties: str) -> Any:
        given = self.java.java.util.Properties()
        for name, value in properties.items():
            given.setProperty(name, value)
        self._opened.append(self.java.com.microsoft.sqlserver.jdbc.SQLServerDriver().connect(self.url, given))
        return self._opened[-1]

    def select(self, query: str) -> Any:
        """A result set of a connection of its own."""
        return self.connect().createStatement().executeQuery(query)

    def copy(self, connection: Any, source: Any, table: str, **options: Any) -> None:
        """Copy rows.

        :param connection: or a URL, for a connection of the copy's own
        :param options: of SQLServerBulkCopyOptions
        """
        chosen = self.java.com.microsoft.sqlserver.jdbc.SQLServerBulkCopyOptions()
        for name, value in options.items():
            getattr(chosen, f"set{name}")(value)
        copier = self.java.com.microsoft.sqlserver.jdbc.SQLServerBulkCopy(connection)
        copier.setBulkCopyOptions(chosen)
        copier.setDestinationTableName(table)
        copier.writeToServer(source)

    def close(self) -> None:
        for connection in self._opened:
            connection.close()


@pytest.fixture
def jdbc(jvm: JavaGateway, server: Sandbox) -> Iterator[Jdbc]:
    opened = Jdbc(jvm, server)
    yield opened
    opened.close()


def rows(server: Sandbox, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in server.execute(query)[-1].to_pylist()]


def captured(server: Sandbox) -> list[tuple[Any, ...]]:
    """Transaction, operation and key of the changes."""
    while server.step():
        pass
    return rows(
        server,
        "SELECT DENSE_RANK() OVER (ORDER BY __$start_lsn) AS t, __$operation, id FROM cdc.dbo_target_CT"
        " ORDER BY __$start_lsn, __$seqval",
    )


def test_a_result_set_of_all_types(server: Sandbox, jdbc: Jdbc, target: str) -> None:
    jdbc.copy(jdbc.connect(), jdbc.select("SELECT * FROM dbo.source ORDER BY id"), target)
    assert rows(server, "SELECT * FROM dbo.target ORDER BY id") == rows(server, "SELECT * FROM dbo.source ORDER BY id")
    assert captured(server) == [(1, 2, 1), (1, 2, 2), (1, 2, 3)]


def test_batches_are_transactions_of_their_own(server: Sandbox, jdbc: Jdbc, target: str) -> None:
    source = jdbc.select("SELECT * FROM dbo.source ORDER BY id")
    jdbc.copy(jdbc.url, source, target, BatchSize=2, TableLock=True, UseInternalTransaction=True, FireTriggers=True)
    assert rows(server, "SELECT * FROM dbo.target ORDER BY id") == rows(server, "SELECT * FROM dbo.source ORDER BY id")
    assert captured(server) == [(1, 2, 1), (1, 2, 2), (2, 2, 3)]


def test_a_transaction_of_the_application(server: Sandbox, jdbc: Jdbc, target: str) -> None:
    connection = jdbc.connect()
    connection.setAutoCommit(False)
    jdbc.copy(connection, jdbc.select("SELECT * FROM dbo.source WHERE id = 1"), target)
    connection.rollback()
    jdbc.copy(connection, jdbc.select("SELECT * FROM dbo.source WHERE id = 2"), target)
    jdbc.copy(connection, jdbc.select("SELECT * FROM dbo.source WHERE id = 3"), target)
    connection.commit()
    assert rows(server, "SELECT id FROM dbo.target ORDER BY id") == [(2,), (3,)]
    assert captured(server) == [(1, 2, 2), (1, 2, 3)]


def test_identity_and_defaults(server: Sandbox, jdbc: Jdbc) -> None:
    server.execute("CREATE TABLE dbo.kept (id int IDENTITY(10, 5) NOT NULL, v varchar(10) NULL DEFAULT 'none')")
    query = "SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS x (id, v) ORDER BY id"
    connection = jdbc.connect()
    jdbc.copy(connection, jdbc.select(query), "dbo.kept")
    jdbc.copy(connection, jdbc.select(query), "dbo.kept", KeepIdentity=True, KeepNulls=True)
    found = rows(server, "SELECT id, v FROM dbo.kept ORDER BY id")
    server.execute("DROP TABLE dbo.kept")
    assert found == [(1, "a"), (2, None), (10, "a"), (15, "none")]


def test_a_file_sends_times_as_text(server: Sandbox, jdbc: Jdbc, tmp_path: Path) -> None:
    server.execute("CREATE TABLE dbo.filed (id int NOT NULL, at datetime2(3) NULL, d date NULL, n nvarchar(20) NULL)")
    file = tmp_path / "rows.csv"
    file.write_text("1,2024-02-29 12:34:56.789,2024-02-29,žluť\n2,,,\n", encoding="utf-8")
    types = jdbc.java.java.sql.Types
    record = jdbc.java.com.microsoft.sqlserver.jdbc.SQLServerBulkCSVFileRecord(str(file), "UTF-8", ",", False)
    record.addColumnMetadata(1, "id", types.INTEGER, 0, 0)
    record.addColumnMetadata(2, "at", types.TIMESTAMP, 30, 3)
    record.addColumnMetadata(3, "d", types.DATE, 10, 0)
    record.addColumnMetadata(4, "n", types.NVARCHAR, 20, 0)
    jdbc.copy(jdbc.connect(), record, "dbo.filed")
    found = rows(
        server,
        "SELECT id, CONVERT(varchar(30), at, 126) AS at, CONVERT(varchar(10), d, 23) AS d, n FROM dbo.filed"
        " ORDER BY id",
    )
    server.execute("DROP TABLE dbo.filed")
    assert found == [(1, "2024-02-29T12:34:56.789", "2024-02-29", "žluť"), (2, None, None, None)]


def test_batch_inserts_as_bulk_copies(server: Sandbox, jdbc: Jdbc) -> None:
    # the driver does so for tables without money, times and uniqueidentifier
    server.execute("CREATE TABLE dbo.batched (id int NOT NULL, f float NULL, nv nvarchar(20) NULL, v varchar(10) NULL)")
    server.execute("EXEC sys.sp_cdc_enable_table 'dbo', 'batched', @role_name = NULL")
    statement = jdbc.connect(useBulkCopyForBatchInsert="true").prepareStatement(
        "INSERT INTO dbo.batched (id, f, nv, v) VALUES (?, ?, ?, ?)"
    )
    for number, text in ((1, "é漢"), (2, None)):
        statement.setInt(1, number)
        statement.setDouble(2, number / 4)
        statement.setString(3, text)
        statement.setString(4, text and "plain")
        statement.addBatch()
    texts: list[str] = []
    server.faults.delay(lambda text: texts.append(text) or False, seconds=0)  # type: ignore[func-returns-value]
    assert list(statement.executeBatch()) == [1, 1]
    assert [text for text in texts if text.startswith("INSERT BULK")], texts
    wanted = [(1, 0.25, "é漢", "plain"), (2, 0.5, None, None)]
    assert rows(server, "SELECT * FROM dbo.batched ORDER BY id") == wanted
    while server.step():
        pass
    changes = rows(server, "SELECT __$operation, id, f, nv, v FROM cdc.dbo_batched_CT ORDER BY __$start_lsn, __$seqval")
    assert changes == [(2, *row) for row in wanted]
    server.execute("DROP TABLE dbo.batched")


def test_an_error_leaves_the_connection_usable(server: Sandbox, jdbc: Jdbc, target: str) -> None:
    connection = jdbc.connect()
    with pytest.raises(Py4JJavaError) as failed:
        jdbc.copy(connection, jdbc.select("SELECT * FROM dbo.source UNION ALL SELECT * FROM dbo.source"), target)
    assert failed.value.java_exception.getErrorCode() == 2627
    # the driver finds this itself, when rows are on their way, and cancels
    with pytest.raises(Py4JJavaError):
        jdbc.copy(connection, jdbc.select("SELECT id, 'no number' AS s FROM dbo.source"), target)
    assert rows(server, "SELECT id FROM dbo.target") == []
    jdbc.copy(connection, jdbc.select("SELECT * FROM dbo.source"), target)
    assert rows(server, "SELECT COUNT(*) AS n FROM dbo.target") == [(3,)]
