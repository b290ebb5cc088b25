"""A connection that makes and drops capture instances is to reach the load's own database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.exceptions import ConnectionSettingError
from airflow_provider_mssql_cdc.hooks.same_database import check_same_database
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from tests.support.hooks.source import Source
from tests.support.operators.group import Group


@pytest.fixture
def elsewhere(source: Source) -> Iterator[Source]:
    """A database of the same name on another server."""
    with Sandbox(agent_running=False) as server:
        made = Source(
            {"host": server.host, "port": server.port, "user": server.user, "password": server.password}, source.name
        )
        yield made
        made.close()


def check(source: Source, other: Source, **login: Any) -> None:
    with source.hook() as own, other.hook(**login) as admin:
        check_same_database(own, admin)


def test_another_login_of_the_same_database_is_let_through(source: Source) -> None:
    source.sql("EXEC sys.sp_cdc_enable_db")
    login = f"owner_{source.name}"
    source.sql(f"CREATE LOGIN [{login}] WITH PASSWORD = N'Reader-pw-12345'; CREATE USER [{login}]")
    source.sql(f"ALTER ROLE db_owner ADD MEMBER [{login}]")
    # nothing is captured yet
    check(source, source, login=login, password="Reader-pw-12345")
    Group(source).make("dbo.a")
    check(source, source, login=login, password="Reader-pw-12345")
    check(source, source)


@pytest.mark.parametrize("captures", [True, False])
def test_one_of_the_same_name_elsewhere_is_refused(source: Source, elsewhere: Source, captures: bool) -> None:
    Group(source).make("dbo.a")
    if captures:
        Group(elsewhere).make("dbo.a")
    with pytest.raises(ConnectionSettingError, match=f"which is not database {source.name} on ") as refused:
        check(source, elsewhere)
    for each in (source, elsewhere):
        assert f"database {each.name} on {each.server['host']}:{each.server['port']} (" in str(refused.value)


def test_another_database_of_the_server_is_refused(source: Source) -> None:
    Group(source).make("dbo.a")
    other = Source(source.server, f"{source.name}_other")
    try:
        other.sql("EXEC sys.sp_cdc_enable_db")
        with pytest.raises(ConnectionSettingError, match=f"reaches database {other.name} on"):
            check(source, other)
    finally:
        other.close()
