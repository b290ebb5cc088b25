"""Slices cover a window without hole or overlap, whatever the server counted."""

import itertools
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.position import Lsn, Window
from airflow_provider_mssql_cdc.spark.sources.cdc.query import slice_sql
from airflow_provider_mssql_cdc.spark.sources.cdc.slices import (
    Bucket,
    CommandBucket,
    Slice,
    bucket_rows,
    count_commands_sql,
    count_sql,
    large_transactions,
    plan_slices,
    slice_count,
)
from tests.support.spark import model


def lsn(number):
    return Lsn(number.to_bytes(10, "big"))


@st.composite
def change_tables(draw):
    """Transactions as lists of rows' command ids, keyed by commit LSN."""
    numbers = draw(st.lists(st.integers(10, 200), max_size=12, unique=True))
    transactions = {}
    for number in sorted(numbers):
        commands = draw(st.integers(1, 3) | st.integers(20, 60))
        width = draw(st.integers(1, 2))
        first = draw(st.integers(-2, 1))
        unknown = draw(st.sampled_from([0, 0, 1, commands]))
        transactions[lsn(number)] = [(i // width + first) if i >= unknown else None for i in range(commands)]
    return transactions


def count(transactions, rows):
    """Bucket transactions as ``count_sql`` says."""
    buckets, total = {}, 0
    for position, commands in sorted(transactions.items()):
        total += len(commands)
        place = ((total - 1) // rows, len(commands) > rows)
        last, before = buckets.get(place, (position, 0))
        buckets[place] = (max(last, position), before + len(commands))
    return [Bucket(last, n, big) for (_, big), (last, n) in buckets.items()]


def count_commands(commands, rows):
    """Bucket commands as ``count_commands_sql`` says."""
    buckets, total = {}, 0
    for command in sorted(set(commands), key=lambda c: (c is not None, c)):
        n = commands.count(command)
        total += n
        place = -1 if command is None else (total - 1) // rows
        last, before = buckets.get(place, (command, 0))
        buckets[place] = (command if last is None else max(last, command), before + n)
    return [CommandBucket(last, n) for last, n in buckets.values()]


@given(change_tables(), st.integers(1, 80), st.integers(1, 6), st.randoms())
def test_every_row_is_read_once_and_numbered_as_in_the_whole_transaction(transactions, slice_rows, connections, random):
    window = Window(lsn(5), lsn(250))
    grain = bucket_rows(slice_rows)
    buckets = count(transactions, grain)
    random.shuffle(buckets)
    large = large_transactions(buckets, slice_rows, connections)
    commands = {position: count_commands(transactions[position], grain) for position in large}

    slices = plan_slices(window, buckets, commands, slice_rows=slice_rows, connections=connections)

    expected = [
        (position, number, command)
        for position, found in sorted(transactions.items())
        for number, command in enumerate(sorted(found, key=lambda c: (c is not None, c)), start=1)
    ]
    read = []
    for part in slices:
        rows = 0
        for position, found in sorted(transactions.items()):
            if position not in part.window:
                continue
            taken = [
                command
                for command in sorted(found, key=lambda c: (c is not None, c))
                if part.command_upto is None
                or (
                    command is not None
                    and (part.command_after is None or part.command_after < command)
                    and command <= part.command_upto
                )
            ]
            read += [(position, part.seq_offset + number, c) for number, c in enumerate(taken, start=1)]
            rows += len(taken)
        assert part.rows == rows
    assert read == expected
    assert slices[0].window.after <= window.after or slices[0].command_upto is not None


@given(change_tables(), st.integers(1, 80), st.integers(1, 6))
def test_a_window_without_large_transactions_has_no_more_slices_than_connections(transactions, slice_rows, connections):
    buckets = [bucket for bucket in count(transactions, bucket_rows(slice_rows)) if not bucket.single]

    slices = plan_slices(Window(lsn(5), lsn(250)), buckets, {}, slice_rows=slice_rows, connections=connections)

    assert len(slices) <= slice_count(sum(b.rows for b in buckets), slice_rows, connections)


def test_equal_transactions_make_equal_slices():
    buckets = [Bucket(lsn(n), 25_000) for n in range(10, 50)]

    slices = plan_slices(Window(lsn(5), lsn(99)), buckets, {}, slice_rows=200_000, connections=4)

    assert [part.rows for part in slices] == [250_000] * 4
    assert slices[0].window.after == lsn(5)
    assert slices[-1].window.upto == lsn(99)
    assert all(a.window.upto == b.window.after for a, b in itertools.pairwise(slices))


def test_one_large_transaction_is_read_by_several_connections():
    commands = [CommandBucket(n * 1000, 1000) for n in range(1, 9)]

    slices = plan_slices(
        Window(lsn(5), lsn(99)),
        [Bucket(lsn(20), 8000, single=True)],
        {lsn(20): commands},
        slice_rows=2000,
        connections=4,
    )

    assert [(s.command_after, s.command_upto, s.seq_offset, s.rows) for s in slices] == [
        (None, 2000, 0, 2000),
        (2000, 4000, 2000, 2000),
        (4000, 6000, 4000, 2000),
        (6000, 8000, 6000, 2000),
    ]


def test_statements_name_positions_by_literals_whatever_people_read():
    spec, window = model.table_spec(), Window(lsn(1), lsn(2))
    with mock.patch.object(Lsn, "__str__", return_value="an LSN"):
        statements = [
            count_sql(spec.feed, window, 8),
            count_commands_sql(spec.feed, lsn(2), 8),
            slice_sql(spec.feed, spec.schema, (), Slice(window, 0), history=True),
        ]
    for statement in statements:
        assert "an LSN" not in statement
        assert "0x00000000000000000002" in statement
