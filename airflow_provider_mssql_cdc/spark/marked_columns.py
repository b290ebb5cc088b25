"""With which columns the sinks of a table go on, as their markers say."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from airflow_provider_mssql_cdc.core.filling import beginning, own_columns, unfilled_with
from airflow_provider_mssql_cdc.core.going_on import Followed, followed, ids_there
from airflow_provider_mssql_cdc.core.marker import Marker
from airflow_provider_mssql_cdc.core.rekeying import anew_without_checkpoint
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.spec import Chosen, TableSpec
from airflow_provider_mssql_cdc.core.table import TableSchema
from airflow_provider_mssql_cdc.spark.decide import is_asserted
from airflow_provider_mssql_cdc.spark.sink import Sink
from airflow_provider_mssql_cdc.spark.sink_columns import followed_since, noted_of


def columns_of(
    marked: Sequence[tuple[Sink, Marker]], table: TableSpec, waiting: Collection[int] = ()
) -> dict[str, Chosen]:
    """The columns of those sinks that were loaded with others than a table's, as their markers say, by shape; and with
    which those begin anew that were loaded by another key.

    What the feed no longer has so is left out.

    :param waiting: column_ids, as only markers say: the checkpoint is lost
    """
    now, whole = TableSchema(table.feed.columns, table.schema.key), Chosen(table.schema, table.selection)
    found = {}
    for sink, marker in marked:
        if not is_asserted(sink.spec, marker):
            there = ids_there(table.feed, marker.source_object_id or table.source_object_id)
            own = own_columns(
                whole, now, marker.schema_hash, sink.columns.kept, table.copy_by, widens=table.types, there=there
            )
            then = sink.columns.kept(marker.schema_hash) if own is whole and table.rekeys else None
            found[sink.shape] = own if then is None else anew_without_checkpoint(table, whole, then, waiting, there)
    return {shape: own for shape, own in found.items() if own is not whole}


def begins_with(marked: Sequence[tuple[Sink, Marker]], table: TableSpec, waiting: Collection[int]) -> dict[str, Chosen]:
    """The columns of those sinks that begin without what waits to be asked for, by shape.

    :param waiting: column_ids, as only markers of others say: the checkpoint is lost
    """
    loaded = {sink.shape for sink, _ in marked}
    begins = [sink.shape for sink in table.sinks if sink.shape not in loaded]
    whole = Chosen(table.schema, table.selection)
    own = beginning(table.name, whole, waiting) if begins else whole
    return dict.fromkeys(begins, own) if own is not whole else {}


def loaded_with(marked: Sequence[tuple[Sink, Marker]]) -> dict[str, KeptSchema]:
    """What sinks were loaded with, as far as that is kept, by shape."""
    said = [(sink, marker) for sink, marker in marked if not is_asserted(sink.spec, marker)]
    found = {sink.shape: sink.columns.kept(marker.schema_hash) for sink, marker in said}
    return {shape: schema for shape, schema in found.items() if schema is not None}


def unfilled_of(
    table: TableSpec, sink: Sink, marker: Marker, own: Chosen, were: Mapping[str, KeptSchema]
) -> tuple[str, ...]:
    """The target columns of which a sink lacks the values of before, or whose values its source has altered since.

    :param own: the columns with which it goes on
    :param were: what sinks were loaded with, by shape
    """
    types: dict[str, Followed] = {}
    if table.widens and sink.shape in were:
        types = followed_since(table, sink.spec, marker, followed(were[sink.shape], own.schema), own.schema)
    return unfilled_with((*marker.unfilled, *noted_of(sink.spec, marker)), types, own)
