"""Asks for, or makes, the capture instances that have columns which sinks are to get, where a load may do so itself."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import logging
from collections.abc import Iterator

from airflow_provider_mssql_cdc.core.adding import Adding, to_capture
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Told
from airflow_provider_mssql_cdc.core.entry_values import EVOLVE
from airflow_provider_mssql_cdc.core.exceptions import (
    CaptureLagError,
    CheckpointError,
    MsSqlCdcError,
    ProposalOverdueError,
    SqlServerError,
)
from airflow_provider_mssql_cdc.core.plan import Candidate
from airflow_provider_mssql_cdc.core.proposal import KIND, NewInstance, new_instance
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.hooks.blockers import in_the_way
from airflow_provider_mssql_cdc.hooks.errors import DEADLOCK_VICTIM
from airflow_provider_mssql_cdc.hooks.mssql_cdc import LOCK_TIMEOUT, MsSqlCdcHook
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.intents import Intents

log = logging.getLogger(__name__)

_NOT_YET = (LOCK_TIMEOUT, DEADLOCK_VICTIM)
_MADE_BY_OTHERS = (22926, 22962)


def ask_for_instance(name: TableName, candidate: Candidate, plan: RunPlan, check: str | None) -> str | None:
    """Note the capture instance that is to be made for a table; what people are told of it.

    :param check: ``core.selection.salt_check`` of the salt; None where there is none
    :raises ProposalOverdueError: if they were told for too long, and nobody has made it
    """
    checkpoint, adding = plan.checkpoints[name], candidate.adding
    plan.proposed[name] = ()
    if adding is None or not adding.options.loads_new_columns:
        return None
    loaded = checkpoint.loaded if checkpoint is not None else {}
    sinks = [sink for shape, sink in loaded.items() if shape in adding.options.shapes]
    told = candidate.feed, candidate.schema, adding, plan.hides, sinks, plan.kept
    wanted, why = to_capture(name, *told, check=check)
    # one of its own that the login does not see has been made already
    own, wished = candidate.feed.source_object_id, [new.name for new in plan.new_instances.values() if new.name]
    new = new_instance(
        plan.feeds[name],
        candidate.feed,
        wanted,
        lambda: [*wished, *(each for each, source in plan.instance_names().items() if source != own)],
    )
    if new is None:
        return None
    if why is not None:
        return f"{', '.join(new.wanted)} cannot be loaded by another capture instance: {why}"
    plan.new_instances[name] = new
    text = new.advice(plan.user)
    if _is_for_people(new, adding):
        text += _noted(name, new, plan, adding.options.propose_timeout)
    return text if adding.options.on_schema_change != EVOLVE else None


def _is_for_people(instance: NewInstance, adding: Adding) -> bool:
    """Whether a load leaves it to people to make a capture instance."""
    options = adding.options
    left_out = not options.widen_list and adding.leaves_out(instance.beside)
    return options.on_schema_change != EVOLVE or instance.name is None or left_out


def _noted(name: TableName, instance: NewInstance, plan: RunPlan, timeout: datetime.timedelta | None) -> str:
    """Note what people are told; until when they have time, for people.

    :raises ProposalOverdueError: if that is over
    """
    checkpoint, now = plan.checkpoints.get(name), datetime.datetime.now(datetime.UTC)
    proposed = instance.proposals(checkpoint.proposed if checkpoint is not None else (), now)
    plan.proposed[name] = proposed
    if timeout is None:
        return ""
    oldest = min(proposed, key=lambda each: each.since)
    since = oldest.since.isoformat(" ", "seconds")
    if now - oldest.since >= timeout:
        raise ProposalOverdueError(
            f"no capture instance has column {oldest.column}, though one is proposed since {since}, for longer than "
            f"propose_timeout ({timeout}).",
            table=str(name),
            advice=f"It is loaded again once there is one: {instance.advice(plan.user)}",
        )
    return f" This is told since {since}: {timeout} after that the table fails (propose_timeout)."


def proposal_events(plan: RunPlan, name: TableName | None = None) -> list[Told]:
    """The events of proposals that no earlier run has told.

    :param name: of one table; None for all
    """
    found = []
    for table, proposed in plan.proposed.items():
        stored = plan.checkpoints.get(table)
        before = {(each.column, each.instance) for each in (stored.proposed if stored is not None else ())}
        if name in (None, table) and {(each.column, each.instance) for each in proposed} - before:
            found.append(Told(KIND, plan.new_instances[table].told(plan.user)))
    return found


def add_proposals(plan: RunPlan, written: dict[TableName, Checkpoint]) -> None:
    """Add what people are told to the checkpoints that a run writes, and write those of which they are told anew."""
    for name, proposed in plan.proposed.items():
        stored = written.get(name) or plan.quiet.get(name) or plan.checkpoints[name]
        if stored is not None and stored.proposed != proposed:
            untold = (*stored.untold, *proposal_events(plan, name))
            written[name] = dataclasses.replace(stored, proposed=proposed, untold=untold)


def to_make(plan: RunPlan) -> dict[TableName, NewInstance]:
    """The capture instances that the load makes itself, or says why not."""
    return {name: new for name, new in plan.new_instances.items() if plan.options[name].on_schema_change == EVOLVE}


def make_instances(plan: RunPlan, hook: MsSqlCdcHook, intents: Intents, *, lock_timeout: float) -> None:
    """Make them, and end what earlier runs have begun. Whatever becomes of it, the tables are loaded as they are;
    warnings say what was done, or why not.

    :param hook: of a login that may make them
    :param intents: keep until the end that each is about to be made
    :param lock_timeout: seconds to wait for transactions that use the table, and to keep all others waiting behind
    """
    for name, instance in intents.begun().items():
        with _telling(plan, name) as told:
            done = (
                f"capture instance {instance.name} is there with {', '.join(instance.wanted)}, made by an earlier run"
            )
            made = granted(plan.user, hook, instance, done)
            told.append(made.text)
            if made.done:
                intents.forget(name)
    for name, instance in to_make(plan).items():
        adding = plan.candidates[name].adding
        with _telling(plan, name) as told:
            if instance.name is not None and adding is not None and _is_for_people(instance, adding):
                told.append(
                    "its capture instance leaves out columns on purpose, so none is made beside it (widen_list): "
                    f"{instance.advice(plan.user)}"
                )
                continue
            if instance.name is not None:
                intents.note(name, instance)
            made = make_instance(plan.user, hook, instance, lock_timeout)
            told.append(made.text)
            if made.done:
                intents.forget(name)


@contextlib.contextmanager
def _telling(plan: RunPlan, name: TableName) -> Iterator[list[str]]:
    """Tell what is done for a table, and why its checkpoint does not say so where that cannot be."""
    told: list[str] = []
    try:
        yield told
    except CheckpointError as error:
        told.append(f"no capture instance is made for it: {error.message}" if not told else error.message)
    for text in told:
        log.info("%s: %s", name, text)
        plan.warnings.append(f"{name}: {text}")


def forget_unwanted(plan: RunPlan, intents: Intents) -> None:
    """Forget the capture instances that earlier runs were about to make, and that loads are not to make any more."""
    for name in intents.unwanted():
        with _telling(plan, name):
            intents.forget(name)


@dataclasses.dataclass(frozen=True, slots=True)
class Made:
    """What became of a capture instance that was asked for, for people.

    :param done: it is there, and those may read it who are to
    """

    text: str
    done: bool = False


def make_instance(user: str, hook: MsSqlCdcHook, instance: NewInstance, lock_timeout: float) -> Made:
    """Make a capture instance, and let those read it who are to. One that is there already, as after a connection that
    was lost, is not made again.

    :param user: database user of the login that loads
    :param hook: of a login that may make it
    :param lock_timeout: seconds to wait for transactions that use the table
    """
    advice = instance.advice(user)
    if instance.name is None:
        return Made(advice)
    what, listed = f"capture instance {instance.name}", ", ".join(instance.wanted)
    done = f"{what} was made with {listed}"
    try:
        if hook.has_instance(instance):
            done = f"{what} is there with {listed}"
        else:
            hook.add_instance(instance, lock_timeout=lock_timeout)
    except SqlServerError as error:
        if error.number in _NOT_YET:
            who = in_the_way(hook, instance.beside.source_object_id)
            return Made(f"{what} with {listed} is not made yet, the next run tries: {error.message} {who}")
        if error.number not in _MADE_BY_OTHERS:
            return Made(f"{what} could not be made ({error.message}): {advice}")
        # its grants may be those that another run is about to give: twice is as good as once
        if not hook.has_instance(instance):
            return Made(f"{what} with {listed} is not made, since others have made one meanwhile: {error.message}")
        done = f"{what} with {listed} was made by another run"
    except CaptureLagError as error:
        done = f"{done}, and {error.message}"
    except MsSqlCdcError as error:
        return Made(f"{what} could not be made ({error.message}): {advice}")
    return granted(user, hook, instance, done)


def granted(user: str, hook: MsSqlCdcHook, instance: NewInstance, done: str) -> Made:
    """Let those read a capture instance's change table who are to.

    :param user: database user of the login that loads
    :param hook: of a login that may do so
    :param done: what was done before, for people
    """
    try:
        copied = hook.copy_rights(instance, user)
    except MsSqlCdcError as error:
        again = f"The next run tries again; or run, as db_owner: {instance.grants(user)}"
        return Made(f"{done}, and the GRANT of its change table failed: {error.message} {again}")
    beside = instance.beside.name
    if copied.readers:
        done += f"; {', '.join(copied.readers)} may read it as they read {beside}"
    if copied.denied:
        done += f"; {', '.join(copied.denied)} may not, as they may not read {beside}"
    if copied.of_columns:
        done += f"; {', '.join(copied.of_columns)} got their rights on single columns of {beside}"
    if copied.left:
        done += (
            f"; {', '.join(copied.left)} have rights on {beside} that were not copied: on columns that this one has "
            "not, or their own, which nobody may change"
        )
    return Made(done, done=True)
