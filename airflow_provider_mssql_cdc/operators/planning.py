"""Decides for every table of a load what is to be done."""

from __future__ import annotations

import dataclasses
import datetime
import logging
from collections.abc import Collection, Mapping, MutableMapping, Sequence
from typing import Any

from airflow_provider_mssql_cdc.core.adding import Adding
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, SinkState
from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.copy_wanted import COPY
from airflow_provider_mssql_cdc.core.database import DatabaseStatus
from airflow_provider_mssql_cdc.core.exceptions import (
    FeedError,
    GapError,
    InstanceChangedError,
    MsSqlCdcError,
    RestoredError,
)
from airflow_provider_mssql_cdc.core.feed import DdlChange, Feed, Probe, is_captured
from airflow_provider_mssql_cdc.core.feed_choice import by_age, choose_feed, vanished
from airflow_provider_mssql_cdc.core.key import check_kind
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.newer_feed import feed_to_load
from airflow_provider_mssql_cdc.core.plan import Candidate, NotYet, assess, check_lineage, closed_gap
from airflow_provider_mssql_cdc.core.position import Cut, Position
from airflow_provider_mssql_cdc.core.rekeying import needs_copy
from airflow_provider_mssql_cdc.core.sink_errors import errors_of
from airflow_provider_mssql_cdc.core.standing import quiet_checkpoint
from airflow_provider_mssql_cdc.core.steps import checkpoint_steps
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.table_options import TableOptions
from airflow_provider_mssql_cdc.core.table_spec import table_spec
from airflow_provider_mssql_cdc.hooks.change_source import CdcSource, ChangeSource, limited
from airflow_provider_mssql_cdc.hooks.errors import INVALID_OBJECT, NOT_TRACKED
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.operators.beginning import begins, leave_for_later, place_all
from airflow_provider_mssql_cdc.operators.copying import asked_now, known_copy
from airflow_provider_mssql_cdc.operators.dropping import cut_at_drops, drops_now, see_drops
from airflow_provider_mssql_cdc.operators.evolving import ask_for_instance
from airflow_provider_mssql_cdc.operators.filled_rows import told_of_rows
from airflow_provider_mssql_cdc.operators.finding import RunPlan, look
from airflow_provider_mssql_cdc.operators.healing import look_beside, note
from airflow_provider_mssql_cdc.operators.request import Request
from airflow_provider_mssql_cdc.operators.schema_events import changes_to_write, see_schemas
from airflow_provider_mssql_cdc.operators.sourcing import by_source, told_of_rights
from airflow_provider_mssql_cdc.operators.stopping import leave_unseen, stop_at_changes, stop_copies_at_changes
from airflow_provider_mssql_cdc.operators.unwanted_fills import give_up_fills

log = logging.getLogger(__name__)

_GONE = (INVALID_OBJECT, NOT_TRACKED)


def plan_load(
    hook: MsSqlCdcHook,
    store: CheckpointStore,
    request: Request,
    given: Cut | None,
    sources: Sequence[ChangeSource] | None = None,
) -> RunPlan:
    """Plan a load of all tables to one cut.

    :param given: the cut; None takes the newest position of each source
    :param sources: that the tables may be read from, the preferred ones first; by default change data capture
    :raises MsSqlCdcError: if nothing can be planned at all; what concerns one table is in ``failures``
    """
    sources = sources or (CdcSource(hook),)
    status, plan, feeds = look(hook, store, request, sources)
    if is_captured(plan.feeds.values()):
        plan.lag = hook.lag(status, request.max_lag)
    cuts, small = [], True
    for source, mine in by_source(sources, feeds, status):
        plan.warnings += told_of_rights(source) if mine else []
        cut = _plan_source(source, plan, mine, status, given, request)
        if cut is not None:
            cuts.append(cut)
            small = small and _is_small(source, plan, cut, request.small_window)
    plan.warnings += told_of_rows(hook, plan)
    plan.small, plan.upto = small and bool(plan.specs), Cut(tuple(cuts)) if cuts else None
    return plan


def _plan_source(
    source: ChangeSource,
    plan: RunPlan,
    feeds: dict[TableName, Sequence[Feed]],
    status: DatabaseStatus,
    given: Cut | None,
    request: Request,
) -> Position | None:
    """Plan for the tables of one source; the cut, None while there is none."""
    upto = given.of(source.kind.POSITION) if given is not None else None
    positions = _positions(plan, feeds, request)
    # before the cut is read, so that what it shows to be passed counts for this run
    note(plan, look_beside(source, plan, feeds))
    probe = source.probe(positions, status=status, upto=upto, witnesses=witnesses(plan))
    if upto is not None and (probe.lineage.newest is None or upto > probe.lineage.newest):
        raise RestoredError(
            f"the cut {upto} lies above the database's newest position {probe.lineage.newest}.",
            advice="The database was restored, or this is another one. Clear the task, or the sensor if that named the "
            "cut, so that a new one is taken.",
        )
    leave_out_unreadable(source, plan, feeds)
    # from the first on: a marker may lie below its checkpoint
    ddl = source.ddl([feed for group in feeds.values() for feed in group])
    see_schemas(plan, feeds, ddl, status, status.max_lsn if source.kind.CAN.captured else probe.lineage.newest)
    candidates = _assess_all(ddl, plan, feeds, probe, request)
    leave_unseen(plan)
    give_up_fills(plan, candidates)
    _leave_out_unprobed(plan, candidates, positions)
    cut = probe.cut
    if cut is None:
        return None
    newest, options = cut, place_all(plan, candidates, source, probe, request.server_timezone)
    see_drops(plan, candidates, ddl)
    admitted = _limited(source, candidates, probe, request, cut, begins(candidates, options, probe, cut))
    admitted = cut_at_drops(plan, candidates, probe, admitted)
    if admitted < cut:
        log.info("limited to %s of %s", admitted, cut)
        probe = source.probe(positions, status=status, upto=admitted, witnesses=witnesses(plan))
        cut = probe.cut or admitted
        leave_out_unreadable(source, plan, candidates)
        _look_again(plan, candidates, probe, request)
    stop_at_changes(plan, candidates, cut)
    plan.keep_witness(probe)
    leave_for_later(plan, candidates, options, probe, cut)
    plan.candidates.update(candidates)
    _decide(plan, candidates, options, probe, cut, request.copy_keep, limited=admitted < newest)
    stop_copies_at_changes(plan)
    return cut


def _is_small(source: ChangeSource, plan: RunPlan, cut: Position, rows: int) -> bool:
    """Whether the tables of a source have nothing to copy, and no more change rows than these together."""
    windows = {}
    for spec in plan.specs:
        steps = plan.steps[spec.name]
        if not isinstance(spec.feed, source.kind):
            continue
        if steps.begins or spec.alternatives or spec.asked is not None or plan.candidates[spec.name].lagging:
            return False
        if steps.windows:
            windows[spec.feed.name] = min(window.after for window in steps.windows.values())
    if rows == 0 or not windows:
        return rows > 0
    try:
        return source.has_at_most(windows, cut, rows)
    except MsSqlCdcError as error:
        # the job meets it where it concerns one table alone
        log.warning("how many changes there are could not be counted: %s", error)
        return False


def _positions(plan: RunPlan, feeds: dict[TableName, Sequence[Feed]], request: Request) -> dict[str, Position]:
    """From where events are looked for, by feed."""
    positions: dict[str, Position] = {}
    for name in list(feeds):
        checkpoint, options, turn = plan.checkpoints[name], plan.options[name], plan.turns[name]
        shapes = turn.sound or turn.shapes
        named = [state for s in options.shapes if checkpoint is not None and (state := checkpoint.loaded.get(s))]
        adding = Adding.of(options, checkpoint, named, plan.kept)
        try:
            check_kind(name, feeds[name], checkpoint)
            feed = feed_to_load(name, feeds[name], checkpoint, shapes, named, adding, plan.kept)
        except FeedError as error:
            plan.failures[name] = error
            del feeds[name]
            continue
        except GapError as error:
            if checkpoint is None or not (
                options.closes_gaps or needs_copy(name, feeds[name], checkpoint, options, plan.kept)
            ):
                plan.failures[name] = error
                del feeds[name]
                continue
            # the newest feed begins anew, or goes on with what it reaches back to
            anew = {shape: dataclasses.replace(sink, feed=None) for shape, sink in checkpoint.sinks.items()}
            kept = {shape: checkpoint.sinks[shape] for shape in turn.resting}
            checkpoint = plan.checkpoints[name] = dataclasses.replace(checkpoint, sinks=anew | kept)
            feed = choose_feed(name, feeds[name], checkpoint, shapes)
        if checkpoint is not None and (position := checkpoint.position(turn.shapes)) is not None:
            positions[feed.name] = position
    return positions


def leave_out_unreadable(source: ChangeSource, plan: RunPlan, tables: MutableMapping[TableName, Any]) -> None:
    """Fail the tables whose feeds a probe could not read, each alone.

    :param tables: those that are planned for; the failed ones are removed
    """
    for name in list(tables):
        for feed in plan.feeds[name]:
            reason = source.unreadable.get(feed.name)
            if reason is not None:
                reason.table = str(name)
                plan.failures[name] = vanished(name, feed) if reason.number in _GONE else reason
                tables.pop(name, None)


def witnesses(plan: RunPlan) -> list[Witness]:
    """What a probe is to look for, so that its lineage tells whether positions still hold."""
    return [
        sink.witness
        for checkpoint in plan.checkpoints.values()
        if checkpoint is not None
        for sink in checkpoint.sinks.values()
        if sink.witness is not None
    ]


def _assess_all(
    ddl: Sequence[DdlChange],
    plan: RunPlan,
    feeds: dict[TableName, Sequence[Feed]],
    probe: Probe,
    request: Request,
) -> dict[TableName, Candidate]:
    candidates = {}
    for name, group in feeds.items():
        names = {feed.name for feed in group}
        changes = [change for change in ddl if change.capture_instance in names]
        stored = plan.checkpoints[name]
        # where no checkpoint says which feed its sinks were loaded from, the job looks into their markers
        each = [group] if stored is not None and stored.loaded else [[feed] for feed in by_age(group)]
        found: list[Candidate] = []
        left: list[NotYet | MsSqlCdcError] = []
        for feeds_of in each:
            try:
                verdict = _assessed(name, feeds_of, stored, changes, plan, probe, request)
            except MsSqlCdcError as error:
                left.append(error)
            else:
                (found if isinstance(verdict, Candidate) else left).append(verdict)  # type: ignore[arg-type]
        if found:
            candidates[name], plan.alternatives[name] = found[0], found[1:]
        elif isinstance(left[0], NotYet):
            plan.waiting.append(left[0])
        else:
            plan.failures[name] = left[0]
    return candidates


def _assessed(
    name: TableName,
    feeds: Sequence[Feed],
    checkpoint: Checkpoint | None,
    ddl: Sequence[DdlChange],
    plan: RunPlan,
    probe: Probe,
    request: Request,
) -> Candidate | NotYet:
    """Assess a table by some of its feeds, and prove that the login reads what it holds.

    :raises MsSqlCdcError: if it cannot be loaded so
    """
    if checkpoint is not None and (sight := plan.sights.get(name)) is not None:
        waiting = {*checkpoint.waiting_ids, *sight.waiting_ids}
        checkpoint = dataclasses.replace(checkpoint, waiting_ids=tuple(sorted(waiting)))
    options, salt, turn = plan.options[name], request.salt_check, plan.turns[name]
    healing = plan.healing.get(name)
    verdict = assess(name, feeds, checkpoint, probe, ddl, options, salt, plan.kept, turn, plan.hides, healing)
    if isinstance(verdict, Candidate):
        allowed = plan.options[name].allow_masked
        plan.warn_of_masks(verdict.feed, verdict.schema, verdict.selection, allowed=allowed)
        if (text := ask_for_instance(name, verdict, plan, request.salt_check)) is not None:
            verdict = dataclasses.replace(verdict, warnings=(*verdict.warnings, text))
    return verdict


def _leave_out_unprobed(plan: RunPlan, candidates: dict[TableName, Candidate], probed: Collection[str]) -> None:
    """Fail the tables that would go on in a change table that nobody looked into: they would count as quiet."""
    for name, candidate in list(candidates.items()):
        if candidate.position is not None and candidate.feed.name not in probed:
            del candidates[name]
            plan.failures[name] = InstanceChangedError(
                "its capture instances, or what they still hold, changed while the run was planned.",
                table=str(name),
                advice="Run the task again.",
            )


def _look_again(plan: RunPlan, candidates: dict[TableName, Candidate], probe: Probe, request: Request) -> None:
    """Look at what a second probe found: purges and restores of after the first one, which that could not see."""
    for name, candidate in list(candidates.items()):
        readable_from = probe.readable_from.get(candidate.feed.object_id)
        try:
            if readable_from is None:
                raise vanished(name, candidate.feed)
            candidates[name] = closed_gap(_of_lineage(candidate, probe), readable_from, plan.options[name], probe)
        except MsSqlCdcError as error:
            del candidates[name]
            plan.failures[name] = error


def _of_lineage(candidate: Candidate, probe: Probe) -> Candidate:
    """The candidate without the sinks whose positions are of another log lineage.

    :raises RestoredError: if none is left
    """

    def check(_: str, sink: SinkState) -> None:
        check_lineage(candidate.name, sink, probe.lineage)

    return candidate.without(errors_of(candidate.sinks, check))


def _limited(
    source: ChangeSource,
    candidates: Mapping[TableName, Candidate],
    probe: Probe,
    request: Request,
    upto: Position,
    begun: Mapping[TableName, Position],
) -> Position:
    """The cut that the limits allow, counted over all tables that will be loaded from a position.

    Sinks that failed for good and are tried again do not count.

    :param begun: from where tables are read that begin with changes alone
    """
    windows = {
        c.feed.name: position
        for c in candidates.values()
        if (position := c.counting) is not None and position < min(upto, probe.newest.get(c.feed.name, position))
    }
    for name, begin in begun.items():
        feed = candidates[name].feed.name
        if begin < upto:
            windows[feed] = min(begin, windows.get(feed, begin))
    if not windows:
        return upto
    return limited(source, windows, upto, transactions=request.max_transactions, rows=request.max_rows)


def _decide(
    plan: RunPlan,
    candidates: Mapping[TableName, Candidate],
    options_of: Mapping[TableName, TableOptions],
    probe: Probe,
    upto: Position,
    keep: datetime.timedelta,
    *,
    limited: bool,
) -> None:
    """Note what is to be done with the tables.

    :param keep: how long a copy may be paused
    :param limited: changes are left for the next runs, which are loaded before a copy is begun that a person asks for
    """
    for name, candidate in candidates.items():
        options, asked = options_of[name], plan.requests.get(name)
        checkpoint = plan.checkpoints[name]
        spec = table_spec(candidate, options)
        if limited and asked is not None and asked.wanted == COPY and asked.mends(checkpoint):
            # without the copy they would fail again
            mended = checkpoint.mended_by_copies if checkpoint is not None else []
            left = tuple(sink for sink in spec.sinks if sink.shape not in mended)
            if len(left) < len(spec.sinks):
                plan.warnings.append(f"{name} {', '.join(mended)}: wait for the copy, which a run without limit begins")
            if not left:
                continue
            spec = dataclasses.replace(spec, sinks=left)
        steps = checkpoint_steps(spec, probe, upto, candidate.again)
        plan.steps[name] = steps
        if asked is not None and (asked.has_ended(checkpoint) or (limited and asked.wanted == COPY)):
            asked = None
        told, warning = asked_now(asked, checkpoint, keep)
        plan.warnings += [f"{name}: {warning}"] if warning else []
        wanted = asked is not None and (told != asked.asked or asked.wants_a_run(checkpoint))
        # that nothing happened does not mend what failed for good
        if limited:
            spec = dataclasses.replace(spec, fills=False)
        fills = bool(candidate.lagging) and not limited
        writes = fills or drops_now(plan, candidate)
        if steps.commits or steps.refused or steps.lost or candidate.again or wanted or writes:
            copies = plan.identity(name).short
            each = [spec, *(table_spec(other, options) for other in plan.alternatives.get(name, ()))]
            known = known_copy(checkpoint)
            first, *others = (
                dataclasses.replace(
                    one,
                    copies=copies,
                    copy=known,
                    protection=plan.protection_of(one),
                    asked=told,
                    waiting_ids=plan.sights[name].waiting_ids,
                    knows_waiting=checkpoint is not None and checkpoint.knows_waiting,
                    changes=changes_to_write(plan, name, candidate.lagging),
                    drops=plan.drops.get(one.feed.name),
                )
                for one in each
            )
            plan.specs.append(dataclasses.replace(first, alternatives=tuple(others)))
        elif (quiet := quiet_checkpoint(candidate, upto, plan.witness_of(probe))) is not None:
            plan.quiet[name] = quiet
