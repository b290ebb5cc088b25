"""By what a table is read where a database has more than one source of changes, and what that cannot do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from airflow_provider_mssql_cdc.core.change_tracking import TrackedTable
from airflow_provider_mssql_cdc.core.changes import OPERATIONS
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, SinkState
from airflow_provider_mssql_cdc.core.copy_wanted import AUTO as AUTO_ISOLATION
from airflow_provider_mssql_cdc.core.copy_wanted import READ_COMMITTED
from airflow_provider_mssql_cdc.core.entry_values import AUTO, CT, PROPOSE
from airflow_provider_mssql_cdc.core.exceptions import FeedError, ParameterError
from airflow_provider_mssql_cdc.core.feed import Feed, Probe, refused_options, refused_shapes
from airflow_provider_mssql_cdc.core.initial import WITH_COPY
from airflow_provider_mssql_cdc.core.key import loose
from airflow_provider_mssql_cdc.core.lineage import VersionHistory
from airflow_provider_mssql_cdc.core.position import Position, Version
from airflow_provider_mssql_cdc.core.shapes import HISTORY, SHAPES
from airflow_provider_mssql_cdc.core.table import TableName, TableSchema, column_meant
from airflow_provider_mssql_cdc.core.table_options import TableOptions


def may_read(source: str, kind: type[Feed]) -> bool:
    """Whether a table may be read by feeds of a kind.

    :param source: one of ``SOURCES``
    """
    return source == AUTO or (source == CT) == (kind.KIND == TrackedTable.KIND)


def feeds_to_read(
    name: TableName, found: Sequence[Sequence[Feed]], source: str, checkpoint: Checkpoint | None
) -> Sequence[Feed]:
    """The feeds by which all sinks of a table are read: those of the source by which it was loaded; for a table that is
    loaded for the first time those of the first one.

    :param found: the table's feeds of each source that has some, the preferred one first
    :param source: one of ``SOURCES``; where it names one, others are not among those found
    :raises FeedError: if the one by which it was loaded has no feed of it any more
    """
    loaded = list(checkpoint.loaded.values()) if checkpoint is not None else []
    if source != AUTO or not loaded:
        return found[0]
    for feeds in found:
        if any(isinstance(sink.position, feeds[0].POSITION) for sink in loaded):
            return feeds
    position = min((sink.position for sink in loaded), key=lambda each: each.KIND)
    before = _word(position)
    raise FeedError(
        f"it was loaded up to {position}, by a {before}, and has none any more, but {found[0][0]}, whose positions are "
        "others.",
        table=str(name),
        advice=f'Either give it a {before} again: what came meanwhile is a gap then, which on_gap="copy" closes. Or '
        f"load it anew by the {found[0][0].WORD}: drop its target tables and run `mssql-cdc checkpoint reset`.",
    )


def tracked_anew(feed: Feed, sink: SinkState, probe: Probe) -> str | None:
    """Say that a table was truncated, or Change Tracking switched off and on for it, since a sink was loaded; None
    where nothing shows that. On a quiet database the sink's version is valid still, and no change tells of it.

    :param probe: of the sink's position, or of one below
    """
    if not isinstance(feed, TrackedTable) or not isinstance(sink.position, Version):
        return None
    since = sink.witness.tracking if sink.witness is not None else None
    is_lowest = sink.position == probe.readable_from.get(feed.object_id)
    if is_lowest and since is not None and since.held and feed.name in probe.emptied:
        # tracked from the same version on as before
        return "the table was truncated: none of its rows is there, and no change tells where they went"
    return VersionHistory(None, tracking=feed.since).tracked_anew(sink.witness)


def _word(position: Position) -> str:
    kinds = (kind for kind in Feed.KINDS.values() if kind.POSITION is type(position))
    return next((kind.WORD for kind in kinds), f"feed with a {position.WORD}")


def refused_for(
    feed: Feed | type[Feed], options: TableOptions, *, replay: bool = False, limits: bool = False
) -> list[str]:
    """Why a table cannot be loaded so, whatever its shapes are; empty where it can.

    :param replay: a past window is to be written once more
    :param limits: ``max_transactions`` or ``max_rows`` are said
    """
    begins = any(SHAPES[shape].takes_initial for shape in options.shapes)
    initial = options.initial if begins else WITH_COPY
    found = refused_options(feed, replay=replay, limits=limits, initial=initial)
    if feed.CAN.captured:
        return found
    if options.on_schema_change == PROPOSE:
        found.append(f"on_schema_change={PROPOSE!r} proposes capture instances, and a {feed.WORD} has all columns")
    filtered = HISTORY in options.shapes and options.choice.where
    if filtered and options.history.operations != OPERATIONS:
        found.append(
            f"operations beside where need what rows were before, to tell one that comes to fulfil the filter, and a "
            f"{feed.WORD} lacks that"
        )
    if isinstance(feed, Feed) and options.key:
        names = [column.name for column in feed.columns]
        if {column_meant(column, names) for column in options.key} != {*feed.primary_key}:
            found.append(f"key names other columns than the primary key, by which a {feed.WORD} tells rows apart")
    if isinstance(feed, Feed):
        schema = TableSchema(feed.columns, feed.primary_key)
        names = [column.name for column in feed.columns]
        hidden = {column_meant(column, names) for column in options.choice.mask}
        if masked := [column for column in loose(schema, feed.primary_key) if column in hidden]:
            found.append(
                f"mask hides {', '.join(masked)} of the primary key: where only its spelling changes (abc to ABC), a "
                f"{feed.WORD} does not say what it was, and the target's row would stay"
            )
    return found


def check_served(
    options: Iterable[tuple[str, TableOptions]], *, replay: bool, limits: bool, isolation: str = AUTO_ISOLATION
) -> None:
    """Refuse what tables that are to be read by Change Tracking cannot be loaded as.

    :param options: with the table, for people
    :param replay: as for ``refused_for``
    :param isolation: by which tables are read, one of ``ISOLATIONS``
    :raises ParameterError: naming the first table, with all reasons
    """
    for table, each in options:
        if each.source != CT:
            continue
        shapes = refused_shapes(TrackedTable, each.shapes, history=each.history, deletes=each.deletes)
        exact = [shape for shape in each.shapes if SHAPES[shape].needs_exact and shape not in shapes]
        if isolation == READ_COMMITTED and exact:
            shapes[exact[0]] = f"isolation={isolation!r} reads rows that are newer than their version, and " + (
                f"{' and '.join(exact)} need{'s' if len(exact) == 1 else ''} exact reads"
            )
        if why := [*refused_for(TrackedTable, each, replay=replay, limits=limits), *shapes.values()]:
            raise ParameterError(f"source={CT!r} of {table}: {'; '.join(why)}")
