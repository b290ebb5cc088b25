"""A source table that is renamed, or moved to another schema: what a load says, and how it goes on."""

from __future__ import annotations

import argparse
import dataclasses

import pytest

from airflow_provider_mssql_cdc.cli import checkpoint
from airflow_provider_mssql_cdc.core.copy_requests import CopyRequest, CopyRequests
from airflow_provider_mssql_cdc.core.exceptions import TableNotFoundError
from airflow_provider_mssql_cdc.operators.planning import plan_load
from tests.support.hooks.source import Source
from tests.support.operators.group import A, Group


@pytest.fixture
def group(source: Source) -> Group:
    """A table that was loaded, and whose columns were seen."""
    made = Group(source)
    made.make("dbo.a", "dbo.b")
    made.loaded(A)
    with source.hook() as hook:
        sight = plan_load(hook, made.store, made.request("dbo.a"), None).sights[A]
    stored = made.checkpoint(A)
    assert stored is not None
    made.store.overwrite(dataclasses.replace(stored, seen_schema=sight.seen))
    return made


@pytest.mark.parametrize(
    ("statement", "to"),
    [
        ("EXEC sp_rename N'dbo.a', N'c'", "dbo.c"),
        ("CREATE SCHEMA kept_old; ALTER SCHEMA kept_old TRANSFER dbo.a", "kept_old.a"),
    ],
)
def test_it_is_named_and_goes_on_once_the_checkpoint_has_the_name(group: Group, statement: str, to: str) -> None:
    for each in statement.split("; "):
        group.source.sql(each)
    group.change(f"INSERT INTO {to} (id) VALUES (2)")
    # alone, and beside another one
    for tables in (["dbo.a"], ["dbo.a", "dbo.b"]):
        with group.source.hook() as hook, pytest.raises(TableNotFoundError) as raised:
            raise plan_load(hook, group.store, group.request(*tables), None).failures[A]
        assert f"it is {to} now" in raised.value.message
        assert f"`mssql-cdc checkpoint rename --to {to}`" in str(raised.value)

    stored = group.checkpoint(A)
    assert stored is not None
    CopyRequests(group.variables).save(CopyRequest(stored.identity, "c1"))
    said = checkpoint._rename(group.store, stored.identity, argparse.Namespace(to=to))
    assert f'{{"table": "{to}", "table_name": "dbo_a"}}' in said
    entry = {"table": to, "table_name": "dbo_a"}
    with group.source.hook() as hook:
        plan = plan_load(hook, group.store, group.request(entry), None)
    assert plan.failures == {}
    (spec,) = plan.specs
    (sink,) = spec.sinks
    assert (str(spec.name), sink.table[-1], sink.read_through) == (to, "dbo_a", stored.sinks["mirror"].read_through)


def test_one_that_was_dropped_or_of_which_nobody_knows_which_it_was_is_not_there(group: Group) -> None:
    stored = group.checkpoint(A)
    assert stored is not None
    group.source.sql("EXEC sp_rename N'dbo.a', N'c'")
    group.store.overwrite(dataclasses.replace(stored, seen_schema=None))
    for statement in ("SELECT 1", "DROP TABLE dbo.c"):
        group.change(statement)
        with group.source.hook() as hook, pytest.raises(TableNotFoundError, match="does not exist in"):
            raise plan_load(hook, group.store, group.request("dbo.a", "dbo.b"), None).failures[A]
        group.store.overwrite(stored)
