"""Copies that end because all shapes that wait for them have failed for good, for longer than ``copy_keep``."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, CopyState, Failure, Told
from airflow_provider_mssql_cdc.core.copy_requests import CopyRequest
from airflow_provider_mssql_cdc.operators.copy_events import ABORTED, KIND
from airflow_provider_mssql_cdc.operators.copying import ended_with


@dataclasses.dataclass(frozen=True, slots=True)
class GivenUp:
    """A copy that ends.

    :param before: the checkpoint as it is stored
    :param after: without the copy
    """

    copy: CopyState
    before: Checkpoint
    after: Checkpoint
    event: Told


def given_up(
    checkpoint: Checkpoint | None, request: CopyRequest | None, keep: datetime.timedelta, now: datetime.datetime
) -> GivenUp | str | None:
    """A table's copy, if it ends now; a warning where half of its time is over.

    Where nobody has asked for the copy, the shapes that wait for it rest from then on until a person asks for one.

    :param request: that stands for the table's copies
    :param keep: how long all shapes of a copy may fail
    """
    copy = checkpoint.copies[0] if checkpoint is not None and checkpoint.copies else None
    failures = _failures(checkpoint, copy.shapes) if checkpoint is not None and copy is not None else {}
    if checkpoint is None or copy is None or not failures:
        return None
    # a run that went on with it may be about to mend what failed
    since = max([failure.began for failure in failures.values()] + ([copy.at] if copy.at is not None else []))
    if now - since < keep / 2:
        return None
    idle = (
        f"copy {copy.id}: all that waits for it ({', '.join(failures)}) fails since {since.isoformat(' ', 'seconds')}"
    )
    if now - since < keep:
        return f"{idle}; it ends at {(since + keep).isoformat(' ', 'seconds')} (copy_keep)"
    asked = request is not None and request.is_for_loaded(checkpoint)
    id_ = request.id if request is not None and asked else copy.id
    why = f"all that waited for it failed for longer than copy_keep, {keep}"
    extra = {"table": str(checkpoint.identity.table), "event": ABORTED, "id": copy.id, "reason": why}
    event = Told(KIND, extra | ({"request": id_} if asked else {}))
    after = dataclasses.replace(
        checkpoint,
        copies=(),
        ended_copies=ended_with(checkpoint, f"{id_} {ABORTED}: {why}"),
        untold=(*checkpoint.untold, event),
    )
    # what is loaded goes on without the columns that a copy was to fill
    for shape, failure in failures.items() if not asked and not copy.fills else ():
        reason = f"the copy with which its {shape} was to begin ended: {why}. It failed with: {failure.reason}"
        advice = "`mssql-cdc copy start` begins another one."
        after = after.failing([shape], dataclasses.replace(failure, reason=f"{reason} {advice}", stopped=True))
    return GivenUp(copy, checkpoint, after, event)


def _failures(checkpoint: Checkpoint, shapes: Iterable[str]) -> dict[str, Failure]:
    """Why all of these shapes fail; nothing where one does not, or a person has stopped it."""
    found: dict[str, Failure] = {}
    for shape in shapes:
        sink = checkpoint.sinks.get(shape)
        if sink is None or sink.failed is None or sink.failed.stopped:
            return {}
        found[shape] = sink.failed
    return found
