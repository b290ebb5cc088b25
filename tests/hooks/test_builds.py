"""What the hook makes of a server of before ``__$command_id``, and of its update."""

from __future__ import annotations

import pytest

from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.table import TableName
from tests.support.harsh import harsh_sandbox
from tests.support.hooks.source import Source

TABLE = TableName("dbo", "t")


def test_an_old_server_is_warned_of_once_until_its_update(caplog: pytest.LogCaptureFixture) -> None:
    with harsh_sandbox(build="2016", database=None) as server:
        address = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
        source = Source(address, "old")
        source.sql("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, a int NULL)")
        source.enable("dbo.t")
        source.sql("INSERT INTO dbo.t VALUES (1, 1)")
        source.scan()
        newest = source.max_lsn()
        with source.hook() as hook:
            assert hook.database_status().major_version == 13
            for _ in range(2):
                (found,) = hook.capture_instances([TABLE])
                assert not found.has_command_id
            assert [each.name for each in hook.resolve_tables(["dbo.*"]).tables] == [TABLE]
            probed = hook.probe({found.name: Lsn(bytes(10))}, upto=None, witnesses=[newest])
            assert (probed.cut, probed.newest) == (newest, {found.name: newest})
        warnings = [each.getMessage() for each in caplog.records if "__$command_id" in each.getMessage()]
        assert len(warnings) == 1
        assert warnings[0].startswith("capture instance dbo_t has no __$command_id")

        server.upgrade()
        caplog.clear()
        with source.hook() as hook:
            (updated,) = hook.capture_instances([TABLE])
        assert updated.has_command_id
        assert (updated.object_id, updated.create_date) == (found.object_id, found.create_date)
        assert [each for each in caplog.records if "__$command_id" in each.getMessage()] == []
