"""Divides what changed in a tracked table by its key, so that several connections read it."""

from __future__ import annotations

from airflow_provider_mssql_cdc.core.chunks import KeyPart, can_be_cut, chunk, order
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc


def slices_of(jdbc: Jdbc, table: TableSpec, after: Position, *, rows: int, most: int) -> list[str]:
    """The conditions on the key by which what changed is read, each by a connection; one of '' where it is not divided.

    By key, since all changes may have one version.

    :param rows: changed keys below which nothing is divided
    :param most: connections
    """
    key = [table.schema.column(name) for name in table.schema.key]
    if most < 2 or not can_be_cut(key):
        return [""]
    changed = f"CHANGETABLE(CHANGES {table.name.quoted}, {after.sort_key}) AS ct"
    number = jdbc.rows(f"SELECT COUNT_BIG(*) AS n FROM {changed}", "n BIGINT")[0]["n"]
    count = min(most, -(-number // rows))
    if count < 2:
        return [""]
    parts = [KeyPart(column) for column in key]
    texts = ", ".join(f"{part.as_text} AS b{n}" for n, part in enumerate(parts))
    ends = ", ".join(str(number * each // count) for each in range(1, count))
    numbered = f"SELECT {texts}, ROW_NUMBER() OVER (ORDER BY {order(parts)}) AS place FROM {changed}"
    names = ", ".join(f"b{n}" for n in range(len(parts)))
    schema = ", ".join([*(f"b{n} STRING" for n in range(len(parts))), "place BIGINT"])
    found = jdbc.rows(f"SELECT {names}, place FROM ({numbered}) AS s WHERE place IN ({ends})", schema)
    bounds = [tuple(row[f"b{n}"] for n in range(len(parts))) for row in sorted(found, key=lambda row: row["place"])]
    return [chunk(parts, one, other) for one, other in zip([None, *bounds], [*bounds, None], strict=True)]
