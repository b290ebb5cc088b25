"""Asks the source, reads the checkpoints, and decides for every table of a load what is to be done."""

from __future__ import annotations

import dataclasses
import datetime
import logging
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Identity
from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.choice import Choice, Choices
from airflow_provider_mssql_cdc.core.database import DatabaseStatus, Probe, Snapshot, SourceTable
from airflow_provider_mssql_cdc.core.exceptions import (
    CdcDisabledError,
    CdcPermissionError,
    CheckpointError,
    CutError,
    GapError,
    InstanceChangedError,
    MsSqlCdcError,
    ParameterError,
    RestoredError,
    TableNotFoundError,
    TargetError,
)
from airflow_provider_mssql_cdc.core.lag import MAX_LAG, Lag
from airflow_provider_mssql_cdc.core.lineage import LogHistory, Witness
from airflow_provider_mssql_cdc.core.lsn import Lsn
from airflow_provider_mssql_cdc.core.plan import (
    Candidate,
    NotYet,
    SinkOptions,
    assess,
    check_history,
    choose_instance,
    closed_gap,
    needs_load,
    quiet_checkpoint,
    table_spec,
)
from airflow_provider_mssql_cdc.core.protection import Protection, check_protection
from airflow_provider_mssql_cdc.core.schema import KeptSchemas, SchemaStore, unknown_schema
from airflow_provider_mssql_cdc.core.selection import Selection
from airflow_provider_mssql_cdc.core.spec import JobSpec, ReplaySpec, TableSpec
from airflow_provider_mssql_cdc.core.table import CaptureInstance, DdlChange, TableName, literal, quote
from airflow_provider_mssql_cdc.core.target import check_name, check_names
from airflow_provider_mssql_cdc.core.wake import without_absence
from airflow_provider_mssql_cdc.hooks.errors import INVALID_OBJECT
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.hooks.patterns import matches, parse_pattern
from airflow_provider_mssql_cdc.hooks.probing import Prober

log = logging.getLogger(__name__)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Request:
    """What the DAG author asked for.

    :param keys: table, named as patterns name it, to key columns
    :param partition_by: the same to Spark SQL partition expressions
    :param on_disabled: ``fail``, ``skip`` or ``enable``
    :param choices: what of the rows is to be loaded
    :param allow_masked: load what the login reads masked or filtered
    :param max_lag: how late the capture may be
    :param salt_check: ``core.selection.salt_check`` of the salt; None where there is none
    """

    connection: str
    patterns: tuple[str, ...]
    exclude: tuple[str, ...]
    options: SinkOptions
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    partition_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    on_disabled: str = "fail"
    max_transactions: int | None = None
    max_rows: int | None = None
    choices: Choices = field(default_factory=Choices)
    salt_check: str | None = None
    max_lag: datetime.timedelta = MAX_LAG
    allow_masked: bool = False

    def identity(self, database: str, table: TableName) -> Identity:
        """The identity of a table's checkpoint."""
        return Identity.of(self.connection, database, table, self.options.target.address, self.options.table_name)


@dataclass(slots=True)
class RunPlan:
    """What a run has to do.

    :param upto: the cut; None while nothing at all is captured
    :param witness: of the cut; None where its commit is no longer known
    :param recovery_fork: of the database; None where the login does not see it
    :param retention: of the change tables; None where unknown
    :param specs: tables that the Spark job has to load
    :param quiet: checkpoints of tables without events, moved to the cut
    :param waiting: tables that the capture has not reached yet
    :param skipped: tables without CDC, left out on request
    :param failures: tables that cannot be loaded
    :param candidates: what was found out of each table that can be loaded
    :param alternatives: the same by other capture instances, for tables without a checkpoint
    :param checkpoints: of each table whose checkpoint can be read; None for one that has none
    :param instances: capture instances of each matched table that has any
    :param keys: what the request says of a table
    :param partition_by: what the request says of a table
    :param choices: what the request says of the rows of a table, by the names of ``Choice``
    :param lag: of the capture; None where it is in time
    :param user: database user of the login
    :param protection: what keeps it from reading what the tables hold
    :param missing: named tables that are not there, or cannot be seen; they are among the failures
    :param found_again: tables whose checkpoints say nothing but that they were not there, and that now are
    :param kept: schemas by their hash
    """

    database: str
    upto: Lsn | None = None
    retention: datetime.timedelta | None = None
    witness: Witness | None = None
    recovery_fork: str | None = None
    specs: list[TableSpec] = field(default_factory=list)
    quiet: dict[TableName, Checkpoint] = field(default_factory=dict)
    waiting: list[NotYet] = field(default_factory=list)
    skipped: list[TableName] = field(default_factory=list)
    failures: dict[TableName, MsSqlCdcError] = field(default_factory=dict)
    candidates: dict[TableName, Candidate] = field(default_factory=dict)
    alternatives: dict[TableName, list[Candidate]] = field(default_factory=dict)
    checkpoints: dict[TableName, Checkpoint | None] = field(default_factory=dict)
    instances: dict[TableName, Sequence[CaptureInstance]] = field(default_factory=dict)
    keys: dict[TableName, tuple[str, ...]] = field(default_factory=dict)
    partition_by: dict[TableName, tuple[str, ...]] = field(default_factory=dict)
    choices: dict[str, dict[TableName, Any]] = field(default_factory=dict)
    replay: ReplaySpec | None = None
    warnings: list[str] = field(default_factory=list)
    lag: Lag | None = None
    user: str = ""
    protection: Protection = field(default_factory=Protection)
    missing: set[TableName] = field(default_factory=set)
    found_again: list[TableName] = field(default_factory=list)
    kept: KeptSchemas = unknown_schema

    def keep_witness(self, probe: Probe) -> None:
        """Keep what tells later whether the cut still belongs to this history."""
        if probe.witness is not None:
            self.witness = dataclasses.replace(probe.witness, recovery_fork=self.recovery_fork)

    def warn_of_masks(self, instance: CaptureInstance, selection: Selection, *, allowed: bool) -> None:
        """Prove that the login reads what the table holds, or warn of it where that is enough.

        :raises MaskedError: if it does not
        """
        if warning := check_protection(self.protection, instance, selection, self.user, allowed=allowed):
            self.warnings.append(f"{instance.source}: {warning}")

    def choice(self, name: TableName) -> Choice:
        """The table's row selection, as the request has it."""
        return Choice(**{part: tables[name] for part, tables in self.choices.items() if name in tables})


def position_given(upto: object) -> Lsn:
    """Return the cut that the DAG names.

    :raises CutError: if it is no LSN
    """
    try:
        found = Lsn.parse(str(upto))
        if found.is_zero:
            raise ValueError("zeros stand for no position")
        return found
    except ValueError as error:
        raise CutError(
            f"upto={upto!r} is no position.",
            advice="Pass the sensor's upto=wait.output: a template would make the text 'None' of a sensor that was "
            "skipped or had no cut. Without upto the newest position is taken.",
        ) from error


def plan_load(hook: MsSqlCdcHook, store: CheckpointStore, request: Request, upto: Lsn | None) -> RunPlan:
    """Plan a load of all tables to one cut.

    :param upto: the cut; None takes the max LSN
    :raises MsSqlCdcError: if nothing can be planned at all; what concerns one table is in ``failures``
    """
    status, plan, instances = look(hook, store, request)
    plan.lag = hook.lag(status, request.max_lag)
    if upto is not None and (status.max_lsn is None or upto > status.max_lsn):
        raise RestoredError(
            f"the cut {upto} lies above the database's newest position {status.max_lsn}.",
            advice="The database was restored, or this is another one. Clear the task, or the sensor if that named the "
            "cut, so that a new one is taken.",
        )
    positions = _positions(plan, instances, request)
    prober = Prober()
    probe = prober.probe(hook, positions, upto=upto, witnesses=witnesses(plan))
    leave_out_unreadable(prober, plan, instances)
    _assess_all(hook, plan, instances, log_history(status, probe), probe, request)
    _leave_out_unprobed(plan, positions)
    cut = probe.cut
    if cut is not None:
        limited = _limited(hook, plan, probe, request, cut)
        if limited < cut:
            log.info("limited to %s of %s", limited, cut)
            probe = prober.probe(hook, positions, upto=limited, witnesses=witnesses(plan))
            cut = probe.cut or limited
            leave_out_unreadable(prober, plan, plan.candidates)
            _look_again(plan, probe, request, log_history(status, probe))
        plan.keep_witness(probe)
        plan.upto = cut
        _decide(plan, probe, request, cut)
    return plan


def look(
    hook: MsSqlCdcHook, store: CheckpointStore, request: Request
) -> tuple[DatabaseStatus, RunPlan, dict[TableName, Sequence[CaptureInstance]]]:
    """Find the tables, their capture instances and their checkpoints.

    :return: with the instances of the tables that can be planned for
    """
    snapshot, failures = _enabled(hook, _snapshot(hook, request), request)
    minutes = snapshot.status.retention_minutes
    plan = RunPlan(
        snapshot.status.name,
        retention=None if minutes is None else datetime.timedelta(minutes=minutes),
        recovery_fork=snapshot.status.recovery_fork_guid,
        kept=SchemaStore(store.variables).find,
        failures=failures,
        keys=_of_tables("keys", request.keys, snapshot),
        partition_by=_of_tables("partition_by", request.partition_by, snapshot),
        choices={
            "columns": _of_tables("columns", request.choices.columns, snapshot),
            "row_filter": _of_tables("row_filters", request.choices.row_filters, snapshot),
            "renames": _of_tables("renames", request.choices.renames, snapshot),
            "masks": _of_tables("masks", request.choices.masks, snapshot),
        },
    )
    plan.warnings += [
        f"pattern {pattern!r} matches no table"
        for pattern in snapshot.matches.empty_patterns
        if not parse_pattern(pattern).names_one
    ]
    for name in snapshot.missing:
        plan.failures[name] = _not_there(hook, name, snapshot.status)
    tables = [table.name for table in snapshot.matches.tables]
    check_names(request.options.target, request.options.table_name, tables, request.options.shapes)
    for table in snapshot.matches.tables:
        instances = snapshot.instances_of(table)
        if instances:
            plan.instances[table.name] = instances
            plan.failures.pop(table.name, None)
        elif request.on_disabled == "skip":
            plan.skipped.append(table.name)
        else:
            plan.failures.setdefault(table.name, _not_tracked(table, snapshot.status))
        if table.name not in plan.skipped:
            try:
                check_name(request.options.table_name, table.name)
            except TargetError as error:
                plan.failures[table.name] = error
    plan.user = snapshot.status.user
    plan.protection = hook.protection({i.source_object_id for group in plan.instances.values() for i in group})
    if not plan.protection.known:
        log.info(
            "%s has no VIEW DEFINITION in %s, so whether row-level security hides rows from it cannot be known",
            plan.user,
            plan.database,
        )
    _read_checkpoints(plan, [*tables, *snapshot.missing], store, request)
    plan.missing = set(snapshot.missing)
    _find_again(plan, tables, store, request)
    return (
        snapshot.status,
        plan,
        {name: instances for name, instances in plan.instances.items() if name not in plan.failures},
    )


def _snapshot(hook: MsSqlCdcHook, request: Request) -> Snapshot:
    names = dict.fromkeys((*request.keys, *request.partition_by, *request.choices.tables))
    return hook.snapshot(request.patterns, request.exclude, tuple(names))


def _of_tables(parameter: str, given: Mapping[str, _T], snapshot: Snapshot) -> dict[TableName, _T]:
    """Return by table what a parameter says by tables' names, those that are not there left out.

    :raises ParameterError: for a name that means none of the tables, or one that another name means too
    """
    found: dict[TableName, _T] = {}
    for text, value in given.items():
        table, pattern = snapshot.matches.named.get(text), parse_pattern(text)
        if table is None and any(matches(pattern, name.schema, name.table) for name in snapshot.missing):
            continue
        if table is None:
            names = ", ".join(str(matched.name) for matched in snapshot.matches.tables)
            raise ParameterError(f"{parameter} names {text!r}, which is none of this run's tables: {names}.")
        if table in found:
            raise ParameterError(f"{parameter} names {table} twice.")
        found[table] = value
    return found


def plan_of_running_job(hook: MsSqlCdcHook, store: CheckpointStore, request: Request, spec: JobSpec) -> RunPlan:
    """The plan of a run that waits for a job which an earlier try submitted: checkpoints, instances and lag alone."""
    plan = RunPlan(spec.source.database, spec.upto, witness=spec.witness, replay=spec.replay)
    names = [table.name for table in spec.tables]
    try:
        plan.lag = hook.lag(hook.database_status(), request.max_lag)
        instances = hook.capture_instances(names)
    except MsSqlCdcError as error:
        if not (error.permanent or isinstance(error, CdcPermissionError)):
            raise
        log.warning("no capture instance can be seen any more: %s", error)
        instances = []
    for instance in instances:
        plan.instances[instance.source] = (*plan.instances.get(instance.source, ()), instance)
    _read_checkpoints(plan, names, store, request)
    return plan


def _read_checkpoints(plan: RunPlan, tables: Iterable[TableName], store: CheckpointStore, request: Request) -> None:
    for name in tables:
        try:
            plan.checkpoints[name] = store.load(request.identity(plan.database, name))
        except CheckpointError as error:
            plan.failures[name] = error


def _enabled(
    hook: MsSqlCdcHook, snapshot: Snapshot, request: Request
) -> tuple[Snapshot, dict[TableName, MsSqlCdcError]]:
    """Enable change data capture where that is asked for; the new state, and the tables for which that failed."""
    if not snapshot.status.cdc_enabled and request.on_disabled != "enable":
        raise CdcDisabledError(
            f"change data capture is off in database {snapshot.status.name}.",
            advice='Run EXEC sys.sp_cdc_enable_db there, or choose on_disabled="enable".',
        )
    if request.on_disabled != "enable":
        return snapshot, {}
    untracked = [table for table in snapshot.matches.tables if not table.tracked]
    if not untracked and snapshot.status.cdc_enabled:
        return snapshot, {}
    hook.enable_database()
    failures: dict[TableName, MsSqlCdcError] = {}
    for table in untracked:
        log.info("enabling change data capture for %s", table.name)
        try:
            hook.enable_table(table.name)
        except MsSqlCdcError as error:
            failures[table.name] = error
    return _snapshot(hook, request), failures


def _not_there(hook: MsSqlCdcHook, name: TableName, status: DatabaseStatus) -> TableNotFoundError:
    near = ", ".join(map(str, hook.similar_tables(name)))
    return TableNotFoundError(
        f"it does not exist in {status.name}, or {status.user} may not see it.",
        table=str(name),
        advice=(f"It sees {near}. " if near else "It sees no table of a name that is near. ")
        + "Correct tables, or GRANT SELECT on it; a pattern with * may match nothing.",
    )


def _find_again(plan: RunPlan, tables: Collection[TableName], store: CheckpointStore, request: Request) -> None:
    """Note the checkpoints that say nothing but that a table was not there, and that now is, under this spelling or
    that of the database."""
    spelled = {
        TableName(pattern.parts[0] or table.schema, pattern.parts[1])
        for pattern in map(parse_pattern, request.patterns)
        for table in tables
        if pattern.names_one and matches(pattern, table.schema, table.table)
    }
    for name in {*tables, *spelled}:
        stored = plan.checkpoints.get(name)
        if name not in tables:
            with suppress(CheckpointError):
                stored = store.load(request.identity(plan.database, name))
        if stored is not None and without_absence(stored) is None:
            plan.found_again.append(name)
            if name in plan.checkpoints:
                plan.checkpoints[name] = None


def _not_tracked(table: SourceTable, status: DatabaseStatus) -> CdcDisabledError:
    if table.tracked:
        return CdcDisabledError(
            f"{status.user!r} sees none of its capture instances.",
            table=str(table.name),
            advice=f"GRANT SELECT ON SCHEMA::[cdc] TO {quote(status.user)}; lets it see them and their change tables; "
            'on_disabled="skip" leaves the table out.',
        )
    return CdcDisabledError(
        "change data capture is off for this table.",
        table=str(table.name),
        advice=f"EXEC sys.sp_cdc_enable_table @source_schema = {literal(table.name.schema)}, "
        f"@source_name = {literal(table.name.table)}, @role_name = NULL switches it on; "
        'on_disabled="enable" does that, on_disabled="skip" leaves the table out.',
    )


def _positions(
    plan: RunPlan, instances: dict[TableName, Sequence[CaptureInstance]], request: Request
) -> dict[str, Lsn]:
    """Return from where events are looked for, by capture instance."""
    positions = {}
    for name in list(instances):
        checkpoint = plan.checkpoints[name]
        try:
            instance = choose_instance(name, instances[name], checkpoint, request.options.shapes)
        except GapError as error:
            if checkpoint is None or not request.options.resnapshot:
                plan.failures[name] = error
                del instances[name]
                continue
            # the newest instance begins anew, or goes on with what it reaches back to
            sinks = {shape: dataclasses.replace(sink, feed=None) for shape, sink in checkpoint.sinks.items()}
            checkpoint = plan.checkpoints[name] = dataclasses.replace(checkpoint, sinks=sinks)
            instance = choose_instance(name, instances[name], checkpoint, request.options.shapes)
        loaded = checkpoint.loaded if checkpoint else {}
        if known := [sink.position for shape, sink in loaded.items() if shape in request.options.shapes]:
            positions[instance.name] = min(known)
    return positions


def leave_out_unreadable(prober: Prober, plan: RunPlan, tables: MutableMapping[TableName, Any]) -> None:
    """Fail the tables whose change tables a probe could not read, each alone.

    :param tables: those that are planned for; the failed ones are removed
    """
    for name in list(tables):
        for instance in plan.instances[name]:
            reason = prober.unreadable.get(instance.name)
            if reason is not None:
                reason.table = str(name)
                plan.failures[name] = _vanished(name, instance) if reason.number == INVALID_OBJECT else reason
                tables.pop(name, None)


def _vanished(name: TableName, instance: CaptureInstance) -> InstanceChangedError:
    return InstanceChangedError(
        f"capture instance {instance.name} vanished while the run was planned.",
        table=str(name),
        advice="Run the task again.",
    )


def witnesses(plan: RunPlan) -> set[Lsn]:
    """Return the LSNs that a probe is to look for, so that ``log_history`` tells whether positions still hold."""
    return {
        sink.witness.lsn
        for checkpoint in plan.checkpoints.values()
        if checkpoint is not None
        for sink in checkpoint.sinks.values()
        if sink.witness is not None
    }


def log_history(status: DatabaseStatus, probe: Probe) -> LogHistory:
    """Return what ``witnesses`` are compared with."""
    return LogHistory(status.max_lsn, probe.min_mapped_lsn, probe.mapped, status.recovery_fork_guid)


def _assess_all(
    hook: MsSqlCdcHook,
    plan: RunPlan,
    instances: dict[TableName, Sequence[CaptureInstance]],
    history: LogHistory,
    probe: Probe,
    request: Request,
) -> None:
    known = [c.position for name in instances if (c := plan.checkpoints[name]) is not None and c.position is not None]
    ddl = hook.ddl_history([i for group in instances.values() for i in group], min(known)) if known else []
    for name, group in instances.items():
        # the min LSN read after the events is the one that counts: cleanup raises the mark before it deletes
        current = [dataclasses.replace(i, min_lsn=probe.min_lsns.get(i.object_id)) for i in group]
        names = {instance.name for instance in group}
        changes = [change for change in ddl if change.capture_instance in names]
        try:
            verdict = _assessed(name, current, plan.checkpoints[name], changes, plan, history, probe, request)
        except MsSqlCdcError as error:
            plan.failures[name] = error
            continue
        if isinstance(verdict, NotYet):
            plan.waiting.append(verdict)
            continue
        plan.candidates[name] = verdict
        if plan.checkpoints[name] is None:
            for other in [i for i in current if i.object_id != verdict.instance.object_id]:
                # one that cannot be read is no alternative
                with suppress(MsSqlCdcError):
                    found = _assessed(name, [other], None, (), plan, history, probe, request)
                    if isinstance(found, Candidate):
                        plan.alternatives.setdefault(name, []).append(found)


def _assessed(
    name: TableName,
    instances: Sequence[CaptureInstance],
    checkpoint: Checkpoint | None,
    ddl: Sequence[DdlChange],
    plan: RunPlan,
    history: LogHistory,
    probe: Probe,
    request: Request,
) -> Candidate | NotYet:
    """Assess a table by some of its instances, and prove that the login reads what it holds.

    :raises MsSqlCdcError: if it cannot be loaded so
    """
    verdict = assess(
        name,
        instances,
        checkpoint,
        history,
        ddl,
        probe.cut,
        request.options,
        plan.keys.get(name),
        plan.choice(name),
        request.salt_check,
        plan.kept,
    )
    if isinstance(verdict, Candidate):
        plan.warn_of_masks(verdict.instance, verdict.selection, allowed=request.allow_masked)
    return verdict


def _leave_out_unprobed(plan: RunPlan, probed: Collection[str]) -> None:
    """Fail the tables that would go on in a change table that nobody looked into: they would count as quiet."""
    for name, candidate in list(plan.candidates.items()):
        if candidate.position is not None and candidate.instance.name not in probed:
            del plan.candidates[name]
            plan.failures[name] = InstanceChangedError(
                "its capture instances, or what they still hold, changed while the run was planned.",
                table=str(name),
                advice="Run the task again.",
            )


def _look_again(plan: RunPlan, probe: Probe, request: Request, history: LogHistory) -> None:
    """Look at what a second probe found: purges and restores of after the first one, which that could not see."""
    for name, candidate in list(plan.candidates.items()):
        min_lsn = probe.min_lsns.get(candidate.instance.object_id)
        try:
            if min_lsn is None:
                raise _vanished(name, candidate.instance)
            if candidate.checkpoint is not None:
                check_history(name, candidate.checkpoint, history)
            plan.candidates[name] = closed_gap(candidate, min_lsn, request.options)
        except MsSqlCdcError as error:
            del plan.candidates[name]
            plan.failures[name] = error


def _limited(hook: MsSqlCdcHook, plan: RunPlan, probe: Probe, request: Request, upto: Lsn) -> Lsn:
    """Return the cut that the limits allow, counted over all tables that will be loaded from a position."""
    windows = {
        c.instance.name: c.position
        for c in plan.candidates.values()
        if c.position is not None and c.position < upto and c.instance.name in probe.newest
    }
    if not windows:
        return upto
    if request.max_transactions is not None:
        upto = hook.cut_by_transactions(windows, upto, request.max_transactions)
    if request.max_rows is not None:
        upto = hook.cut_by_rows(windows, upto, request.max_rows)
    return upto


def _decide(plan: RunPlan, probe: Probe, request: Request, upto: Lsn) -> None:
    for name, candidate in plan.candidates.items():
        if needs_load(candidate, upto, candidate.instance.name in probe.newest):
            partition_by = plan.partition_by.get(name, ())
            others = tuple(table_spec(each, request.options, partition_by) for each in plan.alternatives.get(name, ()))
            plan.specs.append(
                dataclasses.replace(table_spec(candidate, request.options, partition_by), alternatives=others)
            )
        elif (checkpoint := quiet_checkpoint(candidate, upto, plan.witness)) is not None:
            plan.quiet[name] = checkpoint
