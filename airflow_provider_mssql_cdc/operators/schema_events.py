"""What a run sees of the columns of its source tables, and the events of what has changed there."""

from __future__ import annotations

import dataclasses
import datetime
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Told
from airflow_provider_mssql_cdc.core.database import DatabaseStatus
from airflow_provider_mssql_cdc.core.feed import DdlChange, Feed
from airflow_provider_mssql_cdc.core.feed_choice import by_age
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.receipt import TableReceipt
from airflow_provider_mssql_cdc.core.refused_change import RefusedChange
from airflow_provider_mssql_cdc.core.schema_changes import ChangesSpec, unwritten, with_found
from airflow_provider_mssql_cdc.core.schema_diff import ADD_COLUMN, DROP_COLUMN, schema_diff
from airflow_provider_mssql_cdc.core.schema_sight import HOW_FOUND, KIND, Sight, see, see_gone
from airflow_provider_mssql_cdc.core.spec import ChangedTable
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.waiting import waiting_in
from airflow_provider_mssql_cdc.operators.finding import RunPlan


def see_schemas(
    plan: RunPlan,
    feeds: dict[TableName, Sequence[Feed]],
    ddl: Sequence[DdlChange],
    status: DatabaseStatus,
    newest: Position | None,
) -> None:
    """Note what is seen of the columns of each table.

    :param feeds: of the tables that are planned for
    :param ddl: of all these feeds
    :param status: as it was when the plan was begun
    :param newest: the newest position that these feeds have
    """
    if newest is None:
        return
    for name, group in feeds.items():
        checkpoint = plan.checkpoints[name]
        known = checkpoint.feeds(plan.options[name].shapes) if checkpoint is not None else []
        feed = next((each for each in group if any(ref.is_same(each) for ref in known)), by_age(group)[0])
        seen = checkpoint.seen_schema if checkpoint is not None else None
        before = plan.kept(seen.hash) if seen is not None else None
        server_time = status.server_time + datetime.timedelta(seconds=time.monotonic() - plan.began)
        # where nothing is captured, the catalogue is not ahead of what is
        captured_until = status.max_lsn_time if feed.CAN.captured else server_time
        rows = [row for row in ddl if row.capture_instance == feed.name]
        sight = see(
            feed,
            seen,
            checkpoint.schema_changes if checkpoint is not None else (),
            newest=newest,
            server_time=server_time,
            captured_until=captured_until,
            ddl=rows,
            kept=plan.kept,
        )
        gone = see_gone(group, seen, before, newest=newest, server_time=server_time, captured_until=captured_until)
        sight = dataclasses.replace(sight, seen=dataclasses.replace(sight.seen, gone=gone))
        sight = _with_waiting(sight, feed, name, plan)
        if plan.options[name].fails_on_schema_change and (changes := _refused(checkpoint, sight, plan)):
            since = tuple(row for row in rows if (seen is None or seen.upto is None or row.lsn > seen.upto))
            # what a feed shows that nothing is captured for, it shows of now
            is_passed = sight.event is not None or not feed.CAN.captured
            plan.refused_changes[name] = RefusedChange(changes, since, is_passed=is_passed)
            if sight.event is not None and checkpoint is not None and seen is not None:
                # it stays unseen until a run goes on with it
                sight = dataclasses.replace(sight, seen=seen, pending=checkpoint.schema_changes, event=None)
        plan.sights[name] = sight


def _with_waiting(sight: Sight, feed: Feed, name: TableName, plan: RunPlan) -> Sight:
    """The sight with the columns that wait to be asked for."""
    checkpoint, options = plan.checkpoints[name], plan.options[name]
    seen = checkpoint.seen_schema if checkpoint is not None else None
    before = plan.kept(seen.hash) if seen is not None else None
    states = [checkpoint.loaded[shape] for shape in options.shapes if shape in checkpoint.loaded] if checkpoint else []
    loaded = [plan.kept(state.schema_hash) if state.schema_hash is not None else None for state in states]
    waiting, complete, waited = waiting_in(feed, checkpoint, before, loaded, options)
    known = dataclasses.replace(sight.seen, with_waiting=complete, waited=waited)
    return dataclasses.replace(sight, seen=known, waiting_ids=waiting)


def _refused(checkpoint: Checkpoint | None, sight: Sight, plan: RunPlan) -> str:
    """What has changed, where a table is not to go on with columns that were added or dropped; else ''. Of one that is
    not loaded yet nobody knows others, and what else changes fails by itself where that matters.
    """
    if checkpoint is None or checkpoint.seen_schema is None or not sight.differs:
        return ""
    if checkpoint.seen_schema.hash == sight.schema.hash:
        # statements that left the columns as they were
        return ""
    before = plan.kept(checkpoint.seen_schema.hash)
    changes = schema_diff(before, sight.schema) if before is not None else ()
    of_columns = before is None or any(change.kind in (ADD_COLUMN, DROP_COLUMN) for change in changes)
    if not of_columns or not (checkpoint.loaded or checkpoint.copies):
        return ""
    return "".join(f"  {change}\n" for change in changes) or "  what they were is not kept\n"


def schema_events(plan: RunPlan, name: TableName | None = None) -> list[Told]:
    """The events of this run.

    :param name: of one table; None for all
    """
    found = {table: sight.event for table, sight in plan.sights.items()} | plan.gone
    return [
        Told(KIND, event.told(str(table)))
        for table, event in found.items()
        if event is not None and name in (None, table)
    ]


def found_by(changes: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many schema changes were found in each way.

    :param changes: as the summary has them
    """
    return {how: [change["found"] for change in changes].count(how) for how in HOW_FOUND}


def add_sights(plan: RunPlan, written: dict[TableName, Checkpoint], loaded: Iterable[TableReceipt]) -> None:
    """Add what was seen to the checkpoints that a run writes. A first sight is stored once something else is.

    :param loaded: what became of the tables of the job: where a checkpoint was lost, their markers alone know which
        columns wait to be asked for
    """
    receipts = {table.name: table for table in loaded}
    for name, sight in plan.sights.items():
        # what is written moves a quiet table on, too: else its date would keep it from ever being written
        stored = written.get(name) or plan.quiet.get(name) or plan.checkpoints[name]
        if stored is None:
            continue
        seen = stored.seen_schema
        were = None if seen is None else (seen.hash, seen.gone, stored.schema_changes)
        moved = were is not None and were != (sight.seen.hash, sight.seen.gone, sight.pending)
        if name in written or moved or sight.event is not None:
            receipt = receipts.get(name) or TableReceipt(name)
            # the job has asked the markers of all sinks that it has loaded, or of which it has found none
            asked = bool(receipt.sinks or receipt.copying) and not receipt.failed
            written[name] = dataclasses.replace(
                stored,
                seen_schema=dataclasses.replace(sight.seen, with_waiting=sight.seen.with_waiting or asked),
                schema_changes=sight.pending,
                waiting_ids=tuple(sorted({*sight.waiting_ids, *receipt.waiting_ids})),
                untold=(*stored.untold, *schema_events(plan, name)),
                unwritten=unwritten(stored.unwritten, sight.event, receipt.changes_written),
            )


def changes_to_write(plan: RunPlan, name: TableName, fills: Iterable[str]) -> ChangesSpec:
    """The events of a table that the run's job is to write beside its targets, and what is told there of these.

    :param fills: the shapes in which a copy fills what they lack
    """
    stored, options = plan.checkpoints[name], plan.options[name]
    events = with_found(stored.unwritten if stored is not None else (), plan.sights[name].event)
    told = {shape: sink.taken_told for shape, sink in (stored.loaded if stored is not None else {}).items()}
    return ChangesSpec(options.target.schema_changes(options.table_name, name), events, told, tuple(fills))


def dropped_tables(plan: RunPlan) -> tuple[ChangedTable, ...]:
    """The tables that are there no more, whose events the run's job is to write beside their targets.

    No job is made for these alone: what waits in their checkpoints the next one writes.
    """
    return tuple(_dropped_tables(plan))


def _dropped_tables(plan: RunPlan) -> Iterator[ChangedTable]:
    for name, event in plan.gone.items():
        stored, options = plan.checkpoints[name], plan.options[name]
        assert stored is not None
        changes = ChangesSpec(
            options.target.schema_changes(options.table_name, name), with_found(stored.unwritten, event)
        )
        feed = next(iter(stored.feeds(options.shapes)), None)
        yield ChangedTable(name, changes, feed, options.target.format, dict(options.table_properties))


def said_of_schemas(plan: RunPlan) -> list[str]:
    """The events of this run for people."""
    return [f"{name}: {sight.event}" for name, sight in plan.sights.items() if sight.event is not None]
