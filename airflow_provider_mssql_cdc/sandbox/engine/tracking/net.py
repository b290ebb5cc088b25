"""Net changes of a tracked table, and the versions of its rows, as DuckDB queries over its side table."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_mssql_cdc.sandbox.collations import comparing
from airflow_provider_mssql_cdc.sandbox.engine.schema import ColumnDef, TableDef
from airflow_provider_mssql_cdc.sandbox.engine.tracking.state import TrackedTable
from airflow_provider_mssql_cdc.sandbox.tsql.typing import kind

_MASK = (
    "unhex('00000000' || list_aggregate(list_transform(list_sort(list_distinct(flatten(list(cols)))), lambda i: "
    "printf('%02X%02X%02X%02X', i & 255, (i >> 8) & 255, (i >> 16) & 255, (i >> 24) & 255)), 'string_agg', ''))"
)
"""Four zero bytes and the column ids as little-endian int32 (measured)."""


def key_columns(tracked: TrackedTable, table: TableDef) -> list[ColumnDef]:
    """The columns of the primary key, in its order, by their names of now."""
    known = {column.column_id: column for column in table.columns}
    return [known[number] for number in tracked.key]


def same(sql: str, column: ColumnDef) -> str:
    """DuckDB text that is equal where two values are the same key."""
    if kind(column.type) == "str":
        return comparing.equal(sql, column.type)
    if column.type.name == "datetimeoffset":
        return f"({sql}).utc_ticks"
    return f"t_binkey({sql})" if column.type.name == "varbinary" else sql


def _in_order(sql: str, column: ColumnDef) -> str:
    if kind(column.type) == "str":
        return comparing.ordered(sql, column.type)
    return f"t_guidkey({sql})" if column.type.name == "uniqueidentifier" else sql


def changes(source: str, tracked: TrackedTable, table: TableDef, after: str, *, newest_spelling: bool) -> str:
    """One row for each key that changed: version, creation, op, mask, context, and the key's columns.

    :param source: the side table in DuckDB
    :param after: the version, as DuckDB takes it; '' for everything
    :param newest_spelling: of a key that changed to an equal text
    """
    keys = key_columns(tracked, table)
    spelled = "arg_max" if newest_spelling else "arg_min"
    shown = ", ".join(f"{spelled}(c{column.column_id}, n) AS c{column.column_id}" for column in keys)
    groups = ", ".join(same(f"c{column.column_id}", column) for column in keys)
    order = ", ".join(_in_order(f"c{column.column_id}", column) for column in keys)
    where = f" WHERE version > {after}" if after else ""
    return (
        "(SELECT * FROM (SELECT max(version) AS version, max(CASE WHEN op = 'I' THEN version END) AS creation, "
        "CASE WHEN arg_max(op, n) = 'D' THEN 'D' WHEN arg_min(op, n) = 'I' THEN 'I' ELSE 'U' END AS op, "
        f"CASE WHEN bool_and(cols IS NOT NULL) THEN {_MASK} END AS mask, "
        f"arg_max(struct_pack(c := context), n).c AS context, {shown} FROM {source}{where} GROUP BY {groups}) "
        f"ORDER BY {order})"
    )


def versions(source: str, base: str, tracked: TrackedTable, table: TableDef, conditions: Sequence[str]) -> str:
    """One row for each row of the table that fulfils the conditions: version, context, and the key's columns.

    :param source: the side table in DuckDB
    :param base: the table in DuckDB
    :param conditions: over ``b``, the table
    """
    keys = key_columns(tracked, table)
    grouped = ", ".join(f"{same(f'c{column.column_id}', column)} AS g{column.column_id}" for column in keys)
    groups = ", ".join(f"g{column.column_id}" for column in keys)
    joined = " AND ".join(f"{same(f'b.c{column.column_id}', column)} = v.g{column.column_id}" for column in keys)
    shown = ", ".join(f"b.c{column.column_id}" for column in keys)
    return (
        f"(SELECT v.version, v.context, {shown} FROM {base} AS b LEFT JOIN (SELECT max(version) AS version, "
        f"arg_max(struct_pack(c := context), n).c AS context, {grouped} FROM {source} GROUP BY {groups}) AS v "
        f"ON {joined} WHERE {' AND '.join(conditions)})"
    )
