"""Masked columns, row-level security and Always Encrypted: what the login reads is not what the table holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.exceptions import MaskedError, SchemaChangedError
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


def hide(still: Sandbox, *columns: str) -> None:
    """Mask columns of dbo.a, and of its change table."""
    for column in columns:
        mask = f"ALTER COLUMN {column} ADD MASKED WITH (FUNCTION = 'default()')"
        still.execute(f"ALTER TABLE dbo.a {mask}", DATABASE)
    still.step(DATABASE)


def policy(still: Sandbox, kind: str, name: str, *, state: str = "ON") -> None:
    """Protect dbo.a by a policy that admits nobody."""
    still.execute(
        f"CREATE FUNCTION dbo.{name}_of(@id int) RETURNS TABLE WITH SCHEMABINDING AS RETURN SELECT 1 AS one"
        " WHERE @id = 0 AND USER_NAME() = N'nobody'",
        DATABASE,
    )
    still.execute(
        f"CREATE SECURITY POLICY dbo.{name} ADD {kind} PREDICATE dbo.{name}_of(id) ON dbo.a WITH (STATE = {state})",
        DATABASE,
    )


def seen(group: Group, text: str) -> list[Any]:
    """What the login reads."""
    with group.source.hook(LOGIN, PASSWORD) as hook:
        return hook.query(text)


def test_a_masked_column_fails_its_table_alone(still: Sandbox, group: Group) -> None:
    hide(still, "w", "v")
    for table in ("dbo.a", "cdc.dbo_a_CT"):
        assert seen(group, f"SELECT id, v, w FROM {table}") == [(1, 0, "xxxx")]
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
    hide(still, "v", "w")
    for grant in grants:
        group.source.sql(f"GRANT {grant} TO loader")
    ((number,),) = group.source.sql("SELECT object_id FROM sys.tables WHERE name = N'a'")
    with group.source.hook(LOGIN, PASSWORD) as hook:
        found = hook.protection([number])
    masked = left[request.node.callspec.params["still"]]
    assert set(found.masked.get(number, ())) == set(masked)
    reads = {c for table in ("dbo.a", "cdc.dbo_a_CT") for c in _masks(seen(group, f"SELECT v, w FROM {table}"))}
    assert reads == set(masked)


def _masks(rows: list[Any]) -> set[str]:
    ((v, w),) = rows
    return {name for name, is_masked in (("v", v == 0), ("w", w == "xxxx")) if is_masked}


def test_only_what_is_loaded_or_filtered_by_counts(still: Sandbox, group: Group) -> None:
    hide(still, "w")
    assert not plan(group, {"table": "dbo.a", "mask": {"w": "redact"}}).failures
    assert not plan(group, {"table": "dbo.a", "columns": ("id", "v")}).failures
    filtered = {"table": "dbo.a", "columns": ("id", "v"), "where": [("w", "=", "x")]}
    assert A in plan(group, filtered).failures


def test_an_enabled_policy_that_filters_rows_fails_its_table(still: Sandbox, group: Group) -> None:
    policy(still, "BLOCK", "own")
    policy(still, "FILTER", "tenants", state="OFF")
    assert not plan(group).failures
    assert seen(group, "SELECT id FROM dbo.a") == [(1,)]
    still.execute("ALTER SECURITY POLICY dbo.tenants WITH (STATE = ON)", DATABASE)
    assert seen(group, "SELECT id FROM dbo.a") == []
    assert seen(group, "SELECT id FROM cdc.dbo_a_CT") == [(1,)]
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
    policy(still, "FILTER", "tenants")
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
    hide(still, "w")
    with group.source.hook() as hook:
        assert not plan_load(hook, group.store, group.request(), None).failures


def test_only_what_is_there_can_be_protected(still: Sandbox, group: Group) -> None:
    for table, columns in (("dbo.none", []), ("dbo.a", ["none"])):
        with pytest.raises(ValueError, match="none"):
            still.protect(table, encrypted=columns, database=DATABASE)


def test_values_that_a_changed_type_has_altered_are_not_read_from_hidden_rows(still: Sandbox, group: Group) -> None:
    group.loaded(A, B)
    policy(still, "FILTER", "nobody")
    still.execute("ALTER TABLE dbo.a ALTER COLUMN w nchar(9); INSERT INTO dbo.a VALUES (2, 2, N'y')", DATABASE)
    while still.step(DATABASE):
        pass
    found = plan(group, {"table": "dbo.a", "on_schema_change": "propose"}, allow_masked=True)
    assert list(found.failures) == [A]
    assert isinstance(found.failures[A], SchemaChangedError)
    assert found.failures[A].message.startswith(
        "the type of w has changed, and its values cannot be read again: it is filled by a copy of the values"
    )
