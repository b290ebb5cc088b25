"""The keys of rows, so that two values are equal where SQL Server takes them for equal."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mssql_cdc.sandbox.collations import comparing
from airflow_provider_mssql_cdc.sandbox.collations.names import DEFAULT
from airflow_provider_mssql_cdc.sandbox.engine.cdc.instance import CapturedColumn
from airflow_provider_mssql_cdc.sandbox.engine.schema import TableDef

_CHARACTERS = ("char", "varchar", "nchar", "nvarchar")

Keys = frozenset[tuple[Hashable, ...]]


def comparable(column: CapturedColumn, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Key values so that equal ones are equal in SQL Server: by the column's collation."""
    if column.type.name in _CHARACTERS:
        found = comparing.table(dataclasses.replace(column.type, collation=column.collation or DEFAULT))
        if found == "iso_1":
            return pc.utf8_lower(pc.utf8_rtrim(values, characters=" "))
        if found == "bin2":
            return pc.utf8_rtrim(values, characters=" ")
        keys = [None if text is None else comparing.equality_key(text, found) for text in values.to_pylist()]
        return pa.chunked_array([pa.array(keys, pa.string())])
    if column.type.name == "varbinary":
        keys = [None if value is None else value.rstrip(b"\0") for value in values.to_pylist()]
        return pa.chunked_array([pa.array(keys, pa.binary())])
    if pa.types.is_struct(values.type):
        return pc.struct_field(values, [0])  # two datetimeoffset values are equal if their instants are
    return values


def key_columns(table: TableDef) -> list[list[int]]:
    """Per key of a table, the places of its columns: of the primary key, unique indexes, and the clustered index."""
    places = {column.name.casefold(): i for i, column in enumerate(table.columns)}
    return [
        [places[name.casefold()] for name in index.columns]
        for index in table.indexes
        if index.primary_key or index.unique or index.clustered
    ]


def keys_of(table: TableDef, rows: pa.Table) -> list[Keys]:
    """Per row, the values of each of its keys; of all columns where the table has none."""
    found: list[list[tuple[Hashable, ...]]] = []
    for number, places in enumerate(key_columns(table) or [list(range(len(table.columns)))]):
        values = [comparable(CapturedColumn.of(table.columns[i]), rows.column(i)).to_pylist() for i in places]
        found.append([(table.object_id, number, *row) for row in zip(*values, strict=True)])
    return [frozenset(row) for row in zip(*found, strict=True)]
