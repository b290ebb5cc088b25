"""Finds the tables of a run, what they are read by, and their checkpoints."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Identity
from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.copy_requests import CopyRequest, CopyRequests
from airflow_provider_mssql_cdc.core.database import DatabaseStatus
from airflow_provider_mssql_cdc.core.entry_values import CDC
from airflow_provider_mssql_cdc.core.exceptions import (
    CdcDisabledError,
    CdcPermissionError,
    CheckpointError,
    CopyAskedError,
    FeedError,
    MaskedError,
    MsSqlCdcError,
    ParameterError,
    RestoredError,
    TableNotFoundError,
    TargetError,
)
from airflow_provider_mssql_cdc.core.feed import DroppedColumn, Feed, Probe
from airflow_provider_mssql_cdc.core.healing import Healing
from airflow_provider_mssql_cdc.core.lag import Lag
from airflow_provider_mssql_cdc.core.lineage import OtherPosition, Witness
from airflow_provider_mssql_cdc.core.patterns import matches, parse_pattern
from airflow_provider_mssql_cdc.core.plan import (
    Candidate,
    NotYet,
)
from airflow_provider_mssql_cdc.core.position import Cut
from airflow_provider_mssql_cdc.core.proposal import NewInstance, Proposal
from airflow_provider_mssql_cdc.core.protection import Protection, check_protection
from airflow_provider_mssql_cdc.core.refused_change import RefusedChange
from airflow_provider_mssql_cdc.core.resting import LONGEST_IDLE, Turn, default_max_idle, fingerprint, without_absence
from airflow_provider_mssql_cdc.core.schema import KeptSchemas, SchemaStore, unknown_schema
from airflow_provider_mssql_cdc.core.schema_sight import SchemaEvent, Sight
from airflow_provider_mssql_cdc.core.selection import Selection
from airflow_provider_mssql_cdc.core.spec import Chosen, JobSpec, ReplaySpec, TableSpec
from airflow_provider_mssql_cdc.core.steps import TableSteps
from airflow_provider_mssql_cdc.core.table import TableName, TableSchema
from airflow_provider_mssql_cdc.core.table_options import TableOptions
from airflow_provider_mssql_cdc.core.target import check_name, check_names
from airflow_provider_mssql_cdc.core.waiting import of_source
from airflow_provider_mssql_cdc.hooks.change_source import ChangeSource, discover
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.operators.absent import not_there, renamed, renamed_of_all
from airflow_provider_mssql_cdc.operators.given_up import GivenUp, given_up
from airflow_provider_mssql_cdc.operators.request import Request
from airflow_provider_mssql_cdc.operators.sourcing import enable, settled, sources_named, without_feed

log = logging.getLogger(__name__)


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
    :param turns: which sinks of each table the run is about
    :param steps: of each table that can be loaded, as its checkpoint says
    :param candidates: what was found out of each table that can be loaded
    :param alternatives: the same by other capture instances, for tables without a checkpoint
    :param checkpoints: of each table whose checkpoint can be read; None for one that has none
    :param feeds: of each matched table that has any
    :param options: the record of each table, also of those that are not there
    :param lag: of the capture; None where it is in time
    :param user: database user of the login
    :param protection: what keeps it from reading what the tables hold
    :param missing: named tables that are not there, or cannot be seen; they are among the failures
    :param found_again: tables whose checkpoints say nothing but that they were not there, and that now are
    :param kept: schemas by their hash
    :param instance_names: asks for the names of all capture instances, with the object_id of each source table
    :param max_idle: for so long a sink that failed for good is left alone
    :param requests: what people ask of the copies of tables
    :param began: ``time.monotonic`` before anything was read
    :param server_time: the server's local time then; None where it was not asked
    :param given_up: copies that end
    :param sights: what was seen of the columns of each table
    :param gone: tables that were dropped since they were loaded, with the events of that; None of those that were told
        and are still to be written
    :param refused_changes: of columns, with which tables are not to go on
    :param new_instances: that are to be made
    :param proposed: what people are told of those that they are to make, of each table of which that is known
    :param drops: columns that source tables have dropped, of those whose targets are to drop them, too; by feed
    :param healing: what heals gaps of tables whose ``on_gap`` names Change Tracking
    :param noted: their versions of Change Tracking that checkpoints are to keep
    :param refused: why no copy is asked for, though the run's params name some
    :param small: it has no more change rows than the request calls few, and nothing to copy
    """

    connection: str
    database: str
    upto: Cut | None = None
    retention: datetime.timedelta | None = None
    witness: Witness | None = None
    recovery_fork: str | None = None
    specs: list[TableSpec] = field(default_factory=list)
    quiet: dict[TableName, Checkpoint] = field(default_factory=dict)
    waiting: list[NotYet] = field(default_factory=list)
    skipped: list[TableName] = field(default_factory=list)
    failures: dict[TableName, MsSqlCdcError] = field(default_factory=dict)
    turns: dict[TableName, Turn] = field(default_factory=dict)
    steps: dict[TableName, TableSteps] = field(default_factory=dict)
    candidates: dict[TableName, Candidate] = field(default_factory=dict)
    alternatives: dict[TableName, list[Candidate]] = field(default_factory=dict)
    checkpoints: dict[TableName, Checkpoint | None] = field(default_factory=dict)
    feeds: dict[TableName, Sequence[Feed]] = field(default_factory=dict)
    options: dict[TableName, TableOptions] = field(default_factory=dict)
    replay: ReplaySpec | None = None
    warnings: list[str] = field(default_factory=list)
    refused: CopyAskedError | None = None
    lag: Lag | None = None
    user: str = ""
    protection: Protection = field(default_factory=Protection)
    missing: set[TableName] = field(default_factory=set)
    found_again: list[TableName] = field(default_factory=list)
    kept: KeptSchemas = unknown_schema
    instance_names: Callable[[], Mapping[str, int]] = dict
    max_idle: datetime.timedelta = LONGEST_IDLE
    small: bool = False
    requests: dict[TableName, CopyRequest] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    server_time: datetime.datetime | None = None
    given_up: dict[TableName, GivenUp] = field(default_factory=dict)
    sights: dict[TableName, Sight] = field(default_factory=dict)
    gone: dict[TableName, SchemaEvent | None] = field(default_factory=dict)
    refused_changes: dict[TableName, RefusedChange] = field(default_factory=dict)
    new_instances: dict[TableName, NewInstance] = field(default_factory=dict)
    proposed: dict[TableName, tuple[Proposal, ...]] = field(default_factory=dict)
    drops: dict[str, tuple[DroppedColumn, ...]] = field(default_factory=dict)
    healing: dict[TableName, Healing] = field(default_factory=dict)
    noted: dict[TableName, tuple[OtherPosition, ...]] = field(default_factory=dict)

    def identity(self, name: TableName) -> Identity:
        """The identity of a table's checkpoint."""
        options = self.options[name]
        return Identity.of(self.connection, self.database, name, options.target.address, options.table_name)

    def witness_of(self, probe: Probe) -> Witness | None:
        """What tells later whether the cut of a probe still belongs to this lineage."""
        return probe.witness and dataclasses.replace(probe.witness, recovery_fork=self.recovery_fork)

    def keep_witness(self, probe: Probe) -> None:
        """Keep the witness of the cut, if it has one."""
        self.witness = self.witness_of(probe) or self.witness

    def warn_of_masks(self, instance: Feed, schema: TableSchema, selection: Selection, *, allowed: bool) -> None:
        """Prove that the login reads what the table holds, or warn of it where that is enough.

        :param schema: of the load
        :raises MaskedError: if it does not
        """
        warning = check_protection(self.protection, instance, schema, selection, self.user, allowed=allowed)
        if warning is not None:
            self.warnings.append(f"{instance.source}: {warning}")

    def hides(self, feed: Feed, wider: Chosen) -> str | None:
        """What keeps the login from reading the rows with columns that sinks are to get; None where nothing does."""
        try:
            check_protection(self.protection, feed, wider.schema, wider.selection, self.user, allowed=False)
        except MaskedError as error:
            return f"it is filled by a copy of the values themselves, and {error.message}"
        return None

    def protection_of(self, table: TableSpec) -> str | None:
        """What the login reads masked, or filtered; None where it reads all."""
        return check_protection(self.protection, table.feed, table.schema, table.selection, self.user, allowed=True)


def look(
    hook: MsSqlCdcHook, store: CheckpointStore, request: Request, sources: Sequence[ChangeSource]
) -> tuple[DatabaseStatus, RunPlan, dict[TableName, Sequence[Feed]]]:
    """Find the tables, what they are read by, and their checkpoints.

    :param sources: of two that have feeds of a table the first one counts
    :return: with the feeds of the tables that can be planned for
    """
    began = time.monotonic()
    try:
        survey = hook.survey(request.patterns, request.exclude, captured=request.captured)
    except TableNotFoundError as error:
        raise renamed_of_all(hook, store, request) or error from None
    named = sources_named(request, survey)
    feeds = discover(sources, survey, named)
    failures: dict[TableName, MsSqlCdcError] = {}
    if request.on_disabled == "enable":
        if (failed := enable(hook, survey, feeds, named, sources, request)) is not None:
            failures = failed
            survey = hook.survey(request.patterns, request.exclude, captured=request.captured)
            named = sources_named(request, survey)
            feeds = discover(sources, survey, named)
    elif not survey.status.cdc_enabled and not feeds and {*named.values()} == {CDC}:
        raise CdcDisabledError(
            f"change data capture is off in database {survey.status.name}.",
            advice='Run EXEC sys.sp_cdc_enable_db there, or choose on_disabled="enable".',
        )
    failures = {name: error for name, error in failures.items() if name not in feeds}
    minutes = survey.status.retention_minutes
    plan = RunPlan(
        request.connection,
        survey.status.name,
        retention=None if minutes is None else datetime.timedelta(minutes=minutes),
        recovery_fork=survey.status.recovery_fork_guid,
        kept=SchemaStore(store.variables).find,
        instance_names=functools.cache(hook.instance_names),
        failures=failures,
        began=began,
        server_time=survey.status.server_time,
    )
    plan.warnings += [
        f"pattern {pattern!r} matches no table"
        for pattern in survey.matches.empty_patterns
        if not parse_pattern(pattern).names_one
    ]
    for name in survey.missing:
        plan.options[name] = request.options(name)
        plan.failures[name] = not_there(hook, name, survey.status)
    tables = [table.name for table in survey.matches.tables]
    for name in tables:
        try:
            plan.options[name] = request.deciding(name, survey.matches.by[name])
        except ParameterError as error:
            error.table, plan.options[name] = str(name), request.defaults
            plan.failures[name] = error
    check_names(((name, what), parts) for name in tables for what, parts in plan.options[name].target_tables(name))
    for table in survey.matches.tables:
        if table.name in feeds:
            plan.feeds[table.name] = feeds[table.name][0]
        elif request.on_disabled == "skip":
            plan.skipped.append(table.name)
        else:
            plan.failures.setdefault(table.name, without_feed(table, survey.status, named[table.name]))
        if table.name not in plan.skipped:
            try:
                check_name(plan.options[table.name].table_name, table.name)
            except TargetError as error:
                plan.failures[table.name] = error
    plan.user = survey.status.user
    ids = {feed.source_object_id for group in plan.feeds.values() for feed in group}
    plan.protection = hook.protection(ids, captured=survey.status.cdc_enabled)
    if not plan.protection.known:
        log.info(
            "%s has no VIEW DEFINITION in %s, so whether row-level security hides rows from it cannot be known",
            plan.user,
            plan.database,
        )
    read_checkpoints(plan, [*tables, *survey.missing], store)
    _settle(plan, feeds, request)
    for name in survey.missing:
        plan.failures[name] = renamed(hook, name, plan.checkpoints.get(name)) or plan.failures[name]
    plan.missing = set(survey.missing)
    _find_again(plan, tables, store, request)
    plan.max_idle, now = request.max_idle or default_max_idle(minutes), datetime.datetime.now(datetime.UTC)
    _give_up_copies(plan, tables, request.copy_keep, now)
    for name in tables:
        checkpoint, copy = plan.checkpoints.get(name), plan.requests.get(name)
        plan.turns[name] = Turn.of(
            checkpoint,
            plan.options[name].shapes,
            seen=fingerprint(plan.feeds.get(name, ())),
            now=now,
            max_idle=plan.max_idle,
            asked=request.asked,
            copies=copy is not None and copy.mends(checkpoint),
        )
    return (
        survey.status,
        plan,
        {name: group for name, group in plan.feeds.items() if name not in plan.failures and plan.turns[name].shapes},
    )


def _settle(plan: RunPlan, found: Mapping[TableName, Sequence[Sequence[Feed]]], request: Request) -> None:
    """Settle by what each table is read, which its checkpoint says."""
    for name in plan.feeds.keys() & plan.checkpoints.keys():
        try:
            plan.feeds[name] = settled(name, found[name], plan.options[name], plan.checkpoints[name], request)
        except (FeedError, RestoredError) as error:
            plan.failures.setdefault(name, error)


def _give_up_copies(
    plan: RunPlan, tables: Iterable[TableName], keep: datetime.timedelta, now: datetime.datetime
) -> None:
    """End the copies all of whose shapes have failed for so long; nothing of that is stored yet."""
    for name in tables:
        found = given_up(plan.checkpoints.get(name), plan.requests.get(name), keep, now)
        if isinstance(found, str):
            plan.warnings.append(f"{name}: {found}")
        elif found is not None:
            plan.given_up[name] = found
            plan.checkpoints[name] = found.after


def read_checkpoints(plan: RunPlan, tables: Iterable[TableName], store: CheckpointStore) -> None:
    """Read the tables' checkpoints, and what people ask of their copies; what cannot be read fails its table."""
    requests = CopyRequests(store.variables)
    for name in tables:
        try:
            stored = store.load(plan.identity(name))
            object_id = next((feed.source_object_id for feed in plan.feeds.get(name, ())), None)
            plan.checkpoints[name] = stored and of_source(stored, object_id)
            if (request := requests.load(plan.identity(name))) is not None:
                plan.requests[name] = request
        except CheckpointError as error:
            plan.failures[name] = error


def _find_again(plan: RunPlan, tables: Collection[TableName], store: CheckpointStore, request: Request) -> None:
    """Note the checkpoints that say nothing but that a table was not there, and that now is, under this spelling or
    that of the database."""
    spelled = {
        TableName(pattern.parts[0] or table.schema, pattern.parts[1])
        for pattern in (entry.pattern for entry in request.entries)
        for table in tables
        if pattern.names_one and matches(pattern, table.schema, table.table)
    }
    for name in {*tables, *spelled}:
        stored = plan.checkpoints.get(name)
        if name not in tables:
            with suppress(CheckpointError):
                stored = store.load(request.identity(plan.database, name, request.options(name)))
        if stored is not None and without_absence(stored) is None:
            plan.found_again.append(name)
            if name in plan.checkpoints:
                plan.checkpoints[name] = None


def plan_of_running_job(
    hook: MsSqlCdcHook, store: CheckpointStore, request: Request, spec: JobSpec, sources: Sequence[ChangeSource]
) -> RunPlan:
    """The plan of a run that waits for a job which an earlier try submitted: checkpoints, feeds and lag alone."""
    names = [table.name for table in spec.tables]
    plan = RunPlan(
        request.connection,
        spec.source.database,
        spec.upto,
        witness=spec.witness,
        replay=spec.replay,
        # where CDC can no longer be seen: else the server says below which entry decides
        options={name: request.options(name) for name in names},
    )
    try:
        if any(table.feed.CAN.captured for table in spec.tables):
            plan.lag = hook.lag(hook.database_status(), request.max_lag)
        survey = hook.survey(request.patterns, request.exclude, captured=request.captured)
        for name in survey.matches.by.keys() & set(names):
            # of entries that have changed since and do not go together any more the server says nothing
            with suppress(ParameterError):
                plan.options[name] = request.deciding(name, survey.matches.by[name])
        found = discover(sources, survey, sources_named(request, survey))
        plan.feeds.update(
            {
                table.name: group
                for table in spec.tables
                for group in found.get(table.name, ())
                if isinstance(group[0], type(table.feed))
            }
        )
    except MsSqlCdcError as error:
        if not (error.permanent or isinstance(error, CdcPermissionError)):
            raise
        log.warning("what the tables are read by can no longer be seen: %s", error)
    read_checkpoints(plan, names, store)
    return plan
