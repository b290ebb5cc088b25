"""What a run's copies went through, as events for summary, log and the operations asset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, CopyState, Told
from airflow_provider_mssql_cdc.core.receipt import CopyingReceipt, TableReceipt
from airflow_provider_mssql_cdc.core.spec import TableSpec

KIND = "copy"

STARTED, IN_PROGRESS, PAUSED, RESUMED = "STARTED", "IN_PROGRESS", "PAUSED", "RESUMED"
TABLE_SCAN_COMPLETED, COMPLETED, ABORTED = "TABLE_SCAN_COMPLETED", "COMPLETED", "ABORTED"


def copy_events(stored: Checkpoint | None, spec: TableSpec, table: TableReceipt) -> tuple[Told, ...]:
    """What the copy of a table went through in a run, in order.

    :param stored: the checkpoint before the run
    :param spec: of the run
    """
    copies = stored.copies if stored is not None else ()
    if (copying := table.copying) is not None:
        copies = tuple(copy for copy in copies if bool(copy.fills) == bool(copying.fills))
    elif table.ended_copy is not None:
        ended = table.ended_copy.partition(" ")[0]
        copies = tuple(copy for copy in copies if copy.id == ended or not copy.fills)
    before = copies[0] if copies else None
    return tuple(Told(KIND, {"table": str(table.name), **extra}) for extra in _events(before, spec, table))


def all_untold(earlier: tuple[Told, ...], new: tuple[Told, ...]) -> tuple[Told, ...]:
    """All events that are to be told; of one copy the newest alone of those that say how far it is."""
    found = [*earlier, *new]
    newest = {event.extra.get("id"): event for event in found if event.extra.get("event") == IN_PROGRESS}
    return tuple(
        event for event in found if event.extra.get("event") != IN_PROGRESS or newest[event.extra.get("id")] is event
    )


def said(event: Told) -> str:
    """An event for people."""
    extra = event.extra
    rows = f", {extra['rows']:,} rows" if extra.get("rows") else ""
    keys = f", up to key {extra['last']} of {extra['highest']}" if extra.get("last") else ""
    reason = f": {extra['reason']}" if extra.get("reason") else ""
    return f"{extra['table']} copy {extra['id']}: {extra['event']}{rows}{keys}{reason}"


def _events(before: CopyState | None, spec: TableSpec, table: TableReceipt) -> Iterator[dict[str, Any]]:
    asked = spec.asked.id if spec.asked is not None and spec.asked.of_loaded else None
    request = {} if asked is None else {"request": asked}
    if (copying := table.copying) is not None:
        yield from _of_one_that_goes_on(before, copying, request)
        return
    if table.ended_copy is not None:
        ended, _, how = table.ended_copy.partition(" ")
        id_ = before.id if before is not None else ended
        if how == COMPLETED:
            yield from _of_one_at_its_end(before, id_, table, request, ends=True)
        else:
            yield {"event": ABORTED, "id": id_, **request, "reason": how.removeprefix(f"{ABORTED}: ")}
        return
    begins = ("first_load", "healed")
    begun = [sink for sink in table.sinks if sink.outcome in begins and sink.after and sink.after.copies]
    if begun:
        assert begun[0].after is not None
        # a shape that failed begins with the same copy in a later run
        done = {sink.shape for sink in table.sinks}
        ends = all(sink.shape in done for sink in spec.sinks if sink.expects is None or sink.rekeyed)
        shapes = {"shapes": [sink.shape for sink in begun]}
        yield from _of_one_at_its_end(before, begun[0].after.copies[0], table, shapes, ends=ends)


def _of_one_that_goes_on(
    before: CopyState | None, copying: CopyingReceipt, request: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    same = before is not None and before.id == copying.id
    was_paused = same and before is not None and before.state == PAUSED
    far = {
        "id": copying.id,
        **request,
        "shapes": list(copying.shapes),
        **({"fills": list(copying.fills)} if copying.fills else {}),
        "chunks": copying.chunks,
        "rows": copying.rows,
        "expected": copying.expected,
        "last": copying.last,
        "highest": copying.highest,
    }
    if not same:
        if before is not None:
            yield {"event": ABORTED, "id": before.id, **request, "reason": "another one begins in its place"}
        yield {"event": STARTED, **far}
    if copying.paused:
        if not was_paused:
            yield {"event": PAUSED, **far}
        return
    if was_paused:
        yield {"event": RESUMED, **far}
    if copying.waits_for is None:
        yield {"event": IN_PROGRESS, **far}
    elif not same or before is None or before.waits_after is None:
        yield {"event": TABLE_SCAN_COMPLETED, **far}


def _of_one_at_its_end(
    before: CopyState | None, id_: str, table: TableReceipt, more: Mapping[str, Any], *, ends: bool
) -> Iterator[dict[str, Any]]:
    total = {"id": id_, **more, "rows": table.counts.get("copied", 0)}
    if before is None:
        yield {"event": STARTED, "id": id_, **more}
    elif before.state == PAUSED:
        yield {"event": RESUMED, "id": id_, **more}
    if before is None or before.waits_after is None:
        yield {"event": TABLE_SCAN_COMPLETED, **total}
    if ends:
        yield {"event": COMPLETED, **total}
