"""Plans a replay: from an interval of the server's clock to the window that is written once more."""

from __future__ import annotations

import dataclasses
import datetime
import logging

from airflow_provider_mssql_cdc.core.adding import Adding
from airflow_provider_mssql_cdc.core.checkpoint import SinkState
from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.choice import check_selection, select
from airflow_provider_mssql_cdc.core.database import DatabaseStatus
from airflow_provider_mssql_cdc.core.exceptions import (
    FeedError,
    GapError,
    IntervalNotReachedError,
    MsSqlCdcError,
    SourceRestoredError,
)
from airflow_provider_mssql_cdc.core.feed import Feed, Probe, refused_options
from airflow_provider_mssql_cdc.core.feed_choice import choose_feed
from airflow_provider_mssql_cdc.core.filling import own_columns
from airflow_provider_mssql_cdc.core.going_on import ids_there
from airflow_provider_mssql_cdc.core.interval import Edge, check_interval, window_of
from airflow_provider_mssql_cdc.core.key import choose_key
from airflow_provider_mssql_cdc.core.plan import Candidate, check_lineage
from airflow_provider_mssql_cdc.core.position import Cut, Lsn, Window, is_gap
from airflow_provider_mssql_cdc.core.schema_change import check_ddl, check_kept_columns, check_schema, schema_of
from airflow_provider_mssql_cdc.core.spec import Chosen, ReplaySpec, TableSpec
from airflow_provider_mssql_cdc.core.steps import replay_steps
from airflow_provider_mssql_cdc.core.table import TableName, TableSchema
from airflow_provider_mssql_cdc.core.table_spec import table_spec
from airflow_provider_mssql_cdc.hooks.change_source import CdcSource
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.hooks.tracking_source import TrackingSource
from airflow_provider_mssql_cdc.operators.finding import RunPlan, look
from airflow_provider_mssql_cdc.operators.planning import leave_out_unreadable, witnesses
from airflow_provider_mssql_cdc.operators.request import Request

log = logging.getLogger(__name__)


def plan_replay(
    hook: MsSqlCdcHook,
    store: CheckpointStore,
    request: Request,
    interval: tuple[Edge, Edge],
    timezone: str | None,
    suffix: str,
) -> RunPlan:
    """Plan to write a past interval into ``history`` once more.

    :param interval: [start, end), with zones; or (after, upto] as LSNs
    :param timezone: IANA zone of the server's clock; None is accepted only from a server that runs in UTC
    :param suffix: of the table to build anew; '' inserts what is missing in the loaded one
    :raises IntervalError: if the interval has no positions
    :raises SourceRestoredError: if the database was restored meanwhile
    """
    window = window_of(*interval)
    times = check_interval(*interval) if window is None else None
    source = CdcSource(hook)
    status, plan, feeds = look(hook, store, request, (source, TrackingSource(hook)))
    if times is not None:
        after, upto = interval_positions(hook, *times, timezone)
    else:
        assert window is not None
        after, upto = window_positions(hook, status, window)
    first = hook.transactions_between(after, upto, limit=1)
    if not first:
        log.info("no transaction was committed from %s to %s", *(times or (after, upto)))
        return plan
    # The same transactions, from as late a start as possible: a table that was enabled between the last transaction
    # before the interval and the first within it lacks nothing.
    after = first[0].lsn.previous()
    plan.replay, plan.upto = ReplaySpec(after, upto, suffix), Cut.at(upto)
    chosen: dict[TableName, Feed] = {}
    for name, group in feeds.items():
        try:
            feed = choose_feed(name, group, plan.checkpoints[name], plan.options[name].shapes)
            for why in refused_options(feed, replay=True):
                raise FeedError(f"{why}.", table=str(name))
            chosen[name] = feed
        except MsSqlCdcError as error:
            plan.failures[name] = error
    positions = {feed.name: after for feed in chosen.values()}
    probe = source.probe(positions, status=status, upto=upto, witnesses=witnesses(plan))
    leave_out_unreadable(source, plan, chosen)
    if probe.cut != upto:
        raise SourceRestoredError(
            f"the interval's last commit was {upto}, and {probe.cut} is the last one up to there now: the database was "
            "restored while the replay was planned.",
            advice="Run the task again.",
        )
    plan.keep_witness(probe)
    ddl = source.ddl(chosen.values())
    for name, feed in chosen.items():
        checkpoint = plan.checkpoints[name]
        try:
            for sink in checkpoint.loaded.values() if checkpoint is not None else ():
                check_lineage(name, sink, probe.lineage)
            check_ddl(name, [change for change in ddl if change.capture_instance == feed.name], after, upto)
            spec = _replayed(name, feed, plan, probe, request)
            if spec is not None:
                plan.warn_of_masks(feed, spec.schema, spec.selection, allowed=plan.options[name].allow_masked)
        except MsSqlCdcError as error:
            plan.failures[name] = error
        else:
            plan.specs += [spec] if spec is not None else []
    return plan


def window_positions(hook: MsSqlCdcHook, status: DatabaseStatus, window: Window) -> tuple[Lsn, Lsn]:
    """A window of LSNs, which need not be those of commits, up to its last commit.

    :raises IntervalNotReachedError: if the capture has not come so far
    """
    after, upto = Lsn.parse(window.after.text), Lsn.parse(window.upto.text)
    if status.max_lsn is None or status.max_lsn < upto:
        raise IntervalNotReachedError(
            f"the capture has reached {status.max_lsn or 'nothing'}, not yet the interval's end {upto}.",
            advice=hook.agent_health().detail,
        )
    last = hook.witness(upto)
    return after, max(after, Lsn.parse(last.lsn.text)) if last is not None else after


def interval_positions(
    hook: MsSqlCdcHook, start: datetime.datetime, end: datetime.datetime, timezone: str | None
) -> tuple[Lsn, Lsn]:
    """The window (after, upto] of an interval [start, end); of intervals that follow each other, one has a commit.

    A commit belongs to the interval in which the log reached its time first. Where the clock falls slightly, by no more
    than ``SLIGHTLY``, that may be the next one.

    :param timezone: IANA zone of the server's clock; None is accepted only from a server that runs in UTC
    :raises IntervalError: if an edge has no place in the log, or more than one
    """
    zone = hook.server_zone(timezone)
    return hook.position_before(start, zone), hook.position_before(end, zone)


def _replayed(name: TableName, feed: Feed, plan: RunPlan, probe: Probe, request: Request) -> TableSpec | None:
    """What is to be replayed of a table, None if nothing happened to it in the interval."""
    checkpoint, replay, options = plan.checkpoints[name], plan.replay, plan.options[name]
    assert replay is not None
    readable_from = probe.readable_from.get(feed.object_id)
    if is_gap(replay.after, readable_from):
        raise GapError(
            str(name),
            replay.after,
            readable_from,
            advice="This interval can no longer be replayed; choose a later one.",
        )
    newest = probe.newest.get(feed.name)
    if newest is None:
        return None
    # a shape that is loaded no longer says nothing of those that are
    loaded = [checkpoint.loaded.get(shape) for shape in options.shapes] if checkpoint is not None else []
    adding = Adding.of(options, checkpoint, loaded, plan.kept)
    key, unique = choose_key(name, feed, options.key, adding.keys)
    now = TableSchema(feed.columns, key)
    there = ids_there(feed, adding.source_object_id)
    schema = schema_of(now, adding.beginning(now), loaded, plan.kept, options.copy_by, there=there)
    selection = select(name, schema, adding.choice(schema, feed), check=request.salt_check)
    check_kept_columns(name, schema, selection, options)
    if checkpoint is not None and not replay.suffix:
        known = [sink for shape, sink in checkpoint.loaded.items() if shape in options.shapes]
        for sink in known:
            # each has its own columns
            own = own_columns(Chosen(schema, selection), now, sink.schema_hash, plan.kept, options.copy_by, there=there)
            check_schema(name, own.schema, [sink], plan.kept)
            check_selection(name, own.selection, [sink])
    sinks: dict[str, SinkState | None] = {}
    for shape in options.shapes:
        stored = checkpoint.loaded.get(shape) if checkpoint else None
        if replay.suffix:
            sinks[shape] = None
        elif stored is None or stored.position < newest:
            raise IntervalNotReachedError(
                f"its {shape} is loaded up to {stored.read_through if stored else 'nothing'}, and the interval's last "
                f"event is at {newest}: there is nothing to replay yet.",
                table=str(name),
                advice="Let the scheduled load reach the interval's end first.",
            )
        else:
            # nothing lies between the last event and the interval's end
            sinks[shape] = dataclasses.replace(stored, read_through=max(stored.position, replay.upto))
    candidate = Candidate(name, feed, schema, unique, sinks, checkpoint, selection=selection)
    spec = table_spec(candidate, options)
    if checkpoint is not None:
        spec = dataclasses.replace(spec, waiting_ids=checkpoint.waiting_ids, knows_waiting=checkpoint.knows_waiting)
    plan.steps[name] = replay_steps(spec, replay, readable_from=readable_from)
    return spec
