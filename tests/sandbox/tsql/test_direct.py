"""Reading change tables in their stored order: slices, and the row number within a transaction."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_mssql_cdc.sandbox.tsql.parsing import parse
from airflow_provider_mssql_cdc.sandbox.tsql.query import compile_result
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Scope
from tests.sandbox.tsql.conftest import Client

# more rows than a batch holds in one transaction, small transactions on both sides of it, and again more in the last
_TRANSACTIONS = [3, 70_000, 1, 2, 66_000]
_NUMBER = "ROW_NUMBER() OVER (PARTITION BY __$start_lsn ORDER BY __$command_id, __$seqval, __$operation)"


@pytest.fixture(scope="module")
def lsns(sandbox: Any) -> list[bytes]:
    sandbox.execute(
        """CREATE TABLE dbo.numbered (id int NOT NULL PRIMARY KEY, twice int NULL)
        EXEC sys.sp_cdc_enable_db
        EXEC sys.sp_cdc_enable_table 'dbo', 'numbered', @role_name = NULL"""
    )
    positions, first = [], 0
    for count in _TRANSACTIONS:
        ids = pa.array(range(first, first + count), pa.int32())
        sandbox.seed(None, "dbo.numbered", pa.table({"id": ids, "twice": pa.array([2 * i for i in ids.to_pylist()])}))
        sandbox.step()
        positions.append(sandbox.cdc().max_lsn())
        first += count
    return positions


def _expected(low: int, high: int) -> list[tuple[int, int]]:
    """(id, number) of the transactions low to high."""
    first = sum(_TRANSACTIONS[:low])
    numbers = [n for count in _TRANSACTIONS[low : high + 1] for n in range(1, count + 1)]
    return [(first + i, number) for i, number in enumerate(numbers)]


def _bounds(lsns: list[bytes], after: int, upto: int) -> str:
    return f"__$start_lsn > 0x{lsns[after].hex()} AND __$start_lsn <= 0x{lsns[upto].hex()}"


def test_numbers_run_over_batches(client: Client, lsns: list[bytes]) -> None:
    rows = client.run(f"SELECT id, {_NUMBER} AS n FROM cdc.dbo_numbered_CT")
    assert rows == _expected(0, 4)


@pytest.mark.parametrize(("after", "upto"), [(0, 1), (0, 3), (1, 3), (3, 4), (0, 4)])
def test_numbers_of_a_slice(client: Client, lsns: list[bytes], after: int, upto: int) -> None:
    inner = f"SELECT id, {_NUMBER} AS n FROM cdc.dbo_numbered_CT WHERE {_bounds(lsns, after, upto)}"
    assert client.run(inner) == _expected(after + 1, upto)
    assert client.run(f'SELECT  "n","id" FROM ({inner}) q  ') == [(n, i) for i, n in _expected(after + 1, upto)]


def test_a_filter_above_the_numbers_leaves_them_alone(client: Client, lsns: list[bytes]) -> None:
    rows = client.run(
        f"SELECT w.id, w.n + 10 FROM (SELECT id, twice, {_NUMBER} AS n FROM cdc.dbo_numbered_CT"
        f" WHERE {_bounds(lsns, 0, 3)}) w WHERE w.twice % 14 = 0 OR w.n = 1"
    )
    assert sorted(rows) == [(i, n + 10) for i, n in _expected(1, 3) if 2 * i % 14 == 0 or n == 1]


def test_numbers_of_part_of_a_transaction(client: Client, lsns: list[bytes]) -> None:
    rows = client.run(
        f"SELECT id, {_NUMBER} FROM cdc.dbo_numbered_CT"
        f" WHERE {_bounds(lsns, 0, 1)} AND __$command_id <= 68000 AND __$command_id > 500"
    )
    assert rows == [(i, n - 500) for i, n in _expected(1, 1)[500:68_000]]


def test_a_filter_beneath_the_numbers_counts(client: Client, lsns: list[bytes]) -> None:
    rows = client.run(
        f"SELECT id, {_NUMBER} FROM cdc.dbo_numbered_CT WHERE {_bounds(lsns, 1, 4)} AND id >= 70005 ORDER BY id"
    )
    assert rows[:3] == [(70_005, 1), (70_006, 1), (70_007, 2)]
    assert rows[-1] == (136_005, 66_000)


def test_other_orders_and_partitions(client: Client, lsns: list[bytes]) -> None:
    bounds = _bounds(lsns, 0, 3)
    backwards = _NUMBER.replace("__$command_id", "__$command_id DESC")
    rows = client.run(f"SELECT id, {backwards} FROM cdc.dbo_numbered_CT WHERE {bounds} ORDER BY id")
    sizes = [70_000] * 70_000 + [1] + [2] * 2
    assert rows == [(i, size + 1 - n) for (i, n), size in zip(_expected(1, 3), sizes, strict=True)]
    whole = _NUMBER.replace("PARTITION BY __$start_lsn ORDER BY", "ORDER BY __$start_lsn,")
    rows = client.run(f"SELECT id, {whole} FROM cdc.dbo_numbered_CT WHERE {bounds} ORDER BY id")
    assert rows == [(i, n) for n, (i, _) in enumerate(_expected(1, 3), 1)]


@pytest.mark.parametrize(
    "bounds", ["__$start_lsn > 0xFFFFFFFFFFFFFFFFFFFF", "__$start_lsn < 0x00", "__$command_id > 70000"]
)
def test_nothing_in_range(client: Client, lsns: list[bytes], bounds: str) -> None:
    assert client.run(f"SELECT id, {_NUMBER} FROM cdc.dbo_numbered_CT WHERE {bounds}") == []


@pytest.mark.parametrize(
    ("sql", "as_they_lie"),
    [
        ("SELECT * FROM cdc.dbo_numbered_CT", True),
        ("SELECT id, {number} AS n FROM cdc.dbo_numbered_CT WHERE {bounds} AND __$command_id > 5", True),
        ('SELECT  "n" FROM (SELECT {number} AS n FROM cdc.dbo_numbered_CT WHERE {bounds}) q  ', True),
        ("SELECT id FROM cdc.dbo_numbered_CT WHERE {bounds} ORDER BY __$start_lsn, __$command_id", True),
        ("SELECT id FROM cdc.dbo_numbered_CT WHERE id > 5", True),
        ("SELECT id + 1 FROM cdc.dbo_numbered_CT", True),
        ("SELECT id FROM cdc.dbo_numbered_CT ORDER BY id", False),
    ],
)
def test_which_rows_are_read_as_they_lie(client: Client, lsns: list[bytes], sql: str, as_they_lie: bool) -> None:
    tree = parse(sql.format(number=_NUMBER, bounds=_bounds(lsns, 0, 3)))
    compiled = compile_result(client.session._interpreter.context(), Scope(), tree)
    assert (compiled.direct is not None) == as_they_lie
