"""Small result sets made of Python rows: columns from a short description, and an Arrow table."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.protocol import Column
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType

Relation = tuple[list[Column], pa.Table]

_COLUMN = re.compile(r"([\w$]+) (\w+)(?:\((\w+)(?:,(\d+))?\))?(!?)(?:, |$)")
_LENGTHS = {"sysname": 128}


@functools.lru_cache(maxsize=256)
def columns(description: str) -> tuple[Column, ...]:
    """Columns from ``name type, name type(length)!``; the mark ! says NOT NULL."""
    found, position = [], 0
    while position < len(description):
        match = _COLUMN.match(description, position)
        if match is None:
            raise ValueError(f"no column at {description[position : position + 40]!r}")
        name, type_, first, second, mark = match.groups()
        number = MAX if first == "max" else int(first or _LENGTHS.get(type_, 0))
        if type_ == "decimal":
            made = SqlType(type_, 0, number, int(second or 0))
        else:
            made = SqlType(type_, 0, 0, number) if type_ == "datetimeoffset" else SqlType(type_, number)
        found.append(Column(name, made, not mark))
        position = match.end()
    return tuple(found)


def relation(description: str, rows: Sequence[Sequence[object]]) -> Relation:
    """A result set of these rows; each value as the Arrow type of its column takes it."""
    described = list(columns(description))
    arrays = [
        pa.array([row[i] for row in rows], column.type.arrow, from_pandas=False) for i, column in enumerate(described)
    ]
    return described, pa.Table.from_arrays(arrays, [column.name for column in described])
