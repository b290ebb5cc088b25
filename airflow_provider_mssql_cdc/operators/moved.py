"""The checkpoint of a table as it stands after a job."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, SinkState
from airflow_provider_mssql_cdc.core.position import Lsn, Position
from airflow_provider_mssql_cdc.core.receipt import SinkReceipt, TableReceipt
from airflow_provider_mssql_cdc.core.schema_changes import unwritten
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.core.standing import loaded_from
from airflow_provider_mssql_cdc.core.table import hash_of
from airflow_provider_mssql_cdc.operators.copying import copies_of, ended_with
from airflow_provider_mssql_cdc.operators.finding import RunPlan


def applied_by(checkpoint: Checkpoint, shapes: Iterable[str]) -> Position | None:
    """The position that all these sinks have reached; None while one of them is not loaded."""
    # what waits for a copy keeps nobody from hearing of the others
    copying = {shape for copy in checkpoint.copies for shape in copy.shapes if shape not in checkpoint.loaded}
    counting = [shape for shape in shapes if shape not in copying]
    applied = [sink.applied if (sink := checkpoint.sinks.get(shape)) else None for shape in counting]
    known = [position for position in applied if position is not None]
    return min(known) if known and len(known) == len(applied) else None


def spec_read(spec: TableSpec, table: TableReceipt) -> TableSpec:
    """The table by the capture instance that the job has read."""
    markers = [sink.after for sink in table.sinks if sink.after is not None]
    for each in spec.alternatives:
        if any(marker.feed.is_same(each.feed) for marker in markers):
            return each
    return spec


def after_job(
    stored: Checkpoint, spec: TableSpec, table: TableReceipt, plan: RunPlan, copies_path: str | None
) -> Checkpoint:
    """The checkpoint with the sinks where the receipt says they are, without the events that are written."""
    stored = dataclasses.replace(stored, unwritten=unwritten(stored.unwritten, None, table.changes_written))
    if table.ended_copy is None:
        request = plan.requests.get(table.name)
        keeps = request is not None and request.is_for_loaded(stored)
        stored = dataclasses.replace(stored, copies=copies_of(table, copies_path, stored.copies, keeps=keeps))
    else:
        stored = dataclasses.replace(stored, copies=(), ended_copies=ended_with(stored, table.ended_copy))
    sinks = dict(stored.sinks)
    for sink in table.sinks:
        known = sinks.get(sink.shape)
        read = _read(spec, sink, known)
        if sink.after is None:
            if known is not None:
                sinks[sink.shape] = dataclasses.replace(known, failed=None, **(read if known.is_loaded else {}))
            continue
        witness = sink.after.witness
        if plan.witness and plan.upto and sink.read_through == plan.upto.of(Lsn):
            witness = plan.witness
        elif known and sink.read_through == known.read_through and not (witness and witness.tracking):
            # an older one would not tell a database that was restored to a moment between the two positions; a copy of
            # a table that is tracked anew may end where the last load did
            witness = known.witness
        asserted = known.asserted if known else None
        if asserted is None or asserted == sink.after.asserted:
            sinks[sink.shape] = dataclasses.replace(
                known or SinkState(),
                applied=sink.after.position,
                read_through=max(sink.after.position, sink.read_through),
                witness=witness,
                asserted=None,
                failed=None,
                unfilled=sink.after.unfilled if sink.unfilled is None else sink.unfilled,
                **read,
            )
        elif known is not None:
            sinks[sink.shape] = dataclasses.replace(known, failed=None, **read)
    for shape, told in table.taken_told.items():
        if shape in sinks:
            sinks[shape] = dataclasses.replace(sinks[shape], taken_told=told)
    return dataclasses.replace(stored, sinks=sinks)


def _read(spec: TableSpec, sink: SinkReceipt, known: SinkState | None) -> dict[str, Any]:
    """What the state of a sink says of the load."""
    if sink.after is None:
        return loaded_from(spec, known)
    # what a job did not commit it does not know to have followed
    read = loaded_from(spec, None) | {"ddl_upto": sink.after.ddl_upto}
    if sink.schema is None:
        return read
    return read | {
        "schema_hash": hash_of(sink.schema),
        "selection_hash": sink.after.selection_hash,
        "selection": sink.after.selection,
    }
