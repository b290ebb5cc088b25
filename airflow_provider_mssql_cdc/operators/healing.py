"""Notes, for tables that are captured, by which versions of Change Tracking a gap could be healed."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Collection, Mapping, MutableMapping
from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.change_tracking import TrackedTable, grant_view
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, SinkState, lowest
from airflow_provider_mssql_cdc.core.exceptions import (
    DatabaseUnavailableError,
    LoginError,
    MsSqlCdcError,
    ServerUnreachableError,
)
from airflow_provider_mssql_cdc.core.healing import Healing, is_noted, noted, passed, waiting
from airflow_provider_mssql_cdc.core.lineage import OtherPosition
from airflow_provider_mssql_cdc.core.passing import CaptureProgress
from airflow_provider_mssql_cdc.core.position import Lsn, Version
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.hooks.change_source import CdcSource, ChangeSource
from airflow_provider_mssql_cdc.hooks.tracking_source import TrackingSource
from airflow_provider_mssql_cdc.operators.finding import RunPlan

_UNANSWERED = (ServerUnreachableError, DatabaseUnavailableError, LoginError)


@dataclass(frozen=True, slots=True)
class Beside:
    """What was seen of Change Tracking in a database that is captured.

    :param current: the current version; None where nothing is known of it
    :param tables: those that are tracked and may be asked about
    :param progress: how far the capture was behind that; None where nothing is known of it
    :param max_lsn: read behind all that
    :param failed: why nothing could be asked; '' where it could
    """

    current: Version | None = None
    tables: Mapping[TableName, TrackedTable] = dataclasses.field(default_factory=dict)
    progress: CaptureProgress | None = None
    max_lsn: Lsn | None = None
    failed: str = ""


def look_beside(source: ChangeSource, plan: RunPlan, names: Collection[TableName]) -> Beside | None:
    """Look at Change Tracking: six statements; None where no entry lets it heal gaps.

    A load does not fail for want of what would heal a gap later.
    """
    wanted = [name for name in names if plan.options[name].heals_gaps]
    if not wanted or not isinstance(source, CdcSource):
        return None
    try:
        beside = TrackingSource(source.hook)
        current, tables, status = beside.beside(wanted)
        progress = source.hook.capture_progress()
        # what log scans had found before may have been mapped since
        max_lsn = source.hook.max_lsn()
    except MsSqlCdcError as error:
        plan.warnings.append(f"Change Tracking cannot be asked, so that it heals no gap: {error}")
        # what the server would tell the next run, too, is no reason to wait for it
        return Beside(failed=str(error) if isinstance(error, _UNANSWERED) else "")
    known = {table.source: table for table in tables if table.min_valid_version is not None}
    minutes = None if plan.retention is None else int(plan.retention / datetime.timedelta(minutes=1))
    if known and (text := status.shorter_than(minutes)) is not None:
        plan.warnings.append(text)
    for name in wanted:
        if name not in known:
            plan.warnings.append(
                f'{name}: on_gap names "ct", and Change Tracking is off for it, or the login may not ask. '
                + ("" if status.enabled else "ALTER DATABASE CURRENT SET CHANGE_TRACKING = ON; ")
                + f"ALTER TABLE {name.quoted} ENABLE CHANGE_TRACKING; {grant_view(name, plan.user)}"
            )
    return Beside(current, known, progress, max_lsn)


def note(plan: RunPlan, seen: Beside | None) -> None:
    """Note the version of now, and the LSNs of those whose moment the capture has passed."""
    if seen is None:
        return
    for name in plan.feeds:
        options, stored = plan.options[name], plan.checkpoints.get(name)
        if not options.heals_gaps:
            continue
        table, current, fork = seen.tables.get(name), seen.current, plan.recovery_fork
        found = stored.noted if stored is not None else ()
        if seen.progress is not None:
            found = passed(found, seen.progress, seen.max_lsn)
        if table is not None and current is not None and seen.progress is not None:
            known = [*found, *(each for sink in _loaded(stored) for each in sink.positions)]
            if not is_noted(known, current, table, fork):
                now = datetime.datetime.now(datetime.UTC)
                found = (*found, noted(current, table, fork, seen.progress, now, known))
        plan.noted[name] = found
        healing = Healing(table, (), options.copies_on_gap, current, fork, seen.failed)
        fills = healing.before_columns(found)
        usable = tuple(each for each in found if each.lsn is not None or each in fills)
        plan.healing[name] = dataclasses.replace(healing, noted=usable)


def add_noted(plan: RunPlan, written: MutableMapping[TableName, Checkpoint]) -> None:
    """Let the checkpoints that are written keep what was noted: each sink the versions that it may use."""
    for name, checkpoint in list(written.items()):
        if name in plan.noted:
            written[name] = _keeping(checkpoint, plan.noted[name], plan.healing[name])


def gains_version(plan: RunPlan, name: TableName, checkpoint: Checkpoint) -> bool:
    """Whether a sink gets the first version by which it could be healed."""
    healing, sinks = plan.healing.get(name), checkpoint.loaded.values()
    if healing is None:
        return False
    return any(
        not healing.best(sink.positions, sink.read_through) and healing.best(plan.noted[name], sink.read_through)
        for sink in sinks
    )


def _keeping(checkpoint: Checkpoint, found: tuple[OtherPosition, ...], healing: Healing) -> Checkpoint:
    sinks = {
        shape: dataclasses.replace(sink, positions=healing.kept((*sink.positions, *found), sink.read_through))
        for shape, sink in checkpoint.sinks.items()
    }
    left = waiting(found, lowest(sinks.values()))
    return dataclasses.replace(checkpoint, sinks=sinks, noted=left)


def _loaded(checkpoint: Checkpoint | None) -> Collection[SinkState]:
    return checkpoint.loaded.values() if checkpoint is not None else ()
