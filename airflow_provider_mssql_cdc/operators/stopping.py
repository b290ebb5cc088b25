"""Stops tables before a change of columns with which they are not to go on (``on_schema_change="fail"``), and lets one
that an entry does not know be seen again.
"""

from __future__ import annotations

from airflow_provider_mssql_cdc.core.copy_wanted import PAUSE, STOP
from airflow_provider_mssql_cdc.core.exceptions import RenamedColumnError
from airflow_provider_mssql_cdc.core.plan import Candidate
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.operators.finding import RunPlan


def leave_unseen(plan: RunPlan) -> None:
    """Let what was seen of tables be unseen whose entries name a column as it was called: who reads on from there would
    not know that it is this one.
    """
    for name in [name for name, error in plan.failures.items() if isinstance(error, RenamedColumnError)]:
        plan.sights.pop(name, None)


def stop_at_changes(plan: RunPlan, candidates: dict[TableName, Candidate], cut: Position) -> None:
    """Fail the tables whose windows hold a change of columns with which they are not to go on. Until it has a place
    they go on as before, and so do those whose windows end below it.

    :param candidates: the failed ones are removed
    :param cut: up to which the windows reach
    """
    for name, change in plan.refused_changes.items():
        if name in candidates and change.lies_within(cut):
            plan.failures[name] = change.error(name)
            del candidates[name], plan.sights[name]


def stop_copies_at_changes(plan: RunPlan) -> None:
    """Fail the tables that would be copied meanwhile: a copy reads the rows of now, and ends behind the cut."""
    for spec in [spec for spec in plan.specs if spec.name in plan.refused_changes]:
        asked = spec.asked.wanted if spec.asked is not None else None
        # what stops a copy reads no rows
        if asked in (PAUSE, STOP):
            continue
        if plan.steps[spec.name].copies or asked is not None or spec.fills:
            plan.specs.remove(spec)
            plan.failures[spec.name] = plan.refused_changes[spec.name].error(spec.name)
            del plan.sights[spec.name]
