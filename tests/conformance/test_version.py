"""Checklist point 82: what differs between versions."""

from __future__ import annotations

import pytest

from tests.support.conformance.database import Database, track
from tests.support.conformance.not_built import BUILDS
from tests.support.conformance.servers import Embedded, Server


@pytest.mark.parametrize(
    ("build", "major", "capture", "cleanup"),
    [
        ("2016", 13, (500, 10, True, 5), (4320, 5000)),
        ("2019", 15, (500, 10, True, 5), (4320, 5000)),
        ("2022", 16, (500, 10, True, 5), (4320, 5000)),
        ("2025", 17, (10000, 10, True, 5), (4320, 4999)),
    ],
)
def test_82_defaults_of_the_jobs(server: Server, build: str, major: int, capture: tuple, cleanup: tuple) -> None:
    server.only_embedded("it has one version")
    with Embedded(build=build) as embedded:
        db = Database(embedded)
        db.enable()
        db.run("CREATE TABLE dbo.t (id int)")
        db.track("t")
        assert db.major() == major
        assert f"SQL Server {build}" in db.value("SELECT @@VERSION")
        jobs = {row[1]: row for row in db.run("EXEC sys.sp_cdc_help_jobs")}
        assert jobs["capture"][3:7] == capture
        assert jobs["cleanup"][7:] == cleanup


def test_82_extended_ddl_handling_came_with_2022(server: Server) -> None:
    server.only_embedded("it has one version")
    for build, number in (("2016", 8145), ("2019", 8145), ("2022", 22874), ("2025", 22874)):
        with Embedded(build=build) as embedded:
            db = Database(embedded)
            db.enable()
            db.run("CREATE TABLE dbo.t (id int)")
            assert db.number(track("t", enable_extended_ddl_handling=1)) == number


def test_82_json_and_vector_came_with_2025(server: Server) -> None:
    server.only_embedded("it has one version")
    for build, number in (("2016", 2715), ("2019", 2715), ("2022", 2715), ("2025", 50000)):
        with Embedded(build=build) as embedded:
            db = Database(embedded)
            for statement in ("DECLARE @v json", "CREATE TABLE dbo.v (v vector(3))", "SELECT CAST('[]' AS json)"):
                error = db.error(f"SELECT 1\n{statement}")
                assert (error.number, error.line) == (number, 2)


@pytest.mark.parametrize("build", [*BUILDS, "nonsense"])
def test_82_other_builds_are_refused(server: Server, build: str) -> None:
    server.only_embedded("it has one version")
    with pytest.raises(ValueError, match=build):
        Embedded(build=build)


def test_g_time_zone_and_rights_by_version(server: Server) -> None:
    server.only_embedded("it has one version")
    for build, right, known in (
        ("2016", "VIEW DATABASE STATE", False),
        ("2019", "VIEW DATABASE STATE", False),
        ("2022", "VIEW DATABASE PERFORMANCE STATE", True),
        ("2025", "VIEW DATABASE PERFORMANCE STATE", True),
    ):
        with Embedded(build=build) as embedded:
            db = Database(embedded)
            db.enable()
            error = db.user().error("SELECT * FROM sys.dm_cdc_errors")
            assert (error.number, right in error.text) == (297, True)
            if known:
                assert db.value("SELECT CURRENT_TIMEZONE_ID()") == "UTC"
            else:
                assert db.number("SELECT CURRENT_TIMEZONE_ID()") == 195


@pytest.mark.parametrize(("build", "most"), [("2016", 10), ("2022", 10), ("2025", 100)])
def test_a3_13_scans_of_one_call_by_version(server: Server, build: str, most: int) -> None:
    server.only_embedded("it has one version")
    with Embedded(build=build) as embedded:
        db = Database(embedded)
        db.enable()
        db.run("CREATE TABLE dbo.t (id int)")
        db.track("t")
        db.stop_capture()
        for i in range(most + 1):
            db.run(f"INSERT INTO dbo.t VALUES ({i})")
        db.scan("@maxtrans = 1")
        assert db.value("SELECT COUNT(*) FROM cdc.dbo_t_CT") == most


def test_82_version_is_one_that_has_cdc(db: Database) -> None:
    major = db.major()
    name = {13: "2016", 14: "2017", 15: "2019", 16: "2022", 17: "2025"}[major]
    assert f"SQL Server {name}" in db.value("SELECT @@VERSION")
