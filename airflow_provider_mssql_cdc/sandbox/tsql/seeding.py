"""Arrow values on their way into a table: they are stored as those of an INSERT are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mssql_cdc.sandbox.engine.schema import TableDef
from airflow_provider_mssql_cdc.sandbox.tsql.assignment import assign
from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr
from airflow_provider_mssql_cdc.sandbox.tsql.typing import kind
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType, in_ticks

_FINEST = {"datetime": "datetime2", "smalldatetime": "datetime2"}


def stored(env: Environment, table: TableDef, place: str, given: Mapping[int, Any]) -> dict[int, Any]:
    """The values of columns as the table holds them: rounded, padded, in its code page.

    :param place: the table's full name, for error messages
    :param given: Arrow values by column_id
    :raises SqlError: 2628, 8169, 242 and whatever an INSERT of the values raises
    :raises pyarrow.ArrowInvalid: for values that Arrow cannot cast
    """
    columns = [column for column in table.columns if column.column_id in given]
    sources = [_given_as(column.type) for column in columns]
    names = [f"c{column.column_id}" for column in columns]
    values = {
        name: in_ticks(source, given[column.column_id]).cast(source.arrow)
        for name, column, source in zip(names, columns, sources, strict=True)
    }
    items = [
        f"{assign(Expr(name, source), column, place)} AS {name}"
        for name, column, source in zip(names, columns, sources, strict=True)
        if source != column.type and not _is_stored_as_it_is(column.type, values[name])
    ]
    if items:
        converted = env.fetch(f"SELECT {', '.join(items)} FROM {env.register(pa.table(values))}")
        values |= {name: converted.column(name) for name in converted.column_names}
    return {column.column_id: values[name] for name, column in zip(names, columns, strict=True)}


def _is_stored_as_it_is(target: SqlType, values: Any) -> bool:
    """Whether texts need no conversion, which is quick to see and takes most of the time otherwise."""
    if target.name not in ("varchar", "nvarchar"):
        return False
    longest = pc.max(pc.binary_length(values)).as_py() or 0
    ascii_ = target.name == "nvarchar" or pc.all(pc.string_is_ascii(values)).as_py() is not False
    return bool(ascii_ and (target.length == MAX or longest <= target.length))


def _given_as(target: SqlType) -> SqlType:
    """The type that Arrow values for a column have: its own, or one that holds more."""
    if (kind(target) == "str" and target.name != "xml") or target.name == "uniqueidentifier":
        return SqlType("nvarchar", MAX)
    if kind(target) == "bin" and target.name != "image":
        return SqlType("varbinary", MAX)
    if kind(target) == "time" and target.name != "date":
        return SqlType(_FINEST.get(target.name, target.name), 0, 0, 7)
    return target
