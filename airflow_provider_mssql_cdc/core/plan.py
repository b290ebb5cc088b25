"""What a run has to do with each table: from checkpoint, instances and LSN history to windows, or to a reason."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_mssql_cdc.core.changes import DEFAULT, HistoryOptions, check_history_key
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, SinkState
from airflow_provider_mssql_cdc.core.choice import EVERY_ROW, Choice, check_selection, select
from airflow_provider_mssql_cdc.core.exceptions import (
    RESET_ADVICE,
    GapError,
    KeyRequiredError,
    RestoredError,
    SchemaChangedError,
)
from airflow_provider_mssql_cdc.core.lineage import LogHistory, Witness, restored
from airflow_provider_mssql_cdc.core.lsn import Lsn
from airflow_provider_mssql_cdc.core.schema import KeptSchemas, differing, unknown_schema
from airflow_provider_mssql_cdc.core.selection import EVERYTHING, Selection
from airflow_provider_mssql_cdc.core.spec import SinkSpec, TableSpec
from airflow_provider_mssql_cdc.core.table import (
    CaptureInstance,
    DdlChange,
    InstanceRef,
    TableName,
    TableSchema,
    column_meant,
    same_schema,
)
from airflow_provider_mssql_cdc.core.target import (
    HARD,
    HISTORY,
    IGNORE,
    KEYLESS,
    MIRROR,
    SCD2,
    SHAPES,
    TRANSACTIONS,
    Target,
)


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """How sinks are made, the same for all tables of a run."""

    target: Target
    shapes: tuple[str, ...]
    table_name: str
    properties: Mapping[str, str] = field(default_factory=dict)
    resnapshot: bool = False
    deletes: str = HARD
    history: HistoryOptions = DEFAULT


@dataclass(frozen=True, slots=True)
class Candidate:
    """A table that can be loaded.

    :param sinks: shape to state, None where that shape is to be loaded for the first time
    :param lost_after: shape to where a gap begins that ``on_gap="resnapshot"`` is to close
    :param selection: what of its rows is loaded
    """

    name: TableName
    instance: CaptureInstance
    schema: TableSchema
    unique_key: bool
    sinks: Mapping[str, SinkState | None]
    checkpoint: Checkpoint | None
    lost_after: Mapping[str, Lsn] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    selection: Selection = EVERYTHING

    @property
    def position(self) -> Lsn | None:
        """The lowest position from which a window of this table starts; None if all sinks are first loads."""
        return min((sink.position for sink in self.sinks.values() if sink is not None), default=None)

    def word(self, shape: str) -> str | None:
        """Return the person's word on which a sink stands, though its changes may be purged since."""
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
    """

    name: TableName
    reason: str


def choose_instance(
    name: TableName,
    instances: Sequence[CaptureInstance],
    checkpoint: Checkpoint | None,
    shapes: Collection[str] = SHAPES,
) -> CaptureInstance:
    """Return the instance to read: the checkpoint's while it exists, else one that continues it; for a table that is
    loaded for the first time the newest.

    :param shapes: those that are to be continued
    :raises GapError: if the checkpoint's instance is gone and no other reaches back to the position
    """
    found = instance_to_read(instances, checkpoint, shapes)
    if found is not None:
        return found
    assert checkpoint is not None
    position = min(sink.position for shape, sink in checkpoint.loaded.items() if shape in shapes)
    raise GapError(
        str(name),
        position,
        min((i.min_lsn for i in instances if i.min_lsn is not None), default=position.next()),
        advice=f"Capture instance {checkpoint.feeds(shapes)[0].name} was dropped before all was loaded. Load the table "
        'anew once with on_gap="resnapshot", or drop the target table and run `mssql-cdc checkpoint reset`.',
    )


def instance_to_read(
    instances: Sequence[CaptureInstance], checkpoint: Checkpoint | None, shapes: Collection[str]
) -> CaptureInstance | None:
    """Return the instance of ``choose_instance``; None if the checkpoint's is gone and no other continues it."""
    by_age = sorted(instances, key=lambda instance: (instance.create_date, instance.object_id))
    if checkpoint is None or not checkpoint.loaded:
        return by_age[-1]
    feeds = checkpoint.feeds(shapes)
    for instance in by_age:
        if any(feed.is_same(instance) for feed in feeds):
            return instance
    position = min((sink.position for shape, sink in checkpoint.loaded.items() if shape in shapes), default=None)
    if position is None:
        return by_age[-1]
    for instance in reversed(by_age):
        if instance.min_lsn is not None and instance.min_lsn <= position.next():
            return instance
    return None if feeds else by_age[-1]


def check_history(name: TableName, checkpoint: Checkpoint, history: LogHistory) -> None:
    """Refuse positions of another history: after a restore, or after CDC was disabled and enabled again.

    :raises RestoredError: saying which proof failed
    """
    for sink in checkpoint.loaded.values():
        if why := history.contradiction(sink.position, sink.witness):
            raise restored(name, f"the checkpoint stands at {sink.position}", why)


def choose_key(
    name: TableName, instance: CaptureInstance, shapes: Iterable[str], user_key: Sequence[str] | None
) -> tuple[tuple[str, ...], bool]:
    """Return the key's columns, and whether SQL Server enforces it.

    :param user_key: from ``keys``, used where the table has no key of its own; a name is the column's that is spelt
        so, else the only one's that differs in case alone
    :raises KeyRequiredError: if there is none and a shape needs one, or if the user's is not captured
    """
    captured = {column.name for column in TableSchema(instance.columns, ()).loaded}
    for key in (instance.index_key, instance.primary_key):
        if key and captured.issuperset(key):
            return key, True
    if user_key:
        names = [*(column.name for column in instance.columns), *instance.uncaptured]
        meant = {column: column_meant(column, names) for column in user_key}
        missing = [column for column, name in meant.items() if name not in captured]
        if missing:
            raise KeyRequiredError(
                f"keys names {', '.join(missing)}, which capture instance {instance.name} does not capture.",
                table=str(name),
                advice=f"Captured are: {', '.join(sorted(captured))}.",
            )
        return tuple(dict.fromkeys(meant.values())), False
    if needing := [shape for shape in shapes if shape not in KEYLESS]:
        raise KeyRequiredError(
            f"{needing[0]} needs a key, and the table has neither a primary key nor a unique index in its capture "
            "instance.",
            table=str(name),
            advice=f'Name one with keys={{"{name}": [..]}}, or load only the history.',
        )
    return (), False


def check_key(name: TableName, options: SinkOptions, key: Sequence[str], *, unique: bool) -> None:
    """Refuse a key that SQL Server does not enforce where rows that are gone stay beside those that are there.

    :param unique: whether the server enforces it
    :raises KeyRequiredError: for ``scd2``, for a mirror that ignores deletes, and for a history that needs such a key
    """
    if HISTORY in options.shapes:
        check_history_key(name, options.history, key=key, unique=unique)
    if unique or set(options.shapes) <= KEYLESS:
        return
    kind = SCD2 if SCD2 in options.shapes else 'a mirror with deletes="ignore"' if options.deletes == IGNORE else None
    if kind is not None:
        raise KeyRequiredError(
            f"{kind} needs a key that SQL Server enforces: a primary key, or the unique index of the capture instance.",
            table=str(name),
            advice="Enable an instance with @index_name, or load the table by a task of its own as mirror and history.",
        )


_SCHEMA_ADVICE = (
    f"Schema changes are not loaded yet: {RESET_ADVICE[0].lower()}{RESET_ADVICE[1:]} Rows that the target then holds "
    "keep NULL in a column that was added, until they change."
)


def check_ddl(
    name: TableName, ddl: Iterable[DdlChange], after: Lsn, upto: Lsn, *, advice: str = _SCHEMA_ADVICE
) -> None:
    """Refuse captured columns that change within the window (after, upto].

    :param ddl: the instance's rows of ``cdc.ddl_history``
    :param advice: what to do about it
    :raises SchemaChangedError: with the statement
    """
    for change in ddl:
        if change.requires_column_update and after < change.lsn <= upto:
            raise SchemaChangedError(
                f"a captured column was changed at {change.lsn} ({change.time}) by: {change.command.strip()}",
                table=str(name),
                advice=advice,
            )


def check_schema(name: TableName, schema: TableSchema, sinks: Iterable[SinkState], kept: KeptSchemas) -> None:
    """Refuse captured columns that are not those that the sinks were loaded with.

    :param kept: schemas by their hash
    :raises SchemaChangedError: with both column lists
    """
    for sink in sinks:
        if sink.schema_hash is not None and not same_schema(sink.schema_hash, schema):
            raise SchemaChangedError(
                "the captured columns are no longer those of the last load.\n"
                f"{differing(kept(sink.schema_hash), schema)}",
                table=str(name),
                advice=_SCHEMA_ADVICE,
            )


def assess(
    name: TableName,
    instances: Sequence[CaptureInstance],
    checkpoint: Checkpoint | None,
    history: LogHistory,
    ddl: Sequence[DdlChange],
    upto: Lsn | None,
    options: SinkOptions,
    user_key: Sequence[str] | None = None,
    choice: Choice = EVERY_ROW,
    salt: str | None = None,
    kept: KeptSchemas = unknown_schema,
) -> Candidate | NotYet:
    """Decide whether, from where and from which instance a table can be loaded.

    :param instances: the table's capture instances, at least one
    :param ddl: ``cdc.ddl_history`` of all its instances
    :param upto: the cut; None while there is none
    :param choice: what of the rows is to be loaded
    :param salt: ``core.selection.salt_check`` of the salt; None where there is none
    :param kept: schemas by their hash
    :raises MsSqlCdcError: if the table cannot be loaded; it concerns this table alone
    """
    if checkpoint is not None:
        check_history(name, checkpoint, history)
    instance = choose_instance(name, instances, checkpoint, options.shapes)
    key, unique = choose_key(name, instance, options.shapes, user_key)
    check_key(name, options, key, unique=unique)
    schema = TableSchema(instance.columns, key)
    selection = select(name, schema, choice, options.shapes, check=salt)
    loaded = checkpoint.loaded if checkpoint else {}
    sinks = {shape: loaded.get(shape) for shape in options.shapes}
    if instance.min_lsn is None or history.max_lsn is None or upto is None or history.max_lsn < instance.min_lsn:
        if any(sinks.values()) and instance.min_lsn is None:
            raise RestoredError(
                f"capture instance {instance.name} shows no lower bound (fn_cdc_get_min_lsn), beside a checkpoint.",
                table=str(name),
                advice="Either it was just enabled anew, or the login may not see it: SELECT on all captured columns "
                f"and membership in the gating role are needed. {RESET_ADVICE}",
            )
        return NotYet(name, f"capture instance {instance.name} was just enabled; nothing is captured yet")
    warnings = [f"column {column} is not captured by {instance.name}" for column in instance.uncaptured]
    warnings += [f"column {c.name} is left out: the source table no longer has it" for c in schema.columns if c.dropped]
    warnings += [f"computed column {c.name} is left out: CDC captures it as NULL" for c in schema.columns if c.computed]
    held = {c.name for c in schema.loaded if selection.holds(c.name)}
    warnings += [
        f"column {c.name} is encrypted (Always Encrypted), and loaded as the bytes of its ciphertext"
        for c in schema.columns
        if c.encrypted and c.name in held
    ]
    candidate = Candidate(
        name, instance, schema, unique, sinks, checkpoint, warnings=tuple(warnings), selection=selection
    )
    if checkpoint is not None and candidate.position is not None:
        check_ddl(name, [d for d in ddl if d.capture_instance == instance.name], candidate.position, upto)
        known = [sink for sink in sinks.values() if sink is not None]
        check_schema(name, schema, known, kept)
        check_selection(name, selection, known)
    return closed_gap(candidate, instance.min_lsn, options)


def closed_gap(candidate: Candidate, min_lsn: Lsn, options: SinkOptions) -> Candidate:
    """Return the candidate, with first loads in place of the sinks whose changes were purged if that was asked for.

    :raises GapError: if it was not
    """
    lost = {
        shape: state.position
        for shape, state in candidate.sinks.items()
        if state is not None and min_lsn > state.position.next()
    }
    if not lost:
        return candidate
    if options.resnapshot:
        sinks = {shape: None if shape in lost else state for shape, state in candidate.sinks.items()}
        return dataclasses.replace(candidate, sinks=sinks, lost_after={**candidate.lost_after, **lost})
    raise GapError(
        str(candidate.name),
        min(lost.values()),
        min_lsn,
        advice='Load the table anew once with on_gap="resnapshot", or drop the target table and run `mssql-cdc '
        "checkpoint reset`; then load more often, or raise the retention (sys.sp_cdc_change_job "
        "@job_type = N'cleanup', @retention = minutes).",
    )


def needs_load(candidate: Candidate, upto: Lsn, has_events: bool) -> bool:
    """Whether the job has to do something for this table; otherwise its ``read_through`` moves to ``upto``."""
    if candidate.has_first_load:
        return True
    return has_events and candidate.position is not None and candidate.position < upto


def table_spec(candidate: Candidate, options: SinkOptions, partition_by: tuple[str, ...] = ()) -> TableSpec:
    """The table's part of the job spec.

    :param partition_by: Spark SQL partition expressions, should the load create its targets
    """
    return TableSpec(
        name=candidate.name,
        instance=candidate.instance,
        schema=candidate.schema,
        unique_key=candidate.unique_key,
        selection=candidate.selection,
        sinks=tuple(
            SinkSpec(
                shape=shape,
                table=options.target.table(options.table_name, candidate.name, shape),
                read_through=state.read_through if state else None,
                expects=state.applied if state else None,
                lost_after=candidate.lost_after.get(shape),
                asserted=candidate.word(shape),
                # it has none of the columns that the expressions are about
                partition_by=() if shape == TRANSACTIONS else partition_by,
                properties=dict(options.properties),
                format=options.target.format,
                deletes=options.deletes if shape == MIRROR else HARD,
                history=options.history if shape == HISTORY else DEFAULT,
            )
            for shape, state in candidate.sinks.items()
        ),
    )


def quiet_checkpoint(candidate: Candidate, upto: Lsn, witness: Witness | None) -> Checkpoint | None:
    """Return the checkpoint with ``read_through`` moved to a cut up to which the table is proven empty.

    :return: None if no sink lies below the cut, and the instance is still the same
    """
    if candidate.checkpoint is None:
        return None
    # only the shapes that this run looked at are proven empty
    states = {shape: state for shape, state in candidate.sinks.items() if state is not None}
    ref = InstanceRef.of(candidate.instance)
    if all(state.position >= upto and state.feed == ref for state in states.values()):
        return None
    read = loaded_from(candidate.instance, candidate.schema, candidate.selection)
    moved = {shape: dataclasses.replace(state, failed=None, **read) for shape, state in states.items()}
    for shape, state in states.items():
        if state.position < upto:
            moved[shape] = dataclasses.replace(moved[shape], read_through=upto, witness=witness)
    return dataclasses.replace(candidate.checkpoint, sinks={**candidate.checkpoint.sinks, **moved})


def loaded_from(instance: CaptureInstance, schema: TableSchema, selection: Selection) -> dict[str, Any]:
    """What a sink's state says of a load from this instance."""
    return {
        "feed": InstanceRef.of(instance),
        "schema_hash": schema.hash,
        "schema_kept": True,
        "selection_hash": selection.hash,
        "selection": selection.describe(),
    }


def is_stale(checkpoint: Checkpoint, now: datetime.datetime, retention: datetime.timedelta | None) -> bool:
    """Whether a quiet table's checkpoint is old enough to be written for ``read_through`` alone.

    :param retention: of the cleanup job, None where unknown
    """
    limit = datetime.timedelta(hours=1)
    if retention is not None:
        limit = min(limit, retention / 10)
    return checkpoint.failure() is not None or checkpoint.updated_at is None or now - checkpoint.updated_at > limit
