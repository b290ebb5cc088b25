"""Shapes of statements that readers of Change Tracking send, as Microsoft's pages and samples show them.

docs: Work with change tracking, CHANGETABLE, WITH CHANGE_TRACKING_CONTEXT, Enable and disable change tracking; and the
SQL trigger of Azure Functions, which leases changed rows in a table of its own. The statements are this suite's own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_mssql_cdc.sandbox import Sandbox
from tests.sandbox.tsql.conftest import Client

_SETUP = """
ALTER DATABASE shop SET CHANGE_TRACKING = ON (CHANGE_RETENTION = 7 DAYS, AUTO_CLEANUP = ON);
ALTER DATABASE [shop] SET ALLOW_SNAPSHOT_ISOLATION ON;
CREATE TABLE dbo.product (
  number int NOT NULL, [tax id] char(2) NOT NULL, name nvarchar(30) NULL, price decimal(9, 2) NULL,
  photo varbinary(max) NULL, CONSTRAINT pk_product PRIMARY KEY (number, [tax id]));
ALTER TABLE dbo.product ENABLE CHANGE_TRACKING WITH (TRACK_COLUMNS_UPDATED = ON);
INSERT INTO dbo.product VALUES (1, 'a', N'Bike', 10, 0x01), (2, 'b', N'Bell', 20, 0x02), (3, 'c', N'Pump', 30, NULL);
"""


@pytest.fixture
def client() -> Iterator[Client]:
    server = Sandbox(agent_running=False)
    opened = Client(server.instance, server.user, server.password)
    opened.run(_SETUP)
    yield opened
    opened.session.close()
    server.stop()


def test_a_first_load_and_the_version_to_go_on_from(client: Client) -> None:
    version, rows = client.sets(
        """
        DECLARE @synchronization_version bigint;
        -- what the next call begins with
        SET @synchronization_version = CHANGE_TRACKING_CURRENT_VERSION();
        SELECT @synchronization_version;
        SELECT P.number, P.name FROM dbo.product AS P ORDER BY P.number
        """
    )
    assert (version, rows) == ([(1,)], [(1, "Bike"), (2, "Bell"), (3, "Pump")])


def test_rows_with_their_versions(client: Client) -> None:
    client.run("UPDATE dbo.product SET price = 11 WHERE number = 1")
    assert client.run(
        """
        SELECT p.number, p.[tax id], p.price, c.SYS_CHANGE_VERSION, c.SYS_CHANGE_CONTEXT
        FROM product AS p
        CROSS APPLY CHANGETABLE
            (VERSION product, (number, [tax id]), (p.number, p.[tax id])) AS c
        ORDER BY 1;
        """
    ) == [(1, "a ", 11, 2, None), (2, "b ", 20, 1, None), (3, "c ", 30, 1, None)]


def _changed(client: Client) -> None:
    client.run("UPDATE dbo.product SET price = 21 WHERE number = 2")
    client.run("DELETE FROM dbo.product WHERE number = 1")
    client.run("INSERT INTO dbo.product VALUES (4, 'd', N'Lamp', 40, NULL)")


@pytest.mark.parametrize("by_right_join", [True, False])
def test_changes_joined_to_the_rows(client: Client, by_right_join: bool) -> None:
    _changed(client)
    condition = "ON P.number = CT.number AND P.[tax id] = CT.[tax id]"
    joined = (
        f"dbo.product AS P RIGHT OUTER JOIN CHANGETABLE(CHANGES dbo.product, @last) AS CT {condition}"
        if by_right_join
        else f"CHANGETABLE (CHANGES dbo.product, @last) AS CT LEFT OUTER JOIN dbo.product AS P {condition}"
    )
    found = client.run(
        f"""
        DECLARE @last bigint;
        SET @last = 1;
        SELECT CT.number, P.name, P.price, CT.SYS_CHANGE_OPERATION, CT.SYS_CHANGE_COLUMNS, CT.SYS_CHANGE_CONTEXT
        FROM {joined}
        ORDER BY CT.SYS_CHANGE_VERSION;
        """
    )
    mask = bytes(4) + (4).to_bytes(4, "little")
    assert found == [
        (2, "Bell", 21, "U", mask, None), (1, None, None, "D", None, None), (4, "Lamp", 40, "I", None, None),
    ]  # fmt: skip


def test_what_may_have_been_cleaned_is_checked(client: Client) -> None:
    checks = """
        DECLARE @last bigint = {};
        IF (@last < CHANGE_TRACKING_MIN_VALID_VERSION(
                                   OBJECT_ID('dbo.product')))
        BEGIN
          SELECT 'too old';
        END;
        IF EXISTS (
          SELECT 1 FROM sys.change_tracking_tables
          WHERE min_valid_version > @last )
        BEGIN
          SELECT 'too old for one';
        END;
        """
    client.run("TRUNCATE TABLE dbo.product")
    assert client.sets(checks.format(0)) == [[("too old",)], [("too old for one",)]]
    assert client.sets(checks.format(1)) == []


def test_large_columns_only_where_they_changed(client: Client) -> None:
    client.run("UPDATE dbo.product SET price = 21 WHERE number = 2")
    client.run("UPDATE dbo.product SET photo = NULL WHERE number = 1")
    assert client.run(
        """
        DECLARE @photo int = COLUMNPROPERTY(
            OBJECT_ID('dbo.product'), 'photo', 'ColumnId');
        SELECT CT.number,
            CASE WHEN CHANGE_TRACKING_IS_COLUMN_IN_MASK(@photo, CT.SYS_CHANGE_COLUMNS) = 1
                 THEN P.photo ELSE NULL END AS CT_photo,
            CHANGE_TRACKING_IS_COLUMN_IN_MASK(@photo, CT.SYS_CHANGE_COLUMNS) AS CT_photo_changed
        FROM dbo.product AS P
        INNER JOIN CHANGETABLE(CHANGES dbo.product, 1) AS CT
        ON P.number = CT.number AND CT.SYS_CHANGE_OPERATION = 'U'
        ORDER BY 1
        """
    ) == [(1, None, 1), (2, None, 0)]


def test_all_steps_in_a_snapshot_transaction(client: Client) -> None:
    _changed(client)
    found = client.sets(
        """
        SET TRANSACTION ISOLATION LEVEL SNAPSHOT;
        DECLARE @last bigint = 1, @next bigint
        BEGIN TRAN
          IF (@last < CHANGE_TRACKING_MIN_VALID_VERSION(OBJECT_ID('dbo.product')))
          BEGIN
            RAISERROR (N'too old', 16, 1);
          END
          ELSE
          BEGIN
            SET @next = CHANGE_TRACKING_CURRENT_VERSION();
            SELECT @next;
            SELECT number, SYS_CHANGE_OPERATION FROM CHANGETABLE(CHANGES dbo.product, @last) AS C ORDER BY 1;
          END
        COMMIT TRAN
        """
    )
    assert found == [[(4,)], [(1, "D"), (2, "U"), (4, "I")]]
    assert client.messages == []


def test_an_update_with_a_context_where_nobody_else_changed_the_row(client: Client) -> None:
    update = """
        DECLARE @source varbinary(128) = CAST('sync' AS varbinary(128)), @last bigint = {}, @number int = 2;
        WITH CHANGE_TRACKING_CONTEXT (@source)
        UPDATE dbo.product
        SET price = {}
        FROM dbo.product AS P
        WHERE number = @number AND
            @last >= ISNULL (
                (SELECT CT.SYS_CHANGE_VERSION FROM CHANGETABLE(VERSION dbo.product,
                (number, [tax id]), (P.number, P.[tax id])) AS CT),
                0);
        IF (@@ROWCOUNT = 0)
            SELECT CT.SYS_CHANGE_VERSION, CT.SYS_CHANGE_CREATION_VERSION, CT.SYS_CHANGE_OPERATION
            FROM CHANGETABLE(CHANGES dbo.product, @last) AS CT
            WHERE CT.number = @number;
        """
    assert client.sets(update.format(1, 25)) == []
    assert client.sets(update.format(1, 26)) == [[(2, None, "U")]]
    told = "SELECT CAST(SYS_CHANGE_CONTEXT AS varchar(128)) FROM CHANGETABLE(CHANGES dbo.product, 1) AS CT"
    assert client.run(told) == [("sync",)]
    assert client.run("SELECT price FROM dbo.product WHERE number = 2") == [(25,)]


def test_leases_of_changed_rows(client: Client) -> None:
    client.run(
        "CREATE TABLE dbo.state (TableID int PRIMARY KEY, GlobalVersion bigint NOT NULL)\n"
        "CREATE TABLE dbo.leases (number int, [tax id] char(2), Expires datetime2, Tries int, Version bigint"
        " PRIMARY KEY (number, [tax id]))\n"
        "IF NOT EXISTS (SELECT * FROM dbo.state) INSERT INTO dbo.state"
        " VALUES (OBJECT_ID('dbo.product'), CHANGE_TRACKING_MIN_VALID_VERSION(OBJECT_ID('dbo.product')))"
    )
    _changed(client)
    client.run("INSERT INTO dbo.leases VALUES (1, 'a', '9999-01-01', 1, 3)")
    wanted = """
        DECLARE @version bigint;
        SELECT @version = GlobalVersion FROM dbo.state WHERE TableID = OBJECT_ID('dbo.product');
        SELECT TOP 2 * FROM
            (SELECT c.number, u.name, c.SYS_CHANGE_VERSION, c.SYS_CHANGE_OPERATION, w.Version, w.Tries, w.Expires
            FROM CHANGETABLE (CHANGES dbo.product, @version) AS c
            LEFT OUTER JOIN dbo.leases AS w with (TABLOCKX) ON c.number = w.number AND c.[tax id] = w.[tax id]
            LEFT OUTER JOIN dbo.product AS u ON c.number = u.number AND c.[tax id] = u.[tax id]) AS Changes
        WHERE (Changes.Expires IS NULL AND (Changes.Version IS NULL OR Changes.Version < Changes.SYS_CHANGE_VERSION)
            OR Changes.Expires < SYSDATETIME())
            AND (Changes.Tries IS NULL OR Changes.Tries < 5)
        ORDER BY Changes.SYS_CHANGE_VERSION ASC;
        """
    assert client.run(wanted) == [(3, "Pump", 1, "I", None, None, None), (2, "Bell", 2, "I", None, None, None)]
    left = (
        "SELECT COUNT(*) FROM (SELECT c.SYS_CHANGE_VERSION FROM CHANGETABLE(CHANGES dbo.product, 0) AS c"
        " LEFT OUTER JOIN dbo.leases AS w with (TABLOCKX) ON c.number = w.number AND c.[tax id] = w.[tax id]"
        " WHERE c.SYS_CHANGE_VERSION <= 3 AND (w.Version IS NULL OR w.Version != c.SYS_CHANGE_VERSION"
        " OR w.Expires IS NOT NULL)) AS Changes"
    )
    assert client.run(left) == [(3,)]


def test_one_statement_that_always_has_a_row(client: Client) -> None:
    asked = """
        SELECT CHANGE_TRACKING_CURRENT_VERSION() AS version, m.begin_version, m.min_valid_version,
            (SELECT transaction_isolation_level FROM sys.dm_exec_sessions WHERE session_id = @@SPID) AS level,
            CT.SYS_CHANGE_OPERATION, CT.number, P.name
        FROM (SELECT 1 AS one) AS always
        LEFT JOIN sys.change_tracking_tables AS m ON m.object_id = OBJECT_ID('dbo.product')
        LEFT JOIN CHANGETABLE(CHANGES dbo.product, {}) AS CT
        LEFT JOIN dbo.product AS P ON P.number = CT.number AND P.[tax id] = CT.[tax id]
        ON 1 = 1
        ORDER BY CT.number
        """
    client.run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT")
    assert client.run(asked.format(1)) == [(1, 0, 0, 5, None, None, None)]
    _changed(client)
    assert client.run(asked.format(1)) == [
        (4, 0, 0, 5, "D", 1, None), (4, 0, 0, 5, "U", 2, "Bell"), (4, 0, 0, 5, "I", 4, "Lamp"),
    ]  # fmt: skip
