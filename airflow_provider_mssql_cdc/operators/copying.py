"""Copies that take several runs: what one tells of them, and the next one hears."""

from __future__ import annotations

import datetime
import socket
from typing import TYPE_CHECKING

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, CopyState
from airflow_provider_mssql_cdc.core.spec import CopyingReceipt, KnownCopy, TableReceipt
from airflow_provider_mssql_cdc.hooks.parameters import AUTO, seconds
from airflow_provider_mssql_cdc.operators.job_files import is_local

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context


def seconds_of_run(given: datetime.timedelta | float | str | None, context: Context) -> float | None:
    """The run's time for copies.

    :param given: None for no end; ``"auto"`` for half of the run's data interval, 1 to 10 minutes
    """
    if given != AUTO:
        return seconds(given)  # type: ignore[arg-type]
    start, end = context.get("data_interval_start"), context.get("data_interval_end")
    if start is None or end is None or end <= start:
        return None
    return float(min(max((end - start).total_seconds() / 2, 60.0), 600.0))


def copies_of(table: TableReceipt, path: str | None) -> tuple[CopyState, ...]:
    """The copy that the next run goes on with, as the checkpoint tells of it."""
    if (copying := table.copying) is None:
        return ()
    host = socket.gethostname() if path is not None and is_local(path) else None
    return (CopyState(copying.id, path or "", host, "IN_PROGRESS", copying.position, copying.low, copying.chunks),)


def known_copy(checkpoint: Checkpoint | None) -> KnownCopy | None:
    """The copy that a checkpoint knows."""
    copies = checkpoint.copies if checkpoint is not None else ()
    return next((KnownCopy(copy.id, copy.place, copy.host) for copy in copies), None)


def how_far(copying: CopyingReceipt) -> str:
    """How far a copy is, for people."""
    done = f"copy {copying.id}: {copying.rows:,} rows in {copying.chunks} chunks"
    if copying.waits_for is None:
        return f"{done} are read, the next run goes on; changes are kept up to {copying.position}"
    return f"{done} are all read; {copying.waits_for}"
