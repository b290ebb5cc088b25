"""Asks the source, reads the checkpoints, and decides for every table of a run what is to be done."""

from __future__ import annotations

import dataclasses
import datetime
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, CheckpointStore, Identity, SinkState, Witness
from airflow_provider_mssql_cdc.core.database import DatabaseStatus, Probe, Snapshot, SourceTable, TimeOperator
from airflow_provider_mssql_cdc.core.exceptions import (
    CdcDisabledError,
    GapError,
    IntervalError,
    IntervalNotReachedError,
    MsSqlCdcError,
    RestoredError,
)
from airflow_provider_mssql_cdc.core.interval import check_interval, server_time
from airflow_provider_mssql_cdc.core.lsn import Lsn
from airflow_provider_mssql_cdc.core.plan import (
    Candidate,
    LogHistory,
    NotYet,
    SinkOptions,
    assess,
    choose_instance,
    choose_key,
    needs_load,
    quiet_checkpoint,
    table_spec,
)
from airflow_provider_mssql_cdc.core.spec import ReplaySpec, TableSpec
from airflow_provider_mssql_cdc.core.table import CaptureInstance, TableName, TableSchema
from airflow_provider_mssql_cdc.core.target import check_names
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Request:
    """What the DAG author asked for.

    :param keys: table as ``schema.table`` to key columns
    :param on_disabled: ``fail``, ``skip`` or ``enable``
    """

    connection: str
    patterns: tuple[str, ...]
    exclude: tuple[str, ...]
    options: SinkOptions
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict)
    on_disabled: str = "fail"
    max_transactions: int | None = None
    max_rows: int | None = None

    def identity(self, database: str, table: TableName) -> Identity:
        """Return what names a table's checkpoint."""
        return Identity(self.connection, database, table, self.options.target.address)


@dataclass(slots=True)
class RunPlan:
    """What a run has to do.

    :param upto: the cut; None while nothing at all is captured
    :param retention: of the change tables; None where unknown
    :param specs: tables that the Spark job has to load
    :param quiet: checkpoints of tables without events, moved to the cut
    :param waiting: tables that the capture has not reached yet
    :param skipped: tables without CDC, left out on request
    :param failures: tables that cannot be loaded
    :param candidates: what was found out of each table that can be loaded
    :param instances: capture instances of each matched table that has any
    """

    database: str
    upto: Lsn | None = None
    retention: datetime.timedelta | None = None
    witness: Witness | None = None
    specs: list[TableSpec] = field(default_factory=list)
    quiet: dict[TableName, Checkpoint] = field(default_factory=dict)
    waiting: list[NotYet] = field(default_factory=list)
    skipped: list[TableName] = field(default_factory=list)
    failures: dict[TableName, MsSqlCdcError] = field(default_factory=dict)
    candidates: dict[TableName, Candidate] = field(default_factory=dict)
    checkpoints: dict[TableName, Checkpoint | None] = field(default_factory=dict)
    instances: dict[TableName, Sequence[CaptureInstance]] = field(default_factory=dict)
    replay: ReplaySpec | None = None
    warnings: list[str] = field(default_factory=list)


def plan_load(hook: MsSqlCdcHook, store: CheckpointStore, request: Request, upto: Lsn | None) -> RunPlan:
    """Plan a load of all tables to one cut.

    :param upto: the cut; None takes the max LSN
    :raises MsSqlCdcError: if nothing can be planned at all; what concerns one table is in ``failures``
    """
    status, plan, instances = _look(hook, store, request)
    if upto is not None and (status.max_lsn is None or upto > status.max_lsn):
        raise RestoredError(
            f"the cut {upto} lies above the database's newest position {status.max_lsn}.",
            advice="The database was restored, or this is another one: clear the sensor, so that it takes a new cut.",
        )
    positions = _positions(plan, instances, request)
    probe = hook.probe(positions, upto=upto, witnesses=_witnesses(plan))
    _assess_all(hook, plan, instances, LogHistory(status.max_lsn, probe.min_mapped_lsn, probe.mapped), probe, request)
    cut = probe.cut
    if cut is not None:
        limited = _limited(hook, plan, probe, request, cut)
        if limited < cut:
            log.info("limited to %s of %s", limited, cut)
            cut, probe = limited, hook.probe(positions, upto=limited, witnesses=_witnesses(plan))
        plan.upto, plan.witness = cut, probe.witness
        _decide(plan, probe, request, cut)
    return plan


def _look(
    hook: MsSqlCdcHook, store: CheckpointStore, request: Request
) -> tuple[DatabaseStatus, RunPlan, dict[TableName, Sequence[CaptureInstance]]]:
    """Find the tables, their capture instances and their checkpoints."""
    snapshot = hook.snapshot(request.patterns, request.exclude)
    snapshot = _enabled(hook, snapshot, request)
    minutes = snapshot.status.retention_minutes
    plan = RunPlan(snapshot.status.name, retention=None if minutes is None else datetime.timedelta(minutes=minutes))
    plan.warnings += [f"pattern {pattern!r} matches no table" for pattern in snapshot.matches.empty_patterns]
    tables = [table.name for table in snapshot.matches.tables]
    check_names(request.options.target, request.options.table_name, tables, request.options.shapes)
    for table in snapshot.matches.tables:
        instances = snapshot.instances_of(table)
        if instances:
            plan.instances[table.name] = instances
        elif request.on_disabled == "skip":
            plan.skipped.append(table.name)
        else:
            plan.failures[table.name] = _not_tracked(table, snapshot.status)
    for name in plan.instances:
        try:
            plan.checkpoints[name] = store.load(request.identity(plan.database, name))
        except MsSqlCdcError as error:
            plan.failures[name] = error
    return (
        snapshot.status,
        plan,
        {name: instances for name, instances in plan.instances.items() if name not in plan.failures},
    )


def _enabled(hook: MsSqlCdcHook, snapshot: Snapshot, request: Request) -> Snapshot:
    if not snapshot.status.cdc_enabled and request.on_disabled != "enable":
        raise CdcDisabledError(
            f"change data capture is off in database {snapshot.status.name}.",
            advice='Run EXEC sys.sp_cdc_enable_db there, or choose on_disabled="enable".',
        )
    if request.on_disabled != "enable":
        return snapshot
    untracked = [table for table in snapshot.matches.tables if not snapshot.instances_of(table)]
    if not untracked and snapshot.status.cdc_enabled:
        return snapshot
    hook.enable_database()
    for table in untracked:
        log.info("enabling change data capture for %s", table.name)
        hook.enable_table(table.name)
    return hook.snapshot(request.patterns, request.exclude)


def _not_tracked(table: SourceTable, status: DatabaseStatus) -> CdcDisabledError:
    why = (
        f"login {status.user!r} sees none of its capture instances: SELECT on all captured columns and membership in "
        "the gating role are needed."
        if table.tracked
        else "change data capture is off for this table."
    )
    return CdcDisabledError(
        why,
        table=str(table.name),
        advice=f"EXEC sys.sp_cdc_enable_table @source_schema = N'{table.name.schema}', "
        f"@source_name = N'{table.name.table}', @role_name = NULL switches it on; "
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
            instance = choose_instance(name, instances[name], checkpoint)
        except GapError as error:
            if request.options.resnapshot:
                # the first load that follows starts from the newest instance
                plan.checkpoints[name] = dataclasses.replace(checkpoint, instance=None) if checkpoint else None
            else:
                plan.failures[name] = error
                del instances[name]
            continue
        sinks = (
            [s.read_through for shape, s in checkpoint.sinks.items() if shape in request.options.shapes]
            if checkpoint
            else []
        )
        if sinks:
            positions[instance.name] = min(sinks)
    return positions


def _witnesses(plan: RunPlan) -> set[Lsn]:
    return {
        sink.witness.lsn
        for checkpoint in plan.checkpoints.values()
        if checkpoint is not None
        for sink in checkpoint.sinks.values()
        if sink.witness is not None
    }


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
        try:
            verdict = assess(
                name,
                current,
                plan.checkpoints[name],
                history,
                [change for change in ddl if change.capture_instance in names],
                probe.cut,
                request.options,
                request.keys.get(str(name)),
            )
        except MsSqlCdcError as error:
            plan.failures[name] = error
            continue
        if isinstance(verdict, NotYet):
            plan.waiting.append(verdict)
        else:
            plan.candidates[name] = verdict


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
            plan.specs.append(table_spec(candidate, request.options))
        elif (checkpoint := quiet_checkpoint(candidate, upto, probe.witness)) is not None:
            plan.quiet[name] = checkpoint


def plan_replay(
    hook: MsSqlCdcHook,
    store: CheckpointStore,
    request: Request,
    interval: tuple[datetime.datetime | None, datetime.datetime | None],
    timezone: str | None,
    suffix: str,
) -> RunPlan:
    """Plan to write a past interval into ``history`` once more.

    :param interval: [start, end), with zones
    :param timezone: IANA zone of the server's clock; None is accepted only from a server that runs in UTC
    :param suffix: of the table to build anew; '' inserts what is missing in the loaded one
    :raises IntervalError: if the interval has no positions
    """
    start, end = check_interval(*interval)
    status, plan, instances = _look(hook, store, request)
    after, upto = _resolve(hook, status, start, end, timezone)
    first = hook.transactions_between(after, upto, limit=1)
    if not first:
        log.info("no transaction was committed from %s to %s", start, end)
        return plan
    # The same transactions, from as late a start as possible: a table that was enabled between the last transaction
    # before the interval and the first within it lacks nothing.
    after = first[0].lsn.previous()
    plan.replay, plan.upto = ReplaySpec(after, upto, suffix), upto
    chosen: dict[TableName, CaptureInstance] = {}
    for name, group in instances.items():
        try:
            chosen[name] = choose_instance(name, group, plan.checkpoints[name])
        except MsSqlCdcError as error:
            plan.failures[name] = error
    probe = hook.probe({instance.name: after for instance in chosen.values()}, upto=upto)
    for name, instance in chosen.items():
        try:
            spec = _replayed(name, instance, plan.checkpoints[name], plan.replay, probe, request)
        except MsSqlCdcError as error:
            plan.failures[name] = error
        else:
            plan.specs += [spec] if spec is not None else []
    return plan


def _resolve(
    hook: MsSqlCdcHook, status: DatabaseStatus, start: datetime.datetime, end: datetime.datetime, timezone: str | None
) -> tuple[Lsn, Lsn]:
    zone = timezone or hook.server_timezone()
    if zone is None or (timezone is None and zone != "UTC"):
        raise IntervalError(
            f"the server's clock runs in {zone or 'a zone that it cannot tell'}, and CDC keeps no other time.",
            advice='Name its IANA zone: server_timezone="Europe/Berlin", for instance.',
        )
    low, high = server_time(start, zone), server_time(end, zone)
    if status.max_lsn_time is None or status.max_lsn_time < high:
        raise IntervalNotReachedError(
            f"the capture has reached {status.max_lsn_time}, not yet the interval's end {high} (server time).",
            advice=hook.agent_health().detail,
        )
    after = hook.time_to_lsn(TimeOperator.LARGEST_LESS_THAN, low)
    upto = hook.time_to_lsn(TimeOperator.LARGEST_LESS_THAN, high)
    if after is None or upto is None:
        raise IntervalError(
            f"nothing is known of the time before {low} (server time): it is older than what CDC keeps.",
            advice="Choose a later interval; the retention is that of the cleanup job (sys.sp_cdc_help_jobs).",
        )
    return after, upto


def _replayed(
    name: TableName,
    instance: CaptureInstance,
    checkpoint: Checkpoint | None,
    replay: ReplaySpec,
    probe: Probe,
    request: Request,
) -> TableSpec | None:
    """Return what is to be replayed of a table, None if nothing happened to it in the interval."""
    min_lsn = probe.min_lsns.get(instance.object_id)
    if min_lsn is None or min_lsn > replay.after.next():
        raise GapError(
            str(name),
            replay.after,
            min_lsn or replay.upto,
            advice="This interval can no longer be replayed; choose a later one.",
        )
    newest = probe.newest.get(instance.name)
    if newest is None:
        return None
    key, unique = choose_key(name, instance, request.options.shapes, request.keys.get(str(name)))
    sinks: dict[str, SinkState | None] = {}
    for shape in request.options.shapes:
        stored = checkpoint.sinks.get(shape) if checkpoint else None
        if replay.suffix:
            sinks[shape] = None
        elif stored is None or stored.read_through < newest:
            raise IntervalNotReachedError(
                f"its {shape} is loaded up to {stored.read_through if stored else 'nothing'}, and the interval's last "
                f"event is at {newest}: there is nothing to replay yet.",
                table=str(name),
                advice="Let the scheduled load reach the interval's end first.",
            )
        else:
            # nothing lies between the last event and the interval's end
            sinks[shape] = dataclasses.replace(stored, read_through=max(stored.read_through, replay.upto))
    candidate = Candidate(name, instance, TableSchema(instance.columns, key), unique, sinks, checkpoint)
    return table_spec(candidate, request.options)
