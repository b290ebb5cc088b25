"""Users, roles, GRANT, DENY and REVOKE, and EXECUTE AS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sandbox.tsql.conftest import Client


@pytest.fixture(autouse=True)
def _users(client: Client) -> Iterator[None]:
    client.run(
        "DROP TABLE IF EXISTS dbo.r CREATE TABLE dbo.r (id int, a int) INSERT dbo.r VALUES (1, 1)"
        " CREATE USER ann WITHOUT LOGIN CREATE USER bob WITHOUT LOGIN WITH DEFAULT_SCHEMA = dbo"
        " CREATE ROLE readers CREATE ROLE inner_readers"
    )
    yield
    client.session.reset()
    client.run(
        "DROP USER ann DROP USER bob EXEC sp_droprolemember 'readers', 'inner_readers' DROP ROLE readers"
        " DROP ROLE IF EXISTS inner_readers"
    )


def _as(client: Client, user: str, sql: str) -> int:
    """The error number of a batch run as a user, 0 for none."""
    client.sets(f"EXEC ('EXECUTE AS USER = ''{user}'' {sql.replace(chr(39), chr(39) * 2)}')")
    return next((message.number for message in client.messages if message.severity > 10), 0)


@pytest.mark.parametrize(
    ("grants", "numbers"),
    [
        ("GRANT SELECT ON dbo.r TO ann", (0, 229, 229, 229)),
        ("GRANT SELECT, INSERT ON OBJECT::dbo.r TO bob, ann", (0, 0, 229, 229)),
        ("GRANT SELECT, UPDATE ON SCHEMA::dbo TO ann WITH GRANT OPTION", (0, 229, 0, 229)),
        ("GRANT SELECT TO public", (0, 229, 229, 229)),
        ("GRANT CONTROL ON DATABASE::shop TO ann", (0, 0, 0, 0)),
        ("GRANT CONTROL ON dbo.r TO ann DENY DELETE ON dbo.r TO ann", (0, 0, 0, 229)),
        ("GRANT SELECT ON SCHEMA::dbo TO ann DENY SELECT ON dbo.r TO readers ALTER ROLE readers ADD MEMBER ann",
         (229, 229, 229, 229)),
        ("DENY SELECT ON dbo.r TO ann GRANT SELECT ON dbo.r TO ann", (0, 229, 229, 229)),
        ("GRANT SELECT ON dbo.r TO ann REVOKE SELECT ON dbo.r FROM ann", (229, 229, 229, 229)),
        ("EXEC sp_addrolemember 'db_datareader', 'ann'"
         " EXEC sp_addrolemember @rolename = N'db_datawriter', @membername = N'ann'", (0, 0, 0, 0)),
        ("ALTER ROLE db_owner ADD MEMBER ann", (0, 0, 0, 0)),
        ("GRANT SELECT TO ann ALTER ROLE db_denydatareader ADD MEMBER ann", (229, 229, 229, 229)),
        ("GRANT INSERT ON dbo.r TO readers EXEC sp_addrolemember 'readers', 'inner_readers'"
         " ALTER ROLE inner_readers ADD MEMBER ann", (229, 0, 229, 229)),
    ],
)  # fmt: skip
def test_rights_on_a_table(client: Client, grants: str, numbers: tuple[int, ...]) -> None:
    client.run(grants)
    statements = ("SELECT * FROM dbo.r", "INSERT dbo.r VALUES (2, 2)", "UPDATE dbo.r SET a = 3", "DELETE dbo.r")
    assert tuple(_as(client, "ann", statement) for statement in statements) == numbers
    client.run("REVOKE SELECT FROM public REVOKE CONTROL ON DATABASE::shop FROM ann")


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("UPDATE dbo.r SET a = 3", 0),
        ("UPDATE TOP (1) dbo.r SET a = DEFAULT, id = 1 + 1", 0),
        ("UPDATE dbo.r SET a = a + 1", 229),
        ("UPDATE dbo.r SET a = (SELECT MAX(id) FROM dbo.r)", 229),
        ("UPDATE dbo.r SET a = 3 WHERE id = 1", 229),
        ("UPDATE dbo.r SET a = 3 OUTPUT inserted.id", 229),
        ("DELETE dbo.r", 0),
        ("DELETE dbo.r WHERE 1 = 1", 229),
        ("DELETE dbo.r OUTPUT deleted.id", 229),
    ],
)
def test_what_reads_columns_takes_the_right_to_select(client: Client, statement: str, number: int) -> None:
    client.run("GRANT UPDATE, DELETE ON dbo.r TO ann")
    assert _as(client, "ann", statement) == number
    client.run("GRANT SELECT ON dbo.r TO ann")
    assert _as(client, "ann", statement) == 0


def test_what_a_session_is_told_of_its_rights(client: Client) -> None:
    client.run(
        "GRANT SELECT ON dbo.r TO readers EXEC sp_addrolemember 'readers', 'ann' GRANT VIEW DATABASE STATE TO ann"
    )
    client.run("EXECUTE AS USER = 'ann'")
    assert client.run("SELECT USER_NAME(), CURRENT_USER, SESSION_USER, ORIGINAL_LOGIN()") == [
        ("ann", "ann", "ann", client.session._env.info.login.user)
    ]
    assert client.run(
        "SELECT IS_MEMBER('readers'), IS_MEMBER('db_owner'), IS_MEMBER('inner_readers'), IS_MEMBER('nosuch'),"
        " IS_MEMBER('public'), IS_SRVROLEMEMBER('sysadmin')"
    ) == [(1, 0, 0, None, 1, 0)]
    asked = ["'dbo.r', 'OBJECT', 'SELECT'", "'dbo.r', 'OBJECT', 'UPDATE'", "'dbo', 'SCHEMA', 'SELECT'"]
    asked += ["NULL, NULL, 'VIEW SERVER STATE'", "NULL, 'DATABASE', 'VIEW DATABASE STATE'", "'q', 'OBJECT', 'SELECT'"]
    assert [client.value(f"HAS_PERMS_BY_NAME({each})") for each in asked] == [1, 0, 0, 0, 1, None]
    client.run("REVERT")
    assert client.run("SELECT USER_NAME(), IS_MEMBER('db_owner'), HAS_PERMS_BY_NAME('dbo.r', 'OBJECT', 'DELETE')") == [
        ("dbo", 1, 1)
    ]
    assert client.value("SYSTEM_USER") == client.session._env.info.login.user


def test_the_owner_is_told_of_no_rights_on_what_is_not_there(client: Client) -> None:
    asked = ["'q', 'OBJECT', 'SELECT'", "'dbo.q', 'OBJECT', 'SELECT', 'a', 'COLUMN'", "'dbo.r', 'OBJECT', 'SELECT'"]
    assert [client.value(f"HAS_PERMS_BY_NAME({each})") for each in asked] == [None, None, 1]


@pytest.mark.parametrize("on", ["", " ON dbo.r", " ON SCHEMA::dbo"])
def test_a_denial_of_the_definition_hides_what_may_be_read(client: Client, on: str) -> None:
    seen = "EXECUTE AS USER = 'ann' SELECT name FROM sys.tables WHERE name = 'r'"
    client.run("GRANT SELECT ON dbo.r TO ann")
    assert client.run(seen) == [("r",)]
    client.run("REVERT")
    client.run(f"DENY VIEW DEFINITION{on} TO ann")
    assert client.run(seen) == []
    client.run("REVERT")
    assert _as(client, "ann", "SELECT * FROM dbo.r") == 0
    client.run(f"REVOKE VIEW DEFINITION{on} FROM ann")
    assert client.run(seen) == [("r",)]


def test_a_column_that_is_revoked_is_left_out_of_the_right_on_the_table(client: Client) -> None:
    rows = (
        "SELECT c.name, g.state, g.state_desc FROM sys.database_permissions AS g LEFT JOIN sys.columns AS c"
        " ON c.object_id = g.major_id AND c.column_id = g.minor_id WHERE g.major_id = OBJECT_ID('dbo.r') ORDER BY 1"
    )
    asked = "HAS_PERMS_BY_NAME('dbo.r', 'OBJECT', 'SELECT', '{}', 'COLUMN')"

    def may() -> list[int]:
        client.run("EXECUTE AS USER = 'ann'")
        found = [client.value(asked.format(column)) for column in ("id", "a")]
        client.run("REVERT")
        return found

    # without one on the table there is nothing to leave out
    client.run("REVOKE SELECT (a) ON dbo.r FROM ann")
    assert client.run(rows) == []
    client.run("GRANT SELECT ON dbo.r TO ann REVOKE SELECT (a) ON dbo.r TO ann")
    assert (client.run(rows), may()) == ([(None, "G", "GRANT"), ("a", "R", "REVOKE")], [1, 0])
    client.run("GRANT SELECT (a) ON dbo.r TO ann")
    assert may() == [1, 1]
    client.run("REVOKE SELECT (a) ON dbo.r TO ann REVOKE SELECT ON dbo.r FROM ann")
    assert client.run(rows) == []


def test_each_grantor_says_his_own_of_the_same_table(client: Client) -> None:
    rows = (
        "SELECT o.name, g.state FROM sys.database_permissions AS g"
        " JOIN sys.database_principals AS o ON o.principal_id = g.grantor_principal_id"
        " JOIN sys.database_principals AS p ON p.principal_id = g.grantee_principal_id"
        " WHERE g.major_id = OBJECT_ID('dbo.r') AND p.name = 'ann' ORDER BY 1"
    )
    assert client.error("GRANT SELECT ON dbo.r TO ann AS bob") == 15151
    client.run("GRANT SELECT ON dbo.r TO bob WITH GRANT OPTION GRANT SELECT ON dbo.r TO ann AS bob")
    assert (client.run(rows), _as(client, "ann", "SELECT a FROM dbo.r")) == ([("bob", "G")], 0)
    client.run("DENY SELECT ON dbo.r TO ann")
    assert (client.run(rows), _as(client, "ann", "SELECT a FROM dbo.r")) == ([("bob", "G"), ("dbo", "D")], 229)
    assert client.error("REVOKE SELECT ON dbo.r FROM bob") == 50000
    assert client.error("DROP USER bob") == 15284
    # it takes away a denial of the same grantor only
    client.run("GRANT SELECT ON dbo.r TO ann AS bob")
    assert _as(client, "ann", "SELECT a FROM dbo.r") == 229
    client.run("GRANT SELECT ON dbo.r TO ann")
    assert (client.run(rows), _as(client, "ann", "SELECT a FROM dbo.r")) == ([("bob", "G"), ("dbo", "G")], 0)
    client.run("REVOKE SELECT ON dbo.r FROM ann AS bob")
    assert client.run(rows) == [("dbo", "G")]


def test_impersonation_ends_with_its_batch_and_with_reset(client: Client) -> None:
    assert client.sets("EXEC ('EXECUTE AS USER = ''ann'' SELECT USER_NAME()') SELECT USER_NAME()") == [
        [("ann",)],
        [("dbo",)],
    ]
    client.run("EXECUTE AS USER = 'ann'")
    assert client.error("EXECUTE AS USER = 'bob'") == 15517
    assert client.error("CREATE ROLE another") == 15247
    client.session.reset()
    assert client.value("USER_NAME()") == "dbo"


def test_changing_tables(client: Client) -> None:
    assert _as(client, "ann", "CREATE TABLE dbo.made (a int)") == 262
    assert _as(client, "ann", "ALTER TABLE dbo.r ADD b int") == 1088
    client.run("GRANT ALTER ON dbo.r TO ann ALTER ROLE db_ddladmin ADD MEMBER bob")
    assert _as(client, "ann", "ALTER TABLE dbo.r ADD b int") == 0
    assert _as(client, "bob", "CREATE TABLE dbo.made (a int) DROP TABLE dbo.made") == 0


@pytest.mark.parametrize(
    ("sql", "number"),
    [
        ("GRANT SELECT ON dbo.r TO nobody", 15151),
        ("GRANT VIEW SERVER STATE TO ann", 15151),
        ("GRANT TAKE OWNERSHIP ON dbo.r TO ann", 50000),
        ("CREATE ROLE READERS", 15023),
        ("CREATE ROLE ann", 15023),
        ("DROP ROLE nosuch", 15151),
        ("ALTER ROLE readers ADD MEMBER ann DROP ROLE readers", 15144),
        ("ALTER ROLE nosuch ADD MEMBER ann", 15151),
        ("EXECUTE AS USER = 'nobody'", 15517),
        ("EXECUTE AS LOGIN = 'nobody'", 15406),
        ("EXECUTE AS CALLER", 102),
    ],
)
def test_error(client: Client, sql: str, number: int) -> None:
    assert client.error(sql) == number
    client.run("EXEC sp_droprolemember 'readers', 'ann'")


def test_rights_of_a_login(client: Client) -> None:
    client.run("CREATE LOGIN watcher WITH PASSWORD = 'Secret_1' GRANT VIEW SERVER STATE TO watcher")
    client.run("EXECUTE AS LOGIN = 'watcher'")
    assert client.value("HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW SERVER STATE')") == 1
    client.run("REVERT REVOKE VIEW SERVER STATE FROM watcher EXECUTE AS LOGIN = 'watcher'")
    assert client.value("HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW SERVER STATE')") == 0
