"""What a run has to do with each table: from checkpoint, instances and LSN history to windows, or to a reason."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from airflow_provider_mssql_cdc.core.adding import Adding, added_to, widest
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, SinkState, lowest
from airflow_provider_mssql_cdc.core.choice import check_selection, check_values, select
from airflow_provider_mssql_cdc.core.dropping import told_of_dropped
from airflow_provider_mssql_cdc.core.exceptions import GapError, MsSqlCdcError
from airflow_provider_mssql_cdc.core.feed import DdlChange, Feed, Probe
from airflow_provider_mssql_cdc.core.feed_choice import has_begun, reaches_back, without_lower_bound
from airflow_provider_mssql_cdc.core.filling import LeftOut, lagging_in, left_out, noted, own_columns, told_of_filling
from airflow_provider_mssql_cdc.core.going_on import ids_there, names_before
from airflow_provider_mssql_cdc.core.healing import Healing, not_healed
from airflow_provider_mssql_cdc.core.key import check_suited, choose_key
from airflow_provider_mssql_cdc.core.lineage import Lineage, restored
from airflow_provider_mssql_cdc.core.newer_feed import feed_to_load, held_back
from airflow_provider_mssql_cdc.core.position import Position, is_gap
from airflow_provider_mssql_cdc.core.rekeying import (
    begins_anew,
    by_other_keys,
    check_deletes,
    first_anew,
    had,
    rekeys,
    told_of_key,
)
from airflow_provider_mssql_cdc.core.resting import Turn
from airflow_provider_mssql_cdc.core.schema import KeptSchema, KeptSchemas, unknown_schema
from airflow_provider_mssql_cdc.core.schema_change import (
    check_ddl,
    check_followed,
    check_kept_columns,
    check_schema,
    check_statements,
    concerning,
    followed_in,
    schema_of,
    statements_since,
    told_of,
    with_hidden,
)
from airflow_provider_mssql_cdc.core.selection import EVERYTHING, Selection
from airflow_provider_mssql_cdc.core.shapes import HARD, SHAPES
from airflow_provider_mssql_cdc.core.sink_errors import errors_of, left_of, raised_for
from airflow_provider_mssql_cdc.core.source_choice import tracked_anew
from airflow_provider_mssql_cdc.core.spec import Chosen
from airflow_provider_mssql_cdc.core.table import TableName, TableSchema, same_schema
from airflow_provider_mssql_cdc.core.table_options import TableOptions


@dataclass(frozen=True, slots=True)
class Candidate:
    """A table that can be loaded.

    :param sinks: shape to state, None where that shape is to be loaded for the first time
    :param again: those of these shapes that failed for good and are tried again
    :param failed: shape to why it cannot be loaded, of others
    :param lost_after: shape to where a gap begins that ``on_gap`` is to close
    :param selection: what of its rows is loaded
    :param ddl: on the feed's columns
    :param altered_at: as ``TableSpec`` has it
    :param lagging: shape to the columns that its sink lacks, or of which it lacks values of before, and is to get
    :param left_out: the histories that get no rows with columns which they lack, by shape
    :param loaded_with: hash to canonical JSON of other columns that its sinks were loaded with
    :param adding: what decides of columns that they lack
    :param rekeyed: what those sinks were loaded with that go on by another key, by shape
    :param healing: what heals gaps; None where nothing but a copy does
    """

    name: TableName
    feed: Feed
    schema: TableSchema
    unique_key: bool
    sinks: Mapping[str, SinkState | None]
    checkpoint: Checkpoint | None
    lost_after: Mapping[str, Position] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    selection: Selection = EVERYTHING
    again: frozenset[str] = frozenset()
    failed: Mapping[str, MsSqlCdcError] = field(default_factory=dict)
    ddl: tuple[DdlChange, ...] = ()
    altered_at: Position | None = None
    lagging: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: Mapping[str, LeftOut] = field(default_factory=dict)
    loaded_with: Mapping[str, str] = field(default_factory=dict)
    adding: Adding | None = None
    rekeyed: Mapping[str, KeptSchema] = field(default_factory=dict)
    healing: Healing | None = None

    @property
    def fills(self) -> bool:
        """Whether sinks get columns that they lack."""
        loads = self.adding is not None and self.adding.options.loads_new_columns
        return loads and (bool(self.lagging) or bool(self.loaded_with))

    @property
    def position(self) -> Position | None:
        """The lowest position from which a window of this table starts; None if all sinks are first loads."""
        return lowest(self.sinks.values())

    @property
    def counting(self) -> Position | None:
        """The lowest position that counts for others: sinks that failed for good and are tried again do not."""
        return lowest(sink for shape, sink in self.sinks.items() if shape not in self.again)

    def without(self, failed: Mapping[str, MsSqlCdcError]) -> Candidate:
        """The candidate without the sinks that cannot be loaded.

        :raises MsSqlCdcError: if none is left
        """
        left = left_of(self.sinks, failed)
        lagging = {shape: names for shape, names in self.lagging.items() if shape in left}
        left_out = {shape: each for shape, each in self.left_out.items() if shape in left}
        failed = {**self.failed, **failed}
        again = self.again & left.keys()
        return dataclasses.replace(self, sinks=left, again=again, failed=failed, lagging=lagging, left_out=left_out)

    def stands(self, shape: str) -> SinkState | None:
        """Where a sink stands that goes on, or begins anew by another key; None of one that begins else."""
        if shape in self.rekeyed and shape not in self.lost_after and self.checkpoint is not None:
            return self.checkpoint.loaded.get(shape)
        return self.sinks[shape]

    def asserted(self, shape: str) -> str | None:
        """Which asserted position a sink stands on, though its changes may be purged since."""
        stored = self.checkpoint.sinks.get(shape) if self.checkpoint else None
        return stored.asserted if stored else None

    @property
    def has_first_load(self) -> bool:
        """Whether some sink of this table is to be loaded for the first time."""
        return None in self.sinks.values()


@dataclass(frozen=True, slots=True)
class NotYet:
    """A table that has nothing to load before the capture has reached it.

    :param reason: what is waited for
    :param failed: shape to why it cannot be loaded then either
    """

    name: TableName
    reason: str
    failed: Mapping[str, MsSqlCdcError] = field(default_factory=dict)


def check_lineage(name: TableName, sink: SinkState, lineage: Lineage) -> None:
    """Refuse a position of another log lineage: after a restore, or after CDC was disabled and enabled again.

    :raises RestoredError: saying which proof failed
    """
    if why := lineage.contradiction(sink.position, sink.witness):
        raise restored(name, f"the checkpoint stands at {sink.position}", why)


def assess(
    name: TableName,
    feeds: Sequence[Feed],
    checkpoint: Checkpoint | None,
    probe: Probe,
    ddl: Sequence[DdlChange],
    options: TableOptions,
    salt: str | None = None,
    kept: KeptSchemas = unknown_schema,
    turn: Turn | None = None,
    hides: Callable[[Feed, Chosen], str | None] = lambda *_: None,
    healing: Healing | None = None,
) -> Candidate | NotYet:
    """Decide whether, from where and from which instance a table can be loaded, and which of its sinks cannot.

    :param feeds: the table's, at least one
    :param ddl: of all its feeds
    :param probe: of its feeds
    :param salt: ``core.selection.salt_check`` of the salt; None where there is none
    :param kept: schemas by their hash
    :param turn: which shapes the run is about; by default all, as sound ones
    :param hides: what keeps the login from reading the rows that a feed's table holds; None where nothing does
    :param healing: what heals gaps; None where nothing but a copy does
    :raises MsSqlCdcError: if no sink of the table can be loaded; it concerns this table alone
    """
    turn = turn or Turn(options.shapes)
    loaded = checkpoint.loaded if checkpoint else {}
    sinks = {shape: loaded.get(shape) for shape in turn.shapes}
    failed = errors_of(sinks, lambda _, sink: check_lineage(name, sink, probe.lineage))
    sinks = left_of(sinks, failed)
    shapes = [*filter(sinks.__contains__, turn.sound)] or [*sinks]
    # shapes of one table have the same columns, also beside one that rests
    named = {shape: loaded.get(shape) for shape in options.shapes}
    states = [*sinks.values(), *(state for shape, state in named.items() if shape not in sinks)]
    adding = Adding.of(options, checkpoint, named.values(), kept)
    going_on = [state for state in named.values() if state is not None]
    feed = feed_to_load(name, feeds, checkpoint, shapes, going_on, adding, kept, probe)
    key, unique = choose_key(name, feed, options.key, adding.keys)
    now = TableSchema(feed.columns, key)
    there = ids_there(feed, adding.source_object_id)
    loaded_first, widens = widest(states, kept), options.follows_types
    others = by_other_keys(named, now, kept) if rekeys(options) else {}
    beginning = first_anew(now, others, loaded_first, adding, feed) or adding.beginning(now)
    aside = adding.sets_aside
    schema = schema_of(
        now, beginning, loaded_first, kept, options.copy_by, widens=widens, there=there, sets_aside=aside
    )
    wider, told = added_to(name, feed, schema, now, adding, hides, salt)
    selection = select(name, schema, adding.choice(schema, feed), check=salt, position=feed.POSITION)
    if wider is not None:
        schema, selection = wider.schema, wider.selection
    check_kept_columns(name, schema, selection, options)

    def check_shape(shape: str) -> None:
        check_suited(name, feed, options, shape, key, enforced=unique)
        if feed.CAN.captured:
            check_values(name, schema, selection, shape)

    failed |= raised_for(sinks, check_shape)
    sinks = left_of(sinks, failed)
    readable_from, upto = reaches_back(feed, probe), probe.cut
    if upto is None or not has_begun(feed, readable_from, probe.lineage.newest):
        if readable_from is None and (any(sinks.values()) or not feed.CAN.captured):
            raise without_lower_bound(name, feed, probe)
        return NotYet(name, f"{feed} was just enabled; nothing is captured yet", failed)
    warnings = [f"column {column} is not captured by {feed.name}" for column in feed.uncaptured]
    warnings += told
    warnings += held_back(name, feeds, feed, checkpoint, going_on, adding, kept, probe)
    chosen = Chosen(schema, selection)
    rekeyed = {s: then for s, then in others.items() if s in sinks and begins_anew(schema, then, widens=widens)}
    own = {
        shape: own_columns(
            chosen, now, sink.schema_hash, kept, options.copy_by, widens=widens, there=there, sets_aside=aside
        )
        for shape, sink in sinks.items()
        if sink is not None and shape not in rekeyed
    }
    of_feed = [change for change in ddl if change.capture_instance == feed.name]
    since, followed, differing = {}, {}, followed_in(own, sinks, kept)
    for shape, columns in own.items() if options.follows_types else ():
        state, concerned = sinks[shape], concerning(of_feed, feed.columns, columns.schema)
        assert state is not None
        # those of a time that was proven empty count, too
        since[shape] = statements_since(concerned, state.applied or state.position, state.ddl_upto)
        followed[shape] = with_hidden(differing.get(shape, {}), since[shape], columns.schema)
        if SHAPES[shape].has_data:
            sinks[shape] = noted(state, followed[shape], columns)
    warnings += told_of(followed, schema, selection)
    warnings += told_of_key(rekeyed, schema, options.deletes, wide=options.history.is_wide)
    lagging = {
        shape: names
        for shape, columns in own.items()
        if options.loads_new_columns
        and not options.leaves_null
        and (
            names := lagging_in(
                chosen, columns, sinks[shape], shape, unique, options.history, options.history_fill, followed[shape]
            )
        )
    }
    leaves_null = options.loads_new_columns and options.leaves_null
    fills = options.loads_new_columns and not options.leaves_null
    left = left_out(chosen, own, lagging, unique, options.history, options.history_fill) if fills else {}
    warnings += told_of_filling(chosen, own, lagging, followed, left, leaves_null=leaves_null)
    warnings += told_of_dropped(schema, selection, options, adding.gone)
    why = "CDC captures it as NULL" if feed.CAN.captured else "it follows from others"
    warnings += [f"computed column {c.name} is left out: {why}" for c in schema.columns if c.computed]
    loaded_names = {c.name for c in schema.loaded if selection.holds(c.name)}
    warnings += [
        f"column {c.name} is encrypted (Always Encrypted), and loaded as the bytes of its ciphertext"
        for c in schema.columns
        if c.encrypted and c.name in loaded_names
    ]
    candidate = Candidate(
        name,
        feed,
        schema,
        unique,
        sinks,
        checkpoint,
        warnings=tuple(warnings),
        selection=selection,
        again=frozenset(turn.again),
        failed=failed,
        ddl=concerning(of_feed, feed.columns, schema),
        altered_at=max((change.lsn for change in of_feed if change.requires_column_update), default=readable_from),
        lagging=lagging,
        left_out=left,
        loaded_with={
            was.hash: was.canonical
            for shape in (*own, *rekeyed)
            if (sink := sinks[shape]) is not None and sink.schema_hash not in (None, schema.hash)
            if (was := kept(str(sink.schema_hash))) is not None
        },
        adding=adding,
        rekeyed=rekeyed,
        healing=healing if feed.CAN.captured else None,
    )
    cut = upto

    def check(shape: str, sink: SinkState) -> None:
        if (loaded_by := rekeyed.get(shape)) is not None:
            check_deletes(name, schema, loaded_by, options.deletes if SHAPES[shape].takes_deletes else HARD)
            has = had(chosen, loaded_by, sink.selection_hash, widens=widens)
            check_selection(name, has.selection, [sink])
            return
        # each goes on with the columns that it has
        has, then = own[shape], kept(sink.schema_hash) if options.follows_types and sink.schema_hash else None
        if options.follows_types:
            hidden = hides(feed, has) if shape in lagging else None
            check_followed(name, followed[shape], has.selection, hidden, options.partition_by)
            check_statements(name, since[shape], followed[shape], has.schema)
        else:
            check_ddl(name, concerning(candidate.ddl, feed.columns, has.schema), sink.position, cut)
        check_kept_columns(name, has.schema, has.selection, options)
        check_schema(name, has.schema, [sink], kept, widens=options.follows_types)
        check_selection(name, has.selection.named(names_before(then, has.schema)), [sink])

    return closed_gap(candidate.without(errors_of(sinks, check)), readable_from, options, probe)


def _reads(state: SinkState | None, feed: Feed) -> bool:
    return state is not None and state.feed is not None and state.feed.is_same(feed)


def closed_gap(candidate: Candidate, readable_from: Position | None, options: TableOptions, probe: Probe) -> Candidate:
    """The candidate, with first loads in place of the sinks whose changes were purged if that was asked for,
    else without them; and in place of those whose rows are told apart by another key.

    :raises GapError: if none is left
    """
    loaded = {shape: state.position for shape, state in candidate.sinks.items() if state is not None}
    copied = {s for s in loaded if s in candidate.rekeyed and takes_copy(candidate, options, s)}
    states, feed = {shape: state for shape, state in candidate.sinks.items() if state}, candidate.feed
    ended = {shape: why for shape, state in states.items() if (why := tracked_anew(feed, state, probe))}
    behind = {shape: at for shape, at in loaded.items() if shape in ended or is_gap(at, readable_from)}
    # SQL Server changes a key only while no instance has it: what was lost with that keeps nobody from going on
    gone = {s for s in loaded if s in candidate.rekeyed and not _reads(candidate.sinks[s], candidate.feed)}
    # a mirror lacks nothing after a copy by another key, and an scd2 no more than without the gap
    anew = {s for s in copied if s not in behind or s in gone or not SHAPES[s].takes_history}
    lost = {shape: position for shape, position in behind.items() if shape not in anew}
    left = {s: why for s in lost if (why := _lacks_healing(candidate, options, s, states[s])) is not None}
    # what a copy would cost is not decided by a server that did not answer
    is_unasked = candidate.healing is not None and bool(candidate.healing.unasked)
    copies = options.copies_on_gap and not is_unasked
    closed = {s: position for s, position in lost.items() if copies or s in gone or s not in left}
    begin = anew | closed.keys()
    sinks = {shape: None if shape in begin else state for shape, state in candidate.sinks.items()}
    candidate = dataclasses.replace(candidate, sinks=sinks, lost_after={**candidate.lost_after, **closed})
    lost = {shape: position for shape, position in lost.items() if shape not in closed}
    if not lost:
        return candidate
    why = next((ended[shape] for shape in lost if shape in ended), None)
    more = "" if why else f"; then load more often, or raise the retention ({candidate.feed.KEPT_LONGER_BY})"
    advice = (
        'Load the table anew once with on_gap="copy", or drop the target table and run `mssql-cdc checkpoint reset`'
    )
    failed = {}
    for shape in lost:
        unhealed = f" {not_healed(left[shape], copies=options.copies_on_gap)}" if candidate.healing is not None else ""
        told = f"{advice}{more}.{unhealed}"
        failed[shape] = GapError(str(candidate.name), min(lost.values()), readable_from, advice=told, why=why)
        failed[shape].permanent = not is_unasked
    return candidate.without(failed)


def takes_copy(candidate: Candidate, options: TableOptions, shape: str) -> bool:
    """Whether a sink begins with a copy of the table's rows."""
    return SHAPES[shape].takes_copy(wide=options.history.is_wide, has_key=bool(candidate.schema.key))


def _lacks_healing(candidate: Candidate, options: TableOptions, shape: str, state: SinkState) -> str | None:
    """Why Change Tracking does not heal a sink; None where it does."""
    healing, schema = candidate.healing, candidate.schema
    if healing is None:
        return "on_gap does not name it"
    if (why := healing.lacks(schema, candidate.selection, unique_key=candidate.unique_key)) is not None:
        return why
    if not takes_copy(candidate, options, shape):
        return f"{shape} shows no rows, but changes"
    if state.asserted is not None:
        return "a person has said where it stands"
    if shape in candidate.rekeyed or state.unfilled or not same_schema(state.schema_hash or "", schema):
        return "its columns were changed, too"
    assert healing.tracked is not None
    found = healing.version(state.positions, state.position, healing.tracked.min_valid_version)
    return found if isinstance(found, str) else None
