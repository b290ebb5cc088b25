from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from airflow_provider_mssql_cdc.cli.demo import report
from airflow_provider_mssql_cdc.cli.demo.expected import Expected, copied_at
from airflow_provider_mssql_cdc.cli.demo.targets import compare_shape
from airflow_provider_mssql_cdc.cli.demo.targets_lake import HISTORY, TABLE, TRANSACTIONS, VERSIONS

LOW, HIGH, TEN, ELEVEN, TWELVE = (f"0x{number:020X}" for number in (5, 8, 10, 11, 12))
MEANWHILE = f"0x{7:020X}"
AT = datetime.datetime(2026, 1, 1, 12, 0, 0, 1)
DAY = datetime.date(2026, 1, 3)


def order(order_id, status, amount="1.0000", shipped=None):
    return order_id, 70, status, Decimal(amount), AT, shipped


QUIET = order(1, "quiet")
BEFORE, AFTER = order(2, "new"), order(2, "paid", "2.5000", DAY)
SHIPPED = order(2, "shipped", "2.5000", DAY)
COPIED_AND_CHANGED = (order(3, "new"), order(3, "returned"))
GONE = order(4, "gone")
FLEETING = order(5, "fleeting")
AGAIN = order(4, "again")

SOURCE = [QUIET, SHIPPED, COPIED_AND_CHANGED[1], AGAIN]
EVENTS = [
    # while it was copied
    (MEANWHILE, 1, "B", *COPIED_AND_CHANGED[0]),
    (MEANWHILE, 1, "U", *COPIED_AND_CHANGED[1]),
    # two updates of a row in one transaction, and a delete beside them
    (TEN, 1, "B", *BEFORE),
    (TEN, 1, "U", *AFTER),
    (TEN, 2, "B", *AFTER),
    (TEN, 2, "U", *SHIPPED),
    (TEN, 3, "D", *GONE),
    # a row of one transaction alone
    (ELEVEN, 1, "I", *FLEETING),
    (ELEVEN, 2, "D", *FLEETING),
    (TWELVE, 1, "I", *AGAIN),
]
AT_LOW = [QUIET, BEFORE, COPIED_AND_CHANGED[0], GONE]
VERSION_ROWS = [
    (*QUIET, LOW, None),
    (*BEFORE, LOW, TEN),
    (*SHIPPED, TEN, None),
    (*COPIED_AND_CHANGED[0], LOW, MEANWHILE),
    (*COPIED_AND_CHANGED[1], MEANWHILE, None),
    (*GONE, LOW, TEN),
    (*AGAIN, TWELVE, None),
]
EXPECTED = Expected(TABLE, LOW, SOURCE, EVENTS[::-1])

HELD = {
    "mirror": (TABLE.arrow, SOURCE),
    "history": (HISTORY, [*((LOW, None, "R", *row) for row in AT_LOW), *EVENTS]),
    "scd2": (VERSIONS, VERSION_ROWS),
    "transactions": (
        TRANSACTIONS,
        [(MEANWHILE, 1, 0, 1, 0), (TEN, 3, 0, 2, 1), (ELEVEN, 2, 1, 0, 1), (TWELVE, 1, 1, 0, 0)],
    ),
}


def there(shape, rows):
    """What a target holds, in another order."""
    schema, _ = HELD[shape]
    columns = zip(*rows[::-1], strict=True)
    return pa.table(
        [pa.array(column, type_) for column, type_ in zip(columns, schema.types, strict=True)], schema=schema
    )


def differences(shape, rows):
    found = compare_shape(shape, SOURCE, EXPECTED, there(shape, rows))
    return {what: comparison.examples for what, comparison in found.items() if not comparison.equal}


@pytest.mark.parametrize("shape", HELD)
def test_a_target_that_holds_it_all_is_equal(shape):
    assert differences(shape, HELD[shape][1]) == {}


OTHERS = {"order_id": 99, "customer_id": 71, "status": "lost", "amount": Decimal("9.0000"), "ordered_at": None}
OTHERS |= dict.fromkeys(("events", "inserted", "updated", "deleted"), 7)
OTHERS |= {"_lsn": HIGH, "_command_id": 9, "_op": "X", "_from_lsn": HIGH, "_to_lsn": HIGH}


@pytest.mark.parametrize(
    ("shape", "row", "column"),
    [
        (shape, row, column)
        for shape, (schema, rows) in HELD.items()
        for row in range(len(rows))
        for column in schema.names
    ],
)
def test_one_corrupted_cell_is_found(shape, row, column):
    schema, rows = HELD[shape]
    corrupted = [list(each) for each in rows]
    position = schema.names.index(column)
    corrupted[row][position] = OTHERS.get(column, datetime.date(1999, 1, 1))
    assert differences(shape, corrupted)


@pytest.mark.parametrize("shape", HELD)
def test_a_lost_row_and_one_that_is_there_twice_are_found(shape):
    rows = HELD[shape][1]
    for number, row in enumerate(rows):
        assert differences(shape, [*rows[:number], *rows[number + 1 :]])
        assert differences(shape, [*rows, row])


def test_a_version_that_ends_too_late_is_told():
    rows = [(*row[:-1], ELEVEN) if row == VERSION_ROWS[5] else row for row in VERSION_ROWS]
    (example,) = differences("scd2", rows)["versions"]
    assert example == f"order_id 4, _from_lsn {LOW}: _to_lsn is {ELEVEN!r} in the lake, {TEN!r} in the source"


def test_a_deleted_row_whose_version_stays_open_is_told_twice():
    rows = [(*row[:-1], None) if row == VERSION_ROWS[5] else row for row in VERSION_ROWS]
    assert differences("scd2", rows).keys() == {"versions", "open versions"}


def test_a_summary_tells_at_which_position_a_first_load_has_the_rows():
    entry = {"table": TABLE.full_name, "windows": [f"({LOW}, {HIGH}]"], "position": HIGH}
    assert copied_at(TABLE, [{"tables": [entry]}]) == LOW
    assert copied_at(TABLE, [{"tables": [{**entry, "windows": []}]}]) == HIGH


def test_what_was_compared_is_named_by_target_and_shape():
    counts = dict.fromkeys(("windows", "events", "copied", "inserted", "updated", "deleted"), 1)
    entry = {"table": "sales.orders", "target": "delta", "shape": "scd2", **counts, "seconds": 1.0, "rows": 7}
    header, line = report.table_lines([{**entry, "equal": False}])
    assert header.split()[:4] == ["table", "target", "shape", "windows"]
    assert line.split() == ["sales.orders", "delta", "scd2", *["1"] * 6, "1.0", "7", "NO"]
    assert report.name(entry) == "sales.orders delta scd2"


def test_counts_of_a_targets_loads_are_shown_once():
    counts = dict.fromkeys(("windows", "events", "copied", "inserted", "updated", "deleted"), 1)
    entries = [
        {"table": "sales.orders", "target": target, "shape": shape, **counts, "seconds": 1.0, "rows": 7, "equal": True}
        for target, shape in [("iceberg", "mirror"), ("iceberg", "history"), ("delta", "mirror"), ("delta", "scd2")]
    ]
    header, *lines = report.table_lines(entries)
    shown, repeated = ["sales.orders", *["1"] * 6, "1.0", "7", "yes"], ["sales.orders", "7", "yes"]
    assert [[word for word in line.split() if word not in targets_and_shapes(entries)] for line in lines] == [
        shown,
        repeated,
    ] * 2
    assert {len(line) for line in lines} == {len(header)}


def targets_and_shapes(entries):
    return {entry[part] for entry in entries for part in ("target", "shape")}
