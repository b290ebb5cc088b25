"""Finds out which sinks of a table have the same columns, so that each goes on with its own."""

from __future__ import annotations

import dataclasses

from airflow_provider_mssql_cdc.core.filling import (
    copied_in,
    going_on,
    suffix_of,
    with_all,
)
from airflow_provider_mssql_cdc.core.going_on import chosen_before, held_as
from airflow_provider_mssql_cdc.core.rekeying import by_loaded_key, has_other_key
from airflow_provider_mssql_cdc.core.shapes import SHAPES
from airflow_provider_mssql_cdc.core.spec import Chosen, JobSpec, SinkSpec, TableSpec
from airflow_provider_mssql_cdc.core.waiting import known_waiting
from airflow_provider_mssql_cdc.spark.dropping import shrunk
from airflow_provider_mssql_cdc.spark.filling import PartedLoad
from airflow_provider_mssql_cdc.spark.load import TableLoad
from airflow_provider_mssql_cdc.spark.marked_columns import begins_with, columns_of, loaded_with, unfilled_of
from airflow_provider_mssql_cdc.spark.parts import Parts


def parted(load: TableLoad, job: JobSpec, table: TableSpec, parts: Parts) -> TableLoad | PartedLoad:
    """The load of a table each of whose sinks goes on with the columns that its marker names.

    :param load: of all of them, with the table's columns
    """
    planned, marked = table.schema, load.marked()
    if (by_loaded := by_loaded_key(table, loaded_with(marked).values())) != table:
        table = by_loaded
        load = TableLoad(job, table, parts)
        marked = load.marked()
    small = shrunk(job, table, parts, marked, load.staging_path)
    if small.table is not table:
        table = small.table
        load = TableLoad(job, table, parts)
        marked = load.marked()
    whole = Chosen(table.schema, table.selection)
    were = loaded_with(marked)
    loaded = [*were.values()]
    there = {column.column_id for column in (*table.feed.columns, *table.feed.others)}
    waiting = known_waiting(table, [marker for _, marker in marked], loaded, there)
    loaded_ids = {column.column_id for schema in loaded for column in schema.columns}
    by_markers = {*waiting, *(table.unnamed_ids if loaded else ())}.difference(table.waiting_ids, loaded_ids)
    owns = columns_of(marked, table, by_markers) | small.left
    schema = held_as(table.schema, [own.schema for own in owns.values()])
    if schema != table.schema:
        # a commit that no checkpoint knows has followed a type that has changed again since
        table = dataclasses.replace(table, schema=schema)
        whole, owns = Chosen(schema, table.selection), columns_of(marked, table, by_markers) | small.left
    owns |= begins_with(marked, table, by_markers)
    table = dataclasses.replace(table, waiting_ids=waiting)
    ids = {column.column_id for column in table.schema.columns}
    grows: dict[str, Chosen] = {}
    groups: dict[str, tuple[Chosen, list[SinkSpec]]] = {whole.schema.hash: (whole, [])}
    for sink in table.sinks:
        own = owns.get(sink.shape, whole)
        # one that begins has no columns yet that could grow
        grown = own is not whole and sink.shape in were and table.grows
        grown = grown and not has_other_key(were[sink.shape], own.schema)
        takes = grown and (table.leaves_null or SHAPES[sink.shape].only_adds)
        if takes and {column.column_id for column in own.schema.columns} <= ids:
            # its marker names them with the types and names of before
            grows[sink.shape] = chosen_before(own, were[sink.shape])
            own = whole
        groups.setdefault(own.schema.hash, (own, []))[1].append(sink)
    if (
        not owns
        and schema == planned
        and not (table.fills and any(unfilled_of(table, sink, marker, whole, were) for sink, marker in marked))
    ):
        load = load if load.table == table else TableLoad(job, table, parts)
        load.notes.failed |= small.notes.failed
        for text in small.notes.warnings:
            load.notes.warn(text)
        load.notes.waiting_ids = waiting
        return load
    loads = {}
    # a copy that is under way is one of the columns that the plan knows
    has_plans = any(own.schema.hash == planned.hash for own in small.left.values())
    first = planned.hash if has_plans else whole.schema.hash
    for hash_, (own, sinks) in groups.items():
        spec = with_all(table, tuple(sinks), grows) if own is whole else going_on(table, own, tuple(sinks))
        suffix = "" if hash_ == first else suffix_of(own)
        loads[suffix] = TableLoad(job, copied_in(spec, table, suffix), parts)
    loads = {suffix: each for suffix, each in loads.items() if each.sinks}
    return PartedLoad(job, table, loads, owns, parts, planned.hash, small)
