"""Watching tables of which some, or all, cannot be read."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import pytest

from airflow_provider_mssql_cdc.core.checkpoint import SinkState
from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.exceptions import CdcPermissionError
from airflow_provider_mssql_cdc.core.feed import FeedRef
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.table_options import TableOptions, read_entries
from airflow_provider_mssql_cdc.core.target import Target
from airflow_provider_mssql_cdc.hooks.change_source import CdcSource
from airflow_provider_mssql_cdc.hooks.looking import look, poll
from airflow_provider_mssql_cdc.hooks.watch import Watch, WatchRequest
from tests.support.core.states import checkpoint_of
from tests.support.core.variables import Variables
from tests.support.hooks.source import CONN_ID, TARGET, CountingHook, Source

NOW = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)


@pytest.fixture
def watch(source: Source) -> Watch:
    """Two tracked tables, loaded up to now."""
    store = CheckpointStore(Variables())
    for table in ("dbo.a", "dbo.b"):
        source.sql(f"CREATE TABLE {table} (id int NOT NULL PRIMARY KEY)")
    source.enable("dbo.a", "dbo.b")
    source.sql("INSERT INTO dbo.a VALUES (1); INSERT INTO dbo.b VALUES (1)")
    source.scan()
    position = source.max_lsn()
    with source.hook() as hook:
        for instance in hook.capture_instances([TableName("dbo", "a"), TableName("dbo", "b")]):
            sinks = {"mirror": SinkState(position, position)}
            store.overwrite(checkpoint_of(source.identity(instance.source), sinks, FeedRef.of(instance)))
    entries, defaults = read_entries("dbo.*", salted=True), TableOptions(Target.parse(TARGET))
    return Watch(WatchRequest(CONN_ID, entries, (), defaults), store)


@pytest.fixture
def hook(source: Source) -> Iterator[CountingHook]:
    """The hook of a login that sees all change tables (VIEW DEFINITION), but may read none of them."""
    login, password = f"reader_{source.name}", "Reader-pw-12345"
    source.sql(f"CREATE LOGIN [{login}] WITH PASSWORD = N'{password}'")
    source.sql(f"CREATE USER [{login}] FOR LOGIN [{login}]")
    for name in ("change_tables", "lsn_time_mapping"):
        source.sql(f"GRANT SELECT ON [cdc].[{name}] TO [{login}]")
    with source.hook(login, password) as reader, source.hook() as administrator:
        # not every server that this runs against lets a login see what it may not read
        reader.survey = administrator.survey  # type: ignore[method-assign]
        yield reader


def test_who_can_read_some_of_the_tables_watches_those(source: Source, watch: Watch, hook: CountingHook) -> None:
    source.sql(f"GRANT SELECT ON [cdc].[dbo_b_CT] TO [{hook.where.login}]")
    source.sql("INSERT INTO dbo.a VALUES (2); INSERT INTO dbo.b VALUES (2)")
    source.scan()
    cdc = CdcSource(hook)
    wake = poll(watch, hook, (cdc,), NOW, NOW)
    assert wake is not None
    assert (list(map(str, wake.calls)), list(cdc.unreadable)) == (["dbo.b"], ["dbo_a"])
    hook.sent.clear()
    poll(watch, hook, (cdc,), NOW, NOW)
    assert len(hook.sent) == 1


def test_who_can_read_none_of_the_tables_is_told(watch: Watch, hook: CountingHook) -> None:
    sources = (CdcSource(hook),)
    for attempt in (lambda: poll(watch, hook, sources, NOW, NOW), lambda: look(hook, sources, [watch], NOW)):
        with pytest.raises(CdcPermissionError, match=r"GRANT SELECT ON SCHEMA::\[cdc\]") as denied:
            attempt()
        assert denied.value.permanent
