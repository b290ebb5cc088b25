"""Source against lake: every row and every column, by plain reads of both sides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Comparison:
    """What became of one table.

    :param source_rows: rows of the source
    :param lake_rows: rows of the lake
    :param differences: number of differing columns, rows and cells
    :param examples: the first differences, as text
    """

    source_rows: int
    lake_rows: int
    differences: int
    examples: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether both sides hold the same."""
        return self.differences == 0


def read_source(connection: Any, table: str, schema: pa.Schema) -> list[tuple[Any, ...]]:
    """All rows of a table of the source.

    :param connection: a DB-API connection
    :param table: ``schema.table``
    :param schema: the columns to find there
    :raises ValueError: if the source has other columns
    """
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table}")
        names = [column[0] for column in cursor.description]
        if names != schema.names:
            raise ValueError(f"{table} has the columns {names}, expected were {schema.names}")
        return [tuple(row) for row in cursor.fetchall()]


def read_events(connection: Any, change_table: str, schema: pa.Schema, low: str) -> list[tuple[Any, ...]]:
    """The changes that SQL Server captured after a position.

    :param schema: LSN, command id and operation (I, U, D, B), and the columns to read
    :param low: as text
    """
    names = ", ".join(f"[{name}]" for name in schema.names[3:])
    operation = "SUBSTRING('DIBU', [__$operation], 1)"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT CONVERT(varchar(22), [__$start_lsn], 1), [__$command_id], {operation}, {names}"
            f" FROM {change_table} WHERE [__$start_lsn] > {low}"
        )
        return [tuple(row) for row in cursor.fetchall()]


def compare(source: list[tuple[Any, ...]], lake: pa.Table, schema: pa.Schema, key: tuple[str, ...]) -> Comparison:
    """Compare rows of the source with rows of the lake.

    :param source: in the order of ``schema``
    :param schema: names and types that the lake must have, in any order
    :param key: the columns that tell rows apart
    """
    found = list(_differing_columns(lake.schema, schema))
    if not found:
        columns = [lake.column(name).to_pylist() for name in schema.names]
        found = list(_differing_rows(source, list(zip(*columns, strict=True)), schema.names, key))
    return Comparison(len(source), lake.num_rows, len(found), tuple(found[:_SHOWN]))


def _differing_columns(lake: pa.Schema, expected: pa.Schema) -> Iterator[str]:
    types = dict(zip(lake.names, lake.types, strict=True))
    for field in expected:
        type_ = types.pop(field.name, None)
        if type_ is None:
            yield f"column {field.name} is missing in the lake"
        elif type_ != field.type:
            yield f"column {field.name} is {type_} in the lake, expected {field.type}"
    for name in types:
        yield f"column {name} is in the lake only"


def _differing_rows(
    source: list[tuple[Any, ...]], lake: list[tuple[Any, ...]], names: list[str], key: tuple[str, ...]
) -> Iterator[str]:
    positions = [names.index(name) for name in key]
    there, twice = _by_key(lake, positions)
    for identity in twice:
        yield f"{_show(key, identity)} is in the lake more than once"
    for row in source:
        identity = tuple(row[position] for position in positions)
        other = there.pop(identity, None)
        if other is None:
            yield f"{_show(key, identity)} is missing in the lake"
            continue
        for name, here, value in zip(names, row, other, strict=True):
            # 1, 1.0, True and Decimal(1) are equal to Python, and not the same to us.
            if type(here) is not type(value) or here != value:
                yield f"{_show(key, identity)}: {name} is {value!r} in the lake, {here!r} in the source"
    for identity in there:
        yield f"{_show(key, identity)} is in the lake only"


def _by_key(rows: list[tuple[Any, ...]], positions: list[int]) -> tuple[dict[Any, tuple[Any, ...]], list[Any]]:
    found: dict[Any, tuple[Any, ...]] = {}
    twice = []
    for row in rows:
        identity = tuple(row[position] for position in positions)
        if identity in found:
            twice.append(identity)
        found[identity] = row
    return found, twice


def _show(key: tuple[str, ...], identity: tuple[Any, ...]) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(key, identity, strict=True))
