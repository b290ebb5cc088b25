"""Where tables of changes begin: what ``initial`` says, as a position, and the feed that reaches back to it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, MutableMapping, Sequence

from airflow_provider_mssql_cdc.core.exceptions import MsSqlCdcError
from airflow_provider_mssql_cdc.core.feed import Probe, refused_options
from airflow_provider_mssql_cdc.core.initial import EARLIEST, WITH_COPY, Initial
from airflow_provider_mssql_cdc.core.plan import Candidate, NotYet
from airflow_provider_mssql_cdc.core.position import Position, is_gap
from airflow_provider_mssql_cdc.core.shapes import SHAPES
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.table_options import TableOptions
from airflow_provider_mssql_cdc.hooks.change_source import ChangeSource
from airflow_provider_mssql_cdc.operators.finding import RunPlan


def place_all(
    plan: RunPlan,
    candidates: MutableMapping[TableName, Candidate],
    source: ChangeSource,
    probe: Probe,
    timezone: str | None,
) -> dict[TableName, TableOptions]:
    """The options of all tables, with positions where they name times.

    What cannot be placed is told by the job, which sees whether a target has a marker: that has the last word.

    :param candidates: of each table that begins, the feed that reaches back to where it begins is put first
    :param timezone: IANA zone of the server's clock, as the DAG author says
    """
    found = {}
    # a time is asked for once, however many tables begin there
    position = functools.cache(lambda moment: source.position_before(moment, timezone))
    for name, candidate in list(candidates.items()):
        options, initial = plan.options[name], plan.options[name].initial
        if initial.copies or not beginning(candidate):
            found[name] = dataclasses.replace(options, initial=WITH_COPY)
            continue
        try:
            for why in refused_options(candidate.feed, initial=initial):
                initial = Initial("", refused=f'{why}. Write initial="copy".')
            placed = initial.placed(position)
        except MsSqlCdcError as error:
            error.table = error.table or str(name)
            del candidates[name]
            plan.failures[name] = error
            continue
        found[name] = dataclasses.replace(options, initial=placed)
        each = [candidate, *plan.alternatives.get(name, ())]
        first = _reaching_back(each, placed, probe)
        candidates[name] = first
        plan.alternatives[name] = [other for other in each if other is not first]
    return found


def begins(
    candidates: Mapping[TableName, Candidate], options: Mapping[TableName, TableOptions], probe: Probe, cut: Position
) -> dict[TableName, Position]:
    """From where the tables are read that begin with changes alone.

    :param cut: of the run
    """
    found = {}
    for name, candidate in candidates.items():
        if beginning(candidate):
            readable_from = probe.readable_from.get(candidate.feed.object_id)
            begin = options[name].initial.begin(cut=cut, readable_from=readable_from)
            if begin is not None:
                found[name] = begin
    return found


def leave_for_later(
    plan: RunPlan,
    candidates: MutableMapping[TableName, Candidate],
    options: Mapping[TableName, TableOptions],
    probe: Probe,
    cut: Position,
) -> None:
    """Leave out what begins behind the cut, or at a time that the capture has not reached."""
    behind = begins(candidates, options, probe, cut)
    for name, candidate in list(candidates.items()):
        initial, begin = options[name].initial, behind.get(name)
        if initial.is_early or (begin is not None and begin > cut):
            late = beginning(candidate)
            left = {shape: sink for shape, sink in candidate.sinks.items() if shape not in late}
            if left:
                candidates[name] = dataclasses.replace(candidate, sinks=left)
            else:
                del candidates[name]
                why = initial.refused or f"it begins behind {begin}, and this run goes up to {cut}"
                plan.waiting.append(NotYet(name, why, candidate.failed))


def beginning(candidate: Candidate) -> frozenset[str]:
    """The shapes that begin, and may do so with changes alone."""
    return frozenset(
        shape
        for shape, sink in candidate.sinks.items()
        if sink is None and SHAPES[shape].takes_initial
        if shape not in candidate.lost_after and shape not in candidate.rekeyed
    )


def _reaching_back(candidates: Sequence[Candidate], initial: Initial, probe: Probe) -> Candidate:
    """The table by the newest of its feeds that reaches back to where it is to begin."""

    def readable_from(candidate: Candidate) -> Position | None:
        return probe.readable_from.get(candidate.feed.object_id)

    newest = {column.name for column in candidates[0].feed.columns}
    # all shapes of the table are read by one feed: none of them must lose a column by it
    known = [
        candidate
        for candidate in candidates
        if readable_from(candidate) is not None and newest <= {column.name for column in candidate.feed.columns}
    ]
    if initial.kind == EARLIEST and known:
        return min(known, key=lambda candidate: readable_from(candidate))  # type: ignore[arg-type, return-value]
    if initial.after is not None:
        after = initial.after
        return next((each for each in known if not is_gap(after, readable_from(each))), candidates[0])
    return candidates[0]
