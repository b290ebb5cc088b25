"""A capture that gets no further, since its log scans fail: named with the error, not as lag alone."""

from __future__ import annotations

import datetime

import pymssql
import pytest

from airflow_provider_mssql_cdc.core.lag import Lag
from tests.support.hooks.source import CountingHook, Source

LONG = "'longer than three'"


@pytest.fixture
def standing(source: Source) -> Source:
    """A change table whose rows do not fit the type that the source's column has got."""
    source.sql("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, a varchar(20))")
    source.enable("dbo.t")
    source.sql(f"INSERT INTO dbo.t VALUES (1, {LONG})")
    source.scan()
    source.sql("UPDATE dbo.t SET a = 'abc'; ALTER TABLE dbo.t ALTER COLUMN a varchar(3)")
    with pytest.raises(pymssql.OperationalError):
        source.scan()
    return source


def lag(hook: CountingHook) -> Lag | None:
    return hook.lag(hook.database_status(), datetime.timedelta(0))


def test_the_error_is_named_with_what_to_do(standing: Source) -> None:
    with standing.hook() as hook:
        health = hook.agent_health()
        late = lag(hook)
    assert health.fails
    assert "; the capture stands still since its log scan of " in health.detail
    assert " failed with error 22976: " in health.detail
    assert "the change table cannot follow an ALTER of the source table" in health.detail
    assert late is not None
    assert late.late
    assert health.detail in late.text
    assert "sys.dm_cdc_errors may say why" not in late.text


def test_one_that_has_gone_on_since_is_not(standing: Source) -> None:
    with standing.hook() as hook:
        standing.sql("CREATE TABLE dbo.u (id int NOT NULL PRIMARY KEY)")
        standing.enable("dbo.u")
        standing.sql("INSERT INTO dbo.u VALUES (1)")
        standing.sql("EXEC sys.sp_cdc_disable_table N'dbo', N't', N'dbo_t'")
        standing.scan()
        assert not hook.agent_health().fails
        assert "stands still" not in hook.agent_health().detail


def test_a_login_that_may_not_see_errors_sees_none(standing: Source) -> None:
    login, password = f"blind_{standing.name}", "Reader-pw-12345"
    standing.sql(f"CREATE LOGIN [{login}] WITH PASSWORD = N'{password}'")
    standing.sql(f"CREATE USER [{login}] FOR LOGIN [{login}]")
    with standing.hook(login, password) as hook:
        assert not hook.agent_health().fails
