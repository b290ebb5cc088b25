from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from airflow_provider_mssql_cdc.cli.demo.compare import Comparison, compare

SCHEMA = pa.schema(
    [
        ("order_id", pa.int64()),
        ("line_no", pa.int16()),
        ("price", pa.decimal128(10, 2)),
        ("note", pa.string()),
        ("at", pa.timestamp("us")),
    ]
)
KEY = ("order_id", "line_no")
NOON = datetime.datetime(2026, 1, 1, 12)
ROWS = [(1, 1, Decimal("1.50"), "a", NOON), (1, 2, Decimal("2.00"), None, NOON), (2, 1, Decimal("0.00"), "", NOON)]


def lake(rows, schema=SCHEMA):
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=schema)


def test_the_same_rows_in_another_order_are_equal():
    swapped = lake(ROWS[::-1]).select(["note", "at", "line_no", "price", "order_id"])
    assert compare(ROWS, swapped, SCHEMA, KEY) == Comparison(3, 3, 0)


@pytest.mark.parametrize(
    ("position", "value", "shown"),
    [
        (2, Decimal("2.01"), "price is Decimal('2.01') in the lake, Decimal('2.00') in the source"),
        (3, "", "note is '' in the lake, None in the source"),
        (4, NOON.replace(microsecond=1), "at is datetime.datetime(2026, 1, 1, 12, 0, 0, 1) in the lake"),
    ],
)
def test_one_corrupted_cell_is_found(position, value, shown):
    row = [*ROWS[1]]
    row[position] = value
    result = compare(ROWS, lake([ROWS[0], tuple(row), ROWS[2]]), SCHEMA, KEY)
    assert (result.equal, result.differences) == (False, 1)
    assert result.examples[0].startswith("order_id 1, line_no 2: " + shown)


def test_a_missing_row_is_found():
    assert compare(ROWS, lake(ROWS[:2]), SCHEMA, KEY) == Comparison(
        3, 2, 1, ("order_id 2, line_no 1 is missing in the lake",)
    )


def test_an_extra_row_is_found():
    assert compare(ROWS[1:], lake(ROWS), SCHEMA, KEY) == Comparison(
        2, 3, 1, ("order_id 1, line_no 1 is in the lake only",)
    )


def test_a_row_that_is_there_twice_is_found():
    assert compare(ROWS, lake([*ROWS, ROWS[0]]), SCHEMA, KEY) == Comparison(
        3, 4, 1, ("order_id 1, line_no 1 is in the lake more than once",)
    )


def test_an_empty_lake_is_not_equal():
    assert compare(ROWS, SCHEMA.empty_table(), SCHEMA, KEY).differences == 3


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("line_no", pa.int32()),
        ("price", pa.decimal128(10, 4)),
        ("note", pa.large_string()),
        ("at", pa.timestamp("us", "UTC")),
    ],
)
def test_a_changed_type_is_found_though_the_values_look_the_same(name, type_):
    schema = SCHEMA.set(SCHEMA.get_field_index(name), pa.field(name, type_))
    assert compare(ROWS, lake(ROWS).cast(schema), SCHEMA, KEY).examples == (
        f"column {name} is {type_} in the lake, expected {SCHEMA.field(name).type}",
    )


def test_missing_and_extra_columns_are_found():
    other = lake(ROWS).rename_columns(["order_id", "line_no", "price", "remark", "at"])
    assert compare(ROWS, other, SCHEMA, KEY).examples == (
        "column note is missing in the lake",
        "column remark is in the lake only",
    )


def test_a_value_of_another_python_type_in_the_source_is_a_difference():
    rows = [(True, *ROWS[0][1:])]
    assert compare(rows, lake(ROWS[:1]), SCHEMA, KEY).differences == 1


def test_only_the_first_differences_are_shown_and_all_counted():
    rows = [(number, 1, None, None, None) for number in range(100)]
    result = compare(rows, SCHEMA.empty_table(), SCHEMA, KEY)
    assert (result.differences, len(result.examples)) == (100, 5)
