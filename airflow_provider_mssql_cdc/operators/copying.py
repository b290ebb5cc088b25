"""What a run tells of a copy that the next one goes on with."""

from __future__ import annotations

import socket

from airflow_provider_mssql_cdc.core.checkpoint import CopyState
from airflow_provider_mssql_cdc.core.spec import CopyingReceipt, TableReceipt
from airflow_provider_mssql_cdc.operators.job_files import is_local


def copies_of(table: TableReceipt, path: str | None) -> tuple[CopyState, ...]:
    """The copy that the next run goes on with, as the checkpoint tells of it."""
    if (copying := table.copying) is None:
        return ()
    host = socket.gethostname() if path is not None and is_local(path) else None
    return (CopyState(copying.id, path or "", host, "IN_PROGRESS", copying.position, copying.low, copying.chunks),)


def how_far(copying: CopyingReceipt) -> str:
    """How far a copy is, for people."""
    done = f"copy {copying.id}: {copying.rows:,} rows in {copying.chunks} chunks"
    if copying.waits_for is None:
        return f"{done} are read, the next run goes on; changes are kept up to {copying.position}"
    return f"{done} are all read; {copying.waits_for}"
