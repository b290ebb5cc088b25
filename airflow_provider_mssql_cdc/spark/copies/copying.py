"""How far a copy is that the next run goes on with."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_mssql_cdc.core.chunks import KeyPart, shown
from airflow_provider_mssql_cdc.core.copies import ChunkRead, CopyBegun, ReadEnd
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.receipt import CopyingReceipt
from airflow_provider_mssql_cdc.core.selection import Selection


def copying(
    begun: CopyBegun,
    reached: Position,
    used: Sequence[ChunkRead],
    ends: Sequence[ReadEnd],
    parts: Sequence[KeyPart],
    *,
    waits: bool,
) -> CopyingReceipt:
    """How far a copy is; the shapes that wait for it are not known here.

    :param reached: up to here the changes of meanwhile are kept
    :param used: the chunks that count
    :param ends: of its reads, where the capture must pass them
    :param parts: by which it is cut; empty where keys are not to be told
    :param waits: it goes on once the capture has passed what was seen with the newest end
    """
    newest = next((chunk.last for chunk in reversed(used) if chunk.last is not None), None)
    seen = [end.end.max_lsn for end in ends if end.end.max_lsn is not None]
    return CopyingReceipt(
        id=begun.id,
        shapes=(),
        low=begun.low,
        position=reached,
        chunks=len(used),
        rows=sum(chunk.rows for chunk in used),
        waits_after=max(seen, default=None) if waits else None,
        expected=begun.rows,
        begun_at=begun.at,
        last=shown(parts, newest) if parts else None,
        highest=shown(parts, begun.highest) if parts else None,
    )


def hides_bounds(begun: CopyBegun, selection: Selection) -> bool:
    """Whether the keys between chunks may be ones that nobody is to read: masked, or of rows that are left out."""
    by = begun.by or begun.key
    return bool(selection.conditions) or any(c in selection.masks or not selection.holds(c) for c in by)
