"""Rows of catalogue views from a short description of their columns."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.protocol import Column
from airflow_provider_mssql_cdc.sandbox.tsql.ddl import data_type
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import Cursor, tokenize


@functools.lru_cache(maxsize=256)
def columns(description: str) -> tuple[Column, ...]:
    """Columns from ``name type, name type!``; the mark ! says NOT NULL."""
    result = []
    # '!' alone is not T-SQL; the lexer still reads it as an operator
    cursor = Cursor(tokenize(description), description)
    while cursor.token.kind != "end":
        name = cursor.name()
        type_ = data_type(cursor)
        result.append(Column(name, type_, not cursor.take("!")))
        cursor.take(",")
    return tuple(result)


def rows(description: str, data: Sequence[Sequence[Any]]) -> tuple[list[Column], pa.Table]:
    """A relation of these rows."""
    described = list(columns(description))
    arrays = [pa.array([row[i] for row in data], column.type.arrow) for i, column in enumerate(described)]
    return described, pa.Table.from_arrays(arrays, [column.name for column in described])
