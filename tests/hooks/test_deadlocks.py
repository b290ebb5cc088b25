"""Reads of the hook that are victims of deadlocks, as beside the capture or the cleanup of change tables."""

from __future__ import annotations

import pytest

from airflow_provider_mssql_cdc.core.exceptions import SqlServerError
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from tests.support.hooks.source import Source

SQL = "SELECT capture_instance FROM cdc.change_tables"


@pytest.fixture
def tracked(source: Source) -> Source:
    source.sql("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    source.enable("dbo.t")
    return source


@pytest.mark.parametrize("times", [1, 9])
def test_a_victim_reads_again(sandbox: Sandbox, tracked: Source, times: int) -> None:
    with tracked.hook() as hook, sandbox.faults.deadlock(SQL, times=times) as fault:
        assert hook.query(SQL) == [("dbo_t",)]
    assert fault.count == times


def test_a_victim_does_not_read_for_ever(sandbox: Sandbox, tracked: Source) -> None:
    with tracked.hook() as hook, sandbox.faults.deadlock(SQL) as fault:
        with pytest.raises(SqlServerError, match="deadlock victim") as raised:
            hook.query(SQL)
        assert raised.value.number == 1205
        assert fault.count == 10


def test_what_must_not_be_sent_twice_is_not(sandbox: Sandbox, tracked: Source) -> None:
    with tracked.hook() as hook, sandbox.faults.deadlock(SQL, times=1) as fault:
        with pytest.raises(SqlServerError, match="deadlock victim"):
            hook.query(SQL, repeatable=False)
        assert fault.count == 1
        assert hook.query(SQL) == [("dbo_t",)]
