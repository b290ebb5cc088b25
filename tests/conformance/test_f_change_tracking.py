"""Section F: versions of Change Tracking, and what CHANGETABLE tells of rows."""

from __future__ import annotations

import pytest

from tests.support.conformance.client import Row
from tests.support.conformance.database import Database
from tests.support.conformance.tracked import COLUMNS, ENABLE, TRACK, mask, min_valid, net, version

_ALL = (
    "SYS_CHANGE_VERSION, SYS_CHANGE_CREATION_VERSION, SYS_CHANGE_OPERATION, SYS_CHANGE_COLUMNS, SYS_CHANGE_CONTEXT, id"
)


@pytest.fixture
def t(plain: Database) -> Database:
    """A database whose table dbo.t (id, a, b) is tracked, with its columns."""
    plain.run(ENABLE)
    plain.run("CREATE TABLE dbo.t (id int NOT NULL CONSTRAINT pk_t PRIMARY KEY, a varchar(10) NULL, b int NULL)")
    plain.run(TRACK + COLUMNS)
    return plain


# Versions


def test_66_one_version_for_each_transaction_that_changed_something(t: Database) -> None:
    t.run("CREATE TABLE dbo.other (id int PRIMARY KEY)")
    found = [version(t)]
    for batch in (
        "INSERT INTO dbo.t VALUES (1, 'x', 1), (2, 'y', 2)",
        "UPDATE dbo.t SET b = 3 WHERE id = 9",
        "DELETE FROM dbo.t WHERE id = 9",
        "INSERT INTO dbo.other VALUES (1)",
        "BEGIN TRAN INSERT INTO dbo.t VALUES (3, 'z', 3) UPDATE dbo.t SET b = 4 DELETE FROM dbo.t WHERE id = 2 COMMIT",
        "BEGIN TRAN DELETE FROM dbo.t ROLLBACK",
        "DELETE FROM dbo.t WHERE id = 1 UPDATE dbo.t SET a = 'w'",
    ):
        t.run(batch)
        found.append(version(t))
    assert found == [0, 1, 1, 1, 1, 2, 2, 4]
    assert net(t, 0, "SYS_CHANGE_VERSION, SYS_CHANGE_OPERATION, id") == [(3, "D", 1), (2, "D", 2), (4, "I", 3)]


def test_66_versions_are_those_of_the_database(t: Database) -> None:
    t.run("CREATE TABLE dbo.u (id int PRIMARY KEY)")
    t.run("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    t.run("ALTER TABLE dbo.u ENABLE CHANGE_TRACKING")
    t.run("BEGIN TRAN INSERT INTO dbo.u VALUES (1) INSERT INTO dbo.t VALUES (2, 'y', 2) COMMIT")
    t.run("INSERT INTO dbo.u VALUES (2)")
    columns = "SYS_CHANGE_VERSION, id"
    assert net(t, 0, columns) == [(1, 1), (2, 2)]
    assert net(t, 0, columns, "dbo.u") == [(2, 1), (3, 2)]
    assert (min_valid(t), min_valid(t, "dbo.u")) == (0, 1)


def test_66_a_failed_statement_leaves_nothing_of_itself(t: Database) -> None:
    t.run("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    assert (
        t.number("BEGIN TRAN INSERT INTO dbo.t VALUES (2, 'y', 2) INSERT INTO dbo.t VALUES (3, 'z', 3), (1, 'd', 4)")
        == 2627
    )
    t.run("SAVE TRAN s DELETE FROM dbo.t ROLLBACK TRAN s INSERT INTO dbo.t VALUES (4, 'w', 4) COMMIT")
    assert version(t) == 2
    assert net(t, 0, "SYS_CHANGE_VERSION, SYS_CHANGE_OPERATION, id") == [(1, "I", 1), (2, "I", 2), (2, "I", 4)]


def test_66_the_counter_goes_on_over_off_and_on(t: Database) -> None:
    t.run("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    t.run("ALTER TABLE dbo.t DISABLE CHANGE_TRACKING")
    t.run("ALTER DATABASE CURRENT SET CHANGE_TRACKING = OFF")
    t.run("INSERT INTO dbo.t VALUES (2, 'y', 2)")
    t.run(ENABLE)
    t.run(TRACK)
    assert (version(t), min_valid(t), net(t, "NULL")) == (1, 1, [])
    t.run("UPDATE dbo.t SET b = 5 WHERE id = 1")
    assert net(t, 1, _ALL) == [(2, None, "U", None, None, 1)]


# CHANGETABLE


def test_67_columns(t: Database) -> None:
    t.run(
        "CREATE TABLE dbo.k (z int NOT NULL, y nvarchar(5) NOT NULL, v int NULL, x datetime2(3) NOT NULL,"
        " CONSTRAINT pk_k PRIMARY KEY (x, z, y))"
    )
    t.run("ALTER TABLE dbo.k ENABLE CHANGE_TRACKING")
    names = _ALL.split(", ")[:-1]
    assert t.names("SELECT * FROM CHANGETABLE(CHANGES dbo.k, 0) AS c") == [*names, "x", "z", "y"]
    t.run("SELECT * INTO dbo.made FROM CHANGETABLE(CHANGES dbo.k, 0) AS c")
    described = t.run(
        "SELECT c.name, TYPE_NAME(c.user_type_id), c.max_length FROM sys.columns AS c"
        " WHERE c.object_id = OBJECT_ID('dbo.made') ORDER BY c.column_id"
    )
    assert described == [
        ("SYS_CHANGE_VERSION", "bigint", 8),
        ("SYS_CHANGE_CREATION_VERSION", "bigint", 8),
        ("SYS_CHANGE_OPERATION", "nchar", 2),
        ("SYS_CHANGE_COLUMNS", "varbinary", 4100),
        ("SYS_CHANGE_CONTEXT", "varbinary", 128),
        ("x", "datetime2", 7),
        ("z", "int", 4),
        ("y", "nvarchar", 10),
    ]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT c.v, c.k FROM CHANGETABLE(CHANGES dbo.t, 0) AS c (v, w, o, m, x, k)", [(1, 1), (2, 2)]),
        ("SELECT id FROM CHANGETABLE(CHANGES dbo.t, 1, FORCESEEK) AS c", [(2,)]),
        ("SELECT id FROM CHANGETABLE(CHANGES [dbo].[t], NULL) c", [(1,), (2,)]),
        ("DECLARE @v bigint = 1 SELECT id FROM CHANGETABLE(CHANGES t, @v) AS c", [(2,)]),
        ("DECLARE @v bigint SELECT id FROM CHANGETABLE(CHANGES t, @v) AS c", [(1,), (2,)]),
        ("EXEC sp_executesql N'SELECT id FROM CHANGETABLE(CHANGES dbo.t, @p) AS c', N'@p bigint', 1", [(2,)]),
        ("SELECT COUNT(*) FROM CHANGETABLE(CHANGES dbo.t, 2) AS c", [(0,)]),
        ("SELECT COUNT(*) FROM CHANGETABLE(CHANGES dbo.t, 1000) AS c", [(0,)]),
        ("WITH e AS (SELECT * FROM CHANGETABLE(CHANGES dbo.t, 0) AS c) SELECT id FROM e WHERE id = 2", [(2,)]),
        ("SELECT x.id FROM (SELECT * FROM CHANGETABLE(CHANGES dbo.t, 0) AS c) AS x WHERE x.id = 1", [(1,)]),
        ("SELECT id FROM dbo.t WHERE id IN (SELECT id FROM CHANGETABLE(CHANGES dbo.t, 1) AS c)", [(2,)]),
    ],
)
def test_67_forms(t: Database, text: str, rows: list[Row]) -> None:
    t.run("INSERT INTO dbo.t VALUES (1, 'x', 1) INSERT INTO dbo.t VALUES (2, 'y', 2)")
    assert sorted(t.run(text)) == rows


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("SELECT * FROM CHANGETABLE(CHANGES dbo.t, 0)", 22104),
        ("SELECT * FROM CHANGETABLE(VERSION dbo.t, (id), (1))", 22104),
        ("SELECT * FROM CHANGETABLE(CHANGES sys.objects, 0) AS c", 22107),
        ("SELECT * FROM CHANGETABLE(CHANGES dbo.t, 'x') AS c", 8114),
    ],
)
def test_67_errors(t: Database, text: str, number: int) -> None:
    assert t.number(text) == number


def test_67_a_table_that_is_not_tracked_fails_the_whole_batch(t: Database) -> None:
    t.run("CREATE TABLE dbo.u (id int PRIMARY KEY)")
    error = t.error("INSERT INTO dbo.u VALUES (1)\nSELECT 1 AS one\nSELECT * FROM CHANGETABLE(CHANGES dbo.u, 0) AS c")
    assert (error.number, error.results, t.run("SELECT * FROM dbo.u")) == (22105, [], [])


# Net changes


@pytest.mark.parametrize(
    ("before", "within", "rows"),
    [
        pytest.param("", "INSERT INTO dbo.t VALUES (1, 'x', 1)", [(3, 3, "I", None, None, 1)], id="insert"),
        pytest.param(
            "",
            "INSERT INTO dbo.t VALUES (1, 'x', 1) UPDATE dbo.t SET a = 'y' WHERE id = 1",
            [(4, 3, "I", None, None, 1)],
            id="insert-update",
        ),
        pytest.param(
            "",
            "INSERT INTO dbo.t VALUES (1, 'x', 1) DELETE FROM dbo.t WHERE id = 1",
            [(4, 3, "D", None, None, 1)],
            id="insert-delete",
        ),
        pytest.param(
            "INSERT INTO dbo.t VALUES (1, 'x', 1)",
            "UPDATE dbo.t SET a = 'y' WHERE id = 1",
            [(3, None, "U", mask(2), None, 1)],
            id="update",
        ),
        pytest.param(
            "INSERT INTO dbo.t VALUES (1, 'x', 1)",
            "UPDATE dbo.t SET a = 'y' WHERE id = 1 DELETE FROM dbo.t WHERE id = 1",
            [(4, None, "D", None, None, 1)],
            id="update-delete",
        ),
        pytest.param(
            "INSERT INTO dbo.t VALUES (1, 'x', 1)",
            "DELETE FROM dbo.t WHERE id = 1 INSERT INTO dbo.t VALUES (1, 'z', 1)",
            [(4, 4, "U", None, None, 1)],
            id="delete-insert",
        ),
        pytest.param(
            "INSERT INTO dbo.t VALUES (1, 'x', 1)",
            "DELETE FROM dbo.t WHERE id = 1 INSERT INTO dbo.t VALUES (1, 'z', 1) DELETE FROM dbo.t WHERE id = 1",
            [(5, 4, "D", None, None, 1)],
            id="delete-insert-delete",
        ),
        pytest.param(
            "",
            "INSERT INTO dbo.t VALUES (1, 'x', 1) DELETE FROM dbo.t WHERE id = 1 INSERT INTO dbo.t VALUES (1, 'z', 1)",
            [(5, 5, "I", None, None, 1)],
            id="insert-delete-insert",
        ),
        pytest.param(
            "INSERT INTO dbo.t VALUES (1, 'x', 1)",
            "UPDATE dbo.t SET id = 5 WHERE id = 1",
            [(3, None, "D", None, None, 1), (3, 3, "I", None, None, 5)],
            id="key-update",
        ),
        pytest.param(
            "INSERT INTO dbo.t VALUES (1, 'x', 1), (2, 'y', 2)",
            "UPDATE dbo.t SET id = id + 1 WHERE id < 9",
            [(3, None, "D", None, None, 1), (3, 3, "U", None, None, 2), (3, 3, "I", None, None, 3)],
            id="keys-that-move-on",
        ),
    ],
)
def test_68_net_changes(t: Database, before: str, within: str, rows: list[Row]) -> None:
    t.run(before or "INSERT INTO dbo.t VALUES (8, 'other', 8)")
    t.run("INSERT INTO dbo.t VALUES (9, 'other', 9)")
    t.run(within)
    assert net(t, 2, _ALL) == rows


def test_68_one_row_for_each_key_whatever_the_window(t: Database) -> None:
    t.run("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    t.run("UPDATE dbo.t SET a = 'y'")
    t.run("DELETE FROM dbo.t")
    t.run("INSERT INTO dbo.t VALUES (1, 'z', 1)")
    told = {
        after: net(t, after, "SYS_CHANGE_VERSION, SYS_CHANGE_CREATION_VERSION, SYS_CHANGE_OPERATION")
        for after in range(5)
    }
    assert told == {0: [(4, 4, "I")], 1: [(4, 4, "U")], 2: [(4, 4, "U")], 3: [(4, 4, "I")], 4: []}


def test_69_truncate_moves_the_lowest_valid_version_and_draws_none(t: Database) -> None:
    t.run("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    t.run("INSERT INTO dbo.t VALUES (2, 'y', 2)")
    assert (min_valid(t), net(t, 0)) == (0, [("I", 1), ("I", 2)])
    t.run("TRUNCATE TABLE dbo.t")
    assert (version(t), min_valid(t), net(t, "NULL"), t.run("SELECT * FROM dbo.t")) == (2, 2, [], [])
    begun = (
        "SELECT begin_version, min_valid_version FROM sys.change_tracking_tables WHERE object_id = OBJECT_ID('dbo.t')"
    )
    assert t.run(begun) == [(2, 2)]
    t.run("INSERT INTO dbo.t VALUES (2, 'z', 3)")
    assert net(t, 0, _ALL) == [(3, 3, "I", None, None, 2)]  # no error, though changes are missing


def test_69_cleanup_moves_it_too(t: Database) -> None:
    embedded = t.server.only_embedded("its cleanup runs when it likes")
    for number in range(1, 4):
        t.run(f"INSERT INTO dbo.t VALUES ({number}, 'x', {number})")
        embedded.advance(days=1)
    assert (min_valid(t), net(t, 0)) == (0, [("I", 1), ("I", 2), ("I", 3)])
    embedded.sandbox.clean_tracking(t.name)
    assert (version(t), min_valid(t), net(t, 0)) == (3, 1, [("I", 2), ("I", 3)])  # no error, though one is missing
    assert t.run("SELECT id FROM dbo.t ORDER BY id") == [(1,), (2,), (3,)]


def test_70_updates_to_the_same_value_are_recorded(t: Database) -> None:
    t.run("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    t.run("UPDATE dbo.t SET a = a WHERE id = 1")
    assert net(t, 1, _ALL) == [(2, None, "U", mask(2), None, 1)]
    t.run("UPDATE dbo.t SET id = id WHERE id = 1")
    assert net(t, 2, "SYS_CHANGE_VERSION, SYS_CHANGE_OPERATION, SYS_CHANGE_COLUMNS, id") == [(3, "U", None, 1)]


@pytest.mark.parametrize(
    ("batch", "found"),
    [
        ("UPDATE dbo.t SET b = 7", mask(3)),
        ("UPDATE dbo.t SET b = 7 UPDATE dbo.t SET d = 8", mask(3, 4)),
        ("UPDATE dbo.t SET d = 8 UPDATE dbo.t SET b = b", mask(3, 4)),
        ("UPDATE dbo.t SET a = 'y', b = 7, d = 8", None),
        ("UPDATE dbo.t SET b = 7 DELETE FROM dbo.t INSERT INTO dbo.t VALUES (1, 'x', 1, 1)", None),
        ("DELETE FROM dbo.t", None),
    ],
)
def test_71_masks(t: Database, batch: str, found: bytes | None) -> None:
    t.run("ALTER TABLE dbo.t ADD d int NULL")
    t.run("INSERT INTO dbo.t VALUES (1, 'x', 1, 1)")
    t.run(batch)
    assert net(t, 1, "SYS_CHANGE_COLUMNS") == [(found,)]


def test_71_no_masks_where_columns_are_not_tracked(t: Database) -> None:
    t.run("ALTER TABLE dbo.t DISABLE CHANGE_TRACKING")
    t.run(TRACK)
    t.run("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    t.run("UPDATE dbo.t SET b = 7")
    assert net(t, 1, _ALL) == [(2, None, "U", None, None, 1)]


def test_71_is_column_in_mask(t: Database) -> None:
    t.run("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    t.run("UPDATE dbo.t SET b = 7")
    asked = (
        "SELECT COLUMNPROPERTY_ID, CHANGE_TRACKING_IS_COLUMN_IN_MASK(COLUMNPROPERTY_ID, c.SYS_CHANGE_COLUMNS)"
        " FROM CHANGETABLE(CHANGES dbo.t, 1) AS c"
        " CROSS APPLY (SELECT column_id AS COLUMNPROPERTY_ID FROM sys.columns"
        " WHERE object_id = OBJECT_ID('dbo.t')) AS n ORDER BY 1"
    )
    assert t.run(asked) == [(1, 0), (2, 0), (3, 1)]
    assert t.value("SELECT CHANGE_TRACKING_IS_COLUMN_IN_MASK(2, NULL)") == 1
    assert t.number("SELECT CHANGE_TRACKING_IS_COLUMN_IN_MASK(2, 0x00)") == 22101


# Contexts and versions of rows


def test_73_context(t: Database) -> None:
    t.run("WITH CHANGE_TRACKING_CONTEXT (0x0102) INSERT INTO dbo.t VALUES (1, 'x', 1), (2, 'y', 2)")
    t.run("INSERT INTO dbo.t VALUES (3, 'z', 3)")
    t.run("DECLARE @c varbinary(128) = 0xAA; WITH CHANGE_TRACKING_CONTEXT (@c) UPDATE dbo.t SET b = 5 WHERE id = 2")
    t.run("WITH CHANGE_TRACKING_CONTEXT (0xBB) DELETE FROM dbo.t WHERE id = 3")
    told = net(t, 0, "SYS_CHANGE_VERSION, SYS_CHANGE_OPERATION, SYS_CHANGE_CONTEXT, id")
    assert told == [(1, "I", b"\x01\x02", 1), (3, "I", b"\xaa", 2), (4, "D", b"\xbb", 3)]
    t.run("UPDATE dbo.t SET b = 6 WHERE id = 2")
    assert net(t, 0, "SYS_CHANGE_CONTEXT, id") == [(b"\x01\x02", 1), (None, 2), (b"\xbb", 3)]


@pytest.mark.parametrize(("length", "number"), [(128, 0), (129, 22109)])
def test_73_context_has_at_most_128_bytes(t: Database, length: int, number: int) -> None:
    batch = f"WITH CHANGE_TRACKING_CONTEXT (0x{'AB' * length}) INSERT INTO dbo.t VALUES (1, 'x', 1)"
    if number:
        assert t.number(batch) == number
        assert (version(t), t.run("SELECT * FROM dbo.t")) == (0, [])
    else:
        t.run(batch)
        assert net(t, 0, "SYS_CHANGE_CONTEXT") == [(b"\xab" * length,)]


def test_74_version_of_a_row(t: Database) -> None:
    t.run("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    t.run("WITH CHANGE_TRACKING_CONTEXT (0x07) UPDATE dbo.t SET b = 5")
    t.run("INSERT INTO dbo.t VALUES (2, 'y', 2) DELETE FROM dbo.t WHERE id = 2")
    asked = "SELECT * FROM CHANGETABLE(VERSION dbo.t, (id), ({})) AS c"
    assert t.names(asked.format(1)) == ["SYS_CHANGE_VERSION", "SYS_CHANGE_CONTEXT", "id"]
    assert t.run(asked.format(1)) == [(2, b"\x07", 1)]
    assert t.run(asked.format(2)) == t.run(asked.format(3)) == []


def test_74_a_row_that_was_there_before_has_no_version(t: Database) -> None:
    t.run("ALTER TABLE dbo.t DISABLE CHANGE_TRACKING")
    t.run("INSERT INTO dbo.t VALUES (1, 'x', 1), (2, 'y', 2)")
    t.run(TRACK)
    t.run("UPDATE dbo.t SET b = 5 WHERE id = 2")
    applied = "SELECT t.id, c.SYS_CHANGE_VERSION FROM dbo.t AS t {} APPLY CHANGETABLE(VERSION dbo.t, (id), (t.id)) AS c"
    for kind in ("CROSS", "OUTER"):
        assert sorted(t.run(applied.format(kind))) == [(1, None), (2, 1)]
    missing = (
        "SELECT n.id, c.id, c.SYS_CHANGE_VERSION FROM (VALUES (2), (7)) AS n (id) {} APPLY"
        " CHANGETABLE(VERSION dbo.t, (id), (n.id)) AS c ORDER BY 1"
    )
    assert t.run(missing.format("CROSS")) == [(2, 2, 1)]
    assert t.run(missing.format("OUTER")) == [(2, 2, 1), (7, None, None)]


@pytest.mark.parametrize(
    ("columns", "values", "number"),
    [("(x)", "(1)", 22110), ("(x, z)", "(1, 2)", 22111), ("(x, x)", "(1, 2)", 22112), ("(y, x)", "(2, 1)", 0)],
)
def test_74_the_key_must_be_whole(t: Database, columns: str, values: str, number: int) -> None:
    t.run("CREATE TABLE dbo.k (x int, y int, z int, CONSTRAINT pk_k PRIMARY KEY (x, y))")
    t.run("ALTER TABLE dbo.k ENABLE CHANGE_TRACKING")
    t.run("INSERT INTO dbo.k VALUES (1, 2, 3)")
    asked = f"SELECT * FROM CHANGETABLE(VERSION dbo.k, {columns}, {values}) AS c"
    if number:
        assert t.number(asked) == number
    else:
        assert t.run(asked) == [(1, None, 1, 2)]
