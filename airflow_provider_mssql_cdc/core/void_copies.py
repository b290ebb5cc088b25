"""Why a copy that was begun cannot go on."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_mssql_cdc.core.copies import ChunkRead, CopyBegun, KeptWindow, KeysRead, reached_by, witnesses_of
from airflow_provider_mssql_cdc.core.feed import Feed
from airflow_provider_mssql_cdc.core.lineage import Lineage
from airflow_provider_mssql_cdc.core.position import Position, is_gap
from airflow_provider_mssql_cdc.core.schema import ColumnFacts


def why_void(
    begun: CopyBegun,
    kept: Sequence[KeptWindow],
    read: Sequence[ChunkRead | KeysRead] = (),
    *,
    feed: Feed,
    schema_hash: str,
    selection_hash: str | None,
    key: tuple[str, ...],
    protection: str | None = None,
    where: tuple[str, ...] = (),
    by: tuple[str, ...] = (),
    altered_upto: Position | None = None,
    gone: Sequence[ColumnFacts] = (),
    changed_after: Position | None = None,
    lineage: Lineage,
    readable_from: Position | None,
) -> str | None:
    """Say why a copy cannot go on, and must begin again; None where it can.

    :param feed: that the table is read by now; so with ``schema_hash``, ``selection_hash``, ``key``, ``protection``
    :param by: the columns that a copy is to be cut by; empty for the key's
    :param where: the conditions that the rows which are wanted fulfil, as text; those of all rows, too, are enough
    :param altered_upto: where the last statement is that has changed a captured column, which may have altered values
        that a later one hides
    :param gone: what the source table has dropped since, as ``CopyBegun.dropped_since`` says
    :param changed_after: the version of Change Tracking after which changed rows are wanted; None for all rows
    :param lineage: of the source, with what became of ``witnesses_of`` the copy
    :param readable_from: of the feed
    """
    if not begun.feed.is_same(feed):
        return f"it was begun with {begun.feed.name} ({begun.feed.object_id}), and the table is read by {feed} now"
    if (begun.schema_hash != schema_hash and not gone) or begun.key != key:
        return "the captured columns or the key are others now"
    if altered_upto is not None and altered_upto > (begun.altered_upto or begun.low):
        return f"a captured column was changed at {altered_upto}"
    if begun.selection_hash != selection_hash:
        return "columns, where, rename or mask were changed"
    if begun.protection != protection:
        return "the login reads other rows, or other values, of the table now (masks, security policies)"
    if begun.by != by and begun.descending:
        return f"it is cut by {', '.join(begun.by or begun.key)}, and by {', '.join(by or key)} now (copy_by)"
    if begun.where and begun.where != where:
        return f"it reads rows where {' and '.join(begun.where)}, and others are wanted now"
    if (begun.changed_after is None) != (changed_after is None):
        return "it has all rows, or only those that changed, and now it is the other way round"
    if begun.changed_after is not None and begun.changed_after > changed_after:  # type: ignore[operator]
        return f"it has the rows that changed after {begun.changed_after}, and those after {changed_after} are wanted"
    reached = reached_by(begun, kept)
    proofs = [(witness.lsn, witness) for witness in witnesses_of(begun, kept, read)]
    for position, witness in [*proofs, (reached, None)]:
        if why := lineage.contradiction(position, witness):
            return f"{why}: the database was restored, or CDC or Change Tracking enabled anew"
        if why := lineage.tracked_anew(witness):
            return why
    if is_gap(reached, readable_from):
        return f"the changes after {reached} were purged: no run has kept them in time"
    return None
