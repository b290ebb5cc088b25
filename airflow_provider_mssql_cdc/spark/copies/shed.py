"""A copy that goes on without the columns which the source table has dropped since it was begun."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Sequence
from itertools import combinations
from typing import TypeVar

from airflow_provider_mssql_cdc.core.columns import map_columns
from airflow_provider_mssql_cdc.core.copies import ChunkRead, CommonRead, CopyBegun, KeptWindow, KeysRead
from airflow_provider_mssql_cdc.core.going_on import column_of, ids_there
from airflow_provider_mssql_cdc.core.schema import ColumnFacts, KeptSchema
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.core.table import TableSchema
from airflow_provider_mssql_cdc.spark.copies.folder import Found

Entry = TypeVar("Entry", ChunkRead, CommonRead, KeptWindow, KeysRead)


def dropped_since(table: TableSpec, begun: CopyBegun) -> tuple[ColumnFacts, ...]:
    """The columns that the source table has dropped since its copy was begun, where nothing else has changed."""
    there = ids_there(table.feed, table.feed.source_object_id) or ()
    return begun.dropped_since(KeptSchema.of(table.schema), there)


def loaded_of(table: TableSpec, begun: CopyBegun, gone: Sequence[ColumnFacts]) -> tuple[ColumnFacts, ...] | None:
    """Those of the columns that the source table has dropped which the copy was begun with; None where it was begun
    with another selection.

    :param gone: what the source table has dropped since
    """
    now = table.selection
    if begun.selection_hash == now.hash:
        # one of all columns had them all
        return () if now.columns else tuple(gone)
    then = KeptSchema(begun.schema).columns
    held = now.columns or tuple(column.name for column in then if column not in gone)
    for number in range(len(gone) + 1):
        for some in combinations(gone, number):
            names = {*held, *(column.name for column in some)}
            columns = tuple(column.name for column in then if column.name in names)
            if dataclasses.replace(now, columns=columns).hash == begun.selection_hash:
                return some
    return None


def target_names(table: TableSpec, gone: Sequence[ColumnFacts]) -> tuple[str, ...]:
    """What targets would have called columns that the source table has dropped.

    :param gone: these
    """
    schema = TableSchema(tuple(column_of(facts, number) for number, facts in enumerate(gone, 1)), ())
    mappings = map_columns(table.name, schema, dataclasses.replace(table.selection, columns=()))
    return tuple(target.name for mapping in mappings for target in mapping.targets)


def without(found: Found, names: Collection[str]) -> Found:
    """What lies in a copy's folder, with entries that do not name some columns: they are not read from the files.

    :param names: of these, as targets have them
    """
    if not names:
        return found

    def narrow(entry: Entry) -> Entry:
        said = json.loads(entry.columns)
        fields = [field for field in said["fields"] if field["name"] not in names]
        return dataclasses.replace(entry, columns=json.dumps({**said, "fields": fields}))

    return Found(
        found.begun,
        tuple(map(narrow, found.chunks)),
        tuple(map(narrow, found.kept)),
        tuple(map(narrow, found.again)),
        tuple(map(narrow, found.common)),
    )
