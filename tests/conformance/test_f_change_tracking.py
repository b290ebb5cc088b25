"""Section F: Change Tracking, which the sandbox does not have, is refused plainly."""

from __future__ import annotations

import pytest

from tests.support.conformance.database import Database
from tests.support.conformance.not_built import CHANGE_TRACKING, refused
from tests.support.conformance.servers import Server


@pytest.mark.parametrize("statement", CHANGE_TRACKING.values(), ids=CHANGE_TRACKING)
def test_66_67_68_69_70_71_72_73_74_75_76_77_change_tracking(server: Server, plain: Database, statement: str) -> None:
    server.only_embedded("it has Change Tracking")
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    refused(plain, statement)


def test_75_nothing_is_tracked(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    assert plain.run("SELECT * FROM sys.change_tracking_databases WHERE database_id = DB_ID()") == []
    assert plain.run("SELECT * FROM sys.change_tracking_tables") == []
