"""Bulk loads: rows that a client sends as a server would, after INSERT BULK has said where they go (MS-TDS 2.2.6.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from airflow_provider_mssql_cdc.sandbox.protocol import BulkColumn, SqlError
from airflow_provider_mssql_cdc.sandbox.types import MAX
from airflow_provider_mssql_cdc.sandbox.wire.parameters import UTF16_TYPES, python_value, read_plp
from airflow_provider_mssql_cdc.sandbox.wire.reader import Reader, StreamEnded
from airflow_provider_mssql_cdc.sandbox.wire.typeinfo import ParameterType, Prefix, read_type_info

_COLUMNS, _ROW, _DONE = 0x81, 0xD1, 0xFD
_NULLABLE = 0x0001
_DONE_SIZE = 12
_TIMESTAMP_SIZE = 8
_INVALID = 'Invalid data for type "{}".'


def read_bulk_load(reader: Reader) -> tuple[list[BulkColumn], Iterator[list[Any]]]:
    """The columns of a bulk load, and its rows as they are read; values as in ``Parameter``.

    :raises SqlError: 4804 where the columns are missing; while rows are read also 4815 for a value that is too long,
        4895 for half a character, 9803 for a value that its type has not
    """
    try:
        columns = _read_columns(reader)
    except StreamEnded:
        raise SqlError.of(4804, state=2) from None
    described = [BulkColumn(kind.sql, nullable) for kind, nullable in columns]
    return described, _read_rows(reader, [kind for kind, _ in columns])


def _read_columns(reader: Reader) -> list[tuple[ParameterType, bool]]:
    if reader.u8() != _COLUMNS:
        raise StreamEnded("rows without columns")
    columns = []
    for _ in range(reader.u16()):
        reader.u32()
        flags = reader.u16()
        kind = read_type_info(reader)
        if kind.prefix is Prefix.TEXT_POINTER:
            # the table, in one part whose number is not given, as clients send it
            reader.text(reader.u16())
        reader.b_varchar()  # columns go by their places
        columns.append((kind, bool(flags & _NULLABLE)))
    return columns


def _read_rows(reader: Reader, kinds: list[ParameterType]) -> Iterator[list[Any]]:
    try:
        # FreeTDS sends no DONE after the last row
        while reader.remaining:
            token = reader.u8()
            if token == _DONE:
                reader.bytes(_DONE_SIZE)
                break
            if token != _ROW:
                raise StreamEnded(f"0x{token:02X} where a row was due")
            yield [_read_value(reader, kind, number) for number, kind in enumerate(kinds, 1)]
        if reader.remaining:
            raise StreamEnded(f"{reader.remaining} bytes after the end")
    except StreamEnded:
        # as measured on 2022: whatever does not match the columns
        raise SqlError.of(4804, severity=17) from None


def _read_value(reader: Reader, kind: ParameterType, number: int) -> Any:
    data = _read_data(reader, kind, number)
    if data is None:
        return None
    if kind.sql.name in UTF16_TYPES and len(data) % 2:
        raise SqlError.of(4895, number)
    try:
        return python_value(kind, data)
    except (ValueError, OverflowError):
        raise SqlError(9803, _INVALID.format(kind.sql.name)) from None


def _read_data(reader: Reader, kind: ParameterType, number: int) -> bytes | None:
    if kind.prefix is Prefix.NONE:
        return reader.bytes(kind.size)
    if kind.prefix is Prefix.PLP:
        return read_plp(reader)
    if kind.prefix is Prefix.TEXT_POINTER:
        pointer = reader.u8()
        if not pointer:
            return None
        reader.bytes(pointer + _TIMESTAMP_SIZE)
        return reader.bytes(reader.u32())
    if kind.prefix is Prefix.BYTE:
        length = reader.u8()
        wrong = length != kind.size if kind.size else length > 17
        if length and wrong:
            raise SqlError.of(4815, number)
        return reader.bytes(length) or None
    length = reader.u16()
    if length == 0xFFFF:
        return None
    unit = 2 if kind.sql.name in UTF16_TYPES else 1
    if kind.sql.length != MAX and length > kind.sql.length * unit:
        raise SqlError.of(4815, number)
    return reader.bytes(length)
