"""How the rows of a table are divided to be copied, without Spark."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.chunks import Bound, KeyPart, chunk
from airflow_provider_mssql_cdc.core.copies import ChunkRead, Hole, ReadEnd, covering, next_size
from airflow_provider_mssql_cdc.core.exceptions import SelectionError
from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.passing import CaptureProgress
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema
from airflow_provider_mssql_cdc.sandbox import Sandbox
from airflow_provider_mssql_cdc.spark.copies.chunks import Chunks, TableScan, table_scan

COLUMNS = (
    Column(1, 1, "g", "nvarchar", length=20, nullable=True, collation="Latin1_General_CI_AS"),
    Column(2, 2, "k", "int", nullable=False),
)
NOON = datetime.datetime(2026, 6, 1, 12)
ROWS = [("é" if n % 7 == 0 else None if n % 5 == 0 else "ABab"[n % 4], n) for n in range(100)]


class PlainJdbc:
    """What chunks ask of their source over JDBC, without Spark."""

    def __init__(self, server: Sandbox) -> None:
        self.server = server
        self.asked: list[str] = []

    def rows(self, query: str, schema: str) -> list[dict[str, Any]]:
        self.asked.append(query)
        return self.server.execute(query)[-1].to_pylist()


@pytest.fixture(scope="module")
def server() -> Iterator[Sandbox]:
    with Sandbox(agent_running=False) as opened:
        opened.execute(
            "CREATE TABLE dbo.t (g nvarchar(10) COLLATE Latin1_General_CI_AS NULL, k int NOT NULL);"
            " CREATE UNIQUE INDEX of_key ON dbo.t (g, k DESC)"
        )
        written = ", ".join(f"({'NULL' if g is None else f'N{g!r}'}, {k})" for g, k in ROWS)
        opened.execute(f"INSERT INTO dbo.t VALUES {written}")
        yield opened


def table(*key: str) -> TableSpec:
    schema = TableSchema(COLUMNS, key)
    name = TableName("dbo", "t")
    zero = Lsn(bytes(10))
    feed = CaptureInstance("dbo_t", 1, name, 2, NOON, start_lsn=zero, min_lsn=zero, columns=COLUMNS, index_key=key)
    return TableSpec(name, feed, schema, ())


def rows_of(server: Sandbox, parts: tuple[KeyPart, ...], hole: Hole) -> list[int]:
    where = chunk(parts, hole.after, hole.last)
    found = server.execute(f"SELECT k FROM dbo.t{f' WHERE {where}' if where else ''}")[-1]
    return [row["k"] for row in found.to_pylist()]


@pytest.mark.parametrize("rows", [1, 7, 40, 1000])
def test_each_row_is_in_one_chunk_and_a_chunk_has_as_many_as_asked_for(server, rows):
    jdbc = PlainJdbc(server)
    scan = table_scan(jdbc, table("g", "k"))
    parts = scan.parts
    assert [part.descending for part in parts] == [False, True]
    assert dataclasses.replace(scan, parts=()) == TableScan((), 100, by_versions=True, by_snapshots=False, pin="of_key")
    chunks = Chunks(jdbc, table("g", "k"), (), parts)

    pieces = list(chunks.cut(Hole(None, None), lambda: rows, chunks.highest()))

    found = [rows_of(server, parts, piece) for piece in pieces]
    assert sorted(k for piece in found for k in piece) == list(range(100))
    assert all(rows <= len(piece) for piece in found[:-1])
    assert [piece.after for piece in pieces[1:]] == [piece.last for piece in pieces[:-1]]


@pytest.mark.parametrize("rows", [1, 7, 40, 1000])
def test_by_columns_that_repeat_and_are_null_each_row_is_in_one_chunk(server, rows):
    jdbc = PlainJdbc(server)
    by_group = dataclasses.replace(table("k"), copy_by=("G",))
    scan = table_scan(jdbc, by_group)
    assert ([part.name for part in scan.parts], scan.pin) == (["[g]"], "of_key")
    chunks = Chunks(jdbc, by_group, (), scan.parts)
    pieces = list(chunks.cut(Hole(None, None), lambda: rows, chunks.highest()))
    found = [rows_of(server, scan.parts, piece) for piece in pieces]
    assert sorted(k for piece in found for k in piece) == list(range(100))
    assert all(rows <= len(piece) for piece in found[:-1])
    # the groups: NULL, a and A, b and B, é
    assert len(pieces) == {1: 4, 7: 4, 40: 2, 1000: 1}[rows]


@pytest.mark.parametrize(("by", "expected"), [(("k",), ()), (("g", "k"), ("[g]", "[k]")), (("k", "g"), ())])
def test_columns_with_which_no_index_begins_make_one_chunk(server, by, expected):
    scan = table_scan(PlainJdbc(server), dataclasses.replace(table("k"), copy_by=by))
    assert tuple(part.name for part in scan.parts) == expected


def test_a_column_that_is_not_captured_cuts_nothing(server):
    with pytest.raises(SelectionError, match=r"copy_by names x, and .* captures no such column. Captured are: g, k"):
        table_scan(PlainJdbc(server), dataclasses.replace(table("k"), copy_by=("x", "g")))


def test_what_other_runs_have_left_out_is_cut_between_their_chunks(server):
    jdbc = PlainJdbc(server)
    parts = table_scan(jdbc, table("g", "k")).parts
    chunks = Chunks(jdbc, table("g", "k"), (), parts)
    pieces = list(chunks.cut(Hole(None, None), lambda: 9, chunks.highest()))
    # every third one was never finished; another run had cut elsewhere
    read = [entry(server, parts, n, piece) for n, piece in enumerate(pieces) if n % 3]
    others = list(chunks.cut(Hole(None, None), lambda: 25, chunks.highest()))
    read += [entry(server, parts, 100 + n, piece) for n, piece in enumerate(others) if n == 2]

    used, holes = covering(read, chunks.places)

    left = [piece for hole in holes for piece in chunks.cut(hole, lambda: 4, chunks.highest())]
    found = [rows_of(server, parts, Hole(one.after, one.last)) for one in used]
    found += [rows_of(server, parts, piece) for piece in left]
    assert sorted(k for piece in found for k in piece) == list(range(100))
    assert len(left) > len(holes) > 1


def test_places_are_those_of_the_servers_own_order(server):
    jdbc = PlainJdbc(server)
    parts = table_scan(jdbc, table("g", "k")).parts
    ordered = [("é", "1"), ("b", "2"), ("B", "2"), ("a", "2"), ("A", "3"), (None, "0"), (None, "9")][::-1]
    bounds = [
        tuple(None if n == 0 and text is None else _as_text(n, text) for n, text in enumerate(b)) for b in ordered
    ]
    places = Chunks(jdbc, table("g", "k"), (), parts).places(bounds)
    assert [places[bound] for bound in bounds] == [0, 1, 2, 3, 4, 4, 6]
    assert Chunks(jdbc, table("g", "k"), (), parts).places([]) == {}


@pytest.mark.parametrize("key", [("k",), ("k", "g"), ()])
def test_a_key_without_an_index_is_one_chunk(server, key):
    jdbc = PlainJdbc(server)
    scan = table_scan(jdbc, table(*key))
    assert (scan.parts, scan.rows, scan.pin) == ((), 100, "0")
    assert list(Chunks(jdbc, table(*key), ()).cut(Hole(None, None), lambda: 1, None)) == [Hole(None, None)]


def test_a_key_that_an_index_begins_with_is_cut_by_it(server):
    scan = table_scan(PlainJdbc(server), table("g"))
    parts = scan.parts
    chunks = Chunks(PlainJdbc(server), table("g"), (), parts)
    pieces = list(chunks.cut(Hole(None, None), lambda: 5, chunks.highest()))
    found = [rows_of(server, parts, piece) for piece in pieces]
    assert sorted(k for piece in found for k in piece) == list(range(100))
    assert (scan.rows, len(pieces) > 2) == (100, True)


def _as_text(number: int, text: str) -> str:
    return text.encode("utf-16-le").hex().upper() if number == 0 else text


def entry(server: Sandbox, parts: tuple[KeyPart, ...], number: int, piece: Hole) -> ChunkRead:
    seen = CaptureProgress(NOON, None, None, None, None, 0)
    rows = len(rows_of(server, parts, piece))
    after: Bound | None = piece.after
    return ChunkRead(f"chunk-{number}", after, piece.last, rows, (), "", ReadEnd(seen, seen, 0.0))


@pytest.mark.parametrize(
    ("rows", "seconds", "wanted", "expected"),
    [
        (100, 10.0, 30.0, 200),  # at most twice as many
        (100, 20.0, 30.0, 150),
        (150, 60.0, 30.0, 75),
        (100, 600.0, 30.0, 50),  # at least half as many
        (20, 0.1, 30.0, 100),  # the last one of a hole says nothing
        (100, 10.0, None, 100),
    ],
)
def test_chunks_are_made_for_the_time_that_they_take(rows, seconds, wanted, expected):
    assert next_size(100, rows, seconds, wanted) == expected
