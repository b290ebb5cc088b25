"""Columns that source tables have dropped, and that targets are to drop, too: where a run ends for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint
from airflow_provider_mssql_cdc.core.dropping import cut_at, drops_of, due
from airflow_provider_mssql_cdc.core.feed import DdlChange, Probe
from airflow_provider_mssql_cdc.core.plan import Candidate
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.operators.finding import RunPlan


def see_drops(plan: RunPlan, candidates: Mapping[TableName, Candidate], ddl: Iterable[DdlChange]) -> None:
    """Note what was dropped, of the tables whose targets follow.

    :param ddl: of all feeds
    """
    statements = list(ddl)
    for name, candidate in candidates.items():
        if plan.options[name].drops_columns:
            gone = plan.sights[name].seen.gone
            for feed in [candidate.feed, *(each.feed for each in plan.alternatives.get(name, ()))]:
                of_feed = [change for change in statements if change.capture_instance == feed.name]
                plan.drops[feed.name] = drops_of(feed, of_feed, gone)


def cut_at_drops(plan: RunPlan, candidates: Mapping[TableName, Candidate], probe: Probe, cut: Position) -> Position:
    """Where a run ends that may go up to a cut: with the first column that targets drop, where something happened to
    its table since. Not where all others have come there: a table that fails again and again is not to hold them.
    """
    ends, positions = [cut], {name: candidate.counting for name, candidate in candidates.items()}
    for name, candidate in candidates.items():
        newest, position = probe.newest.get(candidate.feed.name), candidate.counting
        if newest is not None and position is not None:
            drops = [each for each in plan.drops.get(candidate.feed.name, ()) if each.at < newest]
            end = cut_at(candidate.schema, drops, [position], cut)
            others = [each for other, each in positions.items() if other != name and each is not None]
            if not others or min(others) < end:
                ends.append(end)
    return min(ends)


def drops_now(plan: RunPlan, candidate: Candidate) -> bool:
    """Whether a target of the table is loaded up to where it drops a column, though nothing may have happened since."""
    drops = plan.drops.get(candidate.feed.name)
    if drops is None:
        return False
    for sink in candidate.sinks.values():
        if sink is None or sink.schema_hash is None or sink.asserted:
            continue
        schema = plan.kept(sink.schema_hash)
        has = {column.column_id for column in schema.columns} if schema is not None else set()
        if due(candidate.schema, drops, sink.position) & has:
            return True
    return False


def passes_drop(plan: RunPlan, name: TableName, moved: Checkpoint) -> bool:
    """Whether a table on which nothing happened comes to where its targets drop a column: the next run is not to end
    there again.

    :param moved: its checkpoint then
    """
    stored, candidate = plan.checkpoints[name], plan.candidates.get(name)
    if stored is None or candidate is None:
        return False
    before, after = stored.position(candidate.sinks), moved.position(candidate.sinks)
    drops = plan.drops.get(candidate.feed.name, ())
    return before is not None and after is not None and any(before < each.at <= after for each in drops)
