"""Rows of cdc.ddl_history whose capture instance is gone, which some servers keep, are nobody's schema change."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_mssql_cdc.operators.planning import plan_load
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from tests.support.harsh import harsh_sandbox
from tests.support.hooks.source import Source
from tests.support.operators.group import A, B, Group


@pytest.fixture
def still() -> Iterator[Sandbox]:
    """A server on which nothing runs by itself."""
    with harsh_sandbox(database=None, agent_running=False) as server:
        yield server


def test_an_orphaned_row_stops_no_table(still: Sandbox) -> None:
    source = Source({"host": still.host, "port": still.port, "user": still.user, "password": still.password}, "shop")
    group = Group(source)
    group.make("dbo.a", "dbo.b")
    group.loaded(A, B)
    for table in ("a", "b"):
        ((number,),) = source.sql(f"SELECT OBJECT_ID('dbo.{table}')")
        gone = f"ALTER TABLE dbo.{table} ALTER COLUMN v bigint"
        still.cdc("shop").plant_orphaned_ddl(number, gone, required_column_update=True)
    group.change("INSERT INTO dbo.a (id) VALUES (2) ALTER TABLE dbo.b ALTER COLUMN v bigint NULL")
    with source.hook() as hook:
        instances = hook.capture_instances([A, B])
        assert [change.command for change in hook.ddl_history(instances)] == [
            "ALTER TABLE dbo.b ALTER COLUMN v bigint NULL"
        ]
        plan = plan_load(hook, group.store, group.request(), None)
    assert A not in plan.failures
    assert list(plan.failures) == [B]
    source.close()
