"""Whole numbers and uniqueidentifiers as bytes and back, bytes of a length, floats in all digits, as DuckDB SQL."""

from __future__ import annotations

from airflow_provider_mssql_cdc.sandbox.tsql.literals import blob
from airflow_provider_mssql_cdc.sandbox.tsql.typing import INT_BYTES, duck
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType


def int_to_binary(sql: str, source: SqlType, target: SqlType) -> str:
    """Big-endian bytes; what is wider is filled up on the left, what is narrower loses its high bytes."""
    size, length = INT_BYTES[source.name], 8 if target.name == "rowversion" else target.length
    number = f"CAST({sql} AS UTINYINT)" if source.name == "bit" else sql
    data = f"CAST(CAST({number} AS BIT) AS BLOB)"
    if length == MAX or (target.name == "varbinary" and size <= length):
        return data
    return f"({blob(bytes(max(length - size, 0)))} || {data})[-{length}:]"


def binary_to_int(sql: str, source: SqlType, target: SqlType) -> str:
    """The last bytes as a big-endian number; missing ones count as zero."""
    size = INT_BYTES[target.name]
    if target.name == "bit":
        return f"(right(hex({sql}), 2) <> '00')"
    if source.name == "varbinary" and 0 < source.length < size:
        data = f"{blob(bytes(1))} || {sql}"  # DuckDB takes no empty bytes for a number
    else:
        data = f"({blob(bytes(size))} || {sql})[-{size}:]"
    return f"CAST(CAST({data} AS BIT) AS {duck(target)})"


def guid_bytes(sql: str) -> str:
    """A uniqueidentifier as bytes: the first three groups turned round."""
    order = (7, 5, 3, 1, 12, 10, 17, 15, 20, 22, 25, 27, 29, 31, 33, 35)
    return "unhex(" + " || ".join(f"substr({sql}, {start}, 2)" for start in order) + ")"


def bytes_guid(sql: str) -> str:
    """Bytes as a uniqueidentifier."""
    shown = f"rpad(hex({sql}), 32, '0')"
    parts = [f"substr({shown}, {start}, 2)" for start in (7, 5, 3, 1)]
    parts += ["'-'", *(f"substr({shown}, {start}, 2)" for start in (11, 9)), "'-'"]
    parts += [*(f"substr({shown}, {start}, 2)" for start in (15, 13)), "'-'", f"substr({shown}, 17, 4)", "'-'"]
    return "(" + " || ".join([*parts, f"substr({shown}, 21, 12)"]) + ")"


def float_in_full(sql: str) -> str:
    """CONVERT's style 3: 17 digits, which come back to the same float (docs: CAST and CONVERT)."""
    shown = f"format('{{:.16e}}', CAST({sql} AS DOUBLE))"
    return f"regexp_replace({shown}, 'e([+-])([0-9][0-9])$', 'e\\10\\2')"


def fitted(value: bytes, target: SqlType) -> bytes:
    """Bytes in a target's length: cut on the right, and zero-padded on the right for binary(n)."""
    length = 8 if target.name == "rowversion" else target.length
    if length in (MAX, 0):
        return value
    return value[:length].ljust(length if target.name in ("binary", "rowversion") else 0, b"\x00")


def fit_binary(sql: str, source: SqlType, target: SqlType) -> str:
    """What ``fitted`` does, as SQL."""
    length = 8 if target.name == "rowversion" else target.length
    if length in (MAX, 0):
        return sql
    fixed = target.name in ("binary", "rowversion")
    if source.length == length and (source.name == "binary" or not fixed):
        return sql
    if not fixed and source.length != MAX and source.length <= length:
        return sql
    cut = f"({sql})[1:{length}]"
    if not fixed:
        return cut
    return f"({cut} || repeat('\\x00'::BLOB, {length} - octet_length({cut})))"
