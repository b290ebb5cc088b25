"""Values as DuckDB SQL literals, in the form that the storage gives each type."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

from airflow_provider_mssql_cdc.sandbox.tsql.typing import duck, kind
from airflow_provider_mssql_cdc.sandbox.types import SqlType


def text(value: str) -> str:
    """A string as a DuckDB literal; NUL characters, which a literal cannot hold, by chr()."""
    if "\x00" in value:
        return "(" + " || chr(0) || ".join(text(part) for part in value.split("\x00")) + ")"
    return "'" + value.replace("'", "''") + "'"


def blob(value: bytes) -> str:
    """Bytes as a DuckDB literal."""
    if len(value) > 64:
        return f"unhex('{value.hex()}')"
    return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"


def literal(value: Any, type_: SqlType) -> str:
    """A value in its Arrow form (see ``sandbox.types``) as a DuckDB literal of the type's storage form."""
    storage = duck(type_)
    if value is None:
        return f"CAST(NULL AS {storage})"
    if kind(type_) == "str" or type_.name == "uniqueidentifier":
        return text(value)
    if kind(type_) == "bin":
        return blob(bytes(value))
    if type_.name == "bit":
        return "TRUE" if value else "FALSE"
    if type_.name == "datetimeoffset":
        if isinstance(value, dict):
            value = (value["utc_ticks"], value["offset_minutes"])
        return f"struct_pack(utc_ticks := CAST({value[0]} AS BIGINT), offset_minutes := CAST({value[1]} AS SMALLINT))"
    if isinstance(value, datetime.datetime):
        return f"CAST('{value.isoformat(' ')}' AS {storage})"
    if isinstance(value, datetime.date):
        return f"CAST('{value.isoformat()}' AS {storage})"
    return (
        f"CAST({value} AS {storage})"
        if isinstance(value, int)
        # a number with 38 digits after the point is read as a float unless it is quoted
        else f"CAST('{value if isinstance(value, float) else format(value, 'f')}' AS {storage})"
    )


def literal_of(value: Any, type_: SqlType) -> str:
    """The same of a value that may be a float where its type is a decimal one."""
    if isinstance(value, float) and kind(type_) == "dec":
        value = Decimal(repr(value))
    return literal(value, type_)
