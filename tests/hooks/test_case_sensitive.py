"""A database whose collation tells upper from lower case: so do the names of its tables."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.exceptions import ParameterError, TableNotFoundError
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.target import Target, check_names
from tests.support.hooks.source import Source

BOTH = [TableName("dbo", "Orders"), TableName("dbo", "orders")]


@pytest.fixture(params=["Latin1_General_CS_AS", "Latin1_General_BIN2"])
def strict(request: pytest.FixtureRequest, server: dict[str, Any]) -> Iterator[Source]:
    source = Source(server, f"t_{uuid.uuid4().hex[:10]}", collation=request.param)
    for name in BOTH:
        source.sql(f"CREATE TABLE {name} (id int NOT NULL PRIMARY KEY)")
    source.enable("dbo.Orders", "dbo.orders")
    yield source
    source.close()


@pytest.mark.parametrize(
    ("pattern", "expected"), [("dbo.orders", BOTH[1:]), ("dbo.Orders", BOTH[:1]), ("dbo.*", BOTH), ("Or*", BOTH[:1])]
)
def test_each_is_found_by_its_own_name(strict: Source, pattern: str, expected: list[TableName]) -> None:
    with strict.hook() as hook:
        found = [table.name for table in hook.resolve_tables([pattern]).tables]
    assert sorted(found, key=str) == expected


def test_a_name_in_another_case_is_not_there(strict: Source) -> None:
    with strict.hook() as hook, pytest.raises(TableNotFoundError):
        hook.resolve_tables(["dbo.ORDERS"])


def test_each_has_its_own_capture_instance(strict: Source) -> None:
    with strict.hook() as hook:
        instances = hook.capture_instances(BOTH)
        alone = hook.capture_instances(BOTH[1:])
    assert sorted((str(each.source), each.name) for each in instances) == [
        ("dbo.Orders", "dbo_Orders"),
        ("dbo.orders", "dbo_orders"),
    ]
    assert [(each.source, each.name) for each in alone] == [(BOTH[1], "dbo_orders")]


def test_both_in_one_place_are_refused_by_name() -> None:
    target = Target.parse("iceberg://lake/shop")
    sinks = [((name, "mirror"), target.table("{schema}_{table}", name, "mirror")) for name in BOTH]
    with pytest.raises(ParameterError, match=r"dbo\.Orders \(mirror\) and dbo\.orders \(mirror\)"):
        check_names(sinks)
