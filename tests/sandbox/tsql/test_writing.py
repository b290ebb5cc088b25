"""INSERT, UPDATE, DELETE, constraints, transactions, locks and isolation."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal

import pyarrow as pa
import pytest

from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from tests.sandbox.tsql.conftest import Client


@pytest.fixture
def table(client: Client) -> Iterator[str]:
    client.run(
        "DROP TABLE IF EXISTS dbo.w CREATE TABLE dbo.w (id int PRIMARY KEY, a varchar(5) NULL, n int "
        "NOT NULL DEFAULT 7)"
    )
    yield "dbo.w"
    client.run("IF @@TRANCOUNT > 0 ROLLBACK")


def _rows(client: Client) -> list[tuple[object, ...]]:
    return client.run("SELECT id, a, n FROM dbo.w ORDER BY id")


@pytest.mark.usefixtures("table")
class TestStatements:
    def test_insert_forms(self, client: Client) -> None:
        client.run("INSERT INTO dbo.w VALUES (1, 'x', 1), (2, NULL, DEFAULT)")
        client.run("INSERT dbo.w (n, id) SELECT id * 10, id + 10 FROM dbo.w")
        client.run("WITH q AS (SELECT 20 AS i) INSERT INTO dbo.w (id, a) SELECT i, 'cte' FROM q")
        assert _rows(client) == [(1, "x", 1), (2, None, 7), (11, None, 10), (12, None, 20), (20, "cte", 7)]

    def test_update_reads_only_old_values(self, client: Client) -> None:
        client.run("INSERT INTO dbo.w VALUES (1, 'x', 5), (2, 'y', 6)")
        client.run("UPDATE dbo.w SET id = n, n = id")
        assert _rows(client) == [(5, "x", 1), (6, "y", 2)]

    def test_update_swaps_keys(self, client: Client) -> None:
        client.run("INSERT INTO dbo.w VALUES (1, 'x', 5), (2, 'y', 6)")
        client.run("UPDATE dbo.w SET id = 3 - id")
        assert _rows(client) == [(1, "y", 6), (2, "x", 5)]

    def test_update_and_delete_with_joins(self, client: Client) -> None:
        client.run("INSERT INTO dbo.w VALUES (1, 'x', 2), (2, 'y', 3), (3, 'z', 9)")
        client.run("UPDATE t SET a = o.a FROM dbo.w AS t JOIN dbo.w AS o ON t.n = o.id")
        assert _rows(client) == [(1, "y", 2), (2, "z", 3), (3, "z", 9)]
        client.run("DELETE t FROM dbo.w t JOIN dbo.w o ON o.n = t.id")
        assert _rows(client) == [(1, "y", 2)]

    def test_target_beside_the_from_clause(self, client: Client) -> None:
        client.run("INSERT INTO dbo.w VALUES (1, 'x', 2), (2, 'y', 3), (3, 'z', 9)")
        client.run("UPDATE dbo.w SET n = v.n FROM (VALUES (1, 20), (3, 30)) AS v (id, n) WHERE dbo.w.id = v.id")
        client.run("DELETE FROM dbo.w FROM dbo.w AS o WHERE o.id = 2")
        assert _rows(client) == [(1, "x", 20), (3, "z", 30)]
        assert client.error("DELETE dbo.w FROM dbo.w AS a JOIN dbo.w AS b ON a.id = b.id") == 8154

    def test_common_table_expressions(self, client: Client) -> None:
        client.run("INSERT INTO dbo.w VALUES (1, 'x', 2), (2, 'x', 3), (3, 'y', 9), (4, 'X', 1)")
        client.run(
            "WITH d AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY id DESC) AS r FROM dbo.w)"
            " DELETE FROM d WHERE r > 1"
        )
        assert _rows(client) == [(3, "y", 9), (4, "X", 1)]
        client.run("WITH d AS (SELECT TOP 1 id, n FROM dbo.w ORDER BY n) UPDATE d SET n = n + 10 WHERE id > 0")
        client.run("WITH k AS (SELECT 3 AS id) UPDATE w SET a = 'k' FROM dbo.w AS w JOIN k ON k.id = w.id")
        assert _rows(client) == [(3, "k", 9), (4, "X", 11)]
        for query in (
            "SELECT a, MAX(n) AS n FROM dbo.w GROUP BY a",
            "SELECT id AS n, n AS id FROM dbo.w",
            "SELECT 1 AS n",
        ):
            assert client.error(f"WITH d AS ({query}) UPDATE d SET n = 0") == 50000

    def test_compound_assignment(self, client: Client) -> None:
        client.run("INSERT INTO dbo.w VALUES (1, 'x', 5), (2, NULL, 6)")
        client.run("UPDATE dbo.w SET a += 'y', n *= 2 + 1 UPDATE w SET n -= id FROM dbo.w AS w WHERE w.id = 2")
        assert _rows(client) == [(1, "xy", 15), (2, None, 16)]

    def test_top(self, client: Client) -> None:
        client.run("INSERT INTO dbo.w VALUES (1, 'x', 5), (2, 'y', 6), (3, 'z', 7)")
        client.run("DECLARE @n int = 2 UPDATE TOP (@n) dbo.w SET n = 0 WHERE n > 0")
        assert client.value("COUNT(*) FROM dbo.w WHERE n = 0") == 2
        client.run("DELETE TOP (1) FROM dbo.w WHERE n = 0 DELETE TOP (5) w FROM dbo.w AS w WHERE w.n > 0")
        assert client.value("COUNT(*) FROM dbo.w") == 1
        client.run("DELETE dbo.w INSERT TOP (2) dbo.w (id) VALUES (1), (2), (3)")
        client.run("INSERT TOP (1) INTO dbo.w (id) SELECT id + 10 FROM dbo.w")
        assert client.value("COUNT(*) FROM dbo.w") == 3

    def test_rowcount_and_output(self, client: Client) -> None:
        assert client.run("INSERT INTO dbo.w (id, a) OUTPUT inserted.id, inserted.n VALUES (1, 'x'), (2, 'y')") == [
            (1, 7),
            (2, 7),
        ]
        assert client.run("UPDATE dbo.w SET n = 8 OUTPUT deleted.n, inserted.n WHERE id = 1") == [(7, 8)]
        assert client.run("DELETE dbo.w WHERE id > 5 SELECT @@ROWCOUNT") == [(0,)]

    def test_failed_statement_changes_nothing(self, client: Client) -> None:
        client.run("INSERT INTO dbo.w VALUES (1, 'x', 1)")
        assert client.error("INSERT INTO dbo.w VALUES (2, 'y', 1), (1, 'z', 1)") == 2627
        assert client.error("INSERT INTO dbo.w VALUES (3, 'a', 1), (3, 'b', 1)") == 2627
        assert client.error("INSERT INTO dbo.w VALUES (4, 'toolong', 1)") == 2628
        assert client.error("INSERT INTO dbo.w VALUES (5, 'x', NULL)") == 515
        assert client.error("INSERT INTO dbo.w VALUES ('abc', 'x', 1)") == 245
        assert client.error("INSERT INTO dbo.w VALUES (3000000000, 'x', 1)") == 8115
        assert client.error("INSERT INTO dbo.w (id) VALUES (1, 2)") == 110
        assert client.error("INSERT INTO dbo.w (id, nosuch) VALUES (1, 2)") == 207
        assert client.error("UPDATE dbo.w SET n = NULL") == 515
        assert client.error("UPDATE dbo.w SET n = 1 / (n - 1)") == 8134
        assert _rows(client) == [(1, "x", 1)]

    def test_binary_keys_that_differ_in_zeros_at_the_end_are_one(self, client: Client) -> None:
        client.run("CREATE TABLE dbo.b (k varbinary(8) NOT NULL PRIMARY KEY) INSERT INTO dbo.b VALUES (0x01), (0xA0)")
        assert client.error("INSERT INTO dbo.b VALUES (0x0100)") == 2627
        assert client.error("INSERT INTO dbo.b VALUES (0x02), (0xA0000000)") == 2627
        assert client.error("UPDATE dbo.b SET k = 0x010000 WHERE k = 0xA0") == 2627
        client.run("INSERT INTO dbo.b VALUES (0x0001), (0x10) UPDATE dbo.b SET k = 0x0100 WHERE k = 0x01")
        assert client.run("SELECT k FROM dbo.b ORDER BY k") == [(b"\0\1",), (b"\1\0",), (b"\x10",), (b"\xa0",)]
        assert client.value("COUNT(DISTINCT v) FROM (VALUES (0x01), (0x0100), (0x02)) AS t (v)") == 2

    def test_trailing_blanks_that_do_not_fit_are_dropped(self, client: Client) -> None:
        client.run("INSERT INTO dbo.w VALUES (1, 'abcde   ', 1)")
        assert _rows(client) == [(1, "abcde", 1)]

    def test_transaction_goes_on_after_a_failed_statement(self, client: Client) -> None:
        client.run("BEGIN TRAN INSERT INTO dbo.w VALUES (1, 'x', 1)")
        assert client.error("INSERT INTO dbo.w VALUES (1, 'y', 1)") == 2627
        assert client.error("SELECT 1 / 0 FROM dbo.w") == 8134
        client.run("UPDATE dbo.w SET a = 'z' INSERT INTO dbo.w VALUES (2, 'y', 2) COMMIT")
        assert _rows(client) == [(1, "z", 1), (2, "y", 2)]

    def test_conversion_error_rolls_the_transaction_back(self, client: Client) -> None:
        client.run("BEGIN TRAN INSERT INTO dbo.w VALUES (1, 'x', 1)")
        client.sets("SELECT CAST(a AS int) FROM dbo.w; SELECT 1")
        assert [m.number for m in client.messages] == [245]
        assert client.value("@@TRANCOUNT") == 0
        assert _rows(client) == []

    def test_xact_abort(self, client: Client) -> None:
        client.sets(
            "SET XACT_ABORT ON BEGIN TRAN INSERT INTO dbo.w VALUES (1, 'x', 1) INSERT INTO dbo.w "
            "VALUES (1, 'x', 1) SELECT 1"
        )
        assert client.value("@@TRANCOUNT") == 0
        assert _rows(client) == []

    def test_save_points(self, client: Client) -> None:
        client.run(
            """
            BEGIN TRAN
            INSERT INTO dbo.w VALUES (1, 'x', 1)
            SAVE TRAN one
            UPDATE dbo.w SET a = 'y'
            SAVE TRAN two
            DELETE dbo.w
            ROLLBACK TRAN two
            INSERT INTO dbo.w VALUES (2, 'b', 2)
            ROLLBACK TRAN one
            INSERT INTO dbo.w VALUES (3, 'c', 3)
            COMMIT
            """
        )
        assert _rows(client) == [(1, "x", 1), (3, "c", 3)]

    def test_nested_commit_and_rollback(self, client: Client) -> None:
        client.run("BEGIN TRAN BEGIN TRAN INSERT INTO dbo.w VALUES (1, 'x', 1) COMMIT")
        assert client.value("@@TRANCOUNT") == 1
        client.run("ROLLBACK")
        assert _rows(client) == []

    def test_ddl_is_part_of_the_transaction(self, client: Client) -> None:
        client.run("BEGIN TRAN CREATE TABLE dbo.inner_one (a int) INSERT INTO dbo.inner_one VALUES (1) ROLLBACK")
        assert client.error("SELECT * FROM dbo.inner_one") == 208

    def test_implicit_transactions(self, client: Client, connect: Callable[..., Client]) -> None:
        other = connect()
        client.run("SET IMPLICIT_TRANSACTIONS ON INSERT INTO dbo.w VALUES (1, 'x', 1)")
        assert (client.value("@@TRANCOUNT"), _rows(other)) == (1, [])
        client.run("IF @@TRANCOUNT > 0 COMMIT TRAN SET IMPLICIT_TRANSACTIONS OFF")
        assert _rows(other) == [(1, "x", 1)]

    def test_readers_see_committed_rows_only(self, client: Client, connect: Callable[..., Client]) -> None:
        other = connect()
        client.run("INSERT INTO dbo.w VALUES (1, 'x', 1) BEGIN TRAN UPDATE dbo.w SET a = 'y'")
        assert _rows(other) == [(1, "x", 1)]
        client.run("COMMIT")
        assert _rows(other) == [(1, "y", 1)]

    def test_read_committed_sees_later_commits_and_snapshot_does_not(
        self, client: Client, connect: Callable[..., Client]
    ) -> None:
        other, third = connect(), connect()
        assert other.error("SET TRANSACTION ISOLATION LEVEL SNAPSHOT SELECT COUNT(*) FROM dbo.w") == 3952
        client.run("ALTER DATABASE shop SET ALLOW_SNAPSHOT_ISOLATION ON")
        other.run("BEGIN TRAN SELECT COUNT(*) FROM dbo.w")
        third.run("BEGIN TRAN SELECT COUNT(*) FROM dbo.w")
        client.run("INSERT INTO dbo.w VALUES (1, 'x', 1)")
        assert (_rows(other), _rows(third)) == ([], [(1, "x", 1)])
        assert other.error("INSERT INTO dbo.w VALUES (2, 'x', 1)") == 3960

    def test_lock_timeout(self, client: Client, connect: Callable[..., Client]) -> None:
        other = connect()
        client.run("BEGIN TRAN INSERT INTO dbo.w VALUES (1, 'x', 1)")
        assert other.error("SET LOCK_TIMEOUT 0 INSERT INTO dbo.w VALUES (2, 'x', 1)") == 1222
        client.run("ROLLBACK")
        other.run("INSERT INTO dbo.w VALUES (2, 'x', 1)")

    def test_writers_wait_for_each_other(
        self, sandbox: Sandbox, client: Client, connect: Callable[..., Client]
    ) -> None:
        other = connect()
        client.run("BEGIN TRAN INSERT INTO dbo.w VALUES (1, 'x', 1)")
        thread = threading.Thread(target=lambda: other.run("UPDATE dbo.w SET n = n + 1"))
        thread.start()
        client.run("COMMIT")
        thread.join()
        assert _rows(client) == [(1, "x", 2)]

    def test_closed_connection_rolls_back(self, client: Client, connect: Callable[..., Client]) -> None:
        other = connect()
        other.run("BEGIN TRAN INSERT INTO dbo.w VALUES (1, 'x', 1)")
        other.session.close()
        assert _rows(client) == []
        client.run("INSERT INTO dbo.w VALUES (1, 'x', 1)")

    def test_seeding_from_arrow(self, sandbox: Sandbox, client: Client) -> None:
        rows = pa.table({"ID": pa.array([3, 1], pa.int32()), "n": pa.array([30, 10], pa.int32())})
        assert sandbox.seed(None, "dbo.w", rows) == 2
        assert _rows(client) == [(1, None, 10), (3, None, 30)]
        assert client.run("SELECT id FROM dbo.w") == [(3,), (1,)]


def test_case_and_blanks_do_not_tell_keys_apart(client: Client) -> None:
    client.run("CREATE TABLE dbo.k (name varchar(10) PRIMARY KEY, u int NULL UNIQUE)")
    client.run("INSERT INTO dbo.k VALUES ('a', NULL)")
    assert client.error("INSERT INTO dbo.k VALUES ('A ', 1)") == 2627
    assert client.error("INSERT INTO dbo.k VALUES ('b', NULL)") == 2627
    client.run("CREATE UNIQUE INDEX ix ON dbo.k (u, name) INSERT INTO dbo.k VALUES ('c', 1)")
    assert client.error("INSERT INTO dbo.k SELECT 'D', 1") == 2627


def test_counters(client: Client) -> None:
    client.run("DROP TABLE IF EXISTS dbo.i CREATE TABLE dbo.i (id int IDENTITY(10, 5), v rowversion, a int)")
    before = client.value("@@DBTS")
    client.run("INSERT dbo.i (a) VALUES (1), (2)")
    assert client.run("SELECT SCOPE_IDENTITY(), @@IDENTITY") == [(15, 15)]
    assert client.run("SELECT v FROM dbo.i ORDER BY id") == [
        ((int.from_bytes(before) + n).to_bytes(8),) for n in (1, 2)
    ]
    assert client.run("SELECT 1 WHERE @@DBTS = (SELECT MAX(v) FROM dbo.i)") == [(1,)]


def test_identity_defaults_rowversion_and_computed_columns(client: Client) -> None:
    client.run(
        """
        CREATE TABLE dbo.made (
          id int IDENTITY(10, 5) PRIMARY KEY, v rowversion, price decimal(6,2) NOT NULL DEFAULT (1.5),
          twice AS (price * 2), at datetime2(0) NOT NULL DEFAULT '2024-01-05')
        """
    )
    client.run("INSERT INTO dbo.made DEFAULT VALUES INSERT INTO dbo.made (price) VALUES (2)")
    rows = client.run("SELECT id, price, twice, CAST(at AS date) FROM dbo.made ORDER BY id")
    day = datetime.date(2024, 1, 5)
    assert rows == [(10, Decimal("1.50"), Decimal("3.00"), day), (15, Decimal("2.00"), Decimal("4.00"), day)]
    assert client.value("SCOPE_IDENTITY()") == Decimal(15)
    (before,) = client.run("SELECT MAX(v) FROM dbo.made")[0]
    client.run("UPDATE dbo.made SET price = 3 WHERE id = 10")
    assert client.run("SELECT twice, CASE WHEN v > 0x00 THEN 1 END FROM dbo.made WHERE id = 10") == [
        (Decimal("6.00"), 1)
    ]
    assert client.run("SELECT MAX(v) FROM dbo.made")[0][0] > before
    assert client.error("INSERT INTO dbo.made (id) VALUES (1)") == 544
    assert client.error("INSERT INTO dbo.made (twice) VALUES (1)") == 271
    assert client.error("UPDATE dbo.made SET id = 1") == 8102
    client.run(
        "SET IDENTITY_INSERT dbo.made ON INSERT INTO dbo.made (id) VALUES (100) SET IDENTITY_INSERT dbo.made OFF"
    )
    assert client.run("INSERT INTO dbo.made (price) OUTPUT inserted.id VALUES (1)") == [(105,)]


def test_alter_table(client: Client) -> None:
    client.run("CREATE TABLE dbo.alt (id int NOT NULL CONSTRAINT pk_alt PRIMARY KEY, a int NULL, b varchar(10) NULL)")
    client.run("INSERT INTO dbo.alt VALUES (1, 2, 'x')")
    client.run("ALTER TABLE dbo.alt ADD c nvarchar(5) NOT NULL CONSTRAINT df_c DEFAULT N'new', d int NULL")
    assert client.run("SELECT * FROM dbo.alt") == [(1, 2, "x", "new", None)]
    client.run("ALTER TABLE dbo.alt ALTER COLUMN a bigint NULL ALTER TABLE dbo.alt DROP COLUMN b")
    client.run("EXEC sp_rename 'dbo.alt.d', 'e', 'COLUMN' UPDATE dbo.alt SET a = 3000000000, e = 5")
    assert client.run("SELECT * FROM dbo.alt") == [(1, 3000000000, "new", 5)]
    assert client.error("ALTER TABLE dbo.alt DROP COLUMN c") == 5074
    client.run("ALTER TABLE dbo.alt DROP CONSTRAINT df_c ALTER TABLE dbo.alt DROP COLUMN c, e")
    client.run("EXEC sp_rename 'dbo.alt', 'renamed'")
    assert client.run("SELECT name, column_id FROM sys.columns WHERE object_id = OBJECT_ID('dbo.renamed')") == [
        ("id", 1),
        ("a", 2),
    ]
    assert client.error("ALTER TABLE dbo.renamed ALTER COLUMN a int NULL") == 8115
    assert client.error("SELECT * FROM dbo.alt") == 208


def test_transfer_to_another_schema(client: Client) -> None:
    client.run("CREATE SCHEMA elsewhere CREATE TABLE dbo.moving (id int) INSERT INTO dbo.moving VALUES (1)")
    assert client.error("ALTER SCHEMA nowhere TRANSFER dbo.moving") == 15151
    assert client.error("ALTER SCHEMA elsewhere TRANSFER dbo.nosuch") == 4902
    client.run("ALTER SCHEMA elsewhere TRANSFER dbo.moving")
    assert client.run("SELECT id FROM elsewhere.moving") == [(1,)]
    assert client.error("SELECT id FROM dbo.moving") == 208
    client.run("CREATE TABLE dbo.moving (id int)")
    assert client.error("ALTER SCHEMA elsewhere TRANSFER dbo.moving") == 15530


def test_decimals_of_all_digits(client: Client) -> None:
    values = ["-9999999999999999999999999999.9999999999", "9999999999999999999999999999.9999999999", "-0.0000000001"]
    client.run("CREATE TABLE dbo.digits (id int IDENTITY, d decimal(38,10), e decimal(38,38))")
    for value in values:
        client.run(f"INSERT INTO dbo.digits (d) VALUES ({value})")
        assert client.value(value) == Decimal(value)
    client.run("UPDATE dbo.digits SET e = -0.5")
    assert client.run("SELECT d, CAST(e AS varchar(50)) FROM dbo.digits ORDER BY id") == [
        (Decimal(value), "-0.5" + 37 * "0") for value in values
    ]


def test_computed_columns_need_no_parentheses(client: Client) -> None:
    client.run(
        """CREATE TABLE dbo.worked_out (a int, b AS a + 1, c AS (a) * (2) PERSISTED, d AS (a - 1),
          e AS CASE WHEN a IS NULL THEN 'none' ELSE 'some' END, f AS ISNULL(a, 0) UNIQUE)
        INSERT INTO dbo.worked_out (a) VALUES (3), (NULL)"""
    )
    assert client.run("SELECT * FROM dbo.worked_out ORDER BY a") == [
        (None, None, None, None, "none", 0),
        (3, 4, 6, 2, "some", 3),
    ]
    assert client.run(
        "SELECT name, definition FROM sys.computed_columns WHERE name IN ('b', 'c', 'd') ORDER BY name"
    ) == [
        ("b", "(a + 1)"),
        ("c", "((a) * (2))"),
        ("d", "(a - 1)"),
    ]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("<a>", 9400),
        ("<a></b>", 9436),
        ("a < b", 9455),
        ("", 0),
        ("text", 0),
        ('<?xml version="1.0"?><a/><b c="1"/>', 0),
    ],
)
def test_xml_is_well_formed(client: Client, text: str, number: int) -> None:
    client.run("DROP TABLE IF EXISTS dbo.marked CREATE TABLE dbo.marked (x xml NULL)")
    if number:
        assert client.error(f"INSERT INTO dbo.marked VALUES ('{text}')") == number
    else:
        client.run(f"INSERT INTO dbo.marked VALUES ('{text}'), (NULL)")
    assert client.run("SELECT x FROM dbo.marked WHERE x IS NOT NULL") == ([] if number else [(text,)])


def test_values_without_a_list_of_columns(client: Client) -> None:
    client.run("CREATE TABLE dbo.two (a int NULL, b int NULL)")
    for source in ("VALUES (1)", "VALUES (1, 2, 3)", "SELECT 1"):
        assert client.error(f"INSERT INTO dbo.two {source}") == 213
    assert client.error("INSERT INTO dbo.two (a, b) VALUES (1)") == 109
    assert client.error("INSERT INTO dbo.two (a, b) SELECT 1, 2, 3") == 110


@pytest.mark.parametrize(
    ("statement", "number", "terminated"),
    [
        ("INSERT INTO dbo.ended VALUES (1, 1)", 2627, True),
        ("INSERT INTO dbo.ended VALUES (NULL, 1)", 515, True),
        ("UPDATE dbo.ended SET a = 1 / (a - 1)", 8134, True),
        ("UPDATE dbo.ended SET a = (SELECT v FROM (VALUES (1), (2)) AS s(v))", 512, True),
        ("DELETE FROM dbo.ended WHERE 1 / (a - 1) = 1", 8134, True),
        ("WITH c AS (SELECT a FROM dbo.ended) UPDATE c SET a = 2147483647 + a", 8115, True),
        ("SELECT 1 / (a - 1) AS x INTO #ended FROM dbo.ended", 8134, True),
        ("CREATE UNIQUE INDEX twice ON dbo.ended (a)", 1505, True),
        ("SELECT 1 / (a - 1) FROM dbo.ended", 8134, False),
        ("SELECT CAST(3000000000 AS int)", 8115, False),
        ("SELECT (SELECT v FROM (VALUES (1), (2)) AS s(v))", 512, False),
        ("DECLARE @x int = 1 / 0", 8134, False),
        ("IF 1 / 0 = 1 SELECT 1", 8134, False),
        ("EXEC sp_executesql N'SELECT 1 / 0'", 8134, False),
        ("EXEC sp_executesql N'UPDATE dbo.ended SET a = 1 / 0'", 8134, True),
    ],
)
def test_only_statements_that_write_are_terminated(
    client: Client, statement: str, number: int, terminated: bool
) -> None:
    client.run("DROP TABLE IF EXISTS dbo.ended CREATE TABLE dbo.ended (id int PRIMARY KEY, a int)")
    client.run("INSERT INTO dbo.ended VALUES (1, 1), (2, 1)")
    assert client.error(statement) == number
    told = [(message.number, message.severity) for message in client.messages if message.number == 3621]
    assert told == ([(3621, 0)] if terminated else [])
    assert client.run("SELECT id, a FROM dbo.ended ORDER BY id") == [(1, 1), (2, 1)]
