"""What a run has to do with each table: from checkpoint, instances and LSN history to windows, or to a reason."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_mssql_cdc.core.adding import Adding, added_to, feed_to_load, held_back, narrowest
from airflow_provider_mssql_cdc.core.changes import DEFAULT
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, SinkState, lowest
from airflow_provider_mssql_cdc.core.choice import check_selection, check_values, select
from airflow_provider_mssql_cdc.core.exceptions import (
    RESET_ADVICE,
    GapError,
    MsSqlCdcError,
    RestoredError,
)
from airflow_provider_mssql_cdc.core.feed import DdlChange, Feed, FeedRef, Probe
from airflow_provider_mssql_cdc.core.feed_choice import reaches_back
from airflow_provider_mssql_cdc.core.initial import WITH_COPY
from airflow_provider_mssql_cdc.core.key import check_suited, choose_key
from airflow_provider_mssql_cdc.core.lineage import Lineage, Witness, restored
from airflow_provider_mssql_cdc.core.position import Position, is_gap
from airflow_provider_mssql_cdc.core.resting import Turn
from airflow_provider_mssql_cdc.core.schema import KeptSchemas, unknown_schema
from airflow_provider_mssql_cdc.core.schema_change import (
    check_ddl,
    check_kept_columns,
    check_schema,
    concerns_only,
    left_out_of,
    schema_of,
)
from airflow_provider_mssql_cdc.core.selection import EVERYTHING, Selection
from airflow_provider_mssql_cdc.core.shapes import HARD, SHAPES
from airflow_provider_mssql_cdc.core.spec import Chosen, SinkSpec, TableSpec
from airflow_provider_mssql_cdc.core.steps import Done, Stand, TableSteps, table_steps
from airflow_provider_mssql_cdc.core.table import TableName, TableSchema, same_schema
from airflow_provider_mssql_cdc.core.table_options import TableOptions


@dataclass(frozen=True, slots=True)
class Candidate:
    """A table that can be loaded.

    :param sinks: shape to state, None where that shape is to be loaded for the first time
    :param again: those of these shapes that failed for good and are tried again
    :param failed: shape to why it cannot be loaded, of others
    :param lost_after: shape to where a gap begins that ``on_gap="copy"`` is to close
    :param selection: what of its rows is loaded
    :param ddl: on the feed's columns
    :param wider: with what the sinks go on once the columns are filled that they lack; None where they lack none
    :param adding: what decides of columns that they lack
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
    wider: Chosen | None = None
    adding: Adding | None = None

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
        left = _left(self.sinks, failed)
        return dataclasses.replace(self, sinks=left, again=self.again & left.keys(), failed={**self.failed, **failed})

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
) -> Candidate | NotYet:
    """Decide whether, from where and from which instance a table can be loaded, and which of its sinks cannot.

    :param feeds: the table's, at least one
    :param ddl: of all its feeds
    :param probe: of its feeds
    :param salt: ``core.selection.salt_check`` of the salt; None where there is none
    :param kept: schemas by their hash
    :param turn: which shapes the run is about; by default all, as sound ones
    :param hides: what keeps the login from reading the rows that a feed's table holds; None where nothing does
    :raises MsSqlCdcError: if no sink of the table can be loaded; it concerns this table alone
    """
    turn = turn or Turn(options.shapes)
    loaded = checkpoint.loaded if checkpoint else {}
    sinks = {shape: loaded.get(shape) for shape in turn.shapes}
    failed = errors_of(sinks, lambda _, sink: check_lineage(name, sink, probe.lineage))
    sinks = _left(sinks, failed)
    shapes = [*filter(sinks.__contains__, turn.sound)] or [*sinks]
    # shapes of one table have the same columns, also beside one that rests
    states = [*sinks.values(), *(loaded.get(shape) for shape in options.shapes if shape not in sinks)]
    adding = Adding.of(options, checkpoint, states, kept)
    feed = feed_to_load(name, feeds, checkpoint, shapes, adding, kept, probe)
    key, unique = choose_key(name, feed, options.key)
    now = TableSchema(feed.columns, key)
    loaded_schema = schema_of(now, narrowest(states, kept), kept, options.copy_by)
    schema = adding.without_unfilled(loaded_schema, sinks.values())
    wider, told = added_to(name, feed, schema, now, adding, hides, salt)
    schema = schema if wider is not None else loaded_schema
    selection = select(name, schema, adding.choice(schema, feed), check=salt)
    check_kept_columns(name, schema, selection, options)

    def check_shape(shape: str) -> None:
        check_suited(name, feed, options, shape, key, enforced=unique)
        check_values(name, schema, selection, shape)

    failed |= raised_for(sinks, check_shape)
    sinks = _left(sinks, failed)
    readable_from, newest, upto = reaches_back(feed, probe), probe.lineage.newest, probe.cut
    if readable_from is None or newest is None or upto is None or newest <= readable_from:
        if any(sinks.values()) and readable_from is None:
            raise RestoredError(
                f"{feed} shows no lower bound (fn_cdc_get_min_lsn), beside a checkpoint.",
                table=str(name),
                advice="Either it was just enabled anew, or the login may not see it: SELECT on all captured columns "
                f"and membership in the gating role are needed. {RESET_ADVICE}",
            )
        return NotYet(name, f"{feed} was just enabled; nothing is captured yet", failed)
    warnings = [f"column {column} is not captured by {feed.name}" for column in feed.uncaptured]
    warnings += told
    warnings += held_back(name, feeds, feed, [loaded[s] for s in shapes if s in loaded], adding, kept, probe)
    left_out = left_out_of(feed.columns, wider.schema if wider is not None else schema)
    warnings += [f"column {c.name} is left out: the source table no longer has it" for c in schema.columns if c.dropped]
    dropped = [column for column in schema.kept if selection.holds(column)]
    warnings += [f"column {column} is NULL since the source table dropped it" for column in dropped]
    warnings += [f"computed column {c.name} is left out: CDC captures it as NULL" for c in schema.columns if c.computed]
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
        ddl=tuple(
            change
            for change in ddl
            if change.capture_instance == feed.name and not concerns_only(change, left_out, schema)
        ),
        wider=wider,
        adding=adding,
    )
    cut = upto

    def check(shape: str, sink: SinkState) -> None:
        check_ddl(name, candidate.ddl, sink.position, cut)
        # one that a run before has filled goes on with what the others lack
        wide = wider is not None and sink.schema_hash is not None and same_schema(sink.schema_hash, wider.schema)
        check_schema(name, wider.schema if wide and wider else schema, [sink], kept)
        check_selection(name, wider.selection if wide and wider else selection, [sink])

    return closed_gap(candidate.without(errors_of(sinks, check)), readable_from, options)


def errors_of(
    sinks: Mapping[str, SinkState | None], check: Callable[[str, SinkState], None]
) -> dict[str, MsSqlCdcError]:
    """Shape to what a check raises, of the sinks that are loaded."""
    loaded = {shape: sink for shape, sink in sinks.items() if sink is not None}
    return raised_for(loaded, lambda shape: check(shape, loaded[shape]))


def raised_for(shapes: Iterable[str], check: Callable[[str], None]) -> dict[str, MsSqlCdcError]:
    """Shape to what a check raises."""
    failed = {}
    for shape in shapes:
        try:
            check(shape)
        except MsSqlCdcError as error:
            failed[shape] = error
    return failed


def _left(sinks: Mapping[str, SinkState | None], failed: Mapping[str, MsSqlCdcError]) -> dict[str, SinkState | None]:
    """The sinks that did not fail.

    :raises MsSqlCdcError: if none is left
    """
    left = {shape: sink for shape, sink in sinks.items() if shape not in failed}
    if failed and not left:
        raise next(iter(failed.values()))
    return left


def closed_gap(candidate: Candidate, readable_from: Position | None, options: TableOptions) -> Candidate:
    """The candidate, with first loads in place of the sinks whose changes were purged if that was asked for,
    else without them.

    :raises GapError: if none is left
    """
    lost = {
        shape: state.position
        for shape, state in candidate.sinks.items()
        if state is not None and is_gap(state.position, readable_from)
    }
    if not lost:
        return candidate
    if options.copies_on_gap:
        sinks = {shape: None if shape in lost else state for shape, state in candidate.sinks.items()}
        return dataclasses.replace(candidate, sinks=sinks, lost_after={**candidate.lost_after, **lost})
    error = GapError(
        str(candidate.name),
        min(lost.values()),
        readable_from,
        advice='Load the table anew once with on_gap="copy", or drop the target table and run `mssql-cdc '
        "checkpoint reset`; then load more often, or raise the retention (sys.sp_cdc_change_job "
        "@job_type = N'cleanup', @retention = minutes).",
    )
    return candidate.without(dict.fromkeys(lost, error))


def checkpoint_steps(table: TableSpec, probe: Probe, upto: Position, again: Collection[str] = ()) -> TableSteps:
    """The steps of a table as its checkpoint says; none to read for a sink behind which no event is known of.

    :param upto: the cut
    :param again: shapes that failed for good: that nothing happened does not mend them
    """
    stands = {sink.shape: Stand.expected(sink) for sink in table.sinks}
    steps = table_steps(table, stands, cut=upto, readable_from=probe.readable_from.get(table.feed.object_id))
    newest = probe.newest.get(table.feed.name)
    quiet = {
        shape: Done("empty", upto)
        for shape, window in steps.windows.items()
        if shape not in again and (newest is None or newest <= window.after)
    }
    if len(quiet) < len(steps.windows) or steps.begins or steps.refused or steps.lost:
        return steps
    return TableSteps(done={**steps.done, **quiet})


def table_spec(candidate: Candidate, options: TableOptions) -> TableSpec:
    """The table's part of the job spec."""
    return TableSpec(
        name=candidate.name,
        feed=candidate.feed,
        schema=candidate.schema,
        unique_key=candidate.unique_key,
        copy_by=options.copy_by,
        wider=candidate.wider,
        selection=candidate.selection,
        ddl=candidate.ddl,
        sinks=tuple(
            SinkSpec(
                shape=shape,
                table=options.target.table(options.table_name, candidate.name, shape),
                read_through=state.read_through if state else None,
                expects=state.applied if state else None,
                lost_after=candidate.lost_after.get(shape),
                asserted=candidate.asserted(shape),
                # it has none of the columns that the expressions are about
                partition_by=options.partition_by if SHAPES[shape].has_data else (),
                properties=dict(options.table_properties),
                format=options.target.format,
                deletes=options.deletes if SHAPES[shape].takes_deletes else HARD,
                history=options.history if SHAPES[shape].takes_history else DEFAULT,
                initial=options.initial if SHAPES[shape].takes_initial and state is None else WITH_COPY,
            )
            for shape, state in candidate.sinks.items()
        ),
    )


def quiet_checkpoint(candidate: Candidate, upto: Position, witness: Witness | None) -> Checkpoint | None:
    """The checkpoint with ``read_through`` moved to a cut up to which the table is proven empty.

    :return: None if no sink lies below the cut, and the instance is still the same
    """
    if candidate.checkpoint is None:
        return None
    # only the shapes that this run looked at are proven empty
    states = {shape: state for shape, state in candidate.sinks.items() if state is not None}
    ref = FeedRef.of(candidate.feed)
    if all(state.position >= upto and state.feed == ref for state in states.values()):
        return None
    moved = {
        shape: dataclasses.replace(state, failed=None, **loaded_from(candidate, state.schema_hash))
        for shape, state in states.items()
    }
    for shape, state in states.items():
        if state.position < upto:
            moved[shape] = dataclasses.replace(moved[shape], read_through=upto, witness=witness)
    return dataclasses.replace(candidate.checkpoint, sinks={**candidate.checkpoint.sinks, **moved})


def loaded_from(table: Candidate | TableSpec, schema_hash: str | None) -> dict[str, Any]:
    """What a sink's state says of a load.

    :param schema_hash: of the columns that the sink has
    """
    wide = table.wider if table.wider is not None and table.wider.schema.hash == schema_hash else None
    chosen = wide or Chosen(table.schema, table.selection)
    return {
        "feed": FeedRef.of(table.feed),
        "schema_hash": chosen.schema.hash,
        "schema_kept": True,
        "selection_hash": chosen.selection.hash,
        "selection": chosen.selection.describe(),
    }


def is_stale(checkpoint: Checkpoint, now: datetime.datetime, retention: datetime.timedelta | None) -> bool:
    """Whether a quiet table's checkpoint is old enough to be written for ``read_through`` alone.

    :param retention: of the cleanup job, None where unknown
    """
    limit = datetime.timedelta(hours=1)
    if retention is not None:
        limit = min(limit, retention / 10)
    return checkpoint.updated_at is None or now - checkpoint.updated_at > limit
