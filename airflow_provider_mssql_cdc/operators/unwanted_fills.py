"""Copies that end because nobody wants the columns any more which they were to fill."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from airflow_provider_mssql_cdc.core.adding import names_of
from airflow_provider_mssql_cdc.core.checkpoint import SinkState, Told
from airflow_provider_mssql_cdc.core.plan import Candidate
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.table_options import TableOptions
from airflow_provider_mssql_cdc.operators.copy_events import ABORTED, COMPLETED, KIND
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.given_up import GivenUp


def give_up_fills(plan: RunPlan, candidates: dict[TableName, Candidate]) -> None:
    """End such copies, as ABORTED; as COMPLETED where a run has filled all and could not tell. It is not stored yet."""
    for name, candidate in candidates.items():
        stored = candidate.checkpoint
        copy = next((copy for copy in stored.copies if copy.fills), None) if stored is not None else None
        # what begins anew has a copy of its own, which takes the place of this one
        anew = candidate.rekeyed or candidate.lost_after or candidate.has_first_load
        if stored is None or copy is None or candidate.lagging or anew:
            continue
        shapes = {*copy.shapes} & {*plan.options[name].shapes}
        # a shape that failed for good may still wait; of several feeds the job finds the one that sinks are loaded from
        if not candidate.sinks.keys() >= shapes or plan.alternatives.get(name):
            continue
        told: dict[str, Any] = {"table": str(name), "id": copy.id, "fills": [*copy.fills]}
        if all(_has(stored.sinks[shape], copy.fills, plan) for shape in shapes):
            told |= {"event": COMPLETED}
        elif why := _why(candidate, copy.fills, plan.options[name]):
            told |= {"event": ABORTED, "reason": why}
        else:
            # what keeps it from being filled may be mended
            continue
        copies = tuple(each for each in stored.copies if not each.fills)
        after = dataclasses.replace(stored, copies=copies, untold=(*stored.untold, event := Told(KIND, told)))
        plan.given_up[name] = GivenUp(copy, stored, after, event)
        plan.checkpoints[name] = after
        candidates[name] = dataclasses.replace(candidate, checkpoint=after)


def _has(sink: SinkState, columns: Sequence[str], plan: RunPlan) -> bool:
    """Whether a sink has columns, with the values of before."""
    schema = plan.kept(sink.schema_hash) if sink.schema_hash is not None else None
    return schema is not None and not sink.unfilled and {each.name for each in schema.columns} >= {*columns}


def _why(candidate: Candidate, columns: Sequence[str], options: TableOptions) -> str | None:
    """Why nobody wants columns to be filled; None where something else keeps them from it."""
    if not options.loads_new_columns or options.leaves_null:
        return "the load fills no columns any more (on_schema_change, fill)"
    there = {column.name: column for column in candidate.feed.columns}
    wanted = [there[name] for name in columns if name in there and not there[name].dropped]
    if not wanted:
        return f"{', '.join(columns)}: dropped since, or captured by no instance that can be read"
    names, adding = names_of(candidate.feed), candidate.adding
    if adding is not None and not any(adding.wants(column, names) for column in wanted):
        return f"{', '.join(columns)}: no longer to be loaded"
    return None
