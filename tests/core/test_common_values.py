"""What nearly all rows have, asked of a server: all other rows differ by their bytes, whatever their collation says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from airflow_provider_mssql_cdc.core.chunks import KeyPart
from airflow_provider_mssql_cdc.core.common_values import are_common, differing, exact_text, most_frequent, same
from airflow_provider_mssql_cdc.core.table import Column
from airflow_provider_mssql_cdc.sandbox import Sandbox
from airflow_provider_mssql_cdc.sandbox.collations.names import COLLATIONS
from tests.core.test_chunks import asked, columns_of
from tests.support.key_types import TYPES

TEXTS = {
    "varchar(20)": "'{}'",
    "char(20)": "'{}'",
    "varchar(max)": "'{}'",
    "nvarchar(20)": "N'{}'",
    "nchar(20)": "N'{}'",
    "nvarchar(max)": "N'{}'",
}
ALIKE = ["new", "NEW", "new ", "nëw", "new\x00", "ne\u0077\u0301"]


@pytest.fixture(scope="module")
def server() -> Iterator[Sandbox]:
    with Sandbox(agent_running=False) as opened:
        yield opened


def looked_for(
    server: Sandbox, columns: Sequence[Column], rows: int, parts: Sequence[KeyPart] = ()
) -> tuple[tuple[str | None, ...], int, int]:
    query = most_frequent(columns, "lab.things", parts, rows)
    assert query is not None
    ((*values, number, total),) = asked(server, query)
    return tuple(values), number, total


@pytest.fixture
def things(server: Sandbox) -> Iterator[Sandbox]:
    server.execute("IF SCHEMA_ID(N'lab') IS NULL EXEC (N'CREATE SCHEMA lab')")
    yield server
    server.execute("DROP TABLE IF EXISTS lab.things")


# char with UTF-8 is not simulated
@pytest.mark.parametrize(
    ("type_", "collation"),
    [(type_, name) for type_ in TEXTS for name in COLLATIONS if not (type_ == "char(20)" and name.endswith("UTF8"))],
)
def test_what_looks_alike_differs(things: Sandbox, type_: str, collation: str) -> None:
    things.execute(f"CREATE TABLE lab.things (id int PRIMARY KEY, c {type_} COLLATE {collation})")
    values = ", ".join(f"({number}, {TEXTS[type_].format(text)})" for number, text in enumerate(ALIKE))
    things.execute(f"INSERT INTO lab.things VALUES {values}, (20, NULL), (21, '')")
    things.execute("INSERT INTO lab.things SELECT 100 + id, 'new' FROM lab.things")
    columns = columns_of(things, "lab.things")
    found, number, total = looked_for(things, columns, 1_000)
    alike = {id_ for (id_,) in asked(things, f"SELECT id FROM lab.things WHERE {same(columns, found)}")}
    others = {id_ for (id_,) in asked(things, f"SELECT id FROM lab.things WHERE {differing(columns, found)}")}
    # a type of fixed length has no blanks of its own, and a code page that lacks a character has another for it
    held = dict(asked(things, "SELECT id, CONVERT(varbinary(max), c) FROM lab.things"))
    assert alike == {id_ for id_, value in held.items() if value == held[0]}
    assert (alike & others, alike | others) == (set(), held.keys())
    assert (number, total) == (len(alike), len(held))
    assert {1, 3, 20, 21} <= others


@pytest.mark.parametrize("type_", TYPES)
def test_each_type_that_a_table_can_be_cut_by(things: Sandbox, type_: str) -> None:
    values = TYPES[type_]
    things.execute(f"CREATE TABLE lab.things (id int PRIMARY KEY, c {type_} NULL)")
    rows = ", ".join(f"({number}, {value})" for number, value in enumerate(values))
    things.execute(f"INSERT INTO lab.things VALUES {rows}, (1000, NULL)")
    columns = columns_of(things, "lab.things")
    text = exact_text(columns[0])
    for (value,) in asked(things, f"SELECT DISTINCT {text} FROM lab.things"):
        alike = asked(things, f"SELECT id FROM lab.things WHERE {same(columns, [value])}")
        others = asked(things, f"SELECT id FROM lab.things WHERE {differing(columns, [value])}")
        assert alike
        assert sorted(alike + others) == [*((n,) for n in range(len(values))), (1000,)]
        assert len(asked(things, f"SELECT DISTINCT c FROM lab.things WHERE {same(columns, [value])}")) == 1


@pytest.mark.parametrize("type_", ["float", "real"])
def test_zero_is_not_negative_zero(things: Sandbox, type_: str) -> None:
    things.execute(f"CREATE TABLE lab.things (id int PRIMARY KEY, c {type_})")
    things.execute("INSERT INTO lab.things VALUES (1, 0e0), (2, 0e0), (3, CONVERT(float, -1) * 0), (4, 1e0)")
    columns = columns_of(things, "lab.things")
    ((zero,),) = asked(things, f"SELECT {exact_text(columns[0])} FROM lab.things WHERE id = 1")
    assert set(zero) == {"0"}
    assert [id_ for (id_,) in asked(things, f"SELECT id FROM lab.things WHERE {differing(columns, [zero])}")] == [3, 4]


def test_of_several_columns_all_count_and_only_the_first_rows(things: Sandbox) -> None:
    things.execute("CREATE TABLE lab.things (id int PRIMARY KEY, [a b] int, c varchar(9))")
    things.execute(
        "INSERT INTO lab.things VALUES (1, 5, NULL), (2, 5, NULL), (3, 5, 'x'), (4, NULL, NULL), (5, 6, 'x')"
    )
    things.execute("INSERT INTO lab.things SELECT id + 10, 7, 'y' FROM lab.things")
    columns = columns_of(things, "lab.things")
    key = KeyPart(Column(1, 1, "id", "int", 4, 10, 0))
    found = looked_for(things, columns, 5, [key])
    assert found == (("5", None), 2, 5)
    others = asked(things, f"SELECT id FROM lab.things WHERE {differing(columns, found[0])} AND id < 10 ORDER BY id")
    assert others == [(3,), (4,), (5,)]
    assert looked_for(things, columns, 10, [key]) == (("7", b"y".hex()), 5, 10)


@pytest.mark.parametrize(
    "type_", ["xml", "text", "ntext", "image", "json", "vector", "sql_variant", "geography", "geometry", "timestamp"]
)
def test_types_without_an_exact_text(type_: str) -> None:
    column = Column(1, 1, "c", type_, -1, 0, 0)
    assert exact_text(column) is None
    assert most_frequent([Column(2, 2, "a", "int", 4, 10, 0), column], "lab.things", (), 10) is None


def test_nearly_all() -> None:
    assert are_common((None, "5"), 9, 10)
    assert not are_common((None, "5"), 89, 100)
    assert not are_common(("0" * 8_001,), 10, 10)
