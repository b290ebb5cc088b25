"""Copies that take several runs: what one tells of them, and the next one hears."""

from __future__ import annotations

import dataclasses
import datetime
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

from croniter import croniter

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, CopyState
from airflow_provider_mssql_cdc.core.copy_requests import CopyRequest
from airflow_provider_mssql_cdc.core.copy_wanted import STOP, AskedCopy, KnownCopy
from airflow_provider_mssql_cdc.core.receipt import CopyingReceipt, TableReceipt
from airflow_provider_mssql_cdc.hooks.parameters import AUTO, seconds
from airflow_provider_mssql_cdc.operators.copy_events import IN_PROGRESS, PAUSED
from airflow_provider_mssql_cdc.operators.job_files import is_local

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context


_ENDED_KEPT = 8
"""Of so many copies a checkpoint tells how they ended."""


def seconds_of_run(given: datetime.timedelta | float | str | None, context: Context) -> float | None:
    """The run's time for copies.

    :param given: None for no end; ``"auto"`` for half of the schedule's interval, 1 to 10 minutes
    """
    if given != AUTO:
        return seconds(given)  # type: ignore[arg-type]
    interval = _interval(context)
    return None if interval is None else min(max(interval.total_seconds() / 2, 60.0), 600.0)


def _interval(context: Context) -> datetime.timedelta | None:
    """From one run to the next, as the schedule says; None where it names no times.

    The data interval is none where the schedule makes none, as cron expressions and timedeltas do by default.
    """
    schedule = getattr(context.get("dag"), "schedule", None)
    if isinstance(schedule, datetime.timedelta):
        return schedule
    if isinstance(schedule, str) and croniter.is_valid(schedule):
        begin = context.get("logical_date") or datetime.datetime.now(datetime.UTC)
        first: datetime.datetime = croniter(schedule, begin).get_next(datetime.datetime)
        second: datetime.datetime = croniter(schedule, first).get_next(datetime.datetime)
        return second - first
    start, end = context.get("data_interval_start"), context.get("data_interval_end")
    return end - start if start is not None and end is not None and end > start else None


def copies_of(
    table: TableReceipt, path: str | None, stored: Sequence[CopyState] = (), *, keeps: bool = False
) -> tuple[CopyState, ...]:
    """The copy that the next run goes on with, as the checkpoint tells of it.

    :param path: where the table's copies lie
    :param stored: of the checkpoint before: they stay until the shapes that wait for them are loaded
    :param keeps: a person asks for them, of shapes that are loaded: they stay until that has ended
    """
    if (copying := table.copying) is None:
        done = {sink.shape for sink in table.sinks if sink.after is not None}
        return tuple(copy for copy in stored if keeps or copy.fills or not done.issuperset(copy.shapes))
    now = datetime.datetime.now(datetime.UTC)
    before = next((copy for copy in stored if copy.id == copying.id and copy.state == PAUSED), None)
    host = socket.gethostname() if path is not None and is_local(path) else None
    state = CopyState(
        id=copying.id,
        place=f"{path}{copying.suffix}" if path else "",
        host=host,
        state=PAUSED if copying.paused else IN_PROGRESS,
        position=copying.position,
        low=copying.low,
        chunks=copying.chunks,
        shapes=copying.shapes,
        waits_after=copying.waits_after,
        rows=copying.rows,
        expected=copying.expected,
        begun_at=copying.begun_at,
        at=now,
        paused_since=((before and before.paused_since) or now) if copying.paused else None,
        last=copying.last,
        highest=copying.highest,
        fills=copying.fills,
    )
    # what fills columns, and what copies whole rows, are not each other's
    others = (copy for copy in stored if bool(copy.fills) != bool(state.fills))
    return (state, *others)


def ended_with(stored: Checkpoint, ended: str) -> tuple[str, ...]:
    """How the newest copies of a table ended, this one among them.

    :param ended: its id, and how
    """
    others = [each for each in stored.ended_copies if each.partition(" ")[0] != ended.partition(" ")[0]]
    return (*others[1 - _ENDED_KEPT :], ended)


def known_copy(checkpoint: Checkpoint | None) -> KnownCopy | None:
    """The copy that a checkpoint knows."""
    copies = checkpoint.copies if checkpoint is not None else ()
    whole_first = sorted(copies, key=lambda copy: bool(copy.fills))
    return next((KnownCopy(c.id, c.place, c.host, c.left, bool(c.fills)) for c in whole_first), None)


def asked_now(
    request: CopyRequest | None, checkpoint: Checkpoint | None, keep: datetime.timedelta
) -> tuple[AskedCopy | None, str | None]:
    """What the job is told of a copy that a person asks for, and a warning where it is paused for long.

    :param keep: how long a copy may be paused
    """
    if request is None:
        return None, None
    now = datetime.datetime.now(datetime.UTC)
    copies = checkpoint.copies if checkpoint is not None else ()
    since = copies[0].paused_since if copies and request.is_paused else None
    if since is not None and request.at is not None:
        # it may have been resumed and paused again without a run between
        since = max(since, request.at)
    if since is None or now - since < keep / 2:
        return request.asked, None
    paused = f"copy {request.id} is paused since {since.isoformat(' ', 'seconds')}"
    if now - since < keep:
        return request.asked, f"{paused}; it ends at {(since + keep).isoformat(' ', 'seconds')} (copy_keep)"
    why = f"it was paused for longer than copy_keep, {keep}"
    return dataclasses.replace(request.asked, wanted=STOP, reason=why), f"{paused}, and ends: {why}"


def how_far(copying: CopyingReceipt) -> str:
    """How far a copy is, for people."""
    fills = f", which fills {', '.join(copying.fills)}" if copying.fills else ""
    done = f"copy {copying.id}{fills}: {copying.rows:,} rows in {copying.chunks} chunks"
    if copying.paused:
        return f"{done} are read, and it is paused; changes are kept up to {copying.position}"
    if copying.waits_for is None:
        return f"{done} are read, the next run goes on; changes are kept up to {copying.position}"
    return f"{done} are all read; {copying.waits_for}"
