"""Catalogue views and the procedures that drivers call."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from tests.sandbox.tsql.conftest import Client


@pytest.fixture
def shop(sandbox: Sandbox, connect: Callable[..., Client]) -> Client:
    if "views" not in sandbox.instance.storage.databases:
        sandbox.create_database("views")
        sandbox.execute("CREATE SCHEMA sales", "views")
        sandbox.execute(
            """
            CREATE TABLE sales.items (
              order_id bigint NOT NULL, line smallint NOT NULL, note nvarchar(20) NULL,
              price decimal(10,2) NOT NULL DEFAULT 0,
              body varchar(max) NULL, key_2 binary(4) NOT NULL, at datetimeoffset(3) NULL,
              CONSTRAINT pk_items PRIMARY KEY (order_id, line), CONSTRAINT uq_items UNIQUE (key_2))
            INSERT INTO sales.items (order_id, line, key_2) VALUES (1, 1, 0x01), (1, 2, 0x02)
            """,
            "views",
        )
    return connect(database="views")


def test_columns(shop: Client) -> None:
    rows = shop.run(
        """
        SELECT c.column_id, c.name, t.name, c.max_length, c.precision, c.scale, c.is_nullable, c.collation_name
        FROM sys.columns AS c JOIN sys.types AS t ON t.user_type_id = c.user_type_id
        WHERE c.object_id = OBJECT_ID('sales.items') ORDER BY c.column_id
        """
    )
    latin = "SQL_Latin1_General_CP1_CI_AS"
    assert rows == [
        (1, "order_id", "bigint", 8, 19, 0, False, None),
        (2, "line", "smallint", 2, 5, 0, False, None),
        (3, "note", "nvarchar", 40, 0, 0, True, latin),
        (4, "price", "decimal", 9, 10, 2, False, None),
        (5, "body", "varchar", -1, 0, 0, True, latin),
        (6, "key_2", "binary", 4, 0, 0, False, None),
        (7, "at", "datetimeoffset", 9, 30, 3, True, None),
    ]


def test_indexes_and_constraints(shop: Client) -> None:
    assert shop.run(
        """
        SELECT i.name, i.type_desc, i.is_primary_key, i.is_unique_constraint, c.name, ic.key_ordinal
        FROM sys.indexes AS i JOIN sys.index_columns AS ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id
        JOIN sys.columns AS c ON c.object_id = ic.object_id AND c.column_id = ic.column_id
        JOIN sys.tables AS t ON t.object_id = i.object_id WHERE t.name = 'ITEMS' ORDER BY i.index_id, ic.key_ordinal
        """
    ) == [
        ("pk_items", "CLUSTERED", True, False, "order_id", 1),
        ("pk_items", "CLUSTERED", True, False, "line", 2),
        ("uq_items", "NONCLUSTERED", False, True, "key_2", 1),
    ]
    assert shop.run("SELECT name, type FROM sys.key_constraints ORDER BY name") == [
        ("pk_items", "PK"),
        ("uq_items", "UQ"),
    ]


def test_information_schema(shop: Client) -> None:
    assert shop.run("SELECT * FROM views.INFORMATION_SCHEMA.TABLES WHERE TABLE_TYPE = 'BASE TABLE'") == [
        ("views", "sales", "items", "BASE TABLE")
    ]
    assert shop.run(
        "SELECT COLUMN_NAME, DATA_TYPE, CHARACTER_MAXIMUM_LENGTH, NUMERIC_PRECISION, NUMERIC_SCALE, DATETIME_PRECISION"
        " FROM INFORMATION_SCHEMA.COLUMNS WHERE ORDINAL_POSITION IN (3, 4, 5, 7) ORDER BY ORDINAL_POSITION"
    ) == [
        ("note", "nvarchar", 20, None, None, None),
        ("price", "decimal", None, 10, 2, None),
        ("body", "varchar", -1, None, None, None),
        ("at", "datetimeoffset", None, None, None, 3),
    ]


def test_row_counts(shop: Client) -> None:
    counted = (
        "SELECT SUM(row_count) FROM sys.dm_db_partition_stats WHERE object_name(object_id) = 'items' AND index_id < 2"
    )
    assert shop.run(counted) == [(2,)]
    shop.run("BEGIN TRAN DELETE sales.items")
    assert shop.run(counted) == [(0,)]
    shop.run("ROLLBACK")


def test_odbc_procedures(shop: Client) -> None:
    assert shop.run("EXEC sp_pkeys N'items', N'sales', N'views'") == [
        ("views", "sales", "items", "order_id", 1, "pk_items"),
        ("views", "sales", "items", "line", 2, "pk_items"),
    ]
    columns = shop.run("sp_columns_100 N'items', N'sales', N'views', N'%', 2, 3")
    assert [(row[3], row[4], row[5], row[6], row[10], row[16]) for row in columns] == [
        ("order_id", -5, "bigint", 19, 0, 1),
        ("line", 5, "smallint", 5, 0, 2),
        ("note", -9, "nvarchar", 20, 1, 3),
        ("price", 3, "decimal", 10, 0, 4),
        ("body", 12, "varchar", 2147483647, 1, 5),
        ("key_2", -2, "binary", 4, 0, 6),
        ("at", -155, "datetimeoffset", 30, 1, 7),
    ]
    assert [row[:4] for row in shop.run("EXEC sp_tables N'item[_]', N'sales', NULL, N'''TABLE'''")] == []
    assert [row[:4] for row in shop.run("EXEC sp_tables N'item_', N'sales', NULL, N'''TABLE'''")] == [
        ("views", "sales", "items", "TABLE")
    ]
    statistics = shop.run("EXEC sp_statistics_100 N'items', N'sales', N'views', N'%', 'Y', 'Q'")
    assert [(row[5], row[7], row[8]) for row in statistics] == [
        (None, None, None),
        ("pk_items", 1, "order_id"),
        ("pk_items", 2, "line"),
        ("uq_items", 1, "key_2"),
    ]


def test_object_functions(shop: Client) -> None:
    assert shop.value("OBJECT_ID('views.sales.items', 'U')") == shop.value("OBJECT_ID(N'[sales].[items]')")
    assert shop.value("OBJECT_ID('sales.nosuch')") is None
    assert shop.run("SELECT DB_NAME(DB_ID()), SCHEMA_NAME(SCHEMA_ID('sales')), USER_NAME(), SUSER_SNAME()") == [
        ("views", "sales", "dbo", "sa")
    ]
    assert shop.run("SELECT SERVERPROPERTY('EngineEdition'), IS_SRVROLEMEMBER('sysadmin'), IS_MEMBER('db_owner')") == [
        (3, 1, 1)
    ]


def test_agent_and_jobs(shop: Client) -> None:
    stopped = "SELECT status_desc FROM sys.dm_server_services WHERE servicename LIKE N'SQL Server Agent (%'"
    assert shop.run(stopped) == [("Stopped",)]
    assert shop.error("SELECT * FROM msdb.dbo.nosuch") == 208


def test_datatype_info_has_every_type_of_sys_types(client: Client) -> None:
    told = {row[0].replace("() identity", "").replace(" identity", "") for row in client.run("EXEC sp_datatype_info")}
    assert told == {name for (name,) in client.run("SELECT name FROM sys.types")}


def test_datatype_info_as_drivers_ask_for_it_when_they_connect(client: Client) -> None:
    wide = ("'", "'", "max length", 1, 0, 3, None, 0, None)
    assert client.run("sp_datatype_info_100 12,3") == [
        ("varchar", 12, 8000, *wide, "varchar", None, None, 12, None, None, None, 2)
    ]
    assert [column.name for column in client.columns[0]] == [
        "TYPE_NAME", "DATA_TYPE", "PRECISION", "LITERAL_PREFIX", "LITERAL_SUFFIX", "CREATE_PARAMS", "NULLABLE",
        "CASE_SENSITIVE", "SEARCHABLE", "UNSIGNED_ATTRIBUTE", "MONEY", "AUTO_INCREMENT", "LOCAL_TYPE_NAME",
        "MINIMUM_SCALE", "MAXIMUM_SCALE", "SQL_DATA_TYPE", "SQL_DATETIME_SUB", "NUM_PREC_RADIX",
        "INTERVAL_PRECISION", "USERTYPE",
    ]  # fmt: skip
    scales = {row[0]: row[13:17] for row in client.run("EXEC sp_datatype_info_100 93, @ODBCVer = 3")}
    assert scales == {"datetime2": (0, 7, 9, 3), "datetime": (3, 3, 9, 3), "smalldatetime": (0, 0, 9, 3)}
    assert {row[0] for row in client.run("EXEC sp_datatype_info 11")} == set(scales)  # ODBC 2 has another number
    assert [row[0] for row in client.run("sp_datatype_info_100 4, 3")] == ["int", "int identity"]


def test_types_of_columns_as_older_clients_count_them(connect: Callable[..., Client]) -> None:
    # (memory): the type of TDS, 0 for those that are newer than SQL Server 7.0
    pairs = {
        "bit": (50, 50), "tinyint": (48, 38), "smallint": (52, 38), "int": (56, 38), "bigint": (63, 108),
        "decimal(9,2)": (55, 106), "numeric(9,2)": (63, 108), "money": (60, 110), "smallmoney": (122, 110),
        "real": (59, 109), "float": (62, 109), "datetime": (61, 111), "smalldatetime": (58, 111), "char(2)": (47, 39),
        "varchar(2)": (39, 39), "nvarchar(2)": (39, 39), "text": (35, 35), "image": (34, 34), "binary(2)": (45, 37),
        "varbinary(2)": (37, 37), "uniqueidentifier": (37, 37), "date": (0, 0), "datetime2": (0, 0), "xml": (0, 0),
    }  # fmt: skip
    columns = ", ".join(f"a{i} {name} NOT NULL, b{i} {name} NULL" for i, name in enumerate(pairs))
    client = connect()
    client.run(f"CREATE TABLE dbo.counted ({columns})")
    expected = [number for pair in pairs.values() for number in pair]
    for call in ("sp_columns N'counted'", "sp_columns_100 N'counted', N'dbo', NULL, N'%', 2, 3"):
        rows = client.run(f"EXEC {call}")
        place = [column.name for column in client.columns[-1]].index("SS_DATA_TYPE")
        assert [row[place] for row in rows] == expected


def test_space_of_a_table_is_in_the_pages_of_its_indexes(shop: Client) -> None:
    pages = shop.run(
        "SELECT index_id, used_page_count FROM sys.dm_db_partition_stats WHERE object_id = OBJECT_ID('sales.items')"
    )
    data = 8 * next(count for number, count in pages if number < 2)
    total = 8 * sum(count for _, count in pages)
    expected = [("items", f"{2:<20}", f"{total} KB", f"{data} KB", f"{total - data} KB", "0 KB")]
    assert shop.run("EXEC sp_spaceused 'sales.items'") == expected
    assert shop.run("USE master EXEC views.sys.sp_spaceused N'[sales].[items]', @updateusage = 'false'") == expected
    assert shop.error("EXEC sp_spaceused 'shop.sales.items'") in (15009, 15250)
    for call in ("sp_spaceused", "sp_spaceused @mode = 'ALL'", "sp_spaceused '#t'"):
        assert shop.error(f"EXEC {call}") == 50000


def test_permissions(sandbox: Sandbox, connect: Callable[..., Client]) -> None:
    sandbox.create_database("granted")
    sandbox.execute(
        """
        CREATE LOGIN reporter WITH PASSWORD = 'x'
        CREATE TABLE dbo.items (id int NOT NULL PRIMARY KEY, note int)
        CREATE USER reporter
        CREATE USER other WITHOUT LOGIN
        CREATE ROLE readers
        ALTER ROLE readers ADD MEMBER reporter
        GRANT SELECT ON dbo.items TO reporter WITH GRANT OPTION
        GRANT SELECT ON dbo.items TO readers
        GRANT SELECT (note), UPDATE ON dbo.items TO other
        DENY SELECT ON SCHEMA::dbo TO other
        GRANT VIEW DEFINITION TO public
        REVOKE VIEW DEFINITION FROM public
        """,
        "granted",
    )
    asked = """
        SELECT p.name, g.class_desc, COALESCE(OBJECT_NAME(g.major_id), SCHEMA_NAME(NULLIF(g.major_id, 0))), g.minor_id,
          RTRIM(g.type), g.permission_name, g.state, g.state_desc
        FROM sys.database_permissions AS g JOIN sys.database_principals AS p ON p.principal_id = g.grantee_principal_id
        WHERE g.grantor_principal_id = 1 ORDER BY g.class, p.name, g.type
        """
    mine = [
        ("reporter", "DATABASE", None, 0, "CO", "CONNECT", "G", "GRANT"),
        ("readers", "OBJECT_OR_COLUMN", "items", 0, "SL", "SELECT", "G", "GRANT"),
        ("reporter", "OBJECT_OR_COLUMN", "items", 0, "SL", "SELECT", "W", "GRANT_WITH_GRANT_OPTION"),
    ]
    assert connect("reporter", "x", database="granted").run(asked) == mine
    assert connect(database="granted").run(asked) == [
        ("other", "DATABASE", None, 0, "CO", "CONNECT", "G", "GRANT"),
        mine[0],
        ("other", "OBJECT_OR_COLUMN", "items", 2, "SL", "SELECT", "G", "GRANT"),
        ("other", "OBJECT_OR_COLUMN", "items", 0, "UP", "UPDATE", "G", "GRANT"),
        *mine[1:],
        ("other", "SCHEMA", "dbo", 0, "SL", "SELECT", "D", "DENY"),
    ]
