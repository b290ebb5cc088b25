"""The checkpoints of a load: stored, each that can be; and removed, where they only told of a table that failed."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint
from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.exceptions import CheckpointError
from airflow_provider_mssql_cdc.core.resting import Turn
from airflow_provider_mssql_cdc.core.schema import SchemaStore
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.waiting import left_by_reset
from airflow_provider_mssql_cdc.operators import job_files
from airflow_provider_mssql_cdc.operators.copy_events import all_untold, said
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.outcome import Outcome
from airflow_provider_mssql_cdc.operators.request import Request
from airflow_provider_mssql_cdc.operators.task_state import TaskState

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

log = logging.getLogger(__name__)


def save_windows(store: CheckpointStore, outcome: Outcome) -> None:
    """Store where the sinks stand whose windows are loaded, while the job goes on with copies."""
    moved = outcome.windows()
    _keep_schemas(store, moved, outcome)
    for checkpoint in moved:
        name = checkpoint.identity.table
        try:
            store.save(checkpoint, outcome.plan.checkpoints.get(name))
        except CheckpointError as error:
            # the end of the job meets it, too
            log.warning("the checkpoint is not moved while the job runs: %s", error)
        else:
            log.info("%s: its windows are loaded, and the checkpoint says so; the job goes on with copies", name)


def _keep_schemas(store: CheckpointStore, checkpoints: Sequence[Checkpoint], outcome: Outcome) -> None:
    schemas = SchemaStore(store.variables)
    for schema in outcome.new_schemas(checkpoints):
        schemas.keep(schema)


def save(store: CheckpointStore, checkpoints: Sequence[Checkpoint], outcome: Outcome) -> None:
    """Store the checkpoints, each that can be."""
    _keep_schemas(store, checkpoints, outcome)
    seen = outcome.plan.checkpoints
    saved: list[Checkpoint] = []
    for checkpoint in checkpoints:
        try:
            store.save(checkpoint, seen.get(checkpoint.identity.table))
            saved.append(checkpoint)
        except CheckpointError as error:
            outcome.plan.failures[checkpoint.identity.table] = error
    if len(saved) < len(checkpoints):
        # the task fails, so that nobody is told of the others now: the next run has to
        for checkpoint in saved:
            before = seen.get(checkpoint.identity.table)
            if (stored := store.load(checkpoint.identity)) is not None:
                untold = all_untold(before.untold if before else (), tuple(outcome.events(checkpoint.identity.table)))
                announced = before.announced if before else None
                store.overwrite(dataclasses.replace(stored, announced=announced, untold=untold))


def store_given_up(store: CheckpointStore, plan: RunPlan) -> None:
    """Store that copies have ended, and remove their folders, as far as this worker reaches them.

    One with which another run goes on has not ended: this run leaves its table alone.
    """
    for name, each in list(plan.given_up.items()):
        try:
            stored = store.load(each.before.identity)
        except CheckpointError as error:
            plan.failures[name] = error
            stored = None
        if stored is None or (stored.sinks, stored.copies) != (each.before.sinks, each.before.copies):
            log.info("%s: another run goes on with copy %s", name, each.copy.id)
            plan.checkpoints[name], plan.turns[name] = stored, Turn()
            plan.specs = [spec for spec in plan.specs if spec.name != name]
            del plan.given_up[name]
            continue
        log.warning("%s", said(each.event))
        store.save(each.after, each.before)
        job_files.remove_copy(each.copy.place, each.copy.id)


def rows_before(context: Context) -> list[Mapping[str, Any]]:
    """What the summary of the run before says of tables; none where there is none that can be read."""
    try:
        ti = context["ti"]
        # without a map index Airflow hands on the summaries of all runs before
        index = -1 if ti.map_index is None else ti.map_index
        before = ti.xcom_pull(task_ids=ti.task_id, key="summary", include_prior_dates=True, map_indexes=index)
    except Exception as error:
        # a load does not fail for want of what it would only tidy up, or tell
        log.warning("the summary of the run before cannot be read: %s", error)
        before = None
    return list(before["tables"]) if isinstance(before, Mapping) else []


def forget_failures(
    store: CheckpointStore, request: Request, plan: RunPlan, context: Context, rows: Iterable[Mapping[str, Any]]
) -> None:
    """Remove checkpoints that say nothing but that a table failed: of one that was not there and now is, and of one
    that the DAG no longer names.

    :param rows: of the summary of the run before
    """
    gone = list(plan.found_again)
    failed = {row["table"] for row in rows if row["status"] == "failed"} | {*TaskState(context).failed()}
    names = {name for text in failed for name in TableName.spelled(text)}
    for name in names - plan.checkpoints.keys() - plan.failures.keys():
        with suppress(CheckpointError):
            stored = store.load(request.identity(plan.database, name, request.options(name)))
            if stored is not None and not stored.loaded and stored.failure() is not None:
                gone.append(name)
    for name in gone:
        log.info("%s: its checkpoint, which only said that it had failed, is removed", name)
        identity = request.identity(plan.database, name, request.options(name))
        stored = None
        with suppress(CheckpointError):
            stored = store.load(identity)
        if stored is None or not (stored.waiting_ids or stored.unwritten):
            store.delete(identity)
        elif (left := left_by_reset(stored)) is not None:
            store.overwrite(left)
