"""Asks for, or makes, the capture instances that have columns which sinks are to get, where a load may do so itself."""

from __future__ import annotations

import logging

from airflow_provider_mssql_cdc.core.adding import to_capture
from airflow_provider_mssql_cdc.core.entry_values import EVOLVE
from airflow_provider_mssql_cdc.core.exceptions import CaptureLagError, MsSqlCdcError, SqlServerError
from airflow_provider_mssql_cdc.core.plan import Candidate
from airflow_provider_mssql_cdc.core.proposal import NewInstance, new_instance
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.hooks.errors import DEADLOCK_VICTIM
from airflow_provider_mssql_cdc.hooks.mssql_cdc import LOCK_TIMEOUT, MsSqlCdcHook
from airflow_provider_mssql_cdc.operators.finding import RunPlan

log = logging.getLogger(__name__)

_NOT_YET = (LOCK_TIMEOUT, DEADLOCK_VICTIM)
_MADE_BY_OTHERS = (22926, 22962)


def ask_for_instance(name: TableName, candidate: Candidate, plan: RunPlan, check: str | None) -> str | None:
    """Note the capture instance that is to be made for a table; what people are told of it.

    :param check: ``core.selection.salt_check`` of the salt; None where there is none
    """
    checkpoint, adding = plan.checkpoints[name], candidate.adding
    if adding is None or not adding.options.loads_new_columns:
        return None
    loaded = checkpoint.loaded if checkpoint is not None else {}
    sinks = [sink for shape, sink in loaded.items() if shape in adding.options.shapes]
    told = candidate.feed, candidate.schema, adding, plan.hides, sinks, plan.kept
    wanted, why = to_capture(name, *told, check=check)
    new = new_instance(plan.feeds[name], candidate.feed, wanted)
    if new is None:
        return None
    if why is not None:
        return f"{', '.join(new.wanted)} cannot be loaded by another capture instance: {why}"
    plan.new_instances[name] = new
    return new.advice(plan.user) if adding.options.on_schema_change != EVOLVE else None


def make_instances(plan: RunPlan, hook: MsSqlCdcHook, *, lock_timeout: float) -> None:
    """Make them. Whatever becomes of it, the tables are loaded as they are; warnings say what was done, or why not.

    :param hook: of a login that may make them
    :param lock_timeout: seconds to wait for transactions that use the table, and to keep all others waiting behind
    """
    for name, instance in plan.new_instances.items():
        if plan.options[name].on_schema_change != EVOLVE:
            continue
        checkpoint = plan.checkpoints.get(name)
        if instance.name is not None and checkpoint is not None and checkpoint.waiting_ids:
            advice = instance.advice(plan.user)
            text = f"its capture instance leaves out columns on purpose, so none is made beside it: {advice}"
        else:
            text = make_instance(plan.user, hook, instance, lock_timeout)
        log.info("%s: %s", name, text)
        plan.warnings.append(f"{name}: {text}")


def make_instance(user: str, hook: MsSqlCdcHook, instance: NewInstance, lock_timeout: float) -> str:
    """Make a capture instance; what was done, or why not.

    :param user: database user of the login that loads
    :param hook: of a login that may make it
    :param lock_timeout: seconds to wait for transactions that use the table
    """
    advice = instance.advice(user)
    if instance.name is None:
        return advice
    listed = ", ".join(instance.wanted)
    try:
        hook.add_instance(instance, lock_timeout=lock_timeout)
        if (grant := instance.grant(user)) is not None:
            hook.query(grant, repeatable=False)
    except SqlServerError as error:
        if error.number in _NOT_YET:
            return (
                f"capture instance {instance.name} with {listed} is not made yet, the next run tries: {error.message}"
            )
        if error.number in _MADE_BY_OTHERS:
            return f"capture instance {instance.name} with {listed} is made by another run"
        return f"capture instance {instance.name} could not be made ({error.message}): {advice}"
    except CaptureLagError as error:
        return f"capture instance {instance.name} was made with {listed}, and {error.message}"
    except MsSqlCdcError as error:
        return f"capture instance {instance.name} could not be made ({error.message}): {advice}"
    return f"capture instance {instance.name} was made with {listed}"
