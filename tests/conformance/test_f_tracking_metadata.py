"""Section F: what the catalogue says of Change Tracking's own tables, who sees what, and the questions of a reader."""

from __future__ import annotations

import pytest

from tests.support.conformance.database import Database
from tests.support.conformance.tracked import with_tracked_table

_INTERNAL = (
    "SELECT internal_type, internal_type_desc, type, SCHEMA_NAME(schema_id), parent_object_id, parent_id"
    " FROM sys.internal_tables WHERE internal_type IN (209, 210) ORDER BY internal_type"
)
_RIGHT = "SELECT HAS_PERMS_BY_NAME('dbo.t', 'OBJECT', '{}'{})"


@pytest.fixture
def t(plain: Database) -> Database:
    """A database whose table dbo.t (id, a) is tracked."""
    return with_tracked_table(plain)


def test_75_internal_tables(t: Database) -> None:
    # the commit table is there whether or not anything is tracked
    commits = (210, "TRACKED_COMMITTED_TRANSACTIONS", "IT", "sys", 0, 0)
    table = t.value("SELECT OBJECT_ID('dbo.t')")
    assert t.run(_INTERNAL) == [(209, "CHANGE_TRACKING", "IT", "sys", table, table), commits]
    names = t.run("SELECT name FROM sys.internal_tables WHERE internal_type IN (209, 210) ORDER BY internal_type")
    assert names == [(f"change_tracking_{table}",), ("syscommittab",)]
    t.run("ALTER TABLE dbo.t DISABLE CHANGE_TRACKING ALTER DATABASE CURRENT SET CHANGE_TRACKING = OFF")
    assert t.run(_INTERNAL) == [commits]


def test_75_sizes_of_side_tables(t: Database) -> None:
    t.run("INSERT INTO dbo.t VALUES (1, 1), (2, 2), (3, 3)")
    t.run("DELETE FROM dbo.t WHERE id = 1")
    sizes = (
        "SELECT OBJECT_NAME(it.parent_id), p.row_count FROM sys.internal_tables AS it"
        " JOIN sys.dm_db_partition_stats AS p ON p.object_id = it.object_id AND p.index_id IN (0, 1)"
        " WHERE it.internal_type = 209"
    )
    assert t.run(sizes) == [("t", 4)]
    reader = t.user("GRANT SELECT ON dbo.t TO {user}", "GRANT VIEW DEFINITION TO {user}")
    assert reader.number("SELECT COUNT(*) FROM sys.dm_db_partition_stats") == 297
    watcher = t.user("GRANT VIEW DEFINITION TO {user}", "GRANT VIEW DATABASE STATE TO {user}")
    t.run("GRANT SELECT ON dbo.t TO public")
    assert watcher.run(sizes) == [("t", 4)]


@pytest.mark.parametrize(
    ("grant", "seen"),
    [
        ("GRANT SELECT ON dbo.t TO {user}", True),
        ("GRANT SELECT ON dbo.t (id) TO {user}", True),
        ("GRANT VIEW CHANGE TRACKING ON dbo.t TO {user}", True),
        ("GRANT VIEW DEFINITION ON dbo.t TO {user}", True),
        ("GRANT SELECT ON SCHEMA::dbo TO {user}", True),
        ("GRANT VIEW DATABASE STATE TO {user}", False),
    ],
)
def test_75_any_right_shows_a_table(t: Database, grant: str, seen: bool) -> None:
    reader = t.user(grant)
    assert reader.run("SELECT name FROM sys.tables") == ([("t",)] if seen else [])
    tracked = "SELECT COUNT(*) FROM sys.change_tracking_tables AS c JOIN sys.tables AS t ON t.object_id = c.object_id"
    assert reader.value(tracked) == int(seen)


def test_75_rights_of_a_reader_as_he_is_told_them(t: Database) -> None:
    reader = t.user("GRANT SELECT ON dbo.t (id) TO {user}")
    tracking, key, other = (
        _RIGHT.format("VIEW CHANGE TRACKING", ""), _RIGHT.format("SELECT", ", 'id', 'COLUMN'"),
        _RIGHT.format("SELECT", ", 'a', 'COLUMN'"),
    )  # fmt: skip
    assert [reader.value(each) for each in (tracking, key, other)] == [0, 1, 0]
    assert reader.number("SELECT id FROM CHANGETABLE(CHANGES dbo.t, 0) AS c") == 229
    allowed = t.user("GRANT SELECT ON dbo.t (id) TO {user}", "GRANT VIEW CHANGE TRACKING ON dbo.t TO {user}")
    assert [allowed.value(each) for each in (tracking, key, other)] == [1, 1, 0]
    assert allowed.run("SELECT id FROM CHANGETABLE(CHANGES dbo.t, 0) AS c") == []


def test_75_which_of_many_tables_have_no_lowest_version_and_why(t: Database) -> None:
    t.run("CREATE TABLE dbo.u (id int NOT NULL PRIMARY KEY)")
    asked = (
        "DECLARE @current bigint = CHANGE_TRACKING_CURRENT_VERSION();"
        " SELECT w.n, @current, t.name, IIF(c.object_id IS NULL, 0, 1), CHANGE_TRACKING_MIN_VALID_VERSION(t.object_id)"
        " FROM (VALUES (1, N't'), (2, N'u'), (3, N'none')) AS w (n, name)"
        " LEFT JOIN sys.tables AS t ON t.name = w.name"
        " LEFT JOIN sys.change_tracking_tables AS c ON c.object_id = t.object_id ORDER BY w.n"
    )
    assert t.run(asked) == [(1, 0, "t", 1, 0), (2, 0, "u", 0, None), (3, 0, None, 0, None)]
    reader = t.user("GRANT SELECT ON dbo.t TO {user}")
    assert reader.run(asked) == [(1, 0, "t", 1, None), (2, 0, None, 0, None), (3, 0, None, 0, None)]


def test_72_who_may_not_alter(t: Database) -> None:
    reader = t.user("GRANT SELECT ON dbo.t TO {user}")
    # the driver keeps the number of the highest severity: 5069 behind 5011
    for user in (reader, altering := t.user("GRANT ALTER ON dbo.t TO {user}")):
        error = user.error("ALTER DATABASE CURRENT SET CHANGE_TRACKING (AUTO_CLEANUP = OFF)")
        assert (error.number, [message.severity for message in user.messages]) == (5069, [14, 16])
        assert t.name in user.messages[0].text
    assert reader.number("ALTER TABLE dbo.t DISABLE CHANGE_TRACKING") == 1088
    altering.run("ALTER TABLE dbo.t DISABLE CHANGE_TRACKING")
    assert t.run("SELECT * FROM sys.change_tracking_tables") == []
