"""Tables that were loaded and are there no more: told once, and their targets are left as they are."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable
from contextlib import suppress

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Failure, Told
from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.exceptions import CheckpointError
from airflow_provider_mssql_cdc.core.receipt import Receipt, TableReceipt
from airflow_provider_mssql_cdc.core.resting import MISSING
from airflow_provider_mssql_cdc.core.schema_changes import unwritten
from airflow_provider_mssql_cdc.core.schema_diff import TABLE_DROPPED, SchemaChange
from airflow_provider_mssql_cdc.core.schema_sight import KIND, SchemaEvent
from airflow_provider_mssql_cdc.core.summary import TableSummary, row
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.request import Request


def see_gone(
    plan: RunPlan, hook: MsSqlCdcHook, store: CheckpointStore, request: Request, before: Iterable[TableName]
) -> None:
    """Note which tables were dropped since they were loaded, those that the DAG names and those of a pattern.

    Those whose events no job has written yet are noted, too, without an event.

    :param before: the tables of the summary before, under each spelling that they may have
    """
    if plan.upto is None or plan.server_time is None:
        return
    for name in {*before, *plan.missing} - (plan.options.keys() - plan.missing):
        stored = plan.checkpoints.get(name)
        if name not in plan.missing:
            with suppress(CheckpointError):
                stored = store.load(request.identity(plan.database, name, request.options(name)))
        if stored is None:
            continue
        is_unwritten = any(event.is_drop for event in stored.unwritten)
        # where runs that named it have failed, this one hands on what they would have told
        if is_unwritten or (name not in plan.missing and any(map(_tells, stored.untold))):
            plan.checkpoints[name], plan.options[name] = stored, request.options(name)
            if is_unwritten:
                plan.gone[name] = None
            continue
        seen = stored.seen_schema
        if seen is None or seen.source_object_id is None or not stored.loaded or _is_told(stored):
            continue
        # as a tracked table it has another kind of positions than others of the run may have
        newest = plan.upto.of(type(next(iter(stored.loaded.values())).position))
        if newest is not None and hook.is_dropped(seen.source_object_id):
            change = SchemaChange(TABLE_DROPPED, None, f"object_id {seen.source_object_id}", "")
            plan.gone[name] = SchemaEvent((change,), seen.hash, "", plan.server_time, newest, ())
            plan.checkpoints[name], plan.options[name] = stored, request.options(name)
            plan.warnings.append(f"{name}: the source table was dropped; its targets stay as they are")


def rows_of_gone(plan: RunPlan, receipt: Receipt | None) -> dict[str, TableSummary]:
    """Rows of the summary for tables that are gone: the next run looks at them once more.

    :param receipt: of the job that was to write their events, if there was one
    """
    warnings = {table.name: list(table.warnings) for table in _dropped(receipt)}
    return {str(name): row(str(name)) | {"status": "dropped", "warnings": warnings.get(name, [])} for name in plan.gone}


def add_gone(plan: RunPlan, written: dict[TableName, Checkpoint], receipt: Receipt | None, *, succeeds: bool) -> None:
    """Add to the checkpoints that a run writes that their tables are gone, so that it is told once.

    :param receipt: of the job that was to write their events, if there was one
    :param succeeds: whether the run does: else the next one sees the tables of a pattern again
    """
    upto = {table.name: table.changes_written for table in _dropped(receipt)}
    for name, event in plan.gone.items():
        stored = written.get(name) or plan.checkpoints[name]
        assert stored is not None
        left = dataclasses.replace(stored, unwritten=unwritten(stored.unwritten, event, upto.get(name)))
        if event is None:
            if left != stored:
                written[name] = left
        elif name in plan.missing:
            if name in written:
                told = Told(KIND, event.told(str(name)))
                written[name] = dataclasses.replace(left, untold=(*left.untold, told))
        elif succeeds:
            now = datetime.datetime.now(datetime.UTC)
            written[name] = left.failing(left.loaded, Failure("the source table was dropped", now, MISSING))


def _dropped(receipt: Receipt | None) -> tuple[TableReceipt, ...]:
    return receipt.dropped if receipt is not None else ()


def _tells(event: Told) -> bool:
    return any(change["kind"] == TABLE_DROPPED for change in event.extra.get("changes", ()))


def _is_told(checkpoint: Checkpoint) -> bool:
    failed = [sink.failed for sink in checkpoint.loaded.values()]
    return all(failure is not None and failure.seen == MISSING for failure in failed)
