"""ALTER COLUMN on a change table: the rows captured so far take the new type, or the capture stops."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mssql_cdc.sandbox.engine.cdc.errors import error
from airflow_provider_mssql_cdc.sandbox.engine.cdc.instance import CapturedColumn
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType

_CHARACTERS = ("char", "varchar", "nchar", "nvarchar", "text", "ntext", "xml")
_BYTES = ("binary", "varbinary", "image")
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal", "money", "smallmoney", "real", "float")
_FRACTIONS = ("time", "datetime2", "datetimeoffset")


def converted(capture_instance: str, before: CapturedColumn, after: CapturedColumn) -> Callable[[pa.Array], pa.Array]:
    """How the values of a captured column take another type.

    :returns: a function that raises SqlError 22976 where a value does not fit or the change is not simulated
    """

    def convert(values: pa.Array) -> pa.Array:
        try:
            return _converted(values, before.type, after.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as reason:
            raise error(22976, before.name, capture_instance, after.type.name, reason) from reason

    return convert


def _converted(values: pa.Array, before: SqlType, after: SqlType) -> pa.Array:
    if before.name in _NUMBERS and after.name in _NUMBERS:
        if pa.types.is_decimal(after.arrow) and pa.types.is_integer(values.type):
            # Arrow asks for room for every int64 unless the values come as decimals already.
            values = values.cast(pa.decimal128(38, after.scale))
        return values.cast(after.arrow)
    if before.name in _CHARACTERS and after.name in _CHARACTERS:
        _check_length(values, after, _code_units)
        return pc.utf8_rpad(values, after.length, " ") if after.name in ("char", "nchar") else values
    if before.name in _BYTES and after.name in _BYTES:
        _check_length(values, after, len)
        if after.name == "binary":
            padded = [None if each is None else each.ljust(after.length, b"\0") for each in values.to_pylist()]
            return pa.array(padded, after.arrow)
        return values
    if before.name == after.name and before.name in _FRACTIONS and before.scale <= after.scale:
        return values
    raise ValueError(f"the sandbox does not convert {before.name} to {after.name}")


def _code_units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _check_length(values: pa.Array, target: SqlType, length: Callable[..., int]) -> None:
    if target.length in (0, MAX):
        return
    longest = max((length(each) for each in values.to_pylist() if each is not None), default=0)
    if longest > target.length:
        raise ValueError(f"a captured value has length {longest}, the new type holds {target.length}")
