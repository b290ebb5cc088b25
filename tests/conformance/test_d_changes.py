"""Section D: what each change of rows leaves in the change table."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest

from tests.support.conformance.client import Row
from tests.support.conformance.database import Database

_IDS = "__$operation, id"


# Transactions


@pytest.mark.parametrize(
    ("batch", "captured"),
    [
        pytest.param("BEGIN TRAN INSERT INTO dbo.t VALUES (1, 'x', 1) ROLLBACK", [], id="rollback"),
        pytest.param(
            "BEGIN TRAN INSERT INTO dbo.t VALUES (1, 'x', 1) SAVE TRAN s INSERT INTO dbo.t VALUES (2, 'x', 1)"
            " ROLLBACK TRAN s INSERT INTO dbo.t VALUES (3, 'x', 1) COMMIT",
            [(2, 1), (2, 3)],
            id="savepoint",
        ),
        pytest.param(
            "BEGIN TRAN INSERT INTO dbo.t VALUES (1, 'x', 1) SAVE TRAN s UPDATE dbo.t SET b = 2 DELETE FROM dbo.t"
            " ROLLBACK TRAN s COMMIT",
            [(2, 1)],
            id="savepoint-of-update-and-delete",
        ),
        pytest.param(
            "BEGIN TRAN SAVE TRAN a INSERT INTO dbo.t VALUES (1, 'x', 1) SAVE TRAN b INSERT INTO dbo.t"
            " VALUES (2, 'x', 1) ROLLBACK TRAN b INSERT INTO dbo.t VALUES (3, 'x', 1) ROLLBACK TRAN a"
            " INSERT INTO dbo.t VALUES (4, 'x', 1) COMMIT",
            [(2, 4)],
            id="savepoints-inside-each-other",
        ),
        pytest.param(
            "BEGIN TRAN INSERT INTO dbo.t VALUES (1, 'x', 1) BEGIN TRAN INSERT INTO dbo.t VALUES (2, 'x', 1) COMMIT"
            " ROLLBACK",
            [],
            id="nested-commit-then-rollback",
        ),
        pytest.param(
            "BEGIN TRAN INSERT INTO dbo.t VALUES (1, 'x', 1) BEGIN TRAN INSERT INTO dbo.t VALUES (2, 'x', 1) COMMIT"
            " COMMIT",
            [(2, 1), (2, 2)],
            id="nested-commits",
        ),
        pytest.param("UPDATE dbo.t SET b = 1 DELETE FROM dbo.t WHERE id = 5", [], id="no-row"),
    ],
)
def test_3_only_what_is_committed(t: Database, batch: str, captured: list[Row]) -> None:
    t.commit(batch)
    assert t.changes(_IDS) == captured
    assert len(t.commits()) == (1 if captured else 0)


def test_3_failed_statement_leaves_nothing_but_its_transaction(t: Database) -> None:
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    assert (
        t.number("BEGIN TRAN INSERT INTO dbo.t VALUES (2, 'y', 2) INSERT INTO dbo.t VALUES (3, 'z', 3), (1, 'd', 4)")
        == 2627
    )
    t.run("INSERT INTO dbo.t VALUES (4, 'w', 4) COMMIT")
    t.capture()
    assert t.changes(_IDS) == [(2, 1), (2, 2), (2, 4)]
    assert len(t.commits()) == 2


def test_3_xact_abort_leaves_nothing(t: Database) -> None:
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    number = t.number(
        "SET XACT_ABORT ON BEGIN TRAN INSERT INTO dbo.t VALUES (2, 'y', 2) INSERT INTO dbo.t VALUES (1, 'd', 4)"
    )
    assert number == 2627
    assert t.value("SELECT @@TRANCOUNT") == 0
    t.capture()
    assert t.changes(_IDS) == [(2, 1)]


def test_3_connection_that_ends_leaves_nothing(t: Database) -> None:
    client = t.connect()
    client.run("BEGIN TRAN INSERT INTO dbo.t VALUES (1, 'x', 1)")
    client.close()
    t.commit("INSERT INTO dbo.t VALUES (2, 'y', 2)")
    assert t.changes(_IDS) == [(2, 2)]


# Operations


def test_d_insert_delete_and_update_hold_all_captured_columns(t: Database) -> None:
    t.commit(
        "INSERT INTO dbo.t VALUES (1, 'x', NULL)",
        "UPDATE dbo.t SET b = 7",
        "DELETE FROM dbo.t",
    )
    assert t.changes("__$operation, __$update_mask, id, a, b") == [
        (2, b"\x07", 1, "x", None),
        (3, b"\x04", 1, "x", None),
        (4, b"\x04", 1, "x", 7),
        (1, b"\x07", 1, "x", 7),
    ]


def test_d_statements_over_many_rows(t: Database) -> None:
    t.run("CREATE TABLE dbo.source (id int, b int)")
    t.run("INSERT INTO dbo.source VALUES (2, 20), (3, 30), (9, 90)")
    t.commit(
        "INSERT INTO dbo.t SELECT id, 's', b FROM dbo.source",
        "UPDATE dbo.t SET b = s.b + 1 FROM dbo.t JOIN dbo.source AS s ON s.id = dbo.t.id WHERE s.id > 2",
        "DELETE t FROM dbo.t AS t JOIN dbo.source AS s ON s.id = t.id WHERE s.b = 20",
        "DELETE FROM dbo.t",
    )
    commits = t.commits()
    rows = t.run("SELECT __$start_lsn, __$operation, id, b FROM cdc.dbo_t_CT")
    assert sorted((commits.index(lsn), op, number, b) for lsn, op, number, b in rows) == [
        (0, 2, 2, 20),
        (0, 2, 3, 30),
        (0, 2, 9, 90),
        (1, 3, 3, 30),
        (1, 3, 9, 90),
        (1, 4, 3, 31),
        (1, 4, 9, 91),
        (2, 1, 2, 20),
        (3, 1, 3, 31),
        (3, 1, 9, 91),
    ]


def test_d_identity_default_and_scope_identity(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int IDENTITY(10, 5) PRIMARY KEY, a varchar(5) DEFAULT 'dflt', b int)")
    db.track("t")
    db.commit("INSERT INTO dbo.t (b) VALUES (1), (2)", "INSERT INTO dbo.t DEFAULT VALUES")
    assert db.changes("__$operation, id, a, b") == [(2, 10, "dflt", 1), (2, 15, "dflt", 2), (2, 20, "dflt", None)]


def test_30_truncate_is_refused(t: Database) -> None:
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    error = t.error("TRUNCATE TABLE dbo.t")
    assert (error.number, error.severity) == (4711, 16)
    assert "t" in error.text
    assert t.run("SELECT id FROM dbo.t") == [(1,)]
    t.run("EXEC sys.sp_cdc_disable_table 'dbo', 't', 'all' TRUNCATE TABLE dbo.t")
    assert t.run("SELECT id FROM dbo.t") == []


def test_55_update_of_other_columns_writes_nothing(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY, a int, hidden int)")
    db.track("t", captured_column_list="id, a")
    db.commit(
        "INSERT INTO dbo.t VALUES (1, 1, 1)",
        "UPDATE dbo.t SET hidden = 2",
        "UPDATE dbo.t SET a = 3, hidden = 3",
    )
    assert db.changes("__$operation, __$update_mask, id, a") == [
        (2, b"\x03", 1, 1),
        (3, b"\x02", 1, 1),
        (4, b"\x02", 1, 3),
    ]


def test_70_cdc_does_not_record_equal_values_memory(t: Database) -> None:
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)", "UPDATE dbo.t SET a = 'x', b = 1", "UPDATE dbo.t SET b = b")
    assert t.changes(_IDS) == [(2, 1)]


# Key updates


_KEYS = {
    "primary key": ("id int PRIMARY KEY, k int, b int", "", "id"),
    "unique index": ("id int PRIMARY KEY, k int, b int", "CREATE UNIQUE INDEX ux ON dbo.t (k)", "k"),
    "unique constraint": ("id int PRIMARY KEY, k int CONSTRAINT uq UNIQUE, b int", "", "k"),
    "part of a unique index": ("id int PRIMARY KEY, k int, b int", "CREATE UNIQUE INDEX ux ON dbo.t (b, k)", "k"),
    "clustered index": (
        "id int NOT NULL PRIMARY KEY NONCLUSTERED, k int, b int",
        "CREATE CLUSTERED INDEX cx ON dbo.t (k)",
        "k",
    ),
}


@pytest.mark.parametrize(("columns", "index", "key"), _KEYS.values(), ids=_KEYS)
def test_12_update_of_a_key_column_is_delete_and_insert(db: Database, columns: str, index: str, key: str) -> None:
    db.run(f"CREATE TABLE dbo.t ({columns}) {index}")
    db.track("t")
    db.commit("INSERT INTO dbo.t VALUES (1, 10, 100)", f"UPDATE dbo.t SET {key} = 50")
    old = (1, 10, 100)
    new = (50, 10, 100) if key == "id" else (1, 50, 100)
    assert db.changes("__$operation, __$update_mask, id, k, b")[1:] == [(1, b"\x07", *old), (2, b"\x07", *new)]


def test_12_update_of_a_column_in_an_ordinary_index_is_a_pair(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY, k int, b int) CREATE INDEX ix ON dbo.t (k)")
    db.track("t")
    db.commit("INSERT INTO dbo.t VALUES (1, 10, 100)", "UPDATE dbo.t SET k = 50")
    assert db.changes("__$operation, id, k")[1:] == [(3, 1, 10), (4, 1, 50)]


def test_12_key_update_of_many_rows(t: Database) -> None:
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1), (2, 'y', 2), (3, 'z', 3)", "UPDATE dbo.t SET id = id + 10")
    rows = t.changes("__$operation, __$update_mask, id, a, b")[3:]
    assert sorted(rows) == [
        (1, b"\x07", 1, "x", 1),
        (1, b"\x07", 2, "y", 2),
        (1, b"\x07", 3, "z", 3),
        (2, b"\x07", 11, "x", 1),
        (2, b"\x07", 12, "y", 2),
        (2, b"\x07", 13, "z", 3),
    ]
    keys = [(row[0], row[2]) for row in rows]
    for old in (1, 2, 3):
        assert keys.index((1, old)) < keys.index((2, old + 10))
    assert len(t.commits()) == 2


def test_12_key_update_with_other_columns(t: Database) -> None:
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)", "UPDATE dbo.t SET id = 2, a = 'n', b = NULL")
    assert t.changes("__$operation, id, a, b")[1:] == [(1, 1, "x", 1), (2, 2, "n", None)]


def test_12_key_set_to_its_own_value_memory_open(t: Database) -> None:
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)", "UPDATE dbo.t SET id = id", "UPDATE dbo.t SET id = id, b = 2")
    rows = t.changes("__$operation, id, b")[1:]
    alone, with_b = ([], [(1, 1, 1), (2, 1, 1)]), ([(3, 1, 1), (4, 1, 2)], [(1, 1, 1), (2, 1, 2)])
    assert rows in [a + b for a in alone for b in with_b]


# Columns


def test_52_computed_rowversion_and_identity(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int IDENTITY PRIMARY KEY, a int, c AS (a * 2), v rowversion)")
    db.track("t")
    db.commit("INSERT INTO dbo.t (a) VALUES (5)")
    first = db.value("SELECT v FROM dbo.t")
    db.commit("UPDATE dbo.t SET a = 6")
    second = db.value("SELECT v FROM dbo.t")
    assert first < second
    assert len(first) == 8
    assert db.changes("__$operation, id, a, c, v") == [
        (2, 1, 5, None, first),
        (3, 1, 5, None, first),
        (4, 1, 6, None, second),
    ]
    types = db.run(
        "SELECT name, TYPE_NAME(user_type_id), max_length, is_identity, is_computed FROM sys.columns"
        " WHERE object_id = OBJECT_ID('cdc.dbo_t_CT') AND name IN ('id', 'c', 'v') ORDER BY column_id"
    )
    assert types == [("id", "int", 4, False, False), ("c", "int", 4, False, False), ("v", "binary", 8, False, False)]


def test_52_mask_of_a_table_with_rowversion_and_computed_memory(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int IDENTITY PRIMARY KEY, a int, c AS (a * 2), v rowversion)")
    db.track("t")
    db.commit("INSERT INTO dbo.t (a) VALUES (5)", "UPDATE dbo.t SET a = 6")
    # the row version changes with every update, the computed column is never set
    assert db.changes("__$operation, __$update_mask")[1:] == [(3, b"\x0a"), (4, b"\x0a")]


def test_d_sparse_column_is_captured(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY, a int SPARSE NULL)")
    db.track("t")
    db.commit("INSERT INTO dbo.t VALUES (1, 5), (2, NULL)")
    assert db.changes("__$operation, id, a") == [(2, 1, 5), (2, 2, None)]
    sparse = "SELECT name, is_sparse FROM sys.columns WHERE object_id = OBJECT_ID('dbo.t') ORDER BY column_id"
    assert db.run(sparse) == [("id", False), ("a", True)]
    assert db.number("CREATE TABLE dbo.u (a int SPARSE NOT NULL)") == 1731


_LOBS = {
    "varchar(max)": ("'one'", "'two'", "one", "two"),
    "nvarchar(max)": ("N'eins'", "N'zwei'", "eins", "zwei"),
    "varbinary(max)": ("0x01", "0x02", b"\x01", b"\x02"),
    "xml": ("'<a>1</a>'", "'<a>2</a>'", "<a>1</a>", "<a>2</a>"),
}


@pytest.mark.parametrize(("kind", "values"), _LOBS.items(), ids=_LOBS)
def test_53_before_image_of_an_unchanged_lob_is_null(db: Database, kind: str, values: tuple) -> None:
    one, two, first, second = values
    db.run(f"CREATE TABLE dbo.t (id int PRIMARY KEY, a int, body {kind})")
    db.track("t")
    db.commit(
        f"INSERT INTO dbo.t VALUES (1, 1, {one})",
        "UPDATE dbo.t SET a = 2",
        f"UPDATE dbo.t SET body = {two}",
        f"UPDATE dbo.t SET a = 3, body = {one}",
        "DELETE FROM dbo.t",
    )
    assert db.changes("__$operation, __$update_mask, a, body") == [
        (2, b"\x07", 1, first),
        (3, b"\x02", 1, None),
        (4, b"\x02", 2, first),
        (3, b"\x04", 2, first),
        (4, b"\x04", 2, second),
        (3, b"\x06", 2, second),
        (4, b"\x06", 3, first),
        (1, b"\x07", 3, first),
    ]


_TEXTS = {
    "text": ("'one'", "'two'", "one", "two"),
    "ntext": ("N'eins'", "N'zwei'", "eins", "zwei"),
    "image": ("0x01", "0x02", b"\x01", b"\x02"),
}


@pytest.mark.parametrize(("kind", "values"), _TEXTS.items(), ids=_TEXTS)
def test_53_text_and_image_are_null_in_deletes_and_before_images(db: Database, kind: str, values: tuple) -> None:
    one, two, first, second = values
    db.run(f"CREATE TABLE dbo.t (id int PRIMARY KEY, a int, body {kind})")
    db.track("t")
    db.commit(f"INSERT INTO dbo.t VALUES (1, 1, {one})", f"UPDATE dbo.t SET body = {two}", "DELETE FROM dbo.t")
    assert db.changes("__$operation, a, body") == [(2, 1, first), (3, 1, None), (4, 1, second), (1, 1, None)]


@pytest.fixture
def limit(db: Database) -> Iterator[int]:
    """The option max text repl size at its default."""
    name = "max text repl size (B)"
    before = db.value(f"SELECT CAST(value_in_use AS int) FROM sys.configurations WHERE name = '{name}'")
    db.run(f"EXEC sp_configure '{name}', 65536 RECONFIGURE")
    yield 65536
    db.run(f"EXEC sp_configure '{name}', {before} RECONFIGURE")


@pytest.mark.parametrize(
    ("kind", "value", "per_character"),
    [
        ("varchar(max)", "REPLICATE(CAST('a' AS varchar(max)), {})", 1),
        ("nvarchar(max)", "REPLICATE(CAST(N'a' AS nvarchar(max)), {})", 2),
        ("varbinary(max)", "CAST(REPLICATE(CAST('a' AS varchar(max)), {}) AS varbinary(max))", 1),
    ],
)
def test_54_lob_over_the_limit_fails_its_writer(
    db: Database, limit: int, kind: str, value: str, per_character: int
) -> None:
    db.run(f"CREATE TABLE dbo.t (id int PRIMARY KEY, body {kind}) CREATE TABLE dbo.free (body {kind})")
    db.track("t")
    longest, longer = value.format(limit // per_character), value.format(limit // per_character + 1)
    db.run(f"INSERT INTO dbo.t VALUES (1, {longest})")
    error = db.error(f"INSERT INTO dbo.t VALUES (2, {longer})")
    assert (error.number, error.severity) == (7139, 16)
    assert error.text.index(str(limit + per_character)) < error.text.rindex(str(limit))
    assert db.number(f"UPDATE dbo.t SET body = {longer}") == 7139
    assert db.run("SELECT id, DATALENGTH(body) FROM dbo.t") == [(1, limit)]
    db.run(f"INSERT INTO dbo.free VALUES ({longer})")
    db.capture()
    assert db.run("SELECT __$operation, id, DATALENGTH(body) FROM cdc.dbo_t_CT") == [(2, 1, limit)]


def test_54_without_a_limit(db: Database, limit: int) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY, body varchar(max))")
    db.track("t")
    db.run("EXEC sp_configure 'max text repl size (B)', -1 RECONFIGURE")
    db.commit("INSERT INTO dbo.t VALUES (1, REPLICATE(CAST('a' AS varchar(max)), 200000))")
    assert db.run("SELECT DATALENGTH(body) FROM cdc.dbo_t_CT") == [(200000,)]


def test_d_values_come_unchanged_into_the_change_table(db: Database) -> None:
    columns = "id int PRIMARY KEY, n nvarchar(20), c nchar(5), v varchar(5), d decimal(38, 10), b binary(3)"
    db.run(f"CREATE TABLE dbo.t ({columns})")
    db.track("t")
    number = "-123456789012345678.0123456789"
    db.commit(
        f"INSERT INTO dbo.t VALUES (1, N'é漢😀x', N'ab', '', {number}, 0x01)",
        "UPDATE dbo.t SET n = N''",
    )
    rest = ("ab   ", "", Decimal(number), b"\x01\x00\x00")
    assert db.changes("__$operation, id, n, c, v, d, b") == [
        (2, 1, "é漢😀x", *rest),
        (3, 1, "é漢😀x", *rest),
        (4, 1, "", *rest),
    ]
