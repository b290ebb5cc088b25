"""Columns that the source table has dropped: targets drop them by a commit of its own, before what came since."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from airflow_provider_mssql_cdc.core.columns import map_columns
from airflow_provider_mssql_cdc.core.dropping import due, without_dropped
from airflow_provider_mssql_cdc.core.filling import going_on
from airflow_provider_mssql_cdc.core.going_on import chosen_before, set_aside
from airflow_provider_mssql_cdc.core.marker import Marker
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.receipt import SinkReceipt
from airflow_provider_mssql_cdc.core.schema import KeptSchema, KeptSchemas
from airflow_provider_mssql_cdc.core.spec import Chosen, JobSpec, SinkSpec, TableSpec
from airflow_provider_mssql_cdc.core.steps import reached
from airflow_provider_mssql_cdc.core.taken import TakenColumn
from airflow_provider_mssql_cdc.spark.decide import is_asserted, rekeyed
from airflow_provider_mssql_cdc.spark.marked_columns import columns_of
from airflow_provider_mssql_cdc.spark.notes import Notes
from airflow_provider_mssql_cdc.spark.parts import Parts
from airflow_provider_mssql_cdc.spark.reading import Reading
from airflow_provider_mssql_cdc.spark.shapes.table import TableRows
from airflow_provider_mssql_cdc.spark.sink import Sink
from airflow_provider_mssql_cdc.spark.targets import State, Write


@dataclass(slots=True)
class Shrunk:
    """A table whose sinks have dropped columns.

    :param table: without those that some sink has dropped, and without the sinks that could not
    :param left: of sinks that have not come to where they drop them, the columns with which they go on; by shape
    :param notes: what was done, and what failed
    """

    table: TableSpec
    left: dict[str, Chosen] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)


def shrunk(job: JobSpec, table: TableSpec, parts: Parts, marked: Sequence[tuple[Sink, Marker]], place: str) -> Shrunk:
    """Drop columns of targets that are loaded up to where the source table has dropped them.

    :param marked: the sinks that have markers
    :param place: a folder of this attempt alone
    :raises MsSqlCdcError: if no sink is left that could
    """
    found, drops = Shrunk(table), table.drops
    if job.replay is not None:
        return found
    whole, owns, gone = Chosen(table.schema, table.selection), columns_of(marked, table), frozenset[int]()
    of_sinks: dict[str, frozenset[int]] = {}
    for sink, marker in marked:
        position = up_to(table, sink.spec, marker, sink.columns.kept)
        if position is not None:
            own = owns.get(sink.shape, whole)
            of_sinks[sink.shape] = _lacked(sink, marker, own)
            if drops is not None:
                of_sinks[sink.shape] |= due(own.schema, drops, position)
                gone |= due(whole.schema, drops, position)
            gone |= of_sinks[sink.shape]
    if not gone:
        return found
    for sink, _ in marked:
        own, ids = owns.get(sink.shape, whole), of_sinks.get(sink.shape, frozenset())
        with found.notes.alone(sink.shape):
            if ids and not _drop(job, table, own, sink.spec, ids, parts, place, found.notes):
                ids = frozenset()
        if ids != gone & {column.column_id for column in own.schema.columns}:
            found.left[sink.shape] = own if not ids else without_dropped(own, ids)
    failed = found.notes.failed
    sinks = tuple(sink for sink in table.sinks if sink.shape not in failed)
    if not sinks:
        raise next(error for error, _ in failed.values())
    narrow = without_dropped(whole, gone)
    found.table = dataclasses.replace(table, schema=narrow.schema, selection=narrow.selection, sinks=sinks)
    return found


def up_to(table: TableSpec, sink: SinkSpec, marker: Marker, kept: KeptSchemas) -> Position | None:
    """Up to where a sink is loaded that may drop columns; None for one that may not: nobody knows what it holds, or it
    is loaded anew by another key first, and a commit before that would say that it has been.

    :param kept: schemas by their hash
    """
    if is_asserted(sink, marker) or rekeyed(table, marker, kept) is not None:
        return None
    return reached(sink, marker.position)


def _lacked(sink: Sink, marker: Marker, own: Chosen) -> frozenset[int]:
    """The column_ids of those dropped columns which a target lacks that its marker names: it has dropped them, and the
    run was killed before its marker said so. They do not come back, whatever is asked for now.

    :param own: the columns with which the sink goes on
    """
    kept = {column.column_id for column in own.schema.columns if column.kept}
    if not kept or (then := _loaded_with(sink, marker, own)) is None:
        return frozenset()
    before, lacked = chosen_before(own, then), set()
    columns = sink.rows.narrowed(before).columns()
    if (difference := sink.target.check(columns)) is None:
        return frozenset()
    for column in (each for each in before.schema.columns if each.column_id in kept):
        stays = {each.name for each in sink.rows.narrowed(without_dropped(before, {column.column_id})).columns()}
        of_column = {each.name for each in columns} - stays
        # it may have made way for another one, where the marker does not say so yet
        has_moved = any(name.startswith(set_aside(column)) for name in difference.found)
        if of_column and of_column.isdisjoint(difference.found) and not has_moved:
            lacked.add(column.column_id)
    return frozenset(lacked)


def _drop(
    job: JobSpec,
    table: TableSpec,
    own: Chosen,
    spec: SinkSpec,
    ids: Collection[int],
    parts: Parts,
    place: str,
    notes: Notes,
) -> bool:
    """Drop columns of one target, and say so in its marker; whether it lacks them then.

    :param own: the columns with which the sink goes on, these too
    """
    of_sink = going_on(table, own, (spec,))
    mappings = map_columns(table.name, own.schema, own.selection)
    rows = TableRows(of_sink, mappings, job.source.timezone)
    reading = Reading(parts.source(of_sink, mappings), job, of_sink, f"{place}/dropping", rows.unsure)
    sink = Sink(job, parts.rows(rows, spec), parts.target, spec.table, notes.warn)

    def attempt(_: int) -> SinkReceipt | None:
        state = sink.state()
        marker = state.marker
        if marker is None or (then := _loaded_with(sink, marker, own)) is None:
            raise sink.conflict("changed while it was about to drop columns")
        sink.check_marker(marker, reading.state([state]))
        done = SinkReceipt(sink.shape, marker.position, marker, "already", marker.position)
        if {column.column_id for column in then.columns}.isdisjoint(ids):
            return done
        return done if _commit(job, sink, state, marker, chosen_before(own, then), ids) else None

    state = sink.state()
    if state.marker is None or state.from_property or _loaded_with(sink, state.marker, own) is None:
        # what it holds is not known for sure: a commit that says so would be believed
        return False
    with notes.timed("commit"), notes.writes(sink.target.name):
        sink.until_committed(attempt)
    for column in (column for column in own.schema.columns if column.column_id in ids):
        notes.warn(f"column {column.name} of {sink.target.name} is dropped, as the source table has dropped it")
    return True


def _loaded_with(sink: Sink, marker: Marker, own: Chosen) -> KeptSchema | None:
    """What a target was loaded with; None where that is not kept."""
    found = sink.columns.kept(marker.schema_hash)
    return found or (KeptSchema.of(own.schema) if own.schema.hash == marker.schema_hash else None)


def _commit(job: JobSpec, sink: Sink, state: State, marker: Marker, before: Chosen, ids: Collection[int]) -> bool:
    """Drop columns, and commit a marker that does not name them; whether no other commit came first.

    :param before: the columns that the target has, by their types and names there
    """
    after, layout = without_dropped(before, ids), sink.layout(state)
    has = [column.name for column in sink.rows.narrowed(before).columns(layout)]
    stays = {column.name for column in sink.rows.narrowed(after).columns(layout)}
    sink.target.drop([name for name in has if name not in stays])
    gone = [column for column in before.schema.columns if column.column_id in ids]
    taken = (TakenColumn(c.column_id, marker.position, marker.position, dropped=c.name) for c in gone)
    said = dataclasses.replace(
        marker,
        schema_hash=after.schema.hash,
        schema_kept=sink.target.keep_schema(KeptSchema.of(after.schema)),
        selection_hash=after.selection.hash,
        selection=after.selection.describe(),
        unfilled=tuple(name for name in marker.unfilled if name in stays),
        taken=(*marker.taken, *taken) if sink.rows.facts.has_data else marker.taken,
        spec_id=job.id,
        run=job.run,
    )
    rows = sink.target.rows(state)
    rows = rows.select(*(name for name in rows.columns if name in stays)).limit(0)
    return sink.target.commit(state, Write(rows), said)
