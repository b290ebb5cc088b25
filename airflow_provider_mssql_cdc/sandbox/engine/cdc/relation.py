"""Small result sets made of Python rows: columns and an Arrow table."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.protocol import Column

Relation = tuple[list[Column], pa.Table]


def relation(columns: list[Column], rows: Sequence[Sequence[object]]) -> Relation:
    """A result set of these rows; each value as the Arrow type of its column takes it."""
    arrays = [
        pa.array([row[i] for row in rows], column.type.arrow, from_pandas=False) for i, column in enumerate(columns)
    ]
    return columns, pa.Table.from_arrays(arrays, [column.name for column in columns])
