"""T-SQL: dynamic data masks and row-level security, as who lacks the rights meets them."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from tests.support.conformance.client import Client
from tests.support.conformance.database import Database

_NAMES = "SELECT name, masking_function FROM sys.masked_columns ORDER BY name"


@pytest.fixture
def people(db: Database) -> Database:
    """A table with masks, tracked, and two rows."""
    db.run(
        "CREATE TABLE dbo.people (id int NOT NULL PRIMARY KEY,"
        " name nvarchar(20) MASKED WITH (FUNCTION = 'partial(1, \"xx\", 2)') NULL,"
        " mail varchar(40) MASKED WITH (FUNCTION = 'email()') NULL,"
        " born date MASKED WITH (FUNCTION = 'default()') NULL,"
        " pay decimal(9, 2) MASKED WITH (FUNCTION = 'default()') NULL,"
        " open_name nvarchar(20) NULL)"
    )
    db.track("people", supports_net_changes=1)
    db.commit(
        "INSERT INTO dbo.people VALUES (1, N'Anna', 'anna@shop.example', '19800102', 7.5, N'A'),"
        " (2, NULL, NULL, NULL, NULL, NULL)"
    )
    return db


_SEEN = [
    (1, "Axxna", "aXXX@XXXX.com", datetime.date(1900, 1, 1), Decimal("0.00"), "A"),
    (2, None, None, None, None, None),
]
_HELD = [
    (1, "Anna", "anna@shop.example", datetime.date(1980, 1, 2), Decimal("7.50"), "A"),
    (2, None, None, None, None, None),
]


def _reader(db: Database, *more: str) -> Client:
    return db.user("GRANT SELECT ON SCHEMA::dbo TO {user}", "GRANT SELECT ON SCHEMA::cdc TO {user}", *more)


def test_a6_who_may_not_unmask_sees_masks(people: Database) -> None:
    reader = _reader(people)
    assert reader.run("SELECT * FROM dbo.people ORDER BY id") == _SEEN
    assert people.run("SELECT * FROM dbo.people ORDER BY id") == _HELD
    assert _reader(people, "GRANT UNMASK TO {user}").run("SELECT * FROM dbo.people ORDER BY id") == _HELD
    assert _reader(people, "ALTER ROLE db_owner ADD MEMBER {user}").run("SELECT * FROM dbo.people ORDER BY id") == _HELD


@pytest.mark.parametrize(
    ("grants", "held"),
    [
        (("UNMASK ON dbo.people",), "source"),
        (("UNMASK ON SCHEMA::cdc",), "changes"),
        (("UNMASK ON dbo.people (mail)",), "mail"),
    ],
)
def test_a6_unmask_on_less_than_the_database(people: Database, grants: tuple[str, ...], held: str) -> None:
    if people.major() < 16:
        pytest.skip("a right of 2022")
    reader = _reader(people, *(f"GRANT {grant} TO {{user}}" for grant in grants))
    mail, hidden = "anna@shop.example", "aXXX@XXXX.com"
    one = "SELECT mail, pay FROM {} WHERE id = 1"
    assert reader.run(one.format("dbo.people")) == [
        (mail if held in ("source", "mail") else hidden, Decimal("7.50") if held == "source" else Decimal("0.00"))
    ]
    of_changes = (mail, Decimal("7.50")) if held == "changes" else (hidden, Decimal("0.00"))
    assert reader.run(one.format("cdc.dbo_people_CT")) == [of_changes]


def test_a6_a_right_on_a_column_ends_with_it(plain: Database) -> None:
    if plain.major() < 16:
        pytest.skip("a right of 2022")
    added = "ALTER TABLE dbo.u ADD a varchar(9) MASKED WITH (FUNCTION = 'default()') NULL"
    plain.run("CREATE TABLE dbo.u (id int)")
    plain.run(added)
    plain.run("INSERT dbo.u VALUES (1, 'clear')")
    reader = plain.user("GRANT SELECT ON dbo.u TO {user}", "GRANT UNMASK ON dbo.u (a) TO {user}")
    assert reader.value("SELECT a FROM dbo.u") == "clear"
    plain.run("ALTER TABLE dbo.u DROP COLUMN a")
    plain.run(added)
    plain.run("UPDATE dbo.u SET a = 'clear'")
    assert reader.value("SELECT a FROM dbo.u") == "xxxx"


@pytest.mark.parametrize("source", ["cdc.dbo_people_CT", "all", "net"])
def test_d_masked_columns_keep_their_masks_in_the_change_table(people: Database, source: str) -> None:
    reader = _reader(people)
    if source != "cdc.dbo_people_CT":
        low, high = people.min_lsn("dbo_people").hex(), people.max_lsn().hex()
        source = f"cdc.fn_cdc_get_{source}_changes_dbo_people(0x{low}, 0x{high}, N'all')"
    columns = "id, name, mail, born, pay, open_name"
    assert reader.run(f"SELECT {columns} FROM {source} ORDER BY id") == _SEEN
    assert people.run(f"SELECT {columns} FROM {source} ORDER BY id") == _HELD


def test_a6_conditions_and_orders_go_by_the_values(people: Database) -> None:
    reader = _reader(people)
    people.run("INSERT INTO dbo.people (id, name, pay) VALUES (3, N'Zoe', 9), (4, N'Bob', 8)")
    assert reader.run("SELECT id, name FROM dbo.people WHERE pay > 7 ORDER BY name DESC") == [
        (3, "Zxxoe"),
        (4, "Bxxob"),
        (1, "Axxna"),
    ]
    grouped = reader.run("SELECT name, COUNT(*) FROM dbo.people WHERE id < 3 GROUP BY name ORDER BY name DESC")
    assert grouped == [("Axxna", 1), (None, 1)]


@pytest.mark.parametrize(
    ("statement", "seen"),
    [
        ("SELECT UPPER(mail) FROM dbo.people WHERE id = 1", "xxxx"),
        ("SELECT pay + 1 FROM dbo.people WHERE id = 1", Decimal("0.00")),
        ("SELECT YEAR(born) FROM dbo.people WHERE id = 1", 0),
        ("SELECT CAST(pay AS varchar(30)) FROM dbo.people WHERE id = 1", "xxxx"),
        ("SELECT MAX(mail) FROM dbo.people", "xxxx"),
        ("SELECT m FROM (SELECT mail AS m FROM dbo.people WHERE id = 1) AS p", "aXXX@XXXX.com"),
        ("WITH p (m) AS (SELECT UPPER(mail) FROM dbo.people WHERE id = 1) SELECT m FROM p", "xxxx"),
        ("SELECT x.m FROM dbo.people AS p CROSS APPLY (SELECT p.mail AS m) AS x WHERE p.id = 1", "aXXX@XXXX.com"),
        ("SELECT mail FROM dbo.people WHERE id = 1 UNION SELECT mail FROM dbo.people WHERE id = 1", "aXXX@XXXX.com"),
        ("SELECT mail FROM dbo.people WHERE id = 1 UNION ALL SELECT mail FROM dbo.people WHERE 1 = 0", "aXXX@XXXX.com"),
        ("SELECT DISTINCT mail FROM dbo.people WHERE mail IS NOT NULL", "aXXX@XXXX.com"),
        ("SELECT TOP (1) mail FROM dbo.people ORDER BY mail DESC", "aXXX@XXXX.com"),
        ("DECLARE @m varchar(40) SELECT @m = mail FROM dbo.people WHERE id = 1 SELECT @m", "aXXX@XXXX.com"),
        ("EXEC sp_executesql N'SELECT mail FROM dbo.people WHERE id = @id', N'@id int', 1", "aXXX@XXXX.com"),
        ("CREATE TABLE #p (m varchar(40)) INSERT INTO #p SELECT mail FROM dbo.people WHERE id = 1 SELECT m FROM #p",
         "aXXX@XXXX.com"),
        ("SELECT mail AS m INTO #q FROM dbo.people WHERE id = 1 SELECT m FROM #q", "aXXX@XXXX.com"),
    ],
)  # fmt: skip
def test_a6_what_leaves_a_query_is_masked(people: Database, statement: str, seen: object) -> None:
    assert _reader(people).value(statement) == seen


@pytest.mark.parametrize(
    "statement",
    [
        "DECLARE @m varchar(40) SET @m = (SELECT mail FROM dbo.people WHERE id = 1) SELECT @m",
        "DECLARE @m varchar(40) = (SELECT mail FROM dbo.people WHERE id = 1) SELECT @m",
        "SELECT (SELECT mail FROM dbo.people WHERE id = 1)",
        "SELECT STRING_AGG(mail, ',') FROM dbo.people",
        "SELECT CASE WHEN 1 = 1 THEN mail END FROM dbo.people WHERE id = 1",
        "SELECT MAX(mail) OVER (PARTITION BY id) FROM dbo.people WHERE id = 1",
        "SELECT v.x FROM dbo.people AS p CROSS APPLY (VALUES (p.mail)) AS v (x) WHERE p.id = 1",
        "SELECT x FROM (VALUES ((SELECT mail FROM dbo.people WHERE id = 1))) AS v (x)",
        "CREATE TABLE #t (m varchar(40)) INSERT INTO #t VALUES ((SELECT mail FROM dbo.people WHERE id = 1))"
        " SELECT m FROM #t DROP TABLE #t",
    ],
)
def test_a6_no_way_leads_around_a_mask(people: Database, statement: str) -> None:
    assert "shop" not in str(_reader(people).value(statement))
    assert "shop" in str(people.value(statement))


@pytest.mark.parametrize(
    ("type_", "value", "seen"),
    [
        ("char(2)", "'ab'", "xx"),
        ("char(6)", "'ab'", "xxxx  "),
        ("nvarchar(max)", "N'ab'", "xxxx"),
        ("bit", "1", False),
        ("tinyint", "7", 0),
        ("bigint", "7", 0),
        ("money", "7", Decimal("0.0000")),
        ("float", "7", 0.0),
        ("datetime", "'20260102 03:04'", datetime.datetime(1900, 1, 1)),
        ("smalldatetime", "'20260102 03:04'", datetime.datetime(1900, 1, 1)),
        ("datetime2(3)", "'20260102 03:04'", datetime.datetime(1900, 1, 1)),
        ("time(3)", "'03:04'", datetime.time(0, 0)),
    ],
)
def test_a6_default_by_type(plain: Database, type_: str, value: str, seen: object) -> None:
    plain.run(f"CREATE TABLE dbo.m (v {type_} MASKED WITH (FUNCTION = 'default()')) INSERT INTO dbo.m VALUES ({value})")
    assert plain.user("GRANT SELECT ON dbo.m TO {user}").value("SELECT v FROM dbo.m") == seen


def test_a6_random_lies_in_its_range(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.m (v int MASKED WITH (FUNCTION = 'random(3, 5)'))")
    plain.run(f"INSERT INTO dbo.m VALUES {', '.join(['(100)'] * 60)}")
    seen = {v for (v,) in plain.user("GRANT SELECT ON dbo.m TO {user}").run("SELECT v FROM dbo.m")}
    assert seen == {3, 4, 5}


def test_a6_the_catalogue_of_masks(people: Database) -> None:
    of = "SELECT name FROM sys.columns WHERE object_id = OBJECT_ID('{}') AND is_masked = 1 ORDER BY column_id"
    names = [("name",), ("mail",), ("born",), ("pay",)]
    assert people.run(of.format("dbo.people")) == names
    assert people.run(of.format("cdc.dbo_people_CT")) == names
    captured = people.run("SELECT column_name, masking_function FROM cdc.captured_columns ORDER BY column_ordinal")
    assert [name for name, function in captured if function is not None] == [name for (name,) in names]
    masks = "SELECT name FROM sys.masked_columns WHERE object_id = OBJECT_ID('dbo.people') AND is_masked = 1"
    assert sorted(people.run(masks)) == sorted(names)


def test_a6_masks_come_and_go(db: Database) -> None:
    db.run("CREATE TABLE dbo.m (id int PRIMARY KEY, v varchar(9)) INSERT INTO dbo.m VALUES (1, 'ab')")
    reader = _reader(db)
    db.run("ALTER TABLE dbo.m ALTER COLUMN v ADD MASKED WITH (FUNCTION = 'default()')")
    assert reader.run("SELECT id, v FROM dbo.m") == [(1, "xxxx")]
    db.run("ALTER TABLE dbo.m ADD w int MASKED WITH (FUNCTION = 'default()') NOT NULL DEFAULT 7")
    assert reader.run("SELECT * FROM dbo.m") == [(1, "xxxx", 0)]
    db.run("ALTER TABLE dbo.m ALTER COLUMN v DROP MASKED SELECT 1")
    assert reader.run("SELECT * FROM dbo.m") == [(1, "ab", 0)]
    assert [name for name, _ in db.run(_NAMES)] == ["w"]


def test_a6_who_sees_masks_may_write(people: Database) -> None:
    writer = _reader(people, "GRANT INSERT, UPDATE, DELETE ON dbo.people TO {user}")
    writer.run("INSERT INTO dbo.people (id, mail) VALUES (3, 'bob@shop.example')")
    writer.run("UPDATE dbo.people SET mail = 'b@shop.example' WHERE mail = 'bob@shop.example'")
    assert people.value("SELECT mail FROM dbo.people WHERE id = 3") == "b@shop.example"
    assert writer.value("SELECT mail FROM dbo.people WHERE id = 3") == "bXXX@XXXX.com"


@pytest.fixture
def owned(db: Database) -> Database:
    """A tracked table of which each user meets its own rows, and the manager all; with three rows."""
    db.run("CREATE TABLE dbo.orders (id int NOT NULL PRIMARY KEY, owner sysname NOT NULL, amount int NULL)")
    db.track("orders")
    db.commit("INSERT INTO dbo.orders VALUES (1, N'ann', 10), (2, N'bob', 20), (3, N'ann', 30)")
    db.run("CREATE SCHEMA security")
    db.run(
        "CREATE FUNCTION security.own_rows(@owner AS sysname)\n    RETURNS TABLE\nWITH SCHEMABINDING\nAS\n"
        "    RETURN SELECT 1 AS result\nWHERE @owner = USER_NAME() OR USER_NAME() = 'manager';"
    )
    for user in ("ann", "bob", "manager"):
        db.run(f"CREATE USER {user} WITHOUT LOGIN GRANT SELECT, INSERT, UPDATE, DELETE ON dbo.orders TO {user}")
        db.run(f"GRANT SELECT ON SCHEMA::cdc TO {user}")
    return db


_POLICY = "CREATE SECURITY POLICY own_orders ADD FILTER PREDICATE security.own_rows(owner) ON dbo.orders"


def _as(db: Database, user: str, statement: str) -> list[tuple]:
    db.run(f"EXECUTE AS USER = '{user}'")
    try:
        return db.run(statement)
    finally:
        db.run("REVERT")


def test_a6_a_policy_filters_rows_for_everybody(owned: Database) -> None:
    every = "SELECT id FROM dbo.orders ORDER BY id"
    assert _as(owned, "ann", every) == [(1,), (2,), (3,)]
    owned.run(f"{_POLICY} WITH (STATE = ON)")
    assert _as(owned, "ann", every) == [(1,), (3,)]
    assert _as(owned, "bob", every) == [(2,)]
    assert _as(owned, "manager", every) == [(1,), (2,), (3,)]
    # the sysadmin is dbo, whom the predicate does not admit
    assert owned.run(every) == []
    assert _as(owned, "bob", "SELECT COUNT(*), SUM(amount) FROM dbo.orders WITH (NOLOCK)") == [(1, 20)]
    owned.run("ALTER SECURITY POLICY own_orders WITH (STATE = OFF)")
    assert owned.run(every) == [(1,), (2,), (3,)]
    owned.run("ALTER SECURITY POLICY own_orders WITH (STATE = ON)")
    assert owned.run(every) == []
    owned.run("DROP SECURITY POLICY own_orders DROP FUNCTION security.own_rows")
    assert owned.run(every) == [(1,), (2,), (3,)]


@pytest.mark.parametrize("isolation", ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_a6_a_policy_filters_rows_in_every_isolation(owned: Database, isolation: str) -> None:
    owned.run(_POLICY)
    owned.run(f"SET TRANSACTION ISOLATION LEVEL {isolation} BEGIN TRAN")
    assert _as(owned, "ann", "SELECT id, owner, amount FROM dbo.orders WHERE amount > 5 ORDER BY id") == [
        (1, "ann", 10),
        (3, "ann", 30),
    ]
    owned.run("COMMIT")


def test_a6_rows_that_are_filtered_are_not_changed(owned: Database) -> None:
    owned.run(_POLICY)
    _as(owned, "ann", "UPDATE dbo.orders SET amount = amount + 1")
    _as(owned, "bob", "DELETE FROM dbo.orders WHERE id = 1")
    _as(owned, "bob", "INSERT INTO dbo.orders VALUES (4, N'ann', 40)")
    assert _as(owned, "manager", "SELECT id, amount FROM dbo.orders ORDER BY id") == [
        (1, 11),
        (2, 20),
        (3, 31),
        (4, 40),
    ]


def test_a6_changes_are_captured_without_the_policy(owned: Database) -> None:
    owned.run(_POLICY)
    assert _as(owned, "bob", "SELECT id FROM cdc.dbo_orders_CT ORDER BY id") == [(1,), (2,), (3,)]


def test_a6_the_catalogue_of_policies(owned: Database) -> None:
    owned.run(f"{_POLICY} WITH (STATE = OFF)")
    found = (
        "SELECT p.name, p.is_enabled, r.predicate_definition, r.predicate_type, r.predicate_type_desc"
        " FROM sys.security_policies AS p JOIN sys.security_predicates AS r ON r.object_id = p.object_id"
        " WHERE r.target_object_id = OBJECT_ID('dbo.orders')"
    )
    row = ("own_orders", False, "([security].[own_rows]([owner]))", 0, "FILTER")
    assert owned.run(found) == [row]
    assert owned.run(
        "SELECT type, type_desc FROM sys.objects WHERE name IN ('own_rows', 'own_orders') ORDER BY type"
    ) == [
        ("IF", "SQL_INLINE_TABLE_VALUED_FUNCTION"),
        ("SP", "SECURITY_POLICY"),
    ]
    assert owned.user("GRANT SELECT ON dbo.orders TO {user}").run(found) == []
    assert owned.user("GRANT SELECT ON dbo.orders TO {user}", "GRANT VIEW DEFINITION TO {user}").run(found) == [row]


def test_a6_what_a_policy_needs_cannot_be_dropped(owned: Database) -> None:
    owned.run(_POLICY)
    assert owned.number("DROP FUNCTION security.own_rows") == 3729
    assert owned.number("DROP TABLE dbo.orders") == 3729
    assert owned.number("CREATE SECURITY POLICY p ADD FILTER PREDICATE security.nosuch(owner) ON dbo.orders") == 208
    assert owned.number("CREATE SECURITY POLICY p ADD FILTER PREDICATE security.own_rows(nosuch) ON dbo.orders") == 207
    assert owned.user().number("DROP SECURITY POLICY own_orders") in (15151, 15247)
