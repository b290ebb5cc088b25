"""What a harsh server may do, beside a kind one: the same rows in another order, drawn again by the same seed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_mssql_cdc.sandbox.engine.harshness import Harshness, Point
from airflow_provider_mssql_cdc.sandbox.fixtures import mssql_sandbox  # noqa: F401
from airflow_provider_mssql_cdc.sandbox.server import Sandbox

ROWS = 500


@pytest.fixture(scope="module")
def kind() -> Iterator[Sandbox]:
    with Sandbox(agent_running=False) as server:
        yield filled(server)


@pytest.fixture(scope="module")
def harsh() -> Iterator[Sandbox]:
    with Sandbox(agent_running=False, harsh=[Point.ORDER], seed=7) as server:
        yield filled(server)


def filled(server: Sandbox) -> Sandbox:
    server.execute(
        "CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, half int NOT NULL, name varchar(20) NOT NULL)"
        " EXEC sys.sp_cdc_enable_db EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL"
    )
    for first in range(0, ROWS, 100):
        rows = ", ".join(f"({i}, {i // 2}, 'n{i}')" for i in range(first, first + 100))
        server.execute(f"INSERT INTO dbo.t VALUES {rows}")
    server.step()
    return server


def rows_of(server: Sandbox, sql: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in server.execute(sql)[-1].to_pylist()]


NOT_ORDERED = (
    "SELECT id, name FROM dbo.t",
    "SELECT id FROM dbo.t WHERE id > 100",
    "SELECT [__$start_lsn], [__$seqval], id FROM cdc.dbo_t_CT",
    "SELECT a.id, b.name FROM dbo.t a JOIN cdc.dbo_t_CT b ON b.id = a.id",
    "SELECT id FROM dbo.t UNION ALL SELECT half FROM dbo.t",
    "SELECT half, COUNT(*) AS n FROM dbo.t GROUP BY half",
    "SELECT DISTINCT half FROM dbo.t",
    "SELECT * FROM (SELECT id FROM dbo.t) AS d",
)


@pytest.mark.parametrize("sql", NOT_ORDERED)
def test_the_same_rows_in_an_order_of_their_own(kind: Sandbox, harsh: Sandbox, sql: str) -> None:
    expected = sorted(rows_of(kind, sql))
    found = [rows_of(harsh, sql) for _ in range(10)]
    assert all(sorted(rows) == expected for rows in found)
    assert len({tuple(rows) for rows in found}) > 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, name FROM dbo.t ORDER BY id DESC",
        "SELECT id FROM cdc.dbo_t_CT ORDER BY [__$start_lsn], [__$command_id], [__$seqval], [__$operation]",
        "SELECT TOP (5) id FROM dbo.t ORDER BY id",
        "SELECT id FROM dbo.t UNION ALL SELECT id FROM dbo.t ORDER BY id",
        "SELECT STRING_AGG(name, ',') WITHIN GROUP (ORDER BY id) AS names FROM dbo.t",
        "SELECT id FROM dbo.t ORDER BY id OFFSET 10 ROWS FETCH NEXT 5 ROWS ONLY",
    ],
)
def test_what_is_ordered_stays_so(kind: Sandbox, harsh: Sandbox, sql: str) -> None:
    expected = rows_of(kind, sql)
    assert all(rows_of(harsh, sql) == expected for _ in range(10))


def test_rows_of_equal_keys_come_in_any_order(harsh: Sandbox) -> None:
    found = [rows_of(harsh, "SELECT half, id FROM dbo.t ORDER BY half") for _ in range(10)]
    assert all([half for half, _ in rows] == [n // 2 for n in range(ROWS)] for rows in found)
    assert len({tuple(rows) for rows in found}) > 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT TOP (1) id FROM dbo.t",
        "SELECT TOP (1) id FROM cdc.dbo_t_CT",
        "SELECT TOP (1) id FROM cdc.dbo_t_CT ORDER BY [__$start_lsn]",
        "SELECT TOP (1) half, id FROM dbo.t ORDER BY half",
        "SELECT STRING_AGG(name, ',') AS names FROM dbo.t",
        "DECLARE @id int SELECT @id = id FROM dbo.t SELECT @id AS id",
        "DECLARE @all varchar(max) = '' SELECT @all = @all + name FROM dbo.t WHERE id < 5 SELECT @all AS names",
    ],
)
def test_which_rows_are_the_first_or_the_last_is_not_said(harsh: Sandbox, sql: str) -> None:
    assert len({tuple(rows_of(harsh, sql)) for _ in range(12)}) > 1


def test_the_same_seed_draws_the_same(harsh: Sandbox) -> None:
    def drawn() -> list[list[tuple[object, ...]]]:
        harsh.harshness.begin("a test")
        return [rows_of(harsh, sql) for sql in NOT_ORDERED]

    assert drawn() == drawn()
    others = drawn()
    harsh.harshness.begin("another test")
    assert [rows_of(harsh, sql) for sql in NOT_ORDERED] != others


def test_draws_of_a_point_do_not_depend_on_its_neighbours() -> None:
    alone, beside = (Harshness(3, tuple(Point)) for _ in range(2))
    for point in Point:
        if point is not Point.ORDER:
            beside.strikes(point)
    assert [alone.strikes(Point.ORDER) for _ in range(50)] == [beside.strikes(Point.ORDER) for _ in range(50)]


@pytest.mark.mssql_sandbox(harsh=True, seed=7)
def test_a_marker_makes_the_fixture_harsh(mssql_sandbox: Sandbox) -> None:  # noqa: F811
    assert mssql_sandbox.harshness.seed == 7
    assert mssql_sandbox.harshness.points == set(Point)


def test_a_kind_server_draws_nothing(mssql_sandbox: Sandbox) -> None:  # noqa: F811
    assert not any(mssql_sandbox.harshness.strikes(point, 1) for point in Point)
