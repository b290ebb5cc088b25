"""Result sets on their way out: columns, batches in exactly their Arrow types, and how many rows went."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.collations import comparing
from airflow_provider_mssql_cdc.sandbox.protocol import Column, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr

_FEW_ROWS = 4096


class Counter:
    """Counts the rows of batches that pass; an error among them ends them.

    :ivar error: which one it was
    """

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches, self.rows = batches, 0
        self.error: SqlError | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._batches:
                self.rows += batch.num_rows
                yield batch
        except SqlError as error:
            self.error = error


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows with small batches put together: a UNION ALL gives one for each of its queries."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= _FEW_ROWS:
            yield held[0] if len(held) == 1 else pa.concat_batches(held)
            held, rows = [], 0
    if held:
        yield pa.concat_batches(held)


def mixed(batches: Iterable[pa.RecordBatch], number: int) -> Iterator[pa.RecordBatch]:
    """The same rows in another order: those of each batch mixed, and each two batches the other way around.

    :param number: by which they are mixed
    """
    held = None
    for batch in batches:
        order = np.random.default_rng(number).permutation(batch.num_rows)
        taken = batch.take(pa.array(order))
        if held is None:
            held = taken
        else:
            yield taken
            yield held
            held = None
    if held is not None:
        yield held


def table(columns: list[tuple[Column, str]], batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Rows under other names, which stand beside their columns."""
    schema = pa.schema([pa.field(name, column.type.arrow) for column, name in columns])
    renamed = [pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in batches]
    return pa.Table.from_batches(renamed, schema)


def limited(batches: Iterable[pa.RecordBatch], limit: int | None, offset: int = 0) -> Iterator[pa.RecordBatch]:
    """So many of the rows, None for all, after so many others; no batch is asked for in vain."""
    for batch in batches if limit != 0 else ():
        batch, offset = batch.slice(offset), max(0, offset - batch.num_rows)
        batch = batch if limit is None else batch.slice(0, limit)
        if batch.num_rows:
            yield batch
        limit = None if limit is None else limit - batch.num_rows
        if limit == 0:
            return


def result_columns(columns: list[tuple[str, Expr]]) -> list[Column]:
    """A compiled query's columns as the wire describes them."""
    return [
        Column(name, comparing.resolved(expr.type), expr.nullable, expr.identity, expr.computed)
        for name, expr in columns
    ]


def typed(batch: pa.RecordBatch, columns: list[Column]) -> pa.RecordBatch:
    """A batch in exactly the columns' Arrow types."""
    if all(field.type == column.type.arrow for field, column in zip(batch.schema, columns, strict=True)):
        return batch
    arrays = [
        array if array.type == column.type.arrow else array.cast(column.type.arrow)
        for array, column in zip(batch.columns, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, [f"k{i}" for i in range(1, len(columns) + 1)])


def plain(value: Any) -> Any:
    """A value from Arrow in the form that variables hold."""
    return (value["utc_ticks"], value["offset_minutes"]) if isinstance(value, dict) else value
