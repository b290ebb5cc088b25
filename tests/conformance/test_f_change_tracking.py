"""Section F: Change Tracking, which the sandbox does not have, is refused plainly."""

from __future__ import annotations

import pytest

from tests.conformance.database import Database
from tests.conformance.not_built import refused
from tests.conformance.servers import Server


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("ALTER DATABASE CURRENT SET CHANGE_TRACKING = ON", id="72-database-on"),
        pytest.param("ALTER DATABASE CURRENT SET CHANGE_TRACKING = OFF", id="72-database-off"),
        pytest.param(
            "ALTER DATABASE CURRENT SET CHANGE_TRACKING = ON (CHANGE_RETENTION = 2 DAYS, AUTO_CLEANUP = ON)",
            id="69-retention",
        ),
        pytest.param("ALTER DATABASE CURRENT SET CHANGE_TRACKING (AUTO_CLEANUP = OFF)", id="69-options"),
        pytest.param("ALTER TABLE dbo.t ENABLE CHANGE_TRACKING", id="72-table-on"),
        pytest.param(
            "ALTER TABLE dbo.t ENABLE CHANGE_TRACKING WITH (TRACK_COLUMNS_UPDATED = ON)", id="71-columns-updated"
        ),
        pytest.param("ALTER TABLE dbo.t DISABLE CHANGE_TRACKING", id="77-table-off"),
        pytest.param("SELECT * FROM CHANGETABLE(CHANGES dbo.t, 0) AS c", id="67-changes"),
        pytest.param("SELECT * FROM CHANGETABLE(CHANGES dbo.t, NULL) AS c", id="68-everything"),
        pytest.param(
            "SELECT t.id, c.SYS_CHANGE_OPERATION FROM CHANGETABLE(CHANGES dbo.t, 0) AS c"
            " LEFT JOIN dbo.t AS t ON t.id = c.id",
            id="76-joined",
        ),
        pytest.param("SELECT * FROM CHANGETABLE(VERSION dbo.t, (id), (1)) AS c", id="74-version"),
        pytest.param("SELECT CHANGE_TRACKING_CURRENT_VERSION()", id="66-75-current-version"),
        pytest.param("SELECT CHANGE_TRACKING_MIN_VALID_VERSION(OBJECT_ID('dbo.t'))", id="69-75-min-valid-version"),
        pytest.param("SELECT CHANGE_TRACKING_IS_COLUMN_IN_MASK(1, 0x00)", id="71-mask"),
        pytest.param("WITH CHANGE_TRACKING_CONTEXT (0x01) INSERT INTO dbo.t VALUES (2)", id="73-context"),
    ],
)
def test_66_67_68_69_70_71_72_73_74_75_76_77_change_tracking(server: Server, plain: Database, statement: str) -> None:
    server.only_embedded("it has Change Tracking")
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    refused(plain, statement)


def test_75_nothing_is_tracked(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    assert plain.run("SELECT * FROM sys.change_tracking_databases WHERE database_id = DB_ID()") == []
    assert plain.run("SELECT * FROM sys.change_tracking_tables") == []
