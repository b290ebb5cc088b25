"""``mssql-cdc instances``: the capture instances of a load's tables, who stands on them, making and dropping them."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_provider_mssql_cdc.cli.checkpoint import MetadataVariables, all_checkpoints
from airflow_provider_mssql_cdc.cli.exit import EXIT_OK, CommandError
from airflow_provider_mssql_cdc.cli.plan import hook_of, plan_of, task_of
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint
from airflow_provider_mssql_cdc.core.exceptions import FormatError, MsSqlCdcError, ParameterError
from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.occupied import of_table, standing_on
from airflow_provider_mssql_cdc.core.patterns import matches, parse_name
from airflow_provider_mssql_cdc.core.table import TableName

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator

Found = Mapping[TableName, Sequence[CaptureInstance]]


def run(arguments: argparse.Namespace) -> int:
    """Run ``list``, ``apply`` or ``drop``.

    :raises CommandError: where DAG, task, database or Airflow cannot be asked, or where a checkpoint is in the way
    """
    try:
        # Airflow logs to standard output, which is for the answer alone
        with contextlib.redirect_stdout(sys.stderr):
            task = task_of(arguments)
            lines = [*_ACTIONS[arguments.action](task, arguments)]
    except (MsSqlCdcError, ParameterError) as error:
        raise CommandError(str(error)) from error
    for line in lines:
        print(line)
    return EXIT_OK


def _list(task: MsSqlCdcLoadOperator, arguments: argparse.Namespace) -> Iterator[str]:
    database, found = _found(task, arguments)
    known, unknown = _checkpoints()
    yield from unknown
    for name, instances in found.items():
        mine = of_table(known, database, name)
        for instance in instances:
            columns = ", ".join(column.name for column in instance.columns)
            yield f"{name}: {instance} begins behind {instance.readable_from or 'what is captured'}: {columns}"
            for line in [*standing_on(instance, instances, mine)] or ["no checkpoint of this Airflow stands on it"]:
                yield f"  {line}"


def _apply(task: MsSqlCdcLoadOperator, arguments: argparse.Namespace) -> Iterator[str]:
    """Make what the load asks for: what ``propose`` prints, or what ``evolve`` has not made."""
    from airflow_provider_mssql_cdc.operators.evolving import make_instance

    plan, _ = plan_of(task)
    wanted = {name: new for name, new in plan.new_instances.items() if _is_wanted(name, arguments)}
    if not wanted:
        yield "no capture instance is asked for"
        return
    with contextlib.closing(hook_of(task.admin_conn_id or task.mssql_conn_id)) as hook:
        for name, instance in wanted.items():
            yield f"{name}: {make_instance(plan.user, hook, instance, task.enable_lock_timeout)}"


def _drop(task: MsSqlCdcLoadOperator, arguments: argparse.Namespace) -> Iterator[str]:
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
    with contextlib.closing(hook_of(task.admin_conn_id or task.mssql_conn_id)) as hook:
        hook.disable_table(name, capture_instance=wanted[0].name)
    yield f"{name}: {wanted[0]} is dropped; no checkpoint of this Airflow stood on it"


_ACTIONS = {"list": _list, "apply": _apply, "drop": _drop}


def _found(task: MsSqlCdcLoadOperator, arguments: argparse.Namespace) -> tuple[str, Found]:
    """The database, and the capture instances of the load's tables, the oldest first.

    :raises CommandError: where there are none
    """
    request = task.request()
    with contextlib.closing(hook_of(task.mssql_conn_id)) as hook:
        survey = hook.survey(request.patterns, request.exclude)
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
