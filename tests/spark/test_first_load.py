"""The copy's key ranges and the end of the copy, without Spark."""

import datetime
import random
import re
import sqlite3

import pytest

from airflow_provider_mssql_cdc.core.table import Column
from airflow_provider_mssql_cdc.spark.copying import key_bound, range_clauses
from airflow_provider_mssql_cdc.spark.sources.cdc.capture import has_passed
from airflow_provider_mssql_cdc.spark.sources.cdc.state import CaptureProgress
from tests.support.spark.model import lsn

VALUES = ["", "a", "A", "ä", "b", "B", "c", "é", "z", "Z", "-a", "a-b", "ab", None, "O'Hara", "ж", "日"]


def scrambled(one: str, other: str) -> int:
    """Compare as no code page does, but always alike."""
    first, second = ([ord(c) * 7919 % 251 for c in text.casefold()] for text in (one, other))
    return (first > second) - (first < second)


@pytest.mark.parametrize("seed", range(20))
def test_every_row_is_in_one_range_however_the_server_orders_the_bounds(seed):
    chosen = random.Random(seed)
    rows = chosen.choices(VALUES, k=60)
    lows = chosen.choices(VALUES, k=chosen.randint(0, 7))
    database = sqlite3.connect(":memory:")
    database.create_collation("scrambled", scrambled)
    database.execute("CREATE TABLE t (k TEXT COLLATE scrambled, n INT)")
    database.executemany("INSERT INTO t VALUES (?, ?)", [(row, n) for n, row in enumerate(rows)])

    clauses = range_clauses("[k]", ["'" + low.replace("'", "''") + "'" for low in lows if low is not None])

    found = [n for clause in clauses for (n,) in database.execute(f"SELECT n FROM t{clause}")]
    assert sorted(found) == list(range(len(rows)))


def test_ranges_of_ordered_bounds_hold_what_lies_between():
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE t (k INT)")
    database.executemany("INSERT INTO t VALUES (?)", [(n,) for n in (*range(10), None)])

    clauses = range_clauses("[k]", ["3", "7"])

    found = [sorted(database.execute(f"SELECT k FROM t{clause}"), key=repr) for clause in clauses]
    assert [[k for (k,) in rows] for rows in found] == [[0, 1, 2, None], [3, 4, 5, 6], [7, 8, 9]]


@pytest.mark.parametrize(
    ("type_", "collation", "bound"),
    [
        ("int", None, "42"),
        ("nvarchar", "Latin1_General_CI_AS", "N'42'"),
        ("varchar", "Cyrillic_General_CI_AS", "CONVERT(varchar(8000), N'42' COLLATE Cyrillic_General_CI_AS)"),
        ("char", None, "CONVERT(varchar(8000), N'42')"),
        ("uniqueidentifier", None, "CONVERT(uniqueidentifier, '42')"),
    ],
)
def test_bounds_are_values_of_the_columns_own_type_and_code_page(type_, collation, bound):
    _, value = key_bound(Column(1, 1, "k", type_, length=20, collation=collation))
    assert value.format("42") == bound


@pytest.mark.parametrize("type_", ["datetime2", "decimal", "float", "varbinary"])
def test_keys_of_other_types_are_copied_by_one_connection(type_):
    assert key_bound(Column(1, 1, "k", type_, length=8)) == ("", "")


@pytest.mark.parametrize("type_", ["nvarchar", "varchar"])
def test_a_collation_that_is_no_name_is_not_written_into_a_statement(type_):
    _, value = key_bound(Column(1, 1, "k", type_, length=20, collation="x'; DROP TABLE t"))
    assert not re.search("DROP", value)


END = datetime.datetime(2026, 10, 25, 2, 30)
"""The copy's end, by the server's clock."""


def progress(newest, seconds=0, empty_scans=None):
    """The capture's progress, with the newest commit that many seconds after the copy's end."""
    return CaptureProgress(
        END, None if newest is None else lsn(newest), END + datetime.timedelta(seconds=seconds), empty_scans
    )


@pytest.mark.parametrize(
    ("end", "now", "passed"),
    [
        pytest.param(progress(10, -5), progress(11, 0.003), True, id="a newer and later commit"),
        pytest.param(progress(10, -5), progress(11, -0.003), False, id="a newer commit of before"),
        pytest.param(progress(10, -5), progress(11, 0), False, id="a newer commit of the same moment"),
        pytest.param(progress(10, 1800), progress(10, 1800), False, id="the clock was set back: nothing new"),
        pytest.param(progress(10, 1800), progress(11, -1), False, id="the clock was set back: new, but of before"),
        pytest.param(progress(10, 1800), progress(11, 1), True, id="the clock was set back: new and later"),
        pytest.param(progress(None), progress(11, 1), True, id="the first commit of all"),
        pytest.param(progress(10, -5, 7), progress(10, -5, 9), True, id="two more scans found nothing"),
        pytest.param(progress(10, -5, 7), progress(10, -5, 8), False, id="one more scan found nothing"),
        pytest.param(progress(10, -5, 7), progress(10, -5, 0), False, id="the server was started again"),
        pytest.param(progress(10, -5, 7), progress(10, -5), False, id="scans are no longer shown"),
        pytest.param(progress(10, -5), progress(10, -5, 9), False, id="scans were not shown"),
    ],
)
def test_when_the_capture_has_passed_the_end_of_a_copy(end, now, passed):
    assert has_passed(end, now) is passed
