"""Notes, for tables that are captured, by which versions of Change Tracking a gap could be healed."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Collection, Mapping, MutableMapping
from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.change_tracking import TrackedTable
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, SinkState, lowest
from airflow_provider_mssql_cdc.core.exceptions import MsSqlCdcError
from airflow_provider_mssql_cdc.core.feed import Probe
from airflow_provider_mssql_cdc.core.healing import Healing, best, noted, passed, waiting
from airflow_provider_mssql_cdc.core.lineage import OtherPosition
from airflow_provider_mssql_cdc.core.passing import CaptureProgress
from airflow_provider_mssql_cdc.core.position import Lsn, Version
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.hooks.change_source import CdcSource, ChangeSource
from airflow_provider_mssql_cdc.hooks.tracking_source import TrackingSource
from airflow_provider_mssql_cdc.operators.finding import RunPlan


@dataclass(frozen=True, slots=True)
class Beside:
    """What was seen of Change Tracking in a database that is captured.

    :param current: the current version; None where nothing is known of it
    :param tables: those that are tracked and may be asked about
    :param progress: how far the capture was behind that; None where nothing is known of it
    """

    current: Version | None = None
    tables: Mapping[TableName, TrackedTable] = dataclasses.field(default_factory=dict)
    progress: CaptureProgress | None = None


def look_beside(source: ChangeSource, plan: RunPlan, names: Collection[TableName]) -> Beside | None:
    """Look at Change Tracking: five statements; None where no entry lets it heal gaps.

    A load does not fail for want of what would heal a gap later.
    """
    wanted = [name for name in names if plan.options[name].heals_gaps]
    if not wanted or not isinstance(source, CdcSource):
        return None
    try:
        beside = TrackingSource(source.hook)
        current, tables, status = beside.beside(wanted)
        progress = source.hook.capture_progress()
    except MsSqlCdcError as error:
        plan.warnings.append(f"Change Tracking cannot be asked, so that it heals no gap: {error}")
        return Beside()
    known = {table.source: table for table in tables if table.min_valid_version is not None}
    minutes = None if plan.retention is None else int(plan.retention / datetime.timedelta(minutes=1))
    if known and (text := status.shorter_than(minutes)) is not None:
        plan.warnings.append(text)
    for name in wanted:
        if name not in known:
            plan.warnings.append(
                f'{name}: on_gap names "ct", and Change Tracking is off for it, or the login may not ask: '
                f"ALTER TABLE {name.quoted} ENABLE CHANGE_TRACKING, GRANT VIEW CHANGE TRACKING"
            )
    return Beside(current, known, progress)


def note(plan: RunPlan, seen: Beside | None, probe: Probe) -> None:
    """Note the version of now, and the LSNs of those whose moment the capture has passed.

    :param probe: of behind what was seen
    """
    for name in plan.feeds if seen is not None else ():
        options, stored = plan.options[name], plan.checkpoints.get(name)
        if not options.heals_gaps:
            continue
        assert seen is not None
        tracked, found = seen.tables.get(name), stored.noted if stored is not None else ()
        newest = probe.lineage.newest
        if seen.progress is not None and isinstance(newest, Lsn | None):
            found = passed(found, seen.progress, newest)
        if tracked is not None and seen.current is not None and seen.progress is not None:
            known = [*found, *(each for sink in _loaded(stored) for each in sink.positions)]
            if all(each.position.get("at") != seen.current.text for each in known):
                at = datetime.datetime.now(datetime.UTC)
                found = (*found, noted(seen.current, tracked.since, seen.progress, at))
        plan.noted[name] = found
        usable = tuple(each for each in found if each.lsn is not None)
        plan.healing[name] = Healing(tracked, usable, options.copies_on_gap)


def add_noted(plan: RunPlan, written: MutableMapping[TableName, Checkpoint]) -> None:
    """Let the checkpoints that are written keep what was noted: each sink the version that it may use."""
    for name, checkpoint in list(written.items()):
        if name in plan.noted:
            written[name] = _keeping(checkpoint, plan.noted[name])


def _keeping(checkpoint: Checkpoint, found: tuple[OtherPosition, ...]) -> Checkpoint:
    sinks = {
        shape: dataclasses.replace(sink, positions=best((*sink.positions, *found), sink.read_through))
        for shape, sink in checkpoint.sinks.items()
    }
    left = waiting(found, lowest(sinks.values()))
    return dataclasses.replace(checkpoint, sinks=sinks, noted=left)


def _loaded(checkpoint: Checkpoint | None) -> Collection[SinkState]:
    return checkpoint.loaded.values() if checkpoint is not None else ()
