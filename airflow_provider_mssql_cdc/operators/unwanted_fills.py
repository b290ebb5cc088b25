"""Copies that end because nobody wants the columns any more which they were to fill."""

from __future__ import annotations

import dataclasses

from airflow_provider_mssql_cdc.core.checkpoint import Told
from airflow_provider_mssql_cdc.core.plan import Candidate
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.operators.copy_events import ABORTED, KIND
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.given_up import GivenUp


def give_up_fills(plan: RunPlan, candidates: dict[TableName, Candidate]) -> None:
    """End such copies: their columns were dropped, or are to be loaded no more. Nothing of that is stored yet."""
    for name, candidate in candidates.items():
        stored = candidate.checkpoint
        copy = next((copy for copy in stored.copies if copy.fills), None) if stored is not None else None
        if stored is None or copy is None or candidate.lagging:
            continue
        # a shape that failed for good may still wait; of several feeds the job finds the one that sinks are loaded from
        if not candidate.sinks.keys() >= {*copy.shapes} or plan.alternatives.get(name):
            continue
        why = f"{', '.join(copy.fills)}: dropped since, or no longer to be loaded"
        event = Told(KIND, {"table": str(name), "event": ABORTED, "id": copy.id, "fills": [*copy.fills], "reason": why})
        copies = tuple(each for each in stored.copies if not each.fills)
        after = dataclasses.replace(stored, copies=copies, untold=(*stored.untold, event))
        plan.given_up[name] = GivenUp(copy, stored, after, event)
        plan.checkpoints[name] = after
        candidates[name] = dataclasses.replace(candidate, checkpoint=after)
