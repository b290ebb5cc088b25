"""``mssql-cdc plan``: what a load would do now, without doing anything."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from airflow_provider_mssql_cdc.cli.checkpoint import MetadataVariables
from airflow_provider_mssql_cdc.cli.exit import EXIT_OK, CommandError
from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.entry_values import AUTO, CDC, CT
from airflow_provider_mssql_cdc.core.exceptions import MsSqlCdcError, ParameterError, unnamed
from airflow_provider_mssql_cdc.core.patterns import matches, parse_name
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.table_options import is_said

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
    from airflow_provider_mssql_cdc.operators.finding import RunPlan
    from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator

_OFF = {
    CDC: "change data capture is off",
    CT: "Change Tracking is off",
    AUTO: "neither change data capture nor Change Tracking is on",
}
_OF_TABLES = ("tables", "exclude", "target")


def run(arguments: argparse.Namespace) -> int:
    """Print the steps of each table. Nothing is written anywhere, and nothing is enabled.

    :raises CommandError: where DAG, task or database cannot be asked
    """
    # Airflow logs to standard output, which is for the plan alone
    with contextlib.redirect_stdout(sys.stderr):
        task = task_of(arguments)
        try:
            wanted = None if arguments.table is None else parse_name(arguments.table)
            plan, enables = plan_of(task)
        except (MsSqlCdcError, ParameterError) as error:
            raise CommandError(str(error)) from error
    shown = [
        (name, line)
        for name, line in _lines(plan, enables=enables)
        if wanted is None or matches(wanted, name.schema, name.table)
    ]
    if not shown:
        raise CommandError(f"{arguments.table} is none of the task's tables")
    print(f"to {plan.upto or 'nothing: no change is captured yet'}")
    for name, line in shown:
        print(f"{name}: {line}")
    for how, names in _by_mode(plan).items():
        if some := [str(name) for name in names if wanted is None or matches(wanted, name.schema, name.table)]:
            print(f'on_schema_change="{how}": {", ".join(some)}')
    for text in plan.warnings:
        print(f"warning: {text}")
    print("A marker in a target may shorten this: the job goes on from there, and loads nothing twice.")
    return EXIT_OK


def task_of(arguments: argparse.Namespace) -> MsSqlCdcLoadOperator:
    """The load that ``--dag`` and ``--task`` name.

    :raises CommandError: where there is none
    """
    from airflow.dag_processing.dagbag import DagBag

    from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator

    bag = DagBag(arguments.dags_folder)
    dag = bag.dags.get(arguments.dag)
    if dag is None:
        errors = "".join(f"; {file}: {error.strip().splitlines()[-1]}" for file, error in bag.import_errors.items())
        raise CommandError(f"there is no DAG {arguments.dag} in {bag.dag_folder}{errors}")
    if not dag.has_task(arguments.task):
        raise CommandError(f"DAG {arguments.dag} has no task {arguments.task}: {', '.join(dag.task_ids)}")
    task = dag.get_task(arguments.task)
    if not isinstance(task, MsSqlCdcLoadOperator):
        raise CommandError(f"task {arguments.task} is no MsSqlCdcLoadOperator")
    if task.replay:
        raise CommandError(f"task {arguments.task} replays: its window follows from the data interval of its run")
    if templates := [name for name in _OF_TABLES if not is_said(getattr(task, name))]:
        raise CommandError(f"{', '.join(templates)} of task {arguments.task} is said by its run alone (a template)")
    return task


def hook_of(conn_id: str) -> MsSqlCdcHook:
    """The hook of an Airflow connection, for a process that is no task.

    :raises CommandError: where the connection cannot be found
    """
    from airflow.models import Connection

    from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook

    try:
        connection: Any = Connection.get_connection_from_secrets(conn_id)
    except Exception as error:
        raise CommandError(f"connection {conn_id}: {error}") from error
    return MsSqlCdcHook(conn_id, connection=connection)


def plan_of(task: MsSqlCdcLoadOperator) -> tuple[RunPlan, bool]:
    """The plan to the cut that the DAG says, else to the newest position; and whether a run would enable change data
    capture.

    :raises MsSqlCdcError: if nothing can be planned at all
    """
    from airflow_provider_mssql_cdc.operators.outcome import Outcome
    from airflow_provider_mssql_cdc.operators.planning import plan_load
    from airflow_provider_mssql_cdc.operators.request import cut_given

    request = task.request()
    enables = request.on_disabled == "enable"
    if enables:
        request = dataclasses.replace(request, on_disabled="skip")
    # what a template or another task says is known when that runs
    upto = cut_given(task.upto) if isinstance(task.upto, str) and is_said(task.upto) else None
    with contextlib.closing(hook_of(task.mssql_conn_id)) as hook:
        plan = plan_load(hook, CheckpointStore(MetadataVariables()), request, upto, task.sources(hook))
    return Outcome(plan).with_whole_commands().plan, enables


def _lines(plan: RunPlan, *, enables: bool) -> Iterator[tuple[TableName, str]]:
    said: dict[TableName, list[str]] = {}
    for name, steps in plan.steps.items():
        lagging = plan.candidates[name].lagging.values() if name in plan.candidates else ()
        fills = sorted({column for columns in lagging for column in columns})
        does = [*map(str, steps.commits), *([f"fill {', '.join(fills)}"] if fills else [])]
        said[name] = does or ["nothing to do"]
    for name, asked in plan.requests.items():
        if not asked.has_ended(plan.checkpoints.get(name)):
            said[name] = [*said.get(name, []), f"a person asks for copy {asked.id}: {asked.wanted}"]
    for waiting in plan.waiting:
        failing = [f"{shape} fails: {unnamed(error, waiting.name)}" for shape, error in waiting.failed.items()]
        said[waiting.name] = [f"waits: {waiting.reason}", *failing]
    for name in plan.skipped:
        then = "a run enables it" if enables else "left out"
        said[name] = [f"{_OFF[plan.options[name].source]}: {then if plan.options[name].source != AUTO else 'left out'}"]
    for name, candidate in plan.candidates.items():
        said[name] += [f"warning: {text}" for text in candidate.warnings]
        said[name] += [f"{shape} fails: {unnamed(error, name)}" for shape, error in candidate.failed.items()]
    for name, turn in plan.turns.items():
        resting = [f"{shape} rests: {unnamed(failure.reason, name)}" for shape, failure in turn.resting.items()]
        said[name] = [*said.get(name, []), *resting]
    for name, error in plan.failures.items():
        said[name] = [f"fails: {unnamed(error, name)}"]
    for name, lines in sorted(said.items()):
        for line in lines:
            yield name, line


def _by_mode(plan: RunPlan) -> dict[str, list[TableName]]:
    """The tables by what becomes of a change of their columns."""
    found: dict[str, list[TableName]] = {}
    for name in sorted(plan.candidates):
        found.setdefault(plan.options[name].on_schema_change, []).append(name)
    return found
