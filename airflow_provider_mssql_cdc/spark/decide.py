"""What a job does with a sink: its own marker, found in the target, has the last word."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.exceptions import GapError, SchemaChangedError, TargetError
from airflow_provider_mssql_cdc.core.lsn import Lsn
from airflow_provider_mssql_cdc.core.spec import Marker, SinkSpec, SourceSpec, TableSpec
from airflow_provider_mssql_cdc.core.table import same_schema
from airflow_provider_mssql_cdc.core.window import Window


@dataclass(frozen=True, slots=True)
class Load:
    """Load a window.

    :param marker: found in the target
    """

    window: Window
    marker: Marker


@dataclass(frozen=True, slots=True)
class FirstLoad:
    """Copy the table, and go on from there.

    :param replaced: marker of the rows that the copy follows on after a gap; None where there are none
    """

    replaced: Marker | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing to write.

    :param outcome: ``already`` or ``empty``
    :param read_through: everything up to here is loaded or was proven empty
    """

    marker: Marker
    outcome: str
    read_through: Lsn


Decision = Load | FirstLoad | Done


def decide(
    table: TableSpec,
    sink: SinkSpec,
    *,
    marker: Marker | None,
    from_property: bool = False,
    is_empty: bool,
    cut: Lsn,
    min_lsn: Lsn | None,
) -> Decision:
    """Compare what the run expects with what the target says.

    :param marker: the target's, which ``check_origin`` has passed; None if it has none
    :param from_property: the marker's own commit has expired, and only a table property remembers it
    :param is_empty: the target table is missing or has no rows
    :param min_lsn: of the capture instance
    :raises TargetError: if the target does not fit the checkpoint
    :raises GapError: if changes behind the marker were purged
    """
    if marker is None:
        return _without_marker(table, sink, is_empty)
    position = marker.position
    if from_property and sink.expects is not None and position < sink.expects:
        raise TargetError(
            f"the commits of {'.'.join(sink.table)} that say what it holds have expired, and its properties remember "
            f"{position} only, where {sink.expects} was reached.",
            table=str(table.name),
            advice="Name the position that it stands for with `mssql-cdc checkpoint set`, or load it anew with "
            "`mssql-cdc checkpoint reset`.",
        )
    start = position
    if sink.read_through is not None and sink.expects is not None and position >= sink.expects:
        start = max(position, sink.read_through)
    if position >= cut:
        return Done(marker, "already", start)
    if start >= cut:
        return Done(marker, "empty", start)
    if is_gap(start, min_lsn):
        if sink.lost_after is not None:
            return FirstLoad(marker)
        raise gap(table, start, min_lsn, marker)
    return Load(Window(start, cut), marker)


def is_gap(after: Lsn, min_lsn: Lsn | None) -> bool:
    """Whether changes right after a position can no longer be read."""
    return min_lsn is None or min_lsn > after.next()


def gap(table: TableSpec, after: Lsn, min_lsn: Lsn | None, marker: Marker | None = None) -> GapError:
    """Return the error that says what was lost.

    :param marker: of the target
    """
    other = other_instance(table, marker) if marker else None
    return GapError(
        str(table.name),
        after,
        min_lsn or after.next(),
        advice=(f"The target {other}. " if other else "")
        + 'Load the table anew once with on_gap="resnapshot", or with `mssql-cdc checkpoint reset` and an empty '
        "target; then load more often, or raise the retention (sys.sp_cdc_change_job @job_type = N'cleanup').",
    )


def other_instance(table: TableSpec, marker: Marker) -> str | None:
    """Say from which other capture instance a target was loaded; None if it was this one.

    Another one goes on where it reaches back to the marker: with the same columns it holds the same changes.
    """
    instance = table.instance
    same = (marker.instance, marker.object_id) == (instance.name, instance.object_id)
    if same and marker.create_date in (None, instance.create_date):
        return None
    return (
        f"was loaded from capture instance {marker.instance} (change table {marker.object_id}); this run reads "
        f"{instance.name} ({instance.object_id})"
    )


def _without_marker(table: TableSpec, sink: SinkSpec, is_empty: bool) -> FirstLoad:
    name = ".".join(sink.table)
    if not is_empty:
        raise TargetError(
            f"{name} has rows, but no commit of this package: what it holds is not known.",
            table=str(table.name),
            advice="Empty or drop it for a first load, or name the position that it stands for with "
            "`mssql-cdc checkpoint set`.",
        )
    if sink.expects is not None:
        raise TargetError(
            f"{name} is missing or empty, although it was loaded up to {sink.expects}.",
            table=str(table.name),
            advice="Restore it, or load it anew after `mssql-cdc checkpoint reset`; `mssql-cdc checkpoint set` names "
            "another position.",
        )
    return FirstLoad()


def check_origin(source: SourceSpec, table: TableSpec, sink: SinkSpec, marker: Marker) -> None:
    """Prove that a target is loaded from this table, with these columns.

    :raises TargetError: if it is another source's
    :raises SchemaChangedError: if it was loaded with other columns
    """
    here, there = (source.server, source.database, table.name), (marker.server, marker.database, marker.table)
    if here != there:
        raise TargetError(
            f"{'.'.join(sink.table)} is loaded from {marker.table} of {marker.database} on {marker.server}, not from "
            f"{table.name} of {source.database} on {source.server}.",
            table=str(table.name),
            advice="Choose another target or table_name.",
        )
    if not same_schema(marker.schema_hash, table.schema):
        raise SchemaChangedError(
            f"the captured columns or the key are not those that {'.'.join(sink.table)} was loaded with.",
            table=str(table.name),
            advice="Load it into a new target, or anew after `mssql-cdc checkpoint reset`.",
        )
