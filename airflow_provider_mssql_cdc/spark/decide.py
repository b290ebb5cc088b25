"""Where a sink stands: its own marker, found in the target, has the last word; and what it must not be loaded from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from airflow_provider_mssql_cdc.core.change_tracking import TrackedTable
from airflow_provider_mssql_cdc.core.choice import selection_changed
from airflow_provider_mssql_cdc.core.entry_values import CDC, CT
from airflow_provider_mssql_cdc.core.exceptions import (
    RESET_ADVICE,
    CommitConflictError,
    CopyRefusedError,
    CopyStoppedError,
    GapError,
    KeyRequiredError,
    NoRoomError,
    SchemaChangedError,
    TargetError,
)
from airflow_provider_mssql_cdc.core.going_on import follows, goes_on_with, ids_there, names_before
from airflow_provider_mssql_cdc.core.marker import Marker
from airflow_provider_mssql_cdc.core.position import Lsn, Position
from airflow_provider_mssql_cdc.core.rekeying import begins_anew, check_deletes, had
from airflow_provider_mssql_cdc.core.schema import KeptSchemas, unknown_schema
from airflow_provider_mssql_cdc.core.schema_diff import differing
from airflow_provider_mssql_cdc.core.selection import same_selection
from airflow_provider_mssql_cdc.core.shapes import SHAPES
from airflow_provider_mssql_cdc.core.spec import Chosen, SinkSpec, SourceSpec, TableSpec
from airflow_provider_mssql_cdc.core.steps import Stand
from airflow_provider_mssql_cdc.core.table import TableSchema, same_schema
from airflow_provider_mssql_cdc.spark.targets import State

SAME_AGAIN = (KeyRequiredError, NoRoomError)
"""What a copy raises again for as long as it is there. What it leaves open each run reads again."""


def is_asserted(sink: SinkSpec, marker: Marker | None) -> bool:
    """Whether an asserted position of this sink is still to be loaded on: no commit was made on it yet."""
    return sink.asserted is not None and (marker is None or marker.asserted != sink.asserted)


def rekeyed(table: TableSpec, marker: Marker | None, kept: KeptSchemas) -> Chosen | None:
    """What a sink has of a table's columns that goes on by another key than that by which it was loaded; None for one
    that does not.

    :param kept: schemas by their hash
    """
    if not table.rekeys or marker is None or same_schema(marker.schema_hash, table.schema):
        return None
    then = kept(marker.schema_hash)
    if then is None or not begins_anew(table.schema, then, widens=table.types):
        return None
    return had(Chosen(table.schema, table.selection), then, marker.selection_hash, widens=table.types)


def stand_of(table: TableSpec, sink: SinkSpec, state: State, kept: KeptSchemas = unknown_schema) -> Stand:
    """Where a sink stands: at its marker's position, or at an asserted one.

    :param state: of the target; ``check_origin`` has passed its marker
    :param kept: schemas by their hash
    :raises TargetError: if the target does not fit the checkpoint
    """
    marker = state.marker
    if is_asserted(sink, marker):
        if not state.exists:
            raise TargetError(
                f"{sink.name} is missing, although `checkpoint set` says that it stands for "
                f"{sink.read_through or sink.lost_after}.",
                table=str(table.name),
                advice="Restore it, or load it for the first time after `mssql-cdc checkpoint reset`.",
            )
        return Stand(marker.position if marker else None, True, rekeyed(table, marker, kept) is not None)
    if state.doubt is not None:
        raise state.doubt
    if marker is None:
        _check_without_marker(table, sink, state.is_empty)
        return Stand(None)
    if state.from_property and sink.expects is not None and marker.position < sink.expects:
        raise TargetError(
            f"the commits of {sink.name} that say what it holds have expired, and its properties remember "
            f"{marker.position} only, where {sink.expects} was reached.",
            table=str(table.name),
            advice=RESET_ADVICE,
        )
    return Stand(marker.position, rekeyed=rekeyed(table, marker, kept) is not None)


def table_of(table: TableSpec, markers: Sequence[Marker | None]) -> TableSpec:
    """The table by the capture instance that its sinks are loaded from.

    :param markers: of its sinks
    """
    found = [marker for marker in markers if marker is not None]
    for each in (table, *table.alternatives):
        if any(other_instance(each, marker) is None for marker in found):
            return each
    return table


def unreported(sinks: Sequence[SinkSpec], markers: Sequence[Marker | None]) -> list[Marker]:
    """The markers of commits that the run does not expect: of a job whose task was killed before it read the receipt.

    One for each window, however many sinks took it.

    :param markers: of the sinks
    """
    found: dict[tuple[Position | None, Position], Marker] = {}
    for sink, marker in zip(sinks, markers, strict=True):
        if marker is None or is_asserted(sink, marker) or sink.lost_after is not None:
            continue
        if sink.expects is None or marker.position > sink.expects:
            known = found.get((marker.window_after, marker.position))
            # a shape without copied rows counts none
            if known is None or sum(known.events.values()) < sum(marker.events.values()):
                found[marker.window_after, marker.position] = marker
    return list(found.values())


def said_window(marker: Marker) -> str:
    """The window of a marker's commit as text, that of a first load without its beginning."""
    return f"({marker.window_after or ''}, {marker.position}]"


def gap(
    table: TableSpec, after: Position, readable_from: Position | None, marker: Marker | None = None, why: str = ""
) -> GapError:
    """The error that says what was lost.

    :param marker: of the target
    :param why: where the changes are there, and do not tell all
    """
    other = other_instance(table, marker) if marker else None
    # on_gap goes by the checkpoint, which may be lost, or ahead of a target that was rolled back
    first = ""
    if marker and isinstance(after, Lsn):
        first = f" (after `mssql-cdc checkpoint set --position {after}`, if that does nothing)"
    return GapError(
        str(table.name),
        after,
        readable_from,
        advice=(f"The target {other}. " if other else "")
        + f'Load the table anew once with on_gap="copy"{first}, or drop the target table and run `mssql-cdc '
        "checkpoint reset`"
        + ("." if why else f"; then load more often, or raise the retention ({table.feed.KEPT_LONGER_BY})."),
        other=str(table.feed) if other else None,
        why=why or None,
    )


def is_of_no_more_use(
    left: Collection[str], failed: Mapping[str, tuple[Exception, str | None]], going_on: Collection[str]
) -> bool:
    """Whether nobody waits for a whole copy any more, or who does would fail with the same rows in the same way.

    :param left: the shapes that have not begun with it
    :param failed: shape to why it failed
    :param going_on: shapes that need none
    """
    if any(isinstance(failed[shape][0], SAME_AGAIN) for shape in left if shape in failed):
        return True
    # one that could not be looked at may wait for it
    return not left and failed.keys() <= {*going_on}


def copy_stopped(table: TableSpec, sink: SinkSpec, reason: str | None) -> CopyStoppedError:
    """The error of a sink whose copy was stopped.

    :param reason: None where a person has said so
    """
    return CopyStoppedError(
        f"the copy with which {sink.name} was to begin was stopped{f': {reason}' if reason else ''}.",
        table=str(table.name),
        advice="`mssql-cdc copy start` begins another one.",
    )


def check_comparable(table: TableSpec) -> None:
    """Refuse to compare targets with rows that the login reads in another way than CDC captures them.

    :raises CopyRefusedError: if it does
    """
    if table.protection is not None:
        raise CopyRefusedError(
            f"its rows would be compared as the login reads them: {table.protection}.",
            table=str(table.name),
            advice="Let the login read the table as it is (UNMASK, and no row filter), and ask again.",
        )


def other_instance(table: TableSpec, marker: Marker) -> str | None:
    """Say from which other capture instance a target was loaded; None if it was this one.

    Another one goes on where it reaches back to the marker: with the same columns it holds the same changes.
    """
    instance, feed = table.feed, marker.feed
    if feed.is_same(instance):
        return None
    return (
        f"was loaded from capture instance {feed.name} (change table {feed.object_id}); this run reads "
        f"{instance.name} ({instance.object_id})"
    )


def _check_without_marker(table: TableSpec, sink: SinkSpec, is_empty: bool) -> None:
    name = sink.name
    if not is_empty:
        raise TargetError(
            f"{name} has rows, but no commit of this package: what it holds is not known.",
            table=str(table.name),
            advice=RESET_ADVICE,
        )
    if sink.expects is not None:
        raise TargetError(
            f"{name} is missing or empty, although it was loaded up to {sink.expects}.",
            table=str(table.name),
            advice="Restore it, or load it anew after `mssql-cdc checkpoint reset`.",
        )


def is_grown_from(table: TableSpec, sink: SinkSpec, marker: Marker | None) -> bool:
    """Whether a target has fewer columns, and gets the others with the next commit."""
    before = table.grows_from.get(sink.shape)
    if before is None or marker is None or not (table.leaves_null or SHAPES[sink.shape].only_adds):
        return False
    return same_schema(marker.schema_hash, before.schema) and same_selection(marker.selection_hash, before.selection)


def check_origin(
    source: SourceSpec, table: TableSpec, sink: SinkSpec, marker: Marker, kept: KeptSchemas = unknown_schema
) -> None:
    """Prove that a target is loaded from this table, with these columns.

    :param kept: schemas by their hash
    :raises TargetError: if it is another source's, or a history of other changes
    :raises SchemaChangedError: if it was loaded with other columns
    :raises SelectionChangedError: if something else of the rows was loaded
    """
    here, there = (source.server, source.database), (marker.server, marker.database)
    # one that was renamed, or moved to another schema, keeps its object_id
    # earlier versions wrote none into their markers: there the checkpoint knows it that stands on the same commit
    known = marker.source_object_id or (table.source_object_id if marker.position == sink.expects else None)
    same = marker.table == table.name if known is None else known == table.feed.source_object_id
    if here != there or not (same or (sink.lost_after is not None and marker.table == table.name)):
        raise TargetError(
            f"{sink.name} is loaded from {marker.table} of {marker.database} on {marker.server}, not from "
            f"{table.name} of {source.database} on {source.server}.",
            table=str(table.name),
            advice="Choose another target or table_name. If it is the same table of a database that was moved, name "
            "the position that the target stands for with `mssql-cdc checkpoint set`.",
        )
    if marker.feed.kind != table.feed.KIND:
        word = CT if marker.feed.kind == TrackedTable.KIND else CDC
        raise TargetError(
            f"{sink.name} is loaded from {marker.feed.kind} {marker.feed.name}, and this run reads {table.feed}.",
            table=str(table.name),
            advice=f"Read the table as before (source={word!r} in its entry, also where its checkpoint is lost), or "
            f"load into another table (table_name). {RESET_ADVICE}",
        )
    if marker.history != sink.history:
        raise TargetError(
            f"{sink.name} holds {marker.history}, and this load would add {sink.history}.",
            table=str(table.name),
            advice="Load these into another table (table_name), or put changes, history_form and operations back. "
            f"{RESET_ADVICE}",
        )
    if marker.deletes not in (None, sink.deletes):
        raise TargetError(
            f'{sink.name} was loaded with deletes="{marker.deletes}", and this load has deletes="{sink.deletes}".',
            table=str(table.name),
            advice=f"Load into another table (table_name), or put deletes back. {RESET_ADVICE}",
        )
    if is_grown_from(table, sink, marker):
        return
    then = kept(marker.schema_hash)
    has = rekeyed(table, marker, kept)
    if has is not None and then is not None:
        check_deletes(table.name, table.schema, then, sink.deletes)
    goes_on = has is not None or follows(table.schema, marker.schema_hash, then, widens=table.types)
    if not goes_on:
        now = TableSchema(table.feed.columns, table.schema.key)
        ids = ids_there(table.feed, marker.source_object_id or table.source_object_id)
        if goes_on_with(now, then, table.copy_by, widens=table.types, there=ids) is not None:
            # as it was looked at it had these: another run has filled columns, or a person has taken that back
            raise CommitConflictError(
                f"{sink.name} has other columns than when this run looked at it.",
                table=str(table.name),
                advice="Run the task again; let one run at a time load it.",
            )
    before = (
        has.selection
        if has is not None
        else table.selection.named(names_before(then if table.widens else None, table.schema))
    )
    if not same_selection(marker.selection_hash, before):
        raise selection_changed(table.name, sink.name, marker.selection, table.selection)
    if not goes_on:
        raise SchemaChangedError(
            f"the captured columns or the key are not those that {sink.name} was loaded with.\n"
            f"{differing(then, table.schema)}",
            table=str(table.name),
            advice=f"{RESET_ADVICE} In that case give it the columns of now first; its rows "
            "keep NULL in a column that was added, until they change.",
        )
