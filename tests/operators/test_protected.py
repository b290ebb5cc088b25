"""Masked columns, row-level security and Always Encrypted: what the login reads is not what the table holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.exceptions import MaskedError
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.planning import plan_load
from airflow_provider_mssql_cdc.sandbox import Sandbox
from tests.support.harsh import harsh_sandbox
from tests.support.hooks.source import Source
from tests.support.operators.group import A, B, Group

LOGIN, PASSWORD = "loader", "Loader-pw-12345"
DATABASE = "my.shop"
"""Its name is to be quoted where a statement takes names as texts."""


@pytest.fixture(params=["2019", "2022"])
def still(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A server on which nothing runs by itself."""
    with harsh_sandbox(build=request.param, database=None, agent_running=False) as server:
        yield server


@pytest.fixture
def group(still: Sandbox) -> Iterator[Group]:
    """Two tables with a first event each, and a login that may read all of the database."""
    server = {"host": still.host, "port": still.port, "user": still.user, "password": still.password}
    source = Source(server, DATABASE)
    still.execute("EXEC sys.sp_cdc_enable_db", DATABASE)
    for table in ("a", "b"):
        columns = "id int NOT NULL PRIMARY KEY, v int NULL, w nvarchar(9) NULL"
        still.execute(f"CREATE TABLE dbo.{table} ({columns})", DATABASE)
        still.execute(f"EXEC sys.sp_cdc_enable_table N'dbo', N'{table}', @role_name = NULL", DATABASE)
        still.execute(f"INSERT INTO dbo.{table} VALUES (1, 2, N'x')", DATABASE)
    still.step(DATABASE)
    for statement in (
        f"CREATE LOGIN [{LOGIN}] WITH PASSWORD = N'{PASSWORD}'",
        f"CREATE USER [{LOGIN}] FOR LOGIN [{LOGIN}]",
        f"GRANT SELECT TO [{LOGIN}]",
        f"GRANT VIEW DEFINITION TO [{LOGIN}]",
    ):
        source.sql(statement)
    yield Group(source)
    source.close()


def plan(group: Group, *entries: dict[str, Any], **given: Any) -> RunPlan:
    with group.source.hook(LOGIN, PASSWORD) as hook:
        return plan_load(hook, group.store, group.request("dbo.*", *entries, **given), None)


def test_a_masked_column_fails_its_table_alone(still: Sandbox, group: Group) -> None:
    still.protect("dbo.a", masked=["w", "v"], database=DATABASE)
    found = plan(group)
    assert list(found.candidates) == [B]
    assert isinstance(found.failures[A], MaskedError)
    assert str(found.failures[A]) == (
        "dbo.a: loader reads masks in place of the values of v, w. GRANT UNMASK TO [loader]; shows it the values, or "
        "leave these columns out (columns). allow_masked=True loads what it reads."
    )
    allowed = plan(group, allow_masked=True)
    assert list(allowed.candidates) == [A, B]
    assert allowed.warnings == [
        "dbo.a: loader reads masks in place of the values of v, w; allow_masked=True loads what it reads"
    ]


@pytest.mark.parametrize(
    ("grants", "left"),
    [
        (("UNMASK",), {"2019": "", "2022": ""}),
        (("UNMASK ON dbo.a",), {"2019": "vw", "2022": "vw"}),
        (("UNMASK ON dbo.a", "UNMASK ON SCHEMA::cdc"), {"2019": "vw", "2022": ""}),
        (("UNMASK ON dbo.a (v)", "UNMASK ON SCHEMA::cdc"), {"2019": "vw", "2022": "w"}),
    ],
)
def test_who_may_unmask_reads_what_the_table_holds(
    still: Sandbox, group: Group, grants: tuple[str, ...], left: dict[str, str], request: pytest.FixtureRequest
) -> None:
    """Before 2022 the database's right alone counts."""
    still.protect("dbo.a", masked=["v", "w"], database=DATABASE)
    for grant in grants:
        group.source.sql(f"GRANT {grant} TO loader")
    ((number,),) = group.source.sql("SELECT object_id FROM sys.tables WHERE name = N'a'")
    with group.source.hook(LOGIN, PASSWORD) as hook:
        found = hook.protection([number])
    masked = left[request.node.callspec.params["still"]]
    assert set(found.masked.get(number, ())) == set(masked)


def test_only_what_is_loaded_or_filtered_by_counts(still: Sandbox, group: Group) -> None:
    still.protect("dbo.a", masked=["w"], database=DATABASE)
    assert not plan(group, {"table": "dbo.a", "mask": {"w": "redact"}}).failures
    assert not plan(group, {"table": "dbo.a", "columns": ("id", "v")}).failures
    filtered = {"table": "dbo.a", "columns": ("id", "v"), "where": [("w", "=", "x")]}
    assert A in plan(group, filtered).failures


def test_an_enabled_policy_that_filters_rows_fails_its_table(still: Sandbox, group: Group) -> None:
    still.protect("dbo.a", policy="own", kind="BLOCK", database=DATABASE)
    still.protect("dbo.a", policy="tenants", enabled=False, database=DATABASE)
    assert not plan(group).failures
    still.protect("dbo.a", policy="tenants", database=DATABASE)
    found = plan(group)
    assert str(found.failures[A]) == (
        "dbo.a: security policy tenants may hide rows of the table from loader. Let the policy's predicate admit "
        "loader, or use a login that it admits, after GRANT SELECT ON [dbo].[a] TO it; changes are captured without "
        "the policy. allow_masked=True loads what it reads."
    )
    assert not plan(group, allow_masked=True).failures


def test_without_view_definition_policies_cannot_be_known(
    still: Sandbox, group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    still.protect("dbo.a", policy="tenants", database=DATABASE)
    group.source.sql("REVOKE VIEW DEFINITION TO [loader]")
    caplog.set_level("INFO")
    assert not plan(group).failures
    (record,) = [r for r in caplog.records if "VIEW DEFINITION" in r.getMessage()]
    assert record.levelname == "INFO"
    assert record.getMessage() == (
        "loader has no VIEW DEFINITION in my.shop, so whether row-level security hides rows from it cannot be known"
    )


def test_encrypted_columns_are_bytes_and_told(still: Sandbox, group: Group) -> None:
    still.protect("dbo.a", encrypted=["w"], database=DATABASE)
    found = plan(group)
    column = found.candidates[A].schema.column("w")
    assert (column.type, column.length, column.collation, column.is_lob) == ("varbinary", 8000, None, False)
    assert found.candidates[A].warnings == (
        "column w is encrypted (Always Encrypted), and loaded as the bytes of its ciphertext",
    )
    assert found.candidates[B].schema.column("w").type == "nvarchar"
    assert plan(group, {"table": "dbo.a", "columns": "id"}).candidates[A].warnings == ()


def test_an_administrator_reads_all(still: Sandbox, group: Group) -> None:
    still.protect("dbo.a", masked=["w"], database=DATABASE)
    with group.source.hook() as hook:
        assert not plan_load(hook, group.store, group.request(), None).failures


def test_only_what_is_there_can_be_protected(still: Sandbox, group: Group) -> None:
    for table, columns in (("dbo.none", []), ("dbo.a", ["none"])):
        with pytest.raises(ValueError, match="none"):
            still.protect(table, masked=columns, database=DATABASE)
