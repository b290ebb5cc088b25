"""``mssql-cdc instances``: the capture instances of a load's tables, who stands on them, making and dropping them."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_provider_mssql_cdc.cli.checkpoint import MetadataVariables, all_checkpoints
from airflow_provider_mssql_cdc.cli.exit import EXIT_NOT_ALL, EXIT_OK, CommandError
from airflow_provider_mssql_cdc.cli.plan import hook_of, plan_of, task_of
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint
from airflow_provider_mssql_cdc.core.exceptions import (
    FormatError,
    MsSqlCdcError,
    ParameterError,
    ProposalOverdueError,
    unnamed,
)
from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.occupied import of_table, standing_on
from airflow_provider_mssql_cdc.core.patterns import matches, parse_name
from airflow_provider_mssql_cdc.core.proposal import made_instance
from airflow_provider_mssql_cdc.core.table import TableName

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
    from airflow_provider_mssql_cdc.operators.finding import RunPlan
    from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator

Found = Mapping[TableName, Sequence[CaptureInstance]]


def run(arguments: argparse.Namespace) -> int:
    """Run ``list``, ``apply`` or ``drop``.

    :raises CommandError: where DAG, task, database or Airflow cannot be asked, or where a checkpoint is in the way
    """
    lines: list[str] = []
    try:
        # Airflow logs to standard output, which is for the answer alone
        with contextlib.redirect_stdout(sys.stderr):
            return _ACTIONS[arguments.action](task_of(arguments), arguments, lines)
    except (MsSqlCdcError, ParameterError) as error:
        raise CommandError(str(error)) from error
    finally:
        # what was done before something failed is told, too
        for line in lines:
            print(line)


def _list(task: MsSqlCdcLoadOperator, arguments: argparse.Namespace, said: list[str]) -> int:
    database, found = _found(task, arguments)
    known, unknown = _checkpoints()
    said += unknown
    for name, instances in found.items():
        mine = of_table(known, database, name)
        for instance in instances:
            columns = ", ".join(column.name for column in instance.columns)
            begins = f"begins behind {instance.readable_from}" if instance.readable_from else "has captured nothing yet"
            said.append(f"{name}: {instance} {begins}: {columns}")
            stands = [*standing_on(instance, instances, mine)] or ["no checkpoint of this Airflow stands on it"]
            said += [f"  {line}" for line in stands]
    return EXIT_OK


def _apply(task: MsSqlCdcLoadOperator, arguments: argparse.Namespace, said: list[str]) -> int:
    """Make what the load asks for: what ``propose`` prints, or what ``evolve`` has not made. What was made before is
    given the grants that it lacks.
    """
    from airflow_provider_mssql_cdc.operators.evolving import granted, make_instance

    plan, _ = plan_of(task)
    names = sorted(name for name in plan.options if _is_wanted(name, arguments))
    if not names:
        raise CommandError(f"{arguments.table} is none of the tables of task {arguments.task}")
    asked = {name: new for name in names if (new := plan.new_instances.get(name)) is not None}
    there = {
        name: old
        for name in names
        if name not in asked and plan.options[name].loads_new_columns
        if (old := made_instance(plan.feeds.get(name, ()))) is not None
    }
    # what is made now is no failure any more
    for name in asked:
        if isinstance(plan.failures.get(name), ProposalOverdueError):
            del plan.failures[name]
    all_done = not any(name in plan.failures for name in names)
    for name in names:
        said += [f"{name}: {line}" for line in _hints(plan, name)]
    with contextlib.ExitStack() as opened:
        hook = _admin(task, opened) if asked or there else None
        for name, instance in (asked | there).items():
            assert hook is not None
            before = f"capture instance {instance.name} is there with {', '.join(instance.wanted)}"
            if name in asked:
                made = make_instance(plan.user, hook, instance, task.enable_lock_timeout)
            else:
                made = granted(plan.user, hook, instance, before)
            all_done = all_done and made.done
            said += [f"{name}: {made.text}"] if name in asked or made.text != before else []
    if not asked:
        said.append("no capture instance is asked for")
    return EXIT_OK if all_done else EXIT_NOT_ALL


def _hints(plan: RunPlan, name: TableName) -> Iterator[str]:
    """What keeps a table from being loaded, or its columns from being asked for."""
    if (error := plan.failures.get(name)) is not None:
        yield f"fails: {unnamed(error, name)}"
    for waiting in plan.waiting:
        if waiting.name == name:
            yield f"waits: {waiting.reason}"
    if (candidate := plan.candidates.get(name)) is not None:
        yield from (f"{shape} fails: {unnamed(error, name)}" for shape, error in candidate.failed.items())
        # that one is made says more than how
        asked = plan.new_instances.get(name)
        yield from (
            text for text in candidate.warnings if asked is None or not text.startswith(asked.advice(plan.user))
        )


def _admin(task: MsSqlCdcLoadOperator, opened: contextlib.ExitStack) -> MsSqlCdcHook:
    """The hook of the login that makes and drops instances.

    :param opened: closes it
    :raises ConnectionSettingError: if it reaches another database than the load
    """
    from airflow_provider_mssql_cdc.hooks.same_database import check_same_database

    own = opened.enter_context(contextlib.closing(hook_of(task.mssql_conn_id)))
    if task.admin_conn_id is None:
        return own
    admin = opened.enter_context(contextlib.closing(hook_of(task.admin_conn_id)))
    check_same_database(own, admin)
    return admin


def _drop(task: MsSqlCdcLoadOperator, arguments: argparse.Namespace, said: list[str]) -> int:
    database, found = _found(task, arguments)
    if len(found) > 1:
        raise CommandError(f"--table {arguments.table} names several tables: {', '.join(map(str, found))}")
    ((name, instances),) = found.items()
    alike = [each for each in instances if each.name.casefold() == arguments.instance.casefold()]
    wanted = [each for each in alike if each.name == arguments.instance] or alike
    if len(wanted) != 1:
        there = ", ".join(each.name for each in instances)
        raise CommandError(f"{name} has no capture instance {arguments.instance}, only {there}")
    if len(instances) == 1:
        raise CommandError(f"{wanted[0]} is the only one of {name}: without it no load has its changes")
    known, unknown = _checkpoints()
    in_the_way = [*unknown, *standing_on(wanted[0], instances, of_table(known, database, name))]
    if in_the_way:
        listed = "".join(f"\n  {line}" for line in in_the_way)
        raise CommandError(f"{wanted[0]} of {name} was not dropped. These checkpoints may still need it:{listed}")
    with contextlib.ExitStack() as opened:
        _admin(task, opened).disable_table(name, capture_instance=wanted[0].name)
    said.append(f"{name}: {wanted[0]} is dropped; no checkpoint of this Airflow stood on it")
    return EXIT_OK


_ACTIONS = {"list": _list, "apply": _apply, "drop": _drop}


def _found(task: MsSqlCdcLoadOperator, arguments: argparse.Namespace) -> tuple[str, Found]:
    """The database, and the capture instances of the load's tables, the oldest first.

    :raises CommandError: where there are none
    """
    request = task.request()
    with contextlib.closing(hook_of(task.mssql_conn_id)) as hook:
        survey = hook.survey(request.patterns, request.exclude, captured=request.captured)
    found: dict[TableName, list[CaptureInstance]] = {}
    for instance in survey.instances:
        if _is_wanted(instance.source, arguments):
            found.setdefault(instance.source, []).append(instance)
    if not found:
        raise CommandError(f"no capture instance of {arguments.table or 'its tables'} is seen by task {arguments.task}")
    return survey.status.name, found


def _is_wanted(name: TableName, arguments: argparse.Namespace) -> bool:
    return arguments.table is None or matches(parse_name(arguments.table), name.schema, name.table)


def _checkpoints() -> tuple[list[Checkpoint], list[str]]:
    """All checkpoints of this Airflow; and those that cannot be read: nobody knows on what they stand."""
    known, unknown = [], []
    for key, found in all_checkpoints(MetadataVariables()):
        if isinstance(found, FormatError):
            unknown.append(f"{key} cannot be read, so nobody knows on what it stands: {found}")
        else:
            known.append(found)
    return known, unknown
