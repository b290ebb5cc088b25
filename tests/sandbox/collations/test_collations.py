"""All that compares texts agrees, in each collation: =, IN, ORDER BY, <, GROUP BY, DISTINCT and unique indexes."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.sandbox.collations.comparing import equality_key, table
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from airflow_provider_mssql_cdc.sandbox.types import SqlType

COLLATIONS = (
    "SQL_Latin1_General_CP1_CI_AS",
    "Latin1_General_CI_AS",
    "Latin1_General_CS_AS",
    "Latin1_General_BIN2",
    "Latin1_General_100_CI_AS_SC_UTF8",
)
COLUMNS = [(type_, name) for name in COLLATIONS for type_ in ("varchar", "nvarchar")]
SORTED = "aAbBzZ019 _-'.,;!#€–éÉêñÇ"
"""Characters that are compared and sorted in all of them."""
# whether a blank counts that only hyphens follow is not known, and refused
words = st.lists(
    st.text(st.sampled_from(SORTED), max_size=5).filter(lambda text: not re.search(" [ '–-]*$", text.rstrip(" "))),
    min_size=1,
    max_size=8,
)


@pytest.fixture(scope="module")
def server() -> Iterator[Sandbox]:
    with Sandbox(agent_running=False) as opened:
        for place, (type_, name) in enumerate(COLUMNS):
            opened.execute(
                f"CREATE TABLE dbo.t{place} (id int NOT NULL, v {type_}(40) COLLATE {name} NOT NULL)"
                f" CREATE TABLE dbo.u{place} (v {type_}(40) COLLATE {name} NOT NULL PRIMARY KEY)"
            )
        yield opened


def rows(server: Sandbox, sql: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in server.execute(sql)[-1].to_pylist()]


def inserted(server: Sandbox, name: str, value: str) -> bool:
    """Whether a unique index took a value."""
    quoted = value.replace("'", "''")
    numbers = server.execute(
        f"BEGIN TRY INSERT INTO {name} VALUES (N'{quoted}') SELECT 0 AS n END TRY"
        " BEGIN CATCH SELECT ERROR_NUMBER() AS n END CATCH"
    )
    (number,) = numbers[-1].column("n").to_pylist()
    assert number in (0, 2627)
    return bool(number == 0)


@pytest.mark.parametrize("place", range(len(COLUMNS)), ids=[" ".join(column) for column in COLUMNS])
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=words)
def test_everything_agrees(server: Sandbox, place: int, values: list[str]) -> None:
    name = f"dbo.t{place}"
    server.execute(f"TRUNCATE TABLE {name}; TRUNCATE TABLE dbo.u{place}")
    server.seed("shop", name, pa.table({"id": pa.array(range(len(values)), pa.int32()), "v": values}))
    equal = set(rows(server, f"SELECT a.id, b.id AS o FROM {name} a JOIN {name} b ON a.v = b.v"))
    below = set(rows(server, f"SELECT a.id, b.id AS o FROM {name} a JOIN {name} b ON a.v < b.v"))
    ids = range(len(values))
    for one in ids:
        for other in ids:
            # exactly one of the three holds
            assert ((one, other) in equal) + ((one, other) in below) + ((other, one) in below) == 1
            for third in ids:
                assert not ((one, other) in equal and (other, third) in equal) or (one, third) in equal
                assert not ((one, other) in below and (other, third) in below) or (one, third) in below
    ordered = [number for (number,) in rows(server, f"SELECT id FROM {name} ORDER BY v, id")]
    by_hand = functools.cmp_to_key(lambda a, b: -1 if (a, b) in below else int((b, a) in below))
    assert ordered == sorted(ids, key=by_hand)
    classes = {frozenset(other for other in ids if (one, other) in equal) for one in ids}
    counted = rows(server, f"SELECT MIN(id) AS first, COUNT(*) AS n FROM {name} GROUP BY v")
    assert sorted(counted) == sorted((min(each), len(each)) for each in classes)
    assert len(rows(server, f"SELECT DISTINCT v FROM {name}")) == len(classes)
    found = rows(server, f"SELECT id FROM {name} WHERE v IN (SELECT v FROM {name} WHERE id = 0)")
    assert {number for (number,) in found} == {other for other in ids if (0, other) in equal}
    type_ = SqlType(COLUMNS[place][0], 40, collation=COLUMNS[place][1])
    keys = [equality_key(value, table(type_)) for value in values]
    assert {(one, other) for one in ids for other in ids if keys[one] == keys[other]} == equal
    taken = 0
    for one in ids:
        taken += inserted(server, f"dbo.u{place}", values[one])
    assert taken == len(classes)


@pytest.mark.parametrize("place", range(len(COLUMNS)), ids=[" ".join(column) for column in COLUMNS])
def test_like_tells_case_where_the_collation_does(server: Sandbox, place: int) -> None:
    server.execute(
        f"TRUNCATE TABLE dbo.t{place}"
        f" INSERT INTO dbo.t{place} VALUES (1, N'Abc'), (2, N'abc'), (3, N'xé'), (4, N'co-op')"
    )
    found = rows(server, f"SELECT id FROM dbo.t{place} WHERE v LIKE N'A%' ORDER BY id")
    sensitive = "_CS_" in COLUMNS[place][1] or "BIN" in COLUMNS[place][1]
    assert found == ([(1,)] if sensitive else [(1,), (2,)])
    assert rows(server, f"SELECT id FROM dbo.t{place} WHERE v LIKE N'co%' OR v LIKE N'x_'") == [(3,), (4,)]


def test_sort_order_52_as_it_was_measured(server: Sandbox) -> None:
    """On 2025, published: symbols of the code page, then letters, an accented one behind the plain one."""
    server.execute(
        "TRUNCATE TABLE dbo.t0 INSERT INTO dbo.t0 VALUES (1, 'z'), (2, N'é'), (4, 'a'), (5, N'€'), (6, 'A'), (7, 'ab ')"
    )
    found = [number for (number,) in rows(server, "SELECT id FROM dbo.t0 ORDER BY v, id")]
    assert found == [5, 4, 6, 7, 2, 1]


def test_one_collation_has_two_equalities(server: Sandbox) -> None:
    """Measured on 2019: the sharp s is two letters in Unicode alone. KB 322112: so it is with the order of hyphens."""
    sql = "SELECT IIF({0}'Straße' = {0}'Strasse', 1, 0) AS a, IIF({0}'co-op' < {0}'coat', 1, 0) AS b"
    assert rows(server, sql.format("")) == [(0, 1)]
    assert rows(server, sql.format("N")) == [(1, 0)]


REFUSED = (
    "SELECT 1 AS a WHERE N'Ω' = N'ω'",
    "SELECT v FROM (VALUES (N'日本'), (N'a')) AS t(v) ORDER BY v",
    "SELECT DISTINCT v FROM (VALUES (N'ě'), (N'a')) AS t(v)",
    "SELECT v FROM (VALUES (N'🙂'), (N'a')) AS t(v) GROUP BY v",
    "SELECT 1 AS a WHERE 'š' = 'Š'",
    "SELECT v FROM (VALUES ('Þ'), ('a')) AS t(v) ORDER BY v",
    "SELECT 1 AS a WHERE N'Straße' LIKE N'%s'",
    "SELECT 1 AS a WHERE 'é' LIKE '[a-f]'",
    "SELECT 1 AS a WHERE N'b' LIKE N'[a-C]' COLLATE Latin1_General_CS_AS",
    "SELECT 1 AS a WHERE 'a' = 'b' COLLATE Chinese_PRC_CI_AS",
    "CREATE TABLE dbo.x (v nvarchar(10) COLLATE Chinese_PRC_CI_AS)",
    "CREATE TABLE dbo.x (v nvarchar(10) COLLATE Latin1_General_CI_AI)",
    "CREATE TABLE dbo.x (v char(10) COLLATE Latin1_General_100_CI_AS_SC_UTF8)",
    "CREATE DATABASE x COLLATE Japanese_CI_AS",
)


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_not_simulated_is_refused(server: Sandbox, sql: str) -> None:
    with pytest.raises(SqlError, match="not supported by the sandbox") as raised:
        server.execute(sql)
    assert raised.value.number == 50000


def test_characters_without_known_weights_are_stored_but_no_unique_index_takes_them(server: Sandbox) -> None:
    server.execute("CREATE TABLE dbo.stored (v nvarchar(10) NOT NULL) INSERT INTO dbo.stored VALUES (N'Ωě'), (N'🙂')")
    assert sorted(rows(server, "SELECT v FROM dbo.stored")) == [("Ωě",), ("🙂",)]
    with pytest.raises(SqlError, match="not supported"):
        server.execute("CREATE UNIQUE INDEX ux ON dbo.stored (v)")
    with pytest.raises(SqlError, match="not supported"):
        server.execute(
            "CREATE TABLE dbo.keyed (v nvarchar(10) PRIMARY KEY) INSERT INTO dbo.keyed VALUES (N'a'), (N'Ω')"
        )


def test_columns_meet_by_the_rules_of_precedence(server: Sandbox) -> None:
    server.execute(
        "CREATE TABLE dbo.m (a varchar(5) COLLATE Latin1_General_CS_AS, b varchar(5) COLLATE Latin1_General_CI_AS)"
        " INSERT INTO dbo.m VALUES ('x', 'X')"
    )
    with pytest.raises(SqlError, match="collation conflict") as raised:
        server.execute("SELECT 1 AS a FROM dbo.m WHERE a = b")
    assert raised.value.number == 468
    assert rows(server, "SELECT 1 AS a FROM dbo.m WHERE a = 'X'") == []
    assert rows(server, "SELECT 1 AS a FROM dbo.m WHERE b = 'x'") == [(1,)]
    assert rows(server, "SELECT 1 AS a FROM dbo.m WHERE a = b COLLATE Latin1_General_CI_AS") == [(1,)]
    assert rows(server, "SELECT 1 AS a FROM dbo.m WHERE LEFT(a, 1) + '' = 'X'") == []
    assert rows(server, "SELECT 1 AS a FROM dbo.m WHERE CAST(a AS nvarchar(3)) = N'X'") == []
    assert rows(server, "SELECT 1 AS a FROM (SELECT MAX(a) AS a FROM dbo.m) AS d WHERE a = 'X'") == []


def test_a_database_hands_its_collation_on(server: Sandbox) -> None:
    server.create_database("loose", "Latin1_General_100_CI_AS_SC_UTF8")
    server.execute(
        "USE loose CREATE TABLE dbo.t (v varchar(10), w nvarchar(5) COLLATE Latin1_General_BIN2)"
        " INSERT INTO dbo.t VALUES (N'日本', N'a')"
    )
    assert rows(
        server, "USE loose SELECT name, collation_name FROM sys.columns WHERE object_id = OBJECT_ID('dbo.t')"
    ) == [
        ("v", "Latin1_General_100_CI_AS_SC_UTF8"),
        ("w", "Latin1_General_BIN2"),
    ]
    assert rows(server, "SELECT collation_name FROM sys.databases WHERE name = 'loose'") == [
        ("Latin1_General_100_CI_AS_SC_UTF8",)
    ]
    assert rows(server, "USE loose SELECT v, DATALENGTH(v) AS n FROM dbo.t") == [("日本", 6)]
    with pytest.raises(SqlError, match="truncated"):
        server.execute("USE loose INSERT INTO dbo.t VALUES (N'日本日本', N'a')")
    server.execute("USE shop")


def test_bytes_of_texts(server: Sandbox) -> None:
    texts = ("N'é€'", "'é€'", "N'ab'")
    sql = f"SELECT {', '.join(f'CONVERT(varbinary(6), {text}) AS c{i}' for i, text in enumerate(texts))}"
    assert rows(server, sql) == [("é€".encode("utf-16-le"), "é€".encode("cp1252"), b"a\x00b\x00")]
