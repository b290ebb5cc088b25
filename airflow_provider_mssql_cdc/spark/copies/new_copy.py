"""The first entry of a copy: where it begins, how it is cut, and what it will hold."""

from __future__ import annotations

import datetime
import logging
import secrets
from collections.abc import Callable

from airflow_provider_mssql_cdc.core.chunks import KeyPart
from airflow_provider_mssql_cdc.core.copies import CopyBegun
from airflow_provider_mssql_cdc.core.feed import FeedRef
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.spark.copies.chunks import TableScan, cut_by
from airflow_provider_mssql_cdc.spark.copies.copied_source import CopiedSource
from airflow_provider_mssql_cdc.spark.copies.copy import CopyOrder
from airflow_provider_mssql_cdc.spark.copies.room import check_room

log = logging.getLogger(__name__)


def new_copy(source: CopiedSource, order: CopyOrder, scan: TableScan, warn: Callable[[str], None]) -> CopyBegun:
    """The first entry of a copy that begins now.

    :param scan: how the table can be scanned
    :param warn: takes what people are to be told
    """
    table, state = source.table, source.state()
    low = source.copy_low(state, scan, order)
    parts, counted = scan.parts, scan.rows
    if order.changed is not None:
        # how many rows changed nobody knows yet
        parts, counted = (), 0
        log.info("%s: only the rows that changed after %s are to be read", table.name, order.changed.after)
    else:
        whole = table.selection.columns == () and not table.selection.conditions
        check_room(source.jdbc, table.name, order.place, counted, is_whole=whole)
    if not parts and counted >= source.chunk_rows:
        warn(
            f"{table.name} is copied in one chunk, which a run that is killed reads again: there is no index"
            f" that begins with {', '.join(cut_by(table))} (all of the table, not partitioned)."
        )
    if counted < min(source.chunk_rows, order.time.pace.most_rows or source.chunk_rows):
        parts = ()
    return CopyBegun(
        id=secrets.token_hex(6),
        low=low,
        witnesses=tuple(state.lineage.witnesses()),
        feed=FeedRef.of(source.feed),
        schema_hash=table.schema.hash,
        selection_hash=table.selection.hash,
        protection=table.protection,
        key=table.schema.key,
        descending=tuple(part.descending for part in parts),
        highest=source.chunks(parts, low, scan).highest() if parts else None,
        rows=counted,
        at=datetime.datetime.now(datetime.UTC),
        where=tuple(map(str, order.conditions)),
        by=cut_by_others(table),
        altered_upto=table.altered_upto,
        schema=table.schema.canonical,
        changed_after=order.changed_after,
    )


def cut_by_others(table: TableSpec) -> tuple[str, ...]:
    """The columns that copies are cut by; empty for the key's."""
    by = cut_by(table)
    return by if by != table.schema.key else ()


def parts_of(table: TableSpec, begun: CopyBegun) -> list[KeyPart]:
    """What a copy is cut by; nothing where it is one chunk."""
    if not begun.descending:
        return []
    columns = map(table.schema.column, begun.by or begun.key)
    return list(map(KeyPart, columns, begun.descending))
