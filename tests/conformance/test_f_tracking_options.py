"""Section F: Change Tracking switched on and off, what the catalogue says of it, who may ask, and what it forbids."""

from __future__ import annotations

import pytest

from tests.support.conformance.client import Row
from tests.support.conformance.database import Database
from tests.support.conformance.tracked import COLUMNS, ENABLE, TRACK, min_valid, net, version, with_tracked_table

_OPTIONS = (
    "SELECT is_auto_cleanup_on, retention_period, retention_period_units, retention_period_units_desc"
    " FROM sys.change_tracking_databases WHERE database_id = DB_ID()"
)
_ON = "SELECT CAST(DATABASEPROPERTYEX(DB_NAME(), 'IsChangeTrackingEnabled') AS int)"


@pytest.fixture
def t(plain: Database) -> Database:
    """A database whose table dbo.t (id, a) is tracked."""
    return with_tracked_table(plain)


@pytest.mark.parametrize(
    ("set_to", "options"),
    [
        ("= ON", (True, 2, 3, "DAYS")),
        ("= ON (CHANGE_RETENTION = 90 MINUTES)", (True, 90, 1, "MINUTES")),
        ("= ON (AUTO_CLEANUP = OFF, CHANGE_RETENTION = 5 HOURS)", (False, 5, 2, "HOURS")),
        ("= ON (AUTO_CLEANUP = ON)", (True, 2, 3, "DAYS")),
    ],
)
def test_72_options_of_a_database(plain: Database, set_to: str, options: Row) -> None:
    assert (plain.run(_OPTIONS), plain.value(_ON)) == ([], 0)
    plain.run(f"ALTER DATABASE CURRENT SET CHANGE_TRACKING {set_to}")
    assert (plain.run(_OPTIONS), plain.value(_ON)) == ([options], 1)
    plain.run("ALTER DATABASE CURRENT SET CHANGE_TRACKING (CHANGE_RETENTION = 7 DAYS)")
    assert plain.run(_OPTIONS) == [(options[0], 7, 3, "DAYS")]
    plain.run("ALTER DATABASE CURRENT SET CHANGE_TRACKING (AUTO_CLEANUP = OFF)")
    assert plain.run(_OPTIONS) == [(False, 7, 3, "DAYS")]
    plain.run("ALTER DATABASE CURRENT SET CHANGE_TRACKING = OFF")
    assert (plain.run(_OPTIONS), plain.value(_ON)) == ([], 0)


@pytest.mark.parametrize(
    ("first", "text", "number", "state"),
    [
        (ENABLE, ENABLE, 5088, None),
        ("", "ALTER DATABASE CURRENT SET CHANGE_TRACKING = OFF", 5089, 1),
        ("", "ALTER DATABASE CURRENT SET CHANGE_TRACKING (AUTO_CLEANUP = OFF)", 5089, 2),
        ("", "ALTER DATABASE msdb SET CHANGE_TRACKING = ON", 5090, None),
        ("", f"{ENABLE}, RECOVERY SIMPLE", 22114, None),
        ("", "ALTER DATABASE CURRENT SET RECOVERY SIMPLE, CHANGE_TRACKING = ON", 22114, None),
    ],
)
def test_72_errors_of_a_database_are_followed_by_another(
    plain: Database, first: str, text: str, number: int, state: int | None
) -> None:
    if first:
        plain.run(first)
    error = plain.error(text)
    assert error.number == number
    assert state in (None, error.state)
    assert len([message for message in plain.messages if message.severity > 10]) == 2


def test_72_a_database_with_tracked_tables_stays_tracked(t: Database) -> None:
    assert t.number("ALTER DATABASE CURRENT SET CHANGE_TRACKING = OFF") == 22115
    t.run("ALTER TABLE dbo.t DISABLE CHANGE_TRACKING ALTER DATABASE CURRENT SET CHANGE_TRACKING = OFF")
    assert version(t) is None


@pytest.mark.parametrize(
    ("options", "number", "state"),
    [
        ("CHANGE_RETENTION = 2 DAY", 155, 2),
        ("CHANGE_RETENTION = 2 WEEKS", 155, 2),
        ("CHANGE_RETENTION = 2 DAYS, CHANGE_RETENTION = 3 DAYS", 5091, None),
        ("AUTO_CLEANUP = ON, AUTO_CLEANUP = ON", 5091, None),
        ("CHANGE_RETENTION = 0 DAYS", 5092, None),
        ("CHANGE_RETENTION = 1491309 DAYS", 5092, None),
    ],
)
def test_72_mistakes_that_show_before_a_batch_runs(
    plain: Database, options: str, number: int, state: int | None
) -> None:
    plain.run("CREATE TABLE dbo.noted (i int)")
    error = plain.error(f"INSERT INTO dbo.noted VALUES (1)\n{ENABLE} ({options})")
    assert (error.number, error.severity) == (number, 15)
    assert state in (None, error.state)
    assert (plain.run("SELECT * FROM dbo.noted"), plain.run(_OPTIONS)) == ([], [])


def test_72_the_longest_retention(plain: Database) -> None:
    plain.run(f"{ENABLE} (CHANGE_RETENTION = 2147483647 MINUTES)")
    assert plain.run(_OPTIONS) == [(True, 2147483647, 1, "MINUTES")]


def test_72_errors_of_a_table(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    plain.run("CREATE TABLE dbo.heap (id int)")
    plain.run("CREATE TABLE dbo.stamped (id rowversion PRIMARY KEY)")
    found = [plain.number(TRACK)]
    plain.run(ENABLE)
    plain.run(TRACK)
    found += [
        plain.number(text)
        for text in (
            TRACK + COLUMNS,
            "ALTER TABLE dbo.heap ENABLE CHANGE_TRACKING",
            "ALTER TABLE dbo.stamped ENABLE CHANGE_TRACKING",
            "ALTER TABLE dbo.heap DISABLE CHANGE_TRACKING",
            "ALTER TABLE dbo.missing ENABLE CHANGE_TRACKING",
        )
    ]
    assert found == [1718, 4996, 4997, 4999, 4998, 4902]
    tracked = "SELECT OBJECT_NAME(object_id), is_track_columns_updated_on FROM sys.change_tracking_tables"
    assert plain.run(tracked) == [("t", False)]


# Versions that are not there


def test_75_nothing_is_tracked(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    assert plain.run("SELECT * FROM sys.change_tracking_databases WHERE database_id = DB_ID()") == []
    assert plain.run("SELECT * FROM sys.change_tracking_tables") == []
    assert (version(plain), min_valid(plain)) == (None, None)
    plain.run(ENABLE)
    assert (version(plain), min_valid(plain), min_valid(plain, "dbo.missing")) == (0, None, None)
    plain.run(TRACK)
    assert (version(plain), min_valid(plain)) == (0, 0)
    assert plain.number("SELECT CHANGE_TRACKING_MIN_VALID_VERSION(NULL)") == 8116


def test_75_lowest_versions_of_all_tables(t: Database) -> None:
    t.run("CREATE TABLE dbo.u (id int PRIMARY KEY)")
    t.run("CREATE TABLE dbo.v (id int PRIMARY KEY)")
    t.run("INSERT INTO dbo.t VALUES (1, 1)")
    t.run(f"ALTER TABLE dbo.u ENABLE CHANGE_TRACKING{COLUMNS}")
    asked = "SELECT name, CHANGE_TRACKING_MIN_VALID_VERSION(object_id) FROM sys.tables ORDER BY name"
    assert t.run(asked) == [("t", 0), ("u", 1), ("v", None)]
    listed = (
        "SELECT OBJECT_NAME(object_id), is_track_columns_updated_on, begin_version, min_valid_version"
        " FROM sys.change_tracking_tables ORDER BY 1"
    )
    assert t.run(listed) == [("t", False, 0, 0), ("u", True, 1, 1)]


def test_75_nothing_without_the_right(t: Database) -> None:
    t.run("INSERT INTO dbo.t VALUES (1, 1)")
    asked = "SELECT CHANGE_TRACKING_MIN_VALID_VERSION(OBJECT_ID('dbo.t'))"
    reader = t.user("GRANT SELECT ON dbo.t TO {user}")
    assert reader.value(asked) is None
    assert reader.number("SELECT id FROM CHANGETABLE(CHANGES dbo.t, 0) AS c") == 229
    allowed = t.user("GRANT SELECT ON dbo.t TO {user}", "GRANT VIEW CHANGE TRACKING ON dbo.t TO {user}")
    assert allowed.value(asked) == 0
    assert allowed.run("SELECT id FROM CHANGETABLE(CHANGES dbo.t, 0) AS c") == [(1,)]
    unread = t.user("GRANT VIEW CHANGE TRACKING ON OBJECT::dbo.t TO {user}")
    assert unread.number("SELECT id FROM CHANGETABLE(CHANGES dbo.t, 0) AS c") == 229


# What is visible


def test_76_what_is_not_committed_is_not_there(t: Database) -> None:
    t.run("INSERT INTO dbo.t VALUES (1, 1)")
    other = t.connect()
    other.run("BEGIN TRAN INSERT INTO dbo.t VALUES (2, 2) UPDATE dbo.t SET a = 5 WHERE id = 1")
    asked = "SELECT SYS_CHANGE_VERSION, SYS_CHANGE_OPERATION, id FROM CHANGETABLE(CHANGES dbo.t, 0) AS c ORDER BY id"
    for client in (t, other):
        assert client.value("SELECT CHANGE_TRACKING_CURRENT_VERSION()") == 1
        assert client.run(asked) == [(1, "I", 1)]
    other.run("COMMIT")
    for client in (t, other):
        assert client.value("SELECT CHANGE_TRACKING_CURRENT_VERSION()") == 2
        assert client.run(asked) == [(2, "I", 1), (2, "I", 2)]


def test_76_what_is_rolled_back_never_was(t: Database) -> None:
    t.run("BEGIN TRAN INSERT INTO dbo.t VALUES (1, 1) TRUNCATE TABLE dbo.t INSERT INTO dbo.t VALUES (2, 2) ROLLBACK")
    assert (version(t), min_valid(t), net(t, 0)) == (0, 0, [])
    t.run("BEGIN TRAN ALTER TABLE dbo.t DISABLE CHANGE_TRACKING INSERT INTO dbo.t VALUES (1, 1) ROLLBACK")
    t.run("INSERT INTO dbo.t VALUES (3, 3)")
    assert (version(t), min_valid(t), net(t, 0)) == (1, 0, [("I", 3)])


def test_76_a_snapshot_transaction_sees_one_moment(t: Database) -> None:
    t.run("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON")
    t.run("INSERT INTO dbo.t VALUES (1, 1), (2, 2)")
    reader = t.connect()
    reader.run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT BEGIN TRAN")
    joined = (
        "SELECT CHANGE_TRACKING_CURRENT_VERSION(), c.SYS_CHANGE_VERSION, c.SYS_CHANGE_OPERATION, c.id, t.a"
        " FROM CHANGETABLE(CHANGES dbo.t, 0) AS c LEFT JOIN dbo.t AS t ON t.id = c.id ORDER BY c.id"
    )
    then = [(1, 1, "I", 1, 1), (1, 1, "I", 2, 2)]
    assert reader.run(joined) == then
    t.run("UPDATE dbo.t SET a = 9 WHERE id = 1 DELETE FROM dbo.t WHERE id = 2 INSERT INTO dbo.t VALUES (3, 3)")
    assert reader.run(joined) == then
    assert reader.value("SELECT CHANGE_TRACKING_CURRENT_VERSION()") == 1
    assert reader.run("SELECT * FROM CHANGETABLE(VERSION dbo.t, (id), (2)) AS c") == [(1, None, 2)]
    reader.run("COMMIT")
    assert reader.run(joined) == [(4, 2, "I", 1, 9), (4, 3, "D", 2, None), (4, 4, "I", 3, 3)]


def test_76_a_snapshot_transaction_meets_other_definitions(t: Database) -> None:
    t.run("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON")
    t.run("CREATE TABLE dbo.other (id int PRIMARY KEY) INSERT INTO dbo.t VALUES (1, 1)")
    reader = t.connect()
    reader.run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT BEGIN TRAN SELECT * FROM dbo.other")
    t.run("ALTER TABLE dbo.t ADD b int NULL")
    assert reader.number("SELECT * FROM CHANGETABLE(CHANGES dbo.t, 0) AS c") == 3961


# What is forbidden, and what is not


def test_77_the_primary_key_stays(t: Database) -> None:
    error = t.error("ALTER TABLE dbo.t DROP CONSTRAINT pk_t")
    assert error.number == 3735
    assert len([message for message in t.messages if message.severity > 10]) == 2
    t.run("ALTER TABLE dbo.t DISABLE CHANGE_TRACKING ALTER TABLE dbo.t DROP CONSTRAINT pk_t")
    assert t.run("SELECT name FROM sys.key_constraints WHERE parent_object_id = OBJECT_ID('dbo.t')") == []


def test_77_other_columns_come_go_and_change(t: Database) -> None:
    t.run("INSERT INTO dbo.t VALUES (1, 1)")
    for statement in (
        "ALTER TABLE dbo.t ADD b int NOT NULL DEFAULT 5",
        "ALTER TABLE dbo.t ALTER COLUMN a bigint NULL",
        "EXEC sp_rename 'dbo.t.a', 'c', 'COLUMN'",
        "EXEC sp_rename 'dbo.t.id', 'number', 'COLUMN'",
        "EXEC sp_rename 'dbo.t', 'u'",
    ):
        t.run(statement)
        assert version(t) == 1
    t.run("UPDATE dbo.u SET c = 2 INSERT INTO dbo.u (number, b) VALUES (2, 6)")
    t.run("ALTER TABLE dbo.u DROP COLUMN c")
    told = t.run("SELECT SYS_CHANGE_VERSION, SYS_CHANGE_OPERATION, number FROM CHANGETABLE(CHANGES dbo.u, 0) AS c")
    assert sorted(told) == [(2, "I", 1), (3, "I", 2)]


def test_77_truncate_and_drop_are_allowed(t: Database) -> None:
    t.run("INSERT INTO dbo.t VALUES (1, 1)")
    t.run("TRUNCATE TABLE dbo.t")
    assert (version(t), min_valid(t), net(t, 0)) == (1, 1, [])
    t.run("DROP TABLE dbo.t")
    assert t.run("SELECT * FROM sys.change_tracking_tables") == []
    t.run("ALTER DATABASE CURRENT SET CHANGE_TRACKING = OFF")
    assert version(t) is None
