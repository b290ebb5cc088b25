"""Chunks of keys, asked of a server: together they are the table, each row once, in the order of the key."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.chunks import Bound, KeyPart, can_be_cut, chunk, ends, highest, order, shown
from airflow_provider_mssql_cdc.core.table import Column
from airflow_provider_mssql_cdc.sandbox import Sandbox
from tests.support.key_types import TYPES


@pytest.fixture(scope="module")
def server() -> Iterator[Sandbox]:
    with Sandbox(agent_running=False) as opened:
        yield opened


def asked(server: Sandbox, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    return list(zip(*(column.to_pylist() for column in server.execute(sql)[-1].columns), strict=True))


def columns_of(server: Sandbox, table: str) -> list[Column]:
    """A table's columns but for ``id``, as the catalogue has them."""
    columns = asked(
        server,
        "SELECT c.column_id, c.name, TYPE_NAME(c.system_type_id), c.max_length, c.precision, c.scale, c.is_nullable,"
        f" c.collation_name FROM sys.columns c WHERE c.object_id = OBJECT_ID(N'{table}') AND c.name <> N'id'"
        " ORDER BY c.column_id",
    )
    return [Column(number, number, name, *rest) for number, name, *rest in columns]


def parts_of(server: Sandbox, table: str, descending: Sequence[bool]) -> tuple[KeyPart, ...]:
    """The columns of a table's index."""
    return tuple(KeyPart(column, down) for column, down in zip(columns_of(server, table), descending, strict=True))


def copied(server: Sandbox, table: str, parts: Sequence[KeyPart], rows: int) -> list[list[tuple[Any, ...]]]:
    """The rows of each chunk, up to the highest key."""
    found = asked(server, highest(parts, table))
    if not found:
        return []
    last: Bound = found[0]
    after, chunks = None, []
    while after != last:
        bounds = (bound for query in ends(parts, table, after, last, rows) for bound in asked(server, query))
        until = next(bounds, last)
        chunks.append(asked(server, f"SELECT * FROM {table} WHERE {chunk(parts, after, until)}"))
        after = until
    assert not [bound for query in ends(parts, table, last, None, 1) for bound in asked(server, query)]
    assert asked(server, f"SELECT * FROM {table} WHERE {chunk(parts, last, None)}") == []
    return chunks


def check(chunks: list[list[tuple[Any, ...]]], whole: list[tuple[Any, ...]], rows: int, parts: int) -> None:
    """The chunks are about as large as asked, and hold the table in the order of the key, each row once."""
    at = 0
    for each in chunks:
        assert sorted(each, key=repr) == sorted(whole[at : at + len(each)], key=repr)
        at += len(each)
    assert at == len(whole)
    assert all(rows <= len(each) < max(rows * parts, rows + 1) for each in chunks[:-1])
    assert not chunks or 0 < len(chunks[-1]) < max(rows * parts, rows + 1)


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("type_", "descending"),
    [
        pytest.param(type_, down, marks=() if down == number % 2 else pytest.mark.thorough)
        for number, type_ in enumerate(TYPES)
        for down in (False, True)
    ],
)
def test_chunks_of_each_type_alone_and_second(server: Sandbox, type_: str, descending: bool) -> None:
    down = " DESC" if descending else ""
    server.execute(
        "DROP TABLE IF EXISTS dbo.alone DROP TABLE IF EXISTS dbo.second"
        f" CREATE TABLE dbo.alone (k {type_} NULL, id int NOT NULL) CREATE UNIQUE INDEX u ON dbo.alone (k{down})"
        f" CREATE TABLE dbo.second (g int NOT NULL, k {type_} NULL, id int NOT NULL)"
        f" CREATE UNIQUE INDEX u ON dbo.second (g, k{down})"
    )
    values = [*TYPES[type_], "NULL"]
    server.execute("INSERT INTO dbo.alone VALUES " + ", ".join(f"({v}, {n})" for n, v in enumerate(values)))
    pairs = itertools.product((1, 2), values)
    server.execute("INSERT INTO dbo.second VALUES " + ", ".join(f"({g}, {v}, {n})" for n, (g, v) in enumerate(pairs)))

    alone, second = parts_of(server, "dbo.alone", [descending]), parts_of(server, "dbo.second", [False, descending])

    assert can_be_cut([part.column for part in second])
    for table, parts, rows in (("dbo.alone", alone, 2), ("dbo.second", second, 3)):
        whole = asked(server, f"SELECT * FROM {table} ORDER BY {order(parts)}")
        check(copied(server, table, parts, rows), whole, rows, len(parts))


@pytest.mark.parametrize("type_", TYPES)
def test_a_value_that_travels_as_text_is_the_same(server: Sandbox, type_: str) -> None:
    server.execute(f"DROP TABLE IF EXISTS dbo.same CREATE TABLE dbo.same (k {type_} NOT NULL)")
    server.execute("INSERT INTO dbo.same VALUES " + ", ".join(f"({value})" for value in TYPES[type_]))
    (part,) = parts_of(server, "dbo.same", [False])
    for text, before in asked(server, f"SELECT {part.as_text}, k FROM dbo.same"):
        ((after, equal),) = asked(
            server, f"SELECT {part.value(text)}, (SELECT COUNT(*) FROM dbo.same WHERE k = {part.value(text)})"
        )
        assert (after, equal) == (before, 1)


@pytest.mark.parametrize("type_", ["char(6)", "varchar(6)", "nchar(6)", "nvarchar(6)"])
def test_blanks_and_nul_at_the_end_come_back(server: Sandbox, type_: str) -> None:
    server.execute(
        f"DROP TABLE IF EXISTS dbo.ends CREATE TABLE dbo.ends (k {type_} COLLATE Latin1_General_BIN2 NOT NULL)"
        " INSERT INTO dbo.ends VALUES (N'x  '), (N'x' + NCHAR(0)), (NCHAR(0) + N'x'), (N'x' + NCHAR(0) + N' ')"
    )
    (part,) = parts_of(server, "dbo.ends", [False])
    read = asked(server, f"SELECT {part.as_text}, CONVERT(varbinary(20), k) FROM dbo.ends")
    assert len(read) == 4
    for text, before in read:
        assert asked(server, f"SELECT CONVERT(varbinary(20), {part.value(text)})") == [(before,)]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.sets(st.tuples(*[st.one_of(st.none(), st.integers(0, 2))] * 3), max_size=20),
    descending=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    size=st.integers(1, 6),
)
def test_chunks_of_a_key_of_three_columns(
    server: Sandbox, rows: set[tuple[int | None, ...]], descending: tuple[bool, ...], size: int
) -> None:
    server.execute("DROP TABLE IF EXISTS dbo.three CREATE TABLE dbo.three (a int NULL, b int NULL, c int NULL)")
    if rows:
        values = ", ".join(f"({', '.join('NULL' if v is None else str(v) for v in row)})" for row in rows)
        server.execute(f"INSERT INTO dbo.three VALUES {values}")
    parts = parts_of(server, "dbo.three", descending)

    chunks = copied(server, "dbo.three", parts, size)

    def place(row: tuple[int | None, ...]) -> tuple[int, ...]:
        whole = [-1 if value is None else value for value in row]
        return tuple(-value if down else value for value, down in zip(whole, descending, strict=True))

    expected = sorted(rows, key=place)
    check(chunks, expected, size, 3)


@pytest.mark.parametrize("names", [("n",), ("B0",), ("b0", "n"), ("b1", "b0")])
def test_keys_that_are_named_as_what_is_asked_for(server: Sandbox, names: tuple[str, ...]) -> None:
    columns = ", ".join(f"{name} int NOT NULL" for name in names)
    server.execute(f"DROP TABLE IF EXISTS dbo.named CREATE TABLE dbo.named ({columns})")
    values = ", ".join(f"({', '.join([str(n)] * len(names))})" for n in range(8, 13))
    server.execute(f"INSERT INTO dbo.named VALUES {values}")
    parts = parts_of(server, "dbo.named", [False] * len(names))

    assert asked(server, highest(parts, "dbo.named")) == [("12",) * len(names)]
    chunks = copied(server, "dbo.named", parts, 2)
    assert [sorted(row[0] for row in each) for each in chunks] == [[8, 9], [10, 11], [12]]


def test_a_chunk_within_one_group_seeks_behind_it() -> None:
    parts = tuple(KeyPart(Column(n, n, name, "int", nullable=False)) for n, name in ((1, "g"), (2, "k")))
    within = chunk(parts, ("1", "5"), ("1", "9"))
    assert within == "[g] = CONVERT(int, 1) AND ([k] > CONVERT(int, 5)) AND ([k] <= CONVERT(int, 9))"
    first, second = ends(parts, "dbo.t", ("1", "5"), None, 10)
    assert "WHERE [g] = CONVERT(int, 1) AND ([k] > CONVERT(int, 5)) ORDER BY [k] OFFSET 9 ROWS" in first
    assert "WHERE ([g] > CONVERT(int, 1)) ORDER BY [g], [k] OFFSET 9 ROWS" in second


@pytest.mark.parametrize("type_", ["sql_variant", "geography", "xml", "nvarchar(max)"])
def test_by_what_no_chunk_is_cut(type_: str) -> None:
    length = -1 if type_ == "nvarchar(max)" else 0
    assert not can_be_cut([Column(1, 1, "k", "int"), Column(2, 2, "v", type_.removesuffix("(max)"), length)])
    assert not can_be_cut([Column(1, 1, "k", "int", encrypted=True)])


def test_texts_that_may_come_back_as_other_bytes_are_not_cut_where_these_count() -> None:
    def text(type_: str, collation: str) -> list[Column]:
        return [Column(1, 1, "k", type_, 20, collation=collation)]

    assert not can_be_cut(text("varchar", "Japanese_BIN2"))
    assert not can_be_cut(text("char", "Chinese_Taiwan_Stroke_BIN"))
    assert can_be_cut(text("nvarchar", "Japanese_BIN2"))
    assert can_be_cut(text("varchar", "Japanese_CI_AS"))
    assert can_be_cut(text("varchar", "Latin1_General_BIN2"))


@pytest.mark.parametrize("type_", ["int", "nvarchar", "datetime", "uniqueidentifier", "decimal"])
@pytest.mark.parametrize("text", ["1; DROP TABLE t", "1) OR (1 = 1", "x", "0x01", "''"])
def test_a_text_that_is_no_value_is_refused(type_: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"value of k is none of {type_}"):
        KeyPart(Column(1, 1, "k", type_, 8)).value(text)


def test_places_are_shown_as_people_write_them() -> None:
    def column(type_: str) -> Column:
        return Column(1, 1, "c", type_, 40, 0, 0, nullable=True)

    parts = [KeyPart(column("nvarchar")), KeyPart(column("int")), KeyPart(column("varbinary"))]
    bound = ("é'b".encode("utf-16-le").hex().upper(), None, "00FF" * 40)
    assert shown(parts, bound) == f"(é'b, NULL, {('00FF' * 40)[:60]}..)"
    assert shown(parts, None) is None
