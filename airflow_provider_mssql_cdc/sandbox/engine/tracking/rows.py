"""Side rows: what a transaction did to tracked tables, written with a version before DuckDB commits."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.engine.cdc.mapping import to_datetime
from airflow_provider_mssql_cdc.sandbox.engine.log import RowImages
from airflow_provider_mssql_cdc.sandbox.engine.schema import TableDef
from airflow_provider_mssql_cdc.sandbox.engine.tracking.state import COMMITS, ChangeTracking, TrackedTable
from airflow_provider_mssql_cdc.sandbox.tsql.typing import duck

_STAGE = "staged_side_rows"
_COLUMNS = pa.list_(pa.int32())

CREATE_COMMITS = (
    "CREATE TABLE {}.main." + COMMITS + " (commit_ts BIGINT, xdes_id BIGINT, commit_lbn BIGINT, commit_csn BIGINT, "
    "commit_time TIMESTAMP)"
)


@dataclass(frozen=True, slots=True)
class TrackedRows:
    """The rows of a tracked table that one statement wrote.

    :param context: of WITH CHANGE_TRACKING_CONTEXT
    """

    table: TrackedTable
    images: RowImages
    context: bytes | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """What the commit table says of a transaction, beside its version."""

    transaction: int
    sequence: int
    time: datetime.datetime


def create_side_table(duck_name: str, tracked: TrackedTable, table: TableDef) -> str:
    """The DuckDB statement that makes a side table.

    A side row is what one statement did to one key: I, U or D, and the column ids that an update named.
    """
    types = {column.column_id: duck(column.type) for column in table.columns}
    keys = ", ".join(f"c{number} {types[number]}" for number in tracked.key)
    return (
        f"CREATE TABLE {duck_name}.main.{tracked.storage} (version BIGINT, n BIGINT, op VARCHAR, cols INTEGER[], "
        f"context BLOB, {keys})"
    )


def write(
    connection: duckdb.DuckDBPyConnection,
    duck_name: str,
    tracking: ChangeTracking,
    written: Sequence[TrackedRows],
    forgotten: Sequence[tuple[int, int]],
    commit: Commit,
) -> tuple[int, int]:
    """Draw a version and write side rows with it in DuckDB's open transaction.

    :param written: what its statements wrote, in order
    :param forgotten: the side tables that it emptied or dropped, each with how many of ``written`` came before
    :returns: the version, and how many side rows were numbered up to now
    """
    state = tracking.state
    version, number = state.version + 1, state.rows
    tables: dict[TrackedTable, list[pa.Table]] = {}
    names: dict[int, TrackedTable] = {}
    for place, each in enumerate(written):
        if any(each.table.side == side and place < before for side, before in forgotten):
            continue
        rows = _side_rows(each, version, number)
        number += rows.num_rows
        known = names.setdefault(each.table.side, each.table)
        tables.setdefault(known, []).append(rows)
    for table, parts in tables.items():
        rows = pa.concat_tables(parts)
        connection.register(_STAGE, rows)
        try:
            listed = ", ".join(rows.column_names)
            connection.execute(f"INSERT INTO {duck_name}.main.{table.storage} ({listed}) SELECT {listed} FROM {_STAGE}")
        finally:
            connection.unregister(_STAGE)
    connection.execute(
        f"INSERT INTO {duck_name}.main.{COMMITS} VALUES (?, ?, ?, ?, ?)",
        [version, commit.transaction, version * 8, commit.sequence, to_datetime(commit.time)],
    )
    return version, number


def _side_rows(rows: TrackedRows, version: int, first: int) -> pa.Table:
    """Side rows in the order in which they happened; deletes of a key update come before its inserts."""
    images, key = rows.images, rows.table.key
    table = images.table
    names = [next(column.name for column in table.columns if column.column_id == number) for number in key]
    before, after = (None if each is None else each.select(names) for each in (images.before, images.after))
    parts: list[tuple[str, Any, list[int] | None]]
    if before is None or after is None:
        parts = [("I" if before is None else "D", before if after is None else after, None)]
    elif images.assigned.isdisjoint(name.casefold() for name in names):
        parts = [("U", after, _mask(rows))]
    else:
        parts = _key_update(before, after)
    found = []
    for op, keys, columns in parts:
        count = keys.num_rows
        arrays: list[Any] = [
            pa.array(itertools.repeat(version, count), pa.int64()),
            pa.array(range(first, first + count), pa.int64()),
            pa.array(itertools.repeat(op, count), pa.string()),
            pa.array(itertools.repeat(columns, count), _COLUMNS),
            pa.array(itertools.repeat(rows.context, count), pa.binary()),
            *keys.columns,
        ]
        labels = ["version", "n", "op", "cols", "context", *(f"c{number}" for number in key)]
        found.append(pa.Table.from_arrays(arrays, labels))
        first += count
    return pa.concat_tables(found)


def _key_update(before: pa.Table, after: pa.Table) -> list[tuple[str, Any, list[int] | None]]:
    """A key that is given its own value stays; others are deleted, and inserted anew."""
    old, new = (list(zip(*(column.to_pylist() for column in each.columns), strict=True)) for each in (before, after))
    same = [left == right for left, right in zip(old, new, strict=True)]
    moved = pa.array([not each for each in same])
    return [
        ("U", after.filter(pa.array(same)), None),
        ("D", before.filter(moved), None),
        ("I", after.filter(moved), None),
    ]


def _mask(rows: TrackedRows) -> list[int] | None:
    """The ids of the columns that an update names; None for all of them, or where they are not tracked."""
    if not rows.table.columns_updated:
        return None
    settable = {
        column.column_id: column.name.casefold()
        for column in rows.images.table.columns
        if column.column_id not in rows.table.key and column.computed is None and column.type.name != "rowversion"
    }
    named = [number for number, name in settable.items() if name in rows.images.assigned]
    return None if len(named) == len(settable) else named
